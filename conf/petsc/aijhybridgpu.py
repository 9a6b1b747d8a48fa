# A package file for PETSc's configure. Copy it into config/BuildSystem/config/packages of PETSc's sources, then
#
#   ./configure --download-aijhybridgpu=/path/to/petsc-aijhybridgpu-VERSION.tar.gz ...
#
# (`make dist` makes the tarball, `--download-aijhybridgpu-cuda=0` leaves the CUDA part out.) The plugin is built when
# PETSc's libraries are, at the end of `make`, or of `make install` where there is a prefix, and lies beside them.
# Configure it again with another tarball and
# `make` builds that one.
import config.package
import os
import shutil

class Configure(config.package.Package):
  def __init__(self, framework):
    config.package.Package.__init__(self, framework)
    self.download               = ['file:///nowhere/give-the-tarball-of-make-dist']
    self.functions              = []
    self.includes               = []
    self.skippackagewithoptions = 1
    self.useddirectly           = 0
    self.linkedbypetsc          = 0
    self.builtafterpetsc        = 1
    self.downloaddirnames       = ['petsc-aijhybridgpu']
    self.precisions             = ['double']
    return

  def setupHelp(self, help):
    import nargs
    config.package.Package.setupHelp(self, help)
    help.addArgument('AIJHYBRIDGPU', '-download-aijhybridgpu-cuda=<bool>', nargs.ArgBool(None, None, 'Build the CUDA part (default: where nvcc is found; it does not need --with-cuda)'))
    return

  def setupDependencies(self, framework):
    config.package.Package.setupDependencies(self, framework)
    self.setCompilers    = framework.require('config.setCompilers', self)
    self.sharedLibraries = framework.require('PETSc.options.sharedLibraries', self)
    self.installdir      = framework.require('PETSc.options.installDir', self)
    self.mpi             = framework.require('config.packages.MPI', self)
    self.cuda            = framework.require('config.packages.CUDA', self)
    self.odeps           = [self.mpi, self.cuda]
    return

  def consistencyChecks(self):
    config.package.Package.consistencyChecks(self)
    if self.argDB['download-' + self.package] in (1, True, '1', 'yes'):
      raise RuntimeError('--download-aijhybridgpu needs the tarball: --download-aijhybridgpu=/path/to/petsc-aijhybridgpu-VERSION.tar.gz')
    return

  def tarballKnown(self):
    '''The file that says which tarball was unpacked'''
    return os.path.join(self.externalPackagesDir, self.package + '.tarball')

  def tarballSum(self):
    '''Of the tarball that is given; empty where it is no file of this machine'''
    path = str(self.argDB['download-' + self.package])
    if path.startswith('file://'): path = path[len('file://'):]
    return self.getChecksum(path) if os.path.isfile(path) else ''

  def getDir(self):
    '''PETSc keeps what it has unpacked once: not where the tarball is another one by now'''
    path = config.package.Package.getDir(self)
    now  = self.tarballSum()
    if path and now:
      before = ''
      if os.path.isfile(self.tarballKnown()):
        with open(self.tarballKnown()) as f: before = f.read().strip()
      if before != now:
        self.logPrint('The tarball of ' + self.PACKAGE + ' is another one: removing ' + path)
        shutil.rmtree(path)
        path = None
    return path

  def downLoad(self):
    with open(self.tarballKnown(), 'w') as f: f.write(self.tarballSum() + '\n')
    return config.package.Package.downLoad(self)

  def Install(self):
    if not self.checkSharedLibrariesEnabled():
      raise RuntimeError('aijhybridgpu is loaded by programs at run time and needs a PETSc with shared libraries')
    if self.argDB['prefix'] and not 'package-prefix-hash' in self.argDB:
      prefix = os.path.abspath(os.path.expanduser(self.argDB['prefix']))
      args   = 'PETSC_DIR=' + prefix + ' PETSC_ARCH='
    else:
      prefix = os.path.join(self.petscdir.dir, self.arch)
      args   = 'PETSC_DIR=' + self.petscdir.dir + ' PETSC_ARCH=' + self.arch
    args += ' PREFIX=' + prefix + ' LIBDIR=build/lib-petsc'
    given = self.argDB.get('download-aijhybridgpu-cuda')
    if given is not None and not given: args += ' CUDA=0'
    elif given: args += ' CUDA=1'
    if self.cuda.found and 'nvcc' in getattr(self.compilers, 'CUDAC', ''): args += ' NVCC=' + self.compilers.CUDAC
    if self.cuda.found and getattr(self.cuda, 'cudaArch', '').replace(',', '').isdigit(): args += ' CUDA_ARCH="' + self.cuda.cudaArch.replace(',', ' ') + '"'
    self.include = [os.path.join(prefix, 'include')]
    self.lib     = [os.path.join(prefix, 'lib', 'libaijhybridgpu.' + self.setCompilers.sharedLibraryExt)]
    self.addPost(self.packageDir, ['${OMAKE} -j ${MAKE_NP} ' + args + ' install'])
    self.addMakeCheck(self.packageDir, '${OMAKE} ' + args + ' CUDA=0 check-installed')
    self.logPrintBox('aijhybridgpu: once PETSc is built, in any program\nPETSC_OPTIONS="-dll_append ' + self.lib[0] + ' -mat_type aijhybridgpu"', rmDir = 0)
    return self.installDir

"""pip install . : builds the plugin by the makefile and puts it into the Python package.

Which PETSc: PETSC_DIR (and PETSC_ARCH), else the `petsc` that pip has put into this environment, else what pkg-config
finds. PETSc itself is never installed from here. CUDA=0 in the environment leaves the CUDA part out, CUDA_ARCH names
its architectures; MAKEFLAGS is make's own.
"""
import json
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from distutils.command.install_data import install_data  # setuptools brings it

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))


def version():
    with open(os.path.join(HERE, 'include/petscmataijhybridgpu.h')) as f:
        return re.search(r'^#define PETSC_AIJHYBRIDGPU_VERSION "(.*)"', f.read(), re.M).group(1)


def pips_petsc():
    """The folder of pip's petsc; under pip's build isolation it cannot be imported, so its place is looked at."""
    places = [sysconfig.get_path('purelib'), sysconfig.get_path('platlib'), site.getusersitepackages() if site.ENABLE_USER_SITE else '']
    for place in places:
        if place and any(os.path.exists(os.path.join(place, 'petsc/lib/pkgconfig', name)) for name in ('PETSc.pc', 'petsc.pc')):
            return os.path.join(place, 'petsc')
    return None


def environment():
    env = dict(os.environ, FINDPETSC_INSTALL='0')
    if not env.get('PETSC_DIR') and pips_petsc():
        env['PETSC_DIR'] = pips_petsc()
        env.pop('PETSC_ARCH', None)
    return env


class Build(build_py):
    def run(self):
        super().run()
        env = environment()
        if not shutil.which('make'):
            sys.exit('petsc-aijhybridgpu: make is missing. Install it:  sudo apt-get update && sudo apt-get install make')
        # before anything is built, since it says what is missing and the command that mends it; that line is to be
        # the last one
        told = subprocess.run(['conf/findpetsc'], cwd=HERE, env=env, capture_output=True, text=True)
        if told.returncode:
            sys.exit('petsc-aijhybridgpu: ' + told.stderr.strip())
        petsc = dict(re.findall(r'^(PETSC_(?:VERSION|PREFIX|SCALAR|ID)) := (.*)$', told.stdout, re.M))
        lib = os.path.join(self.build_lib, 'petsc_aijhybridgpu', 'lib')
        shutil.rmtree(lib, ignore_errors=True)
        make = ['make', '--no-print-directory', 'LIBDIR=' + os.path.abspath(lib)] + [a + '=' + env[a] for a in ('CUDA', 'CUDA_ARCH') if env.get(a)]
        if 'MAKEFLAGS' not in env:
            make.append('-j%d' % (os.cpu_count() or 1))
        if subprocess.run(make + ['all'], cwd=HERE, env=env).returncode:
            sys.exit('petsc-aijhybridgpu: the plugin was not built: see what make says above')
        # no links in wheels: what PETSc loads is a file
        for name in os.listdir(lib):
            if os.path.islink(os.path.join(lib, name)):
                os.remove(os.path.join(lib, name))
        shutil.copy(os.path.join(HERE, 'include/petscmataijhybridgpu.h'), lib)
        with open(os.path.join(self.build_lib, 'petsc_aijhybridgpu', 'built.json'), 'w') as f:
            json.dump({'version': version(), 'petsc': petsc['PETSC_VERSION'], 'prefix': petsc['PETSC_PREFIX'], 'scalar': petsc['PETSC_SCALAR'], 'kind': petsc['PETSC_ID']}, f, indent=1)


class Wheel(bdist_wheel):
    """Of this machine, of any Python 3"""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return 'py3', 'none', super().get_tag()[2]


class ManualPages(install_data):
    """Where `man` looks once the environment's bin is in the path: in its share/man"""

    def run(self):
        folder = os.path.join(HERE, 'build', 'man-pip')
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, 'conf/manpages', '--man', folder, '--version', version()], cwd=HERE, check=True)
        self.data_files = [('share/man/' + section, [os.path.join(folder, section, page) for page in sorted(os.listdir(os.path.join(folder, section)))]) for section in sorted(os.listdir(folder))]
        super().run()


class Compiled(Distribution):
    def has_ext_modules(self):
        return True

    def has_data_files(self):
        return True


setup(version=version(), license='BSD-2-Clause', packages=['petsc_aijhybridgpu'], package_dir={'': 'python'}, data_files=[], distclass=Compiled, cmdclass={'build_py': Build, 'bdist_wheel': Wheel, 'install_data': ManualPages})

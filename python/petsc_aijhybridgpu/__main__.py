"""python -m petsc_aijhybridgpu: prints the options that bring the type into a program of PETSc's."""
import argparse
import importlib.util
import sys

import petsc_aijhybridgpu

parser = argparse.ArgumentParser(prog='python -m petsc_aijhybridgpu', description='Prints the options that bring the matrix type aijhybridgpu into a program: '
                                 'PETSC_OPTIONS="$(python -m petsc_aijhybridgpu)" ./program')
parser.add_argument('--no-aij', action='store_false', dest='aij', help='not for matrices whose program names MATAIJ in its code')
parser.add_argument('--aij', action='store_true', default=True, help=argparse.SUPPRESS)
parser.add_argument('--library', action='store_true', help="only the plugin's path")
parser.add_argument('--version', action='store_true', help='the version, and the PETSc that it was built for')
asked = parser.parse_args()
if asked.version:
    told = petsc_aijhybridgpu.built()
    print('petsc-aijhybridgpu %s for PETSc %s, %s, in %s' % (told['version'], told['petsc'], told['scalar'], told['prefix']))
elif asked.library:
    print(petsc_aijhybridgpu.library())
else:
    try:
        print(petsc_aijhybridgpu.options(asked.aij))
    except RuntimeError as error:
        sys.exit(str(error))
    if not importlib.util.find_spec('petsc4py'):
        print("petsc_aijhybridgpu: this Python, %s, has no petsc4py: programs of petsc4py need another one; Debian's is /usr/bin/python3" % sys.executable, file=sys.stderr)

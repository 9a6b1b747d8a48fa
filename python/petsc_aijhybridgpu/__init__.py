"""The PETSc plugin libaijhybridgpu.so, for petsc4py and everything above it.

    import sys
    import petsc_aijhybridgpu
    petsc_aijhybridgpu.init(sys.argv)  # in the place of petsc4py.init(sys.argv), before petsc4py.PETSc is imported
    from petsc4py import PETSc

All AIJ matrices are of the plugin's types from then on. `python -m petsc_aijhybridgpu` prints the options that init()
sets, for programs that are not Python's.
"""
import json
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_begun = False


def built():
    """What it was built for: version, petsc, prefix, scalar."""
    try:
        with open(os.path.join(_here, 'built.json')) as f:
            return json.load(f)
    except FileNotFoundError:
        raise RuntimeError('petsc_aijhybridgpu: the plugin was not built here; run pip install in the sources') from None


def library():
    """The plugin's path."""
    return os.path.join(_here, 'lib', 'libaijhybridgpu.so')


def get_include():
    """The folder of petscmataijhybridgpu.h."""
    return os.path.join(_here, 'lib')


def options(aij=True):
    """PETSc's options that bring the type in; aij: also where a program names AIJ in its code."""
    if any(c.isspace() for c in library()):
        raise RuntimeError('petsc_aijhybridgpu: PETSc takes options apart at blanks, and there is one in %s: install it into another environment' % library())
    words = ['-dll_append', library(), '-mat_type', 'aijhybridgpu', '-dm_mat_type', 'aijhybridgpu']
    return ' '.join(words + (['-mat_seqaij_type', 'seqaijhybridgpu'] if aij else []))


def init(args=None, aij=True):
    """Makes the type the default of what PETSc does in this process. To be called before petsc4py.PETSc is imported.

    args: a list, as sys.argv, is what petsc4py.init() takes, and that is called with it; a string has further options,
    as in PETSC_OPTIONS. Without args petsc4py is not started. aij=False: only matrices whose program asks the options.
    What already stands in PETSC_OPTIONS, and what args says, goes before.
    """
    global _begun
    if args is not None and not isinstance(args, (str, list, tuple)):
        raise TypeError('petsc_aijhybridgpu.init() takes a list, as sys.argv, or a string of options, not %s' % type(args).__name__)
    if 'petsc4py.PETSc' in sys.modules:
        raise RuntimeError('petsc_aijhybridgpu.init() comes too late: petsc4py.PETSc has been imported, and PETSc has read its options')
    if _begun:
        return
    built()
    words = [options(aij), args if isinstance(args, str) else '', os.environ.get('PETSC_OPTIONS', '')]
    os.environ['PETSC_OPTIONS'] = ' '.join(w for w in words if w)
    _begun = True
    if isinstance(args, (list, tuple)):
        import petsc4py
        petsc4py.init(list(args))


def __getattr__(name):
    if name == '__version__':
        return built()['version']
    raise AttributeError(name)

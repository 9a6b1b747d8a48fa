#!/usr/bin/env python3
"""Runs Python programs with the plugin, by PETSC_OPTIONS alone, and compares what they print with plain aij's:
petsc4py's own demonstration programs, examples/poisson.py, one that scipy judges, and one each of FEniCSx and FEniCS.

    python_programs.py PLUGIN

Needs petsc4py for the PETSc that the plugin was built for, its demos and dolfinx (Debian: python3-petsc4py,
python-petsc4py-doc, python3-dolfinx-real, python3-scipy, python3-dolfin). What is not there is skipped, saying so.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run

DEMOS = [
    ('petsc-examples/ksp/ex2.py', '-ksp_monitor_short -pc_type gamg -m 40 -n 40'),
    ('petsc-examples/ksp/ex2.py', '-ksp_monitor_short -pc_type ilu'),
    ('petsc-examples/ksp/ex23.py', '-ksp_monitor_short -ksp_type cg'),
    ('kspsolve/petsc-mat.py', ''),
    ('ode/heat.py', '-ts_max_steps 5 -ts_monitor -ksp_converged_reason'),
    ('binary-io/matvecio.py', ''),
]


def find_python(module):
    """An interpreter that knows a module: this one, else the distribution's."""
    for python in (sys.executable, '/usr/bin/python3'):
        if os.path.exists(python) and not subprocess.run([python, '-c', 'import ' + module], env=dict(os.environ, **run.ENVIRONMENT), capture_output=True).returncode:
            return python
    return None


def programs():
    """(interpreter, script, arguments, processes) of what is here, and the lines that say what is not"""
    out, lacking = [], []
    python = find_python('petsc4py.PETSc')
    if not python:
        return out, ['petsc4py is not installed (Debian: python3-petsc4py)']
    roots = glob.glob('/usr/share/doc/python-petsc4py-doc/examples/demo') + glob.glob(os.path.join(os.environ.get('PETSC_DIR', '/nonexistent'), 'src/binding/petsc4py/demo'))
    roots = [d for d in roots if os.path.isdir(d)]
    if roots:
        out += [(python, os.path.join(roots[0], name), args, 1) for name, args in DEMOS]
    else:
        lacking.append("petsc4py's demos are not here (Debian: python-petsc4py-doc)")
    out += [(python, os.path.join(os.path.dirname(os.path.dirname(HERE)), 'examples/poisson.py'), '-n 20', n) for n in (1, 2)]
    scipy = find_python('petsc4py.PETSc, scipy.sparse')
    if scipy:
        out.append((scipy, os.path.join(HERE, 'petsc4py_scipy.py'), '', 1))
    else:
        lacking.append('scipy is not installed (Debian: python3-scipy)')
    python = find_python('dolfinx')
    if python:
        out += [(python, os.path.join(HERE, 'fenicsx_elasticity.py'), '', n) for n in (1, 2)]
    else:
        lacking.append('dolfinx is not installed (Debian: python3-dolfinx-real)')
    python = find_python('dolfin')
    if python:
        out += [(python, os.path.join(HERE, 'fenics_elasticity.py'), '', n) for n in (1, 2)]
    else:
        lacking.append('dolfin is not installed (Debian: python3-dolfin)')
    return out, lacking


def execute(python, script, args, processes, options, folder):
    environment = dict(os.environ, **run.ENVIRONMENT)
    environment['PETSC_OPTIONS'] = options + ' -options_left no'
    launcher = [os.environ.get('MPIEXEC', 'mpiexec'), '-n', str(processes)] if processes > 1 else []
    p = subprocess.run(launcher + [python, script] + args.split(), cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    return p.returncode, re.sub(r'\b\d+\.\d+ s\b', 'SECONDS', p.stdout), p.stderr


def main():
    plugin = os.path.abspath(sys.argv[1])
    passed = failed = skipped = 0
    here, lacking = programs()
    for line in lacking:
        skipped += 1
        print('SKIPPED: ' + line)
    for python, script, args, processes in here:
        name = ' '.join(w for w in (os.path.join(*script.split('/')[-2:]), args, '' if processes == 1 else 'on %d processes' % processes) if w)
        with tempfile.TemporaryDirectory() as folder:
            status, plain, error = execute(python, script, args, processes, '', folder) if os.path.exists(script) else (1, '', 'no such program')
            if status:
                print('SKIPPED: %s: plain aij fails: %s' % (name, run.first_error(plain, error)))
                skipped += 1
                continue
            for options in ('-mat_type aijhybridgpu -dm_mat_type aijhybridgpu', '-mat_seqaij_type seqaijhybridgpu'):
                counts_file = os.path.join(folder, 'counts')
                status, ours, error = execute(python, script, args, processes, '-dll_append %s -mat_aijhybridgpu_view_counts %s %s' % (plugin, counts_file, options), folder)
                counts = run.read_counts(counts_file)
                why = 'exit status %d: %s' % (status, run.first_error(ours, error)) if status else run.difference(plain, ours)
                if not why and counts and counts['unasked']:
                    why = 'a product fell back to the parent unasked'
                moved = counts and (counts['mult'] or counts['assemblyend'] or counts['products'])
                if why:
                    failed += 1
                    print('FAILED  %s (%s): %s' % (name, options, why))
                else:
                    passed += 1
                    print('passed  %s (%s)%s' % (name, options, '' if moved else ', type not exercised'))
    print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

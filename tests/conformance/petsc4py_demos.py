#!/usr/bin/env python3
"""Runs petsc4py's own demonstration programs with the plugin, by PETSC_OPTIONS alone, and compares what they print with plain aij's.

    petsc4py_demos.py PLUGIN

Needs petsc4py for the PETSc that the plugin was built for, and its demos (Debian: python3-petsc4py, python-petsc4py-doc). Without them
it skips, saying so.
"""
import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run

DEMOS = [
    ('petsc-examples/ksp/ex2.py', '-ksp_monitor_short -pc_type gamg -m 40 -n 40'),
    ('petsc-examples/ksp/ex2.py', '-ksp_monitor_short -pc_type ilu'),
    ('petsc-examples/ksp/ex23.py', '-ksp_monitor_short -ksp_type cg'),
    ('kspsolve/petsc-mat.py', ''),
    ('ode/heat.py', '-ts_max_steps 5 -ts_monitor -ksp_converged_reason'),
    ('binary-io/matvecio.py', ''),
]


def find_python():
    """An interpreter that knows petsc4py: this one, else the distribution's."""
    for python in (sys.executable, '/usr/bin/python3'):
        if os.path.exists(python) and not subprocess.run([python, '-c', 'import petsc4py.PETSc'], env=dict(os.environ, **run.ENVIRONMENT), capture_output=True).returncode:
            return python
    return None


def execute(python, script, args, options, folder):
    environment = dict(os.environ, **run.ENVIRONMENT)
    environment['PETSC_OPTIONS'] = options + ' -options_left no'
    p = subprocess.run([python, script] + args.split(), cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    return p.returncode, p.stdout, p.stderr


def main():
    plugin = os.path.abspath(sys.argv[1])
    python = find_python()
    if not python:
        print('SKIPPED: petsc4py is not installed (Debian: python3-petsc4py)\n0 passed, 0 failed, 1 skipped')
        return 0
    roots = [d for d in glob.glob('/usr/share/doc/python-petsc4py-doc/examples/demo') + glob.glob(os.path.join(os.environ.get('PETSC_DIR', '/nonexistent'), 'src/binding/petsc4py/demo')) if os.path.isdir(d)]
    if not roots:
        print('SKIPPED: petsc4py\'s demos are not here (Debian: python-petsc4py-doc)\n0 passed, 0 failed, 1 skipped')
        return 0
    passed = failed = skipped = 0
    for name, args in DEMOS:
        script = os.path.join(roots[0], name)
        with tempfile.TemporaryDirectory() as folder:
            status, plain, error = execute(python, script, args, '', folder) if os.path.exists(script) else (1, '', 'no such demo')
            if status:
                print('SKIPPED: %s %s: plain aij fails: %s' % (name, args, run.first_error(plain, error)))
                skipped += 1
                continue
            for options in ('-mat_type aijhybridgpu -dm_mat_type aijhybridgpu', '-mat_seqaij_type seqaijhybridgpu'):
                counts_file = os.path.join(folder, 'counts')
                status, ours, error = execute(python, script, args, '-dll_append %s -mat_aijhybridgpu_view_counts %s %s' % (plugin, counts_file, options), folder)
                counts = run.read_counts(counts_file)
                why = 'exit status %d: %s' % (status, run.first_error(ours, error)) if status else run.difference(plain, ours)
                if not why and counts and counts['unasked']:
                    why = 'a product fell back to the parent unasked'
                moved = counts and (counts['mult'] or counts['assemblyend'] or counts['products'])
                if why:
                    failed += 1
                    print('FAILED  %s %s (%s): %s' % (name, args, options, why))
                else:
                    passed += 1
                    print('passed  %s %s (%s)%s' % (name, args, options, '' if moved else ', type not exercised'))
    print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

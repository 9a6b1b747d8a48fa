"""A bundle: the list of commands with all that it needs but PETSc's library and the plugin, for machines without
PETSc's sources or a compiler for them (a machine with a GPU, reached with what one carries there).

    bin/                     the programs, built here and stripped; NAME.failed says why one could not be built
    src/                     the programs' sources (their TEST blocks are the list), the stored outputs, the
                             files that tests read beside them
    share/petsc/datafiles/   PETSc's small matrices and meshes
    petsc.json               version and macros of the PETSc that the programs were built with
"""
import json
import os
import shutil
import subprocess

import testblocks


def write(folder, version, macros, datafiles, source_root, jobs, executable):
    """The bundle of these jobs, whose programs are compiled already. executable(program) is the path of one."""
    shutil.rmtree(folder, ignore_errors=True)

    def copy(path):
        target = os.path.join(folder, 'src', os.path.relpath(path, source_root))
        if os.path.isdir(path):
            shutil.copytree(path, target, dirs_exist_ok=True)
        elif os.path.exists(path) and not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(path, target)

    for job in jobs:
        copy(job.command.source)
        for name in testblocks.stored_outputs(job.command):
            copy(name)
        for name in job.command.keys.get('localrunfiles', '').split():
            copy(os.path.join(os.path.dirname(job.command.source), name))
    for program in sorted({j.program for j in jobs}):
        made, target = executable(program), os.path.join(folder, 'bin', program)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.exists(made):
            subprocess.run(['strip', '-o', target, made], check=True)
        else:
            shutil.copy(made + '.failed', target + '.failed')
    if os.path.isdir(datafiles):
        shutil.copytree(datafiles, os.path.join(folder, 'share/petsc/datafiles'))
    with open(os.path.join(folder, 'petsc.json'), 'w') as f:
        json.dump({'version': version, 'macros': sorted(macros)}, f)


def read(folder):
    """(version, macros, source root, datafiles) of the bundle there."""
    with open(os.path.join(folder, 'petsc.json')) as f:
        about = json.load(f)
    return about['version'], set(about['macros']), os.path.join(folder, 'src'), os.path.join(folder, 'share/petsc/datafiles')

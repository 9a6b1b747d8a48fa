#!/usr/bin/env python3
"""Runs PETSc's own tests with another type in AIJ's place and compares what they print with what PETSc stored.

    run.py --mode mat_type,seqaij_type [--fast] [--search REGEX] [--failed] [--jobs N] [--list]
    run.py --bundle DIR                      builds the programs and writes all that the list needs to DIR (bundle.py)
    run.py --from DIR [--seconds N] ...      runs it from there, without a compiler or PETSc's sources

What is run: testblocks.py reads the TEST blocks, commands.py says which commands concern an AIJ type and what becomes
of them. The plugin comes in by PETSC_OPTIONS alone. mat_type: the type's name takes the place of the one on the command
line. seqaij_type: the command names aij, and every sequential AIJ matrix, also the blocks of parallel ones, is
converted (-mat_seqaij_type).

How it is judged: exit status, and the output as PETSc's petscdiff sees it (blanks and floating point numbers aside),
only stricter: numbers must agree to a relative 1e-2 or an absolute 1e-5. Lines that state a type are left aside, and
addresses stand for any. Where the stored output is missed, plain aij runs the same command without the plugin (its
result is kept): if that fails too the command is left out, otherwise its output is the judge. Lines that
known-differences.txt tells to leave aside are. What it lists otherwise passes if aijperm, PETSc's simplest type derived
from AIJ, prints the same, and is left out otherwise.

The PETSc in use is taken from the environment as the makefile sets it: PETSC_ID, PETSC_PREFIX, PETSC_VERSION, PETSC_CC,
PETSC_CFLAGS, PETSC_LIBS, MPIEXEC. Written under --build: bin/ (programs), aij/ (plain results), leftout-MODE.txt,
results-MODE.tsv, failed-MODE/ (outputs).
"""
import argparse
import concurrent.futures
import fnmatch
import glob
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bundle
import commands
import testblocks

HERE = os.path.dirname(os.path.abspath(__file__))
RELATIVE, ABSOLUTE = 1e-2, 1e-5
NUMBER = re.compile(r'[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?')
TYPE_LINE = re.compile(r'\btype\s*[:=]|\bMatType\b|\btypes?\b.*aij|WARNING! There are options|Option left|PETSC ERROR: -\w|using \w+ MatPtAP\(\) implementation|(?i:aijhybridgpu)')
ADDRESS = re.compile(r'0x[0-9a-f]{6,}')
TYPE_NAME = re.compile(r'\b(seq|mpi)?aij(hybridgpu|cusparse|kokkos|viennacl|perm|sell|mkl|hipsparse|crl)?\b', re.I)
ENVIRONMENT = {
    'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'OMPI_MCA_rmaps_base_oversubscribe': '1',
    'OMPI_MCA_hwloc_base_binding_policy': 'none', 'OMPI_MCA_mpi_yield_when_idle': '1', 'OMPI_MCA_btl_vader_single_copy_mechanism': 'none',
    # looking for networks costs Open MPI more than most of these tests: shared memory only, and no helper process for
    # one rank
    'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,vader', 'OMPI_MCA_ess_singleton_isolated': '1',
    'PRTE_MCA_rmaps_default_mapping_policy': ':oversubscribe', 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', 'LC_ALL': 'C',
}


def say(*words):
    print(*words, flush=True)


def find_sources(prefix, version):
    """The examples' src folder and the datafiles of the PETSc in use."""
    short = '.'.join(version.split('.')[:2])
    candidates = [os.path.join(prefix, 'share/petsc/examples/src'), os.path.join(prefix, 'src'), os.path.join(os.path.dirname(prefix), 'src')]
    candidates += sorted(glob.glob('/usr/share/petsc/%s*/share/petsc/examples/src' % short), reverse=True)
    for c in candidates:
        if os.path.isdir(os.path.join(c, 'mat/tests')):
            root = os.path.dirname(c)
            for d in (os.path.join(root, 'share/petsc/datafiles'), os.path.join(os.path.dirname(root), 'datafiles')):
                if os.path.isdir(os.path.join(d, 'matrices')):
                    return c, d
            return c, os.path.join(root, 'share/petsc/datafiles')
    sys.exit('conformance: no examples of PETSc %s found (looked in %s); Debian has them in libpetsc%s-dev-examples' % (version, ', '.join(candidates), short))


def configuration(environment, datafiles):
    source = '#include <petscconf.h>\n#include <petscversion.h>\n'
    run = subprocess.run(environment['PETSC_CC'].split() + ['-E', '-dM', '-x', 'c', '-'] + shlex.split(environment['PETSC_CFLAGS']), input=source, capture_output=True, text=True)
    if run.returncode:
        sys.exit('conformance: petscconf.h cannot be read:\n' + run.stderr)
    macros = {line.split(None, 2)[1] for line in run.stdout.splitlines() if line.startswith('#define')}
    return commands.Configuration(macros, datafiles)


def numbers_agree(a, b):
    try:
        x, y = float(a), float(b)
    except ValueError:
        return a == b
    if re.fullmatch(r'[-+]?\d+', a) and re.fullmatch(r'[-+]?\d+', b):
        return x == y
    return abs(x - y) <= max(ABSOLUTE, RELATIVE * max(abs(x), abs(y)))


def lines_of(text, aside):
    kept = []
    for line in text.splitlines():
        if TYPE_LINE.search(line) or any(a.search(line) for a in aside):
            continue
        line = ADDRESS.sub('ADDRESS', TYPE_NAME.sub('AIJ', line))
        if line.strip():
            kept.append(line)
    return kept


def difference(expected, got, aside=()):
    """None where both agree, else the first lines that do not. Lines that match one of `aside` count for nothing."""
    a, b = lines_of(expected, aside), lines_of(got, aside)
    for i in range(max(len(a), len(b))):
        x = a[i] if i < len(a) else None
        y = b[i] if i < len(b) else None
        if x is None or y is None:
            return 'line %d: expected %r, got %r' % (i + 1, x, y)
        if ''.join(x.split()) == ''.join(y.split()):
            continue
        same_text = [''.join(t.split()) for t in NUMBER.split(x)] == [''.join(t.split()) for t in NUMBER.split(y)]
        if not same_text or not all(numbers_agree(p, q) for p, q in zip(NUMBER.findall(x), NUMBER.findall(y))):
            return 'line %d: expected %r, got %r' % (i + 1, x, y)
    return None


class Job:
    """A command line for any type's name. bare: the same without the -mat_type and -dm_mat_type that the test itself
    does not have."""

    def __init__(self, command, what, make, data_replaced, source_root, bare=False):
        self.command, self.what, self.make, self.data_replaced, self.source_root, self.bare = command, what, make, data_replaced, source_root, bare
        self.program = os.path.splitext(os.path.relpath(command.source, source_root))[0]

    def line(self, root):
        return self.make(root, not self.bare)

    def as_bare(self):
        return Job(self.command, self.what, self.make, self.data_replaced, self.source_root, True)

    def label(self, root):
        return 'n=%d %s' % (self.command.nsize, ' '.join(self.line(root)))


class Runner:
    def __init__(self, options, environment):
        self.o = options
        self.e = environment
        self.bundled = os.path.abspath(options.bundled) if options.bundled else ''
        self.version = environment.get('PETSC_VERSION', '')
        if self.bundled:
            self.version, macros, self.source_root, self.datafiles = bundle.read(self.bundled)
        elif options.sources:
            self.source_root, self.datafiles = options.sources, os.path.join(os.path.dirname(options.sources), 'share/slepc/datafiles')
            if not os.path.isdir(options.sources):
                sys.exit('conformance: no folder ' + options.sources)
        else:
            self.source_root, self.datafiles = find_sources(environment['PETSC_PREFIX'], environment['PETSC_VERSION'])
        self.conf = commands.Configuration(macros, self.datafiles) if self.bundled else configuration(environment, self.datafiles)
        self.build = os.path.abspath(options.build)
        self.bin = os.path.join(self.bundled or self.build, 'bin')
        self.failed_folder = os.path.join(self.build, 'failed-' + options.mode + (options.name and '-' + options.name))
        self.lock = threading.Lock()
        self.known, self.aside = known_differences(os.path.join(HERE, 'known-differences.txt'))
        self.aij_locks = {}
        self.sequence = 0
        for d in ('bin', 'aij', 'work'):
            os.makedirs(os.path.join(self.build, d), exist_ok=True)
        self.preload = os.path.join(self.build, 'yield.so')
        cc = environment.get('PETSC_CC', 'cc').split()
        if not shutil.which(cc[0]) or subprocess.run(cc + ['-O2', '-shared', '-fPIC', os.path.join(HERE, 'yield.c'), '-o', self.preload], capture_output=True).returncode:
            self.preload = ''  # slower where ranks outnumber cores, that is all

    # the list

    def jobs(self):
        programs = []
        for folder, _, files in os.walk(self.source_root):
            for f in sorted(files):
                if f.endswith('.c') and ('/tests' in folder or '/tutorials' in folder or 'benchmarks' in folder):
                    path = os.path.join(folder, f)
                    build, found, text = testblocks.parse(path)
                    if found:
                        programs.append((path, build, found, text))
        programs.sort()
        taken, left = commands.select(programs, self.conf)
        left = [(c, reason) for c, reason in left]
        taken += self.more()
        seen, jobs = set(), []
        for c, text in taken:
            made, reason = commands.variants(c, text, self.conf, self.o.vec_type)
            if reason:
                left.append((c, reason))
            for what, make, data_replaced in made:
                key = (c.source, c.nsize, tuple(make('X', True)))
                if key not in seen:
                    seen.add(key)
                    jobs.append(Job(c, what, make, data_replaced, self.source_root))
        return jobs, left

    def more(self):
        """The commands of more.txt for programs that are here; plain aij is their judge."""
        with open(os.path.join(HERE, 'more.txt')) as f:
            lines = [line.split(None, 2) for line in f if line.strip() and not line.startswith('#')]
        out = []
        for k, (program, nsize, args) in enumerate(lines, 1):
            path = os.path.join(self.source_root, program + '.c')
            if os.path.exists(path):
                with open(path, errors='replace') as f:
                    out.append((testblocks.Command(path, 'more_%d' % k, {}, args.strip(), int(nsize), 'output/none'), f.read()))
        return out

    # programs

    def executable(self, program):
        return os.path.join(self.bin, program)

    def compile(self, program):
        """None, or why the program cannot be had."""
        source, exe = os.path.join(self.source_root, program + '.c'), self.executable(program)
        failed = exe + '.failed'
        if self.bundled:
            return None if os.path.exists(exe) else open(failed).read() if os.path.exists(failed) else 'is not in the bundle'
        for made in (exe, failed):
            if os.path.exists(made) and os.path.getmtime(made) >= os.path.getmtime(source):
                return open(failed).read() if made == failed else None
        os.makedirs(os.path.dirname(exe), exist_ok=True)
        headers = ['-I' + d for d in ('/usr/include/hypre',) if os.path.isdir(d)]
        line = self.e['PETSC_CC'].split() + ['-O1', '-w', '-std=gnu99'] + shlex.split(self.e['PETSC_CFLAGS']) + headers + [source, '-o', exe + '.new'] + shlex.split(self.e['PETSC_LIBS']) + ['-lm']
        for more in ([], ['-llapack', '-lblas'], ['-lopenblas']):
            try:
                run = subprocess.run(line + more, capture_output=True, text=True, timeout=240)
            except subprocess.TimeoutExpired:
                return 'does not compile within 240 s'
            if 'undefined reference' not in run.stderr:
                break
        if run.returncode:
            errors = [l for l in run.stderr.splitlines() if 'error' in l or 'undefined' in l]
            reason = 'does not compile: ' + (errors[0] if errors else 'unknown')[-160:]
            with open(failed, 'w') as f:
                f.write(reason)
            return reason
        os.replace(exe + '.new', exe)
        return None

    # one run

    def execute(self, job, tokens, petsc_options):
        """(exit status, output, timed out), in a folder of its own."""
        with self.lock:
            self.sequence += 1
            work = os.path.join(self.build, 'work', '%d-%d' % (os.getpid(), self.sequence))
        os.makedirs(work)
        for name in job.command.keys.get('localrunfiles', '').split():
            source = os.path.join(os.path.dirname(job.command.source), name)
            if os.path.isdir(source):
                shutil.copytree(source, os.path.join(work, name))
            elif os.path.exists(source):
                os.makedirs(os.path.dirname(os.path.join(work, name)), exist_ok=True)
                shutil.copy(source, os.path.join(work, name))
        environment = dict(os.environ, **ENVIRONMENT)
        environment['PETSC_OPTIONS'] = petsc_options + ' -options_left no -nox -check_pointer_intensity 0'
        for setting in shlex.split(job.command.keys.get('env', '')):
            if '=' in setting:
                name, value = setting.split('=', 1)
                environment[name] = environment['PETSC_OPTIONS'] + ' ' + value.replace('$PETSC_OPTIONS', '') if name == 'PETSC_OPTIONS' else value
        line = [self.executable(job.program)] + tokens
        if job.command.nsize > 1:
            line = self.e.get('MPIEXEC', 'mpiexec').split() + ['-n', str(job.command.nsize)] + line
            if self.preload and 'LD_PRELOAD' not in environment:
                environment['LD_PRELOAD'] = self.preload
        # isolated single ranks share names in the session folder: each needs its own
        temporary = tempfile.mkdtemp(prefix='conf')
        environment['TMPDIR'] = environment['OMPI_MCA_orte_tmpdir_base'] = temporary
        if job.command.nsize == 1:
            environment['OMPI_MCA_btl'] = 'self'
        factor = float(job.command.keys.get('timeoutfactor', '1') or 1)
        merged = job.command.keys.get('filter', '').startswith('Error:')
        with open(os.path.join(work, 'out'), 'wb') as out, open(os.path.join(work, 'err'), 'wb') as err:
            p = subprocess.Popen(line, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out if merged else err, start_new_session=True)
            timed_out = False
            try:
                status = p.wait(self.o.timeout * max(1., min(factor, 3.)))
            except subprocess.TimeoutExpired:
                timed_out = True
                os.killpg(p.pid, signal.SIGKILL)
                status = p.wait()
        with open(os.path.join(work, 'out'), errors='replace') as f:
            text = f.read(4000000)
        with open(os.path.join(work, 'err'), errors='replace') as f:
            error = f.read(200000)
        if merged:
            status = 0
        text = self.filtered(text, job.command.keys.get('filter', ''), work)
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(temporary, ignore_errors=True)
        return status, text, error, timed_out

    def filtered(self, text, rule, cwd):
        if rule.startswith('Error:'):
            rule = rule[len('Error:'):]
        if not rule.strip():
            return text
        run = subprocess.run(['bash', '-c', 'cat | ' + rule], input=text, capture_output=True, text=True, errors='replace', cwd=cwd, timeout=60)
        return run.stdout

    def aij_file(self, job):
        exe = self.executable(job.program)
        key = hashlib.sha1(json.dumps([job.program, job.command.nsize, job.line('aij'), os.path.getmtime(exe), self.o.options, 1]).encode()).hexdigest()
        return key, os.path.join(self.build, 'aij', key + '.json')

    def aij_hangs(self, job):
        """Whether plain aij is known not to end in time: there is nothing to compare with then."""
        path = self.aij_file(job)[1]
        if not os.path.exists(path):
            return False
        with open(path) as f:
            return json.load(f)['timed_out']

    def aij(self, job):
        """What plain aij does with this command, without the plugin."""
        tokens = job.line('aij')
        key, path = self.aij_file(job)
        with self.lock:
            own = self.aij_locks.setdefault(key, threading.Lock())
        with own:
            if os.path.exists(path):
                with open(path) as f:
                    return json.load(f)
            status, text, error, timed_out = self.execute(job, tokens, self.o.options)
            result = {'status': status, 'text': text, 'error': error[-3000:], 'timed_out': timed_out}
            with open(path + '.new', 'w') as f:
                json.dump(result, f)
            os.replace(path + '.new', path)
            return result

    def run(self, job):
        """A dict: outcome passed/failed/skipped, why, and what the counters say."""
        result, listed = self.judged(job), job.label(self.o.type if self.o.mode == 'mat_type' else 'aij')
        bare = job.as_bare()
        if result['outcome'] == 'skipped' and bare.line('aij') != job.line('aij') and (self.o.mode == 'seqaij_type' or bare.line('X') != bare.line('Y')):
            second = self.judged(bare)
            if second['outcome'] != 'skipped':
                result = second
        result['text'], result['command_listed'] = None, listed
        return result

    def concerns(self, mode):
        """Whether a known difference of this mode may show here."""
        return mode in ('*', self.o.mode) or (mode == 'device' and 'backend cuda' in self.o.plugin_options)

    def judged(self, job):
        result = self.run_line(job)
        if result['outcome'] == 'failed':
            for mode, program, pattern, reason in self.known:
                if self.concerns(mode) and fnmatch.fnmatch(result['program'], program) and pattern.search(result['command']):
                    result['outcome'], result['why'] = 'skipped', 'known difference: %s [%s]' % (reason, result['why'])
                    if result['text'] is not None and self.o.mode == 'mat_type':
                        # a program that looks for the exact type does the same with the parent's own simplest
                        # descendant
                        status, text, error, timed_out = self.execute(job, job.line('aijperm'), self.o.options)
                        if not status and not timed_out and difference(text, result['text']) is None:
                            result['outcome'], result['judge'] = 'passed', 'aijperm'
                    break
        if result['outcome'] == 'failed' and self.o.alike and self.o.mode == 'mat_type':
            status, text, error, timed_out = self.execute(job, job.line(self.o.alike), self.o.options)
            if status and not timed_out and result['status'] and first_error(text, error) == result['error']:
                result['outcome'], result['why'] = 'skipped', '%s fails alike [%s]' % (self.o.alike, result['why'])
            elif not status and not timed_out and result['text'] is not None and difference(text, result['text']) is None:
                result['outcome'], result['judge'] = 'passed', self.o.alike
        return result

    def run_line(self, job):
        root = self.o.type if self.o.mode == 'mat_type' else 'aij'
        tokens = job.line(root)
        with self.lock:
            self.sequence += 1
            counts_file = os.path.join(self.build, 'work', 'counts-%d-%d' % (os.getpid(), self.sequence))
        ours = self.o.options
        if self.o.plugin:
            ours += ' -dll_append %s -mat_aijhybridgpu_view_counts %s %s' % (self.o.plugin, counts_file, self.o.plugin_options)
        if self.o.mode == 'seqaij_type':
            ours += ' -mat_seqaij_type seq' + self.o.type
        result = {'program': job.program, 'suffix': job.command.suffix, 'command': job.label(root), 'options': ours, 'what': job.what, 'why': '', 'judge': 'stored output'}
        if self.aij_hangs(job):
            result.update(outcome='skipped', seconds=0, text=None, status=0, error='', counts=None, judge='plain aij', why='plain aij fails too: takes more than %d s' % self.o.timeout)
            return result
        start = time.time()
        status, text, error, timed_out = self.execute(job, tokens, ours)
        result['seconds'] = round(time.time() - start, 2)
        result['text'] = None if status or timed_out else text
        result['status'], result['error'] = status, first_error(text, error)
        aside = [pattern for mode, program, pattern, _ in self.aside if self.concerns(mode) and fnmatch.fnmatch(job.program, program)]
        result['counts'] = counts = read_counts(counts_file)
        stored = [] if job.data_replaced else testblocks.stored_outputs(job.command)
        broken = 'takes more than %d s' % self.o.timeout if timed_out else 'exit status %d: %s' % (status, first_error(text, error)) if status else None
        why = 'no stored output'
        if not broken:
            for name in stored:
                with open(name, errors='replace') as f:
                    expected = self.filtered(f.read(), job.command.keys.get('filter_output', ''), self.build)
                d = difference(expected, text, aside)
                if d is None:
                    why = None
                    break
                why = d if why == 'no stored output' else why
        result['outcome'] = 'passed'
        if broken or why:
            plain = self.aij(job)
            result['judge'] = 'plain aij'
            if plain['timed_out'] or plain['status']:
                result['outcome'] = 'skipped'
                result['why'] = 'plain aij fails too: ' + ('takes more than %d s' % self.o.timeout if plain['timed_out'] else first_error(plain['text'], plain['error']))
                if not broken:
                    result['why'] += ' (ours ran to its end)'
            elif broken:
                result['outcome'], result['why'] = 'failed', broken
            else:
                d = difference(plain['text'], text, aside)
                if d is not None:
                    result['outcome'], result['why'] = 'failed', 'differs from plain aij: ' + d
            if result['outcome'] == 'failed':
                self.keep(result, text, error, plain)
        if result['outcome'] == 'passed' and counts and counts['unasked']:
            result['outcome'], result['why'] = 'failed', 'a product fell back to the parent unasked (%d times)' % counts['unasked']
        return result

    def keep(self, result, text, error, plain):
        name = '%s-%s-%s' % (result['program'].replace('/', '_'), result['suffix'], hashlib.sha1(result['command'].encode()).hexdigest()[:6])
        folder = self.failed_folder
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), 'w') as f:
            f.write('PETSC_OPTIONS="%s"\n%s %s\n%s\n\n--- ours\n%s\n--- ours, stderr\n%s\n--- plain aij\n%s\n' %
                    (result['options'], self.executable(result['program']), result['command'], result['why'], text[:50000], error[:20000], plain['text'][:50000]))


def first_error(text, error):
    for line in (error + '\n' + text).splitlines():
        m = re.search(r'PETSC ERROR: (.*)', line)
        if m and not m.group(1).startswith(('-----', '#', 'See http', '/', 'PETSc Option Table', 'WARNING! There are', 'Petsc Release', 'Option left')) and 'Error Message' not in line:
            return m.group(1).strip()[:160]
    tail = [l for l in (error or text).splitlines() if l.strip() and not l.startswith('---')]
    return tail[-1].strip()[:160] if tail else 'no message'


COUNTS = ('mult', 'assemblyend', 'products', 'fallback', 'fallbackasked', 'device', 'gamg', 'gamgleft', 'gamglevels', 'gamglevelsleft', 'cycles', 'cyclesleft')


def read_counts(path):
    """Sums over the processes of what the plugin wrote at finalize, or None."""
    if not os.path.exists(path):
        return None
    total = dict.fromkeys(COUNTS, 0)
    methods = set()
    with open(path) as f:
        for line in f:
            for key, value in re.findall(r'(\w+)=(\S*)', line):
                if key in total:
                    total[key] += int(value)
                elif key == 'methods':
                    methods |= {m for m in value.split(':') if m}
    os.remove(path)
    total['methods'] = sorted(methods)
    total['unasked'] = max(0, total['fallback'] - total['fallbackasked'])
    return total


def known_differences(path):
    """Two lists of (mode, device or *, program glob, regex, reason): the regex is about the command, and, where the
    mode says "lines", about lines to leave aside."""
    known, aside = [], []
    with open(path) as f:
        for line in f:
            if line.strip() and not line.startswith('#'):
                mode, program, pattern, reason = [x.strip() for x in line.split('|', 3)]
                (aside if mode.startswith('lines ') else known).append((mode.replace('lines ', ''), program, re.compile(pattern), reason))
    return known, aside


def fast_subset(jobs, path):
    """At most so many commands of each program as the file says, spread evenly over them."""
    chosen = []
    with open(path) as f:
        for line in f:
            line = line.split('#')[0].split()
            if len(line) < 2:
                continue
            pattern, count = line[0], int(line[1])
            of_program = [j for j in jobs if j.program == pattern and (len(line) < 3 or re.search(line[2], j.label('X')))]
            step = max(1., len(of_program) / count)
            chosen += [of_program[int(i * step)] for i in range(min(count, len(of_program)))]
    return chosen


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--mode', default='mat_type,seqaij_type')
    p.add_argument('--type', default='aijhybridgpu', help='root name of the type')
    p.add_argument('--plugin', default='', help='absolute path of the plugin; none for a type that PETSc has')
    p.add_argument('--build', required=True, help='folder for programs, plain results and reports')
    p.add_argument('--fast', action='store_true', help='the subset in fast.txt')
    p.add_argument('--search', default='', help='only commands whose program and line match')
    p.add_argument('--failed', action='store_true', help='only what failed last time in this mode')
    p.add_argument('--resume', action='store_true', help='go on with a run of the same plugin that was ended before its end')
    p.add_argument('--list', action='store_true', help='print the commands and stop')
    p.add_argument('--jobs', type=int, default=2)
    p.add_argument('--timeout', type=float, default=120)
    p.add_argument('--vec-type', default='standard', help='what stands for cuda and kokkos vectors (cuda on a machine with a device)')
    p.add_argument('--bundle', default='', help='write the list, its programs and its data to this folder and stop')
    p.add_argument('--from', dest='bundled', default='', help='run the list from such a folder')
    p.add_argument('--seconds', type=float, default=0, help='start no command after so many seconds for each mode; the list is shuffled, so that those which ran represent it')
    p.add_argument('--alike', default='', help='a type of PETSc\'s with device vectors: what differs from plain aij passes if it prints the same, and is left out if it fails with the same error')
    p.add_argument('--seed', type=int, default=1, help='draws other ones')
    p.add_argument('--part', default='', help='K/N: the K-th of N parts that the shuffled list is dealt to, for runs that must be short; 1+2/3: two of three; MODE:K/N: in this mode alone')
    p.add_argument('--name', default='', help='tells the files of these runs from others in the same folder; with --search, which keeps none otherwise, for --resume')
    p.add_argument('--sources', default='', help='another src folder with TEST blocks (SLEPc\'s) than that of the PETSc in use')
    p.add_argument('--options', default='', help='more PETSc options for every run')
    p.add_argument('--plugin-options', default='', help='more PETSc options for the runs with the plugin alone (-mat_aijhybridgpu_backend cuda)')
    o = p.parse_args()
    missing = [] if o.bundled else [v for v in ('PETSC_PREFIX', 'PETSC_VERSION', 'PETSC_CC', 'PETSC_CFLAGS', 'PETSC_LIBS') if not os.environ.get(v)]
    if missing:
        sys.exit('conformance: %s not set; run it by `make conformance`' % ', '.join(missing))
    if o.plugin and not os.path.isabs(o.plugin):
        o.plugin = os.path.abspath(o.plugin)
    if o.plugin and not os.path.exists(o.plugin):
        sys.exit('conformance: no plugin at ' + o.plugin)
    modes = o.mode.split(',')
    if set(modes) - {'mat_type', 'seqaij_type'}:
        sys.exit('conformance: --mode is mat_type, seqaij_type or both, with a comma')
    total = [0, 0, 0]
    for o.mode in modes:
        for i, n in enumerate(run_mode(o)):
            total[i] += n
    if o.list or o.bundle:
        return 0
    say('%d passed, %d failed, %d skipped' % tuple(total))
    return 1 if total[1] or not total[0] else 0


def chosen(o, jobs, root, results_file):
    """those of the jobs that the options ask for"""
    if o.failed and os.path.exists(results_file):
        with open(results_file) as f:
            again = {tuple(l.split('\t')[1:3]) for l in f if l.startswith('failed')}
        jobs = [j for j in jobs if (j.program, j.label(root)) in again]
    if o.search:
        jobs = [j for j in jobs if re.search(o.search, j.program + ' ' + j.label(root))]
    if o.seconds or o.part:
        random.Random(o.seed).shuffle(jobs)
    mode, _, part = o.part.rpartition(':')
    if part and mode in ('', o.mode):
        which, n = part.split('/')
        jobs = [j for i, j in enumerate(jobs) if str(i % int(n) + 1) in which.split('+')]
    return jobs


def compiled(o, r, jobs, shown):
    """the jobs' programs, and why some of them cannot be had"""
    cannot = {}
    programs = sorted({j.program for j in jobs})
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for i, (program, reason) in enumerate(zip(programs, pool.map(r.compile, programs))):
            if reason:
                cannot[program] = reason
            if time.time() - shown[0] > 15:
                shown[0] = time.time()
                say('  compiled %d of %d' % (i + 1, len(programs)))
    return programs, cannot


def write_results(o, r, results, left, results_file, partial):
    with open(results_file + ('.part' if partial else ''), 'w') as f:
        for x in results:
            c = x['counts']
            tally = ' '.join(['%s=%d' % (k, c[k]) for k in COUNTS] + ['methods=' + ':'.join(c['methods'])]) if c else ''
            f.write('\t'.join([x['outcome'], x['program'], x['command'], x['judge'], tally, str(x['seconds']), x['why'].replace('\t', ' ').replace('\n', ' ')]) + '\n')
    if not partial:
        leftout = os.path.join(r.build, 'leftout-%s%s%s.txt' % (o.mode, o.name and '-' + o.name, '-fast' if o.fast else ''))
        with open(leftout, 'w') as f:
            f.write('# Commands of PETSc %s\'s examples left out, mode %s: program, suffix, ranks, arguments: reason\n' % (r.version, o.mode))
            for c, reason in left:
                f.write('%s %s n=%d %s: %s\n' % (os.path.splitext(os.path.relpath(c.source, r.source_root))[0], c.suffix, c.nsize, c.args, reason))
            for x in [y for y in results if y['outcome'] == 'skipped']:
                f.write('%s %s %s: %s\n' % (x['program'], x['suffix'], x['command'], x['why']))
        say('  left out, with reasons: ' + os.path.relpath(leftout))


def tell(o, r, results, seconds):
    """what came out, in a few lines"""
    passed = [x for x in results if x['outcome'] == 'passed']
    failed = [x for x in results if x['outcome'] == 'failed']
    counted = [x for x in results if x['counts']]
    exercised = [x for x in passed if x['counts'] and (x['counts']['mult'] or x['counts']['assemblyend'] or x['counts']['products'])]
    product = [x for x in results if x['counts'] and (x['counts']['products'] or x['counts']['fallback']) and x['outcome'] != 'skipped']
    own = [x for x in product if x['counts']['products'] and not x['counts']['unasked']]
    asked = [x for x in product if not x['counts']['products'] and not x['counts']['unasked']]
    fell = [x for x in product if x['counts']['unasked']]
    say('  %d passed, of %d run in %d s (%d by plain aij\'s output)' % (len(passed), len(results), seconds, sum(x['judge'] == 'plain aij' for x in passed)))
    if o.plugin:
        say('  %d exercised: a counter of ours moved and the command passed' % len(exercised))
        say('  %d product commands: %d computed by a method of ours, %d handed to the parent as asked, %d fell back unasked' % (len(product), len(own), len(asked), len(fell)))
        device = [x for x in passed if x['counts'] and x['counts']['device']]
        if device:
            say('  %d passed with operations on the device' % len(device))
        gamg = [x['counts'] for x in counted if x['counts']['gamg'] or x['counts']['gamgleft']]
        if gamg:
            say('  %d commands set up GAMG: %d times by the plugin (%d levels), %d times by PETSc' % (len(gamg), sum(c['gamg'] for c in gamg), sum(c['gamglevels'] for c in gamg), sum(c['gamgleft'] for c in gamg)))
        say('  methods seen: ' + (' '.join(sorted({m for x in counted for m in x['counts']['methods']})) or 'none'))
        if not counted and results:
            say('  no counts were written: the plugin does not answer -mat_aijhybridgpu_view_counts')
    if failed:
        say('  %d failed: their outputs are in %s' % (len(failed), os.path.relpath(r.failed_folder)))


def run_mode(o):
    """Runs the list in one mode and returns how many commands passed, failed, were skipped."""
    r = Runner(o, os.environ)
    jobs, left = r.jobs()
    if o.fast:
        jobs = fast_subset(jobs, os.path.join(HERE, 'fast.txt'))
    root = o.type if o.mode == 'mat_type' else 'aij'
    results_file = os.path.join(r.build, 'results-%s%s%s.tsv' % (o.mode, o.name and '-' + o.name, '-fast' if o.fast else ''))
    jobs = chosen(o, jobs, root, results_file)
    if o.list:
        for j in jobs:
            say(j.program, j.label(root))
        return 0, 0, 0
    partial = bool(o.search and not o.name or o.failed)  # a part that has a name has files of its own
    say('conformance: PETSc %s, %s, %s: %d commands of %d programs' % (r.version, o.mode, o.type, len(jobs), len({j.program for j in jobs})))

    results, start, shown = [], time.time(), [time.time()]
    programs, cannot = compiled(o, r, jobs, shown)
    for j in jobs:
        if j.program in cannot:
            left.append((j.command, cannot[j.program]))
    if o.bundle:
        bundle.write(o.bundle, r.version, r.conf.macros, r.datafiles, r.source_root, jobs, r.executable)
        say('  %s: %d programs, %d more do not compile' % (o.bundle, len(programs) - len(cannot), len(cannot)))
        return 0, 0, 0
    jobs = [j for j in jobs if j.program not in cannot]
    if not partial:
        shutil.rmtree(r.failed_folder, ignore_errors=True)

    # what is done is written down as it comes, for --resume
    progress = os.path.join(r.build, 'progress-%s%s%s.jsonl' % (o.mode, o.name and '-' + o.name, '-fast' if o.fast else ''))
    identity = [o.type, o.plugin, os.path.getmtime(o.plugin) if o.plugin else 0, o.options, o.plugin_options]
    if o.resume and os.path.exists(progress):
        with open(progress) as f:
            earlier = [json.loads(line) for line in f if line.endswith('\n')]
        if earlier and earlier[0] == identity:
            results = earlier[1:]
        done = {(x['program'], x['command_listed']) for x in results}
        jobs = [j for j in jobs if (j.program, j.label(root)) not in done]
        say('  %d done before' % len(results))
    written = None if partial else open(progress, 'w')
    if written:
        for x in [identity] + results:
            written.write(json.dumps(x) + '\n')

    begin = time.time()

    def run_in_time(job):
        return None if o.seconds and time.time() - begin > o.seconds else r.run(job)

    unreached = 0
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        futures = [pool.submit(run_in_time, j) for j in jobs]
        for i, f in enumerate(concurrent.futures.as_completed(futures)):
            result = f.result()
            if not result:
                unreached += 1
                continue
            if result['outcome'] == 'failed':
                say('FAILED  %s  %s\n        %s' % (result['program'], result['command'], result['why']))
            results.append(result)
            if written:
                written.write(json.dumps(result) + '\n')
                written.flush()
            if time.time() - shown[0] > 15:
                shown[0] = time.time()
                say('  %d of %d, %d s' % (i + 1, len(futures), time.time() - start))
    if written:
        written.close()

    results.sort(key=lambda x: (x['program'], x['command']))
    passed = [x for x in results if x['outcome'] == 'passed']
    failed = [x for x in results if x['outcome'] == 'failed']
    skipped = [x for x in results if x['outcome'] == 'skipped']
    write_results(o, r, results, left, results_file, partial)
    if unreached:
        say('  %d commands were not reached within %d s' % (unreached, o.seconds))
    tell(o, r, results, time.time() - start)
    return len(passed), len(failed), len(skipped)


if __name__ == '__main__':
    sys.exit(main())

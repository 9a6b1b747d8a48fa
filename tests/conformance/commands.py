"""Which of PETSc's commands concern an AIJ matrix type, and what becomes of them with another type in its place.

select() sorts every command of every program into those to run and those left out, each of the latter with a reason. A
command is taken if
  * it names a type derived from AIJ on its command line, or another command of the same program does;
  * its program calls a matrix product, MatConvert, MatTranspose or COO assembly;
  * it (or its program) uses GAMG or PCMG;
  * its program, one of mat/ or ksp/ or of SLEPc's, lets options choose the type of its matrices.
variants() then makes of it the command lines: the type in place of the one named; where a program reads options of its
own (-A_mat_type, -pack_dm_mat_type) or forces no type at all, with these added. What a command line asks of a device is
asked of the host.
"""
import os
import re
import shlex

DERIVED = re.compile(r'^(seq|mpi)?aij(cusparse|kokkos|viennacl|perm|sell|mkl|hipsparse|crl)$')
FAMILY = re.compile(r'^(seq|mpi)?aij(cusparse|kokkos|viennacl|perm|sell|mkl|hipsparse|crl)?$')
USES = re.compile(r'\b(MatProduct[A-Z]\w*|MatMatMult|MatTransposeMatMult|MatMatTransposeMult|MatPtAP|MatRARt|MatMatMatMult|MatConvert|'
                  r'MatTranspose|MatCreateTranspose|MatCreateHermitianTranspose|MatSetPreallocationCOO(?:Local)?|MatSetValuesCOO)\s*\(')
MULTIGRID = re.compile(r'\b(PCGAMG|PCMG|PCHMG)\b|"(gamg|mg|hmg)"')
MULTIGRID_ARGS = re.compile(r'pc_type (gamg|mg|hmg)\b')
CHOOSES = re.compile(r'\b(MatSetFromOptions|DMCreateMatrix|DMSetMatType)\s*\(')
DEVICES = re.compile(r'cuda|cusparse|kokkos|viennacl|(?<!s)hip(?!er)|mkl|sycl', re.I)
DEVICE_REQUIREMENTS = {'cuda', 'kokkos', 'kokkos_kernels', 'viennacl', 'hip', 'mkl_sparse', 'mkl_sparse_optimize', 'mkl', 'sycl', 'device',
                       'hipsparse', 'defined(petsc_have_cuda)', 'defined(petsc_have_device)'}
OTHER_TYPES = re.compile(r'^(seq|mpi)?(baij|sbaij|dense|densecuda|maij|sell|shell|nest|elemental|scalapack|mffd|blockmat|composite|hypre|htool|h2opus|'
                         r'preallocator|diagonal|constantdiagonal|adj|lrc|transpose|bdiag|lmvm\w*|dummy|sellcuda|baijmkl|kaij|submatrix)$')
LOCAL_TYPE = ('mat_is_localmat_type', 'matis_localmat_type')  # the second one before 3.19
MAX_RANKS = 4


class Configuration:
    """What the PETSc in use was configured with: the macros of its petscconf.h and petscversion.h."""

    def __init__(self, macros, datafiles):
        self.macros = macros
        self.datafiles = datafiles
        self.complex = 'PETSC_USE_COMPLEX' in macros
        self.int64 = 'PETSC_USE_64BIT_INDICES' in macros
        self.single = 'PETSC_USE_REAL_SINGLE' in macros

    def misses(self, requirement, device_replaced):
        """Why the requirement is not met, or None."""
        r, negated = (requirement[1:], True) if requirement.startswith('!') else (requirement, False)
        low = r.lower()
        if low in DEVICE_REQUIREMENTS and device_replaced:
            return None
        if low == 'datafilespath':
            return None
        if low in ('double', 'single', '__float128', '__fp16'):
            have = low == ('single' if self.single else 'double')
        elif low in ('int32', 'int64', 'long32', 'long64', '64bitptr'):
            have = {'int32': True, 'int64': False, 'long32': False, 'long64': True, '64bitptr': True}[low]
        elif low.startswith('defined('):
            have = r[8:].rstrip(')') in self.macros
        elif re.search(r'_version_(eq|lt|le|gt|ge)\(', low):
            have = False
        elif low in ('complex', 'debug'):
            have = 'PETSC_USE_' + low.upper() in self.macros
        else:
            have = 'PETSC_HAVE_' + low.upper() in self.macros
        return None if have != negated else 'requires ' + requirement


def own_options(text):
    """The options, other than PETSc's own names, by which a program lets the type of a matrix be chosen."""
    names = set(re.findall(r'"-(\w*mat_type)"', text))
    if 'MatSetFromOptions' in text or 'MatLoad' in text:
        names |= {p + 'mat_type' for p in re.findall(r'Mat(?:Set|Append)OptionsPrefix\(\w+,\s*"(\w+)"', text)}
    names |= {p + 'dm_mat_type' for p in re.findall(r'DMSetOptionsPrefix\([^,]+,\s*"(\w+)"', text)}
    if 'MATIS' in text or 'MatCreateIS' in text:
        names |= set(LOCAL_TYPE)
    return sorted(names - {'mat_type', 'dm_mat_type'})


def host_tokens(tokens, vec_type):
    """The command line with what it asks of a device asked of the host; the second value names what could not be
    replaced."""
    out, i = [], 0
    while i < len(tokens):
        t = tokens[i]
        value = tokens[i + 1] if i + 1 < len(tokens) and not re.match(r'^-[A-Za-z]', tokens[i + 1]) else None
        name = t.lstrip('-')
        if re.match(r'^-\w*(use_gpu|xgpu|bgpu)\w*$', t) and vec_type == 'standard':
            out += [t, '0']
        elif re.match(r'^-\w*mat_seqaij_type$', t) or re.match(r'^-\w*(sf_backend|mat_solver_type|mat_use_gpu\w*|device_enable|default_device_type)$', t) and value and DEVICES.search(value):
            pass
        elif t.startswith('-') and DEVICES.search(name):
            pass
        elif value is not None and re.search(r'vec_type$', t):
            out += [t, re.sub(r'^(seq|mpi)?(cuda|kokkos|viennacl|hip)$', lambda m: vec_type if vec_type != 'standard' or not m.group(1) else m.group(1), value)]
        elif value is not None:
            out += [t, re.sub(r'\b((?:seq|mpi)?dense)(cuda|hip)\b', r'\1' if vec_type == 'standard' else r'\1cuda', value)]
        else:
            out.append(t)
        i += 2 if value is not None else 1
    rest = [t for t in out if DEVICES.search(t) and not DERIVED.match(t.split(',')[0]) and not (vec_type != 'standard' and 'cuda' in t)]
    rest = [t for t in rest if not all(FAMILY.match(x) for x in t.split(','))]
    return out, rest


def retype(tokens, root):
    """Every AIJ type named becomes root's: seqaijcusparse -> seq<root>. Where a derived type is named, plain aij stays
    plain aij."""
    derived = any(DERIVED.match(x) for t in tokens for x in t.split(','))
    pattern = DERIVED if derived else FAMILY
    out = []
    for t in tokens:
        parts = t.split(',')
        out.append(','.join((pattern.match(x).group(1) or '') + root if pattern.match(x) else x for x in parts))
    return out


def select(programs, configuration):
    """[(command, text)] to run and [(command, reason)] left out. programs: [(path, build, commands, text)]."""
    taken, left = [], []
    for path, build, commands, text in programs:
        names_type = any(DERIVED.match(x) for c in commands for t in c.args.split() for x in t.split(','))
        uses = USES.search(text)
        mg_source = MULTIGRID.search(text)
        chooses = CHOOSES.search(text) and re.search(r'/src/(mat|ksp|eps|svd|pep|nep|mfn|lme|sys/classes)/', path)
        for c in commands:
            if not (names_type or uses or mg_source or chooses or MULTIGRID_ARGS.search(c.args)):
                left.append((c, 'names no type derived from AIJ and uses no product, conversion, transpose, COO assembly or multigrid'))
            elif 'TODO' in c.keys or 'TODO' in build:
                left.append((c, 'marked TODO by PETSc: ' + (c.keys.get('TODO') or build.get('TODO', ''))))
            elif 'SKIP' in c.keys:
                left.append((c, 'marked SKIP by PETSc: ' + c.keys['SKIP']))
            elif 'command' in c.keys:
                left.append((c, 'runs a command of its own'))
            elif c.nsize > MAX_RANKS:
                left.append((c, 'needs %d ranks' % c.nsize))
            elif build.get('depends'):
                left.append((c, 'is built of several sources'))
            else:
                taken.append((c, text))
    return taken, left


def _expand(args, configuration):
    """Shell variables in args; DATAFILESPATH's matrices are replaced by a small matrix that PETSc ships, which changes
    the expected output."""
    shipped = os.path.join(configuration.datafiles, 'matrices')
    replaced = False
    args = args.replace('${wPETSC_DIR}/share/petsc/datafiles', configuration.datafiles).replace('${PETSC_DIR}/share/petsc/datafiles', configuration.datafiles)
    args = re.sub(r'@(PETSC_(?:INDEX|SCALAR)_SIZE)@', r'${\1}', args)
    args = args.replace('${PETSC_INDEX_SIZE}', '64' if configuration.int64 else '32').replace('${PETSC_SCALAR_SIZE}', '32' if configuration.single else '64')
    if 'DATAFILESPATH' in args:
        small = os.path.join(shipped, 'spd-real-int%d-float%d' % (64 if configuration.int64 else 32, 32 if configuration.single else 64))
        if configuration.complex:
            small = os.path.join(shipped, 'hpd-complex-int%d-float%d' % (64 if configuration.int64 else 32, 32 if configuration.single else 64))
        args, n = re.subn(r'(?<=\s)\$\{DATAFILESPATH\}/matrices/[^\s]+(?<!\.mtx)(?<!\.mat)(?<!\.h5)(?=\s|$)', small, ' ' + args)
        args = args.strip()
        replaced = n > 0
    return args, replaced


def variants(command, text, configuration, vec_type='standard'):
    """([(what, make, substituted data)], reason). make(root, appended) gives the arguments for a type's root name, with
    or without the options which the test itself does not have. reason: why there is none."""
    args, data_replaced = _expand(command.args, configuration)
    if '$' in args:
        return [], 'needs a data file that is not here: ' + ' '.join(t for t in args.split() if '$' in t)
    try:
        tokens = shlex.split(args)
    except ValueError:
        return [], 'its arguments cannot be split'
    for t in tokens:
        if os.path.isabs(t) and '/datafiles/' in t and not os.path.exists(t):
            return [], 'needs a data file that is not here: ' + os.path.basename(t)
    seqaij_named = any(re.match(r'^-\w*mat_seqaij_type$', t) for t in tokens)
    tokens, rest = host_tokens(tokens, vec_type)
    if rest:
        return [], 'asks for a device: ' + ' '.join(rest)
    device_replaced = True
    for r in command.requires:
        why = configuration.misses(r, device_replaced)
        if why:
            return [], why
    options = {t.lstrip('-'): (tokens[i + 1] if i + 1 < len(tokens) else '') for i, t in enumerate(tokens) if re.match(r'^-[A-Za-z]', t)}
    types = {o: v for o, v in options.items() if o.endswith('mat_type')}
    family_named = any(FAMILY.match(x) for t in tokens for x in t.split(','))
    other = [v for v in types.values() if OTHER_TYPES.match(v)]
    if other and not family_named:
        return [], 'asks for matrix type ' + ', '.join(sorted(set(other)))

    def add(appended, own):
        def make(root, with_appended):
            line = retype(tokens, root)
            for name in (appended if with_appended else []) + own:
                line += ['-' + name, root]
            return line
        return make

    names = [n for n in ('mat_type', 'dm_mat_type') if n not in options]
    if types.get('mat_type') == 'is' or types.get('dm_mat_type') == 'is':
        names = [n for n in LOCAL_TYPE if n not in options]
    result = [('', add(names, []), data_replaced)]
    own = [n for n in own_options(text) if n not in options and n not in names]
    if own:
        result.append(('own options', add(names, own), data_replaced))
    return result, None

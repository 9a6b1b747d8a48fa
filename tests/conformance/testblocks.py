"""Reads the TEST blocks which PETSc's examples carry in a comment at their end.

The language is one of indented `key: value` lines. At the outermost level stand `build:`, `test:` and `testset:`; a
testset holds keys that its inner `test:` entries inherit. args, requires, env and diff_args are joined with the
inherited ones, every other key replaces them. A value may run on over several lines. `{{a b}shared output}` in args or
nsize is a loop whose turns all print what is stored in one file, `{{a b}separate output}` one with a stored file for
each turn (the option's name and value are part of its name).

parse(path) gives (build, commands): the build entry's keys, and one Command per run that PETSc's own harness would
make.
"""
import itertools
import os
import re

KEYS = set('test testset build nsize requires command suffix diff_args args filter filter_output localrunfiles comments TODO SKIP '
           'output_file timeoutfactor env temporaries depends'.split())
JOINED = ('args', 'requires', 'env', 'diff_args')
LINE = re.compile(r'^(\s*)([A-Za-z_]+)\s*:(?!//)(.*)$')
LOOP = re.compile(r'\{\{(.*?)\}([^}]*)\}', re.S)


class Command:
    """One run of a program: what the block says, with loops unrolled."""

    def __init__(self, source, suffix, keys, args, nsize, stored):
        self.source = source
        self.suffix = suffix
        self.args = args
        self.nsize = nsize
        self.stored = stored
        self.requires = keys.get('requires', '').split()
        self.keys = keys


def _entries(text):
    """The block as a flat list [indent, key, value], continuation lines joined to their value."""
    entries = []
    for line in text.replace('\\\n', ' ').split('\n'):
        line = line.split('#')[0].rstrip()
        if line.startswith('!'):
            line = ' ' + line[1:]
        if not line.strip():
            continue
        m = LINE.match(line)
        quoted = bool(entries) and entries[-1][2].count('"') % 2 == 1
        if m and m.group(2) in KEYS and not quoted:
            entries.append([len(m.group(1)), m.group(2), m.group(3).strip()])
        elif entries:
            entries[-1][2] += ' ' + line.strip()
    return entries


def _tree(entries):
    """[(key, value, children)] at the outermost level; a child is indented deeper than its parent."""
    root = []
    stack = [(-1, root)]
    for indent, key, value in entries:
        while stack[-1][0] >= indent:
            stack.pop()
        node = (key, value, [])
        stack[-1][1].append(node)
        if key in ('test', 'testset', 'build'):
            stack.append((indent, node[2]))
    return root


def _merge(base, children):
    keys = dict(base)
    for key, value, _ in children:
        if key in ('test', 'testset'):
            continue
        if key in JOINED and keys.get(key):
            keys[key] += ' ' + value
        else:
            keys[key] = value
    return keys


def _loops(text):
    """[(option, [values], separate, span)] of the loops in args."""
    found = []
    for m in LOOP.finditer(text):
        before = text[:m.start()].split()
        option = before[-1].lstrip('-') if before and text[:m.start()].rstrip(' ') and before[-1].startswith('-') else ''
        found.append((option, m.group(1).split(), m.group(2).strip().startswith('separate'), m.span()))
    return found


def _unroll(text, which):
    """Every turn of the loops `which` accepts: (text with these loops replaced, suffix made of the separate ones)."""
    loops = [l for l in _loops(text) if which(l)]
    turns = []
    for values in itertools.product(*[l[1] for l in loops]):
        new, suffix = text, ''
        for (option, _, separate, (start, end)), value in reversed(list(zip(loops, values))):
            new = new[:start] + value + new[end:]
        for (option, _, separate, _), value in zip(loops, values):
            if separate:
                suffix += '_' + option + '-' + value.replace(',', '__')
        turns.append((new, suffix))
    return turns


def _expand_separate(keys):
    """The keys once for each turn of their separate loops (nsize's first, as in the stored files' names)."""
    out = []
    nsize = keys.get('nsize', '1')
    for n, nsuffix in _unroll('-nsize ' + nsize, lambda l: l[2]):
        for args, asuffix in _unroll(keys.get('args', ''), lambda l: l[2]):
            k = dict(keys)
            k['nsize'] = n.split(None, 1)[1]
            k['args'] = args
            out.append((k, nsuffix + asuffix))
    return out


def _join_suffix(a, b):
    return a + '_' + b if a and b else a or b


def _commands(source, name, children, build):
    base = _merge({}, children)
    build_requires = build.get('requires', '')
    result = []
    for keys, loop_suffix in _expand_separate(base):
        suffix = keys.get('suffix', '') + loop_suffix if keys.get('suffix') or loop_suffix else ''
        subtests = [c for c in children if c[0] == 'test']
        if not subtests:
            leaves = [(keys, suffix, '')]
        else:
            leaves = []
            for _, _, sub in subtests:
                inherited = {k: v for k, v in keys.items() if k != 'suffix'}
                merged = _merge(inherited, sub)
                for k, sub_loop in _expand_separate(merged):
                    leaves.append((k, _join_suffix(suffix, k.get('suffix', '')) + sub_loop, ''))
        for k, full, _ in leaves:
            program = os.path.splitext(os.path.basename(source))[0]
            full = full.lstrip('_')
            stored = k.get('output_file') or 'output/%s_%s.out' % (program, full or '1')
            k = dict(k)
            k['requires'] = ' '.join([k.get('requires', ''), build_requires])
            for (args, _), (n, _) in itertools.product(_unroll(k.get('args', ''), lambda l: True), _unroll('-nsize ' + k['nsize'], lambda l: True)):
                number = n.split(None, 1)[1].strip() if len(n.split(None, 1)) > 1 else '1'
                result.append(Command(source, full or '1', k, ' '.join(args.split()), int(number) if number.isdigit() else 1, stored))
    return result


def parse(path):
    with open(path, errors='replace') as f:
        text = f.read()
    blocks = re.findall(r'/\*TEST\s*?\n(.*?)TEST\*/', text, re.S)
    if not blocks:
        return {}, [], text
    root = _tree(_entries('\n'.join(blocks)))
    build = {}
    for key, _, children in root:
        if key == 'build':
            build = _merge(build, children)
    commands = []
    for key, _, children in root:
        if key in ('test', 'testset'):
            commands += _commands(path, key, children, build)
    return build, commands, text


def stored_outputs(command):
    """The stored output and its alternatives (ex1_2.out, ex1_2_alt.out, ex1_2_alt_2.out, ...)."""
    root = os.path.join(os.path.dirname(command.source), os.path.splitext(command.stored)[0])
    names = [root + '.out', root + '_alt.out'] + [root + '_alt_%d.out' % i for i in range(2, 10)]
    return [n for n in names if os.path.isfile(n)]

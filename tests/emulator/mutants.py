#!/usr/bin/env python3
"""Do the tests notice a broken kernel?

Draws a seeded sample of mutants of the device code (__global__ and __device__ functions of .cu and .cuh files), from
each room in turn, by these rules in turn:
  barrier      a __syncthreads() or __syncwarp() is taken out
  mask         a mask is lost: a sub-warp's becomes the whole warp's, "lanes below" becomes all
  index        an index is one too large
  comparison   < becomes <=, >= becomes >, == becomes != and back (not where the smaller or larger of two is taken: of
               equal ones either will do)
  step         a "+ 1" or "- 1" is lost (not in what a hash multiplies by a large odd constant: one hash is as good as
               the other)
builds each into the emulator and runs the tests of its own room, first over the plain emulator, then (what survived)
over it with each index into an array of fixed length checked, as in a sanitized build, and over the detector of
races; a mutant of a header goes into the source files that include it, room by room (the first file alone, then the
others of the room at once), each with its room's tests, and one of the device room into a program of its own before.
A mutant is killed when a test fails, crashes, is stopped by the emulator or does not end. What is not noticed within
PATIENCE, or before the whole's end, has survived. Mutants that do not compile, or whose object code is the
original's, do not count, and neither do survivors whose reason in tests/emulator/survivors.txt begins with
"equivalent": nothing that a test could see tells them from the original. All survivors are listed, with the reason
where there is one, and both sums are given.

Called by `make mutants`, which builds the originals first; with --prepare it builds them itself (for a machine that has
a C++ compiler, PETSc's headers and library, but no make), and --tests names the folder of test programs built
elsewhere.
"""
import argparse, concurrent.futures, itertools, os, random, re, resource, shlex, shutil, signal, subprocess, sys, threading, time

# of each room: folders of tests, which end in a slash, and programs
SPGEMM, SPMV = ["spgemm/", "tile_method", "segmented_merge"], ["spmv_boundaries", "spmv/"]
ROOM_TESTS = {"structure": ["block_method", "diagonal_method", "spmv/", "csr_transpose"], "csr": ["csr/", "parprod/", "spmv_boundaries"], "plan": ["plan/", "agg/"] + SPMV + SPGEMM, "papers": ["tile_method", "product_memory", "spgemm_random", "product/"] + SPGEMM, "krylov": ["krylov/"], "parprod": ["parprod/", "csr_large_offsets"], "comm": ["comm/"], "paragg": ["paragg/"], "spgemm": SPGEMM + ["product/"], "ptap": ["product/"], "spmv": SPMV + ["krylov/", "cycle/"], "device": ["device/", "growing_memory", "csr/", "segmented_merge"] + SPMV}
ROOMS = ["device", "structure", "csr", "plan", "spmv", "spgemm", "papers"]
# the methods of SpGEMM that a file is about; a file that is not named here is about all
METHODS = {"hash.cu": "hash", "maskrows.cu": "hash"}
# files that few of their room's tests reach: these alone, the one that is about them first
OWN_TESTS = {
    "src/sparse/parprod/pick.cu": ["picked_rows"],
    "src/sparse/structure/rowblocks.cu": ["block_method", "diagonal_method", "spmv/"],
    "src/sparse/spgemm/block/blockfind.cu": ["block_method", "spgemm_random"],
    "src/sparse/spgemm/maskrows.cu": ["numeric_plans", "spgemm_random", "stage_columns"],
    "src/sparse/spgemm/block/block.cu": ["block_method", "spgemm_random"],
    "src/sparse/papers/tile/tile.cu": ["tile_method", "spgemm_random"],
    "src/sparse/spgemm/hash/places.cu": ["numeric_plans", "spgemm_random"],
}

# a program of its own, for the headers that every kernel uses: they go into it first
HELPERS = "tests/emulator/selftest/helpers.cc"
# seconds of processor time that a mutant may take, compiling included
PATIENCE = {"emulated": 300, "bounds": 300, "races": 90}
# an index outside a thread's own array ends the program: on a card it would be another register, or none
BOUNDS = " -fsanitize=bounds -fsanitize-undefined-trap-on-error"


class OutOfTime(Exception):
    """the whole's end has come"""


class OutOfPatience(Exception):
    """this mutant has had its time"""


def device_spans(text):
    """[start, end) of the bodies of functions that run on the device, comments and strings blanked out of what is
    returned beside them"""
    clean = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    # what the emulator does not compile, and what only the compiler asks
    clean = re.sub(r"^ *#if HYB_BULK_ENGINE$.*?^ *#(?:else|elif|endif)", lambda m: re.sub(r"[^\n]", " ", m.group()), clean, flags=re.S | re.M)
    clean = re.sub(r"^ *#elif defined\(__CUDA_ARCH__\)$.*?^ *#endif", lambda m: re.sub(r"[^\n]", " ", m.group()), clean, flags=re.S | re.M)
    clean = re.sub(r"static_assert\([^;]*\);", lambda m: re.sub(r"[^\n]", " ", m.group()), clean)
    clean = re.sub(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", lambda m: re.sub(r"[^\n]", " ", m.group()), clean, flags=re.M)
    spans = []
    for m in re.finditer(r"__(?:global|device)__", clean):
        if spans and m.start() < spans[-1][1]:
            continue
        k = m.end()
        while k < len(clean) and clean[k] not in "{;":
            k += 1
        if k >= len(clean) or clean[k] == ";":
            continue
        depth, e = 0, k
        while e < len(clean):
            depth += {"{": 1, "}": -1}.get(clean[e], 0)
            e += 1
            if depth == 0:
                break
        spans.append((k, e))
    return clean, spans


TEXT = {} # of the files, as they were at the start


def picks_one(body, m):
    """a < b ? a : b, or if (a > b) b = a: the smaller or the larger of two, where it does not matter which is taken of
    equal ones"""
    before, after = body[max(0, m.start() - 200):m.start()], body[m.end():m.end() + 200]
    choice = re.match(r"([^?;]+?) \? ([^:;]+?) : ([^],;)]+)", after)
    if choice:
        b, x, y = (w.strip() for w in choice.groups())
        if (x == b and before.endswith(y)) or (y == b and before.endswith(x)):
            return True
        if y == "0" and x.endswith(" - " + b) and before.endswith(x[:-len(" - " + b)]): # a > b ? a - b : 0
            return True
    update = re.match(r"([^;&|()]+)\) ([^=;]+) = ([^;]+);", after)
    return bool(update) and update.group(1) == update.group(2) and before.endswith("(" + update.group(3))


def all_mutants(root):
    out = []
    for folder, _, names in sorted(os.walk(os.path.join(root, "src", "sparse"))):
        for name in sorted(names):
            if not name.endswith((".cu", ".cuh")) or name in ("primitives.cu",):
                continue
            path = os.path.relpath(os.path.join(folder, name), root)
            text = TEXT[path] = open(os.path.join(root, path)).read()
            clean, spans = device_spans(text)
            for s, e in spans:
                body = clean[s:e]

                def add(rule, m, new):
                    out.append((rule, path, s + m.start(), s + m.end(), new))

                for m in re.finditer(r"__sync(?:threads|warp)\([^;]*\);", body):
                    add("barrier", m, ";")
                for m in re.finditer(r"HybSubwarpMask<\w+>\(\)|HybSubwarpMask\(\w+\)", body):
                    add("mask", m, "HYB_FULL_MASK")
                for m in re.finditer(r"HybLanesBelow\(\)", body):
                    add("mask", m, "0xffffffffu")
                for m in re.finditer(r"(?<=\w)\[([^][;=]+)\](?!\s*=?\s*\{)", body):
                    add("index", m, "[" + m.group(1) + " + 1]")
                for m in re.finditer(r" (<|<=|>|>=|==|!=) ", body):
                    if picks_one(body, m):
                        continue
                    swap = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}[m.group(1)]
                    add("comparison", m, " %s " % swap)
                for m in re.finditer(r" [+-] 1(?![\w.])", body):
                    if re.match(r"\) \* 0x[0-9a-f]{16}", body[m.end():]):
                        continue
                    add("step", m, "")
    return out


class Worker:
    lock, originals = threading.Lock(), {}

    def __init__(self, args, number):
        self.args, self.dir = args, os.path.abspath(os.path.join(args.build, "mutants", "w%d" % number))
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        for part in ("src", "include"):
            shutil.copytree(part, os.path.join(self.dir, part))
        os.makedirs(os.path.join(self.dir, "tests"))
        shutil.copytree("tests/emulator", os.path.join(self.dir, "tests/emulator"))

    def execute(self, cmd, seconds, each=lambda line: False, **options):
        """the exit status and the processor time of a command; it is ended when each(a line of its output) says so,
        when it has had `seconds`, or at the whole's end"""
        wall = min(20 * seconds, self.args.end - time.time()) # a busy machine kills no mutant
        if wall <= 0:
            raise OutOfTime
        p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 6)), **options)
        timer = threading.Timer(wall, lambda: os.killpg(p.pid, signal.SIGKILL))
        timer.start()
        said = False
        for line in p.stdout:
            if each(line):
                said = True
                os.killpg(p.pid, signal.SIGKILL)
                break
        p.stdout.close()
        _, status, usage = os.wait4(p.pid, 0)
        timer.cancel()
        p.returncode = os.waitstatus_to_exitcode(status)
        spent = usage.ru_utime + usage.ru_stime
        self.spent += spent
        if p.returncode and not said and time.time() >= self.args.end:
            raise OutOfTime
        return p.returncode, spent

    def left(self, kind):
        """seconds that this mutant has left"""
        if self.spent >= PATIENCE[kind]:
            raise OutOfPatience
        return PATIENCE[kind] - self.spent

    def base(self, kind):
        """the build whose objects are taken for all but the mutant"""
        return "races" if kind == "races" else "emulated"

    def objects(self, kind):
        """of sources that exist: a build folder may hold what others left"""
        base, out = os.path.abspath(os.path.join(self.args.build, kind)), []
        for d, _, ns in sorted(os.walk(base)):
            for n in sorted(ns):
                source = os.path.relpath(os.path.join(d, n[:-2]), base)
                if n.endswith(".o") and "selftest" not in d and (os.path.exists(source + ".cu") or os.path.exists(source + ".cc")):
                    out.append(os.path.join(d, n))
        return out

    def dependents(self, path):
        """the .cu files that a mutated file takes part in, its own room's first"""
        if path.endswith(".cu"):
            return [path]
        out = []
        base = os.path.join(self.args.build, "emulated")
        for d, _, ns in os.walk(base):
            for n in ns:
                if n.endswith(".d") and re.search(r"(^|[ /])" + re.escape(path) + r"(\s|$)", self.canonical(os.path.join(d, n)), re.M):
                    cu = os.path.relpath(os.path.join(d, n[:-2] + ".cu"), base)
                    if os.path.exists(cu):
                        out.append(cu)
        return sorted(out, key=lambda cu: (cu.split("/")[2] != path.split("/")[2], ROOMS.index(cu.split("/")[2]) if cu.split("/")[2] in ROOMS else 9, cu))

    def canonical(self, depfile):
        return "\n".join(os.path.normpath(w) for w in open(depfile).read().replace("\\\n", " ").split())

    def compile(self, kind, flags, cu):
        """the object of one source file of this worker's copy; None if it does not compile, "" if it is the original's
        code"""
        old = os.path.abspath(os.path.join(self.args.build, self.base(kind), cu[:-3] + ".o"))
        new = os.path.join(self.dir, kind + "-" + cu[:-3].replace("/", "-") + ".o")
        code, _ = self.execute(shlex.split(self.args.cxx + " " + flags) + ["-x", "c++", "-c", cu, "-o", new], 600, cwd=self.dir)
        if code:
            return None
        text = [subprocess.run(["objcopy", "-O", "binary", "--strip-debug", "--only-section=.text*", o, "/dev/stdout"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout for o in (old, new)]
        dis = [subprocess.run("objdump -d --no-show-raw-insn -r '%s' | tail -n +4" % o, shell=True, stdout=subprocess.PIPE).stdout for o in (old, new)] if text[0] == text[1] else [b"a", b"b"]
        return "" if dis[0] == dis[1] else new

    def link(self, kind, objs):
        """the library with these objects in place of the originals' (source file: object)"""
        new = {os.path.abspath(os.path.join(self.args.build, self.base(kind), cu[:-3] + ".o")): o for cu, o in objs.items()}
        lib, said = os.path.join(self.dir, kind + ".so"), []
        kinds = ["-shared"]
        if HELPERS in objs:
            lib, kinds = os.path.join(self.dir, kind + "-helpers"), [objs[HELPERS]]
        code, _ = self.execute(shlex.split(self.args.cxx) + kinds + ["-o", lib] + [new.get(o, o) for o in self.objects(self.base(kind))] + [self.args.rooms] + shlex.split(self.args.ldflags), 600, lambda line: said.append(line))
        if code:
            raise RuntimeError("the library does not link: " + "".join(said)[-500:])
        return lib

    def tests(self, path, cus):
        """the programs of the room, with their options; those of a header are its own room's as well"""
        cu, names, name = cus[0], [], os.path.basename(cus[0])
        if cu == HELPERS:
            return [("helpers", [])]
        rooms = [cu.split("/")[2]] if path == cu or path.split("/")[2] == "device" else [path.split("/")[2], cu.split("/")[2]]
        built = [s for s in subprocess.run(["tests/list", "unit", "ranks"], capture_output=True, text=True, check=True).stdout.split() if os.access(os.path.join(self.args.tests, os.path.basename(s)[:-2]), os.X_OK)]
        for part in OWN_TESTS.get(path) or [p for k, room in enumerate(rooms) if room not in rooms[:k] for p in ROOM_TESTS.get(room, [s.split("/")[1] + "/" for s in built])]:
            names += [n for n in (os.path.basename(s)[:-2] for s in built if s.startswith("tests/" + part) or s.endswith("/" + part + ".c")) if n not in names and n != "oracle"]
        methods = METHODS.get(name, os.path.basename(cu)[:-3] if re.search(r"/spgemm/(\w+\.cu|block/|diagonal/)|/papers/(binned\.cu|segmerge/|tile/)", cu) else "hash" if "/plan/" in cu or "/spgemm/hash/" in cu else "") if len(cus) == 1 else ""
        return [(n, ["-methods", methods] if n == "spgemm_methods" and methods else []) for n in names]

    def run(self, lib, path, cus, kind):
        """what noticed the mutant, or None; a test that the original fails notices nothing"""
        for test in self.tests(path, cus):
            why = self.run_test(lib, test, kind, self.left(kind))
            if why and self.original_passes(kind, test, path, cus):
                return why
        return None

    def original(self, kind, test, path, cus):
        """the library without a mutant"""
        if kind != "bounds":
            lib = ("%s/helpers" if test[0] == "helpers" else "lib/%s/libaijhybridgpu_%s.so").replace("%s", kind)
            return os.path.abspath(os.path.join(self.args.build, lib))
        with open(os.path.join(self.dir, path), "w") as f:
            f.write(TEXT[path])
        return self.link(kind, {cu: self.compile(kind, self.args.flags + BOUNDS, cu) for cu in cus})

    def original_passes(self, kind, test, path, cus):
        key = (kind, test[0], tuple(test[1])) + (tuple(cus) if kind == "bounds" else ())
        with self.lock:
            if key not in self.originals:
                spent = self.spent
                why = self.run_test(self.original(kind, test, path, cus), test, kind, 600)
                self.originals[key] = not why
                self.spent = spent # not the mutant's
                if why:
                    print("not used: the original fails %s (%s)" % (why, kind), flush=True)
            return self.originals[key]

    def run_test(self, lib, test, kind, left):
        """over the detector of races, which is slow, a program that is not done after a minute has noticed nothing;
        over the plain emulator it does not end"""
        limit = 60 if kind == "races" else self.args.limit
        env = dict(os.environ, HYB_EMULATOR_SECONDS="60", HYB_EMULATOR_SEED=str(self.args.seed), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        why = []

        def each(line):
            if line.startswith(("emulator:", "FAILED")):
                why.append(line.strip()[:110])
            return line.startswith("FAILED")

        program = [lib] if test[0] == "helpers" else [os.path.join(self.args.tests, test[0]), "-backend", lib, "-seed", str(self.args.seed)] + test[1]
        if any(os.path.exists("tests/%s/%s.c" % (room, test[0])) for room in ("comm", "paragg")): # of several processes
            program = ["mpiexec", "-n", "3"] + program # so that some have several neighbours
        code, spent = self.execute(["stdbuf", "-oL"] + program, min(limit, left), each, env=env)
        if code in (-signal.SIGKILL, -signal.SIGXCPU) and not why: # too long
            if kind == "races":
                return None
            if left < limit and spent < limit:
                raise OutOfPatience
        if why or code:
            return "%s: %s" % (test[0], why[-1] if why else "does not end" if code in (-signal.SIGKILL, -signal.SIGXCPU) else "exit code %d" % code)
        return None

    def groups(self, path):
        """the source files that a mutated file goes into, by room: the first file alone, which notices most, then the
        others"""
        if path.startswith("src/sparse/device/") and path.endswith(".cuh"):
            yield [HELPERS]
        for _, cus in itertools.groupby(self.dependents(path), key=lambda cu: cu.split("/")[2]):
            cus = list(cus)
            yield cus[:1]
            if cus[1:]:
                yield cus[1:]

    def try_one(self, mutant):
        rule, path, s, e, new = mutant
        target = os.path.join(self.dir, path)
        text = TEXT[path]
        with open(target, "w") as f:
            f.write(text[:s] + new + text[e:])
        kind = ""
        try:
            changed = []
            for kind, flags in [("emulated", self.args.flags), ("bounds", self.args.flags + BOUNDS), ("races", self.args.racesflags)]:
                self.spent = 0
                for cus in list(self.groups(path)) if kind == "emulated" else list(changed):
                    objs = {}
                    for cu in cus:
                        self.left(kind)
                        obj = self.compile(kind, flags, cu)
                        if obj is None and kind == "emulated":
                            return "invalid", "does not compile"
                        if obj:
                            objs[cu] = obj
                    if not objs:
                        continue
                    if kind == "emulated":
                        changed.append(list(objs))
                    why = self.run(self.link(kind, objs), path, list(objs), kind)
                    if why:
                        return "killed", why
                if not changed:
                    return "invalid", "same code"
            return "survived", ""
        except OutOfPatience:
            return "survived", "not noticed in %d s" % PATIENCE[kind] + (" over the detector of races" if kind == "races" else "")
        except OutOfTime:
            return "survived", "out of time"
        finally:
            with open(target, "w") as f:
                f.write(text)


def prepare(args):
    """the originals, as `make emulator races` would build them"""
    sources = []
    for folder, ending in (("src/sparse", ".cu"), ("tests/emulator", ".cc")):
        for d, _, ns in os.walk(folder):
            sources += [os.path.join(d, n) for n in ns if n.endswith(ending) and n != "primitives.cu" and "selftest" not in d]
    jobs = []
    sources.append(HELPERS)
    for kind, flags in (("emulated", args.flags), ("races", args.racesflags)):
        for f in sources:
            o = os.path.join(args.build, kind, f[:-3] + ".o")
            os.makedirs(os.path.dirname(o), exist_ok=True)
            if f.endswith(".cc") and f != HELPERS: # the core itself is not instrumented
                flags_f = args.flags + (" -DEMU_RACES=1" if kind == "races" else "") + " -O2"
            else:
                flags_f = flags
            jobs.append(shlex.split(args.cxx + " " + flags_f) + ["-x", "c++", "-MMD", "-MP", "-c", f, "-o", o])
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for cmd, r in zip(jobs, pool.map(lambda c: subprocess.run(c, stderr=subprocess.PIPE), jobs)):
            if r.returncode:
                sys.exit("mutants: %s does not compile: %s" % (cmd[-3], r.stderr.decode()[:2000]))
    for kind in ("emulated", "races"):
        os.makedirs(os.path.join(args.build, "lib", kind), exist_ok=True)
        objects = [os.path.join(args.build, kind, f[:-3] + ".o") for f in sources if f != HELPERS]
        subprocess.run(shlex.split(args.cxx) + ["-shared", "-o", os.path.join(args.build, "lib", kind, "libaijhybridgpu_%s.so" % kind)] + objects + [args.rooms] + shlex.split(args.ldflags), check=True)
        subprocess.run(shlex.split(args.cxx) + ["-o", os.path.join(args.build, kind, "helpers"), os.path.join(args.build, kind, HELPERS[:-3] + ".o")] + objects + [args.rooms] + shlex.split(args.ldflags), check=True)


def code_of(mutant):
    """the source line that it changes"""
    text = TEXT[mutant[1]]
    return text.split("\n")[text.count("\n", 0, mutant[2])].strip()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", required=True)
    p.add_argument("--cxx", required=True)
    p.add_argument("--flags", required=True)
    p.add_argument("--racesflags", required=True)
    p.add_argument("--ldflags", required=True)
    p.add_argument("--rooms", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--tests", default="", help="folder of the test programs (default: tests in the build folder)")
    p.add_argument("--prepare", action="store_true", help="build the originals first")
    p.add_argument("--sample", type=int, default=60)
    p.add_argument("--all", action="store_true")
    p.add_argument("--only", default="", help="a regular expression: mutants of these files alone")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--limit", type=int, default=240, help="seconds of processor time a test program may take")
    p.add_argument("--minutes", type=float, default=18, help="no mutant is begun after this long, and those under way are stopped after a quarter more, as survivors (not with --all)")
    p.add_argument("--atleast", type=float, default=90, help="exit status 1 where fewer in a hundred are killed")
    args = p.parse_args()
    args.tests = os.path.abspath(args.tests or os.path.join(args.build, "tests"))
    start = time.time()
    if args.prepare:
        prepare(args)
    args.end = float("inf") if args.all else start + 75 * args.minutes
    reasons = {}
    if os.path.exists("tests/emulator/survivors.txt"):
        for line in open("tests/emulator/survivors.txt"):
            if line.strip() and not line.startswith("#"):
                path, rule, code, reason = [w.strip() for w in line.split(" | ")]
                reasons[(path, rule, code)] = reason
    mutants = [m for m in all_mutants(".") if re.search(args.only, m[1])]
    rng = random.Random(args.seed)
    strata = {}
    for m in mutants:
        strata.setdefault(m[1].split("/")[2], {}).setdefault(m[0], []).append(m)
    for room in sorted(strata):
        for rule in sorted(strata[room]):
            rng.shuffle(strata[room][rule])
    queue = []
    while strata: # of each room in turn a mutant of each rule in turn: few rules have many places
        for room in sorted(strata):
            rule = next(iter(strata[room]))
            queue.append(strata[room][rule].pop())
            left = strata[room].pop(rule)
            if left:
                strata[room][rule] = left # to the end of the room's turns
            if not strata[room]:
                del strata[room]
    lock, results, errors = threading.Lock(), [], []
    todo = iter(queue)

    def work(number):
        w = Worker(args, number)
        w.spent = 0
        while True:
            with lock:
                if not args.all and (sum(r[0] in ("killed", "survived") for r in results) >= args.sample or time.time() - start > args.minutes * 60):
                    return
                m = next(todo, None)
            if m is None:
                return
            try:
                verdict, why = w.try_one(m)
            except Exception as e:
                errors.append(e)
                raise
            if verdict == "survived" and reasons.get((m[1], m[0], code_of(m)), "").startswith("equivalent"):
                verdict = "equivalent"
            text = TEXT[m[1]]
            line = text.count("\n", 0, m[2]) + 1
            code = code_of(m)
            with lock: # what was begun counts, also beyond the sample: a slow mutant is not dropped for being slow
                results.append((verdict, m, why))
                if verdict == "killed":
                    print("killed    %s:%d: %s '%s' -> '%s': %s" % (m[1], line, m[0], text[m[2]:m[3]].strip(), m[4].strip(), why), flush=True)
                elif verdict != "invalid":
                    print("%-9s %s:%d: %s '%s' -> '%s' in: %s\n          reason: %s" % ("SURVIVED" if verdict == "survived" else verdict, m[1], line, m[0], text[m[2]:m[3]].strip(), m[4].strip(), code, "; ".join(filter(None, [reasons.get((m[1], m[0], code)), why])) or "not known"), flush=True)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(args.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        sys.exit("mutants: %s" % errors[0])
    counted = [r for r in results if r[0] in ("killed", "survived")]
    same = sum(r[0] == "equivalent" for r in results)
    killed = sum(r[0] == "killed" for r in counted)
    rooms = sorted(set(r[1][1].split("/")[2] for r in counted))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("%d places to mutate; %d drawn that change nothing or do not compile; %.0f s, %.0f of processor time" % (len(mutants), len(results) - len(counted) - same, time.time() - start, usage.ru_utime + usage.ru_stime))
    print("by room: " + ", ".join("%s %d of %d" % (room, sum(r[0] == "killed" and r[1][1].split("/")[2] == room for r in counted), sum(r[1][1].split("/")[2] == room for r in counted)) for room in rooms))
    print("%d survivors, and %d that are equivalent to the original: with these, %d of %d" % (len(counted) - killed, same, killed, len(counted) + same))
    print("%d of %d mutants killed" % (killed, len(counted)))
    return 0 if counted and killed * 100 >= len(counted) * args.atleast else 1


if __name__ == "__main__":
    sys.exit(main())

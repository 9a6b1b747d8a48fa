#!/bin/sh
# The report of a run (-mat_aijhybridgpu_report): its data parse and agree with what the program did and with -log_view,
# on 1, 2 and 4 processes, on the host and the emulated device; each kind of advice; runs that end by an error leave a
# page; a file that cannot be written; with TEST_MORE=1 pages in a browser, where one is
# found: in both colour schemes, on a narrow and a wide screen, nothing is wider than the screen and no text lies over
# another.
#
#   tests/plugin/report.sh BUILD PLUGIN [EMULATED]       BUILD/tests/plugin/ending is the program of known counts,
#                                                        .../advice tries advice; SHOTS=folder keeps the
#                                                        browser's pictures
set -u
build=$1 plugin=$2 emulated=${3:-}
mpiexec=${MPIEXEC:-mpiexec}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); printf 'FAILED: %s\n' "$1"; tail -n 15 "$tmp/out" | cut -c1-200 | sed 's/^/  | /'; }
ending=$build/tests/plugin/ending
command -v python3 > /dev/null || { echo "SKIPPED: the report's data: there is no python3"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }

cat > "$tmp/check.py" << 'END'
import json, re, sys

path, size, expected = sys.argv[1], int(sys.argv[2]), sys.argv[3]
text = open(path, encoding="utf-8").read()
page = path.endswith(".html")
if page:
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert not re.search(r"(src|href)=|url\(|@import|//[a-z]+\.[a-z]", re.sub(r"<script.*?</script>", "", text, flags=re.S)), "nothing comes from elsewhere"
    assert len(re.findall(r"<script", text)) == 1
    text = re.search(r'<script type="application/json" id="report">\n(.*?)</script>', text, re.S)[1]


def once(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), "a member stands twice"
    return dict(pairs)


j = json.loads(text, object_pairs_hook=once)
assert j["format"] == 2 and j["processes_of_the_run"] == size


def calls(operation, roles=("matrix", "diagonal block", "parallel matrix", "part", "other"), **more):
    return sum(o["calls"] for m in j["matrices"] if m["role"] in roles for o in m["operations"] if o["operation"] == operation and all(o[k] == v for k, v in more.items()))


for m in j["matrices"]:
    for o in m["operations"]:
        assert 0 < o["timed"] <= o["calls"] and o["seconds"] >= 0 and (o["seconds_mean"] <= o["seconds"] * (1 + 1e-5) + 1e-9), o
for p in j["processes"]:
    run = p["run"]
    parts = [run[k] for k in ("before", "setup", "between", "solve", "apply", "after")]
    assert all(v >= 0 for v in run.values()) and (p["rank"] or abs(sum(parts) - j["seconds"]) <= 1e-4 * j["seconds"]), ("parts of the run are the run", run, j["seconds"])
    series, peaks = p["memory_over_time"], p["memory"]
    parts = [series[k] for k in ("device", "managed", "host")]
    assert len({len(s) for s in parts}) == 1 and len(parts[0]) <= 240
    # what was held at the end of an operation is no more than ever; the run is covered, but for its last part and its
    # end
    assert max(parts[0], default=0) <= peaks["device_peak"] and max(parts[1], default=0) <= peaks["managed_peak"] and max(parts[2], default=0) <= peaks["host_peak"], (p["rank"], peaks)
    assert (len(parts[0]) - 1) * series["interval"] <= j["seconds"] + 0.5
    if peaks["device_peak"]:
        assert max(parts[0]) == peaks["device_peak"], "the peak is seen"
# what operations moved is a part of what the processes did, and nobody waits longer than the run takes
own = [o for m in j["matrices"] for o in m["operations"] if not o["within"]]
for member, of in (("to_device_bytes", "bus"), ("to_host_bytes", "bus"), ("to_cards_bytes", "sent")):
    assert 0 <= sum(o[member] for o in own) <= sum(p[of][member] for p in j["processes"]), (member, [p[of] for p in j["processes"]])
for p in j["processes"]:
    assert all(v >= 0 for v in p["host_in"].values()) and sum(v for k, v in p["host_in"].items() if k.endswith("seconds")) <= j["seconds"], p["host_in"]
    if size > 1 and not expected.startswith("error"):
        assert p["host_in"]["waits_for_processes"] > 0 and p["host_in"]["waits_for_processes_seconds"] > 0, p["host_in"]
    elif size == 1:
        assert p["host_in"]["waits_for_processes"] == 0 and p["sent"]["messages"] == p["sent"]["to_cards"] == 0
if page:
    moved = any(v for p in j["processes"] for v in (*p["host_in"].values(), *p["bus"].values()))
    assert ("Transfers and waiting" in open(path, encoding="utf-8").read()) == moved
for m in j["matrices"]:
    for o in m["operations"]:
        if o["operation"] == "product, symbolic" and o["method"] != "aij":
            # thin counts its products as it makes them
            assert "method " + o["method"] in o["why"] and ("products" in o["why"] or o["method"] == "thin"), o
if page:
    # the levels of the page: matrices that vectors were multiplied by or that were coarsened, and the coarsest one
    grids = {}
    for m in j["matrices"]:
        if m["grid"] and m["rows"] == m["columns"] > 0:
            key = (m["galerkin_depth"], m["rows"], m["name"], m["prefix"], m["made_by"])
            grids[key] = grids.get(key, False) or any(o["operation"].startswith(("MatMult", "MatResidual", "GAMG: aggregates")) for o in m["operations"])
    smallest = [k for k in grids if k[1] == min(g[1] for g in grids)]
    levels = [k for k in grids if grids[k] or [k] == smallest]
    picture = re.search(r"Hierarchy of grids.*?</table>", open(path, encoding="utf-8").read(), re.S)
    assert bool(picture) == (len(levels) > 1), (levels, grids)
    if picture:
        shown = [int(re.sub(r"&#8239;", "", row)) for row in re.findall(r'<td>\d+</td><td class="s">([^<]*)<', picture[0])]
        assert shown == sorted((k[1] for k in levels), reverse=True), (shown, levels)
    assert ("Memory over time" in open(path).read()) == any(max(s, default=0) for p in j["processes"] for s in p["memory_over_time"].values() if isinstance(s, list))
assert len(j["advice"]) <= 5 and all(a["text"] for a in j["advice"])
if expected == "advice":  # one line has all these words
    assert any(all(word in a["text"] + " " + a["option"] for word in sys.argv[4:]) for a in j["advice"]), j["advice"]
    print("ok")
    sys.exit()
if expected.startswith("log"):  # of a solve: PETSc's own counts
    log = open(sys.argv[4]).read()
    for event, operation in (("MatMult", "MatMult"), ("MatMultAdd", None), ("MatMultTranspose", None), ("MatResidual", None)):
        row = re.search(r"^%s +(\d+) " % event, log, re.M)
        if not operation and size > 1:
            continue  # PETSc's parallel operations are made of others of the blocks
        # what the cycle does of it is neither PETSc's event nor the report's operation
        assert (row or event != "MatMult") and (int(row[1]) if row else 0) == calls(operation or event, ("matrix", "diagonal block")), (event, row and row[1], calls(operation or event))
    for event, operations in (("HybProdSym", ("product, symbolic",)), ("HybProdNum", ("product, first values", "product, new values"))):
        row = re.search(r"^%s +(\d+) " % event, log, re.M)
        have = sum(calls(o) for o in operations)
        # a process may have more parts than another: the log has the most of one over all matrices, the report of each
        # kind
        assert row and (have == int(row[1]) if size == 1 else int(row[1]) <= have <= 2 * int(row[1])), (event, row and row[1], have)
    lines = open(sys.argv[5]).read().split("\n")[:-1]  # of -mat_aijhybridgpu_view_counts
    assert len(lines) == size
    for line in lines:
        counts = dict(word.split("=") for word in line.split()[1:])
        process = j["processes"][int(line.split()[0])]
        assert counts.pop("methods") == process["methods"] and {k: int(v) for k, v in counts.items()}.items() <= process["counts"].items(), (line, process)
    petscs = re.findall(r'<td>(\d+)</td><td>\d+</td><td class="s">', picture[0])
    assert petscs == [str(k) for k in reversed(range(len(petscs)))] and len(petscs) >= 3, ("PETSc's levels", petscs)
    text = open(path, encoding="utf-8").read()
    # PETSc's own times, which the log has of the process where they were longest
    rows = {e: re.search(r"^%s +(\d+) +\S+ +(\S+) " % e, log, re.M) for e in ("PCSetUp", "KSPSetUp", "PCSetUpOnBlocks", "KSPSolve")}
    log_seconds = {e: float(row[2]) for e, row in rows.items()}
    setup, solve = (max(sum(p["run"][k] for k in of) for p in j["processes"]) for of in (("setup",), ("solve", "apply")))
    busy = 15e-3  # another process may get the core between two clocks
    assert abs(solve - log_seconds["KSPSolve"]) <= 0.02 * solve + busy and rows["KSPSolve"][1] == "1", (solve, log_seconds)
    # what is set up in a solve, as block preconditioners' parts are, is the solve's, and PETSc's PCSetUp too
    assert 0.98 * (log_seconds["PCSetUp"] - log_seconds["PCSetUpOnBlocks"]) - busy <= setup <= 1.02 * (log_seconds["PCSetUp"] + log_seconds["KSPSetUp"] + log_seconds["PCSetUpOnBlocks"]) + busy, (setup, log_seconds)
    assert all(t in text for t in ("The whole run", "in set-ups: KSPSetUp(), PCSetUp()", "in solves: KSPSolve(), "))
    run = j["processes"][0]["run"]
    its = re.search(r"after (\d+) iterations", log)
    assert run["solve_calls"] == 1 and run["iterations"] == int(its[1]) and run["apply_calls"] == int(its[1]) + 1, (run, its)
    assert 0 < run["apply"] and run["setup"] + run["solve"] + run["apply"] < j["seconds"] and 0 < run["setup_type"] < run["setup"], run
    names = {m["of"] for m in j["matrices"]}
    # where the plugin sets GAMG up there is no graph that is a matrix
    assert "GAMG's prolongator" in names and ("GAMG's graph" in names or j["processes"][0]["counts"]["gamglevels"]) and "unnamed" not in re.findall(r'<td title="(\w+)', text), names
    numbers = re.findall(r'<td>(\d+)</td><td class="s">[\d&#;]*<', picture[0])
    assert numbers == [str(k) for k in range(len(numbers))] and len(numbers) >= 3, ("a solve by GAMG has levels", numbers)
    # the nonzeros of a parallel matrix are those of its blocks
    rows = re.findall(r'<td class="l">parallel matrix</td>(?:<td>[^<]*</td>){3}<td>([\d&#;]+)</td>', open(path, encoding="utf-8").read())
    assert (size == 1) != bool(rows) and all(int(re.sub(r"&#8239;", "", n)) > 0 for n in rows), rows
    assert size > 1 or not j["processes"][0]["counts"]["gamglevels"] or calls("GAMG: aggregates") == calls("GAMG: smoothed prolongator") == j["processes"][0]["counts"]["gamglevels"], "each level's phases are told"
    print("ok")
    sys.exit()
alone = expected.startswith("error")
assert j["complete"] == (not alone or size == 1)
assert len(j["processes"]) == (1 if alone else size)
own = calls("MatMult", ("matrix", "diagonal block", "other"))
assert own == 100 + (200 if "many" in expected else 0), own
assert "many" not in expected or calls("MatMult", ("other",)) > 50
if size == 1:
    assert calls("product, symbolic", product="AB") == 1 and calls("product, first values", product="AB") == 1 and calls("product, new values", product="AB") == 2
    assert calls("MatMultTranspose") == 7
    assert j["processes"][0]["counts"]["mult"] >= 100 and j["processes"][0]["counts"]["products"] == 1
else:
    assert calls("product, new values") == 2 * calls("product, first values") > 0
a = next(m for m in j["matrices"] if m["name"] == 'the <matrix> & "A" \u00e4')
assert a["rows"] == a["columns"] == 1600
assert sum(m["nonzeros"] for m in j["matrices"] if m["name"] == a["name"] and m["role"] in ("matrix", "diagonal block", "off-diagonal block")) == 7840 or alone
assert any(m["prefix"] == "c_" for m in j["matrices"])
if "device" in expected:
    assert all(p["memory_rate"] > 0 for p in j["processes"])
    assert all(p["backend"] == "emulated" and p["bus"]["to_device_bytes"] > 0 and p["bus"]["to_device"] > 0 and p["memory"]["device_peak"] > 0 for p in j["processes"])
    assert calls("MatMult", where="device") == 100 and calls("product, symbolic", where="device") > 0
    line = next(o for m in j["matrices"] for o in m["operations"] if o["operation"] == "MatMult" and m["role"] != "off-diagonal block")
    assert line["timed"] < line["calls"], "on a device some are timed"
    assert all(p["host_in"]["copies_to_device"] > 0 and p["host_in"]["copies_to_device_seconds"] > 0 and p["host_in"]["waits_for_device"] > 0 and p["host_in"]["waits_for_device_seconds"] > 0 for p in j["processes"])
else:
    assert calls("MatMult", where="device") == 0 and calls("MatMult", where="host") >= 100
    assert all(v == 0 for p in j["processes"] for k, v in p["host_in"].items() if "processes" not in k) and all(v == 0 for p in j["processes"] for v in p["bus"].values())
if alone:
    assert re.search(sys.argv[4], j["ended"]), j["ended"]
else:
    assert j["ended"] == "PetscFinalize"
print("ok")
END
holds() { # what it is; check.py's arguments
  what=$1
  shift
  if python3 "$tmp/check.py" "$@" > "$tmp/checked" 2>&1; then ok; else cp "$tmp/checked" "$tmp/out"; bad "$what"; fi
}

device= # without -mat_aijhybridgpu_backend cuda vectors of the host keep small products there
[ -z "$emulated" ] || device="-mat_aijhybridgpu_backend cuda -mat_aijhybridgpu_cuda_library $emulated"
for n in 1 2 4; do
  for where in host device; do
    options="-mat_aijhybridgpu_backend host"
    if [ $where = device ]; then
      [ -n "$device" ] || { echo "SKIPPED: the report of the emulated device: there is none"; skipped=$((skipped + 1)); continue; }
      options=$device
    fi
    # not in both ways each time, but with TEST_MORE
    case $n${TEST_MORE:+more} in 2) kinds=json ;; 4) kinds=html ;; *) kinds="html json" ;; esac
    for kind in $kinds; do
      timeout 200 "$mpiexec" -n $n "$ending" -dll_append "$plugin" -mat_type aijhybridgpu $options -mat_aijhybridgpu_report "$tmp/r.$kind" -malloc_dump > "$tmp/out" 2>&1 || bad "the program runs on $n processes, $where, $kind"
      if grep -qE '^\[ *[0-9]+\] *[0-9]+ bytes' "$tmp/out"; then bad "the report leaves nothing allocated ($n processes, $where)"; else ok; fi
      holds "the report of $n processes, $where, $kind" "$tmp/r.$kind" $n $where
    done
  done
done

run="$ending -dll_append $plugin -mat_type aijhybridgpu -mat_aijhybridgpu_backend host -mat_aijhybridgpu_report"
timeout 100 $run "$tmp/m.html" -many > "$tmp/out" 2>&1 || bad "a program with very many matrices"
holds "a program with more kinds of matrices than the report has" "$tmp/m.html" 1 many
timeout 100 $run "$tmp/p.json" -matmatmult_via sorted > "$tmp/out" 2>&1
holds "advice about an algorithm of the parent's" "$tmp/p.json" 1 advice "sorted was asked for" -matmatmult_via

# a program that speaks a language which writes one half as 0,5: made here, since a machine may have no such language
printf 'comment_char %%\nescape_char /\nLC_CTYPE\ncopy "POSIX"\nEND LC_CTYPE\nLC_NUMERIC\ndecimal_point "<U002C>"\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n' > "$tmp/comma"
if command -v localedef > /dev/null && { localedef -c -i "$tmp/comma" "$tmp/comma_XX" > "$tmp/out" 2>&1 || [ -s "$tmp/comma_XX/LC_NUMERIC" ]; }; then
  for kind in html json; do
    LOCPATH=$tmp LC_ALL=comma_XX timeout 100 $run "$tmp/l.$kind" -comma > "$tmp/out" 2>&1 && ok || bad "a program of a language with commas, $kind"
    holds "its report, $kind" "$tmp/l.$kind" 1 host
  done
  if grep -oE '(x|width)="[^"]*"' "$tmp/l.html" | grep -E '[0-9],[0-9]' > "$tmp/out"; then bad "its pictures have numbers with commas"; else ok; fi
else
  echo "SKIPPED: a language that writes one half as 0,5: localedef makes none"
  skipped=$((skipped + 1))
fi

if "$build/tests/plugin/advice" > "$tmp/out" 2>&1; then passed=$((passed + $(sed -n 's/^\([0-9]*\) passed.*/\1/p' "$tmp/out"))); else bad "advice, by made-up figures"; fi
echo > "$tmp/no-library.so"
timeout 100 "$ending" -dll_append "$plugin" -mat_type aijhybridgpu -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 0 -mat_aijhybridgpu_cuda_library "$tmp/no-library.so" -mat_aijhybridgpu_report "$tmp/n.json" > "$tmp/out" 2>&1
holds "advice where there is no device" "$tmp/n.json" 1 advice "No device was used" no-library.so "-mat_aijhybridgpu_backend host"

# A report changes nothing in the run that it describes: the same operations, methods, kernels, messages, collectives,
# and bytes over the bus and of memory as without. A program of 600 products with a vector, with a method that was asked
# for, and parallel ones that are one launch; and a solve.
same() { # what it is, processes, program and options
  what=$1 n=$2
  shift 2
  for report in "" "-mat_aijhybridgpu_report $tmp/same.json"; do
    rm -f "$tmp/counts" "$tmp/launches" "$tmp/traffic"
    HYB_EMULATOR_LAUNCHES=$tmp/launches HYB_EMULATOR_CARDS=2 timeout 300 "$mpiexec" -n "$n" "$@" -dll_append "$plugin" -mat_type aijhybridgpu -mat_aijhybridgpu_view_counts "$tmp/counts" -mat_aijhybridgpu_view_memory $report > "$tmp/out" 2>&1 || bad "$what runs ($report)"
    for f in counts launches traffic; do [ ! -s "$tmp/$f" ] || sort "$tmp/$f"; done > "$tmp/does${report:+.report}"
    # what is there now depends on when the pools were emptied
    grep '^aijhybridgpu, process' "$tmp/out" | sed 's|[0-9]* / ||g' >> "$tmp/does${report:+.report}"
  done
  if [ "$(wc -l < "$tmp/does")" -ge $((2 * n)) ] && diff "$tmp/does" "$tmp/does.report" > "$tmp/out"; then ok; else bad "$what does the same with a report"; fi
}
for n in 1 2; do
  host="-mat_aijhybridgpu_backend host"
  same "a program on the host, $n processes" $n "$ending" -traffic "$tmp/traffic" -mults 600 $host -mat_aijhybridgpu_spmv segsum
  if [ -n "$device" ]; then
    same "a program on the device, $n processes" $n "$ending" -traffic "$tmp/traffic" -mults 600 $device -mat_aijhybridgpu_spmv segsum -mat_aijhybridgpu_comm peer -mat_aijhybridgpu_comm_after 0
    same "a program whose products are one launch, $n processes" $n "$ending" -traffic "$tmp/traffic" -mults 100 $device -mat_aijhybridgpu_comm peer -mat_aijhybridgpu_comm_after 0
  fi
done
if [ -n "$device" ]; then
  for way in mpi petsc peer; do
    HYB_EMULATOR_CARDS=2 timeout 200 "$mpiexec" -n 2 "$ending" -dll_append "$plugin" -mat_type aijhybridgpu $device -mults 400 -mat_aijhybridgpu_comm $way -mat_aijhybridgpu_comm_after 0 -mat_aijhybridgpu_report "$tmp/h.json" > "$tmp/out" 2>&1
    python3 - "$tmp/h.json" $way > "$tmp/out" 2>&1 << 'END' && ok || bad "entries of other processes by way of the host, -mat_aijhybridgpu_comm $way"
import json, sys
j = json.load(open(sys.argv[1]))
said = [a for a in j["advice"] if "other processes' entries through the host" in a["text"]]
counts = [p["counts"] for p in j["processes"]]
if sys.argv[2] == "peer":
    assert not said and all(c["exchanges_through_host"] == 0 for c in counts), (said, counts)
    # 407 exchanges of products with vectors, and others when the products with matrices are made. The 400 are one
    # launch each but for the first, both blocks' products with them, and are told of the diagonal block.
    sent = [p["sent"] for p in j["processes"]]
    straight = (400 * 40 + 7 * 80) * j["scalar_bytes"]
    assert all(s["to_cards"] >= 407 and s["to_cards_bytes"] >= straight for s in sent), sent
    mults = [o for m in j["matrices"] if m["role"] == "diagonal block" for o in m["operations"] if o["operation"] == "MatMult"]
    assert sum(o["calls"] for o in mults) == 400 and next(o["calls"] for o in mults if o["method"] == "one launch") > 390, mults
    ghosts = [o for m in j["matrices"] for o in m["operations"] if o["method"] in ("one launch", "peer")]
    assert sum(o["calls"] for o in ghosts) == 407 and sum(o["to_cards_bytes"] for o in ghosts) == len(sent) * straight, (ghosts, straight)
elif sys.argv[2] == "petsc":  # what comes: 40 entries for each product; the transposed product has its own way
    assert all(c["exchanges_through_host"] == 407 and c["exchanges_through_host_bytes"] == (400 * 40 + 7 * 80) * j["scalar_bytes"] and "scatter" in c["exchanged_by"] for c in counts), counts
else:  # 400 products of 40 entries to the other process and 40 from it, and 7 transposed ones of C's two rows of points
    assert all(c["exchanges_through_host"] == 407 and c["exchanges_through_host_bytes"] == (400 * 80 + 7 * 160) * j["scalar_bytes"] for c in counts), counts
    assert all(c["exchanged_by"].startswith("MPI") for c in counts), counts
    worth = 407 * 4e-5 + counts[0]["exchanges_through_host_bytes"] / 2e10 > 5e-3 * j["seconds"]
    assert bool(said) == worth, (said, j["seconds"])
END
  done
fi

# PETSc's own counts of a solve
python3 - > "$tmp/grid.mtx" << 'END'
n = 200
e = [(r + 1, c + 1, 4 if r == c else -1) for r in range(n * n) for c in (r, r - 1 if r % n else -1, r - n) if c >= 0]
print("%%MatrixMarket matrix coordinate real symmetric\n", n * n, n * n, len(e))
print("\n".join("%d %d %g" % t for t in e))
END
for n in 1 2; do
  rm -f "$tmp/counts"
  timeout 200 "$mpiexec" -n $n "$build/examples/solve" -A "$tmp/grid.mtx" -ksp_type cg -pc_type gamg -pc_gamg_coarse_eq_limit 10 -dll_append "$plugin" -mat_type aijhybridgpu -mat_aijhybridgpu_backend host -mat_aijhybridgpu_report "$tmp/solve.html" -mat_aijhybridgpu_view_counts "$tmp/counts" -log_view > "$tmp/out" 2>&1
  cp "$tmp/out" "$tmp/log"
  holds "the counts of -log_view, $n processes" "$tmp/solve.html" $n log "$tmp/log" "$tmp/counts"
done

# runs that end otherwise
ends() { # how, processes, what the page says
  rm -f "$tmp/e.html"
  timeout 100 "$mpiexec" -n $2 $run "$tmp/e.html" -end $1 > "$tmp/out" 2>&1
  holds "a run of $2 processes that ends by $1" "$tmp/e.html" $2 error "$3"
}
ends error 1 'a fault of the program'
ends error 2 'a fault of the program'
ends exit 1 'without PetscFinalize'
for end in signal:1 other:2; do # and those that a signal ends on process 0: as they would without
  rm -f "$tmp/e.html"
  timeout 100 "$mpiexec" -n ${end#*:} $run "$tmp/e.html" -end ${end%:*} > "$tmp/out" 2>&1
  got=$?
  timeout 100 "$mpiexec" -n ${end#*:} "$ending" -dll_append "$plugin" -mat_type aijhybridgpu -mat_aijhybridgpu_backend host -end ${end%:*} > "$tmp/without" 2>&1
  if [ $got = $? ] && [ $got != 124 ] && [ ! -e "$tmp/e.html" ]; then ok; else bad "a run of ${end#*:} processes that ends by $end: it returns $got"; fi
done
rm -f "$tmp/e.html"
timeout 100 $run "$tmp/e.html" -end caught > "$tmp/out" 2>&1
holds "an error that the program goes on after" "$tmp/e.html" 1 host
rm -f "$tmp/e.html"
timeout 100 $run "$tmp/e.html" -end child 2>&1 | cat > "$tmp/out" # which ends when both have
holds "a child of the program's, that ends later, leaves the report alone" "$tmp/e.html" 1 host

# what fails while records are kept: nothing is lost, and no failure is the records' own
if [ -n "$device" ]; then
  timeout 170 "$build/tests/mat_faults" -dll_append "$plugin" $device -every 16 -mat_aijhybridgpu_report "$tmp/f.json" > "$tmp/out" 2>&1 && ok || bad "calls of the device and allocations made to fail, with a report"
  if grep -q '"ended": "PetscFinalize"' "$tmp/f.json"; then ok; else bad "the report of a run of many failures"; fi
  timeout 300 "$mpiexec" -n 2 "$build/tests/halo_products" -dll_append "$plugin" $device -ours -faults -mat_aijhybridgpu_comm mpi -mat_aijhybridgpu_report "$tmp/g.json" > "$tmp/out" 2>&1 && ok || bad "exchanges made to fail on one of two processes, with a report"
fi

# files that cannot be written: at the beginning an error, at the end another place
for f in "$tmp/nowhere/r.html" "$tmp" "$tmp/r.txt"; do
  timeout 60 $run "$f" > "$tmp/out" 2>&1
  if [ $? != 0 ] && grep -q -e "-mat_aijhybridgpu_report.*$f" "$tmp/out"; then ok; else bad "a file that cannot be written is told of at the beginning: $f"; fi
done
mkdir "$tmp/gone" "$tmp/spare"
if TMPDIR="$tmp/spare" timeout 60 $run "$tmp/gone/r.html" -end folder -folder "$tmp/gone" > "$tmp/out" 2>&1; then ok; else bad "a program whose report has lost its folder ends as it would without"; fi
kept=$(sed -n 's/.*cannot write.*: the report is in \(.*\)/\1/p' "$tmp/out")
if [ -n "$kept" ]; then holds "the report that lost its folder" "$kept" 1 host; else bad "where the report went that lost its folder"; fi
timeout 60 "$ending" -dll_append "$plugin" -mat_type aij -mat_aijhybridgpu_report "$tmp/none.html" > "$tmp/out" 2>&1
if grep -q 'No matrix of the type was used' "$tmp/none.html"; then ok; else bad "a program without matrices of the type"; fi

# Browsers' windows are 500 wide at least: a frame is as wide as the screen to be tried. What is folded is opened. A
# text is where its lines are, as far as what holds them lets them be seen.
cat > "$tmp/frame.js" << 'END'
onload = () => {
  const d = document.getElementById("f").contentDocument, w = d.defaultView, seen = [];
  for (const e of d.querySelectorAll("details")) e.open = true;
  const walk = d.createTreeWalker(d.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    if (!n.data.trim() || n.parentElement.closest("script")) continue;
    const range = d.createRange();
    range.selectNodeContents(n);
    for (const r of range.getClientRects()) {
      const box = { l: r.left, t: r.top, r: r.right, b: r.bottom, text: n.data.trim().slice(0, 30), of: n.parentElement };
      for (let e = n.parentElement; e && e !== d.body; e = e.parentElement) {
        if (w.getComputedStyle(e).overflowX === "visible") continue;
        const c = e.getBoundingClientRect();
        box.l = Math.max(box.l, c.left); box.t = Math.max(box.t, c.top); box.r = Math.min(box.r, c.right); box.b = Math.min(box.b, c.bottom);
      }
      if (box.r - box.l > 1 && box.b - box.t > 1) seen.push(box);
    }
  }
  const over = [];
  seen.sort((a, b) => a.t - b.t);
  seen.forEach((a, i) => {
    for (let k = i + 1; k < seen.length && seen[k].t < a.b - 2; k++) {
      const b = seen[k];
      if (a.of !== b.of && Math.min(a.r, b.r) - Math.max(a.l, b.l) > 2 && Math.min(a.b, b.b) - b.t > 4) over.push(a.text + " / " + b.text);
    }
  });
  document.title = "width " + d.documentElement.scrollWidth + ", " + (seen.length > 50 ? "texts" : "no texts") + ", over each other " + over.length +
    // a narrow screen scrolls them
    ", cut " + (d.documentElement.clientWidth < 1000 ? 0 : [...d.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth + 1).length);
  document.body.append(over.slice(0, 9).join("\n"));
};
END
browser=$(command -v chromium || command -v google-chrome || command -v chromium-browser || true)
browse() { timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$tmp/browser" "$@" > "$tmp/out" 2>&1; }
if [ -z "$browser" ]; then
  echo "SKIPPED: the page in a browser: there is no chromium (conf/prerequisites browser)"
  skipped=$((skipped + 1))
elif [ "${TEST_MORE:-}" = 1 ]; then # 18 starts of the browser
  shots=${SHOTS:-$tmp}
  mkdir -p "$shots"
  for page in solve r s; do # on two processes, on four with or without a device, with advice
    if [ $page = s ]; then timeout 100 $run "$tmp/s.html" -matmatmult_via sorted > "$tmp/out" 2>&1; fi
    for width in 360 1600; do
      printf '<iframe id=f src="%s.html" style="width:%dpx;height:900px;border:0"></iframe><script src="frame.js"></script>' $page $width > "$tmp/frame.html"
      browse --allow-file-access-from-files --dump-dom "file://$tmp/frame.html"
      if grep -q "<title>width $width, texts, over each other 0, cut 0</title>" "$tmp/out"; then ok; else bad "$page.html fits a screen of $width pixels, no text over another, and a wide one cuts no table: $(grep -o '<title>.*</title>' "$tmp/out")"; fi
      for scheme in 0 1; do # dark, light
        browse --blink-settings=preferredColorScheme=$scheme --window-size=$width,2400 --screenshot="$shots/$page-$width-$scheme.png" "file://$tmp/$page.html"
        [ -s "$shots/$page-$width-$scheme.png" ] || bad "a picture of the page"
      done
      if cmp -s "$shots/$page-$width-0.png" "$shots/$page-$width-1.png"; then bad "$page.html has both colour schemes ($width)"; else ok; fi
    done
  done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]

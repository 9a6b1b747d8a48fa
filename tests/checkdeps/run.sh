#!/bin/sh
# conf/checkdeps on a small tree that breaks each rule once: every breach must be named, and nothing else.
#
#   tests/checkdeps/run.sh      CC, CXX and PETSC_CFLAGS as for conf/checkdeps
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
cd "$tmp" || exit 2
fresh() {
  rm -rf tree
  for room in device csr plan segmerge spgemm ptap product spmv; do mkdir -p tree/src/sparse/$room; done
  mkdir -p tree/include/aijhybridgpu/private tree/src/mat/impls/aijhybridgpu/storage tree/src/mat/impls/aijhybridgpu/seq
  printf '#include <petscsys.h>\n' > tree/include/aijhybridgpu/private/hyb.h
  printf '#include "hyb.h"\n' > tree/include/aijhybridgpu/private/hybplan.h
  printf '#include "hybplan.h"\n' > tree/include/aijhybridgpu/private/hybspgemm.h
  printf '#include "../../../include/aijhybridgpu/private/hybspgemm.h"\n' > tree/src/sparse/spgemm/a.c
  printf '#include <petsc/private/matimpl.h>\n' > tree/src/mat/impls/aijhybridgpu/glue.c
  # what the functions below are called by
  mkdir tree/tests
  printf 'static int F(void)\n{\n  return HybUp() + HybDown() + HybOne() + HybTwo() + HybName() + HybFind() + MatMult_SeqAIJHybridGPU() + MatSeqAIJHybridGPUGo();\n}\n' > tree/tests/calls.c
}
holds() {
  if "$here/conf/checkdeps" tree > out 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; sed 's/^/  | /' out; fi
}
breaks() { # what the report must name: file and line, and a word; nothing else may be reported
  if ! "$here/conf/checkdeps" tree > out 2>err && grep -qF "$1" out && grep -qF "$2" out && [ "$(grep -cvF "$1" out)" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: not reported as expected: $1 $2"; sed 's/^/  | /' out err; fi
}
add() { mkdir -p "$(dirname "tree/$1")"; printf "$2" > "tree/$1"; }

export CHECKDEPS_COMPILE=1
fresh; holds "a tree without a breach"
fresh; add include/aijhybridgpu/private/hybcsr.h 'static int f(int *p) { int *new = p; return *new; }\n'; breaks include/aijhybridgpu/private/hybcsr.h:1: "does not compile alone as C"
export CHECKDEPS_COMPILE=0 # they are what takes time
fresh; add src/sparse/csr/x.c '#include <petscmat.h>\n'; breaks src/sparse/csr/x.c:1: "nothing knows of Mat"
fresh; add src/sparse/csr/x.c '\n#include <petsc/private/vecimpl.h>\n'; breaks src/sparse/csr/x.c:2: "private"
fresh; add src/sparse/csr/x.cu '#include <petscdevice_cuda.h>\n'; breaks src/sparse/csr/x.cu:1: "petscdevicetypes.h is the most"
fresh; add src/sparse/csr/x.c '#  include "aijhybridgpu/private/hybplan.h"\n'; breaks src/sparse/csr/x.c:1: "room csr may not include room plan"
fresh; add src/sparse/plan/x.c '#include "../spgemm/merge.h"\n'; breaks src/sparse/plan/x.c:1: "room plan may not include room spgemm"
fresh; add src/sparse/spmv/x.c '#include <aijhybridgpu/private/hybspgemm.h>\n'; breaks src/sparse/spmv/x.c:1: "room spmv may not include room spgemm"
fresh; add include/aijhybridgpu/private/hybplan.h '#include "hybspgemm.h"\n'; printf '#include "hyb.h"\n' > tree/include/aijhybridgpu/private/hybspgemm.h; breaks include/aijhybridgpu/private/hybplan.h:1: "room plan may not include room spgemm"
fresh; add src/sparse/spgemm/x.c '#include "a.c"\n'; breaks src/sparse/spgemm/x.c:1: "never included"
fresh; add src/sparse/spgemm/x/h.h '\n'; add src/sparse/spgemm/y/x.cu '#include "../x/h.h"\n'; breaks src/sparse/spgemm/y/x.cu:1: "a method's folder is its own"
fresh; add src/sparse/spgemm/x/h.h '\n'; add src/sparse/spgemm/x.cu '#include "x/h.h"\n'; breaks src/sparse/spgemm/x.cu:1: "a method's folder is its own"
fresh; add src/sparse/spgemm/x/h.h '\n'; add src/sparse/spgemm/x/x.cu '#include "h.h"\n'; holds "a method's folder includes its own"
fresh; add src/sparse/sheaf/x.c 'int x;\n'; breaks src/sparse/sheaf/x.c:1: "no room that the rules know"
fresh; add src/mat/impls/aijhybridgpu/x.c 'int x;\nvoid HybF(void) { k<<<1, 2>>>(); }\n'; breaks src/mat/impls/aijhybridgpu/x.c:2: "launches no kernel"
fresh; add src/mat/impls/aijhybridgpu/x.cu 'int x;\n'; breaks src/mat/impls/aijhybridgpu/x.cu:1: "no CUDA file"
fresh; add src/mat/impls/aijhybridgpu/x.c '#include <cuda_runtime.h>\n'; breaks src/mat/impls/aijhybridgpu/x.c:1: "glue holds no CUDA"
fresh; add src/sparse/csr/x.cu 'void f(void) { k<<<1, 2>>>(); }\n'; breaks src/sparse/csr/x.cu:1: "HYB_LAUNCH alone"
fresh; add src/sparse/csr/x.cu 'void f(void) { asm volatile("nop;"); }\n'; breaks src/sparse/csr/x.cu:1: "inline PTX"
fresh; add src/sparse/spgemm/methods.h 'HYB_METHOD_HOST("gone", HybSpGEMM_Gone)\n'; breaks src/sparse/spgemm/methods.h:1: "HybSpGEMM_Gone is defined in no file"
fresh; add src/mat/other/x.c 'int x;\n'; breaks src/mat/other/x.c:1: "no room that the rules know"
glue=src/mat/impls/aijhybridgpu
fresh; add $glue/seq/seq.h '\n'; add $glue/storage/x.c '#include "../seq/seq.h"\n'; breaks $glue/storage/x.c:1: "room storage may not include room seq"
fresh; add $glue/seq/y.c 'int HybUp(int a)\n{\n  return a;\n}\n'; add $glue/storage/x.c '/* HybUp(1) */\nint HybDown(void)\n{\n  return HybUp(1);\n}\n'; breaks $glue/storage/x.c:4: "room storage may not call room seq: HybUp"
fresh; add $glue/seq/y.c 'static int HybUp(int a)\n{\n  return a;\n}\n'; add $glue/storage/x.c 'static int HybUp(void)\n{\n  return 1;\n}\nint HybDown(void)\n{\n  return HybUp();\n}\n'; holds "functions of one file alone are nobody else's"
fresh; add $glue/seq/y.c 'int HybOne(void)\n{\n  return HybTwo();\n}\n'; add $glue/seq/x.c 'int HybTwo(void)\n{\n  return HybOne();\n}\n'; breaks $glue/seq/x.c:3: "a circle, by includes and calls: $glue/seq/x.c, $glue/seq/y.c"
fresh; add src/sparse/csr/y.cu 'extern "C" int HybOne(void)\n{\n  return HybTwo();\n}\n'; add src/sparse/csr/x.cu 'int HybTwo(void)\n{\n  return HybOne();\n}\n'; breaks src/sparse/csr/x.cu:3: "a circle, by includes and calls: src/sparse/csr/x.cu, src/sparse/csr/y.cu"
fresh; add src/sparse/csr/y.cu 'namespace {\nint HybOne(void)\n{\n  return HybTwo();\n}\n} // namespace\n'; add src/sparse/csr/x.cu 'int HybTwo(void)\n{\n  return HybOne();\n}\n'; holds "what a namespace without a name holds is nobody else's"
fresh; add $glue/seq/y.h '#include "x.h"\n'; add $glue/seq/x.h '\n#include "y.h"\n'; breaks $glue/seq/x.h:2: "a circle"
fresh; add docs/architecture.md 'device src/sparse/device\n'; add conf/rooms 'base - - x\nspgemm src/sparse/spgemm base x\nplan - base x\nfamily src/mat/impls/aijhybridgpu - x\n'; printf '#include "hyb.h"\n' > tree/include/aijhybridgpu/private/hybspgemm.h; breaks docs/architecture.md:1: "not that of conf/rooms"
bends() { # of one file, with a hook of one proposal
  fresh
  add src/petsc/x.c 'int x;\n'
  add src/petsc/README.md "| file | what |\n| --- | --- |\n| \`x.c\` | a | b | c | 3.18 on | ${1:-U1} | ${2:-calls} |\n${3:-}"
  add docs/upstream.md '## U1: a hook\n'
}
bends; holds "what bends PETSc, and its page"
bends U1 t999_gone; breaks src/petsc/README.md:3: "there is no test t999_gone"
bends "U1, U2"; breaks src/petsc/README.md:3: "docs/upstream.md has no U2"
bends none; breaks docs/upstream.md:1: "U1 would remove nothing"
bends " "; rm tree/docs/upstream.md; breaks src/petsc/README.md:3: "none is empty"
bends U1 calls '| `gone.c` | a | b | c | d | none | calls |\n'; breaks src/petsc/README.md:4: "there is no src/petsc/gone.c"
bends; add src/petsc/y.c 'int y;\n'; breaks src/petsc/y.c:1: "does not stand in src/petsc/README.md"
list() { add docs/architecture.md "$1"; add conf/rooms "$1"; } # and in a table of rooms: what these rules alone look at
fresh; rm -r tree/src/mat; list 'base - - x\ncsr src/sparse/csr base x\nplan src/sparse/plan csr x\nspgemm src/sparse/spgemm plan x\n'; add src/sparse/csr/x.c '#include "../../../include/aijhybridgpu/private/hyb.h"\n'; add src/sparse/plan/x.c '#include "../csr/x.h"\n'; add src/sparse/csr/x.h '\n'; holds "arrows that are gone"
add src/sparse/plan/x.c '\n'; breaks conf/rooms:3: "no file of room plan includes or calls one of room csr"
fresh; add include/aijhybridgpu/private/hyb.h 'typedef struct {\n  int (*set)(int);\n  int (*gone)(int);\n} HybCSROps;\n'; add src/sparse/plan/x.c 'static int F(HybCSROps *ops)\n{\n  return (*ops->set)(1);\n}\n'; add tests/x.c 'int G(HybCSROps *ops)\n{\n  return ops->gone(1);\n}\n'; breaks include/aijhybridgpu/private/hyb.h:3: "a table has gone, which no file of src calls"
fresh; add src/sparse/csr/x.h 'extern int HybAlone(int);\n'; add src/sparse/csr/x.c '\nint HybAlone(int a)\n{\n  return a ? HybAlone(a - 1) : 0;\n}\n'; breaks src/sparse/csr/x.c:2: "HybAlone: no other file calls it"
add tests/x.c 'int F(void)\n{\n  return HybAlone(1);\n}\n'; holds "functions that a test alone calls"
fresh; add $glue/seq/x.c 'int HybCount;\nstatic const char *const HybNames[] = {"a", "b"};\nconst char *HybName(int k)\n{\n  static int calls;\n  return HybNames[k + calls++];\n}\n'
mkdir -p tree/build/$glue/seq && ${CC:-cc} -fPIC -c tree/$glue/seq/x.c -o tree/build/$glue/seq/x.o
export CHECKDEPS_OBJECTS=build
breaks $glue/seq/x.c:1: "HybCount: what changes"; breaks $glue/seq/x.c:1: "calls"
grep -q HybNames out && { failed=$((failed + 1)); echo "FAILED: a constant was taken for a variable"; }
unset CHECKDEPS_OBJECTS
fresh; add docs/x.md "see /ho""me/me/file\n"; breaks docs/x.md:1: "absolute path"
fresh; add $glue/x.c '\n#if PETSC_VERSION_LT(3, 19, 0)\n#endif\n'; breaks $glue/x.c:2: "what a release has"
fresh; add docs/x.md "\n\nTO""DO: later\n"; breaks docs/x.md:3: "unfinished"
fresh; mkdir -p tree/docs; head -c 1100000 /dev/zero > tree/docs/big; breaks docs/big:1: "larger than 1 MB"
lines() { mkdir -p "$(dirname "tree/$1")"; yes 'int x;' | head -n "$2" > "tree/$1"; }
for folder in src/sparse/csr tests conf benchmarks; do
  fresh; lines $folder/x.c 800; holds "a file of 800 lines in $folder"
  fresh; lines $folder/x.c 801; breaks $folder/x.c:801: "801 lines; no file has more than 800"
done
fresh; lines docs/x.md 801; holds "pages may be longer"
long() { mkdir -p "$(dirname "tree/$1")"; { printf "$3\n{\n"; yes '  x++;' | head -n $(($2 - 2)); printf '}\n'; } > "tree/$1"; }
fresh; long tests/x.c 100 'static void f(void)'; holds "a function of 100 lines"
fresh; long tests/x.c 101 'static void f(void)'; breaks tests/x.c:1: "a function of 101 lines"
fresh; long src/sparse/csr/x.cu 101 '/* why */\nstatic __global__ void k(void)'; holds "a longer kernel that says why"
fresh; long src/sparse/csr/x.cu 101 '\nstatic __global__ void k(void)'; breaks src/sparse/csr/x.cu:2: "a function of 101 lines"
fresh; mkdir -p tree/tests; { echo 'def f():'; yes '    x = 1' | head -n 99; } > tree/tests/x.py; holds "100 lines of Python"
{ echo; cat tree/tests/x.py; echo '    x = 2'; } > tree/tests/y.py; breaks tests/y.py:2: "a function of 101 lines"
fresh; add src/sparse/csr/x.c 'void HybFind(void)\n{\n}\nstatic void find(void)\n{\n}\n'; holds "names by the rule"
fresh; add src/sparse/csr/x.cu '__global__ void __launch_bounds__(128) Kernel(int n)\n{\n}\n'; holds "a kernel is its file's"
fresh; add src/sparse/csr/x.cu '\nvoid find(void)\n{\n}\n'; breaks src/sparse/csr/x.cu:2: "find: a name that other files may call"
fresh; add src/sparse/csr/x.c '\nvoid find(void)\n{\n}\n'; breaks src/sparse/csr/x.c:2: "find: a name that other files may call"
fresh; add $glue/seq/x.c 'void MatMult_SeqAIJHybridGPU(void)\n{\n}\nvoid MatSeqAIJHybridGPUGo(void)\n{\n}\n'; holds "PETSc's names in the glue"
fresh; add src/sparse/csr/x.c 'static void f(void)\n{\n  PetscOptionsGetInt(NULL);\n}\n'; breaks src/sparse/csr/x.c:3: "read no options"

# names' words
glossary() { add docs/glossary.md "# Glossary\n\n| word | what it means |\n|---|---|\n$1"; }
fresh; glossary '| door, doors | x |\n'; add src/sparse/csr/x.h '\nstatic inline void HybDoorOpen(void)\n{\n}\ntypedef int HybDoorsKept;\n'; holds "a coined word that stands in the glossary"
fresh; glossary '| door | x |\n'; add src/sparse/csr/x.h '\ntypedef int HybWindow;\n'; breaks src/sparse/csr/x.h:2: 'HybWindow: "window" is no term of the field, and does not stand in docs/glossary.md'
fresh; glossary '| door | x |\n'; add src/sparse/csr/x.h '\n/* HybWindow */\nstatic const char *s = "HybWindow"; typedef int HybRows;\n'; holds "comments, strings, and a term's plural"
fresh; glossary '| door | x |\n| door | y |\n'; breaks docs/glossary.md:6: "stands twice"
fresh; glossary '| matrix, csr | x |\n'; breaks docs/glossary.md:5: "csr is a term already"
fresh; glossary "$(for a in a b c d e; do for b in a b c d e f g h i j; do printf '| x%s%s | y |\\n' $a $b; done; done)"; breaks docs/glossary.md:1: "50 words, more than 46"

# pages for users: words, sentences, commands, README's lines and version
pages() { # README.md's text, then docs/start.md's
  rm -rf tree; mkdir -p tree/include tree/docs tree/conf/docs/pages
  echo '#define PETSC_AIJHYBRIDGPU_VERSION "0.7.1"' > tree/include/petscmataijhybridgpu.h
  printf '```{toctree}\ndocs/start.md\n```\n' > tree/conf/docs/pages/index.md
  : > tree/conf/docs/pages/guide.md; : > tree/conf/docs/pages/gpu.md
  printf '%b' "$1" > tree/README.md; printf '%b' "$2" > tree/docs/start.md
}
counts() { # what it is; what it says, '' if nothing is wrong
  "$here/conf/docs/countwords" tree > out 2>&1
  rc=$?
  if { [ -z "$2" ] && [ $rc = 0 ]; } || { [ -n "$2" ] && [ $rc = 1 ] && grep -qF -e "$2" out && [ "$(wc -l < out)" = 2 ]; }; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: countwords: $1"; sed 's/^/  | /' out; fi
}
many() { yes "$1" | head -n "$2" | tr '\n' "$3"; }
pages '# x 0.7.1\n' "$(many word 40 ' ')end.\n"; counts "a sentence of 41 words" "docs/start.md:1: a sentence of 41 words, more than 40"
pages '# x 0.7.1\n' "$(many word 39 ' ')end. $(many word 39 ' ')end.\n"; counts "two sentences of 40" ''
pages '# x 0.7.1\n' "- $(many word 39 ' ')\n- $(many word 39 ' ')\n\n| $(many word 39 ' ') | $(many word 39 ' ') |\n"; counts "items and cells end sentences" ''
pages '# x 0.7.1\n' "\n<!-- $(many word 99 ' ') -->\n\n1\n$(many word 40 '.')\n"; counts "comments are not counted" ''
pages '# x 0.7.1\n' "$(many 'Nine words are in this sentence, which ends here.' 999 ' ')\n"; counts "8994 words" ''
pages '# x 0.7.1\n' "$(many 'Nine words are in this sentence, which ends here.' 1000 ' ')\n"; counts "9002 words" "the pages for users have 9002 words together, more than 9000"
pages '# x 0.7.1\n' "\n\`\`\`sh\n$(many x 81 ' ' | tr -d ' ')\n\`\`\`\n"; counts "a command of 81 columns" "docs/start.md:3: a command of 81 columns"
pages '# x 0.7.0\n' 'One.\n'; counts "another version" "README.md:1: the version is 0.7.1"
pages "# x 0.7.1\n$(many '\n' 100 ' ' | tr -d ' ')" 'One.\n'; counts "a README of 101 lines" "README.md:101: more than 100 lines"

printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed = 0 ]

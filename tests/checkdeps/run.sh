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
  for room in device csr plan segmerge spgemm ptap product spmv; do mkdir -p tree/src/sparse/$room/host tree/src/sparse/$room/cuda; done
  mkdir -p tree/include/aijhybridgpu/private tree/src/mat/impls
  printf '#include <petscsys.h>\n' > tree/include/aijhybridgpu/private/hyb.h
  printf '#include "hyb.h"\n' > tree/include/aijhybridgpu/private/hybplan.h
  printf '#include "hybplan.h"\n' > tree/include/aijhybridgpu/private/hybspgemm.h
  printf '#include "../../../../include/aijhybridgpu/private/hybspgemm.h"\n' > tree/src/sparse/spgemm/host/a.c
  printf '#include <petsc/private/matimpl.h>\n' > tree/src/mat/impls/glue.c
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
fresh; add src/sparse/plan/x.c '#include "../segmerge/merge.h"\n'; breaks src/sparse/plan/x.c:1: "room plan may not include room segmerge"
fresh; add src/sparse/spmv/host/x.c '#include <aijhybridgpu/private/hybspgemm.h>\n'; breaks src/sparse/spmv/host/x.c:1: "room spmv may not include room spgemm"
fresh; add include/aijhybridgpu/private/hybplan.h '#include "hybspgemm.h"\n'; printf '#include "hyb.h"\n' > tree/include/aijhybridgpu/private/hybspgemm.h; breaks include/aijhybridgpu/private/hybplan.h:1: "room plan may not include room spgemm"
fresh; add src/sparse/spgemm/host/x.c '#include "a.c"\n'; breaks src/sparse/spgemm/host/x.c:1: "never included"
fresh; add src/sparse/spgemm/cuda/x.cu '#include "../host/h.h"\n'; breaks src/sparse/spgemm/cuda/x.cu:1: "methods never include each other"
fresh; add src/sparse/tile/x.c 'int x;\n'; breaks src/sparse/tile/x.c:1: "no room that the rules know"
fresh; add src/mat/impls/x.c 'int x;\nvoid f(void) { k<<<1, 2>>>(); }\n'; breaks src/mat/impls/x.c:2: "launches no kernel"
fresh; add src/mat/impls/x.cu 'int x;\n'; breaks src/mat/impls/x.cu:1: "no CUDA file"
fresh; add src/mat/impls/x.c '#include <cuda_runtime.h>\n'; breaks src/mat/impls/x.c:1: "glue holds no CUDA"
fresh; add src/sparse/csr/x.cu 'void f(void) { k<<<1, 2>>>(); }\n'; breaks src/sparse/csr/x.cu:1: "HYB_LAUNCH alone"
fresh; add src/sparse/csr/x.cu 'void f(void) { asm volatile("nop;"); }\n'; breaks src/sparse/csr/x.cu:1: "inline PTX"
fresh; add src/sparse/spgemm/methods.h 'HYB_METHOD_HOST("gone", HybSpGEMM_Gone)\n'; breaks src/sparse/spgemm/methods.h:1: "HybSpGEMM_Gone is defined in no file"
fresh; add docs/x.md "see /ho""me/me/file\n"; breaks docs/x.md:1: "absolute path"
fresh; add docs/x.md "\n\nTO""DO: later\n"; breaks docs/x.md:3: "unfinished"
fresh; mkdir -p tree/docs; head -c 1100000 /dev/zero > tree/docs/big; breaks docs/big:1: "larger than 1 MB"
printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed = 0 ]

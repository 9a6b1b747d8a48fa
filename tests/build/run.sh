#!/bin/sh
# What the build promises: a method is one file and one line, and a test program that checks nothing fails. And
# tests/check-gpu ends when it is told to.
#
#   tests/build/run.sh BUILD      CC, PETSC_CFLAGS, PETSC_LIBS as the makefile has them; BUILD holds librooms.a and
#                                 tests/**/*.o
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
is() { if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; sed 's/^/  | /' "$tmp/out" | tail -n 15; fi; }
# shellcheck disable=SC2086
compile() { ${CC:-mpicc} -std=gnu99 -O1 -fPIC -Wall -Wextra -Werror -Wno-unused-parameter -I"$tmp/include" -I"$here/tests/harness" $(printf '%s' "$PETSC_CFLAGS" | sed 's/-I/-isystem /g') -c "$1" -o "$2" > "$tmp/out" 2>&1; }
# shellcheck disable=SC2086
link() { out=$1; shift; ${CC:-mpicc} -o "$out" "$@" "$build/librooms.a" $PETSC_LIBS -lm -ldl > "$tmp/out" 2>&1; }

# one file, one line
cp -r "$here/include" "$here/makefile" "$here/conf" "$here/src" "$here/tests" "$here/docs" "$tmp"
cp "$here/tests/build/toy.c" "$tmp/src/sparse/spgemm/toy.c"
echo 'HYB_METHOD_HOST("toy", HybSpGEMM_Toy)' >> "$tmp/src/sparse/spgemm/methods.h"
(cd "$tmp" && printf 'include makefile\nrooms:\n\t@echo $(ROOMS_SRC)\n' > rooms.mk && ${MAKE:-make} -s -f rooms.mk rooms PETSC_DIR="${PETSC_DIR:-}" PETSC_ARCH="${PETSC_ARCH:-}") > "$tmp/out" 2>&1
grep -q 'src/sparse/spgemm/toy\.c' "$tmp/out"; is "the makefile finds the method's file" $?
compile "$tmp/src/sparse/spgemm/toy.c" "$tmp/toy.o" && compile "$tmp/src/sparse/spgemm/spgemm.c" "$tmp/spgemm.o" &&
  link "$tmp/one_method" "$build/tests/spgemm/spgemm_methods.o" "$build/tests/harness/hybtest.o" "$build/tests/harness/hybmatrices.o" "$build/tests/harness/reference/ref.o" "$tmp/spgemm.o" "$tmp/toy.o"; is "it compiles and links" $?
"$tmp/one_method" -backend host -seed 1 -methods toy > "$tmp/out" 2>&1; is "the tests of all methods, on this one" $?
grep -qE '^[1-9][0-9]* passed, 0 failed' "$tmp/out"; is "there were some" $?
CHECKDEPS_COMPILE=0 "$here/conf/checkdeps" "$tmp" > "$tmp/out" 2>&1; is "the rules hold" $?
rm "$tmp/src/sparse/spgemm/toy.c"
! CHECKDEPS_COMPILE=0 "$here/conf/checkdeps" "$tmp" > "$tmp/out" 2>&1 && grep -q 'HybSpGEMM_Toy is defined in no file' "$tmp/out"; is "a line without a file is seen" $?

# nothing checked
cat > "$tmp/unit.c" <<'EOF'
#include "hybtest.h"
static PetscErrorCode Body(void)
{
  if (PetscDefined(CASE)) HybTestBegin("a case");
  return PETSC_SUCCESS;
}
int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
EOF
cat > "$tmp/mat.c" <<'EOF'
#include "mattest.h"
int main(int argc, char **argv)
{
  int code;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  (void)MatTestName;
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
EOF
for kind in '' '#define PETSC_CASE 1'; do
  { echo "$kind"; cat "$tmp/unit.c"; } > "$tmp/one.c"
  compile "$tmp/one.c" "$tmp/one.o" && link "$tmp/one" "$tmp/one.o" "$build/tests/harness/hybtest.o" "$build/tests/harness/hybmatrices.o" "$build/tests/harness/reference/ref.o"; is "a unit test without a check compiles" $?
  ! "$tmp/one" -backend host > "$tmp/out" 2>&1 && grep -q '^0 passed, 1 failed' "$tmp/out"; is "a unit test without a check fails ($kind)" $?
done
compile "$tmp/mat.c" "$tmp/mat.o" && link "$tmp/mat" "$tmp/mat.o"; is "a test of the type without a check compiles" $?
! "$tmp/mat" > "$tmp/out" 2>&1 && grep -q '^0 passed, 1 failed' "$tmp/out"; is "a test of the type without a check fails" $?

# check-gpu told to stop, with programs that would not end: not after the time that it has, and its report says so
mkdir "$tmp/bin"
for t in row_costs type_operations mat_products; do printf '#!/bin/sh\nexec sleep 300\n' > "$tmp/bin/$t" && chmod +x "$tmp/bin/$t"; done
began=$(date +%s)
CHECK_GPU_SECONDS=120 CHECK_GPU_RESULTS="$tmp/gpu" "$here/tests/check-gpu" unit "$tmp/bin" none none "$tmp/report" > "$tmp/out" 2>&1 &
child=$!
sleep 3
kill "$child"
wait "$child"
[ $? = 3 ] && [ $(($(date +%s) - began)) -lt 60 ] && grep -q 'left out, the time was up:.* row_costs' "$tmp/report"; is "check-gpu ends when it is told to, and says what it left out" $?
printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed = 0 ]

# What the tests of packages share: sourced by them. Each check is a command; its output is shown where it fails.
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here" || exit 2
passed=0 failed=0 skipped=0
check() { # what it is, command
  what=$1; shift
  if "$@" > "$work/out" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; tail -n 20 "$work/out" | sed 's/^/  | /'; fi
}
skip() { skipped=$((skipped + 1)); echo "SKIPPED: $*"; }
finish() { printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped; [ $failed = 0 ]; exit $?; }
version=$(sed -n 's/^#define PETSC_AIJHYBRIDGPU_VERSION "\(.*\)"/\1/p' include/petscmataijhybridgpu.h)
# the counts that the plugin leaves at the end: it was there, and did the work
did() { # file of -mat_aijhybridgpu_view_counts
  grep -Eq 'mult=[1-9]' "$1" && grep -Eq ' products=[1-9]' "$1" && grep -Eq ' fallback=0 ' "$1"
}

#!/bin/sh
# make install into a folder (and, by DESTDIR, into a staged one), a program compiled and linked against it by pkg-config alone, make uninstall.
#
#   tests/examples/install.sh FOLDER      MAKE and CC are the environment's
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here" || exit 2
mkdir -p "$1" && work=$(cd "$1" && pwd) || exit 2
passed=0 failed=0
check() { # what it is, command
  what=$1; shift
  if "$@" > "$work/out" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; sed 's/^/  | /' "$work/out" | head -n 20; fi
}
rm -rf "$work/prefix" "$work/stage"
check "make install PREFIX=" ${MAKE:-make} --no-print-directory install PREFIX="$work/prefix"
check "the library" test -s "$work/prefix/lib/libaijhybridgpu.so"
PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
# the header and the library of the prefix, nothing of this tree
cp examples/link.c "$work/program.c"
check "a program compiles and links by pkg-config" sh -c "cd '$work' && ${CC:-mpicc} program.c \$(pkg-config --cflags --libs aijhybridgpu) -o program"
check "it runs" sh -c "'$work/program' -n 20 | grep 'A\*A: 400 rows, 4804 nonzeros, type seqaijhybridgpu, computed by'"
check "it loads the installed library" sh -c "ldd '$work/program' | grep '$work/prefix/lib/libaijhybridgpu.so'"
check "make install DESTDIR=" ${MAKE:-make} --no-print-directory install PREFIX=/opt/hyb DESTDIR="$work/stage"
check "the staged pkg-config file names the prefix, not the stage" sh -c "grep -qx 'prefix=/opt/hyb' '$work/stage/opt/hyb/lib/pkgconfig/aijhybridgpu.pc'"
check "make uninstall" ${MAKE:-make} --no-print-directory uninstall PREFIX="$work/prefix"
check "uninstalling leaves no file" sh -c "! find '$work/prefix' -type f | grep ."
printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed = 0 ]

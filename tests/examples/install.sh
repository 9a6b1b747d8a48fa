#!/bin/sh
# make install into a folder (and, by DESTDIR, into a staged one), a program compiled and linked against it by
# pkg-config alone, make uninstall.
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
# one version in one place: the library's own name, what it exports, and the files are of it
version=$(sed -n 's/^#define PETSC_AIJHYBRIDGPU_VERSION "\(.*\)"/\1/p' include/petscmataijhybridgpu.h)
check "the file has the version" test -s "$work/prefix/lib/libaijhybridgpu.so.$version"
check "the library's own name" sh -c "readelf -d '$work/prefix/lib/libaijhybridgpu.so' | grep -F 'soname: [libaijhybridgpu.so.${version%.*}]' && test -e '$work/prefix/lib/libaijhybridgpu.so.${version%.*}'"
{ sed -n 's/^PETSC_EXTERN PetscErrorCode \([A-Za-z]*\)(.*/\1/p' include/petscmataijhybridgpu.h; echo PetscDLLibraryRegister_aijhybridgpu; } | sed "s/$/@@AIJHYBRIDGPU_${version%.*}/" | sort > "$work/promised"
check "it exports what the header promises and nothing else" sh -c "nm -D --defined-only '$work/prefix/lib/libaijhybridgpu.so' | awk '\$2 == \"T\" || \$2 ~ /[BDRW]/ { print \$3 }' | sort | diff '$work/promised' -"
check "pkg-config says the version" sh -c "test \"\$(pkg-config --modversion aijhybridgpu)\" = '$version'"
check "the manual page of each function" sh -c "for f in \$(sed 's/@.*//' '$work/promised' | grep -v Register); do test -s '$work/prefix/share/man/man3/'\$f.3 || exit 1; done"
for page in "$work"/prefix/share/man/man[37]/*; do check "man ${page##*/} without a warning" sh -c "! command -v man > /dev/null || test -z \"\$(MANWIDTH=80 man --warnings -l '$page' 2>&1 > '$work/page')\""; done
check "make install DESTDIR=" ${MAKE:-make} --no-print-directory install PREFIX=/opt/hyb DESTDIR="$work/stage"
check "the staged pkg-config file names the prefix, not the stage" sh -c "grep -qx 'prefix=/opt/hyb' '$work/stage/opt/hyb/lib/pkgconfig/aijhybridgpu.pc'"
check "make uninstall" ${MAKE:-make} --no-print-directory uninstall PREFIX="$work/prefix"
check "uninstalling leaves no file" sh -c "! find '$work/prefix' -type f | grep ."
printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed = 0 ]

#!/bin/sh
# make dist: the tarball holds the sources, is the same twice, and builds by `make` where no git is.
#
#   tests/packages/dist.sh FOLDER
set -u
mkdir -p "$1" && work=$(cd "$1" && pwd) || exit 2
. "$(dirname "$0")/common.sh"
name=petsc-aijhybridgpu-$version
rm -rf "$work/one" "$work/two" "$work/three" "${work:?}/$name"
check "make dist" ${MAKE:-make} -s --no-print-directory dist DIST="$work/one"
check "again" conf/dist "$work/two"
check "the same bytes" cmp "$work/one/$name.tar.gz" "$work/two/$name.tar.gz"
check "it unpacks into a folder of its name" tar -xzf "$work/one/$name.tar.gz" -C "$work"
check "it holds the sources, the tests and nothing built" sh -c "test -s '$work/$name/src/mat/register/dlregisaijhybridgpu.c' && test -s '$work/$name/tests/harness/hybtest.c' && test ! -e '$work/$name/build' && test ! -e '$work/$name/lib' && ! find '$work/$name' -name '*.o' -o -name '*.so' | grep ."
check "the tarball of the unpacked tarball is the same" sh -c "'$work/$name/conf/dist' '$work/three' && cmp '$work/one/$name.tar.gz' '$work/three/$name.tar.gz'"
# one object and the plan of the rest: the whole build is `make`'s own test
check "make works there" sh -c "cd '$work/$name' && ${MAKE:-make} -s CUDA=0 BUILD=build/x build/x/src/mat/register/dlregisaijhybridgpu.o && ${MAKE:-make} -n CUDA=0 BUILD=build/x LIBDIR=build/x/lib plugin | grep -F 'soname,libaijhybridgpu.so.${version%.*}'"
finish

#!/bin/sh
# ./configure --download-aijhybridgpu=TARBALL in PETSc's sources, as a user types it: the tarball is unpacked, PETSc's
# makefile gets its rule, and the rule builds the plugin into PETSC_ARCH, from where a program loads it. Then configure
# again over the same PETSC_ARCH: with the same tarball, with one of the same version and other contents, and with a
# newer version, which the rule then builds.
#
#   tests/packages/configure.sh FOLDER          PETSC_RELEASE (3.26.1): which one's sources
#
# All but PETSc's own library is made here. Compiling it takes too long, so it is taken from a build of the same release
# by conf/build-petsc, with whose options these sources are configured; where there is none, the rules are looked at and
# nothing is built by them.
set -u
mkdir -p "$1" && work=$(cd "$1" && pwd) || exit 2
. "$(dirname "$0")/common.sh"
release=${PETSC_RELEASE:-3.26.1}
unset PETSC_DIR PETSC_ARCH PETSC_OPTIONS MAKEFLAGS MFLAGS MAKELEVEL || true
dir=$work/petsc-$release arch=arch-here
rm -rf "$dir"
HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
cache=${AIJHYBRIDGPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aijhybridgpu}
built=
for kind in "nocuda opt" "cuda opt"; do
  # shellcheck disable=SC2086
  if found=$(conf/build-petsc --cached "$release" $kind); then built=${found% *}/${found#* } && break; fi
done
sources=$cache/petsc-$release.tar.gz
if [ ! -f "$sources" ]; then
  python3 -m pip download "petsc==$release" --no-deps --no-binary petsc -d "$work" > "$work/out" 2>&1 || { skip "the sources of PETSc $release: $(tail -n 1 "$work/out")"; finish; }
  sources=$work/petsc-$release.tar.gz
fi
check "PETSc's sources" tar -xzf "$sources" -C "$work"
cp conf/petsc/aijhybridgpu.py "$dir/config/BuildSystem/config/packages/"

# tarballs: these sources; the same version with a file more; a newer version
conf/dist "$work/one" > /dev/null 2>&1
one=$work/one/petsc-aijhybridgpu-$version.tar.gz
newer=${version%.*}.$((${version##*.} + 1))
tar -xzf "$one" -C "$work"
echo "another tarball" > "$work/petsc-aijhybridgpu-$version/other"
mkdir -p "$work/two" "$work/three"
tar -czf "$work/two/petsc-aijhybridgpu-$version.tar.gz" -C "$work" "petsc-aijhybridgpu-$version"
rm -rf "$work/petsc-aijhybridgpu-$newer"
mv "$work/petsc-aijhybridgpu-$version" "$work/petsc-aijhybridgpu-$newer"
sed "s/\(PETSC_AIJHYBRIDGPU_VERSION  *\)\"$version\"/\1\"$newer\"/" include/petscmataijhybridgpu.h > "$work/petsc-aijhybridgpu-$newer/include/petscmataijhybridgpu.h"
tar -czf "$work/three/petsc-aijhybridgpu-$newer.tar.gz" -C "$work" "petsc-aijhybridgpu-$newer"
rm -rf "$work/petsc-aijhybridgpu-$newer"

configure() { # tarball
  # shellcheck disable=SC2046
  (cd "$dir" && python3 ./configure PETSC_ARCH=$arch $(cat "$work/options") --download-aijhybridgpu="$1" --download-aijhybridgpu-cuda=0)
}
if [ -n "$built" ]; then # its options, but for the name
  sed -n "s/^    '\(-.*\|[A-Z]*FLAGS=.*\)',$/\1/p" "$built/lib/petsc/conf/reconfigure-${built##*/}.py" > "$work/options"
else
  echo "--with-debugging=0 --with-fc=0 --with-mpi-dir=${MPI_DIR:-/usr} --with-blaslapack-lib=-lopenblas --with-x=0" > "$work/options"
fi
unpacked() { ls -d "$dir/$arch/externalpackages/"petsc-aijhybridgpu-*; }
rules() { grep -q '^aijhybridgpubuild:' "$dir/$arch/lib/petsc/conf/petscrules" && grep -q "LIBDIR=build/lib-petsc CUDA=0 .*install" "$dir/$arch/lib/petsc/conf/petscrules"; }
build() { # and the test that PETSc's `make check` has of the package
  cp -P "$built"/lib/libpetsc.so* "$dir/$arch/lib/" &&
    make -C "$dir" PETSC_DIR="$dir" PETSC_ARCH=$arch aijhybridgpubuild &&
    make -C "$dir" PETSC_DIR="$dir" PETSC_ARCH=$arch aijhybridgpucheck
}
loads() { # version
  test -f "$dir/$arch/lib/libaijhybridgpu.so.$1" && test "$(readlink -f "$dir/$arch/lib/libaijhybridgpu.so")" = "$(readlink -f "$dir/$arch/lib/libaijhybridgpu.so.$1")"
}

check "configure with the tarball" configure "$one"
check "its sources are unpacked" test -f "$dir/$arch/externalpackages/petsc-aijhybridgpu-$version/src/mat/register/dlregisaijhybridgpu.c"
check "PETSc's makefile has the rule" rules
if [ -n "$built" ]; then
  check "the rule builds and installs it, and a program uses it" build
  check "it lies beside PETSc's library" loads "$version"
else
  skip "building by the rule: there is no PETSc $release of conf/build-petsc"
fi

again() { configure "$one" > "$work/again" 2>&1 && cat "$work/again" && grep -q 'options and state has not changed' "$work/again"; }
check "again with the same tarball: PETSc finds nothing to do" again
check "again with a tarball of the same version" configure "$work/two/petsc-aijhybridgpu-$version.tar.gz"
check "its sources took the others' place" test -f "$dir/$arch/externalpackages/petsc-aijhybridgpu-$version/other"
check "again with a newer version" configure "$work/three/petsc-aijhybridgpu-$newer.tar.gz"
check "the newer sources alone are there" test "$(unpacked 2> /dev/null)" = "$dir/$arch/externalpackages/petsc-aijhybridgpu-$newer"
check "PETSc's makefile has the rule still" rules
if [ -n "$built" ]; then
  check "the rule builds the newer one, and a program uses it" build
  check "it is the one that programs load" loads "$newer"
fi
finish

#!/bin/sh
# make deb: packages for the distribution's PETSc, looked at by lintian; installed, used by a program of petsc4py's and
# by one that links, and removed. Without root they are unpacked instead.
#
#   tests/packages/deb.sh FOLDER      DEB_CUDA=1 the CUDA part too (minutes)
set -u
mkdir -p "$1" && work=$(cd "$1" && pwd) || exit 2
. "$(dirname "$0")/common.sh"
if ! command -v dpkg-buildpackage > /dev/null 2>&1 || ! command -v dh > /dev/null 2>&1; then skip "debhelper and dpkg-dev are not installed (conf/prerequisites packages)"; finish; fi
DEB_CUDA=${DEB_CUDA:-0}
export DEB_CUDA
unset PETSC_DIR PETSC_ARCH PETSC_OPTIONS PKG_CONFIG_PATH
rm -rf "${work:?}"/*
check "make deb" sh -c "PATIENT_SECONDS=5 conf/deb '$work' 2> '$work/told' || { cat '$work/told'; exit 1; }"
check "it says every few seconds that it is at work, and where its log is" sh -c "cat '$work/told'; grep -q 'log in .*build.log' '$work/told' && grep -qE 'conf/deb: [0-9]+ s, .*[.](c|o|so)' '$work/told'"
if [ $failed != 0 ]; then finish; fi
if command -v lintian > /dev/null 2>&1; then check "lintian finds no error" sh -c "lintian --allow-root --no-tag-display-limit --fail-on error '$work'/*.changes"; else skip "lintian is not installed"; fi
host=$(ls "$work"/petsc-aijhybridgpu_"$version"-1_*.deb)
dev=$(ls "$work"/petsc-aijhybridgpu-dev_"$version"-1_*.deb)
cuda=$(ls "$work"/petsc-aijhybridgpu-cuda_"$version"-1_*.deb 2> /dev/null)
check "it depends on the PETSc that it was built for" sh -c "dpkg-deb -f '$host' Depends | grep -E 'libpetsc-real3[.][0-9]+'"
check "the -dev package on PETSc's headers" sh -c "dpkg-deb -f '$dev' Depends | grep -E 'libpetsc-real3[.][0-9]+-dev'"
if [ "$DEB_CUDA" != 0 ]; then check "the CUDA part" sh -c "dpkg-deb -c '$cuda' | grep petsc-aijhybridgpu/cuda/libaijhybridgpu_cuda.so"; fi
if [ "$(id -u)" = 0 ] && ! dpkg-query -W -f '${Status}' petsc-aijhybridgpu 2> /dev/null | grep -q 'install ok installed'; then
  root=
  # shellcheck disable=SC2086
  check "apt-get install" apt-get install -y -q -o DPkg::Lock::Timeout=300 --no-install-recommends "$host" "$dev" $cuda
else
  skip "not installed: no root, or it is there already; unpacked instead"
  root=$work/root
  for d in "$host" "$dev" $cuda; do dpkg-deb -x "$d" "$root"; done
fi
plugin=$(echo "$root"/usr/lib/*/petsc-aijhybridgpu/libaijhybridgpu.so)
check "the plugin lies where README says" test -s "$plugin"
doc=$root/usr/share/doc/petsc-aijhybridgpu
check "README.Debian names that place" grep -F -e "-dll_append ${plugin#"$root"} -mat_type aijhybridgpu" "$doc/README.Debian"
check "the pages for users are there, and so is what they lead to among them" sh -c "cd '$doc' && for p in start faq programs options gpus limits report; do test -s docs/\$p.md || exit 1; done; for l in \$(grep -oE '\]\(docs/(start|install|programs|options|gamg|report|faq|limits|gpus|methods|performance)[.]md' README.md | cut -c3-); do test -s \$l || { echo \$l; exit 1; }; done"
check "the maintainer is no address of Debian's that nobody gave" sh -c "! dpkg-deb -f '$host' Maintainer | grep packages.debian.org"
python=
for p in /usr/bin/python3 python3; do if [ -z "$python" ] && $p -c 'import petsc4py.PETSc' > /dev/null 2>&1; then python=$p; fi; done
if [ -n "$python" ]; then
  check "a program of petsc4py's with PETSC_OPTIONS alone" env PETSC_OPTIONS="-dll_append $plugin -mat_type aijhybridgpu -mat_aijhybridgpu_view_counts $work/counts" "$python" examples/poisson.py -n 12
  check "the type did the work" did "$work/counts"
else skip "no petsc4py (python3-petsc4py)"; fi
if [ -z "$root" ]; then
  check "a program that links it, by pkg-config alone" sh -c "mpicc examples/link.c \$(pkg-config --cflags --libs aijhybridgpu) -o '$work/link' && '$work/link' -n 20 | grep 'type seqaijhybridgpu, computed by'"
  check "man MATAIJHYBRIDGPU" sh -c "test -s /usr/share/man/man3/MATAIJHYBRIDGPU.3.gz && test -s /usr/share/man/man7/aijhybridgpu-options.7.gz"
  # shellcheck disable=SC2046
  check "removed" apt-get purge -y -q -o DPkg::Lock::Timeout=300 $(for d in "$dev" $cuda "$host"; do dpkg-deb -f "$d" Package; done)
  check "nothing is left" sh -c "! find /usr/lib/*/petsc-aijhybridgpu /usr/include/petscmataijhybridgpu.h /usr/share/doc/petsc-aijhybridgpu* 2> /dev/null | grep ."
fi
finish

#!/bin/sh
# What a command says on a machine that lacks something, where it is run by somebody who cannot install it: one line,
# with the command that mends it. And what works without PETSc, or in a folder with a space in its name, does.
#
#   tests/build/lacks.sh
#
# Such a machine is made of programs that say that nothing is installed, before the others in the path. The tree is a
# copy: nothing is built in this one.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
is() { if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; sed 's/^/  | /' "$tmp/out" | tail -n 15; fi; }
unset PETSC_DIR PETSC_ARCH PETSC_OPTIONS PKG_CONFIG_PATH MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES || true
apt='sudo apt-get update && sudo apt-get install --no-install-recommends'

tree="$tmp/a tree" bare=$tmp/bare
mkdir -p "$tree" "$bare" "$tmp/nosphinx"
(cd "$here" && tar -cf - .ci makefile conf include src examples docs python setup.py pyproject.toml benchmarks tests CHANGELOG.md CONTRIBUTING.md CITATION.cff LICENSE README.md) | tar -xf - -C "$tree"
for program in pkg-config dpkg-query; do printf '#!/bin/sh\nexit 1\n' > "$bare/$program"; done
printf '#!/bin/sh\necho 1000\n' > "$bare/id"
printf '#!/bin/sh\necho "fatal: detected dubious ownership" >&2\nexit 128\n' > "$bare/git"
mkdir "$tmp/all"
printf '#!/bin/sh\necho install ok installed\n' > "$tmp/all/dpkg-query"
chmod +x "$bare"/* "$tmp/all"/*
echo 'raise ImportError("not here")' > "$tmp/nosphinx/sphinx.py"
bare() { (cd "$tree" && PATH="$bare:$PATH" "$@") > "$tmp/out" 2>&1; }
says() { # what fails, the line; make's own last line may follow
  what=$1 line=$2
  shift 2
  ! bare "$@" && grep -qF -e "$line" "$tmp/out" && [ "$(grep -cvE '^make: \*\*\*|\*\*\* the line above|^words of commands' "$tmp/out")" = 1 ]
  is "$what" $?
}
make=${MAKE:-make}

says "make without PETSc" "$apt petsc-dev" $make -s
says "make check without PETSc" "$apt petsc-dev" $make -s check
says "make demo without PETSc" "$apt petsc-dev" $make -s demo CUDA=0
says "make deb without what it takes" "make deb: these are missing. Install them:  $apt build-essential debhelper petsc-dev" $make -s deb
says "make docs without Sphinx" "make docs: these are missing. Install them:  $apt python3-sphinx" env PYTHONPATH="$tmp/nosphinx" $make -s docs
bare $make -s help && grep -q '^make demo' "$tmp/out" && ! grep -q '^make dist' "$tmp/out" && [ "$(grep -c . "$tmp/out")" -le 12 ]
is "make help without PETSc: what users need, on a dozen lines" $?
bare $make -s help-all && grep -q '^make demo' "$tmp/out" && [ "$(grep -c '^make ' "$tmp/out")" = "$(cat makefile conf/*.mk | grep -c '^## make ')" ]
is "make help-all without PETSc: all there are" $?
bare $make -s dist && tar -tzf "$tree"/build/dist/*.tar.gz > "$tmp/out" && grep -q '/src/mat/register/dlregisaijhybridgpu.c' "$tmp/out"
is "make dist without PETSc and git, in a folder with a space" $?
bare $make -s uninstall PREFIX="$tmp/nowhere"
is "make uninstall without PETSc" $?

# pip shows the end of what setup.py says
python=
for p in python3 /usr/bin/python3; do if [ -z "$python" ] && $p -c 'import setuptools, wheel' 2> /dev/null; then python=$p; fi; done
if [ -n "$python" ]; then
  ! bare $python setup.py -q build_py && grep -qF "$apt petsc-dev" "$tmp/out" && tail -n 1 "$tmp/out" | grep -q '^petsc-aijhybridgpu: conf/findpetsc: no PETSc found' && ! grep -q Traceback "$tmp/out"
  is "pip without PETSc" $?
else
  echo "SKIPPED: pip without PETSc: Python has no setuptools or no wheel"
  skipped=1
fi

mkdir "$tree/.git"
says "make dist in a clone that git does not read" 'make dist: git does not read this clone: fatal: detected dubious ownership' $make -s dist
rmdir "$tree/.git"

mkdir "$tmp/nothing"
(cd "$tree" && CHECKDEPS_COMPILE=0 PATH=$tmp/nothing "$(python3 -c 'import sys; print(sys.executable)')" conf/checkdeps) > "$tmp/out" 2>&1
is "conf/checkdeps in an unpacked tarball, without git" $?

# PETSc is here again
says_here() { # the same with what there is
  what=$1 line=$2
  shift 2
  ! (cd "$tree" && FINDPETSC_INSTALL=0 "$@") > "$tmp/out" 2>&1 && grep -qF -e "$line" "$tmp/out"
  is "$what" $?
}
says_here "make check in a folder with a space" 'make: there is a space in ' $make -s check
says_here "make install below a folder with a space" 'make install: there is a space in ' $make -s install CUDA=0 PREFIX="$tmp/a prefix" -o all
(cd "$tree" && $make -n CUDA=0 examples) > "$tmp/out" 2>&1 && grep -qF -e "-Wl,-rpath,'$tree/build/" "$tmp/out"
is "examples in a folder with a space" $?
rm -rf "$tree/build" && : > "$tree/build"
says_here "make where nothing can be written" 'make: build cannot be written. Copy this folder' $make -s
says_here "make dist there" '(or: make dist DIST=FOLDER)' $make -s dist
says_here "make deb there" '(or: make deb DEB=FOLDER)' env PATH="$tmp/all:$PATH" $make -s deb
says_here "make docs there" '(or: make docs DOCS=FOLDER)' $make -s docs
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed = 0 ]

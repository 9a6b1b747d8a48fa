#!/bin/sh
# pip install . and an sdist, in an environment of their own beside the distribution's petsc4py; nothing comes from the
# network.
#
#   tests/packages/pip.sh FOLDER
set -u
mkdir -p "$1" && work=$(cd "$1" && pwd) || exit 2
. "$(dirname "$0")/common.sh"
python=/usr/bin/python3
for m in venv ensurepip setuptools wheel petsc4py; do
  $python -c "import $m" 2> /dev/null || { skip "the distribution's Python has no $m (conf/prerequisites packages)"; finish; }
done
unset PETSC_DIR PETSC_ARCH PETSC_OPTIONS PYTHONPATH
CUDA=0
export CUDA
rm -rf "$work/venv" "$work/a b" "$work/sdist" "$work/tree"
check "an environment" $python -m venv --system-site-packages "$work/venv"
v=$work/venv/bin
pip="$v/pip --disable-pip-version-check -q install --no-index --no-build-isolation --no-deps --force-reinstall"
check "an sdist" $python -c "import os, sys; sys.argv = ['setup.py', '-q', 'egg_info', '-e', '$work', 'sdist', '-d', '$work/sdist']; exec(open('setup.py').read(), {'__file__': os.path.abspath('setup.py'), '__name__': '__main__'})"
sdist=$(ls "$work"/sdist/petsc[-_]aijhybridgpu-"$version".tar.gz)
check "the sdist has what the tarball has" sh -c "conf/dist '$work/dist' && tar -tzf '$work/dist/petsc-aijhybridgpu-$version.tar.gz' | grep -E '/(src|include|conf|tests|python|examples|docs)/' | sed 's|^[^/]*/||' | sort > '$work/want' && tar -tzf '$sdist' | sed 's|^[^/]*/||' | sort | comm -23 '$work/want' - > '$work/lacks' && ! grep . '$work/lacks'"
check "pip install ." $pip .
cd "$work" || exit 2
used() { # how it was installed
  check "$1: python -m petsc_aijhybridgpu" sh -c "$v/python -m petsc_aijhybridgpu | grep -Ex -e '-dll_append $work/venv/.*/libaijhybridgpu.so -mat_type aijhybridgpu -dm_mat_type aijhybridgpu -mat_seqaij_type seqaijhybridgpu'"
  check "$1: python -m prints what init() sets" sh -c "test \"\$($v/python -m petsc_aijhybridgpu)\" = \"\$($v/python -c 'import os, petsc_aijhybridgpu; petsc_aijhybridgpu.init(); print(os.environ[\"PETSC_OPTIONS\"])')\""
  check "$1: --no-aij" sh -c "! $v/python -m petsc_aijhybridgpu --no-aij | grep seqaij_type"
  check "$1: the version" sh -c "test \"\$($v/python -c 'import petsc_aijhybridgpu; print(petsc_aijhybridgpu.__version__)')\" = $version"
  check "$1: the manual pages" sh -c "ls '$work/venv/share/man/man3/MATAIJHYBRIDGPU.3' '$work/venv/share/man/man7/aijhybridgpu-options.7'"
  rm -f counts
  check "$1: examples/poisson.py, which calls init()" $v/python "$here/examples/poisson.py" -n 12 -mat_aijhybridgpu_view_counts "$work/counts"
  check "$1: the type did the work" did counts
}
used "pip install ."
check "its line in PETSC_OPTIONS, for a program that knows nothing of it" sh -c "PETSC_OPTIONS=\"\$($v/python -m petsc_aijhybridgpu) -mat_aijhybridgpu_view_counts $work/counts2\" $python $here/examples/poisson.py -n 12"
check "the type did the work there" did counts2
check "a matrix that says AIJ" $v/python -c "
import petsc_aijhybridgpu
petsc_aijhybridgpu.init('-mat_aijhybridgpu_view_counts $work/counts3')
from petsc4py import PETSc
A = PETSc.Mat().createAIJ((10, 10), nnz=1)
for i in range(10): A[i, i] = 2
A.assemble()
B = A.matMult(A)
x, y = A.createVecs()
x.set(1)
B.mult(x, y)
assert abs(y.sum() - 40) < 1e-12, y.sum()
D = PETSc.Mat().createDense((4, 4))
D.setUp()
assert D.getType() == 'seqdense', D.getType()"
check "the type did the work there too" did counts3
check "a path with a blank, which PETSc does not take, is an error that says so" sh -c "mkdir -p '$work/a b' && cp -r '$work'/venv/lib/python3*/site-packages/petsc_aijhybridgpu '$work/a b/' && ! PYTHONPATH='$work/a b' $python -m petsc_aijhybridgpu 2> '$work/blank' && grep 'apart at blanks' '$work/blank'"
check "init(sys.argv) reads the command line" $v/python -c "
import sys
import petsc_aijhybridgpu
petsc_aijhybridgpu.init(['program', '-mine', '7'], aij=False)
from petsc4py import PETSc
assert PETSc.Options().getInt('mine') == 7
assert PETSc.Mat().createAIJ((4, 4), nnz=1).getType() == 'seqaij'
A = PETSc.Mat().create()
A.setSizes((4, 4))
A.setFromOptions()
assert A.getType() == 'seqaijhybridgpu', A.getType()"
check "init() of something else is an error that says so" sh -c "$v/python -c 'import petsc_aijhybridgpu; petsc_aijhybridgpu.init(3)' 2>&1 | grep 'takes a list, as sys.argv'"
check "a Python without petsc4py is told of" sh -c "$v/python -c 'import sys, runpy; sys.modules[\"petsc4py\"] = None; sys.argv = [\"x\"]; runpy.run_module(\"petsc_aijhybridgpu\", run_name=\"__main__\")' 2>&1 | grep 'has no petsc4py'"
check "the licence" sh -c "$v/pip --disable-pip-version-check show petsc-aijhybridgpu | grep -x 'License: BSD-2-Clause'"
check "too late is an error that says so" sh -c "$v/python -c 'from petsc4py import PETSc; import petsc_aijhybridgpu; petsc_aijhybridgpu.init()' 2>&1 | grep 'RuntimeError: petsc_aijhybridgpu.init() comes too late'"
check "uninstalled" $v/pip --disable-pip-version-check -q uninstall -y petsc-aijhybridgpu
check "nothing is left" sh -c "! find '$work/venv' -name '*aijhybridgpu*' | grep ."
if [ "${PIP_SDIST:-0}" = 1 ]; then # a build from nothing
  check "pip install SDIST" $pip "$sdist"
  used "the sdist"
fi
# which PETSc: the environment's, then pip's own, then what pkg-config finds
prefix=$(sed -n 's/^PETSC_PREFIX := //p' <<END
$("$here/conf/findpetsc")
END
)
site=$($v/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$site/petsc/lib/pkgconfig" && cp "$prefix/lib/pkgconfig/"[Pp][Ee][Tt][Ss][cC].pc "$site/petsc/lib/pkgconfig/"
ask() { (cd "$here" && $v/python -c "
import setuptools
setuptools.setup = lambda **k: None
import importlib.util
spec = importlib.util.spec_from_file_location('s', 'setup.py')
s = importlib.util.module_from_spec(spec)
spec.loader.exec_module(s)
print(s.environment().get('PETSC_DIR'))"); }
check "pip's own petsc is found" test "$(ask)" = "$site/petsc"
check "PETSC_DIR goes before it" test "$(PETSC_DIR=/somewhere/else ask)" = /somewhere/else
rm -r "$site/petsc"
check "without both it is left to pkg-config" test "$(ask)" = None
finish

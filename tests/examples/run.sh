#!/bin/sh
# Tests of examples/: the Matrix Market reader alone (readmm), and examples/solve from the command line.
#
#   tests/examples/run.sh READMM SOLVE PLUGIN SCALAR      MPIEXEC is the launcher
set -u
readmm=$1 solve=$2 plugin=$3 scalar=$4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); printf 'FAILED: %s\n' "$1"; shift; for f in "$@"; do sed 's/^/  | /' "$f" | head -n 20; done; }

reads() { # what it is, expected output; the file comes on standard input
  cat > "$tmp/in"
  printf '%b' "$2" > "$tmp/expected"
  if "$readmm" "$tmp/in" > "$tmp/out" 2> "$tmp/err" && cmp -s "$tmp/out" "$tmp/expected"; then ok; else bad "reads $1" "$tmp/in" "$tmp/expected" "$tmp/out" "$tmp/err"; fi
}
refuses() { # what it is, what the message must hold; the file (with \n) is the third argument
  printf "$3" > "$tmp/in"
  "$readmm" "$tmp/in" > "$tmp/out" 2> "$tmp/err"
  rc=$?
  if [ $rc = 1 ] && grep -qF -e "$2" "$tmp/err"; then ok; else bad "refuses $1 (exit $rc, expected: $2)" "$tmp/in" "$tmp/out" "$tmp/err"; fi
}

reads "a general matrix with comments, blank lines and a repeated entry" '2 x 3, 4 stored\n0 0 1.5\n1 2 -2\n0 0 3\n1 0 1e-10\n' <<'END'
%%MatrixMarket matrix coordinate real general
% a comment

   % another
2 3 4
1 1 1.5

2 3 -2
% between
1 1 3
 2   1	1e-10
END
reads "a symmetric matrix" '3 x 3, 3 stored\n0 0 2\n2 0 5\n0 2 5\n1 1 7\n' <<'END'
%%MatrixMarket MATRIX Coordinate Real Symmetric
3 3 3
1 1 2
3 1 5
2 2 7
END
reads "a symmetric matrix that holds its upper triangle" '2 x 2, 1 stored\n0 1 4\n1 0 4\n' <<'END'
%%MatrixMarket matrix coordinate integer symmetric
2 2 1
1 2 4
END
reads "a skew-symmetric matrix" '2 x 2, 1 stored\n1 0 4\n0 1 -4\n' <<'END'
%%MatrixMarket matrix coordinate real skew-symmetric
2 2 1
2 1 4
END
reads "a pattern" '2 x 2, 2 stored\n0 1 1\n1 0 1\n' <<'END'
%%MatrixMarket matrix coordinate pattern general
2 2 2
1 2
2 1
END
reads "a dense matrix by columns" '2 x 2, 4 stored\n0 0 1\n1 0 2\n0 1 3\n1 1 4\n' <<'END'
%%MatrixMarket matrix array real general
2 2
1
2
3
4
END
reads "a dense symmetric matrix" '2 x 2, 3 stored\n0 0 1\n1 0 2\n0 1 2\n1 1 3\n' <<'END'
%%MatrixMarket matrix array real symmetric
2 2
1
2
3
END
reads "a dense skew-symmetric matrix" '3 x 3, 3 stored\n1 0 1\n0 1 -1\n2 0 2\n0 2 -2\n2 1 3\n1 2 -3\n' <<'END'
%%MatrixMarket matrix array real skew-symmetric
3 3
1
2
3
END
reads "a matrix without entries" '5 x 4, 0 stored\n' <<'END'
%%MatrixMarket matrix coordinate real general
5 4 0
END
reads "a matrix without rows" '0 x 0, 0 stored\n' <<'END'
%%MatrixMarket matrix array real symmetric
0 0
END
if [ "$scalar" = complex ]; then
  reads "a Hermitian matrix" '2 x 2, 2 stored\n0 0 1\n1 0 2 3\n0 1 2 -3\n' <<'END'
%%MatrixMarket matrix coordinate complex hermitian
2 2 2
1 1 1 0
2 1 2 3
END
else
  refuses "complex values" "line 1: complex values" '%%%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n'
fi

h='%%%%MatrixMarket matrix coordinate real general\n'
refuses "an empty file" "the file is empty" ''
refuses "another file" "line 1: \"#!/bin/sh\" is not a Matrix Market" '#!/bin/sh\n'
refuses "a short first line" "line 1: 3 words" '%%%%MatrixMarket matrix coordinate\n'
refuses "an unknown field" "the field \"quaternion\" is none of" '%%%%MatrixMarket matrix coordinate quaternion general\n1 1 0\n'
refuses "an unknown format" "the format \"sparse\"" '%%%%MatrixMarket matrix sparse real general\n1 1 0\n'
refuses "an unknown symmetry" "the symmetry \"odd\"" '%%%%MatrixMarket matrix coordinate real odd\n1 1 0\n'
refuses "a vector" "the object is a \"vector\"" '%%%%MatrixMarket vector coordinate real general\n1 1 0\n'
refuses "a dense pattern" "an array file has values" '%%%%MatrixMarket matrix array pattern general\n1 1\n1\n'
refuses "no sizes" "the file ends before the line of sizes" "$h%% only comments\n"
refuses "negative sizes" "line 2: rows: -3 lies outside 0 to" "$h-3 3 1\n"
refuses "sizes beyond any integer" "line 2: columns: 99999999999999999999 does not fit" "$h""3 99999999999999999999 1\n"
refuses "no count" "line 2: entries: an integer is expected, not \"\"" "$h""3 3\n"
refuses "three sizes of an array" "line 2: \"4\" is more than expected: the sizes of an array are two numbers" "%%%%MatrixMarket matrix array real general\n3 3 4\n"
refuses "a number too many among the sizes" "line 2: \"4\" is more than expected" "$h""3 3 1 4\n"
refuses "a symmetric matrix that is not square" "line 2: 3 rows and 2 columns, but a symmetric matrix is square" '%%%%MatrixMarket matrix coordinate real symmetric\n3 2 1\n1 1 1\n'
refuses "entries in an empty matrix" "line 2: 1 entries in a matrix of 0 rows" "$h""0 3 1\n"
refuses "a row out of range" "line 3: row: 4 lies outside 1 to 3" "$h""3 3 1\n4 1 1\n"
refuses "row zero" "line 3: row: 0 lies outside 1 to 3" "$h""3 3 1\n0 1 1\n"
refuses "a column out of range" "line 4: column: 9 lies outside 1 to 3" "$h""3 3 2\n1 1 1\n1 9 1\n"
refuses "a missing value" "line 3: value: a number is expected, not \"\"" "$h""3 3 1\n1 1\n"
refuses "letters for a value" "line 3: value: a number is expected, not \"x7\"" "$h""3 3 1\n1 1 x7\n"
refuses "a real row" "line 3: row: an integer is expected, not \"1.5\"" "$h""3 3 1\n1.5 1 1\n"
refuses "a value that is no number" "nan is not a finite number" "$h""3 3 1\n1 1 nan\n"
refuses "a value out of range" "1e999 is not a finite number" "$h""3 3 1\n1 1 1e999\n"
refuses "a value too many" "line 3: \"2\" is more than expected" "$h""3 3 1\n1 1 1 2\n"
refuses "too few entries" "the file ends after 1 of 2 entries" "$h""3 3 2\n1 1 1\n"
refuses "too few of a count that nobody could store" "the file ends after 1 of 2000000000 entries" "$h""100000 100000 2000000000\n1 1 1\n"
refuses "too many entries" "line 4: \"2 2 2\" follows the last of 1 entries" "$h""3 3 1\n1 1 1\n2 2 2\n"
refuses "both triangles of a symmetric matrix" "line 4: the entry (1, 2) lies in the other triangle" '%%%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n1 2 1\n'
refuses "a skew-symmetric diagonal" "line 3: the diagonal entry 1 of a skew-symmetric matrix is 5" '%%%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 5\n'
refuses "a null byte" "line 3: a null byte" "$h""3 3 1\n1 1 \0001\n"
refuses "an endless line" "line 3: longer than" "$h""3 3 1\n$(printf '%05000d' 1) 1 1\n"

cat > "$tmp/a" <<'END'
%%MatrixMarket matrix coordinate real symmetric
% seed
4 4 5
1 1 2.5
2 1 -1e0
2 2 3
4 3 7
4 4 1
END
printf '%%%%MatrixMarket matrix array integer general\n2 3\n1\n2\n3\n-4\n5\n6\n' > "$tmp/b"
printf '%%%%MatrixMarket matrix coordinate pattern skew-symmetric\n3 3 2\n2 1\n3 2\n' > "$tmp/c"
if "$readmm" -mutate 20000 "$tmp/a" "$tmp/b" "$tmp/c" > "$tmp/out" 2> "$tmp/err"; then ok; else bad "mutated files (exit $?)" "$tmp/out" "$tmp/err"; fi

# a Laplacian on a path, its right-hand side for the solution 1, 2, ... 200, and both from the solver's own side
awk 'BEGIN { n = 200; print "%%MatrixMarket matrix coordinate real symmetric"; print n, n, 2 * n - 1; for (i = 1; i <= n; i++) { print i, i, 2; if (i > 1) print i, i - 1, -1 } }' > "$tmp/A.mtx"
awk 'BEGIN { n = 200; print "%%MatrixMarket matrix array real general"; print n, 1; for (i = 1; i < n; i++) print 0; print n + 1 }' > "$tmp/b.mtx"
awk 'NR == 4 { print 900, 1, 1; next } { print }' "$tmp/A.mtx" > "$tmp/damaged.mtx"
solves() { # what it is, how many processes, what the output must hold, options
  what=$1 np=$2 holds=$3; shift 3
  ${MPIEXEC:-mpiexec} -n "$np" "$solve" "$@" > "$tmp/out" 2>&1
  rc=$?
  if [ $rc = 0 ] && grep -q -e "$holds" "$tmp/out"; then ok; else bad "solve: $what (exit $rc, expected: $holds)" "$tmp/out"; fi
}
fails() { # what it is, exit status (- any but 0), what the output must hold, options
  what=$1 status=$2 holds=$3; shift 3
  "$solve" "$@" > "$tmp/out" 2>&1
  rc=$?
  if { [ "$status" = "$rc" ] || { [ "$status" = - ] && [ $rc != 0 ]; }; } && grep -qF -e "$holds" "$tmp/out"; then ok; else bad "solve: $what (exit $rc, expected: $status, $holds)" "$tmp/out"; fi
}
use="-dll_append $plugin -mat_type aijhybridgpu"
direct="-ksp_type preonly -pc_type lu"
# shellcheck disable=SC2086
{
solves "a direct solve" 1 'error  *|x - 1| / |1| = [0-9.]*e-1[0-9]' -A "$tmp/A.mtx" $direct
solves "the same with the plugin's type" 1 'type seqaijhybridgpu, 1 process' -A "$tmp/A.mtx" $direct $use
solves "a right-hand side, the solution written" 1 'residual .*e-1[0-9]$' -A "$tmp/A.mtx" -b "$tmp/b.mtx" -x "$tmp/x.bin" $direct $use
if [ -s "$tmp/x.bin" ]; then solves "a right-hand side in PETSc's binary format" 1 'CONVERGED_RTOL' -A "$tmp/A.mtx" -b "$tmp/x.bin" -ksp_type cg -ksp_max_it 1000; else bad "solve: -x wrote nothing"; fi
solves "CG and GAMG, solved again" 1 'again [0-9.]* s' -A "$tmp/A.mtx" -ksp_type cg -pc_type gamg -solves 2 $use
for k in "preconditioned residual:-ksp_type cg" "true residual:-ksp_type cg -ksp_norm_type unpreconditioned" "natural norm:-ksp_type cg -ksp_norm_type natural" "true residual:-ksp_type gmres -ksp_pc_side right" "no residual computed:$direct"; do
  solves "which residual converged, ${k#*:}" 1 "iterations* (${k%%:*})$" -A "$tmp/A.mtx" ${k#*:}
done
if python3 "$(dirname "$0")/../../examples/elasticity.py" 4 > "$tmp/elastic.mtx"; then
  solves "elasticity.py's matrix" 1 'matrix .*: 300 x 300, .*block size 3' -A "$tmp/elastic.mtx" -block_size 3 -ksp_type cg -pc_type gamg $use
  solves "elasticity.py's matrix is positive definite" 1 'error  *|x - 1| / |1| = [0-9.]*e-1[0-9]' -A "$tmp/elastic.mtx" -ksp_type preonly -pc_type cholesky
fi
solves "standard input" 1 'standard\|CONVERGED' -A - -ksp_type cg -pc_type jacobi $use < "$tmp/A.mtx"
solves "two processes" 2 'type mpiaijhybridgpu, 2 processes' -A "$tmp/A.mtx" -b "$tmp/b.mtx" -ksp_type cg -pc_type gamg $use
solves "three processes" 3 'CONVERGED_RTOL' -A "$tmp/A.mtx" -ksp_type gmres -pc_type bjacobi $use
solves "a block size" 1 'block size 2' -A "$tmp/A.mtx" -block_size 2 -ksp_type cg -pc_type gamg $use
levels() { "$solve" -A "$tmp/A.mtx" -block_size 2 -ksp_type cg -pc_type gamg -pc_gamg_coarse_eq_limit 10 -ksp_view "$@" 2>&1 | sed -n '/level [0-9]/p; /rows=/p'; }
levels -mat_type aij > "$tmp/expected"
levels $use > "$tmp/out"
if grep -q 'level 2 ' "$tmp/expected" && grep -q 'bs=2' "$tmp/expected" && cmp -s "$tmp/expected" "$tmp/out"; then ok; else bad "solve: GAMG's levels, their sizes and block sizes as with aij" "$tmp/expected" "$tmp/out"; fi
fails "no convergence" 1 DIVERGED_ITS -A "$tmp/A.mtx" -ksp_type cg -pc_type none -ksp_max_it 3 $use
fails "no matrix" - 'Give the matrix: -A' -ksp_type cg
fails "a file that is not there" - 'Cannot open' -A "$tmp/none.mtx"
fails "a block size that does not divide" - '-block_size 3 does not divide 200 rows' -A "$tmp/A.mtx" -block_size 3
fails "a right-hand side of another length" - '2 x 3; the right-hand side of this matrix is 200 x 1' -A "$tmp/A.mtx" -b "$tmp/b"
fails "a matrix that is not square" - 'is 2 x 3; a linear system is square' -A "$tmp/b"
fails "a damaged file" - 'line 4: row: 900 lies outside 1 to 200' -A "$tmp/damaged.mtx" -ksp_type cg
}

# the other two that people copy: Newton's steps beside aij, and petsc4py's where it is there for this PETSc
newton=$(dirname "$solve")/newton
steps() { "$newton" -n 40 "$@" 2>&1 | grep -v '^times\|type'; }
for k in '' '-pc_type jacobi'; do
  # shellcheck disable=SC2086
  steps -mat_type aij $k > "$tmp/expected"
  # shellcheck disable=SC2086
  steps -dll_append "$plugin" -mat_type aijhybridgpu -mat_aijhybridgpu_view_counts "$tmp/counts" $k > "$tmp/out"
  # the last digits of a residual are rounding's
  sed 's/\(|F(u)| = [0-9.]\{4\}\)[0-9]*/\1/; /step *4/d' "$tmp/expected" > "$tmp/e" && sed 's/\(|F(u)| = [0-9.]\{4\}\)[0-9]*/\1/; /step *4/d' "$tmp/out" > "$tmp/o"
  if grep -q '^converged after 4 steps' "$tmp/o" && cmp -s "$tmp/e" "$tmp/o" && grep -q 'mult=[1-9]' "$tmp/counts"; then ok; else bad "newton $k: the steps as with aij" "$tmp/expected" "$tmp/out"; fi
done
"$newton" -n 20 -steps 1 > "$tmp/out" 2>&1
if [ $? = 1 ] && grep -q '^NOT converged after 1 steps' "$tmp/out"; then ok; else bad "newton: too few steps is exit status 1" "$tmp/out"; fi
"${MPIEXEC:-mpiexec}" -n 2 "$newton" -n 40 -dll_append "$plugin" -mat_type aijhybridgpu > "$tmp/out" 2>&1
if grep -q 'type mpiaijhybridgpu' "$tmp/out" && grep -q '^converged after 4 steps' "$tmp/out"; then ok; else bad "newton on two processes" "$tmp/out"; fi
here=$(cd "$(dirname "$0")/../.." && pwd)
python=
for p in python3 /usr/bin/python3; do
  # this PETSc's petsc4py: a plugin of another release, or of other scalars, is refused
  if [ -z "$python" ] && PETSC_OPTIONS="-dll_append $plugin" $p -c 'import numpy, petsc4py.PETSc' > /dev/null 2>&1; then python=$p; fi
done
if [ -n "$python" ]; then
  rm -f "$tmp/counts"
  if PETSC_OPTIONS="-dll_append $plugin -mat_type aijhybridgpu -mat_aijhybridgpu_view_counts $tmp/counts" $python "$here/examples/poisson.py" -n 12 > "$tmp/out" 2>&1 && grep -q 'products=[1-9]' "$tmp/counts"; then ok; else bad "poisson.py" "$tmp/out"; fi
else skipped=$((skipped + 1)); echo "SKIPPED: poisson.py: no petsc4py for this PETSc (python3-petsc4py)"; fi
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed = 0 ]

/*
  tentativeblocks.c: the tentative prolongator of several near-null vectors. The rows of an aggregate's vertices, in the
  order of its list, are a block B of m x nvec; Q of B = Q R are its rows of P0, R the rows of the next level's vectors.

  Householder's reflections, column by column, with LAPACK's signs (dgeqr2, dlarfg, dorg2r): the diagonal of R gets the
  sign that is not alpha's, and nothing is done where a column is zero below its diagonal. A block of fewer rows than
  vectors is filled up with rows of zeros: those get no reflection, R's rows and Q's columns of them are zero.

    for j < min(m, nvec):
      norm of column j below row j; zero: tau = 0
      else (beta, tau, v) take it to (beta, 0);  B(:,c) -= tau v (v^T B(:,c)), c > j
    R = the upper triangle
    for j from last to first:  Q(:,c) -= tau v (v^T Q(:,c)), c > j;  Q(:,j) = e_j - tau v

  Sums run in 32 interleaved parts, rows k = l modulo 32 in part l, and the parts are added by halves: so a warp does
  them, and the host's processor takes several at once; both give the same bits.

  Which aggregates are doubtful. Signs follow that of alpha, which on a regular grid is zero wherever a root lies in the
  middle of its aggregate: then rounding decides, in LAPACK too. The same holds where hardly anything is left of a
  vector (vertices on one line have no rotation about it), or below its pivot. A column that no reflection has changed
  is exact.

  An aggregate of fewer rows than vectors is doubtful too, unless it is exact: nothing in it is rounding, but its
  vectors depend on each other on the level below, where Q is rounding if all members of an aggregate are such ones.
  With a factor of the caller's their rows of R are its own to the last bit, level by level, and so is that rounding:
  only of members whose vectors depend on each other can an aggregate be made whose vectors do.

  With a factor of the caller's (PETSc's LAPACK) every block is factored by that on the host: R is then PETSc's to the
  last bit on every level, and so is Q where the vectors depend on each other and Q is rounding.

  Near-null vectors are real, and so are Q and R: of complex numbers PETSc's LAPACK factors the same with imaginary
  parts that stay 0.

  Memory: the largest block, twice. Time: O(n bs nvec^2).

  Reference: G. H. Golub, C. F. Van Loan, Matrix Computations, 5.1 and 5.2; LAPACK Working Note 203 for the signs.
*/
#include "agghost.h"
#include "column.h"

#define HYB_BLOCK_PARTS 32

static PetscReal HybBlockAddParts(PetscReal *part)
{
  for (int d = HYB_BLOCK_PARTS / 2; d > 0; d /= 2)
    for (int l = 0; l < d; l++) part[l] += part[l + d];
  return part[0];
}

/* the norm of x[from..m-1]; 0 only for zeros */
static PetscReal HybBlockNorm(PetscInt from, PetscInt m, const PetscReal *x)
{
  PetscReal part[HYB_BLOCK_PARTS] = {0}, sum, most = 0, scale;

  for (PetscInt k = from; k < m; k++) part[k % HYB_BLOCK_PARTS] += x[k] * x[k];
  sum = HybBlockAddParts(part);
  if (!HybAggExtreme(sum)) return PetscSqrtReal(sum);
  for (PetscInt k = from; k < m; k++) most = HybAggLarger(most, x[k]);
  if (most == 0) return 0;
  scale = HybAggScale(most, 0);
  for (int l = 0; l < HYB_BLOCK_PARTS; l++) part[l] = 0;
  for (PetscInt k = from; k < m; k++) part[k % HYB_BLOCK_PARTS] = HybAggAddSquare(part[k % HYB_BLOCK_PARTS], x[k], scale);
  return PetscSqrtReal(HybBlockAddParts(part)) / scale;
}

/* x -= tau v (v^T x) from row j on, v(j) = 1; did that change x? */
static PetscBool HybBlockReflect(PetscInt j, PetscInt m, PetscReal tau, const PetscReal *v, PetscReal *x)
{
  PetscReal part[HYB_BLOCK_PARTS] = {0}, w;

  part[j % HYB_BLOCK_PARTS] = x[j];
  for (PetscInt k = j + 1; k < m; k++) part[k % HYB_BLOCK_PARTS] += v[k] * x[k];
  w = tau * HybBlockAddParts(part);
  x[j] -= w;
  for (PetscInt k = j + 1; k < m; k++) x[k] -= v[k] * w;
  return (PetscBool)(w != 0);
}

/* is any of the steps rounding, or will one be on the level below? */
static PetscBool HybBlockDoubtful(PetscInt m, PetscInt n, const PetscReal *R, const PetscReal *alpha, const PetscReal *norm, const PetscBool *changed)
{
  for (PetscInt c = 0; c < n; c++) {
    PetscReal most = 0;

    if (m < n && changed[c]) return PETSC_TRUE;
    for (PetscInt k = 0; k <= c; k++) most = HybAggLarger(most, R[c * n + k]);
    if (changed[c] && HybAggDoubtful(R[c * n + c], alpha[c], norm[c], (PetscBool)(c == m - 1), most)) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

/* B, m x n by columns ld apart, becomes Q; R is n x n by columns */
static void HybBlockFactor(PetscInt m, PetscInt n, PetscInt ld, PetscReal *B, PetscReal *R, PetscBool *doubtful)
{
  const PetscInt steps = PetscMin(m, n);
  PetscReal      tau[HYB_AGG_VECTORS], alpha[HYB_AGG_VECTORS], norm[HYB_AGG_VECTORS];
  PetscBool      changed[HYB_AGG_VECTORS] = {PETSC_FALSE};

  for (PetscInt j = 0; j < steps; j++) {
    PetscReal *b = B + (size_t)j * ld, beta, divisor;

    norm[j]  = HybBlockNorm(j + 1, m, b);
    alpha[j] = b[j];
    tau[j]   = 0;
    if (norm[j] == 0) continue;
    HybAggReflect(b[j], norm[j], &beta, &tau[j], &divisor);
    for (PetscInt k = j + 1; k < m; k++) b[k] /= divisor;
    for (PetscInt c = j + 1; c < n; c++) {
      if (HybBlockReflect(j, m, tau[j], b, B + (size_t)c * ld)) changed[c] = PETSC_TRUE;
    }
    b[j] = beta;
  }
  for (PetscInt c = 0; c < n; c++)
    for (PetscInt k = 0; k < n; k++) R[c * n + k] = k <= c && k < steps ? B[(size_t)c * ld + k] : 0;
  *doubtful = HybBlockDoubtful(m, n, R, alpha, norm, changed);
  for (PetscInt c = steps; c < n; c++)
    for (PetscInt k = 0; k < m; k++) B[(size_t)c * ld + k] = 0;
  for (PetscInt j = steps - 1; j >= 0; j--) {
    PetscReal *b = B + (size_t)j * ld;

    for (PetscInt c = j + 1; c < n && tau[j] != 0; c++) (void)HybBlockReflect(j, m, tau[j], b, B + (size_t)c * ld);
    for (PetscInt k = j + 1; k < m; k++) b[k] = tau[j] == 0 ? 0 : -tau[j] * b[k];
    b[j] = 1 - tau[j];
    for (PetscInt k = 0; k < j; k++) b[k] = 0;
  }
}

PetscErrorCode HybAggTentative_Host(const HybExec *exec, HybArena *work, const HybAggregates *agg, const HybAggLists *lists, const HybAggBlock *block, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *q, HybScalar *coarse, PetscInt *doubtful)
{
  const PetscInt bs = block->bs, nvec = block->nvec, nc = agg->nc;
  const size_t   ld = (size_t)agg->n * bs, coarseld = (size_t)nc * nvec;
  PetscInt       most = 0, found = 0;
  PetscReal     *B, R[HYB_AGG_VECTORS * HYB_AGG_VECTORS];

  PetscFunctionBegin;
  if (doubtful) *doubtful = 0;
  if (HybAggIsScalar(block)) {
    PetscCall(HybAggColumns_Host(exec, work, agg, b, q, coarse));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(nvec >= 1 && nvec <= HYB_AGG_VECTORS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "1 to %d near-null vectors are factored, not %" PetscInt_FMT, HYB_AGG_VECTORS, nvec);
  PetscCheck(b || nvec == bs, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "Of %" PetscInt_FMT " unknowns a vertex there are as many translations, not %" PetscInt_FMT, bs, nvec);
  for (PetscInt c = 0; c < nc; c++) most = PetscMax(most, lists->begin[c + 1] - lists->begin[c]);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), PetscMax((PetscCount)most * bs, nvec) * nvec, sizeof(PetscReal), &B));
  PetscCall(PetscArrayzero(q, ld * nvec));
  for (PetscInt c = 0; c < nc; c++) {
    const PetscInt *member = lists->member + lists->begin[c], m = (lists->begin[c + 1] - lists->begin[c]) * bs, rows = PetscMax(m, nvec);
    PetscBool       doubt = PETSC_FALSE;

    for (PetscInt t = 0; t < nvec; t++) {
      PetscReal *to = B + (size_t)t * rows;

      for (PetscInt k = 0; k < m; k += bs) {
        for (PetscInt u = 0; u < bs; u++) to[k + u] = b ? HYB_AGG_REAL(b[(size_t)t * ld + (size_t)member[k / bs] * bs + u]) : (PetscReal)(u == t);
      }
      for (PetscInt k = m; k < rows; k++) to[k] = 0;
    }
    if (factor)
      PetscCall((*factor)(ctx, rows, nvec, B, R));
    else
      HybBlockFactor(m, nvec, rows, B, R, &doubt);
    found += doubt;
    for (PetscInt t = 0; t < nvec; t++) {
      for (PetscInt k = 0; k < nvec; k++) coarse[t * coarseld + (size_t)c * nvec + k] = R[t * nvec + k];
    }
    for (PetscInt k = 0; k < m; k++) {
      for (PetscInt t = 0; t < nvec; t++) q[((size_t)member[k / bs] * bs + k % bs) * nvec + t] = B[(size_t)t * rows + k];
    }
  }
  PetscCall(HybArenaFree(work, &B));
  if (doubtful) *doubtful = found;
  PetscFunctionReturn(PETSC_SUCCESS);
}

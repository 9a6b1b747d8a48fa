/*
  plan.c: row costs, bins and row order on the host.

  Row costs: the intermediate products of row r of A*B are the lengths of the rows of B that row r of A names, added up
  (bhSPARSE's first stage, upper bounds). One pass over A's columns and B's offsets, no memory beside the result.

  Bins: a counting sort of the rows by cost class. Count, prefix sum, place; rows keep their order within a bin, so
  memory is walked forwards. O(m log nbins) time, O(nbins) memory beside the result.

  Reference: Liu, Vinter, A framework for general sparse matrix-matrix multiplication on GPUs and heterogeneous
  processors, JPDC 85 (2015).
*/
#include <aijhybridgpu/private/hybplan.h>

static PetscErrorCode HybPlanProducts_Host(const HybExec *exec, HybArena *work, const HybCSR *A, const HybCSR *B, PetscCount *rowproducts, HybPlanStats *stats)
{
  const PetscInt *bi = B->i;
  HybPlanStats    s  = {0, 0, 0, 0, 0, 0};

  PetscFunctionBegin;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt alen = A->i[r + 1] - A->i[r];
    PetscCount     sum  = 0;
    PetscInt       most = 0;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt len = bi[A->j[k] + 1] - bi[A->j[k]];

      sum += len;
      if (len > most) most = len;
    }
    if (rowproducts) rowproducts[r] = sum;
    s.products += sum;
    s.lower += most;
    s.maxrow  = PetscMax(s.maxrow, sum);
    s.maxarow = PetscMax(s.maxarow, alen);
    s.maxbrow = PetscMax(s.maxbrow, most);
    for (PetscInt back = 1; back <= PetscMin(3, r); back++) {
      const PetscInt begin = A->i[r - back], end = A->i[r - back + 1];

      if (end - begin == alen && (!alen || A->j[end - 1] - A->j[begin] == A->j[A->i[r + 1] - 1] - A->j[A->i[r]])) {
        s.alike++;
        break;
      }
    }
  }
  if (stats) *stats = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* first bin whose limit is not exceeded */
static inline PetscInt HybPlanBin(PetscCount cost, PetscInt nbins, const PetscCount *limit)
{
  PetscInt lo = 0, hi = nbins - 1;

  while (lo < hi) {
    const PetscInt mid = lo + (hi - lo) / 2;

    if (cost <= limit[mid])
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

static PetscErrorCode HybPlanBins_Host(const HybExec *exec, HybArena *work, PetscInt m, const PetscCount *cost, PetscInt nbins, const PetscCount *limit, PetscInt *order, PetscInt *binptr)
{
  PetscFunctionBegin;
  PetscCheck(nbins > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "The number of bins must be positive, not %" PetscInt_FMT, nbins);
  for (PetscInt b = 0; b + 2 < nbins; b++) PetscCheck(limit[b] < limit[b + 1], PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "The limits of bins must ascend: number %" PetscInt_FMT " is %" PetscCount_FMT ", the next %" PetscCount_FMT, b, limit[b], limit[b + 1]);
  for (PetscInt b = 0; b <= nbins; b++) binptr[b] = 0;
  /* binptr[b+1] counts bin b, then is the place of its next row, then, shifted, the start of the next bin */
  for (PetscInt r = 0; r < m; r++) binptr[HybPlanBin(cost[r], nbins, limit) + 1]++;
  for (PetscInt b = 0; b < nbins; b++) binptr[b + 1] += binptr[b];
  for (PetscInt b = nbins; b > 0; b--) binptr[b] = binptr[b - 1];
  for (PetscInt r = 0; r < m; r++) order[binptr[HybPlanBin(cost[r], nbins, limit) + 1]++] = r;
  binptr[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybPlanOps HybPlanHost = {
  .products = HybPlanProducts_Host,
  .bins     = HybPlanBins_Host,
};

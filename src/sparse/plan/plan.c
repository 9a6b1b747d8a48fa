/*
  plan.c: row costs on the host.

  Row costs: the intermediate products of row r of A*B are the lengths of the rows of B that row r of A names, added up
  (bhSPARSE's first stage, upper bounds). One pass over A's columns and B's offsets, no memory beside the result.

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

const HybPlanOps HybPlanHost = {
  .products = HybPlanProducts_Host,
};

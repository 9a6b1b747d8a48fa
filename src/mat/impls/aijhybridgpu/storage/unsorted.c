/*
  Operands of products whose rows are not sorted, as some arrays of a program's own (MatCreateSeqAIJWithArrays()): the
  methods go by ascending columns, AIJ does not. Such an operand is sorted into a copy, in each phase anew, since the
  program may write its arrays past all functions. Columns that a row has more than once are added up.
*/
#include "storage.h"
#include "aijhybridgpu/private/hybcsrcopy.h"

/* the first row with a column that is not there, -1: none */
static PetscInt HybRowsFirstOutside(const HybCSR *csr)
{
  for (PetscInt r = 0; r < csr->m; r++) {
    if (csr->i[r] < 0 || csr->i[r + 1] < csr->i[r] || (PetscCount)csr->i[r + 1] > csr->nnz) return r;
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++)
      if (csr->j[k] < 0 || csr->j[k] >= csr->n) return r;
  }
  return -1;
}

/* Equal columns stand beside each other */
static void HybRowsAddRepeated(HybCSR *csr)
{
  PetscInt n = 0, begin = 0;

  for (PetscInt r = 0; r < csr->m; r++) {
    const PetscInt end = csr->i[r + 1], first = n;

    for (PetscInt k = begin; k < end; k++) {
      if (n > first && csr->j[n - 1] == csr->j[k]) {
        if (csr->a) csr->a[n - 1] += csr->a[k];
        continue;
      }
      csr->j[n] = csr->j[k];
      if (csr->a) csr->a[n] = csr->a[k];
      n++;
    }
    begin         = end;
    csr->i[r + 1] = n;
  }
  csr->nnz = n;
}

/* to: which column each one becomes, NULL: itself */
static PetscErrorCode HybRowsSort(const HybCSR *A, const PetscInt *to, HybArena *copies, HybArena *work, HybCSR *sorted)
{
  PetscInt *perm = NULL, *same = NULL;

  PetscFunctionBegin;
  if (!to) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, A->n, sizeof(PetscInt), &same));
    for (PetscInt c = 0; c < A->n; c++) same[c] = c;
  }
  PetscCall(HybBackendHost.csr->submatrixmapped(&HybExecHost, copies, work, A, A->m, NULL, A->n, to ? to : same, PETSC_FALSE, sorted, &perm));
  if (A->a) {
    PetscCall(HybArenaAlloc(copies, HYB_MEM_HOST, A->nnz, sizeof(HybScalar), &sorted->a));
    PetscCall(HybBackendHost.csr->gather(&HybExecHost, A->nnz, perm, PETSC_FALSE, A->a, sorted->a));
  }
  HybRowsAddRepeated(sorted);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLentSort(Mat A, const HybLent *l, const HybExec *x, const PetscInt *to, const char *role, HybArena *copies, HybCSR *csr, PetscBool *copied)
{
  HybCSR     sorted;
  PetscCount nbad;
  PetscInt   badrow;
  HybArena   work = HybArenaOn(&HybExecHost);

  PetscFunctionBegin;
  PetscCall(HybRowsLook(A, &l->key, x, csr, &nbad, &badrow));
  if (!nbad && !to) PetscFunctionReturn(PETSC_SUCCESS);
  if (nbad) badrow = HybRowsFirstOutside(&l->csr);
  PetscCheck(!nbad || badrow < 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %s of the product (%" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros) has columns that are out of range; the first are in row %" PetscInt_FMT ". Look at the arrays that were handed to PETSc", role, l->csr.m, l->csr.n, (PetscInt64)l->csr.nnz,
             badrow);
  if (!*copied) PetscCall(PetscInfo(A, "Operand %s of a product (%" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros) has %" PetscInt64_FMT " rows whose columns do not ascend: each phase takes a sorted copy. Sorted arrays save that, or MatSetValues()\n", role, l->csr.m, l->csr.n, (PetscInt64)l->csr.nnz, (PetscInt64)nbad));
  *copied = PETSC_TRUE;
  HybCallBoth(HybRowsSort(&l->csr, to, copies, &work, &sorted), HybArenaReset(&work));
  if (HybExecOnDevice(x)) {
    PetscCall(HybCSRCopy(x, copies, HYB_MEM_DEVICE, &sorted, (PetscBool)(sorted.a != NULL), HYB_COPY_HOST_TO_DEVICE, csr));
    PetscCall(x->backend->sync(x));
    PetscCall(HybLogToDevice(sizeof(PetscInt) * ((PetscLogDouble)sorted.nnz + sorted.m + 1) + (sorted.a ? sizeof(HybScalar) * (PetscLogDouble)sorted.nnz : 0)));
  } else
    *csr = sorted;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  transpose.c: T = A^T on the host by counting, in two halves, so that new values cost one gather.

  Idea (Gustavson): count the entries of each column, scan the counts into T's row offsets, then walk A row by row and
  put each entry at the next free place of its column. Rows of A come in ascending order, so the rows of T come out
  sorted without sorting.

    T.i[c+1] = number of entries in column c;  scan
    for r, for k in row r of A:
      p = T.i[j[k]+1]++;  T.j[p] = r;  perm[p] = k

  The offsets are kept one place ahead, T.i[c+1] = first place of row c, so that after the walk, when each has moved on
  by its row's length, T.i is the array of offsets itself: no second array is needed.

  perm remembers where each entry came from: T.a = A.a[perm], conjugated if asked, any number of times.

  Memory: nothing beside the results, (n+1) + 2 nnz integers. Time: O(m + n + nnz), two reads of j; the writes scatter
  over T.

  Reference: F. Gustavson, Two fast algorithms for sparse matrices: multiplication and permuted transposition, ACM TOMS
  4(3), 1978.
*/
#include "csrlist.h"

PetscErrorCode HybCSRTransposeSymbolic_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *T, PetscInt **perm)
{
  const PetscInt   m = A->m, n = A->n;
  const PetscCount nnz = A->nnz;
  const PetscInt  *ai = A->i, *aj = A->j;
  PetscInt        *ti, *tj, *p, sum = 0;

  PetscFunctionBegin;
  *perm = NULL;
  *T    = HybCSROf(n, m, nnz, NULL, NULL, NULL);
  /* one more than kept: the walk runs one place ahead */
  PetscCall(HybArenaCalloc(keep, exec->result, (PetscCount)n + 2, sizeof(PetscInt), &ti));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &tj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &p));
  for (PetscCount k = 0; k < nnz; k++) ti[aj[k] + 2]++;
  for (PetscCount c = 0; c <= n; c++) {
    sum += ti[c + 1];
    ti[c + 1] = sum;
  }
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = ai[r]; k < ai[r + 1]; k++) {
      const PetscInt q = ti[aj[k] + 1]++;

      tj[q] = r;
      p[q]  = k;
    }
  }
  T->i  = ti;
  T->j  = tj;
  *perm = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRGather_Host(const HybExec *exec, PetscCount n, const PetscInt *perm, PetscBool conjugate, const HybScalar *src, HybScalar *dst)
{
  PetscFunctionBegin;
  if (conjugate) {
    for (PetscCount k = 0; k < n; k++) dst[k] = PetscConj(src[perm[k]]);
  } else {
    for (PetscCount k = 0; k < n; k++) dst[k] = src[perm[k]];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRTranspose_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscBool conjugate, HybCSR *T, PetscInt **perm)
{
  PetscInt *p;

  PetscFunctionBegin;
  PetscCall(HybCSRTransposeSymbolic_Host(exec, keep, work, A, T, &p));
  PetscCall(HybArenaAlloc(keep, exec->result, A->nnz, sizeof(HybScalar), &T->a));
  PetscCall(HybCSRGather_Host(exec, A->nnz, p, conjugate, A->a, T->a));
  if (perm)
    *perm = p;
  else
    PetscCall(HybArenaFree(keep, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  pick.c: rows picked from the blocks that one process has of a parallel matrix, for those who need them, and what of
  two matrices meets: each as one step, in which counts are known together.
*/
#include "../csr/csrlist.h"
#include "locallist.h"

/* n lengths become offsets */
static PetscErrorCode PickOffsets(PetscInt n, PetscInt *offset)
{
  PetscCount total = 0;
  PetscInt   last;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) total += offset[k];
  PetscCall(HybIntCast(total, "Rows that are picked", &last));
  for (PetscInt k = n; k-- > 0;) {
    const PetscInt length = offset[k];

    offset[k + 1] = last;
    last -= length;
  }
  offset[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRPickRows_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *D, const HybCSR *O, PetscInt nleft, PetscInt first, const PetscInt *garray, PetscInt n, const PetscInt *rows, PetscInt *begin, HybCSR *S, PetscInt **from)
{
  PetscInt *si, *sj, *where;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) begin[k] = (D->i[rows[k] + 1] - D->i[rows[k]]) + (O->i[rows[k] + 1] - O->i[rows[k]]);
  PetscCall(PickOffsets(n, begin));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)n + 1, sizeof(*si), &si));
  PetscCall(HybArenaAlloc(keep, exec->result, begin[n], sizeof(*sj), &sj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), begin[n], sizeof(*where), &where));
  PetscCall(PetscArraycpy(si, begin, (size_t)n + 1));
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt r = rows[k], oend = O->i[r + 1];
    PetscInt       to = begin[k], o = O->i[r];

    for (; o < oend && O->j[o] < nleft; o++) {
      sj[to]      = garray[O->j[o]];
      where[to++] = -1 - o;
    }
    for (PetscInt d = D->i[r]; d < D->i[r + 1]; d++) {
      sj[to]      = D->j[d] + first;
      where[to++] = d;
    }
    for (; o < oend; o++) {
      sj[to]      = garray[O->j[o]];
      where[to++] = -1 - o;
    }
  }
  *S    = HybCSROf(n, 0, begin[n], si, sj, NULL);
  *from = where;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRPickValues_Host(const HybExec *exec, PetscCount n, const PetscInt *from, const HybScalar *d, const HybScalar *o, HybScalar *a)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) a[k] = from[k] < 0 ? o[-1 - from[k]] : d[from[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRPickBoth_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *const A[2], const PetscCount nnz[2], PetscInt nrows, const PetscInt *rows, HybCSR S[2], PetscInt *perm[2])
{
  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) {
    PetscInt *si, *sj, *where;

    PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)nrows + 1, sizeof(*si), &si));
    for (PetscInt k = 0; k < nrows; k++) si[k] = A[p]->i[rows[k] + 1] - A[p]->i[rows[k]];
    PetscCall(PickOffsets(nrows, si));
    PetscCall(HybArenaAlloc(keep, exec->result, si[nrows], sizeof(*sj), &sj));
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), si[nrows], sizeof(*where), &where));
    for (PetscInt k = 0; k < nrows; k++) {
      const PetscInt first = A[p]->i[rows[k]];

      for (PetscInt e = si[k]; e < si[k + 1]; e++) {
        where[e] = first + (e - si[k]);
        sj[e]    = A[p]->j[where[e]];
      }
    }
    S[p]    = HybCSROf(nrows, A[p]->n, si[nrows], si, sj, NULL);
    perm[p] = where;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRPickMet_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *X, HybCSR *Y, PetscInt **perm, PetscInt **map)
{
  PetscInt *place, *yi, *yj, *where, n = 0, nnz = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), X->m, sizeof(*place), &place));
  for (PetscInt c = 0; c < X->m; c++) place[c] = -1;
  for (PetscCount k = 0; k < A->nnz; k++) place[A->j[k]] = 0;
  for (PetscInt c = 0; c < X->m; c++) {
    const PetscInt length = X->i[c + 1] - X->i[c];

    if (place[c] < 0 || !length) {
      place[c] = -1;
      continue;
    }
    place[c] = n++;
    nnz += length;
  }
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)n + 1, sizeof(*yi), &yi));
  yi[0] = 0;
  for (PetscInt c = 0; c < X->m; c++)
    if (place[c] >= 0) yi[place[c] + 1] = yi[place[c]] + (X->i[c + 1] - X->i[c]);
  *Y    = *X;
  Y->m  = n;
  Y->i  = yi;
  *map  = place;
  *perm = NULL;
  if (nnz == X->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(*yj), &yj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(*where), &where));
  for (PetscInt c = 0; c < X->m; c++) {
    if (place[c] < 0) continue;
    for (PetscInt e = yi[place[c]]; e < yi[place[c] + 1]; e++) {
      where[e] = X->i[c] + (e - yi[place[c]]);
      yj[e]    = X->j[where[e]];
    }
  }
  Y->nnz = nnz;
  Y->j   = yj;
  Y->a   = NULL;
  *perm  = where;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRPickMapped_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt ncols, const PetscInt *colmap, HybCSR *C, PetscInt **rows, PetscInt **perm)
{
  PetscInt *ci, *cj, *list, *where, n = 0, nnz = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt before = nnz;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) nnz += colmap[A->j[k]] >= 0;
    n += nnz > before;
  }
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)n + 1, sizeof(*ci), &ci));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(*cj), &cj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(*where), &where));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(*list), &list));
  n = nnz = 0;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt before = nnz;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      if (colmap[A->j[k]] < 0) continue;
      cj[nnz]      = colmap[A->j[k]];
      where[nnz++] = k;
    }
    if (nnz == before) continue;
    list[n] = r;
    ci[n++] = before;
  }
  ci[n] = nnz;
  *C    = HybCSROf(n, ncols, nnz, ci, cj, NULL);
  *rows = list;
  *perm = where;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  pattern.c: operations on sorted patterns: two matrices merged row by row (sum, subset), parts of one, and the check
  that everything else relies on.

  Merging two sorted rows takes one comparison an entry and no memory. A pattern is always built in two passes, counting
  and filling, so that nothing is allocated beyond what is returned.
*/
#include "csrlist.h"

PetscErrorCode HybCSRAXPYSubset_Host(const HybExec *exec, HybArena *work, const HybScalar *alpha, const HybCSR *X, HybCSR *Y, PetscCount *missing)
{
  const HybScalar s    = *alpha;
  PetscCount      lost = 0;

  PetscFunctionBegin;
  PetscCheck(X->m == Y->m && X->n == Y->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Cannot add a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT " to one of %" PetscInt_FMT " x %" PetscInt_FMT, X->m, X->n, Y->m, Y->n);
  /* first all, then the sum: a matrix that lacks an entry is left as it was */
  for (PetscInt r = 0; missing && r < X->m; r++) {
    PetscInt y = Y->i[r], yend = Y->i[r + 1];

    for (PetscInt x = X->i[r]; x < X->i[r + 1]; x++) {
      while (y < yend && Y->j[y] < X->j[x]) y++;
      lost += y == yend || Y->j[y] != X->j[x];
    }
  }
  if (missing) *missing = lost;
  if (lost) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt r = 0; r < X->m; r++) {
    PetscInt y = Y->i[r], yend = Y->i[r + 1];

    for (PetscInt x = X->i[r]; x < X->i[r + 1]; x++) {
      while (y < yend && Y->j[y] < X->j[x]) y++;
      if (PetscLikely(y < yend)) Y->a[y] += s * X->a[x];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRAddSymbolic_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscInt  *ci, *cj = NULL, nnzint;
  PetscCount nnz = 0;

  PetscFunctionBegin;
  PetscCheck(A->m == B->m && A->n == B->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Cannot add a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT " to one of %" PetscInt_FMT " x %" PetscInt_FMT, A->m, A->n, B->m, B->n);
  *C = HybCSROf(A->m, A->n, 0, NULL, NULL, NULL);
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &ci));
  ci[0] = 0;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &cj));
    nnz = 0;
    for (PetscInt r = 0; r < A->m; r++) {
      PetscInt       a = A->i[r], b = B->i[r];
      const PetscInt aend = A->i[r + 1], bend = B->i[r + 1];

      while (a < aend && b < bend) {
        const PetscInt ca = A->j[a], cb = B->j[b];

        if (pass) cj[nnz] = PetscMin(ca, cb);
        nnz++;
        a += ca <= cb;
        b += cb <= ca;
      }
      if (pass) {
        for (; a < aend; a++) cj[nnz++] = A->j[a];
        for (; b < bend; b++) cj[nnz++] = B->j[b];
      } else {
        nnz += (aend - a) + (bend - b);
        ci[r + 1] = (PetscInt)nnz; /* overflow is found below, before anything is read */
      }
    }
    PetscCall(HybIntCast(nnz, "nonzeros of a sum of two matrices", &nnzint));
  }
  C->nnz = nnz;
  C->i   = ci;
  C->j   = cj;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRAddNumeric_Host(const HybExec *exec, const HybScalar *alpha, const HybCSR *A, const HybScalar *beta, const HybCSR *B, HybCSR *C)
{
  const HybScalar s = *alpha, t = *beta;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < C->m; r++) {
    PetscInt       a = A->i[r], b = B->i[r];
    const PetscInt aend = A->i[r + 1], bend = B->i[r + 1];

    for (PetscInt c = C->i[r]; c < C->i[r + 1]; c++) {
      const PetscBool ina = (PetscBool)(a < aend && A->j[a] == C->j[c]), inb = (PetscBool)(b < bend && B->j[b] == C->j[c]);

      if (ina && inb)
        C->a[c] = s * A->a[a++] + t * B->a[b++];
      else if (ina)
        C->a[c] = s * A->a[a++];
      else if (inb)
        C->a[c] = t * B->a[b++];
      else
        C->a[c] = 0;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is all right? Rows ascend where columns descend from one row to the next alone: one loop counts where they descend,
   whatever the rows. */
static HYB_MULTIVERSION PetscBool HybCheckAll(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt *restrict i, const PetscInt *restrict j)
{
  PetscCount all = 0, between = 0;
  PetscInt   wrong = 0;

  if (!m) return PETSC_TRUE;
  if (i[0] != 0 || (PetscCount)i[m] != nnz) return PETSC_FALSE;
  for (PetscInt r = 0; r < m; r++) wrong |= i[r + 1] < i[r];
  if (wrong) return PETSC_FALSE; /* else j may be read */
  for (PetscCount k = 1; k < nnz; k++) all += j[k] <= j[k - 1];
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt begin = i[r], end = i[r + 1];

    if (begin == end) continue;
    wrong |= (j[begin] < 0) | (j[end - 1] >= n);
    between += begin > 0 && j[begin] <= j[begin - 1];
  }
  return (PetscBool)(!wrong && all == between);
}

PetscErrorCode HybCSRCheck_Host(const HybExec *exec, HybArena *work, const HybCSR *A, PetscCount *nbad, PetscInt *badrow)
{
  PetscCount bad   = 0;
  PetscInt   first = -1;

  PetscFunctionBegin;
  *nbad   = 0;
  *badrow = -1;
  if (HybCheckAll(A->m, A->n, A->nnz, A->i, A->j)) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt begin = A->i[r], end = A->i[r + 1];
    int            wrong = begin < 0 || end < begin || (PetscCount)end > A->nnz || (r == 0 && begin != 0) || (r == A->m - 1 && (PetscCount)end != A->nnz);

    if (!wrong) { /* j may be read */
      PetscInt last = -1;

      for (PetscInt k = begin; k < end; k++) {
        wrong |= (A->j[k] <= last) | (A->j[k] >= A->n);
        last = A->j[k];
      }
    }
    if (wrong && !bad++) first = r;
  }
  *nbad   = bad;
  *badrow = first;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define LENGTHS_ROWS 1024 /* done at a time */

/* Sums in PetscInt, so that the loop is done several rows at a time; there are no more of them than that holds. Lengths
   go to a small array first: large arrays begin at the same place of a page, and a core that reads one and writes
   another at the same distance from there takes the reads for reads of what it writes. */
HYB_MULTIVERSION void HybCSRRowLengthsPart(PetscInt from, PetscInt to, const PetscInt *i, PetscInt *const length[2], PetscInt *longest, PetscInt *nonempty)
{
  PetscInt most = 0, n = 0, some[LENGTHS_ROWS];

  for (PetscCount r = from; r < to; r += LENGTHS_ROWS) {
    const PetscInt rows = (PetscInt)PetscMin(LENGTHS_ROWS, to - r), *restrict const begin = i + r;

    for (PetscInt k = 0; k < rows; k++) {
      const PetscInt l = begin[k + 1] - begin[k];

      some[k] = l;
      most    = PetscMax(most, l);
      n += l > 0;
    }
    for (int w = 0; length && w < 2; w++) (void)memcpy(length[w] + r, some, sizeof(PetscInt) * (size_t)rows);
  }
  *longest  = most;
  *nonempty = n;
}

PetscErrorCode HybCSRRowLengths_Host(const HybExec *exec, PetscInt m, const PetscInt *i, PetscInt *const length[2], PetscCount *longest, PetscCount *nonempty)
{
  PetscInt most, n;

  PetscFunctionBegin;
  HybCSRRowLengthsPart(0, m, i, length, &most, &n);
  *longest  = most;
  *nonempty = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRDiagonalPlaces_Host(const HybExec *exec, const HybCSR *A, PetscInt *place)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt end = A->i[r + 1], k = HybCSRPlace(A->j, A->i[r], end, r);

    place[r] = k < end && A->j[k] == r ? k : end;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRSameRows_Host(const HybExec *exec, const HybCSR *A, unsigned char *same)
{
  PetscFunctionBegin;
  if (A->m) same[0] = 0;
  for (PetscInt r = 1; r < A->m; r++) {
    const PetscInt n = A->i[r] - A->i[r - 1];

    same[r] = A->i[r + 1] - A->i[r] == n && (n == 0 || !memcmp(A->j + A->i[r - 1], A->j + A->i[r], sizeof(PetscInt) * (size_t)n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRSubMatrixSymbolic_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, HybCSR *S, PetscInt **perm)
{
  PetscInt  *si, *sj, *p, *from, nnzint;
  PetscCount nnz = 0;

  PetscFunctionBegin;
  PetscCheck(cstart >= 0 && cstart <= cend && cend <= A->n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Columns %" PetscInt_FMT " to %" PetscInt_FMT " are not within 0 to %" PetscInt_FMT, cstart, cend, A->n);
  *perm = NULL;
  *S    = HybCSROf(nrows, cend - cstart, 0, NULL, NULL, NULL);
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)nrows + 1, sizeof(PetscInt), &si));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nrows, sizeof(PetscInt), &from));
  si[0] = 0;
  for (PetscInt r = 0; r < nrows; r++) {
    PetscInt end;

    PetscCheck(rows[r] >= 0 && rows[r] < A->m, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " is not within 0 to %" PetscInt_FMT, rows[r], A->m - 1);
    from[r] = cstart == 0 ? A->i[rows[r]] : HybCSRPlace(A->j, A->i[rows[r]], A->i[rows[r] + 1], cstart);
    end     = cend == A->n ? A->i[rows[r] + 1] : HybCSRPlace(A->j, from[r], A->i[rows[r] + 1], cend);
    nnz += end - from[r];
    si[r + 1] = (PetscInt)nnz; /* overflow is found below */
  }
  PetscCall(HybIntCast(nnz, "nonzeros of a submatrix", &nnzint));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &sj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &p));
  for (PetscInt r = 0; r < nrows; r++) {
    for (PetscInt k = si[r], q = from[r]; k < si[r + 1]; k++, q++) {
      sj[k] = A->j[q] - cstart;
      p[k]  = q;
    }
  }
  PetscCall(HybArenaFree(work, &from));
  S->nnz = nnz;
  S->i   = si;
  S->j   = sj;
  *perm  = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRSubMatrixMapped_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt ncols, const PetscInt *colmap, PetscBool ascending, HybCSR *S, PetscInt **perm)
{
  PetscInt  *si, *sj, *p, nnzint;
  PetscCount nnz = 0;

  PetscFunctionBegin;
  *perm = NULL;
  *S    = HybCSROf(nrows, ncols, 0, NULL, NULL, NULL);
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)nrows + 1, sizeof(PetscInt), &si));
  si[0] = 0;
  for (PetscInt r = 0; r < nrows; r++) {
    const PetscInt row = rows ? rows[r] : r;

    PetscCheck(row >= 0 && row < A->m, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " is not within 0 to %" PetscInt_FMT, row, A->m - 1);
    for (PetscInt q = A->i[row]; q < A->i[row + 1]; q++) nnz += colmap[A->j[q]] >= 0;
    si[r + 1] = (PetscInt)nnz; /* overflow is found below */
  }
  PetscCall(HybIntCast(nnz, "nonzeros of a submatrix", &nnzint));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &sj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &p));
  for (PetscInt r = 0; r < nrows; r++) {
    const PetscInt row = rows ? rows[r] : r;
    PetscInt       k   = si[r];

    /* most rows have none where others' columns are picked */
    for (PetscInt q = A->i[row]; k < si[r + 1] && q < A->i[row + 1]; q++) {
      const PetscInt c = colmap[A->j[q]];

      if (c < 0) continue;
      sj[k]  = c;
      p[k++] = q;
    }
    if (!ascending) PetscCall(PetscSortIntWithArray(si[r + 1] - si[r], sj + si[r], p + si[r]));
  }
  S->nnz = nnz;
  S->i   = si;
  S->j   = sj;
  *perm  = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

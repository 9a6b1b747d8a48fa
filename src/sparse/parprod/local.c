/*
  local.c: the part of a parallel matrix that one process has, as matrices of its own: blocks merged into one matrix and
  taken apart again, rows of several matrices one below the other, global columns numbered from 0 on, and matrices
  without their empty rows.

  Columns keep the order of their global numbers throughout: those of others to the left, the process's own, those of
  others to the right. So rows stay sorted without sorting, and sums are formed in the order in which one process would.
*/
#include "../csr/csrlist.h"
#include "locallist.h"

#define COLUMN_BUCKETS 1024

/* rows from r on that have no entries of O: where they end */
static inline PetscInt AloneUntil(const HybCSR *O, PetscInt r)
{
  const PetscInt *i = O->i, begin = i[r];

  while (r < O->m && i[r + 1] == begin) r++;
  return r;
}

PetscErrorCode HybCSRMergeBlocks_Host(const HybExec *exec, HybArena *keep, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M)
{
  PetscInt *mi, *mj, nnz;

  PetscFunctionBegin;
  PetscCheck(D->m == O->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A diagonal block of %" PetscInt_FMT " rows and another one of %" PetscInt_FMT, D->m, O->m);
  PetscCall(HybIntCast(D->nnz + O->nnz, "nonzeros of the rows of a process", &nnz));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)D->m + 1, sizeof(PetscInt), &mi));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &mj));
  mi[0] = 0;
  for (PetscInt r = 0; r < D->m; r++) {
    const PetscInt end = AloneUntil(O, r), from = D->i[r], shift = mi[r] - from;
    PetscInt       k, o, oend;

    for (PetscInt d = from; d < D->i[end]; d++) mj[d + shift] = D->j[d] + nleft;
    for (; r < end; r++) mi[r + 1] = D->i[r + 1] + shift;
    if (r == D->m) break;
    k    = mi[r];
    o    = O->i[r];
    oend = O->i[r + 1];
    for (; o < oend && O->j[o] < nleft; o++) mj[k++] = O->j[o];
    for (PetscInt d = D->i[r]; d < D->i[r + 1]; d++) mj[k++] = D->j[d] + nleft;
    for (; o < oend; o++) mj[k++] = O->j[o] + D->n;
    mi[r + 1] = k;
  }
  *M = HybCSROf(D->m, D->n + O->n, nnz, mi, mj, NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRMergeValues_Host(const HybExec *exec, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < D->m; r++) {
    const PetscInt end = AloneUntil(O, r);
    PetscInt       k, o, oend;

    if (D->i[end] > D->i[r]) memcpy(M->a + M->i[r], D->a + D->i[r], sizeof(HybScalar) * (size_t)(D->i[end] - D->i[r]));
    r = end;
    if (r == D->m) break;
    k    = M->i[r];
    o    = O->i[r];
    oend = O->i[r + 1];
    for (; o < oend && O->j[o] < nleft; o++) M->a[k++] = O->a[o];
    for (PetscInt d = D->i[r]; d < D->i[r + 1]; d++) M->a[k++] = D->a[d];
    for (; o < oend; o++) M->a[k++] = O->a[o];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRSplitColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt cstart, PetscInt cend, HybCSR part[2], PetscInt *perm[2])
{
  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) {
    PetscInt *pi, *pj, *from, k = 0;

    PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &pi));
    pi[0] = 0;
    for (PetscInt r = 0; r < A->m; r++) {
      const PetscInt begin = A->i[r], end = A->i[r + 1], c = HybCSRPlace(A->j, begin, end, cstart), d = HybCSRPlace(A->j, c, end, cend);

      k += p ? (end - begin) - (d - c) : d - c;
      pi[r + 1] = k;
    }
    PetscCall(HybArenaAlloc(keep, exec->result, k, sizeof(PetscInt), &pj));
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), k, sizeof(PetscInt), &from));
    k = 0;
    for (PetscInt e = 0; e < A->nnz; e++) { /* rows follow each other */
      const PetscBool in = (PetscBool)(A->j[e] >= cstart && A->j[e] < cend);

      if (in == (PetscBool)p) continue;
      pj[k]     = p ? A->j[e] : A->j[e] - cstart;
      from[k++] = e;
    }
    part[p] = HybCSROf(A->m, p ? A->n : cend - cstart, k, pi, pj, NULL);
    perm[p] = from;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRStackRows_Host(const HybExec *exec, HybArena *keep, PetscInt n, const HybCSR *const piece[], const PetscInt begin[], const PetscInt end[], HybCSR *C, PetscCount first[], PetscCount place[])
{
  PetscInt  *ci, *cj, nnzint, row = 0;
  PetscCount m = 0;

  PetscFunctionBegin;
  place[0] = 0;
  for (PetscInt p = 0; p < n; p++) {
    m += end[p] - begin[p];
    first[p]     = piece[p]->i[begin[p]];
    place[p + 1] = place[p] + piece[p]->i[end[p]] - piece[p]->i[begin[p]];
  }
  PetscCall(HybIntCast(m, "rows of matrices one below the other", &C->m));
  PetscCall(HybIntCast(place[n], "nonzeros of matrices one below the other", &nnzint));
  PetscCall(HybArenaAlloc(keep, exec->result, m + 1, sizeof(PetscInt), &ci));
  PetscCall(HybArenaAlloc(keep, exec->result, place[n], sizeof(PetscInt), &cj));
  ci[0] = 0;
  for (PetscInt p = 0; p < n; p++) {
    for (PetscInt r = begin[p]; r < end[p]; r++) ci[++row] = (PetscInt)(place[p] - first[p] + piece[p]->i[r + 1]);
    PetscCall(PetscArraycpy(cj + place[p], piece[p]->j + first[p], place[p + 1] - place[p]));
  }
  *C = HybCSROf(C->m, n ? piece[0]->n : 0, place[n], ci, cj, NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns come again and again: a table tells those that were seen. Half of it stays empty. */
PetscErrorCode HybCSROutsideColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt *count, PetscInt **list)
{
  PetscInt *table, *found, *out, nfound = 0;
  size_t    size = 16;

  PetscFunctionBegin;
  while (size < 2 * (size_t)n) size *= 2;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)size, sizeof(PetscInt), &table));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &found));
  for (size_t k = 0; k < size; k++) table[k] = -1;
  for (PetscCount k = 0; k < n; k++) {
    size_t at;

    if (j[k] >= cstart && j[k] < cend) continue;
    at = ((size_t)j[k] * (size_t)2654435761u) & (size - 1);
    while (table[at] >= 0 && table[at] != j[k]) at = (at + 1) & (size - 1);
    if (table[at] >= 0) continue;
    table[at]       = j[k];
    found[nfound++] = j[k];
  }
  PetscCall(PetscSortInt(nfound, found));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nfound, sizeof(PetscInt), &out));
  PetscCall(PetscArraycpy(out, found, nfound));
  PetscCall(HybArenaFree(work, &table, &found));
  *count = nfound;
  *list  = out;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where numbers that share their leading bits begin in an ascending list: a search of a long list ends at other places
   each time, which no branch predictor foretells. */
typedef struct {
  PetscInt n, shift, start[COLUMN_BUCKETS + 1];
} ColumnBuckets;

static void BucketsSet(PetscInt n, const PetscInt *list, ColumnBuckets *b)
{
  PetscInt bucket = 0;

  b->n     = n;
  b->shift = 0;
  while (n && (list[n - 1] - list[0]) >> b->shift >= COLUMN_BUCKETS) b->shift++;
  for (PetscInt p = 0; p < n; p++)
    while (bucket <= (list[p] - list[0]) >> b->shift) b->start[bucket++] = p;
  while (bucket <= COLUMN_BUCKETS) b->start[bucket++] = n;
}

/* as HybCSRPlace() of the whole list */
static inline PetscInt BucketsFind(const ColumnBuckets *b, const PetscInt *list, PetscInt c)
{
  PetscInt bucket;

  if (!b->n || c < list[0]) return 0;
  bucket = (c - list[0]) >> b->shift;
  if (bucket >= COLUMN_BUCKETS) return b->n;
  return HybCSRPlace(list, b->start[bucket], b->start[bucket + 1], c);
}

PetscErrorCode HybCSRNumberColumns_Host(const HybExec *exec, PetscCount n, PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt nlist, PetscInt nleft, const PetscInt *list)
{
  ColumnBuckets b;

  PetscFunctionBegin;
  BucketsSet(nlist, list, &b);
  for (PetscCount k = 0; k < n; k++) {
    if (j[k] < cstart)
      j[k] = BucketsFind(&b, list, j[k]);
    else if (j[k] < cend)
      j[k] += nleft - cstart;
    else
      j[k] = BucketsFind(&b, list, j[k]) + (cend - cstart);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRMapColumns_Host(const HybExec *exec, PetscCount n, const PetscInt *map, PetscInt *j)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++)
    if (j[k] >= 0) j[k] = map[j[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRUsedColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt *count, PetscInt **list, PetscInt **map)
{
  PetscInt *place, *used, n = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->n, sizeof(PetscInt), &place));
  for (PetscInt c = 0; c < A->n; c++) place[c] = -1;
  for (PetscCount k = 0; k < A->nnz; k++) place[A->j[k]] = 0;
  for (PetscInt c = 0; c < A->n; c++)
    if (place[c] == 0) place[c] = n++;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), n, sizeof(PetscInt), &used));
  for (PetscInt c = 0; c < A->n; c++)
    if (place[c] >= 0) used[place[c]] = c;
  *count = n;
  *list  = used;
  *map   = place;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRCompressRows_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *C, PetscInt **rows, PetscInt **map)
{
  PetscInt *ci, *list, *place, n = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->m, sizeof(PetscInt), &place));
  for (PetscInt r = 0; r < A->m; r++) place[r] = A->i[r + 1] > A->i[r] ? n++ : -1;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), n, sizeof(PetscInt), &list));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)n + 1, sizeof(PetscInt), &ci));
  for (PetscInt r = 0; r < A->m; r++) {
    if (place[r] < 0) continue;
    list[place[r]] = r;
    ci[place[r]]   = A->i[r];
  }
  ci[n] = (PetscInt)A->nnz;
  *C    = *A;
  C->m  = n;
  C->i  = ci;
  *rows = list;
  *map  = place;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRExpandRows_Host(const HybExec *exec, PetscInt m, PetscInt n, const PetscInt *rows, const PetscInt *ci, PetscInt *i)
{
  PetscInt k = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r <= m; r++) {
    i[r] = ci[k];
    if (k < n && rows[k] == r) k++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRMeetRows_Host(const HybExec *exec, const HybCSR *D, const PetscInt *oi, const PetscInt *bi, unsigned *mask)
{
  PetscFunctionBegin;
  PetscCall(PetscArrayzero(mask, ((size_t)D->m + 31) / 32));
  for (PetscInt r = 0; r < D->m; r++) {
    PetscBool meets = (PetscBool)(oi[r + 1] > oi[r]);

    for (PetscInt k = D->i[r]; bi && !meets && k < D->i[r + 1]; k++) meets = (PetscBool)(bi[D->j[k] + 1] > bi[D->j[k]]);
    if (meets) mask[r / 32] |= 1u << r % 32;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRSequence_Host(const HybExec *exec, PetscCount n, PetscInt first, PetscInt *v)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) v[k] = first + (PetscInt)k;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRRowsOfEntries_Host(const HybExec *exec, const HybCSR *A, const PetscInt *rows, PetscInt *row)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < A->m; r++)
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) row[k] = rows ? rows[r] : r;
  PetscFunctionReturn(PETSC_SUCCESS);
}

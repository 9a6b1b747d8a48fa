/*
  coo.c: assembly from coordinates on the host. The pattern is worked out once; values then go to their places by one
  gathered sum, as often as they change.

  Symbolic: a counting sort puts the positions k of the entries in row order (stable, so k ascends within a row). Each
  row is then sorted by column, stably: runs of eight by insertion, then merged bottom-up; a row that comes sorted costs
  one pass. Equal neighbours are one entry of the matrix, and the sorted positions are its list: map[mapptr[e]] ..
  map[mapptr[e+1]-1], ascending in k, so that sums are formed in the order in which the entries were given.

    count[row+1]++;  scan;  place[count[row]++] = (col, k)
    for each row: sort by (col, k);  a new column opens entry e

  Memory: ncoo pairs and the longest row's worth of pairs for merging, released at the end; nnz + ncoo counts are kept.
  Time: O(m + ncoo log(longest row)).
*/
#include "csrlist.h"

typedef struct {
  PetscCount k;
  PetscInt   col;
} Entry;

#define HYB_COO_RUN 8

/* sorts e[0..n-1] by column, keeping the order of equal ones; spare holds n entries */
static void SortRow(PetscInt n, Entry *e, Entry *spare)
{
  PetscInt ordered = 1;
  Entry   *src = e, *dst = spare;

  while (ordered < n && e[ordered - 1].col <= e[ordered].col) ordered++;
  if (ordered >= n) return;
  for (PetscInt begin = 0; begin < n; begin += HYB_COO_RUN) {
    const PetscInt end = PetscMin(begin + HYB_COO_RUN, n);

    for (PetscInt q = begin + 1; q < end; q++) {
      const Entry x = e[q];
      PetscInt    p = q;

      for (; p > begin && e[p - 1].col > x.col; p--) e[p] = e[p - 1];
      e[p] = x;
    }
    if (end == n) break; /* begin + HYB_COO_RUN may not fit */
  }
  for (PetscCount width = HYB_COO_RUN; width < n; width *= 2) {
    for (PetscCount begin = 0; begin < n; begin += 2 * width) {
      const PetscCount middle = PetscMin(begin + width, n), end = PetscMin(begin + 2 * width, n);
      PetscCount       a = begin, b = middle, q = begin;

      while (a < middle && b < end) dst[q++] = src[b].col < src[a].col ? src[b++] : src[a++];
      while (a < middle) dst[q++] = src[a++];
      while (b < end) dst[q++] = src[b++];
    }
    {
      Entry *t = src;

      src = dst;
      dst = t;
    }
  }
  if (src != e)
    for (PetscInt q = 0; q < n; q++) e[q] = src[q];
}

PetscErrorCode HybCSRCOOSymbolic_Host(const HybExec *exec, HybArena *keep, HybArena *work, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj, HybCSR *C, PetscCount **mapptr, PetscCount **map)
{
  const PetscInt m = C->m, n = C->n;
  PetscCount    *next, *ptr, *list, used = 0, longest = 0, nnz = 0, e = -1;
  PetscInt      *i, *j, nnzint;
  Entry         *entry, *spare;

  PetscFunctionBegin;
  *mapptr = NULL;
  *map    = NULL;
  C->nnz  = 0;
  C->i = C->j = NULL;
  C->a        = NULL;
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), (PetscCount)m + 2, sizeof(PetscCount), &next));
  for (PetscCount k = 0; k < ncoo; k++) {
    if (ci[k] < 0 || cj[k] < 0) continue;
    PetscCheck(ci[k] < m && cj[k] < n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Coordinate %" PetscCount_FMT ", (%" PetscInt_FMT ",%" PetscInt_FMT "), is outside of the matrix, %" PetscInt_FMT " x %" PetscInt_FMT, k, ci[k], cj[k], m, n);
    next[ci[k] + 2]++; /* the offsets run one place ahead, as in transpose.c */
    used++;
  }
  for (PetscInt r = 0; r < m; r++) {
    longest = PetscMax(longest, next[r + 2]);
    next[r + 2] += next[r + 1];
  }
  PetscCheck(longest <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A row is given by %" PetscCount_FMT " coordinates, PetscInt counts to %" PetscInt_FMT ": configure PETSc --with-64-bit-indices", longest, PETSC_MAX_INT);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), used, sizeof(Entry), &entry));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), longest, sizeof(Entry), &spare));
  for (PetscCount k = 0; k < ncoo; k++) {
    if (ci[k] < 0 || cj[k] < 0) continue;
    const PetscCount p = next[ci[k] + 1]++;

    entry[p].k   = k;
    entry[p].col = cj[k];
  }
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)m + 1, sizeof(PetscInt), &i));
  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    SortRow((PetscInt)(next[r + 1] - next[r]), entry + next[r], spare);
    for (PetscCount p = next[r]; p < next[r + 1]; p++) nnz += p == next[r] || entry[p - 1].col != entry[p].col;
    i[r + 1] = (PetscInt)nnz; /* overflow is found below */
  }
  PetscCall(HybArenaFree(work, &spare));
  PetscCall(HybIntCast(nnz, "nonzeros of a matrix given by coordinates", &nnzint));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &j));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz + 1, sizeof(PetscCount), &ptr));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), used, sizeof(PetscCount), &list));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscCount p = next[r]; p < next[r + 1]; p++) {
      if (p == next[r] || entry[p - 1].col != entry[p].col) {
        j[++e] = entry[p].col;
        ptr[e] = p;
      }
      list[p] = entry[p].k;
    }
  }
  ptr[nnz] = used;
  PetscCall(HybArenaFree(work, &entry, &next));
  C->nnz  = nnz;
  C->i    = i;
  C->j    = j;
  *mapptr = ptr;
  *map    = list;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRCOONumeric_Host(const HybExec *exec, PetscCount nnz, const PetscCount *mapptr, const PetscCount *map, const HybScalar *v, PetscBool add, HybScalar *a)
{
  PetscFunctionBegin;
  for (PetscCount e = 0; e < nnz; e++) {
    PetscCount p   = mapptr[e];
    HybScalar  sum = v[map[p]];

    for (p++; p < mapptr[e + 1]; p++) sum += v[map[p]];
    a[e] = add ? a[e] + sum : sum;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRCOOSplit_Host(const HybExec *exec, HybArena *work, PetscCount ncoo, PetscInt *ci, PetscInt *cj, PetscInt rstart, PetscInt rend, PetscInt cstart, PetscInt cend, PetscCount *nother, PetscCount **place, PetscInt **oi, PetscInt **oj)
{
  PetscCount n = 0;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < ncoo; k++) n += ci[k] >= rstart && ci[k] < rend && cj[k] >= 0 && (cj[k] < cstart || cj[k] >= cend);
  *nother = n;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscCount), place));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), oi));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), oj));
  n = 0;
  for (PetscCount k = 0; k < ncoo; k++) {
    const PetscBool here = (PetscBool)(ci[k] >= rstart && ci[k] < rend && cj[k] >= 0), diagonal = (PetscBool)(cj[k] >= cstart && cj[k] < cend);

    if (here && !diagonal) {
      (*place)[n] = k;
      (*oi)[n]    = ci[k] - rstart;
      (*oj)[n++]  = cj[k];
    }
    ci[k] = here && diagonal ? ci[k] - rstart : -1;
    cj[k] = here && diagonal ? cj[k] - cstart : -1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRCOOCompose_Host(const HybExec *exec, PetscCount n, const PetscCount *place, PetscCount *map)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) map[k] = place[map[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

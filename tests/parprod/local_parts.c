/* The part of a parallel matrix that a process has: columns split and numbered, blocks merged, rows stacked, lists of
   columns and rows in use, against plain loops over every shape of matrix, also without rows, columns or entries */
#include "csrtest.h"

static PetscInt *Ints(PetscCount n)
{
  return (PetscInt *)RefAlloc(n + 1, sizeof(PetscInt));
}

/* the columns of A outside of the range, and where each one's place is when all are numbered */
static PetscInt Outside(const RefMat *A, PetscInt cstart, PetscInt cend, PetscInt *list, PetscInt *number, PetscInt *nleft)
{
  PetscInt *used = Ints(A->csr.n), n = 0;

  memset(used, 0, sizeof(PetscInt) * (size_t)(A->csr.n + 1));
  for (PetscCount k = 0; k < A->csr.nnz; k++) used[A->csr.j[k]] = 1;
  *nleft = 0;
  for (PetscInt c = 0; c < A->csr.n; c++) {
    if (c >= cstart && c < cend) continue;
    number[c] = c < cstart ? n : n + (cend - cstart);
    if (!used[c]) continue;
    list[n++] = c;
    *nleft += c < cstart;
  }
  for (PetscInt c = cstart; c < cend; c++) number[c] = *nleft + c - cstart;
  free(used);
  return n;
}

/* A's columns cstart to cend-1 and the others: parts, numbers, and both merged again, which is A with other numbers */
static PetscErrorCode TestBlocks(const char *name, const RefMat *A, PetscInt cstart, PetscInt cend)
{
  const PetscInt   m = A->csr.m, n = A->csr.n;
  const PetscCount nnz  = A->csr.nnz;
  PetscInt        *list = Ints(n), *number = Ints(n), *expected = Ints(nnz), nleft, nlist, count = -1, *found, *perm[2], *all;
  HybCSR           there, part[2], M;

  PetscFunctionBegin;
  HybTestBegin("%s, own columns %d to %d", name, (int)cstart, (int)cend);
  nlist = Outside(A, cstart, cend, list, number, &nleft);
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  if (HybTestCall(exec->backend->local->outsidecolumns(exec, &keep, &work, nnz, there.j, cstart, cend, &count, &found))) {
    if (HybTestCheck(count == nlist, "%d columns outside, not %d", (int)count, (int)nlist)) HybTestSameInts(nlist, found, list);
  }
  if (count == nlist && HybTestCall(exec->backend->local->splitcolumns(exec, &keep, &work, &there, cstart, cend, part, perm))) {
    for (int p = 0; p < 2; p++) {
      PetscInt *j = Ints(nnz), *i = Ints(m), *from = Ints(nnz), k = 0;

      i[0] = 0;
      for (PetscInt r = 0; r < m; r++) {
        for (PetscInt e = A->csr.i[r]; e < A->csr.i[r + 1]; e++) {
          const PetscInt c = A->csr.j[e];

          if ((c >= cstart && c < cend) == p) continue;
          j[k]      = p ? c : c - cstart;
          from[k++] = e;
        }
        i[r + 1] = k;
      }
      HybTestCheck(part[p].m == m && part[p].n == (p ? n : cend - cstart) && part[p].nnz == k, "part %d is %d x %d with %d entries, not %d", p, (int)part[p].m, (int)part[p].n, (int)part[p].nnz, (int)k);
      HybTestSameInts(m + 1, part[p].i, i);
      if (part[p].nnz == k) {
        HybTestSameInts(k, part[p].j, j);
        HybTestSameInts(k, perm[p], from);
      }
      PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), k, sizeof(PetscScalar), &part[p].a));
      HybTestCall(ops->gather(exec, k, perm[p], PETSC_FALSE, there.a, part[p].a));
      RefFree(i, j, from);
    }
    part[1].n = nlist;
    HybTestCall(exec->backend->local->numbercolumns(exec, part[1].nnz, part[1].j, cstart, cstart, nlist, nleft, found));
    if (HybTestCall(exec->backend->local->mergeblocks(exec, &keep, &part[0], &part[1], nleft, &M))) {
      for (PetscCount k = 0; k < nnz; k++) expected[k] = number[A->csr.j[k]];
      HybTestCheck(M.m == m && M.n == cend - cstart + nlist && M.nnz == nnz, "both are %d x %d with %d entries", (int)M.m, (int)M.n, (int)M.nnz);
      HybTestSameInts(m + 1, M.i, A->csr.i);
      HybTestSameInts(nnz, M.j, expected);
      PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), nnz, sizeof(PetscScalar), &M.a));
      HybTestCall(exec->backend->local->mergevalues(exec, &part[0], &part[1], nleft, &M));
      HybTestSameBits(nnz, sizeof(PetscScalar), M.a, A->csr.a);
      PetscCall(HybTestUploadArray(&mine, nnz, sizeof(PetscInt), A->csr.j, &all));
      HybTestCall(exec->backend->local->numbercolumns(exec, nnz, all, cstart, cend, nlist, nleft, found));
      HybTestSameInts(nnz, all, expected);
    }
  }
  RefFree(list, number, expected);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows b to e-1, all, none, and rows 0 to b-1 again */
static PetscErrorCode TestStack(const char *name, const RefMat *A, PetscInt b, PetscInt e)
{
  const PetscInt m = A->csr.m, begin[] = {b, 0, b, 0}, end[] = {e, m, b, b};
  PetscInt      *i = Ints(4 * (PetscCount)m), *j, row = 0;
  PetscCount     first[4], place[5], nnz              = 0;
  HybCSR         there, C;
  const HybCSR  *piece[4];

  PetscFunctionBegin;
  HybTestBegin("%s, rows %d to %d above all", name, (int)b, (int)e);
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  for (int p = 0; p < 4; p++) piece[p] = &there;
  j    = Ints(4 * A->csr.nnz);
  i[0] = 0;
  for (int p = 0; p < 4; p++) {
    for (PetscInt r = begin[p]; r < end[p]; r++) {
      for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) j[nnz++] = A->csr.j[k];
      i[++row] = (PetscInt)nnz;
    }
  }
  if (HybTestCall(exec->backend->local->stackrows(exec, &keep, 4, piece, begin, end, &C, first, place))) {
    HybTestCheck(C.m == row && C.n == A->csr.n && C.nnz == nnz, "%d x %d with %d entries, not %d rows and %d", (int)C.m, (int)C.n, (int)C.nnz, (int)row, (int)nnz);
    HybTestSameInts(row + 1, C.i, i);
    HybTestSameInts(nnz, C.j, j);
    for (int p = 0; p < 4; p++) HybTestCheck(first[p] == A->csr.i[begin[p]] && place[p + 1] - place[p] == A->csr.i[end[p]] - A->csr.i[begin[p]], "piece %d is from entry %d on, %d of them", p, (int)first[p], (int)(place[p + 1] - place[p]));
    HybTestCheck(place[0] == 0, "the first one is at %d", (int)place[0]);
  }
  RefFree(i, j);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestLists(const char *name, const RefMat *A)
{
  const PetscInt   m = A->csr.m, n = A->csr.n;
  const PetscCount nnz  = A->csr.nnz;
  PetscInt        *list = Ints(PetscMax(m, n)), *map = Ints(PetscMax(m, n)), *of = Ints(nnz), *ci = Ints(m), *upward = Ints(nnz), k = 0, count = -1, *dlist, *dmap, *i, *row, *other;
  HybCSR           there, C;

  PetscFunctionBegin;
  HybTestBegin("%s, columns and rows in use", name);
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  for (PetscInt c = 0; c < n; c++) map[c] = -1;
  for (PetscCount e = 0; e < nnz; e++) map[A->csr.j[e]] = 0;
  for (PetscInt c = 0; c < n; c++) {
    if (map[c] < 0) continue;
    list[k] = c;
    map[c]  = k++;
  }
  if (HybTestCall(exec->backend->local->usedcolumns(exec, &keep, &work, &there, &count, &dlist, &dmap))) {
    HybTestCheck(count == k, "%d columns are used, not %d", (int)count, (int)k);
    if (count == k) HybTestSameInts(k, dlist, list);
    HybTestSameInts(n, dmap, map);
    /* through the map, and once more where nothing is left to map */
    for (PetscCount e = 0; e < nnz; e++) of[e] = e % 3 ? A->csr.j[e] : -1;
    PetscCall(HybTestUploadArray(&mine, nnz, sizeof(PetscInt), of, &other));
    for (PetscCount e = 0; e < nnz; e++) of[e] = e % 3 ? map[A->csr.j[e]] : -1;
    HybTestCall(exec->backend->local->mapcolumns(exec, nnz, dmap, other));
    HybTestSameInts(nnz, other, of);
  }
  k = 0;
  for (PetscInt r = 0; r < m; r++) {
    map[r] = -1;
    for (PetscInt e = A->csr.i[r]; e < A->csr.i[r + 1]; e++) of[e] = r;
    if (A->csr.i[r] == A->csr.i[r + 1]) continue;
    list[k] = r;
    ci[k]   = A->csr.i[r];
    map[r]  = k++;
  }
  ci[k] = (PetscInt)nnz;
  if (HybTestCall(exec->backend->local->compressrows(exec, &keep, &work, &there, &C, &dlist, &dmap))) {
    if (HybTestCheck(C.m == k && C.n == n && C.nnz == nnz && C.j == there.j && C.a == there.a, "%d x %d rows with %d entries, not %d rows", (int)C.m, (int)C.n, (int)C.nnz, (int)k)) {
      HybTestSameInts(k, dlist, list);
      HybTestSameInts(m, dmap, map);
      HybTestSameInts(k + 1, C.i, ci);
      PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), (PetscCount)m + 1, sizeof(PetscInt), &i));
      HybTestCall(exec->backend->local->expandrows(exec, m, k, dlist, C.i, i));
      HybTestSameInts(m + 1, i, A->csr.i);
    }
  }
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &row));
  for (PetscCount e = 0; e < nnz; e++) upward[e] = (PetscInt)e + 3;
  HybTestCall(exec->backend->local->sequence(exec, nnz, 3, row));
  HybTestSameInts(nnz, row, upward);
  free(upward);
  HybTestCall(exec->backend->local->rowsofentries(exec, &there, NULL, row));
  HybTestSameInts(nnz, row, of);
  for (PetscInt r = 0; r < m; r++) list[r] = 7 * (m - r);
  for (PetscCount e = 0; e < nnz; e++) of[e] = 7 * (m - of[e]);
  PetscCall(HybTestUploadArray(&mine, m, sizeof(PetscInt), list, &other));
  HybTestCall(exec->backend->local->rowsofentries(exec, &there, other, row));
  HybTestSameInts(nnz, row, of);
  RefFree(list, map, of, ci);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows that have entries in another block, or whose columns are rows with entries of a third one */
static PetscErrorCode TestMeet(const char *name, const RefMat *A)
{
  const PetscInt   m = A->csr.m, n = A->csr.n;
  const PetscCount words = ((PetscCount)m + 31) / 32;
  PetscInt        *oi = Ints(m), *bi = Ints(n), *o, *b;
  unsigned        *mask = (unsigned *)RefAlloc(words + 1, sizeof(unsigned)), *bits;
  HybCSR           there;

  PetscFunctionBegin;
  HybTestBegin("%s, rows that meet others", name);
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), words, sizeof(unsigned), &bits));
  for (int way = 0; way < 3; way++) {
    oi[0] = bi[0] = 0;
    for (PetscInt r = 0; r < m; r++) oi[r + 1] = oi[r] + (way < 2 && r % 5 == 2);
    for (PetscInt c = 0; c < n; c++) bi[c + 1] = bi[c] + (c % 7 == 1);
    memset(mask, 0, sizeof(unsigned) * (size_t)words);
    for (PetscInt r = 0; r < m; r++) {
      PetscBool meets = (PetscBool)(oi[r + 1] > oi[r]);

      for (PetscInt e = A->csr.i[r]; way && e < A->csr.i[r + 1]; e++) meets = (PetscBool)(meets || A->csr.j[e] % 7 == 1);
      if (meets) mask[r / 32] |= 1u << r % 32;
    }
    PetscCall(HybTestUploadArray(&mine, m + 1, sizeof(PetscInt), oi, &o));
    PetscCall(HybTestUploadArray(&mine, n + 1, sizeof(PetscInt), bi, &b));
    if (HybTestCall(exec->backend->local->meetrows(exec, &there, o, way ? b : NULL, bits))) HybTestSameBits(words, sizeof(unsigned), bits, mask);
  }
  RefFree(mask, oi, bi);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  char   name[64];
  RefMat A;

  PetscFunctionBegin;
  PetscCall(Start());
  for (PetscInt z = 0; HybTestZoo(z, PETSC_FALSE, name, &A); z++) {
    const PetscInt m = A.csr.m, n = A.csr.n, b = m ? HybTestRandomInt(0, m) : 0, c = n ? HybTestRandomInt(0, n) : 0;

    PetscCall(TestBlocks(name, &A, c, c + (n - c) / 2));
    if (!HybTestSlow() || z % 3 == 0) {
      PetscCall(TestBlocks(name, &A, 0, n));
      PetscCall(TestBlocks(name, &A, c, c));
      PetscCall(TestBlocks(name, &A, 0, c));
      PetscCall(TestBlocks(name, &A, c, n));
    }
    PetscCall(TestStack(name, &A, b, b + (m - b) / 2));
    PetscCall(TestStack(name, &A, b, m));
    PetscCall(TestLists(name, &A));
    PetscCall(TestMeet(name, &A));
    RefMatDestroy(&A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

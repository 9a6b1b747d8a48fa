/* What is picked of blocks and rows, against plain loops over every shape of matrix, also without rows, columns or
   entries; and that the host waits once for it */
#include "csrtest.h"

static PetscInt *Ints(PetscCount n)
{
  return (PetscInt *)RefAlloc(n + 1, sizeof(PetscInt));
}

/* some of m rows, out of order and repeatedly */
static PetscInt Rows(PetscInt m, PetscInt *rows)
{
  const PetscInt n = m ? m / 2 + 1 : 0;

  for (PetscInt k = 0; k < n; k++) rows[k] = HybTestRandomInt(0, m);
  return n;
}

/* on the emulator, which knows what the host waits for */
static void Waited(unsigned long long before, unsigned long long most)
{
  const unsigned long long waits = HybTestWaits() - before;

  if (!strcmp(exec->backend->name, "emulated")) HybTestCheck(waits <= most, "the host waited %llu times, of at most %llu", waits, most);
}

/* A's own columns cstart to cend-1, counted from there, and the others, of which garray is the list */
static void Split(const RefMat *A, PetscInt cstart, PetscInt cend, RefMat part[2], PetscInt *garray, PetscInt *nleft)
{
  const PetscInt m = A->csr.m, n = A->csr.n;
  PetscInt      *place = Ints(n), k = 0;
  PetscCount     nnz[2] = {0, 0};

  for (PetscInt c = 0; c < n; c++) {
    place[c] = c - cstart;
    if (c >= cstart && c < cend) continue;
    garray[k] = c;
    place[c]  = k++;
  }
  *nleft = cstart;
  for (PetscCount e = 0; e < A->csr.nnz; e++) nnz[A->csr.j[e] < cstart || A->csr.j[e] >= cend]++;
  RefMatCreate(m, cend - cstart, nnz[0], &part[0]);
  RefMatCreate(m, k, nnz[1], &part[1]);
  nnz[0] = nnz[1]  = 0;
  part[0].csr.i[0] = part[1].csr.i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt e = A->csr.i[r]; e < A->csr.i[r + 1]; e++) {
      const PetscInt c = A->csr.j[e], p = c < cstart || c >= cend;

      part[p].csr.j[nnz[p]]   = place[c];
      part[p].csr.a[nnz[p]++] = A->csr.a[e];
    }
    for (int p = 0; p < 2; p++) part[p].csr.i[r + 1] = (PetscInt)nnz[p];
  }
  free(place);
}

/* rows of both blocks are those of the matrix that was split; and of the blocks each */
static PetscErrorCode TestRows(const char *name, const RefMat *A, PetscInt cstart, PetscInt cend)
{
  const PetscInt     m = A->csr.m, n = A->csr.n;
  PetscInt          *garray = Ints(n), *rows = Ints(m), *begin = Ints(m + 1), nleft, nrows, *drows, *dgarray, *from, *perm[2];
  RefMat             part[2], R;
  HybCSR             D, O, S, both[2];
  unsigned long long before;

  PetscFunctionBegin;
  HybTestBegin("%s, rows of blocks, own columns %d to %d", name, (int)cstart, (int)cend);
  Split(A, cstart, cend, part, garray, &nleft);
  nrows = Rows(m, rows);
  PetscCall(HybTestUpload(&mine, &part[0].csr, &D));
  PetscCall(HybTestUpload(&mine, &part[1].csr, &O));
  PetscCall(HybTestUploadArray(&mine, nrows, sizeof(PetscInt), rows, &drows));
  PetscCall(HybTestUploadArray(&mine, O.n, sizeof(PetscInt), garray, &dgarray));
  RefSubmatrix(A, nrows, rows, 0, n, &R);
  before = HybTestWaits();
  if (HybTestCall(exec->backend->local->pickrows(exec, &keep, &work, &D, &O, nleft, cstart, dgarray, nrows, drows, begin, &S, &from))) {
    Waited(before, 1);
    for (PetscInt k = 0; k <= nrows; k++) HybTestCheck(begin[k] == R.csr.i[k], "row %d begins at %d, not %d", (int)k, (int)begin[k], (int)R.csr.i[k]);
    S.n = n;
    if (HybTestSamePattern(&S, &R)) {
      PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), S.nnz, sizeof(PetscScalar), &S.a));
      HybTestCall(exec->backend->local->pickvalues(exec, S.nnz, from, D.a, O.a, S.a));
      PetscCall(exec->backend->sync(exec));
      HybTestSameMatrix(&S, &R, 0);
    }
  }
  RefMatDestroy(&R);
  for (int known = 0; known < 2; known++) {
    const HybCSR *const of[2]  = {&D, &O};
    PetscCount          nnz[2] = {-1, -1};

    for (int p = 0; p < 2 && known; p++) {
      nnz[p] = 0;
      for (PetscInt k = 0; k < nrows; k++) nnz[p] += part[p].csr.i[rows[k] + 1] - part[p].csr.i[rows[k]];
    }
    before = HybTestWaits();
    if (!HybTestCall(exec->backend->local->pickboth(exec, &keep, &work, of, nnz, nrows, drows, both, perm))) continue;
    Waited(before, !known);
    for (int p = 0; p < 2; p++) {
      RefSubmatrix(&part[p], nrows, rows, 0, part[p].csr.n, &R);
      if (HybTestSamePattern(&both[p], &R)) {
        PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), both[p].nnz, sizeof(PetscScalar), &both[p].a));
        HybTestCall(ops->gather(exec, both[p].nnz, perm[p], PETSC_FALSE, of[p]->a, both[p].a));
        PetscCall(exec->backend->sync(exec));
        HybTestSameMatrix(&both[p], &R, 0);
      }
      RefMatDestroy(&R);
    }
  }
  for (int p = 0; p < 2; p++) RefMatDestroy(&part[p]);
  RefFree(garray, rows, begin);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of X = A^T that the first rows of A meet: all that have entries where these are all of A's */
static PetscErrorCode TestMet(const char *name, const RefMat *A, PetscInt nrows)
{
  const PetscInt     m    = A->csr.n;
  PetscInt          *rows = Ints(PetscMax(nrows, m)), *map = Ints(m), n = 0, *perm, *dmap;
  RefMat             B, X, R;
  HybCSR             b, x, Y;
  unsigned long long before;

  PetscFunctionBegin;
  HybTestBegin("%s, rows that %d of its rows meet", name, (int)nrows);
  for (PetscInt r = 0; r < nrows; r++) rows[r] = r;
  RefSubmatrix(A, nrows, rows, 0, A->csr.n, &B);
  RefTranspose(A, PETSC_FALSE, &X);
  for (PetscInt c = 0; c < m; c++) map[c] = -1;
  for (PetscCount e = 0; e < B.csr.nnz; e++) map[B.csr.j[e]] = 0;
  for (PetscInt c = 0; c < m; c++) {
    if (map[c] < 0) continue;
    rows[n] = c;
    map[c]  = n++;
  }
  RefSubmatrix(&X, n, rows, 0, X.csr.n, &R);
  PetscCall(HybTestUpload(&mine, &B.csr, &b));
  PetscCall(HybTestUpload(&mine, &X.csr, &x));
  before = HybTestWaits();
  if (HybTestCall(exec->backend->local->pickmet(exec, &keep, &work, &b, &x, &Y, &perm, &dmap))) {
    Waited(before, 1);
    HybTestSameInts(m, dmap, map);
    HybTestCheck((perm == NULL) == (R.csr.nnz == X.csr.nnz), "%td of %td entries", R.csr.nnz, X.csr.nnz);
    if (HybTestSamePattern(&Y, &R) && perm) {
      PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), Y.nnz, sizeof(PetscScalar), &Y.a));
      HybTestCall(ops->gather(exec, Y.nnz, perm, PETSC_FALSE, x.a, Y.a));
      PetscCall(exec->backend->sync(exec));
    } else
      HybTestCheck(Y.j == x.j && Y.a == x.a, "arrays that are not X's");
    HybTestSameMatrix(&Y, &R, 0);
  }
  RefMatDestroy(&B, &X, &R);
  RefFree(rows, map);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* columns of which every third one is left out, or all of them, or none */
static PetscErrorCode TestMapped(const char *name, const RefMat *A, int way)
{
  const PetscInt     m = A->csr.m, n = A->csr.n;
  PetscInt          *colmap = Ints(n), *rows = Ints(m), *from = Ints(A->csr.nnz), ncols = 0, k = 0, *dcolmap, *drows, *perm;
  PetscCount         nnz = 0;
  RefMat             R;
  HybCSR             a, C;
  unsigned long long before;

  PetscFunctionBegin;
  HybTestBegin("%s, columns by a map, %d", name, way);
  for (PetscInt c = 0; c < n; c++) colmap[c] = way == 2 || (way == 1 && c % 3 != 1) ? ncols++ : -1;
  RefMatCopy(A, &R);
  for (PetscInt r = 0; r < m; r++) {
    const PetscCount first = nnz;

    for (PetscInt e = A->csr.i[r]; e < A->csr.i[r + 1]; e++) {
      if (colmap[A->csr.j[e]] < 0) continue;
      from[nnz]      = e;
      R.csr.j[nnz]   = colmap[A->csr.j[e]];
      R.csr.a[nnz++] = A->csr.a[e];
    }
    if (nnz == first) continue;
    rows[k]      = r;
    R.csr.i[k++] = (PetscInt)first;
  }
  R.csr.i[k] = (PetscInt)nnz;
  R.csr.m    = k;
  R.csr.n    = ncols;
  R.csr.nnz  = nnz;
  PetscCall(HybTestUpload(&mine, &A->csr, &a));
  PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscInt), colmap, &dcolmap));
  before = HybTestWaits();
  if (HybTestCall(exec->backend->local->pickmapped(exec, &keep, &work, &a, ncols, dcolmap, &C, &drows, &perm))) {
    Waited(before, 1);
    if (HybTestSamePattern(&C, &R)) {
      HybTestSameInts(k, drows, rows);
      HybTestSameInts(nnz, perm, from);
    }
  }
  RefMatDestroy(&R);
  RefFree(colmap, rows, from);
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
    const PetscInt m = A.csr.m, n = A.csr.n, c = n ? HybTestRandomInt(0, n) : 0;

    if (!HybTestSlow() || z % 2 == 0) {
      PetscCall(TestRows(name, &A, c, c + (n - c) / 2));
      PetscCall(TestRows(name, &A, 0, n));
      PetscCall(TestRows(name, &A, c, c));
      PetscCall(TestMet(name, &A, m));
    }
    PetscCall(TestMet(name, &A, m / 2));
    for (int way = 0; way < 3; way++) PetscCall(TestMapped(name, &A, way));
    RefMatDestroy(&A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

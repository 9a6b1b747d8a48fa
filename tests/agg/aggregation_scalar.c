/*
  Smoothed aggregation against PETSc's sequential loops, followed one by one: the shuffle by the C library's own
  generator, the independent set on a squared graph that is formed, the lists and what moves between them, LAPACK's QR
  of each list, and the smoothing by products of matrices. Integers are identical; values agree to rounding, a device's
  with the host's bit by bit.
*/
#include "aggtest.h"

static const HybAggBlock one = {1, 1}; /* unknown a vertex, vector */

/* Q and R of each list's column, by LAPACK */
static PetscBool Factor(const Lists *l, const PetscScalar *b, PetscScalar *q, PetscScalar *coarse)
{
  const GeqrfFn geqrf  = (GeqrfFn)dlsym(RTLD_DEFAULT, NAME(LAPACKgeqrf_));
  const OrgqrFn orgqr  = (OrgqrFn)dlsym(RTLD_DEFAULT, NAME(LAPACKorgqr_));
  PetscScalar  *column = (PetscScalar *)RefAlloc(l->n, sizeof(PetscScalar));

  if (!geqrf || !orgqr) {
    free(column);
    return PETSC_FALSE;
  }
  for (PetscInt v = 0; v < l->n; v++) q[v] = 0;
  for (PetscInt c = 0; c < l->nc; c++) {
    PetscBLASInt m = (PetscBLASInt)(l->ptr[c + 1] - l->ptr[c]), one = 1, words = 64, info;
    PetscScalar  tau = 0, work[64];

    for (PetscInt k = 0; k < m; k++) column[k] = b ? PetscRealPart(b[l->member[l->ptr[c] + k]]) : 1;
    geqrf(&m, &one, column, &m, &tau, work, &words, &info);
    coarse[c] = PetscRealPart(column[0]);
    orgqr(&m, &one, &one, column, &m, &tau, work, &words, &info);
    for (PetscInt k = 0; k < m; k++) q[l->member[l->ptr[c] + k]] = PetscRealPart(column[k]);
  }
  free(column);
  return PETSC_TRUE;
}

/* P0, P0 - omega D^-1 A P0 */
static void Smooth(const RefMat *A, const Lists *l, const PetscScalar *q, PetscReal omega, RefMat *P0, RefMat *P)
{
  PetscInt *row = (PetscInt *)RefAlloc(l->n, sizeof(PetscInt));
  RefMat    T;

  for (PetscInt v = 0; v < l->n; v++) row[v] = v;
  RefCOO(l->n, l->nc, l->n, row, l->parent, q, P0);
  RefSpGEMM(A, P0, &T);
  for (PetscInt r = 0; r < l->n; r++) {
    PetscBool         stored;
    const PetscScalar d = RefGet(A, r, r, &stored), s = d == (PetscScalar)0 ? 0 : (PetscReal)1 / d;

    for (PetscInt k = T.csr.i[r]; k < T.csr.i[r + 1]; k++) {
      T.csr.a[k] *= s;
      T.mag[k] *= PetscAbsScalar(s);
      T.terms[k] += 2;
    }
  }
  RefAdd(-omega, &T, 1, P0, P);
  RefMatDestroy(&T);
  free(row);
}

static int Rounds; /* the most of a search, since it was set to 0 */

/* what a backend finds, from the graph to the prolongators */
typedef struct {
  HybAggregates agg;
  PetscScalar  *q, *coarse;
  HybCSR        P0, P;
} Found;

static PetscErrorCode Find(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, const HybAggRules *rules, const PetscScalar *b, PetscReal omega, Found *f)
{
  const HybAggOps *ops = exec->backend->agg;

  HybAggRules told = *rules;
  HybAggLook  look;

  PetscFunctionBegin;
  if (HybTestRandomInt(0, 2)) { /* who knows the longest row says so */
    PetscCall(ops->look(exec, work, G, &look));
    told.longest = look.longest;
  }
  PetscCall(HybAggFind(exec, keep, work, G, &told, &f->agg, NULL));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), f->agg.n, sizeof(PetscScalar), &f->q));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), f->agg.nc, sizeof(PetscScalar), &f->coarse));
  PetscCall(ops->tentative(exec, work, &f->agg, NULL, &one, b, NULL, NULL, f->q, f->coarse, NULL));
  PetscCall(ops->unsmoothed(exec, keep, work, &f->agg, &one, f->q, &f->P0));
  PetscCall(ops->smoothed(exec, keep, work, G, told.longest, &f->agg, &one, f->q, omega, &f->P));
  PetscCall(exec->backend->sync(exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const RefMat *G, const HybCSR *there, const HybAggRules *rules, const PetscScalar *b, HybArena *mine)
{
  const HybExec  host = {&HybBackendHost, NULL, HYB_MEM_HOST}, *exec = HybTestExec();
  const PetscInt n = G->csr.m;
  HybArena       keep, work;
  PetscScalar   *q, *coarse, *bthere = NULL;
  PetscReal     *mag;
  PetscCount    *terms;
  Found          f, h;
  Lists          l;
  RefMat         P0, P;
  HybArena       hostkeep = HybArenaOn(&host);

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &work));
  if (b) PetscCall(HybTestUploadArray(mine, n, sizeof(PetscScalar), b, &bthere));
  Coarsen(G, rules, &l);
  q      = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  coarse = (PetscScalar *)RefAlloc(l.nc, sizeof(PetscScalar));
  mag    = (PetscReal *)RefAlloc(n, sizeof(PetscReal));
  terms  = (PetscCount *)RefAlloc(n, sizeof(PetscCount));
  if (!Factor(&l, b, q, coarse)) {
    HybTestSkip("this PETSc shows no LAPACK");
  } else if (HybTestCall(Find(exec, &keep, &work, there, rules, bthere, 0.7, &f))) {
    Rounds = PetscMax(Rounds, f.agg.rounds);
    HybTestCheck(f.agg.n == n && f.agg.nc == l.nc, "%" PetscInt_FMT " aggregates of %" PetscInt_FMT " vertices, not %" PetscInt_FMT " of %" PetscInt_FMT, f.agg.nc, f.agg.n, l.nc, n);
    if (f.agg.nc == l.nc) {
      PetscInt *lead = (PetscInt *)RefAlloc(l.nc, sizeof(PetscInt));

      for (PetscInt c = 0; c < l.nc; c++) lead[c] = l.member[l.ptr[c]];
      HybTestSameInts(n, f.agg.parent, l.parent);
      HybTestSameInts(l.nc, f.agg.lead, lead);
      free(lead);
      for (PetscInt v = 0; v < n; v++) {
        /* LAPACK finds the first entry as a difference of numbers about 1 */
        mag[v]   = l.parent[v] >= 0 && l.member[l.ptr[l.parent[v]]] == v ? 1 : PetscAbsScalar(q[v]);
        terms[v] = l.parent[v] < 0 ? 1 : l.ptr[l.parent[v] + 1] - l.ptr[l.parent[v]] + 8;
      }
      HybTestSameScalars(n, f.q, q, mag, terms, 4);
      for (PetscInt c = 0; c < l.nc; c++) {
        mag[c]   = PetscAbsScalar(coarse[c]);
        terms[c] = l.ptr[c + 1] - l.ptr[c] + 8;
      }
      HybTestSameScalars(l.nc, f.coarse, coarse, mag, terms, 4);
      PetscCall(HybTestDownloadArray(n, sizeof(PetscScalar), f.q, q)); /* the products of the same q */
      Smooth(G, &l, q, 0.7, &P0, &P);
      HybTestSameMatrix(&f.P0, &P0, 0);
      HybTestSameMatrix(&f.P, &P, 8);
      RefMatDestroy(&P0, &P);
      PetscCall(Find(&host, &hostkeep, &hostkeep, &G->csr, rules, b, 0.7, &h));
      HybTestSameBits(n, sizeof(PetscScalar), f.q, h.q);
      HybTestSameBits(l.nc, sizeof(PetscScalar), f.coarse, h.coarse);
      /* of complex numbers a division may round otherwise */
      if (!PetscDefined(USE_COMPLEX) && h.P.nnz == f.P.nnz) HybTestSameBits(h.P.nnz, sizeof(PetscScalar), f.P.a, h.P.a);
    }
  }
  RefFree(q, coarse, mag, terms);
  ListsDestroy(&l);
  PetscCall(HybTestReset(&keep, &work, &hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestLook(const RefMat *G, const HybCSR *there)
{
  const HybExec *exec = HybTestExec();
  HybAggLook     look, expected = {0, 0, 0, 0, PETSC_TRUE};
  HybArena       work = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt r = 0; r < G->csr.m; r++) {
    const PetscInt length = G->csr.i[r + 1] - G->csr.i[r];
    PetscBool      stored;

    (void)RefGet(G, r, r, &stored);
    expected.nodiagonal += !stored;
    expected.alone += length < 2;
    expected.empty += length == 0;
    expected.longest = PetscMax(expected.longest, length);
    for (PetscInt k = G->csr.i[r]; expected.symmetric && k < G->csr.i[r + 1]; k++) {
      (void)RefGet(G, G->csr.j[k], r, &stored);
      expected.symmetric = stored;
    }
  }
  memset(&look, 0xff, sizeof(look));
  if (HybTestCall(exec->backend->agg->look(exec, &work, there, &look))) {
    HybTestCheck(look.nodiagonal == expected.nodiagonal, "%" PetscCount_FMT " rows without a diagonal entry, not %" PetscCount_FMT, look.nodiagonal, expected.nodiagonal);
    HybTestCheck(look.alone == expected.alone, "%" PetscCount_FMT " vertices alone, not %" PetscCount_FMT, look.alone, expected.alone);
    HybTestCheck(look.empty == expected.empty, "%" PetscCount_FMT " empty rows, not %" PetscCount_FMT, look.empty, expected.empty);
    HybTestCheck(look.longest == expected.longest, "the longest row has %" PetscInt_FMT " entries, not %" PetscInt_FMT, look.longest, expected.longest);
    HybTestCheck(look.symmetric == expected.symmetric, "symmetric: %d, not %d", (int)look.symmetric, (int)expected.symmetric);
  }
  PetscCall(HybArenaReset(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all: with vectors of every kind */
static PetscErrorCode TestGraph(const char *name, RefMat *G, PetscBool all)
{
  const HybExec *exec = HybTestExec();
  const PetscInt n    = G->csr.m;
  HybCSR         there;
  PetscScalar   *b;
  static size_t  turn = 1; /* the same for a graph whatever part it falls to */
  HybArena       mine = HybArenaOn(exec);

  PetscFunctionBegin;
  if (++turn == PETSC_STATIC_ARRAY_LENGTH(Rules)) turn = 2;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestRandomize(G);
  for (PetscInt r = 0; r < n; r++) /* now and then a zero on the diagonal */
    for (PetscInt k = G->csr.i[r]; k < G->csr.i[r + 1]; k++)
      if (G->csr.j[k] == r && HybTestRandomInt(0, 17) == 3) G->csr.a[k] = 0;
  PetscCall(HybTestUpload(&mine, &G->csr, &there));
  HybTestBegin("look at %s", name);
  PetscCall(TestLook(G, &there));
  b = HybTestRandomVector(n);
  for (int k = 0; k < 3; k++) { /* the default ones, and others in turn */
    const HybAggRules *const rules = &Rules[k < 2 ? (size_t)k : turn];

    HybTestBegin("%s, %s, ones", name, Said(rules));
    PetscCall(Compare(G, &there, rules, NULL, &mine));
    if (!all && HybTestRandomInt(0, 8)) continue;
    HybTestBegin("%s, %s, a vector", name, Said(rules));
    PetscCall(Compare(G, &there, rules, b, &mine));
    if (!all || k == 2) continue;
    for (PetscInt v = 0; v < n; v++) b[v] = HybTestRandomInt(0, 3) ? 0. : HybTestRandomInt(0, 2) ? -0.
                                                                                                 : b[v] * (PetscReal)TINY;
    HybTestBegin("%s, %s, small numbers and zeros", name, Said(rules));
    PetscCall(Compare(G, &there, rules, b, &mine));
    for (PetscInt v = 0; v < n; v++) b[v] = HybTestRandomScalar() * (PetscReal)HUGE;
    HybTestBegin("%s, %s, large numbers", name, Said(rules));
    PetscCall(Compare(G, &there, rules, b, &mine));
  }
  free(b);
  PetscCall(HybArenaReset(&mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestShuffle(PetscInt n)
{
  const HybExec *exec = HybTestExec();
  PetscInt      *place, *order = Shuffle(n), *expected = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  HybArena       work = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) expected[order[k]] = k;
  PetscCall(HybArenaAlloc(&work, HYB_WORK(exec), n, sizeof(PetscInt), &place));
  if (HybTestCall(exec->backend->agg->permutation(exec, &work, n, HYB_AGG_SHUFFLED, NULL, place))) HybTestSameInts(n, place, expected);
  PetscCall(HybArenaReset(&work));
  RefFree(order, expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shuffles(void)
{
  PetscFunctionBegin;
  for (PetscInt n = 0; n <= 200; n += 20) {
    if (!HybTestMine()) continue;
    HybTestBegin("shuffles of %" PetscInt_FMT " and more", n);
    for (PetscInt k = n; k < n + 20 && k <= 200; k++) PetscCall(TestShuffle(k));
  }
  for (int k = 0; k < 6; k++) {
    PetscInt n;

    if (!HybTestMine()) continue;
    n = k == 5 ? HybTestSize(3000001, 20011) : HybTestRandomInt(201, HybTestSize(100000, 5000));
    HybTestBegin("shuffle of %" PetscInt_FMT, n);
    PetscCall(TestShuffle(n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graphs(void)
{
  static const char *const shapes[] = {"a chain", "a star", "a clique", "vertices alone", "a random graph", "pairs", "a chain along the shuffle"};
  const PetscInt           step     = HybTestSlow() ? 7 : 1;
  const PetscInt           hub[8] = {0}, leaf[] = {1, 2, 3, 4, 5, 6, 7, 8};
  char                     name[128];
  RefMat                   A, G;

  PetscFunctionBegin;
  for (int shape = 0; shape < (int)PETSC_STATIC_ARRAY_LENGTH(shapes); shape++) {
    for (PetscInt n = 0; n <= 200; n += n < 9 ? 1 : step) {
      if (shape == 2 && n > 60 && n % 23) continue;
      SmallGraph(shape, n, &G);
      snprintf(name, sizeof(name), "%s of %" PetscInt_FMT, shapes[shape], n);
      PetscCall(TestGraph(name, &G, PETSC_FALSE));
      RefMatDestroy(&G);
    }
  }
  SmallGraph(6, HybTestSize(20000, 3000), &G);
  Rounds = 0;
  PetscCall(TestGraph("a long chain along the shuffle", &G, PETSC_FALSE));
  if (Rounds && HybTestExec()->backend->device) {
    HybTestBegin("rounds of a long chain along the shuffle");
    HybTestCheck(Rounds > 100, "%d rounds: the chain was to take as many as there may be", Rounds);
  }
  RefMatDestroy(&G);
  SmallGraph(1, HybTestSize(2100, 1200), &G);
  PetscCall(TestGraph("a large star", &G, PETSC_TRUE));
  RefMatDestroy(&G);
  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    GraphOf(&A, PETSC_FALSE, &G);
    RefMatDestroy(&A);
    PetscCall(TestGraph(name, &G, PETSC_TRUE));
    RefMatDestroy(&G);
  }
  for (int k = 0; k < 10; k++) {
    static const char *const names[] = {"5-point", "7-point", "9-point", "27-point", "relabelled 7-point", "relabelled 27-point", "a power law", "a dense row", "random rows", "wide rows"};

    switch (k) {
    case 0: HybTestMatStencil(5, HybTestSize(70, 33), HybTestSize(61, 32), 1, &A); break;
    case 1:
    case 4: HybTestMatStencil(7, HybTestSize(21, 12), HybTestSize(20, 11), HybTestSize(22, 10), &A); break;
    case 2: HybTestMatStencil(9, HybTestSize(50, 23), HybTestSize(41, 30), 1, &A); break;
    case 3:
    case 5: HybTestMatStencil(27, HybTestSize(17, 9), HybTestSize(16, 9), HybTestSize(15, 10), &A); break;
    case 6: HybTestMatPowerLaw(HybTestSize(3000, 700), HybTestSize(3000, 700), 6, &A); break;
    case 7: HybTestMatDenseRow(HybTestSize(2100, 1200), HybTestSize(2100, 1200), 77, 4, &A); break;
    case 8: HybTestMatRandom(HybTestSize(4000, 900), HybTestSize(4000, 900), 0, 7, &A); break;
    default: HybTestMatRandom(HybTestSize(900, 400), HybTestSize(900, 400), 0, 160, &A);
    }
    GraphOf(&A, (PetscBool)(k == 4 || k == 5), &G);
    RefMatDestroy(&A);
    Rounds = 0;
    PetscCall(TestGraph(names[k], &G, PETSC_TRUE));
    if (Rounds) {
      HybTestBegin("rounds of %s", names[k]);
      HybTestCheck(Rounds <= 30, "%d rounds are more than a graph of its size takes", Rounds);
    }
    RefMatDestroy(&G);
  }
  /* up to AGG_LONG entries, 1024, a sub-warp takes a row */
  for (PetscInt n = 1023; n <= 1026; n++) {
    SmallGraph(1, n, &G);
    snprintf(name, sizeof(name), "a star of %" PetscInt_FMT, n);
    PetscCall(TestGraph(name, &G, PETSC_FALSE));
    RefMatDestroy(&G);
  }
  /* up to SMOOTH_FEW rows, 2^17, are taken as if all were as long as the longest */
  for (PetscInt n = 1 << 17; n <= (1 << 17) + 1 && !HybTestSlow(); n++) {
    Graph(n, 8, hub, leaf, &G);
    snprintf(name, sizeof(name), "a star of nine and others alone, %" PetscInt_FMT, n);
    PetscCall(TestGraph(name, &G, PETSC_FALSE));
    RefMatDestroy(&G);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* G without its rows' own entries, or without so many of them: all but each third */
static void Strip(const RefMat *G, PetscBool all, RefMat *S)
{
  PetscInt  *ci = (PetscInt *)RefAlloc(G->csr.nnz, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(G->csr.nnz, sizeof(PetscInt));
  PetscCount n = 0;

  for (PetscInt r = 0; r < G->csr.m; r++)
    for (PetscInt k = G->csr.i[r]; k < G->csr.i[r + 1]; k++) {
      if (G->csr.j[k] == r && (all || r % 3)) continue;
      ci[n]   = r;
      cj[n++] = G->csr.j[k];
    }
  RefCOO(G->csr.m, G->csr.n, n, ci, cj, NULL, S);
  RefFree(S->mag, S->terms);
  S->mag   = NULL;
  S->terms = NULL;
  RefFree(ci, cj);
}

static PetscErrorCode TestStripped(const char *name, const RefMat *G, PetscBool every)
{
  char   text[128];
  RefMat S;

  PetscFunctionBegin;
  for (int all = 0; all < 2; all++) {
    Strip(G, (PetscBool)all, &S);
    snprintf(text, sizeof(text), "%s without %s diagonal entries", name, all ? "its" : "most");
    PetscCall(TestGraph(text, &S, every));
    RefMatDestroy(&S);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NoDiagonals(void)
{
  static const PetscInt sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 40, 131};
  char                  name[64];
  RefMat                A, G;

  PetscFunctionBegin;
  for (int shape = 0; shape < 7; shape++) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
      SmallGraph(shape, sizes[k], &G);
      snprintf(name, sizeof(name), "shape %d of %" PetscInt_FMT, shape, sizes[k]);
      PetscCall(TestStripped(name, &G, PETSC_FALSE));
      RefMatDestroy(&G);
    }
  }
  SmallGraph(1, HybTestSize(2100, 1200), &G);
  PetscCall(TestStripped("a large star", &G, PETSC_TRUE));
  RefMatDestroy(&G);
  for (int k = 0; k < 4; k++) {
    static const char *const names[] = {"5-point", "a power law", "random rows", "a dense row"};

    switch (k) {
    case 0: HybTestMatStencil(5, 33, 32, 1, &A); break;
    case 1: HybTestMatPowerLaw(700, 700, 3, &A); break;
    case 2: HybTestMatRandom(900, 900, 0, 3, &A); break;
    default: HybTestMatDenseRow(1200, 1200, 77, 4, &A);
    }
    GraphOf(&A, PETSC_FALSE, &G);
    RefMatDestroy(&A);
    PetscCall(TestStripped(names[k], &G, PETSC_TRUE));
    RefMatDestroy(&G);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* graphs that the rules do not hold for: found to be such */
static PetscErrorCode Looks(void)
{
  const HybExec *exec = HybTestExec();
  HybCSR         there;
  RefMat         A;
  char           name[64];
  HybArena       mine = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    if (HybTestMine()) {
      HybTestBegin("look at %s as it is", name);
      PetscCall(HybTestUpload(&mine, &A.csr, &there));
      PetscCall(TestLook(&A, &there));
    }
    RefMatDestroy(&A);
  }
  /* the entry (2,0) is the next one behind an empty row 1 */
  if (HybTestMine()) {
    const PetscInt i[] = {0, 2, 2, 3}, j[] = {1, 2, 0};

    HybTestMatArrays(3, 3, i, j, NULL, &A);
    HybTestBegin("look at an empty row that another one names");
    PetscCall(HybTestUpload(&mine, &A.csr, &there));
    PetscCall(TestLook(&A, &there));
    RefMatDestroy(&A);
  }
  /* a symmetric graph with one entry less, anywhere */
  for (int k = 0; k < 60; k++) {
    RefMat   G, B;
    PetscInt n, gone, nnz = 0, *ci, *cj;

    if (!HybTestMine()) continue;
    if (k % 3)
      HybTestMatStencil(5, HybTestRandomInt(1, 9), HybTestRandomInt(1, 9), 1, &A);
    else
      HybTestMatDenseRow(1300, 1300, HybTestRandomInt(0, 1300), 2, &A);
    GraphOf(&A, PETSC_TRUE, &G);
    RefMatDestroy(&A);
    n    = G.csr.m;
    gone = HybTestRandomInt(0, (PetscInt)G.csr.nnz);
    ci   = (PetscInt *)RefAlloc(G.csr.nnz, sizeof(PetscInt));
    cj   = (PetscInt *)RefAlloc(G.csr.nnz, sizeof(PetscInt));
    for (PetscInt r = 0; r < n; r++)
      for (PetscInt e = G.csr.i[r]; e < G.csr.i[r + 1]; e++) {
        if (e == gone) continue;
        ci[nnz]   = r;
        cj[nnz++] = G.csr.j[e];
      }
    RefCOO(n, n, nnz, ci, cj, NULL, &B);
    HybTestBegin("look at a graph of %" PetscInt_FMT " vertices without entry %" PetscInt_FMT, n, gone);
    PetscCall(HybTestUpload(&mine, &B.csr, &there));
    PetscCall(TestLook(&B, &there));
    RefFree(ci, cj);
    RefMatDestroy(&B, &G);
  }
  PetscCall(HybArenaReset(&mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultRun(void *ctx)
{
  const HybExec *exec = HybTestExec();
  HybAggLook     look;
  Found          f;

  PetscFunctionBegin;
  PetscCall(exec->backend->agg->look(exec, &FaultWork, &FaultMatrix, &look));
  PetscCall(Find(exec, &FaultKeep, &FaultWork, &FaultMatrix, (const HybAggRules *)ctx, FaultVector, 0.5, &f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(void)
{
  RefMat A;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestMatDenseRow(1400, 1400, 10, 2, &A);
  GraphOf(&A, PETSC_FALSE, &FaultRef);
  HybTestRandomize(&FaultRef);
  RefMatDestroy(&A);
  PetscCall(FaultsBegin(1400, HybTestRandomVector(1400)));
  for (size_t k = 0; k < 5; k++) {
    HybAggRules rules = Rules[k];

    HybTestBegin("every allocation fails, %s", Said(&rules));
    HybTestFaults(FaultRun, FaultClean, &rules);
  }
  PetscCall(FaultsEnd());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what cannot be */
static PetscErrorCode Errors(void)
{
  const HybExec   *exec = HybTestExec();
  const HybAggOps *ops  = exec->backend->agg;
  HybArena         keep, work, mine;
  HybAggregates    agg;
  HybAggLists      lists = {NULL, NULL};
  HybAggLook       look;
  HybCSR           there, P;
  RefMat           A;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybTestArenas(exec, &keep, &work, &mine));
  HybTestMatRandom(30, 40, 1, 5, &A);
  PetscCall(HybTestUpload(&mine, &A.csr, &there));
  HybTestBegin("a graph that is not square, three steps, aggregates of something else");
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->look(exec, &work, &there, &look));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->aggregates(exec, &keep, &work, &there, 1, HYB_AGG_SHUFFLED, 0, &agg));
  there.n = there.m;
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, ops->aggregates(exec, &keep, &work, &there, 3, HYB_AGG_SHUFFLED, 0, &agg));
  for (int k = 0; k < 3; k++) {
    static const HybAggRules none[] = {
      {2, 2,                     HYB_AGG_SHUFFLED, 0},
      {1, 0,                     HYB_AGG_SHUFFLED, 0},
      {1, HYB_AGG_DISTANCES + 1, HYB_AGG_SHUFFLED, 0}
    };

    HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybAggFind(exec, &keep, &work, &there, &none[k], &agg, NULL));
  }
  memset(&agg, 0, sizeof(agg));
  agg.n = 29;
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->quotient(exec, &keep, &work, &there, &agg, &lists, &P));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->compose(exec, &agg, &agg));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->smoothed(exec, &keep, &work, &there, 0, &agg, &one, NULL, 0.5, &P));
  RefMatDestroy(&A);
  PetscCall(HybTestReset(&keep, &work, &mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  PetscCall(Shuffles());
  PetscCall(Graphs());
  PetscCall(NoDiagonals());
  PetscCall(Looks());
  PetscCall(Errors());
  PetscCall(Faults());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

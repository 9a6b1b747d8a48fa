/*
  Aggregation of several unknowns a vertex and several near-null vectors: the graph of vertices, PETSc's lists, LAPACK's
  QR of each list's block, and the prolongators by products of matrices. Integers are identical; values agree to
  rounding, a device's with the host's bit by bit; where rounding decides, they are LAPACK's.
*/
#include "aggtest.h"

#define WORSE (PetscReal)(sizeof(PetscReal) == sizeof(float) ? 3e-2 : 1e-9)

static GeqrfFn  Geqrf;
static OrgqrFn  Orgqr;
static PetscInt Factored; /* blocks that went to LAPACK */

static PetscErrorCode Lapack(void *ctx, PetscInt m, PetscInt n, PetscReal *B, PetscReal *R)
{
  PetscBLASInt M = (PetscBLASInt)m, N = (PetscBLASInt)n, words = 1024, info;
  PetscScalar  tau[HYB_AGG_VECTORS], work[1024], *A            = (PetscScalar *)RefAlloc((PetscCount)m * n, sizeof(PetscScalar));

  PetscFunctionBegin;
  PetscCheck(ctx == (void *)&Factored, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The context got lost");
  Factored++;
  for (PetscInt k = 0; k < m * n; k++) A[k] = B[k];
  Geqrf(&M, &N, A, &M, tau, work, &words, &info);
  for (PetscInt c = 0; c < n; c++)
    for (PetscInt k = 0; k < n; k++) R[c * n + k] = k <= c ? PetscRealPart(A[c * m + k]) : 0;
  Orgqr(&M, &N, &N, A, &M, tau, work, &words, &info);
  for (PetscInt k = 0; k < m * n; k++) B[k] = PetscRealPart(A[k]);
  free(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* q and coarse of all lists by LAPACK */
static void FactorAll(const Lists *l, const HybAggBlock *block, const PetscScalar *b, PetscScalar *q, PetscScalar *coarse)
{
  const PetscInt bs = block->bs, nvec = block->nvec, ld = l->n * bs;

  for (PetscInt c = 0; c < l->nc; c++) {
    const PetscInt m = (l->ptr[c + 1] - l->ptr[c]) * bs, rows = PetscMax(m, nvec);
    PetscReal     *B = (PetscReal *)RefAlloc((PetscCount)rows * nvec, sizeof(PetscReal)), R[HYB_AGG_VECTORS * HYB_AGG_VECTORS];

    for (PetscInt t = 0; t < nvec; t++)
      for (PetscInt k = 0; k < m; k++) {
        const PetscInt row = l->member[l->ptr[c] + k / bs] * bs + k % bs;

        B[t * rows + k] = b ? PetscRealPart(b[t * ld + row]) : row % bs == t;
      }
    (void)Lapack(&Factored, rows, nvec, B, R);
    for (PetscInt t = 0; t < nvec; t++) {
      for (PetscInt k = 0; k < m; k++) q[(l->member[l->ptr[c] + k / bs] * bs + k % bs) * nvec + t] = B[t * rows + k];
      for (PetscInt k = 0; k < nvec; k++) coarse[t * l->nc * nvec + c * nvec + k] = R[t * nvec + k];
    }
    free(B);
  }
}

/* P0, P0 - omega D^-1 A P0 */
static void SmoothAll(const RefMat *A, const Lists *l, const HybAggBlock *block, const PetscScalar *q, PetscReal omega, RefMat *P0, RefMat *P)
{
  const PetscInt m = l->n * block->bs, nvec = block->nvec;
  PetscInt      *row = (PetscInt *)RefAlloc((PetscCount)m * nvec, sizeof(PetscInt)), *col = (PetscInt *)RefAlloc((PetscCount)m * nvec, sizeof(PetscInt));
  RefMat         T;

  for (PetscInt r = 0; r < m; r++)
    for (PetscInt t = 0; t < nvec; t++) {
      row[r * nvec + t] = r;
      col[r * nvec + t] = l->parent[r / block->bs] < 0 ? -1 : l->parent[r / block->bs] * nvec + t;
    }
  RefCOO(m, l->nc * nvec, (PetscCount)m * nvec, row, col, q, P0);
  RefSpGEMM(A, P0, &T);
  for (PetscInt r = 0; r < m; r++) {
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
  RefFree(row, col);
}

/* Entry k of each row is of unknown k modulo bs, but some that stand together are of several vertices */
static PetscBool IsStaggered(const RefMat *A, PetscInt bs)
{
  PetscBool broken = PETSC_FALSE;

  for (PetscInt r = 0; r < A->csr.m; r++)
    for (PetscInt k = 0; k < A->csr.i[r + 1] - A->csr.i[r]; k++) {
      const PetscInt *c = A->csr.j + A->csr.i[r] + k;

      if (*c % bs != k % bs) return PETSC_FALSE;
      if (k % bs && c[-1] / bs != *c / bs) broken = PETSC_TRUE;
    }
  return broken;
}

/* what a backend finds, from the matrix to the prolongators */
typedef struct {
  HybCSR          G, P0, P;
  HybAggCollapsed collapsed;
  HybAggregates   agg;
  HybAggLists     lists;
  PetscScalar    *q, *coarse;
  PetscInt        doubtful;
} Found;

static PetscErrorCode Find(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybAggRules *rules, const HybAggBlock *block, const PetscScalar *b, HybAggFactor factor, Found *f)
{
  const HybAggOps *ops = exec->backend->agg;

  PetscFunctionBegin;
  PetscCall(ops->collapse(exec, keep, work, A, block->bs, &f->G, &f->collapsed));
  PetscCall(HybAggFind(exec, keep, work, &f->G, rules, &f->agg, &f->lists));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), (PetscCount)A->m * block->nvec, sizeof(PetscScalar), &f->q));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), (PetscCount)f->agg.nc * block->nvec * block->nvec, sizeof(PetscScalar), &f->coarse));
  PetscCall(ops->tentative(exec, work, &f->agg, &f->lists, block, b, factor, &Factored, f->q, f->coarse, &f->doubtful));
  PetscCall(ops->unsmoothed(exec, keep, work, &f->agg, block, f->q, &f->P0));
  PetscCall(ops->smoothed(exec, keep, work, A, 0, &f->agg, block, f->q, 0.7, &f->P));
  PetscCall(exec->backend->sync(exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* within tol of 1 or of an aggregate's largest */
static void SameBlocks(PetscCount n, const PetscScalar *there, const PetscScalar *expected, PetscReal scale, PetscReal tol, const char *what)
{
  PetscScalar *found = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  PetscReal    worst = 0;
  PetscCount   at    = 0;

  if (HybTestCall(HybTestDownloadArray(n, sizeof(PetscScalar), there, found))) {
    for (PetscCount k = 0; k < n; k++) {
      const PetscReal d = PetscAbsScalar(found[k] - expected[k]);

      if (!(d <= worst)) {
        worst = d;
        at    = k;
      }
    }
    HybTestCheck(worst <= tol * scale, "%s: entry %" PetscCount_FMT " is %g, not %g", what, at, n ? (double)PetscRealPart(found[at]) : 0., n ? (double)PetscRealPart(expected[at]) : 0.);
  }
  free(found);
}

/* aggregates of two rows and more and fewer than vectors */
static PetscInt Short(const Lists *l, const HybAggBlock *block)
{
  PetscInt n = 0;

  for (PetscInt c = 0; c < l->nc; c++) {
    const PetscInt rows = (l->ptr[c + 1] - l->ptr[c]) * block->bs;

    n += rows > 1 && rows < block->nvec;
  }
  return n;
}

/* Doubtful: some blocks must be; and the factor of the caller's is given. tol: of Q and R beside LAPACK's */
static PetscErrorCode Compare(const RefMat *A, const RefMat *G, const HybAggRules *rules, const HybAggBlock *block, const PetscScalar *b, PetscBool doubtful, PetscReal tol)
{
  const HybExec  host = {&HybBackendHost, NULL, HYB_MEM_HOST}, *exec = HybTestExec();
  const PetscInt m = A->csr.m, nvec = block->nvec;
  HybArena       mine, keep, work;
  PetscScalar   *q = (PetscScalar *)RefAlloc((PetscCount)m * nvec, sizeof(PetscScalar)), *coarse, *bthere = NULL;
  PetscReal      scale = 1;
  HybCSR         there;
  Found          f, h;
  Lists          l;
  RefMat         P0, P;
  HybArena       hostkeep = HybArenaOn(&host);

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &mine, &keep, &work));
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  if (b) PetscCall(HybTestUploadArray(&mine, (PetscCount)m * nvec, sizeof(PetscScalar), b, &bthere));
  Coarsen(G, rules, &l);
  coarse = (PetscScalar *)RefAlloc((PetscCount)l.nc * nvec * nvec, sizeof(PetscScalar));
  FactorAll(&l, block, b, q, coarse);
  for (PetscInt k = 0; k < l.nc * nvec * nvec; k++) scale = PetscMax(scale, PetscAbsScalar(coarse[k]));
  Factored = 0;
  if (HybTestCall(Find(exec, &keep, &work, &there, rules, block, bthere, doubtful ? Lapack : NULL, &f))) {
    HybTestSamePattern(&f.G, G);
    HybTestCheck(f.collapsed.nodiagonal == 0, "%" PetscCount_FMT " rows without a diagonal entry", f.collapsed.nodiagonal);
    HybTestCheck(HybAggStaggered(&f.collapsed) == IsStaggered(A, block->bs), "staggered: %d", (int)HybAggStaggered(&f.collapsed));
    HybTestCheck(f.agg.nc == l.nc, "%" PetscInt_FMT " aggregates, not %" PetscInt_FMT, f.agg.nc, l.nc);
    if (f.agg.nc == l.nc) {
      HybTestSameInts(l.nc + 1, f.lists.begin, l.ptr);
      HybTestSameInts(l.ptr[l.nc], f.lists.member, l.member);
      if (doubtful && exec->backend->device) HybTestCheck(f.doubtful > 0 && f.doubtful == Factored, "%" PetscInt_FMT " blocks are doubtful, %" PetscInt_FMT " went to LAPACK", f.doubtful, Factored);
      if (doubtful && !exec->backend->device) HybTestCheck(Factored == l.nc, "%" PetscInt_FMT " blocks of %" PetscInt_FMT " went to LAPACK", Factored, l.nc);
      if (tol < PETSC_INFINITY) { /* LAPACK need not take numbers whose squares are none */
        SameBlocks((PetscCount)m * nvec, f.q, q, 1, tol, "Q");
        SameBlocks((PetscCount)l.nc * nvec * nvec, f.coarse, coarse, scale, tol, "R");
      }
      /* the products of the same q */
      PetscCall(HybTestDownloadArray((PetscCount)m * nvec, sizeof(PetscScalar), f.q, q));
      SmoothAll(A, &l, block, q, 0.7, &P0, &P);
      HybTestSameMatrix(&f.P0, &P0, 0);
      HybTestSameMatrix(&f.P, &P, 8);
      RefMatDestroy(&P0, &P);
      if (!doubtful) {
        PetscCall(Find(&host, &hostkeep, &hostkeep, &A->csr, rules, block, b, NULL, &h));
        HybTestCheck(h.doubtful == f.doubtful, "%" PetscInt_FMT " blocks are doubtful, %" PetscInt_FMT " on the host", f.doubtful, h.doubtful);
        if (b && tol < PETSC_INFINITY) HybTestCheck(f.doubtful >= Short(&l, block), "%" PetscInt_FMT " blocks are doubtful, %" PetscInt_FMT " have fewer rows than vectors", f.doubtful, Short(&l, block));
        HybTestSameBits((PetscCount)m * nvec, sizeof(PetscScalar), f.q, h.q);
        HybTestSameBits((PetscCount)l.nc * nvec * nvec, sizeof(PetscScalar), f.coarse, h.coarse);
        /* of complex numbers a division may round otherwise */
        if (!PetscDefined(USE_COMPLEX) && h.P.nnz == f.P.nnz) HybTestSameBits(h.P.nnz, sizeof(PetscScalar), f.P.a, h.P.a);
      }
    }
  }
  RefFree(q, coarse);
  ListsDestroy(&l);
  PetscCall(HybTestReset(&mine, &keep, &work, &hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* translations and rotations of vertices on a grid of nx columns: 2 unknowns, 3 vectors; 3 unknowns, 6 vectors */
static void RigidBody(PetscInt n, PetscInt bs, PetscInt nx, PetscScalar *b)
{
  const PetscInt ld = n * bs;

  memset(b, 0, sizeof(*b) * (size_t)ld * (bs == 2 ? 3 : 6));
  for (PetscInt v = 0; v < n; v++) {
    const PetscScalar x = v % nx, y = v / nx % nx, z = v / (nx * nx);

    for (PetscInt t = 0; t < bs; t++) b[t * ld + v * bs + t] = 1;
    if (bs == 2) {
      b[2 * ld + v * 2]     = -y;
      b[2 * ld + v * 2 + 1] = x;
    } else {
      b[3 * ld + v * 3 + 1] = -z;
      b[3 * ld + v * 3 + 2] = y;
      b[4 * ld + v * 3]     = z;
      b[4 * ld + v * 3 + 2] = -x;
      b[5 * ld + v * 3]     = -y;
      b[5 * ld + v * 3 + 1] = x;
    }
  }
}

static PetscErrorCode TestGraph(const char *name, const RefMat *G, PetscInt bs, PetscInt nvec, PetscInt nx)
{
  const HybAggBlock block = {bs, nvec}, rigid = {bs, bs == 2 ? 3 : 6};
  PetscScalar      *b;
  RefMat            A;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  for (int full = 0; full < 2; full++) {
    const PetscInt           pick  = HybTestRandomInt(0, 12); /* the default ones half of the time */
    const HybAggRules *const rules = &Rules[pick < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Rules) ? pick : pick % 2];

    Unknowns(G, bs, (PetscBool)full, &A);
    for (PetscInt r = 0; r < A.csr.m; r++) /* now and then a zero on the diagonal */
      for (PetscInt k = A.csr.i[r]; k < A.csr.i[r + 1]; k++)
        if (A.csr.j[k] == r && HybTestRandomInt(0, 17) == 3) A.csr.a[k] = 0;
    b = HybTestRandomVector((PetscCount)A.csr.m * nvec);
    HybTestBegin("%s, %" PetscInt_FMT " unknowns, %" PetscInt_FMT " vectors, %s%s", name, bs, nvec, Said(rules), full ? ", full" : "");
    PetscCall(Compare(&A, G, rules, &block, b, PETSC_FALSE, WORSE)); /* some blocks are ill-conditioned */
    if (bs == nvec) {
      HybTestBegin("%s, %" PetscInt_FMT " translations, %s", name, bs, Said(rules));
      PetscCall(Compare(&A, G, rules, &block, NULL, PETSC_FALSE, 64 * PETSC_MACHINE_EPSILON));
    }
    if (full) {
      for (PetscInt k = 0; k < A.csr.m * nvec; k++) b[k] *= (PetscReal)(k % 2 ? HUGE : 1e-5 * HUGE);
      HybTestBegin("%s, large numbers", name);
      PetscCall(Compare(&A, G, rules, &block, b, PETSC_FALSE, PETSC_INFINITY)); /* the bits alone */
      for (PetscInt k = 0; k < A.csr.m * nvec; k++) b[k] = HybTestRandomInt(0, 3) ? 0. : HybTestRandomScalar() * (PetscReal)(1e3 * TINY);
      HybTestBegin("%s, small numbers and zeros", name);
      PetscCall(Compare(&A, G, rules, &block, b, PETSC_FALSE, PETSC_INFINITY));
    }
    free(b);
    if (nx) {
      b = (PetscScalar *)RefAlloc((PetscCount)A.csr.m * rigid.nvec, sizeof(PetscScalar));
      RigidBody(G->csr.m, bs, nx, b);
      HybTestBegin("%s, rigid-body modes, %s", name, Said(&Rules[1]));
      PetscCall(Compare(&A, G, &Rules[1], &rigid, b, PETSC_TRUE, WORSE));
      free(b);
    }
    RefMatDestroy(&A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graphs(void)
{
  static const char *const shapes[] = {"a chain", "a star", "a clique", "vertices alone", "a random graph", "pairs", "a chain along the shuffle"};
  const PetscInt           step     = HybTestSlow() ? 41 : 13;
  char                     name[128];
  RefMat                   A, G;

  PetscFunctionBegin;
  for (int shape = 0; shape < (int)PETSC_STATIC_ARRAY_LENGTH(shapes); shape++) {
    for (PetscInt n = 0; n <= 130; n += n < 4 ? 1 : step) {
      SmallGraph(shape, n, &G);
      snprintf(name, sizeof(name), "%s of %" PetscInt_FMT, shapes[shape], n);
      PetscCall(TestGraph(name, &G, 1 + n % 5, 1 + n % 7, 0));
      RefMatDestroy(&G);
    }
  }
  SmallGraph(1, HybTestSize(900, 500), &G); /* a row of more than 1024 entries, of more heads than the classes take */
  PetscCall(TestGraph("a large star", &G, 3, 2, 0));
  RefMatDestroy(&G);
  for (int k = 0; k < 6; k++) {
    static const char *const names[] = {"9-point", "27-point", "27-point, one unknown", "a power law", "a dense row", "wide rows"};
    const PetscInt           nx      = HybTestSize(15, 9);

    switch (k) {
    case 0: HybTestMatStencil(9, 3 * nx, 3 * nx, 1, &A); break;
    case 1:
    case 2: HybTestMatStencil(27, nx, nx, nx, &A); break;
    case 3: HybTestMatPowerLaw(HybTestSize(2000, 500), HybTestSize(2000, 500), 6, &A); break;
    case 4: HybTestMatDenseRow(HybTestSize(2100, 1100), HybTestSize(2100, 1100), 77, 3, &A); break;
    default: HybTestMatRandom(HybTestSize(500, 300), HybTestSize(500, 300), 0, 150, &A);
    }
    GraphOf(&A, PETSC_FALSE, &G);
    RefMatDestroy(&A);
    PetscCall(TestGraph(names[k], &G, k == 2 ? 1 : k ? 3
                                                     : 2,
                        k < 3 ? 5 : 3, k == 0 ? 3 * nx : k == 1 ? nx
                                                                : 0));
    RefMatDestroy(&G);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultRun(void *ctx)
{
  const HybAggBlock block = {3, 6};
  Found             f;

  PetscFunctionBegin;
  PetscCall(Find(HybTestExec(), &FaultKeep, &FaultWork, &FaultMatrix, (const HybAggRules *)ctx, &block, FaultVector, Lapack, &f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(void)
{
  RefMat       A, G;
  PetscScalar *b;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestMatDenseRow(400, 400, 10, 2, &A);
  GraphOf(&A, PETSC_FALSE, &G);
  RefMatDestroy(&A);
  Unknowns(&G, 3, PETSC_TRUE, &FaultRef);
  RefMatDestroy(&G);
  b = (PetscScalar *)RefAlloc(1200 * 6, sizeof(PetscScalar));
  RigidBody(400, 3, 400, b); /* vertices on a line */
  PetscCall(FaultsBegin(1200 * 6, b));
  for (size_t k = 0; k < 3; k++) {
    HybAggRules rules = Rules[k];

    HybTestBegin("every allocation fails, %s", Said(&rules));
    HybTestFaults(FaultRun, FaultClean, &rules);
  }
  PetscCall(FaultsEnd());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what cannot be, and a diagonal that is not there */
static PetscErrorCode Errors(void)
{
  const HybExec   *exec  = HybTestExec();
  const HybAggOps *ops   = exec->backend->agg;
  HybAggBlock      block = {3, 3};
  HybArena         keep, work, mine;
  HybAggregates    agg   = {0, 0, NULL, NULL, 0};
  HybAggLists      lists = {NULL, NULL};
  HybAggCollapsed  found;
  PetscCount       expected = 0;
  HybCSR           there, G, P;
  RefMat           A;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybTestArenas(exec, &keep, &work, &mine));
  HybTestMatRandom(30, 30, 0, 9, &A);
  for (PetscInt r = 0; r < 30; r++) {
    PetscBool stored;

    (void)RefGet(&A, r, r, &stored);
    expected += !stored;
  }
  PetscCall(HybTestUpload(&mine, &A.csr, &there));
  HybTestBegin("rows without a diagonal entry, sizes that do not fit, too many vectors");
  if (HybTestCall(ops->collapse(exec, &keep, &work, &there, 5, &G, &found))) HybTestCheck(found.nodiagonal == expected, "%" PetscCount_FMT " rows without a diagonal entry, not %" PetscCount_FMT, found.nodiagonal, expected);
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->collapse(exec, &keep, &work, &there, 4, &G, &found));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->collapse(exec, &keep, &work, &there, 0, &G, &found));
  agg.n = 9;
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->lists(exec, &keep, &work, &there, 1, HYB_AGG_SHUFFLED, &agg, &lists));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->smoothed(exec, &keep, &work, &there, 0, &agg, &block, NULL, 0.5, &P));
  block.nvec = 2;
  HybTestCallFails(PETSC_ERR_ARG_INCOMP, ops->tentative(exec, &work, &agg, &lists, &block, NULL, NULL, NULL, NULL, NULL, NULL));
  block.nvec = HYB_AGG_VECTORS + 1;
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, ops->tentative(exec, &work, &agg, &lists, &block, NULL, NULL, NULL, NULL, NULL, NULL));
  RefMatDestroy(&A);
  PetscCall(HybTestReset(&keep, &work, &mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* vertices joined by the pattern of P, entry k of each row with unknown k modulo bs; only: of this vertex alone, the
   others by whole blocks */
static void Stagger(const RefMat *P, PetscInt bs, PetscInt only, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc(P->csr.m * bs + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(P->csr.nnz * bs * bs, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < P->csr.m * bs; r++) {
    for (PetscInt k = P->csr.i[r / bs], n = 0; k < P->csr.i[r / bs + 1]; k++, n++) {
      if (only < 0 || r / bs == only)
        j[nnz++] = P->csr.j[k] * bs + n % bs;
      else
        for (PetscInt u = 0; u < bs; u++) j[nnz++] = P->csr.j[k] * bs + u;
    }
    i[r + 1] = nnz;
  }
  HybTestMatArrays(P->csr.m * bs, P->csr.n * bs, i, j, NULL, A);
  RefFree(i, j);
}

/* What PETSc takes for blocks of one vertex and is not: all rows so, those of one vertex, and but for one entry; long
   rows */
static PetscErrorCode Staggered(void)
{
  const HybExec   *exec = HybTestExec();
  const HybAggOps *ops  = exec->backend->agg;
  HybArena         mine, keep, work;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybTestArenas(exec, &keep, &work, &mine));
  for (int k = 0; k < 24; k++) {
    const PetscInt  bs = 2 + k % 3, kind = k / 3 % 4, n = k < 12 ? 40 : 1300;
    const PetscBool expected = (PetscBool)(kind < 2);
    HybAggCollapsed found;
    HybCSR          there, G;
    RefMat          P, A;

    HybTestBegin("unknowns that are staggered, kind %" PetscInt_FMT ", %" PetscInt_FMT " of %" PetscInt_FMT " vertices", kind, bs, n);
    if (k < 12)
      HybTestMatRandom(n, n, 2, 12, &P);
    else
      HybTestMatDenseRow(n, n, n / 3, 3, &P);
    Stagger(&P, bs, kind == 1 ? n / 3 : kind == 3 ? n
                                                  : -1,
            &A);
    if (kind == 2) { /* the last one has another unknown */
      PetscInt *last = &A.csr.j[A.csr.nnz - 1];

      *last += *last % bs + 1 < bs ? 1 : -1;
    }
    HybTestCheck(IsStaggered(&A, bs) == expected, "the matrix is not what is meant");
    PetscCall(HybTestUpload(&mine, &A.csr, &there));
    if (HybTestCall(ops->collapse(exec, &keep, &work, &there, bs, &G, &found))) {
      HybTestCheck(HybAggStaggered(&found) == expected, "staggered: %d", (int)HybAggStaggered(&found));
      HybTestSamePattern(&G, &P);
    }
    RefMatDestroy(&P, &A);
    PetscCall(HybTestReset(&keep, &work, &mine));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  Geqrf = (GeqrfFn)dlsym(RTLD_DEFAULT, NAME(LAPACKgeqrf_));
  Orgqr = (OrgqrFn)dlsym(RTLD_DEFAULT, NAME(LAPACKorgqr_));
  if (!Geqrf || !Orgqr) {
    HybTestBegin("blocks");
    HybTestSkip("this PETSc shows no LAPACK");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Graphs());
  PetscCall(Errors());
  PetscCall(Staggered());
  PetscCall(Faults());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

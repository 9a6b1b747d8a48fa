/*
  The graph without weak edges against PETSc's steps, followed one by one on a matrix that is full: moduli, the sums of
  blocks by additions in the order of MatSetValues(), the transpose, VecReciprocal(), VecSqrtAbs(), MatDiagonalScale(),
  and the comparison. Patterns are identical, also where a number is the threshold itself, where the diagonal is zero or
  missing, and with infinite values and values that are no numbers; a device's are the host's. A device's moduli of
  complex numbers are the host's C library's to the last bit, or the room says that they are not.
*/
#include "aggtest.h"
#include <math.h>
#if defined(__GLIBC__)
  #include <gnu/libc-version.h>
#endif

/* a full matrix, and which of its entries are stored */
typedef struct {
  PetscInt     n;
  PetscScalar *a;
  char        *there;
} Full;

static void FullCreate(PetscInt n, Full *F)
{
  F->n     = n;
  F->a     = (PetscScalar *)RefAlloc((PetscCount)n * n, sizeof(PetscScalar));
  F->there = (char *)RefAlloc((PetscCount)n * n, 1);
}

static void FullDestroy(Full *F)
{
  RefFree(F->a, F->there);
}

/* MatCreateGraph()'s matrix of vertices: moduli, or of blocks those of real parts, added as they come */
static void FullModuli(const HybCSR *A, PetscInt bs, Full *F)
{
  FullCreate(A->m / bs, F);
  for (PetscInt r = 0; r < A->m; r++)
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const size_t    at      = (size_t)(r / bs) * F->n + A->j[k] / bs;
      const PetscReal modulus = bs > 1 ? PetscAbsReal(PetscRealPart(A->a[k])) : PetscAbsScalar(A->a[k]);

      F->a[at]     = F->there[at] ? F->a[at] + modulus : modulus;
      F->there[at] = 1;
    }
}

/* G += G^T, then the scaling; PETSC_FALSE where an entry has no partner */
static PetscBool Scale(Full *F, PetscBool symmetrize)
{
  const PetscInt n      = F->n;
  PetscScalar   *d      = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  PetscBool      paired = PETSC_TRUE;

  for (PetscInt r = 0; symmetrize && r < n; r++)
    for (PetscInt c = 0; c <= r; c++) {
      const size_t      at = (size_t)r * n + c, to = (size_t)c * n + r;
      const PetscScalar sum = F->a[at] + F->a[to];

      if (F->there[at] != F->there[to]) paired = PETSC_FALSE;
      F->a[at] = F->a[to] = sum;
    }
  for (PetscInt r = 0; r < n; r++) {
    const PetscScalar x = F->a[(size_t)r * n + r];

    d[r] = x == (PetscScalar)0 ? 0 : (PetscReal)1 / x;
    d[r] = PetscSqrtReal(PetscAbsScalar(d[r]));
  }
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt c = 0; c < n; c++) F->a[(size_t)r * n + c] *= d[r];
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt c = 0; c < n; c++) F->a[(size_t)r * n + c] *= d[c];
  free(d);
  return paired;
}

/* what is left of it: by PCGAMG's own loop, or by MatFilter() and MatEliminateZeros(), which keep the diagonal */
static void Left(const Full *F, PetscReal threshold, PetscBool matfilter, RefMat *G, PetscCount *close)
{
  const PetscInt n  = F->n;
  PetscInt      *ci = (PetscInt *)RefAlloc((PetscCount)n * n, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc((PetscCount)n * n, sizeof(PetscInt));
  PetscCount     ncoo = 0;

  *close = 0;
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt c = 0; c < n; c++) {
      PetscScalar v = F->a[(size_t)r * n + c];

      if (!F->there[(size_t)r * n + c]) continue;
      *close += r != c && PetscAbsReal(PetscRealPart(v) - threshold) <= (PetscReal)HYB_AGG_CLOSE;
      if (matfilter) {
        if (PetscAbsScalar(v) <= threshold) v = 0;
        if (v == (PetscScalar)0 && r != c) continue;
      } else if (!(PetscAbsReal(PetscRealPart(v)) > threshold))
        continue;
      ci[ncoo]   = r;
      cj[ncoo++] = c;
    }
  RefCOO(n, n, ncoo, ci, cj, NULL, G);
  RefFree(ci, cj);
}

static const PetscReal Thresholds[] = {0, 0.01, 0.05, 0.25, 0.5, 1 - PETSC_MACHINE_EPSILON / 2, 3};

static PetscErrorCode Compare(const RefMat *A, PetscInt bs)
{
  const HybExec   *exec = HybTestExec();
  const HybAggOps *ops  = exec->backend->agg;
  HybArena         mine, keep, work;
  HybCSR           there, W;
  HybAggCollapsed  collapsed;
  PetscCount       nodiagonal = 0;

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &mine, &keep, &work));
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  W = there;
  if (bs > 1 && HybTestCall(ops->collapse(exec, &mine, &work, &there, bs, &W, &collapsed)) && HybTestCall(ops->weights(exec, &mine, &work, &there, bs, &W))) {
    PetscScalar *expected = (PetscScalar *)RefAlloc(W.nnz, sizeof(PetscScalar));
    PetscInt     n        = 0;
    Full         F;

    FullModuli(&A->csr, bs, &F);
    for (PetscInt k = 0; k < F.n * F.n && n < W.nnz; k++)
      if (F.there[k]) expected[n++] = F.a[k];
    HybTestCheck(n == W.nnz, "%" PetscInt_FMT " edges, not %" PetscInt_FMT, (PetscInt)W.nnz, n);
    HybTestSameBits(n, sizeof(PetscScalar), W.a, expected);
    FullDestroy(&F);
    free(expected);
  }
  for (int k = 0; k < 4 * (int)PETSC_STATIC_ARRAY_LENGTH(Thresholds); k++) {
    const HybAggFilter f = {Thresholds[k / 4], (PetscBool)(k & 1), (PetscBool)(k >> 1 & 1)};
    HybAggFiltered     found;
    HybCSR             G;
    PetscBool          paired;
    PetscCount         close;
    RefMat             R;
    Full               F;

    FullModuli(&A->csr, bs, &F);
    nodiagonal = 0;
    for (PetscInt r = 0; r < F.n; r++) nodiagonal += !F.there[(size_t)r * F.n + r];
    paired = Scale(&F, f.symmetrize);
    Left(&F, f.threshold, f.diagonal, &R, &close);
    memset(&found, 0xff, sizeof(found));
    if (HybTestCall(ops->filter(exec, &keep, &work, &W, &f, &G, &found))) {
      HybTestCheck(found.nodiagonal == nodiagonal, "%" PetscCount_FMT " rows without a diagonal entry, not %" PetscCount_FMT, found.nodiagonal, nodiagonal);
      HybTestCheck(found.paired == paired, "paired: %d, not %d", (int)found.paired, (int)paired);
      if (paired) {
        HybTestCheck(found.close == close, "%" PetscCount_FMT " entries are close to %g, not %" PetscCount_FMT, found.close, (double)f.threshold, close);
        HybTestCheck(G.a == NULL, "the graph has values");
        HybTestSamePattern(&G, &R);
      }
    }
    RefMatDestroy(&R);
    FullDestroy(&F);
    PetscCall(HybArenaReset(&keep));
  }
  PetscCall(HybTestReset(&keep, &work, &mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values of which many are thresholds after the scaling; kind 1: zeros too, on the diagonal as well; 2: what is no
   number, and extremes */
static void Values(RefMat *A, int kind)
{
  static const PetscReal off[] = {1, -0.5, 0.25, 2, -0.01, 0.05, -1e-3, 1e-12, 0.5}, diagonal[] = {1, 2, -4, 0.5, 8, 2}, odd[] = {PETSC_INFINITY, NAN, PETSC_MAX_REAL / 4, DENORMAL, -0.0, -HUGE};

  for (PetscInt r = 0; r < A->csr.m; r++)
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      A->csr.a[k] = A->csr.j[k] == r ? diagonal[HybTestRandomInt(0, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(diagonal))] : off[HybTestRandomInt(0, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(off))];
#if defined(PETSC_USE_COMPLEX)
      if (HybTestRandomInt(0, 2)) A->csr.a[k] *= PETSC_i; /* of the same modulus */
#endif
      if (kind == 1 && !HybTestRandomInt(0, 5)) A->csr.a[k] = HybTestRandomInt(0, 2) ? 0. : -0.;
      if (kind == 2 && !HybTestRandomInt(0, 9)) A->csr.a[k] = odd[HybTestRandomInt(0, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(odd))];
    }
}

static PetscErrorCode TestMat(const char *name, RefMat *A, PetscInt bs)
{
  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestRandomize(A);
  HybTestBegin("%s, %" PetscInt_FMT " unknowns, any values", name, bs);
  PetscCall(Compare(A, bs));
  for (int kind = 0; kind < 3; kind++) {
    Values(A, kind);
    HybTestBegin("%s, %" PetscInt_FMT " unknowns, %s", name, bs, kind == 0 ? "numbers at the thresholds" : kind == 1 ? "zeros"
                                                                                                                     : "what is no number");
    PetscCall(Compare(A, bs));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Mats(void)
{
  char   name[128], longer[160];
  RefMat A, G, B;

  PetscFunctionBegin;
  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    if (A.csr.m > 700) {
      RefMatDestroy(&A);
      continue;
    }
    GraphOf(&A, PETSC_FALSE, &G);
    PetscCall(TestMat(name, &A, 1));
    snprintf(longer, sizeof(longer), "%s, both ways", name);
    PetscCall(TestMat(longer, &G, 1));
    if (G.csr.m < 120) {
      Unknowns(&G, 1 + k % 4, (PetscBool)(k & 1), &B);
      PetscCall(TestMat(longer, &B, 1 + k % 4));
      RefMatDestroy(&B);
    }
    RefMatDestroy(&A, &G);
  }
  for (int k = 0; k < 6; k++) {
    static const char *const names[] = {"7-point", "27-point", "a dense row", "a large star", "wide rows", "a power law"};
    const PetscInt           n       = HybTestSize(1300, 1100); /* rows that a block takes */

    switch (k) {
    case 0: HybTestMatStencil(7, HybTestSize(11, 7), HybTestSize(10, 7), 8, &A); break;
    case 1: HybTestMatStencil(27, HybTestSize(10, 6), 9, 7, &A); break;
    case 2: HybTestMatDenseRow(n, n, 77, 3, &A); break;
    case 3: SmallGraph(1, n, &A); break;
    case 4: HybTestMatRandom(HybTestSize(400, 200), HybTestSize(400, 200), 0, 150, &A); break;
    default: HybTestMatPowerLaw(HybTestSize(900, 300), HybTestSize(900, 300), 6, &A);
    }
    GraphOf(&A, PETSC_FALSE, &G);
    PetscCall(TestMat(names[k], &G, 1));
    if (k < 2 || k == 4) {
      Unknowns(&G, 3, (PetscBool)(k == 1), &B);
      PetscCall(TestMat(names[k], &B, 3));
      RefMatDestroy(&B);
    }
    RefMatDestroy(&A, &G);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultRun(void *ctx)
{
  const HybAggOps   *ops = HybTestExec()->backend->agg;
  const HybAggFilter f   = {0.1, *(PetscBool *)ctx, PETSC_FALSE};
  HybAggFiltered     found;
  HybCSR             W, G;
  HybAggCollapsed    collapsed;

  PetscFunctionBegin;
  PetscCall(ops->collapse(HybTestExec(), &FaultKeep, &FaultWork, &FaultMatrix, 3, &W, &collapsed));
  PetscCall(ops->weights(HybTestExec(), &FaultKeep, &FaultWork, &FaultMatrix, 3, &W));
  PetscCall(ops->filter(HybTestExec(), &FaultKeep, &FaultWork, &W, &f, &G, &found));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultModuli(void *ctx)
{
  PetscBool alike;

  PetscFunctionBegin;
  PetscCall(HybAggModuliAlike(HybTestExec(), &alike));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(void)
{
  RefMat A, G;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  SmallGraph(1, 1200, &A);
  GraphOf(&A, PETSC_FALSE, &G);
  RefMatDestroy(&A);
  Unknowns(&G, 3, PETSC_FALSE, &FaultRef);
  RefMatDestroy(&G);
  PetscCall(FaultsBegin(0, NULL));
  for (int k = 0; k < 2; k++) {
    PetscBool symmetrize = (PetscBool)k;

    HybTestBegin("every allocation fails, %s the transpose", k ? "with" : "without");
    HybTestFaults(FaultRun, FaultClean, &symmetrize);
  }
  if (PetscDefined(USE_COMPLEX) && HybTestExec()->backend->device) {
    HybTestBegin("every allocation fails where moduli are tried");
    HybTestFaults(FaultModuli, NULL, NULL);
  }
  PetscCall(FaultsEnd());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what cannot be */
static PetscErrorCode Errors(void)
{
  const HybExec     *exec = HybTestExec();
  const HybAggOps   *ops  = exec->backend->agg;
  const HybAggFilter f    = {0, PETSC_TRUE, PETSC_FALSE};
  HybAggFiltered     found;
  HybArena           keep, work, mine;
  HybCSR             there, G;
  RefMat             A;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybTestArenas(exec, &keep, &work, &mine));
  HybTestMatRandom(30, 40, 1, 5, &A);
  PetscCall(HybTestUpload(&mine, &A.csr, &there));
  HybTestBegin("a graph that is not square, one of another size");
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->filter(exec, &keep, &work, &there, &f, &G, &found));
  G = there;
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->weights(exec, &keep, &work, &there, 2, &G));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, ops->weights(exec, &keep, &work, &there, 0, &G));
  RefMatDestroy(&A);
  PetscCall(HybTestReset(&keep, &work, &mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define NUMBERS 200000

/* of any bits, or near each other, or much smaller */
static PetscReal Part(PetscReal other)
{
  const PetscReal number = 1 + HybTestRandomReal();

  switch (HybTestRandomInt(0, 8)) {
  case 0: return other;
  case 1: return other * (1 + (PetscReal)HybTestRandomInt(-3, 4) * PETSC_MACHINE_EPSILON);
  case 2: return other / 2 * (1 + (PetscReal)HybTestRandomInt(-3, 4) * PETSC_MACHINE_EPSILON);
  case 3: return other * (PetscReal)ldexp((double)number, -(int)HybTestRandomInt(1, 60));
  case 4: return HybTestRandomInt(0, 4) ? (PetscReal)HybTestRandomInt(-99, 100) : HybTestRandomInt(0, 2) ? (PetscReal)HUGE_VAL
                                                                                                         : (PetscReal)NAN;
  case 5: return (PetscReal)ldexp((double)number, (int)HybTestRandomInt(-1074, 1024));
  default: return -(PetscReal)ldexp((double)number, (int)HybTestRandomInt(-30, 30));
  }
}

/* Is the C library one whose moduli are known to be those of modulus.h? */
static PetscBool Known(void)
{
#if defined(__GLIBC__) && defined(__x86_64__)
  int minor = 0;

  return (PetscBool)(sscanf(gnu_get_libc_version(), "2.%d", &minor) == 1 && minor >= 35 && minor <= 40);
#else
  return PETSC_FALSE;
#endif
}

/* alike: what the room says of this device and the host's C library */
static PetscErrorCode Moduli(PetscBool *alike)
{
  const HybExec *exec     = HybTestExec();
  PetscScalar   *v        = (PetscScalar *)RefAlloc(NUMBERS, sizeof(PetscScalar)), *there;
  PetscReal     *found    = (PetscReal *)RefAlloc(NUMBERS, sizeof(PetscReal)), *result;
  PetscCount     unlike   = 0;
  PetscBool      switched = PETSC_TRUE;
  HybArena       keep, work, mine;

  PetscFunctionBegin;
  *alike = PETSC_FALSE;
  PetscCall(HybTestArenas(exec, &keep, &work, &mine));
  HybTestBegin("moduli");
  for (PetscInt k = 0; k < NUMBERS; k++) {
    const PetscReal x = Part(1), y = Part(x);

#if defined(PETSC_USE_COMPLEX)
    v[k] = k % 2 ? PetscCMPLX(x, y) : PetscCMPLX(y, x);
#else
    v[k] = k % 2 ? x : y;
#endif
  }
  PetscCall(HybTestUploadArray(&mine, NUMBERS, sizeof(*v), v, &there));
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), NUMBERS, sizeof(*result), &result));
  if (HybTestCall(HybAggModuliAlike(exec, alike)) && HybTestCall(exec->backend->agg->moduli(exec, NUMBERS, there, result)) && HybTestCall(HybTestDownloadArray(NUMBERS, sizeof(*result), result, found))) {
    for (PetscInt k = 0; k < NUMBERS; k++) {
      const PetscReal expected = PetscAbsScalar(v[k]);

      if (expected == found[k] || (expected != expected && found[k] != found[k])) continue;
      if (!unlike && *alike) HybTestCheck(PETSC_FALSE, "the modulus of %a %a is %a, not %a", (double)PetscRealPart(v[k]), (double)PetscImaginaryPart(v[k]), (double)found[k], (double)expected);
      unlike++;
    }
    HybTestCheck(*alike || !Known(), "the C library is a known one, and the room says that its moduli are others");
    HybTestCheck(*alike == (PetscBool)!unlike, "%" PetscCount_FMT " of %d moduli are not the host's, and the room says %d", unlike, NUMBERS, (int)*alike);
  }
  HybTestCall(HybTuningSet("device_moduli", "0"));
  if (HybTestCall(HybAggModuliAlike(exec, &switched))) HybTestCheck(switched == (PetscBool)(!exec->backend->device || !PetscDefined(USE_COMPLEX)), "not asked for, and yet alike: %d", (int)switched);
  HybTestCall(HybTuningSet("device_moduli", NULL));
  RefFree(v, found);
  PetscCall(HybTestReset(&keep, &work, &mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscBool alike;

  PetscFunctionBegin;
  PetscCall(Moduli(&alike));
  if (!alike) {
    HybTestBegin("graphs");
    HybTestSkip("the host's C library rounds moduli in another way than the device: PETSc's own setup does such graphs");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Mats());
  PetscCall(Errors());
  PetscCall(Faults());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

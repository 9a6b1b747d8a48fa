/*
  Every SpMV method of the backend on every matrix of the zoo: all modes, y aliasing z, changing values, repeated bits.
  A device's method may decline a matrix with PETSC_ERR_SUP; each one must take most of them, and the host's methods
  all.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybspmv.h>
#include <stdlib.h>
#include <string.h>

static const HybSpMVMode modes[]     = {HYB_SPMV_SET, HYB_SPMV_ADD, HYB_SPMV_RESIDUAL};
static const char *const modenames[] = {"A x", "y + A x", "y - A x"};

/* one method, one matrix. *taken: the method did not decline. "once": auto, told that there is one application to come,
   "once-told": and how long the longest row is; more than one are right all the same */
static PetscErrorCode TestMethod(const char *method, RefMat *A, PetscBool *taken)
{
  const HybExec  *exec = HybTestExec();
  const PetscInt  m = A->csr.m, n = A->csr.n;
  const PetscBool once = (PetscBool)!strncmp(method, "once", 4);
  HybSpMV         mv;
  HybCSR          there;
  PetscScalar    *x, *y, *z, *first, *hx = HybTestRandomVector(n), *hy = HybTestRandomVector(m), *hz = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *bits = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *garbage = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  PetscReal      *mag   = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  PetscCount     *terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount));
  PetscErrorCode  ierr;
  HybArena        arena = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) garbage[r] = 7e77; /* SET reads no y and leaves no z unwritten */
  PetscCall(HybTestUpload(&arena, &A->csr, &there));
  PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscScalar), hx, &x));
  PetscCall(HybSpMVInit(&mv, exec, once ? "auto" : method, 1));
  mv.once = once;
  for (PetscInt r = 0; r < m && !strcmp(method, "once-told"); r++) mv.longest = PetscMax(mv.longest, A->csr.i[r + 1] - A->csr.i[r]);
  if (exec->backend->device && strcmp(method, "auto") && !once) {
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybSpMVSetUp(&mv, &there);
    PetscCall(PetscPopErrorHandler());
    *taken = (PetscBool)(ierr != PETSC_ERR_SUP);
    if (*taken)
      HybTestCheck(!ierr, "error %d from HybSpMVSetUp()", (int)ierr);
    else
      HybTestCheck(ierr == PETSC_ERR_SUP, "declined with error %d", (int)ierr);
    if (ierr) goto done;
  } else {
    *taken = HybTestCall(HybSpMVSetUp(&mv, &there));
    if (!*taken) goto done;
  }
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < 3; k++) {
      RefSpMV(A, hx, modes[k] == HYB_SPMV_RESIDUAL ? -1 : 1, modes[k] == HYB_SPMV_SET ? NULL : hy, hz, mag, terms);
      PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hy, &y));
      PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), garbage, &z));
      if (!HybTestCall(HybSpMVApply(&mv, &there, x, modes[k], modes[k] == HYB_SPMV_SET ? NULL : y, z))) goto done;
      HybTestCheck(HybTestSameScalars(m, z, hz, mag, terms, 2), "%s, z apart from y, round %d", modenames[k], round);
      HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), y, hy), "%s changed y", modenames[k]);
      PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), z, bits));
      PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hy, &first));
      if (!HybTestCall(HybSpMVApply(&mv, &there, x, modes[k], first, first))) goto done;
      HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), first, bits), "%s with y == z differs from z apart", modenames[k]);
      PetscCall(HybArenaFree(&arena, &y, &z, &first));
    }
    HybTestCheck(HybTestSameBits(n, sizeof(PetscScalar), x, hx), "x was changed");
    HybTestCheck(HybTestSameBits(A->csr.nnz, sizeof(PetscScalar), there.a, A->csr.a), "the matrix was changed");
    HybTestCheck(mv.calls == 6 * (round + 1) || !m, "%td calls counted", mv.calls);
    /* the same plan with other values, at another place */
    HybTestRandomize(A);
    if (A->csr.nnz) {
      PetscCall(HybArenaFree(&arena, &there.a));
      PetscCall(HybTestUploadArray(&arena, A->csr.nnz, sizeof(PetscScalar), A->csr.a, &there.a));
    }
  }
done:
  HybTestCall(HybSpMVDestroy(&mv));
  HybTestCheck(!mv.keep.bytes && !mv.work.bytes, "%zu and %zu bytes are left", mv.keep.bytes, mv.work.bytes);
  PetscCall(HybArenaReset(&arena));
  RefFree(hx, hy, hz, bits, garbage, mag, terms);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which method "auto" takes */
static PetscErrorCode Chosen(const RefMat *A, const char *name, PetscBool *chosen, PetscCount *rows)
{
  HybSpMV  mv;
  HybCSR   there;
  HybArena arena = HybArenaOn(HybTestExec());

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&arena, &A->csr, &there));
  PetscCall(HybSpMVInit(&mv, HybTestExec(), "auto", 1));
  PetscCall(HybSpMVSetUp(&mv, &there));
  *chosen = (PetscBool)!strcmp(mv.method->name, name);
  *rows   = HybCountersGet(&mv.counters, "rows with entries");
  PetscCall(HybSpMVDestroy(&mv));
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* few rows with entries, of every width's lengths; then one row more than "auto" lists, and one longer than it lists */
static PetscErrorCode FewRows(void)
{
  static const PetscInt lengths[] = {1, 2, 4, 7, 13, 25, 49, 60};
  const PetscInt        m = 8000, n = 700;
  PetscInt              length[8000];

  PetscFunctionBegin;
  for (size_t l = 0; l < PETSC_STATIC_ARRAY_LENGTH(lengths) + 4; l++) {
    const PetscBool last = (PetscBool)(l >= PETSC_STATIC_ARRAY_LENGTH(lengths));
    /* as many rows as it lists, one more, as long, one longer */
    const PetscInt which = (PetscInt)(l - PETSC_STATIC_ARRAY_LENGTH(lengths));
    PetscBool      taken = PETSC_FALSE, chosen = PETSC_FALSE;
    PetscCount     rows = 0, expected = 0;
    RefMat         A;

    for (PetscInt r = 0; r < m; r++) {
      length[r] = last           ? (which < 2 ? r % 8 == 3 : r == 7999 ? 512 + (which == 3)
                                                                       : 0)
                  : r % 131 == 5 ? 1 + (r + lengths[l]) % (2 * lengths[l] - 1)
                                 : 0;
      if (last && which == 1 && r == 0) length[r] = 1;
      if (length[r]) expected++;
    }
    HybTestMatLengths(m, n, length, &A);
    HybTestBegin("few rows with entries, case %zu: %td rows, %td nonzeros", l, expected, A.csr.nnz);
    PetscCall(TestMethod("auto", &A, &taken));
    PetscCall(TestMethod("rowlist", &A, &taken));
    HybTestCheck(taken, "declined");
    PetscCall(Chosen(&A, "rowlist", &chosen, &rows));
    HybTestCheck(chosen == (PetscBool)(!last || which == 0 || which == 2), chosen ? "auto takes rowlist" : "auto does not take rowlist");
    HybTestCheck(!chosen || rows == expected, "%td rows are listed", rows);
    RefMatDestroy(&A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* blocks of three, and the last block row and column full: what auto takes cuts its rows into pieces */
static PetscErrorCode Arrowhead(void)
{
  const PetscInt n = HybTestSize(4000, 1500);
  PetscInt      *i = (PetscInt *)RefAlloc(n + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(3 * n, sizeof(PetscInt)), nnz = 0;
  RefMat         P, A;
  PetscBool      taken = PETSC_FALSE, chosen;
  PetscCount     rows;

  PetscFunctionBegin;
  i[0] = 0;
  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt c = r == n - 1 ? 0 : r; c < n; c += r == n - 1 ? 1 : PetscMax(1, n - 1 - r)) j[nnz++] = c;
    i[r + 1] = nnz;
  }
  HybTestMatArrays(n, n, i, j, NULL, &P);
  HybTestMatBlock(&P, 3, &A);
  HybTestBegin("an arrowhead of blocks");
  PetscCall(TestMethod("auto", &A, &taken));
  if (HybTestExec()->backend->device) {
    PetscCall(Chosen(&A, "block", &chosen, &rows));
    HybTestCheck(!chosen, "auto takes block where a row has %d entries", (int)(3 * n));
  }
  RefMatDestroy(&A, &P);
  RefFree(i, j);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* whole blocks, few shapes: every method takes it */
static void Everyones(RefMat *A)
{
  RefMat P;

  HybTestMatStencil(5, 30, 30, 1, &P);
  HybTestMatBlock(&P, 2, A);
  RefMatDestroy(&P);
}

/* a method before its set-up, a vector and room for the product with it */
typedef struct {
  HybArena     arena;
  HybSpMV      mv;
  HybCSR       there;
  PetscScalar *x, *z;
} Multiplier;

static PetscErrorCode Begin(const char *method, const RefMat *A, const PetscScalar *x, Multiplier *p)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  p->arena = HybArenaOn(exec);
  PetscCall(HybTestUpload(&p->arena, &A->csr, &p->there));
  PetscCall(HybTestUploadArray(&p->arena, A->csr.n, sizeof(PetscScalar), x, &p->x));
  PetscCall(HybArenaAlloc(&p->arena, HYB_WORK(exec), A->csr.m, sizeof(PetscScalar), &p->z));
  PetscCall(HybSpMVInit(&p->mv, exec, method, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(Multiplier *p)
{
  PetscFunctionBegin;
  HybTestCall(HybSpMVDestroy(&p->mv));
  PetscCall(HybArenaReset(&p->arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* every method on a matrix that it takes, planned for twenty times and applied twice each time: the same bits */
static PetscErrorCode Repeated(void)
{
  RefMat       A;
  PetscScalar *x, *bits;

  PetscFunctionBegin;
  Everyones(&A);
  x    = HybTestRandomVector(A.csr.n);
  bits = (PetscScalar *)RefAlloc(A.csr.m, sizeof(PetscScalar));
  for (const HybSpMVMethod *const *table = HybTestExec()->backend->spmv; *table; table++) {
    HybTestBegin("%s: twenty runs have the same bits", (*table)->name);
    for (int run = 0; run < 20 && !HybTestFailed(); run++) {
      Multiplier p;

      PetscCall(Begin((*table)->name, &A, x, &p));
      if (HybTestCall(HybSpMVSetUp(&p.mv, &p.there))) {
        for (int again = 0; again < 2; again++) {
          if (!HybTestCall(HybSpMVApply(&p.mv, &p.there, p.x, HYB_SPMV_SET, NULL, p.z))) break;
          if (run || again)
            HybTestSameBits(A.csr.m, sizeof(PetscScalar), p.z, bits);
          else
            PetscCall(HybTestDownloadArray(A.csr.m, sizeof(PetscScalar), p.z, bits));
        }
      }
      PetscCall(End(&p));
    }
  }
  RefFree(x, bits);
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all values denormal: neither factors nor sums are taken for zeros. Such sums are exact, so their order does not
   matter. */
static PetscErrorCode Denormals(void)
{
  RefMat       A;
  PetscScalar *x, *expected;

  PetscFunctionBegin;
  Everyones(&A);
  x        = HybTestRandomVector(A.csr.n);
  expected = (PetscScalar *)RefAlloc(A.csr.m, sizeof(PetscScalar));
  for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] *= 1 / PETSC_MAX_REAL;
  for (PetscInt r = 0; r < A.csr.m; r++) {
    PetscScalar sum = 0;

    for (PetscInt k = A.csr.i[r]; k < A.csr.i[r + 1]; k++) sum += A.csr.a[k] * x[A.csr.j[k]];
    expected[r] = sum;
  }
  for (const HybSpMVMethod *const *table = HybTestExec()->backend->spmv; *table; table++) {
    Multiplier p;

    HybTestBegin("%s: denormals", (*table)->name);
    PetscCall(Begin((*table)->name, &A, x, &p));
    if (HybTestCall(HybSpMVSetUp(&p.mv, &p.there)) && HybTestCall(HybSpMVApply(&p.mv, &p.there, p.x, HYB_SPMV_SET, NULL, p.z))) HybTestSameBits(A.csr.m, sizeof(PetscScalar), p.z, expected);
    PetscCall(End(&p));
  }
  RefFree(x, expected);
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* choosy: it may decline matrices */
static PetscErrorCode OneMethod(const char *method, PetscBool choosy)
{
  PetscInt taken = 0, all = 0;
  char     name[64];
  RefMat   A;

  PetscFunctionBegin;
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    PetscBool one = PETSC_FALSE;

    HybTestBegin("%s: %s", method, name);
    PetscCall(TestMethod(method, &A, &one));
    taken += one;
    all++;
    RefMatDestroy(&A);
  }
  for (int twice = 0; twice < 2; twice++) {
    PetscBool one = PETSC_FALSE;

    HybTestBegin("%s: %s", method, twice ? "rows with a column twice" : "rows out of order");
    HybTestMatLoose(3000, (PetscBool)twice, &A);
    PetscCall(TestMethod(method, &A, &one));
    RefMatDestroy(&A);
  }
  HybTestBegin("%s took %" PetscInt_FMT " of %" PetscInt_FMT " matrices", method, taken, all);
  HybTestCheck(choosy ? taken > 0 : taken == all, "too few");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  const HybSpMVMethod *const *table = HybTestExec()->backend->spmv;
  const char *const          *names;
  char                        name[64];
  RefMat                      A;

  PetscFunctionBegin;
  HybTestBegin("the table of %s", HybTestExec()->backend->name);
  if (!HybTestCheck(table && *table, "it has no SpMV method")) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybSpMVGetNames(&names));
  for (; *table; table++) {
    PetscBool known = PETSC_FALSE;

    for (PetscInt k = 0; names[k]; k++) known = (PetscBool)(known || !strcmp(names[k], (*table)->name));
    HybTestCheck(known, "%s is not in HybSpMVGetNames()", (*table)->name);
    HybTestCheck((*table)->apply, "%s has no apply", (*table)->name);
  }
  for (table = HybTestExec()->backend->spmv; *table; table++) {
    if (HybTestMine()) PetscCall(OneMethod((*table)->name, HybTestExec()->backend->device));
  }
  if (HybTestMine()) PetscCall(Repeated());
  if (HybTestMine()) PetscCall(Denormals());
  if (HybTestMine()) PetscCall(Arrowhead());
  if (HybTestMine()) PetscCall(OneMethod("auto", PETSC_FALSE));
  if (HybTestMine()) PetscCall(OneMethod("once", PETSC_FALSE));
  if (HybTestMine()) PetscCall(OneMethod("once-told", PETSC_FALSE));
  if (!HybTestExec()->backend->device && HybTestMine()) {
    PetscBool taken = PETSC_FALSE;

    HybTestBegin("csr: so many entries that fetching ahead is tried in every other product");
    HybTestMatStencil(7, 22, 22, 22, &A);
    PetscCall(TestMethod("csr", &A, &taken));
    HybTestCheck(taken, "not taken");
    RefMatDestroy(&A);
  }
  if (HybTestExec()->backend->device && HybTestMine()) PetscCall(FewRows());
  /* the ways of rowgroup on whatever matrix, with the fewer and the more loads of a lane together; segsum with other
     tiles */
  if (HybTestExec()->backend->device) {
    static const char *const ways[][5] = {
      {"rowgroup", "rowgroup_way",  "stream", NULL,             NULL},
      {"rowgroup", "rowgroup_way",  "stream", "rowgroup_near",  "no"},
      {"rowgroup", "rowgroup_way",  "direct", "rowgroup_batch", "8" },
      {"rowgroup", "rowgroup_way",  "bins",   NULL,             NULL},
      {"rowgroup", "rowgroup_way",  "bins",   "rowgroup_batch", "8" },
      {"segsum",   "segsum_items",  "3",      "segsum_threads", "64"},
      {"segsum",   "segsum_repair", "cpu",    NULL,             NULL},
    };

    for (size_t w = 0; w < PETSC_STATIC_ARRAY_LENGTH(ways); w++) {
      if (!HybTestMine()) continue;
      PetscCall(HybTuningSet(ways[w][1], ways[w][2]));
      if (ways[w][3]) PetscCall(HybTuningSet(ways[w][3], ways[w][4]));
      for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
        PetscBool one = PETSC_FALSE;

        HybTestBegin("%s %s %s %s: %s", ways[w][0], ways[w][1], ways[w][2], ways[w][4] ? ways[w][4] : "", name);
        PetscCall(TestMethod(ways[w][0], &A, &one));
        HybTestCheck(one, "declined");
        RefMatDestroy(&A);
      }
      for (int twice = 0; twice < 2; twice++) {
        PetscBool one = PETSC_FALSE;

        HybTestBegin("%s %s %s: %s", ways[w][0], ways[w][1], ways[w][2], twice ? "rows with a column twice" : "rows out of order");
        HybTestMatLoose(3000, (PetscBool)twice, &A);
        PetscCall(TestMethod(ways[w][0], &A, &one));
        RefMatDestroy(&A);
      }
      PetscCall(HybTuningSet(ways[w][1], NULL));
      if (ways[w][3]) PetscCall(HybTuningSet(ways[w][3], NULL));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

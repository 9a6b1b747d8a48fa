/*
  C = P^T A P by every fused method of the backend, against the reference and, to the bit, against the order of
  additions that the method promises: P^T (A P) on the host, (P^T A) P on a device. A device's method may decline, and
  only what it says it does.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybproduct.h>
#include <stdlib.h>
#include <string.h>

static HybArena             out, keep;
static const HybPtAPMethod *method;

static PetscErrorCode Init(HybPtAP *pp)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(pp, sizeof(*pp)));
  pp->exec   = *HybTestExec();
  pp->method = method;
  PetscCall(HybTestArenas(HybTestExec(), &pp->keep, &pp->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(HybPtAP *pp)
{
  PetscFunctionBegin;
  if (!pp->method) PetscFunctionReturn(PETSC_SUCCESS);
  if (pp->method->destroy) PetscCall(pp->method->destroy(pp));
  PetscCall(HybTestReset(&pp->keep, &pp->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(method->numeric(pp, A, P, C));
  PetscCall(HybArenaReset(&pp->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode First(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(C, sizeof(*C)));
  PetscCall(method->symbolic(pp, A, P, &out, C));
  PetscCall(HybArenaReset(&pp->work));
  if (!C->a && !pp->declined) {
    PetscCall(HybArenaAlloc(&out, pp->exec.result, C->nnz, sizeof(HybScalar), &C->a));
    PetscCall(Numeric(pp, A, P, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values of A*B on the pattern of C, summed from the first product on in the order of A's row */
static void InOrder(const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscScalar *sum = (PetscScalar *)RefAlloc(C->n, sizeof(PetscScalar));
  PetscInt    *row = (PetscInt *)RefAlloc(C->n, sizeof(PetscInt));

  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) {
        const PetscScalar product = A->a[k] * B->a[l];
        const PetscInt    c       = B->j[l];

        sum[c] = row[c] == r + 1 ? sum[c] + product : product;
        row[c] = r + 1;
      }
    }
    for (PetscInt t = C->i[r]; t < C->i[r + 1]; t++) C->a[t] = sum[C->j[t]];
  }
  RefFree(sum, row);
}

/* the bits that the method promises, on the pattern of C */
static void Promised(const RefMat *A, const RefMat *P, const RefMat *T, RefMat *W, RefMat *S)
{
  if (HybTestExec()->backend->device) {
    InOrder(&T->csr, &A->csr, &W->csr);
    InOrder(&W->csr, &P->csr, &S->csr);
  } else {
    InOrder(&A->csr, &P->csr, &W->csr);
    InOrder(&T->csr, &W->csr, &S->csr);
  }
}

/* the most products and w's entries of a row of (P^T A) P: what a device's method keeps in shared memory, by scalars */
static PetscCount Largest(const RefMat *A, const RefMat *P, const RefMat *T, const RefMat *W)
{
  PetscCount largest = 0;

  for (PetscInt r = 0; r < T->csr.m; r++) {
    PetscCount first = 0, second = 0;

    for (PetscInt k = T->csr.i[r]; k < T->csr.i[r + 1]; k++) first += A->csr.i[T->csr.j[k] + 1] - A->csr.i[T->csr.j[k]];
    for (PetscInt k = W->csr.i[r]; k < W->csr.i[r + 1]; k++) second += P->csr.i[W->csr.j[k] + 1] - P->csr.i[W->csr.j[k]];
    if (second) largest = PetscMax(largest, PetscMax(first, second) + W->csr.i[r + 1] - W->csr.i[r]);
  }
  return largest;
}

/* uploads the operands and makes a first product of them; what was made is Finish()'s to free, also after a failure */
static PetscBool Begin(HybPtAP *pp, const RefMat *A, const RefMat *P, HybCSR *DA, HybCSR *DP, HybCSR *DC)
{
  memset(pp, 0, sizeof(*pp));
  return (PetscBool)(HybTestCall(Init(pp)) && HybTestCall(HybTestUpload(&keep, &A->csr, DA)) && HybTestCall(HybTestUpload(&keep, &P->csr, DP)) && HybTestCall(First(pp, DA, DP, DC)));
}

static void Finish(HybPtAP *pp)
{
  HybTestCall(Destroy(pp));
  HybTestCall(HybTestReset(&keep, &out));
}

/* the patterns of P^T A P, P^T and the intermediate that the backend's methods have */
static void References(const RefMat *A, const RefMat *P, RefMat *C, RefMat *T, RefMat *W)
{
  RefPtAP(A, P, C);
  RefTranspose(P, PETSC_FALSE, T);
  if (HybTestExec()->backend->device)
    RefSpGEMM(T, A, W);
  else
    RefSpGEMM(A, P, W);
}

/* what the last product of the host's method counted: columns of a block, places kept, as numbers, and found anew */
static struct {
  PetscCount b, numbers, places, walked;
  PetscBool  declined;
} Last;

static void Counted(const HybPtAP *pp)
{
  Last.b        = HybCountersGet(&pp->counters, "column block");
  Last.places   = HybCountersGet(&pp->counters, "places");
  Last.numbers  = Last.places - HybCountersGet(&pp->counters, "places by bits");
  Last.walked   = HybCountersGet(&pp->counters, "walked");
  Last.declined = pp->declined;
}

/* counter: of the host's method, counter2: of a device's; NULL where there is nothing to ask */
static void Check2(const RefMat *A, const RefMat *P, const char *counter, const char *counter2, PetscCount least)
{
  const PetscBool  device = HybTestExec()->backend->device;
  HybPtAP          pp;
  HybCSR           DA, DP, DC;
  RefMat           C, T, W, S, other, otherp;
  const PetscCount kib = 1024 / (PetscCount)sizeof(PetscScalar);

  References(A, P, &C, &T, &W);
  RefMatCopy(&C, &S);
  if (Begin(&pp, A, P, &DA, &DP, &DC)) {
    const PetscCount largest = device ? Largest(A, P, &T, &W) : 0;

    if (device) counter = counter2;
    if (!device && strcmp(method->name, "fused")) counter = NULL;
    Counted(&pp);
    if (pp.declined && !device) {
      HybTestCheck(!strcmp(method->name, "thin"), "%s does not decline", method->name);
      HybTestCheck(!out.bytes, "%zu bytes are left of a result that was declined", out.bytes);
    } else if (pp.declined) {
      HybTestCheck(largest > 75 * kib, "declined where a row takes %td scalars", largest);
      HybTestCheck(!out.bytes, "%zu bytes are left of a result that was declined", out.bytes);
    } else {
      HybTestCheck(largest <= 227 * kib, "not declined where a row takes %td scalars", largest);
      if (counter) HybTestCheck(HybCountersGet(&pp.counters, counter) >= least, "%s is %td, expected %td at least", counter, HybCountersGet(&pp.counters, counter), least);
      if (device) {
        PetscCount products = 0;

        for (PetscInt k = 0; k < T.csr.nnz; k++) products += A->csr.i[T.csr.j[k] + 1] - A->csr.i[T.csr.j[k]];
        for (PetscInt k = 0; k < W.csr.nnz; k++) products += P->csr.i[W.csr.j[k] + 1] - P->csr.i[W.csr.j[k]];
        HybTestCheck(HybCountersGet(&pp.counters, "products") == products, "%td products, expected %td", HybCountersGet(&pp.counters, "products"), products);
        {
          static const char *const names[] = {"rows empty", "rows up to 1 KiB", "rows up to 2 KiB", "rows up to 4 KiB", "rows up to 6 KiB", "rows up to 8 KiB", "rows up to 16 KiB", "rows up to 32 KiB", "rows up to a block"};
          PetscCount               rows    = 0;

          for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(names); k++) rows += HybCountersGet(&pp.counters, names[k]);
          HybTestCheck(rows == C.csr.m, "%td rows of all sizes, expected %" PetscInt_FMT, rows, C.csr.m);
        }
        HybTestCheck(!C.csr.nnz || HybCountersGet(&pp.counters, "plan bytes") > 2 * products, "a plan of %td bytes for %td products", HybCountersGet(&pp.counters, "plan bytes"), products);
      }
    }
    if (!pp.declined && HybTestSameMatrix(&DC, &C, 4)) {
      Promised(A, P, &T, &W, &S);
      HybTestSameBits(S.csr.nnz, sizeof(PetscScalar), DC.a, S.csr.a);
      for (int k = 0; k < 2; k++) {
        HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, sizeof(PetscScalar) * (size_t)DC.nnz));
        HybTestCall(Numeric(&pp, &DA, &DP, &DC));
        HybTestSameBits(S.csr.nnz, sizeof(PetscScalar), DC.a, S.csr.a);
      }
      RefMatDestroy(&C);
      /* other matrices of the same pattern, at other addresses, with other values; first one of the two */
      HybTestMatArrays(A->csr.m, A->csr.n, A->csr.i, A->csr.j, NULL, &other);
      RefPtAP(&other, P, &C);
      if (HybTestCall(HybTestUpload(&keep, &other.csr, &DA)) && HybTestCall(Numeric(&pp, &DA, &DP, &DC))) HybTestSameMatrix(&DC, &C, 4);
      RefMatDestroy(&C);
      HybTestMatArrays(P->csr.m, P->csr.n, P->csr.i, P->csr.j, NULL, &otherp);
      RefPtAP(&other, &otherp, &C);
      RefTranspose(&otherp, PETSC_FALSE, &T);
      if (HybTestCall(HybTestUpload(&keep, &otherp.csr, &DP)) && HybTestCall(Numeric(&pp, &DA, &DP, &DC)) && HybTestSameMatrix(&DC, &C, 4)) {
        Promised(&other, &otherp, &T, &W, &S);
        HybTestSameBits(S.csr.nnz, sizeof(PetscScalar), DC.a, S.csr.a);
      }
      RefMatDestroy(&other, &otherp);
    }
  }
  Finish(&pp);
  RefMatDestroy(&C, &T, &W, &S);
}

static void Check(const RefMat *A, const RefMat *P, const char *counter, PetscCount least)
{
  Check2(A, P, counter, NULL, least);
}

static void CheckAndDestroy(RefMat *A, RefMat *P, const char *counter, PetscCount least)
{
  Check(A, P, counter, least);
  RefMatDestroy(A, P);
}

static RefMat  FaultA, FaultP, FaultC;
static HybPtAP faultpp;

static PetscErrorCode Fault(void *ctx)
{
  HybCSR DA, DP, DC;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&keep, &FaultA.csr, &DA));
  PetscCall(HybTestUpload(&keep, &FaultP.csr, &DP));
  PetscCall(Init(&faultpp));
  PetscCall(First(&faultpp, &DA, &DP, &DC));
  PetscCall(Numeric(&faultpp, &DA, &DP, &DC));
  HybTestSameMatrix(&DC, &FaultC, 4);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultCleanup(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(Destroy(&faultpp));
  PetscCall(PetscMemzero(&faultpp, sizeof(faultpp)));
  PetscCall(HybTestReset(&keep, &out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values that no tolerance is for: the bits alone */
static void Special(const RefMat *A, const RefMat *P)
{
  HybPtAP pp;
  HybCSR  DA, DP, DC;
  RefMat  C, T, W, D;

  References(A, P, &C, &T, &W);
  Promised(A, P, &T, &W, &C);
  if (Begin(&pp, A, P, &DA, &DP, &DC) && HybTestCall(HybTestDownload(&DC, &D))) {
    for (PetscCount k = 0; k < C.csr.nnz; k++) {
      const PetscReal x = PetscRealPart(D.csr.a[k]), y = PetscRealPart(C.csr.a[k]);

      if (!HybTestCheck(x == y || (x != x && y != y), "entry %td is %g, expected %g", k, (double)x, (double)y)) break;
    }
    RefMatDestroy(&D);
  }
  Finish(&pp);
  RefMatDestroy(&C, &T, &W);
}

/* twenty first products, each with a numeric phase */
static void Repeated(const RefMat *A, const RefMat *P)
{
  HybPtAP      pp;
  HybCSR       DA, DP, DC;
  PetscScalar *bits = NULL;
  PetscCount   nnz  = 0;

  for (int run = 0; run < 20 && !HybTestFailed(); run++) {
    if (Begin(&pp, A, P, &DA, &DP, &DC) && HybTestCheck(!pp.declined, "declined")) {
      if (run)
        HybTestCheck(DC.nnz == nnz && HybTestSameBits(nnz, sizeof(PetscScalar), DC.a, bits), "run %d differs from the first", run);
      else {
        nnz  = DC.nnz;
        bits = (PetscScalar *)RefAlloc(nnz, sizeof(PetscScalar));
        HybTestCall(HybTestDownloadArray(nnz, sizeof(PetscScalar), DC.a, bits));
      }
      HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, sizeof(PetscScalar) * (size_t)DC.nnz));
      HybTestCall(Numeric(&pp, &DA, &DP, &DC));
      HybTestSameBits(nnz, sizeof(PetscScalar), DC.a, bits);
    }
    Finish(&pp);
  }
  free(bits);
}

/* a diagonal A and one coarse row, sized to just fill and to just exceed each size of a device's rows */
static void Sizes(void)
{
  static const char *const names[] = {"rows up to 1 KiB", "rows up to 2 KiB", "rows up to 4 KiB", "rows up to 6 KiB", "rows up to 8 KiB", "rows up to 16 KiB", "rows up to 32 KiB", "rows up to a block"};
  static const PetscInt    kib[]   = {1, 2, 4, 6, 8, 16, 32};
  const PetscInt           entry   = (PetscInt)PetscMax(2 * sizeof(PetscScalar), sizeof(PetscInt) + 8);
  RefMat                   A, P;

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kib); k++) {
    for (PetscInt d = -1; d <= 1; d++) {
      const PetscInt m = kib[k] * 1024 / entry + d;

      HybTestBegin("%s: a row of C from %" PetscInt_FMT " products", method->name, m);
      HybTestMatBanded(m, m, 0, 0, &A);
      HybTestMatDenseColumn(m, 1, 0, 0, &P);
      Check2(&A, &P, NULL, names[k + (d > 0)], 1);
      RefMatDestroy(&A, &P);
    }
  }
  HybTestBegin("%s: a row of C from more products than a block holds", method->name);
  HybTestMatBanded(20000, 20000, 0, 0, &A);
  HybTestMatDenseColumn(20000, 1, 0, 0, &P);
  CheckAndDestroy(&A, &P, NULL, 0);
}

static void FinishProduct(HybProduct *product)
{
  HybTestCall(HybProductDestroy(product));
  HybTestCall(HybTestReset(&keep, &out));
}

/* by the room above: where the method declines, the stages go on, also when it was named */
static void Declined(void)
{
  RefMat A, P, C;
  HybCSR DA, DP, DC;

  HybTestMatStencil(27, 14, 14, 14, &A);
  HybTestMatProlongator(2744, 150, 8, &P);
  RefPtAP(&A, &P, &C);
  for (int declined = 0; declined < 3; declined++) {
    HybExec     exec    = *HybTestExec();
    HybProduct  product = NULL;
    const char *ran     = "";
    const char *wanted  = declined && HybTestExec()->backend->device ? "stages" : method->name;

    HybTestBegin("%s: a product that %s", method->name, declined == 2 ? "finds little memory" : declined ? "may have no plan"
                                                                                                         : "asks for it by name");
    if (declined == 2) exec.backend = HybTestScarce();
    if (declined == 1) HybTestCall(HybTuningSet("fused_plan", "1000"));
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &P.csr, &DP)) && HybTestCall(HybProductCreate(&exec, HYB_PRODUCT_PTAP, method->name, 0, &product)) &&
        HybTestCall(HybProductSymbolic(product, &DA, &DP, NULL, &out, &DC)) && HybTestCall(HybProductNumeric(product, &DA, &DP, NULL, &DC))) {
      PetscBool same;

      HybTestSameMatrix(&DC, &C, 4);
      HybTestCall(HybProductNumeric(product, &DA, &DP, NULL, &DC));
      HybTestSameMatrix(&DC, &C, 4);
      ran = HybProductGetMethod(product);
      HybTestCall(PetscStrcmp(ran, method->name, &same));
      HybTestCheck(same == (PetscBool)!strcmp(wanted, method->name), "%s ran, wanted: %s", ran, wanted);
    }
    if (declined == 1) HybTestCall(HybTuningSet("fused_plan", NULL));
    FinishProduct(&product);
  }
  RefMatDestroy(&A, &P, &C);
}

/* the stages' transpose gets new values unless the caller says that P's are the old ones; none where masks take P's
   where they stand */
static void UnchangedBy(const char *by)
{
  HybProduct      product = NULL;
  const PetscBool same[3] = {PETSC_FALSE, PETSC_TRUE, PETSC_FALSE};
  RefMat          A, P, C;
  HybCSR          DA, DP, DC;

  HybTestBegin("P^T A P by %s again with the values of P of before", by);
  HybTestMatStencil(7, 9, 9, 9, &A);
  HybTestMatProlongator(729, 80, 3, &P);
  RefPtAP(&A, &P, &C);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &P.csr, &DP)) && HybTestCall(HybProductCreate(HybTestExec(), HYB_PRODUCT_PTAP, by, 0, &product)) && HybTestCall(HybProductUnchanged(product, same)) &&
      HybTestCall(HybProductSymbolic(product, &DA, &DP, NULL, &out, &DC))) {
    static const PetscCount gathers[] = {1, 1, 2, 2, 2, 3};

    for (int k = 0; k < 6; k++) {
      PetscCount count = -1, masks = 0;

      if (k > 0) HybTestRandomize(&A);
      if (k == 2 || k == 5) HybTestRandomize(&P);
      RefMatDestroy(&C);
      RefPtAP(&A, &P, &C);
      /* what is said holds for one numeric phase; of the first one it cannot be true */
      if (k != 2 && k != 5) HybTestCall(HybProductUnchanged(product, same));
      if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &P.csr, &DP)) && HybTestCall(HybProductNumeric(product, &DA, &DP, NULL, &DC))) HybTestSameMatrix(&DC, &C, 4);
      count = HybProductGetCounter(product, "transposed values");
      masks = HybProductGetCounter(product, "masks");
      /* a plan of other sizes may outgrow the operands */
      if (!strcmp(by, "hash") && sizeof(PetscScalar) == 8 && sizeof(PetscInt) == 4) HybTestCheck(masks == A.csr.nnz + P.csr.nnz, "%td masks, expected %td", masks, A.csr.nnz + P.csr.nnz);
      HybTestCheck(count == (masks > A.csr.nnz ? 0 : gathers[k]), "%td times after numeric phase %d, expected %td", count, k + 1, masks > A.csr.nnz ? 0 : gathers[k]);
    }
  }
  FinishProduct(&product);
  RefMatDestroy(&A, &P, &C);
}

static void Unchanged(void)
{
  UnchangedBy("binned");
  if (HybTestExec()->backend->device) UnchangedBy("hash");
}

/* first products wait for the device three times for each multiplication at most, and for a transpose as often as it
   looks for diagonals; numeric phases never */
static void Waits(void)
{
  static const char *const names[] = {"A B", "A^T B", "A B^T", "P^T A P", "R A R^T", "A B C"}, *const kinds[] = {"7 points and boxes", "9 points and irregular aggregates", "random", "columns in any order"};
  static const unsigned stages[] = {1, 1, 1, 2, 2, 2}, transposes[] = {0, 1, 1, 1, 1, 0};

  if (!HybTestExec()->backend->device) return;
  HybTestCall(HybTuningSet("diagonal_fewest", "1000"));
  for (int kind = 0; kind < 4; kind++) {
    RefMat A, P, R, C;

    if (kind == 0)
      HybTestMatStencil(7, 16, 12, 9, &A);
    else if (kind == 1)
      HybTestMatStencil(9, 45, 41, 1, &A);
    else
      HybTestMatRandom(1500, 1500, 3, kind == 2 ? 7 : 30, &A);
    HybTestMatProlongator(A.csr.m, A.csr.m / (kind ? 7 : 27), kind == 1 ? 9 : kind == 0 ? 1
                                                                                        : 4,
                          &P);
    RefTranspose(&P, PETSC_FALSE, &R);
    for (int type = 0; type < 6; type++) {
      HybExec            exec    = *HybTestExec();
      HybProduct         product = NULL;
      HybCSR             DA, DB, DC, D;
      const RefMat      *B = type == 1 ? &A : type == 2 || type == 4 ? &R
                                                                     : &P;
      unsigned long long before, waits;

      HybTestBegin("waits of %s, %s", names[type], kinds[kind]);
      if (type < 5 && type != 3)
        RefMatCopy(&A, &C); /* a third operand that nobody looks at */
      else
        RefTranspose(&P, PETSC_FALSE, &C);
      HybTestCountWaits(&exec);
      if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B->csr, &DB)) && HybTestCall(HybTestUpload(&keep, &C.csr, &DC)) && HybTestCall(HybProductCreate(&exec, (HybProductType)type, "auto", 0, &product)) && HybTestCall(exec.backend->sync(&exec))) {
        before = HybTestWaits();
        if (HybTestCall(HybProductSymbolic(product, &DA, &DB, &DC, &out, &D))) {
          waits = HybTestWaits() - before;
          HybTestCheck(waits <= 3 * stages[type] + transposes[type], "%llu times", waits);
          for (int k = 0; k < 3; k++) {
            HybTestCall(exec.backend->sync(&exec));
            before = HybTestWaits();
            HybTestCall(HybProductNumeric(product, &DA, &DB, &DC, &D));
            waits = HybTestWaits() - before;
            /* before the second one a plan may be made, which asks once whether it holds */
            HybTestCheck(waits <= (k == 1 ? (unsigned long long)stages[type] : 0), "numeric phase %d waits %llu times", k + 1, waits);
          }
        }
      }
      FinishProduct(&product);
      RefMatDestroy(&C);
    }
    RefMatDestroy(&A, &P, &R);
  }
  HybTestCall(HybTuningSet("diagonal_fewest", NULL));
}

static void Zoo(void)
{
  char   name[64];
  RefMat A, P;

  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    HybTestBegin("%s: %s with a prolongator", method->name, name);
    HybTestMatProlongator(A.csr.m, A.csr.m / 5 + 1, 3, &P);
    Check(&A, &P, NULL, 0);
    RefMatDestroy(&P);
    HybTestBegin("%s: %s with uneven rows, empty ones among them", method->name, name);
    HybTestMatPowerLaw(A.csr.m, A.csr.m / 3 + 1, 3, &P);
    HybTestMatEmptyRows(&P, 0, P.csr.m, 3);
    Check(&A, &P, NULL, 0);
    RefMatDestroy(&P);
    HybTestBegin("%s: %s with itself", method->name, name);
    RefMatCopy(&A, &P);
    CheckAndDestroy(&A, &P, NULL, 0);
  }
}

static void Edges(void)
{
  RefMat A, P, B;

  HybTestBegin("%s: nothing, no column, no entry", method->name);
  HybTestMatEmpty(0, 0, &A);
  HybTestMatEmpty(0, 0, &P);
  Check(&A, &P, NULL, 0);
  RefMatDestroy(&P);
  HybTestMatEmpty(0, 4, &P);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestMatRandom(30, 30, 0, 5, &A);
  HybTestMatEmpty(30, 0, &P);
  Check(&A, &P, NULL, 0);
  RefMatDestroy(&P);
  HybTestMatEmpty(30, 7, &P);
  Check(&A, &P, NULL, 0);
  RefMatDestroy(&P);
  HybTestMatRandom(30, 7, 0, 2, &P);
  HybTestMatEmpty(30, 30, &B);
  Check(&B, &P, NULL, 0);
  RefMatDestroy(&B);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestBegin("%s: one dense row of P", method->name);
  HybTestMatRandom(200, 200, 0, 6, &A);
  HybTestMatDenseRow(200, 60, 99, 1, &P);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestBegin("%s: rows of P so long that places are not kept", method->name);
  HybTestMatRandom(150, 150, 1, 3, &A);
  HybTestMatRandom(150, 140, 120, 140, &P);
  CheckAndDestroy(&A, &P, "walked", 1);
}

static void Blocks(void)
{
  RefMat A, P;

  for (PetscInt bs = 1; bs <= 6; bs++) {
    for (PetscInt cb = 1; cb <= 8; cb++) {
      /* a node's prolongator block is bs x cb; rows of A come in blocks of bs */
      RefMat    N, Q;
      PetscInt *pi, *pj;
      PetscInt  nodes = HybTestSize(60, 20), coarse = 9, nnz = 0;

      HybTestBegin("%s: %" PetscInt_FMT " unknowns a node, %" PetscInt_FMT " a coarse node", method->name, bs, cb);
      HybTestMatRandom(nodes, nodes, 1, 6, &N);
      HybTestMatBlock(&N, bs, &A);
      HybTestMatProlongator(nodes, coarse, 3, &Q);
      pi = (PetscInt *)RefAlloc(nodes * bs + 1, sizeof(PetscInt));
      pj = (PetscInt *)RefAlloc(Q.csr.nnz * bs * cb, sizeof(PetscInt));
      for (PetscInt r = 0; r < nodes * bs; r++) {
        for (PetscInt k = Q.csr.i[r / bs]; k < Q.csr.i[r / bs + 1]; k++) {
          for (PetscInt d = 0; d < cb; d++) pj[nnz++] = Q.csr.j[k] * cb + d;
        }
        pi[r + 1] = nnz;
      }
      HybTestMatArrays(nodes * bs, coarse * cb, pi, pj, NULL, &P);
      RefFree(pi, pj);
      RefMatDestroy(&N, &Q);
      CheckAndDestroy(&A, &P, "column block", cb);
    }
  }
}

/* Which columns node r of n has, of ncols: any, one beside a column that all have, nearly all, or none at all */
static PetscInt DrawRow(int kind, PetscInt r, PetscInt n, PetscInt ncols, PetscInt *cols)
{
  PetscInt len = 0, hub = ncols / 3;

  for (PetscInt c = 0; c < ncols; c++) {
    PetscBool in = (PetscBool)(HybTestRandomInt(0, ncols) < 3);

    if (kind == 1) in = (PetscBool)(c == hub || c == r * ncols / n);
    if (kind == 2) in = (PetscBool)(HybTestRandomInt(0, 10) > 0);
    if (kind == 3) in = (PetscBool)(r % 3 && c % 4 && in);
    if (in) cols[len++] = c;
  }
  return len;
}

/* rb x cb blocks of n x ncols such rows; ragged: a few entries are missing, so that blocks and equal rows are broken */
static void DrawBlocks(int kind, PetscInt n, PetscInt ncols, PetscInt rb, PetscInt cb, PetscBool ragged, RefMat *A)
{
  PetscInt *cols = (PetscInt *)RefAlloc(ncols, sizeof(PetscInt)), *i = (PetscInt *)RefAlloc(n * rb + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(n * rb * ncols * cb, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < n; r++) {
    const PetscInt len = DrawRow(kind, r, n, ncols, cols);

    for (PetscInt d = 0; d < rb; d++) {
      for (PetscInt k = 0; k < len * cb; k++) {
        if (!ragged || HybTestRandomInt(0, 50)) j[nnz++] = cols[k / cb] * cb + k % cb;
      }
      i[r * rb + d + 1] = nnz;
    }
  }
  HybTestMatArrays(n * rb, ncols * cb, i, j, NULL, A);
  RefFree(cols, i, j);
}

/* A and P of such blocks, which need not fit each other. As: any, or so that places are kept as numbers, or P so dense
   and A so sparse that they are not kept; of blocks of cb columns then. */
static void Shape(PetscInt k, int as, PetscInt cb)
{
  static const PetscInt cbs[] = {1, 1, 2, 3, 5, 6, 8};
  const PetscInt        rb = as ? 1 : HybTestRandomInt(1, 6), n = as == 1 ? 85 : as == 2 ? 40
                                                                                         : HybTestRandomInt(1, HybTestSize(90, 30));
  const int             akind = as ? 1 : (int)HybTestRandomInt(0, 4), pkind = as ? as : (int)HybTestRandomInt(0, 4);
  const PetscInt        columns = pkind == 1 ? n : as == 2 ? 260
                                                           : HybTestRandomInt(1, HybTestSize(30, 12));
  const PetscBool       ragged  = (PetscBool)(!as && HybTestRandomInt(0, 3) == 0);
  RefMat                A, P;

  if (!as) cb = cbs[HybTestRandomInt(0, PETSC_STATIC_ARRAY_LENGTH(cbs))];
  HybTestBegin("%s: shapes %" PetscInt_FMT ": %" PetscInt_FMT " nodes of %" PetscInt_FMT " rows (%d) to %" PetscInt_FMT " of %" PetscInt_FMT " (%d)%s", method->name, k, n, rb, akind, columns, cb, pkind, ragged ? ", ragged" : "");
  DrawBlocks(akind, n, n, rb, rb, (PetscBool)(ragged && HybTestRandomInt(0, 2)), &A);
  DrawBlocks(pkind, n, columns, rb, cb, ragged, &P);
  Check(&A, &P, as == 2 ? "walked" : NULL, 1);
  if (as == 1 && !HybTestExec()->backend->device && !strcmp(method->name, "fused")) HybTestCheck(Last.b == cb && Last.numbers > 0, "blocks of %td columns, %td places as numbers", Last.b, Last.numbers);
  RefMatDestroy(&A, &P);
}

static void Shapes(void)
{
  for (PetscInt k = 0; k < HybTestSize(90, 16); k++) Shape(k, 0, 0);
  for (PetscInt cb = 1; cb <= 2; cb++) {
    Shape(cb, 1, cb);
    if (!HybTestExec()->backend->device) Shape(cb, 2, cb);
  }
}

static void Random(void)
{
  RefMat A, P;

  for (PetscInt k = 0; k < HybTestSize(200, 30); k++) {
    const PetscInt m = HybTestRandomInt(1, 80), n = HybTestRandomInt(1, 40);

    HybTestBegin("%s: random product %" PetscInt_FMT ", %" PetscInt_FMT " rows to %" PetscInt_FMT, method->name, k, m, n);
    HybTestMatRandom(m, m, 0, HybTestRandomInt(0, PetscMin(m, 12)), &A);
    HybTestMatRandom(m, n, 0, HybTestRandomInt(0, PetscMin(n, 6)), &P);
    CheckAndDestroy(&A, &P, NULL, 0);
  }
}

static void Coarse(void)
{
  RefMat A, P;

  /* as many coarse rows as groups of a block have, and one more and one less */
  for (PetscInt n = 1; n <= HybTestSize(1024, 128); n *= 2) {
    for (PetscInt d = -1; d <= 1; d++) {
      if (n + d < 1) continue;
      HybTestBegin("%s: %" PetscInt_FMT " coarse rows", method->name, n + d);
      HybTestMatRandom(2 * n + 5, 2 * n + 5, 1, 4, &A);
      HybTestMatProlongator(2 * n + 5, n + d, 2, &P);
      CheckAndDestroy(&A, &P, NULL, 0);
    }
  }
}

static void Rows(void)
{
  RefMat A, P;

  HybTestBegin("%s: rows of C of many slices", method->name);
  HybTestMatRandom(90, 90, 1, 5, &A);
  HybTestMatRandom(90, 700, 20, 40, &P);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestBegin("%s: dense columns of P", method->name);
  HybTestMatRandom(300, 300, 0, 4, &A);
  HybTestMatDenseColumn(300, 40, 17, 2, &P);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestBegin("%s: a dense row of A, dense columns of both", method->name);
  HybTestMatDenseRow(250, 250, 111, 2, &A);
  HybTestMatDenseColumn(250, 30, 29, 1, &P);
  Check(&A, &P, NULL, 0);
  RefMatDestroy(&A);
  HybTestMatDenseColumn(250, 250, 249, 2, &A);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestBegin("%s: infinities, NaN, negative zeros and denormals are carried through", method->name);
  HybTestMatStencil(5, 11, 9, 1, &A);
  HybTestMatProlongator(99, 20, 3, &P);
  A.csr.a[7]   = PETSC_MAX_REAL;
  A.csr.a[8]   = PETSC_MAX_REAL;
  A.csr.a[100] = (PetscReal)-0.0;
  A.csr.a[101] = 1 / PETSC_MAX_REAL; /* a denormal */
  A.csr.a[200] = PETSC_MAX_REAL * 2;
  P.csr.a[5]   = PETSC_MAX_REAL;
  P.csr.a[77]  = PETSC_MAX_REAL * 2 - PETSC_MAX_REAL * 2;
  Special(&A, &P);
  RefMatDestroy(&A, &P);
  HybTestBegin("%s: denormals alone", method->name);
  HybTestMatStencil(5, 11, 9, 1, &A);
  HybTestMatProlongator(99, 20, 3, &P);
  for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] *= 1 / PETSC_MAX_REAL;
  Special(&A, &P);
  RefMatDestroy(&A, &P);
  HybTestBegin("%s: twenty runs have the same bits", method->name);
  HybTestMatStencil(9, 14, 11, 1, &A);
  HybTestMatProlongator(154, 30, 4, &P);
  Repeated(&A, &P);
  RefMatDestroy(&A, &P);
}

/* Column 0 of P has an entry in all rows, so that row 0 of C has all columns: more than two bytes count. This row alone
   is walked. alike: consecutive rows of equal patterns. */
static void HubOf(PetscInt alike)
{
  const PetscInt n = HybTestSize(70000, 300), m = n * alike;
  PetscInt      *pi = (PetscInt *)RefAlloc(m + 1, sizeof(PetscInt)), *pj = (PetscInt *)RefAlloc(2 * m, sizeof(PetscInt)), *ai = (PetscInt *)RefAlloc(m + 1, sizeof(PetscInt)), *aj = (PetscInt *)RefAlloc(3 * alike * m, sizeof(PetscInt)), nnz = 0, annz = 0;
  RefMat         A, P;

  HybTestBegin("%s: a row of C that has all of %" PetscInt_FMT " columns, %" PetscInt_FMT " rows alike", method->name, n, alike);
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt c = r / alike;

    pj[nnz++] = 0;
    if (c) pj[nnz++] = c;
    pi[r + 1] = nnz;
    for (PetscInt k = PetscMax(c - 1, 0) * alike; k < PetscMin(c + 2, n) * alike; k++) aj[annz++] = k;
    ai[r + 1] = annz;
  }
  HybTestMatArrays(m, n, pi, pj, NULL, &P);
  HybTestMatArrays(m, m, ai, aj, NULL, &A);
  CheckAndDestroy(&A, &P, n > 65536 ? "walked" : NULL, 1);
  /* row 0 meets as many columns as the others together, and one more for each */
  if (!HybTestExec()->backend->device && n > 65536 && !strcmp(method->name, "thin")) HybTestCheck(Last.declined, "thin takes a row that is walked for each of %" PetscInt_FMT, m);
  if (!HybTestExec()->backend->device && n > 65536 && !strcmp(method->name, "fused")) HybTestCheck(Last.places >= 2 * n && Last.walked >= 3 * n && Last.walked <= 4 * n, "%td places are kept, %td found anew, of %" PetscInt_FMT " columns", Last.places, Last.walked, n);
  RefFree(pi, pj, ai, aj);
}

static void Hub(void)
{
  for (PetscInt alike = 1; alike <= 2; alike++) HubOf(alike);
}

static void Faults(void)
{
  HybTestBegin("%s: every allocation failing in turn", method->name);
  HybTestMatStencil(9, 12, 11, 1, &FaultA);
  HybTestMatProlongator(132, 30, 3, &FaultP);
  RefPtAP(&FaultA, &FaultP, &FaultC);
  HybTestFaults(Fault, FaultCleanup, NULL);
  RefMatDestroy(&FaultA, &FaultP, &FaultC);
}

/* Bands: the host's "thin" has the columns of a row in one word where they lie in it. Whole, with rows of A and P that
   are empty, and with one entry far from the others, in a row of A or of P. */
static void Bands(void)
{
  static const PetscInt widths[] = {0, 1, 7, 21, 22, 23, 24, 40, 70};
  const PetscInt        n        = 230;

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(widths); k++) {
    for (int kind = 0; kind < 4; kind++) {
      RefMat A, P;

      HybTestBegin("%s: a band of %" PetscInt_FMT " columns on each side, %s", method->name, widths[k], kind == 0 ? "whole" : kind == 1 ? "with empty rows"
                                                                                                                            : kind == 2 ? "a far entry in A"
                                                                                                                                        : "a far entry in P");
      HybTestMatBanded(n, n, widths[k], widths[k], &A);
      HybTestMatProlongator(n, n / 2, 2, &P);
      if (kind == 1) {
        HybTestMatEmptyRows(&A, 0, n, 3);
        HybTestMatEmptyRows(&P, 1, n, 4);
      }
      if (kind == 2) A.csr.j[A.csr.i[n / 2 + 1] - 1] = n - 1; /* behind those of its row */
      if (kind == 3) P.csr.j[P.csr.i[n / 4 + 1] - 1] = n / 2 - 1;
      Check(&A, &P, NULL, 0);
      if (!strcmp(method->name, "thin")) {
        HybPtAP   pp;
        PetscBool fits = PETSC_FALSE;

        HybTestCall(Init(&pp));
        HybTestCall(method->applicable(&pp, &A.csr, &P.csr, &fits));
        HybTestCheck(fits == (PetscBool)(widths[k] <= 1 || (widths[k] <= 22 && kind != 2)), "%s by its rule", fits ? "taken" : "not taken");
        HybTestCall(Destroy(&pp));
      }
      RefMatDestroy(&A, &P);
    }
  }
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();
  PetscInt       n    = 0;

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &out));
  for (const HybPtAPMethod *const *table = exec->backend->ptap; table && *table; table++, n++) {
    method = *table;
    HybTestPieces(Zoo, Edges, Blocks, Shapes, Random, Coarse, Rows, Bands, Hub, Sizes, Declined, Unchanged, Waits, Faults);
  }
  if (!n) {
    HybTestBegin("fused Galerkin product");
    HybTestSkip("the %s backend has no method", exec->backend->name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

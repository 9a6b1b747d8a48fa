/* What the tests of SpGEMM's methods share: the method under test, a product of it, what fails and what is refused. */
#ifndef SPGEMMTEST_H
#define SPGEMMTEST_H
#include "hybtest.h"
#include <aijhybridgpu/private/hybspgemm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static HybArena               keep, out;
static const HybSpGEMMMethod *method; /* under test */
static PetscInt               width;
static PetscInt               givensize; /* size of blocks, of products that are refused */

static inline PetscBool Is(const char *name)
{
  return (PetscBool)!strcmp(method->name, name);
}

/* waits for the device in a first product at most; the caller's own wait for the result is none of them, and the only
   one of a numeric phase */
static inline PetscErrorCode MultiplyWithin(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, unsigned long long most, HybCSR *C)
{
  const HybBackend  *backend = mm->exec.backend;
  unsigned long long before, waits;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(backend->sync(&mm->exec)); /* what was queued before is not the product's */
  HybTestCountWaits(&mm->exec);
  before = HybTestWaits();
  /* it may refuse them, which is no error here: Made() */
  if (method && method->fits) PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybSpGEMMSymbolic(mm, A, B, &out, C);
  if (method && method->fits) PetscCall(PetscPopErrorHandler());
  waits = HybTestWaits() - before;
  if (!ierr && !C->a) {
    ierr = HybArenaAlloc(&out, mm->exec.result, C->nnz, sizeof(HybScalar), &C->a);
    if (!ierr) ierr = HybSpGEMMNumeric(mm, A, B, C);
    HybTestCheck(HybTestWaits() - before == waits, "%s: a numeric phase waits for the device", mm->name);
  }
  mm->exec.backend = backend;
  PetscCall(ierr);
  HybTestCheck(waits <= most, "%s waits %llu times for the device", mm->method->name, waits);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Multiply(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  return MultiplyWithin(mm, A, B, 3, C);
}

/* the method's object and both operands; Finish() frees them, also after a failure */
static inline PetscBool Begin(HybSpGEMM *mm, const RefMat *A, const RefMat *B, HybCSR *DA, HybCSR *DB)
{
  return (PetscBool)(HybTestCall(HybSpGEMMInit(mm, HybTestExec(), method->name, width)) && HybTestCall(HybTestUpload(&keep, &A->csr, DA)) && HybTestCall(HybTestUpload(&keep, &B->csr, DB)));
}

static inline void Finish(HybSpGEMM *mm)
{
  HybTestCall(HybSpGEMMDestroy(mm));
  HybTestCall(HybTestReset(&keep, &out));
}

/* A product of the operands A and B, which its user makes, of A with itself where B is not made: the object, what is on
   the device, C and its values in A's order. Close() frees all. */
typedef struct {
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       A, B, C;
  PetscScalar *expected;
} Product;

static inline PetscBool Open(Product *p, const char *name)
{
  const RefMat *B = p->B.csr.i ? &p->B : &p->A;

  RefSpGEMM(&p->A, B, &p->C);
  p->expected = RefProductInOrder(&p->A, B, &p->C);
  if (!HybTestCall(HybSpGEMMInit(&p->mm, HybTestExec(), name, width)) || !HybTestCall(HybTestUpload(&keep, &p->A.csr, &p->DA))) return PETSC_FALSE;
  p->DB = p->DA;
  return (PetscBool)(B == &p->A || HybTestCall(HybTestUpload(&keep, &B->csr, &p->DB)));
}

static inline void Close(Product *p)
{
  Finish(&p->mm);
  free(p->expected);
  RefMatDestroy(&p->A, &p->B, &p->C);
}

/* what the driver counted: products of numbers, in all and in the row that has most */
static inline void CheckStats(const HybSpGEMM *mm, const RefMat *A, const RefMat *B)
{
  PetscCount products = 0, most = 0;

  for (PetscInt r = 0; r < A->csr.m; r++) {
    PetscCount here = 0;

    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) here += B->csr.i[A->csr.j[k] + 1] - B->csr.i[A->csr.j[k]];
    products += here;
    most = PetscMax(most, here);
  }
  HybTestCheck(mm->stats.products == products && mm->stats.maxrow == most, "%td products, %td in a row, expected %td and %td", mm->stats.products, mm->stats.maxrow, products, most);
}

/* the product once more, without values: C's pattern, and no workspace is kept */
static inline void PatternAlone(HybSpGEMM *mm, HybCSR DA, HybCSR DB, const RefMat *C)
{
  HybCSR DC;

  HybTestCall(HybArenaReset(&out));
  DA.a = DB.a = NULL;
  if (HybTestCall(HybSpGEMMSymbolic(mm, &DA, &DB, &out, &DC))) HybTestSamePattern(&DC, C);
  HybTestCheck(mm->work.bytes == 0, "%zu bytes of workspace are kept", mm->work.bytes);
}

/* no wait in a numeric phase */
static inline PetscErrorCode Again(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const HybBackend  *backend = mm->exec.backend;
  unsigned long long waits;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(backend->zero(&mm->exec, C->a, (size_t)C->nnz * sizeof(HybScalar)));
  PetscCall(backend->sync(&mm->exec));
  HybTestCountWaits(&mm->exec);
  waits            = HybTestWaits();
  ierr             = HybSpGEMMNumeric(mm, A, B, C);
  waits            = HybTestWaits() - waits;
  mm->exec.backend = backend;
  PetscCall(ierr);
  HybTestCheck(!waits, "a numeric phase waits %llu times for the device", waits);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the first product has C's pattern and bits */
static inline PetscBool First(Product *p, unsigned long long most)
{
  return (PetscBool)(HybTestCall(MultiplyWithin(&p->mm, &p->DA, &p->DB, most, &p->DC)) && HybTestSamePattern(&p->DC, &p->C) && HybTestSameBits(p->C.csr.nnz, sizeof(PetscScalar), p->DC.a, p->expected));
}

/* a numeric phase, where zeros are, has these bits */
static inline PetscBool Numeric(Product *p)
{
  HybTestCall(HybTestExec()->backend->zero(HybTestExec(), p->DC.a, (size_t)p->DC.nnz * sizeof(HybScalar)));
  return (PetscBool)(HybTestCall(HybSpGEMMNumeric(&p->mm, &p->DA, &p->DB, &p->DC)) && HybTestSameBits(p->C.csr.nnz, sizeof(PetscScalar), p->DC.a, p->expected));
}

/* the values that A or B has now are the product's */
static inline PetscBool Renew(Product *p, PetscBool right)
{
  free(p->expected);
  p->expected = RefProductInOrder(&p->A, &p->B, &p->C);
  return HybTestCall(right ? HybTestUpload(&keep, &p->B.csr, &p->DB) : HybTestUpload(&keep, &p->A.csr, &p->DA));
}

/* "auto" takes this method for the product of both, which it destroys */
static inline void Takes(const char *expected, RefMat A, RefMat B)
{
  Product p = {.A = A, .B = B};

  if (Open(&p, "auto") && HybTestCall(Multiply(&p.mm, &p.DA, &p.DB, &p.DC))) {
    HybTestCheck(!strcmp(p.mm.method->name, expected), "%s", p.mm.method->name);
    HybTestSameMatrix(&p.DC, &p.C, 4);
  }
  Close(&p);
}

/* By the method of this name: the first product, again, with other values of both operands, and the pattern alone, all
   to the bit of the reference. counters: checks what the method counted. */
static inline void CheckProduct(const char *name, const RefMat *A, const RefMat *B, PetscScalar *(*reference)(const RefMat *, const RefMat *, const RefMat *), void (*counters)(const HybSpGEMM *, const RefMat *, const RefMat *, const RefMat *))
{
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       C, A2, B2;
  PetscScalar *expected;

  if (!HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), name, 0)) || !HybTestCall(HybTestUpload(&keep, &A->csr, &DA))) return;
  DB = DA;
  if (A != B) HybTestCall(HybTestUpload(&keep, &B->csr, &DB));
  RefSpGEMM(A, B, &C);
  expected = (*reference)(A, B, &C);
  if (HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) {
    HybTestCheck(!strcmp(mm.method->name, name), "%s ran", mm.method->name);
    (*counters)(&mm, A, B, &C);
    HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
    if (HybTestCall(Again(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
    /* other matrices of the same patterns */
    RefMatCopy(A, &A2);
    RefMatCopy(B, &B2);
    HybTestRandomize(&A2);
    HybTestRandomize(&B2);
    free(expected);
    expected = (*reference)(&A2, &B2, &C);
    if (HybTestCall(HybTestUpload(&keep, &A2.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B2.csr, &DB)) && HybTestCall(Again(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
    PatternAlone(&mm, DA, DB, &C);
    RefMatDestroy(&A2, &B2);
  }
  free(expected);
  RefMatDestroy(&C);
  Finish(&mm);
}

/* the same numbers, with their signs if they are zero; any NaN equals any other */
static inline PetscBool SameNumbers(const HybCSR *DC, PetscCount n, const PetscScalar *expected)
{
  PetscScalar *found = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  PetscBool    same  = HybTestCall(HybTestDownloadArray(n, sizeof(PetscScalar), DC->a, found));

  for (PetscCount k = 0; k < n && same; k++) {
    const PetscReal x = PetscRealPart(found[k]), y = PetscRealPart(expected[k]);

    same = HybTestCheck((x == y && signbit(x) == signbit(y)) || (x != x && y != y), "entry %td is %g, expected %g", k, (double)x, (double)y);
  }
  free(found);
  return same;
}

/* A product as HybTestCall() takes it, but that a method which looks at its operands may refuse those that it is not
   made for */
static inline PetscBool Made(PetscErrorCode ierr)
{
  if (ierr == PETSC_ERR_SUP && method->fits) return PETSC_FALSE;
  return HybTestCall(ierr);
}

/* Twenty first products of A with itself, and as many numeric phases: the same bits in each, those of the reference, or
   of the first run where there is none. A's end. */
static inline void TwentyRuns(RefMat *A, PetscScalar *(*reference)(const RefMat *, const RefMat *, const RefMat *))
{
  HybSpGEMM    mm;
  HybCSR       DA, DC;
  RefMat       C;
  PetscScalar *expected;

  HybTestBegin("%s: twenty runs have the same bits", method->name);
  RefSpGEMM(A, A, &C);
  expected = reference ? (*reference)(A, A, &C) : (PetscScalar *)RefAlloc(C.csr.nnz, sizeof(PetscScalar));
  for (int run = 0; run < 20 && !HybTestFailed(); run++) {
    if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width)) && HybTestCall(HybTestUpload(&keep, &A->csr, &DA)) && Made(Multiply(&mm, &DA, &DA, &DC)) && HybTestSamePattern(&DC, &C)) {
      if (!run && !reference) HybTestCall(HybTestDownloadArray(C.csr.nnz, sizeof(PetscScalar), DC.a, expected));
      HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
      if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DA, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
    }
    Finish(&mm);
  }
  free(expected);
  RefMatDestroy(A, &C);
}

/* a product of which every allocation fails in turn. name: of the method, or "auto" */
static struct {
  const char   *name;
  const RefMat *A, *B;
  PetscBool     reuse; /* with the plan of numeric phases, where a method has one */
  RefMat        C;
  HybSpGEMM     mm;
} Faulty;

/* an allocation that a plan wanted, and that was done without, was noticed: the harness asks for an error */
static inline PetscErrorCode WithoutPlan(const HybSpGEMM *mm)
{
  return HybCountersGet(&mm->counters, "plans without room") ? PETSC_ERR_MEM : PETSC_SUCCESS;
}

static inline PetscErrorCode FaultyProduct(void *ctx)
{
  HybCSR DA, DB, DC;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&keep, &Faulty.A->csr, &DA));
  DB = DA;
  if (Faulty.A != Faulty.B) PetscCall(HybTestUpload(&keep, &Faulty.B->csr, &DB));
  PetscCall(HybSpGEMMInit(&Faulty.mm, HybTestExec(), Faulty.name, width));
  Faulty.mm.reuse = Faulty.reuse;
  PetscCall(Multiply(&Faulty.mm, &DA, &DB, &DC));
  PetscCall(HybSpGEMMNumeric(&Faulty.mm, &DA, &DB, &DC));
  HybTestCheck(Faulty.mm.method == method, "%s ran", Faulty.mm.method->name);
  HybTestSameMatrix(&DC, &Faulty.C, 4);
  PetscFunctionReturn(WithoutPlan(&Faulty.mm));
}

static inline PetscErrorCode FaultyCleanup(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybSpGEMMDestroy(&Faulty.mm));
  PetscCall(HybTestReset(&keep, &out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline void EachFault(const char *name, const RefMat *A, const RefMat *B, PetscBool reuse)
{
  PetscCallAbort(PETSC_COMM_SELF, PetscMemzero(&Faulty, sizeof(Faulty)));
  Faulty.name  = name;
  Faulty.A     = A;
  Faulty.B     = B;
  Faulty.reuse = reuse;
  RefSpGEMM(A, B, &Faulty.C);
  HybTestFaults(FaultyProduct, FaultyCleanup, NULL);
  RefMatDestroy(&Faulty.C);
}

/* the first words of an error */
static char Message[1024];

static inline PetscErrorCode Catch(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && mess) snprintf(Message, sizeof(Message), "%s", mess);
  return n;
}

/* the error with which a product ends, that keeps nothing; Message is what it says */
static inline PetscErrorCode Refusal(const HybCSR *DA, const HybCSR *DB)
{
  HybSpGEMM      mm;
  HybCSR         DC;
  PetscErrorCode ierr;

  if (!HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width))) return PETSC_ERR_LIB;
  mm.blocksize = givensize;
  PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(Catch, NULL));
  Message[0] = 0;
  ierr       = HybSpGEMMSymbolic(&mm, DA, DB, &out, &DC);
  PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
  HybTestCheck(!mm.work.bytes && !mm.keep.bytes, "%zu bytes are kept", mm.work.bytes + mm.keep.bytes);
  HybTestCall(HybSpGEMMDestroy(&mm));
  HybTestCall(HybArenaReset(&out));
  return ierr;
}

/* the product must be refused with this error, and the message must hold the text */
static inline void Refused(const HybCSR *DA, const HybCSR *DB, PetscErrorCode error, const char *text)
{
  const PetscErrorCode ierr = Refusal(DA, DB);

  HybTestCheck(ierr == error && strstr(Message, text), "error %d, expected %d; \"%s\" is to say \"%s\"", (int)ierr, (int)error, Message, text);
}

/* C has more entries than 32 bits count. Each row of A names the two halves of a full row: no bound below sees more
   than one of them. */
static inline void TwoHalves(RefMat *A, RefMat *B)
{
  PetscInt  bi[3] = {0, 30000, 60000};
  PetscInt *bj    = (PetscInt *)RefAlloc(60000, sizeof(PetscInt));

  for (PetscInt k = 0; k < 60000; k++) bj[k] = k;
  HybTestMatBanded(50000, 2, 50000, 50000, A);
  HybTestMatArrays(2, 60000, bi, bj, NULL, B);
  free(bj);
}

/* a matrix with entries on these diagonals (column - row), each there with so many per cent */
static inline void Diagonals(PetscInt m, PetscInt n, PetscInt ndiagonals, const PetscInt *offset, PetscInt percent, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc(m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc((PetscCount)m * ndiagonals + 1, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < m; r++) {
    i[r] = nnz;
    for (PetscInt k = 0; k < ndiagonals; k++) {
      if (r + offset[k] >= 0 && r + offset[k] < n && (percent >= 100 || HybTestRandomInt(0, 100) < percent)) j[nnz++] = r + offset[k];
    }
  }
  i[m] = nnz;
  HybTestMatArrays(m, n, i, j, NULL, A);
  RefFree(i, j);
}

/* The method of devices that Body() of a program is about; NULL on the host, with a skip */
static inline PetscErrorCode Methods(const char *name, const char *what)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &out));
  method = NULL;
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table; table++)
    if (!strcmp((*table)->name, name)) method = *table;
  if (method) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("%s", what);
  if (exec->backend->device)
    HybTestCheck(PETSC_FALSE, "the device has no method %s", name);
  else
    HybTestSkip("the %s backend has no method %s", exec->backend->name, name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

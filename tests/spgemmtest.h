/* What the tests of SpGEMM's methods share: the method under test, a product of it, the reference's sums. */
#ifndef SPGEMMTEST_H
#define SPGEMMTEST_H
#include "hybtest.h"
#include <aijhybridgpu/private/hybspgemm.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static HybArena               keep, out;
static const HybSpGEMMMethod *method; /* under test */
static PetscInt               width;

static inline PetscBool Is(const char *name)
{
  return (PetscBool)!strcmp(method->name, name);
}

/* waits for the device in a first product at most; the caller's own wait for the result is none of them, and the only
   one of a numeric phase */
static inline PetscErrorCode Multiply(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const HybBackend  *backend = mm->exec.backend;
  unsigned long long before, waits;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(backend->sync(&mm->exec)); /* what was queued before is not the product's */
  HybTestCountWaits(&mm->exec);
  before = HybTestWaits();
  if (method && method->look) PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); /* it may refuse them, which is no error here: Made() */
  ierr = HybSpGEMMSymbolic(mm, A, B, &out, C);
  if (method && method->look) PetscCall(PetscPopErrorHandler());
  waits = HybTestWaits() - before;
  if (!ierr && !C->a) {
    ierr = HybArenaAlloc(&out, mm->exec.result, C->nnz, sizeof(HybScalar), &C->a);
    if (!ierr) ierr = HybSpGEMMNumeric(mm, A, B, C);
    HybTestCheck(HybTestWaits() - before == waits, "%s: a numeric phase waits for the device", mm->name);
  }
  mm->exec.backend = backend;
  PetscCall(ierr);
  HybTestCheck(waits <= 3, "%s waits %llu times for the device", mm->method->name, waits);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the method's object and both operands; Finish() frees them, also after a failure */
static inline PetscBool Begin(HybSpGEMM *mm, const RefMat *A, const RefMat *B, HybCSR *DA, HybCSR *DB)
{
  return (PetscBool)(HybTestCall(HybSpGEMMInit(mm, HybTestExec(), method->name, width)) && HybTestCall(HybTestUpload(&keep, &A->csr, DA)) && HybTestCall(HybTestUpload(&keep, &B->csr, DB)));
}

static inline void Finish(HybSpGEMM *mm)
{
  HybTestCall(HybSpGEMMDestroy(mm));
  HybTestCall(HybArenaReset(&keep));
  HybTestCall(HybArenaReset(&out));
}

/* values of the pattern of C, summed in A's order from the first product on, in working precision */
static inline PetscScalar *InOrder(const RefMat *A, const RefMat *B, const RefMat *C)
{
  PetscScalar *sum = (PetscScalar *)RefAlloc(C->csr.n, sizeof(PetscScalar)), *a = (PetscScalar *)RefAlloc(C->csr.nnz, sizeof(PetscScalar));
  PetscInt    *row = (PetscInt *)RefAlloc(C->csr.n, sizeof(PetscInt));

  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      for (PetscInt l = B->csr.i[A->csr.j[k]]; l < B->csr.i[A->csr.j[k] + 1]; l++) {
        const PetscScalar product = A->csr.a[k] * B->csr.a[l];
        const PetscInt    c       = B->csr.j[l];

        sum[c] = row[c] == r + 1 ? sum[c] + product : product;
        row[c] = r + 1;
      }
    }
    for (PetscInt t = C->csr.i[r]; t < C->csr.i[r + 1]; t++) a[t] = sum[C->csr.j[t]];
  }
  free(sum);
  free(row);
  return a;
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
  free(i);
  free(j);
}

/* The method that Body() of a program is about; NULL, with a skip, where the backend has none */
static inline PetscErrorCode Methods(const char *name, const char *what)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&keep, exec));
  PetscCall(HybArenaInit(&out, exec));
  method = NULL;
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table; table++)
    if (!strcmp((*table)->name, name)) method = *table;
  if (method) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("%s", what);
  HybTestSkip("the %s backend has no method %s", exec->backend->name, name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product as HybTestCall() takes it, but that a method which looks at its operands may refuse those that it is not
   made for */
static inline PetscBool Made(PetscErrorCode ierr)
{
  if (ierr == PETSC_ERR_SUP && method->look) return PETSC_FALSE;
  return HybTestCall(ierr);
}

#endif

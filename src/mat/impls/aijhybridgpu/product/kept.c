/*
  A product's result that keeps a pattern of its own. AIJ's numeric phases write into the pattern that the result has:
  entries that came otherwise, or that the product no longer has since an operand lost some, stay and become zeros, and
  what hangs on the pattern (coordinates, states, options) stands. Where the product's pattern is within the result's
  the type does the same: the product is computed into arrays of its own, and those are added to zeros.

  Such a result may live on the host, where the program wrote it, while the product runs on a device: then its values
  are brought down, until the second numeric phase in a row promotes it (promoted.c).
*/
#include "product.h"

PetscErrorCode HybKeptWithin(Mat C, const HybExec *x, const HybCSR *product, PetscBool *within, PetscBool *equal)
{
  const HybScalar zero    = 0;
  PetscCount      missing = 1;
  HybLent         l;
  HybCSR          c;
  HybArena        work;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  *within = *equal = PETSC_FALSE;
  if (!HybPatternIsWhole(C, 1)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(C, PETSC_TRUE, &l));
  c = l.csr;
  PetscCall(HybLentRestore(C, &l));
  if (c.m != product->m || c.n != product->n || c.nnz < product->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  if (HybExecOnDevice(x)) PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(C, x, PETSC_FALSE, &c));
  work = HybArenaOn(x);
  ierr = HybArenaCalloc(&work, HYB_WORK(x), c.nnz, sizeof(HybScalar), &c.a); /* zeros are added to zeros */
  if (!ierr) ierr = x->backend->csr->axpysubset(x, &work, &zero, product, &c, &missing);
  PetscCall(HybArenaReset(&work));
  PetscCall(ierr);
  *within = (PetscBool)!missing;
  *equal  = (PetscBool)(!missing && c.nnz == product->nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybKeptReset(HybKept *k)
{
  const PetscBool padded = k->padded;

  PetscFunctionBegin;
  k->padded = PETSC_FALSE;
  k->j      = NULL;
  if (padded) PetscCall(HybArenaReset(&k->arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybKeptSet(HybKept *k, HybArena *arrays, const HybCSR *csr)
{
  k->padded = PETSC_TRUE;
  k->csr    = *csr;
  k->j      = NULL;
  HybArenaGive(arrays, &k->arena);
}

/* The union of the product's pattern and the diagonal, if the product lacks any of it: then *sum's arrays are in
   sumarrays */
static PetscErrorCode HybKeptAddDiagonal(const HybExec *x, HybCSR *product, HybArena *work, HybArena *sumarrays, HybCSR *sum, PetscBool *lacks)
{
  const PetscInt  k       = PetscMin(product->m, product->n);
  const HybScalar zero    = 0;
  PetscCount      missing = 0;
  HybCSR          diagonal;
  PetscInt       *i, *j;

  PetscFunctionBegin;
  *lacks = PETSC_FALSE;
  /* adds nothing: its values are zeros */
  PetscCall(x->backend->csr->diagonalset(x, work, product, NULL, &zero, PETSC_TRUE, &missing));
  if (!missing) PetscFunctionReturn(PETSC_SUCCESS);
  *lacks = PETSC_TRUE;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)product->m + 1, sizeof(PetscInt), &i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, k, sizeof(PetscInt), &j));
  for (PetscInt r = 0; r <= product->m; r++) i[r] = PetscMin(r, k);
  for (PetscInt r = 0; r < k; r++) j[r] = r;
  diagonal     = *product;
  diagonal.nnz = k;
  diagonal.i   = i;
  diagonal.j   = j;
  diagonal.a   = NULL;
  if (HybExecOnDevice(x)) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)product->m + 1, sizeof(PetscInt), &diagonal.i));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, k, sizeof(PetscInt), &diagonal.j));
    PetscCall(x->backend->copy(x, diagonal.i, i, sizeof(PetscInt) * ((size_t)product->m + 1), HYB_COPY_HOST_TO_DEVICE));
    PetscCall(x->backend->copy(x, diagonal.j, j, sizeof(PetscInt) * (size_t)k, HYB_COPY_HOST_TO_DEVICE));
  }
  PetscCall(x->backend->csr->addsymbolic(x, sumarrays, work, product, &diagonal, sum));
  PetscCall(HybArenaAlloc(sumarrays, x->result, sum->nnz, sizeof(HybScalar), &sum->a));
  PetscCall(x->backend->zero(x, sum->a, sizeof(HybScalar) * (size_t)sum->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybKeptForceDiagonal(const HybExec *x, HybKept *k, HybArena *arrays, HybCSR *result)
{
  HybCSR         sum;
  PetscBool      lacks = PETSC_FALSE;
  PetscErrorCode ierr;
  HybArena       work = HybArenaOn(x), sumarrays = HybArenaOn(x);

  PetscFunctionBegin;
  ierr = HybKeptAddDiagonal(x, result, &work, &sumarrays, &sum, &lacks);
  PetscCall(HybArenaReset(&work));
  if (ierr) (void)HybArenaReset(&sumarrays);
  PetscCall(ierr);
  if (!lacks) PetscFunctionReturn(PETSC_SUCCESS);
  HybKeptSet(k, arrays, result);
  *arrays = sumarrays;
  *result = sum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybKeptBegin(Mat C, const HybExec *x, HybKeptWrite *w)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybLent              l;
  HybExec              on;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  if (HybPatternIsWhole(C, 1)) C->assembled = PETSC_TRUE; /* a numeric phase is an assembly too */
  PetscCall(HybLentGet(C, PETSC_TRUE, &l));
  w->csr = l.csr;
  PetscCall(HybLentRestore(C, &l));
  if (!HybExecOnDevice(x)) {
    PetscCall(MatSeqAIJHybridGPUHostWrites(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJHybridGPUWriteOnDevice(C, &on, &w->ondevice));
  if (!w->ondevice) {
    PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(C, x, PETSC_FALSE, &w->csr));
    /* moves it there, the second time */
    PetscCall(MatSeqAIJHybridGPUWriteBegin(C, PETSC_FALSE, 0, &on, &w->ondevice, &w->w));
  }
  if (w->ondevice)
    w->csr = hyb->copy.csr;
  else {
    w->aside = PETSC_TRUE;
    PetscCall(HybArenaAlloc(&w->side, HYB_WORK(x), w->csr.nnz, sizeof(HybScalar), &w->csr.a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKeptPad(const HybExec *x, const HybKept *k, HybCSR *result)
{
  const HybScalar one     = 1;
  PetscCount      missing = 0;
  HybCSR          product = k->csr;
  PetscErrorCode  ierr;
  HybArena        work = HybArenaOn(x);

  PetscFunctionBegin;
  if (k->j) product.j = k->j;
  product.n = result->n; /* in the result's numbering */
  ierr      = x->backend->zero(x, result->a, sizeof(HybScalar) * (size_t)result->nnz);
  if (!ierr) ierr = x->backend->csr->axpysubset(x, &work, &one, &product, result, &missing);
  PetscCall(HybArenaReset(&work));
  PetscCall(ierr);
  PetscCheck(!missing, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The result lacks %" PetscInt64_FMT " entries of its product", (PetscInt64)missing);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybKeptEnd(Mat C, const HybExec *x, HybKept *k, PetscBool interface, HybKeptWrite *w)
{
  PetscScalar *a;

  PetscFunctionBegin;
  if (k->padded) PetscCall(HybKeptPad(x, k, &w->csr));
  if (w->ondevice) {
    PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(C, x, interface));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* this tells the base class that the values moved (inverted diagonals, state) */
  PetscCall(MatSeqAIJGetArray(C, &a));
  if (w->aside) {
    PetscCall(x->backend->copy(x, a, w->csr.a, sizeof(HybScalar) * (size_t)w->csr.nnz, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(x->backend->sync(x));
    PetscCall(HybLogToHost(sizeof(HybScalar) * (PetscLogDouble)w->csr.nnz));
  }
  PetscCall(MatSeqAIJRestoreArray(C, &a));
  if (w->aside) PetscCall(MatSeqAIJHybridGPUWriteEnd(C, &w->w, interface));
  PetscFunctionReturn(PETSC_SUCCESS);
}

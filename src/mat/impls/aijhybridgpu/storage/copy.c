/*
  Reading a matrix on the device: the copy of one that lives on the host, sent when pattern or values have moved, or the
  arrays that it lives in.
*/
#include "storage.h"
#include "aijhybridgpu/private/hybcsrcopy.h"

/* The pattern is another one than the device has: what is there is of no use. */
static PetscErrorCode HybCopyForget(Mat A, Mat_SeqAIJHybridGPU *hyb)
{
  PetscFunctionBegin;
  if (hyb->movedto && hyb->lives == HYB_LIVES_PROMOTED) PetscCall(MatSeqAIJHybridGPUDemote(A));
  /* else the base class has arrays of its own */
  if (hyb->lives != HYB_LIVES_SHARED && hyb->lives != HYB_LIVES_MIRRORED) PetscCall(HybArenaReset(&hyb->copy.arena));
  PetscCall(PetscMemzero(&hyb->copy, sizeof(hyb->copy)));
  if (hyb->lives != HYB_LIVES_LOCKED) PetscCall(HybStorageGo(hyb, HYB_LIVES_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Asked for all that is to be sent, before the device gives any */
static PetscErrorCode HybCopyFits(const HybExec *x, const HybCSR *host, PetscBool pattern, PetscBool values)
{
  const size_t i = pattern ? sizeof(PetscInt) * ((size_t)host->m + 1) : 0, j = pattern ? sizeof(PetscInt) * (size_t)host->nnz : 0, a = values ? sizeof(HybScalar) * (size_t)host->nnz : 0;

  PetscFunctionBegin;
  PetscCall(HybMatRoom(x, i + j + a, "a matrix of %" PetscInt_FMT " rows and %" PetscInt64_FMT " nonzeros (row offsets %zu, columns %zu, values %zu)", host->m, (PetscInt64)host->nnz, i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCopyPattern(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, const HybCSR *host, const HybPatternKey *key)
{
  HybDeviceCopy *d = &hyb->copy;

  PetscFunctionBegin;
  HybHostOnlyEnd(A, hyb);
  d->arena = HybArenaOn(x);
  d->csr   = *host;
  d->csr.i = d->csr.j = NULL;
  d->csr.a            = NULL;
  d->pattern          = PETSC_TRUE; /* from here on there is something to free */
  if (!HybBorn(hyb)) MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE);
  if (hyb->lives == HYB_LIVES_HOST) PetscCall(HybStorageGo(hyb, HYB_LIVES_COPIED));
  PetscCall(PetscMemzero(&d->key, sizeof(d->key)));
  PetscCall(HybEventBegin(HYB_OP_COPYTO, A));
  PetscCall(HybArenaAlloc(&d->arena, HYB_MEM_DEVICE, (PetscCount)host->m + 1, sizeof(PetscInt), &d->csr.i));
  PetscCall(HybArenaAlloc(&d->arena, HYB_MEM_DEVICE, host->nnz, sizeof(PetscInt), &d->csr.j));
  if (host->i)
    PetscCall(x->backend->copy(x, d->csr.i, host->i, sizeof(PetscInt) * ((size_t)host->m + 1), HYB_COPY_HOST_TO_DEVICE));
  else
    PetscCall(x->backend->zero(x, d->csr.i, sizeof(PetscInt) * ((size_t)host->m + 1)));
  PetscCall(x->backend->copy(x, d->csr.j, host->j, sizeof(PetscInt) * (size_t)host->nnz, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybLogToDevice(sizeof(PetscInt) * ((PetscLogDouble)host->nnz + host->m + 1)));
  PetscCall(HybEventEnd(HYB_OP_COPYTO, A));
  d->key          = *key;
  d->nonemptyrows = HybCountNonemptyRows(host, &d->longest);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCopyValues(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, const HybCSR *host)
{
  HybDeviceCopy   *d    = &hyb->copy;
  const HybScalar *from = host->a;

  PetscFunctionBegin;
  if (HybShared(hyb)) { /* the host may have touched the pages since: fetch them back in one go instead of by faults */
    PetscCall(x->backend->prefetch(x, d->csr.a, sizeof(HybScalar) * (size_t)d->csr.nnz, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (d->csr.a && hyb->lives != HYB_LIVES_MIRRORED)
    PetscCall(MatSeqAIJHybridGPUSendFrom(A, hyb, x, host, &from));
  else
    hyb->inserted = PETSC_FALSE;
  if (!d->csr.a) PetscCall(HybArenaAlloc(&d->arena, HYB_MEM_DEVICE, d->csr.nnz, sizeof(HybScalar), &d->csr.a));
  PetscCall(HybEventBegin(HYB_OP_COPYTO, A));
  PetscCall(x->backend->copy(x, d->csr.a, from, sizeof(HybScalar) * (size_t)d->csr.nnz, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybLogToDevice(sizeof(HybScalar) * (PetscLogDouble)d->csr.nnz));
  PetscCall(HybEventEnd(HYB_OP_COPYTO, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybViewSend(HybView *v, PetscBool values)
{
  Mat_SeqAIJHybridGPU   *hyb   = v->hyb;
  HybDeviceCopy         *d     = &hyb->copy;
  const PetscObjectState state = ((PetscObject)v->A)->state;

  PetscFunctionBegin;
  PetscCheck(!values || v->host.a || !v->host.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY)", (PetscInt64)v->host.nnz);
  hyb->quiet = PETSC_FALSE;
  if (d->pattern && !HybPatternKeyEqual(&v->key, &d->key)) {
    if (hyb->lives == HYB_LIVES_SHARED && v->key.i == d->key.i && v->key.j == d->key.j && v->key.nnz == d->key.nnz && v->key.m == d->key.m) {
      /* the same arrays, renumbered in place or with a new state: they are the device's too */
      d->key   = v->key;
      d->csr.n = v->key.n;
    } else {
      PetscCall(HybCopyForget(v->A, hyb));
      PetscCall(HybViewOpen(v->A, v)); /* promoted values have returned to AIJ's array */
    }
  }
  if (!d->pattern || (values && !d->csr.a)) PetscCall(HybCopyFits(&v->x, &v->host, (PetscBool)!d->pattern, values));
  if (!d->pattern) PetscCall(HybCopyPattern(v->A, hyb, &v->x, &v->host, &v->key));
  if (values) {
    const PetscBool current = HybMarkCurrent(&d->mark, state);

    if (hyb->writers) { /* who writes them may be at it at any time */
      hyb->transpose.stale = PETSC_TRUE;
      hyb->moves++;
    }
    if (!current || !d->values || hyb->writers) {
      PetscCall(HybCopyValues(v->A, hyb, &v->x, &v->host));
      d->values     = PETSC_TRUE;
      d->mark.state = state;
    }
  }
  v->csr = d->csr;
  if (!values) v->csr.a = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUGetDeviceCSR(Mat A, const HybExec *x, PetscBool values, HybCSR *csr)
{
  HybView v;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  v.x = *x;
  PetscCall(HybViewSend(&v, values));
  *csr = v.csr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybOperandSend(Mat A, const HybLent *l, const HybExec *x, PetscBool values, HybArena *sent, HybCSR *csr)
{
  PetscFunctionBegin;
  if (MatIsSeqAIJHybridGPU(A))
    PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, values, csr));
  else {
    PetscCall(HybCopyFits(x, &l->csr, PETSC_TRUE, values));
    PetscCall(HybCSRCopy(x, sent, HYB_MEM_DEVICE, &l->csr, values, HYB_COPY_HOST_TO_DEVICE, csr));
    PetscCall(HybLogToDevice(sizeof(PetscInt) * ((PetscLogDouble)l->csr.nnz + l->csr.m + 1) + (values ? sizeof(HybScalar) * (PetscLogDouble)l->csr.nnz : 0)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What reads A's values has been queued. Somebody who holds them to write may do so at any time; where PETSc does not
   tell who does, anybody may. */
PetscErrorCode MatSeqAIJHybridGPUReadEnd(Mat A, const HybExec *x)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if ((hyb->writers || !HybDoorIsOurs(A)) && HybShared(hyb)) PetscCall(x->backend->sync(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

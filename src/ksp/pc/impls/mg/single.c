/*
  single.c: a cycle whose levels are in single precision, by option.

  Each level has its matrices' values, its reciprocals of the diagonal and its vectors a second time, in half the bytes,
  and plans for products with them. Patterns are the matrices' own. Values are converted when a matrix has new ones.
  By another option square matrices below the finest level have values of 16 bits where they lie in slices.
  What the cycle is given and gives back is double, and so is the method around it. Where a matrix or a diagonal has a
  number that single precision does not bear, or the coarsest level is singular, whose solution has a large constant
  that hides all else, the cycle is double, and -info says so.

  Memory: half of all values of the hierarchy, and the plans; vectors are half as long, two more on the finest level.
  Conjugate gradients around it have a copy of the finest level's own values (ordered.c).
*/
#include "mgimpl.h"

PetscErrorCode HybMGIntoLevel(const HybMG *h, PetscCount n, const HybScalar *from, PetscBool scaled, HybScalar *to)
{
  const HybExec x = HybCycleLevels(&h->cycle, &h->cycle.exec);

  PetscFunctionBegin;
  if (h->cycle.single) {
    if (n) PetscCall(x.backend->cycle->narrow(&x, n, from, scaled ? h->cycle.scale : NULL, PETSC_FALSE, to, scaled ? NULL : h->beyond));
  } else
    PetscCall(x.backend->copy(&x, to, from, sizeof(HybScalar) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGOutOfLevel(const HybMG *h, PetscCount n, const HybScalar *from, HybScalar *to)
{
  const HybExec x = HybCycleLevels(&h->cycle, &h->cycle.exec);

  PetscFunctionBegin;
  if (h->cycle.single) {
    if (n) PetscCall(x.backend->cycle->widen(&x, n, from, h->cycle.scale, to, NULL, NULL));
  } else
    PetscCall(x.backend->copy(&x, to, from, sizeof(HybScalar) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGSingleLend(HybMG *h, Mat A, HybMGSingle *s, PetscBool half, PetscBool moved, HybCSR *csr, HybSpMV **plan)
{
  const HybExec          x    = HybCycleLevels(&h->cycle, &h->cycle.exec);
  const PetscObjectState id   = (PetscObjectState)((PetscObject)A)->id;
  const HybCSR           own  = *csr;
  HybSpMV *const         mult = *plan;
  PetscObjectState       state;
  PetscCount             moves;
  PetscBool              known;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(HybMatGetMoves(A, &moves));
  if (moved) {
    if (s->planned) PetscCall(HybSpMVDestroy(&s->plan));
    s->planned = PETSC_FALSE;
    if (s->a) PetscCall(HybArenaFree(&h->keep, &s->a));
    (void)memset(s, 0, sizeof(*s)); /* what follows may fail */
    PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(&x), own.nnz, HybCycleNumberSize(&h->cycle), &s->a));
    PetscCall(HybSpMVInit(&s->plan, &x, "auto", mult->bs));
    s->planned      = PETSC_TRUE;
    s->plan.longest = mult->longest;
    s->plan.half    = half;
    csr->a          = s->a;
    PetscCall(HybSpMVSetUp(&s->plan, csr));
  }
  known = (PetscBool)(s->id == id && s->state == state && s->moves == moves);
  /* a graph that the caller records converts whenever it runs, which may be with other values, and not now */
  if (!known || h->recorded) PetscCall(HybMGIntoLevel(h, own.nnz, own.a, PETSC_FALSE, s->a));
  s->id               = known || !h->recorded ? id : 0;
  s->state            = state;
  s->moves            = moves;
  s->lent             = own;
  s->mult             = mult;
  s->plan.exec.stream = x.stream;
  csr->a              = s->a;
  *plan               = &s->plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGSingleRelease(HybMG *h)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < HYB_MG_LEVELS; k++) {
    for (int part = 0; part < HYB_CYCLE_PARTS; part++) {
      HybMGSingle *s = &h->narrow[k][part];

      if (s->planned) ierr = HybErrorFirst(ierr, HybSpMVDestroy(&s->plan));
    }
  }
  (void)memset(h->narrow, 0, sizeof(h->narrow));
  h->beyond = NULL;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

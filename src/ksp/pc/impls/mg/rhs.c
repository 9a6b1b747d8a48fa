/*
  rhs.c: right-hand sides that are left to smoothers.

  PETSc's cycle solves by KSPSolve(), after which a smoother still has its last right-hand side. KSPCHEBYSHEV estimates
  eigenvalues from that where it is told to use no noise, and then PETSc's cycle is the one that is applied. But what it
  begins with are the right-hand sides of the last application, which may have been the room's. So the finest level's
  smoothers always get the vector itself, as from PETSc, and one below gets its own when it is told.
*/
#include "mgimpl.h"

/* what is known of the preconditioner is the smoothers' too, as long as they live */
PetscErrorCode HybMGKnownToSmoothers(PC pc)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  PetscObject  known;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)pc, HYB_MG_NAME, &known));
  for (PetscInt l = 1; l < mg->levels[0]->levels; l++) {
    PetscCall(PetscObjectCompose((PetscObject)mg->levels[l]->smoothd, HYB_MG_NAME, known));
    PetscCall(PetscObjectCompose((PetscObject)mg->levels[l]->smoothu, HYB_MG_NAME, known));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Leave(KSP ksp, Vec b)
{
  PetscFunctionBegin;
  if (ksp->vec_rhs == b) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectReference((PetscObject)b));
  PetscCall(VecDestroy(&ksp->vec_rhs));
  ksp->vec_rhs = b;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGLeaveRightHandSide(PC pc, Vec b)
{
  const PC_MG        *mg = (const PC_MG *)pc->data;
  const PC_MG_Levels *m  = mg->levels[mg->levels[0]->levels - 1];

  PetscFunctionBegin;
  PetscCall(Leave(m->smoothd, b));
  PetscCall(Leave(m->smoothu, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGGiveRightHandSide(KSP smoother)
{
  const PetscObjectId id = ((PetscObject)smoother)->id;
  HybMG              *h;

  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)smoother, HYB_MG_NAME, &h));
  if (!h || !h->known || !h->covered || smoother->nwork < 2) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 1; k < h->cycle.n; k++) {
    const HybMGLevelSeen *s = &h->seen.level[h->cycle.n - k];
    /* of a level that each process has whole this one's part */
    const HybScalar *b = h->cycle.level[k].b + (h->firstwhole && k >= h->firstwhole ? h->A[k]->rmap->rstart : 0);
    HybVecAccess     a;
    Vec              v;
    PetscInt         n;

    if (s->down.ksp.id != id && s->up.ksp.id != id) continue;
    PetscCall(VecDuplicate(smoother->work[1], &v));
    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(HybVecGet(&h->cycle.exec, v, PETSC_FALSE, PETSC_TRUE, &a));
    PetscCall(HybVecRestore(HybMGOutOfLevel(h, n, b, (HybScalar *)a.there), &a));
    PetscCall(VecDestroy(&smoother->vec_rhs));
    smoother->vec_rhs = v;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

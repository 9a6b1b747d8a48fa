/*
  PETSc's scatter of a parallel result, made late.

  VecScatterCreate() works with one core, and takes longer than a product on a device where a process has large
  neighbours. It sorts sorted columns, looks for doubles by another sort, and counts ranks in a table. Products of ours
  with vectors do not use it, and many results are never multiplied by a vector. So PETSc makes a scatter of nothing (it
  asks the vector of others' entries how many there are, and is told none), which then gets its graph, without a sort,
  since it is known; what belongs to messages PETSc makes when somebody first scatters.

  PETSc's own code needs no more: VecScatterBegin(), VecScatterCopy(), VecScatterRemap(), VecScatterView(), which
  duplicates share, and VecScatterGetRemote_Private() (of MatMatMult() and MatPtAP() of MATMPIAIJ) begin with
  PetscSFSetUp(), as the functions of star forests do that communicate. Those that do not and want it done, as
  PetscSFGetRootRanks(), are of programs: who asks the matrix for its star forest gets one that is set up, and so does
  who converts the matrix to another type. That is collective, as what they go on to do with it.
*/
#include "parent.h"

#if HYB_HAS_CREATE_GARRAY
  #include <petsc/private/vecimpl.h>
  #include <petsc/private/sfimpl.h>

static PetscErrorCode HybScatterNone(Vec v, PetscInt *n)
{
  *n = 0;
  return PETSC_SUCCESS;
}

/* The vector of others' entries, which says that it has none */
static PetscErrorCode HybScatterGhosts(Mat block, Vec *right, Vec *left)
{
  PetscFunctionBegin;
  block->ops->getvecs = NULL;
  PetscCall(MatCreateVecs(block, right, left));
  PetscCall(PetscObjectCompose((PetscObject)block, "HybGhosts", (PetscObject)*right));
  (*right)->ops->getsize = HybScatterNone;
  PetscFunctionReturn(PETSC_SUCCESS);
}

  #define HYB_SCATTER_VIEW "-matmult_vecscatter_view"

/* block: the one of others' columns, of which a parallel matrix is made next that gives C its scatter. Who asks for the
   scatter's view, of C or of what has no prefix, gets PETSc's own, made at once: PETSc shows it as it makes it. */
PetscErrorCode HybScatterDefer(Mat C, Mat block)
{
  PetscBool shown, plain;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(((PetscObject)C)->options, ((PetscObject)C)->prefix, HYB_SCATTER_VIEW, &shown));
  PetscCall(PetscOptionsHasName(NULL, NULL, HYB_SCATTER_VIEW, &plain));
  if (!shown && !plain) block->ops->getvecs = HybScatterGhosts;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective, but for a view. T: that matrix; where its ghost columns are: remote, which T's scatter keeps */
PetscErrorCode HybScatterSetGraph(Mat C, Mat T, Mat block, PetscInt n, const PetscInt *garray, PetscSFNode *remote)
{
  const PetscInt *range = T->cmap->range;
  PetscMPIInt     owner = 0;
  Vec             ghosts;
  PetscSF         sf;

  PetscFunctionBegin;
  PetscCall(MatGetMultPetscSF(T, &sf));
  PetscCall(PetscObjectQuery((PetscObject)block, "HybGhosts", (PetscObject *)&ghosts));
  if (!ghosts) { /* not deferred; T has no prefix */
    PetscCall(PetscFree(remote));
    if (((PetscObject)C)->prefix) PetscCall(VecScatterViewFromOptions(sf, (PetscObject)C, HYB_SCATTER_VIEW));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt k = 0; k < n; k++) {
    while (garray[k] >= range[owner + 1]) owner++;
    remote[k].rank  = owner;
    remote[k].index = garray[k] - range[owner];
  }
  ghosts->ops->getsize = ghosts->ops->getlocalsize; /* of one process */
  PetscCall(PetscObjectCompose((PetscObject)block, "HybGhosts", NULL));
  PetscCall(PetscSFSetGraph(sf, T->cmap->n, n, NULL, PETSC_OWN_POINTER, remote, PETSC_OWN_POINTER));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGetMultPetscSF_MPIAIJHybridGPU(Mat A, PetscSF *sf)
{
  PetscErrorCode (*const parents)(Mat, PetscSF *) = (PetscErrorCode(*)(Mat, PetscSF *))HybGlueState.multsf;

  PetscFunctionBegin;
  PetscCall((*parents)(A, sf));
  if (*sf) PetscCall(PetscSFSetUp(*sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

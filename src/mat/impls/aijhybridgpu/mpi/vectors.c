/*
  MatCreateVecs() for a parallel matrix whose vectors are on the device.

  PETSc's VecSetType() gives a parallel CUDA vector an array of the host at once, page-locked and cleared, which takes
  long; GAMG's setup makes thirty such vectors. A vector of one process, and a duplicate, get theirs when the host first
  asks. So vectors are made here as PETSc's duplicates are, and cleared where they are, on the device: fresh vectors of
  AIJ are zeros, and some of PETSc's code adds to them.
*/
#include "mpi.h"
#if defined(PETSC_HAVE_CUDA)
  #include <petscvec.h>

static PetscErrorCode HybMPIVecCreate(Mat A, PetscLayout map, Vec *v)
{
  PetscInt bs;

  PetscFunctionBegin;
  PetscCheck(map->n >= 0, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The layout of the matrix's %s is not set up", map == A->rmap ? "rows" : "columns");
  PetscCall(PetscLayoutSetUp(map)); /* the matrix may not be set up yet: VecSetType() does this as well */
  PetscCall(PetscLayoutGetBlockSize(map, &bs));
  /* blocks that are set for other processes wait in a stash whose block size is the one given here */
  PetscCall(VecCreateMPICUDAWithArrays(PetscObjectComm((PetscObject)A), bs, map->n, map->N, NULL, NULL, v));
  PetscCall(VecSetLayout(*v, map)); /* the matrix's own, with its block size and mapping */
  PetscCall(VecSet(*v, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HybMPIVecCreate() gathers the layout. A process that alone has bound A to the CPU makes its vectors PETSc's way,
   which does not: it joins in here, or the others would wait. No vector is made for that: it would take tags of
   messages, which the others would not. */
static PetscErrorCode HybMPIVecJoin(Mat A, PetscLayout map)
{
  PetscLayout same;

  PetscFunctionBegin;
  PetscCall(PetscLayoutSetUp(map));
  PetscCall(PetscLayoutCreateFromSizes(PetscObjectComm((PetscObject)A), map->n, map->N, 1, &same));
  PetscCall(PetscLayoutDestroy(&same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateVecs_MPIAIJHybridGPU(Mat A, Vec *right, Vec *left)
{
  PetscErrorCode (*const before)(Mat, Vec *, Vec *) = A->ops->getvecs; /* a program's may call this one */
  PetscMPIInt          size;
  PetscBool            cuda;
  PetscErrorCode       ierr;
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(PetscStrcmp(A->defaultvectype, VECCUDA, &cuda));
  if (size > 1 && cuda && !A->boundtocpu) {
    if (right) PetscCall(HybMPIVecCreate(A, A->cmap, right));
    if (left) PetscCall(HybMPIVecCreate(A, A->rmap, left));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (size > 1 && A->boundtocpu && hyb->boundcuda) {
    if (right) PetscCall(HybMPIVecJoin(A, A->cmap));
    if (left) PetscCall(HybMPIVecJoin(A, A->rmap));
  }
  A->ops->getvecs = NULL; /* PETSc's own way */
  ierr            = MatCreateVecs(A, right, left);
  A->ops->getvecs = before;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

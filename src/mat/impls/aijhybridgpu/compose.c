/*
  Functions that PETSc finds by name on an object. What stands over a function of the parent's keeps that one to be
  called, and put back.

  A name costs as much as a fifth of a small matrix does, so that there are few: what PETSc asks for last, where it
  finds nothing by name, serves instead (ops->convert and convertfrom, "anytype" of products).
*/
#include "family.h"
#include "seq/coo.h"

typedef void (*HybFn)(void);

static const HybComposeName HybOursSeq[] = {
  {.name = "MatConvert_seqaijhybridgpu_seqaij_C", .function = (HybFn)MatConvert_SeqAIJHybridGPU_SeqAIJ    },
  {.name = "MatProductSetFromOptions_anytype_C",  .function = (HybFn)MatProductSetFromOptions_AnyHybridGPU}
};
static const HybComposeName HybOursMPI[] = {
  {.name = "MatConvert_mpiaijhybridgpu_mpiaij_C", .function = (HybFn)MatConvert_MPIAIJHybridGPU_MPIAIJ    },
  {.name = "MatProductSetFromOptions_anytype_C",  .function = (HybFn)MatProductSetFromOptions_AnyHybridGPU}
};

static PetscErrorCode MatAIJHybridGPUComposeNamed(Mat A, size_t n, const HybComposeName named[], PetscBool seq, PetscBool on)
{
  PetscFunctionBegin;
  if (on) PetscCall(HybComposeAdd((PetscObject)A, n, named, &HybGlueState.names.usual[seq]));
  for (size_t k = 0; k < n && !on; k++) PetscCall(PetscObjectComposeFunction((PetscObject)A, named[k].name, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUComposeAll(Mat A, PetscBool on)
{
  PetscFunctionBegin;
  PetscCall(MatAIJHybridGPUComposeNamed(A, PETSC_STATIC_ARRAY_LENGTH(HybOursMPI), HybOursMPI, PETSC_FALSE, on));
  if (!on) PetscCall(MatMPIAIJHybridGPUForgetConversions(A));
  PetscCall(MatMPIAIJHybridGPUComposeCOO(A, on));
  PetscCall(MatMPIAIJHybridGPUComposePreallocation(A, on));
#if HYB_HAS_CREATE_GARRAY
  PetscCall(MatMPIAIJHybridGPUComposeScatter(A, on));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJHybridGPUCompose(Mat A, PetscBool seq, PetscBool on)
{
  PetscFunctionBegin;
  if (!seq) {
    PetscCall(MatMPIAIJHybridGPUComposeAll(A, on));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatAIJHybridGPUComposeNamed(A, PETSC_STATIC_ARRAY_LENGTH(HybOursSeq), HybOursSeq, PETSC_TRUE, on));
  PetscCall(MatSeqAIJHybridGPUComposeConversions(A, on));
  PetscCall(MatSeqAIJHybridGPUComposeCOO(A, on));
  PetscCall(MatSeqAIJHybridGPUComposeOver(A, on));
  PetscFunctionReturn(PETSC_SUCCESS);
}

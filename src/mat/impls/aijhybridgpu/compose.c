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

static const HybComposedOver HybOverSeq[] = {
  {.name = "MatSeqAIJKron_C",             .ours = (HybFn)MatSeqAIJKron_SeqAIJHybridGPU,             .parents = &HybGlueState.kron                 },
  {.name = "MatSetPreallocationCOO_C",    .ours = (HybFn)MatSetPreallocationCOO_SeqAIJHybridGPU,    .parents = &HybGlueState.coopreallocation[0]  },
  {.name = "MatSetValuesCOO_C",           .ours = (HybFn)MatSetValuesCOO_SeqAIJHybridGPU,           .parents = &HybGlueState.coovalues[0]         },
  {.name = "MatStoreValues_C",            .ours = (HybFn)MatStoreValues_SeqAIJHybridGPU,            .parents = &HybGlueState.storevalues          },
  {.name = "MatRetrieveValues_C",         .ours = (HybFn)MatRetrieveValues_SeqAIJHybridGPU,         .parents = &HybGlueState.retrievevalues       },
  {.name = "MatSeqAIJSetPreallocation_C", .ours = (HybFn)MatSeqAIJSetPreallocation_SeqAIJHybridGPU, .parents = &HybGlueState.setpreallocation     },
  {.name = "MatResetPreallocation_C",     .ours = (HybFn)MatResetPreallocation_SeqAIJHybridGPU,     .parents = &HybGlueState.resetpreallocation[0]},
  {.name = "MatSeqAIJSetColumnIndices_C", .ours = (HybFn)MatSeqAIJSetColumnIndices_SeqAIJHybridGPU, .parents = &HybGlueState.setcolumnindices     },
#if HYB_HAS_HASH
  {.name = "MatResetHash_C",              .ours = (HybFn)MatResetHash_SeqAIJHybridGPU,              .parents = &HybGlueState.resethash            },
#endif
};
static const HybComposedOver HybOverMPI[] = {
  {.name = "MatSetPreallocationCOO_C", .ours = (HybFn)MatSetPreallocationCOO_MPIAIJHybridGPU, .parents = &HybGlueState.coopreallocation[1]  },
  {.name = "MatSetValuesCOO_C",        .ours = (HybFn)MatSetValuesCOO_MPIAIJHybridGPU,        .parents = &HybGlueState.coovalues[1]         },
  {.name = "MatResetPreallocation_C",  .ours = (HybFn)MatResetPreallocation_MPIAIJHybridGPU,  .parents = &HybGlueState.resetpreallocation[1]},
#if HYB_HAS_CREATE_GARRAY
  {.name = "MatGetMultPetscSF_C",      .ours = (HybFn)MatGetMultPetscSF_MPIAIJHybridGPU,      .parents = &HybGlueState.multsf               },
#endif
};

static PetscErrorCode MatAIJHybridGPUComposeNamed(Mat A, size_t n, const HybComposeName named[], PetscBool seq, PetscBool on)
{
  PetscFunctionBegin;
  if (on) PetscCall(HybComposeAdd((PetscObject)A, n, named, &HybGlueState.names.usual[seq]));
  for (size_t k = 0; k < n && !on; k++) PetscCall(PetscObjectComposeFunction((PetscObject)A, named[k].name, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJHybridGPUCompose(Mat A, PetscBool seq, PetscBool on)
{
  PetscFunctionBegin;
  if (seq) {
    PetscCall(MatAIJHybridGPUComposeNamed(A, PETSC_STATIC_ARRAY_LENGTH(HybOursSeq), HybOursSeq, seq, on));
    PetscCall(MatSeqAIJHybridGPUComposeConversions(A, on));
    PetscCall(HybComposeOver((PetscObject)A, PETSC_STATIC_ARRAY_LENGTH(HybOverSeq), HybOverSeq, on));
  } else {
    PetscCall(MatAIJHybridGPUComposeNamed(A, PETSC_STATIC_ARRAY_LENGTH(HybOursMPI), HybOursMPI, seq, on));
    if (!on) PetscCall(MatMPIAIJHybridGPUForgetConversions(A));
    PetscCall(HybComposeOver((PetscObject)A, PETSC_STATIC_ARRAY_LENGTH(HybOverMPI), HybOverMPI, on));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Functions that PETSc finds by name on an object. What PETSc composes for the parent's name (conversions) is repeated
  under ours, and what stands over a function of the parent's keeps that one to be called, and put back.

  A name costs as much as a fifth of a small matrix does, so that a sequential one has few: what PETSc asks for last,
  where it finds nothing by name, serves instead (ops->convert and convertfrom, "anytype" of products).
*/
#include "family.h"
#include "seq/coo.h"

typedef void (*HybFn)(void);
typedef struct {
  const char *name;
  HybFn       function;
} HybNamed;

static const HybNamed HybOursSeq[] = {
  {.name = "MatConvert_seqaijhybridgpu_seqaij_C", .function = (HybFn)MatConvert_SeqAIJHybridGPU_SeqAIJ    },
  {.name = "MatProductSetFromOptions_anytype_C",  .function = (HybFn)MatProductSetFromOptions_AnyHybridGPU}
};
static const HybNamed HybOursMPI[] = {
  {.name = "MatConvert_mpiaij_mpiaijhybridgpu_C",               .function = (HybFn)MatConvert_MPIAIJ_MPIAIJHybridGPU       },
  {.name = "MatConvert_mpiaijhybridgpu_mpiaij_C",               .function = (HybFn)MatConvert_MPIAIJHybridGPU_MPIAIJ       },
  {.name = "MatProductSetFromOptions_anytype_C",                .function = (HybFn)MatProductSetFromOptions_AnyHybridGPU   },
  {.name = "MatProductSetFromOptions_mpiaijhybridgpu_mpiaij_C", .function = (HybFn)MatProductSetFromOptions_MPIAIJHybridGPU},
  {.name = "MatProductSetFromOptions_mpiaij_mpiaijhybridgpu_C", .function = (HybFn)MatProductSetFromOptions_MPIAIJHybridGPU}
};

/* the parallel parent's conversions to other types, and its name for each and ours: without them MatConvert() goes
   entry by entry; those of the sequential one are in seq/convert.c */
#define HYB_CONVERSION(type)                                                \
  {                                                                         \
    "MatConvert_mpiaij_" type "_C", "MatConvert_mpiaijhybridgpu_" type "_C" \
  }
static const char *const HybConversions[][2] = {HYB_CONVERSION("mpisbaij"), HYB_CONVERSION("mpibaij"), HYB_CONVERSION("elemental"), HYB_CONVERSION("scalapack"), HYB_CONVERSION("hypre"), HYB_CONVERSION("is"), HYB_CONVERSION("mpisell"), HYB_CONVERSION("mpidense"), HYB_CONVERSION("dense")};
/* those to types derived from it, and back: found on an empty matrix of the type, which MatConvert() asks */
#define HYB_DERIVED(type)                                                                                                     \
  {                                                                                                                           \
    "MatConvert_mpiaij_mpi" type "_C", "MatConvert_mpiaijhybridgpu_mpi" type "_C", "MatConvert_mpi" type "_mpiaijhybridgpu_C" \
  }
static const char *const HybDerivedNames[][3] = {HYB_DERIVED("aijperm"), HYB_DERIVED("aijsell"), HYB_DERIVED("aijmkl"), HYB_DERIVED("aijcusparse"), HYB_DERIVED("aijkokkos"), HYB_DERIVED("aijviennacl"), HYB_DERIVED("aijhipsparse"), HYB_DERIVED("aijcrl")};

static PetscErrorCode MatAIJHybridGPUComposeNamed(Mat A, const HybNamed named[], size_t n, PetscBool on)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < n; k++) PetscCall(PetscObjectComposeFunction((PetscObject)A, named[k].name, on ? named[k].function : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUComposeAll(Mat A, PetscBool on)
{
  PetscFunctionBegin;
  PetscCall(MatAIJHybridGPUComposeNamed(A, HybOursMPI, PETSC_STATIC_ARRAY_LENGTH(HybOursMPI), on));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(HybConversions); k++) {
    HybFn f = NULL;

    if (on) PetscCall(PetscObjectQueryFunction((PetscObject)A, HybConversions[k][0], &f));
    if (f || !on) PetscCall(PetscObjectComposeFunction((PetscObject)A, HybConversions[k][1], f));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(HybDerivedNames); k++) {
    HybFn f = NULL;

    PetscCall(PetscObjectQueryFunction((PetscObject)A, HybDerivedNames[k][0], &f));
    if (!f) continue;
    PetscCall(PetscObjectComposeFunction((PetscObject)A, HybDerivedNames[k][1], on ? MatConvert_MPIAIJHybridGPU_Derived : NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, HybDerivedNames[k][2], on ? MatConvert_Derived_MPIAIJHybridGPU : NULL));
  }
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
  PetscCall(MatAIJHybridGPUComposeNamed(A, HybOursSeq, PETSC_STATIC_ARRAY_LENGTH(HybOursSeq), on));
  PetscCall(MatSeqAIJHybridGPUComposeConversions(A, on));
  PetscCall(MatSeqAIJHybridGPUComposeCOO(A, on));
  PetscCall(MatSeqAIJHybridGPUComposeOver(A, on));
  PetscFunctionReturn(PETSC_SUCCESS);
}

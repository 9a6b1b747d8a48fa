/*
  Functions that PETSc finds by name on an object: one table for the sequential and the parallel type. What PETSc
  composes for the parent's name (conversions) is repeated under ours, and what stands over a function of the parent's
  keeps that one to be called, and put back.
*/
#include "family.h"
#include "seq/coo.h"

typedef void (*HybFn)(void);

/* names, of which each %s is "seq" or "mpi" */
static const struct {
  const char *name;
  HybFn       function[2];
} HybOurs[] = {
  {.name = "MatConvert_%saij_%saijhybridgpu_C",               .function = {(HybFn)MatConvert_SeqAIJ_SeqAIJHybridGPU, (HybFn)MatConvert_MPIAIJ_MPIAIJHybridGPU}              },
  {.name = "MatConvert_%saijhybridgpu_%saij_C",               .function = {(HybFn)MatConvert_SeqAIJHybridGPU_SeqAIJ, (HybFn)MatConvert_MPIAIJHybridGPU_MPIAIJ}              },
  {.name = "MatProductSetFromOptions_anytype_C",              .function = {(HybFn)MatProductSetFromOptions_AnyHybridGPU, (HybFn)MatProductSetFromOptions_AnyHybridGPU}      },
  {.name = "MatProductSetFromOptions_%saijhybridgpu_%saij_C", .function = {(HybFn)MatProductSetFromOptions_SeqAIJHybridGPU, (HybFn)MatProductSetFromOptions_MPIAIJHybridGPU}},
  {.name = "MatProductSetFromOptions_%saij_%saijhybridgpu_C", .function = {(HybFn)MatProductSetFromOptions_SeqAIJHybridGPU, (HybFn)MatProductSetFromOptions_MPIAIJHybridGPU}},
};

/* the parent's conversions to other types: without them MatConvert() goes entry by entry */
static const char *const HybConversions[] = {"%ssbaij", "%sbaij", "elemental", "scalapack", "hypre", "is", "%ssell", "%sdense", "dense"};
/* those to types derived from the parallel parent; the sequential ones are in seq/convert.c */
static const char *const HybDerivedNames[] = {"aijperm", "aijsell", "aijmkl", "aijcusparse", "aijkokkos", "aijviennacl", "aijhipsparse", "aijcrl"};

PetscErrorCode MatAIJHybridGPUCompose(Mat A, PetscBool seq, PetscBool on)
{
  const char *const p = seq ? "seq" : "mpi";

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(HybOurs); k++) {
    char name[128];

    PetscCall(PetscSNPrintf(name, sizeof(name), HybOurs[k].name, p, p));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, on ? HybOurs[k].function[seq ? 0 : 1] : NULL));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(HybConversions); k++) {
    char  type[32], name[128];
    HybFn f = NULL;

    PetscCall(PetscSNPrintf(type, sizeof(type), HybConversions[k], p));
    if (on) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saij_%s_C", p, type));
      PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
      if (!f) continue;
    }
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saijhybridgpu_%s_C", p, type));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, f));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(HybDerivedNames) && !seq; k++) {
    char  name[128];
    HybFn f = NULL;

    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_mpiaij_mpi%s_C", HybDerivedNames[k]));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
    if (!f) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_mpiaijhybridgpu_mpi%s_C", HybDerivedNames[k]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, on ? MatConvert_MPIAIJHybridGPU_Derived : NULL));
    /* found on an empty matrix of the type, which MatConvert() asks */
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_mpi%s_mpiaijhybridgpu_C", HybDerivedNames[k]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, on ? MatConvert_Derived_MPIAIJHybridGPU : NULL));
  }
  if (seq) PetscCall(MatSeqAIJHybridGPUComposeDense(A, on));
  if (seq) PetscCall(MatSeqAIJHybridGPUComposeConversions(A, on));
  PetscCall(seq ? MatSeqAIJHybridGPUComposeCOO(A, on) : MatMPIAIJHybridGPUComposeCOO(A, on));
  if (!seq) PetscCall(MatMPIAIJHybridGPUComposePreallocation(A, on));
#if HYB_HAS_CREATE_GARRAY
  if (!seq) PetscCall(MatMPIAIJHybridGPUComposeScatter(A, on));
#endif
  if (seq) PetscCall(MatSeqAIJHybridGPUComposeOver(A, on));
  PetscFunctionReturn(PETSC_SUCCESS);
}

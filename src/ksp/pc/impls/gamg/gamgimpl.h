/*
  What the files of PCGAMG's setup share. docs/gamg.md says what is computed here and why the hierarchy is PETSc's.
*/
#ifndef HYBGAMGIMPL_H
#define HYBGAMGIMPL_H
#include <petscksp.h>
#include "aijhybridgpu/private/hybagg.h"
#include "aijhybridgpu/private/hybmat.h"

/* The rules of aggregation are those of 3.21 and later, near-null vectors are real, shuffle and hash are of 32 bits */
#if PETSC_VERSION_GE(3, 21, 0) && PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX) && !PetscDefined(USE_64BIT_INDICES)
  #define HYB_GAMG 1
#else
  #define HYB_GAMG 0
#endif

#if HYB_GAMG
  #include <petsc/private/pcgamgimpl.h>

/* What the plugin keeps with a PC of type gamg. PETSc's own data stay PETSc's. */
typedef struct {
  /* PETSc's functions of the PC */
  PetscErrorCode (*setup)(PC);
  PetscErrorCode (*reset)(PC);
  PetscErrorCode (*destroy)(PC);
  PetscErrorCode (*setfromoptions)(PC, HybOptionItems);
  PetscBool on; /* -pc_gamg_aijhybridgpu */

  /* of the setup in progress */
  struct _PCGAMGOps ops;      /* PETSc's functions of the aggregation, while ours stand in their places */
  PetscBool         ours;     /* this level and all finer ones */
  PetscBool         hostdata; /* PETSc reads pc_gamg->data of coarser levels too */
  PetscReal        *dummy;    /* what pc_gamg->data is while the near-null vector is kept here */
  HybArena          near;     /* of the near-null vector of this level */
  HybScalar        *b;        /* it lives where near.exec executes; NULL: all ones, or still in pc_gamg->data */
  HybExec           exec;     /* of this level */
  HybArena          keep;     /* of its aggregates */
  HybAggregates     agg;
  HybScalar        *q; /* the tentative prolongator's entries */
  int               hops;
  PetscInt          nsmooths;
} HybGAMG;

PETSC_INTERN PetscLogEvent HYB_GAMGLook, HYB_GAMGAggregates, HYB_GAMGTentative, HYB_GAMGEstimate, HYB_GAMGSmooth;

static inline PC_GAMG *HybGAMGData(PC pc)
{
  return (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
}

  /* context.c */
  #define HYB_GAMG_NAME "PCGAMG_AIJHybridGPU"
PETSC_INTERN PetscErrorCode HybGAMGGet(PC, HybGAMG **);
/* level.c: the functions that stand in the places of PETSc's */
PETSC_INTERN PetscErrorCode HybGAMGCreateDefaultData(PC, Mat);
PETSC_INTERN PetscErrorCode HybGAMGCreateGraph(PC, Mat, Mat *);
PETSC_INTERN PetscErrorCode HybGAMGCoarsen(PC, Mat *, PetscCoarsenData **);
PETSC_INTERN PetscErrorCode HybGAMGProlongator(PC, Mat, PetscCoarsenData *, Mat *);
PETSC_INTERN PetscErrorCode HybGAMGOptProlongator(PC, Mat, Mat *);
/* estimate.c: the extreme singular values of D^-1 A by which PETSc smooths the prolongator */
PETSC_INTERN PetscErrorCode HybGAMGEstimate(PC, Mat A, const HybExec *, PetscReal *emin, PetscReal *emax);
/* witness.c: by which rules PETSc's own functions would coarsen this level. hops as in hybagg.h, 0: by others than
   ours; nsmooths -1: the prolongator is made in another way than ours */
PETSC_INTERN PetscErrorCode HybGAMGWitness(PC, HybGAMG *, Mat A, int *hops, PetscInt *nsmooths);
#endif
#endif

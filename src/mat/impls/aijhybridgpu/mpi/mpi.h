/*
  The parallel type: what its files share.
*/
#ifndef AIJHYBRIDGPU_MPI_H
#define AIJHYBRIDGPU_MPI_H

#include "../storage/storage.h"
#include "aijhybridgpu/private/hybcomm.h"
#include "aijhybridgpu/private/hybparprod.h"

/* halo.c: who sends whom what at a product with a vector. What it was made for changes with the matrix and the
   vectors; whether it serves is decided by all processes together, for each kind of vectors. */
typedef struct {
  /* how often the parent may have made new blocks: the same number on all processes */
  PetscInt         setups;
  PetscBool        known[2], serves[2]; /* [1]: for vectors on the device. known: serves has been decided */
  PetscBool        bound;               /* this process's part was bound to the CPU when serves was decided */
  PetscBool        mixed;               /* some processes had bound their part then, and others had not */
  PetscInt         knownsetups;
  PetscObjectState knownstate;
  HybComm          comm;
  HybHalo          halo;
  PetscInt        *garray;  /* the columns that halo was made for */
  const char      *told[2]; /* the transport that -info has named; [1]: that of transposed products */
} HybMPIHalo;

typedef struct {
  HybChoices choices; /* passed on to the blocks */
  PetscBool  lentarrays;
  PetscCount coocount;
  PetscBool  coopattern; /* MatSetPreallocationCOO() was the last to give it one: whole, assembled or not */
  /* a product that no numeric phase has made whole: its pattern is there, its values are not */
  PetscBool unmade;
  PetscBool ignoreoffproc; /* MAT_IGNORE_OFF_PROC_ENTRIES */
  PetscBool bycolumns;     /* MAT_ROW_ORIENTED was set to false */
  PetscBool boundcuda;     /* its vectors were CUDA's when MatBindToCPU() bound it */
  /* values came from coordinates, and MatAssemblyBegin() and End() follow: nothing else was inserted */
  PetscBool  assembling;
  HybMPIHalo halo; /* of products with vectors */
} Mat_MPIAIJHybridGPU;

/* mpidata.c */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUGetData(Mat, Mat_MPIAIJHybridGPU **);
/* those of A's blocks that are of the type, NULL for others; and f of each of them */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUGetBlocks(Mat A, Mat block[2]);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUEachBlock(Mat A, PetscErrorCode (*f)(Mat));
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSumStates(Mat, PetscErrorCode, const char *what);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUUnmade(Mat);
PETSC_INTERN PetscErrorCode HybMPIHaloEmpty(HybMPIHalo *);
PETSC_INTERN PetscErrorCode HybMPIHaloDestroy(HybMPIHalo *);
PETSC_INTERN PetscErrorCode HybMPIHoldWorld(MPI_Comm);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSetBlocks(Mat);
PETSC_INTERN PetscErrorCode MatDestroy_MPIAIJHybridGPU(Mat);

/* fromblocks.c. SetFrame: C's data become those of a parallel matrix with these columns of others, and empty blocks of
   the type; collective, before is an error of this process's. *made: they have, on all processes, and an error is this
   process's own, which the caller agrees upon at last; else it is one of all, and C is what it was. AdoptBlocks: these
   get their contents; not collective. TakeData: C's data become T's, with C's options, and *T goes, also after an
   error. */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUTakeData(Mat C, Mat *T);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSetFrame(Mat C, PetscErrorCode before, PetscInt ncols, const PetscInt *garray, PetscBool *made);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUAdoptBlocks(Mat C, const HybExec *, HybArena out[2], const HybParCSR *);

/* lendpar.c: *map, unless it is set up, gets the ranges of another; no process is asked */
PETSC_INTERN PetscErrorCode HybParLayoutAs(PetscLayout like, PetscLayout *map);

/* halo.c: the one that serves a product of A with vectors of this kind, NULL: PETSc's scatter does. Collective. With an
   error of this process alone it is there too, since others are about to go by it. */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUGetHalo(Mat A, PetscBool vectorsondevice, Mat blocks[2], HybExec *x, HybHalo *);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUTellWay(Mat A, PetscBool transpose);

/* vectors.c */
#if defined(PETSC_HAVE_CUDA)
PETSC_INTERN PetscErrorCode MatCreateVecs_MPIAIJHybridGPU(Mat, Vec *, Vec *);
#endif

/* matmult.c */
PETSC_INTERN PetscErrorCode MatMult_MPIAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_MPIAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_MPIAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_MPIAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatResidual_MPIAIJHybridGPU(Mat, Vec, Vec, Vec);

/* setvalues.c */
PETSC_INTERN PetscErrorCode MatSetValues_MPIAIJHybridGPU(Mat, PetscInt, const PetscInt[], PetscInt, const PetscInt[], const PetscScalar[], InsertMode);
PETSC_INTERN PetscErrorCode MatZeroRows_MPIAIJHybridGPU(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec);
PETSC_INTERN PetscErrorCode MatZeroRowsColumns_MPIAIJHybridGPU(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec);
#if HYB_HAS_ELIMINATEZEROS
PETSC_INTERN PetscErrorCode MatEliminateZeros_MPIAIJHybridGPU(Mat, PetscBool);
#endif
PETSC_INTERN PetscErrorCode MatResetPreallocation_MPIAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatAssemblyBegin_MPIAIJHybridGPU(Mat, MatAssemblyType);
PETSC_INTERN PetscErrorCode MatAssemblyEnd_MPIAIJHybridGPU(Mat, MatAssemblyType);

/* submatrix.c */
PETSC_INTERN PetscErrorCode MatCreateSubMatrix_MPIAIJHybridGPU(Mat, IS, IS, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatCreateSubMatrices_MPIAIJHybridGPU(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
PETSC_INTERN PetscErrorCode MatCreateSubMatricesMPI_MPIAIJHybridGPU(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
/* HybInPlaceBegin() and HybInPlaceEnd() of a matrix of either type, which may be another one at the end; the first: it,
   or its blocks as they are now */
typedef struct {
  HybInPlace block[2];
} HybMPIInPlace;
PETSC_INTERN PetscErrorCode HybMPIInPlaceBlocks(Mat B, Mat blocks[2]);
PETSC_INTERN PetscErrorCode HybMPIInPlaceBegin(Mat B, HybMPIInPlace *);
PETSC_INTERN PetscErrorCode HybMPIInPlaceEnd(Mat B, const HybMPIInPlace *);

/* mpicoo.c; the second and third: what may be done with entries that A's blocks lack, or do not use */
#define HYB_LEFT 2
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPULeftOptions(Mat, HybAsked[2][HYB_LEFT]);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSetLeftOptions(Mat, const HybAsked[2][HYB_LEFT]);
PETSC_INTERN PetscErrorCode MatSetPreallocationCOO_MPIAIJHybridGPU(Mat, PetscCount, PetscInt[], PetscInt[]);
PETSC_INTERN PetscErrorCode MatSetValuesCOO_MPIAIJHybridGPU(Mat, const PetscScalar[], InsertMode);

/* mpiaijhybridgpu.c: the type */
PETSC_INTERN PetscErrorCode MatCreate_MPIAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJ_MPIAIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJHybridGPU_MPIAIJ(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUForgetConversions(Mat);
/* is it one of those that PETSc derives from MATMPIAIJ? */
PETSC_INTERN PetscBool  HybMPITypeIsDerived(MatType);
static inline PetscBool MatIsMPIAIJHybridGPU(Mat A)
{
  if (HybHashActive(A)) {
    PetscBool flg = PETSC_FALSE;

    (void)PetscObjectTypeCompare((PetscObject)A, MATMPIAIJHYBRIDGPU, &flg);
    return flg;
  }
  return (PetscBool)(A->ops->destroy == MatDestroy_MPIAIJHybridGPU);
}

#endif

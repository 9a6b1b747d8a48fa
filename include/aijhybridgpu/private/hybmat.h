/*
  hybmat.h: what glue outside of src/mat (src/ksp) may ask of matrices and vectors of the type. Knows of Mat; the rooms
  of src/sparse never include it.
*/
#ifndef AIJHYBRIDGPU_HYBMAT_H
#define AIJHYBRIDGPU_HYBMAT_H
#include <petscmat.h>
#include "hybparprod.h"
#include "hybspmv.h"

HYB_EXTERN_C_BEGIN

/* Is A a sequential matrix of ours, by name or only by its operations (-mat_seqaij_type), whose arrays may be asked
   for? */
PETSC_INTERN PetscErrorCode HybMatIsSeq(Mat A, PetscBool *flg);
/* How to execute an operation that reads all of A: on the device where A is there or is worth sending, else on the
   host. */
PETSC_INTERN PetscErrorCode HybMatGetExec(Mat A, HybExec *x);
/* A's arrays where x executes, sent or refreshed as needed, until HybMatRestoreCSR(); nothing waits for what was
   queued. */
PETSC_INTERN PetscErrorCode HybMatGetCSR(Mat A, const HybExec *x, PetscBool values, HybCSR *csr);
PETSC_INTERN PetscErrorCode HybMatRestoreCSR(Mat A, const HybExec *x, HybCSR *csr);
/* Are each row's columns ascending, each there once? Arrays that a program handed to PETSc need not be so; looked at
   once for a pattern, where x executes. */
PETSC_INTERN PetscErrorCode HybMatAscends(Mat A, const HybExec *x, PetscBool *yes);
/* *C: a new sequential matrix of A's type, choices and place, m x n, with block sizes rbs and cbs, whose contents are
   csr (arrays in *arrays, which is taken over) */
PETSC_INTERN PetscErrorCode HybMatCreateFromCSR(Mat A, const HybExec *x, HybArena *arrays, const HybCSR *csr, PetscInt rbs, PetscInt cbs, Mat *C);

/* Does A, a sequential matrix of ours, multiply vectors by our functions, here and on a device, and has it values? */
PETSC_INTERN PetscErrorCode HybMatHasMult(Mat A, PetscBool *flg);
/* Where A x = b would be multiplied by MatMult() for vectors like these */
PETSC_INTERN PetscErrorCode HybMatGetMultExec(Mat A, Vec x, Vec b, HybExec *exec);
/* The same as HybMatGetCSR() for products with vectors: A's arrays, or (on a device alone) its transpose's, and the
   plan of many products with them, which is A's and stays until its pattern moves. HybMatRestoreCSR() of A ends it. */
PETSC_INTERN PetscErrorCode HybMatGetMult(Mat A, const HybExec *x, PetscBool transpose, HybCSR *csr, HybSpMV **plan);

/* The same of a parallel matrix: is A one of the type, by name, with both blocks of ours and others' columns
   ascending? */
PETSC_INTERN PetscErrorCode HybMatIsPar(Mat A, PetscBool *flg);
/* Collective, and all alike: on the device where it is worth while for one process and all have one */
PETSC_INTERN PetscErrorCode HybMatGetParExec(Mat A, HybExec *x);
PETSC_INTERN PetscErrorCode HybMatGetParCSR(Mat A, const HybExec *x, PetscBool values, HybParCSR *csr);
/* what was got, after an error too */
PETSC_INTERN PetscErrorCode HybMatRestoreParCSR(Mat A, const HybExec *x, HybParCSR *csr);
/* Not collective: this process's part; no after an error */
PETSC_INTERN PetscErrorCode HybMatAscendsPar(Mat A, const HybExec *x, PetscBool *yes);
/* Collective; an error of one process is one of all, and so is that which this one has had before. Rows as A's, out: of
   csr->D and csr->O, which are taken over. */
PETSC_INTERN PetscErrorCode HybMatCreateFromParCSR(Mat A, const HybExec *x, PetscErrorCode before, HybArena out[2], const HybParCSR *csr, PetscInt rbs, PetscInt cbs, Mat *C);

/* y = A x of a parallel matrix and arrays on its devices, by its own product with vectors. Begin: collective, and so is
   its answer: may that be? x: where the arrays are to be. MultArrays: collective; before: an error of this process's
   alone, so that nobody waits for its entries; an error may be one of some processes. */
PETSC_INTERN PetscErrorCode HybMatParArraysBegin(Mat A, HybExec *x, PetscBool *may);
/* Not collective: an error in these products is known to all, and the next one is not to tell of it */
PETSC_INTERN PetscErrorCode HybMatParForget(Mat A);
/* the exchange of these products, which stays A's; NULL: there is none. Collective, and so is its answer. */
PETSC_INTERN PetscErrorCode HybMatParHalo(Mat A, HybHalo *halo);
PETSC_INTERN PetscErrorCode HybMatParMultArrays(Mat A, PetscErrorCode before, const PetscScalar *x, PetscScalar *y);

/* A vector's array where x executes: its own, or a copy in work, which Restore sends back where it was written. NULL,
   with all else, for no vector. */
typedef struct {
  Vec          v;
  PetscScalar *array, *there;
  PetscMemType mtype;
  PetscBool    read, write;
} HybVecAccess;
PETSC_INTERN PetscErrorCode HybVecGet(const HybExec *x, HybArena *work, Vec, PetscBool read, PetscBool write, HybVecAccess *);
PETSC_INTERN PetscErrorCode HybVecRestore(const HybExec *x, HybArena *work, HybVecAccess *);
/* Operations on matrices of the type are the host's from now on, and vectors that are made for them, or as usual again.
   For a few small ones, none of which lives on the device: its first operations in a process load kernels and
   libraries, and all of them wait. No report tells of them: they are the plugin's own. */
PETSC_INTERN void HybMatOnHost(PetscBool on);

/* Data of ours under a name: destroy(pointer) when the last object lets go of it, and at once where this fails; NULL
   where there is none */
PETSC_INTERN PetscErrorCode HybContainerCompose(PetscObject, const char *name, void *pointer, PetscErrorCode (*destroy)(void *pointer));
PETSC_INTERN PetscErrorCode HybContainerGet(PetscObject, const char *name, void *pointer);

/* What -mat_aijhybridgpu_view_counts tells of algebraic multigrid: setups of hierarchies that began here, those that
   PETSc's own code did from the finest level on, and levels of both */
typedef enum {
  HYB_GAMG_SETUPS,
  HYB_GAMG_SETUPS_LEFT,
  HYB_GAMG_LEVELS,
  HYB_GAMG_LEVELS_LEFT,
  HYB_CYCLES,      /* applications of multigrid on matrices of the type that were made here */
  HYB_CYCLES_LEFT, /* and those that PETSc's own code did */
  HYB_SOLVES,      /* by KSPCG, whose iterations were made here */
  HYB_GAMG_COUNTS
} HybGAMGCount;
PETSC_INTERN PetscErrorCode HybCountGAMG(HybGAMGCount);
/* For the report of a run: a phase of a level's setup, of A, begins or ends */
typedef enum {
  HYB_PHASE_LOOK,
  HYB_PHASE_AGGREGATES,
  HYB_PHASE_TENTATIVE,
  HYB_PHASE_ESTIMATE,
  HYB_PHASE_SMOOTH,
  HYB_PHASES
} HybPhase;
PETSC_INTERN PetscErrorCode HybRecordPhase(HybPhase, Mat A, PetscBool end);

/* The sequential matrix of ours that has this process's rows and columns of A, or A itself; NULL: there is none */
PETSC_INTERN PetscErrorCode HybMatGetLocal(Mat A, Mat *local);
/* Where a smoother's loop over a vector is worth being done: on the device where the matrix is, or where its vectors
   are; else on the host. local as above. */
PETSC_INTERN PetscErrorCode HybMatGetSmootherExec(Mat local, HybExec *x);
/* Of how many rows of this process the diagonal's entry is 0, or has a reciprocal that is; *known is PETSC_FALSE where
   the device cannot tell. Where there are some, not all need be counted. Not collective. */
PETSC_INTERN PetscErrorCode HybMatDiagonalZeros(Mat A, PetscBool *known, PetscCount *zeros);
/* v, with A's layout, becomes PETSc's noise, by the device where HybMatGetSmootherExec() says so */
PETSC_INTERN PetscErrorCode HybMatNoise(Mat A, Vec v);

/* what src/ksp registers: PETSc's own types, with what they do on the host alone done on the device for ours */
PETSC_INTERN PetscErrorCode HybSmoothersRegister(void);
PETSC_INTERN PetscErrorCode HybGAMGRegister(void);
PETSC_INTERN PetscErrorCode HybMGRegister(void);

HYB_EXTERN_C_END
#endif

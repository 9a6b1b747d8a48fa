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

static const HybExec HybExecHost = {&HybBackendHost, NULL, HYB_MEM_HOST};

/* Is A a sequential matrix of ours, by name or only by its operations (-mat_seqaij_type), whose arrays may be asked
   for? */
PETSC_INTERN PetscBool HybMatIsSeq(Mat A);
/* How to execute an operation that reads all of A: on the device where A is there or is worth sending, else on the
   host. */
PETSC_INTERN PetscErrorCode HybMatGetExec(Mat A, HybExec *x);
/* csr: A's arrays where x executes, valid until HybMatRestoreCSR(). They are sent or refreshed as needed. Nothing waits
   for queued work. */
PETSC_INTERN PetscErrorCode HybMatGetCSR(Mat A, const HybExec *x, PetscBool values, HybCSR *csr);
PETSC_INTERN PetscErrorCode HybMatRestoreCSR(Mat A, const HybExec *x, HybCSR *csr);
/* Do the columns of each row ascend strictly? Arrays that a program lends to PETSc need not. The pattern is checked
   once, where x executes. */
PETSC_INTERN PetscErrorCode HybMatAscends(Mat A, const HybExec *x, PetscBool *yes);
/* *C: a new sequential matrix of A's type, choices and place, m x n, with block sizes rbs and cbs, whose contents are
   csr (arrays in *arrays, which is taken over) */
PETSC_INTERN PetscErrorCode HybMatCreateFromCSR(Mat A, const HybExec *x, HybArena *arrays, const HybCSR *csr, PetscInt rbs, PetscInt cbs, Mat *C);

/* Does A, a sequential matrix of ours, multiply vectors by our functions, here and on a device, and has it values? */
PETSC_INTERN PetscErrorCode HybMatHasMult(Mat A, PetscBool *flg);
/* exec: where MatMult(A, x, b) would run */
PETSC_INTERN PetscErrorCode HybMatGetMultExec(Mat A, Vec x, Vec b, HybExec *exec);
/* As HybMatGetCSR(), for products with vectors: csr are A's arrays or, on a device alone, those of its transpose; *plan
   belongs to A and is valid until A's pattern moves. HybMatRestoreCSR() of A ends the access. */
PETSC_INTERN PetscErrorCode HybMatGetMult(Mat A, const HybExec *x, PetscBool transpose, HybCSR *csr, HybSpMV **plan);
/* A copy of a matrix's values in the order of the product's kernel (seq/ordered.c) */
typedef struct {
  HybSpMV          plan;
  PetscObjectState state; /* of the values when they were looked at last */
  PetscCount       moves; /* and their HybMatGetMoves() */
  PetscCount       used;  /* products or applications that were done with them, as far as that is counted */
  PetscBool        worth; /* those before them were used often */
  PetscBool        asked; /* whether there may be a plan */
  PetscBool        planned, filled;
} HybMatOrdered;
/* Look: where A has other values than at the last look, it is noted whether those were used so many times, or always
   shall count as such; their copy is old, and goes if it was not worth it. Fill: the copy gets A's values, which are
   csr's, of this plan; `who has` it, for -info. If memory is short there is none. */
PETSC_INTERN PetscErrorCode HybMatOrderedLook(Mat A, PetscBool always, PetscCount after, HybMatOrdered *);
PETSC_INTERN PetscErrorCode HybMatOrderedFill(Mat A, const char *who, const HybSpMV *plan, const HybCSR *csr, HybMatOrdered *);
PETSC_INTERN PetscErrorCode HybMatOrderedForget(HybMatOrdered *);
/* what A has besides, where csr and plan are what HybMatGetMult() gave: the plan with a copy of the values, of now; or
   NULL. Valid as plan, and until the values are others. */
PETSC_INTERN PetscErrorCode HybMatGetOrdered(Mat A, const HybCSR *csr, const HybSpMV *plan, HybSpMV **ordered);
/* how often its values may have become others while A's state stood, as where a program holds them to write; after
   HybMatGetMult() */
PETSC_INTERN PetscErrorCode HybMatGetMoves(Mat A, PetscCount *moves);

/* The same of a parallel matrix: is A one of the type, by name, with both blocks of ours and others' columns
   ascending? */
PETSC_INTERN PetscErrorCode HybMatIsPar(Mat A, PetscBool *flg);
/* Collective, with the same answer on all processes: the device if one process gains by it and all have one */
PETSC_INTERN PetscErrorCode HybMatGetParExec(Mat A, HybExec *x);
PETSC_INTERN PetscErrorCode HybMatGetParCSR(Mat A, const HybExec *x, PetscBool values, HybParCSR *csr);
/* gives back what HybMatGetParCSR() got, also after an error */
PETSC_INTERN PetscErrorCode HybMatRestoreParCSR(Mat A, const HybExec *x, HybParCSR *csr);
/* Not collective: HybMatAscends() of this process's blocks; false after an error */
PETSC_INTERN PetscErrorCode HybMatAscendsPar(Mat A, const HybExec *x, PetscBool *yes);
/* Collective: an error of one process, also one given as before, is an error on all. *C has A's row layout; out[0] and
   out[1] hold the arrays of csr->D and csr->O and are taken over. */
PETSC_INTERN PetscErrorCode HybMatCreateFromParCSR(Mat A, const HybExec *x, PetscErrorCode before, HybArena out[2], const HybParCSR *csr, PetscInt rbs, PetscInt cbs, Mat *C);

/* Products of a parallel matrix with arrays on its devices. Begin, collective: may it be done (one answer for all), and
   x: where the arrays have to live; like: it is asked for products with such vectors, which may be the host's to do;
   NULL: for arrays of the device. MultArrays, collective: y = A x; before is an error of this process, of which the
   others learn in place of waiting; an error may be one of some processes alone. */
PETSC_INTERN PetscErrorCode HybMatParArraysBegin(Mat A, Vec like, HybExec *x, PetscBool *may);
/* Not collective: all processes know of an error in these products, so the next product does not report it again. */
PETSC_INTERN PetscErrorCode HybMatParForget(Mat A);
/* *halo: the exchange of these products, which belongs to A; NULL: there is none. Collective, with one answer for
   all. */
PETSC_INTERN PetscErrorCode HybMatParHalo(Mat A, HybHalo *halo);
PETSC_INTERN PetscErrorCode HybMatParMultArrays(Mat A, PetscErrorCode before, const PetscScalar *x, PetscScalar *y);
/* Not collective: is A a parallel matrix whose products with vectors, transposed ones too, are the type's own? */
PETSC_INTERN PetscErrorCode HybMatParHasMult(Mat A, PetscBool *flg);
/* As HybMatGetMult(), of this process's blocks, of columns of its own and of others'. Not collective, after
   HybMatParHalo(). HybMatParRestoreMult() ends the access. */
PETSC_INTERN PetscErrorCode HybMatParGetMult(Mat A, const HybExec *x, PetscBool transpose, HybCSR csr[2], HybSpMV *plan[2]);
PETSC_INTERN PetscErrorCode HybMatParRestoreMult(Mat A, const HybExec *x);

/* A vector's array where x executes (there): the vector's own array, or a copy, which HybVecRestore() sends back if
   write. All are NULL for no vector; v is NULL after an error of HybVecGet(). */
typedef struct {
  Vec          v;
  PetscScalar *array, *there;
  HybArena     copy; /* has the copy; copy.exec is x */
  PetscMemType mtype;
  PetscBool    read, write;
  /* given back, the vector is what it was: its state stays, on all processes, where norms may be known by that */
  PetscBool untouched;
} HybVecAccess;
PETSC_INTERN PetscErrorCode HybVecGet(const HybExec *x, Vec, PetscBool read, PetscBool write, HybVecAccess *);
/* Gives back what was got, if anything. before: the operation's error, if any: then a copy is not sent back, and this
   is the error that is returned. */
PETSC_INTERN PetscErrorCode HybVecRestore(PetscErrorCode before, HybVecAccess *);
/* The same of n columns of a dense matrix of this process, from number `first` on, for reading or, write, to be
   overwritten; other columns stay what they are. ld: entries from one column to the next, there */
typedef struct {
  Mat          M;
  PetscScalar *array, *there;
  PetscCount   ld;
  PetscInt     first, n, lda; /* lda: of array, which begins with the first column of all */
  PetscMemType mtype;
  PetscBool    write;
  HybArena     copy;
} HybMatDenseAccess;
PETSC_INTERN PetscErrorCode HybMatDenseGet(const HybExec *x, Mat, PetscInt first, PetscInt n, PetscBool write, HybMatDenseAccess *);
PETSC_INTERN PetscErrorCode HybMatDenseRestore(PetscErrorCode before, HybMatDenseAccess *);
/* From now on operations on matrices of the type, and vectors made for them, stay on the host (on), or are as usual
   again. For the plugin's own small matrices: a first operation on the device would load kernels and libraries. Reports
   leave these operations out. */
PETSC_INTERN void HybMatOnHost(PetscBool on);

/* Keeps pointer on an object under a name. destroy(pointer) is called when the last object drops it, and at once if
   composing fails. Get gives NULL if there is nothing under the name. */
PETSC_INTERN PetscErrorCode HybContainerCompose(PetscObject, const char *name, void *pointer, PetscErrorCode (*destroy)(void *pointer));
PETSC_INTERN PetscErrorCode HybContainerGet(PetscObject, const char *name, void *pointer);
PETSC_INTERN PetscErrorCode HybContainerFree(void *pointer); /* PetscFree(), as a destroy */

/* PETSC_ERR_MEM, with the numbers and what to do, where x cannot have so many bytes more; asked before anything is
   taken. what they are for, as of printf() */
PETSC_INTERN PetscErrorCode HybMatRoom(const HybExec *x, size_t bytes, const char *what, ...);
/* for -mat_aijhybridgpu_view_memory: a set-up of multigrid is expected to come to so many bytes of the device, others'
   included */
PETSC_INTERN void HybMatPlanned(size_t bytes);

/* Counts that -mat_aijhybridgpu_view_counts shows of algebraic multigrid */
typedef enum {
  HYB_GAMG_SETUPS,      /* set-ups whose finest level the plugin made */
  HYB_GAMG_SETUPS_LEFT, /* set-ups that PETSc's own code made from the finest level on */
  HYB_GAMG_LEVELS,      /* levels that the plugin made */
  HYB_GAMG_LEVELS_LEFT, /* levels that PETSc's own code made */
  HYB_CYCLES,           /* applications of multigrid, on matrices of the type, that the plugin did */
  HYB_CYCLES_LEFT,      /* such applications that PETSc's own code did */
  HYB_SOLVES,           /* solves of KSPCG whose iterations the plugin did */
  HYB_COLUMNS_SOLVED,   /* of these, right-hand sides of KSPMatSolve() that were solved several at once */
  HYB_GAMG_COUNTS
} HybGAMGCount;
PETSC_INTERN PetscErrorCode HybCountGAMG(HybGAMGCount);
/* Phases of the set-up of a level with matrix A: PHASE(name, its event's name, what it is in a report).
   HybRecordPhase() notes a phase's begin or end. */
#define HYB_PHASE_LIST(PHASE)                                           \
  PHASE(LOOK, "HybGAMGLook", "GAMG: the level's matrix")                \
  PHASE(AGGREGATES, "HybGAMGAgg", "GAMG: aggregates")                   \
  PHASE(TENTATIVE, "HybGAMGTent", "GAMG: prolongator before smoothing") \
  PHASE(ESTIMATE, "HybGAMGEstim", "GAMG: eigenvalue estimate")          \
  PHASE(SMOOTH, "HybGAMGSmooth", "GAMG: smoothed prolongator")
#define HYB_PHASE_NUMBER(phase, event, text) HYB_PHASE_##phase,
typedef enum {
  HYB_PHASE_LIST(HYB_PHASE_NUMBER) HYB_PHASES
} HybPhase;
PETSC_INTERN PetscErrorCode HybRecordPhase(HybPhase, Mat A, PetscBool end);

/* The sequential matrix of ours that has this process's rows and columns of A, or A itself; NULL: there is none */
PETSC_INTERN PetscErrorCode HybMatGetLocal(Mat A, Mat *local);
/* x: where a smoother's loop over a vector runs: on the device if the matrix or its vectors are there, else on the
   host. local is from HybMatGetLocal(). */
PETSC_INTERN PetscErrorCode HybMatGetSmootherExec(Mat local, HybExec *x);
/* *zeros: rows of this process whose diagonal entry, or its reciprocal, is 0; if there are several, not all need be
   counted. *known is PETSC_FALSE if the device cannot tell. Not collective. */
PETSC_INTERN PetscErrorCode HybMatDiagonalZeros(Mat A, PetscBool *known, PetscCount *zeros);
/* Fills v, which has A's layout, with the numbers of KSPSetNoisy_Private(), where HybMatGetSmootherExec() says. */
PETSC_INTERN PetscErrorCode HybMatNoise(Mat A, Vec v);

/* src/ksp registers PETSc's own types again. For matrices of the type, what PETSc does on the host alone runs on the
   device. */
PETSC_INTERN PetscErrorCode HybSmoothersRegister(void);
PETSC_INTERN PetscErrorCode HybGAMGRegister(void);
PETSC_INTERN PetscErrorCode HybMGRegister(void);

HYB_EXTERN_C_END
#endif

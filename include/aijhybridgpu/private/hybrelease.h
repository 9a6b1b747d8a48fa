/*
  hybrelease.h: what this release of PETSc has, of 3.18 and later. The one file that reads PETSc's version: a difference
  between releases gets a name here, which stands in #if and in if () alike. docs/newrelease.md says what to look at for
  a new release; HYB_KNOWN_... below are the ones that somebody has to compare first.
*/
#ifndef AIJHYBRIDGPU_HYBRELEASE_H
#define AIJHYBRIDGPU_HYBRELEASE_H
#include <petscsys.h>

/* interfaces that came */
/* Mat.hash_active: entries of a first assembly lie in a table */
#define HYB_HAS_HASH           PETSC_VERSION_GE(3, 19, 0)
#define HYB_HAS_SPD_KNOWN      PETSC_VERSION_GE(3, 19, 0) /* MatIsSPDKnown(), by which PCJACOBI looks for zeros */
#define HYB_HAS_NEG_CURVE      PETSC_VERSION_GE(3, 19, 0) /* KSP.converged_neg_curve */
#define HYB_HAS_VECFLAG        PETSC_VERSION_GE(3, 22, 0) /* in the place of VecSetInf() */
#define HYB_HAS_MIN_IT         PETSC_VERSION_GE(3, 20, 0) /* KSP.min_it */
#define HYB_GRAPH_AS_318       PETSC_VERSION_LT(3, 19, 0) /* the arguments of _MatOps.creategraph */
#define HYB_HAS_ELIMINATEZEROS PETSC_VERSION_GE(3, 20, 0) /* MatEliminateZeros() */
#define HYB_HAS_DENSE_MEMTYPE  PETSC_VERSION_GE(3, 20, 0) /* MatDenseGetArrayReadAndMemType() and its relatives */
#define HYB_HAS_PROPAGATE      PETSC_VERSION_GE(3, 20, 0) /* MatPropagateSymmetryOptions() */
/* several loggers at a time; PetscLogGetState() */
#define HYB_HAS_LOG_HANDLERS PETSC_VERSION_GE(3, 20, 0)
#define HYB_HAS_GAMG         PETSC_VERSION_GE(3, 21, 0) /* of PCGAMG, what src/ksp/pc/impls/gamg goes by */
/* the linear solver server's shared memory, PCMPIServerUseShmget */
#define HYB_HAS_SERVER         PETSC_VERSION_GE(3, 22, 0)
#define HYB_HAS_CURRENTMEMTYPE PETSC_VERSION_GE(3, 24, 0) /* MatGetCurrentMemType() */
/* MatCreateMPIAIJWithSeqAIJ() takes garray; MatGetMultPetscSF() */
#define HYB_HAS_CREATE_GARRAY  PETSC_VERSION_GE(3, 26, 0)
#define HYB_HAS_PROLONG_FILTER PETSC_VERSION_GE(3, 26, 0) /* PC_GAMG.prolongator_filter */
#define HYB_HAS_REASON_VIEWER  PETSC_VERSION_GE(3, 23, 0) /* KSP.convergedreasonviewer */
#define HYB_HAS_PC_PRESOLVE    PETSC_VERSION_LT(3, 24, 0) /* PC.presolve, a function of a program's */
#define HYB_HAS_DIAGONALSCALE  PETSC_VERSION_LT(3, 26, 0) /* KSPSetDiagonalScale(), PCSetDiagonalScale() */
/* KSPOrthogonalizationGet(), in place of KSPGMRESGetOrthogonalization() */
#define HYB_HAS_ORTHOGONALIZE PETSC_VERSION_GE(3, 26, 0)
#if defined(PETSC_HAVE_CUDA)
  #define HYB_HAS_CUDA PETSC_VERSION_GE(3, 20, 0) /* PETSc's CUDA types and streams, from C */
#else
  #define HYB_HAS_CUDA 0
#endif

/* what releases do otherwise */
/* functions by name are a list of nodes, to which PetscObject.bops->composefunction adds (names.c) */
#define HYB_LISTS_ARE_NODES PETSC_VERSION_LT(3, 19, 0)
/* MatHeaderReplace() takes composed functions and objects away */
#define HYB_REPLACE_TAKES_LISTS PETSC_VERSION_GE(3, 21, 0)
/* MatCreateMPIAIJWithSeqAIJ() gives B's arrays away (given.c) */
#define HYB_GIVES_ARRAYS     PETSC_VERSION_LT(3, 22, 0)
#define HYB_RESET_KEEPS_ROOM PETSC_VERSION_GE(3, 22, 0) /* MatResetPreallocation() leaves the room that rows have */
/* MatResetPreallocation() leaves a matrix without an assembly or rows as it is, before it asks what was preallocated */
#define HYB_RESET_LEAVES_NEW PETSC_VERSION_GE(3, 22, 0)
/* MatSetPreallocationCOO() sums the blocks' states, not the assembly */
#define HYB_COO_COUNTS_STATES PETSC_VERSION_GE(3, 22, 0)
/* MatShift() ends without an assembly; it and MatDiagonalSet() refuse rows below the last column */
#define HYB_SHIFT_IN_PLACE     PETSC_VERSION_GE(3, 25, 0)
#define HYB_CONTEXT_BY_ADDRESS PETSC_VERSION_GE(3, 25, 0) /* a product's destroy function gets its context's address */
/* MatCreateSubMatrix() of a MATMPIAIJ takes the arrays of its blocks' submatrices */
#define HYB_SUBMATRIX_TAKES PETSC_VERSION_LT(3, 26, 0)

/* what somebody has read PETSc's source for: another release is left to PETSc until he has again */
#define HYB_KNOWN_GAMG_PARALLEL PETSC_VERSION_LT(3, 27, 0) /* what PCGAMG does on several processes */
#define HYB_KNOWN_GAMG_ALIKE    PETSC_VERSION_LT(3, 27, 0) /* all levels are smoothed alike */
#define HYB_KNOWN_GAMG_DIAGONAL PETSC_VERSION_LT(3, 27, 0) /* what it does with rows without a diagonal entry */
#define HYB_KNOWN_GAMG_MISK     PETSC_VERSION_GE(3, 26, 0) /* MIS-k on several processes */
/* PCGAMG's driver with an injection's indices */
#define HYB_KNOWN_INJECTION (PETSC_VERSION_GE(3, 26, 0) && PETSC_VERSION_LT(3, 27, 0))

/* interfaces that changed */
#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif
#if PETSC_VERSION_LT(3, 23, 0)
typedef PetscOptionItems *HybOptionItems;
  #define HybContainerSetDestroy   PetscContainerSetUserDestroy
  #define HybNoisy(A, v)           KSPSetNoisy_Private(v)
  #define HYB_CONTAINER_BY_ADDRESS 0
#else
typedef PetscOptionItems HybOptionItems;
  #define HybContainerSetDestroy   PetscContainerSetCtxDestroy
  #define HybNoisy(A, v)           KSPSetNoisy_Private(A, v)
  #define HYB_CONTAINER_BY_ADDRESS 1
#endif
#if PETSC_VERSION_LT(3, 25, 0)
typedef void **HybComposedArg; /* of a container's destroy function that gets an address */
#else
typedef PetscCtxRt       HybComposedArg;
#endif
/* the state of the matrix that a preconditioner was made of */
#if PETSC_VERSION_LT(3, 26, 0)
  #define HybPCMatState(pc) ((pc)->matstate)
#else
  #define HybPCMatState(pc) ((pc)->matstate.state)
#endif
/* is A's first assembly under way in a hash table? */
#if HYB_HAS_HASH
  #define HybHashActive(A) ((A)->hash_active)
#else
  #define HybHashActive(A) PETSC_FALSE
#endif

#endif

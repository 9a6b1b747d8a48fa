/*
  smoothers.h: what src/ksp registers over PETSc's own types.
*/
#ifndef AIJHYBRIDGPU_SMOOTHERS_H
#define AIJHYBRIDGPU_SMOOTHERS_H
#include <petscksp.h>
#include "aijhybridgpu/private/hybcycle.h"

PETSC_INTERN PetscErrorCode PCCreate_Jacobi_Hyb(PC);
/* petsc/ksp/noise.c; the first: do the host's and the device's functions make the noise of this PETSc? The second: a
   set-up that starts from this vector */
typedef PetscErrorCode (*HybUseNoisyFn)(KSP, PetscBool);
PETSC_INTERN PetscBool      HybNoiseKnown(void);
PETSC_INTERN PetscErrorCode HybNoiseLend(KSP, Vec noise, PetscErrorCode (*setup)(KSP), HybUseNoisyFn);
PETSC_INTERN PetscErrorCode KSPCreate_Chebyshev_Hyb(KSP);
/* Of a KSPCHEBYSHEV: another state after each event that may change its numbers, and no two of a process have the same;
   0: nobody watches it, or it is no such method. noisy: its estimates start from noise. */
PETSC_INTERN PetscErrorCode HybChebyshevGetState(KSP, PetscObjectState *state, PetscBool *noisy);
PETSC_INTERN PetscErrorCode KSPCreate_CG_Hyb(KSP);
/* known.c: until Forget, choose(ksp) is called before each solve that a preconditioner of multigrid, the solver's,
   hears of by HybCGChoose() */
PETSC_INTERN PetscErrorCode HybCGKnow(KSP, PetscErrorCode (*choose)(KSP));
PETSC_INTERN PetscErrorCode HybCGForget(KSP);
PETSC_INTERN PetscErrorCode HybCGChoose(PC);
/* Collective. Is the Hessenberg matrix of a KSPCHEBYSHEV's estimator, or NULL, made by the room krylov until End?
   before: this process's error, which becomes one of all. */
PETSC_INTERN PetscErrorCode HybEstimatorBegin(KSP, KSP estimator, PetscErrorCode before, PetscBool *ours);
PETSC_INTERN PetscErrorCode HybEstimatorEnd(void);
/* petsc/ksp/lapack.c, where LAPACK has what it takes: eigenvalues of a symmetric tridiagonal matrix, ascending, in d;
   e, of n - 1, is overwritten. Those of the first n rows of the Hessenberg matrix that n steps of Arnoldi's process
   left. */
PETSC_INTERN PetscBool      HybLapackHasTridiagonal(void);
PETSC_INTERN PetscBool      HybLapackHasHessenberg(void);
PETSC_INTERN PetscErrorCode HybLapackTridiagonal(PetscInt n, PetscReal d[], PetscReal e[]);
PETSC_INTERN PetscErrorCode HybLapackHessenberg(PetscInt n, const PetscScalar H[], PetscReal r[], PetscReal c[]);
/* arnoldi.c: HybKrylovArnoldi() with Jacobi, which begins with b, NULL: with PETSc's noise; mult: A's plan. Par: of a
   parallel matrix, collective, after HybMatParArraysBegin() has said yes and where. An error of one process is one of
   all. */
PETSC_INTERN PetscErrorCode HybEstimatorArnoldi(const HybExec *, const HybCSR *A, HybSpMV *mult, Vec b, PetscInt steps, PetscScalar *H, PetscInt *done);
PETSC_INTERN PetscErrorCode HybEstimatorArnoldiPar(Mat A, const HybExec *, Vec b, PetscInt steps, PetscScalar *H, PetscInt *done);
/*
  A preconditioner of multigrid applied to arrays where it executes. Begin: may it be, for A and vectors like b and x,
  and are all processes willing? *h is NULL where it may not.
  r is the vector that it will be applied to. Lend, not collective: *cycle is there until Return, with A's own arrays
  and plan where one process has all of it (mult NULL: who asks reads no plans of the cycle), and nothing that it
  consists of may change. After an error it is there as well. Apply is collective; before: an error of this process's,
  which is returned; columns: 0, or below.
*/
typedef struct _HybMG       HybMG;
PETSC_INTERN PetscErrorCode HybMGArraysBegin(PC, Mat A, Vec b, Vec x, Vec r, PetscBool willing, HybMG **h);
PETSC_INTERN PetscErrorCode HybMGArraysLend(HybMG *, HybCycle **cycle, const HybCSR **csr, HybSpMV **mult);
PETSC_INTERN PetscErrorCode HybMGArraysApply(HybMG *, PetscInt columns, PetscErrorCode before, const PetscScalar *b, PetscScalar *x);
/* an application was made by others, from HybCycleRecord() */
PETSC_INTERN PetscErrorCode HybMGArraysApplied(HybMG *);
/* the last one is one that PETSc would not have made: the levels' solvers do not count it */
PETSC_INTERN void           HybMGArraysInVain(const HybMG *);
PETSC_INTERN PetscErrorCode HybMGReturn(HybMG *);
/*
  The same for K interleaved columns (HybColumnsOps), between Lend and Return. May: can it be, as far as is known
  without a look? ColumnsBegin: may it be? An application leaves sums where left says; `columns`, one at least, are
  counted.
  ColumnsEnd: all is as after an application to column `last`.
*/
PETSC_INTERN PetscErrorCode HybMGColumnsMay(PC, PetscBool *may);
PETSC_INTERN PetscErrorCode HybMGColumnsBegin(HybMG *, PetscInt K, HybColumnsSums *left, HybCycle **cycle, PetscBool *may);
PETSC_INTERN PetscErrorCode HybMGColumnsEnd(HybMG *, PetscInt last);
/* memory of the cycle of a PC that is built on PCMG is given back, until an application makes it again */
PETSC_INTERN PetscErrorCode HybMGForget(PC);
/* rhs.c: a smoother that was visited by the cycle last gets the right-hand side that PETSc's cycle would have left */
PETSC_INTERN PetscErrorCode HybMGGiveRightHandSide(KSP);

#endif

/*
  cgimpl.h: what the files of KSPCG share. With the numbers of an iteration, of one solve (solve.c) or of one of several
  columns (matsolve.c), converged.c goes on: number q, a HybCGNumber, stands at s[q * stride].
*/
#ifndef AIJHYBRIDGPU_CGIMPL_H
#define AIJHYBRIDGPU_CGIMPL_H
#include <petsc/private/kspimpl.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/pcimpl.h>
#include "aijhybridgpu/private/hybkrylov.h"
#include "aijhybridgpu/private/hybmat.h"
#include "../../../smoothers.h"

/* Lanczos' matrix of a solve (eigenvalues.c) */
typedef struct {
  PetscBool   noted;
  PetscInt    n, room; /* rows, and how many there may be */
  PetscReal  *d, *e;   /* n each: the diagonal; e[i] is beside it in rows i - 1 and i */
  PetscScalar a, beta; /* of the last row */
  PetscInt    before;  /* iterations of all solves before */
  /* what PETSc had set to tell of its own, or NULL */
  PetscErrorCode (*extremes)(KSP, PetscReal *, PetscReal *);
  PetscErrorCode (*eigenvalues)(KSP, PetscInt, PetscReal *, PetscReal *, PetscInt *);
} HybLanczos;

/* of one KSP */
typedef struct {
  PetscBool trust;              /* a radius or a target of the objective function was set */
  PetscErrorCode (*solve)(KSP); /* the KSP's, unless KSPCGUseSingleReduction() has put another one there */
  PetscBool  ours;              /* the last solve was */
  PetscReal  objective;         /* x A x / 2 - b x, of it */
  HybLanczos lanczos;           /* of it */
  /* what stays from one solve to the next, of matrices of so many rows, for a graph */
  HybArena     keep;
  PetscCount   n;
  HybCG        numbers;
  HybCycleSums sums; /* of z, where constants are a null space */
  HybSpMVSums  left; /* of products and of the cycle's last step, where those leave any */
  HybScalar   *x;
  HybCommSum   sum;    /* of several processes */
  PetscInt     summed; /* sums in the graph */
  void        *graph;
  PetscBool    solved;   /* once at least with this */
  const void  *names[7]; /* what the graph names: the cycle, r, z, p, the backend, letters, and whether it has sums */
  uint64_t     stamp;    /* the cycle's */
} HybCGSolver;

#define HYB_CG_KEY "HybCG"
static inline PetscErrorCode HybCGGet(KSP ksp, HybCGSolver **cg)
{
  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)ksp, HYB_CG_KEY, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it a solve in which nobody of a program's is called? */
static inline PetscBool HybCGIsPlain(KSP ksp, const HybCGSolver *cg)
{
  const PetscBool norm = (PetscBool)(ksp->normtype == KSP_NORM_PRECONDITIONED || ksp->normtype == KSP_NORM_UNPRECONDITIONED || ksp->normtype == KSP_NORM_NATURAL);

#if HYB_HAS_DIAGONALSCALE
  if (ksp->pc->diagonalscale) return PETSC_FALSE; /* PETSc's says that it cannot */
#endif
  return (PetscBool)(norm && !cg->trust && !ksp->numbermonitors && ksp->converged == KSPConvergedDefault && !ksp->transpose_solve && ksp->chknorm < 2 && !ksp->err_hist && ksp->nwork >= 3 && ksp->max_it > 0 && ksp->pc_side == PC_LEFT);
}

/* solve.c: a graph is forgotten; and all of keep */
PETSC_INTERN PetscErrorCode HybCGGraphForget(HybCGSolver *);
PETSC_INTERN PetscErrorCode HybCGRelease(HybCGSolver *);
/* Collective: a solve, where the cycle is covered. constants: they are the matrix' null space. Not *ours: nothing was
   done. */
PETSC_INTERN PetscErrorCode HybCGSolve(KSP, HybCGSolver *, PetscBool constants, PetscBool *ours);
/* matsolve.c: before each solve, is KSPMatSolve() of several right-hand sides the plugin's? It is so until the next
   one. */
PETSC_INTERN PetscErrorCode HybCGChooseMatSolve(KSP);

/* the norm that the KSP goes by */
PETSC_INTERN PetscReal HybCGNorm(KSP, const PetscScalar *s, PetscInt stride);
/* iteration i, from 0, begins: beta is 0, or changed its sign, where that is real */
PETSC_INTERN PetscErrorCode HybCGBegin(KSP, const PetscScalar *s, PetscInt stride, PetscInt i, KSPConvergedReason *);
/* p A p, a finite number, stopped the iteration before x was changed */
PETSC_INTERN PetscErrorCode HybCGIndefinite(KSP, const PetscScalar *s, PetscInt stride, KSPConvergedReason *);
/* A solve with a first guess, before its first iteration. AsksForB: does PETSc's test compare with the norm of b?
   FirstTest: that test, given the norms of b and of the residual. PETSc's own function would form the norm of b within
   the test, by an application of the preconditioner and a reduction. */
PETSC_INTERN PetscBool      HybCGAsksForB(KSP);
PETSC_INTERN PetscErrorCode HybCGFirstTest(KSP, PetscReal b, PetscReal r);
/* A solve begins: its rows are noted from now on, if the KSP is to compute singular values. Note: the next row. */
PETSC_INTERN PetscErrorCode HybLanczosBegin(KSP, HybLanczos *);
PETSC_INTERN void           HybLanczosNote(HybLanczos *, PetscScalar beta, PetscScalar dpi);
PETSC_INTERN PetscErrorCode HybLanczosFree(HybLanczos *);

#endif

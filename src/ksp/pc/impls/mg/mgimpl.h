/*
  mgimpl.h: the application of PETSc's multigrid by the room cycle. look.c: what is covered; watched.c: what a solver
  does beside solving, and which one is inside another; build.c: what the cycle is made of; smoother.c: smoothers'
  numbers; single.c: single precision; ordered.c: copies of values; whole.c: coarse levels that each of
  several processes has whole; columns.c: several right-hand sides at once; rhs.c: right-hand sides that are left to
  smoothers; mg.c: the application, and what is registered.
*/
#ifndef AIJHYBRIDGPU_MGIMPL_H
#define AIJHYBRIDGPU_MGIMPL_H
#include <petsc/private/kspimpl.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/pcmgimpl.h>
#include "aijhybridgpu/private/hybcycle.h"
#include "aijhybridgpu/private/hybmat.h"
#include "../../../smoothers.h"

#define HYB_MG_NAME    "HybMG"
#define HYB_MG_LEVELS  PETSC_MG_MAXLEVELS
#define HYB_MG_INVERSE 200 /* the most rows of a coarsest level whose inverse is made */
/* of one whose inverse is used: the largest condition, by Frobenius norms, and the square of the error that is allowed
   in a solution */
#if defined(PETSC_USE_REAL_SINGLE)
  #define HYB_MG_CONDITION      1e5
  #define HYB_MG_INVERSE_SQUARE 1e-7
#else
  #define HYB_MG_CONDITION      1e11
  #define HYB_MG_INVERSE_SQUARE 1e-16
#endif
#define HYB_MG_SMOOTHER 24 /* the most steps of a smoother */
#define HYB_MG_INNER    3  /* the most solvers inside the coarsest level's, one in another */

/* An object of PETSC's as it was: the same number and the same state are the same contents */
typedef struct {
  PetscObjectId    id;
  PetscObjectState state;
} HybMGObject;

/* What of a smoother, or of the coarsest level's solver, decides what it does. Compared byte by byte: zeroed first. */
typedef struct {
  HybMGObject      ksp, pc, mat, pmat, null, transposenull;
  PetscObjectState made;    /* of the matrix that the preconditioner was made of */
  PetscObjectState changed; /* of Chebyshev's method */
  PetscInt         max_it, nwork, flags;
  PetscReal        first;
  KSPSetUpStage    stage;
  KSPNormType      norm;
  PetscErrorCode (*solve)(KSP);
  PetscErrorCode (*apply)(PC, Vec, Vec);
  void (*converged)(void);
} HybMGSolver;

typedef struct {
  HybMGSolver down, up;
  HybMGObject A, interpolate, restriction;
  PetscErrorCode (*residual)(Mat, Vec, Vec, Vec);
  PetscInt  cycles;
  PetscBool mult[3]; /* products with A, P and R are the type's own */
} HybMGLevelSeen;

typedef struct {
  PetscInt       levels, cycles, device;
  PCMGType       am;
  PetscLogStage  stage;
  HybMGLevelSeen level[HYB_MG_LEVELS];
  /* where the coarsest level has an inverse, which nothing else tells of: the solvers inside its own, and factors */
  HybMGSolver inner[HYB_MG_INNER];
  HybMGObject factor[HYB_MG_INNER + 1];
} HybMGSeen;

/* A level's matrix in single precision */
typedef struct {
  HybCSR           lent; /* the matrix's own arrays and plan, as they were lent last */
  HybSpMV         *mult;
  PetscObjectState id, state; /* the matrix, and the state of the values that were converted */
  PetscCount       moves;     /* and HybMatGetMoves() of them */
  HybScalar       *a;         /* its values, in single precision */
  HybSpMV          plan;
  PetscBool        planned; /* there is a plan */
} HybMGSingle;

/* A level's matrix with its values in the order in which a kernel reads them */
typedef struct {
  HybSpMV      *source; /* the plan that the copy was made beside, and that one's number */
  uint64_t      number;
  PetscCount    since; /* applications before these values */
  HybMatOrdered copy;
  PetscBool     lent; /* it, or the matrix's own, was lent last */
  uint64_t      own;  /* number of the matrix's own plan, where that was lent last; or 0 */
} HybMGOrdered;

/* A matrix of several processes that this one has whole, or its rows of */
typedef struct {
  HybParWhole      all;
  PetscBool        made, valued;
  PetscObjectId    id; /* the matrix, its pattern, and the values that it had */
  PetscObjectState nonzerostate, state;
  HybArena         keep; /* of an interpolation: its transpose's */
  HybCSR           T;
  PetscInt        *perm;        /* entry k of T is entry perm[k] */
  HybSpMV          plan, planT; /* plans of products with the matrix, and with T */
} HybMGWhole;

/* The cycle of several right-hand sides at once (columns.c) */
typedef struct {
  HybCycle   cycle;
  HybArena   keep;
  PetscInt   width;               /* so many columns its vectors are for; 0: there are none */
  HybScalar *v[HYB_MG_LEVELS][4]; /* r, p, b, x by levels of the cycle */
} HybMGColumns;

/* To whom the levels' matrices are lent */
typedef enum {
  HYB_MG_CYCLE,         /* the cycle itself */
  HYB_MG_MULTIPLIES,    /* who multiplies with the finest level's, too */
  HYB_MG_READS_NO_PLANS /* who needs the arrays alone */
} HybMGBorrower;

struct _HybMG {
  PC        pc;             /* whose it is */
  PetscBool on, asked;      /* -pc_mg_aijhybridgpu, and whether it has been read */
  PetscBool wanted;         /* -pc_mg_aijhybridgpu_precision single, or */
  PetscBool half;           /* half: values of 16 bits below the finest level */
  PetscBool ours, told;     /* the finest level's matrix is of the type; -info has been told why not */
  PetscBool several;        /* it is a parallel one */
  HybMGSeen seen;           /* when it was last looked */
  HybMGSeen now;            /* workspace of that look */
  PetscBool known, covered; /* the look's answer, and whether there is one */
  HybCycle  cycle;
  HybArena  keep;                /* of the cycle's vectors and numbers */
  PetscInt  size[HYB_MG_LEVELS]; /* rows of the levels that keep is for */
  /* by levels of the cycle, the finest first, of A the coarsest one's too; transposed: the restriction is R's
     transpose */
  Mat       A[HYB_MG_LEVELS], P[HYB_MG_LEVELS], R[HYB_MG_LEVELS];
  PetscBool transposed[HYB_MG_LEVELS];
  uint64_t  plan[HYB_MG_LEVELS][3];         /* numbers of the plans */
  uint64_t  blockplan[HYB_MG_LEVELS][3][2]; /* of parallel matrices: of both blocks' plans, and of the halos */
  uint64_t  halo[HYB_MG_LEVELS][3];
  /* of several processes: the first level that each has whole, 0: there is none; nowhole: the coarsest one cannot be */
  PetscInt     firstwhole;
  PetscBool    nowhole;
  HybMGWhole   whole[HYB_MG_LEVELS][HYB_CYCLE_R];
  HybHalo      rows[HYB_MG_LEVELS];                    /* from everybody to everybody, of these levels */
  HybCommSum   restricted;                             /* adds the first one's right-hand side */
  HybMGSingle  narrow[HYB_MG_LEVELS][HYB_CYCLE_PARTS]; /* where the cycle is in single precision */
  HybMGOrdered ordered[HYB_MG_LEVELS][HYB_CYCLE_PARTS];
  /* there: of the finest level's own values, for the products of who borrows the matrices, and their plan */
  HybMGOrdered  outer;
  HybSpMV      *mult;
  PetscCount    applied;  /* applications by the plans */
  HybMGBorrower borrower; /* whom the matrices are lent to now */
  PetscBool     recorded; /* the caller records what is launched in a graph */
  /* there a flag where it executes: a number that it cannot have */
  int         *beyond;
  PetscReal   *c;       /* numbers of all smoothers, where the cycle executes */
  HybScalar   *inverse; /* of the coarsest level, there as well; NULL: PETSc solves */
  PetscInt     lent;    /* how many have the matrices' arrays */
  HybMGColumns columns;
};
static inline const PC_MG *HybMGData(const HybMG *h)
{
  return (const PC_MG *)h->pc->data;
}

/* Is the application covered, as everything is now? After a change of anything all smoothers are set up, as PETSc
   would, and *h is what they are now. b and x: of this application. */
PETSC_INTERN PetscErrorCode HybMGLook(HybMG *, Vec b, Vec x, PetscBool *covered);
/* watched.c: a bit for each thing that a solver does beside solving, 0: nothing; whether there is any, by options too;
   and the one solver that does what its preconditioner, which is set up, has to do, or NULL */
PETSC_INTERN PetscInt       HybMGFlags(KSP);
PETSC_INTERN PetscErrorCode HybMGWatched(KSP, PetscBool *);
PETSC_INTERN PetscErrorCode HybMGInnerSolver(KSP, KSP *inner);
/* build.c. What one process finds is so on all: collective where there are several. *why is this process's reason, or
   NULL. */
PETSC_INTERN PetscErrorCode HybMGAgree(const HybMG *, PetscErrorCode before, const char **why);
/* all that the cycle has of its own; *why: a sentence that says what is not covered, or NULL */
PETSC_INTERN PetscErrorCode HybMGBuild(HybMG *, const HybExec *, const char **why);
PETSC_INTERN PetscErrorCode HybMGRelease(HybMG *);
/* the matrices' arrays and plans for one application, until HybMGReturn() */
PETSC_INTERN PetscErrorCode HybMGLend(HybMG *);
/* single.c: copies between a caller's vector and a level's, scaled as that of the last application was; into a level
   also not scaled */
PETSC_INTERN PetscErrorCode HybMGIntoLevel(const HybMG *, PetscCount n, const HybScalar *from, PetscBool scaled, HybScalar *to);
PETSC_INTERN PetscErrorCode HybMGOutOfLevel(const HybMG *, PetscCount n, const HybScalar *from, HybScalar *to);
/* csr and plan are A's own, and become those of its copy; moved: they are others than the last time; half: its ordered
   values may have 16 bits */
PETSC_INTERN PetscErrorCode HybMGSingleLend(HybMG *, Mat A, HybMGSingle *, PetscBool half, PetscBool moved, HybCSR *csr, HybSpMV **plan);
PETSC_INTERN PetscErrorCode HybMGSingleRelease(HybMG *);
/* ordered.c: *plan, which is A's with the values csr, becomes the ordered one where that is worth it; *moved is set
   where it is another one than last. mine: these values are A's own. HybMGOrderedReturn() comes before the plan is lent
   again. */
PETSC_INTERN PetscErrorCode HybMGOrderedLend(HybMG *, HybMGOrdered *, Mat A, PetscBool mine, const HybCSR *csr, HybSpMV **plan, PetscBool *moved);
PETSC_INTERN void           HybMGOrderedReturn(const HybMGOrdered *, HybSpMV **plan);
PETSC_INTERN PetscErrorCode HybMGOrderedRelease(HybMG *);
/* whole.c, for several processes, collective. Choose: which levels each has whole; Build: all that it has of them; the
   reciprocals of diagonals and the inverse are there. before: an error of this process, which becomes one of all. */
PETSC_INTERN PetscErrorCode HybMGWholeChoose(HybMG *, const HybExec *);
PETSC_INTERN PetscErrorCode HybMGWholeBuild(HybMG *, PetscErrorCode before);
PETSC_INTERN PetscErrorCode HybMGWholeRelease(HybMG *);
/* not collective: has a device found that others' values of these levels did not come? */
PETSC_INTERN PetscErrorCode HybMGWholeHeard(HybMG *);
/* columns.c */
PETSC_INTERN PetscErrorCode HybMGColumnsRelease(HybMG *);
/* rhs.c: the smoothers can ask for their right-hand sides from now on; and b is the finest level's */
PETSC_INTERN PetscErrorCode HybMGKnownToSmoothers(PC);
PETSC_INTERN PetscErrorCode HybMGLeaveRightHandSide(PC, Vec b);
/* smoother.c: the numbers of a smoother's steps, three each, as PETSc's own code has them; *known is PETSC_FALSE where
   they are not a recurrence that the cycle has */
PETSC_INTERN PetscReal      HybMGFirstNumber(KSP);
PETSC_INTERN PetscErrorCode HybMGSmootherNumbers(KSP, PetscReal c[], PetscBool *threeterm, PetscBool *known);

#endif

/*
  What the files of PCGAMG's setup share. docs/algorithms.md says what is computed here and why the hierarchy is
  PETSc's.
*/
#ifndef HYBGAMGIMPL_H
#define HYBGAMGIMPL_H
#include <petscksp.h>
#include "aijhybridgpu/private/hybparagg.h"
#include "aijhybridgpu/private/hybmat.h"

/* The rules of aggregation are those of 3.21 and later, near-null vectors are real, limits of rounding those of
   doubles */
#if HYB_HAS_GAMG && PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX)
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
  PetscReal        *dummy;    /* what pc_gamg->data is while the near-null vectors are kept here */
  PetscErrorCode    failed;   /* what this process could not do before all meet at the first level */
  PetscBool         replaced; /* pc_gamg->data are not those that the setup began with */
  HybArena          near;     /* of the near-null vectors of this level */
  /* they live where near.exec executes; NULL: all ones, or one for each unknown of a vertex (translations), or still in
     pc_gamg->data */
  HybScalar      *b;
  HybExec         exec;      /* of this level */
  HybAggBlock     block;     /* its unknowns a vertex and near-null vectors */
  HybAggCollapsed collapsed; /* of its vertices, where they have several unknowns */
  HybAggFilter    edges;     /* which edges of its graph are weak; without a threshold of 0 or more none is */
  PetscBool       own;       /* the graph is not A's pattern, but: */
  HybArena        graph;     /* of the graph of its vertices */
  PetscInt        longest;   /* entries of its longest row; 0: nobody knows */
  HybCSR          vertices;  /* where they have several unknowns, or edges are weak */
  HybArena        keep;      /* of its aggregates */
  HybAggregates   agg;
  HybAggLists     lists; /* where there are several unknowns or vectors */
  HybScalar      *q;     /* the tentative prolongator's entries */
  HybAggRules     rules;
  PetscInt        nsmooths;
  /* block of the last level that the witness was asked about; bs 0: none of this setup */
  HybAggBlock asked;
  PetscBool   askedsymmetric; /* that level's matrix was known to be symmetric */
  PetscBool   settled;        /* rules and nsmooths are those of all levels below that are like it */
  PetscInt    total;          /* aggregates of all processes */
  HybParAgg   par;            /* of several processes, in place of most of the above */
  PetscInt    injection;      /* how many indices PETSc's driver is not told of, until it comes to the first level */
  PetscBool   injecting;      /* this is that level */
  Mat         injected;       /* its prolongator */
} HybGAMG;

PETSC_INTERN PetscLogEvent HYB_GAMGLook, HYB_GAMGAggregates, HYB_GAMGTentative, HYB_GAMGEstimate, HYB_GAMGSmooth;

static inline PC_GAMG *HybGAMGData(PC pc)
{
  return (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
}

  /* context.c */
  #define HYB_GAMG_NAME "PCGAMG_AIJHybridGPU"
PETSC_INTERN PetscErrorCode HybGAMGGet(PC, HybGAMG **);
PETSC_INTERN PetscErrorCode HybGAMGAgree(PC, PetscErrorCode ierr); /* an error of one process is one of all */
/* vectors.c: the near-null vectors. Known: are these, and the blocks of the level's matrix, of several processes (par)
   or of one, such as this code knows? *why is NULL if they are; not collective. ToHost: pc_gamg->data, of so many rows,
   gets its contents. Dummy: it stands for vectors that are kept here, of so many rows, cellcols of them, cellrows rows
   a vertex. Near: those of this level, of so many rows, go where it executes. */
PETSC_INTERN PetscErrorCode HybGAMGKnown(PC, const HybGAMG *, Mat A, PetscBool par, const char **why);
PETSC_INTERN PetscErrorCode HybGAMGCreateDefaultData(PC, Mat);
PETSC_INTERN PetscErrorCode HybGAMGDataToHost(PC, HybGAMG *, PetscInt rows);
PETSC_INTERN PetscErrorCode HybGAMGDataDummy(PC, HybGAMG *, PetscInt rows, PetscInt cellrows, PetscInt cellcols);
PETSC_INTERN PetscErrorCode HybGAMGNear(PC, HybGAMG *, PetscInt rows);
/* factor.c: PETSc's LAPACK for blocks of vertices of *ctx, a PetscInt, unknowns; NULL where this process has none */
PETSC_INTERN HybAggFactor HybGAMGGetFactor(void);
/* level.c: the functions that stand in the places of PETSc's */
PETSC_INTERN PetscErrorCode HybGAMGCreateGraph(PC, Mat, Mat *);
PETSC_INTERN PetscErrorCode HybGAMGCoarsen(PC, Mat *, PetscCoarsenData **);
PETSC_INTERN PetscErrorCode HybGAMGProlongator(PC, Mat, PetscCoarsenData *, Mat *);
PETSC_INTERN PetscErrorCode HybGAMGOptProlongator(PC, Mat, Mat *);
/* smooth.c: P = P - omega D^-1 A P, a step more of smoothing */
PETSC_INTERN PetscErrorCode HybGAMGSmoothMore(Mat A, PetscReal omega, Mat *P);
/* injection.c: the first level's prolongator, where it injects. Begin, of the setup: if it can be made here the driver
   is told that there is none. End: it is told again what the program said; was it told otherwise? Injection: P, and the
   vectors of the level below. Finish, of the setup: P has nothing of what the driver gives prolongators of
   aggregates. */
PETSC_INTERN PetscErrorCode HybGAMGInjectionBegin(PC, HybGAMG *);
PETSC_INTERN PetscBool      HybGAMGInjectionEnd(PC, HybGAMG *);
PETSC_INTERN PetscErrorCode HybGAMGInjection(PC, HybGAMG *, Mat A, Mat *P);
PETSC_INTERN PetscErrorCode HybGAMGInjectionFinish(HybGAMG *);
/* edges.c. Edges: h->edges but for what the witness said. Unites: by h->edges, does PETSc add the transposed graph?
   Where a scalar A claims a symmetric pattern it adds values alone. InfoEdges: -info of entries of the graph that a
   threshold leaves. */
PETSC_INTERN PetscErrorCode HybGAMGEdges(PC, HybGAMG *, Mat A);
PETSC_INTERN PetscErrorCode HybGAMGUnites(const HybGAMG *, Mat A, PetscBool *unites);
PETSC_INTERN PetscErrorCode HybGAMGInfoEdges(PC, const HybGAMG *, PetscCount left, PetscCount whole, PetscCount close);
/* parallel.c: the same on several processes. Decide: is the level ours, *why is NULL if it is. Prolongator: omega 0:
   without smoothing. */
/* NULL stays where it is on all processes */
PETSC_INTERN PetscErrorCode HybGAMGAgreeWhy(PC, PetscErrorCode, const char **why);
PETSC_INTERN PetscErrorCode HybGAMGParDecide(PC, HybGAMG *, Mat A, const char **why);
PETSC_INTERN PetscErrorCode HybGAMGParProlongator(PC, HybGAMG *, Mat A, PetscReal omega, Mat *P);
/* estimate.c: the extreme singular values of D^-1 A by which PETSc smooths the prolongator; longest: entries of A's
   longest row, 0: nobody knows */
PETSC_INTERN PetscErrorCode HybGAMGEstimate(PC, Mat A, const HybExec *, PetscInt longest, PetscReal *emin, PetscReal *emax);
/* witness.c: by which rules PETSc's own functions would coarsen this level, whose h->block is known:
   h->rules, whose hops are 0 where they are none of ours; h->nsmooths, -1: the prolongator is made in another way than
   ours; where that is asked for, h->edges but for the level's threshold, and *edges, or PETSC_FALSE: edges go by other
   rules than ours */
PETSC_INTERN PetscErrorCode HybGAMGWitness(PC, HybGAMG *, Mat A, PetscBool ask, PetscBool *edges);
/* no logger hears of events between Quiet and Loud, which is told what Quiet said */
PETSC_INTERN PetscBool HybGAMGQuiet(void);
PETSC_INTERN void      HybGAMGLoud(PetscBool was);
/* ahead.c: what the first solve would load */
PETSC_INTERN PetscErrorCode HybGAMGAhead(Mat A);
  /* the look at a graph, its transpose and its sum with that go by the order of columns */
  #define HYB_GAMG_DISORDER "rows whose columns are out of order, or there twice"
/* why the level is not ours, by what the witness said; NULL stays where it is */
PETSC_INTERN void HybGAMGWhy(PetscBool edges, const HybGAMG *, const char **why);
/* the finest one that aggregates: injection leaves near-null vectors for the level below */
static inline PetscInt HybGAMGFirst(PC pc)
{
  return HybGAMGData(pc)->injection_index_size > 0;
}
/* has this level a threshold? */
static inline PetscBool HybGAMGHasThreshold(PC pc)
{
  return (PetscBool)(HybGAMGData(pc)->threshold[HybGAMGData(pc)->current_level] >= 0);
}
#endif
#endif

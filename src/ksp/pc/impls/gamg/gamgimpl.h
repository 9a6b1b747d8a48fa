/*
  What the files of PCGAMG's setup share. docs/algorithms.md says what is computed here and why the hierarchy is
  PETSc's.
*/
#ifndef HYBGAMGIMPL_H
#define HYBGAMGIMPL_H
#include <petscksp.h>
#include "aijhybridgpu/private/hybparagg.h"
#include "aijhybridgpu/private/hybmat.h"

/* The rules of aggregation are those of 3.21 and later, limits of rounding those of doubles and of single precision */
#if HYB_HAS_GAMG && (PetscDefined(USE_REAL_DOUBLE) || PetscDefined(USE_REAL_SINGLE))
  #define HYB_GAMG 1
#else
  #define HYB_GAMG 0
#endif

#if HYB_GAMG
  #include <petsc/private/pcgamgimpl.h>

typedef struct _HybGAMG HybGAMG;

/* What a level does, on one process (one.c) and on several (parallel.c): there all are collective, and decide alike */
typedef struct {
  /* h->exec and h->block of A, whose vectors are known. *why, here and below: why the level is not ours; NULL stays. */
  PetscErrorCode (*begin)(PC, HybGAMG *, Mat A, const char **why);
  /* The graph, with its transpose where that is needed and `unites`. *wrong: why the rules do not hold for it; *sided:
     it has edges of one direction, so that `again` unites it with its transpose, and looks again. */
  PetscErrorCode (*look)(PC, HybGAMG *, Mat A, PetscBool unites, PetscBool *sided, const char **wrong);
  PetscErrorCode (*again)(PC, HybGAMG *, Mat A, const char **wrong);
  /* h->rules; where that is asked for, which edges are weak, and whether PETSc adds the transpose */
  PetscErrorCode (*rules)(PC, HybGAMG *, Mat A, PetscBool ask, PetscBool *unites, const char **why);
  PetscErrorCode (*aggregate)(HybGAMG *, Mat A);
  /* before: an error of this process's; work: where this executes */
  PetscErrorCode (*tentative)(HybGAMG *, PetscErrorCode before, HybArena *work, HybScalar *coarse, PetscInt *doubtful);
  /* P0 - omega D^-1 A P0; 0: P0 */
  PetscErrorCode (*prolongator)(HybGAMG *, Mat A, PetscReal omega, Mat *P);
} HybGAMGWay;

/* What the plugin keeps with a PC of type gamg. PETSc's own data stay PETSc's. */
struct _HybGAMG {
  PetscBool on; /* -pc_gamg_aijhybridgpu */

  struct { /* PETSc's functions: of the PC; of its aggregation, valid during a set-up, ours being in their places */
    PetscErrorCode (*setup)(PC);
    PetscErrorCode (*reset)(PC);
    PetscErrorCode (*destroy)(PC);
    PetscErrorCode (*setfromoptions)(PC, HybOptionItems);
    struct _PCGAMGOps ops;
  } petsc;

  struct { /* of a set-up */
    const HybGAMGWay *way;
    PetscBool         ours;     /* this level and all finer ones */
    PetscBool         hostdata; /* PETSc reads pc_gamg->data of coarser levels too */
    PetscBool         replaced; /* pc_gamg->data are not those that it began with */
    PetscReal        *dummy;    /* what pc_gamg->data is while the near-null vectors are kept here, else NULL */
    PetscErrorCode    failed;   /* what this process could not do before all meet at the first level */
  } setup;

  struct { /* the near-null vectors of the level that is made next */
    HybArena arena;
    /* Live where arena.exec executes; of complex ones the real parts are meant. NULL: all ones, or one for each
       unknown of a vertex (translations), or still in pc_gamg->data */
    HybScalar *b;
  } near;

  /* of a level, from creategraph on */
  HybExec       exec;
  HybAggBlock   block; /* unknowns a vertex, near-null vectors */
  HybAggFilter  edges; /* which edges are weak; without a threshold of 0 or more none is */
  PetscInt      total; /* aggregates of all processes; from coarsen on, as these: */
  HybAggregates agg;
  HybParAgg     par; /* of several processes, in place of graph and kept; from creategraph to optprolongator */

  struct {                     /* of a level's vertices; from creategraph to coarsen */
    PetscBool       own;       /* it is not A's pattern, but: */
    HybArena        arena;     /* of what follows */
    HybCSR          csr;       /* of vertices of several unknowns, or without weak edges */
    HybAggCollapsed collapsed; /* where vertices have several unknowns */
    PetscInt        longest;   /* entries of its longest row, or 0: nobody knows; to the level's end, as own */
  } graph;

  struct {             /* of a level, from coarsen to optprolongator */
    HybArena    arena; /* of agg and of what follows */
    HybAggLists lists; /* where there are several unknowns or vectors */
    HybScalar  *q;     /* the tentative prolongator's entries */
  } kept;

  /* by which PETSc coarsens, from creategraph on; the members below: of a set-up */
  HybAggRules rules;
  PetscInt    nsmooths;
  struct {
    HybAggBlock block;     /* of the last level that the witness was asked about; bs 0: none of this set-up */
    PetscBool   symmetric; /* that level's matrix was known to be symmetric */
    PetscBool   settled;   /* rules and nsmooths are those of all levels below that are like it */
  } asked;

  struct {           /* of a level's eigenvalues, HybGAMGEstimateMay() */
    PetscBool asked; /* since creategraph; of these: */
    PetscBool may;   /* Arnoldi's process for all, */
    HybExec   exec;  /* there */
    PetscBool waits; /* else, some process would wait */
  } estimate;

  struct {            /* of the first level, petsc/ksp/injection.c */
    PetscInt  hidden; /* how many indices PETSc's driver is not told of, until it comes to that level */
    PetscBool now;    /* this is that level */
    Mat       P;      /* its prolongator, until the set-up's end */
  } injection;
};

PETSC_INTERN const HybGAMGWay HybGAMGOne, HybGAMGSeveral;
PETSC_INTERN PetscLogEvent    HybGAMGEvents[HYB_PHASES]; /* by HybPhase */

  /* PetscCall(call), as an event and a phase of the report */
  #define HYB_GAMG_PHASE(phase, A, call)                               \
    do {                                                               \
      PetscErrorCode ierr_phase_;                                      \
                                                                       \
      PetscCall(PetscLogEventBegin(HybGAMGEvents[phase], A, 0, 0, 0)); \
      PetscCall(HybRecordPhase(phase, A, PETSC_FALSE));                \
      ierr_phase_ = call;                                              \
      PetscCall(HybRecordPhase(phase, A, PETSC_TRUE));                 \
      PetscCall(PetscLogEventEnd(HybGAMGEvents[phase], A, 0, 0, 0));   \
      PetscCall(ierr_phase_);                                          \
    } while (0)

static inline PC_GAMG *HybGAMGData(PC pc)
{
  return (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
}

  /* context.c. Agree: an error of one process is one of all. AgreeWhy: also that the level is not ours. Near: these are
     the near-null vectors. Edges: h->edges but for what the witness said. Unites: by h->edges, does PETSc add the
     transposed graph? Where a scalar A claims a symmetric pattern it adds values alone. Moduli: are a scalar complex
     matrix's the host's where the level executes? *why stays NULL then; not collective. InfoEdges: -info of entries of
     the graph that a threshold leaves. */
  #define HYB_GAMG_NAME "PCGAMG_AIJHybridGPU"
PETSC_INTERN PetscErrorCode HybGAMGGet(PC, HybGAMG **);
PETSC_INTERN PetscErrorCode HybGAMGAgree(PC, PetscErrorCode ierr);
PETSC_INTERN PetscErrorCode HybGAMGAgreeWhy(PC, PetscErrorCode, const char **why);
PETSC_INTERN PetscErrorCode HybGAMGNear(HybGAMG *, HybArena near, HybScalar *b);
PETSC_INTERN PetscErrorCode HybGAMGEdges(PC, HybGAMG *, Mat A);
PETSC_INTERN PetscErrorCode HybGAMGUnites(const HybGAMG *, Mat A, PetscBool *unites);
PETSC_INTERN PetscErrorCode HybGAMGModuli(const HybGAMG *, const char **why);
PETSC_INTERN PetscErrorCode HybGAMGInfoEdges(PC, const HybGAMG *, PetscCount left, PetscCount whole, PetscCount close);
/* vectors.c: the near-null vectors. Known: are these, and the blocks of the level's matrix, such as this code knows?
   *why is NULL if they are; not collective. ToHost: pc_gamg->data, of so many rows, gets its contents. Dummy: it stands
   for vectors that are kept here, of so many rows, cellcols of them, cellrows rows a vertex. Send: those of this level,
   of so many rows, go where it executes. */
PETSC_INTERN PetscErrorCode HybGAMGKnown(PC, const HybGAMG *, Mat A, const char **why);
PETSC_INTERN PetscErrorCode HybGAMGCreateDefaultData(PC, Mat);
PETSC_INTERN PetscErrorCode HybGAMGDataToHost(PC, HybGAMG *, PetscInt rows);
PETSC_INTERN PetscErrorCode HybGAMGDataDummy(PC, HybGAMG *, PetscInt rows, PetscInt cellrows, PetscInt cellcols);
PETSC_INTERN PetscErrorCode HybGAMGSend(PC, HybGAMG *, PetscInt rows);
/* lapack.c: PETSc's LAPACK for blocks of vertices of *ctx, a PetscInt, unknowns; NULL where this process has none */
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
/* estimate.c: the extreme singular values of D^-1 A by which PETSc smooths the prolongator */
PETSC_INTERN PetscErrorCode HybGAMGEstimate(PC, HybGAMG *, Mat A, PetscReal *emin, PetscReal *emax);
  /* Collective, once a level: will that be Arnoldi's process, where A is, for all? Then it holds so many vectors at
     once. */
  #define ESTIMATE_STEPS   10
  #define ESTIMATE_VECTORS (ESTIMATE_STEPS + 3)
PETSC_INTERN PetscErrorCode HybGAMGEstimateMay(HybGAMG *, Mat A);
/* plan.c, collective: what the set-up and the cycle will hold of the device beside A, told, and refused where the least
   of it does not fit; before the first level's aggregates */
PETSC_INTERN PetscErrorCode HybGAMGPlan(PC, HybGAMG *, Mat A);
/* witness.c: by which rules PETSc's own functions would coarsen this level, whose h->block is known:
   h->rules, whose hops are 0 where they are none of ours; h->nsmooths, -1: the prolongator is made in another way than
   ours; where that is asked for, h->edges but for the level's threshold, and *edges, or PETSC_FALSE: edges go by other
   rules than ours */
PETSC_INTERN PetscErrorCode HybGAMGWitness(PC, HybGAMG *, Mat A, PetscBool ask, PetscBool *edges);
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

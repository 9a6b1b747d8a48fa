/*
  hybparagg.h: smoothed aggregation of matrices that are distributed by rows, by the rules of PETSc's GAMG (3.21 and
  later): the same roots, aggregates and numbers as its loops find on as many processes, by operations that devices do
  at once.

  All functions are collective, and an error of one process is one of all. Arrays live where the backend executes unless
  it is said otherwise; processes may have different backends.
*/
#ifndef AIJHYBRIDGPU_HYBPARAGG_H
#define AIJHYBRIDGPU_HYBPARAGG_H
#include "hybagg.h"
#include "hybparprod.h"

HYB_EXTERN_C_BEGIN

typedef struct _HybParAgg *HybParAgg;

/* What was seen when a graph was made */
typedef struct {
  /* The rules hold for it, on all processes: (j,i) is there where (i,j) is, also of the edges that are left, and PETSc
     takes no entries of several vertices for one block */
  PetscBool proper;
  /* Where weak edges were left out, of this process: entries in the rows of the graph of its vertices, those that are
     left of them, and entries of its vertices' edges, in both directions, that are close (HybAggFiltered) */
  PetscCount whole, left, close;
} HybParAggFound;

/* The graph of A's vertices, of block->bs unknowns each, whose near-null vectors are block->nvec, united with its
   transpose or not, without its weak edges; NULL: none is weak, and A needs no values. All processes give the same
   block, unite and edges. A's arrays, ranges and
   garray are used until this returns. Where found->proper is not, there is nothing to be made of it. before: an error
   that this process has had. halo: of A's columns of others, the caller's, who keeps it until HybParAggDestroy(): where
   the graph has the same, none is made; NULL: there is none. */
extern PetscErrorCode HybParAggCreate(MPI_Comm, const HybExec *, PetscErrorCode before, const HybParCSR *A, HybHalo halo, const HybAggBlock *block, PetscBool unite, const HybAggFilter *edges, HybParAggFound *found, HybParAgg *);
/* The aggregates by these rules; n: those whose roots this process owns, N: all. They are numbered by
   their roots, ascending, from process to process. sweeps: of all processes' vertices, after each of which they told
   each other of their boundaries, in the first round where there are several. */
extern PetscErrorCode HybParAggFind(HybParAgg, const HybAggRules *, PetscInt *n, PetscInt *N, int *sweeps);
/* The tentative prolongator of the near-null vectors b, by columns (NULL: all are 1, or translations), whose entries
   stay here; coarse: the next level's vectors, of the own aggregates, by columns. factor as in hybagg.h, *doubtful of
   the own aggregates; one unknown and one vector need neither. before as above. */
extern PetscErrorCode HybParAggTentative(HybParAgg, PetscErrorCode before, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *coarse, PetscInt *doubtful);
/* P0, if A is NULL, or P0 - omega D^-1 A P0, A being what the graph was made of. P->D and P->O from out[0] and out[1]
   (memory exec->result); P's ranges and garray stay until HybParAggDestroy(). before as above. */
extern PetscErrorCode HybParAggProlongator(HybParAgg, PetscErrorCode before, const HybParCSR *A, PetscReal omega, HybArena out[2], HybParCSR *P);
/* NULL is allowed, on all processes then */
extern PetscErrorCode HybParAggDestroy(HybParAgg *);

/* What one process does alone. */
typedef PetscErrorCode (*HybParAggEach)(const HybExec *, PetscInt n, const void *s);
typedef struct _HybParAggOps {
  /* each step of the rules, by vertex.h's list, for the first n vertices, entries or rows; s: the step's struct */
  const HybParAggEach *each;
  /* key as of HybAggRoots_CUDA(): the roots that a loop over the open vertices of G finds get 0. longest: entries of
     G's longest row, 0: nobody knows. */
  PetscErrorCode (*roots)(const HybExec *, HybArena *work, const HybCSR *G, PetscInt longest, int hops, PetscInt *key);
  /* number[k] = the sum of flag[0..k-1]; *sum of all. flag and number are different arrays. */
  PetscErrorCode (*number)(const HybExec *, HybArena *work, PetscInt n, const PetscInt *flag, PetscInt *number, PetscInt *sum);
  /* The members of nc aggregates, none of which is empty. parent of n vertices, -1: none; in a list, kinds 0..kinds-1
     come one after the other, and in each kind members ascend. Arrays from keep. */
  PetscErrorCode (*lists)(const HybExec *, HybArena *keep, HybArena *work, PetscInt n, PetscInt nc, const PetscInt *parent, int kinds, const PetscInt *kind, HybAggLists *);
} HybParAggOps;

extern const HybParAggOps HybParAggHost;

HYB_EXTERN_C_END
#endif

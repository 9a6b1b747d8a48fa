/*
  hybparagg.h: smoothed aggregation of matrices that are distributed by rows, one unknown a vertex and one near-null
  vector, by the rules of PETSc's GAMG (3.21 and later): the same roots, aggregates and numbers as its loops find on as
  many processes, by operations that devices do at once.

  All functions are collective, and an error of one process is one of all. Arrays live where the backend executes unless
  it is said otherwise; processes may have different backends.
*/
#ifndef AIJHYBRIDGPU_HYBPARAGG_H
#define AIJHYBRIDGPU_HYBPARAGG_H
#include "hybagg.h"
#include "hybparprod.h"

HYB_EXTERN_C_BEGIN

typedef struct _HybParAgg *HybParAgg;

/* The graph of A's pattern; A's arrays and garray are used until this returns, its ranges later too. *proper: the rules
   hold for it, since every row has its diagonal entry and (j,i) is there where (i,j) is; else there is nothing to be
   made of it. before: an error that this process has had. */
extern PetscErrorCode HybParAggCreate(MPI_Comm, const HybExec *, PetscErrorCode before, const HybParCSR *A, PetscBool *proper, HybParAgg *);
/* The aggregates. hops as in hybagg.h; n: those whose roots this process owns, N: all. They are numbered by their
   roots, ascending, from process to process. sweeps: of all processes' vertices, after each of which they told each
   other of their boundaries. */
extern PetscErrorCode HybParAggFind(HybParAgg, int hops, PetscInt *n, PetscInt *N, int *sweeps);
/* The tentative prolongator of the near-null vector b (an entry for each own vertex; NULL: all are 1), whose entries
   stay here; coarse: the next level's vector, an entry for each own aggregate. before as
   above. */
extern PetscErrorCode HybParAggTentative(HybParAgg, PetscErrorCode before, const HybScalar *b, HybScalar *coarse);
/* P0, if A is NULL, or P0 - omega D^-1 A P0, A being of the graph's pattern. P->D and P->O from out[0] and out[1]
   (memory exec->result); P's ranges and garray stay until HybParAggDestroy(). before as above. */
extern PetscErrorCode HybParAggProlongator(HybParAgg, PetscErrorCode before, const HybParCSR *A, PetscReal omega, HybArena out[2], HybParCSR *P);
/* NULL is allowed, on all processes then */
extern PetscErrorCode HybParAggDestroy(HybParAgg *);

/* What one process does alone. */
struct _HybParAggStep;
typedef struct _HybParAggOps {
  /* a step of the rules (vertex.h) for each of the first n vertices, entries or rows */
  PetscErrorCode (*each)(const HybExec *, int step, PetscInt n, const struct _HybParAggStep *);
  /* key as of HybAggRoots_CUDA(): the roots that a loop over the open vertices of G finds get 0 */
  PetscErrorCode (*roots)(const HybExec *, HybArena *work, const HybCSR *G, int hops, PetscInt *key);
  /* number[k] = the sum of flag[0..k-1]; *sum of all. flag and number are different arrays. */
  PetscErrorCode (*number)(const HybExec *, HybArena *work, PetscInt n, const PetscInt *flag, PetscInt *number, PetscInt *sum);
} HybParAggOps;

extern const HybParAggOps HybParAggHost;

HYB_EXTERN_C_END
#endif

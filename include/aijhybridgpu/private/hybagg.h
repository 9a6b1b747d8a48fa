/*
  hybagg.h: smoothed aggregation on CSR patterns of one process, by the rules of PETSc's GAMG (3.21 and later): the same
  roots, aggregates and numbers as its sequential loops find, by operations that a device does at once.
*/
#ifndef AIJHYBRIDGPU_HYBAGG_H
#define AIJHYBRIDGPU_HYBAGG_H
#include "hyb.h"

HYB_EXTERN_C_BEGIN

/* What decides whether the rules hold for a pattern. m = n. */
typedef struct {
  PetscCount nodiagonal; /* rows without an entry of the diagonal */
  PetscCount alone;      /* rows of fewer than two entries */
  PetscInt   longest;    /* entries of the longest row */
  PetscBool  symmetric;  /* (i,j) is there where (j,i) is */
} HybAggLook;

/* Which vertex belongs to which aggregate. Arrays live where the backend executes. */
typedef struct {
  PetscInt  n;      /* vertices */
  PetscInt  nc;     /* aggregates */
  PetscInt *parent; /* n: the number of a vertex's aggregate, -1 for none. Aggregates are numbered by their roots, ascending */
  PetscInt *lead;   /* nc: the vertex that comes first in PETSc's list: the root, or (hops = 1) the smallest */
  int       rounds; /* of the search for roots */
} HybAggregates;

/* Rounding of every function is the same on every backend, sums running along lists in ascending order of vertices. */
typedef struct _HybAggOps {
  PetscErrorCode (*look)(const HybExec *, HybArena *work, const HybCSR *G, HybAggLook *);
  /* place[v] = the position of vertex v after PETSc's shuffle of n vertices; n entries */
  PetscErrorCode (*permutation)(const HybExec *, HybArena *work, PetscInt n, PetscInt *place);
  /* The aggregates of G, whose pattern is symmetric and has its diagonal. hops = 2: MIS on the square of G, then as
     PETSc's fixAggregatesWithSquare(); hops = 1: MISK with k = 1 on G. parent and lead from keep, in the workspace's
     memory. */
  PetscErrorCode (*aggregates)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *G, int hops, HybAggregates *);
  /* The tentative prolongator of one near-null vector b (n entries, NULL: all are 1): q[v] is its entry in row v (0
     where parent is -1), coarse[c] the next level's vector, as LAPACK's geqrf and orgqr of each aggregate give them,
     signs too. */
  PetscErrorCode (*tentative)(const HybExec *, HybArena *work, const HybAggregates *, const HybScalar *b, HybScalar *q, HybScalar *coarse);
  /* P0 itself: row v has the entry (parent[v], q[v]), or none. P0->i, P0->j, P0->a from keep (memory exec->result). */
  PetscErrorCode (*unsmoothed)(const HybExec *, HybArena *keep, HybArena *work, const HybAggregates *, const HybScalar *q, HybCSR *P);
  /* P = P0 - omega D^-1 A P0 on the pattern of A P0, which has P0's since A has its diagonal; a zero on the diagonal
     counts as the inverse 0 (VecReciprocal()). P->i, P->j, P->a from keep (memory exec->result), columns ascending. */
  PetscErrorCode (*smoothed)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, const HybAggregates *, const HybScalar *q, PetscReal omega, HybCSR *P);
} HybAggOps;

extern const HybAggOps HybAggHost;

HYB_EXTERN_C_END
#endif

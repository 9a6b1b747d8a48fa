/*
  hybagg.h: smoothed aggregation on CSR patterns of one process, by the rules of PETSc's GAMG (3.21 and later): the same
  roots, aggregates and numbers as its sequential loops find, by operations that a device does at once.
*/
#ifndef AIJHYBRIDGPU_HYBAGG_H
#define AIJHYBRIDGPU_HYBAGG_H
#include "hyb.h"

HYB_EXTERN_C_BEGIN

/* Near-null vectors are real, as PETSc's GAMG has them: of complex numbers this is read */
#if !defined(PETSC_USE_COMPLEX)
  #define HYB_AGG_REAL(v) (v)
#elif defined(__cplusplus)
  #define HYB_AGG_REAL(v)      ((v).real())
  #define HYB_AGG_IMAGINARY(v) ((v).imag())
#else
  #define HYB_AGG_REAL(v)      PetscRealPart(v)
  #define HYB_AGG_IMAGINARY(v) PetscImaginaryPart(v)
#endif

/* Counts of a square pattern, which decide whether the rules hold for it */
typedef struct {
  PetscCount nodiagonal; /* rows without an entry of the diagonal */
  PetscCount alone;      /* rows of fewer than two entries */
  PetscCount empty;      /* rows without any */
  PetscInt   longest;    /* entries of the longest row */
  PetscBool  symmetric;  /* (i,j) is there where (j,i) is */
} HybAggLook;

/* In which order vertices are asked whether they become roots */
typedef enum {
  HYB_AGG_SHUFFLED, /* PETSc's shuffle */
  HYB_AGG_DEGREES,  /* that sorted by the lengths of rows, equal ones as PETSc's sort leaves them */
  HYB_AGG_NATURAL,
  HYB_AGG_ORDERS
} HybAggOrder;

/* How aggregates are found */
typedef struct {
  int         hops;     /* 2: MIS on the square of the graph, then as PETSc's fixAggregatesWithSquare(); 1: MISK */
  int         distance; /* of MISK: how often aggregates are formed, the second time from aggregates; 1 if hops is 2 */
  HybAggOrder order;
  PetscInt    longest; /* entries of the longest row of the graph, or more; 0: not known */
} HybAggRules;

#define HYB_AGG_DISTANCES 4 /* PETSc's MISK has no more */

/* Which vertex belongs to which aggregate. Arrays live where the backend executes. */
typedef struct {
  PetscInt n;  /* vertices */
  PetscInt nc; /* aggregates */
  /* n entries: the number of each vertex's aggregate, -1 for none. Aggregates are numbered by their roots,
     ascending. */
  PetscInt *parent;
  /* nc entries: the first vertex of each aggregate in PETSc's list: the root, or (hops = 1) the smallest */
  PetscInt *lead;
  int       rounds; /* rounds of the search for roots; of the first search if there are several */
} HybAggregates;

/* The members of the aggregates, one aggregate behind the other, each in the order of PETSc's lists. Arrays live where
   the backend executes. */
typedef struct {
  PetscInt *begin;  /* nc + 1 offsets */
  PetscInt *member; /* begin[nc] vertices */
} HybAggLists;

/* Several unknowns a vertex, several near-null vectors: unknown k of vertex v is row v*bs + k; vector k of aggregate c
   is column c*nvec + k of a prolongator. */
typedef struct {
  PetscInt bs, nvec;
} HybAggBlock;

/* these have ways of their own */
static inline PetscBool HybAggIsScalar(const HybAggBlock *block)
{
  return (PetscBool)(block->bs == 1 && block->nvec == 1);
}

/* Which edges of a graph are weak. Entry (r,c), of weight w, is one of the graph where (w / sqrt|d_r|) / sqrt|d_c| is
   above the threshold, d being the diagonal's weights; a zero there, or no entry, counts as the root's inverse 0. */
typedef struct {
  PetscReal threshold;
  PetscBool symmetrize; /* weights are those of |A| + |A|^T, else of |A| */
  PetscBool diagonal;   /* as MatFilter(): entries of the diagonal stay, and what is not a number */
} HybAggFilter;

/* Counts of a filtered graph. An edge is close if its number is so close to the threshold that rounding decides, unless
   weights are exact. */
#define HYB_AGG_CLOSE (sizeof(PetscReal) == sizeof(float) ? 1e-4 : 1e-10)
typedef struct {
  PetscCount nodiagonal; /* rows without an entry of the diagonal */
  PetscCount close;      /* entries beside the diagonal that are close */
  PetscBool  paired;     /* with symmetrize: the pattern is symmetric; if false, nothing more was done */
} HybAggFiltered;

/* Counts of a matrix whose rows and columns were joined to vertices */
typedef struct {
  PetscCount nodiagonal; /* rows of A without an entry of the diagonal */
  PetscBool  aligned;    /* entry k of each row has a column of unknown k modulo bs, as in whole blocks */
  /* some group of bs entries of a row, counted from its first, has columns of several vertices */
  PetscBool broken;
} HybAggCollapsed;

/* Entries look like whole blocks but are not. PETSc takes them for blocks and does not check their vertices. */
static inline PetscBool HybAggStaggered(const HybAggCollapsed *found)
{
  return (PetscBool)(found->aligned && found->broken);
}

#define HYB_AGG_VECTORS 32 /* the most vectors (nvec) */

/* Q R = B, by LAPACK: the m x n block B, stored by columns, m >= n, becomes Q; R, n x n by columns, has zeros below its
   diagonal. Called on the host. */
typedef PetscErrorCode (*HybAggFactor)(void *ctx, PetscInt m, PetscInt n, PetscReal *B, PetscReal *R);

/* All functions round alike on every backend, because sums run along lists in ascending order of vertices. */
typedef struct _HybAggOps {
  PetscErrorCode (*look)(const HybExec *, HybArena *work, const HybCSR *G, HybAggLook *);
  /* place[v] = the position of vertex v in this order of the n vertices whose rows begin at gi; n entries */
  PetscErrorCode (*permutation)(const HybExec *, HybArena *work, PetscInt n, HybAggOrder, const PetscInt *gi, PetscInt *place);
  /* The aggregates of G, whose pattern is symmetric: MISK's of distance 1, or MIS's; longest as in
     the rules. parent and lead from keep, in the workspace's memory. */
  PetscErrorCode (*aggregates)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *G, int hops, HybAggOrder, PetscInt longest, HybAggregates *);
  /* The graph of aggregates: two are joined where members of theirs are; Q->i and Q->j from keep, in the workspace's
     memory, Q->a is NULL */
  PetscErrorCode (*quotient)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *G, const HybAggregates *, const HybAggLists *, HybCSR *Q);
  /* coarse: aggregates of fine's aggregates. fine becomes the aggregates of vertices that follow from it. */
  PetscErrorCode (*compose)(const HybExec *, HybAggregates *fine, const HybAggregates *coarse);
  /* Who belongs to each aggregate of G that was found by so many hops; arrays from keep, in the workspace's memory */
  PetscErrorCode (*lists)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *G, int hops, HybAggOrder, const HybAggregates *, HybAggLists *);
  /* P0 itself: a row of vertex v has the nvec entries of q for parent[v], or none. P0->i, P0->j, P0->a from keep
     (memory exec->result). */
  PetscErrorCode (*unsmoothed)(const HybExec *, HybArena *keep, HybArena *work, const HybAggregates *, const HybAggBlock *, const HybScalar *q, HybCSR *P);
  /* P = P0 - omega D^-1 A P0: a row has nvec entries for all aggregates that its entries of A lead to, zeros too, and
     P0's, to which none leads where A lacks its diagonal; a zero there, or no entry, counts as the inverse 0
     (VecReciprocal()). A may have the rows of the first vertices alone. P->i, P->j, P->a from keep (memory
     exec->result), columns ascending. longest: entries of A's longest row, 0: nobody knows. */
  PetscErrorCode (*smoothed)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt longest, const HybAggregates *, const HybAggBlock *, const HybScalar *q, PetscReal omega, HybCSR *P);

  /* Of several unknowns a vertex. The graph: vertices u and v are joined where any entry of A is in the block of their
     rows and columns. G->i and G->j from keep, in the workspace's memory, G->a is NULL. bs divides A->m and A->n; of
     other processes' vertices there may be columns alone. */
  PetscErrorCode (*collapse)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, HybCSR *G, HybAggCollapsed *);

  /* The tentative prolongator of nvec vectors: b is n*bs x nvec by columns (NULL: column k is 1 in unknown k of each
     vertex, nvec = bs), q the same by rows, 0 where parent is -1, coarse nc*nvec x nvec by columns. Each aggregate's
     rows, in the order of its list, are factored as LAPACK's geqrf and orgqr would, signs too; fewer rows than vectors
     are filled up with zeros. Where a vector depends on those before but for rounding, columns of Q are rounding; where
     a pivot is, their signs are. Of these aggregates factor's result is taken, if it is given; on the host it factors
     all. *doubtful (or NULL): how many there are. One unknown and one vector need no lists and no factor, and none is
     doubtful. */
  PetscErrorCode (*tentative)(const HybExec *, HybArena *work, const HybAggregates *, const HybAggLists *, const HybAggBlock *, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *q, HybScalar *coarse, PetscInt *doubtful);

  /* The graph without weak edges. The weights of the edges between vertices of several unknowns, for G from collapse:
     G->a from keep, the sums of the moduli in each block, row by row, as PETSc's MatCreateGraph() adds them: of complex
     entries of several unknowns those of the real parts. Of other processes' vertices there may be columns alone. */
  PetscErrorCode (*weights)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, HybCSR *G);
  /* What PETSc's GAMG leaves of the graph of W, with the same rounding: W is a matrix of one unknown a vertex, or such
     a graph with its weights. G->i and G->j from keep, in the workspace's memory, G->a is NULL. */
  PetscErrorCode (*filter)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *W, const HybAggFilter *, HybCSR *G, HybAggFiltered *);
  /* the moduli of n numbers, as filter takes them */
  PetscErrorCode (*moduli)(const HybExec *, PetscCount n, const HybScalar *v, PetscReal *modulus);
} HybAggOps;

extern const HybAggOps HybAggHost;

/* nested.c: the aggregates of G by these rules, of any distance, and, if lists is not NULL, who belongs to them. G and
   memory as in `aggregates` and `lists`. */
extern PetscErrorCode HybAggFind(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *G, const HybAggRules *, HybAggregates *, HybAggLists *lists);

/* union.c: the edges of G and T, with G's weights, if it has some, and zeros where T alone has an entry; both->i, j and
   a from keep, in the workspace's memory. T->i and T->j, from work, are given back. Transposed: T is G's transpose. */
extern PetscErrorCode HybAggUnion(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *G, HybCSR *T, HybCSR *both);
extern PetscErrorCode HybAggUnionTransposed(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *G, HybCSR *both);

/* moduli.c: are the backend's moduli PETSc's on this host, to the last bit? Then so are the edges that filter leaves of
   complex numbers. Some thousand numbers are tried. */
extern PetscErrorCode HybAggModuliAlike(const HybExec *, PetscBool *alike);

HYB_EXTERN_C_END
#endif

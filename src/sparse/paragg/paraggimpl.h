/* paraggimpl.h: what the files of this room share */
#ifndef AIJHYBRIDGPU_PARAGGIMPL_H
#define AIJHYBRIDGPU_PARAGGIMPL_H
#include <aijhybridgpu/private/hybparagg.h>
#include "vertex.h"

HYB_EXTERN_C_BEGIN

struct _HybParAgg {
  MPI_Comm    mpi; /* the caller's */
  HybComm     comm;
  HybExec     exec;    /* its result: working memory */
  HybArena    keep;    /* of what follows */
  HybHalo     halo;    /* of the vertices; its ghosts are the graph's */
  PetscBool   lent;    /* it is the caller's */
  HybCSR      G;       /* the graph, see vertex.h */
  PetscInt    longest; /* entries of its longest row; 0: nobody knows */
  PetscBool   whole;   /* its rows of own vertices are A's, D's columns and then O's */
  PetscBool   bare;    /* some vertex with edges, of any process, has none to itself */
  PetscBool   lacks;   /* some own row of A has no diagonal entry */
  PetscInt   *gid, N;
  PetscInt   *ranges, *cranges;         /* of the host: whose vertices, whose aggregates */
  PetscInt    begin, end, cbegin, cend; /* of these this process's */
  int         hops;
  HybAggOrder order;
  PetscBool   again; /* its vertices are another one's aggregates (nested.c) */
  PetscInt    nc;
  PetscInt   *parent, *lead, *first; /* see vertex.h; parent of all */
  /* once they are wanted: others' aggregates that vertices here belong to, names of the host, and of each vertex its
     aggregate by the numbers of this process (HybStepLocal) */
  PetscInt   nlist, *list, *names, *local;
  HybScalar *q;      /* of all; others' come when P is smoothed; of blocks by columns, all rows apart */
  PetscInt  *garray; /* of the last prolongator, of the host */
  /* where a vertex has several unknowns, or there are several vectors */
  HybAggBlock block;
  HybHalo     rowhalo;         /* of the unknowns: all those of the graph's ghosts */
  PetscInt   *rows, *ccolumns; /* of the host: whose unknowns, whose columns of a prolongator */
  /* unknowns of the ghosts; of each column of A's off-diagonal block its number among all unknowns of the ghosts; NULL:
     its own */
  PetscInt  nwide, *wide;
  PetscInt  nbeyond, *beyond; /* ghosts whose edges are the transpose's alone; where the backend executes */
  PetscInt *kind;             /* see vertex.h */
};

/* step.c. Exchange: of a halo. Ghosts: others' part of an array of all vertices,
   by their owners; collective, before: of what this process did since they last agreed. Its error is this process's
   alone until the next sum, which all go on to, or HybCommAgree(). Forget: after an error that is one of all, at once:
   a caller's halo, in which exchanges may have been given up, is to tell nobody of them later. */
extern PetscErrorCode HybParAggExchange(HybParAgg, HybHalo, PetscErrorCode before, size_t unit, const void *array, void *ghost);
extern PetscErrorCode HybParAggGhosts(HybParAgg, PetscErrorCode before, size_t unit, void *array);
extern void           HybParAggForget(HybParAgg);

/* HybEach<Step>(p, n, s): a step of vertex.h, of its first n */
#define HYB_STEP_EACH(Step)                                                                     \
  static inline PetscErrorCode HybEach##Step(HybParAgg p, PetscInt n, HybStep##Step s)          \
  {                                                                                             \
    return n ? p->exec.backend->paragg->each[HYB_STEP_##Step](&p->exec, n, &s) : PETSC_SUCCESS; \
  }
HYB_VERTEX_STEPS(HYB_STEP_EACH)

/* aggregates.c. OfOne: the aggregates of distance 1; collective. OwnColumns: what follows from p->cranges. */
extern PetscErrorCode HybParAggOfOne(HybParAgg, int hops, HybAggOrder, int *sweeps);
extern void           HybParAggOwnColumns(HybParAgg);

/* The graph in the making. Arrays from work. */
typedef struct {
  HybArena            work;
  const HybAggFilter *edges;  /* NULL: none is weak */
  HybParCSR           A;      /* the graph of vertices, in blocks; with weights where edges are weak */
  HybCSR              M, T;   /* rows of own vertices; of others', which have the own ones for columns */
  PetscInt           *perm;   /* entry k of T is entry perm[k] of the off-diagonal block */
  HybScalar          *across; /* see vertex.h; where edges are weak */
} HybParAggMaking;

/* union.c: m->A, the graph of A, becomes its union with its transpose, zeros where it has no entry itself; p->wide,
   p->beyond. Collective. */
extern PetscErrorCode HybParAggUnite(HybParAgg, HybParAggMaking *, const HybParCSR *A);

/* edges.c: the graph without its weak edges. Collective; its answer, found->proper, is this process's alone. */
extern PetscErrorCode HybParAggStrong(HybParAgg, HybParAggMaking *, HybParAggFound *found);

/* vertices.c: V: the graph of A's vertices, in blocks, of as many unknowns as they have, from work, with weights or
   not; *proper: the rules hold for it as far as one process sees. Wide: the off-diagonal block O as W, with columns for
   all unknowns of the ghosts, W->j from work. Not collective. */
extern PetscErrorCode HybParAggVertices(HybParAgg, HybArena *work, const HybParCSR *A, PetscBool weights, HybParCSR *V, PetscBool *proper);
extern PetscErrorCode HybParAggWide(HybParAgg, HybArena *work, const HybCSR *O, HybCSR *W);

/* prolong.c: those of j[0..n-1] outside of begin..end-1, each once, ascending: list where the backend executes, and
   garray, of the host. Not collective. */
extern PetscErrorCode HybParAggOutside(HybParAgg, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt begin, PetscInt end, PetscInt *nlist, PetscInt **list, PetscInt **garray);
/* Of the first n vertices the aggregates: local as HybStepLocal has it, of those of others a list as above.
   Not collective. */
extern PetscErrorCode HybParAggNumber(HybParAgg, HybArena *keep, HybArena *work, PetscInt n, PetscInt *nlist, PetscInt **list, PetscInt **garray, PetscInt **local);
/* S has a row for each aggregate of others that p names, with an entry of v for each own vertex that belongs to it;
   from work. Not collective. */
extern PetscErrorCode HybParAggToOthers(HybParAgg, HybArena *work, const HybScalar *v, HybCSR *S);

HYB_EXTERN_C_END
#endif

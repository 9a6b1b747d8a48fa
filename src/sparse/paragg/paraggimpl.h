/* paraggimpl.h: what the files of this room share */
#ifndef AIJHYBRIDGPU_PARAGGIMPL_H
#define AIJHYBRIDGPU_PARAGGIMPL_H
#include <aijhybridgpu/private/hybparagg.h>
#include "vertex.h"

HYB_EXTERN_C_BEGIN

struct _HybParAgg {
  HybComm    comm;
  HybExec    exec; /* its result: working memory */
  HybArena   keep; /* of what follows */
  HybHalo    halo; /* of the vertices; its ghosts are the graph's */
  HybCSR     G;    /* the graph, see vertex.h */
  PetscInt  *gid, N;
  PetscInt  *ranges, *cranges; /* of the host: whose vertices, whose aggregates */
  int        hops;
  PetscInt   nc;
  PetscInt  *parent, *lead, *first; /* see vertex.h; parent of all */
  HybScalar *q;                     /* of all; others' come when P is smoothed */
  PetscInt  *garray;                /* of the last prolongator, of the host */
};

/* graph.c. Step: with the graph's part filled in. Ghosts: others' part of an array of all vertices, by their owners;
   collective, and its error is this process's alone until the next HybCommAgree(). */
extern HybParAggStep         HybParAggStepOf(HybParAgg);
extern PetscErrorCode        HybParAggGhosts(HybParAgg, size_t unit, void *array);
static inline PetscErrorCode HybParAggEach(HybParAgg p, int step, PetscInt n, const HybParAggStep *s)
{
  return n ? p->exec.backend->paragg->each(&p->exec, step, n, s) : PETSC_SUCCESS;
}

/* prolong.c: the aggregates that the entries of U name, which has a row for each vertex and global numbers of
   aggregates for columns, are numbered: own ones from 0 on, others' behind them, ascending. U->j and U->n change. list
   where the backend executes, from work; garray, the same of the host, from p->keep. Not collective. */
extern PetscErrorCode HybParAggNumber(HybParAgg, HybArena *work, HybCSR *U, PetscInt *nlist, PetscInt **list, PetscInt **garray);

HYB_EXTERN_C_END
#endif

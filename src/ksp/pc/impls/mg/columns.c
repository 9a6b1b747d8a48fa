/*
  columns.c: the cycle for several right-hand sides at once (docs of KSPMatSolve() in src/ksp/ksp/impls/cg/matsolve.c).

  It is the cycle of one right-hand side with other vectors: the same matrices, smoothers' numbers, reciprocals and
  inverse, and a graph of its own. So all that was found out for the one (look.c, build.c) holds for the other. What
  PETSc's own solver does on the coarsest level, single precision and null spaces are left out.

  Memory: the vectors of the one once more for each column, made when a solve of several columns first asks, and given
  back with the cycle's own.
*/
#include "mgimpl.h"
#include "aijhybridgpu/private/hybkrylov.h"

PetscErrorCode HybMGColumnsRelease(HybMG *h)
{
  HybMGColumns  *m    = &h->columns;
  PetscErrorCode ierr = m->cycle.exec.backend ? HybCycleMoved(&m->cycle) : PETSC_SUCCESS;

  PetscFunctionBegin;
  ierr = HybErrorFirst(ierr, HybArenaReset(&m->keep));
  (void)memset(m, 0, sizeof(*m));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool ColumnsCovered(const HybMG *h)
{
  const HybCycle   *c = &h->cycle;
  const HybBackend *b = c->exec.backend;

  if (h->several || !b->device || !b->columns || !b->cycle->columns || !b->krylov->columns || c->single || !c->inverse || c->zeromean || c->zerosum) return PETSC_FALSE;
  for (PetscInt k = 0; k < c->n; k++)
    if (!c->level[k].R.i) return PETSC_FALSE;
  return PETSC_TRUE;
}

PetscErrorCode HybMGColumnsMay(PC pc, PetscBool *may)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  HybMG       *h  = NULL;
  HybExec      x;
  PetscMPIInt  size;

  PetscFunctionBegin;
  *may = PETSC_FALSE;
  PetscCall(HybContainerGet((PetscObject)pc, HYB_MG_NAME, &h));
  if (!h || !mg->levels || !mg->levels[0]->smoothd || !pc->pmat || pc->mat != pc->pmat) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  if (!h->asked) PetscCall(PetscOptionsGetBool(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, "-pc_mg_aijhybridgpu", &h->on, NULL));
  if (size > 1 || !h->on || (h->known && !(h->covered && ColumnsCovered(h)))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatHasMult(pc->pmat, may));
  if (!*may || h->known) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetExec(pc->pmat, &x));
  *may = (PetscBool)(x.backend->device && x.backend->columns);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* vectors for so many columns */
static PetscErrorCode ColumnsReserve(HybMG *h, PetscInt K)
{
  const HybCycle *c = &h->cycle;
  HybMGColumns   *m = &h->columns;

  PetscFunctionBegin;
  if (m->width >= K && m->keep.exec.backend == c->exec.backend) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMGColumnsRelease(h));
  m->keep = HybArenaOn(&c->exec);
  for (PetscInt k = 0; k <= c->n; k++)
    for (int v = k == c->n ? 2 : 0; v < (k ? 4 : 2); v++) PetscCall(HybArenaAlloc(&m->keep, HYB_WORK(&c->exec), (PetscCount)h->size[k] * K, sizeof(HybScalar), &m->v[k][v]));
  m->width = K;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGColumnsBegin(HybMG *h, PetscInt K, HybColumnsSums *left, HybCycle **cycle, PetscBool *may)
{
  HybMGColumns *m = &h->columns;
  HybCycle     *c = &m->cycle, was;

  PetscFunctionBegin;
  *may = ColumnsCovered(h);
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ColumnsReserve(h, K));
  /* the graph names vectors, matrices and kernels */
  if (c->stamp != h->cycle.stamp || c->columns != K) PetscCall(HybCycleMoved(c));
  was        = *c;
  *c         = h->cycle;
  c->graph   = was.graph;
  c->first   = was.first;
  c->applied = was.applied;
  c->wander  = PETSC_FALSE;
  c->columns = K;
  c->left    = left;
  c->lastb = c->lastx = NULL;
  for (PetscInt k = 0; k < c->n; k++) {
    c->level[k].r = m->v[k][0];
    c->level[k].p = m->v[k][1];
    c->level[k].b = m->v[k][2];
    c->level[k].x = m->v[k][3];
  }
  c->b   = m->v[c->n][2];
  c->x   = m->v[c->n][3];
  *cycle = c;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGColumnsEnd(HybMG *h, PetscInt last)
{
  HybCycle *c = &h->columns.cycle;

  PetscFunctionBegin;
  c->left = NULL;
  /* What a smoother may be asked for (rhs.c) is the last column's, as PETSc would leave it: of columns that are all
     written to one place the last one stays */
  for (PetscInt k = 1; k < c->n; k++) PetscCall(c->exec.backend->krylov->columns->scatter(&c->exec, c->columns, last + 1, h->size[k], c->level[k].b, h->cycle.level[k].b, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

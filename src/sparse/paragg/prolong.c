/*
  prolong.c: the prolongator of a distributed matrix, as it is or smoothed, without a parallel product.

  Row r of A P0 names the aggregates of row r's columns: of a column of another process's its aggregate and its entry of
  P0 are all that is needed. Both are told; then agg's smooth.c does the rows of the process as if they were all, with
  the aggregates numbered as they occur here, own ones first.

    tell q; parent was told when aggregates were found
    number the aggregates that the vertices name, if the tentative prolongator has not
    P = P0 - omega D^-1 [D O] P0, rows of this process
    P's own columns, and the others

  Of several unknowns or vectors q is told column by column, of all unknowns of a neighbour's vertices: then an entry's
  vertex is its column divided, as where there is one process.

  Memory: A's rows once more, P twice for a moment; of blocks q by rows besides. Time: O(nnz), a message to each
  neighbour for each vector.
*/
#include "paraggimpl.h"

PetscErrorCode HybParAggOutside(HybParAgg p, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt begin, PetscInt end, PetscInt *nlist, PetscInt **list, PetscInt **garray)
{
  const HybExec *x = &p->exec;

  PetscFunctionBegin;
  PetscCall((*x->backend->local->outsidecolumns)(x, keep, work, n, j, begin, end, nlist, list));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_HOST, *nlist, sizeof(PetscInt), garray));
  if (*nlist)
    PetscCall(x->backend->copy(x, *garray, *list, sizeof(PetscInt) * (size_t)*nlist, HYB_COPY_DEVICE_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggNumber(HybParAgg p, HybArena *keep, HybArena *work, PetscInt n, PetscInt *nlist, PetscInt **list, PetscInt **garray, PetscInt **local)
{
  PetscFunctionBegin;
  PetscCall(HybParAggOutside(p, keep, work, n, p->parent, p->cbegin, p->cend, nlist, list, garray));
  while (*nlist && (*garray)[0] < 0) { /* vertices of no aggregate, which the host lists each time */
    --*nlist;
    ++*list;
    ++*garray;
  }
  PetscCall(HybArenaAlloc(keep, HYB_WORK(&p->exec), n, sizeof(PetscInt), local));
  PetscCall(HybEachLocal(p, n, (HybStepLocal){.cbegin = p->cbegin, .cend = p->cend, .nlist = *nlist, .parent = p->parent, .list = *list, .local = *local}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* but for those that only the transpose's edges lead to */
static PetscErrorCode HybParAggNames(HybParAgg p, HybArena *work)
{
  PetscFunctionBegin;
  if (p->local) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEachBeyond(p, p->nbeyond, (HybStepBeyond){.beyond = p->beyond, .parent = p->parent}));
  PetscCall(HybParAggNumber(p, &p->keep, work, p->G.m, &p->nlist, &p->list, &p->names, &p->local));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggToOthers(HybParAgg p, HybArena *work, const HybScalar *v, HybCSR *S)
{
  const HybExec *x = &p->exec;
  const PetscInt n = p->halo->n;
  HybAggregates  agg;
  HybCSR         U;
  PetscInt      *others, *perm;

  PetscFunctionBegin;
  PetscCall(HybParAggNames(p, work));
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), n, sizeof(PetscInt), &others));
  PetscCall(HybEachWithin(p, n, (HybStepWithin){.begin = p->nc, .end = PETSC_MAX_INT, .from = p->local, .to = others}));
  agg = (HybAggregates){n, p->nlist, others, NULL, 0};
  PetscCall((*x->backend->agg->unsmoothed)(x, work, work, &agg, &(HybAggBlock){1, 1}, v, &U));
  PetscCall((*x->backend->csr->transpose)(x, work, work, &U, PETSC_FALSE, S, &perm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  HybArena work;
  PetscInt nlist; /* aggregates of others, then columns of P for them */
} HybParAggProl;

/* q by rows, of so many vertices; of one vector it is */
static PetscErrorCode HybParAggRowsOfQ(HybParAgg p, HybParAggProl *r, PetscInt n, HybScalar **q)
{
  const PetscInt rows = n * p->block.bs;

  PetscFunctionBegin;
  *q = p->q;
  if (p->block.nvec == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(&p->exec), (PetscCount)rows * p->block.nvec, sizeof(HybScalar), q));
  PetscCall(HybEachToRows(p, rows, (HybStepToRows){.rows = p->G.m * p->block.bs, .nvec = p->block.nvec, .from = p->q, .to = *q}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the rows of A as one matrix, whose pattern the graph may have */
static PetscErrorCode HybParAggJoined(HybParAgg p, HybParAggProl *r, const HybParCSR *A, HybCSR *M)
{
  const HybExec     *x   = &p->exec;
  const HybLocalOps *ops = x->backend->local;
  HybCSR             O;

  PetscFunctionBegin;
  PetscCall(HybParAggWide(p, &r->work, &A->O, &O));
  if (p->whole)
    *M = (HybCSR){A->D.m, p->G.n, A->D.nnz + O.nnz, p->G.i, p->G.j, NULL};
  else
    PetscCall((*ops->mergeblocks)(x, &r->work, &A->D, &O, 0, M));
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(x), M->nnz, sizeof(HybScalar), &M->a));
  PetscCall((*ops->mergevalues)(x, &A->D, &O, 0, M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As PETSc's parallel products take no new entries, its set-up ends with an error where P0 has one that A P0 has not */
static PetscErrorCode HybParAggWithin(HybParAgg p, HybParAggProl *r, const HybCSR *A, const PetscInt *local)
{
  const HybExec *x = &p->exec;
  PetscInt      *flag, *number, outside = 0;

  PetscFunctionBegin;
  if (!p->lacks) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(x), A->m, sizeof(PetscInt), &flag));
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(x), A->m, sizeof(PetscInt), &number));
  PetscCall(HybEachOutside(p, A->m, (HybStepOutside){.bs = p->block.bs, .ai = A->i, .aj = A->j, .local = local, .flag = flag}));
  PetscCall((*x->backend->paragg->number)(x, &r->work, A->m, flag, number, &outside));
  PetscCheck(!outside, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Inserting a new nonzero into the smoothed prolongator: %" PetscInt_FMT " rows without a diagonal entry have none for their own aggregate, where PETSc's set-up on several processes ends with this error too. Use -pc_gamg_agg_nsmooths 0, or store the diagonal", outside);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of P0, which name the aggregates of own vertices, or smoothed, of all, by this process's numbers */
static PetscErrorCode HybParAggRowsOfP(HybParAgg p, HybParAggProl *r, const HybParCSR *A, PetscReal omega, HybCSR *P)
{
  const HybExec   *x   = &p->exec;
  const HybAggOps *ops = x->backend->agg;
  HybAggregates    agg = {.n = A ? p->G.m : p->halo->n};
  PetscInt        *list;
  HybCSR           M;
  HybScalar       *q;

  PetscFunctionBegin;
  if (A) {
    PetscCall(HybParAggNames(p, &r->work));
    r->nlist   = p->nlist;
    p->garray  = p->names;
    agg.parent = p->local;
  } else
    PetscCall(HybParAggNumber(p, &p->keep, &r->work, agg.n, &r->nlist, &list, &p->garray, &agg.parent));
  agg.nc = p->nc + r->nlist;
  PetscCall(HybParAggRowsOfQ(p, r, agg.n, &q));
  if (A) {
    PetscCall(HybParAggJoined(p, r, A, &M));
    PetscCall(HybParAggWithin(p, r, &M, agg.parent));
    PetscCall((*ops->smoothed)(x, &r->work, &r->work, &M, p->whole ? p->longest : 0, &agg, &p->block, q, omega, P));
  } else
    PetscCall((*ops->unsmoothed)(x, &r->work, &r->work, &agg, &p->block, q, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* out[k], csr: the columns of P that map has, of ncols */
static PetscErrorCode HybParAggPart(HybParAgg p, HybParAggProl *r, const HybCSR *P, PetscInt ncols, const PetscInt *map, HybArena *out, HybCSR *csr)
{
  HybExec   x = p->exec;
  PetscInt *perm;

  PetscFunctionBegin;
  x.result = out->exec.result;
  PetscCall((*x.backend->csr->submatrixmapped)(&x, out, &r->work, P, P->m, NULL, ncols, map, PETSC_TRUE, csr, &perm));
  PetscCall(HybArenaAlloc(out, x.result, csr->nnz, sizeof(HybScalar), &csr->a));
  PetscCall((*x.backend->csr->gather)(&x, csr->nnz, perm, PETSC_FALSE, P->a, csr->a));
  PetscCall(HybArenaFree(out, &perm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from aggregates to columns */
static PetscErrorCode HybParAggColumnsOf(HybParAgg p, HybParAggProl *r)
{
  const PetscInt nvec = p->block.nvec, *list = p->garray;
  PetscInt       all;

  PetscFunctionBegin;
  PetscCall(HybIntCast(((PetscCount)p->nc + r->nlist) * nvec, "columns of a part of a prolongator", &all));
  if (nvec == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&p->keep, HYB_MEM_HOST, (PetscCount)r->nlist * nvec, sizeof(PetscInt), &p->garray));
  r->nlist *= nvec;
  for (PetscInt k = 0; k < r->nlist; k++) p->garray[k] = list[k / nvec] * nvec + k % nvec;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggParts(HybParAgg p, HybParAggProl *r, const HybCSR *local, HybArena out[2], HybParCSR *P)
{
  const PetscInt columns = p->nc * p->block.nvec;
  PetscInt       all, *map;

  PetscFunctionBegin;
  PetscCall(HybParAggColumnsOf(p, r));
  all = columns + r->nlist;
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(&p->exec), 2 * (PetscCount)all, sizeof(PetscInt), &map));
  PetscCall(HybEachColumn(p, all, (HybStepColumn){.columns = columns, .own = map, .others = map + all}));
  PetscCall(HybParAggPart(p, r, local, columns, map, &out[0], &P->D));
  PetscCall(HybParAggPart(p, r, local, r->nlist, map + all, &out[1], &P->O));
  P->rows    = p->rows;
  P->columns = p->ccolumns;
  P->garray  = p->garray;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: others' part of q. before: an error of this process's; its error is this process's alone until the next
   HybCommAgree(). */
static PetscErrorCode HybParAggTellQ(HybParAgg p, PetscErrorCode before)
{
  const HybExec *x    = &p->exec;
  const HybHalo  halo = p->rowhalo ? p->rowhalo : p->halo;
  const size_t   rows = (size_t)p->G.m * p->block.bs;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  for (PetscInt t = 0; t < p->block.nvec; t++) {
    HybScalar *q     = ierr ? NULL : p->q + t * rows;
    void      *ghost = NULL;

    ierr = HybParAggExchange(p, halo, ierr, sizeof(HybScalar), q, &ghost);
    if (!ierr && halo->nghost) ierr = x->backend->copy(x, q + halo->n, ghost, sizeof(HybScalar) * (size_t)halo->nghost, HYB_COPY_DEVICE_TO_DEVICE);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggProlongatorIn(HybParAgg p, HybParAggProl *r, PetscErrorCode before, const HybParCSR *A, PetscReal omega, HybArena out[2], HybParCSR *P)
{
  HybCSR         local;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (A) ierr = HybParAggTellQ(p, ierr);
  PetscCall(ierr);
  PetscCall(HybParAggRowsOfP(p, r, A, omega, &local));
  PetscCall(HybParAggParts(p, r, &local, out, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggProlongator(HybParAgg p, PetscErrorCode before, const HybParCSR *A, PetscReal omega, HybArena out[2], HybParCSR *P)
{
  HybParAggProl  r;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&r, sizeof(r)));
  PetscCall(PetscMemzero(P, sizeof(*P)));
  r.work = HybArenaOn(&p->exec);
  ierr   = HybParAggProlongatorIn(p, &r, before, A, omega, out, P);
  ierr   = HybCommAgree(p->comm, HybErrorFirst(ierr, HybArenaReset(&r.work)), "The prolongator of a level");
  if (ierr) HybParAggForget(p);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

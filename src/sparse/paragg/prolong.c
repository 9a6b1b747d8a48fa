/*
  prolong.c: the prolongator of a distributed matrix, as it is or smoothed, without a parallel product.

  Row r of A P0 names the aggregates of row r's columns: of a column of another process's its aggregate and its entry of
  P0 are all that is needed. Both are told; then agg's smooth.c does the rows of the process as if they were all, with
  the aggregates numbered as they occur here, own ones first.

    tell q; parent was told when aggregates were found
    number the aggregates that the vertices name
    P = P0 - omega D^-1 [D O] P0, rows of this process
    P's own columns, and the others

  Of several unknowns or vectors q is told column by column, of all unknowns of a neighbour's vertices: then an entry's
  vertex is its column divided, as where there is one process.

  Memory: A's rows once more, P twice for a moment; of blocks q by rows besides. Time: O(nnz), a message to each
  neighbour for each vector.
*/
#include "paraggimpl.h"

PetscErrorCode HybParAggOutside(HybParAgg p, HybArena *work, HybArena *host, const HybCSR *U, PetscInt begin, PetscInt end, PetscInt *nlist, PetscInt **list, PetscInt **garray)
{
  const HybExec *x = &p->exec;

  PetscFunctionBegin;
  PetscCall((*x->backend->csr->outsidecolumns)(x, work, work, U->nnz, U->j, begin, end, nlist, list));
  PetscCall(HybArenaAlloc(host, HYB_MEM_HOST, *nlist, sizeof(PetscInt), garray));
  if (*nlist) {
    PetscCall(x->backend->copy(x, *garray, *list, sizeof(PetscInt) * (size_t)*nlist, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(x->backend->sync(x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggNumber(HybParAgg p, HybArena *work, PetscInt n, const HybScalar *v, HybCSR *U, PetscInt *nlist, PetscInt **list, PetscInt **garray)
{
  const HybExec      *x     = &p->exec;
  const HybAggregates agg   = {n, p->cranges[p->comm->size], p->parent, NULL, 0};
  const PetscInt      begin = p->cranges[p->comm->rank], end = p->cranges[p->comm->rank + 1];
  HybParAggStep       s = HybParAggStepOf(p);

  PetscFunctionBegin;
  PetscCall((*x->backend->agg->unsmoothed)(x, work, work, &agg, v, U));
  PetscCall(HybParAggOutside(p, work, &p->keep, U, begin, end, nlist, list, garray));
  s.nlist = *nlist;
  s.list  = *list;
  s.local = U->j;
  PetscCall(HybParAggEach(p, HYB_STEP_NUMBER, (PetscInt)U->nnz, &s));
  U->n = end - begin + *nlist;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggToOthers(HybParAgg p, HybArena *work, const HybScalar *v, HybCSR *S, PetscInt *nlist, PetscInt **list, PetscInt **garray)
{
  const HybExec   *x   = &p->exec;
  const HybCSROps *ops = x->backend->csr;
  HybCSR           U, T;
  const HybCSR    *piece = &T;
  PetscInt         begin, end, *perm;
  PetscCount       first, place[2];

  PetscFunctionBegin;
  PetscCall(HybParAggNumber(p, work, p->halo->n, v, &U, nlist, list, garray));
  PetscCall((*ops->transpose)(x, work, work, &U, PETSC_FALSE, &T, &perm));
  begin = p->nc;
  end   = p->nc + *nlist;
  PetscCall((*ops->stackrows)(x, work, 1, &piece, &begin, &end, S, &first, place));
  S->a = T.a ? T.a + first : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  HybArena      work;
  HybParAggStep s;
} HybParAggProl;

/* rows of P0, of so many vertices, with this process's numbers for columns; of blocks a column stands for all of an
   aggregate's */
static PetscErrorCode HybParAggUnsmoothed(HybParAgg p, HybParAggProl *r, PetscInt n, HybCSR *U)
{
  PetscFunctionBegin;
  PetscCall(HybParAggNumber(p, &r->work, n, p->q, U, &r->s.nlist, (PetscInt **)&r->s.list, &p->garray));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the aggregates of so many vertices by this process's numbers */
static PetscErrorCode HybParAggLocal(HybParAgg p, HybParAggProl *r, PetscInt n, HybAggregates *agg)
{
  HybParAggStep *s = &r->s;
  HybCSR         U;

  PetscFunctionBegin;
  PetscCall(HybParAggUnsmoothed(p, r, n, &U));
  s->pi = U.i;
  s->pj = U.j;
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(&p->exec), n, sizeof(PetscInt), &s->local));
  PetscCall(HybParAggEach(p, HYB_STEP_LOCAL, n, s));
  *agg = (HybAggregates){n, U.n, s->local, NULL, 0};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* q by rows, of so many vertices */
static PetscErrorCode HybParAggRowsOfQ(HybParAgg p, HybParAggProl *r, PetscInt n, HybScalar **q)
{
  HybParAggStep  s    = HybParAggStepOf(p);
  const PetscInt rows = n * p->block.bs;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(&p->exec), (PetscCount)rows * p->block.nvec, sizeof(HybScalar), q));
  s.from = p->q;
  s.to   = *q;
  s.rows = s.all * p->block.bs;
  PetscCall(HybParAggEach(p, HYB_STEP_TOROWS, rows, &s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggUnsmoothedBlocks(HybParAgg p, HybParAggProl *r, HybCSR *P)
{
  const HybExec *x = &p->exec;
  HybAggregates  agg;
  HybScalar     *q;

  PetscFunctionBegin;
  PetscCall(HybParAggLocal(p, r, r->s.n, &agg));
  PetscCall(HybParAggRowsOfQ(p, r, r->s.n, &q));
  PetscCall((*x->backend->agg->unsmoothedblocks)(x, &r->work, &r->work, &agg, &p->block, q, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggSmoothed(HybParAgg p, HybParAggProl *r, const HybParCSR *A, PetscReal omega, HybCSR *P)
{
  const HybExec   *x   = &p->exec;
  const HybCSROps *ops = x->backend->csr;
  HybParAggStep    s   = HybParAggStepOf(p);
  HybAggregates    agg;
  HybCSR           O, M;
  HybScalar       *q;

  PetscFunctionBegin;
  s.list = p->beyond;
  PetscCall(HybParAggEach(p, HYB_STEP_BEYOND, p->nbeyond, &s));
  PetscCall(HybParAggLocal(p, r, r->s.all, &agg));
  PetscCall(HybParAggWide(p, &r->work, &A->O, &O));
  PetscCall((*ops->mergeblocks)(x, &r->work, &A->D, &O, 0, &M));
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(x), M.nnz, sizeof(HybScalar), &M.a));
  PetscCall((*ops->mergevalues)(x, &A->D, &O, 0, &M));
  if (HybParAggIsScalar(p)) {
    PetscCall((*x->backend->agg->smoothed)(x, &r->work, &r->work, &M, 0, &agg, p->q, omega, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybParAggRowsOfQ(p, r, r->s.all, &q));
  PetscCall((*x->backend->agg->smoothedblocks)(x, &r->work, &r->work, &M, &agg, &p->block, q, omega, P));
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
  PetscCall(HybIntCast(((PetscCount)p->nc + r->s.nlist) * nvec, "columns of a part of a prolongator", &all));
  r->s.columns = p->nc * nvec;
  if (nvec == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&p->keep, HYB_MEM_HOST, (PetscCount)r->s.nlist * nvec, sizeof(PetscInt), &p->garray));
  r->s.nlist *= nvec;
  for (PetscInt k = 0; k < r->s.nlist; k++) p->garray[k] = list[k / nvec] * nvec + k % nvec;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggParts(HybParAgg p, HybParAggProl *r, const HybCSR *local, HybArena out[2], HybParCSR *P)
{
  HybParAggStep *s = &r->s;
  PetscInt       all;

  PetscFunctionBegin;
  PetscCall(HybParAggColumnsOf(p, r));
  all = s->columns + s->nlist;
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(&p->exec), 2 * (PetscCount)all, sizeof(PetscInt), &s->local));
  PetscCall(HybParAggEach(p, HYB_STEP_COLUMN, all, s));
  PetscCall(HybParAggPart(p, r, local, s->columns, s->local, &out[0], &P->D));
  PetscCall(HybParAggPart(p, r, local, s->nlist, s->local + all, &out[1], &P->O));
  P->rows    = p->rows;
  P->columns = p->ccolumns;
  P->garray  = p->garray;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: others' part of q. Its error is this process's alone until the next HybCommAgree(). */
static PetscErrorCode HybParAggTellQ(HybParAgg p)
{
  const HybExec *x    = &p->exec;
  const HybHalo  halo = p->rowhalo ? p->rowhalo : p->halo;
  const size_t   rows = (size_t)p->G.m * p->block.bs;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  halo->early = PETSC_TRUE;
  for (PetscInt t = 0; t < p->block.nvec; t++) {
    HybScalar *q     = p->q + t * rows;
    void      *ghost = NULL;

    ierr = HybHaloExchange(halo, x, sizeof(HybScalar), q, PETSC_FALSE, &ghost);
    if (!ierr && halo->nghost) ierr = x->backend->copy(x, q + halo->n, ghost, sizeof(HybScalar) * (size_t)halo->nghost, HYB_COPY_DEVICE_TO_DEVICE);
    if (t < p->block.nvec - 1) ierr = HybCommAgree(p->comm, ierr, "The entries of a tentative prolongator");
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggProlongatorIn(HybParAgg p, HybParAggProl *r, PetscErrorCode before, const HybParCSR *A, PetscReal omega, HybArena out[2], HybParCSR *P)
{
  HybCSR         local;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybCommAgree(p->comm, before, "A matrix whose prolongator is to be smoothed"));
  ierr = A ? HybParAggTellQ(p) : PETSC_SUCCESS;
  r->s = HybParAggStepOf(p);
  if (!ierr && A)
    ierr = HybParAggSmoothed(p, r, A, omega, &local);
  else if (!ierr)
    ierr = HybParAggIsScalar(p) ? HybParAggUnsmoothed(p, r, r->s.n, &local) : HybParAggUnsmoothedBlocks(p, r, &local);
  if (!ierr) ierr = HybParAggParts(p, r, &local, out, P);
  PetscCall(HybCommAgree(p->comm, ierr, "The prolongator of a level"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggProlongator(HybParAgg p, PetscErrorCode before, const HybParCSR *A, PetscReal omega, HybArena out[2], HybParCSR *P)
{
  HybParAggProl  r;
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&r, sizeof(r)));
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscCall(HybArenaInit(&r.work, &p->exec));
  ierr  = HybParAggProlongatorIn(p, &r, before, A, omega, out, P);
  later = HybArenaReset(&r.work);
  PetscCall(ierr);
  PetscCall(HybCommAgree(p->comm, later, "Memory for a prolongator"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

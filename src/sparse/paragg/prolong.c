/*
  prolong.c: the prolongator of a distributed matrix, as it is or smoothed, without a parallel product.

  Row r of A P0 names the aggregates of row r's columns: of a column of another process's its aggregate and its entry of
  P0 are all that is needed. Both are told; then agg's smooth.c does the rows of the process as if they were all, with
  the aggregates numbered as they occur here, own ones first.

    tell q; parent was told when aggregates were found
    number the aggregates that the vertices name
    P = P0 - omega D^-1 [D O] P0, rows of this process
    P's own columns, and the others

  Memory: A's rows once more, P twice for a moment. Time: O(nnz), a message to each neighbour.
*/
#include "paraggimpl.h"

PetscErrorCode HybParAggNumber(HybParAgg p, HybArena *work, HybCSR *U, PetscInt *nlist, PetscInt **list, PetscInt **garray)
{
  const HybExec   *x     = &p->exec;
  const HybCSROps *ops   = x->backend->csr;
  const PetscInt   begin = p->cranges[p->comm->rank], end = p->cranges[p->comm->rank + 1];
  HybParAggStep    s = HybParAggStepOf(p);

  PetscFunctionBegin;
  PetscCall((*ops->outsidecolumns)(x, work, work, U->nnz, U->j, begin, end, nlist, list));
  PetscCall(HybArenaAlloc(&p->keep, HYB_MEM_HOST, *nlist, sizeof(PetscInt), garray));
  if (*nlist) {
    PetscCall(x->backend->copy(x, *garray, *list, sizeof(PetscInt) * (size_t)*nlist, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(x->backend->sync(x));
  }
  s.nlist = *nlist;
  s.list  = *list;
  s.local = U->j;
  PetscCall(HybParAggEach(p, HYB_STEP_NUMBER, (PetscInt)U->nnz, &s));
  U->n = end - begin + *nlist;
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  HybArena      work;
  HybParAggStep s;
} HybParAggProl;

/* rows of P0, of so many vertices, with this process's numbers for columns */
static PetscErrorCode HybParAggUnsmoothed(HybParAgg p, HybParAggProl *r, PetscInt n, HybCSR *U)
{
  const HybAggregates agg = {n, p->cranges[p->comm->size], p->parent, NULL, 0};

  PetscFunctionBegin;
  PetscCall((*p->exec.backend->agg->unsmoothed)(&p->exec, &r->work, &r->work, &agg, p->q, U));
  PetscCall(HybParAggNumber(p, &r->work, U, &r->s.nlist, (PetscInt **)&r->s.list, &p->garray));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggSmoothed(HybParAgg p, HybParAggProl *r, const HybParCSR *A, PetscReal omega, HybCSR *P)
{
  const HybExec   *x   = &p->exec;
  const HybCSROps *ops = x->backend->csr;
  HybParAggStep   *s   = &r->s;
  HybAggregates    agg;
  HybCSR           U, M;

  PetscFunctionBegin;
  PetscCall(HybParAggUnsmoothed(p, r, s->all, &U));
  s->pi = U.i;
  s->pj = U.j;
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(x), s->all, sizeof(PetscInt), &s->local));
  PetscCall(HybParAggEach(p, HYB_STEP_LOCAL, s->all, s));
  PetscCall((*ops->mergeblocks)(x, &r->work, &A->D, &A->O, 0, &M));
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(x), M.nnz, sizeof(HybScalar), &M.a));
  PetscCall((*ops->mergevalues)(x, &A->D, &A->O, 0, &M));
  agg = (HybAggregates){s->all, U.n, s->local, NULL, 0};
  PetscCall((*x->backend->agg->smoothed)(x, &r->work, &r->work, &M, &agg, p->q, omega, P));
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

static PetscErrorCode HybParAggParts(HybParAgg p, HybParAggProl *r, const HybCSR *local, HybArena out[2], HybParCSR *P)
{
  HybParAggStep *s   = &r->s;
  PetscInt       all = p->nc + s->nlist;

  PetscFunctionBegin;
  s->columns = p->nc;
  PetscCall(HybArenaAlloc(&r->work, HYB_WORK(&p->exec), 2 * (PetscCount)all, sizeof(PetscInt), &s->local));
  PetscCall(HybParAggEach(p, HYB_STEP_COLUMN, all, s));
  PetscCall(HybParAggPart(p, r, local, p->nc, s->local, &out[0], &P->D));
  PetscCall(HybParAggPart(p, r, local, s->nlist, s->local + all, &out[1], &P->O));
  P->rows    = p->ranges;
  P->columns = p->cranges;
  P->garray  = p->garray;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggProlongatorIn(HybParAgg p, HybParAggProl *r, PetscErrorCode before, const HybParCSR *A, PetscReal omega, HybArena out[2], HybParCSR *P)
{
  HybCSR         local;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybCommAgree(p->comm, before, "A matrix whose prolongator is to be smoothed"));
  ierr = A ? HybParAggGhosts(p, sizeof(HybScalar), p->q) : PETSC_SUCCESS;
  r->s = HybParAggStepOf(p);
  if (!ierr) ierr = A ? HybParAggSmoothed(p, r, A, omega, &local) : HybParAggUnsmoothed(p, r, r->s.n, &local);
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

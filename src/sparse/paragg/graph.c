/*
  graph.c: the graph of a distributed matrix as one process needs it, and whether the rules hold for it.

  A process has the rows of its vertices. Two steps from one of them may lead through another process's vertex, whose
  row would have to be fetched; but of that row only own vertices matter here, and where the pattern is symmetric these
  are the columns of the off-diagonal block:

    rows of own vertices     the diagonal block's columns, then the off-diagonal one's
    rows of others' ones     the off-diagonal block, transposed

  The symmetry within the diagonal block is looked at by agg; that between processes by sending the transposed
  off-diagonal block to the owners of its rows, each of whom must find every entry in its own off-diagonal block, and
  get as many as it has.

  Where vertices have several unknowns, the blocks are those of vertices.c; where the transpose is added, of union.c.
  Where weak edges are to be left out, edges.c makes the graph, and looks at what is left; what others send has values
  then.

  Memory: two times the pattern for a moment, once afterwards. Time: O(nnz), a message to each neighbour each way.
*/
#include "paraggimpl.h"

/* M, T, and without weak edges the graph */
static PetscErrorCode HybParAggGraph(HybParAgg p, HybParAggMaking *m)
{
  const HybExec     *x        = &p->exec;
  const HybCSROps   *ops      = x->backend->csr;
  const HybLocalOps *local    = x->backend->local;
  const HybParCSR   *A        = &m->A;
  const PetscInt     begin[2] = {0, 0}, end[2] = {A->D.m, A->O.n};
  const HybCSR      *piece[2];
  PetscCount         first[2], place[3];
  HybCSR             wide;

  PetscFunctionBegin;
  PetscCheck(A->D.m == A->D.n && A->D.m == A->O.m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph has as many rows as columns, not %" PetscInt_FMT " and %" PetscInt_FMT, A->D.m, A->D.n);
  PetscCall((*local->mergeblocks)(x, &m->work, &A->D, &A->O, 0, &m->M));
  PetscCall((*ops->transposesymbolic)(x, &m->work, &m->work, &A->O, &m->T, &m->perm));
  if (m->edges) {
    p->G.m = m->M.n; /* how many vertices there are */
    PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), m->T.nnz, sizeof(HybScalar), &m->T.a));
    PetscCall((*ops->gather)(x, m->T.nnz, m->perm, PETSC_FALSE, A->O.a, m->T.a));
    PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), A->O.nnz, sizeof(HybScalar), &m->across));
  } else {
    wide     = m->T;
    wide.n   = m->M.n;
    piece[0] = &m->M;
    piece[1] = &wide;
    PetscCall((*local->stackrows)(x, &p->keep, 2, piece, begin, end, &p->G, first, place));
    PetscCall(HybArenaFree(&m->work, &m->M.i, &m->M.j));
  }
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), p->G.m, sizeof(PetscInt), &p->gid));
  PetscCall((*local->sequence)(x, A->D.m, p->begin, p->gid));
  if (A->O.n) PetscCall(x->backend->copy(x, p->gid + A->D.m, A->garray, sizeof(PetscInt) * (size_t)A->O.n, HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* are the rows that others sent, R, those of the off-diagonal block? */
static PetscErrorCode HybParAggMatch(HybParAgg p, HybParAggMaking *m, const HybCSR *R, PetscBool *match)
{
  const HybExec   *x = &p->exec;
  const HybParCSR *A = &m->A;
  PetscInt        *flag, *number, missing = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), R->m, sizeof(PetscInt), &flag));
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), R->m, sizeof(PetscInt), &number));
  PetscCall(HybEachMatch(p, R->m, (HybStepMatch){.ri = R->i, .rj = R->j, .row = p->halo->there, .oi = A->O.i, .oj = A->O.j, .garray = p->gid + A->D.m, .ra = R->a, .flag = flag, .across = m->across}));
  if (R->m) PetscCall((*x->backend->paragg->number)(x, &m->work, R->m, flag, number, &missing));
  *match = (PetscBool)(!missing && R->nnz == A->O.nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, and so are its answers: *proper and p->bare, what this process has seen before, and what all have */
static PetscErrorCode HybParAggAll(HybParAgg p, PetscBool *proper)
{
  PetscInt64 seen[2] = {!*proper, p->bare};

  PetscFunctionBegin;
  PetscCall(HybAgreeMax(p->comm->mpi, PETSC_SUCCESS, "", 2, seen));
  *proper = (PetscBool)!seen[0];
  p->bare = (PetscBool)(seen[1] != 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective; errors are agreed upon. *proper: of what this process has seen before. */
static PetscErrorCode HybParAggLook(HybParAgg p, HybParAggMaking *m, PetscBool *proper)
{
  const HybExec *x = &p->exec;
  HybCSR         R;
  HybRows        rows;
  HybAggLook     look  = {0, 0, 0, 0, PETSC_TRUE};
  PetscBool      match = PETSC_FALSE;
  PetscErrorCode ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  /* at the graph, whose two parts between processes are each other's transposes: it is symmetric where the diagonal
     block is, and no row of others has an entry of the diagonal */
  if (m->A.D.m && !m->edges) {
    ierr       = (*x->backend->agg->look)(x, &m->work, &p->G, &look);
    p->bare    = (PetscBool)(look.nodiagonal > m->A.O.n);
    p->lacks   = (PetscBool)(p->lacks || p->bare);
    p->longest = look.longest;
  }
  /* the global numbers of T's columns are the first ones of gid */
  ierr = HybRowsMove(p->comm, x, ierr, 1, &(HybRowsWish){p->halo, PETSC_TRUE, &m->work, &m->T, NULL, p->gid, p->N, PETSC_TRUE, &R, &rows});
  if (!ierr) ierr = HybParAggMatch(p, m, &R, &match);
  PetscCall(HybCommAgree(p->comm, HybErrorFirst(ierr, HybRowsDestroy(&rows)), "The edges of a graph between processes"));
  if (!look.symmetric || !match) *proper = PETSC_FALSE;
  PetscCall(HybParAggAll(p, proper));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggBegin(HybParAgg p, PetscErrorCode before, const HybParCSR *A)
{
  const PetscInt bs = p->block.bs;

  PetscFunctionBegin;
  PetscCall(before);
  PetscCheck(p->exec.backend->paragg && p->exec.backend->paragg->each && p->exec.backend->agg, PETSC_COMM_SELF, PETSC_ERR_SUP, "The %s backend has no aggregation on several processes", p->exec.backend->name);
  PetscCheck(bs > 0 && p->block.nvec > 0 && p->block.nvec <= HYB_AGG_VECTORS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Vertices of %" PetscInt_FMT " unknowns, and %" PetscInt_FMT " near-null vectors, of which there are 1 to %d", bs, p->block.nvec, HYB_AGG_VECTORS);
  PetscCall(HybArenaAlloc(&p->keep, HYB_MEM_HOST, (PetscCount)p->comm->size + 1, sizeof(PetscInt), &p->ranges));
  PetscCall(HybArenaAlloc(&p->keep, HYB_MEM_HOST, (PetscCount)p->comm->size + 1, sizeof(PetscInt), &p->rows));
  for (PetscMPIInt r = 0; r <= p->comm->size; r++) {
    PetscCheck(A->rows[r] % bs == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Vertices of %" PetscInt_FMT " unknowns, and a process whose rows begin at %" PetscInt_FMT, bs, A->rows[r]);
    p->rows[r]   = A->rows[r];
    p->ranges[r] = A->rows[r] / bs;
  }
  p->N     = p->ranges[p->comm->size];
  p->begin = p->ranges[p->comm->rank];
  p->end   = p->ranges[p->comm->rank + 1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the halo of all unknowns of the graph's ghosts */
static PetscErrorCode HybParAggRowHalo(HybParAgg p, HybArena *work, const HybParCSR *V)
{
  const PetscInt bs    = p->block.bs;
  PetscInt      *ghost = NULL, n;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybIntCast(((PetscCount)V->D.m + V->O.n) * bs, "unknowns of a process and its neighbours", &n);
  if (!ierr) ierr = HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)V->O.n * bs, sizeof(PetscInt), &ghost);
  for (PetscInt k = 0; k < V->O.n * bs && !ierr; k++) ghost[k] = V->garray[k / bs] * bs + k % bs;
  PetscCall(HybHaloCreate(p->comm, &p->exec, ierr, p->rows, V->O.n * bs, ghost, PETSC_FALSE, &p->rowhalo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggMake(HybParAgg p, HybParAggMaking *m, PetscErrorCode before, const HybParCSR *A, HybHalo halo, PetscBool unite, HybParAggFound *found)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr          = HybParAggBegin(p, before, A);
  found->proper = PETSC_TRUE;
  m->A          = *A;
  p->whole      = (PetscBool)(p->block.bs == 1 && !unite && !m->edges);
  if (!ierr && p->block.bs > 1) ierr = HybParAggVertices(p, &m->work, A, (PetscBool) !!m->edges, &m->A, &found->proper);
  PetscCall(HybCommAgree(p->comm, ierr, "A graph's description"));
  if (unite) PetscCall(HybParAggUnite(p, m, A));
  if (halo && !unite && p->block.bs == 1) {
    p->halo = halo;
    p->lent = PETSC_TRUE;
  } else
    PetscCall(HybHaloCreate(p->comm, &p->exec, PETSC_SUCCESS, p->ranges, m->A.O.n, m->A.garray, PETSC_FALSE, &p->halo));
  if (p->block.bs > 1) PetscCall(HybParAggRowHalo(p, &m->work, &m->A));
  PetscCall(HybCommAgree(p->comm, HybParAggGraph(p, m), "A graph"));
  PetscCall(HybParAggLook(p, m, &found->proper));
  if (!m->edges || !found->proper) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggStrong(p, m, found));
  PetscCall(HybParAggAll(p, &found->proper));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggCreate(MPI_Comm mpi, const HybExec *exec, PetscErrorCode before, const HybParCSR *A, HybHalo halo, const HybAggBlock *block, PetscBool unite, const HybAggFilter *edges, HybParAggFound *found, HybParAgg *agg)
{
  HybParAgg       p    = NULL;
  HybComm         comm = NULL;
  HybParAggMaking m;
  PetscErrorCode  ierr, later;

  PetscFunctionBegin;
  *agg = NULL;
  PetscCall(PetscMemzero(found, sizeof(*found)));
  PetscCall(PetscMemzero(&m, sizeof(m)));
  m.edges = edges;
  ierr    = HybCommGet(mpi, &comm); /* first: it counts PETSc's tags, of which all must have taken as many */
  if (!ierr) ierr = PetscNew(&p);
  ierr = HybAgree(mpi, ierr, "Memory for a graph");
  if (ierr) {
    (void)PetscFree(p);
    if (comm) (void)HybCommRestore(&comm);
  }
  PetscCall(ierr);
  p->mpi         = mpi;
  p->comm        = comm;
  p->block       = *block;
  p->exec        = *exec;
  p->exec.result = HYB_WORK(exec);
  p->keep        = HybArenaOn(&p->exec);
  m.work         = HybArenaOn(&p->exec);
  ierr           = HybParAggMake(p, &m, before, A, halo, unite, found);
  later          = HybArenaReset(&m.work);
  if (!ierr) ierr = HybCommAgree(comm, later, "Memory for a graph");
  if (ierr) {
    HybParAggForget(p);
    (void)HybParAggDestroy(&p);
  }
  PetscCall(ierr);
  *agg = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggDestroy(HybParAgg *agg)
{
  HybParAgg      p = *agg;
  PetscErrorCode ierr[4];

  PetscFunctionBegin;
  *agg = NULL;
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  if (p->lent) p->halo = NULL; /* after an error it may be gone */
  ierr[0] = HybHaloDestroy(&p->halo);
  ierr[1] = HybHaloDestroy(&p->rowhalo);
  ierr[2] = HybArenaReset(&p->keep);
  ierr[3] = HybCommRestore(&p->comm);
  PetscCall(PetscFree(p));
  for (int k = 0; k < 4; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

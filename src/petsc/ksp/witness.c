/*
  By which rules does PETSc coarsen this level? The options that say so (smoothing steps, levels of aggressive
  coarsening and how, order of vertices, ...) are in a private struct that moves between releases, and what they mean
  moves too. So PETSc is asked by an example: its own functions coarsen a graph of 64 vertices and make its
  prolongator, under the same options on the same level, and what comes out is compared with what our rules give. The
  graph is irregular enough that other rules give other aggregates. If they agree, the options are those that our
  rules are for; if not, or if a later PETSc does otherwise, the level is left to PETSc.

    A = a small matrix of the level's type
    creategraph(A), coarsen     -> lists; the same aggregates and first vertices as by which of our rules?
    prolongator(A, lists), of several unknowns a vertex or several near-null vectors -> P0 and the next level's vectors;
    the same as ours, signs too?
    optprolongator(A, P0) with the eigenvalue given -> P0 as it is: no smoothing; or our smoothed P0: one step; or
    that smoothed again, so many times; or none of these

  The example has as many unknowns a vertex and as many vectors as the level. Of the entries between two vertices one is
  stored, so that PETSc has to join the rows of a vertex to see the graph.

  Up to 3.26 what depends on the level is whether it is one of the first, which are coarsened more aggressively. So
  PETSc is asked until its answer has changed, level.c, and how often it smooths is asked once in a set-up.

  Where the level has a threshold, or edges of one direction, a second example of few vertices says which edges PETSc's
  creategraph leaves: some are above the example's threshold, or below, or equal to it, some on one side alone unless
  the transpose is added, and a diagonal is zero. One is so little above it that it is below where some of the unknowns
  alone are to count: all entries of a block between two vertices weigh the same, a vertex's own block weighs on its
  diagonal, so of k among bs unknowns the scaled weight is k/bs of the whole one. The first example is then coarsened
  without a threshold.

  Vectors of the example are the host's: PETSc's first operations with device vectors load libraries, and each has
  page-locked memory.

  What PETSc's functions leave in the PC is put back. That they read their options and remember their MatCoarsen is
  wanted: a program that asks which options were used, or looks at the PC, sees what it always sees.
*/
#include "../../ksp/pc/impls/gamg/gamgimpl.h"
#include "aijhybridgpu/private/hybcsrcopy.h"

#if HYB_GAMG

  #define WITNESS_N         64
  #define WITNESS_ALONE     13 /* the vertex without neighbours */
  #define WITNESS_EMAX      2.5
  #define WITNESS_SMOOTHS   8  /* steps of smoothing, at most */
  #define WITNESS_DISTANCES 3  /* of MISK: of more the example's aggregates are all one, whatever the order */
  #define WITNESS_EDGES     8  /* vertices of the second example */
  #define WITNESS_MOST      32 /* and their unknowns */
  #define WITNESS_LIMIT     0.25
  /* by which QR factorizations and smoothed entries may differ, other signs and steps differ by more than 1e-3; the
     weights of the second example are multiples of UNIT, so that their sums are exact */
  #if PetscDefined(USE_REAL_SINGLE)
    #define WITNESS_QR   2e-4
    #define WITNESS_TOL  1e-5
    #define WITNESS_UNIT (1.0 / (1 << 16))
  #else
    #define WITNESS_QR   1e-9
    #define WITNESS_TOL  1e-12
    #define WITNESS_UNIT (1.0 / (1 << 24))
  #endif

/* A path with chords: degrees from 2 to 6, distances up to nine edges */
static PetscBool HybWitnessEdge(PetscInt u, PetscInt v)
{
  const PetscInt a = PetscMin(u, v), b = PetscMax(u, v);

  if (a == WITNESS_ALONE || b == WITNESS_ALONE) return PETSC_FALSE;
  if (b - a <= 1) return PETSC_TRUE;
  if (a % 3 == 1 && b == (a * a + 7) % WITNESS_N) return PETSC_TRUE;
  return (PetscBool)(a % 11 == 2 && (b - a) % 9 == 4);
}

/* times i, where there is such a number */
static PetscScalar HybWitnessImaginary(PetscReal a)
{
  #if PetscDefined(USE_COMPLEX)
  return a * PETSC_i;
  #else
  return 0 * a;
  #endif
}

/* entry of row r and column c, bs unknowns a vertex; 0: not stored */
static PetscScalar HybWitnessEntry(PetscInt bs, PetscInt r, PetscInt c)
{
  const PetscInt v = r / bs, u = c / bs;

  if (r == c) return 9.0 + r % 3 + HybWitnessImaginary(0.5 * (r % 2));
  if (u == v) return (c - r == 1 || r - c == 1) && bs > 1 ? 0.25 : 0;
  if (!HybWitnessEdge(u, v) || r % bs != (v + 2 * u) % bs || c % bs != (u + 2 * v) % bs) return 0;
  return -1.0 - (u * v) % 7 / 4.0 + HybWitnessImaginary((u + v) % 3 / 4.0);
}

static PetscErrorCode HybWitnessCSR(HybArena *arena, PetscInt bs, HybCSR *A)
{
  const PetscInt most = WITNESS_N * WITNESS_N + 3 * WITNESS_N * bs;
  PetscInt       nz   = 0;

  PetscFunctionBegin;
  A->m = A->n = WITNESS_N * bs;
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, (PetscCount)A->m + 1, sizeof(*A->i), &A->i));
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, most, sizeof(*A->j), &A->j));
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, most, sizeof(*A->a), &A->a));
  A->i[0] = 0;
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt u = 0; u < WITNESS_N; u++) { /* one column of another vertex's, all of its own */
      const PetscInt v = r / bs, first = u == v ? u * bs : u * bs + (u + 2 * v) % bs, last = u == v ? u * bs + bs : first + 1;

      for (PetscInt c = first; c < last; c++) {
        const PetscScalar a = HybWitnessEntry(bs, r, c);

        if (a == 0) continue;
        A->j[nz]   = c;
        A->a[nz++] = a;
      }
    }
    A->i[r + 1] = nz;
  }
  A->nnz = nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of A's type with a copy of these arrays, of blocks of rbs rows and cbs columns */
static PetscErrorCode HybWitnessMat(Mat A, const HybCSR *csr, PetscInt rbs, PetscInt cbs, Mat *W)
{
  HybCSR         copy;
  PetscErrorCode ierr;
  HybArena       arrays = HybArenaOn(&HybExecHost);

  PetscFunctionBegin;
  ierr = HybCSRCopy(&HybExecHost, &arrays, HYB_MEM_HOST, csr, PETSC_TRUE, HYB_COPY_HOST_TO_HOST, &copy);
  if (!ierr) ierr = HybMatCreateFromCSR(A, &HybExecHost, &arrays, &copy, rbs, cbs, W);
  (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do PETSc's lists say the same? Their order is that of aggregates, whichever vertices they are kept at. */
static PetscErrorCode HybWitnessSame(PetscCoarsenData *lists, const HybAggregates *agg, PetscBool *same)
{
  PetscInt c = 0, members = 0;

  PetscFunctionBegin;
  for (PetscInt v = 0; v < WITNESS_N; v++) members -= agg->parent[v] >= 0;
  *same = PETSC_TRUE;
  for (PetscInt v = 0; v < WITNESS_N && *same; v++) {
    PetscCDIntNd *pos;
    PetscBool     first = PETSC_TRUE;

    PetscCall(PetscCDGetHeadPos(lists, v, &pos));
    if (!pos) continue;
    for (; pos && *same; first = PETSC_FALSE, members++) {
      PetscInt id;

      PetscCall(PetscCDIntNdGetID(pos, &id));
      PetscCall(PetscCDGetNextPos(lists, v, &pos));
      *same = (PetscBool)(c < agg->nc && id >= 0 && id < WITNESS_N && agg->parent[id] == c && (!first || agg->lead[c] == id));
    }
    c++;
  }
  *same = (PetscBool)(*same && c == agg->nc && !members);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's aggregates of W */
static PetscErrorCode HybWitnessCoarsen(PC pc, const struct _PCGAMGOps *ops, Mat W, PetscCoarsenData **lists)
{
  Mat            G = NULL, mat = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *lists = NULL;
  PetscCall((*ops->creategraph)(pc, W, &G));
  ierr = (*ops->coarsen)(pc, &G, lists);
  if (!ierr) ierr = PetscCDGetMat(*lists, &mat);
  if (!ierr && mat == G) ierr = PetscCDClearMat(*lists); /* the list has no reference of its own */
  (void)MatDestroy(&G);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* without expected->a: only the pattern */
static PetscErrorCode HybWitnessLike(Mat P, const HybCSR *expected, PetscReal tol, PetscBool *same)
{
  const HybExec *x = &HybExecHost;
  HybCSR         csr;

  PetscFunctionBegin;
  *same = PETSC_FALSE;
  if (!HybMatIsSeq(P)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetCSR(P, x, (PetscBool) !!expected->a, &csr));
  if (csr.m == expected->m && csr.n == expected->n && csr.nnz == expected->nnz) {
    PetscCall(PetscArraycmp(csr.i, expected->i, csr.m + 1, same));
    if (*same) PetscCall(PetscArraycmp(csr.j, expected->j, csr.nnz, same));
    for (PetscCount k = 0; k < csr.nnz && *same && expected->a; k++) *same = (PetscBool)(PetscAbsScalar(csr.a[k] - expected->a[k]) <= tol);
  }
  PetscCall(HybMatRestoreCSR(P, x, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The example: its matrix, the graph of its vertices, what our rules make of it */
typedef struct {
  HybAggBlock   block;
  PetscBool     scalar;
  HybArena      keep, work;
  HybCSR        csr, graph, P0;
  HybAggregates agg;
  HybAggLists   lists;
  HybScalar    *b, *q, *coarse; /* b: of blocks, else NULL */
  HybAggRules   rules;
  Mat           W;
} HybWitness;

/* our P0 */
static PetscErrorCode HybWitnessTentative(HybWitness *w)
{
  const HybAggOps *ops  = HybBackendHost.agg;
  const PetscInt   nvec = w->block.nvec, rows = w->csr.m;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&w->keep, HYB_MEM_HOST, (PetscCount)rows * nvec, sizeof(*w->q), &w->q));
  PetscCall(HybArenaAlloc(&w->keep, HYB_MEM_HOST, (PetscCount)w->agg.nc * nvec * nvec, sizeof(*w->coarse), &w->coarse));
  if (!w->scalar) {
    PetscCall(HybArenaAlloc(&w->keep, HYB_MEM_HOST, (PetscCount)rows * nvec, sizeof(*w->b), &w->b));
    for (PetscInt t = 0; t < nvec; t++)
      for (PetscInt r = 0; r < rows; r++) w->b[(size_t)t * rows + r] = PetscSinReal((PetscReal)((r + 3) * (2 * t + 5) + r * r % 11)) + (r % w->block.bs == t);
  }
  PetscCall((*ops->lists)(&HybExecHost, &w->keep, &w->work, &w->graph, w->rules.hops, w->rules.order, &w->agg, &w->lists));
  PetscCall((*ops->tentative)(&HybExecHost, &w->work, &w->agg, &w->lists, &w->block, w->b, NULL, NULL, w->q, w->coarse, NULL));
  PetscCall((*ops->unsmoothed)(&HybExecHost, &w->keep, &w->work, &w->agg, &w->block, w->q, &w->P0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's P0 of its lists, and the next level's vectors; are they ours? */
static PetscErrorCode HybWitnessProlongator(PC pc, const struct _PCGAMGOps *ops, const HybWitness *w, PetscCoarsenData *lists, PetscBool *same)
{
  PC_GAMG       *gamg = HybGAMGData(pc);
  PetscReal     *data = gamg->data;
  const PetscInt size = gamg->data_sz, rows = gamg->data_cell_rows, cols = gamg->data_cell_cols, nvec = w->block.nvec, n = w->csr.m * nvec;
  Mat            P = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *same = PETSC_FALSE;
  PetscCall(PetscMalloc1((size_t)n + 1, &gamg->data));
  for (PetscInt k = 0; k < n; k++) gamg->data[k] = w->b[k];
  gamg->data_sz        = n;
  gamg->data_cell_rows = w->block.bs;
  gamg->data_cell_cols = nvec;
  ierr                 = (*ops->prolongator)(pc, w->W, lists, &P);
  if (!ierr && P) {
    ierr = HybWitnessLike(P, &w->P0, WITNESS_QR, same);
    if (gamg->data_cell_rows != nvec || gamg->data_cell_cols != nvec || gamg->data_sz != w->agg.nc * nvec * nvec) *same = PETSC_FALSE;
    for (PetscInt k = 0; *same && k < gamg->data_sz; k++) *same = (PetscBool)(PetscAbsReal(gamg->data[k] - w->coarse[k]) <= WITNESS_QR);
  }
  (void)PetscFree(gamg->data);
  gamg->data           = data;
  gamg->data_sz        = size;
  gamg->data_cell_rows = rows;
  gamg->data_cell_cols = cols;
  (void)MatDestroy(&P);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is P the prolongator P1 of one step smoothed again, and how often? */
static PetscErrorCode HybWitnessSmoothMore(const HybWitness *w, const HybCSR *P1, Mat P, PetscInt *nsmooths)
{
  PetscBool      same = PETSC_FALSE;
  Mat            Q    = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybWitnessMat(w->W, P1, w->block.bs, w->block.nvec, &Q);
  for (PetscInt n = 2; n <= WITNESS_SMOOTHS && !same && !ierr; n++) {
    HybCSR csr;

    ierr = HybGAMGSmoothMore(w->W, 1.4 / WITNESS_EMAX, &Q);
    if (!ierr) ierr = HybMatGetCSR(Q, &HybExecHost, PETSC_TRUE, &csr);
    if (ierr) break;
    ierr = HybWitnessLike(P, &csr, WITNESS_TOL, &same);
    if (same) *nsmooths = n;
    PetscCall(HybMatRestoreCSR(Q, &HybExecHost, &csr));
  }
  (void)MatDestroy(&Q);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How many steps of smoothing PETSc does */
static PetscErrorCode HybWitnessSmooth(PC pc, const struct _PCGAMGOps *ops, HybWitness *w, PetscInt *nsmooths)
{
  PC_GAMG        *gamg = HybGAMGData(pc);
  PC_MG          *mg   = (PC_MG *)pc->data;
  const PetscInt  l    = gamg->current_level;
  const PetscReal emax = gamg->emax, emin = gamg->emin, dmax = mg->max_eigen_DinvA[l], dmin = mg->min_eigen_DinvA[l];
  HybCSR          P1;
  Mat             P = NULL, P0;
  PetscInt        references;
  PetscBool       same = PETSC_FALSE;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall((*HybBackendHost.agg->smoothed)(&HybExecHost, &w->keep, &w->work, &w->csr, 0, &w->agg, &w->block, w->q, 1.4 / WITNESS_EMAX, &P1));
  PetscCall(HybWitnessMat(w->W, &w->P0, w->block.bs, w->block.nvec, &P));
  P0 = P;
  PetscCall(PetscObjectReference((PetscObject)P0)); /* PETSc's may fail after it has destroyed P, or before */
  gamg->emax             = WITNESS_EMAX;            /* then nothing is estimated */
  gamg->emin             = 0.1;
  ierr                   = (*ops->optprolongator)(pc, w->W, &P);
  gamg->emax             = emax;
  gamg->emin             = emin;
  mg->max_eigen_DinvA[l] = dmax;
  mg->min_eigen_DinvA[l] = dmin;
  (void)PetscObjectGetReference((PetscObject)P0, &references);
  if (ierr && references < 2) P = NULL;
  (void)MatDestroy(&P0);
  for (PetscInt n = 0; n < 2 && *nsmooths < 0 && !ierr; n++) {
    ierr = HybWitnessLike(P, n ? &P1 : &w->P0, WITNESS_TOL, &same);
    if (same) *nsmooths = n;
  }
  if (!ierr && *nsmooths < 0) ierr = HybWitnessSmoothMore(w, &P1, P, nsmooths);
  (void)MatDestroy(&P);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the weight between two vertices of the second example; negative: none. Sums of both sides, scaled: (1,2) and (4,7)
   are the threshold itself, (2,3) and (0,5) are above it, but not on both sides by themselves; (5,7) is above it by one
   part in 64, less than one of WITNESS_MOST unknowns weighs. */
static PetscReal HybWitnessWeight(PetscInt v, PetscInt u)
{
  static const struct {
    PetscInt  v, u;
    PetscReal forth, back;
  } edges[] = {
    {.v = 0, .u = 1, .forth = 1.5,        .back = 1.5       },
    {.v = 1, .u = 2, .forth = 1.0,        .back = 1.0       },
    {.v = 2, .u = 3, .forth = 0.9,        .back = 0.3       },
    {.v = 3, .u = 4, .forth = 0.2,        .back = 0.15      },
    {.v = 4, .u = 5, .forth = 1.0,        .back = 1.0       },
    {.v = 0, .u = 5, .forth = 0.3,        .back = 0.9       },
    {.v = 0, .u = 6, .forth = 1.0,        .back = 1.0       },
    {.v = 4, .u = 7, .forth = 0.5,        .back = 0.5       },
    {.v = 5, .u = 7, .forth = 65.0 / 128, .back = 65.0 / 128}
  };
  static const PetscReal diagonal[WITNESS_EDGES] = {2, 2, 8, 0.5, 2, 2, 0, 2};

  if (v == u) return diagonal[v];
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(edges); k++) {
    if (edges[k].v == v && edges[k].u == u) return edges[k].forth;
    if (edges[k].v == u && edges[k].u == v) return edges[k].back;
  }
  return -1;
}

/* The entry (r,c) of blocks of both signs, whose moduli add up to the weights exactly: they are multiples of a power of
   two, and the first of a block makes up for what is missing; 0 where the weight is. The edge's entries are all alike,
   a vertex's own ones are on the diagonal. Of complex ones the real parts' do; one unknown's entry is imaginary, half
   of the time. */
static PetscScalar HybWitnessEdgeEntry(PetscInt bs, PetscInt r, PetscInt c)
{
  const PetscReal unit = WITNESS_UNIT, w = HybWitnessWeight(r / bs, c / bs);
  const PetscInt  own = r / bs == c / bs, others = own ? bs - 1 : bs * bs - 1;
  PetscReal       share = PetscFloorReal(w / (others + 1) / unit) * unit, a;

  if (r % bs == 0 && c % bs == 0)
    a = w - others * share;
  else
    a = own && r != c ? 0 : share;
  if ((r + c) / 2 % 3 == 1) a = -a;
  if (PetscDefined(USE_COMPLEX) && bs == 1) return (r + c) % 2 ? HybWitnessImaginary(a) : a;
  return a + HybWitnessImaginary(3);
}

static PetscErrorCode HybWitnessEdgesCSR(HybArena *arena, PetscInt bs, HybCSR *A)
{
  PetscInt nz = 0;

  PetscFunctionBegin;
  A->m = A->n = WITNESS_EDGES * bs;
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, (PetscCount)A->m + 1, sizeof(*A->i), &A->i));
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, (PetscCount)A->m * A->m, sizeof(*A->j), &A->j));
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, (PetscCount)A->m * A->m, sizeof(*A->a), &A->a));
  A->i[0] = 0;
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt c = 0; c < A->m; c++) {
      if (HybWitnessWeight(r / bs, c / bs) < 0) continue;
      A->j[nz]   = c;
      A->a[nz++] = HybWitnessEdgeEntry(bs, r, c);
    }
    A->i[r + 1] = nz;
  }
  A->nnz = nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the second example, the graph of its vertices and their weights */
static PetscErrorCode HybWitnessEdgesBegin(Mat A, HybWitness *w, HybCSR *whole, Mat *W)
{
  const HybAggOps *ops = HybBackendHost.agg;
  const HybExec   *x   = &HybExecHost;
  HybCSR           csr;
  HybAggCollapsed  collapsed;

  PetscFunctionBegin;
  PetscCall(HybWitnessEdgesCSR(&w->keep, w->block.bs, &csr));
  PetscCall((*ops->collapse)(x, &w->keep, &w->work, &csr, w->block.bs, whole, &collapsed));
  PetscCall((*ops->weights)(x, &w->keep, &w->work, &csr, w->block.bs, whole));
  PetscCall(HybWitnessMat(A, &csr, w->block.bs, w->block.bs, W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which edges does PETSc's creategraph leave? h->edges, and *known */
static PetscErrorCode HybWitnessEdges(PC pc, HybGAMG *h, Mat A, HybWitness *w, PetscBool *known)
{
  PC_GAMG        *gamg      = HybGAMGData(pc);
  PetscReal      *at        = &gamg->threshold[gamg->current_level];
  const PetscReal threshold = *at;
  HybCSR          whole, G;
  HybAggFiltered  found;
  Mat             W = NULL, graph = NULL;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  *known = PETSC_FALSE;
  if (w->block.bs > WITNESS_MOST) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybGAMGAgree(pc, HybWitnessEdgesBegin(A, w, &whole, &W)); /* as below */
  *at  = WITNESS_LIMIT;
  if (!ierr) ierr = (*h->petsc.ops.creategraph)(pc, W, &graph);
  *at = threshold;
  (void)MatDestroy(&W);
  for (int k = 0; k < 4 && !*known && !ierr; k++) {
    h->edges = (HybAggFilter){WITNESS_LIMIT, (PetscBool)(k < 2), (PetscBool)(k & 1)};
    ierr     = (*HybBackendHost.agg->filter)(&HybExecHost, &w->keep, &w->work, &whole, &h->edges, &G, &found);
    if (!ierr) ierr = HybWitnessLike(graph, &G, 0, known);
  }
  (void)MatDestroy(&graph);
  PetscCall(HybGAMGAgree(pc, ierr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybWitnessBegin(Mat A, HybWitness *w)
{
  HybAggCollapsed collapsed;
  PetscBool       set, symmetric;

  PetscFunctionBegin;
  PetscCall(HybWitnessCSR(&w->keep, w->block.bs, &w->csr));
  PetscCall((*HybBackendHost.agg->collapse)(&HybExecHost, &w->keep, &w->work, &w->csr, w->block.bs, &w->graph, &collapsed));
  PetscCall(HybWitnessMat(A, &w->csr, w->block.bs, w->block.bs, &w->W));
  /* it is symmetric: where A is known to be, PETSc goes the same way with both, and adds no transpose */
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  if (set && symmetric) PetscCall(MatSetOption(w->W, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By which rules are these PETSc's lists? */
static PetscErrorCode HybWitnessRules(HybWitness *w, PetscCoarsenData *lists, PetscBool *same)
{
  PetscFunctionBegin;
  *same = PETSC_FALSE;
  for (int hops = 1; hops <= 2; hops++) {
    for (int distance = 1; distance <= (hops == 1 ? WITNESS_DISTANCES : 1); distance++) {
      for (int order = HYB_AGG_SHUFFLED; order <= HYB_AGG_DEGREES; order++) {
        w->rules = (HybAggRules){hops, distance, (HybAggOrder)order, 0};
        PetscCall(HybAggFind(&HybExecHost, &w->keep, &w->work, &w->graph, &w->rules, &w->agg, NULL));
        PetscCall(HybWitnessSame(lists, &w->agg, same));
        if (*same) PetscFunctionReturn(PETSC_SUCCESS);
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybWitnessRun(PC pc, const struct _PCGAMGOps *ops, Mat A, HybWitness *w, HybAggRules *rules, PetscInt *nsmooths)
{
  PetscCoarsenData *lists = NULL;
  PetscBool         same  = PETSC_FALSE;
  PetscErrorCode    ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  /* PETSc's functions make an object of all processes: all come to them, or none */
  PetscCall(HybGAMGAgree(pc, HybWitnessBegin(A, w)));
  PetscCall(HybWitnessCoarsen(pc, ops, w->W, &lists));
  ierr = HybWitnessRules(w, lists, &same);
  if (!ierr && same && (*nsmooths < 0 || !w->scalar)) ierr = HybWitnessTentative(w);
  if (!ierr && same) *rules = w->rules;
  if (!ierr && same && !w->scalar) ierr = HybWitnessProlongator(pc, ops, w, lists, &same);
  (void)PetscCDDestroy(lists);
  PetscCall(ierr);
  if (!same) *nsmooths = -1;
  if (same && *nsmooths < 0) PetscCall(HybWitnessSmooth(pc, ops, w, nsmooths));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Events stand for the level: those of the witness are nobody's. All loggers ask first whether the stage is active; its
   own bit alone changes here, events that a program left out stay so. */
static PetscBool HybGAMGQuiet(void)
{
  PetscBool was = PETSC_FALSE;

  #if PetscDefined(USE_LOG)
  if (petsc_log_state && petsc_log_state->current_stage >= 0) was = (PetscBool)(PetscBTLookupClear(petsc_log_state->active, petsc_log_state->current_stage) != 0);
  #endif
  return was;
}

static void HybGAMGLoud(PetscBool was)
{
  #if PetscDefined(USE_LOG)
  if (was) (void)PetscBTSet(petsc_log_state->active, petsc_log_state->current_stage);
  #endif
}

PetscErrorCode HybGAMGWitness(PC pc, HybGAMG *h, Mat A, PetscBool ask, PetscBool *edges)
{
  HybWitness     w         = {.block = h->block, .scalar = HybAggIsScalar(&h->block)};
  PC_GAMG       *gamg      = HybGAMGData(pc);
  PetscReal      threshold = gamg->threshold[gamg->current_level];
  PetscErrorCode ierr      = PETSC_SUCCESS;
  PetscBool      active;

  PetscFunctionBegin;
  h->rules = (HybAggRules){0, 1, HYB_AGG_SHUFFLED, 0};
  /* up to 3.26 all levels are smoothed alike */
  if (h->asked.block.bs != h->block.bs || h->asked.block.nvec != h->block.nvec || !HYB_KNOWN_GAMG_ALIKE) h->nsmooths = -1;
  *edges = PETSC_TRUE;
  w.keep = HybArenaOn(&HybExecHost);
  w.work = HybArenaOn(&HybExecHost);
  active = HybGAMGQuiet();
  HybMatOnHost(PETSC_TRUE);
  if (ask) ierr = HybWitnessEdges(pc, h, A, &w, edges);
  gamg->threshold[gamg->current_level] = -1;
  if (!ierr) ierr = HybWitnessRun(pc, &h->petsc.ops, A, &w, &h->rules, &h->nsmooths);
  gamg->threshold[gamg->current_level] = threshold;
  HybMatOnHost(PETSC_FALSE);
  (void)MatDestroy(&w.W);
  HybGAMGLoud(active);
  (void)HybArenaReset(&w.keep);
  (void)HybArenaReset(&w.work);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybGAMGWhy(PetscBool edges, const HybGAMG *h, const char **why)
{
  if (!edges)
    *why = "the options ask for another graph";
  else if (!h->rules.hops)
    *why = "the options ask for other aggregates";
  else if (h->nsmooths < 0)
    *why = "the options ask for another prolongator";
}
#endif

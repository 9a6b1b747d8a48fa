/*
  By which rules does PETSc coarsen this level? The options that say so (smoothing steps, levels of aggressive
  coarsening and how, order of vertices, ...) are in a private struct that moves between releases, and what they mean
  moves too. So PETSc is asked by an example: its own functions coarsen a graph of 64 vertices and make its
  prolongator, under the same options on the same level, and what comes out is compared with what our rules give. The
  graph is irregular enough that other rules give other aggregates. If they agree, the options are those that our
  rules are for; if not, or if a later PETSc does otherwise, the level is left to PETSc.

    A = a small matrix of the level's type
    creategraph(A), coarsen     -> lists; the same aggregates and first vertices as by one or by two hops?
    optprolongator(A, P0) with the eigenvalue given -> P0 as it is: no smoothing; or our smoothed P0: one step; or
    neither

  What PETSc's functions leave in the PC is put back. That they read their options and remember their MatCoarsen is
  wanted: a program that asks which options were used, or looks at the PC, sees what it always sees. Takes a third of
  a millisecond a level.
*/
#include "gamgimpl.h"

#if HYB_GAMG

  #define WITNESS_N     64
  #define WITNESS_ALONE 13 /* the vertex without neighbours */
  #define WITNESS_EMAX  2.5

static const HybExec WitnessExec = {&HybBackendHost, NULL, HYB_MEM_HOST};

/* A path with chords: degrees from 2 to 6, distances up to nine edges */
static PetscBool HybWitnessEdge(PetscInt u, PetscInt v)
{
  const PetscInt a = PetscMin(u, v), b = PetscMax(u, v);

  if (a == WITNESS_ALONE || b == WITNESS_ALONE) return PETSC_FALSE;
  if (b - a <= 1) return PETSC_TRUE;
  if (a % 3 == 1 && b == (a * a + 7) % WITNESS_N) return PETSC_TRUE;
  return (PetscBool)(a % 11 == 2 && (b - a) % 9 == 4);
}

static PetscErrorCode HybWitnessCSR(HybArena *arena, HybCSR *A)
{
  PetscInt nz = 0;

  PetscFunctionBegin;
  A->m = A->n = WITNESS_N;
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, WITNESS_N + 1, sizeof(*A->i), &A->i));
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, WITNESS_N * WITNESS_N, sizeof(*A->j), &A->j));
  PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, WITNESS_N * WITNESS_N, sizeof(*A->a), &A->a));
  A->i[0] = 0;
  for (PetscInt v = 0; v < WITNESS_N; v++) {
    for (PetscInt u = 0; u < WITNESS_N; u++) {
      if (u != v && !HybWitnessEdge(u, v)) continue;
      A->j[nz]   = u;
      A->a[nz++] = u == v ? 9.0 + v % 3 : -1.0 - (u * v) % 7 / 4.0;
    }
    A->i[v + 1] = nz;
  }
  A->nnz = nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of A's type with a copy of these arrays */
static PetscErrorCode HybWitnessMat(Mat A, const HybCSR *csr, Mat *W)
{
  HybArena       arrays;
  HybCSR         copy = *csr;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&arrays, &WitnessExec));
  ierr = HybArenaAlloc(&arrays, HYB_MEM_HOST, csr->m + 1, sizeof(*copy.i), &copy.i);
  if (!ierr) ierr = HybArenaAlloc(&arrays, HYB_MEM_HOST, csr->nnz, sizeof(*copy.j), &copy.j);
  if (!ierr) ierr = HybArenaAlloc(&arrays, HYB_MEM_HOST, csr->nnz, sizeof(*copy.a), &copy.a);
  if (!ierr) ierr = PetscArraycpy(copy.i, csr->i, csr->m + 1);
  if (!ierr) ierr = PetscArraycpy(copy.j, csr->j, csr->nnz);
  if (!ierr) ierr = PetscArraycpy(copy.a, csr->a, csr->nnz);
  if (!ierr) ierr = HybMatCreateFromCSR(A, &WitnessExec, &arrays, &copy, 1, 1, W);
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

static PetscErrorCode HybWitnessLike(Mat P, const HybCSR *expected, PetscBool *same)
{
  const HybExec *x = &WitnessExec;
  HybCSR         csr;
  PetscBool      seq;

  PetscFunctionBegin;
  PetscCall(HybMatIsSeq(P, &seq));
  *same = PETSC_FALSE;
  if (!seq) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetCSR(P, x, PETSC_TRUE, &csr));
  if (csr.m == expected->m && csr.n == expected->n && csr.nnz == expected->nnz) {
    PetscCall(PetscArraycmp(csr.i, expected->i, csr.m + 1, same));
    if (*same) PetscCall(PetscArraycmp(csr.j, expected->j, csr.nnz, same));
    for (PetscCount k = 0; k < csr.nnz && *same; k++) *same = (PetscBool)(PetscAbsScalar(csr.a[k] - expected->a[k]) <= 1e-12);
  }
  PetscCall(HybMatRestoreCSR(P, x, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How many steps of smoothing PETSc does */
static PetscErrorCode HybWitnessSmooth(PC pc, const struct _PCGAMGOps *ops, Mat W, HybArena *keep, HybArena *work, const HybCSR *csr, const HybAggregates *agg, PetscInt *nsmooths)
{
  PC_GAMG        *gamg = HybGAMGData(pc);
  PC_MG          *mg   = (PC_MG *)pc->data;
  const PetscInt  l    = gamg->current_level;
  const PetscReal emax = gamg->emax, emin = gamg->emin, dmax = mg->max_eigen_DinvA[l], dmin = mg->min_eigen_DinvA[l];
  HybScalar      *q, *coarse;
  HybCSR          P0, P1;
  Mat             P    = NULL;
  PetscBool       same = PETSC_FALSE;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  *nsmooths = -1;
  PetscCall(HybArenaAlloc(keep, HYB_MEM_HOST, agg->n, sizeof(*q), &q));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_HOST, agg->nc, sizeof(*coarse), &coarse));
  PetscCall((*HybBackendHost.agg->tentative)(&WitnessExec, work, agg, NULL, q, coarse));
  PetscCall((*HybBackendHost.agg->unsmoothed)(&WitnessExec, keep, work, agg, q, &P0));
  PetscCall((*HybBackendHost.agg->smoothed)(&WitnessExec, keep, work, csr, agg, q, 1.4 / WITNESS_EMAX, &P1));
  PetscCall(HybWitnessMat(W, &P0, &P));
  gamg->emax             = WITNESS_EMAX; /* then nothing is estimated */
  gamg->emin             = 0.1;
  ierr                   = (*ops->optprolongator)(pc, W, &P);
  gamg->emax             = emax;
  gamg->emin             = emin;
  mg->max_eigen_DinvA[l] = dmax;
  mg->min_eigen_DinvA[l] = dmin;
  for (PetscInt n = 0; n < 2 && *nsmooths < 0 && !ierr; n++) {
    ierr = HybWitnessLike(P, n ? &P1 : &P0, &same);
    if (same) *nsmooths = n;
  }
  (void)MatDestroy(&P);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybWitnessRun(PC pc, const struct _PCGAMGOps *ops, Mat W, HybArena *keep, HybArena *work, const HybCSR *csr, int *hops, PetscInt *nsmooths)
{
  PetscCoarsenData *lists = NULL;
  HybAggregates     agg;
  PetscErrorCode    ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybWitnessCoarsen(pc, ops, W, &lists));
  for (int n = 1; n <= 2 && !*hops && !ierr; n++) {
    PetscBool same = PETSC_FALSE;

    ierr = (*HybBackendHost.agg->aggregates)(&WitnessExec, keep, work, csr, n, &agg);
    if (!ierr) ierr = HybWitnessSame(lists, &agg, &same);
    if (same) *hops = n;
  }
  (void)PetscCDDestroy(lists);
  PetscCall(ierr);
  if (*hops) PetscCall(HybWitnessSmooth(pc, ops, W, keep, work, csr, &agg, nsmooths));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The level's events stand for the level: those of the witness do not count */
static PetscErrorCode HybWitnessEvents(PC pc, PetscBool off)
{
  const PetscInt      l        = HybGAMGData(pc)->current_level;
  const PetscLogEvent events[] = {petsc_gamg_setup_events[GAMG_COARSEN], petsc_gamg_setup_events[GAMG_GRAPH], petsc_gamg_setup_events[GAMG_MIS], petsc_gamg_setup_events[GAMG_OPT], petsc_gamg_setup_events[GAMG_OPTSM], petsc_gamg_setup_matmat_events[l][0], petsc_gamg_setup_matmat_events[l][2]};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(events); k++)
    if (off)
      PetscCall(PetscLogEventDeactivatePush(events[k]));
    else
      PetscCall(PetscLogEventDeactivatePop(events[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGWitness(PC pc, HybGAMG *h, Mat A, int *hops, PetscInt *nsmooths)
{
  HybArena       keep, work;
  HybCSR         csr;
  Mat            W = NULL;
  PetscErrorCode ierr, second;

  PetscFunctionBegin;
  *hops     = 0;
  *nsmooths = -1;
  PetscCall(HybArenaInit(&keep, &WitnessExec));
  PetscCall(HybArenaInit(&work, &WitnessExec));
  PetscCall(HybWitnessEvents(pc, PETSC_TRUE));
  ierr = HybWitnessCSR(&keep, &csr);
  if (!ierr) ierr = HybWitnessMat(A, &csr, &W);
  if (!ierr) ierr = HybWitnessRun(pc, &h->ops, W, &keep, &work, &csr, hops, nsmooths);
  (void)MatDestroy(&W);
  second = HybWitnessEvents(pc, PETSC_FALSE);
  (void)HybArenaReset(&keep);
  (void)HybArenaReset(&work);
  PetscCall(ierr);
  PetscCall(second);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

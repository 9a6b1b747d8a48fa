/*
  Aggregation on a graph whose rows begin far behind the first entry: as the last ones of a graph of 2^31 entries do, of
  2^32 and of more where indices have 64 bits. The arrays are small: the pointers are moved back by as much as the
  offsets are moved on. Counts, aggregates and prolongators are those that come without.
*/
#include "aggtest.h"

static const HybAggBlock one = {1, 1};

/* what comes of a graph, on the host */
typedef struct {
  HybAggLook look;
  PetscInt   nc, *parent, *lead;
  RefMat     P;
} Found;

static PetscErrorCode NoneLeft(HybMemoryReport *report)
{
  const PetscErrorCode ierr = HybTestExec()->backend->memory(report);

  report->free_bytes = 0;
  return ierr;
}

static PetscErrorCode Find(const RefMat *A, PetscCount by, const HybAggRules *rules, Found *f)
{
  HybBackend       full;
  HybExec          own = *HybTestExec(), *exec = &own;
  const HybAggOps *ops = own.backend->agg;
  HybArena         keep, work;
  HybAggregates    agg;
  HybCSR           M, P;
  PetscScalar     *q, *coarse;

  PetscFunctionBegin;
  if (by) { /* a copy of the columns, for which there is spare memory, would have room for nnz of them */
    full        = *own.backend;
    full.memory = NoneLeft;
    own.backend = &full;
  }
  PetscCall(HybTestArenas(exec, &keep, &work));
  PetscCall(HybTestUploadMoved(&keep, A, A->csr.nnz + by, &M));
  M.nnz = A->csr.nnz; /* by which work is sized */
  memset(&f->look, 0, sizeof(f->look));
  PetscCall(ops->look(exec, &work, &M, &f->look));
  PetscCall(HybAggFind(exec, &keep, &work, &M, rules, &agg, NULL));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), agg.n, sizeof(PetscScalar), &q));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), agg.nc, sizeof(PetscScalar), &coarse));
  PetscCall(ops->tentative(exec, &work, &agg, NULL, &one, NULL, NULL, NULL, q, coarse, NULL));
  PetscCall(ops->smoothed(exec, &keep, &work, &M, f->look.longest, &agg, &one, q, 0.7, &P));
  PetscCall(exec->backend->sync(exec));
  f->nc     = agg.nc;
  f->parent = (PetscInt *)RefAlloc(agg.n, sizeof(PetscInt));
  f->lead   = (PetscInt *)RefAlloc(agg.nc, sizeof(PetscInt));
  PetscCall(HybTestDownloadArray(agg.n, sizeof(PetscInt), agg.parent, f->parent));
  PetscCall(HybTestDownloadArray(agg.nc, sizeof(PetscInt), agg.lead, f->lead));
  PetscCall(HybTestDownload(&P, &f->P));
  PetscCall(HybTestReset(&keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Forget(Found *f)
{
  RefFree(f->parent, f->lead);
  RefMatDestroy(&f->P);
}

static PetscErrorCode Compare(const char *name, const RefMat *G)
{
  static const HybAggRules rules[] = {
    {2, 1, HYB_AGG_SHUFFLED, 0},
    {1, 1, HYB_AGG_SHUFFLED, 0}
  };
  const PetscCount most = (PetscCount)PETSC_MAX_INT - HYB_ENTRIES_BEYOND - G->csr.nnz, to[] = {((PetscCount)1 << 31) - G->csr.nnz / 2, ((PetscCount)1 << 32) - G->csr.nnz / 2, ((PetscCount)1 << 33) + 12345};

  PetscFunctionBegin;
  for (size_t r = 0; r < PETSC_STATIC_ARRAY_LENGTH(rules); r++) {
    Found expected, f;

    HybTestBegin("%s, %d hops", name, rules[r].hops);
    PetscCall(Find(G, 0, &rules[r], &expected));
    for (size_t k = 0; k < (sizeof(PetscInt) == 8 ? PETSC_STATIC_ARRAY_LENGTH(to) : 1); k++) {
      const PetscCount by = PetscMin(to[k], most);

      PetscCall(Find(G, by, &rules[r], &f));
      HybTestCheck(!memcmp(&f.look, &expected.look, sizeof(f.look)), "moved by %" PetscCount_FMT ": other counts", by);
      HybTestCheck(f.nc == expected.nc && !memcmp(f.parent, expected.parent, (size_t)G->csr.m * sizeof(PetscInt)) && !memcmp(f.lead, expected.lead, (size_t)f.nc * sizeof(PetscInt)), "moved by %" PetscCount_FMT ": other aggregates", by);
      HybTestCheck(f.P.csr.nnz == expected.P.csr.nnz && !memcmp(f.P.csr.i, expected.P.csr.i, ((size_t)G->csr.m + 1) * sizeof(PetscInt)) && !memcmp(f.P.csr.j, expected.P.csr.j, (size_t)f.P.csr.nnz * sizeof(PetscInt)) && !memcmp(f.P.csr.a, expected.P.csr.a, (size_t)f.P.csr.nnz * sizeof(PetscScalar)), "moved by %" PetscCount_FMT ": another prolongator", by);
      Forget(&f);
    }
    Forget(&expected);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  RefMat A, G;

  PetscFunctionBegin;
  if (!HybTestExec()->backend->device) {
    HybTestBegin("offsets");
    HybTestSkip("the host's loops have no other integers than PetscInt");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybTestMatStencil(27, HybTestSize(12, 9), 9, 8, &A);
  GraphOf(&A, PETSC_FALSE, &G);
  HybTestRandomize(&G);
  PetscCall(Compare("27 points", &G));
  RefMatDestroy(&A, &G);
  HybTestMatDenseRow(HybTestSize(1400, 1200), HybTestSize(1400, 1200), 77, 3, &A); /* a row that a block takes */
  GraphOf(&A, PETSC_FALSE, &G);
  HybTestRandomize(&G);
  PetscCall(Compare("a long row", &G));
  RefMatDestroy(&A, &G);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

/*
  Products with both blocks of a parallel matrix in one launch with their exchange (HybHaloMult()), bit for bit beside
  the same one after the other; layouts are uneven, leave processes empty or have neighbours that are not mutual, some
  processes make it one launch and others do not, some are late, and one gives an exchange up.

TEST np=1,3+2,4
TEST np=2,3 -mat_aijhybridgpu_comm_after 0
TEST np=2 -mat_aijhybridgpu_comm mpi
TEST np=2 -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
*/
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "commtest.h"
#include "gpuaware.h"
#include <aijhybridgpu/private/hybspmv.h>

static PetscCount All; /* that were one launch */

/* a product with both blocks, apart or together with its exchange */
typedef struct {
  HybHalo        h;
  PetscBool      transpose;
  HybSpMV        mv[2];
  HybCSR         block[2];
  PetscScalar   *x, *y, *z, *ghost;
  HybPeerProduct p;
  PetscCount     together;
} Both;

static PetscErrorCode BothApart(Both *b, HybSpMVMode mode, const PetscScalar *y)
{
  const HybExec *exec  = HybTestExec();
  PetscScalar   *ghost = b->ghost;

  PetscFunctionBegin;
  if (b->transpose) {
    PetscCall(HybSpMVApply(&b->mv[1], &b->block[1], b->x, HYB_SPMV_SET, NULL, b->ghost));
    PetscCall(HybHaloReverseBegin(b->h, exec, PETSC_TRUE, b->ghost));
  } else
    PetscCall(HybHaloBegin(b->h, exec, sizeof(PetscScalar), b->x));
  PetscCall(HybSpMVApply(&b->mv[0], &b->block[0], b->x, mode, y, b->z));
  if (b->transpose)
    PetscCall(HybHaloReverseEnd(b->h, exec, PETSC_SUCCESS, b->z));
  else {
    PetscCall(HybHaloEnd(b->h, exec, PETSC_SUCCESS, &ghost));
    PetscCall(HybSpMVApply(&b->mv[1], &b->block[1], ghost, mode == HYB_SPMV_SET ? HYB_SPMV_ADD : mode, b->z, b->z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BothProduct(Both *b, HybSpMVMode mode, const PetscScalar *y)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    HybSummed *s = k ? &b->p.O : &b->p.D;

    s->csr   = b->block[k];
    s->lanes = HybSpMVLanes(&b->mv[k]);
  }
  if (!HybHaloMultiplies(b->h, b->transpose) || !b->p.O.lanes || !b->p.D.lanes) {
    PetscCall(BothApart(b, mode, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  b->together++;
  b->p.transpose = b->transpose;
  b->p.x         = b->x;
  b->p.y         = y;
  b->p.z         = b->z;
  b->p.mode      = (int)mode;
  PetscCall(HybHaloMult(b->h, HybTestExec(), &b->p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which processes make it one launch is drawn, and which are late: on all processes alike */
static PetscErrorCode BothDrawn(Both *b, HybSpMVMode mode, PetscBool inplace, PetscBool giveup)
{
  const PetscInt early = HybTestRandomInt(0, 1 << Size), late = HybTestRandomInt(0, 1 << Size);

  PetscFunctionBegin;
  if (giveup) {
    HybHaloAbandon(b->h, HybTestExec(), sizeof(HybScalar), b->transpose, PETSC_ERR_MEM);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  b->h->early = (PetscBool)((early >> Rank) & 1);
  if ((late >> Rank) & 1) usleep(200);
  if (inplace) PetscCall(HybTestExec()->backend->copy(HybTestExec(), b->z, b->y, sizeof(PetscScalar) * (size_t)b->h->n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(BothProduct(b, mode, mode == HYB_SPMV_SET ? NULL : inplace ? b->z
                                                                       : b->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static char Said[1024]; /* what the last error says */

static PetscErrorCode Catch(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode ierr, PetscErrorType type, const char *mess, void *ctx)
{
  if (type == PETSC_ERROR_INITIAL && mess) snprintf(Said, sizeof(Said), "%s", mess);
  return ierr;
}

/* process 0 gives one up: whoever waits for it hears of it, by peer access also of which one, and the next one is
   right */
static PetscErrorCode BothGivenUp(Both *b, const PetscScalar *expected)
{
  const HybExec *exec   = HybTestExec();
  int            errors = 0;

  PetscFunctionBegin;
  Said[0] = 0;
  PetscCall(PetscPushErrorHandler(Catch, NULL));
  errors += BothDrawn(b, HYB_SPMV_SET, PETSC_FALSE, (PetscBool)!Rank) != PETSC_SUCCESS;
  PetscCall(exec->backend->sync(exec));
  errors += BothDrawn(b, HYB_SPMV_SET, PETSC_FALSE, PETSC_FALSE) != PETSC_SUCCESS;
  PetscCall(PetscPopErrorHandler());
  HybTestCheck(errors == (Rank && Hears(b->h, b->transpose)), "process %d had %d errors", Rank, errors);
  if (errors == 1 && ByPeer(b->h)) HybTestCheck(strstr(Said, "Process 0 has an error") && strstr(Said, "in exchange ") && !strstr(Said, "in exchange 0 "), "it is said: %s", Said);
  HybTestCall(BothDrawn(b, HYB_SPMV_SET, PETSC_FALSE, PETSC_FALSE));
  HybTestSameBits(b->h->n, sizeof(PetscScalar), b->z, expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* few: rows of the block of others' columns that have entries */
static PetscErrorCode Products(HybHalo h, PetscBool transpose, PetscBool few)
{
  const HybExec *exec = HybTestExec();
  const PetscInt n = h->n, nghost = h->nghost, m = transpose ? nghost : n, N = L.ranges[Size];
  PetscScalar   *expected = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar)), *v = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  PetscInt      *row = (PetscInt *)RefAlloc(N, sizeof(PetscInt));
  RefMat         A[2];
  Both           b     = {.h = h, .transpose = transpose};
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt k = 0; k < N; k++) row[k] = k;
  RowsMake(n, row + L.ranges[Rank], n, NULL, NULL, 1, &A[0]);
  RowsMake(m, row, transpose ? n : nghost, NULL, NULL, 2, &A[1]);
  if (few) HybTestMatEmptyRows(&A[1], m / 10, m, 1);
  for (int k = 0; k < 2; k++) {
    PetscCall(HybTestUpload(&arena, &A[k].csr, &b.block[k]));
    PetscCall(HybSpMVInit(&b.mv[k], exec, "auto", 1));
    PetscCall(HybSpMVSetUp(&b.mv[k], &b.block[k]));
  }
  for (PetscInt k = 0; k < n; k++) v[k] = Entry(k, Rank);
  PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscScalar), v, &b.x));
  PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscScalar), v, &b.y));
  PetscCall(HybArenaCalloc(&arena, HYB_WORK(exec), n, sizeof(PetscScalar), &b.z));
  PetscCall(HybArenaCalloc(&arena, HYB_WORK(exec), nghost, sizeof(PetscScalar), &b.ghost));
  RefFree(v, row);
  for (int mode = transpose ? 1 : 2; mode >= 0; mode--) {
    const PetscCount before = HybCommTallyGet()->together;

    b.together = 0;
    h->early   = PETSC_FALSE;
    HybTestCall(BothApart(&b, (HybSpMVMode)mode, mode ? b.y : NULL));
    PetscCall(HybTestDownloadArray(n, sizeof(PetscScalar), b.z, expected));
    HybTestCheck(HybCommTallyGet()->together == before, "apart it was one launch");
    for (int round = 0; round < 5; round++) {
      HybTestCall(BothDrawn(&b, (HybSpMVMode)mode, (PetscBool)(mode && round % 2), PETSC_FALSE));
      HybTestSameBits(n, sizeof(PetscScalar), b.z, expected);
    }
    HybTestCheck(HybCommTallyGet()->together - before == b.together, "%d products of %d were one launch", (int)(HybCommTallyGet()->together - before), (int)b.together);
    HybTestCheck(!b.together || !strcmp(HybHaloWay(h, transpose), "peer access"), "one launch by %s", HybHaloWay(h, transpose));
    All += b.together;
  }
  PetscCall(BothGivenUp(&b, expected));
  for (int k = 0; k < 2; k++) {
    PetscCall(HybSpMVDestroy(&b.mv[k]));
    RefMatDestroy(&A[k]);
  }
  PetscCall(HybArenaReset(&arena));
  free(expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* exchange and product in one launch: the bits of one after the other */
static PetscErrorCode Together(HybComm comm)
{
  PetscFunctionBegin;
  for (int k = 0; k < 4 * 3; k++) {
    const int kind = k % 4, empty = k / 4 - 1;
    HybHalo   h;

    HybTestBegin("products and exchanges together, layout %d, process %d empty", kind, empty);
    LayoutDraw(k % 3 ? 40 : 300, kind, empty);
    if (!HybTestCall(HaloGet(comm, &h))) continue;
    for (PetscInt again = 0; again <= HybTuningGet()->comm_after; again++) {
      PetscCall(Forward(h, sizeof(PetscScalar), again));
      PetscCall(Reverse(h, PETSC_TRUE, again));
    }
    for (int way = 0; way < 4; way++) PetscCall(Products(h, (PetscBool)(way & 1), (PetscBool)(way > 1)));
    HybTestCall(HybHaloDestroy(&h));
    LayoutFree();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(HybComm comm)
{
  PetscBool peers   = PETSC_FALSE;
  char      way[16] = "auto";

  PetscFunctionBegin;
  PetscCall(Together(comm));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_comm", way, sizeof(way), NULL));
  PetscCall(PetscStrcmp(way, "auto", &peers));
  HybTestBegin("there were products in one launch");
  if (HybTestExec()->backend->device && Size > 1 && peers)
    HybTestCheck(All > 20, "%d of them", (int)All);
  else
    HybTestCheck(!All, "%d of them without peer access", (int)All);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return CommTestMain(argc, argv, Body);
}

/*
  Assembly from coordinates in parallel, with the blocks born on the device.

  Each process sorts its coordinates into its own rows' and other processes' on the host, once, and sends the latter to
  their owners, from where a PetscSF fetches the values later. The owner has one list then, its own coordinates followed
  by those received in the order of ranks. The device splits it between the blocks and makes each as a sequential matrix
  (coo.c); values are one kernel a block. Only values for other processes, and those from them, cross the bus. What the
  base class keeps beside the blocks (the columns that the off-diagonal block has, the scatter) is of its own making: a
  throw-away MATMPIAIJ is made with an empty diagonal block and the off-diagonal block's pattern, whose data A takes
  over, and the blocks' arrays are replaced.
*/
#include "mpi.h"
#include "../seq/coo.h"
#include "../storage/parent.h"
#include "../storage/where.h"
#include <petscsf.h>

typedef struct {
  PetscCount   ncoo;
  PetscInt     nsend, nrecv;
  PetscInt    *sendhost, *senddevice; /* which of the given values go to other processes */
  PetscScalar *sendbuf, *recvbuf;
  PetscSF      sf;
  HybArena     arena;
  HybCOO       block[2];
} HybMPICOO;

static PetscErrorCode HybMPICOODestroy(void *ctx)
{
  HybMPICOO *c = (HybMPICOO *)ctx;

  PetscFunctionBegin;
  PetscCall(PetscSFDestroy(&c->sf));
  PetscCall(PetscFree(c->sendhost));
  PetscCall(PetscFree(c->sendbuf));
  PetscCall(PetscFree(c->recvbuf));
  PetscCall(HybArenaReset(&c->arena));
  for (int k = 0; k < 2; k++) {
    PetscCall(HybArenaReset(&c->block[k].arena));
    PetscCall(HybArenaReset(&c->block[k].hostarena));
  }
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends the coordinates of other processes' rows to their owners: c->sf, whose leaves are what comes here, and *ri,
 *rj, those */
static PetscErrorCode HybMPICOOExchange(Mat A, const PetscInt *i, const PetscInt *j, HybMPICOO *c, PetscInt **ri, PetscInt **rj)
{
  MPI_Comm     comm = PetscObjectComm((PetscObject)A);
  PetscMPIInt  size, nto = 0, nfrom, *to, *from, *order;
  PetscInt    *count, *place, *data, *fromdata, *si, *sj, n = 0, used = 0;
  PetscSFNode *remote;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscCalloc2(size, &count, size, &place));
  for (PetscInt k = 0; k < c->nsend; k++) {
    PetscMPIInt owner;

    PetscCall(PetscLayoutFindOwner(A->rmap, i[c->sendhost[k]], &owner));
    count[owner]++;
  }
  for (PetscMPIInt r = 0; r < size; r++) nto += count[r] > 0;
  PetscCall(PetscMalloc2(nto, &to, 2 * (size_t)nto, &data));
  nto = 0;
  for (PetscMPIInt r = 0; r < size; r++) {
    place[r] = n;
    if (!count[r]) continue;
    to[nto]           = r;
    data[2 * nto]     = count[r];
    data[2 * nto + 1] = n;
    n += count[r];
    nto++;
  }
  { /* by owner, in the order given */
    PetscInt *sorted;

    PetscCall(PetscMalloc1(c->nsend, &sorted));
    for (PetscInt k = 0; k < c->nsend; k++) {
      PetscMPIInt owner;

      PetscCall(PetscLayoutFindOwner(A->rmap, i[c->sendhost[k]], &owner));
      sorted[place[owner]++] = c->sendhost[k];
    }
    PetscCall(PetscFree(c->sendhost));
    c->sendhost = sorted;
  }
  PetscCall(PetscCommBuildTwoSided(comm, 2, MPIU_INT, nto, to, data, &nfrom, &from, &fromdata));
  PetscCall(PetscMalloc1(nfrom, &order));
  for (PetscMPIInt k = 0; k < nfrom; k++) { /* they come in any order */
    PetscMPIInt p = k;

    for (; p > 0 && from[order[p - 1]] > from[k]; p--) order[p] = order[p - 1];
    order[p] = k;
    c->nrecv += fromdata[2 * k];
  }
  PetscCall(PetscMalloc1(c->nrecv, &remote));
  for (PetscMPIInt k = 0; k < nfrom; k++) {
    for (PetscInt q = 0; q < fromdata[2 * order[k]]; q++, used++) {
      remote[used].rank  = from[order[k]];
      remote[used].index = fromdata[2 * order[k] + 1] + q;
    }
  }
  PetscCall(PetscFree(order));
  PetscCall(PetscFree(from));
  PetscCall(PetscFree(fromdata));
  PetscCall(PetscFree2(to, data));
  PetscCall(PetscFree2(count, place));
  PetscCall(PetscSFCreate(comm, &c->sf));
  PetscCall(PetscSFSetGraph(c->sf, c->nsend, c->nrecv, NULL, PETSC_OWN_POINTER, remote, PETSC_OWN_POINTER));
  PetscCall(PetscMalloc2(c->nsend, &si, c->nsend, &sj));
  PetscCall(PetscMalloc1(c->nrecv, ri));
  PetscCall(PetscMalloc1(c->nrecv, rj));
  for (PetscInt k = 0; k < c->nsend; k++) {
    si[k] = i[c->sendhost[k]];
    sj[k] = j[c->sendhost[k]];
  }
  PetscCall(PetscSFBcastBegin(c->sf, MPIU_INT, si, *ri, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(c->sf, MPIU_INT, si, *ri, MPI_REPLACE));
  PetscCall(PetscSFBcastBegin(c->sf, MPIU_INT, sj, *rj, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(c->sf, MPIU_INT, sj, *rj, MPI_REPLACE));
  PetscCall(PetscFree2(si, sj));
  PetscCall(PetscMalloc1(c->nsend, &c->sendbuf));
  PetscCall(PetscMalloc1(c->nrecv, &c->recvbuf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What one process alone cannot do is the error of all, so that none waits for it */
static PetscErrorCode HybMPICOOAgree(Mat A, PetscErrorCode ierr)
{
  PetscFunctionBegin;
  PetscCall(HybAgree(PetscObjectComm((PetscObject)A), ierr, "Sorting coordinates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parts of a parallel matrix with an empty diagonal block and the pattern of the off-diagonal one, on the host */
typedef struct {
  PetscInt    *zeros, *i, *j;
  PetscScalar *a;
} HybMPICOOHost;

static PetscErrorCode HybMPICOOHostGet(const HybExec *x, const HybCSR *off, HybMPICOOHost *h)
{
  PetscFunctionBegin;
  PetscCall(PetscCalloc1(off->m + 1, &h->zeros));
  PetscCall(PetscMalloc1(off->m + 1, &h->i));
  PetscCall(PetscMalloc1(off->nnz + 1, &h->j));
  PetscCall(PetscCalloc1(off->nnz + 1, &h->a));
  PetscCall(x->backend->copy(x, h->i, off->i, sizeof(PetscInt) * ((size_t)off->m + 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->copy(x, h->j, off->j, sizeof(PetscInt) * (size_t)off->nnz, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->sync(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPICOOHostFree(HybMPICOOHost *h)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(h->zeros));
  PetscCall(PetscFree(h->i));
  PetscCall(PetscFree(h->j));
  PetscCall(PetscFree(h->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of T get the arrays; the off-diagonal one's columns are those that T has made of them, in j */
static PetscErrorCode HybMPICOOAdoptBlocks(Mat T, const HybChoices *choices, const HybExec *x, const PetscInt *j, HybArena arrays[2], HybCSR csr[2])
{
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(T, &block[0], &block[1], &garray));
  PetscCall(x->backend->copy(x, csr[1].j, j, sizeof(PetscInt) * (size_t)csr[1].nnz, HYB_COPY_HOST_TO_DEVICE));
  csr[1].n = block[1]->cmap->n;
  for (int k = 0; k < 2; k++) {
    Mat_SeqAIJHybridGPU *b = NULL;

    PetscCall(MatSetType(block[k], MATSEQAIJHYBRIDGPU));
    PetscCall(MatSeqAIJHybridGPUGetData(block[k], &b));
    b->choices = *choices;
    block[k]->nonzerostate--; /* adoption counts: to what the parent's blocks have */
    PetscCall(MatSeqAIJHybridGPUAdoptDevice(block[k], x, &arrays[k], &csr[k]));
    /* as the parent's. A's stays as it is: the first values' assembly leaves what was said of symmetries. */
    block[k]->num_ass = 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's data become those of a parallel matrix with these blocks; the off-diagonal one has global columns still. Errors
   are all processes' alike. */
static PetscErrorCode HybMPICOOAdopt(Mat A, const HybExec *x, HybMPICOOHost *h, HybArena arrays[2], HybCSR csr[2])
{
  PetscInt             none    = 0;
  PetscScalar          nothing = 0;
  Mat                  T;
  void                *data;
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)A), A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N, h->zeros, &none, &nothing, h->i, h->j, h->a, &T));
  ierr = HybMPICOOAgree(A, HybMPICOOAdoptBlocks(T, &hyb->choices, x, h->j, arrays, csr));
  if (ierr) (void)MatDestroy(&T);
  PetscCall(ierr);
  PetscCall(MatSetOption(T, MAT_IGNORE_OFF_PROC_ENTRIES, hyb->ignoreoffproc));
  PetscCall(MatSetOption(T, MAT_ROW_ORIENTED, (PetscBool)!hyb->bycolumns));
  data             = A->data;
  A->data          = T->data;
  T->data          = data;
  A->preallocated  = PETSC_TRUE;
  A->assembled     = PETSC_TRUE;
  A->was_assembled = PETSC_FALSE;
  /* as the parent's: before 3.22 it is the first values' assembly that sums, and MatSetPreallocationCOO() counts. What
     the last assembly saw stands, so that the next one finds another pattern and ends what was said of the old one */
  if (PETSC_VERSION_GE(3, 22, 0)) {
    const PetscObjectState seen = A->ass_nonzerostate;

    PetscCall(MatMPIAIJHybridGPUSumStates(A));
    A->ass_nonzerostate = seen;
  }
  PetscCall(MatDestroy(&T));
  /* products may come before the values do: halos are of other columns, which the sum of states may not tell */
  PetscCall(HybMPICOOAgree(A, MatMPIAIJHybridGPUSetBlocks(A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The coordinates of own rows and those received as one list, which is split between the blocks where it is sorted */
static PetscErrorCode HybMPICOOBlocks(Mat A, const HybExec *x, PetscCount ncoo, const PetscInt *i, const PetscInt *j, const PetscInt *ri, const PetscInt *rj, HybMPICOO *c, HybArena arrays[2], HybCSR csr[2])
{
  const PetscCount all = ncoo + c->nrecv;
  HybArena         work;
  PetscInt        *list[2], *other[2];
  PetscCount       nother = 0, *place;
  PetscErrorCode   ierr   = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&work, x));
  for (int k = 0; k < 2 && !ierr; k++) {
    ierr = HybArenaAlloc(&work, HYB_MEM_DEVICE, all, sizeof(PetscInt), &list[k]);
    if (!ierr) ierr = x->backend->copy(x, list[k], k ? j : i, sizeof(PetscInt) * (size_t)ncoo, HYB_COPY_HOST_TO_DEVICE);
    if (!ierr) ierr = x->backend->copy(x, list[k] + ncoo, k ? rj : ri, sizeof(PetscInt) * (size_t)c->nrecv, HYB_COPY_HOST_TO_DEVICE);
  }
  if (!ierr) ierr = HybLogToDevice(2 * sizeof(PetscInt) * (PetscLogDouble)all);
  if (!ierr) ierr = x->backend->csr->coosplit(x, &work, all, list[0], list[1], A->rmap->rstart, A->rmap->rend, A->cmap->rstart, A->cmap->rend, &nother, &place, &other[0], &other[1]);
  for (int b = 0; b < 2 && !ierr; b++) {
    csr[b].m = A->rmap->n;
    csr[b].n = b == 0 ? A->cmap->n : A->cmap->N;
    ierr     = HybCOOSymbolicOnDevice(x, &work, b ? nother : all, b ? other[0] : list[0], b ? other[1] : list[1], &arrays[b], &c->block[b], &csr[b]);
  }
  if (!ierr) ierr = x->backend->csr->coocompose(x, nother, place, c->block[1].map);
  PetscCall(HybArenaReset(&work));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which coordinates go to other processes */
static PetscErrorCode HybMPICOOSends(Mat A, const PetscInt *i, const PetscInt *j, HybMPICOO *c)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscInt             rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(PetscLayoutGetRange(A->rmap, &rstart, &rend));
  PetscCall(PetscMalloc1(c->ncoo, &c->sendhost));
  for (PetscCount k = 0; k < c->ncoo; k++) {
    if (i[k] >= rstart && i[k] < rend) continue; /* most; j is not read */
    if (i[k] < 0 || j[k] < 0) continue;
    PetscCheck(!A->nooffprocentries, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "MAT_NO_OFF_PROC_ENTRIES is set, but coordinate %" PetscCount_FMT " is of row %" PetscInt_FMT ", which another process has", k, i[k]);
    PetscCheck(i[k] < A->rmap->N && j[k] < A->cmap->N, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Coordinate %" PetscCount_FMT ", (%" PetscInt_FMT ",%" PetscInt_FMT "), is outside of the matrix, %" PetscInt_FMT " x %" PetscInt_FMT, k, i[k], j[k], A->rmap->N, A->cmap->N);
    if (!hyb->ignoreoffproc) c->sendhost[c->nsend++] = (PetscInt)k;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* began: what happened before, here alone */
static PetscErrorCode HybMPICOOBuild(Mat A, const HybExec *x, const PetscInt *i, const PetscInt *j, HybMPICOO *c, PetscErrorCode began)
{
  PetscInt       *ri, *rj;
  HybArena        arrays[2];
  HybCSR          csr[2];
  HybMPICOOHost   host = {NULL, NULL, NULL, NULL};
  PetscErrorCode  ierr;
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(HybMPICOOAgree(A, began ? began : HybMPICOOSends(A, i, j, c)));
  PetscCall(HybMPICOOExchange(A, i, j, c, &ri, &rj));
  for (int b = 0; b < 2; b++) PetscCall(HybArenaInit(&arrays[b], x));
  ierr = HybMPICOOBlocks(A, x, c->ncoo, i, j, ri, rj, c, arrays, csr);
  PetscCall(PetscFree(ri));
  PetscCall(PetscFree(rj));
  if (!ierr) ierr = HybArenaAlloc(&c->arena, HYB_MEM_DEVICE, c->nsend, sizeof(PetscInt), &c->senddevice);
  if (!ierr) ierr = x->backend->copy(x, c->senddevice, c->sendhost, sizeof(PetscInt) * (size_t)c->nsend, HYB_COPY_HOST_TO_DEVICE);
  if (!ierr) ierr = HybMPICOOHostGet(x, &csr[1], &host);
  ierr = HybMPICOOAgree(A, ierr);
  if (!ierr) ierr = HybMPICOOAdopt(A, x, &host, arrays, csr);
  PetscCall(HybMPICOOHostFree(&host));
  if (ierr)
    for (int b = 0; b < 2; b++) (void)HybArenaReset(&arrays[b]);
  PetscCall(ierr);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  c->block[1].n = block[1]->cmap->n; /* no longer all columns */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An empty list, and the coordinates on the host */
static PetscErrorCode HybMPICOOBegin(const HybExec *x, PetscCount ncoo, const PetscInt *ij[2], void *host[2], void *copy[2], HybMPICOO **coo)
{
  HybMPICOO *c;

  PetscFunctionBegin;
  PetscCall(PetscNew(coo));
  c       = *coo;
  c->ncoo = ncoo;
  PetscCall(HybArenaInit(&c->arena, x));
  for (int k = 0; k < 2; k++) {
    PetscCall(HybArenaInit(&c->block[k].arena, x));
    PetscCall(HybArenaInit(&c->block[k].hostarena, x));
  }
  for (int k = 0; k < 2; k++) PetscCall(HybCOOToHost(ij[k], ncoo, sizeof(PetscInt), &host[k], &copy[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What may be done with entries that A's blocks lack, or do not use: coordinates leave it as it was where there were
   blocks before, as the parent's do */
static const HybAskedGroup left[HYB_LEFT] = {HYB_ASKED_NEW_NONZEROS, HYB_ASKED_UNUSED};

PetscErrorCode MatMPIAIJHybridGPULeftOptions(Mat A, HybAsked asked[2][HYB_LEFT])
{
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  for (int k = 0; k < 2; k++)
    for (int g = 0; g < HYB_LEFT; g++) asked[k][g].said = (PetscBool)(block[k] && HybFrameOption(block[k], left[g], &asked[k][g].op, &asked[k][g].flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUSetLeftOptions(Mat A, const HybAsked asked[2][HYB_LEFT])
{
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  for (int k = 0; k < 2; k++)
    for (int g = 0; g < HYB_LEFT; g++)
      if (asked[k][g].said)
        PetscCall(MatSetOption(block[k], asked[k][g].op, asked[k][g].flg));
      else if (left[g] == HYB_ASKED_NEW_NONZEROS)
        PetscCall(MatSetOption(block[k], MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* not done where a process lacks the device, then the parent's do it */
static PetscErrorCode MatMPIAIJHybridGPUPreallocateCOO(Mat A, PetscCount ncoo, const PetscInt *i, const PetscInt *j, PetscBool *done)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  HybExec              x;
  HybMPICOO           *c = NULL;
  HybAsked             asked[2][HYB_LEFT];
  PetscInt             want[2];
  PetscBool            idevice, wanted;
  const PetscInt      *ij[2]   = {i, j};
  void                *host[2] = {NULL, NULL}, *copy[2] = {NULL, NULL};
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, &x));
  PetscCall(HybCOOIsOnDevice(i, &idevice));
  PetscCall(HybWhereCOO(A, &hyb->choices, idevice, ncoo, &wanted));
  want[0] = !HybExecOnDevice(&x) || A->structure_only || ncoo > PETSC_MAX_INT;
#if PETSC_VERSION_GE(3, 19, 0)
  if (A->hash_active) want[0] = 1;
#endif
  want[1] = wanted;
  { /* all can, and for one at least it is worth while */
    PetscInt all[2];

    PetscCallMPI(MPI_Allreduce(want, all, 2, MPIU_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
    if (all[0] || !all[1]) {
      PetscCall(PetscObjectCompose((PetscObject)A, "HybMPICOO", NULL));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(HybEventBegin(HybGlueState.event.op[HYB_OP_COOPATTERN], A, 0, 0, 0));
  PetscCall(MatMPIAIJHybridGPULeftOptions(A, asked));
  ierr = HybMPICOOBegin(&x, ncoo, ij, host, copy, &c);
  ierr = HybMPICOOBuild(A, &x, (const PetscInt *)host[0], (const PetscInt *)host[1], c, ierr);
  if (ierr && c) (void)HybMPICOODestroy(c);
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(copy[k]));
  PetscCall(ierr);
  PetscCall(HybContainerCompose((PetscObject)A, "HybMPICOO", c, HybMPICOODestroy));
  PetscCall(MatMPIAIJHybridGPUSetLeftOptions(A, (const HybAsked(*)[HYB_LEFT])asked));
  PetscCall(HybEventEnd(HybGlueState.event.op[HYB_OP_COOPATTERN], A, 0, 0, 0));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPICOOGatherSent(const HybExec *x, HybArena *work, HybMPICOO *c, const PetscScalar *v)
{
  HybScalar *d;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, c->nsend, sizeof(HybScalar), &d));
  PetscCall(x->backend->csr->gather(x, c->nsend, c->senddevice, PETSC_FALSE, (const HybScalar *)v, d));
  PetscCall(x->backend->copy(x, c->sendbuf, d, sizeof(HybScalar) * (size_t)c->nsend, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->sync(x));
  PetscCall(HybLogToHost(sizeof(HybScalar) * (PetscLogDouble)c->nsend));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values for other processes go out, theirs come into c->recvbuf. They do so after an error too: the others wait. */
static PetscErrorCode HybMPICOOSendValues(const HybExec *x, HybArena *work, HybMPICOO *c, const PetscScalar *v, PetscBool vdevice)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (vdevice && c->nsend)
    ierr = HybMPICOOGatherSent(x, work, c, v);
  else
    for (PetscInt k = 0; k < c->nsend; k++) c->sendbuf[k] = v ? v[c->sendhost[k]] : 0;
  PetscCall(PetscSFBcastBegin(c->sf, MPIU_SCALAR, c->sendbuf, c->recvbuf, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(c->sf, MPIU_SCALAR, c->sendbuf, c->recvbuf, MPI_REPLACE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The given values followed by those received, on the device */
static PetscErrorCode HybMPICOOValuesOnDevice(const HybExec *x, HybArena *work, HybMPICOO *c, const PetscScalar *v, PetscBool vdevice, const PetscScalar **all)
{
  PetscScalar *d;
  void        *dv;

  PetscFunctionBegin;
  if (!c->nrecv) {
    PetscCall(HybCOOToDevice(x, work, v, c->ncoo, sizeof(PetscScalar), &dv));
    *all = (const PetscScalar *)dv;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, c->ncoo + c->nrecv, sizeof(PetscScalar), &d));
  if (v)
    PetscCall(x->backend->copy(x, d, v, sizeof(PetscScalar) * (size_t)c->ncoo, vdevice ? HYB_COPY_DEVICE_TO_DEVICE : HYB_COPY_HOST_TO_DEVICE));
  else
    PetscCall(x->backend->zero(x, d, sizeof(PetscScalar) * (size_t)c->ncoo));
  PetscCall(x->backend->copy(x, d + c->ncoo, c->recvbuf, sizeof(PetscScalar) * (size_t)c->nrecv, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybLogToDevice(sizeof(PetscScalar) * (PetscLogDouble)(c->nrecv + (vdevice || !v ? 0 : c->ncoo))));
  *all = d;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUSetValuesCOO(Mat A, const PetscScalar *v, InsertMode mode, PetscBool *done)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  HybMPICOO           *c   = NULL;
  Mat                  block[2];
  const PetscInt      *garray;
  HybExec              x;
  HybArena             work;
  PetscBool            device[2], vdevice, add = (PetscBool)(mode == ADD_VALUES);
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(HybContainerGet((PetscObject)A, "HybMPICOO", &c));
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  PetscCall(HybExecRefresh(&c->arena.exec));
  x = c->arena.exec;
  for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(block[k], &x, &device[k]));
  if (!device[0] || !device[1]) x = c->arena.exec;
  PetscCall(HybCOOIsOnDevice(v, &vdevice));
  PetscCall(HybArenaInit(&work, &c->arena.exec));
  ierr = HybMPICOOSendValues(&c->arena.exec, &work, c, v, vdevice);
  if (!ierr && device[0] && device[1]) {
    const PetscScalar *all = NULL;

    if (!ierr) ierr = HybMPICOOValuesOnDevice(&x, &work, c, v, vdevice, &all);
    for (int k = 0; k < 2 && !ierr; k++) ierr = MatSeqAIJHybridGPUSetValuesCOODevice(block[k], &c->block[k], &x, all, add);
    if (!ierr) hyb->assembling = PETSC_TRUE;
  } else if (!ierr) { /* the host has taken over */
    PetscScalar *all;
    void        *hv, *cv;

    PetscCall(HybCOOToHost(v, c->ncoo, sizeof(PetscScalar), &hv, &cv));
    PetscCall(PetscMalloc1(c->ncoo + c->nrecv, &all));
    if (hv)
      PetscCall(PetscArraycpy(all, (PetscScalar *)hv, c->ncoo));
    else
      PetscCall(PetscArrayzero(all, c->ncoo));
    PetscCall(PetscArraycpy(all + c->ncoo, c->recvbuf, c->nrecv));
    PetscCall(PetscFree(cv));
    for (int k = 0; k < 2 && !ierr; k++) ierr = MatSeqAIJHybridGPUSetValuesCOOHost(block[k], &c->block[k], all, add);
    PetscCall(PetscFree(all));
    if (!ierr) hyb->assembling = PETSC_TRUE;
  }
  PetscCall(HybArenaReset(&work));
  PetscCall(ierr);
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_MPIAIJHybridGPU(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscBool            done;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  hyb->coocount = n;
  PetscCall(MatMPIAIJHybridGPUPreallocateCOO(A, n, i, j, &done));
  if (!done) {
    PetscCall(HybCOOPreallocateOnHost(A, HybGlueState.coopreallocation[1], n, i, j));
    /* the parent has made other blocks, of a type of its own, and products may come before the values do */
    PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
    if (A->assembled)
      PetscCall(MatMPIAIJHybridGPUSetBlocks(A));
    else
      hyb->halo.setups++;
    hyb->coopattern = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetValuesCOO_MPIAIJHybridGPU(Mat A, const PetscScalar v[], InsertMode mode)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscBool            done;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(MatMPIAIJHybridGPUSetValuesCOO(A, v, mode, &done));
  if (!done) PetscCall(HybCOOSetValuesOnHost(A, HybGlueState.coovalues[1], hyb->coocount, v, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUComposeCOO(Mat A, PetscBool on)
{
  PetscFunctionBegin;
  PetscCall(HybComposeOver((PetscObject)A, "MatSetPreallocationCOO_C", (void (*)(void))MatSetPreallocationCOO_MPIAIJHybridGPU, &HybGlueState.coopreallocation[1], on));
  PetscCall(HybComposeOver((PetscObject)A, "MatSetValuesCOO_C", (void (*)(void))MatSetValuesCOO_MPIAIJHybridGPU, &HybGlueState.coovalues[1], on));
  PetscFunctionReturn(PETSC_SUCCESS);
}

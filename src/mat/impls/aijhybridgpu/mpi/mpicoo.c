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
  HybMPICOO     *c    = (HybMPICOO *)ctx;
  PetscErrorCode ierr = PetscSFDestroy(&c->sf);

  PetscFunctionBegin;
  ierr = HybErrorFirst(ierr, HybArenaReset(&c->arena));
  for (int k = 0; k < 2; k++) ierr = HybErrorFirst(ierr, HybArenaResetBoth(&c->block[k].arena, &c->block[k].hostarena));
  PetscCall(PetscFree(c));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What one process alone cannot do is the error of all, so that none waits for it */
static PetscErrorCode HybMPICOOAgree(Mat A, PetscErrorCode ierr)
{
  PetscFunctionBegin;
  PetscCall(HybAgree(PetscObjectComm((PetscObject)A), ierr, "Sorting coordinates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To which processes coordinates go: how many, and where they begin among all that are sent */
typedef struct {
  PetscMPIInt n, *rank;
  PetscInt   *piece; /* two numbers for each */
  HybArena    work;  /* of the host; has these */
} HybMPICOOTo;

/* Not collective: c->sendhost by owners, and of each in the order given */
static PetscErrorCode HybMPICOOSort(Mat A, const PetscInt *i, HybMPICOO *c, HybMPICOOTo *to)
{
  PetscMPIInt size, owner = 0;
  PetscInt   *count, *sorted, n = 0;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(HybArenaCalloc(&to->work, HYB_MEM_HOST, size, sizeof(PetscInt), &count));
  for (PetscInt k = 0; k < c->nsend; k++) {
    PetscCall(PetscLayoutFindOwner(A->rmap, i[c->sendhost[k]], &owner));
    count[owner]++;
  }
  for (PetscMPIInt r = 0; r < size; r++) to->n += count[r] > 0;
  PetscCall(HybArenaAlloc(&to->work, HYB_MEM_HOST, to->n, sizeof(PetscMPIInt), &to->rank));
  PetscCall(HybArenaAlloc(&to->work, HYB_MEM_HOST, 2 * (PetscCount)to->n, sizeof(PetscInt), &to->piece));
  for (PetscMPIInt r = 0, q = 0; r < size; r++) {
    const PetscInt begin = n;

    if (!count[r]) continue;
    to->rank[q]          = r;
    to->piece[2 * q]     = count[r];
    to->piece[2 * q + 1] = begin;
    n += count[r];
    count[r] = begin; /* from now on: where the next one goes */
    q++;
  }
  PetscCall(HybArenaAlloc(&c->arena, HYB_MEM_HOST, c->nsend, sizeof(PetscInt), &sorted));
  for (PetscInt k = 0; k < c->nsend; k++) {
    (void)PetscLayoutFindOwner(A->rmap, i[c->sendhost[k]], &owner); /* as above */
    sorted[count[owner]++] = c->sendhost[k];
  }
  PetscCall(HybArenaFree(&c->arena, &c->sendhost));
  c->sendhost = sorted;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: what comes from whom, in the order of ranks, which is the leaves of c->sf; and room for all that goes
   and comes. from, piece: in any order. */
static PetscErrorCode HybMPICOOReceives(HybMPICOO *c, PetscMPIInt nfrom, const PetscMPIInt *from, const PetscInt *piece, HybArena *work, PetscInt *sent[2], PetscInt *came[2])
{
  PetscMPIInt *order;
  PetscSFNode *remote;
  PetscInt     used = 0;
  PetscInt64   all  = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, nfrom, sizeof(PetscMPIInt), &order));
  for (PetscMPIInt k = 0; k < nfrom; k++) {
    PetscMPIInt p = k;

    for (; p > 0 && from[order[p - 1]] > from[k]; p--) order[p] = order[p - 1];
    order[p] = k;
    all += piece[2 * k];
  }
  PetscCheck(all <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_SUP, "%" PetscInt64_FMT " coordinates of rows of this process are given on %d others, at most %" PetscInt_FMT " may be: give them where the rows are, or use a PETSc with 64-bit indices", all, nfrom, (PetscInt)PETSC_MAX_INT);
  c->nrecv = (PetscInt)all;
  for (int k = 0; k < 2; k++) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, c->nsend, sizeof(PetscInt), &sent[k]));
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, c->nrecv, sizeof(PetscInt), &came[k]));
  }
  /* after an error it goes out as it is */
  PetscCall(HybArenaCalloc(&c->arena, HYB_MEM_HOST, c->nsend, sizeof(PetscScalar), &c->sendbuf));
  PetscCall(HybArenaAlloc(&c->arena, HYB_MEM_HOST, c->nrecv, sizeof(PetscScalar), &c->recvbuf));
  PetscCall(PetscMalloc1(c->nrecv, &remote));
  for (PetscMPIInt k = 0; k < nfrom; k++) {
    for (PetscInt q = 0; q < piece[2 * order[k]]; q++, used++) {
      remote[used].rank  = from[order[k]];
      remote[used].index = piece[2 * order[k] + 1] + q;
    }
  }
  PetscCall(PetscSFSetGraph(c->sf, c->nsend, c->nrecv, NULL, PETSC_OWN_POINTER, remote, PETSC_OWN_POINTER));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends the coordinates of other processes' rows to their owners: c->sf, whose leaves are what comes here, and came,
   those, in to->work. An error of one process is one of all. */
static PetscErrorCode HybMPICOOExchange(Mat A, const PetscInt *ij[2], HybMPICOO *c, HybMPICOOTo *to, PetscInt *came[2])
{
  MPI_Comm       comm  = PetscObjectComm((PetscObject)A);
  PetscMPIInt    nfrom = 0, *from = NULL;
  PetscInt      *piece = NULL, *sent[2] = {NULL, NULL};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = PetscCommBuildTwoSided(comm, 2, MPIU_INT, to->n, to->rank, to->piece, &nfrom, &from, &piece);
  ierr = HybErrorFirst(ierr, PetscSFCreate(comm, &c->sf));
  if (!ierr) ierr = HybMPICOOReceives(c, nfrom, from, piece, &to->work, sent, came);
  PetscCall(PetscFree(from));
  PetscCall(PetscFree(piece));
  PetscCall(HybMPICOOAgree(A, ierr));
  for (int d = 0; d < 2; d++) {
    for (PetscInt k = 0; k < c->nsend; k++) sent[d][k] = ij[d][c->sendhost[k]];
    PetscCall(PetscSFBcastBegin(c->sf, MPIU_INT, sent[d], came[d], MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(c->sf, MPIU_INT, sent[d], came[d], MPI_REPLACE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parts of a parallel matrix with an empty diagonal block and the pattern of the off-diagonal one, on the host */
typedef struct {
  PetscInt    *zeros, *i, *j;
  PetscScalar *a;
} HybMPICOOHost;

static PetscErrorCode HybMPICOOHostGet(const HybExec *x, HybArena *work, const HybCSR *off, HybMPICOOHost *h)
{
  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, (PetscCount)off->m + 1, sizeof(PetscInt), &h->zeros));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)off->m + 1, sizeof(PetscInt), &h->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, off->nnz + 1, sizeof(PetscInt), &h->j));
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, off->nnz + 1, sizeof(PetscScalar), &h->a));
  PetscCall(x->backend->copy(x, h->i, off->i, sizeof(PetscInt) * ((size_t)off->m + 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->copy(x, h->j, off->j, sizeof(PetscInt) * (size_t)off->nnz, HYB_COPY_DEVICE_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of T get the arrays; the off-diagonal one's columns are those that T has made of them, in j */
static PetscErrorCode HybMPICOOAdoptBlocks(Mat T, const HybChoices *choices, const HybExec *x, const PetscInt *j, HybArena arrays[2], HybCSR csr[2])
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(T, &block[0], &block[1], NULL));
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

/* Not collective: the lists go to A, in any case, and its new blocks get the options that the old ones had */
static PetscErrorCode HybMPICOOAdopted(Mat A, HybMPICOO *c, const HybAsked asked[2][HYB_LEFT])
{
  Mat            block[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  c->block[1].n = block[1]->cmap->n; /* no longer all columns */
  ierr          = HybContainerCompose((PetscObject)A, "HybMPICOO", c, HybMPICOODestroy);
  /* after an error too: assemblies go by them, on all processes alike */
  PetscCall(MatMPIAIJHybridGPUSetLeftOptions(A, asked));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's data become those of a parallel matrix with these blocks; the off-diagonal one has global columns still. Errors
   are all processes' alike. *c goes to A. */
static PetscErrorCode HybMPICOOAdopt(Mat A, const HybExec *x, HybMPICOO **c, const HybAsked asked[2][HYB_LEFT], HybMPICOOHost *h, HybArena arrays[2], HybCSR csr[2])
{
  PetscInt             none    = 0;
  PetscScalar          nothing = 0;
  Mat                  T;
  Mat_MPIAIJHybridGPU *hyb = (Mat_MPIAIJHybridGPU *)A->spptr;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)A), A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N, h->zeros, &none, &nothing, h->i, h->j, h->a, &T));
  ierr = HybMPICOOAgree(A, HybMPICOOAdoptBlocks(T, &hyb->choices, x, h->j, arrays, csr));
  if (ierr) (void)MatDestroy(&T);
  PetscCall(ierr);
  /* from here on an error is this process's own, and the others are told of it at the end */
  ierr = MatMPIAIJHybridGPUTakeData(A, &T);
  /* as the parent's: the first values' assembly makes it a matrix. Its columns of others have their numbers already,
     and so it was assembled for who looks for them there. */
  A->preallocated  = PETSC_TRUE;
  A->assembled     = PETSC_FALSE;
  A->was_assembled = PETSC_TRUE;
  hyb->coopattern  = PETSC_TRUE;
  /* as the parent's: before 3.22 it is the first values' assembly that sums, and MatSetPreallocationCOO() counts. What
     the last assembly saw stands, so that the next one finds another pattern and ends what was said of the old one */
  if (HYB_COO_COUNTS_STATES) {
    const PetscObjectState seen = A->ass_nonzerostate;

    PetscCall(MatMPIAIJHybridGPUSumStates(A, PETSC_SUCCESS, ""));
    A->ass_nonzerostate = seen;
  }
  /* products may come before the values do: halos are of other columns, which the sum of states may not tell */
  ierr = HybErrorFirst(ierr, MatMPIAIJHybridGPUSetBlocks(A));
  ierr = HybErrorFirst(ierr, HybMPICOOAdopted(A, *c, asked));
  *c   = NULL;
  ierr = HybMPICOOAgree(A, ierr);
  if (ierr) { /* no values for what is not whole */
    (void)PetscObjectCompose((PetscObject)A, "HybMPICOO", NULL);
    hyb->coocount = -1;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The coordinates of own rows and those received as one list, which is split between the blocks where it is sorted */
static PetscErrorCode HybMPICOOBlocks(Mat A, const HybExec *x, PetscCount ncoo, const PetscInt *i, const PetscInt *j, const PetscInt *ri, const PetscInt *rj, HybMPICOO *c, HybArena arrays[2], HybCSR csr[2])
{
  const PetscCount all = ncoo + c->nrecv;
  PetscInt        *list[2], *other[2];
  PetscCount       nother = 0, *place;
  PetscErrorCode   ierr   = PETSC_SUCCESS;
  HybArena         work   = HybArenaOn(x);

  PetscFunctionBegin;
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

/* Not collective: which coordinates go to other processes, and to which */
static PetscErrorCode HybMPICOOSends(Mat A, const PetscInt *i, const PetscInt *j, HybMPICOO *c, HybMPICOOTo *to)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscInt             rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(PetscLayoutGetRange(A->rmap, &rstart, &rend));
  PetscCall(HybArenaAlloc(&c->arena, HYB_MEM_HOST, c->ncoo, sizeof(PetscInt), &c->sendhost));
  for (PetscCount k = 0; k < c->ncoo; k++) {
    if (i[k] >= rstart && i[k] < rend) continue; /* most; j is not read */
    if (i[k] < 0 || j[k] < 0) continue;
    PetscCheck(!A->nooffprocentries, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "MAT_NO_OFF_PROC_ENTRIES is set, but coordinate %" PetscCount_FMT " is of row %" PetscInt_FMT ", which another process has", k, i[k]);
    PetscCheck(i[k] < A->rmap->N && j[k] < A->cmap->N, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Coordinate %" PetscCount_FMT ", (%" PetscInt_FMT ",%" PetscInt_FMT "), is outside of the matrix, %" PetscInt_FMT " x %" PetscInt_FMT, k, i[k], j[k], A->rmap->N, A->cmap->N);
    if (!hyb->ignoreoffproc) c->sendhost[c->nsend++] = (PetscInt)k;
  }
  PetscCall(HybMPICOOSort(A, i, c, to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* began: what happened before, here alone. *c goes to A, or stays after an error. */
static PetscErrorCode HybMPICOOBuild(Mat A, const HybExec *x, const PetscInt *ij[2], HybMPICOO **c, const HybAsked asked[2][HYB_LEFT], PetscErrorCode began)
{
  PetscInt      *came[2] = {NULL, NULL};
  HybArena       arrays[2];
  HybCSR         csr[2];
  HybMPICOOHost  host = {NULL, NULL, NULL, NULL};
  HybMPICOOTo    to   = {.n = 0};
  PetscErrorCode ierr = began;

  PetscFunctionBegin;
  for (int b = 0; b < 2; b++) arrays[b] = HybArenaOn(x);
  to.work = HybArenaOn(x);
  if (!ierr) ierr = HybMPICOOSends(A, ij[0], ij[1], *c, &to);
  ierr = HybMPICOOAgree(A, ierr);
  if (!ierr) {
    ierr = HybMPICOOExchange(A, ij, *c, &to, came);
    if (!ierr) ierr = HybMPICOOBlocks(A, x, (*c)->ncoo, ij[0], ij[1], came[0], came[1], *c, arrays, csr);
    if (!ierr) ierr = HybArenaAlloc(&(*c)->arena, HYB_MEM_DEVICE, (*c)->nsend, sizeof(PetscInt), &(*c)->senddevice);
    if (!ierr) ierr = x->backend->copy(x, (*c)->senddevice, (*c)->sendhost, sizeof(PetscInt) * (size_t)(*c)->nsend, HYB_COPY_HOST_TO_DEVICE);
    if (!ierr) ierr = HybMPICOOHostGet(x, &to.work, &csr[1], &host);
    ierr = HybMPICOOAgree(A, ierr); /* the exchange may have failed here alone, when its messages were on their way */
  }
  if (!ierr) ierr = HybMPICOOAdopt(A, x, c, asked, &host, arrays, csr);
  for (int b = 0; b < 2; b++) (void)HybArenaReset(&arrays[b]); /* nothing is left there but after an error */
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&to.work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An empty list, and the coordinates on the host */
static PetscErrorCode HybMPICOOBegin(const HybExec *x, PetscCount ncoo, const PetscInt *ij[2], void *host[2], void *copy[2], HybMPICOO **coo)
{
  HybMPICOO *c;

  PetscFunctionBegin;
  PetscCall(PetscNew(coo));
  c        = *coo;
  c->ncoo  = ncoo;
  c->arena = HybArenaOn(x);
  for (int k = 0; k < 2; k++) {
    c->block[k].arena     = HybArenaOn(x);
    c->block[k].hostarena = HybArenaOn(x);
  }
  for (int k = 0; k < 2; k++) PetscCall(HybCOOToHost(ij[k], ncoo, sizeof(PetscInt), &host[k], &copy[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What may be done with entries that A's blocks lack, or do not use: coordinates leave it as it was where there were
   blocks before, as the parent's do */
static const HybAskedGroup left[HYB_LEFT] = {HYB_ASKED_NEW_NONZEROS, HYB_ASKED_UNUSED};

PetscErrorCode MatMPIAIJHybridGPULeftOptions(Mat A, HybAsked asked[2][HYB_LEFT])
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++)
    for (int g = 0; g < HYB_LEFT; g++) asked[k][g].said = (PetscBool)(block[k] && HybFrameOption(block[k], left[g], &asked[k][g].op, &asked[k][g].flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUSetLeftOptions(Mat A, const HybAsked asked[2][HYB_LEFT])
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++)
    for (int g = 0; g < HYB_LEFT; g++)
      if (asked[k][g].said)
        PetscCall(MatSetOption(block[k], asked[k][g].op, asked[k][g].flg));
      else if (left[g] == HYB_ASKED_NEW_NONZEROS)
        PetscCall(MatSetOption(block[k], MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: all can have their coordinates sorted on the device, and for one at least it is worth while */
static PetscErrorCode HybMPICOOWhere(Mat A, PetscCount ncoo, const PetscInt *i, HybExec *x, PetscBool *there)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscInt64           any[2];
  PetscBool            idevice = PETSC_FALSE, wanted = PETSC_FALSE, fails = PETSC_TRUE;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  ierr = MatMPIAIJHybridGPUGetData(A, &hyb);
  if (!ierr) ierr = HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x);
  if (!ierr) ierr = HybCOOIsOnDevice(i, &idevice);
  if (!ierr) wanted = HybWhereCOO(A, &hyb->choices, idevice, ncoo);
  if (!ierr) fails = (PetscBool)(!HybExecOnDevice(x) || A->structure_only || ncoo > PETSC_MAX_INT);
  if (HybHashActive(A)) fails = PETSC_TRUE;
  any[0] = fails;
  any[1] = wanted;
  PetscCall(HybAgreeMax(PetscObjectComm((PetscObject)A), ierr, "Sorting coordinates", 2, any));
  *there = (PetscBool)(!any[0] && any[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* not done where a process lacks the device, then the parent's do it */
static PetscErrorCode MatMPIAIJHybridGPUPreallocateCOO(Mat A, PetscCount ncoo, const PetscInt *i, const PetscInt *j, PetscBool *done)
{
  HybExec         x;
  HybMPICOO      *c = NULL;
  HybAsked        asked[2][HYB_LEFT];
  const PetscInt *ij[2]   = {i, j};
  void           *host[2] = {NULL, NULL}, *copy[2] = {NULL, NULL};
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(HybMPICOOWhere(A, ncoo, i, &x, done));
  if (!*done) {
    PetscCall(HybMPICOOAgree(A, PetscObjectCompose((PetscObject)A, "HybMPICOO", NULL)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ierr = HybEventBegin(HYB_OP_COOPATTERN, A);
  if (!ierr) ierr = MatMPIAIJHybridGPULeftOptions(A, asked);
  if (!ierr) ierr = HybMPICOOBegin(&x, ncoo, ij, host, copy, &c);
  for (int k = 0; k < 2; k++) ij[k] = (const PetscInt *)host[k];
  ierr = HybMPICOOBuild(A, &x, ij, &c, (const HybAsked(*)[HYB_LEFT])asked, ierr);
  if (c) (void)HybMPICOODestroy(c);
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(copy[k]));
  PetscCall(ierr);
  PetscCall(HybEventEnd(HYB_OP_COOPATTERN, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPICOOGatherSent(const HybExec *x, HybArena *work, HybMPICOO *c, const PetscScalar *v)
{
  HybScalar *d;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, c->nsend, sizeof(HybScalar), &d));
  PetscCall(x->backend->csr->gather(x, c->nsend, c->senddevice, PETSC_FALSE, (const HybScalar *)v, d));
  PetscCall(x->backend->copy(x, c->sendbuf, d, sizeof(HybScalar) * (size_t)c->nsend, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybLogToHost(sizeof(HybScalar) * (PetscLogDouble)c->nsend));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values for other processes go out, theirs come into c->recvbuf. They do so after an error too: the others wait. */
static PetscErrorCode HybMPICOOSendValues(PetscErrorCode before, const HybExec *x, HybArena *work, HybMPICOO *c, const PetscScalar *v, PetscBool vdevice)
{
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (vdevice && c->nsend && !ierr)
    ierr = HybMPICOOGatherSent(x, work, c, v);
  else if (!ierr)
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

/* The same on the host, which has taken over */
static PetscErrorCode HybMPICOOValuesOnHost(Mat block[2], HybMPICOO *c, const PetscScalar *v, PetscBool add)
{
  PetscScalar   *all = NULL;
  void          *hv, *cv;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybCOOToHost(v, c->ncoo, sizeof(PetscScalar), &hv, &cv));
  ierr = PetscCalloc1(c->ncoo + c->nrecv, &all);
  if (!ierr && hv) ierr = PetscArraycpy(all, (PetscScalar *)hv, c->ncoo);
  if (!ierr) ierr = PetscArraycpy(all + c->ncoo, c->recvbuf, c->nrecv);
  for (int k = 0; k < 2 && !ierr; k++) ierr = MatSeqAIJHybridGPUSetValuesCOOHost(block[k], &c->block[k], all, add);
  PetscCall(PetscFree(cv));
  PetscCall(PetscFree(all));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: both blocks can be written, and where */
static PetscErrorCode HybMPICOOValuesBegin(Mat A, HybMPICOO *c, const PetscScalar *v, Mat block[2], PetscBool *device, PetscBool *vdevice)
{
  PetscBool on;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(HybExecRefresh(&c->arena.exec));
  *device = PETSC_TRUE;
  for (int k = 0; k < 2; k++) {
    HybExec x;

    PetscCall(MatSeqAIJHybridGPUWriteOnDevice(block[k], &x, &on));
    *device = (PetscBool)(*device && on);
  }
  PetscCall(HybCOOIsOnDevice(v, vdevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error of one process is one of all: the values' assembly comes next */
static PetscErrorCode MatMPIAIJHybridGPUSetValuesCOO(Mat A, const PetscScalar *v, InsertMode mode, PetscBool *done)
{
  HybMPICOO         *c = NULL;
  Mat                block[2];
  const HybExec     *x;
  HybArena           work;
  PetscBool          device = PETSC_FALSE, vdevice = PETSC_FALSE, add = (PetscBool)(mode == ADD_VALUES);
  const PetscScalar *all = NULL;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)A, "HybMPICOO", &c));
  *done = (PetscBool)(c != NULL);
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  x    = &c->arena.exec;
  ierr = HybMPICOOValuesBegin(A, c, v, block, &device, &vdevice);
  work = HybArenaOn(x);
  ierr = HybMPICOOSendValues(ierr, x, &work, c, v, vdevice);
  if (device) {
    if (!ierr) ierr = HybMPICOOValuesOnDevice(x, &work, c, v, vdevice, &all);
    for (int k = 0; k < 2 && !ierr; k++) ierr = MatSeqAIJHybridGPUSetValuesCOODevice(block[k], &c->block[k], x, all, add);
  } else if (!ierr)
    ierr = HybMPICOOValuesOnHost(block, c, v, add);
  ierr = HybErrorFirst(ierr, HybArenaReset(&work));
  PetscCall(HybAgree(PetscObjectComm((PetscObject)A), ierr, "Setting the values of coordinates"));
  ((Mat_MPIAIJHybridGPU *)A->spptr)->assembling = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetPreallocationCOO_MPIAIJHybridGPU(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  Mat_MPIAIJHybridGPU *hyb  = NULL;
  PetscBool            done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUPreallocateCOO(A, n, i, j, &done));
  if (!done) {
    PetscCall(HybCOOPreallocateOnHost(A, HybGlueState.coopreallocation[1], n, i, j));
    /* the parent has made other blocks, of a type of its own, and products may come before the values do */
    PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
    if (A->assembled)
      PetscCall(MatMPIAIJHybridGPUSetBlocks(A));
    else
      hyb->halo.setups++;
  }
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  hyb->coopattern = PETSC_TRUE;
  hyb->coocount   = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetValuesCOO_MPIAIJHybridGPU(Mat A, const PetscScalar v[], InsertMode mode)
{
  Mat_MPIAIJHybridGPU *hyb  = NULL;
  PetscBool            done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(MatMPIAIJHybridGPUSetValuesCOO(A, v, mode, &done));
  if (!done) PetscCall(HybCOOSetValuesOnHost(A, HybGlueState.coovalues[1], hyb->coocount, v, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

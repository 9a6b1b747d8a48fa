/*
  halo.c: which entries go where.

  A process knows whose the entries are that it needs, from the ranges. Whom it has to send to it learns from those who
  need something (PetscCommBuildTwoSided(), which sends no more than there are neighbours): how many, then which.
  Neighbours are kept in the order of their ranks and the entries of each in ascending order, so what comes lies in the
  order of the ghosts, and what is sent, and sums, do not depend on who was first.

  The other way each owned entry that others have has a list of the places of theirs in what comes, in the order of
  ranks. It is made when it is first wanted.
*/
#include "commimpl.h"

/* the ghosts' owners, ascending as the ghosts do */
static PetscErrorCode HybHaloOwners(HybHalo h, const PetscInt *ranges, const PetscInt *ghost)
{
  const HybComm comm = h->comm;
  PetscMPIInt   n = 0, r = 0;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < h->nghost; k++) {
    PetscCheck(ghost[k] >= 0 && ghost[k] < ranges[comm->size], PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Entry %" PetscInt_FMT " is needed, of %" PetscInt_FMT, ghost[k], ranges[comm->size]);
    PetscCheck(!k || ghost[k] > ghost[k - 1], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Entries that are needed do not ascend: %" PetscInt_FMT " follows %" PetscInt_FMT, ghost[k], k ? ghost[k - 1] : -1);
    if (k && ghost[k] < ranges[r + 1]) continue;
    while (ghost[k] >= ranges[r + 1]) r++;
    PetscCheck(r != comm->rank, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Entry %" PetscInt_FMT " is needed of others, and is process %d's own", ghost[k], r);
    n++;
  }
  PetscCall(HybPeersAlloc(n, &h->from));
  n = r = 0;
  for (PetscInt k = 0; k < h->nghost; k++) {
    if (k && ghost[k] < ranges[r + 1]) continue;
    while (ghost[k] >= ranges[r + 1]) r++;
    h->from.rank[n]     = r;
    h->from.offset[n++] = k;
  }
  h->from.offset[n] = h->nghost;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* who needs how many of this process's entries: rank[q] count[q * n + k], in any order */
static PetscErrorCode HybHaloAskers(HybHalo h, PetscMPIInt nasking, const PetscMPIInt *rank, const PetscInt *count, int n, int k)
{
  PetscCount total = 0;

  PetscFunctionBegin;
  for (PetscMPIInt q = 0; q < nasking; q++) total += count[q * n + k];
  PetscCall(HybIntCast(total, "What others need", &h->nsend));
  PetscCall(HybArenaAlloc(&h->arena, HYB_MEM_HOST, h->nsend, sizeof(PetscInt), &h->index));
  PetscCall(HybArenaAlloc(&h->arena, HYB_MEM_HOST, PetscMax(h->nsend, h->nghost), sizeof(PetscInt), &h->lengths));
  PetscCall(HybArenaAlloc(&h->arena, HYB_WORK(&h->arena.exec), h->nsend, sizeof(PetscInt), &h->there));
  PetscCall(HybPeersAlloc(nasking, &h->to));
  h->to.n = 0;
  for (PetscMPIInt q = 0; q < nasking; q++) {
    if (!count[q * n + k]) continue;
    h->to.rank[h->to.n] = rank[q];
    h->index[h->to.n++] = count[q * n + k];
  }
  PetscCall(PetscSortMPIIntWithIntArray(h->to.n, h->to.rank, h->index));
  for (PetscMPIInt q = 0; q < h->to.n; q++) h->to.offset[q + 1] = h->to.offset[q] + h->index[q];
  PetscCall(HybPeersRequests(&h->from, &h->to, sizeof(PetscInt), &h->request));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the object and what this process needs of whom */
static PetscErrorCode HybHaloStart(HybComm comm, const HybExec *exec, const HybHaloWish *w, HybHalo *halo)
{
  static uint64_t halos;
  HybHalo         h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *halo     = h;
  h->number = ++halos;
  comm->users++;
  h->comm   = comm;
  h->n      = w->ranges[comm->rank + 1] - w->ranges[comm->rank];
  h->nghost = w->nghost;
  h->arena  = HybArenaOn(exec);
  PetscCall(HybHaloOwners(h, w->ranges, w->ghost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is asked of whom, for n halos: counts of each, which are what a process is told */
typedef struct {
  PetscMPIInt  n;
  PetscMPIInt *rank;
  PetscInt    *count;
} HaloWanted;

/* not collective: those who are asked for something, ascending */
static PetscErrorCode HybHaloWanted(HybComm comm, int n, const HybHalo halo[], HaloWanted *w)
{
  PetscMPIInt at[HYB_COMM_TOGETHER] = {0}, most = 0;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) most += halo[k]->from.n;
  PetscCall(PetscMalloc1(most, &w->rank));
  PetscCall(PetscCalloc1((size_t)most * (size_t)n, &w->count));
  while (w->n < most) {
    PetscMPIInt next = comm->size;

    for (int k = 0; k < n; k++)
      if (at[k] < halo[k]->from.n) next = PetscMin(next, halo[k]->from.rank[at[k]]);
    if (next == comm->size) break;
    for (int k = 0; k < n; k++) {
      const HybPeers *from = &halo[k]->from;

      if (at[k] == from->n || from->rank[at[k]] != next) continue;
      w->count[w->n * n + k] = (PetscInt)(from->offset[at[k] + 1] - from->offset[at[k]]);
      at[k]++;
    }
    w->rank[w->n++] = next;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who needs what of this process. After an error it asks for nothing, and meets the others where all agree that they
   have room for what they are asked. */
static PetscErrorCode HybHalosAsk(HybComm comm, PetscErrorCode before, int n, const HybHaloWish wish[], HybHalo halo[], const HaloWanted *w)
{
  PetscMPIInt    nasking, *asking = NULL;
  PetscInt      *asked = NULL;
  PetscErrorCode ierr  = before;

  PetscFunctionBegin;
  ierr = HybErrorFirst(ierr, PetscCommBuildTwoSided(comm->mpi, n, MPIU_INT, ierr ? 0 : w->n, w->rank, w->count, &nasking, &asking, &asked));
  for (int k = 0; k < n && !ierr; k++) ierr = HybHaloAskers(halo[k], nasking, asking, asked, n, k);
  PetscCall(PetscFree(asking));
  PetscCall(PetscFree(asked));
  PetscCall(HybCommAgree(comm, ierr, "A halo's lists"));
  for (int k = 0; k < n; k++) {
    const HybHalo h = halo[k];

    PetscCall(HybPeersExchange(comm, PETSC_SUCCESS, &h->from, &h->to, sizeof(PetscInt), wish[k].ghost, h->index, h->request));
    for (PetscInt l = 0; l < h->nsend; l++) h->index[l] -= wish[k].ranges[comm->rank];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHalosCreateRows(HybComm comm, const HybExec *exec, PetscErrorCode before, int n, const HybHaloWish wish[], HybHalo halo[])
{
  HaloWanted     w    = {.n = 0};
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) halo[k] = NULL;
  for (int k = 0; k < n && !ierr; k++) ierr = HybHaloStart(comm, exec, &wish[k], &halo[k]);
  if (!ierr) ierr = HybHaloWanted(comm, n, halo, &w);
  ierr = HybHalosAsk(comm, ierr, n, wish, halo, &w);
  (void)PetscFree(w.rank);
  (void)PetscFree(w.count);
  for (int k = 0; k < n && ierr; k++) (void)HybHaloDestroy(&halo[k]);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloThere(HybHalo h)
{
  const HybExec *exec = &h->arena.exec;

  PetscFunctionBegin;
  PetscCall(exec->backend->copy(exec, h->there, h->index, sizeof(PetscInt) * (size_t)h->nsend, HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloCreate(HybComm comm, const HybExec *exec, PetscErrorCode before, const PetscInt *ranges, PetscInt nghost, const PetscInt *ghost, PetscBool lasting, HybHalo *halo)
{
  const HybHaloWish w = {ranges, nghost, ghost};
  HybHalo           h = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  *halo = NULL;
  PetscCall(HybHalosCreateRows(comm, exec, before, 1, &w, &h));
  h->lasting = lasting;
  ierr       = HybExchangeCreate(comm, &h->arena.exec, HybHaloThere(h), "A halo's lists", &h->to, &h->from, lasting, &h->forward);
  if (ierr) (void)HybHaloDestroy(&h);
  PetscCall(ierr);
  *halo = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloCreateAll(HybComm comm, const HybExec *exec, PetscErrorCode before, const PetscInt *ranges, PetscBool lasting, HybHalo *halo)
{
  PetscInt       first = 0, own = 0, n = 0, *ghost = NULL;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!ierr) {
    first = ranges[comm->rank];
    own   = ranges[comm->rank + 1] - first;
    n     = ranges[comm->size] - own;
    ierr  = PetscMalloc1(n, &ghost);
  }
  for (PetscInt k = 0; ghost && k < n; k++) ghost[k] = k < first ? k : k + own;
  ierr = HybHaloCreate(comm, exec, ierr, ranges, n, ghost, lasting, halo);
  PetscCall(HybErrorFirst(ierr, PetscFree(ghost)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloDestroy(HybHalo *halo)
{
  HybHalo        h = *halo;
  PetscErrorCode ierr[4];

  PetscFunctionBegin;
  *halo = NULL;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  ierr[0] = HybExchangeDestroy(&h->forward);
  ierr[1] = HybExchangeDestroy(&h->reverse);
  ierr[2] = HybArenaReset(&h->arena);
  PetscCall(HybPeersFree(&h->to));
  PetscCall(HybPeersFree(&h->from));
  PetscCall(PetscFree(h->request));
  ierr[3] = HybCommRestore(&h->comm);
  PetscCall(PetscFree(h));
  for (int k = 0; k < 4; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloBegin(HybHalo h, const HybExec *exec, size_t unit, const void *x)
{
  PetscFunctionBegin;
  h->forward->early   = h->early;
  h->forward->lenient = h->lenient;
  PetscCall(HybExchangeBegin(h->forward, exec, unit, h->there, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloEnd(HybHalo h, const HybExec *exec, PetscErrorCode before, void *ghost)
{
  PetscFunctionBegin;
  PetscCall(HybExchangeEnd(h->forward, exec, before, NULL, ghost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloExchange(HybHalo h, const HybExec *exec, size_t unit, const void *x, void *ghost)
{
  PetscFunctionBegin;
  PetscCall(HybHaloBegin(h, exec, unit, x));
  PetscCall(HybHaloEnd(h, exec, PETSC_SUCCESS, ghost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybHaloSendsInOrder(HybHalo h)
{
  for (PetscInt k = 1; k < h->nsend; k++)
    if (h->index[k] <= h->index[k - 1]) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* Places in what comes, by the owned entries that they are of */
static PetscErrorCode HybHaloLists(HybHalo h)
{
  const HybExec *exec = &h->arena.exec;
  const size_t   ints = sizeof(PetscInt) * (size_t)h->nsend;
  PetscInt      *key, *place, n = 0;
  PetscCount    *ptr;
  PetscErrorCode ierr;
  HybArena       work = HybArenaOn(exec);

  PetscFunctionBegin;
  ierr = HybArenaAlloc(&work, HYB_MEM_HOST, h->nsend, sizeof(PetscInt), &key);
  if (!ierr) ierr = HybArenaAlloc(&work, HYB_MEM_HOST, h->nsend, sizeof(PetscInt), &place);
  if (!ierr) ierr = HybArenaAlloc(&work, HYB_MEM_HOST, (PetscCount)h->nsend + 1, sizeof(PetscCount), &ptr);
  if (!ierr) {
    for (PetscInt k = 0; k < h->nsend; k++) {
      key[k]   = h->index[k];
      place[k] = k;
    }
    if (!HybHaloSendsInOrder(h)) ierr = PetscSortIntWithArray(h->nsend, key, place);
  }
  for (PetscInt k = 0, end; !ierr && k < h->nsend; k = end) {
    for (end = k + 1; end < h->nsend && key[end] == key[k];) end++;
    if (end - k > 1) ierr = PetscSortInt(end - k, place + k); /* the sort above may leave equal ones in any order */
    ptr[n]   = k;
    key[n++] = key[k];
  }
  if (!ierr) {
    ptr[n]   = h->nsend;
    h->nrows = n;
    ierr     = HybArenaAlloc(&h->arena, HYB_WORK(exec), n, sizeof(PetscInt), &h->row);
  }
  if (!ierr) ierr = HybArenaAlloc(&h->arena, HYB_WORK(exec), h->nsend, sizeof(PetscInt), &h->place);
  if (!ierr) ierr = HybArenaAlloc(&h->arena, HYB_WORK(exec), (PetscCount)n + 1, sizeof(PetscCount), &h->ptr);
  if (!ierr) ierr = exec->backend->copy(exec, h->row, key, sizeof(PetscInt) * (size_t)n, HYB_COPY_HOST_TO_DEVICE);
  if (!ierr) ierr = exec->backend->copy(exec, h->place, place, ints, HYB_COPY_HOST_TO_DEVICE);
  if (!ierr) ierr = exec->backend->copy(exec, h->ptr, ptr, sizeof(PetscCount) * ((size_t)n + 1), HYB_COPY_HOST_TO_DEVICE);
  (void)HybArenaReset(&work);
  if (ierr) (void)HybArenaFree(&h->arena, &h->row, &h->place, &h->ptr);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloRoom(HybHalo h, HybScalar **ghost)
{
  PetscFunctionBegin;
  if (!h->room) PetscCall(HybArenaAlloc(&h->arena, HYB_WORK(&h->arena.exec), h->nghost, sizeof(HybScalar), &h->room));
  *ghost = h->room;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloReverseBegin(HybHalo h, const HybExec *exec, PetscBool scalars, const void *ghost)
{
  PetscFunctionBegin;
  if (!h->reverse) PetscCall(HybExchangeCreate(h->comm, &h->arena.exec, h->row ? PETSC_SUCCESS : HybHaloLists(h), "A halo's lists", &h->from, &h->to, h->lasting, &h->reverse));
  h->reverse->early   = h->early;
  h->reverse->lenient = h->lenient;
  PetscCall(HybExchangeBegin(h->reverse, exec, scalars ? sizeof(HybScalar) : sizeof(PetscInt), NULL, ghost));
  h->scalars = scalars;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHaloReverseEnd(HybHalo h, const HybExec *exec, PetscErrorCode before, void *y)
{
  void *v = NULL;

  PetscFunctionBegin;
  PetscCall(HybExchangeEnd(h->reverse, exec, before, NULL, &v));
  PetscCall(exec->backend->comm->add(exec, h->nrows, h->row, h->ptr, h->place, h->scalars, v, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybHaloAbandon(HybHalo h, const HybExec *exec, size_t unit, PetscBool reverse, PetscErrorCode why)
{
  if (reverse && !h->reverse) { /* the others are about to agree upon its making, by this */
    (void)HYB_QUIETLY(HybExchangeCreate(h->comm, &h->arena.exec, why ? why : PETSC_ERR_LIB, "A product with a vector", &h->from, &h->to, h->lasting, &h->reverse));
  } else
    HybExchangeAbandon(reverse ? h->reverse : h->forward, exec, unit);
}

void HybHaloForget(HybHalo h)
{
  for (int k = 0; k < 2; k++) {
    HybExchange e = k ? h->reverse : h->forward;

    if (e && e->status) HybPeerForget(e);
  }
}

PetscErrorCode HybHaloHeard(HybHalo h)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    HybExchange e = k ? h->reverse : h->forward;

    if (!e || !e->status) continue;
    e->lenient = PETSC_FALSE;
    PetscCall(HybPeerStatus(e));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define HYB_HALO_ALONE 2048 /* entries that one block of threads puts in the time that the others need for their rows */

PetscBool HybHaloMultiplies(HybHalo h, PetscBool transpose)
{
  const HybExchange e = transpose ? h->reverse : h->forward;

  return (PetscBool)(h->early && e && e->peer && !e->begun && e->to->offset[e->to->n] <= HYB_HALO_ALONE);
}

PetscErrorCode HybHaloMult(HybHalo h, const HybExec *exec, HybPeerProduct *p)
{
  const HybExchange e = p->transpose ? h->reverse : h->forward;

  PetscFunctionBegin;
  e->lenient = h->lenient;
  p->n       = p->transpose ? h->nrows : h->nsend;
  p->index   = p->transpose ? h->row : h->there;
  p->place   = h->place;
  p->ptr     = h->ptr;
  PetscCall(HybPeerMult(e, exec, p));
  if (e->recording) PetscFunctionReturn(PETSC_SUCCESS);
  HybCommTallySent(PETSC_TRUE, (size_t)e->to->offset[e->to->n] * sizeof(HybScalar));
  HybCommTallyGet()->together++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybHaloRecordable(HybHalo h, PetscBool transpose)
{
  const HybExchange e = transpose ? h->reverse : h->forward;

  return (PetscBool)(e && e->peer && !e->begun && (!transpose || h->room));
}

PetscBool HybHaloRecords(HybHalo h, PetscBool transpose)
{
  const HybExchange e = transpose ? h->reverse : h->forward;

  return (PetscBool)(e && e->recording);
}

PetscErrorCode HybHaloRecord(HybHalo h, const HybExec *exec, PetscBool transpose)
{
  PetscFunctionBegin;
  PetscCall(HybPeerRecord(transpose ? h->reverse : h->forward, exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscInt HybHaloRecorded(HybHalo h, PetscBool transpose)
{
  const HybExchange e = transpose ? h->reverse : h->forward;

  e->recording = PETSC_FALSE;
  return e->recorded;
}

PetscErrorCode HybHaloReplay(HybHalo h, const HybExec *exec, PetscBool transpose)
{
  PetscFunctionBegin;
  (transpose ? h->reverse : h->forward)->lenient = h->lenient;
  PetscCall(HybPeerReplay(transpose ? h->reverse : h->forward, exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybHaloReplayed(HybHalo h, PetscBool transpose, PetscInt times)
{
  const HybExchange e = transpose ? h->reverse : h->forward;

  e->count += (uint64_t)times;
  e->there = e->waited = e->count;
  for (PetscInt k = 0; k < times; k++) HybCommTallySent(PETSC_TRUE, (size_t)e->to->offset[e->to->n] * sizeof(HybScalar));
  HybCommTallyGet()->together += times;
}

/* a reason beside the way that messages go for it */
#define HYB_HALO_BY(aware, buffers, reason) ((aware) ? HYB_COMM_BY_AWARE reason : buffers reason)

const char *HybHaloWay(HybHalo h, PetscBool reverse)
{
  const HybExchange e    = reverse ? h->reverse : h->forward;
  const PetscInt    wish = HybTuningGet()->comm;
  const int         may = h->forward->may, brief = may && HybExchangeIsShort(h->forward, e && e->capacity ? e->capacity : HYB_COMM_UNIT);
  const int         aware = may && !brief && !(e && e->capacity && e->unable);

  if (!h->arena.exec.backend->device) return "MPI, from the host";
  if (h->comm->size == 1) return "nothing";
  if (e && e->peer) return h->comm->way[0];
  if (wish == HYB_COMM_MPI) return HYB_COMM_BY_BUFFERS "as asked";
  if (may && !aware && !brief) return HYB_COMM_BY_BUFFERS "no memory of the card for GPU-aware MPI";
  if (brief && (wish == HYB_COMM_GPUAWARE || (e && e->asked))) return HYB_COMM_BY_BUFFERS "no message is long enough for GPU-aware MPI (-mat_aijhybridgpu_tuning comm_aware_min)";
  if (wish == HYB_COMM_GPUAWARE) return aware ? HYB_COMM_BY_AWARE "as asked" : HYB_COMM_BY_BUFFERS "nobody says that MPI is GPU-aware (-use_gpu_aware_mpi, -mat_aijhybridgpu_comm_aware)";
  if (!e || !e->asked) return HYB_HALO_BY(aware, HYB_COMM_BY_BUFFERS, "too few times for peer access (-mat_aijhybridgpu_tuning comm_after)");
  if (!HybPeerIsOpen(h->comm)) return h->comm->way[aware];
  if (e->unlocked) return HYB_HALO_BY(aware, "MPI: ", "a process has no page-locked memory for peer access");
  return HYB_HALO_BY(aware, HYB_COMM_BY_BUFFERS, "the segment is full (-mat_aijhybridgpu_tuning comm_segment)");
}

PetscBool HybHaloFromCardToCard(HybHalo h, PetscBool reverse)
{
  const HybExchange e = reverse ? h->reverse : h->forward;

  return (PetscBool)(e && (e->bypeer || e->aware));
}

const char *HybHaloBy(HybHalo h, PetscBool reverse)
{
  const HybExchange e = reverse ? h->reverse : h->forward;

  return e && e->bypeer ? "peer" : e && e->aware ? "gpuaware"
                                                 : "mpi";
}

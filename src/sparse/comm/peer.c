/*
  peer.c: exchanges by peer access, between processes of one node that have a card each.

  Each process has a segment of its card's memory that all others have mapped; it is made once, and exchanges take parts
  of it. A part has two slots for what comes, taken in turn, and words for each neighbour: the number of its last
  exchange, and of the last even and the last odd one in which it had nothing to send.

    Begin   put: entries go straight into the neighbours' slots, then each one is told the number
    End     wait: one block looks for the neighbours' numbers; what follows reads the slot in place. Where next to
            nothing comes between, put does that too: coarse levels of multigrid take as long as their kernels' starts

  Where little is sent and what follows is short, one launch does all: a product with others' entries, or a sum over the
  processes (sum.c). In a graph the number is in the card's memory, and what came is copied out of the slot (`taken`),
  since the host does not know which slot it is.

  Both are kernels in the operation's own stream: the host waits for nothing. A slot is written again two exchanges
  later. By then its reader is done: every neighbour is told every number, and this process's put comes after its wait
  for the exchange between, which a neighbour begins after its reading.

  All processes decide together whether this way is open, when the first exchange comes that lasts, or is asked for
  often enough (exchange.c): one node, a card for each, segments that all can map, and a probe that comes through. Else,
  and for exchanges for which a segment has no room left, MPI serves.

  What fails is told by the numbers and known to the host at the end of a later exchange, as is usual for a device: what
  the product got instead of entries is all ones, no number.
*/
#include "commimpl.h"

typedef struct {
  size_t at, bytes;
} Part;

struct _HybPeer {
  HybExec   exec;
  PetscBool open;
  char     *segment, **other; /* others' segments, as this process sees them */
  size_t    bytes;
  Part     *part; /* that are taken, ascending */
  int       nparts, room;
};

#define PEER_ALIGN ((size_t)256)

PetscBool HybPeerIsOpen(HybComm comm)
{
  return (PetscBool)(comm->peer && comm->peer->open);
}

/* what a process tells the others before anything is tried */
typedef struct {
  int  able;
  char bus[28];
} About;

/* all: room for what each process tells */
static PetscErrorCode HybPeerAble(HybComm comm, const HybExec *exec, About *all, PetscBool *able, char why[], size_t length)
{
  const HybCommOps *ops = exec->backend->comm;
  About             mine;
  MPI_Comm          node;
  PetscMPIInt       local;
  HybMemoryReport   r;

  PetscFunctionBegin;
  *able = PETSC_FALSE;
  PetscCall(PetscMemzero(&mine, sizeof(mine)));
  mine.able = exec->backend->device && ops->segment;
  if (mine.able && !HYB_QUIETLY(exec->backend->usage(&r, PETSC_FALSE))) PetscCall(PetscStrncpy(mine.bus, r.bus, sizeof(mine.bus)));
  if (comm->nodesize)
    PetscCallMPI(MPI_Comm_split(comm->mpi, comm->rank / comm->nodesize, comm->rank, &node));
  else
    PetscCallMPI(MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &node));
  PetscCallMPI(MPI_Comm_size(node, &local));
  PetscCallMPI(MPI_Comm_free(&node));
  mine.able = mine.able && local == comm->size;
  PetscCallMPI(MPI_Allgather(&mine, (PetscMPIInt)sizeof(mine), MPI_BYTE, all, (PetscMPIInt)sizeof(mine), MPI_BYTE, comm->mpi));
  *able = PETSC_TRUE;
  for (PetscMPIInt p = 0; p < comm->size && *able; p++) {
    if (!all[p].able) {
      *able = PETSC_FALSE;
      PetscCall(PetscSNPrintf(why, length, local == comm->size ? "process %d has no device" : "there are several nodes", p));
    }
    for (PetscMPIInt q = 0; q < p && *able; q++) {
      PetscBool same;

      PetscCall(PetscStrcmp(all[p].bus, all[q].bus, &same));
      if (same) {
        *able = PETSC_FALSE;
        PetscCall(PetscSNPrintf(why, length, "processes %d and %d share a card", q, p));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *all: has each process had no error? */
PetscErrorCode HybPeerAll(HybComm comm, PetscErrorCode ierr, PetscBool *all)
{
  PetscFunctionBegin;
  *all = (PetscBool)!ierr;
  PetscCall(HybAgreeAll(comm->mpi, PETSC_SUCCESS, "", all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* segments are made, and mapped by all; handles: room for everybody's */
static PetscErrorCode HybPeerSegments(HybComm comm, struct _HybPeer *p, unsigned char *handles, PetscBool *all, char why[], size_t length)
{
  const HybCommOps *ops                     = p->exec.backend->comm;
  unsigned char     handle[HYB_COMM_HANDLE] = {0};
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  p->bytes = (size_t)HybTuningGet()->comm_segment << 20;
  ierr     = HYB_QUIETLY(ops->segment(&p->exec, p->bytes, (void **)&p->segment, handle));
  PetscCall(HybPeerAll(comm, ierr, all));
  if (!*all) {
    PetscCall(PetscStrncpy(why, "a card has no memory that others can reach", length));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Allgather(handle, HYB_COMM_HANDLE, MPI_BYTE, handles, HYB_COMM_HANDLE, MPI_BYTE, comm->mpi));
  for (PetscMPIInt r = 0; r < comm->size && !ierr; r++) {
    if (r == comm->rank)
      p->other[r] = p->segment;
    else
      ierr = HYB_QUIETLY(ops->attach(&p->exec, handles + (size_t)r * HYB_COMM_HANDLE, (void **)&p->other[r]));
  }
  PetscCall(HybPeerAll(comm, ierr, all));
  if (!*all) PetscCall(PetscStrncpy(why, "a card cannot reach another one's memory", length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerClose(HybComm comm)
{
  struct _HybPeer *p    = comm->peer;
  PetscErrorCode   ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  comm->peer = NULL;
  for (PetscMPIInt r = 0; p->other && r < comm->size; r++) {
    if (!p->other[r] || r == comm->rank) continue;
    ierr = HybErrorFirst(ierr, p->exec.backend->comm->detach(&p->exec, p->other[r]));
  }
  if (p->other) PetscCallMPI(MPI_Barrier(comm->mpi)); /* nobody has it mapped any more */
  if (p->segment)
    ierr = HybErrorFirst(ierr, p->exec.backend->comm->segmentfree(&p->exec, p->segment));
  PetscCall(PetscFree(p->other));
  PetscCall(PetscFree(p->part));
  PetscCall(PetscFree(p));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPeerTell(HybComm comm, PetscBool open, const char *why)
{
  PetscFunctionBegin;
  for (int aware = 0; aware < 2; aware++) {
    const char *const by = open ? "peer access" : aware ? HYB_COMM_BY_AWARE
                                                        : HYB_COMM_BY_BUFFERS;

    PetscCall(PetscSNPrintf(comm->way[aware], sizeof(comm->way[aware]), "%s%s", by, why));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* once for a communicator; comm->way says how it came out. All memory that it takes is there before processes wait for
   each other. */
static PetscErrorCode HybPeerOpen(HybComm comm, const HybExec *exec)
{
  char             why[112] = "";
  PetscBool        all      = PETSC_FALSE;
  struct _HybPeer *p        = NULL;
  About           *about    = NULL;
  unsigned char   *handles  = NULL;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  ierr = PetscNew(&p);
  if (!ierr) ierr = PetscCalloc1(comm->size, &p->other);
  if (!ierr) ierr = PetscMalloc1(comm->size, &about);
  if (!ierr) ierr = PetscMalloc1((size_t)comm->size * HYB_COMM_HANDLE, &handles);
  ierr = HybCommAgree(comm, ierr, "Memory for peer access");
  if (!ierr) {
    comm->peer = p;
    p->exec    = *exec;
    ierr       = HybPeerAble(comm, exec, about, &all, why, sizeof(why));
    if (!ierr && all) ierr = HybPeerSegments(comm, p, handles, &all, why, sizeof(why));
  } else {
    if (p) (void)PetscFree(p->other);
    (void)PetscFree(p);
  }
  (void)PetscFree(about);
  (void)PetscFree(handles);
  PetscCall(ierr);
  if (all) {
    p->open = PETSC_TRUE;
    PetscCall((*comm->probe)(comm, &comm->peer->exec, &all));
    p->open = all;
    if (!all) PetscCall(PetscStrncpy(why, "a probe of peer access did not come through", sizeof(why)));
  }
  PetscCall(HybPeerTell(comm, p->open, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a part of the segment, the first that is large enough; PETSC_FALSE: there is none */
static PetscErrorCode HybPeerTake(struct _HybPeer *p, size_t bytes, size_t *at, PetscBool *found)
{
  int k = 0;

  PetscFunctionBegin;
  bytes = (PetscMax(bytes, 1) + PEER_ALIGN - 1) / PEER_ALIGN * PEER_ALIGN;
  if (p->nparts == p->room) {
    Part     *part;
    const int room = 2 * p->room + 16;

    PetscCall(PetscMalloc1(room, &part));
    PetscCall(PetscArraycpy(part, p->part, p->nparts));
    PetscCall(PetscFree(p->part));
    p->part = part;
    p->room = room;
  }
  *at = 0;
  while (k<p->nparts && * at + bytes> p->part[k].at) {
    *at = p->part[k].at + p->part[k].bytes;
    k++;
  }
  *found = (PetscBool)(*at + bytes <= p->bytes);
  if (!*found) PetscFunctionReturn(PETSC_SUCCESS);
  for (int l = p->nparts++; l > k; l--) p->part[l] = p->part[l - 1];
  p->part[k].at    = *at;
  p->part[k].bytes = bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HybPeerGive(struct _HybPeer *p, size_t at)
{
  int k = 0;

  while (k < p->nparts && p->part[k].at != at) k++;
  if (k == p->nparts) return;
  p->nparts--;
  for (; k < p->nparts; k++) p->part[k] = p->part[k + 1];
}

/* what a process tells a neighbour: where in its segment things are */
typedef struct {
  size_t     flag, slot[2];
  PetscCount first; /* unit of the neighbour's part in a slot */
} Place;

/* neighbours in either way, ascending */
static PetscErrorCode HybPeerNeighbours(HybExchange e, HybPeers *u)
{
  const HybPeers *a = e->to, *b = e->from;
  PetscMPIInt     n = 0;

  PetscFunctionBegin;
  PetscCall(HybPeersAlloc(a->n + b->n, u));
  for (PetscMPIInt k = 0, l = 0; k < a->n || l < b->n; n++) {
    const PetscMPIInt ra = k < a->n ? a->rank[k] : e->comm->size, rb = l < b->n ? b->rank[l] : e->comm->size;

    u->rank[n] = PetscMin(ra, rb);
    if (ra <= rb) k++;
    if (rb <= ra) l++;
  }
  u->n = n;
  for (PetscMPIInt k = 0; k <= n; k++) u->offset[k] = k;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPeerRegion(HybExchange e, const HybPeers *u, PetscBool *found)
{
  struct _HybPeer *p     = e->comm->peer;
  const HybExec   *exec  = &e->arena.exec;
  const size_t     flags = (HYB_COMM_WORDS * sizeof(uint64_t) * (size_t)u->n + PEER_ALIGN) / PEER_ALIGN * PEER_ALIGN, slot = ((size_t)e->from->offset[e->from->n] * HYB_COMM_UNIT + PEER_ALIGN - 1) / PEER_ALIGN * PEER_ALIGN;
  PetscBool        locked = PETSC_FALSE;

  PetscFunctionBegin;
  *found = PETSC_FALSE;
  PetscCall(HybExchangeBuffer(&e->tables, PEER_ALIGN, &e->status, &locked));
  e->unlocked = (PetscBool)!locked;
  if (!locked) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(e->status, PEER_ALIGN));
  PetscCall(HybPeerTake(p, flags + 2 * slot, &e->at, found));
  if (!*found) PetscFunctionReturn(PETSC_SUCCESS);
  e->peer = PETSC_TRUE; /* from here on there is something to give back */
  for (int k = 0; k < 2; k++) e->slots_[k] = p->segment + e->at + flags + (size_t)k * slot;
  PetscCall(exec->backend->zero(exec, p->segment + e->at, flags));
  PetscCall(exec->backend->sync(exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HybPeerPlaces(HybExchange e, const HybPeers *u, Place *place)
{
  const char *segment = e->comm->peer->segment;

  for (PetscMPIInt k = 0, l = 0; k < u->n; k++) {
    place[k].flag = e->at + HYB_COMM_WORDS * sizeof(uint64_t) * (size_t)k;
    for (int s = 0; s < 2; s++) place[k].slot[s] = (size_t)(e->slots_[s] - segment);
    place[k].first = l < e->from->n && e->from->rank[l] == u->rank[k] ? e->from->offset[l++] : 0;
  }
}

/* The table, where the backend executes: five arrays of words of 8 bytes and a few words of its own, which go there as
   one piece */
static PetscErrorCode HybPeerTableMake(HybExchange e, const HybPeers *u, const Place *theirs)
{
  const HybExec   *exec = &e->arena.exec;
  struct _HybPeer *p    = e->comm->peer;
  HybPeerTable    *t    = &e->table;
  const size_t     n = (size_t)u->n, words = 5 * n + 2;
  uint64_t        *host, *there;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&e->tables, HYB_MEM_HOST, (PetscCount)words, sizeof(*host), &host));
  PetscCall(HybArenaAlloc(&e->tables, HYB_MEM_DEVICE, (PetscCount)words, sizeof(*there), &there));
  t->n       = u->n;
  t->offset  = (PetscCount *)there;
  t->there   = (PetscCount *)(there + n + 1);
  t->flag    = (uint64_t **)(there + 2 * n + 1);
  t->slot[0] = (char **)(there + 3 * n + 1);
  t->slot[1] = (char **)(there + 4 * n + 1);
  t->arrived = (unsigned *)(there + 5 * n + 1);
  t->mine    = (uint64_t *)(p->segment + e->at);
  t->status  = e->status;
  host[0]    = 0;
  for (PetscMPIInt k = 0, l = 0; k < u->n; k++) {
    char *const other = p->other[u->rank[k]];

    host[k + 1]         = l < e->to->n && e->to->rank[l] == u->rank[k] ? (uint64_t)e->to->offset[++l] : host[k];
    host[n + 1 + k]     = (uint64_t)theirs[k].first;
    host[2 * n + 1 + k] = (uint64_t)(uintptr_t)(other + theirs[k].flag);
    for (int s = 0; s < 2; s++) host[(3 + s) * n + 1 + k] = (uint64_t)(uintptr_t)(other + theirs[k].slot[s]);
  }
  host[5 * n + 1] = 0;
  PetscCall(exec->backend->copy(exec, there, host, words * sizeof(*host), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What making an exchange's part of the segments takes: it is not collective until all have agreed that each has one */
struct _HybPeerMaking {
  HybPeers     u;
  Place       *mine, *theirs;
  MPI_Request *request;
  PetscBool    found;
};

static void HybPeerMakingFree(HybPeerMaking *making)
{
  HybPeerMaking m = *making;

  *making = NULL;
  if (!m) return;
  (void)PetscFree(m->request);
  (void)HybPeersFree(&m->u);
  (void)PetscFree(m);
}

PetscErrorCode HybPeerBefore(HybExchange e, const HybExec *exec, HybPeerMaking *making, PetscInt64 less[2])
{
  HybPeerMaking m;

  PetscFunctionBegin;
  e->arena.exec.stream = e->tables.exec.stream = exec->stream;
  PetscCall(PetscNew(&m));
  *making = m;
  PetscCall(HybPeerNeighbours(e, &m->u));
  PetscCall(HybArenaAlloc(&e->tables, HYB_MEM_HOST, m->u.n, sizeof(*m->mine), &m->mine));
  PetscCall(HybArenaAlloc(&e->tables, HYB_MEM_HOST, m->u.n, sizeof(*m->theirs), &m->theirs));
  PetscCall(HybPeersRequests(&m->u, &m->u, sizeof(Place), &m->request));
  PetscCall(HybPeerRegion(e, &m->u, &m->found));
  less[0] = !m->found;
  less[1] = e->unlocked;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nobody has put anything there yet */
static PetscErrorCode HybPeerUnmake(HybExchange e)
{
  PetscFunctionBegin;
  if (e->peer) HybPeerGive(e->comm->peer, e->at);
  e->peer   = PETSC_FALSE;
  e->status = NULL;
  PetscCall(PetscMemzero(&e->table, sizeof(e->table)));
  PetscCall(HybArenaReset(&e->tables));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerAfter(HybExchange e, PetscErrorCode before, HybPeerMaking *making, const PetscInt64 less[2])
{
  HybPeerMaking  m    = *making;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!ierr && !less[0]) {
    HybPeerPlaces(e, &m->u, m->mine);
    ierr = HybPeersExchange(e->comm, PETSC_SUCCESS, &m->u, &m->u, sizeof(Place), m->mine, m->theirs, m->request);
    if (!ierr) ierr = HybPeerTableMake(e, &m->u, m->theirs);
  }
  if (!before) e->unlocked = (PetscBool)(less[1] != 0);
  if (!ierr && !less[0]) {
    e->npeers = m->u.n;
    e->peers  = m->u.rank;
    m->u.rank = NULL;
  } else
    ierr = HybErrorFirst(ierr, HybPeerUnmake(e));
  HybPeerMakingFree(making);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another process has had an error in making it */
static void HybPeerAgain(HybExchange e)
{
  (void)HYB_QUIETLY(HybPeerUnmake(e));
  (void)PetscFree(e->peers);
  e->npeers = 0;
}

PetscErrorCode HybPeerNone(HybExchange e)
{
  PetscFunctionBegin;
  PetscCall(HybPeerTell(e->comm, PETSC_FALSE, "a process has no device"));
  e->asked = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerExchangeMake(HybExchange e, const HybExec *exec, PetscErrorCode before)
{
  HybPeerMaking making = NULL;
  PetscInt64 not [2] = {before != PETSC_SUCCESS, !exec->backend->device}, less[2] = {1, 0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (e->comm->size > 1) {
    PetscCall(HybAgreeMax(e->comm->mpi, PETSC_SUCCESS, "", 2, not ));
    if (not [0]) PetscFunctionReturn(PETSC_SUCCESS); /* the next exchange asks again */
    if (not [1]) PetscCall(HybPeerNone(e));
    if (!not [1] && !e->comm->peer) PetscCall(HybPeerOpen(e->comm, exec));
    if (!not [1] && e->comm->peer->open) {
      ierr = HybPeerBefore(e, exec, &making, less);
      ierr = HybAgreeMax(e->comm->mpi, ierr, "A part of the segment", 2, less);
      ierr = HybCommAgree(e->comm, HybPeerAfter(e, ierr, &making, less), "Tables of peer access");
      if (ierr) HybPeerAgain(e);
      PetscCall(ierr);
    }
  }
  e->asked = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt HybPeerPatience(HybExchange e)
{
  return e->patience ? e->patience : HybTuningGet()->comm_timeout;
}

static PetscErrorCode HybPeerCatchUp(HybExchange e, const HybExec *exec, uint64_t number)
{
  PetscFunctionBegin;
  if (e->waited >= number) PetscFunctionReturn(PETSC_SUCCESS);
  if (e->npeers) PetscCall(exec->backend->comm->wait(exec, &e->table, number, HybPeerPatience(e), e->slots_[number & 1], (size_t)e->from->offset[e->from->n] * HYB_COMM_UNIT));
  e->waited = number;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* nothing of the others' is on its way to this part, and nobody reads it, when it is given back */
PetscErrorCode HybPeerExchangeDestroy(HybExchange e)
{
  const HybExec *exec = &e->arena.exec;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (e->peers) ierr = HybPeerCatchUp(e, exec, e->count);
  if (e->peer) {
    ierr = HybErrorFirst(ierr, exec->backend->sync(exec));
    HybPeerGive(e->comm->peer, e->at);
    e->peer = PETSC_FALSE;
  }
  PetscCall(PetscFree(e->peers));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybPeerAbandon(HybExchange e, const HybExec *exec)
{
  const uint64_t number = ++e->count;

  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  (void)HybPeerCatchUp(e, exec, number - 1);
  if (e->npeers) (void)exec->backend->comm->put(exec, &e->table, number, NULL, PETSC_TRUE, HYB_COMM_UNIT, 0, NULL, NULL, 0, NULL, 0);
  (void)PetscPopErrorHandler();
}

/* All know of what failed so far. What this process gave up it has not waited for: its neighbours may have given that
   up too, which else the next exchange would find. */
void HybPeerForget(HybExchange e)
{
  const HybExec *exec = &e->arena.exec;

  (void)HYB_QUIETLY(HybPeerCatchUp(e, exec, e->count));
  (void)HYB_QUIETLY(exec->backend->sync(exec)); /* the device may be about to find it */
  e->status[0] = 0;
}

PetscErrorCode HybPeerBegin(HybExchange e, const HybExec *exec, size_t unit, const PetscInt *index, const void *src)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybPeerCatchUp(e, exec, e->count);
  if (!ierr) {
    const uint64_t number = e->count + 1;

    if (e->npeers) ierr = exec->backend->comm->put(exec, &e->table, number, NULL, PETSC_FALSE, unit, e->to->offset[e->to->n], index, src, e->early ? HybPeerPatience(e) : 0, e->slots_[number & 1], (size_t)e->from->offset[e->from->n] * HYB_COMM_UNIT);
    if (!ierr) e->count = number;
    if (!ierr && e->early) e->waited = number;
  }
  if (ierr) HybPeerAbandon(e, exec);
  PetscCall(ierr);
  e->unit  = unit;
  e->begun = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the host sees what an earlier exchange left there */
PetscErrorCode HybPeerStatus(HybExchange e)
{
  const volatile int64_t *status = e->status;
  const int64_t           what = status[0], who = status[1], which = status[2];

  PetscFunctionBegin;
  if (!what || e->lenient) PetscFunctionReturn(PETSC_SUCCESS);
  e->status[0] = 0;
  PetscCheck(what != 1, PETSC_COMM_SELF, PETSC_ERR_LIB, "Process %d has an error and sent nothing to process %d in exchange %" PetscInt64_FMT " of this halo: what was computed with it is no number", e->peers[who], e->comm->rank, (PetscInt64)which);
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "Process %d waited in vain for what process %d sends in exchange %" PetscInt64_FMT " of this halo, %" PetscInt_FMT " s (-mat_aijhybridgpu_comm_timeout): what was computed with it is no number", e->comm->rank, e->peers[who], (PetscInt64)which, HybTuningGet()->comm_timeout);
}

PetscErrorCode HybPeerEnd(HybExchange e, const HybExec *exec, PetscErrorCode before, void **result)
{
  PetscFunctionBegin;
  PetscCall(before); /* its entries are with the others; theirs are waited for before the next exchange */
  PetscCall(HybPeerCatchUp(e, exec, e->count));
  *result = e->slots_[e->count & 1];
  PetscCall(HybPeerStatus(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerSumEnd(HybExchange e, const HybExec *exec, PetscInt n, HybScalar *v)
{
  const size_t bytes = (size_t)e->from->offset[e->from->n] * HYB_COMM_UNIT;

  PetscFunctionBegin;
  e->begun = PETSC_FALSE;
  PetscCall(exec->backend->comm->sumtake(exec, &e->table, e->count, e->recording ? e->counter : NULL, e->comm->rank, n, v, HybPeerPatience(e), e->slots_, bytes));
  if (e->recording)
    e->recorded++;
  else
    e->waited = e->count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerTogether(HybExchange e, const HybExec *exec, const HybPeerProduct *p, PetscInt room, PetscInt n, HybScalar *v)
{
  const HybCommOps *ops     = exec->backend->comm;
  const uint64_t    number  = e->recording ? 0 : e->count + 1;
  uint64_t *const   counter = e->recording ? e->counter : NULL;
  const size_t      bytes   = (size_t)e->from->offset[e->from->n] * HYB_COMM_UNIT;
  PetscErrorCode    ierr    = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!e->recording) {
    e->arena.exec.stream = exec->stream;
    ierr                 = HybPeerCatchUp(e, exec, e->count);
  }
  if (!ierr) ierr = p ? ops->mult(exec, &e->table, number, counter, p, HybPeerPatience(e), e->slots_, bytes) : ops->sum(exec, &e->table, number, counter, e->comm->rank, room, n, v, HybPeerPatience(e), e->slots_, bytes);
  if (ierr && !e->recording) HybPeerAbandon(e, exec);
  PetscCall(ierr);
  if (e->recording)
    e->recorded++;
  else
    e->count = e->waited = number;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerMult(HybExchange e, const HybExec *exec, const HybPeerProduct *p)
{
  PetscFunctionBegin;
  PetscCall(HybPeerTogether(e, exec, p, 0, 0, NULL));
  if (e->recording) PetscFunctionReturn(PETSC_SUCCESS);
  e->bypeer = PETSC_TRUE;
  PetscCall(HybPeerStatus(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerRecord(HybExchange e, const HybExec *exec)
{
  PetscFunctionBegin;
  if (!e->taken) PetscCall(HybArenaAlloc(&e->tables, HYB_MEM_DEVICE, e->from->offset[e->from->n], HYB_COMM_UNIT, &e->taken));
  if (!e->counter) PetscCall(HybArenaCalloc(&e->tables, HYB_MEM_DEVICE, 1, sizeof(*e->counter), &e->counter));
  e->recording = PETSC_TRUE;
  e->recorded  = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerRecordBegin(HybExchange e, const HybExec *exec, const PetscInt *index, const void *src)
{
  PetscFunctionBegin;
  if (e->npeers) PetscCall(exec->backend->comm->put(exec, &e->table, 0, e->counter, PETSC_FALSE, sizeof(HybScalar), e->to->offset[e->to->n], index, src, 0, NULL, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerRecordEnd(HybExchange e, const HybExec *exec, void **result)
{
  PetscFunctionBegin;
  if (e->npeers) PetscCall(exec->backend->comm->take(exec, &e->table, e->counter, HybPeerPatience(e), e->slots_, ((size_t)e->from->offset[e->from->n] * sizeof(HybScalar) + 7) / 8 * 8, e->taken));
  *result = e->taken;
  e->recorded++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerReplay(HybExchange e, const HybExec *exec)
{
  PetscFunctionBegin;
  e->arena.exec.stream = exec->stream;
  PetscCall(HybPeerCatchUp(e, exec, e->count));
  PetscCall(HybPeerStatus(e));
  if (e->there == e->count) PetscFunctionReturn(PETSC_SUCCESS);
  e->there = e->sent = e->count;
  PetscCall(exec->backend->copy(exec, e->counter, &e->sent, sizeof(e->sent), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

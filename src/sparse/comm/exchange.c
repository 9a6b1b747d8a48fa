/*
  exchange.c: messages between a process and its peers, over MPI with page-locked buffers.

    Begin   receives are posted;  on the side: gather the units, copy them to the host's buffer
            (the caller's work is queued; the device does it meanwhile)
    End     wait for that copy alone, send, wait for the messages;  on the side: copy them to the device, for which the
            stream waits and the host does not

  On the host the units are gathered and sent at once.

  Where MPI is GPU-aware, which nobody but the caller can know (HybCommSetAware(); a probe would end the program where
  it is not), messages are of the card's memory instead: no copies, and the host waits for the gathering alone. That
  memory is cudaMalloc()'s, which other processes can map; a pool's they cannot. What came is read in place.

  MPI tells the receiver where such memory lies, which maps it and reads it: a short message takes longer by that than
  through page-locked buffers, from which it is sent at once. Where the longest message of all processes is short
  (-mat_aijhybridgpu_tuning comm_aware_min) these serve, which all processes know alike. Both ends of each message then
  lie in memory of one kind, and what is gathered, and what came, in one piece: one copy, not one for each short
  neighbour.

  There are two buffers for what comes, in turn: when a receive is posted into one, the copy out of it, two exchanges
  ago, is over, since the side did it before the copy that the last End waited for.

  Who cannot send what others expect sends messages without contents in their place. So those who wait get an error, and
  nobody waits for ever. All room is taken when the exchange is made, or, collectively, when it gets larger units, or at
  the first message where peer access is tried at once: page-locked memory takes milliseconds, and may not be needed.
*/
#include "commimpl.h"

static PetscErrorCode HybExchangeCardsFree(const HybExec *exec, char *card[3])
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    if (card[k]) ierr = HybErrorFirst(ierr, exec->backend->comm->segmentfree(exec, card[k]));
    card[k] = NULL;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory of the card for messages, where they are to be of it. Without it, page-locked buffers serve. */
static PetscErrorCode HybExchangeCards(HybExchange e, size_t unit, size_t out, size_t in)
{
  const HybExec *exec = &e->arena.exec;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) e->card[k] = NULL;
  e->unable = (PetscBool)(!e->may || HybExchangeIsShort(e, unit));
  for (int k = 0; k <= e->slots && !e->unable; k++) {
    const size_t bytes = k ? in : out;

    if (bytes && HYB_QUIETLY(exec->backend->comm->segment(exec, bytes, (void **)&e->card[k], NULL))) e->unable = PETSC_TRUE;
  }
  if (e->unable) ierr = HybExchangeCardsFree(exec, e->card);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybExchangeRoom(HybExchange e, PetscBool keepghost, size_t unit)
{
  const HybExec *exec  = &e->arena.exec;
  const size_t   nsend = (size_t)e->to->offset[e->to->n], nrecv = (size_t)e->from->offset[e->from->n], line = 64;
  const size_t   out = (nsend * unit + line - 1) / line * line, in = (nrecv * unit + line - 1) / line * line;
  PetscBool      locked;

  PetscFunctionBegin;
  PetscCall(HybExchangeCards(e, unit, out, in));
  if (e->unable) {
    PetscCall(HybExchangeBuffer(&e->arena, out + (size_t)e->slots * in, &e->out, &locked));
    for (int k = 0; k < 2; k++) e->in[k] = e->out + out + (k < e->slots ? (size_t)k * in : 0);
    e->packed = e->out;
    if (exec->backend->device) {
      PetscCall(HybArenaAlloc(&e->arena, HYB_MEM_DEVICE, (PetscCount)(nsend * unit), 1, &e->packed));
      if (keepghost) PetscCall(HybArenaAlloc(&e->arena, HYB_MEM_DEVICE, (PetscCount)(nrecv * unit), 1, &e->ghost));
    }
  }
  e->capacity = unit;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybExchangeMake(HybExchange e, PetscBool keepghost, PetscBool room)
{
  const HybExec *exec = &e->arena.exec;
  PetscCount     n    = (PetscCount)HybPeersPieces(e->to, HYB_COMM_MOST) + HybPeersPieces(e->from, HYB_COMM_MOST);

  PetscFunctionBegin;
  e->slots = keepghost ? 2 : 1;
  PetscCall(PetscMalloc1(n, &e->request));
  PetscCall(PetscMalloc1(n, &e->received));
  PetscCheck(exec->backend->comm, PETSC_COMM_SELF, PETSC_ERR_SUP, "The %s backend exchanges nothing", exec->backend->name);
  PetscCall(exec->backend->comm->open(exec, &e->side));
  if (room) PetscCall(HybExchangeRoom(e, keepghost, HYB_COMM_UNIT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* not collective: the object, before anything is agreed upon */
static PetscErrorCode HybExchangeNew(HybComm comm, const HybExec *exec, const HybPeers *to, const HybPeers *from, PetscBool lasting, HybExchange *exchange)
{
  HybExchange e;

  PetscFunctionBegin;
  PetscCall(PetscNew(&e));
  *exchange = e;
  e->comm   = comm;
  e->to     = to;
  e->from   = from;
  if (lasting) e->times = HYB_COMM_CERTAIN;
  e->arena  = HybArenaOn(exec);
  e->tables = HybArenaOn(exec);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what processes tell each other when one is made, so that all decide alike: the largest of each */
enum {
  MOST,     /* units that one moves */
  HOST,     /* there is no device here */
  UNAWARE,  /* nor a GPU-aware MPI */
  LONGEST,  /* message */
  NOPART,   /* of the segment is free, */
  UNLOCKED, /* since there is no page-locked memory */
  LATER,    /* something is made once this is known */
  WANTED,   /* the caller's number */
  ANSWERS
};

/* one while it is made */
typedef struct {
  HybPeerMaking making;
  PetscBool     may, atonce, known;
  PetscInt64    most[ANSWERS];
} ExchangeMaking;

/* Peer access for one that lasts, after the processes have told each other: with the part that each took before, or,
   the first time on this communicator, by agreements of its own. What fails is agreed upon next. */
static PetscErrorCode HybExchangeAtOnce(HybExchange e, const HybExec *exec, ExchangeMaking *m)
{
  PetscFunctionBegin;
  e->asked = PETSC_TRUE;
  if (m->most[HOST]) m->most[NOPART] = 1;
  if (m->making)
    PetscCall(HybPeerAfter(e, PETSC_SUCCESS, &m->making, m->most + NOPART));
  else if (!m->most[HOST] && (!e->comm->peer || HybPeerIsOpen(e->comm)))
    PetscCall(HybPeerExchangeMake(e, exec, PETSC_SUCCESS));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: what this process would have, and what it asks. Where no other's answer changes what is made here it
   is made at once; where that is so of all they need not agree again. before: the lists may not be there. */
static PetscErrorCode HybExchangeAsk(HybComm comm, const HybExec *exec, PetscErrorCode before, HybExchangeWish *w, ExchangeMaking *m)
{
  const HybTuning *tuning = HybTuningGet();
  const PetscBool  aware  = (PetscBool)(HybCommAware && tuning->comm != HYB_COMM_MPI && comm->size > 1);
  const HybPeers  *to     = w->to;

  PetscFunctionBegin;
  m->making   = NULL;
  m->may      = (PetscBool)(HybExchangeMayPeer(tuning) && comm->size > 1);
  m->atonce   = (PetscBool)(w->lasting && m->may && HYB_COMM_CERTAIN >= tuning->comm_after);
  m->known    = (PetscBool)(!aware && (!exec->backend->device || !m->may));
  w->exchange = NULL;
  PetscCall(PetscArrayzero(m->most, ANSWERS));
  m->most[HOST]    = !exec->backend->device;
  m->most[UNAWARE] = !aware;
  m->most[NOPART]  = 1;
  m->most[LATER]   = !m->known;
  m->most[WANTED]  = w->most;
  PetscCall(before);
  m->most[MOST] = (PetscInt64)PetscMax(to->offset[to->n], w->from->offset[w->from->n]);
  for (PetscMPIInt k = 0; k < to->n; k++) m->most[LONGEST] = PetscMax(m->most[LONGEST], (PetscInt64)(to->offset[k + 1] - to->offset[k]));
  PetscCall(HybExchangeNew(comm, exec, to, w->from, w->lasting, &w->exchange));
  if (m->known) PetscCall(HybExchangeMake(w->exchange, w->keepghost, PETSC_TRUE));
  if (m->atonce && !m->most[HOST] && HybPeerIsOpen(comm)) PetscCall(HybPeerBefore(w->exchange, exec, &m->making, m->most + NOPART));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All have answered, and have it */
static PetscErrorCode HybExchangeAnswered(const HybExec *exec, HybExchangeWish *w, ExchangeMaking *m)
{
  const HybExchange e = w->exchange;

  PetscFunctionBegin;
  e->large   = (PetscBool)(m->most[MOST] >= (PetscInt64)(HYB_COMM_LARGE / HYB_COMM_UNIT));
  e->longest = m->most[LONGEST];
  e->may     = (PetscBool)(!m->most[UNAWARE] && exec->backend->device && exec->backend->comm && exec->backend->comm->segment);
  w->most    = m->most[WANTED];
  if (m->most[HOST] && m->may) PetscCall(HybPeerNone(e));
  if (m->atonce) PetscCall(HybExchangeAtOnce(e, exec, m));
  if (!m->known) PetscCall(HybExchangeMake(e, w->keepghost, (PetscBool)(e->asked ? !e->peer : !e->large || m->most[HOST] || !m->may)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybExchangesCreate(HybComm comm, const HybExec *exec, PetscErrorCode before, const char *what, int n, HybExchangeWish *w)
{
  ExchangeMaking m[HYB_COMM_TOGETHER];
  PetscInt64     most[HYB_COMM_TOGETHER * ANSWERS];
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) {
    ierr = HybErrorFirst(ierr, HybExchangeAsk(comm, exec, ierr, &w[k], &m[k]));
    PetscCall(PetscArraycpy(most + k * ANSWERS, m[k].most, ANSWERS));
  }
  ierr = HybAgreeMax(comm->mpi, ierr, what, n * ANSWERS, most);
  for (int k = 0; k < n && ierr; k++)
    if (m[k].making) (void)HybPeerAfter(w[k].exchange, ierr, &m[k].making, m[k].most + NOPART);
  if (!ierr) {
    for (int k = 0; k < n; k++) { /* all of them, which others meet in */
      PetscCall(PetscArraycpy(m[k].most, most + k * ANSWERS, ANSWERS));
      ierr = HybErrorFirst(ierr, HybExchangeAnswered(exec, &w[k], &m[k]));
    }
    if (most[LATER]) ierr = HybCommAgree(comm, ierr, "Room for messages");
  }
  for (int k = 0; k < n && ierr; k++) (void)HybExchangeDestroy(&w[k].exchange);
  PetscCall(ierr);
  for (int k = 0; k < n; k++) PetscCall(PetscCommGetNewTag(comm->mpi, &w[k].exchange->tag));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybExchangeCreate(HybComm comm, const HybExec *exec, PetscErrorCode before, const char *what, const HybPeers *to, const HybPeers *from, PetscBool lasting, HybExchange *exchange)
{
  HybExchangeWish w = {.to = to, .from = from, .keepghost = PETSC_TRUE, .lasting = lasting};
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  ierr      = HybExchangesCreate(comm, exec, before, what, 1, &w);
  *exchange = w.exchange;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybExchangeDestroy(HybExchange *exchange)
{
  HybExchange    e = *exchange;
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  *exchange = NULL;
  if (!e) PetscFunctionReturn(PETSC_SUCCESS);
  ierr  = HybPeerExchangeDestroy(e);
  ierr  = HybErrorFirst(ierr, e->side ? e->arena.exec.backend->comm->close(&e->arena.exec, &e->side) : PETSC_SUCCESS);
  ierr  = HybErrorFirst(ierr, HybArenaReset(&e->tables));
  ierr  = HybErrorFirst(ierr, HybExchangeCardsFree(&e->arena.exec, e->card));
  later = HybArenaReset(&e->arena);
  PetscCall(PetscFree(e->request));
  PetscCall(PetscFree(e->received));
  PetscCall(PetscFree(e));
  PetscCall(HybErrorFirst(ierr, later));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A unit of another size than before, or the first: all processes come here, and either all have room afterwards or all
   get an error */
static PetscErrorCode HybExchangeGrow(HybExchange e, const HybExec *exec, size_t unit)
{
  const PetscBool     keepghost = (PetscBool)(e->slots == 2);
  struct _HybExchange old       = *e;
  PetscErrorCode      ierr      = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCheck(unit <= HYB_COMM_MOST, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Units of %zu bytes are exchanged, of at most %zu they can be", unit, HYB_COMM_MOST);
  if (old.capacity) { /* nothing uses the old ones afterwards */
    ierr = exec->backend->comm->close(exec, &e->side);
    if (!ierr) ierr = exec->backend->comm->open(exec, &e->side);
  }
  e->arena = HybArenaOn(&old.arena.exec);
  (void)memset(e->card, 0, sizeof(e->card)); /* old has them, and gets them back after an error */
  if (!ierr) ierr = HybExchangeRoom(e, keepghost, unit);
  ierr = HybCommAgree(e->comm, ierr, "Room for messages");
  if (ierr) {
    (void)HybArenaReset(&e->arena);
    (void)HybExchangeCardsFree(exec, e->card);
    old.side = e->side;
    *e       = old;
    PetscCall(ierr);
  }
  HybCallBoth(HybExchangeCardsFree(exec, old.card), HybArenaReset(&old.arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where what comes is to be */
static char *HybExchangeInto(HybExchange e)
{
  return e->aware ? e->card[1 + e->slot] : e->in[e->slot];
}

static PetscErrorCode HybExchangeReceives(HybExchange e)
{
  PetscFunctionBegin;
  e->nrequest = 0;
  PetscCall(HybPeersStart(e->comm, e->tag, e->from, e->unit, PETSC_TRUE, PETSC_FALSE, HybExchangeInto(e), e->request, &e->nrequest));
  e->nreceive = e->nrequest;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybExchangeSends(HybExchange e, PetscBool empty)
{
  PetscFunctionBegin;
  e->sending = PETSC_TRUE;
  PetscCall(HybPeersStart(e->comm, e->tag, e->to, e->unit, PETSC_FALSE, empty, e->aware ? e->card[0] : e->out, e->request, &e->nrequest));
  if (!empty) HybCommTallySent(e->aware, (size_t)e->to->offset[e->to->n] * e->unit);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Does an exchange go by peer access? What that needs takes as long as two or three exchanges by messages: neighbours
  are told places, tables go to the card, and once for a communicator its cards' memory is mapped. What is used twice
  and goes has nothing of it. So it is made when it is asked for once more, or at once for what is large; for what lasts
  it is made with the exchange, whose agreements serve. All
  processes count alike, and a process that has an error meets the others here.
*/
static PetscErrorCode HybExchangeChoose(HybExchange e, const HybExec *exec, PetscErrorCode before)
{
  const HybTuning *tuning = HybTuningGet();

  PetscFunctionBegin;
  if (!e->asked && HybExchangeMayPeer(tuning) && (e->large || e->times >= tuning->comm_after)) PetscCall(HybPeerExchangeMake(e, exec, before));
  if (e->times < tuning->comm_after) e->times++; /* no further: a halo may be used for ever */
  e->bypeer = e->peer;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybExchangeBegin(HybExchange e, const HybExec *exec, size_t unit, const PetscInt *index, const void *src)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(!e->begun, PETSC_COMM_SELF, PETSC_ERR_ORDER, "An exchange begins that has begun already");
  if (e->recording) {
    PetscCall(HybPeerRecordBegin(e, exec, index, src));
    e->begun = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  e->arena.exec.stream = exec->stream; /* whose work the end of this object waits for */
  e->bypeer            = PETSC_FALSE;
  if (unit <= HYB_COMM_UNIT) PetscCall(HybExchangeChoose(e, exec, PETSC_SUCCESS));
  if (e->bypeer) {
    PetscCall(HybPeerBegin(e, exec, unit, index, src));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (unit > e->capacity) PetscCall(HybExchangeGrow(e, exec, PetscMax(unit, HYB_COMM_UNIT)));
  e->begun   = PETSC_TRUE;
  e->sending = PETSC_FALSE;
  e->aware   = (PetscBool)!e->unable;
  e->unit    = unit;
  e->slot    = e->slots == 2 ? 1 - e->slot : 0;
  if (e->slots == 2) PetscCall(HybExchangeReceives(e));
  ierr = exec->backend->comm->send(exec, e->side, e->to->offset[e->to->n], index, unit, src, e->aware ? e->card[0] : e->packed, e->aware ? NULL : e->out);
  if (!ierr && !exec->backend->device) {
    if (e->slots == 1) PetscCall(HybExchangeReceives(e));
    PetscCall(HybExchangeSends(e, PETSC_FALSE));
  }
  if (ierr) ierr = HybExchangeEnd(e, exec, ierr, NULL, NULL); /* the same error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybExchangeEnd(HybExchange e, const HybExec *exec, PetscErrorCode before, void *dst, void *result)
{
  const size_t    bytes  = (size_t)e->from->offset[e->from->n] * e->unit;
  const PetscBool device = exec->backend->device;
  PetscErrorCode  ierr   = before;
  PetscMPIInt     missing;
  void           *kept = NULL;

  PetscFunctionBegin;
  PetscCheck(e->begun, PETSC_COMM_SELF, PETSC_ERR_ORDER, "An exchange ends that has not begun");
  e->begun = PETSC_FALSE;
  if (e->recording) {
    PetscCall(before);
    PetscCall(HybPeerRecordEnd(e, exec, &kept));
    *(void **)result = kept;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (e->bypeer) {
    PetscCall(HybPeerEnd(e, exec, before, &kept));
    HybCommTallySent(PETSC_TRUE, (size_t)e->to->offset[e->to->n] * e->unit);
    if (dst && bytes) PetscCall(exec->backend->copy(exec, dst, kept, bytes, HYB_COPY_DEVICE_TO_DEVICE));
    if (result) *(void **)result = dst ? dst : kept;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!e->sending) {
    ierr = HybErrorFirst(ierr, exec->backend->comm->sent(exec, e->side));
    /* what came last may still be copied or read: no gathering after it was waited for */
    if (ierr && device) (void)HYB_QUIETLY(exec->backend->sync(exec));
    if (e->slots == 1) PetscCall(HybExchangeReceives(e));
    PetscCall(HybExchangeSends(e, (PetscBool)(ierr != PETSC_SUCCESS)));
  }
  HybCallMPIWaiting(MPI_Waitall(e->nrequest, e->request, e->received));
  PetscCall(ierr);
  PetscCall(HybPeersCheck(e->from, e->unit, e->received, NULL, &missing));
  PetscCheck(missing < 0, PETSC_COMM_SELF, PETSC_ERR_LIB, "Process %d has an error and sends nothing to process %d", missing, e->comm->rank);
  if (e->aware) {
    if (!dst)
      dst = HybExchangeInto(e);
    else if (bytes)
      PetscCall(exec->backend->copy(exec, dst, HybExchangeInto(e), bytes, HYB_COPY_DEVICE_TO_DEVICE));
  } else if (device) {
    if (bytes) PetscCall(exec->backend->comm->receive(exec, e->side, bytes, e->in[e->slot], dst ? dst : e->ghost, (PetscBool)(dst != NULL)));
    if (!dst) dst = e->ghost;
  } else if (!dst)
    dst = e->in[e->slot];
  else if (bytes)
    PetscCall(PetscMemcpy(dst, e->in[e->slot], bytes));
  if (result) *(void **)result = dst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybExchangeAbandon(HybExchange e, const HybExec *exec, size_t unit)
{
  if (e->begun || e->recording) return; /* what is captured after an error is thrown away */
  (void)HYB_QUIETLY(HybExchangeChoose(e, exec, PETSC_ERR_LIB));
  if (e->bypeer) {
    HybPeerAbandon(e, exec);
    return;
  }
  if (!e->capacity) { /* the others are about to agree upon their room */
    (void)HYB_QUIETLY(HybCommAgree(e->comm, PETSC_ERR_LIB, "Room for messages"));
    return;
  }
  e->begun   = PETSC_TRUE;
  e->sending = PETSC_FALSE;
  e->aware   = (PetscBool)!e->unable;
  e->unit    = unit; /* large messages go in as many pieces as the others' do */
  e->slot    = e->slots == 2 ? 1 - e->slot : 0;
  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  if (e->slots == 1 || !HybExchangeReceives(e)) (void)HybExchangeEnd(e, exec, PETSC_ERR_LIB, NULL, NULL);
  (void)PetscPopErrorHandler();
}

/*
  commimpl.h: what the files of the comm room share: one exchange of messages, which halos and rows are made of.
*/
#ifndef AIJHYBRIDGPU_COMMIMPL_H
#define AIJHYBRIDGPU_COMMIMPL_H
#include <aijhybridgpu/private/hybcomm.h>

extern PetscBool HybCommAware; /* HybCommSetAware()'s */

/* an exchange that goes on its way, and a wait of the host's for other processes, for HybCommTally */
extern void   HybCommTallySent(PetscBool cards, size_t bytes);
extern double HybCommWaitBegin(void);
extern void   HybCommWaitEnd(double began);
#define HybCallMPIWaiting(...)                \
  do {                                        \
    const double began_ = HybCommWaitBegin(); \
    PetscCallMPI(__VA_ARGS__);                \
    HybCommWaitEnd(began_);                   \
  } while (0)

/* bytes for which exchanges have room from the first */
#define HYB_COMM_UNIT (PetscMax(sizeof(HybScalar), 2 * sizeof(PetscInt)))
#define HYB_COMM_MOST ((size_t)64) /* and which they can be given room for */

/* Peer access is made ready at once for exchanges in which some process moves so many bytes: by messages they take
   longer than that does */
#define HYB_COMM_LARGE ((size_t)128 << 10)

/* Exchanges that come in any case of what lasts: they count from the first */
#define HYB_COMM_CERTAIN 2

/* What people are told of the ways of messages; a reason follows */
#define HYB_COMM_BY_AWARE   "GPU-aware MPI: "
#define HYB_COMM_BY_BUFFERS "MPI from page-locked buffers: "

/* MPI counts in int: longer messages go in pieces of so many bytes */
#define HYB_COMM_PIECE ((size_t)1 << 30)

struct _HybExchange {
  HybComm         comm;
  const HybPeers *to, *from; /* in units; their owner's */
  PetscMPIInt     tag;
  HybArena        arena;
  void           *side;
  int             slots;          /* of in */
  size_t          capacity;       /* bytes of a unit that there is room for */
  char           *out, *in[2];    /* of the host, page-locked where there is a device and room */
  char           *packed, *ghost; /* where the backend executes; on the host out, and NULL */
  /* by GPU-aware MPI. may: all processes say that it is; unable: this one goes by page-locked buffers all the same, all
     where messages are short, or one that has no memory for it: to the others a message is a message. longest: units
     of the longest message of any process. card: packed, and what comes, of the card's, not of a pool. */
  PetscBool    may, unable;
  PetscInt64   longest;
  char        *card[3];
  MPI_Request *request; /* those of receives first */
  MPI_Status  *received;
  PetscMPIInt  nrequest, nreceive;
  /* by peer access; times: exchanges that it could serve, asked: all processes have looked whether it can. count:
     exchanges begun, waited: the last one that was waited for */
  PetscInt    times;
  PetscBool   asked, peer, early, lenient, large;
  PetscBool   unlocked; /* not by peer access, since a process's word of status could not be page-locked */
  PetscMPIInt npeers, *peers;
  size_t      at; /* of this exchange's part of the segment */
  char       *slots_[2];
  uint64_t    count, waited;
  /* in a graph: how many there are so far while it is captured, and the word that has their number; there: what is in
     it when all that is queued has been done; sent: a copy on its way to it */
  PetscBool    recording;
  PetscInt     recorded;
  char        *taken; /* what came, in a graph */
  uint64_t    *counter, there, sent;
  PetscInt     patience; /* seconds, where they are not the process's */
  int64_t     *status;
  HybArena     tables;
  HybPeerTable table;
  /* the exchange in progress */
  PetscBool begun, sending, bypeer, aware;
  int       slot;
  size_t    unit;
};

/* Does the way that is asked for leave it to the exchange, or are messages asked for? */
static inline PetscBool HybExchangeMayPeer(const HybTuning *tuning)
{
  return (PetscBool)(tuning->comm != HYB_COMM_MPI && tuning->comm != HYB_COMM_GPUAWARE);
}
/* Are all messages, of units of so many bytes, too short to be the card's memory? All processes say the same. */
static inline PetscBool HybExchangeIsShort(HybExchange e, size_t unit)
{
  return (PetscBool)((size_t)e->longest * unit < (size_t)HybTuningGet()->comm_aware_min);
}
/* Collective. keepghost: End may be asked to keep what comes; else it is always told where to. lasting: exchanges of it
   come again and again. before: what this process has done to come here, and what that is. */
extern PetscErrorCode HybExchangeCreate(HybComm, const HybExec *, PetscErrorCode before, const char *what, const HybPeers *to, const HybPeers *from, PetscBool lasting, HybExchange *);
/* The same of n <= HYB_COMM_TOGETHER at once, in as many agreements. most, a number of the caller's, becomes the
   largest of all processes. */
typedef struct {
  const HybPeers *to, *from;
  PetscBool       keepghost, lasting;
  PetscInt64      most;
  HybExchange     exchange; /* what is made */
} HybExchangeWish;
extern PetscErrorCode HybExchangesCreate(HybComm, const HybExec *, PetscErrorCode before, const char *what, int n, HybExchangeWish *);
extern PetscErrorCode HybExchangeDestroy(HybExchange *);
/* src: units at index[] (where src is), or as they are where that is NULL */
extern PetscErrorCode HybExchangeBegin(HybExchange, const HybExec *, size_t unit, const PetscInt *index, const void *src);
/* dst NULL: where it is kept; *result, which may be NULL: where it came to */
extern PetscErrorCode HybExchangeEnd(HybExchange, const HybExec *, PetscErrorCode before, void *dst, void *result);
/* peer.c. Collective: after it, comm->way says what serves; the exchange goes by peer access if e->peer. An error is
   one of all. before: this process's, which then leaves all with messages. */
extern PetscErrorCode HybPeerExchangeMake(HybExchange, const HybExec *, PetscErrorCode before);
/* The same where all know that a process has no device: not collective */
extern PetscErrorCode HybPeerNone(HybExchange);
/* The same of an exchange that is being made, whose agreements serve: before and after the one of its sizes, by which
   less[] has become the largest of all. After, which meets the neighbours, is followed by another. making is NULL at
   first. */
typedef struct _HybPeerMaking *HybPeerMaking;
extern PetscErrorCode          HybPeerBefore(HybExchange, const HybExec *, HybPeerMaking *making, PetscInt64 less[2]);
extern PetscErrorCode          HybPeerAfter(HybExchange, PetscErrorCode before, HybPeerMaking *making, const PetscInt64 less[2]);
extern PetscErrorCode          HybPeerExchangeDestroy(HybExchange);
extern PetscErrorCode          HybPeerBegin(HybExchange, const HybExec *, size_t unit, const PetscInt *index, const void *src);
extern PetscErrorCode          HybPeerEnd(HybExchange, const HybExec *, PetscErrorCode before, void **result);
extern PetscErrorCode          HybPeerStatus(HybExchange); /* not collective, of an exchange by peer access */
/* Beginning and end in one launch, with the product between them, or, where that is NULL, a sum. Recorded: by the
   number that is in the counter. Mult: such a product of an exchange that tells what it has heard. */
extern PetscErrorCode HybPeerTogether(HybExchange, const HybExec *, const HybPeerProduct *, PetscInt room, PetscInt n, HybScalar *v);
extern PetscErrorCode HybPeerMult(HybExchange, const HybExec *, const HybPeerProduct *);
extern PetscErrorCode HybPeerSumEnd(HybExchange, const HybExec *, PetscInt n, HybScalar *v); /* after Begin */
extern PetscErrorCode HybPeerRecord(HybExchange, const HybExec *);
extern PetscErrorCode HybPeerRecordBegin(HybExchange, const HybExec *, const PetscInt *index, const void *src);
extern PetscErrorCode HybPeerRecordEnd(HybExchange, const HybExec *, void **result);
extern PetscErrorCode HybPeerReplay(HybExchange, const HybExec *);
extern void           HybPeerAbandon(HybExchange, const HybExec *);
extern void           HybPeerForget(HybExchange);
extern PetscErrorCode HybPeerClose(HybComm);
/* *all: has it succeeded on every process? */
extern PetscErrorCode HybPeerAll(HybComm, PetscErrorCode, PetscBool *all);
/* probe.c, of exchanges with everybody; peer.c asks for it by comm->probe */
extern PetscErrorCode HybPeerProbe(HybComm, const HybExec *, PetscBool *all);
extern PetscBool      HybPeerIsOpen(HybComm);

/* instead of both: others get messages without contents */
extern void HybExchangeAbandon(HybExchange, const HybExec *, size_t unit);

/* page-locked memory where there is some; *locked: is it? */
extern PetscErrorCode HybExchangeBuffer(HybArena *, size_t bytes, void *buffer, PetscBool *locked);

/* The same at once, between arrays of the host's, without any object; out is as long as `to` says. What it needs
   memory for is taken before all agree that they can exchange. before: an error of this process's, which comes back;
   those who wait for what it sends get one too. */
extern PetscErrorCode HybPeersRequests(const HybPeers *to, const HybPeers *from, size_t unit, MPI_Request **);
extern PetscErrorCode HybPeersExchange(HybComm, PetscErrorCode before, const HybPeers *to, const HybPeers *from, size_t unit, const void *out, void *in, MPI_Request *);
/* peers.c: in pieces that MPI can count; empty: messages without contents; *missing: who sent another length, or -1 */
extern PetscMPIInt    HybPeersPieces(const HybPeers *, size_t unit);
extern PetscErrorCode HybPeersStart(HybComm, PetscMPIInt tag, const HybPeers *, size_t unit, PetscBool receive, PetscBool empty, char *buffer, MPI_Request *, PetscMPIInt *n);
extern PetscErrorCode HybPeersCheck(const HybPeers *, size_t unit, const MPI_Status *, MPI_Request *, PetscMPIInt *missing);
extern PetscErrorCode HybPeersAlloc(PetscMPIInt n, HybPeers *);
extern PetscErrorCode HybPeersFree(HybPeers *);
/* offsets of units that are made of parts: p's of n, and where part k begins is at[k] */
extern PetscErrorCode HybPeersRefine(const HybPeers *, const PetscInt *at, HybPeers *);
#endif

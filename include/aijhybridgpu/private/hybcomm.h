/*
  hybcomm.h: what the processes of a communicator send each other: entries that others need (halos), rows of matrices,
  both ways, and a few integers that all sum.

  Arrays live where the backend executes unless it is said otherwise; processes of one communicator may have different
  backends. All functions but those that say so are collective, and nobody waits for ever: where something fails on one
  process, either all get an error (it was agreed, HybCommAgree()), or those that wait for this process do.

  Whose turn it is never decides a result: messages are taken in the order of ranks.
*/
#ifndef AIJHYBRIDGPU_HYBCOMM_H
#define AIJHYBRIDGPU_HYBCOMM_H
#include "hyb.h"

HYB_EXTERN_C_BEGIN

/* A communicator as the rooms use it: a duplicate, so that no message meets one of the program's. HybCommGet() for the
   same MPI_Comm gives the same HybComm, and each call needs a HybCommRestore(). */
typedef struct _HybComm *HybComm;
struct _HybComm {
  MPI_Comm    mpi;
  PetscMPIInt rank, size;
  PetscInt    users;
  /* memory of other processes' cards, where it can be mapped; else why not */
  struct _HybPeer *peer;
  /* text for people: which transport exchanges between devices use, and why; empty before the first one. [1]: with
     GPU-aware MPI */
  char way[2][160];
  PetscErrorCode (*probe)(HybComm, const HybExec *, PetscBool *all); /* tries whether exchanges by peer access arrive */
  /* for tests: processes that pretend to be a node; 0: nodes as they are */
  PetscMPIInt nodesize;
  HybComm     next;
};

extern PetscErrorCode HybCommGet(MPI_Comm, HybComm *);
extern PetscErrorCode HybCommRestore(HybComm *);
/* Says whether MPI can send and receive memory of a card; at first it is taken to be unable. A program cannot try it:
   without that ability such a message ends the program. */
extern void HybCommSetAware(PetscBool);
/* Checks that work which each process did alone, with the result ierr, succeeded on all. Else it is an error on all
   processes: their own, or one of the same class that names the process that failed. Called before messages are sent
   whose lengths others expect. v[0..n-1], the host's, become the largest over all processes, n <= HYB_COMM_AGREED, or
   the sums, for which v has n+1 places; *yes: on all. */
#define HYB_COMM_AGREED                18
#define HybAgree(mpi, ierr, what)      HybAgreeMax(mpi, ierr, what, 0, NULL)
#define HybCommAgree(comm, ierr, what) HybAgreeMax((comm)->mpi, ierr, what, 0, NULL)
extern PetscErrorCode HybAgreeMax(MPI_Comm, PetscErrorCode ierr, const char *what, PetscInt n, PetscInt64 *v);
extern PetscErrorCode HybAgreeSum(MPI_Comm, PetscErrorCode ierr, const char *what, PetscInt n, PetscInt64 *v);
extern PetscErrorCode HybAgreeAll(MPI_Comm, PetscErrorCode ierr, const char *what, PetscBool *yes);

/* What this process has sent, and how long its host has waited for other processes, since the library was loaded */
typedef struct {
  PetscCount cards, messages; /* exchanges in which it sent anything: from card to card, and through the host */
  PetscCount together;        /* exchanges that were one launch with a product */
  double     cardbytes, messagebytes;
  PetscBool  timing; /* waits and seconds are counted */
  /* of the host, for messages and sums; a device that waits for others' entries is not counted */
  PetscCount waits;
  double     seconds;
} HybCommTally;
extern HybCommTally *HybCommTallyGet(void);

/* Processes that exchange messages with this one, ascending by rank. Units offset[k] to offset[k+1]-1 are those of
   rank[k]. */
typedef struct {
  PetscMPIInt  n;
  PetscMPIInt *rank;
  PetscCount  *offset; /* n+1 */
} HybPeers;

/* The buffers and the transport of one exchange. Halos and rows, below, make and own it. */
typedef struct _HybExchange *HybExchange;

/*
  A halo: which entries of a distributed array others need of this process, and which it needs of them.
*/
typedef struct _HybHalo *HybHalo;
struct _HybHalo {
  HybComm   comm;
  uint64_t  number;   /* counts the halos of the process, from 1 */
  HybArena  arena;    /* of what follows; its exec is the backend */
  PetscInt  n;        /* owned entries of this process */
  PetscInt  nghost;   /* entries of others that it needs, in ascending order of their global numbers */
  PetscInt  nsend;    /* entries of its own that others need: to.offset[to.n] */
  HybPeers  to, from; /* from.offset counts ghosts */
  PetscInt *index;    /* of the host: the local numbers of what is sent, for each of `to` ascending */
  PetscInt *there;    /* index, where the backend executes */
  /* For the reverse exchange: owned entry row[k] gets the received entries place[ptr[k]] to place[ptr[k+1]-1], in the
     order of ranks. These arrays live where the backend executes. */
  PetscInt    nrows;
  PetscInt   *row, *place;
  PetscCount *ptr;
  HybScalar  *room;    /* what HybHaloRoom() gives */
  PetscBool   scalars; /* the exchange in progress moves HybScalar, else PetscInt */
  /* Set by users whose work between Begin and End takes no longer than a kernel's start: an exchange by peer access
     then waits in Begin. Processes may differ. */
  PetscBool early;
  /* Set by users who ask HybHaloHeard() themselves, as long as they exchange: a neighbour's failure that a device has
     found is no error of an exchange. What came is no number then. */
  PetscBool lenient;
  /* Set, on all processes, by users who move values of its rows, or of its entries, again and again: for what is made
     from then on peer access is made ready at once, where that is open, and costs no agreement. */
  PetscBool   lasting;
  HybExchange forward, reverse;
  /* room that was agreed upon with the halo, for the lengths of rows that come later */
  MPI_Request *request;
  PetscInt    *lengths;
};

/* Process r owns entries ranges[r] to ranges[r+1]-1, as in a PetscLayout. ghost, on the host: nghost global numbers,
   strictly ascending, none of them owned by this process. before: an error of this process's, which becomes one of all.
   lasting: see above. */
extern PetscErrorCode HybHaloCreate(HybComm, const HybExec *, PetscErrorCode before, const PetscInt *ranges, PetscInt nghost, const PetscInt *ghost, PetscBool lasting, HybHalo *);
/* the same where each process needs all entries of the others */
extern PetscErrorCode HybHaloCreateAll(HybComm, const HybExec *, PetscErrorCode before, const PetscInt *ranges, PetscBool lasting, HybHalo *);
/* n halos at once, n <= HYB_COMM_TOGETHER, in the agreements of one, for rows alone: they cannot exchange entries.
   HybHaloThere(), not collective, fills `there`. */
#define HYB_COMM_TOGETHER 2
typedef struct {
  const PetscInt *ranges;
  PetscInt        nghost;
  const PetscInt *ghost;
} HybHaloWish;
extern PetscErrorCode HybHalosCreateRows(HybComm, const HybExec *, PetscErrorCode before, int n, const HybHaloWish[], HybHalo[]);
extern PetscErrorCode HybHaloThere(HybHalo);
/* text for people: the transport of its exchanges between devices, or of the reverse ones, and why */
extern const char *HybHaloWay(HybHalo, PetscBool reverse);
/* Is `index` strictly ascending, as it is if one neighbour alone needs entries? Then nobody has to sort it. */
extern PetscBool HybHaloSendsInOrder(HybHalo);
/* did its last exchange, or reverse exchange, go from card to card? */
extern PetscBool HybHaloFromCardToCard(HybHalo, PetscBool reverse);
/* the transport of its last exchange: peer, gpuaware or mpi */
extern const char *HybHaloBy(HybHalo, PetscBool reverse);
/* collective; NULL is allowed */
extern PetscErrorCode HybHaloDestroy(HybHalo *);

/*
  Others' entries of x: what is queued for x comes first, and the exchange goes on beside what the caller queues between
  Begin and End, which nothing waits for. *ghost: nghost units, valid until the next Begin of this halo. One exchange of
  a halo at a time. before: an error of the caller's since Begin, which others then get too instead of waiting; where
  Begin fails there is no End.
*/
extern PetscErrorCode HybHaloBegin(HybHalo, const HybExec *, size_t unit, const void *x);
extern PetscErrorCode HybHaloEnd(HybHalo, const HybExec *, PetscErrorCode before, void *ghost);
/* What comes between is a product with so many nonzeros. Few take no longer than to start a kernel: nothing is gained
   by entries that come meanwhile (early). */
static inline void HybHaloBeside(HybHalo h, PetscCount nnz)
{
  h->early = (PetscBool)(nnz < HybTuningGet()->comm_together);
}
/* the two at once */
extern PetscErrorCode HybHaloExchange(HybHalo, const HybExec *, size_t unit, const void *x, void *ghost);

/* The other way: y[i] += what others have as ghosts of this process's entry i, added in the order of their ranks.
   scalars: of HybScalar, else of PetscInt. ghost may be changed after End. Arrays live where the backend executes. */
extern PetscErrorCode HybHaloReverseBegin(HybHalo, const HybExec *, PetscBool scalars, const void *ghost);
extern PetscErrorCode HybHaloReverseEnd(HybHalo, const HybExec *, PetscErrorCode before, void *y);

/* *ghost: room for a value of each ghost, where the backend executes, as input of a reverse exchange. The halo owns it.
   Not collective. */
extern PetscErrorCode HybHaloRoom(HybHalo, HybScalar **ghost);

/* A matrix, and by how many lanes its rows' sums are formed: each lane adds entries of its own one after the other,
   then the lanes add in a butterfly. */
typedef struct {
  HybCSR csr;
  int    lanes;
} HybSummed;

/* A process's part of a product of a parallel matrix with a vector: its diagonal block and its off-diagonal one, or
   their transposes. mode: 0: z = A x, 1: y + A x, 2: y - A x; y may be z. The last four are the halo's. */
typedef struct {
  HybSummed        D, O;
  PetscBool        transpose;
  const HybScalar *x, *y;
  HybScalar       *z;
  int              mode;
  /* c not NULL, not transposed: z = (c[2] w + c[1] x) + c[0] (dinv (y - A x)), w NULL: 0; w may be z, y and x are
     not */
  const HybScalar  *dinv, *w;
  const PetscReal  *c;
  PetscInt          n; /* owned entries that are sent, or to which is added */
  const PetscInt   *index, *place;
  const PetscCount *ptr;
} HybPeerProduct;

#define HYB_HALO_BESIDE 8192 /* nonzeros for others that one block of threads multiplies with beside the own product */
/* May this process do exchange and product in one launch now, whatever others do? Yes if the exchange uses peer access
   already, sends little, and little is queued between Begin and End (early). For short products the time is that of the
   launches. */
extern PetscBool HybHaloMultiplies(HybHalo, PetscBool transpose);
/* exchange and product in one launch, with the bits of an exchange and two products */
extern PetscErrorCode HybHaloMult(HybHalo, const HybExec *, HybPeerProduct *);
/* Exchanges of scalars in a graph, which are made again and again. From Record() on they are not executed, but captured
   on a stream of the caller's, with their numbers in the device's memory; Recorded() ends that, and says how many there
   were. Replay() comes before each launch of the graph, Replayed() after it. Whether others have a graph does not
   matter. HybHaloRecordable(): peer access serves, and what an exchange needs is there. */
extern PetscBool      HybHaloRecordable(HybHalo, PetscBool transpose);
extern PetscBool      HybHaloRecords(HybHalo, PetscBool transpose); /* between Record() and Recorded() */
extern PetscErrorCode HybHaloRecord(HybHalo, const HybExec *, PetscBool transpose);
extern PetscInt       HybHaloRecorded(HybHalo, PetscBool transpose);
extern PetscErrorCode HybHaloReplay(HybHalo, const HybExec *, PetscBool transpose);
extern void           HybHaloReplayed(HybHalo, PetscBool transpose, PetscInt times);

/* Called by a process that cannot begin the exchange, or reverse exchange, of units of so many bytes, which others
   begin, because of its error why: those who wait for it get an error instead of waiting. */
extern void HybHaloAbandon(HybHalo, const HybExec *, size_t unit, PetscBool reverse, PetscErrorCode why);

/* Not collective: all processes know of an error in its exchanges, so the next exchange does not report it again. */
extern void HybHaloForget(HybHalo);
/* Not collective: an error if a device has found a neighbour's failure in an exchange since it was asked last */
extern PetscErrorCode HybHaloHeard(HybHalo);

/*
  Sums over all processes of n numbers each, which are on a device. Created collectively; before: an error of this
  process's, which becomes one of all. HybCommSumServes(): peer access serves, which is so on all processes or on none,
  and nothing waits for the device; else messages do, and the host waits for them.
*/
#define HYB_COMM_FEW 64
typedef struct _HybCommSum *HybCommSum;
struct _HybCommSum {
  HybHalo  halo;
  PetscInt n;
};
extern PetscErrorCode HybCommSumCreate(HybComm, const HybExec *, PetscErrorCode before, PetscInt n, HybCommSum *);
extern PetscErrorCode HybCommSumDestroy(HybCommSum *); /* collective; NULL is allowed */
extern PetscBool      HybCommSumServes(HybCommSum);
/* Collective: v[k] = its sum over the processes, k < n, the same n on all: the one of Create, or, by peer access, a
   smaller one where that is at most HYB_COMM_FEW. before: an error of this process's, which is returned; the others'
   sums are no numbers then, and HybHaloHeard() of the halo tells it once their devices have come to them. */
extern PetscErrorCode HybCommSumApply(HybCommSum, const HybExec *, PetscErrorCode before, PetscInt n, HybScalar *v);
/* sums in a graph: the halo's exchanges, forward, are recorded and replayed */

/*
  Rows of a matrix that is distributed as the halo's entries are. A: this process's rows; colmap[c], where the backend
  executes, is column c's global number, of N; ascending: so is colmap. colmap NULL: A's rows are those that are sent,
  in the order of sending, with global columns, and begin, of the host, has their offsets. A->a may be NULL: no values.
*/
typedef struct _HybRows *HybRows;
struct _HybRows {
  HybComm     comm;
  HybArena    arena;
  PetscCount  nsend, nrecv; /* entries */
  PetscInt   *perm;         /* the k-th entry sent is A's entry perm[k]; NULL: entry k */
  HybPeers    to, from;     /* offsets count entries */
  PetscBool   early;        /* as HybHalo's */
  HybExchange values;
};

/* *R: the rows of the halo's ghosts, which other processes own, in the ghosts' order: nghost rows, N columns, arrays
   from keep, columns ascending. *rows moves later values of the same matrix. ship: the other way; A has a row for each
   ghost, which goes to its owner; *R has nsend rows, row k being a part of the owner's row index[k] (so rows of one
   index come in the order of ranks). */
typedef struct {
  HybHalo         halo;
  PetscBool       ship;
  HybArena       *keep;
  const HybCSR   *A;
  const PetscInt *begin, *colmap;
  PetscInt        N;
  PetscBool       ascending;
  HybCSR         *R;
  HybRows        *rows;
} HybRowsWish;
/* n at once, n <= HYB_COMM_TOGETHER, in the agreements of one. before: an error of this process's, which becomes one of
   all. An error in what comes last is its own, and the caller agrees before others wait for it. */
extern PetscErrorCode HybRowsMove(HybComm, const HybExec *, PetscErrorCode before, int n, const HybRowsWish[]);
/* a: A's present values; ra: the nrecv values of R, which End writes. The exchange goes on beside what is queued
   between Begin and End. */
extern PetscErrorCode HybRowsValuesBegin(HybRows, const HybExec *, const HybScalar *a);
extern PetscErrorCode HybRowsValuesEnd(HybRows, const HybExec *, PetscErrorCode before, HybScalar *ra);
/* the same without a copy: *came, valid until the next Begin, is ra or the buffer that received the values */
extern PetscErrorCode HybRowsValuesEndThere(HybRows, const HybExec *, PetscErrorCode before, HybScalar *ra, const HybScalar **came);
/* Called, instead of both, by a process that has an error: those who wait for it get one too. Forget: as
   HybHaloForget(). */
extern void HybRowsAbandon(HybRows, const HybExec *);
extern void HybRowsForget(HybRows);
/* Not collective: reports now an error that a device found in an exchange that has ended; else the next one does */
extern PetscErrorCode HybRowsCheck(HybRows);
/* Not collective: does HybRowsValuesBegin() allocate nothing more? Work on a side stream must not allocate. */
extern PetscBool      HybRowsSettled(HybRows);
extern PetscErrorCode HybRowsDestroy(HybRows *);

/* An exchange by peer access: where this process writes, and where its neighbours write. Arrays live where the backend
   executes, except status, which is page-locked host memory. status[0] is 0: all is well; 1: neighbour status[1] failed
   in exchange status[2]; 2: that neighbour was late. */
typedef struct {
  PetscInt    n;       /* neighbours that send or receive; each gets the exchange's number */
  PetscCount *offset;  /* n+1: units for each */
  PetscCount *there;   /* units before this process's in each neighbour's slot */
  char      **slot[2]; /* slots of each neighbour, used in turn */
  /* each neighbour's words for this process: the last number, the last even and the last odd number that failed */
  uint64_t **flag;
  uint64_t  *mine; /* HYB_COMM_WORDS words for each neighbour, which it writes */
  /* two words of the kernels, 0 at first: blocks that have arrived; the last exchange that a block announced */
  unsigned *arrived;
  int64_t  *status;
} HybPeerTable;
#define HYB_COMM_HANDLE 64 /* bytes */
#define HYB_COMM_WORDS  3

/* Arrays that are numbered as if they were one: array s has the numbers start[s] to start[s+1]-1 */
#define HYB_COMM_SOURCES 5
typedef struct {
  const HybScalar *a[HYB_COMM_SOURCES];
  PetscInt         start[HYB_COMM_SOURCES + 1];
} HybCommSources;

/* What a backend does for an exchange. A side is a stream beside exec's stream; on the host all is done on return. */
typedef struct _HybCommOps {
  PetscErrorCode (*open)(const HybExec *, void **side);
  PetscErrorCode (*close)(const HybExec *, void **side); /* waits for what is queued on it */
  /* On the side, after what exec's stream holds now: packed[k] = src[index[k]], k < n, units of so many bytes; index
     NULL: as they are. host, if not NULL: the same, to page-locked memory, and then not to packed where index is
     NULL. */
  PetscErrorCode (*send)(const HybExec *, void *side, PetscCount n, const PetscInt *index, size_t unit, const void *src, void *packed, void *host);
  /* the host waits for the last send() */
  PetscErrorCode (*sent)(const HybExec *, void *side);
  /* on the side: dst = host's page-locked bytes; exec's stream waits for that, the host does not. after: exec's stream
     holds work since send() that dst has to wait for. */
  PetscErrorCode (*receive)(const HybExec *, void *side, size_t bytes, const void *host, void *dst, PetscBool after);
  /* A segment is memory of this card that belongs to no pool, as GPU-aware MPI needs it. handle, if not NULL, becomes
     what other processes need to map the segment for peer access; an error if that is forbidden. */
  PetscErrorCode (*segment)(const HybExec *, size_t bytes, void **segment, unsigned char handle[HYB_COMM_HANDLE]);
  PetscErrorCode (*segmentfree)(const HybExec *, void *segment); /* called when no process has it mapped */
  PetscErrorCode (*attach)(const HybExec *, const unsigned char handle[HYB_COMM_HANDLE], void **there);
  PetscErrorCode (*detach)(const HybExec *, void *there);
  /* On exec's stream: writes n units, src[index[k]] or (index NULL) src[k], to the neighbours' slots, then the
     exchange's number. failed: it writes that this process has failed. With seconds > 0 it waits as well, as wait()
     does. counter, if not NULL: a word where the backend executes, which holds the number of the exchange before, in
     place of number. */
  PetscErrorCode (*put)(const HybExec *, const HybPeerTable *, uint64_t number, const uint64_t *counter, PetscBool failed, size_t unit, PetscCount n, const PetscInt *index, const void *src, PetscInt seconds, void *slot, size_t bytes);
  /* On exec's stream: waits at most so many seconds for the neighbours' numbers. If one failed or is late, status says
     so, and all bytes of the slot become ones, which are no number. */
  PetscErrorCode (*wait)(const HybExec *, const HybPeerTable *, uint64_t number, PetscInt seconds, void *slot, size_t bytes);
  /* after a put() by counter, which holds this exchange's number afterwards: waits, and copies what came, so many
     bytes */
  PetscErrorCode (*take)(const HybExec *, const HybPeerTable *, uint64_t *counter, PetscInt seconds, char *const slot[2], size_t bytes, void *to);
  /* One launch for put(), wait() and the product. counter: NULL, or as put()'s, and holds this exchange's number
     afterwards. */
  PetscErrorCode (*mult)(const HybExec *, const HybPeerTable *, uint64_t number, uint64_t *counter, const HybPeerProduct *, PetscInt seconds, char *const slot[2], size_t bytes);
  /* After a put() of v to all, as take(): waits, and v[k] = the sum over all processes, k < n, as sum() makes it */
  PetscErrorCode (*sumtake)(const HybExec *, const HybPeerTable *, uint64_t number, uint64_t *counter, PetscMPIInt rank, PetscInt n, HybScalar *v, PetscInt seconds, char *const slot[2], size_t bytes);
  /* the same where `came` has the others' numbers */
  PetscErrorCode (*sumcame)(const HybExec *, PetscMPIInt rank, PetscMPIInt others, PetscInt n, const HybScalar *came, HybScalar *v);
  /* One launch for put(), wait(), and v[k] = the sum over all processes, k < n; this one has that rank, each has room
     for `room` numbers, and all are neighbours. counter: as mult()'s. */
  PetscErrorCode (*sum)(const HybExec *, const HybPeerTable *, uint64_t number, uint64_t *counter, PetscMPIInt rank, PetscInt room, PetscInt n, HybScalar *v, PetscInt seconds, char *const slot[2], size_t bytes);
  /* on exec's stream: to[row[k]] += v[place[ptr[k]]] + ... + v[place[ptr[k+1]-1]], one after the other, k < n */
  PetscErrorCode (*add)(const HybExec *, PetscInt n, const PetscInt *row, const PetscCount *ptr, const PetscInt *place, PetscBool scalars, const void *v, void *to);
  /* on exec's stream: to[k] = entry number from[k] of the sources, k < n; where that is negative to[k] stays */
  PetscErrorCode (*collect)(const HybExec *, PetscCount n, const PetscInt *from, const HybCommSources *, HybScalar *to);
  /* what such lists are made of: number[k] = k, k < n, which entries that are moved carry, to[k] = -1, k < m; and from
     what they came to, from[k] = to[k] */
  PetscErrorCode (*number)(const HybExec *, PetscCount n, HybScalar *number, PetscCount m, HybScalar *to);
  PetscErrorCode (*numbered)(const HybExec *, PetscCount n, const HybScalar *to, PetscInt *from);
  /* *side executes on a side stream, after what exec's stream holds now. From join() on exec's stream waits for it;
     join() is called after an error too. No memory is allocated or freed between the two. */
  PetscErrorCode (*fork)(const HybExec *, HybExec *side);
  PetscErrorCode (*join)(const HybExec *);
} HybCommOps;

extern const HybCommOps HybCommHost;

HYB_EXTERN_C_END
#endif

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

/* A communicator as the rooms use it: a duplicate, so that no message meets one of the program's. Who gets it twice
   gets the same, and gives it back twice. */
typedef struct _HybComm *HybComm;
struct _HybComm {
  MPI_Comm    mpi;
  PetscMPIInt rank, size;
  PetscInt    users;
  /* memory of others' cards, where these can be reached; else why not */
  struct _HybPeer *peer;
  /* for people: by which way exchanges of devices go, and why; empty: none has been made. [1]: where MPI is
     GPU-aware */
  char way[2][160];
  PetscErrorCode (*probe)(HybComm, const HybExec *, PetscBool *all); /* do exchanges by it come through? */
  /* for tests: so many processes pretend to be a node; 0: nodes are as they are */
  PetscMPIInt nodesize;
  HybComm     next;
};

extern PetscErrorCode HybCommGet(MPI_Comm, HybComm *);
extern PetscErrorCode HybCommRestore(HybComm *);
/* Somebody knows that MPI sends and receives memory of a card, or that it does not, as nobody does at first. Where it
   does not such a message ends the program: there is nothing to try. */
extern void HybCommSetAware(PetscBool);
/* v[0..n-1], the host's, become the sums, or the largest, over all processes */
extern PetscErrorCode HybCommSum(HybComm, PetscInt n, PetscInt64 *v);
extern PetscErrorCode HybCommMax(HybComm, PetscInt n, PetscInt64 *v);
/* Has the piece of work that each process did alone succeeded for all? ierr: this process's. If not, an error on all:
   its own, and where it has none, one of the same class that names the process. Before messages are sent whose lengths
   others expect. */
extern PetscErrorCode HybCommAgree(HybComm, PetscErrorCode ierr, const char *what);
/* the same, and v[0..n-1] become the largest over all processes: one sum where else there were two */
#define HYB_COMM_AGREED 7
extern PetscErrorCode HybCommAgreeMax(HybComm, PetscErrorCode ierr, const char *what, PetscInt n, PetscInt64 *v);
/* the same where there is no HybComm */
extern PetscErrorCode HybAgree(MPI_Comm, PetscErrorCode ierr, const char *what);

/* What this process's exchanges sent, and how long its host waited for other processes: since the library came */
typedef struct {
  PetscCount cards, messages; /* exchanges from card to card, and through the host, in which it sent anything */
  PetscCount together;        /* exchanges in one launch with a product */
  double     cardbytes, messagebytes;
  PetscBool  timing; /* somebody wants the waits' times */
  /* for messages and sums, while they are timed; a device that waits for others' entries holds up no host */
  PetscCount waits;
  double     seconds;
} HybCommTally;
extern HybCommTally *HybCommTallyGet(void);

/* Processes that exchange messages with this one, ascending, and where each one's part of the units begins */
typedef struct {
  PetscMPIInt  n;
  PetscMPIInt *rank;
  PetscCount  *offset; /* n+1 */
} HybPeers;

/* What one exchange moves: of so many bytes a unit, from the units that `to` counts to those that `from` counts. Made
   and kept by halos and rows below. */
typedef struct _HybExchange *HybExchange;

/*
  A halo: which entries of a distributed array others need of this process, and which it needs of them.
*/
typedef struct _HybHalo *HybHalo;
struct _HybHalo {
  HybComm   comm;
  HybArena  arena;    /* of what follows; its exec is the backend */
  PetscInt  n;        /* owned entries of this process */
  PetscInt  nghost;   /* entries of others that it needs, in ascending order of their global numbers */
  PetscInt  nsend;    /* entries of its own that others need: to.offset[to.n] */
  HybPeers  to, from; /* from.offset counts ghosts */
  PetscInt *index;    /* of the host: the local numbers of what is sent, for each of `to` ascending */
  PetscInt *there;    /* the same where the backend executes */
  /* of the reverse way: owned entry row[k] gets the received ones at place[ptr[k]] to place[ptr[k+1]-1], in the order
     of ranks; where the backend executes */
  PetscInt    nrows;
  PetscInt   *row, *place;
  PetscCount *ptr;
  HybScalar  *room;    /* HybHaloRoom()'s */
  PetscBool   scalars; /* in the exchange in progress */
  /* What its users queue between Begin and End takes no longer than to start a kernel: by peer access, exchanges wait
     where they begin. Each process for itself. */
  PetscBool   early;
  HybExchange forward, reverse;
};

/* ranges[r] to ranges[r+1]-1 are process r's (as of a PetscLayout); ghost: of the host, nghost global numbers, strictly
   ascending, none of them own */
extern PetscErrorCode HybHaloCreate(HybComm, const HybExec *, const PetscInt *ranges, PetscInt nghost, const PetscInt *ghost, HybHalo *);
/* A halo for rows alone: no entries can be exchanged. before: what this process has had before. `there` gets its
   contents by the second one, which is not collective. */
extern PetscErrorCode HybHaloCreateRows(HybComm, const HybExec *, PetscErrorCode before, const PetscInt *ranges, PetscInt nghost, const PetscInt *ghost, HybHalo *);
extern PetscErrorCode HybHaloThere(HybHalo);
/* for people: the way that its exchanges between devices go, the reverse ones or not, and why */
extern const char *HybHaloWay(HybHalo, PetscBool reverse);
/* is its `index` strictly ascending, as where one neighbour alone needs anything? To sort such a list takes as long as
   any other. */
extern PetscBool HybHaloSendsInOrder(HybHalo);
/* has its last exchange, the reverse one or not, left the host's memory out? */
extern PetscBool HybHaloFromCardToCard(HybHalo, PetscBool reverse);
/* what it went by: peer, gpuaware or mpi */
extern const char *HybHaloBy(HybHalo, PetscBool reverse);
/* collective; NULL is allowed */
extern PetscErrorCode HybHaloDestroy(HybHalo *);

/*
  Others' entries of x: what is queued for x comes first, and the exchange goes on beside what the caller queues between
  Begin and End, which nothing waits for. *ghost: nghost units, valid until the next Begin of this halo. One exchange of
  a halo at a time. before: an error of the caller's since Begin, which others then get too instead of waiting; where
  Begin fails there is no End.
  x is where the backend executes, or the host's if `host`, then ghost is too.
*/
extern PetscErrorCode HybHaloBegin(HybHalo, const HybExec *, size_t unit, const void *x, PetscBool host);
extern PetscErrorCode HybHaloEnd(HybHalo, const HybExec *, PetscErrorCode before, void *ghost);
/* the two at once */
extern PetscErrorCode HybHaloExchange(HybHalo, const HybExec *, size_t unit, const void *x, PetscBool host, void *ghost);

/* The other way: y[i] += what others have as ghosts of this process's entry i, added in the order of their ranks.
   scalars: of HybScalar, else of PetscInt. ghost may be changed after End. Arrays are where the backend executes. */
extern PetscErrorCode HybHaloReverseBegin(HybHalo, const HybExec *, PetscBool scalars, const void *ghost);
extern PetscErrorCode HybHaloReverseEnd(HybHalo, const HybExec *, PetscErrorCode before, void *y);

/* A value for each ghost, where the backend executes, for what is sent the other way; it stays with the halo. Not
   collective. */
extern PetscErrorCode HybHaloRoom(HybHalo, HybScalar **ghost);

/* A matrix and how the sums of its rows are formed: each of so many lanes adds entries of its own one after the other,
   then all add in a butterfly */
typedef struct {
  HybCSR csr;
  int    lanes;
} HybSummed;

/* A process's part of a product of a parallel matrix with a vector: its diagonal block and its off-diagonal one, or
   their transposes. mode: 0: z = A x, 1: y + A x, 2: y - A x; y may be z. The last four are the halo's. */
typedef struct {
  HybSummed         D, O;
  PetscBool         transpose;
  const HybScalar  *x, *y;
  HybScalar        *z;
  int               mode;
  PetscInt          n; /* owned entries that are sent, or to which is added */
  const PetscInt   *index, *place;
  const PetscCount *ptr;
} HybPeerProduct;

/* Exchange and product in one launch, which is what a short one's time is: may this process do so now, whatever others
   do? The exchange goes by peer access already, what is sent is little, and users queue little between (early). */
extern PetscBool HybHaloMultiplies(HybHalo, PetscBool transpose);
/* does so; the same bits as an exchange and the two products */
extern PetscErrorCode HybHaloMult(HybHalo, const HybExec *, HybPeerProduct *);

/* A process that cannot begin the exchange that others begin (the reverse one, or not), for an error of its own, why:
   those who wait for it get one instead of waiting. Fails in no way that matters beside that. */
extern void HybHaloAbandon(HybHalo, const HybExec *, PetscBool reverse, PetscErrorCode why);

/* Not collective: all know of an error in its exchanges by other ways, so the next one is not to tell of it */
extern void HybHaloForget(HybHalo);

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
  PetscInt   *perm;         /* entry k that is sent is A's entry perm[k]; NULL: entry k */
  HybPeers    to, from;     /* in entries */
  PetscBool   early;        /* as of a halo */
  HybExchange values;
};

/* Others' rows, those of the halo's ghosts in their order: *R has nghost rows and N columns, arrays from keep; columns
   ascend in each row. *rows is what moves other values of the same matrix. */
extern PetscErrorCode HybRowsFetch(HybHalo, const HybExec *, PetscErrorCode before, HybArena *keep, const HybCSR *A, const PetscInt *begin, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows);
/* The other way: A has a row for each ghost, which goes to its owner; *R has nsend rows, row k being a part of the
   owner's row index[k] (so rows of one index come in the order of ranks) */
extern PetscErrorCode HybRowsShip(HybHalo, const HybExec *, PetscErrorCode before, HybArena *keep, const HybCSR *A, const PetscInt *begin, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows);
/* a: A's values as they are now; ra: those of R, nrecv of them, which End writes. As of a halo, the exchange goes on
   beside what is queued between. */
extern PetscErrorCode HybRowsValuesBegin(HybRows, const HybExec *, const HybScalar *a);
extern PetscErrorCode HybRowsValuesEnd(HybRows, const HybExec *, PetscErrorCode before, HybScalar *ra);
/* the same where ra itself is not wanted: *came, valid until the next Begin, is ra or where they came to */
extern PetscErrorCode HybRowsValuesEndThere(HybRows, const HybExec *, PetscErrorCode before, HybScalar *ra, const HybScalar **came);
/* Not collective: the error that a device found in an exchange that has ended, which else the next one tells of */
extern PetscErrorCode HybRowsCheck(HybRows);
/* Not collective: values begin without making anything, as what goes beside an operation's stream has to */
extern PetscBool      HybRowsSettled(HybRows);
extern PetscErrorCode HybRowsDestroy(HybRows *);

/* An exchange by peer access: where this process puts what, and where the others' parts come. Arrays where the backend
   executes, but status, which is page-locked memory of the host's: [0]: 0: all is well; 1: neighbour [1] failed in
   exchange [2]; 2: it did not come in time. */
typedef struct {
  PetscInt    n;       /* neighbours, that send or receive; each is told the number */
  PetscCount *offset;  /* n+1: units for each */
  PetscCount *there;   /* in its slot: how many units lie before this process's */
  char      **slot[2]; /* its slots, taken in turn */
  uint64_t  **flag;    /* its words for this process: the last number, and the last even and odd ones that failed */
  uint64_t   *mine;    /* HYB_COMM_WORDS for each neighbour: the same of theirs */
  /* two words of the kernels' own, 0: blocks that are there; the last exchange of which one told */
  unsigned *arrived;
  int64_t  *status;
} HybPeerTable;
#define HYB_COMM_HANDLE 64 /* bytes */
#define HYB_COMM_WORDS  3

/* Arrays one behind the other, of which array s begins at number start[s]; the last number of all is behind them */
#define HYB_COMM_SOURCES 5
typedef struct {
  const HybScalar *a[HYB_COMM_SOURCES];
  PetscInt         start[HYB_COMM_SOURCES + 1];
} HybCommSources;

/* What a backend does for an exchange. A lane is work beside exec's stream; on the host all is done on return. */
typedef struct _HybCommOps {
  PetscErrorCode (*open)(const HybExec *, void **lane);
  PetscErrorCode (*close)(const HybExec *, void **lane); /* waits for what is queued on it */
  /* On the lane, after what exec's stream holds now: packed[k] = src[index[k]], k < n, units of so many bytes; index
     NULL: as they are. host, if not NULL: the same, to page-locked memory, and then not to packed where index is
     NULL. */
  PetscErrorCode (*send)(const HybExec *, void *lane, PetscCount n, const PetscInt *index, size_t unit, const void *src, void *packed, void *host);
  /* the host waits for the last send() */
  PetscErrorCode (*sent)(const HybExec *, void *lane);
  /* on the lane: dst = host's page-locked bytes; exec's stream waits for that, the host does not. after: exec's stream
     holds work since send() that dst has to wait for. */
  PetscErrorCode (*receive)(const HybExec *, void *lane, size_t bytes, const void *host, void *dst, PetscBool after);
  /* A segment is memory of this card that is no pool's, as GPU-aware MPI needs it. handle, if not NULL: what other
     processes need to map it, for peer access; where that is forbidden it is an error. */
  PetscErrorCode (*segment)(const HybExec *, size_t bytes, void **segment, unsigned char handle[HYB_COMM_HANDLE]);
  PetscErrorCode (*segmentfree)(const HybExec *, void *segment); /* when nobody has it mapped */
  PetscErrorCode (*attach)(const HybExec *, const unsigned char handle[HYB_COMM_HANDLE], void **there);
  PetscErrorCode (*detach)(const HybExec *, void *there);
  /* On exec's stream: n units at index[] of src, or as they are, go to the neighbours' slots; then each one is told the
     number. failed: it is told that this process has nothing for it. With seconds it does what wait() does as well. */
  PetscErrorCode (*put)(const HybExec *, const HybPeerTable *, uint64_t number, PetscBool failed, size_t unit, PetscCount n, const PetscInt *index, const void *src, PetscInt seconds, void *slot, size_t bytes);
  /* On exec's stream: waits for the neighbours' numbers, so many seconds. Where one failed or did not come, status
     tells, and the slot's bytes are all ones: no number. */
  PetscErrorCode (*wait)(const HybExec *, const HybPeerTable *, uint64_t number, PetscInt seconds, void *slot, size_t bytes);
  /* put() with what others need of the product, the product, and wait() where it needs others' part, at once */
  PetscErrorCode (*mult)(const HybExec *, const HybPeerTable *, uint64_t number, const HybPeerProduct *, PetscInt seconds, void *slot, size_t bytes);
  /* on exec's stream: to[row[k]] += v[place[ptr[k]]] + ... + v[place[ptr[k+1]-1]], one after the other, k < n */
  PetscErrorCode (*add)(const HybExec *, PetscInt n, const PetscInt *row, const PetscCount *ptr, const PetscInt *place, PetscBool scalars, const void *v, void *to);
  /* on exec's stream: to[k] = entry number from[k] of the sources, k < n; where that is negative to[k] stays */
  PetscErrorCode (*collect)(const HybExec *, PetscCount n, const PetscInt *from, const HybCommSources *, HybScalar *to);
  /* Work beside exec's stream, which begins after what that holds now; exec's stream waits for it from the join on,
     which comes after an error too. Between the two no memory is taken or given back. */
  PetscErrorCode (*fork)(const HybExec *, HybExec *side);
  PetscErrorCode (*join)(const HybExec *);
} HybCommOps;

extern const HybCommOps HybCommHost;

HYB_EXTERN_C_END
#endif

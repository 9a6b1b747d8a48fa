/*
  hyb.h: what every room below src/mat stands on: scalars, where memory lives, arenas, CSR views, counters, and the
  table of entry points (HybBackend) through which host and device are reached alike.

  Nothing here knows of Mat. Private headers compile as plain C and as C++ (nvcc, the tests' emulator).

  The rule of ownership: memory is taken from an arena and belongs to it until the arena is reset or the block is moved
  to another arena. A function that fails leaves what it took in the arena; whoever owns the arena resets it. So no
  method needs an error path of its own, and nothing leaks when any allocation fails.
*/
#ifndef AIJHYBRIDGPU_HYB_H
#define AIJHYBRIDGPU_HYB_H

#include <petscsys.h>
#include "hybrelease.h"
#include <petscdevicetypes.h>
#include <stdint.h>

/* HybScalar is PetscScalar seen from C, and a type of the same layout in C++ (kernels). Scalars cross the seam by
   pointer. */
#if defined(__cplusplus) && defined(PETSC_USE_COMPLEX)
  #if defined(__CUDACC__)
    #include <cuda/std/complex>
typedef cuda::std::complex<PetscReal> HybScalar;
  #else
    #include <complex>
typedef std::complex<PetscReal> HybScalar;
  #endif
#else
typedef PetscScalar HybScalar;
  /* what a sum starts from that adds nothing, not even to -0 */
  #if PetscDefined(USE_COMPLEX)
    #define HYB_NEUTRAL PetscCMPLX((PetscReal)-0.0, (PetscReal)-0.0)
  #else
    #define HYB_NEUTRAL ((PetscReal)-0.0)
  #endif
#endif

#if defined(__cplusplus)
  #define HYB_EXTERN_C_BEGIN extern "C" {
  #define HYB_EXTERN_C_END   }
#else
  #define HYB_EXTERN_C_BEGIN
  #define HYB_EXTERN_C_END
#endif

/* Hot host loops are compiled for several instruction sets and chosen at load: portable binaries, no -march=native.
   Not under sanitizers, whose run time is not up when the resolver runs. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  #define HYB_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#else
  #define HYB_MULTIVERSION
#endif

HYB_EXTERN_C_BEGIN

/* what to do where a card's memory is short; PETSc's own lines above an error name what shows the host's alone */
#define HYB_MEMORY_HINT ": destroy matrices and products that are not needed; -mat_aijhybridgpu_view_memory tells at the end what was held (-malloc_dump the host's alone), and with -mat_aijhybridgpu_hash_places 0 products keep less"

/* Where memory lives.
   HOST: PetscMalloc(). DEVICE: the stream-ordered pool of the device, never touched by the host (on the host backend:
   HOST).
   MANAGED: one storage valid on both sides, for arrays that the AIJ base class adopts.
   LOCKED: host memory that is locked in place, between which and the device the bus copies at full speed, within a
   share of the host's memory (on the host backend: HOST).
   GROWING: a device's addresses, reserved, which HybArenaGrow() puts memory behind (on the host backend: HOST). */
typedef enum {
  HYB_MEM_HOST,
  HYB_MEM_DEVICE,
  HYB_MEM_MANAGED,
  HYB_MEM_LOCKED,
  HYB_MEM_GROWING
} HybMem;

typedef struct _HybBackend HybBackend;

/* How to execute: on which backend, on which of its streams, and where results that the caller keeps are to be
   stored. */
typedef struct {
  const HybBackend *backend;
  void             *stream; /* cudaStream_t of a device backend, NULL on the host */
  HybMem            result; /* memory of arrays that outlive the call (a product's i, j, a) */
} HybExec;

/* A set of allocations that live and die together. */
typedef struct _HybBlock *HybBlock;
typedef struct {
  HybExec  exec;
  HybBlock blocks;
  size_t   bytes; /* held now */
  size_t   peak;  /* the most ever held since HybArenaInit() */
} HybArena;

/* large pages for a large block of the host's, where the kernel gives them on request; arenas ask by themselves */
#define HYB_LARGE_PAGES_MIN ((size_t)2 << 20) /* bytes: nothing is asked for smaller ones */
extern void HybAskLargePages(void *ptr, size_t bytes);

extern PetscErrorCode HybArenaInit(HybArena *, const HybExec *);
/* *(void**)ptr = count*size bytes (at least one), aligned to 64 bytes at least on a device, 16 on the host; not
   initialized. The product count*size is checked for overflow. */
extern PetscErrorCode HybArenaAlloc(HybArena *, HybMem, PetscCount count, size_t size, void *ptr);
/* the same, set to zero bytes in stream order */
extern PetscErrorCode HybArenaCalloc(HybArena *, HybMem, PetscCount count, size_t size, void *ptr);
/* frees one block (stream-ordered on a device) and sets the pointer to NULL; NULL is allowed */
extern PetscErrorCode HybArenaFree(HybArena *, void *ptr);
/* ptr, of HYB_MEM_GROWING memory, was allocated with the most entries that may ever be needed, and costs nothing: from
   here on at least its first count*size bytes can be used, and what was there before stays where it is. Not done in
   stream order: work that is queued may go on using the array. Freeing it waits for the stream. */
extern PetscErrorCode HybArenaGrow(HybArena *, const void *ptr, PetscCount count, size_t size);
/* hands the block that starts at ptr to another arena */
extern PetscErrorCode HybArenaMove(HybArena *from, HybArena *to, const void *ptr);
/* where the block that starts at ptr lives: MANAGED memory above this process's share is given as DEVICE memory */
extern PetscErrorCode HybArenaWhere(const HybArena *, const void *ptr, HybMem *);
/* frees all; the arena stays usable. Cannot fail half-way: it goes on after an error and reports the first one. */
extern PetscErrorCode HybArenaReset(HybArena *);
extern PetscErrorCode HybArenaResetBoth(HybArena *, HybArena *); /* the second one also when the first fails */

/* What this process may take for something that it could do without, or with less of: a quarter of what is free, of
   which others on the card may ask for as much. Asks the card, which takes long. */
extern PetscErrorCode HybMemorySpare(const HybExec *, size_t *bytes);

/* The memory of temporaries: the backend's workspace */
#define HYB_WORK(exec) ((exec)->backend->workspace)

/* A compressed sparse row matrix by reference. The pointers are valid for the backend that executes; the view owns
   nothing. Columns ascend within each row. a may be NULL where only the pattern is used. i[0] = 0, i[m] = nnz. */
typedef struct {
  PetscInt   m, n; /* rows, columns */
  PetscCount nnz;
  PetscInt  *i; /* m+1 row offsets */
  PetscInt  *j; /* nnz column indices */
  HybScalar *a; /* nnz values */
} HybCSR;

/* What a method counts of itself: rows per bin, growths, merge rounds, dirty tiles. Shown by -info, asserted by
   tests. */
#define HYB_MAX_COUNTERS 32
#define HYB_TIMERS       64 /* of a backend: see mark() */
typedef struct {
  PetscInt    n;
  const char *name[HYB_MAX_COUNTERS]; /* string literals */
  PetscCount  value[HYB_MAX_COUNTERS];
} HybCounters;

/* adds to a counter, made at first use */
extern PetscErrorCode HybCountersAdd(HybCounters *, const char *name, PetscCount value);
extern PetscErrorCode HybCountersSet(HybCounters *, const char *name, PetscCount value);
/* appends them: ", name value" each */
extern PetscErrorCode HybCountersDescribe(const HybCounters *, char text[], size_t length);
/* 0 if it was never counted */
extern PetscCount HybCountersGet(const HybCounters *, const char *name);

typedef enum {
  HYB_COPY_HOST_TO_DEVICE,
  HYB_COPY_DEVICE_TO_HOST,
  HYB_COPY_DEVICE_TO_DEVICE,
  HYB_COPY_HOST_TO_HOST /* by all cores that are this process's; at once, whatever is queued */
} HybCopyKind;

/* Counted at each allocation and free. The host backend counts what its arenas hold as device bytes. */
typedef struct {
  size_t device_bytes, device_peak;   /* workspace and device arrays of ours */
  size_t managed_bytes, managed_peak; /* storage valid on both sides */
  size_t pinned_bytes, pinned_peak;   /* page-locked: buffers for copies, and LOCKED memory */
  size_t locked_bytes, locked_share;  /* LOCKED memory alone, and the most that this process may hold of it */
  /* the most that device and managed bytes were together since HybBackend.usage() was told to start anew */
  size_t since;
  size_t managed_share; /* the most managed bytes this process may hold */
  size_t managed_kept;  /* and of large arrays' memory, what is kept for later ones */
  /* of the device, as far as the plugin may believe (memory limit option); 0 from usage() */
  size_t free_bytes, total_bytes;
  int    card, cards; /* the device's number and how many this process sees; 0 of 0: the host */
  int    sharing;     /* processes that may be on the device, this one among them; 0: the host */
  char   bus[24];     /* where it sits, which is the same for every process */
} HybMemoryReport;

/* NormType is petscvec.h's, which no room includes */
typedef enum {
  HYB_NORM_1,         /* the largest column sum */
  HYB_NORM_FROBENIUS, /* sqrt(sum |a|^2) */
  HYB_NORM_INFINITY   /* the largest row sum */
} HybNorm;

/* Elementary operations on CSR arrays. All pointers live where the backend executes; scalars are passed by pointer to
   host memory. Results do not depend on the run. */
typedef struct {
  /* perm[k] = position in A of entry k of T = A^T; T->i, T->j (memory exec->result) and perm are taken from keep; rows
     of T come out sorted */
  PetscErrorCode (*transposesymbolic)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *T, PetscInt **perm);
  /* The same with values, where both are wanted at once: T->a (memory exec->result) = A->a[perm], conjugated if asked.
     perm may be NULL: not wanted. */
  PetscErrorCode (*transpose)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscBool conjugate, HybCSR *T, PetscInt **perm);
  /* dst[k] = src[perm[k]], conjugated if asked */
  PetscErrorCode (*gather)(const HybExec *, PetscCount n, const PetscInt *perm, PetscBool conjugate, const HybScalar *src, HybScalar *dst);
  PetscErrorCode (*set)(const HybExec *, PetscCount n, const HybScalar *alpha, HybScalar *a);
  PetscErrorCode (*scale)(const HybExec *, PetscCount n, const HybScalar *alpha, HybScalar *a);
  /* y += alpha x */
  PetscErrorCode (*axpy)(const HybExec *, PetscCount n, const HybScalar *alpha, const HybScalar *x, HybScalar *y);
  /* A = diag(l) A diag(r); l or r may be NULL */
  PetscErrorCode (*diagonalscale)(const HybExec *, HybCSR *A, const HybScalar *l, const HybScalar *r);
  /* d[i] = A(i,i), 0 where the pattern has none; min(m,n) entries */
  PetscErrorCode (*getdiagonal)(const HybExec *, const HybCSR *A, HybScalar *d);
  /* A(i,i) = d[i] or += d[i] (alpha in place of d[i] where d is NULL); *missing = number of rows < min(m,n) without a
     diagonal entry; if any, A is unchanged */
  PetscErrorCode (*diagonalset)(const HybExec *, HybArena *work, HybCSR *A, const HybScalar *d, const HybScalar *alpha, PetscBool add, PetscCount *missing);
  /* Y += alpha X where the pattern of X is within Y's; *missing = entries of X not in Y; if any, Y is unchanged */
  PetscErrorCode (*axpysubset)(const HybExec *, HybArena *work, const HybScalar *alpha, const HybCSR *X, HybCSR *Y, PetscCount *missing);
  /* the union of two patterns: C->i, C->j from keep (memory exec->result); PETSC_ERR_ARG_OUTOFRANGE if it does not fit
     PetscInt */
  PetscErrorCode (*addsymbolic)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *B, HybCSR *C);
  /* C = alpha A + beta B on the union pattern */
  PetscErrorCode (*addnumeric)(const HybExec *, const HybScalar *alpha, const HybCSR *A, const HybScalar *beta, const HybCSR *B, HybCSR *C);
  /* Hashes of i and j of n matrices, which are waited for once: they tell other matrices of the same pattern from those
     of another one. The same values on every backend. */
  PetscErrorCode (*patternhash)(const HybExec *, HybArena *work, PetscInt n, const HybCSR *const A[], uint64_t hash[]);
  /* counts rows whose columns are not strictly ascending within 0..n-1 or whose offsets descend; *badrow = the first
     such row or -1. An offset outside 0..nnz, i[0] != 0 or i[m] != nnz makes the row bad that it bounds; j is read
     within nnz alone, so any arrays may be checked. */
  PetscErrorCode (*check)(const HybExec *, HybArena *work, const HybCSR *A, PetscCount *nbad, PetscInt *badrow);
  /* length[r] = entries of row r (length may be NULL: not wanted), *longest = the most of them, *nonempty = rows that
     have any; of A only m and i are looked at */
  PetscErrorCode (*rowlengths)(const HybExec *, HybArena *work, const HybCSR *A, PetscInt *length, PetscCount *longest, PetscCount *nonempty);
  /* place[r] = k where j[k] = r in row r, i[r+1] where the row has no such entry */
  PetscErrorCode (*diagonalplaces)(const HybExec *, const HybCSR *A, PetscInt *place);
  /* same[r] = 1 where row r has the columns of row r-1, else 0, as for the first row */
  PetscErrorCode (*samerows)(const HybExec *, const HybCSR *A, unsigned char *same);
  PetscErrorCode (*norm)(const HybExec *, HybArena *work, const HybCSR *A, HybNorm type, PetscReal *norm);
  /* COO: entries (ci[k], cj[k]), k < ncoo, negative ones ignored, one beyond C->m or C->n (set by the caller) is
     PETSC_ERR_ARG_OUTOFRANGE. C->i, C->j from keep (memory exec->result). Entry e of C is the sum of the
     values at map[mapptr[e]] .. map[mapptr[e+1]-1], ascending in k. */
  PetscErrorCode (*coosymbolic)(const HybExec *, HybArena *keep, HybArena *work, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj, HybCSR *C, PetscCount **mapptr, PetscCount **map);
  /* a[e] = (add ? a[e] : 0) + sum of v over the entry's list */
  PetscErrorCode (*coonumeric)(const HybExec *, PetscCount nnz, const PetscCount *mapptr, const PetscCount *map, const HybScalar *v, PetscBool add, HybScalar *a);
  /* Coordinates of a process that has rows rstart to rend-1 and columns cstart to cend-1, split in place: those in both
     count from (0,0) afterwards, all others are negative. *nother: how many are in its rows and other columns; *place,
     *oi and *oj, from work: the k of each, ascending, its row counted from rstart, and its column as it was. */
  PetscErrorCode (*coosplit)(const HybExec *, HybArena *work, PetscCount ncoo, PetscInt *ci, PetscInt *cj, PetscInt rstart, PetscInt rend, PetscInt cstart, PetscInt cend, PetscCount *nother, PetscCount **place, PetscInt **oi, PetscInt **oj);
  /* map[k] = place[map[k]] */
  PetscErrorCode (*coocompose)(const HybExec *, PetscCount n, const PetscCount *place, PetscCount *map);
  /* S = A(rows, cstart:cend-1), columns renumbered to start at 0; rows in any order, also repeatedly; S->a = A->a[perm]
     by gather */
  PetscErrorCode (*submatrixsymbolic)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, HybCSR *S, PetscInt **perm);
  /* the same with any columns, rows NULL: all: column c of A becomes column colmap[c] of S, which has ncols, or none if
     that is negative; no two become one. ascending: the columns that stay keep their order, so that rows need no
     sorting. */
  PetscErrorCode (*submatrixmapped)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt ncols, const PetscInt *colmap, PetscBool ascending, HybCSR *S, PetscInt **perm);
  /* C = A B for dense B and C of p columns, stored by columns ldb and ldc apart */
  PetscErrorCode (*multdense)(const HybExec *, const HybCSR *A, PetscInt p, const HybScalar *B, PetscCount ldb, HybScalar *C, PetscCount ldc);
} HybCSROps;

struct _HybSpMVMethod;
struct _HybSpGEMMMethod;
struct _HybPtAPMethod;
struct _HybPlanOps;
struct _HybAggOps;
struct _HybLocalOps;
struct _HybKrylovOps;
struct _HybCycleOps;
struct _HybCommOps;
struct _HybParAggOps;

/* All entry points of one backend. The host's table is HybBackendHost; a device library exports its own by
   HybCUDAGetBackend(). */
struct _HybBackend {
  size_t      size; /* sizeof(HybBackend) of the library that made it */
  const char *name; /* "host", "cuda", "emulated" */
  HybMem      workspace;
  PetscBool   device; /* arrays are not the host's to touch */

  PetscErrorCode (*alloc)(const HybExec *, HybMem, size_t bytes, void **);
  PetscErrorCode (*free)(const HybExec *, HybMem, size_t bytes, void *);
  /* in stream order; host memory is reusable on return */
  PetscErrorCode (*copy)(const HybExec *, void *dst, const void *src, size_t bytes, HybCopyKind);
  PetscErrorCode (*zero)(const HybExec *, void *dst, size_t bytes);
  PetscErrorCode (*sync)(const HybExec *);
  /* How long the stream takes for what it gets between a timer's two marks (end: the second), for k < HYB_TIMERS. A
     device's only: NULL on the host. elapsed: -1 if it is still under way, and nothing is waited for. */
  PetscErrorCode (*mark)(const HybExec *, int k, PetscBool end);
  PetscErrorCode (*elapsed)(int k, PetscBool wait, double *seconds);
  /* fresh memory of the host's, which one thread is about to write: it gets its pages from all cores that are this
     process's */
  PetscErrorCode (*touch)(const HybExec *, void *, size_t bytes);
  /* memory of the host's, for a few copies by others: whoever locks it unlocks it before it can be freed */
  PetscErrorCode (*lock)(const HybExec *, void *, size_t bytes, PetscBool on);
  /* managed memory only; a hint */
  PetscErrorCode (*prefetch)(const HybExec *, const void *, size_t bytes, PetscBool todevice);
  /* asks the card, which takes long: not for paths that run often */
  PetscErrorCode (*memory)(HybMemoryReport *);
  /* the same without asking the card */
  PetscErrorCode (*usage)(HybMemoryReport *, PetscBool restart);
  /* HYB_MEM_GROWING: *mapped bytes are there now */
  PetscErrorCode (*grow)(const HybExec *, void *ptr, size_t bytes, size_t *mapped);
  /* before an operation: the card is the calling thread's current one from here on, whoever chose another */
  PetscErrorCode (*enter)(void);
  /* From here on memory is taken, cleared (zero()) and given back in the order of this stream, whatever stream an arena
     was made with; work that is queued elsewhere ends first. For a program whose current stream changes. NULL: there
     are no streams. */
  PetscErrorCode (*use)(void *stream);

  const HybCSROps                      *csr;
  const struct _HybPlanOps             *plan;
  const struct _HybSpMVMethod *const   *spmv; /* NULL-terminated, in the order of preference */
  const struct _HybSpGEMMMethod *const *spgemm;
  const struct _HybPtAPMethod *const   *ptap;
  const struct _HybAggOps              *agg;
  const struct _HybParAggOps           *paragg;
  const struct _HybKrylovOps           *krylov;
  const struct _HybCycleOps            *cycle;
  const struct _HybCommOps             *comm;
  const struct _HybLocalOps            *local;

  /* Copies of so many bytes between the host and the device are likely soon, or, 0, operations of any kind: what can be
     made ready is, by another thread. NULL on the host. */
  PetscErrorCode (*expect)(size_t bytes);
};

extern const HybBackend HybBackendHost;
extern const HybCSROps  HybCSROpsHost;

/* How kernels run, where it is not left to them: tuning.c has names, defaults and what is allowed */
typedef struct {
  PetscInt segsum_repair; /* 0: the device, 1: the CPU */
  PetscInt segsum_threads, segsum_items, segsum_blocks;
  PetscInt rowgroup_way; /* -1: chosen, 0: stream, 1: direct, 2: bins */
  PetscInt rowgroup_lanes, rowgroup_batch;
  PetscInt rowgroup_near; /* -1: chosen, 0: no, 1: yes */
  PetscInt rowstream_threads, rowstream_lanes, rowstream_blocks, rowstream_run;
  PetscInt block_lanes;
  PetscInt rowshape_words; /* 0: no, 1: yes */
  PetscInt transpose_offsets;
  PetscInt diagonal_fewest, diagonal_rows, diagonal_threads;
  PetscInt diagonal_runs; /* 0: no, 1: yes */
  PetscInt hash_lists, hash_places, masks_lanes, fused_plan;
  PetscInt product_parts;  /* 0: chosen */
  PetscInt tile_precision; /* 0: double, 1: half */
  PetscInt comm;           /* HybCommChoice */
  PetscInt comm_timeout, comm_segment, comm_after, comm_aware_min;
} HybTuning;

/* the ways of exchanges between devices, in the order of -mat_aijhybridgpu_comm's words */
typedef enum {
  HYB_COMM_AUTO,
  HYB_COMM_MPI,
  HYB_COMM_PEER,
  HYB_COMM_PETSC, /* for products with vectors: PETSc's own scatter */
  HYB_COMM_GPUAWARE
} HybCommChoice;

extern const HybTuning *HybTuningGet(void);
/* All from the process's options -mat_aijhybridgpu_NAME, which the caller reads, this room reading none; else what they
   are by default. PETSC_ERR_ARG_OUTOFRANGE names option, value and what is allowed. Once in a process, before the first
   use. */
typedef PetscErrorCode (*HybOptionGet)(const char option[], char value[], size_t length, PetscBool *set);
extern PetscErrorCode HybTuningRead(HybOptionGet get);
/* What one is by default, what is allowed, and what it is, each a text of at most so many characters */
extern PetscErrorCode HybTuningDescribe(const char *option, char value[], char allowed[], char text[], size_t length);
/* One of them, for tests and benchmarks: the option's name without its prefix, and its value as there; NULL: what it is
   by default. The same errors. */
extern PetscErrorCode HybTuningSet(const char *name, const char *value);

/* What the plugin hands to a device library. */
typedef struct {
  size_t size;         /* sizeof(HybServices) */
  int    device;       /* which card; -1: the current one; -2: this node's processes take its cards in turn */
  size_t memory_limit; /* believe the card no larger than this; 0: no limit */
  /* share of the card's free memory, divided by the processes on it, that managed memory may take */
  double managed_fraction;
  /* share of the host's memory, divided by this node's processes, that LOCKED memory may take */
  double locked_fraction;
  int    processes, rank; /* of this node, and the number of this one among them */
  int    dealt;           /* they have been dealt to the cards in turn; else they all share the one */
  int    mirror;          /* never use managed memory */
  /* called before every allocation and every CUDA call when not NULL: returning non-zero makes that call fail (fault
     injection) */
  int (*fault)(const char *what);
  const HybTuning *tuning; /* stays there; NULL: HybBackendLoad() sets it, a library that has none takes the defaults */
} HybServices;

/* The checksum of the headers that whoever calls it was built from (makefile): all structs that cross the seam are in
   them */
extern unsigned HybInterface(void);

typedef struct {
  int      petsc_major, petsc_minor, sizeof_int, sizeof_scalar, complex_scalar;
  unsigned interface;
  size_t   sizes[3]; /* zero: what libraries that know no checksum look at, and refuse */
} HybStamp;
#define HYB_STAMP                                                                                                                                 \
  {                                                                                                                                               \
    PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, (int)sizeof(PetscInt), (int)sizeof(PetscScalar), PetscDefined(USE_COMPLEX) ? 1 : 0, HybInterface(), \
    {                                                                                                                                             \
      0                                                                                                                                           \
    }                                                                                                                                             \
  }

/* the one symbol a device library exports: PETSC_ERR_LIB with a sentence when the stamp differs, PETSC_ERR_GPU without
   a usable device. message (length bytes) receives the reason instead of a PETSc error being raised; the return value
   is 0 on success. */
typedef int (*HybGetBackendFn)(const HybStamp *, const HybServices *, const HybBackend **, char *message, size_t length);
#define HYB_GET_BACKEND_SYMBOL "HybCUDAGetBackend"

/* opens a device library (absolute path, or NULL: cuda/libaijhybridgpu_cuda.so beside the object that holds this
   function); *backend is NULL and message says why when there is none that can be used. Opening one twice gives the
   same table. */
extern PetscErrorCode HybBackendLoad(const char *path, const HybServices *, const HybBackend **, char *message, size_t length);

/* methods: a NULL-terminated table of pointers to structs whose first member is the name. The one of this name, or
   PETSC_ERR_ARG_UNKNOWN_TYPE listing all; kind ("SpMV") is for the message. */
extern PetscErrorCode HybMethodFind(const void *methods, const char *kind, const char *backend, const char *name, const void **method);
/* keeps a method's name that is known, or "auto", which no name means too */
extern PetscErrorCode HybMethodName(const void *methods, const char *kind, const char *backend, const char *name, char kept[], size_t length);
/* once[] = the names of all[], NULL-terminated, each once; once has room for as many */
extern void HybMethodNames(const char *const *all, const char **once);

/* nnz as PetscInt, or PETSC_ERR_ARG_OUTOFRANGE naming the count, the limit and --with-64-bit-indices */
extern PetscErrorCode HybIntCast(PetscCount nnz, const char *what, PetscInt *);

/* Kernels go along rows by so many entries at a time at most, and look beyond a row's end before they stop: that must
   still be a PetscInt */
#define HYB_ENTRIES_BEYOND 4096
/* Before kernels go along the rows of a matrix: PETSC_ERR_ARG_OUTOFRANGE, naming the counts and --with-64-bit-indices,
   where nnz leaves no room for that. The host's loops need none. */
extern PetscErrorCode HybCheckEntries(const HybExec *, PetscCount nnz, const char *what);

HYB_EXTERN_C_END
#endif

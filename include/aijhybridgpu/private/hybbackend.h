/*
  hybbackend.h: all entry points of one backend, and how a device library is opened.
*/
#ifndef AIJHYBRIDGPU_HYBBACKEND_H
#define AIJHYBRIDGPU_HYBBACKEND_H

#include "hybarrays.h"

HYB_EXTERN_C_BEGIN

typedef enum {
  HYB_COPY_HOST_TO_DEVICE,
  HYB_COPY_DEVICE_TO_HOST,
  HYB_COPY_DEVICE_TO_DEVICE,
  HYB_COPY_HOST_TO_HOST /* by all cores of this process; not in stream order */
} HybCopyKind;

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
  PetscBool   device; /* true: the host cannot touch arrays in workspace memory */

  PetscErrorCode (*alloc)(const HybExec *, HybMem, size_t bytes, void **);
  PetscErrorCode (*free)(const HybExec *, HybMem, size_t bytes, void *);
  /* Copies in stream order. Host memory may be reused on return, and what is copied to it is there. */
  PetscErrorCode (*copy)(const HybExec *, void *dst, const void *src, size_t bytes, HybCopyKind);
  /* What is queued so far writes array, and nothing later does before it is freed: the next copy of it to the host does
     not wait for what was queued later. Of one array at a time. NULL on the host. */
  PetscErrorCode (*early)(const HybExec *, const void *array);
  /* A few numbers for the host, while the stream goes on: *memory is the host's and has HYB_LETTERS letters of
     HYB_LETTER_BYTES, which kernels write. post() says that the kernels queued so far write letter k; read() waits for
     these, but not for what was queued later. NULL on the host. */
  PetscErrorCode (*letters)(const HybExec *, void **memory);
  PetscErrorCode (*post)(const HybExec *, int k);
  PetscErrorCode (*read)(int k, void *dst, size_t bytes);
  PetscErrorCode (*zero)(const HybExec *, void *dst, size_t bytes);
  PetscErrorCode (*sync)(const HybExec *);
  /* Timer k < HYB_TIMERS: mark() sets its begin or its end in the stream; elapsed() gives the seconds between them, or,
     without wait, -1 while the stream has not passed the end. NULL on the host. */
  PetscErrorCode (*mark)(const HybExec *, int k, PetscBool end);
  PetscErrorCode (*elapsed)(int k, PetscBool wait, double *seconds);
  /* Touches fresh host memory with all cores of this process, so that one thread may then write it without page
     faults. */
  PetscErrorCode (*touch)(const HybExec *, void *, size_t bytes);
  /* Page-locks host memory (on), or unlocks it, for a few copies. The caller unlocks it before it is freed. */
  PetscErrorCode (*lock)(const HybExec *, void *, size_t bytes, PetscBool on);
  /* A hint for managed memory: move it to the device, or to the host. */
  PetscErrorCode (*prefetch)(const HybExec *, const void *, size_t bytes, PetscBool todevice);
  /* Fills all of the report. The call asks the card, which takes long. */
  PetscErrorCode (*memory)(HybMemoryReport *);
  /* Can this process take so many bytes more? Where it cannot, what is offered (HybSpare) has been given back, and the
     report is memory()'s. The card is not asked for a few: that takes as long as to send them. NULL on the host. */
  PetscErrorCode (*room)(const HybExec *, size_t bytes, HybMemoryReport *, PetscBool *fits);
  /* Fills the report without asking the card. restart: since begins anew. */
  PetscErrorCode (*usage)(HybMemoryReport *, PetscBool restart);
  /* Puts memory behind at least the first bytes of ptr (HYB_MEM_GROWING); *mapped = bytes that are there now. */
  PetscErrorCode (*grow)(const HybExec *, void *ptr, size_t bytes, size_t *mapped);
  /* Makes the card the calling thread's current one. Called before each operation, since a program may choose
     another. */
  PetscErrorCode (*enter)(void);
  /* From here on memory is allocated, cleared and freed in the order of this stream, whatever stream an arena was made
     with. Work that is queued on another stream ends first. Called when the program's current stream changes. NULL on a
     backend without streams. */
  PetscErrorCode (*use)(void *stream);

  const HybCSROps                      *csr;
  const struct _HybPlanOps             *plan;
  const struct _HybSpMVMethod *const   *spmv;    /* NULL-terminated, in the order of preference */
  const struct _HybColumnsOps          *columns; /* products with several vectors at once; NULL on the host */
  const struct _HybSpGEMMMethod *const *spgemm;
  const struct _HybPtAPMethod *const   *ptap;
  const struct _HybAggOps              *agg;
  const struct _HybParAggOps           *paragg;
  const struct _HybKrylovOps           *krylov;
  const struct _HybCycleOps            *cycle;
  const struct _HybCommOps             *comm;
  const struct _HybLocalOps            *local;

  /* The same backend, whose spmv and cycle are for single precision; all other tables are NULL. NULL: it has none, as
     where PetscReal is not double. */
  const HybBackend *single;

  /* Another thread prepares for copies of so many bytes between host and device, or, bytes = 0, for operations of any
     kind. NULL on the host. */
  PetscErrorCode (*expect)(size_t bytes);
  /* Is what is launched now recorded in a graph of the caller's (stream capture), which may be run again later? NULL on
     the host. */
  PetscBool (*recording)(const HybExec *);
};

extern const HybBackend HybBackendHost;

/* What the plugin hands to a device library. */
typedef struct {
  size_t size; /* sizeof(HybServices) */
  /* number of the card; -1: the current one; -2: the processes of this node take its cards in turn */
  int    device;
  size_t memory_limit; /* bytes of the card that may be used; 0: no limit */
  /* 0 to 1: share of the card's free memory that managed memory of all processes on the card may take */
  double managed_fraction;
  /* 0 to 1: share of the host's memory that LOCKED memory of all processes of the node may take */
  double locked_fraction;
  int    processes, rank; /* processes of this node, and the number of this one among them */
  int    dealt;           /* 1: the node's processes use its cards in turn; 0: they all share one card */
  int    mirror;          /* 1: never use managed memory */
  /* Fault injection. Called, if not NULL, before every allocation and every CUDA call; a result other than 0 makes that
     call fail. */
  int (*fault)(const char *what);
  /* valid as long as the library is loaded; NULL: HybBackendLoad() puts HybTuningGet() here */
  const struct _HybTuning *tuning;
} HybServices;

/* The checksum, made by the makefile, of the headers that the calling library was built from. All structs that plugin
   and device library share are in these headers. */
extern unsigned HybInterface(void);

typedef struct {
  int      petsc_major, petsc_minor, sizeof_int, sizeof_scalar, complex_scalar;
  unsigned interface;
  size_t   sizes[3]; /* zero; libraries from before the checksum read these and refuse */
} HybStamp;
#define HYB_STAMP                                                                                                                                 \
  {                                                                                                                                               \
    PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, (int)sizeof(PetscInt), (int)sizeof(PetscScalar), PetscDefined(USE_COMPLEX) ? 1 : 0, HybInterface(), \
    {                                                                                                                                             \
      0                                                                                                                                           \
    }                                                                                                                                             \
  }

/* The type of the one symbol that a device library exports. It returns 0, PETSC_ERR_LIB when the stamp differs, or
   PETSC_ERR_GPU without a usable device. message (length bytes) receives the reason; no PETSc error is raised. */
typedef int (*HybGetBackendFn)(const HybStamp *, const HybServices *, const HybBackend **, char *message, size_t length);
#define HYB_GET_BACKEND_SYMBOL "HybCUDAGetBackend"

/* Opens a device library: path is absolute, or NULL for cuda/libaijhybridgpu_cuda.so beside the object that holds this
   function. If it cannot be used, *backend is NULL and message says why. Opening one twice gives the same table. */
extern PetscErrorCode HybBackendLoad(const char *path, const HybServices *, const HybBackend **, char *message, size_t length);

/* *none: path NULL would find no library, or no driver. Where the driver is not in use yet its library is opened for a
   moment. */
extern PetscErrorCode HybBackendNone(PetscBool *none);

/* *method: the method of this name, or PETSC_ERR_ARG_UNKNOWN_TYPE, whose message lists all. methods is a
   NULL-terminated table of pointers to structs whose first member is the name; kind ("SpMV") is for the message. */
extern PetscErrorCode HybMethodFind(const void *methods, const char *kind, const char *backend, const char *name, const void **method);
/* Copies a known method's name, or "auto", to kept. name NULL or empty means "auto". */
extern PetscErrorCode HybMethodName(const void *methods, const char *kind, const char *backend, const char *name, char kept[], size_t length);
/* once[] = the names of all[], NULL-terminated, each once; once has room for as many */
extern void HybMethodNames(const char *const *all, const char **once);

HYB_EXTERN_C_END
#endif

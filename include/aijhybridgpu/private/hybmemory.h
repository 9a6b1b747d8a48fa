/*
  hybmemory.h: scalars, where memory lives, arenas, counters.

  The rule of ownership: memory is taken from an arena and belongs to it until the arena is reset or the block is moved
  to another arena. A function that fails leaves what it took in the arena; whoever owns the arena resets it. So no
  method needs an error path of its own, and nothing leaks when any allocation fails.
*/
#ifndef AIJHYBRIDGPU_HYBMEMORY_H
#define AIJHYBRIDGPU_HYBMEMORY_H

#include <petscsys.h>
#include "hybrelease.h"
#include <petscdevicetypes.h>
#include <stdint.h>

/* HybScalar is PetscScalar seen from C, and a type of the same layout in C++ (kernels). Scalars cross the seam by
   pointer. A few device sources are compiled a second time, with HYB_SINGLE, for a cycle in single precision
   (hybcycle.h): there HybScalar and HybScalarReal are those of single precision. HybScalarWide is PetscScalar's type
   everywhere, and HybScalarSingle that of single precision. */
#if defined(HYB_SINGLE)
typedef float HybScalarReal;
  #define HYB_PRECISION(name) name##Single
#else
typedef PetscReal     HybScalarReal;
  #define HYB_PRECISION(name) name
#endif
#if defined(__cplusplus) && defined(PETSC_USE_COMPLEX)
  #if defined(__CUDACC__)
    #include <cuda/std/complex>
typedef cuda::std::complex<HybScalarReal> HybScalar;
typedef cuda::std::complex<PetscReal>     HybScalarWide;
typedef cuda::std::complex<float>         HybScalarSingle;
  #else
    #include <complex>
typedef std::complex<HybScalarReal> HybScalar;
typedef std::complex<PetscReal>     HybScalarWide;
typedef std::complex<float>         HybScalarSingle;
  #endif
#else
  #if defined(HYB_SINGLE)
typedef HybScalarReal HybScalar;
  #else
typedef PetscScalar HybScalar;
  #endif
typedef PetscScalar   HybScalarWide;
typedef float         HybScalarSingle; /* for sources in C++ alone */
                               /* The neutral element of addition: x + HYB_NEUTRAL has the bits of x, also for x = -0 */
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

/* The end of a message about a card's memory: what the user can do. PETSc's own lines name options for the host
   alone. */
#define HYB_MEMORY_HINT ": destroy matrices and products that are not needed; -mat_aijhybridgpu_view_memory tells at the end what was held (-malloc_dump the host's alone), and with -mat_aijhybridgpu_tuning hash_places=0 products keep less"

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
  size_t   peak;  /* the most ever held since HybArenaOn() */
} HybArena;

/* one without memory yet */
static inline HybArena HybArenaOn(const HybExec *exec)
{
  HybArena arena = {*exec, NULL, 0, 0};

  return arena;
}

/* The error of work, which has been done, or else that of what was done after it in any case */
static inline PetscErrorCode HybErrorFirst(PetscErrorCode work, PetscErrorCode after)
{
  return work ? work : after;
}
/* Does the work, then what has to be done after it whether it failed or not; the error is the first one's */
#define HybCallBoth(work, after)                \
  do {                                          \
    const PetscErrorCode worked_ = (work);      \
                                                \
    PetscCall(HybErrorFirst(worked_, (after))); \
  } while (0)

/* The error of a call, of which nobody is told: another way serves */
static inline PetscErrorCode HybErrorQuiet(PetscErrorCode ierr)
{
  (void)PetscPopErrorHandler();
  return ierr;
}
#define HYB_QUIETLY(call) (PetscPushErrorHandler(PetscReturnErrorHandler, NULL) ? PETSC_ERR_LIB : HybErrorQuiet(call))

/* Asks the kernel for large pages behind a block of host memory. Arenas do so by themselves. */
#define HYB_LARGE_PAGES_MIN ((size_t)2 << 20) /* bytes; smaller blocks get ordinary pages */
extern void HybAskLargePages(void *ptr, size_t bytes);

/* *(void**)ptr = count*size bytes (at least one), not initialized. They are aligned to 64 bytes at least on a device
   and to 16 on the host. The product count*size is checked for overflow. */
extern PetscErrorCode HybArenaAlloc(HybArena *, HybMem, PetscCount count, size_t size, void *ptr);
/* the same, set to zero bytes in stream order */
extern PetscErrorCode HybArenaCalloc(HybArena *, HybMem, PetscCount count, size_t size, void *ptr);
/* frees the blocks that these pointers point to (stream-ordered on a device) and sets them to NULL; NULL is allowed */
#define HybArenaFree(arena, ...) HybArenaFreeAll(arena, __VA_ARGS__, (void *)NULL)
extern PetscErrorCode HybArenaFreeAll(HybArena *, ...);
/* Puts memory behind the first count*size bytes of ptr, which is HYB_MEM_GROWING: HybArenaAlloc() reserved addresses
   for the most entries that may ever be needed, which costs nothing. Earlier contents stay where they are. The call is
   not in stream order: queued work may go on using the array. Freeing the array waits for the stream. */
extern PetscErrorCode HybArenaGrow(HybArena *, const void *ptr, PetscCount count, size_t size);
/* hands the block that starts at ptr to another arena */
extern PetscErrorCode HybArenaMove(HybArena *from, HybArena *to, const void *ptr);
/* The kind of memory of the block that starts at ptr. Above this process's share of managed memory, HybArenaAlloc()
   gives DEVICE memory in place of MANAGED. */
extern PetscErrorCode HybArenaMemory(const HybArena *, const void *ptr, HybMem *);
/* frees all; the arena stays usable. Cannot fail half-way: it goes on after an error and reports the first one. */
extern PetscErrorCode HybArenaReset(HybArena *);
extern PetscErrorCode HybArenaResetBoth(HybArena *, HybArena *); /* the second one also when the first fails */

/* *bytes: how much this process may take for optional data, such as plans: a quarter of the card's free memory, divided
   by the processes on the card. The call asks the card, which takes long. */
extern PetscErrorCode HybMemorySpare(const HybExec *, size_t *bytes);

/* The memory of temporaries: the backend's workspace */
#define HYB_WORK(exec) ((exec)->backend->workspace)

/* Bytes, counted at each allocation and free. The host backend counts the bytes of its arenas as device bytes. */
typedef struct {
  size_t device_bytes, device_peak;   /* workspace and device arrays of the plugin */
  size_t managed_bytes, managed_peak; /* storage valid on both sides */
  size_t pinned_bytes, pinned_peak;   /* page-locked: buffers for copies, and LOCKED memory */
  size_t locked_bytes, locked_share;  /* LOCKED memory alone; locked_share: the most that this process may hold */
  /* the peak of device_bytes + managed_bytes since HybBackend.usage() was last called with restart */
  size_t since;
  size_t managed_share; /* the most managed bytes this process may hold */
  size_t managed_kept;  /* bytes of freed large arrays that are kept for later ones */
  /* of the device, cut to -mat_aijhybridgpu_memory_limit; HybBackend.usage() leaves 0 */
  size_t free_bytes, total_bytes;
  int    card, cards; /* number of the device, and devices that this process sees; both 0: the host */
  int    sharing;     /* processes that may use the device, including this one; 0: the host */
  char   bus[24];     /* PCI address of the device, the same on every process */
} HybMemoryReport;

/* Named counts of a method: rows per bin, growths, merge rounds, dirty tiles. -info shows them, tests assert them. */
#define HYB_MAX_COUNTERS 32
#define HYB_TIMERS       64 /* timers that a backend has: see HybBackend.mark() */
#define HYB_LETTERS      2  /* see HybBackend.letters() */
#define HYB_LETTER_BYTES 256
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

HYB_EXTERN_C_END
#endif

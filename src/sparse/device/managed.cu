/*
  managed.cu: large arrays in managed memory.

  CUDA's pool of managed memory makes the pages of what it grows by one after the other; cudaMallocManaged() and a
  prefetch to the device take a third of that time, and a first product takes less than either. So large arrays come
  from segments that are made in this way and kept: each is a row of blocks, in use or free, cut where a smaller one is
  wanted and joined again with free neighbours.

    take:      the smallest free block that is large enough, its rest stays free; none: a new segment of just this size
    give back: join with free neighbours of the same segment
    trim:      segments that are free as a whole go back to the card, which takes long and waits for all that runs

  Whatever is taken and given back is so in the order of one stream (HybDeviceOrder()), so a block can be used again at
  once; one that another stream gave back waits for the device. Segments never move and never join, so after other sizes
  have been asked for more may be kept than is in use. What lies idle is bounded therefore: before a new segment is
  made, free ones are given up if more than what is in use would lie idle.

  Sizes are rounded up to large pages. Smaller arrays stay in CUDA's pool, which puts several of them on a page.
*/
#include "hybdevicestate.h"

#if CUDART_VERSION >= 13000

struct Block {
  char        *at;
  size_t       bytes;
  bool         free, first; /* first: a segment begins here */
  bool         ordered;     /* free: given back in the order of `stream` */
  cudaStream_t stream;
  Block       *next; /* by address; neighbours of one segment lie side by side */
};
static Block       *blocks_;
static size_t       reserved_, used_;
static const size_t HybManagedPage = (size_t)2 << 20;
static const size_t HybManagedIdle = (size_t)256 << 20; /* so much may lie idle in any case */

static Block *NewBlock(char *at, size_t bytes, bool first, Block *next)
{
  Block *b = (Block *)malloc(sizeof(Block));

  if (b) *b = Block{at, bytes, true, first, true, nullptr, next};
  return b;
}

static bool Whole(const Block *b)
{
  return b->free && b->first && (!b->next || b->next->first);
}

/* segments without a block in use go back to the card */
static PetscErrorCode HybManagedTrim(void)
{
  PetscFunctionBegin;
  for (Block **p = &blocks_; *p;) {
    Block *b = *p;

    if (!Whole(b)) {
      p = &b->next;
      continue;
    }
    HybCallCUDA(cudaDeviceSynchronize()); /* what was freed in stream order is free only now */
    const cudaError_t err = cudaFree(b->at);
    if (err != cudaSuccess) PetscCall(HybDeviceError(err, "cudaFree", __FILE__, __LINE__));
    reserved_ -= b->bytes;
    *p = b->next;
    free(b);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a new segment; cudaErrorMemoryAllocation if the card has not the room, which managed memory would not notice before
   it is used */
static PetscErrorCode Grow(size_t bytes, cudaStream_t stream, Block **block, cudaError_t *err)
{
  size_t          f = 0, t = 0;
  void           *at = nullptr;
  cudaMemLocation where;
  Block         **p = &blocks_;

  PetscFunctionBegin;
  *block = nullptr;
  *err   = cudaErrorMemoryAllocation;
  if (reserved_ - used_ > used_ + bytes && reserved_ - used_ > HybManagedIdle) PetscCall(HybManagedTrim());
  HybCallCUDA(cudaMemGetInfo(&f, &t));
  if (bytes > f) PetscFunctionReturn(PETSC_SUCCESS);
  *err = HybDeviceFault("cudaMallocManaged") ? cudaErrorUnknown : cudaMallocManaged(&at, bytes);
  if (*err != cudaSuccess) PetscFunctionReturn(PETSC_SUCCESS);
  where.type = cudaMemLocationTypeDevice;
  where.id   = hybdevice_.device;
  *err       = HybDeviceFault("cudaMemPrefetchAsync") ? cudaErrorUnknown : cudaMemPrefetchAsync(at, bytes, where, 0, stream);
  while (*p && (*p)->at < (char *)at) p = &(*p)->next;
  if (*err == cudaSuccess) *block = NewBlock((char *)at, bytes, true, *p);
  if (!*block) {
    (void)cudaFree(at);
    if (*err == cudaSuccess) *err = cudaErrorUnknown;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *p               = *block;
  (*block)->stream = stream;
  reserved_ += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybManagedAlloc(size_t bytes, cudaStream_t stream, void **ptr, cudaError_t *err)
{
  Block *best = nullptr;

  PetscFunctionBegin;
  *ptr  = nullptr;
  *err  = cudaSuccess;
  bytes = (bytes + HybManagedPage - 1) / HybManagedPage * HybManagedPage;
  for (Block *b = blocks_; b; b = b->next)
    if (b->free && b->bytes >= bytes && (!best || b->bytes < best->bytes)) best = b;
  if (!best) {
    PetscCall(Grow(bytes, stream, &best, err));
    if (!best) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!best->ordered || best->stream != stream) HybCallCUDA(cudaDeviceSynchronize());
  if (best->bytes > bytes) {
    Block *rest = NewBlock(best->at + bytes, best->bytes - bytes, false, best->next);

    if (rest) { /* else it is too large a block */
      rest->ordered = best->ordered;
      rest->stream  = best->stream;
      best->next    = rest;
      best->bytes   = bytes;
    }
  }
  best->free = false;
  used_ += best->bytes;
  *ptr = best->at;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b and the free block behind it become one */
static void Join(Block *b)
{
  Block *n = b->next;

  if (!n || n->first || !b->free || !n->free) return;
  b->ordered = b->ordered && n->ordered && b->stream == n->stream;
  b->bytes += n->bytes;
  b->next = n->next;
  free(n);
}

bool HybManagedFree(void *ptr, cudaStream_t stream)
{
  Block *before = nullptr, *b = blocks_;

  while (b && b->at != ptr) {
    before = b;
    b      = b->next;
  }
  if (!b || b->free) return false;
  used_ -= b->bytes;
  b->free    = true;
  b->ordered = true;
  b->stream  = stream;
  Join(b);
  if (before && !b->first) Join(before);
  return true;
}

size_t HybManagedKept(void)
{
  return reserved_ - used_;
}

#else

static PetscErrorCode HybManagedTrim(void)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}
PetscErrorCode HybManagedAlloc(size_t, cudaStream_t, void **ptr, cudaError_t *err)
{
  PetscFunctionBegin;
  *ptr = nullptr;
  *err = cudaErrorNotSupported;
  PetscFunctionReturn(PETSC_SUCCESS);
}
bool HybManagedFree(void *, cudaStream_t)
{
  return false;
}
size_t HybManagedKept(void)
{
  return 0;
}
#endif

/* gives back to the card what is kept and not used */
PetscErrorCode HybDeviceTrim(cudaStream_t stream)
{
  PetscFunctionBegin;
  HybCallCUDA(cudaStreamSynchronize(stream)); /* what was freed in stream order is free only now */
  HybCallCUDA(cudaMemPoolTrimTo(hybdevice_.pool, 0));
  if (hybdevice_.managedpool) HybCallCUDA(cudaMemPoolTrimTo(hybdevice_.managedpool, 0));
  PetscCall(HybManagedTrim());
  PetscFunctionReturn(PETSC_SUCCESS);
}

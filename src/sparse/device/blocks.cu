/*
  blocks.cu: small blocks of device memory that were given back, for who asks next for as much.

  A first product, and a level of multigrid's setup, take and give back hundreds of arrays of some kilobytes, and each
  call of CUDA's pool costs three or four microseconds, whether it has such memory or not: a tenth of a product on
  several processes. Here it costs none: sizes are rounded up to four in each power of two, and what is given back stays
  on a stack of its size. All memory is taken and given back in the order of one stream (HybDeviceOrder()), so who gets
  a block again finds it free when his turn comes. Blocks of another stream go back to the pool.

  Never more than so many bytes are kept, and where memory runs out all of them go (HybDeviceTrim()).

  Off under the emulator, which else would not see that a block is read before it is written: but where
  HYB_DEVICE_BLOCKS says how many MiB may be kept, as one test does; 0 is for measurements.
*/
#include "hybdevicestate.h"
#include <cstdlib>

enum {
  BLOCKS_LEAST   = 9,  /* bits: 512 bytes */
  BLOCKS_MOST    = 22, /* 4 MiB */
  BLOCKS_CLASSES = 4 * (BLOCKS_MOST - BLOCKS_LEAST) + 1,
  BLOCKS_DEEP    = 32
};

#if defined(HYB_EMULATOR)
static const size_t BlocksLimit = 0;
#else
static const size_t BlocksLimit = (size_t)64 << 20;
#endif

static struct {
  bool         asked;
  size_t       limit, bytes;
  cudaStream_t stream;
  int          n[BLOCKS_CLASSES];
  void        *ptr[BLOCKS_CLASSES][BLOCKS_DEEP];
} blocks_;

/* the class whose size is the smallest that holds so many bytes; -1: too many */
static int BlocksClass(size_t bytes, size_t *size)
{
  int bits = BLOCKS_LEAST;

  *size = (size_t)1 << BLOCKS_LEAST;
  if (bytes <= *size) return 0;
  if (bytes > (size_t)1 << BLOCKS_MOST) return -1;
  while ((size_t)2 << bits < bytes) bits++; /* 2^bits < bytes <= 2^(bits+1) */
  const size_t base = (size_t)1 << bits, step = base / 4, k = (bytes - base + step - 1) / step;

  *size = base + k * step;
  return 4 * (bits - BLOCKS_LEAST) + (int)k;
}

size_t HybBlocksSize(size_t bytes)
{
  size_t size;

  if (!blocks_.asked) {
    const char *mib = getenv("HYB_DEVICE_BLOCKS");

    blocks_.limit = mib ? (size_t)atoi(mib) << 20 : BlocksLimit;
    blocks_.asked = true;
  }
  return blocks_.limit && BlocksClass(bytes, &size) >= 0 ? size : bytes;
}

size_t HybBlocksKept(void)
{
  return blocks_.bytes;
}

/* In the order of the stream that there is now: the one before may be gone. After an error too. */
PetscErrorCode HybBlocksTrim(cudaStream_t stream)
{
  cudaError_t err = cudaSuccess;

  PetscFunctionBegin;
  if (blocks_.bytes && stream != blocks_.stream) err = cudaDeviceSynchronize();
  for (int c = 0; c < BLOCKS_CLASSES; c++)
    while (blocks_.n[c]) {
      const cudaError_t e = cudaFreeAsync(blocks_.ptr[c][--blocks_.n[c]], stream);

      if (err == cudaSuccess) err = e;
    }
  blocks_.bytes = 0;
  PetscCall(HybDeviceError(err, "cudaFreeAsync", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybBlocksTake(size_t bytes, cudaStream_t stream, void **ptr)
{
  size_t    size;
  const int c = BlocksClass(bytes, &size);

  PetscFunctionBegin;
  *ptr = nullptr;
  if (!blocks_.bytes) PetscFunctionReturn(PETSC_SUCCESS);
  if (stream != blocks_.stream) PetscCall(HybBlocksTrim(stream));
  if (c < 0 || !blocks_.n[c]) PetscFunctionReturn(PETSC_SUCCESS);
  *ptr = blocks_.ptr[c][--blocks_.n[c]];
  blocks_.bytes -= size;
  PetscFunctionReturn(PETSC_SUCCESS);
}

bool HybBlocksKeep(size_t bytes, cudaStream_t stream, void *ptr)
{
  size_t    size;
  const int c = blocks_.limit ? BlocksClass(bytes, &size) : -1;

  if (c < 0 || blocks_.n[c] == BLOCKS_DEEP || size > blocks_.limit - blocks_.bytes || (blocks_.bytes && stream != blocks_.stream)) return false;
  blocks_.stream                 = stream;
  blocks_.ptr[c][blocks_.n[c]++] = ptr;
  blocks_.bytes += size;
  return true;
}

/*
  The large blocks of a matrix's rows, kept for the next matrix.

  A matrix that the device has made has three arrays with a number for each row on the host (row offsets, and twice the
  rows' lengths; in some releases the diagonal's places). As these are freed, glibc gives their pages back to the system
  where together they are more than 64 MiB, and those of larger blocks always. So the next matrix has fresh pages, and
  to clear them takes as long as the device needs for the matrix. A second solver makes the same matrices again, and so
  does every product of a loop.

    Begin(A)   notes A's blocks, if they are that large; makes room; PetscTrFree becomes a function of ours
    A goes     a block that was noted is kept, all else is freed
    End        PetscTrFree is PETSc's again
    Take       while a matrix is made: the smallest kept block that is large enough, and not much too large

  Blocks were PetscMalloc()'s and are PetscFree()'s: whoever gets one need not know. Kept are 8 blocks at most, and a
  64th of the host's memory or 2 GiB for all processes of this machine; the oldest ones go first, all of them where an
  allocation fails for want of memory, and in PetscFinalize(). The lengths' blocks are kept if narrow.c made them, which
  knows how large they are.

  Memory: what is kept. Work: none but looking at 8 numbers.
*/
#include "../../mat/impls/aijhybridgpu/storage/storage.h"
#include <unistd.h>

/* bytes of a block: with four of them, 64 MiB are free at once */
#define HYB_ROWBLOCKS_MIN  ((size_t)16 << 20)
#define HYB_ROWBLOCKS_MOST ((size_t)2 << 30)

static size_t HybRowBlocksLeast(void)
{
  return HybGlueState.options.rowblocksmin ? (size_t)HybGlueState.options.rowblocksmin : HYB_ROWBLOCKS_MIN;
}

static size_t HybRowBlocksMost(void)
{
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

  return pages > 0 && page > 0 ? PetscMin((size_t)pages * (size_t)page / 64, HYB_ROWBLOCKS_MOST) / (size_t)PetscMax(1, HybGlueState.processes) : 0;
}

/* the kept block k is no longer kept */
static void *HybRowBlocksRelease(int k)
{
  void *block = HybGlueState.rowblocks.kept[k].at;

  HybGlueState.rowblocks.bytes -= HybGlueState.rowblocks.kept[k].bytes;
  HybGlueState.rowblocks.n--;
  for (int r = k; r < HybGlueState.rowblocks.n; r++) HybGlueState.rowblocks.kept[r] = HybGlueState.rowblocks.kept[r + 1];
  return block;
}

void *HybRowBlocksTake(size_t bytes)
{
  int best = -1;

  for (int k = 0; k < HybGlueState.rowblocks.n; k++) {
    const size_t has = HybGlueState.rowblocks.kept[k].bytes;

    if (has >= bytes && has - bytes <= bytes / 8 && (best < 0 || has < HybGlueState.rowblocks.kept[best].bytes)) best = k;
  }
  return best < 0 ? NULL : HybRowBlocksRelease(best);
}

static PetscErrorCode HybRowBlocksFreeOldest(void)
{
  void *block = HybRowBlocksRelease(0);

  PetscFunctionBegin;
  PetscCall(PetscFree(block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowBlocksDrop(PetscBool *any)
{
  PetscFunctionBegin;
  *any = (PetscBool)(HybGlueState.rowblocks.n > 0);
  while (HybGlueState.rowblocks.n) PetscCall(HybRowBlocksFreeOldest());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybRowBlocksFree(void *block, int line, const char function[], const char file[])
{
  HybRowBlock *noted = HybGlueState.rowblocks.noted;

  for (int k = 0; block && k < HYB_ROWBLOCKS_NOTED; k++) {
    if (noted[k].at != block) continue;
    HybGlueState.rowblocks.kept[HybGlueState.rowblocks.n++] = noted[k];
    HybGlueState.rowblocks.bytes += noted[k].bytes;
    noted[k].at = NULL;
    return PETSC_SUCCESS;
  }
  return (*HybGlueState.rowblocks.free)(block, line, function, file);
}

/* i: A's row offsets, where they are of an arena of ours */
PetscErrorCode HybRowBlocksBegin(Mat A, const PetscInt *i, PetscBool narrow, PetscBool *began)
{
  const size_t bytes = (size_t)A->rmap->n * sizeof(PetscInt);
  HybRowBlock *noted = HybGlueState.rowblocks.noted;
  PetscInt    *ai, *aj;
  size_t       all = 0;
  int          n   = 1;

  PetscFunctionBegin;
  *began = PETSC_FALSE;
  if (!i || !A->data || !HybFrameKnown() || !HybGlueState.registered || !HybGlueState.device || HybGlueState.rowblocks.free || !HybMayWatch()) PetscFunctionReturn(PETSC_SUCCESS);
  if (bytes < HybRowBlocksLeast() || bytes > HybRowBlocksMost() / HYB_ROWBLOCKS_NOTED) PetscFunctionReturn(PETSC_SUCCESS);
  HybFramePattern(A, &ai, &aj);
  if (ai != i) PetscFunctionReturn(PETSC_SUCCESS); /* the parent has others by now */
  PetscCall(PetscMemzero(noted, sizeof(HybGlueState.rowblocks.noted)));
  noted[0] = (HybRowBlock){(void *)i, bytes + sizeof(PetscInt)};
  for (int k = 0; narrow && k < HybNarrowArrays(); k++) noted[n++] = (HybRowBlock){HybNarrowArray(A, k), bytes + HybGlueState.narrow.more};
  for (int k = 0; k < n; k++) all += noted[k].bytes;
  while (HybGlueState.rowblocks.n && (HybGlueState.rowblocks.n > HYB_ROWBLOCKS_KEPT - n || HybGlueState.rowblocks.bytes + all > HybRowBlocksMost())) PetscCall(HybRowBlocksFreeOldest());
  HybGlueState.rowblocks.free = PetscTrFree;
  PetscTrFree                 = HybRowBlocksFree;
  *began                      = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybRowBlocksEnd(void)
{
  PetscTrFree                 = HybGlueState.rowblocks.free;
  HybGlueState.rowblocks.free = NULL;
}

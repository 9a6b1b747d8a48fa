/* Memory that grows in place: what was there stays, the bytes are counted, too much is refused, every call failing in
   turn */
#include "hybtest.h"
#include <stdlib.h>

#define PART ((PetscCount)300000)

static HybArena arena;

/* entries lo <= k < hi become k */
static PetscErrorCode Write(PetscInt *x, PetscCount lo, PetscCount hi)
{
  PetscInt *h = (PetscInt *)RefAlloc(hi - lo, sizeof(PetscInt));

  PetscFunctionBegin;
  for (PetscCount k = lo; k < hi; k++) h[k - lo] = (PetscInt)k;
  PetscCall(HybTestExec()->backend->copy(HybTestExec(), x + lo, h, (size_t)(hi - lo) * sizeof(PetscInt), HYB_COPY_HOST_TO_DEVICE));
  free(h);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Holds(const PetscInt *x, PetscCount n)
{
  PetscInt *h = (PetscInt *)RefAlloc(n, sizeof(PetscInt));

  for (PetscCount k = 0; k < n; k++) h[k] = (PetscInt)k;
  HybTestSameInts(n, x, h);
  free(h);
}

static PetscErrorCode Run(void *ctx)
{
  PetscInt *x;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&arena, HYB_MEM_GROWING, 100 * PART, sizeof(PetscInt), &x));
  PetscCall(HybArenaGrow(&arena, x, PART, sizeof(PetscInt)));
  PetscCall(HybArenaGrow(&arena, x, 2 * PART, sizeof(PetscInt)));
  PetscCall(Write(x, 0, 2 * PART));
  PetscCall(HybTestExec()->backend->sync(HybTestExec()));
  PetscCall(HybArenaFree(&arena, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CleanUp(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  const HybBackend *backend = HybTestExec()->backend;
  const size_t      part    = (size_t)PART * sizeof(PetscInt);
  HybMemoryReport   before, during, after;
  PetscInt         *x, *y;
  void             *p = &p;
  size_t            held, mapped = 0;

  PetscFunctionBegin;
  arena = HybArenaOn(HybTestExec());
  HybTestBegin("an array grows twice and keeps what it holds");
  PetscCall(backend->memory(&before));
  HybTestCall(HybArenaAlloc(&arena, HYB_MEM_GROWING, 100 * PART, sizeof(PetscInt), &x));
  HybTestCheck(arena.bytes == 0, "%zu bytes are counted for addresses alone", arena.bytes);
  HybTestCall(HybArenaGrow(&arena, x, PART, sizeof(PetscInt)));
  HybTestCheck(arena.bytes >= part && arena.bytes < 8 * part, "%zu bytes are counted, %zu asked for", arena.bytes, part);
  PetscCall(Write(x, 0, PART));
  held = arena.bytes;
  HybTestCall(HybArenaGrow(&arena, x, PART / 2, sizeof(PetscInt)));
  HybTestCheck(arena.bytes == held, "%zu bytes after asking for less than there is, %zu before", arena.bytes, held);
  HybTestCall(HybArenaGrow(&arena, x, 3 * PART, sizeof(PetscInt)));
  HybTestCheck(arena.bytes >= 3 * part && arena.peak == arena.bytes, "%zu bytes are counted, at most %zu, %zu asked for", arena.bytes, arena.peak, 3 * part);
  PetscCall(Write(x, PART, 3 * PART));
  Holds(x, 3 * PART);
  PetscCall(backend->memory(&during));
  if (backend->device) HybTestCheck(during.device_bytes - before.device_bytes == arena.bytes, "the device counts %zu bytes more, the arena %zu", during.device_bytes - before.device_bytes, arena.bytes);
  HybTestBegin("two of them, freed in the order of their allocation");
  HybTestCall(HybArenaAlloc(&arena, HYB_MEM_GROWING, PART, sizeof(PetscInt), &y));
  HybTestCall(HybArenaGrow(&arena, y, PART, sizeof(PetscInt)));
  PetscCall(Write(y, 0, PART));
  HybTestCall(HybArenaFree(&arena, &x));
  Holds(y, PART);
  HybTestCall(HybArenaFree(&arena, &y));
  HybTestCheck(arena.bytes == 0, "%zu bytes are counted when all is freed", arena.bytes);
  PetscCall(backend->memory(&after));
  HybTestCheck(after.device_bytes == before.device_bytes, "the device counts %zu bytes, %zu before", after.device_bytes, before.device_bytes);
  HybTestBegin("what does not grow");
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(HybTestExec()), 10, sizeof(PetscInt), &x));
  HybTestCallFails(PETSC_ERR_PLIB, HybArenaGrow(&arena, x, 5, sizeof(PetscInt)));
  HybTestCallFails(PETSC_ERR_PLIB, HybArenaGrow(&arena, p, 5, sizeof(PetscInt)));
  HybTestCall(HybArenaAlloc(&arena, HYB_MEM_GROWING, 10, sizeof(PetscInt), &x));
  HybTestCallFails(PETSC_ERR_MEM, HybArenaGrow(&arena, x, PETSC_MAX_INT, (size_t)PTRDIFF_MAX));
  if (backend->device) { /* more than was reserved */
    HybTestCallFails(PETSC_ERR_PLIB, HybArenaGrow(&arena, x, 1000 * PART, sizeof(PetscInt)));
    HybTestCallFails(PETSC_ERR_PLIB, backend->grow(HybTestExec(), p, 10, &mapped));
  }
  PetscCall(HybArenaReset(&arena));
  HybTestBegin("every allocation and call failing in turn");
  HybTestFaults(Run, CleanUp, NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

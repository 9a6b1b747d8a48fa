/*
  Large managed arrays (device/managed.cu): in any order of taking and giving back they keep what was written and never
  lie over one another, memory is used again rather than made, pieces join again, what lies idle is bounded and goes
  back to the card where that runs out, and a block that another stream gave back is safe to use.
*/
#include "hybtest.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MIB   ((size_t)1 << 20)
#define SLOTS 10

static const HybExec *exec;

static size_t Kept(void)
{
  HybMemoryReport r;

  HybTestCall(exec->backend->usage(&r, PETSC_FALSE));
  return r.managed_kept;
}

static char *Take(const HybExec *x, size_t bytes)
{
  void *p = NULL;

  HybTestCall(exec->backend->alloc(x, HYB_MEM_MANAGED, bytes, &p));
  return (char *)p;
}

static void Give(const HybExec *x, size_t bytes, char *p)
{
  HybTestCall(exec->backend->free(x, HYB_MEM_MANAGED, bytes, p));
}

/* its first and last bytes, by way of the device */
static void Mark(char *p, size_t bytes, int id)
{
  char mark[64];

  memset(mark, id, sizeof(mark));
  HybTestCall(exec->backend->copy(exec, p, mark, sizeof(mark), HYB_COPY_HOST_TO_DEVICE));
  HybTestCall(exec->backend->copy(exec, p + bytes - sizeof(mark), mark, sizeof(mark), HYB_COPY_HOST_TO_DEVICE));
}

static void Marked(const char *p, size_t bytes, int id)
{
  char   mark[64], there[64];
  size_t at[] = {0, bytes - sizeof(mark)};

  memset(mark, id, sizeof(mark));
  for (int k = 0; k < 2; k++) {
    HybTestCall(exec->backend->copy(exec, there, p + at[k], sizeof(there), HYB_COPY_DEVICE_TO_HOST));
    HybTestCall(exec->backend->sync(exec));
    HybTestCheck(!memcmp(mark, there, sizeof(mark)), "the array of %zu bytes holds %d instead of %d at %zu", bytes, there[0], id, at[k]);
  }
}

static void Parts(void)
{
  char *p, *q, *s;

  HybTestBegin("memory is used again, in parts and as a whole");
  p = Take(exec, 64 * MIB);
  HybTestCheck(Kept() == 0, "%zu bytes lie idle", Kept());
  Give(exec, 64 * MIB, p);
  HybTestCheck(Kept() == 64 * MIB, "%zu bytes lie idle", Kept());
  p = Take(exec, 30 * MIB + 1); /* whole pages of 2 MiB: 32 */
  q = Take(exec, 32 * MIB);
  HybTestCheck(Kept() == 0 && (p < q ? q - p : p - q) == (ptrdiff_t)(32 * MIB), "%zu bytes lie idle, %p and %p", Kept(), (void *)p, (void *)q);
  Mark(p, 30 * MIB + 1, 1);
  Mark(q, 32 * MIB, 2);
  Marked(p, 30 * MIB + 1, 1);
  Marked(q, 32 * MIB, 2);
  Give(exec, 30 * MIB + 1, p);
  s = Take(exec, 8 * MIB);
  HybTestCheck(Kept() == 24 * MIB, "%zu bytes lie idle", Kept());
  Marked(q, 32 * MIB, 2);
  Give(exec, 32 * MIB, q);
  Give(exec, 8 * MIB, s);
  HybTestCheck(Kept() == 64 * MIB, "%zu bytes lie idle", Kept());
  p = Take(exec, 64 * MIB);
  HybTestCheck(Kept() == 0, "the parts did not join: %zu bytes lie idle", Kept());
  Give(exec, 64 * MIB, p);

  HybTestBegin("small arrays are another pool's");
  p = Take(exec, 8 * MIB - 1);
  HybTestCheck(Kept() == 64 * MIB, "%zu bytes lie idle", Kept());
  Give(exec, 8 * MIB - 1, p);

  HybTestBegin("what lies idle is bounded");
  p = Take(exec, 150 * MIB);
  q = Take(exec, 160 * MIB);
  Give(exec, 150 * MIB, p);
  Give(exec, 160 * MIB, q);
  HybTestCheck(Kept() == 374 * MIB, "%zu bytes lie idle", Kept()); /* nothing was asked for since */
  p = Take(exec, 170 * MIB);
  HybTestCheck(Kept() == 0, "%zu bytes lie idle", Kept());
  Give(exec, 170 * MIB, p);
}

/* many arrays, random sizes and order; before: what was in use at the beginning */
static PetscErrorCode Many(const HybMemoryReport *before)
{
  HybMemoryReport r;
  struct {
    char  *p;
    size_t bytes;
  } slot[SLOTS];
  size_t most = 0, used = 0;

  PetscFunctionBegin;
  memset(slot, 0, sizeof(slot));
  HybTestBegin("many arrays, random sizes and order");
  for (int step = 0; step < 120; step++) {
    const int k = (int)HybTestRandomInt(0, SLOTS);

    if (slot[k].p) {
      Marked(slot[k].p, slot[k].bytes, k + 1);
      Give(exec, slot[k].bytes, slot[k].p);
      used -= slot[k].bytes;
      slot[k].p = NULL;
    } else {
      slot[k].bytes = 6 * MIB + (size_t)HybTestRandomInt(0, 30) * MIB + (size_t)HybTestRandomInt(0, 4096);
      slot[k].p     = Take(exec, slot[k].bytes);
      if (!slot[k].p) break;
      Mark(slot[k].p, slot[k].bytes, k + 1);
      used += slot[k].bytes;
      if (most < used) most = used;
    }
    PetscCall(exec->backend->usage(&r, PETSC_FALSE));
    HybTestCheck(r.managed_bytes - before->managed_bytes == used, "%zu bytes are counted, %zu are in use", r.managed_bytes - before->managed_bytes, used);
    HybTestCheck(r.managed_kept <= 2 * most + 256 * MIB, "%zu bytes lie idle, %zu were in use at most", r.managed_kept, most);
  }
  for (int k = 0; k < SLOTS; k++)
    if (slot[k].p) {
      Marked(slot[k].p, slot[k].bytes, k + 1);
      Give(exec, slot[k].bytes, slot[k].p);
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where the card has no more; a real one is never filled */
static PetscErrorCode Full(void)
{
  HybMemoryReport r;
  HybExec         x[2];
  char            name[PETSC_MAX_PATH_LEN] = "";
  void           *library, *device = NULL, *(*create)(void);
  size_t          rest, kept;
  char           *p;

  PetscFunctionBegin;
  HybTestBegin("idle memory goes back to a card that has no more");
  kept = Kept();
  HybTestCheck(kept > 64 * MIB, "%zu bytes lie idle", kept);
  PetscCall(exec->backend->memory(&r));
  rest = r.free_bytes - kept + 32 * MIB; /* more than the card has without them */
  HybTestCall(exec->backend->alloc(exec, HYB_MEM_DEVICE, rest, &device));
  HybTestCheck(Kept() == 0, "%zu bytes lie idle", Kept());
  HybTestBegin("and where that does not help the error names the bytes");
  HybTestCallFails(PETSC_ERR_MEM, exec->backend->alloc(exec, HYB_MEM_MANAGED, kept, (void **)&p));
  HybTestCheck(!p, "%p was given", (void *)p);
  HybTestCall(exec->backend->free(exec, HYB_MEM_DEVICE, rest, device));

  HybTestBegin("a block that another stream gave back");
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", name, sizeof(name), NULL));
  library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (HybTestCheck(library, "%s", dlerror())) {
    *(void **)&create = dlsym(library, "HybEmulatorStream");
    x[0] = x[1] = *exec;
    x[1].stream = (*create)();
    for (int k = 0; k < 6; k++) {
      p = Take(&x[k % 2], (size_t)(40 - 4 * k) * MIB);
      HybTestCall(exec->backend->zero(&x[k % 2], p, (size_t)(40 - 4 * k) * MIB));
      Give(&x[k % 2], (size_t)(40 - 4 * k) * MIB, p);
    }
    HybTestCheck(Kept() == 40 * MIB, "%zu bytes lie idle", Kept());
    dlclose(library);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  HybMemoryReport before;

  PetscFunctionBegin;
  exec = HybTestExec();
  if (!exec->backend->device) {
    HybTestBegin("large managed arrays");
    HybTestSkip("the host has no managed memory");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(exec->backend->memory(&before));
  if (before.managed_share < 1200 * MIB) {
    HybTestBegin("large managed arrays");
    HybTestSkip("%zu bytes of managed memory are too few", before.managed_share);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  Parts();
  PetscCall(Many(&before));
  if (!strcmp(exec->backend->name, "emulated")) PetscCall(Full());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

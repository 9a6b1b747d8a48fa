/*
  arena.c: allocations that live and die together, counters, and the one narrowing of a count to PetscInt.

  An arena is a list of blocks, newest first. The list nodes are host memory of PetscMalloc(), the blocks come from the
  backend. Arenas hold few blocks (tens, rarely hundreds), and blocks are mostly freed soon after they were taken, so a
  list is searched as fast as anything.
*/
#include <aijhybridgpu/private/hyb.h>
#include <stdarg.h>
#if defined(__linux__)
  #include <sys/mman.h>
#endif

struct _HybBlock {
  HybBlock next;
  void    *ptr;
  size_t   bytes; /* HYB_MEM_GROWING: those that have memory */
  HybMem   mem;
};

/* The arrays of a matrix are fresh pages, and touching them 4 KiB at a time costs as much as computing what goes
   there */
void HybAskLargePages(void *ptr, size_t bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const uintptr_t page = 4096, first = ((uintptr_t)ptr + page - 1) / page * page, last = ((uintptr_t)ptr + bytes) / page * page;

  /* refusing it is no error */
  if (bytes >= HYB_LARGE_PAGES_MIN) (void)madvise((void *)first, last - first, MADV_HUGEPAGE);
#endif
}

PetscErrorCode HybArenaAlloc(HybArena *arena, HybMem mem, PetscCount count, size_t size, void *ptr)
{
  const HybBackend *backend = arena->exec.backend;
  HybBlock          block;
  size_t            bytes;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  *(void **)ptr = NULL;
  PetscCheck(count >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Cannot allocate a negative number of entries, %" PetscCount_FMT, count);
  PetscCheck(!count || size <= (size_t)PTRDIFF_MAX / (size_t)count, PETSC_COMM_SELF, PETSC_ERR_MEM, "Cannot allocate %" PetscCount_FMT " entries of %zu bytes: more than the address space holds", count, size);
  bytes = (size_t)count * size;
  if (!bytes) bytes = 1;
  /* above the share: device memory, which its owner mirrors (HybArenaMemory() tells) */
  if (mem == HYB_MEM_MANAGED && backend->usage) {
    HybMemoryReport r;

    PetscCall(backend->usage(&r, PETSC_FALSE));
    if (r.managed_bytes > r.managed_share || bytes > r.managed_share - r.managed_bytes) mem = HYB_MEM_DEVICE;
  }
  PetscCall(PetscMalloc(sizeof(*block), &block));
  block->ptr   = NULL;
  block->bytes = mem == HYB_MEM_GROWING ? 0 : bytes;
  block->mem   = mem;
  ierr         = backend->alloc(&arena->exec, mem, bytes, &block->ptr);
  if (ierr) {
    (void)PetscFree(block);
    PetscCall(ierr);
  }
  if (mem == HYB_MEM_HOST || !backend->device) HybAskLargePages(block->ptr, bytes);
  block->next   = arena->blocks;
  arena->blocks = block;
  arena->bytes += block->bytes;
  if (arena->bytes > arena->peak) arena->peak = arena->bytes;
  *(void **)ptr = block->ptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybArenaCalloc(HybArena *arena, HybMem mem, PetscCount count, size_t size, void *ptr)
{
  const HybBackend *backend = arena->exec.backend;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(arena, mem, count, size, ptr));
  /* host memory of a device backend is the host's to clear */
  if (mem == HYB_MEM_HOST)
    PetscCall(PetscMemzero(*(void **)ptr, (size_t)count * size));
  else
    PetscCall(backend->zero(&arena->exec, *(void **)ptr, (size_t)count * size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static HybBlock *HybArenaFind(HybArena *arena, const void *ptr)
{
  HybBlock *link = &arena->blocks;

  while (*link && (*link)->ptr != ptr) link = &(*link)->next;
  return link;
}

static PetscErrorCode HybArenaFreeOne(HybArena *arena, void **p)
{
  HybBlock *link, block;

  PetscFunctionBegin;
  if (!*p) PetscFunctionReturn(PETSC_SUCCESS);
  link = HybArenaFind(arena, *p);
  PetscCheck(*link, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The block at %p does not belong to this arena", *p);
  block = *link;
  *link = block->next;
  arena->bytes -= block->bytes;
  *p = NULL;
  HybCallBoth(arena->exec.backend->free(&arena->exec, block->mem, block->bytes, block->ptr), PetscFree(block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybArenaFreeAll(HybArena *arena, ...)
{
  PetscErrorCode ierr = PETSC_SUCCESS;
  va_list        pointers;
  void          *p;

  PetscFunctionBegin;
  va_start(pointers, arena);
  while (!ierr && (p = va_arg(pointers, void *))) ierr = HybArenaFreeOne(arena, (void **)p);
  va_end(pointers);
  PetscFunctionReturn(ierr);
}

PetscErrorCode HybArenaGrow(HybArena *arena, const void *ptr, PetscCount count, size_t size)
{
  HybBlock *link = HybArenaFind(arena, ptr), block = *link;
  size_t    mapped;

  PetscFunctionBegin;
  PetscCheck(block && block->mem == HYB_MEM_GROWING, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The block at %p is none of this arena's that grow", ptr);
  PetscCheck(count >= 0 && (!count || size <= (size_t)PTRDIFF_MAX / (size_t)count), PETSC_COMM_SELF, PETSC_ERR_MEM, "Cannot grow to %" PetscCount_FMT " entries of %zu bytes", count, size);
  mapped = block->bytes;
  PetscCall(arena->exec.backend->grow(&arena->exec, block->ptr, (size_t)count * size, &mapped));
  arena->bytes += mapped - block->bytes;
  block->bytes = mapped;
  if (arena->bytes > arena->peak) arena->peak = arena->bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybArenaMove(HybArena *from, HybArena *to, const void *ptr)
{
  HybBlock *link, block;

  PetscFunctionBegin;
  if (!ptr || from == to) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(from->exec.backend == to->exec.backend, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Blocks do not move between backends");
  link = HybArenaFind(from, ptr);
  PetscCheck(*link, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The block at %p does not belong to this arena", ptr);
  block = *link;
  *link = block->next;
  from->bytes -= block->bytes;
  block->next = to->blocks;
  to->blocks  = block;
  to->bytes += block->bytes;
  if (to->bytes > to->peak) to->peak = to->bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybArenaMemory(const HybArena *arena, const void *ptr, HybMem *mem)
{
  HybBlock b = arena->blocks;

  PetscFunctionBegin;
  while (b && b->ptr != ptr) b = b->next;
  PetscCheck(b, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The block at %p does not belong to this arena", ptr);
  *mem = b->mem;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybArenaReset(HybArena *arena)
{
  PetscErrorCode first = PETSC_SUCCESS, ierr;

  PetscFunctionBegin;
  while (arena->blocks) {
    HybBlock block = arena->blocks;

    arena->blocks = block->next;
    ierr          = arena->exec.backend->free(&arena->exec, block->mem, block->bytes, block->ptr);
    if (!first) first = ierr;
    ierr = PetscFree(block);
    if (!first) first = ierr;
  }
  arena->bytes = 0;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybArenaResetBoth(HybArena *one, HybArena *other)
{
  PetscFunctionBegin;
  HybCallBoth(HybArenaReset(one), HybArenaReset(other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMemorySpare(const HybExec *exec, size_t *bytes)
{
  HybMemoryReport report;

  PetscFunctionBegin;
  PetscCall(exec->backend->memory(&report));
  *bytes = report.free_bytes / 4 / (size_t)PetscMax(1, report.sharing);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* names are literals, but each file has its own: the text decides */
static PetscInt HybCountersFind(const HybCounters *counters, const char *name)
{
  PetscInt k;

  for (k = 0; k < counters->n; k++) {
    if (counters->name[k] == name || !strcmp(counters->name[k], name)) break;
  }
  return k;
}

static PetscErrorCode HybCountersSlot(HybCounters *counters, const char *name, PetscInt *slot)
{
  PetscFunctionBegin;
  *slot = HybCountersFind(counters, name);
  if (*slot == counters->n) {
    PetscCheck(counters->n < HYB_MAX_COUNTERS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No room for the counter %s: %d are in use", name, HYB_MAX_COUNTERS);
    counters->name[*slot]  = name;
    counters->value[*slot] = 0;
    counters->n++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCountersAdd(HybCounters *counters, const char *name, PetscCount value)
{
  PetscInt slot;

  PetscFunctionBegin;
  if (!counters) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCountersSlot(counters, name, &slot));
  counters->value[slot] += value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCountersSet(HybCounters *counters, const char *name, PetscCount value)
{
  PetscInt slot;

  PetscFunctionBegin;
  if (!counters) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCountersSlot(counters, name, &slot));
  counters->value[slot] = value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscCount HybCountersGet(const HybCounters *counters, const char *name)
{
  PetscInt k = HybCountersFind(counters, name);

  return k < counters->n ? counters->value[k] : 0;
}

PetscErrorCode HybCountersDescribe(const HybCounters *counters, char text[], size_t length)
{
  char one[128];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < counters->n; k++) {
    PetscCall(PetscSNPrintf(one, sizeof(one), ", %s %" PetscInt64_FMT, counters->name[k], (PetscInt64)counters->value[k]));
    PetscCall(PetscStrlcat(text, one, length));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybIntCast(PetscCount nnz, const char *what, PetscInt *n)
{
  PetscFunctionBegin;
  *n = 0;
  PetscCheck(nnz >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s: a negative number of nonzeros, %" PetscCount_FMT, what, nnz);
  PetscCheck(nnz <= (PetscCount)PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s has %" PetscCount_FMT " nonzeros, more than the %" PetscInt_FMT " that %zu-bit indices can count: configure PETSc using --with-64-bit-indices", what, nnz, (PetscInt)PETSC_MAX_INT, 8 * sizeof(PetscInt));
  *n = (PetscInt)nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCheckEntries(const HybExec *exec, PetscCount nnz, const char *what)
{
  PetscFunctionBegin;
  PetscCheck(!exec->backend->device || nnz <= (PetscCount)PETSC_MAX_INT - HYB_ENTRIES_BEYOND, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s has %" PetscCount_FMT " nonzeros: kernels need the last %d of the %" PetscInt_FMT " that %zu-bit indices can count for themselves; configure PETSc using --with-64-bit-indices", what, nnz, HYB_ENTRIES_BEYOND, (PetscInt)PETSC_MAX_INT, 8 * sizeof(PetscInt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

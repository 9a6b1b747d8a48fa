/*
  The device room: libraries that cannot be loaded, stamps that differ, memory of every kind and its limits, copies
  larger than the staging buffers, a stream that changes.
*/
#define _GNU_SOURCE
#include "hybtest.h"
#include <aijhybridgpu/private/hybcomm.h>
#include <aijhybridgpu/private/hybproduct.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const HybExec *exec;
static HybArena       arena;

static void Load(const char *what, const char *path, const char *words)
{
  HybServices       services;
  const HybBackend *backend       = &HybBackendHost;
  char              message[1024] = "";

  HybTestBegin("%s", what);
  memset(&services, 0, sizeof(services));
  services.size = sizeof(services);
  HybTestCall(HybBackendLoad(path, &services, &backend, message, sizeof(message)));
  HybTestCheck(!backend, "it was loaded");
  HybTestCheck(strstr(message, words), "the message is: %s", message);
}

/* the library's own word on a stamp */
static void Stamp(HybGetBackendFn get, HybStamp stamp, const char *words)
{
  HybServices       services;
  const HybBackend *backend      = NULL;
  char              message[512] = "";

  memset(&services, 0, sizeof(services));
  HybTestCheck((*get)(&stamp, &services, &backend, message, sizeof(message)) == PETSC_ERR_LIB && !backend, "it was taken");
  HybTestCheck(strstr(message, words), "the message is: %s", message);
}

/* Lists of a few thousand numbers go to the device one after the other, and the host waits for none of them; more of
   them than there are buffers, and all arrive */
static PetscErrorCode ManyCopies(void)
{
  const int          most = 30, few = 8, n = 4099;
  unsigned long long waits = HybTestWaits();
  PetscInt          *there[30], back[4099];

  PetscFunctionBegin;
  HybTestBegin("short copies to the device, which the host does not wait for");
  for (int k = 0; k < most; k++) {
    for (int c = 0; c < n; c++) back[c] = 7 * c + k;
    PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), n, sizeof(PetscInt), &there[k]));
    HybTestCall(exec->backend->copy(exec, there[k], back, sizeof(back), HYB_COPY_HOST_TO_DEVICE));
    if (k == few - 1) HybTestCheck(strcmp(exec->backend->name, "emulated") || HybTestWaits() == waits, "%llu waits for %d copies", HybTestWaits() - waits, few);
  }
  for (int k = 0; k < most; k++) {
    int wrong = 0;

    HybTestCall(exec->backend->copy(exec, back, there[k], sizeof(back), HYB_COPY_DEVICE_TO_HOST));
    HybTestCall(exec->backend->sync(exec));
    for (int c = 0; c < n; c++) wrong += back[c] != 7 * c + k;
    HybTestCheck(!wrong, "%d numbers of copy %d are wrong", wrong, k);
  }
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n bytes there and back, as managed memory too */
static PetscErrorCode Copies(HybMem mem, size_t n, size_t offset)
{
  char *h = (char *)malloc(n + offset), *back = (char *)malloc(n + offset), *there, *second;

  PetscFunctionBegin;
  for (size_t k = 0; k < n + offset; k++) h[k] = (char)(k * 2654435761u >> 13);
  memcpy(back, h, n + offset);
  PetscCall(HybArenaAlloc(&arena, mem, (PetscCount)n, 1, &there));
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), (PetscCount)n, 1, &second));
  HybTestCall(exec->backend->copy(exec, there, back + offset, n, HYB_COPY_HOST_TO_DEVICE));
  memset(back, 0, n + offset); /* the host's memory is its own again */
  if (mem == HYB_MEM_MANAGED) HybTestCall(exec->backend->prefetch(exec, there, n, PETSC_TRUE));
  HybTestCall(exec->backend->copy(exec, second, there, n, HYB_COPY_DEVICE_TO_DEVICE));
  if (mem == HYB_MEM_MANAGED) HybTestCall(exec->backend->prefetch(exec, there, n, PETSC_FALSE));
  HybTestCall(exec->backend->copy(exec, back + offset, second, n, HYB_COPY_DEVICE_TO_HOST));
  HybTestCheck(!memcmp(h + offset, back + offset, n), "other bytes came back");
  if (mem == HYB_MEM_MANAGED) {
    HybTestCall(exec->backend->sync(exec));
    HybTestCheck(!memcmp(h + offset, there, n), "the host finds other bytes");
  }
  HybTestCall(exec->backend->zero(exec, there, n));
  HybTestCall(exec->backend->copy(exec, back + offset, there, n, HYB_COPY_DEVICE_TO_HOST));
  HybTestCheck(!back[offset] && !back[offset + n - 1], "it is not zero");
  HybTestCall(exec->backend->copy(exec, back + offset, h + offset, n, HYB_COPY_HOST_TO_HOST));
  HybTestCheck(!memcmp(h + offset, back + offset, n), "the host's copy of it is other bytes");
  PetscCall(HybArenaReset(&arena));
  RefFree(h, back);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An array that is whole early: its copy to the host does not wait for what was queued later, the next one does, and
   one of memory that was freed and taken again is not that array */
static PetscErrorCode Early(HybMem mem, size_t n)
{
  const HybBackend *b   = exec->backend;
  const PetscBool   emu = (PetscBool)!strcmp(b->name, "emulated");
  char             *there, *later, *again, *sent = (char *)RefAlloc((PetscCount)n, 1), *back = (char *)RefAlloc((PetscCount)n, 1);
  double            seconds;

  PetscFunctionBegin;
  for (size_t k = 0; k < n; k++) sent[k] = (char)(k * 7 + 3);
  PetscCall(HybArenaAlloc(&arena, mem, (PetscCount)n, 1, &there));
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), (PetscCount)n, 1, &later));
  for (int round = 0; round < 2; round++) {
    HybTestCall(b->copy(exec, there, sent, n, HYB_COPY_HOST_TO_DEVICE));
    HybTestCall(b->early(exec, there));
    HybTestCall(b->mark(exec, 0, PETSC_FALSE));
    HybTestCall(b->zero(exec, later, n));
    HybTestCall(b->mark(exec, 0, PETSC_TRUE));
    memset(back, 0, n);
    HybTestCall(b->copy(exec, back, there, n, HYB_COPY_DEVICE_TO_HOST));
    HybTestCheck(!memcmp(back, sent, n), "other bytes came back");
    HybTestCall(b->elapsed(0, PETSC_FALSE, &seconds));
    HybTestCheck(!emu || seconds < 0, "it has waited for what was queued later");
    HybTestCall(b->copy(exec, back, there, n, HYB_COPY_DEVICE_TO_HOST));
    HybTestCall(b->elapsed(0, PETSC_FALSE, &seconds));
    HybTestCheck(seconds >= 0, "the next copy has not");
  }
  HybTestCall(b->early(exec, there));
  PetscCall(HybArenaFree(&arena, &there));
  PetscCall(HybArenaAlloc(&arena, mem, (PetscCount)n, 1, &again));
  HybTestCall(b->zero(exec, again, n));
  memset(back, 1, n);
  HybTestCall(b->copy(exec, back, again, n, HYB_COPY_DEVICE_TO_HOST));
  memset(sent, 0, n);
  HybTestCheck(!memcmp(back, sent, n), "other bytes came back from memory that was taken again");
  PetscCall(HybArenaReset(&arena));
  free(sent);
  free(back);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n bytes to the device from memory of the host that a device can read by itself: they are read when the copy
   returns */
static PetscErrorCode CopiesFrom(HybMem mem, size_t n)
{
  char *from, *there, *back = (char *)malloc(n);

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&arena, mem, (PetscCount)n, 1, &from));
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), (PetscCount)n, 1, &there));
  HybTestCall(exec->backend->sync(exec)); /* before the host touches what is new */
  for (size_t k = 0; k < n; k++) from[k] = (char)(k * 2654435761u >> 13);
  HybTestCall(exec->backend->copy(exec, there, from, n, HYB_COPY_HOST_TO_DEVICE));
  memset(from, 0, n);
  HybTestCall(exec->backend->copy(exec, back, there, n, HYB_COPY_DEVICE_TO_HOST));
  for (size_t k = 0; k < n; k++) from[k] = (char)(k * 2654435761u >> 13);
  HybTestCheck(!memcmp(back, from, n), "%zu bytes of memory %d were read after they had changed", n, (int)mem);
  PetscCall(HybArenaReset(&arena));
  free(back);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n bytes of page-locked memory: to the device and back, what is counted of it, and every call failing in turn */
static PetscErrorCode LockedRun(void *ctx)
{
  const PetscCount n     = *(PetscCount *)ctx;
  PetscCount       wrong = 0;
  char            *locked, *there;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&arena, HYB_MEM_LOCKED, n, 1, &locked));
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), n, 1, &there));
  for (PetscCount k = 0; k < n; k++) locked[k] = (char)(k * 2654435761u >> 11);
  PetscCall(exec->backend->copy(exec, there, locked, (size_t)n, HYB_COPY_HOST_TO_DEVICE));
  memset(locked, 0, (size_t)n); /* the copy has ended */
  PetscCall(exec->backend->copy(exec, locked, there, (size_t)n, HYB_COPY_DEVICE_TO_HOST));
  for (PetscCount k = 0; k < n; k++) wrong += locked[k] != (char)(k * 2654435761u >> 11);
  HybTestCheck(!wrong, "%td other bytes came back", wrong);
  PetscCall(HybArenaFree(&arena, &locked));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LockedCleanUp(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Locked(PetscCount n)
{
  const PetscBool kept = (PetscBool)(n <= (PetscCount)16 << 20); /* when it is given back, for the next of its size */
  HybMemoryReport before, during, after;
  char           *p, *q;

  PetscFunctionBegin;
  HybTestBegin("%td bytes of page-locked memory", n);
  PetscCall(LockedRun(&n));
  PetscCall(LockedCleanUp(NULL));
  HybTestFaults(LockedRun, LockedCleanUp, &n);
  if (exec->backend->device) {
    PetscCall(exec->backend->usage(&before, PETSC_FALSE)); /* with the buffers */
    HybTestCheck(!before.locked_bytes, "%zu bytes are left of the failures", before.locked_bytes);
    HybTestCall(HybArenaAlloc(&arena, HYB_MEM_LOCKED, n, 1, &p));
    HybTestCheck(!((size_t)p & 4095), "it begins within a page");
    HybTestCheck(kept || (!p[0] && !p[n - 1 - (n - 1) % 4096]), "its pages were not touched");
    PetscCall(exec->backend->usage(&during, PETSC_FALSE));
    HybTestCheck(during.locked_bytes == before.locked_bytes + (size_t)n && during.pinned_bytes >= before.pinned_bytes + (kept ? 0 : (size_t)n) && during.pinned_bytes >= (size_t)n && during.pinned_peak >= during.pinned_bytes, "%zu and %zu bytes are counted", during.locked_bytes, during.pinned_bytes);
    HybTestCallFails(PETSC_ERR_MEM, exec->backend->alloc(exec, HYB_MEM_LOCKED, during.locked_share - (size_t)n + 1, (void **)&q));
    PetscCall(exec->backend->usage(&during, PETSC_FALSE)); /* what was kept has been released for it */
    PetscCall(HybArenaReset(&arena));
    PetscCall(exec->backend->usage(&after, PETSC_FALSE));
    HybTestCheck(after.locked_bytes == before.locked_bytes && after.pinned_bytes == during.pinned_bytes - (kept ? 0 : (size_t)n) && after.pinned_peak == during.pinned_peak, "%zu and %zu bytes are counted afterwards", after.locked_bytes, after.pinned_bytes);
    if (kept) {
      HybTestCall(HybArenaAlloc(&arena, HYB_MEM_LOCKED, n, 1, &q));
      HybTestCheck(p == q, "a block that was given back was registered anew");
      HybTestCall(HybArenaAlloc(&arena, HYB_MEM_LOCKED, n, 1, &p));
      HybTestCheck(p != q, "a block that is in use was given away again");
      PetscCall(HybArenaReset(&arena));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Small blocks are pieces of slabs of 2 MiB, which are given back when all of their pieces are and the room is
   wanted */
static PetscErrorCode LockedPieces(void)
{
  enum {
    N = 700
  };
  HybMemoryReport before, during, after;
  unsigned       *p[N], *q;
  int             wrong = 0, apart = 0;

  PetscFunctionBegin;
  if (!exec->backend->device) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("%d small blocks of page-locked memory", (int)N);
  PetscCall(exec->backend->usage(&before, PETSC_FALSE));
  /* what is kept goes */
  HybTestCallFails(PETSC_ERR_MEM, exec->backend->alloc(exec, HYB_MEM_LOCKED, before.locked_share - before.locked_bytes + 1, (void **)&q));
  PetscCall(exec->backend->usage(&before, PETSC_FALSE));
  for (unsigned k = 0; k < N; k++) {
    const size_t bytes = k % 7 ? 256 : 9000;

    PetscCall(exec->backend->alloc(exec, HYB_MEM_LOCKED, bytes, (void **)&p[k]));
    for (size_t l = 0; l < bytes / sizeof(unsigned); l++) p[k][l] = k;
  }
  for (unsigned k = 0; k < N; k++) {
    const size_t bytes = k % 7 ? 256 : 9000;

    for (size_t l = 0; l < bytes / sizeof(unsigned); l++) wrong += p[k][l] != k;
    apart += ((size_t)p[k] & 4095) != 0;
  }
  HybTestCheck(!wrong && !apart, "%d words were another block's, %d blocks begin within a page", wrong, apart);
  PetscCall(exec->backend->usage(&during, PETSC_FALSE));
  HybTestCheck(during.pinned_bytes - before.pinned_bytes == (size_t)4 << 20, "%zu bytes were locked for two slabs' pieces", during.pinned_bytes - before.pinned_bytes);
  for (unsigned k = 0; k < N; k += 2) PetscCall(exec->backend->free(exec, HYB_MEM_LOCKED, k % 7 ? 256 : 9000, p[k]));
  HybTestCall(exec->backend->alloc(exec, HYB_MEM_LOCKED, 256, (void **)&q));
  HybTestCheck(q == p[0], "the first free page was not taken");
  for (unsigned k = 1; k < N; k += 2) {
    for (size_t l = 0; l < 256 / sizeof(unsigned); l++) wrong += p[k][l] != k;
    PetscCall(exec->backend->free(exec, HYB_MEM_LOCKED, k % 7 ? 256 : 9000, p[k]));
  }
  HybTestCheck(!wrong, "%d words were written meanwhile", wrong);
  HybTestCallFails(PETSC_ERR_MEM, exec->backend->alloc(exec, HYB_MEM_LOCKED, during.locked_share, (void **)&p[0]));
  PetscCall(exec->backend->usage(&after, PETSC_FALSE));
  HybTestCheck(after.pinned_bytes - before.pinned_bytes == (size_t)2 << 20, "%zu bytes are locked for one piece", after.pinned_bytes - before.pinned_bytes);
  PetscCall(exec->backend->free(exec, HYB_MEM_LOCKED, 256, q));
  PetscCall(exec->backend->usage(&after, PETSC_FALSE));
  HybTestCheck(after.locked_bytes == before.locked_bytes, "%zu bytes are still in use", after.locked_bytes - before.locked_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A host that locks small blocks and no slab: a block that is kept serves, or one of its own. most: sets how many bytes
   it locks at once. */
static PetscErrorCode LockedNoSlab(void (*most)(size_t))
{
  HybMemoryReport before, after;
  char           *p, *q, *r;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  HybTestBegin("page-locked memory where no slab can be had");
  PetscCall(exec->backend->usage(&before, PETSC_FALSE));
  HybTestCallFails(PETSC_ERR_MEM, exec->backend->alloc(exec, HYB_MEM_LOCKED, before.locked_share - before.locked_bytes + 1, (void **)&q));
  PetscCall(exec->backend->usage(&before, PETSC_FALSE)); /* nothing is kept */
  (*most)(65536);
  ierr = exec->backend->alloc(exec, HYB_MEM_LOCKED, 256, (void **)&p);
  if (HybTestCheck(!ierr, "error %d", (int)ierr)) {
    HybTestCallFails(PETSC_ERR_MEM, exec->backend->alloc(exec, HYB_MEM_LOCKED, 131072, (void **)&q));
    PetscCall(exec->backend->usage(&after, PETSC_FALSE));
    HybTestCheck(after.pinned_bytes == before.pinned_bytes + 4096 && after.locked_bytes == before.locked_bytes + 256, "%zu bytes more are locked", after.pinned_bytes - before.pinned_bytes);
    for (int k = 0; k < 256; k++) p[k] = (char)k;
    HybTestCall(HybArenaAlloc(&arena, HYB_WORK(exec), 256, 1, &r));
    HybTestCall(exec->backend->copy(exec, r, p, 256, HYB_COPY_HOST_TO_DEVICE));
    HybTestCall(exec->backend->sync(exec)); /* no error of the slab's is left for others to find */
    HybTestCall(HybArenaReset(&arena));
    HybTestCall(exec->backend->free(exec, HYB_MEM_LOCKED, 256, p));
    HybTestCall(exec->backend->alloc(exec, HYB_MEM_LOCKED, 200, (void **)&q));
    HybTestCheck(p == q, "a kept block was not taken");
    HybTestCall(exec->backend->free(exec, HYB_MEM_LOCKED, 200, q));
    (*most)(SIZE_MAX);
    HybTestCall(exec->backend->alloc(exec, HYB_MEM_LOCKED, 256, (void **)&q));
    HybTestCheck(p == q, "a kept block was not taken before a slab was made");
    HybTestCall(exec->backend->alloc(exec, HYB_MEM_LOCKED, 256, (void **)&r));
    PetscCall(exec->backend->usage(&after, PETSC_FALSE));
    HybTestCheck(after.pinned_bytes == before.pinned_bytes + 4096 + ((size_t)2 << 20), "%zu bytes more are locked, with a slab", after.pinned_bytes - before.pinned_bytes);
    HybTestCall(exec->backend->free(exec, HYB_MEM_LOCKED, 256, q));
    HybTestCall(exec->backend->free(exec, HYB_MEM_LOCKED, 256, r));
    HybTestCallFails(PETSC_ERR_PLIB, exec->backend->free(exec, HYB_MEM_LOCKED, 256, r)); /* it is nobody's */
    PetscCall(exec->backend->usage(&after, PETSC_FALSE));
    HybTestCheck(after.locked_bytes == before.locked_bytes, "%zu bytes are still in use", after.locked_bytes - before.locked_bytes);
  }
  (*most)(SIZE_MAX);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory of somebody else's: touched, and page-locked for one copy */
static PetscErrorCode LockRun(void *ctx)
{
  const size_t   n     = *(size_t *)ctx;
  size_t         wrong = 0;
  char          *h, *there;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&arena, HYB_MEM_HOST, (PetscCount)n, 1, &h));
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), (PetscCount)n, 1, &there));
  PetscCall(exec->backend->touch(exec, h, n));
  for (size_t k = 0; k < n; k++) h[k] = (char)(k * 2654435761u >> 12);
  PetscCall(exec->backend->lock(exec, h, n, PETSC_TRUE));
  ierr = exec->backend->copy(exec, there, h, n, HYB_COPY_HOST_TO_DEVICE);
  memset(h, 0, n);
  if (!ierr) ierr = exec->backend->copy(exec, h, there, n, HYB_COPY_DEVICE_TO_HOST);
  if (!ierr) ierr = exec->backend->sync(exec);
  ierr = HybErrorFirst(ierr, exec->backend->lock(exec, h, n, PETSC_FALSE));
  PetscCall(ierr);
  for (size_t k = 0; k < n; k++) wrong += h[k] != (char)(k * 2654435761u >> 12);
  HybTestCheck(!wrong, "%zu other bytes came back", wrong);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Lock(size_t n)
{
  HybMemoryReport before, after;

  PetscFunctionBegin;
  HybTestBegin("%zu bytes, locked for a copy", n);
  PetscCall(LockRun(&n)); /* the buffers for other copies are there now */
  PetscCall(LockedCleanUp(NULL));
  PetscCall(exec->backend->usage(&before, PETSC_FALSE));
  HybTestFaults(LockRun, LockedCleanUp, &n);
  PetscCall(exec->backend->usage(&after, PETSC_FALSE));
  HybTestCheck(after.pinned_bytes == before.pinned_bytes, "%zu page-locked bytes before, %zu after", before.pinned_bytes, after.pinned_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A program whose current stream changes between the symbolic phase and the numeric ones, which plan then */
static PetscErrorCode Phases(const HybExec x[2], const char *method, RefMat *A, const HybCSR *a)
{
  RefMat     C;
  HybArena   out;
  HybCSR     c;
  HybProduct product;

  PetscFunctionBegin;
  HybTestBegin("the stream changes between the phases of %s", method);
  HybTestCall(exec->backend->use(x[0].stream));
  out = HybArenaOn(&x[0]);
  HybTestCall(HybProductCreate(&x[0], HYB_PRODUCT_PTAP, method, 0, &product));
  HybTestCall(HybProductSymbolic(product, a, a, NULL, &out, &c));
  for (int k = 1; k < 4; k++) {
    HybTestCall(exec->backend->use(x[k % 2].stream));
    HybProductSetStream(product, x[k % 2].stream);
    HybTestCall(HybProductNumeric(product, a, a, NULL, &c));
    HybTestCall(exec->backend->sync(&x[k % 2]));
  }
  HybTestCall(exec->backend->use(x[0].stream));
  RefPtAP(A, A, &C);
  HybTestSameMatrix(&c, &C, 4);
  HybTestCall(HybProductDestroy(&product));
  HybTestCall(HybArenaReset(&out));
  RefMatDestroy(&C);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A program whose current stream changes: arenas and a product made with one go on with another. Only the emulated
   device lends a second stream, and ends the program where a use does not wait for an allocation, or a free not for a
   use. */
static PetscErrorCode Streams(void *(*create)(void))
{
  RefMat     A, C;
  HybExec    x[2], side;
  HybArena   operands, out, early;
  HybCSR     a, c, other;
  HybProduct product;
  char      *p, *q, back[5000];

  PetscFunctionBegin;
  HybTestBegin("the stream changes");
  HybTestMatRandom(60, 60, 0, 9, &A);
  x[0] = x[1] = *exec;
  x[1].stream = (*create)();
  HybTestCheck(x[1].stream, "no second stream");
  PetscCall(HybTestArenas(&x[0], &operands, &out, &early));
  HybTestCall(HybTestUpload(&operands, &A.csr, &a));
  HybTestRandomize(&A);
  HybTestCall(HybTestUpload(&operands, &A.csr, &other));
  HybTestCall(exec->backend->use(x[0].stream));
  HybTestCall(HybArenaAlloc(&early, HYB_MEM_DEVICE, 5000, 1, &p));
  HybTestCall(exec->backend->zero(&x[0], p, 5000));
  /* memory is cleared in the order of its own stream, for which work beside that would not wait */
  HybTestCall(exec->backend->comm->fork(&x[0], &side));
  HybTestCallFails(PETSC_ERR_PLIB, exec->backend->zero(&side, p, 5000));
  HybTestCall(exec->backend->comm->join(&x[0]));
  HybTestCall(HybProductCreate(&x[0], HYB_PRODUCT_AB, "auto", 0, &product));
  HybTestCall(HybProductSymbolic(product, &a, &a, NULL, &out, &c));
  HybTestCall(HybProductNumeric(product, &a, &a, NULL, &c));
  for (int k = 1; k < 4; k++) { /* there, back, there */
    const HybExec *now = &x[k % 2];

    HybTestCall(exec->backend->use(now->stream));
    HybProductSetStream(product, now->stream);
    HybTestCall(HybArenaAlloc(&early, HYB_MEM_DEVICE, 5000, 1, &q)); /* by an arena of the first stream */
    HybTestCall(exec->backend->copy(now, q, p, 5000, HYB_COPY_DEVICE_TO_DEVICE));
    /* which the product must see */
    HybTestCall(exec->backend->copy(now, a.a, other.a, sizeof(PetscScalar) * (size_t)a.nnz, HYB_COPY_DEVICE_TO_DEVICE));
    HybTestCall(HybProductNumeric(product, &a, &a, NULL, &c));
    HybTestCall(exec->backend->copy(now, back, q, 5000, HYB_COPY_DEVICE_TO_HOST));
    HybTestCall(exec->backend->sync(now));
    HybTestCheck(!back[0] && !back[4999], "other bytes came back");
    HybTestCall(exec->backend->zero(now, q, 5000));
    HybTestCall(HybArenaFree(&early, &q));
  }
  HybTestCall(exec->backend->use(x[0].stream));
  RefSpGEMM(&A, &A, &C);
  HybTestSameMatrix(&c, &C, 4);
  HybTestCall(HybProductDestroy(&product));
  {
    static const char *const methods[] = {"auto", "hash", "binned", "rowmerge", "segmerge", "fused"};

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(methods); k++) PetscCall(Phases(x, methods[k], &A, &other));
  }
  HybTestCall(HybTestReset(&early, &out, &operands));
  RefMatDestroy(&A, &C);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Timers(void)
{
  const HybBackend *b     = exec->backend;
  const size_t      bytes = (size_t)1 << 22;
  double            first, seconds, least = 1;
  void             *p = NULL;

  PetscFunctionBegin;
  HybTestBegin("timers: a stream's time between two marks, read with and without a wait");
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, b->mark(exec, HYB_TIMERS, PETSC_FALSE));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, b->mark(exec, -1, PETSC_TRUE));
  HybTestCall(b->mark(exec, 3, PETSC_FALSE));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, b->elapsed(3, PETSC_TRUE, &seconds)); /* its end was never marked */
  HybTestCall(b->mark(exec, 3, PETSC_TRUE));
  HybTestCall(b->elapsed(3, PETSC_TRUE, &first));
  HybTestCheck(first >= 0 && first < 1, "%g s for nothing", first);
  HybTestCall(HybArenaAlloc(&arena, HYB_WORK(exec), (PetscCount)bytes, 1, &p));
  for (int k = 0; k < HYB_TIMERS; k++) {
    HybTestCall(b->mark(exec, k, PETSC_FALSE));
    for (int i = 0; i < (k == 3 ? 200 : 1); i++) HybTestCall(b->zero(exec, p, bytes));
    HybTestCall(b->mark(exec, k, PETSC_TRUE));
  }
  do HybTestCall(b->elapsed(0, PETSC_FALSE, &seconds));
  while (seconds < 0 && !b->sync(exec)); /* what is not waited for may be under way, and is not after a wait */
  HybTestCheck(seconds > 0 && seconds < 1, "%g s for one", seconds);
  HybTestCall(b->elapsed(3, PETSC_TRUE, &first));
  for (int k = 4; k < HYB_TIMERS; k++) {
    HybTestCall(b->elapsed(k, PETSC_TRUE, &seconds));
    HybTestCheck(seconds > 0, "timer %d: %g s", k, seconds);
    least = PetscMin(least, seconds);
  }
  HybTestCheck(10 * least < first, "%g s for one, where 200 take %g", least, first);
  HybTestCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Arenas(void)
{
  HybMem   where;
  char    *p, *q;
  HybArena other = HybArenaOn(exec);

  PetscFunctionBegin;
  HybTestBegin("arenas: negative counts, overflow, blocks of others, moves, a reset twice");
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybArenaAlloc(&arena, HYB_WORK(exec), -1, 8, &p));
  HybTestCallFails(PETSC_ERR_MEM, HybArenaAlloc(&arena, HYB_WORK(exec), PTRDIFF_MAX / 2, 8, &p));
  HybTestCall(HybArenaAlloc(&arena, HYB_WORK(exec), 100, 8, &p));
  HybTestCall(HybArenaAlloc(&arena, HYB_MEM_HOST, 100, 8, &q));
  memset(q, 1, 800);
  HybTestCall(HybArenaMemory(&arena, q, &where));
  HybTestCheck(where == HYB_MEM_HOST, "memory of kind %d", (int)where);
  HybTestCallFails(PETSC_ERR_PLIB, HybArenaMemory(&other, q, &where));
  HybTestCallFails(PETSC_ERR_PLIB, HybArenaMove(&other, &arena, q));
  HybTestCall(HybArenaMove(&arena, &other, p));
  HybTestCheck(arena.bytes == 800 && other.bytes == 800 && other.peak == 800, "%zu and %zu bytes", arena.bytes, other.bytes);
  HybTestCall(HybArenaMove(&arena, &arena, q));
  HybTestCall(HybArenaMove(&arena, &other, NULL));
  HybTestCallFails(PETSC_ERR_PLIB, HybArenaFree(&arena, &p));
  HybTestCall(HybArenaFree(&other, &p));
  HybTestCheck(!p, "the pointer is left");
  HybTestCall(HybArenaCalloc(&other, HYB_MEM_HOST, 10, 1, &p));
  HybTestCheck(!p[0] && !p[9], "it is not zero");
  HybTestCall(HybTestReset(&arena, &other, &other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a library that was built for another PETSc, and what the emulator alone can do: streams, memory that is not locked */
static PetscErrorCode Stamps(void)
{
  char  name[PETSC_MAX_PATH_LEN] = "";
  void *library;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", name, sizeof(name), NULL));
  library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  HybTestBegin("a library's stamp");
  if (HybTestCheck(library, "%s", dlerror())) {
    HybStamp        good = HYB_STAMP, stamp;
    HybGetBackendFn get;

    *(void **)&get    = dlsym(library, HYB_GET_BACKEND_SYMBOL);
    stamp             = good;
    stamp.petsc_minor = good.petsc_minor + 1;
    Stamp(get, stamp, "it was built for PETSc");
    stamp            = good;
    stamp.sizeof_int = 12 - good.sizeof_int;
    Stamp(get, stamp, "PetscInt of");
    stamp                = good;
    stamp.complex_scalar = !good.complex_scalar;
    Stamp(get, stamp, "PetscScalar");
    stamp           = good;
    stamp.interface = good.interface + 1;
    Stamp(get, stamp, "different sources of petsc-aijhybridgpu");
    /* libraries from before there was a checksum look at sizes there */
    HybTestCheck(offsetof(HybStamp, sizes) == 24 && sizeof(good.sizes) == 3 * sizeof(size_t) && !good.sizes[0] && !good.sizes[1] && !good.sizes[2], "an old library would not refuse");
    if (!strcmp(exec->backend->name, "emulated")) {
      void *(*create)(void);
      void (*most)(size_t);

      *(void **)&create = dlsym(library, "HybEmulatorStream");
      if (HybTestCheck(create, "%s", dlerror())) PetscCall(Streams(create));
      *(void **)&most = dlsym(library, "HybEmulatorLockMost");
      if (HybTestCheck(most, "%s", dlerror())) PetscCall(LockedNoSlab(most));
    }
    dlclose(library);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  static const size_t sizes[] = {1, 4097, (size_t)256 << 10, ((size_t)1 << 20) + 3, (size_t)4 << 20, ((size_t)4 << 20) + 1, ((size_t)9 << 20) + 5, ((size_t)66 << 20) + 3};
  HybMemoryReport     r;
  PetscErrorCode      ierr;
  char               *p;

  PetscFunctionBegin;
  exec  = HybTestExec();
  arena = HybArenaOn(exec);
  Load("a library that is not there", "/nonexistent/library.so", "There is no device library /nonexistent/library.so");
  Load("no library beside this program", NULL, "There is no device library");
  Load("a file that is no library", "/etc/passwd", "cannot be opened");
  {
    Dl_info info;

    if (dladdr((void *)(size_t)&PetscMallocValidate, &info) && info.dli_fname[0] == '/') Load("a library of something else", info.dli_fname, "is no device library");
  }
  HybTestBegin("copies from page-locked and managed memory");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes) - 1; k++) {
    PetscCall(CopiesFrom(HYB_MEM_LOCKED, sizes[k]));
    PetscCall(CopiesFrom(HYB_MEM_MANAGED, sizes[k]));
  }
  PetscCall(Arenas());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
    HybTestBegin("%zu bytes there and back", sizes[k]);
    PetscCall(Copies(HYB_WORK(exec), sizes[k], k % 3));
    if (!exec->backend->device) continue;
    PetscCall(exec->backend->memory(&r));
    if (!r.managed_share) continue;
    HybTestBegin("%zu bytes there and back, managed", sizes[k]);
    PetscCall(Copies(HYB_MEM_MANAGED, sizes[k], k % 3));
  }
  PetscCall(Locked(5));
  PetscCall(Locked(((PetscCount)3 << 20) + 7));
  PetscCall(Locked((PetscCount)17 << 20));
  PetscCall(LockedPieces());
  PetscCall(Lock(100));
  PetscCall(Lock(((size_t)5 << 20) + 3));
  HybTestBegin("what memory says");
  PetscCall(exec->backend->memory(&r));
  HybTestCheck(!exec->backend->device || (r.total_bytes > 0 && r.free_bytes <= r.total_bytes && r.device_peak > 0), "%zu of %zu bytes free, at most %zu used", r.free_bytes, r.total_bytes, r.device_peak);
  if (!exec->backend->device) PetscFunctionReturn(PETSC_SUCCESS);
  if (r.managed_share) {
    HybTestBegin("beyond the share of managed memory comes device memory");
    HybTestCallFails(PETSC_ERR_MEM, exec->backend->alloc(exec, HYB_MEM_MANAGED, r.managed_share + 1, (void **)&p));
  }
  HybTestBegin("what one of several processes may take for what it could do without");
  for (int processes = 1; processes < 4; processes += 2) {
    const size_t free = (size_t)24 << 20;
    size_t       spare;

    HybTestServe(processes, free);
    HybTestCall(exec->backend->memory(&r));
    HybTestCall(HybMemorySpare(exec, &spare));
    HybTestCheck(r.sharing == processes && r.free_bytes == free && spare == free / 4 / (size_t)processes, "%d processes, %zu bytes free, %zu spare", r.sharing, r.free_bytes, spare);
  }
  HybTestServe(0, 0);
  PetscCall(exec->backend->memory(&r));
  if (!strcmp(exec->backend->name, "emulated")) { /* a real card is never filled */
    HybTestBegin("more than the card has");
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybArenaAlloc(&arena, HYB_MEM_DEVICE, (PetscCount)r.total_bytes, 2, &p);
    PetscCall(PetscPopErrorHandler());
    HybTestCheck(ierr == PETSC_ERR_MEM, "error %d", (int)ierr);
    HybTestCall(HybArenaAlloc(&arena, HYB_MEM_DEVICE, 1000, 2, &p));
    PetscCall(HybArenaReset(&arena));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
    HybTestBegin("%zu bytes that are whole early", sizes[k]);
    PetscCall(Early(HYB_WORK(exec), sizes[k]));
    if (r.managed_share) PetscCall(Early(HYB_MEM_MANAGED, sizes[k]));
  }
  PetscCall(ManyCopies());
  PetscCall(Timers());
  PetscCall(Stamps());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

/*
  PETSc's allocator, watched: the one place that puts a function of ours into PetscTrMalloc, as PetscMallocSetDRAM()
  does.

  Watchers lie one over the other, the last one on top. Each is called in place of the one below it, to which it passes
  on by HybMallocBelow(), with more bytes if it likes, and what it got may be noted. The lowest is PETSc's own. With
  thread safety the allocator is not ours to change: whoever would watch asks HybMayWatch() before.
*/
#include "parent.h"

static PetscErrorCode HybWatchedMalloc(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  HybWatcher *w = HybGlueState.allocator.top;

  return (*w->malloc)(w, bytes, clear, line, function, file, array);
}

PetscErrorCode HybMallocBelow(HybWatcher *w, size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  if (w->below) return (*w->below->malloc)(w->below, bytes, clear, line, function, file, array);
  return (*HybGlueState.allocator.before)(bytes, clear, line, function, file, array);
}

void HybWatchBegin(HybWatcher *w)
{
  w->below = HybGlueState.allocator.top;
  if (!w->below) {
    HybGlueState.allocator.before = PetscTrMalloc;
    PetscTrMalloc                 = HybWatchedMalloc;
  }
  HybGlueState.allocator.top = w;
}

/* the one that began last */
void HybWatchEnd(void)
{
  HybGlueState.allocator.top = HybGlueState.allocator.top->below;
  if (!HybGlueState.allocator.top) PetscTrMalloc = HybGlueState.allocator.before;
}

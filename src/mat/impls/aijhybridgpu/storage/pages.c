/*
  Pages of the host for a result, made while the device computes it.

  AIJ's arrays of a number for each row come as fresh pages from the C library, and the system makes each page at its
  first touch: a virtual machine 0.6 to 2 ms for each 2 MiB, a quarter of what the first product of a process took on
  four cards. Here the symbolic phase goes on meanwhile:

    Ahead: blocks as large as the arrays come from malloc(); a thread touches them and ends
    Ready: when the thread has ended the blocks are given back, and stay in the C library's heap, from which PETSc's
           allocations take them

  That holds for glibc, which is told before to keep pages (HybKeepPages()). Arrays of 6 MiB and more are left alone:
  several threads fill these at once, and one alone takes longer than a symbolic phase (2 ms lost with 8 MiB, where 3.5
  gained 7). Later products find pages there, and the thread has no more to do than to look. A process that has one core
  has nobody to do it. The thread calls nothing, and has ended when Ready returns, whatever has failed in between.
*/
#define _GNU_SOURCE
#include "storage.h"
#include <sched.h>
#include <signal.h>

/* bytes of an array: what a thread takes to start is less than its pages; several threads fill it */
#define HYB_PAGES_LEAST ((size_t)1 << 20)
#define HYB_PAGES_LESS  ((size_t)6 << 20)

/* glibc takes blocks above a threshold from the system and gives them back at once, and cuts its heap where twice as
   much lies free at the end: a matrix that goes takes its pages with it, and the next one's are fresh. It raises the
   threshold to the largest block that was ever given back, up to 32 MiB. One that nobody touches does. Programs with
   small matrices keep the threshold that they had. */
void HybKeepPages(PetscInt rows)
{
#if defined(__GLIBC__)
  void *volatile block;

  if (HybGlueState.watch.keeps || (size_t)rows * sizeof(PetscInt) < ((size_t)128 << 10)) return;
  HybGlueState.watch.keeps = PETSC_TRUE;
  block                    = malloc(((size_t)32 << 20) - ((size_t)64 << 10));
  free(block);
#endif
}

#if defined(__GLIBC__) && !PetscDefined(HAVE_THREADSAFETY)
static void *HybPagesTouch(void *unused)
{
  (void)unused;
  for (int k = 0; k < HybGlueState.pages.n; k++)
    for (size_t at = 0; at < HybGlueState.pages.bytes; at += 4096) ((volatile char *)HybGlueState.pages.block[k])[at] = 0;
  return NULL;
}

void HybPagesReady(void)
{
  if (HybGlueState.pages.running) (void)pthread_join(HybGlueState.pages.thread, NULL);
  HybGlueState.pages.running = PETSC_FALSE;
  /* the last ones first: what lies at the heap's end grows together */
  while (HybGlueState.pages.n) free(HybGlueState.pages.block[--HybGlueState.pages.n]);
}

void HybPagesAhead(const HybExec *x, PetscInt rows)
{
  const size_t bytes = sizeof(PetscInt) * ((size_t)rows + 1);
  cpu_set_t    cores;
  sigset_t     all, before;

  HybPagesReady(); /* an error handler of the program's may have left the last one by a jump */
  if (!HybExecOnDevice(x) || bytes < HYB_PAGES_LEAST || bytes >= HYB_PAGES_LESS) return;
  if (sched_getaffinity(0, sizeof(cores), &cores) || CPU_COUNT(&cores) < 2) return;
  HybKeepPages(rows);
  HybGlueState.pages.bytes = bytes;
  for (int k = 0; k < HYB_PAGES_ARRAYS; k++) {
    HybGlueState.pages.block[k] = malloc(bytes);
    if (!HybGlueState.pages.block[k]) break;
    HybGlueState.pages.n++;
  }
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  HybGlueState.pages.running = (PetscBool)(HybGlueState.pages.n && !pthread_create(&HybGlueState.pages.thread, NULL, HybPagesTouch, NULL));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
#else
void HybPagesAhead(const HybExec *x, PetscInt rows)
{
  (void)x;
  (void)rows;
}

void HybPagesReady(void)
{
}
#endif

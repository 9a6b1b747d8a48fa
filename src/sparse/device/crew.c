/*
  crew.c: threads that copy memory together, or go along an array.

  They are started at the first large copy, as many as the process has cores to itself, up to a limit, and never end:
  between copies they sleep. A process that was forked has none. Signals are not for them.

    Begin:         wake all
    Do:            a job of n bytes, or rows, cut into as many shares as there are threads; tickets = (0 taken, how
                   many); take shares; wait until all are done
    each thread:   while a ticket is left: take it, do its share, done + 1

  Who wakes late finds the shares taken: the first copy does not wait for the last thread. The tickets' two halves are
  one word, so that a ticket always belongs to the job that it was drawn from, and that job stands until its share is
  done.

  Fresh pages are dear: where it is known that buffers will be wanted, one thread more makes them while the program
  works (Ahead), and ends.
*/
#define _GNU_SOURCE
#include "crew.h"
#include "aijhybridgpu/private/hyb.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CREW_MOST 16 /* copies are as fast with 8, fresh pages are not */
/* threads that touch the same large page first all make one, and all but one for nothing */
#define CREW_PAGE ((size_t)2 << 20)
#define CREW_COPY ((size_t)16 << 10) /* a thread's share of a copy, at least */

static struct {
  pid_t    process;
  int      size;   /* the caller included; 0: not started */
  int      active; /* between Begin and End */
  sem_t    wake[CREW_MOST];
  uint64_t tickets; /* how many shares, and in the lower half how many of them are taken, or more */
  unsigned done;
  void (*work)(void *job, size_t from, size_t to);
  void  *job;
  size_t n, share;
} crew;

static int CrewTickets(uint64_t tickets)
{
  return (uint32_t)tickets < (uint32_t)(tickets >> 32);
}

/* one share of the job, if one is left */
static int CrewTake(void)
{
  const uint64_t mine = __atomic_fetch_add(&crew.tickets, 1, __ATOMIC_ACQ_REL);
  size_t         from;

  if (!CrewTickets(mine)) return 0;
  from = crew.share * (uint32_t)mine;
  (*crew.work)(crew.job, from, crew.n - from < crew.share ? crew.n : from + crew.share);
  __atomic_add_fetch(&crew.done, 1, __ATOMIC_RELEASE);
  return 1;
}

static void *CrewMember(void *arg)
{
  for (;;) {
    while (!__atomic_load_n(&crew.active, __ATOMIC_ACQUIRE)) (void)sem_wait((sem_t *)arg);
    for (int spins = 0; __atomic_load_n(&crew.active, __ATOMIC_ACQUIRE); spins++) {
      if (CrewTickets(__atomic_load_n(&crew.tickets, __ATOMIC_ACQUIRE)) && CrewTake())
        spins = 0;
      else if (spins > 2000)
        sched_yield(); /* cores may be shared after all */
    }
  }
  return NULL;
}

static void CrewStart(int share)
{
  cpu_set_t cores;
  sigset_t  all, before;
  int       most;

  crew.process = getpid();
  crew.size    = 1;
  if (sched_getaffinity(0, sizeof(cores), &cores)) return;
  most = CPU_COUNT(&cores) / (share > 0 ? share : 1);
  if (most > CREW_MOST) most = CREW_MOST;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  for (int k = 1; k < most; k++) {
    pthread_t thread;

    if (sem_init(&crew.wake[k], 0, 0) || pthread_create(&thread, NULL, CrewMember, &crew.wake[k])) break;
    pthread_detach(thread);
    crew.size++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void HybCrewBegin(int share)
{
  if (!crew.size) CrewStart(share);
  if (crew.size < 2 || crew.process != getpid()) return;
  __atomic_store_n(&crew.active, 1, __ATOMIC_RELEASE);
  /* each its own: nobody waits for another one's turn */
  for (int k = 1; k < crew.size; k++) (void)sem_post(&crew.wake[k]);
}

void HybCrewEnd(void)
{
  __atomic_store_n(&crew.active, 0, __ATOMIC_RELEASE);
}

void HybCrewDo(void (*work)(void *job, size_t from, size_t to), void *job, size_t n, size_t unit)
{
  uint64_t shares;

  if (!crew.active || n < 2 * unit) {
    (*work)(job, 0, n);
    return;
  }
  crew.work  = work;
  crew.job   = job;
  crew.n     = n;
  crew.share = ((n + (size_t)crew.size - 1) / (size_t)crew.size + unit - 1) / unit * unit;
  shares     = (n + crew.share - 1) / crew.share;
  __atomic_store_n(&crew.done, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&crew.tickets, shares << 32, __ATOMIC_RELEASE);
  while (CrewTake()) continue;
  for (int spins = 0; __atomic_load_n(&crew.done, __ATOMIC_ACQUIRE) != (unsigned)shares; spins++)
    if (spins > 2000) sched_yield();
}

typedef struct {
  char       *dst;
  const char *src;
} CrewMemory;

static void CrewCopy(void *job, size_t from, size_t to)
{
  const CrewMemory *m = (const CrewMemory *)job;

  memcpy(m->dst + from, m->src + from, to - from);
}

void HybCrewCopy(void *dst, const void *src, size_t bytes)
{
  CrewMemory m = {(char *)dst, (const char *)src};

  HybCrewDo(CrewCopy, &m, bytes, CREW_COPY);
}

static void CrewTouch(void *job, size_t from, size_t to)
{
  for (; from < to; from += 4096) ((char *)job)[from] = 0;
}

void HybCrewTouch(void *dst, size_t bytes)
{
  HybCrewDo(CrewTouch, dst, bytes, CREW_PAGE);
}

static struct {
  pid_t     process;
  pthread_t thread;
  size_t    bytes; /* 0: nothing is under way */
  int       joined;
  void     *memory; /* once it is joined */
  int (*there)(void *, size_t);
  int said;
} ahead;

static void *CrewAhead(void *arg)
{
  const size_t bytes = ahead.bytes;
  void        *p     = NULL;

  if (posix_memalign(&p, CREW_PAGE, bytes)) return NULL;
  HybAskLargePages(p, bytes);
  for (size_t at = 0; at < bytes; at += 4096) ((char *)p)[at] = 0;
  ahead.said = ahead.there ? (*ahead.there)(p, bytes) : 0;
  return p;
}

void HybCrewAhead(size_t bytes, int (*there)(void *, size_t))
{
  cpu_set_t cores;
  sigset_t  all, before;

  if (ahead.bytes || sched_getaffinity(0, sizeof(cores), &cores) || CPU_COUNT(&cores) < 2) return;
  ahead.process = getpid();
  ahead.bytes   = bytes;
  ahead.there   = there;
  ahead.said    = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  if (pthread_create(&ahead.thread, NULL, CrewAhead, NULL)) ahead.bytes = 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void HybCrewAheadWait(void)
{
  if (ahead.bytes && !ahead.joined && ahead.process == getpid()) ahead.joined = !pthread_join(ahead.thread, &ahead.memory);
}

void *HybCrewAheadTake(size_t bytes, int *said)
{
  *said = 0;
  if (!bytes || ahead.bytes != bytes || ahead.process != getpid()) return NULL;
  HybCrewAheadWait();
  if (!ahead.joined) return NULL;
  ahead.bytes  = 0;
  ahead.joined = 0;
  *said        = ahead.memory ? ahead.said : 0;
  return ahead.memory;
}

size_t HybCrewAheadBytes(void)
{
  return ahead.process == getpid() ? ahead.bytes : 0;
}

int HybCrewSize(void)
{
  return crew.size ? crew.size : 1;
}

/*
  crew.c: threads that copy memory together.

  They are started at the first large copy, as many as the process has cores to itself, up to a limit, and never end: between copies they sleep. A
  process that was forked has none. Signals are not for them.

    Begin:         wake all
    Copy:          job = (dst, src, bytes); round + 1; copy the first share; wait until all have done theirs
    each thread:   wait for a round that is new; copy its share; done + 1
*/
#define _GNU_SOURCE
#include "crew.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CREW_MOST 8 /* as fast as any more, and a share of a piece is as large as the kernel's large pages */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t  wake;
  pid_t           process;
  int             size;   /* the caller included; 0: not started */
  int             active; /* between Begin and End */
  unsigned        round, done;
  char           *dst;
  const char     *src;
  size_t          bytes;
} crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* share k of the job, in whole pages; the shares together are no less than the job */
static void CrewShare(int k)
{
  const size_t each = (crew.bytes + (size_t)crew.size - 1) / (size_t)crew.size, part = (each + 4095) / 4096 * 4096, from = part * (size_t)k, to = from + part < crew.bytes ? from + part : crew.bytes;

  if (from < to) memcpy(crew.dst + from, crew.src + from, to - from);
}

static void *CrewMember(void *arg)
{
  const int k    = (int)(size_t)arg;
  unsigned  seen = 0;

  for (;;) {
    pthread_mutex_lock(&crew.lock);
    while (!__atomic_load_n(&crew.active, __ATOMIC_ACQUIRE)) pthread_cond_wait(&crew.wake, &crew.lock);
    pthread_mutex_unlock(&crew.lock);
    for (int spins = 0; __atomic_load_n(&crew.active, __ATOMIC_ACQUIRE) || __atomic_load_n(&crew.round, __ATOMIC_ACQUIRE) != seen; spins++) {
      const unsigned now = __atomic_load_n(&crew.round, __ATOMIC_ACQUIRE);

      if (now != seen) {
        seen = now;
        CrewShare(k);
        __atomic_add_fetch(&crew.done, 1, __ATOMIC_RELEASE);
        spins = 0;
      } else if (spins > 2000)
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

    if (pthread_create(&thread, NULL, CrewMember, (void *)(size_t)k)) break;
    pthread_detach(thread);
    crew.size++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void HybCrewBegin(int share)
{
  if (!crew.size) CrewStart(share);
  if (crew.size < 2 || crew.process != getpid()) return;
  pthread_mutex_lock(&crew.lock);
  __atomic_store_n(&crew.active, 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&crew.wake);
  pthread_mutex_unlock(&crew.lock);
}

void HybCrewEnd(void)
{
  __atomic_store_n(&crew.active, 0, __ATOMIC_RELEASE);
}

void HybCrewCopy(void *dst, const void *src, size_t bytes)
{
  if (!crew.active || bytes < (size_t)crew.size * 16384) {
    memcpy(dst, src, bytes);
    return;
  }
  crew.dst   = (char *)dst;
  crew.src   = (const char *)src;
  crew.bytes = bytes;
  __atomic_store_n(&crew.done, 0, __ATOMIC_RELEASE);
  __atomic_add_fetch(&crew.round, 1, __ATOMIC_RELEASE);
  CrewShare(0);
  for (int spins = 0; __atomic_load_n(&crew.done, __ATOMIC_ACQUIRE) != (unsigned)crew.size - 1; spins++)
    if (spins > 2000) sched_yield();
}

int HybCrewSize(void)
{
  return crew.size ? crew.size : 1;
}

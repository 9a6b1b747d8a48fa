/*
  Preloaded into commands of several ranks. Open MPI's ranks poll for messages and call sched_yield() between polls,
  which on a machine with fewer cores than ranks leaves the core with the poller more often than with the rank that has
  the work. A nap hands it over; it halves the time of such a command. Who calls again at once still waits for the same:
  its naps grow, for on a busy machine each costs those that work some microseconds.
*/
#include <time.h>

#define AGAIN 4000 /* nanoseconds from one nap to the next */
#define FIRST 50000
#define MOST  1000000

static long Since(const struct timespec *from, const struct timespec *to)
{
  return (long)(to->tv_sec - from->tv_sec) * 1000000000 + (to->tv_nsec - from->tv_nsec);
}

int sched_yield(void)
{
  static __thread struct timespec woke, nap;
  struct timespec                 now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  if (Since(&woke, &now) > AGAIN)
    nap.tv_nsec = FIRST;
  else if (nap.tv_nsec < MOST)
    nap.tv_nsec += nap.tv_nsec / 2;
  nanosleep(&nap, 0);
  clock_gettime(CLOCK_MONOTONIC, &woke);
  return 0;
}

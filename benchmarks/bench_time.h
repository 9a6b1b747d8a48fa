/*
  bench_time.h: the time of one call, the device's work included.
*/
#ifndef BENCH_TIME_H
#define BENCH_TIME_H
#include <petsctime.h>

/* seconds that the statement takes; wait: a call that returns when all that was begun has ended */
#define BENCH_TIME(wait, seconds, statement) \
  do {                                       \
    PetscLogDouble t0_, t1_;                 \
    PetscCall(wait);                         \
    PetscCall(PetscTime(&t0_));              \
    PetscCall(statement);                    \
    PetscCall(wait);                         \
    PetscCall(PetscTime(&t1_));              \
    seconds = t1_ - t0_;                     \
  } while (0)
#endif

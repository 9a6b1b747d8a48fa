/*
  bench_time.h: the time of one call, the device's work included, and what a result may differ by.
*/
#ifndef BENCH_TIME_H
#define BENCH_TIME_H
#include <petsctime.h>

/* of a result's norm, from the same operation of MATAIJ's */
#define BENCH_TOLERANCE (PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-10)

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

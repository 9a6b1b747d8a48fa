/*
  resultlog.h: what the tests of a product's result share. Steps are done with MATAIJ and with the type, what is seen at
  each is noted, and the two logs are compared.
*/
#ifndef RESULTLOG_H
#define RESULTLOG_H
#include "mattest.h"
#include <stdlib.h>

static PetscMPIInt Size;
static const char *Ours = "aijhybridgpu";
static char        Name[96]; /* of the case */
#define N    12
#define STEP 256

/* what was seen, step by step, and what of */
typedef struct {
  int         n;
  PetscReal   seen[STEP];
  const char *what[STEP];
} Log;

static inline void Note(Log *log, PetscReal x, const char *what)
{
  if (log->n == STEP) return;
  log->what[log->n]   = what;
  log->seen[log->n++] = x;
}

/* was it an error? */
#define TRY(log, call)               \
  do {                               \
    PetscErrorCode ierr_;            \
    QUIETLY(ierr_, call);            \
    Note(log, ierr_ ? 1 : 0, #call); \
  } while (0)

/* MATAIJ's and ours */
static inline PetscErrorCode CompareLogs(const Log log[2])
{
  PetscFunctionBeginUser;
  MatTestCheck(log[0].n == log[1].n, "steps");
  for (int s = 0; s < PetscMin(log[0].n, log[1].n); s++) {
    const PetscBool same = (PetscBool)(PetscAbsReal(log[0].seen[s] - log[1].seen[s]) <= (PetscReal)1e-5 * PetscAbsReal(log[0].seen[s]));

    if (!same) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "step %d: MATAIJ %g, ours %g\n", s, (double)log[0].seen[s], (double)log[1].seen[s]));
    MatTestCheck(same, log[0].what[s]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* three entries in a row: on the diagonal, and a and b columns from there; b 0: two */
static inline PetscErrorCode Make(MatType type, PetscInt a, PetscInt b, PetscReal shift, Mat *A)
{
  PetscInt start, end, d[3] = {0, a, b};

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, PETSC_DECIDE, PETSC_DECIDE, N, N, 3, A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt k = 0; k < (b ? 3 : 2); k++) PetscCall(MatSetValue(*A, r, (r + d[k] + N) % N, (k ? 0 : 6) + PetscSinReal((PetscReal)(3 * r + k) + shift), INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

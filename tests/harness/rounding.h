/*
  rounding.h: tolerances that are written for double precision, for the numbers of this PETSc.
*/
#ifndef TEST_ROUNDING_H
#define TEST_ROUNDING_H
#include <petscsys.h>

/* as many roundings as so much is in double */
#define ROUNDED(tolerance) ((PetscReal)((tolerance) * ((double)PETSC_MACHINE_EPSILON / 2.220446049250313e-16)))

#endif

/*
  Reads Matrix Market files (https://math.nist.gov/MatrixMarket/formats.html): coordinate and array, real, integer,
  complex and pattern, general, symmetric, skew-symmetric and Hermitian.

  Nothing that the file claims is believed before it is there: memory grows with the entries that were read, not with
  the count in the header. Whatever is wrong is a PETSC_ERR_FILE_UNEXPECTED that names the file, the line and the
  numbers.
*/
#ifndef MMREADER_H
#define MMREADER_H
#include <petscsys.h>
#include <stdio.h>

typedef enum {
  MM_GENERAL,
  MM_SYMMETRIC,
  MM_SKEW_SYMMETRIC,
  MM_HERMITIAN
} MMSymmetry;

/* The entries in the order of the file, rows and columns from 0. The other triangle of a symmetric file stands there
   too, each entry right behind the one that it mirrors. Entries may repeat: their values are to be summed. */
typedef struct {
  PetscInt     m, n;  /* rows, columns */
  PetscBool    array; /* a dense file: all m*n entries, zeros too */
  MMSymmetry   symmetry;
  PetscCount   stored;   /* entries in the file */
  PetscCount   nz;       /* entries below: stored ones and mirrored ones */
  PetscCount   capacity; /* room in the arrays */
  PetscInt    *i, *j;
  PetscScalar *a;
} MMEntries;

/* Not collective. Reads from an open stream to its end; name is for messages. After an error as well,
   MMEntriesDestroy() frees what was read. */
extern PetscErrorCode MMEntriesRead(FILE *, const char name[], MMEntries *);
extern PetscErrorCode MMEntriesDestroy(MMEntries *);
#endif

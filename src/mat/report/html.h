/*
  The page: html.c has its head and charts, tables.c the tables, pieces.c what both are made of.
*/
#ifndef AIJHYBRIDGPU_HTML_H
#define AIJHYBRIDGPU_HTML_H

#include "report.h"

PETSC_INTERN void HybPageText(FILE *, const char *);
PETSC_INTERN void HybPageTextOf(FILE *, const char *, size_t length);
PETSC_INTERN void HybPageCount(FILE *, PetscInt64);
PETSC_INTERN void HybPageBytes(FILE *, double);
PETSC_INTERN void HybPageSeconds(FILE *, double);
PETSC_INTERN void HybPageKind(FILE *, const HybRecordKey *, PetscBool size); /* a cell */

/* tables.c; order: of the kinds, those that took longest first */
PETSC_INTERN void HybPageGrids(FILE *, const HybReport *);
PETSC_INTERN void HybPageOperations(FILE *, const HybReport *, const int order[]);
PETSC_INTERN void HybPageMatrices(FILE *, const HybReport *, const int order[]);
PETSC_INTERN void HybPageProcesses(FILE *, const HybReport *);

#endif

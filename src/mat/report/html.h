/*
  The page: html.c has its head and charts, tables.c the tables, pieces.c what both are made of.
*/
#ifndef AIJHYBRIDGPU_HTML_H
#define AIJHYBRIDGPU_HTML_H

#include "report.h"

PETSC_INTERN void HybPage(FILE *, const char *format, ...); /* pieces.c has the conversions */
PETSC_INTERN void HybPageText(FILE *, const char *, size_t length);
PETSC_INTERN void HybPageOrder(int n, const double value[], int order[]);

/* tables.c; order: of the kinds, those that took longest first */
PETSC_INTERN void HybPageGrids(FILE *, const HybReport *);
PETSC_INTERN void HybPageOperations(FILE *, const HybReport *, const int order[]);
PETSC_INTERN void HybPageMatrices(FILE *, const HybReport *, const int order[]);
PETSC_INTERN void HybPageProcesses(FILE *, const HybReport *);

#endif

/*
  maskrows.cuh: values of C = A*B, again and again, for products whose rows of C are short: by bit masks, with sums in
  registers. For the methods whose numeric phases are repeated. The algorithm is described in maskrows.cu.
*/
#ifndef AIJHYBRIDGPU_MASKROWS_CUH
#define AIJHYBRIDGPU_MASKROWS_CUH
#include "../device/hybdevice.cuh"
#include "aijhybridgpu/private/hybspgemm.h"

/* The plan; all zero before */
typedef struct {
  PetscInt  longest; /* row of C; for HybMaskRowsPlan(), by whoever counts C's rows */
  PetscBool tried;   /* whether there can be a plan is known */
  PetscInt *from;    /* of each entry of A: where its row of B begins; NULL: A's columns stay, and tell */
  /* of each entry of A, for each 32 entries of C's row: which of them that row of B has; 32 entries of all rows first,
     then the next 32. NULL: there is no plan */
  unsigned *masks;
  int       words; /* of a mask */
  int       lanes; /* that take a row of C */
} HybMaskRows;

/* C->i and C->nnz of count (device), as HybScanCounts(), and rows->longest: one synchronisation */
extern PetscErrorCode HybMaskRowsCount(HybSpGEMM *mm, const PetscInt *count, HybCSR *C, HybMaskRows *rows);
/* Makes the plan where C's rows are short and the plan is no larger than the operands. No synchronisation. The columns
   of all rows ascend. */
extern PetscErrorCode HybMaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows);
/* values, where rows->masks is there */
extern PetscErrorCode HybMaskRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, HybCSR *C);

#endif

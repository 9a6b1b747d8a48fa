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
  /* for HybMaskRowsPlan(), by whoever counts C's rows: the longest one, and the words of 32 bits that masks of all
     entries of A take */
  PetscInt   longest;
  PetscCount words;
  PetscInt  *from; /* of each entry of A: where its row of B begins; NULL: A's columns stay, and tell */
  /* Of each entry of A, for each entry of C's row: whether that row of B has it; a short or a word each, or, where rows
     of C are longer than 32, as many words as the row takes: the first ones of all entries, then the next. NULL: there
     is no plan */
  unsigned *masks;
  PetscInt *first; /* where the masks of each row begin, if they have several words */
  int       lanes; /* that take a row of C */
} HybMaskRows;

/* C->i and C->nnz of count (device), as HybScanCounts(), and what the plan wants to know: one synchronisation */
extern PetscErrorCode HybMaskRowsCount(HybSpGEMM *mm, const HybCSR *A, const PetscInt *count, HybCSR *C, HybMaskRows *rows);
/* the words of all masks and then mm->cut, HYB_SPGEMM_PARTS + 2 numbers (device), for who counts by other means: no
   synchronisation */
extern PetscErrorCode HybMaskRowsMeasure(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, PetscCount *words);
/* Makes the plan where C's rows are short and the plan is no larger than the operands. No synchronisation. The columns
   of all rows ascend. */
extern PetscErrorCode HybMaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows);
/* values, where rows->masks is there; A's by mm->permutation, if the caller has set it */
extern PetscErrorCode HybMaskRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, HybCSR *C);

#endif

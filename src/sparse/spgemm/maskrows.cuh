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
  /* for HybMaskRowsPlan(), by whoever counts C's rows: the longest one, the words of 32 bits that masks of all entries
     of A take, and the longest row of the matrix whose transpose A is */
  PetscInt   longest, farthest;
  PetscCount words;
  /* Of each entry of A, for each entry of C's row: whether that row of B has it; a short or a word each, or, where rows
     of C are longer than 32, as many words as the row takes: the first ones of all entries, then the next. NULL: there
     is no plan */
  unsigned *masks;
  PetscInt *first; /* where the masks of each row begin, if they have several words */
  int       lanes; /* that take a row of C */
  /* of a transpose, for each entry: which one of its row of the matrix; NULL: by a permutation, or in turn */
  unsigned char *place;
} HybMaskRows;

/* C->i and C->nnz of count (device), as HybScanCounts(), and what the plan wants to know: one synchronisation */
extern PetscErrorCode HybMaskRowsCount(HybSpGEMM *mm, const HybCSR *A, const PetscInt *count, HybCSR *C, HybMaskRows *rows);
/* the same of a C that is there, later: one synchronisation */
extern PetscErrorCode HybMaskRowsLook(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, HybMaskRows *rows);
/* words, farthest and then mm->cut, HYB_SPGEMM_PARTS + 3 numbers (device), for who counts by other means: no
   synchronisation */
extern PetscErrorCode HybMaskRowsMeasure(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, PetscCount *words);
/* Makes the plan where C's rows are short and the plan is no larger than the operands. No synchronisation. The columns
   of all rows ascend. */
extern PetscErrorCode HybMaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows);
/* values, where rows->masks is there; A's by the plan or by mm->permutation, if the caller has set it */
extern PetscErrorCode HybMaskRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, HybCSR *C);

#endif

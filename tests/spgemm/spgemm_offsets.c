/*
  Products whose right operand has as many nonzeros as kernels take: offsets within a few thousand of the largest
  PetscInt, where a cursor that passes a row's end by too much becomes negative; where indices have 64 bits, on both
  sides of 2^31 and of 2^32, of the left operand too. The arrays behind are small: the pointers are moved back by as
  much as the offsets are moved on.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybspgemm.h>
#include <stdlib.h>
#include <string.h>

/* the last offset of B; of A, 0: it stays where it is */
static PetscErrorCode Product(const HybSpGEMMMethod *method, const RefMat *A, const RefMat *B, PetscCount bnnz, PetscCount annz)
{
  const HybExec *exec = HybTestExec();
  HybSpGEMM      mm;
  HybCSR         DA, DB, DC;
  RefMat         C;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  RefSpGEMM(A, B, &C);
  if (annz) {
    PetscCall(HybTestUploadMoved(&arena, A, annz, &DA));
    DA.nnz = A->csr.nnz; /* its entries are not gone through one by one, but lists of them are made */
  } else
    PetscCall(HybTestUpload(&arena, &A->csr, &DA));
  PetscCall(HybTestUploadMoved(&arena, B, bnnz, &DB));
  PetscCall(HybSpGEMMInit(&mm, exec, method->name, 0));
  if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &arena, &DC)) && HybTestSamePattern(&DC, &C)) {
    if (!DC.a) PetscCall(HybArenaAlloc(&arena, exec->result, DC.nnz, sizeof(HybScalar), &DC.a));
    /* the second time by what the method has kept of the first */
    for (PetscInt k = 0; k < 2; k++) {
      if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameMatrix(&DC, &C, 4);
    }
  }
  HybTestCall(HybSpGEMMDestroy(&mm));
  /* one more, and the operand is refused */
  DB.nnz++;
  PetscCall(HybSpGEMMInit(&mm, exec, method->name, 0));
  if (sizeof(PetscInt) == 4) HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybSpGEMMSymbolic(&mm, &DA, &DB, &arena, &DC));
  HybTestCall(HybSpGEMMDestroy(&mm));
  PetscCall(HybArenaReset(&arena));
  RefMatDestroy(&C);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  if (!exec->backend->device) {
    HybTestBegin("offsets near the largest PetscInt");
    HybTestSkip("the host's loops stop at a row's end");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; *table; table++) {
    /* these look at all rows of B, which must be of few shapes or of blocks, or copy its 2^31 entries */
    if (!strcmp((*table)->name, "shape") || !strcmp((*table)->name, "diagonal") || !strcmp((*table)->name, "block") || !strcmp((*table)->name, "tile")) continue;
    for (int kind = 0; kind < 3; kind++) {
      PetscInt lengths[64];
      RefMat   A, B;

      HybTestBegin("%s: rows of 30000 beside short ones at the end of B, kind %d", (*table)->name, kind);
      /* entries of A that name a long row and one at B's very end: 32 apart, 1 apart; all rows long */
      for (PetscInt r = 0; r < 64; r++) lengths[r] = kind == 2 ? 600 : r == (kind ? 62 : 0) ? 30000
                                                                     : r < 32 && kind       ? 300
                                                                                            : 1 + r % 3;
      HybTestMatLengths(64, 40000, lengths, &B);
      if (kind == 0)
        HybTestMatBanded(1, 64, 0, 63, &A);
      else
        HybTestMatRandom(5, 64, 2, 64, &A);
      if (sizeof(PetscInt) == 4)
        PetscCall(Product(*table, &A, &B, (PetscCount)PETSC_MAX_INT - HYB_ENTRIES_BEYOND, 0));
      for (int k = 31; k < 34 && sizeof(PetscInt) == 8; k++) {
        /* segmerge goes along A's entries, not its rows */
        PetscCall(Product(*table, &A, &B, ((PetscCount)1 << k) + B.csr.nnz / 2, k == 31 || !strcmp((*table)->name, "segmerge") ? 0 : ((PetscCount)1 << k) + A.csr.nnz / 2));
      }
      RefMatDestroy(&A, &B);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

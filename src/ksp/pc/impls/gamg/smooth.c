/*
  The second and later steps of smoothing a prolongator, by products of matrices as PETSc does them: P is no longer what
  one pass over A makes of aggregates. On several processes and one; where the matrices live.
*/
#include "gamgimpl.h"

#if HYB_GAMG
PetscErrorCode HybGAMGSmoothMore(Mat A, PetscReal omega, Mat *P)
{
  Mat AP;
  Vec d;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &d, NULL));
  PetscCall(MatGetDiagonal(A, d));
  PetscCall(VecReciprocal(d));
  PetscCall(MatMatMult(A, *P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &AP));
  PetscCall(MatProductClear(AP));
  PetscCall(MatDiagonalScale(AP, d, NULL));
  PetscCall(MatAYPX(AP, -omega, *P, SUBSET_NONZERO_PATTERN));
  PetscCall(MatDestroy(P));
  PetscCall(VecDestroy(&d));
  *P = AP;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
  The second and later steps of smoothing a prolongator, by products of matrices as PETSc does them: P is no longer what
  one pass over A makes of aggregates. On several processes and one; where the matrices live. What a process does alone
  ends with an agreement, since the others go on to what all do.
*/
#include "gamgimpl.h"

#if HYB_GAMG
/* d = D^-1 */
static PetscErrorCode HybSmoothInverse(Mat A, Vec *d)
{
  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, d, NULL));
  PetscCall(MatGetDiagonal(A, *d));
  PetscCall(VecReciprocal(*d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AP = - omega D^-1 AP */
static PetscErrorCode HybSmoothScale(Mat AP, PetscReal omega, Vec d)
{
  PetscFunctionBegin;
  PetscCall(MatProductClear(AP));
  PetscCall(MatDiagonalScale(AP, d, NULL));
  PetscCall(MatScale(AP, -omega));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AP += P, whose pattern is in AP's, before the assembly: as MatAXPY() does, which agrees upon nothing */
static PetscErrorCode HybSmoothAddRows(Mat AP, Mat P)
{
  PetscInt begin, end;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(P, &begin, &end));
  for (PetscInt r = begin; r < end; r++) {
    PetscInt           n;
    const PetscInt    *column;
    const PetscScalar *value;

    PetscCall(MatGetRow(P, r, &n, &column, &value));
    PetscCall(MatSetValues(AP, 1, &r, n, column, value, ADD_VALUES));
    PetscCall(MatRestoreRow(P, r, &n, &column, &value));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSmoothAdd(MPI_Comm comm, Mat AP, Mat P)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size == 1) {
    PetscCall(MatAXPY(AP, 1.0, P, SUBSET_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybAgree(comm, HybSmoothAddRows(AP, P), "A step of smoothing"));
  PetscCall(MatAssemblyBegin(AP, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(AP, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGSmoothMore(Mat A, PetscReal omega, Mat *P)
{
  const MPI_Comm    comm = PetscObjectComm((PetscObject)A);
  const char *const what = "A step of smoothing";
  Mat               AP   = NULL;
  Vec               d    = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  ierr = HybAgree(comm, HybSmoothInverse(A, &d), what);
  if (!ierr) {
    ierr = MatMatMult(A, *P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &AP);
    ierr = HybAgree(comm, ierr ? ierr : HybSmoothScale(AP, omega, d), what);
    if (!ierr) ierr = HybSmoothAdd(comm, AP, *P);
  }
  (void)VecDestroy(&d);
  if (!ierr) {
    ierr = MatDestroy(P);
    *P   = AP;
    AP   = NULL;
  }
  ierr = HybAgree(comm, ierr, what); /* all come here */
  (void)MatDestroy(&AP);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

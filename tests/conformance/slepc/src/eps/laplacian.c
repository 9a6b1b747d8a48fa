static char help[] = "Smallest eigenvalues of the 5-point Laplacian: by Davidson with multigrid, by shift and invert, and as singular values.\n\
  -svd : singular values of the matrix of differences\n\n";

#include <slepceps.h>
#include <slepcsvd.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

static PetscErrorCode Laplacian(PetscInt nx, PetscInt ny, Mat *A)
{
  PetscInt first, last;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, nx * ny, nx * ny));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &first, &last));
  for (PetscInt row = first; row < last; row++) {
    const PetscInt x = row % nx, y = row / nx;

    PetscCall(MatSetValue(*A, row, row, 4, INSERT_VALUES));
    if (x > 0) PetscCall(MatSetValue(*A, row, row - 1, -1, INSERT_VALUES));
    if (x < nx - 1) PetscCall(MatSetValue(*A, row, row + 1, -1, INSERT_VALUES));
    if (y > 0) PetscCall(MatSetValue(*A, row, row - nx, -1, INSERT_VALUES));
    if (y < ny - 1) PetscCall(MatSetValue(*A, row, row + nx, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A;
  EPS         eps;
  SVD         svd;
  PetscInt    n;
  PetscReal   sigma;
  PetscScalar lambda;
  PetscBool   singular = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(SlepcInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-svd", &singular, NULL));
  PetscCall(Laplacian(30, 23, &A));
  if (singular) {
    PetscCall(SVDCreate(PETSC_COMM_WORLD, &svd));
    PetscCall(SVDSetOperators(svd, A, NULL));
    PetscCall(SVDSetDimensions(svd, 3, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(SVDSetFromOptions(svd));
    PetscCall(SVDSolve(svd));
    PetscCall(SVDGetConverged(svd, &n));
    for (PetscInt k = 0; k < 3 && k < n; k++) {
      PetscCall(SVDGetSingularTriplet(svd, k, &sigma, NULL, NULL));
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "singular value %.5f\n", (double)sigma));
    }
    PetscCall(SVDDestroy(&svd));
  } else {
    PetscCall(EPSCreate(PETSC_COMM_WORLD, &eps));
    PetscCall(EPSSetOperators(eps, A, NULL));
    PetscCall(EPSSetProblemType(eps, EPS_HEP));
    PetscCall(EPSSetWhichEigenpairs(eps, EPS_SMALLEST_REAL));
    PetscCall(EPSSetDimensions(eps, 3, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(EPSSetTolerances(eps, 1e-8, PETSC_DEFAULT));
    PetscCall(EPSSetFromOptions(eps));
    PetscCall(EPSSolve(eps));
    PetscCall(EPSGetConverged(eps, &n));
    for (PetscInt k = 0; k < 3 && k < n; k++) {
      PetscCall(EPSGetEigenvalue(eps, k, &lambda, NULL));
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "eigenvalue %.5f\n", (double)PetscRealPart(lambda)));
    }
    PetscCall(EPSDestroy(&eps));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(SlepcFinalize());
  return 0;
}

/*TEST

   testset:
      output_file: output/laplacian.out
      nsize: {{1 2}}
      test:
         suffix: davidson
         args: -eps_type gd -st_pc_type gamg
      test:
         suffix: jacobi_davidson
         args: -eps_type jd -st_pc_type gamg -st_ksp_type bcgsl
      test:
         suffix: lobpcg
         args: -eps_type lobpcg -st_pc_type gamg
      test:
         suffix: sinvert
         args: -st_type sinvert -eps_target 0 -eps_target_magnitude -st_ksp_type cg -st_pc_type gamg -st_ksp_rtol 1e-12

   test:
      suffix: sinvert_lu
      output_file: output/laplacian.out
      args: -st_type sinvert -eps_target 0 -eps_target_magnitude

   test:
      suffix: svd
      nsize: {{1 2}}
      output_file: output/laplacian_svd.out
      args: -svd -svd_type {{cross lanczos trlanczos}}

TEST*/

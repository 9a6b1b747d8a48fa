static char help[] = "The Galerkin product C = P^T A P, first and again with other values: the 7-point Laplacian on n^3 points and\n\
trilinear interpolation from every second point.\n\
  -n <n>       : points in each direction (default 33; an odd number)\n\
  -again <k>   : how often the product is formed again with new values (default 3)\n\n";

/*
  A program as PETSc's users write it: types come from options, so it runs with any of them.

    examples/ptap -n 65 -mat_type aij
    examples/ptap -n 65 -dll_append $PWD/lib/libaijhybridgpu.so -mat_type aijhybridgpu
    examples/ptap -n 65 -dll_append $PWD/lib/libaijhybridgpu.so -mat_type aijhybridgpu -info :mat

  The last line tells which method ran, its bins and bytes.

  What it shows: MAT_REUSE_MATRIX keeps the plan that the first product made, so a product with new values costs a
  fraction. It checks each product against C x = P^T (A (P x)) and fails if they differ.
*/
#include <petscmat.h>
#include <petsctime.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

static PetscErrorCode CreateMatrix(PetscInt rows, PetscInt cols, PetscInt width, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, rows, cols));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, width, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, width, NULL, width, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Laplacian(PetscInt n, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(CreateMatrix(n * n * n, n * n * n, 7, A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt x = row % n, y = row / n % n, z = row / (n * n);
    PetscInt       cols[7], k = 0;
    PetscScalar    values[7];

    cols[k]     = row;
    values[k++] = 6;
    if (x > 0) cols[k++] = row - 1;
    if (x < n - 1) cols[k++] = row + 1;
    if (y > 0) cols[k++] = row - n;
    if (y < n - 1) cols[k++] = row + n;
    if (z > 0) cols[k++] = row - n * n;
    if (z < n - 1) cols[k++] = row + n * n;
    for (PetscInt e = 1; e < k; e++) values[e] = -1;
    PetscCall(MatSetValues(*A, 1, &row, k, cols, values, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A fine point between two coarse ones takes half of each, in each direction */
static PetscErrorCode Interpolation(PetscInt n, Mat *P)
{
  const PetscInt nc = (n + 1) / 2;
  PetscInt       start, end;

  PetscFunctionBeginUser;
  PetscCall(CreateMatrix(n * n * n, nc * nc * nc, 8, P));
  PetscCall(MatGetOwnershipRange(*P, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt x = row % n, y = row / n % n, z = row / (n * n);

    for (PetscInt cz = z / 2; cz <= (z + 1) / 2; cz++)
      for (PetscInt cy = y / 2; cy <= (y + 1) / 2; cy++)
        for (PetscInt cx = x / 2; cx <= (x + 1) / 2; cx++) PetscCall(MatSetValue(*P, row, (cz * nc + cy) * nc + cx, 1. / ((1 + x % 2) * (1 + y % 2) * (1 + z % 2)), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*P, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(Mat A, Mat P, Mat C)
{
  Vec       x, y, fine, afine, z;
  PetscReal error, norm;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(P, &x, &fine));
  PetscCall(VecDuplicate(fine, &afine));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(MatMult(P, x, fine));
  PetscCall(MatMult(A, fine, afine));
  PetscCall(MatMultTranspose(P, afine, y));
  PetscCall(MatMult(C, x, z));
  PetscCall(VecNorm(y, NORM_2, &norm));
  PetscCall(VecAXPY(z, -1, y));
  PetscCall(VecNorm(z, NORM_2, &error));
  PetscCheck(error <= 1000 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "|C x - P^T A P x| = %g, |P^T A P x| = %g", (double)error, (double)norm);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&fine));
  PetscCall(VecDestroy(&afine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat            A, P, C;
  PetscInt       n = 33, again = 3, rows, coarse;
  PetscLogDouble t0, t1;
  MatType        type;
  MatInfo        info;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-again", &again, NULL));
  PetscCheck(n >= 3 && n % 2 == 1 && n <= 1201, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-n %" PetscInt_FMT ": an odd number from 3 to 1201", n);
  PetscCall(Laplacian(n, &A));
  PetscCall(Interpolation(n, &P));

  PetscCall(PetscTime(&t0));
  PetscCall(MatPtAP(A, P, MAT_INITIAL_MATRIX, 2, &C));
  PetscCall(PetscTime(&t1));
  PetscCall(Check(A, P, C));
  PetscCall(MatGetType(C, &type));
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(MatGetSize(C, &coarse, NULL));
  PetscCall(MatGetInfo(C, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "P^T A P: %" PetscInt_FMT " to %" PetscInt_FMT " rows, %.0f nonzeros, type %s\nfirst product   %8.2f ms\n", rows, coarse, info.nz_used, type, 1e3 * (t1 - t0)));
  for (PetscInt k = 0; k < again; k++) {
    PetscCall(MatScale(A, 1.5));
    PetscCall(MatScale(P, 0.5));
    PetscCall(PetscTime(&t0));
    PetscCall(MatPtAP(A, P, MAT_REUSE_MATRIX, 2, &C));
    PetscCall(PetscTime(&t1));
    PetscCall(Check(A, P, C));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "new values      %8.2f ms\n", 1e3 * (t1 - t0)));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

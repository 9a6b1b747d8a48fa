static char help[] = "A program that links the library: no -dll_append, the type by name, and what only the header offers.\n\
  -n <n> : points in each direction of a square (default 100)\n\n";

/*
  Compile and link (examples/README.md has the pkg-config form):

    mpicc link.c -I<prefix>/include -L<prefix>/lib -laijhybridgpu -Wl,-rpath,<prefix>/lib $(pkg-config --cflags --libs
    petsc)

  Squares the 5-point Laplacian and says which method computed it.
*/
#include <petscmataijhybridgpu.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

int main(int argc, char **argv)
{
  Mat         A, C;
  MatInfo     info;
  MatType     type;
  const char *method;
  PetscInt    n = 100, start, end;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatAIJHybridGPUInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCheck(n >= 1 && n <= 10000, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-n %" PetscInt_FMT " lies outside 1 to 10000", n);

  PetscCall(MatCreateAIJHybridGPU(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, NULL, 5, NULL, &A));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt x = row % n, y = row / n;

    PetscCall(MatSetValue(A, row, row, 4, INSERT_VALUES));
    if (x > 0) PetscCall(MatSetValue(A, row, row - 1, -1, INSERT_VALUES));
    if (x < n - 1) PetscCall(MatSetValue(A, row, row + 1, -1, INSERT_VALUES));
    if (y > 0) PetscCall(MatSetValue(A, row, row - n, -1, INSERT_VALUES));
    if (y < n - 1) PetscCall(MatSetValue(A, row, row + n, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));

  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, 3, &C));
  PetscCall(MatGetType(C, &type));
  PetscCall(MatGetInfo(C, MAT_GLOBAL_SUM, &info));
  PetscCall(MatAIJHybridGPUGetProductMethod(C, &method));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "A*A: %" PetscInt_FMT " rows, %.0f nonzeros, type %s, computed by %s\n", n * n, info.nz_used, type, method ? method : "PETSc's parallel product over the blocks"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

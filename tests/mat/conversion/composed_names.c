/*
  Functions that a matrix has by name (src/petsc/names.c): after a conversion to our type and back it has the ones that
  it had, each name once, also where a program has composed some of its own before, under names of the plugin's too,
  or has taken one away. One that is made of the type has a MATAIJ's besides ours, and none when it gets another type.

TEST np=1,2
*/
#include "mattest.h"
#include <petsc/private/matimpl.h>

#define NAMES 16

/* names that the plugin composes, or puts its own over */
static const char *const Names[NAMES] = {"MatProductSetFromOptions_anytype_C", "MatConvert_seqaijhybridgpu_seqaij_C", "MatConvert_mpiaijhybridgpu_mpiaij_C", "MatStoreValues_C", "MatRetrieveValues_C", "MatSeqAIJSetPreallocation_C", "MatResetPreallocation_C", "MatSeqAIJSetColumnIndices_C", "MatSeqAIJKron_C", "MatSetPreallocationCOO_C", "MatSetValuesCOO_C", "MatMPIAIJSetPreallocation_C", "MatGetMultPetscSF_C", "MatResetHash_C", "MatSeqAIJSetPreallocationCSR_C", "MatIsTranspose_C"};

static void (*Plain[NAMES])(void); /* a MATAIJ's */

static PetscErrorCode OfPrograms(Mat A)
{
  return A ? PETSC_SUCCESS : PETSC_ERR_ARG_NULL;
}

static PetscErrorCode Look(Mat A, void (*f[])(void))
{
  PetscFunctionBeginUser;
  for (int k = 0; k < NAMES; k++) {
    f[k] = NULL;
    PetscCall(PetscObjectQueryFunction((PetscObject)A, Names[k], &f[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* no name stands in the list twice, and each has a function that is found by it, or none */
static PetscErrorCode CheckOnce(Mat A)
{
  const char **names;
  int          n;

  PetscFunctionBeginUser;
  PetscCall(PetscFunctionListGet(((PetscObject)A)->qlist, &names, &n));
  MatTestCheck(n > 4, "there are names");
  for (int k = 0; k < n; k++)
    for (int q = 0; q < k; q++) {
      PetscBool same;

      if (!names[k] || !names[q]) continue; /* of a function that was taken away */
      PetscCall(PetscStrcmp(names[k], names[q], &same));
      if (same) MatTestCheck(PETSC_FALSE, names[k]);
    }
  PetscCall(PetscFree(names));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* bits of before: 1 a name of the program's own, 2 one of ours, 4 one of the parent's is its own, 8 one is taken
   away */
static PetscErrorCode RunCase(PetscInt before, PetscBool twice)
{
  Mat A;
  void (*f[NAMES])(void), (*g[NAMES])(void);

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 3, 3, PETSC_DETERMINE, PETSC_DETERMINE));
  if (before & 1) PetscCall(PetscObjectComposeFunction((PetscObject)A, "OfPrograms_C", OfPrograms));
  PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MatSetUp(A));
  if (before & 2) PetscCall(PetscObjectComposeFunction((PetscObject)A, Names[0], OfPrograms));
  if (before & 4) PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", OfPrograms));
  if (before & 8) PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatIsTranspose_C", NULL));
  for (PetscInt i = A->rmap->rstart; i < A->rmap->rend; i++) PetscCall(MatSetValue(A, i, i, 2, INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(Look(A, f));
  for (int k = 0; k <= (int)twice; k++) {
    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INPLACE_MATRIX, &A));
    PetscCall(Look(A, g));
    MatTestCheck(g[0] && g[0] != (void (*)(void))OfPrograms, "products find ours");
    MatTestCheck(g[9] && g[9] != f[9], "coordinates find ours");
    PetscCall(CheckOnce(A));
    PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
    PetscCall(Look(A, g));
    for (int n = 0; n < NAMES; n++) {
      /* what ours was composed over, under a name that is ours alone, is not kept */
      if ((before & 2) && !n)
        MatTestCheck(!g[n] || g[n] == (void (*)(void))OfPrograms, "nothing of ours is left on a MATAIJ");
      else if ((before & 4) && n == 10)
        MatTestCheck(g[n] == (void (*)(void))OfPrograms || g[n] == Plain[n], "a name is there as before");
      else
        MatTestCheck(g[n] == f[n], "a function is what it was");
    }
    PetscCall(CheckOnce(A));
  }
  if (before & 1) {
    void (*own)(void) = NULL;

    PetscCall(PetscObjectQueryFunction((PetscObject)A, "OfPrograms_C", &own));
    MatTestCheck(own == (void (*)(void))OfPrograms, "the program's function is there");
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckNames(Mat A, Mat P, Mat D, PetscBool ours)
{
  const char **names;
  int          n;

  PetscFunctionBeginUser;
  PetscCall(CheckOnce(A));
  PetscCall(PetscFunctionListGet(((PetscObject)P)->qlist, &names, &n));
  MatTestCheck(n > 4, "there are names");
  for (int k = 0; k < n; k++) {
    void (*f)(void) = NULL, (*plain)(void) = NULL, (*dense)(void) = NULL;
    PetscBool over = PETSC_FALSE;

    if (!names[k]) continue;
    for (int q = 0; q < NAMES && !over; q++) PetscCall(PetscStrcmp(names[k], Names[q], &over));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, names[k], &f));
    PetscCall(PetscObjectQueryFunction((PetscObject)P, names[k], &plain));
    PetscCall(PetscObjectQueryFunction((PetscObject)D, names[k], &dense));
    if (ours)
      MatTestCheck(over ? (PetscBool)(!f == !plain) : (PetscBool)(f == plain), names[k]);
    else
      MatTestCheck(f == dense, names[k]);
  }
  PetscCall(PetscFree(names));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Made of the type, the k-th time. Bits of before: 1 a name of the program's own was there, 2 so is one of the
   parent's, 4 the matrix was a dense one, 8 the program holds it when it goes. */
static PetscErrorCode RunMade(PetscInt before, Mat P, Mat D)
{
  Mat A, B;
  void (*own)(void) = NULL;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 3, 3, PETSC_DETERMINE, PETSC_DETERMINE));
  if (before & 1) PetscCall(PetscObjectComposeFunction((PetscObject)A, "OfPrograms_C", OfPrograms));
  if (before & 2) PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", OfPrograms));
  if (before & 4) PetscCall(MatSetType(A, MATDENSE));
  PetscCall(MatSetType(A, "aijhybridgpu"));
  PetscCall(CheckNames(A, P, D, PETSC_TRUE));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "OfPrograms_C", OfPrograms));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "OfPrograms_C", &own));
  MatTestCheck(own == (void (*)(void))OfPrograms, "a program composes its own");
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "OfPrograms_C", NULL));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "OfPrograms_C", &own));
  MatTestCheck(!own, "and takes it away");
  if (before & 8) {
    PetscCall(PetscObjectReference((PetscObject)A));
    B = A;
    PetscCall(MatDestroy(&B));
    PetscCall(CheckNames(A, P, D, PETSC_TRUE));
  }
  PetscCall(MatSetType(A, MATDENSE));
  PetscCall(CheckNames(A, P, D, PETSC_FALSE));
  PetscCall(MatSetType(A, "aijhybridgpu"));
  PetscCall(CheckNames(A, P, D, PETSC_TRUE));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt first = 0;
  Mat      A, P, D;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Functions by name\n"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, MATAIJ, 3, 3, PETSC_DETERMINE, PETSC_DETERMINE, &A));
  PetscCall(Look(A, Plain));
  PetscCall(MatDestroy(&A));
  for (PetscInt k = 0; k < 16; k++)
    for (int twice = 0; twice < 2; twice++) {
      const PetscInt before = (first + k) % 16;
      char           name[64];

      PetscCall(PetscSNPrintf(name, sizeof(name), "case %" PetscInt_FMT "%s", before, twice ? ", twice" : ""));
      MatTestName = name;
      PetscCall(RunCase(before, (PetscBool)twice));
    }
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, MATAIJ, 3, 3, PETSC_DETERMINE, PETSC_DETERMINE, &P));
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, MATDENSE, 3, 3, PETSC_DETERMINE, PETSC_DETERMINE, &D));
  for (PetscInt k = 0; k < 48; k++) {
    const PetscInt before = k < 8 ? 0 : (first + k) % 16;
    char           name[64];

    PetscCall(PetscSNPrintf(name, sizeof(name), "made, case %" PetscInt_FMT ", %" PetscInt_FMT, before, k));
    MatTestName = name;
    PetscCall(RunMade(before, P, D));
  }
  PetscCall(MatTestDestroy(&P, &D));
  return MatTestEnd();
}

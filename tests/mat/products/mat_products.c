/*
  Products of the type against those of MATAIJ: every MatProductType, first call, reuse with changed values, reuse with
  other matrices of the same pattern, reuse with another pattern, symbolic alone, mixed operands, reuse after the
  result's transpose was formed and used, and results and operands bound to the CPU between the phases.

TEST np=1
TEST np=1 -mat_aijhybridgpu_spgemm rowmerge
TEST np=1 -mat_seqaij_type seqaijhybridgpu
TEST np=2
TEST np=2 @emulated
TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
TEST np=4
*/
#include "mattest.h"

static PetscErrorCode Change(Mat A, PetscScalar alpha)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(A, alpha));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_DEVICE)
/* The result, or an operand, is bound to the CPU between the symbolic and the numeric phase, and free again later: the
   product goes where they are */
static PetscErrorCode CheckBound(MatProductType type, Mat a, Mat b, Mat c, Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  for (int which = 0; which < 3; which++) { /* the result, the first operand, all of them */
    Mat D, E, bound[4];
    int n = 0;

    PetscCall(MatProductCreate(a, b, type == MATPRODUCT_ABC ? c : NULL, &D));
    PetscCall(MatProductCreate(A, B, type == MATPRODUCT_ABC ? C : NULL, &E));
    for (int both = 0; both < 2; both++)
      PetscCall(MatTestSymbolic(type, NULL, both ? E : D));
    if (which != 1) bound[n++] = E;
    if (which > 0) bound[n++] = A;
    if (which == 2) bound[n++] = B;
    if (which == 2 && type == MATPRODUCT_ABC) bound[n++] = C;
    PetscCall(MatProductNumeric(D));
    for (int pass = 0; pass < 3; pass++) {
      for (int k = 0; k < n; k++) PetscCall(MatBindToCPU(bound[k], (PetscBool)(pass != 1)));
      PetscCall(MatProductNumeric(E));
      MatTestCheckSame(E, D, pass == 1 ? "free again" : "bound to the CPU between the phases");
      MatTestBoth(MatScale, A, a, 2.0);
      PetscCall(MatProductNumeric(D));
    }
    for (int k = 0; k < n; k++) PetscCall(MatBindToCPU(bound[k], PETSC_FALSE));
    PetscCall(MatProductNumeric(E));
    MatTestCheckSame(E, D, "free at last");
    MatTestBoth(MatScale, A, a, 0.125);
    PetscCall(MatTestDestroy(&D, &E));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static const char *const TypeNames[] = {"AB", "AtB", "ABt", "PtAP", "RARt", "ABC"};

static PetscErrorCode Multiply(int which, Mat A, Mat B, Mat C, MatReuse reuse, Mat *D)
{
  PetscFunctionBeginUser;
  switch (which) {
  case 0:
    PetscCall(MatMatMult(A, B, reuse, PETSC_DEFAULT, D));
    break;
  case 1:
    PetscCall(MatTransposeMatMult(A, B, reuse, PETSC_DEFAULT, D));
    break;
  case 2:
    PetscCall(MatMatTransposeMult(A, B, reuse, PETSC_DEFAULT, D));
    break;
  case 3:
    PetscCall(MatPtAP(A, B, reuse, PETSC_DEFAULT, D));
    break;
  case 4:
    PetscCall(MatRARt(A, B, reuse, PETSC_DEFAULT, D));
    break;
  default:
    PetscCall(MatMatMatMult(A, B, C, reuse, PETSC_DEFAULT, D));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the product again: with changed values of all operands, of none, and of one at a time */
static PetscErrorCode CheckAgain(int which, Mat a[3], Mat h[3], Mat *D, Mat *E)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    MatTestBoth(Change, a[k], h[k], 1.0 + 0.5 * k);
  }
  PetscCall(Multiply(which, a[0], a[1], a[2], MAT_REUSE_MATRIX, D));
  PetscCall(Multiply(which, h[0], h[1], h[2], MAT_REUSE_MATRIX, E));
  MatTestCheckSame(*E, *D, "reuse with changed values");
  MatTestCheckMultTranspose(*E, *D, "the result transposed, after the product was computed again");
  /* again as it is, then new values in one operand alone: what was made of the others' values may be used again,
     nothing else */
  PetscCall(Multiply(which, h[0], h[1], h[2], MAT_REUSE_MATRIX, E));
  MatTestCheckSame(*E, *D, "reuse with the same values");
  for (int k = 0; k < 6; k++) {
    PetscCall(Change(a[k % 3], k < 3 ? 2.0 : 0.5));
    PetscCall(Change(h[k % 3], k < 3 ? 2.0 : 0.5));
    PetscCall(Multiply(which, a[0], a[1], a[2], MAT_REUSE_MATRIX, D));
    PetscCall(Multiply(which, h[0], h[1], h[2], MAT_REUSE_MATRIX, E));
    MatTestCheckSame(*E, *D, "reuse with changed values of one operand");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* other matrices of the same pattern, then of another one, then MATAIJ beside ours */
static PetscErrorCode CheckOthers(int which, Mat a[3], Mat other[3], Mat *D, Mat *E)
{
  PetscFunctionBeginUser;
  PetscCall(Change(other[0], -3.0));
  PetscCall(Multiply(which, other[0], other[1], other[2], MAT_REUSE_MATRIX, E));
  PetscCall(MatScale(a[0], -3.0));
  for (int k = 1; k < 3; k++) PetscCall(MatScale(a[k], 1.0 / (1.0 + 0.5 * k)));
  PetscCall(Multiply(which, a[0], a[1], a[2], MAT_REUSE_MATRIX, D));
  MatTestCheckSame(*E, *D, "reuse with other matrices of the same pattern");
  { /* another pattern: one entry more */
    Mat      B;
    PetscInt r = 3;

    for (int k = 0; k < 2; k++) {
      Mat *m = k ? &other[1] : &a[1];
      PetscCall(MatTestLetIn(*m));
      PetscCall(MatSetValue(*m, r, 5, 7.0, INSERT_VALUES));
      PetscCall(MatTestAssemble(*m));
    }
    PetscCall(Multiply(which, other[0], other[1], other[2], MAT_REUSE_MATRIX, E));
    PetscCall(Multiply(which, a[0], a[1], a[2], MAT_INITIAL_MATRIX, &B));
    MatTestCheckSame(*E, B, "reuse with another pattern");
    PetscCall(MatDestroy(&B));
  }
  /* mixed operands: MATAIJ with ours, both ways */
  if (which == 0 || which == 3) {
    Mat F;
    PetscCall(MatDestroy(D));
    PetscCall(Multiply(which, a[0], a[1], a[2], MAT_INITIAL_MATRIX, D));
    PetscCall(Multiply(which, a[0], other[1], a[2], MAT_INITIAL_MATRIX, &F));
    MatTestCheckSame(F, *D, "mixed: MATAIJ first");
    PetscCall(MatDestroy(&F));
    PetscCall(MatScale(other[0], 1.0));
    PetscCall(Multiply(which, other[0], a[1], a[2], MAT_INITIAL_MATRIX, &F));
    MatTestCheckSame(F, *D, "mixed: MATAIJ second");
    PetscCall(MatDestroy(&F));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one kind of product, in all that may be done with it */
static PetscErrorCode CheckProduct(int which, PetscMPIInt size)
{
  const PetscInt n[4] = {61, 40, 61, 33};
  PetscInt       shape[3][2];
  Mat            a[3], h[3], other[3], D = NULL, E = NULL;

  PetscFunctionBeginUser;
  MatTestName = TypeNames[which];
  /* rows, columns of the operands */
  shape[0][0] = n[0];
  shape[0][1] = which == 1 ? n[1] : (which == 3 || which == 4 ? n[0] : n[2]);
  shape[1][0] = which == 2 || which == 4 ? n[3] : (which == 1 ? n[0] : n[2]);
  shape[1][1] = which == 2 ? n[2] : (which == 4 ? n[0] : n[1]);
  if (which == 3) shape[1][0] = n[0];
  shape[2][0] = n[1];
  shape[2][1] = n[3];
  for (int k = 0; k < 3; k++) {
    PetscCall(MatTestRandom(shape[k][0], shape[k][1], 4, MatTestSeed + 10 * which + k, &a[k]));
    PetscCall(MatConvert(a[k], "aijhybridgpu", MAT_INITIAL_MATRIX, &h[k]));
    PetscCall(MatDuplicate(h[k], MAT_COPY_VALUES, &other[k]));
  }
  PetscCall(Multiply(which, a[0], a[1], a[2], MAT_INITIAL_MATRIX, &D));
  PetscCall(Multiply(which, h[0], h[1], h[2], MAT_INITIAL_MATRIX, &E));
  MatTestCheckSame(E, D, "first product");
  if (size == 1) {
    PetscBool ours;
    PetscCall(PetscObjectTypeCompare((PetscObject)E, "seqaijhybridgpu", &ours));
    MatTestCheck(ours, "the result is of the type");
  }
  /* the result in use: its transpose, a product with a vector (on the device by an explicit transpose that it keeps,
     whose values must follow its own), then the product again */
  {
    Mat T;
    PetscCall(MatTranspose(E, MAT_INITIAL_MATRIX, &T));
    PetscCall(MatDestroy(&T));
    MatTestCheckMultTranspose(E, D, "the result transposed");
  }
  PetscCall(CheckAgain(which, a, h, &D, &E));
#if defined(PETSC_HAVE_DEVICE)
  if (size == 1) {
    const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC};

    PetscCall(CheckBound(types[which], a[0], a[1], a[2], h[0], h[1], h[2]));
  }
#endif
  if (size == 1) PetscCall(CheckOthers(which, a, other, &D, &E));
  PetscCall(MatTestDestroy(&D, &E));
  for (int k = 0; k < 3; k++) PetscCall(MatTestDestroy(&a[k], &h[k], &other[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MAT_FORCE_DIAGONAL_ENTRIES: the product, and a whole diagonal; then the same values in another pattern of the
   result */
static PetscErrorCode CheckForcedDiagonal(void)
{
  const PetscInt shapes[][2] = {
    {40, 40},
    {30, 55},
    {50, 21}
  };

  PetscFunctionBeginUser;
  MatTestName = "forced diagonal";
  for (int k = 0; k < 3; k++) {
    Mat      A, B, HA, HB, D, E, X;
    PetscInt missing = 0;

    PetscCall(MatTestRandom(shapes[k][0], 30, 3, MatTestSeed + k, &A));
    PetscCall(MatTestRandom(30, shapes[k][1], 2, MatTestSeed + 7 + k, &B));
    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &HA));
    PetscCall(MatConvert(B, "aijhybridgpu", MAT_INITIAL_MATRIX, &HB));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(MatProductCreate(HA, HB, NULL, &E));
    PetscCall(MatProductSetType(E, MATPRODUCT_AB));
    PetscCall(MatSetOption(E, MAT_FORCE_DIAGONAL_ENTRIES, PETSC_TRUE));
    PetscCall(MatProductSetFromOptions(E));
    PetscCall(MatProductSymbolic(E));
    for (int pass = 0; pass < 3; pass++) {
      PetscCall(MatProductNumeric(E));
      MatTestCheckSame(E, D, "the product");
      MatTestBoth(MatScale, HA, D, 2.0);
      /* the result's pattern is not the product's any more; the parent's way forgets the option */
      if (pass == 1 && shapes[k][0] == shapes[k][1]) {
        PetscCall(MatTranspose(E, MAT_INPLACE_MATRIX, &E));
        PetscCall(MatSetOption(E, MAT_FORCE_DIAGONAL_ENTRIES, PETSC_TRUE));
      }
    }
    for (PetscInt r = 0; r < PetscMin(shapes[k][0], shapes[k][1]); r++) {
      PetscInt        n, found = 0;
      const PetscInt *cols;

      PetscCall(MatGetRow(E, r, &n, &cols, NULL));
      for (PetscInt c = 0; c < n; c++) found += cols[c] == r;
      missing += !found;
      PetscCall(MatRestoreRow(E, r, &n, &cols, NULL));
    }
    MatTestCheck(missing == 0, "all of the diagonal");
    /* of a plain product as well: a sum with another pattern, then the product again */
    PetscCall(MatTestDestroy(&E, &D));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(MatMatMult(HA, HB, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
    PetscCall(MatTestRandom(shapes[k][0], shapes[k][1], 2, MatTestSeed + 17 + k, &X));
    PetscCall(MatConvert(X, "aijhybridgpu", MAT_INPLACE_MATRIX, &X));
    PetscCall(MatAXPY(E, 1.0, X, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatMatMult(HA, HB, MAT_REUSE_MATRIX, PETSC_DEFAULT, &E));
    PetscCall(MatScale(D, 8.0));
    MatTestCheckSame(E, D, "again, after the result got another pattern");
    PetscCall(MatTestDestroy(&A, &B, &HA, &HB, &D, &E, &X));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* dense operands go to the parent's functions */
static PetscErrorCode CheckDense(void)
{
  Mat A, H, B, D, E;

  PetscFunctionBeginUser;
  MatTestName = "dense";
  PetscCall(MatTestRandom(30, 20, 3, MatTestSeed, &A));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, 20, 5, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  PetscCall(MatMatMult(H, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
  MatTestCheckSame(E, D, "sparse times dense");
  PetscCall(MatTestDestroy(&A, &H, &B, &D, &E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An option's value as MATAIJ takes it: in any case, and none is the first one. A name of ours too. */
static PetscErrorCode CheckNames(void)
{
  static const char *const names[] = {"", "Scalable", "HASH"};
  Mat                      A, H, D, E;

  PetscFunctionBeginUser;
  MatTestName = "names of algorithms";
  PetscCall(MatTestRandom(30, 30, 3, MatTestSeed, &A));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  for (int k = 0; k < 6; k++) {
    const char *const option = k % 2 ? "-matptap_via" : "-matmatmult_via";

    PetscCall(MatTestOption((PetscBool)(k < 4), option, names[k / 2])); /* MATAIJ does not know the last one */
    PetscCall(Multiply(k % 2 ? 3 : 0, A, A, NULL, MAT_INITIAL_MATRIX, &D));
    PetscCall(MatTestOption(PETSC_TRUE, option, names[k / 2]));
    PetscCall(Multiply(k % 2 ? 3 : 0, H, H, NULL, MAT_INITIAL_MATRIX, &E));
    PetscCall(MatTestOption(PETSC_FALSE, option, NULL));
    MatTestCheckSame(E, D, names[k / 2]);
    PetscCall(MatTestDestroy(&D, &E));
  }
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Products of MATAIJHYBRIDGPU against MATAIJ\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  for (int which = 0; which < 6; which++)
    /* MATAIJ has no parallel ABt; RARt is the parent's */
    if (size == 1 || (which != 2 && which != 4)) PetscCall(CheckProduct(which, size));
  if (size == 1) PetscCall(CheckForcedDiagonal());
  PetscCall(CheckDense());
  PetscCall(CheckNames());
  return MatTestEnd();
}

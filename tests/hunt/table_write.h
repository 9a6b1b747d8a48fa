/* table_write.h: the operations of hunt_table that write a matrix, and those on factors of it */
#ifndef UNTRIED_WRITE_H
#define UNTRIED_WRITE_H
#include "table.h"

static PetscErrorCode BlockedLocal(Hunt *h, int k, Mat A)
{
  const PetscInt r[2] = {0, 1}, c[2] = {1, 3};
  PetscScalar    v[4] = {1, 2, 3, 4};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(Mapping(A));
  PetscCall(MatSetValuesBlockedLocal(A, 2, r, 2, c, v, ADD_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* also of the next process's row, through the mapping */
static PetscErrorCode ValuesLocal(Hunt *h, int k, Mat A)
{
  const PetscInt r[2] = {0, A->rmap->n - (MatTestSize() == 1)}, c[3] = {2, 1, 0};
  PetscScalar    v[6] = {1, 2, 3, 4, 5, 6};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(Mapping(A));
  PetscCall(MatSetValuesLocal(A, 2, r, 3, c, v, ADD_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowLocal(Hunt *h, int k, Mat A)
{
  PetscScalar v[ROWS];

  PetscFunctionBeginUser;
  for (int q = 0; q < ROWS; q++) v[q] = 1.0 + q;
  PetscCall(Mapping(A));
  PetscCall(MatSetValuesRowLocal(A, 1, v));
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ValuesIS(Hunt *h, int k, Mat A)
{
  PetscInt    start, end;
  IS          rows, columns;
  PetscScalar v[4] = {1, 2, 3, 4};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 2, start, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 2, 3, 7, &columns));
  PetscCall(MatSetValuesIS(A, rows, columns, v, INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Stencils(Hunt *h, int k, Mat A)
{
  const PetscInt dims[1] = {A->rmap->n}, starts[1] = {0};
  MatStencil     row = {
                   0, 0, 1, 0
  },
             columns[2] = {{0, 0, 1, 0}, {0, 0, 2, 0}};
  PetscScalar v[2]      = {7, 8};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(Mapping(A));
  PetscCall(MatSetStencil(A, 1, dims, starts, 1));
  PetscCall(MatSetValuesStencil(A, 1, &row, 2, columns, v, INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(MatSetValuesBlockedStencil(A, 1, &row, 2, columns, v, ADD_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(NoteMat(h, k, A));
  PetscCall(MatZeroRowsStencil(A, 1, &row, 2.0, NULL, NULL));
  PetscCall(NoteMat(h, k, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroLocal(Hunt *h, int k, Mat A)
{
  const PetscInt rows[2] = {1, 3};
  Vec            x, b;

  PetscFunctionBeginUser;
  PetscCall(Mapping(A));
  PetscCall(Beside(A, PETSC_FALSE, &x));
  PetscCall(Beside(A, PETSC_TRUE, &b));
  PetscCall(MatZeroRowsLocal(A, 2, rows, 3.0, x, b));
  PetscCall(NoteVec(h, k, b));
  PetscCall(MatTestDestroy(&x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows that other processes have, and the columns with them */
static PetscErrorCode ZeroBoth(Hunt *h, int k, Mat A, PetscBool local)
{
  PetscInt start, end, rows[2] = {1, 3};
  IS       is;
  Vec      x, b;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  if (!local) {
    rows[0] = (start + 4) % A->rmap->N;
    rows[1] = (end + 2) % A->rmap->N;
  }
  PetscCall(Mapping(A));
  PetscCall(Beside(A, PETSC_FALSE, &x));
  PetscCall(Beside(A, PETSC_TRUE, &b));
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, 2, rows, PETSC_COPY_VALUES, &is));
  if (local)
    PetscCall(MatZeroRowsColumnsLocalIS(A, is, 3.0, x, b));
  else
    PetscCall(MatZeroRowsColumnsIS(A, is, 3.0, x, b));
  PetscCall(NoteVec(h, k, b));
  PetscCall(MatTestDestroy(&is, &x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

WAY(ZeroColumns, ZeroBoth, PETSC_FALSE)
WAY(ZeroColumnsLocal, ZeroBoth, PETSC_TRUE)

/* rows of other processes, without their diagonal entries, the pattern kept */
static PetscErrorCode ZeroOthers(Hunt *h, int k, Mat A)
{
  PetscInt start, end, rows[2];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  rows[0] = (start + 4) % A->rmap->N;
  rows[1] = (end + 2) % A->rmap->N;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatZeroRows(A, 2, rows, 3.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ScaleLocal(Hunt *h, int k, Mat A)
{
  Vec v;

  PetscFunctionBeginUser;
  PetscCall(Mapping(A));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, A->cmap->n + (MatTestSize() > 1), &v));
  PetscCall(VecSet(v, 1.5));
  PetscCall(MatDiagonalScaleLocal(A, v));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Infinite(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
#if PETSC_VERSION_LT(3, 26, 0)
  PetscCall(MatSetInf(A));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockSizes(Hunt *h, int k, Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &B));
  PetscCall(MatSetBlockSize(B, 3));
  PetscCall(MatSetBlockSizesFromMats(A, B, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VariableBlocks(Hunt *h, int k, Mat A)
{
  PetscInt        sizes[ROWS], n = 0;
  const PetscInt *found;
  PC              pc;
  Vec             x, y;

  PetscFunctionBeginUser;
  for (PetscInt r = 0; r < A->rmap->n; r += 3) sizes[n++] = 3;
  PetscCall(MatSetVariableBlockSizes(A, n, sizes));
  PetscCall(MatGetVariableBlockSizes(A, &n, &found));
  for (PetscInt q = 0; q < n; q++) Note(h, k, (PetscReal)found[q]);
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetType(pc, PCVPBJACOBI));
  PetscCall(PCSetUp(pc));
  PetscCall(Beside(A, PETSC_FALSE, &x));
  PetscCall(Beside(A, PETSC_TRUE, &y));
  PetscCall(PCApply(pc, x, y));
  PetscCall(NoteVec(h, k, y));
  PetscCall(MatTestDestroy(&x, &y, &pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values in the order of the CSR that the matrix was given */
static PetscErrorCode UpdateArray(Hunt *h, int k, Mat A)
{
  PetscInt    *i, *j, n = 0, start, end;
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCheck(MatTestSize() > 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc3(end - start + 1, &i, 5 * (end - start), &j, 5 * (end - start), &v));
  i[0] = 0;
  for (PetscInt r = start; r < end; r++) {
    n += PairsColumns(WIDE, r, A->cmap->N, j + n);
    i[r - start + 1] = n;
  }
  for (int round = 0; round < 3; round++) {
    for (PetscInt q = 0; q < n; q++) v[q] = 1.0 + round + (PetscReal)(q % 7);
    if (!round)
      PetscCall(MatMPIAIJSetPreallocationCSR(A, i, j, v));
    else if (round == 1)
      PetscCall(MatUpdateMPIAIJWithArray(A, v));
    else
      PetscCall(MatUpdateMPIAIJWithArrays(A, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N, i, j, v));
    PetscCall(NoteMat(h, k, A));
    PetscCall(MatScale(A, 2.0));
    PetscCall(NoteMat(h, k, A));
  }
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the pattern collected first, then the matrix allocated by it */
static PetscErrorCode Preallocator(Hunt *h, int k, Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, MATPREALLOCATOR, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N, &B));
  PetscCall(MatSetUp(B));
  PetscCall(PairsWrite(B, WIDE, 1));
  PetscCall(MatPreallocatorPreallocate(B, PETSC_TRUE, A));
  PetscCall(PairsWrite(A, WIDE, 2));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of other processes by MatSetValues(), thrice, the stash told of its size */
static PetscErrorCode Stash(Hunt *h, int k, Mat A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatStashSetInitialSize(A, 20, 0));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (int round = 0; round < 3; round++) {
    for (PetscInt q = 0; q < 4; q++) PetscCall(MatSetValue(A, (end + q) % A->rmap->N, (end + 2 * q + round) % A->cmap->N, 1.0 + q, ADD_VALUES));
    PetscCall(MatAssemblyBegin(A, round == 1 ? MAT_FLUSH_ASSEMBLY : MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, round == 1 ? MAT_FLUSH_ASSEMBLY : MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* coordinates by local numbers, some of them the next process's row */
static PetscErrorCode LocalCoordinates(Hunt *h, int k, Mat A)
{
  PetscInt    i[40], j[40], n = 0;
  PetscScalar v[40];

  PetscFunctionBeginUser;
  PetscCall(Mapping(A));
  for (PetscInt r = 0; r < A->rmap->n + (MatTestSize() > 1) && n < 38; r++)
    for (PetscInt q = 0; q < 2; q++, n++) {
      i[n] = n == 3 ? -1 : r;
      j[n] = (r + 2 * q) % A->cmap->n;
      v[n] = 1.0 + (PetscReal)n;
    }
  PetscCall(MatSetPreallocationCOOLocal(A, n, i, j));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscCall(NoteMat(h, k, A));
  PetscCall(MatSetValuesCOO(A, v, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Flags(Hunt *h, int k, Mat A)
{
  Mat       B;
  PetscBool flag = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_SYMMETRY_ETERNAL, PETSC_TRUE));
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &B));
  PetscCall(MatPropagateSymmetryOptions(A, B));
  PetscCall(MatDestroy(&h->made.m[k]));
  h->made.m[k] = B;
  PetscCall(MatSetErrorIfFailure(A, PETSC_TRUE));
  PetscCall(MatSetBindingPropagates(A, PETSC_TRUE));
  PetscCall(MatGetBindingPropagates(A, &flag));
  Note(h, k, flag);
  PetscCall(MatAppendOptionsPrefix(A, "one_"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MoreRoom(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  PetscCheck(MatTestSize() == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  PetscCall(MatSeqAIJSetTotalPreallocation(A, 200));
  PetscCall(PairsWrite(A, WIDE, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors: sequential by PETSc, or of other packages where there are any */

static PetscErrorCode Solves(Hunt *h, int k, Mat F, PetscBool lu)
{
  Vec      b, x, y;
  Mat      B, X, S;
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(Beside(F, PETSC_TRUE, &b));
  PetscCall(Beside(F, PETSC_FALSE, &x));
  PetscCall(Beside(F, PETSC_FALSE, &y));
  PetscCall(MatSolve(F, b, x));
  PetscCall(NoteVec(h, k, x));
  PetscCall(MatSolveAdd(F, b, y, x));
  PetscCall(NoteVec(h, k, x));
  PetscCall(MatSolveTranspose(F, b, x));
  PetscCall(NoteVec(h, k, x));
  PetscCall(MatSolveTransposeAdd(F, b, y, x));
  PetscCall(NoteVec(h, k, x));
  if (!lu) {
    PetscCall(MatForwardSolve(F, b, x));
    PetscCall(NoteVec(h, k, x));
    PetscCall(MatBackwardSolve(F, b, x));
    PetscCall(NoteVec(h, k, x));
  }
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, F->rmap->n, PETSC_DECIDE, F->rmap->N, 3, NULL, &B));
  PetscCall(MatGetOwnershipRange(B, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt c = 0; c < 3; c++) PetscCall(MatSetValue(B, r, c, 1.0 + (PetscReal)((r + c) % 5), INSERT_VALUES));
  PetscCall(MatTestAssemble(B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MatMatSolve(F, B, X));
  PetscCall(NoteMat(h, k, X));
  if (lu && MatTestSize() == 1) {
    PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &S));
    PetscCall(MatMatSolve(F, S, X));
    PetscCall(NoteMat(h, k, X));
    PetscCall(MatDestroy(&S));
  }
  PetscCall(MatTestDestroy(&B, &X, &b, &x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FactorIn(Hunt *h, int k, Mat A, const char *package, MatFactorType type)
{
  IS            rows, columns;
  MatFactorInfo info;
  Mat           F, D;
  PetscBool     lu = (PetscBool)(type == MAT_FACTOR_LU || type == MAT_FACTOR_ILU);

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &D));
  PetscCall(MatShift(D, 20.0));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 3;
  PetscCall(MatGetOrdering(D, MATORDERINGNATURAL, &rows, &columns));
  PetscCall(MatGetFactor(D, package, type, &F));
  PetscCheck(F, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  for (int again = 0; again < 2; again++) {
    switch (type) {
    case MAT_FACTOR_LU: PetscCall(again ? PETSC_SUCCESS : MatLUFactorSymbolic(F, D, rows, columns, &info)); break;
    case MAT_FACTOR_ILU: PetscCall(again ? PETSC_SUCCESS : MatILUFactorSymbolic(F, D, rows, columns, &info)); break;
    case MAT_FACTOR_ICC: PetscCall(again ? PETSC_SUCCESS : MatICCFactorSymbolic(F, D, rows, &info)); break;
    default: PetscCall(again ? PETSC_SUCCESS : MatCholeskyFactorSymbolic(F, D, rows, &info)); break;
    }
    if (lu)
      PetscCall(MatLUFactorNumeric(F, D, &info));
    else
      PetscCall(MatCholeskyFactorNumeric(F, D, &info));
    PetscCall(Solves(h, k, F, lu));
    PetscCall(MatTestUse(D));
    PetscCall(MatScale(D, 2.0));
    PetscCall(MatScale(D, 0.75));
  }
  if (type == MAT_FACTOR_CHOLESKY) {
    PetscInt neg, zero, pos;

    PetscCall(MatGetInertia(F, &neg, &zero, &pos));
    Note(h, k, (PetscReal)(neg + 2 * zero + 3 * pos));
  }
  PetscCall(MatTestDestroy(&F, &D, &rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

WAY(FactorLU, FactorIn, MATSOLVERPETSC, MAT_FACTOR_LU)
WAY(FactorILU, FactorIn, MATSOLVERPETSC, MAT_FACTOR_ILU)
WAY(FactorICC, FactorIn, MATSOLVERPETSC, MAT_FACTOR_ICC)
WAY(FactorCholesky, FactorIn, MATSOLVERPETSC, MAT_FACTOR_CHOLESKY)
WAY(FactorMumps, FactorIn, MATSOLVERMUMPS, MAT_FACTOR_LU)
WAY(FactorMumpsCholesky, FactorIn, MATSOLVERMUMPS, MAT_FACTOR_CHOLESKY)
WAY(FactorSuperLU, FactorIn, MATSOLVERSUPERLU, MAT_FACTOR_LU)
WAY(FactorSuperLUDist, FactorIn, MATSOLVERSUPERLU_DIST, MAT_FACTOR_LU)
WAY(FactorUmfpack, FactorIn, MATSOLVERUMFPACK, MAT_FACTOR_LU)
WAY(FactorKLU, FactorIn, MATSOLVERKLU, MAT_FACTOR_LU)
WAY(FactorCholmod, FactorIn, MATSOLVERCHOLMOD, MAT_FACTOR_CHOLESKY)

/* the matrix becomes its factor, and a matrix again */
static PetscErrorCode InPlace(Hunt *h, int k, Mat A, int way)
{
  IS            rows, columns;
  MatFactorInfo info;
  Vec           b, x;

  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&h->made.m[k]));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &h->made.m[k]));
  A = h->made.m[k];
  PetscCall(MatTestUse(A));
  PetscCall(MatShift(A, 20.0));
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &rows, &columns));
  if (way == 0) PetscCall(MatLUFactor(A, rows, columns, &info));
  if (way == 1) PetscCall(MatILUFactor(A, rows, columns, &info));
  if (way == 2) PetscCall(MatCholeskyFactor(A, rows, &info));
  if (way == 3) PetscCall(MatICCFactor(A, rows, &info));
  PetscCall(Beside(A, PETSC_TRUE, &b));
  PetscCall(Beside(A, PETSC_FALSE, &x));
  PetscCall(MatSolve(A, b, x));
  PetscCall(NoteVec(h, k, x));
  PetscCall(MatSetUnfactored(A));
  PetscCall(MatMult(A, b, x));
  PetscCall(NoteVec(h, k, x));
  PetscCall(MatTestDestroy(&b, &x, &rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

WAY(InPlaceLU, InPlace, 0)
WAY(InPlaceILU, InPlace, 1)
WAY(InPlaceCholesky, InPlace, 2)
WAY(InPlaceICC, InPlace, 3)
#endif

/* read.h: the hunter's operations that read a matrix; what they find is compared. */
#ifndef HUNT_READ_H
#define HUNT_READ_H
#include "hunt.h"

static PetscErrorCode Norms(Hunt *h, int k, Mat A)
{
  const NormType types[] = {NORM_1, NORM_INFINITY, NORM_FROBENIUS};
  PetscReal      norm, *norms;

  PetscFunctionBeginUser;
  PetscCall(MatNorm(A, types[h->r[0] % 3], &norm));
  Result(h, k, norm);
  PetscCall(PetscMalloc1(h->N, &norms));
  PetscCall(MatGetColumnNorms(A, h->r[1] % 3 ? h->r[1] % 3 == 1 ? NORM_1 : NORM_2 : NORM_INFINITY, norms));
  for (PetscInt c = 0; c < h->N; c++) Result(h, k, norms[c]);
  PetscCall(PetscFree(norms));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Rows(Hunt *h, int k, Mat A)
{
  PetscInt n, *where = NULL;

  PetscFunctionBeginUser;
  PetscCall(Beside(A, PETSC_TRUE, &h->x[k]));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(PetscCalloc1(n, &where));
  switch (h->r[0] % 7) {
  case 0: PetscCall(MatGetDiagonal(A, h->x[k])); break;
  case 1: PetscCall(MatGetRowSum(A, h->x[k])); break;
  case 2: PetscCall(MatGetRowMax(A, h->x[k], h->N ? where : NULL)); break;
  case 3: PetscCall(MatGetRowMin(A, h->x[k], h->N ? where : NULL)); break;
  case 4: PetscCall(MatGetRowMaxAbs(A, h->x[k], h->N ? where : NULL)); break;
  case 5: PetscCall(MatGetRowMinAbs(A, h->x[k], h->N ? where : NULL)); break;
  default: {
    PetscScalar trace;

    if (h->M == h->N) PetscCall(MatGetTrace(A, &trace));
    if (h->M == h->N) Result(h, k, trace);
  }
  }
  for (PetscInt r = 0; r < n; r++) Result(h, k, (PetscReal)where[r]);
  PetscCall(PetscFree(where));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has each entry of A, of one process, one across the diagonal? MATAIJ's MatIsTranspose() reads beyond its arrays where
   one has none, and answers by what lies there. */
static PetscErrorCode AcrossFit(Mat A, PetscBool *fit)
{
  Mat     P, T;
  MatInfo of, both;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &P));
  PetscCall(MatTranspose(P, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatGetInfo(P, MAT_LOCAL, &of));
  *fit = (PetscBool)(P->rmap->n == P->cmap->n);
  if (*fit) {
    PetscCall(MatAXPY(T, 1.0, P, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatGetInfo(T, MAT_LOCAL, &both));
    *fit = (PetscBool)(both.nz_used == of.nz_used);
  }
  PetscCall(MatTestDestroy(&P, &T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Questions(Hunt *h, int k, Mat A)
{
  PetscBool flag  = PETSC_FALSE;
  PetscInt  where = -5;
  IS        is;
#if PETSC_VERSION_LT(3, 24, 0)
  PetscBool missing;
#endif

  PetscFunctionBeginUser;
  switch (h->r[0] % 8) {
  /* a parallel one answers the first two by MatIsTranspose() of its blocks, too */
  case 0:
  case 1:
    if (Size > 1) break;
    PetscCall(AcrossFit(A, &flag));
    if (!flag) break;
    if (h->r[0] % 8)
      PetscCall(MatIsHermitian(A, h->r[1] % 2 ? 0.0 : 1e-3, &flag));
    else
      PetscCall(MatIsSymmetric(A, h->r[1] % 2 ? 0.0 : 1e-3, &flag));
    break;
  case 2: PetscCall(MatIsStructurallySymmetric(A, &flag)); break;
  case 4: PetscCall(MatEqual(A, h->q->m[k], &flag)); break;
#if PETSC_VERSION_LT(3, 24, 0)
  case 5:
    if (h->M == h->N) PetscCall(MatMissingDiagonal(A, &missing, &where));
    if (h->M == h->N) Result(h, k, missing ? 1.0 : 0.0);
    break;
#endif
  case 6:
    PetscCall(MatFindNonzeroRows(A, &is));
    if (is) {
      PetscCall(ISGetLocalSize(is, &where));
      PetscCall(ISDestroy(&is));
    }
    break;
  default:
    if (h->M == h->N) {
      PetscCall(MatFindZeroDiagonals(A, &is));
      PetscCall(ISGetLocalSize(is, &where));
      PetscCall(ISDestroy(&is));
    }
  }
  Result(h, k, flag ? 1.0 : 0.0);
  Result(h, k, (PetscReal)where);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* products with vectors, some that overlap; vectors that do not fit are errors */
static PetscErrorCode Mults(Hunt *h, int k, Mat A)
{
  Vec            l, r, y;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCall(Beside(A, PETSC_TRUE, &l));
  PetscCall(Beside(A, PETSC_FALSE, &r));
  PetscCall(Beside(A, (PetscBool)(h->r[0] % 8 == 0 || h->r[0] % 8 == 1 || h->r[0] % 8 == 2), &y));
  if (Wild && h->r[1] % 7 == 0 && h->end > h->start) {
    PetscCall(VecSetValue(l, h->start, 1.0 / (PetscReal)(h->r[0] - h->r[0]), INSERT_VALUES));
  }
  PetscCall(VecTestAssemble(l));
  switch (h->r[0] % 8) {
  case 0: ierr = MatMult(A, r, y); break;
  case 1: ierr = MatMultAdd(A, r, l, h->r[2] % 2 ? y : l); break;
  case 2: ierr = MatResidual(A, l, r, y); break;
  case 3: ierr = MatMultTranspose(A, l, y); break;
  case 4: ierr = MatMultTransposeAdd(A, l, r, h->r[2] % 2 ? y : r); break;
  case 5: ierr = MatMultHermitianTranspose(A, l, y); break;
  case 6: ierr = MatMultHermitianTransposeAdd(A, l, r, h->r[2] % 2 ? y : r); break;
  default: ierr = MatMult(A, l, h->r[2] % 2 ? y : l);
  }
  PetscCall(PetscObjectReference((PetscObject)(h->r[2] % 2 ? y : h->r[0] % 8 == 1 ? l
                                                               : h->r[0] % 8 > 2  ? r
                                                                                  : y)));
  h->x[k] = h->r[2] % 2 ? y : h->r[0] % 8 == 1 ? l
                            : h->r[0] % 8 > 2  ? r
                                               : y;
  PetscCall(MatTestDestroy(&l, &r, &y));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* states that change no entry */
static PetscErrorCode States(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  switch (h->r[0] % 6) {
  case 0: PetscCall(MatBindToCPU(A, (PetscBool)(h->r[1] % 2))); break;
  case 1: PetscCall(MatTestAssemble(A)); break;
  case 2: PetscCall(MatSetFromOptions(A)); break;
  case 3: PetscCall(MatSetUp(A)); break;
  case 4: PetscCall(PetscObjectStateIncrease((PetscObject)A)); break;
  default:
    for (PetscInt q = 0; q < h->r[1] % 4; q++) PetscCall(MatTestUse(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* smoothers, inverse blocks, and factors of a duplicate with a diagonal that makes them harmless */
static PetscErrorCode Solvers(Hunt *h, int k, Mat A)
{
  Vec            b;
  Mat            D;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBeginUser;
  if (h->M != h->N || h->M < 2) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &D));
  PetscCall(MatSetOption(D, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatShift(D, 1000.0));
  PetscCall(Beside(D, PETSC_TRUE, &b));
  PetscCall(Beside(D, PETSC_FALSE, &h->x[k]));
  if (h->r[0] % 2)
    ierr = MatSOR(D, b, 1.0, (MatSORType)(h->r[1] % 2 ? SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS : SOR_LOCAL_FORWARD_SWEEP), 0.0, 1, 2, h->x[k]);
  else {
    PC pc;

    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PCSetOperators(pc, D, D));
    PetscCall(PCSetType(pc, Size > 1 ? PCBJACOBI : h->r[1] % 3 == 0 ? PCLU
                                                 : h->r[1] % 3 == 1 ? PCILU
                                                                    : PCJACOBI));
    /* PETSc's nested dissection, its default, reads beyond its arrays for some patterns, of MATAIJ too */
    PetscCall(PCFactorSetMatOrderingType(pc, MATORDERINGRCM));
    PetscCall(PCSetUp(pc));
    PetscCall(PCApply(pc, b, h->x[k]));
    PetscCall(MatScale(D, 2.0));
    if (h->r[2] % 2) PetscCall(MatScale(D, 2.0));
    PetscCall(PCApply(pc, b, h->x[k]));
    PetscCall(PCDestroy(&pc));
  }
  PetscCall(MatTestDestroy(&b, &D));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What must hold for an operation to be done: sizes that fit, and no fault of MATAIJ's own */

/* MATAIJ relaxes rows of equal patterns together, and meets Inf and NaN in another order */
static PetscBool OneProcess(const Hunt *h)
{
  return (PetscBool)(Size == 1 && !Wild && h->M && h->N);
}

/* MatEqual() of parallel ones is an error of the processes alone whose second blocks have other columns */
static PetscBool QuestionsFit(const Hunt *h)
{
  return (PetscBool)(OtherFits(h) && (Size == 1 || h->r[0] % 8 != 4 || h->p->lineage == h->q->lineage));
}

static const Operation Reads[] = {
  {"norms",     Norms,     NULL,         KEEPS},
  {"rows",      Rows,      NotEmpty,     KEEPS},
  {"questions", Questions, QuestionsFit, KEEPS},
  {"mults",     Mults,     NULL,         KEEPS},
  {"states",    States,    NULL,         KEEPS},
  {"solvers",   Solvers,   OneProcess,   KEEPS},
};

#endif

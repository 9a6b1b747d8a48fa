/*
  values.c: operations on the values of a CSR matrix that leave its pattern alone. One pass over the values each; sums
  are formed in the order of storage (or in a fixed number of interleaved partial sums), so results do not depend on the
  run.
*/
#include "csrlist.h"

PetscErrorCode HybCSRSet_Host(const HybExec *exec, PetscCount n, const HybScalar *alpha, HybScalar *a)
{
  const HybScalar s = *alpha;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) a[k] = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRScale_Host(const HybExec *exec, PetscCount n, const HybScalar *alpha, HybScalar *a)
{
  const HybScalar s = *alpha;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) a[k] *= s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRAXPY_Host(const HybExec *exec, PetscCount n, const HybScalar *alpha, const HybScalar *x, HybScalar *y)
{
  const HybScalar s = *alpha;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) y[k] += s * x[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRDiagonalScale_Host(const HybExec *exec, HybCSR *A, const HybScalar *l, const HybScalar *r)
{
  HybScalar *restrict a         = A->a;
  const PetscInt *restrict j    = A->j;
  const HybScalar *restrict rhs = r;

  PetscFunctionBegin;
  for (PetscInt row = 0; l && row < A->m; row++) {
    const HybScalar s = l[row];

    if (r)
      for (PetscInt k = A->i[row]; k < A->i[row + 1]; k++) a[k] = a[k] * s * rhs[j[k]];
    else
      for (PetscInt k = A->i[row]; k < A->i[row + 1]; k++) a[k] *= s;
  }
  if (r && !l) {
    for (PetscCount k = 0; k < A->nnz; k++) a[k] *= rhs[j[k]];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the position of A(row,row), or -1: rows are sorted */
static inline PetscInt FindDiagonal(const HybCSR *A, PetscInt row)
{
  const PetscInt lo = HybCSRPlace(A->j, A->i[row], A->i[row + 1], row);

  return lo < A->i[row + 1] && A->j[lo] == row ? lo : -1;
}

PetscErrorCode HybCSRGetDiagonal_Host(const HybExec *exec, const HybCSR *A, HybScalar *d)
{
  const PetscInt n = PetscMin(A->m, A->n);

  PetscFunctionBegin;
  for (PetscInt row = 0; row < n; row++) {
    const PetscInt k = FindDiagonal(A, row);

    d[row] = k < 0 ? (HybScalar)0 : A->a[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRDiagonalSet_Host(const HybExec *exec, HybArena *work, HybCSR *A, const HybScalar *d, const HybScalar *alpha, PetscBool add, PetscCount *missing)
{
  const PetscInt n = PetscMin(A->m, A->n);
  PetscInt      *place;

  PetscFunctionBegin;
  *missing = 0;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &place));
  for (PetscInt row = 0; row < n; row++) {
    place[row] = FindDiagonal(A, row);
    *missing += place[row] < 0;
  }
  if (!*missing) {
    for (PetscInt row = 0; row < n; row++) {
      const HybScalar v = d ? d[row] : *alpha;

      if (add)
        A->a[place[row]] += v;
      else
        A->a[place[row]] = v;
    }
  }
  PetscCall(HybArenaFree(work, &place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the larger one, and a NaN once there is one */
static inline PetscReal LargerOrNaN(PetscReal a, PetscReal b)
{
  return a != a ? a : (b > a || b != b ? b : a);
}

PetscErrorCode HybCSRNorm_Host(const HybExec *exec, HybArena *work, const HybCSR *A, HybNorm type, PetscReal *norm)
{
  const HybScalar *a      = A->a;
  PetscReal        result = 0;

  PetscFunctionBegin;
  switch (type) {
  case HYB_NORM_FROBENIUS: {
    PetscReal part[4] = {0, 0, 0, 0}, sum;

    for (PetscCount k = 0; k < A->nnz; k++) part[k & 3] += PetscRealPart(a[k] * PetscConj(a[k]));
    sum = (part[0] + part[1]) + (part[2] + part[3]);
    if (sum >= PETSC_MACHINE_EPSILON * PETSC_MACHINE_EPSILON && sum <= 1 / (PETSC_MACHINE_EPSILON * PETSC_MACHINE_EPSILON)) {
      result = PetscSqrtReal(sum);
      break;
    }
    /* squares may have overflown or vanished: once more, relative to the largest modulus */
    for (PetscCount k = 0; k < A->nnz; k++) result = LargerOrNaN(result, PetscAbsScalar(a[k]));
    if (result == 0 || PetscIsInfOrNanReal(result)) break;
    sum = 0;
    for (PetscCount k = 0; k < A->nnz; k++) {
      const PetscReal t = PetscAbsScalar(a[k]) / result;

      sum += t * t;
    }
    result *= PetscSqrtReal(sum);
  } break;
  case HYB_NORM_1: {
    PetscReal *sum;

    PetscCall(HybArenaCalloc(work, HYB_WORK(exec), A->n, sizeof(PetscReal), &sum));
    for (PetscCount k = 0; k < A->nnz; k++) sum[A->j[k]] += PetscAbsScalar(a[k]);
    for (PetscInt c = 0; c < A->n; c++) result = sum[c] > result ? sum[c] : result; /* passes over NaN, as PETSc does */
    PetscCall(HybArenaFree(work, &sum));
  } break;
  case HYB_NORM_INFINITY:
    for (PetscInt r = 0; r < A->m; r++) {
      PetscReal sum = 0;

      for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) sum += PetscAbsScalar(a[k]);
      result = sum > result ? sum : result;
    }
    break;
  default:
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP, "No norm of type %d: 1, Frobenius and infinity exist", (int)type);
  }
  *norm = result;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  table.c: what a multigrid cycle needs beside products, on the host.
*/
#include <aijhybridgpu/private/hybcycle.h>

static PetscErrorCode HybCycleFirst_Host(const HybExec *exec, PetscCount n, const PetscReal *c, const HybScalar *dinv, const HybScalar *b, HybScalar *z)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) z[k] = c[0] * (dinv[k] * b[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleCombine_Host(const HybExec *exec, PetscCount n, const HybScalar *x, const HybScalar *r, const HybSpMVStep *s)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) {
    const HybScalar t = s->c[0] * (s->dinv[k] * r[k]), u = s->c[1] * x[k];

    s->z[k] = (s->w ? s->c[2] * s->w[k] + u : u) + t;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleDense_Host(const HybExec *exec, PetscInt m, const HybScalar *inverse, const HybScalar *b, HybScalar *x)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    HybScalar sum = 0;

    for (PetscInt c = 0; c < m; c++) sum += inverse[(size_t)r * m + c] * b[c];
    x[r] = sum;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleMultTranspose_Host(const HybExec *exec, const HybCSR *P, const HybScalar *x, HybScalar *y)
{
  PetscFunctionBegin;
  memset(y, 0, sizeof(*y) * (size_t)P->n);
  for (PetscInt r = 0; r < P->m; r++) {
    const HybScalar xr = x[r];

    for (PetscInt k = P->i[r]; k < P->i[r + 1]; k++) y[P->j[k]] += xr * P->a[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleClear_Host(const HybExec *exec, PetscCount n, HybScalar *x)
{
  PetscFunctionBegin;
  (void)memset(x, 0, sizeof(*x) * (size_t)n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleSum_Host(const HybExec *exec, const HybCycleSums *sums, PetscInt k, PetscCount n, const HybScalar *x)
{
  HybScalar sum = 0;

  PetscFunctionBegin;
  for (PetscCount i = 0; i < n; i++) sum += x[i];
  sums->s[k] = sum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleShift_Host(const HybExec *exec, const HybCycleSums *sums, const int weight[HYB_CYCLE_TOTALS], PetscCount n, const HybScalar *y, HybScalar *z)
{
  HybScalar by = 0;

  PetscFunctionBegin;
  for (int k = 0; k < HYB_CYCLE_TOTALS; k++)
    if (weight[k]) by += (PetscReal)weight[k] * sums->s[k];
  by /= (PetscReal)n;
  for (PetscCount i = 0; i < n; i++) z[i] = y[i] - by;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybCycleOps HybCycleHost = {
  .first         = HybCycleFirst_Host,
  .combine       = HybCycleCombine_Host,
  .dense         = HybCycleDense_Host,
  .clear         = HybCycleClear_Host,
  .sum           = HybCycleSum_Host,
  .shift         = HybCycleShift_Host,
  .multtranspose = HybCycleMultTranspose_Host,
};

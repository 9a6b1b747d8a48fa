/*
  table.c: what the host does for an exchange: all of it at once.
*/
#include "commimpl.h"

static PetscErrorCode HybCommOpen_Host(const HybExec *exec, void **side)
{
  PetscFunctionBegin;
  *side = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommSend_Host(const HybExec *exec, void *side, PetscCount n, const PetscInt *index, size_t unit, const void *src, void *packed, void *host)
{
  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  if (!index)
    PetscCall(PetscMemcpy(packed, src, (size_t)n * unit));
  else if (unit == sizeof(PetscInt64)) {
    for (PetscCount k = 0; k < n; k++) memcpy((char *)packed + 8 * k, (const char *)src + 8 * (size_t)index[k], 8);
  } else if (unit == 4) {
    for (PetscCount k = 0; k < n; k++) memcpy((char *)packed + 4 * k, (const char *)src + 4 * (size_t)index[k], 4);
  } else
    for (PetscCount k = 0; k < n; k++) memcpy((char *)packed + (size_t)k * unit, (const char *)src + (size_t)index[k] * unit, unit);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommSent_Host(const HybExec *exec, void *side)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommReceive_Host(const HybExec *exec, void *side, size_t bytes, const void *host, void *dst, PetscBool after)
{
  PetscFunctionBegin;
  PetscCall(PetscMemcpy(dst, host, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommAdd_Host(const HybExec *exec, PetscInt n, const PetscInt *row, const PetscCount *ptr, const PetscInt *place, PetscBool scalars, const void *v, void *to)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) {
    for (PetscCount p = ptr[k]; p < ptr[k + 1]; p++) {
      if (scalars)
        ((HybScalar *)to)[row[k]] += ((const HybScalar *)v)[place[p]];
      else
        ((PetscInt *)to)[row[k]] += ((const PetscInt *)v)[place[p]];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommCollect_Host(const HybExec *exec, PetscCount n, const PetscInt *from, const HybCommSources *sources, HybScalar *to)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) {
    int s = 0;

    if (from[k] < 0) continue;
    while (from[k] >= sources->start[s + 1]) s++;
    to[k] = sources->a[s][from[k] - sources->start[s]];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommNumber_Host(const HybExec *exec, PetscCount n, HybScalar *number, PetscCount m, HybScalar *to)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) number[k] = (HybScalar)k;
  for (PetscCount k = 0; k < m; k++) to[k] = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommNumbered_Host(const HybExec *exec, PetscCount n, const HybScalar *to, PetscInt *from)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) from[k] = (PetscInt)PetscRealPart(to[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybCommOps HybCommHost = {
  .open     = HybCommOpen_Host,
  .close    = HybCommOpen_Host,
  .send     = HybCommSend_Host,
  .sent     = HybCommSent_Host,
  .receive  = HybCommReceive_Host,
  .add      = HybCommAdd_Host,
  .collect  = HybCommCollect_Host,
  .number   = HybCommNumber_Host,
  .numbered = HybCommNumbered_Host,
};

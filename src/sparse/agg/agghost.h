/* agghost.h: the host's operations of smoothed aggregation; the table is table.c's. Contracts: HybAggOps in
   hybagg.h. */
#ifndef AIJHYBRIDGPU_AGGHOST_H
#define AIJHYBRIDGPU_AGGHOST_H
#include "agglist.h"

HYB_EXTERN_C_BEGIN

/* Have the rows of vertex v the same columns, in whole blocks of bs? */
static inline PetscBool HybAggIsWhole(const HybCSR *A, PetscInt bs, PetscInt v)
{
  const PetscInt  lo = A->i[v * bs], len = A->i[v * bs + 1] - lo;
  const PetscInt *j     = A->j + lo;
  PetscInt        other = 0; /* columns that are not where a block's are */

  if (len % bs) return PETSC_FALSE;
  for (PetscInt s = 1; s < bs; s++) {
    if (A->i[v * bs + s + 1] - A->i[v * bs + s] != len || memcmp(j, j + (PetscCount)s * len, sizeof(PetscInt) * (size_t)len)) return PETSC_FALSE;
  }
  for (PetscInt k = 0; k < len; k += bs) {
    other += j[k] % bs != 0;
    for (PetscInt s = 1; s < bs; s++) other += j[k + s] != j[k] + s;
  }
  return (PetscBool)!other;
}

/* permute.c: order[k] = the vertex at position k */
extern PetscErrorCode HybAggOrder_Host(HybArena *work, PetscInt n, HybAggOrder, const PetscInt *gi, PetscInt *order);
/* aggregates.c: the roots among those that a device has not decided on; key: 0 for a root, 1 and its place for an
   undecided vertex, PETSC_MAX_INT for others */
extern PetscErrorCode HybAggFinish_Host(HybArena *work, PetscInt n, const PetscInt *gi, const PetscInt *gj, int hops, PetscInt *key);
/* tentative.c: of one unknown and one vector */
extern PetscErrorCode HybAggColumns_Host(const HybExec *, HybArena *, const HybAggregates *, const HybScalar *, HybScalar *, HybScalar *);
/* lists.c: of n vertices, in the order of their kinds 0..kinds-1 (NULL: all are of one), each kind ascending */
extern PetscErrorCode HybAggListsByKind_Host(const HybExec *, HybArena *, HybArena *, PetscInt n, PetscInt nc, const PetscInt *parent, int kinds, const PetscInt *kind, HybAggLists *);

HYB_EXTERN_C_END
#endif

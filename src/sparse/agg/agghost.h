/* agghost.h: the host's operations of smoothed aggregation, by file; the table is table.c's. Contracts: HybAggOps in
   hybagg.h. */
#ifndef AIJHYBRIDGPU_AGGHOST_H
#define AIJHYBRIDGPU_AGGHOST_H
#include <aijhybridgpu/private/hybagg.h>

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

/* look.c */
extern PetscErrorCode HybAggLook_Host(const HybExec *, HybArena *, const HybCSR *, HybAggLook *);

/* permute.c; Order: order[k] = the vertex at position k */
extern PetscErrorCode HybAggOrder_Host(HybArena *work, PetscInt n, HybAggOrder, const PetscInt *gi, PetscInt *order);
extern PetscErrorCode HybAggPermutation_Host(const HybExec *, HybArena *, PetscInt, HybAggOrder, const PetscInt *, PetscInt *);

/* aggregates.c. Finish: the roots among those that a device has not decided on; key: 0 for a root, 1 and its place for
   an undecided vertex, PETSC_MAX_INT for others */
extern PetscErrorCode HybAggFinish_Host(HybArena *work, PetscInt n, const PetscInt *gi, const PetscInt *gj, int hops, PetscInt *key);
extern PetscErrorCode HybAggAggregates_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, int, HybAggOrder, PetscInt, HybAggregates *);

/* nested.c */
extern PetscErrorCode HybAggQuotient_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, const HybAggregates *, const HybAggLists *, HybCSR *);
extern PetscErrorCode HybAggCompose_Host(const HybExec *, HybAggregates *, const HybAggregates *);

/* tentative.c */
extern PetscErrorCode HybAggTentative_Host(const HybExec *, HybArena *, const HybAggregates *, const HybScalar *, HybScalar *, HybScalar *);

/* smooth.c */
extern PetscErrorCode HybAggUnsmoothed_Host(const HybExec *, HybArena *, HybArena *, const HybAggregates *, const HybScalar *, HybCSR *);
extern PetscErrorCode HybAggSmoothed_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscInt, const HybAggregates *, const HybScalar *, PetscReal, HybCSR *);

/* smoothblocks.c */
extern PetscErrorCode HybAggUnsmoothedBlocks_Host(const HybExec *, HybArena *, HybArena *, const HybAggregates *, const HybAggBlock *, const HybScalar *, HybCSR *);
extern PetscErrorCode HybAggSmoothedBlocks_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, const HybAggregates *, const HybAggBlock *, const HybScalar *, PetscReal, HybCSR *);

/* collapse.c */
extern PetscErrorCode HybAggCollapse_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscInt, HybCSR *, HybAggCollapsed *);

/* lists.c; ByKind: of n vertices, in the order of their kinds 0..kinds-1 (NULL: all are of one), each kind ascending */
extern PetscErrorCode HybAggListsByKind_Host(const HybExec *, HybArena *, HybArena *, PetscInt n, PetscInt nc, const PetscInt *parent, int kinds, const PetscInt *kind, HybAggLists *);
extern PetscErrorCode HybAggLists_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, int, HybAggOrder, const HybAggregates *, HybAggLists *);

/* tentativeblocks.c */
extern PetscErrorCode HybAggTentativeBlocks_Host(const HybExec *, HybArena *, const HybAggregates *, const HybAggLists *, const HybAggBlock *, const HybScalar *, HybAggFactor, void *, HybScalar *, HybScalar *, PetscInt *);

/* filter.c */
extern PetscErrorCode HybAggWeights_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscInt, HybCSR *);
extern PetscErrorCode HybAggFilter_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, const HybAggFilter *, HybCSR *, HybAggFiltered *);

HYB_EXTERN_C_END
#endif

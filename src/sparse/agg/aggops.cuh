/*
  aggops.cuh: the device's operations of smoothed aggregation, one function for each entry of HybAggOps (hybagg.h says
  what each does), and what their kernels have in common; table.cu joins them into the table.

  Rows are taken by sub-warps, whose width follows the mean row. A row longer than AGG_LONG is left to a block: such
  rows are listed once, and a kernel of few blocks goes along the list, which is mostly empty.
*/
#ifndef AIJHYBRIDGPU_AGGOPS_CUH
#define AIJHYBRIDGPU_AGGOPS_CUH
#include "../structure/each.cuh"
#include "../device/hybgroup.cuh"
#include "agglist.h"

#define AGG_THREADS 256
#define AGG_LONG    1024 /* entries up to which a sub-warp takes a row */
#define AGG_BLOCKS  264  /* of kernels that go along the list of long rows, or keep sums to the end */

/* the rows that are longer than AGG_LONG, in any order */
typedef struct {
  PetscInt *rows, *count; /* on the device */
  PetscInt  room;         /* there are no more than so many: 0 where the matrix has too few entries for one */
} AggLong;

/* look.cu; longest: of the rows, where that is known, else 0 */
extern PetscErrorCode HybAggLongRows(const HybExec *, HybArena *work, const HybCSR *G, PetscInt longest, AggLong *);
extern PetscErrorCode HybAggLongFree(HybArena *work, AggLong *);
/* permute.cu: a[k] = PETSC_MAX_INT */
extern PetscErrorCode HybAggFill(const HybExec *, PetscInt n, PetscInt *a);
/* roots.cu: key[v], place + 1 on entry, becomes 0 for a root and PETSC_MAX_INT for others; spare: n entries */
extern PetscErrorCode HybAggRoots_CUDA(const HybExec *, HybArena *work, const HybCSR *G, const AggLong *, int hops, PetscInt *key, PetscInt *spare, int *rounds);
/* tentative.cu: of one unknown and one vector */
extern PetscErrorCode HybAggColumns_CUDA(const HybExec *, HybArena *work, const HybAggregates *, const HybScalar *b, HybScalar *q, HybScalar *coarse);
/* lists.cu: as HybAggListsByKind_Host(); no aggregate is empty */
extern PetscErrorCode HybAggListsByKind(const HybExec *, HybArena *keep, HybArena *work, PetscInt n, PetscInt nc, const PetscInt *parent, int kinds, const PetscInt *kind, HybAggLists *);

/* the entry of column r in row c, entries from to to-1, which is named by entry `nth' of row r; else to. In stencils it
   is as far from the end as the other one from the beginning. */
static __device__ __forceinline__ PetscInt AggMirror(const PetscInt *j, PetscInt from, PetscInt to, PetscInt nth, PetscInt r)
{
  const PetscInt guess = to - 1 - nth;

  return guess >= from && j[guess] == r ? guess : RowPlace(j, from, to, r);
}

/* Launches a kernel of some lanes for each of n, such as (K<WIDTH>), in groups (hybgroup.cuh) and no more blocks than
   most; WIDTH is w */
#define AGG_LAUNCH(exec, w, n, most, kernel, ...)                                                                                                      \
  PetscCall(HybDispatch(w, RowWidths(), [&](auto WIDTH) {                                                                                              \
    HYB_LAUNCH(kernel, HybMin()(HybBlocks(n, HybGroup<WIDTH>::GROUPS), (PetscCount)(most)), HybGroup<WIDTH>::THREADS, 0, (exec)->stream, __VA_ARGS__); \
    return PETSC_SUCCESS;                                                                                                                              \
  }))

/* rows by length: at most so many entries, taken by so many threads; the last class has the rest */
#define AGG_CLASSES 5
template <int C>
struct AggClass {
  static constexpr int THREADS = C == 0 ? 4 : C == 1 ? 8
                                            : C == 2 ? 32
                                                     : 128;
  static constexpr int MOST    = C == 0 ? 8 : C == 1 ? 32
                                            : C == 2 ? 128
                                                     : 1024;
};

/* launch(threads of a group, most entries, n, first) for the n rows from first on of each class but the last */
template <typename F>
static inline PetscErrorCode AggEachClass(const PetscInt *binptr, F launch)
{
  PetscFunctionBegin;
  for (int c = 0; c < AGG_CLASSES - 1; c++) {
    PetscCall(HybDispatch(c, HybCases<0, 1, 2, 3>(), [&](auto C) {
      using Class = AggClass<C>;
      return launch(std::integral_constant<int, Class::THREADS>(), std::integral_constant<int, Class::MOST>(),
                    binptr[C + 1] - binptr[C], binptr[C]);
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* smooth.cu: the rows of each class, one class behind the other; binptr (AGG_CLASSES + 1) on the host */
extern PetscErrorCode HybAggClasses(const HybExec *, HybArena *work, PetscInt m, const PetscInt *length, PetscInt *rows, PetscInt *binptr);

/* what a row of A P0 is made of */
typedef struct {
  PetscInt         n, nc;
  const PetscInt  *ai, *aj, *parent;
  const HybScalar *aa, *q;
  HybScalar        alpha; /* -omega */
  PetscInt        *pi, *pj;
  HybScalar       *pa;
  PetscInt         bs, nvec;
} AggSmooth;

/* the same for a few rows of any length: count[r] entries of P in each, or, where count is NULL, these */
extern PetscErrorCode HybAggSmoothLong(const HybExec *, HybArena *work, const AggSmooth *, PetscCount nnz, PetscInt nrows, const PetscInt *rows, PetscInt *count);

/* of a sum of products, before P0 is added */
static __device__ __forceinline__ HybScalar AggSmoothValue(const AggSmooth &s, HybScalar sum, HybScalar d)
{
  const HybScalar inverse = d == HybScalar(0) ? HybScalar(0) : HybScalar(1) / d;

  return HybMul(s.alpha, HybMul(sum, inverse));
}

#endif

/*
  segmerge.cu: SpGEMM method "segmerge": a row's products are sorted lists, one for each row of B that the row of A
  names, and the segmented merge makes one of them.

  Idea. Rows of A are segments, their entries sub-segments, the rows of B they name the sorted lists of pairs (column,
  number of the product). After the merge the products of one entry of C stand side by side, in A's order because the
  merge is stable, so counting is counting changes of column, and the values are sums over runs. Lists of any length
  cost alike: this is a method for long rows.

    rows into chunks of about SEGMERGE_CHUNK products or more    (one synchronisation, where they are several chunks)
    for each chunk: lengths, scan, expand, merge, count
    scan the counts                                              (one synchronisation)
    for each chunk: columns; values; the merge of a single chunk is kept between the two passes, others are merged again
    numeric: the same without columns

  Memory: 44 bytes for each product of a chunk (a row is never cut). A chunk has SEGMERGE_CHUNK products, or a sixteenth
  of the lower bound of nnz(C) if that is more, so workspace stays below a quarter of C. Complexity: O(p log q) for p
  products of q lists.

  Reference: Ji, Lu, Hou, Wang, Liu, Segmented merge: a new primitive for parallel sparse matrix computations, IJPP 49
  (2021).
*/
#include "../../device/hybgroup.cuh"
#include "../../plan/bins.cuh"
#include "../../structure/each.cuh"
#include "merge.cuh"
#include "aijhybridgpu/private/hybspgemm.h"

#define SEGMERGE_CHUNK (PetscCount)(1 << 20)
#define SEGMERGE_LONG  1024 /* products from which a row is gathered by a block */

/* the products of the chunk, list by list; key or product may be NULL */
__global__ void __launch_bounds__(256) SegMergeExpand(PetscInt nsub, const PetscInt *__restrict__ aj, const HybScalar *__restrict__ aa, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, const HybScalar *__restrict__ ba, const PetscCount *__restrict__ subptr, PetscInt *__restrict__ key, PetscCount *__restrict__ number, HybScalar *__restrict__ product)
{
  for (PetscCount q = ((PetscCount)blockIdx.x * 256 + threadIdx.x) / HYB_WARP; q < nsub; q += (PetscCount)gridDim.x * (256 / HYB_WARP)) {
    const PetscInt   c = aj[q], begin = bi[c], len = bi[c + 1] - begin;
    const PetscCount to = subptr[q];

    for (PetscInt p = HybLane(); p < len; p += HYB_WARP) {
      if (key) {
        key[to + p]    = bj[begin + p];
        number[to + p] = to + p;
      }
      if (product) product[to + p] = HybMul(aa[q], ba[begin + p]);
    }
  }
}

/* runs of equal columns of each row of more than least and at most most products: count them, or write columns and
   sums */
template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) SegMergeGather(PetscInt nseg, PetscCount least, PetscCount most, const PetscInt *__restrict__ segptr, const PetscCount *__restrict__ subptr, const PetscInt *__restrict__ key, const PetscCount *__restrict__ number, const HybScalar *__restrict__ product, PetscInt *__restrict__ count, const PetscInt *__restrict__ ci, PetscInt *__restrict__ cj, HybScalar *__restrict__ ca)
{
  using G = HybGroup<N>;
  HYB_SHARED(int, scratch, HYB_WARP);

  for (PetscCount s = (PetscCount)blockIdx.x * G::GROUPS + G::index(); s < nseg; s += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscCount begin = subptr[segptr[s]], end = subptr[segptr[s + 1]];
    PetscInt         out = 0;

    if (end - begin <= least || end - begin > most) continue;
    for (PetscCount p0 = begin; p0 < end; p0 += N) {
      const PetscCount p    = p0 + G::rank();
      const int        head = p < end && (p == begin || key[p] != key[p - 1]);
      int              total;
      const PetscInt   at = out + G::exclusiveSum(head, scratch, &total);

      if (head && !count) {
        if (cj) cj[ci[s] + at] = key[p];
        if (ca) {
          HybScalar sum = product[number[p]];

          for (PetscCount e = p + 1; e < end && key[e] == key[p]; e++) sum = sum + product[number[e]];
          ca[ci[s] + at] = sum;
        }
      }
      out += total;
    }
    if (count && G::rank() == 0) count[s] = out;
  }
}

/* one chunk, merged */
typedef struct {
  PetscInt    nseg, nsub;
  PetscInt   *segptr, *key;
  PetscCount *subptr, *number;
} SegMergeChunk;

typedef struct {
  PetscInt    nchunks;
  HybPlanCut *cut; /* host */
} SegMerge;

static PetscErrorCode SegMergeMerge(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybPlanCut *cut, SegMergeChunk *c)
{
  const HybExec   *exec = &mm->exec;
  const PetscInt  *aj   = A->j + cut[0].entry;
  const PetscCount n    = cut[1].product - cut[0].product;
  PetscInt        *key;
  PetscCount      *number;

  PetscFunctionBegin;
  c->nseg = (PetscInt)(cut[1].row - cut[0].row);
  c->nsub = (PetscInt)(cut[1].entry - cut[0].entry);
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)c->nseg + 1, sizeof(PetscInt), &c->segptr));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)c->nsub + 1, sizeof(PetscCount), &c->subptr));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &key));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, n, sizeof(PetscCount), &number));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &c->key));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, n, sizeof(PetscCount), &c->number));
  HYB_FOR_EACH(exec, (PetscCount)c->nseg + 1, [ai = A->i + cut[0].row, segptr = c->segptr] __device__(PetscCount s) { segptr[s] = ai[s] - ai[0]; });
  HYB_FOR_EACH(exec, c->nsub, [aj, bi = B->i, length = c->subptr] __device__(PetscCount q) { length[q] = bi[aj[q] + 1] - bi[aj[q]]; });
  PetscCall(HybScanCounts64(exec, &mm->work, c->nsub, c->subptr, c->subptr, NULL, NULL));
  HYB_LAUNCH(SegMergeExpand, PetscMin(HybBlocks(c->nsub, 8), 65536), 256, 0, exec->stream, c->nsub, aj, (const HybScalar *)NULL, B->i, B->j, (const HybScalar *)NULL, c->subptr, key, number, (HybScalar *)NULL);
  PetscCall(HybSegMergeBounded(exec, &mm->work, c->nseg, c->segptr, c->subptr, n, mm->stats.maxarow, mm->stats.maxrow, key, number, c->key, c->number));
  PetscCall(HybArenaFree(&mm->work, &key, &number));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SegMergeRelease(HybSpGEMM *mm, SegMergeChunk *c)
{
  PetscFunctionBegin;
  PetscCall(HybArenaFree(&mm->work, &c->segptr, &c->subptr, &c->key, &c->number));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SegMergeRuns(HybSpGEMM *mm, const SegMergeChunk *c, const HybScalar *product, PetscInt *count, const PetscInt *ci, PetscInt *cj, HybScalar *ca)
{
  const HybExec *exec = &mm->exec;

  PetscFunctionBegin;
  HYB_LAUNCH((SegMergeGather<32>), PetscMin(HybBlocks(c->nseg, 4), 65536), 128, 0, exec->stream, c->nseg, (PetscCount)0, (PetscCount)SEGMERGE_LONG, c->segptr, c->subptr, c->key, c->number, product, count, ci, cj, ca);
  if (mm->stats.maxrow > SEGMERGE_LONG) HYB_LAUNCH((SegMergeGather<256>), PetscMin(c->nseg, 65536), 256, 0, exec->stream, c->nseg, (PetscCount)SEGMERGE_LONG, mm->stats.maxrow, c->segptr, c->subptr, c->key, c->number, product, count, ci, cj, ca);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* columns and values of a merged chunk; either may be NULL */
static PetscErrorCode SegMergeFill(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybPlanCut *cut, const SegMergeChunk *c, const PetscInt *ci, PetscInt *cj, HybScalar *ca)
{
  const HybExec *exec    = &mm->exec;
  HybScalar     *product = NULL;

  PetscFunctionBegin;
  if (ca) {
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, cut[1].product - cut[0].product, sizeof(HybScalar), &product));
    HYB_LAUNCH(SegMergeExpand, PetscMin(HybBlocks(c->nsub, 8), 65536), 256, 0, exec->stream, c->nsub, A->j + cut[0].entry, A->a + cut[0].entry, B->i, B->j, B->a, c->subptr, (PetscInt *)NULL, (PetscCount *)NULL, product);
  }
  PetscCall(SegMergeRuns(mm, c, product, NULL, ci + cut[0].row, cj, ca));
  PetscCall(HybArenaFree(&mm->work, &product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_SegMergeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec   *exec     = &mm->exec;
  const PetscInt   m        = A->m;
  const PetscCount products = mm->stats.products, chunk = PetscMax(SEGMERGE_CHUNK, mm->stats.lower / 16);
  PetscInt        *count;
  SegMergeChunk    c;
  SegMerge        *s;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero(s, sizeof(*s)));
  mm->data   = s;
  s->nchunks = (PetscInt)((products + chunk - 1) / chunk);
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, (PetscCount)s->nchunks + 1, sizeof(HybPlanCut), &s->cut));
  if (s->nchunks > 1)
    PetscCall(HybPlanCuts(exec, &mm->work, A, mm->rowproducts, chunk, s->nchunks, s->cut));
  else if (s->nchunks) {
    s->cut[0].row = s->cut[0].entry = s->cut[0].product = 0;
    s->cut[1].row                                       = m;
    s->cut[1].entry                                     = A->nnz;
    s->cut[1].product                                   = products;
  }
  PetscCall(HybCountersSet(&mm->counters, "chunks", s->nchunks));
  {
    PetscInt rounds = 0;

    while (((PetscCount)1 << rounds) < mm->stats.maxarow) rounds++;
    PetscCall(HybCountersSet(&mm->counters, "merge rounds", rounds));
  }
  PetscCall(HybCountersSet(&mm->counters, "pairs merged", products));
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)m + 1, sizeof(PetscInt), &C->i));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &count));
  memset(&c, 0, sizeof(c));
  for (PetscInt k = 0; k < s->nchunks; k++) {
    PetscCall(SegMergeMerge(mm, A, B, s->cut + k, &c));
    PetscCall(SegMergeRuns(mm, &c, NULL, count + s->cut[k].row, NULL, NULL, NULL));
    if (s->nchunks > 1) PetscCall(SegMergeRelease(mm, &c));
  }
  PetscCall(HybScanCounts(exec, &mm->work, m, count, C->i, NULL, &C->nnz));
  PetscCall(HybArenaFree(&mm->work, &count));
  PetscCall(HybSpGEMMEntries(exec, A, B, out, C));
  for (PetscInt k = 0; k < s->nchunks; k++) {
    if (s->nchunks > 1) PetscCall(SegMergeMerge(mm, A, B, s->cut + k, &c));
    PetscCall(SegMergeFill(mm, A, B, s->cut + k, &c, C->i, C->j, C->a));
    PetscCall(SegMergeRelease(mm, &c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_SegMergeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const SegMerge *s = (const SegMerge *)mm->data;
  SegMergeChunk   c;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < s->nchunks; k++) {
    PetscCall(SegMergeMerge(mm, A, B, s->cut + k, &c));
    PetscCall(SegMergeFill(mm, A, B, s->cut + k, &c, C->i, NULL, C->a));
    PetscCall(SegMergeRelease(mm, &c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_SegMergeCUDA;
const HybSpGEMMMethod        HybSpGEMM_SegMergeCUDA = {
         .name     = "segmerge",
         .symbolic = HybSpGEMMSymbolic_SegMergeCUDA,
         .numeric  = HybSpGEMMNumeric_SegMergeCUDA,
};

/*
  blockfind.cu: are matrices of whole blocks, and where in C are their products? For method "block", whose essay
  (block.cu) has the steps look, check and spans.

  Memory: what stays and what a symbolic phase needs are an allocation each. Complexity: a pass over both patterns.
*/
#include "blockfind.cuh"
#include "../../structure/rowblocksample.cuh"
#include "../../device/carve.h"
#include <cstddef>

#define BLOCK_SPARSE  32         /* words of bits to a pair */
#define BLOCK_PAIRS   1073741823 /* of a block row: kernels count them by 32 bits, whatever PetscInt is */
#define BLOCK_OUTGROW 4
#define BLOCK_ASK     ((PetscCount)1 << 30) /* bytes of places that may be, from which on it is asked what is free */

/* The device decides, so that products are counted for who comes next without waiting for the host; one thread, when
   all blocks have added up what they found. bytes: for places */
static __device__ void BlockDecide(PetscInt mb, PetscCount bytes, bool wrong, BlockLook *look)
{
  const PetscCount met = HybAtomicAdd(&look->met, (PetscCount)0);
  int              why = wrong ? BLOCK_NONE : 0;

  if (!wrong) {
    if (HybAtomicOr(&look->toolong, 0)) why |= BLOCK_LONG;
    if (HybAtomicAdd(&look->words[0], (PetscCount)0) / BLOCK_SPARSE > met + mb) why |= BLOCK_SCATTER;
    if (met > bytes / (PetscCount)sizeof(unsigned short)) why |= BLOCK_LARGE;
  }
  look->declined = why;
}

/* W lanes a block row */
template <int W>
static __global__ __launch_bounds__(BLOCK_THREADS) void BlockSpans(BlockPattern x, PetscInt bs2, PetscCount bytes, PetscInt *__restrict__ from, unsigned *__restrict__ off, PetscInt *__restrict__ low, PetscInt *__restrict__ words, PetscInt *__restrict__ npairs, BlockLook *look)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  const int  lane  = HybLane() & (W - 1);
  const bool wrong = look->a.wrong || look->b.wrong;
  PetscCount lower = 0, met = 0, allwords = 0, mostwords = 0, toolong = 0;

  for (PetscCount r = ((PetscCount)blockIdx.x * BLOCK_THREADS + threadIdx.x) / W; r < x.mb; r += (PetscCount)gridDim.x * (BLOCK_THREADS / W)) {
    const PetscInt first = wrong ? 0 : x.aptr[r], n = wrong ? 0 : x.aptr[r + 1] - first;
    PetscInt       least = PETSC_MAX_INT, last = -1, longest = 0;
    PetscCount     before = 0;

    for (PetscInt k = 0; k < n; k += W) {
      const PetscInt e   = k + lane;
      PetscInt       len = 0;
      PetscCount     here, all;

      if (e < n) {
        const PetscInt c = x.acol[first + e], begin = x.bptr[c];

        len             = x.bptr[c + 1] - begin;
        from[first + e] = begin * bs2;
        if (len) {
          least = HybMin()(least, x.bcol[begin]);
          last  = HybMax()(last, x.bcol[begin + len - 1]);
        }
        longest = HybMax()(longest, len);
      }
      here = before + HybSubwarpExclusiveSum<W>((PetscCount)len, &all);
      if (e < n) off[first + e] = (unsigned)here;
      before += all;
    }
    least   = HybSubwarpMin<W>(least);
    last    = HybSubwarpMax<W>(last);
    longest = HybSubwarpMax<W>(longest);
    if (lane == 0) {
      const PetscCount span = last < 0 ? 0 : (PetscCount)last - least + 1;

      low[r]    = least;
      words[r]  = (PetscInt)((span + 31) / 32);
      npairs[r] = (PetscInt)HybMin()(before, (PetscCount)BLOCK_PAIRS);
      lower += longest;
      met += before;
      allwords += words[r];
      mostwords = HybMax()(mostwords, (PetscCount)words[r]);
      if (span > BLOCK_MOST && before > BLOCK_MOST) toolong = 1;
      if (before > BLOCK_PAIRS) toolong = 1;
    }
  }
  lower     = HybBlockSum<BLOCK_THREADS>(lower, scratch);
  met       = HybBlockSum<BLOCK_THREADS>(met, scratch);
  allwords  = HybBlockSum<BLOCK_THREADS>(allwords, scratch);
  mostwords = HybBlockMax<BLOCK_THREADS>(mostwords, scratch);
  toolong   = HybBlockMax<BLOCK_THREADS>(toolong, scratch);
  if (threadIdx.x == 0) {
    HybAtomicAdd(&look->lower, lower);
    HybAtomicAdd(&look->met, met);
    HybAtomicAdd(&look->words[0], allwords);
    HybAtomicMax(&look->words[1], mostwords);
    if (toolong) HybAtomicOr(&look->toolong, 1);
    __threadfence();
    if (HybAtomicAdd(&look->arrived, 1) == (int)gridDim.x - 1) {
      __threadfence();
      BlockDecide(x.mb, bytes, wrong, look);
    }
  }
}

/* what a symbolic phase needs, and what stays, in an allocation each */
static PetscErrorCode BlockRoom(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, bool same, BlockProduct *s)
{
  const PetscInt   bs2 = s->bs * s->bs;
  const PetscCount mb = A->m / s->bs, kb = B->m / s->bs, na = A->nnz / bs2, nb = B->nnz / bs2;
  PetscInt        *aptr, *acol, *bptr, *bcol;

  PetscFunctionBegin;
  s->room = NULL;
  for (int pass = 0; pass < 2; pass++) {
    size_t used = 0;

    HybCarve(s->room, &used, (size_t)(mb + 1) * sizeof(*aptr), &aptr);
    HybCarve(s->room, &used, (size_t)na * sizeof(*acol), &acol);
    HybCarve(s->room, &used, same ? 0 : (size_t)(kb + 1) * sizeof(*bptr), &bptr);
    HybCarve(s->room, &used, same ? 0 : (size_t)nb * sizeof(*bcol), &bcol);
    HybCarve(s->room, &used, (size_t)mb * sizeof(*s->low), &s->low);
    HybCarve(s->room, &used, (size_t)mb * sizeof(*s->words), &s->words);
    HybCarve(s->room, &used, (size_t)mb * sizeof(*s->npairs), &s->npairs);
    HybCarve(s->room, &used, (size_t)mb * sizeof(*s->spanorder), &s->spanorder);
    HybCarve(s->room, &used, (size_t)mb * sizeof(*s->count), &s->count);
    HybCarve(s->room, &used, (size_t)HYB_PLAN_SUMS(mb) * sizeof(*s->sums), &s->sums);
    if (!pass) PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)used, 1, &s->room));
  }
  s->pattern = {(PetscInt)mb, aptr, acol, same ? aptr : bptr, same ? acol : bcol};
  s->kept    = NULL;
  for (int pass = 0; pass < 2; pass++) {
    size_t used = 0;

    HybCarve(s->kept, &used, (size_t)na * sizeof(*s->from), &s->from);
    HybCarve(s->kept, &used, (size_t)na * sizeof(*s->off), &s->off);
    HybCarve(s->kept, &used, (size_t)(mb + 1) * sizeof(*s->pairptr), &s->pairptr);
    HybCarve(s->kept, &used, (size_t)mb * sizeof(*s->order), &s->order);
    if (!pass) PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)used, 1, &s->kept));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockRoomFree(HybSpGEMM *mm, BlockProduct *s)
{
  PetscFunctionBegin;
  PetscCall(HybArenaFree(&mm->work, &s->room));
  PetscCall(HybArenaFree(&mm->keep, &s->kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks blocks of size s->bs, exactly, finds the spans and, where count says so, counts products for who comes next if
   "auto" must decline. One synchronisation, s->host tells. */
static PetscErrorCode BlockCheck(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, bool count, BlockProduct *s)
{
  const HybExec   *exec = &mm->exec;
  const bool       same = A->i == B->i && A->j == B->j;
  const PetscInt   mb = A->m / s->bs, bs2 = s->bs * s->bs;
  const PetscCount mean  = mb ? A->nnz / bs2 / mb : 0;
  const int        lanes = mean <= 5 ? 4 : mean <= 20 ? 16
                                                      : 32;
  PetscCount       bytes = BLOCK_OUTGROW * (A->nnz + B->nnz) * (PetscCount)(sizeof(PetscInt) + sizeof(HybScalar));
  BlockLook       *look  = s->look;
  HybPlanUnless    unless;
  HybPlanScan      scan = {NULL, NULL, NULL, NULL, look->pairs, NULL, 1};
  int              sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(NULL, &sms));
  if (bytes > BLOCK_ASK) {
    size_t spare;

    PetscCall(HybMemorySpare(exec, &spare));
    bytes = PetscMin(bytes, (PetscCount)spare);
  }
  PetscCall(BlockRoom(mm, A, B, same, s));
  PetscCall(HybRowBlocksColumnsAsync(exec, A, s->bs, (PetscInt *)s->pattern.aptr, (PetscInt *)s->pattern.acol, &look->a));
  if (!same) PetscCall(HybRowBlocksColumnsAsync(exec, B, s->bs, (PetscInt *)s->pattern.bptr, (PetscInt *)s->pattern.bcol, &look->b));
  PetscCall(HybDispatch(lanes, HybCases<4, 16, 32>(), [&](auto W) {
    HYB_LAUNCH((BlockSpans<W>), PetscMin(HybBlocks((PetscCount)mb * W, BLOCK_THREADS), (PetscCount)16 * sms),
               BLOCK_THREADS, 0, exec->stream, s->pattern, bs2, bytes, s->from, s->off, s->low, s->words, s->npairs, look);
    return PETSC_SUCCESS;
  }));
  scan.count     = s->npairs;
  scan.sums      = s->sums;
  scan.offsets64 = s->pairptr;
  PetscCall(HybPlanBinsAnyOrderInt(exec, mb, s->words, BLOCK_SPANS, BlockSpanLimit, look->spancount, s->spanorder, look->spanptr, &scan));
  unless.found[0] = unless.found[1] = &look->declined;
  unless.most = unless.product = unless.sizes = 0;
  unless.refused                              = NULL;
  if (count) PetscCall(HybPlanRowCostsUnless(exec, A, B->i, NULL, unless, mm->rowproducts, look->stats));
  PetscCall(HybSpGEMMFetch(mm, &s->host, look, offsetof(BlockLook, blocks)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which sizes rows of both operands leave, as far as a sample tells: one synchronisation, unless somebody had the
   sample with his own look */
static PetscErrorCode BlockSample(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, bool count, BlockProduct *s, int *candidates)
{
  const HybExec *exec = &mm->exec;
  BlockLook     *look = s->look;
  HybPlanUnless  unless;

  PetscFunctionBegin;
  if (mm->blocksizes < 0) {
    PetscCall(HybRowBlocksSampleAsync(exec, A, *candidates, &look->sample));
    if (A->i != B->i || A->j != B->j) PetscCall(HybRowBlocksSampleAsync(exec, B, *candidates, &look->sample));
    /* where all are refused somebody else comes next; not where that is unlikely */
    unless.found[0] = unless.found[1] = NULL;
    unless.most = unless.product = 0;
    unless.refused               = &look->sample;
    unless.sizes                 = *candidates;
    if (count && !RowBlocksLikely(A)) PetscCall(HybPlanRowCostsUnless(exec, A, B->i, NULL, unless, mm->rowproducts, look->stats));
    PetscCall(HybSpGEMMFetch(mm, &s->host, look, offsetof(BlockLook, blocks)));
    mm->blocksizes = *candidates & ~s->host.sample;
  }
  *candidates &= (int)mm->blocksizes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybBlockFind(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, bool named, int candidates, BlockProduct *s)
{
  const bool count = !named && !mm->counted;
  int        bs    = 8;

  PetscFunctionBegin;
  s->behind = (PetscBool)(count && !mm->rowproducts);
  if (s->behind) {
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, ((PetscCount)A->m + HYB_PLAN_SPARE) * (PetscCount)sizeof(PetscCount) + (PetscCount)sizeof(*s->look), 1, &mm->rowproducts));
    s->look = (BlockLook *)(mm->rowproducts + A->m + HYB_PLAN_SPARE);
  } else
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, 1, sizeof(*s->look), &s->look));
  PetscCall(mm->exec.backend->zero(&mm->exec, s->look, sizeof(*s->look)));
  PetscCall(BlockSample(mm, A, B, count, s, &candidates));
  /* a size that all rows of the sample left is hardly ever wrong; "auto" tries one, for who comes next waits for its
     count */
  for (; bs > 1; bs--) {
    if (!(candidates & (1 << bs))) continue;
    s->bs = bs;
    if (s->host.declined) PetscCall(mm->exec.backend->zero(&mm->exec, s->look, sizeof(*s->look)));
    PetscCall(BlockCheck(mm, A, B, count, s));
    if (!(s->host.declined & (named ? BLOCK_NONE | BLOCK_LONG : ~0))) break;
    PetscCall(BlockRoomFree(mm, s));
    if (!named || !(s->host.declined & BLOCK_NONE)) bs = 1;
  }
  if (bs < 2) s->bs = 0;
  if (s->bs) {
    if (!s->behind) PetscCall(HybArenaFree(&mm->work, &mm->rowproducts));
  } else if (count && s->host.stats[0]) {
    HybPlanStatsSet(s->host.stats, &mm->stats);
    mm->counted = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybBlockForget(HybSpGEMM *mm, BlockProduct *s)
{
  PetscFunctionBegin;
  if (!s->behind)
    PetscCall(HybArenaFree(&mm->work, &s->look));
  else if (s->bs) /* else who comes next has a use for the rest */
    PetscCall(HybArenaFree(&mm->work, &mm->rowproducts));
  s->look = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

int HybBlockCandidates(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B)
{
  return HybRowBlocksCandidates(A) & HybRowBlocksCandidates(B) & (int)mm->blocksizes;
}

/*
  hashrows.cu: SpGEMM by rows, each row's pattern in a table of (block of 32 columns, bit mask), each row's values at
  their final places.

  Idea. A table whose entries are single columns costs a probe for each product and a sort of the row at the end. Here
  an entry is a block of 32 neighbouring columns with a mask of those present. Three things follow.
    - B is compressed once into (block, mask) pairs, so that the symbolic pass inserts one pair for several neighbouring
      columns (a 27-point row is nine pairs), by atomicOr on integers in any order.
    - No entry is ever sorted: the place of column c in its row of C is
          prefix(block of c) + popcount(mask & bits below c),
      and prefix needs the order of the blocks only, of which there are several times fewer.
    - The numeric pass adds every product at its final place: a group of lanes goes across a row of B, A's entries one
      after the other, plain additions, hence the same bits in every run. Accumulators start from -0.0, the neutral
      element of addition, so the first product stands as it is.
  Where the row's blocks span few more words than it has blocks, the table is direct (a bitmap of the span): no probing,
  and prefix is a scan. Elsewhere it is a hash table with linear probing, and prefix comes from the order of the blocks:
  few are compared, each with each; many have a bit each in the words of their span; where that would be more than eight
  words to a block they are sorted.
  A row whose columns are known when its table is made can have a third kind, unless its blocks lie far apart: it is
  ranked by two levels of the same words,
          rank(block)   = before + popcount(bits & bits below)    a bit for each block of the span, 32 to a word
          place(column) = before + popcount(mask & bits below)    of the block's word, the rank-th
  so that a place takes two loads, nothing probes, and all places of a batch are looked up together. It takes 8 bytes a
  block and a quarter of a byte for each block of the span, where a hash table takes 18 to 36 a block.

    symbolic   compress B                              if it is read often enough
               u[r] = pairs that row r will insert      upper bound of its blocks
               rows into bins by u
               count: insert, count new bits            -> nnz, number of blocks and span of each row -> kind and size
                                                        of its numeric table; its blocks and masks as a list
               scan counts; rows into bins by table size          (one synchronisation)
               compressed B is given back if there are lists of all rows
               columns: from the lists, prefix by their order; lists are given back
               values, as in a numeric phase; rows without a list (long ones, and what found no room) insert again on
               the way and write their columns
    numeric    the table from C's own columns (prefix is a by-product), values

  Groups of threads by the size of the table: sub-warps of 4 to 32 lanes up to 4 KiB, unless the row of A is so long
  that taking its entries one after the other keeps a sub-warp too long, blocks up to what a block may have (227 KiB);
  small products take several bins in one launch; rows whose table fits but whose accumulators do not add straight into
  C's values ("spilled"); rows whose table does not fit have it in global memory ("global"), a bitmap of the row's span
  for each resident block.

  A list is a few times shorter than what was inserted for it (3 to 20 on the matrices of the benchmarks), and C's
  values are taken when the lists have been given back: they cost no memory beside C. Room for them is taken when all
  that is known of C is how many nonzeros it has at least; rows take theirs by atomics, from one of 16 parts. Where some
  rows are much longer than others these decide how long it takes, and lists only add to it: none there, unless a mean
  row is so short that long ones do not decide (docs/tried.md, Thresholds).

  Memory beside C: 8 bytes for each entry of B (compressed B, only where the rows of B are read four times on average)
  and lists until C's columns are written, per-row arrays of 12 bytes that stay for the numeric phase, and the global
  tables of rows that need them. Nothing grows with the number of products.
  Complexity: one insertion for each pair, one addition for each product; blocks*log^2(blocks) a row at worst where the
  table is hashed and its blocks lie far apart.

  References: Gustavson, Two fast algorithms for sparse matrices, TOMS 4 (1978); Nagasaka, Nukada, Matsuoka,
  High-performance and memory-saving sparse general matrix-matrix multiplication for NVIDIA Pascal GPU, ICPP 2017 (hash
  tables by bin); Deveci, Trott, Rajamanickam, Multi-threaded sparse matrix-matrix multiplication for many-core and GPU
  architectures, Parallel Computing 78 (2018) (compressed symbolic pass).
*/
#include "hashargs.cuh"

#define HASH_BINCOUNTS ((HYB_HASH_BINS + 1) * sizeof(PetscInt) / sizeof(PetscCount)) /* the bins' offsets in counts */
static_assert((HYB_HASH_BINS + 1) * sizeof(PetscInt) % sizeof(PetscCount) == 0, "the offsets are followed by a count");

/* entries of a row of A, B or C: cursors of 32 bits go past its end by as many (hashtable.cuh) */
#define HASH_LONGEST ((PetscCount)2147483647)

static int HashLog2(PetscCount n)
{
  int l = 0;

  while (l < 5 && ((PetscCount)1 << l) < n) l++;
  return l;
}

PetscErrorCode HybHashRowsCount(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool compress, const PetscCount *upper, PetscInt *count, HybHashRows *hash, PetscInt *offsets)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount mean = mm->stats.products / PetscMax(1, A->nnz);
  PetscInt        *need, *counters, *binptr;
  size_t           limit;
  char            *work;
  HashArgs         x;

  PetscFunctionBegin;
  PetscCheck(((PetscCount)B->n - 1) / 32 < (PetscCount)HASH_RANKED - 32, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Hash tables take fewer than 2^36 - 1024 columns, not %" PetscInt_FMT, B->n);
  /* rows of B that are named are part of a row of C */
  PetscCheck(PetscMax(PetscMin(mm->stats.maxrow, (PetscCount)B->n), (PetscCount)mm->stats.maxarow) <= HASH_LONGEST, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Hash tables take rows of at most %" PetscCount_FMT " nonzeros, and a row of the first operand or of the product of a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix, of %" PetscCount_FMT " products, may have more: choose another method, or multiply on the host (-mat_aijhybridgpu_backend host)", HASH_LONGEST, A->m, A->n, B->m, B->n, mm->stats.maxrow);
  PetscCall(HybDeviceLimits(&limit, &hash->multiprocessors));
  hash->maxbytes  = (PetscInt)((limit - 6144) & ~(size_t)127);
  hash->words     = ((PetscCount)B->n + 31) / 32;
  hash->mean      = mean;
  hash->lanes     = PetscMax(2, HashLog2(mean));
  hash->pairlanes = HashLog2((mean + 1) / 2);
  /* one allocation: head, order, base, size */
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (3 + HASH_BINCOUNTS + PETSC_STATIC_ARRAY_LENGTH(hash->brought)) * (PetscCount)sizeof(PetscCount) + (PetscCount)A->m * (PetscCount)(sizeof(PetscInt) + 2 * sizeof(unsigned)), 1, &hash->head));
  hash->binptr = (PetscInt *)(hash->head + 3);
  hash->own    = hash->head + 3 + HASH_BINCOUNTS;
  hash->order  = (PetscInt *)(hash->own + PETSC_STATIC_ARRAY_LENGTH(hash->brought));
  hash->base   = (unsigned *)(hash->order + A->m);
  hash->size   = hash->base + A->m;

  HybSpGEMMOperands(A, B, &x);
  if (compress) {
    PetscCall(HybHashCompress(mm, B, hash));
    PetscCall(HybHashLists(mm, A, B, hash));
  }
  x.pairs  = (const HashPair *)hash->pairs;
  x.npairs = hash->npairs;
  if (hash->list) {
    x.list   = (HashPair *)hash->list;
    x.where  = hash->where;
    x.listed = hash->listed;
    x.room   = hash->room;
  }
  {
    /* one allocation: costs in pairs and sums of counts, then what starts as zero: what lists have used, counters of
       both sorts into bins, need, and the counts, if they are ours; then the offsets of the first sort's bins */
    const PetscBool pairs  = (PetscBool)(hash->pairs && upper == mm->rowproducts);
    const size_t    ncosts = (HYB_PLAN_SUMS(A->m) + (pairs ? (size_t)A->m : 0)) * sizeof(PetscCount), nused = hash->list ? (4 * HASH_POOLS + 1) * sizeof(PetscCount) : 0, nzero = nused + (2 * HASH_COUNT_BINS + 2 * HYB_HASH_BINS + (count ? 1 : 2) * (size_t)A->m) * sizeof(PetscInt);

    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)(ncosts + nzero + (HASH_COUNT_BINS + 1) * sizeof(PetscInt)), 1, &work));
    PetscCall(exec->backend->zero(exec, work + ncosts, nzero));
    x.used     = (PetscCount *)(work + ncosts);
    x.unlisted = x.used + 4 * HASH_POOLS;
    counters   = (PetscInt *)(work + ncosts + nused);
    need       = counters + 2 * HASH_COUNT_BINS + 2 * HYB_HASH_BINS;
    binptr     = (PetscInt *)(work + ncosts + nzero);
    if (!count) count = need + A->m;
    if (pairs) {
      PetscCount *cost = (PetscCount *)work + HYB_PLAN_SUMS(A->m);

      PetscCall(HybPlanRowCosts(exec, A, B->i, hash->npairs, cost, NULL));
      upper = cost;
    }
  }
  x.count = count;
  x.need  = need;
  PetscCall(HybHashCountRows(mm, hash, upper, A->m, binptr, counters, x));
  {
    const HybPlanScan scan = {count, (PetscCount *)work, offsets, NULL, hash->head, hash->list ? x.unlisted : NULL, 1};
    PetscCount        bytes[HYB_HASH_BINS - 1];

    HashLimits(mean > HASH_NARROW, bytes);
    PetscCall(HybPlanBinsAnyOrderInt(exec, A->m, need, HYB_HASH_BINS, bytes, counters + 2 * HASH_COUNT_BINS, hash->order, hash->binptr, &scan));
  }
  PetscCall(HybArenaFree(&mm->work, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsFetch(HybSpGEMM *mm, HybHashRows *hash, PetscCount *nnz)
{
  static const char *const names[HYB_HASH_BINS] = {"rows empty", "rows up to 512 B", "rows up to 1 KiB", "rows up to 2 KiB", "rows up to 4 KiB", "rows up to 16 KiB", "rows up to 24 KiB", "rows up to 48 KiB", "rows up to a block", "rows spilled", "rows global"};
  PetscCount               bring[3 + HASH_BINCOUNTS + PETSC_STATIC_ARRAY_LENGTH(hash->brought)];

  PetscFunctionBegin;
  PetscCall(mm->exec.backend->copy(&mm->exec, bring, hash->head, (3 + HASH_BINCOUNTS + hash->nown) * sizeof(PetscCount), HYB_COPY_DEVICE_TO_HOST));
  *nnz           = bring[0];
  hash->longest  = (PetscInt)bring[1];
  hash->unlisted = bring[2];
  memcpy(hash->brought, bring + 3 + HASH_BINCOUNTS, hash->nown * sizeof(PetscCount));
  memcpy(hash->hostbinptr, bring + 3, (HYB_HASH_BINS + 1) * sizeof(PetscInt));
  for (int b = 1; b < HYB_HASH_BINS; b++) PetscCall(HybCountersSet(&mm->counters, names[b], hash->hostbinptr[b + 1] - hash->hostbinptr[b]));
  PetscCall(HybCountersSet(&mm->counters, "compressed", hash->pairs ? 1 : 0));
  PetscCall(HybCountersSet(&mm->counters, "lists", hash->list ? hash->unlisted ? 1 : 2 : 0)); /* 2: of all rows */
  if (hash->list && !hash->unlisted) PetscCall(HybArenaFree(&mm->work, &hash->pairs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsColumns(HybSpGEMM *mm, HybHashRows *hash, HybCSR *C)
{
  HashArgs x;

  PetscFunctionBegin;
  if (!hash->list) PetscFunctionReturn(PETSC_SUCCESS);
  memset((void *)&x, 0, sizeof(x));
  x.order  = hash->order;
  x.binptr = hash->binptr;
  x.list   = (HashPair *)hash->list;
  x.where  = hash->where;
  x.listed = hash->listed;
  x.ci     = C->i;
  x.cj     = C->j;
  PetscCall(HybHashListRows(mm, hash, x));
  PetscCall(HybArenaFree(&mm->work, &hash->list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsFill(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, HybCSR *C)
{
  HashArgs x;

  PetscFunctionBegin;
  PetscCall(HybHashRowsColumns(mm, hash, C));
  HybSpGEMMOperands(A, B, &x);
  x.pairs    = (const HashPair *)hash->pairs;
  x.npairs   = hash->npairs;
  x.ci       = C->i;
  x.cj       = C->j;
  x.ca       = C->a;
  x.where    = hash->where;
  x.products = !hash->where || hash->unlisted;
  x.values   = C->a != NULL;
  if (x.products || x.values) PetscCall(HybHashRun(mm, hash, x, 1, HYB_HASH_BINS - 1));
  PetscCall(HybArenaFree(&mm->work, &hash->pairs, &hash->where));
  hash->npairs = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C)
{
  HashArgs x;

  PetscFunctionBegin;
  HybSpGEMMOperands(A, B, &x);
  x.ci     = C->i;
  x.cj     = C->j;
  x.ca     = C->a;
  x.values = 1;
  PetscCall(HybHashRun(mm, hash, x, 1, HYB_HASH_BINS - 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsUnplan(HybSpGEMM *mm, HybHashRows *hash)
{
  PetscErrorCode ierr[6];

  PetscFunctionBegin;
  ierr[0] = HybArenaFree(&mm->keep, &hash->terms.term);
  ierr[1] = HybArenaFree(&mm->keep, &hash->terms.room);
  ierr[2] = HybArenaFree(&mm->keep, &hash->from);
  ierr[3] = HybArenaFree(&mm->keep, &hash->placeptr);
  ierr[4] = HybArenaFree(&mm->keep, &hash->planorder);
  ierr[5] = HybArenaFree(&mm->keep, &hash->places);
  for (int k = 0; k < 6; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HashRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C)
{
  const size_t terms = HybHashTermsLeast(mm, A, hash, C), places = HybHashPlacesBytes(mm, A, B, hash, C);
  size_t       spare;

  PetscFunctionBegin;
  if (!terms && !places) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMemorySpare(&mm->exec, &spare));
  if (terms && terms <= spare) PetscCall(HybHashTermsPlan(mm, A, B, hash, C, spare));
  if (!hash->terms.term && places && places <= spare) PetscCall(HybHashPlaces(mm, A, B, hash, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numeric phases go on without a plan whose making failed, and they need the memory */
PetscErrorCode HybHashRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C)
{
  const PetscErrorCode ierr = HashRowsPlan(mm, A, B, hash, C);

  PetscFunctionBegin;
  if (ierr) (void)HybHashRowsUnplan(mm, hash);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

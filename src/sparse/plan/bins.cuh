/*
  bins.cuh: row costs and bins without a host synchronisation, for the device methods of higher rooms. HybPlanCUDA wraps
  the costs with the host copies that hybplan.h promises.
*/
#ifndef AIJHYBRIDGPU_BINS_CUH
#define AIJHYBRIDGPU_BINS_CUH
#include "../device/hybdevice.cuh"
#include "aijhybridgpu/private/hybplan.h"

/* the most bins */
#define HYB_PLAN_MAX_BINS 32

/*
  cost[r] = sum over the entries k of row r of A of length(A->j[k]), where length is blen[.] if given, else the row
  length of bi. rowcost may be NULL. devstats (may be NULL): six zeroed PetscCount on the device, in the order of
  HybPlanStats.
*/
extern PetscErrorCode HybPlanRowCosts(const HybExec *, const HybCSR *A, const PetscInt *bi, const PetscInt *blen, PetscCount *rowcost, PetscCount *devstats);

/* The same, for which the device decides whether it is wanted: nothing is written where neither of two numbers, found
   by what is queued before, is more than so many, nor their product; nor where some of the bits of sizes are not
   refused */
typedef struct {
  const int *found[2]; /* on the device; NULL: it is wanted */
  int        most, product;
  const int *refused; /* on the device; NULL: all */
  int        sizes;
} HybPlanUnless;
extern PetscErrorCode HybPlanRowCostsUnless(const HybExec *, const HybCSR *A, const PetscInt *bi, const PetscInt *blen, HybPlanUnless, PetscCount *rowcost, PetscCount *devstats);
/* what came from devstats */
extern void HybPlanStatsSet(const PetscCount *s, HybPlanStats *stats);

/* A counting sort of rows by bin, in any order within one, in two launches and without workspace: row r goes to the
   first bin b <= HYB_PLAN_MAX_BINS with cost[r] <= limit[b], the last bin takes the rest. limit has nbins-1 ascending
   entries of the host's; devbinptr (nbins+1) and counters, 2*nbins zeroed entries, live on the device. m = 0 leaves
   devbinptr alone. No synchronisation. */
extern PetscErrorCode HybPlanBinsAnyOrder(const HybExec *, PetscInt m, const PetscCount *cost, PetscInt nbins, const PetscCount *limit, PetscInt *counters, PetscInt *order, PetscInt *devbinptr);
/* scan (NULL: none): and, in the same launches, offsets (m+1) of counts as HybScanCounts() gives them */
typedef struct {
  const PetscInt   *count;
  PetscCount       *sums;    /* room for HYB_PLAN_SUMS(m) */
  PetscInt         *offsets; /* one of the two may be NULL */
  PetscCount       *offsets64;
  PetscCount       *total; /* [0]: of count, [1]: the most, [2]: *also */
  const PetscCount *also;  /* on the device; NULL: 0 */
  /* more than 1: a row stands for so many, each of block times its count, and offsets are theirs (m block + 1) */
  PetscInt block;
} HybPlanScan;
#define HYB_PLAN_SUMS(m) (2 * (((PetscCount)(m) + 255) / 256))
extern PetscErrorCode HybPlanBinsAnyOrderInt(const HybExec *, PetscInt m, const PetscInt *cost, PetscInt nbins, const PetscCount *limit, PetscInt *counters, PetscInt *order, PetscInt *devbinptr, const HybPlanScan *scan);

/* offsets (m+1) of counts whose sums over HYB_PLAN_SUMMED rows each are known, in one launch, and *total of them all:
   for up to HYB_PLAN_OFFSETS rows, as each block adds up the sums before its own */
#define HYB_PLAN_SUMMED  128
#define HYB_PLAN_OFFSETS 262144
extern PetscErrorCode HybPlanOffsets(const HybExec *, PetscInt m, const PetscInt *count, const PetscCount *sums, PetscInt *offsets, PetscCount *total);

/* rows taken together: where such a chunk begins */
typedef struct {
  PetscCount row, entry, product; /* entry: of A */
} HybPlanCut;

/* cut (host, nchunks+1): chunk c begins at the first row with c*chunk products or more before it. One
   synchronisation. */
extern PetscErrorCode HybPlanCuts(const HybExec *, HybArena *work, const HybCSR *A, const PetscCount *rowproducts, PetscCount chunk, PetscInt nchunks, HybPlanCut *cut);

#endif

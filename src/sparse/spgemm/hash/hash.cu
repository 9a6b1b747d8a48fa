/*
  hash.cu: SpGEMM method "hash": every row by tables of (block of 32 columns, bit mask) in shared memory, see
  ../hash/hashrows.cu.

    symbolic   count every row; scan; columns, and values where the operands have them     (one synchronisation)
    plan       of a Galerkin product: by masks (../maskrows.cu), if rows of C are short, else by places; of others by
               terms (../hash/terms.cu), or by places, once phases without have cost as much
    numeric    values

  It takes any operands. Terms or places are given back between numeric phases to who finds no memory, unless columns
  that they stand for are gone.
*/
#include "../hashrows.cuh"
#include "../maskrows.cuh"

/* microseconds on an H200 (docs/tried.md, What is kept for numeric phases) */
#define HASH_PHASE    40    /* of a phase: its launches and its shortest rows */
#define HASH_ENTRY    0.1   /* an entry of the longest row of A, which takes one step after the other */
#define HASH_PRODUCTS 1.4e5 /* products a microsecond */
#define HASH_PLAN     100   /* of a plan: launches and two waits */
#define HASH_PASSES   2.8   /* phases that the rest of it takes */

typedef struct {
  HybSpare    spare; /* terms or places */
  HybSpGEMM  *mm;
  HybHashRows rows;
  HybMaskRows masks;
} Hash;

static PetscErrorCode HashGiveBack(HybSpare *spare)
{
  Hash        *data = (Hash *)spare;
  HybSpGEMM   *mm   = data->mm;
  const size_t held = mm->keep.bytes;

  PetscFunctionBegin;
  if (mm->columnsgone) PetscFunctionReturn(PETSC_SUCCESS);
  mm->reads = HYB_SPGEMM_READS_ALL; /* first: the plan is none any more, whatever its memory's end says */
  PetscCall(HybHashRowsUnplan(mm, &data->rows));
  PetscCall(HybCountersSet(&mm->counters, "places", 0));
  PetscCall(HybCountersSet(&mm->counters, "terms", 0));
  PetscCall(HybCountersSet(&mm->counters, "term bytes", 0));
  PetscCall(HybCountersAdd(&mm->counters, "plans given back", 1));
  PetscCall(PetscInfo(NULL, "Memory is short: the plan of a product's numeric phases, %zu bytes, is given back, and they go on without\n", held - mm->keep.bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_HashCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec   = &mm->exec;
  const bool     values = (A->a || !A->nnz) && (B->a || !B->nnz);
  HybHashRows   *hash;
  Hash          *data;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*data), &data));
  PetscCall(PetscMemzero((void *)data, sizeof(*data)));
  data->spare.giveback = HashGiveBack;
  data->mm             = mm;
  mm->data             = data;
  hash                 = &data->rows;
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  if (mm->stats.products) {
    PetscCall(HybHashRowsCount(mm, A, B, PETSC_TRUE, mm->rowproducts, NULL, hash, C->i));
    hash->nown = mm->reuse ? PETSC_STATIC_ARRAY_LENGTH(hash->brought) : 0;
    if (mm->reuse) PetscCall(HybMaskRowsMeasure(mm, A, C, hash->own));
    PetscCall(HybHashRowsFetch(mm, hash, &C->nnz));
    PetscCall(exec->backend->early(exec, C->i));
    data->masks.longest = hash->longest;
    if (mm->reuse) {
      data->masks.words    = hash->brought[0];
      data->masks.farthest = (PetscInt)hash->brought[1];
      mm->hascut           = PETSC_TRUE;
      PetscCall(PetscArraycpy(mm->cut, hash->brought + 2, HYB_SPGEMM_PARTS + 1));
    }
  } else
    PetscCall(exec->backend->zero(exec, C->i, ((size_t)C->m + 1) * sizeof(PetscInt)));
  PetscCall(HybSpGEMMCheckCount(exec, A, B, C->nnz, PETSC_FALSE));
  PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(PetscInt), &C->j));
  if (C->nnz) PetscCall(HybHashRowsColumns(mm, hash, C));
  if (values) PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(HybScalar), &C->a));
  if (C->nnz) PetscCall(HybHashRowsFill(mm, A, B, hash, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMPlan_HashCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C)
{
  Hash *data = (Hash *)mm->data;

  PetscFunctionBegin;
  if (!C->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  if (mm->reuse) PetscCall(HybMaskRowsPlan(mm, A, B, C, &data->masks));
  if (!data->masks.masks) PetscCall(HybHashRowsPlan(mm, A, B, &data->rows, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_HashCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  Hash        *data = (Hash *)mm->data;
  HybHashRows *hash = &data->rows;

  PetscFunctionBegin;
  HybSpareWithdraw(&data->spare); /* this phase's own allocations do not take it */
  if (C->nnz) {
    if (data->masks.masks)
      PetscCall(HybMaskRowsNumeric(mm, A, B, &data->masks, C));
    else if (hash->terms.term)
      PetscCall(HybHashTermsSums(mm, A, B, hash, C));
    else if (hash->places)
      PetscCall(HybHashRowsPlanned(mm, A, B, hash, C));
    else
      PetscCall(HybHashRowsNumeric(mm, A, B, hash, C));
  }
  if (hash->places || hash->terms.term) HybSpareOffer(&data->spare);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMDestroy_HashCUDA(HybSpGEMM *mm)
{
  PetscFunctionBegin;
  if (mm->data) HybSpareWithdraw(&((Hash *)mm->data)->spare);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HybSpGEMMPlanCost_HashCUDA(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, PetscReal *plan, PetscReal *phase)
{
  *phase = HASH_PHASE + HASH_ENTRY * (PetscReal)mm->stats.maxarow + (PetscReal)mm->stats.products / HASH_PRODUCTS;
  *plan  = HASH_PLAN + HASH_PASSES * *phase;
}

extern const HybSpGEMMMethod HybSpGEMM_HashCUDA;
const HybSpGEMMMethod        HybSpGEMM_HashCUDA = {
         .name     = "hash",
         .symbolic = HybSpGEMMSymbolic_HashCUDA,
         .plan     = HybSpGEMMPlan_HashCUDA,
         .plancost = HybSpGEMMPlanCost_HashCUDA,
         .numeric  = HybSpGEMMNumeric_HashCUDA,
         .destroy  = HybSpGEMMDestroy_HashCUDA,
};

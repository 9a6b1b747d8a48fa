/*
  hash.cu: SpGEMM method "hash": every row by tables of (block of 32 columns, bit mask) in shared memory, see
  ../hash/hashrows.cu.

    symbolic   count every row; scan; columns, and values where the operands have them     (one synchronisation)
    numeric    values; where a plan serves, it is made first: in the first numeric phase of a Galerkin product by masks
               (../maskrows.cu), if rows of C are short, else by places, and by places in the second one of others

  It takes any operands.
*/
#include "../hash/hashrows.cuh"
#include "../maskrows.cuh"

typedef struct {
  HybHashRows rows;
  HybMaskRows masks;
} Hash;

static PetscErrorCode HybSpGEMMSymbolic_HashCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec   = &mm->exec;
  const bool     values = (A->a || !A->nnz) && (B->a || !B->nnz);
  HybHashRows   *hash;
  Hash          *data;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*data), &data));
  PetscCall(PetscMemzero((void *)data, sizeof(*data)));
  mm->data = data;
  hash     = &data->rows;
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  if (mm->stats.products) {
    PetscCall(HybHashRowsCount(mm, A, B, PETSC_TRUE, mm->rowproducts, NULL, hash, C->i));
    PetscCall(HybHashRowsFetch(mm, hash, &C->nnz));
    data->masks.longest = hash->longest;
  } else
    PetscCall(exec->backend->zero(exec, C->i, ((size_t)C->m + 1) * sizeof(PetscInt)));
  PetscCall(HybSpGEMMCheckCount(exec, A, B, C->nnz, PETSC_FALSE));
  PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(PetscInt), &C->j));
  if (C->nnz) PetscCall(HybHashRowsColumns(mm, hash, C));
  if (values) PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(HybScalar), &C->a));
  if (C->nnz) PetscCall(HybHashRowsFill(mm, A, B, hash, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_HashCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  Hash        *data = (Hash *)mm->data;
  HybHashRows *hash = &data->rows;

  PetscFunctionBegin;
  if (C->nnz) {
    if (!data->masks.tried && mm->reuse) PetscCall(HybMaskRowsPlan(mm, A, B, C, &data->masks));
    if (!data->masks.masks && !hash->places && !hash->unplanned && (mm->reuse || mm->numerics > 0)) PetscCall(HybHashRowsPlan(mm, A, B, hash, C));
    if (data->masks.masks)
      PetscCall(HybMaskRowsNumeric(mm, A, B, &data->masks, C));
    else if (hash->places)
      PetscCall(HybHashRowsPlanned(mm, A, B, hash, C));
    else
      PetscCall(HybHashRowsNumeric(mm, A, B, hash, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_HashCUDA;
const HybSpGEMMMethod        HybSpGEMM_HashCUDA = {
         .name     = "hash",
         .symbolic = HybSpGEMMSymbolic_HashCUDA,
         .numeric  = HybSpGEMMNumeric_HashCUDA,
};

/*
  The operands of a product: lent by their matrices, brought to where the product runs, and known again.
*/
#include "product.h"

PetscErrorCode HybOperandsMats(Mat C, int blocks, HybOperands *o)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, blocks == 2 ? sizeof(*o) : offsetof(HybOperands, csr)));
  o->blocks = blocks;
  o->mat[0] = product->A;
  o->mat[1] = product->B;
  o->mat[2] = product->C;
  o->n      = product->type == MATPRODUCT_ABC ? 3 : 2;
  for (PetscInt k = 0; k < o->n; k++) PetscCheck(o->mat[k], PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s is missing", (char)('A' + k), MatProductTypes[product->type]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybPatternStands(Mat A, int blocks)
{
  Mat       block[2];
  PetscBool again;

  if (!A->preallocated) return PETSC_FALSE;
  if (blocks == 2 && MatIsMPIAIJHybridGPU(A) && A->spptr && ((Mat_MPIAIJHybridGPU *)A->spptr)->unmade) return PETSC_FALSE;
  /* entries that were there were set again: no block has another pattern than at the last assembly, none was taken
     apart */
  again = (PetscBool)(A->was_assembled && !HybMatProductBlocks(A, blocks, block, NULL));
  for (int b = 0; b < blocks; b++) again = (PetscBool)(again && block[b] && (blocks == 1 || block[b]->assembled) && block[b]->nonzerostate == block[b]->ass_nonzerostate);
  if (again) return PETSC_TRUE;
  /* coordinates have made it, and its values are zeros so far: AIJ multiplies with it */
  if (blocks == 2) return (PetscBool)(MatIsMPIAIJHybridGPU(A) && A->spptr && ((Mat_MPIAIJHybridGPU *)A->spptr)->coopattern);
  return (PetscBool)(MatIsSeqAIJHybridGPU(A) && A->spptr && ((Mat_SeqAIJHybridGPU *)A->spptr)->coopattern);
}

/* This one, and all after it, are not collective */
PetscErrorCode HybOperandsGet(Mat C, PetscBool values, HybOperands *o)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < o->n; k++) {
    Mat        A = o->mat[k];
    HybParCSR *p = &o->csr[k];

    /* the parent's symbolic phases make a pattern and leave the assembly to the numeric one: products of the parent's
       with operands of mixed types build on such results */
    PetscCheck((!values && A->product && A->preallocated) || HybPatternIsWhole(A, o->blocks), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s is not assembled", (char)('A' + k), MatProductTypes[C->product->type]);
    PetscCall(HybMatProductBlocks(A, o->blocks, o->block[k], &p->garray));
    p->rows    = A->rmap->range;
    p->columns = A->cmap->range;
    for (int b = 0; b < o->blocks; b++) {
      HybLent *l = &o->lent[k][b];

      if (k && A == o->mat[k - 1] && !o->lent[k - 1][b].foreign)
        *l = o->lent[k - 1][b];
      else
        PetscCall(HybLentGet(o->block[k][b], values, l));
      PetscCheck(!values || l->csr.a || !l->csr.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY)", (char)('A' + k), MatProductTypes[C->product->type], (PetscInt64)l->csr.nnz);
      *HybParCSRBlock(p, b) = l->csr;
      o->work += l->csr.nnz;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define OPERANDS_SMALL    100000 /* nonzeros that run on the device in any case: HybGlueDeviceMin()'s most */
#define OPERANDS_PRODUCTS 3      /* of a product of matrices take the host as long as a nonzero elsewhere */

/* A product of small matrices with many products is work enough for the device: o->work becomes the nonzeros that take
   as long. Counted where it can change something, of the host's arrays. */
PetscErrorCode HybOperandsWork(Mat C, const HybChoices *choices, HybProductType type, HybOperands *o)
{
  const HybCSR *A = &o->lent[0][0].csr, *B = &o->lent[1][0].csr;
  PetscCount    products = 0;

  PetscFunctionBegin;
  if (o->blocks > 1 || type != HYB_PRODUCT_AB || o->work >= OPERANDS_SMALL || choices->backend != HYB_BACKEND_AUTO || HybGlueState.devicestatus == HYB_DEVICE_NONE) PetscFunctionReturn(PETSC_SUCCESS);
#if defined(PETSC_HAVE_DEVICE)
  if (C->boundtocpu) PetscFunctionReturn(PETSC_SUCCESS);
#endif
  for (int k = 0; k < 2; k++) {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    if (!MatIsSeqAIJHybridGPU(o->mat[k])) continue;
    PetscCall(MatSeqAIJHybridGPUGetData(o->mat[k], &hyb));
    if (HybBorn(hyb)) PetscFunctionReturn(PETSC_SUCCESS); /* the host does not read what the device holds */
  }
  if (A->n != B->m) PetscFunctionReturn(PETSC_SUCCESS); /* an error, which is told later */
  for (PetscCount k = 0; k < A->nnz; k++) products += B->i[A->j[k] + 1] - B->i[A->j[k]];
  o->work = PetscMax(o->work, products / OPERANDS_PRODUCTS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the operands to where the product runs; also once more, to another place. One matrix may be several
   operands. */
PetscErrorCode HybOperandsSend(HybOperands *o, const HybExec *x, PetscBool values)
{
  PetscFunctionBegin;
  if (!HybExecOnDevice(x) && !o->sent.exec.backend) PetscFunctionReturn(PETSC_SUCCESS); /* they are there */
  PetscCall(HybArenaReset(&o->sent));
  o->sent = HybArenaOn(x);
  for (PetscInt k = 0; k < o->n; k++) {
    if (o->copied[k] && o->blocks == 2) PetscCall(MatMPIAIJGetSeqAIJ(o->mat[k], NULL, NULL, &o->csr[k].garray));
    o->copied[k] = PETSC_FALSE;
    for (int b = 0; b < o->blocks; b++) {
      HybCSR  *d    = HybParCSRBlock(&o->csr[k], b);
      PetscInt same = 0;

      while (o->block[same][b] != o->block[k][b]) same++;
      *d = same < k ? *HybParCSRBlock(&o->csr[same], b) : o->lent[k][b].csr;
      if (HybExecOnDevice(x) && same == k) PetscCall(HybOperandSend(o->block[k][b], &o->lent[k][b], x, values, &o->sent, d));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybOperandsRestore(HybOperands *o)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&o->sent));
  for (PetscInt k = 0; k < o->n; k++)
    for (int b = 0; b < o->blocks; b++)
      if (o->block[k][b]) PetscCall(HybLentRestore(o->block[k][b], &o->lent[k][b]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the operands' blocks, but of those that are known */
static PetscErrorCode HybOperandsHash(const HybExec *x, HybOperands *o, PetscBool known[3][2], uint64_t hash[3][2])
{
  const HybCSR *list[HYB_HASHES];
  uint64_t      of[HYB_HASHES];
  PetscInt      n = 0, m = 0;

  PetscFunctionBegin;
  for (int k = 0; k < o->n; k++)
    for (int b = 0; b < o->blocks; b++)
      if (!known[k][b]) list[n++] = HybParCSRBlock(&o->csr[k], b);
  PetscCall(HybPatternHash(x, n, list, of));
  for (int k = 0; k < o->n; k++)
    for (int b = 0; b < o->blocks; b++)
      if (!known[k][b]) hash[k][b] = of[m++];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows ascend, and so do the columns of others, which MatCreateSubMatrix() leaves as they come. told: -info knows that
   they did not. */
static PetscErrorCode HybOperandSort(HybOperands *o, PetscInt k, const HybExec *x, PetscBool told)
{
  static const char *const roles[] = {"A", "B", "C"};
  HybParCSR               *M       = &o->csr[k];
  PetscInt                *garray, *order, *to = NULL, same = 0;
  PetscBool                ascend = PETSC_TRUE;

  PetscFunctionBegin;
  if (o->copied[k]) PetscFunctionReturn(PETSC_SUCCESS);
  while (o->mat[same] != o->mat[k]) same++;
  if (same < k) {
    *M           = o->csr[same];
    o->copied[k] = o->copied[same];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!o->sent.exec.backend) o->sent = HybArenaOn(x);
  for (PetscInt c = 1; o->blocks == 2 && c < M->O.n; c++) ascend = (PetscBool)(ascend && M->garray[c - 1] < M->garray[c]);
  if (!ascend) {
    PetscCall(HybArenaAlloc(&o->sent, HYB_MEM_HOST, M->O.n, sizeof(PetscInt), &garray));
    PetscCall(HybArenaAlloc(&o->sent, HYB_MEM_HOST, M->O.n, sizeof(PetscInt), &order));
    PetscCall(HybArenaAlloc(&o->sent, HYB_MEM_HOST, M->O.n, sizeof(PetscInt), &to));
    PetscCall(PetscArraycpy(garray, M->garray, M->O.n));
    for (PetscInt c = 0; c < M->O.n; c++) order[c] = c;
    PetscCall(PetscSortIntWithArray(M->O.n, garray, order));
    for (PetscInt c = 0; c < M->O.n; c++) to[order[c]] = c;
    M->garray = garray;
  }
  for (int b = 0; b < o->blocks; b++) {
    PetscBool copied = told;

    PetscCall(HybLentSort(o->block[k][b], &o->lent[k][b], x, b ? to : NULL, roles[k], &o->sent, HybParCSRBlock(M, b), &copied));
    o->copied[k] = (PetscBool)(o->copied[k] || copied);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operands are remembered, in the order that a product wants */
PetscErrorCode HybOperandsNote(HybMatProduct *mp, HybOperands *o)
{
  PetscBool known[3][2];
  uint64_t  hash[3][2];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < o->n; k++) {
    const HybParCSR *M = &o->csr[k];

    PetscCall(HybOperandSort(o, k, &mp->exec, PETSC_FALSE));
    mp->unsorted[k] = o->copied[k];
    for (int b = 0; b < o->blocks; b++) {
      const HybCSR       *csr = HybParCSRBlock(&o->csr[k], b);
      HybMatProductBlock *of  = &mp->block[b];

      of->operand[k].id  = ((PetscObject)o->block[k][b])->id;
      of->operand[k].key = o->lent[k][b].key;
      of->operand[k].m   = csr->m;
      of->operand[k].n   = csr->n;
      of->operand[k].nnz = csr->nnz;
      /* of ours it is known whether they are the same ones; for others in their place the phase is repeated once, on
         the host of one process, before hashes are made, which take a fifth of a first product of short rows */
      known[k][b] = (PetscBool)(o->blocks == 1 && !mp->hashes && !HybExecOnDevice(&mp->exec) && of->operand[k].key.made);
      hash[k][b]  = 0;
    }
    if (o->blocks == 1) continue;
    PetscCall(PetscFree(mp->columns[k].garray));
    mp->columns[k].as = k && o->mat[k] == o->mat[k - 1] ? mp->columns[k - 1].as : k;
    if (mp->columns[k].as == k) {
      PetscCall(PetscMalloc1(M->O.n, &mp->columns[k].garray));
      PetscCall(PetscArraycpy(mp->columns[k].garray, M->garray, M->O.n));
    }
  }
  PetscCall(HybOperandsHash(&mp->exec, o, known, hash));
  for (PetscInt k = 0; k < o->n; k++)
    for (int b = 0; b < o->blocks; b++) mp->block[b].operand[k].pattern = hash[k][b];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the operands of the pattern that the symbolic phase saw? Other Mats may stand in for the first ones. Of blocks of
   ours it is known that nothing has moved; of others nothing is: states begin anew where PETSc replaces what a matrix
   holds, and may come to the same number. Nothing is noted unless all are of the plan's patterns: else the next phase
   would take them for those of the plan. */
PetscErrorCode HybOperandsSame(HybMatProduct *mp, HybOperands *o, PetscBool *same)
{
  uint64_t  hash[3][2];
  PetscBool known[3][2], all = PETSC_TRUE;

  PetscFunctionBegin;
  *same = (PetscBool)(mp->noperands == o->n);
  for (PetscInt k = 0; k < o->n && *same; k++) {
    if (mp->unsorted[k]) PetscCall(HybOperandSort(o, k, &mp->exec, PETSC_TRUE));
    for (int b = 0; b < o->blocks && *same; b++) {
      const HybMatProductBlock *of  = &mp->block[b];
      const HybCSR             *csr = HybParCSRBlock(&o->csr[k], b);

      known[k][b] = (PetscBool)(o->lent[k][b].key.made && ((PetscObject)o->block[k][b])->id == of->operand[k].id && HybPatternKeyEqual(&o->lent[k][b].key, &of->operand[k].key));
      *same       = (PetscBool)(csr->m == of->operand[k].m && csr->n == of->operand[k].n && csr->nnz == of->operand[k].nnz && (known[k][b] || of->operand[k].pattern));
      all         = (PetscBool)(all && known[k][b]);
    }
  }
  if (*same && !all) PetscCall(HybOperandsHash(&mp->exec, o, known, hash));
  for (PetscInt k = 0; k < o->n && *same && (!all || o->blocks == 2); k++) {
    for (int b = 0; b < o->blocks; b++) *same = (PetscBool)(*same && (known[k][b] || hash[k][b] == mp->block[b].operand[k].pattern));
    /* garray is looked at each time, since PETSc numbers it anew where no state tells; of one matrix once */
    if (*same && o->blocks == 2 && (mp->columns[k].as == k || o->mat[k] != o->mat[mp->columns[k].as])) PetscCall(PetscArraycmp(o->csr[k].garray, mp->columns[mp->columns[k].as].garray, o->csr[k].O.n, same));
  }
  for (PetscInt k = 0; k < o->n && *same && !all; k++) {
    for (int b = 0; b < o->blocks; b++) {
      mp->block[b].operand[k].id  = ((PetscObject)o->block[k][b])->id;
      mp->block[b].operand[k].key = o->lent[k][b].key;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which operands have the values of the last numeric phase here; note: this one sees them. Where they can be known
   again: device copies of ours follow the object's state as well. Others may be written past it. */
PetscErrorCode HybOperandsValuesSeen(HybMatProduct *mp, HybOperands *o, PetscBool note, PetscBool seen[3])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < 3; k++) seen[k] = (PetscBool)(k < o->n && HybExecOnDevice(&mp->exec));
  for (PetscInt k = 0; k < o->n && HybExecOnDevice(&mp->exec); k++) {
    for (int b = 0; b < o->blocks; b++) {
      const Mat              A     = o->block[k][b];
      HybMatProductBlock    *of    = &mp->block[b];
      PetscObjectId          id    = 0;
      const PetscObjectState state = ((PetscObject)A)->state;
      PetscCount             moves = 0;

      if (MatIsSeqAIJHybridGPU(A) && A->spptr) {
        Mat_SeqAIJHybridGPU *hyb = NULL;

        PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
        moves = hyb->moves;
        id    = ((PetscObject)A)->id;
      }
      seen[k] = (PetscBool)(seen[k] && id && id == of->values[k].id && state == of->values[k].state && moves == of->values[k].moves);
      if (!note) continue;
      of->values[k].id    = id;
      of->values[k].state = state;
      of->values[k].moves = moves;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybOperandsValuesForget(HybMatProduct *mp)
{
  for (PetscInt k = 0; k < 3; k++) {
    for (int b = 0; b < mp->blocks; b++) mp->block[b].values[k].id = 0;
    mp->stays[k] = PETSC_FALSE;
  }
}

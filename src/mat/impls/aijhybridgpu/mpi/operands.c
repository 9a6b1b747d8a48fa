/*
  The operands of a parallel product: lent by their matrices, brought to where the product runs, and known again.
*/
#include "product.h"
#include <string.h>

PetscErrorCode HybMPIOperandsMats(Mat C, HybMPIOperands *o)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  o->mat[0] = product->A;
  o->mat[1] = product->B;
  o->mat[2] = product->C;
  o->n      = product->type == MATPRODUCT_ABC ? 3 : 2;
  for (PetscInt k = 0; k < o->n; k++) PetscCheck(o->mat[k], PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s is missing", (char)('A' + k), MatProductTypes[product->type]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates have made its pattern, and its values are zeros so far: AIJ multiplies with it */
PetscBool HybMPIPatternIsWhole(Mat A)
{
  Mat             block[2] = {NULL, NULL};
  const PetscInt *garray   = NULL;
  PetscBool       again;

  if (A->assembled) return PETSC_TRUE;
  if (MatIsMPIAIJHybridGPU(A) && A->spptr && ((Mat_MPIAIJHybridGPU *)A->spptr)->unmade) return PETSC_FALSE;
  again = (PetscBool)(A->preallocated && A->was_assembled && !MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  /* entries that were there were set again: no block has another pattern than at the last assembly, none was taken
     apart */
  for (int k = 0; k < 2; k++) again = (PetscBool)(again && block[k] && block[k]->assembled && block[k]->nonzerostate == block[k]->ass_nonzerostate);
  if (again) return PETSC_TRUE;
  return (PetscBool)(A->preallocated && MatIsMPIAIJHybridGPU(A) && A->spptr && ((Mat_MPIAIJHybridGPU *)A->spptr)->coopattern);
}

/* The two below, and all after them, are not collective */
PetscErrorCode HybMPIOperandsGet(Mat C, PetscBool values, HybMPIOperands *o)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < o->n; k++) {
    Mat        A = o->mat[k];
    HybParCSR *p = &o->csr[k];

    /* the parent's symbolic phases make a pattern and leave the assembly to the numeric one */
    PetscCheck((!values && A->product && A->preallocated) || HybMPIPatternIsWhole(A), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s is not assembled", (char)('A' + k), MatProductTypes[C->product->type]);
    PetscCall(MatMPIAIJGetSeqAIJ(A, &o->block[k][0], &o->block[k][1], &p->garray));
    p->rows    = A->rmap->range;
    p->columns = A->cmap->range;
    for (int b = 0; b < 2; b++) {
      HybLent *l = &o->lent[k][b];

      PetscCall(HybLentGet(o->block[k][b], values, l));
      PetscCheck(!values || l->csr.a || !l->csr.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY)", (char)('A' + k), MatProductTypes[C->product->type], (PetscInt64)l->csr.nnz);
      *(b ? &p->O : &p->D) = l->csr;
      o->work += l->csr.nnz;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the operands to where the product runs. One matrix may be several operands. */
PetscErrorCode HybMPIOperandsSend(HybMPIOperands *o, const HybExec *x, PetscBool values)
{
  PetscFunctionBegin;
  PetscCall(HybArenaInit(&o->sent, x));
  if (!HybExecOnDevice(x)) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < o->n; k++) {
    for (int b = 0; b < 2; b++) {
      HybCSR *d = b ? &o->csr[k].O : &o->csr[k].D;

      if (k && o->block[k][b] == o->block[k - 1][b])
        *d = b ? o->csr[k - 1].O : o->csr[k - 1].D;
      else
        PetscCall(HybOperandSend(o->block[k][b], &o->lent[k][b], x, values, &o->sent, d));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMPIOperandsReset(HybMPIOperands *o)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&o->sent));
  for (PetscInt k = 0; k < o->n; k++) {
    PetscCall(MatMPIAIJGetSeqAIJ(o->mat[k], NULL, NULL, &o->csr[k].garray));
    o->csr[k].D  = o->lent[k][0].csr;
    o->csr[k].O  = o->lent[k][1].csr;
    o->copied[k] = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: rows of both blocks ascend, and so do the columns of others, which MatCreateSubMatrix() leaves as
   they come. told: -info knows that they did not. */
static PetscErrorCode HybMPIOperandSort(HybMPIOperands *o, PetscInt k, const HybExec *x, PetscBool told)
{
  static const char *const roles[] = {"A", "B", "C"};
  HybParCSR               *M       = &o->csr[k];
  PetscInt                *garray, *order, *to = NULL;
  PetscBool                ascend = PETSC_TRUE, copied[2] = {told, told};

  PetscFunctionBegin;
  if (o->copied[k]) PetscFunctionReturn(PETSC_SUCCESS);
  if (k && o->mat[k] == o->mat[k - 1]) {
    *M           = o->csr[k - 1];
    o->copied[k] = o->copied[k - 1];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt c = 1; c < M->O.n; c++) ascend = (PetscBool)(ascend && M->garray[c - 1] < M->garray[c]);
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
  for (int b = 0; b < 2; b++) PetscCall(HybLentSort(o->block[k][b], &o->lent[k][b], x, b ? to : NULL, roles[k], &o->sent, b ? &M->O : &M->D, &copied[b]));
  o->copied[k] = (PetscBool)(copied[0] || copied[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMPIOperandsRestore(HybMPIOperands *o)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&o->sent));
  for (PetscInt k = 0; k < o->n; k++)
    for (int b = 0; b < 2; b++)
      if (o->block[k][b]) PetscCall(HybLentRestore(o->block[k][b], &o->lent[k][b]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the operands' blocks, but of those that are known */
static PetscErrorCode HybMPIOperandsHash(const HybExec *x, const HybMPIOperands *o, PetscBool known[3][2], uint64_t hash[3][2])
{
  const HybCSR *list[HYB_HASHES];
  uint64_t      of[HYB_HASHES];
  PetscInt      n = 0;

  PetscFunctionBegin;
  for (int k = 0; k < 2 * o->n; k++)
    if (!known[k / 2][k % 2]) list[n++] = k % 2 ? &o->csr[k / 2].O : &o->csr[k / 2].D;
  PetscCall(HybPatternHash(x, n, list, of));
  for (int k = 2 * (int)o->n; k-- > 0;)
    if (!known[k / 2][k % 2]) hash[k / 2][k % 2] = of[--n];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: the operands are fit for a product, and are remembered */
PetscErrorCode HybMPIOperandsNote(HybMPIProduct *mp, HybMPIOperands *o)
{
  PetscBool known[3][2];
  uint64_t  hash[3][2];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < o->n; k++) {
    const HybParCSR *M = &o->csr[k];

    PetscCall(HybMPIOperandSort(o, k, &mp->exec, PETSC_FALSE));
    for (int b = 0; b < 2; b++) {
      PetscCall(PetscObjectGetId((PetscObject)o->block[k][b], &mp->operand[k].id[b]));
      PetscCall(HybPatternKeyGet(o->block[k][b], &o->lent[k][b].csr, &mp->operand[k].key[b]));
    }
    mp->operand[k].unsorted = o->copied[k];
    mp->operand[k].m        = M->D.m;
    mp->operand[k].n[0]     = M->D.n;
    mp->operand[k].n[1]     = M->O.n;
    mp->operand[k].nnz[0]   = M->D.nnz;
    mp->operand[k].nnz[1]   = M->O.nnz;
    PetscCall(PetscFree(mp->operand[k].garray));
    mp->operand[k].as = k && o->mat[k] == o->mat[k - 1] ? mp->operand[k - 1].as : k;
    if (mp->operand[k].as == k) {
      PetscCall(PetscMalloc1(M->O.n, &mp->operand[k].garray));
      PetscCall(PetscArraycpy(mp->operand[k].garray, M->garray, M->O.n));
    }
    known[k][0] = known[k][1] = PETSC_FALSE;
  }
  PetscCall(HybMPIOperandsHash(&mp->exec, o, known, hash));
  for (PetscInt k = 0; k < o->n; k++) PetscCall(PetscArraycpy(mp->operand[k].pattern, hash[k], 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: are the operands of the pattern that the symbolic phase saw? Other Mats may stand in for the first
   ones. Of blocks of ours it is known that nothing has moved, of others nothing is. Nothing is noted unless all are of
   the plan's patterns: should another process have an error now, the next phase would take them for those. */
PetscErrorCode HybMPIOperandsSame(HybMPIProduct *mp, HybMPIOperands *o, PetscBool *same)
{
  PetscObjectId id[3][2];
  HybPatternKey key[3][2];
  uint64_t      hash[3][2];
  PetscBool     known[3][2];

  PetscFunctionBegin;
  *same = (PetscBool)(mp->noperands == o->n);
  for (PetscInt k = 0; k < o->n && *same; k++) {
    const HybParCSR *M = &o->csr[k];

    if (mp->operand[k].unsorted) PetscCall(HybMPIOperandSort(o, k, &mp->exec, PETSC_TRUE));
    *same = (PetscBool)(M->D.m == mp->operand[k].m && M->D.n == mp->operand[k].n[0] && M->O.n == mp->operand[k].n[1] && M->D.nnz == mp->operand[k].nnz[0] && M->O.nnz == mp->operand[k].nnz[1]);
    if (!*same) break;
    for (int b = 0; b < 2; b++) {
      PetscCall(PetscObjectGetId((PetscObject)o->block[k][b], &id[k][b]));
      PetscCall(HybPatternKeyGet(o->block[k][b], &o->lent[k][b].csr, &key[k][b]));
      known[k][b] = (PetscBool)(key[k][b].made && id[k][b] == mp->operand[k].id[b] && HybPatternKeyEqual(&key[k][b], &mp->operand[k].key[b]));
    }
  }
  if (*same) PetscCall(HybMPIOperandsHash(&mp->exec, o, known, hash));
  for (PetscInt k = 0; k < o->n && *same; k++) {
    for (int b = 0; b < 2; b++) *same = (PetscBool)(*same && (known[k][b] || hash[k][b] == mp->operand[k].pattern[b]));
    /* garray is looked at each time, since PETSc numbers it anew where no state tells; of one matrix once */
    if (*same && (mp->operand[k].as == k || o->mat[k] != o->mat[mp->operand[k].as])) PetscCall(PetscArraycmp(o->csr[k].garray, mp->operand[mp->operand[k].as].garray, o->csr[k].O.n, same));
  }
  for (PetscInt k = 0; k < o->n && *same; k++) {
    PetscCall(PetscArraycpy(mp->operand[k].id, id[k], 2));
    PetscCall(PetscArraycpy(mp->operand[k].key, key[k], 2));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

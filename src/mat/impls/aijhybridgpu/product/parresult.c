/*
  The parallel result of a product: a MATMPIAIJ round the blocks that the room parprod made, or one that keeps a pattern
  of its own (kept.c) which is wider than the product's, in columns that the product may lack.
*/
#include "product.h"
#include "../seq/coo.h"

/* Not collective: C has these columns of others already. If so on all processes its blocks stay the objects that they
   are, which a program may have borrowed (MatGetDiagonalBlock(), MatMPIAIJGetSeqAIJ()), and so do garray and the
   options. */
static PetscErrorCode HybParResultSameColumns(Mat C, const HybMatProduct *mp, const HybParCSR *result, PetscBool *same)
{
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  *same = PETSC_FALSE;
  if (!mp->block[0].result.id || !C->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  *same = (PetscBool)(block[0] && block[1] && MatIsSeqAIJHybridGPU(block[0]) && MatIsSeqAIJHybridGPU(block[1]) && block[1]->cmap->n == result->O.n && (garray || !result->O.n));
  if (*same) PetscCall(PetscArraycmp(garray, result->garray, result->O.n, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* repeated, on all processes: C is the result of an earlier symbolic phase; stay: and has these columns of others.
   before: an error of this process's. */
static PetscErrorCode HybParResultAdopt(Mat C, HybMatProduct *mp, PetscErrorCode before, PetscBool repeated, PetscBool stay, HybArena out[2], const HybParCSR *result)
{
  const PetscBool      again = (PetscBool)(mp->block[0].result.id && C->preallocated);
  const HybExec       *x     = &mp->exec;
  const char          *what  = "Taking over the result of a parallel product";
  HybAsked             asked[2][HYB_LEFT];
  Mat_MPIAIJHybridGPU *hyb  = NULL;
  PetscBool            made = stay;
  PetscErrorCode       ierr = before;

  PetscFunctionBegin;
  if (!ierr) ierr = MatMPIAIJHybridGPUGetData(C, &hyb);
  if (!ierr && again) ierr = MatMPIAIJHybridGPULeftOptions(C, asked);
  if (!ierr) ierr = HybCOOParentsGone((PetscObject)C, "HybMPICOO", &hyb->coocount);
  if (!stay) ierr = MatMPIAIJHybridGPUSetFrame(C, ierr, result->O.n, result->garray, &made);
  if (!made) PetscFunctionReturn(ierr);
  /* until all of it is there C is nobody's result, and has nothing that entries could be set in */
  C->preallocated = C->assembled = C->was_assembled = PETSC_FALSE;
  mp->zeros                                         = PETSC_TRUE;
  /* a symbolic result may be used as it is: no stray values */
  for (int b = 0; b < 2 && !ierr; b++) ierr = x->backend->zero(x, (b ? &result->O : &result->D)->a, sizeof(HybScalar) * (size_t)(b ? &result->O : &result->D)->nnz);
  if (!ierr) ierr = MatMPIAIJHybridGPUAdoptBlocks(C, x, out, result);
  if (!ierr) ierr = HybResultNote(C, mp);
  C->preallocated = C->assembled = PETSC_TRUE;
  if (!ierr) ierr = PetscObjectStateIncrease((PetscObject)C);
  /* what the program said of C since, or as the parent's from coordinates */
  if (!ierr) ierr = again ? MatMPIAIJHybridGPUSetLeftOptions(C, (const HybAsked(*)[HYB_LEFT])asked) : MatSetOption(C, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE);
  if (!ierr) ierr = MatMPIAIJHybridGPUSetBlocks(C);
  /* so that an assembly, which sums, leaves it; what P^T A P leaves to its numeric phase keeps its state (below) */
  ierr = repeated || C->product->type != MATPRODUCT_PtAP ? MatMPIAIJHybridGPUSumStates(C, ierr, what) : HybAgree(PetscObjectComm((PetscObject)C), ierr, what);
  if (ierr) C->preallocated = C->assembled = PETSC_FALSE;
  PetscCall(ierr);
  if (stay) { /* the parent forgets its room for a row, which may be longer now */
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: the product's columns of others as C numbers them; none where C lacks one of them */
static PetscErrorCode HybParResultColumns(const HybExec *x, PetscInt n, const PetscInt *garray, HybArena *arena, const HybParCSR *result, PetscInt **j)
{
  PetscInt      *map, *there;
  PetscBool      all = PETSC_TRUE, other = (PetscBool)(n != result->O.n);
  PetscErrorCode ierr = PETSC_SUCCESS;
  HybArena       work = HybArenaOn(x);

  PetscFunctionBegin;
  *j = NULL;
  PetscCall(PetscMalloc1(result->O.n + 1, &map));
  for (PetscInt k = 0, c = 0; k < result->O.n && all; k++) {
    while (c < n && garray[c] < result->garray[k]) c++;
    all    = (PetscBool)(c < n && garray[c] == result->garray[k]);
    other  = (PetscBool)(other || c != k);
    map[k] = c;
  }
  if (all) {
    *j = result->O.j;
    if (other) {
      ierr = HybArenaAlloc(arena, HYB_WORK(x), result->O.nnz, sizeof(PetscInt), j);
      if (!ierr) ierr = HybArenaAlloc(&work, HYB_WORK(x), (PetscCount)result->O.n + 1, sizeof(PetscInt), &there);
      if (!ierr) ierr = x->backend->copy(x, there, map, sizeof(PetscInt) * (size_t)result->O.n, HYB_COPY_HOST_TO_DEVICE);
      if (!ierr) ierr = x->backend->copy(x, *j, result->O.j, sizeof(PetscInt) * (size_t)result->O.nnz, HYB_COPY_DEVICE_TO_DEVICE);
      if (!ierr) ierr = x->backend->local->mapcolumns(x, result->O.nnz, there, *j);
      if (!ierr) ierr = x->backend->sync(x); /* map goes */
    }
  }
  PetscCall(HybArenaReset(&work));
  PetscCall(PetscFree(map));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: is each block of the result within C's; is it the same? */
static PetscErrorCode HybParResultWithin(Mat C, HybMatProduct *mp, HybArena out[2], const HybParCSR *result, PetscBool *within, PetscBool equal[2], PetscInt **j)
{
  const HybExec  *x = &mp->exec;
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  *within = PETSC_FALSE;
  if (!HybPatternIsWhole(C, 2)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  if (!block[0] || !block[1] || !MatIsSeqAIJHybridGPU(block[0]) || !MatIsSeqAIJHybridGPU(block[1]) || (!garray && result->O.n)) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 1; k < block[1]->cmap->n; k++)
    if (garray[k - 1] >= garray[k]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParResultColumns(x, block[1]->cmap->n, garray, &out[1], result, j));
  *within = (PetscBool)(*j != NULL);
  for (int k = 0; k < 2 && *within; k++) {
    HybCSR csr = k ? result->O : result->D;

    PetscCall(x->backend->zero(x, csr.a, sizeof(HybScalar) * (size_t)csr.nnz));
    if (k) {
      csr.j = *j;
      csr.n = block[1]->cmap->n;
    }
    PetscCall(HybKeptWithin(block[k], x, &csr, within, &equal[k]));
  }
  equal[1] = (PetscBool)(equal[1] && *j == result->O.j);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. *kept: C keeps its pattern, on all processes; *stay: or its columns of others */
static PetscErrorCode HybParResultKeep(Mat C, HybMatProduct *mp, PetscErrorCode before, HybArena out[2], const HybParCSR *result, PetscBool *kept, PetscBool *stay)
{
  PetscBool      within = PETSC_FALSE, same = PETSC_FALSE, equal[2] = {PETSC_FALSE, PETSC_FALSE};
  PetscInt      *j = NULL;
  PetscInt64     lacks[2];
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!ierr) ierr = HybParResultWithin(C, mp, out, result, &within, equal, &j);
  if (!ierr) ierr = HybParResultSameColumns(C, mp, result, &same);
  if (!ierr && within) ierr = HybResultNote(C, mp); /* now: later an error would be this process's alone */
  lacks[0] = !within;
  lacks[1] = !same;
  PetscCall(HybAgreeMax(PetscObjectComm((PetscObject)C), ierr, "Comparing a parallel product with the matrix that is used again", 2, lacks));
  *kept = (PetscBool)!lacks[0];
  *stay = (PetscBool)!lacks[1];
  for (int k = 0; k < 2 && *kept; k++) {
    if (equal[k]) continue; /* its arrays go with out */
    HybKeptSet(&mp->block[k].kept, &out[k], k ? &result->O : &result->D);
    if (k) mp->block[1].kept.j = j;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParResultPattern(Mat C, HybMatProduct *mp, PetscErrorCode before, PetscBool again, HybArena out[2], const HybParCSR *result)
{
  PetscBool kept = PETSC_FALSE, stay = PETSC_FALSE;

  PetscFunctionBegin;
  if (again) PetscCall(HybParResultKeep(C, mp, before, out, result, &kept, &stay));
  if (!kept) PetscCall(HybParResultAdopt(C, mp, again ? PETSC_SUCCESS : before, again, stay, out, result));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: do AIJ's products A B say MAT_NO_OFF_PROC_ENTRIES of their result? Some releases' do. One of nothing
   but this process tells. */
PetscErrorCode HybParResultRefusesOthers(HybProductType type, PetscBool *refuses)
{
  PetscErrorCode ierr;
  Mat            A, C = NULL;

  PetscFunctionBegin;
  *refuses = PETSC_FALSE;
  if (type != HYB_PRODUCT_AB && type != HYB_PRODUCT_ABC && type != HYB_PRODUCT_ABT) PetscFunctionReturn(PETSC_SUCCESS);
  if (!HybGlueState.productrefuses) {
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    ierr = MatSetSizes(A, 1, 1, 1, 1);
    if (!ierr) ierr = MatSetType(A, MATMPIAIJ);
    if (!ierr) ierr = MatMPIAIJSetPreallocation(A, 1, NULL, 0, NULL);
    if (!ierr) ierr = MatSetValue(A, 0, 0, 1.0, INSERT_VALUES);
    if (!ierr) ierr = MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
    if (!ierr) ierr = MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
    if (!ierr) ierr = MatProductCreate(A, A, NULL, &C);
    if (!ierr) ierr = MatSetOptionsPrefix(C, "mat_aijhybridgpu_probe_");
    if (!ierr) ierr = MatProductSetType(C, MATPRODUCT_AB);
    if (!ierr) ierr = MatProductSetFromOptions(C);
    if (!ierr) ierr = MatProductSymbolic(C);
    if (!ierr) HybGlueState.productrefuses = C->nooffprocentries ? 1 : -1;
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&A));
    PetscCall(ierr);
  }
  *refuses = (PetscBool)(HybGlueState.productrefuses > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: C lets new entries in (nonew of the parent's diagonal block is 0) */
PetscBool HybParResultTakesNew(Mat C)
{
  HybAsked asked[2][HYB_LEFT];

  if (!C->preallocated || MatMPIAIJHybridGPULeftOptions(C, asked)) return PETSC_FALSE;
  return (PetscBool)(asked[0][0].said && asked[0][0].op == MAT_NEW_NONZERO_LOCATIONS && asked[0][0].flg);
}

/* A numeric phase has ended; before: C was assembled when it began. What AIJ does besides the values. */
PetscErrorCode HybParResultEnd(Mat C, HybMatProduct *mp, PetscBool before)
{
  const MatProductType type = C->product->type;
  Mat_MPIAIJHybridGPU *hyb  = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  hyb->unmade = PETSC_FALSE;
  mp->pending = PETSC_FALSE;
  if (mp->assemble) { /* as the parent's ends */
    C->assembled = before;
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  } else {
    HybResultAssembled(C, before);
    PetscCall(PetscObjectStateIncrease((PetscObject)C));
  }
  /* its zeros */
  if (type == MATPRODUCT_AtB || type == MATPRODUCT_PtAP) PetscCall(PetscObjectStateIncrease((PetscObject)C));
  if (type == MATPRODUCT_AtB) PetscCall(MatSetOption(C, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

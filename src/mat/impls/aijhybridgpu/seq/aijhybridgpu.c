/*
  The sequential type: what is overridden over MATSEQAIJ, conversion both ways, and the private data.

  The parent's operations are hidden symbols in a shared PETSc, so they are taken as a whole (struct _MatOps) from the
  first pristine object that passes through the converter, and called through that copy.
*/
#include "../aijhybridgpuimpl.h"

static PetscErrorCode MatSeqAIJHybridGPUDestroyPlans(Mat_SeqAIJHybridGPU *hyb)
{
  PetscFunctionBegin;
  PetscCall(HybMultPlanDestroy(&hyb->host));
  PetscCall(HybMultPlanDestroy(&hyb->device));
  PetscCall(HybMultPlanDestroy(&hyb->transpose.mult));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatDestroy_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybArena             arrays;
  PetscErrorCode       ierr = PETSC_SUCCESS, later; /* the first error is reported when all else is done */

  PetscFunctionBegin;
  if (hyb) {
    HybRecordGone(A);
    ierr  = MatSeqAIJHybridGPUDestroyPlans(hyb);
    later = MatSeqAIJHybridGPUDestroyDevice(hyb);
    if (!ierr) ierr = later;
    hyb->readers = hyb->writers = hyb->rows = hyb->patterns = 0; /* whoever holds them still, holds nothing from here on */
    later                                                   = HybStorageDropMoved(A, hyb);
    if (!ierr) ierr = later;
    later = HybStorageFreeRetired(hyb);
    if (!ierr) ierr = later;
    arrays = hyb->arrays;
    PetscCall(PetscFree(A->spptr));
  }
  if (((PetscObject)A)->qlist) PetscCall(MatAIJHybridGPUCompose(A, PETSC_TRUE, PETSC_FALSE)); /* none are left when MatHeaderMerge() empties A */
  if (A->data) PetscCall((*HybGlueState.seq.destroy)(A));                                     /* none is left where an error ended the first attempt */
  if (hyb) {                                                                                  /* the base class used them until now */
    later = HybArenaReset(&arrays);
    if (!ierr) ierr = later;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has A's pattern an entry for each of these? Rows and columns out of range are the parent's to refuse or to ignore. */
static PetscErrorCode HybHasEntries(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], PetscBool *has)
{
  const PetscInt *i, *j;

  PetscFunctionBegin;
  *has = PETSC_TRUE;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, NULL, NULL));
  for (PetscInt k = 0; k < m && *has; k++) {
    const PetscInt r = rows[k];

    if (r < 0 || r >= A->rmap->n) continue;
    if (n == i[r + 1] - i[r] && !memcmp(cols, j + i[r], sizeof(PetscInt) * (size_t)n)) continue; /* the whole row in order */
    for (PetscInt c = 0; c < n && *has; c++) {
      PetscInt where = 0;

      if (cols[c] >= 0 && cols[c] < A->cmap->n) PetscCall(PetscFindInt(cols[c], i[r + 1] - i[r], j + i[r], &where));
      *has = (PetscBool)(where >= 0);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Entries that a result's pattern has are written where they are. The base class needs arrays of its own before it makes
  room for others: it cannot enlarge ours. Promoted values return to the host, which is the writer from here on, unless
  somebody holds them.
*/
PetscErrorCode MatSeqAIJHybridGPUSetValuesBegin(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[])
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  const PetscInt      *i;
  PetscBool            has;

  PetscFunctionBegin;
  if (!hyb) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->inserted = PETSC_TRUE;
  if ((!hyb->arrays.blocks && !hyb->movedto) || MatSeqAIJHybridGPULockedTakesValues(hyb)) PetscFunctionReturn(PETSC_SUCCESS);
  if (hyb->lives == HYB_LIVES_PROMOTED && !HybStorageHeld(hyb)) PetscCall(MatSeqAIJHybridGPUDemote(A));
  if (!hyb->arrays.blocks && !hyb->movedto) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  has = (PetscBool)(hyb->movedto || i == hyb->adopted);
  if (has) PetscCall(HybHasEntries(A, m, rows, n, cols, &has));
  if (!has)
    PetscCall(MatSeqAIJHybridGPUDisown(A));
  else
    PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetValues_SeqAIJHybridGPU(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  Mat_SeqAIJHybridGPU *hyb;
  PetscErrorCode       ierr;
  int                  writers;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, setvalues, A, m, rows, n, cols, v, mode);
  PetscCall(MatSeqAIJHybridGPUSetValuesBegin(A, m, rows, n, cols));
  hyb     = (Mat_SeqAIJHybridGPU *)A->spptr;
  writers = hyb ? hyb->writers : 0;
  ierr    = (*HybGlueState.seq.setvalues)(A, m, rows, n, cols, v, mode);
  if (ierr && hyb) hyb->writers = writers; /* the parent has not given them back */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's MatZeroRows() and MatZeroRowsColumns() go by what AIJ keeps beside the arrays (options), and insert a
   diagonal entry that a row lacks past our MatSetValues(): the base class needs arrays of its own then */
static PetscErrorCode HybZeroRowsBegin(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, PetscBool columns)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybLent              l;
  PetscBool            lacks = PETSC_FALSE, whole = columns, stays; /* whole: no row gets shorter */

  PetscFunctionBegin;
  if (hyb) {
    PetscCall(MatSeqAIJHybridGPULookAtOptions(A));
    if (hyb->asked[HYB_ASKED_KEEP_PATTERN].said && hyb->asked[HYB_ASKED_KEEP_PATTERN].flg) whole = PETSC_TRUE;
  }
  if (!whole) PetscCall(HybInodesFind(A));
  stays = (PetscBool)(hyb && (hyb->lives == HYB_LIVES_LOCKED || HybStorageHeld(hyb)) && whole); /* moved values */
  if (!stays) PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  if (!hyb || (!hyb->arrays.blocks && !hyb->movedto) || diag == (PetscScalar)0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(A, PETSC_FALSE, &l));
  for (PetscInt k = 0; k < n && !lacks; k++) {
    PetscInt where;

    if (rows[k] < 0 || rows[k] >= l.csr.m || rows[k] >= l.csr.n) continue; /* the parent says what is wrong with it */
    PetscCall(PetscFindInt(rows[k], l.csr.i[rows[k] + 1] - l.csr.i[rows[k]], l.csr.j + l.csr.i[rows[k]], &where));
    lacks = (PetscBool)(where < 0);
  }
  PetscCall(HybLentRestore(A, &l));
  if (lacks) PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_SeqAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, zerorows, A, n, rows, diag, x, b);
  PetscCall(HybZeroRowsBegin(A, n, rows, diag, PETSC_FALSE));
  PetscCall((*HybGlueState.seq.zerorows)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRowsColumns_SeqAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, zerorowscolumns, A, n, rows, diag, x, b);
  PetscCall(HybZeroRowsBegin(A, n, rows, diag, PETSC_TRUE));
  PetscCall((*HybGlueState.seq.zerorowscolumns)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 20, 0)
/* the parent shortens the rows where they are */
static PetscErrorCode MatEliminateZeros_SeqAIJHybridGPU(Mat A, PetscBool keep)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, eliminatezeros, A, keep);
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscCall((*HybGlueState.seq.eliminatezeros)(A, keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
  A coloring for finite differences remembers where each value lies, and writes there at each of its calls: the arrays
  have to be AIJ's own and to stay from now on.
*/
PetscErrorCode MatSeqAIJHybridGPUStay(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->lentarrays = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFDColoringSetUp_SeqAIJHybridGPU(Mat A, ISColoring iscoloring, MatFDColoring c)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, fdcoloringsetup, A, iscoloring, c);
  PetscCall(MatSeqAIJHybridGPUStay(A));
  PetscCall((*HybGlueState.seq.fdcoloringsetup)(A, iscoloring, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Functions that PETSc finds by name. PETSc copies an object's list of them to plain matrices too
  (MatGetMultiProcBlock(), factors): of such A nothing of ours is true.
*/
static PetscErrorCode MatStoreValues_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.storevalues)(A));
  if (!MatIsSeqAIJHybridGPU(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->stored = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatRetrieveValues_SeqAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUHostWrites(A)); /* the parent writes them and leaves the object's state */
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.retrievevalues)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJSetPreallocation_SeqAIJHybridGPU(Mat A, PetscInt nz, const PetscInt nnz[])
{
  PetscFunctionBegin;
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  HybWithLargePages(A->rmap->n, (*(PetscErrorCode(*)(Mat, PetscInt, const PetscInt[]))HybGlueState.setpreallocation)(A, nz, nnz));
  if (MatIsSeqAIJHybridGPU(A)) PetscCall(HybStorageSettle(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A result that AIJ would have preallocated is as it would be after that: its rows have the room that they need */
static PetscErrorCode HybResetAsPreallocated(Mat A)
{
  const PetscInt *i;
  PetscInt       *length;

  PetscFunctionBegin;
  if (PETSC_VERSION_GE(3, 22, 0)) {
    PetscCall(MatZeroEntries(A)); /* the parent's: the room is what the rows have */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  PetscCall(PetscMalloc1(A->rmap->n, &length));
  for (PetscInt r = 0; r < A->rmap->n; r++) length[r] = i[r + 1] - i[r];
  PetscCall(MatSeqAIJSetPreallocation(A, 0, length));
  PetscCall(PetscFree(length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatResetPreallocation_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = MatIsSeqAIJHybridGPU(A) ? (Mat_SeqAIJHybridGPU *)A->spptr : NULL;

  PetscFunctionBegin;
  if (hyb && hyb->aspreallocated && hyb->arrays.blocks && A->preallocated) {
    PetscCall(HybResetAsPreallocated(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.resetpreallocation)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 19, 0)
/* The parent frees what is there */
static PetscErrorCode MatResetHash_SeqAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.resethash)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent writes column indices where they are */
static PetscErrorCode MatSeqAIJSetColumnIndices_SeqAIJHybridGPU(Mat A, PetscInt indices[])
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDisown(A)); /* the parent goes by what it has allocated */
  PetscCall((*(PetscErrorCode(*)(Mat, PetscInt[]))HybGlueState.setcolumnindices)(A, indices));
  if (MatIsSeqAIJHybridGPU(A)) PetscCall(MatSeqAIJHybridGPUPatternMoved(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent takes a second factor of the very type MATSEQAIJ alone, and gives a result of it */
static PetscErrorCode MatSeqAIJKron_SeqAIJHybridGPU(Mat A, Mat B, MatReuse reuse, Mat *C)
{
  Mat       plain = NULL;
  PetscBool named, seqaij;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJHYBRIDGPU, &named));
  if (named && B->assembled) PetscCall(MatConvert_SeqAIJHybridGPU_SeqAIJ(B, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain));
  PetscCall((*(PetscErrorCode(*)(Mat, Mat, MatReuse, Mat *))HybGlueState.kron)(A, plain ? plain : B, reuse, C));
  PetscCall(MatDestroy(&plain));
  PetscCall(PetscObjectTypeCompare((PetscObject)*C, MATSEQAIJ, &seqaij));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJHYBRIDGPU, &named));
  if (reuse == MAT_INITIAL_MATRIX && seqaij && named) {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(MatConvert_SeqAIJ_SeqAIJHybridGPU(*C, MATSEQAIJHYBRIDGPU, MAT_INPLACE_MATRIX, C));
    PetscCall(MatSeqAIJHybridGPUGetData(*C, &hyb));
    hyb->lentarrays = PETSC_FALSE; /* nobody else has seen them */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts these over the parent's, or the parent's back */
PetscErrorCode MatSeqAIJHybridGPUComposeOver(Mat A, PetscBool on)
{
  static const struct {
    const char *name;
    void (*ours)(void);
  } over[] = {
    {"MatStoreValues_C",            (void (*)(void))MatStoreValues_SeqAIJHybridGPU           },
    {"MatRetrieveValues_C",         (void (*)(void))MatRetrieveValues_SeqAIJHybridGPU        },
    {"MatSeqAIJSetPreallocation_C", (void (*)(void))MatSeqAIJSetPreallocation_SeqAIJHybridGPU},
    {"MatResetPreallocation_C",     (void (*)(void))MatResetPreallocation_SeqAIJHybridGPU    },
    {"MatSeqAIJSetColumnIndices_C", (void (*)(void))MatSeqAIJSetColumnIndices_SeqAIJHybridGPU},
    {"MatSeqAIJKron_C",             (void (*)(void))MatSeqAIJKron_SeqAIJHybridGPU            },
#if PETSC_VERSION_GE(3, 19, 0)
    {"MatResetHash_C",              (void (*)(void))MatResetHash_SeqAIJHybridGPU             }
#endif
  };
  void (**parents[])(void) = {&HybGlueState.storevalues, &HybGlueState.retrievevalues, &HybGlueState.setpreallocation, &HybGlueState.resetpreallocation, &HybGlueState.setcolumnindices, &HybGlueState.kron, &HybGlueState.resethash};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(over); k++) {
    if (!*parents[k] && on) PetscCall(PetscObjectQueryFunction((PetscObject)A, over[k].name, parents[k]));
    if (*parents[k]) PetscCall(PetscObjectComposeFunction((PetscObject)A, over[k].name, on ? over[k].ours : *parents[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are lent are counted: PETSc's function has given the array back when it returns, and the row points into
   it */
static PetscErrorCode MatGetRow_SeqAIJHybridGPU(Mat A, PetscInt row, PetscInt *n, PetscInt **cols, PetscScalar **v)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, getrow, A, row, n, cols, v);
  PetscCall((*HybGlueState.seq.getrow)(A, row, n, cols, v));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->rows++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatRestoreRow_SeqAIJHybridGPU(Mat A, PetscInt row, PetscInt *n, PetscInt **cols, PetscScalar **v)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, restorerow, A, row, n, cols, v);
  if (HybGlueState.seq.restorerow) PetscCall((*HybGlueState.seq.restorerow)(A, row, n, cols, v));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (hyb->rows) hyb->rows--;
  PetscCall(HybStorageGivenBack(hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent writes the array itself, past the door */
static PetscErrorCode MatConjugate_SeqAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, conjugate, A);
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  PetscCall((*HybGlueState.seq.conjugate)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_SeqAIJHybridGPU(Mat A, MatAssemblyType mode)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscObjectState     state;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, assemblyend, A, mode);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (hyb->assembling && hyb->assembling == state && hyb->copy.values && hyb->copy.mark.state == state) {
    /* MatSetValuesCOO() wrote on the device and calls this: nothing was inserted, and MatAssemblyEnd() will count the
       values as new ones */
    hyb->copy.mark.state = state + 1;
    hyb->copy.mark.step  = PETSC_FALSE;
  } else {
    PetscCall((*HybGlueState.seq.assemblyend)(A, mode));
    if (hyb->inodesleft || hyb->arrays.blocks) PetscCall(HybInodesLend(A, PETSC_TRUE)); /* the parent has chosen again */
  }
  hyb->assembling = 0;
  if (mode == MAT_FINAL_ASSEMBLY) HybGlueState.counts.assemblies++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUOptions(Mat A, HybChoices *c, HybOptionItems PetscOptionsObject)
{
  const char *const  backends[] = {"auto", "host", "cuda", "HybBackendChoice", "HYB_BACKEND_", NULL};
  const char *const *names;
  PetscBool          flg;
  PetscInt           width = c->width;
  char               text[512], value[32];

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "AIJHybridGPU options");
  PetscCall(PetscOptionsEnum("-mat_aijhybridgpu_backend", "Where operations run", "MATAIJHYBRIDGPU", backends, (PetscEnum)c->backend, (PetscEnum *)&c->backend, NULL));
  for (PetscInt k = 0; k < 2; k++) {
    char *choice = k ? c->spmv : c->spgemm;

    PetscCall(k ? HybSpMVGetNames(&names) : HybSpGEMMGetNames(&names));
    PetscCall(PetscStrncpy(text, "(one of) auto", sizeof(text)));
    for (PetscInt n = 0; names[n]; n++) {
      PetscCall(PetscStrlcat(text, " ", sizeof(text)));
      PetscCall(PetscStrlcat(text, names[n], sizeof(text)));
    }
    PetscCall(PetscStrncpy(value, choice, sizeof(value)));
    PetscCall(PetscOptionsString(k ? "-mat_aijhybridgpu_spmv" : "-mat_aijhybridgpu_spgemm", text, "MATAIJHYBRIDGPU", choice, value, sizeof(value), &flg));
    if (!flg) continue;
    PetscCall(HybGlueCheckMethod(k ? "-mat_aijhybridgpu_spmv" : "-mat_aijhybridgpu_spgemm", value, names));
    PetscCall(PetscStrncpy(choice, value, sizeof(c->spmv)));
  }
  PetscCall(PetscOptionsInt("-mat_aijhybridgpu_rowmerge_width", "Rows merged at once by the method rowmerge, 2 to 32; 0: chosen by the method", "MATAIJHYBRIDGPU", width, &width, &flg));
  PetscCheck(!flg || width == 0 || (width >= 2 && width <= 32), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_rowmerge_width %" PetscInt_FMT " is not 0 or within 2 to 32", width);
  c->width = width;
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 23, 0)
static PetscErrorCode MatSetFromOptions_SeqAIJHybridGPU(Mat A, PetscOptionItems *items)
#else
static PetscErrorCode MatSetFromOptions_SeqAIJHybridGPU(Mat A, PetscOptionItems items)
#endif
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybChoices           before;

  PetscFunctionBegin;
  if (HybGlueState.seq.setfromoptions) PetscCall((*HybGlueState.seq.setfromoptions)(A, items));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  before = hyb->choices;
  PetscCall(MatSeqAIJHybridGPUOptions(A, &hyb->choices, items));
  if (memcmp(&before, &hyb->choices, sizeof(before))) PetscCall(MatSeqAIJHybridGPUDestroyPlans(hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_SeqAIJHybridGPU(Mat A, PetscViewer viewer)
{
  PetscBool         isascii;
  PetscViewerFormat format;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, view, A, viewer);
  PetscCall((*HybGlueState.seq.view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  if (!isascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (format == PETSC_VIEWER_ASCII_INFO_DETAIL) {
    Mat_SeqAIJHybridGPU *hyb = NULL;
    char                 text[512];

    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    PetscCall(HybGlueDescribeMemory(text, sizeof(text), NULL));
    PetscCall(HybStorageView(hyb, viewer));
    PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU: %s\n", text));
    PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU: SpMV method %s, SpGEMM method %s, %zu bytes adopted from a product\n", hyb->device.ready ? hyb->device.plan.method->name : (hyb->host.ready ? hyb->host.plan.method->name : hyb->choices.spmv), hyb->choices.spgemm, hyb->arrays.bytes));
    if (A->product && A->product->view) PetscCall((*A->product->view)(A, viewer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The options that a duplicate takes over */
static PetscErrorCode HybAskedKeep(Mat_SeqAIJHybridGPU *hyb, MatOption op, PetscBool flg)
{
  HybAskedGroup group;

  PetscFunctionBegin;
  switch (op) {
  case MAT_ROW_ORIENTED:
    group = HYB_ASKED_ROW_ORIENTED;
    break;
  case MAT_KEEP_NONZERO_PATTERN:
    group = HYB_ASKED_KEEP_PATTERN;
    break;
  case MAT_IGNORE_ZERO_ENTRIES:
    group = HYB_ASKED_IGNORE_ZEROS;
    break;
  case MAT_NEW_NONZERO_LOCATIONS:
  case MAT_NEW_NONZERO_LOCATION_ERR:
  case MAT_NEW_NONZERO_ALLOCATION_ERR:
    group = HYB_ASKED_NEW_NONZEROS;
    break;
  default:
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  hyb->asked[group] = (HybAsked){PETSC_TRUE, op, flg};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetOption_SeqAIJHybridGPU(Mat A, MatOption op, PetscBool flg)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, setoption, A, op, flg);
  if (op == MAT_STRUCTURE_ONLY && flg) PetscCall(MatSeqAIJHybridGPUDisown(A)); /* the parent frees the values */
  PetscCall((*HybGlueState.seq.setoption)(A, op, flg));
  if (op == MAT_SORTED_FULL && !flg) A->ops->setvalues = MatSetValues_SeqAIJHybridGPU; /* the parent has put its own there */
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybAskedKeep(hyb, op, flg));
  /* adoption has looked for inodes already, and a numeric phase assembles nothing: a change of mind takes effect
     here */
  if (op != MAT_USE_INODES || !A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->inodesleft = PETSC_FALSE; /* the program has its mind made up */
  if (hyb->arrays.blocks && (flg || !HybBorn(hyb))) {
    PetscCall((*HybGlueState.seq.assemblyend)(A, MAT_FINAL_ASSEMBLY));
    PetscCall(HybInodesLend(A, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The base class counts what it allocated: adopted arrays are not among it, and are exactly filled */
static PetscErrorCode MatGetInfo_SeqAIJHybridGPU(Mat A, MatInfoType flag, MatInfo *info)
{
  PetscFunctionBegin;
  PetscCall((*HybGlueState.seq.getinfo)(A, flag, info));
  if (info->nz_allocated < info->nz_used) {
    info->nz_allocated = info->nz_used;
    info->nz_unneeded  = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent preallocates anew past all functions */
static PetscErrorCode MatLoad_SeqAIJHybridGPU(Mat A, PetscViewer viewer)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, load, A, viewer);
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  PetscCall((*HybGlueState.seq.load)(A, viewer));
  if (MatIsSeqAIJHybridGPU(A)) PetscCall(HybStorageSettle(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_DEVICE)
  #define HybBoundToCPU(A) ((A)->boundtocpu = PETSC_TRUE)
#else
  #define HybBoundToCPU(A) ((void)(A))
#endif
/*
  A factorization in place leaves a host's factor, so the matrix is bound to the CPU from then on: otherwise PETSc would
  take the right-hand sides of MatMatSolve() to the device, which this machine need not have.
*/
static PetscErrorCode MatLUFactor_SeqAIJHybridGPU(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall((*HybGlueState.seq.lufactor)(A, row, col, info));
  HybBoundToCPU(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatILUFactor_SeqAIJHybridGPU(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall((*HybGlueState.seq.ilufactor)(A, row, col, info));
  HybBoundToCPU(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What we put over the parent's operations; restored slot by slot when converting back */
static PetscErrorCode MatSeqAIJHybridGPUSetOps(Mat A, PetscBool on)
{
  struct _MatOps *ops = A->ops, *p = &HybGlueState.seq;

  PetscFunctionBegin;
  ops->destroy  = on ? MatDestroy_SeqAIJHybridGPU : p->destroy;
  ops->zerorows = on ? MatZeroRows_SeqAIJHybridGPU : p->zerorows;
#if PETSC_VERSION_GE(3, 20, 0)
  ops->eliminatezeros = on ? MatEliminateZeros_SeqAIJHybridGPU : p->eliminatezeros;
#endif
  ops->zerorowscolumns = on ? MatZeroRowsColumns_SeqAIJHybridGPU : p->zerorowscolumns;
  ops->fdcoloringsetup = on ? MatFDColoringSetUp_SeqAIJHybridGPU : p->fdcoloringsetup;
  if (!A->sortedfull) ops->setvalues = on ? MatSetValues_SeqAIJHybridGPU : p->setvalues; /* MAT_SORTED_FULL has one of its own, which makes no room */
  ops->getrow     = on ? MatGetRow_SeqAIJHybridGPU : p->getrow;
  ops->restorerow = on ? MatRestoreRow_SeqAIJHybridGPU : p->restorerow;
  if (p->conjugate) ops->conjugate = on ? MatConjugate_SeqAIJHybridGPU : p->conjugate;
  ops->assemblyend               = on ? MatAssemblyEnd_SeqAIJHybridGPU : p->assemblyend;
  ops->setfromoptions            = on ? MatSetFromOptions_SeqAIJHybridGPU : p->setfromoptions;
  ops->view                      = on ? MatView_SeqAIJHybridGPU : p->view;
  ops->getinfo                   = on ? MatGetInfo_SeqAIJHybridGPU : p->getinfo;
  ops->setoption                 = on ? MatSetOption_SeqAIJHybridGPU : p->setoption;
  ops->mult                      = on ? MatMult_SeqAIJHybridGPU : p->mult;
  ops->multadd                   = on ? MatMultAdd_SeqAIJHybridGPU : p->multadd;
  ops->multtranspose             = on ? MatMultTranspose_SeqAIJHybridGPU : p->multtranspose;
  ops->multtransposeadd          = on ? MatMultTransposeAdd_SeqAIJHybridGPU : p->multtransposeadd;
  ops->multhermitiantranspose    = on ? MatMultHermitianTranspose_SeqAIJHybridGPU : p->multhermitiantranspose;
  ops->multhermitiantransposeadd = on ? MatMultHermitianTransposeAdd_SeqAIJHybridGPU : p->multhermitiantransposeadd;
  if (!on) ops->convertfrom = p->convertfrom;
  ops->residual              = on ? MatResidual_SeqAIJHybridGPU : p->residual;
  ops->productsetfromoptions = on ? MatProductSetFromOptions_SeqAIJHybridGPU : p->productsetfromoptions;
  ops->lufactor              = on ? MatLUFactor_SeqAIJHybridGPU : p->lufactor;
  ops->ilufactor             = on ? MatILUFactor_SeqAIJHybridGPU : p->ilufactor;
  ops->load                  = on ? MatLoad_SeqAIJHybridGPU : p->load;
  PetscCall(HybInodesSetOps(A, on));
  PetscCall(MatSeqAIJHybridGPUSetDeviceOps(A, on));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPULeave(Mat A)
{
  /* a structure of function pointers alone */
  void       **ops = (void **)A->ops;
  void *const *own = (void *const *)&HybGlueState.own, *const *parent = (void *const *)&HybGlueState.seq;

  PetscFunctionBegin;
  for (size_t k = 0; k < sizeof(struct _MatOps) / sizeof(void *); k++)
    if (ops[k] == own[k]) ops[k] = parent[k];
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", NULL));
  PetscCall(HybDoorClose(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The common part of both converters: operations, private data and composed functions on an object that is MATSEQAIJ */
static PetscErrorCode MatSeqAIJHybridGPUInstall(Mat B)
{
  HybChoices choices;
  PetscBool  first = (PetscBool)!HybGlueState.captured_seq;

  PetscFunctionBegin;
  if (MatIsSeqAIJHybridGPU(B)) PetscFunctionReturn(PETSC_SUCCESS);
  if (first && B->sortedfull) { /* not pristine: its setvalues is another one */
    Mat T;

    PetscCall(MatCreate(PETSC_COMM_SELF, &T));
    PetscCall(MatSetType(T, MATSEQAIJ)); /* with -mat_seqaij_type this comes here and captures */
    PetscCall(MatSeqAIJHybridGPUInstall(T));
    PetscCall(MatDestroy(&T));
    first = PETSC_FALSE;
  }
  if (first) {
    PetscCall(HybFrameFind());
    PetscCall(HybNarrowFind(B));
    HybGlueState.seq          = *B->ops;
    HybGlueState.captured_seq = PETSC_TRUE;
  }
  PetscCall(MatSeqAIJHybridGPUSetOps(B, PETSC_TRUE));
  PetscCall(HybDoorOpen(B));
  if (first) HybGlueState.own = *B->ops;
  PetscCall(HybGlueReadChoices(&choices)); /* what is wrong with the options is said now; the private data come with their first use */
  PetscCall(MatAIJHybridGPUCompose(B, PETSC_TRUE, PETSC_TRUE));
#if defined(PETSC_HAVE_DEVICE)
  B->boundtocpu = PETSC_FALSE; /* MatCreate() binds what does not say otherwise */
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybDuplicateOfParent(Mat A, Mat *B)
{
  PetscFunctionBegin;
  HybWithLargePages(A->rmap->n, MatDuplicate(A, MAT_COPY_VALUES, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_SeqAIJ_SeqAIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  Mat                  B;
  PetscBool            plain; /* its arrays may be the program's, see promoted.c; also where its operations are ours by -mat_seqaij_type */

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscBool done;

    PetscCall(MatSeqAIJHybridGPUCopyValues(A, *newmat, &done));
    if (!done) PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(HybDuplicateOfParent(A, newmat));
  else
    *newmat = A;
  B = *newmat;
  PetscCall(PetscStrcmp(((PetscObject)B)->type_name, MATSEQAIJ, &plain));
  plain = (PetscBool)(plain || !MatIsSeqAIJHybridGPU(B));
  PetscCall(MatSeqAIJHybridGPUInstall(B));
  PetscCall(MatSeqAIJHybridGPUGetData(B, &hyb)); /* now: later it could fail amid a function of the parent's */
  if (plain && reuse == MAT_INPLACE_MATRIX && B->preallocated && !hyb->arrays.blocks) hyb->lentarrays = PETSC_TRUE;
  PetscCall(MatAIJHybridGPUSetVecType(B));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJHYBRIDGPU));
  /* under our own name alone: a matrix called seqaij is converted to as PETSc does it */
  B->ops->convertfrom = MatConvertFrom_AIJHybridGPU;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The converter behind -mat_seqaij_type. It overrides the operations and keeps the type name seqaij: with a new name a
  second MatSetType(A, MATSEQAIJ) would destroy the matrix, and PETSc's dispatch by exact name would not know it.
*/
PetscErrorCode MatSeqAIJHybridGPUOperateSeqAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscBool done;

    PetscCall(MatSeqAIJHybridGPUCopyValues(A, *newmat, &done));
    if (!done) PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(HybDuplicateOfParent(A, newmat));
  else
    *newmat = A;
  PetscCall(MatSeqAIJHybridGPUInstall(*newmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_SeqAIJHybridGPU_SeqAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat                  B;
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX) { /* not by way of the device, which may lack the room and whose copy would cross the bus */
    PetscErrorCode ierr;

    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    hyb->hostcopy = PETSC_TRUE;
    ierr          = MatDuplicate(A, MAT_COPY_VALUES, newmat);
    hyb->hostcopy = PETSC_FALSE;
    PetscCall(ierr);
  } else
    *newmat = A;
  B = *newmat;
  PetscCall(MatSeqAIJHybridGPUGetData(B, &hyb));
  PetscCall(MatSeqAIJHybridGPUDisown(B)); /* the base class must not outlive our arrays */
  PetscCall(HybInodesFind(B));            /* nobody will look for them later */
  PetscCall(HybInodesLend(B, PETSC_FALSE));
  PetscCall(HybStorageLeaveRetired(B, hyb));
  PetscCall(HybDoorClose(B));
  PetscCall(MatSeqAIJHybridGPUDestroyPlans(hyb));
  PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
  PetscCall(PetscFree(B->spptr));
  PetscCall(MatAIJHybridGPUCompose(B, PETSC_TRUE, PETSC_FALSE));
  PetscCall(MatSeqAIJHybridGPUSetOps(B, PETSC_FALSE));
  PetscCall(PetscObjectCompose((PetscObject)B, "HybCOO", NULL)); /* the parent's functions know nothing of it */
#if defined(PETSC_HAVE_DEVICE)
  B->boundtocpu = PETSC_TRUE;
  PetscCall(MatAIJHybridGPUSetVecType(B));
#endif
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATAIJHYBRIDGPU - "aijhybridgpu" - sparse matrices in AIJ (compressed row) format whose matrix-vector products,
   sparse products and Galerkin products are computed by the methods of petsc-aijhybridgpu, on the host or on an NVIDIA
   GPU. It is `MATSEQAIJHYBRIDGPU` on one process and `MATMPIAIJHYBRIDGPU` on several.

   Options Database Keys:
+  -mat_type aijhybridgpu - sets the type during `MatSetFromOptions()`
.  -mat_seqaij_type seqaijhybridgpu - gives the operations to every `MATSEQAIJ`, also in programs that name their type
.  -mat_aijhybridgpu_backend <auto, host, cuda> - where operations run
.  -mat_aijhybridgpu_spgemm <auto, ...> - method of sparse products
.  -mat_aijhybridgpu_spmv <auto, ...> - method of matrix-vector products
.  -mat_aijhybridgpu_rowmerge_width <0, 2 to 32> - rows merged at once by the method rowmerge, 0 lets it choose
. -mat_aijhybridgpu_device_min <n> - with auto, operands of fewer nonzeros stay on the host: 10000 where the matrix has
its vectors on the card, else 100000; for the whole process
. -mat_aijhybridgpu_cuda_library <path> - the library that drives the device, if not cuda/libaijhybridgpu_cuda.so beside
the plugin; this and all below for the whole process
.  -mat_aijhybridgpu_device <number> - which card; else PETSc's, or the processes of a node take its cards in turn
.  -mat_aijhybridgpu_memory <managed, mirror> - one storage valid on both sides, or device arrays beside host ones
.  -mat_aijhybridgpu_managed_limit <share> - of the card's free memory, divided by the processes on it, for the former
.  -mat_aijhybridgpu_memory_limit <bytes> - believe the card no larger than this
.  -mat_aijhybridgpu_promote <auto, never> - whether matrices of the host that operations write on the device move there
.  -mat_aijhybridgpu_plan_min <n> - patterns of so many nonzeros are planned for at their second product with a vector
. -mat_aijhybridgpu_lock_after <n> - values of a host matrix that were sent n times after the host had written them move
to page-locked memory; 0: never
.  -mat_aijhybridgpu_lock_min <bytes> - fewer bytes of values stay where they are
.  -mat_aijhybridgpu_lock_limit <share> - of the host's memory, divided by the node's processes, for such values
.  -mat_aijhybridgpu_segsum_repair <device, cpu> - who puts the sums of dirty tiles of the method segsum in order
.  -mat_aijhybridgpu_view_memory - at the end: bytes held on the device, now and at most, and what crossed the bus
.  -mat_aijhybridgpu_view_counts <file> - each process appends at the end what ran
-  -mat_product_algorithm <auto, ...> - method of one product (also -matmatmult_via, -matptap_via, ...)

   Level: beginner

   Notes:
   Everything that `MATAIJ` can do, this type can do: what is not overridden is the parent's. Rows of operands must have
   their columns sorted, as assembly with `MatSetValues()` leaves them.

   References:
+ * - W. Liu, B. Vinter, A framework for general sparse matrix-matrix multiplication on GPUs and heterogeneous
processors, 2015
.  * - F. Gremse et al., GPU-accelerated sparse matrix-matrix multiplication by iterative row merging, 2015
.  * - H. Ji et al., Segmented merge: a new primitive for parallel sparse matrix computations, 2021
- * - W. Liu, B. Vinter, Speculative segmented sum for sparse matrix-vector multiplication on heterogeneous processors,
   2015

.seealso: `MatCreateAIJHybridGPU()`, `MatCreateSeqAIJHybridGPU()`, `MATAIJ`, `MATAIJCUSPARSE`
M*/

/*MC
   MATSEQAIJHYBRIDGPU - "seqaijhybridgpu" - the sequential form of `MATAIJHYBRIDGPU`

   Level: beginner

.seealso: `MATAIJHYBRIDGPU`
M*/

PetscErrorCode MatCreate_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSetType(A, MATSEQAIJ));
  PetscCall(MatConvert_SeqAIJ_SeqAIJHybridGPU(A, MATSEQAIJHYBRIDGPU, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->optionsknown = PETSC_TRUE; /* those of its birth, and what MatSetOption() brings */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatCreateSeqAIJHybridGPU - Creates a sequential sparse matrix of type `MATSEQAIJHYBRIDGPU`

   Collective

   Input Parameters:
+  comm - an MPI communicator of one process
.  m    - number of rows
.  n    - number of columns
.  nz   - number of nonzeros a row (the same for all rows), ignored if `nnz` is given
-  nnz  - array of `m` numbers of nonzeros a row, or `NULL`

   Output Parameter:
.  A - the matrix, preallocated, to be filled with `MatSetValues()` and destroyed with `MatDestroy()`

   Level: intermediate

   Note:
   `MatAIJHybridGPUInitializePackage()` must have been called, or the library loaded with -dll_append: without that the
   type is unknown (`PETSC_ERR_ARG_UNKNOWN_TYPE`).

.seealso: `MATAIJHYBRIDGPU`, `MatCreateAIJHybridGPU()`, `MatCreateSeqAIJ()`
@*/
PetscErrorCode MatCreateSeqAIJHybridGPU(MPI_Comm comm, PetscInt m, PetscInt n, PetscInt nz, const PetscInt nnz[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATSEQAIJHYBRIDGPU));
  PetscCall(MatSeqAIJSetPreallocation(*A, nz, nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

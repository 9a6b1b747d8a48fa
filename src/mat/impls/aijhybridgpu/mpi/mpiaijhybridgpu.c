/*
  The parallel type: MATMPIAIJ whose diagonal and off-diagonal blocks are MATSEQAIJHYBRIDGPU. Its products are in
  matproduct.c.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

/* The parent keeps these to itself, beside the blocks: coordinates on the device give it others */
static PetscErrorCode MatSetOption_MPIAIJHybridGPU(Mat A, MatOption op, PetscBool flg)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall((*HybGlueState.mpi.setoption)(A, op, flg));
  if (op == MAT_IGNORE_OFF_PROC_ENTRIES) hyb->ignoreoffproc = flg;
  if (op == MAT_ROW_ORIENTED) hyb->bycolumns = (PetscBool)!flg;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_MPIAIJHybridGPU(Mat A, MatDuplicateOption op, Mat *B)
{
  PetscObject container = NULL;

  PetscFunctionBegin;
  PetscCall((*HybGlueState.mpi.duplicate)(A, op, B));
  if ((*B)->ops->duplicate == MatDuplicate_MPIAIJHybridGPU) { /* it takes values from the same coordinates */
    Mat_MPIAIJHybridGPU *a = NULL, *b = NULL;

    PetscCall(MatMPIAIJHybridGPUGetData(A, &a));
    PetscCall(MatMPIAIJHybridGPUGetData(*B, &b));
    b->choices       = a->choices;
    b->coocount      = a->coocount;
    b->ignoreoffproc = a->ignoreoffproc;
    b->bycolumns     = a->bycolumns;
    PetscCall(PetscObjectQuery((PetscObject)A, "HybMPICOO", &container));
    if (container) PetscCall(PetscObjectCompose((PetscObject)*B, "HybMPICOO", container));
    if ((*B)->assembled) PetscCall(MatMPIAIJHybridGPUSetBlocks(*B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_MPIAIJHybridGPU(Mat A, HybOptionItems items)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (HybGlueState.mpi.setfromoptions) PetscCall((*HybGlueState.mpi.setfromoptions)(A, items));
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybChoicesSetFromOptions(&hyb->choices, items));
  if (A->assembled) PetscCall(MatMPIAIJHybridGPUSetBlocks(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent's converters to types derived from it duplicate the matrix and take the duplicate for a plain one, private
  data included: ours are taken off first
*/
static PetscErrorCode MatConvert_MPIAIJHybridGPU_Derived(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat B = A;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(HybConvertCopyToDerived(A, *newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatConvert_MPIAIJHybridGPU_MPIAIJ(A, MATMPIAIJ, reuse, &B));
  PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybMPITypeIsDerived(MatType type)
{
  return (PetscBool)(!strncmp(type, "mpi", 3) && HybDerivedNumber(type + 3) >= 0);
}

/* types that the parent converts to by name, besides those derived from it: without these names MatConvert() would go
   entry by entry */
static const char *const HybConversions[] = {"mpisbaij", "mpibaij", "elemental", "scalapack", "hypre", "is", "mpisell", "mpidense", "dense"};

/* ops->convert, as MatConvert_SeqAIJHybridGPU_Any() */
static PetscErrorCode MatConvert_MPIAIJHybridGPU_Any(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  HybConverter f = NULL;
  char         wanted[64];

  PetscFunctionBegin;
  PetscCall(HybConvertFind(A, MATMPIAIJ, type, sizeof(wanted), wanted, &f));
  if (!f) {
    PetscCall(HybConvertByEntries(A, type, reuse, newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (HybMPITypeIsDerived(wanted)) f = MatConvert_MPIAIJHybridGPU_Derived;
  if (reuse != MAT_INPLACE_MATRIX) PetscCall(HybConvertName(A, MATMPIAIJ, PETSC_STATIC_ARRAY_LENGTH(HybConversions), HybConversions, wanted, f));
  PetscCall((*f)(A, type, reuse, newmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what was composed at its first use goes with the type */
PetscErrorCode MatMPIAIJHybridGPUForgetConversions(Mat A)
{
  PetscFunctionBegin;
  if (HybGlueState.conversionsnamed) PetscCall(HybConvertName(A, MATMPIAIJ, PETSC_STATIC_ARRAY_LENGTH(HybConversions), HybConversions, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_DEVICE)
static PetscErrorCode MatBindToCPU_MPIAIJHybridGPU(Mat A, PetscBool flg)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  if (flg) PetscCall(PetscStrcmp(A->defaultvectype, VECCUDA, &hyb->boundcuda));
  if (A->assembled) {
    Mat blocks[2];

    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    for (PetscInt k = 0; k < 2; k++) PetscCall(MatBindToCPU(blocks[k], flg));
  }
  PetscCall(MatAIJHybridGPUSetVecType(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent's sums of columns are added to vectors fresh from MatCreateVecs(), which it takes for cleared arrays on
   the host. What it has of a vector on the card is memory that nobody has written: for so long its vectors are the
   host's. */
static PetscErrorCode MatNorm_MPIAIJHybridGPU(Mat A, NormType type, PetscReal *norm)
{
  char           host[] = VECSTANDARD;
  Mat            m[3];
  VecType        vectype[3];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  m[0] = A;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &m[1], &m[2], NULL));
  for (int k = 0; k < 3; k++) {
    vectype[k]           = m[k]->defaultvectype;
    m[k]->defaultvectype = host;
  }
  ierr = (*HybGlueState.mpi.norm)(A, type, norm);
  for (int k = 0; k < 3; k++) m[k]->defaultvectype = (char *)vectype[k];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFDColoringSetUp_MPIAIJHybridGPU(Mat A, ISColoring iscoloring, MatFDColoring c)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  hyb->lentarrays = PETSC_TRUE; /* each assembly tells the blocks */
  /* the parent's is of all processes */
  PetscCall(HybAgree(PetscObjectComm((PetscObject)A), MatMPIAIJHybridGPUEachBlock(A, MatSeqAIJHybridGPUStay), "MatFDColoringSetUp()"));
  PetscCall((*HybGlueState.mpi.fdcoloringsetup)(A, iscoloring, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void MatMPIAIJHybridGPUSetOps(Mat A, PetscBool on)
{
  static const struct _MatOps ours = {
    .destroy          = MatDestroy_MPIAIJHybridGPU,
    .mult             = MatMult_MPIAIJHybridGPU,
    .multadd          = MatMultAdd_MPIAIJHybridGPU,
    .multtranspose    = MatMultTranspose_MPIAIJHybridGPU,
    .multtransposeadd = MatMultTransposeAdd_MPIAIJHybridGPU,
    .residual         = MatResidual_MPIAIJHybridGPU,
    .norm             = MatNorm_MPIAIJHybridGPU,
    .setvalues        = MatSetValues_MPIAIJHybridGPU,
    .zerorows         = MatZeroRows_MPIAIJHybridGPU,
    .zerorowscolumns  = MatZeroRowsColumns_MPIAIJHybridGPU,
#if HYB_HAS_ELIMINATEZEROS
    .eliminatezeros = MatEliminateZeros_MPIAIJHybridGPU,
#endif
    .fdcoloringsetup      = MatFDColoringSetUp_MPIAIJHybridGPU,
    .createsubmatrix      = MatCreateSubMatrix_MPIAIJHybridGPU,
    .createsubmatrices    = MatCreateSubMatrices_MPIAIJHybridGPU,
    .createsubmatricesmpi = MatCreateSubMatricesMPI_MPIAIJHybridGPU,
    .assemblybegin        = MatAssemblyBegin_MPIAIJHybridGPU,
    .assemblyend          = MatAssemblyEnd_MPIAIJHybridGPU,
    .setfromoptions       = MatSetFromOptions_MPIAIJHybridGPU,
    .setoption            = MatSetOption_MPIAIJHybridGPU,
    .duplicate            = MatDuplicate_MPIAIJHybridGPU,
#if defined(PETSC_HAVE_DEVICE)
    .bindtocpu = MatBindToCPU_MPIAIJHybridGPU,
#endif
#if defined(PETSC_HAVE_CUDA)
    .getvecs = MatCreateVecs_MPIAIJHybridGPU,
#endif
  };

  HybOpsOver(A, &ours, &HybGlueState.mpi, on);
  A->ops->convertfrom           = on ? HybGlueState.convertfrom : HybGlueState.mpi.convertfrom;
  A->ops->convert               = on ? MatConvert_MPIAIJHybridGPU_Any : HybGlueState.mpi.convert;
  A->ops->productsetfromoptions = on ? HybGlueState.productsetfromoptions[1] : HybGlueState.mpi.productsetfromoptions;
#if defined(PETSC_HAVE_DEVICE)
  A->boundtocpu = (PetscBool)!on; /* MatCreate() binds what does not say otherwise */
#endif
}

/*
  Options of MatSetOption() that the parent keeps in its own data, and that coordinates on the device go by. Where they
  cannot be read there (frame.c) they wait beside the object while it is a plain MATMPIAIJ, and are this type's again
  when it comes back; what the program sets in between is not seen then.
*/
static PetscErrorCode MatMPIAIJHybridGPULeaveOptions(Mat A, const Mat_MPIAIJHybridGPU *hyb)
{
  PetscBool *left;

  PetscFunctionBegin;
  if (!hyb->bycolumns && !hyb->ignoreoffproc) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(2, &left));
  left[0] = hyb->bycolumns;
  left[1] = hyb->ignoreoffproc;
  PetscCall(HybContainerCompose((PetscObject)A, "HybMPIOptions", left, HybContainerFree));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUTakeOptions(Mat A, Mat_MPIAIJHybridGPU *hyb)
{
  PetscBool *left = NULL, rows;

  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)A, "HybMPIOptions", &left));
  if (left) {
    hyb->bycolumns     = left[0];
    hyb->ignoreoffproc = left[1];
    PetscCall(PetscObjectCompose((PetscObject)A, "HybMPIOptions", NULL));
  }
  rows = (PetscBool)!hyb->bycolumns;
  PetscCall(HybFrameParallelOptions(A, &rows, &hyb->ignoreoffproc));
  hyb->bycolumns = (PetscBool)!rows;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of blocks that PETSc's type copies to: where both have its function it does so array by array */
static PetscErrorCode HybMPITakeValues(Mat B, Mat A)
{
  Mat            block[2] = {NULL, NULL};
  PetscErrorCode ierr;
  PetscErrorCode (*own[2])(Mat, Mat, MatStructure);

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(B, &block[0], &block[1], NULL));
  for (int k = 0; k < 2 && block[k]; k++) {
    own[k] = block[k]->ops->copy;
    if (MatIsSeqAIJHybridGPU(block[k])) block[k]->ops->copy = HybGlueState.seq.copy;
  }
  ierr = MatCopy(A, B, SAME_NONZERO_PATTERN);
  for (int k = 0; k < 2 && block[k]; k++) block[k]->ops->copy = own[k];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_MPIAIJ_MPIAIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat                  B;
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscBool            own;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(HybMPITakeValues(*newmat, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, newmat));
  else
    *newmat = A;
  B   = *newmat;
  own = (PetscBool)(B->ops->destroy == MatDestroy_MPIAIJHybridGPU);
  if (!own) {
    if (!HybGlueState.captured_mpi) {
      HybGlueState.mpi          = *B->ops;
      HybGlueState.captured_mpi = PETSC_TRUE;
    }
    PetscCall(HybFrameParallelFind());
    MatMPIAIJHybridGPUSetOps(B, PETSC_TRUE);
    PetscCall((*HybGlueState.compose)(B, PETSC_FALSE, PETSC_TRUE));
  }
  PetscCall(MatMPIAIJHybridGPUGetData(B, &hyb));
  if (!own) PetscCall(MatMPIAIJHybridGPUTakeOptions(B, hyb));
  if (!own && reuse == MAT_INPLACE_MATRIX && B->preallocated) hyb->lentarrays = PETSC_TRUE;
  PetscCall(MatAIJHybridGPUSetVecType(B));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATMPIAIJHYBRIDGPU));
  if (B->assembled) PetscCall(MatMPIAIJHybridGPUSetBlocks(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_MPIAIJHybridGPU_MPIAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat            B;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(HybAgree(PetscObjectComm((PetscObject)A), MatDuplicate(A, MAT_COPY_VALUES, newmat), "The conversion to " MATMPIAIJ));
  else
    *newmat = A;
  B = *newmat;
  if (B->assembled) {
    Mat blocks[2];
#if HYB_HAS_CREATE_GARRAY
    PetscSF sf;

    PetscCall(MatGetMultPetscSF(B, &sf)); /* which sets it up, while we are asked (scatter.c) */
#endif
    PetscCall(MatMPIAIJHybridGPUGetBlocks(B, blocks));
    for (PetscInt k = 0; k < 2 && !ierr; k++)
      if (blocks[k]) ierr = MatConvert(blocks[k], MATSEQAIJ, MAT_INPLACE_MATRIX, &blocks[k]);
    /* else it would be of one type here and of another there */
    PetscCall(HybAgree(PetscObjectComm((PetscObject)B), ierr, "The conversion to " MATMPIAIJ));
  }
  if (B->spptr) {
    PetscCall(MatMPIAIJHybridGPULeaveOptions(B, (Mat_MPIAIJHybridGPU *)B->spptr));
    ierr = HybMPIHaloDestroy(&((Mat_MPIAIJHybridGPU *)B->spptr)->halo); /* the conversion is done all the same */
  }
  PetscCall(PetscFree(B->spptr));
  PetscCall((*HybGlueState.compose)(B, PETSC_FALSE, PETSC_FALSE));
  MatMPIAIJHybridGPUSetOps(B, PETSC_FALSE);
  PetscCall(MatAIJHybridGPUSetVecType(B));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATMPIAIJ));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATMPIAIJHYBRIDGPU - "mpiaijhybridgpu" - the parallel form of `MATAIJHYBRIDGPU`

   Level: beginner

.seealso: `MATAIJHYBRIDGPU`
M*/

PetscErrorCode MatCreate_MPIAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  PetscCall(HybSetParentType(A, MATMPIAIJ));
  PetscCall(MatConvert_MPIAIJ_MPIAIJHybridGPU(A, MATMPIAIJHYBRIDGPU, MAT_INPLACE_MATRIX, &A));
  PetscCall(HybGivenParallel(PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatCreateAIJHybridGPU - Creates a sparse matrix of type `MATAIJHYBRIDGPU`: sequential on one process, parallel on
   several

   Collective

   Input Parameters:
+  comm  - an MPI communicator
.  m     - number of local rows, or `PETSC_DECIDE`
.  n     - number of local columns, or `PETSC_DECIDE`
.  M     - number of global rows, or `PETSC_DETERMINE`
.  N     - number of global columns, or `PETSC_DETERMINE`
.  d_nz  - number of nonzeros a row in the diagonal block (the same for all local rows), ignored if `d_nnz` is given
.  d_nnz - array of numbers of nonzeros of the local rows in the diagonal block, or `NULL`
.  o_nz  - number of nonzeros a row in the off-diagonal block, ignored if `o_nnz` is given
-  o_nnz - array of numbers of nonzeros of the local rows in the off-diagonal block, or `NULL`

   Output Parameter:
.  A - the matrix, preallocated, to be filled with `MatSetValues()` and destroyed with `MatDestroy()`

   Level: intermediate

   Note:
   `MatAIJHybridGPUInitializePackage()` must have been called, or the library loaded with -dll_append: without that the
   type is unknown (`PETSC_ERR_ARG_UNKNOWN_TYPE`).

.seealso: `MATAIJHYBRIDGPU`, `MatCreateSeqAIJHybridGPU()`, `MatCreateAIJ()`
@*/
PetscErrorCode MatCreateAIJHybridGPU(MPI_Comm comm, PetscInt m, PetscInt n, PetscInt M, PetscInt N, PetscInt d_nz, const PetscInt d_nnz[], PetscInt o_nz, const PetscInt o_nnz[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, M, N));
  PetscCall(MatSetType(*A, MATAIJHYBRIDGPU));
  PetscCall(MatSeqAIJSetPreallocation(*A, d_nz, d_nnz));
  PetscCall(MatMPIAIJSetPreallocation(*A, d_nz, d_nnz, o_nz, o_nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

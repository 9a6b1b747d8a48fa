/*
  Conversions to and from the other types derived from MATSEQAIJ (aijcusparse, aijperm, aijsell, aijkokkos, ...).

  The parent's converters to these duplicate the matrix, and take the duplicate for a plain one: with our operations and
  private data on it, they would put theirs over ours. So ours are taken off first. Between this type and aijcusparse
  pattern and values go from the device to the device; aijcusparse keeps its pattern on the host as well, so that the
  host reads that, once. From aijcusparse a matrix is born on the device, the host seeing row offsets alone.
*/
#include "seq.h"
#include "../storage/where.h"
#include "aijhybridgpu/private/hybcsrcopy.h"

static const char *const HybDerivedTypes[] = {"seqaijcusparse", "seqaijperm", "seqaijsell", "seqaijmkl", "seqaijkokkos", "seqaijviennacl", "seqaijhipsparse", "seqaijcrl"};
#define HYB_LOCKED_PATTERN ((size_t)16 << 20) /* bytes of column indices */
#define HYB_DERIVED_TYPES  ((int)(sizeof(HybDerivedTypes) / sizeof(HybDerivedTypes[0])))

/* -matconvert_type of A's prefix names another type, whatever MatConvert() was asked for: it has been obeyed once
   already */
PetscErrorCode HybConvertByPETSc(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  PetscOptions   options = ((PetscObject)A)->options;
  char           name[256], value[256];
  PetscBool      set;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(options, ((PetscObject)A)->prefix, "-matconvert_type", value, sizeof(value), &set));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-%smatconvert_type", ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : ""));
  if (set) PetscCall(PetscOptionsClearValue(options, name));
  ierr = MatConvert(A, type, reuse, B);
  if (set) { /* asked for, so that it is not among the unused ones */
    PetscCall(PetscOptionsSetValue(options, name, value));
    PetscCall(PetscOptionsGetString(options, NULL, name, value, sizeof(value), NULL));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of A, of the AIJ family, in B, which has its pattern. assembled: PETSc's own conversion ends with an
   assembly, which forgets what was said of the old values. */
PetscErrorCode HybConvertCopy(Mat A, Mat B, PetscBool assembled)
{
  PetscFunctionBegin;
  PetscCall(MatCopy(A, B, SAME_NONZERO_PATTERN));
  if (!assembled) PetscFunctionReturn(PETSC_SUCCESS);
  if (!B->symmetry_eternal) B->symmetric = B->hermitian = PETSC_BOOL3_UNKNOWN;
  if (!B->spd_eternal) B->spd = PETSC_BOOL3_UNKNOWN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of A, of ours, in B, of a type derived from AIJ that has its pattern. aijcrl multiplies with a copy of
   them, which its assembly makes. */
PetscErrorCode HybConvertCopyToDerived(Mat A, Mat B)
{
  PetscBool crl;

  PetscFunctionBegin;
  PetscCall(MatCopy(A, B, SAME_NONZERO_PATTERN));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &crl, MATSEQAIJCRL, MATMPIAIJCRL, ""));
  if (crl) {
    const PetscBool3 symmetric = B->symmetric, hermitian = B->hermitian, spd = B->spd;

    PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
    B->symmetric = symmetric; /* a conversion leaves them */
    B->hermitian = hermitian;
    B->spd       = spd;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *B = a plain MATSEQAIJ of A's entries, or of its pattern and room for values */
static PetscErrorCode HybPlainDuplicate(Mat A, PetscBool values, Mat *B)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUHostDuplicate(A, values, B));
  if (!MatIsSeqAIJHybridGPU(*B)) PetscFunctionReturn(PETSC_SUCCESS);
  /* it is about to get a type that has no use for them */
  if ((*B)->spptr) ((Mat_SeqAIJHybridGPU *)(*B)->spptr)->inodesleft = PETSC_FALSE;
  PetscCall(MatConvert_SeqAIJHybridGPU_SeqAIJ(*B, MATSEQAIJ, MAT_INPLACE_MATRIX, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which of the types derived from the parent's, with "seq" before or without, -1: none */
int HybDerivedNumber(MatType type)
{
  for (int k = 0; k < HYB_DERIVED_TYPES; k++)
    if (!strcmp(type, HybDerivedTypes[k]) || !strcmp(type, HybDerivedTypes[k] + 3)) return k;
  return -1;
}

static PetscErrorCode HybFindConverter(MatType type, HybConverter *f)
{
  const int k = HybDerivedNumber(type);

  PetscFunctionBegin;
  *f = k < 0 ? NULL : HybGlueState.converters[k];
  PetscCheck(*f, PETSC_COMM_SELF, PETSC_ERR_SUP, "No conversion from %s to %s", MATSEQAIJ, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_SeqAIJHybridGPU_Derived(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  HybConverter f = NULL;
  Mat          B;

  PetscFunctionBegin;
  PetscCall(HybFindConverter(type, &f));
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(HybConvertCopyToDerived(A, *newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  B = A;
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscCall(HybPlainDuplicate(A, PETSC_TRUE, &B));
#if HYB_HAS_PROPAGATE
    PetscCall(MatPropagateSymmetryOptions(A, B)); /* as MatDuplicate() does, with which the parent's converters begin */
#endif
  } else
    PetscCall(MatConvert_SeqAIJHybridGPU_SeqAIJ(A, MATSEQAIJ, MAT_INPLACE_MATRIX, &B));
  PetscCall((*f)(B, type, MAT_INPLACE_MATRIX, &B));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by way of the plain type, to which A's own converter is asked; in place A stays the object that it is */
static PetscErrorCode MatConvert_Derived_SeqAIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    HybConverter f = NULL;
    char         name[128];

    /* PETSc's ways back from aijperm and aijsell leave the claims, and the values too, which are right here; from
       others it goes entry by entry */
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_seqaij_C", ((PetscObject)A)->type_name));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
    PetscCall(HybConvertCopy(A, *newmat, (PetscBool)!f));
  } else {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(HybConvertByPETSc(A, MATSEQAIJ, reuse, newmat));
    PetscCall(MatConvert_SeqAIJ_SeqAIJHybridGPU(*newmat, type, MAT_INPLACE_MATRIX, newmat));
    PetscCall(MatSeqAIJHybridGPUGetData(*newmat, &hyb));
    if (reuse == MAT_INITIAL_MATRIX) hyb->lentarrays = PETSC_FALSE; /* nobody else has seen them */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if HYB_HAS_CUDA
/* Is A on a device that aijcusparse can share? Then x and csr are of it. */
static PetscErrorCode HybConvertFromDevice(Mat A, HybExec *x, HybCSR *csr, PetscBool *device)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (HybGlueState.nopetscstream || !hyb->copy.pattern || A->structure_only) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x));
  if (!HybExecOnDevice(x)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, csr));
  *device = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybValuesToCUSPARSE(const HybExec *x, const HybCSR *csr, Mat B)
{
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  PetscCheck((PetscCount)info.nz_used == csr->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "The matrix has %" PetscInt64_FMT " nonzeros, the one to be used again %" PetscInt64_FMT, (PetscInt64)csr->nnz, (PetscInt64)info.nz_used);
  /* not the function for writing, which a matrix that was never on the device refuses */
  PetscCall(MatSeqAIJCUSPARSEGetArray(B, &a));
  PetscCall(x->backend->copy(x, a, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->sync(x)); /* its operations may use another stream */
  PetscCall(MatSeqAIJCUSPARSERestoreArray(B, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* T's pattern to the device, and there A's values, which csr names. T has no values of its own: none are sent. */
static PetscErrorCode HybSendToCUSPARSE(const HybExec *x, const HybCSR *csr, HybConverter f, MatType type, Mat T)
{
  const PetscInt *i, *j;
  PetscScalar    *a;

  PetscFunctionBegin;
  PetscCall((*f)(T, type, MAT_INPLACE_MATRIX, &T));
  PetscCall(MatSeqAIJCUSPARSEGetIJ(T, PETSC_TRUE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(T, PETSC_TRUE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(T, &a));
  PetscCall(x->backend->copy(x, a, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->sync(x)); /* its operations may use another stream */
  PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(T, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  aijcusparse would send what B's host arrays hold, at a sixth of the bus's speed. A second matrix, round B's pattern
  and without values, is sent instead, and gets A's on the device. What aijcusparse keeps of the device is B's from the
  beginning, whose values the host does not know then. The column indices are page-locked while they are sent, for which
  it pays to make the pages known to the device.
*/
static PetscErrorCode HybShareWithCUSPARSE(const HybExec *x, const HybCSR *csr, HybConverter f, MatType type, Mat B)
{
  PetscOptions    noinode;
  PetscErrorCode  ierr;
  const PetscInt *i, *j;
  const size_t    bytes  = sizeof(PetscInt) * (size_t)csr->nnz;
  PetscBool       locked = PETSC_FALSE, done;
  PetscInt        n;
  Mat             T;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  PetscCall(HybNoInodeBegin(&noinode));
  HybLargePagesBegin(csr->m);
  ierr = MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, csr->m, csr->n, (PetscInt *)i, (PetscInt *)j, NULL, &T);
  HybLargePagesEnd();
  HybNoInodeEnd(&noinode);
  PetscCall(ierr);
  /* by -mat_seqaij_type */
  if (MatIsSeqAIJHybridGPU(T)) ierr = MatConvert_SeqAIJHybridGPU_SeqAIJ(T, MATSEQAIJ, MAT_INPLACE_MATRIX, &T);
  if (!ierr) {
    T->nonzerostate = B->nonzerostate; /* by which it knows the pattern that is on the device */
    T->spptr        = B->spptr;
    if (bytes >= HYB_LOCKED_PATTERN)
      locked = (PetscBool)!HYB_QUIETLY(x->backend->lock(x, (void *)j, bytes, PETSC_TRUE));
    ierr = HybSendToCUSPARSE(x, csr, f, type, T);
    if (locked)
      ierr = HybErrorFirst(ierr, x->backend->lock(x, (void *)j, bytes, PETSC_FALSE));
    T->spptr = NULL;
  }
  if (ierr) {
    (void)MatDestroy(&T);
    PetscCall(ierr);
  }
  PetscCall(MatDestroy(&T));
  PetscCall(MatRestoreRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  B->offloadmask = PETSC_OFFLOAD_GPU;
  PetscCall(PetscObjectStateIncrease((PetscObject)B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A becomes B, which was made of A's duplicate and is destroyed: A stays the object that it is, with all that hangs
   on it, and gets of B what makes the type */
static PetscErrorCode HybBecome(Mat A, Mat *B)
{
  struct _MatOps    ops  = A->ops[0];
  void             *data = A->data, *spptr = A->spptr;
  char             *vec = A->defaultvectype, *type = ((PetscObject)A)->type_name;
  PetscFunctionList qlist = ((PetscObject)A)->qlist;
  PetscBool         cpu   = A->boundtocpu;

  PetscFunctionBegin;
  PetscCall(PetscObjectCompose((PetscObject)A, "HybCOO", NULL)); /* the parent's functions know nothing of it */
  A->ops[0]                   = (*B)->ops[0];
  A->data                     = (*B)->data;
  A->spptr                    = (*B)->spptr;
  A->defaultvectype           = (*B)->defaultvectype;
  A->boundtocpu               = (*B)->boundtocpu;
  A->offloadmask              = (*B)->offloadmask;
  A->nonzerostate             = (*B)->nonzerostate; /* by which it knows the pattern that is on the device */
  ((PetscObject)A)->type_name = ((PetscObject)*B)->type_name;
  ((PetscObject)A)->qlist     = ((PetscObject)*B)->qlist;
  /* a product's result remains one */
  A->ops->productnumeric          = ops.productnumeric;
  A->ops->matmultnumeric          = ops.matmultnumeric;
  A->ops->transposematmultnumeric = ops.transposematmultnumeric;
  A->ops->mattransposemultnumeric = ops.mattransposemultnumeric;
  A->ops->ptapnumeric             = ops.ptapnumeric;
  A->ops->rartnumeric             = ops.rartnumeric;
  A->ops->matmatmultnumeric       = ops.matmatmultnumeric;
  (*B)->ops[0]                    = ops;
  (*B)->data                      = data;
  (*B)->spptr                     = spptr;
  (*B)->defaultvectype            = vec;
  (*B)->boundtocpu                = cpu;
  ((PetscObject)*B)->type_name    = type;
  ((PetscObject)*B)->qlist        = qlist;
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscCall(MatDestroy(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_SeqAIJHybridGPU_SeqAIJCUSPARSE(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  HybCSR               csr;
  PetscBool            device;
  HybConverter         f = NULL;
  Mat                  B;

  PetscFunctionBegin;
  PetscCall(HybConvertFromDevice(A, &x, &csr, &device));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (!device || (reuse == MAT_INPLACE_MATRIX && HybStorageLent(hyb))) { /* arrays that somebody holds stay with A */
    PetscCall(MatConvert_SeqAIJHybridGPU_Derived(A, type, reuse, newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybFindConverter(type, &f));
  PetscCall(HybEventBegin(HYB_OP_CONVERT, A));
  B = *newmat;
  if (reuse == MAT_REUSE_MATRIX)
    PetscCall(HybValuesToCUSPARSE(&x, &csr, B));
  else {
    PetscErrorCode ierr;

    PetscCall(HybPlainDuplicate(A, PETSC_FALSE, &B));
    B->nonzerostate = A->nonzerostate;
    ierr            = (*f)(B, type, MAT_INPLACE_MATRIX, &B);
    if (!ierr) ierr = csr.nnz ? HybShareWithCUSPARSE(&x, &csr, f, type, B) : HybValuesToCUSPARSE(&x, &csr, B);
    if (ierr) (void)MatDestroy(&B);
    PetscCall(ierr);
  }
  if (reuse == MAT_INPLACE_MATRIX)
    PetscCall(HybBecome(A, &B));
  else
    *newmat = B;
  PetscCall(HybEventEnd(HYB_OP_CONVERT, *newmat));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B's arrays become copies of those that csr names on the device */
static PetscErrorCode HybCopyOnDevice(const HybExec *x, const HybCSR *csr, Mat B)
{
  HybCSR         result;
  PetscErrorCode ierr;
  HybArena       arrays = HybArenaOn(x);

  PetscFunctionBegin;
  ierr = HybCSRCopy(x, &arrays, x->result, csr, PETSC_TRUE, HYB_COPY_DEVICE_TO_DEVICE, &result);
  if (!ierr) ierr = MatSeqAIJHybridGPUAdoptDevice(B, x, &arrays, &result);
  if (ierr) (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_SeqAIJCUSPARSE_SeqAIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  HybChoices         choices;
  HybExec            x;
  HybCSR             csr;
  MatInfo            info;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscBool          ondevice;
  PetscErrorCode     ierr;
  Mat                B;

  PetscFunctionBegin;
  PetscCall(HybGlueReadChoices(&choices));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(HybGlueGetExec(A, &choices, (PetscCount)info.nz_used, &x));
  if (!HybExecOnDevice(&x) || HybStorageServed() || HybGlueState.nopetscstream || !A->rmap->n || !(info.nz_used > 0) || A->structure_only) {
    PetscCall(MatConvert_Derived_SeqAIJHybridGPU(A, type, reuse, newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* offsets of all rows, where it keeps those of rows that are not empty */
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSEGetArrayRead(A, &a));
  csr = HybCSROf(A->rmap->n, A->cmap->n, (PetscCount)info.nz_used, (PetscInt *)i, (PetscInt *)j, (HybScalar *)a);
  if (reuse == MAT_REUSE_MATRIX) {
    HybExec xb;
    HybCSR  b;

    PetscCall(MatSeqAIJHybridGPUWriteOnDevice(*newmat, &xb, &ondevice));
    if (!ondevice) {
      PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &a));
      PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
      PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(HybEventBegin(HYB_OP_CONVERT, A));
    PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(*newmat, &xb, PETSC_TRUE, &b));
    PetscCheck(b.nnz == csr.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "The matrix has %" PetscInt64_FMT " nonzeros, the one to be used again %" PetscInt64_FMT, (PetscInt64)csr.nnz, (PetscInt64)b.nnz);
    PetscCall(xb.backend->copy(&xb, b.a, csr.a, sizeof(HybScalar) * (size_t)b.nnz, HYB_COPY_DEVICE_TO_DEVICE));
    PetscCall(MatSeqAIJHybridGPUDeviceWritten(*newmat, &xb));
    PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &a));
    PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
    PetscCall(HybEventEnd(HYB_OP_CONVERT, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybEventBegin(HYB_OP_CONVERT, A));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &B));
  PetscCall(MatSetSizes(B, A->rmap->n, A->cmap->n, A->rmap->n, A->cmap->n));
  PetscCall(MatSetBlockSizes(B, A->rmap->bs, A->cmap->bs));
  PetscCall(MatSetType(B, MATSEQAIJHYBRIDGPU));
  ierr = HybCopyOnDevice(&x, &csr, B);
  PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &a));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  if (ierr) (void)MatDestroy(&B);
  PetscCall(ierr);
  if (reuse == MAT_INPLACE_MATRIX)
    PetscCall(MatHeaderReplace(A, &B)); /* as PETSc, which goes entry by entry */
  else
    *newmat = B;
  PetscCall(HybEventEnd(HYB_OP_CONVERT, *newmat));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent takes a second factor of the very type MATSEQAIJ alone, and gives a result of it */
PetscErrorCode MatSeqAIJKron_SeqAIJHybridGPU(Mat A, Mat B, MatReuse reuse, Mat *C)
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

/* the parent's converter to a type derived from it has ours over it, where there is one; and ours back */
static HybConverter HybConverterTo(int k)
{
  if (!HybGlueState.converters[k]) return NULL;
#if HYB_HAS_CUDA
  if (k == 0) return MatConvert_SeqAIJHybridGPU_SeqAIJCUSPARSE;
#endif
  return MatConvert_SeqAIJHybridGPU_Derived;
}

/* NULL: there is none but that by the general way, convertfrom */
HybConverter HybConverterBack(MatType type)
{
  const int k = HybDerivedNumber(type);

  if (k < 0 || !HybGlueState.converters[k]) return NULL;
#if HYB_HAS_CUDA
  if (k == 0) return MatConvert_SeqAIJCUSPARSE_SeqAIJHybridGPU;
#endif
  return MatConvert_Derived_SeqAIJHybridGPU;
}

/* types that the parent converts to by name, besides those derived from it */
static const char *const HybConversions[] = {"seqsbaij", "seqbaij", "elemental", "scalapack", "hypre", "is", "seqsell", "seqdense", "dense"};

/* MatConvert() finds nothing by name, neither on A nor on the wanted type: the entries go one by one. It is called
   again without us, and counts B's state once more. */
PetscErrorCode HybConvertByEntries(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  PetscErrorCode (*const any)(Mat, MatType, MatReuse, Mat *) = A->ops->convert;
  PetscObjectState state;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  A->ops->convert = NULL;
  ierr            = HybConvertByPETSc(A, type, reuse, B);
  /* it is another one where that was done in place */
  if (A->ops->convertfrom == HybGlueState.convertfrom) A->ops->convert = any;
  PetscCall(ierr);
  PetscCall(PetscObjectStateGet((PetscObject)*B, &state));
  PetscCall(PetscObjectStateSet((PetscObject)*B, state - 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's converter to type by its own name, and the name of type there; NULL: there is none */
PetscErrorCode HybConvertFind(Mat A, const char parent[], MatType type, size_t size, char wanted[], HybConverter *f)
{
  static const char *const prefix[] = {"seq", "mpi", ""};
  char                     name[256];

  PetscFunctionBegin;
  for (int k = 0; k < 3 && !*f; k++) {
    PetscCall(PetscSNPrintf(wanted, size, "%s%s", prefix[k], type));
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%s_C", parent, wanted));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, f));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f is found by our type's name from now on, or, NULL, no longer: of the n types that are taken off with ours, that one
   alone which is wanted, or, NULL, each */
PetscErrorCode HybConvertName(Mat A, const char parent[], size_t n, const char *const types[], const char wanted[], HybConverter f)
{
  char name[256];

  PetscFunctionBegin;
  for (size_t k = 0; k < n; k++) {
    if (wanted && strcmp(wanted, types[k])) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%shybridgpu_%s_C", parent, types[k]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, f));
    if (f) HybGlueState.conversionsnamed = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ops->convert, which MatConvert() comes to last: to what the parent converts to under its own name. The next time it
   is found by ours, where the name is one of those that are taken off with the type. */
PetscErrorCode MatConvert_SeqAIJHybridGPU_Any(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  const int    derived = HybDerivedNumber(type);
  HybConverter f       = derived < 0 ? NULL : HybConverterTo(derived);
  char         wanted[64];

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(wanted, derived < 0 ? type : HybDerivedTypes[derived], sizeof(wanted)));
  PetscCall(HybConvertFind(A, MATSEQAIJ, type, sizeof(wanted), wanted, &f));
  if (!f) {
    PetscCall(HybConvertByEntries(A, type, reuse, newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse != MAT_INPLACE_MATRIX && derived < 0) PetscCall(HybConvertName(A, MATSEQAIJ, PETSC_STATIC_ARRAY_LENGTH(HybConversions), HybConversions, wanted, f));
  PetscCall((*f)(A, type, reuse, newmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc finds by the parent's name, on a matrix that bears it (-mat_seqaij_type) */
PetscErrorCode MatSeqAIJHybridGPUComposeParents(Mat A, PetscBool on)
{
  char name[128];

  PetscFunctionBegin;
  if (on) HybGlueState.parentsnamed = PETSC_TRUE;
  for (int k = 0; k < HYB_DERIVED_TYPES; k++) {
    if (!HybGlueState.converters[k]) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_seqaij_%s_C", HybDerivedTypes[k]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, on ? HybConverterTo(k) : HybGlueState.converters[k]));
  }
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_seqaij_seqaijhybridgpu_C", on ? MatConvert_SeqAIJ_SeqAIJHybridGPU : NULL));
  PetscCall(MatSeqAIJHybridGPUComposeDense(A, on));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first time A is still the parent's: what it converts to is noted. Off: also what was composed at its first use,
   where any matrix has such names: PETSc looks through all names for each one. */
PetscErrorCode MatSeqAIJHybridGPUComposeConversions(Mat A, PetscBool on)
{
  char name[128];

  PetscFunctionBegin;
  for (int k = 0; k < HYB_DERIVED_TYPES && !HybGlueState.convertersknown; k++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_seqaij_%s_C", HybDerivedTypes[k]));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &HybGlueState.converters[k]));
  }
  HybGlueState.convertersknown = PETSC_TRUE;
  if (!on) {
    if (HybGlueState.parentsnamed) PetscCall(MatSeqAIJHybridGPUComposeParents(A, PETSC_FALSE));
    if (HybGlueState.conversionsnamed) PetscCall(HybConvertName(A, MATSEQAIJ, PETSC_STATIC_ARRAY_LENGTH(HybConversions), HybConversions, NULL, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The sequential type: what its files share, and what the parallel one asks of it.
*/
#ifndef AIJHYBRIDGPU_SEQ_H
#define AIJHYBRIDGPU_SEQ_H

#include "../storage/storage.h"
#include "aijhybridgpu/private/hybparprod.h"
#include "aijhybridgpu/private/hybproduct.h"

/* values.c: before entries are set past MatSetValues(); and before somebody remembers where the values lie: they
   neither move to page-locked memory nor to managed memory from then on */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetValuesBegin(Mat, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[]);
/* before A, which the host assembles, is sent */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUExpect(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUStay(Mat);
PETSC_INTERN void           MatSeqAIJHybridGPUSetValuesOps(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode MatStoreValues_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatRetrieveValues_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJSetPreallocation_SeqAIJHybridGPU(Mat, PetscInt nz, const PetscInt nnz[]);
PETSC_INTERN PetscErrorCode MatResetPreallocation_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJSetColumnIndices_SeqAIJHybridGPU(Mat, PetscInt[]);
#if HYB_HAS_HASH
PETSC_INTERN PetscErrorCode MatResetHash_SeqAIJHybridGPU(Mat);
#endif

/* matmult.c */
PETSC_INTERN PetscErrorCode MatMult_SeqAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatResidual_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
/* do these have a residual? */
PETSC_INTERN PetscErrorCode HybResidualCheck(Mat, Vec b, Vec x, Vec r);
PETSC_INTERN PetscErrorCode HybResidualByMult(Mat, Vec b, Vec x, Vec r);
PETSC_INTERN PetscErrorCode MatMultTranspose_SeqAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultHermitianTranspose_SeqAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultHermitianTransposeAdd_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
/* of a product, for the report: which operation, and what it reads and writes at least */
PETSC_INTERN HybRecordOp    HybMultRecord(PetscBool transpose, HybSpMVMode);
PETSC_INTERN PetscLogDouble HybMultBytes(const HybCSR *, HybSpMVMode);
/* z = A x, y + A x, y - A x or the same of A^T, of arrays on the device; y may be z */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUMultBegin(Mat, const HybExec *, PetscBool transpose, HybCSR *, int *lanes);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUMultEnd(Mat, const HybExec *, PetscBool transpose, HybSpMVMode);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUMultArrays(Mat, const HybExec *, PetscBool transpose, const PetscScalar *, HybSpMVMode, const PetscScalar *, PetscScalar *);
/* ordered.c: what does the next product, the plan or a copy of the values beside it */
PETSC_INTERN PetscErrorCode HybMultOrderedNext(const HybView *, const HybCSR *csr, HybMultPlan *, HybSpMV **by);
/* the explicit transpose of a view's csr, up to date */
PETSC_INTERN PetscErrorCode HybViewTranspose(const HybView *, PetscBool conjugate, HybDeviceTranspose **);

/* deviceops.c; the second: B's values become A's, a sequential one of any AIJ type and the same pattern, if B lives on
   the device */
PETSC_INTERN void MatSeqAIJHybridGPUSetDeviceOps(Mat, PetscBool on);
/* B, of ours, gets the values of A, an AIJ of the same pattern */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUTakeValues(Mat B, Mat A);

/* devicecreate.c: operations that make a matrix from another on the device */
PETSC_INTERN void MatSeqAIJHybridGPUSetCreateOps(Mat, PetscBool on);
/* B, new, becomes of the type that A has, in name and in operations */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetTypeOf(Mat A, Mat B);
/* a matrix of A's type and choices, without entries, of a result's sizes and block sizes */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUCreateLike(Mat A, PetscInt m, PetscInt n, PetscInt rbs, PetscInt cbs, Mat *B);
/* how to make a matrix from A: on the device where A lives there or is large enough for it */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDeriveExec(Mat A, HybExec *x, PetscBool *device);

/* aijhybridgpu.c: the type */
PETSC_INTERN PetscErrorCode MatCreate_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJHybridGPU_SeqAIJ(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUOperateSeqAIJ(Mat, MatType, MatReuse, Mat *);

/* convert.c; the fourth: the way to this type from one derived from the parent, NULL: the general one; the fifth is
   MatConvert() to a type of PETSc's, past -matconvert_type */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUComposeConversions(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode MatSeqAIJKron_SeqAIJHybridGPU(Mat, Mat, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUComposeParents(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJHybridGPU_Any(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN HybConverter   HybConverterBack(MatType);
PETSC_INTERN PetscErrorCode HybConvertByPETSc(Mat, MatType, MatReuse, Mat *);
/* of either type of ours, for ops->convert */
PETSC_INTERN PetscErrorCode HybConvertFind(Mat, const char parent[], MatType, size_t, char wanted[], HybConverter *);
PETSC_INTERN PetscErrorCode HybConvertName(Mat, const char parent[], size_t n, const char *const types[], const char wanted[], HybConverter);
PETSC_INTERN PetscErrorCode HybConvertByEntries(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN int            HybDerivedNumber(MatType);
PETSC_INTERN PetscErrorCode HybConvertCopy(Mat A, Mat B, PetscBool assembled);
PETSC_INTERN PetscErrorCode HybConvertCopyToDerived(Mat A, Mat B);
/* values.c */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUZeroRowsLook(Mat, PetscBool *whole);
/* dense.c */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUComposeDense(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_SeqAIJHybridGPU_SeqDense(Mat);
/* factor.c */
PETSC_INTERN PetscErrorCode HybGlueRegisterFactors(void);

#endif

/*
  What other rooms tell the report of the run (-mat_aijhybridgpu_report): what was done with which matrix. All of it is
  behind one look at HybGlueState.report.records, which is NULL where no report was asked for.

  Nothing here makes an operation fail, waits for a device, or sends a message: a report changes nothing in the run that
  it describes. The functions return PetscErrorCode for PetscCall()'s sake.
*/
#ifndef AIJHYBRIDGPU_RECORD_H
#define AIJHYBRIDGPU_RECORD_H

#include "../process/process.h"

/* What the type knows of a matrix; where: its state's name in docs/architecture.md */
typedef struct {
  const char *where;
  PetscCount  nnz, sendings;
  size_t      hostbytes, devicebytes;
} HybRecordFacts;
typedef PetscBool (*HybRecordDescribe)(Mat, HybRecordFacts *); /* false: nothing is known */

/* Operations that have records: OP(name, what it is in a report). Of a product the type is the detail; NUMERIC: the
   first time. GHOSTS: of a parallel matrix, the wait for other processes' entries of a vector. */
#define HYB_RECORD_LIST(OP)                   \
  OP(MULT, "MatMult")                         \
  OP(MULTADD, "MatMultAdd")                   \
  OP(RESIDUAL, "MatResidual")                 \
  OP(MULTTRANSPOSE, "MatMultTranspose")       \
  OP(MULTTRANSPOSEADD, "MatMultTransposeAdd") \
  OP(SYMBOLIC, "product, symbolic")           \
  OP(NUMERIC, "product, first values")        \
  OP(AGAIN, "product, new values")            \
  OP(FACTOR, "factorization")                 \
  OP(GHOSTS, "entries of other processes")
#define HYB_RECORD_NUMBER(op, text) HYB_RECORD_##op,
typedef enum {
  HYB_RECORD_LIST(HYB_RECORD_NUMBER) HYB_RECORD_EVENTS, /* from here on: HybOp's, then HybPhase's */
  HYB_RECORD_OPS = (int)HYB_RECORD_EVENTS + (int)HYB_OPS + (int)HYB_PHASES
} HybRecordOp;

PETSC_INTERN PetscErrorCode HybRecordStart(HybRecordOp, Mat, const HybExec *);
PETSC_INTERN PetscErrorCode HybRecordStop(HybRecordOp, Mat, const HybExec *, const char *method, const char *detail, PetscLogDouble flops, PetscLogDouble bytes);
/* Why the operation that is about to end was done by this method: a word of figures, which may be cut */
PETSC_INTERN void HybRecordWhy(const char *text);
/* C is a product's result; from: of P^T A P, A */
PETSC_INTERN void HybRecordProduct(Mat C, const char *by, Mat from);
/* of a parallel matrix */
PETSC_INTERN void HybRecordBlocks(Mat A, Mat diagonal, Mat offdiagonal);
/* A is about to go: its name is known now, and its blocks' with it */
PETSC_INTERN void HybRecordGone(Mat A);

#define HybRecording()                                       PetscUnlikely(HybGlueState.report.records != NULL && !HybGlueState.onhost)
#define HybRecordBegin(op, A, x)                             (HybRecording() ? HybRecordStart(op, A, x) : PETSC_SUCCESS)
#define HybRecordEnd(op, A, x, method, detail, flops, bytes) (HybRecording() ? HybRecordStop(op, A, x, method, detail, flops, bytes) : PETSC_SUCCESS)

/* an event of ours, in PETSc's log and in the records: those of products have records of their own */
#define HybEventRecords(op) ((op) >= HYB_OP_ADOPT && (op) != HYB_OP_MULT)
static inline PetscErrorCode HybEventBegin(HybOp op, Mat A)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(HybGlueState.event.op[op], A, 0, 0, 0));
  if (HybEventRecords(op)) PetscCall(HybRecordBegin((HybRecordOp)((int)HYB_RECORD_EVENTS + (int)op), A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
static inline PetscErrorCode HybEventEnd(HybOp op, Mat A)
{
  PetscFunctionBegin;
  if (HybEventRecords(op)) PetscCall(HybRecordEnd((HybRecordOp)((int)HYB_RECORD_EVENTS + (int)op), A, NULL, "", "", 0, 0));
  PetscCall(PetscLogEventEnd(HybGlueState.event.op[op], A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* At load, where all processes are: from here on records are kept, if the option was given. Its end is in
   PetscFinalize(). */
PETSC_INTERN PetscErrorCode HybReportBegin(HybRecordDescribe);

#endif

/*
  hybproduct.h: PETSc's sparse products (AB, AtB, ABt, PtAP, RARt, ABC) as stages of transposes and multiplications over
  spgemm, or as one fused operation of ptap where its cost rule says so.
*/
#ifndef AIJHYBRIDGPU_HYBPRODUCT_H
#define AIJHYBRIDGPU_HYBPRODUCT_H
#include "hybptap.h"
#include "hybspgemm.h"

HYB_EXTERN_C_BEGIN

typedef enum {
  HYB_PRODUCT_AB,
  HYB_PRODUCT_ATB,
  HYB_PRODUCT_ABT,
  HYB_PRODUCT_PTAP, /* first operand A, second P */
  HYB_PRODUCT_RART, /* first operand A, second R */
  HYB_PRODUCT_ABC
} HybProductType;

typedef struct _HybProduct *HybProduct;

extern PetscErrorCode HybProductCreate(const HybExec *, HybProductType, const char *method, PetscInt width, HybProduct *);
/* checks shapes; result->i, j, a come from out (memory exec->result); a is allocated, not yet computed unless
 *numeric */
extern PetscErrorCode HybProductSymbolic(HybProduct, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybArena *out, HybCSR *result);
/* For the next numeric phase: same[k] says that operand k has the values that the last numeric phase saw. What was
   derived from them, such as a transpose, is not made again. */
extern PetscErrorCode HybProductUnchanged(HybProduct, const PetscBool same[3]);
/* Before the symbolic phase: the caller expects more than one numeric phase. P^T A P and R A R^T always do. */
extern void HybProductSetReuse(HybProduct);
/* Before the symbolic phase: the block size that the caller claims for all operands; 1: no claim. See
   HybSpGEMM.blocksize. */
extern void HybProductSetBlockSize(HybProduct, PetscInt bs);
/* Before the symbolic phase: the caller has an array for the result's values, so none is allocated. */
extern void HybProductSetPattern(HybProduct);
/* operands of the pattern given to symbolic, any values */
extern PetscErrorCode HybProductNumeric(HybProduct, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybCSR *result);
/* Has the last numeric phase succeeded without allocating memory, and can the next one? */
extern PetscBool HybProductWasFrugal(HybProduct);
/* the stream of later phases, see HybBackend.use() */
extern void HybProductSetStream(HybProduct, void *stream);
/* flops of one numeric phase (two per product of scalars), bytes that plan and intermediates hold, and the peak of
   bytes with the result */
extern void HybProductGetInfo(HybProduct, PetscLogDouble *flops, size_t *bytes, size_t *peak);
/* a line for each stage: method, products, counters */
extern PetscErrorCode HybProductDescribe(HybProduct, char text[], size_t length);
/* name of the method that computes the (last) stage, e.g. "binned", "fused" */
extern const char *HybProductGetMethod(HybProduct);
/* sum of a counter over stages */
extern PetscCount     HybProductGetCounter(HybProduct, const char *name);
extern PetscErrorCode HybProductDestroy(HybProduct *);

HYB_EXTERN_C_END
#endif

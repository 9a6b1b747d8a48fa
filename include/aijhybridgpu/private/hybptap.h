/*
  hybptap.h: the Galerkin product C = P^T A P as one operation, without storing A*P or P^T whole. The same product as
  stages over spgemm is the business of hybproduct.h.
*/
#ifndef AIJHYBRIDGPU_HYBPTAP_H
#define AIJHYBRIDGPU_HYBPTAP_H
#include "hybspgemm.h"

HYB_EXTERN_C_BEGIN

typedef struct _HybPtAPMethod HybPtAPMethod;

typedef struct {
  HybExec              exec;
  const HybPtAPMethod *method;
  HybArena             keep, work;
  HybCounters          counters;
  /* set by symbolic: the method does not take these operands and has stored nothing of the result, so the caller goes
     on with the stages */
  PetscBool declined;
  void     *data;
} HybPtAP;

struct _HybPtAPMethod {
  const char *name;
  /* Does the method's cost rule, which its file documents, expect it to be cheaper than the stages? */
  PetscErrorCode (*applicable)(const HybPtAP *, const HybCSR *A, const HybCSR *P, PetscBool *);
  PetscErrorCode (*symbolic)(HybPtAP *, const HybCSR *A, const HybCSR *P, HybArena *out, HybCSR *C);
  PetscErrorCode (*numeric)(HybPtAP *, const HybCSR *A, const HybCSR *P, HybCSR *C);
  PetscErrorCode (*destroy)(HybPtAP *);
};

extern const HybPtAPMethod *const HybPtAPMethodsHost[];

HYB_EXTERN_C_END
#endif

/*
  hybspgemm.h: C = A*B on CSR arrays. The driver (spgemm.c) chooses a method of the backend's table; a method is one
  file and one line in src/sparse/spgemm/methods.h.
*/
#ifndef AIJHYBRIDGPU_HYBSPGEMM_H
#define AIJHYBRIDGPU_HYBSPGEMM_H
#include "hyb.h"
#include "hybplan.h"
#include "hybsegmerge.h"

HYB_EXTERN_C_BEGIN

typedef struct _HybSpGEMMMethod HybSpGEMMMethod;

/* One product, from its symbolic phase to its last numeric one. It holds patterns and plans, never the operands'
   values. */
typedef struct {
  HybExec                exec;
  const HybSpGEMMMethod *method;      /* set by HybSpGEMMSymbolic() */
  char                   name[32];    /* asked for by the user: "auto" or a method's name */
  PetscInt               width;       /* rowmerge's W, 2..32; 0: the method chooses */
  PetscBool              reuse;       /* the caller expects more than one numeric phase: a plan for them may be made in the first */
  PetscInt               numerics;    /* numeric phases before this one */
  PetscInt               waits;       /* of this symbolic phase for the device, so far: three are allowed, and who has to wait for a look declines when the last one is not left */
  PetscInt               blocksizes;  /* sizes of blocks that a sample of both patterns leaves, bit bs; -1: not sampled yet */
  HybPlanStats           stats;       /* set by the driver before the method is called */
  PetscCount            *rowproducts; /* products of each row, in work, valid during symbolic; NULL: not counted yet */
  HybArena               keep;        /* lives until HybSpGEMMDestroy() */
  HybArena               work;        /* reset by the driver after each phase, also after a failed one */
  HybCounters            counters;
  void                  *data; /* the method's, in keep or freed by its destroy */
} HybSpGEMM;

struct _HybSpGEMMMethod {
  const char *name;
  /* may this method take these operands? The driver asks only for "auto"; a named method that cannot run is an error.
     NULL: always */
  PetscErrorCode (*applicable)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, PetscBool *);
  /* fills C->m, n, nnz and C->i, C->j (from out, memory exec.result), columns ascending; structural: no numerical
     dropping. With values != NULL-able operands a method may fill C->a (from out) at once when it is cheaper to do both
     together: then the driver does not call numeric for the first product. C->a left NULL: the driver allocates it and
     calls numeric. */
  PetscErrorCode (*symbolic)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C);
  /* fills C->a for operands of the same pattern as in symbolic */
  PetscErrorCode (*numeric)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybCSR *C);
  PetscErrorCode (*destroy)(HybSpGEMM *); /* may be NULL: keep and work are reset by the driver */
  /* applicable is called before anything was counted, also for a method asked for by name, and symbolic needs neither
     stats nor rowproducts where it said yes: it sets stats.products and stats.maxrow. Where it said no it may have
     filled rowproducts, from work, and stats already. */
  PetscBool early;
};

/* method: "auto" or a name of the table (PETSC_ERR_ARG_UNKNOWN_TYPE listing the names otherwise); width: 0 or 2..32 */
extern PetscErrorCode HybSpGEMMInit(HybSpGEMM *, const HybExec *, const char *method, PetscInt width);
/* C->i, C->j (and, if the method chose to, C->a) come from out. Refuses counts beyond PetscInt: early on the lower
   bound, else on the exact count, never on the number of products. */
extern PetscErrorCode HybSpGEMMSymbolic(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C);
extern PetscErrorCode HybSpGEMMNumeric(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybCSR *C);
extern PetscErrorCode HybSpGEMMDestroy(HybSpGEMM *);

/* for the methods, before they take C's arrays: PETSC_ERR_ARG_OUTOFRANGE or PETSC_ERR_MEM, naming needed and free
   bytes, where C of (at least) nnz nonzeros is impossible */
extern PetscErrorCode HybSpGEMMCheckCount(const HybExec *, const HybCSR *A, const HybCSR *B, PetscCount nnz, PetscBool atleast);

/* all names of methods.h, host and device, each once; NULL-terminated */
extern PetscErrorCode HybSpGEMMGetNames(const char *const **names);

extern const HybSpGEMMMethod *const HybSpGEMMMethodsHost[];

HYB_EXTERN_C_END
#endif

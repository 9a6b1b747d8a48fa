/*
  hybspgemm.h: C = A*B on CSR arrays. The driver (spgemm.c) chooses a method of the backend's table; a method is one
  file and one line in src/sparse/spgemm/methods.h.
*/
#ifndef AIJHYBRIDGPU_HYBSPGEMM_H
#define AIJHYBRIDGPU_HYBSPGEMM_H
#include "hyb.h"
#include "hybplan.h"

HYB_EXTERN_C_BEGIN

typedef struct _HybSpGEMMMethod HybSpGEMMMethod;

typedef enum {
  HYB_SPGEMM_READS_A = 1,
  HYB_SPGEMM_READS_B = 2,
  HYB_SPGEMM_READS_C = 4
} HybSpGEMMReads;
#define HYB_SPGEMM_READS_ALL (HYB_SPGEMM_READS_A | HYB_SPGEMM_READS_B | HYB_SPGEMM_READS_C)

/* One part of a numeric phase. A product that stands between two others is done in parts, so that not all of its values
   are in memory at once. inner false: the part computes some rows of C, and C->a holds the entries of these rows alone.
   inner true: the part adds to C what some rows of B contribute, and B->a holds the entries of these rows alone. The
   caller does all parts, in their order. */
typedef struct {
  PetscBool  inner;    /* the rows are B's, else C's */
  PetscInt   row[2];   /* row[0] to row[1]-1 */
  PetscCount entry[2]; /* their entries: entry[0] to entry[1]-1 */
} HybSpGEMMPart;
#define HYB_SPGEMM_PARTS 4 /* the most parts; the number of parts divides it */

/* One product, from its symbolic phase to its last numeric one. It holds patterns and plans, never the operands'
   values. */
typedef struct {
  HybExec                exec;
  const HybSpGEMMMethod *method;   /* set by HybSpGEMMSymbolic() */
  char                   name[32]; /* "auto" or a method's name, as the user asked */
  PetscInt               width;    /* rowmerge's W, 2..32; 0: the method chooses */
  /* reuse: the caller expects more than one numeric phase, and a plan for them is made before the first. planned: the
     plan has been made, or the method makes none. */
  PetscBool reuse, planned;
  PetscInt  numerics; /* numeric phases before this one */
  PetscReal spent;    /* microseconds that numeric phases without a plan have cost, as the method estimates it */
  PetscBool due;      /* the next numeric phase makes the plan */
  /* Workspace while a plan is made: C->a, if the next numeric phase writes all of it; else NULL */
  void  *unwritten;
  size_t unwrittenbytes;
  /* Block size that the caller claims for both patterns, set before the symbolic phase; a multiple of it is as good.
     The claim is checked before it is used. 0 or 1: no claim. */
  PetscInt blocksize;
  /* The driver's analysis of the operands, valid during the symbolic phase. Each part is made when it is first used. */
  PetscInt     waits;       /* how often this phase has waited for the device, by HybSpGEMMFetch() */
  PetscInt     blocksizes;  /* bit bs is set: a sample of both patterns allows blocks of size bs; -1: not sampled yet */
  HybPlanStats stats;       /* valid if counted */
  PetscCount  *rowproducts; /* products of each row, from work, valid if counted; NULL: not allocated yet */
  PetscBool    counted;     /* stats and rowproducts are valid */
  HybArena     keep;        /* lives until HybSpGEMMDestroy() */
  HybArena     work;        /* reset by the driver after each phase, also after a failed one */
  HybCounters  counters;
  void        *data;  /* the method's own, from keep or freed by its destroy */
  int          reads; /* HybSpGEMMReads: the matrices whose columns numeric phases read; a method may clear bits */
  /* the caller has freed the columns that are not in reads, so numeric phases need the plan */
  PetscBool columnsgone;
  /* permutation: value k of A is A->a[permutation[k]]; NULL: A->a[k]. The caller sets it for the plan, and for numeric
     phases if the method has set permutes. transposed: offsets of the A->n rows of the matrix whose transpose is A, set
     by the caller before the symbolic phase if A->a holds that matrix's values; else NULL. placed: the method has taken
     the permutation into its plan, so numeric phases need none. */
  const PetscInt *permutation, *transposed;
  PetscBool       permutes, placed;
  /* part: what the next numeric phase does, set by the caller if the method has set parts; NULL: all of C. cut[k]:
     entries of C before row k*m/HYB_SPGEMM_PARTS, valid if the method has set hascut. */
  const HybSpGEMMPart *part;
  PetscBool            parts, hascut;
  PetscCount           cut[HYB_SPGEMM_PARTS + 1];
} HybSpGEMM;

struct _HybSpGEMMMethod {
  const char *name;
  /* Does "auto" want this method for these operands? The answer depends on the operands' sizes and the analysis so far,
     and changes nothing. NULL: always. */
  PetscErrorCode (*applicable)(const HybSpGEMM *, const HybCSR *A, const HybCSR *B, PetscBool *);
  /* Fills C->m, n, nnz and C->i, C->j (from out, memory exec.result), columns ascending. The pattern is structural: no
     entry is dropped because its value is zero. If the operands have values, a method may fill C->a (from out) as well;
     then the driver does not call numeric for the first product. If C->a is NULL, the driver allocates it and calls
     numeric. */
  PetscErrorCode (*symbolic)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C);
  /* Makes the plan of a product with several numeric phases from the three patterns. The driver calls it before the
     first numeric phase if mm->reuse, else when the phases without it have cost what it costs (plancost), and not
     before the second one. If memory is short, the driver frees what was taken, and numeric phases run without a plan.
     A method that prefers to be called again before the next numeric phase sets mm->planned = PETSC_FALSE. NULL: the
     method has no plan. */
  PetscErrorCode (*plan)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, const HybCSR *C);
  /* What the plan costs, and what a numeric phase without it costs: microseconds on an H200, from sizes alone, so that
     a run repeats and all processes decide alike. NULL: the plan costs less than a phase. */
  void (*plancost)(const HybSpGEMM *, const HybCSR *A, const HybCSR *B, const HybCSR *C, PetscReal *plan, PetscReal *phase);
  /* Fills C->a for operands of the same pattern as in symbolic. Columns of matrices that are not in mm->reads may be
     freed. */
  PetscErrorCode (*numeric)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybCSR *C);
  PetscErrorCode (*destroy)(HybSpGEMM *); /* may be NULL: keep and work are reset by the driver */
  /* The driver asks the method before it counts products. symbolic reads neither stats nor rowproducts; it sets
     stats.products and stats.maxrow. */
  PetscBool early;
  /* The method works on whole blocks: it is asked before all others if the caller claims a block size. */
  PetscBool blocks;
  /* Do the entries of these operands fit this method? NULL: all do. The driver asks if applicable said yes, and in any
     case if the user named the method: then no is an error. The method waits for the device by HybSpGEMMFetch() alone;
     with too few waits left, "auto" does not ask. On yes, mm->data holds what was found. On no, the driver frees all of
     keep. Both may add to the analysis what other methods can use: blocksizes, stats, rowproducts. */
  PetscErrorCode (*fits)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, PetscBool *);
};

/* The most waits for the device in a symbolic phase. A method's question to the entries must leave one for the count of
   C. A sample of long rows that found no blocks may be one wait more. */
#define HYB_SPGEMM_WAITS 3
static inline PetscErrorCode HybSpGEMMFetch(HybSpGEMM *mm, void *host, const void *device, size_t bytes)
{
  mm->waits++;
  return mm->exec.backend->copy(&mm->exec, host, device, bytes, HYB_COPY_DEVICE_TO_HOST);
}

/* method: "auto" or a name of the table (PETSC_ERR_ARG_UNKNOWN_TYPE listing the names otherwise); width: 0 or 2..32 */
extern PetscErrorCode HybSpGEMMInit(HybSpGEMM *, const HybExec *, const char *method, PetscInt width);
/* C->i, C->j (and, if the method chose to, C->a) come from out. Refuses counts beyond PetscInt: early on the lower
   bound, else on the exact count, never on the number of products. */
extern PetscErrorCode HybSpGEMMSymbolic(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C);
/* Makes the plan. A numeric phase calls it if the caller has not. A caller that allocates memory for the numeric phase
   does so after this, when the plan has freed its workspace. */
extern PetscErrorCode HybSpGEMMPlan(HybSpGEMM *, const HybCSR *A, const HybCSR *B, const HybCSR *C);
extern PetscErrorCode HybSpGEMMNumeric(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybCSR *C);
extern PetscErrorCode HybSpGEMMDestroy(HybSpGEMM *);

/* Methods call it before they allocate C's arrays: PETSC_ERR_ARG_OUTOFRANGE, or PETSC_ERR_MEM naming needed and free
   bytes, if C cannot have (at least) nnz nonzeros */
extern PetscErrorCode HybSpGEMMCheckCount(const HybExec *, const HybCSR *A, const HybCSR *B, PetscCount nnz, PetscBool atleast);
/* The arrays of C's entries from out, in exec->result, once C->nnz is known and C->i there: columns, and values where
   both operands have some. Checks the count. */
extern PetscErrorCode HybSpGEMMEntries(const HybExec *, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C);

/* all names of methods.h, host and device, each once; NULL-terminated */
extern PetscErrorCode HybSpGEMMGetNames(const char *const **names);

extern const HybSpGEMMMethod *const HybSpGEMMMethodsHost[];

HYB_EXTERN_C_END
#endif

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

/* A part of a numeric phase, so that a product between two others never has all of its values at once: some rows of C,
   of which C->a has the entries alone; or what some rows of B give, of which B->a has the entries alone, added to C.
   All parts come, in their order. */
typedef struct {
  PetscBool  inner;    /* of B */
  PetscInt   row[2];   /* from the first one to before the second one */
  PetscCount entry[2]; /* and their entries */
} HybSpGEMMPart;
#define HYB_SPGEMM_PARTS 4 /* at most; the number of parts divides it */

/* One product, from its symbolic phase to its last numeric one. It holds patterns and plans, never the operands'
   values. */
typedef struct {
  HybExec                exec;
  const HybSpGEMMMethod *method;   /* set by HybSpGEMMSymbolic() */
  char                   name[32]; /* asked for by the user: "auto" or a method's name */
  PetscInt               width;    /* rowmerge's W, 2..32; 0: the method chooses */
  /* the caller expects more than one numeric phase: a plan for them is made before the first; planned: so it was, or
     there is none */
  PetscBool reuse, planned;
  PetscInt  numerics; /* numeric phases before this one */
  /* while a plan is made: C's values, if the numeric phase that comes next writes all of them, as workspace */
  void  *unwritten;
  size_t unwrittenbytes;
  /* By the caller, before the symbolic phase: both patterns are said to consist of whole blocks of this size, or of
     multiples of it, as PETSc's block sizes say. A word, which is proven before it is used; 0 or 1: nothing is said */
  PetscInt blocksize;
  /* the driver's analysis of the operands, during symbolic: each part is made when it is first wanted */
  PetscInt     waits;       /* for the device so far (HybSpGEMMFetch()) */
  PetscInt     blocksizes;  /* sizes of blocks that a sample of both patterns leaves, bit bs; -1: not sampled yet */
  HybPlanStats stats;       /* what the products' counts tell */
  PetscCount  *rowproducts; /* products of each row, in work; NULL: no room for them yet */
  PetscBool    counted;     /* they are there, and stats with them */
  HybArena     keep;        /* lives until HybSpGEMMDestroy() */
  HybArena     work;        /* reset by the driver after each phase, also after a failed one */
  HybCounters  counters;
  void        *data;  /* the method's, in keep or freed by its destroy */
  int          reads; /* whose columns numeric phases read, of HybSpGEMMReads: all, unless the method says fewer */
  /* the caller has given back columns that reads does not name: there is no way without the plan any more */
  PetscBool columnsgone;
  /* Where each of A's values stands in A->a; NULL: in turn. For the plan and numeric phases, by the caller, in these
     where the method says that it takes them so. transposed: before the symbolic phase, by the caller, where A is a
     transpose and A->a that matrix's own values: where its A->n rows begin. Then a method can have made its own of the
     permutation, which is needed no more (placed). */
  const PetscInt *permutation, *transposed;
  PetscBool       permutes, placed;
  /* part: of a numeric phase, by the caller, where the method says that it has them; NULL: all of it. cut: entries of
     C before each quarter of its rows, if the method says so */
  const HybSpGEMMPart *part;
  PetscBool            parts, hascut;
  PetscCount           cut[HYB_SPGEMM_PARTS + 1];
} HybSpGEMM;

struct _HybSpGEMMMethod {
  const char *name;
  /* does "auto" want this method for these operands? A pure question, to the operands' sizes and the analysis so far.
     NULL: always */
  PetscErrorCode (*applicable)(const HybSpGEMM *, const HybCSR *A, const HybCSR *B, PetscBool *);
  /* fills C->m, n, nnz and C->i, C->j (from out, memory exec.result), columns ascending; structural: no numerical
     dropping. With values != NULL-able operands a method may fill C->a (from out) at once when it is cheaper to do both
     together: then the driver does not call numeric for the first product. C->a left NULL: the driver allocates it and
     calls numeric. */
  PetscErrorCode (*symbolic)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C);
  /* Makes what the numeric phases go by, of a product with several of them: from patterns, all of which are there.
     Before the second one where these were not expected (mm->reuse). Without memory they go on without: what was taken
     is given back. A method that would rather wait for the second one in any case says so: mm->planned = PETSC_FALSE.
     NULL: nothing is made */
  PetscErrorCode (*plan)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, const HybCSR *C);
  /* fills C->a for operands of the same pattern as in symbolic; columns that mm->reads does not name may be gone */
  PetscErrorCode (*numeric)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, HybCSR *C);
  PetscErrorCode (*destroy)(HybSpGEMM *); /* may be NULL: keep and work are reset by the driver */
  /* the method is asked before products are counted, and symbolic needs neither stats nor rowproducts, but sets
     stats.products and stats.maxrow */
  PetscBool early;
  /* it lives by whole blocks: it is asked before all others where the caller gives their size */
  PetscBool blocks;
  /* can this method take these operands, as far as only a look at their entries tells? NULL: any. Asked where
     applicable said yes, and of a method by name, for which no is an error. Waits for the device by HybSpGEMMFetch()
     alone, and "auto" is not asked once too few waits are left. Yes: what was found is mm->data. What it found out
     besides for others (blocksizes; stats with rowproducts, counted or not) stays in the analysis; of keep the driver
     frees all where the answer is no. */
  PetscErrorCode (*look)(HybSpGEMM *, const HybCSR *A, const HybCSR *B, PetscBool *);
};

/* Waits for the device in a symbolic phase: three are allowed, of which a look must leave one for the count of C; a
   sample of long rows for blocks that found none is one more. */
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
/* before a numeric phase, which calls it unless the caller has: then its memory is better taken after this */
extern PetscErrorCode HybSpGEMMPlan(HybSpGEMM *, const HybCSR *A, const HybCSR *B, const HybCSR *C);
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

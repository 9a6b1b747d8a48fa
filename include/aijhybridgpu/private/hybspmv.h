/*
  hybspmv.h: y = A x on CSR arrays. The driver (spmv.c) chooses a method of the backend's table; a method is one file
  and one line in src/sparse/spmv/methods.h.
*/
#ifndef AIJHYBRIDGPU_HYBSPMV_H
#define AIJHYBRIDGPU_HYBSPMV_H
#include "hyb.h"

HYB_EXTERN_C_BEGIN

typedef enum {
  HYB_SPMV_SET,      /* z = A x */
  HYB_SPMV_ADD,      /* z = y + A x */
  HYB_SPMV_RESIDUAL, /* z = y - A x */
  HYB_SPMV_STEP      /* HybSpMVStep: by HybSpMVApplyStep() alone */
} HybSpMVMode;

/*
  A step of Chebyshev's or Richardson's method with Jacobi, as the end of a product's rows:

    z = (c[2] w + c[1] x) + c[0] (dinv (y - A x))

  in this order of operations, which is PETSc's. The numbers c are read where the backend executes, so that a captured
  launch sees new ones. A is square, and all vectors have an entry for each of its rows.
*/
typedef struct {
  const HybScalar *y;    /* the right-hand side */
  const HybScalar *dinv; /* one number a row */
  const HybScalar *w;    /* may be z; NULL: no such term */
  const PetscReal *c;    /* three numbers, in memory of the backend */
  HybScalar       *z;    /* is none of x, y, dinv */
  /* NULL, or, where HybSpMVTakesFirst() is true, x = first[0] (dinv y), the first step from zero, which nobody has
     made: x is not read; in memory of the backend */
  const PetscReal *first;
} HybSpMVStep;

/* The first step from zero: z = c[0] (dinv y), of a y that its maker has in hand */
typedef struct {
  const HybScalar *dinv;
  const PetscReal *c; /* in memory of the backend */
  HybScalar       *z;
  /* NULL, or dinv and z are of single precision (HybScalarSingle), and may be NULL: y goes there too, scaled as z is by
     a power of two, whose exponent *scale becomes */
  void *single;
  int  *scale;
} HybSpMVFirst;

typedef struct _HybSpMVMethod HybSpMVMethod;

/* Sums that a launch leaves on its way */
#define HYB_SPMV_SUMS_ROWS 256
typedef struct {
  HybScalar *part;      /* three numbers for each HYB_SPMV_SUMS_ROWS rows */
  PetscBool  hermitian; /* inner products conjugate their second factor */
} HybSpMVSums;

/* The plan of one pattern. It stays valid while i, j and nnz stand; values may change at will. */
typedef struct {
  HybExec              exec;
  const HybSpMVMethod *method;   /* set by HybSpMVSetUp() */
  char                 name[32]; /* "auto" or a method's name */
  PetscInt             bs;       /* block size that divides the pattern's rows and columns, 1 if none is known */
  /* set by the caller before HybSpMVSetUp(): few applications will come, so "auto" plans as little as it can */
  PetscBool  once;
  PetscCount longest; /* set by the caller before HybSpMVSetUp(): entries of the longest row; 0: not known */
  /* set by the caller before HybSpMVOrderUp(), in single precision alone: values of the ordered plan may have 16
     bits */
  PetscBool   half;
  HybArena    keep;
  HybArena    work;
  HybCounters counters;
  PetscCount  calls;  /* applications since set-up; a method may refine its plan after the first */
  uint64_t    number; /* counts the set-ups of the process; a new plan has a new number */
  /* Set by the caller where HybSpMVLeaves() is true, else NULL: where products (HYB_SPMV_SET) leave x z, and steps z y,
     |z|^2 and |y|^2, side by side for each HYB_SPMV_SUMS_ROWS rows */
  HybSpMVSums *left;
  /* Set by the caller where HybSpMVBegins() is true, else NULL: a product (HYB_SPMV_SET) makes this first step of its
     result y, too */
  const HybSpMVFirst *first;
  void               *data;
} HybSpMV;

struct _HybSpMVMethod {
  const char *name;
  /* Does "auto" want this method for A? It may read the entries, and keeps what it found in data. NULL: always. */
  PetscErrorCode (*fits)(HybSpMV *, const HybCSR *A, PetscBool *);
  PetscErrorCode (*setup)(HybSpMV *, const HybCSR *A); /* may be NULL */
  /* HYB_SPMV_SET does not read y. y may be z; x is neither. */
  PetscErrorCode (*apply)(HybSpMV *, const HybCSR *A, const HybScalar *x, HybSpMVMode, const HybScalar *y, HybScalar *z);
  PetscErrorCode (*destroy)(HybSpMV *); /* may be NULL */
  /* NULL: the method cannot do a step, and HybSpMVHasStep() is false */
  PetscErrorCode (*step)(HybSpMV *, const HybCSR *A, const HybScalar *x, const HybSpMVStep *);
  /* NULL: the method knows no other order of values, and HybSpMVOrderUp() finds that nothing fits. They set up the
     second plan, and give it A's values. */
  PetscErrorCode (*orderup)(const HybSpMV *, const HybCSR *A, HybSpMV *ordered, PetscBool *fits);
  PetscErrorCode (*order)(const HybSpMV *, const HybCSR *A, HybSpMV *ordered);
  PetscBool leaves;                     /* it leaves sums that are asked for */
  PetscBool takesfirst;                 /* its steps may have `first` */
  PetscBool (*begins)(const HybSpMV *); /* NULL: HybSpMVBegins() is false */
  /* NULL: HybSpMVHasAmend() is false */
  PetscErrorCode (*amend)(HybSpMV *, const HybCSR *A, const HybScalar *x, const HybSpMVStep *);
  /* NULL: 0; see HybSpMVLanes() */
  int (*lanes)(const HybSpMV *);
  /* Does "auto" want this method for A if the plan is for one application (once)? NULL: no. */
  PetscErrorCode (*fitsonce)(HybSpMV *, const HybCSR *A, PetscBool *);
};

extern PetscErrorCode HybSpMVInit(HybSpMV *, const HybExec *, const char *method, PetscInt bs);
extern PetscErrorCode HybSpMVSetUp(HybSpMV *, const HybCSR *A);
extern PetscErrorCode HybSpMVApply(HybSpMV *, const HybCSR *A, const HybScalar *x, HybSpMVMode, const HybScalar *y, HybScalar *z);
/* Can the plan's method end its rows with a HybSpMVStep? */
extern PetscBool      HybSpMVHasStep(const HybSpMV *);
extern PetscErrorCode HybSpMVApplyStep(HybSpMV *, const HybCSR *A, const HybScalar *x, const HybSpMVStep *);
/* Another plan of A's products, which has a copy of A's values in the order in which its kernel reads them; plan: A's,
   by HybSpMVSetUp(). Not fits: the pattern has no such order, or memory is scarce, and nothing is left of ordered.
   HybSpMVOrder() makes the copy: before the first product, and again when A has other values; plan has not been set up
   again since then. */
extern PetscErrorCode HybSpMVOrderUp(const HybSpMV *plan, const HybCSR *A, HybSpMV *ordered, PetscBool *fits);
extern PetscErrorCode HybSpMVOrder(const HybSpMV *plan, const HybCSR *A, HybSpMV *ordered);
/* Are sums left where the plan's `left` is set? */
extern PetscBool HybSpMVLeaves(const HybSpMV *);
/* May a step make the first one on its way? */
extern PetscBool HybSpMVTakesFirst(const HybSpMV *);
/* Is a first step made where the plan's `first` is set? */
extern PetscBool HybSpMVBegins(const HybSpMV *);
/* z of a step that was made without the entries of A, another part of its matrix: z -= c[0] dinv (A x) */
extern PetscBool      HybSpMVHasAmend(const HybSpMV *);
extern PetscErrorCode HybSpMVAmend(HybSpMV *, const HybCSR *A, const HybScalar *x, const HybSpMVStep *);
/* The number of lanes that form each row's sum: they take its entries in turn and add in a butterfly at the end. A
   kernel that does the same gets the bits of HybSpMVApply(). 0: the plan forms sums in another order. */
extern int            HybSpMVLanes(const HybSpMV *);
extern PetscErrorCode HybSpMVDestroy(HybSpMV *);
extern PetscErrorCode HybSpMVGetNames(const char *const **names);

extern const HybSpMVMethod *const HybSpMVMethodsHost[];

/*
  Products with several vectors at once, K of them: 2, 4 or HYB_COLUMNS. They lie interleaved: entry i of column c is at
  i*K+c, in memory aligned to 16 bytes. Columns never mix: what one of them holds, NaN too, is nothing to the others.
*/
#define HYB_COLUMNS      8   /* the most columns at once */
#define HYB_COLUMNS_SUMS 528 /* the most blocks that leave sums */

/* Sums that a launch leaves on its way, of each column: sum s of block b is at part[(b*n+s)*K+c], n being how many sums
   there are. How many blocks: by the matrix's size alone, so that the bits are the same from run to run. */
typedef struct {
  HybScalar *part;      /* 3 HYB_COLUMNS_SUMS K numbers */
  PetscInt   blocks;    /* set by the launch */
  PetscBool  hermitian; /* inner products conjugate their second factor */
} HybColumnsSums;

typedef struct _HybColumnsOps {
  /* z = A x, y + A x or y - A x; y may be z, x is neither. sums, or NULL: x z, one sum; A is square, HYB_SPMV_SET */
  PetscErrorCode (*mult)(const HybExec *, PetscInt K, const HybCSR *A, const HybScalar *x, HybSpMVMode, const HybScalar *y, HybScalar *z, HybColumnsSums *sums);
  /* a smoother's step; all columns have the same numbers and dinv. sums, or NULL: z y, |z|^2 and |y|^2 */
  PetscErrorCode (*step)(const HybExec *, PetscInt K, const HybCSR *A, const HybScalar *x, const HybSpMVStep *, HybColumnsSums *sums);
} HybColumnsOps;

/* the least number of columns that kernels have and k fit in */
static inline PetscInt HybColumnsWidth(PetscInt k)
{
  return k <= 2 ? 2 : k <= 4 ? 4
                             : HYB_COLUMNS;
}

HYB_EXTERN_C_END
#endif

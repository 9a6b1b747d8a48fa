/*
  hybcycle.h: a cycle of multigrid on plain arrays. Smoothers are Chebyshev's or Richardson's method with Jacobi; the
  coarsest level is multiplied by its inverse, or left to the caller.
*/
#ifndef AIJHYBRIDGPU_HYBCYCLE_H
#define AIJHYBRIDGPU_HYBCYCLE_H
#include "hyb.h"
#include "hybcomm.h"
#include "hybspmv.h"

HYB_EXTERN_C_BEGIN

#define HYB_CYCLE_TOTALS 4   /* sums that are kept */
#define HYB_CYCLE_SUMS   512 /* partial sums that a device forms at once */
#define HYB_CYCLE_LEVELS 30  /* the most levels above the coarsest */
#define HYB_CYCLE_SCALE  3   /* ints of HybCycle.scale */
/* the largest number of a matrix that a cycle in single precision bears: products have room */
#define HYB_CYCLE_SINGLE 1e20

/* How a level is smoothed on one side of the visit below: `steps` times HybSpMVStep. Step k has the numbers c[3k] to
   c[3k+2], in memory of the backend. */
typedef struct {
  PetscInt         steps;
  PetscBool        threeterm; /* from the second step on, a step reads the last two iterates (Chebyshev) */
  const PetscReal *c;
} HybCycleSmoother;

/* a level's matrices: the one it smooths, and those from and to the next coarser level */
typedef enum {
  HYB_CYCLE_A,
  HYB_CYCLE_P,
  HYB_CYCLE_R,
  HYB_CYCLE_PARTS
} HybCyclePart;

/* A matrix of several processes: this process's rows, in columns of its own and in those of others that its halo has.
   transpose: both are transposed, and what comes out for others' entries goes to them. */
typedef struct {
  HybCSR    D, O;
  HybSpMV  *own, *others; /* their plans */
  HybHalo   halo;
  PetscBool transpose;
  PetscInt  captured[2]; /* products in a launch of the cycle's graph, and of a caller's (HybCycleRecordBegin()) */
} HybCycleBlocks;
/* is a product of it one launch with its exchange? By the plan that forms each row's sum by lanes. */
extern PetscBool HybCycleBlocksTogether(const HybCycleBlocks *);

/* A level above the coarsest. All arrays belong to the caller and live where the backend executes. */
typedef struct {
  HybCSR           A;
  HybSpMV         *mult; /* A's plan */
  HybCSR           P;    /* from the next coarser level to this one */
  HybSpMV         *interpolate;
  HybCSR           R; /* from this level to the next coarser one; i NULL, on the host alone: P transposed is used */
  HybSpMV         *restriction;
  const HybScalar *dinv; /* entries of the smoothers' preconditioner: one over A's diagonal */
  HybCycleSmoother pre, post;
  /* where several processes have the level: its matrices. A.m is this process's rows; A, P and R are read where each
     process has all (HybCycle.whole). */
  HybCycleBlocks several[HYB_CYCLE_PARTS];
  PetscInt       cycles; /* visits to the next coarser level, 1: V, 2: W; not read on the level above the coarsest */
  HybScalar     *b, *x;  /* right-hand side and solution, an entry for each row of A; not read on the finest level */
  HybScalar     *r, *p;  /* work vectors, an entry for each row of A */
} HybCycleLevel;

/* Sums of vectors' entries, where the cycle executes */
typedef struct {
  HybScalar *s;       /* HYB_CYCLE_TOTALS sums, then HYB_CYCLE_SUMS partial sums */
  int       *arrived; /* one counter, 0 at first; read on a device alone */
} HybCycleSums;

typedef struct {
  HybExec       exec;
  PetscInt      n; /* levels above the coarsest; level[0] is the finest. At least one. */
  HybCycleLevel level[HYB_CYCLE_LEVELS];
  /* The coarsest level, of m rows: right-hand side b, solution x, and its inverse by rows; inverse NULL: solve()
     computes x = A^-1 b */
  PetscInt             m;
  HybScalar           *b, *x;
  const HybScalarWide *inverse;
  PetscErrorCode (*solve)(void *ctx, const HybScalar *b, HybScalar *x);
  void *ctx;
  /* On a device alone. Vectors are this process's parts, and all processes apply the cycle together. The inverse is
     that of a coarsest level that one process has whole: others have m = 0, and then any inverse but NULL, unless each
     has the level whole. */
  PetscBool several;
  /* Of several processes: from level `whole` on each has all of the levels, and computes the same; 1 <= whole <= n,
     which is the coarsest; 0: there are no such levels. The level above has its rows of P in columns of all, and of R
     the columns of its rows: what all processes restrict is added by `sum`. */
  PetscInt       whole, processes;
  HybCommSum     sum;
  HybCycleBlocks summed; /* its halo is sum's */
  /* The levels are in single precision: plans are of exec.backend->single, and what their types here call HybScalar,
     values of matrices, dinv and vectors, is its. An application's b and x, and the inverse, are of double precision
     all the same. scale: HYB_CYCLE_SCALE ints where the cycle executes, zero at first. The finest level has vectors b
     and x of its own. */
  PetscBool single;
  int      *scale;
  /* For a singular matrix on the finest level, whose null space are the constants. zeromean: the mean of each
     smoother's D^-1 (b - A x) is subtracted; zerosum: the mean of b is. q and sums are work for that. */
  PetscBool    zeromean, zerosum;
  HybScalar   *q;
  HybCycleSums sums;
  /* Not 0: every vector has so many interleaved columns (HybColumnsOps), the caller's too, and plans are not read. On a
     device, of one process, in double precision, with an inverse, R explicit, and none of the means above. */
  PetscInt columns;
  /* NULL, or where the last application leaves sums of x b, |x|^2 and |b|^2: HybCycleLeaves() */
  HybColumnsSums *left;
  HybSpMVSums    *sumsleft; /* the same of one vector, where HybCycleLeaves() is true */
  /* true: the caller has made what HybCycleFirst() tells, for the next application, which clears this */
  PetscBool begun;
  /* The caller changes stamp whenever an array or a plan of the cycle is another one. */
  uint64_t stamp;
  /* HybCycleApply()'s own */
  void     *graph;   /* the captured launches of all levels from `first` on; NULL: not captured yet */
  PetscBool applied; /* true: there was an application since the last HybCycleMoved() */
  PetscInt  first;   /* the finest level that is captured */
  PetscInt  made;    /* the level whose first step is not in the graph, since the restriction to it makes it; 0: none */
  PetscInt  same;    /* so many applications had the vectors of the one before */
  PetscBool wander;  /* true: captured vectors were not those of the next application */
  /* the last application's */
  const HybScalar *lastb;
  HybScalar       *lastx;
  PetscCount       launched; /* applications that launched the graph */
} HybCycle;

/* of K interleaved columns at once */
typedef struct {
  /* z = c[0] (dinv b), n entries a column */
  PetscErrorCode (*first)(const HybExec *, PetscInt K, PetscCount n, const PetscReal *c, const HybScalar *dinv, const HybScalar *b, HybScalar *z);
  PetscErrorCode (*dense)(const HybExec *, PetscInt K, PetscInt m, const HybScalarWide *inverse, const HybScalar *b, HybScalar *x);
} HybCycleColumnsOps;

typedef struct _HybCycleOps {
  /* z = c[0] (dinv b): a step from zero */
  PetscErrorCode (*first)(const HybExec *, PetscCount n, const PetscReal *c, const HybScalar *dinv, const HybScalar *b, HybScalar *z);
  /* the end of a step, given the vector r = y - A x; y is not read, r may be z */
  PetscErrorCode (*combine)(const HybExec *, PetscCount n, const HybScalar *x, const HybScalar *r, const HybSpMVStep *);
  /* x = inverse b, m rows and columns, stored by rows */
  PetscErrorCode (*dense)(const HybExec *, PetscInt m, const HybScalarWide *inverse, const HybScalar *b, HybScalar *x);
  /* x = 0 */
  PetscErrorCode (*clear)(const HybExec *, PetscCount n, HybScalar *x);
  /* s[k] = the sum of x's entries, in an order that depends on n alone */
  PetscErrorCode (*sum)(const HybExec *, const HybCycleSums *, PetscInt k, PetscCount n, const HybScalar *x);
  /* z = y - (sum_k weight[k] s[k])/n, z may be y */
  PetscErrorCode (*shift)(const HybExec *, const HybCycleSums *, const int weight[HYB_CYCLE_TOTALS], PetscCount n, const HybScalar *y, HybScalar *z);
  const HybCycleColumnsOps *columns; /* NULL: the backend has none */
  /* Of exec.backend->single alone. narrow: to = from in single precision; scaled by the power of two that scale (of
     HybCycle) has, or, find, that suits the vector and goes there; scale NULL: by none; *beyond, if not NULL, is set
     where a number is not within HYB_CYCLE_SINGLE. widen: to = from, scaled back; left, if not NULL, gets the products
     of to and y, HYB_SPMV_SUMS_ROWS rows each, in double precision. */
  PetscErrorCode (*narrow)(const HybExec *, PetscCount n, const HybScalarWide *from, int *scale, PetscBool find, HybScalar *to, int *beyond);
  PetscErrorCode (*widen)(const HybExec *, PetscCount n, const HybScalar *from, const int *scale, HybScalarWide *to, const HybScalarWide *y, const HybSpMVSums *left);
  /* y = P^T x; NULL on a device */
  PetscErrorCode (*multtranspose)(const HybExec *, const HybCSR *P, const HybScalar *x, HybScalar *y);
  /* Launches with *captured between capture() and captured() are not executed but recorded in *graph; launch() executes
     them in stream order; awaited: other processes wait for what it does. *may: the device can capture, and the
     caller's stream is not being captured itself. NULL: the backend has no graphs. */
  PetscErrorCode (*capture)(const HybExec *, HybExec *captured, PetscBool *may);
  PetscErrorCode (*captured)(const HybExec *captured, PetscErrorCode before, void **graph);
  PetscErrorCode (*launch)(const HybExec *, void *graph, PetscBool awaited);
  PetscErrorCode (*forget)(const HybExec *, void **graph);
} HybCycleOps;

/* does this process have its part alone of this matrix of level k? */
static inline PetscBool HybCycleShares(const HybCycle *c, PetscInt k, HybCyclePart part)
{
  return (PetscBool)(c->several && (!c->whole || k + 1 < c->whole || (k + 1 == c->whole && part == HYB_CYCLE_A)));
}

/* of the levels: bytes of a number, and where they are, exec being where the caller's vectors are */
static inline size_t HybCycleNumberSize(const HybCycle *c)
{
  return c->single ? sizeof(HybScalar) / 2 : sizeof(HybScalar);
}

static inline HybExec HybCycleLevels(const HybCycle *c, const HybExec *exec)
{
  HybExec levels = *exec;

  if (c->single) levels.backend = exec->backend->single;
  return levels;
}

/*
  x = the result of one cycle for the right-hand side b, from x = 0. All plans are set up. before: an error of this
  process, which is returned; of several, all come here. Nothing is waited for on a device, unless solve() does. From
  the second application on, levels below the finest are one launch of a graph, where they can be; of several processes
  the levels from which on all can, the finest too where b and x are those of the last time. Whoever moves an array of
  these levels, or makes another plan, calls HybCycleMoved() before the next application. Numbers in arrays may change
  at will.
*/
extern PetscErrorCode HybCycleApply(HybCycle *, PetscErrorCode before, const HybScalar *b, HybScalar *x);
extern PetscErrorCode HybCycleMoved(HybCycle *);
/* Not collective: an error if this process's device has found in an exchange of the cycle's that another one failed */
extern PetscErrorCode HybCycleHeard(HybCycle *);
/* Not collective: all processes know of an error in its exchanges, so the next application does not report it again. */
extern void HybCycleForget(HybCycle *);
/* Collective, of several processes: z = A x, y + A x or y - A x with the finest level's matrix, as in the cycle */
extern PetscErrorCode HybCycleMult(HybCycle *, const HybExec *, PetscErrorCode before, const HybScalar *x, HybSpMVMode, const HybScalar *y, HybScalar *z);
/* The same application, launch by launch, on the stream of the HybExec, which the caller captures. The recording is
   valid while b and x stay where they are and stamp does not change. HybCycleIsRecordable(): may it be captured? */
extern PetscErrorCode HybCycleRecord(HybCycle *, const HybExec *, const HybScalar *b, HybScalar *x);
extern PetscBool      HybCycleIsRecordable(const HybCycle *);
/* Of several processes: exchanges of applications and of HybCycleMult() are recorded between Begin and End, not
   collective, as with HybHaloRecord(); Replay comes before each launch of what was captured, Replayed after it. */
extern PetscErrorCode HybCycleRecordBegin(HybCycle *, const HybExec *);
extern void           HybCycleRecordEnd(HybCycle *);
extern PetscErrorCode HybCycleReplay(HybCycle *, const HybExec *);
extern void           HybCycleReplayed(HybCycle *);
/* The first step of an application to x, if that is a pass over its right-hand side: whoever writes that may make it,
   and says so by `begun`. In single precision the right-hand side goes to the level then, with a scale of the caller's.
   Of several processes only where it is recorded: else the finest level may be in the cycle's own graph, with that
   step. */
extern PetscBool HybCycleFirst(const HybCycle *, HybScalar *x, HybSpMVFirst *);
/* Does the end of an application leave sums? */
extern PetscBool HybCycleLeaves(const HybCycle *);
/* floating-point operations of one application to one column, as PETSc counts them, without solve() */
extern PetscLogDouble HybCycleFlops(const HybCycle *);

extern const HybCycleOps HybCycleHost;

HYB_EXTERN_C_END
#endif

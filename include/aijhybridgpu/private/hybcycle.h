/*
  hybcycle.h: a cycle of multigrid on plain arrays. Smoothers are Chebyshev's or Richardson's method with Jacobi; the
  coarsest level is multiplied by its inverse, or left to the caller.
*/
#ifndef AIJHYBRIDGPU_HYBCYCLE_H
#define AIJHYBRIDGPU_HYBCYCLE_H
#include "hyb.h"
#include "hybspmv.h"

HYB_EXTERN_C_BEGIN

#define HYB_CYCLE_TOTALS 4   /* sums that are kept */
#define HYB_CYCLE_SUMS   512 /* parts of a sum that a device forms at once */
#define HYB_CYCLE_LEVELS 30  /* the most levels above the coarsest */

/* How a level is smoothed on one side of the visit below: `steps` times HybSpMVStep. Step k has the numbers c[3k] to
   c[3k+2], in memory of the backend. */
typedef struct {
  PetscInt         steps;
  PetscBool        threeterm; /* the iterate before the last takes part (Chebyshev), from the second step on */
  const PetscReal *c;
} HybCycleSmoother;

/* A level above the coarsest. Everything is the caller's, and lives where the backend executes. */
typedef struct {
  HybCSR           A;
  HybSpMV         *mult; /* A's plan */
  HybCSR           P;    /* from the next coarser level to this one */
  HybSpMV         *interpolate;
  HybCSR           R; /* from this level to the next coarser one; i is NULL: P transposed, on the host alone */
  HybSpMV         *restriction;
  const HybScalar *dinv; /* one over the diagonal, as the smoothers' preconditioner has it */
  HybCycleSmoother pre, post;
  PetscInt         cycles; /* visits to the next coarser level, 1: V, 2: W; not read on the level above the coarsest */
  HybScalar       *b, *x;  /* right-hand side and solution, A's rows each; not read on the finest level */
  HybScalar       *r, *p;  /* two more vectors of A's rows */
} HybCycleLevel;

/* Sums of vectors' entries, where the cycle executes */
typedef struct {
  HybScalar *s;       /* HYB_CYCLE_TOTALS of them, and behind them parts of sums, HYB_CYCLE_SUMS */
  int       *arrived; /* one counter, 0 at first; a device's */
} HybCycleSums;

typedef struct {
  HybExec       exec;
  PetscInt      n; /* levels above the coarsest; level[0] is the finest. At least one. */
  HybCycleLevel level[HYB_CYCLE_LEVELS];
  /* the coarsest level: right-hand side, solution, and its inverse by rows, or a function that solves: x = A^-1 b */
  PetscInt         m;
  HybScalar       *b, *x;
  const HybScalar *inverse;
  PetscErrorCode (*solve)(void *ctx, const HybScalar *b, HybScalar *x);
  void *ctx;
  /* The finest level's matrix is singular, constants being its null space: the smoothers' D^-1 (b - A x) loses its mean
     (zeromean), and b does for them (zerosum); q: a vector for that, and numbers of sums */
  PetscBool    zeromean, zerosum;
  HybScalar   *q;
  HybCycleSums sums;
  /* who lends the arrays and plans gives it another value where any of them is another one */
  uint64_t stamp;
  /* HybCycleApply()'s own */
  void      *graph;    /* what is launched for all levels below the finest, NULL: not made yet */
  PetscBool  applied;  /* since the last HybCycleMoved() */
  PetscBool  plain;    /* never as a graph */
  PetscCount launched; /* applications by the graph */
} HybCycle;

typedef struct _HybCycleOps {
  /* z = c[0] (dinv b): a step from zero */
  PetscErrorCode (*first)(const HybExec *, PetscCount n, const PetscReal *c, const HybScalar *dinv, const HybScalar *b, HybScalar *z);
  /* the step's end where r = y - A x is a vector; y is not read, r may be z */
  PetscErrorCode (*combine)(const HybExec *, PetscCount n, const HybScalar *x, const HybScalar *r, const HybSpMVStep *);
  /* x = inverse b, m rows and columns, stored by rows */
  PetscErrorCode (*dense)(const HybExec *, PetscInt m, const HybScalar *inverse, const HybScalar *b, HybScalar *x);
  /* x = 0 */
  PetscErrorCode (*clear)(const HybExec *, PetscCount n, HybScalar *x);
  /* s[k] = the sum of x's entries, in an order that depends on n alone */
  PetscErrorCode (*sum)(const HybExec *, const HybCycleSums *, PetscInt k, PetscCount n, const HybScalar *x);
  /* z = y - (sum_k weight[k] s[k])/n, z may be y */
  PetscErrorCode (*shift)(const HybExec *, const HybCycleSums *, const int weight[HYB_CYCLE_TOTALS], PetscCount n, const HybScalar *y, HybScalar *z);
  /* y = P^T x; NULL on a device */
  PetscErrorCode (*multtranspose)(const HybExec *, const HybCSR *P, const HybScalar *x, HybScalar *y);
  /* What is launched with *captured between capture() and captured() is not done, but becomes *graph. NULL: no graphs.
     launch() does it in stream order. *may: the device can, and the caller's stream is not being captured itself. */
  PetscErrorCode (*capture)(const HybExec *, HybExec *captured, PetscBool *may);
  PetscErrorCode (*captured)(const HybExec *captured, PetscErrorCode before, void **graph);
  PetscErrorCode (*launch)(const HybExec *, void *graph);
  PetscErrorCode (*forget)(const HybExec *, void **graph);
} HybCycleOps;

/*
  x = the result of one cycle for the right-hand side b, from x = 0. All plans are set up. Nothing is waited for on a
  device, unless solve() does. From the second application on, levels below the finest are one launch
  of a graph, where they can be: whoever moves an array of these levels, or makes another plan, calls HybCycleMoved()
  before the next application. Numbers in arrays may change at will.
*/
extern PetscErrorCode HybCycleApply(HybCycle *, const HybScalar *b, HybScalar *x);
extern PetscErrorCode HybCycleMoved(HybCycle *);
/* The same application on another stream, launch by launch: what somebody captures who has b and x at fixed places. It
   is right until stamp changes. May it be captured? */
extern PetscErrorCode HybCycleRecord(HybCycle *, const HybExec *, const HybScalar *b, HybScalar *x);
extern PetscBool      HybCycleIsRecordable(const HybCycle *);
/* floating-point operations of one application, as PETSc counts them, without solve() */
extern PetscLogDouble HybCycleFlops(const HybCycle *);

extern const HybCycleOps HybCycleHost;

HYB_EXTERN_C_END
#endif

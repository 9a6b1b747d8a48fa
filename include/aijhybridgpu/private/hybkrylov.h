/*
  hybkrylov.h: what Krylov methods and their smoothers ask of vectors that live where a backend executes.
*/
#ifndef AIJHYBRIDGPU_HYBKRYLOV_H
#define AIJHYBRIDGPU_HYBKRYLOV_H
#include "hyb.h"
#include "hybspmv.h"

HYB_EXTERN_C_BEGIN

#define HYB_KRYLOV_STEPS 30 /* the most steps of HybKrylovArnoldi() */

#define HYB_KRYLOV_SUMS 1056 /* partial sums that a device forms at once */

/*
  The basis of a Krylov space, in the workspace's memory. Vector l is scale[l] u[l*ld+i]: it is normal without a pass
  of its own. h, scale and arrived are zero bytes at first.
*/
typedef struct {
  PetscCount       n, ld; /* entries of a vector, and the distance from one vector to the next */
  PetscInt         steps;
  HybScalar       *u;       /* steps+1 vectors */
  HybScalar       *h;       /* (steps+1) x steps, by columns */
  PetscReal       *scale;   /* steps+1 times 1/norm; then scale[steps+1], the norm of the first vector */
  HybScalar       *sums;    /* on a device alone: HYB_KRYLOV_SUMS (steps+1) partial sums */
  int             *arrived; /* on a device alone: one counter */
  const HybScalar *dinv;    /* the operator's result is multiplied by it, entry by entry; NULL: it is not */
} HybKrylovBasis;

/*
  The numbers of the conjugate gradient method. They live where the vectors are, so that an iteration waits once, for
  all of them. All bytes are zero at first, but what the host sets for cgproducts() to know the goal by.
*/
typedef enum {
  HYB_CG_BETA,    /* z r, of the last cgproducts() */
  HYB_CG_ZZ,      /* |z|^2 */
  HYB_CG_RR,      /* |r|^2 */
  HYB_CG_BETAOLD, /* z r, of the cgproducts() before */
  HYB_CG_DPI,     /* p A p, of the last cgcurvature(); before the first, 0 */
  HYB_CG_DPIOLD,  /* of the one before */
  /* cgupdate() sets it to 1 where p A p is 0, not finite, or its real part changed its sign, else to 0 */
  HYB_CG_STOPPED,
  HYB_CG_TURN, /* the next letter */
  /* set by the host before the first cgdirection(), unless HYB_CG_FIRST: the norm at which the iterations end, that at
     which they diverge, and which norm that is, HybCGNormKind */
  HYB_CG_GOAL,
  HYB_CG_MOST,
  HYB_CG_KIND,
  /* 1: the first norm is still to come. Whoever concludes it sets GOAL = max(GOAL, RTOL norm), MOST = MOST norm and
     FIRST = 0. */
  HYB_CG_FIRST,
  HYB_CG_RTOL,
  /* cgproducts(), or cgconclude(), sets it to 1 where these numbers, or beta, or HYB_CG_STOPPED, end the iterations,
     else to 0 */
  HYB_CG_LAST,
  HYB_CG_NUMBERS
} HybCGNumber;
typedef enum {
  HYB_CG_NONE, /* nothing ends the iterations */
  HYB_CG_NORM_Z,
  HYB_CG_NORM_R,
  HYB_CG_NORM_BETA /* real numbers alone: moduli of complex ones are the host's */
} HybCGNormKind;
#define HYB_CG_SUMS 3
typedef struct {
  HybScalar *s;       /* HYB_CG_NUMBERS numbers, then 3 HYB_KRYLOV_SUMS partial sums */
  int       *arrived; /* one counter */
  /* NULL, or a device's letters to the host (HybBackend.letters()): cgproducts() leaves all numbers in letter
     HYB_CG_TURN, which then is the other one */
  HybScalar *letters;
  /* inner products conjugate their second factor, that of a Hermitian matrix; else, of a complex symmetric one, none */
  PetscBool hermitian;
  PetscBool partly; /* cgproducts() has this process's part of the numbers alone, and does not conclude */
} HybCG;

/*
  The method for K interleaved columns (HybColumnsOps), each with numbers of its own: number q of column c is at
  s[q*K+c], and what is said above holds for each column. HYB_CG_STOPPED that the host has set to 2 is a column's end:
  what is not 0 leaves the column's x, r, p and numbers as they are. Nothing waits.
*/
typedef struct {
  /* x = the first `used` columns of B, n entries each, ld from one to the next, and zeros; and back: to these columns
     alone */
  PetscErrorCode (*gather)(const HybExec *, PetscInt K, PetscInt used, PetscCount n, const HybScalar *B, PetscCount ld, HybScalar *x);
  PetscErrorCode (*scatter)(const HybExec *, PetscInt K, PetscInt used, PetscCount n, const HybScalar *x, HybScalar *B, PetscCount ld);
  PetscErrorCode (*direction)(const HybExec *, PetscInt K, const HybCG *, PetscCount n, const HybScalar *z, HybScalar *p);
  /* p w, as w = A p left it in sums */
  PetscErrorCode (*curvature)(const HybExec *, PetscInt K, const HybCG *, const HybColumnsSums *sums);
  PetscErrorCode (*update)(const HybExec *, PetscInt K, const HybCG *, PetscCount n, const HybScalar *p, const HybScalar *w, HybScalar *x, HybScalar *r);
  /* products leaves z r, |z|^2 and |r|^2 in sums, as a cycle's last step does; norms makes them the method's numbers */
  PetscErrorCode (*products)(const HybExec *, PetscInt K, PetscCount n, const HybScalar *z, const HybScalar *r, HybColumnsSums *sums);
  PetscErrorCode (*norms)(const HybExec *, PetscInt K, const HybCG *, const HybColumnsSums *sums);
} HybKrylovColumnsOps;

/* Sums are taken in an order that depends on n alone: the same from run to run. */
typedef struct _HybKrylovOps {
  /* x[i] = PETSc's noise of the global entry first+i, the hash by which KSPSetNoisy_Private() fills a vector */
  PetscErrorCode (*noise)(const HybExec *, PetscCount first, PetscCount n, HybScalar *x);
  /* *zeros = how many of d are 0; inv[i] = 1/d[i], or `ofzero` where d[i] is 0; inv may be d, or NULL: count only.
     zeros may be NULL: then nothing waits. */
  PetscErrorCode (*reciprocal)(const HybExec *, HybArena *work, PetscCount n, const HybScalar *d, PetscReal ofzero, HybScalar *inv, PetscCount *zeros);
  /* The first vector, from b: u_0 = dinv b and its norm. Nothing waits. */
  PetscErrorCode (*start)(const HybExec *, const HybKrylovBasis *, const HybScalar *b);
  /* Step k, 0 <= k < steps: u_{k+1} holds A u_k. The step computes column k of H, u_{k+1} and its norm; of the last
     step's vector it keeps the norm alone. Nothing waits. */
  PetscErrorCode (*step)(const HybExec *, const HybKrylovBasis *, PetscInt k);
  /* Step k in two halves, for vectors that are distributed over processes. w = A u_k is not one of the basis's vectors,
     of which there are steps. project: g[l], on the host, l <= k: sum_i conj(u_l[i]) dinv[i] w[i]; g[k+1]: the sum of
     squares of u_k. update: u_{k+1} = s dinv w - sum_l c[l] u_l, c on the host; of the last step's vector it keeps the
     sum of squares alone, in h[(steps+1) steps]. k = -1 makes u_0 of w = b. scale is not used. n > 0. */
  PetscErrorCode (*project)(const HybExec *, const HybKrylovBasis *, PetscInt k, const HybScalar *w, HybScalar *g);
  PetscErrorCode (*update)(const HybExec *, const HybKrylovBasis *, PetscInt k, PetscReal s, const HybScalar *c, const HybScalar *w);
  /* The conjugate gradient method; NULL on the host. Nothing waits, and all launches are the same in each iteration.
     cgbegin: r = b and to = x, which may be one array; and, if first is not NULL, its z of y = r, not in single
     precision.
     cgproducts: z r, |z|^2 and |r|^2.
     cgdirection: x += a p with the step before's a and p, whose a is betaold/(p w), unless that was HYB_CG_STOPPED or
     there was none, which betaold = 0 says; then p = z + (beta/betaold) p, or p = z.
     cgend: after the last iteration, that step of x alone, whose sum goes to `to`, which may be x; iflast: unless
     HYB_CG_LAST is 0.
     cgcurvature: p w.
     cgupdate: r -= a w with a = beta/(p w), unless HYB_CG_STOPPED or HYB_CG_LAST; and, if first is not NULL, its z of
     y = r. So x is one step behind r. An iteration that turns out to be one too many brings x up to r, and leaves r and
     what follows from it, z and its products, as they are; p and w are others.
     Of vectors that are distributed over processes the caller adds what cgproducts() left in the HYB_CG_SUMS numbers
     from HYB_CG_BETA on, and what cgcurvature() left in HYB_CG_DPI, over the processes; n may be 0. cgconclude: what
     cgproducts() does otherwise once it has the numbers, HYB_CG_LAST and the letter. */
  PetscErrorCode (*cgbegin)(const HybExec *, PetscCount n, const HybScalar *b, HybScalar *r, const HybScalar *x, HybScalar *to, const HybSpMVFirst *first);
  PetscErrorCode (*cgproducts)(const HybExec *, const HybCG *, PetscCount n, const HybScalar *z, const HybScalar *r);
  PetscErrorCode (*cgdirection)(const HybExec *, const HybCG *, PetscCount n, const HybScalar *z, HybScalar *p, HybScalar *x);
  PetscErrorCode (*cgend)(const HybExec *, const HybCG *, PetscCount n, const HybScalar *p, const HybScalar *x, HybScalar *to, PetscBool iflast);
  PetscErrorCode (*cgcurvature)(const HybExec *, const HybCG *, PetscCount n, const HybScalar *p, const HybScalar *w);
  /* The same in two parts: what a product with the matrix, or a cycle's last step, leaves (HybSpMVSums), by a launch of
     its own, unless z or p is NULL, then it is there; and the numbers from that. */
  PetscErrorCode (*cgproductsleft)(const HybExec *, const HybCG *, PetscCount n, const HybScalar *z, const HybScalar *r, HybScalar *part);
  PetscErrorCode (*cgcurvatureleft)(const HybExec *, const HybCG *, PetscCount n, const HybScalar *p, const HybScalar *w, HybScalar *part);
  PetscErrorCode (*cgupdate)(const HybExec *, const HybCG *, PetscCount n, const HybScalar *w, HybScalar *r, const HybSpMVFirst *first);
  PetscErrorCode (*cgconclude)(const HybExec *, const HybCG *);
  const HybKrylovColumnsOps *columns; /* NULL on the host */
} HybKrylovOps;

/*
  The Hessenberg matrix of Arnoldi's process for D^-1 A, as PETSc's GMRES with left Jacobi builds it: v_0 = D^-1 b /
  |D^-1 b|; each step w = D^-1 A v_k is made orthogonal by one pass of classical Gram-Schmidt. steps <=
  HYB_KRYLOV_STEPS. mv is set up for A; dinv may be NULL: D = I. H has (steps+1) x steps entries of the host's by
  columns; *done of them are whole, those behind are 0. work is not mv's own. Fewer than steps: the process broke down.
  Where the last whole column ends in 0, the space is invariant; else the next column, or the first vector, was not
  finite, or the first vector was 0.
*/
extern PetscErrorCode HybKrylovArnoldi(HybSpMV *mv, HybArena *work, const HybCSR *A, const HybScalar *dinv, const HybScalar *b, PetscInt steps, HybScalar *H, PetscInt *done);

/* What Arnoldi's process needs of a distributed matrix. Both functions are collective; before: an error of this process
   that others do not know of yet. */
typedef struct {
  PetscErrorCode (*mult)(void *ctx, PetscErrorCode before, const HybScalar *x, HybScalar *y); /* y = A x, own rows */
  /* v, on the host, becomes the sum over all processes, with the same bits on all. An error is one of all. */
  PetscErrorCode (*sum)(void *ctx, PetscErrorCode before, PetscInt n, HybScalar *v);
  void *ctx;
} HybKrylovPar;

/* Collective: HybKrylovArnoldi() for a distributed matrix, of which this process has n rows. All processes get the same
   H. An error of one process is one of all. */
extern PetscErrorCode HybKrylovArnoldiPar(const HybExec *, HybArena *work, const HybKrylovPar *, PetscErrorCode before, PetscCount n, const HybScalar *dinv, const HybScalar *b, PetscInt steps, HybScalar *H, PetscInt *done);

/* ld for n entries: vectors start at multiples of 32 bytes at least */
#define HYB_KRYLOV_LD(n) (((n) + 7) / 8 * 8)
/* Did one of so many steps leave hardly more than rounding of its vector? Then the steps after it may differ from
   PETSc's. */
extern PetscBool HybKrylovSpent(PetscInt steps, const HybScalar *H);
/* the number of columns of H that are whole, given the norm of the first vector; all others become 0 */
extern PetscInt HybKrylovWhole(PetscInt steps, PetscReal first, HybScalar *H);

extern const HybKrylovOps HybKrylovHost;

HYB_EXTERN_C_END
#endif

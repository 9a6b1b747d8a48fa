/* parprodimpl.h: the two stages that products of distributed matrices are made of */
#ifndef AIJHYBRIDGPU_PARPRODIMPL_H
#define AIJHYBRIDGPU_PARPRODIMPL_H
#include <aijhybridgpu/private/hybparprod.h>

/* the sequential products of one of the first stage */
enum {
  HYB_PAR_OWN,    /* for the columns that this process owns; of a border of two bands (inner.c) the first one's rows */
  HYB_PAR_OTHERS, /* for those of others */
  HYB_PAR_INNER,  /* rows that meet nobody else's */
  HYB_PAR_LAST,   /* the border's last rows */
  HYB_PAR_PRODUCTS
};

/* multiply.c: C = A B */
typedef struct {
  PetscBool made;
  HybComm   comm;
  HybExec   exec; /* its result: of temporaries */
  HybArena  keep, work;
  HybHalo   halo; /* A's columns of others, which are rows of B */
  HybRows   rows; /* those rows on their way here */
  struct {
    HybCSR    row;  /* rows of B that others need, in the order in which they are sent */
    PetscInt *from; /* which entries of B's blocks these are: see HybLocalOps.pickrows */
  } sent;
  /* others' rows of B, and their columns that are this process's own and those that are not */
  HybCSR     F, own, others;
  PetscInt  *perm[2]; /* of these two */
  PetscInt   nleft;   /* of A's columns of others */
  PetscBool  apart;   /* A has such */
  HybCSR     L, R;    /* A's blocks merged, and B's rows that it multiplies, own columns alone */
  PetscCount first[2][3], place[2][4];
  PetscBool  reuse;
  PetscInt   blocksize; /* see HybProductSetBlockSize() */
  HybProduct product[HYB_PAR_PRODUCTS];
  /* R's rows in the columns of others, those that have entries and are multiplied, and L's rows and columns that meet
     them */
  HybCSR    X, Y, Z;
  PetscInt *xperm, *zperm;
  PetscBool some;     /* there are such */
  HybCSR    C;        /* the rows of the result that have columns of others */
  PetscInt *garray;   /* of the host */
  PetscBool Lcurrent; /* L and Z have the values of the last numeric phase */
  PetscBool Rcurrent; /* and so have R and Y */
  PetscInt  numerics; /* phases that ended well here, no more than two are counted */
  struct {            /* few launches (collect.c): before the exchange, and after it */
    PetscBool  made, tried;
    PetscCount nsent, n[2]; /* to be sent, and before L */
    PetscInt  *from[2];
    HybScalar *to[2];
  } collect;
  struct { /* A's rows first to end-1 meet nobody else's (inner.c) */
    PetscBool  made;
    HybArena   keep;
    PetscInt   first, end;
    PetscCount a, o, c; /* entries before them: of A's two blocks, and of C's diagonal one */
    HybCSR     A, C;    /* these rows: of the operands and the result that a phase has */
    /* the other rows of A, one below the other, what they name of B, and what they have in others' columns of C */
    HybParCSR left, right, result;
    struct {           /* those before the run and those after it, or those of the two that there are */
      HybCSR     L, R; /* rows of L, and R or what they name of it */
      HybCSR     C;
      PetscCount c; /* entries of C's diagonal block before them */
    } band[2];
    PetscInt  nbands;
    PetscInt *row, *perm[4]; /* which these are, where the backend executes; of left's and right's blocks */
  } inner;
} HybParMultiply;

/* Start: before all else, also after an error. Sent: the rows of B that others need; *begin, of the host's: where each
   begins. Symbolic, once others' rows have come to F: B->columns and so on stay the caller's, C's memory is result's.
   reuse: more than one numeric phase is expected. Not collective: an error is this process's own. */
extern PetscErrorCode HybParMultiplyStart(HybParMultiply *, HybComm, const HybExec *result, PetscBool reuse, PetscInt blocksize);
extern PetscErrorCode HybParMultiplySent(HybParMultiply *, const HybParCSR *B, PetscInt **begin);
extern PetscErrorCode HybParMultiplySymbolic(HybParMultiply *, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C);
/* sameA: A has the values of the last numeric phase here; allB: B has them on all processes */
extern PetscErrorCode HybParMultiplyNumeric(HybParMultiply *, PetscErrorCode before, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B, HybParCSR *C);
/* B, a temporary whose values come from the arenas, has them where R and X have theirs from now on, so that nothing
   copies them there. Not of a small product, which has lists instead. */
extern PetscErrorCode HybParMultiplyAdopt(HybParMultiply *, const HybParCSR *A, HybParCSR *B, HybArena from[2]);
extern PetscErrorCode HybParMultiplyDestroy(HybParMultiply *);

/* one of its sequential products, on patterns: C = A B; pattern: the caller has room for C's values */
static inline PetscErrorCode HybParMultiplyProduct(HybParMultiply *s, int which, const HybExec *x, PetscBool pattern, const char *method, PetscInt width, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  HybProduct *product = &s->product[which];

  PetscFunctionBegin;
  PetscCall(HybProductCreate(x, HYB_PRODUCT_AB, method, width, product));
  HybProductSetBlockSize(*product, s->blocksize);
  if (s->reuse) HybProductSetReuse(*product);
  if (pattern) HybProductSetPattern(*product);
  PetscCall(HybProductSymbolic(*product, A, B, NULL, out, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* moves.c: what its numeric phase moves before it multiplies: rows that others need; what is here already, to its
   place; what has come */
extern PetscErrorCode HybParMultiplySendValues(HybParMultiply *, const HybParCSR *B);
extern PetscErrorCode HybParMultiplyPlaceOwn(HybParMultiply *, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B);
extern PetscErrorCode HybParMultiplyPlaceCame(HybParMultiply *);

/* inner.c. Are there enough of such rows? A's and B's parts for the others; of these made L and R: their products;
   results of all become C. The border's operands get their values; inner rows' product; the border's own columns. */
extern PetscErrorCode HybParInnerLook(HybParMultiply *, const HybParCSR *A, const HybParCSR *B);
extern PetscErrorCode HybParInnerOperands(HybParMultiply *, const HybParCSR *A, const HybParCSR *B);
extern PetscErrorCode HybParInnerBands(HybParMultiply *, const char *method, PetscInt width);
extern PetscErrorCode HybParInnerSymbolic(HybParMultiply *, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C);
extern PetscErrorCode HybParInnerPick(HybParMultiply *, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B);
extern PetscErrorCode HybParInnerNumeric(HybParMultiply *, const HybParCSR *A, const HybParCSR *B, HybParCSR *C);
extern PetscErrorCode HybParInnerBandsNumeric(HybParMultiply *, HybParCSR *C);

/* collect.c: the same of a small product in two launches; is it one? */
extern PetscBool      HybParCollectTakes(HybParMultiply *, const HybParCSR *A, const HybParCSR *B);
extern PetscErrorCode HybParCollectMake(HybParMultiply *, const HybParCSR *A, const HybParCSR *B);
extern PetscErrorCode HybParCollectOwn(HybParMultiply *, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B);
extern PetscErrorCode HybParCollectCame(HybParMultiply *, const HybParCSR *A, const HybParCSR *B, const HybScalar *came);

/* transpose.c: T = A^T */
typedef struct {
  PetscBool   made;
  HybComm     comm;
  HybExec     exec;
  HybArena    keep, work;
  HybHalo     halo; /* A's columns of others, which own them as rows of T */
  HybRows     rows;
  HybCSR      S, R; /* O^T, and what others send of theirs */
  PetscInt   *perm[2];
  PetscCount *mapptr, *map;
  HybParCSR   T;
  PetscInt   *garray;  /* of the host */
  PetscBool   current; /* T's diagonal block has A's values of the last numeric phase */
  PetscBool   whole;   /* and so has the other one */
} HybParTranspose;

/* as above: what is sent is S, and what has come is R */
extern PetscErrorCode HybParTransposeStart(HybParTranspose *, HybComm, const HybExec *);
extern PetscErrorCode HybParTransposeSent(HybParTranspose *, const HybParCSR *A, PetscInt **begin);
extern PetscErrorCode HybParTransposeSymbolic(HybParTranspose *, const HybParCSR *A);
/* same: A has the values of the last numeric phase here; all: on all processes */
extern PetscErrorCode HybParTransposeNumeric(HybParTranspose *, PetscErrorCode before, PetscBool same, PetscBool all, const HybParCSR *A);
extern PetscErrorCode HybParTransposeDestroy(HybParTranspose *);

/* how many of the ascending numbers are below */
static inline PetscInt HybCountBelow(PetscInt n, const PetscInt *list, PetscInt bound)
{
  PetscInt k = 0;

  while (k < n && list[k] < bound) k++;
  return k;
}
#endif

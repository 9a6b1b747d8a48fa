/*
  hunt.h: the hunter. Operations stand in tables (write.h, make.h, read.h, again.h, table_*.h). Each
  is done to a MATAIJ and to a matrix of the type, by the same arguments, and then all is compared that a program may
  see. HuntRandom() draws operations, pairs and arguments from the seed of a run; EachKind() does an operation to a pair
  of one origin, once or twice.

  -seed N -runs M, -steps S; -trail prints each operation before it is done; -only (or -cases) a,b,c: of these
  operations; -not a,b,c: none of these; -wild: Inf and NaN too; -ours aij: MATAIJ beside itself, in which nothing may
  differ; -short lets ours fail for want of the device's memory. With -mat_seqaij_type the second of a pair is a MATAIJ
  too, made and worked on while the option is set, the first while it is not.
*/
#ifndef HUNT_H
#define HUNT_H
#include "pairs.h"
#include <unistd.h>

#define POOL    4
#define DRAWS   6
#define RESULTS 40
#define ROWS    18 /* of the pairs of EachKind() */

typedef struct {
  Mat              m[2], transposed[2]; /* MATAIJ and ours; their transposes, which are made again */
  PetscInt         lineage;             /* pairs of one lineage have one pattern */
  PetscInt         stored;              /* the lineage when MatStoreValues() was called */
  PetscInt         product;             /* which product it is, of operands that it still knows; 0: none */
  PetscObjectState states[3];           /* of the patterns of its operands and of itself when it was made */
  PetscBool        plain;               /* made entry by entry */
  PetscBool        first;               /* has the pattern with which it was made */
} Member;

typedef struct {
  Member     *p, *q;
  Member      made; /* what the operation makes */
  Vec         x[2];
  PetscScalar result[2][RESULTS]; /* what it reads, one by one */
  PetscInt    n[2];               /* of results */
  PetscReal   found[2];           /* what it reads, as one number */
  PetscInt    r[DRAWS];
  PetscScalar v;
  PetscInt    M, N, start, end;   /* of p */
  PetscBool   parallel, replaced; /* is p parallel; is it another object's contents now */
  PetscBool   same;               /* what was made has the pattern of p */
} Hunt;

typedef enum {
  KEEPS,   /* values at most, or a new pattern that is told */
  PATTERN, /* may change the pattern */
  REPLACES /* may make another matrix of it, of which products know nothing */
} Effect;

typedef enum {
  READS,   /* is done again after values were written on the device */
  ENTRIES, /* so is this, and it makes entries */
  ONCE
} Again;

typedef struct {
  const char *name;
  PetscErrorCode (*apply)(Hunt *, int, Mat);
  PetscBool (*fits)(const Hunt *); /* NULL: always */
  Effect effect;
} Operation;

/* for EachKind() */
typedef struct {
  Operation   operation;
  Pattern     pattern;
  Again       again;
  PetscMPIInt least, most; /* processes; 0: any */
} Single;

typedef struct {
  const Operation *operation;
  PetscInt         n;
} Table;
#define TABLE(operations)                                       \
  {                                                             \
    operations, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(operations) \
  }

static Member        Pool[POOL];
static PetscInt      Lineages;
static unsigned long State;
static PetscMPIInt   Size, Rank;
static char          Trail[16000], SubType[64], Ours[64] = "aijhybridgpu";
static PetscBool     Wild; /* may values be Inf and NaN? */
static MatNullSpace  Spaces[3];
static char          File[PETSC_MAX_PATH_LEN];

static inline PetscInt Draw(PetscInt n)
{
  return (PetscInt)(MATTEST_NEXT(State) % (unsigned long)n);
}

/* of an operation's own numbers */
static inline PetscInt Next(unsigned long *state, PetscInt n)
{
  return (PetscInt)(MATTEST_NEXT(*state) % (unsigned long)n);
}

static inline void Result(Hunt *h, int k, PetscScalar v)
{
  if (h->n[k] < RESULTS) h->result[k][h->n[k]++] = v;
}

static inline void Note(Hunt *h, int k, PetscScalar v)
{
  h->found[k] = 0.75 * h->found[k] + PetscRealPart(v);
}

/* What MATAIJ itself becomes: ours by the option, while work is done on ours */
static inline PetscErrorCode Side(int k)
{
  PetscFunctionBeginUser;
  if (SubType[0]) PetscCall(MatTestOption((PetscBool)k, "-mat_seqaij_type", SubType));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline const char *OurType(int k)
{
  return k && !SubType[0] ? Ours : MATAIJ;
}

/* the sequential blocks of this process; the second may be NULL */
static inline PetscErrorCode Blocks(Hunt *h, Mat A, Mat block[2])
{
  PetscFunctionBeginUser;
  block[0] = A;
  block[1] = NULL;
  if (h->parallel) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* other values, and some use of A between */
static inline PetscErrorCode OtherValues(Mat A, PetscReal then)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatTestUse(A));
  PetscCall(MatScale(A, then));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a vector of A's rows or columns, of its communicator, without zeros */
static inline PetscErrorCode Beside(Mat A, PetscBool left, Vec *v)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, left ? NULL : v, left ? v : NULL));
  VecTestFill(*v, k, 0.5 + (PetscReal)(k * 7 % 11) / 10);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode NotSymmetric(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_HERMITIAN, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_STRUCTURALLY_SYMMETRIC, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_FALSE));
  /* "for ever" passes to what is converted to another type as well, and the function that says so cannot take it
     back */
  A->symmetry_eternal = A->structural_symmetry_eternal = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscBool NotEmpty(const Hunt *h)
{
  return (PetscBool)(h->M > 0 && h->N > 0);
}

/* also on each process, where an error of some would leave the others waiting */
static inline PetscBool OtherFits(const Hunt *h)
{
  const Mat A = h->p->m[0], B = h->q->m[0];
  PetscBool fits;

  fits = (PetscBool)(A->rmap->N == B->rmap->N && A->cmap->N == B->cmap->N && A->rmap->n == B->rmap->n && A->cmap->n == B->cmap->n);
  PetscCallAbort(PETSC_COMM_SELF, PairsAll(&fits));
  return fits;
}
#endif

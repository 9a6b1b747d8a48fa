/*
  hunt.h: what the hunter's operations are given. Each is done to a MATAIJ and to a matrix of the type, by the
  same arguments; what it reads goes into results, what it makes into out or x.
*/
#ifndef HUNT_H
#define HUNT_H
#include "pairs.h"

#define POOL    4
#define DRAWS   6
#define RESULTS 40

typedef struct {
  Mat       m[2];
  PetscInt  lineage; /* pairs of one lineage have one pattern */
  PetscInt  stored;  /* the lineage when MatStoreValues() was called */
  PetscBool plain;   /* made entry by entry */
  PetscBool first;   /* has the pattern with which it was made */
} Member;

typedef struct {
  Member     *p, *q;
  Mat         out[2];
  Vec         x[2];
  PetscScalar result[2][RESULTS];
  PetscInt    n[2]; /* of results */
  PetscInt    r[DRAWS];
  PetscScalar v;
  PetscInt    M, N, start, end;   /* of p */
  PetscBool   parallel, replaced; /* is p parallel; is it another object's contents now */
} Hunt;

static Member        Pool[POOL];
static PetscInt      Lineages;
static unsigned long State;
static PetscMPIInt   Size, Rank;
static char          Trail[16000];
static char          Ours[64] = "aijhybridgpu";
static PetscBool     Wild; /* may values be Inf and NaN? */

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

static inline const char *OurType(int k)
{
  return k ? Ours : MATAIJ;
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

/* a vector of A's rows or columns */
static inline PetscErrorCode Beside(Hunt *h, Mat A, PetscBool left, Vec *v)
{
  PetscInt start, end;

  (void)h;
  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, left ? NULL : v, left ? v : NULL));
  PetscCall(VecGetOwnershipRange(*v, &start, &end));
  for (PetscInt k = start; k < end; k++) PetscCall(VecSetValue(*v, k, 0.5 + (PetscReal)(k * 7 % 11) / 10, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(*v));
  PetscCall(VecAssemblyEnd(*v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

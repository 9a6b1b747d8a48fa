/*
  A small product's values in two launches.

  Before a numeric phase multiplies (multiply.c), entries of A's and B's blocks and of others' rows are gathered, merged
  and copied from array to array: up to a dozen launches, each of which takes longer than what a small one moves. But
  where an entry ends depends on the patterns alone. So these steps are composed, once, into one list for each array
  that says where its entries come from:

    at first      the steps run on operands whose values are their entries' numbers, A's blocks before B's before F:
                  what an array holds afterwards is its list
    each phase    rows to be sent, L and Z   collected from A's and B's blocks
                  exchange                   put and wait at once: nothing is queued between
                  R and Y                    collected from B's blocks and what came, where it came

  Numbers pass through HybScalar, in which so small ones are exact. Nothing of this is the host's, and nothing waits: to
  make the lists is two launches more than to do the steps, so the first phase does it, and the second one costs what
  all later ones do. Each process decides for itself: what travels is the same.

  Memory: an integer for each entry of those arrays, which lie one behind the other. Cost: a number read, and an entry
  read and written, for each entry of them.
*/
#include "parprodimpl.h"

/* entries of the sources, and of the arrays: of more, what they move takes longer than launches */
#define COLLECT_MOST 4194304

/* where an array begins, as those of an arena, which kernels read by more than one entry */
#define COLLECT_LINE 32

/* which arrays are collected, and where each begins and the last one ends */
typedef struct {
  int        n;
  HybCSR    *of[3];
  PetscCount at[4];
} CollectArrays;

static void CollectAdd(CollectArrays *c, PetscBool there, HybCSR *M)
{
  if (!there) return;
  c->of[c->n]     = M;
  c->at[c->n + 1] = (c->at[c->n] + M->nnz + COLLECT_LINE - 1) / COLLECT_LINE * COLLECT_LINE;
  c->n++;
}

/* before the exchange, and after it */
static PetscCount CollectList(HybParMultiply *s, int when, CollectArrays *c)
{
  c->n     = 0;
  c->at[0] = 0;
  if (!when) CollectAdd(c, PETSC_TRUE, &s->sent.row);
  CollectAdd(c, s->apart, when ? &s->R : &s->L);
  CollectAdd(c, s->some, when ? &s->Y : &s->Z);
  return c->at[c->n];
}

static PetscCount CollectSizes(const HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, PetscCount size[HYB_COMM_SOURCES])
{
  size[0] = A->D.nnz;
  size[1] = A->O.nnz;
  size[2] = B->D.nnz;
  size[3] = B->O.nnz;
  size[4] = s->F.nnz;
  return size[0] + size[1] + size[2] + size[3] + size[4];
}

/* The steps, of numbers. What they write is written again by the numeric phase that this is the beginning of. */
static PetscErrorCode CollectTrace(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, HybScalar *number)
{
  HybParCSR        a = *A, b = *B;
  HybScalar *const F = s->F.a;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  a.D.a  = number;
  a.O.a  = a.D.a + A->D.nnz;
  b.D.a  = a.O.a + A->O.nnz;
  b.O.a  = b.D.a + B->D.nnz;
  s->F.a = b.O.a + B->O.nnz;
  ierr   = HybParMultiplySendValues(s, &b);
  if (!ierr) ierr = HybParMultiplyPlaceOwn(s, PETSC_FALSE, PETSC_FALSE, &a, &b);
  if (!ierr) ierr = HybParMultiplyPlaceCame(s);
  s->F.a      = F;
  s->Lcurrent = s->Rcurrent = PETSC_FALSE;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what making the lists takes: the lists and their arrays, those before the exchange first, and the sources' numbers */
typedef struct {
  PetscCount n; /* entries of all arrays */
  PetscInt  *from;
  HybScalar *to, *number;
} CollectRoom;

/* all of it, so that where there is no memory nothing has changed yet */
static PetscErrorCode CollectTake(HybParMultiply *s, PetscCount sources, CollectRoom *room)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&s->work, x->result, sources, sizeof(HybScalar), &room->number));
  PetscCall(HybArenaAlloc(&s->keep, x->result, room->n, sizeof(PetscInt), &room->from));
  PetscCall(HybArenaAlloc(&s->keep, x->result, room->n, sizeof(HybScalar), &room->to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CollectMakeIn(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, PetscCount sources, const CollectRoom *room)
{
  const HybExec *x = &s->exec;
  HybScalar     *old[8];
  int            n  = 0;
  PetscCount     at = 0;
  CollectArrays  c;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int when = 0; when < 2; when++) {
    s->collect.n[when]    = CollectList(s, when, &c);
    s->collect.from[when] = room->from + at;
    s->collect.to[when]   = room->to + at;
    at += s->collect.n[when];
    if (!when) s->collect.nsent = c.at[1];
    for (int k = 0; k < c.n; k++) {
      old[n++]   = c.of[k]->a;
      c.of[k]->a = s->collect.to[when] + c.at[k];
    }
  }
  if (s->some && !s->xperm) s->X.a = s->Y.a; /* one array */
  ierr = x->backend->comm->number(x, sources, room->number, room->n, room->to);
  if (!ierr) ierr = CollectTrace(s, A, B, room->number);
  if (!ierr) ierr = x->backend->comm->numbered(x, room->n, room->to, room->from);
  if (!ierr && s->some && s->xperm) {
    old[n++] = s->X.a;
    s->X.a   = NULL;
  }
  s->collect.made = (PetscBool)!ierr;
  if (!ierr) s->rows->early = PETSC_TRUE;
  for (int k = 0; k < n; k++) ierr = HybErrorFirst(ierr, HybArenaFree(&s->keep, &old[k])); /* where they were */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybParCollectTakes(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  CollectArrays c;
  PetscCount    size[HYB_COMM_SOURCES];

  return (PetscBool)(s->exec.backend->device && CollectSizes(s, A, B, size) <= COLLECT_MOST && CollectList(s, 0, &c) + CollectList(s, 1, &c) <= COLLECT_MOST);
}

/* Not collective, once. Nothing is made of a product that is large, where a launch costs nothing, or without memory for
   it: then the steps go on. */
PetscErrorCode HybParCollectMake(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  CollectArrays    c;
  CollectRoom      room = {.from = NULL, .to = NULL};
  PetscCount       size[HYB_COMM_SOURCES];
  const PetscCount n = CollectSizes(s, A, B, size);
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  if (s->collect.tried || !HybParCollectTakes(s, A, B)) PetscFunctionReturn(PETSC_SUCCESS);
  s->collect.tried = PETSC_TRUE;
  room.n           = CollectList(s, 0, &c);
  room.n += CollectList(s, 1, &c);
  ierr = HYB_QUIETLY(CollectTake(s, n, &room));
  if (!ierr)
    ierr = CollectMakeIn(s, A, B, n, &room);
  else {
    (void)HybArenaFree(&s->keep, &room.from);
    if (ierr == PETSC_ERR_MEM) ierr = PETSC_SUCCESS;
  }
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&s->work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static HybCommSources CollectSources(const HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, const HybScalar *came)
{
  HybCommSources from = {
    .a = {A->D.a, A->O.a, B->D.a, B->O.a, came}
  };
  PetscCount size[HYB_COMM_SOURCES];

  (void)CollectSizes(s, A, B, size);
  for (int k = 0; k < HYB_COMM_SOURCES; k++) from.start[k + 1] = from.start[k] + (PetscInt)size[k];
  return from;
}

/* before the exchange, or without one */
PetscErrorCode HybParCollectOwn(HybParMultiply *s, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B)
{
  const HybExec       *x       = &s->exec;
  const PetscBool      current = (PetscBool)(sameA && s->Lcurrent);
  const HybCommSources from    = CollectSources(s, A, B, NULL);
  const PetscCount     first = allB ? s->collect.nsent : 0, end = current ? s->collect.nsent : s->collect.n[0];

  PetscFunctionBegin;
  s->Lcurrent = PETSC_FALSE;
  if (end > first) PetscCall(x->backend->comm->collect(x, end - first, s->collect.from[0] + first, &from, s->collect.to[0] + first));
  s->Lcurrent = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParCollectCame(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, const HybScalar *came)
{
  const HybExec       *x    = &s->exec;
  const HybCommSources from = CollectSources(s, A, B, came);

  PetscFunctionBegin;
  if (s->collect.n[1]) PetscCall(x->backend->comm->collect(x, s->collect.n[1], s->collect.from[1], &from, s->collect.to[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

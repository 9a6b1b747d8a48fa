/*
  A small product's values in two launches.

  Before a numeric phase multiplies (multiply.c), entries of A's and B's blocks and of others' rows are gathered, merged
  and copied from array to array: up to a dozen launches, each of which takes longer than what a small one moves. But
  where an entry ends depends on the patterns alone. So these steps are composed, once, into one list for each array
  that says where its entries come from:

    second numeric phase the steps run on operands whose values are their entries' numbers, A's blocks before B's before
                           F: what an array holds afterwards is its list
    from then on           rows to be sent, L and Z   collected from A's and B's blocks
                           exchange                   put and wait at once: nothing is queued between
                           R and Y                    collected from B's blocks and what came, where it came

  Numbers pass through HybScalar, in which so small ones are exact. Each process decides for itself: what travels is the
  same.

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

/* what making the lists takes: numbers and lists of the host, the numbers where the backend executes */
typedef struct {
  HybScalar *host, *number;
  PetscInt  *list;
} CollectRoom;

/* all of it, so that where there is no memory nothing has changed yet */
static PetscErrorCode CollectTake(HybParMultiply *s, PetscCount sources, const PetscCount arrays[2], CollectRoom *room)
{
  const HybExec   *x    = &s->exec;
  const PetscCount most = PetscMax(arrays[0], arrays[1]);

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&s->work, HYB_MEM_HOST, PetscMax(sources, most), sizeof(HybScalar), &room->host));
  PetscCall(HybArenaAlloc(&s->work, HYB_MEM_HOST, most, sizeof(PetscInt), &room->list));
  PetscCall(HybArenaAlloc(&s->work, x->result, sources, sizeof(HybScalar), &room->number));
  for (int when = 0; when < 2; when++) {
    PetscCall(HybArenaAlloc(&s->keep, x->result, arrays[when], sizeof(PetscInt), &s->collect.from[when]));
    PetscCall(HybArenaAlloc(&s->keep, x->result, arrays[when], sizeof(HybScalar), &s->collect.to[when]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the arrays' lists, one behind the other */
static PetscErrorCode CollectLists(HybParMultiply *s, HybScalar *values, PetscInt *list)
{
  const HybExec *x = &s->exec;
  CollectArrays  c;

  PetscFunctionBegin;
  for (int when = 0; when < 2; when++) {
    const PetscCount n = CollectList(s, when, &c);

    for (int k = 0; k < c.n; k++) PetscCall(x->backend->copy(x, values + c.at[k], c.of[k]->a, sizeof(HybScalar) * (size_t)c.of[k]->nnz, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(x->backend->sync(x));
    for (int k = 0; k < c.n; k++)
      for (PetscCount e = c.at[k]; e < c.at[k + 1]; e++) list[e] = e - c.at[k] < c.of[k]->nnz ? (PetscInt)PetscRealPart(values[e]) : -1;
    PetscCall(x->backend->copy(x, s->collect.from[when], list, sizeof(PetscInt) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(x->backend->sync(x)); /* the list is written anew */
    s->collect.n[when] = n;
    if (!when) s->collect.nsent = c.at[1];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays are where they are collected to; those between are not needed any more. An error comes when that is so. */
static PetscErrorCode CollectMove(HybParMultiply *s)
{
  HybScalar     *old[8];
  int            n = 0;
  CollectArrays  c;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (s->some && s->xperm) { /* else it is Y's */
    old[n++] = s->X.a;
    s->X.a   = NULL;
  }
  for (int when = 0; when < 2; when++) {
    (void)CollectList(s, when, &c);
    for (int k = 0; k < c.n; k++) {
      old[n++]   = c.of[k]->a;
      c.of[k]->a = s->collect.to[when] + c.at[k];
    }
  }
  s->rows->early  = PETSC_TRUE;
  s->collect.made = PETSC_TRUE;
  for (int k = 0; k < n; k++) {
    const PetscErrorCode later = HybArenaFree(&s->keep, &old[k]);

    if (!ierr) ierr = later;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CollectMakeIn(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, PetscCount sources, const CollectRoom *room)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < sources; k++) room->host[k] = (HybScalar)k;
  PetscCall(x->backend->copy(x, room->number, room->host, sizeof(HybScalar) * (size_t)sources, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(CollectTrace(s, A, B, room->number));
  PetscCall(CollectLists(s, room->host, room->list));
  PetscCall(CollectMove(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybParCollectTakes(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  CollectArrays c;
  PetscCount    size[HYB_COMM_SOURCES];

  return (PetscBool)(s->exec.backend->device && CollectSizes(s, A, B, size) <= COLLECT_MOST && CollectList(s, 0, &c) + CollectList(s, 1, &c) <= COLLECT_MOST);
}

/* Not collective. Nothing is made of a product that is large, where a launch costs nothing, or without memory for it:
   then the steps go on. */
PetscErrorCode HybParCollectMake(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  CollectArrays    c;
  CollectRoom      room;
  PetscCount       size[HYB_COMM_SOURCES];
  const PetscCount n = CollectSizes(s, A, B, size), arrays[2] = {CollectList(s, 0, &c), CollectList(s, 1, &c)};
  PetscErrorCode   ierr, later;

  PetscFunctionBegin;
  if (!HybParCollectTakes(s, A, B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = CollectTake(s, n, arrays, &room);
  PetscCall(PetscPopErrorHandler());
  if (!ierr)
    ierr = CollectMakeIn(s, A, B, n, &room);
  else if (ierr == PETSC_ERR_MEM)
    ierr = PETSC_SUCCESS;
  later = HybArenaReset(&s->work);
  for (int when = 0; when < 2 && !s->collect.made; when++) {
    (void)HybArenaFree(&s->keep, &s->collect.from[when]);
    (void)HybArenaFree(&s->keep, &s->collect.to[when]);
  }
  PetscCall(ierr);
  PetscCall(later);
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

/*
  The functions that an object of PETSc has by name, as PETSc 3.18 keeps them: a list of nodes. To put one function over
  another there PETSc compares names up to the place, and to add one all names, a hundred and ninety for a new matrix of
  ours: a tenth of the work on a matrix of 9 rows.

  Here the node of a function that stands in the list is found by the function, and one name is compared; a new name
  goes behind the last node, where the list is as long as those of its type are and ends alike. Later releases have a
  table, which is left to them.

  The parent's own names are most of it: MATSEQAIJ's creator composes thirty, each compared with all before it, and its
  destroy function takes them away one by one: half of all that making and destroying a matrix of 9 rows takes. They
  come in the same order each time. So while the parent makes a matrix, the object's slot for composing
  (PetscObject.bops) is ours: a name that is the next one of the order goes behind the last node. While the parent
  destroys a matrix that nobody has any more, nothing is taken away: the list goes with the header. That is so as well
  where MatHeaderReplace() throws a header away.
*/
#include "parent.h"
#include <petsc/private/petscimpl.h>

typedef struct HybNameNode HybNameNode;
struct HybNameNode {
  void (*function)(void);
  const char  *name;
  HybNameNode *next;
};

static void HybNameFirst(void)
{
}
static void HybNameSecond(void)
{
}
static void HybNameThird(void)
{
}

/* Is list, of two names, kept so? A table of a later release has no function as its first word. */
static PetscBool HybNamesAreNodes(PetscFunctionList list)
{
  const HybNameNode *n = (const HybNameNode *)list;

  if (n->function != HybNameFirst || strcmp(n->name, "first") || !n->next) return PETSC_FALSE;
  n = n->next;
  return (PetscBool)(n->function == HybNameSecond && !strcmp(n->name, "second") && !n->next);
}

/* A third name behind the last node, and another function in the first node, are what PETSc finds then */
static PetscErrorCode HybNamesTry(PetscFunctionList list, PetscBool *as)
{
  PetscFunctionList tail = (PetscFunctionList)((HybNameNode *)list)->next;
  void (*first)(void) = NULL, (*second)(void) = NULL, (*third)(void) = NULL;

  PetscFunctionBegin;
  PetscCall(PetscFunctionListAdd(&tail, "third", HybNameThird));
  ((HybNameNode *)list)->function = HybNameThird;
  PetscCall(PetscFunctionListFind(list, "first", &first));
  PetscCall(PetscFunctionListFind(list, "second", &second));
  PetscCall(PetscFunctionListFind(list, "third", &third));
  *as = (PetscBool)(first == HybNameThird && second == HybNameSecond && third == HybNameThird);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybNamesFind(void)
{
  PetscFunctionList list = NULL;
  PetscBool         nodes;
#if HYB_LISTS_ARE_NODES
  PetscContainer new; /* which nobody else has had */
#endif

  PetscFunctionBegin;
  PetscCall(PetscFunctionListAdd(&list, "first", HybNameFirst));
  PetscCall(PetscFunctionListAdd(&list, "second", HybNameSecond));
  nodes = HybNamesAreNodes(list);
  if (nodes) PetscCall(HybNamesTry(list, &nodes));
  PetscCall(PetscFunctionListDestroy(&list));
#if HYB_LISTS_ARE_NODES
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &new));
  HybGlueState.names.compose = ((PetscObject) new)->bops->composefunction;
  PetscCall(PetscContainerDestroy(&new));
#endif
  HybGlueState.names.asked = PETSC_TRUE;
  HybGlueState.names.nodes = nodes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* object's function by that name, before, becomes another one */
static PetscErrorCode HybNameReplace(PetscObject object, const char *name, void (*before)(void), void (*function)(void))
{
  HybNameNode *n;

  PetscFunctionBegin;
  if (!HybGlueState.names.asked) PetscCall(HybNamesFind());
  for (n = HybGlueState.names.nodes ? (HybNameNode *)object->qlist : NULL; n; n = n->next) {
    if (n->function != before || strcmp(n->name, name)) continue;
    n->function = function;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscObjectComposeFunction(object, name, function));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last node of object's list, and of how many; 0: a function was taken away */
static HybNameNode *HybNamesLast(PetscObject object, size_t *count)
{
  HybNameNode *last  = NULL;
  PetscBool    taken = PETSC_FALSE;

  *count = 0;
  for (HybNameNode *at = (HybNameNode *)object->qlist; at; last = at, at = at->next, ++*count) taken = (PetscBool)(taken || !at->function);
  if (taken) *count = 0;
  return last;
}

static PetscBool HybNamesHave(PetscObject object, const char *name)
{
  for (const HybNameNode *at = (const HybNameNode *)object->qlist; at; at = at->next)
    if (!strcmp(at->name, name)) return PETSC_TRUE;
  return PETSC_FALSE;
}

/*
  Adds names to an object of one type, whose creator gives each the same ones. usual: the shortest list without these
  names that was seen, and its last name. A name is never taken from a list, its function is. So a list that is as long,
  ends alike and has all functions is the creator's.
*/
PetscErrorCode HybComposeAdd(PetscObject object, size_t n, const HybComposeName named[], HybComposeUsual *usual)
{
  HybNameNode *last  = NULL;
  size_t       count = 0;
  PetscBool    as    = PETSC_FALSE; /* it has none of them */

  PetscFunctionBegin;
  if (!HybGlueState.names.asked) PetscCall(HybNamesFind());
  if (HybGlueState.names.nodes) last = HybNamesLast(object, &count);
  if (count) {
    as = (PetscBool)(count == usual->n && !strcmp(last->name, usual->last));
    if (!as) {
      as = PETSC_TRUE;
      for (size_t k = 0; k < n; k++) as = (PetscBool)(as && !HybNamesHave(object, named[k].name));
      if (as && (!usual->n || count < usual->n)) {
        PetscCall(PetscStrncpy(usual->last, last->name, sizeof(usual->last)));
        usual->n = count;
      }
    }
  }
  for (size_t k = 0; k < n; k++) {
    PetscFunctionList tail = (PetscFunctionList)last;

    if (as) {
      PetscCall(PetscFunctionListAdd(&tail, named[k].name, named[k].function));
      last = last->next;
    } else
      PetscCall(PetscObjectComposeFunction(object, named[k].name, named[k].function));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybComposeOver(PetscObject object, size_t n, const HybComposedOver over[], PetscBool on)
{
  PetscFunctionBegin;
  for (const HybComposedOver *o = over; o < over + n; o++) {
    if (!*o->parents && on) PetscCall(PetscObjectQueryFunction(object, o->name, o->parents));
    if (*o->parents) PetscCall(HybNameReplace(object, o->name, on ? *o->parents : o->ours, on ? o->ours : *o->parents));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if HYB_LISTS_ARE_NODES
/* The node behind those that came in order, NULL: there is none */
static HybNameNode *HybNamesBehind(PetscObject object, const HybComposeOrdered *now)
{
  return now->last ? ((HybNameNode *)now->last)->next : (HybNameNode *)object->qlist;
}

/* name, the next one after all of the order, which PETSc has found to be another one */
static PetscBool HybNamesLearn(HybComposeOrder *order, const char *name)
{
  const size_t bytes = strlen(name) + 1;

  if (order->n == HYB_COMPOSE_ORDER || order->end + bytes > sizeof(order->text)) return PETSC_FALSE;
  memcpy(order->text + order->end, name, bytes);
  order->at[order->n++] = (unsigned short)order->end;
  order->end += bytes;
  return PETSC_TRUE;
}

/*
  In the place of PetscObjectComposeFunction() for a matrix that the parent makes. Its list was empty, and has the first
  names of the order and no others: that was seen as each of them came. So the next one is not among them. What comes
  out of turn is PETSc's to compose; if it is a new name, so is all that follows.
*/
static PetscErrorCode HybNameNext(PetscObject object, const char name[], void (*function)(void))
{
  HybComposeOrdered *now   = &HybGlueState.names.now;
  HybComposeOrder   *order = now->order;
  PetscFunctionList  tail  = (PetscFunctionList)now->last;
  HybNameNode       *node;

  PetscFunctionBegin;
  if (now->object != object || now->first != (now->last ? object->qlist : NULL) || HybNamesBehind(object, now)) {
    if (now->object == object) now->object = NULL;
    PetscCall((*HybGlueState.names.compose)(object, name, function));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (function && now->n < order->n && !strcmp(name, order->text + order->at[now->n])) {
    PetscCall(PetscFunctionListAdd(tail ? &tail : &object->qlist, name, function));
    node = HybNamesBehind(object, now);
  } else {
    PetscCall((*HybGlueState.names.compose)(object, name, function));
    node = HybNamesBehind(object, now);
    if (!node) PetscFunctionReturn(PETSC_SUCCESS); /* it was there */
    if (!function || now->n < order->n || !HybNamesLearn(order, name)) {
      now->object = NULL;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  now->n++;
  now->last  = node;
  now->first = object->qlist;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In its place for one that the parent destroys */
static PetscErrorCode HybNameGone(PetscObject object, const char name[], void (*function)(void))
{
  PetscFunctionBegin;
  if (function) PetscCall((*HybGlueState.names.compose)(object, name, function));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has object PETSc's function in its slot? */
static PetscBool HybNamesSlot(PetscObject object)
{
  if (!HybMayWatch()) return PETSC_FALSE;
  return (PetscBool)(object->bops->composefunction == HybGlueState.names.compose);
}

PetscErrorCode HybComposeOrderBegin(PetscObject object, PetscBool seq, HybComposeOrdered *outer)
{
  HybComposeOrdered *now = &HybGlueState.names.now;

  PetscFunctionBegin;
  *outer = *now;
  if (!HybGlueState.names.asked) PetscCall(HybNamesFind());
  if (!HybGlueState.names.nodes || object->qlist || !HybNamesSlot(object)) PetscFunctionReturn(PETSC_SUCCESS);
  *now                          = (HybComposeOrdered){.object = object, .order = &HybGlueState.names.order[seq]};
  object->bops->composefunction = HybNameNext;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybComposeOrderEnd(PetscObject object, const HybComposeOrdered *outer)
{
  if (object->bops->composefunction == HybNameNext) object->bops->composefunction = HybGlueState.names.compose;
  HybGlueState.names.now = *outer;
}

PetscErrorCode HybComposeGone(Mat A, PetscErrorCode (*destroy)(Mat))
{
  PetscObject    object = (PetscObject)A;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (object->refct > 0 || !HybNamesSlot(object)) {
    PetscCall((*destroy)(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  object->bops->composefunction = HybNameGone;
  ierr                          = (*destroy)(A);
  object->bops->composefunction = HybGlueState.names.compose;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
  Data of ours that PETSc keeps by name on an object, and operations of ours over the parent's.
*/
#include "process.h"

typedef struct {
  void *pointer;
  PetscErrorCode (*destroy)(void *pointer);
} HybComposed;

/* PETSc destroys a container again that it could not destroy: the second call has nothing left but this */
static PetscErrorCode HybComposedFree(HybComposed *c)
{
  void *pointer = c->pointer;

  PetscFunctionBegin;
  c->pointer = NULL;
  if (pointer) PetscCall((*c->destroy)(pointer));
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if !HYB_CONTAINER_BY_ADDRESS
static PetscErrorCode HybComposedDestroy(void *ctx)
{
  return HybComposedFree((HybComposed *)ctx);
}
#else
static PetscErrorCode HybComposedDestroy(HybComposedArg ctx)
{
  return HybComposedFree(*(HybComposed **)ctx);
}
#endif

/* Whatever happens, pointer is not the caller's any more: it is destroyed with the object, or here */
PetscErrorCode HybContainerCompose(PetscObject object, const char *name, void *pointer, PetscErrorCode (*destroy)(void *))
{
  PetscContainer container = NULL;
  HybComposed   *c         = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = PetscNew(&c);
  if (!ierr) ierr = PetscContainerCreate(PETSC_COMM_SELF, &container);
  if (ierr) {
    (void)PetscFree(c);
    (void)(*destroy)(pointer);
    PetscCall(ierr);
  }
  c->pointer = pointer;
  c->destroy = destroy;
  PetscCall(PetscContainerSetPointer(container, c));
  PetscCall(HybContainerSetDestroy(container, HybComposedDestroy));
  HybCallBoth(PetscObjectCompose(object, name, (PetscObject)container), PetscContainerDestroy(&container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybContainerFree(void *pointer)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(pointer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybContainerGet(PetscObject object, const char *name, void *pointer)
{
  PetscContainer container = NULL;
  HybComposed   *c         = NULL;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery(object, name, (PetscObject *)&container));
  if (container) PetscCall(PetscContainerGetPointer(container, (void **)&c));
  *(void **)pointer = c ? c->pointer : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operations that ours has go over the parent's, or these come back. A structure of function pointers alone. */
void HybOpsOver(Mat A, const struct _MatOps *ours, const struct _MatOps *parents, PetscBool on)
{
  void             **op = (void **)A->ops;
  void *const *const o = (void *const *)ours, *const *const p = (void *const *)parents;

  for (size_t k = 0; k < sizeof(*ours) / sizeof(void *); k++)
    if (o[k]) op[k] = on ? o[k] : p[k];
}

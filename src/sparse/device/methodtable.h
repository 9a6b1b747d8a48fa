/*
  methodtable.h: a room's methods on the host, and the names of all, from its methods.h. Included once, by the room's
  driver, which defines before: HYB_ROOM, as in Hyb<ROOM>Method; HYB_METHODS, the file's name as from here. What is
  made:

    Hyb<ROOM>MethodsHost[]   the table of the host's backend
    Hyb<ROOM>GetNames()      all names, host's and device's
    Hyb<ROOM>Find()          for the driver: the method of a name in a backend's table, or an error that lists the names
*/
#define HYB_JOIN_(a, b)   Hyb##a##b
#define HYB_JOIN(a, b)    HYB_JOIN_(a, b)
#define HYB_ROOM_NAME_(a) #a
#define HYB_ROOM_NAME(a)  HYB_ROOM_NAME_(a)

#define HYB_METHOD_HOST(name, symbol) extern const HYB_JOIN(HYB_ROOM, Method) symbol;
#define HYB_METHOD_CUDA(name, symbol)
#include HYB_METHODS
#undef HYB_METHOD_HOST
#undef HYB_METHOD_CUDA

#define HYB_METHOD_HOST(name, symbol) &symbol,
#define HYB_METHOD_CUDA(name, symbol)
const HYB_JOIN(HYB_ROOM, Method) *const HYB_JOIN(HYB_ROOM, MethodsHost)[] = {
#include HYB_METHODS
  NULL};
#undef HYB_METHOD_HOST
#undef HYB_METHOD_CUDA

#define HYB_METHOD_HOST(name, symbol) name,
#define HYB_METHOD_CUDA(name, symbol) name,
static const char *const HybAllNames[] = {
#include HYB_METHODS
  NULL};
#undef HYB_METHOD_HOST
#undef HYB_METHOD_CUDA

static PetscErrorCode HYB_JOIN(HYB_ROOM, Find)(const HYB_JOIN(HYB_ROOM, Method) *const *methods, const char *backend, const char *name, const HYB_JOIN(HYB_ROOM, Method) * *method)
{
  const void *found;

  PetscFunctionBegin;
  PetscCall(HybMethodFind(methods, HYB_ROOM_NAME(HYB_ROOM), backend, name, &found));
  *method = (const HYB_JOIN(HYB_ROOM, Method) *)found;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* each once */
PetscErrorCode HYB_JOIN(HYB_ROOM, GetNames)(const char *const **names)
{
  static const char *once[PETSC_STATIC_ARRAY_LENGTH(HybAllNames)];

  PetscFunctionBegin;
  HybMethodNames(HybAllNames, once);
  *names = once;
  PetscFunctionReturn(PETSC_SUCCESS);
}

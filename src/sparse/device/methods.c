/*
  methods.c: looking methods up by name. The rooms' method tables hold different structs; each of them begins with its
  name.
*/
#include <aijhybridgpu/private/hyb.h>

PetscErrorCode HybMethodFind(const void *methods, const char *kind, const char *backend, const char *name, const void **method)
{
  char list[256] = "auto";

  PetscFunctionBegin;
  *method = NULL;
  for (size_t k = 0; methods; k++) {
    const void *one;
    const char *its;

    memcpy(&one, (const char *)methods + k * sizeof(one), sizeof(one));
    if (!one) break;
    its = *(const char *const *)one;
    if (!strcmp(its, name)) {
      *method = one;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(PetscStrlcat(list, " ", sizeof(list)));
    PetscCall(PetscStrlcat(list, its, sizeof(list)));
  }
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown %s method %s of the %s backend; it has: %s", kind, name, backend, list);
}

PetscErrorCode HybMethodName(const void *methods, const char *kind, const char *backend, const char *name, char kept[], size_t length)
{
  const void *found;

  PetscFunctionBegin;
  if (!name || !name[0]) name = "auto";
  if (strcmp(name, "auto")) PetscCall(HybMethodFind(methods, kind, backend, name, &found));
  PetscCall(PetscStrncpy(kept, name, length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybMethodNames(const char *const *all, const char **once)
{
  size_t n = 0;

  /* written alike by every call */
  for (size_t k = 0; all[k]; k++) {
    size_t l = 0;

    while (l < n && strcmp(once[l], all[k])) l++;
    if (l == n) once[n++] = all[k];
  }
  once[n] = NULL;
}

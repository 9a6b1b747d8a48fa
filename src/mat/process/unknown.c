/*
  Options that nobody reads and that look like the type's own: PETSc is silent about them unless -options_left is given,
  and a run with a mistyped name is then another run than its user thinks. Each is told at the end, with the nearest
  name that there is.
*/
#include "process.h"
#include <strings.h>

#define HYB_OPTION_BEGINS "mat_aijhyb"
#define HYB_OPTION_CLOSE  3 /* changed letters by which a name that begins in another way is still taken for ours */

/* those that are no matrix's and stand in no list; names are without their dash */
static const char *const HybOptionsOfOthers[] = {"pc_gamg_aijhybridgpu", "pc_mg_aijhybridgpu"};

/* The nearest of the options that there are, without its dash; *o: its line, NULL if it is others' */
static const char *HybOptionNearest(const char *name, int *distance, const HybOption **o)
{
  const PetscInt others  = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(HybOptionsOfOthers);
  const char    *nearest = NULL;

  *distance = 2 * HYB_OPTION_LENGTH;
  for (PetscInt k = 0; k < others || HybOptionAt(k - others); k++) {
    const HybOption *next  = k < others ? NULL : HybOptionAt(k - others);
    const char      *known = next ? next->name + 1 : HybOptionsOfOthers[k];
    const int        d     = HybOptionDistance(name, known);

    if (d >= *distance) continue;
    *distance = d;
    nearest   = known;
    *o        = next;
  }
  return nearest;
}

/* name: an option that nobody has read, without its dash */
static PetscErrorCode HybOptionTell(const char *name)
{
  const char      *ours = NULL, *nearest;
  const HybOption *o;
  int              distance;

  PetscFunctionBegin;
  for (const char *p = name; *p && !ours; p++)
    if (!strncasecmp(p, HYB_OPTION_BEGINS, sizeof(HYB_OPTION_BEGINS) - 1) && (p == name || p[-1] == '_')) ours = p;
  nearest = HybOptionNearest(ours ? ours : name, &distance, &o);
  if (!ours && distance > HYB_OPTION_CLOSE) PetscFunctionReturn(PETSC_SUCCESS);
  if (distance && o && o->tuning)
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "petsc-aijhybridgpu: unknown option -%s; the nearest one is " HYB_OPTION_PREFIX "tuning %s=...\n", name, o->name + sizeof(HYB_OPTION_PREFIX) - 1));
  else if (distance)
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "petsc-aijhybridgpu: unknown option -%s; the nearest one is -%.*s%s\n", name, ours ? (int)(ours - name) : 0, name, nearest));
  else if (ours && ours != name && o && !o->ofmatrix)
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "petsc-aijhybridgpu: unknown option -%s; -%s belongs to the whole process and takes no prefix\n", name, nearest));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* marks an option as read */
static PetscErrorCode HybOptionAsk(const char option[], char value[], size_t length, PetscBool *set)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, option, set));
  *set = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybOptionsTellUnknown(void)
{
  char   **names, **values;
  PetscInt n;

  PetscFunctionBegin;
  if (!HybGlueState.options.unknownoptions) PetscFunctionReturn(PETSC_SUCCESS);
  /* those of the kernels alone have been read with the first matrix; without one nobody needs their values */
  if (!HybGlueState.optionsread) PetscCall(HybTuningRead(HybOptionAsk));
  PetscCall(PetscOptionsLeftGet(NULL, &n, &names, &values));
  for (PetscInt k = 0; k < n; k++) PetscCall(HybOptionTell(names[k]));
  PetscCall(PetscOptionsLeftRestore(NULL, &n, &names, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

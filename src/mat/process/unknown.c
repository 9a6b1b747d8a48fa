/*
  Options that nobody reads and that look like the type's own: PETSc is silent about them unless -options_left is given,
  and a run with a mistyped name is then another run than its user thinks. Each is told at the end, with the nearest
  name that there is.
*/
#include "process.h"
#include <strings.h>

#define HYB_OPTION_BEGINS "mat_aijhyb"
#define HYB_OPTION_LENGTH 96
#define HYB_OPTION_CLOSE  3 /* changed letters by which a name that begins in another way is still taken for ours */

/* those that are no matrix's and stand in no list; names are without their dash */
static const char *const HybOptionsOfOthers[] = {"pc_gamg_aijhybridgpu", "pc_mg_aijhybridgpu"};

/* How many letters are to be changed, put in or left out to make a of b, whatever their case */
static int HybOptionDistance(const char *a, const char *b)
{
  int row[HYB_OPTION_LENGTH + 1], n = (int)strlen(b);

  if (strlen(a) > HYB_OPTION_LENGTH || n > HYB_OPTION_LENGTH) return HYB_OPTION_LENGTH;
  for (int k = 0; k <= n; k++) row[k] = k;
  for (int i = 1; a[i - 1]; i++) {
    int corner = row[0];

    row[0] = i;
    for (int k = 1; k <= n; k++) {
      int same = corner + (strncasecmp(a + i - 1, b + k - 1, 1) ? 1 : 0), least = row[k - 1] < row[k] ? row[k - 1] : row[k];

      corner = row[k];
      row[k] = same < least + 1 ? same : least + 1;
    }
  }
  return row[n];
}

/* The nearest of the options that there are; prefixed: it may stand under a prefix */
static const char *HybOptionNearest(const char *name, int *distance, PetscBool *prefixed)
{
  const PetscInt others  = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(HybOptionsOfOthers);
  const char    *nearest = NULL, *next;
  PetscBool      may     = PETSC_TRUE;

  *distance = 2 * HYB_OPTION_LENGTH;
  for (PetscInt k = 0; (next = k < others ? HybOptionsOfOthers[k] : HybOptionName(k - others, &may)); k++) {
    const int d = HybOptionDistance(name, next + (next[0] == '-'));

    if (d >= *distance) continue;
    *distance = d;
    nearest   = next + (next[0] == '-');
    *prefixed = may;
  }
  return nearest;
}

/* name: an option that nobody has read, without its dash */
static PetscErrorCode HybOptionTell(const char *name)
{
  const char *ours     = NULL, *nearest;
  PetscBool   prefixed = PETSC_TRUE;
  int         distance;

  PetscFunctionBegin;
  for (const char *p = name; *p && !ours; p++)
    if (!strncasecmp(p, HYB_OPTION_BEGINS, sizeof(HYB_OPTION_BEGINS) - 1) && (p == name || p[-1] == '_')) ours = p;
  nearest = HybOptionNearest(ours ? ours : name, &distance, &prefixed);
  if (!ours && distance > HYB_OPTION_CLOSE) PetscFunctionReturn(PETSC_SUCCESS);
  if (distance)
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "petsc-aijhybridgpu: unknown option -%s; the nearest one is -%.*s%s\n", name, ours ? (int)(ours - name) : 0, name, nearest));
  else if (ours && ours != name && !prefixed)
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

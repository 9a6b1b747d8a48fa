/*
  cases.h: programs that consist of cases, of operations on pairs (pairs.h): each is done to both alike, and then both
  are compared.
*/
#ifndef CASES_H
#define CASES_H
#include "pairs.h"

/* What asks for the very type by its name, as it does of PETSc's own derived types: docs/differs.md. An error is right
   then, and no answer. */
static inline PetscBool PairsAsksForTheType(const char *what)
{
  static const char *const those[] = {"MatCreateKAIJ", "TSIRK", "cp", "tfs", "MatMPIAIJGetLocalMatCondensed", "MATCOLORINGJP", "MATCOLORINGGREEDY", "MATCOLORINGPOWER", "classical GAMG, direct", "ABC of a transpose", "MUMPS, inverse"};

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(those); k++)
    if (!strcmp(what, those[k])) return PETSC_TRUE;
  return PETSC_FALSE;
}

/* op on both: the same error. *ok: none */
static inline PetscErrorCode PairTry(Pair *p, PetscErrorCode (*op)(Pair *, int), const char *what, PetscBool *ok)
{
  PetscBool same, refused;

  PetscFunctionBeginUser;
  *ok = PETSC_FALSE;
  for (int k = 0; k < 2; k++) {
    if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s %s\n", k ? "ours" : "MATAIJ", what));
    if (p->m[k]) PetscCall(SeenGet(p->m[k], &p->before[k]));
    QUIETLY(p->error[k], (*op)(p, k));
  }
  refused = (PetscBool)(PairsAsksForTheType(what) && p->error[1]);
  same    = (PetscBool)(p->error[0] == p->error[1] || refused);
  PetscCall(PairsAll(&same));
  PetscCall(PairsCount(same, what, "errors"));
  if (!same || (PairsVerbose && p->error[0])) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: error of MATAIJ %d, of ours %d\n", what, (int)p->error[0], (int)p->error[1]));
  *ok = (PetscBool)(!p->error[0] && !p->error[1]);
  PetscCall(PairsAll(ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* op on both: the same error, and the same afterwards. *ok: no error */
static inline PetscErrorCode PairApply(Pair *p, PetscErrorCode (*op)(Pair *, int), const char *what, PetscBool *ok)
{
  PetscFunctionBeginUser;
  PetscCall(PairTry(p, op, what, ok));
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  if (p->m[0] && p->m[1]) PetscCall(PairsCompare(p->m[0], p->m[1], p->before, what));
  if (p->out[0] && p->out[1]) PetscCall(PairsCompare(p->out[0], p->out[1], NULL, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* op on pairs of all origins, in each of its ways from first on: the way is arg[0], the origin arg[1]. names: what
   differs, in words, or NULL. then, or NULL, where both came through: compares what op has found. */
typedef struct {
  const char        *what;
  const char *const *names;
  Pattern            pattern;
  PetscInt           M, N, first, ways;
  PetscErrorCode (*op)(Pair *, int);
  PetscErrorCode (*then)(Pair *, const char *name);
  PetscBool fresh; /* its states are those that it happens to have */
} Each;
static inline PetscErrorCode PairsEach(const Each *e)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt way = e->first; way < e->ways && PairsWanted(kind); way++) {
      Pair      p;
      PetscBool ok;
      char      name[160];

      PetscCall(PairMake(&p, kind, e->pattern, e->M, e->N));
      p.arg[0] = way;
      p.arg[1] = (PetscInt)kind;
      if (e->names)
        PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s, %s", e->what, KindNames[kind], e->names[way]));
      else
        PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s, way %d", e->what, KindNames[kind], (int)way));
      PetscCall(PairTry(&p, e->op, name, &ok));
      if (ok && p.m[0] && p.m[1]) PetscCall(PairsCompare(p.m[0], p.m[1], e->fresh ? NULL : p.before, name));
      if (ok && p.out[0] && p.out[1]) PetscCall(PairsCompare(p.out[0], p.out[1], NULL, name));
      if (ok && e->then) PetscCall((*e->then)(&p, name));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* for then: what both have found, and their vectors */
static inline PetscErrorCode PairsFound(Pair *p, const char *name)
{
  PetscFunctionBeginUser;
  if (PairsVerbose && p->found[0] != p->found[1]) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %g by MATAIJ, %g by ours\n", name, (double)p->found[0], (double)p->found[1]));
  PetscCall(PairsCount((PetscBool)(PetscAbsReal(p->found[0] - p->found[1]) < (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-9)), name, "what is found"));
  if (p->x[0] && p->x[1]) PetscCall(PairsVectors(p->x[0], p->x[1], name, "the vector"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Cases: each is run on its own, and an error that leaves it is a failure */
typedef struct {
  const char *name;
  PetscErrorCode (*run)(void);
  PetscMPIInt least, most; /* processes */
  const Each *each;        /* where run is NULL */
} Case;
#define CASE(name, run, least, most) \
  {                                  \
    name, run, least, most, NULL     \
  }
#define CASE_EACH(name, least, most, ...)  \
  {                                        \
    name, NULL, least, most, &(const Each) \
    {                                      \
      __VA_ARGS__                          \
    }                                      \
  }

/* -cases NAME,...: these alone, and verbosely */
static inline PetscErrorCode CasesRun(const Case cases[], int n)
{
  char      only[256] = "", *list;
  PetscBool some;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-cases", only, sizeof(only), &some));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trail", &PairsTrail, NULL));
  for (int c = 0; c < n; c++) {
    PetscErrorCode ierr;

    PairsVerbose = some;
    PetscCall(PetscStrstr(only, cases[c].name, &list));
    if (some && !list) continue;
    if (MatTestSize() < cases[c].least || (cases[c].most && MatTestSize() > cases[c].most)) continue;
    MatTestName = cases[c].name;
    if (some) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n", cases[c].name));
    QUIETLY(ierr, cases[c].run ? (*cases[c].run)() : PairsEach(cases[c].each));
    if (ierr) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s ends with error %d\n", cases[c].name, (int)ierr));
    PetscCall(PairsCount((PetscBool)!ierr, cases[c].name, "runs to its end"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the whole of a program that consists of cases */
static inline int CasesMain(int argc, char **argv, const char about[], const Case cases[], int n)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, about));
  PetscCall(CasesRun(cases, n));
  return MatTestEnd();
}
#endif

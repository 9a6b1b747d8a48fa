/*
  undocumented_sums.h: the cases of undocumented_results about sums: equal patterns and others, claims that are true and
  not, what TS and GAMG add, Inf and NaN.
*/
#ifndef RESULTS_SUMS_H
#define RESULTS_SUMS_H
#include "cases.h"
#include <petscts.h>

#define N 24

static const MatStructure Structures[]     = {UNKNOWN_NONZERO_PATTERN, DIFFERENT_NONZERO_PATTERN, SUBSET_NONZERO_PATTERN, SAME_NONZERO_PATTERN};
static const char *const  StructureNames[] = {"unknown", "different", "subset", "same"};

static PetscErrorCode Combine(Pair *p, int k)
{
  PetscFunctionBeginUser;
  if (p->arg[0])
    PetscCall(MatAYPX(p->m[k], 2.5, p->q[k], Structures[p->arg[1]]));
  else
    PetscCall(MatAXPY(p->m[k], 2.5, p->q[k], Structures[p->arg[1]]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ValuesAgain(Pair *p, int k)
{
  PetscFunctionBeginUser;
  PetscCall(PairsWriteCOO(p->m[k], (Pattern)p->arg[2], 3, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CombineName(const Pair *p, Kind kind, char name[], size_t length)
{
  return PetscSNPrintf(name, length, "%s, %s pattern, %s", p->arg[0] ? "MatAYPX" : "MatAXPY", StructureNames[p->arg[1]], KindNames[kind]);
}

/* equal patterns, whatever is said of them */
static PetscErrorCode CaseEqualPatterns(void)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt op = 0; op < 2 && PairsWanted(kind); op++)
      for (PetscInt s = 0; s < 4; s++)
        for (PetscInt x = 0; x < 2; x++) {
          Pair      p;
          PetscBool ok;
          char      name[128];

          PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, N));
          if (x)
            PetscCall(PairOperand(&p, HOSTMADE, TRIDIAGONAL, N, N));
          else
            for (int k = 0; k < 2; k++) PetscCall(MatDuplicate(p.m[k], MAT_COPY_VALUES, &p.q[k]));
          p.arg[0] = op;
          p.arg[1] = s;
          p.arg[2] = TRIDIAGONAL;
          PetscCall(CombineName(&p, kind, name, sizeof(name)));
          PetscCall(PairApply(&p, Combine, name, &ok));
          if (ok && kind == BORN && p.m[0]->nonzerostate == p.before[0].nonzerostate) PetscCall(PairApply(&p, ValuesAgain, "and MatSetValuesCOO", &ok));
          PetscCall(PairDestroy(&p));
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* u' = -u - 0.1 (neighbours) in two parts, both Jacobians from coordinates */
static PetscErrorCode IFunction(TS ts, PetscReal t, Vec u, Vec udot, Vec f, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(VecCopy(udot, f));
  PetscCall(VecAXPY(f, 2.0, u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coordinates(Mat B, PetscScalar diagonal, PetscScalar other)
{
  PetscInt    start, end, n = 0, c[5];
  PetscScalar v[5 * N];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(B, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscInt count = PairsColumns(TRIDIAGONAL, r, N, c);

    for (PetscInt k = 0; k < count; k++) v[n++] = c[k] == r ? diagonal : other;
  }
  PetscCall(MatSetValuesCOO(B, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IJacobian(TS ts, PetscReal t, Vec u, Vec udot, PetscReal shift, Mat A, Mat B, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(Coordinates(B, shift + 2.0, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RHSFunction(TS ts, PetscReal t, Vec u, Vec f, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(MatMult(*(Mat *)ctx, u, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RHSJacobian(TS ts, PetscReal t, Vec u, Mat A, Mat B, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(Coordinates(B, 1.0, -0.1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Euler(Pair *p, int k)
{
  TS   ts;
  SNES snes;
  Mat  R;
  Vec  x;

  PetscFunctionBeginUser;
  PetscCall(PairsMake(BORN, TRIDIAGONAL, k ? "aijhybridgpu" : MATAIJ, N, N, &R));
  PetscCall(Coordinates(R, 1.0, -0.1));
  PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
  PetscCall(TSSetProblemType(ts, TS_LINEAR));
  PetscCall(TSSetType(ts, TSBEULER));
  PetscCall(TSSetIFunction(ts, NULL, IFunction, NULL));
  PetscCall(TSSetIJacobian(ts, p->q[k], p->q[k], IJacobian, NULL));
  PetscCall(TSSetRHSFunction(ts, NULL, RHSFunction, &p->m[k]));
  PetscCall(TSSetRHSJacobian(ts, R, R, RHSJacobian, NULL));
  PetscCall(TSSetTimeStep(ts, 0.1));
  PetscCall(TSSetMaxSteps(ts, 4));
  PetscCall(TSSetMaxTime(ts, 1.0));
  PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
  PetscCall(TSGetSNES(ts, &snes));
  if (p->arg[0]) PetscCall(SNESSetType(snes, SNESNEWTONLS));
  PetscCall(MatCreateVecs(R, &x, NULL));
  PetscCall(VecSet(x, 1.0));
  PetscCall(TSSolve(ts, x));
  p->x[k] = x;
  PetscCall(MatTestDestroy(&ts, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseEuler(void)
{
  PetscFunctionBeginUser;
  for (PetscInt type = 0; type < 2; type++) {
    Pair      p;
    PetscBool ok;

    PetscCall(PairMake(&p, BORN, TRIDIAGONAL, N, N));
    for (int k = 0; k < 2; k++) PetscCall(Coordinates(p.m[k], 1.0, -0.1));
    PetscCall(PairOperand(&p, BORN, TRIDIAGONAL, N, N));
    p.arg[0] = type;
    PetscCall(PairApply(&p, Euler, "backward Euler", &ok));
    PetscCall(PairsCount(ok, "backward Euler", "four steps"));
    if (ok) PetscCall(PairsVectors(p.x[0], p.x[1], "backward Euler", "the solution"));
    PetscCall(PairDestroy(&p));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same objects for both, where that is possible */
static PetscErrorCode Adorn(Pair *p)
{
  MatNullSpace           n[3];
  ISLocalToGlobalMapping map[2];
  IS                     is;
  PetscInt               rows, columns;
  PetscBool              square;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(p->m[0], &rows, &columns));
  square = (PetscBool)(rows == columns);
  for (int q = 0; q < 3; q++) PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &n[q]));
  for (int q = 0; q < 2; q++) {
    PetscLayout l = q ? p->m[0]->cmap : p->m[0]->rmap;

    PetscCall(ISCreateStride(PETSC_COMM_WORLD, l->n, l->rstart, 1, &is));
    PetscCall(ISLocalToGlobalMappingCreateIS(is, &map[q]));
    PetscCall(ISDestroy(&is));
  }
  for (int k = 0; k < 2; k++) {
    Mat A = p->m[k];

    if (square) {
      PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
      PetscCall(MatSetOption(A, MAT_HERMITIAN, PETSC_TRUE));
      PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
    }
    PetscCall(MatSetNullSpace(A, n[0]));
    PetscCall(MatSetTransposeNullSpace(A, n[1]));
    PetscCall(MatSetNearNullSpace(A, n[2]));
    PetscCall(MatSetLocalToGlobalMapping(A, map[0], map[1]));
    PetscCall(PetscObjectSetName((PetscObject)A, "adorned"));
    PetscCall(MatSetOptionsPrefix(A, "adorned_"));
  }
  for (int q = 0; q < 3; q++) PetscCall(MatNullSpaceDestroy(&n[q]));
  for (int q = 0; q < 2; q++) PetscCall(ISLocalToGlobalMappingDestroy(&map[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseClaims(void)
{
  const Pattern patterns[] = {TRIDIAGONAL, WIDE, DIAGONAL, NODIAGONAL};

  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt op = 0; op < 2 && PairsWanted(kind); op++)
      for (PetscInt s = 0; s < 2; s++)
        for (PetscInt x = MatTestSize() > 1 ? 2 : 0; x < 4; x++) {
          Pair      p;
          PetscBool ok;
          char      name[128];

          PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, N));
          PetscCall(PairOperand(&p, kind, patterns[x], N, N));
          PetscCall(Adorn(&p));
          p.arg[0] = op;
          p.arg[1] = s;
          PetscCall(CombineName(&p, kind, name, sizeof(name)));
          PetscCall(PairApply(&p, Combine, name, &ok));
          PetscCall(PairDestroy(&p));
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The claim of a subset is not true: with new entries let in, and with those forbidden. On several processes an
   error may be one process's alone: there they are let in. */
static PetscErrorCode CaseNoSubset(void)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt op = 0; op < 2 && PairsWanted(kind); op++)
      for (PetscInt let = MatTestSize() > 1 ? 2 : 0; let < 3; let++)
        for (Kind other = HOSTMADE; other <= BORN; other++) {
          Pair      p;
          PetscBool ok;
          char      name[128];

          PetscCall(PairMake(&p, kind, NODIAGONAL, N, N));
          PetscCall(PairOperand(&p, other, TRIDIAGONAL, N, N));
          for (int k = 0; k < 2; k++) {
            if (let == 2) PetscCall(MatSetOption(p.m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
            if (let == 1) PetscCall(MatSetOption(p.m[k], MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
          }
          p.arg[0] = op;
          p.arg[1] = 2;
          PetscCall(CombineName(&p, kind, name, sizeof(name)));
          PetscCall(PetscStrlcat(name, let == 2 ? ", which is none, new entries let in" : let ? ", which is none, new entries forbidden"
                                                                                              : ", which is none",
                                 sizeof(name)));
          PetscCall(PairApply(&p, Combine, name, &ok));
          PetscCall(PairDestroy(&p));
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* aggregation: smoothing the interpolation adds entries that A P lacks. What comes out of it is not looked at:
   without a diagonal the bounds of eigenvalues are anything. */
static PetscErrorCode Aggregation(Pair *p, int k)
{
  PC  pc;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(p->m[k], MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(PCSetOperators(pc, p->m[k], p->m[k]));
  PetscCall(PCGAMGSetNSmooths(pc, 1));
  PetscCall(PCGAMGSetCoarseEqLim(pc, 4));
  PetscCall(PCGAMGSetNlevels(pc, 3));
  PetscCall(PCSetFromOptions(pc));
  PetscCall(PCSetUp(pc));
  PetscCall(MatCreateVecs(p->m[k], &b, &p->x[k]));
  PetscCall(VecSet(b, 1.0));
  PetscCall(PCApply(pc, b, p->x[k]));
  PetscCall(MatTestDestroy(&b, &pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a graph of 60 vertices, some of them without neighbours */
static PetscErrorCode Graph(MatType type, PetscBool born, PetscInt seed, Mat *A)
{
  unsigned long state = (unsigned long)seed;
  PetscInt      i[160], j[160], n = 0;
  PetscScalar   v[160];

  PetscFunctionBeginUser;
  while (n < 160) {
    PetscInt r = (PetscInt)(MATTEST_NEXT(state) % 60), c = (PetscInt)(MATTEST_NEXT(state) % 60);

    if (r == c) continue;
    i[n] = j[n + 1] = r;
    j[n] = i[n + 1] = c;
    v[n] = v[n + 1] = -1.0;
    n += 2;
  }
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, 60, 60, 60, 60, A));
  if (born) {
    PetscCall(MatSetPreallocationCOO(*A, n, i, j));
    PetscCall(MatSetValuesCOO(*A, v, INSERT_VALUES));
  } else {
    PetscCall(MatSeqAIJSetPreallocation(*A, 30, NULL));
    for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*A, i[k], j[k], v[k], ADD_VALUES));
    PetscCall(MatTestAssemble(*A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseAggregation(void)
{
  PetscFunctionBeginUser;
  for (PetscInt seed = 1; seed < 3; seed++)
    for (int q = 0; q < 2; q++) {
      Pair      p;
      PetscBool ok;

      PetscCall(PetscMemzero(&p, sizeof(p)));
      for (int k = 0; k < 2; k++) PetscCall(Graph(k ? "aijhybridgpu" : MATAIJ, (PetscBool)q, seed, &p.m[k]));
      PetscCall(PairApply(&p, Aggregation, "GAMG without diagonal entries", &ok));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Inf and NaN */
static PetscErrorCode PutWild(Pair *p, int k)
{
  const PetscReal zero = p->real;
  PetscInt        start, end, n = 0, c[5];
  PetscScalar    *v;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(p->m[k], &start, &end));
  PetscCall(PetscMalloc1(5 * (end - start) + 1, &v));
  for (PetscInt r = start; r < end; r++) {
    PetscInt count = PairsColumns(TRIDIAGONAL, r, N, c);

    for (PetscInt q = 0; q < count; q++, n++) {
      v[n] = PairsValue(r, c[q], 0);
      if (r == 5 && c[q] == 5 && p->arg[0] & 1) v[n] = 1.0 / zero;
      if (r == N - 2 && c[q] == N - 3 && p->arg[0] & 2) v[n] = zero / zero;
      if (r == 1 && c[q] == 2 && p->arg[0] & 4) v[n] = -1.0 / zero;
    }
  }
  PetscCall(MatSetValuesCOO(p->m[k], v, INSERT_VALUES));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscReal      Norms[2];
static PetscErrorCode WildOperation(Pair *p, int k)
{
  Mat A = p->m[k];
  Vec d;

  PetscFunctionBeginUser;
  Norms[k] = 0;
  switch (p->arg[1]) {
  case 0: PetscCall(MatScale(A, 0.0)); break;
  case 1: PetscCall(MatNorm(A, NORM_1, &Norms[k])); break;
  case 2: PetscCall(MatNorm(A, NORM_INFINITY, &Norms[k])); break;
  case 3: PetscCall(MatNorm(A, NORM_FROBENIUS, &Norms[k])); break;
  case 4: PetscCall(MatZeroEntries(A)); break;
  case 5:
  case 6:
    PetscCall(MatCreateVecs(A, &d, NULL));
    PetscCall(VecSet(d, 0.0));
    PetscCall(MatDiagonalScale(A, p->arg[1] == 5 ? d : NULL, p->arg[1] == 6 ? d : NULL));
    PetscCall(VecDestroy(&d));
    break;
  case 7: PetscCall(MatAXPY(A, 0.0, p->q[k], SAME_NONZERO_PATTERN)); break;
  case 8: PetscCall(MatAYPX(A, 0.0, p->q[k], SAME_NONZERO_PATTERN)); break;
  case 9: PetscCall(MatAYPX(A, 0.0, p->q[k], UNKNOWN_NONZERO_PATTERN)); break;
  case 10: PetscCall(MatAXPY(A, 0.0, A, SAME_NONZERO_PATTERN)); break;
  case 11: PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &p->out[k])); break;
  case 12: PetscCall(MatMatMult(A, p->q[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k])); break;
  case 13: PetscCall(MatPtAP(p->q[k], A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k])); break;
  case 14: PetscCall(MatShift(A, 0.0)); break;
  case 15: PetscCall(MatRealPart(A)); break;
  case 16: PetscCall(PairsWriteCOO(A, TRIDIAGONAL, 1, ADD_VALUES)); break;
  default: {
    PetscReal *norms;
    PetscInt   n;

    PetscCall(MatGetSize(A, NULL, &n));
    PetscCall(PetscMalloc1(n, &norms));
    PetscCall(MatGetColumnNorms(A, p->arg[1] == 17 ? NORM_INFINITY : p->arg[1] == 18 ? NORM_1
                                                                                     : NORM_2,
                                norms));
    for (PetscInt q = 0; q < n; q++) Norms[k] += norms[q];
    PetscCall(PetscFree(norms));
  }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseWild(void)
{
  PetscFunctionBeginUser;
  for (PetscInt op = 0; op < 20; op++)
    for (PetscInt wild = 1; wild < 8; wild += wild == 2 ? 5 : 1)
      for (PetscInt q = 0; q < 2; q++) {
        Pair      p;
        PetscBool ok;
        char      name[64];

        PetscCall(PairMake(&p, BORN, TRIDIAGONAL, N, N));
        PetscCall(PairOperand(&p, BORN, TRIDIAGONAL, N, N));
        p.arg[0] = wild;
        p.arg[1] = op;
        PetscCall(PetscSNPrintf(name, sizeof(name), "operation %d, %s%s%s in a %s", (int)op, wild & 1 ? "Inf " : "", wild & 2 ? "NaN " : "", wild & 4 ? "-Inf " : "", q ? "promoted one" : "born one"));
        for (int k = 0; k < 2; k++) {
          PetscCall(PutWild(&p, k));
          if (q) { /* the host's arrays, then the device's again */
            Mat B;

            PetscCall(MatConvert(p.m[k], MATAIJ, MAT_INITIAL_MATRIX, &B));
            PetscCall(MatDestroy(&p.m[k]));
            PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &p.m[k]));
            PetscCall(MatDestroy(&B));
            PetscCall(MatTestUse(p.m[k]));
            PetscCall(MatScale(p.m[k], 2.0));
            PetscCall(MatScale(p.m[k], 0.5));
          }
        }
        if (q && op == 16) goto next;
        PetscCall(PairApply(&p, WildOperation, name, &ok));
        if (ok) PetscCall(PairsCount(PairsScalarsAgree(Norms[0], Norms[1], Norms[0]), name, "the norm"));
      next:
        PetscCall(PairDestroy(&p));
      }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

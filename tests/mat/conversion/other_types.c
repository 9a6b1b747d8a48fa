/*
  Types beside MATAIJ's: what is converted, to and from all types that this PETSc makes of AIJ and again into what
  is there, products with operands of its other types, and what asks for a type by its name. The case that may
  crash comes last.

TEST np=1,2+3
TEST np=1 @emulated
TEST np=+2 @emulated -kind 1
TEST np=3 @emulated -kind 1 -cases kaij,exact

  -cases: of these alone; -kind N: where a case goes through all origins, this one alone; -trail prints what is
  done before it is
*/
#include "cases.h"
#include <petscts.h>

#define N 24

/* m is dense, out sparse */
static PetscErrorCode ToSparse(Pair *p, int k)
{
  const char *type = k ? "aijhybridgpu" : MATAIJ;

  PetscFunctionBeginUser;
  switch (p->arg[0]) {
  case 0: PetscCall(MatConvert(p->m[k], type, MAT_INITIAL_MATRIX, &p->out[k])); break;
  case 1: PetscCall(MatConvert(p->m[k], type, MAT_INPLACE_MATRIX, &p->m[k])); break;
  default:
    PetscCall(MatConvert(p->m[k], type, MAT_INITIAL_MATRIX, &p->out[k]));
    PetscCall(MatScale(p->m[k], 3.0));
    PetscCall(MatConvert(p->m[k], type, MAT_REUSE_MATRIX, &p->out[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseDense(void)
{
  static const char *const names[] = {"from dense, a new matrix", "from dense, in place", "from dense, again"};

  PetscFunctionBeginUser;
  for (PetscInt way = 0; way < 3; way++)
    for (PetscInt rectangular = 0; rectangular < 2; rectangular++) {
      Pair      p;
      PetscBool ok;

      PetscCall(PetscMemzero(&p, sizeof(p)));
      for (int k = 0; k < 2; k++) {
        Mat A;

        PetscCall(PairsMakeHost(MATAIJ, TRIDIAGONAL, 12, rectangular ? 7 : 12, &A));
        PetscCall(MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, &p.m[k]));
        PetscCall(MatDestroy(&A));
      }
      p.arg[0] = way;
      PetscCall(PairApply(&p, ToSparse, names[way], &ok));
      PetscCall(PairsCount(ok, names[way], "no error"));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Kronecker(Pair *p, int k)
{
  const PetscScalar S[4] = {1.0, 0.5, 0.0, 2.0}, T[4] = {1.0, 0.0, 0.25, 1.0};
  Vec               x;

  PetscFunctionBeginUser;
  PetscCall(MatCreateKAIJ(p->m[k], 2, 2, p->arg[0] & 1 ? S : NULL, p->arg[0] & 2 ? T : NULL, &p->q[k]));
  PetscCall(MatCreateVecs(p->q[k], &x, &p->x[k]));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(p->q[k], x, p->x[k]));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseKAIJ(void)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt parts = 0; parts < 4 && PairsWanted(kind); parts++) {
      Pair      p;
      PetscBool ok;

      PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, N));
      p.arg[0] = parts;
      PetscCall(PairApply(&p, Kronecker, "MatCreateKAIJ", &ok));
      if (ok) PetscCall(PairsVectors(p.x[0], p.x[1], "MatCreateKAIJ", "MatMult"));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LinearJacobian(TS ts, PetscReal t, Vec u, Mat A, Mat B, void *ctx)
{
  return PETSC_SUCCESS;
}

/* implicit Runge-Kutta by matrices of Kronecker products */
static PetscErrorCode RungeKutta(Pair *p, int k)
{
  TS   ts;
  SNES snes;
  KSP  ksp;
  PC   pc;
  Vec  x;

  PetscFunctionBeginUser;
  PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
  PetscCall(TSSetProblemType(ts, TS_LINEAR));
  PetscCall(TSSetType(ts, TSIRK));
  PetscCall(TSSetRHSFunction(ts, NULL, TSComputeRHSFunctionLinear, NULL));
  PetscCall(TSSetRHSJacobian(ts, p->m[k], p->m[k], LinearJacobian, NULL));
  PetscCall(TSSetTimeStep(ts, 0.01));
  PetscCall(TSSetMaxSteps(ts, 3));
  PetscCall(TSSetMaxTime(ts, 1.0));
  PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
  PetscCall(TSGetSNES(ts, &snes));
  PetscCall(SNESGetKSP(snes, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCPBJACOBI)); /* the only one for these */
  PetscCall(TSSetFromOptions(ts));
  PetscCall(MatCreateVecs(p->m[k], &x, NULL));
  PetscCall(VecSet(x, 1.0));
  p->x[k] = x;
  PetscCall(TSSolve(ts, x));
  PetscCall(TSDestroy(&ts));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseIRK(void)
{
  Pair      p;
  PetscBool ok;

  PetscFunctionBeginUser;
  PetscCall(PairMake(&p, HOSTMADE, TRIDIAGONAL, N, N));
  PetscCall(PairApply(&p, RungeKutta, "TSIRK", &ok));
  if (ok) PetscCall(PairsVectors(p.x[0], p.x[1], "TSIRK", "the solution"));
  PetscCall(PairDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* preconditioners, also those that ask for a type by its name */
static const char *const Preconditioners[] = {PCJACOBI, PCSOR, PCBJACOBI, PCILU, PCICC, PCLU, PCCHOLESKY, PCASM, PCGASM, PCEISENSTAT, PCCP, PCKACZMARZ, PCSVD, PCVPBJACOBI, PCPBJACOBI, PCTFS, PCREDUNDANT, PCREDISTRIBUTE, PCMG, PCGAMG, PCHMG, PCBDDC, PCNONE};
static PetscErrorCode    Precondition(Pair *p, int k)
{
  PC  pc;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetOperators(pc, p->m[k], p->m[k]));
  PetscCall(PCSetType(pc, Preconditioners[p->arg[0]]));
  PetscCall(PCSetFromOptions(pc));
  PetscCall(PCSetUp(pc));
  PetscCall(MatCreateVecs(p->m[k], &b, &p->x[k]));
  PetscCall(VecSet(b, 1.0));
  PetscCall(PCApply(pc, b, p->x[k]));
  PetscCall(MatTestDestroy(&b, &pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A^-T where A has entries */
static PetscErrorCode SparseInverse(Mat A, Mat *B)
{
  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_MUMPS)
  {
    Mat           F;
    MatFactorInfo info;
    IS            row, col;

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
    PetscCall(MatGetFactor(A, MATSOLVERMUMPS, MAT_FACTOR_LU, &F));
    PetscCall(MatFactorInfoInitialize(&info));
    PetscCall(MatGetOrdering(A, MATORDERINGEXTERNAL, &row, &col));
    PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
    PetscCall(MatLUFactorNumeric(F, A, &info));
    PetscCall(MatTestDestroy(&row, &col));
    PetscCall(MatMumpsGetInverseTranspose(F, *B));
    PetscCall(MatDestroy(&F));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  PetscFunctionReturn(PETSC_ERR_SUP);
#endif
}

/* functions that ask for MATSEQAIJ or MATMPIAIJ by name */
static const char *const Exact[] = {"MatSeqAIJKron", "MatAIJGetLocalMat", "MatMPIAIJGetLocalMatCondensed", "MATCOLORINGJP", "MATCOLORINGGREEDY", "MATCOLORINGID", "MATCOLORINGSL", "MATCOLORINGPOWER", "classical GAMG", "MatConvert from MATNEST", "MatCompositeMerge", "MatMult of MATCOMPOSITE", "MatCreateTranspose in MATNEST", "classical GAMG, direct", "ABC of a transpose", "MUMPS, inverse"};
static PetscErrorCode    ExactType(Pair *p, int k)
{
  const MatColoringType colorings[] = {MATCOLORINGJP, MATCOLORINGGREEDY, MATCOLORINGID, MATCOLORINGSL, MATCOLORINGPOWER};
  Mat                   A = p->m[k], B = NULL, two[2] = {p->m[k], p->m[k]}, four[4] = {p->m[k], NULL, p->m[k], p->m[k]};
  PetscInt              what = p->arg[0];

  PetscFunctionBeginUser;
  switch (what) {
  case 0: PetscCall(MatSeqAIJKron(A, p->q[k], MAT_INITIAL_MATRIX, &p->out[k])); break;
  case 1: PetscCall(MatAIJGetLocalMat(A, &B)); break;
  case 2: PetscCall(MatMPIAIJGetLocalMatCondensed(A, MAT_INITIAL_MATRIX, NULL, NULL, &B)); break;
  case 3:
  case 4:
  case 5:
  case 6:
  case 7: {
    MatColoring            mc;
    ISColoring             colors;
    const ISColoringValue *value;
    PetscInt               n, n1;
    Vec                    x;

    PetscCall(MatColoringCreate(A, &mc));
    PetscCall(MatColoringSetType(mc, colorings[what - 3]));
    PetscCall(MatColoringSetDistance(mc, what == 5 || what == 6 ? 2 : 1));
    PetscCall(MatColoringApply(mc, &colors));
    PetscCall(MatCreateVecs(A, NULL, &x));
    PetscCall(ISColoringGetColors(colors, &n, &n1, &value));
    for (PetscInt q = 0; q < n; q++) PetscCall(VecSetValue(x, A->rmap->rstart + q, (PetscScalar)value[q], INSERT_VALUES));
    PetscCall(VecTestAssemble(x));
    p->x[k] = x;
    PetscCall(ISColoringDestroy(&colors));
    PetscCall(MatColoringDestroy(&mc));
  } break;
  case 13:
  case 8: {
    PC  pc;
    Vec b;

    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(PCGAMGSetType(pc, PCGAMGCLASSICAL));
    if (what == 13) PetscCall(PCGAMGClassicalSetType(pc, PCGAMGCLASSICALDIRECT));
    PetscCall(PCGAMGSetCoarseEqLim(pc, 4));
    PetscCall(PCSetUp(pc));
    PetscCall(MatCreateVecs(A, &b, &p->x[k]));
    PetscCall(VecSet(b, 1.0));
    PetscCall(PCApply(pc, b, p->x[k]));
    PetscCall(MatTestDestroy(&b, &pc));
  } break;
  case 14: /* which PETSc has where hypre is */
    PetscCall(MatCreateTranspose(A, &B));
    PetscCall(MatTestProduct(MATPRODUCT_ABC, B, A, A, &p->out[k]));
    break;
  case 15: PetscCall(SparseInverse(A, &B)); break;
  case 9:
  case 12:
    if (what == 12) PetscCall(MatCreateTranspose(A, &four[2]));
    PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, four, &B));
    PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &p->out[k]));
    if (what == 12) PetscCall(MatDestroy(&four[2]));
    break;
  default: {
    Vec x;

    PetscCall(MatCreateComposite(PETSC_COMM_WORLD, 2, two, &B));
    PetscCall(MatCompositeSetType(B, MAT_COMPOSITE_ADDITIVE));
    PetscCall(MatTestAssemble(B));
    if (what == 10) PetscCall(MatCompositeMerge(B));
    PetscCall(MatCreateVecs(B, &x, &p->x[k]));
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(B, x, p->x[k]));
    PetscCall(VecDestroy(&x));
  }
  }
  if (B && (what < 3 || what == 15)) { /* one of this process's own */
    PetscInt    m, n;
    PetscMPIInt size;
    PetscReal   norm;

    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)B), &size));
    PetscCall(MatGetSize(B, &m, &n));
    PetscCall(MatNorm(B, NORM_FROBENIUS, &norm));
    p->found[k] = norm + (PetscReal)(m + 100 * n) + 10000 * (PetscReal)size;
  }
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseExact(void)
{
  const Kind kinds[] = {HOSTMADE, BORN};

  PetscFunctionBeginUser;
  for (PetscInt what = 0; what < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Exact); what++)
    for (int q = 0; q < 2; q++) {
      Pair      p;
      PetscBool ok, same;

      PetscCall(PairMake(&p, kinds[q], TRIDIAGONAL, N, N));
      PetscCall(PairOperand(&p, kinds[q], NODIAGONAL, 6, 6));
      p.arg[0] = what;
      PetscCall(PairTry(&p, ExactType, Exact[what], &ok));
      if (ok) PetscCall(PairsCompare(p.m[0], p.m[1], NULL, Exact[what]));
      if (ok && p.out[0]) PetscCall(PairsCompare(p.out[0], p.out[1], NULL, Exact[what]));
      PairsTolerance = 1e-6;
      if (ok && p.x[0]) PetscCall(PairsVectors(p.x[0], p.x[1], Exact[what], "what it makes"));
      PairsTolerance = ROUNDED(1e-11);
      same           = (PetscBool)(PetscAbsReal(p.found[0] - p.found[1]) < (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-8));
      /* in parallel MatAIJGetLocalMat() takes what is not MATMPIAIJ by name for a sequential matrix: docs/differs.md */
      if (ok && (what != 1 || MatTestSize() == 1)) PetscCall(PairsCount(same, Exact[what], "what it finds"));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CasePreconditioners(void)
{
  const Kind kinds[] = {HOSTMADE, BORN};

  PetscFunctionBeginUser;
  for (PetscInt type = 0; type < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Preconditioners); type++)
    for (int q = 0; q < 2; q++) {
      Pair      p;
      PetscBool ok;

      PetscCall(PairMake(&p, kinds[q], TRIDIAGONAL, N, N));
      p.arg[0] = type;
      PetscCall(PairApply(&p, Precondition, Preconditioners[type], &ok));
      PairsTolerance = 1e-6; /* bounds of eigenvalues are estimated */
      if (ok) PetscCall(PairsVectors(p.x[0], p.x[1], Preconditioners[type], "PCApply"));
      PairsTolerance = ROUNDED(1e-11);
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What this PETSc can make of an AIJ matrix */
static const char *const Targets[] = {MATSELL, MATAIJPERM, MATAIJSELL, MATAIJCRL, MATBAIJ, MATSBAIJ, MATDENSE, MATIS, MATNEST, MATMAIJ, MATHYPRE, MATELEMENTAL, MATAIJMKL, "aijcusparse", "aijkokkos"};

/* What asks for the very type, by the two ways that docs/differs.md names: -mat_seqaij_type and a program's type aij,
   or a conversion to aij. No error is right then but MATAIJ's. */
static const struct {
  const char *name;
  PetscErrorCode (*op)(Pair *, int);
  PetscInt arg;
} Promised[] = {
  {"KAIJ",          Kronecker,    3 },
  {"IRK",           RungeKutta,   0 },
  {PCCP " way",     Precondition, 10},
  {PCTFS " way",    Precondition, 15},
  {"local parts",   ExactType,    1 },
  {"condensed",     ExactType,    2 },
  {"jp coloring",   ExactType,    3 },
  {"greedy",        ExactType,    4 },
  {"power",         ExactType,    7 },
  {"gamgclassical", ExactType,    8 },
  {"gamgdirect",    ExactType,    13},
  {"transposed",    ExactType,    14},
  {"inverse",       ExactType,    15}
};

static PetscErrorCode UseOption(PetscBool on)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestOption(on, "-mat_seqaij_type", "seqaijhybridgpu"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AsPromised(Pair *p, int k)
{
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  if (k && !p->arg[1]) PetscCall(UseOption(PETSC_TRUE));
  ierr = (*Promised[p->arg[2]].op)(p, k);
  PetscCall(UseOption(PETSC_FALSE));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode CasePromised(void)
{
  const Kind kinds[] = {HOSTMADE, BORN};

  PetscFunctionBeginUser;
  for (PetscInt what = 0; what < 4 * (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Promised); what++) {
    Pair           p;
    PetscBool      ok;
    const PetscInt way  = what % 2;
    const Kind     kind = kinds[what / 2 % 2];
    char           name[96];

    PetscCall(PetscMemzero(&p, sizeof(p)));
    PetscCall(PairsMake(kind, TRIDIAGONAL, MATAIJ, N, N, &p.m[0]));
    PetscCall(UseOption((PetscBool)!way));
    PetscCall(PairsMake(kind, TRIDIAGONAL, way ? "aijhybridgpu" : MATAIJ, N, N, &p.m[1]));
    PetscCall(UseOption(PETSC_FALSE));
    if (way) PetscCall(MatConvert(p.m[1], MATAIJ, MAT_INPLACE_MATRIX, &p.m[1]));
    p.arg[0] = Promised[what / 4].arg;
    p.arg[1] = way;
    p.arg[2] = what / 4;
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s, %s", Promised[what / 4].name, KindNames[kind], way ? "converted" : "by the option"));
    PetscCall(PairTry(&p, AsPromised, name, &ok));
    PairsTolerance = 1e-6;
    if (ok && p.x[0]) PetscCall(PairsVectors(p.x[0], p.x[1], name, "what it makes"));
    PairsTolerance = ROUNDED(1e-11);
    if (ok) PetscCall(PairsCount((PetscBool)(PetscAbsReal(p.found[0] - p.found[1]) < (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-8)), name, "what it finds"));
    PetscCall(PairDestroy(&p));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertTo(Pair *p, int k)
{
  Mat A = p->m[k];

  PetscFunctionBeginUser;
  if (p->arg[1] == 3) PetscCall(MatZeroEntries(A)); /* entries that are zero stay entries, but from dense */
  PetscCall(MatConvert(A, Targets[p->arg[0]], MAT_INITIAL_MATRIX, &p->out[k]));
  if (p->arg[1] == 0 || p->arg[1] == 3) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTestUse(p->out[k]));
  if (p->arg[1] == 1)
    PetscCall(MatScale(A, 3.0));
  else
    PetscCall(PairsWrite(A, TRIDIAGONAL, 7));
  PetscCall(MatConvert(A, Targets[p->arg[0]], MAT_REUSE_MATRIX, &p->out[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertBack(Pair *p, int k)
{
  const char *type = k ? "aijhybridgpu" : MATAIJ;
  Mat         A    = p->m[k];

  PetscFunctionBeginUser;
  if (p->arg[1] == 3) PetscCall(MatZeroEntries(A));
  PetscCall(MatConvert(A, Targets[p->arg[0]], MAT_INITIAL_MATRIX, &p->q[k]));
  if (p->arg[1] == 3) {
    PetscCall(MatConvert(p->q[k], type, MAT_INITIAL_MATRIX, &p->out[k]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (p->arg[1] == 0) {
    PetscCall(MatConvert(p->q[k], type, MAT_INPLACE_MATRIX, &p->q[k]));
    p->out[k] = p->q[k];
    p->q[k]   = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatConvert(p->q[k], type, MAT_INITIAL_MATRIX, &p->out[k]));
  PetscCall(MatTestUse(p->out[k]));
  if (p->arg[1] == 2) PetscCall(MatScale(p->out[k], 2.0));
  if (p->arg[1] == 2) PetscCall(MatScale(p->out[k], 2.0));
  PetscCall(MatScale(p->q[k], 3.0));
  PetscCall(MatConvert(p->q[k], type, MAT_REUSE_MATRIX, &p->out[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertInPlace(Pair *p, int k)
{
  PetscFunctionBeginUser;
  PetscCall(MatConvert(p->m[k], Targets[p->arg[0]], MAT_INPLACE_MATRIX, &p->m[k]));
  PetscCall(MatScale(p->m[k], 2.0));
  if (p->arg[1]) PetscCall(MatConvert(p->m[k], k ? "aijhybridgpu" : MATAIJ, MAT_INPLACE_MATRIX, &p->m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some of MATAIJ's conversions leave what they are given again as it was. Ours do the same or bring the new
   values, one of the two in all that reads them */
static PetscErrorCode CheckReused(Pair *p, const char *name)
{
  Mat source;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(p->m[0], MAT_COPY_VALUES, &source));
  if (p->q[0]) PetscCall(MatScale(source, 3.0)); /* as ConvertBack() did to what it converted */
  PairsQuiet  = PETSC_TRUE;
  PairsAgreed = PETSC_TRUE;
  PetscCall(PairsCompare(p->out[0], p->out[1], NULL, name));
  if (!PairsAgreed) {
    PairsAgreed = PETSC_TRUE;
    PetscCall(PairsProducts(source, p->out[1], name));
    PetscCall(PairsEntries(source, p->out[1], name));
  }
  PairsQuiet = PETSC_FALSE;
  PetscCall(MatDestroy(&source));
  PetscCall(PairsCount(PairsAgreed, name, "old values, or new ones, everywhere"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Conversions(PetscInt first, PetscInt last)
{
  static PetscErrorCode (*const ways[])(Pair *, int) = {ConvertTo, ConvertBack, ConvertInPlace};
  static const char *const names[]                   = {"to", "back from", "in place to"};
  const Kind               kinds[]                   = {HOSTMADE, BORN, PROMOTED, LOCKED};

  PetscFunctionBeginUser;
  for (PetscInt to = first; to < last; to++)
    for (int w = 0; w < 3; w++)
      for (int q = 0; q < 4; q++)
        for (PetscInt way = 0; way < (w == 2 ? 2 : 4); way++) {
          Pair      p;
          PetscBool ok;
          PetscBool is;
          char      name[128];

          PetscCall(PairMake(&p, kinds[q], TRIDIAGONAL, N, N));
          p.arg[0] = to;
          p.arg[1] = way;
          PetscCall(PetscSNPrintf(name, sizeof(name), "%s %s, %s, way %d", names[w], Targets[to], KindNames[kinds[q]], (int)way));
          PetscCall(PetscStrcmp(Targets[to], MATSBAIJ, &is));
          for (int k = 0; k < 2 && is; k++) PetscCall(MatSetOption(p.m[k], MAT_SYMMETRIC, PETSC_TRUE));
          if (way && way < 3 && w < 2) {
            PetscCall(PairTry(&p, ways[w], name, &ok));
            if (ok && p.out[0] && p.out[1]) PetscCall(CheckReused(&p, name));
          } else {
            PetscCall(PairTry(&p, ways[w], name, &ok));
            /* in place the states are those of what replaces it */
            if (ok) PetscCall(PairsCompare(p.m[0], p.m[1], w == 2 ? NULL : p.before, name));
            if (ok && p.out[0] && p.out[1]) PetscCall(PairsCompare(p.out[0], p.out[1], NULL, name));
          }
          PetscCall(PairDestroy(&p));
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseConversions(void)
{
  return Conversions(1, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Targets));
}

static PetscErrorCode CaseSell(void)
{
  return Conversions(0, 1);
}

static PetscErrorCode FromMAIJ(Pair *p, int k)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatCreateMAIJ(p->m[k], 3, &B));
  PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &p->out[k]));
  if (p->arg[0]) {
    PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_INPLACE_MATRIX, &B));
    PetscCall(MatDestroy(&p->out[k]));
    p->out[k] = B;
  } else
    PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P^T A P, P one interpolation for each of three unknowns, as DMDA makes it: the next level's unknowns are known by the
   block size, to its smoother as well */
static PetscErrorCode GalerkinMAIJ(Pair *p, int k)
{
  Mat      S, P;
  PetscInt rows, start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(p->m[k], &rows, NULL));
  PetscCall(MatTestRoom(MATAIJ, rows / 3, PETSC_DECIDE, PETSC_DETERMINE, N / 6, 2, &S, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscCall(MatSetValue(S, r, r / 2, 1.0, INSERT_VALUES));
    PetscCall(MatSetValue(S, r, (r + 1) / 2 % (N / 6), 0.5, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(S));
  PetscCall(MatCreateMAIJ(S, 3, &P));
  PetscCall(MatPtAP(p->m[k], P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k]));
  PetscCall(MatPtAP(p->m[k], P, MAT_REUSE_MATRIX, PETSC_DEFAULT, &p->out[k]));
  PetscCall(MatTestDestroy(&P, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseMAIJ(void)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt way = 0; way < 3 && PairsWanted(kind); way++) {
      Pair      p;
      PetscBool ok;

      if (way == 2 && N % (3 * MatTestSize())) continue; /* processes have whole nodes */
      PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, N));
      p.arg[0] = way;
      if (way < 2)
        PetscCall(PairApply(&p, FromMAIJ, "from MATMAIJ", &ok));
      else
        PetscCall(PairApply(&p, GalerkinMAIJ, "P^T A P, P of MATMAIJ", &ok));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one operand of another derived type */
static PetscErrorCode MixedProduct(Pair *p, int k)
{
  Mat A = p->arg[0] & 1 ? p->q[k] : p->m[k], B = p->arg[0] & 1 ? p->m[k] : p->q[k];

  PetscFunctionBeginUser;
  switch (p->arg[0] / 2) {
  case 0: PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k])); break;
  case 1: PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k])); break;
  default: PetscCall(MatPtAP(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseMixedProducts(void)
{
  PetscFunctionBeginUser;
  for (int to = 1; to < 4; to++)
    for (int born = 0; born < 2; born++)
      /* MATAIJ's product with a transpose on the right crashes with these in 3.18 */
      for (PetscInt what = 0; what < 6; what++) {
        Pair      p;
        PetscBool ok;
        char      name[64];

        PetscCall(PairMake(&p, born ? BORN : HOSTMADE, TRIDIAGONAL, N, N));
        PetscCall(PetscSNPrintf(name, sizeof(name), "product %d with %s", (int)what, Targets[to]));
        for (int k = 0; k < 2; k++) {
          PetscCall(PairsMake(HOSTMADE, WIDE, MATAIJ, N, N, &p.q[k]));
          PetscCall(MatConvert(p.q[k], Targets[to], MAT_INPLACE_MATRIX, &p.q[k]));
        }
        p.arg[0] = what;
        PetscCall(PairApply(&p, MixedProduct, name, &ok));
        PetscCall(PairDestroy(&p));
      }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Case cases[] = {
    CASE("dense", CaseDense, 1, 0),
    CASE("kaij", CaseKAIJ, 1, 0),
    CASE("irk", CaseIRK, 1, 0),
    CASE("preconditioners", CasePreconditioners, 1, 0),
    CASE("exact", CaseExact, 1, 0),
    CASE("promised", CasePromised, 1, 0),
    CASE("conversions", CaseConversions, 1, 0),
    CASE("maij", CaseMAIJ, 1, 0),
    CASE("mixedproducts", CaseMixedProducts, 1, 0),
    CASE("sell", CaseSell, 1, 0),
  };

  return CasesMain(argc, argv, "Types beside MATAIJ's\n", cases, (int)PETSC_STATIC_ARRAY_LENGTH(cases));
}

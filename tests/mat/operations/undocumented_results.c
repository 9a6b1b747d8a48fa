/*
  Results beside MATAIJ's where AIJ does something that its manual does not say: patterns that are not what was
  claimed of them, claims that a new pattern ends, Inf and NaN, what a duplicate and a transpose in place keep.
  Each case is done to both alike, on matrices of all the origins that pairs.h knows.

TEST np=1,2+3
TEST np=1 @emulated
TEST np=+1 @emulated -mat_aijhybridgpu_memory mirror -cases equalpatterns,claims,nosubset,wild,transposeinplace,shift,duplicates,nodes,partsagain,renewed,optionskept
TEST np=1 @emulated -mat_aijhybridgpu_lock_after 2 -mat_aijhybridgpu_lock_min 1 -kind 5
TEST np=2 @emulated -kind 1 -cases claims,wild,transposeinplace,shift,firstassembly,relax,nodes
TEST np=2 @emulated -kind 4 -cases shift
TEST np=2 @emulated -kind 1 -cases renewed,optionskept
TEST np=2 @emulated -cases newcoordinates

  -cases: of these alone; -kind N: where a case goes through all origins, this one alone; -trail prints what is
  done before it is
*/
#include "undocumented_sums.h"
#include <unistd.h>

static PetscErrorCode TransposeInPlace(Pair *p, int k)
{
  PetscFunctionBeginUser;
  PetscCall(MatTranspose(p->m[k], MAT_INPLACE_MATRIX, &p->m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseTransposeInPlace(void)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt n = 7; n <= N && PairsWanted(kind); n += N - 7) {
      Pair      p;
      PetscBool ok;
      char      name[64];

      PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, n));
      PetscCall(PetscSNPrintf(name, sizeof(name), "transposed in place, %s, %d columns", KindNames[kind], (int)n));
      PetscCall(Adorn(&p));
      /* a symmetric one is left as it is */
      for (int k = 0; k < 2; k++) PetscCall(MatSetOption(p.m[k], MAT_SYMMETRIC, PETSC_FALSE));
      PetscCall(PairTry(&p, TransposeInPlace, name, &ok));
      /* MATAIJ is another object then, with that one's states */
      if (ok) PetscCall(PairsCompare(p.m[0], p.m[1], NULL, name));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries of the diagonal that were not there: claims and states after that */
static PetscErrorCode Shift(Pair *p, int k)
{
  Vec d;

  PetscFunctionBeginUser;
  if (p->arg[0]) {
    PetscCall(MatCreateVecs(p->m[k], NULL, &d));
    PetscCall(VecSet(d, 2.0));
    PetscCall(MatDiagonalSet(p->m[k], d, p->arg[0] == 1 ? ADD_VALUES : INSERT_VALUES));
    PetscCall(VecDestroy(&d));
  } else
    PetscCall(MatShift(p->m[k], 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseShift(void)
{
  static const char *const names[] = {"MatShift", "MatDiagonalSet, added", "MatDiagonalSet, inserted"}, *const which[] = {"all there", "none there", "without entries"};
  const Pattern patterns[] = {TRIDIAGONAL, NODIAGONAL, EMPTY};

  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt op = 0; op < 3 && PairsWanted(kind); op++)
      for (int q = 0; q < 3; q++)
        for (int claim = 0; claim < 2; claim++) {
          Pair      p;
          PetscBool ok;
          char      name[128];

          /* MATAIJ's state after coordinates is not its blocks' sum */
          if (PETSC_VERSION_LT(3, 22, 0) && MatTestSize() > 1 && kind == BORN) continue;
          PetscCall(PairMake(&p, kind, patterns[q], N, N));
          PetscCall(Adorn(&p));
          for (int k = 0; k < 2; k++) {
            if (!claim) PetscCall(MatSetOption(p.m[k], MAT_SYMMETRIC, PETSC_FALSE));
            if (!claim) PetscCall(MatSetOption(p.m[k], MAT_STRUCTURALLY_SYMMETRIC, PETSC_FALSE));
            PetscCall(MatSetOption(p.m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
          }
          p.arg[0] = op;
          PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s, %s", names[op], KindNames[kind], which[q]));
          PetscCall(PairApply(&p, Shift, name, &ok));
          PetscCall(PairDestroy(&p));
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATAIJ relaxes rows of equal patterns together: not the same result as one after the other */
static PetscErrorCode Relax(Pair *p, int k)
{
  const MatSORType types[] = {SOR_LOCAL_FORWARD_SWEEP, SOR_LOCAL_BACKWARD_SWEEP, SOR_LOCAL_SYMMETRIC_SWEEP};
  Mat              A       = p->m[k];
  Vec              b;

  PetscFunctionBeginUser;
  if (p->arg[0] / 3 == 1) {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &p->out[k]));
    A = p->out[k];
  }
  if (p->arg[0] / 3 == 2) PetscCall(MatScale(A, 2.0));
  PetscCall(MatCreateVecs(A, &p->x[k], &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(VecSet(p->x[k], 0.25));
  PetscCall(MatSOR(A, b, 1.0, types[p->arg[0] % 3], 0.0, 1, 1, p->x[k]));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const RelaxNames[] = {"forward", "backward", "symmetric", "a duplicate, forward", "a duplicate, backward", "a duplicate, symmetric", "scaled, forward", "scaled, backward", "scaled, symmetric"};

/* It orders and colors them together too, whoever made the matrix, and after a conversion to its type */
static PetscErrorCode GoByNodes(Pair *p, int k)
{
  Mat             A = p->m[k];
  IS              rows, columns;
  MatColoring     coloring;
  ISColoring      colors;
  const PetscInt *found;

  PetscFunctionBeginUser;
  if (p->arg[0] < 2) {
    PetscCall(MatGetOrdering(A, p->arg[0] ? MATORDERINGRCM : MATORDERINGND, &rows, &columns));
    PetscCall(ISGetIndices(rows, &found));
    for (PetscInt r = 0; r < A->rmap->n; r++) p->found[k] += (r + 1) * found[r];
    PetscCall(ISRestoreIndices(rows, &found));
    PetscCall(MatTestDestroy(&rows, &columns));
  } else if (p->arg[0] == 2) {
    const ISColoringValue *color;

    PetscCall(MatColoringCreate(A, &coloring));
    PetscCall(MatColoringSetType(coloring, MATCOLORINGLF));
    PetscCall(MatColoringApply(coloring, &colors));
    PetscCall(ISColoringGetColors(colors, NULL, NULL, &color));
    for (PetscInt r = 0; r < A->rmap->n; r++) p->found[k] += (r + 1) * color[r];
    PetscCall(ISColoringDestroy(&colors));
    PetscCall(MatColoringDestroy(&coloring));
  } else if (p->arg[0] < 5) {
    PetscCall(MatDuplicate(A, p->arg[0] == 3 ? MAT_SHARE_NONZERO_PATTERN : MAT_DO_NOT_COPY_VALUES, &p->out[k]));
    PetscCall(MatCopy(A, p->out[k], SAME_NONZERO_PATTERN));
  } else if (p->arg[0] == 5) {
    PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &p->out[k]));
  } else {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &p->out[k]));
    PetscCall(MatConvert(p->out[k], MATAIJ, MAT_INPLACE_MATRIX, &p->out[k]));
  }
  if (p->arg[0] > 2) {
    Vec b;

    PetscCall(MatCreateVecs(A, &p->x[k], &b));
    PetscCall(VecSet(b, 1.0));
    PetscCall(MatSOR(p->out[k], b, 1.0, (MatSORType)(SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS), 0.0, 1, 1, p->x[k]));
    PetscCall(VecDestroy(&b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseNodes(void)
{
  static const char *const names[] = {"nested dissection", "Cuthill-McKee", "a coloring", "MatSOR of a duplicate that shares", "MatSOR of a duplicate without values", "MatSOR after MatConvert", "MatSOR after MatConvert in place"};
  const Each               each    = {"by nodes", names, NODES, N, N, MatTestSize() > 1 ? 3 : 0, 7, GoByNodes, PairsFound, PETSC_FALSE};

  return PairsEach(&each);
}

/* Where AIJ found no nodes it never looks for them again in the same data, whatever the pattern is then: first a
   pattern without, with or of no entries, then one with nodes, by all the ways to it. In a product without entries AIJ
   finds nodes, or none, by how its method has allocated nothing: left out. */
static PetscErrorCode NodesAgain(Pair *p, int k)
{
  const Pattern  before[] = {TRIDIAGONAL, NODES, EMPTY, LAST};
  const PetscInt way      = p->arg[0] / 4;
  const char    *type     = k ? "aijhybridgpu" : MATAIJ;
  Mat            A, D;
  Vec            b;
  IS             rows, columns;
  PetscInt       start, end;

  PetscFunctionBeginUser;
  /* so it is left out in old releases, where a matrix without entries that coordinates made says nothing either */
  if (before[p->arg[0] % 4] == EMPTY && (p->arg[1] == PRODUCT || PETSC_VERSION_LT(3, 22, 0))) PetscFunctionReturn(PETSC_SUCCESS);
  /* of the first and the last column a process between the others has none in its own block */
  if (before[p->arg[0] % 4] == LAST && p->arg[1] == PRODUCT && MatTestSize() > 2) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PairsMake((Kind)p->arg[1], before[p->arg[0] % 4], type, N, N, &A));
  p->out[k] = A;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  switch (way) {
  case 0: /* by coordinates */
  case 1: /* and of a duplicate of that */
    PetscCall(PairsPatternCOO(A, NODES));
    PetscCall(PairsWriteCOO(A, NODES, 1, INSERT_VALUES));
    break;
  case 2: /* by new entries */
    PetscCall(PairsWrite(A, NODES, 1));
    break;
  case 3: /* by another preallocation */
    PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 3, NULL, 3, NULL));
    PetscCall(PairsWrite(A, NODES, 1));
    break;
  case 4: { /* rows get shorter: pairs of rows without entries are alike */
    PetscInt zero[N], n = 0;

    for (PetscInt r = start; r < end; r++)
      if (r % 3) zero[n++] = r;
    PetscCall(MatZeroRows(A, n, zero, 0.0, NULL, NULL));
    break;
  }
  case 5: /* what was said of nodes is kept over coordinates */
    PetscCall(MatSetOption(A, MAT_USE_INODES, PETSC_FALSE));
    PetscCall(PairsPatternCOO(A, NODES));
    PetscCall(PairsWriteCOO(A, NODES, 1, INSERT_VALUES));
    break;
  default: /* by values alone, the pattern stays: the parent assembles */
    PetscCall(MatShift(A, 1.0));
    PetscCall(MatTestAssemble(A));
  }
  if (way == 1) {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &D));
    PetscCall(MatDestroy(&p->out[k]));
    p->out[k] = A = D;
  }
  if (way == 4) PetscCall(MatShift(A, 5.0));
  PetscCall(MatCreateVecs(A, &p->x[k], &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(MatSOR(A, b, 1.0, (MatSORType)(SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS), 0.0, 1, 1, p->x[k]));
  PetscCall(VecDestroy(&b));
  if (MatTestSize() == 1) {
    const PetscInt *found;

    PetscCall(MatGetOrdering(A, MATORDERINGRCM, &rows, &columns));
    PetscCall(ISGetIndices(rows, &found));
    for (PetscInt r = 0; r < A->rmap->n; r++) p->found[k] += (r + 1) * found[r];
    PetscCall(ISRestoreIndices(rows, &found));
    PetscCall(MatTestDestroy(&rows, &columns));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before 3.22 MATAIJ's blocks of coordinates claim that their arrays were allocated one by one, and the first new entry
   of a parallel matrix frees an address that nothing allocated */
static PetscBool NewEntriesCrash(void)
{
  return (PetscBool)(PETSC_VERSION_LT(3, 22, 0) && MatTestSize() > 1);
}

#define FROM(what) what ", from none", what ", from nodes", what ", from no entries", what ", from two columns"
static PetscErrorCode CaseNodesAgain(void)
{
  static const char *const names[] = {FROM("coordinates"), FROM("coordinates and a duplicate"), FROM("new entries"), FROM("another preallocation"), FROM("shorter rows"), FROM("coordinates, no nodes wanted"), FROM("the pattern stays")};
  const Each               each    = {"nodes of another pattern", names, TRIDIAGONAL, N, N, 0, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(names), NodesAgain, PairsFound, PETSC_FALSE};

  PetscFunctionBeginUser;
  if (NewEntriesCrash()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PairsEach(&each));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatSetOption() said stays in AIJ's data, in whatever type's hands, until it is asked for: rows are zeroed, zeros
   are inserted, values come by columns or for another process */
static PetscErrorCode OptionsKept(Pair *p, int k)
{
  const MatOption   options[] = {MAT_KEEP_NONZERO_PATTERN, MAT_IGNORE_ZERO_ENTRIES, MAT_UNUSED_NONZERO_LOCATION_ERR, MAT_ROW_ORIENTED, MAT_NEW_NONZERO_LOCATIONS, MAT_IGNORE_OFF_PROC_ENTRIES};
  const PetscInt    what = p->arg[0] % 6, way = p->arg[0] / 6;
  const PetscBool   flg    = (PetscBool)(what < 3 || what == 5);
  const PetscScalar two[4] = {1.5, 2.5, 3.5, 4.5}, zeros[4] = {0, 0, 0, 0};
  PetscInt          start, end, rows[2], far[2], next;
  Mat               D;

  PetscFunctionBeginUser;
  if (way == 3) PetscCall(MatSetOption(p->m[k], options[what], flg));
  PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &D));
  p->out[k] = D;
  if (way < 2) PetscCall(MatSetOption(D, options[what], flg));
  if (way != 3) PetscCall(MatConvert(D, MATAIJ, MAT_INPLACE_MATRIX, &D));
  if (way == 2) PetscCall(MatSetOption(D, options[what], flg));
  if (way != 3) PetscCall(MatConvert(D, k ? "aijhybridgpu" : MATAIJ, MAT_INPLACE_MATRIX, &D));
  PetscCall(MatGetOwnershipRange(D, &start, &end));
  if (way == 1 || way == 2) {
    PetscCall(PairsPatternCOO(D, WIDE));
    PetscCall(PairsWriteCOO(D, WIDE, 2, INSERT_VALUES));
  }
  rows[0] = start;
  rows[1] = start + 1;
  far[0]  = (start + 9) % N;
  far[1]  = (start + 12) % N;
  next    = end % N; /* another process's row, where there are several */
  if (what && what < 4) PetscCall(MatSetOption(D, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  if (what == 0) PetscCall(MatZeroRows(D, 2, rows, 1.0, NULL, NULL));
  if (what == 1) PetscCall(MatSetValues(D, 2, rows, 2, far, zeros, ADD_VALUES));
  if (what == 2) PetscCall(MatAXPY(D, 2.0, p->m[k], DIFFERENT_NONZERO_PATTERN));
  if (what == 3) PetscCall(MatSetValues(D, 2, rows, 2, rows, two, INSERT_VALUES));
  if (what == 4) PetscCall(MatSetValues(D, 2, rows, 2, far, two, INSERT_VALUES));
  if (what == 5) PetscCall(MatSetOption(D, MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE)); /* which MATAIJ's products have */
  if (what == 5) PetscCall(MatSetValues(D, 1, &next, 1, &next, two, ADD_VALUES));
  PetscCall(MatTestAssemble(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define OF_EACH(what) what ", the pattern is kept", what ", zeros are ignored", what ", unused room", what ", by columns", what ", no new entries", what ", of other processes"
static PetscErrorCode CaseOptionsKept(void)
{
  static const char *const names[] = {OF_EACH("over MatConvert"), OF_EACH("over MatConvert, coordinates"), OF_EACH("said amid MatConvert, coordinates"), OF_EACH("duplicated")};
  const Each               each    = {"options", names, TRIDIAGONAL, N, N, 0, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(names), OptionsKept, NULL, PETSC_FALSE};

  PetscFunctionBeginUser;
  if (NewEntriesCrash()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PairsEach(&each));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of parts whose columns are in another order, or whose rows are repeated */
static PetscErrorCode PartProduct(Pair *p, int k)
{
  Mat A = p->m[k];

  PetscFunctionBeginUser;
  switch (p->arg[0]) {
  case 0: PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k])); break;
  case 1: PetscCall(MatTransposeMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k])); break;
  case 2: PetscCall(MatPtAP(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p->out[k])); break;
  default: PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &p->out[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseParts(void)
{
  const Kind kinds[] = {HOSTMADE, BORN};

  PetscFunctionBeginUser;
  if (MatTestSize() > 1) (void)alarm(60); /* where one process has an error, the others wait */
  for (int q = 0; q < 2; q++)
    for (PetscInt op = 0; op<4; op += MatTestSize()> 1 ? 3 : 1) /* of the others MATAIJ of 3.26 waits for ever */
      for (int order = 0; order < 4; order++) {
        Pair      p;
        PetscBool ok;
        char      name[128];

        PetscCall(PairMake(&p, kinds[q], WIDE, N, N));
        for (int k = 0; k < 2; k++) {
          PetscInt n = p.m[k]->rmap->n, first = p.m[k]->rmap->rstart, *idx;
          IS       is[2];
          Mat      S;

          for (int e = 0; e < 2; e++) {
            PetscCall(PetscMalloc1(n, &idx));
            for (PetscInt r = 0; r < n; r++) idx[r] = first + (e && order & 1 ? (r + 3) % n : !e && order & 2 ? r / 2
                                                                                                              : r);
            PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, n, idx, PETSC_OWN_POINTER, &is[e]));
          }
          PetscCall(MatCreateSubMatrix(p.m[k], is[0], is[1], MAT_INITIAL_MATRIX, &S));
          for (int e = 0; e < 2; e++) PetscCall(ISDestroy(&is[e]));
          PetscCall(MatDestroy(&p.m[k]));
          p.m[k] = S;
        }
        p.arg[0] = op;
        PetscCall(PetscSNPrintf(name, sizeof(name), "of parts, %s, operation %d, %s, %s", KindNames[kinds[q]], (int)op, order & 1 ? "columns in another order" : "columns in order", order & 2 ? "rows repeated" : "rows as they are"));
        PetscCall(PairApply(&p, PartProduct, name, &ok));
        PetscCall(PairDestroy(&p));
      }
  (void)alarm(0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was said of the old pattern ends with the first values of new coordinates, where there was an assembly before */
static PetscErrorCode NewCoordinates(Pair *p, int k)
{
  Mat         A = p->m[k];
  PetscInt    i[2 * N], j[2 * N], start, end, n = 0;
  PetscScalar v[2 * N];

  PetscFunctionBeginUser;
  if (p->arg[0] & 1) PetscCall(MatTestAssemble(A));
  PetscCall(MatSetOption(A, p->arg[0] & 2 ? MAT_SYMMETRIC : MAT_STRUCTURALLY_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt c = r; c < PetscMin(r + 2, N); c++, n++) {
      i[n] = r;
      j[n] = c;
      v[n] = 1.0 + (PetscReal)n;
    }
  PetscCall(MatSetPreallocationCOO(A, n, i, j));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  if (p->arg[0] & 4) PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first assembly of what operations have made moves the state of the pattern as little as MATAIJ's does */
static PetscErrorCode Assemble(Pair *p, int k)
{
  return MatTestAssemble(p->m[k]);
}

static PetscErrorCode CaseFirstAssembly(void)
{
  static const char *const names[] = {"as it is", "duplicated", "transposed", "a part", "a part again", "a product", "coordinates"};

  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (PetscInt way = 0; way < 10 && PairsWanted(kind); way++) { /* the last three again, of a rectangular one */
      Pair      p;
      PetscBool ok;
      char      name[128];

      PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, way < 7 ? N : 7));
      for (int k = 0; k < 2; k++) {
        Mat A = p.m[k];
        IS  is;

        if (way % 7 == 1) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &p.m[k]));
        if (way % 7 == 2) PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &p.m[k]));
        if (way == 3 || way == 4) {
          PetscCall(ISCreateStride(PETSC_COMM_WORLD, A->rmap->n / 2, A->rmap->rstart, 1, &is));
          PetscCall(MatCreateSubMatrix(A, is, is, MAT_INITIAL_MATRIX, &p.m[k]));
          if (way == 4) PetscCall(MatCreateSubMatrix(A, is, is, MAT_REUSE_MATRIX, &p.m[k]));
          PetscCall(ISDestroy(&is));
        }
        if (way == 5) PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &p.m[k]));
        if (way == 6) PetscCall(PairsMakeCOO(k ? "aijhybridgpu" : MATAIJ, WIDE, N, N, &p.m[k]));
        if (way % 7) PetscCall(MatDestroy(&A));
        PetscCall(MatSetOption(p.m[k], MAT_STRUCTURALLY_SYMMETRIC, PETSC_FALSE));
        /* in parallel the state is formed anew then */
        PetscCall(MatSetOption(p.m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      }
      PetscCall(PetscSNPrintf(name, sizeof(name), "assembled, %s, %s", KindNames[kind], names[way % 7]));
      PetscCall(PairApply(&p, Assemble, name, &ok));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A part that is used again where its values come from elsewhere: from a matrix or columns that it was not made of, of
   its pattern, of other columns in rows as long, or of rows of other lengths, which AIJ refuses */
static PetscErrorCode PartAgain(Pair *p, int k)
{
  const PetscInt first[] = {4, 4, 3, 5, 4};
  const PetscInt way     = p->arg[0] / 2;
  Mat            A       = p->m[k], S;
  IS             rows, columns[2];

  PetscFunctionBeginUser;
  if (way == 4) PetscCall(PairsMake((Kind)p->arg[1], NODIAGONAL, k ? "aijhybridgpu" : MATAIJ, N, N, &p->q[k]));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 8, 4, 1, &rows));
  for (int e = 0; e < 2; e++) {
    PetscCall(ISCreateStride(PETSC_COMM_SELF, 8, e ? first[way] : 4, 1, &columns[e]));
    if (p->arg[0] % 2) PetscCall(ISToGeneral(columns[e]));
  }
  PetscCall(MatCreateSubMatrix(A, rows, columns[0], MAT_INITIAL_MATRIX, &S));
  PetscCall(MatTestUse(S));
  PetscCall(MatScale(A, 2.0));
  if (way == 1) {
    PetscCall(MatDuplicate(S, MAT_COPY_VALUES, &p->out[k]));
    PetscCall(MatDestroy(&S));
  } else
    p->out[k] = S;
  p->found[k] = (PetscReal)MatCreateSubMatrix(way == 4 ? p->q[k] : A, rows, columns[1], MAT_REUSE_MATRIX, &p->out[k]);
  PetscCall(MatTestUse(p->out[k]));
  PetscCall(ISDestroy(&rows));
  for (int e = 0; e < 2; e++) PetscCall(ISDestroy(&columns[e]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const PartNames[] = {"the same columns", "the same columns, listed", "of a duplicate", "of a duplicate, listed", "columns before", "columns before, listed", "columns behind", "columns behind, listed", "another matrix", "another matrix, listed"};

/* a duplicate has never been assembled: its first assembly ends no claims, and MatResetPreallocation() of it is
   nothing */
static PetscErrorCode FromDuplicate(Pair *p, int k)
{
  Mat D;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &D));
  PetscCall(MatSetOption(D, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatSetOption(D, MAT_SPD, PETSC_TRUE));
  p->out[k] = D;
  if (p->arg[0] == 1) PetscCall(MatTestAssemble(D));
  if (p->arg[0] == 2) PetscCall(MatResetPreallocation(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const DuplicateNames[] = {"as it is", "assembled", "MatResetPreallocation"};

/* euler: on several processes MATAIJ's coordinates are lost */
static const Case Cases[] = {
  CASE("equalpatterns", CaseEqualPatterns, 1, 0),
  CASE("euler", CaseEuler, 1, 1),
  CASE("claims", CaseClaims, 1, 0),
  CASE("nosubset", CaseNoSubset, 1, 0),
  CASE("aggregation", CaseAggregation, 1, 1),
  CASE("wild", CaseWild, 1, 0),
  CASE("transposeinplace", CaseTransposeInPlace, 1, 0),
  CASE("shift", CaseShift, 1, 0),
  CASE_EACH("duplicates", 1, 0, "a duplicate", DuplicateNames, TRIDIAGONAL, N, N, 0, 3, FromDuplicate, NULL, PETSC_FALSE),
  CASE_EACH("relax", 1, 0, "MatSOR", RelaxNames, NODES, N, N, 0, 9, Relax, PairsFound, PETSC_FALSE),
  CASE("nodes", CaseNodes, 1, 0),
  CASE("renewed", CaseNodesAgain, 1, 0),
  CASE("optionskept", CaseOptionsKept, 1, 0),
  CASE("firstassembly", CaseFirstAssembly, 1, 0),
  CASE_EACH("newcoordinates", 1, 0, "claims over new coordinates", NULL, TRIDIAGONAL, N, N, 0, 8, NewCoordinates, NULL, PETSC_FALSE),
  CASE_EACH("partsagain", 1, 1, "a part again", PartNames, TRIDIAGONAL, N, N, 0, 10, PartAgain, PairsFound, PETSC_FALSE),
  CASE("parts", CaseParts, 1, 0),
};

int main(int argc, char **argv)
{
  return CasesMain(argc, argv, "Results beside MATAIJ's\n", Cases, (int)PETSC_STATIC_ARRAY_LENGTH(Cases));
}

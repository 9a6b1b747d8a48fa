/*
  Arrays that are lent, replaced, kept or written unseen, beside MATAIJ: rows, columns and values that a program
  holds while it goes on, headers that get other contents, colorings that remember where values lie, columns that
  are set in place, matrices that are loaded over others. Cases whose fault is the use of freed memory come last.

TEST np=1,2
TEST np=1,2 @emulated
TEST np=3 @emulated -cases coloring,block,reset,zeroheld
TEST np=+1,2 @emulated -mat_aijhybridgpu_memory mirror
TEST np=1 @emulated -mat_aijhybridgpu_lock_after 2 -mat_aijhybridgpu_lock_min 1
TEST np=+1 @emulated -mat_aijhybridgpu_lock_after 2 -mat_aijhybridgpu_lock_min 1 -mat_aijhybridgpu_memory mirror
TEST np=1 @emulated -mat_aijhybridgpu_lock_after 2 -mat_aijhybridgpu_lock_min 1 -malloc_debug -cases load
*/
#include "cases.h"
#include <unistd.h>

#define N 24

/* What follows: writes by entries and by operations, and uses, that find any state that was left behind */
static PetscErrorCode GoOn(Pair *p, int k)
{
  Mat      A = p->m[k];
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) PetscCall(MatSetValue(A, r, r, 5.0 + (PetscReal)(r % 3), INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(MatTestUse(A));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(A, 0.25));
  PetscCall(MatTestUse(A));
  PetscCall(PairsWriteArrays(A, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C is written and used and written, and A gets what it is */
static PetscErrorCode Header(Pair *p, int k)
{
  Mat C;

  PetscFunctionBeginUser;
  if (p->arg[0] & 1)
    PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &C));
  else
    PetscCall(PairsMake((Kind)p->arg[1], TRIDIAGONAL, k ? "aijhybridgpu" : MATAIJ, N, N, &C));
  PetscCall(PairsWriteArrays(C, 1));
  PetscCall(MatTestUse(C));
  PetscCall(PairsWriteArrays(C, 2));
  PetscCall(MatHeaderReplace(p->m[k], &C));
  if (p->arg[0] & 2) PetscCall(MatTestUse(p->m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what was read by pointers is the same, and so is all that follows */
static PetscErrorCode ThenGoOn(Pair *p, const char *name)
{
  char      then[192];
  PetscBool ok;

  PetscFunctionBeginUser;
  PetscCall(PairsFound(p, name));
  PetscCall(PetscSNPrintf(then, sizeof(then), "%s, and then", name));
  PetscCall(PairApply(p, GoOn, then, &ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* finite differences, several times, of a function whose Jacobian is another each time */
static PetscInt       Round;
static PetscErrorCode Function(void *nothing, Vec x, Vec f, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(MatMult(*(Mat *)ctx, x, f));
  PetscCall(VecScale(f, 1.0 + (PetscReal)Round));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseColoring(void)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++) {
    Pair             p;
    Mat              F;
    Vec              x;
    MatFDColoring    c[2];
    ISColoring       colors;
    ISColoringValue *value;
    PetscInt         start, end;
    char             name[64];

    PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, N));
    PetscCall(PairsMakeHost(MATAIJ, TRIDIAGONAL, N, N, &F));
    PetscCall(MatCreateVecs(F, &x, NULL));
    PetscCall(VecSet(x, 1.0));
    for (int k = 0; k < 2; k++) {
      PetscCall(MatGetOwnershipRangeColumn(p.m[k], &start, &end));
      PetscCall(PetscMalloc1(end - start, &value));
      for (PetscInt q = start; q < end; q++) value[q - start] = (ISColoringValue)(q % 3);
      PetscCall(ISColoringCreate(PETSC_COMM_WORLD, 3, end - start, value, PETSC_OWN_POINTER, &colors));
      PetscCall(MatFDColoringCreate(p.m[k], colors, &c[k]));
      PetscCall(MatFDColoringSetFunction(c[k], (void *)Function, &F));
      PetscCall(MatFDColoringSetUp(p.m[k], colors, c[k]));
      PetscCall(ISColoringDestroy(&colors));
    }
    for (Round = 1; Round < 6; Round++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "finite differences, %s, time %d", KindNames[kind], (int)Round));
      for (int k = 0; k < 2; k++) PetscCall(SeenGet(p.m[k], &p.before[k]));
      for (int k = 0; k < 2; k++) PetscCall(MatFDColoringApply(p.m[k], c[k], x, NULL));
      PetscCall(PairsCompare(p.m[0], p.m[1], p.before, name));
      if (Round < 4) continue;
      for (int k = 0; k < 2; k++) PetscCall(MatScale(p.m[k], 2.0));
      for (int k = 0; k < 2; k++) PetscCall(MatScale(p.m[k], 3.0));
      PetscCall(PairsCompare(p.m[0], p.m[1], NULL, name));
    }
    for (int k = 0; k < 2; k++) PetscCall(MatFDColoringDestroy(&c[k]));
    PetscCall(MatTestDestroy(&x, &F));
    PetscCall(PairDestroy(&p));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* each row's columns become the next ones, but for the last two rows */
static PetscErrorCode Columns(Pair *p, int k)
{
  Mat             A = p->m[k];
  const PetscInt *ia, *ja;
  PetscInt        n, *j;
  PetscBool       done;

  PetscFunctionBeginUser;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscCall(PetscMalloc1(ia[n], &j));
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt q = ia[r]; q < ia[r + 1]; q++) j[q] = ja[q] + (r < n - 2);
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscCall(MatSeqAIJSetColumnIndices(A, j));
  if (p->arg[0]) PetscCall(MatTestAssemble(A));
  PetscCall(PetscFree(j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const ColumnsNames[] = {"no more", "and assembly"};

/* one pointer, got once, written before each assembly */
static PetscErrorCode CaseHeld(void)
{
  PetscFunctionBeginUser;
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (int between = 0; between < 3 && PairsWanted(kind); between++) {
      Pair         p;
      PetscScalar *a[2];
      MatInfo      info;
      PetscInt     failed = MatTestFailed;
      char         name[96];

      PetscCall(PairMake(&p, kind, TRIDIAGONAL, N, N));
      for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJGetArray(p.m[k], &a[k]));
      PetscCall(MatGetInfo(p.m[0], MAT_LOCAL, &info));
      for (PetscInt round = 0; round < 30 && MatTestFailed == failed; round++) {
        for (int k = 0; k < 2; k++) {
          for (PetscInt q = 0; q < (PetscInt)info.nz_used; q++) a[k][q] = 1.0 + (PetscReal)((3 * q + 5 * round) % 17) / 4.0;
          PetscCall(MatTestAssemble(p.m[k]));
          PetscCall(MatTestUse(p.m[k]));
          if (between == 1) PetscCall(MatScale(p.m[k], 2.0));
          if (between == 2 && round % 10 == 9) {
            PetscCall(MatScale(p.m[k], 2.0));
            PetscCall(MatScale(p.m[k], 2.0));
            PetscCall(MatScale(p.m[k], 2.0));
          }
        }
        PetscCall(PetscSNPrintf(name, sizeof(name), "a held array, %s, way %d, round %d", KindNames[kind], between, (int)round));
        PetscCall(PairsProducts(p.m[0], p.m[1], name));
        PetscCall(PairsCount(PairsScalarsAgree(a[0][3], a[1][3], 1.0), name, "the value at the pointer"));
      }
      for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJRestoreArray(p.m[k], &a[k]));
      PetscCall(PairsCompare(p.m[0], p.m[1], NULL, name));
      PetscCall(PairDestroy(&p));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reset(Pair *p, int k)
{
  PetscFunctionBeginUser;
  /* of a product there is none to go back to, and each of the two has an error of its own for that */
  if (p->arg[1] == PRODUCT) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatResetPreallocation(p->m[k]));
  PetscCall(PairsWrite(p->m[k], p->arg[0] ? NODIAGONAL : TRIDIAGONAL, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* another matrix's file is loaded over this one */
static char           File[PETSC_MAX_PATH_LEN];
static PetscErrorCode Load(Pair *p, int k)
{
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, File, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(p->m[k], viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseLoad(void)
{
  const Pattern     patterns[] = {TRIDIAGONAL, WIDE, NODIAGONAL};
  const PetscMPIInt rank       = MatTestRank();
  int               id         = (int)getpid();

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Bcast(&id, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  PetscCall(PetscSNPrintf(File, sizeof(File), "/tmp/lent_arrays-%d.bin", id));
  for (int q = 0; q < 3; q++) {
    /* in parallel its states are its new blocks' sum */
    const Each     each = {q ? "MatLoad of another pattern" : "MatLoad", NULL, TRIDIAGONAL, N, N, q, q + 1, Load, ThenGoOn, (PetscBool)(MatTestSize() > 1)};
    Mat            A;
    PetscViewer    viewer;
    PetscLogDouble before, after;

    PetscCall(PairsMakeHost(MATAIJ, patterns[q], N, N, &A));
    PetscCall(PairsWrite(A, patterns[q], 3));
    PetscCall(PetscViewerCreate(PETSC_COMM_WORLD, &viewer));
    PetscCall(PetscViewerSetType(viewer, PETSCVIEWERBINARY));
    PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
    PetscCall(PetscViewerFileSetMode(viewer, FILE_MODE_WRITE));
    PetscCall(PetscViewerFileSetName(viewer, File));
    PetscCall(MatView(A, viewer));
    PetscCall(MatTestDestroy(&viewer, &A));
    PetscCall(PairsEach(&each));
    PetscCall(PetscMallocGetCurrentUsage(&before)); /* 0 without -malloc_debug */
    PetscCall(PairsEach(&each));
    PetscCall(PetscMallocGetCurrentUsage(&after));
    if (before != after) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%g bytes before, %g after\n", before, after));
    PetscCall(PairsCount((PetscBool)(before == after), "MatLoad", "memory that nobody gives back"));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    if (!rank) (void)unlink(File);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host writes values while the device has a product yet to do, whose operands and result are there: the result
   must be of the old ones. Only where vectors are the device's. */
static PetscErrorCode CaseQueued(void)
{
  PetscErrorCode ierr = PETSC_ERR_SUP;
  Vec            x    = NULL;
  STACK_SAVE;

  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  {
    char      library[PETSC_MAX_PATH_LEN];
    PetscBool emulated;

    PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", library, sizeof(library), &emulated));
    if (!emulated && access("/dev/nvidia0", F_OK) == 0) {
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = VecCreate(PETSC_COMM_WORLD, &x);
      if (!ierr) ierr = VecSetSizes(x, PETSC_DECIDE, 200000);
      if (!ierr) ierr = VecSetType(x, VECCUDA);
      if (!ierr) ierr = VecSet(x, 1.0);
      PetscCall(PetscPopErrorHandler());
      STACK_RESTORE;
    }
  }
#endif
  if (ierr) {
    MatTestSkipped++;
    PetscCall(VecDestroy(&x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (Kind kind = HOSTMADE; kind < KINDS; kind++)
    for (int way = 0; way < 5 && PairsWanted(kind); way++) {
      Pair p;
      Vec  y[2];
      char name[96];

      PetscCall(PairMake(&p, kind, WIDE, 200000, 200000));
      PetscCall(PetscSNPrintf(name, sizeof(name), "a write while products are queued, %s, way %d", KindNames[kind], way));
      for (int k = 0; k < 2; k++) {
        Mat C = NULL;

        PetscCall(VecDuplicate(x, &y[k]));
        if (way == 3) PetscCall(PairsMakeHost(k ? "aijhybridgpu" : MATAIJ, DIAGONAL, 200000, 200000, &p.q[k]));
        if (way == 3) PetscCall(MatMatMult(p.q[k], p.m[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
        for (int q = 0; q < 20; q++) PetscCall(MatMult(C ? C : p.m[k], x, y[k]));
        switch (way) {
        case 0: PetscCall(PairsWriteArrays(p.m[k], 4)); break;
        case 1: PetscCall(MatSetRandom(p.m[k], NULL)); break;
        case 2: PetscCall(MatConjugate(p.m[k])); break;
        case 3:
          PetscCall(PairsWriteArrays(p.q[k], 4));
          PetscCall(MatBindToCPU(C, PETSC_TRUE));
          PetscCall(MatProductNumeric(C));
          break;
        default: PetscCall(PairsWrite(p.m[k], WIDE, 5));
        }
        PetscCall(MatDestroy(&C));
      }
      PetscCall(PairsVectors(y[0], y[1], name, "the result"));
      for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&y[k]));
      PetscCall(PairDestroy(&p));
    }
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a row, its columns and values passed to MatSetValues() of the same matrix */
static PetscErrorCode HeldRow(Pair *p, int k)
{
  Mat                A = p->m[k];
  PetscInt           start, end, n, row;
  const PetscInt    *c;
  const PetscScalar *v;
  PetscScalar        w[5] = {1.5, 2.5, 3.5, 4.5, 5.5};

  PetscFunctionBeginUser;
  if (p->arg[0] & 2) PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt q = 0; q < 8 / MatTestSize(); q++) { /* the same number of assemblies everywhere */
    row = start + 3 * q;
    PetscCall(MatGetRow(A, row, &n, &c, &v));
    PetscCall(MatSetValues(A, 1, &row, n, c, p->arg[0] & 1 ? v : w, p->arg[0] & 1 ? ADD_VALUES : INSERT_VALUES));
    for (PetscInt e = 0; e < n; e++) p->found[k] += PetscRealPart(v[e]) * (PetscReal)(1 + c[e]);
    PetscCall(MatRestoreRow(A, row, &n, &c, &v));
    PetscCall(MatTestAssemble(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the columns of all rows */
static PetscErrorCode HeldRowIJ(Pair *p, int k)
{
  Mat             A = p->m[k];
  const PetscInt *ia, *ja;
  PetscInt        n, rows;
  PetscBool       done;
  PetscScalar     w[5] = {1.5, 2.5, 3.5, 4.5, 5.5};

  PetscFunctionBeginUser;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  rows = n;
  for (PetscInt r = 0; r < rows; r++) PetscCall(MatSetValues(A, 1, &r, ia[r + 1] - ia[r], ja + ia[r], w, INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  if (p->arg[0]) {
    PetscCall(MatTestUse(A));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(A, 2.0));
    for (PetscInt r = 0; r < rows; r++) PetscCall(MatSetValues(A, 1, &r, ia[r + 1] - ia[r], ja + ia[r], w, ADD_VALUES));
    PetscCall(MatTestAssemble(A));
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values that are read where they lie while entries are set; with way 2 and 3 they are written there, too */
static PetscErrorCode HeldArray(Pair *p, int k)
{
  Mat                A = p->m[k];
  PetscInt           n;
  const PetscScalar *a;
  PetscScalar       *b = NULL;

  PetscFunctionBeginUser;
  if (p->arg[0] & 4) PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  if (p->arg[0] & 2)
    PetscCall(MatSeqAIJGetArray(A, &b));
  else
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
  if (b) a = b;
  for (PetscInt r = 1; r < n - 1; r++) {
    const PetscInt c[3] = {r - 1, r, r + 1};

    PetscCall(MatSetValues(A, 1, &r, 3, c, a + 3 * ((r + 5) % (n - 3)), INSERT_VALUES));
  }
  if (p->arg[0] & 1) PetscCall(MatTestAssemble(A));
  if (b) b[4] = 7.0;
  if (b) b[5] = b[1] + b[2];
  if (b)
    PetscCall(MatSeqAIJRestoreArray(A, &b));
  else
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  if (!(p->arg[0] & 1)) PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values, or a row of them, of a matrix that is converted in place: they stay where they are, and are given back to
   what it is then. With way 2 and 3 it goes to and fro. */
static PetscErrorCode HeldConverted(Pair *p, int k)
{
  Mat                D;
  const PetscInt    *c = NULL;
  const PetscScalar *v;
  PetscInt           row = 7, n = 12;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &D));
  for (PetscInt round = 0; round < (p->arg[0] & 2 ? 2 : 1); round++) {
    if (p->arg[0] & 1)
      PetscCall(MatGetRow(D, row, &n, &c, &v));
    else
      PetscCall(MatSeqAIJGetArrayRead(D, &v));
    PetscCall(MatConvert(D, MATAIJ, MAT_INPLACE_MATRIX, &D));
    if (p->arg[0] & 2) {
      PetscCall(MatConvert(D, k ? "aijhybridgpu" : MATAIJ, MAT_INPLACE_MATRIX, &D));
      PetscCall(MatTestUse(D));
    }
    for (PetscInt e = 0; e < n; e++) p->found[k] += PetscRealPart(v[e]) * (PetscReal)(1 + e + (c ? c[e] : 0));
    if (p->arg[0] & 1)
      PetscCall(MatRestoreRow(D, row, &n, &c, &v));
    else
      PetscCall(MatSeqAIJRestoreArrayRead(D, &v));
    PetscCall(MatScale(D, 2.0));
  }
  PetscCall(MatTestUse(D));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of a parallel matrix's blocks */
static PetscErrorCode HeldBlock(Pair *p, int k)
{
  Mat          A = p->m[k], block[2];
  PetscScalar *a[2];
  MatInfo      info[2];

  PetscFunctionBeginUser;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int b = 0; b < 2; b++) {
    PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info[b]));
    PetscCall(MatSeqAIJGetArray(block[b], &a[b]));
  }
  PetscCall(PairsWrite(A, TRIDIAGONAL, 4));
  if (p->arg[0]) PetscCall(MatTestUse(A));
  for (int b = 0; b < 2; b++) {
    for (PetscInt q = 0; q < (PetscInt)info[b].nz_used; q += 2) a[b][q] = 2.0 * a[b][q] + 1.0;
    PetscCall(MatSeqAIJRestoreArray(block[b], &a[b]));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* blocks' values that are held, to read or to write, while rows of the whole become zero: the pattern is kept */
static PetscErrorCode HeldZeroRows(Pair *p, int k)
{
  Mat                A = p->m[k], block[2];
  PetscScalar       *w[2];
  const PetscScalar *a[2];
  MatInfo            info[2];
  PetscInt           start, end, rows[3];
  const PetscBool    write = (PetscBool)(p->arg[0] & 1);

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (int q = 0; q < 3; q++) rows[q] = start + 3 * q;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int b = 0; b < 2; b++) {
    PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info[b]));
    if (write)
      PetscCall(MatSeqAIJGetArray(block[b], &w[b]));
    else
      PetscCall(MatSeqAIJGetArrayRead(block[b], &a[b]));
    if (write) a[b] = w[b];
  }
  if (p->arg[0] & 2)
    PetscCall(MatZeroRowsColumns(A, 3, rows, 2.5, NULL, NULL));
  else
    PetscCall(MatZeroRows(A, 3, rows, 2.5, NULL, NULL));
  for (int b = 0; b < 2; b++) {
    for (PetscInt q = 0; q < (PetscInt)info[b].nz_used; q++) p->found[k] += PetscRealPart(a[b][q]) * (PetscReal)(1 + q + 100 * b);
    if (write) {
      for (PetscInt q = 0; q < (PetscInt)info[b].nz_used; q += 2) w[b][q] = 2.0 * w[b][q] + 1.0;
      PetscCall(MatSeqAIJRestoreArray(block[b], &w[b]));
    } else
      PetscCall(MatSeqAIJRestoreArrayRead(block[b], &a[b]));
  }
  if (write) PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the columns of all rows, held while the arrays under them go to AIJ: by conversion, by a coloring for finite
   differences, by columns that are set */
static PetscErrorCode HeldPattern(Pair *p, int k)
{
  Mat             D;
  const PetscInt *ia, *ja;
  PetscInt        n, rows;
  PetscBool       done;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &D));
  p->out[k] = D;
  PetscCall(MatGetRowIJ(D, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  rows = n;
  if (p->arg[0] == 0)
    PetscCall(MatConvert(D, MATAIJ, MAT_INPLACE_MATRIX, &D));
  else if (p->arg[0] == 1) {
    PetscCall(MatConvert(D, MATAIJ, MAT_INPLACE_MATRIX, &D));
    PetscCall(MatConvert(D, k ? "aijhybridgpu" : MATAIJ, MAT_INPLACE_MATRIX, &D));
  } else {
    MatColoring   coloring;
    ISColoring    colors;
    MatFDColoring fd;

    PetscCall(MatColoringCreate(D, &coloring));
    PetscCall(MatColoringSetType(coloring, MATCOLORINGLF));
    PetscCall(MatColoringApply(coloring, &colors));
    PetscCall(MatFDColoringCreate(D, colors, &fd));
    PetscCall(MatFDColoringSetUp(D, colors, fd));
    PetscCall(MatFDColoringDestroy(&fd));
    PetscCall(ISColoringDestroy(&colors));
    PetscCall(MatColoringDestroy(&coloring));
  }
  PetscCall(MatTestUse(D));
  for (PetscInt r = 0; r < rows; r++)
    for (PetscInt q = ia[r]; q < ia[r + 1]; q++) p->found[k] += (PetscReal)((r + 1) * (ja[q] + 3));
  PetscCall(MatRestoreRowIJ(D, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscCall(MatTestUse(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_HDF5)
/* petscviewerhdf5.h wants HDF5's own header */
PETSC_EXTERN PetscErrorCode PetscViewerHDF5PushGroup(PetscViewer, const char[]);
PETSC_EXTERN PetscErrorCode PetscViewerHDF5PopGroup(PetscViewer);
PETSC_EXTERN PetscErrorCode PetscViewerHDF5WriteAttribute(PetscViewer, const char[], const char[], PetscDataType, const void *);

static PetscErrorCode HDF5(PetscFileMode mode, PetscViewer *viewer)
{
  PetscFunctionBeginUser;
  PetscCall(PetscViewerCreate(PETSC_COMM_WORLD, viewer));
  PetscCall(PetscViewerSetType(*viewer, PETSCVIEWERHDF5));
  PetscCall(PetscViewerFileSetMode(*viewer, mode));
  PetscCall(PetscViewerFileSetName(*viewer, File));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix as MatLoad() reads it: offsets, columns and values; which lie in the file as one process has them */
static PetscErrorCode WriteHDF5(Mat A)
{
  PetscInt        n;
  const PetscInt *ia, *ja;
  PetscBool       done;
  PetscScalar    *a;
  PetscViewer     viewer;
  IS              is[2];
  Vec             v;

  PetscFunctionBeginUser;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscCall(MatSeqAIJGetArray(A, &a));
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, n + 1, ia, PETSC_COPY_VALUES, &is[0]));
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, ia[n], ja, PETSC_COPY_VALUES, &is[1]));
  PetscCall(VecCreateMPIWithArray(PETSC_COMM_WORLD, 1, ia[n], PETSC_DETERMINE, a, &v));
  PetscCall(PetscObjectSetName((PetscObject)is[0], "jc"));
  PetscCall(PetscObjectSetName((PetscObject)is[1], "ir"));
  PetscCall(PetscObjectSetName((PetscObject)v, "data"));
  PetscCall(HDF5(FILE_MODE_WRITE, &viewer));
  PetscCall(PetscViewerHDF5PushGroup(viewer, "/A"));
  MatTestBoth(ISView, is[0], is[1], viewer);
  PetscCall(VecView(v, viewer));
  PetscCall(PetscViewerHDF5WriteAttribute(viewer, NULL, "MATLAB_sparse", PETSC_INT, &n));
  PetscCall(PetscViewerHDF5PopGroup(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  for (int q = 0; q < 2; q++) PetscCall(ISDestroy(&is[q]));
  PetscCall(VecDestroy(&v));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* over a matrix, over one just made, and in MATLAB's order, which transposes it */
static PetscErrorCode LoadHDF5(Pair *p, int k)
{
  PetscViewer viewer;
  Mat         A = p->m[k];

  PetscFunctionBeginUser;
  if (p->arg[0]) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &p->out[k]));
    A = p->out[k];
    PetscCall(MatSetType(A, k ? "aijhybridgpu" : MATAIJ));
  }
  PetscCall(PetscObjectSetName((PetscObject)A, "A"));
  PetscCall(HDF5(FILE_MODE_READ, &viewer));
  if (p->arg[0] == 2) PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_HDF5_MAT));
  PetscCall(MatLoad(A, viewer));
  if (p->arg[0] == 2) PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseHDF5(void)
{
  const Each    each       = {"MatLoad of an HDF5 file", NULL, TRIDIAGONAL, N, N, 0, 3, LoadHDF5, ThenGoOn, PETSC_FALSE};
  const Pattern patterns[] = {TRIDIAGONAL, WIDE, LAST};
  int           id         = (int)getpid();

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(File, sizeof(File), "/tmp/lent_arrays-%d.h5", id));
  for (int q = 0; q < 3; q++) {
    Mat A;

    PetscCall(PairsMakeHost(MATAIJ, patterns[q], N, N, &A));
    PetscCall(WriteHDF5(A));
    PetscCall(MatDestroy(&A));
    PetscCall(PairsEach(&each));
  }
  (void)unlink(File);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* a row of a matrix that is bound to the host, which operations write meanwhile */
static PetscErrorCode HeldBound(Pair *p, int k)
{
  Mat                A = p->m[k];
  PetscInt           start, end, n, row;
  const PetscInt    *c;
  const PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  if (p->arg[0] & 1) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  row = PetscMin(start + 1, end - 1);
  PetscCall(MatGetRow(A, row, &n, &c, &v));
  if (p->arg[0] & 2) PetscCall(MatScale(A, 2.0));
  if (p->arg[0] & 2) PetscCall(MatScale(A, 2.0));
  PetscCall(MatShift(A, 1.25));
  for (PetscInt q = 0; q < n; q++) p->found[k] += PetscRealPart(v[q]) * (PetscReal)(1 + c[q]);
  PetscCall(MatRestoreRow(A, row, &n, &c, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const BoundNames[] = {"as it is", "bound to the host", "written twice", "bound to the host and written twice"};

/* all that follows is compared too; memory of many rows is given back to the system at once */
#define HELD(name, least, most, what, rows, op, ways, fresh) CASE_EACH(name, least, most, what, NULL, TRIDIAGONAL, rows, rows, 0, ways, op, ThenGoOn, fresh)
static const Case Cases[] = {
  HELD("header", 1, 0, "MatHeaderReplace", N, Header, 4, PETSC_TRUE),
  CASE("coloring", CaseColoring, 1, 0),
  CASE_EACH("columns", 1, 1, "MatSeqAIJSetColumnIndices", ColumnsNames, TRIDIAGONAL, N, N, 0, 2, Columns, NULL, PETSC_FALSE),
  CASE("held", CaseHeld, 1, 1),
  CASE_EACH("reset", 1, 0, "MatResetPreallocation", NULL, TRIDIAGONAL, N, N, 0, 2, Reset, NULL, PETSC_FALSE),
  CASE("load", CaseLoad, 1, 0),
  CASE("queued", CaseQueued, 1, 1),
  CASE_EACH("rowbound", 1, 1, "a row held over MatShift", BoundNames, TRIDIAGONAL, N, N, 0, 4, HeldBound, PairsFound, PETSC_FALSE),
  HELD("block", 2, 0, "blocks' values that are held", N, HeldBlock, 2, PETSC_FALSE),
  HELD("arraylent", 1, 1, "values that are held", 2000, HeldArray, 8, PETSC_FALSE),
  HELD("heldconverted", 1, 1, "what is held over MatConvert", N, HeldConverted, 4, PETSC_FALSE),
  HELD("rowij", 1, 1, "MatGetRowIJ that is held", N, HeldRowIJ, 2, PETSC_FALSE),
  HELD("rowlent", 1, 0, "a row that is held", 2000, HeldRow, 4, PETSC_FALSE),
  HELD("zeroheld", 2, 0, "blocks' values held over zero rows", N, HeldZeroRows, 4, PETSC_FALSE),
#if defined(PETSC_HAVE_HDF5)
  CASE("hdf5", CaseHDF5, 1, 1),
#endif
  HELD("patternheld", 1, 1, "MatGetRowIJ held while the arrays go", N, HeldPattern, 3, PETSC_FALSE),
};

int main(int argc, char **argv)
{
  return CasesMain(argc, argv, "What is lent, replaced and kept\n", Cases, (int)PETSC_STATIC_ARRAY_LENGTH(Cases));
}

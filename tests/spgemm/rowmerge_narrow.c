/*
  C = A*B by SpGEMM method "rowmerge" where a thread merges a row: every number of heads that a kernel is made for, rows
  of C about the number of entries that are written together, and rows of which a warp has few. When auto takes it.
*/
#include "spgemmtest.h"

static void CheckWidth(const HybSpGEMM *mm, const RefMat *A, const RefMat *B, const RefMat *C)
{
  HybTestCheck(HybCountersGet(&mm->counters, "width") == 1, "rows are merged by %td lanes, not by one", HybCountersGet(&mm->counters, "width"));
}

static void Check(RefMat *A, RefMat *B)
{
  CheckProduct("rowmerge", A, B, RefProductInOrder, CheckWidth);
  RefMatDestroy(A, B);
}

/* rows of A of up to so many entries, the first one with as many; rows of B of up to each, of n columns */
static void Operands(PetscInt m, PetscInt longest, PetscInt each, PetscInt n, RefMat *A, RefMat *B)
{
  PetscInt *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = r ? HybTestRandomInt(0, longest) : longest;
  HybTestMatLengths(m, 50, lengths, A);
  HybTestMatRandom(50, n, 0, each, B);
  free(lengths);
}

/* the numbers of rows about which offsets are made in another way: of one row or four to a thread, or by a scan */
static void ManyRows(void)
{
  static const PetscInt rows[] = {255, 256, 257, 131072, 131073, 262144, 262145};

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(rows); k++) {
    RefMat A, B;

    HybTestBegin("%" PetscInt_FMT " rows", rows[k]);
    Operands(rows[k], 2, 3, 40, &A, &B);
    Check(&A, &B);
  }
}

/* auto's rule: a thread merges a row of so many entries in its registers, and no row of C has more products than
   that. Either bound and one more */
static void Choice(void)
{
  static const struct {
    PetscInt    arow, brow;
    const char *expected;
  } kinds[] = {
    {8, 16, "rowmerge"},
    {8, 17, "hash"    },
    {9, 4,  "hash"    }
  };

  for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
    const PetscInt a = kinds[kind].arow, b = kinds[kind].brow;

    HybTestBegin("auto takes %s for rows of %" PetscInt_FMT " entries that name rows of %" PetscInt_FMT, kinds[kind].expected, a, b);
    Takes(kinds[kind].expected, HybTestMat(Random, 1000, 1000, a, a), HybTestMat(Random, 1000, 9001, b, b));
  }
}

static PetscErrorCode Body(void)
{
  static const PetscInt heads[] = {1, 3, 4, 5, 6, 7, 8, 9, 11, 12}, rows[] = {1, 31, 33, 127, 300}, columns[] = {1, 7, 8, 9, 16, 17, 400};

  PetscFunctionBegin;
  PetscCall(Methods("rowmerge", "rows by single threads"));
  if (!method) PetscFunctionReturn(PETSC_SUCCESS);
  if (!HybTestExec()->backend->device) {
    HybTestBegin("rows by single threads");
    HybTestSkip("the host's method of this name has no such way");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (HybTestMine()) ManyRows();
  if (HybTestMine()) Choice();
  for (size_t h = 0; h < PETSC_STATIC_ARRAY_LENGTH(heads); h++) {
    for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(columns); c++) {
      const PetscInt m = rows[(h + c) % PETSC_STATIC_ARRAY_LENGTH(rows)];
      RefMat         A, B;

      if (!HybTestMine()) continue;
      HybTestBegin("%" PetscInt_FMT " rows, up to %" PetscInt_FMT " heads, %" PetscInt_FMT " columns", m, heads[h], columns[c]);
      Operands(m, heads[h], 10, columns[c], &A, &B);
      Check(&A, &B);
      /* all rows of C are full: of as many entries as there are columns, if these are few */
      HybTestBegin("%" PetscInt_FMT " rows, %" PetscInt_FMT " heads, full", m, heads[h]);
      A = HybTestMat(Random, m, 50, heads[h], heads[h]);
      B = HybTestMat(Random, 50, PetscMin(columns[c], 10), PetscMin(columns[c], 10), PetscMin(columns[c], 10));
      Check(&A, &B);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

/*
  C = A*B by every method where arrays of columns and values begin anywhere, as those of a run of rows do that is
  multiplied where it lies (parprod/inner.c): kernels that load or store several entries at once have to look first. The
  emulator stops at an access of several entries whose address is no multiple of its size, as a device does.
*/
#include "spgemmtest.h"

/* the same entries, the first of them `by` entries behind where an allocation begins */
static PetscErrorCode Behind(PetscCount n, size_t size, PetscInt by, const void *from, void *to)
{
  const HybExec *exec = HybTestExec();
  char          *room;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), n + by, size, &room));
  room += (size_t)by * size;
  PetscCall(exec->backend->copy(exec, room, from, (size_t)n * size, HYB_COPY_DEVICE_TO_DEVICE));
  *(void **)to = room;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Moved(HybCSR *M, PetscInt columns, PetscInt values)
{
  PetscFunctionBegin;
  PetscCall(Behind(M->nnz, sizeof(PetscInt), columns, M->j, &M->j));
  PetscCall(Behind(M->nnz, sizeof(HybScalar), values, M->a, &M->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* both phases, and later ones, which go by plans, into arrays that begin elsewhere too */
static void Phases(const RefMat *A, const RefMat *B, PetscBool reuse, PetscInt columns, PetscInt values, PetscInt *made)
{
  HybSpGEMM      mm;
  HybCSR         DA, DB, DC;
  RefMat         C, first;
  PetscErrorCode ierr;

  RefSpGEMM(A, B, &C);
  if (Begin(&mm, A, B, &DA, &DB) && HybTestCall(Moved(&DA, columns, values)) && HybTestCall(Moved(&DB, columns, values))) {
    mm.reuse = reuse;
    ierr     = Multiply(&mm, &DA, &DB, &DC);
    if (Made(ierr) && HybTestSameMatrix(&DC, &C, 4) && HybTestCall(HybTestDownload(&DC, &first)) && HybTestCall(Moved(&DC, columns, values))) {
      (*made)++;
      for (PetscInt k = 0; k < 3; k++) {
        HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
        if (!HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) break;
        HybTestSameBits(DC.nnz, sizeof(PetscScalar), DC.a, first.csr.a);
      }
      RefMatDestroy(&first);
    }
  }
  Finish(&mm);
  RefMatDestroy(&C);
}

static void Method(void)
{
  PetscInt made = 0;

  for (PetscInt kind = 0; kind < 5; kind++) {
    RefMat P, A, B;

    switch (kind) {
    case 0: /* few diagonals, rows alike */
      HybTestMatStencil(9, 13, 9, 1, &A);
      RefMatCopy(&A, &B);
      break;
    case 1: /* blocks, of an odd number of entries each */
    case 2:
      HybTestMatStencil(9, 6, 5, 1, &P);
      HybTestMatBlock(&P, kind + 1, &A);
      RefMatCopy(&A, &B);
      RefMatDestroy(&P);
      break;
    case 3:
      HybTestMatRandom(70, 60, 0, 9, &A);
      HybTestMatRandom(60, 400, 0, 12, &B);
      break;
    default: /* long rows among short ones */
      HybTestMatDenseRow(30, 200, 11, 3, &A);
      HybTestMatRandom(200, 600, 1, 15, &B);
    }
    for (PetscInt by = 0; by < 3; by++) {
      HybTestBegin("%s: arrays that begin elsewhere, kind %" PetscInt_FMT ", %" PetscInt_FMT, method->name, kind, by);
      Phases(&A, &B, (PetscBool)(by == 1), 1 + by, by == 2 ? 1 : 3 - by, &made);
    }
    RefMatDestroy(&A, &B);
  }
  HybTestCheck(made > 0, "%s takes none of these", method->name);
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &out));
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table; table++) {
    method = *table;
    if (!HYBTEST_TILES && !strcmp(method->name, "tile")) continue;
    if (HybTestMine()) Method();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

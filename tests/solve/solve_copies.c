/*
  What a second solve may not do, on a device: no vector and no matrix crosses the bus, and nothing is set up. CG with
  Jacobi, and CG with a V-cycle of GAMG, whose coarsest level alone may be solved on the host. Counted by PETSc's own
  log of copies. Without a device, or a PETSc with CUDA, there is nothing to count: skipped.

TEST np=1
TEST np=1 @emulated
*/
#include "mattest.h"

static PetscErrorCode Event(const char *name, PetscLogStage stage, PetscEventPerfInfo *info)
{
  PetscLogEvent id;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(info, sizeof(*info)));
  PetscCall(PetscLogEventGetId(name, &id));
  if (id >= 0) PetscCall(PetscLogEventGetPerfInfo(stage, id, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const char *const nothing[] = {"HybCopyTo", "HybCopyFr", "HybProdNum", "HybProdSym", "HybTranspose", "HybAdopt", "MatPtAPNumeric", "VecCUDACopyTo", "VecCUDACopyFrom"};
  const char *const pcs[]     = {PCJACOBI, PCGAMG};
  char              name[64];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "A second solve copies nothing\n"));
  PetscCall(PetscLogDefaultBegin());
  MatTestName = name;
  for (int p = 0; p < 2; p++) {
    Mat                A;
    Vec                x, b;
    KSP                ksp;
    PC                 pc;
    PetscBool          cuda;
    PetscLogStage      stage;
    PetscEventPerfInfo info;
    PetscInt           its, coarse = 0;

    PetscCall(PetscSNPrintf(name, sizeof(name), "CG with %s", pcs[p]));
    PetscCall(MatTestStencil(3, 24, PETSC_FALSE, 0, "aijhybridgpu", &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)x, &cuda, "seqcuda", "mpicuda", ""));
    if (!cuda) {
      MatTestSkipped++;
      PetscCall(MatTestDestroy(&x, &b, &A));
      continue;
    }
    PetscCall(VecSet(b, 1.0));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, KSPCG));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, pcs[p]));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(PetscLogStageRegister(pcs[p], &stage));
    PetscCall(PetscLogStagePush(stage));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(PetscLogStagePop());
    PetscCall(KSPGetIterationNumber(ksp, &its));
    if (p == 1) {
      KSP smoother;
      Mat C;

      PetscCall(PCMGGetCoarseSolve(pc, &smoother));
      PetscCall(KSPGetOperators(smoother, &C, NULL));
      PetscCall(MatGetSize(C, &coarse, NULL));
    }
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(nothing); k++) {
      /* the coarsest vector comes and goes by PETSc's own copies */
      if (p == 1 && k >= 7) continue;
      PetscCall(Event(nothing[k], stage, &info));
      if (info.count > 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %d times\n", nothing[k], (int)info.count));
      MatTestCheck(info.count == 0, nothing[k]);
    }
#if defined(PETSC_HAVE_DEVICE)
    const char *const above[] = {"MatMult", "MatResidual", "MatMultTranspose"};

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(above); k++) {
      PetscCall(Event(above[k], stage, &info));
      MatTestCheck(info.CpuToGpuCount == 0 && info.GpuToCpuCount == 0, above[k]);
    }
    PetscCall(Event("KSPSolve", stage, &info));
    if (info.CpuToGpuSize + info.GpuToCpuSize > 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %g copies of %g bytes to the device, %g of %g to the host; %d iterations, coarsest level of %d rows\n", name, (double)info.CpuToGpuCount, (double)info.CpuToGpuSize, (double)info.GpuToCpuCount, (double)info.GpuToCpuSize, (int)its, (int)coarse));
    /* one preconditioning more than iterations, and each takes the coarsest vector down and up once, the inner solver's
       perhaps twice */
    MatTestCheck(info.CpuToGpuSize <= 2.0 * (its + 1) * (PetscReal)coarse * sizeof(PetscScalar), "copies to the device");
    MatTestCheck(info.GpuToCpuSize <= 2.0 * (its + 1) * (PetscReal)coarse * sizeof(PetscScalar), "copies to the host");
#endif
    PetscCall(MatTestDestroy(&ksp, &x, &b, &A));
  }
  return MatTestEnd();
}

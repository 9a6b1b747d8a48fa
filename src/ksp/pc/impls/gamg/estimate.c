/*
  The largest and the smallest singular value of D^-1 A on a Krylov space, by which PETSc damps the smoothing of the
  prolongator and sets its Chebyshev smoothers: ten steps of GMRES, or of CG where A is known to be SPD, with Jacobi
  from the left, on PETSc's noise.

  GMRES's are those of the Hessenberg matrix of Arnoldi's process, which the room of Krylov's vectors builds where A
  is, with one wait at its end: classical Gram-Schmidt in one pass, as PETSc has it, so that both agree to rounding. On
  several processes with a device each it waits once a step, for a sum over all of them: PETSc's waits for two, and
  takes two vectors and eleven of the basis from the pool of its own vectors.
  Where more can play a role (options for this KSP, a null space, CG, a process that breaks down) and where n is
  small, PETSc's own KSP does it, with the same choices and under the same prefix as PETSc's code.

  So it does where a step leaves hardly more than rounding of its vector: what comes behind differs from one order of
  sums to another.

  The singular values are found by one-sided Jacobi rotations (M. R. Hestenes, Inversion of matrices by
  biorthogonalization and related results, J. SIAM 6, 1958), to a few units of the last place: the plugin links no
  LAPACK.
*/
#include "gamgimpl.h"

#if HYB_GAMG
  #include <petsc/private/kspimpl.h>
  #include "../../../smoothers.h"
  #include "aijhybridgpu/private/hybkrylov.h"

  /* rows from which a plan pays for ten products, which looks at the pattern and waits */
  #define ESTIMATE_PLAN (1 << 17)
  #define ESTIMATE_ROWS 200 /* with fewer, PETSc's KSP takes no longer, and the last steps may be rounding */

/* PETSc's noise: by the device where A is there, so that the vector needs no host memory, which is page-locked for
   PETSc's device vectors and takes long to allocate */
static PetscErrorCode HybEstimateNoise(Mat A, Vec b)
{
  MatNullSpace null;
  HybExec      x = HybExecHost;
  Mat          local;

  PetscFunctionBegin;
  PetscCall(MatGetNullSpace(A, &null)); /* some releases take it out of the noise */
  PetscCall(HybMatGetLocal(A, &local));
  if (local) PetscCall(HybMatGetSmootherExec(local, &x));
  if (x.backend->device && !null && HybNoiseKnown()) {
    PetscCall(HybMatNoise(A, b));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybNoisy(A, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: would each sum of PETSc's wait for a device, though A is small? */
static PetscErrorCode HybEstimateWaits(Mat A, const HybExec *x, PetscMPIInt size, PetscBool *waits)
{
  VecType   type;
  PetscBool host;

  PetscFunctionBegin;
  *waits = PETSC_FALSE;
  if (A->rmap->N >= ESTIMATE_ROWS) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrcmpAny(type, &host, VECSTANDARD, VECSEQ, VECMPI, ""));
  /* A may be on a device for which this PETSc has no vectors */
  *waits = (PetscBool)(!host || (size == 1 && x->backend->device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. *B is A itself, or a copy of A on the host; *b and *u are vectors of B's. */
static PetscErrorCode HybEstimateMatrix(Mat A, PetscBool copy, Mat *B, Vec *b, Vec *u)
{
  MatNullSpace null, transposed;
  PetscBool    set, spd;

  PetscFunctionBegin;
  if (!copy) {
    PetscCall(PetscObjectReference((PetscObject)A));
    *B = A;
  } else {
    PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, B));
    PetscCall(MatSetVecType(*B, VECSTANDARD));
    PetscCall(MatGetNullSpace(A, &null));
    PetscCall(MatGetTransposeNullSpace(A, &transposed));
    PetscCall(MatSetNullSpace(*B, null));
    if (transposed) PetscCall(MatSetTransposeNullSpace(*B, transposed));
    PetscCall(MatIsSPDKnown(A, &set, &spd));
    if (set) PetscCall(MatSetOption(*B, MAT_SPD, spd));
  }
  PetscCall(MatCreateVecs(*B, b, u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybEstimateByKSP(PC pc, Mat A, KSP ksp, Vec b, Vec x, PetscReal *emin, PetscReal *emax)
{
  const char *prefix;
  PetscBool   set, spd;
  PC          jacobi;

  PetscFunctionBegin;
  PetscCall(KSPSetNestLevel(ksp, pc->kspnestlevel));
  PetscCall(PCGetOptionsPrefix(pc, &prefix));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPAppendOptionsPrefix(ksp, "pc_gamg_esteig_"));
  PetscCall(MatIsSPDKnown(A, &set, &spd));
  if (set && spd) PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetErrorIfNotConverged(ksp, pc->erroriffailure));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &jacobi));
  PetscCall(PCSetType(jacobi, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, ESTIMATE_STEPS));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetComputeSingularValues(ksp, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPCheckSolve(ksp, pc, x));
  PetscCall(KSPComputeExtremeSingularValues(ksp, emax, emin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May the process be run without PETSc's KSP, as far as this process sees? */
static PetscErrorCode HybEstimateIsPlain(Mat A, const HybExec *x, PetscMPIInt size, PetscBool *plain)
{
  MatNullSpace null;
  PetscBool    set, spd;
  char        *all = NULL;

  PetscFunctionBegin;
  *plain = PETSC_FALSE;
  if (!x->backend->krylov || (size > 1 && !x->backend->device) || A->rmap->N < ESTIMATE_ROWS) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(MatIsSPDKnown(A, &set, &spd));
  if (null || (set && spd)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetAll(NULL, &all)); /* under whatever prefix */
  *plain = (PetscBool)!strstr(all, "pc_gamg_esteig_");
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGEstimateMay(HybGAMG *h, Mat A)
{
  PetscMPIInt    size;
  PetscBool      may, waits = PETSC_FALSE;
  PetscInt64     some[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (h->estimate.asked) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  ierr = HybEstimateIsPlain(A, &h->exec, size, &may);
  if (!ierr) ierr = HybEstimateWaits(A, &h->exec, size, &waits);
  some[0] = !may;
  some[1] = waits;
  PetscCall(HybAgreeMax(PetscObjectComm((PetscObject)A), ierr, "An estimate of eigenvalues", 2, some));
  h->estimate.exec  = h->exec;
  h->estimate.may   = (PetscBool)!some[0];
  h->estimate.waits = (PetscBool)(some[1] != 0);
  if (size > 1 && h->estimate.may) PetscCall(HybMatParArraysBegin(A, NULL, &h->estimate.exec, &h->estimate.may));
  h->estimate.asked = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix's own plan, if it has the sums of any other one; else NULL */
static PetscErrorCode HybEstimateKept(Mat A, const HybExec *x, HybSpMV **mult)
{
  HybCSR csr;

  PetscFunctionBegin;
  PetscCall(HybMatGetMult(A, x, PETSC_FALSE, &csr, mult));
  if ((*mult)->bs != 1 || strcmp((*mult)->name, "auto")) *mult = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* H: the Hessenberg matrix of all steps; *done: how many there were. What comes next multiplies with A again: so A gets
   the plan that its next product would make, at once where it pays for these. */
static PetscErrorCode HybEstimateArnoldi(Mat mat, const HybExec *x, const HybCSR *A, PetscInt longest, PetscScalar *H, PetscInt *done)
{
  const PetscBool plan = (PetscBool)(A->m >= ESTIMATE_PLAN);
  HybSpMV         mult = {.method = NULL}, *kept = NULL;
  PetscErrorCode  ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (x->backend->device && plan) PetscCall(HybEstimateKept(mat, x, &kept));
  if (!kept) {
    PetscCall(HybSpMVInit(&mult, x, "auto", 1));
    mult.once    = (PetscBool)!plan;
    mult.longest = longest;
    ierr         = HybSpMVSetUp(&mult, A);
  }
  if (!ierr) ierr = HybEstimatorArnoldi(x, A, kept ? kept : &mult, NULL, ESTIMATE_STEPS, H, done);
  PetscCall(HybErrorFirst(ierr, HybSpMVDestroy(&mult)));
  if (x->backend->device && !plan) PetscCall(HybEstimateKept(mat, x, &kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rotates the columns of the m x n matrix H by pairs until all are orthogonal: their norms are its singular values */
static void HybSingularValues(PetscInt m, PetscInt n, PetscScalar *H, PetscReal *smallest, PetscReal *largest)
{
  PetscBool moved = PETSC_TRUE;

  for (int sweep = 0; sweep < 60 && moved; sweep++) { /* about seven are needed */
    moved = PETSC_FALSE;
    for (PetscInt p = 0; p < n; p++) {
      for (PetscInt q = p + 1; q < n; q++) {
        PetscScalar *x = H + p * m, *y = H + q * m, product = 0;
        PetscReal    xx = 0, yy = 0, xy, zeta, t, c;

        for (PetscInt k = 0; k < m; k++) {
          xx += PetscRealPart(PetscConj(x[k]) * x[k]);
          yy += PetscRealPart(PetscConj(y[k]) * y[k]);
          product += PetscConj(x[k]) * y[k];
        }
        if (PetscAbsScalar(product) <= PETSC_MACHINE_EPSILON * PetscSqrtReal(xx) * PetscSqrtReal(yy)) continue;
        moved = PETSC_TRUE;
        xy    = PetscRealPart(product);
        if (PetscImaginaryPart(product) != 0) { /* y turned so that the product is real */
          xy = PetscAbsScalar(product);
          for (PetscInt k = 0; k < m; k++) y[k] *= PetscConj(product) / xy;
        }
        zeta = (yy - xx) / (2 * xy);
        t    = (zeta < 0 ? -1 : 1) / (PetscAbsReal(zeta) + PetscSqrtReal(1 + zeta * zeta));
        c    = 1 / PetscSqrtReal(1 + t * t);
        for (PetscInt k = 0; k < m; k++) {
          const PetscScalar old = x[k];

          x[k] = c * old - c * t * y[k];
          y[k] = c * t * old + c * y[k];
        }
      }
    }
  }
  *smallest = PETSC_MAX_REAL;
  *largest  = 0;
  for (PetscInt p = 0; p < n; p++) {
    PetscReal norm = 0;

    for (PetscInt k = 0; k < m; k++) norm += PetscRealPart(PetscConj(H[p * m + k]) * H[p * m + k]);
    norm      = PetscSqrtReal(norm);
    *smallest = PetscMin(*smallest, norm);
    *largest  = PetscMax(*largest, norm);
  }
}

/* *found: the process was run to its end, and gave two numbers above 0 */
static PetscErrorCode HybEstimateByArnoldi(Mat A, const HybExec *x, PetscInt longest, PetscReal *emin, PetscReal *emax, PetscBool *found)
{
  PetscMPIInt    size;
  PetscScalar    H[(ESTIMATE_STEPS + 1) * ESTIMATE_STEPS];
  HybCSR         csr;
  PetscInt       done = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *found = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size > 1)
    PetscCall(HybEstimatorArnoldiPar(A, x, NULL, ESTIMATE_STEPS, H, &done));
  else {
    PetscCall(HybMatGetCSR(A, x, PETSC_TRUE, &csr));
    ierr = HybEstimateArnoldi(A, x, &csr, longest, H, &done);
    PetscCall(HybMatRestoreCSR(A, x, &csr));
    PetscCall(ierr);
  }
  if (done < ESTIMATE_STEPS || HybKrylovSpent(ESTIMATE_STEPS, H)) PetscFunctionReturn(PETSC_SUCCESS);
  HybSingularValues(ESTIMATE_STEPS + 1, ESTIMATE_STEPS, H, emin, emax);
  *found = (PetscBool)(*emin > 0 && !PetscIsInfOrNanReal(*emin) && !PetscIsInfOrNanReal(*emax));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGEstimate(PC pc, HybGAMG *h, Mat A, PetscReal *emin, PetscReal *emax)
{
  PetscBool      found = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybGAMGEstimateMay(h, A));
  if (h->estimate.may)
    HYB_GAMG_PHASE(HYB_PHASE_ESTIMATE, A, HybEstimateByArnoldi(A, &h->estimate.exec, h->graph.own ? 0 : h->graph.longest, emin, emax, &found));
  if (!found) {
    Mat B   = NULL;
    KSP ksp = NULL;
    Vec b = NULL, u = NULL;

    ierr = HybEstimateMatrix(A, h->estimate.waits, &B, &b, &u);
    if (!ierr) ierr = HybEstimateNoise(B, b);
    ierr = HybAgree(PetscObjectComm((PetscObject)A), ierr, "An estimate of eigenvalues");
    if (!ierr) ierr = KSPCreate(PetscObjectComm((PetscObject)A), &ksp);
    if (!ierr) ierr = HybEstimateByKSP(pc, B, ksp, b, u, emin, emax);
    (void)KSPDestroy(&ksp);
    (void)VecDestroy(&b);
    (void)VecDestroy(&u);
    (void)MatDestroy(&B);
    PetscCall(ierr);
  }
  PetscCall(PetscInfo(pc, "Smooth P0: max eigen=%e min=%e PC=%s\n", (double)*emax, (double)*emin, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

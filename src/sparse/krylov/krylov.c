/*
  krylov.c: Arnoldi's process for D^-1 A, from which the extreme eigenvalues of a smoother's operator are estimated. It
  costs no more than its bytes: the host queues all steps and waits once, at the end, for H.

    u_0 = D^-1 b                                                 s_0 = 1/|u_0|
    for k = 0 .. steps-1:
      u_{k+1} = A u_k                                            a product of the room below
      w       = s_k D^-1 u_{k+1}                                 formed where it is read, never stored
      h_lk    = s_l conj(u_l) w, l <= k                          one pass over w and all u
      u_{k+1} = w - sum_l h_lk s_l u_l                           one pass, with the sum of squares of what it writes
      h_{k+1,k} = |u_{k+1}|                                      s_{k+1} = 1/h_{k+1,k}

  Vectors are never divided by their norms: where v_l is read, s_l u_l is taken. The norms stay where the vectors are,
  a step reads what the one before it left there. So a breakdown is found by nobody until the end: a norm of 0 makes
  all columns behind it infinite or NaN, and they are dropped.

  Classical Gram-Schmidt, once, as PETSc's GMRES does unless it is told otherwise: H is its Hessenberg matrix to
  rounding.

  Memory: steps+1 vectors. Bytes of step k in vectors of n: a product, then k+3 reads for the sums, k+3 reads and a
  write for the rest.

  W. E. Arnoldi, The principle of minimized iterations in the solution of the matrix eigenvalue problem, Quart. Appl.
  Math. 9 (1951). Y. Saad, M. H. Schultz, GMRES, SIAM J. Sci. Stat. Comput. 7(3) (1986). Norms that are applied late:
  as in the fused and low-synchronisation variants of K. Swirydowicz et al., Numer. Linear Algebra Appl. 28(2) (2021).
*/
#include <aijhybridgpu/private/hybkrylov.h>

static PetscBool HybKrylovFinite(HybScalar v)
{
  return (PetscBool) !(PetscIsInfOrNanScalar(v));
}

PetscInt HybKrylovWhole(PetscInt steps, PetscReal first, HybScalar *H)
{
  const PetscInt rows = steps + 1;
  PetscInt       k    = 0;

  if (!PetscIsInfOrNanReal(first) && first > 0) {
    for (PetscBool whole = PETSC_TRUE; k < steps && whole; k += whole) {
      for (PetscInt l = 0; l <= k + 1; l++) whole = (PetscBool)(whole && HybKrylovFinite(H[l + (size_t)k * rows]));
      /* behind an invariant space there is nothing */
      if (whole && PetscAbsScalar(H[k + 1 + (size_t)k * rows]) == 0.0) {
        k++;
        break;
      }
    }
  }
  for (PetscCount e = (PetscCount)k * rows; e < (PetscCount)steps * rows; e++) H[e] = 0;
  return k;
}

PetscBool HybKrylovSpent(PetscInt steps, const HybScalar *H)
{
  for (PetscInt k = 0; k < steps - 1; k++) {
    const HybScalar *h    = H + (size_t)k * (steps + 1);
    PetscReal        most = 0;

    for (PetscInt l = 0; l <= k; l++) most = PetscMax(most, PetscAbsScalar(h[l]));
    if (PetscAbsScalar(h[k + 1]) <= PETSC_SQRT_MACHINE_EPSILON * most) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

static PetscErrorCode HybKrylovArnoldi_Inner(HybSpMV *mv, HybArena *work, const HybCSR *A, const HybScalar *b, HybKrylovBasis *B, HybScalar *H, PetscReal *first)
{
  const HybExec      *exec = &mv->exec;
  const HybKrylovOps *ops  = exec->backend->krylov;
  const PetscCount    nh   = (PetscCount)(B->steps + 1) * B->steps;
  HybScalar           host[(HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_STEPS + HYB_KRYLOV_STEPS + 2];

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)(B->steps + 1) * B->ld, sizeof(HybScalar), &B->u));
  /* in one piece with the norms, for one wait */
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), nh + B->steps + 2, sizeof(HybScalar), &B->h));
  B->scale = (PetscReal *)(B->h + nh);
  if (exec->backend->device) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)(B->steps + 1) * HYB_KRYLOV_SUMS, sizeof(HybScalar), &B->sums));
    PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*B->arrived), &B->arrived));
  }
  PetscCall(ops->start(exec, B, b));
  for (PetscInt k = 0; k < B->steps; k++) {
    PetscCall(HybSpMVApply(mv, A, B->u + k * B->ld, HYB_SPMV_SET, NULL, B->u + (k + 1) * B->ld));
    PetscCall(ops->step(exec, B, k));
  }
  PetscCall(exec->backend->copy(exec, host, B->h, (size_t)nh * sizeof(HybScalar) + (size_t)(B->steps + 2) * sizeof(PetscReal), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(PetscArraycpy(H, host, nh));
  *first = ((PetscReal *)(host + nh))[B->steps + 1];
  PetscCall(HybArenaFree(work, &B->u, &B->h, &B->sums, &B->arrived));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybKrylovArnoldi(HybSpMV *mv, HybArena *work, const HybCSR *A, const HybScalar *dinv, const HybScalar *b, PetscInt steps, HybScalar *H, PetscInt *done)
{
  HybKrylovBasis B     = {0};
  PetscReal      first = 0;

  PetscFunctionBegin;
  *done = 0;
  PetscCheck(mv->exec.backend->krylov, PETSC_COMM_SELF, PETSC_ERR_SUP, "The %s backend has no operations of Krylov methods", mv->exec.backend->name);
  PetscCheck(work != &mv->work, PETSC_COMM_SELF, PETSC_ERR_ARG_IDN, "Each product with a vector empties the arena of temporaries of its plan: Arnoldi's process needs another one");
  PetscCheck(A->m == A->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Arnoldi's process needs a square matrix, not %" PetscInt_FMT " x %" PetscInt_FMT, A->m, A->n);
  PetscCheck(steps >= 1 && steps <= HYB_KRYLOV_STEPS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " steps of Arnoldi's process: 1 to %d can be done", steps, HYB_KRYLOV_STEPS);
  B.n     = A->m;
  B.ld    = HYB_KRYLOV_LD(B.n);
  B.steps = steps;
  B.dinv  = dinv;
  if (B.n > 0) PetscCall(HybKrylovArnoldi_Inner(mv, work, A, b, &B, H, &first));
  *done = HybKrylovWhole(steps, first, H);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What a set-up and the cycle will hold of the device beside A, before the first aggregate is sought.

  The estimate is of the arrays that the finest level has at once, by its rows, a mean row of q nonzeros, and v
  near-null vectors; p is a mean row of the prolongator P, w one of A P, c entries of C = P^T A P for a row of A. With
  indices of i and scalars of s bytes these are for each row

    P                                                        p (i + s) + i             agg/smooth.cu
    its transpose in the product; in the cycle               p i; p (2 i + s)          csr/transpose.cu
    numbers for numeric phases of A P and P^T (A P)          2 q + 2 w                 spgemm/maskrows.cu, block
    bins of rows of A P                                      i + 8                     spgemm/hash/hashrows.cu
    C, and half of it again for levels below                 1.3 c (i + s)
    the cycle's vectors and CG's; copies of the host's       4 s; 5 s                  mg/build.c, cg/solve.c
    of a large A: values in the order of kernels             q s                       mg/ordered.c

  or, if that is more, what is there while A P is made: P, its transpose with the permutation, and values of A P, or, in
  scalar problems, blocks of P's columns and lists of A P's, at most a quarter of the products (spgemm/hash/compress.cu,
  count.cu). Several processes have besides, with a row for each of others' that they meet,

    A's two blocks merged, A P, P beside rows of others      (q + w + 1.3 p) (i + s)   parprod/multiply.c
    values of P^T                                            p s                       parprod/parprod.c
    lists of what small products move                        (q + 3 p + w) (i + s)     parprod/collect.c
    levels that each of them has whole                       2 (c N + p) (i + s)       mg/whole.c; N processes

  p, w and c are those of grids: aggregates of 1.6 q vertices, three or four of which a row meets. In three dimensions
  the estimate is 0.9 to 1.3 times what was held, in two, where rows meet fewer, up to 1.5 times (tests/faults,
  memory_planned); of 27-point 440^3 with 64-bit indices it is 51 GB, where 48 were held. PETSc's own vectors are not in
  it, nor is a cycle in single precision.

  Only what is taken for certain refuses a set-up: numbers of vertices while aggregates are sought, then Arnoldi's basis
  beside the diagonal and the noise. What is more may not fit all the same, and then an allocation says so.
*/
#include "gamgimpl.h"

#if HYB_GAMG
  #define PLAN_LISTS 4194304 /* entries of a small product's lists, at most (parprod/collect.c) */

/* rows, of which `own` are this process's, one of N, and own nonzeros; staged: vectors of the host are copied */
static double HybPlanEstimate(double own, double rows, double nonzeros, PetscMPIInt N, const HybAggBlock *block, PetscBool staged)
{
  const HybTuning *tuning = HybTuningGet();
  const double     i = sizeof(PetscInt), s = sizeof(PetscScalar), v = block->nvec, bs = block->bs;
  const double     q = nonzeros / own, near = PetscMax(1, q / bs), p = v * PetscMin(near, 4), w = 3 * p, c = PetscMin(16 / near * v * v / bs, q);
  double           cycle, product, several = 0;

  cycle = p * (i + s) + i + p * (3 * i + s) + 2 * q + 2 * w + i + 8 + 1.3 * c * (i + s) + (staged ? 9 : 4) * s;
  cycle *= 1.15; /* levels below, and what is small */
  if (tuning->ordered && nonzeros >= tuning->ordered_fewest) cycle += q * s;
  product = p * (i + s) + i + 2 * p * i + 2 * i + 24;
  product += bs * v == 1 ? 8 * p + 8 * PetscMin(q * p / 4, 2 * w) : p * s + 2 * q + 2 * w + w * s / 2;
  if (N > 1) several = (q + w + 1.3 * p) * (i + s) + p * s;
  if (N > 1 && rows * (q + 2 * p) <= PLAN_LISTS) several += (q + 3 * p + w) * (i + s);
  if (N > 1 && c * own * N <= tuning->whole) several += 2 * (c * N + p) * (i + s);
  return rows * (PetscMax(cycle, product) + several);
}

/* arnoldi: eigenvalues are estimated by that process, where A is */
static PetscErrorCode HybPlanTell(PC pc, const HybGAMG *h, Mat A, PetscBool arnoldi)
{
  const HybExec  *x = &h->exec;
  const size_t    m = (size_t)A->rmap->n, vertices = m / h->block.bs;
  const size_t    basis = m * ESTIMATE_VECTORS * sizeof(PetscScalar), gone = h->graph.arena.bytes + h->near.arena.bytes;
  size_t          least = 0;
  double          estimate, e, rows = (double)m;
  PetscMPIInt     size;
  PetscBool       host, info;
  VecType         type;
  HybMemoryReport r;

  PetscFunctionBegin;
  if (h->setup.way == &HybGAMGOne) {
    HybCSR csr;

    /* the smoothed prolongator, or the product, reads values in any case */
    PetscCall(HybMatGetCSR(A, x, PETSC_TRUE, &csr));
    e = (double)csr.nnz;
    PetscCall(HybMatRestoreCSR(A, x, &csr));
    /* agg/roots.cu */
    least = vertices * sizeof(PetscInt) * (h->rules.hops != 2 ? 5 : sizeof(PetscInt) > sizeof(int) ? 6
                                                                                                   : 7);
  } else {
    HybParCSR      csr;
    PetscErrorCode ierr = HybMatGetParCSR(A, x, PETSC_TRUE, &csr);

    e    = ierr ? 0 : (double)csr.D.nnz + (double)csr.O.nnz;
    rows = ierr ? 0 : (double)m + (double)csr.O.n;
    PetscCall(HybErrorFirst(ierr, HybMatRestoreParCSR(A, x, &csr)));
  }
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrcmpAny(type, &host, VECSTANDARD, VECSEQ, VECMPI, ""));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  estimate = HybPlanEstimate((double)m, rows, e, size, &h->block, host);
  PetscCall(x->backend->usage(&r, PETSC_FALSE));
  HybMatPlanned(r.device_bytes + r.managed_bytes + (size_t)estimate);
  PetscCall(PetscInfoEnabled(PC_CLASSID, &info));
  if (info) {
    PetscCall(x->backend->memory(&r));
    PetscCall(PetscInfo(pc, "Rows %zu, nonzeros %.0f: set-up and cycle will hold about %g GB of the device beside %g GB that are held; %g of %g GB are free\n", m, e, 1e-9 * estimate, 1e-9 * (double)(r.device_bytes + r.managed_bytes), 1e-9 * (double)r.free_bytes, 1e-9 * (double)r.total_bytes));
  }
  /* without weak edges each vertex that has an edge is in an aggregate, so that there is a prolongator to be smoothed;
     the graph and this level's near-null vectors are gone by then */
  if (arnoldi && e > (double)m * h->block.bs && !HybGAMGHasThreshold(pc) && basis > gone) least = PetscMax(least, basis - gone);
  PetscCall(HybMatRoom(x, least, "the least that GAMG's set-up needs beside its matrix of %zu rows and %.0f nonzeros, which is there (in all, with the solve, about %.3g GB)", m, e, 1e-9 * estimate));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGPlan(PC pc, HybGAMG *h, Mat A)
{
  const PetscBool estimates = (PetscBool)(h->nsmooths > 0 && !(HybGAMGData(pc)->emax > 0));

  PetscFunctionBegin;
  if (!h->exec.backend->device) PetscFunctionReturn(PETSC_SUCCESS); /* of all processes */
  if (estimates) PetscCall(HybGAMGEstimateMay(h, A));
  PetscCall(HybGAMGAgree(pc, HybPlanTell(pc, h, A, (PetscBool)(estimates && h->estimate.may))));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

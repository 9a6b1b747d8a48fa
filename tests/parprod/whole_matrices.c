/*
  A distributed matrix whole, on every process (HybParWhole), by peer access and by messages: square and rectangular
  ones, processes without rows or columns, blocks without entries. Each entry is known by a formula, so that nothing is
  gathered to be compared: the arrays have to be the same to the last bit, with the first values and with later ones.
  One process fails before it sends: the others hear of it, and the next values come.

TEST np=1,2,3+4
TEST np=2+3 -mat_aijhybridgpu_comm mpi
TEST np=3 -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=2 -ipc 0
*/
#define _GNU_SOURCE /* RTLD_NEXT, dl_iterate_phdr */
#include "../comm/commtest.h"
#include "gpuaware.h"
#include <aijhybridgpu/private/hybparprod.h>

#define ROWS 60

static int Sparse; /* one entry in so many */

static PetscBool In(PetscInt r, PetscInt c)
{
  return (PetscBool)(((r * 31 + c * 17 + r * c) % Sparse) == 0);
}

/* rows from..to-1 with global columns */
static void Rows(PetscInt from, PetscInt to, PetscInt N, PetscInt version, PetscInt *i, PetscInt *j, PetscScalar *a)
{
  PetscInt n = 0;

  i[0] = 0;
  for (PetscInt r = from; r < to; r++) {
    for (PetscInt c = 0; c < N; c++) {
      if (!In(r, c)) continue;
      j[n]   = c;
      a[n++] = Value(r, c, version);
    }
    i[r - from + 1] = n;
  }
}

/* where each process's part begins; empty: a process without any */
static void Ranges(PetscInt *ranges, int empty)
{
  ranges[0] = 0;
  for (int r = 0; r < Size; r++) ranges[r + 1] = ranges[r] + (r == empty ? 0 : HybTestRandomInt(1, ROWS / MOST + 1));
}

/* this process's blocks, values of that version */
static PetscErrorCode Blocks(HybArena *arena, const PetscInt *rows, const PetscInt *columns, PetscInt version, PetscInt *garray, HybParCSR *A)
{
  const PetscInt N = columns[Size], first = rows[Rank], m = rows[Rank + 1] - first, c0 = columns[Rank], c1 = columns[Rank + 1];
  PetscInt       i[ROWS + 1], j[ROWS * ROWS], place[ROWS], bi[2][ROWS + 1], bj[2][ROWS * ROWS], n[2] = {0, 0}, g = 0;
  PetscScalar    a[ROWS * ROWS], ba[2][ROWS * ROWS];

  PetscFunctionBegin;
  Rows(first, first + m, N, version, i, j, a);
  for (PetscInt c = 0; c < N; c++) {
    PetscBool some = PETSC_FALSE;

    for (PetscInt k = 0; k < i[m]; k++) some = (PetscBool)(some || j[k] == c);
    if (some && (c < c0 || c >= c1)) {
      place[c]    = g;
      garray[g++] = c;
    }
  }
  bi[0][0] = bi[1][0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      const int b = j[k] < c0 || j[k] >= c1;

      bj[b][n[b]]   = b ? place[j[k]] : j[k] - c0;
      ba[b][n[b]++] = a[k];
    }
    bi[0][r + 1] = n[0];
    bi[1][r + 1] = n[1];
  }
  A->rows    = rows;
  A->columns = columns;
  A->garray  = garray;
  for (int b = 0; b < 2; b++) {
    const HybCSR host = HybCSROf(m, b ? g : c1 - c0, n[b], bi[b], bj[b], ba[b]);

    PetscCall(HybTestUpload(arena, &host, b ? &A->O : &A->D));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameRows(const HybCSR *W, PetscInt from, PetscInt to, PetscInt N, PetscInt version)
{
  PetscInt    i[ROWS + 1], j[ROWS * ROWS];
  PetscScalar a[ROWS * ROWS];

  PetscFunctionBegin;
  Rows(from, to, N, version, i, j, a);
  if (!HybTestCheck(W->m == to - from && W->n == N && W->nnz == i[to - from], "%d x %d, %d entries", (int)W->m, (int)W->n, (int)W->nnz)) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestSameBits((PetscCount)W->m + 1, sizeof(PetscInt), W->i, i);
  HybTestSameBits(W->nnz, sizeof(PetscInt), W->j, j);
  HybTestSameBits(W->nnz, sizeof(PetscScalar), W->a, a);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* process r sends nothing */
static PetscErrorCode GivenUp(HybParWhole *w, const HybParCSR *A, PetscMPIInt r)
{
  const HybExec *exec  = HybTestExec();
  PetscBool      sends = PETSC_FALSE;
  PetscErrorCode ierr[2];

  PetscFunctionBegin;
  for (PetscInt k = A->rows[r]; k < A->rows[r + 1]; k++)
    for (PetscInt c = 0; c < A->columns[Size]; c++) sends = (PetscBool)(sends || In(k, c));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr[0] = HybParWholeValues(w, exec, Rank == r ? PETSC_ERR_MEM : PETSC_SUCCESS, A);
  ierr[1] = exec->backend->sync(exec);
  if (!ierr[1]) ierr[1] = HybParWholeHeard(w);
  PetscCall(PetscPopErrorHandler());
  if (Rank == r)
    HybTestCheck(ierr[0] == PETSC_ERR_MEM, "the error is %d", (int)ierr[0]);
  else if (sends) /* of one that has nothing to send nobody waits for messages */
    HybTestCheck(ierr[0] || ierr[1], "nobody says that a process has failed");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode One(HybComm comm, int empty, PetscBool square)
{
  const HybExec *exec = HybTestExec();
  PetscInt       rows[MOST + 1], columns[MOST + 1], garray[ROWS];
  HybParCSR      A;
  HybArena       arena = HybArenaOn(exec);
  HybHalo        halo  = NULL;
  HybParWhole    w, own;

  PetscFunctionBegin;
  Ranges(rows, empty);
  Ranges(columns, square ? empty : -1);
  if (square) PetscCall(PetscArraycpy(columns, rows, Size + 1));
  PetscCall(Blocks(&arena, rows, columns, 0, garray, &A));
  HybTestCall(HybHaloCreateAll(comm, exec, PETSC_SUCCESS, rows, PETSC_TRUE, &halo));
  HybTestCallFails(PETSC_ERR_MEM, HybParWholeCreate(&w, comm, exec, PETSC_ERR_MEM, &A, halo));
  if (HybTestCall(HybParWholeCreate(&w, comm, exec, PETSC_SUCCESS, &A, halo))) {
    for (PetscInt version = 0; version < 4; version++) {
      if (version) PetscCall(Blocks(&arena, rows, columns, version, garray, &A));
      if (version == 2 && Size > 1) PetscCall(GivenUp(&w, &A, (PetscMPIInt)(rows[Size] % Size)));
      HybTestCall(HybParWholeValues(&w, exec, PETSC_SUCCESS, &A));
      PetscCall(SameRows(&w.csr, 0, rows[Size], columns[Size], version));
      HybTestCall(HybParWholeHeard(&w));
    }
    HybTestCall(HybParWholeDestroy(&w));
  }
  if (HybTestCall(HybParWholeCreate(&own, comm, exec, PETSC_SUCCESS, &A, NULL))) {
    HybTestCall(HybParWholeValues(&own, exec, PETSC_SUCCESS, &A));
    PetscCall(SameRows(&own.csr, rows[Rank], rows[Rank + 1], columns[Size], 3));
    HybTestCall(HybParWholeDestroy(&own));
  }
  HybTestCall(HybHaloDestroy(&halo));
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(HybComm comm)
{
  const int sparse[] = {1, 3, 11, 1000};

  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) {
    for (int empty = -1; empty < Size && (Size > 1 || empty < 0); empty++) {
      for (int square = 0; square < 2; square++) {
        Sparse = sparse[k];
        HybTestBegin("one entry in %d, process %d without rows, %s", Sparse, empty, square ? "square" : "rectangular");
        PetscCall(One(comm, empty, (PetscBool)square));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return CommTestMain(argc, argv, Body);
}

/*
  What crosses the bus in a parallel product that is repeated: of messages, values that other processes need, once down
  and once up, and nothing that stays on its process; by peer access less, those of P^T alone. Counted by the emulator
  or, on a device, by PETSc's log. The operands live on the device; meanwhile the host does not touch what does. Beside
  that the results, with other values of one operand or both, written by either side, and with other patterns. And
  processes that share a card which is believed to be too
  small: an error of each, operands as they were, and smaller products afterwards.

  A P: the rows of P that others' rows of A name. P^T B: what P has in others' columns goes to their owners, and then
  come the rows of B that the rows of P^T name. P^T A P: the three, of A P instead of B.

TEST np=1,3+2
TEST np=1,3+2,4 @emulated
TEST np=+3,2 @emulated -mat_aijhybridgpu_comm mpi
TEST np=2+3 @emulated -mat_aijhybridgpu_memory mirror
TEST np=2+4 @emulated -mat_aijhybridgpu_memory_limit 2000000 -refused
TEST np=3 @emulated -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 1000
*/
#include "mattest.h"

static PetscMPIInt Rank, Size;
static PetscBool   Device, Mirror, Messages;
static void (*HandsOff)(int);
static unsigned long long (*BytesToHost)(void), (*BytesToDevice)(void);

/* P of n rows, interpolating from every fourth point, shifted; scattered: with entries in other processes' columns
   everywhere */
static PetscErrorCode Interpolation(PetscInt n, PetscInt shift, PetscBool scattered, MatType type, Mat *P)
{
  const PetscInt N = n / 4;
  PetscInt       start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, PETSC_DECIDE, PETSC_DECIDE, n, N, 3, P, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt first = PetscMin(r / 4, N - 1);

    PetscCall(MatSetValue(*P, r, first, 0.5 + 0.001 * (PetscReal)(r % 17), INSERT_VALUES));
    if (first + shift < N) PetscCall(MatSetValue(*P, r, first + shift, 0.25, INSERT_VALUES));
    if (scattered && r % 3 == 0) PetscCall(MatSetValue(*P, r, (first + N / 2) % N, -0.125, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries of the rows of M, of any process, that are the columns of A's off-diagonal block: of all processes
   together */
static PetscErrorCode OthersRows(Mat A, Mat M, PetscLogDouble *entries)
{
  Mat             block, *rows;
  const PetscInt *garray;
  PetscInt        n, N;
  IS              is[2];
  MatInfo         info;

  PetscFunctionBeginUser;
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &block, &garray));
  PetscCall(MatGetSize(block, NULL, &n));
  PetscCall(MatGetSize(M, NULL, &N));
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, n, garray, PETSC_COPY_VALUES, &is[0]));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N, 0, 1, &is[1]));
  PetscCall(MatCreateSubMatrices(M, 1, &is[0], &is[1], MAT_INITIAL_MATRIX, &rows));
  PetscCall(MatGetInfo(rows[0], MAT_LOCAL, &info));
  *entries = info.nz_used;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, entries, 1, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(MatDestroySubMatrices(1, &rows));
  PetscCall(MatTestDestroy(&is[0], &is[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries that cross from process to process in a numeric phase of A P, P^T A or P^T A P */
static PetscErrorCode Sent(MatProductType type, Mat A, Mat P, PetscLogDouble *entries)
{
  PetscLogDouble more;
  MatInfo        info;
  Mat            T, W, block;

  PetscFunctionBeginUser;
  *entries = 0;
  if (type != MATPRODUCT_AtB) PetscCall(OthersRows(A, P, entries));
  if (type == MATPRODUCT_AB) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(P, NULL, &block, NULL));
  PetscCall(MatGetInfo(block, MAT_LOCAL, &info));
  more = info.nz_used;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &more, 1, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  *entries += more;
  PetscCall(MatTranspose(P, MAT_INITIAL_MATRIX, &T));
  if (type == MATPRODUCT_PtAP)
    PetscCall(MatMatMult(A, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &W));
  else {
    W = A;
    PetscCall(PetscObjectReference((PetscObject)W));
  }
  PetscCall(OthersRows(T, W, &more));
  *entries += more;
  PetscCall(MatTestDestroy(&T, &W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Bus(PetscLogDouble bytes[2])
{
  bytes[0] = bytes[1] = 0;
  if (BytesToHost) {
    bytes[0] = (PetscLogDouble)BytesToDevice();
    bytes[1] = (PetscLogDouble)BytesToHost();
  }
#if defined(PETSC_HAVE_DEVICE)
  else {
    bytes[0] = petsc_ctog_sz;
    bytes[1] = petsc_gtoc_sz;
  }
#endif
}

/* A numeric phase that counts: bytes to the devices and to the hosts, all processes together */
static PetscErrorCode Counted(Mat C, PetscLogDouble bytes[2])
{
  PetscLogDouble before[2], after[2];

  PetscFunctionBeginUser;
  if (HandsOff) HandsOff(1);
  Bus(before);
  PetscCall(MatProductNumeric(C));
  Bus(after);
  if (HandsOff) HandsOff(0);
  for (int k = 0; k < 2; k++) bytes[k] = after[k] - before[k];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, bytes, 2, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* k: 0 of MATAIJ, 1 ours. A and B are squares of matrices, and so born on the device. */
static PetscErrorCode Test(MatProductType type, PetscInt n, PetscBool scattered)
{
  Mat            S, A[2], P[2], Q[2], C[2];
  PetscLogDouble bytes[2], sent = 0, all;
  MatInfo        info;
  const PetscInt eight = (PetscInt)sizeof(PetscScalar);
  char           name[128];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s of %d rows%s", MatProductTypes[type], (int)(n * n), scattered ? ", scattered" : ""));
  MatTestName = name;
  for (int k = 0; k < 2; k++) {
    const char *const t = k ? "aijhybridgpu" : MATAIJ;

    PetscCall(MatTestStencil(2, n, PETSC_FALSE, 0.1, t, &S));
    PetscCall(MatMatMult(S, S, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &A[k]));
    PetscCall(MatDestroy(&S));
    PetscCall(Interpolation(n * n, 1, scattered, t, &P[k]));
    PetscCall(Interpolation(n * n, 2, (PetscBool)!scattered, t, &Q[k]));
    PetscCall(MatTestProduct(type, type == MATPRODUCT_AtB ? P[k] : A[k], type == MATPRODUCT_AtB ? A[k] : P[k], NULL, &C[k]));
  }
  MatTestCheckSame(C[1], C[0], "first");
  PetscCall(MatGetInfo(C[1], MAT_GLOBAL_SUM, &info));
  all = info.nz_used * eight;
  if (Size > 1) PetscCall(Sent(type, A[0], P[0], &sent));
  for (int pass = 0; pass < 4; pass++) {
    if (pass == 1 || pass == 3) { /* the device writes A's values, and has got P's when bytes are counted */
      for (int k = 0; k < 2; k++) {
        PetscCall(MatScale(A[k], -0.75));
        if (pass == 1) PetscCall(MatScale(P[k], -1.25));
        if (pass == 1) PetscCall(MatTestUse(P[k]));
      }
    }
    if (pass >= 2) { /* the host writes P's */
      PetscInt start, end;

      for (int k = 0; k < 2; k++) {
        PetscCall(MatGetOwnershipRange(P[k], &start, &end));
        for (PetscInt r = start; r < end; r += 3) PetscCall(MatSetValue(P[k], r, PetscMin(r / 4, n * n / 4 - 1), 0.5 + pass, INSERT_VALUES));
        PetscCall(MatTestAssemble(P[k]));
      }
    }
    PetscCall(MatProductNumeric(C[0]));
    PetscCall(Counted(C[1], bytes));
    MatTestCheckSame(C[1], C[0], pass < 2 ? "again" : "again, P with other values");
    if (pass > 1 || !Device) continue;
    if (Size == 1 && !Mirror)
      MatTestCheck(bytes[0] + bytes[1] <= (pass ? 0 : 16 * sizeof(PetscCount)), "one process: nothing crosses the bus, but how long a plan and its parts are and whether it holds");
    else if (!pass)
      MatTestCheck(Mirror || (bytes[0] <= sent * eight + 256 * Size && bytes[1] <= sent * eight + 256 * Size), "the operands are what they were");
    else if (Mirror)
      MatTestCheck(bytes[0] < bytes[1], "the host's copies come, and do not go back");
    else if (!HandsOff && bytes[0] + bytes[1] == 0)
      continue; /* several cards of a node: from card to card, which PETSc's log does not count as the bus */
    else {      /* a few bytes are counts of the methods' own */
      MatTestCheck((bytes[0] >= sent * eight || !Messages) && bytes[0] <= sent * eight + 256 * Size, "to the devices: values that others have sent");
      MatTestCheck((bytes[1] >= sent * eight || !Messages) && bytes[1] <= sent * eight + 256 * Size, "to the hosts: values for other processes");
      if (!scattered) MatTestCheck(bytes[1] < (Size > 3 ? 0.5 : 0.25) * all, "values of the result stay on the devices");
    }
  }
  /* another P: other places, other counts */
  PetscCall(MatProductReplaceMats(type == MATPRODUCT_AtB ? Q[1] : NULL, type == MATPRODUCT_AtB ? NULL : Q[1], NULL, C[1]));
  PetscCall(MatProductNumeric(C[1]));
  PetscCall(MatDestroy(&C[0]));
  PetscCall(MatTestProduct(type, type == MATPRODUCT_AtB ? Q[0] : A[0], type == MATPRODUCT_AtB ? A[0] : Q[0], NULL, &C[0]));
  MatTestCheckSame(C[1], C[0], "P of another pattern");
  MatTestBoth(MatScale, A[0], A[1], 2.0);
  MatTestBoth(MatProductNumeric, C[0], C[1]);
  MatTestCheckSame(C[1], C[0], "P of another pattern, again");
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &P[k], &Q[k], &C[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error that one process has alone leaves the others waiting, in any PETSc program: here two halves of a grid,
   alike, on each pair of processes, stop at the same place */
static PetscErrorCode Refused(void)
{
  const PetscMPIInt color = Rank / 2;
  MPI_Comm          pair;
  PetscBool         refused = PETSC_FALSE;

  PetscFunctionBeginUser;
  MatTestName = "a card that is too small";
  PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, color, Rank, &pair));
  for (PetscInt n = 16; n <= 256 && !refused; n *= 2) {
    Mat            A[2], C[2];
    PetscErrorCode ierr;

    for (int k = 0; k < 2; k++) {
      PetscInt start, end;

      C[k] = NULL;
      PetscCall(MatTestCreate(pair, k ? "aijhybridgpu" : MATAIJ, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, &A[k]));
      PetscCall(MatMPIAIJSetPreallocation(A[k], 5, NULL, 5, NULL));
      PetscCall(MatGetOwnershipRange(A[k], &start, &end));
      for (PetscInt r = start; r < end; r++)
        for (PetscInt d = -2; d <= 2; d++) {
          const PetscInt c = r + (d == -2 || d == 2 ? d / 2 * n : d);

          if (c >= 0 && c < n * n) PetscCall(MatSetValue(A[k], r, c, d ? -1.0 : 4.5, INSERT_VALUES));
        }
      PetscCall(MatTestAssemble(A[k]));
    }
    QUIETLY(ierr, MatMatMult(A[1], A[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[1]));
    refused = (PetscBool)(ierr != PETSC_SUCCESS);
    if (refused)
      MatTestCheck(n > 16 && ierr == PETSC_ERR_MEM, "out of memory, and not at once");
    else {
      PetscCall(MatMatMult(A[0], A[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
      MatTestCheckSame(C[1], C[0], "what fits");
    }
    MatTestCheckSame(A[1], A[0], "the operands are what they were");
    for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &C[k]));
  }
  MatTestCheck(refused, "the card is too small");
  PetscCallMPI(MPI_Comm_free(&pair));
  PetscCall(Test(MATPRODUCT_AB, 24, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP};
  PetscBool                   flg;
  void                       *library = NULL;

  PetscFunctionBeginUser;
  MatTestLimit(argc, argv);
  PetscCall(PetscInitialize(&argc, &argv, NULL, "What crosses the bus in parallel products of MATAIJHYBRIDGPU\n"));
  PetscCall(PetscLogDefaultBegin());
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &Device));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &Mirror));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm", "mpi", &Messages));
  PetscCall(MatTestOpenDevice());
  PetscCall(MatTestLibrary("-mat_aijhybridgpu_cuda_library", &library));
  if (Device && library) {
    *(void **)&BytesToHost   = dlsym(library, "HybEmulatorBytesToHost");
    *(void **)&BytesToDevice = dlsym(library, "HybEmulatorBytesToDevice");
    if (BytesToHost && !Mirror && !PetscDefined(USE_DEBUG)) *(void **)&HandsOff = dlsym(library, "HybEmulatorHandsOff");
    dlclose(library);
  }
  if (!BytesToHost && !PetscDefined(HAVE_DEVICE)) Device = PETSC_FALSE; /* nobody counts */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-refused", &flg));
  if (flg) PetscCall(Refused());
  for (int t = 0; t < 3 && !flg; t++) {
    PetscCall(Test(types[t], 24, PETSC_FALSE));
    PetscCall(Test(types[t], 13, PETSC_TRUE));
  }
  return MatTestEnd();
}

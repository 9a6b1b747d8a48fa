/*
  What does not fit on the card is refused with the numbers, before anything is taken. A matrix beside another one,
  whose message names rows, nonzeros and bytes, and which is sent once the other one is gone; the set-up of GAMG where
  the least that it needs does not fit, on all processes if on one, after which the same PC is set up with more room and
  the matrix serves on the host; and what such a set-up is expected to hold, with its solve, beside what it held at
  most.

TEST np=1 @emulated
TEST np=1,2 @emulated -mat_aijhybridgpu_memory mirror -estimate
TEST np=2,3 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "gamgtest.h"
#include "matfault.h"

static const HybBackend *Device;
static PetscMPIInt       Rank, Size;
static char              Message[2048];

static PetscErrorCode Catch(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType p, const char *message, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && message) PetscCallAbort(PETSC_COMM_SELF, PetscStrncpy(Message, message, sizeof(Message)));
  return n;
}

/* error = call, whose message is kept */
#define CAUGHT(error, call)                        \
  do {                                             \
    STACK_SAVE;                                    \
    Message[0] = 0;                                \
    PetscCall(PetscPushErrorHandler(Catch, NULL)); \
    error = call;                                  \
    PetscCall(PetscPopErrorHandler());             \
    STACK_RESTORE;                                 \
  } while (0)

static PetscErrorCode Held(size_t *now, size_t *most)
{
  HybMemoryReport r;

  PetscFunctionBeginUser;
  PetscCall(Device->usage(&r, PETSC_FALSE));
  *now = r.device_bytes + r.managed_bytes;
  if (most) *most = r.device_peak + r.managed_peak;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* so many bytes more than are held now; 0: as many as there are */
static PetscErrorCode Allow(size_t more)
{
  size_t now;

  PetscFunctionBeginUser;
  PetscCall(Held(&now, NULL));
  MatTestMemoryLimit = more ? now + more : 0;
  PetscCall(MatTestHook(NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n^dim points, bs unknowns each, with those next to them in direction of the axes or all around; rows as they come, or
   nearly all of the last process */
static PetscErrorCode Stencil(PetscInt dim, PetscInt n, PetscBool all, PetscInt bs, PetscBool uneven, MatType type, Mat *A)
{
  const PetscInt nz = dim == 3 ? n : 1, N = n * n * nz, m = uneven ? (Rank == Size - 1 ? N - 8 * (Size - 1) : 8) * bs : PETSC_DECIDE;
  PetscInt       start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, m, m, N * bs, N * bs, A));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSeqAIJSetPreallocation(*A, 27 * bs, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 27 * bs, NULL, 27 * bs, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt v = r / bs, x = v % n, y = v / n % n, z = v / n / n;

    for (PetscInt d = 0; d < 27; d++) {
      const PetscInt dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1, X = x + dx, Y = y + dy, Z = z + dz, c = (X + n * (Y + n * Z)) * bs;

      if (X < 0 || Y < 0 || Z < 0 || X >= n || Y >= n || Z >= nz || (!all && PetscAbsInt(dx) + PetscAbsInt(dy) + PetscAbsInt(dz) > 1)) continue;
      for (PetscInt u = 0; u < bs; u++) PetscCall(MatSetValue(*A, r, c + u, c + u == r ? 27.0 * bs : (c + u) % bs == r % bs ? -1.0
                                                                                                                            : -0.1,
                                                              INSERT_VALUES));
    }
  }
  PetscCall(MatTestAssemble(*A));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckMatrix(void)
{
  const PetscInt n = 20, m = n * n * n, nnz = 7 * m - 6 * n * n;
  const size_t   i = (size_t)(m + 1) * sizeof(PetscInt), j = (size_t)nnz * sizeof(PetscInt), a = (size_t)nnz * sizeof(PetscScalar);
  Mat            A[3]; /* the one that is refused, the one that is there, the same of MATAIJ */
  Vec            x, y, z;
  PetscErrorCode ierr;
  size_t         before, after, needed = 0, left = 0, total = 0, part[3];
  const char    *at;
  double         rows = 0, nonzeros = 0;

  PetscFunctionBeginUser;
  MatTestName = "a matrix that does not fit";
  for (int k = 0; k < 3; k++) PetscCall(Stencil(3, n, PETSC_FALSE, 1, PETSC_FALSE, k < 2 ? "aijhybridgpu" : MATAIJ, &A[k]));
  PetscCall(MatCreateVecs(A[2], &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(Allow(2 * (i + j + a) - 1 + 3 * (size_t)m * sizeof(PetscScalar)));
  PetscCall(MatMult(A[1], x, y));
  PetscCall(Allow(i + j + a - 1));
  PetscCall(Held(&before, NULL));
  CAUGHT(ierr, MatMult(A[0], x, y));
  PetscCall(Held(&after, NULL));
  MatTestCheck(ierr == PETSC_ERR_MEM, "out of memory");
  at = strstr(Message, "device: ");
  if (!at || sscanf(at, "device: %zu bytes needed, %zu free of %zu, for a matrix of %lf rows and %lf nonzeros (row offsets %zu, columns %zu, values %zu)", &needed, &left, &total, &rows, &nonzeros, &part[0], &part[1], &part[2]) != 8) {
    printf("%s\n", Message);
    MatTestCheck(PETSC_FALSE, "the message");
  } else
    MatTestCheck(needed == i + j + a && left < needed && total == before + needed - 1 && rows == m && nonzeros == nnz && part[0] == i && part[1] == j && part[2] == a, "the numbers");
  MatTestCheck(strstr(Message, "-mat_aijhybridgpu_backend host"), "the way out");
  MatTestCheck(before >= i + j + a && after <= before + (size_t)(2 * m) * sizeof(PetscScalar), "nothing was taken but vectors");
  PetscCall(MatDestroy(&A[1]));
  PetscCall(Held(&after, NULL));
  PetscCall(Allow(MatTestMemoryLimit - after));
  PetscCall(MatMult(A[0], x, y));
  PetscCall(MatMult(A[2], x, z));
  PetscCall(VecTestSame(y, z, "it is sent once the other one is gone", __FILE__, __LINE__));
  PetscCall(Allow(0));
  PetscCall(MatTestDestroy(&A[0], &A[2], &x, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by conjugate gradients */
static PetscErrorCode Conjugate(Mat A, KSP *ksp)
{
  PetscFunctionBeginUser;
  PetscCall(Solver(A, ksp));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSetUp(PetscBool uneven)
{
  const PetscInt n = uneven ? 16 : 24;
  Mat            A, H;
  KSP            a, h;
  PC             pa, ph;
  PetscInt       m, rest, nlevels, errors[2], before;
  PetscErrorCode ierr;
  size_t         now, after;

  PetscFunctionBeginUser;
  MatTestName = uneven ? "a set-up that does not fit on one process" : "a set-up that does not fit";
  PetscCall(Stencil(3, n, PETSC_FALSE, 1, uneven, MATAIJ, &A));
  PetscCall(Stencil(3, n, PETSC_FALSE, 1, uneven, "aijhybridgpu", &H));
  PetscCall(MatGetLocalSize(A, &m, &rest));
  PetscCall(Conjugate(A, &a));
  PetscCall(KSPSetUp(a));
  PetscCall(KSPGetPC(a, &pa));
  PetscCall(Conjugate(H, &h));
  { /* A goes to the device, with what its products need */
    Vec x, y;

    PetscCall(MatCreateVecs(H, &x, &y));
    PetscCall(VecSet(x, 1));
    PetscCall(MatMult(H, x, y));
    PetscCall(MatMult(H, x, y));
    PetscCall(MatTestDestroy(&x, &y));
  }
  PetscCall(Held(&now, NULL));
  if (!uneven || Rank == Size - 1) PetscCall(Allow((size_t)m * 12 * sizeof(PetscScalar) + 20000));
  PetscCall(Levels(&before));
  CAUGHT(ierr, KSPSetUp(h));
  errors[0] = ierr == PETSC_ERR_MEM;
  PetscCallMPI(MPI_Allreduce(&errors[0], &errors[1], 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  MatTestCheck(errors[0] || (uneven && ierr), "refused on every process");
  MatTestCheck(errors[1] > 0, "for want of memory");
  if (!uneven || Rank == Size - 1) MatTestCheck(strstr(Message, "GAMG's set-up") || Size > 1, "the message says what for");
  if (errors[0] && strstr(Message, "GAMG's set-up")) MatTestCheck(strstr(Message, "rows") && strstr(Message, "GB"), "the numbers");
  PetscCall(Held(&after, NULL));
  MatTestCheck(Size > 1 || after == now, "nothing was taken");
  PetscCall(Levels(&rest));
  MatTestCheck(rest == before, "no aggregate was sought");
  PetscCall(Allow(0));
  PetscCall(KSPSetUp(h));
  PetscCall(KSPGetPC(h, &ph));
  PetscCall(SameHierarchy(pa, ph, LOOSE, "with more room", &nlevels));
  PetscCall(Solve(a, h, "with more room"));
  PetscCall(MatTestDestroy(&a, &h));
  { /* and a program may go on with AIJ */
    Mat B;

    PetscCall(MatConvert(H, MATAIJ, MAT_INITIAL_MATRIX, &B));
    MatTestCheckSame(B, A, "the matrix is what it was");
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the number behind these words of what a matrix says of itself */
static PetscErrorCode Said(Mat A, const char *words, size_t *number)
{
  char       *text;
  const char *at;
  size_t      size;
  FILE       *f = open_memstream(&text, &size);
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_SELF, f, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(f);
  at      = strstr(text, words);
  *number = at ? (size_t)strtoull(at + strlen(words), NULL, 10) : 0;
  free(text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both numbers are the most so far: each problem is larger than those before it */
static PetscErrorCode CheckEstimate(const char *name, PetscInt dim, PetscInt n, PetscBool all, PetscInt bs)
{
  Mat    A, own;
  Vec    x, b;
  KSP    ksp;
  size_t held, now, most, planned;
  double ratio;

  PetscFunctionBeginUser;
  MatTestName = name;
  PetscCall(Stencil(dim, n, all, bs, PETSC_FALSE, "aijhybridgpu", &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(x, 1));
  PetscCall(MatMult(A, x, b));
  PetscCall(Held(&held, NULL));
  PetscCall(Conjugate(A, &ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Held(&now, &most));
  own = A;
  if (Size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &own, NULL, NULL));
  PetscCall(Said(own, "planned for multigrid ", &planned));
  ratio = (double)(planned - held) / (double)(most - held);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: held %zu, planned %zu, held at most %zu: beside what was held %.2f times as much\n", name, held, planned, most, ratio));
  MatTestCheck(planned > held && most > held && ratio >= 0.8 && ratio <= 1.5, "what was planned is 0.8 to 1.5 times what was held");
  PetscCall(MatTestDestroy(&ksp, &A, &x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool estimate = PETSC_FALSE;

  PetscFunctionBeginUser;
  MatTestCards(argc, argv);
  PetscCall(Begin(&argc, &argv));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-estimate", &estimate, NULL));
  PetscCall(MatTestOpenDevice());
  PetscCall(MatTestHook(NULL, &Device));
  if (!Device) {
    MatTestSkipped++;
    return MatTestEnd();
  }
  if (!estimate && Size == 1) PetscCall(CheckMatrix());
  if (!estimate && Covers) {
    PetscCall(CheckSetUp(PETSC_FALSE));
    if (Size > 1) PetscCall(CheckSetUp(PETSC_TRUE));
  }
  if (estimate && Covers) {
    if (Size == 1) PetscCall(CheckEstimate("5-point 50^2", 2, 50, PETSC_FALSE, 1));
    if (Size == 1) PetscCall(CheckEstimate("9-point 60^2", 2, 60, PETSC_TRUE, 1));
    PetscCall(CheckEstimate("7-point 16^3", 3, 16, PETSC_FALSE, 1));
    PetscCall(CheckEstimate("7-point 20^3", 3, 20, PETSC_FALSE, 1));
    if (Size == 1) PetscCall(CheckEstimate("three unknowns, 10^3", 3, 10, PETSC_TRUE, 3));
    PetscCall(CheckEstimate("27-point 20^3", 3, 20, PETSC_TRUE, 1));
    if (Size > 1) PetscCall(CheckEstimate("three unknowns, 11^3", 3, 11, PETSC_TRUE, 3));
  }
  return MatTestEnd();
}

/*
  Several cards in one machine: each process takes its own, its share of managed memory is that of the processes on its
  card, and a program that makes another card the thread's current one between operations gets the same results. The
  emulated device has two cards here, and fails where one touches the other's memory.

TEST np=1,2,3 @emulated
TEST np=2 @emulated -everyone_on 1
TEST np=2 @emulated -mat_aijhybridgpu_memory mirror
*/
#define _GNU_SOURCE
#include "mattest.h"
#include <stdlib.h>
#include <unistd.h>

static int (*SetCard)(int);
static int       Mine, Cards;
static PetscBool Emulated;

/* the current card is another one */
static void Elsewhere(void)
{
  if (SetCard && Cards > 1) (void)(*SetCard)((Mine + 1) % Cards);
}

static PetscErrorCode Stencil(PetscInt n, MatType type, Mat *A)
{
  const PetscInt N = n * n;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_SELF, type, N, N, N, N, A));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  for (PetscInt r = 0; r < N; r++) {
    const PetscInt x = r % n, y = r / n;

    PetscCall(MatSetValue(*A, r, r, 4.0 + 0.25 * (r % 7), INSERT_VALUES));
    if (x > 0) PetscCall(MatSetValue(*A, r, r - 1, -1.0, INSERT_VALUES));
    if (x < n - 1) PetscCall(MatSetValue(*A, r, r + 1, -1.5, INSERT_VALUES));
    if (y > 0) PetscCall(MatSetValue(*A, r, r - n, -1.0, INSERT_VALUES));
    if (y < n - 1) PetscCall(MatSetValue(*A, r, r + n, -0.5, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the plugin says of its card in -info */
static PetscErrorCode Said(const char *folder, PetscMPIInt rank, double *share)
{
  char        name[PETSC_MAX_PATH_LEN], line[1024];
  const char *at;
  FILE       *f;

  PetscFunctionBeginUser;
  Cards = 0;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s/info.%d", folder, (int)rank));
  f = fopen(name, "r");
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", name);
  while (fgets(line, sizeof(line), f)) {
    if (!strstr(line, "Device library ") || !(at = strstr(line, ", card ")) || sscanf(at, ", card %d of %d", &Mine, &Cards) != 2) continue;
    Emulated = (PetscBool)(strstr(line, "library emulated") != NULL);
    at       = strstr(line, "managed memory up to ");
    *share   = at ? atof(at + strlen("managed memory up to ")) : -1;
  }
  fclose(f);
  (void)unlink(name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Work(Mat A, Mat H, PetscInt turn)
{
  Mat C, D, T, S, G, K;
  Vec x, y, z;

  PetscFunctionBeginUser;
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 900, &x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecSetRandom(x, NULL));
  Elsewhere();
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(H, x, z));
  VecTestCheckSame(z, y, "MatMult");
  Elsewhere();
  PetscCall(MatMultTranspose(A, x, y));
  PetscCall(MatMultTranspose(H, x, z));
  VecTestCheckSame(z, y, "MatMultTranspose");
  Elsewhere();
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  MatTestCheckSame(C, D, "A*A");
  Elsewhere();
  MatTestBoth(MatScale, C, D, 2.0);
  MatTestCheckSame(C, D, "MatScale of the result");
  Elsewhere();
  PetscCall(MatMatMult(A, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(H, H, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
  MatTestCheckSame(C, D, "A*A again");
  Elsewhere();
  PetscCall(MatMult(C, x, y));
  PetscCall(MatMult(D, x, z));
  VecTestCheckSame(z, y, "the result times a vector");
  Elsewhere();
  PetscCall(MatTranspose(C, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatTranspose(D, MAT_INITIAL_MATRIX, &S));
  MatTestCheckSame(T, S, "transpose of the result");
  Elsewhere();
  PetscCall(MatPtAP(A, C, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &G));
  PetscCall(MatPtAP(H, D, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &K));
  MatTestCheckSame(G, K, "P^T A P");
  Elsewhere();
  PetscCall(MatPtAP(A, C, MAT_REUSE_MATRIX, PETSC_DEFAULT, &G));
  MatTestCheckSame(G, K, "P^T A P again");
  MatTestBoth(MatScale, A, H, 1.0 + turn);
  Elsewhere();
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(H, x, z));
  VecTestCheckSame(z, y, "MatMult with other values");
  Elsewhere(); /* what is given back is the other card's, too */
  PetscCall(MatDestroy(&C));
  Elsewhere();
  PetscCall(MatDestroy(&T));
  Elsewhere();
  PetscCall(MatTestDestroy(&G, &D, &S, &K, &x, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A, H;
  char        folder[] = "/tmp/aijhybridgpu-cards-XXXXXX", info[PETSC_MAX_PATH_LEN], path[PETSC_MAX_PATH_LEN] = "";
  PetscMPIInt rank, size;
  PetscInt    everyone = -1;
  PetscBool   mirror;
  double      share = -1;
  void       *library;

  (void)setenv("HYB_EMULATOR_CARDS", "2", 1); /* before the device library is opened, at its first use */
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), NULL));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-everyone_on", &everyone, NULL));
  if (!strstr(path, "emulated")) everyone = -1; /* PETSc's own option says it where vectors are on a device */
  if (everyone >= 0) {
    PetscCall(PetscSNPrintf(info, sizeof(info), "%d", (int)everyone));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_aijhybridgpu_device", info));
  }
  MatTestName = "cards";
  PetscCheck(mkdtemp(folder), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", folder);
  PetscCall(PetscSNPrintf(info, sizeof(info), "%s/info", folder));
  PetscCall(PetscInfoSetFile(info, "w"));
  PetscCall(PetscInfoAllow(PETSC_TRUE));
  PetscCall(Stencil(30, "seqaijhybridgpu", &A));
  PetscCall(Stencil(30, MATSEQAIJ, &H));
  { /* the first use of the device */
    Mat C;

    PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(PetscInfoAllow(PETSC_FALSE));
  PetscCall(Said(folder, rank, &share));
  (void)rmdir(folder);
  if (!Cards) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "SKIPPED: no device\n"));
    MatTestSkipped++;
  } else {
    const int sharing = everyone >= 0 ? size : (size + Cards - 1) / Cards;

    MatTestCheck(!Emulated || Cards == 2, "the emulated device has two cards");
    MatTestCheck(Mine == (everyone >= 0 ? (int)everyone : rank % Cards), "processes take the cards in turn, or the one that is named");
    /* half of 4 GiB that are free, for all processes on the card */
    if (Emulated) MatTestCheck(mirror ? share == 0 : PetscAbsReal((PetscReal)(share * sharing / 2147483648.0) - 1) < 0.01, "the share of managed memory is that of the processes on the card");
    library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (Emulated)
      *(void **)&SetCard = library ? dlsym(library, "HybEmulatorSetCard") : NULL;
    else
      *(void **)&SetCard = dlsym(RTLD_DEFAULT, "cudaSetDevice");
    MatTestCheck(!Emulated || SetCard, "the emulator's cards can be chosen");
    if (!SetCard || Cards < 2) {
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "SKIPPED: %s\n", SetCard ? "one card" : "this PETSc has no cudaSetDevice()"));
      MatTestSkipped++;
    }
  }
  for (PetscInt turn = 0; turn < 2; turn++) PetscCall(Work(A, H, turn));
  Elsewhere();
  PetscCall(MatTestDestroy(&A, &H));
  return MatTestEnd();
}

/*
  Vectors of parallel matrices whose vectors are on the device, which the type makes itself, beside those of MATAIJ:
  layouts, block sizes and mappings, entries and blocks of other processes, duplicates, a matrix that is not set up yet,
  one vector alone. PETSc's constructor of such vectors is replaced by one on the host that does with its arguments what
  PETSc's does, so that no card is needed: what is tried is what it is asked for.

TEST np=2,3
TEST np=2 @emulated
TEST np=+2 @emulated -mat_aijhybridgpu_comm mpi
*/
#include "mattest.h"

#if defined(PETSC_HAVE_CUDA)
static PetscMPIInt Rank, Size;
static PetscInt    Made;

/* instead of PETSc's, for the plugin as well: the program's own symbols come first */
PetscErrorCode VecCreateMPICUDAWithArrays(MPI_Comm comm, PetscInt bs, PetscInt n, PetscInt N, const PetscScalar cpuarray[], const PetscScalar gpuarray[], Vec *v)
{
  PetscFunctionBeginUser;
  Made++;
  PetscCheck(!cpuarray && !gpuarray, comm, PETSC_ERR_ARG_WRONG, "The vector is to have no arrays yet");
  PetscCall(VecCreate(comm, v));
  PetscCall(VecSetSizes(*v, n, N));
  PetscCall(VecSetBlockSize(*v, bs));
  PetscCall(VecSetType(*v, VECMPI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* as many rows and columns on each process as its number tells, in blocks; none on the second of three */
static PetscErrorCode Make(MatType type, PetscInt rbs, PetscInt cbs, PetscBool setup, Mat *A)
{
  const PetscInt blocks = Rank == 1 && Size > 2 ? 0 : 2 + Rank;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, rbs * blocks, cbs * blocks, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetBlockSizes(*A, rbs, cbs));
  PetscCall(MatSetType(*A, type));
  if (setup) {
    PetscCall(MatMPIAIJSetPreallocation(*A, 1, NULL, 0, NULL));
    PetscCall(MatTestAssemble(*A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* each process sets the first block and the last entry of the next one's part, and its own first ones */
static PetscErrorCode Fill(Vec v)
{
  const PetscInt *ranges;
  PetscInt        bs;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRanges(v, &ranges));
  PetscCall(VecGetBlockSize(v, &bs));
  for (int k = 0; k < 2; k++) {
    const PetscMPIInt to = (Rank + k) % Size;
    const PetscInt    b  = ranges[to] / bs;
    PetscScalar       a[8];

    if (ranges[to + 1] == ranges[to]) continue;
    for (PetscInt t = 0; t < bs; t++) a[t] = 1 + t + 10 * Rank;
    PetscCall(VecSetValuesBlocked(v, 1, &b, a, ADD_VALUES));
    PetscCall(VecSetValue(v, ranges[to + 1] - 1, 100 + Rank, ADD_VALUES));
  }
  PetscCall(VecTestAssemble(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v of ours beside w of MATAIJ */
static PetscErrorCode Same(Vec v, Vec w, PetscLayout map)
{
  const PetscInt *vr, *wr;
  PetscInt        n[2], bs[2];
  PetscBool       same;
  PetscLayout     layout;
  PetscReal       norm;
  Vec             more[2];

  PetscFunctionBeginUser;
  PetscCall(VecGetLayout(v, &layout));
  MatTestCheck(layout == map, "the layout is the matrix's own");
  PetscCall(VecGetSize(v, &n[0]));
  PetscCall(VecGetSize(w, &n[1]));
  MatTestCheck(n[0] == n[1], "all entries");
  PetscCall(VecGetBlockSize(v, &bs[0]));
  PetscCall(VecGetBlockSize(w, &bs[1]));
  MatTestCheck(bs[0] == bs[1], "the block size");
  PetscCall(VecGetOwnershipRanges(v, &vr));
  PetscCall(VecGetOwnershipRanges(w, &wr));
  MatTestCheck(vr && wr, "whose entries is known");
  if (!vr || !wr) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscArraycmp(vr, wr, Size + 1, &same));
  MatTestCheck(same, "whose entries");
  PetscCall(VecNorm(v, NORM_INFINITY, &norm));
  MatTestCheck(norm == 0, "zeros in the beginning");
  PetscCall(VecDuplicate(v, &more[0]));
  PetscCall(VecDuplicate(w, &more[1]));
  MatTestBoth(Fill, v, w);
  VecTestCheckSame(v, w, "entries and blocks of other processes");
  for (int k = 0; k < 2; k++) {
    PetscCall(VecSet(more[k], 0.0));
    PetscCall(Fill(more[k]));
  }
  VecTestCheckSame(more[0], more[1], "of a duplicate");
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&more[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Both(PetscInt rbs, PetscInt cbs, PetscBool setup)
{
  Mat         A, H;
  Vec         v[2], w[2];
  PetscLayout rmap, cmap;
  PetscInt    made = Made;

  PetscFunctionBeginUser;
  PetscCall(Make("mpiaijhybridgpu", rbs, cbs, setup, &A));
  PetscCall(Make(MATMPIAIJ, rbs, cbs, setup, &H));
  PetscCall(MatSetVecType(A, VECCUDA));
  PetscCall(MatCreateVecs(A, &v[0], NULL));
  MatTestCheck(Made == made + 1, "the type makes one");
  PetscCall(MatCreateVecs(A, NULL, &v[1]));
  MatTestCheck(Made == made + 2, "the type makes the other one");
  PetscCall(MatCreateVecs(H, &w[0], &w[1]));
  PetscCall(MatGetLayouts(A, &rmap, &cmap));
  PetscCall(Same(v[0], w[0], cmap));
  PetscCall(Same(v[1], w[1], rmap));
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&v[k], &w[k]));
  /* what is asked of PETSc is PETSc's, and ours is asked again afterwards */
  made = Made;
  PetscCall(MatSetVecType(A, VECSTANDARD));
  PetscCall(MatCreateVecs(A, &v[0], &v[1]));
  MatTestCheck(Made == made, "vectors of the host are PETSc's");
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(MatSetVecType(A, VECCUDA));
  PetscCall(MatCreateVecs(A, &v[0], &v[1]));
  MatTestCheck(Made == made + 2, "the type's once more");
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{

  MatTestCards(argc, argv);
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
#if defined(PETSC_HAVE_CUDA)
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  for (int setup = 1; setup >= 0 && Size > 1; setup--) { /* one process's are PETSc's */
    MatTestName = setup ? "a matrix that is set up" : "a matrix that is not set up";
    PetscCall(Both(1, 1, (PetscBool)setup));
    PetscCall(Both(3, 3, (PetscBool)setup));
    PetscCall(Both(2, 4, (PetscBool)setup));
  }
  if (Size == 1) MatTestSkipped++;
#else
  MatTestSkipped++; /* a PETSc without CUDA has no such vectors */
#endif
  return MatTestEnd();
}

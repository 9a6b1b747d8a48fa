/*
  Duplicates on the host of matrices large enough for all cores to copy: the entries, what else a duplicate takes over,
  that it owns its arrays, and that the original is what it was; from each kind of storage, with few rows, with empty
  ones, and where new entries make a result leave its arrays.

TEST np=1,2
TEST np=1 @emulated
TEST np=+1 @emulated -mat_seqaij_type seqaijhybridgpu
TEST np=+1 @emulated -mat_aijhybridgpu_memory mirror
TEST np=2 @emulated
*/
#include "mattest.h"
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

static PetscBool device;

/* how many duplicates ran so during the call; asked for where there is a device and one process */
#define COPIES(expected, call)                             \
  do {                                                     \
    PetscInt before_, after_;                              \
    PetscCall(MatTestEventCount("HybHostDup", &before_));  \
    PetscCall(call);                                       \
    PetscCall(MatTestEventCount("HybHostDup", &after_));   \
    if (device)                                            \
      MatTestCheck(after_ - before_ == (expected), #call); \
    else                                                   \
      MatTestSkipped++;                                    \
  } while (0)

/* New entries in the first local row and column, and in the last column */
static PetscErrorCode NewEntries(Mat M)
{
  PetscInt          first, last, col[2] = {0, 0};
  const PetscScalar v[2] = {3.0, 4.0};

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(M, &first, &last));
  PetscCall(MatGetSize(M, NULL, &col[1]));
  col[1]--;
  PetscCall(MatTestLetIn(M));
  if (last > first) PetscCall(MatSetValues(M, 1, &first, 2, col, v, INSERT_VALUES));
  PetscCall(MatTestAssemble(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A: of MATAIJ, H: the same of ours, which is destroyed; born: a device operation made it */
static PetscErrorCode Check(Mat A, Mat H, PetscBool born, const char *what)
{
  Mat       B, C, D, E;
  PetscBool flg;

  PetscFunctionBeginUser;
  MatTestName = what;
  COPIES(1, MatConvert(H, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &flg, MATSEQAIJ, MATMPIAIJ, ""));
  MatTestCheck(flg, "the type");
  PetscCall(MatEqual(B, A, &flg));
  MatTestCheck(flg, "MatConvert to aij");
  MatTestCheckMult(B, A, "MatMult of it");
  MatTestCheckMult(H, A, "MatMult of the original");
  COPIES(born ? 0 : 1, MatDuplicate(H, MAT_COPY_VALUES, &C));
  PetscCall(MatEqual(C, H, &flg));
  MatTestCheck(flg, "MatDuplicate");
  PetscCall(MatDuplicate(H, MAT_DO_NOT_COPY_VALUES, &D));
  {
    PetscReal norm;

    PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
    MatTestCheck(norm == 0, "a duplicate without values is zero");
  }
  PetscCall(MatDestroy(&D));
  /* the copies' arrays are their own: they are written, grow, and outlive the original */
  PetscCall(MatScale(B, 2.0));
  PetscCall(NewEntries(B));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &E));
  PetscCall(MatScale(E, 2.0));
  PetscCall(NewEntries(E));
  PetscCall(MatEqual(B, E, &flg));
  MatTestCheck(flg, "new entries in the converted one");
  PetscCall(MatDestroy(&E));
  PetscCall(MatEqual(H, A, &flg));
  MatTestCheck(flg, "the original stays what it was");
  MatTestCheckMult(H, A, "MatMult of the original afterwards");
  PetscCall(MatScale(C, 0.5));
  PetscCall(MatScale(C, 2.0));
  COPIES(born ? 1 : 0, MatConvert(H, MATAIJ, MAT_INPLACE_MATRIX, &H));
  PetscCall(MatEqual(H, A, &flg));
  MatTestCheck(flg, "in place");
  PetscCall(MatDestroy(&H));
  MatTestCheckSame(C, A, "the duplicate without the original");
  PetscCall(MatTestDestroy(&B, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* H, of ours, from X of MATAIJ, and A beside it */
static PetscErrorCode Checks(Mat X, const char *what)
{
  Mat  H, A, P, HP;
  char text[128];

  PetscFunctionBeginUser;
  PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s, of the host", what));
  PetscCall(MatDuplicate(X, MAT_COPY_VALUES, &A));
  PetscCall(Check(A, H, PETSC_FALSE, text));
  PetscCall(MatDestroy(&A));

  PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatTranspose(X, MAT_INITIAL_MATRIX, &P));
  PetscCall(MatConvert(P, "aijhybridgpu", MAT_INITIAL_MATRIX, &HP));
  PetscCall(MatMatMult(X, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &A));
  PetscCall(MatDestroy(&P));
  PetscCall(MatMatMult(H, HP, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &P));
  PetscCall(MatTestDestroy(&H, &HP));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s, a product", what));
  MatTestName = text;
  { /* the sums' order may be another one: A gets the product's values */
    MatTestCheckSame(P, A, "the product");
    PetscCall(MatDestroy(&A));
    PetscCall(MatConvert(P, MATAIJ, MAT_INITIAL_MATRIX, &A));
  }
  PetscCall(Check(A, P, PETSC_TRUE, text));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* row offsets that the program lent, which nobody writes after the assembly, not even for a moment: other processes may
   share them */
static PetscErrorCode Lent(Mat X)
{
  const PetscInt *i, *j;
  PetscInt       *offset, m, n;
  PetscScalar    *a;
  PetscMemType    mtype;
  PetscBool       flg;
  Mat             A, H, D;

  PetscFunctionBeginUser;
  MatTestName = "lent arrays";
  PetscCall(PetscObjectTypeCompare((PetscObject)X, MATSEQAIJ, &flg));
  if (!flg) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetSize(X, &m, &n));
  PetscCall(MatSeqAIJGetCSRAndMemType(X, &i, &j, &a, &mtype));
  offset = (PetscInt *)mmap(NULL, sizeof(PetscInt) * ((size_t)m + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PetscCheck(offset != MAP_FAILED, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory");
  PetscCall(PetscArraycpy(offset, i, m + 1));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, n, offset, (PetscInt *)j, a, &A));
  PetscCheck(!mprotect(offset, sizeof(PetscInt) * ((size_t)m + 1), PROT_READ), PETSC_COMM_SELF, PETSC_ERR_SYS, "mprotect");
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &D)); /* first of MATSEQAIJ, which may be ours by -mat_seqaij_type */
    PetscCall(MatEqual(D, X, &flg));
    MatTestCheck(flg, "a duplicate");
    PetscCall(MatDestroy(&D));
    PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &D));
    PetscCall(MatEqual(D, X, &flg));
    MatTestCheck(flg, "a conversion");
    PetscCall(MatDestroy(&D));
    if (!k) PetscCall(MatConvert(A, "aijhybridgpu", MAT_INPLACE_MATRIX, &A));
  }
  for (int k = 0; k < 3; k++) {
    PetscScalar *now;

    MatTestCheckMult(A, X, "MatMult");
    PetscCall(MatScale(A, 4.0));
    PetscCall(MatScale(A, 0.25));
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &now, &mtype));
    MatTestCheck(i == offset && now == a, "it stays in its arrays");
  }
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatDestroy(&A));
  PetscCall(MatEqual(H, X, &flg));
  MatTestCheck(flg, "a duplicate that outlives them");
  PetscCall(MatDestroy(&H));
  (void)munmap(offset, sizeof(PetscInt) * ((size_t)m + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what -info says from now on goes to a file */
static PetscErrorCode InfoBegin(void)
{
  char path[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/host_duplicates-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid()));
  PetscCall(PetscInfoAllow(PETSC_TRUE));
  PetscCall(PetscInfoSetFile(path, "w"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how often AIJ looked for rows of equal pattern since, by what it says itself */
static PetscErrorCode InfoSearches(PetscInt *searches)
{
  char *name, path[PETSC_MAX_PATH_LEN], line[1024];
  FILE *f;

  PetscFunctionBeginUser;
  PetscCall(PetscInfoGetFile(&name, &f));
  fflush(f);
  PetscCall(PetscInfoAllow(PETSC_FALSE));
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s.0", name)); /* releases differ */
  f = fopen(path, "r");
  if (!f) {
    PetscCall(PetscStrncpy(path, name, sizeof(path)));
    f = fopen(path, "r");
  }
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", path);
  for (*searches = 0; fgets(line, sizeof(line), f);) *searches += strstr(line, "Inode routines") != NULL;
  (void)fclose(f);
  (void)unlink(path);
  PetscCall(PetscFree(name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A conversion of what the device made knows of rows of equal pattern what AIJ does: with bs equal ones, or none. Where
   there are none the device says so, and no core goes along the columns. */
static PetscErrorCode Nodes(PetscInt bs, const char *what)
{
  Mat       X, A, H, T, B;
  PetscInt  searches, nodes[2], limit[2], *sizes[2];
  PetscBool same;

  PetscFunctionBeginUser;
  MatTestName = what;
  PetscCall(MatTestStencil(2, 60, PETSC_FALSE, 0.0, MATAIJ, &X));
  if (bs > 1) {
    PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, bs, bs, NULL, &B));
    for (PetscInt k = 0; k < bs * bs; k++) PetscCall(MatSetValue(B, k / bs, k % bs, 1.0 + (PetscReal)k, INSERT_VALUES));
    PetscCall(MatTestAssemble(B));
    PetscCall(MatConvert(B, MATSEQAIJ, MAT_INPLACE_MATRIX, &B));
    PetscCall(MatSeqAIJKron(X, B, MAT_INITIAL_MATRIX, &A));
    PetscCall(MatTestDestroy(&B, &X));
    X = A;
  }
  PetscCall(MatTranspose(X, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatTranspose(H, MAT_INITIAL_MATRIX, &T));
  PetscCall(InfoBegin());
  PetscCall(MatConvert(T, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(InfoSearches(&searches));
  MatTestCheck(searches == (bs > 1 ? 1 : 0), "who looked");
  PetscCall(MatInodeGetInodeSizes(A, &nodes[0], &sizes[0], &limit[0]));
  PetscCall(MatInodeGetInodeSizes(B, &nodes[1], &sizes[1], &limit[1]));
  MatTestCheck(nodes[0] == nodes[1] && limit[0] == limit[1] && !sizes[0] == !sizes[1], "the nodes");
  MatTestCheck((bs > 1) == (nodes[0] > 0), "what the matrix was made for");
  if (sizes[0] && sizes[1]) {
    PetscCall(PetscArraycmp(sizes[0], sizes[1], nodes[0], &same));
    MatTestCheck(same, "their sizes");
  }
  PetscCall(MatEqual(A, B, &same));
  MatTestCheck(same, "the conversion");
  PetscCall(MatTestDestroy(&X, &A, &H, &T, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a device's first result that is not small blocks of megabytes come from glibc's heap, which keeps the pages of
   those that are given back, and not each from the system. Nothing as large has been given back before. */
static PetscErrorCode Kept(void)
{
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
  #if __GLIBC_PREREQ(2, 33)
  void *volatile block;
  size_t before, after;
  Mat    X, H, C;

  PetscFunctionBeginUser;
  MatTestName = "pages that are kept";
  PetscCall(MatTestStencil(2, 190, PETSC_FALSE, 0.1, MATAIJ, &X));
  PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatTestProduct(MATPRODUCT_AB, H, H, NULL, &C));
  before = mallinfo2().hblks;
  block  = malloc((size_t)24 << 20);
  after  = mallinfo2().hblks;
  free(block);
  MatTestCheck(after == before, "a large block is the heap's");
  PetscCall(MatTestDestroy(&C, &H, &X));
  PetscFunctionReturn(PETSC_SUCCESS);
  #endif
#endif
  return PETSC_SUCCESS;
}

int main(int argc, char **argv)
{
  Mat         X;
  PetscMPIInt size;
  PetscBool   flg;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Duplicates on the host of large matrices\n"));
  PetscCall(PetscLogDefaultBegin());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_cuda_library", &device));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_seqaij_type", &flg));
  /* blocks are other matrices, and MATAIJ is ours too */
  if (size > 1 || flg) device = PETSC_FALSE;
  PetscCall(MatTestStencil(2, 60, PETSC_FALSE, 0.1, MATAIJ, &X)); /* above the limit by a little */
  if (device) {
    PetscCall(Kept());
    PetscCall(Nodes(1, "no rows of equal pattern"));
    PetscCall(Nodes(3, "rows of equal pattern"));
  }
  PetscCall(Checks(X, "a stencil"));
  PetscCall(Lent(X));
  PetscCall(MatDestroy(&X));
  { /* what is kept of the rows is large, so that all cores touch it first, and the entries are few */
    const PetscInt rows = ((PetscInt)1 << 21) + 5;
    PetscInt       start, end;
    Mat            H;

    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, rows, rows, 1, NULL, 1, NULL, &X));
    PetscCall(MatGetOwnershipRange(X, &start, &end));
    for (PetscInt r = start + (-start % 64 + 64) % 64; r < end; r += 64) PetscCall(MatSetValue(X, r, (7 * r) % rows, 1.0 + (PetscReal)(r % 17), INSERT_VALUES));
    PetscCall(MatTestAssemble(X));
    PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
    PetscCall(Check(X, H, PETSC_FALSE, "many rows"));
    PetscCall(MatDestroy(&X));
  }
  PetscCall(MatTestRandom(3000, 2500, 9, 3, &X));
  PetscCall(Checks(X, "empty rows"));
  PetscCall(MatDestroy(&X));
  PetscCall(MatTestRandom(1200, 4000, 20, 4, &X));
  PetscCall(Checks(X, "wide"));
  PetscCall(MatDestroy(&X));
  return MatTestEnd();
}

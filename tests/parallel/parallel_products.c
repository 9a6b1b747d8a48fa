/*
  Parallel products against one process's: every process has the whole matrices as well, multiplies them alone, and
  compares its rows of the parallel result bit for bit. All six products; random rows, some of them empty,
  interpolations, stencils, matrices without entries and such without any in others' columns; layouts that are uneven
  and leave processes without rows; numeric phases again with other values, other matrices of the same pattern, other
  patterns; operands of other types. What the result says of itself: type, block sizes, states, the method.

TEST np=1,3+2,4
TEST np=2+3 -few -mat_aijhybridgpu_diagonal_fewest 1
TEST np=2 -mat_aijhybridgpu_parallel_products 0
TEST np=2+4 @emulated -few
TEST np=+2,3 @emulated -few -mat_aijhybridgpu_diagonal_fewest 0
TEST np=+2 @emulated -few -mat_aijhybridgpu_diagonal_fewest 0 -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=3 @emulated -few -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_comm mpi
TEST np=2+4 @emulated -few -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=+1,2,3 @emulated -sizes -mat_aijhybridgpu_diagonal_fewest 0
*/
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "matfault.h"
#include "gpuaware.h"
#include <petsc/private/petscimpl.h>
#include <string.h>

typedef enum {
  RANDOM,
  INTERPOLATION,
  SEVEN,
  TWENTYSEVEN,
  BAND,
  RING, /* a band round and round, of which more lies left of the diagonal */
  DIAGONAL,
  EMPTY,
  LASTCOLUMN /* all entries in one column, of the last process */
} Kind;

static PetscMPIInt Rank, Size;
/* launches are counted; exchanges go by peer access, as of the emulated device's always */
static PetscBool Off, Few, Diagonal, Apart, Hooked, ByPeer; /* Apart: products of small matrices are as of large ones */
static PetscErrorCode (*GetMethod)(Mat, const char **);
static PetscErrorCode (*GetCounter)(Mat, const char[], PetscInt64 *);

/* uneven, or as PETSc decides */
static PetscInt Local(PetscInt N, PetscBool uneven)
{
  return uneven ? MatTestUneven(N) : N / Size + (Rank < N % Size);
}

static PetscScalar Value(PetscInt r, PetscInt c, PetscInt seed)
{
  unsigned long s = (unsigned long)r * 2654435761ul + (unsigned long)c * 40503ul + (unsigned long)seed * 97ul + 7ul;

  s = s * 6364136223846793005ul + 1442695040888963407ul;
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX((PetscReal)((s >> 33) % 1999) / 700 - 1.4, (PetscReal)((s >> 45) % 997) / 300 - 1.6);
#else
  return (PetscReal)((s >> 33) % 1999) / 700 - 1.4;
#endif
}

/* at most 64 columns of row r, which do not depend on the processes; for stencils N is a cube */
static PetscInt Columns(Kind kind, PetscInt M, PetscInt N, PetscInt r, PetscInt seed, PetscInt c[])
{
  unsigned long s = (unsigned long)r * 48271ul + (unsigned long)seed * 40503ul + 11ul;
  PetscInt      n = 0, g = 1;

  switch (kind) {
  case RANDOM:
    for (int k = 0; k < (r % 5 == 2 ? 0 : 1 + (int)(r % 7)); k++) {
      s      = s * 6364136223846793005ul + 1442695040888963407ul;
      c[n++] = (PetscInt)((s >> 33) % (unsigned long)N);
    }
    break;
  case INTERPOLATION:
    for (PetscInt k = -1; k <= 1; k++)
      if (r * N / M + k >= 0 && r * N / M + k < N && (k == 0 || (r + k + seed) % 3)) c[n++] = r * N / M + k;
    break;
  case SEVEN:
  case TWENTYSEVEN:
    while (g * g * g < N) g++;
    for (PetscInt z = -1; z <= 1; z++)
      for (PetscInt y = -1; y <= 1; y++)
        for (PetscInt x = -1; x <= 1; x++) {
          const PetscInt i = r % g + x, j = r / g % g + y, k = r / g / g + z;

          if (i < 0 || j < 0 || k < 0 || i >= g || j >= g || k >= g || (kind == SEVEN && PetscAbs(x) + PetscAbs(y) + PetscAbs(z) > 1)) continue;
          c[n++] = (k * g + j) * g + i;
        }
    break;
  case BAND:
    for (PetscInt k = -3; k <= 3; k++)
      if ((k % 2 || !k) && r + k >= 0 && r + k < N) c[n++] = r + k;
    break;
  case RING:
    for (PetscInt k = -5; k <= 2; k++)
      if (k > -3 || k == -5) c[n++] = (r + k + N) % N;
    break;
  case DIAGONAL:
    if (r < N) c[n++] = r;
    break;
  case LASTCOLUMN:
    if (N && r % 3) c[n++] = N - 1;
    break;
  default:
    break;
  }
  return n;
}

typedef struct {
  Kind      kind;
  PetscInt  M, N, seed;
  PetscBool uneven;
  PetscInt  bs[2];
} Shape;

/* alone: the whole matrix on this process */
static PetscErrorCode Make(const Shape *s, PetscInt values, PetscBool alone, MatType type, Mat *A)
{
  PetscInt start, end, c[64];

  PetscFunctionBeginUser;
  PetscCall(MatCreate(alone ? PETSC_COMM_SELF : PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, alone ? s->M : Local(s->M, s->uneven), alone ? s->N : Local(s->N, s->uneven), s->M, s->N));
  if (s->bs[0] && !alone) PetscCall(MatSetBlockSizes(*A, s->bs[0], s->bs[1]));
  PetscCall(MatSetType(*A, type));
  if (alone) { /* the host computes these, whoever computes the others */
    PetscCall(MatSetOptionsPrefix(*A, "whole_"));
    PetscCall(MatSetFromOptions(*A));
  }
  PetscCall(MatSeqAIJSetPreallocation(*A, 27, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 27, NULL, 27, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt n = Columns(s->kind, s->M, s->N, r, s->seed, c);

    for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*A, r, c[k], Value(r, c[k], values), INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the values of A, of the same pattern, become these */
static PetscErrorCode Values(const Shape *s, PetscInt values, Mat A)
{
  PetscInt start, end, c[64];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt n = Columns(s->kind, s->M, s->N, r, s->seed, c);

    for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(A, r, c[k], Value(r, c[k], values), INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are this process's rows of C those of S, which has all, to the last bit? Of PETSc's own algorithms only nearly. */
static PetscErrorCode Same(Mat C, Mat S, const char *what)
{
  PetscInt start, end;
  int      wrong = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(C, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt    *j[2];
    const PetscScalar *a[2];
    PetscInt           n[2];

    PetscCall(MatGetRow(C, r, &n[0], &j[0], &a[0]));
    PetscCall(MatGetRow(S, r, &n[1], &j[1], &a[1]));
    if (n[0] != n[1] || (n[0] && memcmp(j[0], j[1], sizeof(PetscInt) * (size_t)n[0])))
      wrong |= 1;
    else if (n[0] && !Off && memcmp(a[0], a[1], sizeof(PetscScalar) * (size_t)n[0]))
      wrong |= 2;
    for (PetscInt k = 0; Off && !wrong && k < n[0]; k++)
      if (PetscAbsScalar(a[0][k] - a[1][k]) > 1e4 * PETSC_MACHINE_EPSILON) wrong |= 2;
    PetscCall(MatRestoreRow(S, r, &n[1], &j[1], &a[1]));
    PetscCall(MatRestoreRow(C, r, &n[0], &j[0], &a[0]));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_BOR, PETSC_COMM_WORLD));
  if (wrong) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %s\n", what, wrong & 1 ? "other columns" : "other values"));
  MatTestCheck(!wrong, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the blocks have and what MATAIJ's would: garray ascends, and each of its columns has entries */
static PetscErrorCode Blocks(Mat C)
{
  Mat             block[2];
  const PetscInt *garray, *i, *j;
  PetscInt        m, n, cstart, cend, *used;
  PetscBool       done;
  int             wrong = 0;

  PetscFunctionBeginUser;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  PetscCall(MatGetOwnershipRangeColumn(C, &cstart, &cend));
  PetscCall(MatGetSize(block[1], &m, &n));
  PetscCall(PetscCalloc1(n + 1, &used));
  PetscCall(MatGetRowIJ(block[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  for (PetscInt k = 0; done && k < i[m]; k++) used[j[k]] = 1;
  PetscCall(MatRestoreRowIJ(block[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  for (PetscInt k = 0; k < n; k++) wrong |= !used[k] || (k && garray[k] <= garray[k - 1]) || (garray[k] >= cstart && garray[k] < cend);
  PetscCall(PetscFree(used));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_BOR, PETSC_COMM_WORLD));
  MatTestCheck(!wrong, "columns of others: ascending, in use, not one's own");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product with a vector and its transpose by the result, whose scatter is new: what the rows say */
static PetscErrorCode Mult(Mat C, Mat S)
{
  Vec                x, y, xs, ys;
  PetscInt           start, end, N;
  const PetscScalar *a, *b;
  int                wrong = 0;

  PetscFunctionBeginUser;
  for (int transposed = 0; transposed < 2; transposed++) {
    PetscCall(MatCreateVecs(C, transposed ? &y : &x, transposed ? &x : &y));
    PetscCall(MatCreateVecs(S, transposed ? &ys : &xs, transposed ? &xs : &ys));
    VecTestFill(x, k, Value(k, 1, 3));
    PetscCall(VecGetSize(xs, &N));
    for (PetscInt k = 0; k < N; k++) PetscCall(VecSetValue(xs, k, Value(k, 1, 3), INSERT_VALUES));
    PetscCall(VecTestAssemble(xs));
    PetscCall(transposed ? MatMultTranspose(C, x, y) : MatMult(C, x, y));
    PetscCall(transposed ? MatMultTranspose(S, xs, ys) : MatMult(S, xs, ys));
    PetscCall(VecGetOwnershipRange(y, &start, &end));
    PetscCall(VecGetArrayRead(y, &a));
    PetscCall(VecGetArrayRead(ys, &b));
    for (PetscInt k = start; k < end; k++) wrong |= PetscAbsScalar(a[k - start] - b[k]) > 1e5 * PETSC_MACHINE_EPSILON * (1 + PetscAbsScalar(b[k]));
    PetscCall(VecRestoreArrayRead(y, &a));
    PetscCall(VecRestoreArrayRead(ys, &b));
    PetscCall(MatTestDestroy(&x, &y, &xs, &ys));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_BOR, PETSC_COMM_WORLD));
  MatTestCheck(!wrong, "products with a vector");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C and S: the same product of these and of the whole matrices */
static PetscErrorCode Again(MatProductType type, int n, const Shape s[], Mat A[], Mat W[], Mat C, Mat S)
{
  Mat              other[3] = {NULL}, whole[3] = {NULL};
  PetscObjectState before, after;

  PetscFunctionBeginUser;
  for (int pass = 0; pass < 3; pass++) { /* values by the host, by an operation, and of one operand alone */
    for (int k = 0; k < n; k++) {
      if (pass == 2 && k) continue;
      if (pass == 1) {
        MatTestBoth(MatScale, A[k], W[k], -0.5);
      } else {
        PetscCall(Values(&s[k], 10 * pass + k, A[k]));
        PetscCall(Values(&s[k], 10 * pass + k, W[k]));
      }
    }
    PetscCall(PetscObjectStateGet((PetscObject)C, &before));
    MatTestBoth(MatProductNumeric, C, S);
    PetscCall(PetscObjectStateGet((PetscObject)C, &after));
    MatTestCheck(after > before, "the state tells of new values");
    PetscCall(Same(C, S, pass == 0 ? "other values" : pass == 1 ? "values scaled"
                                                                : "other values of one operand"));
  }
  for (int k = 0; k < n; k++) {
    PetscCall(Make(&s[k], 7 + k, PETSC_FALSE, "aijhybridgpu", &other[k]));
    PetscCall(Make(&s[k], 7 + k, PETSC_TRUE, "seqaijhybridgpu", &whole[k]));
  }
  PetscCall(MatProductReplaceMats(other[0], other[1], other[2], C));
  PetscCall(MatProductReplaceMats(whole[0], whole[1], whole[2], S));
  MatTestBoth(MatProductNumeric, C, S);
  PetscCall(Same(C, S, "other matrices of the same pattern"));
  for (int k = 0; k < n; k++) PetscCall(MatTestDestroy(&other[k], &whole[k]));
  for (int k = 0; k < n; k++) {
    Shape t = s[k];

    if (t.kind == EMPTY) t.kind = RANDOM;
    t.seed += 5;
    PetscCall(Make(&t, 3 + k, PETSC_FALSE, "aijhybridgpu", &other[k]));
    PetscCall(Make(&t, 3 + k, PETSC_TRUE, "seqaijhybridgpu", &whole[k]));
  }
  PetscCall(MatProductReplaceMats(other[0], other[1], other[2], C));
  PetscCall(MatProductReplaceMats(whole[0], whole[1], whole[2], S));
  for (int pass = 0; pass < 2; pass++) {
    MatTestBoth(MatProductNumeric, C, S);
    PetscCall(Same(C, S, "matrices of another pattern"));
    if (Size > 1) PetscCall(Blocks(C));
    MatTestBoth(MatScale, other[0], whole[0], 3.0);
  }
  PetscCall(Mult(C, S));
  for (int k = 0; k < n; k++) PetscCall(MatTestDestroy(&other[k], &whole[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(MatProductType type, const Shape s[3])
{
  const int   n    = type == MATPRODUCT_ABC ? 3 : 2;
  Mat         A[3] = {NULL}, W[3] = {NULL}, C, S;
  char        name[128];
  const char *method;
  PetscBool   flg;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %d x %d of kind %d and %d x %d of kind %d%s", MatProductTypes[type], (int)s[0].M, (int)s[0].N, (int)s[0].kind, (int)s[1].M, (int)s[1].N, (int)s[1].kind, s[0].uneven ? ", uneven" : ""));
  MatTestName = name;
  for (int k = 0; k < n; k++) {
    PetscCall(Make(&s[k], k, PETSC_FALSE, "aijhybridgpu", &A[k]));
    PetscCall(Make(&s[k], k, PETSC_TRUE, "seqaijhybridgpu", &W[k]));
  }
  PetscCall(MatTestProduct(type, A[0], A[1], A[2], &C));
  PetscCall(MatTestProduct(type, W[0], W[1], W[2], &S));
  PetscCall(Same(C, S, "first"));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, Size > 1 ? "mpiaijhybridgpu" : "seqaijhybridgpu", &flg));
  MatTestCheck(flg, "the result's type");
  if (!Off) {
    PetscInt bs[2];

    PetscCall((*GetMethod)(C, &method));
    MatTestCheck(method && strcmp(method, "none"), "the product names its method");
    if (Diagonal && type == MATPRODUCT_AB && s[0].kind == SEVEN) MatTestCheck(method && !strcmp(method, "diagonal"), "slabs of a stencil are not multiplied by diagonals");
    if (Apart && Size > 1 && s[0].kind == BAND && s[1].kind == BAND && !s[0].uneven) {
      /* of 64 rows, but for those up to 3 from a neighbour's and those that name them; of A B, the first operand of the
         second stage, 9, and none where these are more than a quarter */
      const PetscInt neighbours = (Rank > 0) + (Rank < Size - 1), rows = 64 - 6 * neighbours + (type == MATPRODUCT_ABC && neighbours < 2 ? 64 - 9 * neighbours : 0);
      PetscInt64     inner;

      PetscCall((*GetCounter)(C, "inner rows", &inner));
      /* from aligned values on */
      MatTestCheck(inner <= rows && inner > rows - 4, "rows that meet nobody else's are multiplied apart");
    }
    if (Apart && Size > 1 && s[0].kind == RING && type == MATPRODUCT_AB) {
      /* 5 rows at the beginning, 2 at the end, and those that name them */
      PetscInt64 inner, bands;

      PetscCall((*GetCounter)(C, "inner rows", &inner));
      MatTestCheck(inner <= 50 && inner > 46, "rows of a ring that meet nobody else's are multiplied apart");
      PetscCall((*GetCounter)(C, "border bands", &bands));
      MatTestCheck(bands == 2, "rows at one end are not multiplied apart from those at the other");
    }
    PetscCall(MatGetBlockSizes(C, &bs[0], &bs[1]));
    if (type == MATPRODUCT_AB && s[0].bs[0]) MatTestCheck(bs[0] == s[0].bs[0] && bs[1] == s[1].bs[1], "block sizes");
    if (Size > 1) PetscCall(Blocks(C));
    PetscCall(Mult(C, S));
    PetscCall(Again(type, n, s, A, W, C, S));
  }
  for (int k = 0; k < n; k++) PetscCall(MatTestDestroy(&A[k], &W[k]));
  PetscCall(MatTestDestroy(&C, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* this process's entries of its own columns of A times two, on one process alone; and the same ones of W */
static PetscErrorCode ScaleOne(Mat A, Mat W, PetscMPIInt which)
{
  const PetscInt *rows, *columns, *i, *j;
  PetscScalar    *a;
  PetscInt        m;
  PetscBool       done;
  Mat             D;

  PetscFunctionBeginUser;
  PetscCall(MatGetDiagonalBlock(A, &D));
  if (Rank == which) PetscCall(MatScale(D, 2.0));
  PetscCall(MatGetOwnershipRanges(A, &rows));
  PetscCall(MatGetOwnershipRangesColumn(A, &columns));
  PetscCall(MatSeqAIJGetArray(W, &a));
  PetscCall(MatGetRowIJ(W, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  for (PetscInt k = i[rows[which]]; k < i[rows[which + 1]]; k++)
    if (j[k] >= columns[which] && j[k] < columns[which + 1]) a[k] *= 2.0;
  PetscCall(MatRestoreRowIJ(W, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJRestoreArray(W, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Collects, Puts, Others; /* launches */
static int Waits;                  /* of one stream for another */
static int Taken;                  /* blocks of the device's memory */
static int CountLaunches(const char *what)
{
  Waits += strstr(what, "cudaStreamWaitEvent") != NULL;
  Taken += !strcmp(what, "alloc");
  if (strncmp(what, "launch ", 7)) return 0;
  Collects += strstr(what, "CommCollect") != NULL;
  Puts += strstr(what, "PeerPut") != NULL;
  Others += !strstr(what, "CommCollect") && !strstr(what, "PeerPut");
  return 0;
}

/* after the plugin's first use of the device */
static PetscErrorCode Hook(void)
{
  const HybBackend *device  = NULL;
  void             *library = NULL;
  PetscBool         mpi, gpuaware;

  PetscFunctionBeginUser;
  PetscCall(MatTestHook(CountLaunches, &device));
  Hooked = (PetscBool)(device != NULL);
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm", "mpi", &mpi));
  PetscCall(MatTestLibrary("-mat_aijhybridgpu_cuda_library", &library));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm", "gpuaware", &gpuaware));
  ByPeer = (PetscBool)(!mpi && !gpuaware && library && dlsym(library, "HybEmulatorBytesToHost"));
  if (library) dlclose(library);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numeric phases for which nothing, one operand or another has changed, on all processes or on one alone: what nobody
   has changed is not moved again, what one has changed is. A small product with a P that stays is three collections,
   one exchange and its four multiplications, of which two go to another stream and back. */
static PetscErrorCode Unchanged(MatProductType type, PetscBool band, PetscBool uneven)
{
  static const int changes[][3] = {
  /* 1: on all processes, 2: on one */
    {1, 0, 0},
    {1, 0, 0},
    {1, 0, 0},
    {0, 2, 0},
    {0, 0, 0},
    {2, 0, 0},
    {0, 1, 0},
    {1, 0, 1},
    {0, 2, 2},
    {1, 0, 0}
  };
  const PetscBool square = (PetscBool)(type == MATPRODUCT_AB || type == MATPRODUCT_AtB || type == MATPRODUCT_ABt || type == MATPRODUCT_ABC);
  const int       n      = type == MATPRODUCT_ABC ? 3 : 2;
  const Kind      kind   = band ? BAND : SEVEN;
  const PetscInt  N = band ? 64 * Size : 64, coarse = N / 5;
  const Shape     s[3] = {
        {kind,                          N,                                    N,                                    0, uneven, {0, 0}},
        {square ? kind : INTERPOLATION, type == MATPRODUCT_RARt ? coarse : N, type == MATPRODUCT_PtAP ? coarse : N, 1, uneven, {0, 0}},
        {kind,                          N,                                    N,                                    0, uneven, {0, 0}}
  };
  Mat  A[3] = {NULL}, W[3] = {NULL}, C, S;
  char name[128];

  PetscFunctionBeginUser;
  for (int k = 0; k < n; k++) {
    PetscCall(Make(&s[k], k, PETSC_FALSE, "aijhybridgpu", &A[k]));
    PetscCall(Make(&s[k], k, PETSC_TRUE, "seqaijhybridgpu", &W[k]));
  }
  PetscCall(MatTestProduct(type, A[0], A[1], A[2], &C));
  PetscCall(MatTestProduct(type, W[0], W[1], W[2], &S));
  for (int pass = 0; pass < (int)PETSC_STATIC_ARRAY_LENGTH(changes); pass++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s, numeric phase %d for few changes", MatProductTypes[type], uneven ? ", uneven" : "", pass + 2));
    MatTestName = name;
    for (int k = 0; k < n; k++) {
      if (changes[pass][k] == 2) PetscCall(ScaleOne(A[k], W[k], (PetscMPIInt)((pass + k) % Size)));
      if (changes[pass][k] != 1) continue;
      MatTestBoth(MatScale, A[k], W[k], 1.25);
    }
    Collects = Puts = Others = Waits = Taken = 0;
    PetscCall(MatProductNumeric(C));
    if (pass == 2 && type == MATPRODUCT_PtAP && Hooked && (ByPeer || Puts) && Size > 1 && !uneven && !band && !Apart) {
      char what[160];

      PetscCall(PetscSNPrintf(what, sizeof(what), "a small Galerkin product: %d collections of 3, %d puts of 1, %d launches more of 4, %d waits of streams of 4, %d blocks of memory of none", Collects, Puts, Others, Waits, Taken));
      MatTestCheck(Collects == 3 && Puts == 1 && Others == 4 && Waits == 4 && !Taken, what);
    }
    PetscCall(MatProductNumeric(S));
    PetscCall(Same(C, S, name));
  }
  for (int k = 0; k < n; k++) PetscCall(MatTestDestroy(&A[k], &W[k]));
  PetscCall(MatTestDestroy(&C, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* operands of other types: ours make the result, whichever stands first */
static PetscErrorCode Mixed(void)
{
  const Shape s[2] = {
    {RANDOM, 40, 30, 1, PETSC_TRUE, {0, 0}},
    {RANDOM, 30, 21, 2, PETSC_TRUE, {0, 0}}
  };

  PetscFunctionBeginUser;
  MatTestName = "an operand of another type";
  for (int which = 0; which < 2; which++) {
    Mat       A[2], W[2], C, S;
    PetscBool flg;

    for (int k = 0; k < 2; k++) {
      PetscCall(Make(&s[k], k, PETSC_FALSE, k == which ? MATAIJ : "aijhybridgpu", &A[k]));
      PetscCall(Make(&s[k], k, PETSC_TRUE, "seqaijhybridgpu", &W[k]));
    }
    PetscCall(MatTestProduct(MATPRODUCT_AB, A[0], A[1], NULL, &C));
    PetscCall(MatTestProduct(MATPRODUCT_AB, W[0], W[1], NULL, &S));
    PetscCall(Same(C, S, "first"));
    PetscCall(PetscObjectTypeCompare((PetscObject)C, Size > 1 ? "mpiaijhybridgpu" : "seqaijhybridgpu", &flg));
    MatTestCheck(flg, "the result's type");
    for (int k = 0; k < 2; k++) {
      PetscCall(Values(&s[k], 5, A[k]));
      PetscCall(Values(&s[k], 5, W[k]));
    }
    MatTestBoth(MatProductNumeric, C, S);
    PetscCall(Same(C, S, "again"));
    for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &W[k]));
    PetscCall(MatTestDestroy(&C, &S));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new entries in a result, and the product again, which has its own pattern */
static PetscErrorCode Changed(void)
{
  const Shape s[2] = {
    {RANDOM, 40, 40, 1, PETSC_FALSE, {0, 0}},
    {RANDOM, 40, 40, 2, PETSC_FALSE, {0, 0}}
  };
  Mat      A[2], W[2], C, S;
  PetscInt start, end;

  PetscFunctionBeginUser;
  MatTestName = "a result with new entries";
  for (int k = 0; k < 2; k++) {
    PetscCall(Make(&s[k], k, PETSC_FALSE, "aijhybridgpu", &A[k]));
    PetscCall(Make(&s[k], k, PETSC_TRUE, "seqaijhybridgpu", &W[k]));
  }
  PetscCall(MatMatMult(A[0], A[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(W[0], W[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &S));
  PetscCall(Same(C, S, "MatMatMult"));
  PetscCall(MatTestLetIn(C));
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(C, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscCall(MatSetValue(C, r, (r * 7 + 3) % 40, 1.5, ADD_VALUES));
    PetscCall(MatSetValue(C, (r + 11) % 40, r, 2.5, ADD_VALUES));
  }
  PetscCall(MatTestAssemble(C));
  for (PetscInt r = 0; r < 40; r++) {
    PetscCall(MatSetOption(S, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetValue(S, r, (r * 7 + 3) % 40, 1.5, ADD_VALUES));
    PetscCall(MatSetValue(S, (r + 11) % 40, r, 2.5, ADD_VALUES));
  }
  PetscCall(MatTestAssemble(S));
  PetscCall(Mult(C, S));
  PetscCall(MatMatMult(A[0], A[1], MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(W[0], W[1], MAT_REUSE_MATRIX, PETSC_DEFAULT, &S));
  PetscCall(Same(C, S, "MAT_REUSE_MATRIX"));
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &W[k]));
  PetscCall(MatTestDestroy(&C, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatSetBlockSizes() says reaches the methods: a stencil of blocks of two, which has few diagonals too, goes by
   blocks unless it says a size that is wrong; rows' alone says nothing. By name all parts go by blocks, small ones too:
   rows that meet nobody else's, the others, of whose columns those are left that have entries, and what lies in others'
   columns. */
static PetscErrorCode GivenSizes(void)
{
  static const PetscInt sizes[][2] = {
    {1, 1},
    {2, 2},
    {4, 4},
    {2, 1}
  };
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt};
  const PetscInt              n = Size > 2 ? 54 : 42, local = n * n / Size, neighbours = (Rank > 0) + (Rank < Size - 1);

  PetscFunctionBeginUser;
  MatTestName = "block sizes that are given";
  PetscCheck(Size <= 3, PETSC_COMM_WORLD, PETSC_ERR_USER, "This part wants one to three processes");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
    PetscInt start, end;
    Mat      A;

    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetSizes(A, 2 * local, 2 * local, 2 * n * n, 2 * n * n));
    PetscCall(MatSetBlockSizes(A, sizes[k][0], sizes[k][1]));
    PetscCall(MatSetType(A, "aijhybridgpu"));
    PetscCall(MatSeqAIJSetPreallocation(A, 18, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 18, NULL, 18, NULL));
    PetscCall(MatGetOwnershipRange(A, &start, &end));
    for (PetscInt r = start; r < end; r++)
      for (PetscInt q = 0; q < 18; q++) {
        const PetscInt i = r / 2 % n + q / 2 % 3 - 1, j = r / 2 / n + q / 6 - 1, c = 2 * (j * n + i) + q % 2;

        if (i >= 0 && j >= 0 && i < n && j < n) PetscCall(MatSetValue(A, r, c, Value(r, c, 3), INSERT_VALUES));
      }
    PetscCall(MatTestAssemble(A));
    for (size_t q = 0; q < 2 * PETSC_STATIC_ARRAY_LENGTH(types); q++) {
      const size_t    t      = q / 2;
      const PetscBool named  = (PetscBool)(q % 2);
      const char     *method = "none";
      PetscBool       right  = PETSC_FALSE, blocks;
      Mat             C;

      PetscCall(MatProductCreate(A, A, NULL, &C));
      PetscCall(MatTestSymbolic(types[t], named ? "block" : NULL, C));
      PetscCall(MatProductNumeric(C));
      PetscCall((*GetMethod)(C, &method));
      PetscCall(PetscStrcmp(method, "block", &blocks));
      MatTestCheck(blocks == (PetscBool)(k != 2 || named), method);
      if (Size > 1 && types[t] == MATPRODUCT_AB) {
        PetscInt64 inner;

        PetscCall((*GetCounter)(C, "inner rows", &inner));
        /* all but two lines at each end */
        MatTestCheck(inner == 2 * local - 4 * n * neighbours, "rows that meet nobody else's");
      }
      if (types[t] == MATPRODUCT_AB) PetscCall(MatMatMultEqual(A, A, C, 3, &right));
      if (types[t] == MATPRODUCT_AtB) PetscCall(MatTransposeMatMultEqual(A, A, C, 3, &right));
      if (types[t] == MATPRODUCT_ABt) PetscCall(MatMatTransposeMultEqual(A, A, C, 3, &right));
      MatTestCheck(right, "the product is right");
      PetscCall(MatDestroy(&C));
    }
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* bands, of whose rows most meet nobody else's */
static PetscErrorCode Bands(MatProductType type)
{
  const PetscInt  n = 64 * Size, c = n / 5;
  const PetscBool square = (PetscBool)(type != MATPRODUCT_PtAP && type != MATPRODUCT_RARt);

  PetscFunctionBeginUser;
  for (int uneven = 0; uneven < 2; uneven++) {
    const Shape band = {
                  BAND, n, n, 0, (PetscBool)uneven, {0, 0}
    },
                across = {INTERPOLATION, type == MATPRODUCT_PtAP ? n : c, type == MATPRODUCT_PtAP ? c : n, 1, (PetscBool)uneven, {0, 0}};
    const Shape s[3]   = {band, square ? band : across, band};

    PetscCall(Test(type, s));
  }
  if (square) {
    const Shape ring = {
      RING, n, n, 0, PETSC_FALSE, {0, 0}
    };
    const Shape s[3] = {ring, ring, ring};

    PetscCall(Test(type, s));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const MatProductType types[]     = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC};
  static const PetscInt       sizes[6][6] = {
          {60, 45, 45, 52, 0,  0 },
          {60, 45, 60, 52, 0,  0 },
          {60, 45, 52, 45, 0,  0 },
          {60, 60, 60, 31, 0,  0 },
          {60, 60, 31, 60, 0,  0 },
          {60, 45, 45, 52, 52, 31}
  };
  static const Kind kinds[][3] = {
    {RANDOM,     RANDOM,        RANDOM       },
    {DIAGONAL,   RANDOM,        LASTCOLUMN   },
    {RANDOM,     DIAGONAL,      INTERPOLATION},
    {LASTCOLUMN, INTERPOLATION, RANDOM       },
    {EMPTY,      RANDOM,        EMPTY        },
    {RANDOM,     EMPTY,         RANDOM       }
  };
  void     *library = NULL;
  PetscBool given   = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_diagonal_fewest", "0", &Diagonal));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_diagonal_fewest", &Apart));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_parallel_products", "0", &Off));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-few", &Few));
  PetscCall(PetscOptionsSetValue(NULL, "-whole_mat_aijhybridgpu_backend", "host"));
  PetscCall(MatTestLibrary("-dll_append", &library));
  PetscCheck(library, PETSC_COMM_SELF, PETSC_ERR_USER, "This test wants the plugin by -dll_append");
  *(void **)&GetMethod  = dlsym(library, "MatAIJHybridGPUGetProductMethod");
  *(void **)&GetCounter = dlsym(library, "MatAIJHybridGPUGetProductCounter");
  PetscCheck(GetMethod && GetCounter, PETSC_COMM_SELF, PETSC_ERR_LIB, "The library does not tell of products");
  PetscCall(PetscOptionsHasName(NULL, NULL, "-sizes", &given));
  if (given) PetscCall(GivenSizes());
  for (int t = 0; t < 6 && !given; t++) {
    if (Off && types[t] == MATPRODUCT_ABt) continue; /* MATAIJ has none in every release */
    for (int k = 0; k < (Off ? 1 : (int)PETSC_STATIC_ARRAY_LENGTH(kinds)); k++) {
      if (Few && (t + k) % 6) continue;
      for (int uneven = Few ? t % 2 : 0; uneven < (Few ? t % 2 + 1 : 2); uneven++) {
        Shape s[3];

        for (int q = 0; q < 3; q++) s[q] = (Shape){
                                      kinds[k][q], sizes[t][2 * q], sizes[t][2 * q + 1], 10 * k + q, (PetscBool)uneven, {0, 0}
 };
        PetscCall(Test(types[t], s));
      }
    }
  }
  for (int t = 0; t < 6 && !Off && !given; t++) { /* slabs of grids */
    const Kind      kind = t % 2 ? TWENTYSEVEN : SEVEN;
    const PetscInt  g = Few ? 5 : 8, n = g * g * g, c = n / 6;
    const PetscBool square = (PetscBool)(types[t] == MATPRODUCT_AB || types[t] == MATPRODUCT_AtB || types[t] == MATPRODUCT_ABt || types[t] == MATPRODUCT_ABC);
    Shape           s[3]   = {
                  {kind, n, n, 0, PETSC_FALSE, {0, 0}},
                  {kind, n, n, 0, PETSC_FALSE, {0, 0}},
                  {kind, n, n, 0, PETSC_FALSE, {0, 0}}
    };

    if (Few && types[t] != MATPRODUCT_AB && types[t] != MATPRODUCT_PtAP) continue;
    if (!square) s[1] = (Shape){
                   INTERPOLATION, types[t] == MATPRODUCT_PtAP ? n : c, types[t] == MATPRODUCT_PtAP ? c : n, 1, PETSC_FALSE, {0, 0}
 };
    PetscCall(Test(types[t], s));
  }
  for (int t = 0; t < 6 && Apart && !given; t++) PetscCall(Bands(types[t]));
  if (!Off && !given) {
    const Shape s[3] = {
      {RANDOM, 24 * Size, 12 * Size, 1, PETSC_FALSE, {2, 3}},
      {RANDOM, 12 * Size, 20 * Size, 2, PETSC_FALSE, {3, 4}},
      {RANDOM, 0,         0,         0, PETSC_FALSE, {0, 0}}
    };

    PetscCall(Test(MATPRODUCT_AB, s));
    PetscCall(Mixed());
    PetscCall(Changed());
    PetscCall(Hook());
    for (int t = 0; t < 6; t++)
      for (int uneven = 0; uneven < 2; uneven++)
        for (int band = 0; band < (Apart ? 2 : 1); band++) PetscCall(Unchanged(types[t], (PetscBool)band, (PetscBool)uneven));
  }
  return MatTestEnd();
}

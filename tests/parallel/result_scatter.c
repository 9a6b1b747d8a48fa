/*
  PETSc's scatter of a parallel result, which is set up when somebody first uses it (petsc/scatter.c, PETSc 3.26 and
  later): whoever uses it first, of a new result each time, finds what MATAIJ's has.

TEST np=1,2+3,4
TEST np=2+4 @emulated
TEST np=3 @emulated -mat_aijhybridgpu_comm petsc
*/
#include "mattest.h"
#include <petscsf.h>
#include <unistd.h>

static PetscMPIInt Rank, Size;
typedef PetscErrorCode (*Getter)(Mat, PetscSF *);

/* M = A A, A with entries on the diagonal and d columns from there, which go round; MATAIJ's and ours */
static PetscErrorCode Square(PetscInt d, Mat M[2])
{
  const MatType  types[2] = {MATAIJ, "aijhybridgpu"};
  const PetscInt n        = 40 * Size + 1;
  PetscInt       start, end;
  Mat            A;

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    PetscCall(MatTestRoom(types[t], PETSC_DECIDE, PETSC_DECIDE, n, n, 2, &A, &start, &end));
    for (PetscInt r = start; r < end; r++) {
      PetscCall(MatSetValue(A, r, r, 2 + PetscSinReal((PetscReal)r), INSERT_VALUES));
      PetscCall(MatSetValue(A, r, (r + d) % n, PetscCosReal((PetscReal)r), INSERT_VALUES));
    }
    PetscCall(MatTestAssemble(A));
    PetscCall(MatTestProduct(MATPRODUCT_AB, A, A, NULL, &M[t]));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 26, 0)
/* The matrix's own, as PETSc's code takes it from the matrix's data: nothing sets it up */
static PetscErrorCode Raw(Mat const M[2], PetscSF sf[2])
{
  Getter get;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectQueryFunction((PetscObject)M[0], "MatGetMultPetscSF_C", &get));
  for (int t = 0; t < 2; t++) PetscCall((*get)(M[t], &sf[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Same(PetscInt n, const PetscInt *a, const PetscInt *b)
{
  for (PetscInt k = 0; k < n; k++)
    if (a[k] != b[k]) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* Star forests: the same graph, and the same neighbours */
static PetscErrorCode Alike(PetscSF const sf[2])
{
  PetscInt           roots[2], leaves[2];
  PetscMPIInt        n[2];
  const PetscInt    *local[2], *offset[2], *mine[2], *theirs[2];
  const PetscSFNode *remote[2];
  const PetscMPIInt *ranks[2];
  PetscBool          same;

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) PetscCall(PetscSFGetGraph(sf[t], &roots[t], &leaves[t], &local[t], &remote[t]));
  same = (PetscBool)(roots[0] == roots[1] && leaves[0] == leaves[1] && !local[0] && !local[1]);
  for (PetscInt k = 0; k < leaves[0] && same; k++) same = (PetscBool)(remote[0][k].rank == remote[1][k].rank && remote[0][k].index == remote[1][k].index);
  MatTestCheck(same, "the graph");
  for (int t = 0; t < 2; t++) PetscCall(PetscSFGetRootRanks(sf[t], &n[t], &ranks[t], &offset[t], &mine[t], &theirs[t]));
  same = (PetscBool)(n[0] == n[1] && Same(n[0] + 1, offset[0], offset[1]));
  for (PetscMPIInt k = 0; k < n[0] && same; k++) same = (PetscBool)(ranks[0][k] == ranks[1][k]);
  MatTestCheck(same && Same(offset[0][n[0]], mine[0], mine[1]) && Same(offset[0][n[0]], theirs[0], theirs[1]), "whom this process needs");
  for (int t = 0; t < 2; t++) PetscCall(PetscSFGetLeafRanks(sf[t], &n[t], &ranks[t], &offset[t], &mine[t]));
  same = (PetscBool)(n[0] == n[1] && Same(n[0] + 1, offset[0], offset[1]));
  for (PetscMPIInt k = 0; k < n[0] && same; k++) same = (PetscBool)(ranks[0][k] == ranks[1][k]);
  MatTestCheck(same && Same(offset[0][n[0]], mine[0], mine[1]), "who needs this process");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Asked(Mat const M[2])
{
  PetscInt before, after;
  PetscSF  sf[2];

  PetscFunctionBeginUser;
  PetscCall(MatTestEventCount("SFSetUp", &before));
  for (int t = 0; t < 2; t++) PetscCall(MatGetMultPetscSF(M[t], &sf[t]));
  PetscCall(MatTestEventCount("SFSetUp", &after));
  MatTestCheck(after == before + 1, "MATAIJ's is set up already, ours now");
  PetscCall(Alike(sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copied(Mat const M[2])
{
  PetscSF sf[2], copy[2];

  PetscFunctionBeginUser;
  PetscCall(Raw(M, sf));
  for (int t = 0; t < 2; t++) PetscCall(VecScatterCopy(sf[t], &copy[t]));
  PetscCall(Alike(copy));
  for (int t = 0; t < 2; t++) PetscCall(PetscSFDestroy(&copy[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what has this process's entries, turned round */
static PetscErrorCode Remapped(Mat const M[2])
{
  PetscInt    n, nghost, *to;
  PetscSF     sf[2], copy[2];
  PetscScalar x[64], y[2][512];

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(M[0], &n, NULL));
  PetscCall(Raw(M, sf));
  PetscCall(PetscMalloc1(n, &to));
  for (PetscInt k = 0; k < n; k++) to[k] = n - 1 - k;
  for (PetscInt k = 0; k < n; k++) x[k] = 100 * Rank + k;
  PetscCall(PetscSFGetGraph(sf[0], NULL, &nghost, NULL, NULL));
  PetscCall(PetscSFDuplicate(sf[1], PETSCSF_DUPLICATE_GRAPH, &copy[1]));
  PetscCall(VecScatterCopy(sf[0], &copy[0]));
  for (int t = 0; t < 2; t++) {
    PetscCall(VecScatterRemap(copy[t], to, NULL));
    PetscCall(PetscSFBcastBegin(copy[t], MPIU_SCALAR, x, y[t], MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(copy[t], MPIU_SCALAR, x, y[t], MPI_REPLACE));
    PetscCall(PetscSFDestroy(&copy[t]));
  }
  for (PetscInt k = 0; k < nghost; k++)
    if (y[0][k] != y[1][k]) nghost = -1;
  MatTestCheck(nghost >= 0, "others' entries");
  PetscCall(PetscFree(to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Viewed(Mat const M[2])
{
  PetscSF     sf[2];
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(Raw(M, sf));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, "/dev/null", &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
  PetscCall(VecScatterView(sf[1], viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(Alike(sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Converted(Mat const M[2])
{
  Mat     B[2];
  PetscSF sf[2];

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    PetscCall(MatConvert(M[t], MATMPIAIJ, MAT_INITIAL_MATRIX, &B[t]));
    PetscCall(MatGetMultPetscSF(B[t], &sf[t]));
  }
  PetscCall(Alike(sf));
  MatTestCheckMult(B[1], B[0], "of the parent's type, with a vector");
  for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&B[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a duplicate has the same one; it is set up once */
static PetscErrorCode Duplicated(Mat const M[2])
{
  PetscInt before, after;
  PetscSF  sf[2];
  Mat      D;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(M[1], MAT_COPY_VALUES, &D));
  PetscCall(MatTestEventCount("SFSetUp", &before));
  PetscCall(MatGetMultPetscSF(D, &sf[0]));
  PetscCall(MatGetMultPetscSF(M[1], &sf[1]));
  PetscCall(MatTestEventCount("SFSetUp", &after));
  MatTestCheck(sf[0] == sf[1] && after == before + 1, "one for both, set up once");
  PetscCall(MatDestroy(&D));
  PetscCall(MatGetMultPetscSF(M[0], &sf[0]));
  PetscCall(Alike(sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

#if PETSC_VERSION_GE(3, 26, 0)
/* what -matmult_vecscatter_view shows of a result, which may have a prefix */
static PetscErrorCode Shown(Mat const M[2])
{
  char text[2][4096], file[64], option[64], value[80];
  int  id = (int)getpid();

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Bcast(&id, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  for (int p = 0; p < 2; p++) {
    const char *prefix = p ? "shown_" : "";

    PetscCall(PetscSNPrintf(option, sizeof(option), "-%smatmult_vecscatter_view", prefix));
    for (int t = 0; t < 2; t++) {
      size_t n = 0;
      FILE  *f;
      Mat    P;

      PetscCall(PetscSNPrintf(file, sizeof(file), "/tmp/result_scatter-%d", id));
      PetscCall(PetscSNPrintf(value, sizeof(value), "ascii:%s:ascii_info_detail", file)); /* the last one stays */
      PetscCall(PetscOptionsSetValue(NULL, option, value));
      PetscCall(MatProductCreate(M[t], M[t], NULL, &P));
      PetscCall(MatSetOptionsPrefix(P, prefix));
      PetscCall(MatTestSymbolic(MATPRODUCT_AB, NULL, P));
      PetscCall(MatProductNumeric(P));
      PetscCall(MatDestroy(&P));
      PetscCall(PetscOptionsClearValue(NULL, option));
      PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
      f = fopen(file, "r");
      if (f) n = fread(text[t], 1, sizeof(text[t]) - 1, f);
      if (f) fclose(f);
      text[t][n] = 0;
      PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
      if (!Rank) (void)remove(file);
    }
    MatTestCheck(text[0][0] && !strcmp(text[0], text[1]), p ? "the scatter of a result with a prefix" : "the scatter of a result");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode Multiplied(Mat const M[2])
{
  PetscFunctionBeginUser;
  MatTestCheckMult(M[1], M[0], "with a vector");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(Mat const M[2])
{
  PetscFunctionBeginUser;
  MatTestCheckMultTranspose(M[1], M[0], "transposed, with a vector");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scaled(Mat const M[2])
{
  Vec r;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(M[0], &r, NULL));
  VecTestFill(r, k, 1 + k % 7);
  for (int t = 0; t < 2; t++) PetscCall(MatDiagonalScale(M[t], NULL, r));
  MatTestCheckSame(M[1], M[0], "scaled by columns");
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own product, which asks the scatter for its neighbours */
static PetscErrorCode Parents(Mat const M[2])
{
  Mat P[2];

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    PetscCall(MatProductCreate(M[t], M[t], NULL, &P[t]));
    PetscCall(MatTestSymbolic(MATPRODUCT_AB, Size > 1 ? "nonscalable" : NULL, P[t]));
    PetscCall(MatProductNumeric(P[t]));
  }
  MatTestCheckSame(P[1], P[0], "PETSc's own product");
  for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&P[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Dense(Mat const M[2])
{
  Mat      B, P[2];
  PetscInt m;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(M[0], &m, NULL));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, m, PETSC_DECIDE, PETSC_DETERMINE, 3, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  for (int t = 0; t < 2; t++) PetscCall(MatTestProduct(MATPRODUCT_AB, M[t], B, NULL, &P[t]));
  MatTestCheckSame(P[1], P[0], "times a dense matrix");
  for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&P[t]));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* columns between two others, by which PETSc asks the scatter who has them */
static PetscErrorCode Taken(Mat const M[2])
{
  IS       rows, columns;
  PetscInt start, end;
  Mat      S[2];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(M[0], &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start, start, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - start) / 2, start, 2, &columns));
  for (int t = 0; t < 2; t++) PetscCall(MatCreateSubMatrix(M[t], rows, columns, MAT_INITIAL_MATRIX, &S[t]));
  MatTestCheckSame(S[1], S[0], "a submatrix");
  for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&S[t]));
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new entries, of which the parent makes another scatter; none at all, and the matrix goes as it came */
static PetscErrorCode Inserted(Mat const M[2])
{
  PetscInt start, end, n;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(M[0], &start, &end));
  PetscCall(MatGetSize(M[0], &n, NULL));
  for (int t = 0; t < 2; t++) {
    PetscCall(MatTestLetIn(M[t]));
    PetscCall(MatSetValue(M[t], start, (start + n / 2) % n, 3, INSERT_VALUES));
    PetscCall(MatTestAssemble(M[t]));
  }
  MatTestCheckMult(M[1], M[0], "with new entries, with a vector");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Unused(Mat const M[2])
{
  return PETSC_SUCCESS;
}

static const struct {
  const char *name;
  PetscErrorCode (*use)(Mat const M[2]);
} Uses[] = {
#if PETSC_VERSION_GE(3, 26, 0)
  {"asked for",             Asked     },
  {"copied",                Copied    },
  {"remapped",              Remapped  },
  {"viewed",                Viewed    },
  {"converted",             Converted },
  {"duplicated",            Duplicated},
  {"shown",                 Shown     },
#endif
  {"multiplied",            Multiplied},
  {"multiplied transposed", Transposed},
  {"scaled",                Scaled    },
  {"PETSc's product",       Parents   },
  {"times dense",           Dense     },
  {"submatrix",             Taken     },
  {"inserted",              Inserted  },
  {"unused",                Unused    },
};

int main(int argc, char **argv)
{

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  PetscCall(PetscLogDefaultBegin());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(Uses); k++) {
    /* one neighbour, two, and others' columns on no process */
    const PetscInt d[3] = {3, 20 * Size + 7, 0};

    MatTestName = Uses[k].name;
    for (int q = 0; q < 3; q++) {
      Mat M[2];

      PetscCall(Square(d[q], M));
#if PETSC_VERSION_GE(3, 26, 0)
      if (Size == 1 && k < 7) {
        for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&M[t]));
        continue; /* a sequential matrix has none */
      }
#endif
      PetscCall((*Uses[k].use)(M));
      for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&M[t]));
    }
  }
  return MatTestEnd();
}

static char help[] = "A program of known counts for tests/plugin/report.sh: products and products with vectors, and an end that is chosen.\n\
  -end finalize|error|caught|exit|signal|other|folder : PetscFinalize(); an error in main(); one that is caught, then PetscFinalize(); exit(); SIGSEGV;\n\
                                                        an error on the last process alone; the report's folder is removed, then PetscFinalize()\n\
  -end killed : the last process is killed while the others multiply on\n\
  -end child|finalizers : PetscFinalize(), and then a forked child calls exit(); PetscFinalize(), in which functions of the program destroy the matrices\n\
  -load PLUGIN : opened by the program, when the first of these is registered\n\
  -twice : all of it twice, PetscInitialize() to PetscFinalize()\n\
  -comma : fails where the user's language, which it speaks, has no comma in numbers\n\
  -mults N : so many products with a vector instead of 100\n\
  -traffic FILE : gets, before PetscFinalize(), what PETSc has counted of each process's messages and collectives\n\n";

#include <petscmat.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

#define N 40

static PetscErrorCode Stencil(Mat *A)
{
  PetscInt first, last;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, N * N, N * N));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &first, &last));
  for (PetscInt r = first; r < last; r++) {
    const PetscInt near[] = {r - N, r % N ? r - 1 : -1, r, r % N < N - 1 ? r + 1 : -1, r + N < N * N ? r + N : -1};

    for (int k = 0; k < 5; k++)
      if (near[k] >= 0) PetscCall(MatSetValue(*A, r, near[k], near[k] == r ? 4.0 : -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 3 products of A's values, 1 + 2 of C = A A, 100 of A with a vector, 7 of the transposed C, one A for each of 300
   steps */
static PetscErrorCode Work(Mat A, Mat *C)
{
  Vec x, y;

  PetscInt mults = 100;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mults", &mults, NULL));
  PetscCall(PetscObjectSetName((PetscObject)A, "the <matrix> & \"A\" \303\244"));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatSetOptionsPrefix(*C, "c_"));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatMatMult(A, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, C));
  }
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  for (PetscInt k = 0; k < mults; k++) PetscCall(MatMult(A, x, y));
  for (int k = 0; k < 7; k++) PetscCall(MatMultTranspose(*C, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* so many matrices of different sizes that they are more than the report has lines for */
static PetscErrorCode Many(void)
{
  PetscFunctionBeginUser;
  for (PetscInt n = 1; n <= 200; n++) {
    Mat D;
    Vec x, y;

    PetscCall(MatCreate(PETSC_COMM_SELF, &D));
    PetscCall(MatSetSizes(D, n, n, n, n));
    PetscCall(MatSetType(D, "seqaijhybridgpu"));
    PetscCall(MatSetUp(D));
    PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
    PetscCall(MatCreateVecs(D, &x, &y));
    PetscCall(MatMult(D, x, y));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&D));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fails(void)
{
  PetscFunctionBeginUser;
  PetscCheck(PETSC_FALSE, PETSC_COMM_SELF, PETSC_ERR_USER, "a fault of the program's own");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* those that go on wait for the last one's entries, at the latest where the host looks at a result */
static PetscErrorCode Killed(Mat A, PetscBool last)
{
  const PetscScalar *a;
  Vec                x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  for (int k = 0;; k++) {
    if (last && k == 5) raise(SIGKILL);
    PetscCall(MatMult(A, x, y));
    PetscCall(VecGetArrayRead(y, &a));
    PetscCall(VecRestoreArrayRead(y, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static Mat kept[2];

static PetscErrorCode FinalizeFirst(void)
{
  return MatDestroy(&kept[0]);
}

static PetscErrorCode FinalizeSecond(void)
{
  return MatDestroy(&kept[1]);
}

/* PETSc calls them in turn or, later releases, the last one first: one of them comes after the plugin's own */
static PetscErrorCode RegisterAndLoad(const char *plugin)
{
  PetscFunctionBeginUser;
  PetscCall(PetscRegisterFinalize(FinalizeFirst));
  PetscCall(PetscDLLibraryAppend(PETSC_COMM_WORLD, &PetscDLLibrariesLoaded, plugin));
  PetscCall(PetscRegisterFinalize(FinalizeSecond));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A child that ends after its parent, and as a program of its own */
static void Child(void)
{
  int  ends[2];
  char c;

  if (pipe(ends) || fork()) return;
  close(ends[1]);
  while (read(ends[0], &c, 1) > 0) continue;
  exit(0);
}

static PetscErrorCode Traffic(PetscMPIInt rank)
{
  char  name[PETSC_MAX_PATH_LEN] = "";
  FILE *f;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-traffic", name, sizeof(name), NULL));
  if (!name[0]) PetscFunctionReturn(PETSC_SUCCESS);
  f = fopen(name, "a");
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot append to %s", name);
  fprintf(f, "%d: sends %g of %g bytes, receives %g of %g, collectives %g, gathers %g, scatters %g\n", (int)rank, petsc_send_ct + petsc_isend_ct, petsc_send_len + petsc_isend_len, petsc_recv_ct + petsc_irecv_ct, petsc_recv_len + petsc_irecv_len, petsc_allreduce_ct, petsc_gather_ct, petsc_scatter_ct);
  fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Session(int argc, char **argv)
{
  char        end[32] = "finalize", folder[PETSC_MAX_PATH_LEN] = "", plugin[PETSC_MAX_PATH_LEN] = "";
  Mat         A, C;
  PetscMPIInt rank, size;
  PetscBool   is, many = PETSC_FALSE, comma = PETSC_FALSE;

  PetscFunctionBeginUser;
  (void)setlocale(LC_ALL, ""); /* as programs with windows do */
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-end", end, sizeof(end), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-folder", folder, sizeof(folder), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-many", &many, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-comma", &comma, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-load", plugin, sizeof(plugin), NULL));
  if (plugin[0]) PetscCall(RegisterAndLoad(plugin));
  if (comma && strcmp(localeconv()->decimal_point, ",")) return 4;
  PetscCall(Stencil(&A));
  PetscCall(Work(A, &C));
  if (many) PetscCall(Many());
  PetscCall(Traffic(rank));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscStrcmp(end, "error", &is));
  if (is) PetscCall(Fails());
  PetscCall(PetscStrcmp(end, "other", &is));
  if (is) {
    if (rank == size - 1) PetscCall(Fails());
    for (;;) sleep(1); /* until the failing one ends all */
  }
  PetscCall(PetscStrcmp(end, "killed", &is));
  if (is) PetscCall(Killed(A, (PetscBool)(rank == size - 1)));
  PetscCall(PetscStrcmp(end, "caught", &is));
  if (is) (void)Fails(); /* the program goes on */
  PetscCall(PetscStrcmp(end, "exit", &is));
  if (is) exit(0);
  PetscCall(PetscStrcmp(end, "signal", &is));
  if (is) raise(SIGSEGV);
  PetscCall(PetscStrcmp(end, "folder", &is));
  if (is && !rank && rmdir(folder)) return 3;
  PetscCall(PetscStrcmp(end, "child", &is));
  if (is) Child();
  PetscCall(PetscStrcmp(end, "finalizers", &is));
  if (is) {
    kept[0] = A;
    kept[1] = C;
    A = C = NULL;
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&C));
  PetscCall(PetscFinalize());
  return 0;
}

int main(int argc, char **argv)
{
  int rc, twice = 0;

  for (int k = 1; k < argc; k++) twice = twice || !strcmp(argv[k], "-twice");
  if (twice && MPI_Init(&argc, &argv)) return 5;
  rc = Session(argc, argv);
  if (twice && !rc) rc = Session(argc, argv);
  if (twice) MPI_Finalize();
  return rc;
}

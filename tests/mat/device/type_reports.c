/*
  What the type says of itself: where a matrix is (MatView(), MatGetCurrentMemType(), also bound to the CPU and back),
  which operands are too small for the device, the algorithm of a product that comes to the device later, vectors on
  the host met by a matrix on the device (once, in -info), what half precision loses, what crosses the bus at a parallel
  product with a vector and in the numeric phase of P^T A P, and at the end the accounts of memory
  (-mat_aijhybridgpu_view_memory) and of operations (-mat_aijhybridgpu_view_counts).

TEST np=1,2 -mat_aijhybridgpu_view_memory
TEST np=1,2 @emulated -mat_aijhybridgpu_view_memory
TEST np=1,2 @emulated -mat_aijhybridgpu_view_memory -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_tile_precision half
TEST np=1 @emulated -mat_aijhybridgpu_view_memory -mat_aijhybridgpu_plan_min 0 -mat_aijhybridgpu_tuning plan_after=1
TEST np=1 @emulated -mat_aijhybridgpu_view_memory -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 3000
*/
#include "mattest.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static PetscBool   Cuda, Auto; /* -mat_aijhybridgpu_backend */
static PetscInt    DeviceMin = 100000;
static PetscMPIInt Rank, Size;
static char        Folder[] = "/tmp/aijhybridgpu-reports-XXXXXX";

/* all of a text file; to be freed */
static char *ReadText(const char *path)
{
  FILE *f    = fopen(path, "r");
  char *text = (char *)calloc(1, 1 << 20);

  if (f) {
    if (!fread(text, 1, (1 << 20) - 1, f)) text[0] = 0;
    fclose(f);
  }
  return text;
}

static int Occurrences(const char *text, const char *words)
{
  int n = 0;

  for (const char *at = text; (at = strstr(at, words)); at++) n++;
  return n;
}

static PetscBool OnDevice(PetscInt work)
{
  return (PetscBool)(Cuda || (Auto && work >= DeviceMin));
}

/* what MatView() says, in this process's own words */
static PetscErrorCode Where(Mat A, char **text)
{
  PetscViewer viewer;
  char        path[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/view", Folder));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, path, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  *text = ReadText(path);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckWhere(Mat A, PetscBool device, const char *words, const char *what)
{
  char *text = NULL;

  PetscFunctionBeginUser;
  PetscCall(Where(A, &text));
  if (!strstr(text, words)) printf("%s", text);
  MatTestCheck(strstr(text, words), what);
  free(text);
#if PETSC_VERSION_GE(3, 24, 0)
  {
    PetscMemType mtype;

    PetscCall(MatGetCurrentMemType(A, &mtype));
    MatTestCheck((mtype != PETSC_MEMTYPE_HOST) == (device && PetscDefined(HAVE_DEVICE)), what);
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckPlaces(void)
{
  Mat         A, H, C;
  PetscBool   mirror;
  const char *born;

  PetscFunctionBeginUser;
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  born = mirror ? "state mirrored: the matrix is on the device, mirrored on the host" : "state shared: the matrix is on the device and the host in one storage";
  /* the smaller one has fewer nonzeros than -mat_aijhybridgpu_device_min, in the run that has this option */
  for (PetscInt n = 8; n <= 40; n += 32) {
    PetscBool device;
    MatInfo   info;

    MatTestName = n == 8 ? "where a small matrix is" : "where a matrix is";
    PetscCall(MatTestStencil(2, n, PETSC_FALSE, 0.1, MATAIJ, &A));
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
    PetscCall(CheckWhere(H, PETSC_FALSE, "state host: the matrix is on the host\n", "assembled"));
    device = OnDevice(2 * (PetscInt)info.nz_used);
    PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(CheckWhere(H, device, device ? "state copied: the matrix is on the host, with a copy on the device\n" : "state host: the matrix is on the host\n", "an operand"));
    PetscCall(CheckWhere(C, device, device ? born : "state host: the matrix is on the host\n", "a result"));
#if defined(PETSC_HAVE_DEVICE)
    { /* bound to the CPU and back, at any moment: the same values, and where operations run follows */
      Mat D;

      PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
      for (int turn = 0; turn < 2; turn++) {
        PetscCall(MatBindToCPU(C, PETSC_TRUE));
        MatTestBoth(MatScale, C, D, 2.0);
        PetscCall(CheckWhere(C, PETSC_FALSE, "AIJHybridGPU: state ", "bound to the CPU"));
        MatTestCheckMult(C, D, "bound to the CPU");
        PetscCall(MatBindToCPU(C, PETSC_FALSE));
        MatTestBoth(MatScale, C, D, 0.25);
        PetscCall(CheckWhere(C, device, device ? born : "state host: the matrix is on the host\n", "free again"));
        MatTestCheckMult(C, D, "free again");
      }
      MatTestCheckSame(C, D, "bound and free");
      PetscCall(MatDestroy(&D));
    }
#endif
    PetscCall(MatTestDestroy(&A, &H, &C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what -info has said since it was turned on; it is turned off */
static PetscErrorCode InfoText(char **text)
{
  char *name;
  char  path[PETSC_MAX_PATH_LEN];
  FILE *f;

  PetscFunctionBeginUser;
  PetscCall(PetscInfoGetFile(&name, &f));
  fflush(f);
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s.%d", name, (int)Rank));
  if (access(path, R_OK)) PetscCall(PetscStrncpy(path, name, sizeof(path)));
  *text = ReadText(path);
  PetscCall(PetscFree(name));
  PetscCall(PetscInfoAllow(PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InfoBegin(const char *name)
{
  char path[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", Folder, name));
  PetscCall(PetscInfoAllow(PETSC_TRUE));
  PetscCall(PetscInfoSetFile(path, "w"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckInfo(void)
{
  Mat       A, H, P, HP, C, D, block;
  Vec       x, y;
  PetscInt  m, n, planmin = 1;
  char     *text   = NULL, words[128];
  PetscBool device = OnDevice(4000);

  PetscFunctionBeginUser;
  MatTestName = "-info";
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_plan_min", &planmin, NULL));
  PetscCall(InfoBegin("info"));
  PetscCall(MatTestStencil(2, 40, PETSC_FALSE, 0.1, MATAIJ, &A));
  PetscCall(MatTestRandom(1600, 300, 2, 5, &P));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatConvert(P, "aijhybridgpu", MAT_INITIAL_MATRIX, &HP));
  PetscCall(MatPtAP(A, P, MAT_INITIAL_MATRIX, 2.0, &C));
  PetscCall(MatPtAP(H, HP, MAT_INITIAL_MATRIX, 2.0, &D));
  for (int k = 0; k < 2; k++) { /* two numeric phases more */
    MatTestBoth(MatScale, A, H, 2.0);
    PetscCall(MatPtAP(A, P, MAT_REUSE_MATRIX, 2.0, &C));
    PetscCall(MatPtAP(H, HP, MAT_REUSE_MATRIX, 2.0, &D));
  }
  MatTestCheckSame(D, C, "P^T A P");
  PetscCall(MatCreateVecs(C, &x, &y)); /* on the host */
  PetscCall(VecSet(x, 1.0));
  for (int k = 0; k < 3; k++) PetscCall(MatMult(D, x, y));
  PetscCall(MatTestDestroy(&x, &y));
  PetscCall(InfoText(&text));
  if (Size > 1) { /* the first process speaks for a parallel matrix */
    if (!Rank) MatTestCheck(Occurrences(text, "Numeric phase of the product PtAP: ") == 3, "each numeric phase says what crossed the bus");
    PetscCall(MatMPIAIJGetSeqAIJ(D, NULL, &block, NULL));
    PetscCall(MatGetLocalSize(block, &m, &n));
    PetscCall(PetscSNPrintf(words, sizeof(words), "A product with a vector takes %d bytes of other processes' entries to the device", (int)(n * (PetscInt)sizeof(PetscScalar))));
    if (device && !Rank) MatTestCheck(Occurrences(text, words) > 0, "a product with a vector takes the entries of others to the device");
    MatTestCheck(n > 0, "there are such entries");
  }
  if (Size == 1 && device) { /* three products with a vector: planned for at once, or at the second one */
    MatTestCheck(Occurrences(text, "SpMV method ") == (planmin ? 1 : 2), "one plan");
    if (!planmin) MatTestCheck(Occurrences(text, "without a plan on the device") == 1, "the first product has none");
  }
#if defined(PETSC_HAVE_CUDA)
  MatTestCheck(Occurrences(text, "meets vectors on the host") == (device ? 1 : 0), "vectors on the host, once");
#endif
  free(text);
  PetscCall(MatTestDestroy(&A, &H, &P, &HP, &C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The algorithm that was asked for is the one of a product that comes to the device later, when its operands have got
   more entries */
static PetscErrorCode CheckAlgorithm(void)
{
  Mat   A, S, H, C;
  char *text = NULL;

  PetscFunctionBeginUser;
  MatTestName = "the algorithm";
  PetscCall(InfoBegin("algorithm"));
  PetscCall(MatTestStencil(2, 30, PETSC_FALSE, 0.1, MATAIJ, &S));
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 900, 900, 1, NULL, &A));
  for (PetscInt i = 0; i < 900; i++) PetscCall(MatSetValue(A, i, i, 1.0, INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatProductCreate(H, H, NULL, &C));
  PetscCall(MatTestSymbolic(MATPRODUCT_AB, "hash", C));
  PetscCall(MatProductNumeric(C));
  PetscCall(MatAXPY(H, 1.0, S, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatProductNumeric(C));
  PetscCall(InfoText(&text));
  MatTestCheck(Occurrences(text, "Product on the device: AB stage 1: method hash,") == (Cuda ? 2 : Auto ? 1
                                                                                                        : 0),
               "the algorithm asked for");
  MatTestCheck(Occurrences(text, "Product on the ") == 2, "two symbolic phases");
  free(text);
  PetscCall(MatTestDestroy(&A, &S, &H, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_USE_REAL_DOUBLE) && !defined(PETSC_USE_COMPLEX)
/* methods that a device alone has, named by the option under the matrix's prefix: blocks of two unknowns, three to a
   row */
static PetscErrorCode CheckMethods(void)
{
  static const char *const names[] = {"block", "tile"};
  const PetscInt           n       = 120;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    Mat      A, H, C, D;
    char    *text = NULL, words[64];
    PetscInt start, end;

    MatTestName = names[k];
    PetscCall(MatTestRoom(MATAIJ, n, n, n, n, 6, &A, &start, &end));
    for (PetscInt r = start; r < end; r++) {
      for (PetscInt c = PetscMax(0, r / 2 * 2 - 2); c < PetscMin(n, r / 2 * 2 + 4); c++) PetscCall(MatSetValue(A, r, c, 1.0 + (7 * r + 3 * c) % 5, INSERT_VALUES));
    }
    PetscCall(MatTestAssemble(A));
    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
    PetscCall(MatSetOptionsPrefix(H, "named_"));
    PetscCall(MatTestOption(PETSC_TRUE, "-named_mat_aijhybridgpu_spgemm", names[k]));
    PetscCall(MatSetFromOptions(H));
    PetscCall(MatTestOption(PETSC_FALSE, "-named_mat_aijhybridgpu_spgemm", NULL));
    PetscCall(InfoBegin(names[k]));
    PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(InfoText(&text));
    PetscCall(PetscSNPrintf(words, sizeof(words), "AB stage 1: method %s", names[k]));
    MatTestCheck(Occurrences(text, words) == 1, "the method asked for");
    free(text);
    PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    MatTestCheckSame(C, D, "first product");
    PetscCall(MatScale(H, 2.0));
    PetscCall(MatScale(D, 4.0));
    PetscCall(MatMatMult(H, H, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
    MatTestCheckSame(C, D, "again");
    PetscCall(MatTestDestroy(&A, &H, &C, &D));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product in half precision says how much of a value was lost, another one does not */
static PetscErrorCode CheckPrecision(void)
{
  PetscErrorCode (*counter)(Mat, const char[], PetscInt64 *);
  static const char words[] = "Half precision: up to ";
  void             *library = NULL;
  PetscBool         half    = PETSC_FALSE;
  PetscInt64        lost;
  Mat               A, C;
  char             *text = NULL, precision[16] = "";
  const char       *at;

  PetscFunctionBeginUser;
  MatTestName = "the precision";
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_tile_precision", precision, sizeof(precision), NULL));
  PetscCall(PetscStrcmp(precision, "half", &half));
  PetscCall(InfoBegin("precision"));
  PetscCall(MatTestStencil(2, 70, PETSC_FALSE, 0.1, "aijhybridgpu", &A)); /* 0.9 and 1.1 are rounded in 16 bits */
  PetscCall(MatProductCreate(A, A, NULL, &C));
  PetscCall(MatTestSymbolic(MATPRODUCT_AB, "tile", C));
  PetscCall(MatProductNumeric(C));
  PetscCall(InfoText(&text));
  MatTestCheck(Rank || Occurrences(text, "AB stage 1: method tile") > 0, "the method asked for");
  at = strstr(text, words); /* the first process speaks for a parallel matrix */
  MatTestCheck(Rank || (PetscBool)(at != NULL) == half, "half precision says what it loses");
  PetscCall(MatTestLibrary("-dll_append", &library));
  PetscCheck(library, PETSC_COMM_WORLD, PETSC_ERR_USER, "This test wants the plugin by -dll_append");
  *(void **)&counter = dlsym(library, "MatAIJHybridGPUGetProductCounter");
  PetscCheck(counter, PETSC_COMM_WORLD, PETSC_ERR_LIB, "The plugin lacks the public functions");
  PetscCall((*counter)(C, "1e-9 of values of A lost in half precision", &lost));
  MatTestCheck((PetscBool)(lost > 100000) == half && lost <= 488282 * Size, "no more than 2^-11 of a value is lost");
  MatTestCheck(!at || PetscAbsReal(atof(at + strlen(words)) - 1e-9 * (PetscReal)lost) < 1e-8, "as much as the counter counts");
  free(text);
  PetscCall(MatTestDestroy(&A, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* what the process has sent over the bus so far, as a matrix of ours says it */
static PetscErrorCode Sent(Mat A, double *bytes)
{
  char       *text = NULL;
  const char *at;

  PetscFunctionBeginUser;
  PetscCall(Where(A, &text));
  at     = strstr(text, "over the bus to the device ");
  *bytes = at ? atof(at + strlen("over the bus to the device ")) : -1;
  free(text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product's operand of another type is sent, and counted: the pattern by both phases, values by the second one; one
   that is there twice is sent once */
static PetscErrorCode CheckForeign(void)
{
  Mat      A, B, C;
  double   before, after;
  PetscInt n, nnz;
  MatInfo  info;

  PetscFunctionBeginUser;
  MatTestName = "operands of another type";
  PetscCall(MatTestStencil(2, 30, PETSC_FALSE, 0, "aijhybridgpu", &A));
  PetscCall(MatTestStencil(2, 30, PETSC_FALSE, 0, "aij", &B));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  nnz = (PetscInt)info.nz_used;
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C)); /* A is there */
  PetscCall(MatDestroy(&C));
  for (int three = 0; three < 2; three++) {
    PetscCall(Sent(A, &before));
    if (three)
      PetscCall(MatMatMatMult(A, B, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    else
      PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(Sent(A, &after));
    MatTestCheck(before >= 0 && after - before == 2.0 * (double)sizeof(PetscInt) * (nnz + n + 1) + (double)sizeof(PetscScalar) * nnz, three ? "B of A B B is sent, and counted, once a phase" : "B of A B is counted as it is sent");
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatTestDestroy(&A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what PetscFinalize() leaves: a line of each process, by the first one, and a file */
static void Check(PetscBool ok, const char *what)
{
  if (ok)
    MatTestPassed++;
  else {
    MatTestFailed++;
    printf("FAILED at the end: %s (process %d)\n", what, (int)Rank);
  }
}

static void CheckAccounts(const char *shown, const char *counts)
{
  char       *text = ReadText(counts), words[64];
  size_t      now = 1, most = 0;
  const char *at;

  snprintf(words, sizeof(words), "%d mult=", (int)Rank);
  at = strstr(text, words);
  Check((PetscBool)(at && strstr(at, " products=") && strstr(at, " device=")), "-mat_aijhybridgpu_view_counts: this process");
  if (at) {
    Check((PetscBool)(atoi(at + strlen(words)) > 0 && atoi(strstr(at, " products=") + 10) > 0), "products were counted");
    Check((PetscBool)((atoi(strstr(at, " device=") + 8) > 0) == (Cuda || Auto)), "operations on the device were counted");
  }
  free(text);
  if (Rank) return;
  text = ReadText(shown);
  for (int r = 0; r < Size; r++) {
    snprintf(words, sizeof(words), "aijhybridgpu, process %d: ", r);
    at = strstr(text, words);
    if (at) at = strstr(at, "bytes now / at most: device ");
    Check((PetscBool)(at && strstr(at, "over the bus to the device ") && sscanf(at, "bytes now / at most: device %zu / %zu", &now, &most) == 2), "-mat_aijhybridgpu_view_memory: every process");
    if (!at) continue;
    Check((PetscBool)(now == 0), "nothing is held when all matrices are gone");
    Check((PetscBool)((most > 0) == (Cuda || Auto)), "the device's memory was counted");
    at = strstr(at, "managed ");
    if (at && sscanf(at, "managed %zu / %zu", &now, &most) == 2) Check((PetscBool)(now == 0), "nothing managed is held");
    Check((PetscBool)((atof(strstr(at, "to the device ") + 14) > 0) == (Cuda || Auto)), "what crossed the bus was counted");
  }
  free(text);
}

int main(int argc, char **argv)
{
  char backend[32] = "auto", library[PETSC_MAX_PATH_LEN] = "", shown[PETSC_MAX_PATH_LEN], counts[PETSC_MAX_PATH_LEN];
  char arguments[64][PETSC_MAX_PATH_LEN], *argument[66];
  int  n, out;

  PetscFunctionBeginUser;
  /* the file's name is made before the options are read */
  if (MPI_Init(&argc, &argv) || !mkdtemp(Folder)) return 1; /* MPI is needed after PETSc's end */
  snprintf(counts, sizeof(counts), "%s/counts", Folder);
  snprintf(shown, sizeof(shown), "%s/shown", Folder);
  for (n = 0; n < argc && n < 62; n++) {
    snprintf(arguments[n], sizeof(arguments[n]), "%s", argv[n]);
    argument[n] = arguments[n];
  }
  argument[n++] = strcpy(arguments[62], "-mat_aijhybridgpu_view_counts");
  argument[n++] = counts;
  argument[n]   = NULL;
  {
    char **a = argument;

    PetscCall(PetscInitialize(&n, &a, NULL, "What MATAIJHYBRIDGPU says of itself\n"));
  }
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_backend", backend, sizeof(backend), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", library, sizeof(library), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_device_min", &DeviceMin, NULL));
  PetscCall(PetscStrcmp(backend, "cuda", &Cuda));
  PetscCall(PetscStrcmp(backend, "auto", &Auto));
  if (!library[0]) Auto = PETSC_FALSE; /* nothing that is large enough for a card that may be there */
  PetscCall(CheckInfo());              /* first: some things are said once */
  if (Size == 1) PetscCall(CheckPlaces());
  if (Size == 1) PetscCall(CheckAlgorithm());
  if (Cuda && Size == 1) PetscCall(CheckForeign());
#if defined(PETSC_USE_REAL_DOUBLE) && !defined(PETSC_USE_COMPLEX)
  if (Cuda && Size == 1) PetscCall(CheckMethods());
  if (Cuda) PetscCall(CheckPrecision());
#endif
  fflush(stdout);
  out = dup(1);
  if (!freopen(shown, "w", stdout)) return 1;
  PetscCall(PetscFinalize());
  fflush(stdout);
  dup2(out, 1);
  CheckAccounts(shown, counts);
  {
    char command[PETSC_MAX_PATH_LEN + 16];

    snprintf(command, sizeof(command), "rm -rf %s", Folder);
    Check((PetscBool)!system(command), "the folder is removed");
  }
  {
    int failed = (int)MatTestFailed, all = 0;

    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!Rank) printf("%d passed, %d failed, %d skipped\n", (int)MatTestPassed, all, (int)MatTestSkipped);
    MPI_Finalize();
    return all ? 1 : 0;
  }
}

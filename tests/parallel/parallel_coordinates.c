/*
  Assembly from coordinates in parallel against MATAIJ, with entries for other processes, empty processes, repeated
  values and patterns, duplicates, entries set by the host in between, MAT_IGNORE_OFF_PROC_ENTRIES. On the device each
  block's values are written there (their event), and the host does not touch the blocks' arrays.

TEST np=1,2,3
TEST np=3+2 @emulated
TEST np=2 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"

#define MAXIMUM 3000
static PetscBool Device, HandsOff;
static void (*HandsOffFunction)(int);
static unsigned long long (*BytesToHost)(void);

static PetscErrorCode Values(Mat A, Mat H, PetscScalar v[], PetscInt n, InsertMode mode, unsigned long *s, const char *what)
{
  PetscInt           before, after;
  unsigned long long bytes = 0;
  const PetscMPIInt  size  = MatTestSize();

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) v[k] = (PetscScalar)((PetscReal)(MATTEST_NEXT(*s) % 1000) / 250.0 - 2.0);
  PetscCall(MatSetValuesCOO(A, v, mode));
  PetscCall(MatTestEventCount("HybCOOValues", &before));
  if (HandsOff) {
    bytes = BytesToHost();
    HandsOffFunction(1);
  }
  PetscCall(MatSetValuesCOO(H, v, mode));
  if (HandsOff) {
    HandsOffFunction(0);
    MatTestCheck(BytesToHost() == bytes, "no bytes to the host");
  }
  PetscCall(MatTestEventCount("HybCOOValues", &after));
  if (Device) MatTestCheck(after == before + (size > 1 ? 2 : 1), "both blocks' events");
  MatTestCheckSame(H, A, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* local: no entries for other processes; lone: all coordinates come from the last process; ignore: those for others are
   dropped */
static PetscErrorCode Test(PetscInt M, PetscInt N, PetscBool local, PetscBool lone, PetscBool ignore)
{
  static PetscInt    i[2][MAXIMUM], j[2][MAXIMUM];
  static PetscScalar v[MAXIMUM];
  Mat                A[2], B;
  const PetscMPIInt  rank = MatTestRank(), size = MatTestSize();
  PetscInt           start, end, n, mine = 0;
  PetscLayout        map;
  unsigned long      s = 1234567;

  PetscFunctionBeginUser;
  s += 77 * (unsigned long)rank;
  n = lone ? (rank == size - 1 ? MAXIMUM : 0) : MAXIMUM / 2 + 100 * rank;
  for (int t = 0; t < 2; t++) {
    PetscCall(MatTestCreate(PETSC_COMM_WORLD, t ? "aijhybridgpu" : MATAIJ, PETSC_DECIDE, PETSC_DECIDE, M, N, &A[t]));
    if (ignore) PetscCall(MatSetOption(A[t], MAT_IGNORE_OFF_PROC_ENTRIES, PETSC_TRUE));
  }
  for (int pattern = 0; pattern < 2; pattern++) {
    PetscCall(MatGetLayouts(A[0], &map, NULL));
    PetscCall(PetscLayoutSetUp(map));
    PetscCall(PetscLayoutGetRange(map, &start, &end));
    if (local && start == end) n = 0;
    for (int k = 0; k < n; k++) {
      i[0][k] = local ? start + (PetscInt)(MATTEST_NEXT(s) % (unsigned long)(end - start)) : (PetscInt)(MATTEST_NEXT(s) % (unsigned long)M);
      j[0][k] = (PetscInt)(MATTEST_NEXT(s) % (unsigned long)N);
      if (k % 29 == 3) i[0][k] = -1;
      if (k % 31 == 5) j[0][k] = -3;
      if (k % 7 == 6) i[0][k] = i[0][k - 1], j[0][k] = j[0][k - 1];
      mine += i[0][k] >= start && i[0][k] < end;
      i[1][k] = i[0][k];
      j[1][k] = j[0][k];
    }
    for (int t = 0; t < 2; t++) PetscCall(MatSetPreallocationCOO(A[t], n, i[t], j[t]));
    PetscCall(Values(A[0], A[1], v, n, INSERT_VALUES, &s, "INSERT_VALUES"));
    MatTestCheckMult(A[1], A[0], "MatMult");
    PetscCall(Values(A[0], A[1], v, n, ADD_VALUES, &s, "ADD_VALUES"));
    MatTestCheckMult(A[1], A[0], "MatMult again");
    PetscCall(Values(A[0], A[1], v, n, INSERT_VALUES, &s, "INSERT_VALUES again"));
    MatTestBoth(MatScale, A[0], A[1], 2.0);
    MatTestCheckSame(A[1], A[0], "MatScale");
    if (Device || PETSC_VERSION_GE(3, 22, 0)) {
      PetscCall(MatDuplicate(A[1], MAT_DO_NOT_COPY_VALUES, &B));
      PetscCall(Values(A[0], B, v, n, INSERT_VALUES, &s, "a duplicate's values"));
      MatTestCheckMult(B, A[0], "MatMult of a duplicate");
#if defined(PETSC_HAVE_DEVICE)
      {
        const PetscBool device = Device, handsoff = HandsOff;

        PetscCall(MatBindToCPU(B, PETSC_TRUE));
        Device = HandsOff = PETSC_FALSE;
        PetscCall(Values(A[0], B, v, n, ADD_VALUES, &s, "bound to the CPU"));
        Device   = device;
        HandsOff = handsoff;
        PetscCall(MatBindToCPU(B, PETSC_FALSE));
        PetscCall(Values(A[0], B, v, n, ADD_VALUES, &s, "no longer bound"));
      }
#endif
      PetscCall(MatDestroy(&B));
    }
  }
  MatTestCheck(mine >= 0, "coordinates");
  PetscCall(MatTestDestroy(&A[0], &A[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MAT_ROW_ORIENTED stays as the program set it, after other coordinates and for a duplicate too */
static PetscErrorCode TestOrientation(void)
{
  const PetscScalar v[4] = {1.0, 2.0, 3.0, 4.0};
  Mat               A[2], D[2];
  PetscLayout       map;
  PetscInt          start, end, n, i[3 * 16], j[3 * 16];
  PetscScalar       w[3 * 16];

  PetscFunctionBeginUser;
  MatTestName = "MAT_ROW_ORIENTED";
  for (int t = 0; t < 2; t++) {
    PetscCall(MatTestCreate(PETSC_COMM_WORLD, t ? "aijhybridgpu" : MATAIJ, 16, 16, PETSC_DETERMINE, PETSC_DETERMINE, &A[t]));
    PetscCall(MatGetLayouts(A[t], &map, NULL));
    PetscCall(PetscLayoutSetUp(map));
    PetscCall(PetscLayoutGetRange(map, &start, &end));
    for (int pattern = 0; pattern < 2; pattern++) {
      PetscInt rows[2] = {start + 4, start + 5};

      n = 0;
      for (PetscInt r = start; r < end; r++)
        for (PetscInt c = r - 1; c <= r + 1 - pattern; c++) {
          if (c < 0 || c >= map->N) continue;
          i[n]   = r;
          j[n]   = c;
          w[n++] = (PetscScalar)(r + 2 * c);
        }
      if (pattern) { /* the same entries but for one more */
        for (PetscInt r = start; r < end - 1; r++) i[n] = r, j[n] = r + 1, w[n++] = (PetscScalar)(3 * r);
        i[n] = start, j[n] = end - 1, w[n++] = (PetscScalar)5.0;
      }
      PetscCall(MatSetPreallocationCOO(A[t], n, i, j));
      PetscCall(MatSetValuesCOO(A[t], w, INSERT_VALUES));
      if (!pattern) PetscCall(MatSetOption(A[t], MAT_ROW_ORIENTED, PETSC_FALSE));
      PetscCall(MatSetValues(A[t], 2, rows, 2, rows, v, INSERT_VALUES));
      PetscCall(MatTestAssemble(A[t]));
    }
    PetscCall(MatDuplicate(A[t], MAT_COPY_VALUES, &D[t]));
    PetscCall(MatSetValues(D[t], 2, (PetscInt[]){start + 10, start + 11}, 2, (PetscInt[]){start + 10, start + 11}, v, INSERT_VALUES));
    PetscCall(MatTestAssemble(D[t]));
  }
  MatTestCheckSame(A[1], A[0], "values by columns");
  MatTestCheckSame(D[1], D[0], "of a duplicate");
  for (int t = 0; t < 2; t++) PetscCall(MatTestDestroy(&A[t], &D[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      name[64];
  PetscBool mirror;
  void     *library = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Assembly of MATAIJHYBRIDGPU from coordinates in parallel\n"));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &Device));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  PetscCall(MatTestOpenDevice());
  PetscCall(MatTestLibrary("-mat_aijhybridgpu_cuda_library", &library));
  if (Device && library && !mirror && !PetscDefined(USE_DEBUG)) {
    *(void **)&HandsOffFunction = dlsym(library, "HybEmulatorHandsOff");
    *(void **)&BytesToHost      = dlsym(library, "HybEmulatorBytesToHost");
    HandsOff                    = (PetscBool)(HandsOffFunction && BytesToHost);
    dlclose(library);
  }
  for (int k = 0; k < 4; k++) {
    const PetscInt shapes[][2] = {
      {60, 60},
      {41, 90},
      {90, 33},
      {3,  4 }
    };

    for (int variant = 0; variant < 4; variant++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "%d x %d, variant %d", (int)shapes[k][0], (int)shapes[k][1], variant));
      MatTestName = name;
      PetscCall(Test(shapes[k][0], shapes[k][1], (PetscBool)(variant == 1), (PetscBool)(variant == 2), (PetscBool)(variant == 3)));
    }
  }
  PetscCall(TestOrientation());
  return MatTestEnd();
}

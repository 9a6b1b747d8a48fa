/*
  Products with a vector of rows that begin far behind the first entry: as the last rows of a matrix of 2^31 nonzeros
  do, of 2^32 and of more where indices have 64 bits. The arrays are small: the pointers are moved back by as much as
  the offsets are moved on. Sums have the bits that they have without.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybspmv.h>
#include <stdlib.h>
#include <string.h>

/* z = A x by a plan of A where it stands; *taken: the method did not decline */
static PetscErrorCode Product(const char *method, const RefMat *A, PetscCount by, const PetscScalar *hx, PetscScalar *hz, PetscBool *taken)
{
  const HybExec *exec = HybTestExec();
  HybSpMV        mv;
  HybCSR         M;
  PetscScalar   *x, *z;
  PetscErrorCode ierr;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  PetscCall(HybTestUploadMoved(&arena, A, A->csr.nnz + by, &M));
  M.nnz = A->csr.nnz; /* by which plans go */
  PetscCall(HybTestUploadArray(&arena, A->csr.n, sizeof(PetscScalar), hx, &x));
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), A->csr.m, sizeof(PetscScalar), &z));
  PetscCall(HybSpMVInit(&mv, exec, method, 1));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybSpMVSetUp(&mv, &M);
  PetscCall(PetscPopErrorHandler());
  *taken = (PetscBool)(ierr != PETSC_ERR_SUP);
  HybTestCheck(!ierr || !*taken, "error %d from HybSpMVSetUp()", (int)ierr);
  M.nnz += by;
  if (!ierr && HybTestCall(HybSpMVApply(&mv, &M, x, HYB_SPMV_SET, NULL, z))) PetscCall(HybTestDownloadArray(A->csr.m, sizeof(PetscScalar), z, hz));
  HybTestCall(HybSpMVDestroy(&mv));
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const char *name, const char *method, const RefMat *A)
{
  const PetscCount most = (PetscCount)PETSC_MAX_INT - HYB_ENTRIES_BEYOND - A->csr.nnz, to[] = {((PetscCount)1 << 31) - A->csr.nnz / 2, ((PetscCount)1 << 32) - A->csr.nnz / 2, ((PetscCount)1 << 33) + 12344};
  PetscScalar     *x = HybTestRandomVector(A->csr.n), *z = (PetscScalar *)RefAlloc(A->csr.m, sizeof(PetscScalar)), *expected = (PetscScalar *)RefAlloc(A->csr.m, sizeof(PetscScalar));
  PetscBool        taken;

  PetscFunctionBegin;
  HybTestBegin("%s: %s", method, name);
  PetscCall(Product(method, A, 0, x, expected, &taken));
  for (size_t k = 0; taken && k < (sizeof(PetscInt) == 8 ? PETSC_STATIC_ARRAY_LENGTH(to) : 1); k++) {
    /* a multiple of what the copy engine takes at once: tiles are cut alike */
    const PetscCount by = PetscMin(to[k], most) / 32 * 32;
    PetscBool        also;

    memset(z, 0xff, (size_t)A->csr.m * sizeof(PetscScalar));
    PetscCall(Product(method, A, by, x, z, &also));
    HybTestCheck(also && !memcmp(z, expected, (size_t)A->csr.m * sizeof(PetscScalar)), "moved by %" PetscCount_FMT " entries: %s", by, also ? "other sums" : "declined");
  }
  if (!taken) HybTestCheck(PETSC_TRUE, "it declined");
  RefFree(x, z, expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  static const struct {
    const char *method, *way;
  } ways[] = {
    {"shape",    NULL    },
    {"rowgroup", "stream"},
    {"rowgroup", "direct"},
    {"rowgroup", "bins"  },
    {"rowlist",  NULL    }
  };

  PetscFunctionBegin;
  if (!HybTestExec()->backend->device) {
    HybTestBegin("offsets");
    HybTestSkip("the host's loops have no other integers than PetscInt");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* 16-bit distances would be kept for each entry, from the first one on */
  PetscCall(HybTuningSet("rowgroup_near", "no"));
  for (size_t w = 0; w < PETSC_STATIC_ARRAY_LENGTH(ways); w++) {
    RefMat A;

    if (ways[w].way) PetscCall(HybTuningSet("rowgroup_way", ways[w].way));
    HybTestMatStencil(27, HybTestSize(17, 12), 13, 11, &A);
    PetscCall(Compare("27 points", ways[w].method, &A));
    RefMatDestroy(&A);
    HybTestMatDenseRow(700, 9000, 350, 5, &A); /* cut into pieces */
    PetscCall(Compare("a long row", ways[w].method, &A));
    HybTestMatEmptyRows(&A, 0, 700, 3);
    PetscCall(Compare("empty rows", ways[w].method, &A));
    RefMatDestroy(&A);
    PetscCall(HybTuningSet("rowgroup_way", NULL));
  }
  PetscCall(HybTuningSet("rowgroup_near", NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

/* The elementary operations with every allocation failing in turn: memory comes back, operands stay as they were, the
   next call works */
#include "hybtest.h"
#include <aijhybridgpu/private/hybparprod.h>
#include <stdlib.h>
#include <string.h>

static const HybExec     *exec;
static const HybCSROps   *ops;
static const HybLocalOps *local;
static HybArena           mine, keep, work;
static RefMat             A, B;
static HybCSR             a, b;
static PetscInt          *ci, *cj, *rows;
static PetscScalar       *values;

static PetscErrorCode CleanUp(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybTestReset(&keep, &work));
  HybTestSameMatrix(&a, &A, 0);
  HybTestSameMatrix(&b, &B, 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(void *ctx)
{
  HybCSR    T;
  PetscInt *perm;
  RefMat    R;

  PetscFunctionBegin;
  PetscCall(ops->transposesymbolic(exec, &keep, &work, &a, &T, &perm));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), T.nnz, sizeof(PetscScalar), &T.a));
  PetscCall(ops->gather(exec, T.nnz, perm, PETSC_FALSE, a.a, T.a));
  PetscCall(exec->backend->sync(exec));
  RefTranspose(&A, PETSC_FALSE, &R);
  HybTestSameMatrix(&T, &R, 0);
  RefMatDestroy(&R);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeValues(void *ctx)
{
  HybCSR T;
  RefMat R;

  PetscFunctionBegin;
  PetscCall(ops->transpose(exec, &keep, &work, &a, PETSC_FALSE, &T, NULL));
  PetscCall(exec->backend->sync(exec));
  RefTranspose(&A, PETSC_FALSE, &R);
  HybTestSameMatrix(&T, &R, 0);
  RefMatDestroy(&R);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Add(void *ctx)
{
  HybCSR      C;
  PetscScalar one = 1, two = 2;
  RefMat      R;

  PetscFunctionBegin;
  PetscCall(ops->addsymbolic(exec, &keep, &work, &a, &b, &C));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), C.nnz, sizeof(PetscScalar), &C.a));
  PetscCall(ops->addnumeric(exec, &one, &a, &two, &b, &C));
  PetscCall(exec->backend->sync(exec));
  RefAdd(1, &A, 2, &B, &R);
  HybTestSameMatrix(&C, &R, 2);
  RefMatDestroy(&R);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coordinates(void *ctx)
{
  HybCSR      C;
  PetscCount *mapptr, *map;

  PetscFunctionBegin;
  memset(&C, 0, sizeof(C));
  C.m = A.csr.m;
  C.n = A.csr.n;
  PetscCall(ops->coosymbolic(exec, &keep, &work, A.csr.nnz, ci, cj, &C, &mapptr, &map));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), C.nnz, sizeof(PetscScalar), &C.a));
  PetscCall(ops->coonumeric(exec, C.nnz, mapptr, map, values, PETSC_FALSE, C.a));
  PetscCall(exec->backend->sync(exec));
  HybTestSameMatrix(&C, &A, 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Submatrix(void *ctx)
{
  const PetscInt hrows[] = {5, 0, 17, 5};
  HybCSR         S;
  PetscInt      *perm;
  RefMat         R;

  PetscFunctionBegin;
  PetscCall(ops->submatrixsymbolic(exec, &keep, &work, &a, 4, rows, 3, a.n - 3, &S, &perm));
  PetscCall(exec->backend->sync(exec));
  RefSubmatrix(&A, 4, hrows, 3, a.n - 3, &R);
  HybTestSamePattern(&S, &R);
  RefMatDestroy(&R);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Picks(void *ctx)
{
  const HybCSR *const both[2] = {&a, &b};
  const PetscCount    nnz[2]  = {-1, -1};
  PetscInt           *colmap, *from, *perm[2], *list, begin[5];
  HybCSR              S[2];

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&work, HYB_WORK(exec), a.n, sizeof(PetscInt), &colmap));
  PetscCall(local->sequence(exec, a.n, 0, colmap));
  PetscCall(local->pickrows(exec, &keep, &work, &a, &b, 0, 0, colmap, 4, rows, begin, &S[0], &from));
  PetscCall(local->pickboth(exec, &keep, &work, both, nnz, 4, rows, S, perm));
  PetscCall(local->pickmet(exec, &keep, &work, &S[0], &b, &S[1], &perm[0], &list));
  PetscCall(local->pickmapped(exec, &keep, &work, &a, a.n, colmap, &S[0], &list, &perm[0]));
  PetscCall(exec->backend->sync(exec));
  HybTestSamePattern(&S[0], &A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what allocates only on some backends, with one allocation of the test's own so that something can fail */
static PetscErrorCode Others(void *ctx)
{
  PetscScalar         one = 1;
  PetscReal           norm;
  PetscCount          missing, nbad;
  PetscInt            badrow, *rows;
  uint64_t            hash[2];
  HybCSR              c       = a;
  const HybCSR *const both[2] = {&a, &b};

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), a.nnz, sizeof(PetscScalar), &c.a));
  PetscCall(exec->backend->copy(exec, c.a, a.a, (size_t)a.nnz * sizeof(PetscScalar), HYB_COPY_DEVICE_TO_DEVICE));
  for (int t = 0; t < HybTestSize(3, 1); t++) PetscCall(ops->norm(exec, &work, &a, (HybNorm)t, &norm));
  PetscCall(ops->check(exec, &work, &a, &nbad, &badrow));
  HybTestCheck(!nbad, "%td bad rows", nbad);
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), a.m, sizeof(PetscInt), &rows));
  PetscCall(ops->diagonalplaces(exec, &a, rows));
  PetscCall(ops->samerows(exec, &a, (unsigned char *)rows));
  PetscCall(ops->axpysubset(exec, &work, &one, &a, &c, &missing));
  HybTestCheck(!missing, "%td missing", missing);
  PetscCall(ops->diagonalset(exec, &work, &c, NULL, &one, PETSC_FALSE, &missing));
  PetscCall(ops->patternhash(exec, &work, 2, both, hash));
  PetscCall(exec->backend->sync(exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  static const struct {
    const char *name;
    PetscErrorCode (*run)(void *);
  } all[] = {
    {"transposesymbolic, gather",               Transpose      },
    {"transpose",                               TransposeValues},
    {"transpose by offsets",                    TransposeValues},
    {"addsymbolic, addnumeric",                 Add            },
    {"coosymbolic, coonumeric",                 Coordinates    },
    {"submatrixsymbolic",                       Submatrix      },
    {"pickrows, pickboth, pickmet, pickmapped", Picks          },
    {"norm, check, diagonalplaces, others",     Others         }
  };
  const PetscInt hrows[] = {5, 0, 17, 5};
  PetscInt      *hi;

  PetscFunctionBegin;
  exec  = HybTestExec();
  ops   = exec->backend->csr;
  local = exec->backend->local;
  PetscCall(HybTestArenas(exec, &mine, &keep, &work));
  HybTestMatStencil(5, 9, 9, 1, &A);
  HybTestMatRandom(81, 81, 0, 6, &B);
  hi = (PetscInt *)RefAlloc(A.csr.nnz, sizeof(PetscInt));
  for (PetscInt r = 0; r < A.csr.m; r++)
    for (PetscInt k = A.csr.i[r]; k < A.csr.i[r + 1]; k++) hi[k] = r;
  PetscCall(HybTestUpload(&mine, &A.csr, &a));
  PetscCall(HybTestUpload(&mine, &B.csr, &b));
  PetscCall(HybTestUploadArray(&mine, A.csr.nnz, sizeof(PetscInt), hi, &ci));
  PetscCall(HybTestUploadArray(&mine, A.csr.nnz, sizeof(PetscInt), A.csr.j, &cj));
  PetscCall(HybTestUploadArray(&mine, A.csr.nnz, sizeof(PetscScalar), A.csr.a, &values));
  PetscCall(HybTestUploadArray(&mine, 4, sizeof(PetscInt), hrows, &rows));
  free(hi);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) {
    HybTestBegin("%s with every allocation failing in turn", all[k].name);
    if (k == 2) PetscCall(HybTuningSet("transpose_offsets", "0"));
    HybTestFaults(all[k].run, CleanUp, NULL);
    if (k == 2) PetscCall(HybTuningSet("transpose_offsets", NULL));
  }
  PetscCall(HybArenaReset(&mine));
  RefMatDestroy(&A, &B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

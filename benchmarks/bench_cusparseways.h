/*
  bench_cusparseways.h: sparse products by cuSPARSE, each of its ways beside ours; a part of bench_spgemm.c, whose
  variables and helpers it uses.
*/
#if !defined(BENCH_CUSPARSEWAYS_H) && defined(HAVE_CUSPARSE)
  #define BENCH_CUSPARSEWAYS_H

  #define BUFFER(n) HybArenaAlloc(work, HYB_WORK(&dev), PetscMax(1, (PetscCount)size[n]), 1, &buffer[n])
/* *status from the first call that fails on, none is made */
  #define CU(call)                           \
    do {                                     \
      if (!*status) *status = (int)cu->call; \
    } while (0)
  #define CU_AB  cu->handle, plain, plain, &one, a, b, &zero, c, CUDA_R_64F, alg, descr
  #define CU_RAB cu->handle, plain, plain, a, b, c, alg, descr

static const double              one = 1, zero = 0;
static const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;

static PetscErrorCode CusparseResult(Cusparse *cu, cusparseSpMatDescr_t c, HybArena *out, HybCSR *C, int *status)
{
  int64_t rows, cols, nnz = 0;

  PetscFunctionBegin;
  CU(SpMatGetSize(c, &rows, &cols, &nnz));
  C->nnz = (PetscCount)nnz;
  PetscCall(HybArenaAlloc(out, dev.result, C->nnz, sizeof(PetscInt), &C->j));
  PetscCall(HybArenaAlloc(out, dev.result, C->nnz, sizeof(HybScalar), &C->a));
  CU(CsrSetPointers(c, C->i, C->j, C->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CusparseProduct(Cusparse *cu, cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr, cusparseSpMatDescr_t a, cusparseSpMatDescr_t b, cusparseSpMatDescr_t c, HybArena *work, HybArena *out, HybCSR *C, int *status)
{
  size_t size[3]   = {0, 0, 0};
  void  *buffer[3] = {NULL, NULL, NULL};

  PetscFunctionBegin;
  CU(SpGEMM_workEstimation(CU_AB, &size[0], NULL));
  PetscCall(BUFFER(0));
  CU(SpGEMM_workEstimation(CU_AB, &size[0], buffer[0]));
  if (alg == CUSPARSE_SPGEMM_ALG1)
    CU(SpGEMM_compute(CU_AB, &size[1], NULL));
  else {
    CU(SpGEMM_estimateMemory(CU_AB, 0.2f, &size[2], NULL, NULL));
    PetscCall(BUFFER(2));
    CU(SpGEMM_estimateMemory(CU_AB, 0.2f, &size[2], buffer[2], &size[1]));
    PetscCall(HybArenaFree(work, &buffer[2]));
  }
  PetscCall(BUFFER(1));
  CU(SpGEMM_compute(CU_AB, &size[1], buffer[1]));
  PetscCall(CusparseResult(cu, c, out, C, status));
  CU(SpGEMM_copy(CU_AB));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CusparseReuse(Cusparse *cu, cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr, cusparseSpMatDescr_t a, cusparseSpMatDescr_t b, cusparseSpMatDescr_t c, HybArena *work, HybArena *out, HybCSR *C, int *status)
{
  size_t size[5]   = {0, 0, 0, 0, 0};
  void  *buffer[5] = {NULL, NULL, NULL, NULL, NULL};

  PetscFunctionBegin;
  CU(SpGEMMreuse_workEstimation(CU_RAB, &size[0], NULL));
  PetscCall(BUFFER(0));
  CU(SpGEMMreuse_workEstimation(CU_RAB, &size[0], buffer[0]));
  CU(SpGEMMreuse_nnz(CU_RAB, &size[1], NULL, &size[2], NULL, &size[3], NULL));
  for (int n = 1; n < 4; n++) PetscCall(BUFFER(n));
  CU(SpGEMMreuse_nnz(CU_RAB, &size[1], buffer[1], &size[2], buffer[2], &size[3], buffer[3]));
  PetscCall(HybArenaFree(work, &buffer[0]));
  PetscCall(HybArenaFree(work, &buffer[1]));
  PetscCall(CusparseResult(cu, c, out, C, status));
  CU(SpGEMMreuse_copy(CU_RAB, &size[4], NULL));
  PetscCall(BUFFER(4));
  CU(SpGEMMreuse_copy(CU_RAB, &size[4], buffer[4]));
  PetscCall(HybArenaFree(work, &buffer[2]));
  CU(SpGEMMreuse_compute(CU_AB));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt  j;
  HybScalar a;
} Entry;

static int CompareEntry(const void *x, const void *y)
{
  return CompareInt(&((const Entry *)x)->j, &((const Entry *)y)->j);
}

/* rows of C in the order of their columns, sorted on the host */
static PetscErrorCode SortRows(HybCSR *C, PetscBool *sorted)
{
  const size_t ni = ((size_t)C->m + 1) * sizeof(PetscInt), nj = (size_t)C->nnz * sizeof(PetscInt), na = (size_t)C->nnz * sizeof(HybScalar);
  PetscInt    *i = (PetscInt *)malloc(ni), *j = (PetscInt *)malloc(nj + 1);
  HybScalar   *a   = (HybScalar *)malloc(na + 1);
  Entry       *row = (Entry *)malloc((size_t)C->n * sizeof(Entry) + 1);

  PetscFunctionBegin;
  PetscCheck(i && j && a && row, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory to sort results");
  PetscCall(dev.backend->copy(&dev, i, C->i, ni, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(dev.backend->copy(&dev, j, C->j, nj, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(dev.backend->copy(&dev, a, C->a, na, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(dev.backend->sync(&dev));
  *sorted = PETSC_TRUE;
  for (PetscInt r = 0; r < C->m; r++) {
    const PetscInt n = i[r + 1] - i[r];
    PetscInt       k = 1;

    if (n < 0 || n > C->n) break; /* a wrong result: Compare() will say so */
    while (k < n && j[i[r] + k - 1] < j[i[r] + k]) k++;
    if (k >= n) continue;
    *sorted = PETSC_FALSE;
    for (k = 0; k < n; k++) {
      row[k].j = j[i[r] + k];
      row[k].a = a[i[r] + k];
    }
    qsort(row, (size_t)n, sizeof(Entry), CompareEntry);
    for (k = 0; k < n; k++) {
      j[i[r] + k] = row[k].j;
      a[i[r] + k] = row[k].a;
    }
  }
  if (!*sorted) {
    PetscCall(dev.backend->copy(&dev, C->j, j, nj, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(dev.backend->copy(&dev, C->a, a, na, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(dev.backend->sync(&dev));
  }
  free(i);
  free(j);
  free(a);
  free(row);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* way 0 to 2: ALG1 to ALG3, 3: SpGEMMreuse */
static PetscErrorCode CusparseWay(const char *name, Cusparse *cu, int way, double products, const HybCSR *A, const HybCSR *B, const HybCSR *H)
{
  static const char *const         names[] = {"alg1", "alg2", "alg3", "reuse"};
  static const cusparseSpGEMMAlg_t algs[]  = {CUSPARSE_SPGEMM_ALG1, CUSPARSE_SPGEMM_ALG2, CUSPARSE_SPGEMM_ALG3, CUSPARSE_SPGEMM_DEFAULT};
  const HybCSR                    *ops[3]  = {A, B, NULL};
  double                           first[64], again[64], t0 = 0, t1 = 0, t2 = 0, nnz = 0, best = Best(name);
  size_t                           peak      = 0;
  char                             text[256] = "not checked", method[32];
  PetscBool                        same = PETSC_TRUE, sorted = PETSC_TRUE;

  PetscFunctionBegin;
  snprintf(method, sizeof(method), "%s %s", cu->name, names[way]);
  for (PetscInt k = 0; k < repeat + 1; k++) {
    const PetscInt        s      = PetscMax(0, k - 1);
    const size_t          before = heldnow;
    cusparseSpMatDescr_t  mat[3] = {NULL, NULL, NULL};
    cusparseSpGEMMDescr_t descr  = NULL;
    HybCSR                C;
    int                   failed = 0, *status = &failed;
    PetscErrorCode        ierr;
    HybArena              work = HybArenaOn(&dev), out = HybArenaOn(&dev);

    heldpeak = heldnow;
    memset(&C, 0, sizeof(C));
    C.m = A->m;
    C.n = B->n;
    PetscCall(Now(&t0));
    PetscCall(HybArenaAlloc(&out, dev.result, (PetscCount)C.m + 1, sizeof(PetscInt), &C.i));
    ops[2] = &C;
    for (int q = 0; q < 3; q++) CU(CreateCsr(&mat[q], ops[q]->m, ops[q]->n, ops[q]->nnz, ops[q]->i, ops[q]->j, ops[q]->a, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    CU(SpGEMM_createDescr(&descr));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = (way < 3 ? CusparseProduct : CusparseReuse)(cu, algs[way], descr, mat[0], mat[1], mat[2], &work, &out, &C, status);
    PetscCall(PetscPopErrorHandler());
    PetscCall(Now(&t1));
    first[s] = again[s] = t1 - t0;
    peak                = heldpeak - before;
    nnz                 = (double)C.nnz;
    if (!failed && !ierr) {
      if (!k && H) {
        PetscCall(SortRows(&C, &sorted));
        PetscCall(Compare(&C, H, text, sizeof(text), &same));
      }
      PetscCall(Now(&t1));
      if (way == 3) CU(SpGEMMreuse_compute(cu->handle, plain, plain, &one, mat[0], mat[1], &zero, mat[2], CUDA_R_64F, algs[way], descr));
      PetscCall(Now(&t2));
      again[s] = t2 - t1;
      if (!k && H && same && way == 3 && sorted) PetscCall(Compare(&C, H, text, sizeof(text), &same));
    }
    PetscCall(Now(&t1));
    if (descr) cu->SpGEMM_destroyDescr(descr);
    for (int q = 0; q < 3; q++) {
      if (mat[q]) cu->DestroySpMat(mat[q]);
    }
    PetscCall(HybArenaReset(&work));
    PetscCall(HybArenaReset(&out));
    PetscCall(Now(&t2));
    first[s] += t2 - t1;
    if (failed || ierr) {
      printf("%-20s %-12s stopped: cuSPARSE's status %d, our error %d\n", name, method, failed, (int)ierr);
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  if (!same) wrong++;
  {
    const PetscInt n = PetscMax(1, repeat);
    const double   f = Median(first, n) * 1e3, a = way == 3 ? Median(again, n) * 1e3 : 0;

    printf("%-20s %-12s %-7s %9.3f %9s %9.3f %8.1f %8.2f %7.2f %7.2f  %s%s\n", name, method, "", f, "", a, 2e-6 * products / f, best, best > 0 ? f / best : 0., (double)peak / (12 * PetscMax(1., nnz)), same ? text : "WRONG:", sorted ? "" : ", columns not in order");
    if (!same) printf("    %s\n", text);
    if (tsv) fprintf(tsv, "%s\t%s\t%s\t%.4f\t\t%.4f\t%.0f\t%.0f\t%.2f\t%d\n", name, method, sorted ? "sorted" : "unsorted", f, a, products, nnz, best, (int)same);
    fflush(stdout);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
/* all releases, all ways; A, B: on the host, D: on the device */
static PetscErrorCode CusparseWays(const char *name, const HybCSR *A, const HybCSR *B, const HybCSR *DA, const HybCSR *DB, const HybCSR *H)
{
  double products = 0;

  PetscFunctionBegin;
  for (PetscCount k = 0; ncusparse && k < A->nnz; k++) products += B->i[A->j[k] + 1] - B->i[A->j[k]];
  for (PetscInt l = 0; l < ncusparse; l++) {
    for (int way = 0; way < 4; way++) PetscCall(CusparseWay(name, &cusparses[l], way, products, DA, DB, H));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

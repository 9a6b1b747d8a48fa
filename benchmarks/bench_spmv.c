/*
  bench_spmv.c: products with a vector, transposes and operations on values, on CSR arrays in device memory, each
  checked before its time is printed.

    bench_spmv [-backend host|/abs/libaijhybridgpu_cuda.so] [-methods shape,block,rowgroup,segsum] [-parts
    spmv,transpose,values,levels] [-only NAME,NAME]
               [-matrices DIR] [-scale S] [-repeat N] [-cusparse PATH,PATH|none] [-copy GB/s] [-tsv FILE]

  levels: the prolongators, their transposes and the coarse operators of smoothed aggregation on 7-point grids, level by
  level: what an algebraic multigrid multiplies with.

  Stencils and elasticity are generated; other matrices are read from DIR as NAME.mtx or NAME.mtx.xz and skipped, with a
  line, where they are missing. A method, or a transpose in -transposes transpose,transpose@..., may be followed by
  options of the plugin for its lines alone: segsum@segsum_threads=256+segsum_items=5 runs as with
  -mat_aijhybridgpu_segsum_threads 256 and so on. The method "once" is auto for a matrix that is multiplied once, its
  longest row known, as a first MatMult() of a large matrix goes.
  -levels N,N: the grids of levels. -scale divides the extents of the generated grids (for a slow backend). A method
  that does not take a matrix is left out of its lines.

  Products: z = A x is compared with the host's sums entry by entry (relative to the sum of magnitudes), so are y + A x
  and y - A x in place, and a second z = A x must have the same bits. Times are medians of N batches; a batch is as many
  calls, one behind the other, as take some milliseconds, so what is measured is the device and not the way to it. GB/s
  are CSR's: 12 bytes a nonzero, 12 a row and 8 a column, whatever a method really moves, so methods can be compared;
  "copy" is their share of what a plain copy reaches on the card (-copy, 4290 GB/s on an H200). setup = the plan; first
  = plan and first call together.

  cuSPARSE, one release or several, is measured beside: SpMV with its preprocessing by CSR_ALG1 and CSR_ALG2 (csr1,
  csr2), where it has that by SpMVOp (op1, op2), csr2cscEx2 for transposes with its buffer allocated before; ours is
  compared with the best. A transpose of ours is a bare call: allocations, pattern, positions of the values for later,
  values. -profile 1 or 2 adds one, and says where its time goes (bench_profile.h).

  The exit code is 1 if any result was wrong.
*/
#include <aijhybridgpu/private/hybspgemm.h>
#include <aijhybridgpu/private/hybspmv.h>
#include <petsctime.h>
#include <math.h>
#include "bench_matrices.h"
static HybExec  dev, host;
static HybArena keep;
static char     methods[64][96], only[1024], parts[128];
static char     transposes[16][96] = {"transpose"};
static PetscInt ntransposes = 1, nmethods, scale = 1, repeat = 7, wrong;
static double   copyspeed = 4290;
static FILE    *tsv;

#include "bench_profile.h"
#include "bench_cusparse.h"

static PetscErrorCode Upload(const HybCSR *A, HybCSR *D)
{
  PetscFunctionBegin;
  *D = *A;
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), (PetscCount)A->m + 1, sizeof(PetscInt), &D->i));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), A->nnz, sizeof(PetscInt), &D->j));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), A->nnz, sizeof(HybScalar), &D->a));
  PetscCall(dev.backend->copy(&dev, D->i, A->i, ((size_t)A->m + 1) * sizeof(PetscInt), HYB_COPY_HOST_TO_DEVICE));
  PetscCall(dev.backend->copy(&dev, D->j, A->j, (size_t)A->nnz * sizeof(PetscInt), HYB_COPY_HOST_TO_DEVICE));
  PetscCall(dev.backend->copy(&dev, D->a, A->a, (size_t)A->nnz * sizeof(HybScalar), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int CompareDouble(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

static double Median(double *t, PetscInt n)
{
  qsort(t, (size_t)n, sizeof(double), CompareDouble);
  return t[n / 2];
}

static PetscErrorCode Now(double *t)
{
  PetscLogDouble now;

  PetscFunctionBegin;
  PetscCall(dev.backend->sync(&dev));
  PetscCall(PetscTime(&now));
  *t = (double)now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the time of one of many calls; CALL is a statement */
#define TIME(seconds, CALL)                                                          \
  do {                                                                               \
    double   t0_ = 0, t1_ = 0, times_[64];                                           \
    PetscInt batch_ = 1;                                                             \
    CALL;                                                                            \
    PetscCall(Now(&t0_));                                                            \
    CALL;                                                                            \
    PetscCall(Now(&t1_));                                                            \
    batch_ = (PetscInt)PetscMax(1, PetscMin(400, 4e-3 / PetscMax(1e-6, t1_ - t0_))); \
    for (PetscInt r_ = 0; r_ < repeat; r_++) {                                       \
      PetscCall(Now(&t0_));                                                          \
      for (PetscInt b_ = 0; b_ < batch_; b_++) CALL;                                 \
      PetscCall(Now(&t1_));                                                          \
      times_[r_] = (t1_ - t0_) / batch_;                                             \
    }                                                                                \
    seconds = Median(times_, repeat);                                                \
  } while (0)

static PetscBool InList(const char *text, const char *name, PetscBool within)
{
  char list[1024], *p, *rest = list;

  if (!text[0]) return PETSC_TRUE;
  strncpy(list, text, sizeof(list) - 1);
  list[sizeof(list) - 1] = 0;
  while ((p = strsep(&rest, ","))) {
    if (*p && (within ? strstr(name, p) != NULL : !strcmp(name, p))) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

/* the largest |z - ref| relative to the sum of magnitudes */
static PetscErrorCode Difference(PetscInt m, const HybScalar *z, const double *ref, const double *magnitude, const HybScalar *y, int mode, double *worst)
{
  HybScalar *hz = (HybScalar *)malloc((size_t)m * sizeof(HybScalar) + 1);

  PetscFunctionBegin;
  PetscCheck(hz, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory to compare results");
  PetscCall(dev.backend->copy(&dev, hz, z, (size_t)m * sizeof(HybScalar), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(dev.backend->sync(&dev));
  *worst = 0;
  for (PetscInt r = 0; r < m; r++) {
    const double base = mode == HYB_SPMV_SET ? 0 : (double)PetscRealPart(y[r]), expected = mode == HYB_SPMV_RESIDUAL ? base - ref[r] : base + ref[r], found = (double)PetscRealPart(hz[r]);
    const double d = fabs(found - expected) / PetscMax(1e-300, magnitude[r] + fabs(base));

    if (found != found || d > *worst) *worst = found != found ? 1e300 : d;
  }
  free(hz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Line(const char *name, const char *method, double ms, double bytes, double cums, double setup, double first, PetscBool same, const char *text)
{
  printf("%-26s %-12s %9.4f %8.0f %6.3f", name, method, ms, bytes / ms * 1e-6, bytes / ms * 1e-6 / copyspeed);
  if (cums > 0)
    printf(" %8.2f", cums / ms);
  else
    printf(" %8s", "");
  if (setup >= 0)
    printf(" %9.3f %9.3f", setup, first);
  else
    printf(" %9s %9s", "", "");
  printf("  %s%s\n", same ? "" : "WRONG: ", text);
  if (tsv) fprintf(tsv, "%s\t%s\t%.5f\t%.1f\t%.4f\t%.4f\t%.4f\t%d\n", name, method, ms, bytes / ms * 1e-6, cums, setup, first, (int)same);
  fflush(stdout);
  if (!same) wrong++;
}

/* Products by one algorithm of a cuSPARSE, by its plain interface (op 0) or by SpMVOp (1, 2: its algorithms); seconds
   is 0 where there is none */
#if defined(HAVE_CUSPARSE)
static PetscErrorCode CusparseSpMV(Cusparse *cu, int op, cusparseSpMVAlg_t alg, const HybCSR *D, HybScalar *x, HybScalar *z, double *seconds, double *setup)
{
  static const double       one = 1, zero = 0;
  const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  cusparseSpMatDescr_t      mat   = NULL;
  cusparseDnVecDescr_t      vx = NULL, vz = NULL;
  size_t                    bytes  = 0;
  void                     *buffer = NULL, *descr = NULL, *plan = NULL;
  double                    t0 = 0, t1 = 0;
  int                       status;

  PetscFunctionBegin;
  *seconds = 0;
  if (op && !cu->SpMVOp) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(dev.backend->zero(&dev, z, (size_t)D->m * sizeof(HybScalar)));
  status = cu->CreateCsr(&mat, D->m, D->n, D->nnz, D->i, D->j, D->a, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F) || cu->CreateDnVec(&vx, D->n, x, CUDA_R_64F) || cu->CreateDnVec(&vz, D->m, z, CUDA_R_64F);
  PetscCall(Now(&t0));
  if (!status) status = (int)(op ? cu->SpMVOp_bufferSize(cu->handle, plain, mat, vx, vz, vz, CUDA_R_64F, op, &bytes) : cu->SpMV_bufferSize(cu->handle, plain, &one, mat, vx, &zero, vz, CUDA_R_64F, alg, &bytes));
  if (!status) PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), PetscMax(1, (PetscCount)bytes), 1, &buffer));
  if (!status && !op) status = (int)cu->SpMV_preprocess(cu->handle, plain, &one, mat, vx, &zero, vz, CUDA_R_64F, alg, buffer);
  if (!status && op) status = (int)cu->SpMVOp_createDescr(cu->handle, &descr, plain, mat, vx, vz, vz, CUDA_R_64F, op, buffer);
  if (!status && op) status = (int)cu->SpMVOp_createPlan(cu->handle, descr, &plan, NULL, 0);
  PetscCall(Now(&t1));
  *setup = t1 - t0;
  if (!status && op)
    TIME(*seconds, status = (int)cu->SpMVOp(cu->handle, plan, &one, &zero, vx, vz, vz));
  else if (!status)
    TIME(*seconds, status = (int)cu->SpMV(cu->handle, plain, &one, mat, vx, &zero, vz, CUDA_R_64F, alg, buffer));
  if (status) {
    printf("# cuSPARSE %s, %s %d: status %d\n", cu->name, op ? "SpMVOp" : "SpMV", op ? op : (int)alg, status);
    *seconds = 0;
  }
  if (plan) cu->SpMVOp_destroyPlan(plan);
  if (descr) cu->SpMVOp_destroyDescr(descr);
  if (vx) cu->DestroyDnVec(vx);
  if (vz) cu->DestroyDnVec(vz);
  if (mat) cu->DestroySpMat(mat);
  PetscCall(HybArenaFree(&keep, &buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* the options behind the '@' of a method's name, set or cleared */
static PetscErrorCode MethodOptions(const char *text, PetscBool on)
{
  char        list[96], *p, *rest = list;
  const char *at = strchr(text, '@');

  PetscFunctionBegin;
  if (!at) PetscFunctionReturn(PETSC_SUCCESS);
  strncpy(list, at + 1, sizeof(list) - 1);
  list[sizeof(list) - 1] = 0;
  while ((p = strsep(&rest, "+"))) {
    char *value = strchr(p, '=');

    if (value) *value++ = 0;
    PetscCall(HybTuningSet(p, on ? value ? value : "" : NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a product with a vector is computed from, and what it must be; h: on the host */
typedef struct {
  HybScalar *hx, *hy, *x, *y, *z;
  double    *ref, *magnitude;
} Vectors;

static PetscErrorCode VectorsMake(const HybCSR *A, Vectors *v)
{
  const PetscInt m = A->m, n = A->n;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, n, sizeof(*v->hx), &v->hx));
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, m, sizeof(*v->hy), &v->hy));
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, m, sizeof(*v->ref), &v->ref));
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, m, sizeof(*v->magnitude), &v->magnitude));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), n, sizeof(*v->x), &v->x));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), m, sizeof(*v->y), &v->y));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), m, sizeof(*v->z), &v->z));
  for (PetscInt k = 0; k < n; k++) v->hx[k] = Value(3 * (PetscCount)k + 1);
  for (PetscInt k = 0; k < m; k++) v->hy[k] = Value(5 * (PetscCount)k + 2);
  for (PetscInt r = 0; r < m; r++) {
    double s = 0, g = 0;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const double p = (double)PetscRealPart(A->a[k] * v->hx[A->j[k]]);

      s += p;
      g += fabs(p);
    }
    v->ref[r]       = s;
    v->magnitude[r] = g;
  }
  PetscCall(dev.backend->copy(&dev, v->x, v->hx, (size_t)n * sizeof(HybScalar), HYB_COPY_HOST_TO_DEVICE));
  PetscCall(dev.backend->copy(&dev, v->y, v->hy, (size_t)m * sizeof(HybScalar), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VectorsFree(Vectors *v)
{
  PetscFunctionBegin;
  PetscCall(HybArenaFree(&hostkeep, &v->hx));
  PetscCall(HybArenaFree(&hostkeep, &v->hy));
  PetscCall(HybArenaFree(&hostkeep, &v->ref));
  PetscCall(HybArenaFree(&hostkeep, &v->magnitude));
  PetscCall(HybArenaFree(&keep, &v->x));
  PetscCall(HybArenaFree(&keep, &v->y));
  PetscCall(HybArenaFree(&keep, &v->z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all kinds of products by one plan, and whether the same twice; text: the counters, or what is wrong */
static PetscErrorCode Checked(HybSpMV *mv, const char *method, const HybCSR *D, const Vectors *v, double *after, PetscBool *same, char text[], size_t length)
{
  static const HybSpMVMode modes[] = {HYB_SPMV_SET, HYB_SPMV_ADD, HYB_SPMV_RESIDUAL};
  const size_t             bytes   = (size_t)D->m * sizeof(HybScalar);
  void                    *once = malloc(bytes + 1), *twice = malloc(bytes + 1);
  double                   worst[3] = {0, 0, 0};

  PetscFunctionBegin;
  PetscCheck(once && twice, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory to compare results");
  PetscCall(HybSpMVApply(mv, D, v->x, HYB_SPMV_SET, NULL, v->z));
  PetscCall(Now(after));
  PetscCall(dev.backend->copy(&dev, once, v->z, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(dev.backend->sync(&dev));
  PetscCall(Difference(D->m, v->z, v->ref, v->magnitude, v->hy, HYB_SPMV_SET, &worst[0]));
  for (int mode = 1; mode < 3; mode++) {
    PetscCall(dev.backend->copy(&dev, v->z, v->y, bytes, HYB_COPY_DEVICE_TO_DEVICE));
    PetscCall(HybSpMVApply(mv, D, v->x, modes[mode], v->z, v->z));
    PetscCall(Difference(D->m, v->z, v->ref, v->magnitude, v->hy, modes[mode], &worst[mode]));
  }
  PetscCall(HybSpMVApply(mv, D, v->x, HYB_SPMV_SET, NULL, v->z));
  PetscCall(dev.backend->copy(&dev, twice, v->z, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(dev.backend->sync(&dev));
  *same = (PetscBool)(worst[0] < 1e-12 && worst[1] < 1e-12 && worst[2] < 1e-12 && !memcmp(once, twice, bytes));
  if (*same) {
    size_t at = (size_t)snprintf(text, length, "%s", strcmp(method, mv->method->name) ? mv->method->name : "");

    for (PetscInt c = 0; c < mv->counters.n && at < length; c++) at += (size_t)snprintf(text + at, length - at, "%s%s %lld", at ? ", " : "", mv->counters.name[c], (long long)mv->counters.value[c]);
  } else
    snprintf(text, length, "relative errors %.1e %.1e %.1e%s", worst[0], worst[1], worst[2], memcmp(once, twice, bytes) ? ", does not repeat" : "");
  free(once);
  free(twice);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMV(const char *name, PetscInt bs, const HybCSR *A, const HybCSR *D)
{
  const PetscInt m = A->m, n = A->n;
  const double   csr  = (double)A->nnz * (sizeof(PetscInt) + sizeof(HybScalar)) + (double)m * (sizeof(PetscInt) + sizeof(HybScalar)) + (double)n * sizeof(HybScalar);
  double         cums = 0;
  Vectors        v;

  PetscFunctionBegin;
  PetscCall(VectorsMake(A, &v));
#if defined(HAVE_CUSPARSE)
  {
    double    time[4][4], setup[4][4];
    PetscBool same[4][4];

    /* all of them first: ours is compared with the best */
    for (PetscInt l = 0; l < ncusparse; l++) {
      for (int way = 0; way < 4; way++) {
        double worst;

        PetscCall(CusparseSpMV(&cusparses[l], way < 2 ? 0 : way - 1, way ? CUSPARSE_SPMV_CSR_ALG2 : CUSPARSE_SPMV_CSR_ALG1, D, v.x, v.z, &time[l][way], &setup[l][way]));
        PetscCall(Difference(m, v.z, v.ref, v.magnitude, v.hy, HYB_SPMV_SET, &worst));
        same[l][way] = (PetscBool)(worst < 1e-12);
        if (time[l][way] > 0 && (cums == 0 || 1e3 * time[l][way] < cums)) cums = 1e3 * time[l][way];
      }
    }
    for (PetscInt l = 0; l < ncusparse; l++) {
      for (int way = 0; way < 4; way++) {
        static const char *const ways[] = {"csr1", "csr2", "op1", "op2"};
        char                     what[32];

        snprintf(what, sizeof(what), "%s %s", cusparses[l].name, ways[way]);
        if (time[l][way] > 0) Line(name, what, time[l][way] * 1e3, csr, cums, setup[l][way] * 1e3, (setup[l][way] + time[l][way]) * 1e3, same[l][way], "");
      }
    }
  }
#endif
  for (PetscInt q = 0; q < nmethods; q++) {
    HybSpMV        mv;
    double         t0 = 0, t1 = 0, t2 = 0, t;
    char           text[256], method[96];
    PetscBool      same = PETSC_TRUE;
    PetscErrorCode ierr;

    strcpy(method, methods[q]);
    if (strchr(method, '@')) *strchr(method, '@') = 0;
    if (!strcmp(method, "once")) {
      PetscCall(HybSpMVInit(&mv, &dev, "auto", bs));
      mv.once = PETSC_TRUE;
      for (PetscInt r = 0; r < m; r++) mv.longest = PetscMax(mv.longest, A->i[r + 1] - A->i[r]);
    } else
      PetscCall(HybSpMVInit(&mv, &dev, method, bs));
    PetscCall(MethodOptions(methods[q], PETSC_TRUE));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybSpMVSetUp(&mv, D); /* once to see and to warm the pool, once for the time */
    if (!ierr) {
      PetscCall(Now(&t0));
      ierr = HybSpMVSetUp(&mv, D);
    }
    PetscCall(PetscPopErrorHandler());
    PetscCall(MethodOptions(methods[q], PETSC_FALSE));
    if (ierr) {
      if (ierr != PETSC_ERR_SUP) {
        printf("%-26s %-12s error %d\n", name, methods[q], (int)ierr);
        wrong++;
      }
      PetscCall(HybSpMVDestroy(&mv));
      continue;
    }
    PetscCall(Now(&t1));
    PetscCall(Checked(&mv, method, D, &v, &t2, &same, text, sizeof(text)));
    TIME(t, PetscCall(HybSpMVApply(&mv, D, v.x, HYB_SPMV_SET, NULL, v.z)));
    Line(name, methods[q], t * 1e3, csr, cums, (t1 - t0) * 1e3, (t2 - t0) * 1e3, same, text);
    PetscCall(HybSpMVDestroy(&mv));
  }
  PetscCall(VectorsFree(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameOnDevice(const void *device, const void *expected, size_t bytes, PetscBool *same)
{
  void *h = malloc(bytes + 1);

  PetscFunctionBegin;
  PetscCheck(h, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory to compare results");
  PetscCall(dev.backend->copy(&dev, h, device, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(dev.backend->sync(&dev));
  if (memcmp(h, expected, bytes)) *same = PETSC_FALSE;
  free(h);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneTranspose(const HybCSR *D, HybArena *out, HybArena *work, HybCSR *T, PetscInt **perm)
{
  PetscFunctionBegin;
  PetscCall(dev.backend->csr->transpose(&dev, out, work, D, PETSC_FALSE, T, perm));
  PetscCall(HybArenaReset(work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(const char *name, const HybCSR *A, const HybCSR *D)
{
  const double moved = 2. * ((double)A->nnz * (sizeof(PetscInt) + sizeof(HybScalar)) + (double)(A->m + A->n) / 2 * sizeof(PetscInt));
  HybCSR       T, H;
  PetscInt    *perm, *hostperm;
  PetscBool    same = PETSC_TRUE;
  double       t, cums = 0;
  HybArena     out = HybArenaOn(&dev), work = HybArenaOn(&dev), hostwork = HybArenaOn(&host);

  PetscFunctionBegin;
#if defined(HAVE_CUSPARSE)
  for (PetscInt l = 0; l < ncusparse; l++) {
    Cusparse *cu    = &cusparses[l];
    size_t    bytes = 0;
    void     *buffer;

    PetscCall(HybArenaAlloc(&out, HYB_WORK(&dev), (PetscCount)A->n + 1, sizeof(PetscInt), &T.i));
    PetscCall(HybArenaAlloc(&out, HYB_WORK(&dev), A->nnz, sizeof(PetscInt), &T.j));
    PetscCall(HybArenaAlloc(&out, HYB_WORK(&dev), A->nnz, sizeof(HybScalar), &T.a));
    if (!cu->Csr2cscEx2_bufferSize(cu->handle, D->m, D->n, (int)D->nnz, D->a, D->i, D->j, T.a, T.i, T.j, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, &bytes)) {
      PetscCall(HybArenaAlloc(&out, HYB_WORK(&dev), (PetscCount)bytes, 1, &buffer));
      TIME(t, (void)cu->Csr2cscEx2(cu->handle, D->m, D->n, (int)D->nnz, D->a, D->i, D->j, T.a, T.i, T.j, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, buffer));
      if (!cums || t * 1e3 < cums) cums = t * 1e3;
      Line(name, "csr2csc", t * 1e3, moved, cums, -1, -1, PETSC_TRUE, cu->name);
    }
    PetscCall(HybArenaReset(&out));
  }
#endif
  PetscCall(host.backend->csr->transposesymbolic(&host, &hostkeep, &hostwork, A, &H, &hostperm));
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, A->nnz, sizeof(HybScalar), &H.a));
  PetscCall(host.backend->csr->gather(&host, A->nnz, hostperm, PETSC_FALSE, A->a, H.a));
  for (PetscInt q = 0; q < ntransposes; q++) {
    same = PETSC_TRUE;
    PetscCall(MethodOptions(transposes[q], PETSC_TRUE));
    PetscCall(OneTranspose(D, &out, &work, &T, &perm));
    PetscCall(SameOnDevice(T.i, H.i, ((size_t)A->n + 1) * sizeof(PetscInt), &same));
    PetscCall(SameOnDevice(T.j, H.j, (size_t)A->nnz * sizeof(PetscInt), &same));
    PetscCall(SameOnDevice(perm, hostperm, (size_t)A->nnz * sizeof(PetscInt), &same));
    PetscCall(SameOnDevice(T.a, H.a, (size_t)A->nnz * sizeof(HybScalar), &same));
    PetscCall(HybArenaReset(&out));
    TIME(t, PetscCall(OneTranspose(D, &out, &work, &T, &perm)); PetscCall(HybArenaReset(&out)));
    Line(name, transposes[q], t * 1e3, moved, cums, -1, -1, same, "");
    if (profile) {
      PetscCall(Now(&t));
      ProfileBegin();
      PetscCall(OneTranspose(D, &out, &work, &T, &perm));
      ProfileEnd(name, transposes[q]);
      PetscCall(HybArenaReset(&out));
    }
    PetscCall(MethodOptions(transposes[q], PETSC_FALSE));
  }
  PetscCall(OneTranspose(D, &out, &work, &T, &perm));
  TIME(t, PetscCall(dev.backend->csr->gather(&dev, A->nnz, perm, PETSC_FALSE, D->a, T.a)));
  Line(name, "  values", t * 1e3, (double)A->nnz * (sizeof(PetscInt) + 2 * sizeof(HybScalar)), 0, -1, -1, same, "of the transpose again, the pattern stands");
  PetscCall(HybArenaReset(&out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* operations on values of n entries; their results are checked by the unit tests, here by a few entries */
static PetscErrorCode Values(PetscCount n)
{
  const HybCSROps *ops = dev.backend->csr;
  HybScalar       *a, *b, alpha = 0.5, one = 1, few[4];
  PetscCount      *mapptr, *map, *hostmap;
  PetscInt        *perm, *hostperm;
  char             name[64];
  double           t;

  PetscFunctionBegin;
  snprintf(name, sizeof(name), "values, %lld entries", (long long)n);
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), n, sizeof(*a), &a));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), n, sizeof(*b), &b));
  PetscCall(ops->set(&dev, n, &one, a));
  PetscCall(ops->set(&dev, n, &one, b));
#define VALUES_LINE(what, bytes, call, expected)                                                                                                            \
  do {                                                                                                                                                      \
    TIME(t, PetscCall(call));                                                                                                                               \
    PetscCall(dev.backend->copy(&dev, few, a + n - 4, sizeof(few), HYB_COPY_DEVICE_TO_HOST));                                                               \
    PetscCall(dev.backend->sync(&dev));                                                                                                                     \
    Line(name, what, t * 1e3, (double)n * (bytes), 0, -1, -1, (PetscBool)(PetscRealPart(few[0]) == (expected) && PetscRealPart(few[3]) == (expected)), ""); \
  } while (0)
  VALUES_LINE("set", sizeof(HybScalar), ops->set(&dev, n, &alpha, a), 0.5);
  VALUES_LINE("scale", 2 * sizeof(HybScalar), ops->scale(&dev, n, &one, a), 0.5);
  PetscCall(ops->set(&dev, n, &alpha, b));
  alpha = 0;
  VALUES_LINE("axpy", 3 * sizeof(HybScalar), ops->axpy(&dev, n, &alpha, b, a), 0.5);
  hostmap  = (PetscCount *)malloc(((size_t)n + 1) * sizeof(PetscCount));
  hostperm = (PetscInt *)malloc(((size_t)n + 1) * sizeof(PetscInt));
  PetscCheck(hostmap && hostperm, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for maps");
  for (PetscCount k = 0; k <= n; k++) hostmap[k] = k;
  for (PetscCount k = 0; k < n; k++) hostperm[k] = (PetscInt)k;
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), n + 1, sizeof(*mapptr), &mapptr));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), n, sizeof(*map), &map));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(&dev), n, sizeof(*perm), &perm));
  PetscCall(dev.backend->copy(&dev, mapptr, hostmap, ((size_t)n + 1) * sizeof(*mapptr), HYB_COPY_HOST_TO_DEVICE));
  PetscCall(dev.backend->copy(&dev, map, hostmap, (size_t)n * sizeof(*map), HYB_COPY_HOST_TO_DEVICE));
  PetscCall(dev.backend->copy(&dev, perm, hostperm, (size_t)n * sizeof(*perm), HYB_COPY_HOST_TO_DEVICE));
  VALUES_LINE("gather", sizeof(PetscInt) + 2 * sizeof(HybScalar), ops->gather(&dev, n, perm, PETSC_FALSE, b, a), 0.5);
  VALUES_LINE("coo", 2 * (sizeof(PetscCount) + sizeof(HybScalar)), ops->coonumeric(&dev, n, mapptr, map, b, PETSC_FALSE, a), 0.5);
#undef VALUES_LINE
  free(hostmap);
  free(hostperm);
  PetscCall(HybArenaReset(&keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* kind: a stencil's points, 3 for elasticity; extents divided by -scale; n2 = 0: a file */
static PetscErrorCode Case(const char *name, int kind, PetscInt n, int dim, PetscBool transpose)
{
  const PetscInt s     = PetscMax(3, n / scale);
  PetscBool      found = PETSC_TRUE;
  HybCSR         A, D;

  PetscFunctionBegin;
  if (!InList(only, name, PETSC_TRUE) || !(InList(parts, "spmv", PETSC_FALSE) || InList(parts, "transpose", PETSC_FALSE))) PetscFunctionReturn(PETSC_SUCCESS);
  if (kind == 3)
    PetscCall(Elasticity(s, dim, &A));
  else if (kind)
    PetscCall(Stencil(kind, s, s, dim == 3 ? s : 1, &A));
  else
    PetscCall(ReadMatrixMarket(name, &A, &found));
  if (!found)
    printf("%-26s skipped: %s holds neither %s.mtx nor %s.mtx.xz\n", name, matrices, name, name);
  else {
    printf("# %s: %lld x %lld, %lld nonzeros\n", name, (long long)A.m, (long long)A.n, (long long)A.nnz);
    PetscCall(Upload(&A, &D));
    if (InList(parts, "spmv", PETSC_FALSE)) PetscCall(SpMV(name, kind == 3 ? 3 : 1, &A, &D));
    if (transpose && InList(parts, "transpose", PETSC_FALSE)) PetscCall(Transpose(name, &A, &D));
  }
  PetscCall(HybArenaReset(&keep));
  PetscCall(HybArenaReset(&hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostProduct(const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  HybSpGEMM mm;

  PetscFunctionBegin;
  PetscCall(HybSpGEMMInit(&mm, &host, "auto", 0));
  PetscCall(HybSpGEMMSymbolic(&mm, A, B, &hostkeep, C));
  if (!C->a) {
    PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, C->nnz, sizeof(HybScalar), &C->a));
    PetscCall(HybSpGEMMNumeric(&mm, A, B, C));
  }
  PetscCall(HybSpGEMMDestroy(&mm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LevelCase(const char *what, PetscInt n, int level, const HybCSR *A)
{
  char   name[64];
  HybCSR D;

  PetscFunctionBegin;
  snprintf(name, sizeof(name), "%d^3 %s%d", (int)n, what, level);
  if (InList(only, name, PETSC_TRUE)) {
    printf("# %s: %lld x %lld, %lld nonzeros\n", name, (long long)A->m, (long long)A->n, (long long)A->nnz);
    PetscCall(Upload(A, &D));
    PetscCall(SpMV(name, 1, A, &D));
    PetscCall(HybArenaReset(&keep));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* smoothed aggregation from the 7-point operator of an n^3 grid down: P = A T with T the aggregates' indicators, R =
   P^T, the next A = R A P */
static PetscErrorCode Levels(PetscInt n)
{
  HybCSR A;

  PetscFunctionBegin;
  PetscCall(Stencil(7, n, n, n, &A));
  for (int level = 1; A.m > 8; level++) {
    HybCSR    T, P, R, AP;
    PetscInt *perm;
    HybArena  work = HybArenaOn(&host);

    PetscCall(Aggregates(&A, &T));
    if (T.n >= A.m) break;
    PetscCall(HostProduct(&A, &T, &P));
    PetscCall(host.backend->csr->transposesymbolic(&host, &hostkeep, &work, &P, &R, &perm));
    PetscCall(HybArenaReset(&work));
    PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, R.nnz, sizeof(HybScalar), &R.a));
    PetscCall(host.backend->csr->gather(&host, R.nnz, perm, PETSC_FALSE, P.a, R.a));
    PetscCall(HostProduct(&A, &P, &AP));
    PetscCall(HostProduct(&R, &AP, &A));
    for (PetscCount k = 0; k < A.nnz; k++) A.a[k] = Value(k); /* sums of sums grow and cancel otherwise */
    PetscCall(LevelCase("P", n, level, &P));
    PetscCall(LevelCase("R", n, level, &R));
    PetscCall(LevelCase("A", n, level, &A));
  }
  PetscCall(HybArenaReset(&hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Option(const char option[], char value[], size_t length, PetscBool *set)
{
  return PetscOptionsGetString(NULL, NULL, option, value, length, set);
}

static PetscErrorCode Run(void)
{
  static const char *const files[]                     = {"Cornell5", "boyd1", "cnr-2000", "uk-2007-05_100000", "circuitscape_1m", "boyd2_A", "gun_K", "hand_elasticity", "wathen100", "G2_circuit", "email-Enron", "cage11", "m133-b3", "norne_tpfa", "rail_79841"};
  char                     backend[PETSC_MAX_PATH_LEN] = "host", list[4096] = "", ways[512] = "", path[PETSC_MAX_PATH_LEN] = "", cusparsepath[4096] = "", message[512], *p, *rest = list;
  PetscBool                set;
  PetscReal                speed     = copyspeed;
  PetscInt                 levels[8] = {96, 200}, nlevels = 8;

  PetscFunctionBegin;
  strcpy(matrices, "../shared/matrices");
  PetscCall(HybTuningRead(Option));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-methods", list, sizeof(list), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-parts", parts, sizeof(parts), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-matrices", matrices, sizeof(matrices), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-cusparse", cusparsepath, sizeof(cusparsepath), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-scale", &scale, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeat", &repeat, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-copy", &speed, NULL));
  copyspeed = (double)speed;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-profile", &profile, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-levels", levels, &nlevels, &set));
  if (!set) nlevels = 2;
  PetscCheck(repeat >= 1 && repeat <= 64 && scale >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-repeat is 1 to 64, -scale at least 1");
  memset(&host, 0, sizeof(host));
  host.backend = &HybBackendHost;
  host.result  = HYB_MEM_HOST;
  dev          = host;
  if (strcmp(backend, "host")) {
    HybServices services;

    memset(&services, 0, sizeof(services));
    services.size             = sizeof(services);
    services.device           = -1;
    services.managed_fraction = 0.5;
    services.processes        = 1;
    if (profile) services.fault = Charge;
    PetscCall(HybBackendLoad(backend, &services, &dev.backend, message, sizeof(message)));
    PetscCheck(dev.backend, PETSC_COMM_SELF, PETSC_ERR_LIB, "The device library %s: %s", backend, message);
    dev.result = HYB_MEM_DEVICE;
  }
  keep     = HybArenaOn(&dev);
  hostkeep = HybArenaOn(&host);
  PetscCall(CusparseOpenAll(cusparsepath));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-transposes", ways, sizeof(ways), &set));
  if (set) {
    char *more = ways;

    for (ntransposes = 0; (p = strsep(&more, ","));) {
      if (*p && ntransposes < 16) strncpy(transposes[ntransposes++], p, sizeof(transposes[0]) - 1);
    }
  }
  if (list[0]) {
    while ((p = strsep(&rest, ","))) {
      if (*p && nmethods < 64) strncpy(methods[nmethods++], p, sizeof(methods[0]) - 1);
    }
  } else {
    for (const HybSpMVMethod *const *t = dev.backend->spmv; *t && nmethods < 64; t++) strncpy(methods[nmethods++], (*t)->name, sizeof(methods[0]) - 1);
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-tsv", path, sizeof(path), &set));
  if (set) {
    tsv = fopen(path, "w");
    PetscCheck(tsv, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot write %s", path);
    fprintf(tsv, "matrix\tmethod\tms\tGB/s\tcusparse ms\tsetup ms\tfirst ms\tright\n");
  }
  printf("# backend %s, medians of %d batches\n", dev.backend->name, (int)repeat);
  printf("%-26s %-12s %9s %8s %6s %8s %9s %9s\n", "matrix", "method", "ms", "GB/s", "copy", "cusp/ms", "setup", "first");
  PetscCall(Case("7-pt 200^3", 7, 200, 3, PETSC_TRUE));
  PetscCall(Case("27-pt 160^3", 27, 160, 3, PETSC_TRUE));
  PetscCall(Case("5-pt 2500^2", 5, 2500, 2, PETSC_TRUE));
  PetscCall(Case("9-pt 2000^2", 9, 2000, 2, PETSC_FALSE));
  PetscCall(Case("elasticity 100^3", 3, 100, 1, PETSC_FALSE));
  PetscCall(Case("elasticity 100^3 renumbered", 3, 100, 2000, PETSC_FALSE));
  PetscCall(Case("elasticity 100^3 by levels", 3, 100, -1, PETSC_FALSE));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(files); k++) PetscCall(Case(files[k], 0, 0, 0, PETSC_TRUE));
  if (InList(parts, "values", PETSC_FALSE) && InList(only, "values", PETSC_TRUE)) PetscCall(Values((PetscCount)100000000 / scale / scale / scale));
  if (InList(parts, "levels", PETSC_FALSE)) {
    for (PetscInt k = 0; k < nlevels; k++) PetscCall(Levels(PetscMax(5, levels[k] / scale)));
  }
  if (tsv) fclose(tsv);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscErrorCode ierr;

  ierr = PetscInitialize(&argc, &argv, NULL, NULL);
  if (ierr) return (int)ierr;
  ierr = Run();
  if (ierr) return (int)ierr;
  ierr = PetscFinalize();
  if (ierr) return (int)ierr;
  if (wrong) printf("# %d results were wrong\n", (int)wrong);
  return wrong ? 1 : 0;
}

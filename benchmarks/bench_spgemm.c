/*
  bench_spgemm.c: C = A*B as a bare call, CSR arrays in device memory to CSR arrays in device memory, all allocations,
  frees and the sorting of the output inside the time, the backend's caching pool warm.

    bench_spgemm [-backend host|/abs/libaijhybridgpu_cuda.so] [-methods auto,shape,hash] [-only NAME,NAME] [-matrices
    DIR] [-stencil POINTS,N,UNKNOWNS] [-scale S] [-repeat N] [-check 0|1] [-tsv FILE] [-profile 0|1|2] [-cusparse
    PATH,PATH]

  Stencils, the lattice, elasticity (three unknowns at each of 40^3 points; "scattered": numbered at random within
  windows of 2000) and the Galerkin pieces (those of elasticity with six modes to an aggregate, so with blocks of 3 x 3
  times 3 x 6, and 6 x 3 times 3 x 3) are generated; other matrices are read from DIR as NAME.mtx or NAME.mtx.xz
  and skipped, with a line, where they are missing. -stencil: nothing but this stencil of 5, 9, 7 or 27 points on N^2 or
  N^3 ones, with so many unknowns at each. -scale divides the extents of the generated grids (for a slow
  backend). Every result is checked before its time is printed: the pattern entry by entry and the values against the
  host's method, once for each matrix and method; a wrong one is reported and makes the exit code 1.

  A method's name with "/bs" behind it (auto/bs, block/bs) is given the block size of the matrices of three unknowns to
  a point, as MatSetBlockSizes() would; other matrices are left out.

  Columns: first = a whole first product (symbolic, numeric, destruction of plan and C); symbolic = its symbolic part
  (methods that fill values on the way do it here); again = a numeric phase of a standing plan, the third that repeats a
  product (the first does without, the second makes it: lines that begin with # have these times too); GFLOP/s =
  2*products/first; best = the best code known for this matrix on an H200, measured with its allocations; ratio =
  first/best; memory = peak of what the product held, C included, over 12 bytes times nnz(C). FILE gets a line for each:
  name, method, which one ran, first, symbolic, again, products, nonzeros of C, best, whether right, entries of A to a
  tile of 8 x 8, first and second repetition, and memory with the plan.

  Galerkin products C = P^T A P by hybproduct.h: P is smoothed from boxes of 3^3 points ("boxes") or from aggregates
  around a random maximal independent set of points two apart ("mis", as PCGAMG makes them). first = symbolic and
  numeric phase and destruction, symbolic and again = its parts; memory beside C as above.

  -cusparse measures these releases of cuSPARSE beside: ALG1, ALG2, ALG3 and SpGEMMreuse, whose memory comes from the
  backend's pool like ours. Columns that come out in another order are sorted on the host before they are compared, and
  the line says so. "again" is known for SpGEMMreuse alone.

  -profile 1 adds a product in which the time between any two CUDA calls or launches is charged to the first of them:
  what the host waits for and where. -profile 2 does so with the stream idle at each call: what the device does, the way
  to and from it included (about 10 us a call).
*/
#include <aijhybridgpu/private/hybproduct.h>
#include <petsctime.h>
#include <math.h>
#include "bench_matrices.h"

typedef struct {
  const char *name;
  double      best; /* ms, 0: not known */
} Known;

static const Known known[] = {
  {"7-pt 128^3",        3.96},
  {"27-pt 80^3",        4.61},
  {"9-pt 1000^2",       1.90},
  {"5-pt 1500^2",       1.04},
  {"lattice 8^4",       1.37},
  {"cnr-2000",          3.89},
  {"uk-2007-05_100000", 14.6},
  {"email-Enron",       3.20},
  {"circuitscape_1m",   0.53},
  {"Cornell5",          9.41},
  {"m133-b3",           0.26},
  {"cage11",            0.46},
  {"hand_elasticity",   0.72},
  {"wiki-Vote",         0.61},
  {"rail_79841",        0.23},
  {"7-pt 128^3 A*P",    1.13},
  {"7-pt 128^3 R*A",    1.29},
  {"27-pt 96^3 A*P",    3.07},
  {"27-pt 96^3 R*A",    2.00},
};

static HybExec   dev, host;
static HybArena  keep;
static char      methods[12][32], only[1024];
static PetscInt  nmethods, scale = 1, repeat = 5, wrong;
static PetscBool check = PETSC_TRUE;
static FILE     *tsv;
static double    logratio;
static PetscInt  nratio;

#include "bench_profile.h"
#include "bench_cusparse.h"

/* the backend with every byte counted: what is held by all arenas of a product together, at its peak */
static HybBackend        counting;
static const HybBackend *counted;
static size_t            heldnow, heldpeak;

/* memory that grows is asked for as addresses and given back as what it had grown to */
static PetscBool Counts(HybMem mem)
{
  return (PetscBool)(mem != HYB_MEM_GROWING && (mem != HYB_MEM_HOST || counted->workspace == HYB_MEM_HOST));
}

static PetscErrorCode CountingAlloc(const HybExec *x, HybMem mem, size_t bytes, void **ptr)
{
  PetscErrorCode ierr = counted->alloc(x, mem, bytes, ptr);

  if (!ierr && Counts(mem)) {
    heldnow += bytes;
    if (heldnow > heldpeak) heldpeak = heldnow;
  }
  return ierr;
}

static PetscErrorCode CountingFree(const HybExec *x, HybMem mem, size_t bytes, void *ptr)
{
  if (Counts(mem)) heldnow -= bytes;
  return counted->free(x, mem, bytes, ptr);
}

static double Best(const char *name)
{
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(known); k++) {
    if (!strcmp(known[k].name, name)) return known[k].best;
  }
  return 0;
}

/* unknowns to a point; 1: not known */
static PetscInt BlockSize(const char *name)
{
  return strstr(name, "lattice") || strstr(name, "elasticity") || strstr(name, "scattered") ? 3 : 1;
}

/* the method of "auto/bs", and the size that it is given; 0: there is none */
static PetscInt Given(const char *asked, const char *name, char method[32])
{
  char *end;

  (void)PetscStrncpy(method, asked, 32);
  end = strstr(method, "/bs");
  if (!end) return 1;
  *end = 0;
  return BlockSize(name) > 1 ? BlockSize(name) : 0;
}

static PetscErrorCode Begin(HybSpGEMM *mm, const char *asked, const char *name)
{
  char           method[32];
  const PetscInt bs = Given(asked, name, method);

  PetscFunctionBegin;
  PetscCall(HybSpGEMMInit(mm, &dev, method, 0));
  mm->blocksize = bs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

/* entries to a tile of 8 x 8 that has any: what method "tile" lives on */
static double TileFill(const HybCSR *A)
{
  PetscInt  *seen  = (PetscInt *)calloc((size_t)A->n / 8 + 1, sizeof(PetscInt));
  PetscCount tiles = 0;

  for (PetscInt r = 0; seen && r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      if (seen[A->j[k] / 8] == r / 8 + 1) continue;
      seen[A->j[k] / 8] = r / 8 + 1;
      tiles++;
    }
  }
  free(seen);
  return (double)A->nnz / PetscMax(1., (double)tiles);
}

/* compares D on the device with the host's H, by pieces */
static PetscErrorCode Compare(const HybCSR *D, const HybCSR *H, char text[], size_t length, PetscBool *same)
{
  const size_t piece = (size_t)1 << 26;
  void        *buffer;

  PetscFunctionBegin;
  *same = PETSC_TRUE;
  snprintf(text, length, "same bits as the host");
  if (D->nnz != H->nnz) {
    snprintf(text, length, "%lld nonzeros, expected %lld", (long long)D->nnz, (long long)H->nnz);
    *same = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  buffer = malloc(piece);
  PetscCheck(buffer, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory to compare results");
  for (int which = 0; which < 3 && *same; which++) {
    const char *d      = which == 0 ? (const char *)D->i : which == 1 ? (const char *)D->j
                                                                      : (const char *)D->a,
               *h      = which == 0 ? (const char *)H->i : which == 1 ? (const char *)H->j
                                                                      : (const char *)H->a;
    const size_t bytes = which == 0 ? ((size_t)D->m + 1) * sizeof(PetscInt) : (size_t)D->nnz * (which == 1 ? sizeof(PetscInt) : sizeof(HybScalar));

    for (size_t at = 0; at < bytes && *same; at += piece) {
      const size_t n = PetscMin(piece, bytes - at);

      PetscCall(dev.backend->copy(&dev, buffer, d + at, n, HYB_COPY_DEVICE_TO_HOST));
      if (memcmp(buffer, h + at, n)) {
        PetscBool close = PETSC_FALSE;

        /* a method that splits rows adds the parts as wholes: other roundings, no more */
        if (which == 2) {
          const HybScalar *x = (const HybScalar *)buffer, *y = (const HybScalar *)(h + at);

          close = PETSC_TRUE;
          for (size_t k = 0; k < n / sizeof(HybScalar); k++) {
            if (!(PetscAbsScalar(x[k] - y[k]) <= 1e-11 * (1 + PetscAbsScalar(y[k])))) close = PETSC_FALSE;
          }
        }
        if (close) {
          snprintf(text, length, "same pattern, values to rounding");
          continue;
        }
        size_t       k    = 0;
        const size_t size = which < 2 ? sizeof(PetscInt) : sizeof(HybScalar);

        while (!memcmp((char *)buffer + k * size, h + at + k * size, size)) k++;
        if (which < 2)
          snprintf(text, length, "%s[%zu] is %lld, expected %lld", which ? "j" : "i", at / size + k, (long long)((PetscInt *)buffer)[k], (long long)((const PetscInt *)(h + at))[k]);
        else
          snprintf(text, length, "a[%zu] is %.17g, expected %.17g", at / size + k, (double)PetscRealPart(((HybScalar *)buffer)[k]), (double)PetscRealPart(((const HybScalar *)(h + at))[k]));
        *same = PETSC_FALSE;
      }
    }
  }
  free(buffer);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a fused Galerkin method is none of plain products, nor is one whose block size the matrix has not */
static PetscBool Multiplies(const char *asked, const char *matrix)
{
  char name[32];

  if (!Given(asked, matrix, name)) return PETSC_FALSE;
  for (const HybSpGEMMMethod *const *m = dev.backend->spgemm; m && *m; m++) {
    if (!strcmp(name, (*m)->name)) return PETSC_TRUE;
  }
  for (const struct _HybPtAPMethod *const *m = dev.backend->ptap; m && *m; m++) {
    if (!strcmp(name, (*m)->name)) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* one more product, whose kernels are listed */
static PetscErrorCode Profiled(const char *name, const char *method, const HybCSR *A, const HybCSR *B)
{
  HybSpGEMM mm;
  HybCSR    C;
  double    t;
  HybArena  out = HybArenaOn(&dev);

  PetscFunctionBegin;
  PetscCall(Now(&t));
  ProfileBegin();
  PetscCall(Begin(&mm, method, name));
  PetscCall(HybSpGEMMSymbolic(&mm, A, B, &out, &C));
  ProfileEnd(name, "symbolic");
  if (!C.a) PetscCall(HybArenaAlloc(&out, dev.result, C.nnz, sizeof(HybScalar), &C.a));
  PetscCall(Now(&t));
  ProfileBegin();
  PetscCall(HybSpGEMMNumeric(&mm, A, B, &C));
  ProfileEnd(name, "numeric");
  PetscCall(HybSpGEMMDestroy(&mm));
  PetscCall(HybArenaReset(&out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#include "bench_cusparseways.h"

/* seconds of a numeric phase */
static PetscErrorCode Repeat(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C, double *seconds)
{
  double t0 = 0, t1 = 0;

  PetscFunctionBegin;
  PetscCall(Now(&t0));
  PetscCall(HybSpGEMMNumeric(mm, A, B, C));
  PetscCall(Now(&t1));
  *seconds = t1 - t0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(const char *name, const HybCSR *A, const HybCSR *B)
{
  const double fill = TileFill(A);
  HybCSR       DA, DB, DC, H;

  PetscFunctionBegin;
  memset(&H, 0, sizeof(H));
  if (check) PetscCall(HostProduct(A, B, &H));
  PetscCall(Upload(A, &DA));
  if (A == B)
    DB = DA;
  else
    PetscCall(Upload(B, &DB));
  for (PetscInt q = 0; q < nmethods; q++) {
    double         first[64], symbolic[64], repeated[64], planned[64], again[64], t0 = 0, t1 = 0, t2 = 0, best = Best(name);
    HybArena       out;
    HybSpGEMM      mm;
    char           text[256] = "not checked";
    size_t         peak = 0, withplan = 0;
    PetscBool      same     = PETSC_TRUE;
    PetscErrorCode ierr     = PETSC_SUCCESS;
    double         products = 0, nnz = 0;
    const char    *ran = "";

    if (!Multiplies(methods[q], name)) continue;
    for (PetscInt k = 0; k < repeat + 1; k++) {
      const PetscInt s      = PetscMax(0, k - 1); /* the first time warms the pool */
      const size_t   before = heldnow;

      out      = HybArenaOn(&dev);
      heldpeak = heldnow;
      PetscCall(Now(&t0));
      PetscCall(Begin(&mm, methods[q], name));
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = HybSpGEMMSymbolic(&mm, &DA, &DB, &out, &DC);
      PetscCall(PetscPopErrorHandler());
      if (ierr) {
        printf("%-20s %-9s error %d\n", name, methods[q], (int)ierr);
        PetscCall(HybSpGEMMDestroy(&mm));
        PetscCall(HybArenaReset(&out));
        break;
      }
      PetscCall(Now(&t1));
      symbolic[s] = t1 - t0;
      if (!DC.a) {
        PetscCall(HybArenaAlloc(&out, dev.result, DC.nnz, sizeof(HybScalar), &DC.a));
        PetscCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC));
        PetscCall(Now(&t1));
      }
      first[s] = t1 - t0;
      peak     = heldpeak - before;
      products = (double)mm.stats.products;
      nnz      = (double)DC.nnz;
      ran      = mm.method->name;
      if (!k && check) {
        PetscCall(Compare(&DC, &H, text, sizeof(text), &same));
        for (int turn = 0; turn < 3 && same; turn++) {
          PetscCall(dev.backend->zero(&dev, DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
          PetscCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC));
          PetscCall(Compare(&DC, &H, text, sizeof(text), &same));
        }
        if (!same) wrong++;
        for (PetscInt c = 0; c < mm.counters.n; c++) {
          if (mm.counters.value[c]) printf("#   %s: %s %lld\n", methods[q], mm.counters.name[c], (long long)mm.counters.value[c]);
        }
      }
      PetscCall(Repeat(&mm, &DA, &DB, &DC, &repeated[s]));
      PetscCall(Repeat(&mm, &DA, &DB, &DC, &planned[s]));
      PetscCall(Repeat(&mm, &DA, &DB, &DC, &again[s]));
      withplan = heldpeak - before;
      PetscCall(Now(&t2));
      PetscCall(HybSpGEMMDestroy(&mm));
      PetscCall(HybArenaReset(&out));
      PetscCall(Now(&t1));
      first[s] += t1 - t2;
    }
    if (ierr) continue;
    if (profile) PetscCall(Profiled(name, methods[q], &DA, &DB));
    {
      const PetscInt n = PetscMax(1, repeat);
      const double   f = Median(first, n) * 1e3, s = Median(symbolic, n) * 1e3, r = Median(repeated, n) * 1e3, p = Median(planned, n) * 1e3, a = Median(again, n) * 1e3;
      const double   m = (double)withplan / (12 * PetscMax(1., nnz));

      printf("#   %s: repeated without a plan %.3f, with its making %.3f, memory then %.2f\n", methods[q], r, p, m);
      printf("%-20s %-7s %-7s %9.3f %9.3f %9.3f %8.1f %8.2f %7.2f %7.2f  %s\n", name, methods[q], ran, f, s, a, 2e-6 * products / f, best, best > 0 ? f / best : 0., (double)peak / (12 * PetscMax(1., nnz)), same ? text : "WRONG:");
      if (!same) printf("    %s\n", text);
      if (tsv) fprintf(tsv, "%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%.0f\t%.0f\t%.2f\t%d\t%.2f\t%.4f\t%.4f\t%.2f\n", name, methods[q], ran, f, s, a, products, nnz, best, (int)same, fill, r, p, m);
      if (best > 0 && q == 0) {
        logratio += log(f / best);
        nratio++;
      }
      fflush(stdout);
    }
  }
#if defined(HAVE_CUSPARSE)
  PetscCall(CusparseWays(name, A, B, &DA, &DB, check ? &H : NULL));
#endif
  PetscCall(HybArenaReset(&keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Wanted(const char *name)
{
  char list[1024], *p, *rest = list;

  if (!only[0]) return PETSC_TRUE;
  strncpy(list, only, sizeof(list) - 1);
  list[sizeof(list) - 1] = 0;
  while ((p = strsep(&rest, ","))) {
    if (*p && strstr(name, p)) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

static PetscErrorCode Squared(const char *name, int points, PetscInt nx, PetscInt ny, PetscInt nz)
{
  HybCSR A;

  PetscFunctionBegin;
  if (!Wanted(name)) PetscFunctionReturn(PETSC_SUCCESS);
  if (points)
    PetscCall(Stencil(points, PetscMax(3, nx / scale), PetscMax(3, ny / scale), nz > 1 ? PetscMax(3, nz / scale) : 1, &A));
  else
    PetscCall(Lattice(PetscMax(3, nx / scale), &A));
  PetscCall(Product(name, &A, &A));
  PetscCall(HybArenaReset(&hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* three unknowns a point */
static PetscErrorCode Blocks(const char *name, PetscInt n, PetscInt window)
{
  HybCSR A;

  PetscFunctionBegin;
  if (!Wanted(name)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Elasticity(PetscMax(3, n / scale), window, &A));
  PetscCall(Product(name, &A, &A));
  PetscCall(HybArenaReset(&hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only this one: a stencil of several unknowns to a point, so with blocks on few diagonals */
static PetscErrorCode Unknowns(int points, PetscInt n, PetscInt bs)
{
  const PetscInt d = points == 5 || points == 9 ? 2 : 3;
  char           name[64];
  HybCSR         S, A;
  PetscCount     nnz = 0;

  PetscFunctionBegin;
  snprintf(name, sizeof(name), "%d-pt %d^%d x%d", points, (int)n, (int)d, (int)bs);
  PetscCall(Stencil(points, n, n, d == 2 ? 1 : n, &S));
  PetscCall(HostCSR(bs * S.m, bs * S.m, bs * bs * S.nnz, &A));
  for (PetscInt r = 0; r < A.m; r++) {
    A.i[r] = (PetscInt)nnz;
    for (PetscInt k = S.i[r / bs]; k < S.i[r / bs + 1]; k++) {
      for (PetscInt q = 0; q < bs; q++, nnz++) {
        A.j[nnz] = bs * S.j[k] + q;
        A.a[nnz] = Value(nnz);
      }
    }
  }
  A.i[A.m] = (PetscInt)nnz;
  PetscCall(Product(name, &A, &A));
  PetscCall(HybArenaReset(&hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = P^T A P */
static PetscErrorCode TripleProduct(const char *name, const HybCSR *A, const HybCSR *P)
{
  HybCSR     DA, DP, DC, H;
  HybProduct product;

  PetscFunctionBegin;
  memset(&H, 0, sizeof(H));
  if (check) {
    PetscCall(HybProductCreate(&host, HYB_PRODUCT_PTAP, "auto", 0, &product));
    PetscCall(HybProductSymbolic(product, A, P, NULL, &hostkeep, &H));
    PetscCall(HybProductNumeric(product, A, P, NULL, &H));
    PetscCall(HybProductDestroy(&product));
  }
  PetscCall(Upload(A, &DA));
  PetscCall(Upload(P, &DP));
  for (PetscInt q = 0; q < nmethods; q++) {
    double         first[64], symbolic[64], again[64], t0 = 0, t1 = 0, t2 = 0;
    HybArena       out;
    char           text[256] = "not checked", stages[2048] = "";
    const char    *ran   = "";
    size_t         peak  = 0;
    PetscBool      same  = PETSC_TRUE;
    PetscErrorCode ierr  = PETSC_SUCCESS;
    PetscLogDouble flops = 0;
    char           method[32];
    const PetscInt bs = Given(methods[q], name, method);

    if (!bs) continue;
    for (PetscInt k = 0; k < repeat + 1 + (profile ? 1 : 0); k++) {
      const PetscInt s      = PetscMax(0, k - 1);
      const size_t   before = heldnow;
      size_t         bytes, most;

      out      = HybArenaOn(&dev);
      heldpeak = heldnow;
      PetscCall(Now(&t0));
      if (k > repeat) ProfileBegin();
      PetscCall(HybProductCreate(&dev, HYB_PRODUCT_PTAP, method, 0, &product));
      HybProductSetBlockSize(product, bs);
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = HybProductSymbolic(product, &DA, &DP, NULL, &out, &DC);
      PetscCall(PetscPopErrorHandler());
      if (ierr) {
        printf("%-20s %-9s error %d\n", name, methods[q], (int)ierr);
        profiling = PETSC_FALSE;
        PetscCall(HybProductDestroy(&product));
        PetscCall(HybArenaReset(&out));
        break;
      }
      if (k > repeat) ProfileEnd(name, "symbolic");
      PetscCall(Now(&t1));
      symbolic[s] = t1 - t0;
      if (k > repeat) ProfileBegin();
      PetscCall(HybProductNumeric(product, &DA, &DP, NULL, &DC));
      if (k > repeat) ProfileEnd(name, "numeric");
      PetscCall(Now(&t1));
      first[s] = t1 - t0;
      peak     = heldpeak - before;
      HybProductGetInfo(product, &flops, &bytes, &most);
      ran = HybProductGetMethod(product);
      if (!k) PetscCall(HybProductDescribe(product, stages, sizeof(stages)));
      if (!k && check) {
        PetscCall(Compare(&DC, &H, text, sizeof(text), &same));
        if (same) {
          PetscCall(dev.backend->zero(&dev, DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
          PetscCall(HybProductNumeric(product, &DA, &DP, NULL, &DC));
          PetscCall(Compare(&DC, &H, text, sizeof(text), &same));
        }
        if (!same) wrong++;
      }
      PetscCall(Now(&t1));
      PetscCall(HybProductNumeric(product, &DA, &DP, NULL, &DC));
      PetscCall(Now(&t2));
      again[s] = t2 - t1;
      PetscCall(HybProductDestroy(&product));
      PetscCall(HybArenaReset(&out));
      PetscCall(Now(&t1));
      first[s] += t1 - t2;
    }
    if (ierr) continue;
    {
      const PetscInt n = PetscMax(1, repeat);
      const double   f = Median(first, n) * 1e3, s = Median(symbolic, n) * 1e3, a = Median(again, n) * 1e3;

      printf("#   %s\n", stages);
      printf("%-20s %-7s %-7s %9.3f %9.3f %9.3f %8.1f %8s %7s %7.2f  %s\n", name, methods[q], ran, f, s, a, 1e-6 * flops / a, "", "", (double)peak / (12 * PetscMax(1., (double)DC.nnz)), same ? text : "WRONG:");
      if (!same) printf("    %s\n", text);
      if (tsv) fprintf(tsv, "%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%.0f\t%lld\t0\t%d\n", name, methods[q], ran, f, s, a, flops / 2, (long long)DC.nnz, (int)same);
      fflush(stdout);
    }
  }
  PetscCall(HybArenaReset(&keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Aggregation(const char *name, int points, PetscInt nx)
{
  HybCSR   A, T, P;
  char     full[64];
  PetscInt n = PetscMax(3, nx / scale);

  PetscFunctionBegin;
  for (int boxes = 1; boxes >= 0; boxes--) {
    snprintf(full, sizeof(full), "%s %s PtAP", name, boxes ? "boxes" : "mis");
    if (!Wanted(full)) continue;
    PetscCall(Stencil(points, n, n, n, &A));
    PetscCall(Tentative(&A, n, (PetscBool)boxes, &T));
    PetscCall(HostProduct(&A, &T, &P));
    PetscCall(TripleProduct(full, &A, &P));
    PetscCall(HybArenaReset(&hostkeep));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostTranspose(const HybCSR *P, HybCSR *R)
{
  PetscInt *perm;
  HybArena  work = HybArenaOn(&host);

  PetscFunctionBegin;
  PetscCall(host.backend->csr->transposesymbolic(&host, &hostkeep, &work, P, R, &perm));
  R->m   = P->n;
  R->n   = P->m;
  R->nnz = P->nnz;
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, R->nnz, sizeof(HybScalar), &R->a));
  PetscCall(host.backend->csr->gather(&host, R->nnz, perm, PETSC_FALSE, P->a, R->a));
  PetscCall(HybArenaReset(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* smoothed aggregation over boxes of 3^3: P = A*T with the tentative T, R = P^T; points 81: elasticity, A of blocks
   3 x 3 and P of 3 x 6 */
static PetscErrorCode Galerkin(const char *name, int points, PetscInt nx)
{
  char     ap[64], ra[64], ptap[64];
  HybCSR   A, S, T, P, R;
  PetscInt n = PetscMax(3, nx / scale);

  PetscFunctionBegin;
  snprintf(ap, sizeof(ap), "%s A*P", name);
  snprintf(ra, sizeof(ra), "%s R*A", name);
  snprintf(ptap, sizeof(ptap), "%s PtAP", name);
  if (!Wanted(ap) && !Wanted(ra) && !(points == 81 && Wanted(ptap))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Stencil(points == 81 ? 27 : points, n, n, n, &A));
  PetscCall(Tentative(&A, n, PETSC_TRUE, &T));
  if (points == 81) {
    S = T;
    PetscCall(Elasticity(n, 1, &A));
    PetscCall(Modes(&S, &T));
  }
  PetscCall(HostProduct(&A, &T, &P));
  if (Wanted(ap)) PetscCall(Product(ap, &A, &P));
  if (Wanted(ra)) {
    PetscCall(HostTranspose(&P, &R));
    PetscCall(Product(ra, &R, &A));
  }
  if (points == 81 && Wanted(ptap)) PetscCall(TripleProduct(ptap, &A, &P));
  PetscCall(HybArenaReset(&hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromFile(const char *name)
{
  HybCSR    A;
  PetscBool found = PETSC_FALSE;

  PetscFunctionBegin;
  if (!Wanted(name)) PetscFunctionReturn(PETSC_SUCCESS);
  if (matrices[0]) PetscCall(ReadMatrixMarket(name, &A, &found));
  if (!found)
    printf("%-20s skipped: not in %s\n", name, matrices[0] ? matrices : "any folder (-matrices DIR)");
  else
    PetscCall(Product(name, &A, &A));
  PetscCall(HybArenaReset(&hostkeep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Option(const char option[], char value[], size_t length, PetscBool *set)
{
  return PetscOptionsGetString(NULL, NULL, option, value, length, set);
}

static PetscErrorCode Run(void)
{
  static const char *const files[]                     = {"cnr-2000", "uk-2007-05_100000", "email-Enron", "circuitscape_1m", "Cornell5", "m133-b3", "cage11", "hand_elasticity", "wiki-Vote", "rail_79841"};
  char                     backend[PETSC_MAX_PATH_LEN] = "host", message[1024] = "", list[256] = "auto", cusparse[4096] = "none", table[PETSC_MAX_PATH_LEN] = "", *p, *rest = list;
  PetscInt                 stencil[3] = {0, 0, 0}, nstencil = 3;
  PetscBool                set;
  HybServices              services;

  PetscFunctionBegin;
  PetscCall(HybTuningRead(Option));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-methods", list, sizeof(list), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-matrices", matrices, sizeof(matrices), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-cusparse", cusparse, sizeof(cusparse), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-tsv", table, sizeof(table), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-scale", &scale, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeat", &repeat, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-check", &check, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-profile", &profile, NULL));
  PetscCheck(repeat >= 0 && repeat < 64 && scale > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-repeat must be within 0..63, -scale positive");
  while ((p = strsep(&rest, ",")) && nmethods < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(methods)) PetscCall(PetscStrncpy(methods[nmethods++], p, sizeof(methods[0])));
  memset(&host, 0, sizeof(host));
  host.backend = &HybBackendHost;
  host.result  = HYB_MEM_HOST;
  dev          = host;
  if (strcmp(backend, "host")) {
    memset(&services, 0, sizeof(services));
    services.size             = sizeof(services);
    services.device           = -1;
    services.managed_fraction = 0.5;
    services.processes        = 1;
    if (profile) services.fault = Charge;
    PetscCall(HybBackendLoad(backend, &services, &dev.backend, message, sizeof(message)));
    PetscCheck(dev.backend, PETSC_COMM_SELF, PETSC_ERR_LIB, "No backend from %s: %s", backend, message);
    dev.result = HYB_MEM_DEVICE;
  }
  counted        = dev.backend;
  counting       = *counted;
  counting.alloc = CountingAlloc;
  counting.free  = CountingFree;
  dev.backend    = &counting;
  if (table[0]) tsv = fopen(table, "a");
  keep     = HybArenaOn(&dev);
  hostkeep = HybArenaOn(&host);
  PetscCall(CusparseOpenAll(cusparse));
  printf("# backend %s, medians of %d, ms; first includes all allocations and frees\n", dev.backend->name, (int)repeat);
  printf("%-20s %-7s %-7s %9s %9s %9s %8s %8s %7s %7s\n", "# matrix", "method", "ran", "first", "symbolic", "again", "GFLOP/s", "best", "ratio", "memory");
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-stencil", stencil, &nstencil, &set));
  PetscCheck(!set || nstencil == 3, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-stencil wants three numbers: points, their number along an edge, unknowns");
  if (set) {
    PetscCall(Unknowns((int)stencil[0], stencil[1], stencil[2]));
    (void)PetscStrncpy(only, "nothing else", sizeof(only));
  }
  PetscCall(Squared("7-pt 128^3", 7, 128, 128, 128));
  PetscCall(Squared("27-pt 80^3", 27, 80, 80, 80));
  PetscCall(Squared("9-pt 1000^2", 9, 1000, 1000, 1));
  PetscCall(Squared("5-pt 1500^2", 5, 1500, 1500, 1));
  PetscCall(Squared("lattice 8^4", 0, 8, 8, 8));
  PetscCall(Blocks("elasticity 40^3", 40, 1));
  PetscCall(Blocks("scattered 40^3", 40, 2000));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(files); k++) PetscCall(FromFile(files[k]));
  PetscCall(Galerkin("7-pt 128^3", 7, 128));
  PetscCall(Galerkin("27-pt 96^3", 27, 96));
  PetscCall(Galerkin("elasticity 40^3", 81, 40));
  PetscCall(Aggregation("7-pt 200^3", 7, 200));
  PetscCall(Aggregation("27-pt 96^3", 27, 96));
  if (nratio) printf("# geometric mean of first/best over %d products, method %s: %.3f\n", (int)nratio, methods[0], exp(logratio / nratio));
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

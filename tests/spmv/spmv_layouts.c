/*
  SpMV methods of a device in every layout that their options can ask for, not only in the one that they choose for a
  matrix: threads, lanes, blocks and runs of the row stream, ways, lanes and batches of rowgroup, threads, items, blocks
  and repair of segsum. On matrices with tiles that do not fit into a stage of the stream, more tiles than blocks, rows
  about the bounds of each bin, rows of several pieces, empty ones, blocks that stand together and others; arrays that
  are aligned and others. y apart from z and in its place, twice.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybspmv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM "rowstream_"
#define GROUP  "rowgroup_"
#define SEGSUM "segsum_"
#define BLOCK  "block_"
static const struct {
  const char *method, *option[4], *value[4];
} layouts[] = {
  {"rowgroup", {GROUP "way", STREAM "lanes", STREAM "threads", STREAM "blocks"},   {"stream", "1", "64", "1"}  },
  {"rowgroup", {GROUP "way", STREAM "lanes", STREAM "threads", STREAM "blocks"},   {"stream", "2", "128", "1"} },
  {"rowgroup", {GROUP "way", STREAM "lanes", STREAM "threads", STREAM "blocks"},   {"stream", "4", "64", "2"}  },
  {"rowgroup", {GROUP "way", STREAM "lanes", STREAM "threads", STREAM "blocks"},   {"stream", "8", "128", "1"} },
  {"rowgroup", {GROUP "way", STREAM "lanes", STREAM "threads", STREAM "blocks"},   {"stream", "16", "256", "1"}},
  {"rowgroup", {GROUP "way", STREAM "lanes"},                                      {"stream", "1"}             },
  {"rowgroup", {GROUP "way", GROUP "near", STREAM "threads", STREAM "blocks"},     {"stream", "no", "64", "1"} },
  {"rowgroup", {GROUP "way", GROUP "lanes", GROUP "batch"},                        {"direct", "1", "4"}        },
  {"rowgroup", {GROUP "way", GROUP "lanes", GROUP "batch"},                        {"direct", "2", "8"}        },
  {"rowgroup", {GROUP "way", GROUP "lanes", GROUP "batch"},                        {"direct", "4", "4"}        },
  {"rowgroup", {GROUP "way", GROUP "lanes", GROUP "batch"},                        {"direct", "8", "8"}        },
  {"rowgroup", {GROUP "way", GROUP "lanes", GROUP "batch"},                        {"direct", "16", "4"}       },
  {"rowgroup", {GROUP "way", GROUP "lanes", GROUP "batch"},                        {"direct", "32", "8"}       },
  {"rowgroup", {GROUP "way", GROUP "batch"},                                       {"bins", "4"}               },
  {"rowgroup", {GROUP "way", GROUP "batch"},                                       {"bins", "8"}               },
  {"shape",    {STREAM "lanes", STREAM "threads", STREAM "blocks"},                {"1", "64", "1"}            },
  {"shape",    {STREAM "lanes", STREAM "threads", STREAM "blocks"},                {"2", "128", "1"}           },
  {"shape",    {STREAM "lanes", STREAM "threads", STREAM "blocks"},                {"4", "64", "2"}            },
  {"shape",    {STREAM "lanes", STREAM "threads", STREAM "blocks"},                {"8", "64", "1"}            },
  {"shape",    {STREAM "lanes", STREAM "threads", STREAM "blocks"},                {"16", "256", "1"}          },
  {"block",    {STREAM "lanes", STREAM "threads", STREAM "blocks", BLOCK "lanes"}, {"1", "64", "1", "1"}       },
  {"block",    {STREAM "lanes", STREAM "threads", STREAM "blocks", BLOCK "lanes"}, {"2", "64", "2", "1"}       },
  {"block",    {STREAM "lanes", STREAM "threads", STREAM "blocks", BLOCK "lanes"}, {"4", "128", "1", "1"}      },
  {"block",    {STREAM "lanes", STREAM "threads", STREAM "blocks", BLOCK "lanes"}, {"8", "64", "1", "1"}       },
  {"block",    {STREAM "lanes", STREAM "threads", STREAM "blocks", BLOCK "lanes"}, {"16", "128", "1", "1"}     },
  {"rowgroup", {GROUP "way", STREAM "threads", STREAM "blocks", STREAM "run"},     {"stream", "64", "2", "3"}  },
  {"shape",    {STREAM "threads", STREAM "blocks", STREAM "run"},                  {"64", "1", "0"}            },
  {"shape",    {STREAM "threads", STREAM "blocks", STREAM "run"},                  {"64", "2", "3"}            },
  {"block",    {STREAM "threads", STREAM "lanes", STREAM "run", BLOCK "lanes"},    {"64", "8", "0", "1"}       },
  {"block",    {STREAM "blocks", STREAM "lanes", STREAM "run", BLOCK "lanes"},     {"1", "16", "2", "1"}       },
  {"block",    {STREAM "threads", STREAM "run", BLOCK "lanes"},                    {"64", "0", "1"}            },
  {"block",    {BLOCK "lanes"},                                                    {"0"}                       },
  {"block",    {BLOCK "lanes"},                                                    {"32"}                      },
  {"block",    {BLOCK "lanes"},                                                    {"128"}                     },
  {"block",    {BLOCK "lanes"},                                                    {"512"}                     },
  {"segsum",   {SEGSUM "repair"},                                                  {"cpu"}                     },
  {"segsum",   {SEGSUM "threads", SEGSUM "items", SEGSUM "blocks"},                {"64", "3", "1"}            },
  {"segsum",   {SEGSUM "threads", SEGSUM "items", SEGSUM "blocks"},                {"256", "5", "1"}           },
  {"segsum",   {SEGSUM "threads", SEGSUM "items", SEGSUM "blocks"},                {"64", "7", "2"}            },
  {"segsum",   {NULL},                                                             {NULL}                      }
};

static PetscInt scattered; /* times that block had its threads go along entries */
static PetscInt direct;    /* times that it chose to stream no rows */

/* what makes the method itself was done: blocks share a column, rows go the way that was asked for */
static void CheckCounters(const HybSpMV *mv, const RefMat *A, PetscInt bs, const char *const value[])
{
  const char      *method = mv->method->name;
  const PetscCount size = HybCountersGet(&mv->counters, "block size"), tile = HybCountersGet(&mv->counters, "rows a tile"), lanes = HybCountersGet(&mv->counters, "lanes a row");

  if (!strcmp(method, "block")) HybTestCheck(size > 1 && (bs == 1 || size == bs) && HybCountersGet(&mv->counters, "blocks") * size * size == A->csr.nnz, "%td blocks of size %td", HybCountersGet(&mv->counters, "blocks"), size);
  if (!strcmp(method, "shape")) HybTestCheck(HybCountersGet(&mv->counters, "classes") > 0 && tile > 0, "%td classes, %td rows a tile", HybCountersGet(&mv->counters, "classes"), tile);
  if (strcmp(method, "rowgroup")) return;
  if (strcmp(value[0], "stream")) {
    const PetscCount bytes = HybCountersGet(&mv->counters, "bytes a column"), want = A->csr.nnz < 65536 ? (PetscCount)sizeof(PetscInt) : A->csr.n <= 65536 ? 2
                                                                                                                                                           : 4;

    HybTestCheck(bytes == want, "%td bytes a column, not %td", bytes, want);
  }
  if (!strcmp(value[0], "bins"))
    HybTestCheck(HybCountersGet(&mv->counters, "binned rows") == A->csr.m, "%td rows in bins", HybCountersGet(&mv->counters, "binned rows"));
  else if (!strcmp(value[0], "direct"))
    HybTestCheck(lanes == atoi(value[1]) && !tile, "%td lanes a row, %td rows a tile", lanes, tile);
  else {
    const PetscCount bytes = HybCountersGet(&mv->counters, "bytes a column"), most = strcmp(value[1], "no") && A->csr.nnz >= 65536 ? 4 : (PetscCount)sizeof(PetscInt);

    HybTestCheck(tile > 0 && bytes >= (strcmp(value[1], "no") ? 2 : (PetscCount)sizeof(PetscInt)) && bytes <= most, "%td rows a tile, %td bytes a column", tile, bytes);
  }
}

/* one matrix in all layouts; taken[k]: layouts[k] had a matrix that its method did not decline; shift: so many entries
   lie before its arrays, which then are not aligned */
static PetscErrorCode TestArrays(const char *name, RefMat *A, PetscInt bs, PetscInt shift, PetscBool taken[])
{
  const HybExec *exec = HybTestExec();
  const PetscInt m = A->csr.m, n = A->csr.n;
  PetscScalar   *hx = HybTestRandomVector(n), *hy = HybTestRandomVector(m), *hz = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *first = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *garbage = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  PetscReal     *mag   = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  PetscCount    *terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount));
  HybCSR         there;
  PetscScalar   *x;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) garbage[r] = 7e77;
  PetscCall(HybTestUpload(&arena, &A->csr, &there));
  if (shift) {
    PetscInt    *j = (PetscInt *)RefAlloc(A->csr.nnz + shift, sizeof(PetscInt));
    PetscScalar *a = (PetscScalar *)RefAlloc(A->csr.nnz + shift, sizeof(PetscScalar));

    for (PetscCount k = 0; k < A->csr.nnz; k++) {
      j[k + shift] = A->csr.j[k];
      a[k + shift] = A->csr.a[k];
    }
    PetscCall(HybTestUploadArray(&arena, A->csr.nnz + shift, sizeof(PetscInt), j, &there.j));
    PetscCall(HybTestUploadArray(&arena, A->csr.nnz + shift, sizeof(PetscScalar), a, &there.a));
    there.j += shift;
    there.a += shift;
    RefFree(j, a);
  }
  PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscScalar), hx, &x));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(layouts); k++) {
    char           text[256] = "";
    PetscBool      known     = PETSC_FALSE;
    PetscErrorCode ierr;
    HybSpMV        mv;

    for (const HybSpMVMethod *const *t = exec->backend->spmv; *t; t++) known = (PetscBool)(known || !strcmp((*t)->name, layouts[k].method));
    if (!known) continue;
    for (int o = 0; o < 4 && layouts[k].option[o]; o++) {
      PetscCall(HybTuningSet(layouts[k].option[o], layouts[k].value[o]));
      snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s %s", layouts[k].option[o], layouts[k].value[o]);
    }
    HybTestBegin("%s%s: %s%s", layouts[k].method, text, name, shift ? ", arrays that are not aligned" : "");
    PetscCall(HybSpMVInit(&mv, exec, layouts[k].method, bs));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybSpMVSetUp(&mv, &there);
    PetscCall(PetscPopErrorHandler());
    if (HybTestCheck(!ierr || (exec->backend->device && ierr == PETSC_ERR_SUP), "error %d", (int)ierr) && !ierr) {
      taken[k] = PETSC_TRUE;
      if (HybCountersGet(&mv.counters, "threads along entries") == 1) scattered++;
      if (HybCountersGet(&mv.counters, "threads a block row") > 0 && !strcmp(layouts[k].value[0], "0")) direct++;
      if (exec->backend->device) CheckCounters(&mv, A, bs, layouts[k].value);
      for (int mode = 0; mode < 3; mode++) {
        RefSpMV(A, hx, mode == HYB_SPMV_RESIDUAL ? -1 : 1, mode == HYB_SPMV_SET ? NULL : hy, hz, mag, terms);
        for (int inplace = 0; inplace < 2; inplace++) {
          PetscScalar *y, *z;

          PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hy, &y));
          z = y;
          if (!inplace) PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), garbage, &z));
          if (!HybTestCall(HybSpMVApply(&mv, &there, x, (HybSpMVMode)mode, mode == HYB_SPMV_SET ? NULL : y, z))) break;
          if (!HybTestSameScalars(m, z, hz, mag, terms, 2)) break;
          if (!inplace) {
            PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), z, first));
            HybTestSameBits(m, sizeof(PetscScalar), y, hy); /* y is not touched */
            PetscCall(HybArenaFree(&arena, &z));
          } else
            HybTestSameBits(m, sizeof(PetscScalar), z, first);
          PetscCall(HybArenaFree(&arena, &y));
        }
      }
    }
    HybTestCall(HybSpMVDestroy(&mv));
    for (int o = 0; o < 4 && layouts[k].option[o]; o++) PetscCall(HybTuningSet(layouts[k].option[o], NULL));
  }
  PetscCall(HybArenaReset(&arena));
  RefFree(hx, hy, hz, first, garbage, mag, terms);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestOne(const char *name, RefMat *A, PetscInt bs, PetscBool taken[])
{
  PetscFunctionBegin;
  PetscCall(TestArrays(name, A, bs, 0, taken)); /* in every part: which layouts came is asked at the end */
  if (HybTestMine()) PetscCall(TestArrays(name, A, bs, 1, taken));
  RefMatDestroy(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of one entry, with bands of wide rows among them: few shapes, but tiles of very different sizes */
static void Bands(PetscInt m, PetscInt wide, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc((PetscCount)m * wide, sizeof(PetscInt)), nnz = 0;

  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    const PetscBool band = (PetscBool)(r >= m / 3 && r < m / 3 + 90);

    if (!band) j[nnz++] = r;
    for (PetscInt c = 0; band && c < wide; c++)
      if (r + 2 * c - wide >= 0 && r + 2 * c - wide < m) j[nnz++] = r + 2 * c - wide;
    i[r + 1] = nnz;
  }
  HybTestMatArrays(m, m, i, j, NULL, A);
  RefFree(i, j);
}

/* rows of 350 entries, the last one of each in the last column */
static void Spread(PetscInt m, PetscInt n, RefMat *A)
{
  const PetscInt length = 350;
  PetscInt      *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc((PetscCount)m * length, sizeof(PetscInt));

  for (PetscInt r = 0; r <= m; r++) i[r] = r * length;
  for (PetscInt k = 0; k < m * length; k++) j[k] = n - 1 - (length - 1 - k % length) * (n / length - (k / length) % 50);
  HybTestMatArrays(m, n, i, j, NULL, A);
  RefFree(i, j);
}

static PetscErrorCode Body(void)
{
  PetscBool taken[PETSC_STATIC_ARRAY_LENGTH(layouts)] = {PETSC_FALSE};
  PetscInt *lengths                                   = (PetscInt *)RefAlloc(2000, sizeof(PetscInt));
  RefMat    A, B;

  PetscFunctionBegin;
  HybTestMatStencil(5, HybTestSize(90, 37), HybTestSize(80, 29), 1, &A);
  PetscCall(TestOne("5-point", &A, 1, taken));
  HybTestMatStencil(27, HybTestSize(12, 7), 6, HybTestSize(9, 5), &A);
  PetscCall(TestOne("27-point", &A, 1, taken));
  for (PetscInt bs = 2; bs < 6; bs++) {
    HybTestMatStencil(7, 6, 5, HybTestSize(20, 6), &B);
    HybTestMatBlock(&B, bs, &A);
    RefMatDestroy(&B);
    PetscCall(TestOne(bs == 2 ? "blocks of 2" : bs == 3 ? "blocks of 3"
                                              : bs == 4 ? "blocks of 4"
                                                        : "blocks of 5",
                      &A, bs, taken));
  }
  /* rows of up to 31 blocks, more entries than the threads of a row have under way together */
  for (PetscInt bs = 2; bs < 9; bs += bs < 6 ? 1 : 2) {
    char name[64];

    HybTestMatRandom(HybTestSize(90, 40), HybTestSize(700, 300), 0, 31, &B);
    HybTestMatBlock(&B, bs, &A);
    RefMatDestroy(&B);
    snprintf(name, sizeof(name), "blocks of %d in no order", (int)bs);
    PetscCall(TestOne(name, &A, bs, taken));
  }
  for (PetscInt bs = 2; bs < 9; bs += bs < 6 ? 1 : 2) { /* rows that are no tile's: of up to 300 blocks, some empty */
    char name[64];

    HybTestMatRandom(HybTestSize(40, 13), HybTestSize(900, 400), 0, HybTestSize(300, 120), &B);
    HybTestMatBlock(&B, bs, &A);
    RefMatDestroy(&B);
    snprintf(name, sizeof(name), "long rows of blocks of %d", (int)bs);
    PetscCall(TestOne(name, &A, bs, taken));
  }
  HybTestBegin("block met x in no order");
  HybTestCheck(!HybTestExec()->backend->device || scattered > 0, "never");
  HybTestBegin("block streamed no rows that are too long for it");
  HybTestCheck(!HybTestExec()->backend->device || direct > 0, "never");
  Bands(HybTestSize(2000, 900), 70, &A);
  PetscCall(TestOne("a band of wide rows among narrow ones", &A, 1, taken));
  Bands(HybTestSize(300, 120), 12, &B);
  HybTestMatBlock(&B, 3, &A);
  RefMatDestroy(&B);
  PetscCall(TestOne("a band of wide block rows among narrow ones", &A, 3, taken));
  /* about the bins' bounds, rows of one, two and three pieces of 4096, empty ones */
  {
    const PetscInt bounds[] = {0, 8, 16, 32, 64, 128, 512, 4096, 8192};
    PetscInt       m        = 0;

    for (size_t b = 0; b < PETSC_STATIC_ARRAY_LENGTH(bounds); b++)
      for (PetscInt d = -1; d < 3; d++) lengths[m++] = PetscMax(0, bounds[b] + d);
    for (PetscInt r = 0; r < 70; r++) lengths[m++] = r % 11; /* most rows short: taken in order */
    HybTestMatLengths(m, 8500, lengths, &A);
    PetscCall(TestOne("row lengths about all bounds", &A, 1, taken));
    for (PetscInt r = 0; r < 70; r++) lengths[m - 70 + r] = 9 + r % 60; /* few rows short: all are listed */
    HybTestMatLengths(m, 8500, lengths, &A);
    PetscCall(TestOne("row lengths about all bounds, few of them short", &A, 1, taken));
  }
  for (PetscInt r = 0; r < 600; r++) lengths[r] = r == 301 ? 900 : r % 4;
  HybTestMatLengths(600, 1000, lengths, &A);
  PetscCall(TestOne("one long row", &A, 1, taken));
  for (PetscInt n = 65535; n <= 65537; n++) { /* 16 bits have 65536 columns */
    Spread(200, n, &A);
    PetscCall(TestOne("as many columns as 16 bits have, or nearly", &A, 1, taken));
  }
  free(lengths);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(layouts) && HybTestExec()->backend->device; k++) {
    HybTestBegin("%s took a matrix in its layout %d", layouts[k].method, (int)k);
    HybTestCheck(taken[k], "none");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

/*
  What a product holds: no more than it says, where C takes most of the memory that there is, and where methods look and
  decline.
*/
#include "spgemmtest.h"
#include <stdint.h>

/* a backend that counts what all arenas of a product hold together */
static HybBackend        counting;
static const HybBackend *counted;
static size_t            heldnow, heldpeak, heldlimit = SIZE_MAX;
static PetscInt          allocated; /* how often */

static PetscErrorCode CountingAlloc(const HybExec *x, HybMem mem, size_t bytes, void **ptr)
{
  PetscErrorCode ierr;

  *ptr = NULL;
  if (mem != HYB_MEM_GROWING && bytes > heldlimit - heldnow) return PETSC_ERR_MEM;
  ierr = counted->alloc(x, mem, bytes, ptr);
  if (!ierr) heldnow += bytes;
  allocated += mem != HYB_MEM_HOST;
  if (heldnow > heldpeak) heldpeak = heldnow;
  return ierr;
}

static PetscErrorCode CountingFree(const HybExec *x, HybMem mem, size_t bytes, void *ptr)
{
  heldnow -= bytes;
  return counted->free(x, mem, bytes, ptr);
}

/* from here on what exec allocates is counted */
static void CountingBegin(HybExec *exec)
{
  counted        = exec->backend;
  counting       = *counted;
  counting.alloc = CountingAlloc;
  counting.free  = CountingFree;
  exec->backend  = &counting;
}

/* what a method holds of its own while it looks at operands that it then declines is given back before the next one
   starts */
static void Declining(void)
{
  HybExec exec = *HybTestExec();
  HybCSR  DA, DC;
  RefMat  A;
  size_t  peak[2];
  char    ran[32] = "";

  HybTestBegin("auto holds no more than the method that it takes");
  if (!exec.backend->device) {
    HybTestSkip("the host's methods decide without memory");
    return;
  }
  CountingBegin(&exec);
  HybTestMatRandom(1100, 1100, 10, 16, &A);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) {
    for (int k = 0; k < 2; k++) {
      HybSpGEMM mm;
      HybArena  result;

      heldnow = heldpeak = peak[k] = 0;
      result                       = HybArenaOn(&exec);
      if (HybTestCall(HybSpGEMMInit(&mm, &exec, k ? "auto" : "hash", 0))) {
        if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DA, &result, &DC))) PetscCallAbort(PETSC_COMM_SELF, PetscStrncpy(ran, mm.method->name, sizeof(ran)));
        HybTestCall(HybSpGEMMDestroy(&mm));
        HybTestCall(HybArenaReset(&result));
        peak[k] = heldpeak;
        HybTestCheck(heldnow == 0, "%zu bytes are left", heldnow);
      }
    }
    HybTestCheck(!strcmp(ran, "hash") && peak[0] > 1100 * 100 * 12 && peak[1] < peak[0] + 4096, "%s holds %zu bytes, hash by name %zu", ran, peak[1], peak[0]);
  }
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A);
}

/* A small product is mostly allocations, launches and waits: by blocks auto has no more of the first than the method by
   name, but one where few diagonals are asked for before */
static void Asking(void)
{
  HybExec exec = *HybTestExec();
  HybCSR  DA, DC;
  RefMat  P, A;

  for (int diagonals = 0; diagonals < 2; diagonals++) {
    PetscInt by[2] = {0, 0};

    HybTestBegin("auto allocates no more often than block by name%s", diagonals ? ", but for diagonals" : "");
    if (!exec.backend->device) {
      HybTestSkip("the host has no such method");
      continue;
    }
    HybTestMatStencil(27, 9, 9, 9, &P);
    HybTestMatBlock(&P, 3, &A);
    HybTestCall(HybTuningSet("diagonal_fewest", diagonals ? "1000" : NULL));
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) {
      for (int k = 0; k < 2; k++) {
        HybExec   counts = exec;
        HybSpGEMM mm;
        HybArena  result;

        CountingBegin(&counts);
        allocated = 0;
        result    = HybArenaOn(&counts);
        if (HybTestCall(HybSpGEMMInit(&mm, &counts, k ? "auto" : "block", 0))) {
          if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DA, &result, &DC))) HybTestCheck(!strcmp(mm.method->name, "block"), "%s ran", mm.method->name);
          by[k] = allocated;
          HybTestCall(HybSpGEMMDestroy(&mm));
          HybTestCall(HybArenaReset(&result));
        }
      }
      HybTestCheck(by[0] > 0 && by[1] <= by[0] + diagonals, "%" PetscInt_FMT " allocations, by name %" PetscInt_FMT, by[1], by[0]);
    }
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&P, &A);
  }
  HybTestCall(HybTuningSet("diagonal_fewest", NULL));
}

/* C takes most of the memory that there is, and all else that the product holds fits beside it: 0.3 of C, arrays over
   rows apart */
static void Bounded(void)
{
  HybExec exec = *HybTestExec();

  if (!exec.backend->device || (!Is("hash") && !Is("shape") && !Is("diagonal"))) return;
  CountingBegin(&exec);
  for (int kind = Is("hash") ? 0 : 1; kind < 2; kind++) {
    HybSpGEMM mm;
    HybArena  result;
    HybCSR    DA, DC;
    RefMat    A, C;

    HybTestBegin("%s: %s whose product takes three quarters of the memory", method->name, kind ? "a stencil" : "long rows");
    if (kind)
      HybTestMatStencil(9, 90, 90, 1, &A);
    else
      HybTestMatRandom(500, 500, 20, 24, &A);
    RefSpGEMM(&A, &A, &C);
    heldnow   = 0;
    heldlimit = (size_t)C.csr.nnz * (sizeof(PetscInt) + sizeof(PetscScalar)) / 10 * 13 + (size_t)A.csr.m * 8 * sizeof(PetscCount) + (kind ? 400000 : 20000);
    result    = HybArenaOn(&exec);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, width))) {
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DA, &result, &DC))) HybTestSameMatrix(&DC, &C, 4);
      HybTestCall(HybSpGEMMDestroy(&mm));
      HybTestCall(HybArenaReset(&result));
    }
    heldlimit = SIZE_MAX;
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A, &C);
  }
}

/* lists of what a row's blocks are: they serve all rows, or as many as there is room for, or none, with the same
   result; and all workspace is given back before C's values are taken */
static void Listed(void)
{
  static const char *const lists[] = {"3", "1", "0"};
  HybExec                  exec    = *HybTestExec();

  if (!exec.backend->device || !Is("hash")) return;
  CountingBegin(&exec);
  for (int kind = 0; kind < 4; kind++) {
    RefMat       A, B, C;
    PetscScalar *expected;

    /* few entries of lists, many, rows that take more than there is room for, one much longer than the others */
    if (kind == 0)
      HybTestMatRandom(700, 700, 20, 24, &A);
    else if (kind == 1)
      HybTestMatRandom(400, 4000, 8, 12, &A);
    else if (kind == 2)
      HybTestMatRandom(300, 300, 2, 12, &A);
    else
      HybTestMatDenseRow(60, 90, 7, 3, &A);
    if (kind == 0)
      RefMatCopy(&A, &B);
    else if (kind == 1)
      HybTestMatRandom(4000, 4000, 8, 12, &B);
    else if (kind == 2)
      HybTestMatRandom(300, 100000, 20, 90, &B);
    else
      HybTestMatPowerLaw(90, HybTestSize(300000, 90000), 900, &B);
    RefSpGEMM(&A, &B, &C);
    expected = RefProductInOrder(&A, &B, &C);
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lists); k++) {
      HybSpGEMM mm;
      HybArena  result;
      HybCSR    DA, DB, DC;

      HybTestBegin("hash: %s, lists of %s entries for a nonzero", kind == 0 ? "near columns" : kind == 1 ? "columns far apart"
                                                                                             : kind == 2 ? "more blocks than room"
                                                                                                         : "a long row",
                   lists[k]);
      heldnow   = 0;
      heldlimit = kind || k == 2 ? SIZE_MAX : (size_t)C.csr.nnz * (sizeof(PetscInt) + sizeof(PetscScalar)) + (size_t)A.csr.m * 4 * sizeof(PetscCount) + 8000;
      result    = HybArenaOn(&exec);
      if (HybTestCall(HybTuningSet("hash_lists", lists[k])) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, width))) {
        if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &result, &DC)) && HybTestSamePattern(&DC, &C)) {
          const PetscCount listed = HybCountersGet(&mm.counters, "lists");

          HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
          HybTestCheck(k == 2 || kind == 3 ? listed == 0 : kind == 0 ? listed == 2
                                                         : kind == 2 ? listed == 1
                                                                     : listed > 0,
                       "lists %td", listed);
        }
        HybTestCall(HybSpGEMMDestroy(&mm));
        HybTestCall(HybArenaReset(&result));
      }
      heldlimit = SIZE_MAX;
      HybTestCall(HybArenaReset(&keep));
    }
    free(expected);
    RefMatDestroy(&A, &B, &C);
  }
  HybTestCall(HybTuningSet("hash_lists", NULL));
}

/* Where all rows have lists, B's blocks and masks are given back before C's columns are taken. The peak is that of
   lists beside columns, or C itself. */
static void Compressed(void)
{
  HybExec   exec = *HybTestExec();
  HybSpGEMM mm;
  HybArena  result;
  HybCSR    DA, DC;
  RefMat    S, A;

  if (!exec.backend->device || !Is("hash") || PetscDefined(USE_COMPLEX) || PetscDefined(USE_64BIT_INDICES)) return;
  CountingBegin(&exec);
  HybTestBegin("hash: lists and blocks of B are not there together with columns");
  HybTestMatStencil(27, 6, 6, 6, &S);
  HybTestMatBlock(&S, 3, &A);
  heldnow = heldpeak = 0;
  result             = HybArenaOn(&exec);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, width))) {
    if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DA, &result, &DC))) {
      HybTestCheck(HybCountersGet(&mm.counters, "lists") == 2 && HybCountersGet(&mm.counters, "compressed") == 1, "lists %td, compressed %td", HybCountersGet(&mm.counters, "lists"), HybCountersGet(&mm.counters, "compressed"));
      HybTestCheck(heldpeak <= (size_t)DC.nnz * 12 / 100 * 120, "%zu bytes are held for %td nonzeros of C", heldpeak, DC.nnz);
    }
    HybTestCall(HybSpGEMMDestroy(&mm));
    HybTestCall(HybArenaReset(&result));
  }
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&S, &A);
}

/* the backend's answer when it is asked what is free */
static PetscErrorCode CountingMemory(HybMemoryReport *report)
{
  const PetscErrorCode ierr = counted->memory(report);

  report->free_bytes = heldlimit - heldnow;
  return ierr;
}

/* rowmerge with several factors, whose intermediates would not fit beside C */
static void Chunked(void)
{
  HybExec exec = *HybTestExec();

  /* its bytes are those of double */
  if (!exec.backend->device || !Is("rowmerge") || PetscDefined(USE_REAL_SINGLE)) return;
  CountingBegin(&exec);
  counting.memory = CountingMemory;
  for (int kind = 0; kind < 3; kind++) {
    const size_t entry    = sizeof(PetscInt) + sizeof(PetscScalar);
    PetscCount   products = 0;
    HybSpGEMM    mm;
    HybArena     result;
    HybCSR       DA, DB, DC, DO;
    RefMat       A, B, C, other;

    HybTestBegin("rowmerge: rows in chunks, %s", kind == 0 ? "all of one length" : kind == 1 ? "one of them longer than a chunk"
                                                                                             : "of all lengths, C already as large as what is free");
    if (kind == 0)
      HybTestMatRandom(200, 500, 40, 40, &A);
    else if (kind == 1)
      HybTestMatDenseRow(500, 500, 77, 16, &A);
    else
      HybTestMatRandom(300, 500, 0, 60, &A);
    HybTestMatRandom(500, 500, kind == 1 ? 30 : 22, kind == 1 ? 60 : 24, &B);
    RefSpGEMM(&A, &B, &C);
    for (PetscInt k = 0; k < A.csr.nnz; k++) products += B.csr.i[A.csr.j[k] + 1] - B.csr.i[A.csr.j[k]];
    heldnow = 0;
    /* not what all products take, but C and a quarter of it, and offsets */
    heldlimit = (size_t)C.csr.nnz * entry / 2 * 3 + (size_t)A.csr.nnz * 32 + 100000 + (kind == 1 ? (size_t)B.csr.nnz * entry * 2 : 0);
    result    = HybArenaOn(&exec);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybSpGEMMInit(&mm, &exec, "rowmerge", kind == 1 ? 8 : 0))) {
      HybTestCheck(heldlimit < (size_t)products * entry, "%zu bytes hold %td products", heldlimit, products);
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &result, &DC)) && HybTestSameMatrix(&DC, &C, 4)) {
        HybTestCheck(HybCountersGet(&mm.counters, "chunks") > 1 && HybCountersGet(&mm.counters, "factors") > 1, "%td chunks, %td factors", HybCountersGet(&mm.counters, "chunks"), HybCountersGet(&mm.counters, "factors"));
        HybTestMatArrays(A.csr.m, A.csr.n, A.csr.i, A.csr.j, NULL, &other);
        RefMatDestroy(&C);
        RefSpGEMM(&other, &B, &C);
        if (HybTestCall(HybTestUpload(&keep, &other.csr, &DO)) && HybTestCall(HybSpGEMMNumeric(&mm, &DO, &DB, &DC))) HybTestSameMatrix(&DC, &C, 4);
        RefMatDestroy(&other);
      }
      HybTestCall(HybSpGEMMDestroy(&mm));
      HybTestCall(HybArenaReset(&result));
      HybTestCheck(heldnow == 0, "%zu bytes are left", heldnow);
    }
    heldlimit = SIZE_MAX;
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A, &B, &C);
  }
}

/* tile holds what its essay says, by the numbers of tiles and of their products, and by those alone */
static void Tiles(void)
{
  HybExec exec = *HybTestExec();

  if (!exec.backend->device || !Is("tile") || !HYBTEST_TILES) return;
  CountingBegin(&exec);
  for (int kind = 0; kind < 3; kind++) {
    PetscCount tiles = 0, most;
    HybSpGEMM  mm;
    HybArena   result;
    HybCSR     DA, DB, DC;
    RefMat     A, B, S;
    PetscInt  *met;

    HybTestBegin("tile: what it holds beside C, %s", kind == 0 ? "blocks" : kind == 1 ? "columns all over"
                                                                                      : "two operands");
    HybTestMatStencil(27, 5, 4, 4, &S);
    if (kind == 1)
      HybTestMatRandom(300, 300, 10, 16, &A);
    else
      HybTestMatBlock(&S, 3, &A);
    if (kind == 2)
      HybTestMatRandom(A.csr.n, 100, 10, 20, &B);
    else
      RefMatCopy(&A, &B);
    for (int b = 0; b < (kind == 2 ? 2 : 1); b++) {
      const HybCSR *M = b ? &B.csr : &A.csr;

      met = (PetscInt *)RefAlloc(M->n / 8 + 1, sizeof(*met));
      for (PetscInt k = 0, r = 0; k < M->nnz; k++) {
        while (M->i[r + 1] <= k) r++;
        tiles += met[M->j[k] / 8] != r / 8 + 1;
        met[M->j[k] / 8] = r / 8 + 1;
      }
      free(met);
    }
    heldnow = heldpeak = 0;
    result             = HybArenaOn(&exec);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, width))) {
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, kind == 2 ? &DB : &DA, &result, &DC))) {
        const PetscCount chunks = HybCountersGet(&mm.counters, "tiles") / 8 + A.csr.m / 8 + 1;

        most = DC.nnz * (PetscCount)(sizeof(PetscInt) + sizeof(PetscScalar)) + tiles * 64 + HybCountersGet(&mm.counters, "products of tiles") * 8 + chunks * (8 * 12 + 48) + A.csr.m * 8 + 4000;
        HybTestCheck((PetscCount)heldpeak <= most * (PetscCount)sizeof(PetscInt) / 4, "%zu bytes are held beside the operands, %td at most by its numbers", heldpeak, most);
      }
      HybTestCall(HybSpGEMMDestroy(&mm));
      HybTestCall(HybArenaReset(&result));
      HybTestCheck(heldnow == 0, "%zu bytes are left", heldnow);
    }
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A, &B, &S);
  }
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &out));
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table; table++) {
    method = *table;
    HybTestPieces(Bounded, Listed, Compressed, Chunked, Tiles);
  }
  if (HybTestMine()) Declining();
  if (HybTestMine()) Asking();
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

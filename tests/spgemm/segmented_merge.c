/* The segmented merge on the host: against a stable insertion of one list after the other. */
#include "hybtest.h"
#include "../../src/sparse/spgemm/binned/segmerge.h"
#include <stdlib.h>
#include <string.h>

static HybArena keep, work;

static PetscErrorCode Reset(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybTestReset(&keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt    nseg, nsub, *segptr, *key;
  PetscCount *subptr, *value;
} Problem;

typedef struct {
  PetscInt   key;
  PetscCount place, value;
} Pair;

static int ByKeyThenPlace(const void *x, const void *y)
{
  const Pair *a = (const Pair *)x, *b = (const Pair *)y;

  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->place > b->place) - (a->place < b->place);
}

static int ByKey(const void *x, const void *y)
{
  const PetscInt a = *(const PetscInt *)x, b = *(const PetscInt *)y;

  return (a > b) - (a < b);
}

/* lists: sub-segments of each segment; lengths: of each sub-segment */
static void Make(PetscInt nseg, const PetscInt *lists, const PetscInt *lengths, PetscInt keys, Problem *p)
{
  PetscCount total = 0;

  p->nseg   = nseg;
  p->segptr = (PetscInt *)RefAlloc(nseg + 1, sizeof(PetscInt));
  for (PetscInt s = 0; s < nseg; s++) p->segptr[s + 1] = p->segptr[s] + lists[s];
  p->nsub   = p->segptr[nseg];
  p->subptr = (PetscCount *)RefAlloc(p->nsub + 1, sizeof(PetscCount));
  for (PetscInt q = 0; q < p->nsub; q++) p->subptr[q + 1] = p->subptr[q] + lengths[q];
  total    = p->subptr[p->nsub];
  p->key   = (PetscInt *)RefAlloc(total, sizeof(PetscInt));
  p->value = (PetscCount *)RefAlloc(total, sizeof(PetscCount));
  for (PetscInt q = 0; q < p->nsub; q++) {
    for (PetscCount k = p->subptr[q]; k < p->subptr[q + 1]; k++) {
      p->key[k]   = HybTestRandomInt(0, keys);
      p->value[k] = (PetscCount)3000000000 + 7 * k; /* beyond 32 bits: carried, not computed with */
    }
    qsort(p->key + p->subptr[q], (size_t)(p->subptr[q + 1] - p->subptr[q]), sizeof(PetscInt), ByKey);
  }
}

static void Destroy(Problem *p)
{
  RefFree(p->segptr, p->subptr, p->key, p->value);
}

static PetscErrorCode Run(const Problem *p, PetscInt **keyout, PetscCount **valueout, HybCounters *counters)
{
  const HybExec   *exec  = HybTestExec();
  const PetscCount total = p->subptr[p->nsub];
  PetscInt        *segptr, *key;
  PetscCount      *subptr, *value;

  PetscFunctionBegin;
  PetscCall(HybTestUploadArray(&keep, p->nseg + 1, sizeof(PetscInt), p->segptr, &segptr));
  PetscCall(HybTestUploadArray(&keep, p->nsub + 1, sizeof(PetscCount), p->subptr, &subptr));
  PetscCall(HybTestUploadArray(&keep, total, sizeof(PetscInt), p->key, &key));
  PetscCall(HybTestUploadArray(&keep, total, sizeof(PetscCount), p->value, &value));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), total, sizeof(PetscInt), keyout));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), total, sizeof(PetscCount), valueout));
  PetscCall(HybSegMerge(&work, p->nseg, segptr, p->nsub, subptr, key, value, *keyout, *valueout, counters));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Check(const Problem *p)
{
  const PetscCount total    = p->subptr[p->nsub];
  Pair            *pairs    = (Pair *)RefAlloc(total, sizeof(Pair));
  PetscInt        *key      = (PetscInt *)RefAlloc(total, sizeof(PetscInt)), *keyout;
  PetscCount      *value    = (PetscCount *)RefAlloc(total, sizeof(PetscCount)), *valueout;
  PetscInt         segments = 0, rounds = 0;
  HybCounters      counters;

  counters.n = 0;
  for (PetscCount k = 0; k < total; k++) pairs[k] = (Pair){p->key[k], k, p->value[k]};
  for (PetscInt s = 0; s < p->nseg; s++) {
    const PetscCount lo = p->subptr[p->segptr[s]], hi = p->subptr[p->segptr[s + 1]];
    PetscInt         lists = 0, need = 0;

    qsort(pairs + lo, (size_t)(hi - lo), sizeof(Pair), ByKeyThenPlace);
    for (PetscInt q = p->segptr[s]; q < p->segptr[s + 1]; q++) lists += p->subptr[q + 1] > p->subptr[q];
    while ((1 << need) < lists) need++;
    segments += lists > 1;
    rounds = PetscMax(rounds, need);
  }
  for (PetscCount k = 0; k < total; k++) {
    key[k]   = pairs[k].key;
    value[k] = pairs[k].value;
  }
  if (HybTestCall(Run(p, &keyout, &valueout, &counters))) {
    HybTestSameInts(total, keyout, key);
    HybTestSameCounts(total, valueout, value);
    HybTestCheck(HybCountersGet(&counters, "segments") == segments && HybCountersGet(&counters, "merge rounds") == rounds, "%td segments merged in %td rounds, expected %" PetscInt_FMT " in %" PetscInt_FMT, HybCountersGet(&counters, "segments"), HybCountersGet(&counters, "merge rounds"), segments, rounds);
  }
  HybTestCall(Reset(NULL));
  RefFree(pairs, key, value);
}

static void CheckAndDestroy(Problem *p)
{
  Check(p);
  Destroy(p);
}

/* nseg segments of 0..maxlists lists of 0..maxlength pairs, a part of both empty */
static void Random(PetscInt nseg, PetscInt maxlists, PetscInt maxlength, PetscInt keys, Problem *p)
{
  PetscInt *lists = (PetscInt *)RefAlloc(nseg, sizeof(PetscInt)), *lengths, n = 0;

  for (PetscInt s = 0; s < nseg; s++) n += lists[s] = HybTestRandomInt(0, 4) ? HybTestRandomInt(0, maxlists + 1) : 0;
  lengths = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  for (PetscInt q = 0; q < n; q++) lengths[q] = HybTestRandomInt(0, 4) ? HybTestRandomInt(0, maxlength + 1) : 0;
  Make(nseg, lists, lengths, keys, p);
  RefFree(lists, lengths);
}

static Problem FaultProblem;

static PetscErrorCode Fault(void *ctx)
{
  PetscInt   *keyout;
  PetscCount *valueout;

  PetscFunctionBegin;
  PetscCall(Run(&FaultProblem, &keyout, &valueout, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  static const PetscInt lengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097, 9999};
  const HybExec        *exec      = HybTestExec();
  Problem               p;

  PetscFunctionBegin;
  if (exec->backend->device) {
    HybTestBegin("segmented merge");
    HybTestSkip("the %s backend's is tested by its method", exec->backend->name);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybTestArenas(exec, &keep, &work));

  HybTestBegin("no segment");
  Make(0, NULL, NULL, 1, &p);
  CheckAndDestroy(&p);
  HybTestBegin("segments without lists, lists without pairs");
  {
    const PetscInt lists[5] = {0, 3, 0, 1, 0}, none[4] = {0, 0, 0, 0}, one[4] = {0, 1, 0, 0};

    Make(5, lists, none, 1, &p);
    CheckAndDestroy(&p);
    Make(5, lists, one, 1, &p);
    CheckAndDestroy(&p);
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lengths); k++) {
    const PetscInt n = lengths[k], half[2] = {n - n / 2, n / 2}, two = 2;

    if (HybTestSlow() && n > 4097) break;
    HybTestBegin("one segment of %" PetscInt_FMT " pairs: two lists, few keys, many keys", n);
    Make(1, &two, half, 3, &p);
    CheckAndDestroy(&p);
    Make(1, &two, half, 1000000, &p);
    CheckAndDestroy(&p);
    HybTestBegin("one segment of %" PetscInt_FMT " lists of one pair", n);
    {
      PetscInt *ones = (PetscInt *)RefAlloc(n, sizeof(PetscInt));

      for (PetscInt q = 0; q < n; q++) ones[q] = 1;
      Make(1, &n, ones, n / 2 + 1, &p);
      CheckAndDestroy(&p);
      free(ones);
    }
  }
  HybTestBegin("all keys equal: the order of the lists stands");
  {
    const PetscInt lists = 5, len[5] = {100, 0, 300, 1, 77};

    Make(1, &lists, len, 1, &p);
    CheckAndDestroy(&p);
  }
  HybTestBegin("lists one behind the other, and in the opposite order");
  {
    const PetscInt lists = 6, len[6] = {50, 50, 50, 50, 50, 50};

    Make(1, &lists, len, 1, &p);
    for (PetscInt k = 0; k < 300; k++) p.key[k] = k;
    Check(&p);
    for (PetscInt k = 0; k < 300; k++) p.key[k] = (5 - k / 50) * 50 + k % 50;
    CheckAndDestroy(&p);
  }
  HybTestBegin("one long segment among many short ones");
  {
    const PetscInt n = HybTestSize(60000, 3000), m = 400;
    PetscInt      *lists = (PetscInt *)RefAlloc(m, sizeof(PetscInt)), *len = (PetscInt *)RefAlloc(m + 40, sizeof(PetscInt)), q = 0;

    for (PetscInt s = 0; s < m; s++) {
      lists[s] = s == 123 ? 41 : 1;
      for (PetscInt l = 0; l < lists[s]; l++) len[q++] = s == 123 ? n / 41 + l : s % 7;
    }
    Make(m, lists, len, 1000, &p);
    CheckAndDestroy(&p);
    RefFree(lists, len);
  }
  for (PetscInt k = 0; k < HybTestSize(200, 30); k++) {
    const PetscInt nseg = HybTestRandomInt(0, 60), lists = HybTestRandomInt(1, 40), length = HybTestRandomInt(0, 40), keys = HybTestRandomInt(1, 200);

    HybTestBegin("random problem %" PetscInt_FMT ": up to %" PetscInt_FMT " segments, %" PetscInt_FMT " lists, %" PetscInt_FMT " pairs, %" PetscInt_FMT " keys", k, nseg, lists, length, keys);
    Random(nseg, lists, length, keys, &p);
    CheckAndDestroy(&p);
  }
  HybTestBegin("every allocation failing in turn");
  Random(30, 9, 20, 50, &FaultProblem);
  HybTestFaults(Fault, Reset, NULL);
  Destroy(&FaultProblem);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

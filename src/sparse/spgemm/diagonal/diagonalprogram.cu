/*
  diagonalprogram.cu: the program of method "diagonal", which diagonal.cu describes and runs.

    runs:    neighbouring diagonals of an operand, three at most
    pairs:   a run of A and one of B, sorted by the center of C that they contribute to, then in the order of A
    groups:  the pairs of one center; overlapping groups: begin again with a run for each diagonal
    block:   the most rows whose staged rows leave room for others on a multiprocessor
    parts:   groups dealt to the threads of a row, so that each has about as many products

  Memory: a few thousand bytes. Complexity: the pairs of diagonals, on the host: DIAGONALS_MAX^2 at most, and sorting.
*/
#include "diagonalprogram.cuh"
#include "../../device/carve.h"
#include <stdlib.h>
#include <string.h>

/* a run of an operand */
typedef struct {
  PetscInt center;
  int      half, first, count, lead;
} DiagonalLine;

/* the runs; 0: there is one of more than three */
static int DiagonalLines(const Diagonals *D, bool three, DiagonalLine *line)
{
  int n = 0;

  for (int k = 0; k < D->n; n++) {
    int count = 1;

    while (three && k + count < D->n && D->offset[k + count] == D->offset[k] + count) count++;
    if (count > 3) return 0;
    line[n].first = k;
    line[n].count = count;
    line[n].half  = count > 1;
    /* of two, the center is the one nearer to the diagonal, as on the other side of it */
    line[n].lead   = count == 2 && D->offset[k] >= 0;
    line[n].center = D->offset[k] + (count == 3 || (count == 2 && !line[n].lead));
    k += count;
  }
  return n;
}

typedef struct {
  PetscCount center;
  int        a, b;
} DiagonalMeeting;

static int DiagonalCompare(const void *p, const void *q)
{
  const DiagonalMeeting *x = (const DiagonalMeeting *)p, *y = (const DiagonalMeeting *)q;

  return x->center < y->center ? -1 : x->center > y->center ? 1
                                                            : x->a - y->a;
}

/* what belongs to C's centers: in groups, whose pairs are meeting[group.first] .. meeting[group.end - 1]; 0: they
   overlap, or are too many */
static int DiagonalGroups(const HybCSR *A, const HybCSR *B, int na, const DiagonalLine *a, int nb, const DiagonalLine *b, DiagonalMeeting *meeting, DiagonalGroup *group, int *npairs, int *nwords, unsigned *all, int *ndiagonals)
{
  int        n = 0, ngroups = 0, pairs = 0, bit = 0, word = 0;
  PetscCount before = 0;

  *ndiagonals = 0;
  for (int p = 0; p < na; p++) {
    for (int q = 0; q < nb; q++) {
      meeting[n].center = (PetscCount)a[p].center + b[q].center;
      meeting[n].a      = p;
      meeting[n++].b    = q;
    }
  }
  qsort(meeting, (size_t)n, sizeof(*meeting), DiagonalCompare);
  for (int k = 0, next; k < n; k = next) {
    DiagonalGroup g;
    unsigned      set  = 0;
    int           half = 0;

    for (next = k; next < n && meeting[next].center == meeting[k].center; next++) half = PetscMax(half, a[meeting[next].a].half + b[meeting[next].b].half);
    /* beyond the matrix: no row has these */
    if (meeting[k].center + half <= -(PetscCount)A->m || meeting[k].center - half >= B->n) continue;
    if (ngroups && before >= meeting[k].center - half) return 0;
    before = meeting[k].center + half;
    for (int e = k; e < next; e++) {
      const DiagonalLine *u = &a[meeting[e].a], *v = &b[meeting[e].b];

      for (int q = 0; q < u->count; q++) set |= ((1u << v->count) - 1) << (v->lead + u->lead + q + half - u->half - v->half);
    }
    if (bit + 2 * half + 1 > (word ? 32 : 31)) { /* the first word has one bit for other use */
      word++;
      bit = 0;
      if (word == DIAGONAL_WORDS) return 0;
    }
    g.center = (PetscInt)meeting[k].center;
    g.where  = DIAGONAL_WHERE(word, bit, half, *ndiagonals & 255);
    all[word] |= set << bit;
    for (; set; set >>= 1) *ndiagonals += (int)(set & 1u);
    g.first = pairs;
    for (int e = k; e < next; e++) meeting[pairs++] = meeting[e];
    g.end = pairs;
    bit += 2 * half + 1;
    if (pairs > DIAGONAL_PAIRS) return 0;
    group[ngroups++] = g;
  }
  *npairs = pairs;
  *nwords = word + 1;
  return ngroups;
}

/* shared memory of a block of so many rows; places of what is there */
static PetscCount DiagonalShared(int rows, int na, const DiagonalLine *a, int maxarow, int maxbrow, int ndiagonals, bool wide, DiagonalArgs *x, DiagonalTile *tile)
{
  const int  unit  = DiagonalUnit();
  PetscCount bytes = 0, base = 0;

  x->nplaces = 0;
  for (int k = 0; k < na; k++) {
    const int count = rows + 2 * a[k].half;

    if (tile) {
      tile[k].first = a[k].center - a[k].half;
      tile[k].count = count;
      tile[k].base  = (int)base;
    }
    base += ((PetscCount)count * maxbrow + 3 * unit) / unit * unit;
    x->nplaces += count;
  }
  x->abase = (int)base;
  base += (PetscCount)rows * maxarow + 3 * unit;
  bytes  = (base * (PetscCount)sizeof(HybScalar) + 15) / 16 * 16;
  x->out = (size_t)bytes;
  bytes += ((PetscCount)rows * ndiagonals * (PetscCount)PetscMax(sizeof(HybScalar), sizeof(PetscInt)) + 15) / 16 * 16;
  x->staged = (size_t)bytes;
  bytes += ((PetscCount)x->nplaces * (wide ? 16 : 8) + 15) / 16 * 16;
  x->cword = (size_t)bytes;
  bytes += (PetscCount)x->nwords * rows * 2 * (PetscCount)sizeof(unsigned);
  return bytes;
}

/* What the program is made of, while it is made */
typedef struct {
  DiagonalLine     a[DIAGONALS_MAX], b[DIAGONALS_MAX]; /* the operands' runs */
  int              na, nb, ngroups, npairs, nparts;
  DiagonalMeeting *meeting;
  DiagonalGroup   *group;
  int              places[DIAGONALS_MAX]; /* the first staged row of each of A's runs */
} DiagonalDraft;

static size_t DiagonalTakeAll(char *base, const DiagonalDraft *d, DiagonalArgs *x)
{
  size_t used = 0;

  HybCarve(base, &used, (size_t)d->na * sizeof(*x->run), &x->run);
  HybCarve(base, &used, (size_t)d->npairs * sizeof(*x->target), &x->target);
  HybCarve(base, &used, (size_t)d->npairs * sizeof(*x->pair), &x->pair);
  HybCarve(base, &used, (size_t)d->ngroups * sizeof(*x->group), &x->group);
  HybCarve(base, &used, (size_t)(d->nparts + 1) * sizeof(*x->part), &x->part);
  HybCarve(base, &used, (size_t)d->na * sizeof(*x->tile), &x->tile);
  HybCarve(base, &used, (size_t)x->nplaces * sizeof(*x->place), &x->place);
  return used;
}

/* A's runs, the rows that are staged for them, and their targets: bits of C */
static void DiagonalWriteRuns(DiagonalDraft *d, DiagonalRun *run, unsigned *target, const DiagonalTile *tile, DiagonalPlace *place)
{
  int ntargets = 0, n = 0;

  for (int k = 0; k < d->na; k++) {
    const DiagonalLine *a = &d->a[k];

    d->places[k] = n;
    for (int q = 0; q < tile[k].count; q++, n++) {
      place[n].row  = tile[k].first + q;
      place[n].tile = k;
    }
    run[k].center = a->center;
    run[k].bits   = DiagonalBits(a->first, a->count, a->lead, a->half);
    run[k].first  = ntargets;
    for (int g = 0; g < d->ngroups; g++) {
      const unsigned where = d->group[g].where;

      for (int e = d->group[g].first; e < d->group[g].end; e++) {
        const DiagonalLine *u = &d->b[d->meeting[e].b];

        if (d->meeting[e].a == k) target[ntargets++] = DiagonalBits(u->first, u->count, u->lead, 0) | (unsigned)(DIAGONAL_BIT(where) + DIAGONAL_REACH(where) - a->half - u->half) << 16 | (unsigned)DIAGONAL_WORD(where) << 24;
      }
    }
    run[k].end = ntargets;
  }
}

static void DiagonalWritePairs(const DiagonalDraft *d, const DiagonalRun *run, DiagonalPair *pair)
{
  for (int e = 0; e < d->npairs; e++) {
    const DiagonalLine *u = &d->b[d->meeting[e].b];

    pair[e].bits  = run[d->meeting[e].a].bits | DiagonalBits(u->first, u->count, u->lead, u->half) << 16;
    pair[e].place = (unsigned)d->places[d->meeting[e].a] | (DIAGONAL_HALF(pair[e].bits) * 2 + DIAGONAL_HALF(pair[e].bits >> 16) + (DIAGONAL_ODD(pair[e].bits) | DIAGONAL_ODD(pair[e].bits >> 16)) * 4) << 16;
  }
}

/* the groups with most products first, each to the part that has least */
static void DiagonalWriteParts(const DiagonalDraft *d, DiagonalGroup *ordered, int *part)
{
  int  partof[32 * DIAGONAL_WORDS], load[32] = {0}, n = 0;
  bool taken[32 * DIAGONAL_WORDS] = {false};

  for (int round = 0; round < d->ngroups; round++) {
    int largest = -1, most = -1, least = 0;

    for (int g = 0; g < d->ngroups; g++) {
      int cost = 4;

      if (taken[g]) continue;
      for (int e = d->group[g].first; e < d->group[g].end; e++) cost += 2 + (1 + 2 * d->a[d->meeting[e].a].half) * (1 + 2 * d->b[d->meeting[e].b].half);
      if (cost > most) {
        most    = cost;
        largest = g;
      }
    }
    for (int p = 1; p < d->nparts; p++)
      if (load[p] < load[least]) least = p;
    taken[largest]  = true;
    partof[largest] = least;
    load[least] += most;
  }
  for (int p = 0; p < d->nparts; p++) {
    part[p] = n;
    for (int g = 0; g < d->ngroups; g++)
      if (partof[g] == p) ordered[n++] = d->group[g];
  }
  part[d->nparts] = n;
}

/* the runs, and what belongs to C's centers: runs of three if that goes, else each diagonal for itself; ngroups 0:
   neither does */
static void DiagonalDraftMake(const HybCSR *A, const HybCSR *B, const DiagonalLook *look, DiagonalDraft *d, Diagonal *s)
{
  DiagonalArgs *x = &s->args;

  for (int pass = HybDeviceTuning()->diagonal_runs ? 0 : 1; pass < 2 && !d->ngroups; pass++) {
    memset(x->all, 0, sizeof(x->all));
    d->na = DiagonalLines(&look->d[0], !pass, d->a);
    d->nb = DiagonalLines(&look->d[1], !pass, d->b);
    if (d->na && d->nb) d->ngroups = DiagonalGroups(A, B, d->na, d->a, d->nb, d->b, d->meeting, d->group, &d->npairs, &x->nwords, x->all, &s->ndiagonals);
  }
}

/* Rows and threads of a block, and its shared memory; false: the smallest has no room. As many rows as leave room for
   four blocks of 256 threads, at least 32: what they share with their neighbours costs less. */
static bool DiagonalBlock(const DiagonalDraft *d, int maxarow, int maxbrow, size_t limit, Diagonal *s)
{
  const HybTuning *tuning = HybDeviceTuning();
  DiagonalArgs    *x      = &s->args;
  const auto       bytes  = [&](int rows) { return DiagonalShared(rows, d->na, d->a, maxarow, maxbrow, s->ndiagonals, s->wide, x, NULL); };
  int              rows   = DIAGONAL_MOST;

  while (rows > 32 && 4 * (bytes(rows) + 2048) > (PetscCount)limit) rows /= 2;
  if (tuning->diagonal_rows) rows = (int)tuning->diagonal_rows;
  while (rows > 32 && bytes(rows) + (PetscCount)DIAGONAL_STATIC > (PetscCount)limit) rows /= 2;
  s->bytes   = (size_t)bytes(rows);
  s->threads = 4 * (s->bytes + 2048) > limit ? 512 : 256;
  if (tuning->diagonal_threads) s->threads = (int)tuning->diagonal_threads;
  x->rows = rows;
  x->log  = HybLog2(rows);
  return s->bytes + DIAGONAL_STATIC <= limit;
}

/* written on the host, and sent in one piece */
static PetscErrorCode DiagonalWrite(HybSpGEMM *mm, DiagonalDraft *d, int maxarow, int maxbrow, Diagonal *s)
{
  DiagonalArgs *x    = &s->args;
  const size_t  used = DiagonalTakeAll(NULL, d, x);
  char         *host, *device;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, (PetscCount)used, 1, &host));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)used, 1, &device));
  PetscCall(PetscMemzero(host, used));
  (void)DiagonalTakeAll(host, d, x);
  (void)DiagonalShared(x->rows, d->na, d->a, maxarow, maxbrow, s->ndiagonals, s->wide, x, (DiagonalTile *)x->tile);
  DiagonalWriteRuns(d, (DiagonalRun *)x->run, (unsigned *)x->target, x->tile, (DiagonalPlace *)x->place);
  DiagonalWritePairs(d, x->run, (DiagonalPair *)x->pair);
  DiagonalWriteParts(d, (DiagonalGroup *)x->group, (int *)x->part);
  PetscCall(mm->exec.backend->copy(&mm->exec, device, host, used, HYB_COPY_HOST_TO_DEVICE));
  (void)DiagonalTakeAll(device, d, x);
  PetscCall(HybArenaFree(&mm->work, &host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDiagonalProgram(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const DiagonalLook *look, Diagonal *s, PetscBool *found)
{
  const Diagonals *da = &look->d[0], *db = &look->d[1];
  DiagonalArgs    *x      = &s->args;
  PetscCount       padded = 0;
  bool             odd    = false;
  size_t           limit;
  DiagonalDraft    d;

  PetscFunctionBegin;
  *found = PETSC_FALSE;
  memset(&d, 0, sizeof(d));
  PetscCall(HybDeviceLimits(&limit, NULL));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, DIAGONALS_MAX * DIAGONALS_MAX, sizeof(*d.meeting), &d.meeting));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, 32 * DIAGONAL_WORDS, sizeof(*d.group), &d.group));
  DiagonalDraftMake(A, B, look, &d, s);
  for (int k = 0; k < d.na; k++) odd |= d.a[k].count == 2;
  for (int k = 0; k < d.nb; k++) odd |= d.b[k].count == 2;
  for (int k = 0; k < d.npairs; k++) padded += (PetscCount)(d.a[d.meeting[k].a].count * d.b[d.meeting[k].b].count);
  if (!d.ngroups || (!strcmp(mm->name, "auto") && (double)padded * A->m * B->m > 4. * (double)A->nnz * (double)B->nnz)) PetscFunctionReturn(PETSC_SUCCESS);
  s->wide   = (PetscBool)(PetscMax(da->n, db->n) > 32);
  s->npairs = d.npairs;
  if (!DiagonalBlock(&d, da->n, db->n, limit, s)) PetscFunctionReturn(PETSC_SUCCESS);
  d.nparts  = s->threads / x->rows;
  x->nruns  = d.na;
  x->stride = db->n;
  x->bits   = da->n;
  x->full   = odd ? -1 : da->n * db->n;
  PetscCall(DiagonalWrite(mm, &d, da->n, db->n, s));
  PetscCall(HybArenaFree(&mm->work, &d.meeting, &d.group));
  *found = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What was done with which matrix, for the report of the run. A matrix has a record by its object's id from its first
  operation on; where it goes, the record is folded into the kind that it is of: matrices of one role, name, prefix,
  size and origin. So a program that makes a matrix in each of a million steps has a page as well.

  No record points to a matrix. What is known of one is asked at its first calls, then at ever fewer of them, and where
  it goes.

  What runs on a device is timed by two marks in its stream, which are read later, so nothing here waits for it but the
  end of the run. A record whose matrix goes meanwhile is folded when its last mark has been read.

  Nothing here makes an operation fail: a mark that fails is forgotten, and the operation has no time. Where there is no
  memory for a record, that of all others takes its place. A start without a stop, of an operation that failed, is
  forgotten with the next start.
*/
#include "report.h"
#include <stdlib.h>

#define HYB_RECORDS_MOST 4096 /* live ones; matrices beyond that share one */

struct _HybRecord {
  PetscObjectId id, parent; /* parent: of a block, the parallel matrix's */
  HybRecord     next;
  PetscBool     placed;  /* its parent has said what its key is */
  PetscBool     left;    /* its matrix has gone: it is folded when nothing is pending */
  int           pending; /* timers that have its calls and are still to be read */
  HybRecordKind kind;
};

const char *HybRecordOpName(int op)
{
#define NAME(record, text)        text,
#define TEXT(number, event, text) text,
  static const char *const names[HYB_RECORD_OPS] = {HYB_RECORD_LIST(NAME) HYB_OP_LIST(TEXT) HYB_PHASE_LIST(TEXT)};
#undef NAME
#undef TEXT

  return names[op];
}

PetscBool HybOpIsMult(int op)
{
  return (PetscBool)(op <= HYB_RECORD_MULTTRANSPOSEADD);
}

/* Has GAMG's set-up of the plugin coarsened a matrix? Then it is an operator, whose products may all be a cycle's. */
PetscBool HybOpIsCoarsening(int op)
{
  return (PetscBool)(op == (int)HYB_RECORD_EVENTS + (int)HYB_OPS + (int)HYB_PHASE_AGGREGATES);
}

/* many and short: on a device some are timed, and stand for others */
static PetscBool HybOpIsSampled(int op)
{
  return (PetscBool)(HybOpIsMult(op) || op == HYB_RECORD_GHOSTS);
}

/* Is its time within that of another operation? */
PetscBool HybOpIsNested(int op)
{
  const int event = op - (int)HYB_RECORD_EVENTS;

  return (PetscBool)(event >= 0 && event <= (int)HYB_OP_KEEPTRANSPOSE && event != (int)HYB_OP_HOSTDUPLICATE);
}

const char *HybRoleName(HybRole role)
{
  static const char *const roles[] = {"matrix", "diagonal block", "off-diagonal block", "parallel matrix", "part", "other"};

  return roles[role];
}

PetscErrorCode HybRecordsCreate(HybRecords **records)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(records));
  PetscCall(PetscCalloc1(HYB_RECORD_KINDS, &(*records)->kinds));
  PetscCall(PetscCalloc1(HYB_RECORD_KINDS, &(*records)->merged));
  (*records)->table[0] = (HybRecord)calloc(1, sizeof(*(*records)->table[0])); /* id 0: that of many */
  PetscCheck((*records)->table[0], PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a report, %zu bytes: leave out -mat_aijhybridgpu_report", sizeof(*(*records)->table[0]));
  (*records)->table[0]->kind.matrices  = 1;
  (*records)->table[0]->kind.key.level = -1;
  (*records)->table[0]->kind.key.role  = HYB_ROLE_OTHER;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRecordsDestroy(HybRecords **records)
{
  HybRecords *r = *records;

  PetscFunctionBegin;
  for (int k = 0; k <= HYB_RECORDS_LEAVING; k++) {
    for (HybRecord rec = r->table[k], next; rec; rec = next) {
      next = rec->next;
      free(rec);
    }
  }
  PetscCall(PetscFree(r->options));
  PetscCall(PetscFree(r->kinds));
  PetscCall(PetscFree(r->merged));
  PetscCall(PetscFree(*records));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products with vectors are many and short, and two marks take as long as a small one: the first is timed for itself,
  the second too, since it may be the one that is planned for, then the third for 14, the 17th for 48, and from the
  65th on one in 64.
*/
static PetscInt64 HybRecordWeight(PetscInt64 n)
{
  return n < 2 ? 1 : n == 2  ? 14
                   : n == 16 ? 48
                   : n % 64  ? 0
                             : 64;
}

/* A call that was timed stands for some that have not come, or there are some for which none was timed */
static double HybLineSeconds(const HybRecordLine *l)
{
  if (l->stood > l->calls) return l->seconds - l->last * (double)(l->stood - l->calls);
  return l->stood ? l->seconds * ((double)l->calls / (double)l->stood) : 0;
}

/* a call of so many seconds, for so many */
static void HybLineTimed(HybRecordLine *l, HybRunPart part, PetscLogDouble seconds, PetscInt64 weight)
{
  l->last = seconds;
  l->in[part] += seconds * (double)weight;
  l->seconds += seconds * (double)weight;
  l->stood += weight;
}

static HybRecordLine *HybKindLine(HybRecordKind *kind, int op, const char *where, const char *method, const char *detail)
{
  HybRecordLine *l = kind->lines;

  for (int k = 0; k < kind->nlines; k++, l++)
    if ((int)l->op == op && !strcmp(l->where, where) && !strncmp(l->method, method, sizeof(l->method) - 1) && !strncmp(l->detail, detail, sizeof(l->detail) - 1)) return l;
  if (kind->nlines == HYB_RECORD_LINES) { /* by one method more: with those of the others */
    for (l = kind->lines; l < kind->lines + kind->nlines; l++) {
      if ((int)l->op != op) continue;
      snprintf(l->method, sizeof(l->method), "several");
      return l;
    }
    return NULL;
  }
  kind->nlines++;
  memset(l, 0, sizeof(*l));
  l->op = (HybRecordOp)op;
  snprintf(l->where, sizeof(l->where), "%s", where);
  snprintf(l->method, sizeof(l->method), "%s", method);
  snprintf(l->detail, sizeof(l->detail), "%s", detail);
  return l;
}

static void HybKindAdd(HybRecordKind *k, const HybRecordKind *kind, PetscBool processes)
{
  if (processes) {
    k->matrices = PetscMax(k->matrices, kind->matrices);
    k->nnz += kind->nnz;
    k->hostbytes += kind->hostbytes;
    k->devicebytes += kind->devicebytes;
  } else {
    k->matrices += kind->matrices;
    k->nnz         = PetscMax(k->nnz, kind->nnz);
    k->hostbytes   = PetscMax(k->hostbytes, kind->hostbytes);
    k->devicebytes = PetscMax(k->devicebytes, kind->devicebytes);
  }
  k->sendings += kind->sendings;
  if (kind->where[0]) memcpy(k->where, kind->where, sizeof(k->where));
  for (int i = 0; i < kind->nlines; i++) {
    const HybRecordLine *l       = &kind->lines[i];
    const double         seconds = HybLineSeconds(l);
    HybRecordLine       *t       = HybKindLine(k, (int)l->op, l->where, l->method, l->detail);
    PetscLogDouble       waited;

    if (!t) continue;
    t->last = 0; /* what it stood for has been taken off */
    if (l->why[0]) memcpy(t->why, l->why, sizeof(t->why));
    for (int p = 0; p < HYB_PARTS; p++)
      if (l->seconds > 0) t->in[p] += l->in[p] * (seconds / l->seconds);
    t->flops += l->flops;
    t->bytes += l->bytes;
    t->mean += processes ? l->mean : seconds;
    waited = PetscMax(t->moved.waited, l->moved.waited);
    HybMovedAdd(&t->moved, &l->moved, 1);
    if (processes) {
      t->moved.waited = waited;
      t->calls        = PetscMax(t->calls, l->calls);
      t->timed        = PetscMax(t->timed, l->timed);
      t->seconds      = PetscMax(t->seconds, seconds);
    } else {
      t->calls += l->calls;
      t->timed += l->timed;
      t->seconds += seconds;
    }
    t->stood = t->calls;
  }
}

/* of all operations but those within others */
double HybKindSeconds(const HybRecordKind *k)
{
  double s = 0;

  for (int i = 0; i < k->nlines; i++)
    if (!HybOpIsNested((int)k->lines[i].op)) s += HybLineSeconds(&k->lines[i]);
  return s;
}

/* Where a new kind goes: where there are too many, those that took longest stay for themselves, and the last place
   takes all others */
static int HybKindsPlace(HybRecordKind *into, int *n, const HybRecordKind *kind)
{
  const int      last  = HYB_RECORD_KINDS - 1;
  HybRecordKind *k     = &into[*n];
  int            least = 0;

  if (*n < last) {
    memset(k, 0, sizeof(*k));
    k->key = kind->key;
    return (*n)++;
  }
  if (*n == last) {
    memset(k, 0, sizeof(*k));
    k->key.role  = HYB_ROLE_OTHER;
    k->key.level = -1;
    (*n)++;
  }
  if (kind->key.role == HYB_ROLE_OTHER) return last;
  for (int i = 1; i < last; i++)
    if (HybKindSeconds(&into[i]) < HybKindSeconds(&into[least])) least = i;
  if (HybKindSeconds(&into[least]) >= HybKindSeconds(kind)) return last;
  HybKindAdd(&into[last], &into[least], PETSC_FALSE);
  memset(&into[least], 0, sizeof(into[least]));
  into[least].key = kind->key;
  return least;
}

/* Adds a kind in which there was something to those of the same key. processes: the same matrices on another process;
   else other matrices of this one. */
void HybKindsMerge(HybRecordKind *into, int *n, const HybRecordKind *kind, PetscBool processes)
{
  int at;

  if (!kind->nlines) return;
  for (at = 0; at < *n && memcmp(&into[at].key, &kind->key, sizeof(kind->key)); at++)
    ;
  if (at == *n) at = HybKindsPlace(into, n, kind);
  HybKindAdd(&into[at], kind, processes);
}

static void HybRecordLabel(const char *from, char *to)
{
  /* keys are compared as they lie there */
  memset(to, 0, HYB_RECORD_LABEL);
  /* a name that PETSc has made up says nothing */
  snprintf(to, HYB_RECORD_LABEL, "%s", from && strncmp(from, "Mat_0x", 6) ? from : "");
}

/* PETSc's number of the level where the prefix names one */
static int HybPrefixLevel(const char *prefix)
{
  const char *at = strstr(prefix, "levels_");
  int         n;

  if (at && sscanf(at, "levels_%d", &n) == 1) return n;
  return strstr(prefix, "mg_coarse_") ? 0 : -1;
}

static HybRecord HybRecordFind(HybRecords *r, PetscObjectId id)
{
  HybRecord rec = r->table[(size_t)id % HYB_RECORDS_LEAVING];

  while (rec && rec->id != id) rec = rec->next;
  return rec;
}

/* That of many where A is one too many, or there is no memory: a report fails nobody's operation */
static HybRecord HybRecordGet(HybRecords *r, Mat A)
{
  const PetscObjectId id  = ((PetscObject)A)->id;
  HybRecord           rec = HybRecordFind(r, id), *head;

  if (!rec && r->live < HYB_RECORDS_MOST && (rec = (HybRecord)calloc(1, sizeof(*rec)))) {
    head                = &r->table[(size_t)id % HYB_RECORDS_LEAVING];
    rec->id             = id;
    rec->next           = *head;
    rec->kind.matrices  = 1;
    rec->kind.key.level = -1;
    snprintf(rec->kind.key.of, sizeof(rec->kind.key.of), "%s", HybRunMatrix(&r->run));
    *head = rec;
    r->live++;
  }
  return rec ? rec : HybRecordFind(r, 0);
}

/* What A is called, how large it is, where it lives */
static void HybRecordLook(HybRecords *r, Mat A, HybRecord rec)
{
  HybRecordKey  *key = &rec->kind.key;
  HybRecordFacts facts;
  PetscMPIInt    size = 1;

  if (!rec->id) return; /* that of many */
  (void)MPI_Comm_size(PetscObjectComm((PetscObject)A), &size);
  if (!rec->placed) {
    HybRecordLabel(((PetscObject)A)->name, key->name);
    HybRecordLabel(((PetscObject)A)->prefix, key->prefix);
    key->level = HybPrefixLevel(key->prefix);
    key->role  = size > 1 ? HYB_ROLE_PARALLEL : r->size > 1 ? HYB_ROLE_PART
                                                            : HYB_ROLE_MATRIX;
    if (key->role != HYB_ROLE_PART) {
      key->rows = A->rmap->N;
      key->cols = A->cmap->N;
    }
  }
  if (size > 1 || !(*r->describe)(A, &facts)) return;
  rec->kind.nnz         = facts.nnz;
  rec->kind.sendings    = facts.sendings;
  rec->kind.hostbytes   = (PetscLogDouble)facts.hostbytes;
  rec->kind.devicebytes = (PetscLogDouble)facts.devicebytes;
  snprintf(rec->kind.where, sizeof(rec->kind.where), "%s", facts.where);
}

/* Of so many calls on a device, by whatever method, the next one is to be timed for how many? */
static PetscInt64 HybRecordDeviceWeight(HybRecord rec, int op)
{
  PetscInt64 calls = 0;

  if (!HybOpIsSampled(op)) return 1;
  for (int k = 0; k < rec->kind.nlines; k++)
    if ((int)rec->kind.lines[k].op == op && rec->kind.lines[k].where[0] == 'd') calls += rec->kind.lines[k].calls;
  return HybRecordWeight(calls);
}

/* Of a matrix that has gone: its figures go to its kind, and it is freed */
static void HybRecordFold(HybRecords *r, HybRecord rec)
{
  HybRecord *at = &r->table[HYB_RECORDS_LEAVING];

  while (*at != rec) at = &(*at)->next;
  *at = rec->next;
  HybKindsMerge(r->kinds, &r->nkinds, &rec->kind, PETSC_FALSE);
  free(rec);
}

/* A begin or an end of a timer, in the stream; no: it failed, which is the device's, and somebody else's to tell */
static PetscBool HybRecordMark(const HybExec *x, PetscInt64 number, PetscBool end)
{
  return (PetscBool)!HYB_QUIETLY(x->backend->mark(x, (int)(number % HYB_TIMERS), end));
}

/* Takes from the timers, oldest first, what has ended. wait: so many of them are waited for, those that have ended
   included. One that fails has no time. */
void HybRecordsCollect(HybRecords *r, PetscInt64 wait)
{
  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  for (; r->timers[0] < r->timers[1]; r->timers[0]++, wait--) {
    const int             k       = (int)(r->timers[0] % HYB_TIMERS);
    const HybRecordTimer *t       = &r->timer[k];
    double                seconds = -1;

    if (!t->record) { /* it is under way, or it failed */
      if (wait <= 0) break;
      continue;
    }
    if (!HybGlueState.device->elapsed(k, (PetscBool)(wait > 0), &seconds)) {
      if (seconds < 0) break;
      HybLineTimed(&t->record->kind.lines[t->line], t->part, seconds, t->weight);
    }
    if (!--t->record->pending && t->record->left) HybRecordFold(r, t->record);
  }
  (void)PetscPopErrorHandler();
}

PetscErrorCode HybRecordStart(HybRecordOp op, Mat A, const HybExec *x)
{
  HybRecords       *r = HybGlueState.report.records;
  HybRecordRunning *o = &r->running[op];

  PetscFunctionBegin;
  HybMovedGet(&o->before);
  o->begun  = PETSC_TRUE;
  o->timing = (PetscBool) !(x && HybExecOnDevice(x)); /* what has no x is the host's, and the waits in it */
  o->timer  = -1;
  if (o->timing) {
    PetscCall(PetscTime(&o->started));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (HybOpIsSampled((int)op) && !HybRecordDeviceWeight(HybRecordGet(r, A), (int)op)) PetscFunctionReturn(PETSC_SUCCESS);
  /* later, most of them are read without asking in vain */
  if (r->timers[1] - r->timers[0] >= HYB_TIMERS / 2) HybRecordsCollect(r, 0);
  /* none is free: this call is not timed */
  if (r->timers[1] - r->timers[0] >= HYB_TIMERS || !HybRecordMark(x, r->timers[1], PETSC_FALSE)) PetscFunctionReturn(PETSC_SUCCESS);
  o->timing                              = PETSC_TRUE;
  o->timer                               = r->timers[1]++;
  r->timer[o->timer % HYB_TIMERS].record = NULL;
  r->timer[o->timer % HYB_TIMERS].part   = r->run.part;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operation's time, which by a timer comes later */
static void HybRecordTime(HybRecords *r, HybRecordOp op, const HybExec *x, HybRecord rec, HybRecordLine *l)
{
  const PetscInt64 number = r->running[op].timer;
  PetscLogDouble   now;

  (void)PetscTime(&now);
  if (number < 0) {
    HybLineTimed(l, r->run.part, now - r->running[op].started, 1);
    l->timed++;
  } else if (number >= r->timers[0] && HybRecordMark(x, number, PETSC_TRUE)) {
    HybRecordTimer *t = &r->timer[number % HYB_TIMERS];

    t->weight = HybRecordDeviceWeight(rec, (int)op);
    t->line   = (int)(l - rec->kind.lines);
    t->record = rec;
    rec->pending++;
    l->timed++;
  } /* else there is no timer any more, and others stand for this call */
  HybMomentTake(r, now);
  r->running[op].timing = PETSC_FALSE; /* one start, one stop */
}

PetscErrorCode HybRecordStop(HybRecordOp op, Mat A, const HybExec *x, const char *method, const char *detail, PetscLogDouble flops, PetscLogDouble bytes)
{
  HybRecords     *r = HybGlueState.report.records;
  HybRecord       rec;
  HybRecordLine  *l;
  const PetscBool device = (PetscBool)(x && HybExecOnDevice(x));
  const char     *where  = device ? "device" : x || (int)op < (int)HYB_RECORD_EVENTS ? "host"
                                                                                     : "";

  PetscFunctionBegin;
  if (op == HYB_RECORD_FACTOR && !strcmp(method, "cusparse")) where = "device";
  rec = HybRecordGet(r, A);
  l   = HybKindLine(&rec->kind, (int)op, where, method, detail);
  if (!l) PetscFunctionReturn(PETSC_SUCCESS);
  if (r->running[op].begun) {
    HybMoved now;

    HybMovedGet(&now);
    HybMovedAdd(&now, &r->running[op].before, -1);
    HybMovedAdd(&l->moved, &now, 1);
    r->running[op].begun = PETSC_FALSE;
  }
  if (r->running[op].timing) HybRecordTime(r, op, x, rec, l);
  if (r->why[0] && (int)op < (int)HYB_RECORD_EVENTS) { /* events are steps of others, whose end is still to come */
    memcpy(l->why, r->why, sizeof(l->why));
    r->why[0] = 0;
  }
  l->calls++;
  /* the 1st, 2nd, 4th, ... time */
  if (!(l->calls & (l->calls - 1))) HybRecordLook(r, A, rec);
  /* the parent's own transposed products */
  l->flops += flops > 0 || !HybOpIsMult((int)op) ? flops : 2.0 * (PetscLogDouble)rec->kind.nnz;
  l->bytes += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybRecordWhy(const char *text)
{
  HybRecords *r = HybGlueState.report.records;

  if (!HybRecording()) return;
  memset(r->why, 0, sizeof(r->why));
  snprintf(r->why, sizeof(r->why), "%s", text);
}

PetscErrorCode HybRecordPhase(HybPhase phase, Mat A, PetscBool end)
{
  const HybRecordOp op = (HybRecordOp)((int)HYB_RECORD_EVENTS + (int)HYB_OPS + (int)phase);

  PetscFunctionBegin;
  if (!end)
    PetscCall(HybRecordBegin(op, A, NULL));
  else
    PetscCall(HybRecordEnd(op, A, NULL, "", "", 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A block's key is its parallel matrix's but for the role */
static void HybRecordPlace(HybRecord rec, HybRecord parent, HybRole role)
{
  if (!rec->id || !parent->id) return;
  rec->kind.key      = parent->kind.key;
  rec->kind.key.role = role;
  rec->parent        = parent->id;
  rec->placed        = PETSC_TRUE;
}

static void HybRecordPlaceBlocks(HybRecords *r, HybRecord parent)
{
  if (!parent->id || parent->kind.key.role != HYB_ROLE_PARALLEL) return;
  for (int k = 0; k < HYB_RECORDS_LEAVING; k++)
    for (HybRecord b = r->table[k]; b; b = b->next)
      if (b->placed && b->parent == parent->id) HybRecordPlace(b, parent, b->kind.key.role);
}

void HybRecordProduct(Mat C, const char *by, Mat from)
{
  HybRecords *r = HybGlueState.report.records;
  HybRecord   source, rec;
  PetscBool   galerkin;

  if (!HybRecording()) return;
  source = HybRecordGet(r, from);
  rec    = HybRecordGet(r, C);
  /* of a graph it makes no level */
  galerkin = (PetscBool)(!strcmp(by, "PtAP") && strcmp(HybRunMatrix(&r->run), "GAMG's graph"));
  HybRecordLook(r, from, source);
  if (galerkin && source->id) source->kind.key.grid = 1;
  if (!rec->id) return;
  if (galerkin) {
    rec->kind.key.grid  = 1;
    rec->kind.key.depth = source->kind.key.depth + 1;
  }
  memset(rec->kind.key.origin, 0, sizeof(rec->kind.key.origin));
  snprintf(rec->kind.key.origin, sizeof(rec->kind.key.origin), "%s", by);
  HybRecordLook(r, C, rec);
  HybRecordPlaceBlocks(r, source);
  HybRecordPlaceBlocks(r, rec);
}

void HybRecordBlocks(Mat A, Mat diagonal, Mat offdiagonal)
{
  HybRecords *r = HybGlueState.report.records;
  HybRecord   rec;

  if (!HybRecording()) return;
  rec = HybRecordGet(r, A);
  HybRecordLook(r, A, rec);
  if (diagonal) HybRecordPlace(HybRecordGet(r, diagonal), rec, HYB_ROLE_DIAGONAL);
  if (offdiagonal) HybRecordPlace(HybRecordGet(r, offdiagonal), rec, HYB_ROLE_OFFDIAGONAL);
}

void HybRecordGone(Mat A)
{
  HybRecords *r   = HybGlueState.report.records;
  HybRecord   rec = HybRecording() ? HybRecordFind(r, ((PetscObject)A)->id) : NULL, *at;

  if (!rec) return;
  HybRecordLook(r, A, rec);
  HybRecordPlaceBlocks(r, rec);
  for (at = &r->table[(size_t)rec->id % HYB_RECORDS_LEAVING]; *at != rec; at = &(*at)->next)
    ;
  *at = rec->next;
  r->live--;
  rec->left                     = PETSC_TRUE;
  rec->next                     = r->table[HYB_RECORDS_LEAVING];
  r->table[HYB_RECORDS_LEAVING] = rec;
  if (!rec->pending) HybRecordFold(r, rec);
}

int HybRecordsNow(HybRecords *r)
{
  int n = 0;

  for (int k = 0; k < r->nkinds; k++) HybKindsMerge(r->merged, &n, &r->kinds[k], PETSC_FALSE);
  for (int k = 0; k <= HYB_RECORDS_LEAVING; k++)
    for (HybRecord rec = r->table[k]; rec; rec = rec->next) HybKindsMerge(r->merged, &n, &rec->kind, PETSC_FALSE);
  return n;
}

/* what it is of GAMG's: not square, the two are others */
static const char *HybKindOf(const HybRecordKey *key)
{
  if (key->rows == key->cols) return key->of;
  return !strcmp(key->of, "GAMG's graph") ? "GAMG's aggregates" : !strcmp(key->of, "GAMG's level") ? "GAMG's prolongator"
                                                                                                   : key->of;
}

/* how a kind of matrices is called, without its size */
void HybKindName(const HybRecordKey *key, char text[], size_t length)
{
  if (key->role == HYB_ROLE_OTHER)
    snprintf(text, length, "other matrices");
  else if (key->role == HYB_ROLE_PART && key->origin[0] && !key->of[0])
    snprintf(text, length, "product %s%s%s%s", key->origin, key->prefix[0] ? " (" : "", key->prefix, key->prefix[0] ? ")" : "");
  else if (key->name[0] && key->prefix[0])
    snprintf(text, length, "%s (%s)", key->name, key->prefix);
  else if (key->name[0] || key->prefix[0])
    snprintf(text, length, "%s", key->name[0] ? key->name : key->prefix);
  else if (key->grid)
    snprintf(text, length, "multigrid's operator");
  else if (key->of[0])
    snprintf(text, length, "%s%s%s%s", HybKindOf(key), key->origin[0] ? " (product " : "", key->origin, key->origin[0] ? ")" : "");
  else if (key->origin[0])
    snprintf(text, length, "product %s", key->origin);
  else
    snprintf(text, length, "unnamed");
}

void HybKindLabel(const HybRecordKey *key, char text[], size_t length)
{
  char name[2 * HYB_RECORD_LABEL + 8], role[32] = "";

  HybKindName(key, name, sizeof(name));
  if (key->role == HYB_ROLE_DIAGONAL || key->role == HYB_ROLE_OFFDIAGONAL || key->role == HYB_ROLE_PART) snprintf(role, sizeof(role), ", %s", HybRoleName(key->role));
  if (key->rows)
    snprintf(text, length, "%s %lld x %lld%s", name, (long long)key->rows, (long long)key->cols, role);
  else
    snprintf(text, length, "%s%s", name, role);
}

/* run.h: how the hunter draws, does and compares, see hunt.h */
#ifndef HUNT_RUN_H
#define HUNT_RUN_H
#include "again.h"

/* of any process's error, which another one may wait for ever to hear */
static inline PetscErrorCode Tell(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType type, const char *message, void *ctx)
{
  fprintf(stderr, "[%d] error %d in %s, %s:%d%s%s\n", (int)Rank, (int)n, function, file, line, type == PETSC_ERROR_INITIAL ? ": " : "", type == PETSC_ERROR_INITIAL && message ? message : "");
  return n;
}

/* one operation on both; with stop not on ours after an error of MATAIJ */
static inline PetscErrorCode Apply(Hunt *h, const Operation *op, const char *text, PetscBool stop, Seen before[2], PetscErrorCode e[2])
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2 && !(stop && e[0]); k++) {
    STACK_SAVE;
    if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s %s %d x %d\n", k ? "ours" : "MATAIJ", text, (int)h->M, (int)h->N));
    PetscCall(SeenGet(h->p->m[k], &before[k]));
    PetscCall(Side(k));
    PetscCall(PetscPushErrorHandler(PairsTrail ? Tell : PetscReturnErrorHandler, NULL));
    e[k] = (*op->apply)(h, k, h->p->m[k]);
    PetscCall(PetscPopErrorHandler());
    STACK_RESTORE;
  }
  PetscCall(Side(0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what both have read, and the vectors that they have made */
static inline PetscErrorCode CompareFound(Hunt *h, const char *name)
{
  PetscInt  n    = PetscMin(h->n[0], h->n[1]);
  PetscBool same = (PetscBool)(h->n[0] == h->n[1]);
  PetscReal size = 0;

  PetscFunctionBeginUser;
  for (PetscInt q = 0; q < n; q++)
    if (!PetscIsInfOrNanScalar(h->result[0][q])) size = PetscMax(size, PetscAbsScalar(h->result[0][q]));
  for (PetscInt q = 0; q < n; q++) {
    if (PairsScalarsAgree(h->result[0][q], h->result[1][q], size)) continue;
    same = PETSC_FALSE;
    if (PairsVerbose) printf("[%d] result %d: MATAIJ %g, ours %g\n", Rank, (int)q, (double)PetscRealPart(h->result[0][q]), (double)PetscRealPart(h->result[1][q]));
  }
  if (PairsVerbose && h->found[0] != h->found[1]) printf("[%d] %s: %g by MATAIJ, %g by ours\n", Rank, name, (double)h->found[0], (double)h->found[1]);
  if (!(PetscAbsReal(h->found[0] - h->found[1]) < (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-9))) same = PETSC_FALSE;
  PetscCall(PairsCount(same, name, "what it finds"));
  if (h->x[0] && h->x[1]) PetscCall(PairsVectors(h->x[0], h->x[1], name, "the vector"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the whole matrix does not show: where an entry lies, and the columns of the second block */
static inline PetscErrorCode CompareBlocks(Mat A, Mat H, const char *name)
{
  Mat       a[2], h[2];
  PetscBool ours, same = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)H, MATMPIAIJ, &ours));
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &a[0], &a[1], NULL));
  PetscCall(MatMPIAIJGetSeqAIJ(H, &h[0], &h[1], NULL));
  for (int b = 0; b < 2; b++) same = (PetscBool)(same && a[b]->rmap->n == h[b]->rmap->n && a[b]->cmap->n == h[b]->cmap->n);
  PetscCall(PairsAll(&same));
  PetscCall(PairsCount(same, name, "sizes of the blocks"));
  for (int b = 0; b < 2 && same; b++) PetscCall(PairsEntries(a[b], h[b], name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where -mat_seqaij_type gave H its operations, that option is not set now */
static inline PetscErrorCode CompareDuplicate(Mat H, const char *name)
{
  MatType   type;
  PetscBool same;
  Mat       D;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(H, &type));
  PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &D));
  PetscCall(PetscObjectTypeCompare((PetscObject)D, type, &same));
  PetscCall(PairsCount(same, name, "the type of a duplicate"));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how: not always both, since products need the values on the device, entries on the host */
static inline PetscErrorCode Compare(Hunt *h, const Seen before[2], const char *name, PetscInt how)
{
  PetscFunctionBeginUser;
  PetscCall(CompareFound(h, name));
  for (int q = 0; q < 3; q++) {
    Mat *m = q == 0 ? h->p->m : q == 1 ? h->q->m
                                       : h->made.m;
    Seen now[2];

    if (!m[0] || !m[1]) continue;
    for (int k = 0; k < 2; k++) PetscCall(SeenGet(m[k], &now[k]));
    PetscCall(PairsCompareSeen(now, q == 0 && !h->replaced ? before : NULL, q == 2 ? "what was made" : q ? "the other"
                                                                                                         : name));
    if (!now[0].assembled || !now[1].assembled || memcmp(now[0].sizes, now[1].sizes, 4 * sizeof(PetscInt))) continue;
    if (how & 1) PetscCall(PairsProducts(m[0], m[1], name));
    if (how & 2) PetscCall(PairsEntries(m[0], m[1], name));
    if (how & 2 && now[0].blocks[0]) PetscCall(CompareBlocks(m[0], m[1], name));
    if (SubType[0]) PetscCall(CompareDuplicate(m[1], name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Drop(Member *p)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&p->m[k], &p->transposed[k]));
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a program hunts with: tables, how the pool's pairs come to be, how many steps a run has */
typedef struct {
  const Table *tables;
  int          n;
  PetscErrorCode (*make)(Member *); /* into an empty one */
  PetscInt steps;
} Hunter;

static PetscBool Short; /* see hunt.h: then there must be some of both */
static PetscInt  Refusals, Comparisons;

static inline PetscErrorCode Fresh(const Hunter *hunter, Member *p)
{
  PetscFunctionBeginUser;
  PetscCall(Drop(p));
  PetscCall((*hunter->make)(p));
  PetscCall(Side(0));
  p->lineage = ++Lineages;
  p->first   = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One process's error alone is nobody's, for the others would wait. *ok: none, and what was done has been compared */
static inline PetscErrorCode Judge(Hunt *h, const Operation *op, const Seen before[2], PetscErrorCode e[2], PetscInt how, PetscBool *ok)
{
  PetscFunctionBeginUser;
  *ok = PETSC_FALSE;
  if (Short && e[1] == PETSC_ERR_MEM) {
    Refusals++;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (e[0] != e[1] && (Size == 1 || !e[0])) printf("[%d] error of MATAIJ %d, of ours %d\n", (int)Rank, (int)e[0], (int)e[1]);
  if (Size == 1 || (!e[0] && e[1])) PetscCall(PairsCount((PetscBool)(e[0] == e[1]), op->name, "errors"));
  if (e[0] || e[1]) PetscFunctionReturn(PETSC_SUCCESS);
  if (Short) PetscCall(PetscPushErrorHandler(PairsTrail ? Tell : PetscReturnErrorHandler, NULL));
  e[1] = Compare(h, before, op->name, how);
  if (Short) PetscCall(PetscPopErrorHandler());
  if (!Short || e[1] != PETSC_ERR_MEM) PetscCall(e[1]);
  Refusals += e[1] == PETSC_ERR_MEM;
  Comparisons += !e[1];
  *ok = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what p is after an operation without an error */
static inline PetscErrorCode After(Hunt *h, const Operation *op, PetscObjectState before)
{
  const Effect effect = op->effect == REPLACES && h->same ? KEEPS : op->effect;

  PetscFunctionBeginUser;
  /* some of MATAIJ's operations leave a matrix that refuses new entries, and not the same ones as ours; and claims
     that end by the coincidence of two states */
  for (int k = 0; k < 2 && op->effect != KEEPS; k++) {
    PetscCall(MatSetOption(h->p->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    if (h->replaced) PetscCall(NotSymmetric(h->p->m[k]));
  }
  if (h->replaced || effect == REPLACES) Forget(h->p);
  if (h->replaced) h->p->plain = PETSC_FALSE;
  /* MATAIJ is another object after some, and a parallel one's state is a sum, which another pattern may have too: it
     would transpose past the old one */
  for (int k = 0; k < 2 && (h->replaced || effect == REPLACES || (Size > 1 && effect == PATTERN)); k++) PetscCall(MatDestroy(&h->p->transposed[k]));
  if (op->effect != KEEPS || h->p->m[0]->nonzerostate != before) {
    h->p->lineage = ++Lineages;
    h->p->first   = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what was made takes a place in the pool, if it is one of ours and not large */
static inline PetscErrorCode Keep(Hunt *h, Member *slot)
{
  PetscInt  m, n;
  PetscBool ok;

  PetscFunctionBeginUser;
  if (!h->made.m[0] || !h->made.m[1]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetSize(h->made.m[0], &m, &n));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)h->made.m[0], &ok, MATSEQAIJ, MATMPIAIJ, ""));
  if (!ok || m > 40 || n > 40) {
    PetscCall(Drop(&h->made));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  h->made.lineage = h->same && slot != h->p ? h->p->lineage : ++Lineages;
  PetscCall(Drop(slot));
  *slot = h->made;
  if (!slot->m[0]->product || !slot->m[1]->product) slot->product = 0;
  if (slot->product) PetscCall(ProductStates(slot->m[0], slot->states));
  for (int k = 0; k < 2; k++) PetscCall(MatSetOption(slot->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static char             Only[512], Not[512];
static inline PetscBool Chosen(const char *name)
{
  return (PetscBool)((!Only[0] || strstr(Only, name)) && !strstr(Not, name));
}

static inline PetscErrorCode Step(const Hunter *hunter, PetscInt operations)
{
  PetscInt         i = Draw(operations), how, p, q;
  const Table     *t = hunter->tables;
  const Operation *op;
  Hunt             h;
  Member          *slot;
  PetscErrorCode   e[2] = {PETSC_SUCCESS, PETSC_SUCCESS};
  Seen             before[2];
  char             text[160];
  PetscReal        norm;
  PetscBool        ok;

  PetscFunctionBeginUser;
  while (i >= t->n) i -= t++->n;
  op = &t->operation[i];
  PetscCall(PetscMemzero(&h, sizeof(h)));
  p    = Draw(POOL);
  q    = Draw(POOL);
  slot = &Pool[Draw(POOL)];
  how  = Draw(4);
  for (int k = 0; k < DRAWS; k++) h.r[k] = Draw(100000);
  h.v = (PetscReal)Draw(40) / 10 - 2;
#if defined(PETSC_USE_COMPLEX)
  h.v += PETSC_i * ((PetscReal)(h.r[0] % 5) / 10 - 0.2);
#endif
  if (Wild && Draw(60) == 0) h.v = h.v / (PetscReal)(how - how);
  if (!Chosen(op->name)) PetscFunctionReturn(PETSC_SUCCESS);
  ok = PETSC_FALSE;
  for (PetscInt k = 0; k < POOL * POOL && !ok; k++) {
    h.p = &Pool[(p + k) % POOL];
    h.q = &Pool[(q + k / POOL) % POOL];
    PetscCall(MatGetSize(h.p->m[0], &h.M, &h.N));
    PetscCall(MatGetOwnershipRange(h.p->m[0], &h.start, &h.end));
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)h.p->m[0], MATMPIAIJ, &h.parallel));
    ok = (PetscBool)(!op->fits || (*op->fits)(&h));
  }
  if (!ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, sizeof(text), " %s(%d,%d,%d;%d,%d,%d,%d,%d,%d;%g)", op->name, (int)(h.p - Pool), (int)(h.q - Pool), (int)(slot - Pool), (int)h.r[0], (int)h.r[1], (int)h.r[2], (int)h.r[3], (int)h.r[4], (int)h.r[5], (double)PetscRealPart(h.v)));
  PetscCall(PetscStrlcat(Trail, text, sizeof(Trail)));
  for (int k = 0; k < 2 && Size > 1; k++) { /* an error must not be one process's alone */
    PetscCall(MatSetOption(h.p->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetOption(h.p->m[k], MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
  }
  /* after an error of MATAIJ on several processes nobody knows what waits for the others, or not */
  PetscCall(Apply(&h, op, text, (PetscBool)(Size > 1), before, e));
  PetscCall(Judge(&h, op, before, e, how, &ok));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&h.x[k]));
  if (!ok) { /* what an error leaves behind, nobody promises */
    Forget(h.p);
    Forget(h.q);
    if (h.q != h.p) PetscCall(Fresh(hunter, h.q));
    PetscCall(Fresh(hunter, h.p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(After(&h, op, before[0].nonzerostate));
  PetscCall(Keep(&h, slot));
  /* new ones now and then, and before values grow without end */
  for (q = 0; q < POOL; q++) {
    PetscCall(MatNorm(Pool[q].m[0], NORM_FROBENIUS, &norm));
    if ((norm > 1e6 && !PetscIsInfOrNanReal(norm)) || (PetscIsInfOrNanReal(norm) && Draw(Wild ? 8 : 1) == 0) || Draw(60) == 0) PetscCall(Fresh(hunter, &Pool[q]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode HuntBegin(int *argc, char ***argv)
{
  PetscFunctionBeginUser;
  MatTestLimit(*argc, *argv);
  PetscCall(PetscInitialize(argc, argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-wild", &Wild, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-short", &Short, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trail", &PairsTrail, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ours", Ours, sizeof(Ours), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", SubType, sizeof(SubType), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", Only, sizeof(Only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-cases", Only, sizeof(Only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-not", Not, sizeof(Not), NULL));
  PairsVerbose = (PetscBool)(PairsTrail || Only[0]);
  PairsShort   = Short;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline int HuntRandom(int argc, char **argv, const Hunter *hunter)
{
  PetscInt runs = 1, steps = hunter->steps, operations = 0;

  PetscFunctionBeginUser;
  PetscCall(HuntBegin(&argc, &argv));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &steps, NULL));
  PetscCall(Side(0));
  for (int t = 0; t < hunter->n; t++) operations += hunter->tables[t].n;
  MatTestName = Trail;
  for (PetscInt run = 0; run < runs; run++, MatTestSeed++) {
    PetscInt failed = MatTestFailed;

    State    = (unsigned long)MatTestSeed * 1000003ul + 17ul;
    Trail[0] = 0;
    if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "seed %d\n", (int)MatTestSeed));
    for (int q = 0; q < POOL; q++) PetscCall(Fresh(hunter, &Pool[q]));
    for (PetscInt step = 0; step < steps && MatTestFailed == failed; step++) PetscCall(Step(hunter, operations));
    for (int q = 0; q < POOL; q++) PetscCall(Drop(&Pool[q]));
  }
  if (Short) {
    MatTestName = "little memory";
    MatTestCheck(Refusals > 0, "ours fails for want of it now and then");
    MatTestCheck(Comparisons > 10 * runs, "most of what is done is compared");
    if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d refusals, %d comparisons\n", (int)Refusals, (int)Comparisons));
  }
  for (int q = 0; q < 3; q++) PetscCall(MatNullSpaceDestroy(&Spaces[q]));
  if (!Rank && File[0]) (void)unlink(File);
  return MatTestEnd();
}

/* an operation on a pair of this origin, and with again once more after the device has written new values */
static inline PetscErrorCode EachKind(const Operation *op, Pattern pattern, Kind kind, PetscInt again)
{
  Member p = {.lineage = 1};
  Hunt   h = {
      .p = &p, .q = &p, .r = {again, (PetscInt)kind}
  };
  PetscErrorCode e[2];
  Seen           before[2], unused[2];
  PetscBool      ok;
  char           name[160];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s%s", op->name, KindNames[kind], again ? ", again" : ""));
  for (int k = 0; k < 2; k++) PetscCall(PairsMake(kind, pattern, OurType(k), ROWS, ROWS, &p.m[k]));
  h.M = h.N = ROWS;
  PetscCall(Apply(&h, op, name, PETSC_FALSE, before, e));
  if (again && !e[0] && !e[1]) {
    for (int k = 0; k < 2; k++) PetscCall(OtherValues(p.m[k], 0.75));
    PetscCall(Apply(&h, op, name, PETSC_FALSE, unused, e));
  }
  ok = (PetscBool)(e[0] == e[1]);
  if (!ok || (PairsVerbose && e[0])) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: error of MATAIJ %d, of ours %d\n", name, (int)e[0], (int)e[1]));
  PetscCall(PairsCount(ok, name, "errors"));
  ok = (PetscBool)(!e[0] && !e[1]);
  PetscCall(PairsAll(&ok));
  if (ok) PetscCall(Compare(&h, before, name, 3));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&h.x[k]));
  PetscCall(Drop(&h.made));
  PetscCall(Drop(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

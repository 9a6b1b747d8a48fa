/*
  The hunter: random operations, done alike to a MATAIJ and to a matrix of the type, of all origins (pairs.h), of
  few and of no rows and columns, with and without a diagonal. t604 asks whether entries and products agree after
  what programs do; here there is also what they should not do: claims that are not true, operands that do not
  fit, the same matrix twice, arrays that are held over other operations, headers that get other contents, Inf and
  NaN. And all is compared that a program may see: the error's number, states that moved, claims, null spaces,
  mappings, block sizes, names, prefixes, counts, and what an operation finds.

  -seed N -runs M, -steps S; -trail prints each operation before it is done; -only a,b,c: of these operations;
  -not a,b,c: none of these; -wild: Inf and NaN too; -ours aij: MATAIJ beside itself, in which nothing may differ.

TEST np=1 -runs 100
TEST np=1 -runs 40 -wild
TEST np=2+3 -runs 10
TEST np=1 -runs 10 @emulated
TEST np=1 -runs 10 @emulated -wild -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
TEST np=1 -runs 10 @emulated -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
TEST np=2 -runs 4 @emulated
*/
#include "hunt_write.h"
#include "hunt_make.h"
#include "hunt_read.h"

typedef PetscBool (*Fits)(const Hunt *);

/* On several processes MATAIJ of 3.18 frees twice what a new entry makes of coordinates' arrays */
static PetscBool NewEntriesFit(const Hunt *h)
{
#if PETSC_VERSION_LT(3, 19, 0)
  return (PetscBool)(Size == 1 || h->p->plain);
#else
  (void)h;
  return PETSC_TRUE;
#endif
}

static PetscBool NotEmpty(const Hunt *h)
{
  return (PetscBool)(h->M > 0 && h->N > 0);
}

/* MATAIJ of 3.18 writes into a block that it freed when the diagonal block is not square */
static PetscBool ZeroRowsFits(const Hunt *h)
{
  return (PetscBool)(h->M > 0 && h->N > 0 && (Size == 1 || h->M == h->N));
}

static PetscBool OtherFits(const Hunt *h)
{
  PetscInt m, n;

  PetscCallAbort(PETSC_COMM_SELF, MatGetSize(h->q->m[0], &m, &n));
  return (PetscBool)(m == h->M && n == h->N);
}

/* one in eight does not fit, on one process */
static PetscBool CombineFits(const Hunt *h)
{
  return (PetscBool)(OtherFits(h) || (Size == 1 && h->r[3] % 8 == 0));
}

static PetscBool ProductFits(const Hunt *h)
{
  PetscInt  m, n, rbs, cbs, what = h->r[0] % 6;
  PetscBool square = (PetscBool)(h->M == h->N), known, symmetric;

  if (Size == 1 && h->r[4] % 12 == 0 && what < 3) return PETSC_TRUE;
  if (!h->M || !h->N) return PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, MatGetSize(h->q->m[0], &m, &n));
  if (!m || !n) return PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, MatGetBlockSizes(h->q->m[0], &rbs, &cbs));
  PetscCallAbort(PETSC_COMM_SELF, MatIsSymmetricKnown(h->p->m[0], &known, &symmetric));
  switch (what) {
  case 0: return (PetscBool)(h->N == m);
  case 1: return (PetscBool)(h->M == m && !(h->p == h->q && known && symmetric));
  case 2: return (PetscBool)(square && h->N == m);
  case 3: return (PetscBool)(h->N == m && n == h->M);
  case 4: return (PetscBool)(Size == 1 && h->N == n && rbs == cbs);
  default: return (PetscBool)(Size == 1 && square && h->N == n);
  }
}

static PetscBool PreallocateFits(const Hunt *h)
{
  /* MATAIJ writes beyond its arrays where the rows were shortened */
  if (h->r[0] % 4 == 1 && !h->p->first) return PETSC_FALSE;
  if (h->r[0] % 4 == 1 && h->M < Size) return PETSC_FALSE; /* an error of some processes alone */
  if (!NewEntriesFit(h)) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* with another pattern than the last time MATAIJ writes beyond the array of the stored values */
static PetscBool StoreFits(const Hunt *h)
{
  return (PetscBool)(!h->p->stored || h->p->stored == h->p->lineage);
}

static PetscBool RetrieveFits(const Hunt *h)
{
  return (PetscBool)((!h->p->stored && Size == 1) || h->p->stored == h->p->lineage);
}

/* MATAIJ of 3.18 looks for the diagonal entries of rows that have none */
static PetscBool DiagonalFits(const Hunt *h)
{
  return (PetscBool)(h->M == h->N ? NewEntriesFit(h) : Size == 1 && h->M < h->N);
}

/* MatFDColoringCreate() divides by what is zero for few entries */
static PetscBool ColoringFits(const Hunt *h)
{
  PetscBool some;
  MatInfo   info;

  PetscCallAbort(PETSC_COMM_SELF, MatGetInfo(h->p->m[0], MAT_LOCAL, &info));
  some = (PetscBool)(h->M > 1 && h->N > 1 && info.nz_used >= 2 * (PetscLogDouble)(h->end - h->start));
  PetscCallAbort(PETSC_COMM_SELF, PairsAll(&some));
  return some;
}

/* MATAIJ takes its allocated length for the number of entries */
static PetscBool ColumnsFits(const Hunt *h)
{
  MatInfo info;

  PetscCallAbort(PETSC_COMM_SELF, MatGetInfo(h->p->m[0], MAT_LOCAL, &info));
  return (PetscBool)(Size == 1 && h->M && h->N && info.nz_used > 0 && info.nz_allocated == info.nz_used);
}

/* on several processes MATAIJ may wait for ever for parts of rectangular ones */
static PetscBool SubMatrixFits(const Hunt *h)
{
  return (PetscBool)(h->M && h->N && (Size == 1 || h->M == h->N));
}

static PetscBool HeldFits(const Hunt *h)
{
  return (PetscBool)(Size == 1 && h->M && h->N);
}

/* MATAIJ relaxes rows of equal patterns together, and meets Inf and NaN in another order */
static PetscBool OneProcess(const Hunt *h)
{
  return (PetscBool)(Size == 1 && !Wild && h->M && h->N);
}

typedef enum {
  KEEPS,   /* values at most, or a new pattern that is told */
  PATTERN, /* may change the pattern */
} Effect;

static const struct {
  const char *name;
  PetscErrorCode (*apply)(Hunt *, int, Mat);
  Fits   fits; /* NULL: always */
  Effect effect;
} Operations[] = {
  {"values",        Values,        NULL,            KEEPS  },
  {"diagonalscale", DiagonalScale, NULL,            KEEPS  },
  {"diagonal",      Diagonal,      DiagonalFits,    PATTERN},
  {"setvalues",     SetValues,     NewEntriesFit,   PATTERN},
  {"setother",      SetOther,      NewEntriesFit,   PATTERN},
  {"zerorows",      ZeroRows,      ZeroRowsFits,    PATTERN},
  {"combine",       Combine,       CombineFits,     PATTERN},
  {"array",         Array,         NULL,            KEEPS  },
  {"random",        Random,        NULL,            KEEPS  },
  {"option",        Option,        NULL,            KEEPS  },
  {"claim",         Claim,         NULL,            KEEPS  },
  {"store",         Store,         StoreFits,       KEEPS  },
  {"retrieve",      Retrieve,      RetrieveFits,    KEEPS  },
  {"coo",           COO,           NULL,            PATTERN},
  {"preallocate",   Preallocate,   PreallocateFits, PATTERN},
  {"small",         Small,         NULL,            PATTERN},
  {"hang",          Hang,          NULL,            KEEPS  },
  {"columns",       Columns,       ColumnsFits,     PATTERN},
  {"held",          Held,          HeldFits,        KEEPS  },
  {"duplicate",     Duplicate,     NULL,            KEEPS  },
  {"transpose",     Transpose,     NULL,            PATTERN},
  {"product",       Product,       ProductFits,     KEEPS  },
  {"submatrix",     SubMatrix,     SubMatrixFits,   KEEPS  },
  {"permute",       Permute,       NotEmpty,        KEEPS  },
  {"convert",       Convert,       NotEmpty,        PATTERN},
  {"dense",         Dense,         NotEmpty,        KEEPS  },
  {"replace",       Replace,       NULL,            PATTERN},
  {"load",          Load,          NotEmpty,        PATTERN},
  {"coloring",      Coloring,      ColoringFits,    KEEPS  },
  {"local",         Local,         NotEmpty,        KEEPS  },
  {"norms",         Norms,         NULL,            KEEPS  },
  {"rows",          Rows,          NotEmpty,        KEEPS  },
  {"questions",     Questions,     OtherFits,       KEEPS  },
  {"mults",         Mults,         NULL,            KEEPS  },
  {"states",        States,        NULL,            KEEPS  },
  {"solvers",       Solvers,       OneProcess,      KEEPS  },
};
#define OPERATIONS ((PetscInt)PETSC_STATIC_ARRAY_LENGTH(Operations))

static PetscErrorCode Drop(Member *p)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&p->m[k]));
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fresh(Member *p)
{
  const PetscInt sizes[] = {12, 12, 12, 12, 7, 7, 1, 0};
  PetscInt       some = Size > 1 ? 7 : 8, M = sizes[Draw(some)], N = Draw(3) ? M : sizes[Draw(some)], let = Draw(3);
  Kind           kind    = (Kind)Draw(KINDS);
  Pattern        pattern = (Pattern)Draw(PATTERNS);

  PetscFunctionBeginUser;
  if (!M || !N) kind = HOSTMADE;
  if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "pair %d: %s, pattern %d, %d x %d\n", (int)(p - Pool), KindNames[kind], (int)pattern, (int)M, (int)N));
  PetscCall(Drop(p));
  for (int k = 0; k < 2; k++) {
    PetscCall(PairsMake(kind, pattern, OurType(k), M, N, &p->m[k]));
    if (let || Size > 1) PetscCall(MatSetOption(p->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  }
  p->lineage = ++Lineages;
  p->first   = PETSC_TRUE;
  p->plain   = (PetscBool)(kind == HOSTMADE || kind == PROMOTED || kind == LOCKED || kind == CONVERTED);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(Hunt *h, const Seen before[2], const char *name, PetscInt how)
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
  PetscCall(PairsCount(same, name, "what it finds"));
  if (h->x[0] && h->x[1]) PetscCall(PairsVectors(h->x[0], h->x[1], name, "the vector"));
  for (int q = 0; q < 3; q++) {
    Mat *m = q == 0 ? h->p->m : q == 1 ? h->q->m
                                       : h->out;
    Seen now[2];

    if (!m[0] || !m[1]) continue;
    for (int k = 0; k < 2; k++) PetscCall(SeenGet(m[k], &now[k]));
    PetscCall(PairsCompareSeen(now, q == 0 && !h->replaced ? before : NULL, q == 2 ? "what was made" : q ? "the other"
                                                                                                         : name));
    if (!now[0].assembled || !now[1].assembled || memcmp(now[0].sizes, now[1].sizes, 4 * sizeof(PetscInt))) continue;
    /* not always both: products need the values on the device, entries on the host */
    if (how & 1) PetscCall(PairsProducts(m[0], m[1], name));
    if (how & 2) PetscCall(PairsEntries(m[0], m[1], name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of any process's error, which another one may wait for ever to hear */
static PetscErrorCode Tell(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType type, const char *message, void *ctx)
{
  (void)comm, (void)ctx;
  fprintf(stderr, "[%d] error %d in %s, %s:%d%s%s\n", (int)Rank, (int)n, function, file, line, type == PETSC_ERROR_INITIAL ? ": " : "", type == PETSC_ERROR_INITIAL && message ? message : "");
  return n;
}

static char Only[512], Not[512];

static PetscErrorCode Step(void)
{
  PetscInt       op, how;
  Hunt           h;
  Member        *slot;
  PetscErrorCode e[2] = {PETSC_SUCCESS, PETSC_SUCCESS};
  Seen           before[2];
  char           text[160], *list;
  PetscInt       m, n;
  PetscReal      norm;
  PetscBool      ok;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&h, sizeof(h)));
  op   = Draw(OPERATIONS);
  h.p  = &Pool[Draw(POOL)];
  h.q  = &Pool[Draw(POOL)];
  slot = &Pool[Draw(POOL)];
  how  = Draw(4);
  for (int q = 0; q < DRAWS; q++) h.r[q] = Draw(100000);
  h.v = (PetscReal)Draw(40) / 10 - 2;
  if (Wild && Draw(60) == 0) h.v = h.v / (PetscReal)(op - op);
  PetscCall(MatGetSize(h.p->m[0], &h.M, &h.N));
  PetscCall(MatGetOwnershipRange(h.p->m[0], &h.start, &h.end));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)h.p->m[0], MATMPIAIJ, &h.parallel));
  PetscCall(PetscStrstr(Only, Operations[op].name, &list));
  if (Only[0] && !list) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrstr(Not, Operations[op].name, &list));
  if (list || (Operations[op].fits && !Operations[op].fits(&h))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, sizeof(text), " %s(%d,%d,%d;%d,%d,%d,%d,%d,%d;%g)", Operations[op].name, (int)(h.p - Pool), (int)(h.q - Pool), (int)(slot - Pool), (int)h.r[0], (int)h.r[1], (int)h.r[2], (int)h.r[3], (int)h.r[4], (int)h.r[5], (double)PetscRealPart(h.v)));
  PetscCall(PetscStrlcat(Trail, text, sizeof(Trail)));
  for (int k = 0; k < 2; k++) {
    PAIRS_STACK_SAVE;
    if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s%s %d x %d, compared %d\n", k ? "ours" : "MATAIJ", text, (int)h.M, (int)h.N, (int)how));
    if (Size > 1) { /* an error must not be one process's alone, for which the others would wait */
      PetscCall(MatSetOption(h.p->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatSetOption(h.p->m[k], MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
    }
    PetscCall(SeenGet(h.p->m[k], &before[k]));
    PetscCall(PetscPushErrorHandler(PairsTrail ? Tell : PetscReturnErrorHandler, NULL));
    e[k] = Operations[op].apply(&h, k, h.p->m[k]);
    PetscCall(PetscPopErrorHandler());
    PAIRS_STACK_RESTORE;
    if (Size > 1 && e[0]) break; /* what waits for the others, or not, nobody knows */
  }
  if (Size == 1) {
    if (e[0] != e[1]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "error of MATAIJ %d, of ours %d\n", (int)e[0], (int)e[1]));
    PetscCall(PairsCount((PetscBool)(e[0] == e[1]), Operations[op].name, "errors"));
    ok = (PetscBool)(!e[0] && !e[1]);
  } else {
    ok = (PetscBool)(!e[0] && !e[1]);
    if (!e[0] && e[1]) PetscCall(PetscPrintf(PETSC_COMM_SELF, "[%d] error of ours %d\n", (int)Rank, (int)e[1]));
    if (!e[0] && e[1]) PetscCall(PairsCount(PETSC_FALSE, Operations[op].name, "errors"));
  }
  if (ok) {
    PetscObjectState moved = h.p->m[0]->nonzerostate;

    PetscCall(Compare(&h, before, Operations[op].name, how));
    if (Operations[op].effect == PATTERN)
      /* some of MATAIJ's operations leave a matrix that refuses new entries, and not the same ones as ours; and
         claims that end by the coincidence of two states */
      for (int k = 0; k < 2; k++) {
        PetscCall(MatSetOption(h.p->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
        if (h.replaced) PetscCall(NotSymmetric(h.p->m[k]));
      }
    if (h.replaced || Operations[op].apply == COO) h.p->plain = PETSC_FALSE;
    if (Operations[op].effect == PATTERN || moved != before[0].nonzerostate) {
      h.p->lineage = ++Lineages;
      h.p->first   = PETSC_FALSE;
    }
  } else { /* what an error leaves behind, nobody promises */
    for (int k = 0; k < 2; k++) h.out[k] = NULL;
    if (h.q != h.p) PetscCall(Fresh(h.q));
    PetscCall(Fresh(h.p));
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&h.x[k]));
  if (!ok) PetscFunctionReturn(PETSC_SUCCESS);
  if (h.out[0] && h.out[1]) {
    PetscCall(MatGetSize(h.out[0], &m, &n));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)h.out[0], &ok, MATSEQAIJ, MATMPIAIJ, ""));
    if (ok && m <= 40 && n <= 40) {
      PetscCall(Drop(slot));
      for (int k = 0; k < 2; k++) {
        slot->m[k] = h.out[k];
        PetscCall(MatSetOption(slot->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      }
      slot->lineage = Operations[op].apply == Duplicate && slot != h.p ? h.p->lineage : ++Lineages;
    } else
      for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&h.out[k]));
  }
  /* new ones now and then, and before values grow without end */
  for (int q = 0; q < POOL; q++) {
    PetscCall(MatNorm(Pool[q].m[0], NORM_FROBENIUS, &norm));
    if ((norm > 1e6 && !PetscIsInfOrNanReal(norm)) || (PetscIsInfOrNanReal(norm) && Draw(Wild ? 8 : 1) == 0) || Draw(60) == 0) PetscCall(Fresh(&Pool[q]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int      code = 0;
  PetscInt runs = 1, steps = 30;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &steps, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-wild", &Wild, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trail", &PairsTrail, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ours", Ours, sizeof(Ours), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", Only, sizeof(Only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-not", Not, sizeof(Not), NULL));
  PairsVerbose = PairsTrail;
  MatTestName  = Trail;
  for (PetscInt run = 0; run < runs; run++, MatTestSeed++) {
    PetscInt failed = MatTestFailed;

    State    = (unsigned long)MatTestSeed * 1000003ul + 17ul;
    Trail[0] = 0;
    if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "seed %d\n", (int)MatTestSeed));
    for (int q = 0; q < POOL; q++) PetscCall(Fresh(&Pool[q]));
    for (PetscInt step = 0; step < steps && MatTestFailed == failed; step++) PetscCall(Step());
    for (int q = 0; q < POOL; q++) PetscCall(Drop(&Pool[q]));
  }
  for (int q = 0; q < 3; q++) PetscCall(MatNullSpaceDestroy(&Spaces[q]));
  if (!Rank && File[0]) (void)unlink(File);
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}

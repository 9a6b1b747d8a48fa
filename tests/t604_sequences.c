/*
  Random sequences of operations, done alike to a MATAIJ and to a matrix of the type. The pool holds a few such pairs;
  each step draws an operation of the table below, its arguments and the pairs it is about, may put a new pair into the
  pool, and then asks whether both still agree: in entries, products with a vector, sizes, known symmetries, in the
  blocks on several processes, and in whether there was an error. What single operations do, the other tests look at;
  here caches, options and states are met in the orders that nobody thought of. All is drawn from the seed of a run;
  -seed N -runs 1 repeats the run whose seed a failure names, -trail prints each operation before it is done, -ours aij
  runs MATAIJ beside itself, -short lets ours fail for want of memory.

  With -mat_seqaij_type the second of a pair is a MATAIJ too, made and worked on while the option is set, the first
  while it is not.

TEST np=1 -runs 200
TEST np=1 -runs 100 -mat_seqaij_type seqaijhybridgpu
TEST np=2+3 -runs 20
TEST np=1 -runs 10 @emulated -mat_aijhybridgpu_narrow_min 0
TEST np=1 -runs 10 @emulated -mat_seqaij_type seqaijhybridgpu
TEST np=1 -runs 20 @emulated -short -mat_aijhybridgpu_memory_limit 12000
TEST np=1 -runs 10 @emulated -mat_aijhybridgpu_memory mirror
TEST np=2 -runs 10 @emulated -mat_aijhybridgpu_narrow_min 0
TEST np=1 -runs 40 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1 -mat_aijhybridgpu_promote never
TEST np=1 -runs 20 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
*/
#include "sequences_steps.h"

/* What must hold for an operation to be done: sizes that fit, and no fault of MATAIJ's own */

/* on several processes MATAIJ of 3.18 frees twice what a new entry makes of coordinates' arrays */
static PetscBool NewEntriesFit(const Step *s)
{
#if PETSC_VERSION_LT(3, 19, 0)
  return (PetscBool)(Size == 1 || !s->p->coordinates);
#else
  (void)s;
  return PETSC_TRUE;
#endif
}

static PetscBool DiagonalFits(const Step *s)
{
  return (PetscBool)(s->M == s->N && NewEntriesFit(s));
}

/* MatZeroRows_MPIAIJ of 3.18 writes into a block that it freed when the diagonal block is not square */
static PetscBool ZeroRowsFits(const Step *s)
{
  return (PetscBool)(Size == 1 || s->M == s->N);
}

/* also on each process, where an error of some would leave the others waiting */
static PetscBool CombineFits(const Step *s)
{
  PetscInt size[2][4];
  int      fit;

  for (int k = 0; k < 2; k++) {
    Mat M = k ? s->q->m[0] : s->p->m[0];

    PetscCallAbort(PETSC_COMM_SELF, MatGetSize(M, &size[k][0], &size[k][1]));
    PetscCallAbort(PETSC_COMM_SELF, MatGetLocalSize(M, &size[k][2], &size[k][3]));
  }
  fit = s->p != s->q && !memcmp(size[0], size[1], sizeof(size[0]));
  if (MPI_Allreduce(MPI_IN_PLACE, &fit, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD)) fit = 0;
  return (PetscBool)fit;
}

/* Do the operands' rows and columns that meet lie on the same processes? Else MATAIJ's error is one of some processes
   alone, for which the others wait. */
static PetscBool LayoutsFit(const Step *s)
{
  static const int meet[4][2][2] = {
    {{1, 2}, {1, 2}},
    {{0, 2}, {0, 2}},
    {{1, 2}, {0, 2}},
    {{1, 2}, {0, 3}}
  }; /* rows and columns of the first operand, and of the second */
  PetscInt range[4][2];
  int      fit = 1;

  if (Size == 1) return PETSC_TRUE;
  for (int k = 0; k < 2; k++) {
    Mat M = k ? s->q->m[0] : s->p->m[0];

    PetscCallAbort(PETSC_COMM_SELF, MatGetOwnershipRange(M, &range[2 * k][0], &range[2 * k][1]));
    PetscCallAbort(PETSC_COMM_SELF, MatGetOwnershipRangeColumn(M, &range[2 * k + 1][0], &range[2 * k + 1][1]));
  }
  for (int k = 0; k < 2 && s->r[0] % 6 < 4; k++) {
    const int *m = meet[s->r[0] % 6][k];

    fit = fit && range[m[0]][0] == range[m[1]][0] && range[m[0]][1] == range[m[1]][1];
  }
  if (MPI_Allreduce(MPI_IN_PLACE, &fit, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD)) fit = 0;
  return (PetscBool)fit;
}

/* MPIAIJ has no product with a transpose on the right, and that of SeqAIJ takes the block size of Q's columns for its
   rows'. SeqAIJ computes A^T A as A A where A was said to be symmetric: a claim that need not be true here, or any
   longer */
static PetscBool ProductFits(const Step *s)
{
  PetscInt  m, n, rbs, cbs;
  PetscBool square = (PetscBool)(s->M == s->N), known, symmetric;

  PetscCallAbort(PETSC_COMM_SELF, MatGetSize(s->q->m[0], &m, &n));
  PetscCallAbort(PETSC_COMM_SELF, MatGetBlockSizes(s->q->m[0], &rbs, &cbs));
  PetscCallAbort(PETSC_COMM_SELF, MatIsSymmetricKnown(s->p->m[0], &known, &symmetric));
  if (!LayoutsFit(s)) return PETSC_FALSE;
  switch (s->r[0] % 6) {
  case 0: return (PetscBool)(s->N == m);
  case 1: return (PetscBool)(s->M == m && !(s->p == s->q && known && symmetric));
  case 2: return (PetscBool)(square && s->N == m);
  case 3: return (PetscBool)(s->N == m && n == s->M);
  case 4: return (PetscBool)(Size == 1 && s->N == n && rbs == cbs);
  default: return (PetscBool)(Size == 1 && square && s->N == n);
  }
}

/* has the result an entry wherever a new product of MATAIJ's has one? */
static PetscErrorCode ProductIsWithin(const Pair *p, PetscBool *within)
{
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP, MATPRODUCT_ABC, MATPRODUCT_ABt, MATPRODUCT_RARt};
  const MatProductType        type    = types[p->product - 1];
  Mat                         A       = p->operand[0][0], fresh, sum;
  MatInfo                     info[2];
  PetscInt                    m[2], n[2];

  PetscFunctionBeginUser;
  *within = PETSC_FALSE;
  PetscCall(MatProductCreate(A, p->operand[1][0], type == MATPRODUCT_ABC ? A : NULL, &fresh));
  PetscCall(MatProductSetType(fresh, type));
  PetscCall(MatProductSetFromOptions(fresh));
  PetscCall(MatProductSymbolic(fresh));
  PetscCall(MatProductNumeric(fresh));
  PetscCall(MatGetSize(fresh, &m[0], &n[0]));
  PetscCall(MatGetSize(p->m[0], &m[1], &n[1]));
  if (m[0] == m[1] && n[0] == n[1]) {
    PetscCall(MatDuplicate(p->m[0], MAT_COPY_VALUES, &sum));
    PetscCall(MatAXPY(sum, 1.0, fresh, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatGetInfo(p->m[0], MAT_GLOBAL_SUM, &info[0]));
    PetscCall(MatGetInfo(sum, MAT_GLOBAL_SUM, &info[1]));
    *within = (PetscBool)(info[0].nz_used == info[1].nz_used);
    PetscCall(MatDestroy(&sum));
  }
  PetscCall(MatDestroy(&fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A numeric phase is for the patterns of the symbolic one, and for others as far as MATAIJ's takes them: a wider one of
   the result, but for A B in parallel and A B^T, which write past it; and other operands where their product is within
   the result, on one process alone and if none is transposed aside */
static PetscBool ProductAgainFits(const Step *s)
{
  const PetscInt   product = s->p->product;
  PetscObjectState states[3];
  PetscBool        operands, within;

  if (!product) return PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, ProductStates(s->p, states));
  operands = (PetscBool)(states[0] == s->p->states[0] && states[1] == s->p->states[1]);
  PetscCallAbort(PETSC_COMM_SELF, ProductIsWithin(s->p, &within));
  if (!within) return PETSC_FALSE; /* numbers of MATAIJ's may be the same for another pattern */
  if (operands && states[2] == s->p->states[2]) return PETSC_TRUE;
  if (product == 5 || (Size > 1 && product != 2 && product != 3)) return PETSC_FALSE;
  if (!operands && (Size > 1 || (product != 1 && product != 3))) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* with another pattern than the last time, MATAIJ writes beyond the array of the stored values */
static PetscBool StoreFits(const Step *s)
{
  return (PetscBool)(!s->p->stored || s->p->stored == s->p->lineage);
}

/* those of another pattern, or none, are an error's matter */
static PetscBool RetrieveFits(const Step *s)
{
  return (PetscBool)(s->p->stored == s->p->lineage);
}

static const struct {
  const char *name;
  PetscErrorCode (*apply)(Step *, Mat);
  PetscBool (*fits)(const Step *); /* NULL: always */
  PetscBool parallel;              /* also on several processes */
  enum {
    VALUES,  /* changes values at most, or tells a new pattern by the matrix's state */
    PATTERN, /* may change the pattern, or what AIJ keeps beside it */
    REPLACES /* makes another matrix of it, of which products know nothing */
  } effect;
} Operations[] = {
  {"values",           Values,           NULL,             PETSC_TRUE,  VALUES  },
  {"diagonalscale",    DiagonalScale,    NULL,             PETSC_TRUE,  VALUES  },
  {"diagonal",         Diagonal,         DiagonalFits,     PETSC_TRUE,  PATTERN },
  {"setvalues",        SetValues,        NewEntriesFit,    PETSC_TRUE,  VALUES  },
  {"zerorows",         ZeroRows,         ZeroRowsFits,     PETSC_TRUE,  PATTERN },
  {"duplicate",        Duplicate,        NULL,             PETSC_TRUE,  VALUES  },
  {"combine",          Combine,          CombineFits,      PETSC_TRUE,  REPLACES}, /* unless they are of one lineage */
  {"transpose",        Transpose,        NULL,             PETSC_TRUE,  VALUES  },
  {"transposeinplace", TransposeInPlace, NULL,             PETSC_TRUE,  REPLACES},
  {"product",          Product,          ProductFits,      PETSC_TRUE,  VALUES  },
  {"productagain",     ProductAgain,     ProductAgainFits, PETSC_TRUE,  PATTERN },
  {"submatrix",        SubMatrix,        NULL,             PETSC_TRUE,  VALUES  },
  {"permute",          Permute,          NULL,             PETSC_TRUE,  VALUES  },
  {"convert",          Convert,          NULL,             PETSC_TRUE,  REPLACES},
  {"dense",            Dense,            NULL,             PETSC_TRUE,  VALUES  },
  {"array",            Array,            NULL,             PETSC_TRUE,  VALUES  },
  {"random",           Random,           NULL,             PETSC_TRUE,  VALUES  },
 /* errors that follow from one on one process alone leave the others waiting */
  {"option",           Option,           NULL,             PETSC_FALSE, VALUES  },
  {"symmetry",         Symmetry,         NULL,             PETSC_TRUE,  VALUES  },
  {"store",            Store,            StoreFits,        PETSC_TRUE,  VALUES  },
  {"retrieve",         Retrieve,         RetrieveFits,     PETSC_TRUE,  VALUES  },
  {"coo",              COO,              NULL,             PETSC_TRUE,  REPLACES},
  {"preallocate",      Preallocate,      NewEntriesFit,    PETSC_TRUE,  REPLACES},
  {"replace",          Replace,          NULL,             PETSC_TRUE,  REPLACES},
  {"small",            Small,            NULL,             PETSC_TRUE,  REPLACES},
  {"read",             Read,             NULL,             PETSC_TRUE,  VALUES  },
};

/* Do the blocks of this process agree? What the whole matrix does not show is where an entry lies, and the columns of
   the second block */
static PetscErrorCode CheckBlocks(Mat A, Mat H)
{
  Mat         a[2], h[2];
  PetscMPIInt same = 1;

  PetscFunctionBeginUser;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &a[0], &a[1], NULL));
  PetscCall(MatMPIAIJGetSeqAIJ(H, &h[0], &h[1], NULL));
  for (int b = 0; b < 2; b++) {
    PetscInt  m[2], n[2];
    PetscReal difference = 1;

    PetscCall(MatGetSize(a[b], &m[0], &n[0]));
    PetscCall(MatGetSize(h[b], &m[1], &n[1]));
    if (m[0] == m[1] && n[0] == n[1]) PetscCall(MatTestDifference(h[b], a[b], &difference));
    if (!(difference < 1e-12)) same = 0;
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  MatTestCheck(same, "blocks");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(Mat A, Mat H, const char *what)
{
  Mat       m[2] = {A, H};
  PetscInt  sizes[2][4];
  PetscBool known[2][5], set;
  MatInfo   info[2];

  PetscFunctionBeginUser;
  MatTestCheckSame(H, A, what);
  MatTestCheckMult(H, A, "MatMult");
  MatTestCheckMultTranspose(H, A, "MatMultTranspose");
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGetBlockSizes(m[k], &sizes[k][0], &sizes[k][1]));
    PetscCall(MatGetLocalSize(m[k], &sizes[k][2], &sizes[k][3]));
    PetscCall(MatGetInfo(m[k], MAT_GLOBAL_SUM, &info[k]));
    PetscCall(MatAssembled(m[k], &known[k][0]));
/* that a matrix is not symmetric, it may also not know */
#define KNOWN(q, function)                         \
  do {                                             \
    PetscCall(function(m[k], &set, &known[k][q])); \
    known[k][q] = (PetscBool)(set && known[k][q]); \
  } while (0)
    KNOWN(1, MatIsSymmetricKnown);
    KNOWN(2, MatIsHermitianKnown);
    KNOWN(3, MatIsStructurallySymmetricKnown);
    KNOWN(4, MatIsSPDKnown);
  }
  MatTestCheck(info[0].nz_used == info[1].nz_used, "number of nonzeros");
  MatTestCheck(!memcmp(sizes[0], sizes[1], sizeof(sizes[0])), "sizes and block sizes");
  MatTestCheck(!memcmp(known[0], known[1], sizeof(known[0])), "assembled and symmetry known");
  { /* where -mat_seqaij_type gave H its operations, that option is not set now */
    MatType   type;
    PetscBool same;
    Mat       D;

    PetscCall(MatGetType(H, &type));
    PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &D));
    PetscCall(PetscObjectTypeCompare((PetscObject)D, type, &same));
    MatTestCheck(same, "the type of a duplicate");
    PetscCall(MatDestroy(&D));
  }
  if (Size > 1) PetscCall(CheckBlocks(A, H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatConvert() passes on only some of what is known of symmetry, and some operations of MATAIJ's that make another
   pattern still say of it what was said of the old one: all is said anew */
static PetscErrorCode NotSymmetric(Mat m[2])
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetOption(m[k], MAT_SYMMETRIC, PETSC_FALSE));
    PetscCall(MatSetOption(m[k], MAT_HERMITIAN, PETSC_FALSE));
    PetscCall(MatSetOption(m[k], MAT_STRUCTURALLY_SYMMETRIC, PETSC_FALSE));
    PetscCall(MatSetOption(m[k], MAT_SPD, PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some of MATAIJ's operations leave a matrix that refuses new entries, and not the same ones as ours */
static PetscErrorCode LetIn(Mat m[2])
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(MatSetOption(m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of any process's error, which another one may wait for ever to hear */
static PetscErrorCode Tell(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType type, const char *message, void *ctx)
{
  (void)comm, (void)ctx;
  fprintf(stderr, "[%d] error %d in %s, %s:%d%s%s\n", (int)Rank, (int)n, function, file, line, type == PETSC_ERROR_INITIAL ? ": " : "", type == PETSC_ERROR_INITIAL && message ? message : "");
  return n;
}

/* With -short the device has so little memory that ours fails for want of it now and then: that is no difference, and
   then nothing is compared */
static PetscBool Short;
static PetscInt  Refusals, Comparisons; /* both there must be some of */

static PetscErrorCode CompareIfThereIsRoom(const Mat m[2], const char *what, PetscErrorCode *e)
{
  PetscFunctionBeginUser;
  if (Short) PetscCall(PetscPushErrorHandler(Print ? Tell : PetscReturnErrorHandler, NULL));
  *e = Compare(m[0], m[1], what);
  if (Short) PetscCall(PetscPopErrorHandler());
  Refusals += *e == PETSC_ERR_MEM;
  Comparisons += !*e;
  if (!Short || *e != PETSC_ERR_MEM) PetscCall(*e);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoStep(void)
{
  const PetscInt   op = Draw((PetscInt)PETSC_STATIC_ARRAY_LENGTH(Operations));
  Step             s;
  Pair            *slot;
  PetscErrorCode   e[2] = {PETSC_SUCCESS, PETSC_SUCCESS};
  PetscObjectState before[2], after[2];
  PetscReal        norm;
  char             text[128];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&s, sizeof(s)));
  s.p  = &Pool[Draw(POOL)];
  s.q  = &Pool[Draw(POOL)];
  slot = &Pool[Draw(POOL)];
  for (int k = 0; k < DRAWS; k++) s.r[k] = Draw(100000);
  s.v = (PetscReal)Draw(40) / 10 - 2;
#if defined(PETSC_USE_COMPLEX)
  s.v += PETSC_i * ((PetscReal)Draw(5) / 10 - 0.2);
#endif
  for (int k = 0; k < 2; k++) PetscCall(MatGetNonzeroState(s.p->m[k], &before[k]));
  PetscCall(MatGetSize(s.p->m[0], &s.M, &s.N));
  PetscCall(MatGetOwnershipRange(s.p->m[0], &s.start, &s.end));
  if ((Size > 1 && !Operations[op].parallel) || (Operations[op].fits && !Operations[op].fits(&s))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, sizeof(text), " %s(%d,%d,%d;%d,%d,%d,%d)", Operations[op].name, (int)(s.p - Pool), (int)(s.q - Pool), (int)(slot - Pool), (int)s.r[0], (int)s.r[1], (int)s.r[2], (int)s.r[3]));
  PetscCall(PetscStrlcat(Trail, text, sizeof(Trail)));
  if (Print) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n", text));
  for (s.k = 0; s.k < 2 && !(Size > 1 && e[0]); s.k++) {
    PetscCall(Side(s.k));
    /* a new entry must not be the error of one process alone, for which the others would wait; submatrices refuse other
       processes' */
    if (Size > 1) {
      PetscCall(MatSetOption(s.p->m[s.k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatSetOption(s.p->m[s.k], MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
    }
    PetscCall(PetscPushErrorHandler(Print ? Tell : PetscReturnErrorHandler, NULL));
    e[s.k] = Operations[op].apply(&s, s.p->m[s.k]);
    PetscCall(PetscPopErrorHandler());
  }
  PetscCall(Side(0));
  Refusals += e[1] == PETSC_ERR_MEM;
  if ((Size == 1 || !e[0]) && !(Short && e[1] == PETSC_ERR_MEM)) {
    MatTestCheck(!e[0] == !e[1], "error or not");
    if (!e[0] != !e[1]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "error of MATAIJ %d, of ours %d\n", (int)e[0], (int)e[1]));
  }
  if (e[0] || e[1]) { /* what an error leaves behind, nobody promises */
    PetscCall(Drop(&s.out));
    PetscCall(Forget(s.p));
    PetscCall(Fresh(s.p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) PetscCall(MatGetNonzeroState(s.p->m[k], &after[k]));
  if (before[0] != after[0]) s.p->lineage = ++Lineages;
  /* a matrix that takes another's place has that one's number, but for a duplicate of its own */
  if (Operations[op].effect != REPLACES || Operations[op].apply == Replace) MatTestCheck((before[0] != after[0]) == (before[1] != after[1]), "one pattern's state moved");
  if (Operations[op].apply == COO) s.p->coordinates = PETSC_TRUE;
  if (Operations[op].effect != VALUES && !(Operations[op].apply == Combine && s.p->lineage == s.q->lineage)) {
    s.p->lineage = ++Lineages;
    /* a parallel MATAIJ's state is a sum, which another pattern may have too: it would transpose past the old one */
    for (int k = 0; k < 2 && Size > 1; k++) PetscCall(MatDestroy(&s.p->transposed[k]));
    if (Operations[op].effect == REPLACES) {
      PetscCall(Forget(s.p));
      PetscCall(NotSymmetric(s.p->m));
    }
    PetscCall(LetIn(s.p->m));
  }
  PetscCall(CompareIfThereIsRoom(s.p->m, Operations[op].name, &e[1]));
  if (Operations[op].apply == Transpose) MatTestCheckSame(s.p->transposed[1], s.p->transposed[0], "transpose again");
  if (s.out.m[0]) {
    PetscInt m, n;

    PetscCall(CompareIfThereIsRoom(s.out.m, "what was made", &e[1]));
    if (s.out.product) PetscCall(ProductStates(&s.out, s.out.states));
    PetscCall(LetIn(s.out.m));
    s.out.lineage = Operations[op].apply == Duplicate ? s.p->lineage : ++Lineages;
    PetscCall(MatGetSize(s.out.m[0], &m, &n));
    if (m < 4 || n < 4) slot = &s.out; /* submatrices of submatrices */
    PetscCall(Drop(slot));
    if (slot != &s.out) *slot = s.out;
  }
  /* new matrices now and then, and before values grow without end */
  PetscCall(MatNorm(s.p->m[0], NORM_INFINITY, &norm));
  if (!(norm < 1e6) || Draw(30) == 0) PetscCall(Fresh(s.p));
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
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trail", &Print, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-short", &Short, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", SubType, sizeof(SubType), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ours", Ours, sizeof(Ours), NULL));
  MatTestName = Trail;
  for (PetscInt run = 0; run < runs; run++, MatTestSeed++) {
    PetscInt failed = MatTestFailed;

    State    = (unsigned long)MatTestSeed * 1000003ul + 17ul;
    Trail[0] = 0;
    if (Print) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "seed %d\n", (int)MatTestSeed));
    for (int k = 0; k < POOL; k++) PetscCall(Fresh(&Pool[k]));
    for (PetscInt step = 0; step < steps && MatTestFailed == failed; step++) PetscCall(DoStep());
    for (int k = 0; k < POOL; k++) PetscCall(Drop(&Pool[k]));
  }
  if (Short) {
    MatTestName = "little memory";
    MatTestCheck(Refusals > 0, "ours fails for want of it now and then");
    MatTestCheck(Comparisons > 10 * runs, "most of what is done is compared");
    if (Print) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d refusals, %d comparisons\n", (int)Refusals, (int)Comparisons));
  }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}

/*
  Operations of Mat's table that take sparse matrices and that no other test is about, beside MATAIJ: on one to three
  processes, on matrices of every origin (pairs.h), each once, and once more after the device has written new values.
  Compared are errors, what is read, what is made, and all that pairs.h sees of the matrix afterwards.

TEST np=1+2
TEST np=2+3 -kind 1
TEST np=1 @emulated
TEST np=2 @emulated -kind 1
TEST np=+1 @emulated -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1

  -cases: of these operations alone; -kind N: matrices of this origin alone; -ours aij: MATAIJ beside itself; -trail
  prints what is done before it is
*/
#include "untried_read.h"
#include "untried_parts.h"
#include "untried_write.h"

typedef enum {
  READS,   /* done again after values were written on the device */
  ENTRIES, /* and it makes entries */
  ONCE
} Again;

static const struct {
  const char *name;
  Operation   op;
  Pattern     pattern;
  Again       again;
  /* processes; 0: any. MATAIJ ends itself for want of an index set of all rows, and a mapping of one neighbour is not
     enough for scalings */
  PetscMPIInt least, most;
} Table[] = {
  {"getvalues",        GetValues,           WIDE,        READS,   1, 0},
  {"getvalueslocal",   GetValuesLocal,      WIDE,        READS,   1, 0},
  {"overlap",          Overlap,             TRIDIAGONAL, READS,   1, 0},
  {"overlapsplit",     OverlapSplit,        TRIDIAGONAL, READS,   1, 0},
  {"columnvector",     ColumnVector,        WIDE,        READS,   1, 0},
  {"ghosts",           Ghosts,              WIDE,        READS,   1, 0},
  {"columnreductions", ColumnReductions,    WIDE,        READS,   1, 0},
  {"invertblocks",     InvertBlocks,        WIDE,        READS,   1, 0},
  {"invertblocksmat",  InvertBlocksMat,     WIDE,        READS,   1, 0},
  {"invertvariable",   InvertVariable,      WIDE,        READS,   1, 0},
  {"envelope",         Envelope,            NODES,       READS,   1, 0},
  {"offblock",         OffBlock,            WIDE,        READS,   1, 2},
  {"columnij",         ColumnIJ,            WIDE,        READS,   1, 0},
  {"rowij",            RowIJ,               NODES,       READS,   1, 0},
  {"has",              Has,                 WIDE,        ONCE,    1, 0},
  {"asks",             AsksMore,            WIDE,        READS,   1, 0},
  {"diagonalblock",    DiagonalBlockMult,   WIDE,        READS,   1, 0},
  {"interpolate",      Interpolate,         WIDE,        READS,   1, 0},
  {"views",            Views,               WIDE,        READS,   1, 0},
  {"counts",           Counts,              NODES,       READS,   1, 0},
  {"orderings",        Orderings,           WIDE,        READS,   1, 0},
  {"colorings",        Colorings,           WIDE,        READS,   1, 0},
  {"coarsen",          Coarsen,             TRIDIAGONAL, READS,   1, 0},
  {"submoved",         SubMatrixMoved,      WIDE,        READS,   1, 0},
  {"subgathered",      SubMatrixGathered,   WIDE,        READS,   1, 0},
  {"suball",           SubMatrixAll,        WIDE,        READS,   1, 0},
  {"submatrices",      SubMatrices,         WIDE,        READS,   1, 0},
  {"submpi",           SubMatricesMPI,      WIDE,        READS,   1, 0},
  {"multiproc",        MultiProcBlock,      WIDE,        READS,   1, 0},
  {"redundant",        Redundant,           WIDE,        READS,   1, 0},
  {"structure",        SequentialStructure, WIDE,        READS,   1, 0},
  {"localsub",         LocalSubMatrix,      WIDE,        ENTRIES, 1, 0},
  {"subvirtual",       SubVirtual,          WIDE,        READS,   1, 0},
  {"schur",            Schur,               WIDE,        READS,   1, 0},
  {"operator",         ComputeOperator,     WIDE,        READS,   1, 0},
  {"transposepattern", TransposePattern,    WIDE,        READS,   1, 0},
  {"locals",           Locals,              WIDE,        READS,   1, 0},
  {"sum",              SumOfSequential,     WIDE,        READS,   1, 0},
  {"ofblocks",         OfBlocks,            WIDE,        READS,   1, 0},
  {"ofwritten",        OfWritten,           WIDE,        READS,   1, 0},
  {"ofresults",        OfResults,           WIDE,        READS,   1, 0},
  {"permute",          PermuteAcross,       WIDE,        READS,   1, 0},
  {"composed",         Composed,            WIDE,        READS,   1, 0},
  {"blockedlocal",     BlockedLocal,        WIDE,        ENTRIES, 1, 0},
  {"valueslocal",      ValuesLocal,         WIDE,        ENTRIES, 1, 0},
  {"rowlocal",         RowLocal,            WIDE,        READS,   1, 0},
  {"valuesis",         ValuesIS,            WIDE,        ENTRIES, 1, 0},
  {"stencils",         Stencils,            WIDE,        ENTRIES, 1, 0},
  {"zerolocal",        ZeroLocal,           WIDE,        READS,   1, 0},
  {"zerocolumns",      ZeroColumns,         WIDE,        READS,   1, 0},
  {"zerocolumnslocal", ZeroColumnsLocal,    WIDE,        READS,   1, 0},
  {"zeroothers",       ZeroOthers,          WIDE,        READS,   1, 0},
  {"scalelocal",       ScaleLocal,          WIDE,        READS,   1, 2},
  {"infinite",         Infinite,            WIDE,        ONCE,    1, 0},
  {"blocksizes",       BlockSizes,          WIDE,        READS,   1, 0},
  {"variableblocks",   VariableBlocks,      WIDE,        READS,   1, 0},
  {"updatearray",      UpdateArray,         TRIDIAGONAL, READS,   1, 0},
  {"preallocator",     Preallocator,        TRIDIAGONAL, READS,   1, 0},
  {"stash",            Stash,               WIDE,        ENTRIES, 1, 0},
  {"localcoordinates", LocalCoordinates,    WIDE,        READS,   1, 0},
  {"flags",            Flags,               WIDE,        ONCE,    1, 0},
  {"moreroom",         MoreRoom,            TRIDIAGONAL, READS,   1, 1},
  {"lu",               FactorLU,            WIDE,        READS,   1, 1},
  {"ilu",              FactorILU,           WIDE,        READS,   1, 1},
  {"icc",              FactorICC,           WIDE,        READS,   1, 1},
  {"cholesky",         FactorCholesky,      WIDE,        READS,   1, 1},
  {"mumps",            FactorMumps,         WIDE,        READS,   1, 0},
  {"mumpscholesky",    FactorMumpsCholesky, WIDE,        READS,   1, 0},
  {"superlu",          FactorSuperLU,       WIDE,        READS,   1, 1},
  {"superludist",      FactorSuperLUDist,   WIDE,        READS,   1, 0},
  {"umfpack",          FactorUmfpack,       WIDE,        READS,   1, 1},
  {"klu",              FactorKLU,           WIDE,        READS,   1, 1},
  {"cholmod",          FactorCholmod,       WIDE,        READS,   1, 1},
  {"inplacelu",        InPlaceLU,           WIDE,        READS,   1, 1},
  {"inplaceilu",       InPlaceILU,          WIDE,        READS,   1, 1},
  {"inplacecholesky",  InPlaceCholesky,     WIDE,        READS,   1, 1},
  {"inplaceicc",       InPlaceICC,          WIDE,        READS,   1, 1},
};

static char Ours[64] = "aijhybridgpu";

/* the operation arg[3], once or twice */
static PetscErrorCode Do(Pair *p, int k)
{
  const Operation op = Table[p->arg[3]].op;

  PetscFunctionBeginUser;
  PetscCall((*op)(p, k, p->m[k]));
  if (!p->arg[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatScale(p->m[k], 2.0));
  PetscCall(PairsUse(p->m[k]));
  PetscCall(MatScale(p->m[k], 0.75));
  PetscCall((*op)(p, k, p->m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int       code      = 0;
  char      only[256] = "", *list;
  PetscBool some;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-cases", only, sizeof(only), &some));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ours", Ours, sizeof(Ours), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trail", &PairsTrail, NULL));
  PairsVerbose = some;
  for (size_t op = 0; op < PETSC_STATIC_ARRAY_LENGTH(Table); op++) {
    PetscCall(PetscStrstr(only, Table[op].name, &list));
    if ((some && !list) || PairsSize() < Table[op].least || (Table[op].most && PairsSize() > Table[op].most)) continue;
    for (Kind kind = HOSTMADE; kind < KINDS; kind++)
      for (PetscInt again = 0; again < 2 && PairsWanted(kind); again++) {
        Pair      p;
        PetscBool ok;
        char      name[160];

        if (again && Table[op].again == ONCE) continue;
        /* before 3.26 a parallel one is ordered by its diagonal block if it is of the very type mpiaij */
        if (PETSC_VERSION_LT(3, 26, 0) && PairsSize() > 1 && Table[op].op == Orderings) continue;
#if PETSC_VERSION_LT(3, 19, 0) /* MATAIJ frees twice what a new entry makes of coordinates' arrays */
        if (PairsSize() > 1 && Table[op].again == ENTRIES && (kind == BORN || kind == DUPLICATED)) continue;
#endif
        PetscCall(PetscMemzero(&p, sizeof(p)));
        PetscCall(PairsMake(kind, Table[op].pattern, MATAIJ, ROWS, ROWS, &p.m[0]));
        PetscCall(PairsMake(kind, Table[op].pattern, Ours, ROWS, ROWS, &p.m[1]));
        p.arg[0] = again;
        p.arg[1] = (PetscInt)kind;
        p.arg[3] = (PetscInt)op;
        PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s%s", Table[op].name, KindNames[kind], again ? ", again" : ""));
        PetscCall(PairTry(&p, Do, name, &ok));
        if (ok) {
          PetscCall(PairsCompare(p.m[0], p.m[1], p.before, name));
          if (p.out[0] && p.out[1]) PetscCall(PairsCompare(p.out[0], p.out[1], NULL, name));
          PetscCall(PairsFound(&p, name));
        }
        PetscCall(PairDestroy(&p));
      }
  }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}

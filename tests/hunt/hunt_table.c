/*
  Operations of Mat's table that take sparse matrices and that no other test is about, beside MATAIJ: on one to three
  processes, on matrices of every origin (pairs.h), each once, and once more after the device has written new values.
  Compared are errors, what is read, what is made, and all that pairs.h sees of the matrix afterwards.

TEST np=1+2
TEST np=2+3 -kind 1
TEST np=1 @emulated
TEST np=2 @emulated -kind 1
TEST np=+1 @emulated -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1

  -kind N: matrices of this origin alone; the other options are the hunter's (hunt.h)
*/
#include "table_read.h"
#include "table_parts.h"
#include "table_write.h"
#include "run.h"

/* MATAIJ ends itself for want of an index set of all rows, and a mapping of one neighbour is not enough for scalings:
   where more processes than two are left out */
static const Single Untried[] = {
  {{"getvalues", GetValues, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"getvalueslocal", GetValuesLocal, NULL, KEEPS},     WIDE,        READS,   1, 0},
  {{"overlap", Overlap, NULL, KEEPS},                   TRIDIAGONAL, READS,   1, 0},
  {{"overlapsplit", OverlapSplit, NULL, KEEPS},         TRIDIAGONAL, READS,   1, 0},
  {{"columnvector", ColumnVector, NULL, KEEPS},         WIDE,        READS,   1, 0},
  {{"ghosts", Ghosts, NULL, KEEPS},                     WIDE,        READS,   1, 0},
  {{"columnreductions", ColumnReductions, NULL, KEEPS}, WIDE,        READS,   1, 0},
  {{"invertblocks", InvertBlocks, NULL, KEEPS},         WIDE,        READS,   1, 0},
  {{"invertblocksmat", InvertBlocksMat, NULL, KEEPS},   WIDE,        READS,   1, 0},
  {{"invertvariable", InvertVariable, NULL, KEEPS},     WIDE,        READS,   1, 0},
  {{"envelope", Envelope, NULL, KEEPS},                 NODES,       READS,   1, 0},
  {{"offblock", OffBlock, NULL, KEEPS},                 WIDE,        READS,   1, 2},
  {{"columnij", ColumnIJ, NULL, KEEPS},                 WIDE,        READS,   1, 0},
  {{"rowij", RowIJ, NULL, KEEPS},                       NODES,       READS,   1, 0},
  {{"has", Has, NULL, KEEPS},                           WIDE,        ONCE,    1, 0},
  {{"asks", AsksMore, NULL, KEEPS},                     WIDE,        READS,   1, 0},
  {{"diagonalblock", DiagonalBlockMult, NULL, KEEPS},   WIDE,        READS,   1, 0},
  {{"interpolate", Interpolate, NULL, KEEPS},           WIDE,        READS,   1, 0},
  {{"views", Views, NULL, KEEPS},                       WIDE,        READS,   1, 0},
  {{"counts", Counts, NULL, KEEPS},                     NODES,       READS,   1, 0},
  {{"orderings", Orderings, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"colorings", Colorings, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"coarsen", Coarsen, NULL, KEEPS},                   TRIDIAGONAL, READS,   1, 0},
  {{"submoved", SubMatrixMoved, NULL, KEEPS},           WIDE,        READS,   1, 0},
  {{"subgathered", SubMatrixGathered, NULL, KEEPS},     WIDE,        READS,   1, 0},
  {{"suball", SubMatrixAll, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"submatrices", SubMatrices, NULL, KEEPS},           WIDE,        READS,   1, 0},
  {{"submpi", SubMatricesMPI, NULL, KEEPS},             WIDE,        READS,   1, 0},
  {{"multiproc", MultiProcBlock, NULL, KEEPS},          WIDE,        READS,   1, 0},
  {{"redundant", Redundant, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"structure", SequentialStructure, NULL, KEEPS},     WIDE,        READS,   1, 0},
  {{"localsub", LocalSubMatrix, NULL, KEEPS},           WIDE,        ENTRIES, 1, 0},
  {{"subvirtual", SubVirtual, NULL, KEEPS},             WIDE,        READS,   1, 0},
  {{"schur", Schur, NULL, KEEPS},                       WIDE,        READS,   1, 0},
  {{"operator", ComputeOperator, NULL, KEEPS},          WIDE,        READS,   1, 0},
  {{"transposepattern", TransposePattern, NULL, KEEPS}, WIDE,        READS,   1, 0},
  {{"locals", Locals, NULL, KEEPS},                     WIDE,        READS,   1, 0},
  {{"sum", SumOfSequential, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"ofblocks", OfBlocks, NULL, KEEPS},                 WIDE,        READS,   1, 0},
  {{"ofwritten", OfWritten, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"ofresults", OfResults, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"permute", PermuteAcross, NULL, KEEPS},             WIDE,        READS,   1, 0},
  {{"composed", Composed, NULL, KEEPS},                 WIDE,        READS,   1, 0},
  {{"blockedlocal", BlockedLocal, NULL, KEEPS},         WIDE,        ENTRIES, 1, 0},
  {{"valueslocal", ValuesLocal, NULL, KEEPS},           WIDE,        ENTRIES, 1, 0},
  {{"rowlocal", RowLocal, NULL, KEEPS},                 WIDE,        READS,   1, 0},
  {{"valuesis", ValuesIS, NULL, KEEPS},                 WIDE,        ENTRIES, 1, 0},
  {{"stencils", Stencils, NULL, KEEPS},                 WIDE,        ENTRIES, 1, 0},
  {{"zerolocal", ZeroLocal, NULL, KEEPS},               WIDE,        READS,   1, 0},
  {{"zerocolumns", ZeroColumns, NULL, KEEPS},           WIDE,        READS,   1, 0},
  {{"zerocolumnslocal", ZeroColumnsLocal, NULL, KEEPS}, WIDE,        READS,   1, 0},
  {{"zeroothers", ZeroOthers, NULL, KEEPS},             WIDE,        READS,   1, 0},
  {{"scalelocal", ScaleLocal, NULL, KEEPS},             WIDE,        READS,   1, 2},
  {{"infinite", Infinite, NULL, KEEPS},                 WIDE,        ONCE,    1, 0},
  {{"blocksizes", BlockSizes, NULL, KEEPS},             WIDE,        READS,   1, 0},
  {{"variableblocks", VariableBlocks, NULL, KEEPS},     WIDE,        READS,   1, 0},
  {{"updatearray", UpdateArray, NULL, KEEPS},           TRIDIAGONAL, READS,   1, 0},
  {{"preallocator", Preallocator, NULL, KEEPS},         TRIDIAGONAL, READS,   1, 0},
  {{"stash", Stash, NULL, KEEPS},                       WIDE,        ENTRIES, 1, 0},
  {{"localcoordinates", LocalCoordinates, NULL, KEEPS}, WIDE,        READS,   1, 0},
  {{"flags", Flags, NULL, KEEPS},                       WIDE,        ONCE,    1, 0},
  {{"moreroom", MoreRoom, NULL, KEEPS},                 TRIDIAGONAL, READS,   1, 1},
  {{"lu", FactorLU, NULL, KEEPS},                       WIDE,        READS,   1, 1},
  {{"ilu", FactorILU, NULL, KEEPS},                     WIDE,        READS,   1, 1},
  {{"icc", FactorICC, NULL, KEEPS},                     WIDE,        READS,   1, 1},
  {{"cholesky", FactorCholesky, NULL, KEEPS},           WIDE,        READS,   1, 1},
  {{"mumps", FactorMumps, NULL, KEEPS},                 WIDE,        READS,   1, 0},
  {{"mumpscholesky", FactorMumpsCholesky, NULL, KEEPS}, WIDE,        READS,   1, 0},
  {{"superlu", FactorSuperLU, NULL, KEEPS},             WIDE,        READS,   1, 1},
  {{"superludist", FactorSuperLUDist, NULL, KEEPS},     WIDE,        READS,   1, 0},
  {{"umfpack", FactorUmfpack, NULL, KEEPS},             WIDE,        READS,   1, 1},
  {{"klu", FactorKLU, NULL, KEEPS},                     WIDE,        READS,   1, 1},
  {{"cholmod", FactorCholmod, NULL, KEEPS},             WIDE,        READS,   1, 1},
  {{"inplacelu", InPlaceLU, NULL, KEEPS},               WIDE,        READS,   1, 1},
  {{"inplaceilu", InPlaceILU, NULL, KEEPS},             WIDE,        READS,   1, 1},
  {{"inplacecholesky", InPlaceCholesky, NULL, KEEPS},   WIDE,        READS,   1, 1},
  {{"inplaceicc", InPlaceICC, NULL, KEEPS},             WIDE,        READS,   1, 1},
};

int main(int argc, char **argv)
{

  PetscFunctionBeginUser;
  PetscCall(HuntBegin(&argc, &argv));
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(Untried); q++) {
    const Single    *s  = &Untried[q];
    const Operation *op = &s->operation;

    if (!Chosen(op->name) || Size < s->least || (s->most && Size > s->most)) continue;
    /* before 3.26 a parallel one is ordered by its diagonal block if it is of the very type mpiaij */
    if (PETSC_VERSION_LT(3, 26, 0) && Size > 1 && op->apply == Orderings) continue;
    for (Kind kind = HOSTMADE; kind < KINDS; kind++) {
#if PETSC_VERSION_LT(3, 19, 0) /* MATAIJ frees twice what a new entry makes of coordinates' arrays */
      if (Size > 1 && s->again == ENTRIES && (kind == BORN || kind == DUPLICATED)) continue;
#endif
      for (PetscInt again = 0; again < (s->again == ONCE ? 1 : 2) && PairsWanted(kind); again++) PetscCall(EachKind(op, s->pattern, kind, again));
    }
  }
  return MatTestEnd();
}

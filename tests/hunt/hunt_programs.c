/*
  The hunter (hunt.h) with what programs do, on matrices of 20 or 22 rows and columns, so that many fit together; some
  with blocks of two, some without a preallocation. Here caches, options and states are met in the orders that nobody
  thought of: products whose operands have changed, transposes that are made again, values stored and retrieved.

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
#include "write.h"
#include "make.h"
#include "read.h"
#include "run.h"

static PetscErrorCode Make(Member *p)
{
  PetscInt  M = 20 + 2 * Draw(2), N = 20 + 2 * Draw(2), bs = Draw(3) ? 1 : 2, add = Draw(3), row = 1 + Draw(4), start, end;
  PetscBool setup = (PetscBool)(PETSC_VERSION_GE(3, 19, 0) && add);
  Mat       R;

  PetscFunctionBeginUser;
  PetscCall(MatTestRandom(M, N, row, Draw(1000), &R));
  PetscCall(MatGetOwnershipRange(R, &start, &end));
  for (int k = 0; k < 2; k++) {
    PetscInt m = PETSC_DECIDE, n = PETSC_DECIDE;

    PetscCall(Side(k));
    PetscCall(PetscSplitOwnershipBlock(PETSC_COMM_WORLD, bs, &m, &M));
    PetscCall(PetscSplitOwnershipBlock(PETSC_COMM_WORLD, bs, &n, &N));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &p->m[k]));
    PetscCall(MatSetSizes(p->m[k], m, n, M, N));
    PetscCall(MatSetBlockSize(p->m[k], bs));
    PetscCall(MatSetType(p->m[k], OurType(k)));
    if (setup)
      PetscCall(MatSetUp(p->m[k]));
    else
      PetscCall(MatSeqAIJSetPreallocation(p->m[k], 14, NULL));
    if (!setup) PetscCall(MatMPIAIJSetPreallocation(p->m[k], 14, NULL, 14, NULL));
    for (PetscInt r = start; r < end; r++) {
      PetscInt           count;
      const PetscInt    *c;
      const PetscScalar *v;

      PetscCall(MatGetRow(R, r, &count, &c, &v));
      PetscCall(MatSetValues(p->m[k], 1, &r, count, c, v, add == 2 ? ADD_VALUES : INSERT_VALUES));
      PetscCall(MatRestoreRow(R, r, &count, &c, &v));
    }
    PetscCall(MatTestAssemble(p->m[k]));
  }
  PetscCall(MatDestroy(&R));
  p->plain = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  /* products that can be made again do not live long */
  const Table  tables[] = {TABLE(Writes), TABLE(Makes), TABLE(Reads), TABLE(Agains), TABLE(Agains), TABLE(Agains), TABLE(Agains)};
  const Hunter hunter   = {.tables = tables, .n = PETSC_STATIC_ARRAY_LENGTH(tables), .make = Make, .steps = 30};

  return HuntRandom(argc, argv, &hunter);
}

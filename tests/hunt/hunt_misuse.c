/*
  The hunter (hunt.h) on matrices of all origins (pairs.h), of few and of no rows and columns, with and without a
  diagonal. hunt_programs asks whether entries and products agree after what programs do; here there is also what they
  should not do: claims that are not true, operands that do not fit, the same matrix twice, arrays that are held over
  other operations, headers that get other contents, Inf and NaN.

TEST np=1 -runs 100
TEST np=1 -runs 40 -wild
TEST np=2+3 -runs 10
TEST np=1 -runs 10 @emulated
TEST np=1 -runs 10 @emulated -wild -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
TEST np=1 -runs 10 @emulated -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
TEST np=2 -runs 4 @emulated
*/
#include "write.h"
#include "make.h"
#include "read.h"
#include "run.h"

static PetscErrorCode Make(Member *p)
{
  const PetscInt sizes[] = {12, 12, 12, 12, 7, 7, 1, 0};
  PetscInt       some = Size > 1 ? 7 : 8, M = sizes[Draw(some)], N = Draw(3) ? M : sizes[Draw(some)], let = Draw(3);
  Kind           kind    = (Kind)Draw(KINDS);
  Pattern        pattern = (Pattern)Draw(PATTERNS);

  PetscFunctionBeginUser;
  if (!M || !N) kind = HOSTMADE;
  if (PairsTrail) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "pair %d: %s, pattern %d, %d x %d\n", (int)(p - Pool), KindNames[kind], (int)pattern, (int)M, (int)N));
  for (int k = 0; k < 2; k++) {
    PetscCall(PairsMake(kind, pattern, OurType(k), M, N, &p->m[k]));
    if (let || Size > 1) PetscCall(MatSetOption(p->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  }
  p->plain = (PetscBool)(kind == HOSTMADE || kind == PROMOTED || kind == LOCKED || kind == CONVERTED);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const Table  tables[] = {TABLE(Writes), TABLE(Makes), TABLE(Reads), TABLE(Agains)};
  const Hunter hunter   = {.tables = tables, .n = PETSC_STATIC_ARRAY_LENGTH(tables), .make = Make, .steps = 30};

  return HuntRandom(argc, argv, &hunter);
}

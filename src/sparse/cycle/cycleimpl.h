/*
  cycleimpl.h: what the files of the cycle room share.
*/
#ifndef AIJHYBRIDGPU_CYCLEIMPL_H
#define AIJHYBRIDGPU_CYCLEIMPL_H
#include <aijhybridgpu/private/hybcycle.h>

/* blocks.c. Collective: z = M x, y + M x or y - M x for a matrix of several processes; before is an error of this one,
   which those learn who wait for its entries. */
extern PetscErrorCode HybCycleBlocksMult(HybCycleBlocks *, const HybExec *, PetscErrorCode before, const HybScalar *x, HybSpMVMode, const HybScalar *y, HybScalar *z);
/* The same: z = the step, of which x is the vector that is multiplied; HybCycleBlocksHasStep(): can it be made? */
extern PetscErrorCode HybCycleBlocksStep(HybCycleBlocks *, const HybExec *, PetscErrorCode before, const HybScalar *x, const HybSpMVStep *);
extern PetscBool      HybCycleBlocksHasStep(const HybCycleBlocks *);
/* Can it be captured, now and later, whatever others do? */
extern PetscBool HybCycleBlocksRecordable(const HybCycleBlocks *);

#endif

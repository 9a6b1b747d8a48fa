/*
  segmerge.cuh: the segmented merge on the device without a host synchronisation, for callers that know bounds.
  HybSegMergeCUDA finds the bounds itself.
*/
#ifndef AIJHYBRIDGPU_SEGMERGE_CUH
#define AIJHYBRIDGPU_SEGMERGE_CUH
#include "../device/hybdevice.cuh"
#include "aijhybridgpu/private/hybsegmerge.h"

/*
  As HybSegMergeOps.merge (hybsegmerge.h), where no segment has more than maxlists sub-segments or more than longest
  pairs, and npairs is no less than the number of all pairs. No synchronisation.
*/
extern PetscErrorCode HybSegMergeBounded(const HybExec *, HybArena *work, PetscInt nseg, const PetscInt *segptr, const PetscCount *subptr, PetscCount npairs, PetscInt maxlists, PetscCount longest, const PetscInt *key, const PetscCount *value, PetscInt *keyout, PetscCount *valueout);

#endif

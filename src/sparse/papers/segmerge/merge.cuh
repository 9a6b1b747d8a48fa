/*
  merge.cuh: the segmented merge on the device without a host synchronisation, for callers that know bounds.
*/
#ifndef AIJHYBRIDGPU_MERGE_CUH
#define AIJHYBRIDGPU_MERGE_CUH
#include "../../device/hybdevice.cuh"

/*
  As HybSegMerge() (spgemm/binned/segmerge.h), where no segment has more than maxlists sub-segments or more than longest
  pairs, and npairs is no less than the number of all pairs. No synchronisation.
*/
extern PetscErrorCode HybSegMergeBounded(const HybExec *, HybArena *work, PetscInt nseg, const PetscInt *segptr, const PetscCount *subptr, PetscCount npairs, PetscInt maxlists, PetscCount longest, const PetscInt *key, const PetscCount *value, PetscInt *keyout, PetscCount *valueout);

#endif

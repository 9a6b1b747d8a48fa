/*
  segmerge.h: the segmented merge primitive (Ji et al. 2021) on the host: p independent segments, each a list of sorted
  sub-segments of key-value pairs, are merged so that each segment becomes one sorted list.
*/
#ifndef AIJHYBRIDGPU_SEGMERGE_H
#define AIJHYBRIDGPU_SEGMERGE_H
#include "aijhybridgpu/private/hyb.h"

/* Segment s owns sub-segments segptr[s] .. segptr[s+1]-1; sub-segment q owns the pairs subptr[q] .. subptr[q+1]-1,
   ascending in key (equal keys allowed). Both kinds may be empty. The merge is stable: equal keys keep the order of
   their sub-segments, and within one their order. keyout/valueout hold the same pairs, each segment in the place that
   it had. value carries a position, so any number of arrays can follow by one gather. Input and output do not
   overlap. */
extern PetscErrorCode HybSegMerge(HybArena *work, PetscInt nseg, const PetscInt *segptr, PetscInt nsub, const PetscCount *subptr, const PetscInt *key, const PetscCount *value, PetscInt *keyout, PetscCount *valueout, HybCounters *);

#endif

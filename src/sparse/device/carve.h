/*
  carve.h: many small arrays in one allocation.
*/
#ifndef AIJHYBRIDGPU_DEVICE_CARVE_H
#define AIJHYBRIDGPU_DEVICE_CARVE_H
#include <stddef.h>

/* *(void **)ptr = the next bytes of base, aligned as an allocation of the device; with base NULL it only counts */
static inline void HybCarve(char *base, size_t *used, size_t bytes, void *ptr)
{
  *(void **)ptr = base ? base + *used : NULL;
  *used += (bytes + 63) & ~(size_t)63;
}

#endif

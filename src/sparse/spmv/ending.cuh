/*
  ending.cuh: what a method's launch is told of how rows end, from a product's arguments or a smoother's step's.
*/
#ifndef AIJHYBRIDGPU_ENDING_CUH
#define AIJHYBRIDGPU_ENDING_CUH
#include "../structure/rowops.cuh"
#include "aijhybridgpu/private/hybspmv.h"

static inline RowEnding RowEndingOf(HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  RowEnding end = {};

  end.mode = (int)mode;
  end.y    = y;
  end.z    = z;
  return end;
}

/* of HYB_SPMV_SET, where the plan's `first` may be set */
static inline RowEnding RowEndingWithFirst(const HybSpMV *S, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  RowEnding end = RowEndingOf(mode, y, z);

  if (S->first) {
    end.step.dinv  = S->first->dinv;
    end.step.c     = S->first->c;
    end.step.first = S->first->z;
  }
  return end;
}

static inline RowEnding RowEndingOfStep(const HybScalar *x, const HybSpMVStep *s)
{
  RowEnding end = RowEndingOf(HYB_SPMV_STEP, s->y, s->z);

  end.step.x    = x;
  end.step.dinv = s->dinv;
  end.step.w    = s->w;
  end.step.c    = s->c;
  end.step.c0   = s->first;
  return end;
}
#endif

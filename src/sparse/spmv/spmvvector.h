/*
  spmvvector.h: four entries of a row at a time, for the host's SpMV methods.

  x is read by four ordinary loads: the gather instructions of today's processors are no faster than that. Sums have
  four interleaved partial sums with one order of addition on every instruction set, so the bits do not depend on the
  machine either.
*/
#ifndef AIJHYBRIDGPU_SPMVVECTOR_H
#define AIJHYBRIDGPU_SPMVVECTOR_H
#include <aijhybridgpu/private/hybspmv.h>

#if defined(__GNUC__) && !defined(PETSC_USE_COMPLEX) && (defined(PETSC_USE_REAL_DOUBLE) || defined(PETSC_USE_REAL_SINGLE))
typedef PetscReal HybFour __attribute__((vector_size(4 * sizeof(PetscReal))));
typedef PetscReal HybFourLoose __attribute__((vector_size(4 * sizeof(PetscReal)), aligned(sizeof(PetscReal)), may_alias));
  #define HYB_FOUR_ZERO \
    {                   \
      0, 0, 0, 0        \
    }
  #define HYB_FOUR_GET(s, k)                ((s)[k])
  #define HYB_FOUR_PRODUCT(a, x, j)         (*(const HybFourLoose *)(a) * (HybFour){(x)[(j)[0]], (x)[(j)[1]], (x)[(j)[2]], (x)[(j)[3]]})
  #define HYB_FOUR_ADDPRODUCT(s, a, x, j)   ((s) += HYB_FOUR_PRODUCT(a, x, j))
  #define HYB_FOUR_STOREPRODUCT(b, a, x, j) (*(HybFourLoose *)(b) = HYB_FOUR_PRODUCT(a, x, j))
  #define HYB_FOUR_ADD(s, b)                ((s) += *(const HybFourLoose *)(b))
#else
typedef struct {
  HybScalar v[4];
} HybFour;
  #define HYB_FOUR_ZERO \
    {                   \
      {                 \
        0, 0, 0, 0      \
      }                 \
    }
  #define HYB_FOUR_GET(s, k) ((s).v[k])
  #define HYB_FOUR_ADDPRODUCT(s, a, x, j) \
    do {                                  \
      (s).v[0] += (a)[0] * (x)[(j)[0]];   \
      (s).v[1] += (a)[1] * (x)[(j)[1]];   \
      (s).v[2] += (a)[2] * (x)[(j)[2]];   \
      (s).v[3] += (a)[3] * (x)[(j)[3]];   \
    } while (0)
  #define HYB_FOUR_STOREPRODUCT(b, a, x, j) \
    do {                                    \
      (b)[0] = (a)[0] * (x)[(j)[0]];        \
      (b)[1] = (a)[1] * (x)[(j)[1]];        \
      (b)[2] = (a)[2] * (x)[(j)[2]];        \
      (b)[3] = (a)[3] * (x)[(j)[3]];        \
    } while (0)
  #define HYB_FOUR_ADD(s, b) \
    do {                     \
      (s).v[0] += (b)[0];    \
      (s).v[1] += (b)[1];    \
      (s).v[2] += (b)[2];    \
      (s).v[3] += (b)[3];    \
    } while (0)
#endif
#define HYB_FOUR_SUM(s) ((HYB_FOUR_GET(s, 0) + HYB_FOUR_GET(s, 2)) + (HYB_FOUR_GET(s, 1) + HYB_FOUR_GET(s, 3)))

/* A core waits for memory most of the time here, and short rows keep too few loads under way: asking for the arrays
   this many entries ahead makes five- and seven-point stencils faster. Long rows keep more loads under way by
   themselves, and far requests overtake the processor's own: there the near distance is better (27-point stencils, in
   the third-level cache and beyond it). The addresses may lie behind the arrays' ends. Into all
   caches: what is fetched past them leaves nothing behind for the next product of a matrix that the last cache
   holds. */
#define HYB_SPMV_AHEAD      512
#define HYB_SPMV_AHEAD_LONG 64
#if defined(__GNUC__)
  #define HYB_PREFETCH_AHEAD(array, k, ahead) __builtin_prefetch((const char *)(array) + ((ptrdiff_t)(k) + (ahead)) * (ptrdiff_t)sizeof(*(array)), 0, 3)
#else
  #define HYB_PREFETCH_AHEAD(array, k, ahead) ((void)0)
#endif
#define HYB_PREFETCH(array, k) HYB_PREFETCH_AHEAD(array, k, HYB_SPMV_AHEAD)

#define HYB_ALWAYS_INLINE inline __attribute__((always_inline))

static HYB_ALWAYS_INLINE HybScalar HybSpMVCombine(HybSpMVMode mode, const HybScalar *y, PetscInt r, HybScalar sum)
{
  return mode == HYB_SPMV_SET ? sum : (mode == HYB_SPMV_ADD ? y[r] + sum : y[r] - sum);
}

/* the end of row r where that is a smoother's step */
static HYB_ALWAYS_INLINE HybScalar HybSpMVStepEnd(const HybScalar *x, const HybSpMVStep *s, PetscInt r, HybScalar sum)
{
  const HybScalar t = s->c[0] * (s->dinv[r] * (s->y[r] - sum)), b = s->c[1] * x[r];

  return (s->w ? s->c[2] * s->w[r] + b : b) + t;
}
#endif

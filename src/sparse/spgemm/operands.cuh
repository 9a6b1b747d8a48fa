/*
  operands.cuh: what the kernels of several methods get of the operands.
*/
#ifndef AIJHYBRIDGPU_OPERANDS_CUH
#define AIJHYBRIDGPU_OPERANDS_CUH
#include "../device/hybdevice.cuh"

/* all of the arguments zero, but both operands */
template <class ARGS>
static inline void HybSpGEMMOperands(const HybCSR *A, const HybCSR *B, ARGS *x)
{
  memset((void *)x, 0, sizeof(*x));
  x->ai = A->i;
  x->aj = A->j;
  x->aa = A->a;
  x->bi = B->i;
  x->bj = B->j;
  x->ba = B->a;
}

#endif

/*
  csrlist.h: the elementary operations on CSR arrays, one list for the host's table and the device's: OP(member, Name)
  for each member of HybCSROps, in its order; hyb.h says what each does. The functions are HybCSR<Name>_Host and
  HybCSR<Name>_CUDA.
*/
#ifndef AIJHYBRIDGPU_CSRLIST_H
#define AIJHYBRIDGPU_CSRLIST_H
#include "aijhybridgpu/private/hyb.h"

#define HYB_CSR_OPS(OP)                    \
  OP(transposesymbolic, TransposeSymbolic) \
  OP(transpose, Transpose)                 \
  OP(gather, Gather)                       \
  OP(set, Set)                             \
  OP(scale, Scale)                         \
  OP(axpy, AXPY)                           \
  OP(diagonalscale, DiagonalScale)         \
  OP(getdiagonal, GetDiagonal)             \
  OP(diagonalset, DiagonalSet)             \
  OP(axpysubset, AXPYSubset)               \
  OP(addsymbolic, AddSymbolic)             \
  OP(addnumeric, AddNumeric)               \
  OP(patternhash, PatternHash)             \
  OP(check, Check)                         \
  OP(rowlengths, RowLengths)               \
  OP(diagonalplaces, DiagonalPlaces)       \
  OP(samerows, SameRows)                   \
  OP(norm, Norm)                           \
  OP(coosymbolic, COOSymbolic)             \
  OP(coonumeric, COONumeric)               \
  OP(coosplit, COOSplit)                   \
  OP(coocompose, COOCompose)               \
  OP(submatrixsymbolic, SubMatrixSymbolic) \
  OP(submatrixmapped, SubMatrixMapped)     \
  OP(multdense, MultDense)

#define HYB_CSR_DECLARE(member, Name) extern __typeof__(*((const HybCSROps *)0)->member) HybCSR##Name##_Host, HybCSR##Name##_CUDA;
HYB_EXTERN_C_BEGIN
HYB_CSR_OPS(HYB_CSR_DECLARE)
/* rowlengths() of some rows, from the one numbered `from` to the one before `to`: the part of one of the threads */
extern void HybCSRRowLengthsPart(PetscInt from, PetscInt to, const PetscInt *i, PetscInt *const length[2], PetscInt *longest, PetscInt *nonempty);
HYB_EXTERN_C_END
#undef HYB_CSR_DECLARE

#endif

/*
  The table of the device's elementary operations on CSR arrays.
*/
#include "csrops.cuh"

HYB_EXTERN_C_BEGIN
extern const HybCSROps HybCSROpsCUDA;
HYB_EXTERN_C_END

const HybCSROps HybCSROpsCUDA = {
  HybCSRTransposeSymbolic_CUDA,
  HybCSRTranspose_CUDA,
  HybCSRGather_CUDA,
  HybCSRSet_CUDA,
  HybCSRScale_CUDA,
  HybCSRAXPY_CUDA,
  HybCSRDiagonalScale_CUDA,
  HybCSRGetDiagonal_CUDA,
  HybCSRDiagonalSet_CUDA,
  HybCSRAXPYSubset_CUDA,
  HybCSRAddSymbolic_CUDA,
  HybCSRAddNumeric_CUDA,
  HybPatternHashCUDA,
  HybCSRCheck_CUDA,
  HybCSRRowLengths_CUDA,
  HybCSRDiagonalPlaces_CUDA,
  HybCSRSameRows_CUDA,
  HybCSRNorm_CUDA,
  HybCSRCOOSymbolic_CUDA,
  HybCSRCOONumeric_CUDA,
  HybCSRCOOSplit_CUDA,
  HybCSRCOOCompose_CUDA,
  HybCSRSubMatrixSymbolic_CUDA,
  HybCSRSubMatrixMapped_CUDA,
  HybCSRMultDense_CUDA,
  HybCSRMergeBlocks_CUDA,
  HybCSRMergeValues_CUDA,
  HybCSRSplitColumns_CUDA,
  HybCSRStackRows_CUDA,
  HybCSROutsideColumns_CUDA,
  HybCSRNumberColumns_CUDA,
  HybCSRMapColumns_CUDA,
  HybCSRUsedColumns_CUDA,
  HybCSRCompressRows_CUDA,
  HybCSRExpandRows_CUDA,
  HybCSRSequence_CUDA,
  HybCSRRowsOfEntries_CUDA,
};

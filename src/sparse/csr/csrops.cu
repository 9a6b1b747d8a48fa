/*
  The table of the device's elementary operations on CSR arrays.
*/
#include "csrops.cuh"

HYB_EXTERN_C_BEGIN
extern const HybCSROps HybCSROpsCUDA;
HYB_EXTERN_C_END

const HybCSROps HybCSROpsCUDA = {
  .transposesymbolic = HybCSRTransposeSymbolic_CUDA,
  .transpose         = HybCSRTranspose_CUDA,
  .gather            = HybCSRGather_CUDA,
  .set               = HybCSRSet_CUDA,
  .scale             = HybCSRScale_CUDA,
  .axpy              = HybCSRAXPY_CUDA,
  .diagonalscale     = HybCSRDiagonalScale_CUDA,
  .getdiagonal       = HybCSRGetDiagonal_CUDA,
  .diagonalset       = HybCSRDiagonalSet_CUDA,
  .axpysubset        = HybCSRAXPYSubset_CUDA,
  .addsymbolic       = HybCSRAddSymbolic_CUDA,
  .addnumeric        = HybCSRAddNumeric_CUDA,
  .patternhash       = HybCSRPatternHash_CUDA,
  .check             = HybCSRCheck_CUDA,
  .rowlengths        = HybCSRRowLengths_CUDA,
  .diagonalplaces    = HybCSRDiagonalPlaces_CUDA,
  .samerows          = HybCSRSameRows_CUDA,
  .norm              = HybCSRNorm_CUDA,
  .coosymbolic       = HybCSRCOOSymbolic_CUDA,
  .coonumeric        = HybCSRCOONumeric_CUDA,
  .coosplit          = HybCSRCOOSplit_CUDA,
  .coocompose        = HybCSRCOOCompose_CUDA,
  .submatrixsymbolic = HybCSRSubMatrixSymbolic_CUDA,
  .submatrixmapped   = HybCSRSubMatrixMapped_CUDA,
  .multdense         = HybCSRMultDense_CUDA,
  .mergeblocks       = HybCSRMergeBlocks_CUDA,
  .mergevalues       = HybCSRMergeValues_CUDA,
  .splitcolumns      = HybCSRSplitColumns_CUDA,
  .stackrows         = HybCSRStackRows_CUDA,
  .outsidecolumns    = HybCSROutsideColumns_CUDA,
  .numbercolumns     = HybCSRNumberColumns_CUDA,
  .mapcolumns        = HybCSRMapColumns_CUDA,
  .usedcolumns       = HybCSRUsedColumns_CUDA,
  .compressrows      = HybCSRCompressRows_CUDA,
  .expandrows        = HybCSRExpandRows_CUDA,
  .sequence          = HybCSRSequence_CUDA,
  .rowsofentries     = HybCSRRowsOfEntries_CUDA,
};

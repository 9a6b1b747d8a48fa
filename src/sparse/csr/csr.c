/* csr.c: the host's table of elementary operations */
#include "csrhost.h"

const HybCSROps HybCSROpsHost = {
  .transposesymbolic = HybTransposeSymbolic_Host,
  .transpose         = HybTranspose_Host,
  .gather            = HybGather_Host,
  .set               = HybSet_Host,
  .scale             = HybScale_Host,
  .axpy              = HybAXPY_Host,
  .diagonalscale     = HybDiagonalScale_Host,
  .getdiagonal       = HybGetDiagonal_Host,
  .diagonalset       = HybDiagonalSet_Host,
  .axpysubset        = HybAXPYSubset_Host,
  .addsymbolic       = HybAddSymbolic_Host,
  .addnumeric        = HybAddNumeric_Host,
  .patternhash       = HybPatternHash_Host,
  .check             = HybCheck_Host,
  .rowlengths        = HybRowLengths_Host,
  .diagonalplaces    = HybDiagonalPlaces_Host,
  .norm              = HybNorm_Host,
  .coosymbolic       = HybCOOSymbolic_Host,
  .coonumeric        = HybCOONumeric_Host,
  .coosplit          = HybCOOSplit_Host,
  .coocompose        = HybCOOCompose_Host,
  .submatrixsymbolic = HybSubmatrixSymbolic_Host,
  .submatrixmapped   = HybSubmatrixMapped_Host,
  .multdense         = HybMultDense_Host,
};

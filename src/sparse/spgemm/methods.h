/*
  The SpGEMM methods, one line each, in the order in which "auto" asks them. No include guard: whoever includes this
  defines HYB_METHOD_HOST(name, symbol) and HYB_METHOD_CUDA(name, symbol) first and gets one of them a line. Each symbol
  is a const HybSpGEMMMethod, defined in <method>.c or <method>.cu, here, in a folder of the
  method's name, or, the papers' methods, in ../papers.
*/
HYB_METHOD_HOST("shape", HybSpGEMM_Shape)
HYB_METHOD_HOST("padded", HybSpGEMM_Padded)
HYB_METHOD_HOST("rowmerge", HybSpGEMM_RowMerge)
HYB_METHOD_HOST("binned", HybSpGEMM_Binned)
HYB_METHOD_CUDA("diagonal", HybSpGEMM_DiagonalCUDA)
HYB_METHOD_CUDA("block", HybSpGEMM_BlockCUDA)
HYB_METHOD_CUDA("rowmerge", HybSpGEMM_RowMergeCUDA)
HYB_METHOD_CUDA("shape", HybSpGEMM_ShapeCUDA)
HYB_METHOD_CUDA("hash", HybSpGEMM_HashCUDA)
/* by name only, for hash takes all operands: the papers' methods (docs/methods.md) */
HYB_METHOD_CUDA("binned", HybSpGEMM_BinnedCUDA)
HYB_METHOD_CUDA("segmerge", HybSpGEMM_SegMergeCUDA)
HYB_METHOD_CUDA("tile", HybSpGEMM_TileCUDA)

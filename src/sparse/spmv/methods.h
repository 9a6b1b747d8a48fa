/*
  The SpMV methods, one line each, in the order in which "auto" asks them. No include guard: whoever includes this
  defines HYB_METHOD_HOST(name, symbol) and HYB_METHOD_CUDA(name, symbol) first and gets one of them a line. Each symbol
  is a const HybSpMVMethod, defined in <method>.c or <method>.cu, here, in a folder of the
  method's name, or, the papers' methods, in ../papers.
*/
HYB_METHOD_HOST("csr", HybSpMV_CSR)
HYB_METHOD_HOST("segsum", HybSpMV_SegSum) /* by name only: the paper's method, which a device has below */
HYB_METHOD_CUDA("rowlist", HybSpMV_RowListCUDA)
HYB_METHOD_CUDA("block", HybSpMV_BlockCUDA)
HYB_METHOD_CUDA("shape", HybSpMV_ShapeCUDA)
HYB_METHOD_CUDA("rowgroup", HybSpMV_RowGroupCUDA)
HYB_METHOD_CUDA("segsum", HybSpMV_SegSumCUDA) /* for one product alone, or by name */

/*
  The fused Galerkin methods, one line each, in the order in which they are asked. No include guard: whoever includes
  this defines HYB_METHOD_HOST(name, symbol) and HYB_METHOD_CUDA(name, symbol) first and gets one of them a line. Each
  symbol is a const HybPtAPMethod, defined in <method>.c or <method>.cu, here, in a folder of the
  method's name, or, the papers' methods, in ../papers.
*/
HYB_METHOD_HOST("fused", HybPtAP_Fused)
HYB_METHOD_HOST("thin", HybPtAP_Thin)
HYB_METHOD_CUDA("fused", HybPtAP_FusedCUDA) /* by name only: the stages were faster in all that was measured */

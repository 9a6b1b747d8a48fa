# All benchmarks that need a GPU: benchmarks/bench-gpu
# a header that changed rebuilds the benchmarks too
-include $(wildcard $(BUILD)/benchmarks/*.d)
.PHONY: bench-gpu
bench-gpu: plugin cuda $(BUILD)/benchmarks/bench_mat $(BUILD)/benchmarks/bench_spmv $(BUILD)/benchmarks/bench_spgemm
	MATRICES=$(MATRICES) benchmarks/bench-gpu $(BUILD)/benchmarks $(CURDIR)/$(CUDA_LIB) $(CURDIR)/$(BUILD)/lib/$(PLUGIN) $(BENCH_RESULTS) $(BENCH_PARTS)

## make bench-gpu       a GPU: the type beside aijcusparse as a PETSc user sees it, bare products beside cuSPARSE, into
##                      BENCH_RESULTS=benchmarks/results; BENCH_PARTS="mat gamg elastic spgemm spmv"

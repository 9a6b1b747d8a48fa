# All benchmarks that need a GPU: benchmarks/bench-gpu
# a header that changed rebuilds the benchmarks too
-include $(wildcard $(BUILD)/benchmarks/*.d)
.PHONY: bench-gpu
bench-gpu: plugin cuda $(BUILD)/benchmarks/bench_mat $(BUILD)/benchmarks/bench_spmv $(BUILD)/benchmarks/bench_spgemm
	MATRICES=$(MATRICES) benchmarks/bench-gpu $(BUILD)/benchmarks $(CURDIR)/$(CUDA_LIB) $(CURDIR)/$(BUILD)/lib/$(PLUGIN) $(BENCH_RESULTS) $(BENCH_PARTS)

# several GPUs of one host
GPUS ?= 1 2
.PHONY: bench-gpus
bench-gpus: plugin cuda $(BUILD)/benchmarks/bench_mat
	STRONG=1 BYTES=1 benchmarks/bench-gpus $(BUILD)/benchmarks $(CURDIR)/$(BUILD)/lib/$(PLUGIN) $(BENCH_RESULTS) $(GPUS)
	t=$$(ls -t $(BENCH_RESULTS)/gpus-*.tsv | head -1); python3 benchmarks/plot-gpus.py $$t "$$(basename $$t .tsv)" > $${t%.tsv}.svg

## make bench-gpus      several GPUs of one host, GPUS="1 2 4": weak and strong scaling, bytes between cards, table and
##                      plot by benchmarks/plot-gpus.py
## make bench-gpu       a GPU: the type beside aijcusparse as a PETSc user sees it, bare products beside cuSPARSE, into
##                      BENCH_RESULTS=benchmarks/results; BENCH_PARTS="mat gamg elastic spgemm spmv"

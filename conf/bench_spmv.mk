# The benchmark of products with a vector, transposes and operations on values; it links the rooms' objects and opens a
# device library at run time.
BENCH_SPMV_ARGS ?= -backend $(CURDIR)/$(CUDA_LIB) -matrices $(MATRICES)
CUDA_INCLUDE = $(if $(NVCC),$(dir $(NVCC))../include)

$(BUILD)/benchmarks/bench_spmv.o $(BUILD)/benchmarks/bench_spgemm.o: CFLAGS_ALL += $(if $(CUDA_INCLUDE),-isystem $(CUDA_INCLUDE))
$(BUILD)/benchmarks/bench_spmv: $(BUILD)/benchmarks/bench_spmv.o $(BUILD)/librooms.a
	$(call SAY,$@)$(PETSC_CC) $(SAN) -o $@ $^ $(PETSC_LIBS) -lm -ldl

.PHONY: bench-spmv
bench-spmv: $(BUILD)/benchmarks/bench_spmv $(if $(filter 1,$(CUDA)),$(CUDA_LIB))
	$< $(BENCH_SPMV_ARGS)

## make bench-spmv      times and checks products with a vector, transposes and value operations on a GPU,
##                      BENCH_SPMV_ARGS="-backend ... -only 27-pt"

# The benchmark of the sparse products on bare CSR arrays; it links the rooms' objects and opens a device library at run
# time.
BENCH_SPGEMM_ARGS ?= -backend $(CURDIR)/$(CUDA_LIB) -methods auto,shape,hash -matrices $(MATRICES)

$(BUILD)/benchmarks/bench_spgemm: $(BUILD)/benchmarks/bench_spgemm.o $(BUILD)/librooms.a
	$(call SAY,$@)$(PETSC_CC) $(SAN) -o $@ $^ $(PETSC_LIBS) -lm -ldl

.PHONY: bench-spgemm
bench-spgemm: $(BUILD)/benchmarks/bench_spgemm $(if $(filter 1,$(CUDA)),$(CUDA_LIB))
	$< $(BENCH_SPGEMM_ARGS)

## make bench-spgemm    times and checks sparse products on a GPU, BENCH_SPGEMM_ARGS="-backend ... -methods auto,hash
##                      -only 27-pt"

# The benchmarks of a matrix type as a PETSc user sees it: they link PETSc alone
$(BUILD)/benchmarks/bench_mat $(BUILD)/benchmarks/bench_steps $(BUILD)/benchmarks/bench_columns $(BUILD)/benchmarks/bench_big: %: %.o
	$(call SAY,$@)$(PETSC_CC) $(SAN) -o $@ $^ $(PETSC_LIBS) -lm
.PHONY: bench-mat bench-columns bench-steps bench-big bench-big-short
bench-mat: $(BUILD)/benchmarks/bench_mat
bench-columns: $(BUILD)/benchmarks/bench_columns
bench-steps: $(BUILD)/benchmarks/bench_steps
bench-big: $(BUILD)/benchmarks/bench_big
# small, on the host and on the emulated device
bench-big-short: plugin emulator $(BUILD)/benchmarks/bench_big
	$(TEST_ENV) $(BUILD)/benchmarks/bench_big -dll_append $(CURDIR)/$(BUILD)/lib/$(PLUGIN) -mat_type aijhybridgpu -mat_aijhybridgpu_backend host -n 20 -repeat 1
	$(TEST_ENV) $(BUILD)/benchmarks/bench_big -dll_append $(CURDIR)/$(BUILD)/lib/$(PLUGIN) -mat_type aijhybridgpu $(EMULATED_OPTIONS) -n 20 -repeat 1

## make bench-mat       builds the benchmark of a matrix type as a PETSc user sees it (benchmarks/bench_mat.c says how
##                      to run it)
## make bench-columns   builds the benchmark of several right-hand sides (benchmarks/bench_columns.c)
## make bench-steps     builds the benchmark of the first, the second and the hundredth time (benchmarks/bench_steps.c)
## make bench-big       builds the benchmark of one matrix of more than 2^31 entries on a card (benchmarks/bench_big.c);
##                      bench-big-short, for CI, runs it with few on the emulated device

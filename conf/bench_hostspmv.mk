# The host's products with a vector beside PETSc's
BENCH_SPMV_HOST_BIN = $(BUILD)/benchmarks/bench_hostspmv
$(BENCH_SPMV_HOST_BIN): benchmarks/bench_hostspmv.c $(BUILD)/tests/hybtest.o $(BUILD)/tests/reference/ref.o $(BUILD)/librooms.a
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) $(CFLAGS_ALL) -Itests -o $@ $^ $(PETSC_LIBS) -lm -ldl
.PHONY: bench-spmv-host
bench-spmv-host: $(BENCH_SPMV_HOST_BIN)
	$(TEST_ENV) $(BENCH_SPMV_HOST_BIN) -matrices $(MATRICES) $(BENCH_SPMV_HOST_ARGS)

## make bench-spmv-host times and checks the host's products with a vector beside PETSc's, BENCH_SPMV_HOST_ARGS="-reps 40 -only 27-point"

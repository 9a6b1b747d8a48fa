# The host's benchmarks beside PETSc's MATAIJ; their matrices come from benchmarks/hostcases.h
HOST_BENCHES := bench_host bench_hostspmv bench_hostmat
HOST_BENCH_BIN = $(HOST_BENCHES:%=$(BUILD)/benchmarks/%)
BENCH_RESULTS ?= benchmarks/results
BENCH_HOST_ARGS ?= -methods auto,binned,rowmerge

$(HOST_BENCH_BIN): $(BUILD)/benchmarks/%: benchmarks/%.c benchmarks/hostcases.h $(BUILD)/tests/harness/hybtest.o $(BUILD)/tests/harness/hybmatrices.o $(BUILD)/tests/harness/reference/ref.o $(BUILD)/librooms.a
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) $(CFLAGS_ALL) -Itests/harness -o $@ $(filter-out %.h,$^) $(PETSC_LIBS) -lm -ldl

BENCH_AIJ_NP ?= 1 2
BENCH_AIJ_ARGS ?=
$(BUILD)/benchmarks/bench_aij: benchmarks/bench_aij.c benchmarks/bench_wait.h
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) $(CFLAGS_ALL) -o $@ $< $(PETSC_LIBS) -lm -ldl

.PHONY: bench bench-host bench-spmv-host bench-aij bench-aij-short
bench-aij: plugin $(BUILD)/benchmarks/bench_aij
	@for n in $(BENCH_AIJ_NP); do echo "processes: $$n"; $(TEST_ENV) mpiexec -n $$n $(BUILD)/benchmarks/bench_aij -dll_append $(CURDIR)/$(BUILD)/lib/$(PLUGIN) -mat_aijhybridgpu_backend host $(BENCH_AIJ_ARGS) || exit; done
bench-aij-short: plugin $(BUILD)/benchmarks/bench_aij
	$(TEST_ENV) $(BUILD)/benchmarks/bench_aij -dll_append $(CURDIR)/$(BUILD)/lib/$(PLUGIN) -mat_aijhybridgpu_backend host -sizes 100,1000,10000 -limit 1.8 -slack 0.2
bench: plugin $(BUILD)/benchmarks/bench_hostmat
	@mkdir -p $(BENCH_RESULTS)
	$(TEST_ENV) $(BUILD)/benchmarks/bench_hostmat -dll_append $(CURDIR)/$(BUILD)/lib/$(PLUGIN) -matrices $(MATRICES) -csv $(BENCH_RESULTS)/host.csv $(BENCH_ARGS)
	python3 benchmarks/plot-host.py $(BENCH_RESULTS)/host.csv > $(BENCH_RESULTS)/host.svg
bench-host: $(BUILD)/benchmarks/bench_host
	$(TEST_ENV) $< -matrices $(MATRICES) $(BENCH_HOST_ARGS)
bench-spmv-host: $(BUILD)/benchmarks/bench_hostspmv
	$(TEST_ENV) $< -matrices $(MATRICES) $(BENCH_SPMV_HOST_ARGS)

## make bench           the host: MatMult, products, Galerkin products and GAMG's setup beside MATAIJ's, into
##                      BENCH_RESULTS=benchmarks/results/host.{csv,svg}; MATRICES=DIR for the real matrices,
##                      BENCH_ARGS="-only 27pt -reps 5"
## make bench-aij       every operation of Mat beside MATAIJ's, sizes 10 to 10^6, BENCH_AIJ_NP="1 2" processes: prints
##                      what
##                      takes more than 1.1 times as long, BENCH_AIJ_ARGS="-all -sizes 10,1000 -only MatAXPY";
##                      bench-aij-short, for CI: an error above 1.8
## make bench-host      times and checks the host's methods of sparse products against MATAIJ's, BENCH_HOST_ARGS="-case
##                      27pt,cage11 -op ptap -methods fused"
## make bench-spmv-host times and checks the host's methods of products with a vector beside PETSc's,
##                      BENCH_SPMV_HOST_ARGS="-reps 40 -only 27pt"

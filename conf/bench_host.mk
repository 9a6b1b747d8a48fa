# The host's products against MATAIJ's: benchmarks/bench_host.c
BENCH_HOST_ARGS ?= -methods auto,binned,rowmerge

$(BUILD)/benchmarks/bench_host: $(BUILD)/benchmarks/bench_host.o $(BUILD)/librooms.a
	$(PETSC_CC) $(SAN) -o $@ $^ $(PETSC_LIBS) -lm -ldl
.PHONY: bench-host
bench-host: $(BUILD)/benchmarks/bench_host
	$< -matrices $(MATRICES) $(BENCH_HOST_ARGS)

## make bench-host      times and checks the host's sparse products against MATAIJ's, BENCH_HOST_ARGS="-case 27pt,cage11 -op ptap -methods fused"

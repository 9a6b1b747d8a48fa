# Tests on a real GPU. The report is kept in the repository: what ran, on what, and the hash of the sources that it is
# about.
PART ?= unit
GPU_REPORT := tests/gpu-report.txt

.PHONY: check-gpu gpu-report-status
check-gpu: all cuda
	@$(MAKE) --no-print-directory $(if $(filter conformance,$(PART)),conformance-bundle,$(UNIT_BIN) $(MAT_BIN) $(RANKS_BIN))
	@CONFORMANCE_BUNDLE="$${CONFORMANCE_BUNDLE:-$(CONFORMANCE_BUNDLE)}" tests/check-gpu $(PART) $(BUILD)/tests $(CURDIR)/$(CUDA_LIB) $(CURDIR)/$(BUILD)/lib/$(PLUGIN) $(GPU_REPORT)

gpu-report-status:
	@tests/gpu-report-status $(GPU_REPORT)

# One archive for a machine with a card, and without PETSc, a compiler or a network: conf/gpu-pack, tests/gpu-run. PARTS
# of check-gpu whose programs go along, and PACK_MATRICES, names of files in MATRICES
PARTS ?= unit cards faults sanitizer
PACK_MATRICES ?=
PACK = $(BUILD)/gpu-pack
pack_tests = $(sort $(if $(filter unit,$(PARTS)),$(UNIT_TESTS) $(MAT_TESTS)) $(if $(filter sanitizer,$(PARTS)),$(UNIT_TESTS)) \
  $(if $(filter cards,$(PARTS)),$(RANKS_TESTS) $(basename $(notdir $(filter tests/parallel/% tests/faults/% tests/solve/% %/hunt_products.c %/gamg_parallel.c %/gamg_one_process_fails.c,$(MAT_SRC))))) $(if $(filter faults,$(PARTS)),mat_products csr_failing_allocations spmv_errors))

.PHONY: gpu-pack gpu-pack-check gpu-report-add
gpu-pack: $(if $(filter 1,$(CUDA)),$(if $(filter-out unit cards faults sanitizer conformance,$(PARTS)),,all cuda))
	@$(if $(filter 1,$(CUDA)),,echo "make gpu-pack: it needs CUDA's nvcc$(if $(NVCC),: leave CUDA=0 out,, on the PATH or as NVCC=FILE)" >&2; exit 2)
	@$(MAKE) --no-print-directory $(if $(filter conformance,$(PARTS)),conformance-bundle) $(pack_tests:%=$(BUILD)/tests/%) $(patsubst %,$(BUILD)/benchmarks/%,bench_mat bench_aij bench_steps bench_columns bench_big bench_spgemm bench_spmv)
	@PARTS='$(PARTS)' PACK_MATRICES='$(PACK_MATRICES)' MATRICES='$(MATRICES)' CUDA_LIB='$(CUDA_LIB)' CONFORMANCE_BUNDLE='$(CONFORMANCE_BUNDLE)' \
	  BUILT_WITH="nvcc $$($(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'), PETSc $(PETSC_VERSION) $$(echo '$(PETSC_ID)' | cut -d- -f2,3)" conf/gpu-pack $(PACK) $(BUILD) $(pack_tests)

gpu-pack-check:
	@[ -f $(PACK).tar.xz ] || { echo "make gpu-pack-check: there is no $(PACK).tar.xz; make gpu-pack with the same PETSC_DIR and PETSC_ARCH first" >&2; exit 2; }
	@tests/gpu-pack-check $(PACK).tar.xz $(BUILD) $(LIBDIR) $(PETSC_LIBDIR)

# what comes back from there: lines of tests/check-gpu's with the sources that were packed
gpu-report-add:
	@grep -q '^part ' '$(FILE)' && grep -q '^  sources ' '$(FILE)' || { echo "make gpu-report-add FILE=RESULTS/gpu-report.txt: '$(FILE)' is no report of tests/check-gpu's" >&2; exit 2; }
	@cat '$(FILE)' >> $(GPU_REPORT)
	@tests/gpu-report-status $(GPU_REPORT) || true

## make check-gpu       tests on a real GPU, PART=unit|sanitizer|cards|conformance|faults; appends to
##                      tests/gpu-report.txt
## make gpu-report-status  says whether the last run of each part in tests/gpu-report.txt is about these sources, or
##                         what differs
## make gpu-pack        an archive for a machine with a card and without PETSc or compilers: tests, PARTS="unit cards
##                      faults sanitizer conformance", benchmarks, PACK_MATRICES="cage11 gun_K"
## make gpu-pack-check  looks at that archive here, as such a machine would
## make gpu-report-add FILE=gpu-report.txt  adds what came back from there to tests/gpu-report.txt

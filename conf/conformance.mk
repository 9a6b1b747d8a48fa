# PETSc's own tests with our type in AIJ's place: tests/conformance/run.py says how they are chosen and judged.
#
# CONFORMANCE_JOBS (commands at a time), CONFORMANCE_MODES, SEARCH (regular expression over program and line), FAILED=1 (what failed last time),
# CONFORMANCE_TYPE and CONFORMANCE_PLUGIN (another type, e.g. aijperm, and no plugin), CONFORMANCE_ARGS (more arguments of run.py)

CONFORMANCE_JOBS ?= 2
CONFORMANCE_MODES ?= mat_type,seqaij_type
CONFORMANCE_TYPE ?= aijhybridgpu
CONFORMANCE_PLUGIN ?= $(abspath $(BUILD)/lib/$(PLUGIN))
CHECK_TARGETS += conformance-fast

conformance_run = PETSC_PREFIX='$(PETSC_PREFIX)' PETSC_VERSION='$(PETSC_VERSION)' PETSC_CC='$(PETSC_CC)' PETSC_CFLAGS='$(PETSC_CFLAGS)' PETSC_LIBS='$(PETSC_LIBS)' \
  MPIEXEC='$(MPIEXEC)' python3 tests/conformance/run.py --build build/$(PETSC_ID)/conformance --type $(CONFORMANCE_TYPE) \
  $(if $(CONFORMANCE_PLUGIN),--plugin $(CONFORMANCE_PLUGIN)) --jobs $(CONFORMANCE_JOBS) $(if $(SEARCH),--search '$(SEARCH)') $(if $(FAILED),--failed) $(CONFORMANCE_ARGS)

.PHONY: conformance conformance-fast
## make conformance     PETSc's own tests with our type, by -mat_type and by -mat_seqaij_type (SEARCH=regex: some of them)
conformance: $(if $(CONFORMANCE_PLUGIN),$(BUILD)/lib/$(PLUGIN))
	@$(conformance_run) --mode $(CONFORMANCE_MODES)

## make conformance-fast  a representative part of it, in both modes
conformance-fast: $(if $(CONFORMANCE_PLUGIN),$(BUILD)/lib/$(PLUGIN))
	@$(conformance_run) --fast --mode $(CONFORMANCE_MODES)

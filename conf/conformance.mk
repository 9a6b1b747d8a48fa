# PETSc's own tests with our type in AIJ's place: tests/conformance/run.py says how they are chosen and judged.
#
# CONFORMANCE_JOBS (commands at a time), CONFORMANCE_MODES, CONFORMANCE_PART (of the fast list, as run.py's --part),
# SEARCH (regular expression over program and line), FAILED=1 (what failed last time), CONFORMANCE_TYPE and
# CONFORMANCE_PLUGIN (another type, e.g. aijperm, and no plugin), CONFORMANCE_ARGS (more arguments of run.py)

CONFORMANCE_JOBS ?= 2
CONFORMANCE_MODES ?= mat_type,seqaij_type
CONFORMANCE_FAST_MODES ?= $(CONFORMANCE_MODES)
CONFORMANCE_TYPE ?= aijhybridgpu
CONFORMANCE_PLUGIN ?= $(abspath $(BUILD)/lib/$(PLUGIN))
CHECK_TARGETS += conformance-fast
MORE_TARGETS += conformance-fast

conformance_run = PETSC_PREFIX='$(PETSC_PREFIX)' PETSC_VERSION='$(PETSC_VERSION)' PETSC_CC='$(PETSC_CC)' PETSC_CFLAGS='$(PETSC_CFLAGS)' PETSC_LIBS='$(PETSC_LIBS)' \
  MPIEXEC='$(MPIEXEC)' python3 tests/conformance/run.py --build build/$(PETSC_ID)/conformance --type $(CONFORMANCE_TYPE) \
  $(if $(CONFORMANCE_PLUGIN),--plugin $(CONFORMANCE_PLUGIN)) --jobs $(CONFORMANCE_JOBS) $(if $(SEARCH),--search '$(SEARCH)') $(if $(FAILED),--failed) $(if $(PETSC_CARD_OPTIONS),--options '$(PETSC_CARD_OPTIONS)') $(CONFORMANCE_ARGS)

CONFORMANCE_BUNDLE ?= $(abspath build/$(PETSC_ID)/conformance-bundle)

.PHONY: conformance conformance-fast conformance-bundle
## make conformance     PETSc's own tests with our type, by -mat_type and by -mat_seqaij_type (SEARCH=regex: some of
##                      them)
conformance: $(if $(CONFORMANCE_PLUGIN),$(BUILD)/lib/$(PLUGIN))
	@$(conformance_run) --mode $(CONFORMANCE_MODES)

## make conformance-fast  a representative part of it, in both modes
conformance-fast: $(if $(CONFORMANCE_PLUGIN),$(BUILD)/lib/$(PLUGIN))
	@$(conformance_run) --fast --mode $(CONFORMANCE_FAST_MODES) $(if $(CONFORMANCE_PART),--part $(CONFORMANCE_PART))

## make conformance-bundle  its programs, outputs and data in one folder, CONFORMANCE_BUNDLE, for machines without
##                          PETSc's sources
conformance-bundle:
	@$(conformance_run) --mode mat_type --bundle $(CONFORMANCE_BUNDLE)

# programs of ours as people write them, which PETSc's own tests have none of: matrices filled anew at every step, in
# four ways
.PHONY: conformance-programs
CHECK_TARGETS += conformance-programs
MORE_TARGETS += conformance-programs
## make conformance-programs  time steppers that fill their matrices anew: coordinates, MatSetValues(), convert and copy
conformance-programs: $(if $(CONFORMANCE_PLUGIN),$(BUILD)/lib/$(PLUGIN))
	@$(subst /conformance --type,/conformance/programs --type,$(conformance_run)) --sources $(CURDIR)/tests/conformance/programs/src --mode $(CONFORMANCE_MODES)

# SLEPc's and Python's programs, by PETSC_OPTIONS alone, where they are installed for the PETSc in use
SLEPC_SOURCES ?= $(firstword $(wildcard /usr/share/slepc/*/share/slepc/examples/src) $(if $(SLEPC_DIR),$(SLEPC_DIR)/src))
.PHONY: conformance-slepc conformance-python
## make conformance-slepc     SLEPc's tutorials and tests (Debian: slepc-dev, libslepc3.18-dev-examples), and of ours
##                            Davidson with GAMG, shift and invert, SVD
slepc_run = $(subst PETSC_CFLAGS='$(PETSC_CFLAGS)' PETSC_LIBS='$(PETSC_LIBS)',PETSC_CFLAGS="`pkg-config --cflags slepc` $(PETSC_CFLAGS)" PETSC_LIBS="`pkg-config --libs slepc` $(PETSC_LIBS)",$(conformance_run))
conformance-slepc: $(BUILD)/lib/$(PLUGIN)
	@{ if pkg-config --exists slepc; then \
	  $(subst /conformance --type,/conformance/slepc-ours --type,$(slepc_run)) --sources $(CURDIR)/tests/conformance/slepc/src --mode $(CONFORMANCE_MODES); \
	  if [ -n "$(SLEPC_SOURCES)" ]; then $(subst /conformance --type,/conformance/slepc --type,$(slepc_run)) --sources $(SLEPC_SOURCES) --mode $(CONFORMANCE_MODES); \
	  else echo "SKIPPED: SLEPc's examples are not installed"; echo "0 passed, 0 failed, 1 skipped"; fi; \
	else echo "SKIPPED: SLEPc is not installed"; echo "0 passed, 0 failed, 1 skipped"; fi; } | $(sum_of_runs)

# the closing lines of several runs as one
sum_of_runs = awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped/ { p += $$1; f += $$3; s += $$5; next } { print } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || !(p + s) }'

## make conformance-python    petsc4py's demos, a program of FEniCSx (Debian: python3-petsc4py, python-petsc4py-doc,
##                            python3-dolfinx-real)
conformance-python: $(BUILD)/lib/$(PLUGIN)
	@python3 tests/conformance/python_programs.py $<

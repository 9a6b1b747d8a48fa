# The demonstration, installation, and the examples

## make demo            PETSc's elasticity tutorial with the type, beside aij and hypre; prints what to do with your own program
.PHONY: demo examples install uninstall

# PETSc's tutorials: in the installed prefix, or in the source tree that was built
DEMO_SOURCE = $(firstword $(wildcard $(addsuffix /src/ksp/ksp/tutorials/ex56.c,$(PETSC_PREFIX)/share/petsc/examples $(PETSC_PREFIX)/.. $(PETSC_PREFIX) $(PETSC_DIR))))
DEMO_DIR = $(BUILD)/demo

demo: plugin
	@DEMO_SOURCE='$(DEMO_SOURCE)' PETSC_VERSION='$(PETSC_VERSION)' PETSC_PREFIX='$(PETSC_PREFIX)' conf/findexamples > $(DEMO_DIR).source
	@$(MAKE) --no-print-directory -s $(DEMO_DIR)/ex56 DEMO_SOURCE="$$(cat $(DEMO_DIR).source)"
	@DEMO_PETSC='PETSc $(PETSC_VERSION) ($(PETSC_PREFIX))' DEMO_HYPRE=$(if $(shell printf '\043include <petscconf.h>\nPETSC_HAVE_HYPRE\n' | $(PETSC_CC) $(PETSC_CFLAGS) -E -P - 2>/dev/null | grep -x 1),1,0) \
	  conf/demo "$$(cat $(DEMO_DIR).source)" $(DEMO_DIR)/ex56 "$(abspath $(LIBDIR))/$(PLUGIN)" $(DEMO_DIR)

$(DEMO_DIR)/ex56: $(DEMO_SOURCE)
	@mkdir -p $(@D)
	$(PETSC_CC) -O2 $(PETSC_CFLAGS) -o $@ $< $(PETSC_LIBS) -lm

## make examples        examples/, and examples/solve in its place
EXAMPLES := solve
EXAMPLES_BIN = $(EXAMPLES:%=$(BUILD)/examples/%)
examples: $(EXAMPLES_BIN)
ifeq ($(abspath $(LIBDIR)),$(CURDIR)/lib)
	@for e in $(EXAMPLES); do cmp -s $(BUILD)/examples/$$e examples/$$e || cp -f $(BUILD)/examples/$$e examples/$$e; done
endif

$(BUILD)/examples/solve: $(BUILD)/examples/solve.o $(BUILD)/examples/mmreader.o
$(BUILD)/tests/examples/readmm: $(BUILD)/tests/examples/readmm.o $(BUILD)/examples/mmreader.o
$(EXAMPLES_BIN) $(BUILD)/tests/examples/readmm:
	@mkdir -p $(@D)
	$(PETSC_CC) $(SAN) -o $@ $(filter %.o,$^) $(PETSC_LIBS) -lm
-include $(wildcard $(BUILD)/examples/*.d $(BUILD)/tests/examples/*.d)

.PHONY: test-examples
CHECK_TARGETS += $(if $(GLUE_SRC),test-examples)
test-examples: $(EXAMPLES_BIN) $(BUILD)/tests/examples/readmm $(BUILD)/lib/$(PLUGIN)
	@$(TEST_ENV) MPIEXEC='$(MPIEXEC)' tests/examples/run.sh $(BUILD)/tests/examples/readmm $(BUILD)/examples/solve $(abspath $(BUILD)/lib/$(PLUGIN)) $(PETSC_SCALAR)

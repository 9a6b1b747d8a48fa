# The plugin as PETSc loads it, and plugins that it must not load: the loading code as it would be in a build for
# another release, with other integers, with other scalars, and linked with a second PETSc. PETSc finds the code by the
# file's name: a folder each.
OTHER := release int64 complex second
OTHER_FLAGS_release = -include tests/plugin/otherversion.h
OTHER_FLAGS_int64 = -DPETSC_USE_64BIT_INDICES=1
OTHER_FLAGS_complex = -DPETSC_USE_COMPLEX=1
OTHER_LINK_second = -Wl,--no-as-needed $(BUILD)/other/libpetsc_second.so -Wl,-rpath,'$$ORIGIN/..'
OTHER_MADE = $(filter-out $(if $(findstring int64,$(PETSC_ID)),int64) $(if $(filter complex,$(PETSC_SCALAR)),complex),$(OTHER))
REGISTER_OBJ = $(filter %/dlregisaijhybridgpu.o,$(GLUE_OBJ))

$(BUILD)/other/%/register.o: $(filter %/dlregisaijhybridgpu.c,$(GLUE_SRC)) tests/plugin/otherversion.h
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) $(CFLAGS_ALL) $(OTHER_FLAGS_$*) -MMD -MP -c $< -o $@
# a second PETSc, and a library whose name alone is like PETSc's
STUB_second = int PetscInitialize(void) { return 0; }
STUB_tools = int petsc_tools;
$(BUILD)/other/libpetsc_second.so $(BUILD)/other/libpetsc_tools.so: $(BUILD)/other/libpetsc_%.so: conf/plugin.mk
	@mkdir -p $(@D)
	@echo '$(STUB_$*)' | $(PETSC_CC) -shared -fPIC -x c - -o $@ -Wl,-soname,$(@F)
$(BUILD)/other/%/$(PLUGIN): $(BUILD)/other/%/register.o $(ROOMS_OBJ) $(GLUE_OBJ) $(BUILD)/other/libpetsc_second.so
	$(call SAY,$@)$(PETSC_CC) -shared $(SAN) -o $@ $< $(ROOMS_OBJ) $(filter-out $(REGISTER_OBJ),$(GLUE_OBJ)) -Wl,-soname,$(PLUGIN) -Wl,-z,nodelete $(PETSC_LIBS) $(OTHER_LINK_$*) -lm -ldl
.SECONDARY: $(OTHER:%=$(BUILD)/other/%/register.o)
-include $(wildcard $(BUILD)/other/*/*.d)

.PHONY: test-plugin
CHECK_TARGETS += test-plugin
MORE_TARGETS += test-plugin
CHECK_BUILDS += $(OTHER_MADE:%=$(BUILD)/other/%/$(PLUGIN))
## make test-plugin     what -help shows, what is refused at load, and that nothing is left allocated
test-plugin: $(BUILD)/lib/$(PLUGIN) $(OTHER_MADE:%=$(BUILD)/other/%/$(PLUGIN)) $(BUILD)/examples/solve $(BUILD)/tests/plugin/ending $(BUILD)/other/libpetsc_tools.so $(EMULATED_LIB)
	@$(MAKE) --no-print-directory $(MAT_BIN) | grep -v 'up to date' || true
	@$(MPI_ENV) MPIEXEC='$(or $(MPIEXEC),mpiexec)' TEST_MORE='$(TEST_MORE)' tests/plugin/run.sh $(abspath $(BUILD)) $(abspath $(BUILD)/lib/$(PLUGIN)) $(abspath $(EMULATED_LIB))

.PHONY: test-report
MORE_TARGETS += test-report
CHECK_BUILDS += $(BUILD)/tests/plugin/ending $(BUILD)/tests/plugin/advice
## make test-report     the report of a run: its data beside known counts and -log_view, runs that end by errors;
##                      TEST_MORE=1: the page in a browser where there is one
$(BUILD)/tests/plugin/%: $(BUILD)/tests/plugin/%.o
	$(call SAY,$@)$(TEST_LINK) -o $@ $^ $(PETSC_LIBS) -lm -ldl
$(BUILD)/tests/plugin/advice: $(ROOMS_OBJ) $(GLUE_OBJ)
test-report: $(BUILD)/lib/$(PLUGIN) $(BUILD)/tests/plugin/ending $(BUILD)/tests/plugin/advice $(BUILD)/tests/mat_faults $(BUILD)/tests/halo_products $(BUILD)/examples/solve $(EMULATED_LIB)
	@$(MPI_ENV) MPIEXEC='$(or $(MPIEXEC),mpiexec)' TEST_MORE='$(TEST_MORE)' tests/plugin/report.sh $(abspath $(BUILD)) $(abspath $(BUILD)/lib/$(PLUGIN)) $(abspath $(EMULATED_LIB))

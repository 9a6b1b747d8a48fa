# The tests; which there are of each kind: tests/list.
#
# How a program of the kinds mat and ranks runs is said by lines of its own:   TEST np=1,2+4 -some -options     (one run
#                                                                                for each np; without such a line: np=1)
# Numbers after a + are left to TEST_MORE=1, with which CI runs them over another PETSc, and to `make check-more`:
# their code is other runs' too.
# @emulated among the options stands for those that make the emulated device do the work

MATRICES ?= ../shared/matrices
SEED ?= 1
TEST_SECONDS ?= 600
# set by conf/cuda.mk: the shared library that holds the kernels under the emulator
EMULATED_LIB ?=
# targets of other .mk files that `make check` runs as well; each prints "N passed, N failed, N skipped"
CHECK_TARGETS ?=
# and those of `make check-more`: the same ones in another way, and tests of what developers alone use
MORE_TARGETS ?=
# and what these need that takes long to make: it is made with the rest, on all cores
CHECK_BUILDS ?=
MORE_BUILDS ?=
# with a device in the machine, the CUDA part is built and tested as well; without one, `make check` has no use for it
TEST_DEVICE := $(wildcard /dev/nvidia0)

UNIT_SRC := $(shell tests/list unit)
MAT_SRC := $(shell tests/list mat)
RANKS_SRC := $(shell tests/list ranks)
UNIT_TESTS := $(basename $(notdir $(UNIT_SRC)))
MAT_TESTS := $(basename $(notdir $(MAT_SRC)))
RANKS_TESTS := $(basename $(notdir $(RANKS_SRC)))
UNIT_BIN = $(UNIT_TESTS:%=$(BUILD)/tests/%)
MAT_BIN = $(MAT_TESTS:%=$(BUILD)/tests/%)
RANKS_BIN = $(RANKS_TESTS:%=$(BUILD)/tests/%)
UNIT_OBJ = $(UNIT_SRC:%.c=$(BUILD)/%.o)
MAT_OBJ = $(MAT_SRC:%.c=$(BUILD)/%.o)
RANKS_OBJ = $(RANKS_SRC:%.c=$(BUILD)/%.o)
HARNESS_OBJ = $(BUILD)/tests/harness/hybtest.o $(BUILD)/tests/harness/hybmatrices.o $(BUILD)/tests/harness/reference/ref.o
RESULTS = $(BUILD)/tests/results
TEST_JOBS ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 1)
# three more than there are cores: programs that wait for each other, or for MPI to begin, leave these idle
BUSY_JOBS = $(shell echo $$(($(TEST_JOBS) + 3)))
# what takes longest begins first, that nothing waits for it alone
LONGEST = spgemm_methods parallel_aggregation% test-report conformance-fast
longest_first = $(filter $(LONGEST),$1) $(filter-out $(LONGEST),$1)
# a PETSc with CUDA stops on a card where MPI is not CUDA-aware, unless it is told not to mind
PETSC_CARD_OPTIONS = $(if $(filter 1,$(PETSC_HAS_CUDA)),-use_gpu_aware_mpi 0)
# one thread each, any number of ranks on few cores, also as root; bound to none: Open MPI binds the first rank of
# every program to the first core. A program that nobody launched has no need of a daemon beside it
TEST_ENV = env OMP_NUM_THREADS=1 OMPI_MCA_ess_singleton_isolated=1 OPENBLAS_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 \
  OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe $(if $(PETSC_CARD_OPTIONS),PETSC_OPTIONS="$$PETSC_OPTIONS $(PETSC_CARD_OPTIONS)") $(if $(SAN),ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1)
HERE := $(CURDIR)
# ranks that wait take a nap, which leaves the cores to those that work; the sanitizers want nothing preloaded
YIELD_LIB = $(if $(SAN),,$(BUILD)/tests/yield.so)
test-examples test-plugin test-report: $(YIELD_LIB)
PRELOAD = $(if $(YIELD_LIB),env LD_PRELOAD=$(abspath $(YIELD_LIB)))
MPI_ENV = $(TEST_ENV) $(PRELOAD)
# What runs the lines of a list: NAME, SECONDS and the command, one line a run; a line that ends in a blank would go on
# in the next one. LIST=FILE: they are only written down there, for one that runs several lists beside each other
LIST ?=
# TEST_TURN=N, of a run that ends before its list does: N chooses where it begins, neighbouring numbers far apart
TEST_TURN ?=
TAKE_TURNS = $(if $(TEST_TURN),awk '{ l[NR] = $$0 } END { k = int(NR * ($(TEST_TURN) * 0.618 % 1)); for (n = 0; n < NR; n++) print l[(n + k) % NR + 1] }' |)
RUN_ALL = $(TAKE_TURNS) $(TEST_ENV) xargs -r -P $(BUSY_JOBS) -L 1 tests/run $(RESULTS)
RUN = $(if $(LIST),cat >> $(LIST),$(RUN_ALL))
$(BUILD)/tests/yield.so: tests/conformance/yield.c
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) -O2 -shared -fPIC -o $@ $<

$(BUILD)/tests/%.o: CFLAGS_ALL += -Itests/harness
# the programs wait for what they test; the references and comparisons beside them do not
$(BUILD)/tests/plugin/%.o: OPT := $(OPT:-O3=-O1)
$(UNIT_OBJ) $(RANKS_OBJ): OPT := $(OPT:-O3=-O1)
# of the type's tests, which call PETSc and no more, half the compiler's time is optimization
$(MAT_OBJ): OPT := $(patsubst -O1,-O0,$(OPT:-O3=-O0))
# the linker need not look whether the libraries that PETSc's is linked with find all that they name: most of its time
TEST_LINK = $(PETSC_CC) $(SAN) -Wl,--allow-shlib-undefined
# the programs lie side by side, their objects as the sources do
define TEST_PROGRAM
$(BUILD)/tests/$(basename $(notdir $1)): $(BUILD)/$(1:.c=.o)
endef
$(foreach s,$(UNIT_SRC) $(RANKS_SRC) $(MAT_SRC),$(eval $(call TEST_PROGRAM,$s)))
$(UNIT_BIN) $(RANKS_BIN): $(HARNESS_OBJ) $(BUILD)/librooms.a
$(MAT_BIN): $(INTERFACE_OBJ)
$(UNIT_BIN) $(RANKS_BIN) $(MAT_BIN):
	$(call SAY,$@)$(TEST_LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(PETSC_LIBS) -lm -ldl
TEST_OBJ = $(UNIT_OBJ) $(RANKS_OBJ) $(MAT_OBJ) $(HARNESS_OBJ)
.SECONDARY: $(TEST_OBJ)
-include $(TEST_OBJ:.o=.d)

.PHONY: unit unit-emulated check check-host unit-cuda tests-run-cuda tests-clean-results tests-run-unit tests-run-emulated tests-run-mat tests-run-ranks tests-run-parts
tests-clean-results:
	@case '$(CURDIR)' in *' '*) echo "make: there is a space in '$(CURDIR)', at which the lists of tests and LD_PRELOAD split. Test a copy:  cp -r . ~/petsc-aijhybridgpu && cd ~/petsc-aijhybridgpu && make check" >&2; exit 1 ;; esac
	@rm -rf $(RESULTS) && mkdir -p $(RESULTS) && date +%s > $(RESULTS)/start

# what check does in part on the host, the sanitizers' run does as a whole
HOST_PARTED = aggregation_scalar aggregation_blocks weak_edges spgemm_methods galerkin_product
HOST_PART ?=
tests-run-unit: $(UNIT_BIN)
	@{ $(foreach t,$(UNIT_TESTS),echo "$t-host $(TEST_SECONDS) $(BUILD)/tests/$t -backend host$(if $(filter $(HOST_PARTED),$t),$(HOST_PART:%= -part %)) -seed $(SEED) -matrices $(MATRICES)";)} | $(RUN)

# Of the longest of these check does every fifth piece, check-more the others. TEST_MORE=1: all pieces, only: what was
# left
PARTED = $(filter spmv_layouts csr_transpose aggregation_% weak_edges spgemm_methods numeric_plans spgemm_random rowmerge_narrow odd_addresses block_method tile_method diagonal_method product_memory hash_tables galerkin_product stage_columns,$(UNIT_TESTS))
EMULATED_TESTS = $(if $(filter only,$(TEST_MORE)),$(PARTED),$(UNIT_TESTS))
EMULATED_PARTS = $(if $(filter $1,$(PARTED)),$(if $(filter only,$(TEST_MORE)),2/5 3/5 4/5 5/5,$(if $(TEST_MORE),1/1,1/5)),1/1)
tests-run-emulated: $(EMULATED_TESTS:%=$(BUILD)/tests/%) $(EMULATED_LIB)
ifneq ($(EMULATED_LIB),)
	@{ $(foreach t,$(call longest_first,$(EMULATED_TESTS)),$(foreach p,$(call EMULATED_PARTS,$t),echo "$t-emulated$(patsubst %/5,-%,$(filter %/5,$p)) $(TEST_SECONDS) $(BUILD)/tests/$t -backend $(abspath $(EMULATED_LIB)) -part $p -seed $(SEED) -matrices $(MATRICES)";))} | $(RUN)
else
	@echo "SKIPPED: the emulated device: this PETSc or this checkout builds none"
	@mkdir -p $(RESULTS) && echo "0 0 1 0" > $(RESULTS)/emulated.result
endif

# one at a time: they share the card
tests-run-cuda: $(UNIT_BIN) $(CUDA_LIB)
	@for t in $(UNIT_TESTS); do $(TEST_ENV) tests/run $(RESULTS) $$t-cuda $(TEST_SECONDS) $(BUILD)/tests/$$t -backend $(abspath $(CUDA_LIB)) -seed $(SEED) -matrices $(MATRICES); done

# which TEST lines (a pattern of grep), and what their results' names end in
TEST_LINES ?= .
TEST_NAME ?=
# all of what a line leaves out by -every N
TEST_WHOLE ?=
# the numbers of processes behind a +: 1: too, only: alone
TEST_MORE ?=
# of PCGAMG before 3.21 the plugin makes nothing: what these say there, one run says
ONE_LINE = $(if $(filter 3.18.% 3.19.% 3.20.%,$(PETSC_VERSION)),tests/gamg/gamg_*,none)
TEST_NP = $$(echo $${np\#np=} | sed '$(if $(filter only,$(TEST_MORE)),s/^[^+]*+*//,$(if $(TEST_MORE),s/+/ /,s/+.*//)); s/,/ /g')
# one process needs no launcher, which takes half a tenth of a second
TEST_RANKS = $$([ $$n = 1 ] || echo "$(or $(MPIEXEC),mpiexec) -n $$n ")
# the emulator writes to each byte that is taken: of segments of 128 MiB, the default, that was most of the time that
# parallel tests took
EMULATED_SEGMENT = -mat_aijhybridgpu_comm_segment 4
EMULATED_OPTIONS = $(if $(EMULATED_LIB),-mat_aijhybridgpu_backend cuda -mat_aijhybridgpu_cuda_library $(abspath $(EMULATED_LIB)) $(EMULATED_SEGMENT))
tests-run-mat: $(MAT_BIN) $(BUILD)/lib/$(PLUGIN) $(EMULATED_LIB) $(YIELD_LIB)
	@for s in $(MAT_SRC); do t=$$(basename $$s .c); k=0; \
	  { grep -h '^ *TEST ' $$s || echo "TEST np=1"; } | grep -e '$(TEST_LINES)' | case $$s in $(ONE_LINE)) head -n 1 ;; *) cat ;; esac | while read -r _ np options; do \
	    for n in $(TEST_NP); do \
	      k=$$((k + 1)); \
	      o=$$(echo "$$options" | sed '$(if $(TEST_WHOLE),s/ -every [0-9]*//;)s|@emulated|$(EMULATED_OPTIONS)|; s|@matrices|-matrices $(MATRICES)|'); \
	      echo "$$t-np$$n-$$k$(TEST_NAME) $(TEST_SECONDS) $(PRELOAD) $(TEST_RANKS)$(BUILD)/tests/$$t -dll_append $(HERE)/$(BUILD)/lib/$(PLUGIN)$${o:+ $$o}"; \
	    done; \
	  done; \
	done | $(RUN)

# each on the host and, where there is one, on the emulated device
tests-run-ranks: $(RANKS_BIN) $(EMULATED_LIB) $(YIELD_LIB)
	@for s in $(RANKS_SRC); do t=$$(basename $$s .c); for b in host $(abspath $(EMULATED_LIB)); do \
	  grep -h '^ *TEST ' $$s | grep -e '$(TEST_LINES)' | while read -r _ np options; do \
	    for n in $(TEST_NP); do \
	      k=$$((k + 1)); \
	      echo "$$t-np$$n-$$k-$$(basename $$b .so)$(TEST_NAME) $(TEST_SECONDS) $(PRELOAD) $(TEST_RANKS)$(BUILD)/tests/$$t -backend $$b -seed $(SEED) $(EMULATED_SEGMENT)$${options:+ $$options}"; \
	    done; \
	  done; \
	done; done | $(RUN)

# beside each other: all that two of them make has been made before. PETSc's own tests by -mat_type, a third of the fast
# list, and in check-more the others and all by -mat_seqaij_type
PART_OPTIONS = $(if $(filter only,$(TEST_MORE)),CONFORMANCE_MODES=seqaij_type CONFORMANCE_FAST_MODES=seqaij_type$(comma_)mat_type CONFORMANCE_PART=mat_type:2+3/3,$(if $(TEST_MORE),,CONFORMANCE_MODES=mat_type CONFORMANCE_PART=1/3))
tests-run-parts:
	@for t in $(call longest_first,$(CHECK_TARGETS)); do echo "$$t 600 $(MAKE) --no-print-directory $$t$(PART_OPTIONS:%= %)"; done | $(RUN)

unit: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(UNIT_BIN)
	@date +%s > $(RESULTS)/built
	@$(MAKE) --no-print-directory tests-run-unit
	@tests/summary $(RESULTS)

unit-emulated: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(UNIT_BIN) $(EMULATED_LIB)
	@date +%s > $(RESULTS)/built
	@$(MAKE) --no-print-directory tests-run-emulated TEST_MORE=1
	@tests/summary $(RESULTS)

unit-cuda: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(UNIT_BIN) $(CUDA_LIB)
	@date +%s > $(RESULTS)/built
	@$(MAKE) --no-print-directory tests-run-cuda
	@tests/summary $(RESULTS)

# the longest first
ALL_LISTS = tests-run-parts tests-run-emulated tests-run-ranks tests-run-mat
check: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(if $(TEST_DEVICE),all,plugin) $(BUILD)/lib/$(PLUGIN) $(UNIT_BIN) $(MAT_BIN) $(RANKS_BIN) $(EMULATED_LIB) $(YIELD_LIB) $(CHECK_BUILDS)
	@date +%s > $(RESULTS)/built
	@$(MAKE) --no-print-directory -j1 $(ALL_LISTS) tests-run-unit LIST=$(RESULTS)/list $(if $(TEST_MORE),,HOST_PART=1/3)
	@< $(RESULTS)/list $(RUN_ALL)
	@$(if $(TEST_DEVICE),$(MAKE) --no-print-directory tests-run-cuda)
	@$(MAKE) --no-print-directory -s gpu-report-status 2>/dev/null || true
	@tests/summary $(RESULTS)

# One test of each room, small, on the host and on the emulated device: a minute on two cores after the build. Rooms'
# programs, by name; those of several processes and the type's, by name, processes and options
QUICK_UNIT = oracle device_room csr_values csr_transpose row_costs spgemm_methods galerkin_product spmv_methods krylov_vectors multigrid_cycle aggregation_scalar picked_rows growing_memory
QUICK_RANKS = 'products_with_halo 2' 'parallel_aggregation 2'
QUICK_MAT = 'type_operations 1' 'mat_products 1' 'promoted_storage 1' 'type_conversions 1' 'parallel_operations 2' 'gamg_problems 1 -short' 'cycle_changes 1 -few' 'mat_faults 1 -every 16' 'hunt_programs 1 -runs 5'
.PHONY: check-quick
check-quick: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(BUILD)/lib/$(PLUGIN) $(QUICK_UNIT:%=$(BUILD)/tests/%) $$(for q in $(QUICK_RANKS) $(QUICK_MAT); do echo $(BUILD)/tests/$${q%% *}; done) $(EMULATED_LIB) $(YIELD_LIB)
	@date +%s > $(RESULTS)/built
	@{ for t in $(QUICK_UNIT); do for b in host $(abspath $(EMULATED_LIB)); do \
	    echo "$$t-$$(basename $$b .so) 120 $(BUILD)/tests/$$t -backend $$b -small -part 1/8 -seed $(SEED) -matrices none"; done; done; \
	  for q in $(QUICK_RANKS); do set -- $$q; for b in host $(abspath $(EMULATED_LIB)); do \
	    echo "$$1-$$(basename $$b .so) 120 $(PRELOAD) $(or $(MPIEXEC),mpiexec) -n $$2 $(BUILD)/tests/$$1 -backend $$b -small -seed $(SEED) $(EMULATED_SEGMENT)"; done; done; \
	  for q in $(QUICK_MAT); do set -- $$q; t=$$1 n=$$2; shift 2; \
	    echo "$$t-host 120 $(PRELOAD) $(or $(MPIEXEC),mpiexec) -n $$n $(BUILD)/tests/$$t -dll_append $(HERE)/$(BUILD)/lib/$(PLUGIN) -mat_aijhybridgpu_backend host $$*" | sed 's/ *$$//'; \
	    $(if $(EMULATED_LIB),echo "$$t-emulated 120 $(PRELOAD) $(or $(MPIEXEC),mpiexec) -n $$n $(BUILD)/tests/$$t -dll_append $(HERE)/$(BUILD)/lib/$(PLUGIN) $(EMULATED_OPTIONS) $$*" | sed 's/ *$$//';) \
	  done; } | $(RUN_ALL)
	@tests/summary $(RESULTS)

# docs/tests.md: what each program is about
.PHONY: tests-index
tests-index:
	@conf/testsindex

# what check leaves to CI, which runs it right after
.PHONY: check-more
check-more: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(BUILD)/lib/$(PLUGIN) $(PARTED:%=$(BUILD)/tests/%) $(MAT_BIN) $(RANKS_BIN) $(EMULATED_LIB) $(YIELD_LIB) $(CHECK_BUILDS) $(MORE_BUILDS)
	@date +%s > $(RESULTS)/built
	@$(MAKE) --no-print-directory -j1 $(ALL_LISTS) TEST_MORE=only CHECK_TARGETS='$(MORE_TARGETS)' LIST=$(RESULTS)/list
	@< $(RESULTS)/list $(RUN_ALL)
	@tests/summary $(RESULTS)

# what concerns the PETSc in use: neither the emulated device nor the checkout itself is tested again
check-host:
	@$(MAKE) --no-print-directory check EMULATED_LIB= TEST_LINES='^[^@]*$$' CHECK_TARGETS='$(sort $(filter conformance-fast conformance-programs test-examples test-plugin test-report,$(CHECK_TARGETS) $(MORE_TARGETS)))'

# Fuzzing: libFuzzer with its coverage where clang is found, else random bytes from a driver (and mutations of files);
# everything under the sanitizers. Two programs, each for FUZZ_SECONDS: the rooms, and the file reader of the examples.
# Their corpora start from tests/fuzz and grow in the build folder.
comma_ := ,
FUZZ_SECONDS ?= 60
FUZZ_CLANG := $(shell command -v clang 2>/dev/null)
FUZZ_SRC = tests/fuzz/fuzz.c $(if $(FUZZ_CLANG),,tests/fuzz/driver.c) tests/harness/hybtest.c tests/harness/hybmatrices.c tests/harness/reference/ref.c $(ROOMS_SRC)
FUZZ_BIN = $(BUILD)/fuzz/fuzz
FUZZ_READER = $(BUILD)/fuzz/reader
FUZZ_CC = OMPI_CC=$(or $(FUZZ_CLANG),gcc) MPICH_CC=$(or $(FUZZ_CLANG),gcc) $(PETSC_CC) -std=gnu99 -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined$(if $(FUZZ_CLANG),$(comma_)fuzzer) -fno-sanitize-recover=undefined -Iinclude -Itests/harness $(PETSC_SYSTEM_CFLAGS)
FUZZ_ENV = $(TEST_ENV) ASAN_OPTIONS=detect_leaks=0
FUZZ_OPTIONS = -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=60 -detect_leaks=0 -print_final_stats=1
$(FUZZ_BIN): $(FUZZ_SRC) $(wildcard include/aijhybridgpu/private/*.h tests/harness/*.h tests/harness/reference/*.h src/sparse/*/*.h src/sparse/*/*/*.h)
	@mkdir -p $(@D)
	$(FUZZ_CC) -o $@ $(FUZZ_SRC) $(PETSC_LIBS) -lm -ldl
$(FUZZ_READER): tests/examples/readmm.c examples/mmreader.c examples/mmreader.h
	@mkdir -p $(@D)
	$(FUZZ_CC) $(if $(FUZZ_CLANG),-DMM_LIBFUZZER) -Wno-unused-parameter -o $@ tests/examples/readmm.c examples/mmreader.c $(PETSC_LIBS) -lm

.PHONY: fuzz fuzz-rooms fuzz-reader valgrind
fuzz:
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(FUZZ_BIN) $(FUZZ_READER)
	@f=0; for t in rooms reader; do $(MAKE) --no-print-directory fuzz-$$t || f=$$((f + 1)); done; echo "$$((2 - f)) passed, $$f failed, 0 skipped"; [ $$f = 0 ]
# an input that ends the program is left beside it: crash-..., or fuzz-input
fuzz-rooms: $(FUZZ_BIN)
	@mkdir -p $(BUILD)/fuzz/rooms && python3 tests/fuzz/corpus.py tests/fuzz/rooms.hex $(BUILD)/fuzz/rooms
ifneq ($(FUZZ_CLANG),)
	cd $(BUILD)/fuzz && $(FUZZ_ENV) ./fuzz $(FUZZ_OPTIONS) rooms
else
	cd $(BUILD)/fuzz && for f in rooms/*; do $(FUZZ_ENV) ./fuzz $$f || exit 1; done && $(FUZZ_ENV) ./fuzz $(FUZZ_SECONDS) $(SEED)
endif
fuzz-reader: $(FUZZ_READER)
	@mkdir -p $(BUILD)/fuzz/files && cp tests/fuzz/files/*.mtx $(BUILD)/fuzz/files
ifneq ($(FUZZ_CLANG),)
	cd $(BUILD)/fuzz && $(FUZZ_ENV) ./reader $(FUZZ_OPTIONS) files
else
	cd $(BUILD)/fuzz && $(FUZZ_ENV) ./reader -mutate $$(($(FUZZ_SECONDS) * 5000)) files/*.mtx
endif

# memcheck finds what the sanitizers do not: values that were never written. What MPI and its like leave is in the
# suppressions.
MEMCHECK = valgrind -q --num-callers=40 --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions=tests/valgrind.supp
# on one process; whole solves take too long
VALGRIND_MAT = type_operations mat_products assembly_coordinates parallel_operations
valgrind: tests-clean-results $(UNIT_BIN) $(VALGRIND_MAT:%=$(BUILD)/tests/%) $(BUILD)/lib/$(PLUGIN)
	@{ for t in $(UNIT_TESTS); do echo "$$t-valgrind 3000 $(MEMCHECK) $(BUILD)/tests/$$t -backend host -seed $(SEED) -small"; done; \
	   for t in $(VALGRIND_MAT); do echo "$$t-valgrind 3000 $(MEMCHECK) $(BUILD)/tests/$$t -dll_append $(HERE)/$(BUILD)/lib/$(PLUGIN) -mat_aijhybridgpu_backend host"; done; } | \
	  $(TEST_ENV) OMPI_MCA_btl=self xargs -r -P $(TEST_JOBS) -L 1 tests/run $(RESULTS)
	@tests/summary $(RESULTS)

# Random sequences beside MATAIJ by fresh seeds: the runs of hunt_programs and hunt_misuse by HUNT_RUNS times as many,
# from SEED on
HUNT_RUNS ?= 2000
HUNT_SLICE = 100
.PHONY: hunt
hunt: tests-clean-results $(BUILD)/lib/$(PLUGIN) $(BUILD)/tests/hunt_programs $(BUILD)/tests/hunt_misuse $(EMULATED_LIB)
	@for s in $$(seq $(SEED) $(HUNT_SLICE) $$(($(SEED) + $(HUNT_RUNS) - 1))); do for t in hunt_programs hunt_misuse; do k=0; \
	  for o in " " $(if $(EMULATED_LIB),"$(EMULATED_OPTIONS)" "$(EMULATED_OPTIONS) -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1"); do k=$$((k + 1)); \
	    echo "$$t-$$k-$$s 3000 $(BUILD)/tests/$$t -dll_append $(HERE)/$(BUILD)/lib/$(PLUGIN) -seed $$s -runs $(HUNT_SLICE) $$o" | sed 's/ *$$//'; \
	  done; done; done | $(TEST_ENV) xargs -r -P $(TEST_JOBS) -L 1 tests/run $(RESULTS)
	@tests/summary $(RESULTS)

## make hunt            random sequences beside MATAIJ: HUNT_RUNS=n runs from SEED=N on, on the host and the emulated
##                      device
## make fuzz            libFuzzer (with clang) or random bytes, FUZZ_SECONDS each: products, transposes, wild arrays
##                      beside the reference; the file reader
## make valgrind        the rooms' tests under memcheck, small sizes
## make check-quick     one test of each room, on the host and the emulated device: a minute on two cores after the
##                      build
## make tests-index     docs/tests.md: what each test is about, by the first sentence of its file
## make check           the tests, ten minutes on two cores; the last line is  N passed, N failed, N skipped
## make check-more      what check leaves out: runs whose code others reach, and tests of what developers alone use; CI
##                      runs it too
## make check-host      check without the emulated device: what depends on the PETSc in use
## make unit            the rooms' tests on the host alone (SANITIZE=address,undefined for the sanitizers); SEED=N other
##                      random matrices
## make unit-emulated   the rooms' tests on the emulated device alone; make unit-cuda: on the machine's device

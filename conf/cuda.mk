# The device libraries: the CUDA part of the plugin, built where nvcc is found, and, from the same .cu files, the tests'
# emulator.

NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA ?= $(if $(NVCC),1,0)
# for the cards that are here, if nvcc knows them; where there are none, as for packages, for all that we support
CUDA_ARCHS := 80 90
ifndef CUDA_ARCH
  CUDA_ARCH := $(if $(filter 1,$(CUDA)),$(sort $(filter $(shell $(NVCC) --list-gpu-arch 2>/dev/null | sed 's/^compute_//'),$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d .))))
  CUDA_ARCH := $(or $(strip $(CUDA_ARCH)),$(CUDA_ARCHS))
endif
CUDA_SRC := $(sort $(wildcard src/sparse/*/*.cu src/sparse/*/*/*.cu))
# In the order in which a first set-up and solve need them: a thread loads them so (src/sparse/device/ahead.cu). Those
# of CUDA_LAZY are loaded when they are asked for.
CUDA_ORDER := device csr structure agg plan spgemm/hash krylov cycle spmv
CUDA_LAZY = $(filter src/sparse/papers/% %/segsum.cu %/columns.cu,$(CUDA_SRC))
cuda_first = $(foreach room,$(CUDA_ORDER),$(filter src/sparse/$(room)/%,$(CUDA_SRC)))
CUDA_SRC := $(cuda_first) $(filter-out $(cuda_first),$(CUDA_SRC))
CUDA_HDR := $(wildcard src/sparse/*/*.cuh src/sparse/*/*/*.cuh)
# compiled a second time, for a cycle in single precision
CUDA_SINGLE := $(if $(findstring single,$(PETSC_ID)),,src/sparse/cycle/table.cu $(patsubst %,src/sparse/spmv/%.cu,block dia rowgroup sell shape))
CUDA_OBJ = $(CUDA_SRC:%.cu=$(BUILD)/cuda/%.o) $(CUDA_SINGLE:%.cu=$(BUILD)/cuda/%.single.o)
CUDA_LIB = $(BUILD)/lib/cuda/libaijhybridgpu_cuda.so

# real code for each architecture, and PTX of the newest for the ones to come
cuda_last = $(lastword $(CUDA_ARCH))
CUDA_GENCODE = $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) -gencode arch=compute_$(cuda_last),code=compute_$(cuda_last)
cuda_comma := ,
# NVCCFLAGS=-lineinfo is for profilers: it makes what is loaded at the start twice as large.
# -fmad=false: a product and its addition are rounded like the host's, so that host and device give the same bits
# Complex: else each product looks whether it is no number, in as many registers as kernels have in all
CUDA_COMPLEX = $(if $(findstring complex,$(PETSC_ID)),-DLIBCUDACXX_ENABLE_SIMPLIFIED_COMPLEX_MULTIPLICATION)
CUDA_FLAGS = -std=c++17 -O3 -fmad=false $(CUDA_COMPLEX) -ccbin $(PETSC_CXX) $(CUDA_GENCODE) -cudart static -Iinclude -Isrc/sparse/device $(patsubst -I%,-isystem %,$(filter -I% -D%,$(filter-out -D_FORTIFY_SOURCE%,$(PETSC_CFLAGS)))) \
  --expt-relaxed-constexpr --expt-extended-lambda -Xcompiler -fPIC$(cuda_comma)-fvisibility=hidden$(cuda_comma)-Wall$(cuda_comma)-Wextra$(cuda_comma)-Wno-unused-parameter$(cuda_comma)-Wno-missing-field-initializers -Xptxas -v $(if $(filter 1,$(WERROR)),-Werror all-warnings) $(NVCCFLAGS)

ifeq ($(CUDA),1)
  ifeq ($(NVCC),)
    $(error CUDA=1 was asked for and nvcc was not found)
  endif
all: cuda
endif

.PHONY: cuda cuda-spills emulator
cuda: $(CUDA_LIB)
	@mkdir -p $(LIBDIR)/cuda
	@cmp -s $< $(LIBDIR)/cuda/$(<F) || cp -f $< $(LIBDIR)/cuda/$(<F)

# said once, before the first of them
$(BUILD)/cuda/begun:
	@mkdir -p $(@D)
	@echo "The GPU part: nvcc compiles $(words $(CUDA_SRC)) files for $(CUDA_ARCH), which takes some minutes (CUDA=0 leaves it out)"
	@touch $@

# what ptxas says of each kernel is kept beside the object, see cuda-spills
$(BUILD)/cuda/%.o: %.cu | $(BUILD)/cuda/begun
	@mkdir -p $(@D)
	@echo "nvcc $<"
	@$(NVCC) $(CUDA_FLAGS) -MD -MP -MF $(@:.o=.d) -c $< -o $@ 2> $(@:.o=.ptxas) || { grep -v '^ptxas info' $(@:.o=.ptxas) >&2; exit 1; }
	@grep -E 'warning' $(@:.o=.ptxas) >&2 || true

$(CUDA_LAZY:%.cu=$(BUILD)/cuda/%.o) $(CUDA_SINGLE:%.cu=$(BUILD)/cuda/%.single.o): override NVCCFLAGS += -Xcompiler -D__cudaRegisterFunction=__wrap_lazy_cudaRegisterFunction
$(BUILD)/cuda/%.single.o: %.cu | $(BUILD)/cuda/begun
	@mkdir -p $(@D)
	@echo "nvcc $<, single precision"
	@$(NVCC) $(CUDA_FLAGS) -DHYB_SINGLE -MD -MP -MF $(@:.o=.d) -c $< -o $@ 2> $(@:.o=.ptxas) || { grep -v '^ptxas info' $(@:.o=.ptxas) >&2; exit 1; }
	@grep -E 'warning' $(@:.o=.ptxas) >&2 || true

-include $(CUDA_OBJ:.o=.d)

# librooms.a: arenas and counters are the same C code on both sides of the seam; only what is needed is taken from it
$(CUDA_LIB): $(CUDA_OBJ) $(BUILD)/librooms.a conf/cuda.map
	@mkdir -p $(@D)
	$(call SAY,$@)$(NVCC) -shared -ccbin $(PETSC_CXX) -cudart static $(CUDA_GENCODE) -o $@ $(CUDA_OBJ) $(BUILD)/librooms.a -Xlinker --wrap=__cudaRegisterFunction,--wrap=cudaLaunchKernel,--wrap=__cudaLaunchKernel,--wrap=cudaGraphLaunch,--wrap=cudaLaunchKernelExC,--wrap=cudaStreamBeginCapture,--wrap=cudaStreamEndCapture,--version-script=conf/cuda.map,-z,now,--no-undefined,--exclude-libs,ALL,--no-demangle $(patsubst -Wl$(cuda_comma)%,-Xlinker %,$(PETSC_LINK)) -ldl

cuda-spills: $(CUDA_OBJ)
	@conf/cudaspills $(CUDA_OBJ:.o=.ptxas)

## make cuda            the CUDA part alone; for the card that is here; CUDA=0 leaves it out of `make`, CUDA_ARCH="80
##                      90" names architectures
## make cuda-spills     kernels whose registers spill to memory

EMU_OBJ = $(filter-out %/primitives.o,$(CUDA_SRC:%.cu=$(BUILD)/emulated/%.o)) $(CUDA_SINGLE:%.cu=$(BUILD)/emulated/%.single.o)
EMU_CORE_SRC := $(wildcard tests/emulator/*.cc)
EMU_CORE_OBJ = $(EMU_CORE_SRC:%.cc=$(BUILD)/emulated/%.o)
EMULATED_LIB = $(BUILD)/lib/emulated/libaijhybridgpu_emulated.so
# -fno-tree-sra: GCC 12 stops with an internal error in that pass (with -fnon-call-exceptions, complex scalars)
EMU_OPT ?= -O1 -g1 -fno-tree-sra
# PETSC_SKIP_COMPLEX: of what a file's compilation takes, a third and more is to read <complex>
EMU_FLAGS = -std=c++17 $(EMU_OPT) $(SAN) -fPIC -fvisibility=hidden -fno-math-errno -ffp-contract=off -fno-strict-aliasing -fnon-call-exceptions $(WARN) -Wno-missing-field-initializers -Wno-unknown-pragmas -Wno-unused-function -Wno-unused-variable -Wno-unused-but-set-variable -D_GLIBCXX_ASSERTIONS $(if $(filter real,$(PETSC_SCALAR)),-DPETSC_SKIP_COMPLEX) -DHYB_EMULATOR=1 -Itests/emulator -Iinclude -Isrc/sparse/device $(PETSC_SYSTEM_CFLAGS)

emulator: $(EMULATED_LIB)

$(BUILD)/emulated/%.o: %.cu
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CXX) $(EMU_FLAGS) -x c++ -MMD -MP -c $< -o $@

$(BUILD)/emulated/%.single.o: %.cu
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CXX) $(EMU_FLAGS) -DHYB_SINGLE -x c++ -MMD -MP -c $< -o $@

# of 276 kernels in this file: half the compiler's time is optimization
$(BUILD)/emulated/src/sparse/spmv/block.o $(BUILD)/emulated/src/sparse/spmv/block.single.o: EMU_OPT := $(EMU_OPT:-O1=-Og)

$(EMU_CORE_OBJ): override EMU_OPT = -O2 -g
$(BUILD)/emulated/%.o: %.cc
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CXX) $(EMU_FLAGS) -MMD -MP -c $< -o $@

-include $(EMU_OBJ:.o=.d) $(EMU_CORE_OBJ:.o=.d)

$(EMULATED_LIB): $(EMU_OBJ) $(EMU_CORE_OBJ) $(BUILD)/librooms.a tests/emulator/emulated.map
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CXX) -shared $(SAN) -o $@ $(EMU_OBJ) $(EMU_CORE_OBJ) $(BUILD)/librooms.a -Wl,--version-script=tests/emulator/emulated.map -Wl,-z,now $(if $(SAN),,-Wl,--no-undefined) $(PETSC_LIBS) -ldl -lpthread

## make emulator        the same .cu files for the CPU, build/.../lib/emulated/libaijhybridgpu_emulated.so, a device
##                      library for tests

# Does the emulator find bugs?
SELFTEST = $(BUILD)/emulated/selftest
# and are the helpers right that every kernel uses?
HELPERS = $(BUILD)/emulated/helpers
# what both link besides of the kernels' sources: a card's memory
DEVICE_MEMORY = $(patsubst %,src/sparse/device/%.o,state memory managed locked growing ahead streams)
$(SELFTEST) $(HELPERS): $(BUILD)/emulated/%: $(BUILD)/emulated/tests/emulator/selftest/%.o $(EMU_CORE_OBJ) $(DEVICE_MEMORY:%=$(BUILD)/emulated/%) $(BUILD)/librooms.a
	$(call SAY,$@)$(PETSC_CXX) $(SAN) -Wl,--allow-shlib-undefined -o $@ $^ $(PETSC_LIBS) -ldl -lpthread
-include $(BUILD)/emulated/tests/emulator/selftest/selftest.d $(BUILD)/emulated/tests/emulator/selftest/helpers.d

# what schedules threads, keeps memory and orders time; the rest of tests/emulator stands in for CUDA's functions and
# primitives, or is the detector of races
EMU_CORE_FILES = $(patsubst %,tests/emulator/%,device.h emulator.h memory.h fibers.cc memory.cc)
.PHONY: check-selftest
check-selftest: $(SELFTEST) $(HELPERS) $(BUILD)/races/selftest $(BUILD)/races/helpers
	@$(SELFTEST) | tee $(BUILD)/emulated/selftest.log; for h in $(HELPERS) $(HELPERS_RACES); do $$h | tee -a $(BUILD)/emulated/selftest.log; done; $(SELFTEST_RACES) | tee -a $(BUILD)/emulated/selftest.log; \
	cat $(EMU_CORE_FILES) | wc -l | awk '{ print "the emulator'"'"'s core has " $$1 " lines, of at most 1600"; print ($$1 <= 1600) " passed, " ($$1 > 1600) " failed, 0 skipped" }' | tee -a $(BUILD)/emulated/selftest.log; awk '/passed,/ { p += $$1; f += $$3; n++ } END { print p " passed, " f " failed, 0 skipped"; exit f > 0 || n != 5 }' $(BUILD)/emulated/selftest.log
MORE_TARGETS += check-selftest
MORE_BUILDS += $(if $(EMULATED_LIB),$(SELFTEST) $(HELPERS) $(SELFTEST_RACES) $(HELPERS_RACES))

## make check-selftest  does the emulator find planted bugs?

# The race detector: kernels compiled with -fsanitize=thread, whose calls go to tests/emulator/races.cc and not to
# libtsan
RACES_LIB = $(BUILD)/lib/races/libaijhybridgpu_races.so
RACES_OBJ = $(EMU_OBJ:$(BUILD)/emulated/%=$(BUILD)/races/%)
RACES_CORE_OBJ = $(EMU_CORE_OBJ:$(BUILD)/emulated/%=$(BUILD)/races/%)
RACES_TSAN = -fsanitize=thread --param tsan-instrument-func-entry-exit=0 --param tsan-distinguish-volatile=1

$(RACES_CORE_OBJ): override EMU_OPT = -O2 -g
$(BUILD)/races/%.o: %.cu
	@mkdir -p $(@D)
	$(PETSC_CXX) $(EMU_FLAGS) -DEMU_RACES=1 $(RACES_TSAN) -x c++ -MMD -MP -c $< -o $@
$(BUILD)/races/%.single.o: %.cu
	@mkdir -p $(@D)
	$(PETSC_CXX) $(EMU_FLAGS) -DHYB_SINGLE -DEMU_RACES=1 $(RACES_TSAN) -x c++ -MMD -MP -c $< -o $@
$(BUILD)/races/tests/emulator/selftest/%.o: EMU_FLAGS += $(RACES_TSAN)
$(BUILD)/races/%.o: %.cc
	@mkdir -p $(@D)
	$(PETSC_CXX) $(EMU_FLAGS) -DEMU_RACES=1 -MMD -MP -c $< -o $@

-include $(RACES_OBJ:.o=.d) $(RACES_CORE_OBJ:.o=.d)

$(RACES_LIB): $(RACES_OBJ) $(RACES_CORE_OBJ) $(BUILD)/librooms.a conf/cuda.map
	@mkdir -p $(@D)
	$(PETSC_CXX) -shared -o $@ $(RACES_OBJ) $(RACES_CORE_OBJ) $(BUILD)/librooms.a -Wl,--version-script=conf/cuda.map -Wl,-z,now -Wl,--no-undefined $(PETSC_LIBS) -ldl -lpthread

SELFTEST_RACES = $(BUILD)/races/selftest
HELPERS_RACES = $(BUILD)/races/helpers
$(SELFTEST_RACES) $(HELPERS_RACES): $(BUILD)/races/%: $(BUILD)/races/tests/emulator/selftest/%.o $(RACES_CORE_OBJ) $(DEVICE_MEMORY:%=$(BUILD)/races/%) $(BUILD)/librooms.a
	$(PETSC_CXX) -Wl,--allow-shlib-undefined -o $@ $^ $(PETSC_LIBS) -ldl -lpthread
-include $(BUILD)/races/tests/emulator/selftest/selftest.d $(BUILD)/races/tests/emulator/selftest/helpers.d

.PHONY: races
races: $(RACES_LIB)

.PHONY: check-races
# every unit test over the detector of races
check-races: $(RACES_LIB)
	@$(MAKE) --no-print-directory $(UNIT_BIN)
	@rm -rf $(RESULTS) && mkdir -p $(RESULTS)
	@for t in $(UNIT_TESTS); do echo "$$t-races 1800 $(BUILD)/tests/$$t -backend $(abspath $(RACES_LIB)) -seed $(SEED) -matrices $(MATRICES)"; done | \
	  $(TEST_ENV) xargs -r -P $(TEST_JOBS) -L 1 tests/run $(RESULTS)
	@tests/summary $(RESULTS)

# Several seeds, each for the inputs and for the emulator's order of threads, blocks and streams: the rooms' tests, the
# type's, and the product-heavy part of PETSc's own with all work forced onto the emulated device.
SEEDS ?= 3
CHECK_EMULATED_SEARCH ?= ^mat/tests/ex(62|70|93|94|96|111|209|250)\b
.PHONY: check-emulated check-emulated-unit check-emulated-mat check-emulated-ranks check-emulated-petsc
check-emulated: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(BUILD)/lib/$(PLUGIN) $(UNIT_BIN) $(MAT_BIN) $(RANKS_BIN) $(EMULATED_LIB)
	@date +%s > $(RESULTS)/built
	@for p in unit mat ranks petsc; do $(MAKE) --no-print-directory check-emulated-$$p || exit 1; done
	@tests/summary $(RESULTS)

# the type's tests alone: for a PETSc with CUDA, where more of them is compiled (MatBindToCPU(), memory types), on a
# machine without a card
.PHONY: check-emulated-type
check-emulated-type: tests-clean-results
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(BUILD)/lib/$(PLUGIN) $(MAT_BIN) $(EMULATED_LIB)
	@date +%s > $(RESULTS)/built
	@$(TEST_ENV) $(MAKE) --no-print-directory tests-run-mat TEST_LINES=@emulated
	@tests/summary $(RESULTS)

check-emulated-unit:
	@for s in $$(seq 1 $(SEEDS)); do for t in $(UNIT_TESTS); do echo "$$t-seed$$s 1800 env HYB_EMULATOR_SEED=$$s $(BUILD)/tests/$$t -backend $(abspath $(EMULATED_LIB)) -seed $$s -matrices $(MATRICES)"; done; done | \
	  $(TEST_ENV) xargs -r -P $(TEST_JOBS) -L 1 tests/run $(RESULTS)
check-emulated-mat:
	@for s in $$(seq 1 $(SEEDS)); do $(TEST_ENV) HYB_EMULATOR_SEED=$$s $(MAKE) --no-print-directory tests-run-mat TEST_LINES=@emulated TEST_WHOLE=1 TEST_MORE=1 TEST_NAME=-seed$$s; done
check-emulated-ranks:
	@$(MAKE) --no-print-directory tests-run-ranks TEST_MORE=1
# one run of the list for each seed; what plain aij prints is computed once and kept
check-emulated-petsc:
	@for s in $$(seq 1 $(SEEDS)); do $(TEST_ENV) HYB_EMULATOR_SEED=$$s tests/run $(RESULTS) petsc-seed$$s 3600 $(MAKE) --no-print-directory conformance CONFORMANCE_JOBS=$(TEST_JOBS) CONFORMANCE_MODES=mat_type \
	  SEARCH='$(CHECK_EMULATED_SEARCH)' CONFORMANCE_ARGS='--name emulated --plugin-options "$(EMULATED_OPTIONS)"'; done

JOBS ?= 2
.PHONY: mutants
mutants: $(EMULATED_LIB) $(RACES_LIB) $(HELPERS) $(HELPERS_RACES)
	@$(MAKE) --no-print-directory $(UNIT_BIN) $(RANKS_BIN)
	@$(TEST_ENV) python3 tests/emulator/mutants.py --build $(BUILD) --cxx "$(PETSC_CXX)" --flags "$(EMU_FLAGS)" --racesflags "$(EMU_FLAGS) -DEMU_RACES=1 $(RACES_TSAN)" --rooms $(BUILD)/librooms.a \
	  --ldflags "-Wl,--version-script=conf/cuda.map -Wl,-z,now $(PETSC_LIBS) -ldl -lpthread" --seed $(SEED) --jobs $(JOBS) $(if $(ALL),--all) $(MUTANTS_OPTIONS)

# Coverage: the unit tests over libraries built with counters; own objects in their own folder
.PHONY: coverage coverage-run
coverage:
	@$(MAKE) --no-print-directory BUILD=build/$(PETSC_ID)-coverage OPT="-Og -g --coverage" EMU_OPT="-Og -g -fno-tree-sra --coverage" PETSC_LIBS='$(PETSC_LIBS) --coverage' WERROR=0 CUDA=0 coverage-run
coverage-run:
	@$(MAKE) --no-print-directory -j $(TEST_JOBS) $(UNIT_BIN) $(EMULATED_LIB)
	@find $(BUILD) -name '*.gcda' -delete; rm -rf $(RESULTS) && mkdir -p $(RESULTS)
	@for t in $(UNIT_TESTS); do for b in host $(abspath $(EMULATED_LIB)); do echo "$$t-$$(basename $$b .so) 1800 $(BUILD)/tests/$$t -backend $$b -seed $(SEED) -small -matrices $(MATRICES)"; done; done | \
	  $(TEST_ENV) xargs -r -P $(TEST_JOBS) -L 1 tests/run $(RESULTS)
	@tests/summary $(RESULTS)
	@conf/coverage $(BUILD)

## make check-races     the unit tests over the detector of races
## make check-emulated  over the emulated device, SEEDS=n seeds: unit tests, the type's tests, the product-heavy part of
##                      PETSc's own
## make check-emulated-type  over the emulated device: the type's tests alone, for another PETSc
## make mutants         are broken kernels noticed? SEED=n draws others, ALL=1 takes every one; last line "N of M
##                      mutants killed"
## make coverage        lines of kernels and of host code that the unit tests reach; last line "kernels N %, host N %"

# petsc-aijhybridgpu. `make help` lists the targets.
#
# Variables: PETSC_DIR, PETSC_ARCH (which PETSc), LIBDIR (where the plugin goes, default lib), BUILD (objects, default
# build/<PETSc>), OPT (optimization flags), SANITIZE (e.g. address,undefined), WERROR (1: warnings are errors), CUDA (0:
# no CUDA part), V (1: show the commands)

.DEFAULT_GOAL := all
SHELL := /bin/sh
.DELETE_ON_ERROR:
# numbers have a point and words are sorted alike, whatever the user's language
export LC_ALL := C

# Builds use all cores, unless -j says how many; what runs tests counts them itself
ifeq ($(MAKELEVEL)$(filter-out all plugin cuda emulator examples install,$(MAKECMDGOALS))$(findstring -j,$(shell echo "$$MAKEFLAGS")),0)
  MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

# What finding PETSc costs is paid once: the answer is kept, and asked again when the environment's PETSc or findpetsc
# changed.
# These need none: what they need they say themselves
NO_PETSC := help help-all clean clean-examples dist deb docs docs-links manpages uninstall format checkformat
ifneq ($(filter-out $(NO_PETSC),$(or $(MAKECMDGOALS),all)),)
  config_key := $(shell printf '%s' "$(PETSC_DIR):$(PETSC_ARCH):$(PKG_CONFIG_PATH)" | cksum | cut -d' ' -f1)
  config_mk := build/config-$(config_key).mk
  config_made := $(shell conf/writable build || { echo failed; exit; }; if [ ! -s $(config_mk) ] || [ conf/findpetsc -nt $(config_mk) ]; then PETSC_DIR='$(PETSC_DIR)' PETSC_ARCH='$(PETSC_ARCH)' conf/findpetsc > $(config_mk).new && mv $(config_mk).new $(config_mk) || echo failed; fi)
  ifneq ($(config_made),)
    $(error the line above says what is missing)
  endif
  include $(config_mk)
endif

# a line for each file that is made; V=1 shows the commands
SAY = $(if $(filter 1,$(V)),,@$(if $(findstring s,$(filter-out --%,$(firstword $(MAKEFLAGS)))),,echo "$(1)" &&) )

LIBDIR ?= lib
BUILD ?= build/$(PETSC_ID)$(if $(SANITIZE),-sanitize)
OPT ?= -O3 -g1
WARN := -Wall -Wextra -Wno-unused-parameter -Wshadow=local $(if $(filter 1,$(WERROR)),-Werror)
SAN := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
# petsc's own headers are system headers here: their warnings are not ours
PETSC_SYSTEM_CFLAGS = $(patsubst -I%,-isystem %,$(PETSC_CFLAGS))
# -Wundef: a name of hybrelease.h that is misspelt, or asked before it is known, would be 0
CFLAGS_ALL = -std=gnu99 $(OPT) $(SAN) -fPIC -fvisibility=hidden -fno-math-errno -ffp-contract=off $(WARN) -Wundef -Iinclude $(PETSC_SYSTEM_CFLAGS) $(CFLAGS)

ROOMS_SRC := $(wildcard src/sparse/*/*.c src/sparse/*/*/*.c)
GLUE_SRC := $(wildcard src/mat/*/*.c src/mat/impls/aijhybridgpu/*.c src/mat/impls/aijhybridgpu/*/*.c src/ksp/*.c src/ksp/ksp/impls/*/*.c src/ksp/pc/impls/*/*.c src/petsc/*.c src/petsc/*/*.c)
ROOMS_OBJ = $(ROOMS_SRC:%.c=$(BUILD)/%.o) $(INTERFACE_OBJ)
# The plugin and the device library are built from the same headers or refuse each other: the headers' checksum is a
# part of both
ifneq ($(PETSC_ID),)
  INTERFACE_C := $(BUILD)/interface.c
  INTERFACE_OBJ := $(BUILD)/interface.o
  interface_made := $(shell mkdir -p $(BUILD); cat $(sort $(wildcard include/*.h include/*/*/*.h src/sparse/*/*.h src/sparse/*/*/*.h)) | cksum | awk '{ print "unsigned HybInterface(void);\nunsigned HybInterface(void)\n{\n  return " $$1 "u;\n}" }' > $(INTERFACE_C).$$$$; if cmp -s $(INTERFACE_C).$$$$ $(INTERFACE_C); then rm -f $(INTERFACE_C).$$$$; else mv -f $(INTERFACE_C).$$$$ $(INTERFACE_C); fi)
endif
GLUE_OBJ = $(GLUE_SRC:%.c=$(BUILD)/%.o)
PLUGIN := libaijhybridgpu.so
# Releases 0.x may change what programs link against with each x. PETSc takes the name of the registering function from
# the file's name, so what is loaded stays libaijhybridgpu.so, and the library's own name is a link beside it.
PACKAGE_VERSION := $(shell sed -n 's/^.define PETSC_AIJHYBRIDGPU_VERSION "\(.*\)"/\1/p' include/petscmataijhybridgpu.h)
package_numbers := $(subst ., ,$(PACKAGE_VERSION))
SONAME := $(PLUGIN).$(word 1,$(package_numbers)).$(word 2,$(package_numbers))
# RPATH=0: none in what is built, for packages of a distribution whose PETSc the loader finds by itself
PETSC_LINK = $(if $(filter 0,$(RPATH)),$(filter-out -Wl$(comma)-rpath%,$(PETSC_LIBS)),$(PETSC_LIBS))
comma := ,

# The include path of each room holds the project's headers alone; `make checkdeps` says who may include whom.
.PHONY: all plugin help clean clean-examples checkdeps
all: plugin

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

# Where the loop over a short row lies decides a third of its time: seven instructions, on one processor's line of
# decoded ones or on two
$(BUILD)/src/sparse/spmv/csr.o: override OPT += -falign-loops=32

$(INTERFACE_OBJ): $(INTERFACE_C)
	$(call SAY,$@)$(PETSC_CC) $(CFLAGS_ALL) -c $< -o $@

-include $(ROOMS_OBJ:.o=.d) $(GLUE_OBJ:.o=.d)

# -z now: a missing symbol is an error at load, with PETSc's message, not at the first call. -z nodelete: PETSc closes
# the plugin at finalize. plugin.map: what it exports, under the version of the library's own name
$(BUILD)/lib/$(PLUGIN): $(ROOMS_OBJ) $(GLUE_OBJ) conf/plugin.map
	@mkdir -p $(@D)
	@sed 's/@VERSION@/$(SONAME:$(PLUGIN).%=%)/' conf/plugin.map > $(BUILD)/plugin.map
	$(call SAY,$@)$(PETSC_CC) -shared $(SAN) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,-soname,$(SONAME) -Wl,--version-script=$(BUILD)/plugin.map -Wl,-z,now -Wl,-z,nodelete $(if $(SAN),,-Wl,--no-undefined) $(PETSC_LINK) -lm -ldl
	@ln -sf $(PLUGIN) $(@D)/$(SONAME)

$(BUILD)/librooms.a: $(ROOMS_OBJ)
	@rm -f $@ && ar rcs $@ $^

plugin: $(BUILD)/lib/$(PLUGIN)
	@mkdir -p $(LIBDIR)
	@cmp -s $< $(LIBDIR)/$(PLUGIN) || cp -f $< $(LIBDIR)/$(PLUGIN)
	@ln -sf $(PLUGIN) $(LIBDIR)/$(SONAME)

checkdeps:
	@CHECKDEPS_OBJECTS=$(BUILD) conf/checkdeps
	@conf/testsindex --check
	@conf/optionstable --check
	@conf/manpages --check
	@conf/docs/checkwords
	@conf/docs/countwords
	@tests/doc-commands --check
	@python3 docs/pictures/draw.py --check

# how the sources look: .clang-format, and prose within 120 columns
.PHONY: format checkformat
format:
	@conf/format
checkformat:
	@conf/format --check

clean: clean-examples
clean-examples:
	@rm -f examples/solve examples/ptap examples/link examples/newton
clean:
	rm -rf build lib python/*.egg-info

# the user's lines in this order, the rest as the files have it; a line that begins with blanks belongs to the one above
USER_HELP := make demo examples install uninstall deb docs check clean help-all
.PHONY: help-all
help help-all:
	@awk -v want='$(USER_HELP)' -v all='$(filter help-all,$@)' ' \
	  !/^## / { next } \
	  /^## make / { key = $$3; if (key !~ /^[a-z]/ || substr($$0, 8, 2) != " " substr(key, 1, 1)) key = "make"; order[++n] = key } \
	  { text[key] = text[key] substr($$0, 4) "\n" } \
	  END { k = split(want, w, " "); for (i = 1; i <= k; i++) { printf "%s", text[w[i]]; shown[w[i]] = 1 } \
	        if (all != "") { print "\nFor developers:\n"; for (i = 1; i <= n; i++) if (!(order[i] in shown)) printf "%s", text[order[i]] } }' $(MAKEFILE_LIST)

## make                 lib/libaijhybridgpu.so, and lib/cuda/ where nvcc is found (minutes; CUDA=0: without)
## make checkdeps       who may include and call whom (conf/rooms), what may change
## make format          lays the sources out by .clang-format, prose within 120 columns; make checkformat only looks
## make clean           removes build/, lib/ and the programs in examples/
## make help-all        all targets, those of developers too

include $(wildcard conf/*.mk)

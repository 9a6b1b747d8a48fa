# The demonstration, installation, and the examples

## make demo            PETSc's elasticity tutorial with the type, with aij and with hypre (1 to 3 minutes)
.PHONY: demo examples install uninstall

# PETSc's tutorials: in the installed prefix, or in the source tree that was built
DEMO_SOURCE = $(firstword $(wildcard $(addsuffix /src/ksp/ksp/tutorials/ex56.c,$(PETSC_PREFIX)/share/petsc/examples $(PETSC_PREFIX)/.. $(PETSC_PREFIX) $(PETSC_DIR))))
DEMO_DIR = $(BUILD)/demo

demo: $(if $(wildcard /dev/nvidia0),all,plugin)
	@DEMO_SOURCE='$(DEMO_SOURCE)' PETSC_VERSION='$(PETSC_VERSION)' PETSC_PREFIX='$(PETSC_PREFIX)' conf/findexamples > $(DEMO_DIR).source
	@$(MAKE) --no-print-directory -s $(DEMO_DIR)/ex56 DEMO_SOURCE="$$(cat $(DEMO_DIR).source)"
	@DEMO_PETSC='PETSc $(PETSC_VERSION) ($(PETSC_PREFIX))' DEMO_HYPRE=$(if $(shell printf '\043include <petscconf.h>\nPETSC_HAVE_HYPRE\n' | $(PETSC_CC) $(PETSC_CFLAGS) -E -P - 2>/dev/null | grep -x 1),1,0) \
	  DEMO_OPTIONS="$(PETSC_CARD_OPTIONS) $$DEMO_OPTIONS" conf/demo "$$(cat $(DEMO_DIR).source)" $(DEMO_DIR)/ex56 "$(abspath $(LIBDIR))/$(PLUGIN)" $(DEMO_DIR)

$(DEMO_DIR)/ex56: $(DEMO_SOURCE)
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) -O2 $(PETSC_CFLAGS) -o $@ $< $(PETSC_LIBS) -lm

## make examples        examples/solve, which solves a matrix from a file, and the other examples
EXAMPLES := solve ptap newton $(if $(wildcard include/petscmataijhybridgpu.h),link)
EXAMPLES_BIN = $(EXAMPLES:%=$(BUILD)/examples/%)
examples: $(EXAMPLES_BIN)
ifeq ($(abspath $(LIBDIR)),$(CURDIR)/lib)
	@for e in $(EXAMPLES); do cmp -s $(BUILD)/examples/$$e examples/$$e || cp -f $(BUILD)/examples/$$e examples/$$e; done
endif

$(BUILD)/examples/solve: $(BUILD)/examples/solve.o $(BUILD)/examples/mmreader.o
$(BUILD)/examples/ptap: $(BUILD)/examples/ptap.o
$(BUILD)/examples/newton: $(BUILD)/examples/newton.o
$(BUILD)/examples/link: $(BUILD)/examples/link.o $(BUILD)/lib/$(PLUGIN)
$(BUILD)/examples/link: EXAMPLE_LIBS = -L$(BUILD)/lib -laijhybridgpu -Wl,-rpath,'$(abspath $(BUILD)/lib)'
$(BUILD)/tests/examples/readmm: $(BUILD)/tests/examples/readmm.o $(BUILD)/examples/mmreader.o
$(EXAMPLES_BIN) $(BUILD)/tests/examples/readmm:
	@mkdir -p $(@D)
	$(call SAY,$@)$(PETSC_CC) $(SAN) -o $@ $(filter %.o,$^) $(EXAMPLE_LIBS) $(PETSC_LIBS) -lm
-include $(wildcard $(BUILD)/examples/*.d $(BUILD)/tests/examples/*.d)

.PHONY: test-examples
CHECK_TARGETS += $(if $(GLUE_SRC),test-examples)
CHECK_BUILDS += examples $(BUILD)/tests/examples/readmm
test-examples: $(EXAMPLES_BIN) $(BUILD)/tests/examples/readmm $(BUILD)/lib/$(PLUGIN)
	@$(MPI_ENV) MPIEXEC='$(MPIEXEC)' tests/examples/run.sh $(BUILD)/tests/examples/readmm $(BUILD)/examples/solve $(abspath $(BUILD)/lib/$(PLUGIN)) $(PETSC_SCALAR)

## make install         PREFIX=DIR (default /usr/local), DESTDIR=DIR: library, header, pkg-config file, manual pages
## make uninstall       takes these files away again
PREFIX ?= /usr/local
INSTALL ?= install
INSTALL_LIBDIR ?= $(PREFIX)/lib
# the plugin and, in its folder cuda/, the CUDA part
INSTALL_PLUGINDIR ?= $(INSTALL_LIBDIR)
INSTALL_INCLUDEDIR ?= $(PREFIX)/include
INSTALL_MANDIR ?= $(PREFIX)/share/man
INSTALLED_PLUGIN = $(PLUGIN).$(PACKAGE_VERSION)
INSTALLED = $(addprefix $(INSTALL_PLUGINDIR)/,$(INSTALLED_PLUGIN) $(SONAME) $(PLUGIN) cuda/libaijhybridgpu_cuda.so) $(INSTALL_INCLUDEDIR)/petscmataijhybridgpu.h $(INSTALL_LIBDIR)/pkgconfig/aijhybridgpu.pc

.PHONY: install-files manpages
install: all
	@case '$(DESTDIR)$(PREFIX)$(INSTALL_PLUGINDIR)' in *' '*) echo "make install: there is a space in '$(DESTDIR)$(PREFIX)', which pkg-config's files do not take. Name another place:  make install PREFIX=\$$HOME/hyb" >&2; exit 1 ;; esac
	@$(MAKE) --no-print-directory -s install-files
	@echo
	@echo "Installed. With any program of this PETSc ($(PETSC_VERSION), $(PETSC_PREFIX)):"
	@echo
	@echo "  PETSC_OPTIONS=\"-dll_append $(abspath $(INSTALL_PLUGINDIR))/$(PLUGIN) -mat_type aijhybridgpu\" ./your_program"

# from the comments in the sources; without Python there are none
manpages:
	@if command -v python3 >/dev/null 2>&1; then python3 conf/manpages --man $(BUILD)/man --version $(PACKAGE_VERSION); else echo "no python3: no manual pages"; fi

install-files: manpages
	$(INSTALL) -d "$(DESTDIR)$(INSTALL_PLUGINDIR)" "$(DESTDIR)$(INSTALL_LIBDIR)/pkgconfig" "$(DESTDIR)$(INSTALL_INCLUDEDIR)"
	$(INSTALL) -m 755 $(BUILD)/lib/$(PLUGIN) "$(DESTDIR)$(INSTALL_PLUGINDIR)/$(INSTALLED_PLUGIN)"
	ln -sf $(INSTALLED_PLUGIN) "$(DESTDIR)$(INSTALL_PLUGINDIR)/$(SONAME)"
	ln -sf $(SONAME) "$(DESTDIR)$(INSTALL_PLUGINDIR)/$(PLUGIN)"
	if [ -f $(BUILD)/lib/cuda/libaijhybridgpu_cuda.so ]; then \
	  $(INSTALL) -d "$(DESTDIR)$(INSTALL_PLUGINDIR)/cuda" && \
	  $(INSTALL) -m 755 $(BUILD)/lib/cuda/libaijhybridgpu_cuda.so "$(DESTDIR)$(INSTALL_PLUGINDIR)/cuda/libaijhybridgpu_cuda.so"; fi
	$(INSTALL) -m 644 include/petscmataijhybridgpu.h "$(DESTDIR)$(INSTALL_INCLUDEDIR)/petscmataijhybridgpu.h"
	sed -e 's|@PREFIX@|$(abspath $(PREFIX))|g' -e 's|@LIBDIR@|$(abspath $(INSTALL_PLUGINDIR))|g' -e 's|@INCLUDEDIR@|$(abspath $(INSTALL_INCLUDEDIR))|g' \
	  -e 's|@VERSION@|$(PACKAGE_VERSION)|g' -e 's|@PETSC_VERSION@|$(PETSC_VERSION)|g' \
	  -e 's|@PETSC_CFLAGS@|$(strip $(filter -I% -D%,$(filter-out -D_FORTIFY_SOURCE%,$(PETSC_CFLAGS))))|g' -e 's|@PETSC_LIBS@|$(strip $(PETSC_LINK))|g' conf/aijhybridgpu.pc.in > $(BUILD)/aijhybridgpu.pc
	$(INSTALL) -m 644 $(BUILD)/aijhybridgpu.pc "$(DESTDIR)$(INSTALL_LIBDIR)/pkgconfig/aijhybridgpu.pc"
	if [ -d $(BUILD)/man ]; then for p in $(BUILD)/man/man*/*; do \
	  s=$${p%/*} && s=$${s##*/} && $(INSTALL) -d "$(DESTDIR)$(INSTALL_MANDIR)/$$s" && $(INSTALL) -m 644 "$$p" "$(DESTDIR)$(INSTALL_MANDIR)/$$s/" || exit 1; done; fi

# the library where it was installed, and a program that links it: what PETSc's `make check` asks of a package
.PHONY: check-installed
check-installed: $(BUILD)/examples/link.o
	@$(PETSC_CC) -o $(BUILD)/examples/link-installed $< -L"$(INSTALL_PLUGINDIR)" -laijhybridgpu -Wl,-rpath,"$(abspath $(INSTALL_PLUGINDIR))" $(PETSC_LIBS) -lm
	@$(TEST_ENV) PETSC_OPTIONS="$(PETSC_CARD_OPTIONS)" $(BUILD)/examples/link-installed -n 20 | grep 'A\*A: 400 rows, 4804 nonzeros, type seqaijhybridgpu'

uninstall: manpages
	rm -f $(INSTALLED:%="$(DESTDIR)%")
	for p in $(BUILD)/man/man*/*; do s=$${p%/*}; rm -f "$(DESTDIR)$(INSTALL_MANDIR)/$${s##*/}/$${p##*/}"; done
	rmdir "$(DESTDIR)$(INSTALL_PLUGINDIR)/cuda" 2>/dev/null || true

## make dist            the release as a tarball: build/dist/petsc-aijhybridgpu-VERSION.tar.gz
## make deb             Debian packages in build/deb for the distribution's PETSc (CUDA=0: without the CUDA part)
DIST ?= build/dist
DEB ?= build/deb
.PHONY: dist deb
dist:
	@conf/dist '$(DIST)'
deb:
	@DEB_CUDA='$(or $(DEB_CUDA),$(CUDA))' conf/deb '$(DEB)'

## make docs            this documentation as a site, build/docs/html/index.html
## make docs-links      docs, and whether links to elsewhere lead to something
.PHONY: docs docs-links
DOCS ?= build/docs
docs:
	@command -v python3 >/dev/null 2>&1 || conf/need "make docs" python3
	@conf/docs/site '$(DOCS)'
docs-links: docs
	@conf/docs/checklinks '$(DOCS)/html' --external

## make test-packages   the tarball, Debian packages and pip's: built, installed, used, removed (test-dist, test-deb,
##                      test-pip one by one)
PACKAGE_TESTS := dist deb pip
.PHONY: test-packages $(PACKAGE_TESTS:%=test-%)
$(PACKAGE_TESTS:%=test-%): test-%:
	@$(TEST_ENV) MAKE='$(MAKE)' tests/packages/$*.sh $(BUILD)/packages/$*
test-packages:
	@for t in $(PACKAGE_TESTS); do $(MAKE) --no-print-directory test-$$t | sed "s/^\([0-9]* passed\)/$$t: \1/"; done | awk '{ print } / passed, .* failed, .* skipped/ { p += $$2; f += $$4; s += $$6; n++ } END { f += $(words $(PACKAGE_TESTS)) - n; printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }'

## make test-configure  PETSc's ./configure --download-aijhybridgpu=TARBALL in its sources, and again over the same
##                      PETSC_ARCH with other tarballs
.PHONY: test-configure
test-configure:
	@$(TEST_ENV) MAKE='$(MAKE)' tests/packages/configure.sh $(BUILD)/packages/configure

# what checks the rules is checked itself: a tree that breaks each of them once
.PHONY: test-checkdeps
MORE_TARGETS += test-checkdeps
test-checkdeps checkdeps: export CC = $(PETSC_CC)
test-checkdeps checkdeps: export CXX = $(PETSC_CXX)
test-checkdeps checkdeps: export PETSC_CFLAGS := $(PETSC_CFLAGS)
test-checkdeps:
	@tests/checkdeps/run.sh

# and so is what the build promises to who adds a method or a test
.PHONY: test-build
MORE_TARGETS += test-build
test-build: export CC = $(PETSC_CC)
test-build: export PETSC_CFLAGS := $(PETSC_CFLAGS)
test-build: export PETSC_LIBS := $(PETSC_LIBS)
test-build: $(BUILD)/librooms.a $(BUILD)/tests/spgemm_methods
	@$(TEST_ENV) MAKE='$(MAKE)' tests/build/run.sh $(BUILD)

# on a machine that lacks something, or in a folder of an awkward name
.PHONY: test-lacks
MORE_TARGETS += test-lacks
test-lacks:
	@MAKE='$(MAKE)' tests/build/lacks.sh

.PHONY: test-install
CHECK_TARGETS += test-install
test-install:
	@$(TEST_ENV) MAKE='$(MAKE) CUDA=0' PKG_CONFIG_PATH='$(PETSC_PC_PATH)' CC='$(PETSC_CC)' tests/examples/install.sh $(BUILD)/install-test

## make check-all       check, then the hunt, all of PETSc's, SLEPc's own tests, Python programs, races, memcheck and
##                      random bytes; hours
.PHONY: check-all
check-all:
	@status=0; for t in check checkdeps $(filter-out $(CHECK_TARGETS),$(MORE_TARGETS)) hunt conformance conformance-slepc conformance-python check-races valgrind fuzz; do echo "-> $$t"; $(MAKE) --no-print-directory TEST_MORE=1 $$t || status=1; done; exit $$status

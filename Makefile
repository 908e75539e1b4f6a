# Builds, stages, installs and checks libfabric.so.1. cargo compiles and links; build.rs says how the symbols get their
# versions (docs/architecture.md).
#
#   make                      release build, staged in target/dist/{lib,include,bin,lib/pkgconfig}; TUNE=no in half the time,
#                             TUNE=new after large changes (abi-tests/bench/tune)
#   make check                every test; make check SUITES="symbols robust" some of them
#   make check-verbs          real RDMA in a small virtual machine
#   make case PAGE=fi_tagged CASE=name PROVIDER=shm    one page of the manual, or one case of it, in seconds
#   make soak                 30 minutes of MPI jobs that come, go and are killed; make soak MINUTES=5 for less
#   make demo                 shows what works, with programs nobody changed
#   make install PREFIX=/usr/local DESTDIR= LIBDIR=$PREFIX/lib       and make uninstall with the same words
#   make deb                  Debian packages in target/packages; make wheel one for pip: docs/installing.md
#   make headers              writes include/rdma anew from src/abi
#   make bench                our library, the C library and UCX measured in turns, in some minutes; BENCH=full everything,
#                             ONLY=latency,rate some works, REF=LIB another reference; results in target/bench
#   make clean

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
DESTDIR ?=
CARGO   ?= cargo
SUITES  ?=
BENCH   ?=
ONLY    ?=
REF     ?=
MINUTES ?= 30
PAGE    ?=
CASE    ?=
PROVIDER ?= shm

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SONAME  := libfabric.so.1
# libfabric.so.1.AGE.REVISION, numbered as the C library's release 2.6.0 is.
SOFILE  := $(SONAME).32.0
PROGRAMS := fi_info fi_pingpong fi_strerror

export CC TUNE
export CARGO_TARGET_DIR := $(CURDIR)/target
export FABRIC_LIB_DIR := $(CURDIR)/target/dist/lib
RELEASE := target/release
TUNED   := target/tuned/staged
DIST    := target/dist

.PHONY: all library stage install uninstall deb wheel check check-verbs case soak demo headers bench clean tools
.DELETE_ON_ERROR:

all: stage

tools:
	@.ci/tools build

# ---- build ----

# Both of one compilation: libfabric.so and libfabric.a, laid out by what benchmarks counted, where that can be had.
library: tools
	@abi-tests/bench/tune

# ---- stage ----

stage: library
	@mkdir -p $(DIST)/lib/pkgconfig $(DIST)/bin $(DIST)/include
	@$(call put,$(TUNED)/libfabric.so,$(DIST)/lib/$(SOFILE))
	@ln -sfn $(SOFILE) $(DIST)/lib/$(SONAME) && ln -sfn $(SONAME) $(DIST)/lib/libfabric.so
	@objcopy --strip-debug $(TUNED)/libfabric.a $(DIST)/lib/libfabric.a.new && mv $(DIST)/lib/libfabric.a.new $(DIST)/lib/libfabric.a
	@rm -rf $(DIST)/include/rdma && cp -r include/rdma $(DIST)/include/
	@$(call pc,$${pcfiledir}/../..,$${prefix}/lib,$${prefix}/include) >$(DIST)/lib/pkgconfig/libfabric.pc
	$(CARGO) build --release --features programs --bins
	@for p in $(PROGRAMS); do $(call put,$(RELEASE)/$$p,$(DIST)/bin/$$p); done
	@echo "staged in $(DIST)"

# Replaced by name, never written over: a running program keeps the file it has open.
put = cmp -s $(1) $(2) || { cp $(1) $(2).new && mv $(2).new $(2); }
pc  = sed -e 's|@PREFIX@|$(1)|' -e 's|@LIBDIR@|$(2)|' -e 's|@INCLUDEDIR@|$(3)|' -e 's|@VERSION@|$(VERSION)|' \
	pkgconfig/libfabric.pc.in

# ---- install ----

TO := $(DESTDIR)$(LIBDIR)

install: stage
	install -d $(TO)/pkgconfig $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(BINDIR)
	install -m 755 $(DIST)/lib/$(SOFILE) $(TO)/
	ln -sfn $(SOFILE) $(TO)/$(SONAME)
	ln -sfn $(SONAME) $(TO)/libfabric.so
	install -m 644 $(DIST)/lib/libfabric.a $(TO)/
	cp -r $(DIST)/include/rdma $(DESTDIR)$(INCLUDEDIR)/
	install -m 755 $(PROGRAMS:%=$(DIST)/bin/%) $(DESTDIR)$(BINDIR)/
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man7
	install -m 644 docs/man/*.1 $(DESTDIR)$(MANDIR)/man1/
	install -m 644 docs/man/*.7 $(DESTDIR)$(MANDIR)/man7/
	$(call pc,$(PREFIX),$(LIBDIR),$(INCLUDEDIR)) >$(TO)/pkgconfig/libfabric.pc

uninstall:
	rm -f $(TO)/$(SOFILE) $(TO)/$(SONAME) $(TO)/libfabric.so $(TO)/libfabric.a $(TO)/pkgconfig/libfabric.pc
	rm -f $(PROGRAMS:%=$(DESTDIR)$(BINDIR)/%)
	rm -f $(patsubst docs/man/%,$(DESTDIR)$(MANDIR)/man1/%,$(wildcard docs/man/*.1))
	rm -f $(patsubst docs/man/%,$(DESTDIR)$(MANDIR)/man7/%,$(wildcard docs/man/*.7))
	for h in $$(cd include && find rdma -type f); do rm -f $(DESTDIR)$(INCLUDEDIR)/$$h; done
	-find $(DESTDIR)$(INCLUDEDIR)/rdma -depth -type d -exec rmdir {} + 2>/dev/null

deb: stage
	@.ci/tools deb
	@pkgconfig/deb/build

wheel: stage
	@.ci/tools wheel
	@pkgconfig/wheel/build

# ---- the rest ----

check: stage
	@.ci/tools check
	@abi-tests/run $(SUITES)

check-verbs: stage
	@.ci/tools check
	@abi-tests/run rdma-headers rdma-vm

case: stage
	@abi-tests/conformance/case "$(PAGE)" "$(CASE)" $(if $(PROVIDER),"$(PROVIDER)")

soak: stage
	@.ci/tools check
	@abi-tests/clients/soak $(MINUTES)

demo: stage
	@abi-tests/demo

headers: tools
	$(CARGO) run --quiet --manifest-path abi-tests/headers/Cargo.toml

bench: stage
	@abi-tests/bench/run $(patsubst full,--full,$(BENCH)) $(if $(ONLY),--only "$(ONLY)") $(if $(REF),--ref "$(REF)")

clean:
	rm -rf target

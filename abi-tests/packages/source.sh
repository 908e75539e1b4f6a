#!/usr/bin/env bash
# The commands that only want the built tree: those of README, and what else the pages show of its programs.
set -u
. "$(dirname "$0")/lib"
run_block bench-help
[ "${PACKAGES:-}" != full ] || run_block demo
# Where the commands leave what they make. Their program is linked with the C library, first by a DT_RUNPATH, then by a DT_RPATH.
enter_tree source || exit 1
printf '#include <stdio.h>\n#include <rdma/fabric.h>\nint main(void) { return puts(fi_strerror(61)) < 0; }\n' >prog.c
theirs=$("$REAL" wheel)/lib || { echo "FAIL source: the C library cannot be fetched"; exit; }
build() { $CC -o program prog.c -I"$ROOT/include" "$theirs/libfabric.so.1" -Wl,-rpath,"$theirs" "$@" || exit 1; }
PATH=$PWD:$PATH

build -Wl,--enable-new-dtags
has_mapped source-at-first "$(readlink -f "$theirs/libfabric.so.1")" program
start_looking
run_block under
ran_on source-under "$DIST/lib/$ours" '^No data available$' under 1
has_mapped source-back "$(readlink -f "$theirs/libfabric.so.1")" program
build -Wl,--disable-new-dtags
start_looking
run_block under-rpath
ran_on source-under-rpath "$DIST/lib/$ours" '^No data available$' under-rpath 1
run_block under-new
has_mapped source-under-new "$DIST/lib/$ours" ./a.out

run_block check 2 # its exit status says how well the machine is
verdict source-check "$(grep -qE '^    This is .*libfabric-rs' "$WORK/check.log" || echo "it does not say what this is")"
run_block why
verdict source-why "$(grep -qE '^shm: .' "$WORK/why.log" || echo "no reason for shm")"

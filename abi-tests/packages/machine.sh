#!/usr/bin/env bash
# The commands that change a machine, on a copy of this one: a namespace with layers over /usr and /etc, where the C library
# of Debian 12 is installed. After each of them Debian's fi_strerror must load the library that the page says.
set -u
. "$(dirname "$0")/copy"
. "$(dirname "$0")/lib"
d12=$("$REAL" debian12) || { echo "FAIL machine: Debian's libfabric cannot be fetched"; exit; }
theirs=/usr/lib/$multiarch/$(basename "$(readlink -f "$d12"/usr/lib/*/libfabric.so.1)")
rm -f /usr/lib/*/libfabric.* /usr/local/lib/libfabric.* # in the layers alone
cp -a --no-clobber "$d12/usr/lib" /usr/
cp -a "$d12/usr/bin/"fi_* /usr/bin/
ldconfig
loads() { has_mapped "machine-$1" "$2" /usr/bin/fi_strerror 61; }

loads at-first "$theirs"
run_block which
run_block path
loads path "$DIST/lib/$ours"
run_block path-back
loads path-back "$theirs"
run_block preload
loads preload "$DIST/lib/$ours"
run_block preload-back
loads preload-back "$theirs"
run_block install
loads install "/usr/local/lib/$ours"
run_block install-back
loads install-back "$theirs"
verdict machine-nothing-left "$(find /usr/local -newer "$WORK/maps_proof.so" ! -type d | head -n 3)"

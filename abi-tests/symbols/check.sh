#!/usr/bin/env bash
# Looks at one built libfabric.so.1 from the outside:  check.sh FILE.so   prints ok and FAIL lines.
set -u
so=$1 here=$(dirname "$0") tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

expect() { # NAME: ok if the input is empty, else FAIL with its first lines
    local text; text=$(head -n 4 | tr '\n' ';')
    if [ -z "$text" ]; then echo "ok $1"; else echo "FAIL $1: $text"; fi
}
has() { # TEXT PATTERN: says so if it is not there
    grep -qE "$2" <<<"$1" || echo "no $2"
}
dynamic=$(readelf -dW "$so") segments=$(readelf -lW "$so")

nm -D --defined-only "$so" | awk '$2 != "A" {print $3}' | sort >"$tmp/got"
sort "$here/expected-symbols.txt" >"$tmp/want"
comm -23 "$tmp/want" "$tmp/got" | sed 's/^/missing /' | expect every-symbol-is-there
comm -13 "$tmp/want" "$tmp/got" | sed 's/^/extra /' | expect nothing-else-is-exported
grep -v @ "$tmp/got" | expect nothing-is-unversioned
nm -D --defined-only "$so" | awk '$2 != "A" && $2 != "T"' | expect everything-exported-is-code

readelf -VW "$so" | awk '
    /^Version definition section/ {on = 1; next}
    /^Version needs section/ {on = 0}
    on && /Parent [0-9]+:/ {node[n] = node[n] " " $NF; next}
    on && /Name:/ && !/BASE/ {node[++n] = $NF}
    END {for (i = 1; i <= n; i++) print node[i]}' >"$tmp/nodes"
diff "$here/expected-nodes.txt" "$tmp/nodes" | grep '^[<>]' | expect version-nodes-are-chained

has "$dynamic" 'SONAME.*\[libfabric\.so\.1\]' | expect soname
grep NEEDED <<<"$dynamic" | sed 's/.*\[\(.*\)\]/\1/' |
    grep -vE '^(libc\.so\.6|libgcc_s\.so\.1|ld-linux.*\.so\.[0-9]|lib(dl|rt|m|util)\.so\.[0-9]|libpthread\.so\.0)$' | expect needs-only-the-c-runtime
grep -E 'RPATH|RUNPATH|TEXTREL' <<<"$dynamic" | expect no-rpath-no-text-relocation
has "$dynamic" 'BIND_NOW|Flags:.*NOW' | expect bound-at-load
has "$segments" GNU_RELRO | expect relocations-are-read-only
grep GNU_STACK <<<"$segments" | grep RWE | expect stack-is-not-executable
# A relocation that names one of our own calls could be answered by somebody else's function.
readelf -rW "$so" | grep -E ' (rs_|other_)?fi_' | expect own-calls-cannot-be-interposed

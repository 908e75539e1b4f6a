#!/bin/sh
# Layouts, values and inline calls: the Rust types and the generated headers against the fact sheets and against the
# C library's headers of Debian 12 and 13. Ends with tests of these tests.
#
#   check.sh [LIBRARY]     LIBRARY: a libfabric.so.1 whose callable symbols are tested like the inlines
#   OFFLINE=1              leave out what needs the network or what it once fetched
set -u
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
work=$PWD/target/check
mkdir -p "$work"
fail=0

if ! ls /usr/lib/llvm-*/lib/libclang*.so* > /dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    apt-get -qq update && apt-get -qq install -y --no-install-recommends libclang-dev
fi
cargo build -q || exit 2
layout=target/debug/layout
cc="--cc gcc"
for compiler in g++ clang clang++; do
    command -v $compiler > /dev/null && cc="$cc --cc $compiler"
done

holds() { "$@" || fail=$((fail + 1)); }
# refused WHAT COMMAND..: the command says FAIL; dying of something else is no answer.
refused() {
    what=$1
    shift
    if "$@" > "$work/out" 2>&1; then
        echo "FAIL test of the test, not noticed: $what"
    elif ! grep -q FAIL "$work/out"; then
        echo "FAIL test of the test, $what: $(tail -n 3 "$work/out")"
    else
        echo "PASS test of the test, noticed: $what"
        return
    fi
    fail=$((fail + 1))
}

holds $layout rust 2.6.0
holds $layout rust 2.1.0
holds $layout rust 1.17.0
holds $layout $cc asserts 2.6.0 "$root/include"
holds $layout $cc inlines "$root/include"
[ $# -gt 0 ] && holds $layout inlines "$root/include" "$1"

if [ -z "${OFFLINE:-}" ]; then
    if ./fetch-headers.sh; then
        for version in 1.17.0 2.1.0; do
            real=target/headers/$version/usr/include
            holds $layout $cc asserts $version $real
            holds $layout bindgen $version $real
        done
        # The expectations of the inline test are those of the real inlines.
        holds $layout inlines target/headers/2.1.0/usr/include
    else
        echo "FAIL no real headers"
        fail=$((fail + 1))
    fi
fi

# One wrong byte in a type, a value, a slot: each checker says so.
types=$work/types
spoil_types() {
    rm -rf "$types" && cp -r "$root/src/abi/types" "$types"
    sed -i "$2" "$types/$1"
    cmp -s "$root/src/abi/types/$1" "$types/$1" && echo "FAIL $1 was not changed by $2" && fail=$((fail + 1))
    # A target folder of its own: the next run shall find the true types.
    LAYOUT_TYPES=$types CARGO_TARGET_DIR=$PWD/target/spoiled cargo build -q 2> "$work/build" || cat "$work/build"
}
spoiled=target/spoiled/debug/layout

spoil_types fabric.rs '/pub struct fi_tx_attr/,/^}/s/tclass: u32/tclass: u8/'
refused "a field of one byte instead of four, by the sheet" $spoiled rust 2.6.0
spoil_types fi_eq.rs '/pub struct fi_cq_attr/,/^}/s/flags: u64/flags: u32/'
refused "a field of four bytes instead of eight, by the sheet" $spoiled rust 2.6.0
[ -z "${OFFLINE:-}" ] &&
    refused "the same, by the real headers" $spoiled bindgen 2.1.0 target/headers/2.1.0/usr/include
spoil_types fi_domain.rs 's/FI_HMEM_ZE = 3/FI_HMEM_ZE = 4/'
refused "an enumerator, by the sheet" $spoiled rust 2.6.0
[ -z "${OFFLINE:-}" ] &&
    refused "the same, by the real headers" $spoiled bindgen 1.17.0 target/headers/1.17.0/usr/include

include=$work/include
spoil_include() {
    rm -rf "$include" && cp -r "$root/include" "$include"
    sed -i "$2" "$include/rdma/$1"
    cmp -s "$root/include/rdma/$1" "$include/rdma/$1" && echo "FAIL $1 was not changed by $2" && fail=$((fail + 1))
}
spoil_include fi_rma.h '/^struct fi_rma_iov {/,/^}/s/size_t len/uint32_t len/'
refused "a field of four bytes in a header" $layout asserts 2.6.0 "$include"
spoil_include fi_domain.h 's/FI_SYMMETRIC (1ULL << 59)/FI_SYMMETRIC (1ULL << 58)/'
refused "a constant in a header" $layout asserts 2.6.0 "$include"
spoil_include fi_domain.h 's/FI_SYMMETRIC (1ULL << 59)/FI_SYMMETRIC (1UL << 59)/'
refused "the type of a constant in a header" $layout asserts 2.6.0 "$include"
spoil_include fi_tagged.h 's/tagged->sendmsg(/tagged->recvmsg(/'
refused "an inline that calls the wrong slot" $layout inlines "$include"
spoil_include fi_tagged.h 's/inject(ep, buf, len, dest_addr, tag);/inject(ep, buf, len, tag, dest_addr);/'
refused "an inline that swaps two arguments" $layout inlines "$include"
spoil_include fi_cm.h 's/FI_CHECK_OP(ep->cm, struct fi_ops_cm, join)/1/'
refused "an inline without its guard" $layout inlines "$include"

sheets=$work/sheets
spoil_sheet() {
    rm -rf "$sheets" && cp -r sheets "$sheets"
    sed -i "$2" "$sheets/libfabric-$1.json"
    cmp -s "sheets/libfabric-$1.json" "$sheets/libfabric-$1.json" && echo "FAIL sheet of $1 was not changed by $2" && fail=$((fail + 1))
}
spoil_sheet 2.6.0 's/"FI_EINVAL": {"value": 22/"FI_EINVAL": {"value": 23/'
refused "a value in the sheet of 2.6.0" $layout --sheets "$sheets" rust 2.6.0
refused "the same, by the compiler" $layout --sheets "$sheets" asserts 2.6.0 "$root/include"
spoil_sheet 2.1.0 's/"size": 208/"size": 200/'
[ -z "${OFFLINE:-}" ] && refused "a size in the sheet of 2.1.0, where it may differ" \
    $layout --sheets "$sheets" asserts 2.1.0 target/headers/2.1.0/usr/include
sed 's/^1.17.0 2.1.0   | size fi_domain_attr /1.17.0 2.1.0   | size fi_info /' differences.txt > "$work/differences"
refused "a listed difference that is none" $layout --differences "$work/differences" rust 2.1.0

echo "$([ $fail = 0 ] && echo PASS || echo FAIL) layout: $fail failed"
[ $fail = 0 ]

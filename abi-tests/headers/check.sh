#!/bin/sh
# The committed headers are those that would be generated, and every one compiles without a warning: alone, with the
# others in any order, in C99 and C++11, with each compiler there is. Ends with tests of these tests.
set -u
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
work=$PWD/target/check
mkdir -p "$work"
pass=0 fail=0

good() { pass=$((pass + 1)); }
bad() {
    fail=$((fail + 1))
    echo "  FAIL $1"
    [ -s "$work/out" ] && head -n 12 "$work/out"
}
# holds WHAT COMMAND..: the command succeeds. refused WHAT COMMAND..: it does not.
holds() { what=$1; shift; if "$@" > "$work/out" 2>&1; then good; else bad "$what"; fi; }
refused() { what=$1; shift; if "$@" > "$work/out" 2>&1; then bad "$what"; else good; fi; }

cargo build -q || exit 2
cargo build -q --manifest-path ../layout/Cargo.toml || exit 2
generator=target/debug/rdma-headers
holds "committed headers differ from the generated ones" $generator --check

strict="-Wall -Wextra -pedantic -Werror -fsyntax-only"
include=$root/include
headers=$(cd "$include" && find rdma -name '*.h' | sort | tr '\n' ' ')

# compile COMPILER FILE FLAGS..: the language follows from the compiler.
compile() {
    compiler=$1 file=$2
    shift 2
    case $compiler in
    *++) $compiler -x c++ -std=c++11 $strict -I"$include" "$@" "$file" ;;
    *) $compiler -x c -std=c99 $strict -I"$include" "$@" "$file" ;;
    esac
}

compilers=
for compiler in gcc g++ clang clang++; do
    command -v $compiler > /dev/null && compilers="$compilers $compiler"
done

../layout/target/debug/layout use "$work/use.c" || exit 2
for compiler in $compilers; do
    for header in $headers; do
        echo "#include <$header>" > "$work/one.c"
        holds "$compiler: $header alone" compile $compiler "$work/one.c"
    done
    # As many orders as there are headers, each forwards and backwards.
    order=$headers
    for turn in $headers; do
        order="${order#* }$turn "
        printf '#include <%s>\n' $order > "$work/order.c"
        holds "$compiler: order that ends with $turn" compile $compiler "$work/order.c"
        printf '#include <%s>\n' $order | tac > "$work/order.c"
        holds "$compiler: order that begins with $turn" compile $compiler "$work/order.c"
    done
    holds "$compiler: a call of every inline" compile $compiler "$work/use.c" -Wno-deprecated-declarations
    holds "$compiler: members of unions, macros" compile $compiler members.c
    holds "$compiler: macros with debugging on" compile $compiler members.c -DENABLE_DEBUG=1
done

# Deprecated names warn where they are used.
compile gcc "$work/use.c" > "$work/warnings" 2>&1
for name in fi_av_bind fi_poll fi_poll_add fi_poll_del fi_poll_open fi_rx_size_left fi_tx_size_left fi_wait fi_wait_open; do
    holds "$name does not warn" grep -q "[‘']$name[’'] is deprecated" "$work/warnings"
done
for name in FI_MR_UNSPEC FI_MR_BASIC FI_MR_SCALABLE FI_LOCAL_MR FI_REG_MR FI_ORDER_NONE FI_ORDER_STRICT FI_ORDER_DATA; do
    printf '#include <rdma/fi_domain.h>\nextern unsigned long long x;\nunsigned long long x = %s;\n' $name > "$work/one.c"
    refused "$name does not warn" compile gcc "$work/one.c"
    holds "$name does not compile" compile gcc "$work/one.c" -Wno-error
done

# The tests of the tests: a spoiled copy is refused.
spoiled=$work/spoiled
spoil() {
    rm -rf "$spoiled" && cp -r "$root/include" "$spoiled"
    sed -i "$2" "$spoiled/rdma/$1"
    cmp -s "$root/include/rdma/$1" "$spoiled/rdma/$1" && bad "test of the test: $1 was not changed by $2"
    include=$spoiled
}
spoil fi_cm.h 's/addrlen)$/addrlen )/'
refused "test of the test: a header edited by hand" $generator --check --out "$spoiled/rdma"
spoil fi_eq.h 's/uint8_t data\[\]/uint8_t data[0]/; /pragma/d'
echo '#include <rdma/fi_eq.h>' > "$work/one.c"
refused "test of the test: an array that C99 has not" compile gcc "$work/one.c"
spoil fi_rma.h '/include <rdma\/fi_endpoint.h>/d; /include <rdma\/fabric.h>/d'
echo '#include <rdma/fi_rma.h>' > "$work/one.c"
refused "test of the test: a header without its includes" compile gcc "$work/one.c"
spoil fi_tagged.h 's/uint64_t ignore, void \*context)/void *context)/'
refused "test of the test: an inline without a parameter" compile gcc "$work/use.c" -Wno-deprecated-declarations
spoil fabric.h 's/__extension__ union {/struct {/'
refused "test of the test: a nameless struct" compile gcc members.c

echo "$([ $fail = 0 ] && echo PASS || echo FAIL) headers: $pass checks held, $fail failed ($(echo $compilers))"
[ $fail = 0 ]

#!/usr/bin/env bash
# Programs of our own that know nothing of this library: one in C, built by pkg-config on the staged tree and again on
# Debian 12's headers and library (1.17), and one in Python that takes the functions from the library by name.
set -u
. "$(dirname "$0")/lib"

small() { # NAME WANTED COMMAND...: it says what it counted, and two processes had our library
    local name=$1 wanted=$2 why said; shift 2
    job "$name" 300 "$@"
    said=$(tail -n 1 "$WORK/$name.log")
    why=$(mapped "$name" 2)
    [ "$said" = "$wanted" ] || why="status $status: $said"
    if [ -n "$why" ]; then row small "$name" 2 0 1 0 "$took"; echo "FAIL $name: $why"
    else row small "$name" 2 "${said##*, }" 0 0 "$took"; echo "ok $name"; fi
}
row() { printf '%-14s %-28s %5s %6s %6s %7s %5s\n' "$1" "$2" "$3" "${4% messages}" "${@:5}" >>"$table"; }

exchange=(-std=gnu11 -O2 -Wall -Wextra -I"$SUPPORT" "$clients/exchange.c" "$SUPPORT/ends.c")
# shellcheck disable=SC2046
if $CC -o "$WORK/exchange" "${exchange[@]}" \
    $(PKG_CONFIG_PATH=$DIST/lib/pkgconfig pkg-config --cflags --libs libfabric); then
    small exchange-c '11 sizes, 1100 messages' "$WORK/exchange" shm
else
    echo "FAIL exchange-c: does not build"
fi
if old=$("$REAL" debian12) && libs=$(dirname "$old"/usr/lib/*/libfabric.so.1) &&
    $CC -o "$WORK/exchange-1.17" "${exchange[@]}" -I"$old/usr/include" \
        -L"$libs" -Wl,--allow-shlib-undefined -lfabric; then
    small exchange-c-1.17 '11 sizes, 1100 messages' "$WORK/exchange-1.17" shm
else
    echo "FAIL exchange-c-1.17: does not build"
fi
[ "$library" != "$DIST/lib" ] || small exchange-py '240 messages' python3 "$clients/exchange.py" "$library/libfabric.so.1" shm

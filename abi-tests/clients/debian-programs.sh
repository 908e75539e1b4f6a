#!/usr/bin/env bash
# fi_info and fi_strerror of Debian 12 and 13, as packaged, on our library: found by LD_LIBRARY_PATH, then put in place of
# Debian's own by LD_PRELOAD. Each program writes at its end which libfabric it had mapped.
set -u
"$SUPPORT/build-echo" "$WORK/plugins" || exit 1
$CC -O2 -Wall -fPIC -shared -o "$WORK/maps_proof.so" "$SUPPORT/maps_proof.c" || exit 1
ours=$(readlink -f "$DIST/lib/libfabric.so.1")
export MAPS_PROOF=$WORK/maps

expect() { # NAME PATTERN COMMAND...: the output has the pattern, and only our library was mapped
    local name=$1 pattern=$2 text mapped; shift 2
    rm -f "$MAPS_PROOF"
    text=$("$@" 2>&1 | tr -d '\0')
    mapped=$(sort -u "$MAPS_PROOF" 2>/dev/null | tr '\n' ' ')
    if ! tr '\n' ' ' <<<"$text" | grep -qE "$pattern"; then
        echo "FAIL $name: no '$pattern' in: $(head -n 3 <<<"$text" | tr '\n' ' ')"
    elif [ "$mapped" != "$ours " ]; then echo "FAIL $name: mapped were: $mapped"
    else echo "ok $name"; fi
}

programs() { # LABEL COMMAND...: COMMAND starts a program of the package by its name
    local label=$1; shift
    export FI_PROVIDER_PATH=$WORK/plugins
    expect "$label-version" 'libfabric: 2\.6\.0' "$@" fi_info --version
    expect "$label-list" 'echo: +version: 7\.5' "$@" fi_info -l
    expect "$label-info" 'provider: echo +fabric: echo-fabric +domain: echo-domain +version: 7\.5 +type: FI_EP_RDM' "$@" fi_info -p echo
    expect "$label-verbose" 'fi_info:.*caps: \[ FI_MSG.*fi_domain_attr:.*threading: FI_THREAD_SAFE.*prov_name: echo' \
        "$@" fi_info -v -p echo
    expect "$label-none" 'fi_getinfo: -61' "$@" fi_info -p nobody
    expect "$label-environment" '# FI_PROVIDER: String.*FI_ECHO_VOLUME: Integer.*how loud \(default: 11\)' "$@" fi_info -e
    expect "$label-strerror" 'No data available' "$@" fi_strerror 61
    expect "$label-strerror-own" 'Error available|Buffer|buffer|Memory registration' "$@" fi_strerror 270
    unset FI_PROVIDER_PATH
}

if d12=$("$REAL" debian12); then
    by_path() { LD_LIBRARY_PATH=$DIST/lib LD_PRELOAD=$WORK/maps_proof.so "$d12/usr/bin/$1" "${@:2}"; }
    by_preload() {
        LD_LIBRARY_PATH=$d12/usr/lib/x86_64-linux-gnu LD_PRELOAD=$ours:$WORK/maps_proof.so "$d12/usr/bin/$1" "${@:2}"
    }
    programs debian12-path by_path
    programs debian12-preload by_preload
    # The proof itself: without ours in front, Debian's own is what is mapped.
    rm -f "$MAPS_PROOF"
    LD_LIBRARY_PATH=$d12/usr/lib/x86_64-linux-gnu LD_PRELOAD=$WORK/maps_proof.so "$d12/usr/bin/fi_strerror" 61 >/dev/null
    if grep -q "$d12/.*libfabric.so.1" "$MAPS_PROOF"; then echo "ok proof-tells-them-apart"
    else echo "FAIL proof-tells-them-apart: $(sort -u "$MAPS_PROOF" | tr '\n' ' ')"; fi
else
    echo "FAIL debian12: cannot be fetched"
fi

if d13=$("$REAL" debian13); then # started by its own loader, on its own C library
    libs=$d13/usr/lib/x86_64-linux-gnu
    loader=$libs/ld-linux-x86-64.so.2
    by_path() { "$loader" --library-path "$DIST/lib:$libs" --preload "$WORK/maps_proof.so" "$d13/usr/bin/$1" "${@:2}"; }
    by_preload() { "$loader" --library-path "$libs" --preload "$ours:$WORK/maps_proof.so" "$d13/usr/bin/$1" "${@:2}"; }
    programs debian13-path by_path
    programs debian13-preload by_preload
else
    echo "FAIL debian13: cannot be fetched"
fi

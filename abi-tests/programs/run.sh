#!/bin/bash
# Checks fi_info and fi_strerror: options, output, exit statuses.
#
#   run.sh LIBDIR BINDIR [REFERENCE]
#
# LIBDIR holds the libfabric.so.1 to run on, BINDIR the two programs, REFERENCE (if given) fi_info and fi_strerror of the
# C library, whose output must be the same on that same libfabric.so.1. What the library offers is not the matter here,
# so it may be any, with any providers.
set -u

if [ $# -lt 2 ]; then
    echo "usage: $0 LIBDIR BINDIR [REFERENCE]" >&2
    exit 2
fi
export LD_LIBRARY_PATH=$1
fi_info=$2/fi_info
fi_strerror=$2/fi_strerror
reference=${3:-}
unset FI_LOG_LEVEL FI_LOG_PROV FI_LOG_SUBSYS FI_PROVIDER POSIXLY_CORRECT
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0

# verdict NAME STATUS: counts one check.
verdict() {
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
    fi
}

skip() {
    skipped=$((skipped + 1))
    echo "SKIP $1"
}

# run PROGRAM ARGS...: leaves out, err and status.
run() {
    "$@" >"$tmp/out" 2>"$tmp/err"
    status=$?
}

# status NAME WANTED PROGRAM ARGS...
status() {
    local name=$1 wanted=$2
    shift 2
    run "$@"
    [ "$status" = "$wanted" ]
    verdict "$name: exit status $wanted (was $status)" $?
}

# prints NAME FILE PATTERN: an extended regular expression found in out or err.
prints() {
    grep -Eq -- "$3" "$tmp/$2"
    verdict "$1: $2 has '$3'" $?
}

# json NAME EXPRESSION: out is JSON, and the Python expression about it (as d) holds.
json() {
    if ! python3 -m json.tool "$tmp/out" >"$tmp/tool" 2>&1; then
        verdict "$1: is JSON" 1
        return
    fi
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$tmp/out" "$2"
    verdict "$1: $2" $?
}

check_client() {
    readelf -d "$fi_info" | grep -q 'NEEDED.*\[libfabric.so.1\]'
    verdict "fi_info loads libfabric.so.1" $?
    readelf -d "$fi_strerror" | grep -q 'NEEDED.*\[libfabric.so.1\]'
    verdict "fi_strerror loads libfabric.so.1" $?
    # shellcheck disable=SC2016
    readelf -d "$fi_info" | grep -qF '[$ORIGIN/../lib]'
    verdict "fi_info finds the library beside itself" $?
}

check_usage() {
    status "-h" 1 "$fi_info" -h
    prints "-h" out '^Usage: '
    local option
    for option in h,help s,src_addr n,node P,port c,caps m,mode t,ep_type d,domain f,fabric a,addr_format p,provider \
        e,env g,getenv i,info l,list v,verbose; do
        prints "-h" out "^  -${option%,*}, --${option#*,}[= ]"
    done
    for option in version json why; do
        prints "-h" out "^  --$option "
    done
    status "unknown option" 1 "$fi_info" -Z
    prints "unknown option" err "^$fi_info: invalid option -- 'Z'$"
    prints "unknown option" out '^Usage: '
    status "unknown long option" 1 "$fi_info" --nosuch=1
    prints "unknown long option" err "^$fi_info: unrecognized option '--nosuch=1'$"
    status "ambiguous option" 1 "$fi_info" --ver
    prints "ambiguous option" err "ambiguous; possibilities: '--verbose' '--version'$"
    status "missing value" 1 "$fi_info" -l -n
    prints "missing value" err "requires an argument -- 'n'$"
    status "value not wanted" 1 "$fi_info" --list=x
    status "bad capability" 22 "$fi_info" -c 'FI_MSG|nosuch'
    prints "bad capability" err '^error: Unrecognized capability: nosuch$'
    status "bad mode" 22 "$fi_info" -m nosuch
    status "bad endpoint type" 22 "$fi_info" -t nosuch
    status "bad address format" 22 "$fi_info" -a nosuch
    status "endpoint type of older releases" 61 "$fi_info" -t FI_EP_SOCK_STREAM
    status "--version" 0 "$fi_info" --version -Z
    prints "--version" out "^$fi_info: [0-9]+\.[0-9]+\.[0-9]+$"
    prints "--version" out '^libfabric: [0-9]+\.[0-9]+\.[0-9]+'
    prints "--version" out '^libfabric api: [0-9]+\.[0-9]+$'
}

check_nothing_found() {
    status "no such provider" 61 "$fi_info" -p nosuch
    prints "no such provider" err '^fi_getinfo: -61 \(No data available\)$'
    [ ! -s "$tmp/out" ]
    verdict "no such provider: prints nothing" $?
    status "no such provider --json" 61 "$fi_info" -p nosuch --json
    json "no such provider --json" 'd == []'
    status "no such provider -e" 61 "$fi_info" -p nosuch -e
    prints "no such provider -e" out '^# FI_PROVIDER: String$'
}

check_variables() {
    FI_LOG_SUBSYS='two words' run "$fi_info" -g fi_log_subsys
    prints "-g" out '^# FI_LOG_SUBSYS: String$'
    prints "-g" out '^FI_LOG_SUBSYS="two words"$'
    [ "$(grep -c '^# FI_' "$tmp/out")" = 1 ]
    verdict "-g: shows no other variable" $?
    local odd=$'a"b\\c\n\x01\t\x7f\xc3\xbc'
    FI_LOG_SUBSYS=$odd run "$fi_info" --json -g FI_LOG_SUBSYS
    json "odd value" 'len(d) == 1 and d[0]["value"] == "a\"b\\c\n\x01\t\x7f\u00fc"'
    FI_LOG_SUBSYS=$'\xff' run "$fi_info" --json -g FI_LOG_SUBSYS
    json "value that is no text" 'd[0]["value"] == "\ufffd" and d[0]["type"] == "String"'
    run "$fi_info" -e
    local count
    count=$(grep -c '^# FI_[A-Z0-9_]*: ' "$tmp/out")
    run "$fi_info" -e --json
    json "-e" "len(d) == $count and all(p['name'].startswith('FI_') for p in d)"
}

# With a library that offers something.
check_infos() {
    run "$fi_info"
    cp "$tmp/out" "$tmp/short"
    if [ "$status" != 0 ]; then
        skip "infos: the library offers none"
        return
    fi
    local count
    count=$(grep -c '^provider: ' "$tmp/short")
    [ "$(grep -Ec '^    (fabric|domain|version|type|protocol): ' "$tmp/short")" = $((5 * count)) ]
    verdict "short form: five lines for each info" $?
    status "-v" 0 "$fi_info" -v
    [ "$(grep -c '^---$' "$tmp/out")" = "$count" ] && [ "$(grep -c '^fi_info:$' "$tmp/out")" = "$count" ]
    verdict "-v: one part for each info" $?
    run "$fi_info" --json
    json "--json" "len(d) == $count"
    python3 - "$tmp" <<'PY'
import json, sys
infos = json.load(open(sys.argv[1] + "/out"))
lines = []
for info in infos:
    fabric, ep = info["fabric_attr"], info["ep_attr"]
    lines += ["provider: " + fabric["prov_name"], "    fabric: " + fabric["name"]]
    lines += ["    domain: " + info["domain_attr"]["name"], "    version: " + fabric["prov_version"]]
    lines += ["    type: " + ep["type"], "    protocol: " + ep["protocol"]]
sys.exit(lines != open(sys.argv[1] + "/short").read().splitlines())
PY
    verdict "--json: says the same as the short form" $?
    json "--json" 'all(x.startswith(("FI_", "0x")) for i in d for p in (i, i["tx_attr"], i["rx_attr"]) for x in p["caps"])'
    check_same_set
    check_filters
}

# -v and --json name the same capabilities of the first info.
check_same_set() {
    run "$fi_info" -v
    sed -n '/^    caps: /{s/.*\[ \(.*\) \]/\1/p;q}' "$tmp/out" | tr -d ' ' | tr ',' '\n' | sort >"$tmp/long_caps"
    run "$fi_info" --json
    python3 -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))[0]["caps"]))' "$tmp/out" |
        grep -v '^0x' | sort >"$tmp/json_caps"
    cmp -s "$tmp/long_caps" "$tmp/json_caps"
    verdict "--json: the capabilities that -v names" $?
}

check_filters() {
    local name type
    name=$(sed -n '1s/^provider: //p' "$tmp/short")
    type=$(sed -n '5s/^    type: //p' "$tmp/short")
    status "-p" 0 "$fi_info" -p "$name" --ep_type="$type"
    [ "$(grep '^    type: ' "$tmp/out" | sort -u)" = "    type: $type" ]
    verdict "--ep_type: only $type" $?
    cp "$tmp/out" "$tmp/filtered"
    status "getopt forms" 0 "$fi_info" operand "-p$name" --ep_t "$type" -- -Z
    cmp -s "$tmp/out" "$tmp/filtered"
    verdict "getopt forms: the same answer" $?
    run "$fi_info" -i nothing-has-this-in-it
    [ "$status" = 0 ] && [ ! -s "$tmp/out" ]
    verdict "-i: nothing without its text" $?
}

check_list() {
    run "$fi_info" -l
    cp "$tmp/out" "$tmp/list"
    if [ "$status" != 0 ]; then
        skip "-l: the library has no providers"
        return
    fi
    python3 -c 'import re, sys
sys.exit(not re.fullmatch(r"(\S+:\n    version: \d+\.\d+\n)+", open(sys.argv[1]).read()))' "$tmp/list"
    verdict "-l: names and versions" $?
    run "$fi_info" -l --json
    json "-l" "[p['name'] + ':' for p in d] == open('$tmp/list').read().split('\n')[:-1:2]"
    check_why
}

check_why() {
    local names name
    names=$(sed -n 's/^\([^ ]*\):$/\1/p' "$tmp/list" | grep -Ev '^(ofi_hook_|off_)')
    status "--why" 61 "$fi_info" --why -p nosuch
    for name in $names; do
        prints "--why -p nosuch" out "^$name( \(.*\))?: ."
    done
    [ "$(cat "$tmp/err")" = "fi_getinfo: -61 (No data available)" ]
    verdict "--why: no log lines of the library" $?
    status "--why --json" 61 "$fi_info" --why --json -p nosuch
    json "--why --json" 'd["accepted"] == [] and all(r["provider"] and r["reason"] for r in d["refused"])'
    name=$(echo "$names" | head -n 1)
    FI_PROVIDER=^$name run "$fi_info" --why -l
    prints "--why with FI_PROVIDER=^$name" out "^$name: "
    # What stands behind the reasons is the ordinary answer.
    run "$fi_info" --why
    tail -n "$(wc -l <"$tmp/short")" "$tmp/out" | cmp -s - "$tmp/short"
    verdict "--why: the infos follow" $?
}

check_output() {
    local ended
    "$fi_info" -g FI_LOG >/dev/full 2>"$tmp/err"
    [ $? = 1 ]
    verdict "full disk: exit status 1" $?
    prints "full disk" err '^fi_info: cannot write: '
    "$fi_info" -e 2>/dev/null | head -n 1 >/dev/null
    ended=${PIPESTATUS[0]}
    [ "$ended" = 0 ] || [ "$ended" = 61 ]
    verdict "reader gone: no failure" $?
}

check_strerror() {
    local number
    run "$fi_strerror" 61
    [ "$status $(cat "$tmp/out")" = "0 No data available" ]
    verdict "fi_strerror 61" $?
    cp "$tmp/out" "$tmp/nodata"
    for number in -61 0x3d -0x3D 075 +61 ' 61'; do
        run "$fi_strerror" "$number"
        [ "$status" = 0 ] && cmp -s "$tmp/out" "$tmp/nodata"
        verdict "fi_strerror '$number'" $?
    done
    status "fi_strerror -h" 0 "$fi_strerror" -h
    prints "fi_strerror -h" out '^Usage: '
    status "fi_strerror" 1 "$fi_strerror"
    prints "fi_strerror" out '^Usage: '
    status "fi_strerror 1 2" 1 "$fi_strerror" 1 2
    for number in '' x 0x 08 61x 9223372036854775808; do
        status "fi_strerror '$number'" 1 "$fi_strerror" "$number"
        prints "fi_strerror '$number'" out "^ERROR: unable to parse '$number'$"
    done
    status "fi_strerror 2147483648" 1 "$fi_strerror" 2147483648
    prints "fi_strerror 2147483648" out "^ERROR: '2147483648' is out of range$"
}

# same NAME PROGRAM ARGS...: the reference's output and status, but for zero bytes (the original prints some around
# values), its version in the infos, and process ids in addresses.
same() {
    local name=$1 program=$2
    shift 2
    run "$reference/$program" "$@"
    local wanted=$status
    cleaned >"$tmp/wanted"
    run "${fi_info%/*}/$program" "$@"
    cleaned | cmp -s - "$tmp/wanted" && [ "$status" = "$wanted" ]
    verdict "$name: as the reference" $?
}

cleaned() {
    tr -d '\000' <"$tmp/out" | sed -E '/^Usage/,$d; /api_version/d; s,(fi_[a-z0-9]+://)[0-9]+(:[0-9]+)*$,\1,'
}

check_reference() {
    if [ ! -x "$reference/fi_info" ]; then
        skip "the reference programs: not given"
        return
    fi
    local number
    same "-l" fi_info -l
    same "short form" fi_info
    same "-v" fi_info -v
    same "-e" fi_info -e
    same "-g" fi_info -g log
    same "-i" fi_info -i fi_ep_rdm
    same "-l -v" fi_info -lv
    same "-t" fi_info -t FI_EP_RDM
    same "-c" fi_info -c 'fi_msg||FI_RMA'
    same "-m" fi_info -m FI_CONTEXT
    same "-a" fi_info -a FI_SOCKADDR_IN
    same "-n" fi_info -n localhost -P 5000
    same "-s" fi_info -s 127.0.0.1
    same "-d" fi_info -d lo
    same "-f" fi_info -f 127.0.0.1/32
    same "-p" fi_info -p nosuch
    same "bad capability" fi_info -c nosuch
    same "bad option" fi_info -Z
    for number in 0 1 61 -61 255 256 266 400 0x10b 2147483647 -2147483648 2147483648 x ''; do
        same "fi_strerror '$number'" fi_strerror "$number"
    done
}

check_client
check_usage
check_nothing_found
check_variables
check_infos
check_list
check_output
check_strerror
check_reference
echo "programs: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

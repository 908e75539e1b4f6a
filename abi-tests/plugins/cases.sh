#!/usr/bin/env bash
# Plug-ins of ours in a libfabric: found, chosen, asked, refused and cleaned up as fabric(7) says.
#   cases.sh LIBDIR INCLUDEDIR [reference]
# LIBDIR holds libfabric.so.1. With `reference` it is the C library: what it is known to get wrong is left out.
set -euo pipefail
shopt -s inherit_errexit
libdir=$(realpath "$1") include=$(realpath "$2") reference=${3:-}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset FI_PROVIDER FI_PROVIDER_PATH FI_LOG_LEVEL FI_LOG_PROV FI_LOG_SUBSYS FI_LOG_LOCATION FI_HOOK LD_PRELOAD
export LC_ALL=C PROBE_TRACE=$work/trace

# What is built: folder, file, options.
cc="${CC:-cc} -std=gnu11 -O1 -g -Wall -Wextra -Werror -isystem $include"
plugin() {
	local file=$work/$1/$2
	mkdir -p "$work/$1"
	$cc -shared -fPIC -fvisibility=hidden -o "$file" "$here/$3" "${@:4}" -L"$work" -l:libfabric.so.1 \
		-Wl,-rpath-link,"$libdir"
}
ln -s "$libdir/libfabric.so.1" "$work/libfabric.so.1"
plugin one libprobe-fi.so probe.c
plugin newer libprobe-fi.so probe.c -DMINOR=9
plugin both libprobe-old-fi.so probe.c -DMINOR=3
plugin both libprobe-new-fi.so probe.c -DMINOR=8
plugin upper libupper-fi.so probe.c -DNAME='"PROBE"' -DMINOR=4
plugin hook libhook_probe-fi.so probe.c -DNAME='"ofi_hook_probe"' -DHOOK
plugin util libofi_probe-fi.so probe.c -DNAME='"ofi_probe"'
plugin offload liboff_probe-fi.so probe.c -DNAME='"off_probe"'
plugin guess libverbs-fi.so probe.c -DNAME='"verbs"' -DMINOR=77
plugin guess librxm-fi.so probe.c -DNAME='"ofi_rxm"' -DMINOR=999
plugin low libtcp-fi.so probe.c -DNAME='"tcp"' -DMINOR=0
plugin bad/entry libprobe-fi.so probe.c -DNO_ENTRY -Wno-unused
plugin bad/null libprobe-fi.so probe.c -DRETURN_NULL
plugin bad/old libprobe-fi.so probe.c -DAPI='FI_VERSION(1, 2)'
plugin bad/name libprobe-fi.so probe.c -DNAMELESS
plugin bad/empty libprobe-fi.so probe.c -DNAME='""'
plugin bad/odd libprobe-fi.so probe.c -DNAME='"a\nb\377\033[31m;,"'
plugin bad/fabric libprobe-fi.so probe.c -DNO_FABRIC -Wno-unused
plugin v1.3 libprobe-fi.so probe.c -DAPI='FI_VERSION(1, 3)'
mkdir "$work/absent" "$work/old" "$work/text"
echo 'int absent(void); int absent(void) { return 0; }' >"$work/absent.c"
$cc -shared -fPIC -o "$work/absent/libabsent.so.7" -Wl,-soname,libabsent.so.7 "$work/absent.c"
plugin bad/needs libprobe-fi.so probe.c -DNEEDS_ABSENT -L"$work/absent" -l:libabsent.so.7
rm -r "$work/absent"
echo 'not an object' >"$work/text/libtext-fi.so"
$cc -shared -fPIC -o "$work/old/libold-fi.so" "$here/old.c" # of a libfabric it knows nothing
$cc -o "$work/driver" "$here/driver.c" -L"$work" -l:libfabric.so.1
$cc -o "$work/reopen" "$here/reopen.c" -ldl

# How it is run: NAME=VALUE... -- driver arguments. The trace and the log of the last run stay.
run() {
	local settings=()
	while [ "$1" != -- ]; do settings+=("$1"); shift; done
	shift
	rm -f "$PROBE_TRACE"
	env LD_LIBRARY_PATH="$libdir" "${settings[@]}" "$work/driver" "$@" 2>"$work/log" ||
		{ local status=$?; [ $status -lt 126 ] || echo "status $status"; }
}
title=
check() { # WHAT EXPECTED GOT
	if [ "$2" = "$3" ]; then
		echo "ok ${reference:-ours}: $title: $1"
	else
		echo "FAIL ${reference:-ours}: $title: $1: not what is expected"
		printf -- '--- expected\n%s\n--- got\n%s\n--- log\n%s\n---\n' "$2" "$3" "$(tail -n 20 "$work/log")"
	fi
}
listed() { check list "$1" "$(run "${@:2}" -- list | grep -Ei 'probe|verbs 1\.77|rxm 1\.999|^old' || true)"; }
offered() { check infos "$1" "$(run "${@:2}" -- infos probe)"; }
traced() { check trace "$1" "$([ ! -e "$PROBE_TRACE" ] || cat "$PROBE_TRACE")"; }
logged() { check "log has $1" 1 "$(grep -Eq -- "$1" "$work/log" && echo 1 || echo 0)"; }
unlogged() { check "log lacks $1" 0 "$(grep -Eq -- "$1" "$work/log" && echo 1 || echo 0)"; }
info() { echo "$1 api 2.5 probe-net probe-$2 tclass 0 max_ep_auth_key 0 max_cntr_value 0 src 0"; }
two() { info "$1" one; info "$1" two; }
of() { echo FI_PROVIDER_PATH="${1//%/$work}"; }

title='the library under test'
check maps "$(realpath "$libdir/libfabric.so.1" "$work/one/libprobe-fi.so" | sort)" "$(run "$(of %/one)" -- maps)"

title='a folder'
listed 'probe 1.2' "$(of %/one)"
offered "$(two 'probe 1.2')" "$(of %/one)"
traced 'load probe 1.2
getinfo two - 2.5 - probe 1.2
cleanup probe 1.2'
check fabric 'class 1 context kept api 2.5
fi_close: 0' "$(run "$(of %/one)" -- fabric probe probe-net)"
traced 'load probe 1.2
open probe 1.2
close probe 1.2
cleanup probe 1.2'
check 'a fabric it does not have' 'fi_fabric: -19' "$(run "$(of %/one)" -- fabric probe another-net)"
check 'any letter case' 'class 1 context kept api 2.5
fi_close: 0' "$(run "$(of %/one)" -- fabric PROBE probe-net)"
check 'arguments come through' "$(two 'probe 1.2' | sed -n 2p)" \
	"$(run "$(of %/one)" -- infos probe a-node a-service probe-two)"
traced 'load probe 1.2
getinfo a-node a-service 2.5 probe-two probe 1.2
cleanup probe 1.2'
check 'an error of its own' 'fi_getinfo: -61' "$(run "$(of %/one)" FI_LOG_LEVEL=info -- infos probe error)"
logged 'provider probe returned .*No route to host'
check 'an empty list' 'fi_getinfo: -61' "$(run "$(of %/one)" FI_LOG_LEVEL=warn -- infos probe empty)"
logged 'warn.*provider probe output empty list'

title='two of one name'
listed 'probe 1.9
probe 1.2' "$(of %/one:%/newer)"
offered "$(two 'probe 1.9')" "$(of %/one:%/newer)"
offered "$(two 'probe 1.9')" "$(of %/newer:%/one)"
offered "$(two 'probe 1.8')" "$(of %/both)"
offered "$(two 'PROBE 1.4')" "$(of %/one:%/upper)"
offered "$(two 'probe 1.2')" "$(of @%/one:%/newer)"
offered "$(two 'probe 1.9')" "$(of @%/newer:%/one)"
offered "$(two 'probe 1.3')" "$(of @%/both)" # last name first
traced 'load probe 1.3
load probe 1.8
getinfo two - 2.5 - probe 1.3
cleanup probe 1.3
cleanup probe 1.8'

title='preferred'
offered "$(two 'probe 1.2')" "$(of %/newer:+%/one/libprobe-fi.so)"
offered "$(two 'probe 1.2')" "$(of +%/one/libprobe-fi.so:%/newer)"
offered "$(two 'probe 1.2')" "$(of @%/newer:+%/one/libprobe-fi.so)"
offered "$(two 'probe 1.2')" "$(of +%/one/libprobe-fi.so:+%/newer/libprobe-fi.so)"
offered "$(two 'probe 1.2')" "$(of +%/one/libprobe-fi.so)"
listed '' "$(of +one/libprobe-fi.so)" FI_LOG_LEVEL=warn
logged 'warn.*invalid format for preferred provider: "one/libprobe-fi.so"'
listed '' "$(of +%/none/libprobe-fi.so)" FI_LOG_LEVEL=warn
logged 'warn.*preferred provider not found: "/.*/none/libprobe-fi.so"'

title='kinds'
listed 'ofi_hook_probe 1.2' "$(of %/hook)"
check 'a hook offers nothing' 'fi_getinfo: -61' "$(run "$(of %/hook)" -- infos ofi_hook_probe)"
listed 'off_probe 1.2' "$(of %/offload)"
check 'an offload provider is not asked' 'fi_getinfo: -61' "$(run "$(of %/offload)" -- infos off_probe)"
listed 'ofi_probe 1.2' "$(of %/util)"
listed 'probe 1.2' "$(of %/one)" FI_PROVIDER=tcp
check filtered 'fi_getinfo: -61' "$(run "$(of %/one)" FI_PROVIDER=tcp -- infos probe)"
check 'let in' "$(two 'probe 1.2')" "$(run "$(of %/one)" FI_PROVIDER=probe -- infos probe)"
check 'kept out' 'fi_getinfo: -61' "$(run "$(of %/one)" FI_PROVIDER=^probe -- infos probe)"
# Written for an API older than the caller's: listed, and not asked.
listed 'probe 1.2' "$(of %/v1.3)"
check 'too old for the caller' 'fi_getinfo: -61' "$(run "$(of %/v1.3)" FI_LOG_LEVEL=warn -- infos probe)"
logged 'probe.* fi_version 1.3 < requested 2.5'

title='refused'
listed '' "$(of %/bad/entry)" FI_LOG_LEVEL=warn
logged 'warn.*bad/entry/libprobe-fi.so.*fi_prov_ini'
traced ''
listed '' "$(of %/bad/null)"
traced 'load probe 1.2'
listed '' "$(of %/bad/old)" FI_LOG_LEVEL=info
logged '<(info|warn)>.*unsupported FI version'
traced 'load probe 1.2
cleanup probe 1.2'
listed '' "$(of %/bad/name)"
traced 'load probe 1.2
cleanup probe 1.2'
listed '' "$(of %/bad/fabric)" FI_LOG_LEVEL=warn
logged 'warn.*missing mandatory entry points'
traced 'load probe 1.2
cleanup probe 1.2'
listed '' "$(of %/bad/needs)" FI_LOG_LEVEL=warn
logged 'warn.*dlopen\(/.*/bad/needs/libprobe-fi.so\): libabsent.so.7: cannot open'
listed 'probe 1.2' "$(of %/text:%/one)" FI_LOG_LEVEL=warn
logged 'warn.*dlopen\(/.*/text/libtext-fi.so\): .*(invalid ELF header|file too short)'
for path in : :: + @ @@ +: @+ /dev/null / %/one/libprobe-fi.so '%/no such folder' $'\n' $'\xff' "$(printf '%5000s' x)"; do
	listed '' "$(of "$path")"
done

title='log and parameters'
listed 'probe 1.2' "$(of %/one)" FI_LOG_LEVEL=info
logged 'libfabric:.*:probe:core:fi_prov_ini\(\):[0-9]+<info> mode - level 3 quick 0 room 0 ret -61$'
settings=(FI_PROBE_MODE=fast FI_PROBE_LEVEL=-12 FI_PROBE_QUICK=yes FI_PROBE_ROOM=0x10)
listed 'probe 1.2' "$(of %/one)" FI_LOG_LEVEL=info "${settings[@]}"
logged 'mode fast level -12 quick 1 room 16 ret 0$'
listed 'probe 1.2' "$(of %/one)" FI_LOG_LEVEL=info FI_LOG_PROV=^probe
logged 'registering provider: probe'
listed 'probe 1.2' "$(of %/one)" FI_LOG_LEVEL=warn
unlogged 'mode'
check params "FI_PROBE_MODE 0 fast [probe: How probe goes about it (default: none)]
FI_PROBE_LEVEL 1 -12 [probe: A number]
FI_PROBE_QUICK 2 yes [probe: A choice]
FI_PROBE_ROOM 3 0x10 [probe: A size]" "$(run "$(of %/one)" "${settings[@]}" -- params FI_PROBE | sort -k2)"
check 'parameters of a refused one' '' "$(run "$(of %/bad/old)" -- params FI_PROBE)"

title='the loader path'
listed 'verbs 1.77
ofi_rxm 1.999' LD_LIBRARY_PATH="$libdir:$work/guess"
listed '' LD_LIBRARY_PATH="$libdir:$work/guess" "$(of %/text)"

title='life of the library'
check reopen '3 cleanups in 3 rounds' "$(rm -f "$PROBE_TRACE"
	env "$(of %/old)" "$work/reopen" "$libdir/libfabric.so.1" "$PROBE_TRACE" 3 2>&1 || true)"

if [ "$reference" != reference ]; then
	title='ours alone'
	check 'broken entries are dropped' "$(two 'probe 1.2')" "$(run "$(of %/one)" FI_LOG_LEVEL=warn -- infos probe broken)"
	for part in tx_attr rx_attr ep_attr domain_attr fabric_attr; do logged "warn.*provider probe: no $part"; done
	check 'short structs are made whole' \
		'old 117.0 api 1.17 old-net old-domain tclass 17 max_ep_auth_key 0 max_cntr_value 0 src 5' \
		"$(run "$(of %/old)" DRIVER_API=1.17 -- infos old)"
	listed '' "$(of %/bad/name)" FI_LOG_LEVEL=warn
	logged 'warn.*bad/name/libprobe-fi.so: a provider without a name'
	listed '' "$(of %/bad/null)" FI_LOG_LEVEL=info
	logged 'info.*bad/null/libprobe-fi.so: no provider structure'
	for odd in empty odd; do
		listed '' "$(of %/bad/$odd)" FI_LOG_LEVEL=warn
		logged "warn.*bad/$odd/libprobe-fi.so: provider name .* cannot be used"
	done
	listed '' "$(of '%/no such folder')" FI_LOG_LEVEL=warn
	logged 'warn.*no such folder: No such file or directory'
	ln -s ../one/libprobe-fi.so "$work/upper/libagain-fi.so"
	listed 'PROBE 1.4
probe 1.2' "$(of %/upper:%/one:%/one/../one)"
	offered "$(two 'probe 1.2')" "$(of %/upper:+%/one/libprobe-fi.so)"
	traced 'load PROBE 1.4
load probe 1.2
getinfo two - 2.5 - probe 1.2
cleanup probe 1.2
cleanup PROBE 1.4'

	title='the folder beside the library'
	mkdir -p "$work/lib/libfabric"
	cp "$libdir/libfabric.so.1" "$work/lib/"
	cp "$work/one/libprobe-fi.so" "$work/lib/libfabric/"
	libdir=$work/lib
	for path in '' @ : "+$work/hook/libhook_probe-fi.so"; do
		check "with '$path'" "$(two 'probe 1.2')" "$(run FI_PROVIDER_PATH="$path" -- infos probe)"
	done
	check 'elsewhere' 'fi_getinfo: -61' "$(run "$(of %/text)" -- infos probe)"
	mv "$work/lib/libfabric/libprobe-fi.so" "$work/lib/libfabric/libverbs-fi.so"
	listed 'probe 1.2' LD_LIBRARY_PATH="$work/lib:$work/lib/libfabric" # met twice
fi

#!/usr/bin/env bash
# Upstream's own plug-ins, from PyPI's mpich: every one that the C library beside them loads is loaded by ours, with the
# same version, and one that cannot be loaded is named with the reason.
# Wants what abi-tests/README.md says: DIST, WORK, REAL.
set -u
here=$(dirname "$(realpath "$0")")
export LC_ALL=C
ok() { echo "ok mpich-plugins: $1"; }
bad() { echo "FAIL mpich-plugins: $1: $2"; }
same() { [ "$2" = "$3" ] && ok "$1" || { bad "$1" "not what is expected"; printf -- '--- expected\n%s\n--- got\n%s\n---\n' "$2" "$3"; }; }

wheel=$($REAL wheel) || { bad fetch "the wheel could not be fetched"; exit 1; }
plugins=$wheel/lib/libfabric

# What they need of the system.
package_of() {
	case $1 in
	libibverbs.so.1) echo libibverbs1 ;;
	librdmacm.so.1) echo librdmacm1 ;;
	libefa.so.1) echo ibverbs-providers ;;
	libpsm2.so.2) echo libpsm2-2 ;;
	*) echo "" ;;
	esac
}
needed() { # libraries that the loader does not find
	for plugin in "$plugins"/*-fi.so; do ldd "$plugin"; done | sed -n 's/^\s*\(\S*\) => not found/\1/p' | sort -u
}
packages=$(for library in $(needed); do package_of "$library"; done | sort -u)
if [ -n "$packages" ] && [ "$(id -u)" = 0 ]; then
	# shellcheck disable=SC2086
	{ apt-get -qq install -y --no-install-recommends $packages ||
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends $packages; }; } >"$WORK/apt.log" 2>&1
fi
left=$(needed)
[ -z "$left" ] || { bad packages "missing" $left "- install as root:" $packages; exit 1; }

cc="${CC:-cc} -std=gnu11 -isystem $DIST/include"
$cc -o "$WORK/driver" "$here/../plugins/driver.c" -L"$DIST/lib" -l:libfabric.so.1 || { bad build "driver.c"; exit 1; }
ask() { # LIBDIR PLUGINS QUESTION
	LD_LIBRARY_PATH=$1 FI_PROVIDER_PATH=$2 FI_LOG_LEVEL=warn "$WORK/driver" "$3" 2>"$WORK/log.$3"
}
mkdir -p "$WORK/none"
brought() { # LIBDIR PLUGINS: what is listed with them and not without
	comm -13 <(ask "$1" "$WORK/none" list | sort) <(ask "$1" "$2" list | sort)
}

expected=$(brought "$wheel/lib" "$plugins")
same 'the C library loads its three' 3 "$(grep -c . <<<"$expected")"
same 'ours loads the same' "$expected" "$(brought "$DIST/lib" "$plugins")"
echo "$expected" | sed 's/^/  /'
files() { realpath "$1/libfabric.so.1" "$plugins"/*-fi.so | sort; }
same 'with the C library' "$(files "$wheel/lib")" "$(ask "$wheel/lib" "$plugins" maps)"
same 'with ours and no other' "$(files "$DIST/lib")" "$(ask "$DIST/lib" "$plugins" maps)"
same 'nothing to complain of' '' "$(cat "$WORK/log.maps")"

# The same plug-ins on a machine that lacks a library each.
cut=$WORK/cut
mkdir -p "$cut"
for plugin in "$plugins"/*-fi.so; do
	sed 's/libpsm2\.so\.2/libpsm2.so.X/; s/librdmacm\.so\.1/librdmacm.so.X/; s/libefa\.so\.1/libefa.so.X/' \
		"$plugin" >"$cut/$(basename "$plugin")"
done
same 'none loads without what it needs' '' "$(brought "$DIST/lib" "$cut")"
ask "$DIST/lib" "$cut" list >/dev/null
while read -r file library; do
	if grep -q "<warn>.*dlopen($cut/$file): $library: cannot open shared object file" "$WORK/log.list"; then
		ok "$file is named with the reason"
	else
		bad "$file" "not named with the reason"
		cat "$WORK/log.list"
	fi
done <<'END'
libverbs-fi.so librdmacm.so.X
libefa-fi.so libefa.so.X
libpsmx2-fi.so libpsm2.so.X
END

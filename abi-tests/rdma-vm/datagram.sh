# Runs in the guest: endpoints of datagrams (FI_EP_DGRAM), ours alone and with the C library's on the other side. Set by
# `run`, in front of this text: LIBDIR, PAGES (a folder of programs), THEIR_LIBDIR and PLUGINS (the C library and its
# plug-ins).
unset FI_PROVIDER_PATH
ours="LD_LIBRARY_PATH=$LIBDIR FI_PROVIDER_PATH=/none"
theirs="LD_LIBRARY_PATH=$THEIR_LIBDIR FI_PROVIDER_PATH=$PLUGINS"
step() { echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }

# Two processes, each with the library and the variables that it is given: they leave their names in a folder of their own.
pairs=0
pair() { # WHAT FIRST SECOND
	local first
	folder=/run/pair.$((++pairs))
	mkdir "$folder"
	# shellcheck disable=SC2086
	env $2 timeout 100 "$PAGES/datagram_pair" 0 "$folder" >"$folder/out.0" 2>&1 &
	first=$!
	# shellcheck disable=SC2086
	if env $3 timeout 100 "$PAGES/datagram_pair" 1 "$folder" >"$folder/out.1" 2>&1 && wait $first &&
		[ "$(sed -n 's/^MINE //p' "$folder/out.0")" = "$(sed -n 's/^PEER //p' "$folder/out.1")" ] &&
		[ "$(sed -n 's/^PEER //p' "$folder/out.0")" = "$(sed -n 's/^MINE //p' "$folder/out.1")" ] &&
		[ "$(sed -n 's/^OFFER //p' "$folder/out.0")" = "$(sed -n 's/^OFFER //p' "$folder/out.1")" ]
	then echo "GUEST ok datagrams, $1: $(sed -n 's/^PEER //p' "$folder/out.0")"
	else echo "GUEST FAIL datagrams, $1"; head -n 20 "$folder"/out.*
	fi
}
step "pairs of datagrams"
pair "ours and ours" "$ours" "$ours"
pair "ours and theirs" "$ours" "$theirs"
pair "theirs and ours" "$theirs" "$ours"
step "datagrams"
cd /run || exit 1
# shellcheck disable=SC2086
env $ours CASE_SECONDS=60 timeout 200 "$PAGES/datagrams" verbs --strict >/run/datagrams 2>&1
echo "GUEST datagrams ends with $?"
grep -E '^(ok|FAIL) ' /run/datagrams | sed -E "s/^(ok|FAIL) /GUEST \1 datagrams /"
grep -q FAIL /run/datagrams && cat /run/datagrams

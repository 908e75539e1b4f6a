# Runs in the guest: our own provider verbs. Set by `run`, in front of this text: LIBDIR, PAGES (a folder of programs), BIN
# (of fi_info and fi_pingpong), THEIR_LIBDIR and PLUGINS (the C library and its plug-ins).
unset FI_PROVIDER_PATH
address=192.168.77.1 port=47592
ours="LD_LIBRARY_PATH=$LIBDIR FI_PROVIDER_PATH=/none"
theirs="LD_LIBRARY_PATH=$THEIR_LIBDIR FI_PROVIDER_PATH=$PLUGINS"
step() { echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }

step "fi_info of both"
for side in ours theirs; do
	# shellcheck disable=SC2086
	env ${!side} "$BIN/fi_info" -p verbs -t FI_EP_MSG >/run/info.$side 2>&1
	# Fabric, domain, type and protocol of each info; how many there are is told in docs/differences.md.
	sed -n 's/^ *\(fabric\|domain\|type\|protocol\): //p' /run/info.$side | paste -d ' ' - - - - | sort -u |
		sed "s/^/INFO $side /"
done

pingpong() { # SERVER CLIENT SIZE COUNT
	options="-p verbs -e msg -d rxe0 -c -S $3 -I $4"
	# shellcheck disable=SC2086
	env ${!1} timeout 120 "$BIN/fi_pingpong" $options >/run/server 2>&1 &
	server=$!
	until ss -Hltn "sport = :$port" | grep -q .; do kill -0 $server 2>/dev/null || break; done
	# shellcheck disable=SC2086
	if env ${!2} timeout 120 "$BIN/fi_pingpong" $options $address >/run/client 2>&1 && wait $server
	then echo "GUEST ok $1 serves $2: $4 times $3 bytes"
	else echo "GUEST FAIL $1 serves $2: $4 times $3 bytes"; cat /run/client /run/server
	fi
}
for what in "64 200" "65536 40"; do
	read -r size count <<<"$what"
	for pair in "ours ours" "ours theirs" "theirs ours"; do
		step "fi_pingpong, $pair, $count times $size bytes"
		# shellcheck disable=SC2086
		pingpong $pair $size $count
	done
done

cd /run || exit 1
for page in one_sided card atomics queues srq events limits fi_pep fi_eq fi_cm link; do
	step "$page"
	# shellcheck disable=SC2086
	env $ours FI_LOG_LEVEL=warn CASE_SECONDS=150 timeout 400 "$PAGES/$page" verbs >/run/page 2>&1
	echo "GUEST $page ends with $?"
	sed -n 's/.*\(may have .*RLIMIT_MEMLOCK.*ulimit -l.*\)/INFO limit \1/p' /run/page
	grep -E '^(ok|FAIL) ' /run/page | sed -E "s/^(ok|FAIL) /GUEST \1 $page /"
done
step "end"

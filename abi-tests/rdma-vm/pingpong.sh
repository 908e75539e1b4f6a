# Runs in the guest: fi_pingpong, server and client, over the verbs plug-in. Set by `run`, in front of this text:
# LIBDIR (of libfabric.so.1), PLUGINS (a folder), BIN (of fi_pingpong and fi_info).
export LD_LIBRARY_PATH=$LIBDIR FI_PROVIDER_PATH=$PLUGINS
address=192.168.77.1 port=47592
step() { echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }
fail() { echo "GUEST-FAIL $*"; exit 1; }

step "device"
rdma link show
step "fi_info"
"$BIN/fi_info" -p verbs -t FI_EP_MSG >/run/info 2>&1 || { cat /run/info; fail "fi_info finds no verbs"; }
head -n 6 /run/info
grep -q 'domain: rxe0' /run/info || fail "no domain rxe0"

pingpong() { # SIZE COUNT
	options="-p verbs -e msg -d rxe0 -c -S $1 -I $2"
	# shellcheck disable=SC2086
	timeout 300 "$BIN/fi_pingpong" $options >/run/server 2>&1 &
	server=$!
	until ss -Hltn "sport = :$port" | grep -q .; do
		kill -0 $server 2>/dev/null || return
	done
	# shellcheck disable=SC2086
	timeout 300 "$BIN/fi_pingpong" $options $address >/run/client 2>&1 &
	client=$!
	# Which files both have loaded, seen while they run: the program is a child of timeout.
	for side in $server $client; do
		until pid=$(cat /proc/$side/task/$side/children 2>/dev/null) && [ -n "$pid" ] &&
			grep -q 'libverbs-fi.so' /proc/${pid% }/maps 2>/dev/null; do
			kill -0 $side 2>/dev/null || break
		done
		sed -n 's/^.* \(\/.*\/\(libfabric\.so\|libverbs-fi\.so\|libibverbs\.so\).*\)$/MAPS \1/p' /proc/${pid% }/maps 2>/dev/null |
			sort -u
	done
	wait $client && wait $server
}

for what in "64 500" "65536 100"; do
	read -r size count <<<"$what"
	step "fi_pingpong, $count times $size bytes"
	pingpong $size $count || {
		cat /run/client /run/server
		rdma statistic show link rxe0/1 # a growing completer_retry_err: messages that nobody acknowledges
		fail "fi_pingpong with $size bytes"
	}
	sed 's/^/CLIENT /' /run/client
	sed 's/^/SERVER /' /run/server
done
step "end"

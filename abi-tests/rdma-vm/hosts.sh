# Runs in the guest: two hosts with a card each, at two ends of a cable, and what can happen between them. Soft-RoCE of this
# kernel hears only what comes in the first network namespace, and by an interface of no router (VRF); so the hosts are two
# interfaces there, and rules have the kernel send from one to the other by the cable, though both addresses are its own.
# Set by `run`, in front of this text: what `datagram.sh` says.
step "two hosts"
host() { # NAME NUMBER OTHER
	ip addr add "10.78.0.$2/24" dev "e$1" && ip link set "e$1" up && echo 1 >"/proc/sys/net/ipv4/conf/e$1/accept_local" &&
		echo 0 >"/proc/sys/net/ipv4/conf/e$1/rp_filter" && ip route add "10.78.0.$3" dev "e$1" table "10$2" &&
		ip rule add pref 10 oif "e$1" lookup "10$2" && ip rule add pref 11 iif "e$1" to "10.78.0.$3" lookup "10$2" &&
		rdma link add "card$1" type rxe netdev "e$1"
}
{ ip link add ea type veth peer name eb && ip rule add pref 50 lookup local && ip rule del pref 0 &&
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter && host a 1 2 && host b 2 1; } >/run/hosts.log 2>&1 ||
	{ echo "GUEST FAIL two hosts"; cat /run/hosts.log; }

pid_of() { sed -n 's/^LISTENING //p' /run/listen; }
# REPAIR comes before the server is killed, as the kernel says goodbye for a process that ends, and a goodbye that has no route
# spoils the card: Soft-RoCE (6.1) puts the queue pair that connects, number 1, into error, and the kernel brings back only the
# half that sends. From then on whatever comes to the card is dropped (its counter rcvd_pkts stands still), and nobody connects
# there until the card is made anew. With librdmacm alone it is the same.
between() { # WHAT SERVER CLIENT [COMMAND [REPAIR]]
	local server
	# shellcheck disable=SC2086
	env ${!2} timeout 100 "$PAGES/hosts" listen 10.78.0.1 >/run/listen 2>&1 &
	server=$!
	until [ -n "$(pid_of)" ]; do kill -0 $server 2>/dev/null || break; done
	# shellcheck disable=SC2086
	if env ${!3} timeout 100 "$PAGES/hosts" connect 10.78.0.2 10.78.0.1 ${4:+"$4"} >/run/connect 2>&1
	then echo "GUEST ok hosts, $1: $(sed -n 's/^ok //p' /run/connect)"
	else echo "GUEST FAIL hosts, $1"; cat /run/listen /run/connect
	fi
	sed -n "s/^first error/INFO hosts, $1, first error/p" /run/connect
	eval "${5:-}"
	# It may wait for a peer that it can no longer hear.
	[ -z "${4:-}" ] || kill -KILL "$(pid_of)" 2>/dev/null
	wait $server
} 2>/dev/null
between "messages and reads" ours ours
between "ours to theirs" theirs ours
between "theirs to ours" ours theirs
# The GID of the interface's IPv4 address.
pair "between two cards" "$ours FI_VERBS_DEVICE_NAME=carda FI_VERBS_GID_IDX=1" "$ours FI_VERBS_DEVICE_NAME=cardb FI_VERBS_GID_IDX=1"
pair "between two cards, theirs" "$ours FI_VERBS_DEVICE_NAME=carda FI_VERBS_GID_IDX=1" \
	"$theirs FI_VERBS_DEVICE_NAME=cardb FI_VERBS_GID_IDX=1"
grep -q '^MINE fi_addr_ib_ud://::ffff:10.78.0.1:' "$folder/out.0" && echo "GUEST ok FI_VERBS_GID_IDX chooses the address" ||
	{ echo "GUEST FAIL FI_VERBS_GID_IDX chooses the address"; cat "$folder/out.0"; }
# The kernel drops the way with the link.
mend='ip link set ea up && ip route replace 10.78.0.2 dev ea table 101'
# shellcheck disable=SC2016 # the program runs it
between "a peer is killed" ours ours 'kill -KILL $(sed -n "s/^LISTENING //p" /run/listen)'
between "the link goes down" ours ours 'ip link set ea down' "$mend"

# Reliable endpoints on the same cards.
reliably() { # WHAT COMMAND [REPAIR]
	local server said
	# shellcheck disable=SC2086
	env $ours timeout 100 "$PAGES/hosts_rdm" listen 10.78.0.1 >/run/listen 2>&1 &
	server=$!
	until said=$(sed -n 's/^LISTENING //p' /run/listen) && [ -n "$said" ]; do kill -0 $server 2>/dev/null || break; done
	# shellcheck disable=SC2086
	if env $ours timeout 100 "$PAGES/hosts_rdm" send 10.78.0.2 10.78.0.1 ${said#* } "${@:2}" >/run/connect 2>&1
	then echo "GUEST ok reliable hosts, $1: $(sed -n 's/^ok //p' /run/connect)"
	else echo "GUEST FAIL reliable hosts, $1"; cat /run/listen /run/connect
	fi
	sed -n "s/^first error/INFO hosts, $1, reliable, first error/p" /run/connect
	eval "${3:-}"
	kill -KILL "${said%% *}" 2>/dev/null
	wait $server
} 2>/dev/null
# shellcheck disable=SC2016 # the program runs it
reliably "a peer is killed" 'kill -KILL $(sed -n "s/^LISTENING \([0-9]*\).*/\1/p" /run/listen)'
reliably "the link goes down" 'ip link set ea down' "$mend"
rdma link del carda
# shellcheck disable=SC2086
env $ours CASE_SECONDS=60 timeout 100 "$PAGES/rescan" verbs --strict >/run/rescan 2>&1
echo "GUEST rescan ends with $?"
sed -nE "s/^(ok|FAIL) /GUEST \1 rescan /p" /run/rescan

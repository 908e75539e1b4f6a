# Runs in the guest: provider `auto`, whose network is the device where that leads to a peer, and tcp elsewhere. Set by `run`, in
# front of this text: LIBDIR and PAGES (a folder of programs).
export LD_LIBRARY_PATH=$LIBDIR FI_PROVIDER_PATH=/none
step() { echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }
cd /run || exit 1

step "fi_info"
"$LIBDIR/../bin/fi_info" -t FI_EP_RDM | sed -n 's/^provider: /FIRST /p' | head -n 1
"$LIBDIR/../bin/fi_info" --check 2>&1 | sed 's/^/CHECK /'

# Two processes, of which one sends to the other: which way its log says it went.
ways() { # NAME PATTERN VARIABLE=VALUE-OF-THE-LISTENER [SED-SCRIPT-FOR-ITS-NAME]
	step "ways: $1"
	rm -f listener sender
	env "$3" timeout 120 "$PAGES/ways" listen >listener 2>&1 &
	until grep -q ^NAME listener || ! kill -0 $! 2>/dev/null; do :; done
	name=$(sed -n 's/^NAME //p' listener | sed "${4:-}")
	FI_LOG_LEVEL=info FI_LOG_PROV=auto timeout 120 "$PAGES/ways" send "$name" >sender 2>&1
	wait $!
	if [ "$(cat listener sender | grep -c '^WAYS ok$')" = 2 ] && grep -qE "$2" sender; then echo "GUEST ok auto: $1"
	else echo "GUEST FAIL auto: $1: no line '$2'"; cat listener sender; fi
}
ways 'a neighbour by shared memory' '1 peers were reached by shm, 0 by the network' FI_AUTO_LOCAL=shm
export FI_AUTO_LOCAL=none
ways 'a peer by its device' "of the network's peers 1 were reached by verbs, 0 by tcp" FI_AUTO_NETWORK=verbs
ways 'a peer without a device by tcp' "of the network's peers 0 were reached by verbs, 1 by tcp" FI_AUTO_NETWORK=tcp
# The first bit of a name, which has 56 in ten digits of six, says that a device listens. Here none does, so that the
# connection comes to nothing.
forged='s,^fi_auto://0,fi_auto://2,; s,^fi_auto://1,fi_auto://3,'
ways 'a peer by tcp whose device cannot be reached' 'is not reached by verbs, and so by tcp' FI_AUTO_NETWORK=tcp "$forged"
ways 'that peer is the only one' "of the network's peers 0 were reached by verbs, 1 by tcp" FI_AUTO_NETWORK=tcp "$forged"

for page in fi_msg fi_tagged fi_rma fi_atomic; do
	step "$page"
	FI_LOG_LEVEL=info FI_LOG_PROV=auto CASE_SECONDS=150 timeout 400 "$PAGES/$page" auto --patient >page 2>&1
	echo "GUEST auto $page ends with $?"
	grep -E '^(ok|FAIL) ' page | sed -E "s/^(ok|FAIL) /GUEST \1 $page on auto: /"
	sed -nE "s/.*peers ([0-9]+) were reached by verbs, ([0-9]+) by tcp.*/WAYS $page \1 \2/p" page | sort -u
done
step "end"

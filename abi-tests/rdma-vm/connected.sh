# Runs in the guest: pages of the manual on connected endpoints and on datagrams of our own provider verbs, and a child of
# fork beside endpoints of both kinds. Set by `run`, in front of this text: LIBDIR, PAGES (a folder of programs), THEIR_LIBDIR
# and PLUGINS (the C library and its plug-ins).
export LD_LIBRARY_PATH=$LIBDIR FI_PROVIDER_PATH=/none
step() { echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }
cd /run || exit 1

page() { # NAME ENDPOINTS ARGUMENT ...: its lines, and how it ended. ENDPOINTS: as the file `known` calls them
	step "$1 on $2"
	CASE_SECONDS=150 timeout 400 "$PAGES/$1" "${@:3}" >page 2>&1
	echo "GUEST $1 on $2 ends with $?"
	sed -nE "s/^(ok|FAIL|skip) ([^ :]*):?/CASE \1 $2 $1.\2/p" page
	! grep -q '^FAIL' page || grep -v '^ok' page
}
# Of fi_cq one case waits in vain: a send of a device has ended when the peer has received it, whatever was asked for.
for name in fi_msg fi_tagged fi_rma fi_atomic fi_cq fi_cntr; do
	page $name verbs verbs --connected --patient --without=inject_complete
done
page fork verbs verbs --connected --patient
page fork 'verbs;ofi_rxm' 'verbs;ofi_rxm' --patient
for name in fi_msg fi_cq fi_cntr fi_endpoint fi_av fi_getinfo; do
	page $name verbs-dgram verbs --datagram --patient
done
# The cases are held honest: what they ask of datagrams the C library's provider can answer too. Those that say most, as its
# processes are slow to begin.
LD_LIBRARY_PATH=$THEIR_LIBDIR FI_PROVIDER_PATH=$PLUGINS page fi_msg their-verbs-dgram verbs --datagram \
	vectors nothing_to_send nothing_by_message inject_frees_the_buffer inject_at_its_limit remote_cq_data too_many_pieces \
	not_before_enable order_across_sizes both_ways_at_once all_to_all ping_pong_between_processes sizes_expected

# Stations that stream to one another, one of which is killed, stopped or begun again: cases of abi-tests/netns, whose hosts
# are processes here, as Soft-RoCE hears only the first network namespace.
STATIONS_AT=192.168.77.1 page troubles 'verbs;ofi_rxm' 'verbs;ofi_rxm' --strict peer_is_killed receives_outlive_a_peer peer_is_stopped \
	peer_is_restarted peer_is_restarted_and_its_address_kept
step "end"

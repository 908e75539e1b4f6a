# Runs in the guest: our own provider `verbs;ofi_rxm`. Set by `run`, in front of this text: LIBDIR, PAGES (a folder of
# programs), BIN (of fi_info and fi_pingpong) and COUNTER (count_work.so).
address=192.168.77.1 port=47592 provider='verbs;ofi_rxm'
export LD_LIBRARY_PATH=$LIBDIR FI_PROVIDER_PATH=/none
step() { echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }
cd /run || exit 1

step "fi_info"
"$BIN/fi_info" -p "$provider" >info 2>&1
sed -n 's/^ *\(provider\|fabric\|domain\|type\|protocol\): /\1 /p' info | sort -u | sed 's/^/INFO /'
"$LIBDIR/../bin/fi_info" --check 2>&1 | sed 's/^/CHECK /'

pingpong() { # SIZE COUNT
	# shellcheck disable=SC2086
	timeout 120 "$BIN/fi_pingpong" -p "$provider" -e rdm -d rxe0 -c -S $1 -I $2 >server 2>&1 &
	server=$!
	until ss -Hltn "sport = :$port" | grep -q .; do kill -0 $server 2>/dev/null || break; done
	# shellcheck disable=SC2086
	if timeout 120 "$BIN/fi_pingpong" -p "$provider" -e rdm -d rxe0 -c -S $1 -I $2 $address >client 2>&1 && wait $server
	then echo "GUEST ok fi_pingpong: $2 times $1 bytes"
	else echo "GUEST FAIL fi_pingpong: $2 times $1 bytes"; cat client server
	fi
}
for what in "64 200" "4096 200" "65536 40" "1048576 10"; do
	read -r size count <<<"$what"
	step "fi_pingpong, $count times $size bytes"
	pingpong "$size" "$count"
done

# Of fi_av one case has a child of fork use a device that its parent had open, which libibverbs cannot do.
for page in fi_rma fi_msg fi_tagged fi_atomic fi_cq fi_av; do
	step "$page"
	cases=
	[ $page != fi_av ] || cases=insertsvc
	# shellcheck disable=SC2086
	CASE_SECONDS=150 timeout 400 "$PAGES/$page" "$provider" --patient $cases >page 2>&1
	echo "GUEST $page ends with $?"
	grep -E '^(ok|FAIL) ' page | sed -E "s/^(ok|FAIL) /GUEST \1 $page on $provider: /"
done

# However short packets are to be, the longest atomic that is promised fits one.
step "fi_atomic, short packets"
FI_OFI_RXM_BUFFER_SIZE=1 CASE_SECONDS=150 timeout 400 "$PAGES/fi_atomic" "$provider" --patient limits >page 2>&1
echo "GUEST fi_atomic with short packets ends with $?"
grep -E '^(ok|FAIL) ' page | sed -E "s/^(ok|FAIL) /GUEST \1 fi_atomic with short packets: /"

# Where the user chooses the device's own. fi_atomic is not run with them: it makes thousands, most of them with a fence, and
# Soft-RoCE (6.1) repeats one now and then, when its timer goes off while an answer is on its way (completer_retry_err). One with
# a fence that is to be repeated is never sent: the fence waits until no read and no atomic is under way, and the one that is
# repeated counts as such (rxe_wqe_is_fenced). With ibverbs alone each of six such repeats stood still for ever, and none of
# forty without a fence.
step "device_atomics"
FI_OFI_RXM_DEVICE_ATOMICS=1 CASE_SECONDS=150 timeout 400 "$PAGES/device_atomics" "$provider" --patient >page 2>&1
echo "GUEST device_atomics ends with $?"
grep -E '^(ok|FAIL) ' page | sed -E "s/^(ok|FAIL) /GUEST \1 device_atomics on $provider: /"

# With what the card knows of memory kept, and without.
for monitor in userfaultfd disabled; do
	step "kept by $monitor"
	FI_MR_CACHE_MONITOR=$monitor LD_PRELOAD=$COUNTER CASE_SECONDS=150 timeout 400 "$PAGES/kept" "$provider" --patient >page 2>&1
	echo "GUEST kept by $monitor ends with $?"
	grep -E '^(ok|FAIL) ' page | sed -E "s/^(ok|FAIL) /GUEST \1 kept by $monitor: /"
done
# Endpoints that come and go, and what is done in each other's memory, held against a model; in domains of either kind.
random() { # NAME ARGUMENTS
	local name=$1; shift
	step "random $name"
	if PROVIDER=$provider timeout 150 "$PAGES/random_$name" "$@" >page 2>&1
	then echo "GUEST ok $name $*${MR_VIRT_ADDR:+ by addresses}"
	else echo "GUEST FAIL $name $*${MR_VIRT_ADDR:+ by addresses}: ended with $?"; cat page
	fi
}
random one_sided 3 400 1
random come_and_go 3 400 1
MR_VIRT_ADDR=1 random come_and_go 3 400 2
MR_VIRT_ADDR=1 random come_and_go 3 400 3 stop
step "end"

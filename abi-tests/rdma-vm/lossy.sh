# Runs in the guest, whose kernel has what those of test machines often lack: two hosts at a switch, with packets that come
# late or never. The case `slow_and_lossy` of abi-tests/netns over our provider tcp. Set by `run`, in front of this text:
# LIBDIR, PAGES (a folder of programs), NETNS (the folder abi-tests/netns).
unset FI_PROVIDER_PATH
case=slow_and_lossy
echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $case" # ends the line that the firmware began
lacking() { echo "GUEST skip $case: NOT RUN, the guest has no $*"; exit 0; }
for tool in ip tc; do command -v $tool >/dev/null || lacking $tool; done
. "$NETNS/hosts"
{ make_switch && make_host 1 && make_host 2; } >/tmp/hosts.log 2>&1 || lacking "hosts: $(tail -n 1 /tmp/hosts.log)"

cd /tmp || exit 1
LD_LIBRARY_PATH=$LIBDIR FI_PROVIDER_PATH=/none CASE_SECONDS=150 timeout 170 \
	"$PAGES/troubles" tcp --strict $case >/tmp/cases 2>&1 </dev/null
status=$?
sed -nE "s/^(ok|FAIL|skip) /GUEST \1 /p" /tmp/cases
grep -qE "^(ok|FAIL|skip) .*$case" /tmp/cases || { echo "GUEST FAIL $case: ended with $status"; cat /tmp/cases; }

# Whether packets were lost indeed, of the thousands that were sent.
again=0
for host in h1 h2; do
	read -ra tcp <<<"$(ip netns exec $host grep '^Tcp: [0-9]' /proc/net/snmp)"
	echo "INFO $host: ${tcp[11]} segments sent, ${tcp[12]} of them again"
	again=$((again + tcp[12]))
done
if grep -q "^skip " /tmp/cases; then :
elif [ $again -gt 0 ]; then echo "GUEST ok the network loses packets"
else echo "GUEST FAIL the network loses packets: nothing was sent again"
fi

# Runs in the guest: what messages and operations on connected endpoints cost a card, by ours and by the C library's. Set by
# `run`, in front of this text: what `datagram.sh` says, and COUNTER (count_work.so).
step "counts"
for side in ours theirs; do
	# shellcheck disable=SC2086
	env ${!side} LD_PRELOAD="$COUNTER" CASE_SECONDS=100 timeout 200 "$PAGES/counts" verbs --strict >/run/counts.$side 2>&1
	echo "GUEST counts of $side ends with $?"
	sed -n "s/^COUNT /COUNT $side /p" /run/counts.$side
	grep -v '^COUNT ' /run/counts.$side | sed 's/^/counts: /'
done

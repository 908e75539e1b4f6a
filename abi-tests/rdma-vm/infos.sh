# Runs in the guest: all that fi_info tells of verbs by ours and by the C library's, for `infos`. Set by `run`, in front of
# this text: what `datagram.sh` says, and BIN (of fi_info).
step "fi_info -v of both"
for side in ours theirs; do
	# shellcheck disable=SC2086
	env ${!side} "$BIN/fi_info" -p verbs -v 2>/dev/null | sed "s/^/INFOS $side /"
done

# Runs in the guest: the parts of this folder that share what they set. Set by `run`, in front of this text: what the parts
# want, and HERE, where they are.
for part in datagram counts infos hosts; do
	# shellcheck source=/dev/null
	. "$HERE/$part.sh"
done
step "end"

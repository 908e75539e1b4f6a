/* What the cases share: one call of each kind, tagged or not. */
#include "shared.h"

char in[BIG + 64], out[BIG + 64];

ssize_t post_send(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag, void *context)
{
	return tagged ? fi_tsend(ep, buf, len, NULL, to, tag, context) : fi_send(ep, buf, len, NULL, to, context);
}

ssize_t post_recv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	return tagged ? fi_trecv(ep, buf, len, NULL, from, tag, ignore, context) : fi_recv(ep, buf, len, NULL, from, context);
}

ssize_t post_sendmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag, uint64_t data,
		     void *context, uint64_t flags)
{
	struct fi_msg msg = { .msg_iov = iov, .iov_count = count, .addr = to, .context = context, .data = data };
	struct fi_msg_tagged tmsg = { .msg_iov = iov, .iov_count = count, .addr = to, .tag = tag, .context = context, .data = data };

	return tagged ? fi_tsendmsg(ep, &tmsg, flags) : fi_sendmsg(ep, &msg, flags);
}

ssize_t post_recvmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag,
		     uint64_t ignore, void *context, uint64_t flags)
{
	struct fi_msg msg = { .msg_iov = iov, .iov_count = count, .addr = from, .context = context };
	struct fi_msg_tagged tmsg = { .msg_iov = iov, .iov_count = count, .addr = from, .tag = tag, .ignore = ignore, .context = context };

	return tagged ? fi_trecvmsg(ep, &tmsg, flags) : fi_recvmsg(ep, &msg, flags);
}

void send_to(struct bed *bed, int from, int to, const void *buf, size_t len, void *context)
{
	POST(bed, post_send(bed->side[from].ep, buf, len, bed->side[to].addr, TAG, context));
}

void recv_at(struct bed *bed, int at, void *buf, size_t len, void *context)
{
	POST(bed, post_recv(bed->side[at].ep, buf, len, FI_ADDR_UNSPEC, TAG, 0, context));
}

struct fi_cq_tagged_entry ended(struct bed *bed, void *rx, void *tx, size_t len)
{
	struct fi_cq_tagged_entry e = COMPLETION(bed, bed->side[1].rx, rx);

	COMPLETION(bed, bed->side[0].tx, tx);
	CHECK(e.len == len, "%zu bytes, not %zu", e.len, len);
	CHECK(!tagged || e.tag == TAG, "tag 0x%llx", (unsigned long long) e.tag);
	return e;
}

void need_order(struct bed *bed)
{
	NEED(bed->info->tx_attr->msg_order & FI_ORDER_SAS, "sends are not ordered");
}

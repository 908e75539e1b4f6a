#include "messages.h"

__attribute__((weak)) enum messages of_page = ANY_MESSAGES;
bool tagged;
void *desc, *descs[MOST_PIECES];

void describe(void *descriptor)
{
	int i;

	desc = descriptor;
	for (i = 0; i < MOST_PIECES; i++)
		descs[i] = descriptor;
}

ssize_t post_send(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag, void *context)
{
	return tagged ? fi_tsend(ep, buf, len, desc, to, tag, context) : fi_send(ep, buf, len, desc, to, context);
}

ssize_t post_senddata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	return tagged ? fi_tsenddata(ep, buf, len, desc, data, to, tag, context)
		      : fi_senddata(ep, buf, len, desc, data, to, context);
}

ssize_t post_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	return tagged ? fi_tinject(ep, buf, len, to, tag) : fi_inject(ep, buf, len, to);
}

ssize_t post_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag)
{
	return tagged ? fi_tinjectdata(ep, buf, len, data, to, tag) : fi_injectdata(ep, buf, len, data, to);
}

ssize_t post_recv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	return tagged ? fi_trecv(ep, buf, len, desc, from, tag, ignore, context) : fi_recv(ep, buf, len, desc, from, context);
}

ssize_t post_sendv(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag, void *context)
{
	return tagged ? fi_tsendv(ep, iov, descs, count, to, tag, context) : fi_sendv(ep, iov, descs, count, to, context);
}

ssize_t post_recvv(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag, uint64_t ignore,
		   void *context)
{
	return tagged ? fi_trecvv(ep, iov, descs, count, from, tag, ignore, context)
		      : fi_recvv(ep, iov, descs, count, from, context);
}

ssize_t post_sendmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag, uint64_t data,
		     void *context, uint64_t flags)
{
	struct fi_msg msg = { .msg_iov = iov, .desc = descs, .iov_count = count, .addr = to, .context = context, .data = data };
	struct fi_msg_tagged tmsg = { .msg_iov = iov, .desc = descs, .iov_count = count, .addr = to, .tag = tag,
				      .context = context, .data = data };

	return tagged ? fi_tsendmsg(ep, &tmsg, flags) : fi_sendmsg(ep, &msg, flags);
}

ssize_t post_recvmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag,
		     uint64_t ignore, void *context, uint64_t flags)
{
	struct fi_msg msg = { .msg_iov = iov, .desc = descs, .iov_count = count, .addr = from, .context = context };
	struct fi_msg_tagged tmsg = { .msg_iov = iov, .desc = descs, .iov_count = count, .addr = from, .tag = tag,
				      .ignore = ignore, .context = context };

	return tagged ? fi_trecvmsg(ep, &tmsg, flags) : fi_recvmsg(ep, &msg, flags);
}

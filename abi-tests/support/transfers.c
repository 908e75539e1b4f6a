#include <sched.h>
#include "transfers.h"

#define TAG 0x1d
#define BIG ((4u << 20) + 1)

static const struct setup usual;
static char in[BIG + 64], out[BIG + 64];

/* ---- one call of each kind ---- */

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

static void send_to(struct bed *bed, int from, int to, const void *buf, size_t len, void *context)
{
	POST(bed, post_send(bed->side[from].ep, buf, len, bed->side[to].addr, TAG, context));
}

static void recv_at(struct bed *bed, int at, void *buf, size_t len, void *context)
{
	POST(bed, post_recv(bed->side[at].ep, buf, len, FI_ADDR_UNSPEC, TAG, 0, context));
}

/* A send of side 0 and a receive of side 1 have ended well, with so many bytes. */
static struct fi_cq_tagged_entry ended(struct bed *bed, void *rx, void *tx, size_t len)
{
	struct fi_cq_tagged_entry e = COMPLETION(bed, bed->side[1].rx, rx);

	COMPLETION(bed, bed->side[0].tx, tx);
	CHECK(e.len == len, "%zu bytes, not %zu", e.len, len);
	CHECK(!tagged || e.tag == TAG, "tag 0x%llx", (unsigned long long) e.tag);
	return e;
}

/* ---- the calls ---- */

void send_and_receive(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 100, 1);
	recv_at(&bed, 1, in, 100, ctx(1));
	send_to(&bed, 0, 1, out, 100, ctx(2));
	ended(&bed, ctx(1), ctx(2), 100);
	SAME(in, 100, 1);
	close_bed(&bed);
}

static size_t pieces(size_t limit)
{
	return limit < 4 ? limit : 4;
}

/* Gathers and scatters in different, uneven pieces, small and large. */
void vectors(void)
{
	static const size_t totals[] = { 40, 5000, 300000 };
	struct bed bed;
	unsigned t;

	open_bed(&bed, &usual);
	for (t = 0; t < 3; t++) {
		struct iovec from[4], to[4];
		size_t total = totals[t], n, i, at;

		fill(out, total, t);
		memset(in, 0, total);
		n = pieces(bed.info->tx_attr->iov_limit);
		for (i = at = 0; i < n; i++) {
			from[i].iov_base = out + at;
			from[i].iov_len = i + 1 < n ? total / 7 * (i + 1) : total - at;
			at += from[i].iov_len;
		}
		if (tagged)
			POST(&bed, fi_tsendv(bed.side[0].ep, from, NULL, n, bed.side[1].addr, TAG, ctx(2)));
		else
			POST(&bed, fi_sendv(bed.side[0].ep, from, NULL, n, bed.side[1].addr, ctx(2)));
		n = pieces(bed.info->rx_attr->iov_limit);
		for (i = at = 0; i < n; i++) {
			to[i].iov_base = in + at;
			to[i].iov_len = i + 1 < n ? total / 9 + i : total - at;
			at += to[i].iov_len;
		}
		if (tagged)
			POST(&bed, fi_trecvv(bed.side[1].ep, to, NULL, n, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
		else
			POST(&bed, fi_recvv(bed.side[1].ep, to, NULL, n, FI_ADDR_UNSPEC, ctx(1)));
		ended(&bed, ctx(1), ctx(2), total);
		SAME(in, total, t);
	}
	close_bed(&bed);
}

void message_structures(void)
{
	struct iovec from = { out, 100 }, to = { in, 100 };
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 100, 3);
	POST(&bed, post_recvmsg(bed.side[1].ep, &to, 1, FI_ADDR_UNSPEC, TAG, 0, ctx(1), 0));
	POST(&bed, post_sendmsg(bed.side[0].ep, &from, 1, bed.side[1].addr, TAG, 0, ctx(2), 0));
	ended(&bed, ctx(1), ctx(2), 100);
	SAME(in, 100, 3);
	close_bed(&bed);
}

void too_many_pieces(void)
{
	struct iovec iov[64];
	struct bed bed;
	size_t n, i;

	open_bed(&bed, &usual);
	n = bed.info->tx_attr->iov_limit + 1;
	if (n > 64)
		SKIP("iov_limit is %zu", n - 1);
	for (i = 0; i < n; i++) {
		iov[i].iov_base = out + i;
		iov[i].iov_len = 1;
	}
	FAILS(post_sendmsg(bed.side[0].ep, iov, n, bed.side[1].addr, TAG, 0, ctx(1), 0));
	close_bed(&bed);
}

void nothing_to_send(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, post_recv(bed.side[1].ep, NULL, 0, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, NULL, 0, bed.side[1].addr, TAG, ctx(2)));
	ended(&bed, ctx(1), ctx(2), 0);
	send_to(&bed, 0, 1, NULL, 0, ctx(2)); /* unexpected, and into a buffer */
	settle(&bed);
	recv_at(&bed, 1, in, 64, ctx(1));
	ended(&bed, ctx(1), ctx(2), 0);
	close_bed(&bed);
}

/* For 0 bytes the vector may be ignored, and the count may be 0. */
void nothing_by_message(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, post_recvmsg(bed.side[1].ep, NULL, 0, FI_ADDR_UNSPEC, TAG, 0, ctx(1), 0));
	POST(&bed, post_sendmsg(bed.side[0].ep, NULL, 0, bed.side[1].addr, TAG, 0, ctx(2), 0));
	ended(&bed, ctx(1), ctx(2), 0);
	close_bed(&bed);
}

/* ---- inject ---- */

static ssize_t post_inject(struct bed *bed, const void *buf, size_t len)
{
	return tagged ? fi_tinject(bed->side[0].ep, buf, len, bed->side[1].addr, TAG)
		      : fi_inject(bed->side[0].ep, buf, len, bed->side[1].addr);
}

void inject_frees_the_buffer(void)
{
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	for (i = 0; i < 8; i++) {
		fill(out, 16, (unsigned) i);
		POST(&bed, post_inject(&bed, out, 16));
		memset(out, '#', 16);
	}
	for (i = 0; i < 8; i++) {
		recv_at(&bed, 1, in, 16, ctx(i));
		COMPLETION(&bed, bed.side[1].rx, ctx(i));
		SAME(in, 16, (unsigned) i);
	}
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_bed(&bed);
}

void inject_at_its_limit(void)
{
	struct bed bed;
	size_t len;

	open_bed(&bed, &usual);
	len = bed.info->tx_attr->inject_size;
	if (len > BIG)
		len = BIG;
	fill(out, len, 2);
	recv_at(&bed, 1, in, len, ctx(1));
	POST(&bed, post_inject(&bed, out, len));
	memset(out, '#', len);
	CHECK(COMPLETION(&bed, bed.side[1].rx, ctx(1)).len == len, "the length");
	SAME(in, len, 2);
	close_bed(&bed);
}

void inject_beyond_its_limit(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	if (bed.info->tx_attr->inject_size >= BIG)
		SKIP("inject_size is %zu", bed.info->tx_attr->inject_size);
	FAILS(post_inject(&bed, out, bed.info->tx_attr->inject_size + 1));
	close_bed(&bed);
}

void inject_flag_completes(void)
{
	struct iovec iov = { out, 16 };
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 16, 3);
	recv_at(&bed, 1, in, 16, ctx(1));
	POST(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, TAG, 0, ctx(2), FI_INJECT | FI_COMPLETION));
	memset(out, '#', 16);
	ended(&bed, ctx(1), ctx(2), 16);
	SAME(in, 16, 3);
	close_bed(&bed);
}

/* ---- data for the queue ---- */

void remote_cq_data(void)
{
	struct iovec iov = { out, 32 };
	struct fi_cq_tagged_entry e;
	struct bed bed;
	uint64_t data = 0x8877665544332211ULL;
	int way;

	open_bed(&bed, &usual);
	NEED(bed.info->domain_attr->cq_data_size, "no data for the queue");
	if (bed.info->domain_attr->cq_data_size < 8)
		data &= (1ULL << 8 * bed.info->domain_attr->cq_data_size) - 1;
	fill(out, 32, 5);
	for (way = 0; way < 6; way++) { /* three calls, expected and unexpected */
		memset(in, 0, 32);
		if (way < 3)
			recv_at(&bed, 1, in, 64, ctx(1));
		if (way % 3 == 0 && tagged)
			POST(&bed, fi_tsenddata(bed.side[0].ep, out, 32, NULL, data, bed.side[1].addr, TAG, ctx(2)));
		if (way % 3 == 0 && !tagged)
			POST(&bed, fi_senddata(bed.side[0].ep, out, 32, NULL, data, bed.side[1].addr, ctx(2)));
		if (way % 3 == 1)
			POST(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, TAG, data, ctx(2), FI_REMOTE_CQ_DATA));
		if (way % 3 == 2 && tagged)
			POST(&bed, fi_tinjectdata(bed.side[0].ep, out, 32, data, bed.side[1].addr, TAG));
		if (way % 3 == 2 && !tagged)
			POST(&bed, fi_injectdata(bed.side[0].ep, out, 32, data, bed.side[1].addr));
		if (way >= 3) {
			settle(&bed);
			recv_at(&bed, 1, in, 64, ctx(1));
		}
		e = COMPLETION(&bed, bed.side[1].rx, ctx(1));
		CHECK(e.flags & FI_REMOTE_CQ_DATA, "way %d: flags 0x%llx", way, (unsigned long long) e.flags);
		CHECK(e.data == data, "way %d: data 0x%llx", way, (unsigned long long) e.data);
		CHECK(e.len == 32, "way %d: %zu bytes", way, e.len); /* the data are not part of the message */
		SAME(in, 32, 5);
		if (way % 3 != 2)
			COMPLETION(&bed, bed.side[0].tx, ctx(2));
	}
	close_bed(&bed);
}

void no_cq_data_unless_sent(void)
{
	struct fi_cq_tagged_entry e;
	struct iovec iov = { out, 8 };
	struct bed bed;

	open_bed(&bed, &usual);
	recv_at(&bed, 1, in, 8, ctx(1));
	POST(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, TAG, 0x55, ctx(2), 0)); /* data without the flag */
	e = ended(&bed, ctx(1), ctx(2), 8);
	CHECK(!(e.flags & FI_REMOTE_CQ_DATA), "flags 0x%llx", (unsigned long long) e.flags);
	close_bed(&bed);
}

/* ---- sizes ---- */

/* 0, and around every power of two up to 4 MiB. */
static size_t size_at(int i)
{
	return i == 0 ? 0 : ((size_t) 1 << ((i - 1) / 3)) + (size_t) ((i - 1) % 3) - 1;
}
#define SIZES (1 + 3 * 23)

static void sizes(bool expected)
{
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	for (i = 0; i < SIZES; i++) {
		size_t len = size_at(i);

		if (len > bed.info->ep_attr->max_msg_size)
			break;
		fill(out, len, (unsigned) i);
		memset(in, '#', len + 16);
		if (expected)
			recv_at(&bed, 1, in, len, ctx(1));
		send_to(&bed, 0, 1, out, len, ctx(2));
		if (!expected) {
			int turn;

			for (turn = 0; turn < 20; turn++)
				progress(&bed);
			recv_at(&bed, 1, in, len, ctx(1));
		}
		ended(&bed, ctx(1), ctx(2), len);
		SAME(in, len, (unsigned) i);
		CHECK(in[len] == '#', "%zu bytes: wrote behind the buffer", len);
	}
	close_bed(&bed);
}

void sizes_expected(void) { sizes(true); }
void sizes_unexpected(void) { sizes(false); }

static void sizes_body(struct bed *bed, int me, int pipe)
{
	struct side *mine = &bed->side[0];
	struct fi_cq_tagged_entry e;
	int i;

	meet(bed, pipe);
	for (i = 0; i < SIZES; i++) {
		size_t len = size_at(i);

		if (len > bed->info->ep_attr->max_msg_size)
			break;
		if ((i & 1) == me) {
			memset(in, 0, len);
			POST(bed, post_recv(mine->ep, in, len, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
			e = COMPLETION(bed, mine->rx, ctx(1));
			CHECK(e.len == len, "%zu bytes, not %zu", e.len, len);
			SAME(in, len, (unsigned) i);
		} else {
			fill(out, len, (unsigned) i);
			POST(bed, post_send(mine->ep, out, len, bed->peer, TAG, ctx(2)));
			COMPLETION(bed, mine->tx, ctx(2));
		}
	}
}

void sizes_between_processes(void)
{
	in_two(&usual, sizes_body);
}

void smaller_than_the_buffer(void)
{
	static const size_t lens[] = { 0, 1, 63, 5000, 100000 };
	struct bed bed;
	unsigned i;

	open_bed(&bed, &usual);
	for (i = 0; i < 5; i++) {
		memset(in, '#', 200000);
		fill(out, lens[i], i);
		recv_at(&bed, 1, in, 200000, ctx(1));
		send_to(&bed, 0, 1, out, lens[i], ctx(2));
		ended(&bed, ctx(1), ctx(2), lens[i]);
		SAME(in, lens[i], i);
		CHECK(in[lens[i]] == '#' && in[199999] == '#', "wrote more than the message");
	}
	close_bed(&bed);
}

/* ---- order ---- */

enum { IN_ORDER = 64, SLOT = 40000 };

static void need_order(struct bed *bed)
{
	NEED(bed->info->tx_attr->msg_order & FI_ORDER_SAS, "sends are not ordered");
}

static size_t mixed(int i)
{
	static const size_t lens[] = { 8, 20000, 0, 300, 40000, 4096, 1, 9000 };

	return lens[i % 8];
}

static void in_order(bool expected, bool mix)
{
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	need_order(&bed);
	for (i = 0; expected && i < IN_ORDER; i++)
		recv_at(&bed, 1, in + i * SLOT, SLOT, ctx(i));
	for (i = 0; i < IN_ORDER; i++) {
		size_t len = mix ? mixed(i) : 16;

		fill(out + i * SLOT, len, (unsigned) i);
		send_to(&bed, 0, 1, out + i * SLOT, len, ctx(1000 + i));
	}
	settle(&bed);
	for (i = 0; !expected && i < IN_ORDER; i++)
		recv_at(&bed, 1, in + i * SLOT, SLOT, ctx(i));
	for (i = 0; i < IN_ORDER; i++) { /* completions may come in another order: each must be the right one */
		struct fi_cq_tagged_entry e;
		long which;

		GIVES(1, next(&bed, bed.side[1].rx, &e));
		which = (struct fi_context2 *) e.op_context - ctx(0);
		CHECK(which >= 0 && which < IN_ORDER, "a completion of nobody");
		CHECK(e.len == (mix ? mixed((int) which) : 16), "receive %ld got %zu bytes", which, e.len);
		SAME(in + which * SLOT, e.len, (unsigned) which);
		CHECK(mix || which == i, "receive %ld completes in place %d", which, i);
	}
	for (i = 0; i < IN_ORDER; i++) {
		struct fi_cq_tagged_entry e;

		GIVES(1, next(&bed, bed.side[0].tx, &e));
	}
	close_bed(&bed);
}

void order_of_posted_receives(void) { in_order(true, false); }
void order_of_unexpected_messages(void) { in_order(false, false); }
void order_across_sizes(void) { in_order(true, true); in_order(false, true); }

/* Posts without a receive until the provider says it has enough; then everything arrives, in order. */
void flood(void)
{
	enum { MANY = 20000 };
	struct bed bed;
	uint64_t *values = (uint64_t *) out, got = 0;
	uint64_t sent = 0, ended_sends = 0, received = 0;
	struct fi_cq_tagged_entry e;
	long quiet;

	open_bed(&bed, &usual);
	need_order(&bed);
	send_to(&bed, 0, 1, out, 8, ctx(1)); /* connects them */
	recv_at(&bed, 1, in, 8, ctx(2));
	ended(&bed, ctx(2), ctx(1), 8);
	quiet = now_ms();
	while (sent < MANY && now_ms() - quiet < 200) {
		values[sent] = sent;
		if (post_send(bed.side[0].ep, &values[sent], 8, bed.side[1].addr, TAG, ctx(1)) == 0) {
			sent++;
			quiet = now_ms();
			continue;
		}
		if (fi_cq_read(bed.side[0].tx, &e, 1) == 1)
			ended_sends++;
		fi_cq_read(bed.side[1].rx, NULL, 0);
	}
	CHECK(sent > 0, "nothing could be sent");
	for (received = 0; received < sent; received++) {
		recv_at(&bed, 1, &got, 8, ctx(2));
		COMPLETION(&bed, bed.side[1].rx, ctx(2));
		CHECK(got == received, "message %llu in place %llu", (unsigned long long) got, (unsigned long long) received);
	}
	for (; ended_sends < sent; ended_sends++)
		COMPLETION(&bed, bed.side[0].tx, ctx(1));
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_bed(&bed);
}

/* ---- truncation ---- */

static void truncated(bool expected)
{
	static const size_t lens[] = { 100, 6000, 200000 };
	struct fi_cq_err_entry err;
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	for (i = 0; i < 3; i++) {
		memset(in, '#', lens[i]);
		fill(out, lens[i], 1);
		if (expected)
			recv_at(&bed, 1, in, lens[i] / 2, ctx(1));
		send_to(&bed, 0, 1, out, lens[i], ctx(2));
		if (!expected) {
			settle(&bed);
			recv_at(&bed, 1, in, lens[i] / 2, ctx(1));
		}
		err = ERROR_COMPLETION(&bed, bed.side[1].rx);
		CHECK(err.err == FI_ETRUNC, "%zu bytes: err %d (%s)", lens[i], err.err, fi_strerror(err.err));
		CHECK(err.op_context == ctx(1), "the error of another operation");
		CHECK(in[lens[i] / 2] == '#', "wrote behind the buffer");
		/* The sender's end is its own matter; what comes next is not disturbed. */
		{
			struct fi_cq_tagged_entry e;
			ssize_t ret = next(&bed, bed.side[0].tx, &e);

			if (ret == -FI_EAVAIL)
				GIVES(1, fi_cq_readerr(bed.side[0].tx, &err, 0));
			else
				CHECK(ret == 1, "the send does not end: %zd", ret);
		}
		fill(out, 64, 9);
		recv_at(&bed, 1, in, 64, ctx(3));
		send_to(&bed, 0, 1, out, 64, ctx(4));
		ended(&bed, ctx(3), ctx(4), 64);
		SAME(in, 64, 9);
	}
	close_bed(&bed);
}

void truncated_expected(void) { truncated(true); }
void truncated_unexpected(void) { truncated(false); }

/* ---- cancel ---- */

void cancel_a_receive(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 16, 1);
	memset(in, 0, 64);
	recv_at(&bed, 1, in, 16, ctx(1));
	recv_at(&bed, 1, in + 16, 16, ctx(2));
	OK(fi_cancel(&bed.side[1].ep->fid, ctx(1)));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ECANCELED && err.op_context == ctx(1), "err %d", err.err);
	send_to(&bed, 0, 1, out, 16, ctx(3));
	ended(&bed, ctx(2), ctx(3), 16); /* the message goes to the one behind it */
	SAME(in + 16, 16, 1);
	CHECK(in[0] == 0, "the cancelled buffer was written");
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

void cancel_what_has_ended(void)
{
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	recv_at(&bed, 1, in, 16, ctx(1));
	send_to(&bed, 0, 1, out, 16, ctx(2));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	settle(&bed);
	ret = fi_cancel(&bed.side[1].ep->fid, ctx(1));
	CHECK(ret == 0 || ret == -FI_ENOENT || ret == -FI_EAGAIN, "fi_cancel: %s", fi_strerror(-ret));
	COMPLETION(&bed, bed.side[1].rx, ctx(1)); /* its own completion stands, and no other comes */
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

void cancel_one_of_many(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	need_order(&bed);
	for (i = 0; i < 5; i++)
		recv_at(&bed, 1, in + i * 16, 16, ctx(7)); /* all with one context: one of them is cancelled */
	OK(fi_cancel(&bed.side[1].ep->fid, ctx(7)));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ECANCELED, "err %d", err.err);
	NO_COMPLETION(&bed, bed.side[1].rx);
	for (i = 0; i < 4; i++) {
		send_to(&bed, 0, 1, out, 16, ctx(8));
		ended(&bed, ctx(7), ctx(8), 16);
	}
	close_bed(&bed);
}

/* ---- peers ---- */

void from_any_source(void)
{
	struct setup s = { .sides = 4 };
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	for (i = 1; i < 4; i++) {
		fill(out, 16, (unsigned) i);
		recv_at(&bed, 0, in, 16, ctx(i));
		send_to(&bed, i, 0, out, 16, ctx(10 + i));
		COMPLETION(&bed, bed.side[0].rx, ctx(i));
		COMPLETION(&bed, bed.side[i].tx, ctx(10 + i));
		SAME(in, 16, (unsigned) i);
	}
	close_bed(&bed);
}

void to_itself(void)
{
	static const size_t lens[] = { 16, 100000 };
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	for (i = 0; i < 2; i++) {
		fill(out, lens[i], 4);
		recv_at(&bed, 0, in, lens[i], ctx(1));
		send_to(&bed, 0, 0, out, lens[i], ctx(2));
		COMPLETION(&bed, bed.side[0].rx, ctx(1));
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
		SAME(in, lens[i], 4);
	}
	close_bed(&bed);
}

void both_ways_at_once(void)
{
	enum { LEN = 1 << 20 };
	struct bed bed;
	int round;

	open_bed(&bed, &usual);
	for (round = 0; round < 3; round++) {
		fill(out, LEN, 1);
		fill(out + LEN, LEN, 2);
		memset(in, 0, 2 * LEN);
		send_to(&bed, 0, 1, out, LEN, ctx(1));
		send_to(&bed, 1, 0, out + LEN, LEN, ctx(2));
		recv_at(&bed, 1, in, LEN, ctx(3));
		recv_at(&bed, 0, in + LEN, LEN, ctx(4));
		COMPLETION(&bed, bed.side[1].rx, ctx(3));
		COMPLETION(&bed, bed.side[0].rx, ctx(4));
		COMPLETION(&bed, bed.side[0].tx, ctx(1));
		COMPLETION(&bed, bed.side[1].tx, ctx(2));
		SAME(in, LEN, 1);
		SAME(in + LEN, LEN, 2);
	}
	close_bed(&bed);
}

void all_to_all(void)
{
	struct setup s = { .sides = 6 };
	struct bed bed;
	int i, j;

	open_bed(&bed, &s);
	for (i = 0; i < 6; i++)
		for (j = 0; j < 6; j++)
			if (i != j) {
				out[i * 16 + j] = (char) (i * 6 + j);
				send_to(&bed, i, j, &out[i * 16 + j], 1, ctx(i * 16 + j));
			}
	for (j = 0; j < 6; j++) {
		uint64_t seen = 0;

		for (i = 0; i < 5; i++) {
			char c = 99;

			recv_at(&bed, j, &c, 1, ctx(200));
			COMPLETION(&bed, bed.side[j].rx, ctx(200));
			CHECK(c % 6 == j && c / 6 < 6, "message %d at side %d", c, j);
			seen |= 1u << (c / 6);
		}
		CHECK(seen == (0x3fu & ~(1u << j)), "side %d heard of 0x%llx", j, (unsigned long long) seen);
	}
	close_bed(&bed);
}

/* ---- flags ---- */

/* When the fenced send is delivered, so is what was sent before. */
void fence(void)
{
	enum { LEN = 1 << 20 };
	struct setup s = { .more_caps = FI_FENCE };
	struct iovec iov = { out, 8 };
	struct bed bed;

	open_bed(&bed, &s);
	fill(out, LEN, 6);
	memset(in, 0, LEN);
	recv_at(&bed, 1, in, LEN, ctx(1));
	recv_at(&bed, 1, in + LEN, 8, ctx(2));
	send_to(&bed, 0, 1, out, LEN, ctx(3));
	TRY(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, TAG, 0, ctx(4),
			       FI_FENCE | FI_DELIVERY_COMPLETE | FI_COMPLETION));
	COMPLETION(&bed, bed.side[0].tx, ctx(3));
	COMPLETION(&bed, bed.side[0].tx, ctx(4));
	SAME(in, LEN, 6);
	SAME(in + LEN, 8, 6);
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[1].rx, ctx(2));
	close_bed(&bed);
}

void more_to_come(void)
{
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	need_order(&bed);
	for (i = 0; i < 10; i++) {
		struct iovec to = { in + 16 * i, 16 };

		POST(&bed, post_recvmsg(bed.side[1].ep, &to, 1, FI_ADDR_UNSPEC, TAG, 0, ctx(i), i < 9 ? FI_MORE : 0));
	}
	for (i = 0; i < 10; i++) {
		struct iovec from = { out + 16 * i, 16 };

		fill(out + 16 * i, 16, (unsigned) i);
		POST(&bed, post_sendmsg(bed.side[0].ep, &from, 1, bed.side[1].addr, TAG, 0, ctx(20 + i), i < 9 ? FI_MORE : 0));
	}
	for (i = 0; i < 10; i++) {
		COMPLETION(&bed, bed.side[1].rx, ctx(i));
		COMPLETION(&bed, bed.side[0].tx, ctx(20 + i));
		SAME(in + 16 * i, 16, (unsigned) i);
	}
	close_bed(&bed);
}

/* ---- receives from one source ---- */

void directed_receive(void)
{
	struct setup s = { .more_caps = FI_DIRECTED_RECV | FI_SOURCE, .sides = 3 };
	struct bed bed;

	open_bed(&bed, &s);
	fill(out, 16, 1);
	fill(out + 16, 16, 2);
	POST(&bed, post_recv(bed.side[0].ep, in, 16, bed.side[2].addr, TAG, 0, ctx(2))); /* posted first, but for side 2 */
	POST(&bed, post_recv(bed.side[0].ep, in + 16, 16, bed.side[1].addr, TAG, 0, ctx(1)));
	send_to(&bed, 1, 0, out, 16, ctx(11));
	COMPLETION(&bed, bed.side[0].rx, ctx(1));
	SAME(in + 16, 16, 1);
	send_to(&bed, 2, 0, out + 16, 16, ctx(12));
	COMPLETION(&bed, bed.side[0].rx, ctx(2));
	SAME(in, 16, 2);
	/* And any source may still be asked for. */
	recv_at(&bed, 0, in, 16, ctx(3));
	send_to(&bed, 2, 0, out, 16, ctx(13));
	COMPLETION(&bed, bed.side[0].rx, ctx(3));
	close_bed(&bed);
}

void directed_unexpected(void)
{
	struct setup s = { .more_caps = FI_DIRECTED_RECV | FI_SOURCE, .sides = 3 };
	struct bed bed;

	open_bed(&bed, &s);
	fill(out, 16, 1);
	fill(out + 16, 16, 2);
	send_to(&bed, 1, 0, out, 16, ctx(11));
	COMPLETION(&bed, bed.side[1].tx, ctx(11));
	settle(&bed);
	send_to(&bed, 2, 0, out + 16, 16, ctx(12));
	settle(&bed);
	POST(&bed, post_recv(bed.side[0].ep, in, 16, bed.side[2].addr, TAG, 0, ctx(2)));
	COMPLETION(&bed, bed.side[0].rx, ctx(2));
	SAME(in, 16, 2);
	recv_at(&bed, 0, in, 16, ctx(1));
	COMPLETION(&bed, bed.side[0].rx, ctx(1));
	SAME(in, 16, 1);
	close_bed(&bed);
}

void directed_exact_only(void)
{
#if HEADERS_2
	struct setup s = { .more_caps = FI_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV | FI_SOURCE };
	struct bed bed;

	open_bed(&bed, &s);
	FAILS(post_recv(bed.side[0].ep, in, 16, FI_ADDR_UNSPEC, TAG, 0, ctx(2)));
	close_bed(&bed);
#else
	SKIP("these headers do not know FI_EXACT_DIRECTED_RECV");
#endif
}

void not_before_enable(void)
{
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(post_recv(bed.side[0].ep, in, 16, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
	FAILS(post_send(bed.side[0].ep, out, 16, 0, TAG, ctx(1)));
	close_bed(&bed);
}

/* ---- multi-receive ---- */

static void open_multi(struct bed *bed, uint64_t rx_bind, size_t minimum)
{
#if HEADERS_2
	uint64_t cap = tagged ? FI_TAGGED_MULTI_RECV : 0;
#else
	uint64_t cap = 0;
#endif
	struct setup s = { .more_caps = FI_MULTI_RECV | cap, .rx_bind = rx_bind };
	int i;

	if (tagged && !cap)
		SKIP("these headers do not know FI_TAGGED_MULTI_RECV");
	open_sides(bed, &s);
	for (i = 0; i < 2; i++)
		OK(fi_setopt(&bed->side[i].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &minimum, sizeof(minimum)));
	enable_sides(bed, &s);
}

static void post_multi(struct bed *bed, char *buf, size_t len, void *context)
{
	struct iovec iov = { buf, len };

	POST(bed, post_recvmsg(bed->side[1].ep, &iov, 1, FI_ADDR_UNSPEC, TAG, 0, context, FI_MULTI_RECV));
}

/* Whether this entry, or one of its own that follows, releases the buffer. */
static bool releases(struct bed *bed, struct fi_cq_tagged_entry *e, void *context)
{
	struct fi_cq_tagged_entry last;

	if (e->flags & FI_MULTI_RECV)
		return true;
	settle(bed);
	if (fi_cq_read(bed->side[1].rx, &last, 1) != 1)
		return false;
	CHECK(last.op_context == context && (last.flags & FI_MULTI_RECV) && !last.len, "a stray completion, flags 0x%llx",
	      (unsigned long long) last.flags);
	return true;
}

void multi_receive_packs(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	char *end = in;
	int i;

	open_multi(&bed, 0, 64);
	post_multi(&bed, in, 4096, ctx(1));
	for (i = 0; i < 10; i++) {
		size_t len = (size_t) (i * 13 + 1);

		fill(out, len, (unsigned) i);
		send_to(&bed, 0, 1, out, len, ctx(2));
		e = ended(&bed, ctx(1), ctx(2), len);
		CHECK((char *) e.buf >= end && (char *) e.buf + len <= in + 4096, "message %d is placed at %ld", i,
		      (long) ((char *) e.buf - in));
		CHECK((char *) e.buf - end < 64, "a gap of %ld", (long) ((char *) e.buf - end));
		SAME(e.buf, len, (unsigned) i);
		CHECK(!(e.flags & FI_MULTI_RECV), "released with %ld bytes left", (long) (in + 4096 - end));
		end = (char *) e.buf + len;
	}
	close_bed(&bed);
}

void multi_receive_releases_at_the_minimum(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_multi(&bed, 0, 256);
	post_multi(&bed, in, 1024, ctx(1));
	for (i = 0; i < 3; i++) { /* 1024, 768, 512: not yet below */
		send_to(&bed, 0, 1, out, 256, ctx(2));
		e = ended(&bed, ctx(1), ctx(2), 256);
		CHECK(!(e.flags & FI_MULTI_RECV), "released with %d left", 1024 - 256 * (i + 1));
	}
	send_to(&bed, 0, 1, out, 8, ctx(2)); /* 248 left */
	e = ended(&bed, ctx(1), ctx(2), 8);
	CHECK(releases(&bed, &e, ctx(1)), "248 bytes are left, below the minimum of 256, but the buffer is not released");
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

void multi_receive_then_the_next_buffer(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i, first = 0, second = 0, released = 0;

	open_multi(&bed, 0, 100);
	need_order(&bed);
	post_multi(&bed, in, 500, ctx(1));
	post_multi(&bed, in + 1000, 500, ctx(2));
	for (i = 0; i < 8; i++) {
		fill(out, 100, (unsigned) i);
		send_to(&bed, 0, 1, out, 100, ctx(3));
		do {
			GIVES(1, next(&bed, bed.side[1].rx, &e));
			released += !!(e.flags & FI_MULTI_RECV);
		} while ((e.flags & FI_MULTI_RECV) && e.len == 0);
		COMPLETION(&bed, bed.side[0].tx, ctx(3));
		CHECK(e.len == 100, "%zu bytes", e.len);
		SAME(e.buf, 100, (unsigned) i);
		first += e.op_context == ctx(1);
		second += e.op_context == ctx(2);
	}
	CHECK(first >= 4 && second >= 3 && first + second == 8, "%d and %d", first, second);
	CHECK(released >= 1, "the first buffer is never released");
	close_bed(&bed);
}

void multi_receive_of_unexpected(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_multi(&bed, 0, 64);
	need_order(&bed);
	for (i = 0; i < 5; i++) {
		fill(out + 100 * i, 100, (unsigned) i);
		send_to(&bed, 0, 1, out + 100 * i, 100, ctx(2));
	}
	settle(&bed);
	post_multi(&bed, in, 4096, ctx(1));
	for (i = 0; i < 5; i++) {
		e = COMPLETION(&bed, bed.side[1].rx, ctx(1));
		CHECK(e.len == 100, "%zu bytes", e.len);
		SAME(e.buf, 100, (unsigned) i);
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	}
	close_bed(&bed);
}

/* Receives are not reported, but the end of the buffer always is. */
void multi_receive_says_so_without_completions(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_multi(&bed, FI_SELECTIVE_COMPLETION, 200);
	post_multi(&bed, in, 400, ctx(1));
	for (i = 0; i < 2; i++) {
		send_to(&bed, 0, 1, out, 100, ctx(2));
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
		NO_COMPLETION(&bed, bed.side[1].rx);
	}
	send_to(&bed, 0, 1, out, 100, ctx(2)); /* 100 left */
	e = COMPLETION(&bed, bed.side[1].rx, ctx(1));
	CHECK(e.flags & FI_MULTI_RECV, "flags 0x%llx", (unsigned long long) e.flags);
	close_bed(&bed);
}

/* ---- two processes ---- */

static void ping_pong_body(struct bed *bed, int me, int pipe)
{
	struct side *mine = &bed->side[0];
	struct fi_cq_tagged_entry e;
	unsigned random = 12345;
	int round;

	meet(bed, pipe);
	for (round = 0; round < 400; round++) {
		size_t len;

		random = random * 1103515245u + 12345u; /* the same in both */
		len = (random >> 8) % (round % 10 == 0 ? 200000 : 3000);
		if (round % 2 == me) {
			fill(out, len, (unsigned) round);
			POST(bed, post_send(mine->ep, out, len, bed->peer, TAG, ctx(2)));
			COMPLETION(bed, mine->tx, ctx(2));
		} else {
			POST(bed, post_recv(mine->ep, in, len, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
			e = COMPLETION(bed, mine->rx, ctx(1));
			CHECK(e.len == len, "round %d: %zu bytes, not %zu", round, e.len, len);
			SAME(in, len, (unsigned) round);
		}
	}
}

void ping_pong_between_processes(void)
{
	in_two(&usual, ping_pong_body);
}

/* The receiver posts and then calls nothing: the provider's own thread must do its part. */
static void auto_body(struct bed *bed, int me, int pipe)
{
	long until;
	char done;

	meet(bed, pipe);
	fill(out, 5000, 8);
	if (me == 0) {
		POST(bed, post_recv(bed->side[0].ep, in, 5000, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
		pipe_send(pipe, "p", 1);
		until = now_ms() + GIVE_UP_MS;
		while (((volatile char *) in)[4999] != out[4999] && now_ms() < until)
			sched_yield();
		SAME(in, 5000, 8);
		CHECK(COMPLETION(bed, bed->side[0].rx, ctx(1)).len == 5000, "the length");
	} else {
		pipe_recv(pipe, &done, 1);
		POST(bed, post_send(bed->side[0].ep, out, 5000, bed->peer, TAG, ctx(2)));
		COMPLETION(bed, bed->side[0].tx, ctx(2));
	}
}

void auto_progress(void)
{
	struct setup s = { .progress = FI_PROGRESS_AUTO };

	in_two(&s, auto_body);
}

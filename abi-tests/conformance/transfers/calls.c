/* The calls and their flags. */
#include "shared.h"

/* ---- the calls ---- */

static void send_and_receive(void)
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

static void gather(struct bed *bed, size_t total)
{
	size_t n = pieces(bed->info->tx_attr->iov_limit), i, at;
	struct iovec from[4];

	for (i = at = 0; i < n; i++) {
		from[i].iov_base = out + at;
		from[i].iov_len = i + 1 < n ? total / 7 * (i + 1) : total - at;
		at += from[i].iov_len;
	}
	POST(bed, post_sendv(bed->side[0].ep, from, n, bed->side[1].addr, TAG, ctx(2)));
}

static void scatter(struct bed *bed, size_t total)
{
	size_t n = pieces(bed->info->rx_attr->iov_limit), i, at;
	struct iovec to[4];

	for (i = at = 0; i < n; i++) {
		to[i].iov_base = in + at;
		to[i].iov_len = i + 1 < n ? total / 9 + i : total - at;
		at += to[i].iov_len;
	}
	POST(bed, post_recvv(bed->side[1].ep, to, n, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
}

/* Gathers and scatters in different, uneven pieces, small and large. */
static void vectors(void)
{
	static const size_t totals[] = { 40, 5000, 300000 };
	struct bed bed;
	unsigned t;

	open_bed(&bed, &usual);
	for (t = 0; t < 6; t++) {
		size_t total = at_most(&bed, totals[t / 2]);

		fill(out, total, t);
		memset(in, 0, total);
		if (receives_first((int) t))
			scatter(&bed, total);
		gather(&bed, total);
		if (!receives_first((int) t))
			scatter(&bed, total);
		ended(&bed, ctx(1), ctx(2), total);
		SAME(in, total, t);
	}
	close_bed(&bed);
}

static void message_structures(void)
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

static void too_many_pieces(void)
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

static void nothing_to_send(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, post_recv(bed.side[1].ep, NULL, 0, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, NULL, 0, bed.side[1].addr, TAG, ctx(2)));
	ended(&bed, ctx(1), ctx(2), 0);
	/* Unexpected, and into a buffer. */
	if (receives_first(0))
		recv_at(&bed, 1, in, 64, ctx(1));
	send_to(&bed, 0, 1, NULL, 0, ctx(2));
	settle(&bed);
	if (!receives_first(0))
		recv_at(&bed, 1, in, 64, ctx(1));
	ended(&bed, ctx(1), ctx(2), 0);
	close_bed(&bed);
}

/* For 0 bytes the vector may be ignored, and the count may be 0. */
static void nothing_by_message(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, post_recvmsg(bed.side[1].ep, NULL, 0, FI_ADDR_UNSPEC, TAG, 0, ctx(1), 0));
	POST(&bed, post_sendmsg(bed.side[0].ep, NULL, 0, bed.side[1].addr, TAG, 0, ctx(2), 0));
	ended(&bed, ctx(1), ctx(2), 0);
	close_bed(&bed);
}

/* ---- inject ---- */

static ssize_t inject(struct bed *bed, const void *buf, size_t len)
{
	return post_inject(bed->side[0].ep, buf, len, bed->side[1].addr, TAG);
}

static void receive_eight(struct bed *bed)
{
	int i;

	for (i = 0; i < 8; i++)
		recv_at(bed, 1, in + 16 * i, 16, ctx(i));
}

static void inject_frees_the_buffer(void)
{
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	if (receives_first(0))
		receive_eight(&bed);
	for (i = 0; i < 8; i++) {
		fill(out, 16, (unsigned) i);
		POST(&bed, inject(&bed, out, 16));
		memset(out, '#', 16);
	}
	if (!receives_first(0))
		receive_eight(&bed);
	for (i = 0; i < 8; i++) {
		COMPLETION(&bed, bed.side[1].rx, ctx(i));
		SAME(in + 16 * i, 16, (unsigned) i);
	}
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_bed(&bed);
}

static void inject_at_its_limit(void)
{
	struct bed bed;
	size_t len;

	open_bed(&bed, &usual);
	len = bed.info->tx_attr->inject_size;
	if (len > BIG)
		len = BIG;
	fill(out, len, 2);
	recv_at(&bed, 1, in, len, ctx(1));
	POST(&bed, inject(&bed, out, len));
	memset(out, '#', len);
	CHECK(COMPLETION(&bed, bed.side[1].rx, ctx(1)).len == len, "the length");
	SAME(in, len, 2);
	close_bed(&bed);
}

static void inject_beyond_its_limit(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	if (bed.info->tx_attr->inject_size >= BIG)
		SKIP("inject_size is %zu", bed.info->tx_attr->inject_size);
	FAILS(inject(&bed, out, bed.info->tx_attr->inject_size + 1));
	close_bed(&bed);
}

static void inject_flag_completes(void)
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

static void remote_cq_data(void)
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
	for (way = 0; way < 6; way++) { /* three calls, unexpected and expected */
		bool first = receives_first(way / 3);

		memset(in, 0, 32);
		if (first)
			recv_at(&bed, 1, in, 64, ctx(1));
		if (way % 3 == 0)
			POST(&bed, post_senddata(bed.side[0].ep, out, 32, data, bed.side[1].addr, TAG, ctx(2)));
		if (way % 3 == 1)
			POST(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, TAG, data, ctx(2), FI_REMOTE_CQ_DATA));
		if (way % 3 == 2)
			POST(&bed, post_injectdata(bed.side[0].ep, out, 32, data, bed.side[1].addr, TAG));
		if (!first) {
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

static void no_cq_data_unless_sent(void)
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

/* ---- flags ---- */

/* When the fenced send is delivered, so is what was sent before. */
static void fence(void)
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

static void more_to_come(void)
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

static void not_before_enable(void)
{
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(post_recv(bed.side[0].ep, in, 16, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
	FAILS(post_send(bed.side[0].ep, out, 16, 0, TAG, ctx(1)));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(send_and_receive), TEST(vectors), TEST(message_structures), TEST(too_many_pieces),
	TEST(nothing_to_send), TEST(nothing_by_message), TEST(inject_frees_the_buffer), TEST(inject_at_its_limit),
	TEST(inject_beyond_its_limit), TEST(inject_flag_completes), TEST(remote_cq_data),
	TEST(no_cq_data_unless_sent), TEST(fence), TEST(more_to_come), TEST(not_before_enable),
};

CASES(tests)

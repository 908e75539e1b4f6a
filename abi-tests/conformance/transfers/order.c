/* Who gets which message: order, sources, many at once. */
#include "shared.h"

/* ---- order ---- */

enum { IN_ORDER = 64, SLOT = 40000 };

static size_t mixed(int i)
{
	static const size_t lens[] = { 8, 20000, 0, 300, 40000, 4096, 1, 9000 };

	return lens[i % 8];
}

static void in_order(bool expected, bool mix)
{
	struct bed bed;
	int i;

	if (!expected)
		NOTHING_IS_LOST;
	open_bed(&bed, &usual);
	need_order(&bed);
	for (i = 0; expected && i < IN_ORDER; i++)
		recv_at(&bed, 1, in + i * SLOT, SLOT, ctx(i));
	for (i = 0; i < IN_ORDER; i++) {
		size_t len = mix ? at_most(&bed, mixed(i)) : 16;

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
		CHECK(e.len == (mix ? at_most(&bed, mixed((int) which)) : 16), "receive %ld got %zu bytes", which, e.len);
		SAME(in + which * SLOT, e.len, (unsigned) which);
		CHECK(mix || which == i, "receive %ld completes in place %d", which, i);
	}
	for (i = 0; i < IN_ORDER; i++) {
		struct fi_cq_tagged_entry e;

		GIVES(1, next(&bed, bed.side[0].tx, &e));
	}
	close_bed(&bed);
}

static void order_of_posted_receives(void) { in_order(true, false); }
static void order_of_unexpected_messages(void) { in_order(false, false); }
static void order_across_sizes(void) { in_order(true, true); }
static void order_across_sizes_unexpected(void) { in_order(false, true); }

/* Posts without a receive until the provider says it has enough; then everything arrives, in order. */
static void flood(void)
{
	enum { MANY = 20000 };
	struct bed bed;
	static uint64_t got;
	uint64_t *values = (uint64_t *) out;
	uint64_t sent = 0, ended_sends = 0, received = 0;
	struct fi_cq_tagged_entry e;
	long quiet;

	NOTHING_IS_LOST;
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

/* ---- peers ---- */

static void from_any_source(void)
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

static void to_itself(void)
{
	static const size_t lens[] = { 16, 100000 };
	struct bed bed;
	int i;

	BY_ADDRESS;
	open_bed(&bed, &usual);
	for (i = 0; i < 2; i++) {
		size_t len = at_most(&bed, lens[i]);

		fill(out, len, 4);
		recv_at(&bed, 0, in, len, ctx(1));
		send_to(&bed, 0, 0, out, len, ctx(2));
		COMPLETION(&bed, bed.side[0].rx, ctx(1));
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
		SAME(in, len, 4);
	}
	close_bed(&bed);
}

static void receive_both_ways(struct bed *bed, size_t len)
{
	recv_at(bed, 1, in, len, ctx(3));
	recv_at(bed, 0, in + len, len, ctx(4));
}

static void both_ways_at_once(void)
{
	struct bed bed;
	size_t len;
	int round;

	open_bed(&bed, &usual);
	len = at_most(&bed, 1 << 20);
	for (round = 0; round < 4; round++) {
		fill(out, len, 1);
		fill(out + len, len, 2);
		memset(in, 0, 2 * len);
		if (receives_first(round))
			receive_both_ways(&bed, len);
		send_to(&bed, 0, 1, out, len, ctx(1));
		send_to(&bed, 1, 0, out + len, len, ctx(2));
		if (!receives_first(round))
			receive_both_ways(&bed, len);
		COMPLETION(&bed, bed.side[1].rx, ctx(3));
		COMPLETION(&bed, bed.side[0].rx, ctx(4));
		COMPLETION(&bed, bed.side[0].tx, ctx(1));
		COMPLETION(&bed, bed.side[1].tx, ctx(2));
		SAME(in, len, 1);
		SAME(in + len, len, 2);
	}
	close_bed(&bed);
}

/* A byte from each of the others at each side. */
static void receive_all(struct bed *bed)
{
	int i, j;

	for (j = 0; j < 6; j++)
		for (i = 0; i < 5; i++)
			recv_at(bed, j, &in[j * 16 + i], 1, ctx(200 + i));
}

static void all_to_all(void)
{
	struct setup s = { .sides = 6 };
	struct bed bed;
	int i, j;

	open_bed(&bed, &s);
	if (receives_first(0))
		receive_all(&bed);
	for (i = 0; i < 6; i++)
		for (j = 0; j < 6; j++)
			if (i != j) {
				out[i * 16 + j] = (char) (i * 6 + j);
				send_to(&bed, i, j, &out[i * 16 + j], 1, ctx(i * 16 + j));
			}
	if (!receives_first(0))
		receive_all(&bed);
	for (j = 0; j < 6; j++) {
		uint64_t seen = 0;

		for (i = 0; i < 5; i++) {
			struct fi_cq_tagged_entry e;
			int c;

			GIVES(1, next(&bed, bed.side[j].rx, &e));
			c = in[j * 16 + ((struct fi_context2 *) e.op_context - ctx(200))];
			CHECK(c % 6 == j && c / 6 < 6, "message %d at side %d", c, j);
			seen |= 1u << (c / 6);
		}
		CHECK(seen == (0x3fu & ~(1u << j)), "side %d heard of 0x%llx", j, (unsigned long long) seen);
	}
	close_bed(&bed);
}

/* ---- receives from one source ---- */

static void directed_receive(void)
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

static void directed_unexpected(void)
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

static void directed_exact_only(void)
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

static const struct test tests[] = {
	TEST(order_of_posted_receives), TEST(order_of_unexpected_messages), TEST(order_across_sizes),
	TEST(order_across_sizes_unexpected), TEST(flood),
	TEST(from_any_source), TEST(to_itself), TEST(both_ways_at_once), TEST(all_to_all), TEST(directed_receive),
	TEST(directed_unexpected), TEST(directed_exact_only),
};

CASES(tests)

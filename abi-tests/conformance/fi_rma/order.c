/* The orders that the endpoint promises. */
#include "rma.h"

static bool ordered(struct bed *bed, uint64_t bits)
{
	return (bed->info->tx_attr->msg_order & bed->info->rx_attr->msg_order & bits) != 0;
}

#define WAW (FI_ORDER_WAW | FI_ORDER_RMA_WAW)
#define RAW (FI_ORDER_RAW | FI_ORDER_RMA_RAW)
#define WAR (FI_ORDER_WAR | FI_ORDER_RMA_WAR)

static size_t order_size(size_t most)
{
	return most && most < SIZE ? most : SIZE;
}

/* A long write and short ones into the middle of it: what was posted last stays. */
static void write_after_write(void)
{
	struct window w;
	struct bed bed;
	size_t len, i;
	int round;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, WAW), "no FI_ORDER_WAW");
	len = order_size(bed.info->ep_attr->max_order_waw_size);
	for (round = 0; round < 10; round++) {
		memset(here, round, len);
		memset(expected, 100 + round, 64);
		POST(&bed, fi_write(ep, here, len, desc, peer, w.remote.base, w.remote.key, ctx(1)));
		for (i = 0; i < 4; i++)
			POST(&bed, fi_write(ep, expected, 64, desc, peer, w.remote.base + len / 4 * i, w.remote.key, ctx(1)));
		drain(&bed, 5);
		POST(&bed, fi_read(ep, here, len, desc, peer, w.remote.base, w.remote.key, ctx(1)));
		drain(&bed, 1);
		UNTIL(&bed, there[len / 4 * 3] == 100 + round);
		for (i = 0; i < len; i++)
			CHECK(there[i] == (i % (len / 4) < 64 && i / (len / 4) < 4 ? 100 + round : round), "byte %zu is %d", i, there[i]);
	}
	close_window(&bed, &w);
}

static void read_after_write(void)
{
	struct window w;
	struct bed bed;
	size_t lens[] = { 8, 5000, 200000 }, len, i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, RAW), "no FI_ORDER_RAW");
	for (i = 0; i < 30; i++) {
		len = order_size(bed.info->ep_attr->max_order_raw_size);
		len = len < lens[i % 3] ? len : lens[i % 3];
		memset(there, 0, len);
		memset(expected, 0, len);
		fill(here, len, (unsigned) i);
		POST(&bed, fi_write(ep, here, len, desc, peer, w.remote.base, w.remote.key, ctx(1)));
		POST(&bed, fi_read(ep, expected, len, desc, peer, w.remote.base, w.remote.key, ctx(1)));
		drain(&bed, 2);
		SAME(expected, len, (unsigned) i);
	}
	close_window(&bed, &w);
}

static void write_after_read(void)
{
	struct window w;
	struct bed bed;
	size_t lens[] = { 8, 5000, 200000 }, len, i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, WAR), "no FI_ORDER_WAR");
	for (i = 0; i < 30; i++) {
		len = order_size(bed.info->ep_attr->max_order_war_size);
		len = len < lens[i % 3] ? len : lens[i % 3];
		fill(there, len, 1000 + (unsigned) i);
		memset(expected, 0, len);
		fill(here, len, (unsigned) i);
		POST(&bed, fi_read(ep, expected, len, desc, peer, w.remote.base, w.remote.key, ctx(1)));
		POST(&bed, fi_write(ep, here, len, desc, peer, w.remote.base, w.remote.key, ctx(1)));
		drain(&bed, 2);
		SAME(expected, len, 1000 + (unsigned) i);
		UNTIL(&bed, mismatch(there, len, (unsigned) i) < 0);
	}
	close_window(&bed, &w);
}

/* A message that was sent after a write tells that the write is done. */
static void send_after_write(void)
{
	struct window w;
	struct bed bed;
	static char note;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, FI_ORDER_SAW), "no FI_ORDER_SAW");
	EACH_SIZE(i) {
		POST(&bed, post_recv(bed.side[1].ep, &note, 1, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
		memset(there, 0, sizes[i]);
		fill(here, sizes[i], i);
		POST(&bed, fi_write(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		POST(&bed, post_send(ep, here, 1, peer, 1, ctx(2)));
		COMPLETION(&bed, bed.side[1].rx, ctx(3));
		SAME(there, sizes[i], i);
		drain(&bed, 2);
	}
	close_window(&bed, &w);
}

/* Whoever sees what was written after messages finds the last of them: its header, as its bytes may come later. The others
 * have receives, as a provider may stop where many have none. */
static void write_after_send_body(struct bed *bed, int me, int pipe)
{
	static const size_t lengths[] = { 8, 5000, 20000 };
	enum { MESSAGES = 100 };
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	struct iovec iov = { NULL, 0 };
	struct fi_cq_tagged_entry entry;
	struct remote remote;
	unsigned i, k;
	bool found;

	NEED(ordered(bed, FI_ORDER_WAS), "no FI_ORDER_WAS");
	NEED(tagged, "a message of no tag cannot be looked for");
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote, sizeof(remote));
	for (i = 0; i < 3 * 4; i++) {
		size_t len = at_most(bed, lengths[i % 3]);

		for (k = 0; me && k < MESSAGES - 1; k++)
			POST(bed, post_recv(bed->side[0].ep, here, len, FI_ADDR_UNSPEC, k, 0, ctx(4)));
		meet(bed, pipe);
		if (me == 0) {
			fill(here, SIZE, i);
			memset(expected, (int) i + 1, SIZE);
			for (k = 0; k < MESSAGES; k++)
				POST(bed, post_send(bed->side[0].ep, here, len, bed->peer, k, ctx(1)));
			POST(bed, fi_write(bed->side[0].ep, expected, few[i / 3], desc, bed->peer, remote.base, remote.key, ctx(2)));
			drain(bed, MESSAGES + 1);
		} else {
			UNTIL(bed, there[0] == (char) (i + 1));
			TRY(bed, post_recvmsg(bed->side[0].ep, &iov, 0, FI_ADDR_UNSPEC, MESSAGES - 1, 0, ctx(3), FI_PEEK));
			for (k = 0, found = false; !found; k += !found) {
				GIVES(1, next(bed, bed->side[0].rx, &entry));
				found = entry.op_context == ctx(3);
			}
			POST(bed, post_recv(bed->side[0].ep, here, len, FI_ADDR_UNSPEC, MESSAGES - 1, 0, ctx(4)));
			for (; k < MESSAGES; k++)
				COMPLETION(bed, bed->side[0].rx, ctx(4));
			SAME(here, len, i);
		}
		meet(bed, pipe);
	}
	conceal(&w);
}

static void write_after_send(void)
{
	in_two(&usual, write_after_send_body);
}

/* A fenced operation sees the results of all before it, whatever the order otherwise. */
static void fence(void)
{
	struct iovec iov = { expected, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
	struct setup s = usual;
	struct window w;
	struct bed bed;
	unsigned i;

	s.more_caps |= FI_FENCE;
	w = open_usual(&bed, &s, OPEN_TO_ALL);
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	EACH_SIZE(i) {
		memset(there, 0, sizes[i]);
		fill(here, sizes[i], i);
		iov.iov_len = part.len = sizes[i];
		POST(&bed, fi_write(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		TRY(&bed, fi_readmsg(ep, &msg, FI_FENCE));
		wrote(&bed, 1); /* which has ended before the read began */
		have_read(&bed, 3);
		SAME(expected, sizes[i], i);
	}
	close_window(&bed, &w);
}

static const struct test tests[] = {
	TEST(write_after_write), TEST(read_after_write), TEST(write_after_read), TEST(send_after_write),
	TEST(write_after_send), TEST(fence),
};

CASES(tests)

/*
 * What a card is spared, by fi_cq(3), fi_msg(3) and fi_rma(3): completions that nobody asked for (FI_SELECTIVE_COMPLETION,
 * inject), and a doorbell for each of many requests (FI_MORE). Seen from a program, nothing is missing.
 */
#include <rdma/fi_rma.h>
#include "connected.h"

static char ours[1 << 16], theirs[1 << 16];

struct opened {
	struct wired w;
	struct fid_mr *mr;
	uint64_t key;
	struct fid_ep *ep, *peer;
	struct fid_cq *cq;
};

static void open_both(struct opened *o, uint64_t tx_flags)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };

	memset(o, 0, sizeof(*o));
	open_exchange(&o->w, &s);
	o->w.tx_flags = tx_flags;
	join_sides(&o->w, 0, 1);
	OK(fi_mr_reg(o->w.bed.domain, theirs, sizeof(theirs), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &o->mr, NULL));
	o->key = fi_mr_key(o->mr);
	o->ep = o->w.bed.side[0].ep;
	o->peer = o->w.bed.side[1].ep;
	o->cq = o->w.bed.side[0].tx;
}

static void close_both(struct opened *o)
{
	OK(fi_close(&o->mr->fid));
	close_wires(&o->w);
}

static ssize_t write_msg(struct opened *o, size_t at, size_t len, uint64_t flags, void *context)
{
	struct iovec iov = { ours + at, len };
	struct fi_rma_iov remote = { (uint64_t) theirs + at, len, o->key };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1, .context = context };

	return fi_writemsg(o->ep, &msg, flags);
}

static ssize_t send_msg(struct opened *o, size_t at, size_t len, uint64_t flags, void *context)
{
	struct iovec iov = { ours + at, len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = context };

	return fi_sendmsg(o->ep, &msg, flags);
}

/* Many more than the queue has room for; those that are silent say nothing, and their places come back. */
static void silence_does_not_fill_the_queue(void)
{
	struct opened o;
	size_t size, i;

	open_both(&o, FI_SELECTIVE_COMPLETION);
	size = o.w.bed.info->tx_attr->size;
	fill(ours, sizeof(ours), 3);
	memset(theirs, 0, sizeof(theirs));
	for (i = 0; i < 3 * size; i++)
		POST(&o.w.bed, write_msg(&o, i % 64 * 1024, 1024, 0, ctx(1)));
	POST(&o.w.bed, write_msg(&o, 0, 8, FI_COMPLETION, ctx(2)));
	COMPLETION(&o.w.bed, o.cq, ctx(2));
	SAME(theirs, sizeof(theirs), 3);
	for (i = 0; i < 3 * size; i++)
		POST(&o.w.bed, fi_inject_write(o.ep, ours, 8, 0, (uint64_t) theirs, o.key));
	NO_COMPLETION(&o.w.bed, o.cq);
	close_both(&o);
}

/* Requests that say nothing are the last; the end of the connection is heard all the same. */
static void silence_does_not_hide_the_end(void)
{
	struct opened o;
	int i;

	for (i = 0; i < 10; i++) {
		open_both(&o, FI_SELECTIVE_COMPLETION);
		POST(&o.w.bed, write_msg(&o, 0, 8, FI_COMPLETION, ctx(1)));
		COMPLETION(&o.w.bed, o.cq, ctx(1));
		POST(&o.w.bed, write_msg(&o, 0, 8, 0, ctx(2)));
		POST(&o.w.bed, fi_inject_write(o.ep, ours, 8, 0, (uint64_t) theirs, o.key));
		/* Their success can be seen, and is told by nobody. */
		POST(&o.w.bed, fi_recv(o.ep, ours, 64, NULL, 0, ctx(3)));
		OK(fi_shutdown(o.peer, 0));
		HEAR(&o.w, FI_SHUTDOWN, NULL);
		HEAR(&o.w, FI_SHUTDOWN, NULL);
		close_both(&o);
	}
}

/* A silent request that fails is told by its own context, as the first failure. */
static void a_silent_failure_is_told(void)
{
	struct fi_cq_err_entry err;
	struct opened o;
	int i;

	open_both(&o, FI_SELECTIVE_COMPLETION);
	for (i = 0; i < 5; i++)
		POST(&o.w.bed, write_msg(&o, 0, 512, 0, ctx(i)));
	o.key += 0x10101;
	POST(&o.w.bed, write_msg(&o, 0, 512, 0, ctx(7)));
	err = ERROR_COMPLETION(&o.w.bed, o.cq);
	CHECK(err.op_context == ctx(7) && err.err > 0 && err.err != FI_ECANCELED, "errno %d of another", err.err);
	HEAR(&o.w, FI_SHUTDOWN, NULL);
	HEAR(&o.w, FI_SHUTDOWN, NULL);
	close_both(&o);
}

/* Lists of many lengths, of messages and writes in turns: all arrive, in order, and each ends once. */
static void lists_arrive_whole_and_in_order(void)
{
	static const int lengths[] = { 1, 2, 15, 16, 17, 40 };
	struct opened o;
	unsigned l;
	int i;

	open_both(&o, 0);
	for (l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
		int count = lengths[l];

		fill(ours, sizeof(ours), l);
		memset(theirs, 0, sizeof(theirs));
		for (i = 0; i < count; i++)
			POST(&o.w.bed, fi_recv(o.peer, ours + 32768 + 512 * i, 512, NULL, 0, ctx(100 + i)));
		for (i = 0; i < count; i++) {
			uint64_t more = i + 1 < count ? FI_MORE : 0;

			POST(&o.w.bed, write_msg(&o, (size_t) i * 512, 512, FI_MORE | FI_COMPLETION, ctx(2 * i)));
			POST(&o.w.bed, send_msg(&o, (size_t) i * 512, (size_t) i + 1, more | FI_COMPLETION, ctx(2 * i + 1)));
		}
		for (i = 0; i < 2 * count; i++)
			COMPLETION(&o.w.bed, o.cq, ctx(i));
		for (i = 0; i < count; i++) {
			struct fi_cq_tagged_entry entry = COMPLETION(&o.w.bed, o.w.bed.side[1].rx, ctx(100 + i));

			CHECK(entry.len == (size_t) i + 1, "%zu bytes", entry.len);
			CHECK(!memcmp(ours + 32768 + 512 * i, ours + 512 * i, entry.len), "other bytes");
		}
		SAME(theirs, (size_t) count * 512, l);
	}
	NO_COMPLETION(&o.w.bed, o.cq);
	close_both(&o);
}

/* A program that promises more and then only waits. */
static void a_broken_promise_delays_nothing(void)
{
	struct opened o;

	open_both(&o, 0);
	fill(ours, 64, 8);
	POST(&o.w.bed, write_msg(&o, 0, 64, FI_MORE | FI_COMPLETION, ctx(1)));
	COMPLETION(&o.w.bed, o.cq, ctx(1));
	SAME(theirs, 64, 8);
	close_both(&o);
}

static const struct test tests[] = {
	TEST(silence_does_not_fill_the_queue), TEST(silence_does_not_hide_the_end), TEST(a_silent_failure_is_told),
	TEST(lists_arrive_whole_and_in_order), TEST(a_broken_promise_delays_nothing),
};

CASES(tests)

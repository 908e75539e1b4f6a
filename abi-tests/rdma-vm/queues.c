/*
 * fi_cq(3) and fi_cntr(3) on connected endpoints of a card: one queue for many connections, how it wakes who sleeps, one
 * that is short, and counters, with a queue beside them or without.
 */
#include <poll.h>
#include <rdma/fi_rma.h>
#include "connected.h"

#define PAIRS 3

static char ours[1 << 16];

struct opened {
	struct wired w;
	struct fid_mr *mr;
	uint64_t key;
	struct fid_cq *cq; /* of all that answer */
};

/* Sides 0, 2, 4 ask, sides 1, 3, 5 answer; those share one queue for all. */
static void open_pairs(struct opened *o, const struct setup *shared)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };
	int i;

	memset(o, 0, sizeof(*o));
	open_exchange(&o->w, &s);
	OK(open_cq(&o->w.bed, shared, &o->cq, NULL));
	for (i = 0; i < PAIRS; i++) {
		o->w.bed.side[2 * i + 1].tx = o->w.bed.side[2 * i + 1].rx = o->cq;
		join_sides(&o->w, 2 * i, 2 * i + 1);
	}
	OK(fi_mr_reg(o->w.bed.domain, ours, sizeof(ours), FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		     0, 0, 0, &o->mr, NULL));
	o->key = fi_mr_key(o->mr);
}

static void close_pairs(struct opened *o)
{
	int i;

	for (i = PAIRS - 1; i >= 0; i--) {
		struct side *side = &o->w.bed.side[2 * i + 1];

		if (i > 0) { /* the last to go closes the queue */
			OK(fi_close(&side->ep->fid));
			side->ep = NULL;
			side->tx = NULL;
		}
		side->rx = NULL;
	}
	OK(fi_close(&o->mr->fid));
	close_wires(&o->w);
}

/* Whoever sends, a sleeper on the one queue is woken, and finds it there: once for each, and none is lost. */
static void wake_by(enum fi_wait_obj object)
{
	struct setup waiting = { .wait_obj = object };
	struct fi_cq_tagged_entry entry;
	struct opened o;
	struct fid *fids[1];
	int fd = -1, i;

	open_pairs(&o, &waiting);
	fids[0] = &o.cq->fid;
	if (object == FI_WAIT_FD)
		OK(fi_control(&o.cq->fid, FI_GETWAIT, &fd));
	for (i = 0; i < 10 * PAIRS; i++) {
		struct side *from = &o.w.bed.side[2 * (i % PAIRS)];
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		long until = now_ms() + GIVE_UP_MS;
		ssize_t ret;

		POST(&o.w.bed, fi_recv(o.w.bed.side[2 * (i % PAIRS) + 1].ep, ours, 64, NULL, 0, ctx(i)));
		POST(&o.w.bed, fi_send(from->ep, ours + 100, 32, NULL, 0, ctx(100)));
		if (object == FI_WAIT_FD)
			while ((ret = fi_cq_read(o.cq, &entry, 1)) == -FI_EAGAIN && now_ms() < until) {
				if (fi_trywait(o.w.bed.fabric, fids, 1) == 0)
					CHECK(poll(&wait, 1, GIVE_UP_MS) == 1, "nobody woke it");
			}
		else
			while ((ret = fi_cq_sread(o.cq, &entry, 1, NULL, GIVE_UP_MS)) == -FI_EAGAIN && now_ms() < until)
				;
		CHECK(ret == 1 && entry.op_context == ctx(i), "%zd", ret);
		COMPLETION(&o.w.bed, from->tx, ctx(100));
	}
	CHECK(fi_cq_read(o.cq, &entry, 1) == -FI_EAGAIN, "one too many");
	close_pairs(&o);
}

static void one_descriptor_wakes_for_many(void)
{
	wake_by(FI_WAIT_FD);
}

static void one_sleeper_reads_for_many(void)
{
	wake_by(FI_WAIT_UNSPEC);
}

/* A queue of two entries for many operations: each completion is read once all the same. */
static void a_short_queue_loses_nothing(void)
{
	enum { EACH = 40 };
	struct setup few = { .cq_size = 2 };
	struct opened o;
	int seen[PAIRS * EACH] = { 0 }, count = 0, i, side;
	long until;

	open_pairs(&o, &few);
	for (i = 0; i < EACH; i++)
		for (side = 0; side < PAIRS; side++)
			OK(fi_write(o.w.bed.side[2 * side + 1].ep, ours, 8, NULL, 0, (uint64_t) ours + 4096, o.key, ctx(side * EACH + i)));
	for (until = now_ms() + GIVE_UP_MS; count < PAIRS * EACH && now_ms() < until;) {
		struct fi_cq_tagged_entry entries[8];
		ssize_t ret = fi_cq_read(o.cq, entries, 8);

		CHECK(ret == -FI_EAGAIN || ret > 0, "%zd", ret);
		for (i = 0; i < ret; i++, count++) {
			int which;

			for (which = 0; which < PAIRS * EACH && entries[i].op_context != ctx(which); which++)
				;
			CHECK(which < PAIRS * EACH && !seen[which]++, "%d twice", which);
		}
	}
	CHECK(count == PAIRS * EACH, "%d", count);
	close_pairs(&o);
}

static struct fid_cntr *sent, *got, *written;

static void count(struct wired *w, struct fid_ep *ep, int side)
{
	(void) w;
	if (side == 0) {
		OK(fi_ep_bind(ep, &sent->fid, FI_SEND));
		OK(fi_ep_bind(ep, &written->fid, FI_WRITE));
	} else {
		OK(fi_ep_bind(ep, &got->fid, FI_RECV));
	}
}

/* Counters count what goes to no queue, and wake who waits for them. */
static void counters_count_what_is_silent(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct setup s = { .caps = FI_MSG | FI_RMA };
	struct opened o;
	struct fid_ep *ep, *peer;
	int i;

	memset(&o, 0, sizeof(o));
	open_exchange(&o.w, &s);
	OK(fi_cntr_open(o.w.bed.domain, &attr, &sent, NULL));
	OK(fi_cntr_open(o.w.bed.domain, &attr, &got, NULL));
	OK(fi_cntr_open(o.w.bed.domain, &attr, &written, NULL));
	o.w.bind = count;
	o.w.tx_flags = FI_SELECTIVE_COMPLETION;
	join_sides(&o.w, 0, 1);
	OK(fi_mr_reg(o.w.bed.domain, ours, sizeof(ours), FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE, 0, 0, 0, &o.mr, NULL));
	o.key = fi_mr_key(o.mr);
	ep = o.w.bed.side[0].ep;
	peer = o.w.bed.side[1].ep;
	for (i = 0; i < 50; i++)
		POST(&o.w.bed, fi_recv(peer, ours + 64 * i, 64, NULL, 0, ctx(i)));
	for (i = 0; i < 25; i++) {
		POST(&o.w.bed, fi_send(ep, ours + 4096, 64, NULL, 0, ctx(100 + i)));
		POST(&o.w.bed, fi_inject(ep, ours + 4096, 8, 0));
		POST(&o.w.bed, fi_inject_write(ep, ours + 4096, 8, 0, (uint64_t) ours + 8192, o.key));
	}
	OK(fi_cntr_wait(sent, 50, GIVE_UP_MS));
	OK(fi_cntr_wait(got, 50, GIVE_UP_MS));
	OK(fi_cntr_wait(written, 25, GIVE_UP_MS));
	CHECK(fi_cntr_read(sent) == 50 && fi_cntr_read(got) == 50 && fi_cntr_read(written) == 25, "one too many");
	GIVES(-FI_ETIMEDOUT, fi_cntr_wait(sent, 51, 10));
	/* A failed operation counts as an error, and ends the wait. */
	POST(&o.w.bed, fi_write(ep, ours, 512, NULL, 0, (uint64_t) ours, o.key + 0x10101, ctx(200)));
	GIVES(-FI_EAVAIL, fi_cntr_wait(written, 26, GIVE_UP_MS));
	CHECK(fi_cntr_readerr(written) == 1 && fi_cntr_read(written) == 25, "%ld errors", (long) fi_cntr_readerr(written));
	close_side(&o.w, 0);
	close_side(&o.w, 1);
	OK(fi_close(&sent->fid));
	OK(fi_close(&got->fid));
	OK(fi_close(&written->fid));
	OK(fi_close(&o.mr->fid));
	close_wires(&o.w);
}

static const struct test tests[] = {
	TEST(one_descriptor_wakes_for_many), TEST(one_sleeper_reads_for_many), TEST(a_short_queue_loses_nothing),
	TEST(counters_count_what_is_silent),
};

CASES(tests)

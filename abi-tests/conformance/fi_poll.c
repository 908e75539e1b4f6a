/* fi_poll(3): poll sets, wait sets and fi_trywait. */
#include <poll.h>
#include <pthread.h>
#include "fabric.h"

static const struct setup usual;
static char in[64], out[64];

static struct fid_poll *open_poll(struct bed *bed)
{
	struct fi_poll_attr attr = { 0 };
	struct fid_poll *set;
	int ret = fi_poll_open(bed->domain, &attr, &set);

	NEED(!lacking(ret), "fi_poll_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_poll_open: %s", fi_strerror(-ret));
	CHECK(set->fid.fclass == FI_CLASS_POLL, "class %zu", set->fid.fclass);
	return set;
}

/* A queue with a context of its own, and a poll set with it. */
struct polled {
	struct bed bed;
	struct fid_poll *set;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
};

static void open_polled(struct polled *p)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_ep *ep;

	open_sides(&p->bed, &usual);
	p->set = open_poll(&p->bed);
	/* Side 1 gets a receive queue that has a context. */
	OK(fi_close(&p->bed.side[1].ep->fid));
	OK(fi_close(&p->bed.side[1].rx->fid));
	OK(open_cq(&p->bed, &usual, &p->cq, ctx(100)));
	p->bed.side[1].rx = p->cq;
	OK(fi_cntr_open(p->bed.domain, &attr, &p->cntr, ctx(200)));
	OK(fi_endpoint(p->bed.domain, p->bed.info, &ep, NULL));
	p->bed.side[1].ep = ep;
	OK(fi_ep_bind(ep, &p->bed.av->fid, 0));
	OK(fi_ep_bind(ep, &p->bed.side[1].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &p->cq->fid, FI_RECV));
	OK(fi_ep_bind(ep, &p->cntr->fid, FI_RECV));
	enable_sides(&p->bed, &usual);
}

static void close_polled(struct polled *p)
{
	OK(fi_close(&p->set->fid));
	OK(fi_close(&p->bed.side[1].ep->fid));
	p->bed.side[1].ep = NULL;
	OK(fi_close(&p->cntr->fid));
	close_bed(&p->bed);
}

static void post_one(struct polled *p, int rx)
{
	POST(&p->bed, fi_trecv(p->bed.side[1].ep, in, 8, desc, FI_ADDR_UNSPEC, 1, 0, ctx(rx)));
	POST(&p->bed, fi_tsend(p->bed.side[0].ep, out, 8, desc, p->bed.side[1].addr, 1, ctx(99)));
}

/* The contexts that fi_poll names in the end. */
static int poll_until(struct polled *p, void **contexts, int count)
{
	long until = now_ms() + GIVE_UP_MS;
	int ret;

	while ((ret = fi_poll(p->set, contexts, count)) == 0 && now_ms() < until)
		fi_cq_read(p->bed.side[0].tx, NULL, 0);
	return ret;
}

static void flags_are_reserved(void)
{
	struct fi_poll_attr attr = { .flags = 1 };
	struct fid_poll *set;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	ret = fi_poll_open(bed.domain, &attr, &set);
	NEED(!lacking(ret), "fi_poll_open: %s", fi_strerror(-ret));
	CHECK(ret < 0, "fi_poll_open with flags: %d", ret);
	close_bed(&bed);
}

static void an_empty_set(void)
{
	struct fid_poll *set;
	struct bed bed;
	void *contexts[4];

	open_domain(&bed, &usual);
	set = open_poll(&bed);
	GIVES(0, fi_poll(set, contexts, 4));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void names_a_queue_that_is_not_empty(void)
{
	struct polled p;
	void *contexts[4] = { 0 };

	open_polled(&p);
	OK(fi_poll_add(p.set, &p.cq->fid, 0));
	GIVES(0, fi_poll(p.set, contexts, 4));
	post_one(&p, 1);
	GIVES(1, poll_until(&p, contexts, 4)); /* it makes the progress itself */
	CHECK(contexts[0] == ctx(100), "another context");
	GIVES(1, fi_poll(p.set, contexts, 4)); /* still there */
	COMPLETION(&p.bed, p.cq, ctx(1));
	GIVES(0, fi_poll(p.set, contexts, 4));
	OK(fi_poll_del(p.set, &p.cq->fid, 0));
	close_polled(&p);
}

static void names_a_counter_that_changed(void)
{
	struct polled p;
	void *contexts[4] = { 0 };

	open_polled(&p);
	OK(fi_poll_add(p.set, &p.cntr->fid, 0));
	GIVES(0, fi_poll(p.set, contexts, 4));
	post_one(&p, 1);
	GIVES(1, poll_until(&p, contexts, 4));
	CHECK(contexts[0] == ctx(200), "another context");
	GIVES(0, fi_poll(p.set, contexts, 4)); /* since the last fi_poll nothing has changed */
	COMPLETION(&p.bed, p.cq, ctx(1));
	OK(fi_cntr_adderr(p.cntr, 1));
	GIVES(1, poll_until(&p, contexts, 4)); /* the error value counts as well */
	OK(fi_poll_del(p.set, &p.cntr->fid, 0));
	close_polled(&p);
}

static void count_limits(void)
{
	struct polled p;
	void *contexts[4] = { 0 };

	open_polled(&p);
	OK(fi_poll_add(p.set, &p.cntr->fid, 0));
	OK(fi_poll_add(p.set, &p.cq->fid, 0));
	post_one(&p, 1);
	COMPLETION(&p.bed, p.bed.side[0].tx, ctx(99));
	settle(&p.bed);
	contexts[1] = ctx(5);
	GIVES(1, poll_until(&p, contexts, 1));
	CHECK(contexts[1] == ctx(5), "wrote more contexts than fit");
	OK(fi_poll_del(p.set, &p.cntr->fid, 0));
	OK(fi_poll_del(p.set, &p.cq->fid, 0));
	close_polled(&p);
}

static void what_is_removed_is_not_named(void)
{
	struct polled p;
	void *contexts[4] = { 0 };

	open_polled(&p);
	OK(fi_poll_add(p.set, &p.cq->fid, 0));
	post_one(&p, 1);
	GIVES(1, poll_until(&p, contexts, 4));
	OK(fi_poll_del(p.set, &p.cq->fid, 0));
	GIVES(0, fi_poll(p.set, contexts, 4));
	close_polled(&p);
}

static void closing_a_set_with_members(void)
{
	struct fid_poll *set;
	struct fid_cq *cq;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	set = open_poll(&bed);
	OK(open_cq(&bed, &usual, &cq, NULL));
	OK(fi_poll_add(set, &cq->fid, 0));
	/* -FI_EBUSY by the page; programs rely on the C library's 0. Neither harms the queue. */
	ret = fi_close(&set->fid);
	CHECK(ret == 0 || ret == -FI_EBUSY, "fi_close: %s", fi_strerror(-ret));
	if (ret) {
		OK(fi_poll_del(set, &cq->fid, 0));
		OK(fi_close(&set->fid));
	}
	OK(fi_close(&cq->fid));
	close_bed(&bed);
}

/* ---- wait sets ---- */

static struct fid_wait *open_wait(struct bed *bed, enum fi_wait_obj kind)
{
	struct fi_wait_attr attr = { .wait_obj = kind };
	struct fid_wait *set;
	int ret = fi_wait_open(bed->fabric, &attr, &set);

	NEED(!lacking(ret), "a wait set with object %d: %s", kind, fi_strerror(-ret));
	CHECK(ret == 0, "a wait set with object %d: %s", kind, fi_strerror(-ret));
	CHECK(set->fid.fclass == FI_CLASS_WAIT, "class %zu", set->fid.fclass);
	return set;
}

static void wait_flags_are_reserved(void)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = 1 };
	struct fid_wait *set;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	ret = fi_wait_open(bed.fabric, &attr, &set);
	NEED(!lacking(ret), "fi_wait_open: %s", fi_strerror(-ret));
	CHECK(ret < 0, "fi_wait_open with flags: %d", ret);
	close_bed(&bed);
}

/* A wait set with an event queue in it, which an application can signal. */
static void waits(enum fi_wait_obj kind)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_SET, .flags = FI_WRITE };
	struct fi_eq_entry entry = { 0 };
	struct fid_wait *set;
	struct fid_eq *eq;
	struct bed bed;
	uint32_t event;
	long before;
	int ret;

	open_domain(&bed, &usual);
	set = open_wait(&bed, kind);
	attr.wait_set = set;
	ret = fi_eq_open(bed.fabric, &attr, &eq, NULL);
	NEED(!lacking(ret), "an event queue in a wait set: %s", fi_strerror(-ret));
	CHECK(ret == 0, "an event queue in a wait set: %s", fi_strerror(-ret));
	before = now_ms();
	ret = fi_wait(set, 30);
	CHECK(ret == -FI_ETIMEDOUT, "fi_wait with nothing: %d (%s)", ret, fi_strerror(-ret));
	CHECK(now_ms() - before >= 29, "waited %ld ms of 30", now_ms() - before);
	GIVES(sizeof(entry), fi_eq_write(eq, 1001, &entry, sizeof(entry), 0));
	OK(fi_wait(set, GIVE_UP_MS));
	GIVES(sizeof(entry), fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	OK(fi_close(&eq->fid));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void wait_unspec(void) { waits(FI_WAIT_UNSPEC); }
static void wait_fd(void) { waits(FI_WAIT_FD); }
static void wait_mutex_cond(void) { waits(FI_WAIT_MUTEX_COND); }
static void wait_yield(void) { waits(FI_WAIT_YIELD); }

static void wait_set_is_held(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_SET };
	struct fid_wait *set;
	struct fid_eq *eq;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	set = open_wait(&bed, FI_WAIT_UNSPEC);
	attr.wait_set = set;
	ret = fi_eq_open(bed.fabric, &attr, &eq, NULL);
	NEED(!lacking(ret), "an event queue in a wait set: %s", fi_strerror(-ret));
	OK(ret);
	GIVES(-FI_EBUSY, fi_close(&set->fid));
	OK(fi_close(&eq->fid));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void wait_set_kind(void)
{
	enum fi_wait_obj kind = FI_WAIT_NONE;
	struct fid_wait *set;
	struct bed bed;
	int ret, fd = -1;

	open_domain(&bed, &usual);
	set = open_wait(&bed, FI_WAIT_FD);
	ret = fi_control(&set->fid, FI_GETWAITOBJ, &kind);
	NEED(!lacking(ret), "FI_GETWAITOBJ: %s", fi_strerror(-ret));
	CHECK(ret == 0 && kind == FI_WAIT_FD, "FI_GETWAITOBJ: %d, kind %d", ret, kind);
	ret = fi_control(&set->fid, FI_GETWAIT, &fd);
	CHECK(ret == 0 && fd >= 0, "FI_GETWAIT: %d, descriptor %d", ret, fd);
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

/* One set for a queue of each endpoint: whichever gets something ends the wait. */
static void wait_set_over_queues(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };
	struct fi_cq_tagged_entry e;
	struct fid_wait *set;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &usual);
	set = open_wait(&bed, FI_WAIT_UNSPEC);
	attr.wait_set = set;
	for (i = 0; i < 2; i++) {
		struct side *side = &bed.side[i];

		OK(fi_close(&side->ep->fid));
		OK(fi_close(&side->rx->fid));
		ret = fi_cq_open(bed.domain, &attr, &side->rx, NULL);
		NEED(!lacking(ret), "a queue in a wait set: %s", fi_strerror(-ret));
		OK(ret);
		OK(fi_endpoint(bed.domain, bed.info, &side->ep, NULL));
		OK(fi_ep_bind(side->ep, &bed.av->fid, 0));
		OK(fi_ep_bind(side->ep, &side->tx->fid, FI_TRANSMIT));
		OK(fi_ep_bind(side->ep, &side->rx->fid, FI_RECV));
	}
	enable_sides(&bed, &usual);
	for (i = 0; i < 4; i++) {
		int from = i & 1, to = !from;
		long until = now_ms() + GIVE_UP_MS;
		ssize_t got = -FI_EAGAIN;

		POST(&bed, fi_trecv(bed.side[to].ep, in, 8, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&bed, fi_tsend(bed.side[from].ep, out, 8, desc, bed.side[to].addr, 1, ctx(2)));
		COMPLETION(&bed, bed.side[from].tx, ctx(2));
		while (got == -FI_EAGAIN && now_ms() < until) {
			ret = fi_wait(set, GIVE_UP_MS);
			CHECK(ret == 0, "fi_wait: %s", fi_strerror(-ret));
			got = fi_cq_read(bed.side[to].rx, &e, 1);
		}
		CHECK(got == 1 && e.op_context == ctx(1), "%zd", got);
	}
	for (i = 0; i < 2; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		OK(fi_close(&bed.side[i].rx->fid));
		bed.side[i].ep = NULL;
		bed.side[i].rx = NULL;
	}
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

/* ---- fi_trywait ---- */

/* Several objects at once: safe only if nothing is queued on any of them. */
static void trywait_over_many(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };
	struct fid *fids[4];
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	int ret, i;

	open_bed(&bed, &s);
	for (i = 0; i < 2; i++) {
		fids[2 * i] = &bed.side[i].rx->fid;
		fids[2 * i + 1] = &bed.side[i].tx->fid;
	}
	while ((ret = fi_trywait(bed.fabric, fids, 4)) == -FI_EAGAIN && now_ms() < until)
		progress(&bed);
	CHECK(ret == 0, "fi_trywait with nothing queued: %s", fi_strerror(-ret));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, desc, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	settle(&bed);
	GIVES(-FI_EAGAIN, fi_trywait(bed.fabric, fids, 4));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	while ((ret = fi_trywait(bed.fabric, fids, 4)) == -FI_EAGAIN && now_ms() < until)
		progress(&bed);
	CHECK(ret == 0, "fi_trywait after reading: %s", fi_strerror(-ret));
	close_bed(&bed);
}

static void trywait_of_nothing(void)
{
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_trywait(bed.fabric, NULL, 0));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(flags_are_reserved), TEST(an_empty_set), TEST(names_a_queue_that_is_not_empty), TEST(names_a_counter_that_changed),
	TEST(count_limits), TEST(what_is_removed_is_not_named), TEST(closing_a_set_with_members), TEST(wait_flags_are_reserved),
	TEST(wait_unspec), TEST(wait_fd), TEST(wait_mutex_cond), TEST(wait_yield), TEST(wait_set_is_held), TEST(wait_set_kind),
	TEST(wait_set_over_queues), TEST(trywait_over_many), TEST(trywait_of_nothing),
};

CASES(tests)

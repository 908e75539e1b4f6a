/* Counters of both ends. */
#include "rma.h"

static struct fid_cntr *counter(struct bed *bed, int side, uint64_t flags, enum fi_cntr_events events)
{
	struct fi_cntr_attr attr = { .events = events };
	struct fid_cntr *cntr;

	OK(fi_cntr_open(bed->domain, &attr, &cntr, NULL));
	OK(fi_ep_bind(bed->side[side].ep, &cntr->fid, flags));
	return cntr;
}

struct counted {
	struct fid_cntr *read, *write, *remote_read, *remote_write, *send, *recv;
};

static enum fi_cntr_events counted_events;
static struct counted *into;

static void bind_counters(struct bed *bed, int side)
{
	if (side == 0) {
		into->read = counter(bed, 0, FI_READ, counted_events);
		into->write = counter(bed, 0, FI_WRITE, counted_events);
		into->send = counter(bed, 0, FI_SEND, counted_events);
	} else {
		into->remote_read = counter(bed, 1, FI_REMOTE_READ, counted_events);
		into->remote_write = counter(bed, 1, FI_REMOTE_WRITE, counted_events);
		into->recv = counter(bed, 1, FI_RECV, counted_events);
	}
}

static struct window open_counted(struct bed *bed, const struct setup *s, struct counted *c, enum fi_cntr_events events)
{
	struct setup counted = *s;

	counted_events = events;
	into = c;
	counted.bind = bind_counters;
	open_bed(bed, &counted);
	ep = bed->side[0].ep;
	peer = bed->side[1].addr;
	return expose(bed, 1, there, SIZE, OPEN_TO_ALL);
}

static void close_counted(struct bed *bed, struct window *w, struct counted *c)
{
	struct fid_cntr *all[] = { c->read, c->write, c->remote_read, c->remote_write, c->send, c->recv };
	int i;

	conceal(w);
	close_eps(bed);
	for (i = 0; i < 6; i++)
		OK(fi_close(&all[i]->fid));
	close_bed(bed);
}

static void counts(struct bed *bed, struct counted *c, uint64_t reads, uint64_t writes, int line)
{
	long until = now_ms() + GIVE_UP_MS;
	uint64_t found[6] = { 0 };

	while (now_ms() < until) {
		found[0] = fi_cntr_read(c->read);
		found[1] = fi_cntr_read(c->write);
		found[2] = fi_cntr_read(c->remote_read);
		found[3] = fi_cntr_read(c->remote_write);
		if (found[0] >= reads && found[1] >= writes && found[2] >= reads && found[3] >= writes)
			break;
		progress(bed);
	}
	settle(bed);
	found[2] = fi_cntr_read(c->remote_read);
	found[3] = fi_cntr_read(c->remote_write);
	CHECK(found[0] == reads && found[1] == writes, "line %d: %llu reads, %llu writes are counted", line,
	      (unsigned long long) found[0], (unsigned long long) found[1]);
	CHECK(found[2] == reads && found[3] == writes, "line %d: %llu reads, %llu writes are counted at the target", line,
	      (unsigned long long) found[2], (unsigned long long) found[3]);
	CHECK(fi_cntr_read(c->send) == 0 && fi_cntr_read(c->recv) == 0, "line %d: counted as messages", line);
}

static const struct setup events = { .more_caps = FI_RMA | FI_RMA_EVENT };

static void counters(void)
{
	struct counted c;
	struct window w;
	struct bed bed;
	unsigned i;
	uint64_t reads = 0, writes = 0;

	w = open_counted(&bed, &events, &c, FI_CNTR_EVENTS_COMP);
	EACH_SIZE(i) {
		POST(&bed, fi_write(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		wrote(&bed, 1);
		counts(&bed, &c, reads, ++writes, __LINE__);
		POST(&bed, fi_read(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		have_read(&bed, 1);
		counts(&bed, &c, ++reads, writes, __LINE__);
	}
	POST(&bed, fi_inject_write(ep, here, 8, peer, w.remote.base, w.remote.key));
	counts(&bed, &c, reads, ++writes, __LINE__);
	close_counted(&bed, &w, &c);
}

#if HEADERS_2
static void counters_of_bytes(void)
{
	struct counted c;
	struct window w;
	struct bed bed;

	w = open_counted(&bed, &events, &c, FI_CNTR_EVENTS_BYTES);
	POST(&bed, fi_write(ep, here, 1000, desc, peer, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	POST(&bed, fi_write(ep, here, 500000, desc, peer, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	POST(&bed, fi_read(ep, here, 30, desc, peer, w.remote.base, w.remote.key, ctx(1)));
	have_read(&bed, 1);
	POST(&bed, fi_read(ep, here, 70000, desc, peer, w.remote.base, w.remote.key, ctx(1)));
	have_read(&bed, 1);
	counts(&bed, &c, 70030, 501000, __LINE__);
	close_counted(&bed, &w, &c);
}
#endif

static void errors_are_counted(void)
{
	struct counted c;
	struct window w;
	struct bed bed;

	w = open_counted(&bed, &events, &c, FI_CNTR_EVENTS_COMP);
	POST(&bed, fi_write(ep, here, 100, desc, peer, w.remote.base, w.remote.key + 1, ctx(1)));
	ERROR_COMPLETION(&bed, bed.side[0].tx);
	POST(&bed, fi_read(ep, here, 100, desc, peer, w.remote.base, w.remote.key + 1, ctx(1)));
	ERROR_COMPLETION(&bed, bed.side[0].tx);
	counts(&bed, &c, 0, 0, __LINE__);
	CHECK(fi_cntr_readerr(c.write) == 1 && fi_cntr_readerr(c.read) == 1, "%llu and %llu errors",
	      (unsigned long long) fi_cntr_readerr(c.write), (unsigned long long) fi_cntr_readerr(c.read));
	close_counted(&bed, &w, &c);
}

/* A counter of a region counts what is written into it, and waiting for it is enough for that to happen. */
static void counter_of_a_region(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	struct window w;
	struct bed bed;
	int ret, i;

	w = open_usual(&bed, &events, OPEN_TO_ALL);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	if (bed.info->domain_attr->mr_mode & FI_MR_ENDPOINT)
		SKIP("bound before it is enabled");
	ret = fi_mr_bind(w.mr, &cntr->fid, FI_REMOTE_WRITE);
	NEED(!lacking(ret), "fi_mr_bind: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_mr_bind: %d", ret);
	for (i = 0; i < 5; i++)
		POST(&bed, fi_write(ep, here, few[i % 4], desc, peer, w.remote.base, w.remote.key, ctx(1)));
	POST(&bed, fi_read(ep, here, 100, desc, peer, w.remote.base, w.remote.key, ctx(2)));
	GIVES(0, fi_cntr_wait(cntr, 5, GIVE_UP_MS));
	drain(&bed, 6);
	settle(&bed);
	CHECK(fi_cntr_read(cntr) == 5, "%llu are counted", (unsigned long long) fi_cntr_read(cntr));
	GIVES(-FI_EBUSY, fi_close(&cntr->fid));
	conceal(&w);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(counters),
#if HEADERS_2
	TEST(counters_of_bytes),
#endif
	TEST(errors_are_counted), TEST(counter_of_a_region),
};

CASES(tests)

/* What the cases of this page share. */
#include "cntr.h"

char in[4096], out[4096];

int try_open(struct bed *bed, struct fi_cntr_attr *attr, struct fid_cntr **cntr)
{
	return fi_cntr_open(bed->domain, attr, cntr, NULL);
}

struct fid_cntr *open_cntr(struct bed *bed, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait };
	struct fid_cntr *cntr;
	int ret = try_open(bed, &attr, &cntr);

	NEED(!lacking(ret), "a counter with wait object %d: %s", wait, fi_strerror(-ret));
	CHECK(ret == 0, "a counter with wait object %d: %s", wait, fi_strerror(-ret));
	return cntr;
}

void becomes(struct fid_cntr *cntr, uint64_t value, int line)
{
	long until = now_ms() + GIVE_UP_MS;

	while (fi_cntr_read(cntr) != value && now_ms() < until)
		;
	CHECK(fi_cntr_read(cntr) == value, "called at %d: %llu, not %llu", line, (unsigned long long) fi_cntr_read(cntr),
	      (unsigned long long) value);
}
#define BECOMES(cntr, value) becomes(cntr, value, __LINE__)

void errors_become(struct fid_cntr *cntr, uint64_t value, int line)
{
	long until = now_ms() + GIVE_UP_MS;

	while (fi_cntr_readerr(cntr) != value && now_ms() < until)
		fi_cntr_read(cntr);
	CHECK(fi_cntr_readerr(cntr) == value, "called at %d: %llu errors, not %llu", line,
	      (unsigned long long) fi_cntr_readerr(cntr), (unsigned long long) value);
}
#define ERRORS_BECOME(cntr, value) errors_become(cntr, value, __LINE__)

/* What `bind_one` binds, and to which side. */
static struct {
	enum fi_cntr_events events;
	int side;
	uint64_t flags;
	struct fid_cntr *cntr;
} one;

static void bind_one(struct bed *bed, int side)
{
	struct fi_cntr_attr attr = { .events = one.events, .wait_obj = FI_WAIT_UNSPEC };
	int ret;

	if (side != one.side)
		return;
	ret = try_open(bed, &attr, &one.cntr);
	NEED(!lacking(ret), "fi_cntr_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cntr_open: %s", fi_strerror(-ret));
	ret = fi_ep_bind(bed->side[side].ep, &one.cntr->fid, one.flags);
	NEED(!lacking(ret), "fi_ep_bind of a counter: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_ep_bind of a counter: %s", fi_strerror(-ret));
}

struct fid_cntr *bind_counter(struct bed *bed, const struct setup *given, enum fi_cntr_events events, int side, uint64_t flags)
{
	struct setup s = *given;

	one.events = events;
	one.side = side;
	one.flags = flags;
	s.bind = bind_one;
	open_bed(bed, &s);
	return one.cntr;
}

void close_counted(struct bed *bed, struct fid_cntr *cntr)
{
	close_eps(bed);
	OK(fi_close(&cntr->fid));
	close_bed(bed);
}

void exchange(struct bed *bed, int from, int to, size_t len)
{
	POST(bed, post_recv(bed->side[to].ep, in, len, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(bed, post_send(bed->side[from].ep, out, len, bed->side[to].addr, 1, ctx(2)));
	COMPLETION(bed, bed->side[from].tx, ctx(2));
	COMPLETION(bed, bed->side[to].rx, ctx(1));
}

/* Groups: sets of addresses, and joining and leaving them. */
#define _GNU_SOURCE
#include <sched.h>
#include "collective.h"

struct fid_av_set *world_set;
struct fid_mc *world;

struct fid_av_set *set_of(const int *ranks, int count, uint64_t flags)
{
	struct fi_av_set_attr attr = { .count = MOST, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .flags = flags };
	struct fid_av_set *set;
	int i, ret = fi_av_set(bed.av, &attr, &set, NULL);

	NEED(!lacking(ret), "fi_av_set: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set: %s", fi_strerror(-ret));
	for (i = 0; i < count; i++)
		OK(fi_av_set_insert(set, addr[ranks[i]]));
	return set;
}

struct fid_av_set *set_of_all(void)
{
	struct fi_av_set_attr attr = { .count = MOST, .start_addr = addr[0], .end_addr = addr[members - 1], .stride = 1 };
	struct fid_av_set *set;
	int ret = fi_av_set(bed.av, &attr, &set, NULL);

	NEED(!lacking(ret), "fi_av_set: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set: %s", fi_strerror(-ret));
	return set;
}

fi_addr_t set_addr(struct fid_av_set *set)
{
	fi_addr_t coll_addr;

	OK(fi_av_set_addr(set, &coll_addr));
	return coll_addr;
}

uint32_t next_event(struct fi_eq_entry *entry)
{
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event = 0;
	ssize_t ret;

	while ((ret = fi_eq_read(eq, &event, entry, sizeof(*entry), 0)) == -FI_EAGAIN && now_ms() < until) {
		/* Reading the queue is enough; the C library needs more. */
		if (!strict)
			progress(&bed);
		sched_yield();
	}
	CHECK(ret == sizeof(*entry), "fi_eq_read: %zd", ret);
	return event;
}

struct fid_mc *begin_join(struct fid_av_set *set, fi_addr_t coll_addr, void *context)
{
	struct fid_mc *mc = NULL;
	int ret = fi_join_collective(bed.side[0].ep, coll_addr, set, 0, &mc, context);

	NEED(!lacking(ret), "fi_join_collective: %s", fi_strerror(-ret));
	CHECK(ret == 0 && mc, "fi_join_collective: %s", fi_strerror(-ret));
	return mc;
}

struct fid_mc *join(struct fid_av_set *set, fi_addr_t coll_addr)
{
	struct fid_mc *mc = begin_join(set, coll_addr, ctx(1));
	struct fi_eq_entry entry = { 0 };
	uint32_t event = next_event(&entry);

	CHECK(event == FI_JOIN_COMPLETE, "event %u", event);
	CHECK(entry.context == ctx(1), "context %p", entry.context);
	/* The C library names the group that the join went through. */
	CHECK(!strict || entry.fid == &mc->fid, "the event is not about the new group");
	return mc;
}

void join_all(void)
{
	world_set = set_of_all();
	world = join(world_set, set_addr(world_set));
}

void leave_all(void)
{
	everybody();
	OK(fi_close(&world->fid));
	OK(fi_close(&world_set->fid));
}

void ended(void *context)
{
	struct fi_cq_tagged_entry e = COMPLETION(&bed, bed.side[0].tx, context);

	CHECK(!strict || e.flags == FI_COLLECTIVE, "flags 0x%llx", (unsigned long long) e.flags);
}

bool offered(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op)
{
	struct fi_collective_attr attr = { .op = op, .datatype = type };
	int ret = fi_query_collective(bed.domain, coll, &attr, 0);

	if (lacking(ret) || ret == -FI_EOPNOTSUPP)
		return false;
	CHECK(ret == 0, "fi_query_collective: %s", fi_strerror(-ret));
	CHECK(attr.max_members >= (size_t) members, "%zu members", attr.max_members);
	return true;
}

void supports(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op)
{
	NEED(offered(coll, type, op), "collective %d of type %d, operation %d", coll, type, op);
}

/* Joining and leaving, and groups of some. */
#define _GNU_SOURCE
#include <sched.h>
#include "collective.h"

void joins_and_leaves(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		join_all();
		CHECK(world->fid.fclass == FI_CLASS_MC && world->fid.context == ctx(1), "class %zu", world->fid.fclass);
		GIVES(-FI_EBUSY, fi_close(&world_set->fid));
		leave_all();
	}
}

static void join_is_told(void)
{
	in_groups(joins_and_leaves);
}

static void one_comes_late(void)
{
	struct fid_av_set *set = set_of_all();
	struct fi_eq_entry entry;
	struct fid_mc *mc = NULL;
	uint32_t event;
	int i;

	if (me != 1) {
		mc = begin_join(set, set_addr(set), ctx(1));
		for (i = 0; i < 300; i++) {
			progress(&bed);
			GIVES(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
			sched_yield();
		}
	}
	everybody();
	if (me == 1)
		mc = begin_join(set, set_addr(set), ctx(1));
	CHECK(next_event(&entry) == FI_JOIN_COMPLETE, "another event");
	everybody();
	OK(fi_close(&mc->fid));
	OK(fi_close(&set->fid));
}

static void join_waits_for_all(void)
{
	in_group(3, &usual, one_comes_late);
}

static void begins_alone(void)
{
	world_set = set_of_all();
	if (strict && me == 0) { /* nobody else has come: it needs nobody */
		world = join(world_set, FI_ADDR_NOTAVAIL);
		everybody();
	} else {
		if (strict)
			everybody();
		world = join(world_set, FI_ADDR_NOTAVAIL);
	}
	one(FI_ALLREDUCE, FI_UINT64, FI_SUM, 3, 0);
	leave_all();
}

static void application_manages_the_members(void)
{
	in_group(3, &usual, begins_alone);
}

/* Groups of some, in an order of their own, and a root that is named by its address. */
void groups_of_some(void)
{
	static const int odd[] = { 3, 1 }, even[] = { 4, 0, 2 };
	const int *ranks = me % 2 ? odd : even;
	int count = me % 2 ? 2 : 3, i;
	struct fid_av_set *set;
	uint64_t mine = 100 + (uint64_t) me, all[3] = { 0 };
	struct fid_mc *mc;

	join_all();
	set = set_of(ranks, count, 0);
	/* Of the set, and once more of the group of all. */
	for (i = 0; i < 2; i++) {
		int r;

		mc = join(set, i ? fi_mc_addr(world) : set_addr(set));
		POST(&bed, fi_allgather(bed.side[0].ep, &mine, 1, NULL, all, NULL, fi_mc_addr(mc), FI_UINT64, 0, ctx(2)));
		ended(ctx(2));
		for (r = 0; r < count; r++)
			CHECK(all[r] == 100 + (uint64_t) ranks[r], "place %d: %llu", r, (unsigned long long) all[r]);
		if (strict) {
			memset(all, 0, sizeof(all));
			POST(&bed, fi_gather(bed.side[0].ep, &mine, 1, NULL, all, NULL, fi_mc_addr(mc), addr[ranks[0]], FI_UINT64, 0, ctx(3)));
			ended(ctx(3));
			for (r = 0; r < count && me == ranks[0]; r++)
				CHECK(all[r] == 100 + (uint64_t) ranks[r], "gathered at %d: %llu", r, (unsigned long long) all[r]);
			FAILS(fi_gather(bed.side[0].ep, &mine, 1, NULL, all, NULL, fi_mc_addr(mc), addr[!(me % 2)], FI_UINT64, 0, ctx(3)));
		}
		OK(fi_close(&mc->fid));
		everybody();
	}
	OK(fi_close(&set->fid));
	leave_all();
}

static void subgroups_in_their_order(void)
{
	in_group(5, &usual, groups_of_some);
}

static void join_needs_an_event_queue(void)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .flags = FI_UNIVERSE };
	struct setup s = usual;
	struct fid_av_set *set;
	struct fid_mc *mc;

	NEED(strict, "the C library does not ask for one");
	s.strangers = false;
	open_bed(&bed, &s);
	OK(fi_av_set(bed.av, &attr, &set, NULL));
	GIVES(-FI_ENOEQ, fi_join_collective(bed.side[0].ep, set_addr(set), set, 0, &mc, NULL));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void endpoint_may_be_closed_first(void)
{
	NEED(strict, "the C library does not say");
	members = 1;
	common = calloc(1, sizeof(*common));
	open_member(&usual);
	join_all();
	close_ep(&bed.side[0]);
	OK(fi_close(&world->fid));
	OK(fi_close(&world_set->fid));
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(join_is_told), TEST(join_waits_for_all), TEST(join_needs_an_event_queue),
	TEST(application_manages_the_members), TEST(subgroups_in_their_order), TEST(endpoint_may_be_closed_first),
};

CASES(tests)

/* Barriers, several operations at once, and messages between them. */
#include "collective.h"

void nobody_ahead(void)
{
	unsigned die = (unsigned) me * 7919 + 1;
	int round, i;

	supports(FI_BARRIER, FI_VOID, FI_NOOP);
	join_all();
	for (round = 1; round <= 60; round++) {
		die = die * 1103515245 + 12345;
		for (i = 0; i < (int) (die >> 16) % 50; i++)
			progress(&bed);
		__sync_fetch_and_add(&common->entered, 1);
		if (round % 2 || !HEADERS_2)
			POST(&bed, fi_barrier(bed.side[0].ep, fi_mc_addr(world), ctx(4)));
#if HEADERS_2
		else
			POST(&bed, fi_barrier2(bed.side[0].ep, fi_mc_addr(world), FI_COMPLETION, ctx(4)));
#endif
		ended(ctx(4));
		CHECK(common->entered >= round * members, "left barrier %d when only %d had come", round, common->entered);
	}
	leave_all();
}

static void barrier(void)
{
	in_groups(nobody_ahead);
}

enum { AT_ONCE = 12 };

void in_two_groups(void)
{
	static uint64_t mine[AT_ONCE][100], sum[AT_ONCE][100];
	static const int backwards[] = { 4, 3, 2, 1, 0 };
	struct fid_av_set *set;
	struct fid_mc *other;
	bool seen[AT_ONCE] = { false };
	int i, k, r;

	join_all();
	set = set_of(backwards + MOST - members, members, 0);
	other = join(set, set_addr(set));
	/* In each group the same order everywhere; between the groups it may differ. */
	for (k = 0; k < AT_ONCE; k++) {
		i = me % 2 ? (k + AT_ONCE / 2) % AT_ONCE : k;
		for (r = 0; r < 100; r++)
			mine[i][r] = (uint64_t) (me + 1) * 1000 + (uint64_t) (i * 100 + r);
		POST(&bed, fi_allreduce(bed.side[0].ep, mine[i], 100, NULL, sum[i], NULL,
					fi_mc_addr(i < AT_ONCE / 2 ? world : other), FI_UINT64, FI_SUM, 0, ctx(10 + i)));
	}
	for (k = 0; k < AT_ONCE; k++) {
		struct fi_cq_tagged_entry e;

		CHECK(next(&bed, bed.side[0].tx, &e) == 1, "a completion is missing after %d", k);
		for (i = 0; i < AT_ONCE && e.op_context != ctx(10 + i); i++)
			;
		CHECK(i < AT_ONCE && !seen[i], "context %p", e.op_context);
		seen[i] = true;
		for (r = 0; r < 100; r++) {
			uint64_t wanted = (uint64_t) members * (uint64_t) (members + 1) / 2 * 1000 + (uint64_t) members * (uint64_t) (i * 100 + r);

			CHECK(sum[i][r] == wanted, "sum %d at %d: %llu", i, r, (unsigned long long) sum[i][r]);
		}
	}
	OK(fi_close(&other->fid));
	OK(fi_close(&set->fid));
	leave_all();
}

static void many_at_once(void)
{
	NEED(strict, "the C library does not keep collectives of two groups apart");
	in_groups(in_two_groups);
}

/* Messages of the application's go their own way meanwhile. */
static void between_messages(void)
{
	static char got[8], sent[8];
	uint64_t mine = (uint64_t) me, sum = 0;
	struct fi_cq_tagged_entry e;
	int peer = (me + 1) % members, ends = 0;

	join_all();
	POST(&bed, fi_trecv(bed.side[0].ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, 0, ~0ULL, ctx(1)));
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(2)));
	fill(sent, sizeof(sent), (unsigned) me);
	POST(&bed, fi_tsend(bed.side[0].ep, sent, sizeof(sent), NULL, addr[peer], 9, ctx(3)));
	while (ends != 3) {
		CHECK(next(&bed, bed.side[0].tx, &e) == 1, "a completion is missing");
		ends |= e.op_context == ctx(2) ? 1 : e.op_context == ctx(3) ? 2 : 8;
	}
	e = COMPLETION(&bed, bed.side[0].rx, ctx(1));
	CHECK(e.tag == 9 && e.len == sizeof(got), "tag %llu", (unsigned long long) e.tag);
	SAME(got, sizeof(got), (unsigned) ((me + members - 1) % members));
	CHECK(sum == (uint64_t) (members * (members - 1) / 2), "sum %llu", (unsigned long long) sum);
	leave_all();
}

static void messages_do_not_meet_collectives(void)
{
	in_group(3, &usual, between_messages);
}

static const struct test tests[] = {
	TEST(barrier), TEST(many_at_once), TEST(messages_do_not_meet_collectives),
};

CASES(tests)

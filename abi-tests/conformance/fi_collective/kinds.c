/* Members that are contexts of scalable endpoints or share their receive contexts: what plain ones are asked, once more. */
#include "collective.h"

static const enum kind of_contexts[MOST] = { CONTEXT, CONTEXT, CONTEXT, CONTEXT, CONTEXT };
static const enum kind of_sharers[MOST] = { SHARES, SHARES, SHARES, SHARES, SHARES };
static const enum kind of_all[MOST] = { PLAIN, SHARES, CONTEXT, CONTEXT, SHARES };

static void of_kinds(const enum kind *of, int count, const struct setup *setup, void (*body)(void))
{
	memcpy(kinds, of, sizeof(kinds));
	in_group(count, setup, body);
}

/* For each of the kinds that are not plain. */
static void of_others(int count, const struct setup *setup, void (*body)(void))
{
	of_kinds(of_contexts, count, setup, body);
	of_kinds(of_sharers, count, setup, body);
}

/* What plain endpoints are asked, once more. */
static void as_plain_ones(const enum kind *of)
{
	NEED(strict, "no provider of the C library has collectives there");
	of_kinds(of, 1, &usual, joins_and_leaves);
	of_kinds(of, 3, &usual, joins_and_leaves);
	of_kinds(of, 5, &usual, groups_of_some);
	of_kinds(of, 4, &usual, nobody_ahead);
	for (now = FI_BARRIER + 1; now <= FI_GATHER; now++)
		if (now == FI_ALLREDUCE || now == FI_REDUCE_SCATTER || now == FI_REDUCE)
			of_kinds(of, 4, &usual, reduces_much);
		else
			of_kinds(of, 4, &usual, moves_much);
	of_kinds(of, 5, &usual, in_two_groups);
	of_kinds(of, 3, &usual, in_pieces);
}

static void contexts_take_part(void) { as_plain_ones(of_contexts); }
static void sharers_take_part(void) { as_plain_ones(of_sharers); }
static void all_kinds_take_part(void) { as_plain_ones(of_all); }

static void other_kinds_refuse_nonsense(void)
{
	NEED(strict, "the C library takes addresses for pointers");
	of_others(2, &usual, refused);
}

static void other_kinds_are_told_of_death(void)
{
	NEED(strict, "the C library waits for ever");
	of_kinds(of_all, 5, &usual, without_one);
}

static void other_kinds_sleep(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.any_wait = true;
	of_others(3, &s, asleep);
}

static void other_kinds_have_automatic_progress(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.progress = FI_PROGRESS_AUTO;
	of_others(3, &s, while_one_sleeps);
}

/* Contexts of one endpoint are in groups of their own, and only those that transmit are in any. */
static void each_its_own(void)
{
	uint64_t mine[2] = { 1, 10 }, sum[2] = { 0 };
	struct fid_ep *first = other_context, *second = bed.side[0].ep, *ep[2] = { first, second };
	struct fid_av_set *set = set_of_all();
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry entry;
	struct fid_mc *mc[2], *none;
	int i;

	OK(fi_ep_bind(first, &eq->fid, 0));
	for (i = 0; i < 2; i++)
		OK(fi_join_collective(ep[i], set_addr(set), set, 0, &mc[i], ctx(1)));
	for (i = 0; i < 2; i++)
		CHECK(next_event(&entry) == FI_JOIN_COMPLETE, "another event");
	FAILS(fi_barrier(first, fi_mc_addr(mc[1]), ctx(1)));
	if (rx_context)
		FAILS(fi_join_collective(rx_context, set_addr(set), set, 0, &none, ctx(1)));
	for (i = 0; i < 2; i++) {
		int k = me % 2 ? !i : i;

		POST(&bed, fi_allreduce(ep[k], &mine[k], 1, NULL, &sum[k], NULL, fi_mc_addr(mc[k]), FI_UINT64, FI_SUM, 0, ctx(2 + k)));
	}
	for (i = 0; i < 2; i++) {
		CHECK(next(&bed, bed.side[0].tx, &e) == 1, "no completion");
		CHECK(e.op_context == ctx(2) || e.op_context == ctx(3), "context %p", e.op_context);
	}
	CHECK(sum[0] == (uint64_t) members && sum[1] == (uint64_t) members * 10, "sums %llu, %llu", (unsigned long long) sum[0],
	      (unsigned long long) sum[1]);
	everybody();
	/* One ends, and waits for nobody who would come. */
	if (me == 0) {
		POST(&bed, fi_allreduce(first, &mine[0], 1, NULL, &sum[0], NULL, fi_mc_addr(mc[0]), FI_UINT64, FI_SUM, 0, ctx(2)));
		GIVES(-FI_EBUSY, fi_close(&mc[0]->fid));
	}
	close_one(&other_context);
	OK(fi_close(&mc[0]->fid));
	POST(&bed, fi_barrier(second, fi_mc_addr(mc[1]), ctx(3)));
	ended(ctx(3));
	everybody();
	OK(fi_close(&mc[1]->fid));
	OK(fi_close(&set->fid));
}

static void contexts_have_groups_of_their_own(void)
{
	NEED(strict, "no provider of the C library has collectives there");
	of_kinds(of_contexts, 2, &usual, each_its_own);
}

/* Several members that share one receive context: each gets what is meant for it. One is closed while it waits. */
static void several_share_one_context(void)
{
	enum { SHARERS = 4 };
	struct setup s = usual;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	uint32_t mine[SHARERS][SHARERS], got[SHARERS][SHARERS];
	struct fi_eq_entry entry;
	struct fid_av_set *set;
	struct fid_mc *mc[SHARERS];
	int i, k, round;

	NEED(strict, "no provider of the C library has collectives there");
	s.sides = SHARERS;
	s.rx_ctx_cnt = FI_SHARED_CONTEXT;
	s.strangers = false;
	open_sides(&bed, &s);
	OK(fi_srx_context(bed.domain, bed.info->rx_attr, &srx, NULL));
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	for (i = 0; i < SHARERS; i++) {
		OK(fi_ep_bind(bed.side[i].ep, &srx->fid, 0));
		OK(fi_ep_bind(bed.side[i].ep, &eq->fid, 0));
	}
	enable_sides(&bed, &s);
	members = SHARERS;
	for (i = 0; i < SHARERS; i++)
		addr[i] = bed.side[i].addr;
	set = set_of_all();
	for (i = 0; i < SHARERS; i++)
		OK(fi_join_collective(bed.side[i].ep, set_addr(set), set, 0, &mc[i], ctx(1)));
	for (i = 0; i < SHARERS; i++)
		CHECK(next_event(&entry) == FI_JOIN_COMPLETE, "another event");
	for (round = 0; round < 20; round++) {
		for (i = 0; i < SHARERS; i++) {
			int m = (i * 3 + round) % SHARERS;

			for (k = 0; k < SHARERS; k++)
				mine[m][k] = (uint32_t) (round * 100 + m * 10 + k);
			POST(&bed, fi_alltoall(bed.side[m].ep, mine[m], 1, NULL, got[m], NULL, fi_mc_addr(mc[m]), FI_UINT32, 0, ctx(m)));
		}
		for (i = 0; i < SHARERS; i++) {
			COMPLETION(&bed, bed.side[i].tx, ctx(i));
			for (k = 0; k < SHARERS; k++)
				CHECK(got[i][k] == (uint32_t) (round * 100 + k * 10 + i), "member %d has %u from %d", i, got[i][k], k);
		}
	}
	FAILS(fi_barrier(bed.side[0].ep, fi_mc_addr(mc[1]), ctx(1)));
	POST(&bed, fi_barrier(bed.side[1].ep, fi_mc_addr(mc[1]), ctx(1)));
	for (i = 1; i >= 0; i--)
		close_ep(&bed.side[i]);
	for (i = 0; i < SHARERS; i++)
		OK(fi_close(&mc[i]->fid));
	OK(fi_close(&set->fid));
	close_eps(&bed);
	close_one(&srx);
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

/* What only receives, and what cannot be used directly, is no "endpoint on which to initiate collective operation". */
static void say_so(void)
{
	struct fid_ep *of_none[] = { rx_context, srx, whole };
	struct fid_av_set *set = set_of_all();
	struct fid_mc *mc = NULL;
	uint32_t word = 7;
	size_t i, asked = 0;

	for (i = 0; i < sizeof(of_none) / sizeof(*of_none); i++) {
		struct fid_ep *ep = of_none[i];

		if (!ep)
			continue;
		asked++;
		GIVES(-FI_ENOSYS, fi_join_collective(ep, set_addr(set), set, 0, &mc, ctx(1)));
		GIVES(-FI_ENOSYS, fi_barrier(ep, addr[0], ctx(1)));
		GIVES(-FI_ENOSYS, fi_broadcast(ep, &word, 1, NULL, addr[0], FI_UINT32, FI_NOOP, FI_RECV, ctx(1)));
	}
	CHECK(!mc && word == 7, "something was done");
	CHECK(asked == (srx ? 1u : 1u + (unsigned) me % 2), "%zu were asked", asked);
	OK(fi_close(&set->fid));
	/* It is the others that take part, and still do. */
	joins_and_leaves();
}

static void receivers_take_no_part(void)
{
	NEED(strict, "no provider of the C library has collectives there");
	of_others(2, &usual, say_so);
}

static const struct test tests[] = {
	TEST(receivers_take_no_part), TEST(contexts_take_part), TEST(sharers_take_part), TEST(all_kinds_take_part),
	TEST(other_kinds_refuse_nonsense), TEST(other_kinds_are_told_of_death), TEST(other_kinds_sleep),
	TEST(other_kinds_have_automatic_progress), TEST(contexts_have_groups_of_their_own),
	TEST(several_share_one_context),
};

CASES(tests)

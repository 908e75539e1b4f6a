/* How operations end: the same everywhere, told to those who ask, with those who sleep and those who die. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include "collective.h"

static void rounding(void)
{
	static double mine[LARGE], sum[LARGE];
	size_t counts[] = { 1, 64, LARGE }, c, i;
	int r;

	join_all();
	for (c = 0; c < (strict ? 3 : 2); c++) {
		srand48(me * 100 + (long) c);
		for (i = 0; i < counts[c]; i++)
			mine[i] = (drand48() - 0.5) * (i % 3 ? 1 : 1e16);
		POST(&bed, fi_allreduce(bed.side[0].ep, mine, counts[c], NULL, sum, NULL, fi_mc_addr(world), FI_DOUBLE, FI_SUM, 0, ctx(2)));
		ended(ctx(2));
		for (i = 0; i < 64; i++)
			common->bits[me][i] = sum[counts[c] * i / 64];
		everybody();
		for (r = 0; r < members; r++)
			CHECK(memcmp(common->bits[r], common->bits[me], sizeof(common->bits[r])) == 0, "members %d and %d have other sums", r, me);
		everybody();
	}
	leave_all();
}

static void sums_are_the_same_bits_everywhere(void)
{
	in_groups(rounding);
}

static void selective(void)
{
	uint64_t mine = 1, sum = 0;

	join_all();
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(5)));
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, FI_COMPLETION, ctx(6)));
	ended(ctx(6));
	NO_COMPLETION(&bed, bed.side[0].tx);
	everybody();
	leave_all();
}

static void ends_are_told_to_those_who_ask(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does not look at FI_SELECTIVE_COMPLETION");
	s.tx_bind = FI_SELECTIVE_COMPLETION;
	in_group(2, &s, selective);
}

/* A member that ends takes nobody with it: the others are told, now and later, and can leave. */
void without_one(void)
{
	static uint64_t mine[LARGE], sum[LARGE];
	struct fi_cq_err_entry e;
	int i;

	join_all();
	everybody();
	if (me == 2) {
		common->killed = me;
		raise(SIGKILL);
	}
	for (i = 0; i < 2; i++) {
		POST(&bed, fi_allreduce(bed.side[0].ep, mine, i ? 1 : LARGE, NULL, sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(7)));
		e = ERROR_COMPLETION(&bed, bed.side[0].tx);
		CHECK(e.op_context == ctx(7) && e.err > 0, "error %d of %p", e.err, e.op_context);
	}
	OK(fi_close(&world->fid));
	OK(fi_close(&world_set->fid));
	OK(fi_close(&bed.side[0].ep->fid));
	if (me)
		_exit(0);
	others_ended();
	printf("ok %s\n", case_name);
	fflush(stdout);
	_exit(0);
}

static void death_is_told(void)
{
	NEED(strict, "the C library waits for ever");
	in_group(5, &usual, without_one);
}

/* One that posts and then calls nothing more does its part all the same. */
void while_one_sleeps(void)
{
	uint64_t mine = 1, sum = 0;

	join_all();
	everybody();
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(5)));
	if (me == 1) {
		long until = now_ms() + GIVE_UP_MS;

		while (common->entered < members - 1) {
			CHECK(now_ms() < until, "the others wait for a call");
			sched_yield();
		}
		ended(ctx(5));
	} else {
		ended(ctx(5));
		__sync_fetch_and_add(&common->entered, 1);
	}
	CHECK(sum == (uint64_t) members, "sum %llu", (unsigned long long) sum);
	leave_all();
}

static void automatic_progress(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.progress = FI_PROGRESS_AUTO;
	in_group(3, &s, while_one_sleeps);
}

void asleep(void)
{
	static uint64_t mine[LARGE], sum[LARGE];
	struct fi_cq_tagged_entry e;
	int round;

	join_all();
	for (round = 0; round < 20; round++) {
		size_t count = round % 4 ? 1 : LARGE;

		mine[0] = (uint64_t) round;
		POST(&bed, fi_allreduce(bed.side[0].ep, mine, count, NULL, sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(5)));
		GIVES(1, fi_cq_sread(bed.side[0].tx, &e, 1, NULL, GIVE_UP_MS));
		CHECK(e.op_context == ctx(5) && sum[0] == (uint64_t) (round * members), "sum %llu", (unsigned long long) sum[0]);
	}
	leave_all();
}

static void ends_wake_sleepers(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.any_wait = true;
	in_group(3, &s, asleep);
}

/* Threading levels at which the library has no lock. */
static void without_locks(void)
{
	struct setup s = usual;

	NEED(strict, "of our own interest");
	s.threading = FI_THREAD_DOMAIN;
	in_group(3, &s, rounding);
}

static const struct test tests[] = {
	TEST(sums_are_the_same_bits_everywhere), TEST(ends_are_told_to_those_who_ask), TEST(automatic_progress),
	TEST(ends_wake_sleepers), TEST(without_locks), TEST(death_is_told),
};

CASES(tests)

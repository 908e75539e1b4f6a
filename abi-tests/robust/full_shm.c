/*
 * What becomes of shm when /dev/shm is small and full: to be run where it is, and nothing else uses it.
 *   full_shm PROVIDER
 */
#include <string.h>
#include "fabric.h"

enum { MOST = 4096 };

static struct fid_ep *eps[MOST];

/* Opens endpoints until there is no room; the number of the first that failed. */
static int fill_up(struct bed *bed)
{
	int i, ret = 0;

	for (i = 0; i < MOST && !ret; i++)
		ret = fi_endpoint(bed->domain, bed->info, &eps[i], NULL);
	CHECK(ret == -FI_ENOSPC, "endpoint %d: %d (%s)", i, ret, fi_strerror(-ret));
	return i - 1;
}

static void close_down(int first, int last)
{
	int i;

	for (i = first; i < last; i++)
		OK(fi_close(&eps[i]->fid));
}

static void no_room_for_an_endpoint(void)
{
	struct setup s = { 0 };
	struct bed bed;
	int first, second;

	open_domain(&bed, &s);
	first = fill_up(&bed);
	CHECK(first > 0, "not even one endpoint");
	close_down(0, first);
	second = fill_up(&bed); /* and what there was is there again */
	CHECK(first == second, "%d endpoints, and then %d", first, second);
	close_down(0, second);
	close_bed(&bed);
}

/* Endpoints that are there already, but have no room to be sent to: an error, and no signal. */
static void no_room_for_a_message(void)
{
	struct setup s = { .sides = SIDES };
	struct bed bed;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	char buf[8] = { 0 };
	bool failed = false;
	ssize_t ret;
	int count, i;

	open_bed(&bed, &s);
	count = fill_up(&bed);
	/* There may be room for a few lanes, but not for all. */
	for (i = 0; i < SIDES * SIDES && !failed; i++) {
		struct side *from = &bed.side[i / SIDES];

		ret = fi_tsend(from->ep, buf, 8, NULL, bed.side[i % SIDES].addr, 1, ctx(1));
		if (ret == 0)
			ret = next(&bed, from->tx, &e);
		failed = ret < 0;
	}
	CHECK(failed && (ret == -FI_EAVAIL || ret == -FI_ENOMEM), "the last message: %zd", ret);
	i--;
	if (ret == -FI_EAVAIL) {
		err = ERROR_COMPLETION(&bed, bed.side[i / SIDES].tx);
		CHECK(err.err == FI_ENOMEM, "err %d (%s)", err.err, fi_strerror(err.err));
	}
	close_down(0, count);
	/* With room again the same endpoints reach each other. */
	ping(&bed, i / SIDES, i % SIDES);
	close_bed(&bed);
}

/* Two that have found each other before go on with messages of every length. */
static void no_room_for_a_large_ring(void)
{
	static const size_t lens[] = { 0, 8, 256, 257, 1000, 8192, 8193, 30000, 100000, 1 << 20 };
	static char out[1 << 20], in[1 << 20];
	struct setup s = { 0 };
	struct bed bed;
	size_t at;
	int count, from;

	open_bed(&bed, &s);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	count = fill_up(&bed);
	for (at = 0; at < 4 * sizeof(lens) / sizeof(*lens); at++) {
		size_t len = lens[at / 4];
		bool expected = at % 2;
		struct side *to;

		from = at / 2 % 2;
		to = &bed.side[1 - from];
		fill(out, len, (unsigned) at);
		memset(in, 0, len);
		if (expected)
			POST(&bed, fi_trecv(to->ep, in, len, NULL, FI_ADDR_UNSPEC, at, 0, ctx(1)));
		POST(&bed, fi_tsend(bed.side[from].ep, out, len, NULL, to->addr, at, ctx(2)));
		if (!expected) {
			settle(&bed);
			POST(&bed, fi_trecv(to->ep, in, len, NULL, FI_ADDR_UNSPEC, at, 0, ctx(1)));
		}
		COMPLETION(&bed, to->rx, ctx(1));
		COMPLETION(&bed, bed.side[from].tx, ctx(2));
		SAME(in, len, (unsigned) at);
	}
	close_down(0, count);
	ping(&bed, 0, 1);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(no_room_for_an_endpoint),
	TEST(no_room_for_a_message),
	TEST(no_room_for_a_large_ring),
};

CASES(tests)

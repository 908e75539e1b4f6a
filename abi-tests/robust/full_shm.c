/*
 * What becomes of shm when /dev/shm is small and full: to be run where it is, and nothing else uses it.
 *   full_shm PROVIDER
 */
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
	CHECK(failed && ret != -FI_EAGAIN && ret != -FI_ETIMEDOUT, "the last message: %zd", ret);
	if (ret == -FI_EAVAIL) {
		err = ERROR_COMPLETION(&bed, bed.side[--i / SIDES].tx);
		CHECK(err.err == FI_EHOSTUNREACH, "err %d (%s)", err.err, fi_strerror(err.err));
	}
	close_down(0, count);
	/* With room again the same endpoints reach each other. */
	ping(&bed, i / SIDES, i % SIDES);
	close_bed(&bed);
}

static const struct test tests[] = { TEST(no_room_for_an_endpoint), TEST(no_room_for_a_message) };

CASES(tests)

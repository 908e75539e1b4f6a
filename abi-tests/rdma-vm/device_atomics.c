/*
 * fi_atomic(3) on reliable endpoints whose devices do the atomics (FI_OFI_RXM_DEVICE_ATOMICS): which there are, and that all
 * of them are the device's, on one's own memory too.
 *   device_atomics PROVIDER
 */
#include "remote.h"

static uint64_t ours[4], theirs[4];
static struct bed bed;
static struct window w;

static void open_all(void)
{
	struct setup s = { .more_caps = FI_RMA | FI_ATOMIC };

	open_bed(&bed, &s);
	memset(theirs, 0, sizeof(theirs));
	w = expose(&bed, 1, theirs, sizeof(theirs), OPEN_TO_ALL);
}

static void close_all(void)
{
	conceal(&w);
	close_bed(&bed);
}

/* The word of side 1 with this number, as side FROM reaches it. */
#define THERE(i) bed.side[1].addr, w.remote.base + (i) * sizeof(*theirs), w.remote.key

static void add(int from, uint64_t more, uint64_t *before)
{
	ours[0] = more;
	POST(&bed, fi_fetch_atomic(bed.side[from].ep, ours, 1, desc, before, desc, THERE(0), FI_UINT64, FI_SUM, ctx(1)));
}

static void there_are_those_of_a_device(void)
{
	static const struct { enum fi_datatype type; enum fi_op op; uint64_t form; int there; } rows[] = {
		{ FI_UINT64, FI_SUM, FI_FETCH_ATOMIC, 1 }, { FI_INT64, FI_SUM, FI_FETCH_ATOMIC, 1 },
		{ FI_UINT64, FI_CSWAP, FI_COMPARE_ATOMIC, 1 }, { FI_UINT64, FI_ATOMIC_READ, FI_FETCH_ATOMIC, 1 },
		{ FI_UINT64, FI_ATOMIC_WRITE, 0, 1 }, { FI_UINT64, FI_SUM, 0, 0 }, { FI_UINT32, FI_SUM, FI_FETCH_ATOMIC, 0 },
		{ FI_DOUBLE, FI_SUM, FI_FETCH_ATOMIC, 0 }, { FI_UINT64, FI_BOR, FI_FETCH_ATOMIC, 0 },
		{ FI_UINT64, FI_CSWAP_GE, FI_COMPARE_ATOMIC, 0 },
	};
	struct fid_ep *ep;
	size_t i;

	open_all();
	ep = bed.side[0].ep;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int wanted = rows[i].there ? 0 : -FI_EOPNOTSUPP;
		struct fi_atomic_attr attr = { 0 };
		size_t most = 0;

		GIVES(wanted, fi_query_atomic(bed.domain, rows[i].type, rows[i].op, &attr, rows[i].form));
		GIVES(wanted, rows[i].form == FI_FETCH_ATOMIC ? fi_fetch_atomicvalid(ep, rows[i].type, rows[i].op, &most)
			: rows[i].form ? fi_compare_atomicvalid(ep, rows[i].type, rows[i].op, &most)
			: fi_atomicvalid(ep, rows[i].type, rows[i].op, &most));
		CHECK(attr.count == most && most == (size_t) rows[i].there, "row %zu: %zu and %zu", i, attr.count, most);
	}
	GIVES(-FI_EOPNOTSUPP, fi_atomic(ep, ours, 1, desc, THERE(0), FI_UINT64, FI_SUM, ctx(1)));
	close_all();
}

/* Side 1 is not driven any more once the connection stands. */
static void the_target_does_nothing(void)
{
	struct fi_cq_tagged_entry entry;
	long end = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	open_all();
	add(0, 40, ours + 1);
	COMPLETION(&bed, bed.side[0].tx, ctx(1));
	add(0, 2, ours + 1);
	do
		ret = fi_cq_read(bed.side[0].tx, &entry, 1);
	while (ret == -FI_EAGAIN && now_ms() < end);
	CHECK(ret == 1, "%zd", ret);
	CHECK(ours[1] == 40 && theirs[0] == 42, "%lu before, %lu there", (long) ours[1], (long) theirs[0]);
	close_all();
}

/* Its owner and a peer take turns at one word, each beginning before the other has ended. */
static void ones_own_memory_is_no_different(void)
{
	uint64_t before[2];
	int i;

	open_all();
	for (i = 0; i < 50; i++) {
		add(0, 1, before);
		add(1, 1, before + 1);
		COMPLETION(&bed, bed.side[0].tx, ctx(1));
		COMPLETION(&bed, bed.side[1].tx, ctx(1));
		CHECK(before[0] + before[1] == 4u * i + 1, "%lu and %lu in turn %d", (long) before[0], (long) before[1], i);
	}
	CHECK(theirs[0] == 100, "%lu", (long) theirs[0]);
	close_all();
}

static void words_are_swapped_written_and_read(void)
{
	int from;

	open_all();
	for (from = 0; from < 2; from++) {
		struct fid_ep *ep = bed.side[from].ep;
		struct fid_cq *cq = bed.side[from].tx;

		ours[0] = 7;
		POST(&bed, fi_atomic(ep, ours, 1, desc, THERE(1), FI_UINT64, FI_ATOMIC_WRITE, ctx(1)));
		COMPLETION(&bed, cq, ctx(1));
		ours[0] = 8, ours[1] = 7;
		POST(&bed, fi_compare_atomic(ep, ours, 1, desc, ours + 1, desc, ours + 2, desc, THERE(1), FI_UINT64, FI_CSWAP, ctx(2)));
		COMPLETION(&bed, cq, ctx(2));
		POST(&bed, fi_fetch_atomic(ep, NULL, 1, NULL, ours + 3, desc, THERE(1), FI_UINT64, FI_ATOMIC_READ, ctx(3)));
		COMPLETION(&bed, cq, ctx(3));
		CHECK(ours[2] == 7 && ours[3] == 8 && theirs[1] == 8, "%lu, then %lu", (long) ours[2], (long) ours[3]);
	}
	close_all();
}

static const struct test tests[] = {
	TEST(there_are_those_of_a_device), TEST(the_target_does_nothing), TEST(ones_own_memory_is_no_different),
	TEST(words_are_swapped_written_and_read),
};

CASES(tests)

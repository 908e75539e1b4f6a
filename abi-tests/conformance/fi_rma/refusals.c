/* What the target's registration does not allow. */
#include "rma.h"

enum what { READ, WRITE, INJECT };

static void refused(struct bed *bed, enum what what, uint64_t addr, size_t len, uint64_t key, int error, int line)
{
	struct fi_cq_err_entry err;

	memset(here, 0x77, SIZE);
	memset(there, 0x55, SIZE);
	switch (what) {
	case READ: POST(bed, fi_read(ep, here, len, desc, peer, addr, key, ctx(9))); break;
	case WRITE: POST(bed, fi_write(ep, here, len, desc, peer, addr, key, ctx(9))); break;
	case INJECT: POST(bed, fi_inject_write(ep, here, len, peer, addr, key)); break;
	}
	err = error_completion(bed, bed->side[0].tx, line);
	CHECK(what == INJECT || err.op_context == ctx(9), "line %d: the error of another operation", line);
	CHECK(err.err > 0, "line %d: error %d", line, err.err);
	CHECK(!strict || err.err == error, "line %d: error %d (%s), not %s", line, err.err, fi_strerror(err.err), fi_strerror(error));
	settle(bed);
	for (size_t i = 0; i < SIZE; i++)
		CHECK(there[i] == 0x55 && here[i] == 0x77, "line %d: byte %zu was touched", line, i);
	NO_COMPLETION(bed, bed->side[0].tx);
	NO_COMPLETION(bed, bed->side[1].rx);
}
#define REFUSED(what, addr, len, key, error) refused(&bed, what, addr, len, key, error, __LINE__)

/* Afterwards all is well. */
static void works(struct bed *bed, struct window *w)
{
	memset(there, 0, 5000);
	fill(here, 5000, 9);
	POST(bed, fi_write(ep, here, 5000, desc, peer, w->remote.base, w->remote.key, ctx(1)));
	wrote(bed, 1);
	UNTIL(bed, mismatch(there, 5000, 9) < 0);
	ping(bed, 0, 1);
	ping(bed, 1, 0);
}

static void unknown_key(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	for (i = 0; i < 4; i++) {
		REFUSED(READ, w.remote.base, few[i], w.remote.key + 1, FI_EKEYREJECTED);
		REFUSED(WRITE, w.remote.base, few[i], w.remote.key ^ 0x5555555555555555ull, FI_EKEYREJECTED);
	}
	if (strict)
		REFUSED(INJECT, w.remote.base, 10, w.remote.key + 1, FI_EKEYREJECTED);
	works(&bed, &w);
	close_window(&bed, &w);
}

static void wrong_rights(void)
{
	struct window w, other;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, WRITABLE);
	other = expose(&bed, 1, there, SIZE, READABLE);
	for (i = 0; i < 4; i++) {
		REFUSED(READ, w.remote.base, few[i], w.remote.key, FI_EACCES);
		REFUSED(WRITE, other.remote.base, few[i], other.remote.key, FI_EACCES);
	}
	works(&bed, &w);
	conceal(&other);
	close_window(&bed, &w);
}

static void outside_the_region(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	conceal(&w);
	w = expose(&bed, 1, there + 4096, SIZE - 8192, OPEN_TO_ALL);
	for (i = 0; i < 4; i++) {
		uint64_t end = w.remote.base + SIZE - 8192;

		REFUSED(READ, end, few[i], w.remote.key, FI_EINVAL);
		REFUSED(WRITE, end, few[i], w.remote.key, FI_EINVAL);
		REFUSED(WRITE, end - few[i] + 1, few[i], w.remote.key, FI_EINVAL);
		REFUSED(READ, w.remote.base - 1, few[i], w.remote.key, FI_EINVAL);
		REFUSED(WRITE, UINT64_MAX - few[i] / 2, few[i], w.remote.key, FI_EINVAL);
	}
	conceal(&w);
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	works(&bed, &w);
	close_window(&bed, &w);
}

/* A write that need not be delivered may be reported before its target has seen it. One that is to be delivered is not,
 * whatever was written there before, and once one was refused none is. */
static void a_region_that_was_written_to(void)
{
	struct iovec iov = { here, 10 };
	struct fi_rma_iov part = { .len = 10 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(9) };
	struct fi_cq_err_entry err;
	struct window w;
	struct bed bed;
	int i;

	if (!strict)
		SKIP("a provider may end the connection");
	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	for (i = 0; i < 3; i++) {
		POST(&bed, fi_write(ep, here, 10, desc, peer, w.remote.base, w.remote.key, ctx(1)));
		wrote(&bed, 1);
	}
	settle(&bed);
	conceal(&w);
	msg.addr = peer;
	part.addr = w.remote.base;
	part.key = w.remote.key;
	memset(there, 0x55, 10);
	POST(&bed, fi_writemsg(ep, &msg, FI_DELIVERY_COMPLETE));
	err = ERROR_COMPLETION(&bed, bed.side[0].tx);
	CHECK(err.err == FI_EKEYREJECTED, "error %d (%s)", err.err, fi_strerror(err.err));
	REFUSED(WRITE, w.remote.base, 10, w.remote.key, FI_EKEYREJECTED);
	CHECK(there[0] == 0x55, "memory was written");
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	works(&bed, &w);
	close_window(&bed, &w);
}

static void one_piece_is_bad(void)
{
	struct iovec iov = { here, 2000 };
	struct fi_rma_iov parts[2];
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = parts, .rma_iov_count = 2, .context = ctx(5) };
	struct fi_cq_err_entry err;
	struct window w;
	struct bed bed;
	size_t i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	if (bed.info->tx_attr->rma_iov_limit < 2)
		SKIP("one piece only");
	msg.addr = peer;
	parts[0] = (struct fi_rma_iov) { w.remote.base, 1000, w.remote.key };
	parts[1] = (struct fi_rma_iov) { w.remote.base + 5000, 1000, w.remote.key + 1 };
	memset(there, 0, SIZE);
	memset(here, 1, 2000);
	POST(&bed, fi_writemsg(ep, &msg, 0));
	err = ERROR_COMPLETION(&bed, bed.side[0].tx);
	CHECK(err.op_context == ctx(5), "the error of another operation");
	settle(&bed);
	for (i = 5000; i < 6000; i++)
		CHECK(there[i] == 0, "byte %zu was written", i);
	works(&bed, &w);
	close_window(&bed, &w);
}

static void a_closed_key(void)
{
	struct window w, other;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	other = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	POST(&bed, fi_write(ep, here, 100, desc, peer, other.remote.base, other.remote.key, ctx(1)));
	wrote(&bed, 1);
	settle(&bed);
	conceal(&other);
	REFUSED(READ, other.remote.base, 100, other.remote.key, FI_EKEYREJECTED);
	REFUSED(WRITE, other.remote.base, 100000, other.remote.key, FI_EKEYREJECTED);
	works(&bed, &w);
	close_window(&bed, &w);
}

/* A call that must fail, though perhaps not before the first contact. */
#define NEVER_TAKEN(bed, call)                                                         \
	do {                                                                           \
		long until_ = now_ms() + GIVE_UP_MS;                                   \
		ssize_t refused_;                                                      \
		while ((refused_ = (call)) == -FI_EAGAIN && now_ms() < until_)         \
			progress(bed);                                                 \
		CHECK(refused_ < 0 && refused_ != -FI_EAGAIN, "%s: %zd", #call, refused_); \
	} while (0)

/* Who asks for results that outlast a power failure gets them or an error. */
static void durable_or_refused(void)
{
	struct setup durable = { .more_caps = FI_RMA, .tx_flags = FI_COMMIT_COMPLETE };
	struct iovec iov = { here, 8 };
	struct fi_rma_iov target = { 0, 8, 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &target, .rma_iov_count = 1, .context = ctx(1) };
	struct fi_msg plain = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .context = ctx(2) };
	struct fi_info *hints = hints_for(&durable), *info;
	struct window w;
	struct bed bed;

	if (get_info(api_version(), hints, &info) == 0)
		SKIP("it is offered");
	fi_freeinfo(hints);
	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	target.addr = w.remote.base;
	target.key = w.remote.key;
	msg.addr = plain.addr = peer;
	NEVER_TAKEN(&bed, fi_writemsg(ep, &msg, FI_COMMIT_COMPLETE));
	NEVER_TAKEN(&bed, fi_readmsg(ep, &msg, FI_COMMIT_COMPLETE));
	NEVER_TAKEN(&bed, fi_sendmsg(ep, &plain, FI_COMMIT_COMPLETE));
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_window(&bed, &w);
}

static const struct test tests[] = {
	TEST(unknown_key), TEST(wrong_rights), TEST(outside_the_region), TEST(a_region_that_was_written_to),
	TEST(one_piece_is_bad), TEST(a_closed_key), TEST(durable_or_refused),
};

CASES(tests)

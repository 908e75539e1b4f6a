/* What the target is told, and when the initiator hears of the end. */
#include "rma.h"

/* ---- what the target is told ---- */

static void target_event(struct bed *bed, uint64_t data, size_t len)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = next(bed, bed->side[1].rx, &entry);

	CHECK(ret == 1, "no completion at the target: %zd", ret);
	CHECK((entry.flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)) == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
	      "flags 0x%llx at the target", (unsigned long long) entry.flags);
	CHECK(!(entry.flags & (FI_RECV | FI_MSG | FI_TAGGED)), "flags 0x%llx at the target", (unsigned long long) entry.flags);
	CHECK(entry.data == data, "data 0x%llx", (unsigned long long) entry.data);
	CHECK(!strict || entry.len == len, "%zu bytes, not %zu", entry.len, len);
}

/* One completion of side 0, while nothing asks side 1 for progress. */
static void alone(struct bed *bed, int context)
{
	struct fi_cq_tagged_entry entry;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	while ((ret = fi_cq_read(bed->side[0].tx, &entry, 1)) == -FI_EAGAIN && now_ms() < until)
		;
	CHECK(ret == 1 && entry.op_context == ctx(context), "no completion without the target: %zd", ret);
}

/* Keys that a card has given out are there for its work. */
static void without_the_target(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	if (!(bed.info->domain_attr->mr_mode & FI_MR_PROV_KEY))
		WITHOUT_MEANING("the target's processor may take part");
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	EACH_SIZE(i) {
		memset(there, 0, sizes[i]);
		fill(here, sizes[i], i);
		POST(&bed, fi_write(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		alone(&bed, 1);
		SAME(there, sizes[i], i);
		memset(here, 0, sizes[i]);
		POST(&bed, fi_read(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(2)));
		alone(&bed, 2);
		SAME(here, sizes[i], i);
	}
	close_window(&bed, &w);
}

static void immediate_data(void)
{
	struct iovec iov = { here, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
	struct window w;
	struct bed bed;
	uint64_t mask;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	if (!bed.info->domain_attr->cq_data_size)
		SKIP("no remote CQ data");
	mask = bed.info->domain_attr->cq_data_size >= 8 ? UINT64_MAX : (1ull << 8 * bed.info->domain_attr->cq_data_size) - 1;
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	EACH_SIZE(i) {
		uint64_t data = (0x1122334455667788ull + i) & mask;

		memset(there, 0, sizes[i]);
		fill(here, sizes[i], i);
		TRY(&bed, fi_writedata(ep, here, sizes[i], desc, data, peer, w.remote.base, w.remote.key, ctx(1)));
		target_event(&bed, data, sizes[i]);
		SAME(there, sizes[i], i); /* the event tells that the data is there */
		wrote(&bed, 1);
		iov.iov_len = part.len = sizes[i];
		msg.data = data ^ 1;
		msg.context = ctx(2);
		POST(&bed, fi_writemsg(ep, &msg, FI_REMOTE_CQ_DATA));
		target_event(&bed, data ^ 1, sizes[i]);
		wrote(&bed, 2);
		if (sizes[i] <= bed.info->tx_attr->inject_size) {
			POST(&bed, fi_inject_writedata(ep, here, sizes[i], data ^ 2, peer, w.remote.base, w.remote.key));
			target_event(&bed, data ^ 2, sizes[i]);
		}
	}
	TRY(&bed, fi_writedata(ep, NULL, 0, desc, 5, peer, w.remote.base, w.remote.key, ctx(1)));
	target_event(&bed, 5, 0);
	wrote(&bed, 1);
	NO_COMPLETION(&bed, bed.side[0].tx);
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_window(&bed, &w);
}

/* By default, the remote endpoint does not generate an event. */
static void target_is_not_told(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	EACH_SIZE(i) {
		POST(&bed, fi_write(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		wrote(&bed, 1);
		POST(&bed, fi_read(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		have_read(&bed, 1);
	}
	NO_COMPLETION(&bed, bed.side[1].rx);
	NO_COMPLETION(&bed, bed.side[1].tx);
	close_window(&bed, &w);
}

/* ---- completions ---- */

static void selective(void)
{
	struct iovec iov = { here, 100 };
	struct fi_rma_iov part = { .len = 100 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
	struct setup s = usual;
	struct window w;
	struct bed bed;

	s.tx_bind = FI_SELECTIVE_COMPLETION;
	w = open_usual(&bed, &s, OPEN_TO_ALL);
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	memset(there, 0, 100);
	fill(here, 100, 1);
	POST(&bed, fi_write(ep, here, 100, desc, peer, w.remote.base, w.remote.key, ctx(1)));
	UNTIL(&bed, mismatch(there, 100, 1) < 0);
	memset(here, 0, 100);
	POST(&bed, fi_read(ep, here, 100, desc, peer, w.remote.base, w.remote.key, ctx(2)));
	UNTIL(&bed, mismatch(here, 100, 1) < 0);
	NO_COMPLETION(&bed, bed.side[0].tx);
	POST(&bed, fi_writemsg(ep, &msg, FI_COMPLETION));
	wrote(&bed, 3);
	POST(&bed, fi_readmsg(ep, &msg, FI_COMPLETION));
	have_read(&bed, 3);
	POST(&bed, fi_writemsg(ep, &msg, 0));
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_window(&bed, &w);
}

static void delivery_complete(void)
{
	struct iovec iov = { here, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	EACH_SIZE(i) {
		memset(there, 0, sizes[i]);
		fill(here, sizes[i], i);
		iov.iov_len = part.len = sizes[i];
		TRY(&bed, fi_writemsg(ep, &msg, FI_DELIVERY_COMPLETE));
		wrote(&bed, 3);
		SAME(there, sizes[i], i);
	}
	close_window(&bed, &w);
}

static void more_to_come(void)
{
	struct iovec iov = { here, 8 };
	struct fi_rma_iov part = { .len = 8 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
	struct window w;
	struct bed bed;
	int i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	part.key = w.remote.key;
	msg.addr = peer;
	fill(here, 80, 4);
	memset(there, 0, 80);
	for (i = 0; i < 10; i++) {
		iov.iov_base = here + 8 * i;
		part.addr = w.remote.base + 8 * (uint64_t) i;
		msg.context = ctx(i);
		TRY(&bed, fi_writemsg(ep, &msg, i < 9 ? FI_MORE : 0));
	}
	for (i = 0; i < 10; i++) {
		struct fi_cq_tagged_entry entry;

		CHECK(next(&bed, bed.side[0].tx, &entry) == 1, "no completion");
	}
	UNTIL(&bed, mismatch(there, 80, 4) < 0);
	close_window(&bed, &w);
}

/* More at once than any queue holds. */
static void a_flood(void)
{
	enum { COUNT = 25000 };
	struct fi_cq_tagged_entry entry;
	struct window w;
	struct bed bed;
	int posted = 0, ended = 0;
	long until = now_ms() + 4 * GIVE_UP_MS;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	fill(here, SIZE, 7);
	memset(there, 0, SIZE);
	while (ended < COUNT && now_ms() < until) {
		ssize_t ret = -FI_EAGAIN;

		if (posted < COUNT) {
			size_t at = (size_t) (posted % (SIZE / 50)) * 50;

			ret = fi_write(ep, here + at, 50, desc, peer, w.remote.base + at, w.remote.key, ctx(1));
			CHECK(ret == 0 || ret == -FI_EAGAIN, "fi_write: %zd", ret);
			posted += ret == 0;
		}
		if (ret) {
			progress(&bed);
			while ((ret = fi_cq_read(bed.side[0].tx, &entry, 1)) == 1)
				ended++;
			CHECK(ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
		}
	}
	CHECK(ended == COUNT, "%d of %d writes ended", ended, COUNT);
	UNTIL(&bed, mismatch(there, SIZE / 50 * 50, 7) < 0);
	close_window(&bed, &w);
}

static const struct test tests[] = {
	TEST(immediate_data), TEST(target_is_not_told), TEST(without_the_target), TEST(selective), TEST(delivery_complete),
	TEST(more_to_come), TEST(a_flood),
};

CASES(tests)

/* fi_rma(3): reading and writing a peer's memory. */
#include "remote.h"
#include <sys/mman.h>

#define SIZE (1 << 20)

static const struct setup usual = { .more_caps = FI_RMA };
static char here[SIZE] __attribute__((aligned(64)));
static char there[SIZE] __attribute__((aligned(64)));
static char expected[SIZE];

static struct fid_ep *ep;
static fi_addr_t peer;

static struct window open_usual(struct bed *bed, const struct setup *setup, uint64_t access)
{
	open_bed(bed, setup);
	ep = bed->side[0].ep;
	peer = bed->side[1].addr;
	return expose(bed, 1, there, sizeof(there), access);
}

static void close_usual(struct bed *bed, struct window *w)
{
	conceal(w);
	close_bed(bed);
}

static void wrote(struct bed *bed, int context)
{
	struct fi_cq_tagged_entry entry = COMPLETION(bed, bed->side[0].tx, ctx(context));

	CHECK((entry.flags & (FI_RMA | FI_WRITE | FI_READ)) == (FI_RMA | FI_WRITE), "flags 0x%llx of a write",
	      (unsigned long long) entry.flags);
}

static void have_read(struct bed *bed, int context)
{
	struct fi_cq_tagged_entry entry = COMPLETION(bed, bed->side[0].tx, ctx(context));

	CHECK((entry.flags & (FI_RMA | FI_WRITE | FI_READ)) == (FI_RMA | FI_READ), "flags 0x%llx of a read",
	      (unsigned long long) entry.flags);
}

/* ---- the calls ---- */

static const size_t sizes[] = { 1, 3, 8, 64, 200, 1000, 4096, 4097, 8192, 10000, 16384, 16385, 65536, 100001, SIZE };
#define EACH_SIZE(i) for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)

static void writes(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, WRITABLE);
	EACH_SIZE(i) {
		memset(there, 0, SIZE);
		fill(here, sizes[i], i);
		TRY(&bed, fi_write(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		wrote(&bed, 1);
		UNTIL(&bed, mismatch(there, sizes[i], i) < 0);
		CHECK(sizes[i] == SIZE || there[sizes[i]] == 0, "wrote more than %zu bytes", sizes[i]);
	}
	close_usual(&bed, &w);
}

static void reads(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, READABLE);
	EACH_SIZE(i) {
		memset(here, 0, SIZE);
		fill(there, sizes[i], i);
		TRY(&bed, fi_read(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		have_read(&bed, 1);
		SAME(here, sizes[i], i);
		CHECK(sizes[i] == SIZE || here[sizes[i]] == 0, "read more than %zu bytes", sizes[i]);
	}
	close_usual(&bed, &w);
}

static void at_an_offset(void)
{
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	memset(there, 0, SIZE);
	fill(here, 100, 1);
	POST(&bed, fi_write(ep, here, 100, NULL, peer, w.remote.base + 777, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	UNTIL(&bed, mismatch(there + 777, 100, 1) < 0);
	CHECK(!there[776] && !there[877], "bytes beside the place were changed");
	POST(&bed, fi_read(ep, here + 500, 50, NULL, peer, w.remote.base + 777, w.remote.key, ctx(2)));
	have_read(&bed, 2);
	SAME(here + 500, 50, 1);
	/* The last byte is a part of the region. */
	POST(&bed, fi_write(ep, here, 1, NULL, peer, w.remote.base + SIZE - 1, w.remote.key, ctx(3)));
	wrote(&bed, 3);
	UNTIL(&bed, there[SIZE - 1] == here[0]);
	close_usual(&bed, &w);
}

static void to_itself(void)
{
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	conceal(&w);
	w = expose(&bed, 0, there, sizeof(there), OPEN_TO_ALL);
	memset(there, 0, SIZE);
	fill(here, 5000, 1);
	POST(&bed, fi_write(ep, here, 5000, NULL, bed.side[0].addr, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	UNTIL(&bed, mismatch(there, 5000, 1) < 0);
	POST(&bed, fi_read(ep, here + 5000, 5000, NULL, bed.side[0].addr, w.remote.base, w.remote.key, ctx(1)));
	have_read(&bed, 1);
	SAME(here + 5000, 5000, 1);
	close_usual(&bed, &w);
}

/* Cuts memory into pieces, the last of which takes what is left. */
static size_t cut(struct iovec *iov, char *base, size_t len, size_t count)
{
	size_t i, piece = len / count / 2, at = 0;

	for (i = 0; i < count; i++) {
		iov[i].iov_base = base + at;
		iov[i].iov_len = i + 1 < count ? piece + i : len - at;
		at += iov[i].iov_len;
	}
	return count;
}

static void vectors(void)
{
	struct iovec iov[16];
	struct window w;
	struct bed bed;
	size_t limit, count;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	limit = bed.info->tx_attr->iov_limit;
	CHECK(limit >= 1, "iov_limit is 0");
	for (count = 1; count <= limit && count <= 16; count++) {
		for (i = 3; i < sizeof(sizes) / sizeof(*sizes); i++) {
			memset(there, 0, sizes[i]);
			fill(here, sizes[i], i);
			cut(iov, here, sizes[i], count);
			POST(&bed, fi_writev(ep, iov, NULL, count, peer, w.remote.base, w.remote.key, ctx(1)));
			wrote(&bed, 1);
			UNTIL(&bed, mismatch(there, sizes[i], i) < 0);
			memset(here, 0, sizes[i]);
			POST(&bed, fi_readv(ep, iov, NULL, count, peer, w.remote.base, w.remote.key, ctx(2)));
			have_read(&bed, 2);
			SAME(here, sizes[i], i);
		}
	}
	close_usual(&bed, &w);
}

/* Both sides in pieces that do not fall together, the remote ones in regions of their own. */
static void message_structures(void)
{
	struct fi_rma_iov parts[4];
	struct window w[4];
	struct iovec iov[4];
	struct bed bed;
	size_t pieces, remote, local, i, n, len, at;

	open_bed(&bed, &usual);
	ep = bed.side[0].ep;
	peer = bed.side[1].addr;
	remote = bed.info->tx_attr->rma_iov_limit;
	local = bed.info->tx_attr->iov_limit;
	CHECK(remote >= 1, "rma_iov_limit is 0");
	if (remote > 4)
		remote = 4;
	if (local > 4)
		local = 4;
	for (i = 0; i < 4; i++)
		w[i] = expose(&bed, 1, there + i * (SIZE / 4), SIZE / 4, OPEN_TO_ALL);
	for (pieces = 1; pieces <= remote; pieces++) {
		for (n = 0; n < sizeof(sizes) / sizeof(*sizes); n++) {
			struct fi_msg_rma msg = { .msg_iov = iov, .addr = peer, .rma_iov = parts, .rma_iov_count = pieces };

			len = sizes[n] / 4;
			if (len < 8)
				continue;
			memset(there, 0, SIZE);
			for (i = at = 0; i < pieces; i++) {
				parts[i].addr = w[i].remote.base + 10 * i;
				parts[i].key = w[i].remote.key;
				parts[i].len = i + 1 < pieces ? len / (pieces + 1) : len - at;
				at += parts[i].len;
			}
			msg.iov_count = cut(iov, here, len, pieces % local + 1);
			fill(here, len, (unsigned) n);
			msg.context = ctx(1);
			POST(&bed, fi_writemsg(ep, &msg, 0));
			wrote(&bed, 1);
			memset(here, 0, len);
			msg.context = ctx(2);
			POST(&bed, fi_readmsg(ep, &msg, FI_FENCE));
			have_read(&bed, 2);
			SAME(here, len, (unsigned) n);
			for (i = at = 0; i < pieces; at += parts[i++].len)
				CHECK(!memcmp(there + i * (SIZE / 4) + 10 * i, here + at, parts[i].len), "piece %zu of %zu is elsewhere", i, pieces);
		}
	}
	for (i = 0; i < 4; i++)
		conceal(&w[i]);
	close_bed(&bed);
}

static void too_many_pieces(void)
{
	struct fi_rma_iov parts[64];
	struct iovec iov[64];
	struct window w;
	struct bed bed;
	size_t i, limit;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	for (i = 0; i < 64; i++) {
		iov[i] = (struct iovec) { here + i, 1 };
		parts[i] = (struct fi_rma_iov) { w.remote.base + i, 1, w.remote.key };
	}
	limit = bed.info->tx_attr->iov_limit;
	if (limit < 64) {
		struct fi_msg_rma msg = { .msg_iov = iov, .iov_count = limit + 1, .addr = peer, .rma_iov = parts, .rma_iov_count = 1 };

		parts[0].len = limit + 1;
		FAILS(fi_writev(ep, iov, NULL, limit + 1, peer, w.remote.base, w.remote.key, ctx(1)));
		FAILS(fi_readv(ep, iov, NULL, limit + 1, peer, w.remote.base, w.remote.key, ctx(1)));
		FAILS(fi_writemsg(ep, &msg, 0));
		FAILS(fi_readmsg(ep, &msg, 0));
	}
	limit = bed.info->tx_attr->rma_iov_limit;
	if (limit < 64) {
		struct fi_msg_rma msg = { .msg_iov = iov, .iov_count = 1, .addr = peer, .rma_iov = parts, .rma_iov_count = limit + 1 };

		parts[0].len = 1;
		iov[0].iov_len = limit + 1;
		FAILS(fi_writemsg(ep, &msg, 0));
		FAILS(fi_readmsg(ep, &msg, 0));
	}
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_usual(&bed, &w);
}

static void lengths_must_agree(void)
{
	struct iovec iov = { here, 10 };
	struct fi_rma_iov part = { .len = 11 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
	struct window w;
	struct bed bed;

	if (!strict)
		SKIP("the page does not say so");
	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	GIVES(-FI_EINVAL, fi_writemsg(ep, &msg, 0));
	GIVES(-FI_EINVAL, fi_readmsg(ep, &msg, 0));
	close_usual(&bed, &w);
}

static void nothing_at_all(void)
{
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .rma_iov = &part, .rma_iov_count = 1 };
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	memset(there, 5, 100);
	POST(&bed, fi_write(ep, NULL, 0, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	POST(&bed, fi_read(ep, NULL, 0, NULL, peer, w.remote.base + SIZE, w.remote.key, ctx(2)));
	have_read(&bed, 2);
	/* For 0-byte operations, msg_iov, desc, and iov_count may be ignored. */
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	msg.context = ctx(3);
	POST(&bed, fi_writemsg(ep, &msg, 0));
	wrote(&bed, 3);
	msg.context = ctx(4);
	POST(&bed, fi_readmsg(ep, &msg, 0));
	have_read(&bed, 4);
	CHECK(there[0] == 5 && there[99] == 5, "memory was changed");
	close_usual(&bed, &w);
}

/* ---- inject ---- */

static void inject_frees_the_buffer(void)
{
	struct window w;
	struct bed bed;
	size_t limit, len;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	limit = bed.info->tx_attr->inject_size;
	if (!limit)
		SKIP("nothing can be injected");
	for (len = 1; len <= limit; len = len < limit && 3 * len > limit ? limit : 3 * len) {
		memset(there, 0, limit);
		fill(here, len, (unsigned) len);
		TRY(&bed, fi_inject_write(ep, here, len, peer, w.remote.base, w.remote.key));
		memset(here, 0xee, len);
		UNTIL(&bed, mismatch(there, len, (unsigned) len) < 0);
	}
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_usual(&bed, &w);
}

static void inject_beyond_its_limit(void)
{
	struct iovec iov = { here, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
	struct window w;
	struct bed bed;

	if (!strict)
		SKIP("the page does not say what happens");
	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	iov.iov_len = part.len = bed.info->tx_attr->inject_size + 1;
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	GIVES(-FI_EMSGSIZE, fi_inject_write(ep, here, part.len, peer, w.remote.base, w.remote.key));
	GIVES(-FI_EMSGSIZE, fi_inject_writedata(ep, here, part.len, 1, peer, w.remote.base, w.remote.key));
	GIVES(-FI_EMSGSIZE, fi_writemsg(ep, &msg, FI_INJECT));
	close_usual(&bed, &w);
}

static void inject_flag_completes(void)
{
	struct iovec iov = { here, 40 };
	struct fi_rma_iov part = { .len = 40 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	memset(there, 0, 40);
	fill(here, 40, 3);
	TRY(&bed, fi_writemsg(ep, &msg, FI_INJECT));
	memset(here, 0, 40);
	wrote(&bed, 3);
	UNTIL(&bed, mismatch(there, 40, 3) < 0);
	close_usual(&bed, &w);
}

/* FI_INJECT among the endpoint's own flags holds for the calls that have none. */
static void inject_by_default(void)
{
	struct setup s = usual;
	struct window w;
	struct bed bed;
	char in[64];

	s.tx_flags = FI_INJECT;
	w = open_usual(&bed, &s, OPEN_TO_ALL);
	memset(there, 0, 64);
	fill(here, 64, 1);
	POST(&bed, fi_write(ep, here, 64, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	memset(here, 0, 64);
	wrote(&bed, 1);
	UNTIL(&bed, mismatch(there, 64, 1) < 0);
	fill(here, 64, 2);
	POST(&bed, fi_tsend(ep, here, 64, NULL, peer, 1, ctx(2)));
	memset(here, 0, 64);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 64, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	SAME(in, 64, 2);
	close_usual(&bed, &w);
}

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

static void immediate_data(void)
{
	struct iovec iov = { here, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
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
		TRY(&bed, fi_writedata(ep, here, sizes[i], NULL, data, peer, w.remote.base, w.remote.key, ctx(1)));
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
	TRY(&bed, fi_writedata(ep, NULL, 0, NULL, 5, peer, w.remote.base, w.remote.key, ctx(1)));
	target_event(&bed, 5, 0);
	wrote(&bed, 1);
	NO_COMPLETION(&bed, bed.side[0].tx);
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_usual(&bed, &w);
}

/* By default, the remote endpoint does not generate an event. */
static void target_is_not_told(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	EACH_SIZE(i) {
		POST(&bed, fi_write(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		wrote(&bed, 1);
		POST(&bed, fi_read(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		have_read(&bed, 1);
	}
	NO_COMPLETION(&bed, bed.side[1].rx);
	NO_COMPLETION(&bed, bed.side[1].tx);
	close_usual(&bed, &w);
}

/* ---- completions ---- */

static void selective(void)
{
	struct iovec iov = { here, 100 };
	struct fi_rma_iov part = { .len = 100 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
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
	POST(&bed, fi_write(ep, here, 100, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	UNTIL(&bed, mismatch(there, 100, 1) < 0);
	memset(here, 0, 100);
	POST(&bed, fi_read(ep, here, 100, NULL, peer, w.remote.base, w.remote.key, ctx(2)));
	UNTIL(&bed, mismatch(here, 100, 1) < 0);
	NO_COMPLETION(&bed, bed.side[0].tx);
	POST(&bed, fi_writemsg(ep, &msg, FI_COMPLETION));
	wrote(&bed, 3);
	POST(&bed, fi_readmsg(ep, &msg, FI_COMPLETION));
	have_read(&bed, 3);
	POST(&bed, fi_writemsg(ep, &msg, 0));
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_usual(&bed, &w);
}

static void delivery_complete(void)
{
	struct iovec iov = { here, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
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
	close_usual(&bed, &w);
}

static void more_to_come(void)
{
	struct iovec iov = { here, 8 };
	struct fi_rma_iov part = { .len = 8 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
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
	close_usual(&bed, &w);
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

			ret = fi_write(ep, here + at, 50, NULL, peer, w.remote.base + at, w.remote.key, ctx(1));
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
	close_usual(&bed, &w);
}

/* ---- order ---- */

static bool ordered(struct bed *bed, uint64_t bits)
{
	return (bed->info->tx_attr->msg_order & bed->info->rx_attr->msg_order & bits) != 0;
}

#define WAW (FI_ORDER_WAW | FI_ORDER_RMA_WAW)
#define RAW (FI_ORDER_RAW | FI_ORDER_RMA_RAW)
#define WAR (FI_ORDER_WAR | FI_ORDER_RMA_WAR)

static void drain(struct bed *bed, int count)
{
	struct fi_cq_tagged_entry entry;

	for (; count > 0; count--)
		CHECK(next(bed, bed->side[0].tx, &entry) == 1, "%d completions are missing", count);
}

static size_t order_size(size_t most)
{
	return most && most < SIZE ? most : SIZE;
}

/* A long write and short ones into the middle of it: what was posted last stays. */
static void write_after_write(void)
{
	struct window w;
	struct bed bed;
	size_t len, i;
	int round;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, WAW), "no FI_ORDER_WAW");
	len = order_size(bed.info->ep_attr->max_order_waw_size);
	for (round = 0; round < 10; round++) {
		memset(here, round, len);
		memset(expected, 100 + round, 64);
		POST(&bed, fi_write(ep, here, len, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		for (i = 0; i < 4; i++)
			POST(&bed, fi_write(ep, expected, 64, NULL, peer, w.remote.base + len / 4 * i, w.remote.key, ctx(1)));
		drain(&bed, 5);
		POST(&bed, fi_read(ep, here, len, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		drain(&bed, 1);
		UNTIL(&bed, there[len / 4 * 3] == 100 + round);
		for (i = 0; i < len; i++)
			CHECK(there[i] == (i % (len / 4) < 64 && i / (len / 4) < 4 ? 100 + round : round), "byte %zu is %d", i, there[i]);
	}
	close_usual(&bed, &w);
}

static void read_after_write(void)
{
	struct window w;
	struct bed bed;
	size_t lens[] = { 8, 5000, 200000 }, len, i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, RAW), "no FI_ORDER_RAW");
	for (i = 0; i < 30; i++) {
		len = order_size(bed.info->ep_attr->max_order_raw_size);
		len = len < lens[i % 3] ? len : lens[i % 3];
		memset(there, 0, len);
		memset(expected, 0, len);
		fill(here, len, (unsigned) i);
		POST(&bed, fi_write(ep, here, len, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		POST(&bed, fi_read(ep, expected, len, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		drain(&bed, 2);
		SAME(expected, len, (unsigned) i);
	}
	close_usual(&bed, &w);
}

static void write_after_read(void)
{
	struct window w;
	struct bed bed;
	size_t lens[] = { 8, 5000, 200000 }, len, i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, WAR), "no FI_ORDER_WAR");
	for (i = 0; i < 30; i++) {
		len = order_size(bed.info->ep_attr->max_order_war_size);
		len = len < lens[i % 3] ? len : lens[i % 3];
		fill(there, len, 1000 + (unsigned) i);
		memset(expected, 0, len);
		fill(here, len, (unsigned) i);
		POST(&bed, fi_read(ep, expected, len, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		POST(&bed, fi_write(ep, here, len, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		drain(&bed, 2);
		SAME(expected, len, 1000 + (unsigned) i);
		UNTIL(&bed, mismatch(there, len, (unsigned) i) < 0);
	}
	close_usual(&bed, &w);
}

/* A message that was sent after a write tells that the write is done. */
static void send_after_write(void)
{
	struct window w;
	struct bed bed;
	unsigned i;
	char note;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(ordered(&bed, FI_ORDER_SAW), "no FI_ORDER_SAW");
	EACH_SIZE(i) {
		POST(&bed, fi_trecv(bed.side[1].ep, &note, 1, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
		memset(there, 0, sizes[i]);
		fill(here, sizes[i], i);
		POST(&bed, fi_write(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		POST(&bed, fi_tsend(ep, here, 1, NULL, peer, 1, ctx(2)));
		COMPLETION(&bed, bed.side[1].rx, ctx(3));
		SAME(there, sizes[i], i);
		drain(&bed, 2);
	}
	close_usual(&bed, &w);
}

/* A fenced operation sees the results of all before it, whatever the order otherwise. */
static void fence(void)
{
	struct iovec iov = { expected, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
	struct setup s = usual;
	struct window w;
	struct bed bed;
	unsigned i;

	s.more_caps |= FI_FENCE;
	w = open_usual(&bed, &s, OPEN_TO_ALL);
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = peer;
	EACH_SIZE(i) {
		memset(there, 0, sizes[i]);
		fill(here, sizes[i], i);
		iov.iov_len = part.len = sizes[i];
		POST(&bed, fi_write(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		TRY(&bed, fi_readmsg(ep, &msg, FI_FENCE));
		wrote(&bed, 1); /* which has ended before the read began */
		have_read(&bed, 3);
		SAME(expected, sizes[i], i);
	}
	close_usual(&bed, &w);
}

/* ---- refusals ---- */

enum what { READ, WRITE, INJECT };

static void refused(struct bed *bed, enum what what, uint64_t addr, size_t len, uint64_t key, int error, int line)
{
	struct fi_cq_err_entry err;

	memset(here, 0x77, SIZE);
	memset(there, 0x55, SIZE);
	switch (what) {
	case READ: POST(bed, fi_read(ep, here, len, NULL, peer, addr, key, ctx(9))); break;
	case WRITE: POST(bed, fi_write(ep, here, len, NULL, peer, addr, key, ctx(9))); break;
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
	POST(bed, fi_write(ep, here, 5000, NULL, peer, w->remote.base, w->remote.key, ctx(1)));
	wrote(bed, 1);
	UNTIL(bed, mismatch(there, 5000, 9) < 0);
	ping(bed, 0, 1);
	ping(bed, 1, 0);
}

static const size_t few[] = { 1, 300, 6000, 500000 };

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
	close_usual(&bed, &w);
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
	close_usual(&bed, &w);
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
	close_usual(&bed, &w);
}

static void one_piece_is_bad(void)
{
	struct iovec iov = { here, 2000 };
	struct fi_rma_iov parts[2];
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = parts, .rma_iov_count = 2, .context = ctx(5) };
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
	close_usual(&bed, &w);
}

static void a_closed_key(void)
{
	struct window w, other;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	other = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	POST(&bed, fi_write(ep, here, 100, NULL, peer, other.remote.base, other.remote.key, ctx(1)));
	wrote(&bed, 1);
	settle(&bed);
	conceal(&other);
	REFUSED(READ, other.remote.base, 100, other.remote.key, FI_EKEYREJECTED);
	REFUSED(WRITE, other.remote.base, 100000, other.remote.key, FI_EKEYREJECTED);
	works(&bed, &w);
	close_usual(&bed, &w);
}

/* The target closes regions and unmaps them while the initiator reads and writes. */
static void close_in_the_middle_body(struct bed *bed, int me, int pipe)
{
	enum { ROUNDS = 30, AT_ONCE = 16, LEN = 300000 };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct remote remote;
	int round, i, good = 0;

	for (round = 0; round < ROUNDS; round++) {
		if (me) {
			char *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			struct window w;

			CHECK(memory != MAP_FAILED, "mmap");
			memset(memory, round, LEN);
			w = expose(bed, 0, memory, LEN, OPEN_TO_ALL);
			pipe_send(pipe, &w.remote, sizeof(w.remote));
			for (i = 0; i < round * 3; i++)
				progress(bed);
			conceal(&w);
			munmap(memory, LEN);
			meet(bed, pipe);
			continue;
		}
		pipe_recv(pipe, &remote, sizeof(remote));
		memset(there, round, LEN);
		for (i = 0; i < AT_ONCE; i++) {
			char *part = here + i * (SIZE / AT_ONCE);
			size_t len = i % 4 == 3 ? 60 : SIZE / AT_ONCE - 1;

			if (i % 2)
				POST(bed, fi_read(bed->side[0].ep, part, len, NULL, bed->peer, remote.base, remote.key, ctx(i)));
			else
				POST(bed, fi_write(bed->side[0].ep, there, len, NULL, bed->peer, remote.base + 100, remote.key, ctx(i)));
		}
		for (i = 0; i < AT_ONCE; i++) {
			ssize_t ret = next(bed, bed->side[0].tx, &entry);

			if (ret == -FI_EAVAIL) {
				memset(&err, 0, sizeof(err));
				CHECK(fi_cq_readerr(bed->side[0].tx, &err, 0) == 1, "no error entry");
				CHECK(!strict || err.err == FI_EKEYREJECTED, "error %d (%s)", err.err, fi_strerror(err.err));
				continue;
			}
			CHECK(ret == 1, "operation %d of round %d does not end: %zd", i, round, ret);
			good++;
			if (entry.flags & FI_READ)
				CHECK(here[((char *) entry.op_context - (char *) ctx(0)) / (long) sizeof(struct fi_context2) * (SIZE / AT_ONCE)] == round, "read something else");
		}
		meet(bed, pipe);
	}
}

static void close_in_the_middle(void)
{
	in_two(&usual, close_in_the_middle_body);
}

/* ---- counters ---- */

static struct fid_cntr *counter(struct bed *bed, int side, uint64_t flags, enum fi_cntr_events events)
{
	struct fi_cntr_attr attr = { .events = events };
	struct fid_cntr *cntr;

	OK(fi_cntr_open(bed->domain, &attr, &cntr, NULL));
	OK(fi_ep_bind(bed->side[side].ep, &cntr->fid, flags));
	return cntr;
}

struct counted {
	struct fid_cntr *read, *write, *remote_read, *remote_write, *send, *recv;
};

static struct window open_counted(struct bed *bed, const struct setup *s, struct counted *c, enum fi_cntr_events events)
{
	open_sides(bed, s);
	c->read = counter(bed, 0, FI_READ, events);
	c->write = counter(bed, 0, FI_WRITE, events);
	c->send = counter(bed, 0, FI_SEND, events);
	c->remote_read = counter(bed, 1, FI_REMOTE_READ, events);
	c->remote_write = counter(bed, 1, FI_REMOTE_WRITE, events);
	c->recv = counter(bed, 1, FI_RECV, events);
	enable_sides(bed, s);
	ep = bed->side[0].ep;
	peer = bed->side[1].addr;
	return expose(bed, 1, there, SIZE, OPEN_TO_ALL);
}

static void close_counted(struct bed *bed, struct window *w, struct counted *c)
{
	struct fid_cntr *all[] = { c->read, c->write, c->remote_read, c->remote_write, c->send, c->recv };
	int i;

	conceal(w);
	for (i = 0; i < bed->sides; i++) {
		OK(fi_close(&bed->side[i].ep->fid));
		bed->side[i].ep = NULL;
	}
	for (i = 0; i < 6; i++)
		OK(fi_close(&all[i]->fid));
	close_bed(bed);
}

static void counts(struct bed *bed, struct counted *c, uint64_t reads, uint64_t writes, int line)
{
	long until = now_ms() + GIVE_UP_MS;
	uint64_t found[6] = { 0 };

	while (now_ms() < until) {
		found[0] = fi_cntr_read(c->read);
		found[1] = fi_cntr_read(c->write);
		found[2] = fi_cntr_read(c->remote_read);
		found[3] = fi_cntr_read(c->remote_write);
		if (found[0] >= reads && found[1] >= writes && found[2] >= reads && found[3] >= writes)
			break;
		progress(bed);
	}
	settle(bed);
	found[2] = fi_cntr_read(c->remote_read);
	found[3] = fi_cntr_read(c->remote_write);
	CHECK(found[0] == reads && found[1] == writes, "line %d: %llu reads, %llu writes are counted", line,
	      (unsigned long long) found[0], (unsigned long long) found[1]);
	CHECK(found[2] == reads && found[3] == writes, "line %d: %llu reads, %llu writes are counted at the target", line,
	      (unsigned long long) found[2], (unsigned long long) found[3]);
	CHECK(fi_cntr_read(c->send) == 0 && fi_cntr_read(c->recv) == 0, "line %d: counted as messages", line);
}

static const struct setup events = { .more_caps = FI_RMA | FI_RMA_EVENT };

static void counters(void)
{
	struct counted c;
	struct window w;
	struct bed bed;
	unsigned i;
	uint64_t reads = 0, writes = 0;

	w = open_counted(&bed, &events, &c, FI_CNTR_EVENTS_COMP);
	EACH_SIZE(i) {
		POST(&bed, fi_write(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		wrote(&bed, 1);
		counts(&bed, &c, reads, ++writes, __LINE__);
		POST(&bed, fi_read(ep, here, sizes[i], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
		have_read(&bed, 1);
		counts(&bed, &c, ++reads, writes, __LINE__);
	}
	POST(&bed, fi_inject_write(ep, here, 8, peer, w.remote.base, w.remote.key));
	counts(&bed, &c, reads, ++writes, __LINE__);
	close_counted(&bed, &w, &c);
}

#if HEADERS_2
static void counters_of_bytes(void)
{
	struct counted c;
	struct window w;
	struct bed bed;

	w = open_counted(&bed, &events, &c, FI_CNTR_EVENTS_BYTES);
	POST(&bed, fi_write(ep, here, 1000, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	POST(&bed, fi_write(ep, here, 500000, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	POST(&bed, fi_read(ep, here, 30, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	have_read(&bed, 1);
	POST(&bed, fi_read(ep, here, 70000, NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	have_read(&bed, 1);
	counts(&bed, &c, 70030, 501000, __LINE__);
	close_counted(&bed, &w, &c);
}
#endif

static void errors_are_counted(void)
{
	struct counted c;
	struct window w;
	struct bed bed;

	w = open_counted(&bed, &events, &c, FI_CNTR_EVENTS_COMP);
	POST(&bed, fi_write(ep, here, 100, NULL, peer, w.remote.base, w.remote.key + 1, ctx(1)));
	ERROR_COMPLETION(&bed, bed.side[0].tx);
	POST(&bed, fi_read(ep, here, 100, NULL, peer, w.remote.base, w.remote.key + 1, ctx(1)));
	ERROR_COMPLETION(&bed, bed.side[0].tx);
	counts(&bed, &c, 0, 0, __LINE__);
	CHECK(fi_cntr_readerr(c.write) == 1 && fi_cntr_readerr(c.read) == 1, "%llu and %llu errors",
	      (unsigned long long) fi_cntr_readerr(c.write), (unsigned long long) fi_cntr_readerr(c.read));
	close_counted(&bed, &w, &c);
}

/* A counter of a region counts what is written into it, and waiting for it is enough for that to happen. */
static void counter_of_a_region(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	struct window w;
	struct bed bed;
	int ret, i;

	w = open_usual(&bed, &events, OPEN_TO_ALL);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	if (bed.info->domain_attr->mr_mode & FI_MR_ENDPOINT)
		SKIP("bound before it is enabled");
	ret = fi_mr_bind(w.mr, &cntr->fid, FI_REMOTE_WRITE);
	NEED(!lacking(ret), "fi_mr_bind: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_mr_bind: %d", ret);
	for (i = 0; i < 5; i++)
		POST(&bed, fi_write(ep, here, few[i % 4], NULL, peer, w.remote.base, w.remote.key, ctx(1)));
	POST(&bed, fi_read(ep, here, 100, NULL, peer, w.remote.base, w.remote.key, ctx(2)));
	GIVES(0, fi_cntr_wait(cntr, 5, GIVE_UP_MS));
	drain(&bed, 6);
	settle(&bed);
	CHECK(fi_cntr_read(cntr) == 5, "%llu are counted", (unsigned long long) fi_cntr_read(cntr));
	GIVES(-FI_EBUSY, fi_close(&cntr->fid));
	conceal(&w);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

/* ---- between processes ---- */

static void between_processes_body(struct bed *bed, int me, int pipe)
{
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	struct remote remote;
	unsigned i;

	ep = bed->side[0].ep;
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote, sizeof(remote));
	EACH_SIZE(i) {
		unsigned mine = 2 * i + (unsigned) me, other = 2 * i + (unsigned) !me;

		memset(there, 0, sizes[i]);
		fill(here, sizes[i], mine);
		meet(bed, pipe);
		POST(bed, fi_write(ep, here, sizes[i], NULL, bed->peer, remote.base, remote.key, ctx(1)));
		wrote(bed, 1);
		UNTIL(bed, mismatch(there, sizes[i], other) < 0);
		meet(bed, pipe);
		POST(bed, fi_read(ep, expected, sizes[i], NULL, bed->peer, remote.base, remote.key, ctx(2)));
		have_read(bed, 2);
		SAME(expected, sizes[i], mine);
		meet(bed, pipe);
	}
	conceal(&w);
}

static void between_processes(void)
{
	in_two(&usual, between_processes_body);
}

/* Two processes that sleep until the other writes. */
static void waiting_for_writes_body(struct bed *bed, int me, int pipe)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	struct remote remote;
	struct fid_cntr *cntr;
	unsigned round;
	int ret;

	OK(fi_cntr_open(bed->domain, &attr, &cntr, NULL));
	ret = bed->info->domain_attr->mr_mode & FI_MR_ENDPOINT ? -FI_ENOSYS : fi_mr_bind(w.mr, &cntr->fid, FI_REMOTE_WRITE);
	NEED(!lacking(ret), "fi_mr_bind: %s", fi_strerror(-ret));
	OK(ret);
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote, sizeof(remote));
	for (round = 1; round <= 100; round++) {
		size_t len = sizes[round % (sizeof(sizes) / sizeof(*sizes))];

		if (me) {
			GIVES(0, fi_cntr_wait(cntr, round, GIVE_UP_MS));
			SAME(there, len, round);
		}
		fill(here, len, round);
		POST(bed, fi_write(bed->side[0].ep, here, len, NULL, bed->peer, remote.base, remote.key, ctx(1)));
		COMPLETION(bed, bed->side[0].tx, ctx(1));
		if (!me) {
			GIVES(0, fi_cntr_wait(cntr, round, GIVE_UP_MS));
			SAME(there, len, round);
		}
	}
	meet(bed, pipe);
	conceal(&w);
	OK(fi_close(&cntr->fid));
}

static void waiting_for_writes(void)
{
	in_two(&events, waiting_for_writes_body);
}

/* With FI_PROGRESS_AUTO the target does not have to call anything. */
static void auto_progress_body(struct bed *bed, int me, int pipe)
{
	struct window w;
	struct remote remote;
	unsigned i;
	char c = 'c';

	if (me) {
		fill(there, SIZE, 5);
		w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
		pipe_send(pipe, &w.remote, sizeof(w.remote));
		pipe_recv(pipe, &c, 1); /* and does nothing meanwhile */
		conceal(&w);
		return;
	}
	ep = bed->side[0].ep;
	pipe_recv(pipe, &remote, sizeof(remote));
	EACH_SIZE(i) {
		POST(bed, fi_read(ep, here, sizes[i], NULL, bed->peer, remote.base, remote.key, ctx(1)));
		have_read(bed, 1);
		SAME(here, sizes[i], 5);
		POST(bed, fi_write(ep, here, sizes[i], NULL, bed->peer, remote.base, remote.key, ctx(1)));
		wrote(bed, 1);
	}
	pipe_send(pipe, &c, 1);
}

static void auto_progress(void)
{
	struct setup s = usual;

	s.progress = FI_PROGRESS_AUTO;
	in_two(&s, auto_progress_body);
}

/* ---- who may not ---- */

static void without_the_capability(void)
{
	static const struct setup plain;
	struct bed bed;

	if (!strict)
		SKIP("the page does not say what happens");
	open_bed(&bed, &plain);
	GIVES(-FI_EOPNOTSUPP, fi_write(bed.side[0].ep, here, 1, NULL, bed.side[1].addr, 0, 0, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_read(bed.side[0].ep, here, 1, NULL, bed.side[1].addr, 0, 0, NULL));
	close_bed(&bed);
}

static void not_before_enable(void)
{
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(fi_write(bed.side[0].ep, here, 1, NULL, 0, 0, 0, NULL));
	FAILS(fi_read(bed.side[0].ep, here, 1, NULL, 0, 0, 0, NULL));
	close_bed(&bed);
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
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &target, .rma_iov_count = 1, .context = ctx(1) };
	struct fi_msg plain = { .msg_iov = &iov, .iov_count = 1, .context = ctx(2) };
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
	close_usual(&bed, &w);
}

static const struct test tests[] = {
	TEST(writes), TEST(reads), TEST(at_an_offset), TEST(to_itself), TEST(vectors), TEST(message_structures), TEST(too_many_pieces),
	TEST(lengths_must_agree), TEST(nothing_at_all),
	TEST(inject_frees_the_buffer), TEST(inject_beyond_its_limit), TEST(inject_flag_completes), TEST(inject_by_default),
	TEST(immediate_data), TEST(target_is_not_told),
	TEST(selective), TEST(delivery_complete), TEST(more_to_come), TEST(a_flood),
	TEST(write_after_write), TEST(read_after_write), TEST(write_after_read), TEST(send_after_write), TEST(fence),
	TEST(unknown_key), TEST(wrong_rights), TEST(outside_the_region), TEST(one_piece_is_bad), TEST(a_closed_key),
	TEST(close_in_the_middle),
	TEST(counters),
#if HEADERS_2
	TEST(counters_of_bytes),
#endif
	TEST(errors_are_counted), TEST(counter_of_a_region),
	TEST(between_processes), TEST(waiting_for_writes), TEST(auto_progress), TEST(without_the_capability), TEST(durable_or_refused), TEST(not_before_enable),
};

MAIN(tests)

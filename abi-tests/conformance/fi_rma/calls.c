/* Each call, at every size and in pieces, and who may not make them. */
#include "rma.h"

/* ---- the calls ---- */

static void writes(void)
{
	struct window w;
	struct bed bed;
	unsigned i;

	w = open_usual(&bed, &usual, WRITABLE);
	EACH_SIZE(i) {
		memset(there, 0, SIZE);
		fill(here, sizes[i], i);
		TRY(&bed, fi_write(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		wrote(&bed, 1);
		UNTIL(&bed, mismatch(there, sizes[i], i) < 0);
		CHECK(sizes[i] == SIZE || there[sizes[i]] == 0, "wrote more than %zu bytes", sizes[i]);
	}
	close_window(&bed, &w);
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
		TRY(&bed, fi_read(ep, here, sizes[i], desc, peer, w.remote.base, w.remote.key, ctx(1)));
		have_read(&bed, 1);
		SAME(here, sizes[i], i);
		CHECK(sizes[i] == SIZE || here[sizes[i]] == 0, "read more than %zu bytes", sizes[i]);
	}
	close_window(&bed, &w);
}

static void at_an_offset(void)
{
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	memset(there, 0, SIZE);
	fill(here, 100, 1);
	POST(&bed, fi_write(ep, here, 100, desc, peer, w.remote.base + 777, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	UNTIL(&bed, mismatch(there + 777, 100, 1) < 0);
	CHECK(!there[776] && !there[877], "bytes beside the place were changed");
	POST(&bed, fi_read(ep, here + 500, 50, desc, peer, w.remote.base + 777, w.remote.key, ctx(2)));
	have_read(&bed, 2);
	SAME(here + 500, 50, 1);
	/* The last byte is a part of the region. */
	POST(&bed, fi_write(ep, here, 1, desc, peer, w.remote.base + SIZE - 1, w.remote.key, ctx(3)));
	wrote(&bed, 3);
	UNTIL(&bed, there[SIZE - 1] == here[0]);
	close_window(&bed, &w);
}

static void to_itself(void)
{
	struct window w;
	struct bed bed;

	BY_ADDRESS;
	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	conceal(&w);
	w = expose(&bed, 0, there, sizeof(there), OPEN_TO_ALL);
	memset(there, 0, SIZE);
	fill(here, 5000, 1);
	POST(&bed, fi_write(ep, here, 5000, desc, bed.side[0].addr, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	UNTIL(&bed, mismatch(there, 5000, 1) < 0);
	POST(&bed, fi_read(ep, here + 5000, 5000, desc, bed.side[0].addr, w.remote.base, w.remote.key, ctx(1)));
	have_read(&bed, 1);
	SAME(here + 5000, 5000, 1);
	close_window(&bed, &w);
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
			POST(&bed, fi_writev(ep, iov, descs, count, peer, w.remote.base, w.remote.key, ctx(1)));
			wrote(&bed, 1);
			UNTIL(&bed, mismatch(there, sizes[i], i) < 0);
			memset(here, 0, sizes[i]);
			POST(&bed, fi_readv(ep, iov, descs, count, peer, w.remote.base, w.remote.key, ctx(2)));
			have_read(&bed, 2);
			SAME(here, sizes[i], i);
		}
	}
	close_window(&bed, &w);
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
			struct fi_msg_rma msg = { .msg_iov = iov, .desc = descs, .addr = peer, .rma_iov = parts, .rma_iov_count = pieces };

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
		struct fi_msg_rma msg = { .msg_iov = iov, .desc = descs, .iov_count = limit + 1, .addr = peer, .rma_iov = parts, .rma_iov_count = 1 };

		parts[0].len = limit + 1;
		FAILS(fi_writev(ep, iov, descs, limit + 1, peer, w.remote.base, w.remote.key, ctx(1)));
		FAILS(fi_readv(ep, iov, descs, limit + 1, peer, w.remote.base, w.remote.key, ctx(1)));
		FAILS(fi_writemsg(ep, &msg, 0));
		FAILS(fi_readmsg(ep, &msg, 0));
	}
	limit = bed.info->tx_attr->rma_iov_limit;
	if (limit < 64) {
		struct fi_msg_rma msg = { .msg_iov = iov, .desc = descs, .iov_count = 1, .addr = peer, .rma_iov = parts, .rma_iov_count = limit + 1 };

		parts[0].len = 1;
		iov[0].iov_len = limit + 1;
		FAILS(fi_writemsg(ep, &msg, 0));
		FAILS(fi_readmsg(ep, &msg, 0));
	}
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_window(&bed, &w);
}

static void lengths_must_agree(void)
{
	struct iovec iov = { here, 10 };
	struct fi_rma_iov part = { .len = 11 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
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
	close_window(&bed, &w);
}

static void nothing_at_all(void)
{
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .rma_iov = &part, .rma_iov_count = 1 };
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	memset(there, 5, 100);
	POST(&bed, fi_write(ep, NULL, 0, desc, peer, w.remote.base, w.remote.key, ctx(1)));
	wrote(&bed, 1);
	POST(&bed, fi_read(ep, NULL, 0, desc, peer, w.remote.base + SIZE, w.remote.key, ctx(2)));
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
	close_window(&bed, &w);
}

/* ---- who may not ---- */

static void without_the_capability(void)
{
	static const struct setup plain;
	struct bed bed;

	if (!strict)
		SKIP("the page does not say what happens");
	open_bed(&bed, &plain);
	GIVES(-FI_EOPNOTSUPP, fi_write(bed.side[0].ep, here, 1, desc, bed.side[1].addr, 0, 0, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_read(bed.side[0].ep, here, 1, desc, bed.side[1].addr, 0, 0, NULL));
	close_bed(&bed);
}

static void not_before_enable(void)
{
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(fi_write(bed.side[0].ep, here, 1, desc, 0, 0, 0, NULL));
	FAILS(fi_read(bed.side[0].ep, here, 1, desc, 0, 0, 0, NULL));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(writes), TEST(reads), TEST(at_an_offset), TEST(to_itself), TEST(vectors), TEST(message_structures),
	TEST(too_many_pieces), TEST(lengths_must_agree), TEST(nothing_at_all), TEST(without_the_capability),
	TEST(not_before_enable),
};

CASES(tests)

/* FI_INJECT: the buffer is free when the call returns. */
#include "rma.h"

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
	close_window(&bed, &w);
}

static void inject_beyond_its_limit(void)
{
	struct iovec iov = { here, 0 };
	struct fi_rma_iov part = { 0 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1 };
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
	close_window(&bed, &w);
}

static void inject_flag_completes(void)
{
	struct iovec iov = { here, 40 };
	struct fi_rma_iov part = { .len = 40 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(3) };
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
	close_window(&bed, &w);
}

/* FI_INJECT among the endpoint's own flags holds for the calls that have none. */
static void inject_by_default(void)
{
	struct setup s = usual;
	struct window w;
	static char in[64];
	struct bed bed;

	s.tx_flags = FI_INJECT;
	w = open_usual(&bed, &s, OPEN_TO_ALL);
	memset(there, 0, 64);
	fill(here, 64, 1);
	POST(&bed, fi_write(ep, here, 64, desc, peer, w.remote.base, w.remote.key, ctx(1)));
	memset(here, 0, 64);
	wrote(&bed, 1);
	UNTIL(&bed, mismatch(there, 64, 1) < 0);
	fill(here, 64, 2);
	POST(&bed, post_send(ep, here, 64, peer, 1, ctx(2)));
	memset(here, 0, 64);
	POST(&bed, post_recv(bed.side[1].ep, in, 64, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	SAME(in, 64, 2);
	close_window(&bed, &w);
}

static const struct test tests[] = {
	TEST(inject_frees_the_buffer), TEST(inject_beyond_its_limit), TEST(inject_flag_completes),
	TEST(inject_by_default),
};

CASES(tests)

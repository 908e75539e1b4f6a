/* Which operations are reported, and when they are complete. */
#include "cq.h"

/* ---- selective completion ---- */

static void selective_sends(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION };
	struct iovec iov = { out, 8 };
	struct bed bed;

	open_bed(&bed, &s);
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	NO_COMPLETION(&bed, bed.side[0].tx);

	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	POST(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, 1, 0, ctx(4), 0));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	NO_COMPLETION(&bed, bed.side[0].tx);

	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(5)));
	POST(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, 1, 0, ctx(6), FI_COMPLETION));
	COMPLETION(&bed, bed.side[1].rx, ctx(5));
	COMPLETION(&bed, bed.side[0].tx, ctx(6));
	close_bed(&bed);
}

static void selective_receives(void)
{
	struct setup s = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct iovec iov = { in + 64, 8 };
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;

	open_bed(&bed, &s);
	fill(out, 8, 7);
	memset(in, 0, sizeof(in));
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	while (mismatch(in, 8, 7) >= 0 && now_ms() < until)
		progress(&bed);
	SAME(in, 8, 7);
	NO_COMPLETION(&bed, bed.side[1].rx);
	POST(&bed, post_recvmsg(bed.side[1].ep, &iov, 1, FI_ADDR_UNSPEC, 1, 0, ctx(3), FI_COMPLETION));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(4)));
	COMPLETION(&bed, bed.side[0].tx, ctx(4));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	close_bed(&bed);
}

static void selective_reports_errors(void)
{
	struct setup s = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct fi_cq_err_entry err;
	struct bed bed;

	NOTHING_IS_LOST;
	open_bed(&bed, &s);
	POST(&bed, post_recv(bed.side[1].ep, in, 4, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ETRUNC, "err %d", err.err);
	close_bed(&bed);
}

static void selective_by_default_flags(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION, .tx_flags = FI_COMPLETION };
	struct bed bed;

	open_bed(&bed, &s);
	start(&bed, 1, 8, 1, 2);
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	close_bed(&bed);
}

static void inject_is_silent(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_inject(bed.side[0].ep, out, 8, bed.side[1].addr, 1));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_bed(&bed);
}

/* ---- when a send completes ---- */

static void level(uint64_t flag, bool after_match)
{
	struct iovec iov = { out, 64 };
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 64, 5);
	if (datagram_ends)
		POST(&bed, post_recv(bed.side[1].ep, in, 64, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	TRY(&bed, post_sendmsg(bed.side[0].ep, &iov, 1, bed.side[1].addr, 1, 0, ctx(2), flag | FI_COMPLETION));
	if (after_match)
		NO_COMPLETION(&bed, bed.side[0].tx);
	else if (flag == FI_INJECT_COMPLETE) /* the buffer is free when the completion is there, and nothing need match */
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	if (!datagram_ends)
		POST(&bed, post_recv(bed.side[1].ep, in, 64, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	if (flag != FI_INJECT_COMPLETE)
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	SAME(in, 64, 5);
	close_bed(&bed);
}

static void inject_complete(void) { level(FI_INJECT_COMPLETE, false); }
static void transmit_complete(void) { level(FI_TRANSMIT_COMPLETE, false); }
static void delivery_complete(void) { level(FI_DELIVERY_COMPLETE, true); }
static void match_complete(void) { level(FI_MATCH_COMPLETE, true); }

static void delivery_complete_by_default(void)
{
	struct setup s = { .tx_flags = FI_DELIVERY_COMPLETE };
	struct bed bed;

	open_bed(&bed, &s);
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	NO_COMPLETION(&bed, bed.side[0].tx);
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(selective_sends), TEST(selective_receives), TEST(selective_reports_errors),
	TEST(selective_by_default_flags), TEST(inject_is_silent), TEST(inject_complete), TEST(transmit_complete),
	TEST(delivery_complete), TEST(match_complete), TEST(delivery_complete_by_default),
};

CASES(tests)

/* fi_msg(3): messages without tags. Most of its sentences stand in fi_tagged(3) too: transfers/. */
#include "transfers/transfers.h"

enum messages of_page = PLAIN_MESSAGES;

static char in[1 << 20], out[256];

/* A message and a tagged message pass each other by. */
static void tagged_messages_do_not_match(void)
{
	struct setup s = { .caps = FI_MSG | FI_TAGGED };
	struct bed bed;

	open_bed(&bed, &s);
	fill(out, 16, 1);
	fill(out + 16, 16, 2);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 16, desc, FI_ADDR_UNSPEC, 0, ~0ULL, ctx(1)));
	POST(&bed, fi_recv(bed.side[1].ep, in + 16, 16, desc, FI_ADDR_UNSPEC, ctx(2)));
	POST(&bed, fi_send(bed.side[0].ep, out, 16, desc, bed.side[1].addr, ctx(3)));
	COMPLETION(&bed, bed.side[1].rx, ctx(2));
	SAME(in + 16, 16, 1);
	POST(&bed, fi_tsend(bed.side[0].ep, out + 16, 16, desc, bed.side[1].addr, 0, ctx(4)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	SAME(in, 16, 2);
	close_bed(&bed);
}

/* An endpoint that has messages only. */
static void without_tagged(void)
{
	struct setup s = { .caps = FI_MSG };
	struct bed bed;

	open_bed(&bed, &s);
	fill(out, 16, 1);
	POST(&bed, fi_recv(bed.side[1].ep, in, 16, desc, FI_ADDR_UNSPEC, ctx(1)));
	POST(&bed, fi_send(bed.side[0].ep, out, 16, desc, bed.side[1].addr, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	SAME(in, 16, 1);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(tagged_messages_do_not_match), TEST(without_tagged),
};

CASES(tests)

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

/* FI_MULTI_RECV as the endpoint's default flag. */
static void multi_receive_by_default(void)
{
	struct setup s = { .more_caps = FI_MULTI_RECV, .rx_flags = FI_MULTI_RECV };
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	NEED(bed.info->rx_attr->op_flags & FI_MULTI_RECV, "FI_MULTI_RECV is no default flag here");
	POST(&bed, fi_recv(bed.side[1].ep, in, sizeof(in), desc, FI_ADDR_UNSPEC, ctx(1)));
	for (i = 0; i < 2; i++) {
		POST(&bed, fi_send(bed.side[0].ep, out, 8, desc, bed.side[1].addr, ctx(2)));
		e = COMPLETION(&bed, bed.side[1].rx, ctx(1));
		CHECK(e.len == 8, "%zu bytes", e.len);
		if (e.flags & FI_MULTI_RECV)
			break; /* the default minimum may be larger than this buffer */
	}
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(tagged_messages_do_not_match), TEST(without_tagged), TEST(multi_receive_by_default),
};

CASES(tests)

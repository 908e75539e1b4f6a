/* fi_tagged(3): which receive a tag finds. The rest of the page is in transfers/. */
#include "tagged.h"

enum messages of_page = TAGGED_MESSAGES;

static void by_tag_not_by_order(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	recv_tag(&bed, 3, 0, 3);
	recv_tag(&bed, 1, 0, 1);
	recv_tag(&bed, 2, 0, 2);
	send_tag(&bed, 1, 1, 16, 11);
	got(&bed, 1, 1, 1);
	send_tag(&bed, 2, 2, 16, 12);
	got(&bed, 2, 2, 2);
	send_tag(&bed, 3, 3, 16, 13);
	got(&bed, 3, 3, 3);
	close_bed(&bed);
}

static void same_tag_in_posting_order(void)
{
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	for (i = 0; i < 10; i++)
		recv_tag(&bed, 5, 0, i);
	for (i = 0; i < 10; i++)
		send_tag(&bed, 5, (unsigned) i, 16, 20 + i);
	for (i = 0; i < 10; i++)
		got(&bed, i, 5, (unsigned) i);
	close_bed(&bed);
}

/* Exact and wild receives are one list: the one posted first has the message. */
static void wildcards_keep_their_place(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	recv_tag(&bed, 5, 0, 1);
	recv_tag(&bed, 0, ~0ULL, 2);
	recv_tag(&bed, 5, 0, 3);
	recv_tag(&bed, 4, 1, 4); /* 4 or 5 */
	recv_tag(&bed, 5, 0, 5);
	send_tag(&bed, 5, 1, 16, 11);
	send_tag(&bed, 5, 2, 16, 12);
	send_tag(&bed, 5, 3, 16, 13);
	send_tag(&bed, 5, 4, 16, 14);
	send_tag(&bed, 5, 5, 16, 15);
	got(&bed, 1, 5, 1);
	got(&bed, 2, 5, 2);
	got(&bed, 3, 5, 3);
	got(&bed, 4, 5, 4);
	got(&bed, 5, 5, 5);
	close_bed(&bed);
}

static void wildcard_first(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	recv_tag(&bed, 0, ~0ULL, 1);
	recv_tag(&bed, 7, 0, 2);
	send_tag(&bed, 7, 1, 16, 11);
	send_tag(&bed, 7, 2, 16, 12);
	got(&bed, 1, 7, 1);
	got(&bed, 2, 7, 2);
	/* And what the wild one does not take, the exact one does. */
	recv_tag(&bed, 8, 7, 3); /* 8..15 */
	recv_tag(&bed, 7, 0, 4);
	send_tag(&bed, 7, 3, 16, 13);
	got(&bed, 4, 7, 3);
	send_tag(&bed, 13, 4, 16, 14);
	got(&bed, 3, 13, 4);
	close_bed(&bed);
}

static void unexpected_by_tag(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	send_tag(&bed, 1, 1, 16, 11);
	send_tag(&bed, 2, 2, 16, 12);
	send_tag(&bed, 1, 3, 16, 13);
	send_tag(&bed, 3, 4, 16, 14);
	settle(&bed);
	recv_tag(&bed, 2, 0, 1);
	got(&bed, 1, 2, 2);
	recv_tag(&bed, 0, ~0ULL, 2); /* the oldest of any tag */
	got(&bed, 2, 1, 1);
	recv_tag(&bed, 2, 1, 3); /* 2 or 3 */
	got(&bed, 3, 3, 4);
	recv_tag(&bed, 1, 0, 4);
	got(&bed, 4, 1, 3);
	close_bed(&bed);
}

/* The page's formula, for single bits, fields and all bits. */
static void ignored_bits(void)
{
	static const struct { uint64_t sent, wanted, ignore; } cases[] = {
		{ 0, 0, 0 }, { 1, 0, 0 }, { 1, 0, 1 }, { 3, 0, 1 }, { 0xf0, 0xff, 0x0f }, { 0xf0, 0x0f, 0x0f },
		{ 0x123456789abcdef, 0x123456789abcdef, 0 }, { 0x123456789abcdef, 0x123456789abcdee, 0 },
		{ 0x123456789abcdef, 0, ~0ULL }, { 0x123456789abcdef, 0x123456700000000, 0xffffffff },
		{ 0x123456789abcdef, 0x123456000000000, 0xffffffff }, { 1ULL << 40, 0, 1ULL << 40 },
		{ 1ULL << 40, 0, 1ULL << 41 }, { 5, 7, 2 }, { 7, 5, 2 }, { 5, 7, 5 }, /* set in both: ignored bits may be set */
		{ 0xffffffff, 0xffffffff, 0xffff0000 }, { 0x0000ffff, 0xffffffff, 0xffff0000 }, { 0x0000fffe, 0xffffffff, 0xffff0000 },
	};
	struct bed bed;
	unsigned i;

	open_bed(&bed, &usual);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t usable = bed.info->ep_attr->mem_tag_format ? bed.info->ep_attr->mem_tag_format : ~0ULL;
		uint64_t sent = cases[i].sent, wanted = cases[i].wanted, ignore = cases[i].ignore;
		bool match = (sent | ignore) == (wanted | ignore);

		usable |= usable >> 1; /* the highest bit set and all below may be used */
		usable |= usable >> 2;
		usable |= usable >> 4;
		usable |= usable >> 8;
		usable |= usable >> 16;
		usable |= usable >> 32;
		if ((sent | wanted) & ~usable)
			continue;
		recv_tag(&bed, wanted, ignore & usable, 1);
		send_tag(&bed, sent, i, 16, 2);
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
		if (match) {
			got(&bed, 1, sent, i);
			continue;
		}
		NO_COMPLETION(&bed, bed.side[1].rx);
		recv_tag(&bed, sent, 0, 3);
		got(&bed, 3, sent, i);
		send_tag(&bed, wanted, 99, 16, 2);
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
		got(&bed, 1, wanted, 99);
	}
	close_bed(&bed);
}

static void many_tags_posted(void)
{
	enum { MANY = 100 };
	struct bed bed;
	int i, k;

	open_bed(&bed, &usual);
	for (i = 0; i < MANY; i++)
		recv_tag(&bed, 1000 + (uint64_t) i, 0, i);
	for (i = 0; i < MANY; i++) {
		k = (i * 37) % MANY;
		send_tag(&bed, 1000 + (uint64_t) k, (unsigned) k, 16, 110);
		COMPLETION(&bed, bed.side[0].tx, ctx(110));
		got(&bed, k, 1000 + (uint64_t) k, (unsigned) k);
	}
	close_bed(&bed);
}

/* Interleaved at random: what a simple list would match is what is matched. */
static void like_a_simple_list(void)
{
	enum { STEPS = 600, KEEP = 60 };
	struct { uint64_t tag, ignore; int number; bool live; } posted[STEPS];
	struct { uint64_t tag; unsigned seed; bool live; } arrived[STEPS];
	struct bed bed;
	unsigned random = 99;
	int step, i, receives = 0, sends = 0, waiting = 0, slot = 0;

	open_bed(&bed, &usual);
	NEED(bed.info->tx_attr->msg_order & FI_ORDER_SAS, "sends are not ordered");
	for (step = 0; step < STEPS; step++) {
		uint64_t tag, ignore;

		random = random * 1103515245u + 12345u;
		tag = (random >> 16) & 7;
		ignore = (random >> 20) % 4 == 0 ? 7 : (random >> 20) % 4 == 1 ? 2 : 0;
		if (waiting >= KEEP)
			random &= ~0x80000000u;
		if (waiting <= -KEEP)
			random |= 0x80000000u;
		if (random & 0x80000000u) { /* a receive */
			recv_tag(&bed, tag, ignore, slot);
			for (i = 0; i < sends; i++)
				if (arrived[i].live && (arrived[i].tag | ignore) == (tag | ignore))
					break;
			if (i < sends) {
				arrived[i].live = false;
				got(&bed, slot, arrived[i].tag, arrived[i].seed);
			} else {
				posted[receives].tag = tag;
				posted[receives].ignore = ignore;
				posted[receives].number = slot;
				posted[receives++].live = true;
				waiting++;
			}
			slot = (slot + 1) % 100;
		} else {
			send_tag(&bed, tag, (unsigned) step, 16, 110);
			COMPLETION(&bed, bed.side[0].tx, ctx(110));
			settle(&bed);
			for (i = 0; i < receives; i++)
				if (posted[i].live && (posted[i].tag | posted[i].ignore) == (tag | posted[i].ignore))
					break;
			if (i < receives) {
				posted[i].live = false;
				waiting--;
				got(&bed, posted[i].number, tag, (unsigned) step);
			} else {
				arrived[sends].tag = tag;
				arrived[sends].seed = (unsigned) step;
				arrived[sends++].live = true;
			}
		}
	}
	close_bed(&bed);
}

static void only_tagged_directed(void)
{
#if HEADERS_2
	struct setup s = { .more_caps = FI_TAGGED_DIRECTED_RECV | FI_SOURCE, .sides = 3 };
	struct bed bed;

	open_bed(&bed, &s);
	POST(&bed, fi_trecv(bed.side[0].ep, in, 16, desc, bed.side[2].addr, 1, 0, ctx(2)));
	POST(&bed, fi_trecv(bed.side[0].ep, in, 16, desc, bed.side[1].addr, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[1].ep, out, 16, desc, bed.side[0].addr, 1, ctx(11)));
	COMPLETION(&bed, bed.side[0].rx, ctx(1));
	POST(&bed, fi_tsend(bed.side[2].ep, out, 16, desc, bed.side[0].addr, 1, ctx(12)));
	COMPLETION(&bed, bed.side[0].rx, ctx(2));
	close_bed(&bed);
#else
	SKIP("these headers do not know FI_TAGGED_DIRECTED_RECV");
#endif
}

/* Without FI_DIRECTED_RECV the source of a receive is ignored. */
static void source_ignored_without_directed(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	if (bed.info->caps & FI_DIRECTED_RECV)
		SKIP("directed receives are always on");
	POST(&bed, fi_trecv(bed.side[1].ep, in + 64, 64, desc, bed.side[1].addr, 1, 0, ctx(1))); /* says: from myself */
	send_tag(&bed, 1, 1, 16, 11);
	got(&bed, 1, 1, 1);
	close_bed(&bed);
}

static void without_msg(void)
{
	struct setup s = { .caps = FI_TAGGED };
	struct bed bed;

	open_bed(&bed, &s);
	ping(&bed, 0, 1);
	close_bed(&bed);
}

/* FI_MULTI_RECV as a default flag is for untagged receives, unless tagged ones have the capability. */
static void multi_receives_by_default_are_untagged(void)
{
	struct setup s = { .caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV, .rx_flags = FI_MULTI_RECV };
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	NEED(bed.info->rx_attr->op_flags & FI_MULTI_RECV, "FI_MULTI_RECV is no default flag here");
	POST(&bed, fi_trecv(bed.side[1].ep, in, sizeof(in) / 2, desc, FI_ADDR_UNSPEC, 7, 0, ctx(1)));
	POST(&bed, fi_trecv(bed.side[1].ep, in + sizeof(in) / 2, sizeof(in) / 2, desc, FI_ADDR_UNSPEC, 7, 0, ctx(2)));
	for (i = 1; i <= 2; i++) {
		send_tag(&bed, 7, 1, 16, 11);
		e = COMPLETION(&bed, bed.side[1].rx, ctx(i));
		CHECK(!(e.flags & FI_MULTI_RECV), "receive %d: flags 0x%llx", i, (unsigned long long) e.flags);
	}
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(by_tag_not_by_order), TEST(same_tag_in_posting_order), TEST(wildcards_keep_their_place),
	TEST(wildcard_first), TEST(unexpected_by_tag), TEST(ignored_bits), TEST(many_tags_posted),
	TEST(like_a_simple_list), TEST(only_tagged_directed), TEST(source_ignored_without_directed),
	TEST(without_msg), TEST(multi_receives_by_default_are_untagged),
};

CASES(tests)

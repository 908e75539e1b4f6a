/* fi_tagged(3): what tags do. The rest of the page is in transfers/. */
#include "transfers/transfers.h"

enum messages of_page = TAGGED_MESSAGES;

static const struct setup usual;
static char in[8192], out[8192];

static void send_tag(struct bed *bed, uint64_t tag, unsigned seed, size_t len, int tx)
{
	fill(out + 64 * tx, len < 64 ? len : 64, seed);
	POST(bed, fi_tsend(bed->side[0].ep, out + 64 * tx, len, desc, bed->side[1].addr, tag, ctx(tx)));
}

static void recv_tag(struct bed *bed, uint64_t tag, uint64_t ignore, int rx)
{
	POST(bed, fi_trecv(bed->side[1].ep, in + 64 * rx, 64, desc, FI_ADDR_UNSPEC, tag, ignore, ctx(rx)));
}

/* Receive `rx` got the message of this seed and tag. */
static void got(struct bed *bed, int rx, uint64_t tag, unsigned seed)
{
	struct fi_cq_tagged_entry e = COMPLETION(bed, bed->side[1].rx, ctx(rx));

	CHECK(e.tag == tag, "receive %d: tag 0x%llx, not 0x%llx", rx, (unsigned long long) e.tag, (unsigned long long) tag);
	CHECK(mismatch(in + 64 * rx, 16, seed) < 0, "receive %d got another message than %u", rx, seed);
}

/* ---- matching ---- */

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

/* ---- peek, claim, discard ---- */

static ssize_t ask(struct bed *bed, uint64_t tag, uint64_t ignore, int rx, uint64_t flags)
{
	struct iovec iov = { in + 64 * rx, 64 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .desc = descs, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = tag, .ignore = ignore, .context = ctx(rx),
	};

	if (flags & FI_DISCARD) { /* no buffer is needed */
		msg.msg_iov = NULL;
		msg.iov_count = 0;
	}
	return fi_trecvmsg(bed->side[1].ep, &msg, flags);
}

/* Whether a peek finds something; its entry. */
static bool peek(struct bed *bed, uint64_t tag, uint64_t ignore, int rx, uint64_t flags, struct fi_cq_tagged_entry *e)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	TRY(bed, ask(bed, tag, ignore, rx, FI_PEEK | flags));
	ret = next(bed, bed->side[1].rx, e);
	if (ret == -FI_EAVAIL) {
		GIVES(1, fi_cq_readerr(bed->side[1].rx, &err, 0));
		CHECK(err.err == FI_ENOMSG, "err %d (%s)", err.err, fi_strerror(err.err));
		CHECK(err.op_context == ctx(rx), "the error of another operation");
		return false;
	}
	CHECK(ret == 1, "the peek does not end: %zd", ret);
	CHECK(e->op_context == ctx(rx), "the completion of another operation");
	return true;
}

static bool peek_until_found(struct bed *bed, uint64_t tag, uint64_t ignore, int rx, uint64_t flags, struct fi_cq_tagged_entry *e)
{
	long until = now_ms() + GIVE_UP_MS;

	while (now_ms() < until) {
		if (peek(bed, tag, ignore, rx, flags, e))
			return true;
		progress(bed);
	}
	return false;
}

static void peek_finds_nothing(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	CHECK(!peek(&bed, 1, 0, 1, 0, &e), "found something");
	send_tag(&bed, 2, 2, 16, 12);
	COMPLETION(&bed, bed.side[0].tx, ctx(12));
	settle(&bed);
	CHECK(!peek(&bed, 1, 0, 1, 0, &e), "found a message of another tag");
	NO_COMPLETION(&bed, bed.side[1].rx); /* it does not stay posted */
	recv_tag(&bed, 2, 0, 2);
	got(&bed, 2, 2, 2);
	close_bed(&bed);
}

static void peek_describes_the_message(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	uint64_t data = 0x55;

	open_bed(&bed, &usual);
	fill(out, 40, 3);
	POST(&bed, fi_tsenddata(bed.side[0].ep, out, 40, desc, data, bed.side[1].addr, 7, ctx(11)));
	memset(in + 64, '#', 64);
	CHECK(peek_until_found(&bed, 0, ~0ULL, 1, 0, &e), "not found");
	CHECK(e.tag == 7 && e.len == 40, "tag %llu, %zu bytes", (unsigned long long) e.tag, e.len);
	CHECK((e.flags & FI_REMOTE_CQ_DATA) && e.data == data, "flags 0x%llx, data 0x%llx", (unsigned long long) e.flags,
	      (unsigned long long) e.data);
	CHECK((e.flags & (FI_RECV | FI_TAGGED)) == (FI_RECV | FI_TAGGED), "flags 0x%llx", (unsigned long long) e.flags);
	CHECK(in[64] == '#', "a peek wrote the buffer");
	CHECK(peek(&bed, 7, 0, 1, 0, &e), "peeked once, gone");
	recv_tag(&bed, 7, 0, 2);
	got(&bed, 2, 7, 3);
	CHECK(!peek(&bed, 7, 0, 1, 0, &e), "found what was received");
	close_bed(&bed);
}

static void peek_gives_the_source(void)
{
	struct setup s = { .more_caps = FI_SOURCE };
	struct fi_cq_tagged_entry e;
	fi_addr_t source = 99;
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	open_bed(&bed, &s);
	send_tag(&bed, 7, 1, 16, 11);
	CHECK(peek_until_found(&bed, 7, 0, 1, 0, &e), "not found");
	TRY(&bed, ask(&bed, 7, 0, 1, FI_PEEK));
	while ((ret = fi_cq_readfrom(bed.side[1].rx, &e, 1, &source)) == -FI_EAGAIN && now_ms() < until)
		progress(&bed);
	CHECK(ret == 1 && source == bed.side[0].addr, "%zd, source %llu", ret, (unsigned long long) source);
	close_bed(&bed);
}

/* Also where receives ask for their entries one by one: who peeks waits for the answer. */
static void peek_speaks_on_a_selective_queue(void)
{
	struct setup s = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &s);
	CHECK(!peek(&bed, 7, 0, 1, 0, &e), "found before it was sent");
	send_tag(&bed, 7, 1, 16, 11);
	CHECK(peek_until_found(&bed, 7, 0, 1, 0, &e), "not found");
	CHECK(e.len == 16 && e.tag == 7, "%zu bytes", e.len);
	close_bed(&bed);
}

static void claim_keeps_it_from_others(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	send_tag(&bed, 7, 1, 16, 11);
	send_tag(&bed, 7, 2, 16, 12);
	COMPLETION(&bed, bed.side[0].tx, ctx(11));
	COMPLETION(&bed, bed.side[0].tx, ctx(12));
	CHECK(peek_until_found(&bed, 7, 0, 1, FI_CLAIM, &e), "not found");
	CHECK(e.len == 16 && e.tag == 7, "%zu bytes", e.len);
	recv_tag(&bed, 7, 0, 2); /* gets the second */
	got(&bed, 2, 7, 2);
	CHECK(!peek(&bed, 7, 0, 3, 0, &e), "a claimed message is found");
	POST(&bed, ask(&bed, 7, 0, 1, FI_CLAIM));
	got(&bed, 1, 7, 1);
	close_bed(&bed);
}

static void claim_then_discard(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	send_tag(&bed, 7, 1, 16, 11);
	COMPLETION(&bed, bed.side[0].tx, ctx(11));
	CHECK(peek_until_found(&bed, 7, 0, 1, FI_CLAIM, &e), "not found");
	POST(&bed, ask(&bed, 7, 0, 1, FI_CLAIM | FI_DISCARD));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	CHECK(!peek(&bed, 7, 0, 3, 0, &e), "a discarded message is found");
	recv_tag(&bed, 7, 0, 2);
	send_tag(&bed, 7, 2, 16, 12);
	got(&bed, 2, 7, 2);
	close_bed(&bed);
}

static void discard_at_once(void)
{
	static char large[100000];
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	send_tag(&bed, 7, 1, 16, 11);
	CHECK(peek_until_found(&bed, 7, 0, 1, FI_DISCARD, &e), "not found");
	COMPLETION(&bed, bed.side[0].tx, ctx(11));
	CHECK(!peek(&bed, 7, 0, 1, 0, &e), "a discarded message is found");
	/* A large one ends at its sender too. */
	POST(&bed, fi_tsend(bed.side[0].ep, large, sizeof(large), desc, bed.side[1].addr, 8, ctx(12)));
	CHECK(peek_until_found(&bed, 8, 0, 1, FI_DISCARD, &e), "not found");
	CHECK(e.len == sizeof(large), "%zu bytes", e.len);
	COMPLETION(&bed, bed.side[0].tx, ctx(12));
	recv_tag(&bed, 7, 0, 2);
	send_tag(&bed, 7, 2, 16, 13);
	got(&bed, 2, 7, 2);
	close_bed(&bed);
}

static void claim_of_a_large_message(void)
{
	static char large_in[300000], large_out[300000];
	struct iovec iov = { large_in, sizeof(large_in) };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 7, .context = ctx(1) };
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	fill(large_out, sizeof(large_out), 5);
	POST(&bed, fi_tsend(bed.side[0].ep, large_out, sizeof(large_out), desc, bed.side[1].addr, 7, ctx(11)));
	CHECK(peek_until_found(&bed, 7, 0, 1, FI_CLAIM, &e), "not found");
	POST(&bed, fi_trecvmsg(bed.side[1].ep, &msg, FI_CLAIM));
	e = COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(11));
	CHECK(e.len == sizeof(large_in), "%zu bytes", e.len);
	SAME(large_in, sizeof(large_in), 5);
	close_bed(&bed);
}

/* ---- the rest ---- */

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
	TEST(wildcard_first), TEST(unexpected_by_tag), TEST(ignored_bits), TEST(many_tags_posted), TEST(like_a_simple_list),
	TEST(peek_finds_nothing), TEST(peek_describes_the_message), TEST(peek_gives_the_source),
	TEST(peek_speaks_on_a_selective_queue),	TEST(claim_keeps_it_from_others), TEST(claim_then_discard), TEST(discard_at_once), TEST(claim_of_a_large_message),
	TEST(only_tagged_directed), TEST(source_ignored_without_directed), TEST(without_msg),
	TEST(multi_receives_by_default_are_untagged),
};

CASES(tests)

/* fi_tagged(3): peeking at messages, claiming and discarding them. */
#include "tagged.h"

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

static const struct test tests[] = {
	TEST(peek_finds_nothing), TEST(peek_describes_the_message), TEST(peek_gives_the_source),
	TEST(peek_speaks_on_a_selective_queue), TEST(claim_keeps_it_from_others), TEST(claim_then_discard),
	TEST(discard_at_once), TEST(claim_of_a_large_message),
};

CASES(tests)

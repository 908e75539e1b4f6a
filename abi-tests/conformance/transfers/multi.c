/* FI_MULTI_RECV: one buffer for many messages. */
#include "shared.h"

static size_t least;
static struct fid_cntr *received;

static void set_least(struct bed *bed, int side)
{
	OK(fi_setopt(&bed->side[side].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
}

/* A counter of what side 1 receives. */
static void bind_received(struct bed *bed, int side)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	int ret;

	set_least(bed, side);
	if (side != 1)
		return;
	ret = fi_cntr_open(bed->domain, &attr, &received, NULL);
	NEED(!lacking(ret), "fi_cntr_open: %s", fi_strerror(-ret));
	OK(ret);
	OK(fi_ep_bind(bed->side[1].ep, &received->fid, FI_RECV));
}

static void counted(struct bed *bed, uint64_t good, uint64_t bad)
{
	long until = now_ms() + GIVE_UP_MS;

	while (fi_cntr_read(received) + fi_cntr_readerr(received) < good + bad && now_ms() < until)
		progress(bed);
	CHECK(fi_cntr_read(received) == good && fi_cntr_readerr(received) == bad, "counted are %llu, and %llu errors",
	      (unsigned long long) fi_cntr_read(received), (unsigned long long) fi_cntr_readerr(received));
}

/* Receives of the page's kind may be multi-receives. */
static uint64_t multi_cap(void)
{
	if (!tagged)
		return FI_MULTI_RECV;
#if HEADERS_2
	return FI_MULTI_RECV | FI_TAGGED_MULTI_RECV;
#else
	SKIP("these headers do not know FI_TAGGED_MULTI_RECV");
#endif
}

static void open_multi(struct bed *bed, uint64_t rx_bind, size_t minimum)
{
	struct setup s = { .more_caps = multi_cap(), .rx_bind = rx_bind, .bind = set_least };

	least = minimum;
	open_bed(bed, &s);
}

static void post_multi(struct bed *bed, char *buf, size_t len, void *context)
{
	struct iovec iov = { buf, len };

	POST(bed, post_recvmsg(bed->side[1].ep, &iov, 1, FI_ADDR_UNSPEC, TAG, 0, context, FI_MULTI_RECV));
}

/* Whether this entry, or one of its own that follows, releases the buffer. */
static bool releases(struct bed *bed, struct fi_cq_tagged_entry *e, void *context)
{
	struct fi_cq_tagged_entry last;

	if (e->flags & FI_MULTI_RECV)
		return true;
	settle(bed);
	if (fi_cq_read(bed->side[1].rx, &last, 1) != 1)
		return false;
	CHECK(last.op_context == context && (last.flags & FI_MULTI_RECV) && !last.len, "a stray completion, flags 0x%llx",
	      (unsigned long long) last.flags);
	return true;
}

static void multi_receive_packs(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	char *end = in;
	int i;

	open_multi(&bed, 0, 64);
	post_multi(&bed, in, 4096, ctx(1));
	for (i = 0; i < 10; i++) {
		size_t len = (size_t) (i * 13 + 1);

		fill(out, len, (unsigned) i);
		send_to(&bed, 0, 1, out, len, ctx(2));
		e = ended(&bed, ctx(1), ctx(2), len);
		CHECK((char *) e.buf >= end && (char *) e.buf + len <= in + 4096, "message %d is placed at %ld", i,
		      (long) ((char *) e.buf - in));
		CHECK((char *) e.buf - end < 64, "a gap of %ld", (long) ((char *) e.buf - end));
		SAME(e.buf, len, (unsigned) i);
		CHECK(!(e.flags & FI_MULTI_RECV), "released with %ld bytes left", (long) (in + 4096 - end));
		end = (char *) e.buf + len;
	}
	close_bed(&bed);
}

static void multi_receive_releases_at_the_minimum(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_multi(&bed, 0, 256);
	post_multi(&bed, in, 1024, ctx(1));
	for (i = 0; i < 3; i++) { /* 1024, 768, 512: not yet below */
		send_to(&bed, 0, 1, out, 256, ctx(2));
		e = ended(&bed, ctx(1), ctx(2), 256);
		CHECK(!(e.flags & FI_MULTI_RECV), "released with %d left", 1024 - 256 * (i + 1));
	}
	send_to(&bed, 0, 1, out, 8, ctx(2)); /* 248 left */
	e = ended(&bed, ctx(1), ctx(2), 8);
	CHECK(releases(&bed, &e, ctx(1)), "248 bytes are left, below the minimum of 256, but the buffer is not released");
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

static void multi_receive_then_the_next_buffer(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i, first = 0, second = 0, released = 0;

	open_multi(&bed, 0, 100);
	need_order(&bed);
	post_multi(&bed, in, 500, ctx(1));
	post_multi(&bed, in + 1000, 500, ctx(2));
	for (i = 0; i < 8; i++) {
		fill(out, 100, (unsigned) i);
		send_to(&bed, 0, 1, out, 100, ctx(3));
		do {
			GIVES(1, next(&bed, bed.side[1].rx, &e));
			released += !!(e.flags & FI_MULTI_RECV);
		} while ((e.flags & FI_MULTI_RECV) && e.len == 0);
		COMPLETION(&bed, bed.side[0].tx, ctx(3));
		CHECK(e.len == 100, "%zu bytes", e.len);
		SAME(e.buf, 100, (unsigned) i);
		first += e.op_context == ctx(1);
		second += e.op_context == ctx(2);
	}
	CHECK(first >= 4 && second >= 3 && first + second == 8, "%d and %d", first, second);
	CHECK(released >= 1, "the first buffer is never released");
	close_bed(&bed);
}

static void multi_receive_of_unexpected(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_multi(&bed, 0, 64);
	need_order(&bed);
	for (i = 0; i < 5; i++) {
		fill(out + 100 * i, 100, (unsigned) i);
		send_to(&bed, 0, 1, out + 100 * i, 100, ctx(2));
	}
	settle(&bed);
	post_multi(&bed, in, 4096, ctx(1));
	for (i = 0; i < 5; i++) {
		e = COMPLETION(&bed, bed.side[1].rx, ctx(1));
		CHECK(e.len == 100, "%zu bytes", e.len);
		SAME(e.buf, 100, (unsigned) i);
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	}
	close_bed(&bed);
}

/* Receives are not reported, but the end of the buffer always is. */
static void multi_receive_says_so_without_completions(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_multi(&bed, FI_SELECTIVE_COMPLETION, 200);
	post_multi(&bed, in, 400, ctx(1));
	for (i = 0; i < 2; i++) {
		send_to(&bed, 0, 1, out, 100, ctx(2));
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
		NO_COMPLETION(&bed, bed.side[1].rx);
	}
	send_to(&bed, 0, 1, out, 100, ctx(2)); /* 100 left */
	e = COMPLETION(&bed, bed.side[1].rx, ctx(1));
	CHECK(e.flags & FI_MULTI_RECV, "flags 0x%llx", (unsigned long long) e.flags);
	close_bed(&bed);
}

/* FI_MULTI_RECV as the endpoint's default flag is for receives whose calls have no flags. */
static void multi_receive_by_default(void)
{
	struct setup s = { .more_caps = multi_cap(), .rx_flags = FI_MULTI_RECV };
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	NEED(bed.info->rx_attr->op_flags & FI_MULTI_RECV, "FI_MULTI_RECV is no default flag here");
	recv_at(&bed, 1, in, sizeof(in), ctx(1));
	for (i = 0; i < 2; i++) {
		send_to(&bed, 0, 1, out, 8, ctx(2));
		e = ended(&bed, ctx(1), ctx(2), 8);
		if (e.flags & FI_MULTI_RECV)
			break; /* the default minimum may be larger than this buffer */
		CHECK((char *) e.buf == in + 8 * i, "message %d is placed at %ld", i, (long) ((char *) e.buf - in));
	}
	close_bed(&bed);
}

/* The minimum counts for the buffers that are posted after it was set, and for those posted before as it was then. */
static void multi_receive_has_the_minimum_of_its_post(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	size_t more = 400;

	open_multi(&bed, 0, 100);
	need_order(&bed);
	post_multi(&bed, in, 500, ctx(1));
	OK(fi_setopt(&bed.side[1].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &more, sizeof(more)));
	post_multi(&bed, in + 1000, 500, ctx(2));
	send_to(&bed, 0, 1, out, 200, ctx(3)); /* 300 left in the first */
	e = ended(&bed, ctx(1), ctx(3), 200);
	if (strict)
		CHECK(!(e.flags & FI_MULTI_RECV), "the first buffer has the minimum of the second");
	if (!(e.flags & FI_MULTI_RECV)) {
		send_to(&bed, 0, 1, out, 201, ctx(3)); /* 99 left */
		e = ended(&bed, ctx(1), ctx(3), 201);
		CHECK(releases(&bed, &e, ctx(1)), "99 bytes are left, below the minimum of 100");
	}
	send_to(&bed, 0, 1, out, 101, ctx(3)); /* 399 left in the second */
	e = ended(&bed, ctx(2), ctx(3), 101);
	CHECK(releases(&bed, &e, ctx(2)), "399 bytes are left, below the minimum of 400");
	close_bed(&bed);
}

/* To the last byte: the next message is for the next buffer. */
static void multi_receive_used_up_exactly(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;
	int i;

	open_multi(&bed, 0, 1);
	need_order(&bed);
	post_multi(&bed, in, 300, ctx(1));
	post_multi(&bed, in + 1000, 300, ctx(2));
	for (i = 0; i < 3; i++) {
		fill(out, 100, (unsigned) i);
		send_to(&bed, 0, 1, out, 100, ctx(3));
		e = ended(&bed, ctx(1), ctx(3), 100);
		SAME(e.buf, 100, (unsigned) i);
		CHECK(i == 2 || !(e.flags & FI_MULTI_RECV), "released with %d left", 200 - 100 * i);
	}
	CHECK(releases(&bed, &e, ctx(1)), "nothing is left, but the buffer is not released");
	send_to(&bed, 0, 1, out, 0, ctx(3)); /* takes no room, but a buffer */
	e = ended(&bed, ctx(2), ctx(3), 0);
	CHECK(!(e.flags & FI_MULTI_RECV), "released by a message of no bytes");
	close_bed(&bed);
}

/* A message that is longer than what is left is cut, as in any receive, and then nothing is left. */
static void multi_receive_cuts_what_is_too_long(void)
{
	struct fi_cq_err_entry e;
	struct bed bed;

	open_multi(&bed, 0, 50);
	need_order(&bed);
	post_multi(&bed, in, 300, ctx(1));
	post_multi(&bed, in + 1000, 300, ctx(2));
	send_to(&bed, 0, 1, out, 200, ctx(3));
	ended(&bed, ctx(1), ctx(3), 200);
	fill(out, 150, 7);
	send_to(&bed, 0, 1, out, 150, ctx(3));
	e = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(e.err == FI_ETRUNC && e.op_context == ctx(1), "%s", fi_strerror(e.err));
	CHECK(e.len == 100 && e.olen == 50, "%zu bytes, and %zu over", e.len, e.olen);
	SAME(in + 200, 100, 7);
	CHECK(e.flags & FI_MULTI_RECV, "nothing is left, but the buffer is not released");
	COMPLETION(&bed, bed.side[0].tx, ctx(3));
	send_to(&bed, 0, 1, out, 8, ctx(3));
	ended(&bed, ctx(2), ctx(3), 8);
	close_bed(&bed);
}

/* A cancelled buffer is given back, once, and takes nothing more; one that was used up is not there to be cancelled. */
static void multi_receive_cancelled(void)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry error;
	struct bed bed;
	long ret;

	open_multi(&bed, 0, 50);
	need_order(&bed);
	post_multi(&bed, in, 300, ctx(1));
	post_multi(&bed, in + 1000, 300, ctx(2));
	send_to(&bed, 0, 1, out, 100, ctx(3));
	ended(&bed, ctx(1), ctx(3), 100);
	ret = fi_cancel(&bed.side[1].ep->fid, ctx(1));
	CHECK(ret == 0, "fi_cancel: %s", fi_strerror((int) -ret));
	error = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(error.err == FI_ECANCELED && error.op_context == ctx(1), "%s", fi_strerror(error.err));
	if (strict)
		CHECK(error.flags & FI_MULTI_RECV, "the buffer is not released");
	send_to(&bed, 0, 1, out, 260, ctx(3));
	e = ended(&bed, ctx(2), ctx(3), 260);
	CHECK(releases(&bed, &e, ctx(2)), "40 bytes are left, below the minimum of 50");
	fi_cancel(&bed.side[1].ep->fid, ctx(2));
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

/* A counter counts messages, not buffers, and what was cut or cancelled as an error. */
static void multi_receive_counts_messages(void)
{
	struct setup s = { .more_caps = multi_cap(), .bind = bind_received };
	struct bed bed;
	long ret;
	int i;

	least = 50;
	open_bed(&bed, &s);
	need_order(&bed);
	post_multi(&bed, in, 300, ctx(1));
	post_multi(&bed, in + 1000, 300, ctx(2));
	for (i = 0; i < 2; i++) {
		send_to(&bed, 0, 1, out, 100, ctx(3));
		ended(&bed, ctx(1), ctx(3), 100);
		counted(&bed, (uint64_t) i + 1, 0);
	}
	send_to(&bed, 0, 1, out, 150, ctx(3)); /* 100 left */
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	COMPLETION(&bed, bed.side[0].tx, ctx(3));
	counted(&bed, 2, 1);
	ret = fi_cancel(&bed.side[1].ep->fid, ctx(2));
	CHECK(ret == 0, "fi_cancel: %s", fi_strerror((int) -ret));
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	counted(&bed, 2, 2);
	close_eps(&bed);
	OK(fi_close(&received->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(multi_receive_packs), TEST(multi_receive_releases_at_the_minimum),
	TEST(multi_receive_then_the_next_buffer), TEST(multi_receive_of_unexpected),
	TEST(multi_receive_says_so_without_completions), TEST(multi_receive_by_default),
	TEST(multi_receive_has_the_minimum_of_its_post), TEST(multi_receive_used_up_exactly),
	TEST(multi_receive_cuts_what_is_too_long), TEST(multi_receive_cancelled), TEST(multi_receive_counts_messages),
};

CASES(tests)

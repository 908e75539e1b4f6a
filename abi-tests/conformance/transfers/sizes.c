/* Every size, truncation, cancelling. */
#include "shared.h"

/* ---- sizes ---- */

/* 0, and around every power of two up to 4 MiB. */
static size_t size_at(int i)
{
	return i == 0 ? 0 : ((size_t) 1 << ((i - 1) / 3)) + (size_t) ((i - 1) % 3) - 1;
}
#define SIZES (1 + 3 * 23)

static void sizes(bool expected)
{
	struct bed bed;
	int i;

	if (!expected)
		NOTHING_IS_LOST;
	open_bed(&bed, &usual);
	for (i = 0; i < SIZES; i++) {
		size_t len = size_at(i);

		if (len > bed.info->ep_attr->max_msg_size)
			break;
		fill(out, len, (unsigned) i);
		memset(in, '#', len + 16);
		if (expected)
			recv_at(&bed, 1, in, len, ctx(1));
		send_to(&bed, 0, 1, out, len, ctx(2));
		if (!expected) {
			int turn;

			for (turn = 0; turn < 20; turn++)
				progress(&bed);
			recv_at(&bed, 1, in, len, ctx(1));
		}
		ended(&bed, ctx(1), ctx(2), len);
		SAME(in, len, (unsigned) i);
		CHECK(in[len] == '#', "%zu bytes: wrote behind the buffer", len);
	}
	close_bed(&bed);
}

static void sizes_expected(void) { sizes(true); }
static void sizes_unexpected(void) { sizes(false); }

static void sizes_body(struct bed *bed, int me, int pipe)
{
	struct side *mine = &bed->side[0];
	struct fi_cq_tagged_entry e;
	int i;

	meet(bed, pipe);
	for (i = 0; i < SIZES; i++) {
		size_t len = size_at(i);

		if (len > bed->info->ep_attr->max_msg_size)
			break;
		if ((i & 1) == me) {
			memset(in, 0, len);
			POST(bed, post_recv(mine->ep, in, len, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
			meet_posted(bed, pipe);
			e = COMPLETION(bed, mine->rx, ctx(1));
			CHECK(e.len == len, "%zu bytes, not %zu", e.len, len);
			SAME(in, len, (unsigned) i);
		} else {
			fill(out, len, (unsigned) i);
			meet_posted(bed, pipe);
			POST(bed, post_send(mine->ep, out, len, bed->peer, TAG, ctx(2)));
			COMPLETION(bed, mine->tx, ctx(2));
		}
	}
}

static void sizes_between_processes(void)
{
	in_two(&usual, sizes_body);
}

static void smaller_than_the_buffer(void)
{
	static const size_t lens[] = { 0, 1, 63, 5000, 100000 };
	struct bed bed;
	unsigned i;

	open_bed(&bed, &usual);
	for (i = 0; i < 5; i++) {
		size_t len = at_most(&bed, lens[i]);

		memset(in, '#', 200000);
		fill(out, len, i);
		recv_at(&bed, 1, in, 200000, ctx(1));
		send_to(&bed, 0, 1, out, len, ctx(2));
		ended(&bed, ctx(1), ctx(2), len);
		SAME(in, len, i);
		CHECK(in[len] == '#' && in[199999] == '#', "wrote more than the message");
	}
	close_bed(&bed);
}

/* ---- truncation ---- */

static void truncated(bool expected)
{
	static const size_t lens[] = { 100, 6000, 200000 };
	struct fi_cq_err_entry err;
	struct bed bed;
	int i;

	NOTHING_IS_LOST;
	open_bed(&bed, &usual);
	for (i = 0; i < 3; i++) {
		memset(in, '#', lens[i]);
		fill(out, lens[i], 1);
		if (expected)
			recv_at(&bed, 1, in, lens[i] / 2, ctx(1));
		send_to(&bed, 0, 1, out, lens[i], ctx(2));
		if (!expected) {
			settle(&bed);
			recv_at(&bed, 1, in, lens[i] / 2, ctx(1));
		}
		err = ERROR_COMPLETION(&bed, bed.side[1].rx);
		CHECK(err.err == FI_ETRUNC, "%zu bytes: err %d (%s)", lens[i], err.err, fi_strerror(err.err));
		CHECK(err.op_context == ctx(1), "the error of another operation");
		CHECK(in[lens[i] / 2] == '#', "wrote behind the buffer");
		/* The sender's end is its own matter; what comes next is not disturbed. */
		{
			struct fi_cq_tagged_entry e;
			ssize_t ret = next(&bed, bed.side[0].tx, &e);

			if (ret == -FI_EAVAIL)
				GIVES(1, fi_cq_readerr(bed.side[0].tx, &err, 0));
			else
				CHECK(ret == 1, "the send does not end: %zd", ret);
		}
		fill(out, 64, 9);
		recv_at(&bed, 1, in, 64, ctx(3));
		send_to(&bed, 0, 1, out, 64, ctx(4));
		ended(&bed, ctx(3), ctx(4), 64);
		SAME(in, 64, 9);
	}
	close_bed(&bed);
}

static void truncated_expected(void) { truncated(true); }
static void truncated_unexpected(void) { truncated(false); }

/* ---- cancel ---- */

static void cancel(struct bed *bed, void *context)
{
	long ret = fi_cancel(&bed->side[1].ep->fid, context);

	NEED(!lacking(ret), "fi_cancel: %s", fi_strerror((int) -ret));
	CHECK(ret == 0, "fi_cancel: %ld (%s)", ret, fi_strerror((int) -ret));
}

static void cancel_a_receive(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 16, 1);
	memset(in, 0, 64);
	recv_at(&bed, 1, in, 16, ctx(1));
	recv_at(&bed, 1, in + 16, 16, ctx(2));
	cancel(&bed, ctx(1));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ECANCELED && err.op_context == ctx(1), "err %d", err.err);
	send_to(&bed, 0, 1, out, 16, ctx(3));
	ended(&bed, ctx(2), ctx(3), 16); /* the message goes to the one behind it */
	SAME(in + 16, 16, 1);
	CHECK(in[0] == 0, "the cancelled buffer was written");
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

static void cancel_what_has_ended(void)
{
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	recv_at(&bed, 1, in, 16, ctx(1));
	send_to(&bed, 0, 1, out, 16, ctx(2));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	settle(&bed);
	ret = fi_cancel(&bed.side[1].ep->fid, ctx(1));
	CHECK(ret == 0 || ret == -FI_ENOENT || ret == -FI_EAGAIN || lacking(ret), "fi_cancel: %s", fi_strerror(-ret));
	COMPLETION(&bed, bed.side[1].rx, ctx(1)); /* its own completion stands, and no other comes */
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

static void cancel_one_of_many(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;
	int i;

	open_bed(&bed, &usual);
	need_order(&bed);
	for (i = 0; i < 5; i++)
		recv_at(&bed, 1, in + i * 16, 16, ctx(7)); /* all with one context: one of them is cancelled */
	cancel(&bed, ctx(7));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ECANCELED, "err %d", err.err);
	NO_COMPLETION(&bed, bed.side[1].rx);
	for (i = 0; i < 4; i++) {
		send_to(&bed, 0, 1, out, 16, ctx(8));
		ended(&bed, ctx(7), ctx(8), 16);
	}
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(sizes_expected), TEST(sizes_unexpected), TEST(sizes_between_processes), TEST(smaller_than_the_buffer),
	TEST(truncated_expected), TEST(truncated_unexpected), TEST(cancel_a_receive), TEST(cancel_what_has_ended),
	TEST(cancel_one_of_many),
};

CASES(tests)

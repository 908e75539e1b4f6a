/* Two processes. */
#include <sched.h>
#include <unistd.h>
#include "shared.h"

static void ping_pong_body(struct bed *bed, int me, int pipe)
{
	struct side *mine = &bed->side[0];
	struct fi_cq_tagged_entry e;
	unsigned random = 12345;
	int round;

	meet(bed, pipe);
	for (round = 0; round < 400; round++) {
		size_t len;

		random = random * 1103515245u + 12345u; /* the same in both */
		len = at_most(bed, (random >> 8) % (round % 10 == 0 ? 200000 : 3000));
		if (round % 2 == me) {
			fill(out, len, (unsigned) round);
			meet_posted(bed, pipe);
			POST(bed, post_send(mine->ep, out, len, bed->peer, TAG, ctx(2)));
			COMPLETION(bed, mine->tx, ctx(2));
		} else {
			POST(bed, post_recv(mine->ep, in, len, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
			meet_posted(bed, pipe);
			e = COMPLETION(bed, mine->rx, ctx(1));
			CHECK(e.len == len, "round %d: %zu bytes, not %zu", round, e.len, len);
			SAME(in, len, (unsigned) round);
		}
	}
}

static void ping_pong_between_processes(void)
{
	in_two(&usual, ping_pong_body);
}

/* The receiver posts and then calls nothing: the provider's own thread must do its part. */
static void auto_body(struct bed *bed, int me, int pipe)
{
	size_t len = at_most(bed, 5000);
	long until;
	char done;

	meet(bed, pipe);
	fill(out, len, 8);
	if (me == 0) {
		POST(bed, post_recv(bed->side[0].ep, in, len, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
		pipe_send(pipe, "p", 1);
		until = now_ms() + GIVE_UP_MS;
		while (((volatile char *) in)[len - 1] != out[len - 1] && now_ms() < until)
			sched_yield();
		SAME(in, len, 8);
		CHECK(COMPLETION(bed, bed->side[0].rx, ctx(1)).len == len, "the length");
	} else {
		pipe_recv(pipe, &done, 1);
		POST(bed, post_send(bed->side[0].ep, out, len, bed->peer, TAG, ctx(2)));
		COMPLETION(bed, bed->side[0].tx, ctx(2));
	}
}

static void auto_progress(void)
{
	struct setup s = { .progress = FI_PROGRESS_AUTO };

	in_two(&s, auto_body);
}

/* Nothing but the endpoint is there when they are sent: small messages are taken, and kept until the receiver looks. */
static void sends_to_a_peer_that_does_not_look_body(struct bed *bed, int me, int pipe)
{
	enum { MESSAGES = 8, LEN = 64 };
	struct side *mine = &bed->side[0];
	char word = 's';
	int i;

	if (me == 0) {
		pipe_recv(pipe, &word, 1);
		for (i = 0; i < MESSAGES; i++) {
			POST(bed, post_recv(mine->ep, in, LEN, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
			CHECK(COMPLETION(bed, mine->rx, ctx(1)).len == LEN, "message %d: the length", i);
			SAME(in, LEN, (unsigned) i);
		}
	} else {
		for (i = 0; i < MESSAGES; i++) {
			char *mail = out + i * LEN;

			fill(mail, LEN, (unsigned) i);
			if (i % 2)
				POST(bed, post_send(mine->ep, mail, LEN, bed->peer, TAG, ctx(i)));
			else
				POST(bed, post_inject(mine->ep, mail, LEN, bed->peer, TAG));
		}
		pipe_send(pipe, &word, 1);
		for (i = 1; i < MESSAGES; i += 2)
			COMPLETION(bed, mine->tx, ctx(i));
	}
}

static void sends_to_a_peer_that_does_not_look(void)
{
	NOTHING_IS_LOST;
	in_two(&usual, sends_to_a_peer_that_does_not_look_body);
}

/* Whoever injects has no completion to come back for: once it was taken it goes on its way without another call. */
static void injects_need_no_more_calls(struct bed *bed, int me, int pipe, int messages)
{
	struct side *mine = &bed->side[0];
	char word;
	int i;

	if (me == 0) {
		for (i = 0; i < messages; i++)
			POST(bed, post_recv(mine->ep, in, 64, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
		meet_posted(bed, pipe);
		for (i = 0; i < messages; i++)
			COMPLETION(bed, mine->rx, ctx(1));
		SAME(in, 64, 5);
		pipe_send(pipe, "r", 1);
	} else {
		fill(out, 64, 5);
		meet_posted(bed, pipe);
		for (i = 0; i < messages; i++)
			POST(bed, post_inject(mine->ep, out, 64, bed->peer, TAG));
		pipe_recv(pipe, &word, 1);
	}
}

static void one_needs_no_more_calls(struct bed *bed, int me, int pipe)
{
	injects_need_no_more_calls(bed, me, pipe, 1);
}

static void some_need_no_more_calls(struct bed *bed, int me, int pipe)
{
	injects_need_no_more_calls(bed, me, pipe, 20);
}

static void an_inject_needs_no_more_calls(void)
{
	in_two(&usual, one_needs_no_more_calls);
}

static void several_injects_need_no_more_calls(void)
{
	in_two(&usual, some_need_no_more_calls);
}

/* The same, of who shares its receives and tries until it was taken, with no call in between. */
static void an_inject_of_a_sharer_is_taken_body(struct bed *bed, int me, int pipe)
{
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;
	char word;

	if (me == 0) {
		POST(bed, post_recv(bed->srx, in, 64, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
		meet_posted(bed, pipe);
		COMPLETION(bed, bed->side[0].rx, ctx(1));
		SAME(in, 64, 5);
		pipe_send(pipe, "r", 1);
	} else {
		fill(out, 64, 5);
		meet_posted(bed, pipe);
		while ((ret = post_inject(bed->side[0].ep, out, 64, bed->peer, TAG)) == -FI_EAGAIN && now_ms() < until)
			;
		CHECK(ret == 0, "an inject: %zd (%s)", ret, fi_strerror((int) -ret));
		pipe_recv(pipe, &word, 1);
	}
}

static void an_inject_of_a_sharer_is_taken(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT };

	in_two(&s, an_inject_of_a_sharer_is_taken_body);
}

/* Whoever has its messages may do something else: the sender needs nothing more of it to hear that they are there. */
static void a_receiver_that_has_all_may_stop_body(struct bed *bed, int me, int pipe)
{
	static const size_t lengths[] = { 8, 3000, 20000, 100000 };
	enum { MESSAGES = 64 };
	struct fi_cq_tagged_entry entries[MESSAGES];
	struct side *mine = &bed->side[0];
	long until = now_ms() + GIVE_UP_MS;
	unsigned k;
	char word;
	int i;

	for (k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
		size_t len = at_most(bed, lengths[k]);
		ssize_t ret = 0;

		if (me == 0) {
			fill(out, len, k);
			pipe_recv(pipe, &word, 1);
			for (i = 0; i < MESSAGES && ret == 0; i += ret == 0)
				ret = post_send(mine->ep, out, len, bed->peer, TAG, ctx(2));
			pipe_send(pipe, "s", 1);
			for (; i < MESSAGES; i++)
				POST(bed, post_send(mine->ep, out, len, bed->peer, TAG, ctx(2)));
			for (i = 0; i < MESSAGES; i++)
				COMPLETION(bed, mine->tx, ctx(2));
			pipe_send(pipe, "d", 1);
		} else {
			for (i = 0; i < MESSAGES; i++)
				POST(bed, post_recv(mine->ep, in, len, FI_ADDR_UNSPEC, TAG, 0, ctx(1)));
			pipe_send(pipe, "p", 1);
			pipe_recv(pipe, &word, 1);
			for (i = 0; i < MESSAGES && now_ms() < until; i += ret > 0 ? (int) ret : 0) {
				ret = fi_cq_read(mine->rx, entries, MESSAGES);
				CHECK(ret > 0 || ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
			}
			CHECK(i == MESSAGES, "%d of %d messages of %zu bytes", i, MESSAGES, len);
			SAME(in, len, k);
			pipe_recv(pipe, &word, 1);
		}
	}
}

static void a_receiver_that_has_all_may_stop(void)
{
	NOTHING_IS_LOST;
	ANSWERS_LEAVE_AT_ONCE;
	in_two(&usual, a_receiver_that_has_all_may_stop_body);
}

/* Neither sees the other poll while it looks. */
static void on_one_processor_body(struct bed *bed, int me, int pipe)
{
	share_a_processor();
	a_receiver_that_has_all_may_stop_body(bed, me, pipe);
}

static void so_it_may_where_both_share_a_processor(void)
{
	NOTHING_IS_LOST;
	ANSWERS_LEAVE_AT_ONCE;
	in_two(&usual, on_one_processor_body);
}

static void so_it_may_where_sends_end_when_delivered(void)
{
	struct setup s = { .tx_flags = FI_DELIVERY_COMPLETE };

	NOTHING_IS_LOST;
	ANSWERS_LEAVE_AT_ONCE;
	in_two(&s, a_receiver_that_has_all_may_stop_body);
}

static const struct test tests[] = {
	TEST(ping_pong_between_processes), TEST(a_receiver_that_has_all_may_stop),
	TEST(so_it_may_where_both_share_a_processor), TEST(so_it_may_where_sends_end_when_delivered),
	TEST(auto_progress), TEST(sends_to_a_peer_that_does_not_look),
	TEST(an_inject_needs_no_more_calls), TEST(several_injects_need_no_more_calls), TEST(an_inject_of_a_sharer_is_taken),
};

CASES(tests)

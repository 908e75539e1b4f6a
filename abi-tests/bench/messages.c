/* Messages between two processes: latency, rate and bandwidth, one way and both ways at once. Rank 0's time counts. */
#include "talk.h"

enum how { SENDING, INJECTING };

/* Windows of messages; the receiver has posted a window ahead, and answers each with one message. */
static double windows(struct side *me, size_t size, long count, int window, enum how how)
{
	long rounds = count / window + 1;
	int ahead = 0;

	mark(me, size);
	if (me->rank == 1)
		while (ahead < window)
			receive(me, size, ahead++);
	barrier(me);
	double start = now();
	for (long i = 0; i < rounds; i++) {
		if (me->rank == 0) {
			for (int slot = 0; slot < window; slot++) {
				if (how == INJECTING)
					post(me, fi_tinject(me->ep, me->tx, size, me->peer, TAG));
				else
					post(me, fi_tsend(me->ep, me->tx, size, me->desc, me->peer, TAG,
							  &me->contexts[slot]));
			}
			receive(me, 8, BURST);
			wait_for(me, how == INJECTING ? 0 : (size_t)window, 1);
		} else {
			wait_for(me, 0, (size_t)window);
			/* The last window's place in turn: contexts are free once their receive has ended. */
			for (int slot = 0; slot < window && i + 1 < rounds; slot++)
				receive(me, size, slot);
			wait_for(me, send_one(me, 8, BURST), 0);
		}
	}
	double took = now() - start;
	if (me->rank == 1)
		check(me, size);
	return took * (double)count / (double)(rounds * window);
}

static double rate(struct side *me, size_t size, long count)
{
	return windows(me, size, count, WINDOW, SENDING);
}

static double rate_inject(struct side *me, size_t size, long count)
{
	return windows(me, size, count, WINDOW, INJECTING);
}

static double bandwidth(struct side *me, size_t size, long count)
{
	return windows(me, size, count, FEW, SENDING);
}

static double burst(struct side *me, size_t size, long count)
{
	return windows(me, size, count, BURST, SENDING);
}

/* One of the two computes before it looks, as programs do that overlap both. */
static double beside_work(struct side *me, size_t size, long count, int who)
{
	me->computes = me->rank == who ? COMPUTES : 0;
	double took = windows(me, size, count, BURST, SENDING);
	me->computes = 0;
	return took;
}

static double burst_sender_computes(struct side *me, size_t size, long count)
{
	return beside_work(me, size, count, 0);
}

static double burst_receiver_computes(struct side *me, size_t size, long count)
{
	return beside_work(me, size, count, 1);
}

/* Both send a window at once and receive the other's; what is counted is the messages of both. */
static double both_ways(struct side *me, size_t size, long count, int window)
{
	long rounds = count / (2 * window) + 1;

	mark(me, size);
	double start = now();
	for (long i = 0; i < rounds; i++) {
		for (int slot = 0; slot < window; slot++)
			receive(me, size, WINDOW + slot);
		for (int slot = 0; slot < window; slot++)
			post(me, fi_tsend(me->ep, me->tx, size, me->desc, me->peer, TAG, &me->contexts[slot]));
		wait_for(me, (size_t)window, (size_t)window);
	}
	double took = now() - start;
	check(me, size);
	return took * (double)count / (double)(2 * rounds * window);
}

static double rate_both(struct side *me, size_t size, long count)
{
	return both_ways(me, size, count, WINDOW);
}

static double bandwidth_both(struct side *me, size_t size, long count)
{
	return both_ways(me, size, count, FEW);
}

/* Both send one message at once and receive the other's, as two ranks of a reduction do. */
static double at_once(struct side *me, size_t size, long count)
{
	mark(me, size);
	double start = now();
	for (long i = 0; i < count; i++) {
		receive(me, size, 1);
		wait_for(me, send_one(me, size, 0), 1);
	}
	double took = now() - start;
	check(me, size);
	return took;
}

/* A message each that is answered by eight bytes, as requests are; the whole round. */
static double request(struct side *me, size_t size, long count)
{
	mark(me, size);
	double start = now();
	for (long i = 0; i < count; i++) {
		if (me->rank == 0) {
			size_t sent = send_one(me, size, 0);
			receive(me, 8, 1);
			wait_for(me, sent, 1);
		} else {
			receive(me, size, 1);
			wait_for(me, 0, 1);
			wait_for(me, send_one(me, 8, 0), 0);
		}
	}
	double took = now() - start;
	if (me->rank == 1)
		check(me, size);
	return took;
}

/* As `ping_pong`, with eight bytes of data in the completion, which must be those that were sent. */
static double with_data(struct side *me, size_t size, long count)
{
	struct fi_cq_tagged_entry done;
	uint64_t mine = 1000;

	mark(me, size);
	double start = now();
	for (long i = 0; i < count; i++) {
		receive(me, size, 1);
		for (int turn = 0; turn < 2; turn++) {
			if (turn == me->rank) {
				post(me, fi_tinjectdata(me->ep, me->tx, size, mine, me->peer, TAG));
				continue;
			}
			ssize_t got;
			while ((got = fi_cq_read(me->cq, &done, 1)) == -FI_EAGAIN)
				;
			if (got != 1)
				die("completion", (long)got);
			if (done.data != mine)
				die("the data of the completion", (long)done.data);
		}
		mine++;
	}
	double took = (now() - start) / 2;
	check(me, size);
	return took;
}

const struct work messages[] = {
	{ .name = "latency", .unit = NANOSECONDS, .sizes = all_sizes, .round = ping_pong },
	{ .name = "latency-both", .unit = NANOSECONDS, .sizes = all_sizes, .round = at_once },
	{ .name = "latency-request", .unit = NANOSECONDS, .sizes = all_sizes, .round = request },
	{ .name = "latency-data", .unit = NANOSECONDS, .sizes = eight, .round = with_data },
	{ .name = "rate", .unit = MILLIONS_PER_SECOND, .sizes = short_sizes, .round = rate },
	{ .name = "rate-inject", .unit = MILLIONS_PER_SECOND, .sizes = eight, .round = rate_inject },
	{ .name = "rate-both", .unit = MILLIONS_PER_SECOND, .sizes = short_sizes, .round = rate_both },
	{ .name = "bandwidth", .unit = GIGABYTES_PER_SECOND, .sizes = long_sizes, .round = bandwidth },
	{ .name = "burst", .unit = GIGABYTES_PER_SECOND, .sizes = burst_sizes, .round = burst },
	{ .name = "burst-sender-computes", .unit = GIGABYTES_PER_SECOND, .sizes = burst_sizes, .round = burst_sender_computes },
	{ .name = "burst-receiver-computes", .unit = GIGABYTES_PER_SECOND, .sizes = burst_sizes, .round = burst_receiver_computes },
	{ .name = "bandwidth-both", .unit = GIGABYTES_PER_SECOND, .sizes = long_sizes, .round = bandwidth_both },
	{ .name = NULL },
};

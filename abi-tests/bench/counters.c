/* Endpoints that have counters and no queue: who waits compares a number. */
#include "talk.h"
#include <rdma/fi_domain.h>

static struct side counted;
/* How much of each counter has been waited for. */
static uint64_t sends, receives;

static const char *open_counted(struct side *me, size_t size)
{
	(void)size;
	if (!counted.ep)
		counted = another_pair(me, COUNTED);
	return NULL;
}

static void reach(struct fid_cntr *counter, uint64_t value)
{
	while (fi_cntr_read(counter) < value)
		if (fi_cntr_readerr(counter))
			die("the counter of errors", (long)fi_cntr_readerr(counter));
}

/* There is no queue to let the library work by. */
#define post_counted(call)						\
	do {								\
		ssize_t ret_;						\
		while ((ret_ = (call)) == -FI_EAGAIN) {			\
			fi_cntr_read(counted.sends);			\
			fi_cntr_read(counted.receives);			\
		}							\
		if (ret_)						\
			die(#call, ret_);				\
	} while (0)

static void post_receive(size_t size, int slot)
{
	post_counted(fi_trecv(counted.ep, counted.rx, size, counted.desc, FI_ADDR_UNSPEC, TAG, 0, &counted.contexts[slot]));
}

static void send_counted(size_t size, int slot)
{
	post_counted(fi_tsend(counted.ep, counted.tx, size, counted.desc, counted.peer, TAG, &counted.contexts[slot]));
	sends++;
}

static double latency(struct side *me, size_t size, long count)
{
	mark(&counted, size);
	double start = now();
	for (long i = 0; i < count; i++) {
		post_receive(size, 1);
		for (int turn = 0; turn < 2; turn++) {
			if (turn == me->rank)
				send_counted(size, 0);
			else
				reach(counted.receives, ++receives);
		}
		reach(counted.sends, sends);
	}
	double took = (now() - start) / 2;
	check(&counted, size);
	return took;
}

/* Windows, each answered by one message. */
static double rate(struct side *me, size_t size, long count)
{
	long rounds = count / WINDOW + 1;

	mark(&counted, size);
	double start = now();
	for (long i = 0; i < rounds; i++) {
		int mine = me->rank == 0 ? WINDOW : 1, theirs = 1 + WINDOW - mine;
		for (int slot = 0; slot < theirs; slot++)
			post_receive(size, WINDOW + slot);
		for (int slot = 0; me->rank == 0 && slot < mine; slot++)
			send_counted(size, slot);
		reach(counted.receives, receives += (uint64_t)theirs);
		if (me->rank == 1)
			send_counted(size, 0);
		reach(counted.sends, sends);
	}
	double took = now() - start;
	check(&counted, size);
	return took * (double)count / (double)(rounds * WINDOW);
}

const struct work counters[] = {
	{ .name = "latency-counters", .unit = NANOSECONDS, .sizes = eight, .round = latency, .prepare = open_counted },
	{ .name = "rate-counters", .unit = MILLIONS_PER_SECOND, .sizes = eight, .round = rate, .prepare = open_counted },
	{ .name = NULL },
};

/* How long it takes until who sleeps in fi_cq_sread has a message: each is sent a while after the other went to sleep. */
#include "talk.h"

#define ASLEEP 50e-6	/* seconds until the other sleeps, with certainty enough */

static struct side sleeper;

static const char *open_sleeper(struct side *me, size_t size)
{
	(void)size;
	if (!sleeper.ep)
		sleeper = another_pair(me, SLEEPING);
	return NULL;
}

static void sleep_for_message(void)
{
	struct fi_cq_tagged_entry done;

	for (;;) {
		ssize_t got = fi_cq_sread(sleeper.cq, &done, 1, NULL, 10000);
		if (got != 1 && got != -FI_EAGAIN && got != -FI_EINTR)
			die("fi_cq_sread", (long)got);
		if (got == 1 && done.flags & FI_RECV)
			return;
	}
}

static double wake_up(struct side *me, size_t size, long count)
{
	mark(&sleeper, size);
	double start = now();
	for (long i = 0; i < count; i++) {
		receive(&sleeper, size, 1);
		for (int turn = 0; turn < 2; turn++) {
			if (turn != me->rank) {
				sleep_for_message();
				continue;
			}
			for (double until = now() + ASLEEP; now() < until;)
				;
			post(&sleeper, fi_tinject(sleeper.ep, sleeper.tx, size, sleeper.peer, TAG));
		}
	}
	double took = (now() - start) / 2 - ASLEEP * (double)count;
	check(&sleeper, size);
	return took;
}

const struct work waking[] = {
	{ .name = "wake-up", .unit = NANOSECONDS, .sizes = eight, .round = wake_up, .prepare = open_sleeper },
	{ .name = NULL },
};

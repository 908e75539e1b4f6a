/* How long it takes until who waits in fi_cq_sread has a message: one that is sent at once, and one that is sent a while after the
 * other went to sleep. */
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

static void wait_for_message(void)
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

/* Messages to and fro, each `pause` seconds after the one before came; seconds for `count` one way, without the pauses. */
static double to_and_fro(struct side *me, size_t size, long count, double pause)
{
	mark(&sleeper, size);
	double start = now();
	for (long i = 0; i < count; i++) {
		receive(&sleeper, size, 1);
		for (int turn = 0; turn < 2; turn++) {
			if (turn != me->rank) {
				wait_for_message();
				continue;
			}
			for (double until = now() + pause; pause > 0 && now() < until;)
				;
			post(&sleeper, fi_tinject(sleeper.ep, sleeper.tx, size, sleeper.peer, TAG));
		}
	}
	double took = (now() - start) / 2 - pause * (double)count;
	check(&sleeper, size);
	return took;
}

static double at_once(struct side *me, size_t size, long count)
{
	return to_and_fro(me, size, count, 0);
}

static double wake_up(struct side *me, size_t size, long count)
{
	return to_and_fro(me, size, count, ASLEEP);
}

const struct work waking[] = {
	{ .name = "latency-sread", .unit = NANOSECONDS, .sizes = eight, .round = at_once, .prepare = open_sleeper },
	{ .name = "wake-up", .unit = NANOSECONDS, .sizes = eight, .round = wake_up, .prepare = open_sleeper },
	{ .name = NULL },
};

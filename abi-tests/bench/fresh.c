/* Messages as programs have them: the sender has just written what it sends, and the receiver reads what came. One word of
 * each line of the cache is written, and compared; that counts. Rank 0's time counts. */
#include "talk.h"

#define STEP 64 /* a line */

void write_words(char *to, size_t size, uint64_t value)
{
	for (size_t at = 0; at < size; at += STEP)
		memcpy(to + at, &value, sizeof(value));
}

void check_words(const char *from, size_t size, uint64_t value)
{
	uint64_t found, odd = 0;

	for (size_t at = 0; at < size; at += STEP) {
		memcpy(&found, from + at, sizeof(found));
		odd |= found ^ value;
	}
	if (odd)
		die("the data did not arrive", (long)size);
}

/* To and fro, half a round. */
static double to_and_fro(struct side *me, size_t size, long count)
{
	barrier(me);
	double start = now();
	for (long i = 0; i < count; i++)
		for (int turn = 0; turn < 2; turn++) {
			if (turn == me->rank) {
				write_words(me->tx, size, (uint64_t)i);
				wait_for(me, send_one(me, size, 0), 0);
			} else {
				receive(me, size, 1);
				wait_for(me, 0, 1);
				check_words(me->rx, size, (uint64_t)i);
			}
		}
	return (now() - start) / 2;
}

/* Each sends one and waits for the other's, the whole round. */
static double at_once(struct side *me, size_t size, long count)
{
	barrier(me);
	double start = now();
	for (long i = 0; i < count; i++) {
		receive(me, size, 1);
		write_words(me->tx, size, (uint64_t)i);
		wait_for(me, send_one(me, size, 0), 1);
		check_words(me->rx, size, (uint64_t)i);
	}
	return now() - start;
}

const struct work fresh[] = {
	{ .name = "latency-fresh", .unit = NANOSECONDS, .sizes = fresh_sizes, .round = to_and_fro },
	{ .name = "latency-fresh-both", .unit = NANOSECONDS, .sizes = fresh_sizes, .round = at_once },
	{ .name = NULL },
};

/* What no other work has: bursts of random number and lengths, one way or both, between programs that compute for a random
 * time meanwhile, as ranks of an uneven load do. Rank 0's time counts. */
#include "talk.h"
#include <stdint.h>

/* Below `below`; the same in each run (xorshift). */
static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % below;
}

/* A third computes nothing, the others for up to COMPUTES. */
static double pause_of(uint32_t *state)
{
	return draw(state, 3) ? COMPUTES * draw(state, 1000) / 1000 : 0;
}

/* One burst; both draw alike, so each knows how many come. Returns how many messages that were. */
static long burst(struct side *me, size_t size, uint32_t *common)
{
	int numbers[2];
	double pauses[2];

	numbers[0] = 1 + (int)draw(common, BURST);
	numbers[1] = draw(common, 3) ? 1 + (int)draw(common, BURST) : 0;
	pauses[0] = pause_of(common);
	pauses[1] = pause_of(common);
	uint32_t lengths = *common + (uint32_t)me->rank;
	int mine = numbers[me->rank], theirs = numbers[!me->rank];

	me->computes = pauses[me->rank];
	for (int slot = 0; slot < theirs; slot++)
		receive(me, size, BURST + slot);
	for (int slot = 0; slot < mine; slot++)
		post(me, fi_tsend(me->ep, me->tx, 1 + draw(&lengths, (uint32_t)size), me->desc, me->peer, TAG,
				  &me->contexts[slot]));
	wait_for(me, (size_t)mine, (size_t)theirs);
	me->computes = 0;
	return mine + theirs;
}

static double mixed(struct side *me, size_t size, long count)
{
	uint32_t common = 1;
	long done = 0;

	barrier(me);
	double start = now();
	while (done < count)
		done += burst(me, size, &common);
	return (now() - start) * (double)count / (double)done;
}

const struct work mixed_bursts[] = {
	{ .name = "mixed", .unit = MILLIONS_PER_SECOND, .sizes = burst_sizes, .round = mixed },
	{ .name = NULL },
};

/* What matching costs beside many: one way of 8 bytes while other receives are posted, or other messages are held, that
 * nothing matches. "-mask": all receives ignore some bits of the tag. */
#include "talk.h"
#include <stdlib.h>

#define OTHERS (9ull << 32)	/* their tags begin here */

/* Seconds that a library may have no room for one more. Where nothing is measured, other work may have the processors. */
static double long_enough(const struct side *me)
{
	return me->polite ? 300 : 1;
}

static const size_t how_many[] = { 1, 10, 100, 1000, 10000, 100000, 0 };

/* Each kind has its own pair of endpoints; what was posted there stays. */
struct crowded {
	struct side pair;
	struct fi_context2 *contexts;
	size_t there;
};
static struct crowded posted, posted_masked, held, held_masked;

static struct crowded *opened(struct crowded *kind, struct side *me, uint64_t ignore)
{
	if (!kind->pair.ep) {
		kind->pair = another_pair(me, PLAIN);
		kind->pair.ignore = ignore;
		kind->contexts = calloc(100000, sizeof(*kind->contexts));
		if (!kind->contexts)
			die("calloc", FI_ENOMEM);
	}
	return kind;
}

/* Makes the call again while the library has no room. Whether it was taken in the end. */
#define TAKEN(me, call)								\
	({									\
		double until_ = now() + long_enough(me);			\
		ssize_t ret_;							\
		while ((ret_ = (call)) == -FI_EAGAIN && now() < until_)		\
			progress(me);						\
		if (ret_ && ret_ != -FI_EAGAIN)					\
			die(#call, ret_);					\
		ret_ == 0;							\
	})

/* Both processes give up where one does. */
static const char *both(struct side *me, int mine, const char *why)
{
	int theirs;

	exchange(me, &mine, &theirs, sizeof(mine));
	return mine && theirs ? NULL : why;
}

/* Both processes post receives for what never comes. */
static const char *post_others(struct crowded *to, size_t count)
{
	struct side *me = &to->pair;
	int taken = 1;

	for (; taken && to->there < count; to->there += (size_t)taken)
		taken = TAKEN(me, fi_trecv(me->ep, me->rx, 8, me->desc, FI_ADDR_UNSPEC, OTHERS + (to->there << 8), me->ignore,
					   &to->contexts[to->there]));
	return both(me, taken, "it takes no more receives");
}

/* Both send what is never received. A last message that is, says that all of them have come. */
static const char *hold_others(struct crowded *to, size_t count)
{
	struct side *me = &to->pair;
	int taken = 1;

	receive(me, 8, WINDOW);
	for (; taken && to->there < count; to->there += (size_t)taken) {
		taken = TAKEN(me, fi_tsend(me->ep, me->tx, 8, me->desc, me->peer, OTHERS + (to->there << 8),
					   &to->contexts[to->there]));
		progress(me);
	}
	const char *why = both(me, taken, "it takes no more messages that nobody receives");
	if (why)
		return why;
	taken = TAKEN(me, fi_tsend(me->ep, me->tx, 8, me->desc, me->peer, TAG, &me->contexts[0]));
	for (double until = now() + long_enough(me); taken && !me->received && now() < until;)
		progress(me);
	/* The other may not have all yet. */
	for (int i = 0; i < 1000; i++)
		progress(me);
	taken = taken && me->received;
	me->sent = me->received = 0;
	return both(me, taken, "it does not deliver behind messages that nobody receives");
}

#define KIND(name, fill, mask)									\
	static const char *fill_##name(struct side *me, size_t count)				\
	{											\
		return fill(opened(&name, me, mask), count);					\
	}											\
	static double beside_##name(struct side *me, size_t count, long operations)		\
	{											\
		(void)me;									\
		(void)count;									\
		return ping_pong(&name.pair, 8, operations);					\
	}
KIND(posted, post_others, 0)
KIND(posted_masked, post_others, 0xff)
KIND(held, hold_others, 0)
KIND(held_masked, hold_others, 0xff)

#define ROW(its_name, kind)								\
	{ .name = its_name, .unit = NANOSECONDS, .sizes = how_many, .round = beside_##kind, .prepare = fill_##kind, .counts = 1 }

const struct work matching[] = {
	ROW("match-posted", posted),
	ROW("match-posted-mask", posted_masked),
	ROW("match-held", held),
	ROW("match-held-mask", held_masked),
	{ .name = NULL },
};

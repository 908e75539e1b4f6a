/*
 * What a guest of come_and_go.c has written at hosts, as far as it can be known, and where. Who includes this has said
 * before how many processes there are at MOST.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include "crowd.h"

#define SLOTS 6          /* what a guest writes at a host */
#define PLACES 1024      /* where slots may lie */
#define SLOT 20000

/*
 * What a slot at a host holds: `known` once an operation of this life has ended after which nothing else was begun. What a
 * life has begun may still be done when the next one writes, for there is no order between endpoints: so a slot lies
 * elsewhere from then on if it is not `there`, written for certain, when the guest is closed. It is when a write has ended
 * that promises so, or a read that the same life began after it.
 */
struct slot {
	uint64_t pattern;
	size_t len;
	bool known, busy, there;
	unsigned place;
};

static struct slot slot[MOST][SLOTS];
static unsigned places[MOST];

static unsigned fresh_place(int host_of)
{
	if (places[host_of] == PLACES)
		DIE("too many places");
	return places[host_of]++;
}

static void begin_slots(void)
{
	int i, k;

	for (i = 0; i < processes; i++)
		for (k = 0; k < SLOTS; k++)
			slot[i][k] = (struct slot) { .there = true, .place = fresh_place(i) };
}

/* A write begins: the old bytes or the new ones may be there, or some of each. */
static void slot_changes(struct slot *at)
{
	at->known = at->there = false;
}

/* It has ended well. `promises`: so that it is done at the host. */
static void slot_written(struct slot *at, uint64_t pattern, size_t len, bool promises)
{
	*at = (struct slot) { pattern, len, true, false, promises, at->place };
}

/* A read has ended well, with these bytes. */
static void slot_read(struct slot *at, const char *buf, size_t len)
{
	int number = (int) (at - slot[0]);

	at->busy = false;
	if (at->known && !holds(buf, len < at->len ? len : at->len, at->pattern))
		DIE("slot %d at %d does not hold what was written last", number % SLOTS, number / SLOTS);
	at->there = true;
}

/* The guest is closed, whatever was under way: what such a slot holds is not known until it is written again. */
static void writer_is_gone(void)
{
	int i, k;

	for (i = 0; i < processes; i++)
		for (k = 0; k < SLOTS; k++) {
			struct slot *at = &slot[i][k];

			at->known &= at->there && !at->busy;
			if (!at->there)
				at->place = fresh_place(i);
			at->there = true;
			at->busy = false;
		}
}

#endif

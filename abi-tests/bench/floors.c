/* What the machine itself can do, measured beside the library: no library can be faster. */
#include "bench.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct lines {
	_Alignas(128) _Atomic uint64_t ping;
	_Alignas(128) _Atomic uint64_t pong;
};

static struct lines *lines;
static uint64_t turn;
static char *from, *to;

/* One-way: each process writes its own line and spins on the other's. */
static double cache_line(struct side *me, size_t size, long count)
{
	_Atomic uint64_t *mine = me->rank ? &lines->pong : &lines->ping;
	_Atomic uint64_t *theirs = me->rank ? &lines->ping : &lines->pong;
	double start = now();

	(void)size;
	for (long i = 0; i < count; i++) {
		turn++;
		if (me->rank == 0)
			atomic_store_explicit(mine, turn, memory_order_release);
		while (atomic_load_explicit(theirs, memory_order_acquire) != turn)
			;
		if (me->rank == 1)
			atomic_store_explicit(mine, turn, memory_order_release);
	}
	return (now() - start) / 2;
}

static double copy(struct side *me, size_t size, long count)
{
	if (me->rank != 0)
		return 0; /* one core alone */
	double start = now();
	for (long i = 0; i < count; i++) {
		memcpy(to, from, size);
		__asm__ volatile("" ::: "memory");
	}
	return now() - start;
}

void floors(struct side *me, const struct settings *with, void *shared)
{
	lines = shared;
	from = aligned_alloc(4096, 4 << 20);
	to = aligned_alloc(4096, 4 << 20);
	if (!from || !to)
		die("aligned_alloc", 12);
	memset(from, 1, 4 << 20);
	memset(to, 2, 4 << 20);
	report(me, with, "floor-line", 8, NANOSECONDS, cache_line);
	for (size_t size = 4096; size <= 4 << 20; size *= 4)
		report(me, with, "floor-memcpy", size, NANOSECONDS, copy);
	free(from);
	free(to);
}

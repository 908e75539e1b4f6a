/* What the machine itself can do, measured beside the library: no library can be faster. */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define LONGEST (16 << 20)
#define RECORDS 256 /* of the bare ring */

struct record {
	_Alignas(32) _Atomic uint64_t number;
	uint64_t header[2], body;
};

struct lines {
	_Alignas(128) _Atomic uint64_t ping;
	_Alignas(128) _Atomic uint64_t pong;
	_Alignas(128) _Atomic uint64_t read;
	_Alignas(128) _Atomic uint64_t pid[2], address[2], may_copy; /* what the kernel copies from, and whether it may */
	_Alignas(128) struct record ring[RECORDS];
};

_Static_assert(sizeof(struct lines) <= FLOOR_BYTES, "what both processes map is too short");

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

/* Messages of 8 bytes through the barest ring: two records to a line, of a number, a header and the body. */
static double ring(struct side *me, size_t size, long count)
{
	static uint64_t sent, read;
	const uint64_t end = sent + (uint64_t)count;
	double start = now();

	(void)size;
	for (; sent < end; sent++) {
		struct record *record = &lines->ring[sent % RECORDS];
		if (me->rank == 0) {
			while (sent - read >= RECORDS)
				read = atomic_load_explicit(&lines->read, memory_order_acquire);
			record->header[0] = record->header[1] = record->body = sent;
			atomic_store_explicit(&record->number, sent + 1, memory_order_release);
		} else {
			while (atomic_load_explicit(&record->number, memory_order_acquire) != sent + 1)
				;
			__asm__ volatile("" : : "r"(record->header[0]), "r"(record->header[1]), "r"(record->body));
			if (sent % 32 == 31 || sent + 1 == end)
				atomic_store_explicit(&lines->read, sent + 1, memory_order_release);
		}
	}
	while (me->rank == 0 && read < end)
		read = atomic_load_explicit(&lines->read, memory_order_acquire);
	return now() - start;
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

/* One call of the kernel that copies out of the other process. 0: it failed. */
static int fetched(const struct side *me, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)(uintptr_t)lines->address[!me->rank], size };

	return process_vm_readv((pid_t)lines->pid[!me->rank], &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* Such calls by one process; the other is idle. */
static double by_kernel(struct side *me, size_t size, long count)
{
	if (me->rank != 0)
		return 0;
	double start = now();
	for (long i = 0; i < count; i++)
		if (!fetched(me, size))
			die("process_vm_readv", errno);
	return now() - start;
}

/* Whether the kernel may copy so here: where it may not, there is no such floor. Both processes say the same. */
static int kernel_copies(struct side *me)
{
	lines->address[me->rank] = (uintptr_t)from;
	lines->pid[me->rank] = (uint64_t)getpid();
	barrier(me);
	if (me->rank == 0)
		lines->may_copy = fetched(me, 8);
	barrier(me);
	return lines->may_copy != 0;
}

/* Messages of which each is one call of the kernel by its receiver, and a line that says that it is there: to and fro, half
 * a round; or one each way, a whole round. With `fresh` they are written and read as in fresh.c. */
static double kernel_messages(struct side *me, size_t size, long count, int both, int fresh)
{
	_Atomic uint64_t *mine = me->rank ? &lines->pong : &lines->ping;
	_Atomic uint64_t *theirs = me->rank ? &lines->ping : &lines->pong;

	barrier(me);
	double start = now();
	for (long i = 0; i < count; i++) {
		turn++;
		for (int who = 0; who < 2; who++) {
			/* Each sends in its turn; or both send first, and then both fetch. */
			if (both ? who == 0 : who == me->rank) {
				if (fresh)
					write_words(from, size, turn);
				atomic_store_explicit(mine, turn, memory_order_release);
			} else {
				while (atomic_load_explicit(theirs, memory_order_acquire) < turn)
					;
				if (!fetched(me, size))
					die("process_vm_readv", errno);
				if (fresh)
					check_words(to, size, turn);
			}
		}
		if (both) { /* what was sent may be written again once both have it */
			atomic_store_explicit(mine, ++turn, memory_order_release);
			while (atomic_load_explicit(theirs, memory_order_acquire) < turn)
				;
		}
	}
	double took = now() - start;
	return both ? took : took / 2;
}

static double kernel_both(struct side *me, size_t size, long count)
{
	return kernel_messages(me, size, count, 1, 0);
}

static double kernel_fresh(struct side *me, size_t size, long count)
{
	return kernel_messages(me, size, count, 0, 1);
}

static double kernel_fresh_both(struct side *me, size_t size, long count)
{
	return kernel_messages(me, size, count, 1, 1);
}

static const struct {
	const char *name;
	work_round *round;
} kernel_floors[] = {
	{ "floor-kernel", by_kernel },
	{ "floor-kernel-both", kernel_both },
	{ "floor-kernel-fresh", kernel_fresh },
	{ "floor-kernel-fresh-both", kernel_fresh_both },
};
enum { KERNEL_FLOORS = sizeof(kernel_floors) / sizeof(*kernel_floors) };

static int wants_kernel(const struct settings *with)
{
	int any = 0;

	for (int i = 0; i < KERNEL_FLOORS; i++)
		any |= wanted(with, kernel_floors[i].name);
	return any;
}

/* The least of some tries: in any one a process may have lost its core. */
double line_now(struct side *me, const struct settings *with)
{
	long count = with->operations ? 2 : 400;
	double least = 1;

	for (int i = 0; i < (with->operations ? 1 : 4); i++) {
		barrier(me);
		double took = cache_line(me, 0, count) / (double)count;
		least = took < least ? took : least;
	}
	return least;
}

void floors(struct side *me, const struct settings *with, void *shared)
{
	lines = shared;
	if (!wanted(with, "floor-line") && !wanted(with, "floor-ring") && !wanted(with, "floor-memcpy") && !wants_kernel(with))
		return;
	from = aligned_alloc(4096, LONGEST);
	to = aligned_alloc(4096, LONGEST);
	if (!from || !to)
		die("aligned_alloc", 12);
	memset(from, 1, LONGEST);
	memset(to, 2, LONGEST);
	report(me, with, "floor-line", 8, NANOSECONDS, cache_line);
	report(me, with, "floor-ring", 8, MILLIONS_PER_SECOND, ring);
	for (size_t size = 4096; size <= LONGEST; size *= 4)
		report(me, with, "floor-memcpy", size, NANOSECONDS, copy);
	if (wants_kernel(with) && kernel_copies(me))
		for (int i = 0; i < KERNEL_FLOORS; i++)
			for (size_t size = 4096; size <= LONGEST; size *= 4)
				report(me, with, kernel_floors[i].name, size, NANOSECONDS, kernel_floors[i].round);
	free(from);
	free(to);
}

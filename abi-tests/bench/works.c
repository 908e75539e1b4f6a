/* Which works there are, in what order and for which sizes they run, and what each needs of the library. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>

const size_t all_sizes[] = { 1,	     8,	      64,      256,	512,	 1024,	  2048,	   4096,    8192,    16384, 32768,
			     1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 0 };
const size_t short_sizes[] = { 8, 64, 512, 4096, 0 };
const size_t long_sizes[] = { 4096, 16384, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 0 };
const size_t burst_sizes[] = { 512, 2048, 4096, 8192, 16384, 1 << 16, 0 };
const size_t fresh_sizes[] = { 64, 512, 4096, 8192, 16384, 32768, 1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 22, 0 };
const size_t eight[] = { 8, 0 };

static const struct work *const tables[] = { messages, fresh, steady_windows, mixed_bursts, remote_memory, counters, matching, waking, streaming, threads };
#define TABLES (sizeof(tables) / sizeof(*tables))

static int has(const struct side *me, const struct settings *with, enum needs needs)
{
	switch (needs) {
	case RMA: return me->rma >= 1;
	case ATOMICS: return me->rma >= 2;
	case CONNECTIONS: return strstr(with->provider, "tcp") != NULL;
	case THREADS: return with->thread_safe;
	default: return 1;
	}
}

/* Whether this size is measured. Who only looks whether all works takes the first and the last. */
static int in_reach(const struct settings *with, const struct work *work, size_t size)
{
	return size && size <= (work->counts ? (with->operations ? 100 : SIZE_MAX) : with->largest);
}

static void run(struct side *me, const struct settings *with, const struct work *work)
{
	for (const size_t *size = work->sizes; in_reach(with, work, *size); size++) {
		const char *why = NULL;

		if (with->operations && size != work->sizes && in_reach(with, work, size[1]))
			continue;
		if (!has(me, with, work->needs))
			why = "it has no such operations";
		else if (work->prepare)
			why = work->prepare(me, *size);
		if (why && me->rank == 0)
			print_reason(work->name, *size, why);
		if (!why)
			report(me, with, work->name, *size, work->unit, work->round);
	}
}

/* Whether the work is to run. One of connections or threads is left out without a word where these are not to be had. */
static int concerns(const struct side *me, const struct settings *with, const struct work *work)
{
	return wanted(with, work->name) && (work->needs < CONNECTIONS || has(me, with, work->needs));
}

void works(struct side *me, const struct settings *with)
{
	opening(me, with);
	for (size_t t = 0; t < TABLES; t++)
		for (const struct work *work = tables[t]; work->name; work++)
			if (concerns(me, with, work))
				run(me, with, work);
	memory_of_peers(me, with);
}

void list_works(void)
{
	puts("set-up\nfirst-message");
	for (size_t t = 0; t < TABLES; t++)
		for (const struct work *work = tables[t]; work->name; work++)
			puts(work->name);
	puts("memory-per-peer");
}

/* Where each pair has a connection: several pairs at once, and what peers cost that are idle. */
#include "talk.h"
#include <stdlib.h>
#include <sys/resource.h>

static struct side pairs[STREAMS];

static void wait_for_all(size_t sent, size_t received)
{
	for (int left = 1; left;) {
		left = 0;
		for (struct side *pair = pairs; pair < pairs + STREAMS; pair++) {
			progress(pair);
			left |= pair->sent < sent || pair->received < received;
		}
	}
	for (struct side *pair = pairs; pair < pairs + STREAMS; pair++)
		wait_for(pair, sent, received);
}

static void receive_windows(size_t size)
{
	for (int slot = 0; slot < FEW * STREAMS; slot++)
		receive(&pairs[slot % STREAMS], size, slot / STREAMS);
}

/* As `windows`, from several endpoints to as many. */
static double streams(struct side *me, size_t size, long count)
{
	long rounds = count / (FEW * STREAMS) + 1;
	size_t sent = 0;

	mark(me, size);
	if (me->rank == 1)
		receive_windows(size);
	barrier(me);
	double start = now();
	for (long i = 0; i < rounds; i++) {
		if (me->rank == 0) {
			for (int s = 0; s < STREAMS; s++)
				receive(&pairs[s], 8, WINDOW);
			for (int slot = 0; slot < FEW * STREAMS; slot++) {
				struct side *pair = &pairs[slot % STREAMS];
				post(pair, fi_tsend(pair->ep, me->tx, size, me->desc, pair->peer, TAG, &pair->contexts[slot / STREAMS]));
			}
			wait_for_all(FEW, 1);
		} else {
			wait_for_all(0, FEW);
			if (i + 1 < rounds)
				receive_windows(size);
			for (int s = 0; s < STREAMS; s++)
				sent = send_one(&pairs[s], 8, WINDOW);
			wait_for_all(sent, 0);
		}
	}
	double took = now() - start;
	if (me->rank == 1)
		check(me, size);
	return took * (double)count / (double)(rounds * FEW * STREAMS);
}

static int are_small(struct side *me)
{
	struct rusage mine, theirs;

	getrusage(RUSAGE_SELF, &mine);
	exchange(me, &mine, &theirs, sizeof(mine));
	return mine.ru_maxrss < 3 << 20 && theirs.ru_maxrss < 3 << 20;
}

/* Connects rank 0 with more peers, up to `count`, which then stay idle. */
const char *idle_peers(struct side *me, size_t count)
{
	static size_t there;

	ping_pong(me, 8, 1); /* connects the two, so that the answers leave at once */
	for (; there < count; there++) {
		if (there % 16 == 0 && !are_small(me))
			return "its endpoints have come to take 3 GiB";
		if (me->rank == 0) {
			receive(me, 8, 0);
			wait_for(me, 0, 1);
			wait_for(me, send_one(me, 8, 0), 0);
		} else {
			struct side other = another_peer(me);
			receive(me, 8, 0);
			wait_for(me, send_one(&other, 8, 1), 1);
		}
	}
	return NULL;
}

/* `peers` of them are idle. */
static double poll_in_vain(struct side *me, size_t peers, long count)
{
	struct fi_cq_tagged_entry done;
	double start = now();

	(void)peers;
	for (long i = 0; me->rank == 0 && i < count; i++)
		if (fi_cq_read(me->cq, &done, 1) != -FI_EAGAIN)
			die("a completion of nothing", i);
	return now() - start;
}

/* What this process has in memory, in bytes. */
static double resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0, all;

	if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2)
		die("/proc/self/statm", pages);
	fclose(file);
	return (double)pages * 4096;
}

void memory_of_peers(struct side *me, const struct settings *with)
{
	static const size_t counts[] = { 16, 256, 512, 0 };
	const char *name = "memory-per-peer", *why;
	double before;

	if (!wanted(with, name))
		return;
	ping_pong(me, 8, 100);
	before = resident();
	for (const size_t *peers = counts; *peers && !(with->operations && *peers > 16); peers++) {
		why = idle_peers(me, *peers);
		if (me->rank != 0)
			continue;
		/* The kernel may have taken some back meanwhile. */
		double grown = resident() > before ? (resident() - before) / (double)*peers : 0;
		if (why)
			print_reason(name, *peers, why);
		else
			print_line(name, *peers, BYTES, grown, grown, NULL);
	}
}

static const char *several_pairs(struct side *me, size_t size)
{
	(void)size;
	for (int s = 0; s < STREAMS && !pairs[s].ep; s++)
		pairs[s] = another_pair(me, PLAIN);
	return NULL;
}

static const size_t idle[] = { 1, 100, 1000, 0 };

const struct work streaming[] = {
	{ .name = "streams", .unit = GIGABYTES_PER_SECOND, .sizes = long_sizes, .round = streams, .needs = CONNECTIONS,
	  .prepare = several_pairs },
	{ .name = "poll", .unit = NANOSECONDS, .sizes = idle, .round = poll_in_vain, .needs = CONNECTIONS,
	  .prepare = idle_peers, .counts = 1 },
	{ .name = NULL },
};

/* FI_THREAD_SAFE: so many threads of each process send at once, each by an endpoint and queue of its own, or all by one.
 * What is counted is the messages of all. Where there are fewer processors than threads, threads share them. */
#include "talk.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MOST_THREADS 4

static const size_t numbers[] = { 1, 2, 4, 0 };

struct worker;
/* A message on its way, found again by its context. */
struct posted {
	struct fi_context2 context;
	struct worker *of;
	int is_send;
};

static struct worker {
	struct side *at;
	unsigned number;
	long rounds;
	struct posted sends[WINDOW], receives[WINDOW];
	_Alignas(64) _Atomic long sent;
	_Alignas(64) _Atomic long received;
} workers[MOST_THREADS];

static struct side own[MOST_THREADS], shared;

/* Whatever has ended, whosever it was. */
static void let_work(struct side *at)
{
	struct fi_cq_tagged_entry done[16];
	ssize_t count = fi_cq_read(at->cq, done, 16);

	if (count < 0 && count != -FI_EAGAIN)
		die("fi_cq_read", (long)count);
	for (ssize_t i = 0; i < count; i++) {
		struct posted *one = done[i].op_context;
		atomic_fetch_add_explicit(one->is_send ? &one->of->sent : &one->of->received, 1, memory_order_release);
	}
	if (count <= 0)
		sched_yield();
}

#define post_by(at, call)						\
	do {								\
		ssize_t ret_;						\
		while ((ret_ = (call)) == -FI_EAGAIN)			\
			let_work(at);					\
		if (ret_)						\
			die(#call, ret_);				\
	} while (0)

static void receives(struct worker *w, int count)
{
	for (int i = 0; i < count; i++)
		post_by(w->at, fi_trecv(w->at->ep, w->at->rx + 64 * w->number, 8, w->at->desc, FI_ADDR_UNSPEC, TAG + w->number, 0,
					&w->receives[i].context));
}

static void sends(struct worker *w, int count)
{
	for (int i = 0; i < count; i++)
		post_by(w->at, fi_tsend(w->at->ep, w->at->tx + 64 * w->number, 8, w->at->desc, w->at->peer, TAG + w->number,
					&w->sends[i].context));
}

static void until(struct worker *w, long sent, long received)
{
	while (atomic_load_explicit(&w->sent, memory_order_acquire) < sent ||
	       atomic_load_explicit(&w->received, memory_order_acquire) < received)
		let_work(w->at);
}

/* Windows, each answered by one message. */
static void *work_on(void *of)
{
	struct worker *w = of;
	int mine = w->at->rank == 0 ? WINDOW : 1, theirs = 1 + WINDOW - mine;

	pin(2 * w->number + (unsigned)w->at->rank);
	for (long i = 1; i <= w->rounds; i++) {
		receives(w, theirs);
		if (w->at->rank == 0)
			sends(w, mine);
		until(w, w->at->rank == 0 ? i * mine : 0, i * theirs);
		if (w->at->rank == 1)
			sends(w, mine);
		until(w, i * mine, i * theirs);
	}
	return NULL;
}

static double all_at_once(struct side *me, size_t count, long messages, int share)
{
	pthread_t ids[MOST_THREADS];
	long rounds = messages / (WINDOW * (long)count) + 1;

	for (unsigned t = 0; t < count; t++) {
		struct worker *w = &workers[t];
		*w = (struct worker){ .at = share ? &shared : &own[t], .number = t, .rounds = rounds };
		for (int i = 0; i < WINDOW; i++) {
			w->sends[i] = (struct posted){ .of = w, .is_send = 1 };
			w->receives[i] = (struct posted){ .of = w };
		}
	}
	barrier(me);
	double start = now();
	for (size_t t = 0; t < count; t++)
		if (pthread_create(&ids[t], NULL, work_on, &workers[t]))
			die("pthread_create", FI_EAGAIN);
	for (size_t t = 0; t < count; t++)
		pthread_join(ids[t], NULL);
	return (now() - start) * (double)messages / (double)(rounds * WINDOW * (long)count);
}

static double by_own(struct side *me, size_t count, long messages)
{
	return all_at_once(me, count, messages, 0);
}

static double by_shared(struct side *me, size_t count, long messages)
{
	return all_at_once(me, count, messages, 1);
}

static const char *open_own(struct side *me, size_t count)
{
	for (size_t t = 0; t < count; t++)
		if (!own[t].ep)
			own[t] = another_pair(me, PLAIN);
	return NULL;
}

static const char *open_shared(struct side *me, size_t count)
{
	(void)count;
	if (!shared.ep)
		shared = another_pair(me, PLAIN);
	return NULL;
}

const struct work threads[] = {
	{ .name = "threads-own", .unit = MILLIONS_PER_SECOND, .sizes = numbers, .round = by_own, .needs = THREADS,
	  .prepare = open_own, .counts = 1 },
	{ .name = "threads-shared", .unit = MILLIONS_PER_SECOND, .sizes = numbers, .round = by_shared, .needs = THREADS,
	  .prepare = open_shared, .counts = 1 },
	{ .name = NULL },
};

/* The works: what is measured, one function each. Rank 0 leads, and its time counts. */
#include "bench.h"
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64
#define FEW 16	/* of large messages */
#define TAG 7

static struct fi_context2 contexts[2 * WINDOW];

static void progress(struct side *me)
{
	struct fi_cq_tagged_entry done[16];
	ssize_t count = fi_cq_read(me->cq, done, 16);

	if (count == -FI_EAGAIN)
		return;
	if (count < 0) {
		struct fi_cq_err_entry error = { 0 };
		fi_cq_readerr(me->cq, &error, 0);
		die("completion", error.err ? error.err : (long)count);
	}
	for (ssize_t i = 0; i < count; i++) {
		if (done[i].flags & FI_RECV)
			me->received++;
		else
			me->sent++;
	}
}

static inline void wait_for(struct side *me, size_t sent, size_t received)
{
	while (me->sent < sent || me->received < received)
		progress(me);
	me->sent -= sent;
	me->received -= received;
}

/* The library's word for "not now" is answered by letting it work. */
#define post(me, call)							\
	do {								\
		ssize_t ret_;						\
		while ((ret_ = (call)) == -FI_EAGAIN)			\
			progress(me);					\
		if (ret_)						\
			die(#call, ret_);				\
	} while (0)

static inline void receive(struct side *me, size_t size, int slot)
{
	post(me, fi_trecv(me->ep, me->rx, size, me->desc, FI_ADDR_UNSPEC, TAG, 0, &contexts[slot]));
}

/* Returns how many completions will follow. */
static inline size_t send_one(struct side *me, size_t size, int slot)
{
	if (size <= me->inject_size) {
		post(me, fi_tinject(me->ep, me->tx, size, me->peer, TAG));
		return 0;
	}
	post(me, fi_tsend(me->ep, me->tx, size, me->desc, me->peer, TAG, &contexts[slot]));
	return 1;
}

/* Marks both ends of what will be sent, so that the other side can tell that it came. */
static void mark(struct side *me, size_t size)
{
	memset(me->rx, 0, size);
	me->tx[0] = me->tx[size - 1] = (char)(1 + me->rank + (int)(size % 61));
	barrier(me);
}

static void check(struct side *me, size_t size)
{
	char wanted = (char)(1 + !me->rank + (int)(size % 61));
	if (me->rx[0] != wanted || me->rx[size - 1] != wanted)
		die("the data did not arrive", (long)size);
}

static double latency(struct side *me, size_t size, long count)
{
	mark(me, size);
	double start = now();
	for (long i = 0; i < count; i++) {
		if (me->rank == 0) {
			size_t sent = send_one(me, size, 0);
			receive(me, size, 1);
			wait_for(me, sent, 1);
		} else {
			receive(me, size, 1);
			wait_for(me, 0, 1);
			wait_for(me, send_one(me, size, 0), 0);
		}
	}
	double took = (now() - start) / 2;
	check(me, size);
	return took;
}

enum how { SENDING, INJECTING };

/* Windows of messages; the receiver has posted a window ahead, and answers each with one message. */
static double windows(struct side *me, size_t size, long count, int window, enum how how)
{
	long rounds = count / window + 1;
	int ahead = 0;

	mark(me, size);
	if (me->rank == 1)
		while (ahead < window)
			receive(me, size, ahead++);
	barrier(me);
	double start = now();
	for (long i = 0; i < rounds; i++) {
		if (me->rank == 0) {
			for (int slot = 0; slot < window; slot++) {
				if (how == INJECTING)
					post(me, fi_tinject(me->ep, me->tx, size, me->peer, TAG));
				else
					post(me, fi_tsend(me->ep, me->tx, size, me->desc, me->peer, TAG,
							  &contexts[slot]));
			}
			receive(me, 8, WINDOW);
			wait_for(me, how == INJECTING ? 0 : (size_t)window, 1);
		} else {
			wait_for(me, 0, (size_t)window);
			/* The last window's place in turn: contexts are free once their receive has ended. */
			for (int slot = 0; slot < window && i + 1 < rounds; slot++)
				receive(me, size, slot);
			wait_for(me, send_one(me, 8, WINDOW), 0);
		}
	}
	double took = now() - start;
	if (me->rank == 1)
		check(me, size);
	return took * (double)count / (double)(rounds * window);
}

static double rate(struct side *me, size_t size, long count)
{
	return windows(me, size, count, WINDOW, SENDING);
}

static double rate_inject(struct side *me, size_t size, long count)
{
	return windows(me, size, count, WINDOW, INJECTING);
}

static double bandwidth(struct side *me, size_t size, long count)
{
	return windows(me, size, count, FEW, SENDING);
}

/* Rank 1 only lets its library work until it is told that all is over. */
static void one_sided_end(struct side *me)
{
	if (me->rank == 0) {
		wait_for(me, send_one(me, 8, 0), 0);
	} else {
		receive(me, 8, 0);
		wait_for(me, 0, 1);
	}
}

/* What the other lets us reach: memory of its own, or memory that processes can share. */
struct window {
	uint64_t addr, key;
};

static struct window private_window(const struct side *me)
{
	return (struct window){ me->remote_addr, me->remote_key };
}

static struct window shared_window(const struct side *me)
{
	return (struct window){ me->shared_addr, me->shared_key };
}

static double write_rate_to(struct side *me, size_t size, long count, struct window to)
{
	long rounds = count / WINDOW + 1;

	mark(me, size);
	double start = now();
	for (long i = 0; me->rank == 0 && i < rounds; i++) {
		for (int slot = 0; slot < WINDOW; slot++)
			post(me, fi_write(me->ep, me->tx, size, me->desc, me->peer, to.addr, to.key, &contexts[slot]));
		wait_for(me, WINDOW, 0);
	}
	double took = now() - start;
	one_sided_end(me);
	return took * (double)count / (double)(rounds * WINDOW);
}

static double write_rate(struct side *me, size_t size, long count)
{
	return write_rate_to(me, size, count, private_window(me));
}

static double write_rate_shared(struct side *me, size_t size, long count)
{
	return write_rate_to(me, size, count, shared_window(me));
}

/* One write after another, each waited for. */
static double write_latency(struct side *me, size_t size, long count)
{
	struct window to = private_window(me);

	mark(me, size);
	double start = now();
	for (long i = 0; me->rank == 0 && i < count; i++) {
		post(me, fi_write(me->ep, me->tx, size, me->desc, me->peer, to.addr, to.key, &contexts[0]));
		wait_for(me, 1, 0);
	}
	double took = now() - start;
	one_sided_end(me);
	return took;
}

static double read_from(struct side *me, size_t size, long count, struct window from)
{
	mark(me, size);
	double start = now();
	for (long i = 0; me->rank == 0 && i < count; i++) {
		post(me, fi_read(me->ep, me->tx, size, me->desc, me->peer, from.addr, from.key, &contexts[0]));
		wait_for(me, 1, 0);
	}
	double took = now() - start;
	one_sided_end(me);
	return took;
}

static double read_latency(struct side *me, size_t size, long count)
{
	return read_from(me, size, count, private_window(me));
}

static double read_shared(struct side *me, size_t size, long count)
{
	return read_from(me, size, count, shared_window(me));
}

/* Adds 1 to a counter of the other's, which must have grown by so much in the end. */
static double fetch_add_to(struct side *me, long count, struct window to)
{
	uint64_t *one = (uint64_t *)me->tx, *old = (uint64_t *)(me->tx + 64), first = 0;

	mark(me, 8);
	*one = 1;
	double start = now();
	for (long i = 0; me->rank == 0 && i < count; i++) {
		post(me, fi_fetch_atomic(me->ep, one, 1, me->desc, old, me->desc, me->peer, to.addr, to.key, FI_UINT64,
					 FI_SUM, &contexts[0]));
		wait_for(me, 1, 0);
		if (!i)
			first = *old;
	}
	double took = now() - start;
	if (me->rank == 0 && *old - first != (uint64_t)count - 1)
		die("the counter is wrong", (long)(*old - first));
	one_sided_end(me);
	return took;
}

static double fetch_add(struct side *me, size_t size, long count)
{
	(void)size;
	return fetch_add_to(me, count, private_window(me));
}

static double fetch_add_shared(struct side *me, size_t size, long count)
{
	(void)size;
	return fetch_add_to(me, count, shared_window(me));
}

void works(struct side *me, const struct settings *with)
{
	static const size_t sizes[] = { 8, 64, 512, 2048, 4096, 8192, 16384, 65536, 262144, 1 << 20, 4 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && sizes[i] <= with->largest; i++)
		report(me, with, "latency", sizes[i], NANOSECONDS, latency);
	report(me, with, "rate", 8, MILLIONS_PER_SECOND, rate);
	report(me, with, "rate-inject", 8, MILLIONS_PER_SECOND, rate_inject);
	for (size_t size = 4096; size <= with->largest; size *= 4)
		report(me, with, "bandwidth", size, GIGABYTES_PER_SECOND, bandwidth);
	if (me->rma) {
		report(me, with, "rma-write-rate", 8, MILLIONS_PER_SECOND, write_rate);
		report(me, with, "rma-write-rate-shared", 8, MILLIONS_PER_SECOND, write_rate_shared);
		report(me, with, "rma-read", 8, NANOSECONDS, read_latency);
		report(me, with, "rma-read-shared", 8, NANOSECONDS, read_shared);
		for (size_t size = 4096; size <= with->largest; size *= 4) {
			report(me, with, "rma-read", size, NANOSECONDS, read_latency);
			report(me, with, "rma-read-shared", size, NANOSECONDS, read_shared);
			report(me, with, "rma-write", size, NANOSECONDS, write_latency);
		}
	}
	if (me->rma > 1) {
		report(me, with, "fetch-add", 8, NANOSECONDS, fetch_add);
		report(me, with, "fetch-add-shared", 8, NANOSECONDS, fetch_add_shared);
	}
}

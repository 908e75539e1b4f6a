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
#include <sys/resource.h>

#define WINDOW 64
#define TAG 7

const size_t sizes[] = { 1, 8, 64, 512, 2048, 4096, 8192, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 0 };

static struct fi_context2 contexts[2 * WINDOW];
static struct side pairs[STREAMS];

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
		receive(&pairs[slot % STREAMS], size, slot);
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
				receive(&pairs[s], 8, WINDOW + s);
			for (int slot = 0; slot < FEW * STREAMS; slot++) {
				struct side *pair = &pairs[slot % STREAMS];
				post(pair, fi_tsend(pair->ep, me->tx, size, me->desc, pair->peer, TAG, &contexts[slot]));
			}
			wait_for_all(FEW, 1);
		} else {
			wait_for_all(0, FEW);
			if (i + 1 < rounds)
				receive_windows(size);
			for (int s = 0; s < STREAMS; s++)
				sent = send_one(&pairs[s], 8, WINDOW + s);
			wait_for_all(sent, 0);
		}
	}
	double took = now() - start;
	if (me->rank == 1)
		check(me, size);
	return took * (double)count / (double)(rounds * FEW * STREAMS);
}

/* Whether neither process has come to take gigabytes: the C library's endpoints have a hundred megabytes each. */
static int are_small(struct side *me)
{
	struct rusage mine, theirs;

	getrusage(RUSAGE_SELF, &mine);
	exchange(me, &mine, &theirs, sizeof(mine));
	return mine.ru_maxrss < 2 << 20 && theirs.ru_maxrss < 2 << 20;
}

/* Rank 0 gets so many peers that have said one thing and say no more. 0: there is no memory for them. */
static int idle_peers(struct side *me, size_t count)
{
	static size_t there;

	if (!are_small(me))
		return 0;
	latency(me, 8, 1); /* connects the two, so that the answers leave at once */
	for (; there < count; there++) {
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
	return 1;
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

/* Where each pair has a connection. */
static void connected_works(struct side *me, const struct settings *with)
{
	if (wanted(with, "streams"))
		for (int s = 0; s < STREAMS; s++)
			pairs[s] = another_pair(me);
	for (size_t size = 4096; size <= with->largest; size *= 4)
		report(me, with, "streams", size, GIGABYTES_PER_SECOND, streams);
	for (size_t peers = 1; peers <= 1000 && wanted(with, "poll"); peers *= peers == 1 ? 100 : 10) {
		if (!idle_peers(me, peers))
			break;
		report(me, with, "poll", peers, NANOSECONDS, poll_in_vain);
	}
}

void works(struct side *me, const struct settings *with)
{
	for (const size_t *size = sizes; *size && *size <= with->largest; size++)
		report(me, with, "latency", *size, NANOSECONDS, latency);
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
	if (strstr(with->provider, "tcp"))
		connected_works(me, with);
}

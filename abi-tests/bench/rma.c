/* Remote memory and atomics, on private memory of the other process and on memory that processes can share ("-shared").
 * Rank 1 only lets its library work until it is told that all is over. */
#include "talk.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

/* Tells rank 1 that all is over, by a message without bytes: a longer one would be received where the operations went. */
static void one_sided_end(struct side *me)
{
	if (me->rank == 0) {
		wait_for(me, send_one(me, 0, 0), 0);
	} else {
		receive(me, 0, 0);
		wait_for(me, 0, 1);
	}
}

/* What the other lets us reach. */
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

/* One operation, as each work has its own. */
typedef void one_sided(struct side *me, size_t size, struct window there, int slot);

static void write_there(struct side *me, size_t size, struct window to, int slot)
{
	post(me, fi_write(me->ep, me->tx, size, me->desc, me->peer, to.addr, to.key, &me->contexts[slot]));
}

/* Its completion says that the bytes are there, as MPI and OpenSHMEM want it; fi_write's may say less. */
static void deliver_there(struct side *me, size_t size, struct window to, int slot)
{
	struct iovec ours = { me->tx, size };
	struct fi_rma_iov theirs = { to.addr, size, to.key };
	struct fi_msg_rma write = { .msg_iov = &ours, .desc = &me->desc, .iov_count = 1, .addr = me->peer,
				    .rma_iov = &theirs, .rma_iov_count = 1, .context = &me->contexts[slot] };

	post(me, fi_writemsg(me->ep, &write, FI_COMPLETION | FI_DELIVERY_COMPLETE));
}

static void read_there(struct side *me, size_t size, struct window from, int slot)
{
	post(me, fi_read(me->ep, me->tx, size, me->desc, me->peer, from.addr, from.key, &me->contexts[slot]));
}

static uint64_t *operand(struct side *me)
{
	return (uint64_t *)(me->tx + 1024);
}

static void add_there(struct side *me, size_t size, struct window to, int slot)
{
	(void)size;
	post(me, fi_atomic(me->ep, operand(me), 1, me->desc, me->peer, to.addr, to.key, FI_UINT64, FI_SUM,
			   &me->contexts[slot]));
}

static void fetch_add_there(struct side *me, size_t size, struct window to, int slot)
{
	(void)size;
	post(me, fi_fetch_atomic(me->ep, operand(me), 1, me->desc, operand(me) + 8 + slot, me->desc, me->peer, to.addr,
				 to.key, FI_UINT64, FI_SUM, &me->contexts[slot]));
}

/* Each swap finds what the one before has left, or what that one has seen. */
static void compare_swap_there(struct side *me, size_t size, struct window to, int slot)
{
	uint64_t *new = operand(me), *old = new + 1, *found = new + 2;

	(void)size;
	*old = *found == *old ? *new : *found;
	++*new;
	post(me, fi_compare_atomic(me->ep, new, 1, me->desc, old, me->desc, found, me->desc, me->peer, to.addr, to.key,
				   FI_UINT64, FI_CSWAP, &me->contexts[slot]));
}

/* `window` operations at once, all of which are waited for. */
static double timed(struct side *me, size_t size, long count, int window, struct window there, one_sided *one)
{
	long rounds = window == 1 ? count : count / window + 1;

	double start = now();
	for (long i = 0; me->rank == 0 && i < rounds; i++) {
		for (int slot = 0; slot < window; slot++)
			one(me, size, there, slot);
		wait_for(me, (size_t)window, 0);
	}
	double took = now() - start;
	one_sided_end(me);
	return took * (double)count / (double)(rounds * window);
}

static double repeated(struct side *me, size_t size, long count, int window, struct window there, one_sided *one)
{
	mark(me, size);
	return timed(me, size, count, window, there, one);
}

/* One after the other, of which nothing is told but that its buffer may be reused, when the call returns. */
static double injected(struct side *me, size_t size, long count, struct window to)
{
	mark(me, size);
	double start = now();
	for (long i = 0; me->rank == 0 && i < count; i++)
		post(me, fi_inject_write(me->ep, me->tx, size, me->peer, to.addr, to.key));
	one_sided_end(me);
	return now() - start;
}

/* What the counter has now, as rank 0 sees it. */
static uint64_t counter_there(struct side *me, struct window there)
{
	*operand(me) = 0;
	if (me->rank == 0) {
		fetch_add_there(me, 8, there, 0);
		wait_for(me, 1, 0);
	}
	one_sided_end(me);
	return operand(me)[8];
}

/* Adds 1 to a counter of the other's, which must have grown by so much in the end. */
static double added(struct side *me, long count, int window, struct window there, one_sided *one)
{
	uint64_t all = (uint64_t)(window == 1 ? count : (count / window + 1) * window);

	mark(me, 8);
	uint64_t first = counter_there(me, there);
	*operand(me) = 1;
	double took = timed(me, 8, count, window, there, one);
	uint64_t last = counter_there(me, there);
	if (me->rank == 0 && last - first != all)
		die("the counter is wrong", (long)(last - first));
	return took;
}

/* Each process writes to the other, who looks into its memory: no completion at the target, as in OpenSHMEM. The last
 * byte is the number of the turn. */
static double put_to(struct side *me, size_t size, long count, struct window to, volatile char *arrives)
{
	static char turn;

	arrives[size - 1] = turn;
	barrier(me);
	double start = now();
	for (long i = 0; i < count; i++) {
		turn++;
		me->tx[size - 1] = turn;
		for (int who = 0; who < 2; who++) {
			if (who != me->rank) {
				while (arrives[size - 1] != turn)
					progress(me);
			} else if (size <= me->inject_size) {
				post(me, fi_inject_write(me->ep, me->tx, size, me->peer, to.addr, to.key));
			} else {
				write_there(me, size, to, 0);
				wait_for(me, 1, 0);
			}
		}
	}
	double took = (now() - start) / 2;
	/* Neither leaves before the other has all: the writer's library may still have to work. */
	ping_pong(me, 8, 1);
	return took;
}

/* A write that the target hears of. */
static double write_data(struct side *me, size_t size, long count)
{
	struct window to = private_window(me);

	mark(me, size);
	double start = now();
	for (long i = 0; i < count; i++)
		for (int who = 0; who < 2; who++) {
			if (who == me->rank) {
				post(me, fi_writedata(me->ep, me->tx, size, me->desc, 5, me->peer, to.addr, to.key,
						      &me->contexts[0]));
				wait_for(me, 1, 0);
			} else {
				wait_for(me, 0, 1);
			}
		}
	double took = (now() - start) / 2;
	check(me, size);
	return took;
}

/* NAME and NAME_shared are works of one kind: `window` of `one` at once. */
#define ON_BOTH(name, window, one)								\
	static double name(struct side *me, size_t size, long count)				\
	{											\
		return repeated(me, size, count, window, private_window(me), one);		\
	}											\
	static double name##_shared(struct side *me, size_t size, long count)			\
	{											\
		return repeated(me, size, count, window, shared_window(me), one);		\
	}
ON_BOTH(write_one, 1, write_there)
ON_BOTH(deliver_one, 1, deliver_there)
ON_BOTH(write_rate, WINDOW, write_there)
ON_BOTH(write_bandwidth, FEW, write_there)
ON_BOTH(write_burst, BURST, write_there)
ON_BOTH(read_one, 1, read_there)
ON_BOTH(read_rate, WINDOW, read_there)
ON_BOTH(read_bandwidth, FEW, read_there)
ON_BOTH(read_burst, BURST, read_there)
ON_BOTH(compare_swap, 1, compare_swap_there)

#define ADDS_ON_BOTH(name, window, one)								\
	static double name(struct side *me, size_t size, long count)				\
	{											\
		(void)size;									\
		return added(me, count, window, private_window(me), one);			\
	}											\
	static double name##_shared(struct side *me, size_t size, long count)			\
	{											\
		(void)size;									\
		return added(me, count, window, shared_window(me), one);			\
	}
ADDS_ON_BOTH(fetch_add, 1, fetch_add_there)
ADDS_ON_BOTH(fetch_add_rate, WINDOW, fetch_add_there)
ADDS_ON_BOTH(add_rate, WINDOW, add_there)

/* One of the two computes before it looks. */
#define BESIDE_WORK(name, who, one)								\
	static double name(struct side *me, size_t size, long count)				\
	{											\
		me->computes = me->rank == who ? COMPUTES : 0;					\
		double took = repeated(me, size, count, BURST, private_window(me), one);	\
		me->computes = 0;								\
		return took;									\
	}
BESIDE_WORK(write_and_compute, 0, write_there)
BESIDE_WORK(write_to_a_computing_one, 1, write_there)
BESIDE_WORK(read_and_compute, 0, read_there)
BESIDE_WORK(read_from_a_computing_one, 1, read_there)

static double inject_rate(struct side *me, size_t size, long count)
{
	return injected(me, size, count, private_window(me));
}

static double inject_rate_shared(struct side *me, size_t size, long count)
{
	return injected(me, size, count, shared_window(me));
}

static double put(struct side *me, size_t size, long count)
{
	return put_to(me, size, count, private_window(me), me->rx);
}

static double put_shared(struct side *me, size_t size, long count)
{
	return put_to(me, size, count, shared_window(me), me->shared);
}

#define ROWS(its_name, its_unit, its_sizes, its_round, its_needs)						\
	{ .name = its_name, .unit = its_unit, .sizes = its_sizes, .round = its_round, .needs = its_needs },	\
	{ .name = its_name "-shared", .unit = its_unit, .sizes = its_sizes, .round = its_round##_shared,	\
	  .needs = its_needs }

const struct work remote_memory[] = {
	ROWS("put-latency", NANOSECONDS, all_sizes, put, RMA),
	ROWS("rma-write", NANOSECONDS, all_sizes, write_one, RMA),
	ROWS("rma-write-delivered", NANOSECONDS, all_sizes, deliver_one, RMA),
	ROWS("rma-read", NANOSECONDS, all_sizes, read_one, RMA),
	ROWS("rma-write-rate", MILLIONS_PER_SECOND, eight, write_rate, RMA),
	ROWS("rma-inject-rate", MILLIONS_PER_SECOND, eight, inject_rate, RMA),
	ROWS("rma-read-rate", MILLIONS_PER_SECOND, eight, read_rate, RMA),
	ROWS("rma-write-bandwidth", GIGABYTES_PER_SECOND, long_sizes, write_bandwidth, RMA),
	ROWS("rma-read-bandwidth", GIGABYTES_PER_SECOND, long_sizes, read_bandwidth, RMA),
	ROWS("rma-write-burst", GIGABYTES_PER_SECOND, burst_sizes, write_burst, RMA),
	ROWS("rma-read-burst", GIGABYTES_PER_SECOND, burst_sizes, read_burst, RMA),
	{ .name = "rma-write-burst-initiator-computes", .unit = GIGABYTES_PER_SECOND, .sizes = burst_sizes,
	  .round = write_and_compute, .needs = RMA },
	{ .name = "rma-write-burst-target-computes", .unit = GIGABYTES_PER_SECOND, .sizes = burst_sizes,
	  .round = write_to_a_computing_one, .needs = RMA },
	{ .name = "rma-read-burst-initiator-computes", .unit = GIGABYTES_PER_SECOND, .sizes = burst_sizes,
	  .round = read_and_compute, .needs = RMA },
	{ .name = "rma-read-burst-target-computes", .unit = GIGABYTES_PER_SECOND, .sizes = burst_sizes,
	  .round = read_from_a_computing_one, .needs = RMA },
	{ .name = "rma-write-data", .unit = NANOSECONDS, .sizes = eight, .round = write_data, .needs = RMA },
	ROWS("fetch-add", NANOSECONDS, eight, fetch_add, ATOMICS),
	ROWS("compare-swap", NANOSECONDS, eight, compare_swap, ATOMICS),
	ROWS("fetch-add-rate", MILLIONS_PER_SECOND, eight, fetch_add_rate, ATOMICS),
	ROWS("atomic-add-rate", MILLIONS_PER_SECOND, eight, add_rate, ATOMICS),
	{ .name = NULL },
};

/* Windows of messages that are kept full: each that ends makes room for the next, and only the last is answered, as in
 * UCX's tag_bw. Rank 0's time counts, to the answer. */
#include "talk.h"

/* Contexts of a window that no operation uses. */
struct window {
	struct fi_context2 *free[WINDOW];
	int left;
};

static struct window empty_window(struct side *me, int size)
{
	struct window window = { .left = size };

	for (int i = 0; i < size; i++)
		window.free[i] = &me->contexts[i];
	return window;
}

/* Gives back the contexts of what has ended; returns how many. */
static long reap(struct side *me, struct window *window)
{
	struct fi_cq_tagged_entry done[16];
	ssize_t count = fi_cq_read(me->cq, done, 16);

	if (count == -FI_EAGAIN) {
		if (me->polite)
			sched_yield();
		return 0;
	}
	if (count < 0)
		die("completion", (long)count);
	for (ssize_t i = 0; i < count; i++)
		window->free[window->left++] = done[i].op_context;
	return count;
}

enum way { SEND, RECEIVE };

/* Fills the window, with at most `most` messages, as far as the library takes them; returns how many. */
static long fill(struct side *me, enum way way, size_t size, struct window *window, long most)
{
	long posted = 0;

	for (; window->left && posted < most; posted++) {
		struct fi_context2 *context = window->free[window->left - 1];
		ssize_t ret = way == SEND ? fi_tsend(me->ep, me->tx, size, me->desc, me->peer, TAG, context)
					  : fi_trecv(me->ep, me->rx, size, me->desc, FI_ADDR_UNSPEC, TAG, me->ignore, context);
		if (ret == -FI_EAGAIN)
			break;
		if (ret)
			die(way == SEND ? "fi_tsend" : "fi_trecv", ret);
		window->left--;
	}
	return posted;
}

static double steady(struct side *me, size_t size, long count, int most)
{
	struct window window = empty_window(me, most);
	enum way way = me->rank == 0 ? SEND : RECEIVE;
	long posted = 0, ended = 0;

	mark(me, size);
	if (way == RECEIVE)
		posted = fill(me, way, size, &window, count);
	barrier(me);
	double start = now();
	while (ended < count) {
		posted += fill(me, way, size, &window, count - posted);
		ended += reap(me, &window);
	}
	if (way == SEND) {
		receive(me, 8, WINDOW);
		wait_for(me, 0, 1);
	} else {
		check(me, size);
		wait_for(me, send_one(me, 8, WINDOW), 0);
	}
	return now() - start;
}

static double rate_steady(struct side *me, size_t size, long count)
{
	return steady(me, size, count, WINDOW);
}

static double bandwidth_steady(struct side *me, size_t size, long count)
{
	return steady(me, size, count, FEW);
}

const struct work steady_windows[] = {
	{ .name = "rate-steady", .unit = MILLIONS_PER_SECOND, .sizes = short_sizes, .round = rate_steady },
	{ .name = "bandwidth-steady", .unit = GIGABYTES_PER_SECOND, .sizes = long_sizes, .round = bandwidth_steady },
	{ .name = NULL },
};

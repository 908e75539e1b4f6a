/* Windows of messages that are kept full: each that ends makes room for the next, and only the last is answered, as in
 * UCX's tag_bw. Rank 0's time counts, to the answer. */
#include "talk.h"

/* Contexts of a window that no operation uses. */
struct spare {
	struct fi_context2 *contexts[WINDOW];
	int left;
};

static struct spare all_spare(struct side *me, int size)
{
	struct spare spare = { .left = size };

	for (int i = 0; i < size; i++)
		spare.contexts[i] = &me->contexts[i];
	return spare;
}

/* Gives back the contexts of what has ended; returns how many. */
static long reap(struct side *me, struct spare *spare)
{
	struct fi_cq_tagged_entry done[16];
	ssize_t count = look(me, done);

	for (ssize_t i = 0; i < count; i++)
		spare->contexts[spare->left++] = done[i].op_context;
	return count;
}

enum way { SEND, RECEIVE };

/* Fills the window, with at most `most` messages, as far as the library takes them; returns how many. */
static long fill(struct side *me, enum way way, size_t size, struct spare *spare, long most)
{
	long posted = 0;

	for (; spare->left && posted < most; posted++) {
		struct fi_context2 *context = spare->contexts[spare->left - 1];
		ssize_t ret = way == SEND ? fi_tsend(me->ep, me->tx, size, me->desc, me->peer, TAG, context)
					  : fi_trecv(me->ep, me->rx, size, me->desc, FI_ADDR_UNSPEC, TAG, me->ignore, context);
		if (ret == -FI_EAGAIN)
			break;
		if (ret)
			die(way == SEND ? "fi_tsend" : "fi_trecv", ret);
		spare->left--;
	}
	return posted;
}

static double steady(struct side *me, size_t size, long count, int most)
{
	struct spare spare = all_spare(me, most);
	enum way way = me->rank == 0 ? SEND : RECEIVE;
	long posted = 0, ended = 0;

	mark(me, size);
	if (way == RECEIVE)
		posted = fill(me, way, size, &spare, count);
	barrier(me);
	double start = now();
	while (ended < count) {
		posted += fill(me, way, size, &spare, count - posted);
		ended += reap(me, &spare);
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

/* What most works do with an endpoint: post, wait, and look whether the data came. Inlined, as it is measured. */
#ifndef TALK_H
#define TALK_H

#include "bench.h"
#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <string.h>

#define TAG (7ull << 32)

/* Takes up to 16 completions; returns how many. */
static inline ssize_t look(struct side *me, struct fi_cq_tagged_entry *done)
{
	ssize_t count = fi_cq_read(me->cq, done, 16);

	if (count == -FI_EAGAIN) {
		if (me->polite)
			sched_yield();
		return 0;
	}
	if (count < 0) {
		struct fi_cq_err_entry error = { 0 };
		fi_cq_readerr(me->cq, &error, 0);
		die("completion", error.err ? error.err : (long)count);
	}
	return count;
}

static inline void compute(double seconds)
{
	for (double until = now() + seconds; now() < until;)
		;
}

static inline void progress(struct side *me)
{
	struct fi_cq_tagged_entry done[16];
	ssize_t count = look(me, done);

	if (count <= 0 && me->computes > 0)
		compute(me->computes);
	for (ssize_t i = 0; i < count; i++) {
		if (done[i].flags & (FI_RECV | FI_REMOTE_CQ_DATA))
			me->received++;
		else
			me->sent++;
	}
}

/* Who computes does so before the first look too: a program posts, and goes on with its work. */
static inline void wait_for(struct side *me, size_t sent, size_t received)
{
	if (me->computes > 0)
		compute(me->computes);
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
	post(me, fi_trecv(me->ep, me->rx, size, me->desc, FI_ADDR_UNSPEC, TAG, me->ignore, &me->contexts[slot]));
}

/* Returns how many completions will follow. */
static inline size_t send_one(struct side *me, size_t size, int slot)
{
	if (size <= me->inject_size) {
		post(me, fi_tinject(me->ep, me->tx, size, me->peer, TAG));
		return 0;
	}
	post(me, fi_tsend(me->ep, me->tx, size, me->desc, me->peer, TAG, &me->contexts[slot]));
	return 1;
}

/* Marks both ends of what will be sent, so that the other side can tell that it came. */
static inline void mark(struct side *me, size_t size)
{
	memset(me->rx, 0, size);
	me->tx[0] = me->tx[size - 1] = (char)(1 + me->rank + (int)(size % 61));
	barrier(me);
}

static inline void check(struct side *me, size_t size)
{
	char wanted = (char)(1 + !me->rank + (int)(size % 61));
	if (me->rx[0] != wanted || me->rx[size - 1] != wanted)
		die("the data did not arrive", (long)size);
}

/* Messages to and fro; seconds for `count` one way. */
static inline double ping_pong(struct side *me, size_t size, long count)
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

#endif

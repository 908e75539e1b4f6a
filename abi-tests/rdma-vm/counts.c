/*
 * What one message or operation on a connected endpoint costs a card, both sides together: COUNT lines, in messages of
 * MESSAGES. Run with count_work.so in front; the numbers are those of the library that it is run with.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rdma/fi_rma.h>
#include "connected.h"
#include "count_work.h"

#define MESSAGES 16
#define WINDOW 8

static char from[1 << 20], into[1 << 20];
static struct wired w;
static uint64_t key;
static struct fid_mr *target;
static struct counted (*so_far)(void);

enum what { SEND, INJECT, BURST, WRITE, READ };
static const char *const names[] = { "send", "inject", "burst", "write", "read" };

static void post(enum what what, size_t len, int at)
{
	struct fid_ep *ep = w.bed.side[0].ep;
	void *desc = fi_mr_desc(w.bed.mine);
	bool last = at % WINDOW == WINDOW - 1;
	struct iovec iov = { from, len };
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .context = ctx(1) };

	switch (what) {
	case SEND: POST(&w.bed, fi_send(ep, from, len, desc, 0, ctx(1))); break;
	case INJECT:
		/* When the one that is told has left, those before it have too. */
		if (last)
			POST(&w.bed, fi_send(ep, from, len, desc, 0, ctx(1)));
		else
			POST(&w.bed, fi_inject(ep, from, len, 0));
		break;
	case BURST: POST(&w.bed, fi_sendmsg(ep, &msg, last ? FI_COMPLETION : FI_MORE)); break;
	case WRITE: POST(&w.bed, fi_write(ep, from, len, desc, 0, (uint64_t) into, key, ctx(1))); break;
	case READ: POST(&w.bed, fi_read(ep, from, len, desc, 0, (uint64_t) into, key, ctx(1))); break;
	}
}

static void measure(enum what what, size_t len)
{
	bool receives = what <= BURST;
	struct counted before = so_far(), after;
	int i, at;

	for (at = 0; at < MESSAGES; at += WINDOW) {
		for (i = 0; receives && i < WINDOW; i++)
			POST(&w.bed, fi_recv(w.bed.side[1].ep, into, len, fi_mr_desc(w.bed.mine), 0, ctx(2)));
		for (i = 0; i < WINDOW; i++)
			post(what, len, at + i);
		for (i = 0; receives && i < WINDOW; i++)
			COMPLETION(&w.bed, w.bed.side[1].rx, ctx(2));
		for (i = 0; i < (what == INJECT || what == BURST ? 1 : WINDOW); i++)
			COMPLETION(&w.bed, w.bed.side[0].tx, ctx(1));
	}
	after = so_far();
	printf("COUNT %s %zu requests %lu doorbells %lu inlined %lu receives %lu completions %lu registrations %lu\n",
	       names[what], len, after.requests - before.requests, after.doorbells - before.doorbells,
	       after.inlined - before.inlined, after.receives - before.receives, after.completions - before.completions,
	       after.registrations - before.registrations);
	CHECK(after.requests - before.requests == MESSAGES, "%lu requests were counted", after.requests - before.requests);
}

/* By whatever calls it is made, a registration is counted once; or not at all, if the library has the memory from before. */
static void count_a_registration(void)
{
	unsigned long before = so_far().registrations, more;
	struct fid_mr *mr;

	OK(fi_mr_reg(w.bed.domain, from, sizeof(from), FI_SEND, 0, 8, 0, &mr, NULL));
	more = so_far().registrations - before;
	OK(fi_close(&mr->fid));
	CHECK(more <= 1, "%lu registrations were counted", more);
}

static void open_all(uint64_t tx_flags)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };

	so_far = (struct counted (*)(void)) dlsym(RTLD_DEFAULT, "counted");
	CHECK(so_far, "count_work.so is not loaded");
	open_exchange(&w, &s);
	w.tx_flags = tx_flags;
	join_sides(&w, 0, 1);
	OK(fi_mr_reg(w.bed.domain, into, sizeof(into), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &target, NULL));
	key = fi_mr_key(target);
}

static void close_all(void)
{
	OK(fi_close(&target->fid));
	close_wires(&w);
}

static const size_t sizes[] = { 8, 4096, 65536, 1 << 20 };

static void messages_and_operations(void)
{
	int i;

	open_all(0);
	for (i = 0; i < 4; i++) {
		measure(SEND, sizes[i]);
		measure(WRITE, sizes[i]);
		measure(READ, sizes[i]);
	}
	measure(INJECT, 8);
	count_a_registration();
	close_all();
}

/* Several sends after each other of which only the last one's end is told: FI_MORE, and selective completion. */
static void bursts(void)
{
	open_all(FI_SELECTIVE_COMPLETION);
	measure(BURST, 8);
	measure(BURST, 4096);
	close_all();
}

static const struct test tests[] = { TEST(messages_and_operations), TEST(bursts) };

CASES(tests)

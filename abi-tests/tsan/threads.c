/*
 * Threads that share a domain, its endpoints and their queues, and do everything at once: messages, remote memory,
 * atomics, regions and endpoints that come and go, receives that are cancelled, sleeps. What arrives and what the totals
 * are is checked; what two threads use without an order, ThreadSanitizer finds.
 *
 *     threads safe|domain manual|auto [OPERATIONS [SEED]]
 *
 * `domain` breaks the promise of FI_THREAD_DOMAIN, so that there is something to be found.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "die.h"
#include "ends.h"

enum { THREADS = 4, ENDS = 2, MOST = 200000, SLICE = 40000, AREA = 64 + THREADS * SLICE, AREA_KEY = 1, DEADLINE = 120 };

/* Whoever reads its end says so here: the error, or DONE. */
enum { PENDING = -1, DONE = 0 };
struct op {
	struct fi_context2 context;
	_Atomic int end;
};

struct worker {
	pthread_t thread;
	int number;
	uint64_t seed;
	unsigned count;
	char *out, *in;
};

static struct base base;
static struct end ends[ENDS];
static struct fid_mr *area_mr;
static char *area;
static int operations = 200;
static _Atomic uint64_t added;

static uint64_t rnd(struct worker *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed;
}

/* ---- ends ---- */

static void look(struct fid_cq *cq, int ms)
{
	struct fi_cq_tagged_entry entry[4];
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret = ms ? fi_cq_sread(cq, entry, 4, NULL, ms) : fi_cq_read(cq, entry, 4);

	/* Another thread may be quicker to read the error. */
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		((struct op *) error.op_context)->end = error.err;
	for (; ret > 0; ret--)
		((struct op *) entry[ret - 1].op_context)->end = DONE;
}

static int wait_for(struct worker *w, struct op *op)
{
	int end;

	while ((end = op->end) == PENDING)
		look(ends[rnd(w) % ENDS].cq, rnd(w) % 8 == 0);
	return end;
}

#define POST(op, call)                                                                 \
	do {                                                                           \
		ssize_t post_;                                                         \
		(op)->end = PENDING;                                                   \
		while ((post_ = (call)) == -FI_EAGAIN)                                 \
			look(ends[rnd(w) % ENDS].cq, 0);                               \
		if (post_)                                                             \
			DIE("%s: %zd", #call, post_);                                  \
	} while (0)
#define WELL(op)                                                                       \
	do {                                                                           \
		int end_ = wait_for(w, op);                                            \
		if (end_)                                                              \
			DIE("ended with %s", fi_strerror(end_));                       \
	} while (0)

/* ---- what is done ---- */

static void fill(struct worker *w, size_t len)
{
	memset(w->out, (int) rnd(w), len);
	memset(w->in, 0, len);
}

static void same(struct worker *w, size_t len)
{
	if (memcmp(w->in, w->out, len))
		DIE("%zu bytes are not what they were", len);
}

static size_t some(struct worker *w, size_t most)
{
	static const size_t sizes[] = { 8, 500, 3000, 30000, MOST };

	return 1 + rnd(w) % (sizes[rnd(w) % 5] < most ? sizes[rnd(w) % 5] % most + 1 : most);
}

static void message(struct worker *w, struct end *from, struct end *to)
{
	uint64_t tag = (uint64_t) w->number << 32 | w->count;
	size_t len = some(w, MOST);
	struct op send, receive;

	fill(w, len);
	POST(&receive, fi_trecv(to->ep, w->in, len, NULL, FI_ADDR_UNSPEC, tag, 0, &receive));
	POST(&send, fi_tsend(from->ep, w->out, len, NULL, to->addr, tag, &send));
	WELL(&send);
	WELL(&receive);
	same(w, len);
}

static void remote(struct worker *w, struct end *from, struct end *to)
{
	uint64_t at = 64 + (uint64_t) w->number * SLICE;
	size_t len = some(w, SLICE);
	struct op op;

	fill(w, len);
	POST(&op, fi_write(from->ep, w->out, len, NULL, to->addr, at, AREA_KEY, &op));
	WELL(&op);
	POST(&op, fi_read(from->ep, w->in, len, NULL, to->addr, at, AREA_KEY, &op));
	WELL(&op);
	same(w, len);
}

static void add(struct worker *w, struct end *from, struct end *to)
{
	uint64_t value = rnd(w) % 1000, old;
	struct op op;

	POST(&op, fi_fetch_atomic(from->ep, &value, 1, NULL, &old, NULL, to->addr, 0, AREA_KEY, FI_UINT64, FI_SUM, &op));
	WELL(&op);
	added += value;
}

/* A region that is closed while it is written: afterwards its memory is ours alone. */
static void lend(struct worker *w, struct end *from, struct end *to)
{
	uint64_t key = 100 + (uint64_t) w->number;
	size_t len = some(w, SLICE);
	struct fid_mr *mr;
	struct op op;
	int end;

	fill(w, len);
	OK(fi_mr_reg(base.domain, w->in, len, FI_REMOTE_WRITE, 0, key, 0, &mr, NULL));
	POST(&op, fi_write(from->ep, w->out, len, NULL, to->addr, 0, key, &op));
	if (rnd(w) % 2)
		look(to->cq, 0);
	shut(mr);
	memset(w->in, 1, len);
	end = wait_for(w, &op);
	if (end != DONE && end != FI_EKEYREJECTED)
		DIE("a region that went away: %s", fi_strerror(end));
}

static void cancel(struct worker *w, struct end *at)
{
	struct op op;

	POST(&op, fi_trecv(at->ep, w->in, 8, NULL, FI_ADDR_UNSPEC, UINT64_MAX - (uint64_t) w->number, 0, &op));
	OK(fi_cancel(&at->ep->fid, &op));
	if (wait_for(w, &op) != FI_ECANCELED)
		DIE("not cancelled");
}

static void come(struct end *end)
{
	struct wish wish = { .cq_size = 4096, .cq_wait = FI_WAIT_UNSPEC };

	open_end(end, &base, &wish);
	end->addr = know(base.av, &end->name);
}

static void go(struct end *end)
{
	fi_addr_t addr = end->addr;

	close_end(end);
	OK(fi_av_remove(base.av, &addr, 1, 0));
}

/* An endpoint that says one thing, and reads one. */
static void visit(struct worker *w, struct end *to)
{
	uint64_t tag = (uint64_t) w->number << 32 | w->count;
	struct op send, receive, write;
	struct end own = { 0 };

	come(&own);
	fill(w, 3000);
	POST(&receive, fi_trecv(to->ep, w->in, 3000, NULL, FI_ADDR_UNSPEC, tag, 0, &receive));
	POST(&send, fi_tsend(own.ep, w->out, 3000, NULL, to->addr, tag, &send));
	POST(&write, fi_write(own.ep, w->out, 100, NULL, to->addr, 64 + (uint64_t) w->number * SLICE, AREA_KEY, &write));
	while (send.end == PENDING || receive.end == PENDING || write.end == PENDING) {
		look(own.cq, 0);
		look(to->cq, 0);
	}
	same(w, 3000);
	go(&own);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (w->count = 0; w->count < (unsigned) operations; w->count++) {
		struct end *from = &ends[rnd(w) % ENDS], *to = &ends[rnd(w) % ENDS];
		uint64_t dice = rnd(w) % 100;

		if (dice < 40)
			message(w, from, to);
		else if (dice < 60)
			remote(w, from, to);
		else if (dice < 75)
			add(w, from, to);
		else if (dice < 85)
			lend(w, from, to);
		else if (dice < 90)
			cancel(w, to);
		else if (dice < 95)
			visit(w, to);
		else
			OK(fi_cq_signal(to->cq));
	}
	return NULL;
}

/* ---- the whole ---- */

static void open_all(enum fi_threading threading, enum fi_progress progress)
{
	struct wish wish = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, .mode = CONTEXTS, .threading = threading,
			     .progress = progress };
	int i, file = memfd_create("area", 0);

	open_base(&base, find(&wish));
	for (i = 0; i < ENDS; i++)
		come(&ends[i]);
	/* A file's memory, so that it is worked on directly. */
	OK(ftruncate(file, AREA));
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (area == MAP_FAILED)
		DIE("mmap");
	OK(fi_mr_reg(base.domain, area, AREA, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, AREA_KEY, 0, &area_mr, NULL));
}

static void close_all(void)
{
	int i;

	shut(area_mr);
	for (i = 0; i < ENDS; i++)
		go(&ends[i]);
	close_base(&base);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
	int i;

	if (argc < 3)
		return 2;
	if (argc > 3)
		operations = atoi(argv[3]);
	alarm(DEADLINE);
	open_all(strcmp(argv[1], "domain") ? FI_THREAD_SAFE : FI_THREAD_DOMAIN,
		 strcmp(argv[2], "auto") ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO);
	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker) { .number = i, .seed = (seed + (uint64_t) i + 1) * 0x9e3779b97f4a7c15ull };
		workers[i].out = malloc(MOST);
		workers[i].in = malloc(MOST);
		OK(pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		free(workers[i].out);
		free(workers[i].in);
	}
	if (__atomic_load_n((uint64_t *) area, __ATOMIC_SEQ_CST) != added)
		DIE("the total is not what was added");
	close_all();
	return 0;
}

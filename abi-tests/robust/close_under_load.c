/*
 * Everything is closed in every order while threads poll what is still open and a sender sends: endpoints of every kind,
 * queues, counters, address vectors, event queues, poll sets and wait sets, and in the end the domain. When fi_close of
 * an endpoint has returned 0, what was posted to it is the program's again, so nothing may be written there any more; and
 * what the endpoint used can be closed at once, so fi_close of that must return 0 too.
 *
 *     close_under_load manual|auto [ROUNDS [SEED]]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "die.h"
#include "ends.h"

enum { POLLERS = 2, POSTED = 6, SIZE = 65536, KEPT = 4, LIFE = 40, DEADLINE = 240 };
enum { OURS = 0x11, SENT = 0xAA };
enum kind { PLAIN, ALIASED, SHARED_RX, SHARED_TX, SCALABLE, KINDS };

static uint64_t seed = 1;
static int round_number;

/* What is open for a whole life, and polled by threads. */
static struct fi_info *infos[KINDS];
static struct base base; /* the vector is the sender's */
static struct fid_cq *common_cq;
static struct fid_cntr *common_cntr;
static struct fid_eq *common_eq;
static struct fid_poll *poll_set;
static struct fid_wait *wait_set;

/* What is opened and closed in a round. */
struct round {
	enum kind kind;
	struct fid_ep *ends[2], *alias, *whole, *srx;
	struct fid_stx *stx;
	int count;
	struct fid_av *av;
	struct fid_cq *cq;     /* the common one, or */
	struct fid_cq *own_cq; /* one in the wait set and the poll set */
	struct fid_cntr *own_cntr;
	struct fid_eq *own_eq;
	struct name name;
};

/* Buffers of the last rounds, which are the program's again. */
static unsigned char buffers[KEPT][POSTED][SIZE];

/* Where the sender sends: a name in its vector, or nowhere. */
static struct end sender;
static _Atomic fi_addr_t destination;
static _Atomic int stop;

void say_who(void)
{
	fprintf(stderr, "seed %lu, round %d: ", (unsigned long) seed, round_number);
}

static uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t dice;
static int one_of(unsigned n) { return (int) (rnd(&dice) % n); }

/* ---- threads ---- */

static void drain(struct fid_cq *cq, int ms)
{
	struct fi_cq_tagged_entry entry[8];
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret = ms ? fi_cq_sread(cq, entry, 8, NULL, ms) : fi_cq_read(cq, entry, 8);

	if (ret == -FI_EAVAIL)
		fi_cq_readerr(cq, &error, 0);
}

static void *poller(void *arg)
{
	uint64_t state = 0x9e3779b97f4a7c15ull * (1 + (uint64_t) (uintptr_t) arg);
	void *contexts[8];
	char event[64];
	uint32_t type;

	while (!stop) {
		switch (rnd(&state) % 8) {
		case 0:
			fi_cntr_read(common_cntr);
			break;
		case 1:
			fi_eq_read(common_eq, &type, event, sizeof(event), 0);
			break;
		case 2:
			fi_poll(poll_set, contexts, 8);
			break;
		case 3:
			fi_wait(wait_set, 0);
			break;
		case 4:
			drain(common_cq, 1);
			break;
		default:
			drain(common_cq, 0);
		}
	}
	return NULL;
}

static void *send_all_the_time(void *arg)
{
	static const size_t sizes[] = { 8, 3000, 20000, SIZE };
	static char body[SIZE];
	unsigned n = 0;

	(void) arg;
	memset(body, SENT, SIZE);
	while (!stop) {
		fi_addr_t to = destination;

		if (to != FI_ADDR_NOTAVAIL)
			fi_tsend(sender.ep, body, sizes[n++ % 4], NULL, to, 7, NULL);
		drain(sender.cq, 0);
	}
	return NULL;
}

/* ---- opening ---- */

static void bind_and_enable(struct round *r, struct fid_ep *ep)
{
	if (r->kind != SCALABLE)
		OK(fi_ep_bind(ep, &r->av->fid, 0));
	OK(fi_ep_bind(ep, &(r->own_cq ? r->own_cq : common_cq)->fid,
		      r->kind == SCALABLE ? (r->count == 0 ? FI_RECV : FI_TRANSMIT) : FI_TRANSMIT | FI_RECV));
	if (one_of(2))
		OK(fi_ep_bind(ep, &(r->own_cntr ? r->own_cntr : common_cntr)->fid,
			      r->kind == SCALABLE && r->count ? FI_SEND : FI_RECV));
	if (r->own_eq || one_of(2))
		OK(fi_ep_bind(ep, &(r->own_eq ? r->own_eq : common_eq)->fid, 0));
	if (r->kind == SHARED_RX)
		OK(fi_ep_bind(ep, &r->srx->fid, 0));
	if (r->kind == SHARED_TX)
		OK(fi_ep_bind(ep, &r->stx->fid, 0));
	if (r->count == 0)
		r->name = enable(ep);
	else
		OK(fi_enable(ep));
	r->ends[r->count++] = ep;
}

static void open_one(struct round *r)
{
	struct fid_ep *ep;

	OK(fi_endpoint(base.domain, infos[r->kind], &ep, NULL));
	bind_and_enable(r, ep);
}

static void open_round(struct round *r)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET, .wait_set = wait_set };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_SET, .wait_set = wait_set };
	struct fi_cntr_attr cntr = { .wait_obj = FI_WAIT_SET, .wait_set = wait_set };
	struct fid_ep *ep;

	*r = (struct round) { .kind = (enum kind) one_of(KINDS) };
	r->av = new_av(&base);
	if (one_of(2)) {
		OK(fi_cq_open(base.domain, &cq, &r->own_cq, NULL));
		OK(fi_poll_add(poll_set, &r->own_cq->fid, 0));
	}
	if (one_of(2)) {
		OK(fi_cntr_open(base.domain, &cntr, &r->own_cntr, NULL));
		OK(fi_poll_add(poll_set, &r->own_cntr->fid, 0));
	}
	if (one_of(4) == 0)
		OK(fi_eq_open(base.fabric, &eq, &r->own_eq, NULL));
	switch (r->kind) {
	case SHARED_RX:
		OK(fi_srx_context(base.domain, infos[SHARED_RX]->rx_attr, &r->srx, NULL));
		open_one(r);
		open_one(r);
		break;
	case SHARED_TX:
		OK(fi_stx_context(base.domain, infos[SHARED_TX]->tx_attr, &r->stx, NULL));
		open_one(r);
		open_one(r);
		break;
	case SCALABLE:
		OK(fi_scalable_ep(base.domain, infos[SCALABLE], &r->whole, NULL));
		OK(fi_scalable_ep_bind(r->whole, &r->av->fid, 0));
		OK(fi_rx_context(r->whole, 0, NULL, &ep, NULL));
		bind_and_enable(r, ep);
		OK(fi_tx_context(r->whole, 0, NULL, &ep, NULL));
		bind_and_enable(r, ep);
		break;
	case ALIASED:
		open_one(r);
		OK(fi_ep_alias(r->ends[0], &r->alias, FI_TRANSMIT));
		break;
	default:
		open_one(r);
	}
}

/* ---- closing ---- */

static void shuffle(struct fid **fids, int count)
{
	int i;

	for (i = count - 1; i > 0; i--) {
		int other = one_of((unsigned) i + 1);
		struct fid *fid = fids[i];

		fids[i] = fids[other];
		fids[other] = fid;
	}
}

static void close_all_of(struct fid **fids, int count)
{
	int i;

	shuffle(fids, count);
	for (i = 0; i < count; i++)
		OK(fi_close(fids[i]));
}

static void close_round(struct round *r)
{
	struct fid *fids[8];
	int i, count = 0;

	if (r->alias) {
		if (fi_close(&r->ends[0]->fid) != -FI_EBUSY)
			DIE("an endpoint with an alias was closed");
		OK(fi_close(&r->alias->fid));
	}
	for (i = 0; i < r->count; i++)
		fids[count++] = &r->ends[i]->fid;
	close_all_of(fids, count);
	count = 0;
	if (r->whole && one_of(2)) {
		/* A context can be opened again, and knows nothing of what was posted before. */
		OK(fi_rx_context(r->whole, 0, NULL, &r->ends[0], NULL));
		OK(fi_ep_bind(r->ends[0], &common_cq->fid, FI_RECV));
		OK(fi_enable(r->ends[0]));
		OK(fi_close(&r->ends[0]->fid));
	}
	if (r->whole)
		OK(fi_close(&r->whole->fid));
	if (r->own_cq)
		fids[count++] = &r->own_cq->fid;
	if (r->own_cntr)
		fids[count++] = &r->own_cntr->fid;
	if (r->own_eq)
		fids[count++] = &r->own_eq->fid;
	if (r->srx)
		fids[count++] = &r->srx->fid;
	if (r->stx)
		fids[count++] = &r->stx->fid;
	fids[count++] = &r->av->fid;
	close_all_of(fids, count);
}

/* Half of the members of the poll set are taken out before they are closed, the other half by being closed. */
static void leave_poll_set(struct round *r)
{
	if (r->own_cq && one_of(2))
		OK(fi_poll_del(poll_set, &r->own_cq->fid, 0));
	if (r->own_cntr && one_of(2))
		OK(fi_poll_del(poll_set, &r->own_cntr->fid, 0));
}

/* ---- rounds ---- */

static void check(int kept)
{
	int i, at;

	for (i = 0; i < POSTED; i++)
		for (at = 0; at < SIZE; at++)
			if (buffers[kept][i][at] != OURS)
				DIE("byte %d of a buffer is %#x, written after the endpoint was closed", at,
				    buffers[kept][i][at]);
}

static void one_round(void)
{
	int i, kept = round_number % KEPT;
	volatile int pause;
	struct round r;
	fi_addr_t addr;

	if (round_number >= KEPT)
		check(kept);
	open_round(&r);
	for (i = 0; i < POSTED; i++)
		OK(fi_trecv(r.srx ? r.srx : r.ends[0], buffers[kept][i], SIZE, NULL, FI_ADDR_UNSPEC, 7, 0, NULL));
	addr = know(base.av, &r.name);
	destination = addr;
	for (pause = one_of(20000); pause > 0; pause--)
		;
	if (one_of(2))
		destination = FI_ADDR_NOTAVAIL;
	leave_poll_set(&r);
	close_round(&r);
	memset(buffers[kept], OURS, sizeof(buffers[kept]));
	destination = FI_ADDR_NOTAVAIL;
	OK(fi_av_remove(base.av, &addr, 1, 0));
}

static struct fi_info *get_info(enum kind kind, enum fi_progress progress)
{
	struct wish wish = { .threading = FI_THREAD_SAFE, .progress = progress };

	if (kind == SHARED_RX)
		wish.rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (kind == SHARED_TX)
		wish.tx_ctx_cnt = FI_SHARED_CONTEXT;
	if (kind == SCALABLE)
		wish.tx_ctx_cnt = wish.rx_ctx_cnt = 2;
	return find(&wish);
}

static void open_life(void)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };
	struct fi_cntr_attr cntr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_wait_attr wait = { .wait_obj = FI_WAIT_FD };
	struct fi_poll_attr poll = { 0 };
	struct wish any_wait = { .cq_wait = FI_WAIT_UNSPEC }, usual = { 0 };

	open_base(&base, fi_dupinfo(infos[PLAIN]));
	OK(fi_wait_open(base.fabric, &wait, &wait_set));
	OK(fi_poll_open(base.domain, &poll, &poll_set));
	OK(fi_eq_open(base.fabric, &eq, &common_eq, NULL));
	OK(fi_cntr_open(base.domain, &cntr, &common_cntr, NULL));
	common_cq = new_cq(&base, &any_wait);
	OK(fi_poll_add(poll_set, &common_cq->fid, 0));
	open_end(&sender, &base, &usual);
}

static void close_life(void)
{
	struct fid *fids[] = { &common_eq->fid, &common_cntr->fid, &common_cq->fid, &sender.cq->fid,
			       &base.av->fid,   &poll_set->fid,    &wait_set->fid };

	shut(sender.ep);
	close_all_of(fids, sizeof(fids) / sizeof(*fids));
	base.av = NULL;
	close_base(&base);
}

int main(int argc, char **argv)
{
	int i, rounds = argc > 2 ? atoi(argv[2]) : 400;
	pthread_t threads[POLLERS + 1];
	enum fi_progress progress;

	if (argc < 2)
		return 2;
	if (argc > 3)
		seed = strtoull(argv[3], NULL, 0);
	dice = (seed + 1) * 0x9e3779b97f4a7c15ull;
	progress = strcmp(argv[1], "auto") ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO;
	alarm(DEADLINE);
	for (i = 0; i < KINDS; i++)
		infos[i] = get_info((enum kind) i, progress);
	while (round_number < rounds) {
		int last = round_number + LIFE;

		open_life();
		stop = 0;
		destination = FI_ADDR_NOTAVAIL;
		for (i = 0; i < POLLERS; i++)
			OK(pthread_create(&threads[i], NULL, poller, (void *) (uintptr_t) i));
		OK(pthread_create(&threads[POLLERS], NULL, send_all_the_time, NULL));
		for (; round_number < last && round_number < rounds; round_number++)
			one_round();
		stop = 1;
		for (i = 0; i <= POLLERS; i++)
			pthread_join(threads[i], NULL);
		close_life();
	}
	for (i = 0; i < KEPT && i < rounds; i++)
		check(i);
	for (i = 0; i < KINDS; i++)
		fi_freeinfo(infos[i]);
	return 0;
}

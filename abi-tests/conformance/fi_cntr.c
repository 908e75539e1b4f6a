/* fi_cntr(3): counters. */
#include <poll.h>
#include <pthread.h>
#include "fabric.h"

static const struct setup usual;
static char in[4096], out[4096];

static int try_open(struct bed *bed, struct fi_cntr_attr *attr, struct fid_cntr **cntr)
{
	return fi_cntr_open(bed->domain, attr, cntr, NULL);
}

static struct fid_cntr *open_cntr(struct bed *bed, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait };
	struct fid_cntr *cntr;
	int ret = try_open(bed, &attr, &cntr);

	NEED(!lacking(ret), "a counter with wait object %d: %s", wait, fi_strerror(-ret));
	CHECK(ret == 0, "a counter with wait object %d: %s", wait, fi_strerror(-ret));
	return cntr;
}

/* Changes need not be seen at once, but in the end. */
static void becomes(struct fid_cntr *cntr, uint64_t value, int line)
{
	long until = now_ms() + GIVE_UP_MS;

	while (fi_cntr_read(cntr) != value && now_ms() < until)
		;
	CHECK(fi_cntr_read(cntr) == value, "called at %d: %llu, not %llu", line, (unsigned long long) fi_cntr_read(cntr),
	      (unsigned long long) value);
}
#define BECOMES(cntr, value) becomes(cntr, value, __LINE__)

static void errors_become(struct fid_cntr *cntr, uint64_t value, int line)
{
	long until = now_ms() + GIVE_UP_MS;

	while (fi_cntr_readerr(cntr) != value && now_ms() < until)
		fi_cntr_read(cntr);
	CHECK(fi_cntr_readerr(cntr) == value, "called at %d: %llu errors, not %llu", line,
	      (unsigned long long) fi_cntr_readerr(cntr), (unsigned long long) value);
}
#define ERRORS_BECOME(cntr, value) errors_become(cntr, value, __LINE__)

/* ---- values ---- */

static void starts_at_zero(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	CHECK(cntr->fid.fclass == FI_CLASS_CNTR, "class %zu", cntr->fid.fclass);
	CHECK(fi_cntr_read(cntr) == 0 && fi_cntr_readerr(cntr) == 0, "not 0");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void keeps_the_context(void)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, ctx(5)));
	CHECK(cntr->fid.context == ctx(5), "the fid has another context");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void add_and_set(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	OK(fi_cntr_add(cntr, 5));
	BECOMES(cntr, 5);
	OK(fi_cntr_add(cntr, 7));
	BECOMES(cntr, 12);
	OK(fi_cntr_set(cntr, 3));
	BECOMES(cntr, 3);
	OK(fi_cntr_add(cntr, 0));
	BECOMES(cntr, 3);
	OK(fi_cntr_set(cntr, 1ULL << 40)); /* wider than 32 bits */
	OK(fi_cntr_add(cntr, 1));
	BECOMES(cntr, (1ULL << 40) + 1);
	OK(fi_cntr_set(cntr, 0));
	BECOMES(cntr, 0);
	CHECK(fi_cntr_readerr(cntr) == 0, "the error value moved too");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void adderr_and_seterr(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	OK(fi_cntr_set(cntr, 9));
	OK(fi_cntr_adderr(cntr, 2));
	ERRORS_BECOME(cntr, 2);
	OK(fi_cntr_adderr(cntr, 3));
	ERRORS_BECOME(cntr, 5);
	OK(fi_cntr_seterr(cntr, 1));
	ERRORS_BECOME(cntr, 1);
	BECOMES(cntr, 9);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void flags_are_reserved(void)
{
	struct fi_cntr_attr attr = { .flags = 1 };
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(try_open(&bed, &attr, &cntr));
	close_bed(&bed);
}

static void unknown_events_and_objects(void)
{
	struct fi_cntr_attr events = { .events = 77 }, object = { .wait_obj = 77 };
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(try_open(&bed, &events, &cntr));
	FAILS(try_open(&bed, &object, &cntr));
	close_bed(&bed);
}

/* ---- bound to endpoints ---- */

/* A bed whose endpoint `side` counts `flags` too. */
static struct fid_cntr *bind_counter(struct bed *bed, const struct setup *s, enum fi_cntr_events events, int side, uint64_t flags)
{
	struct fi_cntr_attr attr = { .events = events, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	int ret;

	open_sides(bed, s);
	ret = try_open(bed, &attr, &cntr);
	NEED(!lacking(ret), "fi_cntr_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cntr_open: %s", fi_strerror(-ret));
	ret = fi_ep_bind(bed->side[side].ep, &cntr->fid, flags);
	NEED(!lacking(ret), "fi_ep_bind of a counter: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_ep_bind of a counter: %s", fi_strerror(-ret));
	enable_sides(bed, s);
	return cntr;
}

/* Closes the endpoints first: a counter that is bound cannot be closed. */
static void close_counted(struct bed *bed, struct fid_cntr *cntr)
{
	int i;

	for (i = 0; i < bed->sides; i++) {
		OK(fi_close(&bed->side[i].ep->fid));
		bed->side[i].ep = NULL;
	}
	OK(fi_close(&cntr->fid));
	close_bed(bed);
}

static void exchange(struct bed *bed, int from, int to, size_t len)
{
	POST(bed, fi_trecv(bed->side[to].ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(bed, fi_tsend(bed->side[from].ep, out, len, NULL, bed->side[to].addr, 1, ctx(2)));
	COMPLETION(bed, bed->side[from].tx, ctx(2));
	COMPLETION(bed, bed->side[to].rx, ctx(1));
}

static void counts_sends(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND);
	int i;

	for (i = 1; i <= 5; i++) {
		exchange(&bed, 0, 1, 8);
		BECOMES(cntr, (uint64_t) i);
	}
	exchange(&bed, 1, 0, 8); /* what is received is not sent */
	POST(&bed, fi_recv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, ctx(1)));
	POST(&bed, fi_send(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	BECOMES(cntr, 6); /* tagged and untagged count alike */
	CHECK(fi_cntr_readerr(cntr) == 0, "%llu errors", (unsigned long long) fi_cntr_readerr(cntr));
	close_counted(&bed, cntr);
}

static void counts_receives(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);
	int i;

	for (i = 1; i <= 5; i++) {
		exchange(&bed, 0, 1, 8);
		BECOMES(cntr, (uint64_t) i);
	}
	exchange(&bed, 1, 0, 8);
	POST(&bed, fi_recv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, ctx(1)));
	POST(&bed, fi_send(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 6);
	close_counted(&bed, cntr);
}

static void counts_both_directions(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND | FI_RECV);

	exchange(&bed, 0, 1, 8);
	exchange(&bed, 1, 0, 8);
	BECOMES(cntr, 2);
	close_counted(&bed, cntr);
}

static void counts_large_messages_once(void)
{
	static char big_in[1 << 20], big_out[1 << 20];
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);

	POST(&bed, fi_trecv(bed.side[1].ep, big_in, sizeof(big_in), NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, big_out, sizeof(big_out), NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	BECOMES(cntr, 1);
	settle(&bed);
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

/* Counting is separate from whether an entry is written. */
static void counts_without_entries(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION };
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &s, FI_CNTR_EVENTS_COMP, 0, FI_SEND);

	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 1);
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_counted(&bed, cntr);
}

static void counts_injects(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND);

	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tinject(bed.side[0].ep, out, 8, bed.side[1].addr, 1));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

/* An endpoint may do without queues altogether. */
static void counter_instead_of_a_queue(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *sent, *received;
	struct fid_ep *ep;
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	int ret;

	open_bed(&bed, &usual);
	OK(try_open(&bed, &attr, &sent));
	OK(try_open(&bed, &attr, &received));
	OK(fi_endpoint(bed.domain, bed.info, &ep, NULL));
	OK(fi_ep_bind(ep, &bed.av->fid, 0));
	ret = fi_ep_bind(ep, &sent->fid, FI_SEND);
	NEED(!lacking(ret), "fi_ep_bind of a counter: %s", fi_strerror(-ret));
	OK(fi_ep_bind(ep, &received->fid, FI_RECV));
	ret = fi_enable(ep);
	NEED(ret != -FI_ENOCQ, "an endpoint must have queues");
	CHECK(ret == 0, "fi_enable: %s", fi_strerror(-ret));
	memset(&bed.side[2], 0, sizeof(bed.side[2]));
	bed.side[2].ep = ep;
	learn_name(&bed.side[2]);
	GIVES(1, insert_sides(&bed, bed.av, 2, 1, &bed.side[2].addr, 0, NULL));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	while ((ret = (int) fi_tsend(ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2))) == -FI_EAGAIN && now_ms() < until) {
		fi_cntr_read(sent);
		progress(&bed);
	}
	OK(ret);
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(sent, 1);
	POST(&bed, fi_trecv(ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[1].ep, out, 8, NULL, bed.side[2].addr, 1, ctx(2)));
	while (fi_cntr_read(received) != 1 && now_ms() < until)
		progress(&bed);
	BECOMES(received, 1);
	OK(fi_close(&ep->fid));
	bed.side[2].ep = NULL;
	OK(fi_close(&sent->fid));
	OK(fi_close(&received->fid));
	close_bed(&bed);
}

static void errors_are_counted_apart(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);
	struct fi_cq_err_entry err;

	exchange(&bed, 0, 1, 8);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx); /* and an entry is written */
	CHECK(err.op_context == ctx(1), "the error of another operation");
	ERRORS_BECOME(cntr, 1);
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

static void cancelled_counts_as_error(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);

	POST(&bed, fi_trecv(bed.side[1].ep, in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	OK(fi_cancel(&bed.side[1].ep->fid, ctx(1)));
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	ERRORS_BECOME(cntr, 1);
	BECOMES(cntr, 0);
	close_counted(&bed, cntr);
}

#if HEADERS_2
static void bytes_sent(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_BYTES, 0, FI_SEND);

	exchange(&bed, 0, 1, 100);
	BECOMES(cntr, 100);
	exchange(&bed, 0, 1, 0);
	exchange(&bed, 0, 1, 4000);
	BECOMES(cntr, 4100);
	close_counted(&bed, cntr);
}

static void bytes_received(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_BYTES, 1, FI_RECV);

	exchange(&bed, 0, 1, 100);
	BECOMES(cntr, 100);
	/* Received bytes count, not the buffer's; and the queue's data do not. */
	POST(&bed, fi_trecv(bed.side[1].ep, in, 500, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsenddata(bed.side[0].ep, out, 50, NULL, 77, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 150);
	close_counted(&bed, cntr);
}

static void bytes_of_an_error(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_BYTES, 1, FI_RECV);

	POST(&bed, fi_trecv(bed.side[1].ep, in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	ERRORS_BECOME(cntr, 1); /* by 1, not by the size */
	close_counted(&bed, cntr);
}
#endif

static void close_while_in_use(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND);

	GIVES(-FI_EBUSY, fi_close(&cntr->fid));
	exchange(&bed, 0, 1, 8);
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

static void one_counter_for_two_endpoints(void)
{
	struct bed bed;
	struct fid_cntr *cntr;
	struct fi_cntr_attr attr = { 0 };
	int i;

	open_sides(&bed, &usual);
	OK(try_open(&bed, &attr, &cntr));
	for (i = 0; i < 2; i++)
		OK(fi_ep_bind(bed.side[i].ep, &cntr->fid, FI_SEND));
	enable_sides(&bed, &usual);
	exchange(&bed, 0, 1, 8);
	exchange(&bed, 1, 0, 8);
	BECOMES(cntr, 2);
	close_counted(&bed, cntr);
}

/* ---- waiting ---- */

static void waits(enum fi_wait_obj wait)
{
	struct fid_cntr *cntr;
	struct bed bed;
	long before;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, wait);
	OK(fi_cntr_set(cntr, 5));
	BECOMES(cntr, 5);
	OK(fi_cntr_wait(cntr, 0, 0));
	OK(fi_cntr_wait(cntr, 4, -1)); /* greater than */
	OK(fi_cntr_wait(cntr, 5, -1)); /* or equal */
	before = now_ms();
	GIVES(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 6, 50));
	CHECK(now_ms() - before >= 49, "waited %ld ms of 50", now_ms() - before);
	CHECK(fi_cntr_readerr(cntr) == 0, "the timeout changed the error value");
	CHECK(fi_cntr_read(cntr) == 5, "the timeout changed the value");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void wait_unspec(void) { waits(FI_WAIT_UNSPEC); }
static void wait_fd(void) { waits(FI_WAIT_FD); }
static void wait_mutex_cond(void) { waits(FI_WAIT_MUTEX_COND); }
static void wait_yield(void) { waits(FI_WAIT_YIELD); }

static void wait_of_no_time(void)
{
	struct fid_cntr *cntr;
	struct bed bed;
	long before = now_ms();

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_UNSPEC);
	GIVES(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	CHECK(now_ms() - before < 1000, "a timeout of 0 waits");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void wait_none_is_invalid(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	FAILS(fi_cntr_wait(cntr, 1, 0));
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

struct sleeper {
	struct fid_cntr *cntr;
	uint64_t threshold;
	_Atomic pid_t thread;
	int ret;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;

	s->thread = thread_id();
	s->ret = fi_cntr_wait(s->cntr, s->threshold, GIVE_UP_MS);
	return NULL;
}

/* Runs `wake` when another thread sleeps for the threshold; what that thread got. */
static int woken_by(struct fid_cntr *cntr, uint64_t threshold, void (*wake)(struct fid_cntr *))
{
	struct sleeper s = { .cntr = cntr, .threshold = threshold };
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, sleep_on, &s) == 0, "pthread_create");
	while (!s.thread)
		;
	until_asleep(s.thread);
	wake(cntr);
	pthread_join(thread, NULL);
	return s.ret;
}

static void wake_add(struct fid_cntr *cntr) { OK(fi_cntr_add(cntr, 3)); }
static void wake_set(struct fid_cntr *cntr) { OK(fi_cntr_set(cntr, 9)); }
static void wake_adderr(struct fid_cntr *cntr) { OK(fi_cntr_adderr(cntr, 1)); }
static void wake_seterr(struct fid_cntr *cntr) { OK(fi_cntr_seterr(cntr, 4)); }

static void wakes(void (*wake)(struct fid_cntr *), bool error)
{
	struct setup s = { .threading = FI_THREAD_SAFE };
	struct fid_cntr *cntr;
	struct bed bed;
	int ret;

	open_domain(&bed, &s);
	cntr = open_cntr(&bed, FI_WAIT_UNSPEC);
	ret = woken_by(cntr, 3, wake);
	if (error)
		CHECK(ret < 0 && ret != -FI_ETIMEDOUT, "an error gives %d (%s)", ret, fi_strerror(-ret));
	else
		CHECK(ret == 0, "%d (%s)", ret, fi_strerror(-ret));
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void add_wakes(void) { wakes(wake_add, false); }
static void set_wakes(void) { wakes(wake_set, false); }
static void adderr_wakes(void) { wakes(wake_adderr, true); }
static void seterr_wakes(void) { wakes(wake_seterr, true); }

/* Only a change of the error value ends a wait: an old error does not. */
static void an_old_error_does_not_wake(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_UNSPEC);
	OK(fi_cntr_seterr(cntr, 2));
	ERRORS_BECOME(cntr, 2);
	GIVES(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 20));
	OK(fi_cntr_add(cntr, 1));
	OK(fi_cntr_wait(cntr, 1, GIVE_UP_MS));
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

/* Waiting makes progress: the message of another process arrives within the wait. */
static void progress_body(struct bed *bed, int me, int pipe)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	struct fid_ep *ep = bed->side[0].ep;
	int i;

	/* The bed's endpoint is enabled: this one is bound to a counter before. */
	OK(fi_cntr_open(bed->domain, &attr, &cntr, NULL));
	OK(fi_close(&ep->fid));
	OK(fi_endpoint(bed->domain, bed->info, &ep, NULL));
	bed->side[0].ep = ep;
	OK(fi_ep_bind(ep, &bed->av->fid, 0));
	OK(fi_ep_bind(ep, &bed->side[0].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &bed->side[0].rx->fid, FI_RECV));
	OK(fi_ep_bind(ep, &cntr->fid, FI_RECV));
	OK(fi_enable(ep));
	learn_name(&bed->side[0]);
	{
		char name[NAME_MAX_LEN], packed[NAME_MAX_LEN];
		size_t len;

		pipe_send(pipe, &bed->side[0].name_len, sizeof(len));
		pipe_send(pipe, bed->side[0].name, bed->side[0].name_len);
		pipe_recv(pipe, &len, sizeof(len));
		pipe_recv(pipe, name, len);
		pack(bed, packed, name, len);
		GIVES(1, fi_av_insert(bed->av, packed, 1, &bed->peer, 0, NULL));
	}
	meet(bed, pipe);
	for (i = 1; i <= 10; i++) {
		if ((i & 1) == me) {
			POST(bed, fi_trecv(ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
			OK(fi_cntr_wait(cntr, (uint64_t) (me ? (i + 1) / 2 : i / 2), GIVE_UP_MS));
		} else {
			POST(bed, fi_tsend(ep, out, 8, NULL, bed->peer, 1, ctx(100)));
			COMPLETION(bed, bed->side[0].tx, ctx(100));
		}
	}
	meet(bed, pipe);
	OK(fi_close(&ep->fid));
	bed->side[0].ep = NULL;
	OK(fi_close(&cntr->fid));
}

static void waiting_makes_progress(void)
{
	in_two(&usual, progress_body);
}

static void getwait_fd(void)
{
	struct fid_cntr *cntr;
	struct fid *fids[1];
	struct pollfd p = { .events = POLLIN };
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	int ret;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_FD);
	fids[0] = &cntr->fid;
	ret = fi_control(&cntr->fid, FI_GETWAIT, &p.fd);
	NEED(!lacking(ret), "FI_GETWAIT: %s", fi_strerror(-ret));
	CHECK(ret == 0 && p.fd >= 0, "FI_GETWAIT: %d, descriptor %d", ret, p.fd);
	ret = fi_trywait(bed.fabric, fids, 1);
	NEED(!lacking(ret), "fi_trywait: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_trywait: %s", fi_strerror(-ret));
	CHECK(poll(&p, 1, 0) == 0, "ready, but nothing has happened");
	OK(fi_cntr_add(cntr, 1));
	ret = 0;
	while (!ret && now_ms() < until)
		ret = fi_trywait(bed.fabric, fids, 1) == -FI_EAGAIN || poll(&p, 1, 10) == 1;
	CHECK(ret, "the counter changed, but the descriptor is not ready");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void getwait_mutex_cond(void)
{
	struct fi_mutex_cond pair = { 0 };
	struct fid_cntr *cntr;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_MUTEX_COND);
	ret = fi_control(&cntr->fid, FI_GETWAIT, &pair);
	NEED(!lacking(ret), "FI_GETWAIT: %s", fi_strerror(-ret));
	CHECK(ret == 0 && pair.mutex && pair.cond, "FI_GETWAIT: %d", ret);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void wait_set(void)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_SET };
	struct fid_cntr *cntr;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	ret = fi_wait_open(bed.fabric, &wait_attr, &attr.wait_set);
	NEED(!lacking(ret), "fi_wait_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_wait_open: %d", ret);
	ret = try_open(&bed, &attr, &cntr);
	NEED(!lacking(ret), "FI_WAIT_SET: %s", fi_strerror(-ret));
	CHECK(ret == 0, "FI_WAIT_SET: %d", ret);
	FAILS(fi_cntr_wait(cntr, 1, 0)); /* invalid with a wait set */
	OK(fi_cntr_add(cntr, 1));
	OK(fi_wait(attr.wait_set, GIVE_UP_MS)); /* which the change signals */
	OK(fi_close(&cntr->fid));
	OK(fi_close(&attr.wait_set->fid));
	close_bed(&bed);
}

/* ---- control ---- */

static void ops_flags(void)
{
	struct fid_cntr *cntr;
	struct bed bed;
	uint64_t flags = ~0ULL, before;
	int ret;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	ret = fi_control(&cntr->fid, FI_GETOPSFLAG, &flags);
	NEED(!lacking(ret), "FI_GETOPSFLAG: %s", fi_strerror(-ret));
	CHECK(ret == 0, "FI_GETOPSFLAG: %d", ret);
	CHECK(flags != ~0ULL, "FI_GETOPSFLAG wrote nothing");
	before = flags;
	OK(fi_control(&cntr->fid, FI_SETOPSFLAG, &flags));
	flags = ~0ULL;
	OK(fi_control(&cntr->fid, FI_GETOPSFLAG, &flags));
	CHECK(flags == before, "0x%llx, not 0x%llx", (unsigned long long) flags, (unsigned long long) before);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void getwait_without_an_object(void)
{
	struct fid_cntr *cntr;
	struct bed bed;
	void *object;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	FAILS(fi_control(&cntr->fid, FI_GETWAIT, &object));
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void *add_often(void *arg)
{
	int i;

	for (i = 0; i < 10000; i++)
		fi_cntr_add(arg, 1);
	return NULL;
}

static void many_threads_add(void)
{
	struct setup s = { .threading = FI_THREAD_SAFE };
	struct fid_cntr *cntr;
	pthread_t threads[4];
	struct bed bed;
	int i;

	open_domain(&bed, &s);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	for (i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, add_often, cntr) == 0, "pthread_create");
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	BECOMES(cntr, 40000);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(starts_at_zero), TEST(keeps_the_context), TEST(add_and_set), TEST(adderr_and_seterr), TEST(flags_are_reserved),
	TEST(unknown_events_and_objects), TEST(many_threads_add), TEST(counts_sends), TEST(counts_receives),
	TEST(counts_both_directions), TEST(counts_large_messages_once), TEST(counts_without_entries), TEST(counts_injects),
	TEST(counter_instead_of_a_queue), TEST(errors_are_counted_apart), TEST(cancelled_counts_as_error),
#if HEADERS_2
	TEST(bytes_sent), TEST(bytes_received), TEST(bytes_of_an_error),
#endif
	TEST(close_while_in_use), TEST(one_counter_for_two_endpoints), TEST(wait_unspec), TEST(wait_fd), TEST(wait_mutex_cond),
	TEST(wait_yield), TEST(wait_of_no_time), TEST(wait_none_is_invalid), TEST(add_wakes), TEST(set_wakes),
	TEST(adderr_wakes), TEST(seterr_wakes), TEST(an_old_error_does_not_wake), TEST(waiting_makes_progress),
	TEST(getwait_fd), TEST(getwait_mutex_cond), TEST(wait_set), TEST(ops_flags), TEST(getwait_without_an_object),
};

CASES(tests)

/* Waiting for a value, and what ends it. */
#include <pthread.h>
#include "cntr.h"

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
	long before;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_UNSPEC);
	before = now_ms();
	GIVES(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	CHECK(now_ms() - before < GIVE_UP_MS, "a timeout of 0 waits");
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
			POST(bed, post_recv(ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
			meet_posted(bed, pipe);
			OK(fi_cntr_wait(cntr, (uint64_t) (me ? (i + 1) / 2 : i / 2), GIVE_UP_MS));
		} else {
			meet_posted(bed, pipe);
			POST(bed, post_send(ep, out, 8, bed->peer, 1, ctx(100)));
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
	BY_ADDRESS;
	in_two(&usual, progress_body);
}

static const struct test tests[] = {
	TEST(wait_unspec), TEST(wait_fd), TEST(wait_mutex_cond), TEST(wait_yield), TEST(wait_of_no_time),
	TEST(wait_none_is_invalid), TEST(add_wakes), TEST(set_wakes), TEST(adderr_wakes), TEST(seterr_wakes),
	TEST(an_old_error_does_not_wake), TEST(waiting_makes_progress),
};

CASES(tests)

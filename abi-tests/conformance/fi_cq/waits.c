/* Reading that blocks. */
#include <pthread.h>
#include "cq.h"

static void sread_none_is_invalid(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	FAILS(fi_cq_sread(bed.side[0].rx, &e, 1, NULL, 0));
	close_bed(&bed);
}

/* Finds what is there already, waits out its time, and finds what comes by its own progress. */
static void waits(enum fi_wait_obj wait)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
	struct bed bed;
	long before;

	open_waiting(&bed, wait);
	before = now_ms();
	GIVES(-FI_EAGAIN, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, 0));
	CHECK(now_ms() - before < GIVE_UP_MS, "a timeout of 0 waits");
	before = now_ms();
	GIVES(-FI_EAGAIN, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, 50));
	CHECK(now_ms() - before >= 49, "waited %ld ms of 50", now_ms() - before);
	start(&bed, 1, 8, 1, 2);
	settle(&bed);
	GIVES(1, fi_cq_sread(bed.side[0].tx, &e, 1, NULL, GIVE_UP_MS));
	CHECK(e.op_context == ctx(2), "another completion");
	GIVES(1, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, GIVE_UP_MS));
	CHECK(e.op_context == ctx(1), "another completion");
	start(&bed, 1, 8, 3, 4);
	COMPLETION(&bed, bed.side[0].tx, ctx(4));
	GIVES(1, fi_cq_sreadfrom(bed.side[1].rx, &e, 1, &source, NULL, GIVE_UP_MS));
	CHECK(e.op_context == ctx(3), "another completion");
	close_bed(&bed);
}

static void wait_unspec(void) { waits(FI_WAIT_UNSPEC); }
static void wait_fd(void) { waits(FI_WAIT_FD); }
static void wait_mutex_cond(void) { waits(FI_WAIT_MUTEX_COND); }
static void wait_yield(void) { waits(FI_WAIT_YIELD); }

static void sread_reports_errors(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_waiting(&bed, FI_WAIT_UNSPEC);
	cancel_one(&bed, 1);
	GIVES(-FI_EAVAIL, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, GIVE_UP_MS));
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

/* The other process sends only when this one sleeps. */
static void sread_wakes_body(struct bed *bed, int me, int pipe)
{
	struct fi_cq_tagged_entry e;
	int round;

	for (round = 0; round < 3; round++) {
		meet(bed, pipe);
		if (me == 0) {
			POST(bed, post_recv(bed->side[0].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
			GIVES(1, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, GIVE_UP_MS));
			CHECK(e.op_context == ctx(1), "another completion");
		} else {
			until_asleep(getppid());
			POST(bed, post_send(bed->side[0].ep, out, 8, bed->peer, 1, ctx(2)));
			COMPLETION(bed, bed->side[0].tx, ctx(2));
		}
	}
}

static void sread_wakes_for_the_other_process(void)
{
	struct setup s = { .any_wait = true };

	in_two(&s, sread_wakes_body);
}

static void fd_wakes_for_the_other_process(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };

	in_two(&s, sread_wakes_body);
}

struct sleeper {
	struct fid_cq *cq;
	_Atomic pid_t thread;
	ssize_t ret;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry e;

	s->thread = thread_id();
	s->ret = fi_cq_sread(s->cq, &e, 1, NULL, -1);
	return NULL;
}

static void signal_wakes(void)
{
	struct sleeper s = { 0 };
	struct bed bed;
	pthread_t thread;
	int ret;

	open_waiting(&bed, FI_WAIT_UNSPEC);
	s.cq = bed.side[1].rx;
	CHECK(pthread_create(&thread, NULL, sleep_on, &s) == 0, "pthread_create");
	while (!s.thread)
		;
	until_asleep(s.thread);
	ret = fi_cq_signal(s.cq);
	NEED(!lacking(ret), "fi_cq_signal: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cq_signal: %d", ret);
	pthread_join(thread, NULL);
	CHECK(s.ret == -FI_EAGAIN, "the sleeper got %zd (%s)", s.ret, fi_strerror((int) -s.ret));
	close_bed(&bed);
}

static void threshold_is_taken(void)
{
	struct setup s = { .any_wait = true, .wait_cond = FI_CQ_COND_THRESHOLD };
	struct fi_cq_tagged_entry e[4];
	struct bed bed;
	void *threshold = (void *)2; /* a number, says the page */
	ssize_t ret;

	open_bed(&bed, &s);
	start(&bed, 1, 8, 1, 11);
	start(&bed, 2, 8, 2, 12);
	COMPLETION(&bed, bed.side[0].tx, ctx(11));
	COMPLETION(&bed, bed.side[0].tx, ctx(12));
	ret = fi_cq_sread(bed.side[1].rx, e, 4, threshold, GIVE_UP_MS);
	/* The C library's shm leaves the threshold out. */
	CHECK((ret == 2 || (ret == 1 && !strict)) && e[0].op_context == ctx(1), "%zd", ret);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(sread_none_is_invalid), TEST(wait_unspec), TEST(wait_fd), TEST(wait_mutex_cond), TEST(wait_yield),
	TEST(sread_reports_errors), TEST(sread_wakes_for_the_other_process), TEST(fd_wakes_for_the_other_process),
	TEST(signal_wakes), TEST(threshold_is_taken),
};

CASES(tests)

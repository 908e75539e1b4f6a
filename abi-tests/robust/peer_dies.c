/*
 * A peer is killed while we sleep: whatever waits for it ends in error within seconds, though nobody calls the library
 * and the dead ring for nobody. Who waits for no peer sleeps and costs nothing.
 *   peer_dies PROVIDER [CASE ...]
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include "fabric.h"

/* It takes a quarter of a second, or what a busy machine makes of that; and nobody wakes by himself before. */
#define NOTICED_MS 20000
#define SLEEP_MS 60000
#define LARGE (4 << 20)

static char in[64], large[LARGE];
static pid_t victim;
static struct bed *here;

/* Process 1 tells its number, answers one message, and waits for its end. Process 0 goes on with `body`. */
static void (*with_a_victim)(struct bed *bed);

static void body(struct bed *bed, int me, int pipe)
{
	pid_t own = getpid();

	here = bed;
	if (me) {
		POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		COMPLETION(bed, bed->side[0].rx, ctx(1));
		POST(bed, fi_tsend(bed->side[0].ep, in, 8, NULL, bed->peer, 2, ctx(2)));
		COMPLETION(bed, bed->side[0].tx, ctx(2));
		pipe_send(pipe, &own, sizeof(own));
		for (;;)
			pause();
	}
	POST(bed, fi_tsend(bed->side[0].ep, in, 8, NULL, bed->peer, 1, ctx(1)));
	COMPLETION(bed, bed->side[0].tx, ctx(1));
	POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, bed->peer, 2, 0, ctx(2)));
	COMPLETION(bed, bed->side[0].rx, ctx(2));
	pipe_recv(pipe, &victim, sizeof(victim));
	with_a_victim(bed);
	kill(victim, SIGKILL);
	printf("ok %s\n", case_name);
	fflush(stdout);
	_exit(0);
}

static void test(void (*go_on)(struct bed *bed))
{
	struct setup s = { .wait_obj = FI_WAIT_FD, .more_caps = FI_DIRECTED_RECV | FI_SOURCE, .threading = FI_THREAD_SAFE };

	with_a_victim = go_on;
	in_two(&s, body);
}

struct killer {
	pthread_t thread;
	pid_t sleeper;
	void (*first)(void);
	volatile long killed;
};

/* Kills the peer as soon as the other thread sleeps. */
static void *kill_when_asleep(void *arg)
{
	struct killer *k = arg;
	int status;

	until_asleep(k->sleeper);
	if (k->first)
		k->first();
	k->killed = now_ms();
	kill(victim, SIGKILL);
	waitpid(victim, &status, 0);
	return NULL;
}

static void start_killer(struct killer *k, void (*first)(void))
{
	k->sleeper = thread_id();
	k->first = first;
	CHECK(pthread_create(&k->thread, NULL, kill_when_asleep, k) == 0, "pthread_create");
}

static void noticed(struct killer *k)
{
	pthread_join(k->thread, NULL);
	CHECK(now_ms() - k->killed < NOTICED_MS, "noticed after %ld ms", now_ms() - k->killed);
}

static void an_error(struct fid_cq *cq, int number)
{
	struct fi_cq_err_entry err = { 0 };

	GIVES(1, fi_cq_readerr(cq, &err, 0));
	CHECK(err.op_context == ctx(number) && err.err != 0, "err %d", err.err);
}

static void post_directed(void)
{
	POST(here, fi_trecv(here->side[0].ep, in, 8, NULL, here->peer, 9, 0, ctx(9)));
}

static void sleep_for_receive(struct bed *bed)
{
	struct fi_cq_tagged_entry e;
	struct killer k = { 0 };

	post_directed();
	start_killer(&k, NULL);
	GIVES(-FI_EAVAIL, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, SLEEP_MS));
	noticed(&k);
	an_error(bed->side[0].rx, 9);
}

static void sleep_for_send(struct bed *bed)
{
	struct fi_cq_tagged_entry e;
	struct killer k = { 0 };

	POST(bed, fi_tsend(bed->side[0].ep, large, LARGE, NULL, bed->peer, 9, ctx(9)));
	start_killer(&k, NULL);
	GIVES(-FI_EAVAIL, fi_cq_sread(bed->side[0].tx, &e, 1, NULL, SLEEP_MS));
	noticed(&k);
	an_error(bed->side[0].tx, 9);
}

/* The peer is one that another thread has begun to wait for, when this one slept already. */
static void sleep_before_it_begins(struct bed *bed)
{
	struct fi_cq_tagged_entry e;
	struct killer k = { 0 };

	start_killer(&k, post_directed);
	GIVES(-FI_EAVAIL, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, SLEEP_MS));
	noticed(&k);
	an_error(bed->side[0].rx, 9);
}

/* The program sleeps itself, in the queue's descriptor. */
static void sleep_in_poll(struct bed *bed)
{
	struct fid *fids[1] = { &bed->side[0].rx->fid };
	struct fi_cq_tagged_entry e;
	struct pollfd p = { .events = POLLIN };
	struct killer k = { 0 };
	ssize_t ret;
	int tried;

	OK(fi_control(&bed->side[0].rx->fid, FI_GETWAIT, &p.fd));
	post_directed();
	start_killer(&k, NULL);
	while ((ret = fi_cq_read(bed->side[0].rx, &e, 1)) == -FI_EAGAIN) {
		tried = fi_trywait(bed->fabric, fids, 1);
		CHECK(tried == 0 || tried == -FI_EAGAIN, "fi_trywait: %d", tried);
		if (tried == 0)
			CHECK(poll(&p, 1, SLEEP_MS) == 1, "nothing in the descriptor");
	}
	CHECK(ret == -FI_EAVAIL, "%zd", ret);
	noticed(&k);
	an_error(bed->side[0].rx, 9);
}

static void sleep_for_counter(struct bed *bed)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct killer k = { 0 };

	OK(fi_cntr_open(bed->domain, &attr, &cntr, NULL));
	OK(fi_endpoint(bed->domain, bed->info, &ep, NULL));
	OK(fi_ep_bind(ep, &bed->av->fid, 0));
	OK(fi_ep_bind(ep, &bed->side[0].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &cntr->fid, FI_RECV)); /* and no queue */
	OK(fi_enable(ep));
	POST(bed, fi_tsend(ep, in, 8, NULL, bed->peer, 1, ctx(1)));
	COMPLETION(bed, bed->side[0].tx, ctx(1));
	POST(bed, fi_trecv(ep, in, 8, NULL, bed->peer, 9, 0, ctx(9)));
	start_killer(&k, NULL);
	GIVES(-FI_EAVAIL, fi_cntr_wait(cntr, 1, SLEEP_MS));
	noticed(&k);
	CHECK(fi_cntr_readerr(cntr) == 1, "%llu errors", (unsigned long long) fi_cntr_readerr(cntr));
}

static void idle(struct bed *bed)
{
	struct fi_cq_tagged_entry e;
	struct rusage before, after;

	/* Once before: what the first call has to be read from disk for is no waking. */
	GIVES(-FI_EAGAIN, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, 1));
	getrusage(RUSAGE_THREAD, &before);
	GIVES(-FI_EAGAIN, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, 2500));
	getrusage(RUSAGE_THREAD, &after);
	/* Who looked after its peers all the time would have woken ten times. */
	CHECK(after.ru_nvcsw - before.ru_nvcsw <= 5, "woke %ld times", after.ru_nvcsw - before.ru_nvcsw);
}

static void a_sleeper_for_a_receive_is_told(void) { test(sleep_for_receive); }
static void a_sleeper_for_a_send_is_told(void) { test(sleep_for_send); }
static void a_sleeper_is_told_of_what_began_later(void) { test(sleep_before_it_begins); }
static void a_sleeper_in_poll_is_told(void) { test(sleep_in_poll); }
static void a_sleeper_on_a_counter_is_told(void) { test(sleep_for_counter); }
static void an_idle_sleeper_sleeps(void) { test(idle); }

static const struct test tests[] = {
	TEST(a_sleeper_for_a_receive_is_told), TEST(a_sleeper_for_a_send_is_told),
	TEST(a_sleeper_is_told_of_what_began_later), TEST(a_sleeper_in_poll_is_told),
	TEST(a_sleeper_on_a_counter_is_told), TEST(an_idle_sleeper_sleeps),
};

CASES(tests)

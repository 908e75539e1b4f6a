/*
 * A child of fork that ends as programs do, by exit, and may first close all that it was born with. Nothing of it reaches
 * its parent, whose endpoints are found, whose threads run, and whose sleepers are woken as before.
 *   fork_exit PROVIDER [CASE ...]
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include "remote.h"

#define SIZE 64
/* Longer than anything takes, and shorter than a case may. */
#define CHILD_SECONDS 60

static char memory[SIZE], out[SIZE];
static struct bed bed;
static struct window w;
static struct fid_cntr *cntr;
static struct fi_mutex_cond pair;

/* ---- a thread that waits as programs do, on the pair ---- */

static pthread_t sleeper;
static volatile pid_t sleeper_id;
static volatile uint64_t awaited;

/* fi_trywait under the mutex, then the condition. */
static void *sleep_on_the_pair(void *arg)
{
	struct fid *fids[] = { &cntr->fid };

	pthread_mutex_lock(pair.mutex);
	sleeper_id = thread_id();
	while (fi_cntr_read(cntr) < awaited)
		if (fi_trywait(bed.fabric, fids, 1) == 0)
			pthread_cond_wait(pair.cond, pair.mutex);
	pthread_mutex_unlock(pair.mutex);
	return arg;
}

static void begin_to_sleep(void)
{
	sleeper_id = 0;
	awaited++;
	CHECK(pthread_create(&sleeper, NULL, sleep_on_the_pair, NULL) == 0, "thread");
	while (!sleeper_id)
		sched_yield();
	until_asleep(sleeper_id);
}

static void wake_up(void)
{
	OK(fi_cntr_add(cntr, 1));
	pthread_join(sleeper, NULL);
}

/* ---- parent and child ---- */

static void open_all(enum fi_wait_obj wait, enum fi_progress progress)
{
	struct setup s = { .caps = FI_MSG | FI_TAGGED | FI_RMA, .wait_obj = wait, .progress = progress, .threading = FI_THREAD_SAFE };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_MUTEX_COND };

	open_bed(&bed, &s);
	w = expose(&bed, 1, memory, SIZE, OPEN_TO_ALL);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	OK(fi_control(&cntr->fid, FI_GETWAIT, &pair));
}

static void close_all(void)
{
	conceal(&w);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

/* A child that ends by exit, so with all handlers and destructors of the process. */
static void child(void (*first)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		if (first)
			first();
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(status == 0, "the child ended with status 0x%x (0xe is a hang)", status);
}

/* Another endpoint finds ours by its name. */
static void is_found(void)
{
	struct setup s = { .sides = 1 };
	struct bed other;
	char in[8];
	fi_addr_t addr;

	open_bed(&other, &s);
	GIVES(1, fi_av_insert(other.av, bed.side[0].name, 1, &addr, 0, NULL));
	fill(out, 8, 7);
	POST(&bed, fi_trecv(bed.side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 7, 0, ctx(1)));
	POST(&other, fi_tsend(other.side[0].ep, out, 8, NULL, addr, 7, ctx(2)));
	COMPLETION(&other, other.side[0].tx, ctx(2));
	COMPLETION(&bed, bed.side[0].rx, ctx(1));
	SAME(in, 8, 7);
	close_bed(&other);
}

static void works_on_memory(unsigned seed)
{
	fill(out, SIZE, seed);
	POST(&bed, fi_write(bed.side[0].ep, out, SIZE, NULL, bed.side[1].addr, w.remote.base, w.remote.key, ctx(3)));
	COMPLETION(&bed, bed.side[0].tx, ctx(3));
	UNTIL(&bed, mismatch(memory, SIZE, seed) < 0);
}

static void all_is_well(unsigned seed)
{
	is_found();
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	works_on_memory(seed);
}

/* The queue's descriptor is readable when there is news, and not before. */
static void is_woken(void)
{
	struct fid *fids[] = { &bed.side[1].rx->fid };
	struct pollfd p = { .events = POLLIN };
	char in[8];

	OK(fi_control(fids[0], FI_GETWAIT, &p.fd));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 8, 0, ctx(4)));
	UNTIL(&bed, fi_trywait(bed.fabric, fids, 1) == 0);
	CHECK(poll(&p, 1, 0) == 0, "readable, but nothing has happened");
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 8, ctx(5)));
	CHECK(poll(&p, 1, GIVE_UP_MS) == 1, "there is news, but the descriptor is not readable");
	COMPLETION(&bed, bed.side[1].rx, ctx(4));
	COMPLETION(&bed, bed.side[0].tx, ctx(5));
}

/* ---- cases ---- */

static void with_a_child(enum fi_progress progress, void (*first)(void))
{
	unsigned i;

	open_all(FI_WAIT_FD, progress);
	all_is_well(1);
	is_woken();
	for (i = 2; i < 12; i++) {
		begin_to_sleep();
		child(first);
		wake_up();
		is_woken();
		all_is_well(i);
	}
	close_all();
}

static void a_child_exits(void) { with_a_child(FI_PROGRESS_MANUAL, NULL); }
static void a_child_of_one_with_threads_exits(void) { with_a_child(FI_PROGRESS_AUTO, NULL); }
static void a_child_closes_all_and_exits(void) { with_a_child(FI_PROGRESS_MANUAL, close_all); }

/* A child that has endpoints of its own closes them, and nothing else. */
static void open_and_close_own(void)
{
	struct setup s = { 0 };
	struct bed own;

	open_bed(&own, &s);
	ping(&own, 0, 1);
	close_bed(&own);
}

static void a_child_opens_its_own_and_exits(void) { with_a_child(FI_PROGRESS_MANUAL, open_and_close_own); }

/* Threads of the parent that are in the middle of a call at the fork: the child has their locks, and not them. */
static volatile bool driving;

static void *drive(void *arg)
{
	while (driving) {
		fi_cq_read(bed.side[0].rx, NULL, 0);
		fi_cq_read(bed.side[1].rx, NULL, 0);
	}
	return arg;
}

static void children_of_one_that_is_driven(enum fi_progress progress)
{
	pthread_t driver;
	int i;

	open_all(FI_WAIT_FD, progress);
	driving = true;
	CHECK(pthread_create(&driver, NULL, drive, NULL) == 0, "thread");
	for (i = 0; i < 50; i++) {
		child(close_all);
		ping(&bed, 0, 1);
	}
	driving = false;
	pthread_join(driver, NULL);
	close_all();
}

static void a_child_of_one_that_is_driven_closes_all(void) { children_of_one_that_is_driven(FI_PROGRESS_MANUAL); }
static void a_child_of_one_with_threads_closes_all(void) { children_of_one_that_is_driven(FI_PROGRESS_AUTO); }

static const struct test tests[] = {
	TEST(a_child_exits), TEST(a_child_of_one_with_threads_exits), TEST(a_child_closes_all_and_exits),
	TEST(a_child_opens_its_own_and_exits), TEST(a_child_of_one_that_is_driven_closes_all),
	TEST(a_child_of_one_with_threads_closes_all),
};

CASES(tests)

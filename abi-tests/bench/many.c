/* Works of more processes than two: so many senders and one receiver, and all to all. Each number of processes has
 * processes of its own, over all processors in turn; where there are more of them, who finds nothing to read yields. */
#define _GNU_SOURCE
#include "ends.h"
#include "talk.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 16
#define SENT_AT_ONCE 32

static struct common {
	_Atomic unsigned arrived;
	_Atomic int absent;	/* the library has no such provider */
	struct name names[MOST];
	_Atomic long count;	/* of the next round; 0: there is none */
} *common;

static unsigned processes, met;
static struct side me;
static fi_addr_t peers[MOST];

static void meet(void)
{
	unsigned all = ++met * processes;

	atomic_fetch_add(&common->arrived, 1);
	while (atomic_load(&common->arrived) < all)
		sched_yield();
}

/* 8 bytes from each to each, `count` times. */
static double all_to_all(long count)
{
	double start = now();

	for (long i = 0; i < count; i++) {
		size_t sent = 0;
		for (int p = 1; p < (int)processes; p++)
			receive(&me, 8, WINDOW + p);
		for (unsigned p = 1; p < processes; p++) {
			me.peer = peers[((unsigned)me.rank + p) % processes];
			sent += send_one(&me, 8, (int)p);
		}
		wait_for(&me, sent, processes - 1);
	}
	return now() - start;
}

static void send_windows(long windows)
{
	me.peer = peers[0];
	for (long i = 0; i < windows; i++) {
		receive(&me, 8, WINDOW);
		for (int slot = 0; slot < SENT_AT_ONCE; slot++)
			post(&me, fi_tsend(me.ep, me.tx, 8, me.desc, me.peer, TAG + (uint64_t)me.rank, &me.contexts[slot]));
		wait_for(&me, SENT_AT_ONCE, 1);
	}
}

static void receive_next(void *context)
{
	post(&me, fi_trecv(me.ep, me.rx, 8, me.desc, FI_ADDR_UNSPEC, TAG, 0xff, context));
}

/* A receive for the next one is posted when one has ended; the tag tells who sent it, and a window is answered. */
static void receive_windows(long windows)
{
	long left = windows * SENT_AT_ONCE * (long)(processes - 1), posted = 0;
	unsigned from[MOST] = { 0 };

	for (int slot = 0; slot < 2 * WINDOW && posted < left; slot++, posted++)
		receive_next(&me.contexts[slot]);
	for (long got = 0; got < left;) {
		struct fi_cq_tagged_entry done[16];
		ssize_t count = fi_cq_read(me.cq, done, 16);

		if (count < 0 && count != -FI_EAGAIN)
			die("fi_cq_read", (long)count);
		if (count <= 0 && me.polite)
			sched_yield();
		for (ssize_t i = 0; i < count; i++) {
			if (!(done[i].flags & FI_RECV))
				continue;
			unsigned sender = done[i].tag & 0xff;
			if (got++, posted < left) {
				posted++;
				receive_next(done[i].op_context);
			}
			if (++from[sender] % SENT_AT_ONCE == 0)
				post(&me, fi_tinject(me.ep, me.tx, 8, peers[sender], TAG));
		}
	}
}

static double senders(long count)
{
	double start = now();

	if (me.rank == 0)
		receive_windows(count);
	else
		send_windows(count);
	return now() - start;
}

static const struct many_work {
	const char *name;
	enum unit unit;
	size_t numbers[5], more;	/* what is told, and how many processes more that is */
	double (*round)(long count);
	long messages;			/* that count, for each of the number */
} all[] = {
	{ "senders", MILLIONS_PER_SECOND, { 1, 2, 4, 8, 15 }, 1, senders, SENT_AT_ONCE },
	{ "all-to-all", NANOSECONDS, { 2, 4, 8, 16 }, 0, all_to_all, 0 },
};
#define ALL (sizeof(all) / sizeof(*all))

static double one_round(const struct many_work *work, long count)
{
	atomic_store(&common->count, count);
	meet();
	double took = work->round(count);
	meet();
	return took;
}

static void lead(const struct settings *with, const struct many_work *work, size_t number)
{
	long count = with->operations ? 1 : 4;
	int repetitions = with->operations ? 1 : 5;
	double took[5], units = work->messages ? (double)work->messages * (double)number : 1;

	while (one_round(work, count) < with->seconds && !with->operations)
		count *= 2;
	for (int i = 0; i < repetitions; i++)
		took[i] = one_round(work, count) / (double)count / units;
	atomic_store(&common->count, 0);
	meet();
	qsort(took, (size_t)repetitions, sizeof(*took), by_value);
	print_line(work->name, number, work->unit, took[repetitions / 2], took[0], NULL);
}

static void process(const struct settings *with, const struct many_work *work, size_t number)
{
	struct settings small = *with;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(300);
	pin((unsigned)me.rank);
	small.largest = 4096;
	small.only = "";
	if (!open_alone(&me, &small, &common->names[me.rank]))
		atomic_store(&common->absent, 1);
	meet();
	if (atomic_load(&common->absent))
		exit(3);
	for (unsigned p = 0; p < processes; p++)
		peers[p] = meet_peer(&common->names[p]);
	meet();
	if (me.rank == 0) {
		lead(with, work, number);
	} else {
		for (;;) {
			meet();
			long count = atomic_load(&common->count);
			if (!count)
				break;
			work->round(count);
			meet();
		}
	}
	meet();
	exit(0);
}

static int run(const struct settings *with, const struct many_work *work, size_t number)
{
	pid_t pids[MOST];
	int status, worst = 0;

	processes = (unsigned)(number + work->more);
	me.polite = processes > (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	memset(common, 0, sizeof(*common));
	for (unsigned p = 0; p < processes; p++) {
		me.rank = (int)p;
		pids[p] = fork();
		if (pids[p] == 0)
			process(with, work, number);
		if (pids[p] < 0)
			die("fork", errno);
	}
	for (unsigned left = processes; left; left--) {
		if (wait(&status) < 0)
			die("wait", errno);
		int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		if (code && !worst)
			for (unsigned p = 0; code != 3 && p < processes; p++)
				kill(pids[p], SIGKILL);
		worst = worst ? worst : code;
	}
	return worst;
}

int many(const struct settings *with)
{
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED)
		die("mmap", errno);
	for (const struct many_work *work = all; work < all + ALL; work++)
		for (size_t i = 0; wanted(with, work->name) && i < 5 && work->numbers[i]; i++) {
			if (with->operations && i > 1)
				break;
			int code = run(with, work, work->numbers[i]);
			if (code)
				return code;
		}
	return 0;
}

int wants_many(const struct settings *with)
{
	int any = 0;

	for (size_t i = 0; i < ALL; i++)
		any |= wanted(with, all[i].name);
	return any;
}

void list_many(void)
{
	for (size_t i = 0; i < ALL; i++)
		puts(all[i].name);
}

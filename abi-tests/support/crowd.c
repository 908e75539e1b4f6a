#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include "crowd.h"

/* A process that takes so many seconds hangs. */
enum { DEADLINE = 900 };
/* One that has no turn for so many seconds while another is stopped is held up by that. */
enum { HELD_UP = 60 };
enum { MOST_EVER = 64 };
enum { STOPS_AT_LEAST = 5 };

int processes, operations;
OWN_ALL int me, steps;

static const struct crowd *plan;
static struct common {
	unsigned arrived;
	/* By process: how often it has looked for completions. */
	unsigned turns[MOST_EVER];
	/* So many processes are yet to be stopped, or nothing was tested. */
	unsigned stops_to_come;
} *common;
static uint64_t from;
#ifndef THREADS
static bool stopping;
#endif
OWN uint64_t seed;

void say_who(void)
{
	fprintf(stderr, "process %d, step %d, ", me, steps);
}

uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

size_t below(size_t most)
{
	return (size_t) (rnd() % most);
}

void scramble(char *to, size_t len, uint64_t with)
{
	size_t i;

	for (i = 0; i < len; i++) {
		with = with * 6364136223846793005ull + 1442695040888963407ull;
		to[i] = (char) (with >> 56);
	}
}

bool holds(const char *bytes, size_t len, uint64_t with)
{
	size_t i;

	for (i = 0; i < len; i++) {
		with = with * 6364136223846793005ull + 1442695040888963407ull;
		if (bytes[i] != (char) (with >> 56))
			return false;
	}
	return true;
}

void meet(void)
{
	OWN unsigned round;

	round++;
	__atomic_fetch_add(&common->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&common->arrived, __ATOMIC_SEQ_CST) < round * (unsigned) processes) {
		plan->progress();
		sched_yield();
	}
}

bool more_to_do(void)
{
	return steps < operations || __atomic_load_n(&common->stops_to_come, __ATOMIC_RELAXED) > 0;
}

void go_on(void)
{
	plan->progress();
}

void read_all(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry[16];
	struct fi_cq_err_entry err;
	ssize_t ret, i;

	__atomic_fetch_add(&common->turns[me], 1, __ATOMIC_RELAXED);
	while ((ret = fi_cq_read(cq, entry, 16)) != -FI_EAGAIN) {
		if (ret == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			if (fi_cq_readerr(cq, &err, 0) == 1)
				plan->ended(err.op_context, err.err ? err.err : FI_EOTHER, err.len);
			continue;
		}
		if (ret < 0)
			DIE("fi_cq_read: %zd", ret);
		for (i = 0; i < ret; i++)
			plan->ended(entry[i].op_context, 0, entry[i].len);
	}
}

struct wish wish_for_all(void)
{
	struct wish wish = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_FENCE, .mode = CONTEXTS };

	/* Memory that is reached by its addresses and by keys of the provider's, as devices have it. */
	if (getenv("MR_VIRT_ADDR"))
		wish.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
#ifdef THREADS
	/* With our own threads beside them, or without. */
	wish.progress = from % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
#endif
	return wish;
}

/* All zero, and seen by the children that are made later. */
static void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		DIE("mmap");
	return memory;
}

static void begin(int number)
{
	me = number;
	seed = from * 0x9e3779b97f4a7c15ull + (uint64_t) me + 1;
	alarm(DEADLINE);
	plan->run();
}

#ifdef THREADS
static void *run_thread(void *number)
{
	begin((int) (intptr_t) number);
	return NULL;
}

static int run_all(void)
{
	pthread_t threads[MOST_EVER];
	int i;

	for (i = 0; i < processes; i++)
		if (pthread_create(&threads[i], NULL, run_thread, (void *) (intptr_t) i))
			return 1;
	for (i = 0; i < processes; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
#else
static pid_t pids[MOST_EVER]; /* 0: has ended */
static int left, bad;

static void has_ended(pid_t pid, int status)
{
	int i;

	for (i = 0; i < processes; i++)
		if (pids[i] == pid)
			pids[i] = 0;
	left--;
	bad |= !WIFEXITED(status) || WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		fprintf(stderr, "a process ended by signal %d\n", WTERMSIG(status));
}

static void reap(int how)
{
	int status;
	pid_t pid;

	if ((pid = waitpid(-1, &status, how)) > 0)
		has_ended(pid, status);
}

/*
 * Waits until each process but one has had so many turns more, or has ended. False, and says who, when somebody has none
 * for very long: then that one is in a call which waits for the one that is stopped.
 */
static bool others_had(unsigned turns, int but)
{
	unsigned begun[MOST_EVER], i;
	time_t since = time(NULL);

	for (i = 0; i < (unsigned) processes; i++)
		begun[i] = __atomic_load_n(&common->turns[i], __ATOMIC_RELAXED);
	for (i = 0; i < (unsigned) processes;) {
		unsigned had = __atomic_load_n(&common->turns[i], __ATOMIC_RELAXED) - begun[i];

		if ((int) i == but || !pids[i] || had >= turns) {
			i++;
			continue;
		}
		reap(WNOHANG);
		usleep(100);
		if (but >= 0 && time(NULL) - since > HELD_UP) {
			fprintf(stderr, "process %u was held up while process %d was stopped: %u turns, not %u\n", i, but, had, turns);
			return false;
		}
	}
	return true;
}

/* Mostly few. */
static unsigned some_turns(void)
{
	return (unsigned) below(1 + below(2000));
}

/* One process after the other is stopped at a random moment, and goes on when the others have done something. */
static void stop_and_continue(void)
{
	unsigned stops = 0;
	bool held_up;

	seed = ~from;
	while (others_had(some_turns(), -1), left > 0) {
		int status, who = (int) below((size_t) processes);
		pid_t pid = pids[who];

		if (!pid || kill(pid, SIGSTOP))
			continue;
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) {
			has_ended(pid, status);
			continue;
		}
		stops++;
		if (common->stops_to_come > 0)
			__atomic_fetch_sub(&common->stops_to_come, 1, __ATOMIC_RELAXED);
		held_up = !others_had(some_turns(), who);
		kill(pid, SIGCONT);
		if (held_up) {
			bad = 1;
			common->stops_to_come = 0;
			return;
		}
	}
	fprintf(stderr, "%u stops\n", stops);
}

static int run_all(void)
{
	int i;

	common->stops_to_come = stopping ? STOPS_AT_LEAST : 0;
	for (i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			begin(i);
			_exit(0);
		}
		if (pids[i] < 0)
			DIE("fork: %s", strerror(errno));
		left++;
	}
	if (stopping)
		stop_and_continue();
	while (left)
		reap(0);
	return bad;
}
#endif

int crowd(const struct crowd *of, void *seen_by_all, int argc, char **argv)
{
	from = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t) getpid();
#ifndef THREADS
	stopping = argc > 4 && !strcmp(argv[4], "stop");
#endif
	plan = of;
	processes = argc > 1 ? atoi(argv[1]) : plan->processes;
	operations = argc > 2 ? atoi(argv[2]) : plan->operations;
	if (processes < 1 || processes > plan->most)
		return 2;
	*(void **) seen_by_all = shared_memory(plan->shared);
	common = shared_memory(sizeof(*common));
	fprintf(stderr, "%d processes, %d operations each, seed %llu\n", processes, operations, (unsigned long long) from);
	return run_all();
}

/* Measures a libfabric.so.1: two processes on two cores, joined by one endpoint each.
 *
 *   fabric_bench [-p PROVIDER] [-r REPETITIONS] [-t SECONDS] [-m LARGEST] [-w WORKS] [-c CPU,CPU] LIBRARY|socket
 *
 * Here: the processes, their talk beside the fabric, the clock, and the statistics. */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

_Noreturn void die(const char *what, long code)
{
	fprintf(stderr, "fabric_bench: %s: %ld (%s)\n", what, code, strerror(code < 0 ? (int)-code : (int)code));
	exit(1);
}

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void move(ssize_t (*call)(int, void *, size_t), int fd, void *data, size_t len)
{
	for (char *at = data; len > 0;) {
		ssize_t done = call(fd, at, len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) /* the other process died, and has said why */
			exit(1);
		at += done;
		len -= (size_t)done;
	}
}

static ssize_t write_some(int fd, void *data, size_t len)
{
	return write(fd, data, len);
}

void exchange(struct side *me, const void *mine, void *theirs, size_t len)
{
	move(write_some, me->peer_fd, (void *)mine, len);
	move(read, me->peer_fd, theirs, len);
}

void barrier(struct side *me)
{
	char mine = 'b', theirs;
	exchange(me, &mine, &theirs, 1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int wanted(const struct settings *with, const char *name)
{
	size_t len = strlen(name);
	if (!with->only)
		return 1;
	for (const char *at = with->only; (at = strstr(at, name)); at += len)
		if ((at == with->only || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
			return 1;
	return 0;
}

/* Rank 0 says how many operations the next round has; none is the end. */
static long agree(struct side *me, long count)
{
	long theirs;
	exchange(me, &count, &theirs, sizeof(count));
	return me->rank == 0 ? count : theirs;
}

static double one_round(struct side *me, size_t size, long count, work_round *round)
{
	agree(me, count);
	return round(me, size, count);
}

/* As many operations as fill a round, found by trying more and more: so the caches are warm as well. The best of some
 * tries counts, for in any one a process may have lost its core. */
static long fitting(struct side *me, const struct settings *with, size_t size, work_round *round)
{
	long count = 1;

	for (;;) {
		double took = one_round(me, size, count, round);
		for (int i = 0; i < 4; i++) {
			double again = one_round(me, size, count, round);
			took = again < took ? again : took;
		}
		if (took >= with->seconds / 4 || count >= 1L << 30) {
			count = (long)((double)count * with->seconds / took);
			return count < 1 ? 1 : count;
		}
		count *= 4;
	}
}

static void print(const char *name, size_t size, enum unit unit, double median, double least)
{
	double scale = unit == MILLIONS_PER_SECOND ? 1e-6 : 1e-9 * (double)size;

	if (unit == NANOSECONDS)
		printf("%s %zu %.2f %.2f ns\n", name, size, median * 1e9, least * 1e9);
	else
		printf("%s %zu %.4f %.4f %s\n", name, size, scale / median, scale / least,
		       unit == MILLIONS_PER_SECOND ? "M/s" : "GB/s");
	fflush(stdout);
}

void report(struct side *me, const struct settings *with, const char *name, size_t size, enum unit unit,
	    work_round *round)
{
	double took[MOST_REPETITIONS], spent = 0;
	int done = 0;

	if (!wanted(with, name))
		return;
	if (me->rank != 0) {
		long count;
		while ((count = agree(me, 0)) > 0)
			round(me, size, count);
		return;
	}
	long count = fitting(me, with, size, round);
	/* A machine that is busy with other things must not make this endless: three repetitions are the least. */
	while (done < with->repetitions && (done < 3 || spent < 4 * with->seconds * with->repetitions)) {
		double seconds = one_round(me, size, count, round);
		spent += seconds;
		took[done++] = seconds / (double)count;
	}
	agree(me, 0);
	qsort(took, (size_t)done, sizeof(*took), by_value);
	print(name, size, unit, took[done / 2], took[0]);
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity", errno);
}

/* The other process is waited for by spinning: when it fails, we end too. */
static void child_ended(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code != CLD_EXITED || info->si_status != 0)
		_exit(1);
}

static void usage(void)
{
	fprintf(stderr, "usage: fabric_bench [-p PROVIDER] [-r REPETITIONS] [-t SECONDS] [-m LARGEST] [-w WORK,WORK..]"
			" [-c CPU,CPU] LIBRARY|socket\n");
	exit(2);
}

int main(int argc, char **argv)
{
	struct settings with = { .provider = "shm", .repetitions = 21, .seconds = 0.005, .largest = 16 << 20 };
	int cpus[2] = { 0, 1 }, fds[2], option;

	while ((option = getopt(argc, argv, "p:r:t:m:w:c:")) != -1) {
		switch (option) {
		case 'p': with.provider = optarg; break;
		case 'r': with.repetitions = atoi(optarg); break;
		case 't': with.seconds = atof(optarg); break;
		case 'm': with.largest = strtoull(optarg, NULL, 0); break;
		case 'w': with.only = optarg; break;
		case 'c':
			if (sscanf(optarg, "%d,%d", &cpus[0], &cpus[1]) != 2)
				usage();
			break;
		default: usage();
		}
	}
	if (optind + 1 != argc || with.repetitions < 1 || with.largest < 8 || with.seconds <= 0 || with.repetitions > MOST_REPETITIONS)
		usage();
	with.library = argv[optind];

	void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap", errno);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die("socketpair", errno);
	struct sigaction on_end = { .sa_sigaction = child_ended, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigaction(SIGCHLD, &on_end, NULL);
	/* Before the library is loaded: neither process inherits anything of it. */
	pid_t child = fork();
	if (child < 0)
		die("fork", errno);
	struct side me = { .rank = child == 0, .peer_fd = fds[child == 0] };
	close(fds[child != 0]);
	signal(SIGPIPE, SIG_IGN);
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* as it does when we fail */
	pin(cpus[me.rank]);
	alarm(600); /* nothing hangs */

	floors(&me, &with, shared);
	int bare = !strcmp(with.library, "socket"), there = bare || fabric_open(&me, &with);
	if (bare)
		socket_works(&me, &with);
	else if (there)
		works(&me, &with);
	barrier(&me);
	if (child == 0)
		_exit(0);
	int status = 0;
	waitpid(child, &status, 0);
	return status == 0 ? (there ? 0 : 3) : 1;
}

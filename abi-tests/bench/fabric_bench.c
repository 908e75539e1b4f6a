/* Measures a libfabric.so.1: two processes on two cores, joined by one endpoint each.
 *
 *   fabric_bench [-p PROVIDER] [-r REPETITIONS] [-t SECONDS] [-o OPERATIONS] [-m LARGEST] [-w WORKS] [-n HOST,HOST] [-s]
 *                [-l] LIBRARY|socket|floor
 *
 * -n: the two processes are on two hosts, which are named network namespaces (`ip netns`) with a /dev/shm of their own.
 * -o: so many operations once, to see that all works. -s: FI_THREAD_SAFE. -l lists the works. "floor": only the machine's.
 *
 * Here: the processes, their talk beside the fabric, the clock, and the statistics. */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
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

int by_value(const void *a, const void *b)
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

static void print_number(double seconds, size_t size, enum unit unit)
{
	switch (unit) {
	case NANOSECONDS: printf(" %.2f", seconds * 1e9); break;
	case MILLIONS_PER_SECOND: printf(" %.4f", 1e-6 / seconds); break;
	case GIGABYTES_PER_SECOND: printf(" %.4f", 1e-9 * (double)size / seconds); break;
	case BYTES: printf(" %.0f", seconds); break;
	}
}

void print_line(const char *name, size_t size, enum unit unit, double median, double best, const double *lines)
{
	static const char *const units[] = { "ns", "M/s", "GB/s", "B" };

	printf("%s %zu", name, size);
	print_number(median, size, unit);
	print_number(best, size, unit);
	if (lines)
		printf(" %s %.1f %.1f\n", units[unit], lines[0] * 1e9, lines[1] * 1e9);
	else
		printf(" %s - -\n", units[unit]);
	fflush(stdout);
}

void print_reason(const char *name, size_t size, const char *why)
{
	printf("%s %zu - %s\n", name, size, why);
	fflush(stdout);
}

/* Measures repetitions: writes into `took` how many seconds an operation took in each, and returns how many there were. */
static int repeat(struct side *me, const struct settings *with, size_t size, work_round *round, double *took)
{
	long count = with->operations ? with->operations : fitting(me, with, size, round);
	int done = 0, least = with->operations ? 1 : 3;
	double spent = 0;

	/* A machine that is busy with other things must not make this endless. */
	while (done < with->repetitions && (done < least || spent < 4 * with->seconds * with->repetitions)) {
		double seconds = one_round(me, size, count, round);
		spent += seconds;
		took[done++] = seconds / (double)count;
	}
	agree(me, 0);
	return done;
}

void report(struct side *me, const struct settings *with, const char *name, size_t size, enum unit unit,
	    work_round *round)
{
	double took[MOST_REPETITIONS], lines[2];
	long count;

	if (!wanted(with, name))
		return;
	lines[0] = line_now(me, with);
	if (me->rank != 0) {
		while ((count = agree(me, 0)) > 0)
			round(me, size, count);
		line_now(me, with);
		return;
	}
	int done = repeat(me, with, size, round, took);
	lines[1] = line_now(me, with);
	qsort(took, (size_t)done, sizeof(*took), by_value);
	print_line(name, size, unit, took[done / 2], took[0], lines);
}

/* Keeps this process on one of the processors that it may use: they are dealt out in turn. */
void pin(unsigned number)
{
	static cpu_set_t may;
	cpu_set_t set;

	if (!CPU_COUNT(&may) && sched_getaffinity(0, sizeof(may), &may))
		die("sched_getaffinity", errno);
	CPU_ZERO(&set);
	number %= (unsigned)CPU_COUNT(&may);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && number-- == 0) {
			CPU_SET(cpu, &set);
			break;
		}
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
	fprintf(stderr, "usage: fabric_bench [-p PROVIDER] [-r REPETITIONS] [-t SECONDS] [-o OPERATIONS] [-m LARGEST]"
			" [-w WORK,WORK..] [-n HOST,HOST] [-s] [-l] LIBRARY|socket|floor\n");
	exit(2);
}

/* What a host has of its own: its network, and the memory that its processes share. */
static void enter(const char *host)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", host);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) || unshare(CLONE_NEWNS) || mount("none", "/dev/shm", "tmpfs", 0, NULL))
		die(path, errno);
	close(fd);
}

/* The pair, after which each has its part. Returns as main does. */
static int pair(const struct settings *with)
{
	int fds[2];
	void *shared = mmap(NULL, FLOOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

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
	if (with->hosts[me.rank])
		enter(with->hosts[me.rank]);
	if (with->operations)
		me.polite = 1; /* it is not measured, and other work may want the processors */
	else
		pin((unsigned)me.rank);
	alarm(600); /* nothing hangs */

	floors(&me, with, shared);
	int there = 1;
	if (!strcmp(with->library, "socket"))
		socket_works(&me, with);
	else if (strcmp(with->library, "floor") && (there = fabric_open(&me, with)))
		works(&me, with);
	barrier(&me);
	if (child == 0)
		exit(0);
	int status = 0;
	waitpid(child, &status, 0);
	return status == 0 ? (there ? 0 : 3) : 1;
}

int main(int argc, char **argv)
{
	struct settings with = { .provider = "shm", .repetitions = 21, .seconds = 0.005, .largest = 16 << 20 };
	int option, code = 0;

	while ((option = getopt(argc, argv, "p:r:t:o:m:w:n:sl")) != -1) {
		switch (option) {
		case 'p': with.provider = optarg; break;
		case 'r': with.repetitions = atoi(optarg); break;
		case 't': with.seconds = atof(optarg); break;
		case 'o': with.operations = atol(optarg); with.repetitions = 1; break;
		case 'm': with.largest = strtoull(optarg, NULL, 0); break;
		case 'w': with.only = optarg; break;
		case 'n':
			with.hosts[0] = strtok(optarg, ",");
			with.hosts[1] = strtok(NULL, ",");
			if (!with.hosts[1])
				usage();
			break;
		case 's': with.thread_safe = 1; break;
		case 'l': list_works(); list_many(); return 0;
		default: usage();
		}
	}
	if (optind + 1 != argc || with.repetitions < 1 || with.largest < 8 || with.seconds <= 0 || with.repetitions > MOST_REPETITIONS)
		usage();
	with.library = argv[optind];
	int alone = !strcmp(with.library, "socket") || !strcmp(with.library, "floor");
	if (!alone && wants_many(&with))
		code = many(&with);
	return code ? code : pair(&with);
}

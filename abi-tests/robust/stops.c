/*
 * A process that writes into another's memory in place is stopped at random moments (SIGSTOP), and the other closes what it
 * is at: regions, and in the end the endpoint. Every close ends, with 0 or -FI_EBUSY; after 0 the memory is not touched
 * again, whatever the stopped process does when it goes on; other regions come and go all the while.
 *   stops [ROUNDS [SEED]]
 */
#define _GNU_SOURCE
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "die.h"
#include "ends.h"

#define LEN ((size_t) 4 << 20)
#define FREE 0xc7 /* what closed memory is filled with */
#define SECONDS 300 /* for what hangs */

/* What both processes see. */
static volatile struct {
	uint64_t key; /* the region to be written to */
	uint64_t ended; /* operations */
	bool over;
} *common;

/* Of each process. */
static struct base base;
static struct end end;

static void open_all(void)
{
	struct wish wish = { .version = FI_VERSION(1, 21), .caps = FI_MSG | FI_RMA, .cq_format = FI_CQ_FORMAT_CONTEXT };

	open_base(&base, find(&wish));
	open_end(&end, &base, &wish);
}

/* Whether an operation has ended, well or not. */
static bool drive(void)
{
	struct fi_cq_entry entry;
	struct fi_cq_err_entry error = { 0 };
	ssize_t got = fi_cq_read(end.cq, &entry, 1);

	if (got == -FI_EAVAIL)
		got = fi_cq_readerr(end.cq, &error, 0);
	return got > 0;
}

static void write_all_the_time(int from_parent)
{
	struct name name;
	fi_addr_t peer;
	char *local = malloc(LEN);

	MUST(!prctl(PR_SET_PDEATHSIG, SIGKILL) && local);
	memset(local, 1, LEN);
	open_all();
	MUST(read(from_parent, &name, sizeof name) == sizeof name);
	peer = know(base.av, &name);
	while (!common->over) {
		ssize_t got = fi_write(end.ep, local, LEN, NULL, peer, 0, common->key, NULL);

		while (got == 0 && !common->over && !drive())
			;
		if (got == -FI_EAGAIN)
			drive();
		else
			common->ended++;
	}
	_exit(0);
}

/* Until the child has ended so many more operations. */
static void child_goes_on(uint64_t more)
{
	uint64_t before = common->ended;

	while (common->ended - before < more)
		drive();
}

static char *memory(void)
{
	int fd = memfd_create("stops", MFD_CLOEXEC);
	char *at;

	MUST(fd >= 0 && !ftruncate(fd, LEN));
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(at != MAP_FAILED);
	close(fd);
	return at;
}

static struct fid_mr *registered(char *at, uint64_t key)
{
	struct fid_mr *mr;

	OK(fi_mr_reg(base.domain, at, LEN, FI_REMOTE_WRITE, 0, key, 0, &mr, NULL));
	return mr;
}

static void stop(pid_t child)
{
	int status;

	MUST(!kill(child, SIGSTOP));
	MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
}

/* Closes a region that a process may be in that is stopped now; afterwards it goes on. Says whether it was. */
static bool close_under(pid_t child, struct fid_mr *mr)
{
	int got = fi_close(&mr->fid);
	bool busy = got == -FI_EBUSY;

	MUST(got == 0 || busy);
	MUST(!kill(child, SIGCONT));
	while (got == -FI_EBUSY)
		got = fi_close(&mr->fid);
	MUST(got == 0);
	return busy;
}

static void is_untouched(const char *at)
{
	size_t byte;

	for (byte = 0; byte < LEN; byte++)
		if ((unsigned char) at[byte] != FREE)
			DIE("byte %zu of closed memory was written", byte);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10, pipes[2], round, busy = 0;
	char *at[2];
	struct fid_mr *mr;
	pid_t child;

	srand(argc > 2 ? (unsigned) atoi(argv[2]) : 1);
	alarm(SECONDS);
	common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(common != MAP_FAILED && !pipe(pipes));
	common->key = 1;
	child = fork();
	MUST(child >= 0);
	if (child == 0)
		write_all_the_time(pipes[0]);
	open_all();
	at[0] = memory();
	at[1] = memory();
	mr = registered(at[0], 1);
	MUST(write(pipes[1], &end.name, sizeof end.name) == sizeof end.name);
	for (round = 0; round < rounds; round++) {
		char *now = at[round % 2], *next = at[(round + 1) % 2];
		uint64_t key = (uint64_t) round + 2;
		volatile int spin;
		struct fid_mr *other;

		child_goes_on(3);
		for (spin = rand() % 200000; spin > 0; spin--)
			;
		stop(child);
		/* Nobody else is kept from anything. */
		other = registered(next, 1000 + key);
		shut(other);
		busy += close_under(child, mr);
		memset(now, FREE, LEN);
		mr = registered(next, key);
		common->key = key;
		child_goes_on(3);
		is_untouched(now);
	}
	/* The endpoint closes at once; the memory is the region's. */
	child_goes_on(1);
	stop(child);
	shut(end.ep);
	end.ep = NULL;
	busy += close_under(child, mr);
	memset(at[rounds % 2], FREE, LEN);
	common->over = true;
	MUST(waitpid(child, NULL, 0) == child);
	is_untouched(at[rounds % 2]);
	close_end(&end);
	close_base(&base);
	printf("busy %d times of %d\n", busy, rounds + 1);
	return 0;
}

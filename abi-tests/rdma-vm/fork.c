/*
 * A child of fork beside a process whose card knows its memory: the parent goes on, whether the child lives, ends by exit,
 * or first closes all that it was born with. See docs/environment.md.
 *   fork PROVIDER [--connected]
 */
#include <sys/socket.h>
#include "remote.h"

#define SIZE 20000
/* Longer than anything takes, and shorter than a case may. */
#define CHILD_SECONDS 50

static char memory[SIZE], out[SIZE], in[SIZE];
static struct bed bed;
static struct window w;

static void open_all(void)
{
	struct setup s = { .more_caps = FI_RMA };

	open_bed(&bed, &s);
	w = expose(&bed, 1, memory, SIZE, OPEN_TO_ALL);
}

static void close_all(void)
{
	conceal(&w);
	close_bed(&bed);
}

/* Messages both ways, and the memory of one side written and read by the other: what the card takes is what is there now. */
static void works(unsigned seed)
{
	int to;

	for (to = 0; to < 2; to++) {
		memset(in, 0, SIZE);
		fill(out, SIZE, seed + (unsigned) to);
		POST(&bed, post_recv(bed.side[to].ep, in, SIZE, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&bed, post_send(bed.side[!to].ep, out, SIZE, bed.side[to].addr, 1, ctx(2)));
		COMPLETION(&bed, bed.side[to].rx, ctx(1));
		COMPLETION(&bed, bed.side[!to].tx, ctx(2));
		SAME(in, SIZE, seed + (unsigned) to);
	}
	memset(memory, 0, SIZE);
	fill(out, SIZE, seed + 2);
	POST(&bed, fi_write(bed.side[0].ep, out, SIZE, desc, bed.side[1].addr, w.remote.base, w.remote.key, ctx(3)));
	COMPLETION(&bed, bed.side[0].tx, ctx(3));
	UNTIL(&bed, mismatch(memory, SIZE, seed + 2) < 0);
	fill(memory, SIZE, seed + 3);
	POST(&bed, fi_read(bed.side[0].ep, in, SIZE, desc, bed.side[1].addr, w.remote.base, w.remote.key, ctx(4)));
	COMPLETION(&bed, bed.side[0].tx, ctx(4));
	SAME(in, SIZE, seed + 3);
}

static pid_t child(void (*does)(int pipe), int pipe)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (pid == 0) {
		case_is_second = 1;
		alarm(CHILD_SECONDS);
		does(pipe);
		exit(0); /* with all handlers and destructors of the process */
	}
	return pid;
}

static void ends_well(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(status == 0, "the child ended with status 0x%x (0xe is a hang)", status);
}

static void does_nothing(int pipe) { (void) pipe; }
static void closes_all(int pipe) { (void) pipe; close_all(); }

/* Writes to what it was born with, and lives until it is told to end. */
static void lives(int pipe)
{
	char c = 0;

	memset(memory, 1, SIZE);
	memset(out, 2, SIZE);
	memset(in, 3, SIZE);
	CHECK(write(pipe, &c, 1) == 1, "write");
	CHECK(read(pipe, &c, 1) == 1, "read");
}

/* A child that is made before the first message, and one when there was traffic. */
static void beside(void (*does)(int))
{
	open_all();
	ends_well(child(does, -1));
	works(10);
	ends_well(child(does, -1));
	works(20);
	close_all();
}

static void a_child_ends(void) { beside(does_nothing); }
static void a_child_closes_what_it_was_born_with(void) { beside(closes_all); }

static void a_child_lives(void)
{
	int fds[2];
	pid_t pid;
	char c;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	open_all();
	works(10);
	pid = child(lives, fds[1]);
	CHECK(read(fds[0], &c, 1) == 1, "read");
	works(20);
	works(30);
	CHECK(write(fds[0], &c, 1) == 1, "write");
	ends_well(pid);
	works(40);
	close_all();
}

static const struct test tests[] = {
	TEST(a_child_ends), TEST(a_child_closes_what_it_was_born_with), TEST(a_child_lives),
};

CASES(tests)

/*
 * Two processes that share /dev/shm and nothing else: each in namespaces of its own for processes, mounts, networks and
 * System V's objects, as in two containers, so that both have the process number 1. Needs the right to make those.
 *   apart PROVIDER [CASE ...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "remote.h"

#define LARGE (1 << 20)

static char out[LARGE], in[LARGE], memory[LARGE];
static int rung;

/* Counts how often a sleeper was rung for: the program's function comes before the C library's. */
ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t size)
{
	rung += to && to->sa_family == AF_UNIX;
	return syscall(SYS_sendto, fd, buf, len, flags, to, size);
}

/* Goes on as the first process of a container. Its end is that of the one that called this. */
static void enter_container(void)
{
	int status;
	pid_t first;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS))
		SKIP("no namespaces of our own here: %s", strerror(errno));
	CHECK((first = fork()) >= 0, "fork");
	if (first) {
		CHECK(waitpid(first, &status, 0) == first, "waitpid");
		if (WIFSIGNALED(status))
			raise(WTERMSIG(status));
		_exit(WEXITSTATUS(status));
	}
	alarm(case_seconds);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL))
		SKIP("no /proc of our own here: %s", strerror(errno));
	CHECK(getpid() == 1, "process %d", (int) getpid());
}

static void in_two_containers(const struct setup *given, void (*body)(struct bed *bed, int me, int pipe))
{
	struct setup s = *given;
	char name[NAME_MAX_LEN], packed[NAME_MAX_LEN];
	struct bed bed;
	int fds[2], me, status;
	pid_t other;
	size_t len;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	CHECK((other = fork()) >= 0, "fork");
	me = case_is_second = other == 0;
	close(fds[!me]);
	if (!me && (other = fork()) != 0) {
		/* The case itself stays outside, and ends as its processes do. */
		while (wait(&status) > 0)
			if (WIFSIGNALED(status) || WEXITSTATUS(status))
				WIFSIGNALED(status) ? (void) raise(WTERMSIG(status)) : _exit(WEXITSTATUS(status));
		_exit(0);
	}
	enter_container();
	s.sides = 1;
	open_bed(&bed, &s);
	pipe_send(fds[me], &bed.side[0].name_len, sizeof(len));
	pipe_send(fds[me], bed.side[0].name, bed.side[0].name_len);
	pipe_recv(fds[me], &len, sizeof(len));
	CHECK(len == bed.side[0].name_len, "names of %zu and %zu bytes", len, bed.side[0].name_len);
	pipe_recv(fds[me], name, len);
	CHECK(memcmp(name, bed.side[0].name, len), "both have the same name");
	pack(&bed, packed, name, len);
	GIVES(1, fi_av_insert(bed.av, packed, 1, &bed.peer, 0, NULL));
	body(&bed, me, fds[me]);
	meet(&bed, fds[me]);
	close_bed(&bed);
	if (!me)
		printf("ok %s\n", case_name);
	fflush(stdout);
	_exit(0);
}

/* By the ring, in several records, and of a size that is fetched from the sender's memory where that can be. */
static void exchange(struct bed *bed, int me, int pipe)
{
	static const size_t sizes[] = { 0, 8, 4096, 20000, 40000, 100000, LARGE };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fill(out, sizes[i], (unsigned) (10 * i + me));
		POST(bed, fi_trecv(bed->side[0].ep, in, sizes[i], NULL, FI_ADDR_UNSPEC, i, 0, ctx(1)));
		POST(bed, fi_tsend(bed->side[0].ep, out, sizes[i], NULL, bed->peer, i, ctx(2)));
		COMPLETION(bed, bed->side[0].rx, ctx(1));
		COMPLETION(bed, bed->side[0].tx, ctx(2));
		SAME(in, sizes[i], (unsigned) (10 * i + !me));
		meet(bed, pipe);
	}
}

static void work_on_memory(struct bed *bed, int me, int pipe)
{
	static const size_t sizes[] = { 8, 4096, 20000, 200000, LARGE };
	struct window own = expose(bed, 0, memory, LARGE, OPEN_TO_ALL);
	struct remote there;
	size_t i;

	pipe_send(pipe, &own.remote, sizeof(there));
	pipe_recv(pipe, &there, sizeof(there));
	for (i = 0; me && i < sizeof(sizes) / sizeof(*sizes); i++) {
		fill(out, sizes[i], (unsigned) i);
		POST(bed, fi_write(bed->side[0].ep, out, sizes[i], NULL, bed->peer, there.base, there.key, ctx(1)));
		COMPLETION(bed, bed->side[0].tx, ctx(1));
		memset(in, 0, sizes[i]);
		POST(bed, fi_read(bed->side[0].ep, in, sizes[i], NULL, bed->peer, there.base, there.key, ctx(2)));
		COMPLETION(bed, bed->side[0].tx, ctx(2));
		SAME(in, sizes[i], (unsigned) i);
	}
	meet(bed, pipe);
	if (!me)
		SAME(memory, LARGE, sizeof(sizes) / sizeof(*sizes) - 1);
	conceal(&own);
}

static char receive(struct bed *bed)
{
	struct fi_cq_tagged_entry e;

	POST(bed, fi_trecv(bed->side[0].ep, in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	GIVES(1, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, -1));
	return in[0];
}

static void tell(struct bed *bed, char what)
{
	POST(bed, fi_tinject(bed->side[0].ep, &what, 1, bed->peer, 1));
}

/* Each sleeps until the other answers. Goes on until both have had to wake the other. */
static void wake_each_other(struct bed *bed, int me, int pipe)
{
	bool both = false;

	(void) pipe;
	while (me && !receive(bed))
		tell(bed, rung > 0);
	while (!me && !both) {
		tell(bed, 0);
		both = receive(bed) && rung > 0;
	}
	if (!me)
		tell(bed, 1);
}

static void messages_between_containers(void)
{
	struct setup s = { 0 };

	in_two_containers(&s, exchange);
}

static void memory_between_containers(void)
{
	struct setup s = { .more_caps = FI_RMA };

	in_two_containers(&s, work_on_memory);
}

static void sleepers_in_containers(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };

	in_two_containers(&s, wake_each_other);
}

static const struct test tests[] = {
	TEST(messages_between_containers), TEST(memory_between_containers), TEST(sleepers_in_containers),
};

CASES(tests)

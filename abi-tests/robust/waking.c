/*
 * Waking a peer that sleeps: it dies in that moment, there is no descriptor left, and what it costs.
 *   waking PROVIDER [CASE ...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "fabric.h"

static pid_t sleeper;
static int rung;
static bool kill_it;

/* What a library may wake a peer by comes through these, as the program's functions come before the C library's. */
static void ring(void)
{
	rung++;
	if (kill_it && kill(sleeper, SIGKILL) == 0)
		waitpid(sleeper, NULL, 0);
	kill_it = false;
}

ssize_t write(int fd, const void *buf, size_t len)
{
	struct stat s;

	if (kill_it && len == 1 && fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode))
		ring();
	return syscall(SYS_write, fd, buf, len);
}

ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t size)
{
	if (to && to->sa_family == AF_UNIX)
		ring();
	return syscall(SYS_sendto, fd, buf, len, flags, to, size);
}

/* Process 0 knows the way to process 1, which sleeps in its queue. It goes on with `body` and then waits for an answer. */
static void (*wake)(struct bed *bed);

static void body(struct bed *bed, int me, int pipe)
{
	static char in[8];
	pid_t own = thread_id();
	struct fi_cq_tagged_entry e;

	if (me) {
		POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		COMPLETION(bed, bed->side[0].rx, ctx(1));
		POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 2, 0, ctx(2)));
		pipe_send(pipe, &own, sizeof(own));
		GIVES(1, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, -1));
		pipe_send(pipe, &own, sizeof(own));
		return;
	}
	POST(bed, fi_tinject(bed->side[0].ep, "first", 6, bed->peer, 1));
	pipe_recv(pipe, &sleeper, sizeof(sleeper));
	until_asleep(sleeper);
	rung = 0;
	wake(bed);
	CHECK(rung == 1, "the sleeper was rung for %d times", rung);
	pipe_recv(pipe, &sleeper, sizeof(sleeper));
}

static void test(void (*with)(struct bed *bed))
{
	struct setup s = { .wait_obj = FI_WAIT_FD };

	wake = with;
	in_two(&s, body);
}

static void kill_while_waking(struct bed *bed)
{
	kill_it = true;
	GIVES(0, fi_tinject(bed->side[0].ep, "x", 1, bed->peer, 2));
	CHECK(rung == 1, "the sleeper was rung for %d times", rung);
	printf("ok %s\n", case_name);
	fflush(stdout);
	_exit(0);
}

static void without_descriptors(struct bed *bed)
{
	struct rlimit before, none;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "getrlimit");
	none = before;
	none.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0 && dup(0) < 0 && errno == EMFILE, "there are descriptors left");
	GIVES(0, fi_tinject(bed->side[0].ep, "x", 1, bed->peer, 2));
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "setrlimit");
}

/* In a child, which may then do nothing else: any other call ends it. */
static void allow_sendto_only(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(steps) / sizeof(*steps), steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		SKIP("no seccomp here: %s", strerror(errno));
}

/* Process 1 is the one that is forbidden everything, and process 0 the one that sleeps and says what came of it. */
static void one_call_body(struct bed *bed, int me, int pipe)
{
	static char in[8];
	struct fi_cq_tagged_entry e;
	int status;

	if (me) {
		POST(bed, fi_tinject(bed->side[0].ep, "first", 6, bed->peer, 1));
		pipe_recv(pipe, &sleeper, sizeof(sleeper));
		until_asleep(sleeper);
		rung = 0;
		allow_sendto_only();
		_exit(fi_tinject(bed->side[0].ep, "x", 1, bed->peer, 2) != 0 ? 2 : rung == 1 ? 0 : 3);
	}
	sleeper = thread_id();
	POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	COMPLETION(bed, bed->side[0].rx, ctx(1));
	POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 2, 0, ctx(2)));
	pipe_send(pipe, &sleeper, sizeof(sleeper));
	GIVES(1, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, -1));
	CHECK(wait(&status) > 0, "no other process");
	CHECK(!WIFSIGNALED(status), "it needed another call: signal %d", WTERMSIG(status));
	CHECK(WEXITSTATUS(status) == 0, "it ended with %d", WEXITSTATUS(status));
	printf("ok %s\n", case_name);
	fflush(stdout);
	_exit(0);
}

static void waking_is_one_call(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };

	in_two(&s, one_call_body);
}

static void a_sleeper_dies_while_it_is_woken(void) { test(kill_while_waking); }
static void a_sender_out_of_descriptors_wakes(void) { test(without_descriptors); }

static const struct test tests[] = {
	TEST(a_sleeper_dies_while_it_is_woken), TEST(a_sender_out_of_descriptors_wakes), TEST(waking_is_one_call),
};

CASES(tests)

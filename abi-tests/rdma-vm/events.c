/*
 * What befalls connections on a card when the other process is killed: whatever was posted ends, and the end of the
 * connection is heard.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "connected.h"

#define POSTED 8

static char ours[1 << 16];

/* A process with a passive endpoint: tells its name, answers one request, posts receives, and waits to be killed. */
static void serve(int out)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };
	struct wired w;
	struct heard heard;
	int i;

	open_exchange(&w, &s);
	pipe_send(out, &w.name_len, sizeof(w.name_len));
	pipe_send(out, w.name, w.name_len);
	heard = HEAR(&w, FI_CONNREQ, NULL);
	open_side(&w, 0, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_enable(w.bed.side[0].ep));
	for (i = 0; i < POSTED; i++)
		OK(fi_recv(w.bed.side[0].ep, ours + 64 * i, 64, NULL, 0, ctx(i)));
	OK(fi_accept(w.bed.side[0].ep, NULL, 0));
	HEAR(&w, FI_CONNECTED, NULL);
	pipe_send(out, &i, sizeof(i));
	for (;;)
		pause();
}

/* Connects to a process of its own, which waits to be killed. */
static pid_t connect_away(struct wired *w)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };
	int pipes[2], ready;
	pid_t child;

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pipes));
	child = fork();
	CHECK(child >= 0, "fork");
	if (!child)
		serve(pipes[1]);
	open_wires(w, &s);
	pipe_recv(pipes[0], &w->name_len, sizeof(w->name_len));
	pipe_recv(pipes[0], w->name, w->name_len);
	ask(w, 0, NULL, 0);
	HEAR(w, FI_CONNECTED, &w->bed.side[0].ep->fid);
	pipe_recv(pipes[0], &ready, sizeof(ready));
	return child;
}

/* Every one of so many contexts ends once in error. */
static void all_end(struct wired *w, struct fid_cq *cq, int first, int count)
{
	int seen[64] = { 0 }, i;

	for (i = 0; i < count; i++) {
		struct fi_cq_err_entry err = ERROR_COMPLETION(&w->bed, cq);
		int which;

		for (which = 0; which < count && err.op_context != ctx(first + which); which++)
			;
		CHECK(which < count && !seen[which]++, "another context, or twice");
	}
}

static void a_killed_peer_ends_what_is_posted(void)
{
	struct wired w;
	int i, status;
	pid_t child;

	memset(&w, 0, sizeof(w));
	child = connect_away(&w);
	for (i = 0; i < POSTED; i++)
		POST(&w.bed, fi_recv(w.bed.side[0].ep, ours + 64 * i, 64, NULL, 0, ctx(100 + i)));
	POST(&w.bed, fi_send(w.bed.side[0].ep, ours, 64, NULL, 0, ctx(1)));
	COMPLETION(&w.bed, w.bed.side[0].tx, ctx(1));
	OK(kill(child, SIGKILL));
	CHECK(waitpid(child, &status, 0) == child, "waitpid");
	all_end(&w, w.bed.side[0].rx, 100, POSTED);
	HEAR(&w, FI_SHUTDOWN, &w.bed.side[0].ep->fid);
	GIVES(-FI_ENOTCONN, fi_send(w.bed.side[0].ep, ours, 64, NULL, 0, ctx(2)));
	close_wires(&w);
}

/* Stopped, a process still has a card that answers; then it dies. Its place can be taken by another. */
static void another_takes_the_place_of_a_killed_one(void)
{
	int i, status;

	for (i = 0; i < 3; i++) {
		struct wired w;
		pid_t child;

		memset(&w, 0, sizeof(w));
		child = connect_away(&w);
		OK(kill(child, SIGSTOP));
		POST(&w.bed, fi_send(w.bed.side[0].ep, ours, 64, NULL, 0, ctx(1)));
		COMPLETION(&w.bed, w.bed.side[0].tx, ctx(1));
		OK(kill(child, SIGKILL));
		CHECK(waitpid(child, &status, 0) == child, "waitpid");
		HEAR(&w, FI_SHUTDOWN, &w.bed.side[0].ep->fid);
		close_wires(&w);
	}
}

static const struct test tests[] = {
	TEST(a_killed_peer_ends_what_is_posted), TEST(another_takes_the_place_of_a_killed_one),
};

CASES(tests)

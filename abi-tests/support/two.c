/* Cases of two processes, which tell each other their names and when they are done. */
#define _GNU_SOURCE
#include <sched.h>
#include <poll.h>
#include <sys/socket.h>
#include "fabric.h"

void pipe_send(int fd, const void *buf, size_t len)
{
	char c;

	if (send(fd, buf, len, MSG_NOSIGNAL) != (ssize_t) len)
		pipe_recv(fd, &c, 1); /* which says why */
}

void pipe_recv(int fd, void *buf, size_t len)
{
	int status;

	if (recv(fd, buf, len, MSG_WAITALL) == (ssize_t) len)
		return;
	/* The one that failed first has said why, and one word is enough. */
	if (case_is_second)
		_exit(CASE_FAILED);
	CHECK(wait(&status) > 0, "no other process");
	CHECK(!WIFSIGNALED(status), "the second process ended by signal %d", WTERMSIG(status));
	CHECK(WEXITSTATUS(status) == CASE_FAILED, "the second process ended with %d", WEXITSTATUS(status));
	_exit(CASE_FAILED);
}

void meet(struct bed *bed, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	long until = now_ms() + 2 * GIVE_UP_MS;
	char c = 'm';

	pipe_send(fd, &c, 1);
	while (poll(&p, 1, 0) == 0 && now_ms() < until)
		progress(bed);
	pipe_recv(fd, &c, 1);
}

void meet_posted(struct bed *bed, int fd)
{
	if (datagram_ends)
		meet(bed, fd);
}

static void send_name(int fd, const char *name, size_t len)
{
	pipe_send(fd, &len, sizeof(len));
	pipe_send(fd, name, len);
}

static size_t recv_name(int fd, char *name)
{
	size_t len;

	pipe_recv(fd, &len, sizeof(len));
	CHECK(len <= NAME_MAX_LEN, "a name of %zu bytes", len);
	pipe_recv(fd, name, len);
	return len;
}

/* Each has the other in its AV. */
static void insert_ends(struct bed *bed, struct setup *s, int fd)
{
	char name[NAME_MAX_LEN], packed[NAME_MAX_LEN];
	size_t len;

	s->sides = 1;
	open_bed(bed, s);
	send_name(fd, bed->side[0].name, bed->side[0].name_len);
	len = recv_name(fd, name);
	pack(bed, packed, name, len);
	GIVES(1, fi_av_insert(bed->av, packed, 1, &bed->peer, 0, NULL));
}

/* The first listens, and the second connects. */
static void connect_ends(struct bed *bed, struct setup *s, int me, int fd)
{
	char name[NAME_MAX_LEN];
	struct fid_pep *pep;
	size_t len;

	open_av(bed, s);
	bed->peer = FI_ADDR_UNSPEC;
	if (me) {
		recv_name(fd, name);
		call_side(bed, s, 0, name);
		until_connected(bed);
	} else {
		pep = listen_for(bed, name, &len);
		send_name(fd, name, len);
		answer_side(bed, s, 0);
		until_connected(bed);
		OK(fi_close(&pep->fid));
	}
}

void in_two(const struct setup *given, void (*body)(struct bed *, int, int))
{
	struct setup s = *given;
	struct bed bed;
	int fds[2], me, fd, status;
	pid_t other;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	other = fork();
	CHECK(other >= 0, "fork");
	me = other == 0;
	fd = fds[me];
	close(fds[!me]);
	if (me) {
		case_is_second = 1;
		alarm(case_seconds);
	}

	if (connected_ends)
		connect_ends(&bed, &s, me, fd);
	else
		insert_ends(&bed, &s, fd);
	body(&bed, me, fd);
	meet(&bed, fd);
	close_bed(&bed);
	if (me)
		_exit(0);
	CHECK(waitpid(other, &status, 0) == other, "waitpid");
	CHECK(!WIFSIGNALED(status), "the second process ended by signal %d", WTERMSIG(status));
	CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CASE_FAILED, "the second process ended with %d", WEXITSTATUS(status));
	if (WEXITSTATUS(status))
		_exit(CASE_FAILED); /* it has said why */
}

void share_a_processor(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	CHECK(!sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

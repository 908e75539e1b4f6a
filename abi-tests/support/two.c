/* Cases of two processes, which tell each other their names and when they are done. */
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

void in_two(const struct setup *given, void (*body)(struct bed *, int, int))
{
	struct setup s = *given;
	struct bed bed;
	char name[NAME_MAX_LEN], packed[NAME_MAX_LEN];
	int fds[2], me, fd, status;
	size_t len;
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

	s.sides = 1;
	open_bed(&bed, &s);
	pipe_send(fd, &bed.side[0].name_len, sizeof(len));
	pipe_send(fd, bed.side[0].name, bed.side[0].name_len);
	pipe_recv(fd, &len, sizeof(len));
	CHECK(len <= sizeof(name), "a name of %zu bytes", len);
	pipe_recv(fd, name, len);
	pack(&bed, packed, name, len);
	GIVES(1, fi_av_insert(bed.av, packed, 1, &bed.peer, 0, NULL));
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

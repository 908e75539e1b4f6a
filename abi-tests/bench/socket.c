/* The same works on bare TCP sockets that are spun on: what a library over TCP adds its own to. */
#define _GNU_SOURCE
#include "bench.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int sockets[STREAMS];

/* Each process listens, and connects to the other: rank 0's are used. */
static int joined(struct side *me)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, there;
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, fd;

	if (listener < 0 || bind(listener, (void *)&at, len) || listen(listener, 1) || getsockname(listener, (void *)&at, &len))
		die("listen", errno);
	exchange(me, &at, &there, sizeof(at));
	if (me->rank == 0) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (void *)&there, sizeof(there)))
			die("connect", errno);
	} else {
		fd = accept(listener, NULL, NULL);
	}
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) || fcntl(fd, F_SETFL, O_NONBLOCK))
		die("a socket", errno);
	return fd;
}

/* As much as there is, or room for: how many bytes. */
static size_t some(ssize_t done)
{
	if (done == 0 || (done < 0 && errno != EAGAIN))
		die("a socket", done ? errno : ECONNRESET);
	return done < 0 ? 0 : (size_t)done;
}

static void send_all(struct side *me, size_t size, int socket)
{
	for (size_t done = 0; done < size;)
		done += some(send(socket, me->tx + done, size - done, MSG_NOSIGNAL));
}

static void receive_all(struct side *me, size_t size, int socket)
{
	for (size_t done = 0; done < size;)
		done += some(recv(socket, me->rx + done, size - done, 0));
}

static double latency(struct side *me, size_t size, long count)
{
	barrier(me);
	double start = now();
	for (long i = 0; i < count; i++) {
		if (me->rank == 0)
			send_all(me, size, *sockets);
		receive_all(me, size, *sockets);
		if (me->rank == 1)
			send_all(me, size, *sockets);
	}
	return (now() - start) / 2;
}

/* Windows of messages through several sockets, each answered by a short one. */
static double streams_of(struct side *me, size_t size, long count, int streams)
{
	long rounds = count / (streams * FEW) + 1;
	double start = now();

	for (long i = 0; i < rounds; i++) {
		size_t done[STREAMS] = { 0 }, all = size * FEW;
		for (int left = streams; left > 0;)
			for (int s = 0; s < streams; s++) {
				size_t at = done[s] % size, len = size - at;
				if (done[s] == all)
					continue;
				done[s] += some(me->rank ? recv(sockets[s], me->rx + at, len, 0)
							 : send(sockets[s], me->tx + at, len, MSG_NOSIGNAL));
				left -= done[s] == all;
			}
		for (int s = 0; s < streams; s++)
			me->rank ? send_all(me, 8, sockets[s]) : receive_all(me, 8, sockets[s]);
	}
	return (now() - start) * (double)count / (double)(rounds * streams * FEW);
}

static double bandwidth(struct side *me, size_t size, long count)
{
	return streams_of(me, size, count, 1);
}

static double streams(struct side *me, size_t size, long count)
{
	return streams_of(me, size, count, STREAMS);
}

void socket_works(struct side *me, const struct settings *with)
{
	for (int s = 0; s < STREAMS; s++)
		sockets[s] = joined(me);
	me->tx = aligned_alloc(4096, 2 * with->largest);
	if (!me->tx)
		die("aligned_alloc", ENOMEM);
	memset(me->tx, 1, 2 * with->largest); /* or all pages would be the one of zeros */
	me->rx = me->tx + with->largest;
	for (const size_t *size = all_sizes; *size && *size <= with->largest; size++)
		report(me, with, "latency", *size, NANOSECONDS, latency);
	for (size_t size = 4096; size <= with->largest; size *= 4)
		report(me, with, "bandwidth", size, GIGABYTES_PER_SECOND, bandwidth);
	for (size_t size = 4096; size <= with->largest; size *= 4)
		report(me, with, "streams", size, GIGABYTES_PER_SECOND, streams);
}

/* Wait objects that the application waits on by itself. */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include "cq.h"

static void getwaitobj(void)
{
	static const enum fi_wait_obj kinds[] = { FI_WAIT_FD, FI_WAIT_YIELD, FI_WAIT_MUTEX_COND, FI_WAIT_NONE };
	struct bed bed;
	enum fi_wait_obj kind;
	unsigned i;

	open_domain(&bed, &usual);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = kinds[i] };
		struct fid_cq *cq;
		int ret = fi_cq_open(bed.domain, &attr, &cq, NULL);

		NEED(!lacking(ret), "wait object %d: %s", kinds[i], fi_strerror(-ret));
		CHECK(ret == 0, "wait object %d: %s", kinds[i], fi_strerror(-ret));
		kind = FI_WAIT_UNSPEC;
		ret = fi_control(&cq->fid, FI_GETWAITOBJ, &kind);
		NEED(!lacking(ret), "FI_GETWAITOBJ: %s", fi_strerror(-ret));
		CHECK(ret == 0 && kind == kinds[i], "FI_GETWAITOBJ: %d, kind %d instead of %d", ret, kind, kinds[i]);
		OK(fi_close(&cq->fid));
	}
	close_bed(&bed);
}

static void getwait_without_an_object(void)
{
	struct bed bed;
	void *object;

	open_bed(&bed, &usual);
	FAILS(fi_control(&bed.side[0].rx->fid, FI_GETWAIT, &object));
	close_bed(&bed);
}

static void getwait_mutex_cond(void)
{
	struct fi_mutex_cond pair = { 0 };
	struct bed bed;
	int ret;

	open_waiting(&bed, FI_WAIT_MUTEX_COND);
	ret = fi_control(&bed.side[0].rx->fid, FI_GETWAIT, &pair);
	CHECK(ret == 0 && pair.mutex && pair.cond, "FI_GETWAIT: %d", ret);
	CHECK(pthread_mutex_trylock(pair.mutex) == 0, "the mutex is held");
	pthread_mutex_unlock(pair.mutex);
	close_bed(&bed);
}

/* The page's own recipe, with the completion in the queue and with it still to come. */
static void fd_with_trywait(struct bed *bed, int (*ready)(int fd, int timeout))
{
	struct fid *fids[1] = { &bed->side[1].rx->fid };
	struct fi_cq_tagged_entry e;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret = -FI_EAGAIN;
	int fd = -1, try;

	OK(fi_control(fids[0], FI_GETWAIT, &fd));
	CHECK(fd >= 0, "file descriptor %d", fd);
	while ((try = fi_trywait(bed->fabric, fids, 1)) == -FI_EAGAIN && now_ms() < until)
		fi_cq_read(bed->side[1].rx, &e, 1);
	CHECK(try == 0, "fi_trywait on an empty queue: %s", fi_strerror(-try));
	CHECK(ready(fd, 0) == 0, "ready, but nothing is there");
	start(bed, 1, 8, 1, 2);
	while (ret == -FI_EAGAIN && now_ms() < until) {
		fi_cq_read(bed->side[0].tx, NULL, 0); /* the sender's own progress */
		try = fi_trywait(bed->fabric, fids, 1);
		CHECK(try == 0 || try == -FI_EAGAIN, "fi_trywait: %s", fi_strerror(-try));
		if (try == 0)
			ready(fd, 20);
		ret = fi_cq_read(bed->side[1].rx, &e, 1);
	}
	CHECK(ret == 1 && e.op_context == ctx(1), "%zd", ret);
	/* With an entry queued it is not safe to sleep. */
	start(bed, 1, 8, 3, 4);
	COMPLETION(bed, bed->side[0].tx, ctx(2));
	COMPLETION(bed, bed->side[0].tx, ctx(4));
	settle(bed);
	GIVES(-FI_EAGAIN, fi_trywait(bed->fabric, fids, 1));
	COMPLETION(bed, bed->side[1].rx, ctx(3));
}

static int by_poll(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout);
}

static int by_epoll(int fd, int timeout)
{
	struct epoll_event event = { .events = EPOLLIN }, got;
	int set = epoll_create1(0), n;

	CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "the descriptor does not go into epoll");
	n = epoll_wait(set, &got, 1, timeout);
	close(set);
	return n;
}

static void fd_in_poll(void)
{
	struct bed bed;

	open_waiting(&bed, FI_WAIT_FD);
	fd_with_trywait(&bed, by_poll);
	close_bed(&bed);
}

static void fd_in_epoll(void)
{
	struct bed bed;

	open_waiting(&bed, FI_WAIT_FD);
	fd_with_trywait(&bed, by_epoll);
	close_bed(&bed);
}

/* A process that sleeps in poll() is woken by the message of another. */
static void fd_sleeps_body(struct bed *bed, int me, int pipe)
{
	struct fid *fids[1] = { &bed->side[0].rx->fid };
	struct fi_cq_tagged_entry e;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret = -FI_EAGAIN;
	char go = 'g';
	int fd;

	meet(bed, pipe);
	if (me == 1) {
		pipe_recv(pipe, &go, 1);
		POST(bed, post_send(bed->side[0].ep, out, 8, bed->peer, 1, ctx(2)));
		COMPLETION(bed, bed->side[0].tx, ctx(2));
		return;
	}
	OK(fi_control(fids[0], FI_GETWAIT, &fd));
	POST(bed, post_recv(bed->side[0].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	pipe_send(pipe, &go, 1);
	while (ret == -FI_EAGAIN && now_ms() < until) {
		if (fi_trywait(bed->fabric, fids, 1) == 0)
			CHECK(by_poll(fd, GIVE_UP_MS) == 1, "not woken");
		ret = fi_cq_read(bed->side[0].rx, &e, 1);
	}
	CHECK(ret == 1, "%zd", ret);
}

static void fd_wakes_poll(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };

	in_two(&s, fd_sleeps_body);
}

static void wait_set(void)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };
	struct fi_cq_tagged_entry e;
	struct fid_cq *cq;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	ret = fi_wait_open(bed.fabric, &wait_attr, &attr.wait_set);
	NEED(!lacking(ret), "fi_wait_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_wait_open: %d", ret);
	ret = fi_cq_open(bed.domain, &attr, &cq, NULL);
	NEED(!lacking(ret), "FI_WAIT_SET: %s", fi_strerror(-ret));
	CHECK(ret == 0, "FI_WAIT_SET: %d", ret);
	FAILS(fi_cq_sread(cq, &e, 1, NULL, 0)); /* invalid with a wait set */
	GIVES(-FI_EBUSY, fi_close(&attr.wait_set->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&attr.wait_set->fid));
	close_bed(&bed);
}

static void wait_set_without_one(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };
	struct fid_cq *cq;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(fi_cq_open(bed.domain, &attr, &cq, NULL));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(getwaitobj), TEST(getwait_without_an_object), TEST(getwait_mutex_cond), TEST(fd_in_poll),
	TEST(fd_in_epoll), TEST(fd_wakes_poll), TEST(wait_set), TEST(wait_set_without_one),
};

CASES(tests)

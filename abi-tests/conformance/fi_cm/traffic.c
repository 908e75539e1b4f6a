/* fi_cm(3), fi_msg(3): what connected endpoints send each other. */
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include "connected.h"
#include "remote.h"

static const struct setup usual;
static char in[1 << 21], out[1 << 21];

/* "Outbound data transfers cannot be initiated on a connection-oriented endpoint until an FI_CONNECTED event". */
static void nothing_is_sent_before(void)
{
	struct heard heard;
	struct wired w;

	open_exchange(&w, &usual);
	open_side(&w, 0, w.bed.info);
	OK(fi_enable(w.bed.side[0].ep));
	FAILS(fi_send(w.bed.side[0].ep, out, 8, NULL, 0, ctx(1)));
	OK(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	FAILS(fi_send(w.bed.side[0].ep, out, 8, NULL, 0, ctx(1)));
	FAILS(fi_inject(w.bed.side[0].ep, out, 8, 0));
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	FAILS(fi_send(w.bed.side[1].ep, out, 8, NULL, 0, ctx(1)));
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	HEAR(&w, FI_CONNECTED, NULL);
	HEAR(&w, FI_CONNECTED, NULL);
	NO_COMPLETION(&w.bed, w.bed.side[0].tx);
	talk(&w, 0, 1);
	close_wires(&w);
}

static void the_address_does_not_matter(void)
{
	static const fi_addr_t addrs[] = { 0, 1, 12345, FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL };
	struct wired w;
	unsigned i;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	for (i = 0; i < sizeof(addrs) / sizeof(*addrs); i++) {
		fill(out, 100, i);
		POST(&w.bed, fi_recv(w.bed.side[1].ep, in, 100, NULL, addrs[i], ctx(1)));
		POST(&w.bed, fi_send(w.bed.side[0].ep, out, 100, NULL, addrs[i], ctx(2)));
		COMPLETION(&w.bed, w.bed.side[0].tx, ctx(2));
		COMPLETION(&w.bed, w.bed.side[1].rx, ctx(1));
		SAME(in, 100, i);
	}
	close_wires(&w);
}

/* Sizes on both sides of whatever limits there are, expected and not, both ways. */
static void every_size(void)
{
	static const size_t sizes[] = { 0, 1, 8, 63, 64, 65, 256, 1000, 4095, 4096, 4097, 8192, 16384, 16385, 65536, 100000, 1 << 20, 1 << 21 };
	struct wired w;
	unsigned i;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	for (i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		size_t len = sizes[i / 2];
		struct side *from = &w.bed.side[i % 2], *to = &w.bed.side[1 - i % 2];
		struct fi_cq_tagged_entry entry;
		bool expected = i % 4 < 2;

		if (len > w.bed.info->ep_attr->max_msg_size)
			break;
		fill(out, len, i);
		memset(in, 0, len);
		if (expected)
			POST(&w.bed, fi_recv(to->ep, in, len, NULL, 0, ctx(1)));
		POST(&w.bed, fi_send(from->ep, out, len, NULL, 0, ctx(2)));
		if (!expected) {
			settle(&w.bed);
			POST(&w.bed, fi_recv(to->ep, in, len, NULL, 0, ctx(1)));
		}
		entry = COMPLETION(&w.bed, to->rx, ctx(1));
		CHECK(entry.len == len, "%zu bytes of %zu", entry.len, len);
		SAME(in, len, i);
		COMPLETION(&w.bed, from->tx, ctx(2));
	}
	close_wires(&w);
}

static void messages_keep_their_order(void)
{
	enum { COUNT = 200 };
	struct wired w;
	int sent = 0, done = 0, got = 0, posted = 0;
	long until = now_ms() + GIVE_UP_MS;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	while ((done < COUNT || got < COUNT) && now_ms() < until) {
		struct fi_cq_tagged_entry entry;

		if (posted < COUNT && fi_recv(w.bed.side[1].ep, in + posted * 4096, 4096, NULL, 0, ctx(posted)) == 0)
			posted++;
		if (sent < COUNT) {
			fill(out + sent * 4096, 4096, (unsigned) sent);
			if (fi_send(w.bed.side[0].ep, out + sent * 4096, (size_t) (sent * 20), NULL, 0, ctx(1000 + sent)) == 0)
				sent++;
		}
		if (fi_cq_read(w.bed.side[0].tx, &entry, 1) == 1)
			done++;
		if (fi_cq_read(w.bed.side[1].rx, &entry, 1) == 1) {
			CHECK(entry.op_context == ctx(got) && entry.len == (size_t) (got * 20), "message %d", got);
			SAME(in + got * 4096, entry.len, (unsigned) got);
			got++;
		}
	}
	CHECK(got == COUNT && done == COUNT, "%d and %d of %d", got, done, COUNT);
	close_wires(&w);
}

/* Endpoints by the hundred: each has its own peer, and they share a queue, which is polled or slept on. */
static void over_many(const struct setup *s)
{
	enum { PAIRS = 100 };
	static struct fid_ep *asks[PAIRS], *answers[PAIRS];
	bool sleeps = s->wait_obj != FI_WAIT_NONE;
	struct fid_cq *cq;
	struct wired w;
	int i, k;

	open_exchange(&w, s);
	OK(open_cq(&w.bed, s, &cq, NULL));
	for (i = 0; i < PAIRS; i++) {
		struct heard heard;

		OK(fi_endpoint(w.bed.domain, w.bed.info, &asks[i], NULL));
		OK(fi_ep_bind(asks[i], &w.eq->fid, 0));
		OK(fi_ep_bind(asks[i], &cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_connect(asks[i], w.name, &i, sizeof(i)));
		heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
		CHECK(heard.len >= sizeof(k), "%zu bytes", heard.len);
		memcpy(&k, heard.data, sizeof(k));
		CHECK(k == i, "request %d, not %d", k, i);
		OK(fi_endpoint(w.bed.domain, heard.info, &answers[i], NULL));
		fi_freeinfo(heard.info);
		OK(fi_ep_bind(answers[i], &w.eq->fid, 0));
		OK(fi_ep_bind(answers[i], &cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_accept(answers[i], NULL, 0));
		HEAR(&w, FI_CONNECTED, NULL);
		HEAR(&w, FI_CONNECTED, NULL);
	}
	for (k = 0; k < 3; k++) {
		int left = 2 * PAIRS;

		for (i = 0; i < PAIRS; i++) {
			fill(out + i * 128, 128, (unsigned) (i + k));
			POST(&w.bed, fi_recv(answers[i], in + i * 128, 128, NULL, 0, ctx(i)));
			POST(&w.bed, fi_send(asks[i], out + i * 128, 128, NULL, 0, ctx(1000 + i)));
		}
		while (left > 0) {
			struct fi_cq_tagged_entry entry;

			if (sleeps)
				GIVES(1, fi_cq_sread(cq, &entry, 1, NULL, GIVE_UP_MS));
			else
				GIVES(1, next(&w.bed, cq, &entry));
			left--;
		}
		for (i = 0; i < PAIRS; i++)
			SAME(in + i * 128, 128, (unsigned) (i + k));
	}
	for (i = 0; i < PAIRS; i++) {
		OK(fi_close(&asks[i]->fid));
		HEAR(&w, FI_SHUTDOWN, &answers[i]->fid);
		OK(fi_close(&answers[i]->fid));
	}
	OK(fi_close(&cq->fid));
	close_wires(&w);
}

static void many_connections(void)
{
	over_many(&usual);
}

static void many_connections_wake_who_sleeps(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };

	over_many(&s);
}

static void many_connections_progress_by_themselves(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD, .progress = FI_PROGRESS_AUTO };

	over_many(&s);
}

/* Connections by the hundred, one after the other: nothing runs out. */
static void connections_come_and_go(void)
{
	struct wired w;
	int i;

	open_exchange(&w, &usual);
	for (i = 0; i < 300; i++) {
		join_sides(&w, 0, 1);
		talk(&w, i % 2, 1 - i % 2);
		close_side(&w, i % 2);
		HEAR(&w, FI_SHUTDOWN, &w.bed.side[1 - i % 2].ep->fid);
		close_side(&w, 1 - i % 2);
	}
	close_wires(&w);
}

/* A receive of the context's was being filled by an endpoint that closes: the buffer is the program's again, and it hears of that in
 * the queue of another endpoint. */
static void a_shared_receive_is_given_back(struct wired *w)
{
	static char there[1 << 24], here[1 << 24];
	struct fi_cq_err_entry err;

	memset(there, 7, sizeof(there));
	POST(&w->bed, fi_recv(w->bed.srx, here, sizeof(here), NULL, 0, ctx(5)));
	POST(&w->bed, fi_send(w->bed.side[4].ep, there, sizeof(there), NULL, 0, ctx(300)));
	UNTIL(&w->bed, here[0] == 7);
	CHECK(here[sizeof(here) - 1] == 0, "it came at once");
	close_side(w, 5);
	err = ERROR_COMPLETION(&w->bed, w->bed.side[1].rx);
	CHECK(err.op_context == ctx(5) && err.flags & FI_RECV, "context %p, flags 0x%llx", err.op_context, (unsigned long long) err.flags);
}

/* A shared receive context serves endpoints with several peers. */
static void receives_are_shared(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT };
	struct fi_cq_tagged_entry entry;
	struct wired w;
	char seen[3] = { 0 };
	int i, ret;

	open_exchange(&w, &s);
	ret = fi_srx_context(w.bed.domain, w.bed.info->rx_attr, &w.bed.srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
	for (i = 0; i < 3; i++) {
		struct heard heard;
		int k;

		open_side(&w, 2 * i, w.bed.info);
		OK(fi_ep_bind(w.bed.side[2 * i].ep, &w.bed.srx->fid, 0));
		OK(fi_connect(w.bed.side[2 * i].ep, w.name, NULL, 0));
		heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
		heard.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		open_side(&w, 2 * i + 1, heard.info);
		fi_freeinfo(heard.info);
		OK(fi_ep_bind(w.bed.side[2 * i + 1].ep, &w.bed.srx->fid, 0));
		OK(fi_accept(w.bed.side[2 * i + 1].ep, NULL, 0));
		for (k = 0; k < 2; k++)
			HEAR(&w, FI_CONNECTED, NULL);
	}
	for (i = 0; i < 4; i++)
		POST(&w.bed, fi_recv(w.bed.srx, in + i * 64, 64, NULL, 0, ctx(i)));
	for (i = 0; i < 3; i++) {
		memset(out + i * 64, i + 1, 64);
		POST(&w.bed, fi_send(w.bed.side[2 * i].ep, out + i * 64, 64, NULL, 0, ctx(100 + i)));
		COMPLETION(&w.bed, w.bed.side[2 * i].tx, ctx(100 + i));
		GIVES(1, next(&w.bed, w.bed.side[2 * i + 1].rx, &entry)); /* in the queue of the endpoint it was sent to */
		CHECK(entry.len == 64, "%zu bytes", entry.len);
		ret = in[((struct fi_context2 *) entry.op_context - ctx(0)) * 64] - 1;
		CHECK(ret == i && !seen[ret]++, "the message of %d", ret);
	}
	/* The receive that is left stays when an endpoint goes. */
	close_side(&w, 0);
	HEAR(&w, FI_SHUTDOWN, &w.bed.side[1].ep->fid);
	memset(out, 9, 64);
	POST(&w.bed, fi_send(w.bed.side[3].ep, out, 64, NULL, 0, ctx(200)));
	COMPLETION(&w.bed, w.bed.side[3].tx, ctx(200));
	entry = COMPLETION(&w.bed, w.bed.side[2].rx, ctx(3));
	CHECK(in[3 * 64] == 9, "another message");
	if (strict)
		a_shared_receive_is_given_back(&w);
	close_wires(&w);
}

/* ---- threads ---- */

struct asker {
	struct wired *w;
	struct fid_eq *eq;
	struct fid_cq *cq;
	int rounds;
};

static void await(struct fid_eq *eq, struct fid_cq *cq, uint32_t wanted)
{
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + CM_ROOM];
	} into;
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event = 0;
	ssize_t ret;

	while ((ret = fi_eq_read(eq, &event, &into, sizeof(into.room), 0)) == -FI_EAGAIN && now_ms() < until)
		fi_cq_read(cq, NULL, 0);
	CHECK(ret > 0 && event == wanted, "event %u, not %u: %zd", event, wanted, ret);
}

static void await_completion(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN && now_ms() < until)
		;
	CHECK(ret == 1, "no completion: %zd", ret);
}

static void *ask_and_talk(void *arg)
{
	struct asker *asker = arg;
	struct wired *w = asker->w;
	static char mine[64], theirs[64];
	int i;

	for (i = 0; i < asker->rounds; i++) {
		struct fid_ep *ep;

		OK(fi_endpoint(w->bed.domain, w->bed.info, &ep, NULL));
		OK(fi_ep_bind(ep, &asker->eq->fid, 0));
		OK(fi_ep_bind(ep, &asker->cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_connect(ep, w->name, &i, sizeof(i)));
		await(asker->eq, asker->cq, FI_CONNECTED);
		fill(mine, sizeof(mine), (unsigned) i);
		OK(fi_recv(ep, theirs, sizeof(theirs), NULL, 0, ctx(1)));
		OK(fi_send(ep, mine, sizeof(mine), NULL, 0, ctx(2)));
		await_completion(asker->cq);
		await_completion(asker->cq);
		SAME(theirs, sizeof(theirs), (unsigned) i + 7);
		OK(fi_close(&ep->fid));
	}
	return NULL;
}

/* One thread asks, one answers, each with queues of its own. */
static void two_threads(void)
{
	struct setup s = { .threading = FI_THREAD_SAFE };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct asker asker = { .rounds = 50 };
	struct fid_cq *cq;
	pthread_t thread;
	struct wired w;
	int i;

	open_exchange(&w, &s);
	asker.w = &w;
	OK(fi_eq_open(w.bed.fabric, &attr, &asker.eq, NULL));
	OK(open_cq(&w.bed, &usual, &asker.cq, NULL));
	OK(open_cq(&w.bed, &usual, &cq, NULL));
	CHECK(!pthread_create(&thread, NULL, ask_and_talk, &asker), "pthread_create");
	for (i = 0; i < asker.rounds; i++) {
		struct heard heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
		struct fid_ep *ep;

		OK(fi_endpoint(w.bed.domain, heard.info, &ep, NULL));
		fi_freeinfo(heard.info);
		OK(fi_ep_bind(ep, &w.eq->fid, 0));
		OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_accept(ep, NULL, 0));
		await(w.eq, cq, FI_CONNECTED);
		OK(fi_recv(ep, in, 64, NULL, 0, ctx(3)));
		fill(out, 64, (unsigned) i + 7);
		OK(fi_send(ep, out, 64, NULL, 0, ctx(4)));
		await_completion(cq);
		await_completion(cq);
		SAME(in, 64, (unsigned) i);
		await(w.eq, cq, FI_SHUTDOWN);
		OK(fi_close(&ep->fid));
	}
	CHECK(!pthread_join(thread, NULL), "pthread_join");
	OK(fi_close(&asker.cq->fid));
	OK(fi_close(&asker.eq->fid));
	OK(fi_close(&cq->fid));
	close_wires(&w);
}

/* Between processes, and one of them is killed. */
static void two_processes(void)
{
	struct heard heard;
	struct wired w;
	int fds[2], status;
	pid_t child;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	child = fork();
	CHECK(child >= 0, "fork");
	if (child == 0) {
		case_is_second = 1;
		alarm(case_seconds);
		open_wires(&w, &usual);
		pipe_recv(fds[1], &w.name_len, sizeof(w.name_len));
		pipe_recv(fds[1], w.name, w.name_len);
		ask(&w, 0, "child", 5);
		HEAR(&w, FI_CONNECTED, &w.bed.side[0].ep->fid);
		POST(&w.bed, fi_recv(w.bed.side[0].ep, in, 100000, NULL, 0, ctx(1)));
		COMPLETION(&w.bed, w.bed.side[0].rx, ctx(1));
		SAME(in, 100000, 5);
		POST(&w.bed, fi_send(w.bed.side[0].ep, in, 100000, NULL, 0, ctx(2)));
		COMPLETION(&w.bed, w.bed.side[0].tx, ctx(2));
		pipe_recv(fds[1], &w.name_len, 1); /* until it is killed */
		_exit(0);
	}
	open_exchange(&w, &usual);
	pipe_send(fds[0], &w.name_len, sizeof(w.name_len));
	pipe_send(fds[0], w.name, w.name_len);
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	CHECK(heard.len >= 5 && !memcmp(heard.data, "child", 5), "other data");
	open_side(&w, 0, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[0].ep, NULL, 0));
	HEAR(&w, FI_CONNECTED, &w.bed.side[0].ep->fid);
	fill(out, 100000, 5);
	POST(&w.bed, fi_send(w.bed.side[0].ep, out, 100000, NULL, 0, ctx(1)));
	POST(&w.bed, fi_recv(w.bed.side[0].ep, in, 100000, NULL, 0, ctx(2)));
	COMPLETION(&w.bed, w.bed.side[0].tx, ctx(1));
	COMPLETION(&w.bed, w.bed.side[0].rx, ctx(2));
	SAME(in, 100000, 5);
	POST(&w.bed, fi_recv(w.bed.side[0].ep, in, 8, NULL, 0, ctx(3)));
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "kill");
	HEAR(&w, FI_SHUTDOWN, &w.bed.side[0].ep->fid);
	ALL_FAIL(&w, w.bed.side[0].rx, 3, 1);
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(nothing_is_sent_before),
	TEST(the_address_does_not_matter),
	TEST(every_size),
	TEST(messages_keep_their_order),
	TEST(many_connections),
	TEST(many_connections_wake_who_sleeps),
	TEST(many_connections_progress_by_themselves),
	TEST(connections_come_and_go),
	TEST(receives_are_shared),
	TEST(two_threads),
	TEST(two_processes),
};

CASES(tests)

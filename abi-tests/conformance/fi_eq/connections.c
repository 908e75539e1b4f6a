/* fi_eq(3): the events of connections. Who must hear what is in fi_cm. */
#include <poll.h>
#include <pthread.h>
#include "connected.h"

static const struct setup usual;
static const struct setup waits = { .wait_obj = FI_WAIT_FD };

/* FI_PEEK leaves the request in the queue, and both times it is the same. */
static void a_request_can_be_peeked(void)
{
	struct fi_eq_cm_entry peeked;
	struct heard heard;
	struct wired w;
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event;
	ssize_t ret;

	open_exchange(&w, &usual);
	ask(&w, 0, NULL, 0);
	while ((ret = fi_eq_read(w.eq, &event, &peeked, sizeof(peeked), FI_PEEK)) == -FI_EAGAIN && now_ms() < until)
		turn(&w);
	GIVES(sizeof(peeked), ret);
	CHECK(event == FI_CONNREQ && peeked.fid == &w.pep->fid, "event %u", event);
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	CHECK(heard.info == peeked.info, "another info");
	OK(fi_reject(w.pep, heard.info->handle, NULL, 0));
	fi_freeinfo(heard.info);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	close_wires(&w);
}

/* "limited to the buffer space provided by the application": the data may be cut, the struct not. */
static void data_is_cut_to_the_buffer(void)
{
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + 8];
	} into;
	struct wired w;
	char data[16];
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event;
	ssize_t ret;

	open_exchange(&w, &usual);
	NEED(w.data_size >= sizeof(data), "connection data of %zu bytes", w.data_size);
	fill(data, sizeof(data), 3);
	ask(&w, 0, data, sizeof(data));
	memset(&into, 0x77, sizeof(into));
	while ((ret = fi_eq_read(w.eq, &event, &into, sizeof(into.entry) + 5, 0)) == -FI_EAGAIN && now_ms() < until)
		turn(&w);
	GIVES(sizeof(into.entry) + 5, ret);
	SAME(into.entry.data, 5, 3);
	CHECK(into.room[sizeof(into.entry) + 5] == 0x77, "written past the end");
	OK(fi_reject(w.pep, into.entry.info->handle, NULL, 0));
	fi_freeinfo(into.entry.info);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	close_wires(&w);
}

static void too_small_a_buffer_loses_nothing(void)
{
	struct fi_eq_cm_entry entry;
	struct heard heard;
	struct wired w;
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event;
	ssize_t ret;

	open_exchange(&w, &usual);
	ask(&w, 0, NULL, 0);
	while ((ret = fi_eq_read(w.eq, &event, &entry, sizeof(entry) - 1, 0)) == -FI_EAGAIN && now_ms() < until)
		turn(&w);
	GIVES(-FI_ETOOSMALL, ret);
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	OK(fi_reject(w.pep, heard.info->handle, NULL, 0));
	fi_freeinfo(heard.info);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	close_wires(&w);
}

/* Refuses side 0 with data, and waits until the error is next. */
static void refuse_with(struct wired *w, const void *data, size_t len)
{
	struct fi_eq_cm_entry entry;
	struct heard heard;
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event;
	ssize_t ret;

	ask(w, 0, NULL, 0);
	heard = HEAR(w, FI_CONNREQ, &w->pep->fid);
	OK(fi_reject(w->pep, heard.info->handle, data, len));
	fi_freeinfo(heard.info);
	while ((ret = fi_eq_read(w->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN && now_ms() < until)
		turn(w);
	GIVES(-FI_EAVAIL, ret);
}

/* An error is read by fi_eq_readerr, and only by that. */
static void errors_stand_in_line(void)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	struct heard heard;
	struct wired w;
	uint32_t event;

	open_exchange(&w, &usual);
	refuse_with(&w, NULL, 0);
	ask(&w, 1, NULL, 0);
	GIVES(-FI_EAVAIL, fi_eq_read(w.eq, &event, &entry, sizeof(entry), 0));
	GIVES(sizeof(err), fi_eq_readerr(w.eq, &err, 0));
	CHECK(err.fid == &w.bed.side[0].ep->fid && err.err == FI_ECONNREFUSED, "errno %d", err.err);
	GIVES(-FI_EAGAIN, fi_eq_readerr(w.eq, &err, 0));
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	OK(fi_reject(w.pep, heard.info->handle, NULL, 0));
	fi_freeinfo(heard.info);
	HEAR_ERROR(&w, &w.bed.side[1].ep->fid, NULL, NULL);
	close_wires(&w);
}

/* err_data_size 0: the data is the provider's, until the queue is read next. */
static void error_data_may_stay_with_the_provider(void)
{
	struct fi_eq_err_entry err = { 0 };
	struct wired w;
	char data[8];

	open_exchange(&w, &usual);
	NEED(w.data_size >= sizeof(data), "connection data of %zu bytes", w.data_size);
	fill(data, sizeof(data), 4);
	refuse_with(&w, data, sizeof(data));
	GIVES(sizeof(err), fi_eq_readerr(w.eq, &err, 0));
	CHECK(err.err_data && err.err_data_size >= sizeof(data), "data of %zu bytes", err.err_data_size);
	SAME(err.err_data, sizeof(data), 4);
	close_wires(&w);
}

static void error_data_is_cut_to_the_buffer(void)
{
	char data[8], room[8];
	struct fi_eq_err_entry err = { .err_data = room, .err_data_size = 3 };
	struct wired w;

	open_exchange(&w, &usual);
	NEED(w.data_size >= sizeof(data), "connection data of %zu bytes", w.data_size);
	fill(data, sizeof(data), 4);
	memset(room, 0x77, sizeof(room));
	refuse_with(&w, data, sizeof(data));
	GIVES(sizeof(err), fi_eq_readerr(w.eq, &err, 0));
	CHECK(err.err_data == room && err.err_data_size == 3, "%zu bytes", err.err_data_size);
	SAME(room, 3, 4);
	CHECK(room[3] == 0x77, "written past the end");
	close_wires(&w);
}

static void an_error_has_a_text(void)
{
	struct fi_eq_err_entry err = { 0 };
	struct wired w;
	const char *text;

	open_exchange(&w, &usual);
	refuse_with(&w, NULL, 0);
	GIVES(sizeof(err), fi_eq_readerr(w.eq, &err, 0));
	text = fi_eq_strerror(w.eq, err.prov_errno, err.err_data, NULL, 0);
	CHECK(text && *text, "no text");
	close_wires(&w);
}

struct sleeper {
	struct wired *w;
	pid_t thread;
	uint32_t event;
	ssize_t ret;
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + CM_ROOM];
	} into;
};

static void *sleep_once(void *arg)
{
	struct sleeper *sleeper = arg;

	__atomic_store_n(&sleeper->thread, thread_id(), __ATOMIC_SEQ_CST);
	sleeper->ret = fi_eq_sread(sleeper->w->eq, &sleeper->event, &sleeper->into, sizeof(sleeper->into.room), GIVE_UP_MS, 0);
	return NULL;
}

/* Starts a thread that waits for the next event, and returns when it sleeps. */
static pthread_t begin_sleep(struct wired *w, struct sleeper *sleeper)
{
	pthread_t thread;

	memset(sleeper, 0, sizeof(*sleeper));
	sleeper->w = w;
	CHECK(!pthread_create(&thread, NULL, sleep_once, sleeper), "pthread_create");
	while (!__atomic_load_n(&sleeper->thread, __ATOMIC_SEQ_CST))
		;
	until_asleep(sleeper->thread);
	return thread;
}

static void end_sleep(pthread_t thread, struct sleeper *sleeper, uint32_t event, fid_t fid)
{
	CHECK(!pthread_join(thread, NULL), "pthread_join");
	CHECK(sleeper->ret >= (ssize_t) sizeof(struct fi_eq_cm_entry), "fi_eq_sread: %zd (%s)", sleeper->ret,
	      sleeper->ret < 0 ? fi_strerror((int) -sleeper->ret) : "short");
	CHECK(sleeper->event == event && sleeper->into.entry.fid == fid, "event %u", sleeper->event);
}

/* Each event of a connection wakes a thread that sleeps in fi_eq_sread: nobody else looks meanwhile. */
static void sread_wakes_for_each_event(void)
{
	struct sleeper sleeper;
	struct heard heard;
	pthread_t thread;
	struct wired w;
	fid_t first;

	open_exchange(&w, &waits);
	open_side(&w, 0, w.bed.info);
	thread = begin_sleep(&w, &sleeper);
	OK(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	end_sleep(thread, &sleeper, FI_CONNREQ, &w.pep->fid);
	open_side(&w, 1, sleeper.into.entry.info);
	fi_freeinfo(sleeper.into.entry.info);
	thread = begin_sleep(&w, &sleeper);
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	CHECK(!pthread_join(thread, NULL), "pthread_join");
	CHECK(sleeper.ret > 0 && sleeper.event == FI_CONNECTED, "event %u: %zd", sleeper.event, sleeper.ret);
	first = sleeper.into.entry.fid;
	heard = HEAR(&w, FI_CONNECTED, NULL);
	CHECK(heard.fid != first, "one side has heard twice");
	thread = begin_sleep(&w, &sleeper);
	close_side(&w, 0);
	end_sleep(thread, &sleeper, FI_SHUTDOWN, &w.bed.side[1].ep->fid);
	close_wires(&w);
}

static void sread_gives_up(void)
{
	struct fi_eq_cm_entry entry;
	struct wired w;
	uint32_t event;

	open_exchange(&w, &waits);
	GIVES(-FI_EAGAIN, fi_eq_sread(w.eq, &event, &entry, sizeof(entry), 20, 0));
	close_wires(&w);
}

/* The descriptor becomes readable for each event, with fi_trywait before each sleep. */
static ssize_t wait_on(struct wired *w, int fd, struct heard *heard)
{
	struct fid *fids[] = { &w->eq->fid };
	long until = now_ms() + GIVE_UP_MS;
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + CM_ROOM];
	} into;
	ssize_t ret;

	while ((ret = fi_eq_read(w->eq, &heard->event, &into, sizeof(into.room), 0)) == -FI_EAGAIN && now_ms() < until)
		if (fi_trywait(w->bed.fabric, fids, 1) == FI_SUCCESS) {
			struct pollfd fds = { .fd = fd, .events = POLLIN };

			CHECK(poll(&fds, 1, GIVE_UP_MS) == 1, "nothing has woken");
		}
	heard->fid = ret > 0 ? into.entry.fid : NULL;
	heard->info = ret > 0 ? into.entry.info : NULL;
	return ret;
}

static void the_descriptor_wakes(void)
{
	struct heard heard;
	struct wired w;
	int fd, i;

	open_exchange(&w, &waits);
	OK(fi_control(&w.eq->fid, FI_GETWAIT, &fd));
	ask(&w, 0, NULL, 0);
	CHECK(wait_on(&w, fd, &heard) > 0 && heard.event == FI_CONNREQ, "event %u", heard.event);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	for (i = 0; i < 2; i++)
		CHECK(wait_on(&w, fd, &heard) > 0 && heard.event == FI_CONNECTED, "event %u", heard.event);
	close_side(&w, 1);
	CHECK(wait_on(&w, fd, &heard) > 0 && heard.event == FI_SHUTDOWN, "event %u", heard.event);
	CHECK(heard.fid == &w.bed.side[0].ep->fid, "another endpoint");
	close_wires(&w);
}

/* The events of one connection come in the order in which things happen, however late they are read. */
static void events_keep_their_order(void)
{
	struct heard heard;
	struct wired w;
	int i, stage = 0;

	open_exchange(&w, &usual);
	ask(&w, 0, NULL, 0);
	heard = HEAR(&w, FI_CONNREQ, NULL);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	/* Reading the other queues moves the connection on, or nothing does: either is a provider's choice. */
	for (i = 0; i < 200; i++)
		turn(&w);
	heard = HEAR(&w, FI_CONNECTED, NULL);
	heard = HEAR(&w, FI_CONNECTED, NULL);
	OK(fi_shutdown(w.bed.side[1].ep, 0));
	for (i = 0; i < 200; i++)
		turn(&w);
	while (stage == 0) {
		heard = HEAR(&w, FI_SHUTDOWN, NULL);
		stage = heard.fid == &w.bed.side[0].ep->fid;
	}
	SILENCE(&w, &w.bed.side[1].ep->fid);
	close_wires(&w);
}

/* Endpoints with queues of their own: each hears of itself. */
static void each_event_goes_to_its_queue(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct heard heard;
	struct fid_eq *own;
	struct wired w;

	open_exchange(&w, &usual);
	OK(fi_eq_open(w.bed.fabric, &attr, &own, NULL));
	OK(fi_endpoint(w.bed.domain, w.bed.info, &w.bed.side[0].ep, NULL));
	w.bed.sides = 1;
	OK(fi_ep_bind(w.bed.side[0].ep, &own->fid, 0));
	give_queues(&w, 0);
	OK(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	CHECK(hear(&w, own, &heard) > 0 && heard.event == FI_CONNECTED, "event %u", heard.event);
	CHECK(heard.fid == &w.bed.side[0].ep->fid, "another endpoint");
	HEAR(&w, FI_CONNECTED, &w.bed.side[1].ep->fid);
	SILENCE(&w, NULL);
	close_side(&w, 0);
	HEAR(&w, FI_SHUTDOWN, &w.bed.side[1].ep->fid);
	OK(fi_close(&own->fid));
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(a_request_can_be_peeked),
	TEST(data_is_cut_to_the_buffer),
	TEST(too_small_a_buffer_loses_nothing),
	TEST(errors_stand_in_line),
	TEST(error_data_may_stay_with_the_provider),
	TEST(error_data_is_cut_to_the_buffer),
	TEST(an_error_has_a_text),
	TEST(sread_wakes_for_each_event),
	TEST(sread_gives_up),
	TEST(the_descriptor_wakes),
	TEST(events_keep_their_order),
	TEST(each_event_goes_to_its_queue),
};

CASES(tests)

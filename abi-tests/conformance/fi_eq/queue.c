/* fi_eq(3): event queues. What the connection manager and address vectors put into them is asked elsewhere. */
#include <poll.h>
#include <pthread.h>
#include "fabric.h"

static const struct setup usual;

/* A bed with a fabric only. */
static struct fid_eq *open_eq(struct bed *bed, enum fi_wait_obj wait, uint64_t flags)
{
	struct fi_eq_attr attr = { .wait_obj = wait, .flags = flags };
	struct fid_eq *eq;
	int ret;

	open_info(bed, &usual);
	OK(fi_fabric(bed->info->fabric_attr, &bed->fabric, NULL));
	ret = fi_eq_open(bed->fabric, &attr, &eq, NULL);
	NEED(!lacking(ret), "an event queue with wait object %d: %s", wait, fi_strerror(-ret));
	CHECK(ret == 0, "an event queue with wait object %d: %s", wait, fi_strerror(-ret));
	return eq;
}

static void close_eq(struct bed *bed, struct fid_eq *eq)
{
	OK(fi_close(&eq->fid));
	close_bed(bed);
}

static void write_event(struct fid_eq *eq, uint32_t event, uint64_t data)
{
	struct fi_eq_entry entry = { .fid = &eq->fid, .context = ctx((int) (data % 1000)), .data = data };

	GIVES(sizeof(entry), fi_eq_write(eq, event, &entry, sizeof(entry), 0));
}

static void read_event(struct fid_eq *eq, uint32_t wanted, uint64_t data, uint64_t flags)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event = 0;

	GIVES(sizeof(entry), fi_eq_read(eq, &event, &entry, sizeof(entry), flags));
	CHECK(event == wanted, "event %u, not %u", event, wanted);
	CHECK(entry.data == data && entry.context == ctx((int) (data % 1000)) && entry.fid == &eq->fid, "another event: %llu",
	      (unsigned long long) entry.data);
}

static void opens(void)
{
	struct fi_eq_attr attr = { .size = 100 };
	struct fid_eq *eq;
	struct bed bed;

	open_info(&bed, &usual);
	OK(fi_fabric(bed.info->fabric_attr, &bed.fabric, NULL));
	OK(fi_eq_open(bed.fabric, &attr, &eq, ctx(8)));
	CHECK(eq->fid.fclass == FI_CLASS_EQ && eq->fid.context == ctx(8), "class %zu", eq->fid.fclass);
	close_eq(&bed, eq);
}

static void unknown_wait_object(void)
{
	struct fi_eq_attr attr = { .wait_obj = 77 };
	struct fid_eq *eq;
	struct bed bed;

	open_info(&bed, &usual);
	OK(fi_fabric(bed.info->fabric_attr, &bed.fabric, NULL));
	FAILS(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	close_bed(&bed);
}

static void affinity_is_a_hint(void)
{
	struct bed bed;

	close_eq(&bed, open_eq(&bed, FI_WAIT_NONE, FI_AFFINITY));
}

static void empty_says_eagain(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	struct fi_eq_entry entry;
	struct fi_eq_err_entry err = { 0 };
	uint32_t event;

	GIVES(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	GIVES(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK));
	GIVES(-FI_EAGAIN, fi_eq_readerr(eq, &err, 0));
	close_eq(&bed, eq);
}

static void reads_in_order_one_at_a_time(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	struct fi_eq_entry entries[3];
	uint32_t event;

	write_event(eq, 1001, 1);
	write_event(eq, 1002, 2);
	write_event(eq, 1001, 3);
	GIVES(sizeof(*entries), fi_eq_read(eq, &event, entries, sizeof(entries), 0)); /* room for three gives one */
	CHECK(event == 1001 && entries[0].data == 1, "event %u", event);
	read_event(eq, 1002, 2, 0);
	read_event(eq, 1001, 3, 0);
	GIVES(-FI_EAGAIN, fi_eq_read(eq, &event, entries, sizeof(entries), 0));
	close_eq(&bed, eq);
}

static void peek_takes_nothing(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	struct fi_eq_entry entry;
	uint32_t event;

	write_event(eq, 1001, 1);
	write_event(eq, 1002, 2);
	read_event(eq, 1001, 1, FI_PEEK);
	read_event(eq, 1001, 1, FI_PEEK);
	read_event(eq, 1001, 1, 0);
	read_event(eq, 1002, 2, FI_PEEK);
	read_event(eq, 1002, 2, 0);
	GIVES(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK));
	close_eq(&bed, eq);
}

static void data_behind_the_entry(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	char event_out[sizeof(struct fi_eq_cm_entry) + 40], event_in[sizeof(event_out) + 20];
	uint32_t event;

	fill(event_out, sizeof(event_out), 3);
	memset(event_in, '#', sizeof(event_in));
	GIVES(sizeof(event_out), fi_eq_write(eq, FI_NOTIFY, event_out, sizeof(event_out), 0));
	GIVES(sizeof(event_out), fi_eq_read(eq, &event, event_in, sizeof(event_in), 0));
	SAME(event_in, sizeof(event_out), 3);
	CHECK(event_in[sizeof(event_out)] == '#', "wrote more than it says");
	close_eq(&bed, eq);
}

/* What a peer sent with a connection event is limited to the room that the reader gives. */
static void data_limited_by_the_room(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	char event_out[sizeof(struct fi_eq_cm_entry) + 40], event_in[sizeof(event_out)];
	const size_t room = sizeof(struct fi_eq_cm_entry) + 10;
	uint32_t event;

	fill(event_out, sizeof(event_out), 4);
	memset(event_in, '#', sizeof(event_in));
	GIVES(sizeof(event_out), fi_eq_write(eq, FI_CONNECTED, event_out, sizeof(event_out), 0));
	GIVES(room, fi_eq_read(eq, &event, event_in, room, 0));
	SAME(event_in, room, 4);
	CHECK(event_in[room] == '#', "wrote beyond the buffer");
	close_eq(&bed, eq);
}

/* Of other events the page does not say what happens without room for them: nothing is written beyond the buffer, and
 * one that is refused is not lost. */
static void event_without_room(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	struct fi_eq_entry entry;
	char small[sizeof(entry)];
	uint32_t event;
	ssize_t ret;

	write_event(eq, 1001, 9);
	memset(small, '#', sizeof(small));
	ret = fi_eq_read(eq, &event, small, 8, 0);
	CHECK(small[8] == '#', "wrote beyond the buffer");
	CHECK(ret == 8 || ret == -FI_ETOOSMALL, "fi_eq_read: %zd", ret);
	if (ret < 0)
		read_event(eq, 1001, 9, 0);
	GIVES(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	close_eq(&bed, eq);
}

static void many_events(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	struct fi_eq_entry entry = { 0 };
	uint64_t i, written;
	uint32_t event;
	ssize_t ret = 0;

	/* Either all are kept, or writing says that the queue is overrun. */
	for (written = 0; written < 5000; written++) {
		entry.data = written;
		ret = fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0);
		if (ret < 0)
			break;
	}
	CHECK(ret > 0 || ret == -FI_EOVERRUN || ret == -FI_EAGAIN, "fi_eq_write: %zd", ret);
	for (i = 0; i < written; i++) {
		GIVES(sizeof(entry), fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
		CHECK(entry.data == i, "event %llu in place %llu", (unsigned long long) entry.data, (unsigned long long) i);
	}
	ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
	CHECK(written < 5000 || ret == -FI_EAGAIN, "behind the last: %zd", ret);
	close_eq(&bed, eq);
}

/* ---- blocking ---- */

static void sread_none_is_invalid(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	struct fi_eq_entry entry;
	uint32_t event;

	FAILS(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0));
	close_eq(&bed, eq);
}

static void waits(enum fi_wait_obj wait)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, wait, FI_WRITE);
	struct fi_eq_entry entry;
	uint32_t event;
	long before = now_ms();

	GIVES(-FI_EAGAIN, fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0));
	CHECK(now_ms() - before < GIVE_UP_MS, "a timeout of 0 waits");
	before = now_ms();
	GIVES(-FI_EAGAIN, fi_eq_sread(eq, &event, &entry, sizeof(entry), 50, 0));
	CHECK(now_ms() - before >= 49, "waited %ld ms of 50", now_ms() - before);
	write_event(eq, 1001, 1);
	GIVES(sizeof(entry), fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, FI_PEEK));
	GIVES(sizeof(entry), fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0));
	CHECK(event == 1001 && entry.data == 1, "event %u", event);
	GIVES(-FI_EAGAIN, fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0));
	close_eq(&bed, eq);
}

static void wait_unspec(void) { waits(FI_WAIT_UNSPEC); }
static void wait_fd(void) { waits(FI_WAIT_FD); }
static void wait_mutex_cond(void) { waits(FI_WAIT_MUTEX_COND); }
static void wait_yield(void) { waits(FI_WAIT_YIELD); }

struct sleeper {
	struct fid_eq *eq;
	_Atomic pid_t thread;
	ssize_t ret;
	uint64_t data;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;
	struct fi_eq_entry entry = { 0 };
	uint32_t event;

	s->thread = thread_id();
	s->ret = fi_eq_sread(s->eq, &event, &entry, sizeof(entry), -1, 0);
	s->data = entry.data;
	return NULL;
}

static void write_wakes(void)
{
	struct bed bed;
	struct sleeper s = { .eq = open_eq(&bed, FI_WAIT_UNSPEC, FI_WRITE) };
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, sleep_on, &s) == 0, "pthread_create");
	while (!s.thread)
		;
	until_asleep(s.thread);
	write_event(s.eq, 1001, 42);
	pthread_join(thread, NULL);
	CHECK(s.ret == sizeof(struct fi_eq_entry) && s.data == 42, "the sleeper got %zd", s.ret);
	close_eq(&bed, s.eq);
}

static void getwait_fd(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_FD, FI_WRITE);
	struct fid *fids[1] = { &eq->fid };
	struct pollfd p = { .fd = -1, .events = POLLIN };
	int round;

	OK(fi_control(&eq->fid, FI_GETWAIT, &p.fd));
	CHECK(p.fd >= 0, "descriptor %d", p.fd);
	for (round = 0; round < 3; round++) {
		OK(fi_trywait(bed.fabric, fids, 1));
		CHECK(poll(&p, 1, 0) == 0, "ready, but nothing is there");
		write_event(eq, 1001, 1);
		CHECK(poll(&p, 1, GIVE_UP_MS) == 1, "an event is there, but the descriptor is not ready");
		GIVES(-FI_EAGAIN, fi_trywait(bed.fabric, fids, 1));
		read_event(eq, 1001, 1, 0);
	}
	close_eq(&bed, eq);
}

static void getwait_without_an_object(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	void *object;

	FAILS(fi_control(&eq->fid, FI_GETWAIT, &object));
	close_eq(&bed, eq);
}

static void getwait_mutex_cond(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_MUTEX_COND, FI_WRITE);
	struct fi_mutex_cond pair = { 0 };

	OK(fi_control(&eq->fid, FI_GETWAIT, &pair));
	CHECK(pair.mutex && pair.cond, "no mutex or no condition");
	close_eq(&bed, eq);
}

static void wait_set(void)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_SET, .flags = FI_WRITE };
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	struct bed bed;
	uint32_t event;
	int ret;

	open_info(&bed, &usual);
	OK(fi_fabric(bed.info->fabric_attr, &bed.fabric, NULL));
	ret = fi_wait_open(bed.fabric, &wait_attr, &attr.wait_set);
	NEED(!lacking(ret), "fi_wait_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_wait_open: %d", ret);
	ret = fi_eq_open(bed.fabric, &attr, &eq, NULL);
	NEED(!lacking(ret), "FI_WAIT_SET: %s", fi_strerror(-ret));
	CHECK(ret == 0, "FI_WAIT_SET: %d", ret);
	FAILS(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0)); /* invalid with a wait set */
	write_event(eq, 1001, 7);
	OK(fi_wait(attr.wait_set, GIVE_UP_MS));
	read_event(eq, 1001, 7, 0);
	OK(fi_close(&eq->fid));
	OK(fi_close(&attr.wait_set->fid));
	close_bed(&bed);
}

/* ---- errors ---- */

static void errors_come_out_of_band(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	char name[NAME_MAX_LEN], data[64];
	struct fid_eq *eq;
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addr;
	uint32_t event;
	size_t len;
	int ret;

	open_domain(&bed, &usual);
	if (!bad_name(&bed, name, &len))
		SKIP("no address of this format is known to be bad");
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	ret = fi_av_open(bed.domain, &av_attr, &av, NULL);
	NEED(!lacking(ret), "FI_EVENT: %s", fi_strerror(-ret));
	OK(ret);
	ret = fi_av_bind(av, &eq->fid, 0);
	NEED(!lacking(ret), "fi_av_bind: %s", fi_strerror(-ret));
	OK(ret);
	GIVES(-FI_EBUSY, fi_close(&eq->fid)); /* it is bound */
	OK(fi_av_insert(av, name, 1, &addr, 0, ctx(4)));
	GIVES(-FI_EAVAIL, fi_eq_sread(eq, &event, &entry, sizeof(entry), GIVE_UP_MS, 0));
	GIVES(-FI_EAVAIL, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	GIVES(sizeof(err), fi_eq_readerr(eq, &err, 0));
	CHECK(err.fid == &av->fid && err.context == ctx(4) && err.err > 0, "err %d", err.err);
	CHECK(fi_eq_strerror(eq, err.prov_errno, err.err_data, data, sizeof(data)), "no text");
	GIVES(sizeof(entry), fi_eq_sread(eq, &event, &entry, sizeof(entry), GIVE_UP_MS, 0));
	CHECK(event == FI_AV_COMPLETE, "event %u", event);
	OK(fi_close(&av->fid));
	close_eq(&bed, eq);
}

static void strerror_gives_a_text(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, FI_WRITE);
	char text[64];
	const char *said = fi_eq_strerror(eq, FI_ENOENT, NULL, NULL, 0);

	CHECK(said && *said, "no text");
	memset(text, '#', sizeof(text));
	said = fi_eq_strerror(eq, FI_ENOENT, NULL, text, 8);
	CHECK(said && *said, "no text");
	CHECK(text[8] == '#', "wrote beyond the buffer");
	close_eq(&bed, eq);
}

/* ---- closing ---- */

static void close_while_bound(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq;
	struct bed bed;
	int ret;

	open_sides(&bed, &usual);
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	ret = fi_ep_bind(bed.side[0].ep, &eq->fid, 0);
	NEED(!lacking(ret), "fi_ep_bind of an event queue: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_ep_bind of an event queue: %s", fi_strerror(-ret));
	GIVES(-FI_EBUSY, fi_close(&eq->fid));
	close_ep(&bed.side[0]);
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

static void close_with_events(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_FD, FI_WRITE);

	write_event(eq, 1001, 1);
	write_event(eq, 1002, 2);
	close_eq(&bed, eq); /* they are lost, and nothing else happens */
}

static void fabric_stays_while_a_queue_is_open(void)
{
	struct bed bed;
	struct fid_eq *eq = open_eq(&bed, FI_WAIT_NONE, 0);

	GIVES(-FI_EBUSY, fi_close(&bed.fabric->fid));
	close_eq(&bed, eq);
}

static const struct test tests[] = {
	TEST(opens), TEST(unknown_wait_object), TEST(affinity_is_a_hint), TEST(empty_says_eagain),
	TEST(reads_in_order_one_at_a_time), TEST(peek_takes_nothing), TEST(data_behind_the_entry), TEST(data_limited_by_the_room), TEST(event_without_room),
	TEST(many_events), TEST(sread_none_is_invalid), TEST(wait_unspec), TEST(wait_fd), TEST(wait_mutex_cond),
	TEST(wait_yield), TEST(write_wakes), TEST(getwait_fd), TEST(getwait_without_an_object), TEST(getwait_mutex_cond),
	TEST(wait_set), TEST(errors_come_out_of_band), TEST(strerror_gives_a_text), TEST(close_while_bound),
	TEST(close_with_events), TEST(fabric_stays_while_a_queue_is_open),
};

CASES(tests)

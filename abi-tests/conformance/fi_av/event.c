/* FI_EVENT: insertions that are reported by an event queue. */
#include "av.h"

struct async {
	struct bed bed;
	struct fid_eq *eq;
	struct fid_av *av;
};

static void open_async(struct async *a, bool bound)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	open_domain(&a->bed, &usual);
	OK(fi_eq_open(a->bed.fabric, &attr, &a->eq, NULL));
	a->av = open_kind(&a->bed, FI_AV_TABLE, FI_EVENT);
	if (bound) {
		int ret = fi_av_bind(a->av, &a->eq->fid, 0);

		NEED(!lacking(ret), "fi_av_bind: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_av_bind: %s", fi_strerror(-ret));
	}
}

static void close_async(struct async *a)
{
	OK(fi_close(&a->av->fid));
	OK(fi_close(&a->eq->fid));
	close_bed(&a->bed);
}

/* The next event, or the errno; waits. */
static ssize_t next_event(struct async *a, uint32_t *event, struct fi_eq_entry *entry)
{
	return fi_eq_sread(a->eq, event, entry, sizeof(*entry), GIVE_UP_MS, 0);
}

static void event_needs_an_eq(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	size_t len;

	open_async(&a, false);
	made_up_name(&a.bed, 1, name, &len);
	GIVES(-FI_ENOEQ, fi_av_insert(a.av, name, 1, &addr, 0, NULL));
	close_async(&a);
}

static void event_bind_takes_no_flags(void)
{
	struct async a;

	open_async(&a, false);
	FAILS(fi_av_bind(a.av, &a.eq->fid, FI_TRANSMIT));
	close_async(&a);
}

static void event_reports_each_insertion(void)
{
	struct async a;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3] = { 70, 70, 70 };
	struct fi_eq_entry entry;
	uint32_t event;
	unsigned call, i;

	open_async(&a, true);
	for (call = 0; call < 2; call++) {
		made_up(&a.bed, 3 * call, 3, names);
		OK(fi_av_insert(a.av, names, 3, addrs, 0, ctx((int) call)));
		GIVES(sizeof(entry), next_event(&a, &event, &entry));
		CHECK(event == FI_AV_COMPLETE, "event %u", event);
		CHECK(entry.fid == &a.av->fid && entry.context == ctx((int) call), "of another AV or insertion");
		CHECK(entry.data == 3, "%llu inserted", (unsigned long long) entry.data);
		for (i = 0; i < 3; i++)
			CHECK(addrs[i] == 3 * call + i, "index %llu", (unsigned long long) addrs[i]);
	}
	GIVES(-FI_EAGAIN, fi_eq_read(a.eq, &event, &entry, sizeof(entry), 0));
	close_async(&a);
}

static void event_of_nothing(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	struct fi_eq_entry entry;
	uint32_t event;
	size_t len;

	open_async(&a, true);
	made_up_name(&a.bed, 1, name, &len);
	OK(fi_av_insert(a.av, name, 0, &addr, 0, ctx(9)));
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(9) && entry.data == 0, "event %u", event);
	close_async(&a);
}

static void event_errors_come_first(void)
{
	struct async a;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3] = { 70, 70, 70 };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;

	open_async(&a, true);
	with_a_bad_one(&a.bed, names);
	OK(fi_av_insert(a.av, names, 3, addrs, 0, ctx(5)));
	GIVES(-FI_EAVAIL, next_event(&a, &event, &entry));
	CHECK(fi_eq_readerr(a.eq, &err, 0) > 0, "fi_eq_readerr");
	CHECK(err.fid == &a.av->fid && err.context == ctx(5), "of another AV or insertion");
	CHECK(err.data == 1 && err.err > 0, "index %llu, err %d", (unsigned long long) err.data, err.err);
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(5), "event %u", event);
	CHECK(entry.data == 2, "%llu inserted", (unsigned long long) entry.data);
	CHECK(addrs[1] == FI_ADDR_NOTAVAIL, "the failed one's fi_addr is %llu", (unsigned long long) addrs[1]);
	close_async(&a);
}

static void event_when_all_fail(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	size_t len;

	open_async(&a, true);
	if (!bad_name(&a.bed, name, &len))
		SKIP("no address of this format is known to be bad");
	OK(fi_av_insert(a.av, name, 1, &addr, 0, ctx(5)));
	GIVES(-FI_EAVAIL, next_event(&a, &event, &entry));
	CHECK(fi_eq_readerr(a.eq, &err, 0) > 0 && err.data == 0, "index %llu", (unsigned long long) err.data);
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.data == 0, "event %u, %llu inserted", event, (unsigned long long) entry.data);
	close_async(&a);
}

static void event_for_insertsvc(void)
{
	struct async a;
	fi_addr_t addr;
	char node[NAME_MAX_LEN] = "127.0.0.1";
	struct fi_eq_entry entry;
	uint32_t event;
	int ret;

	open_async(&a, true);
	BY_NAME(&a.bed);
	if (!is_ip(&a.bed))
		string_name(&a.bed, node, "nobody", 1, 7);
	ret = fi_av_insertsvc(a.av, node, is_ip(&a.bed) ? "4711" : NULL, &addr, 0, ctx(3));
	NEED(!lacking(ret), "fi_av_insertsvc: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_insertsvc: %d", ret);
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(3) && entry.data == 1, "event %u", event);
	close_async(&a);
}

/* Events that refer to the AV stay in the queue when it is closed. */
static void events_outlive_the_av(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	struct fi_eq_entry entry;
	uint32_t event;
	size_t len;

	open_async(&a, true);
	made_up_name(&a.bed, 1, name, &len);
	OK(fi_av_insert(a.av, name, 1, &addr, 0, ctx(6)));
	GIVES(sizeof(entry), fi_eq_sread(a.eq, &event, &entry, sizeof(entry), GIVE_UP_MS, FI_PEEK));
	OK(fi_close(&a.av->fid));
	GIVES(sizeof(entry), fi_eq_read(a.eq, &event, &entry, sizeof(entry), 0));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(6), "event %u", event);
	OK(fi_close(&a.eq->fid));
	close_bed(&a.bed);
}

static const struct test tests[] = {
	TEST(event_needs_an_eq), TEST(event_bind_takes_no_flags), TEST(event_reports_each_insertion),
	TEST(event_of_nothing), TEST(event_errors_come_first), TEST(event_when_all_fail), TEST(event_for_insertsvc),
	TEST(events_outlive_the_av),
};

CASES(tests)

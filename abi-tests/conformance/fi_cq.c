/* fi_cq(3): completion queues. */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <rdma/fi_trigger.h>
#include "fabric.h"

static const struct setup usual;
static char in[1024], out[1024];

/* Posts one tagged message from side 0 to side 1, and waits for neither end. */
static void start(struct bed *bed, uint64_t tag, size_t len, int rx, int tx)
{
	POST(bed, fi_trecv(bed->side[1].ep, in, len, NULL, FI_ADDR_UNSPEC, tag, 0, ctx(rx)));
	POST(bed, fi_tsend(bed->side[0].ep, out, len, NULL, bed->side[1].addr, tag, ctx(tx)));
}

/* Waits, by a means that takes nothing out of the queue under test, until side 0 knows that its sends have ended. */
static void sent(struct bed *bed, int tx)
{
	COMPLETION(bed, bed->side[0].tx, ctx(tx));
	settle(bed);
}

/* ---- formats ---- */

/* Reads two completions of `format` into an array with a guard behind it. */
static void format(enum fi_cq_format format, size_t size)
{
	struct setup s = { .format = format };
	struct bed bed;
	unsigned char buf[4 * sizeof(struct fi_cq_tagged_entry)];
	struct fi_cq_tagged_entry *e;
	long until = now_ms() + GIVE_UP_MS;
	size_t i, got = 0;
	ssize_t ret;

	open_bed(&bed, &s);
	memset(buf, 0xa5, sizeof(buf));
	fill(out, 100, 1);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 200, NULL, FI_ADDR_UNSPEC, 7, 0, ctx(1)));
	POST(&bed, fi_trecv(bed.side[1].ep, in + 200, 200, NULL, FI_ADDR_UNSPEC, 8, 0, ctx(2)));
	POST(&bed, fi_tsenddata(bed.side[0].ep, out, 100, NULL, 0x1234567, bed.side[1].addr, 7, ctx(3)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 50, NULL, bed.side[1].addr, 8, ctx(4)));
	while (got < 2 && now_ms() < until) {
		ret = fi_cq_read(bed.side[1].rx, buf + got * size, 2 - got);
		if (ret > 0)
			got += (size_t) ret;
		else
			CHECK(ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
		progress(&bed);
	}
	CHECK(got == 2, "%zu entries", got);
	for (i = 2 * size; i < sizeof(buf); i++)
		CHECK(buf[i] == 0xa5, "byte %zu behind the two entries was written", i - 2 * size);
	for (i = 0; i < 2; i++) {
		e = (void *) (buf + i * size);
		CHECK(e->op_context == ctx(i ? 2 : 1), "entry %zu: another context", i);
		if (size < sizeof(struct fi_cq_msg_entry))
			continue;
		CHECK((e->flags & (FI_RECV | FI_TAGGED)) == (FI_RECV | FI_TAGGED), "flags 0x%llx", (unsigned long long) e->flags);
		CHECK(!(e->flags & (FI_SEND | FI_MSG | FI_RMA)), "flags 0x%llx", (unsigned long long) e->flags);
		CHECK(e->len == (i ? 50 : 100), "entry %zu: %zu bytes", i, e->len);
		if (size < sizeof(struct fi_cq_data_entry))
			continue;
		CHECK(!(e->flags & FI_REMOTE_CQ_DATA) == (i == 1), "FI_REMOTE_CQ_DATA, flags 0x%llx", (unsigned long long) e->flags);
		CHECK(i || e->data == 0x1234567, "data 0x%llx", (unsigned long long) e->data);
		if (size == sizeof(struct fi_cq_tagged_entry))
			CHECK(e->tag == 7 + i, "tag %llu", (unsigned long long) e->tag);
	}
	SAME(in, 100, 1);
	close_bed(&bed);
}

static void format_context(void) { format(FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry)); }
static void format_msg(void) { format(FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry)); }
static void format_data(void) { format(FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry)); }
static void format_tagged(void) { format(FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry)); }

static void format_unspec(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_UNSPEC };
	struct fid_cq *cq;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_cq_open(bed.domain, &attr, &cq, ctx(3)));
	CHECK(cq->fid.fclass == FI_CLASS_CQ, "class %zu", cq->fid.fclass);
	CHECK(cq->fid.context == ctx(3), "the fid has another context");
	OK(fi_close(&cq->fid));
	close_bed(&bed);
}

static void format_unknown(void)
{
	struct fi_cq_attr attr = { .format = 99 };
	struct fid_cq *cq;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(fi_cq_open(bed.domain, &attr, &cq, NULL));
	close_bed(&bed);
}

static void affinity_is_a_hint(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .flags = FI_AFFINITY, .signaling_vector = 0 };
	struct fid_cq *cq;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_cq_open(bed.domain, &attr, &cq, NULL));
	OK(fi_close(&cq->fid));
	close_bed(&bed);
}

/* ---- reading ---- */

static void empty_says_eagain(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	GIVES(-FI_EAGAIN, fi_cq_read(bed.side[0].tx, &e, 1));
	GIVES(-FI_EAGAIN, fi_cq_read(bed.side[0].rx, &e, 1));
	close_bed(&bed);
}

static void count_limits(void)
{
	struct fi_cq_tagged_entry e[8];
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;
	int i, got = 0;

	open_bed(&bed, &usual);
	for (i = 0; i < 5; i++)
		start(&bed, (uint64_t) i, 8, i, 100 + i);
	for (i = 0; i < 5; i++)
		COMPLETION(&bed, bed.side[0].tx, ctx(100 + i));
	settle(&bed);
	while (got < 5 && now_ms() < until) {
		memset(e, 0x5a, sizeof(e));
		ret = fi_cq_read(bed.side[1].rx, e, 3);
		if (ret == -FI_EAGAIN)
			continue;
		CHECK(ret >= 1 && ret <= 3, "%zd entries of 3", ret);
		for (i = 0; i < ret; i++, got++)
			CHECK(e[i].op_context == ctx(got), "completion %d is out of order", got);
		CHECK(*(unsigned char *) &e[ret] == 0x5a, "wrote more entries than it says");
	}
	CHECK(got == 5, "%d entries", got);
	close_bed(&bed);
}

static void count_of_zero_takes_nothing(void)
{
	struct bed bed;
	ssize_t ret;
	int i;

	open_bed(&bed, &usual);
	start(&bed, 1, 8, 1, 2);
	sent(&bed, 2);
	for (i = 0; i < 3; i++) {
		ret = fi_cq_read(bed.side[1].rx, NULL, 0);
		CHECK(ret == 0 || ret == -FI_EAGAIN, "%zd", ret);
	}
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	close_bed(&bed);
}

/* Two sends end in the order in which they began, where the endpoint promises it; each has one entry. */
static void one_entry_each(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	start(&bed, 1, 8, 1, 11);
	start(&bed, 2, 8, 2, 12);
	COMPLETION(&bed, bed.side[0].tx, ctx(11));
	COMPLETION(&bed, bed.side[0].tx, ctx(12));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[1].rx, ctx(2));
	NO_COMPLETION(&bed, bed.side[0].tx);
	NO_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

/* ---- source addresses ---- */

static fi_addr_t source_of(struct bed *bed, fi_addr_t preset)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source = preset;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	start(bed, 5, 8, 1, 2);
	while ((ret = fi_cq_readfrom(bed->side[1].rx, &e, 1, &source)) == -FI_EAGAIN && now_ms() < until)
		progress(bed);
	COMPLETION(bed, bed->side[0].tx, ctx(2));
	CHECK(ret == 1 && e.op_context == ctx(1), "fi_cq_readfrom: %zd", ret);
	return source;
}

static void readfrom_gives_the_source(void)
{
	struct setup s = { .more_caps = FI_SOURCE, .sides = 3 };
	struct bed bed;
	fi_addr_t source;

	open_bed(&bed, &s);
	source = source_of(&bed, 99);
	CHECK(source == bed.side[0].addr, "source %llu, not %llu", (unsigned long long) source,
	      (unsigned long long) bed.side[0].addr);
	close_bed(&bed);
}

static void readfrom_without_fi_source(void)
{
	struct bed bed;
	fi_addr_t source, wanted;

	open_bed(&bed, &usual);
	wanted = bed.info->caps & FI_SOURCE ? bed.side[0].addr : FI_ADDR_NOTAVAIL;
	source = source_of(&bed, 99);
	CHECK(source == wanted, "source %llu, not %llu", (unsigned long long) source, (unsigned long long) wanted);
	close_bed(&bed);
}

/* Side 1 of these beds does not know side 0. */
static void open_one_way(struct bed *bed, uint64_t caps)
{
	struct setup s = { .more_caps = caps, .strangers = true };
	struct fi_av_attr attr = { 0 };
	struct fid_av *av;

	open_sides(bed, &s);
	/* Side 0 gets an address vector of its own. */
	OK(fi_close(&bed->side[0].ep->fid));
	OK(fi_endpoint(bed->domain, bed->info, &bed->side[0].ep, NULL));
	OK(fi_av_open(bed->domain, &attr, &av, NULL));
	OK(fi_ep_bind(bed->side[0].ep, &av->fid, 0));
	OK(fi_ep_bind(bed->side[0].ep, &bed->side[0].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(bed->side[0].ep, &bed->side[0].rx->fid, FI_RECV));
	OK(fi_enable(bed->side[0].ep));
	OK(fi_enable(bed->side[1].ep));
	learn_name(&bed->side[0]);
	learn_name(&bed->side[1]);
	GIVES(1, insert_sides(bed, av, 1, 1, &bed->side[1].addr, 0, NULL));
}

static void unknown_source_is_notavail(void)
{
	struct bed bed;
	fi_addr_t source;

	open_one_way(&bed, FI_SOURCE);
	source = source_of(&bed, 99);
	CHECK(source == FI_ADDR_NOTAVAIL, "source %llu", (unsigned long long) source);
	_exit((printf("ok %s\n", case_name), 0)); /* the second AV is nobody's here */
}

static void unknown_source_with_source_err(void)
{
	struct bed bed;
	struct fi_cq_err_entry err;
	char packed[NAME_MAX_LEN];
	fi_addr_t addr, source;

	open_one_way(&bed, FI_SOURCE | FI_SOURCE_ERR);
	fill(out, 8, 3);
	start(&bed, 5, 8, 1, 2);
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_EADDRNOTAVAIL, "err %d (%s)", err.err, fi_strerror(err.err));
	CHECK(err.op_context == ctx(1) && err.len == 8 && err.tag == 5, "the completion: %zu bytes, tag %llu", err.len,
	      (unsigned long long) err.tag);
	SAME(in, 8, 3); /* the data were received */
	start(&bed, 6, 8, 1, 2); /* and it is no less a stranger the second time */
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_EADDRNOTAVAIL && err.tag == 6, "err %d, tag %llu", err.err, (unsigned long long) err.tag);
	CHECK(err.err_data && err.err_data_size >= 8, "no address: %zu bytes", err.err_data_size);
	/* The address goes straight into the AV, and then the source is known. */
	pack(&bed, packed, err.err_data, err.err_data_size);
	GIVES(1, fi_av_insert(bed.av, packed, 1, &addr, 0, NULL));
	source = source_of(&bed, 99);
	CHECK(source == addr, "source %llu, not %llu", (unsigned long long) source, (unsigned long long) addr);
	_exit((printf("ok %s\n", case_name), 0));
}

/* ---- errors ---- */

/* An error completion for side 1: a receive with tag 9 that is cancelled. */
static void cancel_one(struct bed *bed, int number)
{
	int ret;

	POST(bed, fi_trecv(bed->side[1].ep, in, 64, NULL, FI_ADDR_UNSPEC, 9, 0, ctx(number)));
	ret = fi_cancel(&bed->side[1].ep->fid, ctx(number));
	NEED(!lacking(ret), "fi_cancel: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cancel: %s", fi_strerror(-ret));
}

static void readerr_without_error(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct bed bed;

	open_bed(&bed, &usual);
	GIVES(-FI_EAGAIN, fi_cq_readerr(bed.side[0].rx, &err, 0));
	start(&bed, 1, 8, 1, 2);
	sent(&bed, 2);
	GIVES(-FI_EAGAIN, fi_cq_readerr(bed.side[1].rx, &err, 0)); /* and it takes no good one */
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	close_bed(&bed);
}

static void error_stands_in_the_way(void)
{
	struct fi_cq_tagged_entry e[4];
	struct fi_cq_err_entry err;
	struct bed bed;

	open_bed(&bed, &usual);
	cancel_one(&bed, 1);
	settle(&bed);
	GIVES(-FI_EAVAIL, fi_cq_read(bed.side[1].rx, e, 4));
	GIVES(-FI_EAVAIL, fi_cq_read(bed.side[1].rx, e, 4));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.op_context == ctx(1) && err.err == FI_ECANCELED, "err %d", err.err);
	CHECK((err.flags & (FI_RECV | FI_TAGGED)) == (FI_RECV | FI_TAGGED), "flags 0x%llx", (unsigned long long) err.flags);
	GIVES(-FI_EAGAIN, fi_cq_read(bed.side[1].rx, e, 4));
	ping(&bed, 0, 1);
	close_bed(&bed);
}

static void errors_keep_their_place(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;

	open_bed(&bed, &usual);
	start(&bed, 1, 8, 1, 11);
	sent(&bed, 11);
	cancel_one(&bed, 2);
	settle(&bed);
	start(&bed, 3, 8, 3, 13);
	sent(&bed, 13);
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.op_context == ctx(2), "the error of another operation");
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	close_bed(&bed);
}

static void truncation_is_an_error(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 300, 4);
	memset(in, '#', sizeof(in));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 100, NULL, FI_ADDR_UNSPEC, 6, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 300, NULL, bed.side[1].addr, 6, ctx(2)));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ETRUNC, "err %d (%s)", err.err, fi_strerror(err.err));
	CHECK(err.op_context == ctx(1) && err.tag == 6, "tag %llu", (unsigned long long) err.tag);
	CHECK(err.olen == 200, "olen %zu of 200 that did not fit", err.olen);
	CHECK(in[100] == '#', "wrote behind the buffer");
	close_bed(&bed);
}

static void truncation_says_what_was_placed(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;

	open_bed(&bed, &usual);
	fill(out, 300, 4);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 100, NULL, FI_ADDR_UNSPEC, 6, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 300, NULL, bed.side[1].addr, 6, ctx(2)));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.len == 100, "len %zu of the 100 bytes that fit", err.len);
	SAME(in, 100, 4);
	close_bed(&bed);
}

/* The entry was shorter in older releases: nothing may be written behind what the application has. */
static void old_layout(uint32_t version, size_t size)
{
	struct setup s = { .version = version };
	union {
		struct fi_cq_err_entry err;
		unsigned char bytes[sizeof(struct fi_cq_err_entry) + 64];
	} u;
	struct bed bed;
	size_t i;

	open_bed(&bed, &s);
	cancel_one(&bed, 1);
	settle(&bed);
	memset(&u, 0xa5, sizeof(u));
	u.err.err_data = NULL;
	if (size > offsetof(struct fi_cq_err_entry, err_data_size))
		u.err.err_data_size = 0;
	/* Not through the inline call: that of newer headers writes the newer member itself. */
	GIVES(1, bed.side[1].rx->ops->readerr(bed.side[1].rx, &u.err, 0));
	CHECK(u.err.op_context == ctx(1) && u.err.err == FI_ECANCELED, "err %d", u.err.err);
	for (i = size; i < sizeof(u); i++)
		CHECK(u.bytes[i] == 0xa5, "byte %zu was written, but the entry ends at %zu", i, size);
	close_bed(&bed);
}

static void readerr_before_1_5(void) { old_layout(FI_VERSION(1, 4), offsetof(struct fi_cq_err_entry, err_data_size)); }
#if HEADERS_2
static void readerr_before_1_20(void) { old_layout(FI_VERSION(1, 19), offsetof(struct fi_cq_err_entry, src_addr)); }
#endif
static void readerr_today(void) { old_layout(0, sizeof(struct fi_cq_err_entry)); }

static void err_data_into_the_users_buffer(void)
{
	struct bed bed;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	char data[NAME_MAX_LEN];

	open_one_way(&bed, FI_SOURCE | FI_SOURCE_ERR);
	start(&bed, 5, 8, 1, 2);
	GIVES(-FI_EAVAIL, next(&bed, bed.side[1].rx, &e));
	memset(data, '#', sizeof(data));
	err.err_data = data;
	err.err_data_size = 5;
	GIVES(1, fi_cq_readerr(bed.side[1].rx, &err, 0));
	CHECK(err.err == FI_EADDRNOTAVAIL, "err %d", err.err);
	CHECK(err.err_data == data && err.err_data_size == 5, "%zu bytes, buffer %s", err.err_data_size,
	      err.err_data == data ? "kept" : "replaced");
	CHECK(!memcmp(data, bed.side[0].name, 4) && data[5] == '#', "not the first bytes of the address");
	_exit((printf("ok %s\n", case_name), 0));
}

static void strerror_of_an_error(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;
	char text[128];
	const char *said;

	open_bed(&bed, &usual);
	cancel_one(&bed, 1);
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	said = fi_cq_strerror(bed.side[1].rx, err.prov_errno, err.err_data, NULL, 0);
	CHECK(said && *said, "no text");
	memset(text, '#', sizeof(text));
	said = fi_cq_strerror(bed.side[1].rx, err.prov_errno, err.err_data, text, 8);
	CHECK(said && *said, "no text");
	CHECK(text[8] == '#' && memchr(text, 0, 8), "the buffer of 8 has no end in it");
	close_bed(&bed);
}

/* ---- blocking ---- */

static void open_waiting(struct bed *bed, enum fi_wait_obj wait)
{
	struct setup s = { .wait_obj = wait, .any_wait = wait == FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE };

	open_bed(bed, &s);
}

static void sread_none_is_invalid(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	FAILS(fi_cq_sread(bed.side[0].rx, &e, 1, NULL, 0));
	close_bed(&bed);
}

/* Finds what is there already, waits out its time, and finds what comes by its own progress. */
static void waits(enum fi_wait_obj wait)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
	struct bed bed;
	long before;

	open_waiting(&bed, wait);
	before = now_ms();
	GIVES(-FI_EAGAIN, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, 0));
	CHECK(now_ms() - before < 1000, "a timeout of 0 waits");
	before = now_ms();
	GIVES(-FI_EAGAIN, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, 50));
	CHECK(now_ms() - before >= 49, "waited %ld ms of 50", now_ms() - before);
	start(&bed, 1, 8, 1, 2);
	settle(&bed);
	GIVES(1, fi_cq_sread(bed.side[0].tx, &e, 1, NULL, GIVE_UP_MS));
	CHECK(e.op_context == ctx(2), "another completion");
	GIVES(1, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, GIVE_UP_MS));
	CHECK(e.op_context == ctx(1), "another completion");
	start(&bed, 1, 8, 3, 4);
	COMPLETION(&bed, bed.side[0].tx, ctx(4));
	GIVES(1, fi_cq_sreadfrom(bed.side[1].rx, &e, 1, &source, NULL, GIVE_UP_MS));
	CHECK(e.op_context == ctx(3), "another completion");
	close_bed(&bed);
}

static void wait_unspec(void) { waits(FI_WAIT_UNSPEC); }
static void wait_fd(void) { waits(FI_WAIT_FD); }
static void wait_mutex_cond(void) { waits(FI_WAIT_MUTEX_COND); }
static void wait_yield(void) { waits(FI_WAIT_YIELD); }

static void sread_reports_errors(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_waiting(&bed, FI_WAIT_UNSPEC);
	cancel_one(&bed, 1);
	GIVES(-FI_EAVAIL, fi_cq_sread(bed.side[1].rx, &e, 1, NULL, GIVE_UP_MS));
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	close_bed(&bed);
}

/* The other process sends only when this one sleeps. */
static void sread_wakes_body(struct bed *bed, int me, int pipe)
{
	struct fi_cq_tagged_entry e;
	char path[64], line[512], *end;
	long until;
	int round;

	for (round = 0; round < 3; round++) {
		meet(bed, pipe);
		if (me == 0) {
			POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
			GIVES(1, fi_cq_sread(bed->side[0].rx, &e, 1, NULL, GIVE_UP_MS));
			CHECK(e.op_context == ctx(1), "another completion");
		} else {
			snprintf(path, sizeof(path), "/proc/%d/stat", (int) getppid());
			until = now_ms() + 300; /* some spin instead */
			do {
				FILE *f = fopen(path, "r");

				CHECK(f && fgets(line, sizeof(line), f), "the first process has ended");
				fclose(f);
				end = strrchr(line, ')');
			} while (end[2] != 'S' && now_ms() < until);
			POST(bed, fi_tsend(bed->side[0].ep, out, 8, NULL, bed->peer, 1, ctx(2)));
			COMPLETION(bed, bed->side[0].tx, ctx(2));
		}
	}
}

static void sread_wakes_for_the_other_process(void)
{
	struct setup s = { .any_wait = true };

	in_two(&s, sread_wakes_body);
}

static void fd_wakes_for_the_other_process(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };

	in_two(&s, sread_wakes_body);
}

struct sleeper {
	struct fid_cq *cq;
	volatile pid_t thread;
	ssize_t ret;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry e;

	s->thread = thread_id();
	s->ret = fi_cq_sread(s->cq, &e, 1, NULL, -1);
	return NULL;
}

static void signal_wakes(void)
{
	struct sleeper s = { 0 };
	struct bed bed;
	pthread_t thread;
	int ret;

	open_waiting(&bed, FI_WAIT_UNSPEC);
	s.cq = bed.side[1].rx;
	CHECK(pthread_create(&thread, NULL, sleep_on, &s) == 0, "pthread_create");
	while (!s.thread)
		;
	until_asleep(s.thread);
	ret = fi_cq_signal(s.cq);
	NEED(!lacking(ret), "fi_cq_signal: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cq_signal: %d", ret);
	pthread_join(thread, NULL);
	CHECK(s.ret == -FI_EAGAIN, "the sleeper got %zd (%s)", s.ret, fi_strerror((int) -s.ret));
	close_bed(&bed);
}

static void threshold_is_taken(void)
{
	struct setup s = { .any_wait = true, .wait_cond = FI_CQ_COND_THRESHOLD };
	struct fi_cq_tagged_entry e[4];
	struct bed bed;
	size_t threshold = 2;
	ssize_t ret;

	open_bed(&bed, &s);
	start(&bed, 1, 8, 1, 11);
	start(&bed, 2, 8, 2, 12);
	COMPLETION(&bed, bed.side[0].tx, ctx(11));
	COMPLETION(&bed, bed.side[0].tx, ctx(12));
	ret = fi_cq_sread(bed.side[1].rx, e, 4, &threshold, GIVE_UP_MS);
	CHECK(ret >= 1 && e[0].op_context == ctx(1), "%zd", ret);
	close_bed(&bed);
}

/* ---- wait objects for the application ---- */

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
		POST(bed, fi_tsend(bed->side[0].ep, out, 8, NULL, bed->peer, 1, ctx(2)));
		COMPLETION(bed, bed->side[0].tx, ctx(2));
		return;
	}
	OK(fi_control(fids[0], FI_GETWAIT, &fd));
	POST(bed, fi_trecv(bed->side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
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

/* ---- selective completion ---- */

static void selective_sends(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION };
	struct iovec iov = { out, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 };
	struct bed bed;

	open_bed(&bed, &s);
	msg.addr = bed.side[1].addr;
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	NO_COMPLETION(&bed, bed.side[0].tx);

	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	msg.context = ctx(4);
	POST(&bed, fi_tsendmsg(bed.side[0].ep, &msg, 0));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	NO_COMPLETION(&bed, bed.side[0].tx);

	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(5)));
	msg.context = ctx(6);
	POST(&bed, fi_tsendmsg(bed.side[0].ep, &msg, FI_COMPLETION));
	COMPLETION(&bed, bed.side[1].rx, ctx(5));
	COMPLETION(&bed, bed.side[0].tx, ctx(6));
	close_bed(&bed);
}

static void selective_receives(void)
{
	struct setup s = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct iovec iov = { in + 64, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1, .addr = FI_ADDR_UNSPEC };
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;

	open_bed(&bed, &s);
	fill(out, 8, 7);
	memset(in, 0, sizeof(in));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	while (mismatch(in, 8, 7) >= 0 && now_ms() < until)
		progress(&bed);
	SAME(in, 8, 7);
	NO_COMPLETION(&bed, bed.side[1].rx);
	msg.context = ctx(3);
	POST(&bed, fi_trecvmsg(bed.side[1].ep, &msg, FI_COMPLETION));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(4)));
	COMPLETION(&bed, bed.side[0].tx, ctx(4));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	close_bed(&bed);
}

static void selective_reports_errors(void)
{
	struct setup s = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct fi_cq_err_entry err;
	struct bed bed;

	open_bed(&bed, &s);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ETRUNC, "err %d", err.err);
	close_bed(&bed);
}

static void selective_by_default_flags(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION, .tx_flags = FI_COMPLETION };
	struct bed bed;

	open_bed(&bed, &s);
	start(&bed, 1, 8, 1, 2);
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	close_bed(&bed);
}

static void inject_is_silent(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tinject(bed.side[0].ep, out, 8, bed.side[1].addr, 1));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_bed(&bed);
}

/* ---- flags of completions ---- */

static void flags_of(bool tagged)
{
	struct setup s = { .cq_size = 0 };
	struct fi_cq_tagged_entry tx, rx;
	uint64_t kind = tagged ? FI_TAGGED : FI_MSG, mask = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_MULTI_RECV | FI_REMOTE_CQ_DATA;
	struct bed bed;

	open_bed(&bed, &s);
	if (tagged) {
		start(&bed, 1, 8, 1, 2);
	} else {
		POST(&bed, fi_recv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, ctx(1)));
		POST(&bed, fi_send(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, ctx(2)));
	}
	tx = COMPLETION(&bed, bed.side[0].tx, ctx(2));
	rx = COMPLETION(&bed, bed.side[1].rx, ctx(1));
	CHECK((tx.flags & mask) == (FI_SEND | kind), "sent: 0x%llx", (unsigned long long) tx.flags);
	CHECK((rx.flags & mask) == (FI_RECV | kind), "received: 0x%llx", (unsigned long long) rx.flags);
	close_bed(&bed);
}

static void flags_of_messages(void) { flags_of(false); }
static void flags_of_tagged_messages(void) { flags_of(true); }

/* ---- when a send completes ---- */

static void level(uint64_t flag, bool after_match)
{
	struct iovec iov = { out, 64 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1, .context = ctx(2) };
	struct bed bed;

	open_bed(&bed, &usual);
	msg.addr = bed.side[1].addr;
	fill(out, 64, 5);
	TRY(&bed, fi_tsendmsg(bed.side[0].ep, &msg, flag | FI_COMPLETION));
	if (after_match)
		NO_COMPLETION(&bed, bed.side[0].tx);
	else if (flag == FI_INJECT_COMPLETE) /* the buffer is free when the completion is there, and nothing need match */
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 64, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	if (flag != FI_INJECT_COMPLETE)
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	SAME(in, 64, 5);
	close_bed(&bed);
}

static void inject_complete(void) { level(FI_INJECT_COMPLETE, false); }
static void transmit_complete(void) { level(FI_TRANSMIT_COMPLETE, false); }
static void delivery_complete(void) { level(FI_DELIVERY_COMPLETE, true); }
static void match_complete(void) { level(FI_MATCH_COMPLETE, true); }

static void delivery_complete_by_default(void)
{
	struct setup s = { .tx_flags = FI_DELIVERY_COMPLETE };
	struct bed bed;

	open_bed(&bed, &s);
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	NO_COMPLETION(&bed, bed.side[0].tx);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	close_bed(&bed);
}

/* ---- the queue's room ---- */

/* Many more completions than the queue is said to hold: either all come, or the queue says that it was overrun. */
static void nothing_is_lost(enum fi_resource_mgmt management)
{
	enum { MANY = 300 };
	struct setup s = { .cq_size = 16, .resource_mgmt = management };
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	int posted = 0, tried = 0, got = 0;
	ssize_t ret;

	open_bed(&bed, &s);
	ping(&bed, 0, 1); /* connects them */
	/* Nobody reads while these are posted; a full queue may say -FI_EAGAIN. */
	while (posted < MANY && tried++ < 10 * MANY) {
		if (fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(posted)) == 0)
			posted++;
		else
			progress(&bed);
	}
	CHECK(posted >= 16, "only %d sends could be posted", posted);
	for (tried = 0; tried < posted; tried++) {
		POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1000 + tried)));
		progress(&bed);
	}
	settle(&bed);
	while (got < posted && now_ms() < until) {
		ret = fi_cq_read(bed.side[1].rx, &e, 1);
		if (ret == -FI_EAVAIL) {
			CHECK(management == FI_RM_DISABLED, "overrun in spite of FI_RM_ENABLED");
			OK(fi_cq_readerr(bed.side[1].rx, &err, 0) == 1 ? 0 : -1);
			CHECK(err.err == FI_EOVERRUN, "err %d", err.err);
			break;
		}
		progress(&bed);
		got += ret == 1;
	}
	CHECK(got == posted || err.err == FI_EOVERRUN, "%d of %d receives, and no word of an overrun", got, posted);
	for (got = 0; got < posted && !err.err; got++)
		COMPLETION(&bed, bed.side[0].tx, ctx(got));
	_exit((printf("ok %s\n", case_name), 0));
}

static void small_queue_with_rm(void) { nothing_is_lost(FI_RM_ENABLED); }
static void small_queue_without_rm(void) { nothing_is_lost(FI_RM_DISABLED); }

static void sizes_are_minimums(void)
{
	static const size_t sizes[] = { 0, 1, 7, 1024, 65536 };
	struct setup s = { 0 };
	unsigned i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct bed bed;

		s.cq_size = sizes[i];
		open_bed(&bed, &s);
		ping(&bed, 0, 1);
		close_bed(&bed);
	}
}

static void close_while_in_use(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	GIVES(-FI_EBUSY, fi_close(&bed.side[0].tx->fid));
	GIVES(-FI_EBUSY, fi_close(&bed.side[1].rx->fid));
	ping(&bed, 0, 1);
	close_bed(&bed);
}

static void close_with_entries(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	start(&bed, 1, 8, 1, 2);
	settle(&bed);
	close_bed(&bed); /* what is in the queue is lost, and nothing else happens */
}

/* Sends and receives of one endpoint in one queue. */
static void one_queue_for_both(void)
{
	struct fi_cq_tagged_entry e;
	struct fid_ep *ep;
	struct bed bed;
	int sends = 0, receives = 0, i;

	open_bed(&bed, &usual);
	OK(fi_endpoint(bed.domain, bed.info, &ep, NULL));
	OK(fi_ep_bind(ep, &bed.av->fid, 0));
	OK(fi_ep_bind(ep, &bed.side[0].tx->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	POST(&bed, fi_trecv(ep, in, 8, NULL, FI_ADDR_UNSPEC, 2, 0, ctx(1)));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	POST(&bed, fi_tsend(ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	memset(&bed.side[2], 0, sizeof(bed.side[2]));
	bed.side[2].ep = ep;
	learn_name(&bed.side[2]);
	GIVES(1, insert_sides(&bed, bed.av, 2, 1, &bed.side[2].addr, 0, NULL));
	POST(&bed, fi_tsend(bed.side[1].ep, out, 8, NULL, bed.side[2].addr, 2, ctx(4)));
	for (i = 0; i < 2; i++) {
		GIVES(1, next(&bed, bed.side[0].tx, &e));
		sends += !!(e.flags & FI_SEND);
		receives += !!(e.flags & FI_RECV);
	}
	CHECK(sends == 1 && receives == 1, "%d sends, %d receives", sends, receives);
	close_bed(&bed);
}

/* Every thread may read: each completion comes out once. */
struct reader {
	struct bed *bed;
	volatile int *left;
	int got;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct fi_cq_tagged_entry e;
	long until = now_ms() + GIVE_UP_MS;

	while (*r->left > 0 && now_ms() < until)
		if (fi_cq_read(r->bed->side[1].rx, &e, 1) == 1) {
			r->got++;
			__atomic_sub_fetch(r->left, 1, __ATOMIC_SEQ_CST);
		}
	return NULL;
}

static void many_readers(void)
{
	enum { MESSAGES = 2000 };
	struct setup s = { .threading = FI_THREAD_SAFE };
	volatile int left = MESSAGES;
	struct reader readers[2];
	pthread_t threads[2];
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	for (i = 0; i < 2; i++) {
		readers[i] = (struct reader){ .bed = &bed, .left = &left };
		CHECK(pthread_create(&threads[i], NULL, read_on, &readers[i]) == 0, "pthread_create");
	}
	for (i = 0; i < MESSAGES; i++) {
		POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
		POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2000)));
		COMPLETION(&bed, bed.side[0].tx, ctx(2000));
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(readers[0].got + readers[1].got == MESSAGES, "%d completions of %d", readers[0].got + readers[1].got, MESSAGES);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(format_context), TEST(format_msg), TEST(format_data), TEST(format_tagged), TEST(format_unspec),
	TEST(format_unknown), TEST(affinity_is_a_hint), TEST(empty_says_eagain), TEST(count_limits),
	TEST(count_of_zero_takes_nothing), TEST(one_entry_each), TEST(readfrom_gives_the_source),
	TEST(readfrom_without_fi_source), TEST(unknown_source_is_notavail), TEST(unknown_source_with_source_err),
	TEST(readerr_without_error), TEST(error_stands_in_the_way), TEST(errors_keep_their_place),
	TEST(truncation_is_an_error), TEST(truncation_says_what_was_placed), TEST(readerr_before_1_5),
#if HEADERS_2
	TEST(readerr_before_1_20),
#endif
	TEST(readerr_today), TEST(err_data_into_the_users_buffer), TEST(strerror_of_an_error), TEST(sread_none_is_invalid),
	TEST(wait_unspec), TEST(wait_fd), TEST(wait_mutex_cond), TEST(wait_yield), TEST(sread_reports_errors),
	TEST(sread_wakes_for_the_other_process), TEST(fd_wakes_for_the_other_process), TEST(signal_wakes),
	TEST(threshold_is_taken), TEST(getwaitobj), TEST(getwait_without_an_object), TEST(getwait_mutex_cond),
	TEST(fd_in_poll), TEST(fd_in_epoll), TEST(fd_wakes_poll), TEST(wait_set), TEST(wait_set_without_one),
	TEST(selective_sends), TEST(selective_receives), TEST(selective_reports_errors), TEST(selective_by_default_flags),
	TEST(inject_is_silent), TEST(flags_of_messages), TEST(flags_of_tagged_messages), TEST(inject_complete),
	TEST(transmit_complete), TEST(delivery_complete), TEST(match_complete), TEST(delivery_complete_by_default),
	TEST(small_queue_with_rm), TEST(small_queue_without_rm), TEST(sizes_are_minimums), TEST(close_while_in_use),
	TEST(close_with_entries), TEST(one_queue_for_both), TEST(many_readers),
};

MAIN(tests)

/* The formats of entries, and how they are read. */
#include <limits.h>
#include "cq.h"

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
	POST(&bed, post_recv(bed.side[1].ep, in, 200, FI_ADDR_UNSPEC, 7, 0, ctx(1)));
	POST(&bed, post_recv(bed.side[1].ep, in + 200, 200, FI_ADDR_UNSPEC, 8, 0, ctx(2)));
	POST(&bed, post_senddata(bed.side[0].ep, out, 100, 0x1234567, bed.side[1].addr, 7, ctx(3)));
	POST(&bed, post_send(bed.side[0].ep, out, 50, bed.side[1].addr, 8, ctx(4)));
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
		CHECK((e->flags & (FI_RECV | FI_SEND | FI_TAGGED | FI_MSG | FI_RMA)) == (FI_RECV | kind()), "flags 0x%llx",
		      (unsigned long long) e->flags);
		CHECK(e->len == (i ? 50 : 100), "entry %zu: %zu bytes", i, e->len);
		if (size < sizeof(struct fi_cq_data_entry))
			continue;
		CHECK(!(e->flags & FI_REMOTE_CQ_DATA) == (i == 1), "FI_REMOTE_CQ_DATA, flags 0x%llx", (unsigned long long) e->flags);
		CHECK(i || e->data == 0x1234567, "data 0x%llx", (unsigned long long) e->data);
		if (tagged && size == sizeof(struct fi_cq_tagged_entry))
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

/* ---- flags of completions ---- */

static void flags_of(bool tags)
{
	struct setup s = { .caps = tags ? FI_MSG | FI_TAGGED : 0 };
	struct fi_cq_tagged_entry tx, rx;
	uint64_t wanted = tags ? FI_TAGGED : FI_MSG, mask = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_MULTI_RECV | FI_REMOTE_CQ_DATA;
	struct bed bed;

	open_bed(&bed, &s);
	if (tags) {
		start(&bed, 1, 8, 1, 2);
	} else {
		POST(&bed, fi_recv(bed.side[1].ep, in, 8, desc, FI_ADDR_UNSPEC, ctx(1)));
		POST(&bed, fi_send(bed.side[0].ep, out, 8, desc, bed.side[1].addr, ctx(2)));
	}
	tx = COMPLETION(&bed, bed.side[0].tx, ctx(2));
	rx = COMPLETION(&bed, bed.side[1].rx, ctx(1));
	CHECK((tx.flags & mask) == (FI_SEND | wanted), "sent: 0x%llx", (unsigned long long) tx.flags);
	CHECK((rx.flags & mask) == (FI_RECV | wanted), "received: 0x%llx", (unsigned long long) rx.flags);
	close_bed(&bed);
}

static void flags_of_messages(void) { flags_of(false); }
static void flags_of_tagged_messages(void) { flags_of(true); }

static const struct test tests[] = {
	TEST(format_context), TEST(format_msg), TEST(format_data), TEST(format_tagged), TEST(format_unspec),
	TEST(format_unknown), TEST(affinity_is_a_hint), TEST(empty_says_eagain), TEST(count_limits),
	TEST(count_of_zero_takes_nothing), TEST(one_entry_each), TEST(readfrom_gives_the_source),
	TEST(readfrom_without_fi_source), TEST(unknown_source_is_notavail), TEST(unknown_source_with_source_err),
	TEST(flags_of_messages), TEST(flags_of_tagged_messages),
};

CASES(tests)

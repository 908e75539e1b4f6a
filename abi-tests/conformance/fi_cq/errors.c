/* Errors: how they stand in the queue, and what they say. */
#include "cq.h"

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
	CHECK((err.flags & (FI_RECV | kind())) == (FI_RECV | kind()), "flags 0x%llx", (unsigned long long) err.flags);
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

	NOTHING_IS_LOST;
	open_bed(&bed, &usual);
	fill(out, 300, 4);
	memset(in, '#', sizeof(in));
	POST(&bed, post_recv(bed.side[1].ep, in, 100, FI_ADDR_UNSPEC, 6, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 300, bed.side[1].addr, 6, ctx(2)));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx);
	CHECK(err.err == FI_ETRUNC, "err %d (%s)", err.err, fi_strerror(err.err));
	CHECK(err.op_context == ctx(1) && (!tagged || err.tag == 6), "tag %llu", (unsigned long long) err.tag);
	CHECK(err.olen == 200, "olen %zu of 200 that did not fit", err.olen);
	CHECK(in[100] == '#', "wrote behind the buffer");
	close_bed(&bed);
}

static void truncation_says_what_was_placed(void)
{
	struct fi_cq_err_entry err;
	struct bed bed;

	NOTHING_IS_LOST;
	open_bed(&bed, &usual);
	fill(out, 300, 4);
	POST(&bed, post_recv(bed.side[1].ep, in, 100, FI_ADDR_UNSPEC, 6, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 300, bed.side[1].addr, 6, ctx(2)));
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

static const struct test tests[] = {
	TEST(readerr_without_error), TEST(error_stands_in_the_way), TEST(errors_keep_their_place),
	TEST(truncation_is_an_error), TEST(truncation_says_what_was_placed), TEST(readerr_before_1_5),
#if HEADERS_2
	TEST(readerr_before_1_20),
#endif
	TEST(readerr_today), TEST(err_data_into_the_users_buffer), TEST(strerror_of_an_error),
};

CASES(tests)

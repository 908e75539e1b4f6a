/* FI_AV_USER_ID: the application chooses what a receive reports as its source. */
#include "av.h"

static void user_id_at_insert(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .strangers = true, .av_type = FI_AV_TABLE };
	struct bed bed;
	fi_addr_t addr = 0xabcdef;

	open_bed(&bed, &s);
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addr, FI_AV_USER_ID, NULL));
	CHECK(addr == 0, "the address is %llu, not the index", (unsigned long long) addr);
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	CHECK(source_seen(&bed) == 0xabcdef, "the source is not the user's id");
	bed.side[0].addr = addr;
	ping(&bed, 1, 0); /* and the returned address is what sends go to */
	close_bed(&bed);
}

#if HEADERS_2
static void user_id_by_av(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .av_flags = FI_AV_USER_ID };
	struct bed bed;
	int ret;

	open_bed(&bed, &s);
	CHECK(source_seen(&bed) == FI_ADDR_NOTAVAIL, "an id before one was set");
	ret = fi_av_set_user_id(bed.av, bed.side[0].addr, 0x77, 0);
	NEED(!lacking(ret), "fi_av_set_user_id: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set_user_id: %d", ret);
	CHECK(source_seen(&bed) == 0x77, "the source is not the user's id");
	OK(fi_av_set_user_id(bed.av, bed.side[0].addr, 0x78, 0));
	CHECK(source_seen(&bed) == 0x78, "the id cannot be changed");
	close_bed(&bed);
}

static void user_id_not_by_both(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .av_flags = FI_AV_USER_ID, .strangers = true };
	struct bed bed;
	fi_addr_t addr = 5;

	open_bed(&bed, &s);
	CHECK(insert_sides(&bed, bed.av, 0, 1, &addr, FI_AV_USER_ID, NULL) != 1, "FI_AV_USER_ID at open and at insertion");
	close_bed(&bed);
}

/* fi_domain(3): without the domain's capability no AV has identifiers. */
static void user_id_needs_the_domain(void)
{
	struct setup s = { .domain_caps = FI_LOCAL_COMM };
	struct fi_av_attr attr = { .flags = FI_AV_USER_ID };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &s);
	CHECK(!(bed.info->domain_attr->caps & FI_AV_USER_ID), "a capability that nobody asked for");
	FAILS(fi_av_open(bed.domain, &attr, &av, NULL));
	close_bed(&bed);
}

/* Who comes to a place that became free does not have the identifier of who went. */
static void user_id_goes_with_its_address(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .strangers = true, .av_type = FI_AV_TABLE };
	struct bed bed;
	fi_addr_t addr = 0xabcdef;

	open_bed(&bed, &s);
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addr, FI_AV_USER_ID, NULL));
	CHECK(source_seen(&bed) == 0xabcdef, "the source is not the user's id");
	OK(fi_av_remove(bed.av, &addr, 1, 0));
	CHECK(source_seen(&bed) == FI_ADDR_NOTAVAIL, "the source is one who was removed");
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addr, 0, NULL));
	CHECK(addr == 1, "index %llu", (unsigned long long) addr);
	CHECK(source_seen(&bed) == 1, "the source is not the index");
	close_bed(&bed);
}

static void set_user_id_needs_the_flag(void)
{
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	ret = fi_av_set_user_id(bed.av, bed.side[0].addr, 7, 0);
	CHECK(ret < 0, "fi_av_set_user_id on an AV without FI_AV_USER_ID: %d", ret);
	close_bed(&bed);
}
#endif

static const struct test tests[] = {
	TEST(user_id_at_insert),
#if HEADERS_2
	TEST(user_id_by_av), TEST(user_id_not_by_both), TEST(set_user_id_needs_the_flag),
	TEST(user_id_needs_the_domain), TEST(user_id_goes_with_its_address),
#endif
};

CASES(tests)

/* fi_av_set(3): sets of addresses. No call lists the members; membership shows in what insert and remove answer. */
#include <rdma/fi_collective.h>
#include "fabric.h"

enum { MEMBERS = 8 };

static const struct setup table = { .av_type = FI_AV_TABLE };

static struct fid_av_set *open_set(struct bed *bed, struct fi_av_set_attr *attr)
{
	struct fid_av_set *set;
	int ret = fi_av_set(bed->av, attr, &set, ctx(1));

	NEED(!lacking(ret), "fi_av_set: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set: %s", fi_strerror(-ret));
	return set;
}

static void open_table(struct bed *bed)
{
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	size_t len;
	unsigned i;

	open_av(bed, &table);
	for (i = 0; i < MEMBERS; i++) {
		made_up_name(bed, i, name, &len);
		GIVES(1, fi_av_insert(bed->av, name, 1, &addr, 0, NULL));
		CHECK(addr == i, "index %llu", (unsigned long long) addr);
	}
}

static struct fid_av_set *range(struct bed *bed, fi_addr_t first, fi_addr_t last, uint64_t stride)
{
	struct fi_av_set_attr attr = { .count = MEMBERS, .start_addr = first, .end_addr = last, .stride = stride };

	return open_set(bed, &attr);
}

static struct fid_av_set *empty(struct bed *bed)
{
	return range(bed, FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0);
}

/* The members as bits: a member can be removed, and is put back. */
static unsigned members(struct fid_av_set *set)
{
	unsigned bits = 0;
	fi_addr_t i;

	for (i = 0; i < MEMBERS; i++)
		if (fi_av_set_remove(set, i) == 0) {
			bits |= 1u << i;
			OK(fi_av_set_insert(set, i));
		}
	return bits;
}

#define MEMBERS_ARE(set, wanted)                                                     \
	do {                                                                         \
		unsigned members_ = members(set);                                    \
		CHECK(members_ == (wanted), "members 0x%x, not 0x%x", members_, (unsigned) (wanted)); \
	} while (0)

static void starts_empty(void)
{
	struct fid_av_set *set;
	struct bed bed;

	open_table(&bed);
	set = empty(&bed);
	CHECK(set->fid.fclass == FI_CLASS_AV_SET, "class %zu", set->fid.fclass);
	MEMBERS_ARE(set, 0);
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void starts_with_a_range(void)
{
	struct fid_av_set *set;
	struct bed bed;

	open_table(&bed);
	set = range(&bed, 2, 5, 1);
	MEMBERS_ARE(set, 0x3c);
	OK(fi_close(&set->fid));
	set = range(&bed, 1, 7, 3); /* 1, 4, 7 */
	MEMBERS_ARE(set, 0x92);
	OK(fi_close(&set->fid));
	set = range(&bed, 3, 3, 1);
	MEMBERS_ARE(set, 0x08);
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void universe_holds_all(void)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .flags = FI_UNIVERSE };
	struct fid_av_set *set;
	struct bed bed;

	open_table(&bed);
	set = open_set(&bed, &attr);
	MEMBERS_ARE(set, 0xff);
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void insert_and_remove(void)
{
	struct fid_av_set *set;
	struct bed bed;

	open_table(&bed);
	set = empty(&bed);
	OK(fi_av_set_insert(set, 3));
	OK(fi_av_set_insert(set, 1));
	MEMBERS_ARE(set, 0x0a);
	OK(fi_av_set_remove(set, 3));
	MEMBERS_ARE(set, 0x02);
	FAILS(fi_av_set_remove(set, 3));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void set_operations(void)
{
	struct fid_av_set *a, *b;
	struct bed bed;

	open_table(&bed);
	a = range(&bed, 0, 4, 1);
	b = range(&bed, 3, 6, 1);
	OK(fi_av_set_union(a, b));
	MEMBERS_ARE(a, 0x7f);
	MEMBERS_ARE(b, 0x78); /* the source stays */
	OK(fi_close(&a->fid));
	a = range(&bed, 0, 4, 1);
	OK(fi_av_set_intersect(a, b));
	MEMBERS_ARE(a, 0x18);
	OK(fi_close(&a->fid));
	a = range(&bed, 0, 4, 1);
	OK(fi_av_set_diff(a, b));
	MEMBERS_ARE(a, 0x07);
	OK(fi_close(&a->fid));
	OK(fi_close(&b->fid));
	close_bed(&bed);
}

static void gives_an_address(void)
{
	struct fid_av_set *set;
	struct bed bed;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret;

	open_table(&bed);
	set = range(&bed, 0, 4, 1);
	ret = fi_av_set_addr(set, &addr);
	NEED(!lacking(ret), "fi_av_set_addr: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set_addr: %s", fi_strerror(-ret));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void holds_its_av(void)
{
	struct fid_av_set *set;
	struct bed bed;

	open_table(&bed);
	set = empty(&bed);
	GIVES(-FI_EBUSY, fi_close(&bed.av->fid));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(starts_empty), TEST(starts_with_a_range), TEST(universe_holds_all), TEST(insert_and_remove), TEST(set_operations),
	TEST(gives_an_address), TEST(holds_its_av),
};

CASES(tests)

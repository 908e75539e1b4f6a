/* What can be registered, and what a region is bound to. */
#include "mr.h"

static void registers(void)
{
	struct fid_mr *mr;
	struct bed bed;

	open_domain_for_regions(&bed);
	mr = reg(&bed, memory, sizeof(memory), 5);
	CHECK(mr->fid.fclass == FI_CLASS_MR, "class %zu", mr->fid.fclass);
	CHECK(mr->fid.context == ctx(1), "the fid has another context");
	CHECK(fi_mr_key(mr) != FI_KEY_NOTAVAIL, "no key");
	(void) fi_mr_desc(mr); /* may be anything, NULL too */
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static void regions_overlap(void)
{
	struct fid_mr *mr[4];
	struct bed bed;
	int i;

	open_domain_for_regions(&bed);
	for (i = 0; i < 4; i++)
		mr[i] = reg(&bed, memory + i * 10, 1000, (uint64_t) i);
	for (i = 0; i < 4; i++)
		OK(fi_close(&mr[i]->fid));
	close_bed(&bed);
}

static void many_regions(void)
{
	static struct fid_mr *mr[2000];
	struct bed bed;
	int i;

	open_domain_for_regions(&bed);
	for (i = 0; i < 2000; i++)
		mr[i] = reg(&bed, memory + i, 16, (uint64_t) i);
	if (user_keys(&bed))
		for (i = 0; i < 2000; i++)
			CHECK(fi_mr_key(mr[i]) == (uint64_t) i, "key 0x%llx", (unsigned long long) fi_mr_key(mr[i]));
	for (i = 0; i < 2000; i++)
		OK(fi_close(&mr[i]->fid));
	close_bed(&bed);
}

static void flags_that_are_not_known(void)
{
	struct fid_mr *mr;
	struct bed bed;

	open_domain_for_regions(&bed);
	GIVES(-FI_EBADFLAGS, fi_mr_reg(bed.domain, memory, 100, REMOTE, 0, 5, FI_INJECT, &mr, NULL));
	close_bed(&bed);
}

static void each_access(void)
{
	static const uint64_t kinds[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct fid_mr *mr;
	struct bed bed;
	unsigned i;

	open_domain_for_regions(&bed);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		OK(fi_mr_reg(bed.domain, memory, 100, kinds[i], 0, 5, 0, &mr, NULL));
		OK(fi_close(&mr->fid));
	}
	close_bed(&bed);
}

static void vectors(void)
{
	struct iovec iov[2] = { { memory, 100 }, { memory + 1000, 200 } };
	struct fid_mr *mr;
	struct bed bed;
	size_t count;

	open_domain_for_regions(&bed);
	count = bed.info->domain_attr->mr_iov_limit;
	CHECK(count >= 1, "mr_iov_limit is 0");
	OK(fi_mr_regv(bed.domain, iov, count < 2 ? count : 2, REMOTE, 0, 5, 0, &mr, NULL));
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static void too_many_pieces(void)
{
	struct iovec iov[64];
	struct fid_mr *mr;
	struct bed bed;
	size_t count, i;

	open_domain_for_regions(&bed);
	count = bed.info->domain_attr->mr_iov_limit + 1;
	if (count > 64)
		SKIP("mr_iov_limit is %zu", count - 1);
	for (i = 0; i < count; i++) {
		iov[i].iov_base = memory + 100 * i;
		iov[i].iov_len = 10;
	}
	FAILS(fi_mr_regv(bed.domain, iov, count, REMOTE, 0, 5, 0, &mr, NULL));
	close_bed(&bed);
}

static void attributes(void)
{
	struct iovec iov = { memory, 100 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = REMOTE, .requested_key = 9, .context = ctx(4) };
	struct fid_mr *mr;
	struct bed bed;

	open_domain_for_regions(&bed);
	OK(fi_mr_regattr(bed.domain, &attr, 0, &mr));
	CHECK(mr->fid.context == ctx(4), "the fid has another context");
	CHECK(!user_keys(&bed) || fi_mr_key(mr) == 9, "key 0x%llx", (unsigned long long) fi_mr_key(mr));
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

#if HEADERS_2
/* What a program of an older API has behind its attributes is not looked at. */
static void attributes_of_an_old_program(void)
{
	struct setup s = { .version = FI_VERSION(1, 9), .more_caps = FI_RMA };
	struct iovec iov = { memory, 100 };
	struct fi_mr_attr attr;
	struct fid_mr *mr;
	struct bed bed;

	memset(&attr, 0xee, sizeof(attr));
	attr.mr_iov = &iov;
	attr.iov_count = 1;
	attr.access = REMOTE;
	attr.offset = 0;
	attr.requested_key = 5;
	attr.context = NULL;
	attr.auth_key_size = 0;
	attr.auth_key = NULL;
	attr.iface = FI_HMEM_SYSTEM;
	attr.device.reserved = 0;
	open_domain(&bed, &s);
	OK(fi_mr_regattr(bed.domain, &attr, 0, &mr));
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}
#endif

/* This parameter is reserved for future use and must be 0. */
static void no_offset(void)
{
	struct fid_mr *mr;
	struct bed bed;

	if (!strict)
		SKIP("the page does not say what happens");
	open_domain_for_regions(&bed);
	GIVES(-FI_EINVAL, fi_mr_reg(bed.domain, memory, 100, REMOTE, 8, 5, 0, &mr, NULL));
	close_bed(&bed);
}

#if HEADERS_2
static void device_memory(void)
{
	struct fi_mr_dmabuf buf = { .fd = 0, .len = 100, .base_addr = memory };
	struct fi_mr_attr attr = { .dmabuf = &buf, .iov_count = 1, .access = REMOTE, .requested_key = 5 };
	struct fid_mr *mr;
	struct bed bed;

	if (!strict)
		SKIP("only usable for domains opened with FI_HMEM");
	open_domain_for_regions(&bed);
	GIVES(-FI_EOPNOTSUPP, fi_mr_regattr(bed.domain, &attr, FI_MR_DMABUF, &mr));
	close_bed(&bed);
}

/* A region made of a part of another has a key and rights of its own, and keeps the other open. */
static void a_part_of_a_region(void)
{
	struct iovec iov = { memory + 100, 50 }, outside = { memory + 180, 50 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ, .requested_key = 6, .sub_mr_cnt = 0 };
	struct fid_mr *mr, *part;
	struct bed bed;

	if (!strict)
		SKIP("young");
	open_domain_for_regions(&bed);
	mr = reg(&bed, memory, 200, 5);
	attr.base_mr = mr;
	OK(fi_mr_regattr(bed.domain, &attr, 0, &part));
	CHECK(!user_keys(&bed) || fi_mr_key(part) == 6, "key 0x%llx", (unsigned long long) fi_mr_key(part));
	GIVES(-FI_EBUSY, fi_close(&mr->fid));
	OK(fi_close(&part->fid));
	attr.mr_iov = &outside;
	GIVES(-FI_EINVAL, fi_mr_regattr(bed.domain, &attr, 0, &part));
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}
#endif

/* The description goes with the buffer, also where it need not. */
static void descriptions_in_transfers(void)
{
	struct fid_mr *mr;
	struct bed bed;
	char *out = memory, *in = memory + 1000;

	open_bed(&bed, &usual);
	OK(fi_mr_reg(bed.domain, memory, sizeof(memory), FI_SEND | FI_RECV, 0, 5, 0, &mr, NULL));
	if (bed.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		OK(fi_mr_bind(mr, &bed.side[0].ep->fid, 0));
		OK(fi_mr_enable(mr));
	}
	fill(out, 100, 1);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 100, fi_mr_desc(mr), FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 100, fi_mr_desc(mr), bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	SAME(in, 100, 1);
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static void refresh(void)
{
	struct iovec iov = { memory, 100 };
	struct fid_mr *mr;
	struct bed bed;
	int ret;

	open_domain_for_regions(&bed);
	mr = reg(&bed, memory, 1000, 5);
	ret = fi_mr_refresh(mr, &iov, 1, 0);
	NEED(!lacking(ret), "fi_mr_refresh: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_mr_refresh: %s", fi_strerror(-ret));
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static void bind_to_a_counter(void)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct bed bed;
	int ret;

	open_domain_for_regions(&bed);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	mr = reg(&bed, memory, 1000, 5);
	ret = fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE);
	NEED(!lacking(ret), "fi_mr_bind: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_mr_bind: %s", fi_strerror(-ret));
	GIVES(-FI_EBUSY, fi_close(&cntr->fid));
	OK(fi_close(&mr->fid));
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(registers), TEST(regions_overlap), TEST(many_regions), TEST(flags_that_are_not_known),
	TEST(each_access), TEST(vectors), TEST(too_many_pieces), TEST(attributes), TEST(descriptions_in_transfers),
	TEST(refresh), TEST(bind_to_a_counter), TEST(no_offset),
#if HEADERS_2
	TEST(device_memory), TEST(a_part_of_a_region), TEST(attributes_of_an_old_program),
#endif
};

CASES(tests)

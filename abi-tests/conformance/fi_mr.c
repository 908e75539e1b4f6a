/* fi_mr(3): registering memory. What peers then do with it is fi_rma's and fi_atomic's. */
#include "fabric.h"

static const struct setup usual;
static char memory[65536];

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

static bool user_keys(struct bed *bed)
{
	return !(bed->info->domain_attr->mr_mode & FI_MR_PROV_KEY);
}

static struct fid_mr *reg(struct bed *bed, const void *buf, size_t len, uint64_t key)
{
	struct fid_mr *mr;

	OK(fi_mr_reg(bed->domain, buf, len, REMOTE, 0, key, 0, &mr, ctx(1)));
	return mr;
}

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

static void requested_key_is_given(void)
{
	static const uint64_t keys[] = { 0, 1, 77, 0x7fffffff };
	struct fid_mr *mr;
	struct bed bed;
	unsigned i;

	open_domain_for_regions(&bed);
	if (!user_keys(&bed))
		SKIP("the provider chooses the keys");
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		mr = reg(&bed, memory, sizeof(memory), keys[i]);
		CHECK(fi_mr_key(mr) == keys[i], "key 0x%llx, not 0x%llx", (unsigned long long) fi_mr_key(mr), (unsigned long long) keys[i]);
		OK(fi_close(&mr->fid));
	}
	close_bed(&bed);
}

static void a_key_is_used_once(void)
{
	struct fid_mr *mr, *other;
	struct bed bed;

	open_domain_for_regions(&bed);
	if (!user_keys(&bed))
		SKIP("the provider chooses the keys");
	mr = reg(&bed, memory, 100, 5);
	GIVES(-FI_ENOKEY, fi_mr_reg(bed.domain, memory + 200, 100, REMOTE, 0, 5, 0, &other, NULL));
	OK(fi_close(&mr->fid));
	mr = reg(&bed, memory + 200, 100, 5); /* free again */
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static void keys_of_two_domains_are_apart(void)
{
	struct fid_domain *other;
	struct fid_mr *mr, *mr2;
	struct bed bed;

	open_domain_for_regions(&bed);
	OK(fi_domain(bed.fabric, bed.info, &other, NULL));
	mr = reg(&bed, memory, 100, 5);
	OK(fi_mr_reg(other, memory, 100, REMOTE, 0, 5, 0, &mr2, NULL));
	OK(fi_close(&mr2->fid));
	OK(fi_close(&mr->fid));
	OK(fi_close(&other->fid));
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

static void raw_attributes(void)
{
	uint8_t key[64];
	uint64_t base = 1;
	size_t size = sizeof(key), small = 0;
	struct fid_mr *mr;
	struct bed bed;
	int ret;

	open_domain_for_regions(&bed);
	mr = reg(&bed, memory, 100, 5);
	ret = fi_mr_raw_attr(mr, &base, key, &size, 0);
	NEED(!lacking(ret), "fi_mr_raw_attr: %s", fi_strerror(-ret));
	CHECK(ret == 0 && size && size <= sizeof(key), "fi_mr_raw_attr: %d, %zu bytes", ret, size);
	GIVES(-FI_ETOOSMALL, fi_mr_raw_attr(mr, &base, key, &small, 0));
	CHECK(small == size, "needs %zu bytes, but says %zu", size, small);
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static void map_and_unmap_a_raw_key(void)
{
	uint8_t raw[64];
	uint64_t base, key = 0;
	size_t size = sizeof(raw);
	struct fid_mr *mr;
	struct bed bed;
	int ret;

	open_domain_for_regions(&bed);
	mr = reg(&bed, memory, 100, 5);
	ret = fi_mr_raw_attr(mr, &base, raw, &size, 0);
	NEED(!lacking(ret), "fi_mr_raw_attr: %s", fi_strerror(-ret));
	OK(ret);
	ret = fi_mr_map_raw(bed.domain, base, raw, size, &key, 0);
	NEED(!lacking(ret), "fi_mr_map_raw: %s", fi_strerror(-ret));
	CHECK(ret == 0 && key == fi_mr_key(mr), "fi_mr_map_raw: %d, key 0x%llx", ret, (unsigned long long) key);
	OK(fi_mr_unmap_key(bed.domain, key));
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
	TEST(registers), TEST(requested_key_is_given), TEST(a_key_is_used_once), TEST(keys_of_two_domains_are_apart),
	TEST(regions_overlap), TEST(many_regions),
	TEST(flags_that_are_not_known), TEST(each_access), TEST(vectors), TEST(too_many_pieces),
	TEST(attributes), TEST(descriptions_in_transfers), TEST(raw_attributes), TEST(map_and_unmap_a_raw_key), TEST(refresh),
	TEST(bind_to_a_counter),
};

MAIN(tests)

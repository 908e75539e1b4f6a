/* Keys: who chooses them, raw ones, and those that authorize. */
#include "mr.h"

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

/* A key that nobody but the library may have is not needed for memory that no peer reaches. */
static void local_memory_takes_no_key(void)
{
	struct fid_mr *mr[3], *remote;
	struct bed bed;
	int i;

	if (!strict)
		SKIP("the requested key may be ignored then, or not");
	open_domain_for_regions(&bed);
	for (i = 0; i < 3; i++)
		OK(fi_mr_reg(bed.domain, memory, 100, FI_SEND | FI_RECV, 0, 5, 0, &mr[i], NULL));
	remote = reg(&bed, memory, 100, 5);
	OK(fi_close(&remote->fid));
	for (i = 0; i < 3; i++)
		OK(fi_close(&mr[i]->fid));
	close_bed(&bed);
}

static void a_key_that_is_too_wide(void)
{
	struct fid_mr *mr;
	struct bed bed;
	size_t size;

	open_domain_for_regions(&bed);
	size = bed.info->domain_attr->mr_key_size;
	if (!user_keys(&bed))
		SKIP("the provider chooses the keys");
	if (size < 8)
		GIVES(-FI_EKEYREJECTED, fi_mr_reg(bed.domain, memory, 100, REMOTE, 0, 1ull << 8 * size, 0, &mr, NULL));
	if (strict)
		GIVES(-FI_EKEYREJECTED, fi_mr_reg(bed.domain, memory, 100, REMOTE, 0, FI_KEY_NOTAVAIL, 0, &mr, NULL));
	close_bed(&bed);
}

#if HEADERS_2
/* Who says that only peers with a key may come here is not left to believe it. */
static void a_key_that_nobody_looks_at(void)
{
	struct iovec iov = { memory, 100 };
	uint8_t key[4] = "key";
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = REMOTE, .requested_key = 5 };
	struct fid_mr *mr;
	struct bed bed;

	open_domain_for_regions(&bed);
	NEED(!bed.info->domain_attr->auth_key_size, "this provider has authorization keys");
	attr.auth_key = key;
	attr.auth_key_size = sizeof(key);
	FAILS(fi_mr_regattr(bed.domain, &attr, 0, &mr));
	close_bed(&bed);
}

/* Where keys belong to the AV, each region has one, and so there is one call only. */
static void authorization_keys_of_the_av(void)
{
	struct setup s = { .auth_key_size = FI_AV_AUTH_KEY, .more_caps = FI_RMA };
	struct iovec iov = { memory, 100 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = REMOTE, .requested_key = 5 };
	struct fi_mr_auth_key key = { 0 };
	char bytes[16] = "key";
	struct fid_mr *mr;
	struct bed bed;
	int ret;

	open_av(&bed, &s);
	ret = fi_av_insert_auth_key(bed.av, bytes, sizeof(bytes), &key.src_addr, 0);
	NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_insert_auth_key: %d", ret);
	FAILS(fi_mr_reg(bed.domain, memory, 100, REMOTE, 0, 5, 0, &mr, NULL));
	FAILS(fi_mr_regv(bed.domain, &iov, 1, REMOTE, 0, 5, 0, &mr, NULL));
	FAILS(fi_mr_regattr(bed.domain, &attr, 0, &mr));
	attr.auth_key = (uint8_t *) &key;
	attr.auth_key_size = sizeof(key);
	FAILS(fi_mr_regattr(bed.domain, &attr, 0, &mr)); /* of no AV */
	key.av = bed.av;
	OK(fi_mr_regattr(bed.domain, &attr, 0, &mr));
	OK(fi_close(&mr->fid));
	attr.auth_key_size = 4;
	FAILS(fi_mr_regattr(bed.domain, &attr, 0, &mr));
	attr.auth_key_size = sizeof(key);
	OK(fi_av_remove(bed.av, &key.src_addr, 1, FI_AUTH_KEY));
	FAILS(fi_mr_regattr(bed.domain, &attr, 0, &mr));
	close_bed(&bed);
}
#endif

static const struct test tests[] = {
	TEST(requested_key_is_given), TEST(a_key_is_used_once), TEST(keys_of_two_domains_are_apart),
	TEST(raw_attributes), TEST(map_and_unmap_a_raw_key), TEST(local_memory_takes_no_key),
	TEST(a_key_that_is_too_wide),
#if HEADERS_2
	TEST(a_key_that_nobody_looks_at), TEST(authorization_keys_of_the_av),
#endif
};

CASES(tests)

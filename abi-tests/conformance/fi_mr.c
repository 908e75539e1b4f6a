/* fi_mr(3): registering memory. What peers then do with it is fi_rma's and fi_atomic's. */
#include "remote.h"

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

/* ---- what peers may do then ---- */

static void transfer(struct bed *bed, int from, struct remote *remote, int error)
{
	static char out[1000];
	struct fid_cq *cq = bed->side[from].tx;

	fill(out, sizeof(out), 3);
	memset(memory, 0, sizeof(out));
	POST(bed, fi_write(bed->side[from].ep, out, sizeof(out), NULL, bed->side[!from].addr, remote->base, remote->key, ctx(1)));
	if (error) {
		struct fi_cq_err_entry err = ERROR_COMPLETION(bed, cq);

		CHECK(err.err == error, "error %d (%s), not %s", err.err, fi_strerror(err.err), fi_strerror(error));
		settle(bed);
		CHECK(memory[0] == 0, "memory was written");
		return;
	}
	COMPLETION(bed, cq, ctx(1));
	UNTIL(bed, mismatch(memory, sizeof(out), 3) < 0);
}

/* Each mode that the provider can do without is kept to by whoever asks for it. */
static void modes(void)
{
	static const int kinds[] = { 0, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED, 1 /* FI_MR_BASIC */,
				     2 /* FI_MR_SCALABLE */, FI_MR_ENDPOINT, FI_MR_LOCAL, FI_MR_RMA_EVENT, FI_MR_COLLECTIVE };
	struct fid_mr *mr;
	struct bed bed;
	unsigned i, k;

	if (!strict)
		SKIP("a provider may insist on less");
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct setup s = { .more_caps = FI_RMA, .mr_added = kinds[i] };
		struct window w;

		open_bed(&bed, &s);
		w = expose(&bed, 1, memory, sizeof(memory), REMOTE);
		transfer(&bed, 0, &w.remote, 0);
		if (kinds[i] & (FI_MR_PROV_KEY | 1)) {
			uint64_t keys[3];

			for (k = 0; k < 3; k++) {
				mr = reg(&bed, memory, 100, 5);
				keys[k] = fi_mr_key(mr);
				OK(fi_close(&mr->fid));
			}
			CHECK(keys[1] - keys[0] != keys[2] - keys[1], "keys 0x%llx, 0x%llx, 0x%llx can be guessed", (unsigned long long) keys[0],
			      (unsigned long long) keys[1], (unsigned long long) keys[2]);
		}
		conceal(&w);
		close_bed(&bed);
	}
}

static void a_region_of_an_endpoint(void)
{
	struct setup s = { .more_caps = FI_RMA, .mr_added = FI_MR_ENDPOINT };
	struct remote remote = { 0, 5 };
	struct fid_mr *mr;
	struct bed bed;

	if (!strict)
		SKIP("a provider may insist on less");
	open_bed(&bed, &s);
	mr = reg(&bed, memory, sizeof(memory), 5);
	transfer(&bed, 0, &remote, FI_EKEYREJECTED); /* created in a disabled state */
	FAILS(fi_mr_enable(mr)); /* must be bound prior to being enabled */
	OK(fi_mr_bind(mr, &bed.side[1].ep->fid, 0));
	transfer(&bed, 0, &remote, FI_EKEYREJECTED);
	OK(fi_mr_enable(mr));
	transfer(&bed, 0, &remote, 0);
	transfer(&bed, 1, &remote, FI_EKEYREJECTED); /* it is not side 0's */
	FAILS(fi_mr_bind(mr, &bed.side[1].ep->fid, 0));
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static void a_region_with_events(void)
{
	struct setup s = { .more_caps = FI_RMA | FI_RMA_EVENT, .mr_added = FI_MR_RMA_EVENT };
	struct remote remote = { 0, 5 };
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct bed bed;

	if (!strict)
		SKIP("a provider may insist on less");
	open_bed(&bed, &s);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	OK(fi_mr_reg(bed.domain, memory, sizeof(memory), REMOTE, 0, 5, FI_RMA_EVENT, &mr, NULL));
	transfer(&bed, 0, &remote, FI_EKEYREJECTED);
	OK(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	OK(fi_mr_enable(mr));
	transfer(&bed, 0, &remote, 0);
	GIVES(1, fi_cntr_read(cntr));
	/* no further resource bindings may be made */
	FAILS(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ));
	OK(fi_close(&mr->fid));
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

#if HEADERS_2
static void single_use(void)
{
	struct setup s = { .more_caps = FI_RMA };
	struct remote remote = { 0, 5 };
	struct fid_mr *mr;
	struct bed bed;

	if (!strict)
		SKIP("not every provider keeps to it");
	open_bed(&bed, &s);
	OK(fi_mr_reg(bed.domain, memory, sizeof(memory), REMOTE, 0, 5, FI_MR_SINGLE_USE, &mr, NULL));
	transfer(&bed, 0, &remote, 0);
	transfer(&bed, 0, &remote, FI_EKEYREJECTED);
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}
#endif

static void pieces_are_one_region(void)
{
	struct setup s = { .more_caps = FI_RMA };
	struct iovec iov[2] = { { memory + 5000, 600 }, { memory + 9000, 1000 } };
	struct fid_mr *mr;
	struct bed bed;
	char out[1000];

	open_bed(&bed, &s);
	if (bed.info->domain_attr->mr_iov_limit < 2 || bed.info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_ENDPOINT))
		SKIP("one piece only, or more to be done");
	if (!strict)
		SKIP("not every provider goes on behind the first");
	memset(memory, 0, sizeof(memory));
	fill(out, sizeof(out), 8);
	OK(fi_mr_regv(bed.domain, iov, 2, REMOTE, 0, 5, 0, &mr, NULL));
	POST(&bed, fi_write(bed.side[0].ep, out, 1000, NULL, bed.side[1].addr, 100, fi_mr_key(mr), ctx(1)));
	COMPLETION(&bed, bed.side[0].tx, ctx(1));
	UNTIL(&bed, memory[9499] == out[999]);
	CHECK(!memcmp(memory + 5100, out, 500) && !memcmp(memory + 9000, out + 500, 500), "elsewhere");
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(registers), TEST(requested_key_is_given), TEST(a_key_is_used_once), TEST(keys_of_two_domains_are_apart),
	TEST(regions_overlap), TEST(many_regions),
	TEST(flags_that_are_not_known), TEST(each_access), TEST(vectors), TEST(too_many_pieces),
	TEST(attributes), TEST(descriptions_in_transfers), TEST(raw_attributes), TEST(map_and_unmap_a_raw_key), TEST(refresh),
	TEST(bind_to_a_counter), TEST(local_memory_takes_no_key), TEST(a_key_that_is_too_wide), TEST(no_offset),
#if HEADERS_2
	TEST(device_memory), TEST(a_part_of_a_region), TEST(attributes_of_an_old_program), TEST(a_key_that_nobody_looks_at),
	TEST(authorization_keys_of_the_av), TEST(single_use),
#endif
	TEST(modes), TEST(a_region_of_an_endpoint), TEST(a_region_with_events), TEST(pieces_are_one_region),
};

CASES(tests)

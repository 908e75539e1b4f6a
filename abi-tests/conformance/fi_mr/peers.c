/* What peers may do with a region then. */
#include "mr.h"

static void transfer(struct bed *bed, int from, struct remote *remote, int error)
{
	static char out[1000];
	struct fid_cq *cq = bed->side[from].tx;

	fill(out, sizeof(out), 3);
	memset(memory, 0, sizeof(out));
	POST(bed, fi_write(bed->side[from].ep, out, sizeof(out), desc, bed->side[!from].addr, remote->base, remote->key, ctx(1)));
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
	POST(&bed, fi_write(bed.side[0].ep, out, 1000, desc, bed.side[1].addr, 100, fi_mr_key(mr), ctx(1)));
	COMPLETION(&bed, bed.side[0].tx, ctx(1));
	UNTIL(&bed, memory[9499] == out[999]);
	CHECK(!memcmp(memory + 5100, out, 500) && !memcmp(memory + 9000, out + 500, 500), "elsewhere");
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

/* Of a region in pieces that adjoin, an element may lie in two. */
static void adjoining_pieces_are_one(void)
{
	struct setup s = { .more_caps = FI_ATOMIC };
	static uint64_t words[8], one = 1;
	struct iovec iov[2] = { { words, 20 }, { (char *) words + 20, sizeof(words) - 20 } };
	struct fid_mr *mr;
	struct bed bed;
	unsigned i;

	open_bed(&bed, &s);
	if (bed.info->domain_attr->mr_iov_limit < 2 || bed.info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_ENDPOINT))
		SKIP("one piece only, or more to be done");
	if (!strict)
		SKIP("the C library leaves the memory as it was, and reports success");
	for (i = 0; i < 8; i++)
		words[i] = 10 * i;
	OK(fi_mr_regv(bed.domain, iov, 2, REMOTE, 0, 5, 0, &mr, NULL));
	for (i = 0; i < 8; i++) {
		POST(&bed, fi_atomic(bed.side[0].ep, &one, 1, NULL, bed.side[1].addr, 8 * i, fi_mr_key(mr), FI_UINT64, FI_SUM, ctx(1)));
		COMPLETION(&bed, bed.side[0].tx, ctx(1));
		UNTIL(&bed, words[i] == 10 * i + 1);
	}
	OK(fi_close(&mr->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
#if HEADERS_2
	TEST(single_use),
#endif
	TEST(modes), TEST(a_region_of_an_endpoint), TEST(a_region_with_events), TEST(pieces_are_one_region), TEST(adjoining_pieces_are_one),
};

CASES(tests)

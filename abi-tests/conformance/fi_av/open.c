/* fi_av_open: kinds of AVs, and what an endpoint does with one. */
#include "av.h"

/* ---- fi_av_open ---- */

static void open_says_the_type(void)
{
	enum fi_av_type types[] = { FI_AV_MAP, FI_AV_TABLE };
	struct fi_av_attr attr;
	struct fid_av *av;
	struct bed bed;
	int i;

	open_domain(&bed, &usual);
	for (i = 0; i < 2; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.type = types[i];
		OK(fi_av_open(bed.domain, &attr, &av, NULL));
		CHECK(av->fid.fclass == FI_CLASS_AV, "class %zu", av->fid.fclass);
		CHECK(attr.type == types[i], "asked for type %d, got %d", types[i], attr.type);
		OK(fi_close(&av->fid));
	}
	close_bed(&bed);
}

static void open_keeps_the_context(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, ctx(1)));
	CHECK(av->fid.context == ctx(1), "the fid has another context");
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void open_unspec_chooses_a_type(void)
{
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	CHECK(attr.type == FI_AV_MAP || attr.type == FI_AV_TABLE, "the type used is not returned: %d", attr.type);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void open_symmetric(void)
{
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_close(&open_kind(&bed, FI_AV_UNSPEC, FI_SYMMETRIC)->fid));
	close_bed(&bed);
}

static void read_only_needs_a_name(void)
{
	struct fi_av_attr attr = { .flags = FI_READ };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(fi_av_open(bed.domain, &attr, &av, NULL));
	close_bed(&bed);
}

static void read_only_needs_an_av_that_exists(void)
{
	struct fi_av_attr attr = { .flags = FI_READ, .name = "nobody-made-this-av" };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(fi_av_open(bed.domain, &attr, &av, NULL));
	close_bed(&bed);
}

static void unnamed_av_leaves_map_addr(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .map_addr = (void *) 0x1000 };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* ---- the rest ---- */

static void rx_addr_holds_the_context(void)
{
	CHECK(fi_rx_addr(5, 3, 4) == ((3ULL << 60) | 5), "fi_rx_addr(5, 3, 4)");
	CHECK(fi_rx_addr(5, 0, 4) == 5, "fi_rx_addr(5, 0, 4)");
	CHECK(fi_rx_addr(7, 1, 1) == ((1ULL << 63) | 7), "fi_rx_addr(7, 1, 1)");
}

static void rx_addr_targets_a_context(void)
{
	struct setup s = { .more_caps = FI_NAMED_RX_CTX, .rx_ctx_cnt = 2, .tx_ctx_cnt = 1, .rx_ctx_bits = 1 };
	struct fid_ep *sep, *rx[2];
	struct fid_cq *rxcq[2];
	struct bed bed;
	struct side far = { 0 };
	struct fi_cq_tagged_entry entry;
	char in[2][8] = { "", "" }, packed[NAME_MAX_LEN];
	fi_addr_t addr;
	int i, ret;

	s.sides = 1;
	open_domain(&bed, &s);
	close_bed(&bed); /* FI_NAMED_RX_CTX is there */
	s.more_caps = 0;
	s.rx_ctx_cnt = s.tx_ctx_cnt = 0;
	open_bed(&bed, &s);
	bed.info->ep_attr->rx_ctx_cnt = 2;
	bed.info->ep_attr->tx_ctx_cnt = 1;
	bed.info->caps |= FI_NAMED_RX_CTX;
	ret = fi_scalable_ep(bed.domain, bed.info, &sep, NULL);
	NEED(!lacking(ret), "fi_scalable_ep: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_scalable_ep: %s", fi_strerror(-ret));
	OK(fi_scalable_ep_bind(sep, &bed.av->fid, 0));
	for (i = 0; i < 2; i++) {
		OK(fi_rx_context(sep, i, NULL, &rx[i], NULL));
		OK(open_cq(&bed, &s, &rxcq[i], NULL));
		OK(fi_ep_bind(rx[i], &rxcq[i]->fid, FI_RECV));
		OK(fi_enable(rx[i]));
	}
	OK(fi_enable(sep));
	far.ep = sep;
	learn_name(&far);
	pack(&bed, packed, far.name, far.name_len);
	GIVES(1, fi_av_insert(bed.av, packed, 1, &addr, 0, NULL));
	for (i = 1; i >= 0; i--) {
		long until = now_ms() + GIVE_UP_MS;
		ssize_t got;

		OK(fi_recv(rx[0], in[0], 8, NULL, FI_ADDR_UNSPEC, ctx(0)));
		OK(fi_recv(rx[1], in[1], 8, NULL, FI_ADDR_UNSPEC, ctx(1)));
		POST(&bed, fi_send(bed.side[0].ep, i ? "one" : "zero", 5, NULL, fi_rx_addr(addr, i, 1), ctx(2)));
		while ((got = fi_cq_read(rxcq[i], &entry, 1)) == -FI_EAGAIN && now_ms() < until) {
			progress(&bed);
			fi_cq_read(rxcq[!i], NULL, 0);
		}
		CHECK(got == 1 && entry.op_context == ctx(i), "nothing arrived at context %d", i);
		CHECK(!strcmp(in[i], i ? "one" : "zero"), "%s at context %d", in[i], i);
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	}
	for (i = 0; i < 2; i++) {
		OK(fi_close(&rx[i]->fid));
		OK(fi_close(&rxcq[i]->fid));
	}
	OK(fi_close(&sep->fid));
	close_bed(&bed);
}

static void close_while_in_use(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	GIVES(-FI_EBUSY, fi_close(&bed.av->fid));
	ping(&bed, 0, 1); /* and it still works */
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(open_says_the_type), TEST(open_keeps_the_context), TEST(open_unspec_chooses_a_type),
	TEST(open_symmetric), TEST(read_only_needs_a_name), TEST(read_only_needs_an_av_that_exists),
	TEST(unnamed_av_leaves_map_addr), TEST(rx_addr_holds_the_context), TEST(rx_addr_targets_a_context),
	TEST(close_while_in_use),
};

CASES(tests)

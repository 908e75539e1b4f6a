/* What binds to what, and what an endpoint needs to be enabled. */
#include "endpoint.h"

static void opens(void)
{
	struct bed bed;
	struct fid_ep *ep;

	open_domain(&bed, &usual);
	OK(fi_endpoint(bed.domain, bed.info, &ep, ctx(1)));
	CHECK(ep->fid.fclass == FI_CLASS_EP && ep->fid.context == ctx(1), "class %zu", ep->fid.fclass);
	OK(fi_close(&ep->fid));
#if HEADERS_2
	OK(fi_endpoint2(bed.domain, bed.info, &ep, 0, ctx(2)));
	CHECK(ep->fid.fclass == FI_CLASS_EP && ep->fid.context == ctx(2), "class %zu", ep->fid.fclass);
	OK(fi_close(&ep->fid));
#endif
	close_bed(&bed);
}

/* ---- enabling ---- */

/* Binds what is asked for, and enables. */
static int enable_with(bool av, bool tx, bool rx)
{
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct bed bed;
	int ret;

	open_av(&bed, &usual);
	ep = bare_ep(&bed);
	cq = a_cq(&bed);
	if (av)
		OK(fi_ep_bind(ep, &bed.av->fid, 0));
	if (tx)
		OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT));
	if (rx)
		OK(fi_ep_bind(ep, &cq->fid, FI_RECV));
	ret = fi_enable(ep);
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	close_bed(&bed);
	return ret;
}

static void enable_needs_a_queue(void) { GIVES(-FI_ENOCQ, enable_with(true, false, false)); }
static void enable_needs_a_transmit_queue(void) { GIVES(-FI_ENOCQ, enable_with(true, false, true)); }
static void enable_needs_a_receive_queue(void) { GIVES(-FI_ENOCQ, enable_with(true, true, false)); }

static void enable_needs_an_av(void)
{
	int ret;

	BY_ADDRESS;
	ret = enable_with(false, true, true);
	CHECK(ret == -FI_ENOAV || ret == -FI_EOPBADSTATE, "fi_enable without an AV: %d (%s)", ret, fi_strerror(-ret));
}

static void enable_with_all(void) { OK(enable_with(true, true, true)); }

/* An endpoint that only receives needs no transmit queue, and the other way round. */
static void half_an_endpoint(void)
{
	struct setup rx_only = { .caps = FI_TAGGED | FI_RECV }, tx_only = { .caps = FI_TAGGED | FI_SEND };
	struct setup *halves[] = { &rx_only, &tx_only };
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct bed bed;
	int i;

	for (i = 0; i < 2; i++) {
		open_av(&bed, halves[i]);
		ep = bare_ep(&bed);
		cq = a_cq(&bed);
		OK(fi_ep_bind(ep, &bed.av->fid, 0));
		OK(fi_ep_bind(ep, &cq->fid, i ? FI_TRANSMIT : FI_RECV));
		OK(fi_enable(ep));
		OK(fi_close(&ep->fid));
		OK(fi_close(&cq->fid));
		close_bed(&bed);
	}
}

/* ---- binding ---- */

static void bind_flags(uint64_t flags)
{
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct bed bed;

	open_av(&bed, &usual);
	ep = bare_ep(&bed);
	cq = a_cq(&bed);
	FAILS(fi_ep_bind(ep, &cq->fid, flags));
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	close_bed(&bed);
}

static void bind_queue_with_other_flags(void) { bind_flags(FI_TRANSMIT | FI_MULTI_RECV); }

static void bind_two_queues_for_one_direction(void)
{
	struct fid_cq *cq;
	struct bed bed;

	open_sides(&bed, &usual);
	cq = a_cq(&bed);
	FAILS(fi_ep_bind(bed.side[0].ep, &cq->fid, FI_TRANSMIT));
	FAILS(fi_ep_bind(bed.side[0].ep, &cq->fid, FI_RECV));
	OK(fi_close(&cq->fid));
	close_bed(&bed);
}

static void bind_two_counters_for_one_kind(void)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr[2];
	struct bed bed;
	int i;

	open_sides(&bed, &usual);
	for (i = 0; i < 2; i++)
		OK(fi_cntr_open(bed.domain, &attr, &cntr[i], NULL));
	OK(fi_ep_bind(bed.side[0].ep, &cntr[0]->fid, FI_SEND));
	FAILS(fi_ep_bind(bed.side[0].ep, &cntr[1]->fid, FI_SEND));
	OK(fi_ep_bind(bed.side[0].ep, &cntr[1]->fid, FI_RECV)); /* another kind may have another */
	close_ep(&bed.side[0]);
	for (i = 0; i < 2; i++)
		OK(fi_close(&cntr[i]->fid));
	close_bed(&bed);
}

static void bind_two_avs(void)
{
	struct fi_av_attr attr = { 0 };
	struct fid_av *av;
	struct bed bed;

	open_sides(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	FAILS(fi_ep_bind(bed.side[0].ep, &av->fid, 0));
	close_ep(&bed.side[0]);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void bind_across_domains(void)
{
	struct fi_av_attr attr = { 0 };
	struct fid_domain *other;
	struct fid_av *av;
	struct fid_ep *ep;
	struct bed bed;

	open_domain(&bed, &usual);
	ep = bare_ep(&bed);
	OK(fi_domain(bed.fabric, bed.info, &other, NULL));
	OK(fi_av_open(other, &attr, &av, NULL));
	FAILS(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_close(&ep->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&other->fid));
	close_bed(&bed);
}

static void bind_what_cannot_be_bound(void)
{
	struct fid_ep *ep;
	struct bed bed;

	open_domain(&bed, &usual);
	ep = bare_ep(&bed);
	FAILS(fi_ep_bind(ep, &bed.domain->fid, 0));
	FAILS(fi_ep_bind(ep, &bed.fabric->fid, 0));
	OK(fi_close(&ep->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(opens), TEST(enable_needs_a_queue), TEST(enable_needs_a_transmit_queue),
	TEST(enable_needs_a_receive_queue), TEST(enable_needs_an_av), TEST(enable_with_all), TEST(half_an_endpoint),
	TEST(bind_queue_with_other_flags), TEST(bind_two_queues_for_one_direction),
	TEST(bind_two_counters_for_one_kind), TEST(bind_two_avs), TEST(bind_across_domains),
	TEST(bind_what_cannot_be_bound),
};

CASES(tests)

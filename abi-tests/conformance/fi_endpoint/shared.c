/* Shared contexts. */
#include "endpoint.h"

/* Contexts as the domain offers them; a case without them is skipped. */
static struct fid_ep *a_receive_context(struct bed *bed, void *context)
{
	struct fi_rx_attr attr = *bed->info->rx_attr;
	struct fid_ep *srx;
	int ret = fi_srx_context(bed->domain, &attr, &srx, context);

	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
	return srx;
}

static struct fid_stx *a_transmit_context(struct bed *bed, void *context)
{
	struct fi_tx_attr attr = *bed->info->tx_attr;
	struct fid_stx *stx;
	int ret = fi_stx_context(bed->domain, &attr, &stx, context);

	NEED(!lacking(ret), "fi_stx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_stx_context: %s", fi_strerror(-ret));
	return stx;
}

static void bind_all(struct bed *bed, struct fid *context)
{
	int i;

	for (i = 0; i < bed->sides; i++)
		OK(fi_ep_bind(bed->side[i].ep, context, 0));
}

/* So many endpoints that share one receive context, enabled. */
static struct fid_ep *open_receivers(struct bed *bed, int sides)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = sides };
	struct fid_ep *srx;

	open_sides(bed, &s);
	srx = a_receive_context(bed, ctx(1));
	CHECK(srx->fid.fclass == FI_CLASS_SRX_CTX, "class %zu", srx->fid.fclass);
	bind_all(bed, &srx->fid);
	enable_sides(bed, &s);
	return srx;
}

static void becomes(struct bed *bed, struct fid_cntr *cntr, uint64_t value)
{
	long until = now_ms() + GIVE_UP_MS;

	while (fi_cntr_read(cntr) < value && now_ms() < until)
		progress(bed);
	CHECK(fi_cntr_read(cntr) == value, "%llu are counted, not %llu", (unsigned long long) fi_cntr_read(cntr),
	      (unsigned long long) value);
}

/* The endpoints, then what they share, then the rest. */
static void close_sharers(struct bed *bed, struct fid *context)
{
	close_eps(bed);
	OK(fi_close(context));
	close_bed(bed);
}

static void shared_receive_context(void)
{
	struct fid_ep *srx;
	struct bed bed;
	int i;

	srx = open_receivers(&bed, 3);
	for (i = 1; i < 3; i++) { /* one pool of buffers, but each endpoint's own queue */
		fill(out, 32, (unsigned) i);
		OK(fi_trecv(srx, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
		POST(&bed, fi_tsend(bed.side[0].ep, out, 32, desc, bed.side[i].addr, 1, ctx(10 + i)));
		COMPLETION(&bed, bed.side[i].rx, ctx(i));
		COMPLETION(&bed, bed.side[0].tx, ctx(10 + i));
		SAME(in, 32, (unsigned) i);
		OK(fi_recv(srx, in, 32, desc, FI_ADDR_UNSPEC, ctx(i)));
		POST(&bed, fi_send(bed.side[0].ep, out, 32, desc, bed.side[i].addr, ctx(10 + i)));
		COMPLETION(&bed, bed.side[i].rx, ctx(i));
		COMPLETION(&bed, bed.side[0].tx, ctx(10 + i));
	}
	GIVES(-FI_EBUSY, fi_close(&srx->fid));
	close_sharers(&bed, &srx->fid);
}

/* An endpoint takes one receive context, and all that share it have one AV. */
static void shared_receive_context_binds_once(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 2 };
	struct fi_av_attr av_attr = { 0 };
	struct fid_ep *srx, *other, *ep;
	struct fid_av *av;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &s);
	srx = a_receive_context(&bed, NULL);
	other = a_receive_context(&bed, NULL);
	for (i = 0; i < 2; i++) {
		OK(fi_ep_bind(bed.side[i].ep, &srx->fid, 0));
		FAILS(fi_ep_bind(bed.side[i].ep, &other->fid, 0));
		OK(fi_enable(bed.side[i].ep));
	}
	OK(fi_endpoint(bed.domain, bed.info, &ep, NULL));
	OK(fi_av_open(bed.domain, &av_attr, &av, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &bed.side[0].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &bed.side[0].rx->fid, FI_RECV));
	ret = fi_ep_bind(ep, &srx->fid, 0);
	if (ret == 0)
		ret = fi_enable(ep);
	CHECK(ret < 0, "two AVs share a receive context");
	OK(fi_close(&ep->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&other->fid));
	close_sharers(&bed, &srx->fid);
}

/* An alias is refused, or does what the context does. */
static void shared_receive_context_alias(void)
{
	struct fid_ep *srx, *alias = NULL;
	struct bed bed;
	int ret;

	srx = open_receivers(&bed, 2);
	ret = fi_ep_alias(srx, &alias, FI_RECV);
	CHECK(ret == 0 || lacking(ret) || ret == -FI_EINVAL, "fi_ep_alias: %s", fi_strerror(-ret));
	OK(fi_trecv(ret ? srx : alias, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 32, desc, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	if (!ret)
		OK(fi_close(&alias->fid));
	close_sharers(&bed, &srx->fid);
}

/* What is meant for no endpoint's buffer yet waits, and finds the first that is posted. */
static void shared_receives_of_unexpected(void)
{
	struct fid_ep *srx;
	struct bed bed;
	int i;

	srx = open_receivers(&bed, 3);
	for (i = 1; i < 3; i++) {
		fill(out + 100 * i, 32, (unsigned) i);
		POST(&bed, fi_tsend(bed.side[0].ep, out + 100 * i, 32, desc, bed.side[i].addr, (uint64_t) i, ctx(10 + i)));
	}
	settle(&bed);
	for (i = 2; i > 0; i--) {
		OK(fi_trecv(srx, in, 32, desc, FI_ADDR_UNSPEC, (uint64_t) i, 0, ctx(i)));
		COMPLETION(&bed, bed.side[i].rx, ctx(i));
		SAME(in, 32, (unsigned) i);
	}
	/* Posted, but never met: it goes with the context. */
	OK(fi_trecv(srx, in, 32, desc, FI_ADDR_UNSPEC, 9, 0, ctx(9)));
	close_sharers(&bed, &srx->fid);
}

/* Each endpoint's queue and counter are told of its messages as it bound them, whatever the others bound. */
static void shared_receives_are_told_by_each_endpoint(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT }, quiet = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *received[3];
	struct fid_ep *srx;
	struct bed bed;
	int i, round, ret;

	open_sides(&bed, &s);
	open_bed_side(&bed, &quiet, 2, bed.info);
	bed.sides = 3;
	srx = a_receive_context(&bed, NULL);
	bind_all(&bed, &srx->fid);
	for (i = 1; i < 3; i++) {
		ret = fi_cntr_open(bed.domain, &attr, &received[i], NULL);
		NEED(!lacking(ret), "fi_cntr_open: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_cntr_open: %s", fi_strerror(-ret));
		OK(fi_ep_bind(bed.side[i].ep, &received[i]->fid, FI_RECV));
	}
	enable_sides(&bed, &s);
	for (round = 1; round < 4; round++)
		for (i = 1; i < 3; i++) {
			OK(fi_trecv(srx, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
			POST(&bed, fi_tsend(bed.side[0].ep, out, 32, desc, bed.side[i].addr, 1, ctx(10 + i)));
			COMPLETION(&bed, bed.side[0].tx, ctx(10 + i));
			if (i == 1)
				COMPLETION(&bed, bed.side[1].rx, ctx(1));
			becomes(&bed, received[i], (uint64_t) round);
			CHECK(fi_cntr_readerr(received[i]) == 0, "a receive counts as failed");
		}
	NO_COMPLETION(&bed, bed.side[2].rx);
	/* A receive that asks for it is told there, too. */
	OK(fi_trecvmsg(srx, &(struct fi_msg_tagged) { .msg_iov = &(struct iovec) { in, 32 }, .iov_count = 1, .desc = &desc,
	   .addr = FI_ADDR_UNSPEC, .tag = 1, .context = ctx(5) }, FI_COMPLETION));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 32, desc, bed.side[2].addr, 1, ctx(6)));
	COMPLETION(&bed, bed.side[2].rx, ctx(5));
	COMPLETION(&bed, bed.side[0].tx, ctx(6));
	close_eps(&bed);
	for (i = 1; i < 3; i++)
		OK(fi_close(&received[i]->fid));
	close_sharers(&bed, &srx->fid);
}

/* The manual has no counter for the context itself. Where one can be bound, it counts the receives that are posted there. */
static void shared_receive_context_counts(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 2 };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *received;
	struct fid_ep *srx;
	struct bed bed;
	int ret;

	open_sides(&bed, &s);
	srx = a_receive_context(&bed, NULL);
	ret = fi_cntr_open(bed.domain, &attr, &received, NULL);
	NEED(!lacking(ret), "fi_cntr_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cntr_open: %s", fi_strerror(-ret));
	ret = fi_ep_bind(srx, &received->fid, FI_RECV);
	NEED(ret == 0, "fi_ep_bind of a counter: %s", fi_strerror(-ret));
	bind_all(&bed, &srx->fid);
	enable_sides(&bed, &s);
	OK(fi_trecv(srx, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 32, desc, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	becomes(&bed, received, 1);
	close_eps(&bed);
	GIVES(-FI_EBUSY, fi_close(&received->fid));
	OK(fi_close(&srx->fid));
	OK(fi_close(&received->fid));
	close_bed(&bed);
}

static void shared_transmit_context(void)
{
	struct setup s = { .tx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 3 };
	struct fid_stx *stx;
	struct bed bed;

	open_sides(&bed, &s);
	stx = a_transmit_context(&bed, ctx(1));
	CHECK(stx->fid.fclass == FI_CLASS_STX_CTX, "class %zu", stx->fid.fclass);
	bind_all(&bed, &stx->fid);
	enable_sides(&bed, &s);
	ping(&bed, 0, 2); /* posted to the endpoint, completed in the endpoint's queue */
	ping(&bed, 1, 2);
	GIVES(-FI_EBUSY, fi_close(&stx->fid));
	close_sharers(&bed, &stx->fid);
}

/* Without the context that it was opened for, an endpoint is not enabled; and it takes one only. */
static void shared_transmit_context_binds_once(void)
{
	struct setup s = { .tx_ctx_cnt = FI_SHARED_CONTEXT };
	struct fid_stx *stx, *other;
	struct bed bed;

	open_sides(&bed, &s);
	stx = a_transmit_context(&bed, NULL);
	other = a_transmit_context(&bed, NULL);
	FAILS(fi_enable(bed.side[0].ep));
	OK(fi_ep_bind(bed.side[0].ep, &stx->fid, 0));
	FAILS(fi_ep_bind(bed.side[0].ep, &other->fid, 0));
	OK(fi_enable(bed.side[0].ep));
	OK(fi_close(&other->fid));
	close_sharers(&bed, &stx->fid);
}

/* Bound to an endpoint that has a transmit context of its own and is enabled, and closed before it: so does Sandia OpenSHMEM. */
static void shared_transmit_context_of_nobody(void)
{
	struct setup s = { 0 };
	struct fid_stx *stx;
	struct bed bed;
	int ret;

	open_bed(&bed, &s);
	stx = a_transmit_context(&bed, NULL);
	ret = fi_ep_bind(bed.side[0].ep, &stx->fid, 0);
	NEED(ret == 0, "fi_ep_bind of a transmit context that the endpoint was not made for: %s", fi_strerror(-ret));
	OK(fi_close(&stx->fid));
	OK(fi_trecv(bed.side[1].ep, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 32, desc, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	close_bed(&bed);
}

/* Each endpoint's queue and counter tell of its own sends, the context is in use until the last endpoint is closed, and the
 * domain until the context is. */
static void shared_transmit_context_of_two(void)
{
	struct setup s = { .tx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 3 };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *sent[2];
	struct fid_stx *stx;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &s);
	stx = a_transmit_context(&bed, NULL);
	FAILS(fi_ep_bind(bed.side[0].ep, &stx->fid, FI_RECV));
	bind_all(&bed, &stx->fid);
	for (i = 0; i < 2; i++) {
		ret = fi_cntr_open(bed.domain, &attr, &sent[i], NULL);
		NEED(!lacking(ret), "fi_cntr_open: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_cntr_open: %s", fi_strerror(-ret));
		OK(fi_ep_bind(bed.side[i].ep, &sent[i]->fid, FI_SEND));
	}
	enable_sides(&bed, &s);
	for (i = 0; i < 3; i++) { /* two by the first, one by the second */
		OK(fi_trecv(bed.side[2].ep, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
		POST(&bed, fi_tsend(bed.side[i / 2].ep, out, 32, desc, bed.side[2].addr, 1, ctx(10 + i)));
		COMPLETION(&bed, bed.side[2].rx, ctx(i));
		COMPLETION(&bed, bed.side[i / 2].tx, ctx(10 + i));
	}
	becomes(&bed, sent[0], 2);
	becomes(&bed, sent[1], 1);
	for (i = 0; i < 3; i++) {
		GIVES(-FI_EBUSY, fi_close(&stx->fid));
		close_ep(&bed.side[i]);
	}
	for (i = 0; i < 2; i++)
		OK(fi_close(&sent[i]->fid));
	for (i = 0; i < 3; i++) {
		OK(fi_close(&bed.side[i].tx->fid));
		OK(fi_close(&bed.side[i].rx->fid));
		bed.side[i] = (struct side) { 0 };
	}
	OK(fi_close(&bed.av->fid));
	bed.av = NULL;
	GIVES(-FI_EBUSY, fi_close(&bed.domain->fid));
	OK(fi_close(&stx->fid));
	close_bed(&bed);
}

/* Both directions may be shared, and shared with others. */
static void both_contexts_shared(void)
{
	struct setup s = { .tx_ctx_cnt = FI_SHARED_CONTEXT, .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 2 };
	struct fid_ep *srx;
	struct fid_stx *stx;
	struct bed bed;
	int i;

	open_sides(&bed, &s);
	srx = a_receive_context(&bed, NULL);
	stx = a_transmit_context(&bed, NULL);
	bind_all(&bed, &srx->fid);
	bind_all(&bed, &stx->fid);
	enable_sides(&bed, &s);
	for (i = 0; i < 2; i++) {
		OK(fi_trecv(srx, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&bed, fi_tsend(bed.side[i].ep, out, 32, desc, bed.side[!i].addr, 1, ctx(2)));
		COMPLETION(&bed, bed.side[!i].rx, ctx(1));
		COMPLETION(&bed, bed.side[i].tx, ctx(2));
	}
	close_eps(&bed);
	OK(fi_close(&stx->fid));
	close_sharers(&bed, &srx->fid);
}

/* Attributes that name no capabilities take none away. */
static void shared_receive_context_of_plain_attributes(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 3, .more_caps = FI_DIRECTED_RECV };
	struct fi_cq_tagged_entry entry;
	struct fi_rx_attr attr;
	struct bed bed = { 0 };
	struct fid_ep *srx;
	int i, ret;

	BY_ADDRESS;
	open_sides(&bed, &s);
	attr = *bed.info->rx_attr;
	attr.caps = 0;
	ret = fi_srx_context(bed.domain, &attr, &srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
	bind_all(&bed, &srx->fid);
	enable_sides(&bed, &s);
	OK(fi_trecv(srx, in, 32, desc, bed.side[2].addr, 1, 0, ctx(1)));
	for (i = 1; i < 3; i++) {
		POST(&bed, fi_tsend(bed.side[i].ep, out, 8 * (size_t) i, desc, bed.side[0].addr, 1, ctx(2)));
		settle(&bed);
	}
	entry = COMPLETION(&bed, bed.side[0].rx, ctx(1));
	CHECK(entry.len == 16, "%zu bytes, of another than was named", entry.len);
	OK(fi_trecv(srx, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	COMPLETION(&bed, bed.side[0].rx, ctx(3));
	close_sharers(&bed, &srx->fid);
}

static const struct test tests[] = {
	TEST(shared_receive_context), TEST(shared_receive_context_binds_once), TEST(shared_receive_context_alias),
	TEST(shared_receive_context_of_plain_attributes),
	TEST(shared_receives_of_unexpected), TEST(shared_receives_are_told_by_each_endpoint), TEST(shared_receive_context_counts),
	TEST(shared_transmit_context), TEST(shared_transmit_context_binds_once),
	TEST(shared_transmit_context_of_nobody), TEST(shared_transmit_context_of_two), TEST(both_contexts_shared),
};

CASES(tests)

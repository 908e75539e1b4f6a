/* Scalable endpoints. */
#include "endpoint.h"

struct scalable {
	struct bed bed; /* side 0 is an ordinary endpoint */
	struct fid_ep *sep, *tx[2], *rx[2];
	struct fid_cq *txcq[2], *rxcq[2];
	fi_addr_t addr;
};

static void open_scalable(struct scalable *s)
{
	struct setup setup = { .sides = 1, .rx_ctx_bits = 1, .more_caps = FI_SOURCE };
	char packed[NAME_MAX_LEN];
	struct side far = { 0 };
	int i, ret;

	open_bed(&s->bed, &setup);
	s->bed.info->ep_attr->tx_ctx_cnt = 2;
	s->bed.info->ep_attr->rx_ctx_cnt = 2;
	ret = fi_scalable_ep(s->bed.domain, s->bed.info, &s->sep, ctx(1));
	NEED(!lacking(ret), "fi_scalable_ep: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_scalable_ep: %s", fi_strerror(-ret));
	CHECK(s->sep->fid.fclass == FI_CLASS_SEP, "class %zu", s->sep->fid.fclass);
	OK(fi_scalable_ep_bind(s->sep, &s->bed.av->fid, 0));
	for (i = 0; i < 2; i++) {
		s->txcq[i] = a_cq(&s->bed);
		s->rxcq[i] = a_cq(&s->bed);
		OK(fi_tx_context(s->sep, i, NULL, &s->tx[i], ctx(10 + i)));
		OK(fi_rx_context(s->sep, i, NULL, &s->rx[i], ctx(20 + i)));
		CHECK(s->tx[i]->fid.fclass == FI_CLASS_TX_CTX && s->rx[i]->fid.fclass == FI_CLASS_RX_CTX, "classes %zu, %zu",
		      s->tx[i]->fid.fclass, s->rx[i]->fid.fclass);
		OK(fi_ep_bind(s->tx[i], &s->txcq[i]->fid, FI_TRANSMIT));
		OK(fi_ep_bind(s->rx[i], &s->rxcq[i]->fid, FI_RECV));
		OK(fi_enable(s->tx[i]));
		OK(fi_enable(s->rx[i]));
	}
	OK(fi_enable(s->sep));
	far.ep = s->sep;
	learn_name(&far);
	pack(&s->bed, packed, far.name, far.name_len);
	GIVES(1, fi_av_insert(s->bed.av, packed, 1, &s->addr, 0, NULL));
}

static void close_scalable(struct scalable *s)
{
	int i;

	for (i = 0; i < 2; i++) {
		OK(fi_close(&s->tx[i]->fid));
		OK(fi_close(&s->rx[i]->fid));
	}
	OK(fi_close(&s->sep->fid));
	for (i = 0; i < 2; i++) {
		OK(fi_close(&s->txcq[i]->fid));
		OK(fi_close(&s->rxcq[i]->fid));
	}
	close_bed(&s->bed);
}

static void scalable_entry(struct scalable *s, struct fid_cq *cq, void *context)
{
	struct fi_cq_tagged_entry e;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;
	int i;

	while ((ret = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN && now_ms() < until) {
		progress(&s->bed);
		for (i = 0; i < 2; i++) {
			fi_cq_read(s->txcq[i], NULL, 0);
			fi_cq_read(s->rxcq[i], NULL, 0);
		}
	}
	CHECK(ret == 1 && e.op_context == context, "no completion there: %zd", ret);
}

static void scalable_contexts_transfer(void)
{
	struct scalable s;
	int i;

	open_scalable(&s);
	for (i = 0; i < 2; i++) {
		fill(out, 32, (unsigned) i);
		OK(fi_trecv(s.bed.side[0].ep, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&s.bed, fi_tsend(s.tx[i], out, 32, desc, s.bed.side[0].addr, 1, ctx(2)));
		scalable_entry(&s, s.txcq[i], ctx(2)); /* in the context's own queue */
		scalable_entry(&s, s.bed.side[0].rx, ctx(1));
		SAME(in, 32, (unsigned) i);

		OK(fi_trecv(s.rx[i], in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
		POST(&s.bed, fi_tsend(s.bed.side[0].ep, out, 32, desc, fi_rx_addr(s.addr, i, 1), 1, ctx(4)));
		scalable_entry(&s, s.rxcq[i], ctx(3));
		scalable_entry(&s, s.bed.side[0].tx, ctx(4));
	}
	close_scalable(&s);
}

static void scalable_waits_for_its_contexts(void)
{
	struct scalable s;

	open_scalable(&s);
	GIVES(-FI_EBUSY, fi_close(&s.sep->fid));
	close_scalable(&s);
}

static void scalable_has_so_many_contexts(void)
{
	struct fid_ep *ep;
	struct scalable s;

	open_scalable(&s);
	FAILS(fi_tx_context(s.sep, 2, NULL, &ep, NULL));
	FAILS(fi_rx_context(s.sep, 2, NULL, &ep, NULL));
	FAILS(fi_rx_context(s.sep, -1, NULL, &ep, NULL));
	close_scalable(&s);
}

static void scalable_transfers_nothing_itself(void)
{
	struct scalable s;

	open_scalable(&s);
	FAILS(fi_send(s.sep, out, 8, desc, s.bed.side[0].addr, ctx(1)));
	FAILS(fi_recv(s.sep, in, 8, desc, FI_ADDR_UNSPEC, ctx(1)));
	close_scalable(&s);
}

static void scalable_context_attributes(void)
{
	struct fi_tx_attr tx = { 0 };
	struct fi_rx_attr rx = { 0 };
	struct scalable s;

	open_scalable(&s);
	OK(fi_close(&s.tx[1]->fid));
	OK(fi_close(&s.rx[1]->fid));
	OK(fi_tx_context(s.sep, 1, &tx, &s.tx[1], NULL));
	OK(fi_rx_context(s.sep, 1, &rx, &s.rx[1], NULL));
	CHECK(tx.caps && tx.size && rx.caps && rx.size, "the attributes assigned are not returned");
	close_scalable(&s);
}

/* All contexts have the endpoint's name, and so are one source to whoever receives from them. */
static void scalable_has_one_name(void)
{
	struct fi_cq_tagged_entry e = { 0 };
	struct scalable s;
	fi_addr_t source;
	int i;

	open_scalable(&s);
	for (i = 0; i < 2; i++) {
		long until = now_ms() + GIVE_UP_MS;
		ssize_t ret;

		OK(fi_trecv(s.bed.side[0].ep, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&s.bed, fi_tsend(s.tx[i], out, 32, desc, s.bed.side[0].addr, 1, ctx(2)));
		scalable_entry(&s, s.txcq[i], ctx(2));
		while ((ret = fi_cq_readfrom(s.bed.side[0].rx, &e, 1, &source)) == -FI_EAGAIN && now_ms() < until)
			fi_cq_read(s.txcq[i], NULL, 0);
		CHECK(ret == 1, "fi_cq_readfrom: %zd", ret);
		CHECK(source == s.addr, "context %d: source %llu", i, (unsigned long long) source);
	}
	close_scalable(&s);
}

static void scalable_takes_one_av(void)
{
	struct fi_av_attr attr = { 0 };
	struct fid_av *av;
	struct scalable s;

	open_scalable(&s);
	FAILS(fi_scalable_ep_bind(s.sep, &s.bed.av->fid, 0));
	OK(fi_av_open(s.bed.domain, &attr, &av, NULL));
	FAILS(fi_scalable_ep_bind(s.sep, &av->fid, 0));
	OK(fi_close(&av->fid));
	GIVES(-FI_EBUSY, fi_close(&s.bed.av->fid));
	close_scalable(&s);
}

/* A context is open once at a time, and can be opened again. */
static void scalable_context_again(void)
{
	struct scalable s;

	open_scalable(&s);
	OK(fi_close(&s.tx[0]->fid));
	OK(fi_tx_context(s.sep, 0, NULL, &s.tx[0], ctx(3)));
	CHECK(s.tx[0]->fid.context == ctx(3), "another context");
	OK(fi_ep_bind(s.tx[0], &s.txcq[0]->fid, FI_TRANSMIT));
	OK(fi_enable(s.tx[0]));
	OK(fi_trecv(s.bed.side[0].ep, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&s.bed, fi_tsend(s.tx[0], out, 32, desc, s.bed.side[0].addr, 1, ctx(2)));
	scalable_entry(&s, s.txcq[0], ctx(2));
	scalable_entry(&s, s.bed.side[0].rx, ctx(1));
	close_scalable(&s);
}

/* A context moves messages in its own direction only. */
static void scalable_contexts_have_a_direction(void)
{
	struct scalable s;

	open_scalable(&s);
	FAILS(fi_tsend(s.rx[0], out, 8, desc, s.bed.side[0].addr, 1, ctx(1)));
	FAILS(fi_trecv(s.tx[0], in, 8, desc, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	close_scalable(&s);
}

static void scalable_alias_of_a_context(void)
{
	struct fid_ep *alias;
	struct scalable s;
	int ret;

	open_scalable(&s);
	ret = fi_ep_alias(s.rx[1], &alias, FI_RECV);
	NEED(!lacking(ret), "fi_ep_alias of a context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_ep_alias of a context: %s", fi_strerror(-ret));
	OK(fi_trecv(alias, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	POST(&s.bed, fi_tsend(s.bed.side[0].ep, out, 32, desc, fi_rx_addr(s.addr, 1, 1), 1, ctx(4)));
	scalable_entry(&s, s.rxcq[1], ctx(3));
	scalable_entry(&s, s.bed.side[0].tx, ctx(4));
	FAILS(fi_close(&s.rx[1]->fid));
	OK(fi_close(&alias->fid));
	close_scalable(&s);
}

/* Reads the plain endpoint's receives and one receive queue of the scalable one, and nothing else of that. */
static void entry_seen_by_receiver(struct scalable *s, struct fid_cq *cq, void *context)
{
	struct fi_cq_tagged_entry e;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN && now_ms() < until) {
		progress(&s->bed);
		if (cq != s->rxcq[0])
			fi_cq_read(s->rxcq[0], NULL, 0);
	}
	CHECK(ret == 1 && e.op_context == context, "no completion there: %zd", ret);
}

/* Who has asked and waits for the answer reads the queue that it comes to, and no other. */
static void scalable_receive_queue_moves_sends(void)
{
	enum { MESSAGES = 3 };
	struct scalable s;
	int i, m;

	open_scalable(&s);
	for (i = 0; i < 2; i++) {
		for (m = 0; m < MESSAGES; m++)
			OK(fi_trecv(s.bed.side[0].ep, in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(m)));
		for (m = 0; m < MESSAGES; m++)
			POST(&s.bed, fi_tsend(s.tx[i], out, 32, desc, s.bed.side[0].addr, 1, ctx(10 + m)));
		for (m = 0; m < MESSAGES; m++)
			entry_seen_by_receiver(&s, s.bed.side[0].rx, ctx(m));
		OK(fi_trecv(s.rx[0], in, 32, desc, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
		POST(&s.bed, fi_tsend(s.bed.side[0].ep, out, 32, desc, s.addr, 1, ctx(4)));
		entry_seen_by_receiver(&s, s.rxcq[0], ctx(3));
		scalable_entry(&s, s.bed.side[0].tx, ctx(4));
		for (m = 0; m < MESSAGES; m++)
			scalable_entry(&s, s.txcq[i], ctx(10 + m));
	}
	close_scalable(&s);
}

static const struct test tests[] = {
	TEST(scalable_contexts_transfer), TEST(scalable_waits_for_its_contexts), TEST(scalable_has_so_many_contexts),
	TEST(scalable_transfers_nothing_itself), TEST(scalable_context_attributes), TEST(scalable_has_one_name),
	TEST(scalable_takes_one_av), TEST(scalable_context_again), TEST(scalable_contexts_have_a_direction),
	TEST(scalable_alias_of_a_context), TEST(scalable_receive_queue_moves_sends),
};

CASES(tests)

/* fi_endpoint(3): what binds to what, options, aliases, scalable endpoints, shared contexts. Transfers: fi_msg, fi_tagged. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "fabric.h"

static const struct setup usual;
static char in[4096], out[4096];

static struct fid_ep *bare_ep(struct bed *bed)
{
	struct fid_ep *ep;

	OK(fi_endpoint(bed->domain, bed->info, &ep, NULL));
	return ep;
}

static struct fid_cq *a_cq(struct bed *bed)
{
	struct fid_cq *cq;

	OK(open_cq(bed, &usual, &cq, NULL));
	return cq;
}

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
	int ret = enable_with(false, true, true);

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
	OK(fi_close(&bed.side[0].ep->fid));
	bed.side[0].ep = NULL;
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
	OK(fi_close(&bed.side[0].ep->fid));
	bed.side[0].ep = NULL;
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

/* ---- names ---- */

static void name_needs_room(void)
{
	struct bed bed;
	char name[NAME_MAX_LEN];
	size_t len = 4;

	open_bed(&bed, &usual);
	memset(name, '#', sizeof(name));
	GIVES(-FI_ETOOSMALL, fi_getname(&bed.side[0].ep->fid, name, &len));
	CHECK(len == bed.side[0].name_len, "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	CHECK(name[4] == '#', "wrote beyond the buffer");
	len = 0;
	GIVES(-FI_ETOOSMALL, fi_getname(&bed.side[0].ep->fid, NULL, &len));
	CHECK(len == bed.side[0].name_len, "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	close_bed(&bed);
}

static void names_differ(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	CHECK(bed.side[0].name_len != bed.side[1].name_len || memcmp(bed.side[0].name, bed.side[1].name, bed.side[0].name_len),
	      "two endpoints have one name");
	close_bed(&bed);
}

static void setname(void)
{
	char name[NAME_MAX_LEN] = "";
	struct bed bed;
	size_t len;
	int ret;

	open_sides(&bed, &usual);
	if (is_ip(&bed)) {
		struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t) (20000 + getpid() % 20000)) };

		sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		memcpy(name, &sin, len = sizeof(sin));
	} else {
		snprintf(name, sizeof(name), "fi_shm://conformance-%d", (int) getpid());
		len = strlen(name) + 1;
	}
	ret = fi_setname(&bed.side[0].ep->fid, name, len);
	NEED(!lacking(ret), "fi_setname: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_setname: %s", fi_strerror(-ret));
	enable_sides(&bed, &usual);
	CHECK(bed.side[0].name_len >= 8 && !memcmp(bed.side[0].name, name, is_ip(&bed) ? 8 : len), "another name: %.40s",
	      bed.side[0].name);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

/* fi_info's source address is the endpoint's. */
static void name_from_the_info(void)
{
	char node[64], service[16];
	struct fi_info *hints = hints_for(&usual), *info, *first;
	struct fid_ep *ep;
	struct bed bed;
	struct side side = { 0 };

	open_av(&bed, &usual);
	if (is_ip(&bed)) {
		snprintf(node, sizeof(node), "127.0.0.1");
		snprintf(service, sizeof(service), "%d", 20000 + getpid() % 20000);
		OK(fi_getinfo(api_version(), node, service, FI_SOURCE, hints, &info));
	} else {
		snprintf(node, sizeof(node), "fi_shm://conformance-%d", (int) getpid());
		OK(fi_getinfo(api_version(), node, NULL, FI_SOURCE, hints, &info));
	}
	CHECK(info->src_addr && info->src_addrlen, "no source address");
	first = bed.info;
	bed.info = info;
	ep = bare_ep(&bed);
	OK(fi_ep_bind(ep, &bed.av->fid, 0));
	bed.side[0].tx = a_cq(&bed);
	OK(fi_ep_bind(ep, &bed.side[0].tx->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	side.ep = ep;
	learn_name(&side);
	CHECK(!memcmp(side.name, info->src_addr, is_ip(&bed) ? 8 : strlen(node)), "another name: %.40s", side.name);
	OK(fi_close(&ep->fid));
	fi_freeinfo(first);
	close_bed(&bed);
}

/* ---- cancel ---- */

static void cancel_of_nothing(void)
{
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	ret = fi_cancel(&bed.side[0].ep->fid, ctx(77));
	CHECK(ret == 0 || ret == -FI_ENOENT || ret == -FI_EAGAIN, "fi_cancel: %s", fi_strerror(-ret));
	NO_COMPLETION(&bed, bed.side[0].rx); /* the call itself has no entry */
	ping(&bed, 1, 0);
	close_bed(&bed);
}

/* ---- flags ---- */

static void ops_flags_are_per_direction(void)
{
	struct setup s = { .tx_flags = FI_DELIVERY_COMPLETE };
	uint64_t flags;
	struct bed bed;
	int ret;

	open_bed(&bed, &s);
	flags = FI_TRANSMIT;
	ret = fi_control(&bed.side[0].ep->fid, FI_GETOPSFLAG, &flags);
	NEED(!lacking(ret), "FI_GETOPSFLAG: %s", fi_strerror(-ret));
	CHECK(ret == 0 && (flags & FI_DELIVERY_COMPLETE), "transmit: %d, 0x%llx", ret, (unsigned long long) flags);
	flags = FI_RECV;
	OK(fi_control(&bed.side[0].ep->fid, FI_GETOPSFLAG, &flags));
	CHECK(!(flags & FI_DELIVERY_COMPLETE), "receive: 0x%llx", (unsigned long long) flags);
	close_bed(&bed);
}

static void ops_flags_need_one_direction(void)
{
	uint64_t flags = FI_TRANSMIT | FI_RECV, none = 0;
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	ret = fi_control(&bed.side[0].ep->fid, FI_GETOPSFLAG, &flags);
	NEED(!lacking(ret), "FI_GETOPSFLAG: %s", fi_strerror(-ret));
	CHECK(ret < 0, "FI_GETOPSFLAG of both: 0x%llx", (unsigned long long) flags);
	FAILS(fi_control(&bed.side[0].ep->fid, FI_GETOPSFLAG, &none));
	flags = FI_TRANSMIT | FI_RECV | FI_COMPLETION;
	FAILS(fi_control(&bed.side[0].ep->fid, FI_SETOPSFLAG, &flags));
	none = FI_COMPLETION;
	FAILS(fi_control(&bed.side[0].ep->fid, FI_SETOPSFLAG, &none));
	close_bed(&bed);
}

static void set_ops_flags_takes_effect(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION };
	uint64_t flags;
	struct bed bed;
	int ret, i;

	open_bed(&bed, &s);
	for (i = 0; i < 3; i++) {
		bool wanted = i == 1;

		flags = FI_TRANSMIT | (wanted ? FI_COMPLETION : 0);
		ret = fi_control(&bed.side[0].ep->fid, FI_SETOPSFLAG, &flags);
		NEED(!lacking(ret), "FI_SETOPSFLAG: %s", fi_strerror(-ret));
		CHECK(ret == 0, "FI_SETOPSFLAG: %d", ret);
		flags = FI_TRANSMIT;
		OK(fi_control(&bed.side[0].ep->fid, FI_GETOPSFLAG, &flags));
		CHECK(!!(flags & FI_COMPLETION) == wanted, "0x%llx", (unsigned long long) flags);
		POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
		COMPLETION(&bed, bed.side[1].rx, ctx(1));
		if (wanted)
			COMPLETION(&bed, bed.side[0].tx, ctx(2));
		else
			NO_COMPLETION(&bed, bed.side[0].tx);
	}
	close_bed(&bed);
}

/* FI_INJECT as the default: every buffer is free when its call returns. */
static void inject_by_default(void)
{
	struct setup s = { .tx_flags = FI_INJECT };
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	NEED(bed.info->tx_attr->op_flags & FI_INJECT, "FI_INJECT is no default flag here");
	for (i = 0; i < 4; i++) {
		fill(out, 16, (unsigned) i);
		POST(&bed, fi_tsend(bed.side[0].ep, out, 16, NULL, bed.side[1].addr, 1, ctx(10 + i)));
		memset(out, '#', 16);
	}
	for (i = 0; i < 4; i++) {
		POST(&bed, fi_trecv(bed.side[1].ep, in, 16, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
		COMPLETION(&bed, bed.side[1].rx, ctx(i));
		COMPLETION(&bed, bed.side[0].tx, ctx(10 + i));
		SAME(in, 16, (unsigned) i);
	}
	close_bed(&bed);
}

/* ---- aliases ---- */

static struct fid_ep *alias_of(struct bed *bed, uint64_t flags)
{
	struct fid_ep *alias;
	int ret = fi_ep_alias(bed->side[0].ep, &alias, flags);

	NEED(!lacking(ret), "fi_ep_alias: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_ep_alias: %s", fi_strerror(-ret));
	return alias;
}

static void alias_differs_by_its_flags(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION };
	struct fid_ep *alias;
	struct bed bed;

	open_bed(&bed, &s);
	alias = alias_of(&bed, FI_TRANSMIT | FI_COMPLETION);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(alias, out, 8, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 8, NULL, bed.side[1].addr, 1, ctx(4)));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	NO_COMPLETION(&bed, bed.side[0].tx);
	OK(fi_close(&alias->fid));
	close_bed(&bed);
}

static void alias_needs_one_direction(void)
{
	struct fid_ep *alias;
	struct bed bed;

	open_bed(&bed, &usual);
	OK(fi_close(&alias_of(&bed, FI_RECV)->fid));
	FAILS(fi_ep_alias(bed.side[0].ep, &alias, FI_TRANSMIT | FI_RECV));
	FAILS(fi_ep_alias(bed.side[0].ep, &alias, FI_COMPLETION));
	close_bed(&bed);
}

static void alias_holds_its_endpoint(void)
{
	struct fid_ep *alias;
	struct bed bed;

	open_bed(&bed, &usual);
	alias = alias_of(&bed, FI_TRANSMIT);
	FAILS(fi_close(&bed.side[0].ep->fid));
	OK(fi_close(&alias->fid));
	ping(&bed, 0, 1);
	close_bed(&bed);
}

/* ---- options ---- */

static void option_min_multi_recv(void)
{
	struct setup s = { .more_caps = FI_MULTI_RECV };
	size_t value = 1234, len = sizeof(value);
	struct bed bed;

	open_sides(&bed, &s);
	OK(fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	value = 0;
	OK(fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK(value == 1234 && len == sizeof(value), "%zu in %zu bytes", value, len);
	close_bed(&bed);
}

static void unknown_options(void)
{
	char value[64] = { 0 };
	size_t len = sizeof(value);
	struct bed bed;

	open_sides(&bed, &usual);
	GIVES(-FI_ENOPROTOOPT, fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, 12345, value, &len));
	GIVES(-FI_ENOPROTOOPT, fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, 12345, value, sizeof(size_t)));
	GIVES(-FI_ENOPROTOOPT, fi_getopt(&bed.side[0].ep->fid, 12345, FI_OPT_MIN_MULTI_RECV, value, &len));
	GIVES(-FI_ENOPROTOOPT, fi_setopt(&bed.side[0].ep->fid, 12345, FI_OPT_MIN_MULTI_RECV, value, sizeof(size_t)));
	close_bed(&bed);
}

static void option_of_a_wrong_size(void)
{
	struct setup s = { .more_caps = FI_MULTI_RECV };
	char value[64] = { 0 };
	size_t len = 1;
	struct bed bed;

	open_sides(&bed, &s);
	FAILS(fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, &len));
	FAILS(fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, 1));
	close_bed(&bed);
}

static void cm_data_size_is_read_only(void)
{
	size_t value = 8;
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, sizeof(value)));
	close_bed(&bed);
}

#if HEADERS_2
/* Either there, and within the attributes, or refused in the documented way. */
static void size_options(void)
{
	static const int options[] = {
		FI_OPT_MAX_MSG_SIZE, FI_OPT_MAX_TAGGED_SIZE, FI_OPT_MAX_RMA_SIZE, FI_OPT_MAX_ATOMIC_SIZE,
		FI_OPT_INJECT_MSG_SIZE, FI_OPT_INJECT_TAGGED_SIZE, FI_OPT_INJECT_RMA_SIZE, FI_OPT_INJECT_ATOMIC_SIZE,
	};
	struct bed bed;
	unsigned i;

	open_sides(&bed, &usual);
	for (i = 0; i < sizeof(options) / sizeof(*options); i++) {
		size_t value = 0, len = sizeof(value);
		size_t limit = i < 4 ? bed.info->ep_attr->max_msg_size : bed.info->tx_attr->inject_size;
		int ret = fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, options[i], &value, &len);

		if (ret == -FI_ENOPROTOOPT)
			continue;
		CHECK(ret == 0 && len == sizeof(value), "option %d: %s", options[i], fi_strerror(-ret));
		CHECK(value <= limit, "option %d: %zu is more than the %zu of the attributes", options[i], value, limit);
	}
	close_bed(&bed);
}
#endif

static void traffic_classes(void)
{
	int dscp;

	for (dscp = 0; dscp < 64; dscp++)
		CHECK(fi_tc_dscp_get(fi_tc_dscp_set((uint8_t) dscp)) == dscp, "dscp %d", dscp);
	CHECK(fi_tc_dscp_get(FI_TC_BULK_DATA) == 0, "a class that is no dscp");
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void size_left(void)
{
	struct bed bed;
	ssize_t left, i;

	open_bed(&bed, &usual);
	left = fi_rx_size_left(bed.side[0].ep);
	NEED(!lacking(left), "fi_rx_size_left: %s", fi_strerror((int) -left));
	CHECK(left >= 0, "fi_rx_size_left: %zd", left);
	for (i = 0; i < left && i < 2000; i++) /* so many go in without -FI_EAGAIN */
		OK(fi_trecv(bed.side[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx((int) i)));
	left = fi_tx_size_left(bed.side[0].ep);
	CHECK(left >= 0, "fi_tx_size_left: %zd", left);
	close_bed(&bed);
}

static void size_left_before_enable(void)
{
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(fi_rx_size_left(bed.side[0].ep));
	FAILS(fi_tx_size_left(bed.side[0].ep));
	close_bed(&bed);
}

/* ---- closing ---- */

static void close_drops_what_is_posted(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, fi_trecv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_recv(bed.side[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, ctx(2)));
	OK(fi_close(&bed.side[1].ep->fid));
	bed.side[1].ep = NULL;
	GIVES(-FI_EAGAIN, fi_cq_read(bed.side[1].rx, &e, 1));
	close_bed(&bed);
}

static void open_and_close_often(void)
{
	struct bed bed;
	int i;

	for (i = 0; i < 20; i++) {
		open_bed(&bed, &usual);
		if (i % 5 == 0)
			ping(&bed, 0, 1);
		close_bed(&bed);
	}
}

static void a_new_endpoint_beside_the_old(void)
{
	struct bed bed;
	struct side *late;

	open_bed(&bed, &usual);
	ping(&bed, 0, 1);
	late = &bed.side[2];
	late->ep = bare_ep(&bed);
	late->tx = a_cq(&bed);
	late->rx = a_cq(&bed);
	OK(fi_ep_bind(late->ep, &bed.av->fid, 0));
	OK(fi_ep_bind(late->ep, &late->tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(late->ep, &late->rx->fid, FI_RECV));
	OK(fi_enable(late->ep));
	learn_name(late);
	bed.sides = 3;
	GIVES(1, insert_sides(&bed, bed.av, 2, 1, &late->addr, 0, NULL));
	ping(&bed, 2, 0);
	ping(&bed, 1, 2);
	ping(&bed, 0, 1);
	close_bed(&bed);
}

/* ---- scalable endpoints ---- */

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
		OK(fi_trecv(s.bed.side[0].ep, in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&s.bed, fi_tsend(s.tx[i], out, 32, NULL, s.bed.side[0].addr, 1, ctx(2)));
		scalable_entry(&s, s.txcq[i], ctx(2)); /* in the context's own queue */
		scalable_entry(&s, s.bed.side[0].rx, ctx(1));
		SAME(in, 32, (unsigned) i);

		OK(fi_trecv(s.rx[i], in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
		POST(&s.bed, fi_tsend(s.bed.side[0].ep, out, 32, NULL, fi_rx_addr(s.addr, i, 1), 1, ctx(4)));
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
	FAILS(fi_send(s.sep, out, 8, NULL, s.bed.side[0].addr, ctx(1)));
	FAILS(fi_recv(s.sep, in, 8, NULL, FI_ADDR_UNSPEC, ctx(1)));
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

		OK(fi_trecv(s.bed.side[0].ep, in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&s.bed, fi_tsend(s.tx[i], out, 32, NULL, s.bed.side[0].addr, 1, ctx(2)));
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
	OK(fi_trecv(s.bed.side[0].ep, in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&s.bed, fi_tsend(s.tx[0], out, 32, NULL, s.bed.side[0].addr, 1, ctx(2)));
	scalable_entry(&s, s.txcq[0], ctx(2));
	scalable_entry(&s, s.bed.side[0].rx, ctx(1));
	close_scalable(&s);
}

/* A context moves messages in its own direction only. */
static void scalable_contexts_have_a_direction(void)
{
	struct scalable s;

	open_scalable(&s);
	FAILS(fi_tsend(s.rx[0], out, 8, NULL, s.bed.side[0].addr, 1, ctx(1)));
	FAILS(fi_trecv(s.tx[0], in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
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
	OK(fi_trecv(alias, in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	POST(&s.bed, fi_tsend(s.bed.side[0].ep, out, 32, NULL, fi_rx_addr(s.addr, 1, 1), 1, ctx(4)));
	scalable_entry(&s, s.rxcq[1], ctx(3));
	scalable_entry(&s, s.bed.side[0].tx, ctx(4));
	FAILS(fi_close(&s.rx[1]->fid));
	OK(fi_close(&alias->fid));
	close_scalable(&s);
}

/* ---- shared contexts ---- */

static void shared_receive_context(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 3 };
	struct fi_rx_attr attr;
	struct fid_ep *srx;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &s);
	attr = *bed.info->rx_attr;
	ret = fi_srx_context(bed.domain, &attr, &srx, ctx(1));
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(srx->fid.fclass == FI_CLASS_SRX_CTX, "class %zu", srx->fid.fclass);
	for (i = 0; i < 3; i++)
		OK(fi_ep_bind(bed.side[i].ep, &srx->fid, 0));
	enable_sides(&bed, &s);
	for (i = 1; i < 3; i++) { /* one pool of buffers, but each endpoint's own queue */
		fill(out, 32, (unsigned) i);
		OK(fi_trecv(srx, in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
		POST(&bed, fi_tsend(bed.side[0].ep, out, 32, NULL, bed.side[i].addr, 1, ctx(10 + i)));
		COMPLETION(&bed, bed.side[i].rx, ctx(i));
		COMPLETION(&bed, bed.side[0].tx, ctx(10 + i));
		SAME(in, 32, (unsigned) i);
		OK(fi_recv(srx, in, 32, NULL, FI_ADDR_UNSPEC, ctx(i)));
		POST(&bed, fi_send(bed.side[0].ep, out, 32, NULL, bed.side[i].addr, ctx(10 + i)));
		COMPLETION(&bed, bed.side[i].rx, ctx(i));
		COMPLETION(&bed, bed.side[0].tx, ctx(10 + i));
	}
	GIVES(-FI_EBUSY, fi_close(&srx->fid));
	for (i = 0; i < 3; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	OK(fi_close(&srx->fid));
	close_bed(&bed);
}

/* An endpoint takes one receive context, and all that share it have one AV. */
static void shared_receive_context_binds_once(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 2 };
	struct fi_av_attr av_attr = { 0 };
	struct fi_rx_attr attr;
	struct fid_ep *srx, *other, *ep;
	struct fid_av *av;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &s);
	attr = *bed.info->rx_attr;
	ret = fi_srx_context(bed.domain, &attr, &srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	OK(ret);
	OK(fi_srx_context(bed.domain, &attr, &other, NULL));
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
	for (i = 0; i < 2; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	OK(fi_close(&srx->fid));
	close_bed(&bed);
}

/* An alias is refused, or does what the context does. */
static void shared_receive_context_alias(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 2 };
	struct fi_rx_attr attr;
	struct fid_ep *srx, *alias = NULL;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &s);
	attr = *bed.info->rx_attr;
	ret = fi_srx_context(bed.domain, &attr, &srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	OK(ret);
	for (i = 0; i < 2; i++)
		OK(fi_ep_bind(bed.side[i].ep, &srx->fid, 0));
	enable_sides(&bed, &s);
	ret = fi_ep_alias(srx, &alias, FI_RECV);
	CHECK(ret == 0 || lacking(ret) || ret == -FI_EINVAL, "fi_ep_alias: %s", fi_strerror(-ret));
	OK(fi_trecv(ret ? srx : alias, in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_tsend(bed.side[0].ep, out, 32, NULL, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	if (!ret)
		OK(fi_close(&alias->fid));
	for (i = 0; i < 2; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	OK(fi_close(&srx->fid));
	close_bed(&bed);
}

/* What is meant for no endpoint's buffer yet waits, and finds the first that is posted. */
static void shared_receives_of_unexpected(void)
{
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 3 };
	struct fi_rx_attr attr;
	struct fid_ep *srx;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &s);
	attr = *bed.info->rx_attr;
	ret = fi_srx_context(bed.domain, &attr, &srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	OK(ret);
	for (i = 0; i < 3; i++)
		OK(fi_ep_bind(bed.side[i].ep, &srx->fid, 0));
	enable_sides(&bed, &s);
	for (i = 1; i < 3; i++) {
		fill(out + 100 * i, 32, (unsigned) i);
		POST(&bed, fi_tsend(bed.side[0].ep, out + 100 * i, 32, NULL, bed.side[i].addr, (uint64_t) i, ctx(10 + i)));
	}
	settle(&bed);
	for (i = 2; i > 0; i--) {
		OK(fi_trecv(srx, in, 32, NULL, FI_ADDR_UNSPEC, (uint64_t) i, 0, ctx(i)));
		COMPLETION(&bed, bed.side[i].rx, ctx(i));
		SAME(in, 32, (unsigned) i);
	}
	/* Posted, but never met: it goes with the context. */
	OK(fi_trecv(srx, in, 32, NULL, FI_ADDR_UNSPEC, 9, 0, ctx(9)));
	for (i = 0; i < 3; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	OK(fi_close(&srx->fid));
	close_bed(&bed);
}

/* Without the context that it was opened for, an endpoint is not enabled; and it takes one only. */
static void shared_transmit_context_binds_once(void)
{
	struct setup s = { .tx_ctx_cnt = FI_SHARED_CONTEXT };
	struct fi_tx_attr attr;
	struct fid_stx *stx, *other;
	struct bed bed;
	int ret;

	open_sides(&bed, &s);
	attr = *bed.info->tx_attr;
	ret = fi_stx_context(bed.domain, &attr, &stx, NULL);
	NEED(!lacking(ret), "fi_stx_context: %s", fi_strerror(-ret));
	OK(ret);
	OK(fi_stx_context(bed.domain, &attr, &other, NULL));
	FAILS(fi_enable(bed.side[0].ep));
	OK(fi_ep_bind(bed.side[0].ep, &stx->fid, 0));
	FAILS(fi_ep_bind(bed.side[0].ep, &other->fid, 0));
	OK(fi_enable(bed.side[0].ep));
	OK(fi_close(&other->fid));
	OK(fi_close(&bed.side[0].ep->fid));
	bed.side[0].ep = NULL;
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
	int i, ret;

	open_sides(&bed, &s);
	ret = fi_srx_context(bed.domain, bed.info->rx_attr, &srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	OK(ret);
	ret = fi_stx_context(bed.domain, bed.info->tx_attr, &stx, NULL);
	NEED(!lacking(ret), "fi_stx_context: %s", fi_strerror(-ret));
	OK(ret);
	for (i = 0; i < 2; i++) {
		OK(fi_ep_bind(bed.side[i].ep, &srx->fid, 0));
		OK(fi_ep_bind(bed.side[i].ep, &stx->fid, 0));
	}
	enable_sides(&bed, &s);
	for (i = 0; i < 2; i++) {
		OK(fi_trecv(srx, in, 32, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&bed, fi_tsend(bed.side[i].ep, out, 32, NULL, bed.side[!i].addr, 1, ctx(2)));
		COMPLETION(&bed, bed.side[!i].rx, ctx(1));
		COMPLETION(&bed, bed.side[i].tx, ctx(2));
	}
	for (i = 0; i < 2; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	OK(fi_close(&stx->fid));
	OK(fi_close(&srx->fid));
	close_bed(&bed);
}

static void shared_transmit_context(void)
{
	struct setup s = { .tx_ctx_cnt = FI_SHARED_CONTEXT, .sides = 3 };
	struct fi_tx_attr attr;
	struct fid_stx *stx;
	struct bed bed;
	int i, ret;

	open_sides(&bed, &s);
	attr = *bed.info->tx_attr;
	ret = fi_stx_context(bed.domain, &attr, &stx, ctx(1));
	NEED(!lacking(ret), "fi_stx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_stx_context: %s", fi_strerror(-ret));
	CHECK(stx->fid.fclass == FI_CLASS_STX_CTX, "class %zu", stx->fid.fclass);
	for (i = 0; i < 3; i++)
		OK(fi_ep_bind(bed.side[i].ep, &stx->fid, 0));
	enable_sides(&bed, &s);
	ping(&bed, 0, 2); /* posted to the endpoint, completed in the endpoint's queue */
	ping(&bed, 1, 2);
	GIVES(-FI_EBUSY, fi_close(&stx->fid));
	for (i = 0; i < 3; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	OK(fi_close(&stx->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(opens), TEST(enable_needs_a_queue), TEST(enable_needs_a_transmit_queue), TEST(enable_needs_a_receive_queue),
	TEST(enable_needs_an_av), TEST(enable_with_all), TEST(half_an_endpoint),
	 TEST(bind_queue_with_other_flags), TEST(bind_two_queues_for_one_direction),
	TEST(bind_two_counters_for_one_kind), TEST(bind_two_avs), TEST(bind_across_domains),
	TEST(bind_what_cannot_be_bound), TEST(name_needs_room), TEST(names_differ), TEST(setname), TEST(name_from_the_info),
	TEST(cancel_of_nothing), TEST(ops_flags_are_per_direction), TEST(ops_flags_need_one_direction),
	TEST(set_ops_flags_takes_effect), TEST(inject_by_default), TEST(alias_differs_by_its_flags),
	TEST(alias_needs_one_direction), TEST(alias_holds_its_endpoint), TEST(option_min_multi_recv), TEST(unknown_options),
	TEST(option_of_a_wrong_size), TEST(cm_data_size_is_read_only),
#if HEADERS_2
	TEST(size_options),
#endif
	TEST(traffic_classes), TEST(size_left), TEST(size_left_before_enable), TEST(close_drops_what_is_posted),
	TEST(open_and_close_often), TEST(a_new_endpoint_beside_the_old), TEST(scalable_contexts_transfer),
	TEST(scalable_waits_for_its_contexts), TEST(scalable_has_so_many_contexts), TEST(scalable_transfers_nothing_itself),
	TEST(scalable_context_attributes), TEST(scalable_has_one_name), TEST(scalable_takes_one_av),
	TEST(scalable_context_again), TEST(scalable_contexts_have_a_direction), TEST(scalable_alias_of_a_context),
	TEST(shared_receive_context), TEST(shared_receive_context_binds_once), TEST(shared_receive_context_alias),
	TEST(shared_receives_of_unexpected), TEST(shared_transmit_context), TEST(shared_transmit_context_binds_once),
	TEST(both_contexts_shared),
};

CASES(tests)

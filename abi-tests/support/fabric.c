/* The bed: what is offered for a setup, and endpoints from there to their end. */
#include "fabric.h"
#include "prefix.h"

bool lacking(long e)
{
	return e == -FI_ENOSYS || e == -FI_EOPNOTSUPP || e == -FI_ENOPROTOOPT;
}

enum fi_ep_type usual_type(void)
{
	return connected_ends ? FI_EP_MSG : datagram_ends ? FI_EP_DGRAM : FI_EP_RDM;
}

uint64_t usual_caps(void)
{
	return datagram_ends ? FI_MSG : FI_MSG | FI_TAGGED;
}

struct fi_info *hints_for(const struct setup *s)
{
	uint64_t caps = s->caps ? s->caps : usual_caps();
	struct wish wish = { .provider = provider, .caps = caps | s->more_caps, .mode = CONTEXTS | (datagram_ends ? FI_MSG_PREFIX | FI_RX_CQ_DATA : 0),
			     .ep_type = s->ep_type ? s->ep_type : usual_type(), .threading = s->threading, .rx_ctx_cnt = s->rx_ctx_cnt, .tx_ctx_cnt = s->tx_ctx_cnt };
	struct fi_info *hints = hints_of(&wish);

	hints->addr_format = s->addr_format;
	hints->tx_attr->op_flags = s->tx_flags;
	hints->rx_attr->op_flags = s->rx_flags;
	/* Before 1.5 there are two modes and no bits; 0 leaves the choice to the provider. */
	if (!s->version || FI_VERSION_GE(s->version, FI_VERSION(1, 5)))
		hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->domain_attr->caps = s->domain_caps;
	hints->domain_attr->data_progress = s->progress;
	hints->domain_attr->resource_mgmt = s->resource_mgmt;
	hints->domain_attr->auth_key_size = s->auth_key_size;
	return hints;
}

int get_info(uint32_t version, struct fi_info *hints, struct fi_info **info)
{
	const char *node = usual_node(provider);

	*info = NULL;
	return fi_getinfo(version, node, NULL, node ? FI_SOURCE : 0, hints, info);
}

/* What tells peers apart, or needs several. */
static const uint64_t for_many = FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV | FI_NAMED_RX_CTX | FI_SHARED_AV | FI_COLLECTIVE
#if HEADERS_2
				 | FI_AV_USER_ID | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV
#endif
	;

int find_info(const struct setup *s, struct fi_info **info)
{
	uint32_t version = s->version ? s->version : api_version();
	struct fi_info *hints = hints_for(s);
	int ret = get_info(version, hints, info);

	if (ret == -FI_ENODATA && !s->caps && of_page != TAGGED_MESSAGES) {
		hints->caps &= ~FI_TAGGED;
		ret = get_info(version, hints, info);
	}
	tagged = of_page == TAGGED_MESSAGES || (of_page == ANY_MESSAGES && hints->caps & FI_TAGGED);
	fi_freeinfo(hints);
	return ret;
}

void open_info(struct bed *bed, const struct setup *s)
{
	int ret;

	memset(bed, 0, sizeof(*bed));
	if (connected_ends && (s->sides > 2 || s->strangers || (s->caps | s->more_caps | s->domain_caps) & for_many))
		WITHOUT_MEANING("a connected endpoint has one peer");
	ret = find_info(s, &bed->info);
	NEED(ret != -FI_ENODATA, "%s does not offer what the case needs", provider);
	CHECK(ret == 0, "fi_getinfo: %s", fi_strerror(-ret));
}

/* Where the program's static memory begins and ends. */
extern char __data_start[], _end[];

/* Gives a card the memory that it must know: all of the program's that is static. */
static void register_mine(struct bed *bed)
{
	uint64_t access = FI_SEND | FI_RECV;
	int ret;

	describe(NULL);
	if (!(bed->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return;
	if (bed->info->caps & (FI_RMA | FI_ATOMIC))
		access |= FI_READ | FI_WRITE;
	ret = fi_mr_reg(bed->domain, __data_start, (size_t) (_end - __data_start), access, 0, 0, 0, &bed->mine, NULL);
	NEED(!lacking(ret), "fi_mr_reg: %s", fi_strerror(-ret)); /* in a domain with a key for each peer */
	CHECK(ret == 0, "fi_mr_reg: %s", fi_strerror(-ret));
	describe(fi_mr_desc(bed->mine));
}

void open_domain(struct bed *bed, const struct setup *s)
{
	int ret;

	open_info(bed, s);
	bed->info->domain_attr->mr_mode |= s->mr_added;
	OK(fi_fabric(bed->info->fabric_attr, &bed->fabric, NULL));
	ret = fi_domain(bed->fabric, bed->info, &bed->domain, NULL);
	NEED(!lacking(ret), "fi_domain: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_domain: %s", fi_strerror(-ret));
	register_mine(bed);
	hide_prefix(bed);
}

void open_domain_for_regions(struct bed *bed)
{
	struct setup s = { .more_caps = FI_RMA };
	struct fi_info *hints = hints_for(&s), *info = NULL;

	if (get_info(api_version(), hints, &info) == -FI_ENODATA)
		s.more_caps = 0;
	fi_freeinfo(info);
	fi_freeinfo(hints);
	open_domain(bed, &s);
}

void open_av(struct bed *bed, const struct setup *s)
{
	struct fi_av_attr attr = { .type = s->av_type, .flags = s->av_flags, .rx_ctx_bits = s->rx_ctx_bits, .count = 16 };
	int ret;

	open_domain(bed, s);
	ret = fi_av_open(bed->domain, &attr, &bed->av, NULL);
	NEED(!lacking(ret), "fi_av_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_open: %s", fi_strerror(-ret));
}

int open_cq(struct bed *bed, const struct setup *s, struct fid_cq **cq, void *context)
{
	struct fi_cq_attr attr = { .format = s->format ? s->format : FI_CQ_FORMAT_TAGGED, .size = s->cq_size };

	attr.wait_obj = s->any_wait ? FI_WAIT_UNSPEC : s->wait_obj ? s->wait_obj : FI_WAIT_NONE;
	attr.wait_cond = s->wait_cond;
	return fi_cq_open(bed->domain, &attr, cq, context);
}

void open_bed_side(struct bed *bed, const struct setup *s, int at, struct fi_info *info)
{
	struct side *side = &bed->side[at];
	int ret = fi_endpoint(bed->domain, info, &side->ep, side);

	NEED(!lacking(ret), "fi_endpoint: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_endpoint: %s", fi_strerror(-ret));
	ret = open_cq(bed, s, &side->tx, NULL);
	NEED(!lacking(ret), "fi_cq_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cq_open: %s", fi_strerror(-ret));
	OK(open_cq(bed, s, &side->rx, NULL));
	OK(fi_ep_bind(side->ep, connected_ends ? &bed->eq->fid : &bed->av->fid, 0));
	OK(fi_ep_bind(side->ep, &side->tx->fid, FI_TRANSMIT | s->tx_bind));
	OK(fi_ep_bind(side->ep, &side->rx->fid, FI_RECV | s->rx_bind));
}

void open_sides(struct bed *bed, const struct setup *s)
{
	int i;

	if (connected_ends)
		WITHOUT_MEANING("one endpoint is enabled before the other can be opened");
	open_av(bed, s);
	bed->sides = s->sides ? s->sides : 2;
	for (i = 0; i < bed->sides; i++)
		open_bed_side(bed, s, i, bed->info);
}

static void share_receives(struct bed *bed)
{
	int i, ret = fi_srx_context(bed->domain, bed->info->rx_attr, &bed->srx, NULL);

	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
	for (i = 0; i < bed->sides; i++)
		OK(fi_ep_bind(bed->side[i].ep, &bed->srx->fid, 0));
}

/* ---- connected endpoints ---- */

struct fid_pep *listen_for(struct bed *bed, char *name, size_t *len)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_pep *pep;

	if (!bed->eq)
		OK(fi_eq_open(bed->fabric, &attr, &bed->eq, NULL));
	OK(fi_passive_ep(bed->fabric, bed->info, &pep, NULL));
	OK(fi_pep_bind(pep, &bed->eq->fid, 0));
	OK(fi_listen(pep));
	*len = NAME_MAX_LEN;
	OK(fi_getname(&pep->fid, name, len));
	return pep;
}

static void prepare(struct bed *bed, const struct setup *s, int side, struct fi_info *info)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	if (!bed->eq)
		OK(fi_eq_open(bed->fabric, &attr, &bed->eq, NULL));
	open_bed_side(bed, s, side, info);
	if (s->rx_ctx_cnt == FI_SHARED_CONTEXT) {
		int ret = bed->srx ? 0 : fi_srx_context(bed->domain, bed->info->rx_attr, &bed->srx, NULL);

		NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
		OK(fi_ep_bind(bed->side[side].ep, &bed->srx->fid, 0));
	}
	if (s->bind)
		s->bind(bed, side);
	/* fi_connect and fi_accept do so too, but not in every provider of the C library. */
	OK(fi_enable(bed->side[side].ep));
	bed->side[side].addr = FI_ADDR_UNSPEC;
	if (bed->sides <= side)
		bed->sides = side + 1;
}

/* The next event, which must be this one; its info. */
static struct fi_info *await_event(struct bed *bed, uint32_t wanted)
{
	struct fi_eq_cm_entry entry;
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event = 0;
	ssize_t ret;

	while ((ret = fi_eq_read(bed->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN && now_ms() < until)
		progress(bed);
	CHECK(ret == sizeof(entry) && event == wanted, "no event %u, but %u: %zd (%s)", wanted, event, ret,
	      ret < 0 ? fi_strerror((int) -ret) : "an event");
	return entry.info;
}

void call_side(struct bed *bed, const struct setup *s, int side, const char *name)
{
	prepare(bed, s, side, bed->info);
	OK(fi_connect(bed->side[side].ep, name, NULL, 0));
}

void answer_side(struct bed *bed, const struct setup *s, int side)
{
	struct fi_info *info = await_event(bed, FI_CONNREQ);

	prepare(bed, s, side, info);
	fi_freeinfo(info);
	OK(fi_accept(bed->side[side].ep, NULL, 0));
}

void until_connected(struct bed *bed)
{
	int i;

	for (i = 0; i < bed->sides; i++)
		await_event(bed, FI_CONNECTED);
	for (i = 0; i < bed->sides; i++)
		learn_name(&bed->side[i]);
}

static void open_connected(struct bed *bed, const struct setup *s)
{
	char name[NAME_MAX_LEN];
	struct fid_pep *pep;
	size_t len;

	if (s->sides == 1)
		WITHOUT_MEANING("a connected endpoint is none of its own peers");
	open_av(bed, s);
	pep = listen_for(bed, name, &len);
	call_side(bed, s, 0, name);
	answer_side(bed, s, 1);
	until_connected(bed);
	OK(fi_close(&pep->fid));
}

void open_bed(struct bed *bed, const struct setup *s)
{
	int i;

	if (connected_ends) {
		open_connected(bed, s);
		return;
	}
	open_sides(bed, s);
	if (s->rx_ctx_cnt == FI_SHARED_CONTEXT)
		share_receives(bed);
	for (i = 0; i < bed->sides && s->bind; i++)
		s->bind(bed, i);
	enable_sides(bed, s);
}

void enable_sides(struct bed *bed, const struct setup *s)
{
	int i;

	for (i = 0; i < bed->sides; i++) {
		OK(fi_enable(bed->side[i].ep));
		learn_name(&bed->side[i]);
		bed->side[i].addr = FI_ADDR_UNSPEC;
	}
	for (i = 0; i < bed->sides && !s->strangers; i++)
		GIVES(1, insert_sides(bed, bed->av, i, 1, &bed->side[i].addr, 0, NULL));
}

void close_ep(struct side *side)
{
	OK(fi_close(&side->ep->fid));
	side->ep = NULL;
}

void close_eps(struct bed *bed)
{
	int i;

	for (i = 0; i < SIDES; i++)
		if (bed->side[i].ep)
			close_ep(&bed->side[i]);
}

void close_bed(struct bed *bed)
{
	int i;

	close_eps(bed);
	shut(bed->srx);
	for (i = 0; i < SIDES; i++) {
		shut(bed->side[i].tx);
		shut(bed->side[i].rx);
	}
	shut(bed->av);
	shut(bed->eq);
	shut(bed->mine);
	shut(bed->domain);
	shut(bed->fabric);
	fi_freeinfo(bed->info);
	memset(bed, 0, sizeof(*bed));
}

/* Default flags of operations, and aliases, which have their own. */
#include "endpoint.h"

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
		POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
		COMPLETION(&bed, bed.side[1].rx, ctx(1));
		if (wanted)
			COMPLETION(&bed, bed.side[0].tx, ctx(2));
		else
			NO_COMPLETION(&bed, bed.side[0].tx);
	}
	close_bed(&bed);
}

static void receive_four(struct bed *bed)
{
	int i;

	for (i = 0; i < 4; i++)
		POST(bed, post_recv(bed->side[1].ep, in + 16 * i, 16, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
}

/* FI_INJECT as the default: every buffer is free when its call returns. */
static void inject_by_default(void)
{
	struct setup s = { .tx_flags = FI_INJECT };
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	NEED(bed.info->tx_attr->op_flags & FI_INJECT, "FI_INJECT is no default flag here");
	if (datagram_ends)
		receive_four(&bed);
	for (i = 0; i < 4; i++) {
		fill(out, 16, (unsigned) i);
		POST(&bed, post_send(bed.side[0].ep, out, 16, bed.side[1].addr, 1, ctx(10 + i)));
		memset(out, '#', 16);
	}
	if (!datagram_ends)
		receive_four(&bed);
	for (i = 0; i < 4; i++) {
		COMPLETION(&bed, bed.side[1].rx, ctx(i));
		COMPLETION(&bed, bed.side[0].tx, ctx(10 + i));
		SAME(in + 16 * i, 16, (unsigned) i);
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
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(alias, out, 8, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(4)));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	NO_COMPLETION(&bed, bed.side[0].tx);
	OK(fi_close(&alias->fid));
	close_bed(&bed);
}

static struct fid_cntr *sent;

static void count_sends(struct bed *bed, int side)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	if (side)
		return;
	OK(fi_cntr_open(bed->domain, &attr, &sent, NULL));
	OK(fi_ep_bind(bed->side[0].ep, &sent->fid, FI_SEND));
}

/* An injected send through an alias is counted when the alias says, here when it is delivered. */
static void alias_flags_are_for_injects_too(void)
{
	struct setup s = { .bind = count_sends };
	struct fid_ep *alias;
	struct bed bed;

	if (datagram_ends)
		SKIP("nobody acknowledges a datagram");
	open_bed(&bed, &s);
	alias = alias_of(&bed, FI_TRANSMIT | FI_DELIVERY_COMPLETE);
	POST(&bed, fi_tinject(alias, out, 8, bed.side[1].addr, 1));
	settle(&bed);
	CHECK(fi_cntr_read(sent) == 0, "counted before there was a receive");
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	settle(&bed);
	CHECK(fi_cntr_read(sent) == 1, "not counted when it was received");
	OK(fi_close(&alias->fid));
	close_eps(&bed);
	OK(fi_close(&sent->fid));
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

static const struct test tests[] = {
	TEST(ops_flags_are_per_direction), TEST(ops_flags_need_one_direction), TEST(set_ops_flags_takes_effect),
	TEST(inject_by_default), TEST(alias_differs_by_its_flags), TEST(alias_needs_one_direction),
	TEST(alias_holds_its_endpoint), TEST(alias_flags_are_for_injects_too),
};

CASES(tests)

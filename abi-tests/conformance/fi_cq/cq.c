/* What the cases of this page share. */
#include "cq.h"

char in[1024], out[1024];

uint64_t kind(void)
{
	return tagged ? FI_TAGGED : FI_MSG;
}

void start(struct bed *bed, uint64_t tag, size_t len, int rx, int tx)
{
	POST(bed, post_recv(bed->side[1].ep, in, len, FI_ADDR_UNSPEC, tag, 0, ctx(rx)));
	POST(bed, post_send(bed->side[0].ep, out, len, bed->side[1].addr, tag, ctx(tx)));
}

void sent(struct bed *bed, int tx)
{
	COMPLETION(bed, bed->side[0].tx, ctx(tx));
	settle(bed);
}

void open_one_way(struct bed *bed, uint64_t caps)
{
	struct setup s = { .more_caps = caps, .strangers = true };
	struct fi_av_attr attr = { 0 };
	struct fid_av *av;

	open_sides(bed, &s);
	/* Side 0 gets an address vector of its own. */
	OK(fi_close(&bed->side[0].ep->fid));
	OK(fi_endpoint(bed->domain, bed->info, &bed->side[0].ep, NULL));
	OK(fi_av_open(bed->domain, &attr, &av, NULL));
	OK(fi_ep_bind(bed->side[0].ep, &av->fid, 0));
	OK(fi_ep_bind(bed->side[0].ep, &bed->side[0].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(bed->side[0].ep, &bed->side[0].rx->fid, FI_RECV));
	OK(fi_enable(bed->side[0].ep));
	OK(fi_enable(bed->side[1].ep));
	learn_name(&bed->side[0]);
	learn_name(&bed->side[1]);
	GIVES(1, insert_sides(bed, av, 1, 1, &bed->side[1].addr, 0, NULL));
}

void cancel_one(struct bed *bed, int number)
{
	int ret;

	POST(bed, post_recv(bed->side[1].ep, in, 64, FI_ADDR_UNSPEC, 9, 0, ctx(number)));
	ret = fi_cancel(&bed->side[1].ep->fid, ctx(number));
	NEED(!lacking(ret), "fi_cancel: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cancel: %s", fi_strerror(-ret));
}

void open_waiting(struct bed *bed, enum fi_wait_obj wait)
{
	struct setup s = { .wait_obj = wait, .any_wait = wait == FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE };

	open_bed(bed, &s);
}

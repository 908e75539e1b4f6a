/* Remote memory behind the contexts of a scalable endpoint. */
#include "rma.h"

/* A receive context for memory alone is told of nothing, so it needs no queue; the endpoint's others move it on. */
static void a_target_without_a_queue(void)
{
	struct setup memory_only = { .caps = FI_RMA, .sides = 1 };
	struct fid_ep *sep, *tx, *rx;
	struct side far = { 0 };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_cq_tagged_entry e;
	struct iovec iov = { here, 1 };
	struct fi_rma_iov part = { .len = 1 };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = descs, .iov_count = 1, .rma_iov = &part, .rma_iov_count = 1, .context = ctx(1) };
	char packed[NAME_MAX_LEN];
	struct fid_cq *cq;
	struct window w;
	struct bed bed;
	fi_addr_t whole;
	ssize_t ret;
	long until;
	int opened;

	open_bed(&bed, &memory_only);
	NEED(!(bed.info->domain_attr->mr_mode & FI_MR_ENDPOINT), "regions belong to one endpoint");
	opened = fi_scalable_ep(bed.domain, bed.info, &sep, NULL);
	NEED(!lacking(opened), "fi_scalable_ep: %s", fi_strerror(-opened));
	CHECK(opened == 0, "fi_scalable_ep: %s", fi_strerror(-opened));
	OK(fi_cq_open(bed.domain, &attr, &cq, NULL));
	OK(fi_scalable_ep_bind(sep, &bed.av->fid, 0));
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	OK(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT));
	OK(fi_enable(tx));
	OK(fi_enable(rx));
	OK(fi_enable(sep));
	far.ep = sep;
	learn_name(&far);
	pack(&bed, packed, far.name, far.name_len);
	GIVES(1, fi_av_insert(bed.av, packed, 1, &whole, 0, NULL));
	w = expose(&bed, 0, there, 8, OPEN_TO_ALL);
	part.addr = w.remote.base;
	part.key = w.remote.key;
	msg.addr = whole;

	there[0] = 0;
	here[0] = 7;
	until = now_ms() + GIVE_UP_MS;
	/* Without FI_DELIVERY_COMPLETE it may be over before the byte is there. */
	while ((ret = fi_writemsg(bed.side[0].ep, &msg, FI_DELIVERY_COMPLETE)) == -FI_EAGAIN && now_ms() < until)
		fi_cq_read(cq, NULL, 0);
	OK(ret);
	while ((ret = fi_cq_read(bed.side[0].tx, &e, 1)) == -FI_EAGAIN && now_ms() < until)
		fi_cq_read(cq, NULL, 0);
	CHECK(ret == 1 && e.op_context == ctx(1), "the write does not end: %zd", ret);
	CHECK(there[0] == 7, "the byte is not there");

	conceal(&w);
	OK(fi_close(&rx->fid));
	OK(fi_close(&tx->fid));
	OK(fi_close(&sep->fid));
	OK(fi_close(&cq->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(a_target_without_a_queue),
};

CASES(tests)

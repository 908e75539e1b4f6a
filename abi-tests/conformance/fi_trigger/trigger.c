/* What the cases of this page share. */
#include "trigger.h"

char here[SIZE] __attribute__((aligned(64)));
char there[SIZE] __attribute__((aligned(64)));
struct iovec iov_here = { here, SIZE };
struct iovec iov_there = { there, SIZE };
struct bed bed;
struct fid_ep *ep, *other;
struct fid_cntr *trigger, *done;
struct window w;

struct fid_cntr *counter(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	return cntr;
}

void begin_with(const struct setup *setup)
{
	memset(here, 0, SIZE);
	memset(there, 0, SIZE);
	open_bed(&bed, setup);
	ep = bed.side[0].ep;
	other = bed.side[1].ep;
	trigger = counter();
	done = counter();
}

void begin(void)
{
	begin_with(&usual);
}

void end(void)
{
	OK(fi_close(&trigger->fid));
	OK(fi_close(&done->fid));
	close_bed(&bed);
}

int queue(struct fi_deferred_work *work)
{
	return fi_control(&bed.domain->fid, FI_QUEUE_WORK, work);
}

struct fi_deferred_work on(uint64_t threshold, enum fi_op_type type)
{
	return (struct fi_deferred_work) { .threshold = threshold, .triggering_cntr = trigger, .op_type = type };
}

void set_up(struct count *count, uint64_t threshold, enum fi_op_type type, struct fid_cntr *cntr, uint64_t value)
{
	count->work = on(threshold, type);
	count->op = (struct fi_op_cntr) { .cntr = cntr, .value = value };
	count->work.op.cntr = &count->op;
}

void set_up_message(struct message *message, uint64_t threshold, enum fi_op_type type, struct fid_ep *by, struct iovec *iov,
		    fi_addr_t addr)
{
	message->work = on(threshold, type);
	message->work.completion_cntr = done;
	message->work.op.msg = &message->op;
	message->op = (struct fi_op_msg) {
		.ep = by,
		.msg = { .msg_iov = iov, .desc = descs, .iov_count = 1, .addr = addr, .context = &message->work.context },
	};
}

void set_up_tagged(struct tagged *tagged, uint64_t threshold, enum fi_op_type type, struct fid_ep *by, struct iovec *iov,
		   fi_addr_t addr)
{
	tagged->work = on(threshold, type);
	tagged->work.completion_cntr = done;
	tagged->work.op.tagged = &tagged->op;
	tagged->op = (struct fi_op_tagged) {
		.ep = by,
		.msg = { .msg_iov = iov, .desc = descs, .iov_count = 1, .addr = addr, .tag = 0x77, .context = &tagged->work.context },
	};
}

void set_up_rma(struct rma *rma, uint64_t threshold, enum fi_op_type type, struct iovec *iov)
{
	rma->work = on(threshold, type);
	rma->work.completion_cntr = done;
	rma->work.op.rma = &rma->op;
	rma->remote = (struct fi_rma_iov) { .addr = w.remote.base, .len = iov->iov_len, .key = w.remote.key };
	rma->op = (struct fi_op_rma) {
		.ep = ep,
		.msg = { .msg_iov = iov, .desc = descs, .iov_count = 1, .addr = bed.side[1].addr, .rma_iov = &rma->remote,
			 .rma_iov_count = 1, .context = &rma->work.context },
	};
}

void silence(void)
{
	NO_COMPLETION(&bed, bed.side[0].tx);
	NO_COMPLETION(&bed, bed.side[0].rx);
	NO_COMPLETION(&bed, bed.side[1].tx);
	NO_COMPLETION(&bed, bed.side[1].rx);
}

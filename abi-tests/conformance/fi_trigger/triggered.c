/* Operations posted with FI_TRIGGER. */
#include "trigger.h"

static struct fi_triggered_context2 triggered[2];

static void *wait_for(int which, size_t threshold)
{
	triggered[which] = (struct fi_triggered_context2) {
		.event_type = FI_TRIGGER_THRESHOLD,
		.trigger.threshold = { .cntr = trigger, .threshold = threshold },
	};
	return &triggered[which];
}

static void triggered_sends_go_by_threshold(void)
{
	struct fi_msg msg = { .iov_count = 1 };
	struct iovec iov;
	char got[2] = "..";

	begin();
	memcpy(here, "ab", 2);
	msg.addr = bed.side[1].addr;
	msg.msg_iov = &iov;
	POST(&bed, fi_recv(other, &got[0], 1, desc, FI_ADDR_UNSPEC, ctx(1)));
	POST(&bed, fi_recv(other, &got[1], 1, desc, FI_ADDR_UNSPEC, ctx(2)));
	iov = (struct iovec) { &here[1], 1 };
	msg.context = wait_for(1, 2);
	TRY(&bed, fi_sendmsg(ep, &msg, FI_TRIGGER | FI_COMPLETION));
	iov = (struct iovec) { &here[0], 1 };
	msg.context = wait_for(0, 1);
	TRY(&bed, fi_sendmsg(ep, &msg, FI_TRIGGER | FI_COMPLETION));
	silence();
	OK(fi_cntr_add(trigger, 2));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[1].rx, ctx(2));
	CHECK(got[0] == 'a' && got[1] == 'b', "came as %c%c", got[0], got[1]);
	/* Told as any send is, by their contexts. */
	COMPLETION(&bed, bed.side[0].tx, &triggered[0]);
	COMPLETION(&bed, bed.side[0].tx, &triggered[1]);
	end();
}

static void a_triggered_write_by_an_alias(void)
{
	struct fid_ep *alias;
	int ret;

	begin();
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	ret = fi_ep_alias(ep, &alias, FI_TRANSMIT | FI_TRIGGER | FI_DELIVERY_COMPLETE);
	NEED(!lacking(ret), "fi_ep_alias: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_ep_alias: %s", fi_strerror(-ret));
	TRY(&bed, fi_write(alias, here, SIZE, desc, bed.side[1].addr, w.remote.base, w.remote.key, wait_for(0, 3)));
	fill(here, SIZE, 9);
	OK(fi_cntr_add(trigger, 2));
	silence();
	OK(fi_cntr_add(trigger, 1));
	COMPLETION(&bed, bed.side[0].tx, &triggered[0]);
	SAME(there, SIZE, 9);
	OK(fi_close(&alias->fid));
	conceal(&w);
	end();
}

static void triggered_at_once(void)
{
	struct fi_msg_tagged msg = { .iov_count = 1, .tag = 4 };
	struct iovec iov = { here, 8 };

	begin();
	OK(fi_cntr_set(trigger, 1));
	msg.addr = bed.side[1].addr;
	msg.msg_iov = &iov;
	msg.context = wait_for(0, 1);
	POST(&bed, fi_trecv(other, there, 8, desc, FI_ADDR_UNSPEC, 4, 0, ctx(1)));
	TRY(&bed, fi_tsendmsg(ep, &msg, FI_TRIGGER | FI_COMPLETION));
	COMPLETION(&bed, bed.side[0].tx, &triggered[0]);
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	end();
}

static void a_triggered_operation_can_be_cancelled(void)
{
	struct fi_msg msg = { .iov_count = 1 };
	struct iovec iov = { here, 8 };
	struct fi_cq_err_entry entry;
	ssize_t ret;

	begin();
	msg.addr = bed.side[1].addr;
	msg.msg_iov = &iov;
	msg.context = wait_for(0, 1);
	TRY(&bed, fi_sendmsg(ep, &msg, FI_TRIGGER | FI_COMPLETION));
	ret = fi_cancel(&ep->fid, &triggered[0]);
	NEED(ret == 0, "fi_cancel: %s", fi_strerror((int) -ret));
	entry = ERROR_COMPLETION(&bed, bed.side[0].tx);
	CHECK(entry.err == FI_ECANCELED && entry.op_context == &triggered[0], "error %d", entry.err);
	OK(fi_cntr_add(trigger, 1));
	silence();
	end();
}

static const struct test tests[] = {
	TEST(triggered_sends_go_by_threshold), TEST(a_triggered_write_by_an_alias), TEST(triggered_at_once),
	TEST(a_triggered_operation_can_be_cancelled),
};

CASES(tests)

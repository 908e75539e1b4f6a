/* The counters of endpoints in deferred work, and the endpoints that descriptions name. */
#include "trigger.h"

static const struct setup events = { .caps = FAMILIES | FI_TRIGGER | FI_RMA_EVENT };

/* As `begin`, with a counter of each side's: what side 0 has written, and what was written into side 1's memory. */
static struct fid_cntr *written, *arrived;

static void begin_counted(void)
{
	memset(here, 0, SIZE);
	memset(there, 0, SIZE);
	open_sides(&bed, &events);
	ep = bed.side[0].ep;
	other = bed.side[1].ep;
	trigger = counter();
	done = counter();
	written = counter();
	arrived = counter();
	OK(fi_ep_bind(ep, &written->fid, FI_WRITE));
	OK(fi_ep_bind(other, &arrived->fid, FI_REMOTE_WRITE));
	enable_sides(&bed, &events);
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
}

static void end_counted(void)
{
	conceal(&w);
	OK(fi_close(&ep->fid));
	OK(fi_close(&other->fid));
	bed.side[0].ep = bed.side[1].ep = NULL;
	OK(fi_close(&written->fid));
	OK(fi_close(&arrived->fid));
	end();
}

/* One write of the program's starts work of both sides: the initiator's when it ends, the target's when it comes. */
static void a_write_starts_work_of_both_sides(void)
{
	struct iovec half = { there, SIZE / 2 };
	struct message answer;
	struct count first, second;

	begin_counted();
	set_up(&first, 1, FI_OP_CNTR_ADD, done, 1);
	first.work.triggering_cntr = written;
	QUEUE(&first.work);
	set_up(&second, 2, FI_OP_CNTR_ADD, done, 1000);
	second.work.triggering_cntr = written;
	QUEUE(&second.work);
	set_up_message(&answer, 1, FI_OP_SEND, other, &half, bed.side[0].addr);
	answer.work.triggering_cntr = arrived;
	QUEUE(&answer.work);
	POST(&bed, fi_recv(ep, here + SIZE / 2, SIZE / 2, desc, FI_ADDR_UNSPEC, ctx(1)));
	STAYS(done, 0);
	fill(here, SIZE / 2, 6);
	POST(&bed, fi_write(ep, here, SIZE / 2, desc, bed.side[1].addr, w.remote.base, w.remote.key, ctx(2)));
	COMPLETION(&bed, bed.side[0].rx, ctx(1));
	SAME(here + SIZE / 2, SIZE / 2, 6);
	BECOMES(done, 2);
	STAYS(done, 2);
	OK(fi_cntr_add(written, 1));
	BECOMES(done, 1002);
	end_counted();
}

/* A peer cannot tell deferred work from other work: its counters count it. The counters of who queued it do not. */
static void only_the_target_counts_a_deferred_write(void)
{
	struct rma write;

	begin_counted();
	set_up_rma(&write, 1, FI_OP_WRITE, &iov_here);
	QUEUE(&write.work);
	fill(here, SIZE, 8);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 1);
	BECOMES(arrived, 1);
	SAME(there, SIZE, 8);
	STAYS(written, 0);
	end_counted();
}

static void an_endpoints_counter_may_be_the_completion_counter(void)
{
	struct rma write;

	begin_counted();
	set_up_rma(&write, 1, FI_OP_WRITE, &iov_here);
	write.work.completion_cntr = written;
	QUEUE(&write.work);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(written, 1);
	STAYS(written, 1);
	end_counted();
}

static void an_alias_does_deferred_work(void)
{
	struct rma write;
	struct fid_ep *alias;
	int ret;

	begin();
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	ret = fi_ep_alias(ep, &alias, FI_TRANSMIT | FI_TRIGGER);
	NEED(!lacking(ret), "fi_ep_alias: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_ep_alias: %s", fi_strerror(-ret));
	set_up_rma(&write, 2, FI_OP_WRITE, &iov_here);
	write.op.ep = alias;
	write.op.flags = FI_DELIVERY_COMPLETE;
	QUEUE(&write.work);
	fill(here, SIZE, 2);
	OK(fi_cntr_add(trigger, 1));
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 1);
	SAME(there, SIZE, 2);
	silence();
	OK(fi_close(&alias->fid));
	conceal(&w);
	end();
}

/* Our own promise, as programs write one description after the other into the same place. */
static void descriptions_are_copied(void)
{
	struct count work;

	begin();
	if (!strict)
		SKIP("the page wants them kept until the work is done");
	for (int i = 1; i <= 3; i++) {
		set_up(&work, i, FI_OP_CNTR_ADD, done, i * i);
		QUEUE(&work.work);
	}
	memset(&work, 0xff, sizeof(work));
	OK(fi_cntr_add(trigger, 2));
	BECOMES(done, 5);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 14);
	end();
}

static const struct test tests[] = {
	TEST(a_write_starts_work_of_both_sides), TEST(only_the_target_counts_a_deferred_write),
	TEST(an_endpoints_counter_may_be_the_completion_counter), TEST(an_alias_does_deferred_work),
	TEST(descriptions_are_copied),
};

CASES(tests)

/* fi_trigger(3): operations that start when a counter has come so far. */
#include "remote.h"
#include <rdma/fi_trigger.h>

#define SIZE 4096
#define FAMILIES (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

static const struct setup usual = { .caps = FAMILIES | FI_TRIGGER };
static const struct setup selective = {
	.caps = FAMILIES | FI_TRIGGER,
	.tx_bind = FI_SELECTIVE_COMPLETION,
	.rx_bind = FI_SELECTIVE_COMPLETION,
};
static char here[SIZE] __attribute__((aligned(64)));
static char there[SIZE] __attribute__((aligned(64)));

/* One bed for a case: two sides, what waits (trigger) and what counts ends (done). */
static struct bed bed;
static struct fid_ep *ep, *other;
static struct fid_cntr *trigger, *done;

static struct fid_cntr *counter(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	return cntr;
}

static void begin_with(const struct setup *setup)
{
	memset(here, 0, SIZE);
	memset(there, 0, SIZE);
	open_bed(&bed, setup);
	ep = bed.side[0].ep;
	other = bed.side[1].ep;
	trigger = counter();
	done = counter();
}

static void begin(void)
{
	begin_with(&usual);
}

static void end(void)
{
	OK(fi_close(&trigger->fid));
	OK(fi_close(&done->fid));
	close_bed(&bed);
}

static int queue(struct fi_deferred_work *work)
{
	return fi_control(&bed.domain->fid, FI_QUEUE_WORK, work);
}

/* Submits work, or skips the case where the provider has no deferred work. */
#define QUEUE(work)                                                                            \
	do {                                                                                   \
		int queued_ = queue(work);                                                     \
		NEED(!lacking(queued_), "FI_QUEUE_WORK: %s", fi_strerror(-queued_));           \
		CHECK(queued_ == 0, "FI_QUEUE_WORK: %d (%s)", queued_, fi_strerror(-queued_)); \
	} while (0)

/* Cancelling is known from the page, but no C provider of today has all of it. */
#define CONTROL(command, arg)                                                                  \
	do {                                                                                   \
		int told_ = fi_control(&bed.domain->fid, command, arg);                        \
		NEED(!lacking(told_) && told_ != -FI_EINVAL, #command ": %s", fi_strerror(-told_)); \
		CHECK(told_ == 0, #command ": %d (%s)", told_, fi_strerror(-told_));           \
	} while (0)

/* The counter shows the value; nothing else is called. */
#define BECOMES(cntr, value)                                                                   \
	do {                                                                                   \
		long end_ = now_ms() + GIVE_UP_MS;                                             \
		while (fi_cntr_read(cntr) != (uint64_t) (value) && now_ms() < end_)            \
			;                                                                      \
		CHECK(fi_cntr_read(cntr) == (uint64_t) (value), "%s is %llu, not %llu", #cntr, \
		      (unsigned long long) fi_cntr_read(cntr), (unsigned long long) (value));  \
	} while (0)

/* It keeps the value, whatever is done meanwhile. */
#define STAYS(cntr, value)                                                                     \
	do {                                                                                   \
		settle(&bed);                                                                  \
		CHECK(fi_cntr_read(cntr) == (uint64_t) (value), "%s is %llu, not %llu", #cntr, \
		      (unsigned long long) fi_cntr_read(cntr), (unsigned long long) (value));  \
	} while (0)

static struct fi_deferred_work on(uint64_t threshold, enum fi_op_type type)
{
	return (struct fi_deferred_work) { .threshold = threshold, .triggering_cntr = trigger, .op_type = type };
}

/* ---- counter operations ---- */

struct count {
	struct fi_deferred_work work;
	struct fi_op_cntr op;
};

static void set_up(struct count *count, uint64_t threshold, enum fi_op_type type, struct fid_cntr *cntr, uint64_t value)
{
	count->work = on(threshold, type);
	count->op = (struct fi_op_cntr) { .cntr = cntr, .value = value };
	count->work.op.cntr = &count->op;
}

static void counters_are_set_and_added_to(void)
{
	struct count add, set;

	begin();
	set_up(&add, 1, FI_OP_CNTR_ADD, done, 7);
	set_up(&set, 2, FI_OP_CNTR_SET, done, 100);
	QUEUE(&add.work);
	QUEUE(&set.work);
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 7);
	STAYS(done, 7);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 100);
	OK(fi_cntr_add(trigger, 5));
	STAYS(done, 100);
	end();
}

static void a_condition_that_holds_starts_at_once(void)
{
	struct count add;

	begin();
	OK(fi_cntr_set(trigger, 5));
	set_up(&add, 5, FI_OP_CNTR_ADD, done, 3);
	QUEUE(&add.work);
	BECOMES(done, 3);
	end();
}

static void errors_count_too(void)
{
	struct count add;

	begin();
	set_up(&add, 2, FI_OP_CNTR_ADD, done, 1);
	QUEUE(&add.work);
	OK(fi_cntr_adderr(trigger, 1));
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 1);
	end();
}

static void thresholds_go_first(void)
{
	struct count work[4];

	begin();
	set_up(&work[0], 4, FI_OP_CNTR_ADD, done, 1000);
	set_up(&work[1], 2, FI_OP_CNTR_ADD, done, 10);
	set_up(&work[2], 3, FI_OP_CNTR_SET, done, 500);
	set_up(&work[3], 1, FI_OP_CNTR_ADD, done, 1);
	for (int i = 0; i < 4; i++)
		QUEUE(&work[i].work);
	OK(fi_cntr_add(trigger, 4));
	/* 0 + 1 + 10, then 500, then + 1000. */
	BECOMES(done, 1500);
	end();
}

static void equals_keep_their_order(void)
{
	struct count work[3];

	begin();
	set_up(&work[0], 3, FI_OP_CNTR_ADD, done, 5);
	set_up(&work[1], 3, FI_OP_CNTR_SET, done, 50);
	set_up(&work[2], 3, FI_OP_CNTR_ADD, done, 1);
	for (int i = 0; i < 3; i++)
		QUEUE(&work[i].work);
	OK(fi_cntr_set(trigger, 9));
	BECOMES(done, 51);
	end();
}

/* Each counter starts the next. */
static void counters_chain(void)
{
	struct fid_cntr *link[101];
	struct count work[100];
	int i;

	begin();
	for (i = 0; i <= 100; i++)
		link[i] = counter();
	for (i = 0; i < 100; i++) {
		set_up(&work[i], 1, FI_OP_CNTR_ADD, link[i + 1], 1);
		work[i].work.triggering_cntr = link[i];
		QUEUE(&work[i].work);
	}
	OK(fi_cntr_add(link[0], 1));
	BECOMES(link[100], 1);
	for (i = 0; i <= 100; i++)
		OK(fi_close(&link[i]->fid));
	end();
}

static void counter_operations_have_no_completion_counter(void)
{
	struct count add;

	begin();
	set_up(&add, 1, FI_OP_CNTR_ADD, done, 1);
	QUEUE(&add.work);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 1);
	add.work.completion_cntr = done;
	GIVES(-FI_EINVAL, queue(&add.work));
	end();
}

static void what_makes_no_sense_is_refused(void)
{
	struct count add;

	begin();
	set_up(&add, 1, FI_OP_CNTR_ADD, done, 1);
	QUEUE(&add.work);
	add.work.triggering_cntr = NULL;
	FAILS(queue(&add.work));
	add.work.triggering_cntr = trigger;
	add.work.op.cntr = NULL;
	FAILS(queue(&add.work));
	add.work.op.cntr = &add.op;
	add.op.cntr = NULL;
	FAILS(queue(&add.work));
	add.op.cntr = done;
	add.work.op_type = 77;
	GIVES(-FI_ENOSYS, queue(&add.work));
	FAILS(fi_control(&bed.domain->fid, FI_QUEUE_WORK, NULL));
	add.work.op_type = FI_OP_CNTR_ADD;
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 1);
	end();
}

/* ---- data operations ---- */

static struct iovec iov_here = { here, SIZE };
static struct iovec iov_there = { there, SIZE };

static struct fi_op_msg message(struct fi_deferred_work *work, struct fid_ep *by, struct iovec *iov, fi_addr_t addr)
{
	return (struct fi_op_msg) {
		.ep = by,
		.msg = { .msg_iov = iov, .iov_count = 1, .addr = addr, .context = &work->context },
	};
}

static struct fi_op_tagged tagged(struct fi_deferred_work *work, struct fid_ep *by, struct iovec *iov, fi_addr_t addr)
{
	return (struct fi_op_tagged) {
		.ep = by,
		.msg = { .msg_iov = iov, .iov_count = 1, .addr = addr, .tag = 0x77, .context = &work->context },
	};
}

/* Nothing was told to the queues. */
static void silence(void)
{
	NO_COMPLETION(&bed, bed.side[0].tx);
	NO_COMPLETION(&bed, bed.side[0].rx);
	NO_COMPLETION(&bed, bed.side[1].tx);
	NO_COMPLETION(&bed, bed.side[1].rx);
}

static void sends_and_receives(void)
{
	struct fi_deferred_work send, recv;
	struct fi_op_msg send_op, recv_op;

	begin();
	recv = on(1, FI_OP_RECV);
	recv.completion_cntr = done;
	recv_op = message(&recv, other, &iov_there, FI_ADDR_UNSPEC);
	recv.op.msg = &recv_op;
	send = on(2, FI_OP_SEND);
	send.completion_cntr = done;
	send_op = message(&send, ep, &iov_here, bed.side[1].addr);
	send.op.msg = &send_op;
	QUEUE(&send);
	QUEUE(&recv);
	/* The buffer is not read before the operation starts. */
	fill(here, SIZE, 3);
	OK(fi_cntr_add(trigger, 1));
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 2);
	SAME(there, SIZE, 3);
	silence();
	end();
}

static void tagged_sends_and_receives(void)
{
	struct fi_deferred_work send, recv;
	struct fi_op_tagged send_op, recv_op;

	begin();
	recv = on(1, FI_OP_TRECV);
	recv.completion_cntr = done;
	recv_op = tagged(&recv, other, &iov_there, FI_ADDR_UNSPEC);
	recv.op.tagged = &recv_op;
	send = on(1, FI_OP_TSEND);
	send.completion_cntr = done;
	send_op = tagged(&send, ep, &iov_here, bed.side[1].addr);
	send.op.tagged = &send_op;
	fill(here, SIZE, 4);
	QUEUE(&recv);
	QUEUE(&send);
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 2);
	SAME(there, SIZE, 4);
	silence();
	end();
}

static void entries_are_made_when_asked_for(void)
{
	struct fi_deferred_work send, recv;
	struct fi_op_msg send_op, recv_op;

	begin_with(&selective);
	recv = on(1, FI_OP_RECV);
	recv.completion_cntr = done;
	recv_op = message(&recv, other, &iov_there, FI_ADDR_UNSPEC);
	recv_op.flags = FI_COMPLETION;
	recv.op.msg = &recv_op;
	send = on(1, FI_OP_SEND);
	send.completion_cntr = done;
	send_op = message(&send, ep, &iov_here, bed.side[1].addr);
	send_op.flags = FI_COMPLETION;
	send.op.msg = &send_op;
	QUEUE(&recv);
	QUEUE(&send);
	OK(fi_cntr_add(trigger, 1));
	COMPLETION(&bed, bed.side[0].tx, &send.context);
	COMPLETION(&bed, bed.side[1].rx, &recv.context);
	BECOMES(done, 2);
	end();
}

static struct window w;

static struct fi_op_rma one_sided(struct fi_deferred_work *work, struct iovec *iov, struct fi_rma_iov *remote)
{
	*remote = (struct fi_rma_iov) { .addr = w.remote.base, .len = iov->iov_len, .key = w.remote.key };
	return (struct fi_op_rma) {
		.ep = ep,
		.msg = { .msg_iov = iov, .iov_count = 1, .addr = bed.side[1].addr, .rma_iov = remote,
			 .rma_iov_count = 1, .context = &work->context },
	};
}

static void writes_then_reads(void)
{
	static char back[SIZE];
	struct iovec iov_back = { back, SIZE };
	struct fi_deferred_work write, read;
	struct fi_op_rma write_op, read_op;
	struct fi_rma_iov to, from;

	begin();
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	write = on(1, FI_OP_WRITE);
	write.completion_cntr = done;
	write_op = one_sided(&write, &iov_here, &to);
	write_op.flags = FI_DELIVERY_COMPLETE;
	write.op.rma = &write_op;
	QUEUE(&write);
	/* The end of the write starts the read. */
	read = on(1, FI_OP_READ);
	read.triggering_cntr = done;
	read.completion_cntr = done;
	read_op = one_sided(&read, &iov_back, &from);
	read.op.rma = &read_op;
	QUEUE(&read);
	fill(here, SIZE, 5);
	STAYS(done, 0);
	CHECK(there[0] == 0, "written before its time");
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 2);
	SAME(there, SIZE, 5);
	SAME(back, SIZE, 5);
	silence();
	conceal(&w);
	end();
}

static void a_failure_is_an_error_of_the_completion_counter(void)
{
	struct fi_deferred_work write;
	struct fi_rma_iov to;
	struct fi_op_rma op;
	long until;

	begin();
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	write = on(1, FI_OP_WRITE);
	write.completion_cntr = done;
	op = one_sided(&write, &iov_here, &to);
	to.key += 1000;
	write.op.rma = &op;
	QUEUE(&write);
	OK(fi_cntr_add(trigger, 1));
	for (until = now_ms() + GIVE_UP_MS; fi_cntr_readerr(done) != 1 && now_ms() < until;)
		;
	CHECK(fi_cntr_readerr(done) == 1, "%llu errors", (unsigned long long) fi_cntr_readerr(done));
	STAYS(done, 0);
	conceal(&w);
	end();
}

/* What atomic work is made of. */
struct atomic {
	struct fi_ioc operand, fetched, compared;
	struct fi_rma_ioc target;
	uint64_t value, old, expected;
};

static struct fi_msg_atomic atomic_message(struct atomic *a, struct fi_deferred_work *work, enum fi_op op)
{
	a->operand = (struct fi_ioc) { &a->value, 1 };
	a->fetched = (struct fi_ioc) { &a->old, 1 };
	a->compared = (struct fi_ioc) { &a->expected, 1 };
	a->target = (struct fi_rma_ioc) { .addr = w.remote.base, .count = 1, .key = w.remote.key };
	return (struct fi_msg_atomic) {
		.msg_iov = &a->operand, .iov_count = 1, .addr = bed.side[1].addr, .rma_iov = &a->target,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = op, .context = &work->context,
	};
}

static void atomics(void)
{
	struct fi_deferred_work add, fetch, swap;
	struct atomic a = { .value = 5 }, f = { .value = 7 }, c = { .value = 1000, .expected = 112 };
	uint64_t *word = (uint64_t *) there;
	struct fi_op_atomic add_op = { 0 };
	struct fi_op_fetch_atomic fetch_op = { 0 };
	struct fi_op_compare_atomic swap_op = { 0 };

	begin();
	*word = 100;
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	add = on(1, FI_OP_ATOMIC);
	add_op.ep = ep;
	add_op.msg = atomic_message(&a, &add, FI_SUM);
	add_op.flags = FI_DELIVERY_COMPLETE;
	add.op.atomic = &add_op;
	fetch = on(1, FI_OP_FETCH_ATOMIC);
	fetch.triggering_cntr = done;
	fetch_op.ep = ep;
	fetch_op.msg = atomic_message(&f, &fetch, FI_SUM);
	fetch_op.fetch = (struct fi_msg_fetch) { .msg_iov = &f.fetched, .iov_count = 1 };
	fetch.op.fetch_atomic = &fetch_op;
	swap = on(2, FI_OP_COMPARE_ATOMIC);
	swap.triggering_cntr = done;
	swap_op.ep = ep;
	swap_op.msg = atomic_message(&c, &swap, FI_CSWAP);
	swap_op.fetch = (struct fi_msg_fetch) { .msg_iov = &c.fetched, .iov_count = 1 };
	swap_op.compare = (struct fi_msg_compare) { .msg_iov = &c.compared, .iov_count = 1 };
	swap.op.compare_atomic = &swap_op;
	add.completion_cntr = fetch.completion_cntr = swap.completion_cntr = done;
	QUEUE(&swap);
	QUEUE(&fetch);
	QUEUE(&add);
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 3);
	CHECK(f.old == 105 && c.old == 112 && *word == 1000, "%llu, %llu, %llu", (unsigned long long) f.old,
	      (unsigned long long) c.old, (unsigned long long) *word);
	silence();
	conceal(&w);
	end();
}

/* More messages than any queue holds, all started by one step of the counter. */
static void many_at_once(void)
{
	enum { MANY = 3000 };
	static struct fi_deferred_work work[MANY];
	static struct fi_op_tagged op[MANY];
	static uint32_t sent[MANY], got[MANY];
	static struct iovec iov[MANY];
	int i;

	begin();
	for (i = 0; i < MANY; i++) {
		sent[i] = i + 1;
		got[i] = 0;
		iov[i] = (struct iovec) { &sent[i], sizeof(sent[i]) };
		work[i] = on(1, FI_OP_TSEND);
		work[i].completion_cntr = done;
		op[i] = tagged(&work[i], ep, &iov[i], bed.side[1].addr);
		work[i].op.tagged = &op[i];
		QUEUE(&work[i]);
	}
	OK(fi_cntr_add(trigger, 1));
	for (i = 0; i < MANY; i++) {
		POST(&bed, fi_trecv(other, &got[i], sizeof(got[i]), NULL, FI_ADDR_UNSPEC, 0x77, 0, ctx(1)));
		COMPLETION(&bed, bed.side[1].rx, ctx(1));
		CHECK(got[i] == (uint32_t) i + 1, "message %d is %u", i, got[i]);
	}
	BECOMES(done, MANY);
	end();
}

/* ---- taking back ---- */

static void cancelled_work_is_not_done(void)
{
	struct count work[3];

	begin();
	for (int i = 0; i < 3; i++) {
		set_up(&work[i], 1, FI_OP_CNTR_ADD, done, i == 1 ? 100 : 1);
		QUEUE(&work[i].work);
	}
	CONTROL(FI_CANCEL_WORK, &work[1].work);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 2);
	STAYS(done, 2);
	/* What is done cannot be cancelled. */
	FAILS(fi_control(&bed.domain->fid, FI_CANCEL_WORK, &work[0].work));
	end();
}

static void flushed_work_is_not_done(void)
{
	struct fid_cntr *second;
	struct count work[4];

	begin();
	second = counter();
	for (int i = 0; i < 4; i++) {
		set_up(&work[i], 1 + i / 2, FI_OP_CNTR_ADD, done, 1);
		work[i].work.triggering_cntr = i % 2 ? trigger : second;
		QUEUE(&work[i].work);
	}
	CONTROL(FI_FLUSH_WORK, NULL);
	OK(fi_cntr_add(trigger, 5));
	OK(fi_cntr_add(second, 5));
	STAYS(done, 0);
	/* The queue is as good as new. */
	QUEUE(&work[0].work);
	BECOMES(done, 1);
	OK(fi_close(&second->fid));
	end();
}

static void one_counters_work_is_flushed(void)
{
	struct fid_cntr *second;
	struct count work[2];

	begin();
	second = counter();
	set_up(&work[0], 1, FI_OP_CNTR_ADD, done, 1);
	set_up(&work[1], 1, FI_OP_CNTR_ADD, done, 100);
	work[1].work.triggering_cntr = second;
	QUEUE(&work[0].work);
	QUEUE(&work[1].work);
	CONTROL(FI_FLUSH_WORK, second);
	OK(fi_cntr_add(second, 1));
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 1);
	OK(fi_close(&second->fid));
	end();
}

/* Our own promise: a counter that work waits for is in use; an endpoint's work ends with it. */
static void objects_in_use_stay(void)
{
	struct fi_deferred_work send;
	struct fi_op_msg op;

	begin();
	if (!strict)
		SKIP("the page does not say it");
	send = on(1, FI_OP_SEND);
	send.completion_cntr = done;
	op = message(&send, ep, &iov_here, bed.side[1].addr);
	send.op.msg = &op;
	QUEUE(&send);
	GIVES(-FI_EBUSY, fi_close(&trigger->fid));
	GIVES(-FI_EBUSY, fi_close(&done->fid));
	OK(fi_close(&ep->fid));
	bed.side[0].ep = NULL;
	OK(fi_cntr_add(trigger, 1));
	STAYS(done, 0);
	end();
}

/* ---- FI_TRIGGER ---- */

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
	POST(&bed, fi_recv(other, &got[0], 1, NULL, FI_ADDR_UNSPEC, ctx(1)));
	POST(&bed, fi_recv(other, &got[1], 1, NULL, FI_ADDR_UNSPEC, ctx(2)));
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
	TRY(&bed, fi_write(alias, here, SIZE, NULL, bed.side[1].addr, w.remote.base, w.remote.key, wait_for(0, 3)));
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
	POST(&bed, fi_trecv(other, there, 8, NULL, FI_ADDR_UNSPEC, 4, 0, ctx(1)));
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

/* ---- two processes ---- */

#define ROUNDS 50

/* A hundred messages to and fro, each started by the one before it; the program only reads counters. */
static void to_and_fro(struct bed *mine, int me, int pipe)
{
	static struct fi_deferred_work work[ROUNDS], recv[ROUNDS];
	static struct fi_op_msg op[ROUNDS], recv_op[ROUNDS];
	static uint64_t out[ROUNDS], in[ROUNDS];
	static struct iovec to[ROUNDS], from[ROUNDS];
	struct fid_cntr *arrived, *sent;
	int i;

	bed = *mine;
	trigger = counter(); /* starts the first message of all */
	arrived = counter();
	sent = counter();
	for (i = 0; i < ROUNDS; i++) {
		from[i] = (struct iovec) { &in[i], sizeof(in[i]) };
		recv[i] = on(0, FI_OP_RECV);
		recv[i].completion_cntr = arrived;
		recv_op[i] = message(&recv[i], mine->side[0].ep, &from[i], FI_ADDR_UNSPEC);
		recv[i].op.msg = &recv_op[i];
		QUEUE(&recv[i]);
	}
	for (i = 0; i < ROUNDS; i++) {
		out[i] = 1000 * me + i;
		to[i] = (struct iovec) { &out[i], sizeof(out[i]) };
		/* Process 0 begins, and answers the message before; process 1 answers each. */
		work[i] = me == 0 && i == 0 ? on(1, FI_OP_SEND) : on(me == 0 ? i : i + 1, FI_OP_SEND);
		if (me != 0 || i != 0)
			work[i].triggering_cntr = arrived;
		work[i].completion_cntr = sent;
		op[i] = message(&work[i], mine->side[0].ep, &to[i], mine->peer);
		work[i].op.msg = &op[i];
		QUEUE(&work[i]);
	}
	meet(mine, pipe);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(sent, ROUNDS);
	BECOMES(arrived, ROUNDS);
	for (i = 0; i < ROUNDS; i++)
		CHECK(in[i] == (uint64_t) (1000 * !me + i), "message %d is %llu", i, (unsigned long long) in[i]);
	meet(mine, pipe);
	OK(fi_close(&trigger->fid));
	OK(fi_close(&arrived->fid));
	OK(fi_close(&sent->fid));
}

static void a_hundred_to_and_fro(void)
{
	in_two(&usual, to_and_fro);
}

static const struct test tests[] = {
	TEST(counters_are_set_and_added_to),
	TEST(a_condition_that_holds_starts_at_once),
	TEST(errors_count_too),
	TEST(thresholds_go_first),
	TEST(equals_keep_their_order),
	TEST(counters_chain),
	TEST(counter_operations_have_no_completion_counter),
	TEST(what_makes_no_sense_is_refused),
	TEST(sends_and_receives),
	TEST(tagged_sends_and_receives),
	TEST(entries_are_made_when_asked_for),
	TEST(writes_then_reads),
	TEST(a_failure_is_an_error_of_the_completion_counter),
	TEST(atomics),
	TEST(many_at_once),
	TEST(cancelled_work_is_not_done),
	TEST(flushed_work_is_not_done),
	TEST(one_counters_work_is_flushed),
	TEST(objects_in_use_stay),
	TEST(triggered_sends_go_by_threshold),
	TEST(a_triggered_write_by_an_alias),
	TEST(triggered_at_once),
	TEST(a_triggered_operation_can_be_cancelled),
	TEST(a_hundred_to_and_fro),
};

CASES(tests)

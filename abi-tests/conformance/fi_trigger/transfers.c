/* Work that transfers data. */
#define _GNU_SOURCE
#include "trigger.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct setup selective = {
	.caps = FAMILIES | FI_TRIGGER,
	.tx_bind = FI_SELECTIVE_COMPLETION,
	.rx_bind = FI_SELECTIVE_COMPLETION,
};

static void sends_and_receives(void)
{
	struct message send, recv;

	begin();
	set_up_message(&recv, 1, FI_OP_RECV, other, &iov_there, FI_ADDR_UNSPEC);
	set_up_message(&send, 2, FI_OP_SEND, ep, &iov_here, bed.side[1].addr);
	QUEUE(&send.work);
	QUEUE(&recv.work);
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
	struct tagged send, recv;

	begin();
	set_up_tagged(&recv, 1, FI_OP_TRECV, other, &iov_there, FI_ADDR_UNSPEC);
	set_up_tagged(&send, 1, FI_OP_TSEND, ep, &iov_here, bed.side[1].addr);
	fill(here, SIZE, 4);
	QUEUE(&recv.work);
	QUEUE(&send.work);
	STAYS(done, 0);
	OK(fi_cntr_add(trigger, 1));
	BECOMES(done, 2);
	SAME(there, SIZE, 4);
	silence();
	end();
}

static void entries_are_made_when_asked_for(void)
{
	struct message send, recv;

	begin_with(&selective);
	set_up_message(&recv, 1, FI_OP_RECV, other, &iov_there, FI_ADDR_UNSPEC);
	set_up_message(&send, 1, FI_OP_SEND, ep, &iov_here, bed.side[1].addr);
	recv.op.flags = send.op.flags = FI_COMPLETION;
	QUEUE(&recv.work);
	QUEUE(&send.work);
	OK(fi_cntr_add(trigger, 1));
	COMPLETION(&bed, bed.side[0].tx, &send.work.context);
	COMPLETION(&bed, bed.side[1].rx, &recv.work.context);
	BECOMES(done, 2);
	end();
}

static void writes_then_reads(void)
{
	static char back[SIZE];
	struct iovec iov_back = { back, SIZE };
	struct rma write, read;

	begin();
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	set_up_rma(&write, 1, FI_OP_WRITE, &iov_here);
	write.op.flags = FI_DELIVERY_COMPLETE;
	QUEUE(&write.work);
	/* The end of the write starts the read. */
	set_up_rma(&read, 1, FI_OP_READ, &iov_back);
	read.work.triggering_cntr = done;
	QUEUE(&read.work);
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

/* Memory that the initiator can map: there a write is over when it has begun, and so is all that waits for its end. */
static void what_is_done_in_place_starts_the_next(void)
{
	struct iovec iov_first = { here, 8 }, iov_second = { here + 64, 8 };
	struct rma first, second;
	int file = memfd_create("triggered", 0);
	char *shared;

	CHECK(file >= 0 && ftruncate(file, SIZE) == 0, "memfd_create: %s", strerror(errno));
	shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(shared != MAP_FAILED, "mmap: %s", strerror(errno));
	begin();
	w = expose(&bed, 1, shared, SIZE, OPEN_TO_ALL);
	set_up_rma(&first, 1, FI_OP_WRITE, &iov_first);
	QUEUE(&first.work);
	set_up_rma(&second, 1, FI_OP_WRITE, &iov_second);
	second.work.triggering_cntr = done;
	second.remote.addr += 64;
	QUEUE(&second.work);
	fill(here, SIZE, 8);
	OK(fi_cntr_add(trigger, 1));
	/* The call before has done it all; the C library, and whoever has a network between, does it later. */
	CHECK(!strict || is_ip(&bed) || memcmp(shared + 64, here + 64, 8) == 0, "the second was not started");
	BECOMES(done, 2);
	CHECK(memcmp(shared, here, 8) == 0 && memcmp(shared + 64, here + 64, 8) == 0, "not what was written");
	silence();
	conceal(&w);
	end();
	munmap(shared, SIZE);
	close(file);
}

static void a_failure_is_an_error_of_the_completion_counter(void)
{
	struct rma write;
	long until;

	begin();
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	set_up_rma(&write, 1, FI_OP_WRITE, &iov_here);
	write.remote.key += 1000;
	QUEUE(&write.work);
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
		.msg_iov = &a->operand, .desc = descs, .iov_count = 1, .addr = bed.side[1].addr, .rma_iov = &a->target,
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
	fetch_op.fetch = (struct fi_msg_fetch) { .msg_iov = &f.fetched, .desc = descs, .iov_count = 1 };
	fetch.op.fetch_atomic = &fetch_op;
	swap = on(2, FI_OP_COMPARE_ATOMIC);
	swap.triggering_cntr = done;
	swap_op.ep = ep;
	swap_op.msg = atomic_message(&c, &swap, FI_CSWAP);
	swap_op.fetch = (struct fi_msg_fetch) { .msg_iov = &c.fetched, .desc = descs, .iov_count = 1 };
	swap_op.compare = (struct fi_msg_compare) { .msg_iov = &c.compared, .desc = descs, .iov_count = 1 };
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
	static struct tagged work[MANY];
	static uint32_t sent[MANY], got[MANY];
	static struct iovec iov[MANY];
	int i;

	begin();
	for (i = 0; i < MANY; i++) {
		sent[i] = i + 1;
		got[i] = 0;
		iov[i] = (struct iovec) { &sent[i], sizeof(sent[i]) };
		set_up_tagged(&work[i], 1, FI_OP_TSEND, ep, &iov[i], bed.side[1].addr);
		QUEUE(&work[i].work);
	}
	OK(fi_cntr_add(trigger, 1));
	for (i = 0; i < MANY; i++) {
		POST(&bed, fi_trecv(other, &got[i], sizeof(got[i]), desc, FI_ADDR_UNSPEC, 0x77, 0, ctx(1)));
		COMPLETION(&bed, bed.side[1].rx, ctx(1));
		CHECK(got[i] == (uint32_t) i + 1, "message %d is %u", i, got[i]);
	}
	BECOMES(done, MANY);
	end();
}

/* Side 0 sends the one message; the other, side 1 sends to itself. */
static void deferred_receives_tell_their_source(void)
{
	struct setup s = selective;
	struct message recv;
	struct tagged trecv;
	struct fi_cq_tagged_entry e;
	struct fi_deferred_work *works[] = { &recv.work, &trecv.work };
	int i;

	s.caps |= FI_SOURCE;
	begin_with(&s);
	set_up_message(&recv, 1, FI_OP_RECV, other, &iov_there, FI_ADDR_UNSPEC);
	set_up_tagged(&trecv, 2, FI_OP_TRECV, other, &iov_there, FI_ADDR_UNSPEC);
	recv.op.flags = trecv.op.flags = FI_COMPLETION;
	for (i = 0; i < 2; i++) {
		fi_addr_t source = 99;
		long until = now_ms() + GIVE_UP_MS;
		ssize_t ret;

		QUEUE(works[i]);
		OK(fi_cntr_add(trigger, 1));
		if (i == 0)
			POST(&bed, fi_send(ep, here, 8, desc, bed.side[1].addr, ctx(1)));
		else
			POST(&bed, fi_tsend(other, here, 8, desc, bed.side[1].addr, trecv.op.msg.tag, ctx(1)));
		while ((ret = fi_cq_readfrom(bed.side[1].rx, &e, 1, &source)) == -FI_EAGAIN && now_ms() < until)
			progress(&bed);
		CHECK(ret == 1 && e.op_context == &works[i]->context, "%zd", ret);
		CHECK(source == bed.side[i].addr, "source %llu", (unsigned long long) source);
	}
	end();
}

static const struct test tests[] = {
	TEST(sends_and_receives), TEST(tagged_sends_and_receives), TEST(entries_are_made_when_asked_for),
	TEST(deferred_receives_tell_their_source), TEST(writes_then_reads), TEST(what_is_done_in_place_starts_the_next),
	TEST(a_failure_is_an_error_of_the_completion_counter), TEST(atomics), TEST(many_at_once),
};

CASES(tests)

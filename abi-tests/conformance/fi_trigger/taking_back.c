/* Work that is cancelled or flushed, and objects that it uses. */
#include "trigger.h"

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

/* A receive that was started is outstanding as any other: fi_cancel finds it by its context. */
static void a_started_receive_can_be_cancelled(void)
{
	static const uint64_t flags[] = { 0, FI_COMPLETION };
	struct fi_cq_err_entry entry;
	struct message recv;
	int ret;

	begin();
	for (int i = 0; i < 2; i++) {
		set_up_message(&recv, (uint64_t) i + 1, FI_OP_RECV, other, &iov_there, FI_ADDR_UNSPEC);
		recv.op.flags = flags[i];
		QUEUE(&recv.work);
		OK(fi_cntr_add(trigger, 1));
		ret = (int) fi_cancel(&other->fid, &recv.work.context);
		NEED(!lacking(ret), "fi_cancel: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_cancel: %d (%s)", ret, fi_strerror(-ret));
		if (flags[i]) {
			entry = ERROR_COMPLETION(&bed, bed.side[1].rx);
			CHECK(entry.err == FI_ECANCELED && entry.op_context == &recv.work.context, "error %d", entry.err);
		}
		for (long end = now_ms() + GIVE_UP_MS; fi_cntr_readerr(done) != (uint64_t) i + 1 && now_ms() < end;)
			;
		CHECK(fi_cntr_readerr(done) == (uint64_t) i + 1, "%llu errors", (unsigned long long) fi_cntr_readerr(done));
		FAILS(fi_cancel(&other->fid, &recv.work.context));
	}
	silence();
	end();
}

/* Our own promise: a counter that work waits for is in use; an endpoint's work ends with it. */
static void objects_in_use_stay(void)
{
	struct message send;

	begin();
	if (!strict)
		SKIP("the page does not say it");
	set_up_message(&send, 1, FI_OP_SEND, ep, &iov_here, bed.side[1].addr);
	QUEUE(&send.work);
	GIVES(-FI_EBUSY, fi_close(&trigger->fid));
	GIVES(-FI_EBUSY, fi_close(&done->fid));
	OK(fi_close(&ep->fid));
	bed.side[0].ep = NULL;
	OK(fi_cntr_add(trigger, 1));
	STAYS(done, 0);
	end();
}

static const struct test tests[] = {
	TEST(cancelled_work_is_not_done), TEST(flushed_work_is_not_done), TEST(one_counters_work_is_flushed),
	TEST(a_started_receive_can_be_cancelled), TEST(objects_in_use_stay),
};

CASES(tests)

/* Work that sets and adds to counters: when it starts, and in which order. */
#include "trigger.h"

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

static const struct test tests[] = {
	TEST(counters_are_set_and_added_to), TEST(a_condition_that_holds_starts_at_once),
	TEST(errors_count_too), TEST(thresholds_go_first), TEST(equals_keep_their_order),
	TEST(counters_chain), TEST(counter_operations_have_no_completion_counter),
	TEST(what_makes_no_sense_is_refused),
};

CASES(tests)

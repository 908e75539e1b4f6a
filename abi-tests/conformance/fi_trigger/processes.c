/* Work of two processes that start each other's. */
#include "trigger.h"

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
	TEST(a_hundred_to_and_fro),
};

CASES(tests)

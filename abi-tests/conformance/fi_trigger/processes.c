/* Work of two processes that start each other's. */
#include "trigger.h"

#define ROUNDS 50

/* A hundred messages to and fro, each started by the one before it; the program only reads counters. */
static void to_and_fro(struct bed *mine, int me, int pipe)
{
	static struct message send[ROUNDS], recv[ROUNDS];
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
		set_up_message(&recv[i], 0, FI_OP_RECV, mine->side[0].ep, &from[i], FI_ADDR_UNSPEC);
		recv[i].work.completion_cntr = arrived;
		QUEUE(&recv[i].work);
	}
	for (i = 0; i < ROUNDS; i++) {
		out[i] = 1000 * me + i;
		to[i] = (struct iovec) { &out[i], sizeof(out[i]) };
		/* Process 0 begins, and answers the message before; process 1 answers each. */
		set_up_message(&send[i], 1, FI_OP_SEND, mine->side[0].ep, &to[i], mine->peer);
		if (me != 0 || i != 0) {
			send[i].work.threshold = me == 0 ? i : i + 1;
			send[i].work.triggering_cntr = arrived;
		}
		send[i].work.completion_cntr = sent;
		QUEUE(&send[i].work);
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

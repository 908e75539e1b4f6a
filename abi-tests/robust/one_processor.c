/*
 * Two processes that share one processor, each of which only looks for what the other sends. Who looks must let the other
 * run: else it looks for as long as its time slice lasts, some 100,000 times for each message. Counted are the looks in
 * vain, so the speed of the machine and what else it does are of no matter.
 *   one_processor PROVIDER [CASE ...]
 */
#include "fabric.h"

#define ROUNDS 500
/* Looks in vain for one message, on average; usual are some 20. */
#define MANY 4000

static void send_to_peer(struct bed *bed)
{
	static char byte;

	POST(bed, fi_inject(bed->side[0].ep, &byte, 1, bed->peer));
}

static long look_in_queue(struct bed *bed)
{
	struct fi_cq_tagged_entry entry;
	long vain = 0;
	ssize_t got;

	while ((got = fi_cq_read(bed->side[0].rx, &entry, 1)) == -FI_EAGAIN)
		vain++;
	CHECK(got == 1, "fi_cq_read: %zd", got);
	return vain;
}

static void check_looks(long vain)
{
	CHECK(vain < (long) ROUNDS * MANY, "%ld looks in vain for each message", vain / ROUNDS);
}

static void queue_body(struct bed *bed, int me, int pipe)
{
	static char byte;
	long vain = 0;

	share_a_processor();
	for (int i = 0; i < ROUNDS; i++) {
		POST(bed, fi_recv(bed->side[0].ep, &byte, 1, NULL, FI_ADDR_UNSPEC, ctx(1)));
		if (i == 0)
			meet(bed, pipe);
		if (!me)
			send_to_peer(bed);
		vain += look_in_queue(bed);
		if (me)
			send_to_peer(bed);
	}
	check_looks(vain);
}

static void readers_of_queues(void)
{
	struct setup s = { 0 };

	in_two(&s, queue_body);
}

/* The endpoint is one with a counter besides the bed's, whose queues nobody reads meanwhile. */
static void counter_body(struct bed *bed, int me, int pipe)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *count;
	struct side *side = &bed->side[0];
	char name[NAME_MAX_LEN];
	static char byte;
	uint64_t now;
	long vain = 0;

	/* Made anew, since one that is enabled takes no counter. */
	close_ep(side);
	OK(fi_cntr_open(bed->domain, &attr, &count, NULL));
	OK(fi_endpoint(bed->domain, bed->info, &side->ep, NULL));
	OK(fi_ep_bind(side->ep, &bed->av->fid, 0));
	OK(fi_ep_bind(side->ep, &side->tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(side->ep, &side->rx->fid, FI_RECV));
	OK(fi_ep_bind(side->ep, &count->fid, FI_RECV));
	OK(fi_enable(side->ep));
	learn_name(side);
	pipe_send(pipe, side->name, sizeof(side->name));
	pipe_recv(pipe, name, sizeof(name));
	GIVES(1, fi_av_insert(bed->av, name, 1, &bed->peer, 0, NULL));

	share_a_processor();
	for (int i = 0; i < ROUNDS; i++) {
		POST(bed, fi_recv(side->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, ctx(1)));
		if (i == 0)
			meet(bed, pipe);
		if (!me)
			send_to_peer(bed);
		while ((now = fi_cntr_read(count)) == (uint64_t) i)
			vain++;
		CHECK(now == (uint64_t) i + 1, "%llu messages", (unsigned long long) now);
		CHECK(fi_cq_read(side->rx, &entry, 1) == 1, "no completion");
		if (me)
			send_to_peer(bed);
	}
	check_looks(vain);
	meet(bed, pipe);
	close_ep(side);
	OK(fi_close(&count->fid));
}

static void readers_of_counters(void)
{
	struct setup s = { 0 };

	in_two(&s, counter_body);
}

static const struct test tests[] = {
	TEST(readers_of_queues),
	TEST(readers_of_counters),
};
CASES(tests)

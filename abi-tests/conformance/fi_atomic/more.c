/* Several targets, counters, order, many processes, tagged targets. */
#include "atomic.h"

/* ---- more of the page ---- */

static void several_targets(void)
{
	static uint64_t with[6] = { 1, 2, 3, 4, 5, 6 }, old[6];
	uint64_t *memory = (void *) there;
	struct fi_ioc operand[2] = { { with, 4 }, { with + 4, 2 } }, result = { old, 6 };
	struct fi_rma_ioc target[3];
	struct fi_msg_atomic msg = { .msg_iov = operand, .desc = descs, .iov_count = 2, .rma_iov = target, .rma_iov_count = 3,
				     .datatype = FI_UINT64, .op = FI_SUM, .context = ctx(1) };
	struct window w;
	struct bed bed;
	size_t most;
	int i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	if (bed.info->tx_attr->rma_iov_limit < 3 || bed.info->tx_attr->iov_limit < 2)
		SKIP("too few pieces");
	NEED(fi_fetch_atomicvalid(ep, FI_UINT64, FI_SUM, &most) == 0 && most >= 6, "six elements at a time");
	msg.addr = peer;
	for (i = 0; i < 20; i++)
		memory[i] = 100;
	target[0] = (struct fi_rma_ioc) { w.remote.base, 1, w.remote.key };
	target[1] = (struct fi_rma_ioc) { w.remote.base + 80, 2, w.remote.key };
	target[2] = (struct fi_rma_ioc) { w.remote.base + 40, 3, w.remote.key };
	TRY(&bed, fi_fetch_atomicmsg(ep, &msg, &result, descs, 1, 0));
	ended(&bed, 1, FI_READ);
	for (i = 0; i < 6; i++)
		CHECK(old[i] == 100, "old value %d is %llu", i, (unsigned long long) old[i]);
	CHECK(memory[0] == 101 && memory[10] == 102 && memory[11] == 103 && memory[5] == 104 && memory[6] == 105 && memory[7] == 106,
	      "%llu %llu %llu %llu %llu %llu", (unsigned long long) memory[0], (unsigned long long) memory[10], (unsigned long long) memory[11],
	      (unsigned long long) memory[5], (unsigned long long) memory[6], (unsigned long long) memory[7]);
	close_window(&bed, &w);
}

static void counters(void)
{
	static const uint64_t flags[] = { FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	static const uint64_t wanted[] = { 3, 2, 3, 2 };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct setup s = usual;
	struct fid_cntr *cntr[4];
	struct window w;
	struct bed bed;
	int i;

	s.more_caps |= FI_RMA_EVENT;
	open_sides(&bed, &s);
	for (i = 0; i < 4; i++) {
		OK(fi_cntr_open(bed.domain, &attr, &cntr[i], NULL));
		OK(fi_ep_bind(bed.side[i / 2].ep, &cntr[i]->fid, flags[i]));
	}
	enable_sides(&bed, &s);
	ep = bed.side[0].ep;
	peer = bed.side[1].addr;
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	for (i = 0; i < 5; i++) {
		struct call c = { types + 7, i < 2 ? BASE : i < 4 ? FETCH : COMPARE, i < 4 ? FI_SUM : FI_CSWAP, 2, w.remote.base, w.remote.key };

		POST(&bed, post(&c, PLAIN_CALL, 1));
		ended(&bed, 1, i < 2 ? FI_WRITE : FI_READ);
	}
	for (i = 0; i < 4; i++)
		for (long end = now_ms() + GIVE_UP_MS; fi_cntr_read(cntr[i]) < wanted[i] && now_ms() < end;)
			progress(&bed);
	settle(&bed);
	for (i = 0; i < 4; i++)
		CHECK(fi_cntr_read(cntr[i]) == wanted[i], "counter %d: %llu", i, (unsigned long long) fi_cntr_read(cntr[i]));
	conceal(&w);
	close_eps(&bed);
	for (i = 0; i < 4; i++)
		OK(fi_close(&cntr[i]->fid));
	close_bed(&bed);
}

/* Each operation sees what the one before it left, without waiting in between. */
static void in_order(void)
{
	enum { COUNT = 300 };
	static uint64_t old[COUNT], one = 1;
	struct fi_cq_tagged_entry entry;
	struct window w;
	struct bed bed;
	int i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(bed.info->tx_attr->msg_order & bed.info->rx_attr->msg_order & (FI_ORDER_RAW | FI_ORDER_ATOMIC_RAW), "no order");
	memset(there, 0, 8);
	for (i = 0; i < COUNT; i++)
		POST(&bed, fi_fetch_atomic(ep, &one, 1, desc, &old[i], desc, peer, w.remote.base, w.remote.key, FI_UINT64, FI_SUM, ctx(1)));
	for (i = 0; i < COUNT; i++)
		CHECK(next(&bed, bed.side[0].tx, &entry) == 1, "no completion");
	for (i = 0; i < COUNT; i++)
		CHECK(old[i] == (uint64_t) i, "operation %d saw %llu", i, (unsigned long long) old[i]);
	close_window(&bed, &w);
}

/* ---- under load ---- */

/* Two processes and the targets' own processors add, and nothing is lost. */
static void totals_body(struct bed *bed, int me, int pipe)
{
	enum { COUNT = 4000 };
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	static uint64_t one = 1, results[COUNT];
	uint64_t *counter = (uint64_t *) there, *mutex = counter + 8, sum = 0;
	struct fi_cq_tagged_entry entry;
	struct remote remote[2];
	int i, done = 0;

	(void) pipe;
	memset(results, 0xff, sizeof(results));
	memset(there, 0, 256);
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote[1], sizeof(remote[1]));
	remote[0] = w.remote;
	meet(bed, pipe);
	for (i = 0; i < COUNT; i++) {
		/* The other's counter, and one's own by the endpoint and by the processor. */
		int own = i % 4 == 3;
		fi_addr_t to = own ? bed->side[0].addr : bed->peer;
		ssize_t ret;

		while ((ret = fi_fetch_atomic(bed->side[0].ep, &one, 1, desc, &results[i], desc, to, remote[!own].base, remote[!own].key,
					      FI_UINT64, FI_SUM, ctx(1))) == -FI_EAGAIN)
			while (fi_cq_read(bed->side[0].tx, &entry, 1) == 1)
				done++;
		CHECK(ret == 0, "fi_fetch_atomic: %zd", ret);
		if (strict) {
			__atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
			sum++;
		}
		if (i % 8 == 0)
			while (fi_cq_read(bed->side[0].tx, &entry, 1) == 1)
				done++;
	}
	for (; done < COUNT; done++)
		CHECK(next(bed, bed->side[0].tx, &entry) == 1, "an operation does not end");
	(void) me, (void) mutex;
	meet(bed, pipe);
	/* Three quarters of the other's, a quarter of one's own. */
	sum += COUNT;
	CHECK(*counter == sum, "%llu instead of %llu", (unsigned long long) *counter, (unsigned long long) sum);
	for (i = 0; i < COUNT; i++)
		CHECK(results[i] < 2 * COUNT, "operation %d saw %llu", i, (unsigned long long) results[i]);
	meet(bed, pipe);
	conceal(&w);
}

static void exact_totals(void)
{
	in_two(&usual, totals_body);
}

/* ---- injects ---- */

/* Whoever injects has no completion to come back for: once it was taken it goes on its way without another call. */
static void an_inject_needs_no_more_calls_body(struct bed *bed, int me, int pipe)
{
	static volatile uint64_t word_there;
	uint64_t operand = 5;
	struct remote remote;
	struct window w;
	char word = 'r';

	if (me) {
		w = expose(bed, 0, (void *) &word_there, sizeof(word_there), OPEN_TO_ALL);
		pipe_send(pipe, &w.remote, sizeof(w.remote));
		UNTIL(bed, word_there == operand);
		pipe_send(pipe, &word, 1);
		conceal(&w);
	} else {
		pipe_recv(pipe, &remote, sizeof(remote));
		POST(bed, fi_inject_atomic(bed->side[0].ep, &operand, 1, bed->peer, remote.base, remote.key, FI_UINT64,
					    FI_ATOMIC_WRITE)); /* one that cards have too */
		pipe_recv(pipe, &word, 1);
	}
}

static void an_inject_needs_no_more_calls(void)
{
	in_two(&usual, an_inject_needs_no_more_calls_body);
}

/* ---- tagged receive buffers as targets ---- */

static void tagged_target(void)
{
	static uint64_t with[2] = { 5, 7 }, buffer[4] = { 100, 200, 300, 400 }, old[2];
	struct fi_ioc operand = { with, 2 }, result = { old, 2 };
	struct fi_rma_ioc target = { 8, 2, 77 };
	struct fi_msg_atomic msg = { .msg_iov = &operand, .desc = descs, .iov_count = 1, .rma_iov = &target, .rma_iov_count = 1,
				     .datatype = FI_UINT64, .op = FI_SUM, .context = ctx(1) };
	struct setup tags = { .caps = FI_MSG | FI_TAGGED | FI_ATOMIC, .tx_flags = usual.tx_flags };
	struct fi_atomic_attr attr;
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &tags, OPEN_TO_ALL);
	NEED(fi_query_atomic(bed.domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED) == 0, "no atomics on tagged buffers");
	msg.addr = peer;
	POST(&bed, fi_trecv(bed.side[1].ep, buffer, sizeof(buffer), desc, FI_ADDR_UNSPEC, 77, 0, ctx(2)));
	POST(&bed, fi_fetch_atomicmsg(ep, &msg, &result, descs, 1, FI_TAGGED));
	ended(&bed, 1, FI_READ);
	CHECK(old[0] == 200 && old[1] == 300, "old values %llu %llu", (unsigned long long) old[0], (unsigned long long) old[1]);
	COMPLETION(&bed, bed.side[1].rx, ctx(2));
	CHECK(buffer[0] == 100 && buffer[1] == 205 && buffer[2] == 307 && buffer[3] == 400, "%llu %llu %llu %llu",
	      (unsigned long long) buffer[0], (unsigned long long) buffer[1], (unsigned long long) buffer[2], (unsigned long long) buffer[3]);
	close_window(&bed, &w);
}

static const struct test tests[] = {
	TEST(several_targets), TEST(counters), TEST(in_order), TEST(exact_totals), TEST(tagged_target),
	TEST(an_inject_needs_no_more_calls),
};

CASES(tests)

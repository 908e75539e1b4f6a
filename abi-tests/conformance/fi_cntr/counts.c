/* Bound to endpoints: what counts, and what does not. */
#include "cntr.h"

static void counts_sends(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND);
	int i;

	for (i = 1; i <= 5; i++) {
		exchange(&bed, 0, 1, 8);
		BECOMES(cntr, (uint64_t) i);
	}
	exchange(&bed, 1, 0, 8); /* what is received is not sent */
	POST(&bed, fi_recv(bed.side[1].ep, in, 8, desc, FI_ADDR_UNSPEC, ctx(1)));
	POST(&bed, fi_send(bed.side[0].ep, out, 8, desc, bed.side[1].addr, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	BECOMES(cntr, 6); /* tagged and untagged count alike */
	CHECK(fi_cntr_readerr(cntr) == 0, "%llu errors", (unsigned long long) fi_cntr_readerr(cntr));
	close_counted(&bed, cntr);
}

static void counts_receives(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);
	int i;

	for (i = 1; i <= 5; i++) {
		exchange(&bed, 0, 1, 8);
		BECOMES(cntr, (uint64_t) i);
	}
	exchange(&bed, 1, 0, 8);
	POST(&bed, fi_recv(bed.side[1].ep, in, 8, desc, FI_ADDR_UNSPEC, ctx(1)));
	POST(&bed, fi_send(bed.side[0].ep, out, 8, desc, bed.side[1].addr, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 6);
	close_counted(&bed, cntr);
}

static void counts_both_directions(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND | FI_RECV);

	exchange(&bed, 0, 1, 8);
	exchange(&bed, 1, 0, 8);
	BECOMES(cntr, 2);
	close_counted(&bed, cntr);
}

static void counts_large_messages_once(void)
{
	static char big_in[1 << 20], big_out[1 << 20];
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);

	POST(&bed, post_recv(bed.side[1].ep, big_in, sizeof(big_in), FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, big_out, at_most(&bed, sizeof(big_out)), bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	BECOMES(cntr, 1);
	settle(&bed);
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

/* Counting is separate from whether an entry is written. */
static void counts_without_entries(void)
{
	struct setup s = { .tx_bind = FI_SELECTIVE_COMPLETION };
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &s, FI_CNTR_EVENTS_COMP, 0, FI_SEND);

	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 1);
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_counted(&bed, cntr);
}

static void counts_injects(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND);

	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_inject(bed.side[0].ep, out, 8, bed.side[1].addr, 1));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

/* An endpoint may do without queues altogether. */
static void counter_instead_of_a_queue(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *sent, *received;
	struct fid_ep *ep;
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	int ret;

	BY_ADDRESS;
	open_bed(&bed, &usual);
	OK(try_open(&bed, &attr, &sent));
	OK(try_open(&bed, &attr, &received));
	OK(fi_endpoint(bed.domain, bed.info, &ep, NULL));
	OK(fi_ep_bind(ep, &bed.av->fid, 0));
	ret = fi_ep_bind(ep, &sent->fid, FI_SEND);
	NEED(!lacking(ret), "fi_ep_bind of a counter: %s", fi_strerror(-ret));
	OK(fi_ep_bind(ep, &received->fid, FI_RECV));
	ret = fi_enable(ep);
	NEED(ret != -FI_ENOCQ, "an endpoint must have queues");
	CHECK(ret == 0, "fi_enable: %s", fi_strerror(-ret));
	memset(&bed.side[2], 0, sizeof(bed.side[2]));
	bed.side[2].ep = ep;
	learn_name(&bed.side[2]);
	GIVES(1, insert_sides(&bed, bed.av, 2, 1, &bed.side[2].addr, 0, NULL));
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	while ((ret = (int) post_send(ep, out, 8, bed.side[1].addr, 1, ctx(2))) == -FI_EAGAIN && now_ms() < until) {
		fi_cntr_read(sent);
		progress(&bed);
	}
	OK(ret);
	while (fi_cntr_read(sent) != 1 && now_ms() < until) /* which drives the endpoint, as nothing else does */
		progress(&bed);
	BECOMES(sent, 1);
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	POST(&bed, post_recv(ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[1].ep, out, 8, bed.side[2].addr, 1, ctx(2)));
	while (fi_cntr_read(received) != 1 && now_ms() < until)
		progress(&bed);
	BECOMES(received, 1);
	OK(fi_close(&ep->fid));
	bed.side[2].ep = NULL;
	OK(fi_close(&sent->fid));
	OK(fi_close(&received->fid));
	close_bed(&bed);
}

static void errors_are_counted_apart(void)
{
	struct fi_cq_err_entry err;
	struct fid_cntr *cntr;
	struct bed bed;

	NOTHING_IS_LOST;
	cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);
	exchange(&bed, 0, 1, 8);
	POST(&bed, post_recv(bed.side[1].ep, in, 4, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	err = ERROR_COMPLETION(&bed, bed.side[1].rx); /* and an entry is written */
	CHECK(err.op_context == ctx(1), "the error of another operation");
	ERRORS_BECOME(cntr, 1);
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

static void cancelled_counts_as_error(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 1, FI_RECV);
	int ret;

	POST(&bed, post_recv(bed.side[1].ep, in, 4, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	ret = (int) fi_cancel(&bed.side[1].ep->fid, ctx(1));
	NEED(!lacking(ret), "fi_cancel: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_cancel: %s", fi_strerror(-ret));
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	ERRORS_BECOME(cntr, 1);
	BECOMES(cntr, 0);
	close_counted(&bed, cntr);
}

#if HEADERS_2
static void bytes_sent(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_BYTES, 0, FI_SEND);
	size_t more = at_most(&bed, 4000);

	exchange(&bed, 0, 1, 100);
	BECOMES(cntr, 100);
	exchange(&bed, 0, 1, 0);
	exchange(&bed, 0, 1, more);
	BECOMES(cntr, 100 + more);
	close_counted(&bed, cntr);
}

static void bytes_received(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_BYTES, 1, FI_RECV);

	exchange(&bed, 0, 1, 100);
	BECOMES(cntr, 100);
	/* Received bytes count, not the buffer's; and the queue's data do not. */
	POST(&bed, post_recv(bed.side[1].ep, in, 500, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_senddata(bed.side[0].ep, out, 50, 77, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	BECOMES(cntr, 150);
	close_counted(&bed, cntr);
}

static void bytes_of_an_error(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	NOTHING_IS_LOST;
	cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_BYTES, 1, FI_RECV);
	POST(&bed, post_recv(bed.side[1].ep, in, 4, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	ERROR_COMPLETION(&bed, bed.side[1].rx);
	ERRORS_BECOME(cntr, 1); /* by 1, not by the size */
	close_counted(&bed, cntr);
}
#endif

static void close_while_in_use(void)
{
	struct bed bed;
	struct fid_cntr *cntr = bind_counter(&bed, &usual, FI_CNTR_EVENTS_COMP, 0, FI_SEND);

	GIVES(-FI_EBUSY, fi_close(&cntr->fid));
	exchange(&bed, 0, 1, 8);
	BECOMES(cntr, 1);
	close_counted(&bed, cntr);
}

static void one_counter_for_two_endpoints(void)
{
	struct bed bed;
	struct fid_cntr *cntr;
	struct fi_cntr_attr attr = { 0 };
	int i;

	open_sides(&bed, &usual);
	OK(try_open(&bed, &attr, &cntr));
	for (i = 0; i < 2; i++)
		OK(fi_ep_bind(bed.side[i].ep, &cntr->fid, FI_SEND));
	enable_sides(&bed, &usual);
	exchange(&bed, 0, 1, 8);
	exchange(&bed, 1, 0, 8);
	BECOMES(cntr, 2);
	close_counted(&bed, cntr);
}

/* As Sandia OpenSHMEM binds its counters. */
static void bound_to_an_enabled_endpoint(void)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	OK(try_open(&bed, &attr, &cntr));
	exchange(&bed, 0, 1, 8);
	ret = fi_ep_bind(bed.side[0].ep, &cntr->fid, FI_SEND);
	NEED(ret == 0, "fi_ep_bind of an enabled endpoint: %s", fi_strerror(-ret));
	exchange(&bed, 0, 1, 8);
	BECOMES(cntr, 1);
	GIVES(-FI_EBUSY, fi_close(&cntr->fid));
	close_counted(&bed, cntr);
}

static const struct test tests[] = {
	TEST(counts_sends), TEST(counts_receives), TEST(counts_both_directions), TEST(counts_large_messages_once),
	TEST(counts_without_entries), TEST(counts_injects), TEST(counter_instead_of_a_queue),
	TEST(errors_are_counted_apart), TEST(cancelled_counts_as_error),
#if HEADERS_2
	TEST(bytes_sent), TEST(bytes_received), TEST(bytes_of_an_error),
#endif
	TEST(close_while_in_use), TEST(one_counter_for_two_endpoints), TEST(bound_to_an_enabled_endpoint),
};

CASES(tests)

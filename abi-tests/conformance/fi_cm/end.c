/* fi_cm(3): the end of connections, by fi_shutdown and by fi_close, with operations under way. */
#include "connected.h"
#include "remote.h"

static const struct setup usual;
static char in[16][64], out[1 << 22];

enum { RECEIVES = 4 };

/* Whatever was heard of endpoints that are closed now. */
static void forget_events(struct wired *w)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;

	while (fi_eq_read(w->eq, &event, &entry, sizeof(entry), 0) > 0)
		CHECK(event == FI_SHUTDOWN, "event %u", event);
}

/* Posts receives at a side: contexts 100 * side and on. */
static void post_receives(struct wired *w, int side)
{
	int i;

	for (i = 0; i < RECEIVES; i++)
		POST(&w->bed, fi_recv(w->bed.side[side].ep, in[side * RECEIVES + i], 64, NULL, 0, ctx(100 * side + i)));
}

static void shutdown_is_heard(void)
{
	struct wired w;
	int by;

	open_exchange(&w, &usual);
	for (by = 0; by < 2; by++) {
		join_sides(&w, 0, 1);
		OK(fi_shutdown(w.bed.side[by].ep, 0));
		for (;;) { /* the one that shut down may hear of it too */
			fid_t fid = HEAR(&w, FI_SHUTDOWN, NULL).fid;

			if (fid == &w.bed.side[1 - by].ep->fid)
				break;
			CHECK(fid == &w.bed.side[by].ep->fid, "another endpoint");
		}
		SILENCE(&w, &w.bed.side[by].ep->fid);
		close_eps(&w.bed);
	}
	close_wires(&w);
}

static void close_is_heard(void)
{
	struct wired w;
	int by;

	open_exchange(&w, &usual);
	for (by = 0; by < 2; by++) {
		join_sides(&w, 0, 1);
		close_side(&w, by);
		HEAR(&w, FI_SHUTDOWN, &w.bed.side[1 - by].ep->fid);
		SILENCE(&w, NULL);
		close_eps(&w.bed);
	}
	close_wires(&w);
}

static void shutdown_takes_no_flags(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	FAILS(fi_shutdown(w.bed.side[0].ep, 1));
	talk(&w, 0, 1); /* it stands */
	close_wires(&w);
}

static void both_shut_down(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	OK(fi_shutdown(w.bed.side[0].ep, 0));
	OK(fi_shutdown(w.bed.side[1].ep, 0));
	close_wires(&w);
}

/* "all canceled completions will be written before fi_shutdown returns", unless operations are discarded. */
static void shutdown_ends_own_receives(void)
{
	struct fi_cq_tagged_entry entry;
	char ended[RECEIVES] = { 0 };
	struct wired w;
	ssize_t ret;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	post_receives(&w, 0);
	OK(fi_shutdown(w.bed.side[0].ep, 0));
	while ((ret = fi_cq_read(w.bed.side[0].rx, &entry, 1)) == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };
		long number;

		GIVES(1, fi_cq_readerr(w.bed.side[0].rx, &err, 0));
		number = (struct fi_context2 *) err.op_context - ctx(0);
		CHECK(number >= 0 && number < RECEIVES && !ended[number]++, "operation %ld", number);
	}
	GIVES(-FI_EAGAIN, ret);
	NO_COMPLETION(&w.bed, w.bed.side[0].rx);
	close_wires(&w);
}

/* Receives at the other side end, each once, in error: nothing can come any more. */
static void the_peers_receives_end(void)
{
	struct wired w;
	int by, closes;

	open_exchange(&w, &usual);
	for (by = 0; by < 2; by++)
		for (closes = 0; closes < 2; closes++) {
			join_sides(&w, 0, 1);
			post_receives(&w, 1 - by);
			if (closes)
				close_side(&w, by);
			else
				OK(fi_shutdown(w.bed.side[by].ep, 0));
			ALL_FAIL(&w, w.bed.side[1 - by].rx, 100 * (1 - by), RECEIVES);
			close_eps(&w.bed);
			forget_events(&w);
		}
	close_wires(&w);
}

/* Sends that nobody receives: each ends once. What had left may have succeeded. */
static void the_peers_sends_end(void)
{
	struct wired w;
	int by;

	open_exchange(&w, &usual);
	for (by = 0; by < 2; by++) {
		struct fid_cq *cq;
		char ended[4] = { 0 };
		int i, posted = 0;

		join_sides(&w, 0, 1);
		cq = w.bed.side[1 - by].tx;
		for (i = 0; i < 4; i++)
			posted += fi_send(w.bed.side[1 - by].ep, out, sizeof(out), NULL, 0, ctx(i)) == 0;
		CHECK(posted > 0, "nothing can be sent");
		close_side(&w, by);
		for (i = 0; i < posted; i++) {
			struct fi_cq_tagged_entry entry;
			struct fi_cq_err_entry err = { 0 };
			ssize_t ret = next(&w.bed, cq, &entry);
			long number;

			if (ret == -FI_EAVAIL)
				GIVES(1, fi_cq_readerr(cq, &err, 0));
			else
				CHECK(ret == 1, "a send does not end: %zd", ret);
			number = (struct fi_context2 *) (ret == 1 ? entry.op_context : err.op_context) - ctx(0);
			CHECK(number >= 0 && number < 4 && !ended[number]++, "operation %ld", number);
		}
		NO_COMPLETION(&w.bed, cq);
		close_eps(&w.bed);
		forget_events(&w);
	}
	close_wires(&w);
}

/* After the end nothing can be begun: a call fails, or what it began ends in error. */
static void nothing_begins_after_the_end(void)
{
	struct wired w;
	int i;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	OK(fi_shutdown(w.bed.side[0].ep, 0));
	while (HEAR(&w, FI_SHUTDOWN, NULL).fid != &w.bed.side[1].ep->fid)
		;
	for (i = 0; i < 2; i++) {
		struct side *side = &w.bed.side[i];

		if (fi_send(side->ep, out, 64, NULL, 0, ctx(i)) == 0) {
			ERROR_COMPLETION(&w.bed, side->tx);
		}
		if (fi_recv(side->ep, in[i], 64, NULL, 0, ctx(10 + i)) == 0)
			ERROR_COMPLETION(&w.bed, side->rx);
	}
	close_wires(&w);
}

/* What had completed before still arrives. */
static void what_was_sent_before_arrives(void)
{
	struct fi_cq_tagged_entry entry;
	struct wired w;
	int closes;

	open_exchange(&w, &usual);
	for (closes = 0; closes < 2; closes++) {
		int i;

		join_sides(&w, 0, 1);
		post_receives(&w, 1);
		for (i = 0; i < RECEIVES - 1; i++) {
			fill(out, 64, (unsigned) i);
			POST(&w.bed, fi_send(w.bed.side[0].ep, out, 64, NULL, 0, ctx(i)));
			COMPLETION(&w.bed, w.bed.side[0].tx, ctx(i));
		}
		if (closes)
			close_side(&w, 0);
		else
			OK(fi_shutdown(w.bed.side[0].ep, 0));
		for (i = 0; i < RECEIVES - 1; i++) {
			entry = COMPLETION(&w.bed, w.bed.side[1].rx, ctx(100 + i));
			CHECK(entry.len == 64, "%zu bytes", entry.len);
			SAME(in[RECEIVES + i], 64, (unsigned) i);
		}
		ALL_FAIL(&w, w.bed.side[1].rx, 100 + RECEIVES - 1, 1);
		close_eps(&w.bed);
		forget_events(&w);
	}
	close_wires(&w);
}

/* The passive endpoint, the one that asked and the one that answered, in every order, with receives and sends posted. */
static void closes_in_every_order(void)
{
	static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	int order, i;

	for (order = 0; order < 6; order++) {
		struct wired w;

		open_exchange(&w, &usual);
		join_sides(&w, 0, 1);
		for (i = 0; i < 2; i++) {
			post_receives(&w, i);
			fi_send(w.bed.side[i].ep, out, sizeof(out), NULL, 0, ctx(50 + i));
		}
		for (i = 0; i < 3; i++) {
			int which = orders[order][i];

			if (which < 2) {
				close_side(&w, which);
				continue;
			}
			OK(fi_close(&w.pep->fid));
			w.pep = NULL;
		}
		close_wires(&w);
	}
}

/* Connections do not need the passive endpoint that they came by. */
static void connections_outlive_the_listener(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	OK(fi_close(&w.pep->fid));
	w.pep = NULL;
	talk(&w, 0, 1);
	talk(&w, 1, 0);
	SILENCE(&w, NULL);
	close_wires(&w);
}

/* The end of one connection is none of the others' business. */
static void others_stand(void)
{
	struct wired w;
	int i;

	open_exchange(&w, &usual);
	for (i = 0; i < 3; i++)
		join_sides(&w, 2 * i, 2 * i + 1);
	close_side(&w, 2);
	HEAR(&w, FI_SHUTDOWN, &w.bed.side[3].ep->fid);
	talk(&w, 0, 1);
	talk(&w, 5, 4);
	SILENCE(&w, NULL);
	close_wires(&w);
}

static void failed_attempts_end_receives(void)
{
	struct heard heard;
	struct wired w;

	open_exchange(&w, &usual);
	open_side(&w, 0, w.bed.info);
	OK(fi_enable(w.bed.side[0].ep));
	post_receives(&w, 0);
	OK(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	OK(fi_reject(w.pep, heard.info->handle, NULL, 0));
	fi_freeinfo(heard.info);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	ALL_FAIL(&w, w.bed.side[0].rx, 0, RECEIVES);
	close_wires(&w);
}

/* Closed before it has heard anything. */
static void closes_while_it_asks(void)
{
	struct wired w;
	int i;

	open_exchange(&w, &usual);
	for (i = 0; i < 20; i++) {
		struct fi_eq_cm_entry entry;
		uint32_t event;

		ask(&w, 0, NULL, 0);
		if (i % 2)
			turn(&w);
		close_side(&w, 0);
		while (fi_eq_read(w.eq, &event, &entry, sizeof(entry), 0) > 0) {
			CHECK(event == FI_CONNREQ, "event %u", event);
			fi_reject(w.pep, entry.info->handle, NULL, 0);
			fi_freeinfo(entry.info);
		}
	}
	close_wires(&w);
}

/* A receive of a shared context was being filled by the only endpoint that has it at that time, which closes: the buffer is the
 * program's again, and it hears of that in the endpoint's queue. */
static void the_last_of_those_that_share_gives_a_receive_back(void)
{
	static char there[1 << 24], here[1 << 24];
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT };
	struct fi_cq_err_entry err;
	struct heard heard;
	struct fi_info *alone;
	struct wired w;
	int i, ret;

	open_exchange(&w, &s);
	ret = fi_srx_context(w.bed.domain, w.bed.info->rx_attr, &w.bed.srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
	if (!strict)
		SKIP("a provider may not give it back");
	alone = fi_dupinfo(w.bed.info);
	alone->ep_attr->rx_ctx_cnt = 1;
	memset(there, 7, sizeof(there));
	for (i = 0; i < 2; i++) {
		memset(here, 0, sizeof(here));
		open_side(&w, 0, alone);
		OK(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
		heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
		heard.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		open_side(&w, 1, heard.info);
		fi_freeinfo(heard.info);
		OK(fi_ep_bind(w.bed.side[1].ep, &w.bed.srx->fid, 0));
		OK(fi_accept(w.bed.side[1].ep, NULL, 0));
		for (ret = 0; ret < 2; ret++)
			HEAR(&w, FI_CONNECTED, NULL);
		POST(&w.bed, fi_recv(w.bed.srx, here, sizeof(here), NULL, 0, ctx(i)));
		POST(&w.bed, fi_send(w.bed.side[0].ep, there, sizeof(there), NULL, 0, ctx(10)));
		UNTIL(&w.bed, here[0] == 7);
		CHECK(here[sizeof(here) - 1] == 0, "it came at once");
		close_side(&w, 1);
		err = ERROR_COMPLETION(&w.bed, w.bed.side[1].rx);
		CHECK(err.op_context == ctx(i) && err.err == FI_ECANCELED && err.flags & FI_RECV, "context %p, %s, flags 0x%llx",
		      err.op_context, fi_strerror(err.err), (unsigned long long) err.flags);
		HEAR(&w, FI_SHUTDOWN, &w.bed.side[0].ep->fid);
		close_eps(&w.bed);
	}
	fi_freeinfo(alone);
	close_wires(&w);
}

/* What had come for an endpoint that is closed, and found no receive, is nobody's: another endpoint's queue would tell it as what came
 * from its own peer. */
static void unexpected_messages_end_with_their_endpoint(void)
{
	struct fi_cq_tagged_entry sent;
	struct setup s = { .rx_ctx_cnt = FI_SHARED_CONTEXT };
	struct fi_info *alone;
	struct heard heard;
	struct wired w;
	int i, k, ret;

	open_exchange(&w, &s);
	ret = fi_srx_context(w.bed.domain, w.bed.info->rx_attr, &w.bed.srx, NULL);
	NEED(!lacking(ret), "fi_srx_context: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_srx_context: %s", fi_strerror(-ret));
	alone = fi_dupinfo(w.bed.info);
	alone->ep_attr->rx_ctx_cnt = 1;
	for (i = 0; i < 2; i++) {
		open_side(&w, i, alone);
		OK(fi_connect(w.bed.side[i].ep, w.name, NULL, 0));
		heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
		heard.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		open_side(&w, 2 + i, heard.info);
		fi_freeinfo(heard.info);
		OK(fi_ep_bind(w.bed.side[2 + i].ep, &w.bed.srx->fid, 0));
		OK(fi_accept(w.bed.side[2 + i].ep, NULL, 0));
		for (k = 0; k < 2; k++)
			HEAR(&w, FI_CONNECTED, NULL);
	}
	memset(out, 1, 64);
	POST(&w.bed, fi_send(w.bed.side[0].ep, out, 64, NULL, 0, ctx(0)));
	settle(&w.bed);
	if (fi_cq_read(w.bed.side[0].tx, &sent, 1) == -FI_EAGAIN)
		SKIP("a device sends a message when its receive is posted, and not before");
	close_side(&w, 2);
	HEAR(&w, FI_SHUTDOWN, &w.bed.side[0].ep->fid);
	POST(&w.bed, fi_recv(w.bed.srx, in[0], 64, NULL, 0, ctx(1)));
	NO_COMPLETION(&w.bed, w.bed.side[3].rx);
	memset(out, 2, 64);
	POST(&w.bed, fi_send(w.bed.side[1].ep, out, 64, NULL, 0, ctx(2)));
	COMPLETION(&w.bed, w.bed.side[1].tx, ctx(2));
	COMPLETION(&w.bed, w.bed.side[3].rx, ctx(1));
	CHECK(in[0][0] == 2, "the message of another connection");
	fi_freeinfo(alone);
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(shutdown_is_heard),
	TEST(close_is_heard),
	TEST(shutdown_takes_no_flags),
	TEST(both_shut_down),
	TEST(shutdown_ends_own_receives),
	TEST(the_peers_receives_end),
	TEST(the_peers_sends_end),
	TEST(nothing_begins_after_the_end),
	TEST(what_was_sent_before_arrives),
	TEST(closes_in_every_order),
	TEST(connections_outlive_the_listener),
	TEST(others_stand),
	TEST(failed_attempts_end_receives),
	TEST(closes_while_it_asks),
	TEST(the_last_of_those_that_share_gives_a_receive_back),
	TEST(unexpected_messages_end_with_their_endpoint),
};

CASES(tests)

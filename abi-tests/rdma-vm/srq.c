/* Shared receive contexts (fi_srx_context) of connected endpoints on a card. */
#include "connected.h"

#define PAIRS 3

static char buffers[64][256], out[256];
static struct fid_ep *srx;
static int made;

struct opened {
	struct wired w;
	struct fid_mr *mr;
	struct fid_cq *cq; /* of all that answer */
};

/* Those that answer share their receives; whoever asks has none to share. */
static void share(struct wired *w, struct fid_ep *ep, int side)
{
	(void) w;
	(void) side;
	OK(fi_ep_bind(ep, &srx->fid, 0));
	made++;
}

static void open_pairs(struct opened *o)
{
	struct setup s = { .caps = FI_MSG, .rx_ctx_cnt = FI_SHARED_CONTEXT };
	struct setup usual = { 0 };
	int i;

	memset(o, 0, sizeof(*o));
	made = 0;
	open_exchange(&o->w, &s);
	o->w.bind = share;
	OK(fi_srx_context(o->w.bed.domain, o->w.bed.info->rx_attr, &srx, NULL));
	OK(open_cq(&o->w.bed, &usual, &o->cq, NULL));
	OK(fi_mr_reg(o->w.bed.domain, buffers, sizeof(buffers), FI_RECV, 0, 0, 0, &o->mr, NULL));
	for (i = 0; i < PAIRS; i++) {
		o->w.bed.side[2 * i + 1].tx = o->w.bed.side[2 * i + 1].rx = o->cq;
		join_sides(&o->w, 2 * i, 2 * i + 1);
	}
	CHECK(made == 2 * PAIRS, "%d endpoints share", made);
}

static void close_pairs(struct opened *o)
{
	int i;

	for (i = 0; i < PAIRS; i++) {
		struct side *side = &o->w.bed.side[2 * i + 1];

		if (i > 0)
			side->tx = NULL; /* the first closes the queue */
		side->rx = NULL;
	}
	for (i = 0; i < 2 * PAIRS; i++)
		if (o->w.bed.side[i].ep) {
			GIVES(-FI_EBUSY, fi_close(&srx->fid));
			close_side(&o->w, i);
		}
	OK(fi_close(&srx->fid));
	OK(fi_close(&o->mr->fid));
	close_wires(&o->w);
}

static void send_from(struct opened *o, int pair, int number)
{
	snprintf(out, sizeof(out), "message %d", number);
	POST(&o->w.bed, fi_inject(o->w.bed.side[2 * pair].ep, out, 32, 0));
}

/* Whichever a message comes by, it takes the next receive; each is told once, with the message that lies there. */
static void one_set_of_receives_serves_all(void)
{
	struct opened o;
	int i;

	open_pairs(&o);
	for (i = 0; i < 60; i++)
		POST(&o.w.bed, fi_recv(srx, buffers[i % 64], 256, fi_mr_desc(o.mr), FI_ADDR_UNSPEC, ctx(i)));
	for (i = 0; i < 60; i++) {
		struct fi_cq_tagged_entry entry;
		char expected[32];

		send_from(&o, i * 7 % PAIRS, i);
		entry = COMPLETION(&o.w.bed, o.cq, ctx(i));
		snprintf(expected, sizeof(expected), "message %d", i);
		CHECK(entry.flags == (FI_MSG | FI_RECV) && entry.len == 32, "%zu bytes, flags %#lx", entry.len, (long) entry.flags);
		CHECK(!strcmp(buffers[i], expected), "%s in place of %s", buffers[i], expected);
	}
	NO_COMPLETION(&o.w.bed, o.cq);
	GIVES(-FI_EOPNOTSUPP, fi_recv(o.w.bed.side[1].ep, buffers[0], 256, fi_mr_desc(o.mr), 0, ctx(1)));
	close_pairs(&o);
}

/* A message that comes before a receive waits for it, and holds up no other connection. */
static void a_message_waits_for_a_receive(void)
{
	struct opened o;
	int i, seen[PAIRS] = { 0 };

	open_pairs(&o);
	for (i = 0; i < PAIRS; i++)
		send_from(&o, i, i);
	NO_COMPLETION(&o.w.bed, o.cq);
	for (i = 0; i < PAIRS; i++) {
		int number = -1;

		POST(&o.w.bed, fi_recv(srx, buffers[i], 256, NULL, FI_ADDR_UNSPEC, ctx(i)));
		COMPLETION(&o.w.bed, o.cq, ctx(i));
		CHECK(sscanf(buffers[i], "message %d", &number) == 1 && number >= 0 && number < PAIRS && !seen[number]++, "%s",
		      buffers[i]);
	}
	close_pairs(&o);
}

/* A connection ends; its endpoint's messages have been told, and the receives that are left go on serving others. */
static void an_end_takes_no_receive_with_it(void)
{
	struct opened o;
	int i;

	open_pairs(&o);
	for (i = 0; i < 4; i++)
		POST(&o.w.bed, fi_recv(srx, buffers[i], 256, NULL, FI_ADDR_UNSPEC, ctx(i)));
	send_from(&o, 0, 0);
	COMPLETION(&o.w.bed, o.cq, ctx(0));
	OK(fi_shutdown(o.w.bed.side[0].ep, 0));
	HEAR(&o.w, FI_SHUTDOWN, NULL);
	HEAR(&o.w, FI_SHUTDOWN, NULL);
	NO_COMPLETION(&o.w.bed, o.cq);
	for (i = 1; i < 4; i++) {
		send_from(&o, 1 + i % 2, i);
		COMPLETION(&o.w.bed, o.cq, ctx(i));
	}
	close_pairs(&o);
}

static void an_endpoint_needs_the_context_that_it_asked_for(void)
{
	struct setup s = { .caps = FI_MSG, .rx_ctx_cnt = FI_SHARED_CONTEXT };
	struct opened o;

	memset(&o, 0, sizeof(o));
	open_exchange(&o.w, &s);
	open_side(&o.w, 0, o.w.bed.info);
	GIVES(-FI_EOPBADSTATE, fi_enable(o.w.bed.side[0].ep));
	close_wires(&o.w);
}

static const struct test tests[] = {
	TEST(one_set_of_receives_serves_all), TEST(a_message_waits_for_a_receive), TEST(an_end_takes_no_receive_with_it),
	TEST(an_endpoint_needs_the_context_that_it_asked_for),
};

CASES(tests)

/* Sends that are taken back before anything of them has left. */
#include "shared.h"

enum { MANY = 4000, LEN = 1024 };

static bool cancelled[MANY]; /* it has failed as that */
static int ends[MANY];

/* Takes what has ended of the sends out of their queue. */
static void read_ends(struct bed *bed, int sent)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry e;
	long which, ret;

	while ((ret = fi_cq_read(bed->side[0].tx, &e, 1)) != -FI_EAGAIN) {
		if (ret == -FI_EAVAIL) {
			GIVES(1, fi_cq_readerr(bed->side[0].tx, &error, 0));
			CHECK(error.err == FI_ECANCELED, "a send failed: %s", fi_strerror(error.err));
			e.op_context = error.op_context;
		} else {
			CHECK(ret == 1, "fi_cq_read: %s", fi_strerror((int) -ret));
		}
		which = (struct fi_context2 *) e.op_context - ctx(0);
		CHECK(which >= 0 && which < sent, "an end of nobody");
		cancelled[which] = ret == -FI_EAVAIL;
		ends[which]++;
	}
}

/* Sends until no more are taken, as nobody receives. */
static int send_many(struct bed *bed)
{
	long quiet = now_ms();
	int sent = 0;

	while (sent < MANY && now_ms() - quiet < 200) {
		memcpy(out + sent * LEN, &sent, sizeof(sent));
		if (post_send(bed->side[0].ep, out + sent * LEN, LEN, bed->side[1].addr, TAG, ctx(sent)) == 0) {
			sent++;
			quiet = now_ms();
		}
		read_ends(bed, sent);
	}
	return sent;
}

/* Asks for every other send to be taken back. Returns how many were. */
static int cancel_some(struct bed *bed, int sent)
{
	int i, ret, taken_back = 0;

	for (i = sent - 1; i >= 0; i -= 2) {
		bool had_ended = ends[i] > 0;

		ret = fi_cancel(&bed->side[0].ep->fid, ctx(i));
		NEED(!lacking(ret), "fi_cancel: %s", fi_strerror(-ret));
		CHECK(ret == 0 || ret == -FI_ENOENT || ret == -FI_EAGAIN, "fi_cancel: %s", fi_strerror(-ret));
		read_ends(bed, sent);
		CHECK(!had_ended || !cancelled[i], "send %d had ended", i);
		if (strict)
			CHECK((ret == 0) == cancelled[i], "fi_cancel of send %d: %d", i, ret);
		taken_back += cancelled[i];
	}
	return taken_back;
}

/* "if it is still pending, complete it as having been canceled": it has one end, and does not arrive. All others do. */
static void cancelled_sends_do_not_arrive(void)
{
	struct setup s = { .progress = FI_PROGRESS_MANUAL }; /* so that side 1 takes nothing in before it looks */
	struct bed bed;
	int i, sent, got;

	NOTHING_IS_LOST;
	open_bed(&bed, &s);
	need_order(&bed);
	send_to(&bed, 0, 1, out, 8, ctx(1)); /* connects them */
	recv_at(&bed, 1, in, 8, ctx(2));
	ended(&bed, ctx(2), ctx(1), 8);
	sent = send_many(&bed);
	NEED(cancel_some(&bed, sent) > 0, "none of %d sends was taken back", sent);
	for (i = 0; i < sent; i++) {
		if (cancelled[i])
			continue;
		recv_at(&bed, 1, in, LEN, ctx(MANY));
		COMPLETION(&bed, bed.side[1].rx, ctx(MANY));
		memcpy(&got, in, sizeof(got));
		CHECK(got == i, "message %d in place of %d", got, i);
		read_ends(&bed, sent);
	}
	for (i = 0; i < sent; i++)
		CHECK(ends[i] == 1, "send %d has %d ends", i, ends[i]);
	NO_COMPLETION(&bed, bed.side[0].tx);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(cancelled_sends_do_not_arrive),
};

CASES(tests)

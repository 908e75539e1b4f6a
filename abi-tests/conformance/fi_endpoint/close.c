/* Endpoints that come and go, with and without something posted. */
#include "endpoint.h"

static void cancel_of_nothing(void)
{
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	ret = fi_cancel(&bed.side[0].ep->fid, ctx(77));
	NEED(!lacking(ret), "fi_cancel: %s", fi_strerror(-ret));
	CHECK(ret == 0 || ret == -FI_ENOENT || ret == -FI_EAGAIN, "fi_cancel: %s", fi_strerror(-ret));
	NO_COMPLETION(&bed, bed.side[0].rx); /* the call itself has no entry */
	ping(&bed, 1, 0);
	close_bed(&bed);
}

/* Whoever waits for a peer that is not there yet can give up: a send that waits is cancelled, and ends once. */
static void cancel_of_a_send_to_nobody(void)
{
	char name[NAME_MAX_LEN];
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry e;
	struct bed bed;
	bool waits;
	fi_addr_t nobody;
	size_t len;
	int ret;

	BY_ADDRESS;
	NOTHING_IS_LOST;
	open_bed(&bed, &usual);
	made_up_name(&bed, 1, name, &len);
	GIVES(1, fi_av_insert(bed.av, name, 1, &nobody, 0, NULL));
	ret = (int) post_send(bed.side[0].ep, out, 8, nobody, 1, ctx(1));
	if (ret)
		WITHOUT_MEANING("it is refused at once: %s", fi_strerror(-ret));
	waits = fi_cq_read(bed.side[0].tx, &e, 1) == -FI_EAGAIN;
	ret = fi_cancel(&bed.side[0].ep->fid, ctx(1));
	error = ERROR_COMPLETION(&bed, bed.side[0].tx);
	CHECK(error.op_context == ctx(1), "an end of another operation");
	if (strict)
		CHECK((ret == 0) == waits && waits == (error.err == FI_ECANCELED), "it %s, fi_cancel: %d, and it failed with %s",
		      waits ? "waited" : "had ended", ret, fi_strerror(error.err));
	NO_COMPLETION(&bed, bed.side[0].tx);
	ping(&bed, 0, 1);
	close_bed(&bed);
}

static void close_drops_what_is_posted(void)
{
	struct fi_cq_tagged_entry e;
	struct bed bed;

	open_bed(&bed, &usual);
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, fi_recv(bed.side[1].ep, in, 8, desc, FI_ADDR_UNSPEC, ctx(2)));
	close_ep(&bed.side[1]);
	GIVES(-FI_EAGAIN, fi_cq_read(bed.side[1].rx, &e, 1));
	close_bed(&bed);
}

static void open_and_close_often(void)
{
	struct bed bed;
	int i;

	for (i = 0; i < 20; i++) {
		open_bed(&bed, &usual);
		if (i % 5 == 0)
			ping(&bed, 0, 1);
		close_bed(&bed);
	}
}

static void a_new_endpoint_beside_the_old(void)
{
	struct bed bed;
	struct side *late;

	BY_ADDRESS;
	open_bed(&bed, &usual);
	ping(&bed, 0, 1);
	late = &bed.side[2];
	late->ep = bare_ep(&bed);
	late->tx = a_cq(&bed);
	late->rx = a_cq(&bed);
	OK(fi_ep_bind(late->ep, &bed.av->fid, 0));
	OK(fi_ep_bind(late->ep, &late->tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(late->ep, &late->rx->fid, FI_RECV));
	OK(fi_enable(late->ep));
	learn_name(late);
	bed.sides = 3;
	GIVES(1, insert_sides(&bed, bed.av, 2, 1, &late->addr, 0, NULL));
	ping(&bed, 2, 0);
	ping(&bed, 1, 2);
	ping(&bed, 0, 1);
	close_bed(&bed);
}

/* The page does not say what a second call gives, but it does no harm. */
static void enabled_twice(void)
{
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	ret = fi_enable(bed.side[0].ep);
	CHECK(strict ? ret == 0 : ret <= 0, "fi_enable: %d", ret);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(cancel_of_nothing), TEST(cancel_of_a_send_to_nobody), TEST(close_drops_what_is_posted),
	TEST(open_and_close_often), TEST(a_new_endpoint_beside_the_old), TEST(enabled_twice),
};

CASES(tests)

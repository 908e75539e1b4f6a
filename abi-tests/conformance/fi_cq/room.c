/* How much a queue holds, who shares it, and its end. */
#include <pthread.h>
#include "cq.h"

/* Many more completions than the queue is said to hold: either all come, or the queue says that it was overrun. */
static void nothing_is_lost(enum fi_resource_mgmt management)
{
	enum { MANY = 300 };
	struct setup s = { .cq_size = 16, .resource_mgmt = management };
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	int posted = 0, tried = 0, got = 0;
	ssize_t ret;

	NOTHING_IS_LOST;
	open_bed(&bed, &s);
	ping(&bed, 0, 1); /* connects them */
	/* Nobody reads while these are posted; a full queue may say -FI_EAGAIN. */
	while (posted < MANY && tried++ < 10 * MANY) {
		if (post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(posted)) == 0)
			posted++;
		else
			progress(&bed);
	}
	CHECK(posted >= 16, "only %d sends could be posted", posted);
	for (tried = 0; tried < posted; tried++) {
		POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(1000 + tried)));
		progress(&bed);
	}
	settle(&bed);
	while (got < posted && now_ms() < until) {
		ret = fi_cq_read(bed.side[1].rx, &e, 1);
		if (ret == -FI_EAVAIL) {
			CHECK(management == FI_RM_DISABLED, "overrun in spite of FI_RM_ENABLED");
			OK(fi_cq_readerr(bed.side[1].rx, &err, 0) == 1 ? 0 : -1);
			CHECK(err.err == FI_EOVERRUN, "err %d", err.err);
			break;
		}
		progress(&bed);
		got += ret == 1;
	}
	CHECK(got == posted || err.err == FI_EOVERRUN, "%d of %d receives, and no word of an overrun", got, posted);
	for (got = 0; got < posted && !err.err; got++)
		COMPLETION(&bed, bed.side[0].tx, ctx(got));
	_exit((printf("ok %s\n", case_name), 0));
}

static void small_queue_with_rm(void) { nothing_is_lost(FI_RM_ENABLED); }
static void small_queue_without_rm(void) { nothing_is_lost(FI_RM_DISABLED); }

static void sizes_are_minimums(void)
{
	static const size_t sizes[] = { 0, 1, 7, 1024, 65536 };
	struct setup s = { 0 };
	unsigned i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct bed bed;

		s.cq_size = sizes[i];
		open_bed(&bed, &s);
		ping(&bed, 0, 1);
		close_bed(&bed);
	}
}

static void close_while_in_use(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	GIVES(-FI_EBUSY, fi_close(&bed.side[0].tx->fid));
	GIVES(-FI_EBUSY, fi_close(&bed.side[1].rx->fid));
	ping(&bed, 0, 1);
	close_bed(&bed);
}

static void close_with_entries(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	start(&bed, 1, 8, 1, 2);
	settle(&bed);
	close_bed(&bed); /* what is in the queue is lost, and nothing else happens */
}

/* Sends and receives of one endpoint in one queue. */
static void one_queue_for_both(void)
{
	struct fi_cq_tagged_entry e;
	struct fid_ep *ep;
	struct bed bed;
	int sends = 0, receives = 0, i;

	BY_ADDRESS;
	open_bed(&bed, &usual);
	OK(fi_endpoint(bed.domain, bed.info, &ep, NULL));
	OK(fi_ep_bind(ep, &bed.av->fid, 0));
	OK(fi_ep_bind(ep, &bed.side[0].tx->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	POST(&bed, post_recv(ep, in, 8, FI_ADDR_UNSPEC, 2, 0, ctx(1)));
	POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(3)));
	POST(&bed, post_send(ep, out, 8, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(3));
	memset(&bed.side[2], 0, sizeof(bed.side[2]));
	bed.side[2].ep = ep;
	learn_name(&bed.side[2]);
	GIVES(1, insert_sides(&bed, bed.av, 2, 1, &bed.side[2].addr, 0, NULL));
	POST(&bed, post_send(bed.side[1].ep, out, 8, bed.side[2].addr, 2, ctx(4)));
	for (i = 0; i < 2; i++) {
		GIVES(1, next(&bed, bed.side[0].tx, &e));
		sends += !!(e.flags & FI_SEND);
		receives += !!(e.flags & FI_RECV);
	}
	CHECK(sends == 1 && receives == 1, "%d sends, %d receives", sends, receives);
	close_bed(&bed);
}

/* Every thread may read: each completion comes out once. */
struct reader {
	struct bed *bed;
	_Atomic int *left;
	int got;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct fi_cq_tagged_entry e;
	long until = now_ms() + GIVE_UP_MS;

	while (*r->left > 0 && now_ms() < until)
		if (fi_cq_read(r->bed->side[1].rx, &e, 1) == 1) {
			r->got++;
			--*r->left;
		}
	return NULL;
}

static void many_readers(void)
{
	enum { MESSAGES = 2000 };
	struct setup s = { .threading = FI_THREAD_SAFE };
	_Atomic int left = MESSAGES;
	struct reader readers[2];
	pthread_t threads[2];
	struct bed bed;
	int i;

	open_bed(&bed, &s);
	for (i = 0; i < 2; i++) {
		readers[i] = (struct reader){ .bed = &bed, .left = &left };
		CHECK(pthread_create(&threads[i], NULL, read_on, &readers[i]) == 0, "pthread_create");
	}
	for (i = 0; i < MESSAGES; i++) {
		POST(&bed, post_recv(bed.side[1].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx(i)));
		POST(&bed, post_send(bed.side[0].ep, out, 8, bed.side[1].addr, 1, ctx(2000)));
		COMPLETION(&bed, bed.side[0].tx, ctx(2000));
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(readers[0].got + readers[1].got == MESSAGES, "%d completions of %d", readers[0].got + readers[1].got, MESSAGES);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(small_queue_with_rm), TEST(small_queue_without_rm), TEST(sizes_are_minimums), TEST(close_while_in_use),
	TEST(close_with_entries), TEST(one_queue_for_both), TEST(many_readers),
};

CASES(tests)

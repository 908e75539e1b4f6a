/* fi_domain(3): domains, their attributes, threading and progress. */
#include <pthread.h>
#include "fabric.h"

static const struct setup usual;

static void opens(void)
{
	struct fid_domain *domain;
	struct bed bed;

	open_info(&bed, &usual);
	OK(fi_fabric(bed.info->fabric_attr, &bed.fabric, ctx(1)));
	CHECK(bed.fabric->fid.fclass == FI_CLASS_FABRIC && bed.fabric->fid.context == ctx(1), "class %zu", bed.fabric->fid.fclass);
	OK(fi_domain(bed.fabric, bed.info, &domain, ctx(2)));
	CHECK(domain->fid.fclass == FI_CLASS_DOMAIN && domain->fid.context == ctx(2), "class %zu", domain->fid.fclass);
	GIVES(-FI_EBUSY, fi_close(&bed.fabric->fid));
	OK(fi_close(&domain->fid));
#if HEADERS_2
	OK(fi_domain2(bed.fabric, bed.info, &domain, 0, ctx(3)));
	CHECK(domain->fid.context == ctx(3), "another context");
	OK(fi_close(&domain->fid));
#endif
	close_bed(&bed);
}

static void many_at_once(void)
{
	struct fid_domain *domains[16];
	struct bed bed;
	int i;

	open_domain(&bed, &usual);
	for (i = 0; i < 16; i++)
		OK(fi_domain(bed.fabric, bed.info, &domains[i], NULL));
	for (i = 0; i < 16; i++)
		OK(fi_close(&domains[i]->fid));
	close_bed(&bed);
}

/* ---- everything else holds the domain ---- */

static void held(struct bed *bed, struct fid *fid)
{
	GIVES(-FI_EBUSY, fi_close(&bed->domain->fid));
	OK(fi_close(fid));
	close_bed(bed);
}

static void held_by_an_av(void)
{
	struct fi_av_attr attr = { 0 };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	held(&bed, &av->fid);
}

static void held_by_a_queue(void)
{
	struct fid_cq *cq;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(open_cq(&bed, &usual, &cq, NULL));
	held(&bed, &cq->fid);
}

static void held_by_a_counter(void)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, NULL));
	held(&bed, &cntr->fid);
}

static void held_by_an_endpoint(void)
{
	struct fid_ep *ep;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_endpoint(bed.domain, bed.info, &ep, NULL));
	held(&bed, &ep->fid);
}

static void held_by_a_region(void)
{
	static char memory[4096];
	struct fid_mr *mr;
	struct bed bed;

	open_domain_for_regions(&bed);
	OK(fi_mr_reg(bed.domain, memory, sizeof(memory), FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	held(&bed, &mr->fid);
}

/* ---- fi_getinfo and the domain ---- */

static void reported_while_open(void)
{
	struct fi_info *hints, *info;
	struct bed bed;

	open_info(&bed, &usual);
	CHECK(!bed.info->domain_attr->domain, "a domain that nobody has opened");
	close_bed(&bed);
	open_domain(&bed, &usual);
	hints = hints_for(&usual);
	hints->domain_attr->name = strdup(bed.info->domain_attr->name);
	OK(get_info(api_version(), hints, &info));
	CHECK(info->domain_attr->domain == bed.domain, "the open domain is not reported");
	fi_freeinfo(info);
	fi_freeinfo(hints);
	close_bed(&bed);
	open_info(&bed, &usual);
	CHECK(!bed.info->domain_attr->domain, "a domain that was closed");
	close_bed(&bed);
}

/* The same of fabrics, by fi_fabric(3). */
static void fabric_reported_while_open(void)
{
	struct fi_info *hints, *info;
	struct fid_fabric *second;
	struct bed bed;

	open_info(&bed, &usual);
	CHECK(!bed.info->fabric_attr->fabric, "a fabric that nobody has opened");
	OK(fi_fabric(bed.info->fabric_attr, &bed.fabric, NULL));
	OK(fi_fabric(bed.info->fabric_attr, &second, NULL));
	hints = hints_for(&usual);
	hints->fabric_attr->name = strdup(bed.info->fabric_attr->name);
	OK(get_info(api_version(), hints, &info));
	CHECK(info->fabric_attr->fabric == bed.fabric, "not the fabric that was opened first");
	fi_freeinfo(info);
	fi_freeinfo(hints);
	if (second != bed.fabric) /* a provider may open one and count */
		OK(fi_close(&second->fid));
	else
		OK(fi_close(&bed.fabric->fid));
	close_bed(&bed);
	open_info(&bed, &usual);
	CHECK(!bed.info->fabric_attr->fabric, "a fabric that was closed");
	close_bed(&bed);
}

/* Hints with an opened instance restrict the answer to it. */
static void restricted_to_an_instance(void)
{
	struct fi_info *hints, *info;
	struct fid_domain *second;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_domain(bed.fabric, bed.info, &second, NULL));
	hints = hints_for(&usual);
	hints->domain_attr->domain = second;
	OK(get_info(api_version(), hints, &info));
	CHECK(info->domain_attr->domain == second, "another domain");
	fi_freeinfo(info);
	hints->domain_attr->domain = NULL;
	hints->fabric_attr->fabric = bed.fabric;
	OK(get_info(api_version(), hints, &info));
	CHECK(info->fabric_attr->fabric == bed.fabric, "another fabric");
	fi_freeinfo(info);
	fi_freeinfo(hints);
	OK(fi_close(&second->fid));
	close_bed(&bed);
}

static void attributes_make_sense(void)
{
	struct fi_domain_attr *d;
	struct bed bed;

	open_info(&bed, &usual);
	d = bed.info->domain_attr;
	CHECK(d->name && *d->name, "no name");
	CHECK(d->threading != FI_THREAD_UNSPEC, "threading is unspecified");
	CHECK(d->data_progress != FI_PROGRESS_UNSPEC, "progress is unspecified");
	CHECK(d->resource_mgmt != FI_RM_UNSPEC, "resource management is unspecified");
	CHECK(d->max_ep_tx_ctx >= 1 && d->max_ep_rx_ctx >= 1, "%zu transmit, %zu receive contexts", d->max_ep_tx_ctx, d->max_ep_rx_ctx);
	CHECK(d->cq_cnt && d->ep_cnt && d->tx_ctx_cnt && d->rx_ctx_cnt, "a count is 0");
	CHECK(d->cq_data_size <= 8 && d->mr_key_size <= 8, "%zu bytes of data, %zu of key", d->cq_data_size, d->mr_key_size);
#if HEADERS_2
	CHECK(!d->cntr_cnt || d->max_cntr_value, "counters that count to 0");
#endif
	close_bed(&bed);
}

/* ---- threading ---- */

static void threading(enum fi_threading level)
{
	struct setup s = { .threading = level };
	struct bed bed;

	open_bed(&bed, &s);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void thread_safe(void) { threading(FI_THREAD_SAFE); }
static void thread_completion(void) { threading(FI_THREAD_COMPLETION); }
static void thread_domain(void) { threading(FI_THREAD_DOMAIN); }
static void thread_fid(void) { threading(FI_THREAD_FID); }
static void thread_endpoint(void) { threading(FI_THREAD_ENDPOINT); }

enum { PER_THREAD = 500, THREADS = 3 };

struct worker {
	struct bed *bed;
	int number;
	long bad;
};

/* Sends with the thread's own tag through the endpoint all threads share; returns at the first error. */
static void *send_many(void *arg)
{
	struct worker *w = arg;
	uint64_t values[PER_THREAD];
	int i;

	for (i = 0; i < PER_THREAD; i++) {
		long until = now_ms() + GIVE_UP_MS;
		ssize_t ret;

		values[i] = (uint64_t) (w->number * PER_THREAD + i);
		while ((ret = fi_tinject(w->bed->side[0].ep, &values[i], 8, w->bed->side[1].addr, (uint64_t) w->number)) == -FI_EAGAIN &&
		       now_ms() < until)
			progress(w->bed);
		if (ret) {
			w->bad = ret;
			break;
		}
	}
	return NULL;
}

static void threads_share_an_endpoint(void)
{
	struct setup s = { .threading = FI_THREAD_SAFE };
	static uint64_t values[THREADS * PER_THREAD];
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct bed bed;
	int i, t;

	open_bed(&bed, &s);
	for (t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){ .bed = &bed, .number = t };
		CHECK(pthread_create(&threads[t], NULL, send_many, &workers[t]) == 0, "pthread_create");
	}
	for (i = 0; i < PER_THREAD; i++)
		for (t = 0; t < THREADS; t++) { /* each thread's messages in its order */
			uint64_t *value = &values[t * PER_THREAD + i];

			POST(&bed, fi_trecv(bed.side[1].ep, value, 8, NULL, FI_ADDR_UNSPEC, (uint64_t) t, 0, ctx(t)));
			COMPLETION(&bed, bed.side[1].rx, ctx(t));
			CHECK(*value == (uint64_t) (t * PER_THREAD + i), "thread %d: %llu in place %d", t,
			      (unsigned long long) *value, i);
		}
	for (t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		CHECK(!workers[t].bad, "thread %d: %s", t, fi_strerror((int) -workers[t].bad));
	}
	close_bed(&bed);
}

/* A domain for each thread: nothing is shared, and no lock is needed. */
static void *own_bed(void *arg)
{
	struct worker *w = arg;
	int i;

	for (i = 0; i < 50; i++)
		ping(w->bed, i & 1, !(i & 1));
	return NULL;
}

static void threads_with_domains_of_their_own(void)
{
	struct setup s = { .threading = FI_THREAD_DOMAIN };
	struct worker workers[2];
	struct bed beds[2];
	pthread_t thread;

	open_bed(&beds[0], &s);
	open_bed(&beds[1], &s);
	workers[0].bed = &beds[0];
	workers[1].bed = &beds[1];
	CHECK(pthread_create(&thread, NULL, own_bed, &workers[1]) == 0, "pthread_create");
	pthread_join(thread, NULL); /* the contexts are shared, so one after the other */
	own_bed(&workers[0]);
	close_bed(&beds[0]);
	close_bed(&beds[1]);
}

/* ---- progress and resource management ---- */

static void modes(enum fi_progress progress_mode, enum fi_resource_mgmt management)
{
	struct setup s = { .progress = progress_mode, .resource_mgmt = management };
	struct bed bed;

	open_bed(&bed, &s);
	CHECK(!progress_mode || bed.info->domain_attr->data_progress == progress_mode, "progress %d, not %d",
	      bed.info->domain_attr->data_progress, progress_mode);
	CHECK(management != FI_RM_ENABLED || bed.info->domain_attr->resource_mgmt == FI_RM_ENABLED, "no resource management");
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void progress_manual(void) { modes(FI_PROGRESS_MANUAL, FI_RM_UNSPEC); }
static void progress_auto(void) { modes(FI_PROGRESS_AUTO, FI_RM_UNSPEC); }
#if HEADERS_2
static void progress_control_unified(void) { modes(FI_PROGRESS_CONTROL_UNIFIED, FI_RM_UNSPEC); }
#endif
static void rm_enabled(void) { modes(FI_PROGRESS_UNSPEC, FI_RM_ENABLED); }
static void rm_disabled(void) { modes(FI_PROGRESS_UNSPEC, FI_RM_DISABLED); }

/* With resource management a full queue says -FI_EAGAIN, and the call can be repeated. */
static void receives_until_full(void)
{
	struct setup s = { .resource_mgmt = FI_RM_ENABLED };
	static char buf[8];
	struct bed bed;
	ssize_t ret = 0;
	int i;

	open_bed(&bed, &s);
	for (i = 0; i < 20000 && !ret; i++)
		ret = fi_trecv(bed.side[0].ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, ctx(i % 4000));
	CHECK(ret == 0 || ret == -FI_EAGAIN, "receive %d: %s", i, fi_strerror((int) -ret));
	CHECK(i > (int) bed.info->rx_attr->size || !ret, "only %d receives of %zu", i, bed.info->rx_attr->size);
	close_bed(&bed);
}

/* ---- operations ---- */

static void unknown_ops_to_open(void)
{
	struct bed bed;
	void *ops;

	open_domain(&bed, &usual);
	FAILS(fi_open_ops(&bed.domain->fid, "no such operations", 0, &ops, NULL));
	FAILS(fi_open_ops(&bed.fabric->fid, "no such operations", 0, &ops, NULL));
	close_bed(&bed);
}

static void unknown_ops_to_set(void)
{
	struct bed bed;
	char ops[64] = { 0 };

	open_domain(&bed, &usual);
	GIVES(-FI_ENOSYS, fi_set_ops(&bed.domain->fid, "no such operations", 0, ops, NULL));
	close_bed(&bed);
}

static void bind_an_event_queue(void)
{
	struct fi_eq_attr attr = { 0 };
	struct fid_eq *eq;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	ret = fi_domain_bind(bed.domain, &eq->fid, 0);
	NEED(!lacking(ret), "fi_domain_bind: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_domain_bind: %s", fi_strerror(-ret));
	GIVES(-FI_EBUSY, fi_close(&eq->fid));
	OK(fi_close(&bed.domain->fid));
	bed.domain = NULL;
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

static void bind_with_unknown_flags(void)
{
	struct fi_eq_attr attr = { 0 };
	struct fid_eq *eq;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	FAILS(fi_domain_bind(bed.domain, &eq->fid, FI_MULTI_RECV));
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

/* FI_REG_MR: memory is registered asynchronously, and the queue is told. */
static void regions_are_told(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	static char memory[4096];
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	struct fid_mr *mr;
	struct bed bed;
	uint32_t event;
	int ret;

	open_domain_for_regions(&bed);
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	ret = fi_domain_bind(bed.domain, &eq->fid, 1ULL << 59); /* FI_REG_MR, which warns that it is deprecated */
	NEED(ret == 0, "FI_REG_MR: %s", fi_strerror(-ret));
	OK(fi_mr_reg(bed.domain, memory, sizeof(memory), FI_REMOTE_READ, 0, 1, 0, &mr, ctx(5)));
	GIVES(sizeof(entry), fi_eq_sread(eq, &event, &entry, sizeof(entry), GIVE_UP_MS, 0));
	CHECK(event == FI_MR_COMPLETE && entry.fid == &mr->fid && entry.context == ctx(5), "event %u", event);
	OK(fi_close(&mr->fid));
	OK(fi_close(&bed.domain->fid));
	bed.domain = NULL;
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(opens), TEST(many_at_once), TEST(held_by_an_av), TEST(held_by_a_queue), TEST(held_by_a_counter),
	TEST(held_by_an_endpoint), TEST(held_by_a_region), TEST(reported_while_open),
	TEST(fabric_reported_while_open), TEST(restricted_to_an_instance), TEST(attributes_make_sense),
	TEST(thread_safe), TEST(thread_completion), TEST(thread_domain), TEST(thread_fid), TEST(thread_endpoint),
	TEST(threads_share_an_endpoint), TEST(threads_with_domains_of_their_own), TEST(progress_manual), TEST(progress_auto),
#if HEADERS_2
	TEST(progress_control_unified),
#endif
	TEST(rm_enabled), TEST(rm_disabled), TEST(receives_until_full), TEST(unknown_ops_to_open), TEST(unknown_ops_to_set),
	TEST(bind_an_event_queue), TEST(bind_with_unknown_flags), TEST(regions_are_told),
};

CASES(tests)

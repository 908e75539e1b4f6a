/* Values that the application sets, and attributes. */
#include <pthread.h>
#include "cntr.h"

static void starts_at_zero(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	CHECK(cntr->fid.fclass == FI_CLASS_CNTR, "class %zu", cntr->fid.fclass);
	CHECK(fi_cntr_read(cntr) == 0 && fi_cntr_readerr(cntr) == 0, "not 0");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void keeps_the_context(void)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_cntr_open(bed.domain, &attr, &cntr, ctx(5)));
	CHECK(cntr->fid.context == ctx(5), "the fid has another context");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void add_and_set(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	OK(fi_cntr_add(cntr, 5));
	BECOMES(cntr, 5);
	OK(fi_cntr_add(cntr, 7));
	BECOMES(cntr, 12);
	OK(fi_cntr_set(cntr, 3));
	BECOMES(cntr, 3);
	OK(fi_cntr_add(cntr, 0));
	BECOMES(cntr, 3);
	OK(fi_cntr_set(cntr, 1ULL << 40)); /* wider than 32 bits */
	OK(fi_cntr_add(cntr, 1));
	BECOMES(cntr, (1ULL << 40) + 1);
	OK(fi_cntr_set(cntr, 0));
	BECOMES(cntr, 0);
	CHECK(fi_cntr_readerr(cntr) == 0, "the error value moved too");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void adderr_and_seterr(void)
{
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	OK(fi_cntr_set(cntr, 9));
	OK(fi_cntr_adderr(cntr, 2));
	ERRORS_BECOME(cntr, 2);
	OK(fi_cntr_adderr(cntr, 3));
	ERRORS_BECOME(cntr, 5);
	OK(fi_cntr_seterr(cntr, 1));
	ERRORS_BECOME(cntr, 1);
	BECOMES(cntr, 9);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void flags_are_reserved(void)
{
	struct fi_cntr_attr attr = { .flags = 1 };
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(try_open(&bed, &attr, &cntr));
	close_bed(&bed);
}

static void unknown_events_and_objects(void)
{
	struct fi_cntr_attr events = { .events = 77 }, object = { .wait_obj = 77 };
	struct fid_cntr *cntr;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(try_open(&bed, &events, &cntr));
	FAILS(try_open(&bed, &object, &cntr));
	close_bed(&bed);
}

static void ops_flags(void)
{
	struct fid_cntr *cntr;
	struct bed bed;
	uint64_t flags = ~0ULL, before;
	int ret;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	ret = fi_control(&cntr->fid, FI_GETOPSFLAG, &flags);
	NEED(!lacking(ret), "FI_GETOPSFLAG: %s", fi_strerror(-ret));
	CHECK(ret == 0, "FI_GETOPSFLAG: %d", ret);
	CHECK(flags != ~0ULL, "FI_GETOPSFLAG wrote nothing");
	before = flags;
	OK(fi_control(&cntr->fid, FI_SETOPSFLAG, &flags));
	flags = ~0ULL;
	OK(fi_control(&cntr->fid, FI_GETOPSFLAG, &flags));
	CHECK(flags == before, "0x%llx, not 0x%llx", (unsigned long long) flags, (unsigned long long) before);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void *add_often(void *arg)
{
	int i;

	for (i = 0; i < 10000; i++)
		fi_cntr_add(arg, 1);
	return NULL;
}

static void many_threads_add(void)
{
	struct setup s = { .threading = FI_THREAD_SAFE };
	struct fid_cntr *cntr;
	pthread_t threads[4];
	struct bed bed;
	int i;

	open_domain(&bed, &s);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	for (i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, add_often, cntr) == 0, "pthread_create");
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	BECOMES(cntr, 40000);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(starts_at_zero), TEST(keeps_the_context), TEST(add_and_set), TEST(adderr_and_seterr),
	TEST(flags_are_reserved), TEST(unknown_events_and_objects), TEST(many_threads_add), TEST(ops_flags),
};

CASES(tests)

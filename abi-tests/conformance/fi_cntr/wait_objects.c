/* Wait objects: descriptors, pairs of mutex and condition, wait sets. */
#include <poll.h>
#include "cntr.h"

static void getwait_fd(void)
{
	struct fid_cntr *cntr;
	struct fid *fids[1];
	struct pollfd p = { .events = POLLIN };
	struct bed bed;
	long until = now_ms() + GIVE_UP_MS;
	int ret;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_FD);
	fids[0] = &cntr->fid;
	ret = fi_control(&cntr->fid, FI_GETWAIT, &p.fd);
	NEED(!lacking(ret), "FI_GETWAIT: %s", fi_strerror(-ret));
	CHECK(ret == 0 && p.fd >= 0, "FI_GETWAIT: %d, descriptor %d", ret, p.fd);
	ret = fi_trywait(bed.fabric, fids, 1);
	NEED(!lacking(ret), "fi_trywait: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_trywait: %s", fi_strerror(-ret));
	CHECK(poll(&p, 1, 0) == 0, "ready, but nothing has happened");
	OK(fi_cntr_add(cntr, 1));
	ret = 0;
	while (!ret && now_ms() < until)
		ret = fi_trywait(bed.fabric, fids, 1) == -FI_EAGAIN || poll(&p, 1, 10) == 1;
	CHECK(ret, "the counter changed, but the descriptor is not ready");
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void getwait_mutex_cond(void)
{
	struct fi_mutex_cond pair = { 0 };
	struct fid_cntr *cntr;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_MUTEX_COND);
	ret = fi_control(&cntr->fid, FI_GETWAIT, &pair);
	NEED(!lacking(ret), "FI_GETWAIT: %s", fi_strerror(-ret));
	CHECK(ret == 0 && pair.mutex && pair.cond, "FI_GETWAIT: %d", ret);
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static void wait_set(void)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_SET };
	struct fid_cntr *cntr;
	struct bed bed;
	int ret;

	open_domain(&bed, &usual);
	ret = fi_wait_open(bed.fabric, &wait_attr, &attr.wait_set);
	NEED(!lacking(ret), "fi_wait_open: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_wait_open: %d", ret);
	ret = try_open(&bed, &attr, &cntr);
	NEED(!lacking(ret), "FI_WAIT_SET: %s", fi_strerror(-ret));
	CHECK(ret == 0, "FI_WAIT_SET: %d", ret);
	FAILS(fi_cntr_wait(cntr, 1, 0)); /* invalid with a wait set */
	OK(fi_cntr_add(cntr, 1));
	OK(fi_wait(attr.wait_set, GIVE_UP_MS)); /* which the change signals */
	OK(fi_close(&cntr->fid));
	OK(fi_close(&attr.wait_set->fid));
	close_bed(&bed);
}

static void getwait_without_an_object(void)
{
	struct fid_cntr *cntr;
	struct bed bed;
	void *object;

	open_domain(&bed, &usual);
	cntr = open_cntr(&bed, FI_WAIT_NONE);
	FAILS(fi_control(&cntr->fid, FI_GETWAIT, &object));
	OK(fi_close(&cntr->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(getwait_fd), TEST(getwait_mutex_cond), TEST(wait_set), TEST(getwait_without_an_object),
};

CASES(tests)

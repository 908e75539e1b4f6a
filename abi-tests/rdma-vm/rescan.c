/*
 * A device that comes while a program runs, and its port that goes down and up: fi_getinfo tells what it has seen, until it is
 * asked to look again. That a device goes cannot be tried: Soft-RoCE waits for all programs that have it open.
 */
#include <stdlib.h>
#include "fabric.h"

static bool offered(const char *domain, uint64_t flags)
{
	struct setup s = { .ep_type = FI_EP_DGRAM, .caps = FI_MSG };
	struct fi_info *hints = hints_for(&s), *found, *info;
	bool there = false;
	int ret;

	hints->mode |= FI_MSG_PREFIX;
	hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	ret = fi_getinfo(api_version(), NULL, NULL, flags, hints, &found);
	CHECK(ret == 0 || ret == -FI_ENODATA, "fi_getinfo: %d", ret);
	for (info = ret ? NULL : found; info; info = info->next)
		there |= !strcmp(info->domain_attr->name, domain);
	fi_freeinfo(ret ? NULL : found);
	fi_freeinfo(hints);
	return there;
}

static void devices_come_and_ports_go(void)
{
	CHECK(!offered("late-dgram", 0), "there already");
	CHECK(system("rdma link add late type rxe netdev ea") == 0, "no new device");
	CHECK(!offered("late-dgram", 0), "looked again without being asked to");
	CHECK(offered("late-dgram", FI_RESCAN), "not found");
	CHECK(offered("late-dgram", 0), "forgotten");
	CHECK(system("ip link set ea down") == 0, "the link does not go down");
	CHECK(!offered("late-dgram", FI_RESCAN), "its port is down");
	CHECK(system("ip link set ea up") == 0, "the link does not come up");
	CHECK(offered("late-dgram", FI_RESCAN), "its port is up");
}

static const struct test tests[] = { TEST(devices_come_and_ports_go) };

CASES(tests)

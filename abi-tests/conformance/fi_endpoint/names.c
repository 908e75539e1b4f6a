/* Names: asked for, set, and taken from an fi_info. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "endpoint.h"

static void name_needs_room(void)
{
	struct bed bed;
	char name[NAME_MAX_LEN];
	size_t len = 4;

	open_bed(&bed, &usual);
	memset(name, '#', sizeof(name));
	GIVES(-FI_ETOOSMALL, fi_getname(&bed.side[0].ep->fid, name, &len));
	CHECK(len == bed.side[0].name_len, "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	CHECK(name[4] == '#', "wrote beyond the buffer");
	len = 0;
	GIVES(-FI_ETOOSMALL, fi_getname(&bed.side[0].ep->fid, NULL, &len));
	CHECK(len == bed.side[0].name_len, "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	close_bed(&bed);
}

static void names_differ(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	CHECK(bed.side[0].name_len != bed.side[1].name_len || memcmp(bed.side[0].name, bed.side[1].name, bed.side[0].name_len),
	      "two endpoints have one name");
	close_bed(&bed);
}

static void setname(void)
{
	char name[NAME_MAX_LEN] = "";
	struct bed bed;
	size_t len;
	int ret;

	open_sides(&bed, &usual);
	BY_NAME(&bed);
	if (is_ip(&bed)) {
		struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(free_port()) };

		sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		memcpy(name, &sin, len = sizeof(sin));
	} else {
		string_name(&bed, name, "conformance", (unsigned) getpid(), free_port());
		len = strlen(name) + 1;
	}
	ret = fi_setname(&bed.side[0].ep->fid, name, len);
	NEED(!lacking(ret), "fi_setname: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_setname: %s", fi_strerror(-ret));
	enable_sides(&bed, &usual);
	CHECK(bed.side[0].name_len >= 8 && !memcmp(bed.side[0].name, name, is_ip(&bed) ? 8 : len), "another name: %.40s",
	      bed.side[0].name);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

/* fi_info's source address is the endpoint's. */
static void name_from_the_info(void)
{
	char node[NAME_MAX_LEN], service[16];
	struct fi_info *hints = hints_for(&usual), *info, *first;
	struct fid_ep *ep;
	struct bed bed;
	struct side side = { 0 };

	open_av(&bed, &usual);
	BY_NAME(&bed);
	if (is_ip(&bed)) {
		snprintf(node, sizeof(node), "127.0.0.1");
		snprintf(service, sizeof(service), "%u", free_port());
		OK(fi_getinfo(api_version(), node, service, FI_SOURCE, hints, &info));
	} else {
		string_name(&bed, node, "conformance", (unsigned) getpid(), free_port());
		OK(fi_getinfo(api_version(), node, NULL, FI_SOURCE, hints, &info));
	}
	CHECK(info->src_addr && info->src_addrlen, "no source address");
	first = bed.info;
	bed.info = info;
	ep = bare_ep(&bed);
	OK(fi_ep_bind(ep, &bed.av->fid, 0));
	bed.side[0].tx = a_cq(&bed);
	OK(fi_ep_bind(ep, &bed.side[0].tx->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	side.ep = ep;
	learn_name(&side);
	CHECK(!memcmp(side.name, info->src_addr, is_ip(&bed) ? 8 : strlen(node)), "another name: %.40s", side.name);
	OK(fi_close(&ep->fid));
	fi_freeinfo(first);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(name_needs_room), TEST(names_differ), TEST(setname), TEST(name_from_the_info),
};

CASES(tests)

/* fi_getinfo(3): which addresses are answered for node, service and FI_SOURCE. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "fabric.h"

static const struct setup usual;

static void source_needs_a_name(void)
{
	struct fi_info *hints = hints_for(&usual), *info = NULL;

	FAILS(fi_getinfo(api_version(), NULL, NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
}

static void source_address_is_returned(void)
{
	struct bed bed;

	open_info(&bed, &usual);
	CHECK(bed.info->src_addr && bed.info->src_addrlen, "no source address");
	CHECK(bed.info->addr_format != FI_FORMAT_UNSPEC, "no address format");
	close_bed(&bed);
}

static void destination_by_name(void)
{
	struct fi_info *hints = hints_for(&usual), *info;
	struct bed bed;

	open_info(&bed, &usual);
	BY_NAME(&bed);
	if (is_ip(&bed)) {
		struct sockaddr_in *sin;

		OK(fi_getinfo(api_version(), "127.0.0.1", "4711", 0, hints, &info));
		sin = info->dest_addr;
		CHECK(sin && info->dest_addrlen >= sizeof(*sin), "no destination");
		CHECK(ntohs(sin->sin_port) == 4711 && sin->sin_addr.s_addr == htonl(INADDR_LOOPBACK), "%s:%d",
		      inet_ntoa(sin->sin_addr), ntohs(sin->sin_port));
	} else {
		char node[NAME_MAX_LEN];

		string_name(&bed, node, "somebody", 1, 4711);
		OK(fi_getinfo(api_version(), node, NULL, 0, hints, &info));
		CHECK(info->dest_addr && !strcmp(info->dest_addr, node), "destination %s",
		      info->dest_addr ? (char *) info->dest_addr : "none");
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	close_bed(&bed);
}

static void source_by_name(void)
{
	struct fi_info *hints = hints_for(&usual), *info;
	struct bed bed;

	open_info(&bed, &usual);
	BY_NAME(&bed);
	if (is_ip(&bed)) {
		struct sockaddr_in *sin;

		OK(fi_getinfo(api_version(), "127.0.0.1", "4711", FI_SOURCE, hints, &info));
		sin = info->src_addr;
		CHECK(sin && ntohs(sin->sin_port) == 4711, "no source of that port");
	} else {
		char node[NAME_MAX_LEN];

		string_name(&bed, node, "myself", 1, 4711);
		OK(fi_getinfo(api_version(), node, NULL, FI_SOURCE, hints, &info));
		CHECK(info->src_addr && strstr(info->src_addr, strstr(node, "://")), "source %s",
		      info->src_addr ? (char *) info->src_addr : "none");
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	close_bed(&bed);
}

/* A string address as the node of a provider that speaks IP; it takes no service. */
static void string_address(void)
{
	struct fi_info *hints = hints_for(&usual), *info = NULL;
	char node[NAME_MAX_LEN] = "fi_sockaddr_in://127.0.0.1:4711";
	struct bed bed;
	int ret;

	open_info(&bed, &usual);
	BY_NAME(&bed);
	if (!is_ip(&bed))
		string_name(&bed, node, "somebody", 1, 4711);
	ret = fi_getinfo(api_version(), node, NULL, FI_SOURCE, hints, &info);
	NEED(ret == 0, "an address string: %s", fi_strerror(-ret));
	CHECK(info->src_addr, "no source");
	CHECK(is_ip(&bed) || !strcmp(info->src_addr, node), "another source: %.40s", (char *) info->src_addr);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	close_bed(&bed);
}

static void numeric_hosts(void)
{
	struct fi_info *hints = hints_for(&usual), *info = NULL;
	struct bed bed;

	open_info(&bed, &usual);
	if (!is_ip(&bed))
		WITHOUT_MEANING("this provider's addresses are no numbers");
	OK(fi_getinfo(api_version(), "127.0.0.1", "4711", FI_NUMERICHOST, hints, &info));
	fi_freeinfo(info);
	info = NULL;
	FAILS(fi_getinfo(api_version(), "localhost", "4711", FI_NUMERICHOST, hints, &info));
	fi_freeinfo(hints);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(source_needs_a_name), TEST(source_address_is_returned), TEST(destination_by_name), TEST(source_by_name),
	TEST(string_address), TEST(numeric_hosts),
};

CASES(tests)

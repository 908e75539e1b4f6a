/*
 * fi_tostr(3): the text of an address in every format: of each family, of zeros, of ones and of nothing, and IPv6 in all
 * that can be shortened of it. Prints the same on every libfabric.so.1.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "tostr.h"

static const struct { const char *name; uint32_t format; } formats[] = {
	{ "FI_FORMAT_UNSPEC", FI_FORMAT_UNSPEC }, { "FI_SOCKADDR", FI_SOCKADDR },
	{ "FI_SOCKADDR_IN", FI_SOCKADDR_IN }, { "FI_SOCKADDR_IN6", FI_SOCKADDR_IN6 },
	{ "FI_SOCKADDR_IB", FI_SOCKADDR_IB }, { "FI_ADDR_PSMX", FI_ADDR_PSMX },
	{ "FI_ADDR_GNI", FI_ADDR_GNI }, { "FI_ADDR_BGQ", FI_ADDR_BGQ }, { "FI_ADDR_MLX", FI_ADDR_MLX },
	{ "FI_ADDR_STR", FI_ADDR_STR }, { "FI_ADDR_PSMX2", FI_ADDR_PSMX2 }, { "FI_ADDR_IB_UD", FI_ADDR_IB_UD },
	{ "FI_ADDR_EFA", FI_ADDR_EFA }, { "FI_ADDR_PSMX3", FI_ADDR_PSMX3 }, { "FI_ADDR_OPX", FI_ADDR_OPX },
	{ "FI_ADDR_CXI", FI_ADDR_CXI }, { "FI_ADDR_UCX", FI_ADDR_UCX }, { "FI_SOCKADDR_IP", FI_SOCKADDR_IP },
	{ "one beyond", FI_SOCKADDR_IP + 1 }, { "far beyond", UINT32_MAX },
};

/* Only the line with the address. */
static void show_address(const char *label, struct fi_info *info)
{
	char *at = strstr(fi_tostr(info, FI_TYPE_INFO), "src_addr: ");
	char *end = at ? strchr(at, '\n') : NULL;

	if (end)
		*end = 0;
	show(label, at, info->src_addr);
}

/* Where the addresses are: large enough for the longest. */
static uint64_t room[16];

static void every_format(struct fi_info *info)
{
	static const uint16_t families[] = { 0, AF_UNIX, AF_INET, AF_INET6, 27 };
	uint8_t *bytes = (uint8_t *)room;
	char label[128];
	size_t f, a, i;

	for (f = 0; f < sizeof formats / sizeof formats[0]; f++) {
		info->addr_format = formats[f].format;
		for (a = 0; a < sizeof families / sizeof families[0]; a++) {
			for (i = 0; i < sizeof room; i++)
				bytes[i] = (uint8_t)(i + 33);
			bytes[60] = 0;
			if (families[a])
				memcpy(bytes, &families[a], sizeof families[a]);
			snprintf(label, sizeof label, "%s family %u", formats[f].name, families[a]);
			show_address(label, info);
		}
		memset(room, 0, sizeof room);
		snprintf(label, sizeof label, "%s of zeros", formats[f].name);
		show_address(label, info);
		memset(room, 0xff, sizeof room);
		bytes[100] = 0;
		snprintf(label, sizeof label, "%s of ones", formats[f].name);
		show_address(label, info);
		info->src_addr = NULL;
		snprintf(label, sizeof label, "%s of nothing", formats[f].name);
		show_address(label, info);
		info->src_addr = room;
	}
}

static void as_people_write_them(struct fi_info *info)
{
	static const char *const ips[] = {
		"::", "::1", "::2:0", "::1.2.3.4", "::ffff:1.2.3.4", "::fffe:1.2.3.4", "fe80::1", "1::", "1:0:2:3:4:5:6:7",
		"1:0:0:2:0:0:0:3", "1:0:0:2:3:0:0:4", "0:0:1::", "2001:db8::ff00:42:8329", "::1:0:0:0", "64:ff9b::1.2.3.4",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0:0:0:0:1::",
	};
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)room;
	struct sockaddr_in *sin = (struct sockaddr_in *)room;
	size_t i;

	memset(room, 0, sizeof room);
	info->addr_format = FI_SOCKADDR_IN6;
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(65535);
	for (i = 0; i < sizeof ips / sizeof ips[0]; i++) {
		inet_pton(AF_INET6, ips[i], &sin6->sin6_addr);
		show_address(ips[i], info);
	}
	memset(room, 0, sizeof room);
	info->addr_format = FI_SOCKADDR_IN;
	sin->sin_family = AF_INET;
	sin->sin_port = htons(7471);
	inet_pton(AF_INET, "192.0.2.200", &sin->sin_addr);
	show_address("IPv4", info);
	info->addr_format = FI_ADDR_STR;
	strcpy((char *)room, "fi_shm://4711");
	show_address("string", info);
}

int main(void)
{
	struct fi_info *info = fi_allocinfo();

	info->src_addr = room;
	info->src_addrlen = sizeof room;
	every_format(info);
	as_people_write_them(info);
	info->src_addr = NULL;
	fi_freeinfo(info);
	return 0;
}

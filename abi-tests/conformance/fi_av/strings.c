/* FI_ADDR_STR: addresses that are strings, wherever an address stands. */
#include "av.h"

static const struct setup strings = { .addr_format = FI_ADDR_STR, .more_caps = FI_SOURCE };

/* A string of the format that ends within the bytes. */
static void is_string(const char *text, size_t len)
{
	CHECK(len > 1 && strnlen(text, len) == len - 1, "%zu bytes are no string with its end", len);
	CHECK(strstr(text, "://"), "%s", text);
}

static void strings_name_endpoints(void)
{
	struct bed bed;
	char found[NAME_MAX_LEN];
	size_t len;
	int i;

	open_bed(&bed, &strings);
	CHECK(bed.info->addr_format == FI_ADDR_STR, "fi_getinfo answers with format %u", bed.info->addr_format);
	is_string(bed.info->src_addr, bed.info->src_addrlen);
	for (i = 0; i < 2; i++) {
		is_string(bed.side[i].name, bed.side[i].name_len);
		len = sizeof(found);
		CHECK(fi_av_straddr(bed.av, bed.side[i].name, found, &len) == found, "no text");
		CHECK(!strcmp(found, bed.side[i].name), "%s is printed as %s", bed.side[i].name, found);
	}
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	CHECK(source_seen(&bed) == bed.side[0].addr, "the sender is not known by its string");
	close_bed(&bed);
}

/* ---- of socket addresses ---- */

/* An answer for a string as source; false where there is no such interface. */
static bool open_at(struct bed *bed, const char *text)
{
	struct fi_info *hints = hints_for(&strings);
	int ret;

	memset(bed, 0, sizeof(*bed));
	hints->src_addr = strdup(text);
	hints->src_addrlen = strlen(text) + 1;
	ret = fi_getinfo(api_version(), NULL, NULL, 0, hints, &bed->info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		return false;
	OK(ret);
	return true;
}

static void needs_strings_of_sockets(void)
{
	struct bed bed;

	if (!usual_node(provider))
		WITHOUT_MEANING("its strings are no socket addresses");
	open_info(&bed, &strings);
	close_bed(&bed);
}

static void strings_choose_the_address(void)
{
	static const char *form[] = { "fi_sockaddr_in://127.0.0.1:%u", "fi_sockaddr_in6://[::1]:%u" };
	char text[NAME_MAX_LEN], name[NAME_MAX_LEN], found[NAME_MAX_LEN];
	struct bed bed;
	struct fid_ep *ep;
	fi_addr_t addr;
	size_t len;
	int i;

	needs_strings_of_sockets();
	for (i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), form[i], free_port());
		if (!open_at(&bed, text)) {
			CHECK(i == 1, "nothing for %s", text);
			continue;
		}
		CHECK(!strcmp(bed.info->src_addr, text), "%s became %s", text, (char *) bed.info->src_addr);
		OK(fi_fabric(bed.info->fabric_attr, &bed.fabric, NULL));
		OK(fi_domain(bed.fabric, bed.info, &bed.domain, NULL));
		OK(fi_endpoint(bed.domain, bed.info, &ep, NULL));
		len = sizeof(name);
		OK(fi_getname(&ep->fid, name, &len));
		CHECK(len == strlen(text) + 1 && !strcmp(name, text), "%s is called %s", text, name);
		bed.av = open_kind(&bed, FI_AV_TABLE, 0);
		GIVES(1, fi_av_insert(bed.av, name, 1, &addr, 0, NULL));
		len = sizeof(found);
		OK(fi_av_lookup(bed.av, addr, found, &len));
		CHECK(len == strlen(text) + 1 && !strcmp(found, text), "%s is found as %s", text, found);
		OK(fi_close(&ep->fid));
		close_bed(&bed);
	}
}

static void strings_choose_the_peer(void)
{
	struct fi_info *hints = hints_for(&strings), *info;
	const char *text = "fi_sockaddr_in://127.0.0.1:7471";

	needs_strings_of_sockets();
	hints->dest_addr = strdup(text);
	hints->dest_addrlen = strlen(text) + 1;
	OK(fi_getinfo(api_version(), NULL, NULL, 0, hints, &info));
	CHECK(info->dest_addr && !strcmp(info->dest_addr, text), "%s", info->dest_addr ? (char *) info->dest_addr : "none");
	is_string(info->src_addr, info->src_addrlen);
	fi_freeinfo(info);
	free(hints->dest_addr);
	hints->dest_addr = NULL;
	hints->dest_addrlen = 0;
	OK(fi_getinfo(api_version(), text, NULL, 0, hints, &info));
	CHECK(info->dest_addr && !strcmp(info->dest_addr, text), "%s", info->dest_addr ? (char *) info->dest_addr : "none");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void strings_that_name_no_socket(void)
{
	static const char *wrong[] = { "127.0.0.1:7471", "fi_shm://127.0.0.1:7471", "fi_sockaddr_in://127.0.0.1:70000", "" };
	struct bed bed;
	fi_addr_t addr;
	unsigned i;

	needs_strings_of_sockets();
	open_bed(&bed, &strings);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(fi_av_insert(bed.av, wrong[i], 1, &addr, 0, NULL) != 1 && addr == FI_ADDR_NOTAVAIL, "takes '%s'", wrong[i]);
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(strings_name_endpoints), TEST(strings_choose_the_address), TEST(strings_choose_the_peer),
	TEST(strings_that_name_no_socket),
};

CASES(tests)

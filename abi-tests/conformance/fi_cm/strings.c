/* fi_cm(3), fi_passive_ep(3): addresses that are strings (FI_ADDR_STR), wherever connected endpoints have one. */
#include "connected.h"

static const struct setup strings = { .addr_format = FI_ADDR_STR };

static void open_strings(struct wired *w)
{
	struct setup s = connected(&strings);
	struct fi_info *hints = hints_for(&s), *info;
	int ret = get_info(api_version(), hints, &info);

	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		WITHOUT_MEANING("%s has no connected endpoints with strings as addresses", provider);
	OK(ret);
	fi_freeinfo(info);
	open_wires(w, &strings);
}

/* A string of the format that ends within the bytes. */
static void is_string(const char *text, size_t len)
{
	CHECK(len > 1 && strnlen(text, len) == len - 1, "%zu bytes are no string with its end", len);
	CHECK(strstr(text, "://"), "%s", text);
}

static void strings_name_both_sides(void)
{
	char name[NAME_MAX_LEN], own[NAME_MAX_LEN];
	size_t len, own_len;
	struct heard heard;
	struct wired w;
	int i;

	open_strings(&w);
	w.pep = new_pep(&w, w.bed.info, NULL);
	OK(fi_listen(w.pep));
	learn_pep(&w);
	is_string(w.name, w.name_len);
	ask(&w, 0, NULL, 0);
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	CHECK(heard.info->addr_format == FI_ADDR_STR, "format %u", heard.info->addr_format);
	is_string(heard.info->src_addr, heard.info->src_addrlen);
	is_string(heard.info->dest_addr, heard.info->dest_addrlen);
	CHECK(!strcmp(heard.info->src_addr, w.name), "asked at %s, not %s", (char *) heard.info->src_addr, w.name);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	for (i = 0; i < 2; i++)
		HEAR(&w, FI_CONNECTED, NULL);
	for (i = 0; i < 2; i++) {
		len = sizeof(name);
		own_len = sizeof(own);
		OK(fi_getpeer(w.bed.side[i].ep, name, &len));
		OK(fi_getname(&w.bed.side[1 - i].ep->fid, own, &own_len));
		is_string(name, len);
		CHECK(len == own_len && !strcmp(name, own), "side %d has %s as its peer, not %s", i, name, own);
	}
	talk(&w, 0, 1);
	talk(&w, 1, 0);
	close_wires(&w);
}

/* The name of a passive endpoint is good for the next one. */
static void strings_rename_a_passive_endpoint(void)
{
	struct wired w;
	char before[NAME_MAX_LEN];

	open_strings(&w);
	w.pep = new_pep(&w, w.bed.info, NULL);
	learn_pep(&w);
	memcpy(before, w.name, w.name_len);
	OK(fi_close(&w.pep->fid));
	w.pep = new_pep(&w, w.bed.info, NULL);
	OK(fi_setname(&w.pep->fid, before, w.name_len));
	learn_pep(&w);
	CHECK(!strcmp(w.name, before), "%s, not %s", w.name, before);
	OK(fi_listen(w.pep));
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(strings_name_both_sides),
	TEST(strings_rename_a_passive_endpoint),
};

CASES(tests)

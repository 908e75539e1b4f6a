/* fi_av_remove, fi_av_lookup, fi_av_straddr. */
#include "av.h"

/* ---- fi_av_remove ---- */

static void removed_address_is_invalid(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN], found[NAME_MAX_LEN];
	size_t len = sizeof(found);
	fi_addr_t addrs[3];

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 1, 3, names);
	GIVES(3, fi_av_insert(av, names, 3, addrs, 0, NULL));
	OK(fi_av_remove(av, &addrs[1], 1, 0));
	FAILS(fi_av_lookup(av, addrs[1], found, &len));
	is_name(av, &bed, addrs[0], 1);
	is_name(av, &bed, addrs[2], 3);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void removed_address_comes_back(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	ping(&bed, 0, 1);
	OK(fi_av_remove(bed.av, &bed.side[1].addr, 1, 0));
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void remove_of_an_unknown_address(void)
{
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addr = 12345;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	FAILS(fi_av_remove(av, &addr, 1, 0));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* ---- fi_av_lookup, fi_av_straddr ---- */

static void lookup_gives_the_address(void)
{
	struct bed bed;
	char found[NAME_MAX_LEN];
	size_t len;
	int i;

	open_bed(&bed, &usual);
	for (i = 0; i < 2; i++) {
		len = sizeof(found);
		OK(fi_av_lookup(bed.av, bed.side[i].addr, found, &len));
		CHECK(len == bed.side[i].name_len, "%zu bytes, but fi_getname gave %zu", len, bed.side[i].name_len);
		CHECK(!memcmp(found, bed.side[i].name, is_ip(&bed) ? 8 : strlen(bed.side[i].name) + 1), "another address");
	}
	close_bed(&bed);
}

static void lookup_truncates(void)
{
	struct bed bed;
	char found[NAME_MAX_LEN];
	size_t len = 3;

	open_bed(&bed, &usual);
	memset(found, '#', sizeof(found));
	OK(fi_av_lookup(bed.av, bed.side[0].addr, found, &len));
	CHECK(len == bed.side[0].name_len, "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	CHECK(found[3] == '#', "wrote beyond the buffer");
	CHECK(found[0] != '#' && !memcmp(found, bed.side[0].name, 2), "what fits is not there");
	close_bed(&bed);
}

static void lookup_learns_the_size(void)
{
	struct bed bed;
	size_t len = 0;
	char guard = '#';

	open_bed(&bed, &usual);
	OK(fi_av_lookup(bed.av, bed.side[0].addr, &guard, &len));
	CHECK(len == bed.side[0].name_len && guard == '#', "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	close_bed(&bed);
}

static void lookup_of_the_unknown(void)
{
	struct fid_av *av;
	struct bed bed;
	char found[NAME_MAX_LEN];
	size_t len = sizeof(found);

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	FAILS(fi_av_lookup(av, 0, found, &len));
	FAILS(fi_av_lookup(av, 1000000, found, &len));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void straddr_prints(void)
{
	struct fid_av *av;
	struct bed bed;
	char name[NAME_MAX_LEN], text[NAME_MAX_LEN], full[NAME_MAX_LEN];
	size_t len, text_len = sizeof(full), need;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up_name(&bed, 5, name, &len); /* never inserted: that is allowed */
	CHECK(fi_av_straddr(av, name, full, &text_len) == full, "does not return the buffer");
	need = text_len;
	CHECK(need == strlen(full) + 1, "needs %zu for a text of %zu: %s", need, strlen(full), full);
	if (is_ip(&bed))
		CHECK(strstr(full, "127.1.0.5") && strstr(full, "7"), "%s", full);
	else if (bed.info->addr_format == FI_ADDR_IB_UD)
		CHECK(!strncmp(full, "fi_addr_ib_ud://", 16) && strstr(full, ":800005/"), "%s", full);
	else
		CHECK(strstr(full, strstr(name, "://")), "%s", full);

	memset(text, '#', sizeof(text));
	text_len = 6;
	CHECK(fi_av_straddr(av, name, text, &text_len) == text, "does not return the buffer");
	CHECK(text_len == need, "needs %zu, but says %zu", need, text_len);
	CHECK(text[5] == 0 && text[6] == '#' && !strncmp(text, full, 5), "not truncated: %.16s", text);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(removed_address_is_invalid), TEST(removed_address_comes_back), TEST(remove_of_an_unknown_address),
	TEST(lookup_gives_the_address), TEST(lookup_truncates), TEST(lookup_learns_the_size),
	TEST(lookup_of_the_unknown), TEST(straddr_prints),
};

CASES(tests)

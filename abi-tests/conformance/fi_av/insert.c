/* fi_av_insert, fi_av_insertsvc, fi_av_insertsym. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "av.h"

/* ---- fi_av_insert ---- */

static void insert_returns_the_count(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[4 * NAME_MAX_LEN];
	fi_addr_t addrs[4];

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 1, 4, names);
	GIVES(4, fi_av_insert(av, names, 4, addrs, 0, NULL));
	OK(fi_close(&av->fid)); /* what was inserted need not be removed */
	close_bed(&bed);
}

static void insert_of_nothing(void)
{
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addr = 77;
	char name[NAME_MAX_LEN];
	size_t len;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up_name(&bed, 1, name, &len);
	GIVES(0, fi_av_insert(av, name, 0, &addr, 0, NULL));
	CHECK(addr == 77, "an address was written");
	/* as an empty list of a program has it */
	GIVES(0, fi_av_insert(av, NULL, 0, NULL, 0, NULL));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void table_counts_from_zero(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3];
	unsigned i, call;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	for (call = 0; call < 3; call++) { /* indices go on from call to call */
		made_up(&bed, 3 * call, 3, names);
		GIVES(3, fi_av_insert(av, names, 3, addrs, 0, NULL));
		for (i = 0; i < 3; i++)
			CHECK(addrs[i] == 3 * call + i, "insertion %u got index %llu", 3 * call + i, (unsigned long long) addrs[i]);
	}
	for (i = 0; i < 9; i++)
		is_name(av, &bed, i, i);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void table_reuses_the_lowest_index(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[6 * NAME_MAX_LEN];
	fi_addr_t addrs[6], gone[] = { 4, 1, 3 };
	unsigned i;
	static const fi_addr_t wanted[] = { 1, 3, 4, 6 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 0, 6, names);
	GIVES(6, fi_av_insert(av, names, 6, addrs, 0, NULL));
	OK(fi_av_remove(av, gone, 3, 0));
	made_up(&bed, 10, 4, names);
	GIVES(4, fi_av_insert(av, names, 4, addrs, 0, NULL));
	for (i = 0; i < 4; i++) {
		CHECK(addrs[i] == wanted[i], "place %llu, not %llu", (unsigned long long) addrs[i], (unsigned long long) wanted[i]);
		is_name(av, &bed, addrs[i], 10 + i);
	}
	is_name(av, &bed, 0, 0);
	is_name(av, &bed, 2, 2);
	is_name(av, &bed, 5, 5);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void table_takes_no_fi_addr(void)
{
	struct setup s = { .av_type = FI_AV_TABLE, .strangers = true };
	struct bed bed;

	open_bed(&bed, &s);
	GIVES(2, insert_sides(&bed, bed.av, 0, 2, NULL, 0, NULL));
	bed.side[0].addr = 0;
	bed.side[1].addr = 1;
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void map_addresses_are_usable(void)
{
	struct setup s = { .av_type = FI_AV_MAP };
	struct bed bed;

	open_bed(&bed, &s);
	CHECK(bed.side[0].addr != bed.side[1].addr, "two endpoints, one fi_addr_t");
	CHECK(bed.side[1].addr != FI_ADDR_NOTAVAIL, "inserted, but FI_ADDR_NOTAVAIL");
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void table_addresses_are_usable(void)
{
	struct setup s = { .av_type = FI_AV_TABLE };
	struct bed bed;

	open_bed(&bed, &s);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void insert_more(void)
{
	struct setup s = { .strangers = true };
	struct bed bed;

	open_bed(&bed, &s);
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &bed.side[0].addr, FI_MORE, NULL));
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	ping(&bed, 0, 1);
	close_bed(&bed);
}

/* An address may go in while endpoints of this AV are not enabled yet. */
static void insert_before_enable(void)
{
	struct bed bed;
	int i;

	open_sides(&bed, &usual);
	for (i = 0; i < 2; i++) {
		OK(fi_enable(bed.side[i].ep));
		learn_name(&bed.side[i]);
		GIVES(1, insert_sides(&bed, bed.av, i, 1, &bed.side[i].addr, 0, NULL));
	}
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void failed_insertion_is_counted_and_marked(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3] = { 70, 70, 70 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	with_a_bad_one(&bed, names);
	GIVES(2, fi_av_insert(av, names, 3, addrs, 0, NULL));
	CHECK(addrs[1] == FI_ADDR_NOTAVAIL, "the failed one's fi_addr is %llu", (unsigned long long) addrs[1]);
	is_name(av, &bed, addrs[0], 1);
	is_name(av, &bed, addrs[2], 3);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void sync_err_tells_each_result(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3];
	int errors[3] = { 99, 99, 99 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 10, 3, names);
	GIVES(3, fi_av_insert(av, names, 3, addrs, FI_SYNC_ERR, errors));
	CHECK(!errors[0] && !errors[1] && !errors[2], "successes are reported as %d, %d, %d", errors[0], errors[1], errors[2]);
	with_a_bad_one(&bed, names);
	memset(errors, 99, sizeof(errors));
	GIVES(2, fi_av_insert(av, names, 3, addrs, FI_SYNC_ERR, errors));
	CHECK(errors[0] == 0 && errors[1] > 0 && errors[2] == 0, "reported as %d, %d, %d", errors[0], errors[1], errors[2]);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void sync_err_without_fi_addr(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	int errors[3] = { 99, 99, 99 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	with_a_bad_one(&bed, names);
	GIVES(2, fi_av_insert(av, names, 3, NULL, FI_SYNC_ERR, errors));
	CHECK(errors[0] == 0 && errors[1] > 0 && errors[2] == 0, "reported as %d, %d, %d", errors[0], errors[1], errors[2]);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* ---- fi_av_insertsvc, fi_av_insertsym ---- */

static void insertsvc(void)
{
	struct setup s = { .strangers = true };
	struct bed bed;
	char service[16], node[INET_ADDRSTRLEN];
	int i, ret;

	open_bed(&bed, &s);
	BY_NAME(&bed);
	for (i = 0; i < 2; i++) {
		struct side *side = &bed.side[i];

		if (is_ip(&bed)) {
			struct sockaddr_in *name = (struct sockaddr_in *) side->name;

			snprintf(service, sizeof(service), "%u", ntohs(name->sin_port));
			ret = fi_av_insertsvc(bed.av, inet_ntop(AF_INET, &name->sin_addr, node, sizeof(node)), service,
					      &side->addr, 0, NULL);
		} else { /* a string is a node without a service */
			ret = fi_av_insertsvc(bed.av, side->name, NULL, &side->addr, 0, NULL);
		}
		NEED(!lacking(ret), "fi_av_insertsvc: %s", fi_strerror(-ret));
		CHECK(ret == 1, "fi_av_insertsvc: %d", ret);
	}
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

/* Where addresses are strings, the names are within them. */
static void insertsym_of_strings(struct bed *bed)
{
	static const char *wanted[] = { "host9:5000", "host9:5001", "host10:5000", "host10:5001" };
	struct fid_av *av = open_kind(bed, FI_AV_TABLE, 0);
	char found[NAME_MAX_LEN];
	fi_addr_t addrs[4];
	int i, ret;

	if (is_auto(bed))
		WITHOUT_MEANING("a host and a service are no whole address");
	ret = fi_av_insertsym(av, "host9", 2, "5000", 2, addrs, 0, NULL);
	NEED(!lacking(ret), "fi_av_insertsym: %s", fi_strerror(-ret));
	CHECK(ret == 4, "%d instead of nodecnt x svccnt", ret);
	for (i = 0; i < 4; i++) {
		size_t len = sizeof(found);

		OK(fi_av_lookup(av, addrs[i], found, &len));
		CHECK(len > strlen(wanted[i]) && !strcmp(found + len - 1 - strlen(wanted[i]), wanted[i]), "place %d is %s", i, found);
	}
	OK(fi_close(&av->fid));
	close_bed(bed);
}

static void insertsym_walks_services_then_nodes(void)
{
	static const struct { const char *node; int port; } wanted[] = {
		{ "10.1.1.1", 5000 }, { "10.1.1.1", 5001 }, { "10.1.1.2", 5000 }, { "10.1.1.2", 5001 },
	};
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addrs[4];
	int i, ret;

	open_domain(&bed, &usual);
	BY_NAME(&bed);
	if (!is_ip(&bed)) {
		insertsym_of_strings(&bed);
		return;
	}
	av = open_kind(&bed, FI_AV_TABLE, 0);
	ret = fi_av_insertsym(av, "10.1.1.1", 2, "5000", 2, addrs, 0, NULL);
	NEED(!lacking(ret), "fi_av_insertsym: %s", fi_strerror(-ret));
	CHECK(ret == 4, "%d instead of nodecnt x svccnt", ret);
	for (i = 0; i < 4; i++) {
		struct sockaddr_in sin;
		size_t len = sizeof(sin);

		OK(fi_av_lookup(av, addrs[i], &sin, &len));
		CHECK(ntohs(sin.sin_port) == wanted[i].port && !strcmp(inet_ntoa(sin.sin_addr), wanted[i].node),
		      "place %d is %s:%d", i, inet_ntoa(sin.sin_addr), ntohs(sin.sin_port));
	}
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(insert_returns_the_count), TEST(insert_of_nothing), TEST(table_counts_from_zero),
	TEST(table_reuses_the_lowest_index), TEST(table_takes_no_fi_addr), TEST(map_addresses_are_usable),
	TEST(table_addresses_are_usable), TEST(insert_more), TEST(insert_before_enable),
	TEST(failed_insertion_is_counted_and_marked), TEST(sync_err_tells_each_result),
	TEST(sync_err_without_fi_addr), TEST(insertsvc), TEST(insertsym_walks_services_then_nodes),
};

CASES(tests)

/* fi_control(3): commands on every kind of fid. What each command does is asked on the page of its object. */
#include <rdma/fi_ext.h>
#include "fabric.h"

static const struct setup usual;

enum { KINDS = 8 };

/* One fid of every kind. */
static int all_kinds(struct bed *bed, struct fid **fids, const char **names)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cntr_attr cntr_attr = { 0 };
	struct fid_eq *eq;
	struct fid_cntr *cntr;
	int n = 0;

	open_bed(bed, &usual);
	OK(fi_eq_open(bed->fabric, &eq_attr, &eq, NULL));
	OK(fi_cntr_open(bed->domain, &cntr_attr, &cntr, NULL));
	names[n] = "fabric", fids[n++] = &bed->fabric->fid;
	names[n] = "domain", fids[n++] = &bed->domain->fid;
	names[n] = "endpoint", fids[n++] = &bed->side[0].ep->fid;
	names[n] = "AV", fids[n++] = &bed->av->fid;
	names[n] = "CQ", fids[n++] = &bed->side[0].rx->fid;
	names[n] = "EQ", fids[n++] = &eq->fid;
	names[n] = "counter", fids[n++] = &cntr->fid;
	return n;
}

static void unknown_command(int which)
{
	struct fid *fids[KINDS];
	const char *names[KINDS];
	struct bed bed;
	char arg[256] = { 0 };

	CHECK(which < all_kinds(&bed, fids, names), "no such kind");
	FAILS(fi_control(fids[which], 123456, arg));
	ping(&bed, 0, 1);
	_exit((printf("ok %s\n", case_name), 0)); /* the extra objects go with the process */
}

static void unknown_command_fabric(void) { unknown_command(0); }
static void unknown_command_domain(void) { unknown_command(1); }
static void unknown_command_endpoint(void) { unknown_command(2); }
static void unknown_command_av(void) { unknown_command(3); }
static void unknown_command_cq(void) { unknown_command(4); }
static void unknown_command_eq(void) { unknown_command(5); }
static void unknown_command_counter(void) { unknown_command(6); }

static void unknown_values(void)
{
	struct bed bed;
	uint64_t value = 0;

	open_bed(&bed, &usual);
	FAILS(fi_get_val(&bed.side[0].ep->fid, 123456, &value));
	FAILS(fi_set_val(&bed.side[0].ep->fid, 123456, &value));
	FAILS(fi_get_val(&bed.domain->fid, 123456, &value));
	FAILS(fi_set_val(&bed.domain->fid, 123456, &value));
	close_bed(&bed);
}

/* fi_enable is a command too. */
static void enable_is_a_command(void)
{
	struct bed bed;
	int i;

	open_sides(&bed, &usual);
	for (i = 0; i < 2; i++) {
		OK(fi_control(&bed.side[i].ep->fid, FI_ENABLE, NULL));
		learn_name(&bed.side[i]);
	}
	for (i = 0; i < 2; i++)
		GIVES(1, insert_sides(&bed, bed.av, i, 1, &bed.side[i].addr, 0, NULL));
	ping(&bed, 0, 1);
	close_bed(&bed);
}

static void alias_by_fi_alias(void)
{
	struct fid *alias;
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	ret = fi_alias(&bed.side[0].ep->fid, &alias, FI_TRANSMIT);
	NEED(!lacking(ret), "fi_alias: %s", fi_strerror(-ret));
	CHECK(ret == 0 && alias && alias->fclass == FI_CLASS_EP, "fi_alias: %d", ret);
	OK(fi_close(alias));
	close_bed(&bed);
}

static void alias_of_what_has_none(void)
{
	struct fid *alias;
	struct bed bed;

	open_bed(&bed, &usual);
	FAILS(fi_alias(&bed.side[0].rx->fid, &alias, 0));
	close_bed(&bed);
}

static void getwait_of_an_endpoint(void)
{
	struct bed bed;
	int fd = -1;

	open_bed(&bed, &usual);
	FAILS(fi_control(&bed.side[0].ep->fid, FI_GETWAIT, &fd)); /* that is for socket endpoints */
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(unknown_command_fabric), TEST(unknown_command_domain), TEST(unknown_command_endpoint), TEST(unknown_command_av),
	TEST(unknown_command_cq), TEST(unknown_command_eq), TEST(unknown_command_counter), TEST(unknown_values),
	TEST(enable_is_a_command), TEST(alias_by_fi_alias), TEST(alias_of_what_has_none), TEST(getwait_of_an_endpoint),
};

CASES(tests)

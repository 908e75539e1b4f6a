/* The count is a hint: an AV holds many more, and finds them as fast. */
#include <time.h>
#include "av.h"

static void more_than_count(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = 4 };
	struct fid_av *av;
	struct bed bed;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	unsigned i;
	size_t len;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	for (i = 0; i < 200; i++) {
		made_up_name(&bed, i, name, &len);
		GIVES(1, fi_av_insert(av, name, 1, &addr, 0, NULL));
	}
	for (i = 0; i < 200; i++)
		is_name(av, &bed, i, i);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static long cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Work that grows with what is there makes the last of 20 parts ten times as long as the first two. */
static void grows_not(const long *took, const char *what)
{
	long first = took[0] > took[1] ? took[0] : took[1], last = took[15];
	int i;

	for (i = 16; i < 20; i++)
		if (took[i] < last)
			last = took[i];
	CHECK(last < 6 * first + 1000, "%s: %ld us at first, %ld at last", what, first, last);
}

/* The count is a hint and the AV no fixed table: many are inserted, found and removed. Ours in the same time each,
 * however many are there. */
static void very_many(void)
{
	const unsigned MANY = strict ? 1000000 : 5000, PARTS = 20;
	long took[20];
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = MANY };
	struct fid_av *av;
	struct bed bed;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	unsigned i;
	size_t len;

	/* The C library's shm has room for 256 and no check. */
	open_domain(&bed, &usual);
	if (!strict && bed.info->addr_format == FI_ADDR_STR)
		SKIP("this provider keeps 256 addresses");
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	for (i = 0; i < MANY; i++) {
		if (i % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us();
		made_up_name(&bed, i, name, &len);
		GIVES(1, fi_av_insert(av, name, 1, &addr, 0, NULL));
		CHECK(addr == i, "index %llu for the %uth", (unsigned long long) addr, i);
		if ((i + 1) % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us() - took[i / (MANY / PARTS)];
	}
	if (strict)
		grows_not(took, "insertion");
	for (i = 0; i < MANY; i++) {
		if (i % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us();
		is_name(av, &bed, i, i);
		if ((i + 1) % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us() - took[i / (MANY / PARTS)];
	}
	if (strict)
		grows_not(took, "lookup");
	for (i = 0; i < MANY; i += 2) {
		addr = i;
		OK(fi_av_remove(av, &addr, 1, 0));
	}
	is_name(av, &bed, MANY - 1, MANY - 1);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void remove_many(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[8 * NAME_MAX_LEN];
	fi_addr_t addrs[8];

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_MAP, 0);
	made_up(&bed, 1, 8, names);
	GIVES(8, fi_av_insert(av, names, 8, addrs, 0, NULL));
	OK(fi_av_remove(av, addrs, 8, 0));
	GIVES(8, fi_av_insert(av, names, 8, addrs, 0, NULL));
	is_name(av, &bed, addrs[7], 8);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(more_than_count), TEST(very_many), TEST(remove_many),
};

CASES(tests)

/*
 * FI_ADDR_STR addresses as fi_av_insert reads them: one after the other, each with its NUL, and nothing behind the last.
 * Each array here ends where a page ends that may not be touched, or, with HEAP in the environment, where its memory from
 * malloc ends, which valgrind sees.
 *   addresses PROVIDER
 */
#include "fabric.h"
#include "guarded.h"

enum { LONGEST = 256 };

static struct bed bed;
static struct fid_av *av;

static void *exactly(const void *bytes, size_t len)
{
	return memcpy(getenv("HEAP") ? malloc(len ? len : 1) : guarded(len), bytes, len);
}

static void open_empty(void)
{
	struct setup s = { 0 };
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	open_domain(&bed, &s);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
}

static void close_empty(void)
{
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void holds_name(fi_addr_t at, const char *name)
{
	char buf[LONGEST + 1] = { 0 };
	size_t len = LONGEST;

	OK(fi_av_lookup(av, at, buf, &len));
	CHECK(!strcmp(buf, name), "%s at %d, not %s", buf, (int) at, name);
}

static void one_after_the_other(void)
{
	static const char three[] = "fi_shm://a\0fi_shm://bcd\0fi_shm://e";
	fi_addr_t at[3] = { 7, 7, 7 };

	open_empty();
	GIVES(3, fi_av_insert(av, exactly(three, sizeof(three)), 3, at, 0, NULL));
	CHECK(at[0] == 0 && at[1] == 1 && at[2] == 2, "%d, %d, %d", (int) at[0], (int) at[1], (int) at[2]);
	holds_name(0, "fi_shm://a");
	holds_name(1, "fi_shm://bcd");
	holds_name(2, "fi_shm://e");
	GIVES(1, fi_av_insert(av, exactly("fi_shm://f", 11), 1, at, 0, NULL));
	GIVES(0, fi_av_insert(av, exactly("", 0), 0, at, 0, NULL));
	close_empty();
}

/* As long as an address may be, and its NUL forgotten: what comes behind it is not looked at. */
static void without_its_nul(void)
{
	char array[2 + LONGEST] = "a";
	int status[3] = { 7, 7, 7 };
	fi_addr_t at[3];

	memset(array + 2, 'x', LONGEST);
	open_empty();
	GIVES(0, fi_av_insert(av, exactly(array + 2, LONGEST), 1, at, FI_SYNC_ERR, status));
	CHECK(status[0] == FI_EINVAL && at[0] == FI_ADDR_NOTAVAIL, "status %d", status[0]);
	/* What comes before it is an address, what would come after it is none. Where that would begin, behind the NUL, is asked
	 * of the kernel, which knows what memory there is; valgrind takes the question for a read. */
	if (!getenv("HEAP")) {
		GIVES(1, fi_av_insert(av, exactly(array, sizeof(array)), 3, at, FI_SYNC_ERR, status));
		CHECK(status[0] == 0 && status[1] == FI_EINVAL && status[2] == FI_EINVAL, "%d, %d, %d", status[0], status[1],
		      status[2]);
	}
	/* With its NUL in the last byte it is one. */
	array[1 + LONGEST] = 0;
	GIVES(2, fi_av_insert(av, exactly(array, sizeof(array)), 2, at, FI_SYNC_ERR, status));
	close_empty();
}

/* What the page describes: an array of pointers is refused, and not read behind its end. */
static void array_of_pointers(void)
{
	char name[128], *array[4];
	int status[4], i;

	memset(name, 'n', sizeof(name));
	name[127] = 0;
	for (i = 0; i < 4; i++) /* 0x80 is no first byte of a character */
		array[i] = guarded_text(name);
	open_empty();
	GIVES(0, fi_av_insert(av, exactly(array, sizeof(array[0])), 1, NULL, FI_SYNC_ERR, status));
	CHECK(status[0] == FI_EINVAL, "status %d", status[0]);
	GIVES(0, fi_av_insert(av, exactly(array, sizeof(array)), 4, NULL, FI_SYNC_ERR, status));
	for (i = 0; i < 4; i++)
		CHECK(status[i] == FI_EINVAL, "status %d of %d", status[i], i);
	close_empty();
}

static void as_text(void)
{
	char buf[2 * LONGEST], endless[LONGEST];
	size_t len = sizeof(buf);

	memset(endless, 'x', sizeof(endless));
	open_empty();
	CHECK(fi_av_straddr(av, exactly("fi_shm://a", 11), buf, &len) == buf && !strcmp(buf, "fi_shm://a"), "%s", buf);
	len = sizeof(buf);
	fi_av_straddr(av, exactly(endless, LONGEST), buf, &len);
	close_empty();
}

static const struct test tests[] = { TEST(one_after_the_other), TEST(without_its_nul), TEST(array_of_pointers), TEST(as_text) };

CASES(tests)

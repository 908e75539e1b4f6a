/*
 * Long messages from and into memory that is mapped anew at the same address, where the library keeps what a card knows of
 * memory for the next message: what is received is what is there now. And how often memory is registered, counted by
 * count_work.so in front.
 *   kept PROVIDER [--patient]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>
#include "count_work.h"
#include "remote.h"

#define SIZE (256 << 10)
#define ROUNDS 5

static char *from, *into;
static struct bed bed;

/* Other pages than before, at the same address if there is one. */
static void map(char **memory)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (*memory ? MAP_FIXED_NOREPLACE : 0);

	*memory = mmap(*memory, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
	CHECK(*memory != MAP_FAILED, "mmap");
}

static void unmap(char *memory)
{
	CHECK(munmap(memory, SIZE) == 0, "munmap");
}

static void open_all(void)
{
	struct setup s = { 0 };

	open_bed(&bed, &s);
	map(&from);
	map(&into);
}

static void message(unsigned seed)
{
	fill(from, SIZE, seed);
	memset(into, 0, SIZE);
	POST(&bed, post_recv(bed.side[1].ep, into, SIZE, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(&bed, post_send(bed.side[0].ep, from, SIZE, bed.side[1].addr, 1, ctx(2)));
	COMPLETION(&bed, bed.side[1].rx, ctx(1));
	COMPLETION(&bed, bed.side[0].tx, ctx(2));
	SAME(into, SIZE, seed);
}

static unsigned long registrations(void)
{
	struct counted (*counted)(void) = (struct counted (*)(void)) dlsym(RTLD_DEFAULT, "counted");

	CHECK(counted, "count_work.so is not loaded");
	return counted().registrations;
}

/* Without a cache both sides are registered for each message. */
static void memory_is_registered_once(void)
{
	const char *monitor = getenv("FI_MR_CACHE_MONITOR");
	bool is_kept = !monitor || strcmp(monitor, "disabled");
	unsigned long before, more;
	unsigned i;

	open_all();
	message(1);
	before = registrations();
	for (i = 0; i < ROUNDS; i++)
		message(2 + i);
	more = registrations() - before;
	CHECK(more == (is_kept ? 0 : 2 * ROUNDS), "%lu registrations in %d messages", more, ROUNDS);
	close_bed(&bed);
}

/* Twice each, so that what is there is kept by then. */
static void after(void (*change)(void))
{
	unsigned i;

	open_all();
	for (i = 0; i < ROUNDS; i++) {
		message(10 * i);
		message(10 * i + 1);
		change();
		message(10 * i + 2);
	}
	close_bed(&bed);
}

static void mapped_anew(char **memory)
{
	unmap(*memory);
	map(memory);
}

static void mapped_over(char *memory)
{
	CHECK(mmap(memory, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory, "mmap");
}

static void moved_away(char **memory)
{
	char *elsewhere = NULL;

	map(&elsewhere);
	CHECK(mremap(*memory, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == elsewhere, "mremap");
	map(memory);
	unmap(elsewhere);
}

static void emptied(char *memory)
{
	CHECK(madvise(memory, SIZE, MADV_DONTNEED) == 0, "madvise");
}

static void map_from(void) { mapped_anew(&from); }
static void map_into(void) { mapped_anew(&into); }
static void map_over(void) { mapped_over(from); mapped_over(into); }
static void move(void) { moved_away(&from); moved_away(&into); }
static void empty(void) { emptied(from); emptied(into); }

static void what_is_sent_is_mapped_anew(void) { after(map_from); }
static void what_is_received_into_is_mapped_anew(void) { after(map_into); }
static void mapped_over_without_unmapping(void) { after(map_over); }
static void moved_and_mapped_anew(void) { after(move); }
static void emptied_and_written_again(void) { after(empty); }

static const struct test tests[] = {
	TEST(memory_is_registered_once), TEST(what_is_sent_is_mapped_anew), TEST(what_is_received_into_is_mapped_anew),
	TEST(mapped_over_without_unmapping), TEST(moved_and_mapped_anew), TEST(emptied_and_written_again),
};

CASES(tests)

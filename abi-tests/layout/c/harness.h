/* What the generated program stands on: stubs tell here what reached them, tests say what should have. */

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(held, ...)                           \
	do {                                       \
		if (held) {                        \
			passed++;                  \
		} else {                           \
			failed++;                  \
			printf("  FAIL %s: ", testing); \
			printf(__VA_ARGS__);       \
			printf("\n");              \
		}                                  \
	} while (0)

#define ANY_NUMBER 0xA1B2C3D400000000ULL
#define MOST 20

typedef void (*any_function)(void);

static int passed, failed;
static const char *testing;

/* The library under test, or NULL for the inlines of the headers. */
static void *library;

/* What the last stub saw. An argument named by `follow` is a pointer whose bytes are of interest. */
static struct {
	const char *slot;
	int calls, count, follow;
	size_t follow_size;
	uint64_t arg[MOST];
	union {
		unsigned char bytes[256];
		uint64_t aligned;
	} followed;
} seen;

static struct {
	int count;
	uint64_t arg[MOST];
	int skip[MOST];
} wanted;

static void begin(void)
{
	memset(&seen, 0, sizeof(seen));
	memset(&wanted, 0, sizeof(wanted));
	seen.follow = -1;
}

static void entered(const char *slot)
{
	seen.slot = slot;
	seen.calls++;
	seen.count = 0;
}

static void put(const void *value, size_t size)
{
	uint64_t number = 0;

	memcpy(&number, value, size);
	if (seen.count == seen.follow)
		memcpy(seen.followed.bytes, (void *) (uintptr_t) number, seen.follow_size);
	seen.arg[seen.count++] = number;
}

static void want(const void *value, size_t size)
{
	memcpy(&wanted.arg[wanted.count++], value, size);
}

/* An argument whose value nobody can know beforehand. */
static void want_any(void)
{
	wanted.skip[wanted.count++] = 1;
}

/* Exactly this slot, once, with the wanted arguments. */
static void reached(const char *slot)
{
	int i;

	CHECK(seen.calls == 1 && !strcmp(seen.slot, slot), "reached %s (%d calls), should be %s",
	      seen.slot ? seen.slot : "nothing", seen.calls, slot);
	CHECK(seen.count == wanted.count, "%d arguments, should be %d", seen.count, wanted.count);
	for (i = 0; i < wanted.count && i < seen.count; i++) {
		if (!wanted.skip[i])
			CHECK(seen.arg[i] == wanted.arg[i], "argument %d is %#llx, should be %#llx", i,
			      (unsigned long long) seen.arg[i], (unsigned long long) wanted.arg[i]);
	}
}

#define WANT(type, value)                    \
	do {                                 \
		type wanted_ = (type) (value); \
		want(&wanted_, sizeof(wanted_)); \
	} while (0)

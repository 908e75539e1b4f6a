/*
 * A target that does nothing: it waits for a byte in a pipe, and calls the library no more, while the other process reads,
 * writes and adds at its memory. All must be done by the time that the other says so.
 *   unattended PROVIDER [CASE ...]
 */
#define _GNU_SOURCE
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fabric.h"

#define LEN (1 << 20)
#define KEY 99
#define LONG 300000
#define ADDS 1000

static char *window, local[LONG + 64];
static bool is_shared;
static struct fid_mr *mr;

static char *memory(bool shared)
{
	void *at;
	int fd = -1;

	if (shared) {
		fd = memfd_create("unattended", MFD_CLOEXEC);
		CHECK(fd >= 0 && !ftruncate(fd, LEN), "memfd_create");
	}
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	CHECK(at != MAP_FAILED, "mmap");
	if (shared)
		close(fd); /* the mapping is enough */
	return memset(at, 3, LEN);
}

struct where {
	uint64_t addr, key;
};

static struct where tell(struct bed *bed)
{
	struct where at = { 0 };

	window = memory(is_shared);
	OK(fi_mr_reg(bed->domain, window, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	at.addr = bed->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) window : 0;
	at.key = fi_mr_key(mr);
	return at;
}

static void wrote(struct bed *bed, struct where to, size_t at, size_t len)
{
	fill(local, len, (unsigned) len);
	POST(bed, fi_write(bed->side[0].ep, local, len, NULL, bed->peer, to.addr + at, to.key, ctx(1)));
	COMPLETION(bed, bed->side[0].tx, ctx(1));
}

static void has_read(struct bed *bed, struct where from, size_t at, size_t len)
{
	memset(local, 0, len);
	POST(bed, fi_read(bed->side[0].ep, local, len, NULL, bed->peer, from.addr + at, from.key, ctx(2)));
	COMPLETION(bed, bed->side[0].tx, ctx(2));
}

static void added(struct bed *bed, struct where to)
{
	uint64_t one = 1, old, i;

	for (i = 0; i < ADDS; i++) {
		POST(bed, fi_fetch_atomic(bed->side[0].ep, &one, 1, NULL, &old, NULL, bed->peer, to.addr, to.key,
					  FI_UINT64, FI_SUM, ctx(3)));
		COMPLETION(bed, bed->side[0].tx, ctx(3));
		CHECK(old == 0x0303030303030303 + i, "0x%llx after %llu", (unsigned long long) old, (unsigned long long) i);
	}
}

static bool has_news(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void body(struct bed *bed, int me, int pipe)
{
	struct where there;
	char byte = 1;

	if (me) {
		there = tell(bed);
		pipe_send(pipe, &there, sizeof(there));
		pipe_recv(pipe, &byte, 1);
		SAME(window + 100000, LONG, LONG);
		if (is_shared) {
			SAME(window + 64, 8, 8);
			CHECK(*(uint64_t *) window == 0x0303030303030303 + ADDS, "the counter is wrong");
		}
		OK(fi_close(&mr->fid));
		memset(window, 0, LEN);
		pipe_send(pipe, &byte, 1);
		/* A closed region: refused as ever, once the target looks. */
		while (!has_news(pipe))
			progress(bed);
		pipe_recv(pipe, &byte, 1);
		CHECK(!memcmp(window, window + 1, LEN - 1) && !*window, "written after it was closed");
		return;
	}
	pipe_recv(pipe, &there, sizeof(there));
	wrote(bed, there, 100000, LONG);
	has_read(bed, there, 100000, LONG);
	SAME(local, LONG, LONG);
	if (is_shared) {
		wrote(bed, there, 64, 8);
		has_read(bed, there, 64, 8);
		SAME(local, 8, 8);
		added(bed, there);
	}
	pipe_send(pipe, &byte, 1);
	pipe_recv(pipe, &byte, 1);
	POST(bed, fi_write(bed->side[0].ep, local, 8, NULL, bed->peer, there.addr, there.key, ctx(4)));
	CHECK(ERROR_COMPLETION(bed, bed->side[0].tx).err == FI_EKEYREJECTED, "another error");
	POST(bed, fi_write(bed->side[0].ep, local, LONG, NULL, bed->peer, there.addr, there.key, ctx(5)));
	CHECK(ERROR_COMPLETION(bed, bed->side[0].tx).err == FI_EKEYREJECTED, "another error");
	pipe_send(pipe, &byte, 1);
}

static void test(bool shared)
{
	struct setup s = { .more_caps = FI_RMA | FI_ATOMIC };

	is_shared = shared;
	in_two(&s, body);
}

static void memory_that_can_be_mapped(void)
{
	test(true);
}

/* Of this kind, what is long. */
static void memory_that_cannot(void)
{
	test(false);
}

static const struct test tests[] = {
	TEST(memory_that_can_be_mapped),
	TEST(memory_that_cannot),
};
CASES(tests)

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
static bool is_shared, shares_receives;
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
	struct setup s = { .more_caps = FI_RMA | FI_ATOMIC, .rx_ctx_cnt = shares_receives ? FI_SHARED_CONTEXT : 0 };

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

/*
 * Short operations, on memory of each kind, while the target does not look: the first ones between two endpoints, or after
 * both have sent each other messages, whose answers may still be under way.
 */

#define BURST 3000

static bool talk_first, sleeps;

static void ended(struct bed *bed, int number)
{
	struct fi_cq_tagged_entry entry;

	if (!sleeps) {
		COMPLETION(bed, bed->side[0].tx, ctx(number));
		return;
	}
	GIVES(1, fi_cq_sread(bed->side[0].tx, &entry, 1, NULL, -1));
	CHECK(entry.op_context == ctx(number), "another context");
}

static void talk(struct bed *bed, int pipe)
{
	static char out[2048], in[2048];
	struct fid_ep *receives = bed->srx ? bed->srx : bed->side[0].ep;

	for (int i = 0; i < 300; i++) {
		POST(bed, fi_recv(receives, in, sizeof(in), NULL, FI_ADDR_UNSPEC, ctx(10)));
		if (i == 0)
			meet(bed, pipe);
		POST(bed, fi_send(bed->side[0].ep, out, sizeof(out), NULL, bed->peer, ctx(11)));
		COMPLETION(bed, bed->side[0].tx, ctx(11));
		COMPLETION(bed, bed->side[0].rx, ctx(10));
	}
}

static void operate(struct bed *bed, struct where there)
{
	static const size_t sizes[] = { 8, 24, 64, 512, 4096, 8192, 65536, LONG };
	struct fid_ep *ep = bed->side[0].ep;
	struct fi_cq_tagged_entry entry;
	size_t count = sizeof(sizes) / sizeof(*sizes);
	int left = BURST;

	for (size_t i = 0; i < count; i++) {
		fill(local, sizes[i], (unsigned) i);
		POST(bed, fi_write(ep, local, sizes[i], NULL, bed->peer, there.addr, there.key, ctx(1)));
		ended(bed, 1);
		memset(local, 0, sizes[i]);
		POST(bed, fi_read(ep, local, sizes[i], NULL, bed->peer, there.addr, there.key, ctx(2)));
		ended(bed, 2);
		SAME(local, sizes[i], (unsigned) i);
	}
	/* Far more than a target that does not look has room for. */
	fill(local, 64 * BURST, 77);
	for (int i = 0; i < BURST; i++) {
		POST(bed, fi_write(ep, local + 64 * i, 64, NULL, bed->peer, there.addr + 64 * (uint64_t) i, there.key, ctx(3)));
		while (fi_cq_read(bed->side[0].tx, &entry, 1) == 1)
			left--;
	}
	for (; left > 0; left--)
		ended(bed, 3);
	memset(local, 0, 64 * BURST);
	POST(bed, fi_read(ep, local, 64 * BURST, NULL, bed->peer, there.addr, there.key, ctx(2)));
	ended(bed, 2);
	SAME(local, 64 * BURST, 77);
	/* What has no completion is done when a read behind it is. */
	POST(bed, fi_inject_write(ep, "injected", 8, bed->peer, there.addr, there.key));
	POST(bed, fi_read(ep, local, 8, NULL, bed->peer, there.addr, there.key, ctx(2)));
	ended(bed, 2);
	CHECK(!memcmp(local, "injected", 8), "not written");
}

static void short_body(struct bed *bed, int me, int pipe)
{
	struct where there;
	char byte = 1;

	if (me) {
		there = tell(bed);
		pipe_send(pipe, &there, sizeof(there));
	} else {
		pipe_recv(pipe, &there, sizeof(there));
	}
	if (talk_first)
		talk(bed, pipe);
	if (me) {
		pipe_send(pipe, &byte, 1);
		pipe_recv(pipe, &byte, 1);
		CHECK(!memcmp(window, "injected", 8), "the last is not written");
		fill(local, 64 * BURST, 77);
		CHECK(!memcmp(window + 8, local + 8, 64 * BURST - 8), "something else is written");
		/* Both look again, and all goes on as ever. */
		meet(bed, pipe);
		talk(bed, pipe);
		meet(bed, pipe);
		OK(fi_close(&mr->fid));
		return;
	}
	pipe_recv(pipe, &byte, 1);
	operate(bed, there);
	pipe_send(pipe, &byte, 1);
	meet(bed, pipe);
	talk(bed, pipe);
	wrote(bed, there, 0, 8);
	has_read(bed, there, 0, 8);
	SAME(local, 8, 8);
	meet(bed, pipe);
}

static void test_short(bool shared, bool after_messages, bool asleep)
{
	struct setup s = { .more_caps = FI_RMA, .wait_obj = asleep ? FI_WAIT_FD : FI_WAIT_NONE,
			   .rx_ctx_cnt = shares_receives ? FI_SHARED_CONTEXT : 0 };

	is_shared = shared;
	talk_first = after_messages;
	sleeps = asleep;
	in_two(&s, short_body);
}

static void short_operations_come_first(void)
{
	test_short(false, false, false);
}

static void short_operations_after_messages(void)
{
	test_short(false, true, false);
}

static void short_operations_of_one_that_sleeps(void)
{
	test_short(false, true, true);
}

static void short_operations_on_shared_memory(void)
{
	test_short(true, true, false);
}

/* The same between endpoints that share a receive context. */
static void shared_receives_memory_that_can_be_mapped(void)
{
	shares_receives = true;
	test(true);
}

static void shared_receives_memory_that_cannot(void)
{
	shares_receives = true;
	test(false);
}

static void shared_receives_short_operations(void)
{
	shares_receives = true;
	test_short(false, true, false);
}

static void shared_receives_of_one_that_sleeps(void)
{
	shares_receives = true;
	test_short(false, true, true);
}

/* What was sent before a write is looked at before it is seen: not until the target looks is anything written. */
static void order_body(struct bed *bed, int me, int pipe)
{
	struct fi_cq_tagged_entry entry;
	struct where there;
	char byte = 1, in = 0;

	if (me) {
		there = tell(bed);
		POST(bed, fi_recv(bed->side[0].ep, &in, 1, NULL, FI_ADDR_UNSPEC, ctx(5)));
		pipe_send(pipe, &there, sizeof(there));
		pipe_recv(pipe, &byte, 1);
		CHECK(window[0] == 3 && window[4096] == 3, "the write has passed the message");
		COMPLETION(bed, bed->side[0].rx, ctx(5));
		CHECK(in == 42, "another message");
		meet(bed, pipe);
		CHECK(window[0] == 9 && window[4096] == 9, "not written");
		OK(fi_close(&mr->fid));
		return;
	}
	pipe_recv(pipe, &there, sizeof(there));
	in = 42;
	POST(bed, fi_inject(bed->side[0].ep, &in, 1, bed->peer));
	memset(local, 9, 8192);
	POST(bed, fi_write(bed->side[0].ep, local, 8, NULL, bed->peer, there.addr, there.key, ctx(6)));
	POST(bed, fi_write(bed->side[0].ep, local, 64, NULL, bed->peer, there.addr + 4096, there.key, ctx(6)));
	/* Many times more looks than are needed to find that the target does not look. */
	for (int i = 0; i < 10000; i++)
		GIVES(-FI_EAGAIN, fi_cq_read(bed->side[0].tx, &entry, 1));
	pipe_send(pipe, &byte, 1);
	COMPLETION(bed, bed->side[0].tx, ctx(6));
	COMPLETION(bed, bed->side[0].tx, ctx(6));
	meet(bed, pipe);
}

static void writes_stay_behind_messages(void)
{
	struct setup s = { .more_caps = FI_RMA };

	is_shared = false;
	in_two(&s, order_body);
}

/* Atomics on memory that cannot be shared need the target's library, but not the program's thread: FI_PROGRESS_AUTO. */
static void thread_body(struct bed *bed, int me, int pipe)
{
	struct where there;
	char byte = 1;

	if (me) {
		there = tell(bed);
		pipe_send(pipe, &there, sizeof(there));
		pipe_recv(pipe, &byte, 1);
		CHECK(*(uint64_t *) window == 0x0303030303030303 + ADDS, "the counter is wrong");
		OK(fi_close(&mr->fid));
		return;
	}
	pipe_recv(pipe, &there, sizeof(there));
	added(bed, there);
	pipe_send(pipe, &byte, 1);
}

static void atomics_with_a_thread_of_the_target(void)
{
	struct setup s = { .more_caps = FI_RMA | FI_ATOMIC, .progress = FI_PROGRESS_AUTO };

	is_shared = false;
	in_two(&s, thread_body);
}

/* An endpoint that is not enabled at the first try, and then with a counter: it counts all that is written. */
static void counter_body(struct bed *bed, int me, int pipe)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct side *side = &bed->side[1];
	char name[NAME_MAX_LEN] = { 0 };
	struct fid_cntr *cntr;
	struct where there;
	int i;

	if (!me) {
		pipe_recv(pipe, name, sizeof(name));
		pipe_recv(pipe, &there, sizeof(there));
		GIVES(1, fi_av_insert(bed->av, name, 1, &bed->peer, 0, NULL));
		for (i = 0; i < 10; i++)
			wrote(bed, there, 64, 8);
		return;
	}
	there = tell(bed);
	OK(fi_endpoint(bed->domain, bed->info, &side->ep, NULL));
	OK(fi_ep_bind(side->ep, &bed->av->fid, 0));
	if (bed->srx)
		OK(fi_ep_bind(side->ep, &bed->srx->fid, 0));
	FAILS(fi_enable(side->ep));
	OK(fi_cntr_open(bed->domain, &attr, &cntr, NULL));
	OK(fi_ep_bind(side->ep, &cntr->fid, FI_REMOTE_WRITE));
	OK(fi_ep_bind(side->ep, &bed->side[0].tx->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(side->ep));
	learn_name(side);
	pipe_send(pipe, side->name, sizeof(name));
	pipe_send(pipe, &there, sizeof(there));
	while (fi_cntr_read(cntr) < 10)
		progress(bed);
	close_ep(side);
	OK(fi_close(&cntr->fid));
	OK(fi_close(&mr->fid));
}

static void enabled_at_the_second_try(void)
{
	struct setup s = { .more_caps = FI_RMA | FI_RMA_EVENT };

	is_shared = true;
	in_two(&s, counter_body);
}

static void shared_receives_enabled_at_the_second_try(void)
{
	struct setup s = { .more_caps = FI_RMA | FI_RMA_EVENT, .rx_ctx_cnt = FI_SHARED_CONTEXT };

	is_shared = true;
	in_two(&s, counter_body);
}

static const struct test tests[] = {
	TEST(memory_that_can_be_mapped),
	TEST(memory_that_cannot),
	TEST(short_operations_come_first),
	TEST(short_operations_after_messages),
	TEST(short_operations_of_one_that_sleeps),
	TEST(short_operations_on_shared_memory),
	TEST(shared_receives_memory_that_can_be_mapped),
	TEST(shared_receives_memory_that_cannot),
	TEST(shared_receives_short_operations),
	TEST(shared_receives_of_one_that_sleeps),
	TEST(writes_stay_behind_messages),
	TEST(atomics_with_a_thread_of_the_target),
	TEST(enabled_at_the_second_try),
	TEST(shared_receives_enabled_at_the_second_try),
};
CASES(tests)

/* What calls cost in instructions: each kind of call a thousand times, counted by callgrind, or by valgrind's list of system
 * calls. Two endpoints in one process and one thread, so that the same is counted each time.
 *
 *   ops PROVIDER domain|safe calls     under valgrind --tool=callgrind --collect-atstart=no
 *   ops PROVIDER domain|safe list      under valgrind --tool=none --trace-syscalls=yes; says what begins and ends, on stderr
 */
#define _GNU_SOURCE
#include "die.h"
#include "ends.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { WARM = 6000, ROUNDS = 1000, BYTES = 8, LONG = 16384, TAG = 7, POSTED = 64, FLOOD = 16 };

/* c is as a, but its default completion level is delivery, as MPICH's is. */
static struct end a, b, c;
static struct fid_av *av;
static fi_addr_t to_a, to_b;
static struct fi_context2 contexts[POSTED + 2];
static uint64_t in[POSTED + 2], out = 5, memory[2];
static char long_in[LONG], long_out[LONG];
static uint64_t addr, key;
/* Of memory that processes can share, in which a does all by itself. */
static uint64_t shared_addr, shared_key;
static bool counting, listing;

static void begin(void)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
	else if (listing)
		write(2, "begin\n", 6);
}

static void end(void)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
	else if (listing)
		write(2, "end\n", 4);
}

/* The call is what is counted. */
#define COUNTED(call)                                                                \
	({                                                                           \
		begin();                                                             \
		ssize_t counted_ = (call);                                           \
		end();                                                               \
		counted_;                                                            \
	})

#define DONE(call)                                                                   \
	do {                                                                         \
		ssize_t done_;                                                       \
		while ((done_ = (call)) == -FI_EAGAIN)                               \
			look(&a), look(&b);                                          \
		OK(done_);                                                           \
	} while (0)

static struct fi_cq_tagged_entry entry;

static ssize_t look(struct end *end)
{
	ssize_t count = fi_cq_read(end->cq, &entry, 1);

	if (count < 0 && count != -FI_EAGAIN)
		DIE("fi_cq_read: %s", fi_strerror((int) -count));
	return count;
}

/* Who waits for something looks for it again and again. */
static void wait_a_while(struct end *end)
{
	for (int i = 0; i < 2; i++)
		if (look(end) == 1)
			DIE("something has come");
}

static void ended(struct end *end)
{
	while (look(end) != 1)
		continue;
}

static void post(int slot, uint64_t tag)
{
	DONE(fi_trecv(b.ep, &in[slot], BYTES, NULL, FI_ADDR_UNSPEC, tag, 0, &contexts[slot]));
}

/* ---- the kinds of call ---- */

static void inject(void)
{
	post(0, TAG);
	OK(COUNTED(fi_tinject(a.ep, &out, BYTES, to_b, TAG)));
	ended(&b);
}

static void inject_by_c(void)
{
	post(0, TAG);
	OK(COUNTED(fi_tinject(c.ep, &out, BYTES, to_b, TAG)));
	ended(&b);
	if (COUNTED(look(&c)) == 1)
		DIE("an inject has completed");
}

static void receive(void)
{
	OK(COUNTED(fi_trecv(b.ep, in, BYTES, NULL, FI_ADDR_UNSPEC, TAG, 0, contexts)));
	DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
	ended(&b);
}

/* A message that has come is taken by the first look, or else by the next. */
static void read_one(void)
{
	post(0, TAG);
	DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
	if (COUNTED(look(&b)) != 1)
		ended(&b);
}

static void read_none(void)
{
	if (COUNTED(look(&b)) == 1)
		DIE("something has come");
}

static void send(void)
{
	post(0, TAG);
	OK(COUNTED(fi_tsend(a.ep, &out, BYTES, NULL, to_b, TAG, &contexts[1])));
	ended(&a);
	ended(&b);
}

static void read_sent(void)
{
	post(0, TAG);
	DONE(fi_tsend(a.ep, &out, BYTES, NULL, to_b, TAG, &contexts[1]));
	if (COUNTED(look(&a)) != 1)
		ended(&a);
	ended(&b);
}

/* The two answer each other, as in a ping-pong: b waits when a's message comes. */
static void exchange(bool sending)
{
	post(0, TAG);
	DONE(fi_trecv(a.ep, &in[1], BYTES, NULL, FI_ADDR_UNSPEC, TAG, 0, &contexts[1]));
	wait_a_while(&b);
	if (sending) {
		OK(COUNTED(fi_tinject(a.ep, &out, BYTES, to_b, TAG)));
		ended(&b);
	} else {
		OK(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
		if (COUNTED(look(&b)) != 1)
			ended(&b);
	}
	wait_a_while(&a);
	DONE(fi_tinject(b.ep, &out, BYTES, to_a, TAG));
	ended(&a);
}

static void inject_answer(void) { exchange(true); }
static void read_answer(void) { exchange(false); }

/* Many without a look in between. */
static void flood(void)
{
	for (int i = 0; i < FLOOD; i++)
		post(i, TAG);
	for (int i = 0; i < FLOOD - 1; i++)
		DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
}

static void inject_in_flood(void)
{
	flood();
	OK(COUNTED(fi_tinject(a.ep, &out, BYTES, to_b, TAG)));
	for (int i = 0; i < FLOOD; i++)
		ended(&b);
}

static void read_flood(void)
{
	static struct fi_cq_tagged_entry entries[FLOOD];
	ssize_t found = 0, more;

	flood();
	DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
	/* The first look may find the first alone. */
	while (found < FLOOD)
		if ((more = COUNTED(fi_cq_read(b.cq, entries, FLOOD))) > 0)
			found += more;
		else if (more != -FI_EAGAIN)
			DIE("fi_cq_read: %s", fi_strerror((int) -more));
}

static void post_long(void)
{
	DONE(fi_trecv(b.ep, long_in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, contexts));
}

/* A long message, which its receiver fetches where it can. */
static void send_long(void)
{
	post_long();
	OK(COUNTED(fi_tsend(a.ep, long_out, LONG, NULL, to_b, TAG, &contexts[1])));
	ended(&b);
	ended(&a);
}

static void read_long(void)
{
	post_long();
	DONE(fi_tsend(a.ep, long_out, LONG, NULL, to_b, TAG, &contexts[1]));
	if (COUNTED(look(&b)) != 1)
		ended(&b);
	ended(&a);
}

/* MPICH's way: the sender waits until the message has been delivered. */
static void send_long_by_c(void)
{
	post_long();
	OK(COUNTED(fi_tsend(c.ep, long_out, LONG, NULL, to_b, TAG, &contexts[1])));
	ended(&b);
	ended(&c);
}

static void read_long_of_c(void)
{
	post_long();
	DONE(fi_tsend(c.ep, long_out, LONG, NULL, to_b, TAG, &contexts[1]));
	if (COUNTED(look(&b)) != 1)
		ended(&b);
	ended(&c);
}

/* It comes before it is asked for. */
static void read_unexpected(void)
{
	wait_a_while(&b);
	DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
	COUNTED(look(&b));
	look(&b);
	post(0, TAG);
	ended(&b);
}

static void receive_unexpected(void)
{
	DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
	look(&b);
	look(&b);
	OK(COUNTED(fi_trecv(b.ep, in, BYTES, NULL, FI_ADDR_UNSPEC, TAG, 0, contexts)));
	ended(&b);
}

/* Behind other receives that it does not match. */
static void read_one_of_many(void)
{
	post(POSTED, TAG);
	DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
	if (COUNTED(look(&b)) != 1)
		ended(&b);
}

static void write_injected(void)
{
	uint64_t before = memory[0];

	out = before + 1;
	OK(COUNTED(fi_inject_write(a.ep, &out, BYTES, to_b, addr, key)));
	while (((volatile uint64_t *) memory)[0] == before)
		look(&b), look(&a);
}

/* An operation by both sides: its target, which answers it, and who reads that it is over. */
static void target_of(void (*start)(void))
{
	wait_a_while(&b);
	start();
	COUNTED(look(&b));
	while (look(&a) != 1)
		look(&b);
}

static void end_of(void (*start)(void))
{
	wait_a_while(&a);
	start();
	look(&b);
	if (COUNTED(look(&a)) == 1)
		return;
	while (look(&a) != 1)
		look(&b);
}

static void write_there(void)
{
	DONE(fi_write(a.ep, &out, BYTES, NULL, to_b, addr, key, &contexts[1]));
}

static void read_there(void)
{
	DONE(fi_read(a.ep, &in[0], BYTES, NULL, to_b, addr, key, &contexts[1]));
}

static void target_of_write(void) { target_of(write_there); }
static void read_written(void) { end_of(write_there); }
static void target_of_read(void) { target_of(read_there); }
static void read_answered(void) { end_of(read_there); }

static void add_injected(void)
{
	uint64_t before = memory[0], one = 1;

	OK(COUNTED(fi_inject_atomic(a.ep, &one, 1, to_b, addr, key, FI_UINT64, FI_SUM)));
	while (((volatile uint64_t *) memory)[0] == before)
		look(&b), look(&a);
}

static void write_shared(void)
{
	OK(COUNTED(fi_inject_write(a.ep, &out, BYTES, to_b, shared_addr, shared_key)));
}

static void write_shared_reported(void)
{
	OK(COUNTED(fi_write(a.ep, &out, BYTES, NULL, to_b, shared_addr, shared_key, &contexts[1])));
	ended(&a);
}

static void read_shared(void)
{
	OK(COUNTED(fi_read(a.ep, in, BYTES, NULL, to_b, shared_addr, shared_key, &contexts[1])));
	ended(&a);
}

static void read_read_shared(void)
{
	OK(fi_read(a.ep, in, BYTES, NULL, to_b, shared_addr, shared_key, &contexts[1]));
	if (COUNTED(look(&a)) != 1)
		DIE("a read of shared memory is not over when it returns");
}

static void fetch_add_shared(void)
{
	static uint64_t one = 1;

	OK(COUNTED(fi_fetch_atomic(a.ep, &one, 1, NULL, in, NULL, to_b, shared_addr, shared_key, FI_UINT64, FI_SUM,
				   &contexts[1])));
	ended(&a);
}

/* ---- counting ---- */

static void count(const char *name, void (*kind)(void), bool is_call)
{
	for (int i = 0; i < 10; i++)
		kind();
	counting = is_call;
	listing = !is_call;
	if (listing)
		dprintf(2, "kind %s\n", name);
	CALLGRIND_ZERO_STATS;
	for (int i = 0; i < ROUNDS; i++) {
		kind();
		/* Credit comes back when the sender looks. */
		while (look(&a) == 1)
			continue;
	}
	if (is_call)
		CALLGRIND_DUMP_STATS_AT(name);
	counting = listing = false;
	/* What either side has left to do belongs to no kind of call, so it is not counted. */
	for (int i = 0; i < 10; i++)
		look(&a), look(&b);
}

static struct wish wish;
static struct base base;

static void register_shared(void)
{
	int file = memfd_create("shared", MFD_CLOEXEC);
	size_t len = (size_t) getpagesize();
	struct fid_mr *mr;

	if (file < 0 || ftruncate(file, (off_t) len))
		DIE("memfd_create");
	void *shared = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (shared == MAP_FAILED)
		DIE("mmap");
	OK(fi_mr_reg(base.domain, shared, len, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 2, 0, &mr, NULL));
	shared_key = fi_mr_key(mr);
	shared_addr = base.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) shared : 0;
}

static void open_both(const char *provider, enum fi_threading threading)
{
	wish = (struct wish) { .provider = provider, .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, .mode = CONTEXTS,
			     .threading = threading, .progress = FI_PROGRESS_MANUAL };
	struct fid_mr *mr;

	open_base(&base, find(&wish));
	av = base.av;
	open_end(&a, &base, &wish);
	open_end(&b, &base, &wish);
	to_a = know(av, &a.name);
	to_b = know(av, &b.name);
	OK(fi_mr_reg(base.domain, memory, sizeof(memory), FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	key = fi_mr_key(mr);
	addr = base.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) memory : 0;
	register_shared();
}

/* Comes last, as b then has two to receive from. */
static void open_c(void)
{
	base.info->tx_attr->op_flags |= FI_DELIVERY_COMPLETE;
	open_end(&c, &base, &wish);
	post(0, TAG);
	while (fi_tinject(c.ep, &out, BYTES, to_b, TAG) == -FI_EAGAIN)
		look(&b), look(&c);
	ended(&b);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		DIE("%s PROVIDER domain|safe calls|list", argv[0]);
	bool calls = !strcmp(argv[3], "calls");

	open_both(argv[1], !strcmp(argv[2], "safe") ? FI_THREAD_SAFE : FI_THREAD_DOMAIN);
	for (int i = 0; i < WARM; i++) {
		post(0, TAG);
		DONE(fi_tinject(a.ep, &out, BYTES, to_b, TAG));
		ended(&b);
	}
	count("inject", inject, calls);
	count("send", send, calls);
	count("receive", receive, calls);
	count("read", read_one, calls);
	count("read-nothing", read_none, calls);
	count("read-sent", read_sent, calls);
	count("inject-in-flood", inject_in_flood, calls);
	count("read-flood-of-16", read_flood, calls);
	count("send-long", send_long, calls);
	count("read-long", read_long, calls);
	count("read-unexpected", read_unexpected, calls);
	count("receive-unexpected", receive_unexpected, calls);
	count("write", write_injected, calls);
	count("target-of-write", target_of_write, calls);
	count("read-written", read_written, calls);
	count("target-of-read", target_of_read, calls);
	count("read-answered", read_answered, calls);
	count("atomic", add_injected, calls);
	if (!strcmp(argv[1], "shm")) {
		count("write-shared", write_shared, calls);
		count("write-shared-reported", write_shared_reported, calls);
		count("read-shared", read_shared, calls);
		count("read-read-shared", read_read_shared, calls);
		count("fetch-add-shared", fetch_add_shared, calls);
	}
	count("inject-answer", inject_answer, calls);
	count("read-answer", read_answer, calls);
	for (int i = 0; i < POSTED; i++)
		post(i, 1000 + (uint64_t) i);
	count("read-one-of-64", read_one_of_many, calls);
	open_c();
	count("inject-by-delivery", inject_by_c, calls);
	count("send-long-by-delivery", send_long_by_c, calls);
	count("read-long-by-delivery", read_long_of_c, calls);
	/* The process ends without closing: that is counted by nobody. */
	return 0;
}

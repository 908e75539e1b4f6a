/* Between two processes. */
#include "rma.h"
#include <sys/mman.h>

static const struct setup events = { .more_caps = FI_RMA | FI_RMA_EVENT };

/* The target closes regions and unmaps them while the initiator reads and writes. */
static void close_in_the_middle_body(struct bed *bed, int me, int pipe)
{
	enum { ROUNDS = 30, AT_ONCE = 16, LEN = 300000 };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct remote remote;
	int round, i, good = 0;

	for (round = 0; round < ROUNDS; round++) {
		if (me) {
			char *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			struct window w;

			CHECK(memory != MAP_FAILED, "mmap");
			memset(memory, round, LEN);
			w = expose(bed, 0, memory, LEN, OPEN_TO_ALL);
			pipe_send(pipe, &w.remote, sizeof(w.remote));
			for (i = 0; i < round * 3; i++)
				progress(bed);
			conceal(&w);
			munmap(memory, LEN);
			meet(bed, pipe);
			continue;
		}
		pipe_recv(pipe, &remote, sizeof(remote));
		memset(there, round, LEN);
		for (i = 0; i < AT_ONCE; i++) {
			char *part = here + i * (SIZE / AT_ONCE);
			size_t len = i % 4 == 3 ? 60 : SIZE / AT_ONCE - 1;

			if (i % 2)
				POST(bed, fi_read(bed->side[0].ep, part, len, desc, bed->peer, remote.base, remote.key, ctx(i)));
			else
				POST(bed, fi_write(bed->side[0].ep, there, len, desc, bed->peer, remote.base + 100, remote.key, ctx(i)));
		}
		for (i = 0; i < AT_ONCE; i++) {
			ssize_t ret = next(bed, bed->side[0].tx, &entry);

			if (ret == -FI_EAVAIL) {
				memset(&err, 0, sizeof(err));
				CHECK(fi_cq_readerr(bed->side[0].tx, &err, 0) == 1, "no error entry");
				CHECK(!strict || err.err == FI_EKEYREJECTED, "error %d (%s)", err.err, fi_strerror(err.err));
				continue;
			}
			CHECK(ret == 1, "operation %d of round %d does not end: %zd", i, round, ret);
			good++;
			if (entry.flags & FI_READ)
				CHECK(here[((char *) entry.op_context - (char *) ctx(0)) / (long) sizeof(struct fi_context2) * (SIZE / AT_ONCE)] == round, "read something else");
		}
		meet(bed, pipe);
	}
}

static void close_in_the_middle(void)
{
	in_two(&usual, close_in_the_middle_body);
}

static void between_processes_body(struct bed *bed, int me, int pipe)
{
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	struct remote remote;
	unsigned i;

	ep = bed->side[0].ep;
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote, sizeof(remote));
	EACH_SIZE(i) {
		unsigned mine = 2 * i + (unsigned) me, other = 2 * i + (unsigned) !me;

		memset(there, 0, sizes[i]);
		fill(here, sizes[i], mine);
		meet(bed, pipe);
		POST(bed, fi_write(ep, here, sizes[i], desc, bed->peer, remote.base, remote.key, ctx(1)));
		wrote(bed, 1);
		UNTIL(bed, mismatch(there, sizes[i], other) < 0);
		meet(bed, pipe);
		POST(bed, fi_read(ep, expected, sizes[i], desc, bed->peer, remote.base, remote.key, ctx(2)));
		have_read(bed, 2);
		SAME(expected, sizes[i], mine);
		meet(bed, pipe);
	}
	conceal(&w);
}

static void between_processes(void)
{
	in_two(&usual, between_processes_body);
}

/* Whoever injects has no completion to come back for: once it was taken it goes on its way without another call. */
static void an_inject_needs_no_more_calls_body(struct bed *bed, int me, int pipe)
{
	struct remote remote;
	struct window w;
	char word = 'r';

	if (me) {
		w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
		pipe_send(pipe, &w.remote, sizeof(w.remote));
		UNTIL(bed, mismatch(there, 64, 5) < 0);
		pipe_send(pipe, &word, 1);
		conceal(&w);
	} else {
		fill(here, 64, 5);
		pipe_recv(pipe, &remote, sizeof(remote));
		POST(bed, fi_inject_write(bed->side[0].ep, here, 64, bed->peer, remote.base, remote.key));
		pipe_recv(pipe, &word, 1);
	}
}

static void an_inject_needs_no_more_calls(void)
{
	in_two(&usual, an_inject_needs_no_more_calls_body);
}

/* Whoever was told of all writes to its memory may do something else: their initiator needs nothing more of it. */
static void a_target_that_was_told_of_all_may_stop_body(struct bed *bed, int me, int pipe)
{
	enum { WRITES = 64 };
	struct fi_cq_tagged_entry entries[WRITES];
	long until = now_ms() + GIVE_UP_MS;
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	struct remote remote;
	unsigned k;
	char word;
	int i;

	NEED(bed->info->domain_attr->cq_data_size, "no remote CQ data");
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote, sizeof(remote));
	for (k = 0; k < sizeof(few) / sizeof(*few); k++) {
		ssize_t ret = 0;

		meet(bed, pipe);
		if (me == 0) {
			for (i = 0; i < WRITES; i++)
				POST(bed, fi_writedata(bed->side[0].ep, here, few[k], desc, 7, bed->peer, remote.base, remote.key,
						       ctx(1)));
			for (i = 0; i < WRITES; i++)
				COMPLETION(bed, bed->side[0].tx, ctx(1));
			pipe_send(pipe, "d", 1);
		} else {
			for (i = 0; i < WRITES && now_ms() < until; i += ret > 0 ? (int) ret : 0) {
				ret = fi_cq_read(bed->side[0].rx, entries, WRITES);
				CHECK(ret > 0 || ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
			}
			CHECK(i == WRITES, "told of %d of %d writes of %zu bytes", i, WRITES, few[k]);
			pipe_recv(pipe, &word, 1);
		}
	}
	conceal(&w);
}

static void a_target_that_was_told_of_all_may_stop(void)
{
	ANSWERS_LEAVE_AT_ONCE;
	in_two(&usual, a_target_that_was_told_of_all_may_stop_body);
}

/* Two processes that sleep until the other writes. */
static void waiting_for_writes_body(struct bed *bed, int me, int pipe)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	struct remote remote;
	struct fid_cntr *cntr;
	unsigned round;
	int ret;

	OK(fi_cntr_open(bed->domain, &attr, &cntr, NULL));
	ret = bed->info->domain_attr->mr_mode & FI_MR_ENDPOINT ? -FI_ENOSYS : fi_mr_bind(w.mr, &cntr->fid, FI_REMOTE_WRITE);
	NEED(!lacking(ret), "fi_mr_bind: %s", fi_strerror(-ret));
	OK(ret);
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote, sizeof(remote));
	for (round = 1; round <= 100; round++) {
		size_t len = sizes[round % (sizeof(sizes) / sizeof(*sizes))];

		if (me) {
			GIVES(0, fi_cntr_wait(cntr, round, GIVE_UP_MS));
			SAME(there, len, round);
		}
		fill(here, len, round);
		POST(bed, fi_write(bed->side[0].ep, here, len, desc, bed->peer, remote.base, remote.key, ctx(1)));
		COMPLETION(bed, bed->side[0].tx, ctx(1));
		if (!me) {
			GIVES(0, fi_cntr_wait(cntr, round, GIVE_UP_MS));
			SAME(there, len, round);
		}
	}
	meet(bed, pipe);
	conceal(&w);
	OK(fi_close(&cntr->fid));
}

static void waiting_for_writes(void)
{
	in_two(&events, waiting_for_writes_body);
}

/* With FI_PROGRESS_AUTO the target does not have to call anything. */
static void auto_progress_body(struct bed *bed, int me, int pipe)
{
	struct window w;
	struct remote remote;
	unsigned i;
	char c = 'c';

	if (me) {
		fill(there, SIZE, 5);
		w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
		pipe_send(pipe, &w.remote, sizeof(w.remote));
		pipe_recv(pipe, &c, 1); /* and does nothing meanwhile */
		conceal(&w);
		return;
	}
	ep = bed->side[0].ep;
	pipe_recv(pipe, &remote, sizeof(remote));
	EACH_SIZE(i) {
		POST(bed, fi_read(ep, here, sizes[i], desc, bed->peer, remote.base, remote.key, ctx(1)));
		have_read(bed, 1);
		SAME(here, sizes[i], 5);
		POST(bed, fi_write(ep, here, sizes[i], desc, bed->peer, remote.base, remote.key, ctx(1)));
		wrote(bed, 1);
	}
	pipe_send(pipe, &c, 1);
}

static void auto_progress(void)
{
	struct setup s = usual;

	s.progress = FI_PROGRESS_AUTO;
	in_two(&s, auto_progress_body);
}

static const struct test tests[] = {
	TEST(close_in_the_middle), TEST(between_processes), TEST(waiting_for_writes), TEST(auto_progress),
	TEST(an_inject_needs_no_more_calls), TEST(a_target_that_was_told_of_all_may_stop),
};

CASES(tests)

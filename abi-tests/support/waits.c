/* Waiting with a deadline and without a sleep: for completions, and for threads. And messages whose bytes are known. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include "fabric.h"

long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct fi_context2 *ctx(int number)
{
	static struct fi_context2 contexts[4096];

	CHECK(number >= 0 && number < 4096, "context %d", number);
	return &contexts[number];
}

void progress(struct bed *bed)
{
	int i;

	for (i = 0; i < bed->sides; i++) {
		fi_cq_read(bed->side[i].tx, NULL, 0);
		fi_cq_read(bed->side[i].rx, NULL, 0);
	}
}

void settle(struct bed *bed)
{
	int i;

	/* Yielding lets a provider's own thread, and the other process, do their part. */
	for (i = 0; i < 300; i++) {
		progress(bed);
		if (i % 10 == 0)
			sched_yield();
	}
}

ssize_t next(struct bed *bed, struct fid_cq *cq, void *entry)
{
	long until = now_ms() + GIVE_UP_MS;
	unsigned turns = 0;
	ssize_t ret;

	for (;;) {
		ret = fi_cq_read(cq, entry, 1);
		if (ret != -FI_EAGAIN)
			return ret;
		progress(bed);
		if (++turns % 64 == 0) {
			sched_yield();
			if (now_ms() > until)
				return -FI_ETIMEDOUT;
		}
	}
}

struct fi_cq_tagged_entry completion(struct bed *bed, struct fid_cq *cq, void *context, int line)
{
	struct fi_cq_tagged_entry entry = { 0 };
	ssize_t ret = next(bed, cq, &entry);

	if (ret == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };

		fi_cq_readerr(cq, &err, 0);
		CHECK(0, "called at %d: an error completion, %d (%s)", line, err.err, fi_strerror(err.err));
	}
	CHECK(ret == 1, "called at %d: no completion: %zd (%s)", line, ret, fi_strerror((int) -ret));
	CHECK(entry.op_context == context, "called at %d: the completion of another operation", line);
	return entry;
}

struct fi_cq_err_entry error_completion(struct bed *bed, struct fid_cq *cq, int line)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t ret = next(bed, cq, &entry);

	CHECK(ret == -FI_EAVAIL, "called at %d: no error completion: %zd (%s)", line, ret, ret < 0 ? fi_strerror((int) -ret) : "an entry");
	ret = fi_cq_readerr(cq, &err, 0);
	CHECK(ret == 1, "called at %d: fi_cq_readerr: %zd", line, ret);
	return err;
}

void no_completion(struct bed *bed, struct fid_cq *cq, int line)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	settle(bed);
	ret = fi_cq_read(cq, &entry, 1);
	CHECK(ret == -FI_EAGAIN, "called at %d: a completion that must not be: %zd", line, ret);
}

size_t at_most(struct bed *bed, size_t len)
{
	size_t most = bed->info->ep_attr->max_msg_size;

	return len < most ? len : most;
}

void fill(void *buf, size_t len, unsigned seed)
{
	unsigned char *b = buf;
	size_t i;

	for (i = 0; i < len; i++)
		b[i] = (unsigned char) ((i * 31 + (i >> 8) * 7 + seed * 101 + 1) & 0xff);
}

long mismatch(const void *buf, size_t len, unsigned seed)
{
	const unsigned char *b = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (b[i] != (unsigned char) ((i * 31 + (i >> 8) * 7 + seed * 101 + 1) & 0xff))
			return (long) i;
	return -1;
}

void ping(struct bed *bed, int from, int to)
{
	static unsigned seed = 1000;
	static char out[24], in[24];
	struct side *a = &bed->side[from], *b = &bed->side[to];
	struct fi_cq_tagged_entry entry;

	fill(out, sizeof(out), ++seed);
	POST(bed, post_recv(b->ep, in, sizeof(in), FI_ADDR_UNSPEC, 0x5050, 0, ctx(4000)));
	POST(bed, post_send(a->ep, out, sizeof(out), b->addr, 0x5050, ctx(4001)));
	COMPLETION(bed, a->tx, ctx(4001));
	entry = COMPLETION(bed, b->rx, ctx(4000));
	CHECK(entry.len == sizeof(in), "%zu bytes", entry.len);
	SAME(in, sizeof(in), seed);
}

/* ---- threads ---- */

pid_t thread_id(void)
{
	return (pid_t) syscall(SYS_gettid);
}

void until_asleep(pid_t thread)
{
	long until = now_ms() + (strict ? GIVE_UP_MS : 300);
	char path[64], line[512], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) thread);
	while (now_ms() < until) {
		FILE *f = fopen(path, "r");

		CHECK(f && fgets(line, sizeof(line), f), "the thread has ended");
		fclose(f);
		end = strrchr(line, ')');
		if (end && end[2] == 'S')
			return;
		sched_yield();
	}
}

/*
 * Many who talk to many: what it costs in /dev/shm, that nothing is lost, and that what is over is forgotten.
 *   crowds all COUNT       COUNT processes, each sends a few small messages to each
 *   crowds hub COUNT       COUNT endpoints send to one
 *   crowds guests COUNT    clients come and go, COUNT of them: their server does not grow
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "die.h"
#include "ends.h"

enum { ROUNDS = 4, BYTES = 8, DEADLINE = 900 };

/* What all processes see. */
static struct common {
	unsigned arrived;
	unsigned failed;
	size_t bytes; /* in /dev/shm */
	struct name names[];
} *common;

static const struct wish wish = {
	.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .mode = CONTEXTS, .threading = FI_THREAD_DOMAIN, .cq_size = 4096,
};
static struct base base;

void say_who(void)
{
	fprintf(stderr, "process %d, ", (int) getpid());
}

/* Each with a vector of its own. */
static void come(struct end *end)
{
	end->av = new_av(&base);
	open_end(end, &base, &wish);
}

/* Reads one completion. Meanwhile others make progress, one after the other: COUNT of them. The next call goes on there. */
static struct fi_cq_tagged_entry next_among(struct end *end, struct end *others, int count)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;
	static unsigned turn;

	while ((ret = fi_cq_read(end->cq, &entry, 1)) == -FI_EAGAIN) {
		if (count == 0)
			sched_yield();
		else if (fi_cq_read(others[++turn % (unsigned) count].cq, NULL, 0) == -FI_EAVAIL)
			DIE("end %u has no way to its peer", turn % (unsigned) count);
	}
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(end->cq, &err, 0);
		DIE("an operation failed: %s", fi_strerror(err.err));
	}
	if (ret != 1)
		DIE("fi_cq_read: %zd", ret);
	return entry;
}

static struct fi_cq_tagged_entry next(struct end *end)
{
	return next_among(end, NULL, 0);
}

/* Injects. It may take a connection, which the receiver must look after. */
static void send_one(struct end *end, fi_addr_t to, uint64_t tag, uint64_t value, struct end *receiver)
{
	ssize_t ret;

	while ((ret = fi_tinject(end->ep, &value, BYTES, to, tag)) == -FI_EAGAIN) {
		fi_cq_read(end->cq, NULL, 0);
		if (receiver)
			fi_cq_read(receiver->cq, NULL, 0);
	}
	if (ret)
		DIE("fi_tinject: %s", fi_strerror((int) -ret));
}

/* Bytes that the files which this process has open take in /dev/shm: those of its endpoints. */
static size_t shm_bytes(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat st;
	char target[512];
	size_t sum = 0;
	ssize_t len;

	if (!dir)
		DIE("no /proc/self/fd");
	while ((entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (len < 0 || strncmp(target, "/dev/shm/", 9))
			continue;
		if (!fstat(atoi(entry->d_name), &st) && S_ISREG(st.st_mode))
			sum += (size_t) st.st_blocks * 512;
	}
	closedir(dir);
	return sum;
}

static void meet(unsigned round, unsigned count, struct end *end)
{
	__atomic_fetch_add(&common->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&common->arrived, __ATOMIC_SEQ_CST) < round * count) {
		if (__atomic_load_n(&common->failed, __ATOMIC_SEQ_CST))
			exit(1);
		fi_cq_read(end->cq, NULL, 0);
		sched_yield();
	}
}

/* ---- all to all ---- */

static void one_of_all(int me, int count)
{
	struct fi_context2 *contexts = calloc((size_t) count * ROUNDS, sizeof(*contexts));
	uint64_t *got = calloc((size_t) count * ROUNDS, sizeof(*got));
	fi_addr_t *addrs = calloc((size_t) count, sizeof(*addrs));
	struct end end = { 0 };
	int i, r;

	alarm(DEADLINE);
	open_base(&base, find(&wish));
	come(&end);
	common->names[me] = end.name;
	meet(1, (unsigned) count, &end);
	for (i = 0; i < count; i++)
		addrs[i] = know(end.av, &common->names[i]);
	for (i = 0; i < count * ROUNDS; i++)
		OK(fi_trecv(end.ep, &got[i], BYTES, NULL, addrs[i / ROUNDS], (uint64_t) (i % ROUNDS), 0, &contexts[i]));
	for (r = 0; r < ROUNDS; r++)
		for (i = 0; i < count; i++)
			send_one(&end, addrs[(me + i) % count], (uint64_t) r, (uint64_t) (me * ROUNDS + r + 1), NULL);
	for (i = 0; i < count * ROUNDS; i++)
		next(&end);
	for (i = 0; i < count * ROUNDS; i++)
		if (got[i] != (uint64_t) i + 1)
			DIE("message %d of process %d is %llu", i % ROUNDS, i / ROUNDS, (unsigned long long) got[i]);
	/* All have heard from all, and nobody leaves before everything was counted. */
	meet(2, (unsigned) count, &end);
	__atomic_fetch_add(&common->bytes, shm_bytes(), __ATOMIC_SEQ_CST);
	meet(3, (unsigned) count, &end);
	if (me == 0) {
		/* 2 KiB a direction and a mark, and a few pages for each endpoint: less than 1 GiB for 512 processes. */
		size_t each = (size_t) count * (2048 + 64) + 16 * 4096;

		fprintf(stderr, "%d processes, each with each: %zu KiB in /dev/shm\n", count, common->bytes >> 10);
		if (common->bytes < (size_t) count * (size_t) count * 1024 || common->bytes > (size_t) count * each)
			DIE("%zu bytes in /dev/shm, not %zu", common->bytes, (size_t) count * each);
	}
	meet(4, (unsigned) count, &end);
	close_end(&end);
	close_base(&base);
}

static int all(int count)
{
	int i, status, bad = 0;

	for (i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0)
			DIE("fork");
		if (child == 0) {
			one_of_all(i, count);
			exit(0);
		}
	}
	for (i = 0; i < count; i++) {
		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
			__atomic_store_n(&common->failed, 1, __ATOMIC_SEQ_CST);
			bad = 1;
		}
	}
	return bad;
}

/* ---- many to one ---- */

static int hub(int count)
{
	struct end *ends = calloc((size_t) count, sizeof(*ends));
	fi_addr_t *addrs = calloc((size_t) count, sizeof(*addrs));
	char *seen = calloc((size_t) count, 1);
	struct end server = { 0 };
	int i, r;

	alarm(DEADLINE);
	open_base(&base, find(&wish));
	come(&server);
	for (i = 0; i < count; i++) {
		come(&ends[i]);
		addrs[i] = know(ends[i].av, &server.name);
	}
	for (r = 0; r < 2; r++) {
		memset(seen, 0, (size_t) count);
		for (i = 0; i < count; i++) {
			send_one(&ends[i], addrs[i], 7, (uint64_t) i, &server);
			if (fi_cq_read(ends[i].cq, NULL, 0) == -FI_EAVAIL)
				DIE("sender %d has no way to its peer", i);
		}
		for (i = 0; i < count; i++) {
			struct fi_context2 context;
			uint64_t got = UINT64_MAX;

			OK(fi_trecv(server.ep, &got, BYTES, NULL, FI_ADDR_UNSPEC, 7, 0, &context));
			next_among(&server, ends, count);
			if (got >= (uint64_t) count || seen[got]++)
				DIE("message of sender %llu", (unsigned long long) got);
		}
	}
	for (i = 0; i < count; i++)
		close_end(&ends[i]);
	close_end(&server);
	close_base(&base);
	return 0;
}

/* ---- guests ---- */

/* What this process has of its own. */
static size_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t all, pages = 0, shared = 0;

	if (!file || fscanf(file, "%zu %zu %zu", &all, &pages, &shared) != 3)
		DIE("/proc/self/statm");
	fclose(file);
	return (pages - shared) * (size_t) sysconf(_SC_PAGESIZE);
}

struct question {
	uint64_t number;
	struct name name; /* as much of it as there is */
};

/* One that comes, asks, gets an answer, and goes. The server learns its name from its message, as servers do. */
static void guest(struct end *server, uint64_t number)
{
	struct fi_context2 asked, answered;
	struct question question, got;
	uint64_t answer = 0;
	struct end end = { 0 };
	fi_addr_t to, back;
	ssize_t ret;

	come(&end);
	to = know(end.av, &server->name);
	question.number = number;
	question.name = end.name;
	OK(fi_trecv(server->ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, 1, 0, &asked));
	OK(fi_trecv(end.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, 2, 0, &answered));
	/* It may take a connection, which the server must look after. */
	while ((ret = fi_tinject(end.ep, &question, offsetof(struct question, name.bytes) + end.name.len, to, 1)) ==
	       -FI_EAGAIN)
		fi_cq_read(server->cq, NULL, 0);
	OK(ret);
	/* Each is driven by its own queue alone. */
	next_among(server, &end, 1);
	if (got.number != number)
		DIE("question %llu", (unsigned long long) got.number);
	back = know(server->av, &got.name);
	send_one(server, back, 2, ~number, &end);
	next_among(&end, server, 1);
	if (answer != ~number)
		DIE("answer %llx", (unsigned long long) answer);
	OK(fi_av_remove(server->av, &back, 1, 0));
	close_end(&end);
	/* So that the server sees it go. */
	fi_cq_read(server->cq, NULL, 0);
}

static int guests(long count)
{
	size_t first, last, most = 2 << 20;
	struct end server = { 0 };
	long i, warm = count / 4;

	open_base(&base, find(&wish));
	come(&server);
	for (i = 0; i < warm; i++)
		guest(&server, (uint64_t) i);
	first = resident();
	for (; i < count; i++)
		guest(&server, (uint64_t) i);
	last = resident();
	fprintf(stderr, "%ld guests: %zu KiB, after %ld %zu KiB; %zu KiB in /dev/shm\n", warm, first >> 10, count,
		last >> 10, shm_bytes() >> 10);
	if (last > first && (last - first) > most)
		DIE("%zu bytes grew by %zu with %ld guests", first, last - first, count - warm);
	close_end(&server);
	close_base(&base);
	return 0;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 0;
	size_t size = sizeof(*common) + (size_t) count * sizeof(common->names[0]);

	if (count < 1)
		return 2;
	if (!strcmp(argv[1], "guests"))
		return guests(count);
	if (!strcmp(argv[1], "hub"))
		return hub((int) count);
	common = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED || strcmp(argv[1], "all"))
		return 2;
	return all((int) count);
}

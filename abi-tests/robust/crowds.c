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
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAY_WHO() fprintf(stderr, "process %d, ", (int) getpid())
#include "die.h"

enum { ROUNDS = 4, NAME = 64, BYTES = 8, DEADLINE = 900 };

struct domain {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

struct end {
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	char name[NAME];
};

/* What all processes see. */
static struct common {
	unsigned arrived;
	unsigned failed;
	size_t bytes; /* in /dev/shm */
	char names[][NAME];
} *common;

static struct domain domain;

static void open_domain(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("shm");
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	OK(fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &domain.info));
	fi_freeinfo(hints);
	OK(fi_fabric(domain.info->fabric_attr, &domain.fabric, NULL));
	OK(fi_domain(domain.fabric, domain.info, &domain.domain, NULL));
}

static void open_end(struct end *end)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .size = 4096 };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	size_t len = NAME;

	OK(fi_endpoint(domain.domain, domain.info, &end->ep, NULL));
	OK(fi_cq_open(domain.domain, &cq, &end->cq, NULL));
	OK(fi_av_open(domain.domain, &av, &end->av, NULL));
	OK(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(end->ep, &end->av->fid, 0));
	OK(fi_enable(end->ep));
	OK(fi_getname(&end->ep->fid, end->name, &len));
}

static void close_end(struct end *end)
{
	OK(fi_close(&end->ep->fid));
	OK(fi_close(&end->av->fid));
	OK(fi_close(&end->cq->fid));
}

static fi_addr_t know(struct end *end, const char *name)
{
	fi_addr_t addr;

	if (fi_av_insert(end->av, name, 1, &addr, 0, NULL) != 1)
		DIE("fi_av_insert");
	return addr;
}

/* Reads one completion, waiting if need be. */
static struct fi_cq_tagged_entry next(struct end *end)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(end->cq, &entry, 1)) == -FI_EAGAIN)
		sched_yield();
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(end->cq, &err, 0);
		DIE("an operation failed: %s", fi_strerror(err.err));
	}
	if (ret != 1)
		DIE("fi_cq_read: %zd", ret);
	return entry;
}

static void send_one(struct end *end, fi_addr_t to, uint64_t tag, uint64_t value)
{
	ssize_t ret;

	while ((ret = fi_tinject(end->ep, &value, BYTES, to, tag)) == -FI_EAGAIN)
		fi_cq_read(end->cq, NULL, 0);
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
	struct end end;
	int i, r;

	alarm(DEADLINE);
	open_domain();
	open_end(&end);
	memcpy(common->names[me], end.name, NAME);
	meet(1, (unsigned) count, &end);
	for (i = 0; i < count; i++)
		addrs[i] = know(&end, common->names[i]);
	for (i = 0; i < count * ROUNDS; i++)
		OK(fi_trecv(end.ep, &got[i], BYTES, NULL, addrs[i / ROUNDS], (uint64_t) (i % ROUNDS), 0, &contexts[i]));
	for (r = 0; r < ROUNDS; r++)
		for (i = 0; i < count; i++)
			send_one(&end, addrs[(me + i) % count], (uint64_t) r, (uint64_t) (me * ROUNDS + r + 1));
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
	struct end server;
	int i, r;

	alarm(DEADLINE);
	open_domain();
	open_end(&server);
	for (i = 0; i < count; i++) {
		open_end(&ends[i]);
		addrs[i] = know(&ends[i], server.name);
	}
	for (r = 0; r < 2; r++) {
		memset(seen, 0, (size_t) count);
		for (i = 0; i < count; i++) {
			send_one(&ends[i], addrs[i], 7, (uint64_t) i);
			if (fi_cq_read(ends[i].cq, NULL, 0) == -FI_EAVAIL)
				DIE("sender %d has no way to its peer", i);
		}
		for (i = 0; i < count; i++) {
			struct fi_context2 context;
			uint64_t got = UINT64_MAX;

			OK(fi_trecv(server.ep, &got, BYTES, NULL, FI_ADDR_UNSPEC, 7, 0, &context));
			next(&server);
			if (got >= (uint64_t) count || seen[got]++)
				DIE("message of sender %llu", (unsigned long long) got);
		}
	}
	for (i = 0; i < count; i++)
		close_end(&ends[i]);
	close_end(&server);
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

/* One that comes, asks, gets an answer, and goes. The server learns its name from its message, as servers do. */
static void guest(struct end *server, uint64_t number)
{
	struct fi_context2 asked, answered;
	struct { uint64_t number; char name[NAME]; } question, got;
	uint64_t answer = 0;
	struct end end;
	fi_addr_t to, back;

	open_end(&end);
	to = know(&end, server->name);
	memset(&question, 0, sizeof(question));
	question.number = number;
	memcpy(question.name, end.name, NAME);
	OK(fi_trecv(server->ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, 1, 0, &asked));
	OK(fi_trecv(end.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, 2, 0, &answered));
	OK(fi_tinject(end.ep, &question, sizeof(question), to, 1));
	next(server);
	if (got.number != number)
		DIE("question %llu", (unsigned long long) got.number);
	back = know(server, got.name);
	send_one(server, back, 2, ~number);
	next(&end);
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
	struct end server;
	long i, warm = count / 4;

	open_domain();
	open_end(&server);
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
	return 0;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 0;
	size_t size = sizeof(*common) + (size_t) count * NAME;

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

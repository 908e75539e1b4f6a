/*
 * A process that writes into another's memory in place is stopped at random moments (SIGSTOP), and the other closes what it
 * is at: regions, and in the end the endpoint. Every close ends, with 0 or -FI_EBUSY; after 0 the memory is not touched
 * again, whatever the stopped process does when it goes on; other regions come and go all the while.
 *   stops [ROUNDS [SEED]]
 */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN ((size_t) 4 << 20)
#define FREE 0xc7 /* what closed memory is filled with */
#define SECONDS 300 /* for what hangs */

#define FAIL(...) (fprintf(stderr, "line %d: ", __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#define CHECK(what) do { if (!(what)) FAIL("%s", #what); } while (0)
#define OK(call) do { long got_ = (long) (call); if (got_) FAIL("%s: %ld", #call, got_); } while (0)

/* What both processes see. */
static volatile struct {
	uint64_t key; /* the region to be written to */
	uint64_t ended; /* operations */
	bool over;
} *common;

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[256];
};

static void open_end(struct end *end)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	size_t len = sizeof end->name;

	CHECK(hints);
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("shm");
	OK(fi_getinfo(FI_VERSION(1, 21), NULL, NULL, 0, hints, &end->info));
	fi_freeinfo(hints);
	OK(fi_fabric(end->info->fabric_attr, &end->fabric, NULL));
	OK(fi_domain(end->fabric, end->info, &end->domain, NULL));
	OK(fi_av_open(end->domain, &av, &end->av, NULL));
	OK(fi_cq_open(end->domain, &cq, &end->cq, NULL));
	OK(fi_endpoint(end->domain, end->info, &end->ep, NULL));
	OK(fi_ep_bind(end->ep, &end->av->fid, 0));
	OK(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(end->ep));
	OK(fi_getname(&end->ep->fid, end->name, &len));
}

/* Whether an operation has ended, well or not. */
static bool drive(struct end *end)
{
	struct fi_cq_entry entry;
	struct fi_cq_err_entry error = { 0 };
	ssize_t got = fi_cq_read(end->cq, &entry, 1);

	if (got == -FI_EAVAIL)
		got = fi_cq_readerr(end->cq, &error, 0);
	return got > 0;
}

static void write_all_the_time(int from_parent)
{
	struct end end;
	fi_addr_t peer;
	char name[256], *local = malloc(LEN);

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL) && local);
	memset(local, 1, LEN);
	open_end(&end);
	CHECK(read(from_parent, name, sizeof name) == sizeof name);
	CHECK(fi_av_insert(end.av, name, 1, &peer, 0, NULL) == 1);
	while (!common->over) {
		ssize_t got = fi_write(end.ep, local, LEN, NULL, peer, 0, common->key, NULL);

		while (got == 0 && !common->over && !drive(&end))
			;
		if (got == -FI_EAGAIN)
			drive(&end);
		else
			common->ended++;
	}
	_exit(0);
}

/* Until the child has ended so many more operations. */
static void child_goes_on(struct end *end, uint64_t more)
{
	uint64_t before = common->ended;

	while (common->ended - before < more)
		drive(end);
}

static char *memory(void)
{
	int fd = memfd_create("stops", MFD_CLOEXEC);
	char *at;

	CHECK(fd >= 0 && !ftruncate(fd, LEN));
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

static struct fid_mr *registered(struct end *end, char *at, uint64_t key)
{
	struct fid_mr *mr;

	OK(fi_mr_reg(end->domain, at, LEN, FI_REMOTE_WRITE, 0, key, 0, &mr, NULL));
	return mr;
}

static void stop(pid_t child)
{
	int status;

	CHECK(!kill(child, SIGSTOP));
	CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
}

/* Closes a region that a process may be in that is stopped now; afterwards it goes on. Says whether it was. */
static bool close_under(pid_t child, struct fid_mr *mr)
{
	int got = fi_close(&mr->fid);
	bool busy = got == -FI_EBUSY;

	CHECK(got == 0 || busy);
	CHECK(!kill(child, SIGCONT));
	while (got == -FI_EBUSY)
		got = fi_close(&mr->fid);
	CHECK(got == 0);
	return busy;
}

static void is_untouched(const char *at)
{
	size_t byte;

	for (byte = 0; byte < LEN; byte++)
		if ((unsigned char) at[byte] != FREE)
			FAIL("byte %zu of closed memory was written", byte);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10, pipes[2], round, busy = 0;
	char *at[2];
	struct end end;
	struct fid_mr *mr;
	pid_t child;

	srand(argc > 2 ? (unsigned) atoi(argv[2]) : 1);
	alarm(SECONDS);
	common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(common != MAP_FAILED && !pipe(pipes));
	common->key = 1;
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		write_all_the_time(pipes[0]);
	open_end(&end);
	at[0] = memory();
	at[1] = memory();
	mr = registered(&end, at[0], 1);
	CHECK(write(pipes[1], end.name, sizeof end.name) == sizeof end.name);
	for (round = 0; round < rounds; round++) {
		char *now = at[round % 2], *next = at[(round + 1) % 2];
		uint64_t key = (uint64_t) round + 2;
		volatile int spin;
		struct fid_mr *other;

		child_goes_on(&end, 3);
		for (spin = rand() % 200000; spin > 0; spin--)
			;
		stop(child);
		/* Nobody else is kept from anything. */
		other = registered(&end, next, 1000 + key);
		OK(fi_close(&other->fid));
		busy += close_under(child, mr);
		memset(now, FREE, LEN);
		mr = registered(&end, next, key);
		common->key = key;
		child_goes_on(&end, 3);
		is_untouched(now);
	}
	/* The endpoint closes at once; the memory is the region's. */
	child_goes_on(&end, 1);
	stop(child);
	OK(fi_close(&end.ep->fid));
	busy += close_under(child, mr);
	memset(at[rounds % 2], FREE, LEN);
	common->over = true;
	CHECK(waitpid(child, NULL, 0) == child);
	is_untouched(at[rounds % 2]);
	OK(fi_close(&end.cq->fid));
	OK(fi_close(&end.av->fid));
	OK(fi_close(&end.domain->fid));
	OK(fi_close(&end.fabric->fid));
	fi_freeinfo(end.info);
	printf("busy %d times of %d\n", busy, rounds + 1);
	return 0;
}

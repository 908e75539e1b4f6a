/* Registered memory: how much may be locked (RLIMIT_MEMLOCK), and what fork does to it. */
#include <rdma/fi_rma.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "connected.h"

static char ours[1 << 20] __attribute__((aligned(4096)));

/* Whoever may not lock more is told so by an errno; the log says which limit that is. Less can be registered still. */
static void locked_memory_has_a_limit(void)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };
	struct rlimit limit = { 65536, 65536 };
	struct fid_mr *mr;
	struct wired w;
	int ret;

	memset(&w, 0, sizeof(w));
	open_wires(&w, &s);
	OK(fi_close(&w.bed.mine->fid));
	w.bed.mine = NULL;
	OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	OK(seteuid(65534)); /* root may lock what it wants */
	ret = fi_mr_reg(w.bed.domain, ours, sizeof(ours), FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL);
	CHECK(ret == -FI_ENOMEM, "%d", ret);
	OK(fi_mr_reg(w.bed.domain, ours, 4096, FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL));
	OK(fi_close(&mr->fid));
	OK(seteuid(0));
	close_wires(&w);
}

/* A child that writes to registered memory has a copy of its own, and the parent's stays the one that the card knows. */
static void a_fork_leaves_the_parents_memory_alone(void)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };
	struct fid_mr *mr;
	struct wired w;
	size_t half = sizeof(ours) / 2;
	int status;
	pid_t child;

	memset(&w, 0, sizeof(w));
	open_exchange(&w, &s);
	join_sides(&w, 0, 1);
	OK(fi_mr_reg(w.bed.domain, ours, sizeof(ours), FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	fill(ours, half, 1);
	child = fork();
	CHECK(child >= 0, "fork");
	if (!child) {
		memset(ours, 7, sizeof(ours));
		_exit(0);
	}
	/* Written by both: without care the card would go on with pages that the parent has no more. */
	fill(ours, half, 2);
	CHECK(waitpid(child, &status, 0) == child && status == 0, "the child's status %d", status);
	POST(&w.bed, fi_write(w.bed.side[0].ep, ours, half, NULL, 0, (uint64_t) ours + half, fi_mr_key(mr), ctx(1)));
	COMPLETION(&w.bed, w.bed.side[0].tx, ctx(1));
	SAME(ours + half, half, 2);
	OK(fi_close(&mr->fid));
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(locked_memory_has_a_limit), TEST(a_fork_leaves_the_parents_memory_alone),
};

CASES(tests)

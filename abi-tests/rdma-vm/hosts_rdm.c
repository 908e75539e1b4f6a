/*
 * One of two hosts with a card each, as `hosts.c`, but with reliable endpoints (verbs;ofi_rxm): the second streams to the
 * first short messages, long ones that the first reads from it, and reads of its own. In mid-transfer something happens.
 *   hosts_rdm listen ADDRESS
 *   hosts_rdm send ADDRESS PEER BASE KEY COMMAND [REPAIR]
 * BASE and KEY: of the memory to read, as the first says it. All must end then, in error at last, and so must one more
 * message; after REPAIR messages go again.
 */
#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "die.h"
#include "ends.h"

#define PORT 7472
#define WINDOW 6
#define SHORT 8192
#define LONG (256 << 10)
#define BEFORE 200 /* operations */
#define GIVE_UP_S 60

static char memory[WINDOW][LONG], remote[SHORT];
static struct base base;
static struct end end;
static struct fid_mr *mr;
static time_t until;

static void look_at_the_time(const char *what)
{
	if (time(NULL) > until)
		DIE("%s: nothing happens", what);
}

static void open_all(const char *own)
{
	char service[16];
	struct wish wish = { .provider = "verbs;ofi_rxm", .node = own, .service = service, .caps = FI_MSG | FI_RMA,
			     .mode = CONTEXTS, .cq_size = 64,
			     .mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY };

	snprintf(service, sizeof(service), "%d", PORT);
	open_base(&base, find(&wish));
	OK(fi_mr_reg(base.domain, remote, sizeof(remote), FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	open_end(&end, &base, &wish);
	printf("%s on %s\n", own, base.info->domain_attr->name);
}

/* The byte at a place of a message or of the remote memory says which one it is. */
static void fill(char *at, size_t len, int seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (char) (seed + (int) i % 251);
}

static bool is_filled(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != (char) (at[0] + (int) i % 251))
			return false;
	return true;
}

static void receive(char *at)
{
	OK(fi_recv(end.ep, at, LONG, NULL, FI_ADDR_UNSPEC, at));
}

/* Until it is killed. */
static void listens(const char *own)
{
	bool based = false;

	open_all(own);
	based = base.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	fill(remote, sizeof(remote), 7);
	for (int i = 0; i < WINDOW; i++)
		receive(memory[i]);
	printf("LISTENING %d %llu %llu\n", (int) getpid(), (unsigned long long) (based ? (uintptr_t) remote : 0),
	       (unsigned long long) fi_mr_key(mr));
	fflush(stdout);
	for (;;) {
		struct fi_cq_tagged_entry done;
		struct fi_cq_err_entry error = { 0 };
		ssize_t ret = fi_cq_read(end.cq, &done, 1);

		if (ret == -FI_EAVAIL) {
			/* A message that had begun to come when the link broke. */
			MUST(fi_cq_readerr(end.cq, &error, 0) == 1 && error.err > 0);
			receive(error.op_context);
		} else if (ret == 1) {
			if (!is_filled(done.op_context, done.len))
				DIE("a message of %zu bytes is wrong", done.len);
			receive(done.op_context);
		}
	}
}

/* ---- the other ---- */

static fi_addr_t peer;
static struct {
	uint64_t base, key;
} region;
static bool busy[WINDOW];
static int posted, ended, failed;

static void post(void)
{
	char *at;
	ssize_t ret;
	int i = 0;

	while (busy[i])
		i++;
	at = memory[i];
	fill(at, LONG, posted);
	if (posted % 3 == 2)
		ret = fi_read(end.ep, at, SHORT, NULL, peer, region.base, region.key, at);
	else
		ret = fi_send(end.ep, at, posted % 3 ? LONG : SHORT, NULL, peer, at);
	if (ret && ret != -FI_EAGAIN)
		DIE("operation %d: %zd", posted, ret);
	busy[i] = !ret;
	posted += !ret;
}

static void is_free(const void *at)
{
	busy[((const char *) at - memory[0]) / LONG] = false;
	ended++;
}

/* Takes what has ended. */
static void reap(void)
{
	struct fi_cq_tagged_entry done;
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret = fi_cq_read(end.cq, &done, 1);

	look_at_the_time("operations");
	if (ret == -FI_EAVAIL) {
		MUST(fi_cq_readerr(end.cq, &error, 0) == 1 && error.err > 0);
		if (!failed++)
			printf("first error: %s\n", fi_strerror(error.err));
		is_free(error.op_context);
	} else if (ret == 1) {
		MUST(!(done.flags & FI_READ) || (is_filled(done.op_context, SHORT) && *(char *) done.op_context == 7));
		is_free(done.op_context);
	}
}

static void run(const char *command)
{
	int status = system(command);

	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One message: whether it went well. */
static bool goes(void)
{
	int had = failed, first = posted;

	while (posted == first) {
		post();
		reap();
	}
	while (ended < posted)
		reap();
	return failed == had;
}

static void sends(const char *own, const char *to, char **rest, bool repaired)
{
	struct name name = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	time_t disturbed;

	open_all(own);
	MUST(inet_pton(AF_INET, to, &sin.sin_addr) == 1);
	memcpy(name.bytes, &sin, sizeof(sin));
	peer = know(base.av, &name);
	region.base = strtoull(rest[0], NULL, 10);
	region.key = strtoull(rest[1], NULL, 10);
	while (ended < BEFORE) {
		if (posted - ended < WINDOW)
			post();
		reap();
	}
	if (failed)
		DIE("%d of %d operations fail before anything has happened", failed, ended);
	while (posted - ended < WINDOW)
		post();
	run(rest[2]);
	disturbed = time(NULL);
	while (!failed) {
		if (posted - ended < WINDOW)
			post();
		reap();
	}
	while (ended < posted)
		reap();
	if (goes())
		DIE("a message goes to nobody");
	printf("ok %d operations ended, %d of them in error, %ld s after the disturbance", ended, failed,
	       (long) (time(NULL) - disturbed));
	if (repaired) {
		run(rest[3]);
		while (!goes())
			;
		printf("; then one went again");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	until = time(NULL) + GIVE_UP_S;
	MUST(argc == 3 || argc == 7 || argc == 8);
	if (argc == 3)
		listens(argv[2]);
	else
		sends(argv[2], argv[3], argv + 4, argc == 8);
	return 0;
}

/*
 * Three members send, receive and write to one another: two are neighbours on host 1, the third is alone on host 2. One of
 * them is killed in the middle of it. Each of the others is told of all that it had under way with that one, and goes on
 * with whoever lives; nothing is left in the hosts' /dev/shm. With provider auto a member has peers of both ways.
 */
#define _GNU_SOURCE
#include "stations.h"
#include <dirent.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { MEMBERS = 3, AT_ONCE = 4, LONGEST = 200000, KEY = 7, TAG = 1 };

/* What a member says of one of its peers. */
struct account {
	_Atomic uint64_t received, written;
	_Atomic uint32_t to_it; /* sends and writes that are under way */
	_Atomic uint32_t send_errors, receive_errors, write_errors;
};

struct member {
	int host;
	pid_t pid;
	struct name name;
	_Atomic bool open;
	struct account with[MEMBERS];
};

static struct company {
	struct member members[MEMBERS];
	_Atomic bool is_over;
} *company;

enum kind { RECEIVE, SEND, WRITE, KINDS };

struct op {
	struct fi_context2 context; /* first: the completion has its address */
	enum kind kind;
	int peer;
	bool under_way;
	uint64_t number;
	unsigned char bytes[LONGEST];
};

/* A member's own. */
static struct base base;
static struct end end;
static struct op *ops[MEMBERS][KINDS];
static uint64_t begun[MEMBERS][KINDS];
static struct member *me;

/* ---- a member's process ---- */

static size_t size_of(uint64_t number)
{
	static const size_t sizes[] = { 16, 5000, 64, 40000, 9000, LONGEST, 300 };

	return sizes[number % (sizeof(sizes) / sizeof(*sizes))];
}

static unsigned char byte_of(uint64_t number, int from)
{
	return (unsigned char) (number * 3 + (uint64_t) from + 1);
}

static _Atomic uint32_t *errors(struct account *account, enum kind kind)
{
	return kind == RECEIVE ? &account->receive_errors : kind == SEND ? &account->send_errors : &account->write_errors;
}

/* Posts it, unless there is no room. What cannot reach the peer is not tried again. */
static void post(struct op *op, fi_addr_t peer)
{
	struct account *account = &me->with[op->peer];
	uint64_t number = begun[op->peer][op->kind];
	ssize_t ret;

	if (op->under_way || *errors(account, op->kind))
		return;
	if (op->kind == RECEIVE) {
		ret = fi_trecv(end.ep, op->bytes, LONGEST, NULL, peer, TAG, 0, op);
	} else {
		memset(op->bytes, byte_of(number, (int) (me - company->members)), size_of(number));
		ret = op->kind == SEND ? fi_tsend(end.ep, op->bytes, size_of(number), NULL, peer, TAG, op)
				       : fi_write(end.ep, op->bytes, size_of(number), NULL, peer, 0, KEY, op);
	}
	if (ret == -FI_EAGAIN)
		return;
	if (ret) {
		(*errors(account, op->kind))++;
		return;
	}
	op->number = number;
	op->under_way = true;
	account->to_it += op->kind != RECEIVE;
	begun[op->peer][op->kind]++;
}

/* Receives of one peer are matched in the order in which they were posted, and its messages in the order they were sent. */
static void look_at(const struct op *op, size_t len)
{
	unsigned char wanted = byte_of(op->number, op->peer);

	CHECK(len == size_of(op->number), "message %lu of member %d has %zu bytes", (unsigned long) op->number, op->peer, len);
	for (size_t at = 0; at < len; at++)
		CHECK(op->bytes[at] == wanted, "message %lu of member %d is wrong at byte %zu", (unsigned long) op->number,
		      op->peer, at);
}

static void progress_of(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry failed = { 0 };
	ssize_t ret = fi_cq_read(end.cq, &entry, 1);
	struct op *op;

	if (ret == -FI_EAGAIN)
		return;
	if (ret == -FI_EAVAIL) {
		GIVES(1, fi_cq_readerr(end.cq, &failed, 0));
		op = failed.op_context;
		CHECK(op && failed.err, "an error of no operation, or none: %d", failed.err);
		(*errors(&me->with[op->peer], op->kind))++;
	} else {
		GIVES(1, ret);
		op = entry.op_context;
		if (op->kind == RECEIVE) {
			look_at(op, entry.len);
			me->with[op->peer].received++;
		} else if (op->kind == WRITE) {
			me->with[op->peer].written++;
		}
	}
	op->under_way = false;
	me->with[op->peer].to_it -= op->kind != RECEIVE;
}

static void each_op(void (*what)(struct op *op, fi_addr_t peer), const fi_addr_t *addresses)
{
	for (int peer = 0; peer < MEMBERS; peer++)
		for (int kind = 0; kind < KINDS; kind++)
			for (int i = 0; ops[peer][kind] && i < AT_ONCE; i++)
				what(&ops[peer][kind][i], addresses[peer]);
}

static void know_all(fi_addr_t *addresses)
{
	for (int peer = 0; peer < MEMBERS; peer++) {
		if (&company->members[peer] == me)
			continue;
		while (!company->members[peer].open)
			nap();
		addresses[peer] = know(base.av, &company->members[peer].name);
		for (int kind = 0; kind < KINDS; kind++) {
			ops[peer][kind] = calloc(AT_ONCE, sizeof(struct op));
			CHECK(ops[peer][kind], "no memory");
			for (int i = 0; i < AT_ONCE; i++) {
				ops[peer][kind][i].kind = (enum kind) kind;
				ops[peer][kind][i].peer = peer;
			}
		}
	}
}

/* Opens an endpoint on a host. */
static void arrive(int host)
{
	char node[32];
	struct wish wish = { .provider = provider, .node = node, .mode = CONTEXTS, .msg_order = FI_ORDER_SAS,
			     .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV, .cq_size = 256 };

	enter_host(host);
	snprintf(node, sizeof(node), "10.77.0.%d", host);
	open_base(&base, find(&wish));
	open_end(&end, &base, &wish);
}

static void live(void)
{
	static unsigned char area[LONGEST];
	fi_addr_t addresses[MEMBERS] = { 0 };
	struct fid_mr *region;

	arrive(me->host);
	OK(fi_mr_reg(base.domain, area, LONGEST, FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
	me->name = end.name;
	me->open = true;
	know_all(addresses);
	while (!company->is_over) {
		each_op(post, addresses);
		for (int i = 0; i < 8; i++)
			progress_of();
	}
	close_end(&end);
	shut(region);
	close_base(&base);
	_exit(0);
}

/* ---- the test's side ---- */

static void begin_member(int number)
{
	pid_t parent = getpid(), child;

	fflush(stdout);
	child = fork();
	CHECK(child >= 0, "no process");
	if (child) {
		company->members[number].pid = child;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	me = &company->members[number];
	if (getppid() == parent)
		live();
	_exit(1);
}

static void begin_all(void)
{
	static const int hosts[MEMBERS] = { 1, 1, 2 };

	company = mmap(NULL, sizeof(*company), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(company != MAP_FAILED, "no memory");
	for (int i = 0; i < MEMBERS; i++)
		company->members[i].host = hosts[i];
	for (int i = 0; i < MEMBERS; i++)
		begin_member(i);
}

/* Whoever has ended without being told to has failed. */
static void look_after_all(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == CASE_FAILED)
		_exit(CASE_FAILED);
	CHECK(pid <= 0, "a member ended by itself, status %x", status);
}

static const char *books(void)
{
	static char text[2000];
	size_t len = 0;

	for (int of = 0; of < MEMBERS; of++)
		for (int with = 0; with < MEMBERS; with++) {
			struct account *account = &company->members[of].with[with];

			if (of != with)
				len += (size_t) snprintf(text + len, sizeof(text) - len,
							 "%d with %d: %lu received, %lu written, %u under way, %u %u %u failed; ", of, with,
							 (unsigned long) account->received, (unsigned long) account->written,
							 account->to_it, account->receive_errors, account->send_errors, account->write_errors);
		}
	return text;
}

#define UNTIL_ALL(condition)                                                                           \
	do {                                                                                           \
		long until_ = now_ms() + PATIENCE_MS;                                                  \
		while (!(condition)) {                                                                 \
			look_after_all();                                                              \
			CHECK(now_ms() < until_, "not so after %d s: %s (%s)", PATIENCE_MS / 1000, #condition, books()); \
			nap();                                                                         \
		}                                                                                      \
	} while (0)

/* Each of two has had so much of the other. */
static bool have_had(int a, int b, uint64_t count)
{
	struct account *of_a = &company->members[a].with[b], *of_b = &company->members[b].with[a];

	return of_a->received > count && of_b->received > count && of_a->written > count && of_b->written > count;
}

/* Each operation to a lost peer has ended, and those that were last in error. Receives from it may wait for a peer that comes
 * again at its address. */
static bool knows_of_loss(int who, int of)
{
	struct account *account = &company->members[who].with[of];

	return account->send_errors && account->write_errors && !account->to_it;
}

/* Whoever comes to a host clears away what the dead left there. */
static void nothing_is_left(int host)
{
	struct dirent *entry;
	int status;
	DIR *dir;

	fflush(stdout);
	if (fork() == 0) {
		arrive(host);
		close_end(&end);
		close_base(&base);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0, "whoever came to h%d ended with status %x", host, status);
	dir = opendir(shm_of(host));

	CHECK(dir, "no %s", shm_of(host));
	while ((entry = readdir(dir)))
		CHECK(strncmp(entry->d_name, "libfabric", 9), "h%d: /dev/shm/%s is left", host, entry->d_name);
	closedir(dir);
}

static void without(int victim)
{
	int a = (victim + 1) % MEMBERS, b = (victim + 2) % MEMBERS, status;
	struct account *pair;
	uint64_t had;

	begin_all();
	pair = &company->members[a].with[b];
	UNTIL_ALL(have_had(0, 1, 50) && have_had(1, 2, 50) && have_had(2, 0, 50));
	CHECK(!kill(company->members[victim].pid, SIGKILL), "kill");
	CHECK(waitpid(company->members[victim].pid, &status, 0) > 0, "waitpid");
	UNTIL_ALL(knows_of_loss(a, victim) && knows_of_loss(b, victim));
	had = pair->received > pair->written ? pair->received : pair->written;
	had = had > company->members[b].with[a].received ? had : company->members[b].with[a].received;
	UNTIL_ALL(have_had(a, b, had + 50));
	CHECK(!pair->receive_errors && !pair->send_errors && !pair->write_errors, "%s", books());
	company->is_over = true;
	for (int ended = 0; ended < MEMBERS - 1; ended++)
		CHECK(wait(&status) > 0 && status == 0, "a member ended with status %x", status);
	nothing_is_left(1);
	nothing_is_left(2);
}

static void a_neighbour_is_killed(void)
{
	without(0);
}

static void the_one_far_away_is_killed(void)
{
	without(2);
}

static const struct test tests[] = {
	TEST(a_neighbour_is_killed),
	TEST(the_one_far_away_is_killed),
};
CASES(tests)

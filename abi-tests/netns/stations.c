#define _GNU_SOURCE
#include "stations.h"
#include "calls.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#define LONGEST 200000
#define REMEMBERED 4096 /* numbers, to see one that comes twice */

#define MUST(condition) CHECK(condition, "not so: %s", #condition)

struct message {
	uint32_t generation;
	uint64_t number;
	unsigned char body[];
};

struct slot {
	struct fi_context2 context; /* first: the completion has its address */
	bool is_receive;
	uint32_t generation;
	union {
		struct message message;
		unsigned char bytes[LONGEST];
	};
};

static struct base base;
static struct end end;
static struct slot *receives, *sends;
static bool busy[WINDOW];
static uint64_t seen[REMEMBERED]; /* number + 1 */

/* ---- a station's process ---- */

static size_t size_of(uint64_t number)
{
	static const size_t sizes[] = { 24, 1000, 64, 9000, 40000, 100, 70000, LONGEST };

	return sizes[number % (sizeof(sizes) / sizeof(*sizes))];
}

static unsigned char byte_of(uint32_t generation, uint64_t number, size_t at)
{
	return (unsigned char) (number * 31 + generation * 101 + at * 7);
}

const char *shm_of(int host)
{
	static char path[64];

	snprintf(path, sizeof(path), "/run/shm/h%d", host);
	return path;
}

void enter_host(int host)
{
	char path[64];
	int ns;

	snprintf(path, sizeof(path), "/run/netns/h%d", host);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	MUST(ns >= 0 && !setns(ns, CLONE_NEWNET) && !close(ns));
	/* What /sys says of interfaces is the host's too. */
	MUST(!unshare(CLONE_NEWNS) && !mount("none", "/sys", "sysfs", 0, NULL));
	MUST((!mkdir("/run/shm", 0755) || errno == EEXIST) && (!mkdir(shm_of(host), 0700) || errno == EEXIST));
	MUST(!mount(shm_of(host), "/dev/shm", NULL, MS_BIND, NULL));
}

static void go_to(const struct station *me)
{
	static const char retries[] = "/proc/sys/net/ipv4/tcp_retries2";
	FILE *setting;

	if (all_here())
		return;
	enter_host(me->host);
	/* What a case sets is the host's, and stays: 15 is the system's. */
	setting = fopen(retries, "w");
	MUST(setting && fprintf(setting, "%d", me->tcp_retries ? me->tcp_retries : 15) > 0 && !fclose(setting));
}

static void count_error(struct station *me, _Atomic uint32_t *count, int error)
{
	if (!me->error)
		me->error = error;
	(*count)++;
}

static void post_receive(struct station *me, struct slot *slot)
{
	ssize_t ret;
	long until = now_ms() + PATIENCE_MS;

	slot->is_receive = true;
	while ((ret = fi_recv(end.ep, slot->bytes, LONGEST, NULL, FI_ADDR_UNSPEC, slot)) == -FI_EAGAIN && now_ms() < until)
		;
	/* The connection is over. */
	if (me->connected && ret == -FI_ENOTCONN)
		return;
	OK(ret);
	me->receiving++;
}

/* Whoever could not send to a peer waits for orders: nothing else would be told of. */
static void send_what_fits(struct station *me)
{
	unsigned generation = me->generation; /* the test may count on meanwhile */

	for (int i = 0; i < WINDOW && !me->send_errors; i++) {
		struct slot *slot = &sends[i];
		uint64_t number = me->posted;
		size_t size = size_of(number);
		ssize_t ret;

		if (busy[i])
			continue;
		slot->message.generation = slot->generation = generation;
		slot->message.number = number;
		for (size_t at = sizeof(struct message); at < size; at++)
			slot->bytes[at] = byte_of(generation, number, at);
		ret = fi_send(end.ep, slot->bytes, size, NULL, end.addr, slot);
		if (ret == -FI_EAGAIN)
			return;
		if (ret) {
			count_error(me, &me->send_errors, (int) -ret);
			return;
		}
		busy[i] = true;
		me->posted++;
	}
}

static void take(struct station *me, struct slot *slot, size_t len)
{
	uint64_t number = slot->message.number;
	unsigned generation = me->generation; /* the test may count on meanwhile */

	MUST(len >= sizeof(struct message));
	/* Of a peer that is no more: something of it may come late to who knew it. */
	if (slot->message.generation < generation && me->met)
		return;
	CHECK(slot->message.generation == generation, "host %d: a message of stream %u in stream %u",
	      me->host, slot->message.generation, generation);
	CHECK(len == size_of(number), "host %d: message %lu has %zu bytes", me->host, (unsigned long) number, len);
	for (size_t at = sizeof(struct message); at < len; at++)
		CHECK(slot->bytes[at] == byte_of(generation, number, at),
		      "host %d: message %lu is wrong at byte %zu", me->host, (unsigned long) number, at);
	CHECK(seen[number % REMEMBERED] <= number, "host %d: message %lu came twice", me->host, (unsigned long) number);
	seen[number % REMEMBERED] = number + 1;
	me->received++;
}

static void progress_of(struct station *me)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry failed = { 0 };
	struct slot *slot;
	ssize_t ret = fi_cq_read(end.cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return;
	if (ret == -FI_EAVAIL) {
		ret = fi_cq_readerr(end.cq, &failed, 0);
		MUST(ret == 1);
		slot = failed.op_context;
		/* An error that is of no operation says nothing of one. */
		if (!slot)
			return;
		count_error(me, slot->is_receive ? &me->receive_errors : &me->send_errors, failed.err);
	} else {
		MUST(ret == 1);
		slot = entry.op_context;
		if (slot->is_receive)
			take(me, slot, entry.len);
		else if (slot->generation == me->generation)
			me->sent++;
	}
	if (!slot->is_receive) {
		busy[slot - sends] = false;
		return;
	}
	MUST(me->receiving > 0);
	me->receiving--;
	post_receive(me, slot);
}

static bool has_sends(void)
{
	for (int i = 0; i < WINDOW; i++)
		if (busy[i])
			return true;
	return false;
}

static void meet_peer(struct station *me)
{
	struct name name = me->peer->name;

	if (!me->met || !me->keeps_address) {
		if (me->met)
			OK(fi_av_remove(base.av, &end.addr, 1, 0));
		end.addr = know(base.av, &name);
	}
	memset(seen, 0, sizeof(seen));
	me->posted = me->sent = me->received = 0;
	me->send_errors = me->receive_errors = 0;
	me->error = 0;
	me->met = me->generation;
}

static void live(struct station *me)
{
	struct wish wish = { .provider = provider, .caps = FI_MSG, .node = me->node, .service = me->service, .mode = CONTEXTS,
			     .msg_order = FI_ORDER_SAS, .cq_size = 4 * WINDOW, .ep_type = me->connected ? FI_EP_MSG : FI_EP_RDM };

	go_to(me);
	receives = calloc(WINDOW, sizeof(*receives));
	sends = calloc(WINDOW, sizeof(*sends));
	MUST(receives && sends);
	open_base(&base, find(&wish));
	if (me->connected) {
		open_connected_end(&end, me, &base, &wish);
		me->met = me->generation;
	} else {
		open_end(&end, &base, &wish);
		me->name = end.name;
		me->open = true;
	}
	for (int i = 0; i < WINDOW; i++)
		post_receive(me, &receives[i]);
	while (me->order != CLOSE) {
		if (me->order == MEET && me->met != me->generation && !has_sends() && me->peer->open) {
			meet_peer(me);
		} else if (me->order == STREAM) {
			me->idle = false;
			send_what_fits(me);
		} else if (me->order == DRAIN) {
			me->idle = !has_sends();
		}
		progress_of(me);
		if (me->connected)
			me->shutdowns += new_shutdowns();
	}
	close_end(&end);
	close_calls();
	close_base(&base);
	_exit(0);
}

/* ---- the test's side ---- */

void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

const char *all_here(void)
{
	return getenv("STATIONS_AT");
}

struct station *two_stations(void)
{
	struct station *two = mmap(NULL, 2 * sizeof(*two), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(two != MAP_FAILED, "no memory");
	for (int i = 0; i < 2; i++) {
		two[i].host = i + 1;
		two[i].node = all_here() ? all_here() : i ? "10.77.0.2" : "10.77.0.1";
		two[i].order = MEET;
		two[i].generation = 1;
		two[i].peer = &two[!i];
	}
	return two;
}

void begin(struct station *station)
{
	pid_t parent = getpid(), child;

	station->open = station->idle = false;
	station->met = 0;
	fflush(stdout);
	child = fork();
	CHECK(child >= 0, "no process");
	if (child) {
		station->pid = child;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		live(station);
	_exit(1);
}

void kill_station(struct station *station, int signal)
{
	CHECK(station->pid > 0 && !kill(station->pid, signal), "kill: host %d's process is not there", station->host);
}

void bury(struct station *station)
{
	int status;

	CHECK(waitpid(station->pid, &status, 0) == station->pid, "host %d's process is not there", station->host);
	station->pid = 0;
	station->open = false;
}

/* It has ended, well or not: whoever found something wrong has said so itself. */
static bool has_ended(struct station *station)
{
	int status;
	pid_t pid = station->pid ? waitpid(station->pid, &status, WNOHANG) : -1;

	if (pid == 0)
		return false;
	if (pid < 0)
		return true;
	station->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == CASE_FAILED)
		_exit(CASE_FAILED);
	CHECK(status == 0, "the process on host %d ended with %s %d", station->host,
	      WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return true;
}

void look_after(struct station *station)
{
	if (station->pid)
		CHECK(!has_ended(station), "the process on host %d ended by itself", station->host);
}

void ends_well(struct station *station)
{
	long until = now_ms() + PATIENCE_MS;

	station->order = CLOSE;
	while (!has_ended(station)) {
		CHECK(now_ms() < until, "the process on host %d does not close: %s", station->host, counts(station, station->peer));
		nap();
	}
}

void nothing_is_lost(struct station *a, struct station *b)
{
	a->order = b->order = DRAIN;
	UNTIL_SO(a, b, a->idle && b->idle && a->received == b->posted && b->received == a->posted);
	CHECK(!a->send_errors && !b->send_errors && !a->receive_errors && !b->receive_errors, "errors: %s", counts(a, b));
	ends_well(a);
	ends_well(b);
}

void until_still(struct station *a, struct station *b)
{
	long since = now_ms(), end = since + PATIENCE_MS;
	uint64_t before = 0, now;

	while (now_ms() - since < 1000) {
		now = a->sent + a->received + b->sent + b->received;
		if (now != before)
			since = now_ms();
		before = now;
		look_after(a);
		look_after(b);
		CHECK(now_ms() < end, "it never stands still: %s", counts(a, b));
		nap();
	}
}

const char *counts(const struct station *a, const struct station *b)
{
	static char text[400];
	const struct station *of[] = { a, b };
	size_t len = 0;

	for (int i = 0; i < 2; i++)
		len += (size_t) snprintf(text + len, sizeof(text) - len,
					 "%shost %d: %lu posted, %lu sent, %lu received, %u sends and %u receives failed%s%s", i ? "; " : "",
					 of[i]->host, (unsigned long) of[i]->posted, (unsigned long) of[i]->sent,
					 (unsigned long) of[i]->received, of[i]->send_errors, of[i]->receive_errors,
					 of[i]->error ? ": " : "", of[i]->error ? fi_strerror(of[i]->error) : "");
	return text;
}

void net(const char *format, ...)
{
	char command[256] = "ip ";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command + 3, sizeof(command) - 3, format, arguments);
	va_end(arguments);
	CHECK(system(command) == 0, "%s", command);
}

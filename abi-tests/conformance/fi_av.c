/* fi_av(3): address vectors. Sentence by sentence, as far as a sentence can be asked. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <time.h>
#include "fabric.h"

static const struct setup usual;

static struct fid_av *open_kind(struct bed *bed, enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = { .type = type, .flags = flags };
	struct fid_av *av;
	int ret = fi_av_open(bed->domain, &attr, &av, NULL);

	NEED(!lacking(ret), "fi_av_open with flags 0x%llx: %s", (unsigned long long) flags, fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_open with flags 0x%llx: %s", (unsigned long long) flags, fi_strerror(-ret));
	return av;
}

/* Made-up addresses `first`.. in one buffer. */
static void made_up(struct bed *bed, unsigned first, unsigned count, char *names)
{
	char name[NAME_MAX_LEN];
	size_t len;

	while (count--) {
		made_up_name(bed, first++, name, &len);
		names += pack(bed, names, name, len);
	}
}

/* Whether a lookup found this address. A string may have lost its format's name: lookup_gives_the_address minds that. */
static bool is_address(struct bed *bed, const char *found, const char *name)
{
	const char *found_rest, *name_rest;

	if (is_ip(bed)) /* family, port, host: what follows is padding */
		return !memcmp(found, name, 8);
	found_rest = strstr(found, "://");
	name_rest = strstr(name, "://");
	return !strcmp(found_rest ? found_rest + 3 : found, name_rest ? name_rest + 3 : name);
}

static void is_name(struct fid_av *av, struct bed *bed, fi_addr_t addr, unsigned number)
{
	char name[NAME_MAX_LEN], found[NAME_MAX_LEN] = "";
	size_t len, found_len = sizeof(found);

	made_up_name(bed, number, name, &len);
	OK(fi_av_lookup(av, addr, found, &found_len));
	CHECK(is_address(bed, found, name), "address %u is not where it was put", number);
}

/* ---- fi_av_open ---- */

static void open_says_the_type(void)
{
	enum fi_av_type types[] = { FI_AV_MAP, FI_AV_TABLE };
	struct fi_av_attr attr;
	struct fid_av *av;
	struct bed bed;
	int i;

	open_domain(&bed, &usual);
	for (i = 0; i < 2; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.type = types[i];
		OK(fi_av_open(bed.domain, &attr, &av, NULL));
		CHECK(av->fid.fclass == FI_CLASS_AV, "class %zu", av->fid.fclass);
		CHECK(attr.type == types[i], "asked for type %d, got %d", types[i], attr.type);
		OK(fi_close(&av->fid));
	}
	close_bed(&bed);
}

static void open_keeps_the_context(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, ctx(1)));
	CHECK(av->fid.context == ctx(1), "the fid has another context");
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void open_unspec_chooses_a_type(void)
{
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	CHECK(attr.type == FI_AV_MAP || attr.type == FI_AV_TABLE, "the type used is not returned: %d", attr.type);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void open_symmetric(void)
{
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_close(&open_kind(&bed, FI_AV_UNSPEC, FI_SYMMETRIC)->fid));
	close_bed(&bed);
}

static void read_only_needs_a_name(void)
{
	struct fi_av_attr attr = { .flags = FI_READ };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(fi_av_open(bed.domain, &attr, &av, NULL));
	close_bed(&bed);
}

static void read_only_needs_an_av_that_exists(void)
{
	struct fi_av_attr attr = { .flags = FI_READ, .name = "nobody-made-this-av" };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	FAILS(fi_av_open(bed.domain, &attr, &av, NULL));
	close_bed(&bed);
}

static void unnamed_av_leaves_map_addr(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .map_addr = (void *) 0x1000 };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* One process makes a named AV and inserts, the other reads. */
static void shared(enum fi_av_type type)
{
	struct setup s = { .av_type = type };
	struct fi_av_attr attr = { .type = type, .count = 64 };
	char av_name[64], name[NAME_MAX_LEN], found[NAME_MAX_LEN];
	size_t len, found_len;
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addrs[3];
	int fds[2], me, ret, status;
	pid_t other;

	snprintf(av_name, sizeof(av_name), "conformance-%d-%d", (int) getpid(), (int) type);
	attr.name = av_name;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	other = fork();
	me = other == 0;
	open_domain(&bed, &s);
	if (me == 0) {
		char names[3 * NAME_MAX_LEN];

		ret = fi_av_open(bed.domain, &attr, &av, NULL);
		if (lacking(ret))
			close(fds[0]), close(fds[1]);
		NEED(!lacking(ret), "named AVs: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_av_open: %s", fi_strerror(-ret));
		made_up(&bed, 1, 3, names);
		GIVES(3, fi_av_insert(av, names, 3, addrs, 0, NULL));
		pipe_send(fds[0], &attr.map_addr, sizeof(attr.map_addr));
		pipe_send(fds[0], addrs, sizeof(addrs));
		CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status), "the reader crashed");
		if (status)
			_exit(CASE_FAILED); /* it has said why */
		OK(fi_close(&av->fid));
		close_bed(&bed);
		return;
	}
	case_is_second = 1;
	close(fds[0]);
	if (recv(fds[1], &attr.map_addr, sizeof(attr.map_addr), MSG_WAITALL) != sizeof(attr.map_addr))
		_exit(0);
	pipe_recv(fds[1], addrs, sizeof(addrs));
	attr.flags = FI_READ;
	ret = fi_av_open(bed.domain, &attr, &av, NULL);
	CHECK(ret == 0, "fi_av_open to read: %s", fi_strerror(-ret));
	for (ret = 0; ret < 3; ret++) {
		made_up_name(&bed, (unsigned) ret + 1, name, &len);
		found_len = sizeof(found);
		OK(fi_av_lookup(av, addrs[ret], found, &found_len));
		CHECK(is_address(&bed, found, name), "address %d differs in the other process", ret);
	}
	FAILS(fi_av_insert(av, name, 1, addrs, 0, NULL) == 1 ? 0 : -1); /* read-only */
	OK(fi_close(&av->fid));
	close_bed(&bed);
	_exit(0);
}

/* What one process inserted into a shared AV, the other sends to. */
static void shared_av_is_sent_to(void)
{
	struct setup s = { .sides = 1, .more_caps = FI_SHARED_AV };
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	char av_name[64], packed[NAME_MAX_LEN], in[8] = "", out[8] = "shared";
	int fds[2], me, status;
	struct bed bed;
	fi_addr_t addr;
	pid_t other;

	open_domain(&bed, &s); /* FI_SHARED_AV is there */
	close_bed(&bed);
	snprintf(av_name, sizeof(av_name), "conformance-%d-sent", (int) getpid());
	attr.name = av_name;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	other = fork();
	me = other == 0;
	case_is_second = me;
	open_domain(&bed, &s);
	if (me) { /* the writer is first */
		pipe_recv(fds[1], &attr.map_addr, sizeof(attr.map_addr));
		attr.flags = FI_READ;
	}
	OK(fi_av_open(bed.domain, &attr, &bed.av, NULL));
	bed.sides = 1;
	OK(fi_endpoint(bed.domain, bed.info, &bed.side[0].ep, NULL));
	OK(open_cq(&bed, &s, &bed.side[0].tx, NULL));
	OK(open_cq(&bed, &s, &bed.side[0].rx, NULL));
	OK(fi_ep_bind(bed.side[0].ep, &bed.av->fid, 0));
	OK(fi_ep_bind(bed.side[0].ep, &bed.side[0].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(bed.side[0].ep, &bed.side[0].rx->fid, FI_RECV));
	OK(fi_enable(bed.side[0].ep));
	if (!me) {
		learn_name(&bed.side[0]);
		pack(&bed, packed, bed.side[0].name, bed.side[0].name_len);
		GIVES(1, fi_av_insert(bed.av, packed, 1, &addr, 0, NULL));
		pipe_send(fds[0], &attr.map_addr, sizeof(attr.map_addr));
		pipe_send(fds[0], &addr, sizeof(addr));
		POST(&bed, fi_trecv(bed.side[0].ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		COMPLETION(&bed, bed.side[0].rx, ctx(1));
		CHECK(!strcmp(in, "shared"), "%.8s arrived", in);
	} else {
		pipe_recv(fds[1], &addr, sizeof(addr));
		POST(&bed, fi_tsend(bed.side[0].ep, out, sizeof(out), NULL, addr, 1, ctx(1)));
		COMPLETION(&bed, bed.side[0].tx, ctx(1));
	}
	meet(&bed, fds[me]);
	close_bed(&bed);
	if (me)
		_exit(0);
	CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status), "the reader crashed");
	if (WEXITSTATUS(status))
		_exit(CASE_FAILED); /* it has said why */
}

static void shared_table(void) { shared(FI_AV_TABLE); }
static void shared_map(void) { shared(FI_AV_MAP); }

/* ---- fi_av_insert ---- */

static void insert_returns_the_count(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[4 * NAME_MAX_LEN];
	fi_addr_t addrs[4];

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 1, 4, names);
	GIVES(4, fi_av_insert(av, names, 4, addrs, 0, NULL));
	OK(fi_close(&av->fid)); /* what was inserted need not be removed */
	close_bed(&bed);
}

static void insert_of_nothing(void)
{
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addr = 77;
	char name[NAME_MAX_LEN];
	size_t len;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up_name(&bed, 1, name, &len);
	GIVES(0, fi_av_insert(av, name, 0, &addr, 0, NULL));
	CHECK(addr == 77, "an address was written");
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void table_counts_from_zero(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3];
	unsigned i, call;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	for (call = 0; call < 3; call++) { /* indices go on from call to call */
		made_up(&bed, 3 * call, 3, names);
		GIVES(3, fi_av_insert(av, names, 3, addrs, 0, NULL));
		for (i = 0; i < 3; i++)
			CHECK(addrs[i] == 3 * call + i, "insertion %u got index %llu", 3 * call + i, (unsigned long long) addrs[i]);
	}
	for (i = 0; i < 9; i++)
		is_name(av, &bed, i, i);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void table_reuses_the_lowest_index(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[6 * NAME_MAX_LEN];
	fi_addr_t addrs[6], gone[] = { 4, 1, 3 };
	unsigned i;
	static const fi_addr_t wanted[] = { 1, 3, 4, 6 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 0, 6, names);
	GIVES(6, fi_av_insert(av, names, 6, addrs, 0, NULL));
	OK(fi_av_remove(av, gone, 3, 0));
	made_up(&bed, 10, 4, names);
	GIVES(4, fi_av_insert(av, names, 4, addrs, 0, NULL));
	for (i = 0; i < 4; i++) {
		CHECK(addrs[i] == wanted[i], "place %llu, not %llu", (unsigned long long) addrs[i], (unsigned long long) wanted[i]);
		is_name(av, &bed, addrs[i], 10 + i);
	}
	is_name(av, &bed, 0, 0);
	is_name(av, &bed, 2, 2);
	is_name(av, &bed, 5, 5);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void table_takes_no_fi_addr(void)
{
	struct setup s = { .av_type = FI_AV_TABLE, .strangers = true };
	struct bed bed;

	open_bed(&bed, &s);
	GIVES(2, insert_sides(&bed, bed.av, 0, 2, NULL, 0, NULL));
	bed.side[0].addr = 0;
	bed.side[1].addr = 1;
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void map_addresses_are_usable(void)
{
	struct setup s = { .av_type = FI_AV_MAP };
	struct bed bed;

	open_bed(&bed, &s);
	CHECK(bed.side[0].addr != bed.side[1].addr, "two endpoints, one fi_addr_t");
	CHECK(bed.side[1].addr != FI_ADDR_NOTAVAIL, "inserted, but FI_ADDR_NOTAVAIL");
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void table_addresses_are_usable(void)
{
	struct setup s = { .av_type = FI_AV_TABLE };
	struct bed bed;

	open_bed(&bed, &s);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void insert_more(void)
{
	struct setup s = { .strangers = true };
	struct bed bed;

	open_bed(&bed, &s);
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &bed.side[0].addr, FI_MORE, NULL));
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	ping(&bed, 0, 1);
	close_bed(&bed);
}

/* An address may go in while endpoints of this AV are not enabled yet. */
static void insert_before_enable(void)
{
	struct bed bed;
	int i;

	open_sides(&bed, &usual);
	for (i = 0; i < 2; i++) {
		OK(fi_enable(bed.side[i].ep));
		learn_name(&bed.side[i]);
		GIVES(1, insert_sides(&bed, bed.av, i, 1, &bed.side[i].addr, 0, NULL));
	}
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void more_than_count(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = 4 };
	struct fid_av *av;
	struct bed bed;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	unsigned i;
	size_t len;

	open_domain(&bed, &usual);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	for (i = 0; i < 200; i++) {
		made_up_name(&bed, i, name, &len);
		GIVES(1, fi_av_insert(av, name, 1, &addr, 0, NULL));
	}
	for (i = 0; i < 200; i++)
		is_name(av, &bed, i, i);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static long cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Work that grows with what is there makes the last of 20 parts ten times as long as the first two. */
static void grows_not(const long *took, const char *what)
{
	long first = took[0] > took[1] ? took[0] : took[1], last = took[15];
	int i;

	for (i = 16; i < 20; i++)
		if (took[i] < last)
			last = took[i];
	CHECK(last < 6 * first + 1000, "%s: %ld us at first, %ld at last", what, first, last);
}

/* The count is a hint and the AV no fixed table: many are inserted, found and removed. Ours in the same time each,
 * however many are there. */
static void very_many(void)
{
	const unsigned MANY = strict ? 1000000 : 5000, PARTS = 20;
	long took[20];
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = MANY };
	struct fid_av *av;
	struct bed bed;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	unsigned i;
	size_t len;

	/* The C library's shm has room for 256 and no check. */
	open_domain(&bed, &usual);
	if (!strict && bed.info->addr_format == FI_ADDR_STR)
		SKIP("this provider keeps 256 addresses");
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	for (i = 0; i < MANY; i++) {
		if (i % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us();
		made_up_name(&bed, i, name, &len);
		GIVES(1, fi_av_insert(av, name, 1, &addr, 0, NULL));
		CHECK(addr == i, "index %llu for the %uth", (unsigned long long) addr, i);
		if ((i + 1) % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us() - took[i / (MANY / PARTS)];
	}
	if (strict)
		grows_not(took, "insertion");
	for (i = 0; i < MANY; i++) {
		if (i % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us();
		is_name(av, &bed, i, i);
		if ((i + 1) % (MANY / PARTS) == 0)
			took[i / (MANY / PARTS)] = cpu_us() - took[i / (MANY / PARTS)];
	}
	if (strict)
		grows_not(took, "lookup");
	for (i = 0; i < MANY; i += 2) {
		addr = i;
		OK(fi_av_remove(av, &addr, 1, 0));
	}
	is_name(av, &bed, MANY - 1, MANY - 1);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* Good, bad, good in one buffer, or the case is skipped. */
static void with_a_bad_one(struct bed *bed, char *names)
{
	char name[NAME_MAX_LEN];
	size_t len;

	made_up_name(bed, 1, name, &len);
	names += pack(bed, names, name, len);
	if (!bad_name(bed, name, &len))
		SKIP("no address of this format is known to be bad");
	names += pack(bed, names, name, len);
	made_up_name(bed, 3, name, &len);
	pack(bed, names, name, len);
}

static void failed_insertion_is_counted_and_marked(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3] = { 70, 70, 70 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	with_a_bad_one(&bed, names);
	GIVES(2, fi_av_insert(av, names, 3, addrs, 0, NULL));
	CHECK(addrs[1] == FI_ADDR_NOTAVAIL, "the failed one's fi_addr is %llu", (unsigned long long) addrs[1]);
	is_name(av, &bed, addrs[0], 1);
	is_name(av, &bed, addrs[2], 3);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void sync_err_tells_each_result(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3];
	int errors[3] = { 99, 99, 99 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 10, 3, names);
	GIVES(3, fi_av_insert(av, names, 3, addrs, FI_SYNC_ERR, errors));
	CHECK(!errors[0] && !errors[1] && !errors[2], "successes are reported as %d, %d, %d", errors[0], errors[1], errors[2]);
	with_a_bad_one(&bed, names);
	memset(errors, 99, sizeof(errors));
	GIVES(2, fi_av_insert(av, names, 3, addrs, FI_SYNC_ERR, errors));
	CHECK(errors[0] == 0 && errors[1] > 0 && errors[2] == 0, "reported as %d, %d, %d", errors[0], errors[1], errors[2]);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void sync_err_without_fi_addr(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN];
	int errors[3] = { 99, 99, 99 };

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	with_a_bad_one(&bed, names);
	GIVES(2, fi_av_insert(av, names, 3, NULL, FI_SYNC_ERR, errors));
	CHECK(errors[0] == 0 && errors[1] > 0 && errors[2] == 0, "reported as %d, %d, %d", errors[0], errors[1], errors[2]);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* ---- fi_av_insertsvc, fi_av_insertsym ---- */

static void insertsvc(void)
{
	struct setup s = { .strangers = true };
	struct bed bed;
	char service[16];
	int i, ret;

	open_bed(&bed, &s);
	for (i = 0; i < 2; i++) {
		struct side *side = &bed.side[i];

		if (is_ip(&bed)) {
			snprintf(service, sizeof(service), "%u", ntohs(((struct sockaddr_in *) side->name)->sin_port));
			ret = fi_av_insertsvc(bed.av, "127.0.0.1", service, &side->addr, 0, NULL);
		} else { /* a string is a node without a service */
			ret = fi_av_insertsvc(bed.av, side->name, NULL, &side->addr, 0, NULL);
		}
		NEED(!lacking(ret), "fi_av_insertsvc: %s", fi_strerror(-ret));
		CHECK(ret == 1, "fi_av_insertsvc: %d", ret);
	}
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

/* Where addresses are strings, the names are within them. */
static void insertsym_of_strings(struct bed *bed)
{
	static const char *wanted[] = { "host9:5000", "host9:5001", "host10:5000", "host10:5001" };
	struct fid_av *av = open_kind(bed, FI_AV_TABLE, 0);
	char found[NAME_MAX_LEN];
	fi_addr_t addrs[4];
	int i, ret;

	ret = fi_av_insertsym(av, "host9", 2, "5000", 2, addrs, 0, NULL);
	NEED(!lacking(ret), "fi_av_insertsym: %s", fi_strerror(-ret));
	CHECK(ret == 4, "%d instead of nodecnt x svccnt", ret);
	for (i = 0; i < 4; i++) {
		size_t len = sizeof(found);

		OK(fi_av_lookup(av, addrs[i], found, &len));
		CHECK(len > strlen(wanted[i]) && !strcmp(found + len - 1 - strlen(wanted[i]), wanted[i]), "place %d is %s", i, found);
	}
	OK(fi_close(&av->fid));
	close_bed(bed);
}

static void insertsym_walks_services_then_nodes(void)
{
	static const struct { const char *node; int port; } wanted[] = {
		{ "10.1.1.1", 5000 }, { "10.1.1.1", 5001 }, { "10.1.1.2", 5000 }, { "10.1.1.2", 5001 },
	};
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addrs[4];
	int i, ret;

	open_domain(&bed, &usual);
	if (!is_ip(&bed)) {
		insertsym_of_strings(&bed);
		return;
	}
	av = open_kind(&bed, FI_AV_TABLE, 0);
	ret = fi_av_insertsym(av, "10.1.1.1", 2, "5000", 2, addrs, 0, NULL);
	NEED(!lacking(ret), "fi_av_insertsym: %s", fi_strerror(-ret));
	CHECK(ret == 4, "%d instead of nodecnt x svccnt", ret);
	for (i = 0; i < 4; i++) {
		struct sockaddr_in sin;
		size_t len = sizeof(sin);

		OK(fi_av_lookup(av, addrs[i], &sin, &len));
		CHECK(ntohs(sin.sin_port) == wanted[i].port && !strcmp(inet_ntoa(sin.sin_addr), wanted[i].node),
		      "place %d is %s:%d", i, inet_ntoa(sin.sin_addr), ntohs(sin.sin_port));
	}
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* ---- fi_av_remove ---- */

static void removed_address_is_invalid(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[3 * NAME_MAX_LEN], found[NAME_MAX_LEN];
	size_t len = sizeof(found);
	fi_addr_t addrs[3];

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up(&bed, 1, 3, names);
	GIVES(3, fi_av_insert(av, names, 3, addrs, 0, NULL));
	OK(fi_av_remove(av, &addrs[1], 1, 0));
	FAILS(fi_av_lookup(av, addrs[1], found, &len));
	is_name(av, &bed, addrs[0], 1);
	is_name(av, &bed, addrs[2], 3);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void removed_address_comes_back(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	ping(&bed, 0, 1);
	OK(fi_av_remove(bed.av, &bed.side[1].addr, 1, 0));
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void remove_many(void)
{
	struct fid_av *av;
	struct bed bed;
	char names[8 * NAME_MAX_LEN];
	fi_addr_t addrs[8];

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_MAP, 0);
	made_up(&bed, 1, 8, names);
	GIVES(8, fi_av_insert(av, names, 8, addrs, 0, NULL));
	OK(fi_av_remove(av, addrs, 8, 0));
	GIVES(8, fi_av_insert(av, names, 8, addrs, 0, NULL));
	is_name(av, &bed, addrs[7], 8);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void remove_of_an_unknown_address(void)
{
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addr = 12345;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	FAILS(fi_av_remove(av, &addr, 1, 0));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* ---- fi_av_lookup, fi_av_straddr ---- */

static void lookup_gives_the_address(void)
{
	struct bed bed;
	char found[NAME_MAX_LEN];
	size_t len;
	int i;

	open_bed(&bed, &usual);
	for (i = 0; i < 2; i++) {
		len = sizeof(found);
		OK(fi_av_lookup(bed.av, bed.side[i].addr, found, &len));
		CHECK(len == bed.side[i].name_len, "%zu bytes, but fi_getname gave %zu", len, bed.side[i].name_len);
		CHECK(!memcmp(found, bed.side[i].name, is_ip(&bed) ? 8 : strlen(bed.side[i].name) + 1), "another address");
	}
	close_bed(&bed);
}

static void lookup_truncates(void)
{
	struct bed bed;
	char found[NAME_MAX_LEN];
	size_t len = 3;

	open_bed(&bed, &usual);
	memset(found, '#', sizeof(found));
	OK(fi_av_lookup(bed.av, bed.side[0].addr, found, &len));
	CHECK(len == bed.side[0].name_len, "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	CHECK(found[3] == '#', "wrote beyond the buffer");
	CHECK(found[0] != '#' && !memcmp(found, bed.side[0].name, 2), "what fits is not there");
	close_bed(&bed);
}

static void lookup_learns_the_size(void)
{
	struct bed bed;
	size_t len = 0;
	char guard = '#';

	open_bed(&bed, &usual);
	OK(fi_av_lookup(bed.av, bed.side[0].addr, &guard, &len));
	CHECK(len == bed.side[0].name_len && guard == '#', "needs %zu bytes, but says %zu", bed.side[0].name_len, len);
	close_bed(&bed);
}

static void lookup_of_the_unknown(void)
{
	struct fid_av *av;
	struct bed bed;
	char found[NAME_MAX_LEN];
	size_t len = sizeof(found);

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	FAILS(fi_av_lookup(av, 0, found, &len));
	FAILS(fi_av_lookup(av, 1000000, found, &len));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void straddr_prints(void)
{
	struct fid_av *av;
	struct bed bed;
	char name[NAME_MAX_LEN], text[NAME_MAX_LEN], full[NAME_MAX_LEN];
	size_t len, text_len = sizeof(full), need;

	open_domain(&bed, &usual);
	av = open_kind(&bed, FI_AV_TABLE, 0);
	made_up_name(&bed, 5, name, &len); /* never inserted: that is allowed */
	CHECK(fi_av_straddr(av, name, full, &text_len) == full, "does not return the buffer");
	need = text_len;
	CHECK(need == strlen(full) + 1, "needs %zu for a text of %zu: %s", need, strlen(full), full);
	if (is_ip(&bed))
		CHECK(strstr(full, "127.1.0.5") && strstr(full, "7"), "%s", full);
	else
		CHECK(strstr(full, "nobody-5"), "%s", full);

	memset(text, '#', sizeof(text));
	text_len = 6;
	CHECK(fi_av_straddr(av, name, text, &text_len) == text, "does not return the buffer");
	CHECK(text_len == need, "needs %zu, but says %zu", need, text_len);
	CHECK(text[5] == 0 && text[6] == '#' && !strncmp(text, full, 5), "not truncated: %.16s", text);
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

/* ---- FI_EVENT ---- */

struct async {
	struct bed bed;
	struct fid_eq *eq;
	struct fid_av *av;
};

static void open_async(struct async *a, bool bound)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	open_domain(&a->bed, &usual);
	OK(fi_eq_open(a->bed.fabric, &attr, &a->eq, NULL));
	a->av = open_kind(&a->bed, FI_AV_TABLE, FI_EVENT);
	if (bound) {
		int ret = fi_av_bind(a->av, &a->eq->fid, 0);

		NEED(!lacking(ret), "fi_av_bind: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_av_bind: %s", fi_strerror(-ret));
	}
}

static void close_async(struct async *a)
{
	OK(fi_close(&a->av->fid));
	OK(fi_close(&a->eq->fid));
	close_bed(&a->bed);
}

/* The next event, or the errno; waits. */
static ssize_t next_event(struct async *a, uint32_t *event, struct fi_eq_entry *entry)
{
	return fi_eq_sread(a->eq, event, entry, sizeof(*entry), GIVE_UP_MS, 0);
}

static void event_needs_an_eq(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	size_t len;

	open_async(&a, false);
	made_up_name(&a.bed, 1, name, &len);
	GIVES(-FI_ENOEQ, fi_av_insert(a.av, name, 1, &addr, 0, NULL));
	close_async(&a);
}

static void event_bind_takes_no_flags(void)
{
	struct async a;

	open_async(&a, false);
	FAILS(fi_av_bind(a.av, &a.eq->fid, FI_TRANSMIT));
	close_async(&a);
}

static void event_reports_each_insertion(void)
{
	struct async a;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3] = { 70, 70, 70 };
	struct fi_eq_entry entry;
	uint32_t event;
	unsigned call, i;

	open_async(&a, true);
	for (call = 0; call < 2; call++) {
		made_up(&a.bed, 3 * call, 3, names);
		OK(fi_av_insert(a.av, names, 3, addrs, 0, ctx((int) call)));
		GIVES(sizeof(entry), next_event(&a, &event, &entry));
		CHECK(event == FI_AV_COMPLETE, "event %u", event);
		CHECK(entry.fid == &a.av->fid && entry.context == ctx((int) call), "of another AV or insertion");
		CHECK(entry.data == 3, "%llu inserted", (unsigned long long) entry.data);
		for (i = 0; i < 3; i++)
			CHECK(addrs[i] == 3 * call + i, "index %llu", (unsigned long long) addrs[i]);
	}
	GIVES(-FI_EAGAIN, fi_eq_read(a.eq, &event, &entry, sizeof(entry), 0));
	close_async(&a);
}

static void event_of_nothing(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	struct fi_eq_entry entry;
	uint32_t event;
	size_t len;

	open_async(&a, true);
	made_up_name(&a.bed, 1, name, &len);
	OK(fi_av_insert(a.av, name, 0, &addr, 0, ctx(9)));
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(9) && entry.data == 0, "event %u", event);
	close_async(&a);
}

static void event_errors_come_first(void)
{
	struct async a;
	char names[3 * NAME_MAX_LEN];
	fi_addr_t addrs[3] = { 70, 70, 70 };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;

	open_async(&a, true);
	with_a_bad_one(&a.bed, names);
	OK(fi_av_insert(a.av, names, 3, addrs, 0, ctx(5)));
	GIVES(-FI_EAVAIL, next_event(&a, &event, &entry));
	CHECK(fi_eq_readerr(a.eq, &err, 0) > 0, "fi_eq_readerr");
	CHECK(err.fid == &a.av->fid && err.context == ctx(5), "of another AV or insertion");
	CHECK(err.data == 1 && err.err > 0, "index %llu, err %d", (unsigned long long) err.data, err.err);
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(5), "event %u", event);
	CHECK(entry.data == 2, "%llu inserted", (unsigned long long) entry.data);
	CHECK(addrs[1] == FI_ADDR_NOTAVAIL, "the failed one's fi_addr is %llu", (unsigned long long) addrs[1]);
	close_async(&a);
}

static void event_when_all_fail(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	size_t len;

	open_async(&a, true);
	if (!bad_name(&a.bed, name, &len))
		SKIP("no address of this format is known to be bad");
	OK(fi_av_insert(a.av, name, 1, &addr, 0, ctx(5)));
	GIVES(-FI_EAVAIL, next_event(&a, &event, &entry));
	CHECK(fi_eq_readerr(a.eq, &err, 0) > 0 && err.data == 0, "index %llu", (unsigned long long) err.data);
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.data == 0, "event %u, %llu inserted", event, (unsigned long long) entry.data);
	close_async(&a);
}

static void event_for_insertsvc(void)
{
	struct async a;
	fi_addr_t addr;
	struct fi_eq_entry entry;
	uint32_t event;
	int ret;

	open_async(&a, true);
	if (is_ip(&a.bed))
		ret = fi_av_insertsvc(a.av, "127.0.0.1", "4711", &addr, 0, ctx(3));
	else
		ret = fi_av_insertsvc(a.av, "fi_shm://nobody-1", NULL, &addr, 0, ctx(3));
	NEED(!lacking(ret), "fi_av_insertsvc: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_insertsvc: %d", ret);
	GIVES(sizeof(entry), next_event(&a, &event, &entry));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(3) && entry.data == 1, "event %u", event);
	close_async(&a);
}

/* Events that refer to the AV stay in the queue when it is closed. */
static void events_outlive_the_av(void)
{
	struct async a;
	char name[NAME_MAX_LEN];
	fi_addr_t addr;
	struct fi_eq_entry entry;
	uint32_t event;
	size_t len;

	open_async(&a, true);
	made_up_name(&a.bed, 1, name, &len);
	OK(fi_av_insert(a.av, name, 1, &addr, 0, ctx(6)));
	GIVES(sizeof(entry), fi_eq_sread(a.eq, &event, &entry, sizeof(entry), GIVE_UP_MS, FI_PEEK));
	OK(fi_close(&a.av->fid));
	GIVES(sizeof(entry), fi_eq_read(a.eq, &event, &entry, sizeof(entry), 0));
	CHECK(event == FI_AV_COMPLETE && entry.context == ctx(6), "event %u", event);
	OK(fi_close(&a.eq->fid));
	close_bed(&a.bed);
}

/* ---- user ids ---- */

/* The source that a receive of side 1 from side 0 reports. */
static fi_addr_t source_seen(struct bed *bed)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t source = 99;
	char in[8], out[8] = "source";
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	POST(bed, fi_trecv(bed->side[1].ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(bed, fi_tsend(bed->side[0].ep, out, sizeof(out), NULL, bed->side[1].addr, 1, ctx(2)));
	COMPLETION(bed, bed->side[0].tx, ctx(2));
	while ((ret = fi_cq_readfrom(bed->side[1].rx, &entry, 1, &source)) == -FI_EAGAIN && now_ms() < until)
		progress(bed);
	CHECK(ret == 1, "fi_cq_readfrom: %zd", ret);
	return source;
}

static void user_id_at_insert(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .strangers = true, .av_type = FI_AV_TABLE };
	struct bed bed;
	fi_addr_t addr = 0xabcdef;

	open_bed(&bed, &s);
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addr, FI_AV_USER_ID, NULL));
	CHECK(addr == 0, "the address is %llu, not the index", (unsigned long long) addr);
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	CHECK(source_seen(&bed) == 0xabcdef, "the source is not the user's id");
	bed.side[0].addr = addr;
	ping(&bed, 1, 0); /* and the returned address is what sends go to */
	close_bed(&bed);
}

#if HEADERS_2
static void user_id_by_av(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .av_flags = FI_AV_USER_ID };
	struct bed bed;
	int ret;

	open_bed(&bed, &s);
	CHECK(source_seen(&bed) == FI_ADDR_NOTAVAIL, "an id before one was set");
	ret = fi_av_set_user_id(bed.av, bed.side[0].addr, 0x77, 0);
	NEED(!lacking(ret), "fi_av_set_user_id: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set_user_id: %d", ret);
	CHECK(source_seen(&bed) == 0x77, "the source is not the user's id");
	OK(fi_av_set_user_id(bed.av, bed.side[0].addr, 0x78, 0));
	CHECK(source_seen(&bed) == 0x78, "the id cannot be changed");
	close_bed(&bed);
}

static void user_id_not_by_both(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .av_flags = FI_AV_USER_ID, .strangers = true };
	struct bed bed;
	fi_addr_t addr = 5;

	open_bed(&bed, &s);
	CHECK(insert_sides(&bed, bed.av, 0, 1, &addr, FI_AV_USER_ID, NULL) != 1, "FI_AV_USER_ID at open and at insertion");
	close_bed(&bed);
}

/* fi_domain(3): without the domain's capability no AV has identifiers. */
static void user_id_needs_the_domain(void)
{
	struct setup s = { .domain_caps = FI_LOCAL_COMM };
	struct fi_av_attr attr = { .flags = FI_AV_USER_ID };
	struct fid_av *av;
	struct bed bed;

	open_domain(&bed, &s);
	CHECK(!(bed.info->domain_attr->caps & FI_AV_USER_ID), "a capability that nobody asked for");
	FAILS(fi_av_open(bed.domain, &attr, &av, NULL));
	close_bed(&bed);
}

/* Who comes to a place that became free does not have the identifier of who went. */
static void user_id_goes_with_its_address(void)
{
	struct setup s = { .more_caps = FI_SOURCE | FI_AV_USER_ID, .strangers = true, .av_type = FI_AV_TABLE };
	struct bed bed;
	fi_addr_t addr = 0xabcdef;

	open_bed(&bed, &s);
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, 0, NULL));
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addr, FI_AV_USER_ID, NULL));
	CHECK(source_seen(&bed) == 0xabcdef, "the source is not the user's id");
	OK(fi_av_remove(bed.av, &addr, 1, 0));
	CHECK(source_seen(&bed) == FI_ADDR_NOTAVAIL, "the source is one who was removed");
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addr, 0, NULL));
	CHECK(addr == 1, "index %llu", (unsigned long long) addr);
	CHECK(source_seen(&bed) == 1, "the source is not the index");
	close_bed(&bed);
}

static void set_user_id_needs_the_flag(void)
{
	struct bed bed;
	int ret;

	open_bed(&bed, &usual);
	ret = fi_av_set_user_id(bed.av, bed.side[0].addr, 7, 0);
	CHECK(ret < 0, "fi_av_set_user_id on an AV without FI_AV_USER_ID: %d", ret);
	close_bed(&bed);
}

/* ---- authorization keys ---- */

static void auth_keys_stored_and_found(void)
{
	struct setup s = { .auth_key_size = FI_AV_AUTH_KEY };
	char key[32], found[64];
	struct bed bed;
	fi_addr_t addr = FI_ADDR_NOTAVAIL, other = FI_ADDR_NOTAVAIL;
	size_t len = sizeof(found), key_len;
	int ret;

	open_av(&bed, &s);
	key_len = bed.info->domain_attr->auth_key_size == FI_AV_AUTH_KEY ? 16 : bed.info->domain_attr->auth_key_size;
	if (key_len > sizeof(key) || !key_len)
		key_len = sizeof(key);
	fill(key, sizeof(key), 1);
	ret = fi_av_insert_auth_key(bed.av, key, key_len, &addr, 0);
	NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
	CHECK(ret == 0 && addr != FI_ADDR_NOTAVAIL, "fi_av_insert_auth_key: %d", ret);
	fill(key, sizeof(key), 2);
	OK(fi_av_insert_auth_key(bed.av, key, key_len, &other, 0));
	CHECK(other != addr, "two keys, one handle");
	OK(fi_av_lookup_auth_key(bed.av, addr, found, &len));
	CHECK(len == key_len, "%zu bytes", len);
	SAME(found, len, 1);

	memset(found, '#', sizeof(found));
	len = 2;
	OK(fi_av_lookup_auth_key(bed.av, other, found, &len));
	CHECK(len == key_len && found[2] == '#', "not truncated: says %zu", len);
	SAME(found, 2, 2);
	OK(fi_av_remove(bed.av, &other, 1, FI_AUTH_KEY));
	OK(fi_av_remove(bed.av, &addr, 1, FI_AUTH_KEY));
	close_bed(&bed);
}

static void auth_key_at_insert(void)
{
	struct setup s = { .auth_key_size = FI_AV_AUTH_KEY };
	char key[16], name[NAME_MAX_LEN], found[64];
	struct bed bed;
	fi_addr_t auth, addr;
	size_t len, found_len = sizeof(found);
	int ret;

	open_av(&bed, &s);
	fill(key, sizeof(key), 1);
	ret = fi_av_insert_auth_key(bed.av, key, sizeof(key), &auth, 0);
	NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_insert_auth_key: %d", ret);
	made_up_name(&bed, 1, name, &len);
	addr = auth;
	GIVES(1, fi_av_insert(bed.av, name, 1, &addr, FI_AUTH_KEY, NULL));
	OK(fi_av_lookup_auth_key(bed.av, addr, found, &found_len));
	SAME(found, sizeof(key), 1);
	close_bed(&bed);
}

/* An address is one under each key, and messages go to and come from it. */
static void auth_keys_of_peers(void)
{
	struct setup s = { .auth_key_size = FI_AV_AUTH_KEY, .more_caps = FI_SOURCE, .strangers = true };
	char key[16];
	struct bed bed;
	fi_addr_t auth[2], addrs[2];
	int i, ret;

	open_sides(&bed, &s);
	for (i = 0; i < 2; i++) {
		fill(key, sizeof(key), (unsigned) i);
		ret = fi_av_insert_auth_key(bed.av, key, sizeof(key), &auth[i], 0);
		NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_av_insert_auth_key: %d", ret);
	}
	enable_sides(&bed, &s);
	for (i = 0; i < 2; i++) {
		addrs[i] = auth[i];
		GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addrs[i], FI_AUTH_KEY, NULL));
	}
	CHECK(addrs[0] != addrs[1], "one address under two keys");
	bed.side[1].addr = auth[1];
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, FI_AUTH_KEY, NULL));
	CHECK(source_seen(&bed) == addrs[0], "another source");
	bed.side[0].addr = addrs[1];
	ping(&bed, 1, 0);
	/* Endpoints were enabled with the keys, which stay until all of them are closed. */
	GIVES(-FI_EBUSY, fi_av_remove(bed.av, &auth[0], 1, FI_AUTH_KEY));
	for (i = 0; i < 2; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	OK(fi_av_remove(bed.av, &auth[0], 1, FI_AUTH_KEY));
	close_bed(&bed);
}

static void auth_key_needs_the_domain(void)
{
	char key[16] = "key";
	struct bed bed;
	fi_addr_t addr;

	open_av(&bed, &usual);
	FAILS(fi_av_insert_auth_key(bed.av, key, sizeof(key), &addr, 0));
	close_bed(&bed);
}
#endif

/* ---- the rest ---- */

static void rx_addr_holds_the_context(void)
{
	CHECK(fi_rx_addr(5, 3, 4) == ((3ULL << 60) | 5), "fi_rx_addr(5, 3, 4)");
	CHECK(fi_rx_addr(5, 0, 4) == 5, "fi_rx_addr(5, 0, 4)");
	CHECK(fi_rx_addr(7, 1, 1) == ((1ULL << 63) | 7), "fi_rx_addr(7, 1, 1)");
}

static void rx_addr_targets_a_context(void)
{
	struct setup s = { .more_caps = FI_NAMED_RX_CTX, .rx_ctx_cnt = 2, .tx_ctx_cnt = 1, .rx_ctx_bits = 1 };
	struct fid_ep *sep, *rx[2];
	struct fid_cq *rxcq[2];
	struct bed bed;
	struct side far = { 0 };
	struct fi_cq_tagged_entry entry;
	char in[2][8] = { "", "" }, packed[NAME_MAX_LEN];
	fi_addr_t addr;
	int i, ret;

	s.sides = 1;
	open_domain(&bed, &s);
	close_bed(&bed); /* FI_NAMED_RX_CTX is there */
	s.more_caps = 0;
	s.rx_ctx_cnt = s.tx_ctx_cnt = 0;
	open_bed(&bed, &s);
	bed.info->ep_attr->rx_ctx_cnt = 2;
	bed.info->ep_attr->tx_ctx_cnt = 1;
	bed.info->caps |= FI_NAMED_RX_CTX;
	ret = fi_scalable_ep(bed.domain, bed.info, &sep, NULL);
	NEED(!lacking(ret), "fi_scalable_ep: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_scalable_ep: %s", fi_strerror(-ret));
	OK(fi_scalable_ep_bind(sep, &bed.av->fid, 0));
	for (i = 0; i < 2; i++) {
		OK(fi_rx_context(sep, i, NULL, &rx[i], NULL));
		OK(open_cq(&bed, &s, &rxcq[i], NULL));
		OK(fi_ep_bind(rx[i], &rxcq[i]->fid, FI_RECV));
		OK(fi_enable(rx[i]));
	}
	OK(fi_enable(sep));
	far.ep = sep;
	learn_name(&far);
	pack(&bed, packed, far.name, far.name_len);
	GIVES(1, fi_av_insert(bed.av, packed, 1, &addr, 0, NULL));
	for (i = 1; i >= 0; i--) {
		long until = now_ms() + GIVE_UP_MS;
		ssize_t got;

		OK(fi_recv(rx[0], in[0], 8, NULL, FI_ADDR_UNSPEC, ctx(0)));
		OK(fi_recv(rx[1], in[1], 8, NULL, FI_ADDR_UNSPEC, ctx(1)));
		POST(&bed, fi_send(bed.side[0].ep, i ? "one" : "zero", 5, NULL, fi_rx_addr(addr, i, 1), ctx(2)));
		while ((got = fi_cq_read(rxcq[i], &entry, 1)) == -FI_EAGAIN && now_ms() < until) {
			progress(&bed);
			fi_cq_read(rxcq[!i], NULL, 0);
		}
		CHECK(got == 1 && entry.op_context == ctx(i), "nothing arrived at context %d", i);
		CHECK(!strcmp(in[i], i ? "one" : "zero"), "%s at context %d", in[i], i);
		COMPLETION(&bed, bed.side[0].tx, ctx(2));
	}
	for (i = 0; i < 2; i++) {
		OK(fi_close(&rx[i]->fid));
		OK(fi_close(&rxcq[i]->fid));
	}
	OK(fi_close(&sep->fid));
	close_bed(&bed);
}

static void close_while_in_use(void)
{
	struct bed bed;

	open_bed(&bed, &usual);
	GIVES(-FI_EBUSY, fi_close(&bed.av->fid));
	ping(&bed, 0, 1); /* and it still works */
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(open_says_the_type), TEST(open_keeps_the_context), TEST(open_unspec_chooses_a_type), TEST(open_symmetric), TEST(read_only_needs_a_name),
	TEST(read_only_needs_an_av_that_exists), TEST(unnamed_av_leaves_map_addr), TEST(shared_table), TEST(shared_map),
	TEST(shared_av_is_sent_to),
	TEST(insert_returns_the_count), TEST(insert_of_nothing), TEST(table_counts_from_zero),
	TEST(table_reuses_the_lowest_index), TEST(table_takes_no_fi_addr), TEST(map_addresses_are_usable),
	TEST(table_addresses_are_usable), TEST(insert_more), TEST(insert_before_enable), TEST(more_than_count), TEST(very_many),
	TEST(failed_insertion_is_counted_and_marked), TEST(sync_err_tells_each_result), TEST(sync_err_without_fi_addr),
	TEST(insertsvc), TEST(insertsym_walks_services_then_nodes), TEST(removed_address_is_invalid),
	TEST(removed_address_comes_back), TEST(remove_many), TEST(remove_of_an_unknown_address),
	TEST(lookup_gives_the_address), TEST(lookup_truncates), TEST(lookup_learns_the_size), TEST(lookup_of_the_unknown),
	TEST(straddr_prints), TEST(event_needs_an_eq), TEST(event_bind_takes_no_flags), TEST(event_reports_each_insertion),
	TEST(event_of_nothing), TEST(event_errors_come_first), TEST(event_when_all_fail), TEST(event_for_insertsvc),
	TEST(events_outlive_the_av), TEST(user_id_at_insert),
#if HEADERS_2
	TEST(user_id_by_av), TEST(user_id_not_by_both), TEST(set_user_id_needs_the_flag),
	TEST(user_id_needs_the_domain), TEST(user_id_goes_with_its_address), TEST(auth_keys_stored_and_found),
	TEST(auth_key_at_insert), TEST(auth_keys_of_peers), TEST(auth_key_needs_the_domain),
#endif
	TEST(rx_addr_holds_the_context), TEST(rx_addr_targets_a_context), TEST(close_while_in_use),
};

MAIN(tests)

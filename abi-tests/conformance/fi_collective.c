/*
 * fi_collective(3): groups of processes, each with one endpoint, and what every member gets, element by element.
 * The first member is the case's own process; what they share besides the fabric is a page of memory.
 */
#define _GNU_SOURCE
#include <complex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <rdma/fi_collective.h>
#include "fabric.h"

enum { MOST = 5, LARGE = 70000 };

/* What the processes of a group have in common. */
static struct common {
	volatile int here[MOST]; /* how often each has come to `everybody` */
	volatile int entered;    /* barriers that somebody has begun */
	volatile int stop;       /* a member is going to be killed */
	size_t name_len[MOST];
	char name[MOST][NAME_MAX_LEN];
	double bits[MOST][64];
} *common;

/* One member's view. */
static struct bed bed;
static struct fid_eq *eq;
static fi_addr_t addr[MOST];
static int me, members;

/* What kind of endpoint each member has, in turn; all zero is plain endpoints. */
enum kind { PLAIN, SHARES, CONTEXT }; /* one with a shared receive context, a transmit context of a scalable one */
static enum kind kinds[MOST];
static struct fid_ep *srx, *whole, *other_context, *rx_context;

static const struct setup usual = { .caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE, .av_type = FI_AV_TABLE, .sides = 1, .strangers = true };

/* ---- processes ---- */

/* Waits until all members have come here, making progress meanwhile. */
static void everybody(void)
{
	long until = now_ms() + 3 * GIVE_UP_MS;
	int mine = ++common->here[me], i;

	__sync_synchronize();
	for (i = 0; i < members; i++)
		while (common->here[i] < mine) {
			CHECK(now_ms() < until, "member %d does not come", i);
			progress(&bed);
			sched_yield();
		}
	__sync_synchronize();
}

/* Side 0 is the second of two transmit contexts; of the receive contexts only some members open one. */
static void open_context(const struct setup *setup)
{
	struct side *side = &bed.side[0];

	open_av(&bed, setup);
	bed.sides = 1;
	bed.info->ep_attr->tx_ctx_cnt = bed.info->ep_attr->rx_ctx_cnt = 2;
	OK(fi_scalable_ep(bed.domain, bed.info, &whole, NULL));
	OK(fi_scalable_ep_bind(whole, &bed.av->fid, 0));
	OK(open_cq(&bed, setup, &side->tx, NULL));
	OK(open_cq(&bed, setup, &side->rx, NULL));
	OK(fi_tx_context(whole, 0, NULL, &other_context, NULL));
	OK(fi_tx_context(whole, 1, NULL, &side->ep, NULL));
	OK(fi_ep_bind(other_context, &side->tx->fid, FI_TRANSMIT | setup->tx_bind));
	OK(fi_ep_bind(side->ep, &side->tx->fid, FI_TRANSMIT | setup->tx_bind));
	OK(fi_enable(other_context));
	if (me % 2) {
		OK(fi_rx_context(whole, 0, NULL, &rx_context, NULL));
		OK(fi_ep_bind(rx_context, &side->rx->fid, FI_RECV));
		OK(fi_enable(rx_context));
	}
}

static void open_kind(const struct setup *setup)
{
	struct setup shares = *setup;

	switch (kinds[me]) {
	case PLAIN:
		open_sides(&bed, setup);
		break;
	case SHARES:
		shares.rx_ctx_cnt = FI_SHARED_CONTEXT;
		open_sides(&bed, &shares);
		OK(fi_srx_context(bed.domain, bed.info->rx_attr, &srx, NULL));
		OK(fi_ep_bind(bed.side[0].ep, &srx->fid, 0));
		break;
	case CONTEXT:
		open_context(setup);
		break;
	}
}

static void close_one(struct fid_ep **ep)
{
	if (*ep)
		OK(fi_close(&(*ep)->fid));
	*ep = NULL;
}

static void open_member(const struct setup *setup)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	char packed[NAME_MAX_LEN];
	int i;

	open_kind(setup);
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	/* A context takes that of its endpoint too. */
	OK(fi_ep_bind(whole && me % 2 ? whole : bed.side[0].ep, &eq->fid, 0));
	if (whole) {
		struct side named = { .ep = whole };

		OK(fi_enable(bed.side[0].ep));
		learn_name(&named);
		memcpy(bed.side[0].name, named.name, sizeof(named.name));
		bed.side[0].name_len = named.name_len;
	} else {
		enable_sides(&bed, setup);
	}
	common->name_len[me] = bed.side[0].name_len;
	memcpy(common->name[me], bed.side[0].name, bed.side[0].name_len);
	everybody();
	for (i = 0; i < members; i++) {
		pack(&bed, packed, common->name[i], common->name_len[i]);
		GIVES(1, fi_av_insert(bed.av, packed, 1, &addr[i], 0, NULL));
	}
}

static void close_member(void)
{
	everybody();
	close_one(&bed.side[0].ep);
	close_one(&other_context);
	close_one(&rx_context);
	close_one(&whole);
	close_one(&srx);
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

/* Runs the body in so many processes. */
static void in_group(int count, const struct setup *setup, void (*body)(void))
{
	pid_t other[MOST];
	int i, status;

	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(common != MAP_FAILED, "mmap");
	members = count;
	for (me = count - 1; me > 0; me--) {
		other[me] = fork();
		CHECK(other[me] >= 0, "fork");
		if (other[me] == 0) {
			case_is_second = 1;
			alarm(case_seconds);
			break;
		}
	}
	open_member(setup);
	body();
	close_member();
	if (me)
		_exit(0);
	for (i = 1; i < count; i++) {
		CHECK(waitpid(other[i], &status, 0) == other[i], "waitpid");
		CHECK(!WIFSIGNALED(status) || common->stop, "member %d ended by signal %d", i, WTERMSIG(status));
		if (!WIFSIGNALED(status) && WEXITSTATUS(status))
			_exit(CASE_FAILED); /* it has said why */
	}
	munmap(common, sizeof(*common));
}

static void in_groups(void (*body)(void))
{
	static const int counts[] = { 1, 2, 3, 5 };
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		in_group(counts[i], &usual, body);
}

/* ---- groups ---- */

static struct fid_av_set *set_of(const int *ranks, int count, uint64_t flags)
{
	struct fi_av_set_attr attr = { .count = MOST, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .flags = flags };
	struct fid_av_set *set;
	int i, ret = fi_av_set(bed.av, &attr, &set, NULL);

	NEED(!lacking(ret), "fi_av_set: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set: %s", fi_strerror(-ret));
	for (i = 0; i < count; i++)
		OK(fi_av_set_insert(set, addr[ranks[i]]));
	return set;
}

static struct fid_av_set *set_of_all(void)
{
	struct fi_av_set_attr attr = { .count = MOST, .start_addr = addr[0], .end_addr = addr[members - 1], .stride = 1 };
	struct fid_av_set *set;
	int ret = fi_av_set(bed.av, &attr, &set, NULL);

	NEED(!lacking(ret), "fi_av_set: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_set: %s", fi_strerror(-ret));
	return set;
}

static fi_addr_t set_addr(struct fid_av_set *set)
{
	fi_addr_t coll_addr;

	OK(fi_av_set_addr(set, &coll_addr));
	return coll_addr;
}

/* The next event; none is an error. */
static uint32_t next_event(struct fi_eq_entry *entry)
{
	long until = now_ms() + GIVE_UP_MS;
	uint32_t event = 0;
	ssize_t ret;

	while ((ret = fi_eq_read(eq, &event, entry, sizeof(*entry), 0)) == -FI_EAGAIN && now_ms() < until) {
		/* Reading the queue is enough; the C library needs more. */
		if (!strict)
			progress(&bed);
		sched_yield();
	}
	CHECK(ret == sizeof(*entry), "fi_eq_read: %zd", ret);
	return event;
}

static struct fid_mc *begin_join(struct fid_av_set *set, fi_addr_t coll_addr, void *context)
{
	struct fid_mc *mc = NULL;
	int ret = fi_join_collective(bed.side[0].ep, coll_addr, set, 0, &mc, context);

	NEED(!lacking(ret), "fi_join_collective: %s", fi_strerror(-ret));
	CHECK(ret == 0 && mc, "fi_join_collective: %s", fi_strerror(-ret));
	return mc;
}

static struct fid_mc *join(struct fid_av_set *set, fi_addr_t coll_addr)
{
	struct fid_mc *mc = begin_join(set, coll_addr, ctx(1));
	struct fi_eq_entry entry = { 0 };
	uint32_t event = next_event(&entry);

	CHECK(event == FI_JOIN_COMPLETE, "event %u", event);
	CHECK(entry.context == ctx(1), "context %p", entry.context);
	/* The C library names the group that the join went through. */
	CHECK(!strict || entry.fid == &mc->fid, "the event is not about the new group");
	return mc;
}

static struct fid_av_set *world_set;
static struct fid_mc *world;

static void join_all(void)
{
	world_set = set_of_all();
	world = join(world_set, set_addr(world_set));
}

static void leave_all(void)
{
	everybody();
	OK(fi_close(&world->fid));
	OK(fi_close(&world_set->fid));
}

/* Waits for one good end. */
static void ended(void *context)
{
	struct fi_cq_tagged_entry e = COMPLETION(&bed, bed.side[0].tx, context);

	CHECK(!strict || e.flags == FI_COLLECTIVE, "flags 0x%llx", (unsigned long long) e.flags);
}

static bool offered(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op)
{
	struct fi_collective_attr attr = { .op = op, .datatype = type };
	int ret = fi_query_collective(bed.domain, coll, &attr, 0);

	if (lacking(ret) || ret == -FI_EOPNOTSUPP)
		return false;
	CHECK(ret == 0, "fi_query_collective: %s", fi_strerror(-ret));
	CHECK(attr.max_members >= (size_t) members, "%zu members", attr.max_members);
	return true;
}

static void supports(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op)
{
	NEED(offered(coll, type, op), "collective %d of type %d, operation %d", coll, type, op);
}

/* ---- elements, as small whole numbers that every type has ---- */

#define INTEGERS(X)                                                                  \
	X(FI_INT8, int8_t) X(FI_UINT8, uint8_t) X(FI_INT16, int16_t) X(FI_UINT16, uint16_t) \
	X(FI_INT32, int32_t) X(FI_UINT32, uint32_t) X(FI_INT64, int64_t) X(FI_UINT64, uint64_t)
#define FLOATS(X) X(FI_FLOAT, float) X(FI_DOUBLE, double) X(FI_LONG_DOUBLE, long double)
#define COMPLEXES(X)                                                                 \
	X(FI_FLOAT_COMPLEX, float complex) X(FI_DOUBLE_COMPLEX, double complex)      \
	X(FI_LONG_DOUBLE_COMPLEX, long double complex)

static const enum fi_datatype types[] = {
#define NAME(type, c) type,
	INTEGERS(NAME) FLOATS(NAME) COMPLEXES(NAME)
};
enum { TYPES = sizeof(types) / sizeof(*types) };

static size_t size_of(enum fi_datatype type)
{
	switch (type) {
#define SIZE(type, c) case type: return sizeof(c);
		INTEGERS(SIZE) FLOATS(SIZE) COMPLEXES(SIZE)
	default:
		return 0;
	}
}

static void put(enum fi_datatype type, void *array, size_t i, double complex v)
{
	switch (type) {
#define PUT_INT(type, c) case type: ((c *) array)[i] = (c) (int64_t) creal(v); break;
#define PUT_FLOAT(type, c) case type: ((c *) array)[i] = (c) creal(v); break;
#define PUT_COMPLEX(type, c) case type: ((c *) array)[i] = (c) v; break;
		INTEGERS(PUT_INT) FLOATS(PUT_FLOAT) COMPLEXES(PUT_COMPLEX)
	default:
		CHECK(0, "type %d", type);
	}
}

static double complex get(enum fi_datatype type, const void *array, size_t i)
{
	switch (type) {
#define GET(type, c) case type: return (double complex) ((const c *) array)[i];
		INTEGERS(GET) FLOATS(GET) COMPLEXES(GET)
	default:
		return 0;
	}
}

static bool is_complex(enum fi_datatype type)
{
	return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
}

/* What member `rank` has at a place. */
static double complex value(enum fi_datatype type, int rank, size_t i)
{
	double complex v = (double) ((i * 7 + (size_t) rank * 3 + i / 11) % 4);

	return is_complex(type) ? v + I * (double) ((i + (size_t) rank) % 3) : v;
}

static bool allowed(enum fi_op op, enum fi_datatype type)
{
	if (op == FI_BOR || op == FI_BAND || op == FI_BXOR)
		return type <= FI_UINT64;
	return (op != FI_MIN && op != FI_MAX) || !is_complex(type);
}

static double complex combine(enum fi_op op, double complex a, double complex b)
{
	uint64_t x = (uint64_t) creal(a), y = (uint64_t) creal(b);

	switch (op) {
	case FI_MIN: return creal(a) < creal(b) ? a : b;
	case FI_MAX: return creal(a) > creal(b) ? a : b;
	case FI_SUM: return a + b;
	case FI_PROD: return a * b;
	case FI_LOR: return a != 0 || b != 0;
	case FI_LAND: return a != 0 && b != 0;
	case FI_LXOR: return (a != 0) != (b != 0);
	case FI_BOR: return (double) (x | y);
	case FI_BAND: return (double) (x & y);
	case FI_BXOR: return (double) (x ^ y);
	default: CHECK(0, "operation %d", op);
	}
	return 0;
}

static double complex reduced(enum fi_op op, enum fi_datatype type, size_t i)
{
	double complex v = value(type, 0, i);
	int rank;

	for (rank = 1; rank < members; rank++)
		v = combine(op, v, value(type, rank, i));
	return v;
}

/* ---- the data operations ---- */

static char in[LARGE * 8 * MOST], out[LARGE * 8 * MOST + 64];

/* One operation, from asking to looking at every element and behind the last. */
static void one(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op, size_t count, int root)
{
	struct fid_ep *ep = bed.side[0].ep;
	fi_addr_t group = fi_mc_addr(world);
	size_t size = size_of(type), all = count * (size_t) members, gives = count, gets = count, i;
	bool rooted = coll == FI_REDUCE || coll == FI_GATHER;

	if (coll == FI_ALLTOALL || coll == FI_REDUCE_SCATTER || (coll == FI_SCATTER && me == root))
		gives = all;
	if (coll == FI_ALLTOALL || coll == FI_ALLGATHER || coll == FI_GATHER)
		gets = all;
	if (rooted && me != root)
		gets = 0;
	for (i = 0; i < gives; i++)
		put(type, in, i, value(type, me, i));
	memset(out, 0x5a, gets * size + 64);
	switch (coll) {
	case FI_BROADCAST:
		if (me == root)
			memcpy(out, in, count * size);
		POST(&bed, fi_broadcast(ep, out, count, NULL, group, addr[root], type, 0, ctx(2)));
		break;
	case FI_ALLTOALL:
		POST(&bed, fi_alltoall(ep, in, count, NULL, out, NULL, group, type, 0, ctx(2)));
		break;
	case FI_ALLREDUCE:
		POST(&bed, fi_allreduce(ep, in, count, NULL, out, NULL, group, type, op, 0, ctx(2)));
		break;
	case FI_ALLGATHER:
		POST(&bed, fi_allgather(ep, in, count, NULL, out, NULL, group, type, 0, ctx(2)));
		break;
	case FI_REDUCE_SCATTER:
		POST(&bed, fi_reduce_scatter(ep, in, count, NULL, out, NULL, group, type, op, 0, ctx(2)));
		break;
	case FI_REDUCE:
		POST(&bed, fi_reduce(ep, in, count, NULL, me == root ? out : NULL, NULL, group, addr[root], type, op, 0, ctx(2)));
		break;
	case FI_SCATTER:
		POST(&bed, fi_scatter(ep, me == root ? in : NULL, count, NULL, out, NULL, group, addr[root], type, 0, ctx(2)));
		break;
	case FI_GATHER:
		POST(&bed, fi_gather(ep, in, count, NULL, me == root ? out : NULL, NULL, group, addr[root], type, 0, ctx(2)));
		break;
	default:
		CHECK(0, "collective %d", coll);
	}
	ended(ctx(2));
	for (i = 0; i < gets; i++) {
		int from = count ? (int) (i / count) : 0;
		double complex wanted, found = get(type, out, i);
		char stored[32];

		switch (coll) {
		case FI_BROADCAST: wanted = value(type, root, i); break;
		case FI_ALLTOALL: wanted = value(type, from, (size_t) me * count + i % count); break;
		case FI_ALLREDUCE: case FI_REDUCE: wanted = reduced(op, type, i); break;
		case FI_REDUCE_SCATTER: wanted = reduced(op, type, (size_t) me * count + i); break;
		case FI_SCATTER: wanted = value(type, root, (size_t) me * count + i); break;
		default: wanted = value(type, from, i % count); break;
		}
		put(type, stored, 0, wanted);
		wanted = get(type, stored, 0);
		CHECK(found == wanted, "collective %d of %zu of type %d, operation %d, root %d: element %zu at %d of %d is %g%+gi, not %g%+gi",
		      coll, count, type, op, root, i, me, members, creal(found), cimag(found), creal(wanted), cimag(wanted));
	}
	for (i = 0; i < 64; i++)
		CHECK(out[gets * size + i] == 0x5a, "byte %zu behind the result is written", i);
}

static enum fi_collective_op now;

static void moves(void)
{
	static const size_t counts[] = { 0, 1, 2, 13, 500 };
	size_t c;
	int t, root;

	supports(now, FI_UINT64, FI_NOOP);
	join_all();
	for (t = 0; t < TYPES; t++)
		for (c = 0; c < sizeof(counts) / sizeof(*counts); c++)
			for (root = 0; root < members; root += 2)
				one(now, types[t], FI_NOOP, counts[c], root);
	leave_all();
}

static void moves_much(void)
{
	supports(now, FI_UINT64, FI_NOOP);
	join_all();
	one(now, FI_UINT64, FI_NOOP, LARGE, members - 1);
	one(now, FI_UINT8, FI_NOOP, LARGE + 1, 0);
	leave_all();
}

static void reduces(void)
{
	static const size_t counts[] = { 0, 1, 13, 500 };
	enum fi_op op;
	size_t c;
	int t;

	supports(now, FI_UINT64, FI_SUM);
	join_all();
	for (op = FI_MIN; op <= FI_BXOR; op++)
		for (t = 0; t < TYPES; t++) {
			if (!allowed(op, types[t]))
				continue;
			if (strict)
				supports(now, types[t], op);
			else if (!offered(now, types[t], op))
				continue;
			for (c = 0; c < sizeof(counts) / sizeof(*counts); c++)
				one(now, types[t], op, counts[c], (int) c % members);
		}
	leave_all();
}

static void reduces_much(void)
{
	supports(now, FI_UINT64, FI_SUM);
	join_all();
	one(now, FI_UINT64, FI_SUM, LARGE, members - 1);
	one(now, FI_DOUBLE, FI_MAX, LARGE - 1, 0);
	one(now, FI_INT8, FI_BXOR, LARGE + 1, 0);
	leave_all();
}

#define MOVES(name, coll)                                                            \
	static void name(void) { now = coll; in_groups(moves); }                     \
	static void name##_of_much(void) { now = coll; in_groups(moves_much); }
#define REDUCES(name, coll)                                                          \
	static void name(void) { now = coll; in_groups(reduces); }                   \
	static void name##_of_much(void) { now = coll; in_groups(reduces_much); }
MOVES(broadcast, FI_BROADCAST)
MOVES(alltoall, FI_ALLTOALL)
MOVES(allgather, FI_ALLGATHER)
MOVES(scatter, FI_SCATTER)
MOVES(gather, FI_GATHER)
REDUCES(allreduce, FI_ALLREDUCE)
REDUCES(reduce_scatter, FI_REDUCE_SCATTER)
REDUCES(reduce, FI_REDUCE)

/* ---- joining ---- */

static void joins_and_leaves(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		join_all();
		CHECK(world->fid.fclass == FI_CLASS_MC && world->fid.context == ctx(1), "class %zu", world->fid.fclass);
		GIVES(-FI_EBUSY, fi_close(&world_set->fid));
		leave_all();
	}
}

static void join_is_told(void)
{
	in_groups(joins_and_leaves);
}

static void one_comes_late(void)
{
	struct fid_av_set *set = set_of_all();
	struct fi_eq_entry entry;
	struct fid_mc *mc = NULL;
	uint32_t event;
	int i;

	if (me != 1) {
		mc = begin_join(set, set_addr(set), ctx(1));
		for (i = 0; i < 300; i++) {
			progress(&bed);
			GIVES(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
			sched_yield();
		}
	}
	everybody();
	if (me == 1)
		mc = begin_join(set, set_addr(set), ctx(1));
	CHECK(next_event(&entry) == FI_JOIN_COMPLETE, "another event");
	everybody();
	OK(fi_close(&mc->fid));
	OK(fi_close(&set->fid));
}

static void join_waits_for_all(void)
{
	in_group(3, &usual, one_comes_late);
}

static void begins_alone(void)
{
	world_set = set_of_all();
	if (strict && me == 0) { /* nobody else has come: it needs nobody */
		world = join(world_set, FI_ADDR_NOTAVAIL);
		everybody();
	} else {
		if (strict)
			everybody();
		world = join(world_set, FI_ADDR_NOTAVAIL);
	}
	one(FI_ALLREDUCE, FI_UINT64, FI_SUM, 3, 0);
	leave_all();
}

static void application_manages_the_members(void)
{
	in_group(3, &usual, begins_alone);
}

/* Groups of some, in an order of their own, and a root that is named by its address. */
static void groups_of_some(void)
{
	static const int odd[] = { 3, 1 }, even[] = { 4, 0, 2 };
	const int *ranks = me % 2 ? odd : even;
	int count = me % 2 ? 2 : 3, i;
	struct fid_av_set *set;
	uint64_t mine = 100 + (uint64_t) me, all[3] = { 0 };
	struct fid_mc *mc;

	join_all();
	set = set_of(ranks, count, 0);
	/* Of the set, and once more of the group of all. */
	for (i = 0; i < 2; i++) {
		int r;

		mc = join(set, i ? fi_mc_addr(world) : set_addr(set));
		POST(&bed, fi_allgather(bed.side[0].ep, &mine, 1, NULL, all, NULL, fi_mc_addr(mc), FI_UINT64, 0, ctx(2)));
		ended(ctx(2));
		for (r = 0; r < count; r++)
			CHECK(all[r] == 100 + (uint64_t) ranks[r], "place %d: %llu", r, (unsigned long long) all[r]);
		if (strict) {
			memset(all, 0, sizeof(all));
			POST(&bed, fi_gather(bed.side[0].ep, &mine, 1, NULL, all, NULL, fi_mc_addr(mc), addr[ranks[0]], FI_UINT64, 0, ctx(3)));
			ended(ctx(3));
			for (r = 0; r < count && me == ranks[0]; r++)
				CHECK(all[r] == 100 + (uint64_t) ranks[r], "gathered at %d: %llu", r, (unsigned long long) all[r]);
			FAILS(fi_gather(bed.side[0].ep, &mine, 1, NULL, all, NULL, fi_mc_addr(mc), addr[!(me % 2)], FI_UINT64, 0, ctx(3)));
		}
		OK(fi_close(&mc->fid));
		everybody();
	}
	OK(fi_close(&set->fid));
	leave_all();
}

static void subgroups_in_their_order(void)
{
	in_group(5, &usual, groups_of_some);
}

/* ---- barrier ---- */

static void nobody_ahead(void)
{
	unsigned die = (unsigned) me * 7919 + 1;
	int round, i;

	supports(FI_BARRIER, FI_VOID, FI_NOOP);
	join_all();
	for (round = 1; round <= 60; round++) {
		die = die * 1103515245 + 12345;
		for (i = 0; i < (int) (die >> 16) % 50; i++)
			progress(&bed);
		__sync_fetch_and_add(&common->entered, 1);
		if (round % 2 || !HEADERS_2)
			POST(&bed, fi_barrier(bed.side[0].ep, fi_mc_addr(world), ctx(4)));
#if HEADERS_2
		else
			POST(&bed, fi_barrier2(bed.side[0].ep, fi_mc_addr(world), FI_COMPLETION, ctx(4)));
#endif
		ended(ctx(4));
		CHECK(common->entered >= round * members, "left barrier %d when only %d had come", round, common->entered);
	}
	leave_all();
}

static void barrier(void)
{
	in_groups(nobody_ahead);
}

/* ---- several at once ---- */

enum { AT_ONCE = 12 };

static void in_two_groups(void)
{
	static uint64_t mine[AT_ONCE][100], sum[AT_ONCE][100];
	static const int backwards[] = { 4, 3, 2, 1, 0 };
	struct fid_av_set *set;
	struct fid_mc *other;
	bool seen[AT_ONCE] = { false };
	int i, k, r;

	join_all();
	set = set_of(backwards + MOST - members, members, 0);
	other = join(set, set_addr(set));
	/* In each group the same order everywhere; between the groups it may differ. */
	for (k = 0; k < AT_ONCE; k++) {
		i = me % 2 ? (k + AT_ONCE / 2) % AT_ONCE : k;
		for (r = 0; r < 100; r++)
			mine[i][r] = (uint64_t) (me + 1) * 1000 + (uint64_t) (i * 100 + r);
		POST(&bed, fi_allreduce(bed.side[0].ep, mine[i], 100, NULL, sum[i], NULL,
					fi_mc_addr(i < AT_ONCE / 2 ? world : other), FI_UINT64, FI_SUM, 0, ctx(10 + i)));
	}
	for (k = 0; k < AT_ONCE; k++) {
		struct fi_cq_tagged_entry e;

		CHECK(next(&bed, bed.side[0].tx, &e) == 1, "a completion is missing after %d", k);
		for (i = 0; i < AT_ONCE && e.op_context != ctx(10 + i); i++)
			;
		CHECK(i < AT_ONCE && !seen[i], "context %p", e.op_context);
		seen[i] = true;
		for (r = 0; r < 100; r++) {
			uint64_t wanted = (uint64_t) members * (uint64_t) (members + 1) / 2 * 1000 + (uint64_t) members * (uint64_t) (i * 100 + r);

			CHECK(sum[i][r] == wanted, "sum %d at %d: %llu", i, r, (unsigned long long) sum[i][r]);
		}
	}
	OK(fi_close(&other->fid));
	OK(fi_close(&set->fid));
	leave_all();
}

static void many_at_once(void)
{
	NEED(strict, "the C library does not keep collectives of two groups apart");
	in_groups(in_two_groups);
}

/* Messages of the application's go their own way meanwhile. */
static void between_messages(void)
{
	static char got[8], sent[8];
	uint64_t mine = (uint64_t) me, sum = 0;
	struct fi_cq_tagged_entry e;
	int peer = (me + 1) % members, ends = 0;

	join_all();
	POST(&bed, fi_trecv(bed.side[0].ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, 0, ~0ULL, ctx(1)));
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(2)));
	fill(sent, sizeof(sent), (unsigned) me);
	POST(&bed, fi_tsend(bed.side[0].ep, sent, sizeof(sent), NULL, addr[peer], 9, ctx(3)));
	while (ends != 3) {
		CHECK(next(&bed, bed.side[0].tx, &e) == 1, "a completion is missing");
		ends |= e.op_context == ctx(2) ? 1 : e.op_context == ctx(3) ? 2 : 8;
	}
	e = COMPLETION(&bed, bed.side[0].rx, ctx(1));
	CHECK(e.tag == 9 && e.len == sizeof(got), "tag %llu", (unsigned long long) e.tag);
	SAME(got, sizeof(got), (unsigned) ((me + members - 1) % members));
	CHECK(sum == (uint64_t) (members * (members - 1) / 2), "sum %llu", (unsigned long long) sum);
	leave_all();
}

static void messages_do_not_meet_collectives(void)
{
	in_group(3, &usual, between_messages);
}

/* ---- results and ends ---- */

static void rounding(void)
{
	static double mine[LARGE], sum[LARGE];
	size_t counts[] = { 1, 64, LARGE }, c, i;
	int r;

	join_all();
	for (c = 0; c < (strict ? 3 : 2); c++) {
		srand48(me * 100 + (long) c);
		for (i = 0; i < counts[c]; i++)
			mine[i] = (drand48() - 0.5) * (i % 3 ? 1 : 1e16);
		POST(&bed, fi_allreduce(bed.side[0].ep, mine, counts[c], NULL, sum, NULL, fi_mc_addr(world), FI_DOUBLE, FI_SUM, 0, ctx(2)));
		ended(ctx(2));
		for (i = 0; i < 64; i++)
			common->bits[me][i] = sum[counts[c] * i / 64];
		everybody();
		for (r = 0; r < members; r++)
			CHECK(memcmp(common->bits[r], common->bits[me], sizeof(common->bits[r])) == 0, "members %d and %d have other sums", r, me);
		everybody();
	}
	leave_all();
}

static void sums_are_the_same_bits_everywhere(void)
{
	in_groups(rounding);
}

static void selective(void)
{
	uint64_t mine = 1, sum = 0;

	join_all();
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(5)));
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, FI_COMPLETION, ctx(6)));
	ended(ctx(6));
	NO_COMPLETION(&bed, bed.side[0].tx);
	everybody();
	leave_all();
}

static void ends_are_told_to_those_who_ask(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does not look at FI_SELECTIVE_COMPLETION");
	s.tx_bind = FI_SELECTIVE_COMPLETION;
	in_group(2, &s, selective);
}

/* A member that ends takes nobody with it: the others are told, now and later, and can leave. */
static void without_one(void)
{
	static uint64_t mine[LARGE], sum[LARGE];
	struct fi_cq_err_entry e;
	int i;

	join_all();
	everybody();
	if (me == 2) {
		common->stop = 1;
		raise(SIGKILL);
	}
	for (i = 0; i < 2; i++) {
		POST(&bed, fi_allreduce(bed.side[0].ep, mine, i ? 1 : LARGE, NULL, sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(7)));
		e = ERROR_COMPLETION(&bed, bed.side[0].tx);
		CHECK(e.op_context == ctx(7) && e.err > 0, "error %d of %p", e.err, e.op_context);
	}
	OK(fi_close(&world->fid));
	OK(fi_close(&world_set->fid));
	OK(fi_close(&bed.side[0].ep->fid));
	if (me)
		_exit(0);
	while (wait(NULL) > 0)
		;
	printf("ok %s\n", case_name);
	fflush(stdout);
	_exit(0);
}

static void death_is_told(void)
{
	NEED(strict, "the C library waits for ever");
	in_group(5, &usual, without_one);
}

/* One that posts and then calls nothing more does its part all the same. */
static void while_one_sleeps(void)
{
	uint64_t mine = 1, sum = 0;

	join_all();
	everybody();
	POST(&bed, fi_allreduce(bed.side[0].ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(5)));
	if (me == 1) {
		long until = now_ms() + GIVE_UP_MS;

		while (common->entered < members - 1) {
			CHECK(now_ms() < until, "the others wait for a call");
			sched_yield();
		}
		ended(ctx(5));
	} else {
		ended(ctx(5));
		__sync_fetch_and_add(&common->entered, 1);
	}
	CHECK(sum == (uint64_t) members, "sum %llu", (unsigned long long) sum);
	leave_all();
}

static void automatic_progress(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.progress = FI_PROGRESS_AUTO;
	in_group(3, &s, while_one_sleeps);
}

static void asleep(void)
{
	static uint64_t mine[LARGE], sum[LARGE];
	struct fi_cq_tagged_entry e;
	int round;

	join_all();
	for (round = 0; round < 20; round++) {
		size_t count = round % 4 ? 1 : LARGE;

		mine[0] = (uint64_t) round;
		POST(&bed, fi_allreduce(bed.side[0].ep, mine, count, NULL, sum, NULL, fi_mc_addr(world), FI_UINT64, FI_SUM, 0, ctx(5)));
		GIVES(1, fi_cq_sread(bed.side[0].tx, &e, 1, NULL, GIVE_UP_MS));
		CHECK(e.op_context == ctx(5) && sum[0] == (uint64_t) (round * members), "sum %llu", (unsigned long long) sum[0]);
	}
	leave_all();
}

static void ends_wake_sleepers(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.any_wait = true;
	in_group(3, &s, asleep);
}

/* Threading levels at which the library has no lock. */
static void without_locks(void)
{
	struct setup s = usual;

	NEED(strict, "of our own interest");
	s.threading = FI_THREAD_DOMAIN;
	in_group(3, &s, rounding);
}

/* ---- the msg form ---- */

static void in_pieces(void)
{
	uint32_t mine[5], sum[5] = { 0 }, data[6];
	struct fi_ioc from[2] = { { mine, 2 }, { mine + 2, 3 } }, into[2] = { { sum, 4 }, { sum + 4, 1 } };
	struct fi_ioc whole[2] = { { data, 1 }, { data + 1, 5 } };
	struct fi_msg_collective msg = {
		.msg_iov = from, .iov_count = 2, .coll = FI_ALLREDUCE, .datatype = FI_UINT32, .op = FI_SUM, .context = ctx(8),
	};
	ssize_t ret;
	unsigned i;

	join_all();
	for (i = 0; i < 5; i++)
		mine[i] = (uint32_t) me + i;
	for (i = 0; i < 6; i++)
		data[i] = me ? 0 : i * i;
	msg.coll_addr = fi_mc_addr(world);
	ret = bed.side[0].ep->collective->msg(bed.side[0].ep, &msg, into, NULL, 2, 0);
	NEED(ret != -FI_ENOSYS, "fi_ops_collective.msg");
	OK(ret);
	ended(ctx(8));
	for (i = 0; i < 5; i++)
		CHECK(sum[i] == 3 + 3 * i, "sum %u: %u", i, sum[i]);
	msg.coll = FI_BROADCAST;
	msg.msg_iov = whole;
	msg.root_addr = addr[0];
	OK(bed.side[0].ep->collective->msg(bed.side[0].ep, &msg, NULL, NULL, 0, 0));
	ended(ctx(8));
	for (i = 0; i < 6; i++)
		CHECK(data[i] == i * i, "element %u: %u", i, data[i]);
	leave_all();
}

static void msg_takes_pieces(void)
{
	in_group(3, &usual, in_pieces);
}

/* ---- what is refused ---- */

static void refused(void)
{
	uint64_t mine = 1, sum = 0;
	struct fid_ep *ep = bed.side[0].ep;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t group;

	join_all();
	group = fi_mc_addr(world);
	FAILS(fi_barrier(ep, 0, ctx(1)));
	FAILS(fi_barrier(ep, FI_ADDR_NOTAVAIL, ctx(1)));
	FAILS(fi_barrier(ep, set_addr(world_set), ctx(1)));
	GIVES(-FI_EOPNOTSUPP, fi_allreduce(ep, &mine, 1, NULL, &sum, NULL, group, FI_FLOAT, FI_BOR, 0, ctx(1)));
	GIVES(-FI_EOPNOTSUPP, fi_allreduce(ep, &mine, 1, NULL, &sum, NULL, group, FI_UINT64, FI_CSWAP, 0, ctx(1)));
	GIVES(-FI_EOPNOTSUPP, fi_allgather(ep, &mine, 1, NULL, &sum, NULL, group, FI_VOID, 0, ctx(1)));
	GIVES(-FI_EMSGSIZE, fi_allreduce(ep, &mine, SIZE_MAX, NULL, &sum, NULL, group, FI_UINT64, FI_SUM, 0, ctx(1)));
	FAILS(fi_allreduce(ep, NULL, 1, NULL, &sum, NULL, group, FI_UINT64, FI_SUM, 0, ctx(1)));
	FAILS(fi_join_collective(ep, 0, world_set, 0, &mc, ctx(1)));
	FAILS(fi_join_collective(ep, group, NULL, 0, &mc, ctx(1)));
	set = set_of(NULL, 0, 0); /* without us */
	FAILS(fi_join_collective(ep, set_addr(set), set, 0, &mc, ctx(1)));
	OK(fi_close(&set->fid));
	set = set_of((const int[]) { 0, 1 }, 2, FI_BARRIER_SET);
	mc = join(set, set_addr(set));
	GIVES(-FI_EOPNOTSUPP, fi_allreduce(ep, &mine, 1, NULL, &sum, NULL, fi_mc_addr(mc), FI_UINT64, FI_SUM, 0, ctx(1)));
	POST(&bed, fi_barrier(ep, fi_mc_addr(mc), ctx(2)));
	ended(ctx(2));
	/* One that waits for the other keeps the group open. */
	if (me == 0) {
		POST(&bed, fi_barrier(ep, fi_mc_addr(mc), ctx(3)));
		GIVES(-FI_EBUSY, fi_close(&mc->fid));
		everybody();
	} else {
		everybody();
		POST(&bed, fi_barrier(ep, fi_mc_addr(mc), ctx(3)));
	}
	ended(ctx(3));
	group = fi_mc_addr(mc);
	OK(fi_close(&mc->fid));
	FAILS(fi_barrier(ep, group, ctx(1)));
	OK(fi_close(&set->fid));
	leave_all();
}

static void nonsense_is_refused(void)
{
	NEED(strict, "the C library takes addresses for pointers");
	in_group(2, &usual, refused);
}

static void join_needs_an_event_queue(void)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .flags = FI_UNIVERSE };
	struct setup s = usual;
	struct fid_av_set *set;
	struct fid_mc *mc;

	NEED(strict, "the C library does not ask for one");
	s.strangers = false;
	open_bed(&bed, &s);
	OK(fi_av_set(bed.av, &attr, &set, NULL));
	GIVES(-FI_ENOEQ, fi_join_collective(bed.side[0].ep, set_addr(set), set, 0, &mc, NULL));
	OK(fi_close(&set->fid));
	close_bed(&bed);
}

static void endpoint_may_be_closed_first(void)
{
	NEED(strict, "the C library does not say");
	members = 1;
	common = calloc(1, sizeof(*common));
	open_member(&usual);
	join_all();
	OK(fi_close(&bed.side[0].ep->fid));
	bed.side[0].ep = NULL;
	OK(fi_close(&world->fid));
	OK(fi_close(&world_set->fid));
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

/* ---- the query ---- */

/* ---- other kinds of endpoints ---- */

static const enum kind of_contexts[MOST] = { CONTEXT, CONTEXT, CONTEXT, CONTEXT, CONTEXT };
static const enum kind of_sharers[MOST] = { SHARES, SHARES, SHARES, SHARES, SHARES };
static const enum kind of_all[MOST] = { PLAIN, SHARES, CONTEXT, CONTEXT, SHARES };

static void of_kinds(const enum kind *of, int count, const struct setup *setup, void (*body)(void))
{
	memcpy(kinds, of, sizeof(kinds));
	in_group(count, setup, body);
}

/* What plain endpoints are asked, once more. */
static void as_plain_ones(const enum kind *of)
{
	NEED(strict, "no provider of the C library has collectives there");
	of_kinds(of, 1, &usual, joins_and_leaves);
	of_kinds(of, 3, &usual, joins_and_leaves);
	of_kinds(of, 5, &usual, groups_of_some);
	of_kinds(of, 4, &usual, nobody_ahead);
	for (now = FI_BARRIER + 1; now <= FI_GATHER; now++)
		if (now == FI_ALLREDUCE || now == FI_REDUCE_SCATTER || now == FI_REDUCE)
			of_kinds(of, 4, &usual, reduces_much);
		else
			of_kinds(of, 4, &usual, moves_much);
	of_kinds(of, 5, &usual, in_two_groups);
	of_kinds(of, 3, &usual, in_pieces);
}

static void contexts_take_part(void) { as_plain_ones(of_contexts); }
static void sharers_take_part(void) { as_plain_ones(of_sharers); }
static void all_kinds_take_part(void) { as_plain_ones(of_all); }

static void other_kinds_refuse_nonsense(void)
{
	NEED(strict, "the C library takes addresses for pointers");
	of_kinds(of_contexts, 2, &usual, refused);
	of_kinds(of_sharers, 2, &usual, refused);
}

static void other_kinds_are_told_of_death(void)
{
	NEED(strict, "the C library waits for ever");
	of_kinds(of_all, 5, &usual, without_one);
}

static void other_kinds_sleep(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.any_wait = true;
	of_kinds(of_contexts, 3, &s, asleep);
	of_kinds(of_sharers, 3, &s, asleep);
}

static void other_kinds_have_automatic_progress(void)
{
	struct setup s = usual;

	NEED(strict, "the C library does it for some");
	s.progress = FI_PROGRESS_AUTO;
	of_kinds(of_contexts, 3, &s, while_one_sleeps);
	of_kinds(of_sharers, 3, &s, while_one_sleeps);
}

/* Contexts of one endpoint are in groups of their own, and only those that transmit are in any. */
static void each_its_own(void)
{
	uint64_t mine[2] = { 1, 10 }, sum[2] = { 0 };
	struct fid_ep *first = other_context, *second = bed.side[0].ep, *ep[2] = { first, second };
	struct fid_av_set *set = set_of_all();
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry entry;
	struct fid_mc *mc[2], *none;
	int i;

	OK(fi_ep_bind(first, &eq->fid, 0));
	for (i = 0; i < 2; i++)
		OK(fi_join_collective(ep[i], set_addr(set), set, 0, &mc[i], ctx(1)));
	for (i = 0; i < 2; i++)
		CHECK(next_event(&entry) == FI_JOIN_COMPLETE, "another event");
	FAILS(fi_barrier(first, fi_mc_addr(mc[1]), ctx(1)));
	if (rx_context)
		FAILS(fi_join_collective(rx_context, set_addr(set), set, 0, &none, ctx(1)));
	for (i = 0; i < 2; i++) {
		int k = me % 2 ? !i : i;

		POST(&bed, fi_allreduce(ep[k], &mine[k], 1, NULL, &sum[k], NULL, fi_mc_addr(mc[k]), FI_UINT64, FI_SUM, 0, ctx(2 + k)));
	}
	for (i = 0; i < 2; i++) {
		CHECK(next(&bed, bed.side[0].tx, &e) == 1, "no completion");
		CHECK(e.op_context == ctx(2) || e.op_context == ctx(3), "context %p", e.op_context);
	}
	CHECK(sum[0] == (uint64_t) members && sum[1] == (uint64_t) members * 10, "sums %llu, %llu", (unsigned long long) sum[0],
	      (unsigned long long) sum[1]);
	everybody();
	/* One ends, and waits for nobody who would come. */
	if (me == 0) {
		POST(&bed, fi_allreduce(first, &mine[0], 1, NULL, &sum[0], NULL, fi_mc_addr(mc[0]), FI_UINT64, FI_SUM, 0, ctx(2)));
		GIVES(-FI_EBUSY, fi_close(&mc[0]->fid));
	}
	close_one(&other_context);
	OK(fi_close(&mc[0]->fid));
	POST(&bed, fi_barrier(second, fi_mc_addr(mc[1]), ctx(3)));
	ended(ctx(3));
	everybody();
	OK(fi_close(&mc[1]->fid));
	OK(fi_close(&set->fid));
}

static void contexts_have_groups_of_their_own(void)
{
	NEED(strict, "no provider of the C library has collectives there");
	of_kinds(of_contexts, 2, &usual, each_its_own);
}

/* Several members that share one receive context: each gets what is meant for it. One is closed while it waits. */
static void several_share_one_context(void)
{
	enum { SHARERS = 4 };
	struct setup s = usual;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	uint32_t mine[SHARERS][SHARERS], got[SHARERS][SHARERS];
	struct fi_eq_entry entry;
	struct fid_av_set *set;
	struct fid_mc *mc[SHARERS];
	int i, k, round;

	NEED(strict, "no provider of the C library has collectives there");
	s.sides = SHARERS;
	s.rx_ctx_cnt = FI_SHARED_CONTEXT;
	s.strangers = false;
	open_sides(&bed, &s);
	OK(fi_srx_context(bed.domain, bed.info->rx_attr, &srx, NULL));
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	for (i = 0; i < SHARERS; i++) {
		OK(fi_ep_bind(bed.side[i].ep, &srx->fid, 0));
		OK(fi_ep_bind(bed.side[i].ep, &eq->fid, 0));
	}
	enable_sides(&bed, &s);
	members = SHARERS;
	for (i = 0; i < SHARERS; i++)
		addr[i] = bed.side[i].addr;
	set = set_of_all();
	for (i = 0; i < SHARERS; i++)
		OK(fi_join_collective(bed.side[i].ep, set_addr(set), set, 0, &mc[i], ctx(1)));
	for (i = 0; i < SHARERS; i++)
		CHECK(next_event(&entry) == FI_JOIN_COMPLETE, "another event");
	for (round = 0; round < 20; round++) {
		for (i = 0; i < SHARERS; i++) {
			int m = (i * 3 + round) % SHARERS;

			for (k = 0; k < SHARERS; k++)
				mine[m][k] = (uint32_t) (round * 100 + m * 10 + k);
			POST(&bed, fi_alltoall(bed.side[m].ep, mine[m], 1, NULL, got[m], NULL, fi_mc_addr(mc[m]), FI_UINT32, 0, ctx(m)));
		}
		for (i = 0; i < SHARERS; i++) {
			COMPLETION(&bed, bed.side[i].tx, ctx(i));
			for (k = 0; k < SHARERS; k++)
				CHECK(got[i][k] == (uint32_t) (round * 100 + k * 10 + i), "member %d has %u from %d", i, got[i][k], k);
		}
	}
	FAILS(fi_barrier(bed.side[0].ep, fi_mc_addr(mc[1]), ctx(1)));
	POST(&bed, fi_barrier(bed.side[1].ep, fi_mc_addr(mc[1]), ctx(1)));
	for (i = 1; i >= 0; i--) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	for (i = 0; i < SHARERS; i++)
		OK(fi_close(&mc[i]->fid));
	OK(fi_close(&set->fid));
	for (i = 2; i < SHARERS; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	close_one(&srx);
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

static void query_tells_limits(void)
{
	struct fi_collective_attr attr = { .op = FI_SUM, .datatype = FI_LONG_DOUBLE };
	int ret;

	open_domain(&bed, &usual);
	ret = fi_query_collective(bed.domain, FI_ALLREDUCE, &attr, 0);
	NEED(!lacking(ret), "fi_query_collective: %s", fi_strerror(-ret));
	OK(ret);
	CHECK(attr.datatype_attr.size == sizeof(long double), "size %zu", attr.datatype_attr.size);
	CHECK(attr.datatype_attr.count > 0 && attr.max_members > 1, "limits of %zu and %zu", attr.datatype_attr.count, attr.max_members);
	attr.mode = 1;
	FAILS(fi_query_collective(bed.domain, FI_ALLREDUCE, &attr, 0));
	attr.mode = 0;
	attr.op = FI_BOR;
	FAILS(fi_query_collective(bed.domain, FI_ALLREDUCE, &attr, 0));
	attr.op = FI_CSWAP;
	FAILS(fi_query_collective(bed.domain, FI_ALLREDUCE, &attr, 0));
	FAILS(fi_query_collective(bed.domain, FI_ALLREDUCE, NULL, 0));
	FAILS(fi_query_collective(bed.domain, (enum fi_collective_op) 99, &attr, 0));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(query_tells_limits),
	TEST(join_is_told),
	TEST(join_waits_for_all),
	TEST(join_needs_an_event_queue),
	TEST(application_manages_the_members),
	TEST(subgroups_in_their_order),
	TEST(endpoint_may_be_closed_first),
	TEST(barrier),
	TEST(broadcast),
	TEST(broadcast_of_much),
	TEST(alltoall),
	TEST(alltoall_of_much),
	TEST(allreduce),
	TEST(allreduce_of_much),
	TEST(allgather),
	TEST(allgather_of_much),
	TEST(reduce_scatter),
	TEST(reduce_scatter_of_much),
	TEST(reduce),
	TEST(reduce_of_much),
	TEST(scatter),
	TEST(scatter_of_much),
	TEST(gather),
	TEST(gather_of_much),
	TEST(msg_takes_pieces),
	TEST(many_at_once),
	TEST(messages_do_not_meet_collectives),
	TEST(sums_are_the_same_bits_everywhere),
	TEST(ends_are_told_to_those_who_ask),
	TEST(automatic_progress),
	TEST(ends_wake_sleepers),
	TEST(without_locks),
	TEST(death_is_told),
	TEST(contexts_take_part),
	TEST(sharers_take_part),
	TEST(all_kinds_take_part),
	TEST(other_kinds_refuse_nonsense),
	TEST(other_kinds_are_told_of_death),
	TEST(other_kinds_sleep),
	TEST(other_kinds_have_automatic_progress),
	TEST(contexts_have_groups_of_their_own),
	TEST(several_share_one_context),
	TEST(nonsense_is_refused),
};

CASES(tests)

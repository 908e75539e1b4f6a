/* The operations that move and reduce data: every type, every operation, few elements and many. */
#include "elements.h"

static char in[LARGE * 8 * MOST], out[LARGE * 8 * MOST + 64];

/* Posts what is in `in`, for `out`; where only the root gives or gets, the others have no buffer. */
static void post(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op, size_t count, int root)
{
	struct fid_ep *ep = bed.side[0].ep;
	fi_addr_t group = fi_mc_addr(world);
	void *from = me == root ? in : NULL, *to = me == root ? out : NULL;

	switch (coll) {
	case FI_BROADCAST:
		if (me == root)
			memcpy(out, in, count * size_of(type));
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
		POST(&bed, fi_reduce(ep, in, count, NULL, to, NULL, group, addr[root], type, op, 0, ctx(2)));
		break;
	case FI_SCATTER:
		POST(&bed, fi_scatter(ep, from, count, NULL, out, NULL, group, addr[root], type, 0, ctx(2)));
		break;
	case FI_GATHER:
		POST(&bed, fi_gather(ep, in, count, NULL, to, NULL, group, addr[root], type, 0, ctx(2)));
		break;
	default:
		CHECK(0, "collective %d", coll);
	}
}

/* What must be at a place of the result. */
static double complex wanted(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op, size_t count, int root, size_t i)
{
	int from = (int) (i / count);
	double complex v;
	char stored[32];

	switch (coll) {
	case FI_BROADCAST: v = value(type, root, i); break;
	case FI_ALLTOALL: v = value(type, from, (size_t) me * count + i % count); break;
	case FI_ALLREDUCE: case FI_REDUCE: v = reduced(op, type, i); break;
	case FI_REDUCE_SCATTER: v = reduced(op, type, (size_t) me * count + i); break;
	case FI_SCATTER: v = value(type, root, (size_t) me * count + i); break;
	default: v = value(type, from, i % count); break;
	}
	put(type, stored, 0, v); /* which may not hold it all */
	return get(type, stored, 0);
}

void one(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op, size_t count, int root)
{
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
	post(coll, type, op, count, root);
	ended(ctx(2));
	for (i = 0; i < gets; i++) {
		double complex v = wanted(coll, type, op, count, root, i), found = get(type, out, i);

		CHECK(found == v, "collective %d of %zu of type %d, operation %d, root %d: element %zu at %d of %d is %g%+gi, not %g%+gi",
		      coll, count, type, op, root, i, me, members, creal(found), cimag(found), creal(v), cimag(v));
	}
	for (i = 0; i < 64; i++)
		CHECK(out[gets * size + i] == 0x5a, "byte %zu behind the result is written", i);
}

enum fi_collective_op now;

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

void moves_much(void)
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

void reduces_much(void)
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

static const struct test tests[] = {
	TEST(broadcast), TEST(broadcast_of_much), TEST(alltoall), TEST(alltoall_of_much), TEST(allreduce),
	TEST(allreduce_of_much), TEST(allgather), TEST(allgather_of_much), TEST(reduce_scatter),
	TEST(reduce_scatter_of_much), TEST(reduce), TEST(reduce_of_much), TEST(scatter), TEST(scatter_of_much),
	TEST(gather), TEST(gather_of_much),
};

CASES(tests)

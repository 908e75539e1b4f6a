/* fi_atomic(3) on connected endpoints whose card adds, compares and swaps eight bytes of registered memory. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "connected.h"

static uint64_t ours[1024], theirs[1024] __attribute__((aligned(4096)));

struct opened {
	struct wired w;
	struct fid_mr *mr;
	void *desc;
	uint64_t key;
	struct fid_ep *ep;
	struct fid_cq *cq;
};

static void open_both(struct opened *o, uint64_t access)
{
	struct setup s = { .caps = FI_MSG | FI_RMA | FI_ATOMIC };

	memset(o, 0, sizeof(*o));
	open_exchange(&o->w, &s);
	join_sides(&o->w, 0, 1);
	OK(fi_mr_reg(o->w.bed.domain, theirs, sizeof(theirs), access, 0, 0, 0, &o->mr, NULL));
	OK(fi_close(&o->w.bed.mine->fid));
	OK(fi_mr_reg(o->w.bed.domain, ours, sizeof(ours), FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 0, 0, &o->w.bed.mine, NULL));
	o->key = fi_mr_key(o->mr);
	o->desc = fi_mr_desc(o->w.bed.mine);
	o->ep = o->w.bed.side[0].ep;
	o->cq = o->w.bed.side[0].tx;
	memset(theirs, 0, sizeof(theirs));
}

static void close_both(struct opened *o)
{
	OK(fi_close(&o->mr->fid));
	close_wires(&o->w);
}

#define THERE(i) 0, (uint64_t) &theirs[i], o.key
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)

static void adding_and_swapping(void)
{
	struct fi_cq_tagged_entry entry;
	struct opened o;

	open_both(&o, RIGHTS);
	CHECK(o.w.bed.info->caps & FI_ATOMIC, "no FI_ATOMIC");
	theirs[3] = 40;
	ours[0] = 2;
	POST(&o.w.bed, fi_fetch_atomic(o.ep, ours, 1, o.desc, ours + 1, o.desc, THERE(3), FI_UINT64, FI_SUM, ctx(1)));
	entry = COMPLETION(&o.w.bed, o.cq, ctx(1));
	CHECK(entry.flags == (FI_ATOMIC | FI_READ), "flags %#lx", (long) entry.flags);
	CHECK(ours[1] == 40 && theirs[3] == 42, "%lu there, %lu before", (long) theirs[3], (long) ours[1]);
	/* It is compared with another, and then with its own. */
	ours[0] = 7;
	ours[2] = 41;
	POST(&o.w.bed, fi_compare_atomic(o.ep, ours, 1, o.desc, ours + 2, o.desc, ours + 1, o.desc, THERE(3), FI_INT64, FI_CSWAP, ctx(2)));
	COMPLETION(&o.w.bed, o.cq, ctx(2));
	CHECK(ours[1] == 42 && theirs[3] == 42, "%lu there, %lu before", (long) theirs[3], (long) ours[1]);
	ours[2] = 42;
	POST(&o.w.bed, fi_compare_atomic(o.ep, ours, 1, o.desc, ours + 2, o.desc, ours + 1, o.desc, THERE(3), FI_INT64, FI_CSWAP, ctx(3)));
	COMPLETION(&o.w.bed, o.cq, ctx(3));
	CHECK(ours[1] == 42 && theirs[3] == 7, "%lu there, %lu before", (long) theirs[3], (long) ours[1]);
	/* A write, an injected one, and a read that sees it. */
	ours[0] = 99;
	POST(&o.w.bed, fi_atomic(o.ep, ours, 1, o.desc, THERE(3), FI_UINT64, FI_ATOMIC_WRITE, ctx(4)));
	entry = COMPLETION(&o.w.bed, o.cq, ctx(4));
	CHECK(entry.flags == (FI_ATOMIC | FI_WRITE) && theirs[3] == 99, "flags %#lx", (long) entry.flags);
	ours[0] = 100;
	POST(&o.w.bed, fi_inject_atomic(o.ep, ours, 1, THERE(3), FI_UINT64, FI_ATOMIC_WRITE));
	POST(&o.w.bed, fi_fetch_atomic(o.ep, NULL, 1, NULL, ours + 1, o.desc, THERE(3), FI_UINT64, FI_ATOMIC_READ, ctx(5)));
	COMPLETION(&o.w.bed, o.cq, ctx(5));
	CHECK(ours[1] == 100, "%lu", (long) ours[1]);
	close_both(&o);
}

/* Both sides add to one number; each sum comes back to one of them. */
static void sums_of_both_sides_are_whole(void)
{
	enum { TIMES = 200 };
	static char seen[2 * TIMES];
	struct opened o;
	int i, side;

	open_both(&o, RIGHTS);
	memset(seen, 0, sizeof(seen));
	ours[0] = 1;
	for (i = 0; i < TIMES; i++)
		for (side = 0; side < 2; side++)
			POST(&o.w.bed, fi_fetch_atomic(o.w.bed.side[side].ep, ours, 1, o.desc, ours + 1 + 2 * i + side, o.desc, THERE(0),
						      FI_UINT64, FI_SUM, ctx(i)));
	for (i = 0; i < TIMES; i++)
		for (side = 0; side < 2; side++)
			COMPLETION(&o.w.bed, o.w.bed.side[side].tx, ctx(i));
	CHECK(theirs[0] == 2 * TIMES, "%lu", (long) theirs[0]);
	for (i = 0; i < 2 * TIMES; i++) {
		CHECK(ours[1 + i] < 2 * TIMES && !seen[ours[1 + i]], "%lu twice", (long) ours[1 + i]);
		seen[ours[1 + i]] = 1;
	}
	close_both(&o);
}

/* What endpoint and domain say there is, is there, and nothing else. */
static void what_there_is_is_told(void)
{
	static const struct { enum fi_datatype type; enum fi_op op; uint64_t form; int there; } rows[] = {
		{ FI_UINT64, FI_SUM, FI_FETCH_ATOMIC, 1 },    { FI_INT64, FI_SUM, FI_FETCH_ATOMIC, 1 },
		{ FI_UINT64, FI_CSWAP, FI_COMPARE_ATOMIC, 1 }, { FI_UINT64, FI_ATOMIC_READ, FI_FETCH_ATOMIC, 1 },
		{ FI_UINT64, FI_ATOMIC_WRITE, 0, 1 },          { FI_DOUBLE, FI_ATOMIC_WRITE, 0, 1 },
		{ FI_DOUBLE, FI_SUM, FI_FETCH_ATOMIC, 0 },     { FI_UINT32, FI_SUM, FI_FETCH_ATOMIC, 0 },
		{ FI_UINT64, FI_SUM, 0, 0 },                   { FI_UINT64, FI_BOR, FI_FETCH_ATOMIC, 0 },
		{ FI_UINT64, FI_CSWAP_LE, FI_COMPARE_ATOMIC, 0 }, { FI_UINT64, FI_ATOMIC_READ, FI_FETCH_ATOMIC | FI_TAGGED, 0 },
	};
	struct opened o;
	unsigned i;

	open_both(&o, RIGHTS);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fi_atomic_attr attr = { 77, 77 };
		size_t count = 77;
		int ret = fi_query_atomic(o.w.bed.domain, rows[i].type, rows[i].op, &attr, rows[i].form);

		CHECK(ret == (rows[i].there ? 0 : -FI_EOPNOTSUPP), "row %u: %d", i, ret);
		CHECK(!rows[i].there || (attr.count == 1 && attr.size == 8), "%zu of %zu", attr.count, attr.size);
		if (rows[i].form & FI_TAGGED)
			continue;
		if (rows[i].form == FI_FETCH_ATOMIC)
			ret = fi_fetch_atomicvalid(o.ep, rows[i].type, rows[i].op, &count);
		else if (rows[i].form == FI_COMPARE_ATOMIC)
			ret = fi_compare_atomicvalid(o.ep, rows[i].type, rows[i].op, &count);
		else
			ret = fi_atomicvalid(o.ep, rows[i].type, rows[i].op, &count);
		CHECK(ret == (rows[i].there ? 0 : -FI_EOPNOTSUPP) && count == (rows[i].there ? 1 : 77), "row %u: %d", i, ret);
	}
	GIVES(-FI_EOPNOTSUPP, fi_fetch_atomic(o.ep, ours, 1, o.desc, ours + 1, o.desc, THERE(0), FI_UINT64, FI_BOR, ctx(1)));
	GIVES(-FI_EMSGSIZE, fi_fetch_atomic(o.ep, ours, 2, o.desc, ours + 4, o.desc, THERE(0), FI_UINT64, FI_SUM, ctx(1)));
	GIVES(-FI_EINVAL, fi_fetch_atomic(o.ep, ours, 1, o.desc, ours + 1, o.desc, 0, (uint64_t) theirs + 4, o.key, FI_UINT64, FI_SUM, ctx(1)));
	NO_COMPLETION(&o.w.bed, o.cq);
	/* The connection stands. */
	POST(&o.w.bed, fi_fetch_atomic(o.ep, NULL, 1, NULL, ours + 1, o.desc, THERE(0), FI_UINT64, FI_ATOMIC_READ, ctx(2)));
	COMPLETION(&o.w.bed, o.cq, ctx(2));
	close_both(&o);
}

/* Memory that peers may only read. */
static void rights_are_asked_for(void)
{
	struct fi_cq_err_entry err;
	struct opened o;

	open_both(&o, FI_REMOTE_READ);
	ours[0] = 1;
	POST(&o.w.bed, fi_fetch_atomic(o.ep, ours, 1, o.desc, ours + 1, o.desc, THERE(0), FI_UINT64, FI_SUM, ctx(1)));
	err = ERROR_COMPLETION(&o.w.bed, o.cq);
	CHECK(err.op_context == ctx(1) && err.err > 0 && err.err != FI_ECANCELED, "errno %d", err.err);
	CHECK(!theirs[0], "%lu", (long) theirs[0]);
	close_both(&o);
}

static const struct test tests[] = {
	TEST(adding_and_swapping), TEST(sums_of_both_sides_are_whole), TEST(what_there_is_is_told), TEST(rights_are_asked_for),
};

CASES(tests)

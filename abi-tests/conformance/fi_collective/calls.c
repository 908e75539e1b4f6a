/* The query, the call that takes a struct, and what is refused. */
#include "collective.h"

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

/* ---- the msg form ---- */

void in_pieces(void)
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

void refused(void)
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

static const struct test tests[] = {
	TEST(query_tells_limits), TEST(msg_takes_pieces), TEST(nonsense_is_refused),
};

CASES(tests)

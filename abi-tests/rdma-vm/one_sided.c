/* fi_rma(3), fi_mr(3) and fi_cq(3) on connected endpoints whose card reads and writes registered memory. */
#include <poll.h>
#include <rdma/fi_rma.h>
#include "connected.h"

static char ours[1 << 20], theirs[1 << 20];

struct opened {
	struct wired w;
	struct fid_mr *mr;
	void *desc;
	uint64_t key;
	struct fid_ep *ep;
	struct fid_cq *cq;
};

static void open_both(struct opened *o)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };
	uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	open_exchange(&o->w, &s);
	join_sides(&o->w, 0, 1);
	OK(fi_mr_reg(o->w.bed.domain, theirs, sizeof(theirs), access, 0, 0, 0, &o->mr, NULL));
	o->key = fi_mr_key(o->mr);
	o->desc = fi_mr_desc(o->w.bed.mine);
	o->ep = o->w.bed.side[0].ep;
	o->cq = o->w.bed.side[0].tx;
}

static void close_both(struct opened *o)
{
	if (o->mr)
		OK(fi_close(&o->mr->fid));
	close_wires(&o->w);
}

static const size_t sizes[] = { 0, 1, 8, 255, 256, 257, 4096, 65536, 1 << 20 };

static void writes_and_reads(void)
{
	struct fi_cq_tagged_entry entry;
	struct opened o;
	unsigned i;

	open_both(&o);
	/* The bed's own registration is for messages alone. */
	OK(fi_close(&o.w.bed.mine->fid));
	OK(fi_mr_reg(o.w.bed.domain, ours, sizeof(ours), FI_READ | FI_WRITE, 0, 0, 0, &o.w.bed.mine, NULL));
	o.desc = fi_mr_desc(o.w.bed.mine);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fill(ours, sizes[i], i);
		memset(theirs, 0, sizeof(theirs));
		POST(&o.w.bed, fi_write(o.ep, ours, sizes[i], o.desc, 0, (uint64_t) theirs, o.key, ctx(1)));
		entry = COMPLETION(&o.w.bed, o.cq, ctx(1));
		CHECK(entry.flags == (FI_RMA | FI_WRITE), "flags %#lx", (long) entry.flags);
		SAME(theirs, sizes[i], i);
		CHECK(sizes[i] == sizeof(theirs) || !theirs[sizes[i]], "more was written");
		memset(ours, 0, sizeof(ours));
		POST(&o.w.bed, fi_read(o.ep, ours, sizes[i], o.desc, 0, (uint64_t) theirs, o.key, ctx(2)));
		entry = COMPLETION(&o.w.bed, o.cq, ctx(2));
		CHECK(entry.flags == (FI_RMA | FI_READ), "flags %#lx", (long) entry.flags);
		SAME(ours, sizes[i], i);
	}
	NO_COMPLETION(&o.w.bed, o.w.bed.side[1].rx);
	close_both(&o);
}

/* A write with data takes a receive at the target, and leaves its memory alone. */
static void data_is_heard_at_the_target(void)
{
	struct fi_cq_tagged_entry entry;
	struct opened o;

	open_both(&o);
	memset(ours, 7, 64);
	fill(ours + 64, 64, 5);
	POST(&o.w.bed, fi_recv(o.w.bed.side[1].ep, ours, 64, o.desc, 0, ctx(9)));
	POST(&o.w.bed, fi_writedata(o.ep, ours + 64, 64, o.desc, 0x12345678, 0, (uint64_t) theirs, o.key, ctx(1)));
	COMPLETION(&o.w.bed, o.cq, ctx(1));
	entry = COMPLETION(&o.w.bed, o.w.bed.side[1].rx, ctx(9));
	CHECK((entry.flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)) == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
	      "flags %#lx", (long) entry.flags);
	CHECK(entry.data == 0x12345678 && entry.len == 64, "data %#lx, %zu bytes", (long) entry.data, entry.len);
	CHECK(ours[0] == 7 && ours[63] == 7, "the receive's memory was written");
	SAME(theirs, 64, 5);

	/* And so does a message. */
	POST(&o.w.bed, fi_recv(o.w.bed.side[1].ep, ours, 64, o.desc, 0, ctx(8)));
	POST(&o.w.bed, fi_senddata(o.ep, ours + 64, 8, o.desc, 77, 0, ctx(2)));
	COMPLETION(&o.w.bed, o.cq, ctx(2));
	entry = COMPLETION(&o.w.bed, o.w.bed.side[1].rx, ctx(8));
	CHECK(entry.flags == (FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA) && entry.data == 77, "flags %#lx", (long) entry.flags);
	close_both(&o);
}

static void injected_bytes_are_free_at_once(void)
{
	size_t most;
	struct opened o;
	char few[4096];
	int i;

	open_both(&o);
	most = o.w.bed.info->tx_attr->inject_size;
	CHECK(most > 0 && most < sizeof(few), "inject_size %zu", most);
	for (i = 0; i < 20; i++) {
		fill(few, most, (unsigned) i);
		POST(&o.w.bed, fi_inject_write(o.ep, few, most, 0, (uint64_t) theirs + (size_t) i * most, o.key));
		memset(few, 0, most);
	}
	/* What comes after them on the connection has seen them. */
	POST(&o.w.bed, fi_read(o.ep, ours, most, o.desc, 0, (uint64_t) theirs, o.key, ctx(1)));
	COMPLETION(&o.w.bed, o.cq, ctx(1));
	for (i = 0; i < 20; i++)
		SAME(theirs + (size_t) i * most, most, (unsigned) i);
	GIVES(-FI_EMSGSIZE, fi_inject_write(o.ep, few, most + 1, 0, (uint64_t) theirs, o.key));
	POST(&o.w.bed, fi_recv(o.w.bed.side[1].ep, ours, most, o.desc, 0, ctx(2)));
	fill(few, most, 99);
	POST(&o.w.bed, fi_inject(o.ep, few, most, 0));
	COMPLETION(&o.w.bed, o.w.bed.side[1].rx, ctx(2));
	SAME(ours, most, 99);
	NO_COMPLETION(&o.w.bed, o.cq);
	close_both(&o);
}

static void a_key_that_is_none_ends_the_connection(void)
{
	struct fi_cq_err_entry err;
	struct opened o;

	open_both(&o);
	OK(fi_close(&o.mr->fid));
	o.mr = NULL;
	memset(theirs, 3, 64);
	POST(&o.w.bed, fi_write(o.ep, ours, 64, o.desc, 0, (uint64_t) theirs, o.key, ctx(1)));
	err = ERROR_COMPLETION(&o.w.bed, o.cq);
	CHECK(err.op_context == ctx(1) && err.err > 0 && err.err != FI_ECANCELED, "errno %d", err.err);
	CHECK(theirs[0] == 3, "memory of a closed region was written");
	HEAR(&o.w, FI_SHUTDOWN, NULL);
	HEAR(&o.w, FI_SHUTDOWN, NULL);
	close_both(&o);
}

static void memory_that_is_not_registered_is_refused(void)
{
	struct opened o;
	char stack[512];

	open_both(&o);
	GIVES(-FI_EINVAL, fi_recv(o.w.bed.side[1].ep, stack, sizeof(stack), NULL, 0, ctx(1)));
	GIVES(-FI_EINVAL, fi_write(o.ep, stack, sizeof(stack), NULL, 0, (uint64_t) theirs, o.key, ctx(1)));
	GIVES(-FI_EINVAL, fi_write(o.ep, stack, sizeof(stack), o.desc, 0, (uint64_t) theirs, o.key, ctx(1)));
	talk(&o.w, 0, 1);
	close_both(&o);
}

/* As many operations as tx_attr.size, and one more when one has ended. */
static void the_queue_is_as_long_as_told(void)
{
	struct opened o;
	size_t size, i;
	ssize_t ret;

	open_both(&o);
	size = o.w.bed.info->tx_attr->size;
	for (i = 0; i < size; i++)
		GIVES(0, fi_write(o.ep, ours, 8, o.desc, 0, (uint64_t) theirs + 8 * i, o.key, ctx(1)));
	ret = fi_write(o.ep, ours, 8, o.desc, 0, (uint64_t) theirs, o.key, ctx(1));
	CHECK(ret == -FI_EAGAIN || ret == 0, "%zd", ret);
	for (i = 0; i < size + (ret == 0); i++)
		COMPLETION(&o.w.bed, o.cq, ctx(1));
	GIVES(0, fi_write(o.ep, ours, 8, o.desc, 0, (uint64_t) theirs, o.key, ctx(1)));
	COMPLETION(&o.w.bed, o.cq, ctx(1));
	close_both(&o);
}

/* A queue with a descriptor: fi_trywait, poll, and the completion is there. */
static void the_descriptor_wakes(void)
{
	struct setup s = { .caps = FI_MSG | FI_RMA, .wait_obj = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct opened o;
	struct fid_cq *cq;
	struct fid *fids[1];
	int fd, i;

	memset(&o, 0, sizeof(o));
	open_exchange(&o.w, &s);
	OK(open_cq(&o.w.bed, &s, &cq, NULL));
	o.w.bed.side[1].tx = o.w.bed.side[1].rx = cq;
	join_sides(&o.w, 0, 1);
	fids[0] = &cq->fid;
	OK(fi_control(&cq->fid, FI_GETWAIT, &fd));
	for (i = 0; i < 20; i++) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		long until = now_ms() + GIVE_UP_MS;
		ssize_t ret;

		POST(&o.w.bed, fi_recv(o.w.bed.side[1].ep, ours, 64, NULL, 0, ctx(i)));
		POST(&o.w.bed, fi_send(o.w.bed.side[0].ep, ours + 100, 32, NULL, 0, ctx(100)));
		while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN && now_ms() < until)
			if (fi_trywait(o.w.bed.fabric, fids, 1) == 0)
				CHECK(poll(&wait, 1, GIVE_UP_MS) == 1, "nobody woke it");
		CHECK(ret == 1 && entry.op_context == ctx(i), "%zd", ret);
		COMPLETION(&o.w.bed, o.w.bed.side[0].tx, ctx(100));
	}
	o.w.bed.side[1].rx = NULL;
	close_wires(&o.w);
}

static const struct test tests[] = {
	TEST(writes_and_reads), TEST(data_is_heard_at_the_target), TEST(injected_bytes_are_free_at_once),
	TEST(a_key_that_is_none_ends_the_connection), TEST(memory_that_is_not_registered_is_refused),
	TEST(the_queue_is_as_long_as_told), TEST(the_descriptor_wakes),
};

CASES(tests)

/*
 * Several processes send, read, write and operate on each other's memory, at random and all at once, while regions come
 * and go and keys are wrong. Everything is held against a model: what is read, what messages hold and their order, what
 * ends and how, and the totals of all atomic operations, to which the targets' own processors add too.
 *
 *     one_sided [PROCESSES [OPERATIONS [SEED [stop]]]]
 */
#include "crowd.h"

#define MOST 8            /* processes */
#define AREA 65536        /* bytes of a target that one initiator alone writes */
#define SHORT 2000        /* operations up to this size are ordered */
#define AT_ONCE 64        /* operations of one process */
#define COUNTERS 6        /* one for each kind of atomic operation below */
#define LENT_SIZE 50000   /* a region that comes and goes */
#define MESSAGE 20000
#define POSTED 4          /* receives for each peer */

/* What all processes see. */
struct shared {
	struct name name[MOST];
	uint64_t area_key[MOST], counter_key[MOST];
	uint64_t lent_key[MOST];
	/* By target and counter: what all initiators together have done. */
	uint64_t sum[MOST], sum32[MOST], bits[MOST], most[MOST];
	unsigned __int128 wide[MOST];
	double real[MOST];
	unsigned messages[MOST][MOST]; /* from, to */
	unsigned refused;
};

/* The memory that the others operate on, 64 bytes apart. */
struct counter {
	union {
		uint64_t u64;
		uint32_t u32;
		double real;
		unsigned __int128 wide;
	};
	char pad[48];
};

enum kind { FREE, WRITING, READING, ADDING, SENDING, RECEIVING, LENT, WRONG };

struct op {
	struct fi_context2 context; /* first: completions lead here */
	enum kind kind;
	int peer;
	bool is_long;
	size_t at, len;
	char *buf;
	char *want;
	uint64_t operand[4], result[4];
	unsigned number;
};

/* What this process knows of its area at a target. */
struct area {
	char shadow[AREA];
	int pending;
	bool long_pending;
};

static struct shared *shared;
OWN struct base base;
OWN struct end end;
OWN fi_addr_t addr[MOST];
OWN char *areas; /* of all initiators, here */
OWN struct counter *counters;
OWN struct area area[MOST];
OWN struct op ops[AT_ONCE], receives[MOST][POSTED];
OWN unsigned sent[MOST], received[MOST], ended, refused;

/* ---- ends ---- */

/* Messages meet receives in the order of both, though a short one may end before a long one that came first. */
static void post_receive(struct op *op)
{
	OWN unsigned posted[MOST];

	op->kind = RECEIVING;
	op->number = posted[op->peer]++;
	OK(fi_trecv(end.ep, op->buf, MESSAGE, NULL, FI_ADDR_UNSPEC, (uint64_t) op->peer, 0, op));
}

static uint64_t message_seed(int from, int to, unsigned number)
{
	return (uint64_t) from << 48 | (uint64_t) to << 40 | number;
}

static void received_one(struct op *op, size_t len)
{
	OWN char want[MESSAGE];

	scramble(want, len, message_seed(op->peer, me, op->number));
	if (memcmp(want, op->buf, len))
		DIE("message %u from %d is not what was sent", op->number, op->peer);
	received[op->peer]++;
	post_receive(op);
}

static void ended_one(void *context, int error, size_t len)
{
	struct op *op = context;

	if (op->kind == RECEIVING) {
		if (error)
			DIE("a receive failed: %s", fi_strerror(error));
		received_one(op, len);
		return;
	}
	ended++;
	switch (op->kind) {
	case WRITING:
	case READING:
		if (error)
			DIE("a transfer failed: %s", fi_strerror(error));
		if (op->kind == READING && memcmp(op->buf, op->want, op->len))
			DIE("read of %zu bytes at %zu of %d: not what was written", op->len, op->at, op->peer);
		area[op->peer].pending--;
		if (op->is_long)
			area[op->peer].long_pending = false;
		break;
	case LENT:
		if (error && error != FI_EKEYREJECTED)
			DIE("a region that went away: %s", fi_strerror(error));
		refused += error != 0;
		break;
	case WRONG:
		if (!error)
			DIE("an operation succeeded that must not");
		break;
	default:
		if (error)
			DIE("operation of kind %d failed: %s", op->kind, fi_strerror(error));
	}
	op->kind = FREE;
}

static void progress(void)
{
	read_all(end.cq);
}

/* ---- beginnings ---- */

static struct op *free_op(void)
{
	int i;

	for (;;) {
		for (i = 0; i < AT_ONCE; i++)
			if (ops[i].kind == FREE)
				return &ops[i];
		progress();
	}
}

/* A read or write of this process's own area at the peer, short ones in order, long ones alone or fenced. */
static void transfer(struct op *op)
{
	struct area *at = &area[op->peer];
	struct iovec iov[3];
	struct fi_rma_iov target[2];
	struct fi_msg_rma msg = { .msg_iov = iov, .rma_iov = target, .addr = addr[op->peer], .context = op };
	bool write = rnd() % 2;
	uint64_t flags = 0;
	size_t first;

	op->is_long = rnd() % 8 == 0;
	op->len = op->is_long ? 1 + below(AREA) : 1 + below(SHORT);
	op->at = below(AREA - op->len + 1);
	while (at->long_pending)
		progress();
	if (op->is_long) {
		if (rnd() % 2)
			flags = FI_FENCE;
		else
			while (at->pending)
				progress();
		at->long_pending = true;
	}
	at->pending++;
	op->kind = write ? WRITING : READING;
	if (write) {
		scramble(op->buf, op->len, rnd());
		memcpy(at->shadow + op->at, op->buf, op->len);
	} else {
		memcpy(op->want, at->shadow + op->at, op->len);
		memset(op->buf, 0, op->len);
	}
	first = below(op->len + 1);
	iov[0] = (struct iovec) { op->buf, first / 2 };
	iov[1] = (struct iovec) { op->buf + first / 2, first - first / 2 };
	iov[2] = (struct iovec) { op->buf + first, op->len - first };
	msg.iov_count = 3;
	first = below(op->len + 1);
	target[0] = (struct fi_rma_iov) { (uint64_t) me * AREA + op->at, first, shared->area_key[op->peer] };
	target[1] = (struct fi_rma_iov) { (uint64_t) me * AREA + op->at + first, op->len - first, shared->area_key[op->peer] };
	msg.rma_iov_count = 2;
	if (rnd() % 2) { /* all in one piece */
		iov[0] = (struct iovec) { op->buf, op->len };
		target[0].len = op->len;
		msg.iov_count = msg.rma_iov_count = 1;
	}
	if (write && op->len <= SHORT && rnd() % 4 == 0)
		flags |= FI_INJECT;
	flags |= rnd() % 3 == 0 ? FI_DELIVERY_COMPLETE : 0;
	if (write)
		POST(fi_writemsg(end.ep, &msg, flags));
	else
		POST(fi_readmsg(end.ep, &msg, flags));
	if (flags & FI_INJECT)
		memset(op->buf, 0xbb, op->len);
}

/* Operations whose results do not depend on their order. */
static void add(struct op *op)
{
	static const enum fi_datatype types[COUNTERS] = { FI_UINT64, FI_UINT32, FI_UINT64, FI_UINT64, FI_UINT128, FI_DOUBLE };
	static const enum fi_op codes[COUNTERS] = { FI_SUM, FI_SUM, FI_BXOR, FI_MAX, FI_SUM, FI_SUM };
	int what = (int) below(COUNTERS), t = op->peer;
	uint64_t value = rnd() >> 8, at = (uint64_t) what * sizeof(struct counter), key = shared->counter_key[t];
	double real = (double) (value % 1000);
	unsigned __int128 wide = (unsigned __int128) value << 50;

	op->kind = ADDING;
	memcpy(op->operand, &value, 8);
	switch (what) {
	case 0: __atomic_fetch_add(&shared->sum[t], value, __ATOMIC_SEQ_CST); break;
	case 1: __atomic_fetch_add(&shared->sum32[t], value & UINT32_MAX, __ATOMIC_SEQ_CST); break;
	case 2: __atomic_fetch_xor(&shared->bits[t], value, __ATOMIC_SEQ_CST); break;
	case 3:
		for (uint64_t most = __atomic_load_n(&shared->most[t], __ATOMIC_SEQ_CST); most < value;)
			if (__atomic_compare_exchange_n(&shared->most[t], &most, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				break;
		break;
	case 4: memcpy(op->operand, &wide, 16); break;
	default: memcpy(op->operand, &real, 8);
	}
	/* Of these two there is no atomic in C: each process has a share of its own. */
	if (what == 4)
		shared->wide[me] += wide;
	if (what == 5)
		shared->real[me] += real;
	if (rnd() % 2)
		POST(fi_fetch_atomic(end.ep, op->operand, 1, NULL, op->result, NULL, addr[t], at, key, types[what], codes[what], op));
	else
		POST(fi_atomic(end.ep, op->operand, 1, NULL, addr[t], at, key, types[what], codes[what], op));
}

static void send_one(struct op *op)
{
	op->kind = SENDING;
	op->number = sent[op->peer]++;
	op->len = rnd() % 4 ? below(300) : below(MESSAGE);
	scramble(op->buf, op->len, message_seed(me, op->peer, op->number));
	POST(fi_tsend(end.ep, op->buf, op->len, NULL, addr[op->peer], (uint64_t) me, op));
}

/* Into a region that its owner may close at any time. */
static void borrow(struct op *op)
{
	uint64_t key = __atomic_load_n(&shared->lent_key[op->peer], __ATOMIC_RELAXED);

	op->kind = LENT;
	op->len = rnd() % 2 ? 1 + below(SHORT) : 1 + below(LENT_SIZE);
	if (rnd() % 2)
		POST(fi_write(end.ep, op->buf, op->len, NULL, addr[op->peer], 0, key, op));
	else
		POST(fi_read(end.ep, op->buf, op->len, NULL, addr[op->peer], 0, key, op));
}

static void wrong(struct op *op)
{
	static const uint64_t no_key = 0x123456789abcull;

	op->kind = WRONG;
	op->len = rnd() % 2 ? 1 + below(SHORT) : 1 + below(AREA);
	switch (below(4)) {
	case 0: POST(fi_write(end.ep, op->buf, op->len, NULL, addr[op->peer], 0, no_key, op)); break;
	case 1: POST(fi_read(end.ep, op->buf, op->len, NULL, addr[op->peer], 0, no_key, op)); break;
	case 2: POST(fi_write(end.ep, op->buf, op->len, NULL, addr[op->peer], UINT64_MAX - 10, shared->area_key[op->peer], op)); break;
	default:
		POST(fi_fetch_atomic(end.ep, op->operand, 1, NULL, op->result, NULL, addr[op->peer], 1u << 20, shared->counter_key[op->peer],
				     FI_UINT64, FI_SUM, op));
	}
}

/* ---- regions that come and go ---- */

OWN struct fid_mr *lent;
OWN char *lent_memory;

static void lend(void)
{
	OWN uint64_t generation;

	if (lent) {
		int ret = fi_close(&lent->fid);

		if (ret == -FI_EBUSY)
			return; /* somebody was stopped while at it: it stays lent as it was */
		if (ret)
			DIE("fi_close of a region: %d", ret);
		munmap(lent_memory, LENT_SIZE); /* whoever still comes here, crashes */
	}
	lent_memory = mmap(NULL, LENT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lent_memory == MAP_FAILED)
		DIE("mmap");
	OK(fi_mr_reg(base.domain, lent_memory, LENT_SIZE, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1000 + generation++ % 3, 0, &lent, NULL));
	__atomic_store_n(&shared->lent_key[me], fi_mr_key(lent), __ATOMIC_RELAXED);
}

static void step(void)
{
	struct op *op = free_op();
	size_t dice = below(100);

	op->peer = (int) below((size_t) processes);
	steps++;
	if (dice < 45)
		transfer(op);
	else if (dice < 70)
		add(op);
	else if (dice < 88)
		send_one(op);
	else if (dice < 96)
		borrow(op);
	else
		wrong(op);
	if (rnd() % 3 == 0) {
		uint64_t value = rnd() >> 8;

		/* The processor takes part. */
		__atomic_fetch_add(&shared->sum[me], value, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&counters[0].u64, value, __ATOMIC_SEQ_CST);
	}
	if (rnd() % 40 == 0)
		lend();
	if (rnd() % 4 == 0)
		progress();
}

/* ---- the whole ---- */

OWN struct fid_mr *area_mr, *counter_mr;

static void open_all(void)
{
	struct wish wish = wish_for_all();
	struct fi_ep_attr *limits;
	int i, j;

	wish.msg_order = FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW;
	wish.cq_size = 4096;
	open_base(&base, find(&wish));
	limits = base.info->ep_attr;
	if (limits->max_order_raw_size < SHORT || limits->max_order_war_size < SHORT || limits->max_order_waw_size < SHORT)
		DIE("orders are not kept");
	open_end(&end, &base, &wish);
	shared->name[me] = end.name;
	areas = calloc((size_t) processes, AREA);
	counters = aligned_alloc(64, COUNTERS * sizeof(*counters));
	memset(counters, 0, COUNTERS * sizeof(*counters));
	OK(fi_mr_reg(base.domain, areas, (size_t) processes * AREA, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &area_mr, NULL));
	OK(fi_mr_reg(base.domain, counters, COUNTERS * sizeof(*counters), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 2, 0, &counter_mr, NULL));
	shared->area_key[me] = fi_mr_key(area_mr);
	shared->counter_key[me] = fi_mr_key(counter_mr);
	lend();
	for (i = 0; i < AT_ONCE; i++) {
		ops[i].buf = calloc(1, AREA);
		ops[i].want = malloc(AREA);
	}
	meet();
	for (i = 0; i < processes; i++)
		addr[i] = know(base.av, &shared->name[i]);
	for (i = 0; i < processes; i++)
		for (j = 0; j < POSTED; j++) {
			receives[i][j].peer = i;
			receives[i][j].buf = malloc(MESSAGE);
			post_receive(&receives[i][j]);
		}
	meet();
}

static void close_all(void)
{
	int i;

	shut(lent);
	shut(area_mr);
	shut(counter_mr);
	close_end(&end);
	close_base(&base);
	munmap(lent_memory, LENT_SIZE);
	for (i = 0; i < AT_ONCE; i++) {
		free(ops[i].buf);
		free(ops[i].want);
	}
	for (i = 0; i < processes * POSTED; i++)
		free(receives[i / POSTED][i % POSTED].buf);
	free(areas);
	free(counters);
}

/* All that was begun has ended; what is everywhere is what the model says. */
static void settle_accounts(void)
{
	int i, all;

	while (ended < (unsigned) steps)
		progress();
	for (i = 0; i < processes; i++)
		shared->messages[me][i] = sent[i];
	meet();
	for (i = 0; i < processes; i++)
		while (received[i] < shared->messages[i][me])
			progress();
	meet();
	for (i = 0; i < processes; i++) {
		char *found = calloc(1, AREA); // valgrind does not see what another process writes here
		struct op *op = free_op();

		op->kind = LENT;
		steps++;
		POST(fi_read(end.ep, found, AREA, NULL, addr[i], (uint64_t) me * AREA, shared->area_key[i], op));
		while (op->kind != FREE)
			progress();
		if (memcmp(found, area[i].shadow, AREA))
			DIE("the area at %d is not what was written", i);
		free(found);
	}
	if (counters[0].u64 != shared->sum[me] || counters[1].u32 != (uint32_t) shared->sum32[me] || counters[2].u64 != shared->bits[me] ||
	    counters[3].u64 != shared->most[me])
		DIE("totals: %llx, not %llx; %x, not %x; %llx, not %llx; %llx, not %llx", (unsigned long long) counters[0].u64,
		    (unsigned long long) shared->sum[me], counters[1].u32, (uint32_t) shared->sum32[me], (unsigned long long) counters[2].u64,
		    (unsigned long long) shared->bits[me], (unsigned long long) counters[3].u64, (unsigned long long) shared->most[me]);
	/* What each has added is known, but not where: all targets together have it all. */
	meet();
	shared->wide[me] -= counters[4].wide;
	shared->real[me] -= counters[5].real;
	meet();
	if (me == 0) {
		unsigned __int128 wide = 0;
		double real = 0;

		for (all = 0; all < processes; all++) {
			wide += shared->wide[all];
			real += shared->real[all];
		}
		if (wide || real != 0)
			DIE("totals of the large numbers differ by %llx, of the real ones by %g", (unsigned long long) (wide >> 50), real);
	}
	__atomic_fetch_add(&shared->refused, refused, __ATOMIC_SEQ_CST);
	meet();
	if (!shared->refused && operations >= 3000)
		DIE("no region ever went away in time: nothing was tested");
}

static void run(void)
{
	open_all();
	while (more_to_do())
		step();
	settle_accounts();
	close_all();
	fprintf(stderr, "process %d: %u times a region had gone away\n", me, refused);
}

int main(int argc, char **argv)
{
	static const struct crowd plan = {
		.most = MOST, .processes = 4, .operations = 3000, .shared = sizeof(*shared), .run = run, .progress = progress,
		.ended = ended_one,
	};

	return crowd(&plan, &shared, argc, argv);
}

/*
 * Endpoints come and go under one name, in the middle of whatever they do: each process has a host, which stays, and a
 * guest, which sends to all hosts, writes, reads and adds to their memory, and is closed at random and opened again while
 * hosts send to it. Receives are cancelled meanwhile. Held against a model: what a guest was told has come, has come,
 * once and unharmed; memory holds what was written last; every operation ends; and what is freed when an endpoint is
 * closed is not touched again, which valgrind sees.
 *
 *     come_and_go [PROCESSES [OPERATIONS [SEED [stop]]]]      MR_VIRT_ADDR=1: memory has addresses, and keys of the provider's
 */
#include "crowd.h"
#include "numbered.h"

#define MOST 4           /* processes */
#include "slots.h"

#define NUMBERS 16384    /* messages of a guest to a host */
#define MESSAGE 50000
#define POSTED 6         /* receives of a host: tagged ones for each guest, and as many for all that is not tagged */
#define AT_ONCE 24
#define NOBODYS_TAG 99

static struct shared {
	struct name host[MOST];
	uint64_t area_key[MOST], area_addr[MOST], counter_key[MOST], counter_addr[MOST];
	/* By guest and host: the messages that were said to have come, and what was added, at least and at most. */
	unsigned char promised[MOST][MOST][NUMBERS];
	uint64_t least[MOST][MOST], most[MOST][MOST];
} *shared;

enum kind { FREE, HOST_RECEIVE, HOST_SEND, CANCELLED, GUEST_RECEIVE, GUEST_SEND, WRITE, READ, ADD };

struct op {
	struct fi_context2 context; /* first: completions lead here */
	enum kind kind;
	int peer;
	bool tagged, promises, withdrawn; /* `promises`: its completion says that it is done at the host, or will be */
	uint32_t number;
	int slot;
	uint64_t pattern, operand, result;
	size_t len;
	char *buf;
};

static struct wish wish;
static struct base base;
static struct end host, guest;
static struct fid_mr *area_mr, *counter_mr;
static fi_addr_t host_addr[MOST], guest_addr[MOST];
static char (*area)[PLACES][SLOT];
static uint64_t counter[MOST];
static struct op receives[MOST + 1][POSTED], host_ops[AT_ONCE], guest_ops[AT_ONCE];
static uint32_t next_number[MOST];
static unsigned char came[MOST][NUMBERS];
static unsigned lives, cancelled, too_late, broken;

/* ---- ends ---- */

static void post_receive(struct op *op)
{
	op->kind = HOST_RECEIVE;
	op->withdrawn = false;
	if (op->tagged)
		OK(fi_trecv(host.ep, op->buf, MESSAGE, NULL, FI_ADDR_UNSPEC, (uint64_t) op->peer, 0, op));
	else
		OK(fi_recv(host.ep, op->buf, MESSAGE, NULL, FI_ADDR_UNSPEC, op));
}

static void received_by_host(struct op *op, int error, size_t len)
{
	if (error == FI_ECANCELED && !op->withdrawn)
		DIE("a receive was cancelled that nobody cancelled");
	if (error == FI_ETRUNC)
		DIE("a message was cut");
	if (error) {
		*(op->withdrawn && error == FI_ECANCELED ? &cancelled : &broken) += 1;
	} else {
		struct header h = read_numbered(op->buf, len, NUMBERS);

		too_late += op->withdrawn;
		if (op->tagged && h.from != (unsigned) op->peer)
			DIE("a receive for guest %d has a message of %u", op->peer, h.from);
		if (came[h.from][h.number]++)
			DIE("message %u of %u came twice", h.number, h.from);
	}
	post_receive(op);
}

static void ended_one(void *context, int error, size_t len)
{
	struct op *op = context;
	struct slot *at = &slot[op->peer][op->slot];

	switch (op->kind) {
	case HOST_RECEIVE:
		received_by_host(op, error, len);
		return;
	case CANCELLED:
		if (error != FI_ECANCELED)
			DIE("a receive that nobody sends to ended with %d", error);
		cancelled++;
		break;
	case HOST_SEND: /* the guest may be gone */
		break;
	case GUEST_RECEIVE:
		if (!error)
			read_numbered(op->buf, len, NUMBERS);
		break;
	case GUEST_SEND:
		if (error)
			DIE("a message to a host failed: %s", fi_strerror(error));
		if (op->promises)
			shared->promised[me][op->peer][op->number] = 1;
		break;
	case WRITE:
		if (error)
			DIE("a write failed: %s", fi_strerror(error));
		slot_written(at, op->pattern, op->len, op->promises);
		break;
	case READ:
		if (error)
			DIE("a read failed: %s", fi_strerror(error));
		slot_read(at, op->buf, op->len);
		break;
	case ADD:
		if (error)
			DIE("an atomic operation failed: %s", fi_strerror(error));
		shared->least[me][op->peer] += op->operand;
		break;
	case FREE:
		DIE("an operation ended twice, or is none");
	}
	op->kind = FREE;
}

static void progress(void)
{
	read_all(host.cq);
	if (guest.ep)
		read_all(guest.cq);
}

/* ---- the guest's life ---- */

static void come(void)
{
	struct name name = chosen_name(&base, (unsigned) me);
	int i;

	guest.cq = new_cq(&base, &wish);
	guest.ep = new_ep(&base, base.av, guest.cq);
	OK(fi_setname(&guest.ep->fid, name.bytes, name.len));
	guest.name = enable(guest.ep);
	lives++;
	for (i = 0; i < AT_ONCE; i++) {
		guest_ops[i].kind = FREE;
		guest_ops[i].buf = malloc(MESSAGE);
	}
	for (i = 0; i < 3; i++) {
		guest_ops[i].kind = GUEST_RECEIVE;
		OK(fi_trecv(guest.ep, guest_ops[i].buf, MESSAGE, NULL, FI_ADDR_UNSPEC, 7, 0, &guest_ops[i]));
	}
}

/* Where a slot is in a host's memory. */
static uint64_t lies_at(int host_of, const struct slot *at)
{
	return shared->area_addr[host_of] + ((uint64_t) me * PLACES + at->place) * SLOT;
}

/* And this process's counter. */
static uint64_t counter_at(int host_of)
{
	return shared->counter_addr[host_of] + (uint64_t) me * 8;
}

/* What an address in a region counts from. */
static uint64_t begin_of(const void *memory)
{
	return base.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) memory : 0;
}

/* Whatever is under way. */
static void go(void)
{
	int i;

	if (rnd() % 3 == 0)
		progress();
	close_end(&guest);
	for (i = 0; i < AT_ONCE; i++) {
		free(guest_ops[i].buf);
		guest_ops[i].buf = NULL;
	}
	writer_is_gone();
}

/* ---- beginnings ---- */

static struct op *free_op(struct op *of)
{
	int i;

	for (;;) {
		for (i = 0; i < AT_ONCE; i++)
			if (of[i].kind == FREE)
				return &of[i];
		progress();
	}
}

static size_t some_length(void)
{
	switch (below(8)) {
	case 0: return 32769 + below(MESSAGE - 32769); /* fetched by the receiver */
	case 1: return 4000 + below(10000);
	default: return 16 + below(400);
	}
}

/* A completion level, and what it promises. */
static uint64_t some_level(struct op *op)
{
	static const uint64_t levels[] = { 0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE };
	uint64_t level = levels[below(4)];

	op->promises = level == FI_TRANSMIT_COMPLETE || level == FI_DELIVERY_COMPLETE;
	return level;
}

static void send_to_host(struct op *op)
{
	uint64_t level = some_level(op);
	struct iovec iov = { op->buf, some_length() };

	op->tagged = rnd() % 2;
	op->number = next_number[op->peer]++;
	if (op->number >= NUMBERS)
		DIE("too many messages");
	op->len = iov.iov_len;
	op->kind = GUEST_SEND;
	write_numbered(op->buf, op->len, op->peer, op->number);
	if (op->tagged) {
		struct fi_msg_tagged msg = { &iov, NULL, 1, host_addr[op->peer], (uint64_t) me, 0, op, 0 };

		POST(fi_tsendmsg(guest.ep, &msg, level));
	} else {
		struct fi_msg msg = { &iov, NULL, 1, host_addr[op->peer], op, 0 };

		POST(fi_sendmsg(guest.ep, &msg, level | (rnd() % 5 ? 0 : FI_FENCE)));
	}
}

/* One operation on a slot at a time. */
static void use_slot(struct op *op)
{
	struct slot *at;
	uint64_t where;

	op->slot = (int) below(SLOTS);
	at = &slot[op->peer][op->slot];
	while (at->busy)
		progress();
	where = lies_at(op->peer, at);
	op->len = rnd() % 3 ? 1 + below(1000) : 1 + below(SLOT);
	at->busy = true;
	if (rnd() % 2) {
		struct iovec iov = { op->buf, op->len };
		struct fi_rma_iov there = { where, op->len, shared->area_key[op->peer] };
		struct fi_msg_rma msg = { &iov, NULL, 1, host_addr[op->peer], &there, 1, op, 0 };

		slot_changes(at);
		op->pattern = rnd();
		op->kind = WRITE;
		scramble(op->buf, op->len, op->pattern);
		POST(fi_writemsg(guest.ep, &msg, some_level(op)));
	} else {
		op->kind = READ;
		POST(fi_read(guest.ep, op->buf, op->len, NULL, host_addr[op->peer], where, shared->area_key[op->peer], op));
	}
}

static void add(struct op *op)
{
	op->kind = ADD;
	op->operand = below(1000);
	shared->most[me][op->peer] += op->operand;
	if (rnd() % 2)
		POST(fi_atomic(guest.ep, &op->operand, 1, NULL, host_addr[op->peer], counter_at(op->peer), shared->counter_key[op->peer],
				       FI_UINT64, FI_SUM, op));
	else
		POST(fi_fetch_atomic(guest.ep, &op->operand, 1, NULL, &op->result, NULL, host_addr[op->peer], counter_at(op->peer),
				     shared->counter_key[op->peer], FI_UINT64, FI_SUM, op));
}

static void cancel(void)
{
	if (rnd() % 2) {
		struct op *op = free_op(host_ops);

		op->kind = CANCELLED;
		OK(fi_trecv(host.ep, op->buf, MESSAGE, NULL, FI_ADDR_UNSPEC, NOBODYS_TAG, 0, op));
		OK(fi_cancel(&host.ep->fid, op));
	} else { /* one that a message may have met already */
		struct op *op = &receives[below((size_t) processes + 1)][below(POSTED)];

		if (fi_cancel(&host.ep->fid, op) == 0)
			op->withdrawn = true;
	}
}

/* Refused if nobody is there. */
static void send_to_guest(struct op *op)
{
	ssize_t answer;

	op->kind = HOST_SEND;
	op->len = some_length();
	op->number = 0;
	write_numbered(op->buf, op->len, op->peer, op->number);
	answer = ANSWER(fi_tsend(host.ep, op->buf, op->len, NULL, guest_addr[op->peer], 7, op));
	if (answer == -FI_EHOSTUNREACH)
		op->kind = FREE;
	else
		OK(answer);
}

static void step(void)
{
	size_t dice = below(100);
	struct op *op;

	steps++;
	if (!guest.ep)
		come();
	if (dice < 85) {
		op = free_op(guest_ops);
		op->peer = (int) below((size_t) processes);
		if (dice < 40)
			send_to_host(op);
		else if (dice < 65)
			use_slot(op);
		else
			add(op);
	} else if (dice < 92) {
		op = free_op(host_ops);
		op->peer = (int) below((size_t) processes);
		send_to_guest(op);
	} else if (dice < 97) {
		cancel();
	} else {
		go();
	}
	if (rnd() % 3 == 0)
		progress();
}

/* ---- the whole ---- */

static void open_all(void)
{
	struct name name;
	int i, k;

	wish = wish_for_all();
	wish.cq_size = 1024;
	open_base(&base, find(&wish));
	area = calloc((size_t) processes, sizeof(*area));
	OK(fi_mr_reg(base.domain, area, (size_t) processes * sizeof(*area), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &area_mr, NULL));
	OK(fi_mr_reg(base.domain, counter, sizeof(counter), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 2, 0, &counter_mr, NULL));
	shared->area_key[me] = fi_mr_key(area_mr);
	shared->area_addr[me] = begin_of(area);
	shared->counter_key[me] = fi_mr_key(counter_mr);
	shared->counter_addr[me] = begin_of(counter);
	open_end(&host, &base, &wish);
	shared->host[me] = host.name;
	for (i = 0; i < AT_ONCE; i++)
		host_ops[i].buf = malloc(MESSAGE);
	for (i = 0; i <= processes; i++)
		for (k = 0; k < POSTED; k++) {
			receives[i][k].peer = i < processes ? i : 0;
			receives[i][k].tagged = i < processes;
			receives[i][k].buf = malloc(MESSAGE);
			post_receive(&receives[i][k]);
		}
	begin_slots();
	meet();
	for (i = 0; i < processes; i++) {
		name = chosen_name(&base, (unsigned) i);
		host_addr[i] = know(base.av, &shared->host[i]);
		guest_addr[i] = know(base.av, &name);
	}
	meet();
}

static bool all_free(const struct op *of)
{
	int i;

	for (i = 0; i < AT_ONCE; i++)
		if (of[i].kind != FREE && of[i].kind != GUEST_RECEIVE)
			return false;
	return true;
}

static void settle_accounts(void)
{
	int i;
	uint32_t k;

	if (!guest.ep)
		come();
	while (!all_free(guest_ops))
		progress();
	for (i = 0; i < processes; i++) /* a last look at everything that is known */
		for (k = 0; k < SLOTS; k++) {
			struct op *op = free_op(guest_ops);

			op->peer = i;
			op->slot = (int) k;
			op->kind = READ;
			op->len = slot[i][k].known ? slot[i][k].len : 1;
			slot[i][k].busy = true;
			POST(fi_read(guest.ep, op->buf, op->len, NULL, host_addr[i], lies_at(i, &slot[i][k]), shared->area_key[i], op));
		}
	while (!all_free(guest_ops))
		progress();
	meet();
	go();
	/* Every message to a guest ends, now that none is left. */
	while (!all_free(host_ops))
		progress();
	for (i = 0; i < processes; i++)
		for (k = 0; k < NUMBERS; k++)
			while (shared->promised[i][me][k] && !came[i][k])
				progress();
	for (i = 0; i < processes; i++)
		if (counter[i] < shared->least[i][me] || counter[i] > shared->most[i][me])
			DIE("guest %d added %llu, which is not %llu to %llu", i, (unsigned long long) counter[i],
			    (unsigned long long) shared->least[i][me], (unsigned long long) shared->most[i][me]);
	meet();
}

static void close_all(void)
{
	int i;

	close_end(&host);
	shut(area_mr);
	shut(counter_mr);
	close_base(&base);
	for (i = 0; i < AT_ONCE; i++)
		free(host_ops[i].buf);
	for (i = 0; i < (processes + 1) * POSTED; i++)
		free(receives[i / POSTED][i % POSTED].buf);
	free(area);
}

static void run(void)
{
	open_all();
	while (more_to_do())
		step();
	settle_accounts();
	if (operations >= 1000 && (lives < 5 || !cancelled))
		DIE("%u lives and %u cancelled receives: nothing was tested", lives, cancelled);
	close_all();
	fprintf(stderr, "process %d: %u lives, %u cancelled, %u too late for that, %u broken off\n", me, lives, cancelled, too_late, broken);
}

int main(int argc, char **argv)
{
	static const struct crowd plan = {
		.most = MOST, .processes = 3, .operations = 1500, .shared = sizeof(*shared), .run = run, .progress = progress,
		.ended = ended_one,
	};

	return crowd(&plan, &shared, argc, argv);
}

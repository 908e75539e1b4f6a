/* Every operation on every type, by every call. */
#include "atomic.h"

ssize_t post(const struct call *c, enum shape shape, size_t pieces)
{
	size_t size = c->type->size, first = pieces > 1 ? c->count / 2 : c->count;
	struct fi_ioc operand[2] = { { here, first }, { here + first * size, c->count - first } };
	struct fi_ioc result[2] = { { answer, first }, { answer + first * size, c->count - first } };
	struct fi_ioc against[2] = { { compare, first }, { compare + first * size, c->count - first } };
	struct fi_rma_ioc target = { c->addr, c->count, c->key };
	struct fi_msg_atomic msg = { .msg_iov = operand, .desc = descs, .iov_count = pieces, .addr = peer, .rma_iov = &target, .rma_iov_count = 1,
				     .datatype = c->type->number, .op = c->op, .context = ctx(1) };
	enum fi_datatype type = c->type->number;
	enum fi_op op = c->op;

	switch (shape) {
	case PLAIN_CALL:
		if (c->form == BASE)
			return fi_atomic(ep, here, c->count, desc, peer, c->addr, c->key, type, op, ctx(1));
		if (c->form == FETCH)
			return fi_fetch_atomic(ep, op == FI_ATOMIC_READ ? NULL : here, c->count, desc, answer, desc, peer, c->addr, c->key, type, op, ctx(1));
		return fi_compare_atomic(ep, here, c->count, desc, compare, desc, answer, desc, peer, c->addr, c->key, type, op, ctx(1));
	case VECTORS:
		if (c->form == BASE)
			return fi_atomicv(ep, operand, descs, pieces, peer, c->addr, c->key, type, op, ctx(1));
		if (c->form == FETCH)
			return fi_fetch_atomicv(ep, operand, descs, pieces, result, descs, pieces, peer, c->addr, c->key, type, op, ctx(1));
		return fi_compare_atomicv(ep, operand, descs, pieces, against, descs, pieces, result, descs, pieces, peer, c->addr, c->key, type, op, ctx(1));
	case MESSAGE:
		if (c->form == BASE)
			return fi_atomicmsg(ep, &msg, FI_DELIVERY_COMPLETE);
		if (c->form == FETCH)
			return fi_fetch_atomicmsg(ep, &msg, result, descs, pieces, 0);
		return fi_compare_atomicmsg(ep, &msg, against, descs, pieces, result, descs, pieces, 0);
	default:
		return fi_inject_atomic(ep, here, c->count, peer, c->addr, c->key, type, op);
	}
}

/* An injected operation has no completion: what is fenced comes after it. */
static void after_inject(struct bed *bed, const struct call *c)
{
	struct fi_ioc result = { answer, 1 };
	struct fi_rma_ioc target = { c->addr, 1, c->key };
	struct fi_msg_atomic msg = { .addr = peer, .rma_iov = &target, .rma_iov_count = 1, .datatype = c->type->number,
				     .op = FI_ATOMIC_READ, .context = ctx(1) };

	if (!(bed->info->caps & FI_FENCE)) {
		settle(bed);
		return;
	}
	POST(bed, fi_fetch_atomicmsg(ep, &msg, &result, descs, 1, FI_FENCE));
	COMPLETION(bed, bed->side[0].tx, ctx(1));
	memset(answer, 0x5a, c->type->size);
}

/* Does it, and holds target and answer against the reference. */
static void one(struct bed *bed, struct call *c, size_t at, enum shape shape, size_t pieces)
{
	static char target[SIZE] __attribute__((aligned(64))), old[SIZE] __attribute__((aligned(64)));
	const struct type *t = c->type;
	size_t len = c->count * t->size, i;
	long until = now_ms() + GIVE_UP_MS;

	memset(there, 0xa5, SIZE);
	memset(answer, 0x5a, SIZE);
	put_values(t, here, c->count);
	put_values(t, compare, c->count);
	put_values(t, old, c->count);
	for (i = 0; i < c->count; i += 2)
		memcpy(old + i * t->size, compare + i * t->size, t->size); /* equal now and then */
	memcpy(there + at, old, len);
	memcpy(target, old, len);
	for (i = 0; i < c->count; i++)
		apply(t, c->op, target + i * t->size, here + i * t->size, compare + i * t->size);

	POST(bed, post(c, shape, pieces));
	if (shape == INJECTED) {
		memset(here, 0, len);
		after_inject(bed, c);
	} else {
		ended(bed, 1, c->form == BASE ? FI_WRITE : FI_READ);
	}
	for (i = 0; i < c->count; i++) {
		const char *place = there + at + i * t->size;

		while (!same(t, place, target + i * t->size) && now_ms() < until)
			progress(bed);
		CHECK(same(t, place, target + i * t->size), "%s of %zu %s, %s form, shape %d, at %zu: element %zu is wrong",
		      op_names[c->op], c->count, t->name, form_names[c->form], shape, at, i);
		CHECK(c->form == BASE || same(t, answer + i * t->size, old + i * t->size),
		      "%s of %zu %s, %s form, shape %d, at %zu: the old value of element %zu is wrong",
		      op_names[c->op], c->count, t->name, form_names[c->form], shape, at, i);
	}
	CHECK(there[at + len] == (char) 0xa5 && (!at || there[at - 1] == (char) 0xa5), "%s %s: wrote beside the target", op_names[c->op], t->name);
	CHECK(answer[c->form == BASE ? 0 : len] == 0x5a, "%s %s: wrote behind the result", op_names[c->op], t->name);
}

static void every(enum form form)
{
	static const size_t counts[] = { 1, 2, 3, 17, MOST };
	const struct type *t;
	struct window w;
	struct bed bed;
	size_t n, most, at, aligned;
	int op, done = 0, shape;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	EACH_TYPE(t) {
		for (op = 0; op < OPS; op++) {
			int ret = valid(form, op, t->number, &most);

			if (!allowed(form, op, t)) {
				CHECK(!strict || ret == -FI_EOPNOTSUPP, "%s of %s, %s form: %d", op_names[op], t->name, form_names[form], ret);
				continue;
			}
			CHECK(!strict || ret == 0, "%s of %s, %s form is promised: %d", op_names[op], t->name, form_names[form], ret);
			if (ret)
				continue;
			CHECK(most >= 1, "%s of %s: %zu elements", op_names[op], t->name, most);
			for (n = 0; n < 5 && counts[n] <= most; n++) {
				/* Aligned, by half its size, and by nothing. */
				for (aligned = 0; aligned < 3; aligned++) {
					struct call c = { t, form, op, counts[n], 0, w.remote.key };

					if (aligned && !strict)
						break; /* not every provider takes it */
					if (aligned == 1 && t->size < 4)
						continue;
					at = aligned == 0 ? 64 : aligned == 1 ? 64 + t->size / 2 : 65;
					c.addr = w.remote.base + at;
					seed = (unsigned) (op * 7919 + t->number * 104729 + (int) n);
					for (shape = 0; shape < SHAPES; shape++) {
						if (shape == INJECTED && (form != BASE || counts[n] * t->size > bed.info->tx_attr->inject_size))
							continue;
						one(&bed, &c, at, shape, 1);
						if ((shape == VECTORS || shape == MESSAGE) && bed.info->tx_attr->iov_limit > 1 && counts[n] > 1)
							one(&bed, &c, at, shape, 2);
						done++;
					}
				}
			}
		}
	}
	NEED(done, "no atomic operation is offered");
	close_window(&bed, &w);
}

static void every_base(void)
{
	every(BASE);
}

static void every_fetch(void)
{
	every(FETCH);
}

static void every_compare(void)
{
	every(COMPARE);
}

static const struct test tests[] = {
	TEST(every_base), TEST(every_fetch), TEST(every_compare),
};

CASES(tests)

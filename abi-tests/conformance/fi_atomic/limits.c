/* How much one call may do, and what is refused. */
#include "atomic.h"

static void invalid_pairs(void)
{
	static uint64_t buf[4];
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	ping(&bed, 0, 1); /* so that no provider answers -FI_EAGAIN first */
	GIVES(-FI_EOPNOTSUPP, fi_atomic(ep, buf, 1, desc, peer, w.remote.base, w.remote.key, FI_UINT64, FI_CSWAP, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_atomic(ep, buf, 1, desc, peer, w.remote.base, w.remote.key, FI_DOUBLE, FI_BOR, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_atomic(ep, buf, 1, desc, peer, w.remote.base, w.remote.key, FI_UINT64, FI_ATOMIC_READ, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_fetch_atomic(ep, buf, 1, desc, buf + 1, desc, peer, w.remote.base, w.remote.key, FI_UINT64, FI_CSWAP, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_fetch_atomic(ep, buf, 1, desc, buf + 1, desc, peer, w.remote.base, w.remote.key, FI_FLOAT_COMPLEX, FI_MIN, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_compare_atomic(ep, buf, 1, desc, buf + 1, desc, buf + 2, desc, peer, w.remote.base, w.remote.key, FI_UINT64, FI_SUM, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_inject_atomic(ep, buf, 1, peer, w.remote.base, w.remote.key, FI_FLOAT, FI_BAND));
	close_window(&bed, &w);
}

static void limits(void)
{
	static char large[1 << 20];
	const struct type *t;
	struct window w;
	struct bed bed;
	size_t most;
	int form;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	EACH_TYPE(t) {
		for (form = BASE; form <= COMPARE; form++) {
			int op = form == COMPARE ? FI_CSWAP : FI_ATOMIC_WRITE;
			struct call c = { t, (enum form) form, op, 0, w.remote.base, w.remote.key };

			if (valid(form, op, t->number, &most))
				continue;
			if (most * t->size >= SIZE)
				continue;
			/* What is promised goes, to the last element. */
			c.count = most;
			memset(there, 0, SIZE);
			memset(here, 3, most * t->size);
			memset(compare, 0, most * t->size);
			POST(&bed, post(&c, PLAIN_CALL, 1));
			ended(&bed, 1, form == BASE ? FI_WRITE : FI_READ);
			UNTIL(&bed, there[most * t->size - 1] == 3 || t->used < t->size);
			if (!strict)
				continue;
			GIVES(-FI_EMSGSIZE, form == BASE ? fi_atomic(ep, large, most + 1, desc, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				form == FETCH ? fi_fetch_atomic(ep, large, most + 1, desc, large, desc, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				fi_compare_atomic(ep, large, most + 1, desc, large, desc, large, desc, peer, w.remote.base, w.remote.key, t->number, op, NULL));
			FAILS(form == BASE ? fi_atomic(ep, large, 0, desc, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				form == FETCH ? fi_fetch_atomic(ep, large, 0, desc, large, desc, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				fi_compare_atomic(ep, large, 0, desc, large, desc, large, desc, peer, w.remote.base, w.remote.key, t->number, op, NULL));
		}
	}
	if (strict)
		GIVES(-FI_EMSGSIZE, fi_inject_atomic(ep, large, bed.info->tx_attr->inject_size + 1, peer, w.remote.base, w.remote.key, FI_UINT8, FI_SUM));
	close_window(&bed, &w);
}

static void query(void)
{
	struct fi_atomic_attr attr;
	const struct type *t;
	struct window w;
	struct bed bed;
	size_t most;
	int form, op;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	EACH_TYPE(t) {
		for (form = BASE; form <= COMPARE; form++) {
			uint64_t flags = form == FETCH ? FI_FETCH_ATOMIC : form == COMPARE ? FI_COMPARE_ATOMIC : 0;

			for (op = 0; op < OPS; op++) {
				int wanted = valid(form, op, t->number, &most);
				int ret = fi_query_atomic(bed.domain, t->number, op, &attr, flags);

				NEED(ret != -FI_ENOSYS, "fi_query_atomic");
				CHECK(!ret == !wanted, "%s of %s: %d, but %d by the endpoint", op_names[op], t->name, ret, wanted);
				if (ret)
					continue;
				CHECK(attr.size == t->size, "%s has %zu bytes, not %zu", t->name, attr.size, t->size);
				CHECK(attr.count == most, "%zu of %s, but %zu by the endpoint", attr.count, t->name, most);
				if (strict)
					OK(fi_query_atomic(bed.domain, t->number, op, &attr, flags | FI_TAGGED));
			}
		}
	}
	FAILS(fi_query_atomic(bed.domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC));
	close_window(&bed, &w);
}

static void refused(struct bed *bed, uint64_t addr, uint64_t key, size_t count, int error, int line)
{
	struct fi_cq_err_entry err;
	int form, i;

	for (form = BASE; form <= COMPARE; form++) {
		struct call c = { types + 7, (enum form) form, form == COMPARE ? FI_CSWAP : FI_SUM, count, addr, key };

		memset(there, 0, SIZE);
		memset(here, 1, SIZE);
		memset(compare, 0, SIZE);
		TRY(bed, post(&c, PLAIN_CALL, 1));
		err = error_completion(bed, bed->side[0].tx, line);
		CHECK(err.op_context == ctx(1), "line %d: the error of another operation", line);
		CHECK(!strict || err.err == error, "line %d: %s form: error %d (%s), not %s", line, form_names[form], err.err, fi_strerror(err.err), fi_strerror(error));
		settle(bed);
		for (i = 0; i < SIZE; i++)
			CHECK(there[i] == 0, "line %d: byte %d was changed", line, i);
	}
}

static void refusals(void)
{
	struct window w, read_only;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	read_only = expose(&bed, 1, there, SIZE, READABLE);
	refused(&bed, w.remote.base, w.remote.key + 7, 1, FI_EKEYREJECTED, __LINE__);
	refused(&bed, w.remote.base, w.remote.key + 7, 100, FI_EKEYREJECTED, __LINE__);
	refused(&bed, read_only.remote.base, read_only.remote.key, 1, FI_EACCES, __LINE__);
	refused(&bed, w.remote.base + SIZE - 4, w.remote.key, 1, FI_EINVAL, __LINE__);
	refused(&bed, w.remote.base + SIZE, w.remote.key, 1, FI_EINVAL, __LINE__);
	refused(&bed, w.remote.base - 8, w.remote.key, 2, FI_EINVAL, __LINE__);
	ping(&bed, 0, 1);
	conceal(&read_only);
	close_window(&bed, &w);
}

static void without_the_capability(void)
{
	static const struct setup plain;
	uint64_t one = 1;
	struct bed bed;

	if (!strict)
		SKIP("the page does not say what happens");
	open_bed(&bed, &plain);
	GIVES(-FI_EOPNOTSUPP, fi_atomic(bed.side[0].ep, &one, 1, desc, bed.side[1].addr, 0, 0, FI_UINT64, FI_SUM, NULL));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(invalid_pairs), TEST(limits), TEST(query), TEST(refusals), TEST(without_the_capability),
};

CASES(tests)

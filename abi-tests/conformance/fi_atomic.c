/*
 * fi_atomic(3): operations on a peer's memory. What each does to each type is held against plain C here, element by
 * element; types that C does not have are computed through their values, which are chosen so that results are exact.
 */
#include "remote.h"
#include <complex.h>
#include <float.h>
#include <math.h>

#define SIZE 8192
#define MOST 64 /* elements of one operation, in the tests of all types */

static const struct setup usual = { .more_caps = FI_ATOMIC, .tx_flags = FI_DELIVERY_COMPLETE };
static char here[SIZE] __attribute__((aligned(64)));
static char there[SIZE] __attribute__((aligned(64)));
static char answer[SIZE] __attribute__((aligned(64)));
static char compare[SIZE] __attribute__((aligned(64)));

static struct fid_ep *ep;
static fi_addr_t peer;

static struct window open_usual(struct bed *bed, const struct setup *setup, uint64_t access)
{
	open_bed(bed, setup);
	ep = bed->side[0].ep;
	peer = bed->side[1].addr;
	return expose(bed, 1, there, sizeof(there), access);
}

static void close_usual(struct bed *bed, struct window *w)
{
	conceal(w);
	close_bed(bed);
}

static void ended(struct bed *bed, int context, uint64_t direction)
{
	struct fi_cq_tagged_entry entry = COMPLETION(bed, bed->side[0].tx, ctx(context));

	CHECK(!strict || (entry.flags & (FI_ATOMIC | FI_READ | FI_WRITE | FI_RMA)) == (FI_ATOMIC | direction),
	      "flags 0x%llx", (unsigned long long) entry.flags);
}

/* ---- types ---- */

typedef __int128 i128;
typedef unsigned __int128 u128;

/* Small floats: sign, exponent and fraction bits. */
struct format {
	int exponent, fraction;
};

/* Not all of them in the headers of 1.17. */
__attribute__((unused))
static const struct format half = { 5, 10 }, brain = { 8, 7 }, e4m3 = { 4, 3 }, e5m2 = { 5, 2 };

/* For values that the format has exactly. */
static unsigned encode(const struct format *f, double value)
{
	int bias = (1 << (f->exponent - 1)) - 1, e;
	unsigned sign = signbit(value) ? 1u << (f->exponent + f->fraction) : 0;
	double m;

	if (value == 0)
		return sign;
	m = frexp(fabs(value), &e); /* 0.5 <= m < 1 */
	return sign | (unsigned) (e - 1 + bias) << f->fraction | (unsigned) ((m * 2 - 1) * (1 << f->fraction));
}

static double decode(const struct format *f, unsigned bits)
{
	int bias = (1 << (f->exponent - 1)) - 1;
	unsigned e = bits >> f->fraction & ((1u << f->exponent) - 1), m = bits & ((1u << f->fraction) - 1);
	double value = e ? ldexp(1 + (double) m / (1 << f->fraction), (int) e - bias) : ldexp((double) m / (1 << f->fraction), 1 - bias);

	return bits >> (f->exponent + f->fraction) & 1 ? -value : value;
}

struct type {
	const char *name;
	int number; /* enum fi_datatype */
	size_t size, used; /* bytes; those that have a meaning, per part */
	int parts; /* 2 for complex */
	char kind; /* Integer, Float, small (of `format`) */
	const struct format *format;
};

#define INT(n, t) { #n, n, sizeof(t), sizeof(t), 1, 'I', NULL }
#define FLT(n, t, u) { #n, n, sizeof(t), u, 1, 'F', NULL }
#define CPX(n, t, u) { #n, n, sizeof(t), u, 2, 'F', NULL }
#define SML(n, s, f) { #n, n, s, s, 1, 's', f }

static const struct type types[] = {
	INT(FI_INT8, int8_t), INT(FI_UINT8, uint8_t), INT(FI_INT16, int16_t), INT(FI_UINT16, uint16_t),
	INT(FI_INT32, int32_t), INT(FI_UINT32, uint32_t), INT(FI_INT64, int64_t), INT(FI_UINT64, uint64_t),
	FLT(FI_FLOAT, float, 4), FLT(FI_DOUBLE, double, 8),
	CPX(FI_FLOAT_COMPLEX, float complex, 4), CPX(FI_DOUBLE_COMPLEX, double complex, 8),
	FLT(FI_LONG_DOUBLE, long double, 10), CPX(FI_LONG_DOUBLE_COMPLEX, long double complex, 10),
#if HEADERS_2
	INT(FI_INT128, i128), INT(FI_UINT128, u128),
	SML(FI_FLOAT16, 2, &half), SML(FI_BFLOAT16, 2, &brain), SML(FI_FLOAT8_E4M3, 1, &e4m3), SML(FI_FLOAT8_E5M2, 1, &e5m2),
#endif
};
#define EACH_TYPE(t) for (t = types; t < types + sizeof(types) / sizeof(*types); t++)

#if !HEADERS_2
#define FI_DIFF 19
#endif
#define OPS 20

static const char *const op_names[OPS] = {
	"MIN", "MAX", "SUM", "PROD", "LOR", "LAND", "BOR", "BAND", "LXOR", "BXOR", "READ", "WRITE",
	"CSWAP", "CSWAP_NE", "CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT", "MSWAP", "DIFF",
};

enum form { BASE, FETCH, COMPARE };
static const char *const form_names[] = { "base", "fetch", "compare" };

/* What the page allows. */
static bool allowed(enum form form, int op, const struct type *t)
{
	bool swap = op >= FI_CSWAP && op <= FI_MSWAP, read = op == FI_ATOMIC_READ;
	bool bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
	bool order = op == FI_MIN || op == FI_MAX || (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);

	if (form == COMPARE ? !swap : swap || (read && form == BASE))
		return false;
	return t->kind == 'I' || (!bits && !(order && t->parts == 2));
}

static int valid(enum form form, int op, int type, size_t *count)
{
	switch (form) {
	case BASE: return fi_atomicvalid(ep, type, op, count);
	case FETCH: return fi_fetch_atomicvalid(ep, type, op, count);
	default: return fi_compare_atomicvalid(ep, type, op, count);
	}
}

/* ---- the reference ---- */

#define PLAIN(T, a, b, c, o)                                                           \
	switch (o) {                                                                   \
	case FI_MIN: return *b < *a ? *b : *a;                                         \
	case FI_MAX: return *b > *a ? *b : *a;                                         \
	case FI_LOR: return *a || *b;                                                  \
	case FI_LAND: return *a && *b;                                                 \
	case FI_LXOR: return (*a && !*b) || (!*a && *b);                               \
	case FI_ATOMIC_READ: return *a;                                                \
	case FI_ATOMIC_WRITE: return *b;                                               \
	case FI_CSWAP: return *c == *a ? *b : *a;                                      \
	case FI_CSWAP_NE: return *c != *a ? *b : *a;                                   \
	case FI_CSWAP_LE: return *c <= *a ? *b : *a;                                   \
	case FI_CSWAP_LT: return *c < *a ? *b : *a;                                    \
	case FI_CSWAP_GE: return *c >= *a ? *b : *a;                                   \
	case FI_CSWAP_GT: return *c > *a ? *b : *a;                                    \
	}

/* Integers wrap: the arithmetic is that of the unsigned type. */
#define INT_RULE(T, U)                                                                 \
	static T rule_##T(const T *a, const T *b, const T *c, int o)                   \
	{                                                                              \
		PLAIN(T, a, b, c, o)                                                   \
		switch (o) {                                                           \
		case FI_SUM: return (T) ((U) *a + (U) *b);                             \
		case FI_DIFF: return (T) ((U) *a - (U) *b);                            \
		case FI_PROD: return (T) ((u128) *a * (u128) *b);                      \
		case FI_BOR: return (T) (*a | *b);                                     \
		case FI_BAND: return (T) (*a & *b);                                    \
		case FI_BXOR: return (T) (*a ^ *b);                                    \
		default: return (T) ((*b & *c) | (*a & ~*c));                          \
		}                                                                      \
	}
INT_RULE(int8_t, uint8_t)
INT_RULE(uint8_t, uint8_t)
INT_RULE(int16_t, uint16_t)
INT_RULE(uint16_t, uint16_t)
INT_RULE(int32_t, uint32_t)
INT_RULE(uint32_t, uint32_t)
INT_RULE(int64_t, uint64_t)
INT_RULE(uint64_t, uint64_t)
INT_RULE(i128, u128)
INT_RULE(u128, u128)

#define FLOAT_RULE(T)                                                                  \
	static T rule_##T(const T *a, const T *b, const T *c, int o)                   \
	{                                                                              \
		PLAIN(T, a, b, c, o)                                                   \
		switch (o) {                                                           \
		case FI_SUM: return *a + *b;                                           \
		case FI_DIFF: return *a - *b;                                          \
		default: return *a * *b;                                               \
		}                                                                      \
	}
typedef long double longdouble;
FLOAT_RULE(float)
FLOAT_RULE(double)
FLOAT_RULE(longdouble)

#define COMPLEX_RULE(T)                                                                \
	static T rule_##T(const T *a, const T *b, const T *c, int o)                   \
	{                                                                              \
		switch (o) {                                                           \
		case FI_LOR: return *a != 0 || *b != 0;                                \
		case FI_LAND: return *a != 0 && *b != 0;                               \
		case FI_LXOR: return (*a != 0) != (*b != 0);                           \
		case FI_ATOMIC_READ: return *a;                                        \
		case FI_ATOMIC_WRITE: return *b;                                       \
		case FI_CSWAP: return *c == *a ? *b : *a;                              \
		case FI_CSWAP_NE: return *c != *a ? *b : *a;                           \
		case FI_SUM: return *a + *b;                                           \
		case FI_DIFF: return *a - *b;                                          \
		default: return *a * *b;                                               \
		}                                                                      \
	}
typedef float complex cfloat;
typedef double complex cdouble;
typedef long double complex clongdouble;
COMPLEX_RULE(cfloat)
COMPLEX_RULE(cdouble)
COMPLEX_RULE(clongdouble)

#define APPLY(n, T)                                                                    \
	case n: {                                                                      \
		T a_, b_, c_, r_;                                                      \
		memcpy(&a_, a, sizeof(T));                                             \
		memcpy(&b_, b, sizeof(T));                                             \
		memcpy(&c_, c, sizeof(T));                                             \
		r_ = rule_##T(&a_, &b_, &c_, op);                                      \
		memcpy(a, &r_, sizeof(T));                                             \
		return;                                                                \
	}

/* a = a OP b, with c to compare. */
static void apply(const struct type *t, int op, char *a, const char *b, const char *c)
{
	switch (t->number) {
	APPLY(FI_INT8, int8_t)
	APPLY(FI_UINT8, uint8_t)
	APPLY(FI_INT16, int16_t)
	APPLY(FI_UINT16, uint16_t)
	APPLY(FI_INT32, int32_t)
	APPLY(FI_UINT32, uint32_t)
	APPLY(FI_INT64, int64_t)
	APPLY(FI_UINT64, uint64_t)
	APPLY(FI_FLOAT, float)
	APPLY(FI_DOUBLE, double)
	APPLY(FI_LONG_DOUBLE, longdouble)
	APPLY(FI_FLOAT_COMPLEX, cfloat)
	APPLY(FI_DOUBLE_COMPLEX, cdouble)
	APPLY(FI_LONG_DOUBLE_COMPLEX, clongdouble)
#if HEADERS_2
	APPLY(FI_INT128, i128)
	APPLY(FI_UINT128, u128)
#endif
	}
	if (t->kind == 's') {
		unsigned a_ = 0, b_ = 0, c_ = 0;
		double x, y, z, r;

		memcpy(&a_, a, t->size);
		memcpy(&b_, b, t->size);
		memcpy(&c_, c, t->size);
		x = decode(t->format, a_);
		y = decode(t->format, b_);
		z = decode(t->format, c_);
		r = rule_double(&x, &y, &z, op);
		a_ = encode(t->format, r);
		memcpy(a, &a_, t->size);
	}
}

/* ---- values ---- */

static unsigned seed;

static unsigned rnd(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

/* Small whole numbers, some of them zero, so that sums, products and logic are exact in every float. */
static void put_number(const struct type *t, char *at, int value)
{
	float f = (float) value;
	double d = value;
	long double l = value;
	unsigned bits;

	if (t->kind == 's') {
		bits = encode(t->format, value);
		memcpy(at, &bits, t->size);
		return;
	}
	memset(at, 0, t->size / (size_t) t->parts);
	switch (t->used) {
	case 4: memcpy(at, &f, 4); break;
	case 8: memcpy(at, &d, 8); break;
	default: memcpy(at, &l, 10); break;
	}
}

static void put_values(const struct type *t, char *at, size_t count)
{
	size_t i;
	int part;

	for (i = 0; i < count; i++, at += t->size) {
		if (t->kind == 'I') {
			size_t b;

			/* Every bit; some small ones, so that comparisons meet equal values. */
			for (b = 0; b < t->size; b++)
				at[b] = (char) rnd();
			if (rnd() % 3 == 0) {
				memset(at, rnd() % 2 ? 0xff : 0, t->size);
				at[0] = (char) (rnd() % 3);
			}
			continue;
		}
		for (part = 0; part < t->parts; part++)
			put_number(t, at + (size_t) part * t->size / (size_t) t->parts, (int) (rnd() % 7) - 3);
	}
}

/* Padding of long doubles has no meaning. */
static bool same(const struct type *t, const char *a, const char *b)
{
	size_t stride = t->size / (size_t) t->parts;
	int part;

	for (part = 0; part < t->parts; part++)
		if (memcmp(a + (size_t) part * stride, b + (size_t) part * stride, t->used))
			return false;
	return true;
}

/* ---- all of them ---- */

enum shape { PLAIN_CALL, VECTORS, MESSAGE, INJECTED, SHAPES };

struct call {
	const struct type *type;
	enum form form;
	int op;
	size_t count;
	uint64_t addr, key;
};

static ssize_t post(const struct call *c, enum shape shape, size_t pieces)
{
	size_t size = c->type->size, first = pieces > 1 ? c->count / 2 : c->count;
	struct fi_ioc operand[2] = { { here, first }, { here + first * size, c->count - first } };
	struct fi_ioc result[2] = { { answer, first }, { answer + first * size, c->count - first } };
	struct fi_ioc against[2] = { { compare, first }, { compare + first * size, c->count - first } };
	struct fi_rma_ioc target = { c->addr, c->count, c->key };
	struct fi_msg_atomic msg = { .msg_iov = operand, .iov_count = pieces, .addr = peer, .rma_iov = &target, .rma_iov_count = 1,
				     .datatype = c->type->number, .op = c->op, .context = ctx(1) };
	enum fi_datatype type = c->type->number;
	enum fi_op op = c->op;

	switch (shape) {
	case PLAIN_CALL:
		if (c->form == BASE)
			return fi_atomic(ep, here, c->count, NULL, peer, c->addr, c->key, type, op, ctx(1));
		if (c->form == FETCH)
			return fi_fetch_atomic(ep, op == FI_ATOMIC_READ ? NULL : here, c->count, NULL, answer, NULL, peer, c->addr, c->key, type, op, ctx(1));
		return fi_compare_atomic(ep, here, c->count, NULL, compare, NULL, answer, NULL, peer, c->addr, c->key, type, op, ctx(1));
	case VECTORS:
		if (c->form == BASE)
			return fi_atomicv(ep, operand, NULL, pieces, peer, c->addr, c->key, type, op, ctx(1));
		if (c->form == FETCH)
			return fi_fetch_atomicv(ep, operand, NULL, pieces, result, NULL, pieces, peer, c->addr, c->key, type, op, ctx(1));
		return fi_compare_atomicv(ep, operand, NULL, pieces, against, NULL, pieces, result, NULL, pieces, peer, c->addr, c->key, type, op, ctx(1));
	case MESSAGE:
		if (c->form == BASE)
			return fi_atomicmsg(ep, &msg, FI_DELIVERY_COMPLETE);
		if (c->form == FETCH)
			return fi_fetch_atomicmsg(ep, &msg, result, NULL, pieces, 0);
		return fi_compare_atomicmsg(ep, &msg, against, NULL, pieces, result, NULL, pieces, 0);
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
	POST(bed, fi_fetch_atomicmsg(ep, &msg, &result, NULL, 1, FI_FENCE));
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
	close_usual(&bed, &w);
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

/* ---- numbers that are not whole ---- */

#define SPECIAL(T, N, MAX)                                                             \
	static void special_##T(struct bed *bed, struct window *w)                     \
	{                                                                              \
		const T values[] = { (T) 0.0, -(T) 0.0, 1, (T) -2.5, (T) 1e30, MAX, -MAX, (T) INFINITY, -(T) INFINITY, (T) NAN }; \
		static const int ops[] = { FI_MIN, FI_MAX, FI_SUM, FI_PROD, FI_LOR, FI_LAND, FI_LXOR, FI_ATOMIC_WRITE }; \
		static const int swaps[] = { FI_CSWAP, FI_CSWAP_NE, FI_CSWAP_LE, FI_CSWAP_LT, FI_CSWAP_GE, FI_CSWAP_GT }; \
		const struct type *t = types;                                          \
		size_t i, j, k;                                                        \
		while (t->number != N)                                                 \
			t++;                                                           \
		for (k = 0; k < 14; k++) {                                             \
			struct call c = { t, k < 8 ? FETCH : COMPARE, k < 8 ? ops[k] : swaps[k - 8], 1, w->remote.base, w->remote.key }; \
			if (valid(c.form, c.op, N, &i))                                \
				continue;                                              \
			for (i = 0; i < 10; i++)                                       \
				for (j = 0; j < 10; j++) {                             \
					T old = values[i], with = values[j], against = values[(i * 3 + j) % 10], wanted, found, back; \
					memcpy(there, &old, sizeof(T));                \
					memcpy(here, &with, sizeof(T));                \
					memcpy(compare, &against, sizeof(T));          \
					POST(bed, post(&c, PLAIN_CALL, 1));            \
					ended(bed, 1, FI_READ);                        \
					wanted = rule_##T(&old, &with, &against, c.op); \
					memcpy(&found, there, sizeof(T));              \
					memcpy(&back, answer, sizeof(T));              \
					CHECK(!memcmp(&back, &old, t->used) || (isnan(back) && isnan(old)), "%s of %s: old value %zu", op_names[c.op], t->name, i); \
					CHECK(!memcmp(&wanted, &found, t->used) || (isnan(wanted) && isnan(found)), \
					      "%s of %s: values %zu and %zu: %Lg, not %Lg", op_names[c.op], t->name, i, j, (long double) found, (long double) wanted); \
				}                                                      \
		}                                                                      \
	}
SPECIAL(float, FI_FLOAT, FLT_MAX)
SPECIAL(double, FI_DOUBLE, DBL_MAX)
SPECIAL(longdouble, FI_LONG_DOUBLE, LDBL_MAX)

/* NaN, infinities, signed zeros, overflow: as the C expressions of the page have it. */
static void special_numbers(void)
{
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	special_float(&bed, &w);
	special_double(&bed, &w);
	special_longdouble(&bed, &w);
	close_usual(&bed, &w);
}

/* ---- limits and errors ---- */

static void invalid_pairs(void)
{
	uint64_t buf[4] = { 0 };
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	ping(&bed, 0, 1); /* so that no provider answers -FI_EAGAIN first */
	GIVES(-FI_EOPNOTSUPP, fi_atomic(ep, buf, 1, NULL, peer, w.remote.base, w.remote.key, FI_UINT64, FI_CSWAP, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_atomic(ep, buf, 1, NULL, peer, w.remote.base, w.remote.key, FI_DOUBLE, FI_BOR, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_atomic(ep, buf, 1, NULL, peer, w.remote.base, w.remote.key, FI_UINT64, FI_ATOMIC_READ, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_fetch_atomic(ep, buf, 1, NULL, buf + 1, NULL, peer, w.remote.base, w.remote.key, FI_UINT64, FI_CSWAP, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_fetch_atomic(ep, buf, 1, NULL, buf + 1, NULL, peer, w.remote.base, w.remote.key, FI_FLOAT_COMPLEX, FI_MIN, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_compare_atomic(ep, buf, 1, NULL, buf + 1, NULL, buf + 2, NULL, peer, w.remote.base, w.remote.key, FI_UINT64, FI_SUM, NULL));
	GIVES(-FI_EOPNOTSUPP, fi_inject_atomic(ep, buf, 1, peer, w.remote.base, w.remote.key, FI_FLOAT, FI_BAND));
	close_usual(&bed, &w);
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
			GIVES(-FI_EMSGSIZE, form == BASE ? fi_atomic(ep, large, most + 1, NULL, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				form == FETCH ? fi_fetch_atomic(ep, large, most + 1, NULL, large, NULL, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				fi_compare_atomic(ep, large, most + 1, NULL, large, NULL, large, NULL, peer, w.remote.base, w.remote.key, t->number, op, NULL));
			FAILS(form == BASE ? fi_atomic(ep, large, 0, NULL, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				form == FETCH ? fi_fetch_atomic(ep, large, 0, NULL, large, NULL, peer, w.remote.base, w.remote.key, t->number, op, NULL) :
				fi_compare_atomic(ep, large, 0, NULL, large, NULL, large, NULL, peer, w.remote.base, w.remote.key, t->number, op, NULL));
		}
	}
	if (strict)
		GIVES(-FI_EMSGSIZE, fi_inject_atomic(ep, large, bed.info->tx_attr->inject_size + 1, peer, w.remote.base, w.remote.key, FI_UINT8, FI_SUM));
	close_usual(&bed, &w);
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
	close_usual(&bed, &w);
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
		POST(bed, post(&c, PLAIN_CALL, 1));
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
	close_usual(&bed, &w);
}

/* ---- more of the page ---- */

static void several_targets(void)
{
	uint64_t with[6] = { 1, 2, 3, 4, 5, 6 }, old[6] = { 0 }, *memory = (void *) there;
	struct fi_ioc operand[2] = { { with, 4 }, { with + 4, 2 } }, result = { old, 6 };
	struct fi_rma_ioc target[3];
	struct fi_msg_atomic msg = { .msg_iov = operand, .iov_count = 2, .rma_iov = target, .rma_iov_count = 3,
				     .datatype = FI_UINT64, .op = FI_SUM, .context = ctx(1) };
	struct window w;
	struct bed bed;
	int i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	if (bed.info->tx_attr->rma_iov_limit < 3 || bed.info->tx_attr->iov_limit < 2)
		SKIP("too few pieces");
	msg.addr = peer;
	for (i = 0; i < 20; i++)
		memory[i] = 100;
	target[0] = (struct fi_rma_ioc) { w.remote.base, 1, w.remote.key };
	target[1] = (struct fi_rma_ioc) { w.remote.base + 80, 2, w.remote.key };
	target[2] = (struct fi_rma_ioc) { w.remote.base + 40, 3, w.remote.key };
	TRY(&bed, fi_fetch_atomicmsg(ep, &msg, &result, NULL, 1, 0));
	ended(&bed, 1, FI_READ);
	for (i = 0; i < 6; i++)
		CHECK(old[i] == 100, "old value %d is %llu", i, (unsigned long long) old[i]);
	CHECK(memory[0] == 101 && memory[10] == 102 && memory[11] == 103 && memory[5] == 104 && memory[6] == 105 && memory[7] == 106,
	      "%llu %llu %llu %llu %llu %llu", (unsigned long long) memory[0], (unsigned long long) memory[10], (unsigned long long) memory[11],
	      (unsigned long long) memory[5], (unsigned long long) memory[6], (unsigned long long) memory[7]);
	close_usual(&bed, &w);
}

static void counters(void)
{
	static const uint64_t flags[] = { FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	static const uint64_t wanted[] = { 3, 2, 3, 2 };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct setup s = usual;
	struct fid_cntr *cntr[4];
	struct window w;
	struct bed bed;
	int i;

	s.more_caps |= FI_RMA_EVENT;
	open_sides(&bed, &s);
	for (i = 0; i < 4; i++) {
		OK(fi_cntr_open(bed.domain, &attr, &cntr[i], NULL));
		OK(fi_ep_bind(bed.side[i / 2].ep, &cntr[i]->fid, flags[i]));
	}
	enable_sides(&bed, &s);
	ep = bed.side[0].ep;
	peer = bed.side[1].addr;
	w = expose(&bed, 1, there, SIZE, OPEN_TO_ALL);
	for (i = 0; i < 5; i++) {
		struct call c = { types + 7, i < 2 ? BASE : i < 4 ? FETCH : COMPARE, i < 4 ? FI_SUM : FI_CSWAP, 2, w.remote.base, w.remote.key };

		POST(&bed, post(&c, PLAIN_CALL, 1));
		ended(&bed, 1, i < 2 ? FI_WRITE : FI_READ);
	}
	for (i = 0; i < 4; i++)
		for (long end = now_ms() + GIVE_UP_MS; fi_cntr_read(cntr[i]) < wanted[i] && now_ms() < end;)
			progress(&bed);
	settle(&bed);
	for (i = 0; i < 4; i++)
		CHECK(fi_cntr_read(cntr[i]) == wanted[i], "counter %d: %llu", i, (unsigned long long) fi_cntr_read(cntr[i]));
	conceal(&w);
	for (i = 0; i < 2; i++) {
		OK(fi_close(&bed.side[i].ep->fid));
		bed.side[i].ep = NULL;
	}
	for (i = 0; i < 4; i++)
		OK(fi_close(&cntr[i]->fid));
	close_bed(&bed);
}

/* Each operation sees what the one before it left, without waiting in between. */
static void in_order(void)
{
	enum { COUNT = 300 };
	static uint64_t old[COUNT];
	struct fi_cq_tagged_entry entry;
	uint64_t one = 1;
	struct window w;
	struct bed bed;
	int i;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(bed.info->tx_attr->msg_order & bed.info->rx_attr->msg_order & (FI_ORDER_RAW | FI_ORDER_ATOMIC_RAW), "no order");
	memset(there, 0, 8);
	for (i = 0; i < COUNT; i++)
		POST(&bed, fi_fetch_atomic(ep, &one, 1, NULL, &old[i], NULL, peer, w.remote.base, w.remote.key, FI_UINT64, FI_SUM, ctx(1)));
	for (i = 0; i < COUNT; i++)
		CHECK(next(&bed, bed.side[0].tx, &entry) == 1, "no completion");
	for (i = 0; i < COUNT; i++)
		CHECK(old[i] == (uint64_t) i, "operation %d saw %llu", i, (unsigned long long) old[i]);
	close_usual(&bed, &w);
}

/* ---- under load ---- */

/* Two processes and the targets' own processors add, and nothing is lost. */
static void totals_body(struct bed *bed, int me, int pipe)
{
	enum { COUNT = 4000 };
	struct window w = expose(bed, 0, there, SIZE, OPEN_TO_ALL);
	uint64_t *counter = (uint64_t *) there, *mutex = counter + 8, one = 1, sum = 0, results[COUNT];
	struct fi_cq_tagged_entry entry;
	struct remote remote[2];
	int i, done = 0;

	(void) pipe;
	memset(results, 0xff, sizeof(results));
	memset(there, 0, 256);
	pipe_send(pipe, &w.remote, sizeof(w.remote));
	pipe_recv(pipe, &remote[1], sizeof(remote[1]));
	remote[0] = w.remote;
	meet(bed, pipe);
	for (i = 0; i < COUNT; i++) {
		/* The other's counter, and one's own by the endpoint and by the processor. */
		int own = i % 4 == 3;
		fi_addr_t to = own ? bed->side[0].addr : bed->peer;
		ssize_t ret;

		while ((ret = fi_fetch_atomic(bed->side[0].ep, &one, 1, NULL, &results[i], NULL, to, remote[!own].base, remote[!own].key,
					      FI_UINT64, FI_SUM, ctx(1))) == -FI_EAGAIN)
			while (fi_cq_read(bed->side[0].tx, &entry, 1) == 1)
				done++;
		CHECK(ret == 0, "fi_fetch_atomic: %zd", ret);
		if (strict) {
			__atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
			sum++;
		}
		if (i % 8 == 0)
			while (fi_cq_read(bed->side[0].tx, &entry, 1) == 1)
				done++;
	}
	for (; done < COUNT; done++)
		CHECK(next(bed, bed->side[0].tx, &entry) == 1, "an operation does not end");
	(void) me, (void) mutex;
	meet(bed, pipe);
	/* Three quarters of the other's, a quarter of one's own. */
	sum += COUNT;
	CHECK(*counter == sum, "%llu instead of %llu", (unsigned long long) *counter, (unsigned long long) sum);
	for (i = 0; i < COUNT; i++)
		CHECK(results[i] < 2 * COUNT, "operation %d saw %llu", i, (unsigned long long) results[i]);
	meet(bed, pipe);
	conceal(&w);
}

static void exact_totals(void)
{
	in_two(&usual, totals_body);
}

/* ---- tagged receive buffers as targets ---- */

static void tagged_target(void)
{
	uint64_t with[2] = { 5, 7 }, buffer[4] = { 100, 200, 300, 400 }, old[2] = { 0 };
	struct fi_ioc operand = { with, 2 }, result = { old, 2 };
	struct fi_rma_ioc target = { 8, 2, 77 };
	struct fi_msg_atomic msg = { .msg_iov = &operand, .iov_count = 1, .rma_iov = &target, .rma_iov_count = 1,
				     .datatype = FI_UINT64, .op = FI_SUM, .context = ctx(1) };
	struct fi_atomic_attr attr;
	struct window w;
	struct bed bed;

	w = open_usual(&bed, &usual, OPEN_TO_ALL);
	NEED(fi_query_atomic(bed.domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED) == 0, "no atomics on tagged buffers");
	msg.addr = peer;
	POST(&bed, fi_trecv(bed.side[1].ep, buffer, sizeof(buffer), NULL, FI_ADDR_UNSPEC, 77, 0, ctx(2)));
	POST(&bed, fi_fetch_atomicmsg(ep, &msg, &result, NULL, 1, FI_TAGGED));
	ended(&bed, 1, FI_READ);
	CHECK(old[0] == 200 && old[1] == 300, "old values %llu %llu", (unsigned long long) old[0], (unsigned long long) old[1]);
	COMPLETION(&bed, bed.side[1].rx, ctx(2));
	CHECK(buffer[0] == 100 && buffer[1] == 205 && buffer[2] == 307 && buffer[3] == 400, "%llu %llu %llu %llu",
	      (unsigned long long) buffer[0], (unsigned long long) buffer[1], (unsigned long long) buffer[2], (unsigned long long) buffer[3]);
	close_usual(&bed, &w);
}

static void without_the_capability(void)
{
	static const struct setup plain;
	uint64_t one = 1;
	struct bed bed;

	if (!strict)
		SKIP("the page does not say what happens");
	open_bed(&bed, &plain);
	GIVES(-FI_EOPNOTSUPP, fi_atomic(bed.side[0].ep, &one, 1, NULL, bed.side[1].addr, 0, 0, FI_UINT64, FI_SUM, NULL));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(every_base), TEST(every_fetch), TEST(every_compare), TEST(special_numbers),
	TEST(invalid_pairs), TEST(limits), TEST(query), TEST(refusals), TEST(several_targets), TEST(counters), TEST(in_order),
	TEST(exact_totals), TEST(tagged_target), TEST(without_the_capability),
};

MAIN(tests)

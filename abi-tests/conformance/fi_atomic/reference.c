/* Each operation in plain C, and what it says of numbers that are not whole. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include "atomic.h"

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
#if HEADERS_2
INT_RULE(i128, u128)
INT_RULE(u128, u128)
#endif

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

void apply(const struct type *t, int op, char *a, const char *b, const char *c)
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
	close_window(&bed, &w);
}

static const struct test tests[] = {
	TEST(special_numbers),
};

CASES(tests)

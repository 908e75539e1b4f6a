/* The data types: what the page allows of them, and values that no format rounds. */
#include <complex.h>
#include <math.h>
#include "atomic.h"

/* ---- types ---- */

/* Not all of them in the headers of 1.17. */
__attribute__((unused))
static const struct format half = { 5, 10 }, brain = { 8, 7 }, e4m3 = { 4, 3 }, e5m2 = { 5, 2 };

unsigned encode(const struct format *f, double value)
{
	int bias = (1 << (f->exponent - 1)) - 1, e;
	unsigned sign = signbit(value) ? 1u << (f->exponent + f->fraction) : 0;
	double m;

	if (value == 0)
		return sign;
	m = frexp(fabs(value), &e); /* 0.5 <= m < 1 */
	return sign | (unsigned) (e - 1 + bias) << f->fraction | (unsigned) ((m * 2 - 1) * (1 << f->fraction));
}

double decode(const struct format *f, unsigned bits)
{
	int bias = (1 << (f->exponent - 1)) - 1;
	unsigned e = bits >> f->fraction & ((1u << f->exponent) - 1), m = bits & ((1u << f->fraction) - 1);
	double value = e ? ldexp(1 + (double) m / (1 << f->fraction), (int) e - bias) : ldexp((double) m / (1 << f->fraction), 1 - bias);

	return bits >> (f->exponent + f->fraction) & 1 ? -value : value;
}

#define INT(n, t) { #n, n, sizeof(t), sizeof(t), 1, 'I', NULL }
#define FLT(n, t, u) { #n, n, sizeof(t), u, 1, 'F', NULL }
#define CPX(n, t, u) { #n, n, sizeof(t), u, 2, 'F', NULL }
#define SML(n, s, f) { #n, n, s, s, 1, 's', f }

const struct type types[TYPES] = {
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

const char *const op_names[OPS] = {
	"MIN", "MAX", "SUM", "PROD", "LOR", "LAND", "BOR", "BAND", "LXOR", "BXOR", "READ", "WRITE",
	"CSWAP", "CSWAP_NE", "CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT", "MSWAP", "DIFF",
};

const char *const form_names[] = { "base", "fetch", "compare" };

unsigned seed;

bool allowed(enum form form, int op, const struct type *t)
{
	bool swap = op >= FI_CSWAP && op <= FI_MSWAP, read = op == FI_ATOMIC_READ;
	bool bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
	bool order = op == FI_MIN || op == FI_MAX || (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);

	if (form == COMPARE ? !swap : swap || (read && form == BASE))
		return false;
	return t->kind == 'I' || (!bits && !(order && t->parts == 2));
}

int valid(enum form form, int op, int type, size_t *count)
{
	switch (form) {
	case BASE: return fi_atomicvalid(ep, type, op, count);
	case FETCH: return fi_fetch_atomicvalid(ep, type, op, count);
	default: return fi_compare_atomicvalid(ep, type, op, count);
	}
}

/* ---- values ---- */

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

void put_values(const struct type *t, char *at, size_t count)
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

bool same(const struct type *t, const char *a, const char *b)
{
	size_t stride = t->size / (size_t) t->parts;
	int part;

	for (part = 0; part < t->parts; part++)
		if (memcmp(a + (size_t) part * stride, b + (size_t) part * stride, t->used))
			return false;
	return true;
}

/*
 * Arithmetic on `long double`, a type that Rust does not have. Each function reads values from any address and writes
 * only the bytes that carry the value, so that padding keeps what it held. Called by src/mem/atomic/long_double.rs.
 */

#include <complex.h>
#include <float.h>
#include <string.h>

#define RS_INTERNAL __attribute__((visibility("hidden")))

/* x86 keeps 80 bits in 16 bytes; elsewhere all bytes count. */
#if LDBL_MANT_DIG == 64
#define VALUE_BYTES 10
#else
#define VALUE_BYTES sizeof(long double)
#endif

RS_INTERNAL void rs_ld_set(void *out, int value);
RS_INTERNAL void rs_ld_sum(void *a, const void *b);
RS_INTERNAL void rs_ld_diff(void *a, const void *b);
RS_INTERNAL void rs_ld_prod(void *a, const void *b);
RS_INTERNAL int rs_ld_compare(const void *a, const void *b);
RS_INTERNAL void rs_ld_complex_prod(void *a, const void *b);

static long double load(const void *at)
{
	long double value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void store(void *at, long double value)
{
	memcpy(at, &value, VALUE_BYTES);
}

void rs_ld_set(void *out, int value)
{
	store(out, value);
}

void rs_ld_sum(void *a, const void *b)
{
	store(a, load(a) + load(b));
}

void rs_ld_diff(void *a, const void *b)
{
	store(a, load(a) - load(b));
}

void rs_ld_prod(void *a, const void *b)
{
	store(a, load(a) * load(b));
}

/* -1, 0 or 1 as `a` is less than, equal to or greater than `b`; 2 when they have no order. */
int rs_ld_compare(const void *a, const void *b)
{
	long double x = load(a), y = load(b);

	return x < y ? -1 : x == y ? 0 : x > y ? 1 : 2;
}

/* The product as C has it, which is more than four multiplications when infinities meet. */
void rs_ld_complex_prod(void *a, const void *b)
{
	char *parts = a;
	long double _Complex x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	x *= y;
	store(parts, creall(x));
	store(parts + sizeof(long double), cimagl(x));
}

/* Elements, as small whole numbers that every type has. */
#include "elements.h"

#define INTEGERS(X)                                                                  \
	X(FI_INT8, int8_t) X(FI_UINT8, uint8_t) X(FI_INT16, int16_t) X(FI_UINT16, uint16_t) \
	X(FI_INT32, int32_t) X(FI_UINT32, uint32_t) X(FI_INT64, int64_t) X(FI_UINT64, uint64_t)
#define FLOATS(X) X(FI_FLOAT, float) X(FI_DOUBLE, double) X(FI_LONG_DOUBLE, long double)
#define COMPLEXES(X)                                                                 \
	X(FI_FLOAT_COMPLEX, float complex) X(FI_DOUBLE_COMPLEX, double complex)      \
	X(FI_LONG_DOUBLE_COMPLEX, long double complex)

const enum fi_datatype types[] = {
#define NAME(type, c) type,
	INTEGERS(NAME) FLOATS(NAME) COMPLEXES(NAME)
};

size_t size_of(enum fi_datatype type)
{
	switch (type) {
#define SIZE(type, c) case type: return sizeof(c);
		INTEGERS(SIZE) FLOATS(SIZE) COMPLEXES(SIZE)
	default:
		return 0;
	}
}

void put(enum fi_datatype type, void *array, size_t i, double complex v)
{
	switch (type) {
#define PUT_INT(type, c) case type: ((c *) array)[i] = (c) (int64_t) creal(v); break;
#define PUT_FLOAT(type, c) case type: ((c *) array)[i] = (c) creal(v); break;
#define PUT_COMPLEX(type, c) case type: ((c *) array)[i] = (c) v; break;
		INTEGERS(PUT_INT) FLOATS(PUT_FLOAT) COMPLEXES(PUT_COMPLEX)
	default:
		CHECK(0, "type %d", type);
	}
}

double complex get(enum fi_datatype type, const void *array, size_t i)
{
	switch (type) {
#define GET(type, c) case type: return (double complex) ((const c *) array)[i];
		INTEGERS(GET) FLOATS(GET) COMPLEXES(GET)
	default:
		return 0;
	}
}

static bool is_complex(enum fi_datatype type)
{
	return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
}

/* What member `rank` has at a place. */
double complex value(enum fi_datatype type, int rank, size_t i)
{
	double complex v = (double) ((i * 7 + (size_t) rank * 3 + i / 11) % 4);

	return is_complex(type) ? v + I * (double) ((i + (size_t) rank) % 3) : v;
}

bool allowed(enum fi_op op, enum fi_datatype type)
{
	if (op == FI_BOR || op == FI_BAND || op == FI_BXOR)
		return type <= FI_UINT64;
	return (op != FI_MIN && op != FI_MAX) || !is_complex(type);
}

static double complex combine(enum fi_op op, double complex a, double complex b)
{
	uint64_t x = (uint64_t) creal(a), y = (uint64_t) creal(b);

	switch (op) {
	case FI_MIN: return creal(a) < creal(b) ? a : b;
	case FI_MAX: return creal(a) > creal(b) ? a : b;
	case FI_SUM: return a + b;
	case FI_PROD: return a * b;
	case FI_LOR: return a != 0 || b != 0;
	case FI_LAND: return a != 0 && b != 0;
	case FI_LXOR: return (a != 0) != (b != 0);
	case FI_BOR: return (double) (x | y);
	case FI_BAND: return (double) (x & y);
	case FI_BXOR: return (double) (x ^ y);
	default: CHECK(0, "operation %d", op);
	}
	return 0;
}

double complex reduced(enum fi_op op, enum fi_datatype type, size_t i)
{
	double complex v = value(type, 0, i);
	int rank;

	for (rank = 1; rank < members; rank++)
		v = combine(op, v, value(type, rank, i));
	return v;
}

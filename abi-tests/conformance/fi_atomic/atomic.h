/*
 * fi_atomic(3): operations on a peer's memory. What each does to each type is held against plain C here, element by
 * element; types that C does not have are computed through their values, which are chosen so that results are exact.
 */
#ifndef ATOMIC_H
#define ATOMIC_H

#include "initiator.h"

#define SIZE 8192
#define MOST 64 /* elements of one operation, in the tests of all types */

static const struct setup usual = { .more_caps = FI_ATOMIC, .tx_flags = FI_DELIVERY_COMPLETE };
extern char here[SIZE], there[SIZE], answer[SIZE], compare[SIZE];

typedef __int128 i128;
typedef unsigned __int128 u128;

/* Small floats: sign, exponent and fraction bits. */
struct format {
	int exponent, fraction;
};

struct type {
	const char *name;
	int number; /* enum fi_datatype */
	size_t size, used; /* bytes; those that have a meaning, per part */
	int parts; /* 2 for complex */
	char kind; /* Integer, Float, small (of `format`) */
	const struct format *format;
};

#define TYPES (HEADERS_2 ? 20 : 14)
extern const struct type types[];
#define EACH_TYPE(t) for (t = types; t < types + TYPES; t++)

#if !HEADERS_2
#define FI_DIFF 19
#endif
#define OPS 20
extern const char *const op_names[OPS];

enum form { BASE, FETCH, COMPARE };
extern const char *const form_names[];

extern unsigned seed; /* of the values */

/* One operation, whose operands are in the buffers above, and the calls by which it can be asked for. */
enum shape { PLAIN_CALL, VECTORS, MESSAGE, INJECTED, SHAPES };

struct call {
	const struct type *type;
	enum form form;
	int op;
	size_t count;
	uint64_t addr, key;
};

static inline struct window open_usual(struct bed *bed, const struct setup *setup, uint64_t access)
{
	struct setup s = *setup;
	struct fi_info *info;

	/* A card that reports an operation when the target has answered offers no such flag. */
	if (find_info(&s, &info) == -FI_ENODATA)
		s.tx_flags &= ~FI_DELIVERY_COMPLETE;
	else
		fi_freeinfo(info);
	return open_window(bed, &s, there, sizeof(there), access);
}

void ended(struct bed *bed, int context, uint64_t direction);
/* For values that the format has exactly. */
unsigned encode(const struct format *f, double value);
double decode(const struct format *f, unsigned bits);
/* What the page allows. */
bool allowed(enum form form, int op, const struct type *t);
int valid(enum form form, int op, int type, size_t *count);
void put_values(const struct type *t, char *at, size_t count);
/* Padding of long doubles has no meaning. */
bool same(const struct type *t, const char *a, const char *b);
/* a = a OP b, with c to compare. */
void apply(const struct type *t, int op, char *a, const char *b, const char *c);
ssize_t post(const struct call *c, enum shape shape, size_t pieces);

#endif

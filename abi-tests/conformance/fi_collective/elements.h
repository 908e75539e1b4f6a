/* Elements of every type, and what a reduction makes of them. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include <complex.h>
#include "collective.h"

#define TYPES 14
extern const enum fi_datatype types[TYPES];

size_t size_of(enum fi_datatype type);
void put(enum fi_datatype type, void *array, size_t i, double complex v);
double complex get(enum fi_datatype type, const void *array, size_t i);
/* What member `rank` has at a place, and what all have there together. */
double complex value(enum fi_datatype type, int rank, size_t i);
double complex reduced(enum fi_op op, enum fi_datatype type, size_t i);
bool allowed(enum fi_op op, enum fi_datatype type);

#endif

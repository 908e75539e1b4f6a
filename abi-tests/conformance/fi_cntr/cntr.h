/* fi_cntr(3): counters. */
#ifndef CNTR_H
#define CNTR_H

#include "fabric.h"

static const struct setup usual;
extern char in[4096], out[4096];

int try_open(struct bed *bed, struct fi_cntr_attr *attr, struct fid_cntr **cntr);
struct fid_cntr *open_cntr(struct bed *bed, enum fi_wait_obj wait);

/* Changes need not be seen at once, but in the end. */
void becomes(struct fid_cntr *cntr, uint64_t value, int line);
#define BECOMES(cntr, value) becomes(cntr, value, __LINE__)
void errors_become(struct fid_cntr *cntr, uint64_t value, int line);
#define ERRORS_BECOME(cntr, value) errors_become(cntr, value, __LINE__)

/* A bed whose endpoint `side` counts `flags` too. */
struct fid_cntr *bind_counter(struct bed *bed, const struct setup *s, enum fi_cntr_events events, int side, uint64_t flags);
/* Closes the endpoints first: a counter that is bound cannot be closed. */
void close_counted(struct bed *bed, struct fid_cntr *cntr);
/* A tagged message, waited for at both ends. */
void exchange(struct bed *bed, int from, int to, size_t len);

#endif

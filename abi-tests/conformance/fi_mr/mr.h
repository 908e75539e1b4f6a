/* fi_mr(3): registering memory. What peers then do with it is fi_rma's and fi_atomic's, but for the modes of regions. */
#ifndef MR_H
#define MR_H

#include "remote.h"

#define REMOTE OPEN_TO_ALL

static const struct setup usual;
extern char memory[65536];

/* Whether the application chooses the keys. */
bool user_keys(struct bed *bed);
struct fid_mr *reg(struct bed *bed, const void *buf, size_t len, uint64_t key);

#endif

/* Side 0 works on memory of side 1: what the pages about that begin with. */
#ifndef INITIATOR_H
#define INITIATOR_H

#include "remote.h"

/* Side 0's endpoint, and side 1's address. */
extern struct fid_ep *ep;
extern fi_addr_t peer;

/* A bed in which side 1 has exposed this memory. */
struct window open_window(struct bed *bed, const struct setup *setup, void *memory, size_t len, uint64_t access);
void close_window(struct bed *bed, struct window *window);

#endif

/*
 * Cases that fi_msg(3) and fi_tagged(3) have in common: the page that includes this has them, and says which of the two it
 * asks about.
 */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include "fabric.h"

extern const bool tagged; /* the program's */

/* One call of each kind, tagged or not; the tag of an untagged one is ignored. */
ssize_t post_send(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag, void *context);
ssize_t post_recv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context);
ssize_t post_sendmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag, uint64_t data,
		     void *context, uint64_t flags);
ssize_t post_recvmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag,
		     uint64_t ignore, void *context, uint64_t flags);

#endif

/*
 * What cases send when it does not matter by which call: tagged messages where the endpoint has tags, else plain ones. A
 * page that is about one of the two says so (`of_page`). They lie in static memory, and have its descriptor.
 */
#ifndef MESSAGES_SUPPORT_H
#define MESSAGES_SUPPORT_H

#include <rdma/fi_tagged.h>
#include <stdbool.h>

enum messages { ANY_MESSAGES, PLAIN_MESSAGES, TAGGED_MESSAGES };
/* A page about plain or tagged messages defines it; the others have ANY_MESSAGES. */
extern enum messages of_page;
/* Whether those below are tagged: known when the bed is open, and from the beginning where the page says so. */
extern bool tagged;

/* What posting calls are given as descriptors of static memory: where the provider asks for registered memory (FI_MR_LOCAL),
 * what the domain that was opened last has registered of it, which is all; else NULL. */
#define MOST_PIECES 64
extern void *desc, *descs[MOST_PIECES];
void describe(void *descriptor);

/* One call of each kind; the tag of a plain message is ignored. */
ssize_t post_send(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag, void *context);
ssize_t post_senddata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag, void *context);
ssize_t post_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag);
ssize_t post_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag);
ssize_t post_recv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context);
ssize_t post_sendv(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag, void *context);
ssize_t post_recvv(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag, uint64_t ignore,
		   void *context);
ssize_t post_sendmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag, uint64_t data,
		     void *context, uint64_t flags);
ssize_t post_recvmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag,
		     uint64_t ignore, void *context, uint64_t flags);

#endif

/* fi_endpoint(3): what binds to what, options, aliases, scalable endpoints, shared contexts. Transfers: fi_msg, fi_tagged. */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include "fabric.h"

static const struct setup usual;
extern char in[4096], out[4096];

/* An endpoint with nothing bound to it, and a queue that is bound to nothing. */
struct fid_ep *bare_ep(struct bed *bed);
struct fid_cq *a_cq(struct bed *bed);

#endif

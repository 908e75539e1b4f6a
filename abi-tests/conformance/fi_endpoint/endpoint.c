/* What the cases of this page share. */
#include "endpoint.h"

char in[4096], out[4096];

struct fid_ep *bare_ep(struct bed *bed)
{
	struct fid_ep *ep;

	OK(fi_endpoint(bed->domain, bed->info, &ep, NULL));
	return ep;
}

struct fid_cq *a_cq(struct bed *bed)
{
	struct fid_cq *cq;

	OK(open_cq(bed, &usual, &cq, NULL));
	return cq;
}

/* What the files of fi_tagged share: messages by their tag, in slots of 64 bytes. */
#ifndef TAGGED_H
#define TAGGED_H

#include "../transfers/transfers.h"

static const struct setup usual;
static char in[8192], out[8192];

static inline void send_tag(struct bed *bed, uint64_t tag, unsigned seed, size_t len, int tx)
{
	fill(out + 64 * tx, len < 64 ? len : 64, seed);
	POST(bed, fi_tsend(bed->side[0].ep, out + 64 * tx, len, desc, bed->side[1].addr, tag, ctx(tx)));
}

static inline void recv_tag(struct bed *bed, uint64_t tag, uint64_t ignore, int rx)
{
	POST(bed, fi_trecv(bed->side[1].ep, in + 64 * rx, 64, desc, FI_ADDR_UNSPEC, tag, ignore, ctx(rx)));
}

/* Receive `rx` got the message of this seed and tag. */
static inline void got(struct bed *bed, int rx, uint64_t tag, unsigned seed)
{
	struct fi_cq_tagged_entry e = COMPLETION(bed, bed->side[1].rx, ctx(rx));

	CHECK(e.tag == tag, "receive %d: tag 0x%llx, not 0x%llx", rx, (unsigned long long) e.tag, (unsigned long long) tag);
	CHECK(mismatch(in + 64 * rx, 16, seed) < 0, "receive %d got another message than %u", rx, seed);
}

#endif

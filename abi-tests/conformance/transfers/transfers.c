/* What the cases share. */
#include "shared.h"

char in[BIG + 64], out[BIG + 64];

void send_to(struct bed *bed, int from, int to, const void *buf, size_t len, void *context)
{
	POST(bed, post_send(bed->side[from].ep, buf, len, bed->side[to].addr, TAG, context));
}

void recv_at(struct bed *bed, int at, void *buf, size_t len, void *context)
{
	POST(bed, post_recv(bed->side[at].ep, buf, len, FI_ADDR_UNSPEC, TAG, 0, context));
}

struct fi_cq_tagged_entry ended(struct bed *bed, void *rx, void *tx, size_t len)
{
	struct fi_cq_tagged_entry e = COMPLETION(bed, bed->side[1].rx, rx);

	COMPLETION(bed, bed->side[0].tx, tx);
	CHECK(e.len == len, "%zu bytes, not %zu", e.len, len);
	CHECK(!tagged || e.tag == TAG, "tag 0x%llx", (unsigned long long) e.tag);
	return e;
}

bool receives_first(int round)
{
	return datagram_ends || round % 2;
}

void need_order(struct bed *bed)
{
	NEED(bed->info->tx_attr->msg_order & FI_ORDER_SAS, "sends are not ordered");
}

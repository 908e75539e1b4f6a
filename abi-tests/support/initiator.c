#include "initiator.h"

struct fid_ep *ep;
fi_addr_t peer;

struct window open_window(struct bed *bed, const struct setup *setup, void *memory, size_t len, uint64_t access)
{
	open_bed(bed, setup);
	ep = bed->side[0].ep;
	peer = bed->side[1].addr;
	return expose(bed, 1, memory, len, access);
}

void close_window(struct bed *bed, struct window *window)
{
	conceal(window);
	close_bed(bed);
}

/* What the cases of this page share. */
#include "atomic.h"

char here[SIZE] __attribute__((aligned(64)));
char there[SIZE] __attribute__((aligned(64)));
char answer[SIZE] __attribute__((aligned(64)));
char compare[SIZE] __attribute__((aligned(64)));
struct fid_ep *ep;
fi_addr_t peer;

struct window open_usual(struct bed *bed, const struct setup *setup, uint64_t access)
{
	open_bed(bed, setup);
	ep = bed->side[0].ep;
	peer = bed->side[1].addr;
	return expose(bed, 1, there, sizeof(there), access);
}

void close_usual(struct bed *bed, struct window *w)
{
	conceal(w);
	close_bed(bed);
}

void ended(struct bed *bed, int context, uint64_t direction)
{
	struct fi_cq_tagged_entry entry = COMPLETION(bed, bed->side[0].tx, ctx(context));

	CHECK(!strict || (entry.flags & (FI_ATOMIC | FI_READ | FI_WRITE | FI_RMA)) == (FI_ATOMIC | direction),
	      "flags 0x%llx", (unsigned long long) entry.flags);
}

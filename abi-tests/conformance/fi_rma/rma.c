/* What the cases of this page share. */
#include "rma.h"

char here[SIZE] __attribute__((aligned(64)));
char there[SIZE] __attribute__((aligned(64)));
char expected[SIZE];
struct fid_ep *ep;
fi_addr_t peer;
const size_t few[4] = { 1, 300, 6000, 500000 };
const size_t sizes[SIZES] = { 1, 3, 8, 64, 200, 1000, 4096, 4097, 8192, 10000, 16384, 16385, 65536, 100001, SIZE };

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

void wrote(struct bed *bed, int context)
{
	struct fi_cq_tagged_entry entry = COMPLETION(bed, bed->side[0].tx, ctx(context));

	CHECK((entry.flags & (FI_RMA | FI_WRITE | FI_READ)) == (FI_RMA | FI_WRITE), "flags 0x%llx of a write",
	      (unsigned long long) entry.flags);
}

void have_read(struct bed *bed, int context)
{
	struct fi_cq_tagged_entry entry = COMPLETION(bed, bed->side[0].tx, ctx(context));

	CHECK((entry.flags & (FI_RMA | FI_WRITE | FI_READ)) == (FI_RMA | FI_READ), "flags 0x%llx of a read",
	      (unsigned long long) entry.flags);
}

void drain(struct bed *bed, int count)
{
	struct fi_cq_tagged_entry entry;

	for (; count > 0; count--)
		CHECK(next(bed, bed->side[0].tx, &entry) == 1, "%d completions are missing", count);
}

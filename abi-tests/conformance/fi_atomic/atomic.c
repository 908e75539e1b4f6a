/* What the cases of this page share. */
#include "atomic.h"

char here[SIZE] __attribute__((aligned(64)));
char there[SIZE] __attribute__((aligned(64)));
char answer[SIZE] __attribute__((aligned(64)));
char compare[SIZE] __attribute__((aligned(64)));

void ended(struct bed *bed, int context, uint64_t direction)
{
	struct fi_cq_tagged_entry entry = COMPLETION(bed, bed->side[0].tx, ctx(context));

	CHECK(!strict || (entry.flags & (FI_ATOMIC | FI_READ | FI_WRITE | FI_RMA)) == (FI_ATOMIC | direction),
	      "flags 0x%llx", (unsigned long long) entry.flags);
}

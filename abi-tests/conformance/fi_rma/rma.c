/* What the cases of this page share. */
#include "rma.h"

char here[SIZE] __attribute__((aligned(64)));
char there[SIZE] __attribute__((aligned(64)));
char expected[SIZE];
const size_t few[4] = { 1, 300, 6000, 500000 };
const size_t sizes[SIZES] = { 1, 3, 8, 64, 200, 1000, 4096, 4097, 8192, 10000, 16384, 16385, 65536, 100001, SIZE };

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

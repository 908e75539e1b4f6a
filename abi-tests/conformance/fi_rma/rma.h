/* fi_rma(3): reading and writing a peer's memory. */
#ifndef RMA_H
#define RMA_H

#include "initiator.h"

#define SIZE (1 << 20)

static const struct setup usual = { .more_caps = FI_RMA };
extern char here[SIZE], there[SIZE], expected[SIZE];

/* Every way that a provider may take has its sizes. */
#define SIZES 15
extern const size_t sizes[SIZES];
#define EACH_SIZE(i) for (i = 0; i < SIZES; i++)
/* One of each way, for what is asked often. */
extern const size_t few[4];

static inline struct window open_usual(struct bed *bed, const struct setup *setup, uint64_t access)
{
	return open_window(bed, setup, there, sizeof(there), access);
}

void wrote(struct bed *bed, int context);
void have_read(struct bed *bed, int context);
void drain(struct bed *bed, int count);

#endif

/* Memory that a peer may reach, whatever the provider asks of its registration. */
#ifndef REMOTE_SUPPORT_H
#define REMOTE_SUPPORT_H

#include "fabric.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define READABLE FI_REMOTE_READ
#define WRITABLE FI_REMOTE_WRITE
#define OPEN_TO_ALL (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* What the initiator has to know of a region. */
struct remote {
	uint64_t base, key;
};

struct window {
	struct fid_mr *mr;
	struct remote remote;
};

/* Registers memory of one side's, with a key of its own unless the provider chooses one. */
struct window expose(struct bed *bed, int side, void *memory, size_t len, uint64_t access);
void conceal(struct window *window);

/* Until the condition holds, or it does not after a long while. */
#define UNTIL(bed, condition)                                                          \
	do {                                                                           \
		long end_ = now_ms() + GIVE_UP_MS;                                     \
		while (!(condition) && now_ms() < end_)                                \
			progress(bed);                                                 \
		CHECK(condition, "not so after %d ms: %s", GIVE_UP_MS, #condition);    \
	} while (0)

#endif

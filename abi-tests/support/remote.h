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
__attribute__((unused)) static struct window expose(struct bed *bed, int side, void *memory, size_t len, uint64_t access)
{
	static uint64_t keys = 100;
	int mode = bed->info->domain_attr->mr_mode;
	struct window window = { 0 };

	OK(fi_mr_reg(bed->domain, memory, len, access, 0, ++keys, 0, &window.mr, NULL));
	if (mode & FI_MR_ENDPOINT) {
		OK(fi_mr_bind(window.mr, &bed->side[side].ep->fid, 0));
		OK(fi_mr_enable(window.mr));
	}
	window.remote.base = mode & (FI_MR_VIRT_ADDR | 1 /* FI_MR_BASIC */) ? (uintptr_t) memory : 0;
	window.remote.key = fi_mr_key(window.mr);
	return window;
}

__attribute__((unused)) static void conceal(struct window *window)
{
	OK(fi_close(&window->mr->fid));
}

/* Until the condition holds, or it does not after a long while. */
#define UNTIL(bed, condition)                                                          \
	do {                                                                           \
		long end_ = now_ms() + GIVE_UP_MS;                                     \
		while (!(condition) && now_ms() < end_)                                \
			progress(bed);                                                 \
		CHECK(condition, "not so after %d ms: %s", GIVE_UP_MS, #condition);    \
	} while (0)

#endif

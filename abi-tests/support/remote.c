#include "remote.h"

struct window expose(struct bed *bed, int side, void *memory, size_t len, uint64_t access)
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

void conceal(struct window *window)
{
	OK(fi_close(&window->mr->fid));
}

/* What the cases of this page share. */
#include "mr.h"

char memory[65536];

bool user_keys(struct bed *bed)
{
	return !(bed->info->domain_attr->mr_mode & FI_MR_PROV_KEY);
}

struct fid_mr *reg(struct bed *bed, const void *buf, size_t len, uint64_t key)
{
	struct fid_mr *mr;

	OK(fi_mr_reg(bed->domain, buf, len, REMOTE, 0, key, 0, &mr, ctx(1)));
	return mr;
}

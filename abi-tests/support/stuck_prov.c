/*
 * A provider for tests that does STUCK, such as for (;;) pause(), where it is built to do it: with AT=0 in its constructor,
 * 1 in fi_prov_ini, 2 when it is asked for infos.
 */
#include <stdlib.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

static void at(int place)
{
	if (place == AT)
		STUCK;
}

__attribute__((constructor)) static void load(void)
{
	at(0);
}

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info)
{
	(void) version, (void) node, (void) service, (void) flags, (void) hints, (void) info;
	at(2);
	return -FI_ENODATA;
}

static int fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	(void) attr, (void) fabric, (void) context;
	return -FI_ENOSYS;
}

static struct fi_provider stuck = {
	.name = "stuck",
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = getinfo,
	.fabric = fabric,
};

struct fi_provider *fi_prov_ini(void);
struct fi_provider *fi_prov_ini(void)
{
	at(1);
	return &stuck;
}

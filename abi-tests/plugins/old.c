/*
 * A plug-in as one built for API 1.17 would be, that allocates its answer by itself: its domain attributes end where
 * they ended then, after 192 bytes. Behind them lies memory that is not theirs. Calls nothing of libfabric.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

enum { DOMAIN_ATTR_OF_1_17 = 192 };

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **out)
{
	struct fi_info *info = calloc(1, sizeof(*info));
	unsigned char *domain = malloc(512);

	(void) version, (void) node, (void) service, (void) flags, (void) hints;
	memset(domain, 0xaa, 512);
	memset(domain, 0, DOMAIN_ATTR_OF_1_17);
	info->tx_attr = calloc(1, sizeof(*info->tx_attr));
	info->rx_attr = calloc(1, sizeof(*info->rx_attr));
	info->ep_attr = calloc(1, sizeof(*info->ep_attr));
	info->fabric_attr = calloc(1, sizeof(*info->fabric_attr));
	info->domain_attr = (struct fi_domain_attr *) domain;
	info->domain_attr->name = strdup("old-domain");
	info->domain_attr->tclass = 17;
	info->fabric_attr->name = strdup("old-net");
	info->src_addr = strdup("here");
	info->src_addrlen = 5;
	*out = info;
	return 0;
}

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	(void) attr, (void) fabric, (void) context;
	return -FI_ENODEV;
}

static void cleanup(void)
{
	const char *name = getenv("PROBE_TRACE");
	FILE *file = name ? fopen(name, "a") : NULL;

	if (!file)
		return;
	fprintf(file, "cleanup old\n");
	fclose(file);
}

static struct fi_provider provider = {
	.version = FI_VERSION(117, 0),
	.fi_version = FI_VERSION(1, 17),
	.name = "old",
	.getinfo = getinfo,
	.fabric = open_fabric,
	.cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
	return &provider;
}

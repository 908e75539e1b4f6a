/*
 * A program of Debian 12's time, bound to FABRIC_1.3 and older: what it puts into its structs is what it gets back.
 *
 * libraries: debian12
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

static void show(const struct fi_info *info)
{
	const struct fi_domain_attr *domain = info->domain_attr;

	printf("caps %" PRIx64 " mode %" PRIx64 " format %u addresses %zu %zu\n", info->caps, info->mode, info->addr_format,
	       info->src_addrlen, info->dest_addrlen);
	printf("src %s dest %s nic %d\n", (char *) info->src_addr, (char *) info->dest_addr, info->nic != NULL);
	printf("tx %zu class %x rx %zu\n", info->tx_attr->size, info->tx_attr->tclass, info->rx_attr->size);
	printf("ep %d key %s %zu\n", info->ep_attr->type, (char *) info->ep_attr->auth_key, info->ep_attr->auth_key_size);
	printf("domain %s threading %d class %x mr_mode %d\n", domain->name, domain->threading, domain->tclass, domain->mr_mode);
	printf("fabric %s provider %s %x %x\n", info->fabric_attr->name, info->fabric_attr->prov_name,
	       info->fabric_attr->prov_version, info->fabric_attr->api_version);
}

int main(void)
{
	struct fi_info *info = fi_allocinfo(), *copy, *found = NULL;
	struct fid_fabric *fabric = NULL;
	struct fi_param *params;
	int value = 0, count, i;

	printf("sizes %zu %zu\n", sizeof(*info), sizeof(*info->domain_attr));
	info->caps = FI_MSG | FI_TAGGED;
	info->mode = FI_CONTEXT;
	info->addr_format = FI_ADDR_STR;
	info->src_addr = strdup("here");
	info->src_addrlen = 5;
	info->dest_addr = strdup("there");
	info->dest_addrlen = 6;
	info->tx_attr->size = 3;
	info->tx_attr->tclass = FI_TC_BULK_DATA;
	info->rx_attr->size = 4;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->auth_key = (uint8_t *) strdup("key");
	info->ep_attr->auth_key_size = 4;
	info->domain_attr->name = strdup("d");
	info->domain_attr->threading = FI_THREAD_DOMAIN;
	info->domain_attr->tclass = FI_TC_LOW_LATENCY;
	info->fabric_attr->name = strdup("f");
	info->fabric_attr->prov_name = strdup("nobody");
	copy = fi_dupinfo(info);
	fi_freeinfo(info);
	show(copy);

	printf("getinfo %d\n", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, copy, &found));
	printf("future %d\n", fi_getinfo(FI_VERSION(9, 0), NULL, NULL, 0, copy, &found));
	printf("fabric %d\n", fi_fabric(copy->fabric_attr, &fabric, NULL));
	printf("fabric without attributes %d\n", fi_fabric(NULL, &fabric, NULL));
	fi_freeinfo(copy);

	for (i = 256; i <= 268; i++)
		printf("%d %s\n", i, fi_strerror(i));
	printf("define %d\n", fi_param_define(NULL, "old_program", FI_PARAM_INT, "a number"));
	setenv("FI_OLD_PROGRAM", "41", 1);
	printf("get %d", fi_param_get_int(NULL, "old_program", &value));
	printf(" %d\n", value);
	printf("params %d", fi_getparams(&params, &count));
	for (i = 0; i < count; i++)
		if (!strcmp(params[i].name, "FI_OLD_PROGRAM"))
			printf(" %s=%s: %s", params[i].name, params[i].value, params[i].help_string);
	fi_freeparams(params);
	printf("\n");
	return 0;
}

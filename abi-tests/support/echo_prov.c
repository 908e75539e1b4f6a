/*
 * A provider for tests, built as libecho-fi.so: it answers with the caller's own hints, and says in cq_cnt which of the
 * fields that came with later ABI versions it saw empty. What was left open, or all without hints, it fills plainly. Its
 * fabric does nothing but close.
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "echo_prov.h"

static struct fi_provider echo;

static uint64_t empty_fields(const struct fi_info *hints)
{
	const struct fi_domain_attr *domain = hints->domain_attr;
	uint64_t seen = 0;

	if (!domain->cntr_cnt && !domain->mr_cnt && !domain->auth_key)
		seen |= ECHO_NO_DOMAIN_1_1;
	if (!hints->ep_attr->auth_key && !hints->ep_attr->auth_key_size)
		seen |= ECHO_NO_EP_1_1;
	if (!hints->nic)
		seen |= ECHO_NO_NIC_1_2;
	if (!domain->tclass)
		seen |= ECHO_NO_DOMAIN_1_3;
	if (!hints->tx_attr->tclass)
		seen |= ECHO_NO_TX_1_3;
	if (!domain->max_ep_auth_key)
		seen |= ECHO_NO_DOMAIN_1_7;
	if (!domain->max_group_id)
		seen |= ECHO_NO_DOMAIN_1_8;
	if (!domain->max_cntr_value && !domain->max_err_cntr_value)
		seen |= ECHO_NO_DOMAIN_1_9;
	return seen;
}

static struct fi_info *echo_offer(const struct fi_info *hints)
{
	struct fi_info *info = fi_dupinfo(hints);

	if (!info)
		return NULL;
	info->domain_attr->cq_cnt = empty_fields(hints);
	free(info->fabric_attr->prov_name); /* the core writes it */
	info->fabric_attr->prov_name = NULL;
	return info;
}

static int echo_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **info)
{
	int complete = hints && hints->tx_attr && hints->ep_attr && hints->domain_attr && hints->fabric_attr;
	struct fi_info *offer;

	(void) version, (void) node, (void) service, (void) flags;
	FI_INFO(&echo, FI_LOG_CORE, "asked\n");
	if (complete && hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != FI_EP_RDM)
		return -FI_ENODATA;
	*info = offer = complete ? echo_offer(hints) : fi_dupinfo(NULL);
	if (!offer)
		return -FI_ENOMEM;
	if (!offer->caps)
		offer->caps = FI_MSG | FI_SEND | FI_RECV;
	if (!offer->addr_format)
		offer->addr_format = FI_ADDR_STR;
	if (!offer->ep_attr->type)
		offer->ep_attr->type = FI_EP_RDM;
	if (!offer->domain_attr->threading)
		offer->domain_attr->threading = FI_THREAD_SAFE;
	if (!offer->domain_attr->name)
		offer->domain_attr->name = strdup("echo-domain");
	if (!offer->fabric_attr->name)
		offer->fabric_attr->name = strdup("echo-fabric");
	return 0;
}

static int echo_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static struct fi_ops echo_ops = {
	.size = sizeof(struct fi_ops),
	.close = echo_close,
};

static int echo_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	(void) attr;
	*fabric = calloc(1, sizeof(**fabric));
	if (!*fabric)
		return -FI_ENOMEM;
	(*fabric)->fid.fclass = FI_CLASS_FABRIC;
	(*fabric)->fid.context = context;
	(*fabric)->fid.ops = &echo_ops;
	return 0;
}

static void echo_cleanup(void)
{
}

static struct fi_provider echo = {
	.version = FI_VERSION(7, 5),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "echo",
	.getinfo = echo_getinfo,
	.fabric = echo_fabric,
	.cleanup = echo_cleanup,
};

struct fi_provider *fi_prov_ini(void);
struct fi_provider *fi_prov_ini(void)
{
	fi_param_define(&echo, "volume", FI_PARAM_INT, "how loud (default: %d)", 11);
	return &echo;
}

/* What programs write against the headers beside calls: members of nameless and named unions, macros. C and C++. */

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_profile.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

struct holder {
	struct fid_nic *nic;
	struct fi_trigger_var var;
	struct fi_trigger_xpu xpu;
	struct fi_triggered_context2 triggered;
	struct fi_deferred_work work;
	struct fi_profile_desc desc;
	const struct fi_eq_cm_entry *cm;
};

uint64_t members(struct fi_info *info, struct fi_mr_attr *mr, struct holder *holder);
int logs(const struct fi_provider *prov);

uint64_t members(struct fi_info *info, struct fi_mr_attr *mr, struct holder *holder)
{
	info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	info->domain_attr->progress = FI_PROGRESS_AUTO;
	info->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR;
	info->ep_attr->type = FI_EP_RDM;
	mr->dmabuf = NULL;
	mr->mr_iov = NULL;
	mr->device.cuda = 1;
	mr->device.reserved = 0;
	holder->nic->bus_attr->attr.pci.bus_id = 1;
	holder->var.value.val8 = 2;
	holder->xpu.device.ze = 3;
	holder->triggered.trigger.threshold.threshold = 4;
	holder->work.op.msg = NULL;
	holder->desc.datatype.primitive = FI_UINT64;
	return info->domain_attr->data_progress + holder->cm->data[0] + FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

int logs(const struct fi_provider *prov)
{
	FI_WARN(prov, FI_LOG_CORE, "%d\n", 1);
	FI_WARN_ONCE(prov, FI_LOG_CORE, "once\n");
	FI_WARN_SPARSE(prov, FI_LOG_CORE, "%s\n", "sometimes");
	FI_INFO(prov, FI_LOG_FABRIC, "%zu\n", sizeof(int));
	FI_TRACE(prov, FI_LOG_FABRIC, "trace\n");
	FI_DBG(prov, FI_LOG_FABRIC, "debug\n");
	FI_DBG_TRACE(prov, FI_LOG_FABRIC, "debug trace\n");
	return FI_VERSION_GE(fi_version(), FI_VERSION(2, 0)) ? -FI_EAGAIN : -FI_EOTHER;
}

FI_EXT_INI
{
	return NULL;
}

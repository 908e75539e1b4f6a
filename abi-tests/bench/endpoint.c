/* Opens the library by its path, and in it one endpoint that is joined to the other process's. Needs of the library only
 * what every release since 1.3 exports; the rest goes through op tables, as in any C program. */
#define _GNU_SOURCE
#include "bench.h"
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_MAX_LEN 512

static struct {
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	uint32_t (*version)(void);
} lib;

static void load(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "fabric_bench: %s\n", dlerror());
		exit(1);
	}
	*(void **)&lib.getinfo = dlsym(handle, "fi_getinfo");
	*(void **)&lib.dupinfo = dlsym(handle, "fi_dupinfo");
	*(void **)&lib.fabric = dlsym(handle, "fi_fabric");
	*(void **)&lib.version = dlsym(handle, "fi_version");
	if (!lib.getinfo || !lib.dupinfo || !lib.fabric || !lib.version)
		die("not a libfabric.so.1", 0);
}

/* What an MPI asks for: tagged messages, one thread, progress by the caller; RMA where it can be had. */
static struct fi_info *find(const char *provider, int *rma)
{
	struct fi_info *hints = lib.dupinfo(NULL), *info = NULL;
	uint32_t version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

	if (!hints)
		die("fi_dupinfo", FI_ENOMEM);
	if (lib.version() < version)
		version = lib.version();
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(provider);
	for (*rma = 2; *rma >= 0; --*rma) {
		hints->caps = FI_MSG | FI_TAGGED | (*rma ? FI_RMA : 0) | (*rma > 1 ? FI_ATOMIC : 0);
		if (!lib.getinfo(version, NULL, NULL, 0, hints, &info) && info)
			return info;
	}
	return NULL;
}

static void must(const char *what, int ret)
{
	if (ret)
		die(what, ret);
}

struct about {
	char name[NAME_MAX_LEN];
	uint64_t len, addr, key;
	uint64_t shared_addr, shared_key;
};

/* As an MPI allocates windows and an OpenSHMEM its heap. */
static char *shareable(size_t len)
{
	int fd = memfd_create("fabric_bench", MFD_CLOEXEC);
	void *memory = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)len))
		memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		die("memfd_create", FI_ENOMEM);
	close(fd);
	return memset(memory, 0, len);
}

static void share_memory(struct side *me, struct fid_domain *domain, const struct fi_info *info, struct about *mine)
{
	struct fid_mr *mr;
	size_t len = me->largest * 2;
	uint64_t access = FI_SEND | FI_RECV;

	if (me->rma)
		access |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	me->tx = aligned_alloc(4096, len);
	if (!me->tx)
		die("aligned_alloc", FI_ENOMEM);
	me->rx = me->tx + me->largest;
	memset(me->tx, 0, len);
	if (!me->rma && !(info->domain_attr->mr_mode & FI_MR_LOCAL))
		return;
	must("fi_mr_reg", fi_mr_reg(domain, me->tx, len, access, 0, 1, 0, &mr, NULL));
	me->desc = fi_mr_desc(mr);
	mine->key = fi_mr_key(mr);
	mine->addr = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)me->tx : 0) + me->largest;
	if (!me->rma)
		return;
	char *shared = shareable(me->largest);
	must("fi_mr_reg", fi_mr_reg(domain, shared, me->largest, access, 0, 2, 0, &mr, NULL));
	mine->shared_key = fi_mr_key(mr);
	mine->shared_addr = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)shared : 0;
}

/* 0 if the library has no such provider. */
int fabric_open(struct side *me, const struct settings *with)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct about mine = { .len = NAME_MAX_LEN }, theirs;
	size_t len = NAME_MAX_LEN;

	load(with->library);
	struct fi_info *info = find(with->provider, &me->rma);
	if (!info)
		return 0;
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .size = info->tx_attr->size + info->rx_attr->size };
	struct fi_av_attr attr = { .type = info->domain_attr->av_type };

	me->largest = with->largest < 4096 ? 4096 : with->largest;
	me->inject_size = info->tx_attr->inject_size;
	must("fi_fabric", lib.fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	share_memory(me, domain, info, &mine);
	must("fi_cq_open", fi_cq_open(domain, &cq, &me->cq, NULL));
	must("fi_av_open", fi_av_open(domain, &attr, &av, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &me->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(me->ep, &av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(me->ep, &me->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(me->ep));
	must("fi_getname", fi_getname(&me->ep->fid, mine.name, &len));
	exchange(me, &mine, &theirs, sizeof(mine));
	if (fi_av_insert(av, theirs.name, 1, &me->peer, 0, NULL) != 1)
		die("fi_av_insert", FI_EINVAL);
	me->remote_addr = theirs.addr;
	me->remote_key = theirs.key;
	me->shared_addr = theirs.shared_addr;
	me->shared_key = theirs.shared_key;
	return 1;
}

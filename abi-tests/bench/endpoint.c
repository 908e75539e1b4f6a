/* Opens the library by its path, and in it one endpoint that is joined to the other process's. Needs of the library only
 * what every release since 1.3 exports; the rest goes through op tables, as in any C program. */
#define _GNU_SOURCE
#include "bench.h"
#include "die.h"
#include "ends.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *library;
static struct base base;
static struct wish with_queue;

static void load(const char *path)
{
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		DIE("%s", dlerror());
}

static void *function(const char *name)
{
	void *found = dlsym(library, name);
	if (!found)
		DIE("not a libfabric.so.1: there is no %s", name);
	return found;
}

/* What is called by name, here and in support/ends.c, is the opened library's. */
#define ITS(name) ((__typeof__(&name))function(#name))
uint32_t fi_version(void) { return ITS(fi_version)(); }
const char *fi_strerror(int code) { return ITS(fi_strerror)(code); }
struct fi_info *fi_dupinfo(const struct fi_info *info) { return ITS(fi_dupinfo)(info); }
void fi_freeinfo(struct fi_info *info) { ITS(fi_freeinfo)(info); }
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return ITS(fi_fabric)(attr, fabric, context);
}
int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
	       struct fi_info **info)
{
	return ITS(fi_getinfo)(version, node, service, flags, hints, info);
}

/* What an MPI asks for: tagged messages, mostly one thread, progress by the caller; RMA where it can be had. */
static struct fi_info *find_most(const struct settings *with, int *rma)
{
	struct wish wish = { .provider = with->provider, .mode = CONTEXTS, .progress = FI_PROGRESS_MANUAL,
			     .threading = with->thread_safe ? FI_THREAD_SAFE : FI_THREAD_DOMAIN,
			     .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR };
	struct fi_info *info;

	if (with->hosts[0])
		wish.node = ""; /* where the other host reaches it, which is not this one's loopback */
	for (*rma = 2; *rma >= 0; --*rma) {
		wish.caps = FI_MSG | FI_TAGGED | (*rma ? FI_RMA : 0) | (*rma > 1 ? FI_ATOMIC : 0);
		if (!look_for(&wish, &info))
			return info;
	}
	return NULL;
}

struct about {
	struct name name;
	uint64_t addr, key;
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
	OK(fi_mr_reg(domain, me->tx, len, access, 0, 1, 0, &mr, NULL));
	me->desc = fi_mr_desc(mr);
	mine->key = fi_mr_key(mr);
	mine->addr = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)me->tx : 0) + me->largest;
	if (!me->rma)
		return;
	me->shared = shareable(me->largest);
	OK(fi_mr_reg(domain, me->shared, me->largest, access, 0, 2, 0, &mr, NULL));
	mine->shared_key = fi_mr_key(mr);
	mine->shared_addr = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)me->shared : 0;
}

static struct fi_context2 *new_contexts(void)
{
	struct fi_context2 *contexts = calloc(2 * BURST, sizeof(*contexts));

	MUST(contexts);
	return contexts;
}

static int open_one(struct side *me, const struct settings *with, struct about *mine)
{
	struct end end = { 0 };
	double start = now();

	/* Where Yama lets only parents reach a process's memory, the others shall too. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	load(with->library);
	struct fi_info *info = find_most(with, &me->rma);
	if (!info)
		return 0;
	with_queue.cq_size = info->tx_attr->size + info->rx_attr->size;
	me->largest = with->largest < 4096 ? 4096 : with->largest;
	me->inject_size = info->tx_attr->inject_size;
	open_base(&base, info);
	open_end(&end, &base, &with_queue);
	me->opened = now() - start;
	share_memory(me, base.domain, info, mine);
	me->ep = end.ep;
	me->cq = end.cq;
	me->contexts = new_contexts();
	mine->name = end.name;
	return 1;
}

/* 0 if the library has no such provider. */
int fabric_open(struct side *me, const struct settings *with)
{
	struct about mine = { 0 }, theirs;

	if (!open_one(me, with, &mine))
		return 0;
	exchange(me, &mine, &theirs, sizeof(mine));
	me->peer = meet_peer(&theirs.name);
	me->remote_addr = theirs.addr;
	me->remote_key = theirs.key;
	me->shared_addr = theirs.shared_addr;
	me->shared_key = theirs.shared_key;
	return 1;
}

int open_alone(struct side *me, const struct settings *with, struct name *mine)
{
	struct about about = { 0 };
	int there = open_one(me, with, &about);

	*mine = about.name;
	return there;
}

uint64_t meet_peer(const struct name *theirs)
{
	return know(base.av, theirs);
}

static struct fid_cntr *new_counter(struct fid_ep *ep, uint64_t of)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };
	struct fid_cntr *counter;

	OK(fi_cntr_open(base.domain, &attr, &counter, NULL));
	OK(fi_ep_bind(ep, &counter->fid, of));
	return counter;
}

/* An endpoint without a queue. */
static struct name open_counted(struct side *one)
{
	one->cq = NULL;
	OK(fi_endpoint(base.domain, base.info, &one->ep, NULL));
	OK(fi_ep_bind(one->ep, &base.av->fid, 0));
	one->sends = new_counter(one->ep, FI_SEND);
	one->receives = new_counter(one->ep, FI_RECV);
	return enable(one->ep);
}

static struct name open_with_queue(struct side *one, enum kind kind)
{
	struct wish wish = with_queue;
	struct end end = { 0 };

	wish.cq_wait = kind == SLEEPING ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
	open_end(&end, &base, &wish);
	one->ep = end.ep;
	one->cq = end.cq;
	return end.name;
}

struct side another_pair(struct side *me, enum kind kind)
{
	struct side one = *me;
	struct name mine = kind == COUNTED ? open_counted(&one) : open_with_queue(&one, kind), theirs;

	one.sent = one.received = 0;
	one.contexts = new_contexts();
	exchange(me, &mine, &theirs, sizeof(theirs));
	one.peer = meet_peer(&theirs);
	return one;
}

struct side another_peer(struct side *me)
{
	struct side one = *me;

	one.ep = new_ep(&base, base.av, me->cq);
	enable(one.ep);
	return one;
}

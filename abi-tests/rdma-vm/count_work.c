/*
 * Loaded in front of a program (LD_PRELOAD), it counts what the program's libraries ask of RDMA devices. Posts and polls go
 * through a table of each opened device, which is replaced when a device is opened; registrations are calls by name,
 * linked or looked up. So libraries of both kinds are counted alike. `counted` tells.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include "count_work.h"

static struct {
	atomic_ulong requests, doorbells, inlined, receives, completions, registrations;
} counts;

/* The library's own, whoever has opened it. */
#define REAL(name) ((__typeof__(&name)) theirs(dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD), #name))

static void *theirs(void *handle, const char *name)
{
	static void *(*found)(void *, const char *);

	if (!found)
		found = (void *(*)(void *, const char *)) dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	return found(handle, name);
}

struct counted counted(void)
{
	return (struct counted) { counts.requests, counts.doorbells, counts.inlined, counts.receives, counts.completions,
				  counts.registrations };
}

/* Of the one kind of device that there is. */
static struct ibv_context_ops real;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *wr;

	counts.doorbells++;
	for (wr = list; wr; wr = wr->next) {
		counts.requests++;
		counts.inlined += !!(wr->send_flags & IBV_SEND_INLINE);
	}
	return real.post_send(qp, list, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *list, struct ibv_recv_wr **bad)
{
	struct ibv_recv_wr *wr;

	for (wr = list; wr; wr = wr->next)
		counts.receives++;
	return real.post_recv(qp, list, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *list, struct ibv_recv_wr **bad)
{
	struct ibv_recv_wr *wr;

	for (wr = list; wr; wr = wr->next)
		counts.receives++;
	return real.post_srq_recv(srq, list, bad);
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	int found = real.poll_cq(cq, room, wc);

	if (found > 0)
		counts.completions += (unsigned long) found;
	return found;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = REAL(ibv_open_device)(device);

	if (context && context->ops.post_send != post_send) {
		real = context->ops;
		context->ops.post_send = post_send;
		context->ops.post_recv = post_recv;
		context->ops.post_srq_recv = post_srq_recv;
		context->ops.poll_cq = poll_cq;
	}
	return context;
}

/* libibverbs does the one call by the other, which comes by here too: it is one registration. */
static __thread bool registering;

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	counts.registrations++;
	registering = true;
	mr = REAL(ibv_reg_mr)(pd, addr, length, access);
	registering = false;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	counts.registrations += !registering;
	return REAL(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
}

/* A library that opens libibverbs itself looks its calls up there, past what is loaded in front. */
void *dlsym(void *handle, const char *name)
{
	if (handle != RTLD_NEXT && !strcmp(name, "ibv_reg_mr"))
		return ibv_reg_mr;
	if (handle != RTLD_NEXT && !strcmp(name, "ibv_reg_mr_iova2"))
		return ibv_reg_mr_iova2;
	return theirs(handle, name);
}

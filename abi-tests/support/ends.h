/*
 * How all programs here open endpoints and close them again: a wish, what the provider offers for it, and the steps from
 * there to an endpoint with a name. A step that fails ends the program (die.h). What one program alone wants, it does
 * between the steps.
 */
#ifndef ENDS_H
#define ENDS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_MAX_LEN 512
/* A mode: the context of each operation is a struct fi_context2. */
#define CONTEXTS (FI_CONTEXT | FI_CONTEXT2)

/* What a program wants otherwise than usual; all zero is usual: RDM endpoints for messages and tagged messages. */
struct wish {
	const char *provider;        /* NULL: what PROVIDER in the environment says, or shm */
	const char *node;            /* where endpoints are; NULL: usual_node, "": wherever the library thinks */
	const char *service;         /* their port; NULL: any */
	uint32_t version;            /* of the API; 0: the newest that headers and library both know */
	enum fi_ep_type ep_type;     /* 0: FI_EP_RDM */
	uint64_t caps;               /* instead of FI_MSG | FI_TAGGED */
	uint64_t mode, msg_order;
	int mr_mode;
	enum fi_threading threading;
	enum fi_progress progress;
	size_t rx_ctx_cnt, tx_ctx_cnt;
	enum fi_cq_format cq_format; /* UNSPEC: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj cq_wait;
	size_t cq_size;
};

/* Bytes, as fi_getname gives them: what they are depends on the provider. Fit to be written to another process. */
struct name {
	size_t len;
	char bytes[NAME_MAX_LEN];
};

/* What endpoints are opened in. */
struct base {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
};

struct end {
	struct fid_av *av; /* NULL: the base's */
	struct fid_cq *cq; /* for all that ends */
	struct fid_ep *ep;
	struct name name;
	fi_addr_t addr;    /* for who wants to keep what `know` gave for the name */
};

uint32_t api_version(void);
/* An address of provider auto, as a string of this length: of an endpoint that is called so, and is at this place of IPv4. */
enum { AUTO_NAME_LEN = 47 };
void auto_name(char name[AUTO_NAME_LEN + 1], uint64_t number, uint32_t ip, uint16_t port);
/* The node that a provider is asked with: those that speak IP stay on the loopback interface. NULL for others. */
const char *usual_node(const char *provider);
struct fi_info *hints_of(const struct wish *wish);
/* What is offered, or an errno. */
int look_for(const struct wish *wish, struct fi_info **info);
/* What is offered, for nothing else will do. */
struct fi_info *find(const struct wish *wish);

/* Takes the info for its own. */
void open_base(struct base *base, struct fi_info *info);
struct fid_av *new_av(const struct base *base);
struct fid_cq *new_cq(const struct base *base, const struct wish *wish);
/* Bound, and not enabled. */
struct fid_ep *new_ep(const struct base *base, struct fid_av *av, struct fid_cq *cq);
/* Enabled; what it is called now. */
struct name enable(struct fid_ep *ep);
/* A queue, an endpoint and its name in one. */
void open_end(struct end *end, const struct base *base, const struct wish *wish);
/* A name for fi_setname, known before the endpoint is there: all children of one process have the same for a number. */
struct name chosen_name(const struct base *base, unsigned number);
/* Inserts it: the address that the vector has for it. */
fi_addr_t know(struct fid_av *av, const struct name *name);

/* Closes an object of any kind, with 0 as its answer. Nothing for NULL. */
void shut(void *object);
/* Close whatever is open. */
void close_end(struct end *end);
void close_base(struct base *base);

#endif

/*
 * A bed of connected endpoints (FI_EP_MSG) in one process: a passive endpoint that listens, an event queue for all, and
 * the endpoints as the sides of a bed, each with queues of its own. Nothing here looks behind the public headers.
 */
#ifndef CONNECTED_SUPPORT_H
#define CONNECTED_SUPPORT_H

#include "fabric.h"

#define CM_ROOM 4096 /* more than any provider's connection data */

struct wired {
	struct bed bed;
	struct fid_eq *eq;
	struct fid_pep *pep;
	char name[NAME_MAX_LEN]; /* the passive endpoint's */
	size_t name_len;
	uint64_t tx_flags;       /* FI_SELECTIVE_COMPLETION for the queues of sends that are given from now on */
	/* Binds to an endpoint, before it is enabled, what else a case wants. */
	void (*bind)(struct wired *w, struct fid_ep *ep, int side);
	size_t data_size;        /* FI_OPT_CM_DATA_SIZE of the passive endpoint */
};

/* An event of a connection. */
struct heard {
	uint32_t event;
	fid_t fid;
	struct fi_info *info;
	size_t len;
	char data[CM_ROOM];
};

/* As setup, but connected endpoints for messages. A provider without them has nothing to ask here. */
struct setup connected(const struct setup *s);
/* Fabric, domain and event queue. */
void open_wires(struct wired *w, const struct setup *s);
/* The same, and a passive endpoint that listens. */
void open_exchange(struct wired *w, const struct setup *s);
struct fid_pep *new_pep(struct wired *w, struct fi_info *info, void *context); /* bound to the event queue */
void learn_pep(struct wired *w);

/* Opens the endpoint of a side, with its queues, for an info of fi_getinfo or of an event; not enabled. */
struct fid_ep *open_side(struct wired *w, int side, struct fi_info *info);
void give_queues(struct wired *w, int side);
/* Asks the passive endpoint for a connection. */
void ask(struct wired *w, int side, const void *data, size_t len);

/* Lets everybody do what they can, once. */
void turn(struct wired *w);
/* The next event, an errno of fi_eq_read, or -FI_ETIMEDOUT. */
ssize_t hear(struct wired *w, struct fid_eq *eq, struct heard *heard);
/* The next event, which must be this one. */
struct heard hear_this(struct wired *w, uint32_t event, fid_t fid, int line);
#define HEAR(w, event, fid) hear_this(w, event, fid, __LINE__)
/* The next event, which must be an error about this fid. Its data in `data`, if that is not NULL. */
struct fi_eq_err_entry hear_error(struct wired *w, fid_t fid, void *data, size_t *len, int line);
#define HEAR_ERROR(w, fid, data, len) hear_error(w, fid, data, len, __LINE__)
/* No event, however often asked, but FI_SHUTDOWN of an endpoint that shut itself down, which is a provider's choice. */
void silence(struct wired *w, fid_t but, int line);
#define SILENCE(w, but) silence(w, but, __LINE__)

/* Connects two sides, from the first to the passive endpoint and its answer in the second. */
void join_sides(struct wired *w, int asks, int answers);
/* One message from side to side, to keep later cases honest. */
void talk(struct wired *w, int from, int to);
/* Ends what a side has under way: each of these contexts must end once, in error. */
void all_fail(struct wired *w, struct fid_cq *cq, int first, int count, int line);
#define ALL_FAIL(w, cq, first, count) all_fail(w, cq, first, count, __LINE__)

void close_side(struct wired *w, int side);
/* Closes whatever is open, each with 0 as its answer. */
void close_wires(struct wired *w);

#endif

/*
 * fi_collective(3): groups of processes, each with one endpoint, and what every member gets, element by element.
 * The first member is the case's own process; what they share besides the fabric is a page of memory.
 */
#ifndef COLLECTIVE_H
#define COLLECTIVE_H

#include <rdma/fi_collective.h>
#include "fabric.h"

enum { MOST = 5, LARGE = 70000 };

/* What the processes of a group have in common. */
extern struct common {
	volatile int here[MOST]; /* how often each has come to `everybody` */
	volatile int entered;    /* barriers that somebody has begun */
	volatile int killed;     /* the member that is, if any */
	size_t name_len[MOST];
	char name[MOST][NAME_MAX_LEN];
	double bits[MOST][64];
} *common;

/* One member's view. */
extern struct bed bed;
extern struct fid_eq *eq;
extern fi_addr_t addr[MOST];
extern int me, members;

/* What kind of endpoint each member has, in turn; all zero is plain endpoints. */
enum kind { PLAIN, SHARES, CONTEXT }; /* one with a shared receive context, a transmit context of a scalable one */
extern enum kind kinds[MOST];
extern struct fid_ep *srx, *whole, *other_context, *rx_context;

extern const struct setup usual;

/* ---- members ---- */

/* Runs the body in so many processes; the second in groups of several sizes. */
void in_group(int count, const struct setup *setup, void (*body)(void));
void in_groups(void (*body)(void));
/* Waits until all members have come here, making progress meanwhile. */
void everybody(void);
/* The first one waits for the other processes, all of which must have ended well. */
void others_ended(void);
void open_member(const struct setup *setup);
void close_one(struct fid_ep **ep);

/* ---- groups ---- */

extern struct fid_av_set *world_set;
extern struct fid_mc *world;

struct fid_av_set *set_of(const int *ranks, int count, uint64_t flags);
struct fid_av_set *set_of_all(void);
fi_addr_t set_addr(struct fid_av_set *set);
/* The next event; none is an error. */
uint32_t next_event(struct fi_eq_entry *entry);
struct fid_mc *begin_join(struct fid_av_set *set, fi_addr_t coll_addr, void *context);
struct fid_mc *join(struct fid_av_set *set, fi_addr_t coll_addr);
void join_all(void);
void leave_all(void);
/* Waits for one good end. */
void ended(void *context);
bool offered(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op);
void supports(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op);

/* ---- what a member does, whatever kind it is ---- */

/* The collective that the next two are about. */
extern enum fi_collective_op now;
void moves_much(void);
void reduces_much(void);
/* One operation, from asking to looking at every element and behind the last. */
void one(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op, size_t count, int root);

void joins_and_leaves(void);
void groups_of_some(void);
void nobody_ahead(void);
void in_two_groups(void);
void in_pieces(void);
void refused(void);
void without_one(void);
void while_one_sleeps(void);
void asleep(void);

#endif

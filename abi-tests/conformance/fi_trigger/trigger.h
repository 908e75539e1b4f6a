/* fi_trigger(3): operations that start when a counter has come so far. */
#ifndef TRIGGER_H
#define TRIGGER_H

#include "remote.h"
#include <rdma/fi_trigger.h>

#define SIZE 4096
#define FAMILIES (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

static const struct setup usual = { .caps = FAMILIES | FI_TRIGGER };
extern char here[SIZE], there[SIZE];
extern struct iovec iov_here, iov_there;

/* One bed for a case: two sides, what waits (trigger) and what counts ends (done). */
extern struct bed bed;
extern struct fid_ep *ep, *other;
extern struct fid_cntr *trigger, *done;
/* Memory of side 1's, for cases that expose some. */
extern struct window w;

struct fid_cntr *counter(void);
void begin(void);
void begin_with(const struct setup *setup);
void end(void);
int queue(struct fi_deferred_work *work);

/* Submits work, or skips the case where the provider has no deferred work. */
#define QUEUE(work)                                                                            \
	do {                                                                                   \
		int queued_ = queue(work);                                                     \
		NEED(!lacking(queued_), "FI_QUEUE_WORK: %s", fi_strerror(-queued_));           \
		CHECK(queued_ == 0, "FI_QUEUE_WORK: %d (%s)", queued_, fi_strerror(-queued_)); \
	} while (0)

/* Cancelling is known from the page, but no C provider of today has all of it. */
#define CONTROL(command, arg)                                                                  \
	do {                                                                                   \
		int told_ = fi_control(&bed.domain->fid, command, arg);                        \
		NEED(!lacking(told_) && told_ != -FI_EINVAL, #command ": %s", fi_strerror(-told_)); \
		CHECK(told_ == 0, #command ": %d (%s)", told_, fi_strerror(-told_));           \
	} while (0)

/* The counter shows the value; nothing else is called. */
#define BECOMES(cntr, value)                                                                   \
	do {                                                                                   \
		long end_ = now_ms() + GIVE_UP_MS;                                             \
		while (fi_cntr_read(cntr) != (uint64_t) (value) && now_ms() < end_)            \
			;                                                                      \
		CHECK(fi_cntr_read(cntr) == (uint64_t) (value), "%s is %llu, not %llu", #cntr, \
		      (unsigned long long) fi_cntr_read(cntr), (unsigned long long) (value));  \
	} while (0)

/* It keeps the value, whatever is done meanwhile. */
#define STAYS(cntr, value)                                                                     \
	do {                                                                                   \
		settle(&bed);                                                                  \
		CHECK(fi_cntr_read(cntr) == (uint64_t) (value), "%s is %llu, not %llu", #cntr, \
		      (unsigned long long) fi_cntr_read(cntr), (unsigned long long) (value));  \
	} while (0)

/* ---- descriptions ---- */

/* Work of this type, when `trigger` has come so far. */
struct fi_deferred_work on(uint64_t threshold, enum fi_op_type type);

struct count {
	struct fi_deferred_work work;
	struct fi_op_cntr op;
};
void set_up(struct count *count, uint64_t threshold, enum fi_op_type type, struct fid_cntr *cntr, uint64_t value);

/* Transfers, whose ends `done` counts; what is unusual about one, its case says afterwards. */
struct message {
	struct fi_deferred_work work;
	struct fi_op_msg op;
};
void set_up_message(struct message *message, uint64_t threshold, enum fi_op_type type, struct fid_ep *by, struct iovec *iov,
		    fi_addr_t addr);

struct tagged {
	struct fi_deferred_work work;
	struct fi_op_tagged op;
};
void set_up_tagged(struct tagged *tagged, uint64_t threshold, enum fi_op_type type, struct fid_ep *by, struct iovec *iov,
		   fi_addr_t addr);

/* Side 0's, at the beginning of the window. */
struct rma {
	struct fi_deferred_work work;
	struct fi_op_rma op;
	struct fi_rma_iov remote;
};
void set_up_rma(struct rma *rma, uint64_t threshold, enum fi_op_type type, struct iovec *iov);

/* Nothing was told to the queues. */
void silence(void);

#endif

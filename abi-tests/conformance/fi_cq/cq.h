/* fi_cq(3): completion queues. */
#ifndef CQ_H
#define CQ_H

#include "fabric.h"

static const struct setup usual;
extern char in[1024], out[1024];

/* The flag of its messages. */
uint64_t kind(void);
/* Posts one message from side 0 to side 1, and waits for neither end. */
void start(struct bed *bed, uint64_t tag, size_t len, int rx, int tx);
/* Waits, by a means that takes nothing out of the queue under test, until side 0 knows that its sends have ended. */
void sent(struct bed *bed, int tx);
/* Side 1 of these beds does not know side 0. */
void open_one_way(struct bed *bed, uint64_t caps);
/* An error completion for side 1: a receive with tag 9 that is cancelled. */
void cancel_one(struct bed *bed, int number);
void open_waiting(struct bed *bed, enum fi_wait_obj wait);

#endif

/* The connection between two stations whose endpoints are of FI_EP_MSG, made in each one's process, and its events. */
#ifndef CALLS_H
#define CALLS_H

#include "stations.h"

/* Host 1's listens and says its name, host 2's asks; both return when they are connected. */
void open_connected_end(struct end *end, struct station *me, const struct base *base, const struct wish *wish);
/* How often FI_SHUTDOWN has come since the last time. Any other event is wrong by now. */
uint32_t new_shutdowns(void);
/* Closes whatever is open. */
void close_calls(void);

#endif

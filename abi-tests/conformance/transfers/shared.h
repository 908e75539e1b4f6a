/* What the files of this folder share. */
#ifndef SHARED_H
#define SHARED_H

#include "transfers.h"

#define TAG 0x1d
#define BIG ((4u << 20) + 1)

static const struct setup usual;
extern char in[BIG + 64], out[BIG + 64];

void send_to(struct bed *bed, int from, int to, const void *buf, size_t len, void *context);
void recv_at(struct bed *bed, int at, void *buf, size_t len, void *context);
/* A send of side 0 and a receive of side 1 have ended well, with so many bytes. */
struct fi_cq_tagged_entry ended(struct bed *bed, void *rx, void *tx, size_t len);
/* Whether the receives of a round are posted before its sends: in some, and always where nobody keeps a message for them. */
bool receives_first(int round);
void need_order(struct bed *bed);

#endif

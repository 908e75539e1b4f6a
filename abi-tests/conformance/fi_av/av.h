/* fi_av(3): address vectors. Sentence by sentence, as far as a sentence can be asked. */
#ifndef AV_H
#define AV_H

#include "fabric.h"

static const struct setup usual;

struct fid_av *open_kind(struct bed *bed, enum fi_av_type type, uint64_t flags);
/* Made-up addresses `first`.. in one buffer. */
void made_up(struct bed *bed, unsigned first, unsigned count, char *names);
/* Whether a lookup found this address. A string may have lost its format's name: lookup_gives_the_address minds that. */
bool is_address(struct bed *bed, const char *found, const char *name);
void is_name(struct fid_av *av, struct bed *bed, fi_addr_t addr, unsigned number);
/* Good, bad, good in one buffer, or the case is skipped. */
void with_a_bad_one(struct bed *bed, char *names);
/* The source that a receive of side 1 from side 0 reports. */
fi_addr_t source_seen(struct bed *bed);

#endif

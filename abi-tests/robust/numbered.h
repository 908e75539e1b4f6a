/* Messages of a crowd that say whose they are, and which: what arrives is one that was sent, whole and unharmed. */
#ifndef NUMBERED_H
#define NUMBERED_H

#include "crowd.h"

/* Stands at the beginning. */
struct header {
	uint32_t from, to, number, len;
};

static uint64_t numbered_seed(const struct header *h)
{
	return (uint64_t) h->from << 56 | (uint64_t) h->to << 48 | h->number;
}

static void write_numbered(char *buf, size_t len, int to, uint32_t number)
{
	struct header h = { (uint32_t) me, (uint32_t) to, number, (uint32_t) len };

	memcpy(buf, &h, sizeof(h));
	scramble(buf + sizeof(h), len - sizeof(h), numbered_seed(&h));
}

/* One to this process, with a number below `numbers`. */
static struct header read_numbered(const char *buf, size_t len, uint32_t numbers)
{
	struct header h;

	if (len < sizeof(h))
		DIE("a message of %zu bytes", len);
	memcpy(&h, buf, sizeof(h));
	if (h.from >= (unsigned) processes || h.len != len || h.to != (unsigned) me || h.number >= numbers)
		DIE("a message from %u to %u, number %u, of %u bytes, not %zu", h.from, h.to, h.number, h.len, len);
	if (!holds(buf + sizeof(h), len - sizeof(h), numbered_seed(&h)))
		DIE("message %u from %u is not what was sent", h.number, h.from);
	return h;
}

#endif

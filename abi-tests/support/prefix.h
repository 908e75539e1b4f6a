/*
 * Some providers of datagrams write a header of theirs in front of each message that they receive (FI_MSG_PREFIX): every
 * receive has room for it, and its completion counts it. Cases know nothing of that: what they post and read goes through
 * here, so that buffers, lengths and limits mean what they mean elsewhere.
 */
#ifndef PREFIX_SUPPORT_H
#define PREFIX_SUPPORT_H

#include "fabric.h"

/* For what is opened in the bed's domain from now on, whoever opens it. Nothing where there is no prefix. */
void hide_prefix(struct bed *bed);

#endif

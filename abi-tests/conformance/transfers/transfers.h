/*
 * Cases that fi_msg(3) and fi_tagged(3) have in common: the page that includes this has them, and says which of the two it
 * asks about.
 */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include "fabric.h"

#endif

/* How long it takes to open all that an endpoint needs, and the first message to go to and fro. */
#include "talk.h"

void opening(struct side *me, const struct settings *with)
{
	if (!wanted(with, "set-up") && !wanted(with, "first-message"))
		return;
	double first = 2 * ping_pong(me, 8, 1);
	if (me->rank != 0)
		return;
	if (wanted(with, "set-up"))
		print_line("set-up", 1, NANOSECONDS, me->opened, me->opened, NULL);
	if (wanted(with, "first-message"))
		print_line("first-message", 8, NANOSECONDS, first, first, NULL);
}

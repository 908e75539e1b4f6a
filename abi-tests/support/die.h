/* How a program that tests ends at the first thing that is not as it should be: it says where, and what. */
#ifndef DIE_H
#define DIE_H

#include <rdma/fi_errno.h>

/* Ends the process; in ends.c. A program of cases has its own, which fails the case (program.c). */
_Noreturn void fail_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Says on stderr what comes before the place. For programs with more to say of themselves: most have none. */
void say_who(void) __attribute__((weak));

#define DIE(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)
/* What must hold. */
#define MUST(condition)                                                                \
	do {                                                                           \
		if (!(condition))                                                      \
			DIE("%s", "not so: " #condition);                              \
	} while (0)
/* A call that must return 0, else it was an errno. */
#define OK(call)                                                                       \
	do {                                                                           \
		long ok_ = (long) (call);                                              \
		if (ok_)                                                               \
			DIE("%s: %ld (%s)", #call, ok_, fi_strerror((int) -ok_));      \
	} while (0)

#endif

/* How a program that tests ends at the first thing that is not as it should be: it says where, and what. */
#ifndef DIE_H
#define DIE_H

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <unistd.h>

/* What is said before the line. A program with more to say of itself has its own. */
#ifndef SAY_WHO
#define SAY_WHO() ((void) 0)
#endif

#define DIE(...)                                                                       \
	do {                                                                           \
		SAY_WHO();                                                             \
		fprintf(stderr, "line %d: ", __LINE__);                                \
		fprintf(stderr, __VA_ARGS__);                                          \
		fprintf(stderr, "\n");                                                 \
		_exit(1);                                                              \
	} while (0)
/* A call that must return 0, else it was an errno. */
#define OK(call)                                                                       \
	do {                                                                           \
		long ok_ = (long) (call);                                              \
		if (ok_)                                                               \
			DIE("%s: %ld (%s)", #call, ok_, fi_strerror((int) -ok_));      \
	} while (0)

#endif

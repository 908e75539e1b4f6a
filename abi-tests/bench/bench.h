/* Shared by the parts of fabric_bench: a process of the pair, and what all measurements need. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MOST_REPETITIONS 1000
#define FEW 16	/* large messages on their way at once */
#define STREAMS 4	/* pairs that send at once */

extern const size_t sizes[];	/* of messages; 0 is the end */

struct fid_ep;
struct fid_cq;
struct fid_mr;

/* The two processes: 0 sends first and measures, 1 answers. */
struct side {
	int rank;
	int peer_fd;	/* a socket to the other process, for all that is not measured */
	struct fid_ep *ep;
	struct fid_cq *cq;
	uint64_t peer;
	char *tx, *rx;
	void *desc;
	size_t inject_size;
	size_t largest;
	/* 1: the endpoint has RMA, 2: and atomics */
	int rma;
	/* of the other: its rx area, and as much memory that processes can share */
	uint64_t remote_addr, remote_key;
	uint64_t shared_addr, shared_key;
	/* completions seen and not yet asked for */
	size_t sent, received;
};

struct settings {
	const char *library, *provider;
	int repetitions;
	double seconds;		/* for one repetition */
	size_t largest;
	const char *only;	/* names of works, or NULL */
};

_Noreturn void die(const char *what, long code);
int wanted(const struct settings *with, const char *name); /* the work of this name */
double now(void);		/* seconds */
void barrier(struct side *me);	/* over the socket */
void exchange(struct side *me, const void *mine, void *theirs, size_t len);

int fabric_open(struct side *me, const struct settings *with);
/* Of `me`, with another endpoint and queue, joined to such a pair of the other process. */
struct side another_pair(struct side *me);
/* Of `me`, with another endpoint of this process. */
struct side another_peer(struct side *me);
void floors(struct side *me, const struct settings *with, void *shared);
void works(struct side *me, const struct settings *with);
void socket_works(struct side *me, const struct settings *with);

/* One round of a work: seconds for `count` operations. Both processes run it. */
typedef double work_round(struct side *me, size_t size, long count);

/* Runs rounds of the length that is set, after some to warm up, and prints: NAME SIZE MEDIAN BEST UNIT. */
enum unit { NANOSECONDS, MILLIONS_PER_SECOND, GIGABYTES_PER_SECOND };
void report(struct side *me, const struct settings *with, const char *name, size_t size, enum unit unit,
	    work_round *round);

#endif

/* Shared by the parts of fabric_bench: a process of the pair, and what all measurements need. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MOST_REPETITIONS 1000
#define FLOOR_BYTES 16384	/* of memory that both processes map, for the floors */
#define WINDOW 64	/* short operations on their way at once */
#define FEW 16		/* large ones */
#define BURST 256	/* as many as a program has without a look at its queue, as MPI's between two fences */
#define COMPUTES 300e-6	/* `computes` of a side that does */
#define STREAMS 4	/* pairs that send at once */

struct fid_cntr;
struct fid_ep;
struct fid_cq;
struct fid_mr;
struct fi_context2;

/* The two processes: 0 sends first and measures, 1 answers. */
struct side {
	int rank;
	int peer_fd;	/* a socket to the other process, for all that is not measured */
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_cntr *sends, *receives;	/* of an endpoint that has no queue */
	struct fi_context2 *contexts;		/* a window of sends and one of receives */
	uint64_t peer;
	int polite;		/* shares its processor with others that it waits for */
	double computes;	/* seconds that it does something else before it looks, and after each look in vain */
	uint64_t ignore;	/* bits of the tag that its receives ignore */
	char *tx, *rx;
	void *desc;
	size_t inject_size;
	size_t largest;
	/* 1: the endpoint has RMA, 2: and atomics */
	int rma;
	/* of the other: its rx area, and as much memory that processes can share */
	uint64_t remote_addr, remote_key;
	uint64_t shared_addr, shared_key;
	char *shared;		/* our own of that kind */
	double opened;		/* seconds it took to open all */
	/* completions seen and not yet asked for */
	size_t sent, received;
};

struct settings {
	const char *library, *provider;
	int repetitions;
	double seconds;		/* for one repetition */
	long operations;	/* in one repetition, instead: to see that all works, not how fast */
	size_t largest;
	const char *only;	/* names of works, or NULL */
	int thread_safe;	/* FI_THREAD_SAFE instead of FI_THREAD_DOMAIN */
	const char *hosts[2];	/* files of network namespaces, one for each of the two processes, or NULL */
};

_Noreturn void die(const char *what, long code);
int wanted(const struct settings *with, const char *name); /* the work of this name */
double now(void);		/* seconds */
void pin(unsigned number);	/* to a processor: as many as there are, in turn */
void barrier(struct side *me);	/* over the socket */
void exchange(struct side *me, const void *mine, void *theirs, size_t len);

/* ---- endpoint.c ---- */

enum kind { PLAIN, SLEEPING /* its queue can be slept on */, COUNTED /* counters, and no queue */ };

/* Opens all that `me` needs; 0 if the library has no such provider. */
int fabric_open(struct side *me, const struct settings *with);
/* Of `me`, with another endpoint and queue, joined to such a pair of the other process. */
struct side another_pair(struct side *me, enum kind kind);
/* Of `me`, with another endpoint of this process. */
struct side another_peer(struct side *me);
struct name;
/* For more processes than two: one endpoint, and its name. `peers` are then known with `meet_peer`. */
int open_alone(struct side *me, const struct settings *with, struct name *mine);
uint64_t meet_peer(const struct name *theirs);

/* ---- works ---- */

/* One round of a work: seconds for `count` operations. Both processes run it. */
typedef double work_round(struct side *me, size_t size, long count);
enum unit { NANOSECONDS, MILLIONS_PER_SECOND, GIGABYTES_PER_SECOND, BYTES };
enum needs { NOTHING, RMA, ATOMICS, CONNECTIONS, THREADS };

struct work {
	const char *name;
	enum unit unit;
	const size_t *sizes;	/* of messages, or how many of whatever it is; ended by 0 */
	work_round *round;
	enum needs needs;
	/* Called before each size. NULL, or why this size and all after it can't be had. */
	const char *(*prepare)(struct side *me, size_t size);
	int counts;		/* its sizes are no bytes */
};

extern const size_t all_sizes[], short_sizes[], long_sizes[], burst_sizes[], fresh_sizes[], eight[];
/* Tables of works, each ended by one without a name. */
extern const struct work messages[], fresh[], steady_windows[], mixed_bursts[], remote_memory[], matching[], counters[], waking[], streaming[], threads[];
void works(struct side *me, const struct settings *with);
void list_works(void);
/* Works of which there is one sample: how long it takes to open all, and what a peer costs in memory. */
void opening(struct side *me, const struct settings *with);
void memory_of_peers(struct side *me, const struct settings *with);
/* Opens so many peers, each of which says one thing and no more. NULL, or why it cannot be done. */
const char *idle_peers(struct side *me, size_t count);

/* One word of each line of the cache, of whole lines: written, and compared, which ends the process if one differs. */
void write_words(char *to, size_t size, uint64_t value);
void check_words(const char *from, size_t size, uint64_t value);

void floors(struct side *me, const struct settings *with, void *shared);
/* What a cache line takes from processor to processor at the moment. Both processes call it. */
double line_now(struct side *me, const struct settings *with);
void socket_works(struct side *me, const struct settings *with);
/* Those of more than two processes, all made here, and ended again. 3: the library has no such provider. */
int many(const struct settings *with);
int wants_many(const struct settings *with);
void list_many(void);

/* Runs rounds of the length that is set, after some to warm up, and prints
 * NAME SIZE MEDIAN BEST UNIT and what a cache line took before and after. */
void report(struct side *me, const struct settings *with, const char *name, size_t size, enum unit unit,
	    work_round *round);
/* Prints such a line, without a cache line for 0. */
void print_line(const char *name, size_t size, enum unit unit, double median, double best, const double *lines);
void print_reason(const char *name, size_t size, const char *why);
int by_value(const void *a, const void *b);	/* doubles, for qsort */

#endif

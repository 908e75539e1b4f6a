/*
 * Several processes that work on one another at random, and a model that says what must come out: the frame of such
 * programs. Each is started as
 *     PROGRAM [PROCESSES [OPERATIONS [SEED [stop]]]]
 * and fails if a process does. With "stop", one process after the other is stopped (SIGSTOP) at a random moment, until all
 * others have gone on for a random while; it fails too if they can't. The same seed makes the same numbers, though not the same order between processes.
 * Built with THREADS, the processes are threads of one, for ThreadSanitizer; what each has of its own is OWN.
 */
#ifndef CROWD_H
#define CROWD_H

#include "die.h"
#include "ends.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef THREADS
#define OWN static _Thread_local
#define OWN_ALL _Thread_local
#else
#define OWN static
#define OWN_ALL
#endif

struct crowd {
	int most;                  /* processes there may be */
	int processes, operations; /* there are, and for each, unless the command line says otherwise */
	size_t shared;             /* bytes that all see, zero at first */
	void (*run)(void);         /* what each process does */
	void (*progress)(void);    /* what it does while it waits */
	/* Whatever ended; errors are never 0. */
	void (*ended)(void *context, int error, size_t len);
};

extern int processes, operations;
extern OWN_ALL int me;
extern OWN_ALL int steps; /* as many as this process has begun */

/* What main calls; `seen_by_all` is where the shared bytes will be. */
int crowd(const struct crowd *plan, void *seen_by_all, int argc, char **argv);

/* Whether this process has operations to begin: as many as were asked for, and until enough processes were stopped. */
bool more_to_do(void);
/* Waits until all processes come here. */
void meet(void);
/* Has the plan's `ended` called for each completion that there is. */
void read_all(struct fid_cq *cq);
/* Messages, remote memory and atomics; and more, if the program says so. */
struct wish wish_for_all(void);

/* A posting call, made again while there is no room for it: what it answers in the end; and one that must be taken. */
#define ANSWER(call)                                                                   \
	({                                                                             \
		ssize_t answer_;                                                       \
		while ((answer_ = (call)) == -FI_EAGAIN)                               \
			go_on();                                                       \
		answer_;                                                               \
	})
#define POST(call) OK(ANSWER(call))
/* Calls the plan's `progress`. */
void go_on(void);

/* Random numbers, and bytes made of one. */
uint64_t rnd(void);
size_t below(size_t most);
void scramble(char *to, size_t len, uint64_t with);
bool holds(const char *bytes, size_t len, uint64_t with);

#endif

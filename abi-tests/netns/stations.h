/*
 * Processes on hosts that stream to one another: a test gives orders and looks at the counts, both in memory that it
 * shares with them. Each stream is numbered messages of many sizes; who receives looks at every byte.
 */
#ifndef STATIONS_H
#define STATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "fabric.h"

#define WINDOW 16 /* sends, and receives, that a station has posted */

enum order {
	STREAM, /* send whatever there is room for */
	DRAIN,  /* send no more, but end what was sent */
	MEET,   /* forget the peer and know it by the name it has now, once for each generation */
	CLOSE,  /* close everything, and end */
};

struct station {
	/* Said before it begins. */
	int host;
	const char *node, *service; /* as struct wish has them */
	int tcp_retries;            /* the host's net.ipv4.tcp_retries2; 0: the system's */
	bool keeps_address;         /* MEET goes on with the address that the vector has */
	bool connected;             /* by FI_EP_MSG: host 2's asks host 1's for the connection, and there is no other */
	struct station *peer;
	pid_t pid;

	/* Said at any time. */
	_Atomic enum order order;
	_Atomic uint32_t generation; /* which stream a message belongs to, from 1; changed together with MEET only */

	/* What it says of itself. */
	struct name name;
	_Atomic bool open, idle; /* idle: told to drain, and no send is under way */
	_Atomic uint32_t met;    /* the generation in which it met its peer; 0: none yet */
	_Atomic uint64_t posted, sent, received;
	_Atomic uint32_t send_errors, receive_errors;
	_Atomic uint32_t receiving; /* receives that are posted */
	_Atomic uint32_t shutdowns; /* FI_SHUTDOWN of the connection */
	_Atomic int error; /* the first */
};

/* The address of all stations, where they are processes of one host (STATIONS_AT); NULL: each has a host of its own. */
const char *all_here(void);
/* From now on this process has the network of that host, its /dev/shm and its view of /sys. */
void enter_host(int host);
/* Where the host's /dev/shm is for who is not there. */
const char *shm_of(int host);
/* Two stations, not yet running, of one stream each way. */
struct station *two_stations(void);
/* Starts its process on its host. */
void begin(struct station *station);
void kill_station(struct station *station, int signal);
/* It was killed: nothing of its process is left. */
void bury(struct station *station);
/* It was told to close: ends well, within the time. */
void ends_well(struct station *station);
/* Told to drain, all that each has sent has come to the other, and nothing failed. Then both close. */
void nothing_is_lost(struct station *a, struct station *b);
/* Whoever ended without being told to fails the case. */
void look_after(struct station *station);
/* Nothing has moved for a while: neither has sent or received. */
void until_still(struct station *a, struct station *b);

/* Runs an `ip` command of the switch's; it must succeed. */
void net(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What must come, if late on a busy machine. */
#define PATIENCE_MS 40000
void nap(void);
/* Until the condition holds. Says what did not come, and what the stations had counted. */
#define UNTIL_SO(a, b, condition)                                                          \
	do {                                                                               \
		long end_ = now_ms() + PATIENCE_MS;                                        \
		while (!(condition)) {                                                     \
			look_after(a);                                                     \
			look_after(b);                                                     \
			CHECK(now_ms() < end_, "not so after %d s: %s (%s)", PATIENCE_MS / 1000, #condition, counts(a, b)); \
			nap();                                                             \
		}                                                                          \
	} while (0)
const char *counts(const struct station *a, const struct station *b);

#endif

/*
 * What the programs of abi-tests/conformance share: a bed of endpoints in one process (or one endpoint in each of two),
 * transfers that wait with a deadline and never sleep, and the words for a feature that a provider may leave out.
 * Nothing here looks behind the public headers, so that the same program judges any libfabric.so.1.
 */
#ifndef FABRIC_SUPPORT_H
#define FABRIC_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "cases.h"
#include "ends.h"
#include "messages.h"

#define SIDES 8       /* endpoints a bed may have */
/* When a completion counts as missing: what is promised comes, if late on a busy machine. */
#define GIVE_UP_MS (strict || patient ? 40000 : 8000)

/* What the headers of 1.17 do not have. */
#define HEADERS_2 (FI_MAJOR_VERSION >= 2)

/* ---- the program: PROVIDER [--strict] [--patient] [--connected | --datagram] [--without=CASE,...] [CASE ...] ---- */

struct test {
	const char *name;
	void (*body)(void);
};

extern const char *provider;
extern bool strict;
/* Skips what strict fails, but waits as long: on machines that are very slow. */
extern bool patient;
/* Endpoints are of FI_EP_MSG: side 0 is connected with side 1, and in two processes each with the other's. */
extern bool connected_ends;
/* Endpoints are of FI_EP_DGRAM: what finds no receive, or too short a one, is lost, and so are messages when it is crowded. */
extern bool datagram_ends;
/* Said by cases in which a message has no receive yet, or too short a one, and something must come of it. */
#define NOTHING_IS_LOST                                                              \
	do {                                                                         \
		if (datagram_ends)                                                   \
			WITHOUT_MEANING("a datagram that no receive has room for is lost"); \
	} while (0)
/* Said by cases that name endpoints by address, or open them one by one, which has no meaning for connected ones. */
#define BY_ADDRESS                                                                   \
	do {                                                                         \
		if (connected_ends)                                                  \
			WITHOUT_MEANING("a connected endpoint has one peer, and no address names it"); \
	} while (0)

/* Said by cases that name endpoints as people do, once their bed is open. */
#define BY_NAME(bed)                                                                 \
	do {                                                                         \
		if ((bed)->info->addr_format == FI_ADDR_IB_UD)                       \
			WITHOUT_MEANING("queue pairs have no names but their addresses"); \
	} while (0)

/* Said by cases in which a program that owes its peers answers calls nothing more. A card takes so many of them at a time,
 * and the others go when its provider is called again. */
#define ANSWERS_LEAVE_AT_ONCE                                                        \
	do {                                                                         \
		if (strcmp(provider, "shm") && strcmp(provider, "tcp") && !access("/sys/class/infiniband", F_OK)) \
			WITHOUT_MEANING("a card must be looked at again");           \
	} while (0)

/* Ends each file that has cases: a program has those of all its files, and runs the ones named or all but `--without`. */
void add_cases(const struct test *tests, size_t count);
#define CASES(tests)                                                                 \
	__attribute__((constructor)) static void add_these_cases(void)               \
	{                                                                            \
		add_cases(tests, sizeof(tests) / sizeof(*tests));                    \
	}
#define TEST(name) { #name, name }

/* A feature that the API leaves to the provider: without it the case is skipped, but fails where it is promised. */
#define NEED(condition, ...)                                                         \
	do {                                                                         \
		if (!(condition)) {                                                  \
			if (strict)                                                  \
				CHECK(0, "promised: " __VA_ARGS__);                  \
			SKIP(__VA_ARGS__);                                           \
		}                                                                    \
	} while (0)

/* A question that has no meaning for such a provider: it is not counted at all. */
#define WITHOUT_MEANING(...)                                                         \
	do {                                                                         \
		printf("none %s: ", case_name);                                      \
		printf(__VA_ARGS__);                                                 \
		printf("\n");                                                        \
		fflush(stdout);                                                      \
		_exit(0);                                                            \
	} while (0)

/* A call that returns an errno, and must succeed. */
#define OK(call)                                                                     \
	do {                                                                         \
		long ok_ = (long) (call);                                            \
		CHECK(ok_ == 0, "%s: %ld (%s)", #call, ok_, fi_strerror((int) -ok_)); \
	} while (0)

/* A call whose result is documented. */
#define GIVES(wanted, call)                                                          \
	do {                                                                         \
		long gives_ = (long) (call);                                         \
		CHECK(gives_ == (long) (wanted), "%s: %ld, not %ld (%s)", #call, gives_, (long) (wanted), #wanted); \
	} while (0)

/* A call that must fail; the page does not say how. */
#define FAILS(call)                                                                  \
	do {                                                                         \
		long fails_ = (long) (call);                                         \
		CHECK(fails_ < 0, "%s: %ld, but it must fail", #call, fails_);       \
	} while (0)

/* ---- the bed ---- */

/* What a test wants otherwise than usual; all zero is usual: two RDM endpoints for messages,
 * and for tagged messages where the provider has them. */
struct bed;
struct setup {
	uint32_t version;              /* of the API; 0: the newest that headers and library both know */
	enum fi_ep_type ep_type;       /* 0: the usual one */
	uint32_t addr_format;          /* 0: the provider's choice */
	uint64_t caps;                 /* instead of FI_MSG | FI_TAGGED: then all of it must be there */
	uint64_t more_caps;            /* besides them */
	uint64_t tx_flags, rx_flags;   /* default operation flags */
	uint64_t tx_bind, rx_bind;     /* besides FI_TRANSMIT and FI_RECV */
	uint64_t domain_caps;
	enum fi_av_type av_type;
	uint64_t av_flags;
	int rx_ctx_bits;
	enum fi_cq_format format;      /* UNSPEC: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait_obj;     /* UNSPEC cannot be told from unset: say any_wait */
	bool any_wait;
	enum fi_cq_wait_cond wait_cond;
	size_t cq_size;
	enum fi_progress progress;
	enum fi_threading threading;
	enum fi_resource_mgmt resource_mgmt;
	size_t rx_ctx_cnt, tx_ctx_cnt; /* contexts of the endpoint attributes; open_bed opens the shared receive context */
	size_t auth_key_size;          /* of the domain */
	int sides;                     /* endpoints; 0: two */
	bool strangers;                /* leave the AV empty */
	int mr_added;                  /* mr_mode bits put into the answer, though the provider can do without them */
	void (*bind)(struct bed *bed, int side); /* binds or sets more, before open_bed enables the side */
};

struct side {
	struct fid_ep *ep;
	struct fid_cq *tx, *rx;
	fi_addr_t addr;
	char name[NAME_MAX_LEN]; /* as fi_getname gives it */
	size_t name_len;
};

struct bed {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct side side[SIDES];
	int sides;
	fi_addr_t peer; /* the other process's endpoint */
	struct fid_ep *srx; /* what all endpoints share, if they do */
	struct fid_eq *eq;  /* of connected endpoints */
	struct fid_mr *mine; /* all static memory, where the provider asks for registered memory (FI_MR_LOCAL) */
};

/* Of the endpoints of a case that asks for none of its own. */
enum fi_ep_type usual_type(void);
uint64_t usual_caps(void);
struct fi_info *hints_for(const struct setup *setup);
/* fi_getinfo with the provider's usual node; the answer's errno. */
int get_info(uint32_t version, struct fi_info *hints, struct fi_info **info);

/* What is offered for it, without tagged messages if they do not matter; the answer's errno. */
int find_info(const struct setup *setup, struct fi_info **info);

/* Each opens what the one before it does, and more. */
void open_info(struct bed *bed, const struct setup *setup);
void open_domain(struct bed *bed, const struct setup *setup);
void open_av(struct bed *bed, const struct setup *setup);
/* Endpoints bound but not enabled: not connected ones, of which one must be enabled before the other can be opened. */
void open_sides(struct bed *bed, const struct setup *setup);
/* One of them, of a side's own info. */
void open_bed_side(struct bed *bed, const struct setup *setup, int at, struct fi_info *info);
void open_bed(struct bed *bed, const struct setup *setup);
/* The second half of open_bed: enables all, then learns and inserts their names. */
void enable_sides(struct bed *bed, const struct setup *setup);
/* Closes whatever is open, each with 0 as its answer. What is bound to endpoints can be closed only after them: the first
 * two leave the rest of the bed. */
void close_ep(struct side *side);
void close_eps(struct bed *bed);
void close_bed(struct bed *bed);

/* open_domain with FI_RMA where the provider has it: regions are made either way. */
void open_domain_for_regions(struct bed *bed);
int open_cq(struct bed *bed, const struct setup *setup, struct fid_cq **cq, void *context);
/* Opens what a passive endpoint needs, makes it and lets it listen. Its name is in `name`. */
struct fid_pep *listen_for(struct bed *bed, char *name, size_t *len);
/* Opens the endpoint of a side and connects it, to the one at `name`, or for the next request that comes. */
void call_side(struct bed *bed, const struct setup *setup, int side, const char *name);
void answer_side(struct bed *bed, const struct setup *setup, int side);
/* Until both sides, or the only one, have heard that they are connected. */
void until_connected(struct bed *bed);

/* ---- names (names.c) ---- */

/* Asks a side's endpoint for its name. */
void learn_name(struct side *side);
/* Inserts the names of `count` sides that begin at `first` in one call; the call's result. */
int insert_sides(struct bed *bed, struct fid_av *av, int first, int count, fi_addr_t *addrs, uint64_t flags, void *context);
/* A well-formed string address of this machine, for a provider that has such: the port is for one with a network. */
void string_name(struct bed *bed, char name[NAME_MAX_LEN], const char *what, unsigned number, uint16_t port);
/* An address nobody answers to, well formed; different for each number. Its size is in *len. */
void made_up_name(struct bed *bed, unsigned number, char *name, size_t *len);
/* An address that cannot be inserted, or false where the format has none. */
bool bad_name(struct bed *bed, char *name, size_t *len);
bool is_ip(struct bed *bed);
/* Whether an address of the provider is that of an endpoint on this machine or another. */
bool is_auto(struct bed *bed);
/* A port of this machine that nobody holds. */
uint16_t free_port(void);
/* Puts addresses one behind the other, as the format wants them. */
size_t pack(struct bed *bed, char *to, const char *name, size_t len);

/* ---- two processes ---- */

/* From now on this process runs on the first processor that it may run on, as others that call this do. */
void share_a_processor(void);
/* Runs the body in two processes, which number themselves 0 and 1; each has a bed with one endpoint of its own. */
void in_two(const struct setup *setup, void (*body)(struct bed *bed, int me, int pipe));
void pipe_send(int fd, const void *buf, size_t len);
void pipe_recv(int fd, void *buf, size_t len);
/* Waits until the other process comes here too, making progress meanwhile. */
void meet(struct bed *bed, int pipe);
/* `meet` when one has posted the receive of what the other is about to send, if it were lost otherwise. */
void meet_posted(struct bed *bed, int pipe);

/* ---- transfers (waits.c) ---- */

long now_ms(void);
/* A context for an operation: big enough for every mode. */
struct fi_context2 *ctx(int number);
void progress(struct bed *bed);
/* Gives both sides many chances to do what they might do. */
void settle(struct bed *bed);
/* One entry, -FI_EAVAIL, or -FI_ETIMEDOUT. */
ssize_t next(struct bed *bed, struct fid_cq *cq, void *entry);
/* One good completion, of this context. */
struct fi_cq_tagged_entry completion(struct bed *bed, struct fid_cq *cq, void *context, int line);
#define COMPLETION(bed, cq, context) completion(bed, cq, context, __LINE__)
/* One error completion. */
struct fi_cq_err_entry error_completion(struct bed *bed, struct fid_cq *cq, int line);
#define ERROR_COMPLETION(bed, cq) error_completion(bed, cq, __LINE__)
/* No entry however often asked. */
void no_completion(struct bed *bed, struct fid_cq *cq, int line);
#define NO_COMPLETION(bed, cq) no_completion(bed, cq, __LINE__)

/* A posting call, repeated while it says -FI_EAGAIN. */
#define POST(bed, call)                                                              \
	do {                                                                         \
		long until_ = now_ms() + GIVE_UP_MS;                                 \
		ssize_t post_;                                                       \
		while ((post_ = (call)) == -FI_EAGAIN && now_ms() < until_)          \
			progress(bed);                                               \
		CHECK(post_ == 0, "%s: %zd (%s)", #call, post_, fi_strerror((int) -post_)); \
	} while (0)

/* A posting call of a feature that may be lacking. */
#define TRY(bed, call)                                                               \
	do {                                                                         \
		long until_ = now_ms() + GIVE_UP_MS;                                 \
		ssize_t post_;                                                       \
		while ((post_ = (call)) == -FI_EAGAIN && now_ms() < until_)          \
			progress(bed);                                               \
		NEED(!lacking(post_), "%s: %s", #call, fi_strerror((int) -post_));   \
		CHECK(post_ == 0, "%s: %zd (%s)", #call, post_, fi_strerror((int) -post_)); \
	} while (0)
/* An errno by which a provider says that it does not have something. */
bool lacking(long errno_returned);

/* The length, or that of the longest message if it is shorter. */
size_t at_most(struct bed *bed, size_t len);
void fill(void *buf, size_t len, unsigned seed);
/* The first byte that is not as `fill` left it, or -1. */
long mismatch(const void *buf, size_t len, unsigned seed);
#define SAME(buf, len, seed)                                                         \
	CHECK(mismatch(buf, len, seed) < 0, "byte %ld of %zu is wrong", mismatch(buf, len, seed), (size_t) (len))

/* One message from one side to another, expected or not, to keep later cases honest. */
void ping(struct bed *bed, int from, int to);

/* ---- threads (waits.c) ---- */

struct thread_call {
	void *(*body)(void *);
	void *arg;
};
pid_t thread_id(void);
/* Waits until the thread, of whatever process, sleeps in the kernel; not for long where a provider may spin instead. */
void until_asleep(pid_t thread);

#endif

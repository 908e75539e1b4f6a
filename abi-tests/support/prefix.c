/* The calls of a domain, its endpoints and its queues that have to do with the prefix are replaced in their op tables. */
#include "prefix.h"

/* Rooms for prefixes, in turn: more than receives are ever posted at once. */
enum { ROOMS = 8192, LONGEST = 64 };
static char rooms[ROOMS][LONGEST];
static size_t prefix;
static _Atomic size_t next_room;

/* The tables come first, so that an object's table leads to what it replaces. */
struct domain_calls {
	struct fi_ops_domain ours, *theirs;
};
struct message_calls {
	struct fi_ops_msg ours, *theirs;
};
struct queue_calls {
	struct fi_ops_cq ours, *theirs;
	enum fi_cq_format format;
};

static void *remember(size_t size)
{
	void *calls = calloc(1, size);

	CHECK(calls, "no memory");
	return calls;
}

/* A library may know fewer calls than these headers, or more. */
#define COPY(ours, theirs) memcpy(&(ours), theirs, (theirs)->size < sizeof(ours) ? (theirs)->size : sizeof(ours))

/* ---- posting ---- */

static const struct message_calls *messages_of(struct fid_ep *ep)
{
	return (const struct message_calls *) ep->msg;
}

/* The pieces of a receive behind a room for the prefix. */
struct behind {
	struct iovec iov[MOST_PIECES + 1];
	void *descs[MOST_PIECES + 1];
	size_t count;
};

static struct behind behind_a_prefix(const struct iovec *iov, void **given, size_t count)
{
	struct behind all = { .iov[0] = { rooms[next_room++ % ROOMS], prefix }, .descs[0] = desc, .count = 1 };
	size_t i;

	CHECK(count <= MOST_PIECES, "%zu pieces", count);
	for (i = 0; i < count; i++)
		if (iov[i].iov_len) {
			all.descs[all.count] = given ? given[i] : NULL;
			all.iov[all.count++] = iov[i];
		}
	return all;
}

static ssize_t recvmsg_behind(struct fid_ep *ep, const struct fi_msg *given, uint64_t flags)
{
	struct behind all = behind_a_prefix(given->msg_iov, given->desc, given->iov_count);
	struct fi_msg msg = *given;

	msg.msg_iov = all.iov;
	msg.desc = all.descs;
	msg.iov_count = all.count;
	return messages_of(ep)->theirs->recvmsg(ep, &msg, flags);
}

static ssize_t recvv_behind(struct fid_ep *ep, const struct iovec *iov, void **given, size_t count, fi_addr_t from, void *context)
{
	struct behind all = behind_a_prefix(iov, given, count);

	return messages_of(ep)->theirs->recvv(ep, all.iov, all.descs, all.count, from, context);
}

static ssize_t recv_behind(struct fid_ep *ep, void *buf, size_t len, void *descriptor, fi_addr_t from, void *context)
{
	struct iovec iov = { buf, len };

	return recvv_behind(ep, &iov, &descriptor, 1, from, context);
}

/* ---- reading ---- */

static const struct queue_calls *calls_of(struct fid_cq *cq)
{
	return (const struct queue_calls *) cq->ops;
}

/* Completions without what stands in front of the message. */
static ssize_t shortened(struct fid_cq *cq, void *entries, ssize_t count)
{
	size_t size = sizeof(struct fi_cq_tagged_entry);
	ssize_t i;

	switch (calls_of(cq)->format) {
	case FI_CQ_FORMAT_MSG:
		size = sizeof(struct fi_cq_msg_entry);
		break;
	case FI_CQ_FORMAT_DATA:
		size = sizeof(struct fi_cq_data_entry);
		break;
	case FI_CQ_FORMAT_TAGGED:
		break;
	default:
		return count;
	}
	for (i = 0; i < count; i++) {
		struct fi_cq_msg_entry *entry = (void *) ((char *) entries + (size_t) i * size);

		if (!(entry->flags & FI_RECV))
			continue;
		CHECK(entry->len >= prefix, "a message of %zu bytes with a prefix of %zu", entry->len, prefix);
		entry->len -= prefix;
	}
	return count;
}

/* A library may have one of these calls by another: only the outermost shortens. */
static _Thread_local int depth;
#define SHORTENED(cq, buf, call)                                                     \
	do {                                                                         \
		ssize_t ret_;                                                        \
		depth++;                                                             \
		ret_ = calls_of(cq)->theirs->call;                                   \
		return --depth ? ret_ : shortened(cq, buf, ret_);                    \
	} while (0)

static ssize_t read_behind(struct fid_cq *cq, void *buf, size_t count)
{
	SHORTENED(cq, buf, read(cq, buf, count));
}

static ssize_t readfrom_behind(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *from)
{
	SHORTENED(cq, buf, readfrom(cq, buf, count, from));
}

static ssize_t sread_behind(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
{
	SHORTENED(cq, buf, sread(cq, buf, count, cond, timeout));
}

static ssize_t sreadfrom_behind(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *from, const void *cond, int timeout)
{
	SHORTENED(cq, buf, sreadfrom(cq, buf, count, from, cond, timeout));
}

/* ---- opening ---- */

static const struct domain_calls *domain_of(struct fid_domain *domain)
{
	return (const struct domain_calls *) domain->ops;
}

static int open_queue(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context)
{
	int ret = domain_of(domain)->theirs->cq_open(domain, attr, cq, context);
	struct queue_calls *calls;

	if (ret)
		return ret;
	calls = remember(sizeof(*calls));
	calls->theirs = (*cq)->ops;
	calls->format = attr->format;
	COPY(calls->ours, calls->theirs);
	calls->ours.read = read_behind;
	calls->ours.readfrom = readfrom_behind;
	calls->ours.sread = sread_behind;
	calls->ours.sreadfrom = sreadfrom_behind;
	(*cq)->ops = &calls->ours;
	return 0;
}

static int open_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
{
	struct message_calls *calls;
	int ret;

	info->rx_attr->iov_limit++;
	ret = domain_of(domain)->theirs->endpoint(domain, info, ep, context);
	info->rx_attr->iov_limit--;
	if (ret)
		return ret;
	calls = remember(sizeof(*calls));
	calls->theirs = (*ep)->msg;
	COPY(calls->ours, calls->theirs);
	calls->ours.recv = recv_behind;
	calls->ours.recvv = recvv_behind;
	calls->ours.recvmsg = recvmsg_behind;
	(*ep)->msg = &calls->ours;
	return 0;
}

void hide_prefix(struct bed *bed)
{
	struct domain_calls *calls;

	if (!(bed->info->mode & FI_MSG_PREFIX))
		return;
	prefix = bed->info->ep_attr->msg_prefix_size;
	CHECK(prefix && prefix % 8 == 0 && prefix <= LONGEST, "a prefix of %zu bytes", prefix);
	CHECK(!(bed->info->tx_attr->mode & FI_MSG_PREFIX), "nothing here puts a prefix in front of sends");
	CHECK(bed->info->rx_attr->iov_limit > 1, "no piece of memory is left for a prefix");
	bed->info->rx_attr->iov_limit--;
	calls = remember(sizeof(*calls));
	calls->theirs = bed->domain->ops;
	COPY(calls->ours, calls->theirs);
	calls->ours.endpoint = open_endpoint;
	calls->ours.cq_open = open_queue;
	bed->domain->ops = &calls->ours;
}

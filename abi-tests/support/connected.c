#define _GNU_SOURCE
#include <sched.h>
#include "connected.h"

struct setup connected(const struct setup *given)
{
	struct setup s = *given;

	s.ep_type = FI_EP_MSG;
	if (!s.caps)
		s.caps = FI_MSG;
	return s;
}

void open_wires(struct wired *w, const struct setup *given)
{
	struct setup s = connected(given);
	struct fi_eq_attr attr = { .wait_obj = s.any_wait ? FI_WAIT_UNSPEC : s.wait_obj ? s.wait_obj : FI_WAIT_NONE };
	struct fi_info *hints, *info;
	int ret;

	memset(w, 0, sizeof(*w));
	hints = hints_for(&(struct setup) { .ep_type = FI_EP_MSG, .caps = FI_MSG });
	ret = get_info(api_version(), hints, &info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		WITHOUT_MEANING("%s has no connected endpoints", provider);
	fi_freeinfo(info);
	open_domain(&w->bed, &s);
	OK(fi_eq_open(w->bed.fabric, &attr, &w->eq, NULL));
}

struct fid_pep *new_pep(struct wired *w, struct fi_info *info, void *context)
{
	struct fid_pep *pep;

	OK(fi_passive_ep(w->bed.fabric, info, &pep, context));
	OK(fi_pep_bind(pep, &w->eq->fid, 0));
	return pep;
}

void learn_pep(struct wired *w)
{
	size_t len = sizeof(w->data_size);

	w->name_len = sizeof(w->name);
	OK(fi_getname(&w->pep->fid, w->name, &w->name_len));
	CHECK(w->name_len > 0 && w->name_len <= sizeof(w->name), "a name of %zu bytes", w->name_len);
	OK(fi_getopt(&w->pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &w->data_size, &len));
	CHECK(len == sizeof(size_t), "an option of %zu bytes", len);
	CHECK(w->data_size > 0 && w->data_size < CM_ROOM / 2, "connection data of %zu bytes", w->data_size);
}

void open_exchange(struct wired *w, const struct setup *s)
{
	open_wires(w, s);
	w->pep = new_pep(w, w->bed.info, NULL);
	OK(fi_listen(w->pep));
	learn_pep(w);
}

void give_queues(struct wired *w, int at)
{
	struct side *side = &w->bed.side[at];
	struct setup usual = { 0 };

	if (!side->tx) {
		OK(open_cq(&w->bed, &usual, &side->tx, NULL));
		OK(open_cq(&w->bed, &usual, &side->rx, NULL));
	}
	OK(fi_ep_bind(side->ep, &side->tx->fid, FI_TRANSMIT | w->tx_flags));
	OK(fi_ep_bind(side->ep, &side->rx->fid, FI_RECV));
}

struct fid_ep *open_side(struct wired *w, int at, struct fi_info *info)
{
	struct side *side = &w->bed.side[at];

	OK(fi_endpoint(w->bed.domain, info, &side->ep, side));
	OK(fi_ep_bind(side->ep, &w->eq->fid, 0));
	give_queues(w, at);
	if (w->bind)
		w->bind(w, side->ep, at);
	if (w->bed.sides <= at)
		w->bed.sides = at + 1;
	return side->ep;
}

void ask(struct wired *w, int at, const void *data, size_t len)
{
	open_side(w, at, w->bed.info);
	OK(fi_connect(w->bed.side[at].ep, w->name, data, len));
}

void turn(struct wired *w)
{
	int i;

	for (i = 0; i < w->bed.sides; i++) {
		if (w->bed.side[i].tx)
			fi_cq_read(w->bed.side[i].tx, NULL, 0);
		if (w->bed.side[i].rx)
			fi_cq_read(w->bed.side[i].rx, NULL, 0);
	}
}

ssize_t hear(struct wired *w, struct fid_eq *eq, struct heard *heard)
{
	static union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + CM_ROOM];
	} into;
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	while ((ret = fi_eq_read(eq, &heard->event, &into, sizeof(into.room), 0)) == -FI_EAGAIN) {
		turn(w);
		sched_yield();
		if (now_ms() > until)
			return -FI_ETIMEDOUT;
	}
	if (ret < 0)
		return ret;
	CHECK(ret >= (ssize_t) sizeof(struct fi_eq_cm_entry), "an event of %zd bytes", ret);
	heard->fid = into.entry.fid;
	heard->info = into.entry.info;
	heard->len = (size_t) ret - sizeof(struct fi_eq_cm_entry);
	memcpy(heard->data, into.entry.data, heard->len);
	return ret;
}

struct heard hear_this(struct wired *w, uint32_t event, fid_t fid, int line)
{
	struct heard heard;
	ssize_t ret = hear(w, w->eq, &heard);

	if (ret == -FI_EAVAIL) {
		struct fi_eq_err_entry err = { 0 };

		fi_eq_readerr(w->eq, &err, 0);
		CHECK(0, "called at %d: an error event, %d (%s)", line, err.err, fi_strerror(err.err));
	}
	CHECK(ret >= 0, "called at %d: no event: %zd (%s)", line, ret, fi_strerror((int) -ret));
	CHECK(heard.event == event, "called at %d: event %u, not %u", line, heard.event, event);
	CHECK(!fid || heard.fid == fid, "called at %d: the event is about another object", line);
	return heard;
}

struct fi_eq_err_entry hear_error(struct wired *w, fid_t fid, void *data, size_t *len, int line)
{
	static char room[CM_ROOM];
	struct fi_eq_err_entry err = { .err_data = room, .err_data_size = sizeof(room) };
	struct heard heard;
	ssize_t ret = hear(w, w->eq, &heard);

	CHECK(ret == -FI_EAVAIL, "called at %d: no error event: %zd (%s)", line, ret,
	      ret < 0 ? fi_strerror((int) -ret) : "an event");
	ret = fi_eq_readerr(w->eq, &err, 0);
	CHECK(ret == sizeof(err), "called at %d: fi_eq_readerr: %zd", line, ret);
	CHECK(!fid || err.fid == fid, "called at %d: the error is about another object", line);
	CHECK(err.err > 0, "called at %d: errno %d", line, err.err);
	if (data) {
		CHECK(err.err_data_size <= sizeof(room), "called at %d: data of %zu bytes", line, err.err_data_size);
		memcpy(data, err.err_data, err.err_data_size);
		*len = err.err_data_size;
	}
	return err;
}

void silence(struct wired *w, fid_t but, int line)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;
	ssize_t ret;
	int i;

	for (i = 0; i < 300; i++) {
		ret = fi_eq_read(w->eq, &event, &entry, sizeof(entry), 0);
		if (ret >= 0 && event == FI_SHUTDOWN && but && entry.fid == but) {
			but = NULL;
			continue;
		}
		CHECK(ret == -FI_EAGAIN, "called at %d: an event that must not be: %zd, %u", line, ret, ret > 0 ? event : 0);
		turn(w);
		if (i % 10 == 0)
			sched_yield();
	}
}

void join_sides(struct wired *w, int asks, int answers)
{
	struct heard heard;
	fid_t seen[2];
	int i;

	ask(w, asks, NULL, 0);
	heard = HEAR(w, FI_CONNREQ, &w->pep->fid);
	CHECK(heard.info && heard.info->handle, "a request without a handle");
	open_side(w, answers, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w->bed.side[answers].ep, NULL, 0));
	for (i = 0; i < 2; i++)
		seen[i] = HEAR(w, FI_CONNECTED, NULL).fid;
	CHECK(seen[0] != seen[1], "one side has heard twice");
	for (i = 0; i < 2; i++)
		CHECK(seen[i] == &w->bed.side[asks].ep->fid || seen[i] == &w->bed.side[answers].ep->fid, "another side has heard");
}

void talk(struct wired *w, int from, int to)
{
	static unsigned seed = 2000;
	static char out[24], in[24];
	struct side *a = &w->bed.side[from], *b = &w->bed.side[to];
	struct fi_cq_tagged_entry entry;

	fill(out, sizeof(out), ++seed);
	POST(&w->bed, fi_recv(b->ep, in, sizeof(in), desc, FI_ADDR_UNSPEC, ctx(4000)));
	POST(&w->bed, fi_send(a->ep, out, sizeof(out), desc, 0, ctx(4001)));
	COMPLETION(&w->bed, a->tx, ctx(4001));
	entry = COMPLETION(&w->bed, b->rx, ctx(4000));
	CHECK(entry.len == sizeof(in), "%zu bytes", entry.len);
	SAME(in, sizeof(in), seed);
}

void all_fail(struct wired *w, struct fid_cq *cq, int first, int count, int line)
{
	char ended[4096] = { 0 };
	int i;

	for (i = 0; i < count; i++) {
		struct fi_cq_err_entry err = error_completion(&w->bed, cq, line);
		long number = (struct fi_context2 *) err.op_context - ctx(0);

		CHECK(number >= first && number < first + count, "called at %d: operation %ld", line, number);
		CHECK(!ended[number]++, "called at %d: operation %ld ended twice", line, number);
		CHECK(err.err > 0, "called at %d: errno %d", line, err.err);
	}
	no_completion(&w->bed, cq, line);
}

void close_side(struct wired *w, int at)
{
	(void) w;
	close_ep(&w->bed.side[at]);
}

void close_wires(struct wired *w)
{
	int i;

	close_eps(&w->bed);
	if (w->pep)
		OK(fi_close(&w->pep->fid));
	if (w->eq)
		OK(fi_close(&w->eq->fid));
	for (i = 0; i < SIDES; i++)
		CHECK(!w->bed.side[i].ep, "side %d is open", i);
	close_bed(&w->bed);
}

#include "calls.h"

static struct fid_eq *eq;

/* False: none yet. */
static bool next_event(uint32_t *event, struct fi_eq_cm_entry *entry)
{
	struct fi_eq_err_entry failed = { 0 };
	ssize_t ret = fi_eq_read(eq, event, entry, sizeof(*entry), 0);

	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(eq, &failed, 0);
		CHECK(0, "an error event: %d (%s)", failed.err, fi_strerror(failed.err));
	}
	CHECK(ret == -FI_EAGAIN || ret == sizeof(*entry), "fi_eq_read: %zd (%s)", ret, ret < 0 ? fi_strerror((int) -ret) : "");
	return ret > 0;
}

/* The test ends a station that waits in vain. */
static struct fi_info *await_event(uint32_t wanted, const struct fid *about)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;

	while (!next_event(&event, &entry))
		nap();
	CHECK(event == wanted, "event %u, not %u", event, wanted);
	CHECK(entry.fid == about, "event %u is about another object", event);
	return entry.info;
}

static void open_bound(struct end *end, const struct base *base, struct fi_info *info)
{
	OK(fi_endpoint(base->domain, info, &end->ep, NULL));
	OK(fi_ep_bind(end->ep, &eq->fid, 0));
	OK(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(end->ep));
}

static void answer(struct end *end, struct station *me, const struct base *base)
{
	struct name name = { .len = sizeof(name.bytes) };
	struct fid_pep *pep;
	struct fi_info *request;

	OK(fi_passive_ep(base->fabric, base->info, &pep, NULL));
	OK(fi_pep_bind(pep, &eq->fid, 0));
	OK(fi_listen(pep));
	OK(fi_getname(&pep->fid, name.bytes, &name.len));
	me->name = name;
	me->open = true;
	request = await_event(FI_CONNREQ, &pep->fid);
	open_bound(end, base, request);
	fi_freeinfo(request);
	OK(fi_accept(end->ep, NULL, 0));
	await_event(FI_CONNECTED, &end->ep->fid);
	shut(pep);
}

static void ask(struct end *end, struct station *me, const struct base *base)
{
	me->open = true;
	while (!me->peer->open)
		nap();
	open_bound(end, base, base->info);
	OK(fi_connect(end->ep, me->peer->name.bytes, NULL, 0));
	await_event(FI_CONNECTED, &end->ep->fid);
}

void open_connected_end(struct end *end, struct station *me, const struct base *base, const struct wish *wish)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	OK(fi_eq_open(base->fabric, &attr, &eq, NULL));
	end->cq = new_cq(base, wish);
	if (me->host == 1)
		answer(end, me, base);
	else
		ask(end, me, base);
}

uint32_t new_shutdowns(void)
{
	struct fi_eq_cm_entry entry;
	uint32_t event, count = 0;

	for (; next_event(&event, &entry); count++)
		CHECK(event == FI_SHUTDOWN, "event %u of a connection that was there", event);
	return count;
}

void close_calls(void)
{
	shut(eq);
	eq = NULL;
}

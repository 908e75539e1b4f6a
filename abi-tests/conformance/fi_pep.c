/* fi_endpoint(3), fi_passive_ep: passive endpoints. What becomes of the connections is in fi_cm. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "connected.h"

static const struct setup usual;

static void opens(void)
{
	struct wired w;

	open_wires(&w, &usual);
	w.pep = new_pep(&w, w.bed.info, ctx(7));
	CHECK(w.pep->fid.fclass == FI_CLASS_PEP, "class %zu", w.pep->fid.fclass);
	CHECK(w.pep->fid.context == ctx(7), "another context");
	close_wires(&w);
}

static void listens_without_an_eq(void)
{
	struct wired w;

	open_wires(&w, &usual);
	OK(fi_passive_ep(w.bed.fabric, w.bed.info, &w.pep, NULL));
	FAILS(fi_listen(w.pep));
	OK(fi_pep_bind(w.pep, &w.eq->fid, 0));
	OK(fi_listen(w.pep));
	close_wires(&w);
}

static void listens_once(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	FAILS(fi_listen(w.pep));
	join_sides(&w, 0, 1); /* and still does */
	close_wires(&w);
}

static void binds_event_queues_only(void)
{
	struct setup s = { 0 };
	struct fid_cq *cq;
	struct wired w;

	open_wires(&w, &usual);
	w.pep = new_pep(&w, w.bed.info, NULL);
	OK(open_cq(&w.bed, &s, &cq, NULL));
	FAILS(fi_pep_bind(w.pep, &cq->fid, 0));
	OK(fi_close(&cq->fid));
	close_wires(&w);
}

static void bind_takes_no_flags(void)
{
	struct wired w;

	open_wires(&w, &usual);
	OK(fi_passive_ep(w.bed.fabric, w.bed.info, &w.pep, NULL));
	FAILS(fi_pep_bind(w.pep, &w.eq->fid, FI_SEND));
	close_wires(&w);
}

static void eq_and_fabric_are_in_use(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	GIVES(-FI_EBUSY, fi_close(&w.eq->fid));
	GIVES(-FI_EBUSY, fi_close(&w.bed.fabric->fid));
	close_wires(&w);
}

static void getname_tells_what_it_needs(void)
{
	char name[NAME_MAX_LEN];
	struct wired w;
	size_t len = 1;

	open_exchange(&w, &usual);
	memset(name, 0x55, sizeof(name));
	GIVES(-FI_ETOOSMALL, fi_getname(&w.pep->fid, name, &len));
	CHECK(len == w.name_len, "%zu bytes, not %zu", len, w.name_len);
	CHECK(name[0] == w.name[0] && name[1] == 0x55, "not cut off");
	len = sizeof(name);
	OK(fi_getname(&w.pep->fid, name, &len));
	CHECK(len == w.name_len && !memcmp(name, w.name, len), "another name");
	close_wires(&w);
}

/* An address of fi_setname is what others connect to. */
static void setname_gives_an_address(void)
{
	struct sockaddr_in sin;
	struct wired w;

	open_wires(&w, &usual);
	if (w.bed.info->addr_format != FI_SOCKADDR_IN)
		WITHOUT_MEANING("addresses have no ports");
	CHECK(w.bed.info->src_addrlen == sizeof(sin), "a source of %zu bytes", w.bed.info->src_addrlen);
	memcpy(&sin, w.bed.info->src_addr, sizeof(sin));
	sin.sin_port = htons(free_port());
	w.pep = new_pep(&w, w.bed.info, NULL);
	OK(fi_setname(&w.pep->fid, &sin, sizeof(sin)));
	OK(fi_listen(w.pep));
	learn_pep(&w);
	CHECK(((struct sockaddr_in *) w.name)->sin_port == sin.sin_port, "another port");
	join_sides(&w, 0, 1);
	talk(&w, 0, 1);
	close_wires(&w);
}

/* Its address can be listened at again as soon as it is closed, though connections of it stand. */
static void address_is_free_when_closed(void)
{
	struct wired w;
	char first[NAME_MAX_LEN];
	int i;

	open_exchange(&w, &usual);
	for (i = 0; i < 3; i++) {
		struct fi_info *info = fi_dupinfo(w.bed.info);

		join_sides(&w, 0, 1);
		memcpy(first, w.name, w.name_len);
		OK(fi_close(&w.pep->fid));
		free(info->src_addr);
		info->src_addr = malloc(w.name_len);
		memcpy(info->src_addr, first, w.name_len);
		info->src_addrlen = w.name_len;
		w.pep = new_pep(&w, info, NULL);
		OK(fi_listen(w.pep));
		learn_pep(&w);
		CHECK(!memcmp(w.name, first, w.name_len), "another address");
		talk(&w, 0, 1);
		fi_freeinfo(info);
		close_side(&w, i % 2);
		HEAR(&w, FI_SHUTDOWN, &w.bed.side[1 - i % 2].ep->fid);
		close_side(&w, 1 - i % 2);
	}
	close_wires(&w);
}

static void backlog_is_set(void)
{
	struct wired w;
	int backlog = 3, ret;

	open_wires(&w, &usual);
	w.pep = new_pep(&w, w.bed.info, NULL);
	ret = fi_control(&w.pep->fid, FI_BACKLOG, &backlog);
	NEED(!lacking(ret), "FI_BACKLOG: %s", fi_strerror(-ret));
	CHECK(ret == 0, "FI_BACKLOG: %s", fi_strerror(-ret));
	OK(fi_listen(w.pep));
	learn_pep(&w);
	join_sides(&w, 0, 1);
	close_wires(&w);
}

static void data_size_is_read_only(void)
{
	size_t size = 1, len = sizeof(size) - 1;
	struct wired w;

	open_exchange(&w, &usual);
	GIVES(-FI_ETOOSMALL, fi_getopt(&w.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	FAILS(fi_setopt(&w.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, sizeof(size)));
	len = sizeof(size);
	FAILS(fi_getopt(&w.pep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &size, &len));
	close_wires(&w);
}

/* The fid of a request tells whom it came to. */
static void several_share_an_eq(void)
{
	struct fid_pep *peps[4];
	char names[4][NAME_MAX_LEN];
	struct wired w;
	int i;

	open_wires(&w, &usual);
	for (i = 0; i < 4; i++) {
		size_t len = NAME_MAX_LEN;

		peps[i] = new_pep(&w, w.bed.info, NULL);
		OK(fi_listen(peps[i]));
		OK(fi_getname(&peps[i]->fid, names[i], &len));
	}
	for (i = 3; i >= 0; i--) {
		struct heard heard;

		open_side(&w, i, w.bed.info);
		OK(fi_connect(w.bed.side[i].ep, names[i], NULL, 0));
		heard = HEAR(&w, FI_CONNREQ, &peps[i]->fid);
		OK(fi_reject(peps[i], heard.info->handle, NULL, 0));
		fi_freeinfo(heard.info);
		GIVES(FI_ECONNREFUSED, HEAR_ERROR(&w, &w.bed.side[i].ep->fid, NULL, NULL).err);
	}
	for (i = 0; i < 4; i++)
		OK(fi_close(&peps[i]->fid));
	close_wires(&w);
}

/* Requests that nobody has answered: those that were read and those that were not. */
static void closing_refuses_who_waits(void)
{
	struct heard first;
	struct wired w;
	int i;

	open_exchange(&w, &usual);
	for (i = 0; i < 3; i++)
		ask(&w, i, "x", 1);
	first = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	for (i = 0; i < 20; i++)
		turn(&w);
	OK(fi_close(&w.pep->fid));
	w.pep = NULL;
	for (i = 0; i < 3; i++) {
		int errnum = HEAR_ERROR(&w, NULL, NULL, NULL).err;

		if (strict)
			CHECK(errnum == FI_ECONNREFUSED || errnum == FI_ECONNRESET, "%s", fi_strerror(errnum));
	}
	SILENCE(&w, NULL);
	fi_freeinfo(first.info);
	close_wires(&w);
}

/* "An active endpoint may acquire the properties of a passive endpoint". */
static void gives_its_address_to_an_active_endpoint(void)
{
	struct fi_info *hints, *info;
	struct fid_pep *pep;
	struct heard heard;
	char own[NAME_MAX_LEN], seen[NAME_MAX_LEN];
	size_t len = sizeof(own), seen_len = sizeof(seen);
	struct wired w;

	open_exchange(&w, &usual);
	pep = new_pep(&w, w.bed.info, NULL);
	OK(fi_getname(&pep->fid, own, &len));
	hints = fi_dupinfo(w.bed.info);
	hints->handle = &pep->fid;
	OK(fi_getinfo(api_version(), NULL, NULL, 0, hints, &info));
	CHECK(info->handle == &pep->fid, "the handle is not copied");
	fi_freeinfo(hints);
	open_side(&w, 0, info);
	fi_freeinfo(info);
	OK(fi_enable(w.bed.side[0].ep));
	OK(fi_getname(&w.bed.side[0].ep->fid, seen, &seen_len));
	CHECK(seen_len == len && !memcmp(own, seen, len), "another address");
	OK(fi_close(&pep->fid));
	OK(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	CHECK(heard.info->dest_addrlen == len && !memcmp(heard.info->dest_addr, own, len), "another peer");
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	HEAR(&w, FI_CONNECTED, NULL);
	HEAR(&w, FI_CONNECTED, NULL);
	talk(&w, 0, 1);
	close_wires(&w);
}

static void a_bad_info_opens_none(void)
{
	struct fid_pep *pep;
	struct wired w;

	open_wires(&w, &usual);
	FAILS(fi_passive_ep(w.bed.fabric, NULL, &pep, NULL));
	close_wires(&w);
}

static void reject_needs_a_request(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	FAILS(fi_reject(w.pep, NULL, NULL, 0));
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(opens),
	TEST(listens_without_an_eq),
	TEST(listens_once),
	TEST(binds_event_queues_only),
	TEST(bind_takes_no_flags),
	TEST(eq_and_fabric_are_in_use),
	TEST(getname_tells_what_it_needs),
	TEST(setname_gives_an_address),
	TEST(address_is_free_when_closed),
	TEST(backlog_is_set),
	TEST(data_size_is_read_only),
	TEST(several_share_an_eq),
	TEST(closing_refuses_who_waits),
	TEST(gives_its_address_to_an_active_endpoint),
	TEST(a_bad_info_opens_none),
	TEST(reject_needs_a_request),
};

CASES(tests)

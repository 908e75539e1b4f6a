/* fi_cm(3): asking for connections, accepting and rejecting them. */
#include "connected.h"

static const struct setup usual;

/* Asks from side 0 and gives the request. */
static struct heard request(struct wired *w, int side, const void *data, size_t len)
{
	struct heard heard;

	ask(w, side, data, len);
	heard = HEAR(w, FI_CONNREQ, &w->pep->fid);
	CHECK(heard.info && heard.info->handle, "a request without a handle");
	return heard;
}

static void refuse(struct wired *w, struct heard *heard, const void *data, size_t len)
{
	OK(fi_reject(w->pep, heard->info->handle, data, len));
	fi_freeinfo(heard->info);
}

static void connects(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	SILENCE(&w, NULL);
	talk(&w, 0, 1);
	talk(&w, 1, 0);
	close_wires(&w);
}

static void the_request_describes_the_asker(void)
{
	char own[NAME_MAX_LEN];
	size_t len = sizeof(own);
	struct heard heard;
	struct wired w;

	open_exchange(&w, &usual);
	heard = request(&w, 0, NULL, 0);
	CHECK(heard.info->ep_attr->type == FI_EP_MSG, "type %d", heard.info->ep_attr->type);
	CHECK(heard.info->caps & FI_MSG, "no FI_MSG");
	CHECK(heard.info->addr_format == w.bed.info->addr_format, "another format");
	OK(fi_getname(&w.bed.side[0].ep->fid, own, &len));
	CHECK(heard.info->dest_addrlen == len && !memcmp(heard.info->dest_addr, own, len), "another address");
	CHECK(!strcmp(heard.info->fabric_attr->prov_name, w.bed.info->fabric_attr->prov_name), "another provider");
	refuse(&w, &heard, NULL, 0);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	close_wires(&w);
}

static void both_tell_their_peers(void)
{
	char name[NAME_MAX_LEN], own[NAME_MAX_LEN];
	struct wired w;
	size_t len, own_len;
	int i;

	open_exchange(&w, &usual);
	join_sides(&w, 0, 1);
	len = sizeof(name);
	OK(fi_getpeer(w.bed.side[0].ep, name, &len));
	CHECK(len == w.name_len && !memcmp(name, w.name, len), "side 0 has another peer than the passive endpoint");
	for (i = 0; i < 2; i++) {
		len = sizeof(name);
		own_len = sizeof(own);
		OK(fi_getpeer(w.bed.side[i].ep, name, &len));
		OK(fi_getname(&w.bed.side[1 - i].ep->fid, own, &own_len));
		CHECK(len == own_len && !memcmp(name, own, len), "side %d has another peer", i);
		memset(own, 0x55, sizeof(own));
		own_len = 1;
		GIVES(-FI_ETOOSMALL, fi_getpeer(w.bed.side[i].ep, own, &own_len));
		CHECK(own_len == len && own[0] == name[0] && own[1] == 0x55, "not cut off");
	}
	close_wires(&w);
}

static void without_a_peer_there_is_no_name(void)
{
	char name[NAME_MAX_LEN];
	size_t len = sizeof(name);
	struct wired w;

	open_exchange(&w, &usual);
	open_side(&w, 0, w.bed.info);
	OK(fi_enable(w.bed.side[0].ep));
	FAILS(fi_getpeer(w.bed.side[0].ep, name, &len));
	close_wires(&w);
}

/* Data of every size that may be, with each of the three calls. "The returned length may include protocol padding." */
static void data_of_every_size(void)
{
	struct heard heard;
	struct wired w;
	size_t at, k;
	static char data[CM_ROOM], back[CM_ROOM];

	open_exchange(&w, &usual);
	for (k = 0; k < 7; k++) {
		size_t sizes[] = { 0, 1, 2, 7, w.data_size / 2, w.data_size - 1, w.data_size };
		size_t len = sizes[k], back_len = 0;

		fill(data, len, (unsigned) len);
		heard = request(&w, 0, data, len);
		CHECK(heard.len >= len && heard.len <= w.data_size, "%zu bytes of %zu", heard.len, len);
		SAME(heard.data, len, (unsigned) len);
		open_side(&w, 1, heard.info);
		fi_freeinfo(heard.info);
		fill(data, len, (unsigned) len + 1);
		OK(fi_accept(w.bed.side[1].ep, data, len));
		memset(data, 0, sizeof(data)); /* it was copied */
		for (at = 0; at < 2; at++) {
			heard = HEAR(&w, FI_CONNECTED, NULL);
			if (heard.fid != &w.bed.side[0].ep->fid)
				continue;
			CHECK(heard.len >= len && heard.len <= w.data_size, "%zu bytes of %zu", heard.len, len);
			SAME(heard.data, len, (unsigned) len + 1);
		}
		close_eps(&w.bed);
		heard = request(&w, 0, NULL, 0);
		fill(data, len, (unsigned) len + 2);
		refuse(&w, &heard, data, len);
		CHECK(HEAR_ERROR(&w, &w.bed.side[0].ep->fid, back, &back_len).err == FI_ECONNREFUSED, "not refused");
		CHECK(back_len >= len && back_len <= w.data_size, "%zu bytes of %zu", back_len, len);
		SAME(back, len, (unsigned) len + 2);
		close_eps(&w.bed);
	}
	close_wires(&w);
}

/* "User data is not provided with an FI_CONNECTED event on the listening side". */
static void the_accepter_gets_no_data(void)
{
	struct heard heard;
	struct wired w;
	int i;

	open_exchange(&w, &usual);
	heard = request(&w, 0, "asker", 5);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, "answer", 6));
	for (i = 0; i < 2; i++) {
		heard = HEAR(&w, FI_CONNECTED, NULL);
		CHECK(heard.fid != &w.bed.side[1].ep->fid || heard.len == 0, "%zu bytes", heard.len);
	}
	close_wires(&w);
}

/* "will silently truncate any application data which cannot fit". */
static void too_much_data_is_cut(void)
{
	static char data[CM_ROOM], back[CM_ROOM];
	struct heard heard;
	struct wired w;
	size_t len = 0;
	int i;

	open_exchange(&w, &usual);
	fill(data, sizeof(data), 9);
	heard = request(&w, 0, data, w.data_size + 5);
	CHECK(heard.len == w.data_size, "%zu bytes", heard.len);
	SAME(heard.data, w.data_size, 9);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, data, w.data_size + 5));
	for (i = 0; i < 2; i++) {
		heard = HEAR(&w, FI_CONNECTED, NULL);
		if (heard.fid == &w.bed.side[0].ep->fid) {
			CHECK(heard.len == w.data_size, "%zu bytes", heard.len);
			SAME(heard.data, w.data_size, 9);
		}
	}
	heard = request(&w, 2, NULL, 0);
	refuse(&w, &heard, data, w.data_size + 5);
	HEAR_ERROR(&w, &w.bed.side[2].ep->fid, back, &len);
	CHECK(len == w.data_size, "%zu bytes", len);
	SAME(back, len, 9);
	close_wires(&w);
}

static void data_size_is_that_of_the_endpoint(void)
{
	struct wired w;
	size_t size = 0, len = sizeof(size);

	open_exchange(&w, &usual);
	open_side(&w, 0, w.bed.info);
	OK(fi_getopt(&w.bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	CHECK(len == sizeof(size) && size == w.data_size, "%zu, not %zu", size, w.data_size);
	close_wires(&w);
}

static void nobody_listens(void)
{
	struct fid_pep *pep;
	struct wired w;

	open_exchange(&w, &usual);
	/* An address that was somebody's. */
	pep = new_pep(&w, w.bed.info, NULL);
	OK(fi_listen(pep));
	w.name_len = sizeof(w.name);
	OK(fi_getname(&pep->fid, w.name, &w.name_len));
	OK(fi_close(&pep->fid));
	ask(&w, 0, "x", 1);
	GIVES(FI_ECONNREFUSED, HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL).err);
	SILENCE(&w, NULL);
	close_wires(&w);
}

/* "fi_connect may only be called on an endpoint once in its lifetime." */
static void asks_once(void)
{
	struct heard heard;
	struct wired w;

	open_exchange(&w, &usual);
	heard = request(&w, 0, NULL, 0);
	FAILS(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	refuse(&w, &heard, NULL, 0);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	FAILS(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	close_eps(&w.bed);
	join_sides(&w, 0, 1);
	FAILS(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	FAILS(fi_connect(w.bed.side[1].ep, w.name, NULL, 0));
	talk(&w, 0, 1);
	OK(fi_shutdown(w.bed.side[0].ep, 0));
	FAILS(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	close_wires(&w);
}

static void asks_somebody(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	open_side(&w, 0, w.bed.info);
	FAILS(fi_connect(w.bed.side[0].ep, NULL, NULL, 0));
	close_wires(&w);
}

static void needs_an_eq(void)
{
	struct wired w;

	open_exchange(&w, &usual);
	OK(fi_endpoint(w.bed.domain, w.bed.info, &w.bed.side[0].ep, NULL));
	w.bed.sides = 1;
	give_queues(&w, 0);
	FAILS(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	close_wires(&w);
}

static void accepts_a_request_once(void)
{
	struct heard heard;
	struct fid_ep *ep;
	struct fi_info *copy;
	struct wired w;

	open_exchange(&w, &usual);
	open_side(&w, 2, w.bed.info);
	FAILS(fi_accept(w.bed.side[2].ep, NULL, 0)); /* there is no request */
	heard = request(&w, 0, NULL, 0);
	/* "The info->handle field will be ignored by fi_dupinfo and fi_freeinfo": the copy names the request too. */
	copy = fi_dupinfo(heard.info);
	fi_freeinfo(heard.info);
	open_side(&w, 1, copy);
	FAILS(fi_endpoint(w.bed.domain, copy, &ep, NULL));
	FAILS(fi_reject(w.pep, copy->handle, NULL, 0));
	fi_freeinfo(copy);
	FAILS(fi_connect(w.bed.side[1].ep, w.name, NULL, 0));
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	FAILS(fi_accept(w.bed.side[1].ep, NULL, 0));
	HEAR(&w, FI_CONNECTED, NULL);
	HEAR(&w, FI_CONNECTED, NULL);
	talk(&w, 0, 1);
	close_wires(&w);
}

static void rejects_a_request_once(void)
{
	struct heard heard;
	struct fid_ep *ep;
	struct wired w;

	open_exchange(&w, &usual);
	heard = request(&w, 0, NULL, 0);
	OK(fi_reject(w.pep, heard.info->handle, NULL, 0));
	FAILS(fi_reject(w.pep, heard.info->handle, NULL, 0));
	FAILS(fi_endpoint(w.bed.domain, heard.info, &ep, NULL));
	fi_freeinfo(heard.info);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	SILENCE(&w, NULL);
	close_wires(&w);
}

static void another_endpoint_cannot_reject(void)
{
	struct fid_pep *other;
	struct heard heard;
	struct wired w;

	open_exchange(&w, &usual);
	other = new_pep(&w, w.bed.info, NULL);
	OK(fi_listen(other));
	heard = request(&w, 0, NULL, 0);
	if (strict)
		FAILS(fi_reject(other, heard.info->handle, NULL, 0));
	refuse(&w, &heard, NULL, 0);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	OK(fi_close(&other->fid));
	close_wires(&w);
}

/* An endpoint that was opened for a request and is closed without fi_accept. */
static void an_endpoint_that_never_accepts(void)
{
	struct heard heard;
	struct wired w;

	open_exchange(&w, &usual);
	heard = request(&w, 0, NULL, 0);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	close_side(&w, 1);
	HEAR_ERROR(&w, &w.bed.side[0].ep->fid, NULL, NULL);
	SILENCE(&w, NULL);
	close_wires(&w);
}

/* The asker goes before it is answered: the answer fails, or its connection ends at once. */
static void the_asker_leaves(void)
{
	struct heard heard;
	struct wired w;
	ssize_t ret;
	int i;

	open_exchange(&w, &usual);
	heard = request(&w, 0, NULL, 0);
	close_side(&w, 0);
	for (i = 0; i < 20; i++)
		turn(&w);
	if (fi_endpoint(w.bed.domain, heard.info, &w.bed.side[1].ep, NULL) == 0) {
		w.bed.sides = 2;
		OK(fi_ep_bind(w.bed.side[1].ep, &w.eq->fid, 0));
		give_queues(&w, 1);
		if (fi_accept(w.bed.side[1].ep, NULL, 0) == 0) {
			do {
				struct heard after;

				ret = hear(&w, w.eq, &after);
				CHECK(ret == -FI_EAVAIL || ret > 0, "nothing is heard: %zd", ret);
				CHECK(ret < 0 || after.event == FI_CONNECTED || after.event == FI_SHUTDOWN, "event %u", after.event);
				if (ret > 0 && after.event == FI_SHUTDOWN)
					break;
			} while (ret > 0);
			if (ret < 0) {
				struct fi_eq_err_entry err = { 0 };

				GIVES(sizeof(err), fi_eq_readerr(w.eq, &err, 0));
				CHECK(err.fid == &w.bed.side[1].ep->fid, "another endpoint");
			}
		}
	}
	fi_freeinfo(heard.info);
	close_wires(&w);
}

/* "fi_connect and fi_accept will also transition an endpoint into the enabled state": and no address vector is bound. */
static void enables_without_an_address_vector(void)
{
	struct heard heard;
	struct wired w;
	static char in[8];

	open_exchange(&w, &usual);
	open_side(&w, 0, w.bed.info);
	OK(fi_enable(w.bed.side[0].ep));
	OK(fi_recv(w.bed.side[0].ep, in, sizeof(in), NULL, 0, ctx(1)));
	OK(fi_connect(w.bed.side[0].ep, w.name, NULL, 0));
	heard = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	open_side(&w, 1, heard.info);
	fi_freeinfo(heard.info);
	OK(fi_accept(w.bed.side[1].ep, NULL, 0));
	OK(fi_recv(w.bed.side[1].ep, in, sizeof(in), NULL, 0, ctx(2)));
	HEAR(&w, FI_CONNECTED, NULL);
	HEAR(&w, FI_CONNECTED, NULL);
	POST(&w.bed, fi_send(w.bed.side[1].ep, "12345678", 8, NULL, 0, ctx(3)));
	COMPLETION(&w.bed, w.bed.side[0].rx, ctx(1));
	close_wires(&w);
}

static void requests_wait_for_their_answers(void)
{
	struct heard heard[SIDES / 2];
	struct wired w;
	int i, k;

	open_exchange(&w, &usual);
	for (i = 0; i < SIDES / 2; i++)
		ask(&w, i, &i, sizeof(i));
	for (i = 0; i < SIDES / 2; i++)
		heard[i] = HEAR(&w, FI_CONNREQ, &w.pep->fid);
	/* Answered from the last to the first, and each to the one that asked. */
	for (i = SIDES / 2 - 1; i >= 0; i--) {
		int from;

		memcpy(&from, heard[i].data, sizeof(from));
		CHECK(from >= 0 && from < SIDES / 2, "asker %d", from);
		open_side(&w, SIDES / 2 + from, heard[i].info);
		fi_freeinfo(heard[i].info);
		OK(fi_accept(w.bed.side[SIDES / 2 + from].ep, NULL, 0));
		for (k = 0; k < 2; k++) {
			fid_t fid = HEAR(&w, FI_CONNECTED, NULL).fid;

			CHECK(fid == &w.bed.side[from].ep->fid || fid == &w.bed.side[SIDES / 2 + from].ep->fid, "another endpoint");
		}
	}
	for (i = 0; i < SIDES / 2; i++)
		talk(&w, i, SIDES / 2 + i);
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(connects),
	TEST(the_request_describes_the_asker),
	TEST(both_tell_their_peers),
	TEST(without_a_peer_there_is_no_name),
	TEST(data_of_every_size),
	TEST(the_accepter_gets_no_data),
	TEST(too_much_data_is_cut),
	TEST(data_size_is_that_of_the_endpoint),
	TEST(nobody_listens),
	TEST(asks_once),
	TEST(asks_somebody),
	TEST(needs_an_eq),
	TEST(accepts_a_request_once),
	TEST(rejects_a_request_once),
	TEST(another_endpoint_cannot_reject),
	TEST(an_endpoint_that_never_accepts),
	TEST(the_asker_leaves),
	TEST(enables_without_an_address_vector),
	TEST(requests_wait_for_their_answers),
};

CASES(tests)

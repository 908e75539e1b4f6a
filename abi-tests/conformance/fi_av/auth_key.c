/* Authorization keys. */
#include "av.h"

#if HEADERS_2
static void auth_keys_stored_and_found(void)
{
	struct setup s = { .auth_key_size = FI_AV_AUTH_KEY };
	char key[32], found[64];
	struct bed bed;
	fi_addr_t addr = FI_ADDR_NOTAVAIL, other = FI_ADDR_NOTAVAIL;
	size_t len = sizeof(found), key_len;
	int ret;

	open_av(&bed, &s);
	key_len = bed.info->domain_attr->auth_key_size == FI_AV_AUTH_KEY ? 16 : bed.info->domain_attr->auth_key_size;
	if (key_len > sizeof(key) || !key_len)
		key_len = sizeof(key);
	fill(key, sizeof(key), 1);
	ret = fi_av_insert_auth_key(bed.av, key, key_len, &addr, 0);
	NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
	CHECK(ret == 0 && addr != FI_ADDR_NOTAVAIL, "fi_av_insert_auth_key: %d", ret);
	fill(key, sizeof(key), 2);
	OK(fi_av_insert_auth_key(bed.av, key, key_len, &other, 0));
	CHECK(other != addr, "two keys, one handle");
	OK(fi_av_lookup_auth_key(bed.av, addr, found, &len));
	CHECK(len == key_len, "%zu bytes", len);
	SAME(found, len, 1);

	memset(found, '#', sizeof(found));
	len = 2;
	OK(fi_av_lookup_auth_key(bed.av, other, found, &len));
	CHECK(len == key_len && found[2] == '#', "not truncated: says %zu", len);
	SAME(found, 2, 2);
	OK(fi_av_remove(bed.av, &other, 1, FI_AUTH_KEY));
	OK(fi_av_remove(bed.av, &addr, 1, FI_AUTH_KEY));
	close_bed(&bed);
}

static void auth_key_at_insert(void)
{
	struct setup s = { .auth_key_size = FI_AV_AUTH_KEY };
	char key[16], name[NAME_MAX_LEN], found[64];
	struct bed bed;
	fi_addr_t auth, addr;
	size_t len, found_len = sizeof(found);
	int ret;

	open_av(&bed, &s);
	fill(key, sizeof(key), 1);
	ret = fi_av_insert_auth_key(bed.av, key, sizeof(key), &auth, 0);
	NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_insert_auth_key: %d", ret);
	made_up_name(&bed, 1, name, &len);
	addr = auth;
	GIVES(1, fi_av_insert(bed.av, name, 1, &addr, FI_AUTH_KEY, NULL));
	OK(fi_av_lookup_auth_key(bed.av, addr, found, &found_len));
	SAME(found, sizeof(key), 1);
	close_bed(&bed);
}

/* An address is one under each key, and messages go to and come from it. */
static void auth_keys_of_peers(void)
{
	struct setup s = { .auth_key_size = FI_AV_AUTH_KEY, .more_caps = FI_SOURCE, .strangers = true };
	char key[16];
	struct bed bed;
	fi_addr_t auth[2], addrs[2];
	int i, ret;

	open_sides(&bed, &s);
	for (i = 0; i < 2; i++) {
		fill(key, sizeof(key), (unsigned) i);
		ret = fi_av_insert_auth_key(bed.av, key, sizeof(key), &auth[i], 0);
		NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_av_insert_auth_key: %d", ret);
	}
	enable_sides(&bed, &s);
	for (i = 0; i < 2; i++) {
		addrs[i] = auth[i];
		GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addrs[i], FI_AUTH_KEY, NULL));
	}
	CHECK(addrs[0] != addrs[1], "one address under two keys");
	bed.side[1].addr = auth[1];
	GIVES(1, insert_sides(&bed, bed.av, 1, 1, &bed.side[1].addr, FI_AUTH_KEY, NULL));
	CHECK(source_seen(&bed) == addrs[0], "another source");
	bed.side[0].addr = addrs[1];
	ping(&bed, 1, 0);
	/* Endpoints were enabled with the keys, which stay until all of them are closed. */
	GIVES(-FI_EBUSY, fi_av_remove(bed.av, &auth[0], 1, FI_AUTH_KEY));
	close_eps(&bed);
	OK(fi_av_remove(bed.av, &auth[0], 1, FI_AUTH_KEY));
	close_bed(&bed);
}

/* The key under which side 1 is told of a message from an address that its vector does not have. */
static fi_addr_t key_of_a_stranger(struct bed *bed)
{
	static char in[8], out[8] = "who";
	struct fi_cq_err_entry err;

	POST(bed, post_recv(bed->side[1].ep, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(bed, post_send(bed->side[0].ep, out, sizeof(out), bed->side[1].addr, 1, ctx(2)));
	COMPLETION(bed, bed->side[0].tx, ctx(2));
	err = ERROR_COMPLETION(bed, bed->side[1].rx);
	CHECK(err.err == FI_EADDRNOTAVAIL && err.op_context == ctx(1), "err %d (%s)", err.err, fi_strerror(err.err));
	return err.src_addr;
}

/* Opens two sides with one key, of which the vector has side 1 alone, so that side 0 is a stranger to it. */
static fi_addr_t open_with_a_stranger(struct bed *bed, struct setup *s)
{
	char key[16];
	fi_addr_t auth;
	int ret;

	s->auth_key_size = FI_AV_AUTH_KEY;
	s->more_caps |= FI_SOURCE | FI_SOURCE_ERR;
	s->strangers = true;
	open_sides(bed, s);
	fill(key, sizeof(key), 1);
	ret = fi_av_insert_auth_key(bed->av, key, sizeof(key), &auth, 0);
	NEED(!lacking(ret), "fi_av_insert_auth_key: %s", fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_insert_auth_key: %d", ret);
	enable_sides(bed, s);
	bed->side[1].addr = auth;
	GIVES(1, insert_sides(bed, bed->av, 1, 1, &bed->side[1].addr, FI_AUTH_KEY, NULL));
	return auth;
}

/* FI_EADDRNOTAVAIL comes with a key, under which the stranger can be inserted. */
static void strangers_come_under_a_key(void)
{
	struct setup s = { 0 };
	struct bed bed;
	fi_addr_t auth = open_with_a_stranger(&bed, &s), addr = key_of_a_stranger(&bed);

	CHECK(addr == auth, "source 0x%llx, but the key is 0x%llx", (unsigned long long) addr, (unsigned long long) auth);
	GIVES(1, insert_sides(&bed, bed.av, 0, 1, &addr, FI_AUTH_KEY, NULL));
	CHECK(source_seen(&bed) == addr, "another source once it is inserted");
	close_bed(&bed);
}

/* The same in a vector with FI_AV_USER_ID: what the application calls the key, once it does. */
static void strangers_come_under_a_user_id(void)
{
	struct setup s = { .more_caps = FI_AV_USER_ID, .av_flags = FI_AV_USER_ID };
	struct bed bed;
	fi_addr_t auth = open_with_a_stranger(&bed, &s), addr = key_of_a_stranger(&bed);

	CHECK(addr == FI_ADDR_NOTAVAIL, "source 0x%llx of a key without an identifier", (unsigned long long) addr);
	OK(fi_av_set_user_id(bed.av, auth, 4711, FI_AUTH_KEY));
	addr = key_of_a_stranger(&bed);
	CHECK(addr == 4711, "source 0x%llx, not the key's identifier", (unsigned long long) addr);
	close_bed(&bed);
}

static void auth_key_needs_the_domain(void)
{
	char key[16] = "key";
	struct bed bed;
	fi_addr_t addr;

	open_av(&bed, &usual);
	FAILS(fi_av_insert_auth_key(bed.av, key, sizeof(key), &addr, 0));
	close_bed(&bed);
}
#endif

static const struct test tests[] = {
#if HEADERS_2
	TEST(auth_keys_stored_and_found), TEST(auth_key_at_insert), TEST(auth_keys_of_peers),
	TEST(strangers_come_under_a_key), TEST(strangers_come_under_a_user_id), TEST(auth_key_needs_the_domain),
#endif
};

CASES(tests)

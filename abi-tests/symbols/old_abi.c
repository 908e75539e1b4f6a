/*
 * Every version of fi_getinfo, fi_dupinfo, fi_freeinfo and fi_fabric, called as a program of that age calls it: with
 * structs exactly as large as they were then, each before a page that may not be touched. A version that works on a
 * newer layout crashes; one that works on an older layout loses the fields in between. Of a layout that is newer than the
 * library's headers, what these do not have must be zero.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "../support/cases.h"
#include "../support/echo_prov.h"
#include "../support/guarded.h"

struct age {
	const char *version;
	uint32_t api;
	size_t info, domain, ep, fabric, tx, rx, nic;
	uint64_t empty; /* what the echo provider must see empty in hints of this age */
};

#define SINCE_1_9 ECHO_NO_DOMAIN_1_9
#define SINCE_1_8 (SINCE_1_9 | ECHO_NO_DOMAIN_1_8)
#define SINCE_1_7 (SINCE_1_8 | ECHO_NO_DOMAIN_1_7)
#define SINCE_1_3 (SINCE_1_7 | ECHO_NO_DOMAIN_1_3 | ECHO_NO_TX_1_3)
#define SINCE_1_2 (SINCE_1_3 | ECHO_NO_NIC_1_2)
#define SINCE_1_1 (SINCE_1_2 | ECHO_NO_DOMAIN_1_1 | ECHO_NO_EP_1_1)

#define NEWEST "FABRIC_1.10"

static const struct age ages[] = {
	/* version     API                 info dom  ep  fab tx  rx  nic empty */
	{ "FABRIC_1.0", FI_VERSION(1, 0),  112, 120, 80, 32, 72, 64, 0, SINCE_1_1 },
	{ "FABRIC_1.1", FI_VERSION(1, 5),  112, 184, 96, 32, 72, 64, 0, SINCE_1_2 },
	{ "FABRIC_1.2", FI_VERSION(1, 7),  120, 184, 96, 32, 72, 64, 56, SINCE_1_3 },
	{ "FABRIC_1.3", FI_VERSION(1, 9),  120, 192, 96, 32, 80, 64, 56, SINCE_1_7 },
	{ "FABRIC_1.7", FI_VERSION(1, 20), 120, 200, 96, 32, 80, 64, 56, SINCE_1_8 },
	{ "FABRIC_1.8", FI_VERSION(2, 0),  120, 208, 96, 32, 80, 64, 56, SINCE_1_9 },
	{ "FABRIC_1.9", FI_VERSION(2, 0),  120, 224, 96, 32, 80, 64, 56, 0 },
	{ NEWEST, FI_VERSION(2, 0),        120, 232, 104, 32, 80, 64, 56, 0 },
};
/* How many of them the library has: the C library 2.5.1 has all but the newest. */
static size_t age_count = sizeof(ages) / sizeof(ages[0]);

static void *library;

static void *entry(const char *name, const char *version)
{
	void *found = dlvsym(library, name, version);

	CHECK(found, "no %s@%s", name, version);
	return found;
}

/* ---- a fi_info of an age ---- */

#define HAS(object, field, size) (offsetof(__typeof__(*(object)), field) + sizeof((object)->field) <= (size))
#define SET(object, size, field, value)                        \
	do {                                                   \
		if (HAS(object, field, size))                  \
			(object)->field = (value);             \
	} while (0)

static struct fi_domain_attr *make_domain(const struct age *age)
{
	struct fi_domain_attr *domain = guarded(age->domain);
	size_t *counts = &domain->mr_key_size, i;

	domain->name = guarded_text("old-domain");
	domain->threading = FI_THREAD_SAFE;
	domain->control_progress = FI_PROGRESS_AUTO;
	domain->data_progress = FI_PROGRESS_AUTO;
	domain->resource_mgmt = FI_RM_ENABLED;
	domain->av_type = FI_AV_TABLE;
	for (i = 0; i < 10; i++) /* mr_key_size to max_ep_srx_ctx */
		counts[i] = 40 + i;
	SET(domain, age->domain, cntr_cnt, 60);
	SET(domain, age->domain, mr_iov_limit, 61);
	SET(domain, age->domain, caps, FI_LOCAL_COMM);
	SET(domain, age->domain, mode, 0);
	if (HAS(domain, mr_cnt, age->domain)) {
		domain->auth_key = memcpy(guarded(5), "dkey", 5);
		domain->auth_key_size = 5;
		domain->max_err_data = 62;
		domain->mr_cnt = 63;
	}
	SET(domain, age->domain, tclass, FI_TC_BULK_DATA);
	SET(domain, age->domain, max_ep_auth_key, 64);
	SET(domain, age->domain, max_group_id, 65);
	SET(domain, age->domain, max_cntr_value, 66);
	SET(domain, age->domain, max_err_cntr_value, 67);
	return domain;
}

static struct fi_ep_attr *make_ep(const struct age *age)
{
	struct fi_ep_attr *ep = guarded(age->ep);

	ep->type = FI_EP_RDM;
	ep->protocol = FI_PROTO_UDP;
	ep->protocol_version = 3;
	ep->max_msg_size = 70;
	ep->msg_prefix_size = 71;
	ep->max_order_raw_size = 72;
	ep->max_order_war_size = 73;
	ep->max_order_waw_size = 74;
	ep->mem_tag_format = 75;
	ep->tx_ctx_cnt = 76;
	ep->rx_ctx_cnt = 77;
	if (HAS(ep, auth_key, age->ep)) {
		ep->auth_key = memcpy(guarded(6), "epkey", 6);
		ep->auth_key_size = 6;
	}
	return ep;
}

/* A nic as a provider's: it is copied and closed through its own operations, and counts how many of it there are. */
static int live_nics;

static int nic_close(struct fid *fid)
{
	live_nics--;
	free(fid);
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	CHECK(command == FI_DUP, "command %d", command);
	*(struct fid_nic **) arg = memcpy(malloc(sizeof(struct fid_nic)), fid, sizeof(struct fid_nic));
	live_nics++;
	return 0;
}

static struct fi_ops nic_ops = { .size = sizeof(struct fi_ops), .close = nic_close, .control = nic_control };

static struct fi_info *make_info(const struct age *age)
{
	struct fi_info *info = guarded(age->info);
	struct fid_nic *nic;
	size_t *sizes, i;

	info->caps = FI_MSG | FI_SEND | FI_RECV;
	info->mode = FI_CONTEXT;
	info->addr_format = FI_ADDR_STR;
	info->src_addr = guarded_text("here");
	info->src_addrlen = 5;
	info->dest_addr = guarded_text("there");
	info->dest_addrlen = 6;
	info->domain_attr = make_domain(age);
	info->ep_attr = make_ep(age);
	info->fabric_attr = guarded(age->fabric);
	info->fabric_attr->name = guarded_text("old-fabric");
	info->fabric_attr->prov_name = guarded_text("echo");
	info->tx_attr = guarded(age->tx);
	info->tx_attr->caps = FI_MSG | FI_SEND;
	info->tx_attr->op_flags = FI_COMPLETION;
	for (sizes = &info->tx_attr->inject_size, i = 0; i < 4; i++)
		sizes[i] = 80 + i;
	SET(info->tx_attr, age->tx, tclass, FI_TC_LOW_LATENCY);
	info->rx_attr = guarded(age->rx);
	info->rx_attr->caps = FI_MSG | FI_RECV;
	for (sizes = &info->rx_attr->total_buffered_recv, i = 0; i < 3; i++)
		sizes[i] = 90 + i;
	if (HAS(info, nic, age->info)) {
		info->nic = nic = guarded(age->nic);
		nic->fid.fclass = FI_CLASS_NIC;
		nic->fid.ops = &nic_ops;
		nic->link_attr = guarded(sizeof(*nic->link_attr));
	}
	return info;
}

/* ---- comparing ---- */

/* Bytes that are no value of their own: padding, pointers, and what the core fills in; compared elsewhere or not at all. */
struct gap {
	size_t from, to;
};
#define FIELD(type, field) { offsetof(type, field), offsetof(type, field) + sizeof(((type *) 0)->field) }

static void same_bytes(const char *what, const void *got, const void *want, size_t size, const struct gap *gaps)
{
	unsigned char a[256], b[256];
	size_t i;

	memcpy(a, got, size);
	memcpy(b, want, size);
	for (; gaps->to; gaps++)
		for (i = gaps->from; i < gaps->to; i++)
			a[i] = b[i] = 0;
	for (i = 0; i < size; i++)
		CHECK(a[i] == b[i], "%s differs at offset %zu of %zu: %d, want %d", what, i, size, a[i], b[i]);
}

static void same_key(const char *what, const uint8_t *got, const uint8_t *want, size_t size)
{
	CHECK(got && got != want && !memcmp(got, want, size), "%s not copied", what);
}

static void same_text(const char *what, const char *got, const char *want)
{
	CHECK(got && got != want && !strcmp(got, want), "%s is %s, want a copy of %s", what, got ? got : "NULL", want);
}

static void same_info(const struct age *age, const struct fi_info *got, const struct fi_info *want)
{
	static const struct gap info_gaps[] = {
		{ 0, 8 }, { 28, 32 }, { 48, 64 }, { 72, 120 }, { 0, 0 } /* next, padding, addresses, parts */
	};
	static const struct gap domain_gaps[] = {
		FIELD(struct fi_domain_attr, name), FIELD(struct fi_domain_attr, auth_key),
		FIELD(struct fi_domain_attr, cq_cnt), { 188, 192 }, { 204, 208 }, { 0, 0 }
	};
	static const struct gap ep_gaps[] = { { 12, 16 }, FIELD(struct fi_ep_attr, auth_key), { 0, 0 } };
	static const struct gap fabric_gaps[] = { { 8, 32 }, { 0, 0 } };
	static const struct gap tx_gaps[] = { { 76, 80 }, { 0, 0 } }, no_gaps[] = { { 0, 0 } };

	same_bytes("info", got, want, age->info, info_gaps);
	same_key("src_addr", got->src_addr, want->src_addr, want->src_addrlen);
	same_key("dest_addr", got->dest_addr, want->dest_addr, want->dest_addrlen);
	same_bytes("tx_attr", got->tx_attr, want->tx_attr, age->tx, tx_gaps);
	same_bytes("rx_attr", got->rx_attr, want->rx_attr, age->rx, no_gaps);
	same_bytes("ep_attr", got->ep_attr, want->ep_attr, age->ep, ep_gaps);
	same_bytes("domain_attr", got->domain_attr, want->domain_attr, age->domain, domain_gaps);
	same_text("domain name", got->domain_attr->name, want->domain_attr->name);
	same_bytes("fabric_attr", got->fabric_attr, want->fabric_attr, age->fabric, fabric_gaps);
	same_text("fabric name", got->fabric_attr->name, want->fabric_attr->name);
	same_text("provider name", got->fabric_attr->prov_name, want->fabric_attr->prov_name);
	if (HAS(want->ep_attr, auth_key, age->ep)) {
		same_key("endpoint key", got->ep_attr->auth_key, want->ep_attr->auth_key, 6);
		same_key("domain key", got->domain_attr->auth_key, want->domain_attr->auth_key, 5);
	}
	if (HAS(want, nic, age->info)) {
		CHECK(got->nic && got->nic != want->nic, "nic not copied");
		CHECK(got->nic->link_attr == want->nic->link_attr, "nic changed on the way");
	}
}

/* ---- the cases ---- */

/* What is allocated next is not zero by itself. */
static void soil_memory(void)
{
	void *blocks[64];
	size_t size, i;

	for (size = 64; size <= 256; size += 8) {
		for (i = 0; i < 64; i++)
			memset(blocks[i] = malloc(size), 0xaa, size);
		for (i = 0; i < 64; i++)
			free(blocks[i]);
	}
}

typedef struct fi_info *(*dupinfo_fn)(const struct fi_info *);
typedef void (*freeinfo_fn)(struct fi_info *);
typedef int (*getinfo_fn)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
typedef int (*fabric_fn)(struct fi_fabric_attr *, struct fid_fabric **, void *);

static void dupinfo(void *arg)
{
	const struct age *age = arg;
	dupinfo_fn dup = (dupinfo_fn) entry("fi_dupinfo", age->version);
	freeinfo_fn release = (freeinfo_fn) entry("fi_freeinfo", age->version);
	struct fi_info *want = make_info(age), *got, *again;

	soil_memory();
	got = dup(want);
	CHECK(got, "no memory");
	CHECK(!got->next, "next is set");
	CHECK(got->domain_attr->cq_cnt == want->domain_attr->cq_cnt, "cq_cnt");
	same_info(age, got, want);
	again = dup(got);
	same_info(age, again, want);
	release(again);
	release(got);
	CHECK(live_nics == 0, "%d nics left", live_nics);

	got = dup(NULL);
	CHECK(got && got->tx_attr && got->rx_attr && got->ep_attr && got->domain_attr && got->fabric_attr, "a part is missing");
	CHECK(!got->caps && !got->tx_attr->size && !got->domain_attr->name && !got->fabric_attr->prov_name, "not empty");
	release(got);

	got = guarded(age->info); /* hints with no parts at all */
	again = dup(got);
	CHECK(again && !again->tx_attr && !again->domain_attr && !again->fabric_attr, "parts out of nothing");
	release(again);
	release(NULL);
}

static void getinfo(void *arg)
{
	const struct age *age = arg;
	getinfo_fn get = (getinfo_fn) entry("fi_getinfo", age->version);
	freeinfo_fn release = (freeinfo_fn) entry("fi_freeinfo", age->version);
	struct fi_info *hints = make_info(age), *got = NULL;
	int ret;

	soil_memory();
	ret = get(age->api, NULL, NULL, 0, hints, &got);
	CHECK(ret == 0 && got, "returned %d", ret);
	CHECK(got->domain_attr->cq_cnt == age->empty, "the provider saw empty 0x%zx, want 0x%llx", got->domain_attr->cq_cnt,
	      (unsigned long long) age->empty);
	same_info(age, got, hints);
	CHECK(got->fabric_attr->prov_version == FI_VERSION(7, 5), "prov_version 0x%x", got->fabric_attr->prov_version);
	CHECK(got->fabric_attr->api_version == age->api, "api_version 0x%x", got->fabric_attr->api_version);
	release(got);
	CHECK(live_nics == 0, "%d nics left", live_nics);

	ret = get(FI_VERSION(3, 0), NULL, NULL, 0, hints, &got);
	CHECK(ret == -FI_ENOSYS, "API 3.0 returned %d", ret);
	hints = guarded(age->info);
	hints->fabric_attr = guarded(age->fabric);
	hints->fabric_attr->prov_name = guarded_text("nobody");
	ret = get(age->api, NULL, NULL, 0, hints, &got);
	CHECK(ret == -FI_ENODATA, "an unknown provider gave %d", ret);
	ret = get(age->api, NULL, NULL, 0, NULL, &got);
	CHECK(ret == 0 && got, "no hints: %d", ret);
	release(got);
}

static void fabric(void *arg)
{
	const char *version = arg;
	fabric_fn open_fabric = (fabric_fn) entry("fi_fabric", version);
	uint32_t want = strcmp(version, "FABRIC_1.0") ? FI_VERSION(1, 14) : FI_VERSION(1, 0);
	struct fi_fabric_attr *attr = guarded(sizeof(*attr));
	struct fid_fabric *got = NULL;
	int context, ret;

	attr->name = guarded_text("old-fabric");
	attr->prov_name = guarded_text("echo");
	attr->api_version = FI_VERSION(1, 14); /* in ABI 1.0 these bytes are padding */
	ret = open_fabric(attr, &got, &context);
	CHECK(ret == 0 && got, "returned %d", ret);
	CHECK(got->api_version == want, "api_version 0x%x, want 0x%x", got->api_version, want);
	CHECK(got->fid.context == &context, "context lost");
	CHECK(fi_close(&got->fid) == 0, "close");
	ret = open_fabric(NULL, &got, NULL);
	CHECK(ret == -FI_EINVAL, "NULL returned %d", ret);
}

static void distinct(void *arg)
{
	size_t i, j, n = age_count;
	const char *name = arg;

	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			CHECK(entry(name, ages[i].version) != entry(name, ages[j].version), "%s and %s are one function",
			      ages[i].version, ages[j].version);
	CHECK(dlsym(library, name) == entry(name, "FABRIC_1.9"), "the default is not FABRIC_1.9");
}

int main(int argc, char **argv)
{
	char name[64];
	size_t i;
	int failed = 0;

	if (argc != 2 || !(library = dlopen(argv[1], RTLD_NOW))) {
		printf("FAIL old-abi: %s\n", dlerror());
		return 1;
	}
	if (!dlvsym(library, "fi_getinfo", NEWEST))
		age_count--;
	for (i = 0; i < age_count; i++) {
		snprintf(name, sizeof(name), "fi_dupinfo@%s", ages[i].version);
		failed += run_case(name, dupinfo, (void *) &ages[i]);
		snprintf(name, sizeof(name), "fi_getinfo@%s", ages[i].version);
		failed += run_case(name, getinfo, (void *) &ages[i]);
	}
	failed += run_case("fi_fabric@FABRIC_1.0", fabric, "FABRIC_1.0");
	failed += run_case("fi_fabric@FABRIC_1.1", fabric, "FABRIC_1.1");
	failed += run_case("fi_getinfo-versions-differ", distinct, "fi_getinfo");
	failed += run_case("fi_dupinfo-versions-differ", distinct, "fi_dupinfo");
	return failed != 0;
}

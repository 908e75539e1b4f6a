/*
 * fi_tostr(3): the text of filled values of every datatype: every bit of a set, every value of an enum and beyond,
 * attributes, objects and infos, and all of them cut short. Prints the same on every libfabric.so.1. The texts of addresses
 * are tostr_addresses.c's.
 */
#include <netinet/in.h>
#include <stddef.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>

#include "tostr.h"

#define TEXT_MAX 8192

/* Any number will do where a pointer is shown and never followed. */
#define MARK(n) ((void *)(uintptr_t)(n))

static void show_all(const char *label, const void *data, enum fi_type type, const void *hidden)
{
	show(label, fi_tostr(data, type), hidden);
}

/* The text cut to every length: what fits, and that nothing is written beyond. */
static void show_cuts(const char *label, const void *data, enum fi_type type)
{
	static char whole[TEXT_MAX], cut[TEXT_MAX];
	uint32_t sum = 0;
	size_t len, i, full, other = 0;

	if (!fi_tostr_r(whole, sizeof whole, data, type)) {
		printf("%s: no text\n", label);
		return;
	}
	full = strlen(whole);
	for (len = 1; len <= full + 3; len++) {
		memset(cut, 0x7e, sizeof cut);
		if (fi_tostr_r(cut, len, data, type) != cut)
			printf("%s: cut to %zu: wrong pointer\n", label, len);
		for (i = len; i < sizeof cut; i++)
			if (cut[i] != 0x7e) {
				printf("%s: cut to %zu: written at %zu\n", label, len, i);
				break;
			}
		if (!memchr(cut, 0, len))
			printf("%s: cut to %zu: no end\n", label, len);
		/* Short texts are shown, long ones summed up. */
		if (full <= 48)
			printf("%s cut to %zu: <<%s>>\n", label, len, cut);
		for (i = 0; i < len && cut[i]; i++)
			sum = sum * 31 + (unsigned char)cut[i];
		sum = sum * 31 + (uint32_t)i;
		/* A list may end and an address go on where the whole text says something else. */
		if (strncmp(cut, whole, strlen(cut)))
			other++;
	}
	printf("%s cuts: %zu, %zu other than the whole, sum %08x\n", label, full + 3, other, (unsigned)sum);
}

static const struct { const char *name; enum fi_type type; } sets[] = {
	{ "caps", FI_TYPE_CAPS }, { "op_flags", FI_TYPE_OP_FLAGS }, { "msg_order", FI_TYPE_MSG_ORDER },
	{ "mode", FI_TYPE_MODE }, { "cq_event_flags", FI_TYPE_CQ_EVENT_FLAGS }, { "mr_mode", FI_TYPE_MR_MODE },
};

static void bits_of_sets(void)
{
	char label[64];
	uint64_t bits;
	size_t i;
	int bit;

	for (i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		for (bit = -1; bit < 64; bit++) {
			bits = bit < 0 ? 0 : 1ULL << bit;
			snprintf(label, sizeof label, "%s bit %d", sets[i].name, bit);
			show_all(label, &bits, sets[i].type, NULL);
		}
		bits = ~0ULL;
		show_all(sets[i].name, &bits, sets[i].type, NULL);
		show_cuts(sets[i].name, &bits, sets[i].type);
		bits = FI_MSG | FI_RMA | 1;
		show_cuts(sets[i].name, &bits, sets[i].type);
		bits = 0;
		show_cuts(sets[i].name, &bits, sets[i].type);
	}
}

static const struct { const char *name; enum fi_type type; int last; } enums[] = {
	{ "ep_type", FI_TYPE_EP_TYPE, 4 }, { "addr_format", FI_TYPE_ADDR_FORMAT, 19 },
	{ "threading", FI_TYPE_THREADING, 7 }, { "progress", FI_TYPE_PROGRESS, 5 },
	{ "protocol", FI_TYPE_PROTOCOL, 34 }, { "av_type", FI_TYPE_AV_TYPE, 4 },
	{ "atomic_type", FI_TYPE_ATOMIC_TYPE, 22 }, { "atomic_op", FI_TYPE_ATOMIC_OP, 22 },
	{ "eq_event", FI_TYPE_EQ_EVENT, 9 }, { "op_type", FI_TYPE_OP_TYPE, 13 },
	{ "collective_op", FI_TYPE_COLLECTIVE_OP, 11 }, { "hmem_iface", FI_TYPE_HMEM_IFACE, 8 },
	{ "cq_format", FI_TYPE_CQ_FORMAT, 7 }, { "log_level", FI_TYPE_LOG_LEVEL, 6 },
	{ "log_subsys", FI_TYPE_LOG_SUBSYS, 12 }, { "cq_wait_cond", FI_TYPE_CQ_WAIT_COND, 4 },
	{ "wait_obj", FI_TYPE_WAIT_OBJ, 9 },
};

static void values_of_enums(void)
{
	static const int far[] = { -1, 64, 255, 256, 257, INT32_MAX, INT32_MIN };
	char label[64];
	size_t i, k;
	int value;

	for (i = 0; i < sizeof enums / sizeof enums[0]; i++) {
		for (value = 0; value <= enums[i].last; value++) {
			snprintf(label, sizeof label, "%s %d", enums[i].name, value);
			show_all(label, &value, enums[i].type, NULL);
		}
		for (k = 0; k < sizeof far / sizeof far[0]; k++) {
			snprintf(label, sizeof label, "%s %d", enums[i].name, far[k]);
			show_all(label, &far[k], enums[i].type, NULL);
		}
		value = 1;
		show_cuts(enums[i].name, &value, enums[i].type);
	}
	for (value = FI_TYPE_WAIT_OBJ + 1; value < 40; value++)
		show_all("no datatype", &value, (enum fi_type)value, NULL);
	show_all("no datatype", &value, (enum fi_type)-1, NULL);
	show_cuts("no datatype", &value, (enum fi_type)-1);
}

/* Differs between releases: it only has to agree with fi_version. */
static void version(void)
{
	unsigned major, minor;
	int any = 0;

	if (sscanf(fi_tostr(&any, FI_TYPE_VERSION), "%u.%u.", &major, &minor) == 2 &&
	    FI_VERSION(major, minor) == fi_version())
		printf("version agrees\n");
	show_cuts("no version", NULL, FI_TYPE_VERSION);
}

static void nulls(void)
{
	uint64_t bits = FI_MSG;
	char buf[16] = "untouched";
	int type;

	for (type = FI_TYPE_INFO; type <= FI_TYPE_WAIT_OBJ; type++)
		if (fi_tostr(NULL, (enum fi_type)type))
			printf("a text of nothing for datatype %d\n", type);
	show("no data", fi_tostr_r(buf, sizeof buf, NULL, FI_TYPE_CAPS), NULL);
	show("no length", fi_tostr_r(buf, 0, &bits, FI_TYPE_CAPS), NULL);
	show("no buffer", fi_tostr_r(NULL, sizeof buf, &bits, FI_TYPE_CAPS), NULL);
	show("the buffer", buf, NULL);
	show("one byte", fi_tostr_r(buf, 1, &bits, FI_TYPE_CAPS), NULL);
}

/* --- attributes ------------------------------------------------------------------------------------------------- */

static struct fi_tx_attr tx;
static struct fi_rx_attr rx;
static struct fi_ep_attr ep;
static struct fi_domain_attr domain;
static struct fi_fabric_attr fabric;
static uint8_t auth_key[4] = { 1, 2, 3, 4 };
static char domain_name[] = "eth0", fabric_name[] = "192.0.2.0/24", prov_name[] = "tcp;ofi_rxm";

static void clear_attrs(void)
{
	memset(&tx, 0, sizeof tx);
	memset(&rx, 0, sizeof rx);
	memset(&ep, 0, sizeof ep);
	memset(&domain, 0, sizeof domain);
	memset(&fabric, 0, sizeof fabric);
}

static void fill_tx_rx(void)
{
	tx.caps = FI_MSG | FI_SEND | FI_HMEM;
	tx.mode = FI_CONTEXT | FI_CONTEXT2;
	tx.op_flags = FI_COMPLETION | FI_INJECT_COMPLETE;
	tx.msg_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_WAW;
	tx.comp_order = 11;
	tx.inject_size = 12;
	tx.size = 13;
	tx.iov_limit = 14;
	tx.rma_iov_limit = 15;
	tx.tclass = FI_TC_LOW_LATENCY;

	rx.caps = FI_TAGGED | FI_RECV;
	rx.mode = FI_RX_CQ_DATA;
	rx.op_flags = FI_MULTI_RECV;
	rx.msg_order = FI_ORDER_SAS;
	rx.comp_order = 21;
	rx.total_buffered_recv = 22;
	rx.size = 23;
	rx.iov_limit = 24;
}

static void fill_ep(void)
{
	ep.type = FI_EP_RDM;
	ep.protocol = FI_PROTO_RXM;
	ep.protocol_version = 1;
	ep.max_msg_size = SIZE_MAX;
	ep.msg_prefix_size = 31;
	ep.max_order_raw_size = 32;
	ep.max_order_war_size = 33;
	ep.max_order_waw_size = 34;
	ep.mem_tag_format = 0xaaaaULL;
	ep.tx_ctx_cnt = 35;
	ep.rx_ctx_cnt = 36;
	ep.auth_key_size = sizeof auth_key;
	ep.auth_key = auth_key;
}

static void fill_domain_fabric(void)
{
	domain.domain = MARK(0x41);
	domain.name = domain_name;
	domain.threading = FI_THREAD_DOMAIN;
	domain.control_progress = FI_PROGRESS_MANUAL;
	domain.progress = FI_PROGRESS_AUTO;
	domain.resource_mgmt = FI_RM_ENABLED;
	domain.av_type = FI_AV_TABLE;
	domain.mr_mode = FI_MR_VIRT_ADDR | FI_MR_HMEM;
	domain.mr_key_size = 42;
	domain.cq_data_size = 43;
	domain.cq_cnt = 44;
	domain.ep_cnt = 45;
	domain.tx_ctx_cnt = 46;
	domain.rx_ctx_cnt = 47;
	domain.max_ep_tx_ctx = 48;
	domain.max_ep_rx_ctx = 49;
	domain.max_ep_stx_ctx = 50;
	domain.max_ep_srx_ctx = 51;
	domain.cntr_cnt = 52;
	domain.mr_iov_limit = 53;
	domain.caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	domain.mode = FI_ASYNC_IOV;
	domain.auth_key = auth_key;
	domain.auth_key_size = sizeof auth_key;
	domain.max_err_data = 54;
	domain.mr_cnt = 55;
	domain.tclass = 56;
	domain.max_ep_auth_key = 57;
	domain.max_group_id = 58;
	domain.max_cntr_value = 59;
	domain.max_err_cntr_value = 60;

	fabric.fabric = MARK(0x61);
	fabric.name = fabric_name;
	fabric.prov_name = prov_name;
	fabric.prov_version = FI_VERSION(122, 7);
	fabric.api_version = FI_VERSION(2, 1);
}

/* Every number as large as it gets, signs and all; strings long and not of any alphabet. */
static void fill_extremes(void)
{
	static char name[300];

	memset(&tx, 0xff, sizeof tx);
	memset(&rx, 0xff, sizeof rx);
	memset(&ep, 0xff, sizeof ep);
	memset(&domain, 0xff, sizeof domain);
	memset(&fabric, 0xff, sizeof fabric);
	memset(name, 'n', sizeof name - 1);
	ep.auth_key = NULL;
	domain.auth_key = NULL;
	domain.name = name;
	fabric.name = name;
	fabric.prov_name = NULL;
}

static void attrs(const char *label)
{
	puts(label);
	show_all("tx_attr", &tx, FI_TYPE_TX_ATTR, NULL);
	show_all("rx_attr", &rx, FI_TYPE_RX_ATTR, NULL);
	show_all("ep_attr", &ep, FI_TYPE_EP_ATTR, NULL);
	show_all("domain_attr", &domain, FI_TYPE_DOMAIN_ATTR, NULL);
	show_all("fabric_attr", &fabric, FI_TYPE_FABRIC_ATTR, NULL);
	show_cuts("tx_attr", &tx, FI_TYPE_TX_ATTR);
	show_cuts("rx_attr", &rx, FI_TYPE_RX_ATTR);
	show_cuts("ep_attr", &ep, FI_TYPE_EP_ATTR);
	show_cuts("domain_attr", &domain, FI_TYPE_DOMAIN_ATTR);
	show_cuts("fabric_attr", &fabric, FI_TYPE_FABRIC_ATTR);
}

static void attributes(void)
{
	clear_attrs();
	attrs("empty attributes");
	fill_tx_rx();
	fill_ep();
	fill_domain_fabric();
	attrs("filled attributes");
	ep.tx_ctx_cnt = FI_SHARED_CONTEXT;
	ep.rx_ctx_cnt = FI_SHARED_CONTEXT;
	show_all("shared contexts", &ep, FI_TYPE_EP_ATTR, NULL);
	fill_extremes();
	attrs("extreme attributes");
}

static void open_attributes(void)
{
	struct fi_av_attr av;
	struct fi_cq_attr cq;
	struct fi_cntr_attr cntr;
	struct fi_mr_attr mr;
	struct fi_cq_err_entry err;
	int round;

	for (round = 0; round < 3; round++) {
		memset(&av, round == 2 ? 0xff : 0, sizeof av);
		memset(&cq, round == 2 ? 0xff : 0, sizeof cq);
		memset(&cntr, round == 2 ? 0xff : 0, sizeof cntr);
		memset(&mr, round == 2 ? 0xff : 0, sizeof mr);
		memset(&err, round == 2 ? 0xff : 0, sizeof err);
		av.name = NULL;
		if (round == 1) {
			av.type = FI_AV_MAP;
			av.rx_ctx_bits = 1;
			av.count = 2;
			av.ep_per_node = 3;
			av.name = "peers";
			av.map_addr = MARK(4);
			av.flags = FI_EVENT | FI_SYMMETRIC;
			cq.size = 5;
			cq.flags = FI_AFFINITY;
			cq.format = FI_CQ_FORMAT_TAGGED;
			cq.wait_obj = FI_WAIT_FD;
			cq.signaling_vector = -6;
			cq.wait_cond = FI_CQ_COND_THRESHOLD;
			cntr.events = FI_CNTR_EVENTS_BYTES;
			cntr.wait_obj = FI_WAIT_YIELD;
			cntr.flags = 0x7;
			mr.mr_iov = MARK(8);
			mr.iov_count = 9;
			mr.access = FI_READ | FI_REMOTE_WRITE;
			mr.offset = 10;
			mr.requested_key = 11;
			mr.context = MARK(12);
			mr.auth_key_size = 13;
			mr.iface = FI_HMEM_ZE;
			err.op_context = MARK(14);
			err.flags = FI_RECV;
			err.len = 15;
			err.buf = MARK(16);
			err.data = 17;
			err.tag = 18;
			err.olen = 19;
			err.err = -FI_ETRUNC;
			err.prov_errno = 20;
			err.err_data = MARK(21);
			err.err_data_size = 22;
		}
		show_all("av_attr", &av, FI_TYPE_AV_ATTR, NULL);
		show_all("cq_attr", &cq, FI_TYPE_CQ_ATTR, NULL);
		show_all("cntr_attr", &cntr, FI_TYPE_CNTR_ATTR, NULL);
		show_all("mr_attr", &mr, FI_TYPE_MR_ATTR, NULL);
		show_all("cq_err_entry", &err, FI_TYPE_CQ_ERR_ENTRY, NULL);
		show_cuts("av_attr", &av, FI_TYPE_AV_ATTR);
		show_cuts("cq_attr", &cq, FI_TYPE_CQ_ATTR);
		show_cuts("cntr_attr", &cntr, FI_TYPE_CNTR_ATTR);
		show_cuts("mr_attr", &mr, FI_TYPE_MR_ATTR);
		show_cuts("cq_err_entry", &err, FI_TYPE_CQ_ERR_ENTRY);
	}
}

/* --- objects ---------------------------------------------------------------------------------------------------- */

/* As providers write theirs: after what stands in the buffer already. */
static int appending_tostr(const struct fid *fid, char *buf, size_t len)
{
	size_t used = strlen(buf);

	(void)fid;
	if (used < len)
		snprintf(buf + used, len - used, "    object: speaks\n");
	return 0;
}

static void objects(void)
{
	struct fi_ops none = { .size = sizeof none };
	struct fi_ops old = { .size = offsetof(struct fi_ops, tostr), .tostr = appending_tostr };
	struct fi_ops own = { .size = sizeof own, .tostr = appending_tostr };
	struct fid object = { .fclass = FI_CLASS_EP };

	show_all("fid without ops", &object, FI_TYPE_FID, &object);
	object.ops = &none;
	show_all("fid without op", &object, FI_TYPE_FID, &object);
	object.ops = &old;
	show_all("fid of an old program", &object, FI_TYPE_FID, &object);
	object.ops = &own;
	show_all("fid that speaks", &object, FI_TYPE_FID, &object);
	show_cuts("fid that speaks", &object, FI_TYPE_FID);
}

/* --- infos ------------------------------------------------------------------------------------------------------ */

static void infos(void)
{
	struct fi_ops none = { .size = sizeof none };
	struct fi_ops own = { .size = sizeof own, .tostr = appending_tostr };
	struct fid_nic nic = { .fid = { .fclass = FI_CLASS_NIC, .ops = &own } };
	struct fid handle = { .fclass = FI_CLASS_CONNREQ, .ops = &none };
	struct sockaddr_in src = { .sin_family = AF_INET, .sin_port = 0x1234 };
	struct sockaddr_in dest = { .sin_family = AF_INET, .sin_port = 0x5678 };
	struct fi_info info;
	struct fi_info *empty = fi_allocinfo();

	show_all("allocated info", empty, FI_TYPE_INFO, NULL);
	show_cuts("allocated info", empty, FI_TYPE_INFO);
	fi_freeinfo(empty);

	memset(&info, 0, sizeof info);
	show_all("empty info", &info, FI_TYPE_INFO, NULL);
	show_cuts("empty info", &info, FI_TYPE_INFO);

	clear_attrs();
	fill_tx_rx();
	fill_ep();
	fill_domain_fabric();
	info.caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV;
	info.mode = FI_MSG_PREFIX;
	info.addr_format = FI_SOCKADDR_IN;
	info.src_addrlen = sizeof src;
	info.dest_addrlen = sizeof dest;
	info.src_addr = &src;
	info.dest_addr = &dest;
	info.tx_attr = &tx;
	info.rx_attr = &rx;
	info.ep_attr = &ep;
	info.domain_attr = &domain;
	info.fabric_attr = &fabric;
	show_all("filled info", &info, FI_TYPE_INFO, NULL);
	show_cuts("filled info", &info, FI_TYPE_INFO);

	info.handle = &handle;
	show_all("info with a handle", &info, FI_TYPE_INFO, &handle);
	info.handle = NULL;
	info.nic = &nic;
	show_all("info with a nic", &info, FI_TYPE_INFO, &nic);
	nic.fid.ops = &none;
	show_all("info with a silent nic", &info, FI_TYPE_INFO, &nic);
	info.nic = NULL;
	info.src_addr = NULL;
	show_all("length without address", &info, FI_TYPE_INFO, NULL);
}

int main(void)
{
	nulls();
	version();
	bits_of_sets();
	values_of_enums();
	attributes();
	open_attributes();
	objects();
	infos();
	return 0;
}

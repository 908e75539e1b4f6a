/* Endpoints of datagrams (FI_EP_DGRAM) on a card: what comes, what is dropped, what is refused, and who is told. */
#include <pthread.h>
#include <rdma/fi_cm.h>
#include "fabric.h"

#define ROOM 8192

static char memory[4][ROOM];

struct opened {
	struct bed bed;
	struct fid_mr *mr;
	void *desc;
	size_t prefix, most;
};

static void add_side(struct opened *o, const struct setup *s, int at)
{
	struct bed *bed = &o->bed;
	struct side *side = &bed->side[at];

	OK(fi_endpoint(bed->domain, bed->info, &side->ep, side));
	OK(open_cq(bed, s, &side->tx, NULL));
	OK(open_cq(bed, s, &side->rx, NULL));
	OK(fi_ep_bind(side->ep, &bed->av->fid, 0));
	OK(fi_ep_bind(side->ep, &side->tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(side->ep, &side->rx->fid, FI_RECV));
	bed->sides++;
}

/* Two endpoints; what is static is registered. */
static void open_some(struct opened *o, const struct setup *s)
{
	struct setup setup = *s;
	struct fi_info *hints;
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int i;

	memset(o, 0, sizeof(*o));
	setup.ep_type = FI_EP_DGRAM;
	setup.caps = FI_MSG | s->more_caps;
	hints = hints_for(&setup);
	hints->mode |= FI_MSG_PREFIX;
	hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	OK(fi_getinfo(api_version(), NULL, NULL, 0, hints, &o->bed.info));
	fi_freeinfo(hints);
	o->prefix = o->bed.info->ep_attr->msg_prefix_size;
	o->most = o->bed.info->ep_attr->max_msg_size;
	CHECK(o->prefix == 40 && o->most >= 256 && o->most < ROOM - 40, "prefix %zu, at most %zu bytes", o->prefix, o->most);
	OK(fi_fabric(o->bed.info->fabric_attr, &o->bed.fabric, NULL));
	OK(fi_domain(o->bed.fabric, o->bed.info, &o->bed.domain, NULL));
	OK(fi_av_open(o->bed.domain, &av, &o->bed.av, NULL));
	OK(fi_mr_reg(o->bed.domain, memory, sizeof(memory), FI_SEND | FI_RECV, 0, 0, 0, &o->mr, NULL));
	o->desc = fi_mr_desc(o->mr);
	for (i = 0; i < 2; i++)
		add_side(o, &setup, i);
}

static void enable_all(struct opened *o)
{
	int i;

	for (i = 0; i < o->bed.sides; i++) {
		struct side *side = &o->bed.side[i];

		OK(fi_enable(side->ep));
		learn_name(side);
		GIVES(1, fi_av_insert(o->bed.av, side->name, 1, &side->addr, 0, NULL));
	}
}

static void open_both(struct opened *o)
{
	struct setup s = { 0 };

	open_some(o, &s);
	enable_all(o);
}

static void close_both(struct opened *o)
{
	close_eps(&o->bed);
	OK(fi_close(&o->mr->fid));
	close_bed(&o->bed);
}

/* One datagram from side 0 to side 1, to see that both work. */
static void works(struct opened *o, size_t len, unsigned seed)
{
	struct side *from = &o->bed.side[0], *to = &o->bed.side[1];
	struct fi_cq_tagged_entry entry;

	POST(&o->bed, fi_recv(to->ep, memory[1], o->prefix + len, o->desc, FI_ADDR_UNSPEC, ctx(1)));
	fill(memory[0], len, seed);
	POST(&o->bed, fi_send(from->ep, memory[0], len, o->desc, to->addr, ctx(2)));
	COMPLETION(&o->bed, from->tx, ctx(2));
	entry = COMPLETION(&o->bed, to->rx, ctx(1));
	CHECK(entry.len == o->prefix + len && entry.flags == (FI_MSG | FI_RECV), "%zu bytes, flags %#lx", entry.len,
	      (long) entry.flags);
	SAME(memory[1] + o->prefix, len, seed);
}

static void datagrams_of_each_size_come(void)
{
	struct opened o;
	size_t sizes[7], i;

	open_both(&o);
	sizes[0] = 0;
	sizes[1] = 1;
	sizes[2] = 8;
	sizes[3] = o.bed.info->tx_attr->inject_size;
	sizes[4] = sizes[3] + 1;
	sizes[5] = o.most - 1;
	sizes[6] = o.most;
	for (i = 0; i < 7; i++)
		works(&o, sizes[i], (unsigned) i);
	close_both(&o);
}

static void injected_ones_and_data(void)
{
	struct fi_cq_tagged_entry entry;
	struct opened o;
	char few[64];
	int i;

	open_both(&o);
	for (i = 0; i < 4; i++)
		POST(&o.bed, fi_recv(o.bed.side[1].ep, memory[i], o.prefix + 64, o.desc, FI_ADDR_UNSPEC, ctx(i)));
	for (i = 0; i < 4; i++) {
		fill(few, sizeof(few), (unsigned) i);
		if (i % 2)
			POST(&o.bed, fi_injectdata(o.bed.side[0].ep, few, sizeof(few), 0x89abcdef, o.bed.side[1].addr));
		else
			POST(&o.bed, fi_inject(o.bed.side[0].ep, few, sizeof(few), o.bed.side[1].addr));
		memset(few, 0, sizeof(few));
	}
	for (i = 0; i < 4; i++) {
		entry = COMPLETION(&o.bed, o.bed.side[1].rx, ctx(i));
		SAME(memory[i] + o.prefix, 64, (unsigned) i);
		CHECK(!(entry.flags & FI_REMOTE_CQ_DATA) == !(i % 2) && (i % 2 == 0 || entry.data == 0x89abcdef),
		      "flags %#lx, data %#lx", (long) entry.flags, (long) entry.data);
	}
	NO_COMPLETION(&o.bed, o.bed.side[0].tx);
	close_both(&o);
}

static void without_a_receive_it_is_dropped(void)
{
	struct opened o;

	open_both(&o);
	POST(&o.bed, fi_send(o.bed.side[0].ep, memory[0], 100, o.desc, o.bed.side[1].addr, ctx(3)));
	COMPLETION(&o.bed, o.bed.side[0].tx, ctx(3));
	settle(&o.bed);
	/* What is posted now gets the next. */
	works(&o, 200, 9);
	NO_COMPLETION(&o.bed, o.bed.side[1].rx);
	close_both(&o);
}

static void what_is_too_long_is_refused(void)
{
	size_t inject;
	struct opened o;

	open_both(&o);
	inject = o.bed.info->tx_attr->inject_size;
	GIVES(-FI_EMSGSIZE, fi_send(o.bed.side[0].ep, memory[0], o.most + 1, o.desc, o.bed.side[1].addr, ctx(1)));
	GIVES(-FI_EMSGSIZE, fi_inject(o.bed.side[0].ep, memory[0], inject + 1, o.bed.side[1].addr));
	GIVES(-FI_EINVAL, fi_recv(o.bed.side[1].ep, memory[1], o.prefix - 1, o.desc, FI_ADDR_UNSPEC, ctx(1)));
	works(&o, 10, 1);
	close_both(&o);
}

/* The device drops it, or fails the receive: then a later receive works nevertheless. */
static void a_receive_that_is_too_short(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	struct opened o;
	ssize_t ret;
	int i;

	open_both(&o);
	memset(memory[2], 7, 200);
	POST(&o.bed, fi_recv(o.bed.side[1].ep, memory[2], o.prefix + 8, o.desc, FI_ADDR_UNSPEC, ctx(5)));
	POST(&o.bed, fi_send(o.bed.side[0].ep, memory[0], 100, o.desc, o.bed.side[1].addr, ctx(3)));
	COMPLETION(&o.bed, o.bed.side[0].tx, ctx(3));
	settle(&o.bed);
	ret = fi_cq_read(o.bed.side[1].rx, &entry, 1);
	if (ret == -FI_EAVAIL) {
		GIVES(1, fi_cq_readerr(o.bed.side[1].rx, &err, 0));
		CHECK(err.op_context == ctx(5) && err.err > 0 && err.err != FI_ECANCELED, "errno %d", err.err);
	} else {
		/* It still waits, for one that fits. */
		GIVES(-FI_EAGAIN, ret);
		fill(memory[0], 8, 4);
		POST(&o.bed, fi_send(o.bed.side[0].ep, memory[0], 8, o.desc, o.bed.side[1].addr, ctx(4)));
		COMPLETION(&o.bed, o.bed.side[0].tx, ctx(4));
		COMPLETION(&o.bed, o.bed.side[1].rx, ctx(5));
		SAME(memory[2] + o.prefix, 8, 4);
	}
	for (i = (int) o.prefix + 8; i < 200; i++)
		CHECK(memory[2][i] == 7, "byte %d behind the receive was written", i);
	works(&o, 300, 2);
	close_both(&o);
}

static void addresses_have_a_text(void)
{
	struct fi_info *hints, *info;
	struct setup s = { .ep_type = FI_EP_DGRAM, .caps = FI_MSG };
	struct opened o;
	char text[128], back[64];
	size_t len = sizeof(text);
	struct side *side;

	open_both(&o);
	side = &o.bed.side[1];
	CHECK(side->name_len == 32 && o.bed.info->addr_format == FI_ADDR_IB_UD, "%zu bytes", side->name_len);
	CHECK(fi_av_straddr(o.bed.av, side->name, text, &len) == text && !strncmp(text, "fi_addr_ib_ud://", 16), "%s", text);
	len = sizeof(back);
	OK(fi_av_lookup(o.bed.av, side->addr, back, &len));
	CHECK(len == 32 && !memcmp(back, side->name, 32), "another address");
	hints = hints_for(&s);
	hints->mode |= FI_MSG_PREFIX;
	hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	OK(fi_getinfo(api_version(), text, NULL, 0, hints, &info));
	CHECK(info->dest_addrlen == 32 && !memcmp(info->dest_addr, side->name, 32), "the text names another address");
	fi_freeinfo(info);
	GIVES(-FI_ENODATA, fi_getinfo(api_version(), "192.168.77.1", NULL, 0, hints, &info));
	fi_freeinfo(hints);
	close_both(&o);
}

static void addresses_that_lead_nowhere(void)
{
	struct opened o;
	fi_addr_t addr = 0;
	char name[32] = { 0 };

	open_both(&o);
	GIVES(0, fi_av_insert(o.bed.av, name, 1, &addr, 0, NULL));
	CHECK(addr == FI_ADDR_NOTAVAIL, "%#lx", (long) addr);
	/* A machine that does not answer: the device finds no way to it. */
	memcpy(name, o.bed.side[1].name, sizeof(name));
	memcpy(name, (char[16]) { [10] = (char) 0xff, (char) 0xff, (char) 192, (char) 168, 77, (char) 200 }, 16);
	GIVES(0, fi_av_insert(o.bed.av, name, 1, &addr, 0, NULL));
	CHECK(addr == FI_ADDR_NOTAVAIL, "%#lx", (long) addr);
	GIVES(-FI_EINVAL, fi_send(o.bed.side[0].ep, memory[0], 8, o.desc, 77, ctx(1)));
	works(&o, 8, 1);
	OK(fi_av_remove(o.bed.av, &o.bed.side[1].addr, 1, 0));
	GIVES(-FI_EINVAL, fi_send(o.bed.side[0].ep, memory[0], 8, o.desc, o.bed.side[1].addr, ctx(1)));
	GIVES(1, fi_av_insert(o.bed.av, o.bed.side[1].name, 1, &o.bed.side[1].addr, 0, NULL));
	works(&o, 8, 2);
	close_both(&o);
}

static void the_source_is_told(void)
{
	struct setup s = { .more_caps = FI_SOURCE };
	struct fi_cq_tagged_entry entry;
	struct opened o;
	fi_addr_t from;
	long until;
	ssize_t ret;
	int i;

	open_some(&o, &s);
	enable_all(&o);
	for (i = 0; i < 2; i++) {
		/* The second time its address has been removed. */
		POST(&o.bed, fi_recv(o.bed.side[1].ep, memory[1], 100, o.desc, FI_ADDR_UNSPEC, ctx(1)));
		POST(&o.bed, fi_send(o.bed.side[0].ep, memory[0], 8, o.desc, o.bed.side[1].addr, ctx(2)));
		COMPLETION(&o.bed, o.bed.side[0].tx, ctx(2));
		until = now_ms() + GIVE_UP_MS;
		while ((ret = fi_cq_readfrom(o.bed.side[1].rx, &entry, 1, &from)) == -FI_EAGAIN && now_ms() < until)
			progress(&o.bed);
		GIVES(1, ret);
		CHECK(from == (i ? FI_ADDR_NOTAVAIL : o.bed.side[0].addr), "from %#lx", (long) from);
		if (i == 0)
			OK(fi_av_remove(o.bed.av, &o.bed.side[0].addr, 1, 0));
	}
	close_both(&o);
}

static void counters_count(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct setup s = { 0 };
	struct fid_cntr *cntr[2];
	struct opened o;
	int i;

	open_some(&o, &s);
	for (i = 0; i < 2; i++) {
		OK(fi_cntr_open(o.bed.domain, &attr, &cntr[i], NULL));
		OK(fi_ep_bind(o.bed.side[i].ep, &cntr[i]->fid, i ? FI_RECV : FI_SEND));
	}
	enable_all(&o);
	for (i = 0; i < 3; i++)
		works(&o, 8, (unsigned) i);
	OK(fi_cntr_wait(cntr[0], 3, (int) GIVE_UP_MS));
	OK(fi_cntr_wait(cntr[1], 3, (int) GIVE_UP_MS));
	close_eps(&o.bed);
	OK(fi_close(&cntr[0]->fid));
	OK(fi_close(&cntr[1]->fid));
	close_both(&o);
}

static pid_t reader;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *read_one(void *arg)
{
	struct opened *o = arg;
	struct fi_cq_tagged_entry entry;

	pthread_mutex_lock(&lock);
	reader = thread_id();
	pthread_mutex_unlock(&lock);
	GIVES(1, fi_cq_sread(o->bed.side[1].rx, &entry, 1, NULL, (int) GIVE_UP_MS));
	CHECK(entry.op_context == ctx(1), "another receive");
	return NULL;
}

static void a_datagram_wakes_a_reader(void)
{
	struct setup s = { .wait_obj = FI_WAIT_FD };
	struct opened o;
	pthread_t thread;
	pid_t seen;

	open_some(&o, &s);
	enable_all(&o);
	POST(&o.bed, fi_recv(o.bed.side[1].ep, memory[1], 100, o.desc, FI_ADDR_UNSPEC, ctx(1)));
	CHECK(pthread_create(&thread, NULL, read_one, &o) == 0, "pthread_create");
	do {
		pthread_mutex_lock(&lock);
		seen = reader;
		pthread_mutex_unlock(&lock);
	} while (!seen);
	until_asleep(seen);
	POST(&o.bed, fi_send(o.bed.side[0].ep, memory[0], 8, o.desc, o.bed.side[1].addr, ctx(2)));
	pthread_join(thread, NULL);
	COMPLETION(&o.bed, o.bed.side[0].tx, ctx(2));
	close_both(&o);
}

static const struct test tests[] = {
	TEST(datagrams_of_each_size_come), TEST(injected_ones_and_data), TEST(without_a_receive_it_is_dropped),
	TEST(what_is_too_long_is_refused), TEST(a_receive_that_is_too_short), TEST(addresses_have_a_text),
	TEST(addresses_that_lead_nowhere), TEST(the_source_is_told), TEST(counters_count), TEST(a_datagram_wakes_a_reader),
};

CASES(tests)

/*
 * One of two processes that send datagrams (FI_EP_DGRAM) to each other: there, looked at, and back, by any libfabric.so.1.
 *   datagram_pair ME FOLDER     ME: 0 or 1; the two leave their names in the folder
 */
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "die.h"
#include "ends.h"

#define ROUNDS 12
#define RECEIVES 8
#define MOST 4096
#define GIVE_UP_S 60

static char received[RECEIVES][MOST + 64], sent[MOST];
static struct base base;
static struct end end;
static struct fid_mr *mrs[2];
static size_t prefix;

static struct fi_info *datagrams(void)
{
	struct wish wish = { .provider = "verbs", .caps = FI_MSG, .mode = CONTEXTS | FI_MSG_PREFIX | FI_RX_CQ_DATA };
	struct fi_info *hints = hints_of(&wish), *info;

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	OK(fi_getinfo(api_version(), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void receive(int at)
{
	OK(fi_recv(end.ep, received[at], sizeof(received[at]), fi_mr_desc(mrs[0]), FI_ADDR_UNSPEC, received[at]));
}

/* Waits on the queue, and looks at the time. */
static struct fi_cq_data_entry next(void)
{
	struct fi_cq_data_entry entry = { 0 };
	time_t until = time(NULL) + GIVE_UP_S;
	ssize_t ret;

	while ((ret = fi_cq_sread(end.cq, &entry, 1, NULL, 1000)) == -FI_EAGAIN || ret == -FI_EINTR)
		if (time(NULL) > until)
			DIE("nothing completes");
	if (ret != 1)
		DIE("fi_cq_sread: %zd", ret);
	return entry;
}

/* The last datagram has left, one has come and was not looked at yet. */
static bool left = true, came;
static struct fi_cq_data_entry arrived;

static void step(void)
{
	struct fi_cq_data_entry entry = next();

	if (entry.op_context == (void *) sent) {
		left = true;
		return;
	}
	MUST(!came);
	came = true;
	arrived = entry;
}

static char byte(int round, size_t at)
{
	return (char) (round * 31 + (int) at);
}

/* Each round another way to send, and another size. */
static size_t size_of(int round)
{
	size_t most = base.info->ep_attr->max_msg_size, inject = base.info->tx_attr->inject_size;

	switch (round % 4) {
	case 0: return 1 + (size_t) round;
	case 1: return inject < 64 ? inject : 64;
	case 2: return 256;
	default: return most > MOST ? MOST : most;
	}
}

static void put(int round, fi_addr_t to)
{
	size_t len = size_of(round), i;

	while (!left)
		step();
	for (i = 0; i < len; i++)
		sent[i] = byte(round, i);
	left = round % 4 == 1;
	switch (round % 4) {
	case 0: OK(fi_send(end.ep, sent, len, fi_mr_desc(mrs[1]), to, sent)); break;
	case 1: OK(fi_inject(end.ep, sent, len, to)); break;
	default: OK(fi_senddata(end.ep, sent, len, fi_mr_desc(mrs[1]), 0x1000u + (unsigned) round, to, sent)); break;
	}
}

/* Until the datagram of this round is there. */
static void get(int round)
{
	size_t len = size_of(round), i;
	char *at;

	while (!came)
		step();
	came = false;
	at = arrived.op_context;
	if (arrived.len != prefix + len)
		DIE("round %d: %zu bytes, not %zu + %zu", round, arrived.len, prefix, len);
	for (i = 0; i < len; i++)
		if (at[prefix + i] != byte(round, i))
			DIE("round %d: byte %zu of %zu is wrong", round, i, len);
	if (round % 4 > 1 && (!(arrived.flags & FI_REMOTE_CQ_DATA) || arrived.data != 0x1000u + (unsigned) round))
		DIE("round %d: data %#lx, flags %#lx", round, (long) arrived.data, (long) arrived.flags);
	receive((int) ((at - received[0]) / (long) sizeof(received[0])));
}

static void write_name(const char *folder, int me)
{
	char tmp[256], path[256];
	FILE *file;

	snprintf(tmp, sizeof(tmp), "%s/.%d", folder, me);
	snprintf(path, sizeof(path), "%s/%d", folder, me);
	MUST((file = fopen(tmp, "w")) && fwrite(&end.name, sizeof(end.name), 1, file) == 1 && fclose(file) == 0);
	MUST(rename(tmp, path) == 0);
}

static struct name read_name(const char *folder, int other)
{
	time_t until = time(NULL) + GIVE_UP_S;
	struct name name;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d", folder, other);
	while (!(file = fopen(path, "r"))) {
		if (time(NULL) > until)
			DIE("the other side does not come");
		sched_yield();
	}
	MUST(fread(&name, sizeof(name), 1, file) == 1 && fclose(file) == 0);
	return name;
}

static void tell(const char *what, const struct name *name)
{
	char text[128];
	size_t len = sizeof(text);

	MUST(fi_av_straddr(base.av, name->bytes, text, &len));
	printf("%s %s\n", what, text);
}

int main(int argc, char **argv)
{
	struct wish wish = { .provider = "verbs", .cq_format = FI_CQ_FORMAT_DATA, .cq_wait = FI_WAIT_FD };
	int me = argc > 2 ? atoi(argv[1]) : 0, round;
	struct name other;
	fi_addr_t to;

	MUST(argc > 2);
	open_base(&base, datagrams());
	MUST(base.info->mode & FI_MSG_PREFIX);
	prefix = base.info->ep_attr->msg_prefix_size;
	printf("DOMAIN %s\n", base.info->domain_attr->name);
	printf("OFFER %s, %zu bytes, prefix %zu\n", base.info->fabric_attr->name, base.info->ep_attr->max_msg_size, prefix);
	OK(fi_mr_reg(base.domain, received, sizeof(received), FI_RECV, 0, 0, 0, &mrs[0], NULL));
	OK(fi_mr_reg(base.domain, sent, sizeof(sent), FI_SEND, 0, 1, 0, &mrs[1], NULL));
	open_end(&end, &base, &wish);
	for (round = 0; round < RECEIVES; round++)
		receive(round);
	write_name(argv[2], me);
	other = read_name(argv[2], !me);
	tell("MINE", &end.name);
	tell("PEER", &other);
	to = know(base.av, &other);
	for (round = 0; round < ROUNDS; round++) {
		if (me == 0)
			put(round, to);
		get(round);
		if (me == 1)
			put(round, to);
	}
	while (!left)
		step();
	close_end(&end);
	shut(mrs[0]);
	shut(mrs[1]);
	printf("ok %d datagrams there and back\n", ROUNDS);
	return 0;
}

/*
 * One of two hosts with a card each: the second streams messages and remote reads to the first over a connection
 * (FI_EP_MSG), looks at what comes back, and sees all of it end when something happens to the network or to the first.
 *   hosts listen ADDRESS
 *   hosts connect ADDRESS PEER [COMMAND]     COMMAND: run in mid-transfer; then everything must end in error
 */
#include <arpa/inet.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "die.h"
#include "ends.h"

#define PORT "7471"
#define WINDOW 8
#define LEN 8192
#define MESSAGES 400
#define GIVE_UP_S 60

static char memory[WINDOW][LEN], remote[LEN];
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mrs[2];
static time_t until;

/* Where `remote` of the listening side is. */
struct region {
	uint64_t addr, key;
};

static void look_at_the_time(const char *what)
{
	if (time(NULL) > until)
		DIE("%s: nothing happens", what);
}

static void open_all(const char *own, const char *peer)
{
	struct wish wish = { .provider = "verbs", .ep_type = FI_EP_MSG, .caps = FI_MSG | FI_RMA, .mode = CONTEXTS };
	struct fi_info *hints = hints_of(&wish);
	struct sockaddr_in *from = calloc(1, sizeof(*from));
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (peer) {
		from->sin_family = AF_INET;
		MUST(inet_pton(AF_INET, own, &from->sin_addr) == 1);
		hints->src_addr = from;
		hints->src_addrlen = sizeof(*from);
	}
	OK(fi_getinfo(api_version(), peer ? peer : own, PORT, peer ? 0 : FI_SOURCE, hints, &info));
	printf("%s on %s\n", own, info->domain_attr->name);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_eq_open(fabric, &attr, &eq, NULL));
}

static void open_endpoint(struct fi_info *for_whom)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA, .size = 64 };

	OK(fi_domain(fabric, for_whom, &domain, NULL));
	OK(fi_mr_reg(domain, memory, sizeof(memory), FI_SEND | FI_RECV | FI_READ, 0, 1, 0, &mrs[0], NULL));
	OK(fi_mr_reg(domain, remote, sizeof(remote), FI_REMOTE_READ, 0, 2, 0, &mrs[1], NULL));
	OK(fi_cq_open(domain, &attr, &cq, NULL));
	OK(fi_endpoint(domain, for_whom, &ep, NULL));
	OK(fi_ep_bind(ep, &eq->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
}

/* The next event, 0: none yet. */
static uint32_t event(struct fi_eq_cm_entry *entry, size_t len)
{
	uint32_t event;
	ssize_t ret = fi_eq_read(eq, &event, entry, len, 0);

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		DIE("fi_eq_read: %zd", ret);
	return event;
}

static uint32_t hear(uint32_t wanted, void *entry, size_t len)
{
	uint32_t heard;

	while (!(heard = event(entry, len))) {
		look_at_the_time("events");
		if (cq)
			fi_cq_read(cq, NULL, 0);
	}
	if (heard != wanted)
		DIE("event %u, not %u", heard, wanted);
	return heard;
}

static void fill(char *at, int seed)
{
	int i;

	for (i = 0; i < LEN; i++)
		at[i] = (char) (seed + i);
}

static void receive(int at)
{
	OK(fi_recv(ep, memory[at], LEN, fi_mr_desc(mrs[0]), 0, memory[at]));
}

static void listens(const char *own)
{
	char room[256];
	struct fi_eq_cm_entry *entry = (void *) room;
	struct fi_cq_data_entry done;
	struct region region;
	struct fid_pep *pep;
	int received = 0, i;
	ssize_t ret;

	open_all(own, NULL);
	OK(fi_passive_ep(fabric, info, &pep, NULL));
	OK(fi_pep_bind(pep, &eq->fid, 0));
	OK(fi_listen(pep));
	printf("LISTENING %d\n", (int) getpid());
	fflush(stdout);
	hear(FI_CONNREQ, entry, sizeof(room));
	open_endpoint(entry->info);
	fill(remote, 7);
	for (i = 0; i < WINDOW; i++)
		receive(i);
	region = (struct region) { (uint64_t) remote, fi_mr_key(mrs[1]) };
	OK(fi_accept(ep, &region, sizeof(region)));
	hear(FI_CONNECTED, entry, sizeof(room));
	while (event(entry, sizeof(room)) != FI_SHUTDOWN) {
		look_at_the_time("the end of the connection");
		while ((ret = fi_cq_read(cq, &done, 1)) == 1) {
			char *at = done.op_context;

			for (i = 0; i < LEN; i++)
				if (at[i] != (char) (received + i))
					DIE("message %d, byte %d is wrong", received, i);
			received++;
			receive((int) ((at - memory[0]) / LEN));
		}
		if (ret == -FI_EAVAIL)
			break;
	}
	printf("RECEIVED %d\n", received);
}

/* Every second operation is a message, the others read. Returns 0, -FI_EAGAIN or -FI_ENOTCONN. */
static ssize_t post(int number)
{
	static struct region region;
	char room[256];
	struct fi_eq_cm_entry *entry = (void *) room;
	char *at = memory[number % WINDOW];
	ssize_t ret;

	if (number == 0) {
		hear(FI_CONNECTED, entry, sizeof(room));
		memcpy(&region, entry->data, sizeof(region));
	}
	if (number % 2) {
		memset(at, 0, LEN);
		ret = fi_read(ep, at, LEN, fi_mr_desc(mrs[0]), 0, region.addr, region.key, at);
	} else {
		fill(at, number / 2);
		ret = fi_send(ep, at, LEN, fi_mr_desc(mrs[0]), 0, at);
	}
	if (ret && ret != -FI_EAGAIN && ret != -FI_ENOTCONN)
		DIE("operation %d: %zd", number, ret);
	return ret;
}

static void disturb(const char *command)
{
	int status = system(command);

	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	printf("DISTURBED by %s\n", command);
}

static void connects(const char *own, const char *peer, const char *command)
{
	int posted = 0, ended = 0, failed = 0, i;
	struct fi_cq_data_entry done;
	struct fi_cq_err_entry error = { 0 };
	time_t disturbed = 0;
	/* An operation has failed, or the connection has ended when none was under way: no more is posted. */
	bool over = false;
	ssize_t ret;

	open_all(own, peer);
	open_endpoint(info);
	OK(fi_connect(ep, info->dest_addr, NULL, 0));
	/* Operations complete in order. */
	while (over ? ended < posted : ended < MESSAGES || command) {
		if (time(NULL) > until)
			DIE("%d of %d operations ended%s", ended, posted, disturbed ? ", then the disturbance" : "");
		while (!over && posted - ended < WINDOW && (command || posted < MESSAGES)) {
			ret = post(posted);
			over = disturbed && ret == -FI_ENOTCONN;
			if (ret)
				break;
			posted++;
		}
		if (ended > MESSAGES / 2 && command && !disturbed) {
			disturb(command);
			disturbed = time(NULL);
		}
		ret = fi_cq_read(cq, &done, 1);
		if (ret == -FI_EAVAIL) {
			MUST(fi_cq_readerr(cq, &error, 0) == 1 && error.err > 0);
			if (!disturbed)
				DIE("operation %d: %s", ended, fi_strerror(error.err));
			if (!failed++)
				printf("first error: %s\n", fi_strerror(error.err));
			over = true;
			ended++;
		} else if (ret == 1) {
			for (i = 0; ended % 2 && i < LEN; i++)
				if (((char *) done.op_context)[i] != (char) (7 + i))
					DIE("read %d, byte %d is wrong", ended, i);
			ended++;
		}
	}
	if (command) {
		printf("ok %d operations ended, %d of them in error, %ld s after the disturbance\n", ended, failed,
		       (long) (time(NULL) - disturbed));
		return;
	}
	OK(fi_shutdown(ep, 0));
	printf("ok %d operations\n", ended);
}

int main(int argc, char **argv)
{
	until = time(NULL) + GIVE_UP_S;
	MUST(argc > 2);
	if (!strcmp(argv[1], "listen"))
		listens(argv[2]);
	else
		connects(argv[2], argv[3], argc > 4 ? argv[4] : NULL);
	return 0;
}

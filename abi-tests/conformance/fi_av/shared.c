/* Named AVs: what one process inserts, the other finds. */
#include <sys/socket.h>
#include "av.h"

/* One process makes a named AV and inserts, the other reads. */
static void shared(enum fi_av_type type)
{
	struct setup s = { .av_type = type };
	struct fi_av_attr attr = { .type = type, .count = 64 };
	char av_name[64], name[NAME_MAX_LEN], found[NAME_MAX_LEN];
	size_t len, found_len;
	struct fid_av *av;
	struct bed bed;
	fi_addr_t addrs[3];
	int fds[2], me, ret, status;
	pid_t other;

	snprintf(av_name, sizeof(av_name), "conformance-%d-%d", (int) getpid(), (int) type);
	attr.name = av_name;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	other = fork();
	me = other == 0;
	open_domain(&bed, &s);
	if (me == 0) {
		char names[3 * NAME_MAX_LEN];

		ret = fi_av_open(bed.domain, &attr, &av, NULL);
		if (lacking(ret))
			close(fds[0]), close(fds[1]);
		NEED(!lacking(ret), "named AVs: %s", fi_strerror(-ret));
		CHECK(ret == 0, "fi_av_open: %s", fi_strerror(-ret));
		made_up(&bed, 1, 3, names);
		GIVES(3, fi_av_insert(av, names, 3, addrs, 0, NULL));
		pipe_send(fds[0], &attr.map_addr, sizeof(attr.map_addr));
		pipe_send(fds[0], addrs, sizeof(addrs));
		CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status), "the reader crashed");
		if (status)
			_exit(CASE_FAILED); /* it has said why */
		OK(fi_close(&av->fid));
		close_bed(&bed);
		return;
	}
	case_is_second = 1;
	close(fds[0]);
	if (recv(fds[1], &attr.map_addr, sizeof(attr.map_addr), MSG_WAITALL) != sizeof(attr.map_addr))
		_exit(0);
	pipe_recv(fds[1], addrs, sizeof(addrs));
	attr.flags = FI_READ;
	ret = fi_av_open(bed.domain, &attr, &av, NULL);
	CHECK(ret == 0, "fi_av_open to read: %s", fi_strerror(-ret));
	for (ret = 0; ret < 3; ret++) {
		made_up_name(&bed, (unsigned) ret + 1, name, &len);
		found_len = sizeof(found);
		OK(fi_av_lookup(av, addrs[ret], found, &found_len));
		CHECK(is_address(&bed, found, name), "address %d differs in the other process", ret);
	}
	FAILS(fi_av_insert(av, name, 1, addrs, 0, NULL) == 1 ? 0 : -1); /* read-only */
	OK(fi_close(&av->fid));
	close_bed(&bed);
	_exit(0);
}

/* What one process inserted into a shared AV, the other sends to. */
static void shared_av_is_sent_to(void)
{
	struct setup s = { .sides = 1, .more_caps = FI_SHARED_AV };
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	char av_name[64], packed[NAME_MAX_LEN], in[8] = "", out[8] = "shared";
	int fds[2], me, status;
	struct bed bed;
	fi_addr_t addr;
	pid_t other;

	open_domain(&bed, &s); /* FI_SHARED_AV is there */
	close_bed(&bed);
	snprintf(av_name, sizeof(av_name), "conformance-%d-sent", (int) getpid());
	attr.name = av_name;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	other = fork();
	me = other == 0;
	case_is_second = me;
	open_domain(&bed, &s);
	if (me) { /* the writer is first */
		pipe_recv(fds[1], &attr.map_addr, sizeof(attr.map_addr));
		attr.flags = FI_READ;
	}
	OK(fi_av_open(bed.domain, &attr, &bed.av, NULL));
	bed.sides = 1;
	OK(fi_endpoint(bed.domain, bed.info, &bed.side[0].ep, NULL));
	OK(open_cq(&bed, &s, &bed.side[0].tx, NULL));
	OK(open_cq(&bed, &s, &bed.side[0].rx, NULL));
	OK(fi_ep_bind(bed.side[0].ep, &bed.av->fid, 0));
	OK(fi_ep_bind(bed.side[0].ep, &bed.side[0].tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(bed.side[0].ep, &bed.side[0].rx->fid, FI_RECV));
	OK(fi_enable(bed.side[0].ep));
	if (!me) {
		learn_name(&bed.side[0]);
		pack(&bed, packed, bed.side[0].name, bed.side[0].name_len);
		GIVES(1, fi_av_insert(bed.av, packed, 1, &addr, 0, NULL));
		pipe_send(fds[0], &attr.map_addr, sizeof(attr.map_addr));
		pipe_send(fds[0], &addr, sizeof(addr));
		POST(&bed, fi_trecv(bed.side[0].ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, ctx(1)));
		COMPLETION(&bed, bed.side[0].rx, ctx(1));
		CHECK(!strcmp(in, "shared"), "%.8s arrived", in);
	} else {
		pipe_recv(fds[1], &addr, sizeof(addr));
		POST(&bed, fi_tsend(bed.side[0].ep, out, sizeof(out), NULL, addr, 1, ctx(1)));
		COMPLETION(&bed, bed.side[0].tx, ctx(1));
	}
	meet(&bed, fds[me]);
	close_bed(&bed);
	if (me)
		_exit(0);
	CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status), "the reader crashed");
	if (WEXITSTATUS(status))
		_exit(CASE_FAILED); /* it has said why */
}

static void shared_table(void) { shared(FI_AV_TABLE); }
static void shared_map(void) { shared(FI_AV_MAP); }

static const struct test tests[] = {
	TEST(shared_table), TEST(shared_map), TEST(shared_av_is_sent_to),
};

CASES(tests)

/*
 * A link that goes down in the middle of a transfer (eth0). The last page to run: the connection ends while there is no way for
 * its goodbye, and after that the device hears of no other (hosts.sh says why).
 */
#include <rdma/fi_rma.h>
#include "connected.h"

#define POSTED 8

static char ours[1 << 16];

static void command(const char *text)
{
	CHECK(system(text) == 0, "%s", text);
}

/* The link is down in the middle of a transfer, for a moment: what is posted ends well or in error, and nothing hangs. */
static void a_link_that_is_down_hangs_nothing(void)
{
	struct setup s = { .caps = FI_MSG | FI_RMA };
	struct fid_mr *mr;
	struct wired w;
	int i, well = 0, ill = 0;
	long until;

	memset(&w, 0, sizeof(w));
	open_exchange(&w, &s);
	join_sides(&w, 0, 1);
	OK(fi_mr_reg(w.bed.domain, ours, sizeof(ours), FI_WRITE | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	command("ip link set eth0 down");
	for (i = 0; i < POSTED; i++)
		POST(&w.bed, fi_write(w.bed.side[0].ep, ours, 4096, NULL, 0, (uint64_t) ours + 8192, fi_mr_key(mr), ctx(i)));
	for (until = now_ms() + 60000; well + ill < POSTED && now_ms() < until;) {
		struct fi_cq_tagged_entry entry;
		struct fi_cq_err_entry err = { 0 };
		ssize_t ret = fi_cq_read(w.bed.side[0].tx, &entry, 1);

		if (ret == 1)
			well++;
		else if (ret == -FI_EAVAIL && fi_cq_readerr(w.bed.side[0].tx, &err, 0) == 1)
			ill++;
	}
	printf("INFO of %d writes with the link down %d ended well, %d in error, after %ld ms\n", POSTED, well, ill,
	       now_ms() - until + 60000);
	command("ip link set eth0 up");
	CHECK(well + ill == POSTED, "%d well, %d ill", well, ill);
	close_side(&w, 0);
	close_side(&w, 1);
	OK(fi_close(&mr->fid));
	close_wires(&w);
}

static const struct test tests[] = {
	TEST(a_link_that_is_down_hangs_nothing),
};

CASES(tests)

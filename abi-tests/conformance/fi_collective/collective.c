/* What the cases of this page share: members, each a process with an endpoint of its own. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include "collective.h"

struct common *common;
struct bed bed;
struct fid_eq *eq;
fi_addr_t addr[MOST];
int me, members;
enum kind kinds[MOST];
struct fid_ep *srx, *whole, *other_context, *rx_context;
const struct setup usual = { .caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE, .av_type = FI_AV_TABLE, .sides = 1, .strangers = true };

void everybody(void)
{
	long until = now_ms() + 3 * GIVE_UP_MS;
	int mine = ++common->here[me], i;

	__sync_synchronize();
	for (i = 0; i < members; i++)
		while (common->here[i] < mine) {
			CHECK(now_ms() < until, "member %d does not come", i);
			progress(&bed);
			sched_yield();
		}
	__sync_synchronize();
}

/* Side 0 is the second of two transmit contexts; of the receive contexts only some members open one. */
static void open_context(const struct setup *setup)
{
	struct side *side = &bed.side[0];

	open_av(&bed, setup);
	bed.sides = 1;
	bed.info->ep_attr->tx_ctx_cnt = bed.info->ep_attr->rx_ctx_cnt = 2;
	OK(fi_scalable_ep(bed.domain, bed.info, &whole, NULL));
	OK(fi_scalable_ep_bind(whole, &bed.av->fid, 0));
	OK(open_cq(&bed, setup, &side->tx, NULL));
	OK(open_cq(&bed, setup, &side->rx, NULL));
	OK(fi_tx_context(whole, 0, NULL, &other_context, NULL));
	OK(fi_tx_context(whole, 1, NULL, &side->ep, NULL));
	OK(fi_ep_bind(other_context, &side->tx->fid, FI_TRANSMIT | setup->tx_bind));
	OK(fi_ep_bind(side->ep, &side->tx->fid, FI_TRANSMIT | setup->tx_bind));
	OK(fi_enable(other_context));
	if (me % 2) {
		OK(fi_rx_context(whole, 0, NULL, &rx_context, NULL));
		OK(fi_ep_bind(rx_context, &side->rx->fid, FI_RECV));
		OK(fi_enable(rx_context));
	}
}

static void open_kind(const struct setup *setup)
{
	struct setup shares = *setup;

	switch (kinds[me]) {
	case PLAIN:
		open_sides(&bed, setup);
		break;
	case SHARES:
		shares.rx_ctx_cnt = FI_SHARED_CONTEXT;
		open_sides(&bed, &shares);
		OK(fi_srx_context(bed.domain, bed.info->rx_attr, &srx, NULL));
		OK(fi_ep_bind(bed.side[0].ep, &srx->fid, 0));
		break;
	case CONTEXT:
		open_context(setup);
		break;
	}
}

void close_one(struct fid_ep **ep)
{
	if (*ep)
		OK(fi_close(&(*ep)->fid));
	*ep = NULL;
}

void open_member(const struct setup *setup)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	char packed[NAME_MAX_LEN];
	int i;

	open_kind(setup);
	OK(fi_eq_open(bed.fabric, &attr, &eq, NULL));
	/* A context takes that of its endpoint too. */
	OK(fi_ep_bind(whole && me % 2 ? whole : bed.side[0].ep, &eq->fid, 0));
	if (whole) {
		struct side named = { .ep = whole };

		OK(fi_enable(bed.side[0].ep));
		learn_name(&named);
		memcpy(bed.side[0].name, named.name, sizeof(named.name));
		bed.side[0].name_len = named.name_len;
	} else {
		enable_sides(&bed, setup);
	}
	common->name_len[me] = bed.side[0].name_len;
	memcpy(common->name[me], bed.side[0].name, bed.side[0].name_len);
	everybody();
	for (i = 0; i < members; i++) {
		pack(&bed, packed, common->name[i], common->name_len[i]);
		GIVES(1, fi_av_insert(bed.av, packed, 1, &addr[i], 0, NULL));
	}
}

static void close_member(void)
{
	everybody();
	close_one(&bed.side[0].ep);
	close_one(&other_context);
	close_one(&rx_context);
	close_one(&whole);
	close_one(&srx);
	OK(fi_close(&eq->fid));
	close_bed(&bed);
}

static pid_t other[MOST];

void others_ended(void)
{
	int i, status;

	for (i = 1; i < members; i++) {
		CHECK(waitpid(other[i], &status, 0) == other[i], "waitpid");
		CHECK(!WIFSIGNALED(status) || i == common->killed, "member %d ended by signal %d", i, WTERMSIG(status));
		if (!WIFSIGNALED(status) && WEXITSTATUS(status))
			_exit(CASE_FAILED); /* it has said why */
	}
}

void in_group(int count, const struct setup *setup, void (*body)(void))
{
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(common != MAP_FAILED, "mmap");
	members = count;
	for (me = count - 1; me > 0; me--) {
		other[me] = fork();
		CHECK(other[me] >= 0, "fork");
		if (other[me] == 0) {
			case_is_second = 1;
			alarm(case_seconds);
			break;
		}
	}
	open_member(setup);
	body();
	close_member();
	if (me)
		_exit(0);
	others_ended();
	munmap(common, sizeof(*common));
}

void in_groups(void (*body)(void))
{
	static const int counts[] = { 1, 2, 3, 5 };
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		in_group(counts[i], &usual, body);
}

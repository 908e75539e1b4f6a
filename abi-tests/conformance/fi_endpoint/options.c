/* Options, and the sizes that an endpoint tells. */
#include "endpoint.h"

static void option_min_multi_recv(void)
{
	struct setup s = { .more_caps = FI_MULTI_RECV };
	size_t value = 1234, len = sizeof(value);
	struct bed bed;

	open_sides(&bed, &s);
	OK(fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	value = 0;
	OK(fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK(value == 1234 && len == sizeof(value), "%zu in %zu bytes", value, len);
	close_bed(&bed);
}

static void unknown_options(void)
{
	char value[64] = { 0 };
	size_t len = sizeof(value);
	struct bed bed;

	open_sides(&bed, &usual);
	GIVES(-FI_ENOPROTOOPT, fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, 12345, value, &len));
	GIVES(-FI_ENOPROTOOPT, fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, 12345, value, sizeof(size_t)));
	GIVES(-FI_ENOPROTOOPT, fi_getopt(&bed.side[0].ep->fid, 12345, FI_OPT_MIN_MULTI_RECV, value, &len));
	GIVES(-FI_ENOPROTOOPT, fi_setopt(&bed.side[0].ep->fid, 12345, FI_OPT_MIN_MULTI_RECV, value, sizeof(size_t)));
	close_bed(&bed);
}

static void option_of_a_wrong_size(void)
{
	struct setup s = { .more_caps = FI_MULTI_RECV };
	char value[64] = { 0 };
	size_t len = 1;
	struct bed bed;

	open_sides(&bed, &s);
	FAILS(fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, &len));
	FAILS(fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, 1));
	close_bed(&bed);
}

static void cm_data_size_is_read_only(void)
{
	size_t value = 8;
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(fi_setopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, sizeof(value)));
	close_bed(&bed);
}

#if HEADERS_2
/* Either there, and within the attributes, or refused in the documented way. */
static void size_options(void)
{
	static const int options[] = {
		FI_OPT_MAX_MSG_SIZE, FI_OPT_MAX_TAGGED_SIZE, FI_OPT_MAX_RMA_SIZE, FI_OPT_MAX_ATOMIC_SIZE,
		FI_OPT_INJECT_MSG_SIZE, FI_OPT_INJECT_TAGGED_SIZE, FI_OPT_INJECT_RMA_SIZE, FI_OPT_INJECT_ATOMIC_SIZE,
	};
	struct bed bed;
	unsigned i;

	open_sides(&bed, &usual);
	for (i = 0; i < sizeof(options) / sizeof(*options); i++) {
		size_t value = 0, len = sizeof(value);
		size_t limit = i < 4 ? bed.info->ep_attr->max_msg_size : bed.info->tx_attr->inject_size;
		int ret = fi_getopt(&bed.side[0].ep->fid, FI_OPT_ENDPOINT, options[i], &value, &len);

		if (ret == -FI_ENOPROTOOPT)
			continue;
		CHECK(ret == 0 && len == sizeof(value), "option %d: %s", options[i], fi_strerror(-ret));
		CHECK(value <= limit, "option %d: %zu is more than the %zu of the attributes", options[i], value, limit);
	}
	close_bed(&bed);
}
#endif

static void traffic_classes(void)
{
	int dscp;

	for (dscp = 0; dscp < 64; dscp++)
		CHECK(fi_tc_dscp_get(fi_tc_dscp_set((uint8_t) dscp)) == dscp, "dscp %d", dscp);
	CHECK(fi_tc_dscp_get(FI_TC_BULK_DATA) == 0, "a class that is no dscp");
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void size_left(void)
{
	struct bed bed;
	ssize_t left, i;

	open_bed(&bed, &usual);
	left = fi_rx_size_left(bed.side[0].ep);
	NEED(!lacking(left), "fi_rx_size_left: %s", fi_strerror((int) -left));
	CHECK(left >= 0, "fi_rx_size_left: %zd", left);
	for (i = 0; i < left && i < 2000; i++) /* so many go in without -FI_EAGAIN */
		OK(post_recv(bed.side[0].ep, in, 8, FI_ADDR_UNSPEC, 1, 0, ctx((int) i)));
	left = fi_tx_size_left(bed.side[0].ep);
	CHECK(left >= 0, "fi_tx_size_left: %zd", left);
	close_bed(&bed);
}

static void size_left_before_enable(void)
{
	struct bed bed;

	open_sides(&bed, &usual);
	FAILS(fi_rx_size_left(bed.side[0].ep));
	FAILS(fi_tx_size_left(bed.side[0].ep));
	close_bed(&bed);
}

static const struct test tests[] = {
	TEST(option_min_multi_recv), TEST(unknown_options), TEST(option_of_a_wrong_size),
	TEST(cm_data_size_is_read_only),
#if HEADERS_2
	TEST(size_options),
#endif
	TEST(traffic_classes), TEST(size_left), TEST(size_left_before_enable),
};

CASES(tests)

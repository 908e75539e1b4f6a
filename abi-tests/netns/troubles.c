/* What happens to networks and machines, and what two endpoints that stream both ways make of it. */
#include "stations.h"
#include <signal.h>

static struct station *a, *b;

/*
 * Whatever an earlier case has left: not all come to their end. While a link was down a host may have asked in vain who has an
 * address; whoever connects before it gives that up would be told that there is no route.
 */
static void repair(void)
{
	for (int host = 1; host <= 2 && !all_here(); host++) {
		net("link set h%d up", host);
		net("-n h%d link delete docker0 2>/dev/null || true", host);
		net("-n h%d link delete inside 2>/dev/null || true", host);
	}
	for (int host = 1; host <= 2 && !all_here(); host++)
		net("-n h%d neigh flush all", host);
}

static bool knows_peer(const struct station *station)
{
	return station->met == station->generation;
}

/* Both know each other, and stream. */
static void stream(void)
{
	UNTIL_SO(a, b, knows_peer(a) && knows_peer(b));
	a->order = b->order = STREAM;
}

static void start(void)
{
	begin(a);
	begin(b);
	stream();
	UNTIL_SO(a, b, a->received > 100 && b->received > 100);
}

static void stream_some(uint64_t count)
{
	uint64_t a_had = a->received, b_had = b->received;

	UNTIL_SO(a, b, a->received > a_had + count && b->received > b_had + count);
}

static void stream_on(void)
{
	stream_some(200);
}

static void sends_end(struct station *station)
{
	station->order = DRAIN;
	UNTIL_SO(station, station, station->idle);
}

/* What a station that has lost its peer is told of: each send ends, one at least with an error. */
static void sends_fail(struct station *station)
{
	UNTIL_SO(station, station, station->send_errors > 0);
	sends_end(station);
}

/* A lost peer is given up after three seconds: by the kernel's setting for a library that has none of its own. */
static void be_impatient(void)
{
	setenv("FI_TCP_SILENCE_TIMEOUT", "3000", 1);
	setenv("FI_TCP_CONNECT_TIMEOUT", "3000", 1);
	a->tcp_retries = b->tcp_retries = 3;
}

static void set_out(void)
{
	repair();
	a = two_stations();
	b = a + 1;
}

static void an_ordinary_day(void)
{
	set_out();
	start();
	stream_on();
	nothing_is_lost(a, b);
}

static void ipv6(void)
{
	set_out();
	a->node = "fd77::1";
	b->node = "fd77::2";
	start();
	stream_on();
	nothing_is_lost(a, b);
}

/* The cable of one host: that host has no carrier, the other only hears nothing. */
static void link_stays_down(void)
{
	set_out();
	be_impatient();
	start();
	net("link set h2 down");
	sends_fail(a);
	sends_fail(b);
	ends_well(a);
	ends_well(b);
}

static void start_connected(void)
{
	a->connected = b->connected = true;
	start();
}

/* Nothing stays under way, and the event queue says what has become of the connection, once. */
static void connection_ends(struct station *station)
{
	UNTIL_SO(station, station, station->shutdowns && !station->receiving);
	sends_end(station);
	ends_well(station);
	CHECK(station->shutdowns == 1, "FI_SHUTDOWN %u times", station->shutdowns);
}

static void connection_on_an_ordinary_day(void)
{
	set_out();
	start_connected();
	stream_on();
	nothing_is_lost(a, b);
}

static void connection_whose_link_stays_down(void)
{
	set_out();
	setenv("FI_TCP_SILENCE_TIMEOUT", "3000", 1);
	start_connected();
	net("link set h2 down");
	sends_fail(a);
	sends_fail(b);
	connection_ends(a);
	connection_ends(b);
}

/* Nobody sends, and both still hear that the other is gone. */
static void connection_at_rest_whose_link_stays_down(void)
{
	set_out();
	setenv("FI_TCP_SILENCE_TIMEOUT", "3000", 1);
	start_connected();
	sends_end(a);
	sends_end(b);
	UNTIL_SO(a, b, a->received == b->posted && b->received == a->posted);
	net("link set h2 down");
	connection_ends(a);
	connection_ends(b);
}

static void connection_whose_peer_is_killed(void)
{
	set_out();
	start_connected();
	kill_station(b, SIGKILL);
	bury(b);
	sends_fail(a);
	connection_ends(a);
}

static void connection_whose_link_comes_back(void)
{
	set_out();
	start_connected();
	net("link set h2 down");
	until_still(a, b);
	net("link set h2 up");
	stream_on();
	nothing_is_lost(a, b);
}

static void close_while_the_link_is_down(void)
{
	set_out();
	start();
	net("link set h2 down");
	until_still(a, b);
	ends_well(a);
	ends_well(b);
}

static void link_comes_back(void)
{
	set_out();
	start();
	net("link set h2 down");
	until_still(a, b);
	net("link set h2 up");
	stream_on();
	nothing_is_lost(a, b);
}

static void peer_is_killed(void)
{
	set_out();
	start();
	kill_station(b, SIGKILL);
	bury(b);
	sends_fail(a);
	ends_well(a);
}

/* A receive from anybody that has no message yet is not the lost peer's. */
static void receives_outlive_a_peer(void)
{
	set_out();
	be_impatient();
	start();
	sends_end(a);
	sends_end(b);
	UNTIL_SO(a, b, a->received == b->posted && b->received == a->posted);
	kill_station(b, SIGKILL);
	bury(b);
	a->order = STREAM;
	sends_fail(a);
	CHECK(!a->receive_errors, "%s", counts(a, b));
	ends_well(a);
}

static void peer_is_stopped(void)
{
	set_out();
	start();
	kill_station(b, SIGSTOP);
	until_still(a, b);
	kill_station(b, SIGCONT);
	stream_on();
	nothing_is_lost(a, b);
}

/* Another process at the same address and port is another peer: nothing of what was under way is for it. */
static void restart_peer(void)
{
	set_out();
	b->service = "17171";
}

static void peer_comes_again(void)
{
	start();
	kill_station(b, SIGKILL);
	bury(b);
	sends_end(a);
	a->generation = b->generation = a->generation + 1;
	b->order = MEET;
	begin(b);
	UNTIL_SO(a, b, knows_peer(b));
	a->order = MEET;
	stream();
	stream_on();
	nothing_is_lost(a, b);
}

static void peer_is_restarted(void)
{
	restart_peer();
	peer_comes_again();
}

static void peer_is_restarted_and_its_address_kept(void)
{
	restart_peer();
	a->keeps_address = true;
	peer_comes_again();
}

/* Nobody has the port. */
static void nobody_listens(void)
{
	set_out();
	be_impatient();
	begin(a);
	begin(b);
	UNTIL_SO(a, b, knows_peer(a) && knows_peer(b));
	kill_station(b, SIGKILL);
	bury(b);
	a->order = STREAM;
	sends_fail(a);
	ends_well(a);
}

/* Nobody has the address. */
static void nobody_answers(void)
{
	set_out();
	be_impatient();
	begin(a);
	begin(b);
	UNTIL_SO(a, b, knows_peer(a) && knows_peer(b));
	net("link set h2 down");
	a->order = b->order = STREAM;
	sends_fail(a);
	sends_fail(b);
	ends_well(a);
	ends_well(b);
}

/* As docker makes it: a bridge with the same address on both hosts, before eth0 in each list of interfaces. */
static void add_bridges(bool with_a_container)
{
	for (int host = 1; host <= 2; host++) {
		net("-n h%d link add docker0 index 50 type bridge", host);
		net("-n h%d address add 172.17.0.1/16 dev docker0", host);
		net("-n h%d link set docker0 up", host);
		if (!with_a_container)
			continue;
		net("-n h%d link add inside index 60 type veth peer name port index 61", host);
		net("-n h%d link set port master docker0", host);
		net("-n h%d link set port up", host);
		net("-n h%d link set inside up", host);
	}
}

static void stream_over_whatever_is_chosen(bool with_a_container)
{
	set_out();
	add_bridges(with_a_container);
	a->node = b->node = "";
	start();
	stream_on();
	nothing_is_lost(a, b);
}

static void an_interface_leads_nowhere(void)
{
	stream_over_whatever_is_chosen(false);
}

static void an_interface_leads_to_a_container(void)
{
	stream_over_whatever_is_chosen(true);
}

static void slow_and_lossy(void)
{
	set_out();
	for (int host = 1; host <= 2; host++) {
		char command[128];

		snprintf(command, sizeof(command), "tc -n h%d qdisc replace dev eth0 root netem delay 20ms loss 2%% 2>/dev/null", host);
		if (system(command))
			SKIP("the kernel has no netem");
	}
	start();
	/* Some ten messages a second get through. */
	stream_some(50);
	nothing_is_lost(a, b);
	CHECK(!system("tc -n h1 qdisc delete dev eth0 root && tc -n h2 qdisc delete dev eth0 root"), "netem stays");
}

static const struct test tests[] = {
	TEST(an_ordinary_day),
	TEST(ipv6),
	TEST(link_stays_down),
	TEST(connection_on_an_ordinary_day),
	TEST(connection_whose_link_stays_down),
	TEST(connection_at_rest_whose_link_stays_down),
	TEST(connection_whose_link_comes_back),
	TEST(connection_whose_peer_is_killed),
	TEST(close_while_the_link_is_down),
	TEST(link_comes_back),
	TEST(peer_is_killed),
	TEST(receives_outlive_a_peer),
	TEST(peer_is_stopped),
	TEST(peer_is_restarted),
	TEST(peer_is_restarted_and_its_address_kept),
	TEST(nobody_listens),
	TEST(nobody_answers),
	TEST(an_interface_leads_nowhere),
	TEST(an_interface_leads_to_a_container),
	TEST(slow_and_lossy),
};
CASES(tests)

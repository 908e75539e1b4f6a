/* fi_getinfo(3): what is asked for and what is answered, but for addresses. */
#include <errno.h>
#include <pthread.h>
#include "fabric.h"

static const struct setup usual;

/* The answer's errno for hints changed by one step. */
static int ask(void (*change)(struct fi_info *), struct fi_info **info)
{
	struct fi_info *hints = hints_for(&usual);
	int ret;

	change(hints);
	ret = get_info(api_version(), hints, info);
	fi_freeinfo(hints);
	return ret;
}

static void allocinfo_is_zero_and_whole(void)
{
	struct fi_info *info = fi_allocinfo();

	CHECK(info && info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr, "a part is missing");
	CHECK(!info->next && !info->caps && !info->mode && !info->addr_format && !info->src_addr && !info->dest_addr && !info->handle,
	      "not zero");
	CHECK(!info->fabric_attr->prov_name && !info->domain_attr->name && !info->domain_attr->domain && !info->ep_attr->type, "not zero");
	fi_freeinfo(info);
	fi_freeinfo(NULL);
}

static void everything_without_hints(void)
{
	struct fi_info *info, *i;

	OK(fi_getinfo(api_version(), NULL, NULL, 0, NULL, &info));
	for (i = info; i; i = i->next) {
		CHECK(i->fabric_attr && i->fabric_attr->prov_name && i->fabric_attr->name, "an entry without a provider or fabric name");
		CHECK(i->domain_attr && i->domain_attr->name, "an entry of %s without a domain name", i->fabric_attr->prov_name);
		CHECK(i->caps && i->ep_attr->type != FI_EP_UNSPEC, "an entry of %s without capabilities or type", i->fabric_attr->prov_name);
	}
	fi_freeinfo(info);
}

static void the_provider_asked_for(void)
{
	struct bed bed;
	struct fi_info *i;

	open_info(&bed, &usual);
	for (i = bed.info; i; i = i->next) {
		/* or of something layered over it */
		CHECK(!strncmp(i->fabric_attr->prov_name, provider, strlen(provider)), "an entry of %s", i->fabric_attr->prov_name);
		CHECK(i->ep_attr->type == usual_type(), "an endpoint of type %d", i->ep_attr->type);
		CHECK((i->caps & usual_caps()) == usual_caps(), "capabilities 0x%llx", (unsigned long long) i->caps);
		CHECK(i->fabric_attr->prov_version, "no provider version");
		CHECK(!i->handle, "a handle from nowhere");
	}
	close_bed(&bed);
}

/* The name of a provider may be left out by NULL or by nothing, as programs have it from their users. */
static void an_empty_name_is_any_provider(void)
{
	struct fi_info *hints = hints_for(&usual), *info;

	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("");
	OK(fi_getinfo(api_version(), NULL, NULL, 0, hints, &info));
	CHECK(info, "no answer");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void unknown_provider(struct fi_info *hints)
{
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("nosuchprovider");
}

static void unknown_fabric(struct fi_info *hints) { hints->fabric_attr->name = strdup("nosuchfabric"); }
static void unknown_domain(struct fi_info *hints) { hints->domain_attr->name = strdup("nosuchdomain"); }
static void unknown_type(struct fi_info *hints) { hints->ep_attr->type = 1000; }
static void unknown_format(struct fi_info *hints) { hints->addr_format = 1000; }
static void too_long_inject(struct fi_info *hints) { hints->tx_attr->inject_size = SIZE_MAX; }
static void too_many_pieces(struct fi_info *hints) { hints->tx_attr->iov_limit = SIZE_MAX; }
static void too_large_rx(struct fi_info *hints) { hints->rx_attr->size = SIZE_MAX; }
static void too_much_data(struct fi_info *hints) { hints->domain_attr->cq_data_size = 1000; }
static void unknown_protocol(struct fi_info *hints) { hints->ep_attr->protocol = 0x7fffffff; }
static void multicast(struct fi_info *hints) { hints->caps = FI_MULTICAST | FI_MSG; }

static void domain_key(struct fi_info *hints)
{
	hints->domain_attr->auth_key = (uint8_t *) strdup("four");
	hints->domain_attr->auth_key_size = 4;
}

static void endpoint_key(struct fi_info *hints)
{
	hints->ep_attr->auth_key = (uint8_t *) strdup("four");
	hints->ep_attr->auth_key_size = 4;
}

static void impossible(void (*change)(struct fi_info *))
{
	struct fi_info *info = (void *) 1;

	GIVES(-FI_ENODATA, ask(change, &info));
	CHECK(!info, "an answer beside -FI_ENODATA");
}

static void no_such_provider(void) { impossible(unknown_provider); }
static void no_such_fabric(void) { impossible(unknown_fabric); }
static void no_such_domain(void) { impossible(unknown_domain); }
static void no_such_endpoint_type(void) { impossible(unknown_type); }
static void no_such_address_format(void) { impossible(unknown_format); }
static void inject_size_too_large(void) { impossible(too_long_inject); }
static void iov_limit_too_large(void) { impossible(too_many_pieces); }
static void receive_size_too_large(void) { impossible(too_large_rx); }
static void cq_data_size_too_large(void) { impossible(too_much_data); }
static void no_such_protocol(void) { impossible(unknown_protocol); }
static void no_multicast_here(void) { impossible(multicast); }

/* A provider without authorization keys has no answer for those who give one; another gives it back. */
static void kept_or_refused(void (*change)(struct fi_info *), int of_endpoint)
{
	struct fi_info *info = NULL;
	int ret = ask(change, &info);
	const uint8_t *key;
	size_t size;

	CHECK(!ret || ret == -FI_ENODATA, "%d", ret);
	if (ret)
		return;
	key = of_endpoint ? info->ep_attr->auth_key : info->domain_attr->auth_key;
	size = of_endpoint ? info->ep_attr->auth_key_size : info->domain_attr->auth_key_size;
	CHECK(key && size == 4 && !memcmp(key, "four", 4), "another key, of %zu bytes", size);
	fi_freeinfo(info);
}

/* Nobody has an authorization key that was not given, or one that nobody would look at. */
static void authorization_keys(void)
{
	struct bed bed;

	open_info(&bed, &usual);
	CHECK(!bed.info->domain_attr->auth_key && !bed.info->domain_attr->auth_key_size, "a key for the domain");
	CHECK(!bed.info->ep_attr->auth_key && !bed.info->ep_attr->auth_key_size, "a key for the endpoint");
	close_bed(&bed);
	kept_or_refused(domain_key, 0);
	kept_or_refused(endpoint_key, 1);
}

static void a_version_of_the_future(void)
{
	struct fi_info *info = NULL;

	GIVES(-FI_ENOSYS, fi_getinfo(FI_VERSION(99, 0), NULL, NULL, 0, NULL, &info));
	CHECK(!info, "an answer beside -FI_ENOSYS");
}

static void versions_of_the_past(void)
{
	static const uint32_t versions[] = { FI_VERSION(1, 5), FI_VERSION(1, 9), FI_VERSION(1, 15), FI_VERSION(1, 17) };
	struct fi_info *hints = hints_for(&usual), *info;
	unsigned i;

	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		OK(get_info(versions[i], hints, &info));
		CHECK(info->fabric_attr->api_version == versions[i], "api_version 0x%x", info->fabric_attr->api_version);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void unknown_capabilities(void)
{
	struct fi_info *hints = hints_for(&usual), *info = NULL;
	int ret;

	hints->caps |= 1ULL << 63 | 1ULL << 62;
	ret = get_info(api_version(), hints, &info);
	CHECK(ret == -FI_EBADFLAGS || ret == -FI_ENODATA, "%d (%s)", ret, fi_strerror(-ret));
	fi_freeinfo(hints);
}

static void attributes_at_least_as_asked(void)
{
	struct fi_info *hints = hints_for(&usual), *info, *i;
	size_t least = datagram_ends ? 256 : 1 << 20;

	hints->tx_attr->inject_size = 8;
	hints->tx_attr->iov_limit = 2;
	hints->tx_attr->size = 16;
	hints->rx_attr->iov_limit = 2;
	hints->rx_attr->size = 16;
	hints->ep_attr->max_msg_size = least;
	hints->domain_attr->cq_data_size = 4;
	OK(get_info(api_version(), hints, &info));
	for (i = info; i; i = i->next) {
		CHECK(i->tx_attr->inject_size >= 8 && i->tx_attr->iov_limit >= 2 && i->tx_attr->size >= 16, "transmit attributes");
		CHECK(i->rx_attr->iov_limit >= 2 && i->rx_attr->size >= 16, "receive attributes");
		CHECK(i->ep_attr->max_msg_size >= least, "messages of %zu", i->ep_attr->max_msg_size);
		CHECK(i->domain_attr->cq_data_size >= 4, "data of %zu", i->domain_attr->cq_data_size);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Who asks for more than any object has is either told that there is no limit, or gets no answer. */
static void the_longest_message_of_all(void)
{
	size_t asked[] = {(size_t) -1, (size_t) -2, ((size_t) -1 >> 1) + 1};
	struct fi_info *hints = hints_for(&usual), *info, *i;
	int k, ret;

	for (k = 0; k < 3; k++) {
		hints->ep_attr->max_msg_size = asked[k];
		ret = get_info(api_version(), hints, &info);
		CHECK(ret == 0 || ret == -FI_ENODATA, "%s", fi_strerror(-ret));
		for (i = ret ? NULL : info; i; i = i->next)
			CHECK(i->ep_attr->max_msg_size >= asked[k], "asked %zx, told %zx", asked[k], i->ep_attr->max_msg_size);
		if (!ret)
			fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void no_modes_unless_offered(void)
{
	struct fi_info *hints = hints_for(&usual), *info, *i;
	int ret;

	hints->mode = 0;
	hints->domain_attr->mr_mode = 0;
	ret = get_info(api_version(), hints, &info);
	NEED(ret != -FI_ENODATA, "this provider needs mode bits");
	CHECK(ret == 0, "fi_getinfo: %s", fi_strerror(-ret));
	for (i = info; i; i = i->next) {
		CHECK(!(i->mode & (FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX | FI_RX_CQ_DATA)), "mode 0x%llx", (unsigned long long) i->mode);
		CHECK(!(i->domain_attr->mr_mode & (FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
						   FI_MR_ENDPOINT)), "mr_mode 0x%x", i->domain_attr->mr_mode);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void capabilities_of_zero_are_a_wildcard(void)
{
	struct fi_info *hints = hints_for(&usual), *info;

	hints->caps = 0;
	OK(get_info(api_version(), hints, &info));
	CHECK(info->caps & FI_MSG, "capabilities 0x%llx", (unsigned long long) info->caps);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void named_contexts(struct fi_info *hints) { hints->caps |= FI_NAMED_RX_CTX; }

/* Our own promise, as a program that sees them opens contexts, where one endpoint would be quicker. fi_getinfo(3) leaves open
 * what is told without hints, and the C library's sockets tells of them. */
static void named_contexts_only_for_those_who_ask(void)
{
	struct fi_info *info, *i;
	int ret;

	if (!strict)
		SKIP("the page does not say it");
	OK(fi_getinfo(api_version(), NULL, NULL, 0, NULL, &info));
	for (i = info; i; i = i->next)
		CHECK(!(i->caps & FI_NAMED_RX_CTX), "%s tells of them unasked", i->fabric_attr->prov_name);
	fi_freeinfo(info);
	ret = ask(named_contexts, &info);
	if (ret == -FI_ENODATA)
		SKIP("the provider has none");
	OK(ret);
	for (i = info; i; i = i->next)
		CHECK((i->caps & FI_NAMED_RX_CTX) && i->domain_attr->max_ep_rx_ctx > 1, "%s has none", i->fabric_attr->prov_name);
	fi_freeinfo(info);
}

static void local_and_remote(void)
{
	struct fi_info *hints = hints_for(&usual), *info;

	hints->caps |= FI_LOCAL_COMM;
	OK(get_info(api_version(), hints, &info));
	CHECK(info->caps & FI_LOCAL_COMM, "capabilities 0x%llx", (unsigned long long) info->caps);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void only_the_providers(void)
{
	struct fi_info *info, *i, *k;

	OK(fi_getinfo(api_version(), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info));
	CHECK(info, "no provider");
	for (i = info; i; i = i->next) {
		CHECK(i->fabric_attr && i->fabric_attr->prov_name, "an entry without a name");
		CHECK(!i->caps, "%s: capabilities 0x%llx", i->fabric_attr->prov_name, (unsigned long long) i->caps);
		for (k = info; k != i; k = k->next)
			CHECK(strcmp(k->fabric_attr->prov_name, i->fabric_attr->prov_name), "%s twice", i->fabric_attr->prov_name);
	}
	fi_freeinfo(info);
}

#ifndef FI_RESCAN /* newer than 1.17 */
#define FI_RESCAN 0
#endif
static void rescan_finds_the_same(void)
{
	struct fi_info *hints = hints_for(&usual), *info;
	struct bed bed;

	open_info(&bed, &usual);
	if (is_ip(&bed))
		OK(fi_getinfo(api_version(), "127.0.0.1", NULL, FI_SOURCE | FI_RESCAN, hints, &info));
	else
		OK(fi_getinfo(api_version(), NULL, NULL, FI_RESCAN, hints, &info));
	CHECK(!strcmp(info->fabric_attr->prov_name, provider), "%s", info->fabric_attr->prov_name);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	close_bed(&bed);
}

static void dupinfo_copies_all(void)
{
	struct fi_info *copy;
	struct bed bed;

	open_info(&bed, &usual);
	copy = fi_dupinfo(bed.info);
	CHECK(copy && !copy->next, "not one entry");
	CHECK(copy->caps == bed.info->caps && copy->mode == bed.info->mode && copy->addr_format == bed.info->addr_format, "differs");
	CHECK(copy->tx_attr != bed.info->tx_attr && !memcmp(copy->tx_attr, bed.info->tx_attr, sizeof(*copy->tx_attr)), "tx_attr");
	CHECK(copy->rx_attr != bed.info->rx_attr && !memcmp(copy->rx_attr, bed.info->rx_attr, sizeof(*copy->rx_attr)), "rx_attr");
	CHECK(copy->ep_attr != bed.info->ep_attr && copy->ep_attr->max_msg_size == bed.info->ep_attr->max_msg_size, "ep_attr");
	CHECK(copy->domain_attr->name != bed.info->domain_attr->name && !strcmp(copy->domain_attr->name, bed.info->domain_attr->name),
	      "domain name");
	CHECK(!strcmp(copy->fabric_attr->prov_name, bed.info->fabric_attr->prov_name), "provider name");
	CHECK(copy->src_addr != bed.info->src_addr && copy->src_addrlen == bed.info->src_addrlen, "source address");
	CHECK(!memcmp(copy->src_addr, bed.info->src_addr, copy->src_addrlen), "source address");
	/* The copy opens what the original opens. */
	fi_freeinfo(bed.info);
	bed.info = copy;
	OK(fi_fabric(copy->fabric_attr, &bed.fabric, NULL));
	OK(fi_domain(bed.fabric, copy, &bed.domain, NULL));
	close_bed(&bed);
	copy = fi_dupinfo(NULL); /* like fi_allocinfo */
	CHECK(copy && copy->tx_attr && copy->fabric_attr, "fi_dupinfo(NULL)");
	fi_freeinfo(copy);
}

/* What one call returned is taken as the hints of the next. */
static void an_answer_as_hints(void)
{
	struct fi_info *hints, *info;
	struct bed bed;

	open_info(&bed, &usual);
	hints = fi_dupinfo(bed.info);
	OK(get_info(api_version(), hints, &info));
	CHECK(!strcmp(info->domain_attr->name, bed.info->domain_attr->name), "another domain");
	CHECK((info->caps & hints->caps) == hints->caps, "capabilities 0x%llx of 0x%llx", (unsigned long long) info->caps,
	      (unsigned long long) hints->caps);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	close_bed(&bed);
}

static void *ask_often(void *arg)
{
	int i;

	for (i = 0; i < 20; i++) {
		struct fi_info *hints = hints_for(&usual), *info;

		if (get_info(api_version(), hints, &info))
			*(int *) arg = 1;
		else
			fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	return NULL;
}

static void from_many_threads(void)
{
	pthread_t threads[4];
	int bad = 0, i;

	for (i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, ask_often, &bad) == 0, "pthread_create");
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(!bad, "a call failed");
}

/* Our own promise: what the library looks for at its start, in vain, is no error that a program could see. */
static void errno_is_left_alone(void)
{
	struct fi_info *info;

	if (!strict)
		SKIP("the page does not say it");
	errno = 0;
	OK(fi_getinfo(api_version(), NULL, NULL, 0, NULL, &info));
	CHECK(errno == 0, "errno is %d", errno);
	fi_freeinfo(info);
}

static uint64_t asked_order;

static void orders(struct fi_info *hints)
{
	hints->caps |= FI_RMA;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = asked_order;
}

static void an_order_that_is_asked_for_is_kept(void)
{
	static const uint64_t all[] = {
		FI_ORDER_RAR, FI_ORDER_RAW, FI_ORDER_RAS, FI_ORDER_WAR, FI_ORDER_WAW, FI_ORDER_WAS, FI_ORDER_SAR, FI_ORDER_SAW,
		FI_ORDER_SAS, FI_ORDER_RMA_RAR, FI_ORDER_RMA_RAW, FI_ORDER_RMA_WAR, FI_ORDER_RMA_WAW,
	};
	struct fi_info *info;
	unsigned i, offered = 0;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		asked_order = all[i];
		if (ask(orders, &info))
			continue;
		offered++;
		CHECK(info->tx_attr->msg_order & all[i], "tx_attr.msg_order 0x%llx, asked for 0x%llx",
		      (unsigned long long) info->tx_attr->msg_order, (unsigned long long) all[i]);
		CHECK(info->rx_attr->msg_order & all[i], "rx_attr.msg_order 0x%llx, asked for 0x%llx",
		      (unsigned long long) info->rx_attr->msg_order, (unsigned long long) all[i]);
		fi_freeinfo(info);
	}
	NEED(offered, "an order");
}

static const struct test tests[] = {
	TEST(allocinfo_is_zero_and_whole), TEST(errno_is_left_alone), TEST(everything_without_hints),
	TEST(the_provider_asked_for), TEST(an_empty_name_is_any_provider), TEST(no_such_provider),
	TEST(no_such_fabric), TEST(no_such_domain), TEST(no_such_endpoint_type), TEST(no_such_address_format),
	TEST(inject_size_too_large), TEST(iov_limit_too_large), TEST(receive_size_too_large),
	TEST(cq_data_size_too_large), TEST(no_such_protocol), TEST(no_multicast_here), TEST(authorization_keys),
	TEST(a_version_of_the_future), TEST(versions_of_the_past), TEST(unknown_capabilities),
	TEST(attributes_at_least_as_asked), TEST(the_longest_message_of_all), TEST(no_modes_unless_offered),
	TEST(capabilities_of_zero_are_a_wildcard), TEST(named_contexts_only_for_those_who_ask),
	TEST(an_order_that_is_asked_for_is_kept), TEST(local_and_remote), TEST(only_the_providers), TEST(rescan_finds_the_same), TEST(dupinfo_copies_all),
	TEST(an_answer_as_hints), TEST(from_many_threads),
};

CASES(tests)

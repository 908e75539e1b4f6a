#include "ends.h"
#include "die.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t api_version(void)
{
	uint32_t headers = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), library = fi_version();

	return headers < library ? headers : library;
}

/* ---- what is offered ---- */

static const char *provider_of(const struct wish *wish)
{
	const char *usual = getenv("PROVIDER");

	return wish->provider ? wish->provider : usual && *usual ? usual : "shm";
}

const char *usual_node(const char *provider)
{
	return strstr(provider, "tcp") || strstr(provider, "udp") || strstr(provider, "sockets") ? "127.0.0.1" : NULL;
}

struct fi_info *hints_of(const struct wish *wish)
{
	struct fi_info *hints = fi_allocinfo();

	MUST(hints);
	hints->fabric_attr->prov_name = strdup(provider_of(wish));
	hints->caps = wish->caps ? wish->caps : FI_MSG | FI_TAGGED;
	hints->mode = wish->mode;
	hints->ep_attr->type = wish->ep_type ? wish->ep_type : FI_EP_RDM;
	hints->ep_attr->rx_ctx_cnt = wish->rx_ctx_cnt;
	hints->ep_attr->tx_ctx_cnt = wish->tx_ctx_cnt;
	hints->tx_attr->msg_order = wish->msg_order;
	hints->domain_attr->mr_mode = wish->mr_mode;
	hints->domain_attr->threading = wish->threading;
	hints->domain_attr->control_progress = wish->progress;
	hints->domain_attr->data_progress = wish->progress;
	return hints;
}

int look_for(const struct wish *wish, struct fi_info **info)
{
	struct fi_info *hints = hints_of(wish);
	const char *node = wish->node ? wish->node : usual_node(provider_of(wish));
	int ret;

	if (node && !*node)
		node = NULL;
	ret = fi_getinfo(wish->version ? wish->version : api_version(), node, wish->service, node ? FI_SOURCE : 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

struct fi_info *find(const struct wish *wish)
{
	struct fi_info *info;
	int ret = look_for(wish, &info);

	if (ret)
		DIE("%s offers nothing of the kind: %d (%s)", provider_of(wish), ret, fi_strerror(-ret));
	return info;
}

/* ---- opening ---- */

void open_base(struct base *base, struct fi_info *info)
{
	base->info = info;
	OK(fi_fabric(info->fabric_attr, &base->fabric, NULL));
	OK(fi_domain(base->fabric, info, &base->domain, NULL));
	base->av = new_av(base);
}

struct fid_av *new_av(const struct base *base)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;

	OK(fi_av_open(base->domain, &attr, &av, NULL));
	return av;
}

struct fid_cq *new_cq(const struct base *base, const struct wish *wish)
{
	struct fi_cq_attr attr = { .size = wish->cq_size, .wait_obj = wish->cq_wait };
	struct fid_cq *cq;

	attr.format = wish->cq_format ? wish->cq_format : FI_CQ_FORMAT_TAGGED;
	OK(fi_cq_open(base->domain, &attr, &cq, NULL));
	return cq;
}

struct fid_ep *new_ep(const struct base *base, struct fid_av *av, struct fid_cq *cq)
{
	struct fid_ep *ep;

	OK(fi_endpoint(base->domain, base->info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	return ep;
}

struct name enable(struct fid_ep *ep)
{
	struct name name = { .len = sizeof(name.bytes) };

	OK(fi_enable(ep));
	OK(fi_getname(&ep->fid, name.bytes, &name.len));
	MUST(name.len > 0 && name.len <= sizeof(name.bytes));
	return name;
}

/* A number in so many digits of six bits. */
static char *in_digits(char *at, uint64_t number, int digits)
{
	static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_~";
	int i;

	for (i = digits - 1; i >= 0; i--, number >>= 6)
		at[i] = digit[number % 64];
	return at + digits;
}

void auto_name(char name[AUTO_NAME_LEN + 1], uint64_t number, uint32_t ip, uint16_t port)
{
	char *at = name + sprintf(name, "fi_auto://");

	at = in_digits(at, number, 10);
	*at++ = '-';
	at = in_digits(at, 0, 12); /* an address of IPv6 that stands for one of IPv4 */
	at = in_digits(at, 0xffffULL << 32 | ip, 10);
	*at++ = '-';
	*in_digits(at, port, 3) = 0;
}

enum { PORT = 20000 };

struct name chosen_name(const struct base *base, unsigned number)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct name name = { 0 };
	unsigned parent = (unsigned) getppid();
	/* The loopback interface has so many addresses that each parent has some of its own. */
	uint32_t place = 0x7f000000u | (number + 1) % 64 << 18 | parent % (1u << 18);
	int len;

	switch (base->info->addr_format) {
	case FI_ADDR_STR:
		if (strcmp(base->info->fabric_attr->prov_name, "auto") == 0) {
			auto_name(name.bytes, (uint64_t) parent << 8 | (number + 1), place, PORT);
			len = AUTO_NAME_LEN;
		} else {
			len = snprintf(name.bytes, NAME_MAX_LEN, "fi_shm://chosen-%u-%u", parent, number);
		}
		name.len = 1 + (size_t) len;
		break;
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
		sin.sin_addr.s_addr = htonl(place);
		sin.sin_port = htons(PORT);
		if (strstr(base->info->fabric_attr->prov_name, "verbs")) { /* a device has the address that it has */
			memcpy(&sin, base->info->src_addr, sizeof(sin));
			sin.sin_port = htons((uint16_t) (PORT + number));
		}
		name.len = sizeof(sin);
		memcpy(name.bytes, &sin, sizeof(sin));
		break;
	default:
		DIE("no name can be chosen of format %u", base->info->addr_format);
	}
	return name;
}

void open_end(struct end *end, const struct base *base, const struct wish *wish)
{
	end->cq = new_cq(base, wish);
	end->ep = new_ep(base, end->av ? end->av : base->av, end->cq);
	end->name = enable(end->ep);
}

fi_addr_t know(struct fid_av *av, const struct name *name)
{
	fi_addr_t addr;
	int ret = fi_av_insert(av, name->bytes, 1, &addr, 0, NULL);

	if (ret != 1)
		DIE("fi_av_insert: %d", ret);
	return addr;
}

/* ---- closing ---- */

void shut(void *object)
{
	struct fid *fid = object;
	size_t class = fid ? fid->fclass : 0;
	int ret = fid ? fi_close(fid) : 0;

	if (ret)
		DIE("fi_close of an object of class %zu: %d (%s)", class, ret, fi_strerror(-ret));
}

void close_end(struct end *end)
{
	shut(end->ep);
	shut(end->cq);
	shut(end->av);
	memset(end, 0, sizeof(*end));
}

void close_base(struct base *base)
{
	shut(base->av);
	shut(base->domain);
	shut(base->fabric);
	fi_freeinfo(base->info);
	memset(base, 0, sizeof(*base));
}

/* ---- what is not as it should be ---- */

__attribute__((weak)) void fail_at(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	if (say_who)
		say_who();
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(1);
}

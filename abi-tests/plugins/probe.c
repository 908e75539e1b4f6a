/*
 * A plug-in as the C library wants it, small enough to see through. What it is called, which version it has and what
 * it does wrong is chosen with -D, see cases.sh. It uses nothing of libfabric but its public calls.
 *
 * PROBE_TRACE names a file to which every life event is appended, so that a test sees calls that leave no other trace.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#ifndef NAME
#define NAME "probe"
#endif
#ifndef MINOR
#define MINOR 2
#endif
#ifndef API
#define API FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#endif

static void trace(const char *format, ...)
{
	const char *name = getenv("PROBE_TRACE");
	FILE *file = name ? fopen(name, "a") : NULL;
	va_list args;

	if (!file)
		return;
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	fprintf(file, " %s 1.%d\n", NAME, MINOR);
	fclose(file);
}

static int close_fabric(struct fid *fid)
{
	trace("close");
	free(fid);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_fabric,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
};

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	if (strcmp(attr->name, "probe-net"))
		return -FI_ENODEV;
	*fabric = calloc(1, sizeof(**fabric));
	if (!*fabric)
		return -FI_ENOMEM;
	(*fabric)->fid.fclass = FI_CLASS_FABRIC;
	(*fabric)->fid.context = context;
	(*fabric)->fid.ops = &fabric_fid_ops;
	(*fabric)->ops = &fabric_ops;
	trace("open");
	return 0;
}

#ifndef HOOK
static struct fi_info *offer(const char *domain)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = FI_MSG;
	info->ep_attr->type = FI_EP_MSG;
	info->fabric_attr->name = strdup("probe-net");
	info->domain_attr->name = strdup(domain);
	return info;
}

/* The node picks what is offered: usually two whole infos. */
static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	const char *what = node ? node : "two";

	trace("getinfo %s %s %d.%d %s", what, service ? service : "-", FI_MAJOR(version), FI_MINOR(version),
	      hints && hints->domain_attr && hints->domain_attr->name ? hints->domain_attr->name : "-");
	(void) flags;
	if (!strcmp(what, "error"))
		return -FI_EHOSTUNREACH;
	if (!strcmp(what, "empty"))
		return 0;
	*info = offer("probe-one");
	(*info)->next = offer("probe-two");
	if (!strcmp(what, "broken")) { /* between two whole ones, five that miss a part each */
		struct fi_info *last = (*info)->next, **place = &(*info)->next;
		struct fi_info *part[5];

		for (int i = 0; i < 5; i++) {
			part[i] = offer("probe-broken");
			*place = part[i];
			place = &part[i]->next;
		}
		*place = last;
		free(part[0]->tx_attr), part[0]->tx_attr = NULL;
		free(part[1]->rx_attr), part[1]->rx_attr = NULL;
		free(part[2]->ep_attr), part[2]->ep_attr = NULL;
		free(part[3]->domain_attr->name), free(part[3]->domain_attr), part[3]->domain_attr = NULL;
		free(part[4]->fabric_attr->name), free(part[4]->fabric_attr), part[4]->fabric_attr = NULL;
	}
	return 0;
}
#endif

static void cleanup(void)
{
	trace("cleanup");
}

static struct fi_provider provider = {
	.version = FI_VERSION(1, MINOR),
	.fi_version = API,
#ifndef NAMELESS
	.name = NAME,
#endif
#ifndef HOOK
	.getinfo = getinfo,
#endif
#ifndef NO_FABRIC
	.fabric = open_fabric,
#endif
	.cleanup = cleanup,
};

#ifdef NEEDS_ABSENT
int absent(void);
#endif

#ifndef NO_ENTRY
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
	char *mode = NULL;
	int level = 3, quick = 0, ret;
	size_t room = 0;

#ifdef NEEDS_ABSENT
	absent();
#endif
	trace("load");
	fi_param_define(&provider, "mode", FI_PARAM_STRING, "How %s goes about %s", NAME, "it (default: none)");
	fi_param_define(&provider, "level", FI_PARAM_INT, "A number");
	fi_param_define(&provider, "quick", FI_PARAM_BOOL, "A choice");
	fi_param_define(&provider, "room", FI_PARAM_SIZE_T, "A size");
	ret = fi_param_get_str(&provider, "mode", &mode);
	fi_param_get_int(&provider, "level", &level);
	fi_param_get_bool(&provider, "quick", &quick);
	fi_param_get_size_t(&provider, "room", &room);
	FI_INFO(&provider, FI_LOG_CORE, "mode %s level %d quick %d room %zu ret %d\n", mode ? mode : "-", level,
		quick, room, ret);
#ifdef RETURN_NULL
	return NULL;
#else
	return &provider;
#endif
}
#endif

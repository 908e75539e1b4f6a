/*
 * Asks libfabric one question and prints the answer, for cases.sh to compare. Linked against libfabric, except for
 * `reopen`, which opens it by hand.
 *
 *   driver list                        every provider: name and version
 *   driver infos NAME [NODE [SERVICE [DOMAIN]]]
 *                                      what NAME offers, one line each
 *   driver fabric NAME FABRIC          opens a fabric, closes it
 *   driver params PREFIX               parameters whose variable starts so
 *   driver maps                        the libfabric and the plug-ins that are loaded
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

/* The version it asks for: 2.5, or what DRIVER_API says. */
static uint32_t api = FI_VERSION(2, 5);

static int fail(const char *call, int ret)
{
	printf("%s: %d\n", call, ret);
	return ret ? 1 : 0;
}

static int list(void)
{
	struct fi_info *info, *one;
	int ret = fi_getinfo(api, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info);

	if (ret)
		return fail("fi_getinfo", ret);
	for (one = info; one; one = one->next)
		printf("%s %d.%d\n", one->fabric_attr->prov_name, FI_MAJOR(one->fabric_attr->prov_version),
		       FI_MINOR(one->fabric_attr->prov_version));
	fi_freeinfo(info);
	return 0;
}

static int infos(const char *name, const char *node, const char *service, const char *domain)
{
	struct fi_info *hints = fi_allocinfo(), *info, *one;
	int ret;

	hints->mode = ~0ULL;
	hints->ep_attr->type = FI_EP_MSG; /* no utility provider offers that */
	hints->fabric_attr->prov_name = strdup(name);
	if (domain)
		hints->domain_attr->name = strdup(domain);
	ret = fi_getinfo(api, node, service, 0, hints, &info);
	fi_freeinfo(hints);
	if (ret)
		return fail("fi_getinfo", ret);
	for (one = info; one; one = one->next)
		printf("%s %d.%d api %d.%d %s %s tclass %u max_ep_auth_key %zx max_cntr_value %llx src %zu\n",
		       one->fabric_attr->prov_name, FI_MAJOR(one->fabric_attr->prov_version),
		       FI_MINOR(one->fabric_attr->prov_version), FI_MAJOR(one->fabric_attr->api_version),
		       FI_MINOR(one->fabric_attr->api_version), one->fabric_attr->name, one->domain_attr->name,
		       one->domain_attr->tclass, one->domain_attr->max_ep_auth_key,
		       (unsigned long long) one->domain_attr->max_cntr_value, one->src_addrlen);
	fi_freeinfo(info);
	return 0;
}

static int fabric(char *name, char *net)
{
	struct fi_fabric_attr attr = { .prov_name = name, .name = net, .api_version = api };
	struct fid_fabric *fabric = NULL;
	int mine, ret = fi_fabric(&attr, &fabric, &mine);

	if (ret)
		return fail("fi_fabric", ret);
	printf("class %zu context %s api %d.%d\n", fabric->fid.fclass, fabric->fid.context == &mine ? "kept" : "lost",
	       FI_MAJOR(fabric->api_version), FI_MINOR(fabric->api_version));
	return fail("fi_close", fi_close(&fabric->fid));
}

static int params(const char *prefix)
{
	struct fi_param *params;
	int i, count, ret = fi_getparams(&params, &count);

	if (ret)
		return fail("fi_getparams", ret);
	for (i = 0; i < count; i++)
		if (!strncmp(params[i].name, prefix, strlen(prefix)))
			printf("%s %d %s [%s]\n", params[i].name, params[i].type,
			       params[i].value ? params[i].value : "-", params[i].help_string);
	fi_freeparams(params);
	return 0;
}

static int maps(void)
{
	char line[4096], last[4096] = "";
	struct fi_info *info = NULL;
	FILE *file;

	if (!fi_getinfo(api, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info))
		fi_freeinfo(info);
	fflush(stdout);
	file = popen("sort", "w");
	if (file) {
		FILE *maps = fopen("/proc/self/maps", "r");

		while (maps && fgets(line, sizeof(line), maps)) {
			char *path = strchr(line, '/');

			if (path && (strstr(path, "/libfabric.so") || strstr(path, "-fi.so")) && strcmp(path, last))
				fputs(strcpy(last, path), file);
		}
		if (maps)
			fclose(maps);
	}
	return !file || pclose(file);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *version = getenv("DRIVER_API");
	unsigned major, minor;

	if (version && sscanf(version, "%u.%u", &major, &minor) == 2)
		api = FI_VERSION(major, minor);
	if (!strcmp(what, "list"))
		return list();
	if (!strcmp(what, "infos") && argc > 2)
		return infos(argv[2], argc > 3 && argv[3][0] ? argv[3] : NULL, argc > 4 ? argv[4] : NULL,
			     argc > 5 ? argv[5] : NULL);
	if (!strcmp(what, "fabric") && argc > 3)
		return fabric(argv[2], argv[3]);
	if (!strcmp(what, "params") && argc > 2)
		return params(argv[2]);
	if (!strcmp(what, "maps"))
		return maps();
	fprintf(stderr, "see driver.c\n");
	return 2;
}

/*
 * Every core call, used as it should be, and everything given back. Runs under valgrind and AddressSanitizer, which must
 * find nothing. With an argument it does one thing wrong on purpose, which they must find.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define API FI_VERSION(2, 0)
#define MUST(condition)                                                             \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);     \
			exit(1);                                                    \
		}                                                                   \
	} while (0)

static struct fi_provider someone = { .name = "someone", .version = FI_VERSION(1, 0), .fi_version = API };

static void infos(void)
{
	struct fi_info *hints = fi_allocinfo(), *info, *copy;

	MUST(hints);
	MUST(fi_getinfo(API, NULL, NULL, 0, NULL, &info) == 0);
	copy = fi_dupinfo(info);
	MUST(copy && !strcmp(copy->fabric_attr->prov_name, info->fabric_attr->prov_name));
	fi_freeinfo(copy);
	fi_freeinfo(info);

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->auth_key = (uint8_t *) strdup("key");
	hints->ep_attr->auth_key_size = 4;
	hints->domain_attr->name = strdup("echo-domain");
	hints->fabric_attr->name = strdup("echo-fabric");
	hints->fabric_attr->prov_name = strdup("echo");
	hints->src_addr = strdup("here");
	hints->src_addrlen = 5;
	hints->addr_format = FI_ADDR_STR;
	MUST(fi_getinfo(API, "127.0.0.1", "7471", FI_SOURCE | FI_NUMERICHOST, hints, &info) == 0);
	MUST(info->ep_attr->auth_key && info->src_addr && !strcmp(info->fabric_attr->prov_name, "echo"));
	fi_freeinfo(info);
	MUST(fi_getinfo(API, NULL, NULL, FI_RESCAN, hints, &info) == 0);
	fi_freeinfo(info);
	MUST(fi_getinfo(API, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info) == 0);
	fi_freeinfo(info);
	MUST(fi_getinfo(FI_VERSION(9, 0), NULL, NULL, 0, hints, &info) == -FI_ENOSYS);
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("nobody");
	MUST(fi_getinfo(API, NULL, NULL, 0, hints, &info) == -FI_ENODATA);
	fi_freeinfo(hints);
}

static void fabrics(void)
{
	struct fid_fabric *fabric;
	struct fi_info *info;
	struct fid *fid;

	MUST(fi_getinfo(API, NULL, NULL, 0, NULL, &info) == 0);
	MUST(fi_fabric(info->fabric_attr, &fabric, &info) == 0);
	MUST(fabric->fid.context == &info && fabric->api_version == API);
	MUST(fi_close(&fabric->fid) == 0);
	MUST(fi_fabric2(info, &fabric, 0, NULL) == 0);
	MUST(fi_close(&fabric->fid) == 0);
	fi_freeinfo(info);
	if (fi_open(API, "mr_cache", NULL, 0, 0, &fid, NULL) == 0)
		MUST(fi_close(fid) == 0);
	if (fi_open(API, "logging", NULL, 0, 0, &fid, NULL) == 0)
		MUST(fi_close(fid) == 0);
	MUST(fi_open(API, "nothing", NULL, 0, 0, &fid, NULL) == -FI_ENOSYS);
}

static void texts(void)
{
	struct fi_info *info = fi_allocinfo();
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA };
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_mr_attr mr = { .access = FI_SEND };
	struct fi_cq_err_entry err = { .err = FI_EIO };
	uint64_t value;
	char buf[8192];
	int i, type;

	for (i = -FI_ERRNO_MAX - 2; i < FI_ERRNO_MAX + 2; i++)
		MUST(fi_strerror(i) && *fi_strerror(i));
	for (type = FI_TYPE_INFO; type <= FI_TYPE_WAIT_OBJ + 1; type++) {
		const void *data = &value;

		switch (type) {
		case FI_TYPE_INFO: data = info; break;
		case FI_TYPE_TX_ATTR: data = info->tx_attr; break;
		case FI_TYPE_RX_ATTR: data = info->rx_attr; break;
		case FI_TYPE_EP_ATTR: data = info->ep_attr; break;
		case FI_TYPE_DOMAIN_ATTR: data = info->domain_attr; break;
		case FI_TYPE_FABRIC_ATTR: data = info->fabric_attr; break;
		case FI_TYPE_AV_ATTR: data = &av; break;
		case FI_TYPE_CQ_ATTR: data = &cq; break;
		case FI_TYPE_CNTR_ATTR: data = &cntr; break;
		case FI_TYPE_MR_ATTR: data = &mr; break;
		case FI_TYPE_CQ_ERR_ENTRY: data = &err; break;
		case FI_TYPE_FID: continue; /* a live object's */
		}
		for (i = -1; i < 64; i++) {
			value = i < 0 ? 0 : 1ULL << i;
			MUST(fi_tostr(data, type));
			MUST(fi_tostr_r(buf, sizeof(buf), data, type) == buf);
			MUST(!strcmp(buf, fi_tostr(data, type)));
		}
	}
	fi_freeinfo(info);
}

static void logs(void)
{
	uint64_t showtime = 0;
	int level, subsys;

	for (level = FI_LOG_WARN; level <= FI_LOG_DEBUG; level++)
		for (subsys = FI_LOG_CORE; subsys <= FI_LOG_CNTR; subsys++) {
			fi_log_enabled(&someone, level, subsys);
			fi_log_ready(&someone, level, subsys, &showtime);
			fi_log(&someone, level, subsys, __func__, __LINE__, "%s %d %f %ld\n", "text", level, 1.5, 1L << 40);
		}
}

static void parameters(void)
{
	struct fi_param *params;
	size_t size;
	char *text;
	int count, i, number, seen = 0;

	MUST(fi_param_define(&someone, "name", FI_PARAM_STRING, "a %s (default: %d)", "name", 7) == 0);
	MUST(fi_param_define(&someone, "number", FI_PARAM_INT, "a number") == 0);
	MUST(fi_param_define(&someone, "flag", FI_PARAM_BOOL, "a flag") == 0);
	MUST(fi_param_define(&someone, "size", FI_PARAM_SIZE_T, "a size") == 0);
	MUST(fi_param_define(NULL, "of_core", FI_PARAM_INT, "not of a provider") == 0);
	setenv("FI_SOMEONE_NAME", "a value", 1);
	setenv("FI_SOMEONE_NUMBER", "-12", 1);
	setenv("FI_SOMEONE_FLAG", "yes", 1);
	setenv("FI_SOMEONE_SIZE", "5000000000", 1);
	MUST(fi_param_get_str(&someone, "name", &text) == 0 && !strcmp(text, "a value"));
	MUST(fi_param_get_int(&someone, "number", &number) == 0 && number == -12);
	MUST(fi_param_get_bool(&someone, "flag", &number) == 0 && number == 1);
	MUST(fi_param_get_size_t(&someone, "size", &size) == 0 && size == 5000000000);
	MUST(fi_param_get_int(&someone, "nothing", &number) == -FI_ENOENT);
	MUST(fi_getparams(&params, &count) == 0 && count > 0);
	for (i = 0; i < count; i++) {
		MUST(params[i].name && params[i].help_string);
		if (!strcmp(params[i].name, "FI_SOMEONE_NAME"))
			seen = !strcmp(params[i].value, "a value") && strstr(params[i].help_string, "a name (default: 7)");
	}
	MUST(seen && !params[count].name);
	fi_freeparams(params);
}

static void __attribute__((noinline)) mistake(const char *which)
{
	struct fi_info *info = fi_allocinfo();

	if (!strcmp(which, "leak")) {
		memset(&info, 0, sizeof(info));
	} else if (!strcmp(which, "use-after-free")) {
		fi_freeinfo(info);
		printf("%d\n", (int) info->caps);
	} else {
		printf("%s\n", which);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int round;

	MUST(fi_version() >= FI_VERSION(2, 5));
	for (round = 0; round < 3; round++) {
		infos();
		fabrics();
		texts();
		logs();
	}
	parameters();
	if (argc > 1)
		mistake(argv[1]);
	return 0;
}

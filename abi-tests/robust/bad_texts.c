/* Bad input, continued: errors and values as text, lines of the log, and parameters. */
#include <limits.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "bad_input.h"

/* ---- errors and values ---- */

static void strerror_range(void *arg)
{
	static const int codes[] = { INT_MIN, INT_MIN + 1, INT_MAX, -1, 0, 255, 256, 300, 4096, -300 };
	size_t i;

	(void) arg;
	for (i = 0; i < COUNT(codes); i++)
		CHECK(fi_strerror(codes[i]) && *fi_strerror(codes[i]), "%d", codes[i]);
	CHECK(!strcmp(fi_strerror(FI_ERRNO_MAX), fi_strerror(FI_EOTHER)), "past the end");
	CHECK(!strcmp(fi_strerror(-FI_ENODATA), fi_strerror(FI_ENODATA)), "the sign matters");
}

static void tostr_nulls(void *arg)
{
	char buf[64];
	int type;

	(void) arg;
	for (type = 0; type <= FI_TYPE_WAIT_OBJ; type++) {
		CHECK(!fi_tostr(NULL, type), "type %d of NULL", type);
		CHECK(!fi_tostr_r(buf, sizeof(buf), NULL, type), "type %d of NULL, reentrant", type);
		CHECK(!fi_tostr_r(NULL, sizeof(buf), buf, type), "type %d, no buffer", type);
		CHECK(!fi_tostr_r(buf, 0, buf, type), "type %d, no room", type);
	}
}

static int is_struct(int type) /* what the type points to is more than a number */
{
	return type == FI_TYPE_INFO || (type >= FI_TYPE_TX_ATTR && type <= FI_TYPE_FABRIC_ATTR) || type == FI_TYPE_FID ||
	       (type >= FI_TYPE_AV_ATTR && type <= FI_TYPE_CQ_ERR_ENTRY);
}

static void tostr_values(void *arg)
{
	uint64_t value = (uint64_t) (uintptr_t) arg;
	int type;

	for (type = 0; type <= FI_TYPE_WAIT_OBJ; type++)
		if (!is_struct(type))
			CHECK(fi_tostr(&value, type), "type %d of 0x%llx", type, (unsigned long long) value);
	CHECK(fi_tostr(&value, -1) && fi_tostr(&value, 9999), "unknown type");
}

static void tostr_small_buffers(void *arg)
{
	struct fi_info *info = fi_allocinfo();
	uint64_t bits = ~0ULL;
	size_t size;

	(void) arg;
	info->caps = info->mode = ~0ULL;
	info->domain_attr->name = strdup("a domain");
	for (size = 1; size < 600; size++) {
		char *buf = guarded(size);

		CHECK(fi_tostr_r(buf, size, info, FI_TYPE_INFO) == buf && strlen(buf) < size, "info in %zu", size);
		CHECK(fi_tostr_r(buf, size, &bits, FI_TYPE_CAPS) == buf && strlen(buf) < size, "caps in %zu", size);
		CHECK(fi_tostr_r(buf, size, &bits, FI_TYPE_VERSION) == buf && strlen(buf) < size, "version in %zu", size);
	}
}

static void tostr_bare_info(void *arg)
{
	(void) arg;
	CHECK(fi_tostr(guarded(sizeof(struct fi_info)), FI_TYPE_INFO), "no parts");
}

static void tostr_long_names(void *arg)
{
	struct fi_info *info = fi_allocinfo();

	(void) arg;
	info->domain_attr->name = endless('d');
	info->fabric_attr->name = endless('f');
	info->fabric_attr->prov_name = endless('p');
	CHECK(fi_tostr(info, FI_TYPE_INFO), "no text");
}

/* ---- log ---- */

static struct fi_provider someone = { .name = "someone", .version = FI_VERSION(1, 0), .fi_version = API };

static void log_anything(void *arg)
{
	static const int odd[] = { -1, 0, 1, 9, 10, 64, 1000, INT_MAX, INT_MIN };
	uint64_t showtime = 0;
	size_t i, j;

	(void) arg;
	setenv("FI_LOG_LEVEL", "debug", 1);
	freopen("/dev/null", "w", stderr);
	for (i = 0; i < COUNT(odd); i++)
		for (j = 0; j < COUNT(odd); j++) {
			fi_log_enabled(&someone, odd[i], odd[j]);
			fi_log_enabled(NULL, odd[i], odd[j]);
			fi_log_ready(&someone, odd[i], odd[j], &showtime);
			fi_log_ready(NULL, odd[i], odd[j], &showtime);
			fi_log_ready(&someone, odd[i], odd[j], NULL);
			fi_log(&someone, odd[i], odd[j], "here", odd[i], "%d\n", odd[j]);
		}
	fi_log(NULL, FI_LOG_WARN, FI_LOG_CORE, "here", 1, "no provider\n");
	fi_log(&someone, FI_LOG_WARN, FI_LOG_CORE, NULL, 1, "no function\n");
	fi_log(&someone, FI_LOG_WARN, FI_LOG_CORE, "here", 1, NULL);
	fi_log(&someone, FI_LOG_WARN, FI_LOG_CORE, "here", 1, "%s", endless('l'));
	fi_log(&someone, FI_LOG_WARN, FI_LOG_CORE, endless('f'), 1, "\xff\xfe");
}

/* ---- parameters ---- */

static void param_define_bad(void *arg)
{
	(void) arg;
	CHECK(fi_param_define(&someone, NULL, FI_PARAM_INT, "help") == -FI_EINVAL, "no name");
	CHECK(fi_param_define(&someone, "one", FI_PARAM_INT, NULL) == -FI_EINVAL, "no help");
	CHECK(fi_param_define(&someone, "one", FI_PARAM_INT, "%s", "") <= 0, "empty text");
	CHECK(fi_param_define(NULL, NULL, FI_PARAM_INT, NULL) == -FI_EINVAL, "nothing at all");
	fi_param_define(&someone, "one", 77, "a type there is not");
	fi_param_define(&someone, "", FI_PARAM_INT, "no letters");
	fi_param_define(&someone, endless('n'), FI_PARAM_INT, "%s", endless('h'));
	fi_param_define(&someone, "\xff\xfe", FI_PARAM_STRING, "not a word");
}

static void param_get_bad(void *arg)
{
	int value = 5;

	(void) arg;
	CHECK(fi_param_get(&someone, NULL, &value) == -FI_EINVAL, "no name");
	CHECK(fi_param_get(&someone, "never", &value) == -FI_ENOENT, "never defined");
	CHECK(fi_param_get(NULL, "never", &value) == -FI_ENOENT, "never defined by the core");
	CHECK(fi_param_define(&someone, "flag", FI_PARAM_BOOL, "yes or no") == 0, "define");
	CHECK(fi_param_get(&someone, "flag", NULL) == -FI_EINVAL, "no place");
	CHECK(fi_param_get(&someone, "flag", &value) == -FI_ENODATA, "not set");
	setenv("FI_SOMEONE_FLAG", "perhaps", 1);
	CHECK(fi_param_get(&someone, "flag", &value) == -FI_EINVAL, "neither yes nor no");
	CHECK(fi_param_get(&someone, endless('n'), &value) == -FI_ENOENT, "a long name");
}

static void param_lists(void *arg)
{
	struct fi_param *params = NULL;
	int count = 0;

	(void) arg;
	CHECK(fi_getparams(NULL, &count) == -FI_EINVAL, "no list");
	CHECK(fi_getparams(&params, NULL) == -FI_EINVAL, "no count");
	fi_freeparams(NULL);
}

const struct bad bad_texts[] = {
	{ "strerror-range", strerror_range, NULL },
	{ "tostr-nulls", tostr_nulls, NULL },
	{ "tostr-zero", tostr_values, (void *) 0 },
	{ "tostr-absurd", tostr_values, (void *) 0x7fffffff },
	{ "tostr-all-bits", tostr_values, (void *) -1 },
	{ "tostr-small-buffers", tostr_small_buffers, NULL },
	{ "tostr-bare-info", tostr_bare_info, NULL },
	{ "tostr-long-names", tostr_long_names, NULL },
	{ "log-anything", log_anything, NULL },
	{ "param_define-bad", param_define_bad, NULL },
	{ "param_get-bad", param_get_bad, NULL },
	{ "getparams-nulls", param_lists, NULL },
};
const size_t bad_text_count = COUNT(bad_texts);

/*
 * What no program should pass, passed to every exported function: the documented error comes back, and nothing crashes.
 * Each case starts in a process where the library has not been called yet. Here: what is asked and opened, and the
 * environment.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "bad_input.h"

char *endless(char c)
{
	size_t size = 1 << 20;
	char *text = guarded(size + 1);

	memset(text, c, size);
	return text;
}

/* Any answer but a crash or nonsense; what came is given back. */
static void survives(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints)
{
	struct fi_info *info = (void *) 16;
	int ret = fi_getinfo(version, node, service, flags, hints, &info);

	CHECK(ret <= 0 && ret > -FI_ERRNO_MAX, "returned %d", ret);
	if (ret == 0)
		fi_freeinfo(info);
}

static void refused(const struct fi_info *hints, int want)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(API, NULL, NULL, 0, hints, &info);

	CHECK(ret == want, "returned %d, want %d", ret, want);
}

/* ---- fi_getinfo ---- */

static void getinfo_no_place(void *arg)
{
	(void) arg;
	CHECK(fi_getinfo(API, NULL, NULL, 0, NULL, NULL) == -FI_EINVAL, "newest");
	CHECK(fi_getinfo(API, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, NULL) == -FI_EINVAL, "attributes only");
}

static void getinfo_future(void *arg)
{
	static const uint32_t versions[] = { FI_VERSION(2, 7), FI_VERSION(3, 0), FI_VERSION(65535, 65535) };
	struct fi_info *info = NULL;
	size_t i;

	(void) arg;
	for (i = 0; i < COUNT(versions); i++)
		CHECK(fi_getinfo(versions[i], NULL, NULL, 0, NULL, &info) == -FI_ENOSYS, "version 0x%x", versions[i]);
}

static void getinfo_ancient(void *arg)
{
	(void) arg;
	survives(0, NULL, NULL, 0, NULL);
	survives(FI_VERSION(1, 0), NULL, NULL, 0, NULL);
}

static void getinfo_flags(void *arg)
{
	int bit;

	(void) arg;
	for (bit = 0; bit < 64; bit++)
		survives(API, NULL, NULL, 1ULL << bit, NULL);
	survives(API, NULL, NULL, ~0ULL, NULL);
}

static void getinfo_strings(void *arg)
{
	static const char *const texts[] = { "", " ", "::::::", "999999999999999999999", "-1", "%s%n%s", "\xff\xfe\x80", "a b",
					     "[::1", "0.0.0.0.0", "fi_addr_str://", "fi_sockaddr_in://:" };
	size_t i;

	(void) arg;
	for (i = 0; i < COUNT(texts); i++) {
		survives(API, texts[i], NULL, FI_NUMERICHOST, NULL);
		survives(API, NULL, texts[i], FI_SOURCE, NULL);
		survives(API, texts[i], texts[i], FI_NUMERICHOST | FI_SOURCE, NULL);
	}
	survives(API, endless('1'), endless('2'), FI_NUMERICHOST, NULL);
}

static void getinfo_empty_hints(void *arg)
{
	(void) arg;
	survives(API, NULL, NULL, 0, guarded(sizeof(struct fi_info)));
	survives(API, NULL, NULL, FI_PROV_ATTR_ONLY, guarded(sizeof(struct fi_info)));
}

static void getinfo_provider_names(void *arg)
{
	static const char *const unknown[] = { "nobody", "nobody;ofi_none", "\xff\xfe", "echo2", "ech", "%n%n%n%n" };
	static const char *const odd[] = { "", ";", ";;;;", "^", "^^", "^;^", "echo;", ";echo", "^echo", "echo;^echo", "echo;echo" };
	struct fi_info *hints = fi_allocinfo();
	size_t i;

	(void) arg;
	CHECK(hints, "no memory");
	for (i = 0; i < COUNT(unknown); i++) {
		hints->fabric_attr->prov_name = (char *) unknown[i];
		refused(hints, -FI_ENODATA);
	}
	for (i = 0; i < COUNT(odd); i++) {
		hints->fabric_attr->prov_name = (char *) odd[i];
		survives(API, NULL, NULL, 0, hints);
	}
	hints->fabric_attr->prov_name = endless(';');
	survives(API, NULL, NULL, 0, hints);
	hints->fabric_attr->prov_name = endless('x');
	refused(hints, -FI_ENODATA);
}

static void getinfo_absurd_hints(void *arg)
{
	struct fi_info *hints = fi_allocinfo();

	(void) arg;
	memset(hints->tx_attr, 0xff, sizeof(*hints->tx_attr));
	memset(hints->rx_attr, 0xff, sizeof(*hints->rx_attr));
	hints->caps = hints->mode = ~0ULL;
	hints->addr_format = ~0U;
	hints->src_addrlen = hints->dest_addrlen = SIZE_MAX; /* and no address */
	hints->ep_attr->type = ~0U;
	hints->ep_attr->auth_key_size = SIZE_MAX;
	hints->domain_attr->threading = ~0U;
	hints->domain_attr->mr_mode = ~0U;
	hints->domain_attr->auth_key_size = SIZE_MAX;
	hints->fabric_attr->prov_version = ~0U;
	survives(API, NULL, NULL, 0, hints);
	survives(FI_VERSION(1, 4), NULL, NULL, 0, hints);
}

static void getinfo_absurd_sizes(void *arg)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info = NULL;

	(void) arg;
	hints->src_addr = guarded(16);
	hints->src_addrlen = SIZE_MAX;
	CHECK(fi_getinfo(API, NULL, NULL, 0, hints, &info) < 0, "took an address of SIZE_MAX bytes");
}

/* ---- fi_dupinfo, fi_freeinfo ---- */

static void dupinfo_absurd_sizes(void *arg)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 7, (size_t) PTRDIFF_MAX, (size_t) PTRDIFF_MAX + 1 };
	size_t i;

	(void) arg;
	for (i = 0; i < COUNT(sizes); i++) {
		struct fi_info *info = fi_allocinfo();

		info->src_addr = guarded(16);
		info->src_addrlen = sizes[i];
		CHECK(!fi_dupinfo(info), "source address of %zx", sizes[i]);
		info->src_addr = NULL;
		info->dest_addr = guarded(16);
		info->dest_addrlen = sizes[i];
		CHECK(!fi_dupinfo(info), "destination address of %zx", sizes[i]);
		info->dest_addr = NULL;
		if (sizes[i] == FI_AV_AUTH_KEY) /* not a size */
			continue;
		info->ep_attr->auth_key = guarded(16);
		info->ep_attr->auth_key_size = sizes[i];
		CHECK(!fi_dupinfo(info), "key of %zx", sizes[i]);
	}
}

static void dupinfo_sizes_of_nothing(void *arg)
{
	struct fi_info *info = fi_allocinfo(), *copy;

	(void) arg;
	info->src_addrlen = info->dest_addrlen = SIZE_MAX;
	info->ep_attr->auth_key_size = info->domain_attr->auth_key_size = SIZE_MAX;
	copy = fi_dupinfo(info);
	CHECK(copy && !copy->src_addr && !copy->dest_addr && !copy->ep_attr->auth_key, "something out of nothing");
	fi_freeinfo(copy);
}

static void freeinfo_null(void *arg)
{
	(void) arg;
	fi_freeinfo(NULL);
	fi_freeinfo(calloc(1, sizeof(struct fi_info))); /* no parts */
}

/* ---- fi_fabric, fi_fabric2, fi_open ---- */

static void fabric_nulls(void *arg)
{
	struct fi_fabric_attr attr = { 0 };
	struct fid_fabric *fabric = NULL;

	(void) arg;
	CHECK(fi_fabric(NULL, &fabric, NULL) == -FI_EINVAL, "no attributes");
	CHECK(fi_fabric(&attr, &fabric, NULL) == -FI_EINVAL, "no names");
	attr.name = "echo-fabric";
	CHECK(fi_fabric(&attr, &fabric, NULL) == -FI_EINVAL, "no provider name");
	attr.prov_name = "echo";
	attr.name = NULL;
	CHECK(fi_fabric(&attr, &fabric, NULL) == -FI_EINVAL, "no fabric name");
	attr.name = "echo-fabric";
	CHECK(fi_fabric(&attr, NULL, NULL) == -FI_EINVAL, "no place");
}

static void fabric_unknown(void *arg)
{
	static const char *const names[] = { "nobody", "", ";", ";;;;", "echo;nobody", "echo;", "^echo", "\xff\xfe", "ech", "%n%n" };
	struct fi_fabric_attr attr = { .name = "echo-fabric" };
	struct fid_fabric *fabric = NULL;
	size_t i;
	int ret;

	(void) arg;
	for (i = 0; i < COUNT(names); i++) {
		attr.prov_name = (char *) names[i];
		ret = fi_fabric(&attr, &fabric, NULL);
		CHECK(ret == -FI_ENODEV, "provider '%s': %d", names[i], ret);
	}
	attr.prov_name = endless('x');
	CHECK(fi_fabric(&attr, &fabric, NULL) == -FI_ENODEV, "a long name");
	attr.prov_name = endless(';');
	CHECK(fi_fabric(&attr, &fabric, NULL) == -FI_ENODEV, "many names");
}

static void fabric2_nulls(void *arg)
{
	struct fi_info *info = fi_allocinfo(), bare = { 0 };
	struct fid_fabric *fabric = NULL;

	(void) arg;
	CHECK(fi_fabric2(NULL, &fabric, 0, NULL) == -FI_EINVAL, "no info");
	CHECK(fi_fabric2(&bare, &fabric, 0, NULL) == -FI_EINVAL, "no attributes");
	CHECK(fi_fabric2(info, &fabric, 0, NULL) == -FI_EINVAL, "no names");
	info->fabric_attr->prov_name = strdup("echo");
	info->fabric_attr->name = strdup("echo-fabric");
	CHECK(fi_fabric2(info, &fabric, 1, NULL) == -FI_EINVAL, "a flag");
	CHECK(fi_fabric2(info, NULL, 0, NULL) == -FI_EINVAL, "no place");
}

static void open_unknown(void *arg)
{
	static const char *const names[] = { "", "nothing", "logging2", "\xff\xfe" };
	struct fid *fid = NULL;
	size_t i;

	(void) arg;
	for (i = 0; i < COUNT(names); i++)
		CHECK(fi_open(API, names[i], NULL, 0, 0, &fid, NULL) == -FI_ENOSYS, "'%s'", names[i]);
	CHECK(fi_open(API, endless('m'), NULL, 0, 0, &fid, NULL) == -FI_ENOSYS, "a long name");
	CHECK(fi_open(API, NULL, NULL, 0, 0, &fid, NULL) == -FI_EINVAL, "no name");
}

static void open_arguments(void *arg)
{
	const char *name = arg;
	struct fid *fid = NULL;
	int attr;

	CHECK(fi_open(API, name, NULL, 0, 0, NULL, NULL) == -FI_EINVAL, "no place");
	CHECK(fi_open(FI_VERSION(1, 12), name, NULL, 0, 0, &fid, NULL) == -FI_EINVAL, "before it was there");
	CHECK(fi_open(API, name, &attr, sizeof(attr), 0, &fid, NULL) == -FI_EINVAL, "attributes");
	CHECK(fi_open(API, name, NULL, 0, 1ULL << 40, &fid, NULL) == -FI_EBADFLAGS, "flags");
}

/* ---- the environment ---- */

struct setting {
	const char *name, *value;
};

static const struct setting settings[] = {
	{ "FI_PROVIDER", "" }, { "FI_PROVIDER", "," }, { "FI_PROVIDER", "^" }, { "FI_PROVIDER", "^^^" },
	{ "FI_PROVIDER", ",,,;;;,^" }, { "FI_PROVIDER", "\xff\xfe" }, { "FI_PROVIDER", "nobody" },
	{ "FI_PROVIDER_PATH", "" }, { "FI_PROVIDER_PATH", ":::" }, { "FI_PROVIDER_PATH", "@" }, { "FI_PROVIDER_PATH", "+" },
	{ "FI_PROVIDER_PATH", "@+@" }, { "FI_PROVIDER_PATH", "/nowhere:/dev/null" },
	{ "FI_PROVIDER_PATH", "+/etc/passwd" }, { "FI_PROVIDER_PATH", "+relative.so" }, { "FI_PROVIDER_PATH", "\xff" },
	{ "FI_LOG_LEVEL", "loud" }, { "FI_LOG_LEVEL", "" }, { "FI_LOG_SUBSYS", ",,^" }, { "FI_LOG_PROV", "^^" },
	{ "FI_LOG_LOCATION", "/nowhere/at/all" }, { "FI_LOG_LOCATION", "" }, { "FI_LOG_INTERVAL", "-5" },
	{ "FI_LOG_INTERVAL", "99999999999999999999999" }, { "FI_UNIVERSE_SIZE", "-1" }, { "FI_UNIVERSE_SIZE", "many" },
	{ "FI_UNIVERSE_SIZE", "99999999999999999999999" }, { "FI_HOOK", "nobody" }, { "FI_HOOK", ";;;" },
	{ "FI_PREFER_SYSCONFIG", "perhaps" },
};

static void environment(void *arg)
{
	const struct setting *setting = arg;
	struct fi_param *params = NULL;
	struct fi_info *hints = fi_allocinfo();
	int count = 0;

	freopen("/dev/null", "w", stderr);
	setenv(setting->name, setting->value ? setting->value : endless(','), 1);
	survives(API, NULL, NULL, 0, NULL);
	hints->fabric_attr->prov_name = "echo";
	survives(API, NULL, NULL, 0, hints);
	CHECK(fi_getparams(&params, &count) == 0, "fi_getparams");
	fi_freeparams(params);
}

/* ---- the callable inline API ---- */

static void twins(void *arg)
{
	int (*close_it)(struct fid *) = dlvsym(RTLD_DEFAULT, "fi_close", "FABRIC_RS_1.0");
	int (*set_ops)(struct fid *, const char *, uint64_t, void *, void *) =
		dlvsym(RTLD_DEFAULT, "fi_set_ops", "FABRIC_RS_1.0");
	struct fi_ops *short_table = guarded(offsetof(struct fi_ops, tostr));
	struct fi_ops empty = { .size = sizeof(empty) };
	struct fid fid = { .ops = &empty };

	(void) arg;
	CHECK(close_it && set_ops, "not there");
	CHECK(close_it(&fid) == -FI_ENOSYS, "an empty slot");
	CHECK(set_ops(&fid, "x", 0, NULL, NULL) == -FI_ENOSYS, "an empty late slot");
	short_table->size = offsetof(struct fi_ops, tostr);
	fid.ops = short_table;
	CHECK(set_ops(&fid, "x", 0, NULL, NULL) == -FI_ENOSYS, "a table from before the slot");
}

int main(void)
{
	static const struct bad cases[] = {
		{ "getinfo-no-place", getinfo_no_place, NULL },
		{ "getinfo-future-version", getinfo_future, NULL },
		{ "getinfo-ancient-version", getinfo_ancient, NULL },
		{ "getinfo-flags", getinfo_flags, NULL },
		{ "getinfo-strings", getinfo_strings, NULL },
		{ "getinfo-empty-hints", getinfo_empty_hints, NULL },
		{ "getinfo-provider-names", getinfo_provider_names, NULL },
		{ "getinfo-absurd-hints", getinfo_absurd_hints, NULL },
		{ "getinfo-absurd-sizes", getinfo_absurd_sizes, NULL },
		{ "dupinfo-absurd-sizes", dupinfo_absurd_sizes, NULL },
		{ "dupinfo-sizes-of-nothing", dupinfo_sizes_of_nothing, NULL },
		{ "freeinfo-null", freeinfo_null, NULL },
		{ "fabric-nulls", fabric_nulls, NULL },
		{ "fabric-unknown", fabric_unknown, NULL },
		{ "fabric2-nulls", fabric2_nulls, NULL },
		{ "open-unknown", open_unknown, NULL },
		{ "open-logging", open_arguments, "logging" },
		{ "open-mr_cache", open_arguments, "mr_cache" },
		{ "twins-empty-slots", twins, NULL },
	};
	static const char *const endless_names[] = { "FI_PROVIDER", "FI_PROVIDER_PATH", "FI_LOG_PROV", "FI_LOG_SUBSYS",
						     "FI_LOG_LOCATION", "FI_HOOK" };
	char name[96];
	size_t i;
	int failed = 0;

	for (i = 0; i < COUNT(cases); i++)
		failed += run_case(cases[i].name, cases[i].body, cases[i].arg);
	for (i = 0; i < bad_text_count; i++)
		failed += run_case(bad_texts[i].name, bad_texts[i].body, bad_texts[i].arg);
	for (i = 0; i < COUNT(settings); i++) {
		snprintf(name, sizeof(name), "environment-%zu-%s", i, settings[i].name);
		failed += run_case(name, environment, (void *) &settings[i]);
	}
	for (i = 0; i < COUNT(endless_names); i++) {
		struct setting setting = { endless_names[i], NULL };

		snprintf(name, sizeof(name), "environment-endless-%s", endless_names[i]);
		failed += run_case(name, environment, &setting);
	}
	return failed != 0;
}

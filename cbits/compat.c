/*
 * Other versions of the exported functions than the default ones: for programs linked against older releases of the C
 * library, and against the one to come.
 *
 * A version can only be given to a symbol in the object that defines it, and stable Rust has no way to say it that
 * survives splitting into codegen units. So each entry here only jumps to its Rust function, which knows the layout that
 * the version stands for. Linked into libfabric.so.1 alone: libfabric.a has the newest versions only.
 */

#include <stdint.h>

struct fi_info;
struct fi_fabric_attr;
struct fid_fabric;

/* Hidden, so that the jump is direct: nothing can come between. */
#define OTHER(ret, name, tag, version, params, args)                        \
	__attribute__((visibility("hidden"))) ret rs_##name##_##tag params; \
	ret other_##name##_##tag params;                                    \
	ret other_##name##_##tag params                                     \
	{                                                                   \
		return rs_##name##_##tag args;                              \
	}                                                                   \
	__asm__(".symver other_" #name "_" #tag "," #name "@" version)

#define OTHER_INFO(tag, version)                                                                               \
	OTHER(int, fi_getinfo, tag, version,                                                                   \
	    (uint32_t api, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, \
	     struct fi_info **info),                                                                           \
	    (api, node, service, flags, hints, info));                                                         \
	OTHER(struct fi_info *, fi_dupinfo, tag, version, (const struct fi_info *info), (info));               \
	__attribute__((visibility("hidden"))) void rs_fi_freeinfo_##tag(struct fi_info *info);                 \
	void other_fi_freeinfo_##tag(struct fi_info *info);                                                    \
	void other_fi_freeinfo_##tag(struct fi_info *info)                                                     \
	{                                                                                                      \
		rs_fi_freeinfo_##tag(info);                                                                    \
	}                                                                                                      \
	__asm__(".symver other_fi_freeinfo_" #tag ",fi_freeinfo@" version)

OTHER_INFO(1_0, "FABRIC_1.0");
OTHER_INFO(1_1, "FABRIC_1.1");
OTHER_INFO(1_2, "FABRIC_1.2");
OTHER_INFO(1_3, "FABRIC_1.3");
OTHER_INFO(1_7, "FABRIC_1.7");
OTHER_INFO(1_8, "FABRIC_1.8");
OTHER_INFO(1_10, "FABRIC_1.10");

OTHER(int, fi_fabric, 1_0, "FABRIC_1.0", (struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context),
    (attr, fabric, context));

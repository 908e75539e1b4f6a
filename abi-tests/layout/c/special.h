/*
 * Tests by hand of the inlines that do more than one call. Each gets the function to try: the inline of the headers,
 * or the symbol of a library, whose own fi_open, fi_dupinfo and fi_param_get then run instead of the stubs here.
 */

#define CALL(name) ((__typeof__(&name)) f)
#define BAD_ANSWER (-12345)

static struct fid *opened;
static int open_answer;

int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags, struct fid **fid,
	    void *context)
{
	entered("fi_open");
	put(&version, sizeof(version));
	put(&name, sizeof(name));
	put(&attr, sizeof(attr));
	put(&attr_len, sizeof(attr_len));
	put(&flags, sizeof(flags));
	put(&context, sizeof(context));
	*fid = opened;
	return open_answer;
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	entered("fi_dupinfo");
	put(&info, sizeof(info));
	return (struct fi_info *) 0x7700;
}

int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	entered("fi_param_get");
	put(&provider, sizeof(provider));
	put(&param_name, sizeof(param_name));
	put(&value, sizeof(value));
	return 77;
}

/* The argument of fi_control that points to a struct. */
#define CONTROL(object, command, struct_type)      \
	do {                                       \
		begin();                           \
		seen.follow = 2;                   \
		seen.follow_size = sizeof(struct_type); \
		WANT(struct fid *, object);        \
		WANT(int, command);                \
		want_any();                        \
	} while (0)
#define ARGUMENT(type) ((type *) seen.followed.bytes)

static void special_fi_alias(any_function f)
{
	struct fid_ep ep;
	struct fid *other;

	fill_fid_ep(&ep);
	CONTROL(&ep.fid, FI_ALIAS, struct fi_alias);
	CHECK(CALL(fi_alias)(&ep.fid, &other, ANY_NUMBER) == ANSWER_fi_ops_control, "answer");
	reached("fi_ops.control");
	CHECK(ARGUMENT(struct fi_alias)->fid == &other && ARGUMENT(struct fi_alias)->flags == ANY_NUMBER, "fi_alias");
}

static void special_fi_ep_alias(any_function f)
{
	struct fid_ep ep, *other = NULL;

	fill_fid_ep(&ep);
	CONTROL(&ep.fid, FI_ALIAS, struct fi_alias);
	CHECK(CALL(fi_ep_alias)(&ep, &other, ANY_NUMBER) == ANSWER_fi_ops_control, "answer");
	reached("fi_ops.control");
	CHECK(ARGUMENT(struct fi_alias)->fid && ARGUMENT(struct fi_alias)->flags == ANY_NUMBER, "fi_alias");
	CHECK(!other, "an alias after a failure");
}

static void special_fi_get_val(any_function f)
{
	struct fid_ep ep;
	int value;

	fill_fid_ep(&ep);
	CONTROL(&ep.fid, FI_GET_VAL, struct fi_fid_var);
	CHECK(CALL(fi_get_val)(&ep.fid, 0x5151, &value) == ANSWER_fi_ops_control, "answer");
	reached("fi_ops.control");
	CHECK(ARGUMENT(struct fi_fid_var)->name == 0x5151 && ARGUMENT(struct fi_fid_var)->val == &value, "fi_fid_var");
}

static void special_fi_set_val(any_function f)
{
	struct fid_ep ep;
	int value;

	fill_fid_ep(&ep);
	CONTROL(&ep.fid, FI_SET_VAL, struct fi_fid_var);
	CHECK(CALL(fi_set_val)(&ep.fid, 0x5151, &value) == ANSWER_fi_ops_control, "answer");
	reached("fi_ops.control");
	CHECK(ARGUMENT(struct fi_fid_var)->name == 0x5151 && ARGUMENT(struct fi_fid_var)->val == &value, "fi_fid_var");
}

static void special_fi_export_fid(any_function f)
{
	struct fid_ep ep;
	struct fid *other;
	struct fi_fid_export *arg = ARGUMENT(struct fi_fid_export);

	fill_fid_ep(&ep);
	CONTROL(&ep.fid, FI_EXPORT_FID, struct fi_fid_export);
	CHECK(CALL(fi_export_fid)(&ep.fid, ANY_NUMBER, &other, &ep) == ANSWER_fi_ops_control, "answer");
	reached("fi_ops.control");
	CHECK(arg->fid == &other && arg->flags == ANY_NUMBER && arg->context == &ep, "fi_fid_export");
}

/* A call with flags and its older form without: 0 flags ask for the older one. */
#define TWO_FORMS(name, object, table, ops_type, older, newer, ...)                               \
	do {                                                                                      \
		struct ops_type cut = *object->table;                                             \
		begin();                                                                          \
		CHECK(CALL(name)(__VA_ARGS__, 0, (void *) 0x77) == ANSWER_##ops_type##_##older, "answer"); \
		CHECK(seen.calls == 1 && !strcmp(seen.slot, #ops_type "." #older), "reached %s", seen.slot); \
		CHECK(seen.arg[seen.count - 1] == 0x77, "context of the older");                  \
		begin();                                                                          \
		CHECK(CALL(name)(__VA_ARGS__, ANY_NUMBER, (void *) 0x77) == ANSWER_##ops_type##_##newer, "answer"); \
		CHECK(seen.calls == 1 && !strcmp(seen.slot, #ops_type "." #newer), "reached %s", seen.slot); \
		CHECK(seen.arg[seen.count - 2] == ANY_NUMBER && seen.arg[seen.count - 1] == 0x77, "arguments"); \
		begin();                                                                          \
		cut.size = offsetof(struct ops_type, newer);                                      \
		object->table = &cut;                                                             \
		CHECK(CALL(name)(__VA_ARGS__, ANY_NUMBER, NULL) == -FI_ENOSYS, "answer of a short table"); \
		cut.size = sizeof(cut);                                                           \
		cut.newer = NULL;                                                                 \
		CHECK(CALL(name)(__VA_ARGS__, ANY_NUMBER, NULL) == -FI_ENOSYS, "answer of an empty slot"); \
		CHECK(seen.calls == 0, "a call through a missing slot");                          \
	} while (0)

static void special_fi_domain2(any_function f)
{
	struct fid_fabric object, *fabric = &object;

	fill_fid_fabric(fabric);
	TWO_FORMS(fi_domain2, fabric, ops, fi_ops_fabric, domain, domain2, fabric, (void *) 0x11, (void *) 0x22);
}

static void special_fi_endpoint2(any_function f)
{
	struct fid_domain object, *domain = &object;

	fill_fid_domain(domain);
	TWO_FORMS(fi_endpoint2, domain, ops, fi_ops_domain, endpoint, endpoint2, domain, (void *) 0x11, (void *) 0x22);
}

static void special_fi_barrier2(any_function f)
{
	struct fid_ep object, *ep = &object;

	fill_fid_ep(ep);
	TWO_FORMS(fi_barrier2, ep, collective, fi_ops_collective, barrier, barrier2, ep, 0x11);
}

static void special_fi_join_collective(any_function f)
{
	struct fid_ep ep;
	struct fid_av_set set;
	struct fid_mc *mc;
	struct fi_collective_addr *addr = ARGUMENT(struct fi_collective_addr);

	fill_fid_ep(&ep);
	begin();
	seen.follow = 1;
	seen.follow_size = sizeof(*addr);
	WANT(struct fid_ep *, &ep);
	want_any();
	WANT(uint64_t, 5 | FI_COLLECTIVE);
	WANT(struct fid_mc **, &mc);
	WANT(void *, 0x77);
	CHECK(CALL(fi_join_collective)(&ep, ANY_NUMBER, &set, 5, &mc, (void *) 0x77) == ANSWER_fi_ops_cm_join, "answer");
	reached("fi_ops_cm.join");
	CHECK(addr->set == &set && addr->coll_addr == ANY_NUMBER, "fi_collective_addr");
}

static struct fid_profile profile;

static int open_profile_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	entered("profile");
	put(&fid, sizeof(fid));
	put(&flags, sizeof(flags));
	put(&context, sizeof(context));
	CHECK(!strcmp(name, "fi_profile_ops"), "opens %s", name);
	*ops = &profile.ops;
	return open_answer;
}

static void special_fi_profile_open(any_function f)
{
	struct fi_ops ops = { .size = sizeof(ops), .ops_open = open_profile_ops };
	struct fid fid = { .ops = &ops };
	struct fid_profile *got = NULL;

	begin();
	WANT(struct fid *, &fid);
	WANT(uint64_t, ANY_NUMBER);
	WANT(void *, 0x77);
	open_answer = 0;
	CHECK(CALL(fi_profile_open)(&fid, ANY_NUMBER, &got, (void *) 0x77) == 0, "answer");
	reached("profile");
	CHECK(got == &profile, "not the profile that holds the operations");
	got = NULL;
	open_answer = BAD_ANSWER;
	CHECK(CALL(fi_profile_open)(&fid, 0, &got, NULL) == BAD_ANSWER && !got, "after a failure");
}

static void special_fi_allocinfo(any_function f)
{
	struct fi_info *info;

	begin();
	info = CALL(fi_allocinfo)();
	if (library) {
		void (*free_info)(struct fi_info *) = (void (*)(struct fi_info *)) dlsym(library, "fi_freeinfo");

		CHECK(info && info->domain_attr && !info->caps, "an empty fi_info");
		if (free_info && info)
			free_info(info);
		return;
	}
	WANT(struct fi_info *, NULL);
	CHECK(info == (struct fi_info *) 0x7700, "answer");
	reached("fi_dupinfo");
}

#define PARAM_GET(getter, value_type)                                                   \
	static void special_##getter(any_function f)                                    \
	{                                                                               \
		struct fi_provider provider = { .name = "nobody" };                     \
		const char *variable = "of this name";                                  \
		value_type value;                                                       \
		int got;                                                                \
		begin();                                                                \
		WANT(struct fi_provider *, &provider);                                  \
		WANT(const char *, variable);                                           \
		WANT(value_type *, &value);                                             \
		got = CALL(getter)(&provider, variable, &value);                        \
		if (library) {                                                          \
			CHECK(got < 0, "an unknown variable has a value");              \
			return;                                                         \
		}                                                                       \
		CHECK(got == 77, "answer");                                             \
		reached("fi_param_get");                                                \
	}

PARAM_GET(fi_param_get_str, char *)
PARAM_GET(fi_param_get_int, int)
PARAM_GET(fi_param_get_bool, int)
PARAM_GET(fi_param_get_size_t, size_t)

static int closed, bound;

static int close_opened(struct fid *fid)
{
	closed += fid == opened;
	return 0;
}

static int bind_opened(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	bound += fid == opened && bfid == (struct fid *) 0x99 && flags == ANY_NUMBER;
	return 99;
}

static void special_fi_import(any_function f)
{
	struct fi_ops ops = { .size = sizeof(ops), .close = close_opened, .bind = bind_opened };
	struct fid fid = { .ops = &ops };

	begin();
	opened = &fid;
	if (library) {
		CHECK(CALL(fi_import)(FI_VERSION(2, 0), "no such thing", NULL, 0, 0, &fid, NULL) < 0, "imports anything");
		return;
	}
	WANT(uint32_t, FI_VERSION(2, 1));
	WANT(const char *, 0x11);
	WANT(void *, 0x22);
	WANT(size_t, 33);
	WANT(uint64_t, ANY_NUMBER);
	WANT(void *, 0x77);
	open_answer = 0;
	CHECK(CALL(fi_import)(FI_VERSION(2, 1), (char *) 0x11, (void *) 0x22, 33, ANY_NUMBER, (struct fid *) 0x99,
			      (void *) 0x77) == 99, "answer is not that of bind");
	reached("fi_open");
	CHECK(bound == 1 && closed == 1, "%d binds, %d closes", bound, closed);
	open_answer = BAD_ANSWER;
	CHECK(CALL(fi_import)(0, "", NULL, 0, 0, NULL, NULL) == BAD_ANSWER && closed == 1, "after a failure");
}

static void special_fi_import_log(any_function f)
{
	static struct fid_logging log;
	static struct fi_ops_log log_ops;

	begin();
	memset(&log_ops, 0, sizeof(log_ops));
	log.ops = &log_ops;
	open_answer = BAD_ANSWER;
	/* No library knows of such a version, so none keeps hold of this log. */
	CHECK(CALL(fi_import_log)(FI_VERSION(999, 0), ANY_NUMBER, &log) < 0, "answer");
	CHECK(log.fid.fclass == FI_CLASS_LOG && log_ops.size == sizeof(log_ops), "class or size");
	if (library)
		return;
	CHECK(!strcmp((const char *) (uintptr_t) seen.arg[1], "logging"), "opens another name");
	WANT(uint32_t, FI_VERSION(999, 0));
	want_any();
	WANT(void *, NULL);
	WANT(size_t, 0);
	WANT(uint64_t, ANY_NUMBER);
	WANT(void *, &log);
	reached("fi_open");
}

static ssize_t read_var_answer;

static ssize_t read_var(struct fid_profile *prof_fid, uint32_t id, void *data, size_t *size)
{
	(void) prof_fid, (void) id, (void) data;
	CHECK(*size == sizeof(uint64_t), "size of a variable");
	return read_var_answer;
}

/* Beside their slots, which are tested as all others are. */
static void more_fi_profile_read_u64(any_function f)
{
	struct fi_profile_ops ops = { .size = sizeof(ops), .read_var = read_var };
	struct fid_profile profile = { .ops = &ops };
	uint64_t data;

	read_var_answer = 8;
	CHECK(CALL(fi_profile_read_u64)(&profile, 1, &data) == 0, "a good answer is 0");
	read_var_answer = BAD_ANSWER;
	CHECK(CALL(fi_profile_read_u64)(&profile, 1, &data) == BAD_ANSWER, "a bad answer stays");
}

static void more_fi_cq_readerr(any_function f)
{
	struct fi_cq_err_entry entry = { .src_addr = 5, .olen = 6 };
	struct fid_cq cq;

	fill_fid_cq(&cq);
	begin();
	CHECK(CALL(fi_cq_readerr)(&cq, &entry, 0) == ANSWER_fi_ops_cq_readerr, "answer");
	CHECK(entry.src_addr == FI_ADDR_NOTAVAIL && entry.olen == 6, "src_addr before the call");
	CHECK(CALL(fi_cq_readerr)(&cq, NULL, 0) == ANSWER_fi_ops_cq_readerr, "answer without a buffer");
}

static void more_fi_mr_refresh(any_function f)
{
	struct fi_mr_modify *modify = ARGUMENT(struct fi_mr_modify), zero;
	struct iovec iov;
	struct fid_mr mr;

	fill_fid_mr(&mr);
	begin();
	seen.follow = 2;
	seen.follow_size = sizeof(*modify);
	CALL(fi_mr_refresh)(&mr, &iov, 33, ANY_NUMBER);
	CHECK(modify->attr.mr_iov == &iov && modify->attr.iov_count == 33, "fi_mr_attr");
	memset(&zero, 0, sizeof(zero));
	zero.flags = ANY_NUMBER;
	zero.attr.mr_iov = &iov;
	zero.attr.iov_count = 33;
	CHECK(!memcmp(modify, &zero, sizeof(zero)), "the rest is not zero");
}

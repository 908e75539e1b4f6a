/*
 * fi_import_log and fi_open("logging"): fi_provider(3) and fabric(7). A program's own log callbacks: what they are asked
 * and told, when they go, and what is refused.
 *
 *     log_import              what holds for every libfabric.so.1
 *     log_import --strict     also what this library promises beyond the C library
 */
#define PROGRAM "log_import"
#include "log.h"

#include <pthread.h>

/* What the imported callbacks heard. */
static volatile int asked, ready_asked, heard, heard_core;
static char last[8192];

static int my_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, uint64_t flags)
{
	(void)prov, (void)level, (void)flags;
	asked++;
	return subsys == FI_LOG_MR || subsys == FI_LOG_CORE;
}

static int my_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, uint64_t flags,
		    uint64_t *showtime)
{
	(void)prov, (void)level, (void)subsys, (void)flags;
	ready_asked++;
	*showtime = 77;
	return 1;
}

static void my_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, const char *func,
		   int line, const char *msg)
{
	heard++;
	if (!strcmp(prov->name, "core"))
		heard_core++;
	else
		snprintf(last, sizeof(last), "%s %d %d %s %d %s", prov->name, level, subsys, func, line, msg);
}

static void import(void)
{
	struct fi_ops_log ops = { .enabled = my_enabled, .ready = my_ready, .log = my_log };
	struct fid_logging log = { .ops = &ops };
	struct fi_info *info = NULL;
	struct fid *fid;
	uint64_t showtime = 0;

	redirect(2, "log");
	CHECK(fi_import_log(FI_VERSION(1, 13), 0, &log) == 0);
	start();
	CHECK(fi_log_enabled(&unit, FI_LOG_WARN, FI_LOG_MR) && !fi_log_enabled(&unit, FI_LOG_WARN, FI_LOG_AV));
	CHECK(asked >= 2);
	CHECK(fi_log_ready(&unit, FI_LOG_WARN, FI_LOG_AV, &showtime) && showtime == 77 && ready_asked == 1);
	fi_log(&unit, FI_LOG_TRACE, FI_LOG_MR, "func", 9, "%d %s\n", 1, "two");
	CHECK(!strcmp(last, "unit 1 8 func 9 1 two\n"));
	heard_core = 0;
	if (fi_getinfo(FI_VERSION(1, 13), NULL, NULL, 0, NULL, &info) == 0)
		fi_freeinfo(info);
	CHECK(heard_core > 0);
	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &fid, NULL) == -FI_EALREADY);
	CHECK(!strstr(content("log"), "libfabric:"));

	CHECK(fi_close(&log.fid) == 0);
	heard = 0;
	CHECK(!fi_log_enabled(&unit, FI_LOG_WARN, FI_LOG_MR));
	say("to the default");
	CHECK(heard == 0 && strstr(content("log"), "to the default 7"));
	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &fid, NULL) == 0 && fi_close(fid) == 0);
}

static void partial_import(void)
{
	struct fi_ops_log ops = { .log = my_log };
	struct fid_logging log = { .ops = &ops };

	setenv("FI_LOG_LEVEL", "warn", 1);
	redirect(2, "log");
	start();
	CHECK(fi_import_log(FI_VERSION(1, 13), 0, &log) == 0);
	CHECK(fi_log_enabled(&unit, FI_LOG_WARN, FI_LOG_AV) && !fi_log_enabled(&unit, FI_LOG_TRACE, FI_LOG_AV));
	say("heard");
	CHECK(heard == 1 && strstr(last, "heard 7"));
	CHECK(fi_close(&log.fid) == 0);
}

static void bad_imports(void)
{
	struct fi_ops_log ops = { .size = sizeof(ops), .log = my_log };
	struct fid_logging log = { .fid = { .fclass = FI_CLASS_LOG }, .ops = &ops };
	struct fid *fid = NULL;

	CHECK(fi_open(FI_VERSION(1, 12), "logging", NULL, 0, 0, &fid, NULL) == -FI_EINVAL);
	CHECK(fi_open(FI_VERSION(1, 13), "logging", &ops, sizeof(ops), 0, &fid, NULL) == -FI_EINVAL);
	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 1, &fid, NULL) == -FI_EBADFLAGS);
	CHECK(fid == NULL);
	CHECK(fi_open(FI_VERSION(1, 13), "LogGing", NULL, 0, 0, &fid, &ops) == 0);
	CHECK(fid && fid->fclass == FI_CLASS_LOG && fid->context == &ops);
	CHECK(fi_import_fid(fid, &log.fid, 1) == -FI_EINVAL);
	log.fid.fclass = FI_CLASS_CQ;
	CHECK(fi_import_fid(fid, &log.fid, 0) == -FI_EINVAL);
	log.fid.fclass = FI_CLASS_LOG;
	ops.size = sizeof(size_t);
	CHECK(fi_import_fid(fid, &log.fid, 0) == -FI_EINVAL);
	CHECK(fid->ops->control(fid, 0, NULL) == -FI_ENOSYS);
	CHECK(fi_close(fid) == 0);
}

static volatile int stop;

static void *talk(void *arg)
{
	while (!stop)
		say(arg);
	return NULL;
}

/* Callbacks come and go while other threads log. */
static void import_under_way(void)
{
	struct fi_ops_log ops = { .log = my_log };
	struct fid_logging log = { .ops = &ops };
	pthread_t thread;
	int i;

	redirect(2, "/dev/null");
	start();
	CHECK(pthread_create(&thread, NULL, talk, "busy") == 0);
	for (i = 0; i < 5000; i++) {
		CHECK(fi_import_log(FI_VERSION(1, 13), 0, &log) == 0);
		CHECK(fi_close(&log.fid) == 0);
	}
	stop = 1;
	pthread_join(thread, NULL);
}

static void strict_odd_imports(void)
{
	struct fi_ops_log ops = { .size = sizeof(ops) };
	struct fid_logging log = { .fid = { .fclass = FI_CLASS_LOG }, .ops = &ops };
	struct fid *fid;

	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, NULL, NULL) == -FI_EINVAL);
	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &fid, NULL) == 0);
	CHECK(fi_import_fid(fid, NULL, 0) == -FI_EINVAL);
	log.ops = NULL;
	CHECK(fi_import_fid(fid, &log.fid, 0) == -FI_EINVAL);
}

/* Closing an import that another has replaced leaves the other in place. */
static void strict_last_import_stays(void)
{
	struct fi_ops_log ops1 = { .size = sizeof(ops1) }, ops2 = { .size = sizeof(ops2), .log = my_log };
	struct fid_logging one = { .fid = { .fclass = FI_CLASS_LOG }, .ops = &ops1 };
	struct fid_logging two = { .fid = { .fclass = FI_CLASS_LOG }, .ops = &ops2 };
	struct fid *fid;

	redirect(2, "log");
	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &fid, NULL) == 0);
	CHECK(fi_import_fid(fid, &one.fid, 0) == 0);
	CHECK(fi_import_fid(fid, &two.fid, 0) == 0);
	CHECK(fi_close(&one.fid) == 0);
	say("heard");
	CHECK(heard == 1 && !strstr(content("log"), "heard"));
	CHECK(fi_close(&two.fid) == 0);
	say("not heard");
	CHECK(heard == 1 && strstr(content("log"), "not heard 7"));
}

int main(int argc, char **argv)
{
	int strict = strict_asked(argc, argv), bad = 0;

	bad += run("import", import);
	bad += run("partial-import", partial_import);
	bad += run("bad-imports", bad_imports);
	bad += run("import-under-way", import_under_way);
	if (strict) {
		bad += run("strict-odd-imports", strict_odd_imports);
		bad += run("strict-last-import-stays", strict_last_import_stays);
	}
	return bad != 0;
}

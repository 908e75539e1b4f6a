/*
 * fi_log, fi_log_enabled, fi_log_ready and fi_import_log: fi_provider(3) and fabric(7).
 *
 *     log              what holds for every libfabric.so.1
 *     log --strict     also what this library promises beyond the C library
 *
 * Each case runs in a child process in a folder of its own (under $WORK, or here), sets the environment, and only then
 * calls the library.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_log.h>

#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			printf("line %d: not so: %s\n", __LINE__, #condition);        \
			failed = 1;                                                   \
		}                                                                     \
	} while (0)

static int failed;
static char text[1 << 20];
static struct fi_provider unit = { .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(1, 5), .name = "unit" };

/* Sets the library up, as the first call of any program does. */
static void start(void)
{
	struct fi_param *params = NULL;
	int count;

	CHECK(fi_getparams(&params, &count) == 0);
	fi_freeparams(params);
}

/* Sends what is written to a descriptor to a file. */
static void redirect(int fd, const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);

	CHECK(file >= 0 && dup2(file, fd) == fd && close(file) == 0);
}

/* The content of a file, in `text`. */
static const char *content(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;

	CHECK(file != NULL);
	if (file) {
		size = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[size] = 0;
	return text;
}

static void say(const char *words)
{
	fi_log(&unit, FI_LOG_WARN, FI_LOG_EP_DATA, "func", 42, "%s %d\n", words, 7);
}

/* Whether `line` is what `say` makes of `words` in the process `pid`. */
static int is_line(const char *line, pid_t pid, const char *words)
{
	char want[256], *rest;
	long said;

	snprintf(want, sizeof(want), "libfabric:%d:", (int)pid);
	if (strncmp(line, want, strlen(want)))
		return 0;
	said = strtol(line + strlen(want), &rest, 10);
	if (said < time(NULL) - 100 || said > time(NULL))
		return 0;
	snprintf(want, sizeof(want), "::unit:ep_data:func():42<warn> %s 7\n", words);
	return !strncmp(rest, want, strlen(want));
}

static void silent_unless_asked(void)
{
	redirect(2, "log");
	start();
	CHECK(!fi_log_enabled(&unit, FI_LOG_WARN, FI_LOG_CORE));
	FI_WARN(&unit, FI_LOG_CORE, "nobody hears this\n");
	CHECK(!strstr(content("log"), "libfabric:"));
}

static void line_format(void)
{
	const char *line;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_PROV", "unit", 1);
	redirect(2, "log");
	start();
	say("hello");
	line = strstr(content("log"), "libfabric:");
	while (line && !strstr(line, ":unit:"))
		line = strstr(line + 1, "libfabric:");
	while (line && strstr(line + 1, "libfabric:"))
		line = strstr(line + 1, "libfabric:");
	CHECK(line && is_line(line, getpid(), "hello"));
}

static const char *level_word;
static int levels_on;

static void level(void)
{
	int number;

	setenv("FI_LOG_LEVEL", level_word, 1);
	redirect(2, "log");
	start();
	for (number = FI_LOG_WARN; number <= FI_LOG_DEBUG; number++)
		CHECK(!!fi_log_enabled(&unit, number, FI_LOG_CNTR) == (number < levels_on));
}

static void subsystems(void)
{
	int number;

	setenv("FI_LOG_LEVEL", "debug", 1);
	setenv("FI_LOG_SUBSYS", "av,CQ", 1);
	redirect(2, "log");
	start();
	for (number = FI_LOG_CORE; number <= FI_LOG_CNTR; number++)
		CHECK(!!fi_log_enabled(&unit, FI_LOG_INFO, number) == (number == FI_LOG_AV || number == FI_LOG_CQ));
}

static void other_subsystems(void)
{
	int number;

	setenv("FI_LOG_LEVEL", "debug", 1);
	setenv("FI_LOG_SUBSYS", "^av,cq", 1);
	redirect(2, "log");
	start();
	for (number = FI_LOG_CORE; number <= FI_LOG_CNTR; number++)
		CHECK(!!fi_log_enabled(&unit, FI_LOG_INFO, number) != (number == FI_LOG_AV || number == FI_LOG_CQ));
}

/* The core marks a silenced provider in its context, behind an enum, in a bool. */
static void silenced_provider(void)
{
	struct { int type; _Bool disable_logging, disable_layering; } context = { 0, 1, 0 };

	setenv("FI_LOG_LEVEL", "warn", 1);
	redirect(2, "log");
	start();
	CHECK(fi_log_enabled(&unit, FI_LOG_WARN, FI_LOG_CORE));
	memcpy(&unit.context, &context, sizeof(context));
	CHECK(!fi_log_enabled(&unit, FI_LOG_WARN, FI_LOG_CORE));
}

static void rate_limit(void)
{
	uint64_t one = 0, two = 0, set;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_INTERVAL", "100000", 1);
	redirect(2, "log");
	start();
	CHECK(!fi_log_ready(&unit, FI_LOG_INFO, FI_LOG_CORE, &one) && one == 0);
	CHECK(fi_log_ready(&unit, FI_LOG_WARN, FI_LOG_CORE, &one));
	CHECK(one >= 100000);
	set = one;
	CHECK(!fi_log_ready(&unit, FI_LOG_WARN, FI_LOG_CORE, &one) && one == set);
	CHECK(fi_log_ready(&unit, FI_LOG_WARN, FI_LOG_CORE, &two));
	one -= 100000;
	CHECK(fi_log_ready(&unit, FI_LOG_WARN, FI_LOG_CORE, &one) && one >= set);
}

static void to_file(void)
{
	struct stat stat_of;

	umask(0);
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_LOCATION", "the.log", 1);
	setenv("FI_LOG_LOCATION_MODE", "0640", 1);
	redirect(2, "log");
	start();
	CHECK(stat("the.log", &stat_of) == 0 && (stat_of.st_mode & 07777) == 0640);
	CHECK(!strstr(content("log"), "libfabric:"));
}

static void to_folder(void)
{
	char name[64];
	struct stat stat_of;

	CHECK(mkdir("logs", 0700) == 0);
	setenv("FI_LOG_LOCATION", "logs", 1);
	redirect(2, "log");
	start();
	snprintf(name, sizeof(name), "logs/ofi_%d.log", (int)getpid());
	CHECK(stat(name, &stat_of) == 0 && (stat_of.st_mode & 07777) == 0600);
}

static void never_overwrites(void)
{
	FILE *file = fopen("precious", "w");

	CHECK(file && fputs("keep me", file) >= 0 && fclose(file) == 0);
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_LOCATION", "precious", 1);
	redirect(2, "log");
	start();
	say("hello");
	CHECK(strstr(content("log"), "hello 7"));
	CHECK(strstr(text, "'precious'") || strstr(text, "precious:"));
	CHECK(!strcmp(content("precious"), "keep me"));
}

/* Lines of several processes that share a log do not run into each other. */
static void whole_lines(void)
{
	int child, line, count = 0, status;
	char *at;

	setenv("FI_LOG_LEVEL", "warn", 1);
	redirect(2, "log");
	for (child = 0; child < 4; child++) {
		if (fork() == 0) {
			start();
			for (line = 0; line < 500; line++)
				say("from a child");
			_exit(failed);
		}
	}
	while (wait(&status) > 0)
		CHECK(status == 0);
	content("log");
	for (at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) {
		char *end = strstr(at, "::unit:ep_data:func():42<warn> from a child 7");

		if (!strstr(at, ":unit:"))
			continue;
		CHECK(end && !strcmp(end, "::unit:ep_data:func():42<warn> from a child 7"));
		count++;
	}
	CHECK(count == 4 * 500);
}

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

static void strict_pid_after_fork(void)
{
	int status;
	pid_t child;
	char *line;

	redirect(2, "log");
	start();
	child = fork();
	if (child == 0) {
		say("child");
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	say("parent");
	line = strdup(content("log"));
	CHECK(is_line(line, child, "child"));
	CHECK(strchr(line, '\n') && is_line(strchr(line, '\n') + 1, getpid(), "parent"));
	free(line);
}

static void strict_long_message(void)
{
	size_t size = 100000;
	char *words = malloc(size);
	const char *found;

	memset(words, 'w', size);
	words[size - 1] = 0;
	redirect(2, "log");
	start();
	fi_log(&unit, FI_LOG_WARN, FI_LOG_MR, "func", 1, "%s!\n", words);
	found = strstr(content("log"), "<warn> ");
	CHECK(found && strlen(found) == strlen("<warn> ") + size - 1 + 2);
	CHECK(found && !strcmp(found + strlen(found) - 3, "w!\n"));
	free(words);
}

static void strict_errno(void)
{
	setenv("FI_LOG_LEVEL", "warn", 1);
	start();
	close(2);
	errno = 77;
	say("to a closed descriptor");
	CHECK(errno == 77);
}

static void strict_odd_arguments(void)
{
	struct fi_provider nameless = { .version = 1 };
	uint64_t showtime = 0;
	struct fid *fid;
	struct fi_ops_log ops = { .size = sizeof(ops) };
	struct fid_logging log = { .fid = { .fclass = FI_CLASS_LOG }, .ops = &ops };

	setenv("FI_LOG_LEVEL", "debug", 1);
	redirect(2, "log");
	start();
	CHECK(fi_log_enabled(NULL, FI_LOG_WARN, FI_LOG_CORE));
	CHECK(!fi_log_enabled(&unit, (enum fi_log_level)99, FI_LOG_CORE));
	CHECK(!fi_log_enabled(&unit, FI_LOG_WARN, (enum fi_log_subsys)99));
	CHECK(!fi_log_ready(&unit, (enum fi_log_level)99, FI_LOG_CORE, &showtime));
	CHECK(fi_log_ready(NULL, FI_LOG_WARN, FI_LOG_CORE, NULL));
	fi_log(NULL, FI_LOG_WARN, FI_LOG_MR, NULL, 1, "from the core");
	fi_log(&nameless, (enum fi_log_level)99, (enum fi_log_subsys)99, "func", 1, "odd\n");
	content("log");
	CHECK(strstr(text, "::core:mr:(null)():1<warn> from the core\n"));
	CHECK(strstr(text, "::(null):unknown:func():1<unknown> odd\n"));

	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, NULL, NULL) == -FI_EINVAL);
	CHECK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &fid, NULL) == 0);
	CHECK(fi_import_fid(fid, NULL, 0) == -FI_EINVAL);
	log.ops = NULL;
	CHECK(fi_import_fid(fid, &log.fid, 0) == -FI_EINVAL);
}

static void strict_says_what_is_wrong(void)
{
	setenv("FI_LOG_LEVEL", "loud", 1);
	setenv("FI_LOG_SUBSYS", "cores", 1);
	setenv("FI_LOG_INTERVAL", "soon", 1);
	setenv("FI_LOG_LOCATION_MODE", "rw", 1);
	redirect(2, "log");
	start();
	content("log");
	CHECK(strstr(text, "FI_LOG_LEVEL=loud") && strstr(text, "warn, trace, info, debug"));
	CHECK(strstr(text, "no subsystem cores") && strstr(text, "ep_ctrl"));
	CHECK(strstr(text, "FI_LOG_INTERVAL=soon"));
	CHECK(strstr(text, "FI_LOG_LOCATION_MODE=rw"));
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

/* Runs a case in a child, in a fresh folder; a crash or a minute without an end is a failure. */
static int run(const char *name, void (*body)(void))
{
	const char *work = getenv("WORK") ? getenv("WORK") : ".";
	char folder[4096], command[4200];
	int status = -1;
	pid_t child;

	snprintf(folder, sizeof(folder), "%s/log-XXXXXX", work);
	if (!mkdtemp(folder)) {
		printf("FAIL log/%s: no folder\n", name);
		return 1;
	}
	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(300);
		CHECK(chdir(folder) == 0);
		body();
		fflush(stdout);
		_exit(failed);
	}
	if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
		printf("ok log/%s\n", name);
	else if (WIFSIGNALED(status))
		printf("FAIL log/%s: ended by signal %d\n", name, WTERMSIG(status));
	else
		printf("FAIL log/%s: see above\n", name);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return (system(command) != 0) | (status != 0);
}

int main(int argc, char **argv)
{
	static const struct { const char *word; int on; } levels[] = {
		{ "warn", 1 }, { "Trace", 2 }, { "info", 3 }, { "DEBUG", 4 }, { "nonsense", 1 },
	};
	int strict = argc == 2 && !strcmp(argv[1], "--strict"), bad = 0;
	size_t i;

	if (argc > 2 || (argc == 2 && !strict)) {
		fprintf(stderr, "usage: log [--strict]\n");
		return 2;
	}
	bad += run("silent-unless-asked", silent_unless_asked);
	bad += run("line-format", line_format);
	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		char name[32];

		level_word = levels[i].word;
		levels_on = levels[i].on;
		snprintf(name, sizeof(name), "level-%s", level_word);
		bad += run(name, level);
	}
	bad += run("subsystems", subsystems);
	bad += run("other-subsystems", other_subsystems);
	bad += run("silenced-provider", silenced_provider);
	bad += run("rate-limit", rate_limit);
	bad += run("to-file", to_file);
	bad += run("to-folder", to_folder);
	bad += run("never-overwrites", never_overwrites);
	bad += run("whole-lines", whole_lines);
	bad += run("import", import);
	bad += run("partial-import", partial_import);
	bad += run("bad-imports", bad_imports);
	bad += run("import-under-way", import_under_way);
	if (strict) {
		bad += run("strict-pid-after-fork", strict_pid_after_fork);
		bad += run("strict-long-message", strict_long_message);
		bad += run("strict-errno", strict_errno);
		bad += run("strict-odd-arguments", strict_odd_arguments);
		bad += run("strict-says-what-is-wrong", strict_says_what_is_wrong);
		bad += run("strict-last-import-stays", strict_last_import_stays);
	}
	return bad != 0;
}

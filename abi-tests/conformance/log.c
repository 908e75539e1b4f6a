/*
 * fi_log, fi_log_enabled and fi_log_ready: fi_provider(3) and fabric(7). What is let through, how a line looks, and where
 * it goes. Log callbacks of the program's own are log_import.c's.
 *
 *     log              what holds for every libfabric.so.1
 *     log --strict     also what this library promises beyond the C library
 */
#define PROGRAM "log"
#include "log.h"

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

int main(int argc, char **argv)
{
	static const struct { const char *word; int on; } levels[] = {
		{ "warn", 1 }, { "Trace", 2 }, { "info", 3 }, { "DEBUG", 4 }, { "nonsense", 1 },
	};
	int strict = strict_asked(argc, argv), bad = 0;
	size_t i;

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
	if (strict) {
		bad += run("strict-pid-after-fork", strict_pid_after_fork);
		bad += run("strict-long-message", strict_long_message);
		bad += run("strict-errno", strict_errno);
		bad += run("strict-odd-arguments", strict_odd_arguments);
		bad += run("strict-says-what-is-wrong", strict_says_what_is_wrong);
	}
	return bad != 0;
}

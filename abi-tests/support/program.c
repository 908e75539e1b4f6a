/* The main function of a program of cases, and its words: see fabric.h. */
#include <stdarg.h>
#include "fabric.h"

const char *provider = "shm";
bool strict, patient, connected_ends, datagram_ends;

static void (*body_now)(void);

/* What fails in the frame (die.h) fails the case, as CHECK does. */
void fail_at(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	printf("FAIL %s: %s:%d: ", case_name, file, line);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	_exit(CASE_FAILED);
}

static void call_body(void *arg)
{
	(void) arg;
	body_now();
}

/* Whether a comma-separated list has the name. */
static bool is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *at = list;

	while ((at = strstr(at, name))) {
		if ((at == list || at[-1] == ',') && (at[len] == 0 || at[len] == ','))
			return true;
		at += len;
	}
	return false;
}

enum { MOST_FILES = 16 };
static struct {
	const struct test *tests;
	size_t count;
} files[MOST_FILES];
static int file_count;

/* Called before `main`, once for each file. */
void add_cases(const struct test *tests, size_t count)
{
	if (file_count == MOST_FILES)
		abort();
	files[file_count].tests = tests;
	files[file_count++].count = count;
}

/* Whether the words after the provider name this case, or no case at all. */
static bool is_wanted(int argc, char **argv, const char *name)
{
	int i, words = 0;

	for (i = 1; i < argc; i++)
		if (strncmp(argv[i], "--", 2) && words++ > 0 && !strcmp(argv[i], name))
			return true;
	return words < 2;
}

/* Words that ask for a case which this program does not have: each is a failure, as nothing was run for it. */
static int strangers(int argc, char **argv)
{
	int i, file, words = 0, count = 0;
	size_t t;

	for (i = 1; i < argc; i++) {
		bool known = !strncmp(argv[i], "--", 2) || words++ == 0;

		for (file = 0; file < file_count; file++)
			for (t = 0; t < files[file].count; t++)
				known |= !strcmp(argv[i], files[file].tests[t].name);
		if (!known)
			printf("FAIL %s: there is no such case\n", argv[i]);
		count += !known;
	}
	return count;
}

static int run_test(const struct test *test)
{
	long began = now_ms();
	int failed;

	body_now = test->body;
	failed = run_case(test->name, call_body, NULL);
	if (getenv("CASE_TIMES"))
		fprintf(stderr, "%6ld ms %s\n", now_ms() - began, test->name);
	return failed;
}

/* The other providers are not asked, and so do not cost time. What the C library does collectives with is a provider of
 * its own, without which it crashes. */
static void choose_provider(const char *name)
{
	char filter[128], *c;

	provider = name;
	snprintf(filter, sizeof(filter), "%s;off_coll", name);
	for (c = filter; *c; c++)
		if (*c == ';')
			*c = ',';
	setenv("FI_PROVIDER", filter, 1);
}

int main(int argc, char **argv)
{
	const char *without = "", *chosen = NULL;
	int failed = 0, i;
	size_t t;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--strict"))
			strict = true;
		else if (!strcmp(argv[i], "--patient"))
			patient = true;
		else if (!strcmp(argv[i], "--connected"))
			connected_ends = true;
		else if (!strcmp(argv[i], "--datagram"))
			datagram_ends = true;
		else if (!strncmp(argv[i], "--without=", 10))
			without = argv[i] + 10;
		else if (!chosen)
			chosen = argv[i];
	}
	choose_provider(chosen ? chosen : provider);
	tagged = of_page == TAGGED_MESSAGES;
	/* A library that is slow to look around does so once, before the cases fork. */
	if (getenv("INFO_FIRST")) {
		struct fi_info *info = NULL;

		fi_getinfo(api_version(), NULL, NULL, 0, NULL, &info);
		fi_freeinfo(info);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("CASE_SECONDS"))
		case_seconds = (unsigned) atoi(getenv("CASE_SECONDS"));
	for (i = 0; i < file_count; i++)
		for (t = 0; t < files[i].count; t++)
			if (is_wanted(argc, argv, files[i].tests[t].name) && !is_listed(without, files[i].tests[t].name))
				failed += run_test(&files[i].tests[t]);
	return failed + strangers(argc, argv) != 0;
}

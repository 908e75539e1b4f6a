/*
 * fi_param_define, fi_param_get, fi_getparams, fi_freeparams: fi_provider(3) and fabric(7).
 *
 *     params               what holds for every libfabric.so.1
 *     params --strict      also what this library promises beyond the C library
 *     params --conf FILE   the configuration file, which the library under test reads at FILE and which is written here
 *
 * Each case runs in a child process that sets the environment before the library's first call.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			printf("line %d: not so: %s\n", __LINE__, #condition);        \
			failed = 1;                                                   \
		}                                                                     \
	} while (0)

static int failed;
static const char *conf_file;
static char warnings[1 << 16];
static struct fi_provider unit = { .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(1, 5), .name = "unit" };
static struct fi_provider other = { .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(1, 5), .name = "oTher" };

/* The row of a variable in fi_getparams, and how often it is there. The caller frees *array. */
static const struct fi_param *find(const char *variable, struct fi_param **array, int *times)
{
	const struct fi_param *found = NULL;
	int count = -1, i;

	*times = 0;
	*array = NULL;
	CHECK(fi_getparams(array, &count) == 0);
	for (i = 0; i < count; i++) {
		if (!strcmp((*array)[i].name, variable)) {
			found = &(*array)[i];
			++*times;
		}
	}
	if (*array)
		CHECK((*array)[count].name == NULL);
	return found;
}

static void kinds(void)
{
	int number = 5, yes = 5;
	size_t size = 5;
	char *text = NULL;

	CHECK(fi_param_define(&unit, "text", FI_PARAM_STRING, "a text") == 0);
	CHECK(fi_param_define(&unit, "number", FI_PARAM_INT, "a number") == 0);
	CHECK(fi_param_define(&unit, "yes", FI_PARAM_BOOL, "yes or no") == 0);
	CHECK(fi_param_define(&unit, "size", FI_PARAM_SIZE_T, "a size") == 0);

	CHECK(fi_param_get_str(&unit, "text", &text) == -FI_ENODATA && text == NULL);
	CHECK(fi_param_get_int(&unit, "number", &number) == -FI_ENODATA && number == 5);
	CHECK(fi_param_get_bool(&unit, "yes", &yes) == -FI_ENODATA && yes == 5);
	CHECK(fi_param_get_size_t(&unit, "size", &size) == -FI_ENODATA && size == 5);

	setenv("FI_UNIT_TEXT", "some text", 1);
	setenv("FI_UNIT_NUMBER", "-42", 1);
	setenv("FI_UNIT_YES", "on", 1);
	setenv("FI_UNIT_SIZE", "0x100000000", 1);
	CHECK(fi_param_get_str(&unit, "text", &text) == 0 && text && !strcmp(text, "some text"));
	CHECK(fi_param_get_int(&unit, "number", &number) == 0 && number == -42);
	CHECK(fi_param_get_bool(&unit, "yes", &yes) == 0 && yes == 1);
	CHECK(fi_param_get_size_t(&unit, "size", &size) == 0 && size == (size_t)0x100000000);

	setenv("FI_UNIT_TEXT", "", 1);
	CHECK(fi_param_get_str(&unit, "text", &text) == 0 && text && !*text);
}

static void bools(void)
{
	static const struct { const char *text; int code, value; } table[] = {
		{ "1", 0, 1 }, { "yes", 0, 1 }, { "TRUE", 0, 1 }, { "On", 0, 1 },
		{ "0", 0, 0 }, { "no", 0, 0 }, { "False", 0, 0 }, { "oFF", 0, 0 },
		{ "2", -FI_EINVAL, 5 }, { "", -FI_EINVAL, 5 }, { "yess", -FI_EINVAL, 5 }, { "-1", -FI_EINVAL, 5 },
	};
	size_t i;

	CHECK(fi_param_define(&unit, "b", FI_PARAM_BOOL, "x") == 0);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int value = 5, code;

		setenv("FI_UNIT_B", table[i].text, 1);
		code = fi_param_get_bool(&unit, "b", &value);
		if (code != table[i].code || value != table[i].value) {
			printf("\"%s\" gives %d, %d\n", table[i].text, code, value);
			failed = 1;
		}
	}
}

static void integers(void)
{
	static const struct { const char *text; int value; } table[] = {
		{ "0", 0 }, { "42", 42 }, { "-7", -7 }, { "+7", 7 }, { " 9", 9 },
		{ "0600", 0600 }, { "0x1f", 31 }, { "0X1F", 31 }, { "-0x10", -16 }, { "2147483647", 2147483647 },
	};
	size_t i;

	CHECK(fi_param_define(&unit, "i", FI_PARAM_INT, "x") == 0);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int value = 5;

		setenv("FI_UNIT_I", table[i].text, 1);
		if (fi_param_get_int(&unit, "i", &value) != 0 || value != table[i].value) {
			printf("\"%s\" gives %d\n", table[i].text, value);
			failed = 1;
		}
	}
}

static void names(void)
{
	struct fi_param *array;
	const struct fi_param *row;
	int value = 0, times;

	CHECK(fi_param_define(&unit, "name", FI_PARAM_INT, "%s %d", "help", 7) == 0);
	CHECK(fi_param_define(&other, "name", FI_PARAM_INT, "of another") == 0);
	CHECK(fi_param_define(NULL, "unit_core", FI_PARAM_SIZE_T, "of the core") == 0);
	setenv("FI_OTHER_NAME", "2", 1);
	setenv("FI_UNIT_NAME", "1", 1);

	CHECK(fi_param_get_int(&unit, "name", &value) == 0 && value == 1);
	CHECK(fi_param_get_int(&other, "name", &value) == 0 && value == 2);
	CHECK(fi_param_get_int(&other, "no_such", &value) == -FI_ENOENT && value == 2);
	CHECK(fi_param_get_int(NULL, "name", &value) == -FI_ENOENT && value == 2);

	row = find("FI_UNIT_NAME", &array, &times);
	CHECK(row && times == 1 && row->type == FI_PARAM_INT && !strcmp(row->help_string, "unit: help 7"));
	CHECK(row && row->value && !strcmp(row->value, "1"));
	fi_freeparams(array);
	row = find("FI_OTHER_NAME", &array, &times);
	CHECK(row && !strcmp(row->help_string, "oTher: of another"));
	fi_freeparams(array);
	row = find("FI_UNIT_CORE", &array, &times);
	CHECK(row && row->type == FI_PARAM_SIZE_T && !strcmp(row->help_string, "of the core") && !row->value);
	fi_freeparams(array);
}

static void core_variables(void)
{
	static const struct { const char *name; enum fi_param_type type; } table[] = {
		{ "FI_PREFER_SYSCONFIG", FI_PARAM_BOOL }, { "FI_LOG_INTERVAL", FI_PARAM_INT },
		{ "FI_LOG_LEVEL", FI_PARAM_STRING }, { "FI_LOG_PROV", FI_PARAM_STRING },
		{ "FI_LOG_SUBSYS", FI_PARAM_STRING }, { "FI_LOG_LOCATION", FI_PARAM_STRING },
		{ "FI_LOG_LOCATION_MODE", FI_PARAM_INT }, { "FI_PROVIDER", FI_PARAM_STRING },
		{ "FI_PROVIDER_PATH", FI_PARAM_STRING }, { "FI_UNIVERSE_SIZE", FI_PARAM_SIZE_T },
		{ "FI_HOOK", FI_PARAM_STRING }, { "FI_FORK_UNSAFE", FI_PARAM_BOOL },
		{ "FI_AV_REMOVE_CLEANUP", FI_PARAM_BOOL }, { "FI_OFFLOAD_COLL_PROVIDER", FI_PARAM_STRING },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct fi_param *array;
		int times;
		const struct fi_param *row = find(table[i].name, &array, &times);

		if (!row || row->type != table[i].type || times != 1) {
			printf("%s is there %d times%s\n", table[i].name, times, row ? ", type" : "");
			failed = 1;
		}
		fi_freeparams(array);
	}
}

static void bad_arguments(void)
{
	int value = 5;

	CHECK(fi_param_define(&unit, NULL, FI_PARAM_INT, "x") == -FI_EINVAL);
	CHECK(fi_param_get(&unit, NULL, &value) == -FI_EINVAL);
	CHECK(fi_param_get(&unit, "n", NULL) == -FI_EINVAL);
	CHECK(value == 5);
}

static void same_pointer(void)
{
	char *first = NULL, *text = NULL;
	int i;

	CHECK(fi_param_define(&unit, "text", FI_PARAM_STRING, "x") == 0);
	setenv("FI_UNIT_TEXT", "steady", 1);
	CHECK(fi_param_get_str(&unit, "text", &first) == 0);
	for (i = 0; i < 1000; i++)
		CHECK(fi_param_get_str(&unit, "text", &text) == 0 && text == first && !strcmp(text, "steady"));
}

static void strict_arguments(void)
{
	static const char *volatile empty = "";
	struct fi_param *array = NULL;
	int count = 5;

	CHECK(fi_getparams(NULL, &count) == -FI_EINVAL);
	CHECK(fi_getparams(&array, NULL) == -FI_EINVAL);
	CHECK(array == NULL && count == 5);
	fi_freeparams(NULL);
	CHECK(fi_param_define(&unit, "n", FI_PARAM_INT, NULL) == -FI_EINVAL);
	CHECK(fi_param_define(&unit, "n", FI_PARAM_INT, empty, "") == -FI_EINVAL);
	CHECK(fi_param_define(&unit, "n", (enum fi_param_type)77, "x") == -FI_EINVAL);
}

static void strict_no_duplicates(void)
{
	struct fi_param *array;
	const struct fi_param *row;
	int times;

	CHECK(fi_param_define(&unit, "twice", FI_PARAM_STRING, "old") == 0);
	CHECK(fi_param_define(&unit, "twice", FI_PARAM_INT, "new") == 0);
	row = find("FI_UNIT_TWICE", &array, &times);
	CHECK(row && times == 1 && row->type == FI_PARAM_INT && !strcmp(row->help_string, "unit: new"));
	fi_freeparams(array);
}

/* A value that cannot be read is refused, the default stays, and the log names the variable and the text. */
static void strict_bad_numbers(void)
{
	static const struct { const char *number, *size; } table[] = {
		{ "ten", "ten" }, { "10k", "10k" }, { "", "" }, { "2147483648", "-1" },
		{ "99999999999999999999", "99999999999999999999" },
	};
	FILE *log = tmpfile();
	size_t i;

	CHECK(log && dup2(fileno(log), 2) == 2);
	CHECK(fi_param_define(&unit, "i", FI_PARAM_INT, "x") == 0);
	CHECK(fi_param_define(&unit, "s", FI_PARAM_SIZE_T, "x") == 0);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int value = 5;
		size_t size = 5;
		char complaint[64];

		setenv("FI_UNIT_I", table[i].number, 1);
		setenv("FI_UNIT_S", table[i].size, 1);
		CHECK(fi_param_get_int(&unit, "i", &value) == -FI_EINVAL && value == 5);
		CHECK(fi_param_get_size_t(&unit, "s", &size) == -FI_EINVAL && size == 5);
		rewind(log);
		warnings[fread(warnings, 1, sizeof(warnings) - 1, log)] = 0;
		snprintf(complaint, sizeof(complaint), "FI_UNIT_I=%s ", table[i].number);
		CHECK(strstr(warnings, complaint));
		snprintf(complaint, sizeof(complaint), "FI_UNIT_S=%s ", table[i].size);
		CHECK(strstr(warnings, complaint));
	}
	CHECK(strstr(warnings, ":unit:core:") && strstr(warnings, "<warn>"));
}

/* A string handed out stays, whatever becomes of the environment. */
static void strict_strings_stay(void)
{
	char *got[100], want[32];
	int i;

	CHECK(fi_param_define(&unit, "text", FI_PARAM_STRING, "x") == 0);
	for (i = 0; i < 100; i++) {
		snprintf(want, sizeof(want), "text number %d", i);
		setenv("FI_UNIT_TEXT", want, 1);
		CHECK(fi_param_get_str(&unit, "text", &got[i]) == 0);
	}
	unsetenv("FI_UNIT_TEXT");
	for (i = 0; i < 100; i++) {
		snprintf(want, sizeof(want), "text number %d", i);
		CHECK(!strcmp(got[i], want));
	}
}

static void write_conf(const char *text)
{
	FILE *file = fopen(conf_file, "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void conf_is_read(void)
{
	struct fi_param *array;
	const struct fi_param *row;
	char *text = NULL, *long_text = calloc(1, 5000);
	int number = 0, times;
	FILE *file;

	write_conf("# a comment\r\n\r\n\nFI_UNIT_TEXT=from the file\r\nFI_UNIT_NUMBER=7\nno equals sign\nFI_UNIT_LONG=");
	memset(long_text, 'x', 4999);
	file = fopen(conf_file, "a");
	CHECK(file && fprintf(file, "%s\nFI_UNIT_LAST=9", long_text) > 0 && fclose(file) == 0);

	setenv("FI_UNIT_NUMBER", "8", 1);
	CHECK(fi_param_define(&unit, "text", FI_PARAM_STRING, "x") == 0);
	CHECK(fi_param_define(&unit, "number", FI_PARAM_INT, "x") == 0);
	CHECK(fi_param_define(&unit, "long", FI_PARAM_STRING, "x") == 0);
	CHECK(fi_param_define(&unit, "last", FI_PARAM_INT, "x") == 0);
	row = find("FI_UNIT_TEXT", &array, &times);
	CHECK(row && row->value && !strcmp(row->value, "from the file"));
	fi_freeparams(array);
	CHECK(fi_param_get_str(&unit, "text", &text) == 0 && !strcmp(text, "from the file"));
	CHECK(fi_param_get_int(&unit, "number", &number) == 0 && number == 8);
	CHECK(fi_param_get_str(&unit, "long", &text) == 0 && !strcmp(text, long_text));
	CHECK(fi_param_get_int(&unit, "last", &number) == 0 && number == 9);
	free(long_text);
}

static void conf_may_win(void)
{
	struct fi_param *array;
	int number = 0, times;

	write_conf("FI_PREFER_SYSCONFIG=yes\nFI_UNIT_NUMBER=7\n");
	setenv("FI_UNIT_NUMBER", "8", 1);
	CHECK(fi_param_define(&unit, "number", FI_PARAM_INT, "x") == 0);
	find("FI_UNIT_NUMBER", &array, &times);
	fi_freeparams(array);
	CHECK(fi_param_get_int(&unit, "number", &number) == 0 && number == 7);
}

static const struct {
	const char *name, *option;
	void (*run)(void);
} cases[] = {
	{ "kinds", NULL, kinds },
	{ "bools", NULL, bools },
	{ "integers", NULL, integers },
	{ "names", NULL, names },
	{ "core-variables", NULL, core_variables },
	{ "bad-arguments", NULL, bad_arguments },
	{ "same-pointer", NULL, same_pointer },
	{ "strict-arguments", "--strict", strict_arguments },
	{ "strict-no-duplicates", "--strict", strict_no_duplicates },
	{ "strict-bad-numbers", "--strict", strict_bad_numbers },
	{ "strict-strings-stay", "--strict", strict_strings_stay },
	{ "conf-is-read", "--conf", conf_is_read },
	{ "conf-may-win", "--conf", conf_may_win },
};

/* Runs a case in a child; a crash or minutes without an end are a failure. */
static int run(const char *name, void (*body)(void))
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(300);
		/* So that the library is set up, and warnings are heard where a case listens. */
		if (!strncmp(name, "strict", 6))
			setenv("FI_LOG_LEVEL", "warn", 1);
		if (strncmp(name, "conf", 4)) {
			struct fi_param *array = NULL;
			int count;

			CHECK(fi_getparams(&array, &count) == 0);
			fi_freeparams(array);
		}
		body();
		fflush(stdout);
		_exit(failed);
	}
	if (child > 0 && waitpid(child, &status, 0) == child && status == 0) {
		printf("ok params/%s\n", name);
		return 0;
	}
	if (WIFSIGNALED(status))
		printf("FAIL params/%s: ended by signal %d\n", name, WTERMSIG(status));
	else
		printf("FAIL params/%s: see above\n", name);
	return 1;
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : NULL;
	int bad = 0;
	size_t i;

	conf_file = argc > 2 ? argv[2] : NULL;
	if (argc > 3 || (option && strcmp(option, "--strict") && (strcmp(option, "--conf") || !conf_file))) {
		fprintf(stderr, "usage: params [--strict | --conf FILE]\n");
		return 2;
	}
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int only_conf = option && !strcmp(option, "--conf");

		if (cases[i].option ? option && !strcmp(option, cases[i].option) : !only_conf)
			bad += run(cases[i].name, cases[i].run);
	}
	if (conf_file)
		remove(conf_file);
	return bad != 0;
}

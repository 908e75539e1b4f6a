/*
 * The frame of log.c and log_import.c: each case runs in a child process in a folder of its own (under $WORK, or here),
 * sets the environment, and only then calls the library. Who includes this has said before what the PROGRAM is called.
 */
#ifndef LOG_H
#define LOG_H

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
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

/* Runs a case in a child, in a fresh folder; a crash or five minutes without an end is a failure. */
static int run(const char *name, void (*body)(void))
{
	const char *work = getenv("WORK") ? getenv("WORK") : ".";
	char folder[4096], command[4200];
	int status = -1;
	pid_t child;

	snprintf(folder, sizeof(folder), "%s/" PROGRAM "-XXXXXX", work);
	if (!mkdtemp(folder)) {
		printf("FAIL " PROGRAM "/%s: no folder\n", name);
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
		printf("ok " PROGRAM "/%s\n", name);
	else if (WIFSIGNALED(status))
		printf("FAIL " PROGRAM "/%s: ended by signal %d\n", name, WTERMSIG(status));
	else
		printf("FAIL " PROGRAM "/%s: see above\n", name);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return (system(command) != 0) | (status != 0);
}

/* Whether the program is called with --strict. With anything else it ends. */
static int strict_asked(int argc, char **argv)
{
	int strict = argc == 2 && !strcmp(argv[1], "--strict");

	if (argc > 2 || (argc == 2 && !strict)) {
		fprintf(stderr, "usage: " PROGRAM " [--strict]\n");
		exit(2);
	}
	return strict;
}

#endif

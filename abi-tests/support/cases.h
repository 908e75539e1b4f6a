/*
 * Test cases in C: each runs in a child process, so that a crash is a failure of that case alone, and prints one line
 * as abi-tests/README.md has it.
 */
#ifndef CASES_H
#define CASES_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

/* Of the case that runs. Weak: the files of one program share it. */
__attribute__((weak)) char case_name[128];
/* Each case gets this long: far more than it takes, for machines that do other things too. */
__attribute__((weak)) unsigned case_seconds = 180;

/* How a case that has said why it failed ends: a library may call exit for reasons of its own. */
#define CASE_FAILED 86

/* Set in a case's second process: what is skipped is said once. */
__attribute__((weak)) int case_is_second;

/* Ends the case at the first thing that is not as it should be. */
#define CHECK(condition, ...)                                                          \
	do {                                                                           \
		if (!(condition)) {                                                    \
			printf("FAIL %s: %s:%d: ", case_name, __FILE__, __LINE__);     \
			printf(__VA_ARGS__);                                           \
			printf("\n");                                                  \
			fflush(stdout);                                                \
			_exit(CASE_FAILED);                                            \
		}                                                                      \
	} while (0)

/* Ends the case: it cannot be asked here, and why. */
#define SKIP(...)                                                                      \
	do {                                                                           \
		if (!case_is_second) {                                                 \
			printf("skip %s: ", case_name);                                \
			printf(__VA_ARGS__);                                           \
			printf("\n");                                                  \
		}                                                                      \
		fflush(stdout);                                                        \
		_exit(0);                                                              \
	} while (0)

/* Runs a case; returns 1 if it failed. A case that hangs is ended. */
__attribute__((unused)) static int run_case(const char *name, void (*body)(void *), void *arg)
{
	int status;
	pid_t child;

	snprintf(case_name, sizeof(case_name), "%s", name);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(case_seconds);
		body(arg);
		printf("ok %s\n", case_name);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		printf("FAIL %s: no child process\n", name);
	else if (WIFSIGNALED(status))
		printf("FAIL %s: ended by signal %d (%s)\n", name, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != CASE_FAILED)
		printf("FAIL %s: ended with exit status %d\n", name, WEXITSTATUS(status));
	else
		return WEXITSTATUS(status) != 0;
	return 1;
}

#endif

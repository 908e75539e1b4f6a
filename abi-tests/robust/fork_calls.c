/*
 * fork after the library is up, quietly and while another thread is inside it: the child can go on calling, and so can
 * the parent. A lock that the child inherited in the hand of a thread it does not have would hang it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "../support/cases.h"

#define FORKS 200

static struct fi_provider someone = { .name = "someone", .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(2, 0) };
static atomic_int stop;
static atomic_long calls;

static void every_kind_of_call(void)
{
	struct fi_info *info = NULL;
	struct fi_param *params;
	int count, number, ret;

	ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, NULL, &info);
	CHECK(ret == 0, "fi_getinfo returned %d", ret);
	fi_freeinfo(info);
	fi_log(&someone, FI_LOG_WARN, FI_LOG_CORE, __func__, __LINE__, "a line\n");
	fi_param_define(&someone, "number", FI_PARAM_INT, "a number");
	ret = fi_param_get_int(&someone, "number", &number);
	CHECK(ret == -FI_ENODATA, "fi_param_get returned %d", ret);
	CHECK(fi_getparams(&params, &count) == 0, "fi_getparams");
	fi_freeparams(params);
}

/* 0 if the child came to its end, else what ended it. */
static int child_works(void)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0, "fork");
	if (child == 0) {
		alarm(100);
		every_kind_of_call();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child, "wait");
	return status;
}

static void quiet(void *arg)
{
	int status;

	(void) arg;
	every_kind_of_call();
	status = child_works();
	CHECK(status == 0, "child ended with status 0x%x (0xe is a hang)", status);
	every_kind_of_call();
}

static void before_use(void *arg)
{
	int status;

	(void) arg;
	status = child_works(); /* the first call of all is in the child */
	CHECK(status == 0, "child ended with status 0x%x (0xe is a hang)", status);
	every_kind_of_call();
}

static void *hammer(void *arg)
{
	(void) arg;
	while (!stop) {
		every_kind_of_call();
		calls++;
	}
	return NULL;
}

static void busy(void *arg)
{
	pthread_t thread;
	int i, status;

	(void) arg;
	alarm(800);
	CHECK(pthread_create(&thread, NULL, hammer, NULL) == 0, "thread");
	while (calls < 3)
		usleep(100);
	for (i = 0; i < FORKS; i++) {
		status = child_works();
		CHECK(status == 0, "child %d ended with status 0x%x (0xe is a hang)", i, status);
	}
	stop = 1;
	pthread_join(thread, NULL);
	every_kind_of_call();
}

int main(void)
{
	int failed = run_case("fork-before-use", before_use, NULL);

	failed += run_case("fork-after-getinfo", quiet, NULL);
	failed += run_case("fork-in-the-middle", busy, NULL);
	return failed != 0;
}

/*
 * Another user takes the names in /dev/shm that this user's processes want, with all that a name can be: whoever comes
 * after that works as ever, and nothing that the other one does to his files is felt. To be run as root, where nobody
 * else uses /dev/shm.
 *   squat PROVIDER [CASE ...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include "fabric.h"

/* Anybody but us. */
#define STRANGER 65534

static const char *const wanted[] = {
	"libfabric-rs.0", "libfabric-rs.known", "libfabric-rs.known~", "fi_av.0.shm.known", "fi_av.shm.known",
};

enum kind { A_FILE, A_DIRECTORY, A_LINK, A_PIPE };

static void stranger_makes(enum kind kind, const char *name)
{
	char path[256];
	int fd, made = 0;

	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	switch (kind) {
	case A_FILE:
		/* Large enough for any table, and locked as one that lives. */
		made = fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0666);
		if (fd >= 0) {
			struct flock shared = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };

			made = fchmod(fd, 0666) || ftruncate(fd, 1 << 20) || fcntl(fd, F_OFD_SETLK, &shared);
		}
		break;
	case A_DIRECTORY:
		made = mkdir(path, 0777) || chmod(path, 0777);
		break;
	case A_LINK:
		made = symlink("/tmp", path);
		break;
	case A_PIPE:
		made = mkfifo(path, 0666) || chmod(path, 0666);
		break;
	}
	if (made)
		_exit(1);
}

/* The stranger keeps his files open and locked until the case ends. */
static pid_t squat(enum kind kind)
{
	int ready[2];
	char c;
	size_t i;
	pid_t stranger;

	CHECK(pipe(ready) == 0 && (stranger = fork()) >= 0, "pipe, fork");
	if (stranger == 0) {
		if (setgid(STRANGER) || setuid(STRANGER))
			_exit(1);
		umask(0);
		for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
			stranger_makes(kind, wanted[i]);
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1, "the stranger could not make his files");
	return stranger;
}

/* What the stranger can do with his own files in the end. */
static void cut(void)
{
	char path[256];
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		snprintf(path, sizeof(path), "/dev/shm/%s", wanted[i]);
		(void) !truncate(path, 0);
	}
}

static void clean(void)
{
	char path[256];
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		snprintf(path, sizeof(path), "/dev/shm/%s", wanted[i]);
		remove(path);
	}
}

/* Endpoints of which one has a name that can be known before. */
static void name_and_talk(void)
{
	struct setup s = { .sides = 2 };
	struct bed bed;

	open_sides(&bed, &s);
	OK(fi_setname(&bed.side[0].ep->fid, (void *) "fi_shm://known", sizeof("fi_shm://known")));
	enable_sides(&bed, &s);
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	cut();
	ping(&bed, 0, 1);
	ping(&bed, 1, 0);
	close_bed(&bed);
}

static void name_a_vector(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = "known", .count = 16 };
	struct setup s = { 0 };
	struct fid_av *av, *again;
	struct bed bed;
	fi_addr_t addr;

	open_domain(&bed, &s);
	OK(fi_av_open(bed.domain, &attr, &av, NULL));
	GIVES(1, fi_av_insert(av, "fi_shm://a", 1, &addr, 0, NULL));
	cut();
	GIVES(1, fi_av_insert(av, "fi_shm://b", 1, &addr, 0, NULL));
	OK(fi_av_open(bed.domain, &attr, &again, NULL));
	GIVES(1, fi_av_insert(again, "fi_shm://b", 1, &addr, 0, NULL));
	CHECK(addr == 1, "another vector: index %d", (int) addr);
	OK(fi_close(&again->fid));
	OK(fi_close(&av->fid));
	close_bed(&bed);
}

static void beside(enum kind kind, void (*work)(void))
{
	pid_t stranger;

	clean();
	stranger = squat(kind);
	work();
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	clean();
}

static void endpoints_beside_files(void) { beside(A_FILE, name_and_talk); }
static void endpoints_beside_directories(void) { beside(A_DIRECTORY, name_and_talk); }
static void endpoints_beside_links(void) { beside(A_LINK, name_and_talk); }
static void endpoints_beside_pipes(void) { beside(A_PIPE, name_and_talk); }
static void vectors_beside_files(void) { beside(A_FILE, name_a_vector); }
static void vectors_beside_directories(void) { beside(A_DIRECTORY, name_a_vector); }
static void vectors_beside_links(void) { beside(A_LINK, name_a_vector); }
static void vectors_beside_pipes(void) { beside(A_PIPE, name_a_vector); }

static const struct test tests[] = {
	TEST(endpoints_beside_files), TEST(endpoints_beside_directories), TEST(endpoints_beside_links),
	TEST(endpoints_beside_pipes), TEST(vectors_beside_files), TEST(vectors_beside_directories),
	TEST(vectors_beside_links), TEST(vectors_beside_pipes),
};

CASES(tests)

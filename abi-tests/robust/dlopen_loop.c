/*
 * Loads the library, uses it from two threads, and unloads it, 500 times: mappings, open files and heap must not grow
 * between the 50th time and the last. Without plug-ins the library must really be gone each time; a plug-in is linked to
 * the library and so keeps it loaded.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "../support/cases.h"

#define ROUNDS 500
#define SETTLED 50

static int plugins;

struct state {
	int mappings, files;
	size_t heap;
};

static int lines_of_maps(const char *with)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	int count = 0;

	while (fgets(line, sizeof(line), maps))
		count += !with || strstr(line, with);
	fclose(maps);
	return count;
}

static struct state look(void)
{
	struct state now = { .mappings = lines_of_maps(NULL), .heap = mallinfo2().uordblks };
	DIR *fds = opendir("/proc/self/fd");

	while (readdir(fds))
		now.files++;
	closedir(fds);
	return now;
}

static void *use(void *library)
{
	int (*get)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **) =
		dlsym(library, "fi_getinfo");
	void (*release)(struct fi_info *) = dlsym(library, "fi_freeinfo");
	char *(*tostr)(const void *, enum fi_type) = dlsym(library, "fi_tostr");
	struct fi_info *info = NULL;
	int ret = get(FI_VERSION(2, 0), NULL, NULL, 0, NULL, &info);

	CHECK(ret == (plugins ? 0 : -FI_ENODATA), "fi_getinfo returned %d", ret);
	CHECK(!plugins || strstr(tostr(info, FI_TYPE_INFO), "echo"), "no provider");
	release(info);
	return NULL;
}

static void loop(void *name)
{
	struct state settled = { 0 }, now;
	int i;

	for (i = 1; i <= ROUNDS; i++) {
		void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		pthread_t thread;

		CHECK(library, "%s", dlerror());
		CHECK(pthread_create(&thread, NULL, use, library) == 0, "thread");
		pthread_join(thread, NULL);
		use(library);
		CHECK(dlclose(library) == 0, "%s", dlerror());
		CHECK(plugins || lines_of_maps("libfabric.so") == 0, "round %d: still there after dlclose", i);
		if (i == SETTLED)
			settled = look();
	}
	now = look();
	CHECK(now.mappings <= settled.mappings, "mappings grew from %d to %d", settled.mappings, now.mappings);
	CHECK(now.files <= settled.files, "open files grew from %d to %d", settled.files, now.files);
	/* The smallest piece of heap has 32 bytes. The loader and stdio take some now and then, but not one every other round. */
	CHECK(now.heap < settled.heap + 16 * (ROUNDS - SETTLED), "heap grew from %zu to %zu bytes", settled.heap, now.heap);
}

/* dlopen_loop LIBRARY [plugins] */
int main(int argc, char **argv)
{
	plugins = argc > 2;
	return argc < 2 || run_case(plugins ? "dlopen-500-times-with-plugins" : "dlopen-500-times", loop, argv[1]);
}

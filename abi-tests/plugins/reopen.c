/*
 * Opens and closes libfabric by hand: a plug-in must be cleaned up when the library goes, not when the program ends.
 *   reopen LIBFABRIC TRACE-FILE TIMES
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

static int lines(const char *name)
{
	FILE *file = fopen(name, "r");
	int c, count = 0;

	while (file && (c = getc(file)) != EOF)
		count += c == '\n';
	if (file)
		fclose(file);
	return count;
}

int main(int argc, char **argv)
{
	int i, times;

	if (argc != 4)
		return 2;
	times = atoi(argv[3]);
	for (i = 1; i <= times; i++) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
		void (*freeinfo)(struct fi_info *);
		struct fi_info *info = NULL;
		int ret;

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		*(void **) &getinfo = dlsym(library, "fi_getinfo");
		*(void **) &freeinfo = dlsym(library, "fi_freeinfo");
		ret = getinfo(FI_VERSION(2, 5), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info);
		if (ret) {
			fprintf(stderr, "round %d: fi_getinfo: %d\n", i, ret);
			return 1;
		}
		freeinfo(info);
		dlclose(library);
		if (lines(argv[2]) != i) {
			fprintf(stderr, "round %d: %d cleanups\n", i, lines(argv[2]));
			return 1;
		}
	}
	printf("%d cleanups in %d rounds\n", lines(argv[2]), times);
	return 0;
}

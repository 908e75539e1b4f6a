/* Memory that ends where a page ends that may not be touched: one byte too far, read or written, is a crash. */
#ifndef GUARDED_H
#define GUARDED_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((unused)) static void *guarded(size_t size)
{
	size_t page = (size_t) sysconf(_SC_PAGESIZE);
	size_t room = (size + page - 1) / page * page;
	char *base = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED || mprotect(base + room, page, PROT_NONE))
		abort();
	return base + room - size;
}

__attribute__((unused)) static char *guarded_text(const char *text)
{
	return memcpy(guarded(strlen(text) + 1), text, strlen(text) + 1);
}

#endif

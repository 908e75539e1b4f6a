/*
 * fi_strerror(3): the text of every code, of both signs. Prints the same on every libfabric.so.1 of the same system.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

int main(void)
{
	const char *kept[256];
	char copy[256][256];
	int code;

	for (code = -3; code <= 600; code++)
		printf("%d: %s\n", code, fi_strerror(code));
	for (code = -FI_ERRNO_MAX - 1; code < -FI_ERRNO_OFFSET + 1; code++)
		printf("%d: %s\n", code, fi_strerror(code));
	printf("INT_MAX: %s\n", fi_strerror(INT_MAX));

	/* A known text stays what it is while others are asked for. Codes above 133 are unknown to Linux. */
	for (code = 0; code <= 133; code++) {
		kept[code] = fi_strerror(code);
		snprintf(copy[code], sizeof copy[code], "%s", kept[code]);
	}
	for (code = 0; code <= 133; code++)
		if (strncmp(copy[code], "Unknown", 7) && strcmp(copy[code], kept[code]))
			printf("%d changed\n", code);
	return 0;
}

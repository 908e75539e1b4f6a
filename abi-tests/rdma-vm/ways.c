/*
 * One of two processes on provider auto: the second sends the first a short message and a long one.
 *   ways listen         says its name, and ends when both have come
 *   ways send NAME
 * Which way they went, the library's log says.
 */
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "die.h"
#include "ends.h"

#define GIVE_UP_S 60

static const size_t lengths[] = { 8, 1 << 20 };
enum { MESSAGES = sizeof(lengths) / sizeof(*lengths) };
static unsigned char memory[MESSAGES][1 << 20];

static struct base base;
static struct end end;

static void wait_for_all(void)
{
	time_t until = time(NULL) + GIVE_UP_S;

	for (int ended = 0; ended < MESSAGES;) {
		struct fi_cq_tagged_entry done;
		ssize_t ret = fi_cq_read(end.cq, &done, 1);

		if (time(NULL) > until)
			DIE("%d of %d messages", ended, MESSAGES);
		MUST(ret == 1 || ret == -FI_EAGAIN);
		ended += ret == 1;
	}
}

static void listens(void)
{
	for (int i = 0; i < MESSAGES; i++)
		OK(fi_recv(end.ep, memory[i], lengths[i], NULL, FI_ADDR_UNSPEC, NULL));
	printf("NAME %s\n", end.name.bytes);
	fflush(stdout);
	wait_for_all();
	for (int i = 0; i < MESSAGES; i++)
		for (size_t at = 0; at < lengths[i]; at++)
			MUST(memory[i][at] == (unsigned char) (at * 7 + 1));
}

static void sends(const char *text)
{
	struct name name = { .len = strlen(text) + 1 };
	fi_addr_t peer;

	MUST(name.len <= sizeof(name.bytes));
	memcpy(name.bytes, text, name.len);
	peer = know(base.av, &name);
	for (int i = 0; i < MESSAGES; i++) {
		ssize_t ret;

		for (size_t at = 0; at < lengths[i]; at++)
			memory[i][at] = (unsigned char) (at * 7 + 1);
		while ((ret = fi_send(end.ep, memory[i], lengths[i], NULL, peer, NULL)) == -FI_EAGAIN)
			;
		OK(ret);
	}
	wait_for_all();
}

int main(int argc, char **argv)
{
	struct wish wish = { .provider = "auto", .caps = FI_MSG };

	if (argc < 2)
		return 2;
	open_base(&base, find(&wish));
	open_end(&end, &base, &wish);
	if (argc > 2)
		sends(argv[2]);
	else
		listens();
	close_end(&end);
	close_base(&base);
	printf("WAYS ok\n");
	return 0;
}

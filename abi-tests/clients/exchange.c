/*
 * A plain program of libfabric: a parent and its child send each other tagged messages and look at every byte.
 * It keeps to what the headers of 1.17 have, so that the same source builds on those too.  exchange PROVIDER
 * It is over before anybody could look at it from outside, so each process writes down itself which libfabric it mapped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_tagged.h>
#include "die.h"
#include "ends.h"

#define MAX_SIZE (1 << 20)
#define ROUNDS 50

static struct base base;
static struct end end;

static struct fi_cq_tagged_entry complete(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(end.cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (ret != 1)
		DIE("fi_cq_read: %zd", ret);
	return entry;
}

static void send_to(fi_addr_t peer, unsigned char *buf, size_t size, uint64_t tag)
{
	ssize_t ret;

	for (size_t i = 0; i < size; i++)
		buf[i] = (unsigned char)(i * 7 + tag);
	while ((ret = fi_tsend(end.ep, buf, size, NULL, peer, tag, buf)) == -FI_EAGAIN)
		fi_cq_read(end.cq, NULL, 0);
	OK(ret);
	MUST(complete().op_context == buf);
}

static void receive_from(fi_addr_t peer, unsigned char *buf, size_t size, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;

	memset(buf, 0xee, size);
	OK(fi_trecv(end.ep, buf, MAX_SIZE, NULL, peer, tag, 0, buf));
	entry = complete();
	MUST(entry.op_context == buf && entry.len == size && entry.tag == tag);
	for (size_t i = 0; i < size; i++)
		MUST(buf[i] == (unsigned char)(i * 7 + tag));
}

/* "PID FILE" into the file that the suite reads, as its own looks at longer jobs do. */
static void write_down_the_library(void)
{
	const char *job = getenv("CLIENTS_JOB");
	char line[4096], file[4096];
	FILE *maps, *out;

	if (!job)
		return;
	snprintf(file, sizeof(file), "%s.maps", job);
	maps = fopen("/proc/self/maps", "r");
	out = fopen(file, "a");
	while (maps && out && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libfabric.so"))
			fprintf(out, "%d %s", (int)getpid(), strchr(line, '/'));
	if (!maps || !out || fclose(out) || fclose(maps))
		exit(3);
}

int main(int argc, char **argv)
{
	int to_child[2], to_parent[2], status = 0, sizes = 0;
	struct wish wish = { .version = FI_VERSION(1, 17), .caps = FI_TAGGED };
	unsigned char *buf = malloc(MAX_SIZE);
	struct name other;
	fi_addr_t peer;
	pid_t child;

	if (argc != 2 || !buf || pipe(to_child) || pipe(to_parent))
		return 2;
	child = fork();
	wish.provider = argv[1];
	open_base(&base, find(&wish));
	open_end(&end, &base, &wish);
	if (write(child ? to_child[1] : to_parent[1], &end.name, sizeof(end.name)) != sizeof(end.name) ||
	    read(child ? to_parent[0] : to_child[0], &other, sizeof(other)) != sizeof(other))
		return 2;
	peer = know(base.av, &other);
	for (size_t size = 1; size <= MAX_SIZE; size *= 4, sizes++) {
		for (uint64_t round = 0; round < ROUNDS; round++) {
			if (child)
				send_to(peer, buf, size, round), receive_from(peer, buf, size, ~round);
			else
				receive_from(peer, buf, size, round), send_to(peer, buf, size, ~round);
		}
	}
	write_down_the_library();
	close_end(&end);
	close_base(&base);
	free(buf);
	if (!child)
		return 0;
	if (waitpid(child, &status, 0) != child || status)
		return 1;
	printf("%d sizes, %d messages\n", sizes, 2 * ROUNDS * sizes);
	return 0;
}

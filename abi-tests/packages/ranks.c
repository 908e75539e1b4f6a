/*
 * A program of two ranks that has two ways to its peer: MPI, and libfabric by its own endpoints, whose names the ranks tell
 * each other by MPI. It keeps to what the headers of 1.17 have, so that it builds where Debian 12's are installed.
 */
#include <mpi.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "die.h"
#include "ends.h"

#define SIZE 65536
#define ROUNDS 20

static struct base base;
static struct end end;
static unsigned char out[SIZE], in[SIZE];

static void fill(int rank, int round)
{
	for (int i = 0; i < SIZE; i++)
		out[i] = (unsigned char) (i * 7 + rank + round);
	memset(in, 0xee, SIZE);
}

static void look_at(int rank, int round)
{
	for (int i = 0; i < SIZE; i++)
		MUST(in[i] == (unsigned char) (i * 7 + rank + round));
}

static void by_libfabric(fi_addr_t peer, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	OK(fi_trecv(end.ep, in, SIZE, NULL, peer, tag, 0, in));
	while ((ret = fi_tsend(end.ep, out, SIZE, NULL, peer, tag, out)) == -FI_EAGAIN)
		fi_cq_read(end.cq, NULL, 0);
	OK(ret);
	for (int done = 0; done < 2; done++) {
		while ((ret = fi_cq_read(end.cq, &entry, 1)) == -FI_EAGAIN)
			;
		MUST(ret == 1 && (entry.op_context == in || entry.op_context == out));
	}
}

int main(int argc, char **argv)
{
	struct wish wish = { .version = FI_VERSION(1, 17), .caps = FI_TAGGED };
	struct name theirs;
	fi_addr_t peer;
	int me, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MUST(ranks == 2);
	open_base(&base, find(&wish));
	open_end(&end, &base, &wish);
	MPI_Sendrecv(&end.name, sizeof(theirs), MPI_BYTE, !me, 0, &theirs, sizeof(theirs), MPI_BYTE, !me, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	peer = know(base.av, &theirs);
	for (int round = 0; round < ROUNDS; round++) {
		fill(me, round);
		by_libfabric(peer, round);
		look_at(!me, round);
		fill(me, round);
		MPI_Sendrecv(out, SIZE, MPI_BYTE, !me, 1, in, SIZE, MPI_BYTE, !me, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		look_at(!me, round);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	close_end(&end);
	close_base(&base);
	if (me == 0)
		printf("2 ranks, %d messages by each way\n", ROUNDS);
	MPI_Finalize();
	return 0;
}

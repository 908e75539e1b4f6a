/*
 * MPI jobs with more ranks than processors, and with targets that compute. Each counts what it got right, and says on the
 * way how long it took, for people: nothing is decided by a time.
 *
 *   neighbours locks ROUNDS          all but rank 0 lock, put 64 B and unlock on the window of rank 0
 *   neighbours shared-locks ROUNDS   the same with locks that others may have too
 *   neighbours many ROUNDS           the same with 64 puts and 64 gets under each lock, of everybody on everybody
 *   neighbours alltoall ROUNDS       MPI_Alltoall of 64 B between all
 *   neighbours computing MS          rank 0 puts and gets of every size while rank 1 computes for so long
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 64
#define MANY 64
#define LONGEST (1 << 20)

static int rank, ranks;
static long right, wrong;

static void expect(int is_right)
{
	if (is_right)
		right++;
	else
		wrong++;
}

static MPI_Win window_of(char **memory, size_t size)
{
	MPI_Win window;

	/* malloc's: nobody else can map it. */
	*memory = calloc(1, size);
	MPI_Win_create(*memory, (MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	return window;
}

static void locks(int rounds, int kind)
{
	char *memory, piece[PIECE];
	MPI_Win window = window_of(&memory, (size_t)ranks * PIECE);
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int round = 1; rank > 0 && round <= rounds; round++) {
		memset(piece, round % 127, sizeof(piece));
		MPI_Win_lock(kind, 0, 0, window);
		MPI_Put(piece, PIECE, MPI_CHAR, 0, rank * PIECE, PIECE, MPI_CHAR, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("locks: %.3f s\n", MPI_Wtime() - begin);
	for (int i = PIECE; rank == 0 && i < ranks * PIECE; i++)
		expect(memory[i] == rounds % 127);
	MPI_Win_free(&window);
	free(memory);
}

static void many(int rounds)
{
	char *memory, pieces[MANY][PIECE], back[MANY][PIECE];
	MPI_Win window = window_of(&memory, (size_t)ranks * MANY * PIECE);
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int round = 1; round <= rounds; round++) {
		int target = (rank + round) % ranks;

		memset(pieces, round % 127, sizeof(pieces));
		memset(back, 0, sizeof(back));
		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
		for (int i = 0; i < MANY; i++)
			MPI_Put(pieces[i], PIECE, MPI_CHAR, target, (rank * MANY + i) * PIECE, PIECE, MPI_CHAR, window);
		MPI_Win_flush(target, window);
		for (int i = 0; i < MANY; i++)
			MPI_Get(back[i], PIECE, MPI_CHAR, target, (rank * MANY + i) * PIECE, PIECE, MPI_CHAR, window);
		MPI_Win_unlock(target, window);
		expect(memcmp(pieces, back, sizeof(pieces)) == 0);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("many: %.3f s\n", MPI_Wtime() - begin);
	MPI_Win_free(&window);
	free(memory);
}

static void alltoall(int rounds)
{
	char *out = malloc((size_t)ranks * PIECE), *in = malloc((size_t)ranks * PIECE);
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int round = 0; round < rounds; round++) {
		for (int to = 0; to < ranks; to++)
			memset(out + to * PIECE, (rank * 7 + to + round) % 127, PIECE);
		MPI_Alltoall(out, PIECE, MPI_CHAR, in, PIECE, MPI_CHAR, MPI_COMM_WORLD);
		for (int from = 0; from < ranks; from++)
			expect(in[from * PIECE] == (from * 7 + rank + round) % 127);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("alltoall: %.3f s\n", MPI_Wtime() - begin);
	free(out);
	free(in);
}

/* Rank 1 calls nothing of MPI for so long. */
static void compute(double seconds)
{
	double end = MPI_Wtime() + seconds;
	volatile double sum = 0;

	while (MPI_Wtime() < end)
		for (int i = 0; i < 10000; i++)
			sum += i;
}

static void computing(int ms)
{
	char *memory, *mine = malloc(LONGEST);
	MPI_Win window = window_of(&memory, LONGEST);

	for (int size = 8; size <= LONGEST; size *= 8) {
		for (int gets = 0; gets < 2; gets++) {
			memset(mine, gets ? 0 : size % 126 + 1, LONGEST);
			memset(memory, rank == 1 && gets ? size % 125 + 1 : 0, LONGEST);
			if (rank == 0)
				MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
			MPI_Barrier(MPI_COMM_WORLD);
			if (rank == 0) {
				double begin = MPI_Wtime();
				if (gets)
					MPI_Get(mine, size, MPI_CHAR, 1, 0, size, MPI_CHAR, window);
				else
					MPI_Put(mine, size, MPI_CHAR, 1, 0, size, MPI_CHAR, window);
				MPI_Win_flush(1, window);
				printf("computing: %s of %d B: %.6f s\n", gets ? "get" : "put", size, MPI_Wtime() - begin);
				MPI_Win_unlock(1, window);
			} else if (rank == 1) {
				compute(ms / 1000.0);
			}
			MPI_Barrier(MPI_COMM_WORLD);
			if (rank == !gets)
				expect((gets ? mine : memory)[0] == (gets ? size % 125 + 1 : size % 126 + 1) &&
				       (gets ? mine : memory)[size - 1] == (gets ? size % 125 + 1 : size % 126 + 1));
		}
	}
	MPI_Win_free(&window);
	free(memory);
	free(mine);
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 1;
	long mine[2], all[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 2 && !strcmp(argv[1], "locks"))
		locks(count, MPI_LOCK_EXCLUSIVE);
	else if (argc > 2 && !strcmp(argv[1], "shared-locks"))
		locks(count, MPI_LOCK_SHARED);
	else if (argc > 2 && !strcmp(argv[1], "many"))
		many(count);
	else if (argc > 2 && !strcmp(argv[1], "alltoall"))
		alltoall(count);
	else if (argc > 2 && !strcmp(argv[1], "computing"))
		computing(count);
	mine[0] = right, mine[1] = wrong;
	MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld right, %ld wrong\n", all[0], all[1]);
	MPI_Finalize();
	return all[0] == 0 || all[1] > 0;
}

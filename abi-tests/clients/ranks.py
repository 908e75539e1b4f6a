"""A short MPI job for odd surroundings: messages of all sizes, collectives, and a window. Rank 0 says what it checked."""
from mpi4py import MPI
import numpy

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
after, before = (rank + 1) % ranks, (rank - 1) % ranks
checked = 0


def check(good):
    global checked
    if not good:
        raise SystemExit(f"rank {rank}: wrong after {checked} checks")
    checked += 1


for size in 1, 8, 4096, 20000, 100000, 1 << 20:
    out, come = numpy.full(size, rank, "b"), numpy.empty(size, "b")
    world.Sendrecv(out, after, 1, come, before, 1)
    check((come == before).all())
for size in 1, 1000, 50000:
    total = numpy.empty(size)
    world.Allreduce(numpy.full(size, float(rank)), total)
    check((total == ranks * (ranks - 1) / 2).all())
    come = numpy.empty((ranks, size), "i")
    world.Alltoall(numpy.full((ranks, size), rank, "i"), come)
    check((come == numpy.arange(ranks)[:, None]).all())

# Each adds to everybody's count and writes one line of everybody's table, in memory that MPI makes and that it is given.
for given in False, True:
    count, table = numpy.zeros(1, "i8"), numpy.zeros((ranks, 3000), "i8")
    if given:
        counts, tables = MPI.Win.Create(count, 8, comm=world), MPI.Win.Create(table, 8, comm=world)
    else:
        counts, tables = MPI.Win.Allocate(8, 8, comm=world), MPI.Win.Allocate(table.nbytes, 8, comm=world)
        count, table = numpy.frombuffer(counts, "i8"), numpy.frombuffer(tables, "i8").reshape(ranks, 3000)
        count[:], table[:] = 0, 0
    world.Barrier()
    line = numpy.full(3000, rank + 1, "i8")
    for target in range(ranks):
        counts.Lock(target), tables.Lock(target)
        counts.Accumulate(numpy.ones(1, "i8"), target)
        tables.Put(line, target, rank * 3000)
        tables.Unlock(target), counts.Unlock(target)
    world.Barrier()
    counts.Lock(rank), tables.Lock(rank)
    check(count[0] == ranks and (table == numpy.arange(1, ranks + 1)[:, None]).all())
    tables.Unlock(rank), counts.Unlock(rank)
    counts.Free(), tables.Free()

least = world.allreduce(checked, MPI.MIN)
if rank == 0:
    print(f"{ranks} ranks, {least} checks", flush=True)

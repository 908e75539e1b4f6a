"""A job that stays while others come and go: resident.py SECONDS [FILE]. Every kind of traffic in turns, every answer
checked, and at the end the memory of the process after a warm-up and now. FILE always says how many rounds are over.

MPICH 5.0.2 keeps some 160 bytes of each round with a window, on the C library as on ours: 48 kB in 1500 rounds, of which
every fifth has one, and nothing without them. `soak` allows for that."""
import os
import random
import sys
import time

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size
end = time.monotonic() + float(sys.argv[1])
rng = random.Random(7)  # the same in every rank
told = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY, 0o600) if rank == 0 and len(sys.argv) > 2 else None


def pattern(length, seed):
    return (np.arange(length, dtype=np.uint32) * 5 + seed).astype(np.uint8)


def ring(length, seed):
    got = np.empty(length, np.uint8)
    world.Sendrecv(pattern(length, seed + rank), right, 1, got, left, 1)
    assert (got == pattern(length, seed + left)).all(), ("ring", length, seed)


def unexpected(length, seed):
    """Hundreds of messages before the first receive, taken in another order than they were sent in."""
    count = min(300, (1 << 22) // max(length, 1))
    sent = [world.Isend(pattern(length, seed + i), right, 100 + i) for i in range(count)]
    world.Barrier()
    got = np.empty(length, np.uint8)
    for i in reversed(range(count)):
        world.Recv(got, left, 100 + i)
        assert (got == pattern(length, seed + i)).all(), ("unexpected", length, i)
    MPI.Request.Waitall(sent)


def cancelled(length, seed):
    got = [np.empty(max(length, 1), np.uint8) for _ in range(20)]
    posted = [world.Irecv(buf, left, 7) for buf in got]
    for request in posted:
        request.Cancel()
    MPI.Request.Waitall(posted)
    world.Barrier()
    ring(length, seed)


def together(length, seed):
    length = min(length, 1 << 16)
    mine = pattern(length * size, seed + rank)
    got = np.empty(length * size, np.uint8)
    world.Alltoall(mine, got)
    for peer in range(size):
        part = pattern(length * size, seed + peer)[rank * length:(rank + 1) * length]
        assert (got[peer * length:(peer + 1) * length] == part).all(), ("alltoall", length)
    total = np.zeros(length, np.uint32)
    world.Allreduce(mine[:length].astype(np.uint32), total)
    assert (total == sum(pattern(length * size, seed + p)[:length].astype(np.uint32) for p in range(size))).all()


def window(length, seed):
    window = MPI.Win.Allocate(max(length, 8), comm=world)
    window.Lock_all()
    put = pattern(length, seed + rank)  # to stay until the flush
    window.Put(put, right)
    window.Flush(right)
    world.Barrier()
    got = np.empty(length, np.uint8)
    window.Get(got, rank)
    window.Flush(rank)
    assert (got == pattern(length, seed + left)).all(), ("put", length)
    window.Unlock_all()
    window.Free()


def copy():
    other = world.Dup()
    assert other.allreduce(rank) == size * (size - 1) // 2
    other.Free()


def memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


kinds = [ring, unexpected, cancelled, together, window]
rounds, first, began = 0, None, time.monotonic()
# What a round takes for itself comes and goes, so the least of some rounds is told.
lowest, last = sys.maxsize, None
while True:
    length = rng.choice([0, 1, 100, 4096, 4097, 16384, 65536, 300000, 1 << 20])
    kinds[rounds % len(kinds)](length, rounds & 255)
    if rounds % 100 == 0:
        copy()
    rounds += 1
    lowest = min(lowest, memory())
    if rounds % 200 == 0:
        last, lowest = lowest, sys.maxsize
    if told is not None:
        os.pwrite(told, b"%d\n" % rounds, 0)
    # Warm when every kind and size has been there and a tenth of the time is over; rank 0 says what time it is.
    now = time.monotonic()
    warm, over = world.bcast((rounds >= 500 and now - began > (end - began) / 10, now > end))
    if warm and first is None:
        first = last
    if over and first is not None:
        break
print(f"rank {rank}: {rounds} rounds, memory {first} kB, then {last} kB", flush=True)

#!/usr/bin/env bash
# MPI jobs on MPICH with more ranks than processors, and with a target that computes. What they count is right or wrong;
# how long they took is in their logs, and in docs/using-with-mpi.md.
set -u
. "$(dirname "$0")/lib"
export FI_PROVIDER=shm
. "$clients/with-mpich"
LIBRARIES=$env/lib
"$env/bin/mpicc" -O2 -Wall -Wextra -o "$WORK/neighbours" "$clients/neighbours.c" ||
    { echo "FAIL neighbours: does not build"; exit; }

loop() { # NAME RANKS WANTED ARGUMENTS...
    local name=$1 ranks=$2 wanted=$3 why said; shift 3
    job "$name" 600 "$env/bin/mpiexec" -n "$ranks" "$WORK/neighbours" "$@"
    said=$(tail -n 1 "$WORK/$name.log")
    why=$(mapped "$name" "$ranks")
    [ "$status $said" = "0 $wanted right, 0 wrong" ] || why="status $status: $said"
    if [ -n "$why" ]; then row MPICH "$name" "$ranks" 0 1 0 "$took"; echo "FAIL $name: $why"
    else row MPICH "$name" "$ranks" 1 0 0 "$took"; echo "ok $name"; fi
}

loop neighbours-locks 4 192 locks 200
loop neighbours-shared-locks 4 192 shared-locks 1000
loop neighbours-many 4 800 many 200
loop neighbours-alltoall 16 51200 alltoall 200
loop neighbours-computing 2 12 computing 50

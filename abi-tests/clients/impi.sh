#!/usr/bin/env bash
# Intel MPI on shm, with its own benchmarks.
set -u
. "$(dirname "$0")/lib"
export FI_PROVIDER=shm
. "$clients/with-impi"

if [ "$CLIENTS" = full ]; then
    all_of_imb ""
else
    quick=(-iter 20 -time 2)
    imb IMB-MPI1-2 IMB-MPI1 2 600 "$mpi1" -npmin 2 "${quick[@]}"
    imb IMB-MPI1-4 IMB-MPI1 4 600 "Sendrecv Exchange Allreduce Alltoall Bcast Barrier" -npmin 4 -msglog 16 "${quick[@]}"
    imb IMB-NBC-2 IMB-NBC 2 600 "$nbc" -npmin 2 -msglog 18 "${quick[@]}"
    imb IMB-P2P-2 IMB-P2P 2 600 "PingPong Corandom SendRecv_Replace" -iter 20 -msglog 18
    imb IMB-MT-2 IMB-MT 2 600 "$mt" -thread_level multiple -check on -repeat 2 -count 1,1024,65536
    imb IMB-RMA-2 IMB-RMA 2 600 "$rma" -npmin 2 -msglog 18 "${quick[@]}"
fi

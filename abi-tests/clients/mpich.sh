#!/usr/bin/env bash
# MPICH on shm, with mpi4py's own tests.
set -u
. "$(dirname "$0")/lib"
export FI_PROVIDER=shm
. "$clients/with-mpich"

if [ "$CLIENTS" = full ]; then
    mpi4py mpi4py-2 2 1200
    mpi4py mpi4py-4 4 3600
    mpi4py mpi4py-single 2 1200 --thread-level single
    leave=(); mpi4py mpi4py-spawn 2 600 -i test_spawn
else
    # The whole of it is in the full form, for its time.
    mpi4py mpi4py-2 2 900 -i test_p2p_buf -i test_p2p_obj -i test_cco_buf -i test_win
    mpi4py mpi4py-4 4 900 -i test_p2p_buf -i test_cco_nb_buf -i test_win
fi

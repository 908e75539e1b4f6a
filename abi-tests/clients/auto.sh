#!/usr/bin/env bash
# The MPIs with nothing said of a provider: each takes auto by itself, which reaches these ranks through shared memory. What is
# set says only which of its own parts an MPI uses. abi-tests/netns has the same over several hosts.
set -u
. "$(dirname "$0")/lib"
unset FI_PROVIDER
offers auto || exit 0

(
    . "$clients/with-mpich"
    if [ "$CLIENTS" = full ]; then
        mpi4py auto-mpich-2 2 1200
        mpi4py auto-mpich-4 4 3600
    else
        mpi4py auto-mpich-2 2 300 -i test_p2p_buf -i test_p2p_obj -i test_cco_buf -i test_win
        mpi4py auto-mpich-4 4 300 -i test_p2p_buf_matched -i test_cco_nb_buf -i test_win
    fi
)

(
    . "$clients/with-impi"
    if [ "$CLIENTS" = full ]; then all_of_imb auto-; exit; fi
    imb auto-IMB-MPI1-2 IMB-MPI1 2 300 "PingPong Exchange Allreduce Alltoall Uniband" -npmin 2 -iter 20 -time 0.5 -msglog 17
    imb auto-IMB-RMA-2 IMB-RMA 2 300 "Unidir_put Unidir_get Accumulate Fetch_and_op Compare_and_swap Truly_passive_put" \
        -npmin 2 -iter 20 -time 0.5 -msglog 12
)

# Open MPI's messages, which plain shared memory cannot carry.
export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_verbose=1
. "$clients/with-openmpi"
took_provider='.*mtl:ofi:provider: ([a-z_;]*).*'
if [ "$CLIENTS" = full ]; then mpi4py auto-openmpi-2 2 1800 -e test_spawn
else mpi4py auto-openmpi-2 2 300 -i test_p2p_buf -i test_p2p_obj -i test_cco_buf; fi

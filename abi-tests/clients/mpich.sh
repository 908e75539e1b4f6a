#!/usr/bin/env bash
# MPICH 5.0.2 of PyPI with mpi4py's own tests. Its libmpi finds libfabric by DT_RUNPATH, so LD_LIBRARY_PATH comes first.
set -u
. "$(dirname "$0")/lib"
env=$(environment mpich mpich==5.0.2 mpi4py==4.1.2 numpy==2.2.6) || { echo "FAIL mpich: cannot be installed"; exit; }
tests=$(mpi4py_tests "$env/bin/python") || { echo "FAIL mpich: the tests of mpi4py cannot be fetched"; exit; }
export MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 FI_PROVIDER=shm

# Left out: what starts further jobs, what is about MPI's own ABI, and one test that MPICH loses by itself now and then:
# Dist_graph_create probes for any source and then receives from any, which with MPIR_CVAR_NOLOCAL may be another message
# when one is from the process itself (docs/clients.md).
client='MPICH 5.0.2'
leave=(-e spawn -e test_mpiabi -x testDistgraphcomm)

if [ "$CLIENTS" = full ]; then
    mpi4py mpi4py-2 2 1200
    mpi4py mpi4py-4 4 1800
    mpi4py mpi4py-single 2 1200 --thread-level single
else
    mpi4py mpi4py-2 2 600 -e test_io
    mpi4py mpi4py-4 4 300 -i test_p2p -i test_cco_nb_buf -i test_comm -i test_win
fi

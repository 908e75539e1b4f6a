#!/usr/bin/env bash
# The wheel in fresh environments: with Intel MPI, which asks pip for it, and with mpi4py on MPICH.
set -u
. "$(dirname "$0")/lib"
# The page's commands are for the source tree and the user's home.
mkdir -p "$WORK/home" && enter_tree environments || exit 1
python=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))')
PIP_CACHE_DIR=$(python3 -m pip cache dir 2>/dev/null)
# The page names no versions: those that the suite clients is run with.
printf '%s\n' impi-rt==2021.19.0 mpich==5.0.2 mpi4py==4.1.2 >"$WORK/versions"
export HOME=$WORK/home PATH=$python:$PATH PIP_CACHE_DIR PIP_CONSTRAINT=$WORK/versions PIP_DISABLE_PIP_VERSION_CHECK=1
export I_MPI_HYDRA_BOOTSTRAP=fork I_MPI_PIN=0

(
    run_block wheel-intel
    start_looking
    run_block wheel-intel-run
    ran_on intel-ours "$HOME/impi/lib/libfabric.so.1" '^ +4096 +100 ' wheel-intel-run
    C_LIBRARY=$("$REAL" wheel)/lib
    run_block wheel-intel-back
    start_looking
    run_block wheel-intel-run
    ran_on intel-back "$C_LIBRARY/libfabric.so.1" '^ +4096 +100 ' wheel-intel-run
)
(
    run_block wheel-mpich
    start_looking
    run_block wheel-mpich-run
    ran_on mpich-ours "$HOME/mpich/lib/libfabric.so.1" '\(2 processes, 1 bytes\)' wheel-mpich-run
    run_block wheel-back
    start_looking
    run_block wheel-mpich-run
    ran_on mpich-back "$HOME/mpich/lib/mpich/libfabric.so.1" '\(2 processes, 1 bytes\)' wheel-mpich-run
)
rm -rf "$WORK/home"

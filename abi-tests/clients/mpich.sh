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
leave=(-e spawn -e test_mpiabi -x testDistgraphcomm)

mpi4py() { # NAME RANKS SECONDS ARGUMENTS-OF-MAIN...
    local name=$1 ranks=$2 limit=$3; shift 3
    ( cd "$tests" && job "$name" "$limit" "$env/bin/mpiexec" -n "$ranks" "$env/bin/python" -P main.py "${leave[@]}" -v "$@"
      echo "$status $took" >"$WORK/$name.end" )
    read -r status took <"$WORK/$name.end"
    local log=$WORK/$name.log why ends run bad skipped
    # Every rank runs every test and says so; the worst of them counts.
    ends=$(grep -c '^Ran [0-9]* tests' "$log")
    run=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$log" | sort -n | head -n 1)
    bad=$(grep -oE '(failures|errors|unexpected successes)=[0-9]+' "$log" | sed 's/.*=//' | sort -n | tail -n 1)
    skipped=$(grep -oE 'skipped=[0-9]+' "$log" | sed 's/.*=//' | sort -n | head -n 1)
    why=$(mapped "$name" "$ranks")
    if [ "$ends" != "$ranks" ]; then why="$ends of $ranks ranks came to their end, status $status"; bad="?"
    elif [ -n "$bad" ] || [ "$status" != 0 ]; then
        why="status $status: $(grep -E '^(FAIL|ERROR): ' "$log" | sort -u | head -n 3 | tr '\n' ' ')"
    fi
    row "MPICH 5.0.2" "$name" "$ranks" "$((${run:-0} - ${skipped:-0}))" "${bad:-0}" "${skipped:-0}" "$took"
    if [ -n "$why" ]; then echo "FAIL $name: $why"; else echo "ok $name"; fi
}

if [ "$CLIENTS" = full ]; then
    mpi4py mpi4py-2 2 1200
    mpi4py mpi4py-4 4 1800
    mpi4py mpi4py-single 2 1200 --thread-level single
else
    mpi4py mpi4py-2 2 600 -e test_io
    mpi4py mpi4py-4 4 300 -i test_p2p -i test_cco_nb_buf -i test_comm -i test_win
fi

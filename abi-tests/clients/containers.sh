#!/usr/bin/env bash
# MPICH's ranks in odd surroundings: process numbers of one and two digits, a container for each rank, two jobs in two
# containers, no right to another process's memory, a /dev/shm of 64 MiB. It takes the right to make namespaces.
set -u
. "$(dirname "$0")/lib"
export FI_PROVIDER=shm
. "$clients/with-mpich"
PATH=$env/bin:$PATH
ranks=("$env/bin/python" -P "$clients/ranks.py")
wanted='4 ranks, 14 checks'

if ! why=$(unshare --pid --mount --ipc --fork --mount-proc sh -c 'mount -t tmpfs -o size=64m none /dev/shm' 2>&1); then
    echo "skip containers: no namespaces of our own here: $why"; exit
fi

odd() { # NAME JOBS COMMAND...: all jobs in it say what they should, on our library
    local name=$1 jobs=$2 why=; shift 2
    job "$name" 300 "$@"
    [ "$(grep -cx "$wanted" "$WORK/$name.log")" = "$jobs" ] && [ "$status" = 0 ] ||
        why="status $status: $(grep -v "$wanted" "$WORK/$name.log" | head -n 3 | tr '\n' ' ')"
    [ "$(cut -d' ' -f2 "$WORK/$name.maps" | sort -u | tr '\n' ' ')" = "$expected " ] || why="${why:-another library was mapped}"
    if [ -n "$why" ]; then row 'MPICH 5.0.2' "$name" 4 0 1 0 "$took"; echo "FAIL $name: $why"
    else row 'MPICH 5.0.2' "$name" 4 "$jobs" 0 0 "$took"; echo "ok $name"; fi
}
alone=(unshare --pid --fork --mount-proc)

# The first process of the namespace uses up some numbers, so that those of the ranks are of one digit, of two, and of both.
# shellcheck disable=SC2016
for spent in 0 1 2 3 4; do
    odd "pids-from-$spent" 1 "${alone[@]}" sh -c 'for i in $(seq "$1"); do /bin/true; done; shift; "$@"; exit $?' \
        sh $spent mpiexec -n 4 "${ranks[@]}"
done

# Every rank is the first process of its container.
odd containers-of-one 1 mpiexec -n 4 unshare --pid --mount --ipc --uts --fork --mount-proc "${ranks[@]}"

# Of two names, as containers have: MPICH's own files in /dev/shm are called after process number and host.
# One job's words go to a file first: two jobs that write to one log break each other's lines.
# shellcheck disable=SC2016
contained='unshare --pid --mount --ipc --uts --fork --mount-proc sh -c "echo \$0 >/proc/sys/kernel/hostname; exec \"\$@\""'
# shellcheck disable=SC2016
odd two-containers 2 sh -c "$contained"' one "$@" >"$0" 2>&1 & '"$contained"' two "$@"; two=$?
        wait $!; one=$?; cat "$0"; exit $((one + two))' \
    "$WORK/first-container" mpiexec -n 4 "${ranks[@]}"

if $CC -O1 -Wall -o "$WORK/forbid" "$clients/../robust/forbid.c"; then
    odd no-ptrace 1 mpiexec -n 4 "$WORK/forbid" "${ranks[@]}"
else echo "FAIL no-ptrace: forbid.c does not build"; fi

# shellcheck disable=SC2016
odd small-shm 1 unshare --mount sh -c 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"' sh mpiexec -n 4 "${ranks[@]}"

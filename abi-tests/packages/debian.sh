#!/usr/bin/env bash
# A fresh Debian 12 in a folder, with its own MPICH, Open MPI and libfabric. A program that was built there runs on Debian's
# libfabric, on ours from our packages, and on Debian's again.
set -u
. "$(dirname "$0")/lib"
[ "$(id -u)" = 0 ] || { echo "skip debian: a system in a folder takes root"; exit; }
unshare --mount --pid --fork true 2>/dev/null || { echo "skip debian: no namespaces of our own here"; exit; }
made=$("$REAL" tree) || { echo "FAIL debian: no tree could be made"; exit; }
tree=$WORK/tree12 lib=/usr/lib/$multiarch
mkdir -p "$tree" && tar -C "$tree" -xf "$made/tree.tar" || exit 1
cp /etc/resolv.conf /etc/hosts "$tree/etc/"
# Nobody is there to answer; nothing that is not asked for.
printf '%s\n' 'APT::Get::Assume-Yes "1";' 'APT::Install-Recommends "0";' 'Acquire::Retries "3";' >"$tree/etc/apt/apt.conf.d/unattended"
mkdir -p "$tree/root/source/target/packages"
cp "$ROOT"/target/packages/*.deb "$tree/root/source/target/packages/"
cp "$here/ranks.c" "$SUPPORT"/{ends.c,ends.h,die.h} "$tree/root/source/"

# shellcheck disable=SC2016
enter='mount -t proc none "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" && mount -t tmpfs none "$0/dev/shm" || exit 1
    exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        sh -c "cd /root/source && exec \"\$@\"" sh "$@"'
in_tree() { unshare --mount --pid --fork --kill-child sh -c "$enter" "$tree" "$@"; }
in_tree_block() { # MARK
    local why=
    in_tree bash -e -c "$(commands "$1")" >"$WORK/$1.log" 2>&1 || why="exit status $?: $(tail -n 3 "$WORK/$1.log" | tr '\n' ' ')"
    verdict "commands-$1" "$why"
}
installed() { # NAME PACKAGE...: these are there, whole, and apt has no complaint
    local name=$1 package why=; shift
    for package; do
        [ "$(in_tree dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || why="$why $package is not there;"
        why=$why$(in_tree dpkg --verify "$package" | head -n 2)
    done
    verdict "$name" "$why$(in_tree apt-get check 2>&1 >/dev/null)"
}
gone() { # NAME PACKAGE...
    local name=$1 package left=; shift
    for package; do
        [ "$(in_tree dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ] || left="$left $package"
    done
    verdict "$name" "${left:+still there:$left}"
}

# NAME LIBRARY MPI [VARIABLES...]: two ranks of the program that was built with this MPI load this libfabric, and no other
job() {
    local name=$1 want=$2 mpi=$3 why; shift 3
    rm -rf "$tree/root/loader"; mkdir "$tree/root/loader"
    timeout 300 unshare --mount --pid --fork --kill-child sh -c "$enter" "$tree" \
        env "$@" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        LD_DEBUG=libs LD_DEBUG_OUTPUT=/root/loader/of "mpiexec.$mpi" -n 2 "./ranks.$mpi" >"$WORK/$name.log" 2>&1 </dev/null
    why=$(loaded "$tree/root/loader" "$tree" "$want" 2)
    grep -q '^2 ranks, 20 messages by each way$' "$WORK/$name.log" || why="$why $(tail -n 3 "$WORK/$name.log" | tr '\n' ' ')"
    verdict "$name" "$why"
}
# Open MPI's own messages over libfabric as well. Debian 12's MPICH has no libfabric in it: UCX alone.
open_mpi_by_ofi="OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=tcp OMPI_MCA_mtl_base_verbose=100"
all_jobs() { # NAME LIBRARY
    job "$1-mpich" "$2" mpich
    job "$1-openmpi" "$2" openmpi OMPI_MCA_pml=ob1
}

in_tree apt-get -qq update >"$WORK/apt" 2>&1 &&
    in_tree apt-get -qq install mpich openmpi-bin libmpich-dev libopenmpi-dev libfabric-dev libfabric-bin gcc libc6-dev >>"$WORK/apt" 2>&1 ||
    { echo "FAIL debian: apt in the tree: $(tail -n 2 "$WORK/apt" | tr '\n' ' ')"; exit; }
for mpi in mpich openmpi; do
    why=$(in_tree "mpicc.$mpi" -o "ranks.$mpi" ranks.c ends.c -lfabric 2>&1) && why=
    verdict "debian-built-$mpi" "$why"
done
theirs=$(in_tree readlink -f $lib/libfabric.so.1)
programs="mpich openmpi-bin libopenmpi3 libmpich12"
# shellcheck disable=SC2086
{
    all_jobs debian-theirs "$theirs"

    in_tree_block deb-install
    installed debian-ours $programs libfabric-rs1 libfabric-rs-dev libfabric-rs-bin
    gone debian-theirs-gone libfabric1 libfabric-dev libfabric-bin
    all_jobs debian-ours "$lib/$ours"
    # shellcheck disable=SC2086
    job debian-ours-openmpi-mtl "$lib/$ours" openmpi $open_mpi_by_ofi
    verdict debian-ours-openmpi-took-mtl "$(grep -q 'select: component ofi selected' "$WORK/debian-ours-openmpi-mtl.log" || echo 'its messages went elsewhere')"
    why=$(in_tree sh -c 'mpicc.mpich -o ranks.new ranks.c ends.c -lfabric && fi_info -p shm' 2>&1 >/dev/null) && why=
    verdict debian-ours-dev-and-bin "$why"
    # What --check says of Debian's Open MPI, whose own file leaves libfabric out, and what it does when it is told.
    in_tree fi_info --check >"$WORK/check.log"
    verdict debian-check-openmpi "$(grep -q 'would take nothing of libfabric .*OMPI_MCA_mtl=^ofi (in /etc/openmpi/' "$WORK/check.log" ||
        grep 'Open MPI' "$WORK/check.log" || echo 'nothing of Open MPI')"
    # Where later releases write the provider, this one writes the domain.
    # shellcheck disable=SC2086
    in_tree env $open_mpi_by_ofi fi_info --check >"$WORK/check.log"
    verdict debian-check-openmpi-by-ofi "$(diff <(sed -n 's/.*mtl:ofi:provider: //p' "$WORK/debian-ours-openmpi-mtl.log" | sort -u) \
        <(sed -nE 's/.*Open MPI .* would take tcp on ([^ ,]+)[,.].*/\1/p' "$WORK/check.log"))"
    # The library alone is enough, and takes nothing else with it.
    why=$(in_tree apt-get -s install libfabric1 | sed -n 's/^\(Inst\|Remv\) \([^ ]*\).*/\1 \2/p' | sort)
    verdict debian-back-alone "$(diff <(printf '%s\n' 'Inst libfabric1' 'Remv libfabric-rs-bin' 'Remv libfabric-rs-dev' 'Remv libfabric-rs1') - <<<"$why")"
    why=$(in_tree apt-get -s remove libfabric-rs1)
    verdict debian-remove-takes-more "$(grep -q '^Remv openmpi-bin ' <<<"$why" || echo 'the page says so, and it does not')"

    in_tree_block deb-back
    installed debian-back $programs libfabric1 libfabric-dev libfabric-bin
    gone debian-ours-gone libfabric-rs1 libfabric-rs-dev libfabric-rs-bin
    verdict debian-nothing-left "$(in_tree sh -c "ls $lib/$ours /usr/share/doc/libfabric-rs* 2>/dev/null")"
    all_jobs debian-back "$theirs"
}
rm -rf "$tree"
